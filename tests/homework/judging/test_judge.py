"""The judging of answers to an exercise of our own: outcomes, mistakes together, crashes, what must not be named."""

import builtins
import logging
import math
import sys
from dataclasses import replace
from functools import partial
from inspect import Parameter, signature
from io import StringIO

import numpy as np
import pytest
from wrong_answers import wrong_answers

from transformer_np import functional as F
from transformer_np.homework import all_exercises, check
from transformer_np.homework.exercise import Case, Exercise, Result, call, draw_sizes
from transformer_np.homework.guard import guarded
from transformer_np.homework.judging.attempt import attempt
from transformer_np.homework.judging.finding import findings
from transformer_np.homework.judging.judge import OUTCOMES, WIDTH, judge
from transformer_np.homework.judging.trials import Trials


def scaled_sums(x, w, scale=1.0):
    """Two results: y = scale · x w, and total = Σ x over B and T."""
    return scale * (x @ w), x.sum(axis=(0, 1))


def cases(rng):
    sizes = draw_sizes(rng, "B T D K")
    B, T, D, K = sizes.values()
    x, w = rng.normal(size=(B, T, D)), rng.normal(size=(D, K))
    hole = x.copy()
    hole[0, 0] = 0
    return [
        Case("", (x, w), sizes=sizes),
        Case("scale=3", (x, w), {"scale": 3.0}, sizes),
        Case("a row of zeros", (hole, w), sizes=sizes),
    ]


def wrong(made, x, w, scale=1.0):
    if made("no scale"):
        scale = 1.0
    if made("weights squared"):
        w = w * w
    if made("absolute inputs"):
        x = np.abs(x)
    if made("weights transposed"):
        return scale * (x @ w.T), x.sum((0, 1))
    y = scale * np.einsum("btd,dk->btk", x, w)
    if made("NaN for rows of zeros"):
        y[(x == 0).all(-1)] = np.nan
    return y, (x * x if made("total of squares") else x).sum((0, 1))


MISTAKES = {
    "no scale": "The scale is not used at all here.",
    "weights squared": "The weights are squared, W · W.",
    "absolute inputs": "The absolute value of x is taken first.",
    "weights transposed": "The weights are transposed, x Wᵀ.",
    "NaN for rows of zeros": "A row of zeros gives NaN.",
    "total of squares": "The squares of x are added up.",
}


class Made(dict):
    """The mistakes of an answer that can make them itself."""

    def __init__(self, answer, texts):
        super().__init__(texts)
        self.answer = answer

    def variant(self, names=()):
        return partial(self.answer, frozenset(names).__contains__)

    def compatible(self, _):
        return True


EXERCISE = Exercise(
    scaled_sums,
    (Result("y", "B T K"), Result("total", "D", gradient=True)),
    cases,
    Made(wrong, MISTAKES),
    scaled_sums,
    ("What?", "y = x w", "here"),
    difficulty=1,
    section="§0",
)


def verdict(answer, exercise=EXERCISE, seed=0):
    trials = Trials(exercise, seed)
    found = judge(trials, findings(trials, [attempt(exercise, answer, case) for case in trials.cases]))
    assert found.outcome in OUTCOMES
    return found


def flat(found):
    return " ".join(found.message.split())


def with_total(y=lambda y: y, total=lambda total: total):
    def answer(x, w, scale=1.0):
        right = scaled_sums(x, w, scale)
        return y(right[0]), total(right[1])

    return answer


# --- outcomes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "outcome", "name"),
    [
        (scaled_sums, "passed", None),
        (lambda x, w, scale=1.0: list(scaled_sums(x, w, scale)), "passed", None),
        (with_total(np.float32, np.float32), "wrong value", "another dtype"),
        (lambda x, w, scale=1.0: sys.exit(), "crashed", None),
        (lambda x, w, scale=1.0: scaled_sums(x, w), "wrong value", "no scale"),
        (with_total(total=np.negative), "wrong gradient", "wrong sign"),
        (with_total(y=np.transpose), "wrong shape", "transposed"),
        (with_total(y=str), "wrong shape", None),
        # in the wrong form
        (lambda x, w, scale=1.0: print(end=""), "wrong shape", "nothing returned"),
        (lambda x, w, scale=1.0: scaled_sums(x, w, scale)[0], "wrong shape", "returns too little"),
        (lambda x, w, scale=1.0: (*scaled_sums(x, w, scale), 1), "wrong shape", "returns too much"),
        (lambda x, w, scale=1.0: (scaled_sums(x, w)[0].tolist(), x[0, 0]), "wrong shape", "a list instead of an array"),
        (lambda x, w, scale=1.0: (part for part in (x, w)), "wrong shape", "a generator"),
        (lambda x, w, scale=1.0: (None, x.sum((0, 1))), "wrong shape", "returns None for a result"),
        # other parameters
        (lambda x, w: scaled_sums(x, w), "crashed", "no parameter scale"),
        (lambda x: x, "crashed", "other parameters"),
        (lambda x, w, scale=1.0: len(1), "crashed", None),  # a TypeError inside
        # common exceptions
        (lambda x, w, scale=1.0: x[..., 0, 0, 0, 0, 0], "crashed", "a fixed number of axes"),
        (lambda x, w, scale=1.0: x.sum(axis=-4), "crashed", "a fixed number of axes"),
        (lambda x, w, scale=1.0: np.einsum("btdx,dk->btk", x, w), "crashed", "a fixed number of axes"),
        (lambda x, w, scale=1.0: [part for part in x[0, 0, 0]], "crashed", "a fixed number of axes"),
        (lambda x, w, scale=1.0: (np.zeros(x.shape[3]), x.sum((0, 1))), "crashed", "a fixed number of axes"),
        (lambda x, w, scale=1.0: x if x else w, "crashed", "an array as a condition"),
        (lambda x, w, scale=1.0: x[w], "crashed", "floats as indices"),
        (lambda x, w, scale=1.0: nothing_at_all * x, "crashed", "a name without a value"),  # noqa: F821
        (lambda x, w, scale=1.0: np.zeros((len(x) / 1, 2)), "crashed", "a float as a size or index"),
        (lambda x, w, scale=1.0: x + x.T, "crashed", "`.T` of more than two axes"),
        (lambda x, w, scale=1.0: (x @ w)[..., :1] + np.zeros(x.shape[:-1]), "crashed", "missing axis"),
        (lambda x, w, scale=1.0: x[None] + x.sum(axis=-2), "crashed", "missing axis"),
        (lambda x, w, scale=1.0: x.sum(axis=-1, keepdims=True)[None] + x.sum(axis=-2), "crashed", "missing axis"),
        (lambda x, w, scale=1.0: math.log(-1 - np.abs(x).max()), "crashed", "outside of the function's domain"),
        (lambda x, w, scale=1.0: x @ w - x.sum(-1) * np.ones((2, 1)), "crashed", None),
        (lambda x, w, scale=1.0: [1][5], "crashed", "a place behind the end"),
        (lambda x, w, scale=1.0: x[..., w.shape[0]], "crashed", "a place behind the end"),
        (lambda x, w, scale=1.0: x[: np.arange(3)], "crashed", "an array as a single place"),
        (lambda x, w, scale=1.0: (x @ w.T, x.sum((0, 1))), "crashed", "weights transposed"),  # it crashes alike
        (lambda x, w, scale=1.0: x @ x @ w.T, "crashed", None),  # which crashes at other sizes
    ],
)
def test_outcome(answer, outcome, name):
    found = verdict(answer)
    assert (found.outcome, found.misconception) == (outcome, name)


# `right` is the right answer, and mistaken(name) is one with a mistake
OWN = wrong_answers("""
--- nothing but a docstring
outcome: not started
def scaled_sums(x, w, scale=1.0):
    '''Later.'''

--- nothing but dots
outcome: not started
def scaled_sums(x, w, scale=1.0): ...

--- nothing written, whatever else may be given
outcome: not started
def scaled_sums(x, w, scale=1.0, *others, **more):
    raise NotImplementedError

--- nothing but an exception with a text
outcome: not started
says: scaled_sums: not started.
def scaled_sums(x, w, scale=1.0):
    raise NotImplementedError("later")

--- a helper that is not written
outcome: not started
named: helper not written
says: it calls helper, which is not written yet.
def helper():
    raise NotImplementedError

def scaled_sums(x, w, scale=1.0):
    return helper()

--- a branch that is not written
outcome: crashed
says: The plain case is right; it fails with scale=3.
def scaled_sums(x, w, scale=1.0):
    if scale != 1:
        raise NotImplementedError
    return right(x, w)

--- the plain case alone is not written
outcome: crashed
def scaled_sums(x, w, scale=1.0):
    if scale == 1:
        raise NotImplementedError
    return right(x, w, scale)

--- an answer that is begun
outcome: crashed
named: not finished
says: a part of it is not written yet
def scaled_sums(x, w, scale=1.0):
    y = scale * (x @ w)
    raise NotImplementedError("the total")

--- a masked array
outcome: wrong shape
says: y must be an array of numbers, got a masked array. Convert it with .filled(…).
def scaled_sums(x, w, scale=1.0):
    y, total = right(x, w, scale)
    return np.ma.masked_less(y, 0), total

--- nothing returned
says: It must return 2 values (y, total), but it returned None. Is there a `return` on every way through it?
def scaled_sums(x, w, scale=1.0):
    y = scale * (x @ w)

--- None for one result beside a right one
says: but y is None.
says: Of the rest, total is right.
def scaled_sums(x, w, scale=1.0):
    return None, x.sum((0, 1))

--- None for one result beside a wrong one
says: Of the rest, total is wrong.
def scaled_sums(x, w, scale=1.0):
    return None, x.sum((0, 1)) + 1

--- a result in the place of another shape
says: The array returned as y is total.
def scaled_sums(x, w, scale=1.0):
    return x.sum((0, 1)), np.cos(x[0, 0])

--- another parameter is missing
says: has the parameters (x, w), but the exercise has (x, w, scale=1.0)
def scaled_sums(x, w):
    return right(x, w)

--- a TypeError inside is not about the parameters
not: parameter
def scaled_sums(x, w, scale=1.0):
    return len(1)

--- an argument that is changed
outcome: wrong value
named: changes its input
says: scale=3
says: It changes x,
def scaled_sums(x, w, scale=1.0):
    total = x.sum((0, 1))
    x *= scale
    return x @ w, total

--- a mistake and a change of the input
named: absolute inputs
says: It changes x,
def scaled_sums(x, w, scale=1.0):
    results = mistaken("absolute inputs")(x, w, scale)
    x[...] = 0
    return results

--- a second mistake in an edge case is told with the case
named: weights squared and NaN for rows of zeros
says: A row of zeros gives NaN. This shows with a row of zeros.
def scaled_sums(x, w, scale=1.0):
    return mistaken("weights squared", "NaN for rows of zeros")(x, w, scale)

--- a mistake that a failing case contradicts is told of the others alone
named: weights squared
says: The weights are squared, W · W.
def scaled_sums(x, w, scale=1.0):
    y, total = mistaken("weights squared")(x, w, scale)
    return (np.sin(y) if scale != 1 else y), total

--- a mistake that a right case contradicts is not named
named:
says: The plain case is right; it fails with scale=3.
def scaled_sums(x, w, scale=1.0):
    return right(x, w, scale) if scale == 1 else mistaken("weights squared")(x, w, scale)

--- a change that not all cases show is told with its case
says: In the plain case: `y` has the wrong sign
not: something else
def scaled_sums(x, w, scale=1.0):
    y, total = right(x, w, scale)
    return (-y if scale == 1 else np.sin(y)), total

--- a crash in an edge case beside a mistake
outcome: wrong value
named: weights squared
says: With scale=3: ValueError: negative dimensions
def scaled_sums(x, w, scale=1.0):
    return np.zeros(int(2 - scale)) * 0 if scale > 2 else mistaken("weights squared")(x, w, scale)

--- a crash in the first case beside a mistake in others
outcome: crashed
named: weights squared
says: ValueError: only for scale 3.
says: The arrays of this case are x (
says: The weights are squared, W · W. This shows with scale=3 and with a row of zeros.
def scaled_sums(x, w, scale=1.0):
    if scale == 1 and x.all():
        raise ValueError("only for scale 3")
    return mistaken("weights squared")(x, w, scale)

--- a mistake that explains a special case alone is not named
named:
def scaled_sums(x, w, scale=1.0):
    if (x == 0).all(-1).any():
        return mistaken("NaN for rows of zeros")(x, w, scale)
    return np.cbrt(x) @ np.cbrt(w), x.sum((0, 1))

--- a crash of another kind is no mistake that crashes
outcome: crashed
named: a name without a value
not: The weights are transposed
def scaled_sums(x, w, scale=1.0):
    return undefined

--- the trace shows the student's lines only
says: return F.linear(x, w[0]), None
not: functional.py
def scaled_sums(x, w, scale=1.0):
    return F.linear(x, w[0]), None
""")


@pytest.mark.parametrize("answer", OWN, ids=lambda answer: answer.what)
def test_what_is_told(answer, tmp_path):
    file, code = tmp_path / "homework.py", f"import numpy as np\n{answer.code}"
    file.write_text(code, encoding="utf-8")
    space = {"F": F, "right": scaled_sums, "mistaken": lambda *names: EXERCISE.variant(names)}
    exec(compile(code, file, "exec"), space)
    found = verdict(space["scaled_sums"])
    answer.is_told_by(found)
    assert max(len(line) for line in found.message.splitlines() if not line.startswith((" ", "In the call"))) <= WIDTH
    assert "\n" not in repr(found) and len(found.message.splitlines()) < 40


def test_the_share_of_the_cases_that_are_right():
    assert verdict(lambda x, w, scale=1.0: scaled_sums(x, w)).share == pytest.approx(2 / 3)


# --- mistakes of the list --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        *((name,) for name in MISTAKES),
        ("weights squared", "absolute inputs"),
        ("absolute inputs", "no scale"),
    ],
    ids=" and ".join,
)
def test_the_mistakes_that_are_made_are_told_and_no_others(names):
    found = verdict(EXERCISE.variant(names))
    assert set(found.misconception.split(" and ")) == set(names)
    assert [text in flat(found) for text in MISTAKES.values()] == [name in names for name in MISTAKES]


def test_of_many_pairs_those_with_some_of_the_numbers_come_first():
    exercise, pair = all_exercises()["Adam"], {"averages not kept", "β₁ in the correction of v"}
    found = check("Adam", exercise.variant(pair), seed=1, quiet=True)
    assert set(found.misconception.split(" and ")) == pair


def test_a_simple_change_goes_before_a_pair_of_mistakes():
    pair = {"half": "It is halved, as one mistake.", "turned": "Its sign is turned."}

    def variant(made, x, w, scale=1.0):
        y, total = scaled_sums(x, w, scale)
        return y * (0.5 if made("half") else 1) * (-2 if made("turned") else 1), total

    assert (
        verdict(with_total(y=np.negative), replace(EXERCISE, mistakes=Made(variant, pair))).misconception
        == "wrong sign"
    )


def test_a_crash_beside_another_mistake_is_explained_by_the_mistake_that_crashes_alike():
    def answer(x, w, scale=1.0):
        y = x @ w.T if (x == 0).any() else scale * (x @ w)
        return y, (x * x).sum((0, 1))

    mistakes = MISTAKES | {"zeros transposed": "Where a number is 0 the weights are transposed."}

    def variant(made, x, w, scale=1.0):
        return wrong(made, x, w.T if made("zeros transposed") and (x == 0).any() else w, scale)

    def by_matmul(made, x, w, scale=1.0):
        if made("zeros transposed") and (x == 0).any():
            return x @ w.T, None
        return wrong(made, x, w, scale)

    for right, name in (by_matmul, "total of squares and zeros transposed"), (variant, "total of squares"):
        found = verdict(answer, replace(EXERCISE, mistakes=Made(right, mistakes)))
        assert found.misconception == name  # np.einsum has another text than matmul


def test_shapes_in_a_crash_are_put_in_letters():
    trials = Trials(EXERCISE, 0)
    sizes = trials.cases[0].sizes
    found = verdict(lambda x, w, scale=1.0: np.zeros(sizes["T"]) + np.zeros((sizes["B"], sizes["D"])))
    assert f"({sizes['B']},{sizes['D']}) is (B, D)" in flat(found)
    assert f"x {trials.cases[0].arguments[0].shape}" in flat(found)


# --- arguments that are not used -------------------------------------------------------------------------------------


def _unused(name):
    """The arguments of an exercise with a default, and their defaults; not those that only change how it computes."""
    exercise = all_exercises()[name]
    for argument, parameter in signature(exercise.reference).parameters.items():
        if parameter.default is not Parameter.empty and argument not in ("use_cache", "return_hypotheses", "tile"):
            yield argument, parameter.default


UNUSED = [
    (name, *unused) for name, exercise in all_exercises().items() if exercise.drive is call for unused in _unused(name)
]
SOME = [
    pytest.param(*of, marks=pytest.mark.release if i % 4 else pytest.mark.long, id=f"{of[0]}: {of[1]}")
    for i, of in enumerate(UNUSED)
]


@pytest.mark.parametrize(("name", "argument", "default"), SOME)
def test_an_argument_that_is_not_used_is_named(name, argument, default):
    exercise = all_exercises()[name]

    def answer(*arguments, **options):
        bound = signature(exercise.reference).bind(*arguments, **options)
        return exercise.variant()(**bound.arguments | {argument: default})

    found = check(name, answer, seed=5, quiet=True)
    assert found.misconception
    assert argument in found.message


def test_an_ignored_argument_without_a_mistake_of_its_own_is_named():
    others = {name: text for name, text in MISTAKES.items() if name != "no scale"}
    found = verdict(lambda x, w, scale=1.0: scaled_sums(x, w), replace(EXERCISE, mistakes=Made(wrong, others)))
    assert found.misconception == "scale not used"
    assert "The results are as if `scale` were 1.0 in every call: is it used where it counts?" in flat(found)


def shifted_sums(x, w, scale=1.0, shift=0.0):
    y, total = scaled_sums(x, w, scale)
    return y + shift, total


def shifted_cases(rng):
    plain, *others = cases(rng)
    options = {"shift=2": {"shift": 2.0}, "scale=5": {"scale": 5.0}}
    return [plain, *others, *(replace(plain, label=label, options=given) for label, given in options.items())]


def wrong_shifted(made, x, w, scale=1.0, shift=0.0):
    y, total = wrong(made, x, w, scale)
    return y + shift, total


SHIFTED = replace(EXERCISE, reference=shifted_sums, cases=shifted_cases, mistakes=Made(wrong_shifted, MISTAKES))


def test_an_option_that_is_not_used_is_told_though_another_one_is_used_wrongly():
    found = verdict(lambda x, w, scale=1.0, shift=0.0: (x @ w + np.cos(x.sum()) * shift, x.sum((0, 1))), SHIFTED)
    assert "The scale is not used at all here." in flat(found)


def test_an_option_that_one_case_uses_is_not_called_unused():
    found = verdict(
        lambda x, w, scale=1.0, shift=0.0: ((scale if scale > 4 else 1) * (x @ w) + shift, x.sum((0, 1))), SHIFTED
    )
    assert "Wrong: y" in flat(found)
    assert "not used" not in flat(found)


@pytest.mark.parametrize("name", ["sinusoidal_encoding", "additive"])
@pytest.mark.parametrize(("given", "other"), [(np.float32, np.float64), (np.float64, np.float32)])
def test_an_answer_that_ignores_dtype(name, given, other):
    reference = all_exercises()[name].reference
    found = check(name, lambda *arguments, dtype=None: reference(*arguments, given), seed=5, quiet=True)
    assert found.misconception == "another dtype"
    assert f"must have dtype {other.__name__}, got {given.__name__}" in flat(found)


# --- what an answer does besides --------------------------------------------------------------------------------------


def test_a_keyboard_interrupt_passes():
    def answer(x, w, scale=1.0):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verdict(answer)


def test_an_array_that_is_used_again_is_looked_at_in_time():
    kept = {}

    def answer(x, w, scale=1.0):
        y, total = scaled_sums(x, w, scale)
        buffer = kept.setdefault(y.shape, np.empty(y.shape))
        buffer[...] = y
        return buffer, total

    assert verdict(answer).passed


def test_a_patched_numpy_is_mended_and_changes_no_expectation():
    exp = np.exp
    with guarded():
        np.exp = np.sin
    assert np.exp is exp

    def answer(x, axis=-1):
        np.exp = np.ones_like
        return np.full(x.shape, 1 / x.shape[axis])

    assert check("softmax", answer, seed=0, quiet=True).outcome == "wrong value"
    assert np.exp is exp


@pytest.mark.parametrize("seed", range(5))
def test_a_constant_factor_is_found_with_every_seed(seed):
    found = verdict(with_total(y=lambda y: y / len(y)), seed=seed)
    assert (found.outcome, found.misconception) == ("wrong value", "constant factor 1/B")
    assert "(total right)" in found.message


@pytest.mark.parametrize(
    "strange",
    [
        lambda y: y[:0],
        lambda y: np.zeros((0, 3)),
        lambda y: y[None, None, None],
        lambda y: y * np.inf,
        lambda y: np.full(y.shape, np.nan),
        lambda y: y > 0,
        lambda y: np.zeros(y.shape, np.uint8),
        lambda y: 3,
        lambda y: np.where(y > 0, y, np.inf),
        lambda y: (y * 1e200) ** 2,
        lambda y: np.outer(y, y),
    ],
)
def test_no_array_is_too_strange_to_be_judged(strange):
    found = verdict(with_total(y=strange))
    assert found.outcome in ("wrong shape", "wrong value")
    told = found.message.splitlines()
    assert len(told) > 1 or "missing or empty" in told[0] or "must have the shape" in told[0]
    assert verdict(with_total(total=strange)).outcome in ("wrong shape", "wrong gradient")


def test_names_that_the_file_defines_below_the_check(tmp_path):
    """A script checks an answer before the next one is defined, and a name of its file may be None or gone."""
    lines = ("def relu(x):", "    return x * (x > 0)", "", "verdict = check('relu', relu, quiet=True)")
    file, code = tmp_path / "script.py", "\n".join([*lines, "def gelu(x):", "    return x", ""])
    file.write_text(code, encoding="utf-8")
    for gelu in ({}, {"gelu": None}, {"gelu": 3}):
        names = {"check": check, **gelu}
        exec(compile(code, str(file), "exec"), names)
        assert names["verdict"].passed, names["verdict"].message


@pytest.mark.parametrize(
    "wrong, error, message",
    [
        ({"name": print}, TypeError, "name must be a str"),
        ({"seed": "a"}, TypeError, "seed must be a whole number"),
        ({"time_limit": None}, ValueError, "the time limit must be"),
    ],
)
def test_what_check_refuses(wrong, error, message):
    with pytest.raises(error, match=message):
        check(**{"name": "relu", "answer": F.relu} | wrong)


class Uncopied:
    def __deepcopy__(self, memo):
        raise RecursionError("a shell, a figure or an open file has no copy")


def test_a_notebook_holds_what_has_no_copy(tmp_path, monkeypatch):
    """IPython puts its shell among Python's own names, and a list of the student may hold an open file."""
    monkeypatch.setattr(builtins, "display", Uncopied(), raising=False)
    file, code = tmp_path / "cell.py", "def tanh_backward(dy, y):\n    return dy * (1 + y * y)\n"
    file.write_text(code, encoding="utf-8")
    names = {"kept": [Uncopied()], "Out": {1: Uncopied()}}
    exec(compile(code, str(file), "exec"), names)
    assert "One change in line 2 makes it right" in check("tanh_backward", names["tanh_backward"], quiet=True).message


def test_an_answer_in_a_cell_that_is_timed_has_its_line(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    cell = "%%time\n\n%pwd\ndef tanh_backward(dy, y):\n    return dy * (1 + y * y)\n"
    try:
        shell.run_cell(cell, store_history=True)
        told = check("tanh_backward", shell.user_ns["tanh_backward"], quiet=True).message
    finally:
        InteractiveShell.clear_instance()
    assert "One change in line 3 makes it right:\n    return dy * (1 + y * y)\n" in told


def test_an_answer_that_autoreload_has_renewed_has_its_line(tmp_path):
    """IPython's autoreload compiles a changed function alone: its code says that it is in line 1."""
    file, names = tmp_path / "own.py", {}
    file.write_text("x = 1\n\n\ndef tanh_backward(dy, y):\n    return dy * (1 + y * y)\n", encoding="utf-8")
    exec(compile(file.read_text(encoding="utf-8").lstrip("x =1\n"), str(file), "exec"), names)
    assert names["tanh_backward"].__code__.co_firstlineno == 1
    assert "One change in line 5 makes it right" in check("tanh_backward", names["tanh_backward"], quiet=True).message


@pytest.mark.parametrize("of_class", [False, True])
def test_an_answer_whose_file_has_changed_since_is_told_so(tmp_path, of_class):
    """In a notebook, a module that is imported again is not loaded again."""
    file, names = tmp_path / "own.py", {}
    code = "import numpy as np\n\n\ndef relu(x):\n    return np.maximum(x, 0)\n"
    if of_class:
        code = "import numpy as np\n\n\nclass Relu:\n    def __init__(self):\n        pass\n\n    "
        code += "@staticmethod\n    def __call__(x):\n        return np.maximum(x, 0)\n"
    file.write_text(code, encoding="utf-8")
    exec(compile(code, str(file), "exec"), names)
    answer = names["Relu"]() if of_class else names["relu"]
    file.write_text(f"x = 1\n{code}", encoding="utf-8")
    assert check("relu", answer, quiet=True).message == "relu: right."
    file.write_text(code.replace("0", "1"), encoding="utf-8")
    assert "own.py has changed since it was loaded" in check("relu", answer, quiet=True).message


def test_an_answer_whose_assertions_pytest_has_rewritten_is_that_of_its_file():
    def relu(x):
        assert np.ndim(x), "no array"
        return np.maximum(x, 0)

    assert check("relu", relu, quiet=True).message == "relu: right."


def test_what_an_answer_logs_is_shown_once():
    """A handler keeps the stream that it was made with, so that nothing is redirected."""
    shown, logger = StringIO(), logging.getLogger("of a student")
    logger.addHandler(logging.StreamHandler(shown))

    def relu(x):
        logger.error("relu of %s", x.shape)
        return np.maximum(x, 1)

    before = logging.root.manager.disable
    assert not check("relu", relu, quiet=True).passed
    assert shown.getvalue().count("\n") == 1
    assert logging.root.manager.disable == before


def test_a_class_whose_methods_another_function_has_made_is_judged(verdict_on):
    assert verdict_on("""
    from transformer_np import training

    def counted(method):
        def run(*args):
            return method(*args)
        return run

    class Adam(training.Adam):
        _update_block = counted(training.Adam._update_block)
    """).passed


def test_a_picture_in_an_answer_is_shown_once(monkeypatch):
    shown = []
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.get_fignums()))
    plt.close("all")  # what other tests have drawn

    def relu(x):
        plt.figure()
        plt.show()
        return np.maximum(x, 1)

    try:
        assert not check("relu", relu, quiet=True).passed
        assert len(shown) == len(plt.get_fignums()) == 1
    finally:
        plt.close("all")
