"""The judging of answers: outcomes, findings about any wrong array, explanations, attempts."""

import math
import re
import sys
from dataclasses import replace
from inspect import Parameter, signature

import numpy as np
import pytest

from transformer_np import decoding
from transformer_np import functional as F
from transformer_np.homework import all_exercises, check
from transformer_np.homework.exercise import Case, Exercise, Result, call, draw_sizes
from transformer_np.homework.guard import guarded
from transformer_np.homework.judging.attempt import attempt, unwritten
from transformer_np.homework.judging.describe import Draw, describe_exactly, describe_roughly
from transformer_np.homework.judging.example import smallest_call
from transformer_np.homework.judging.family import Endless, without_huge_arrays
from transformer_np.homework.judging.finding import findings
from transformer_np.homework.judging.judge import OUTCOMES, WIDTH, judge
from transformer_np.homework.judging.rules import CHANGED, OTHER_DTYPE
from transformer_np.homework.judging.trials import Trials

# --- an exercise of our own ------------------------------------------------------------------------------------------


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
EXERCISE = Exercise(
    scaled_sums,
    (Result("y", "B T K"), Result("total", "D", gradient=True)),
    cases,
    MISTAKES,
    wrong,
    ("What?", "y = x w", "here"),
    difficulty=1,
    section="§0",
)


def verdict(answer, exercise=EXERCISE, seed=0):
    trials = Trials(exercise, seed)
    found = judge(trials, [attempt(exercise, answer, case) for case in trials.cases])
    assert found.outcome in OUTCOMES
    return found


def flat(found):
    return " ".join(found.message.split())


# --- outcomes --------------------------------------------------------------------------------------------------------


def crashing(x, w, scale=1.0):
    return x @ w.T


def unwritten_helper():
    raise NotImplementedError


def calls_helper(x, w, scale=1.0):
    return unwritten_helper()


def raises_itself(x, w, scale=1.0):
    raise NotImplementedError("later")


def only_a_docstring(x, w, scale=1.0):
    """Later."""


def only_dots(x, w, scale=1.0): ...


def with_total(y=lambda y: y, total=lambda total: total):
    def answer(x, w, scale=1.0):
        right = scaled_sums(x, w, scale)
        return y(right[0]), total(right[1])

    return answer


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (scaled_sums, "passed"),
        (lambda x, w, scale=1.0: list(scaled_sums(x, w, scale)), "passed"),
        (with_total(np.float32, np.float32), "wrong value"),  # fewer digits than the arguments
        (raises_itself, "not started"),
        (calls_helper, "not started"),
        (only_a_docstring, "not started"),
        (only_dots, "not started"),
        (crashing, "crashed"),
        (lambda x, w, scale=1.0: sys.exit(), "crashed"),
        (lambda x, w, scale=1.0: scaled_sums(x, w), "wrong value"),
        (with_total(y=np.transpose), "wrong shape"),
        (lambda x, w, scale=1.0: scaled_sums(x, w, scale)[0], "wrong shape"),
        (with_total(y=np.negative), "wrong value"),
        (with_total(total=np.negative), "wrong gradient"),
        (with_total(y=lambda y: y + 0j), "wrong shape"),
        (with_total(y=lambda y: y.astype(object)), "wrong shape"),
        (with_total(y=str), "wrong shape"),
        (with_total(y=lambda y: np.ma.masked_less(y, 0)), "wrong shape"),
        (lambda x, w, scale=1.0: (part for part in scaled_sums(x, w, scale)), "wrong shape"),
    ],
)
def test_outcome(answer, outcome):
    assert verdict(answer).outcome == outcome


def test_not_started_says_what_is_missing():
    assert flat(verdict(calls_helper)).endswith("it calls unwritten_helper, which is not written yet.")
    assert verdict(calls_helper).misconception == "unwritten_helper not written"  # which a report shows
    assert flat(verdict(raises_itself)) == "scaled_sums: not started."


def test_a_branch_that_is_not_written_is_not_an_answer_that_is_not_started():
    def answer(x, w, scale=1.0):
        if scale != 1:
            raise NotImplementedError
        return scaled_sums(x, w)

    found = verdict(answer)
    assert found.outcome == "crashed"
    assert "The plain case is right; it fails with scale=3." in flat(found)
    assert found.share == pytest.approx(2 / 3)


def test_an_answer_that_is_begun_is_not_called_not_started():
    def answer(x, w, scale=1.0):
        _ = scale * (x @ w)
        raise NotImplementedError("the total")

    found = verdict(answer)
    assert (found.outcome, found.misconception) == ("crashed", "not finished")
    assert "a part of it is not written yet" in flat(found)


def test_an_answer_whose_plain_case_alone_is_not_written_is_started():
    def answer(x, w, scale=1.0):
        if scale == 1:
            raise NotImplementedError
        return scaled_sums(x, w, scale)

    assert verdict(answer).outcome == "crashed"


def test_endless_recursion_is_a_crash():
    def answer(x, w, scale=1.0):
        return answer(x, w, scale)

    found = verdict(answer)
    assert (found.outcome, found.misconception) == ("crashed", "endless recursion")
    assert len(found.message.splitlines()) < 40


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


SHIFTED = replace(EXERCISE, reference=shifted_sums, cases=shifted_cases, answer=wrong_shifted)


def test_an_option_that_is_not_used_is_told_though_another_one_is_used_wrongly():
    found = verdict(lambda x, w, scale=1.0, shift=0.0: (x @ w + np.cos(x.sum()) * shift, x.sum((0, 1))), SHIFTED)
    assert "The scale is not used at all here." in flat(found)


def test_an_option_that_one_case_uses_is_not_called_unused():
    found = verdict(
        lambda x, w, scale=1.0, shift=0.0: ((scale if scale > 4 else 1) * (x @ w) + shift, x.sum((0, 1))), SHIFTED
    )
    assert "Wrong: y" in flat(found)
    assert "not used" not in flat(found)


def test_a_keyboard_interrupt_passes():
    def answer(x, w, scale=1.0):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verdict(answer)


def test_the_trace_shows_the_students_lines_only():
    def answer(x, w, scale=1.0):
        return F.linear(x, w[0]), None

    found = verdict(answer)
    assert "return F.linear(x, w[0]), None" in found.message
    assert "functional.py" not in found.message


def test_messages_are_narrow_and_the_repr_is_one_line():
    for answer in (crashing, with_total(y=np.negative), lambda x, w, scale=1.0: scaled_sums(x, w)):
        found = verdict(answer)
        lines = [line for line in found.message.splitlines() if not line.startswith(" ")]
        assert max(map(len, lines)) <= WIDTH
        assert "\n" not in repr(found)


def test_a_masked_array_is_told_how_to_become_an_array():
    found = verdict(with_total(y=lambda y: np.ma.masked_less(y, 0)))
    assert "y must be an array of numbers, got a masked array. Convert it with .filled(…)." in flat(found)


def test_an_answer_without_return_is_asked_for_it():
    assert flat(verdict(lambda x, w, scale=1.0: print(end=""))).endswith(
        "It must return 2 values (y, total), but it returned None. Is there a `return` on every way through it?"
    )


# --- attempts --------------------------------------------------------------------------------------------------------


def test_a_missing_optional_parameter_is_named():
    found = verdict(lambda x, w: scaled_sums(x, w))
    assert (found.outcome, found.misconception) == ("crashed", "no parameter scale")
    assert "has the parameters (x, w), but the exercise has (x, w, scale=1.0)" in flat(found)


def test_a_missing_required_parameter_is_named():
    found = verdict(lambda x: x)
    assert (found.outcome, found.misconception) == ("crashed", "other parameters")


def test_a_type_error_inside_is_not_about_the_parameters():
    found = verdict(lambda x, w, scale=1.0: len(1))
    assert found.misconception is None
    assert "parameter" not in found.message


def test_an_answer_that_changes_its_input():
    def answer(x, w, scale=1.0):
        total = x.sum((0, 1))
        x *= scale
        return x @ w, total

    found = verdict(answer)
    assert (found.outcome, found.misconception) == ("wrong value", CHANGED)
    assert "It changes x," in found.message
    assert "scale=3" in found.message


def test_an_option_that_is_changed_is_named():
    def masked(x, mask=None):
        return np.where(mask, 0, x)

    def answer(x, mask=None):
        mask[...] = ~mask
        return np.where(mask, x, 0)

    exercise = Exercise(
        masked,
        (Result("y", "B T"),),
        lambda rng: [Case("", (rng.normal(size=(2, 3)),), {"mask": rng.random((2, 3)) < 0.5})],
        {},
        None,
        ("", "", ""),
        1,
        "",
    )
    assert "It changes mask," in verdict(answer, exercise).message


def test_a_mistake_and_a_change_of_the_input_are_both_told():
    def answer(x, w, scale=1.0):
        result = wrong({"absolute inputs"}.__contains__, x, w, scale)
        x[...] = 0
        return result

    found = verdict(answer)
    assert found.misconception == "absolute inputs"
    assert "It changes x," in found.message


def test_an_array_that_is_used_again_is_looked_at_in_time():
    kept = {}

    def answer(x, w, scale=1.0):
        y, total = scaled_sums(x, w, scale)
        buffer = kept.setdefault(y.shape, np.empty(y.shape))
        buffer[...] = y
        return buffer, total

    assert verdict(answer).passed


def test_the_result_of_an_earlier_call_is_recognised():
    kept = []

    def answer(x, w, scale=1.0):
        kept.append(scaled_sums(x, w, scale))
        return kept[0]

    assert "the result of an earlier call" in verdict(answer).misconception


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


def test_unwritten_methods_are_found():
    class Half:
        def step(self):
            return 1

        def reset(self): ...

    assert unwritten(Half, ("step",)) is None
    assert unwritten(Half, ("step", "reset")) == "reset"
    assert unwritten(lambda x: x) is None


# --- explanations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MISTAKES)
def test_a_single_mistake_is_told_alone(name):
    found = verdict(EXERCISE.variant({name}))
    assert found.misconception == name
    assert [text in flat(found) for text in MISTAKES.values()] == [name == other for other in MISTAKES]


@pytest.mark.parametrize(
    "names",
    [("weights squared", "absolute inputs"), ("weights squared", "total of squares"), ("absolute inputs", "no scale")],
)
def test_two_mistakes_are_both_told(names):
    found = verdict(EXERCISE.variant(names))
    assert set(found.misconception.split(" and ")) == set(names)
    assert [text in flat(found) for text in MISTAKES.values()] == [name in names for name in MISTAKES]


def test_all_calls_that_must_raise_are_told_beside_a_mistake():
    reference = all_exercises()["rotary_frequencies"].reference

    def rotary_frequencies(K, theta=10000.0, scaling=None):
        known = scaling is None or scaling["rope_type"] in ("linear", "llama3")
        return 2 * reference(K, abs(theta) or 1.0, scaling if known else None)

    message = flat(check("rotary_frequencies", rotary_frequencies, seed=1, quiet=True))
    assert "Also: With theta=0, with theta=-1 and with an unknown scaling: it must raise ValueError" in message
    assert "constant factor" in message or "2 times" in message


def test_a_right_extended_case_contradicts_no_mistake_of_the_core():
    def clip_grad_norm(parameters, max_norm):
        norms = [float(np.sqrt((p.grad**2).sum())) for p in parameters]
        total = float(np.hypot.reduce(norms))
        for p, norm in zip(parameters, norms, strict=True):
            if np.isfinite(total) and norm > max_norm:
                p.grad *= max_norm / norm
        return total

    found = check("clip_grad_norm", clip_grad_norm, seed=1, quiet=True)
    assert found.misconception == "each parameter by itself"


def test_of_many_pairs_those_with_some_of_the_numbers_come_first():
    exercise, pair = all_exercises()["Adam"], {"averages not kept", "β₁ in the correction of v"}
    found = check("Adam", exercise.variant(pair), seed=1, quiet=True)
    assert set(found.misconception.split(" and ")) == pair


def test_a_second_mistake_in_an_edge_case_is_told_with_the_case():
    found = verdict(EXERCISE.variant(("weights squared", "NaN for rows of zeros")))
    assert found.misconception == "weights squared and NaN for rows of zeros"
    assert "A row of zeros gives NaN. This shows with a row of zeros." in flat(found)


def test_a_mistake_that_a_failing_case_contradicts_is_told_of_the_others_alone():
    def answer(x, w, scale=1.0):
        y, total = wrong({"weights squared"}.__contains__, x, w, scale)
        return (np.sin(y) if scale != 1 else y), total

    found = verdict(answer)
    assert found.misconception == "weights squared"
    assert "Wrong: y (total right). The weights are squared, W · W. This alone does not explain all" in flat(found)


def test_a_mistake_that_a_right_case_contradicts_is_not_named():
    def answer(x, w, scale=1.0):
        return wrong(({"weights squared"} if scale != 1 else set()).__contains__, x, w, scale)

    found = verdict(answer)
    assert found.misconception is None
    assert "The plain case is right; it fails with scale=3." in flat(found)


def test_a_change_that_not_all_cases_show_is_told_with_its_case():
    def answer(x, w, scale=1.0):
        y, total = scaled_sums(x, w, scale)
        return (-y if scale == 1 else np.sin(y)), total

    message = flat(verdict(answer))
    assert "In the plain case: `y` has the wrong sign" in message
    assert "something else" not in message  # the other case may follow from the same mistake


@pytest.mark.long
def test_several_mistakes_that_explain_all_cases_are_told_with_their_cases():
    """Of an answer that ignores the arguments, one case alone looks like the result of an earlier call."""

    def answer(logits, temperature=1.0, top_k=None, top_p=None):
        return F.softmax(logits / temperature)

    found = check("sampling_distribution", answer, seed=5, quiet=True)
    assert set(found.misconception.split(" and ")) == {
        "top_k ignored",
        "top_p not used",
        "temperature 0 is not the likeliest token",
    }
    assert "logits / 0 is infinite" in flat(found)
    assert "This shows with temperature=0 and with temperature=0 among equally likely tokens." in flat(found)

    found = check(
        "sampling_distribution", lambda x, temperature=1.0, **_: F.softmax(x * temperature), seed=5, quiet=True
    )
    assert set(found.misconception.split(" and ")) == {
        "top_k ignored",
        "top_p not used",
        "multiplied by the temperature",
        "temperature 0 is even",
    }


def test_the_inverted_mask_without_its_axes_is_both():
    found = check("padding_mask", lambda ids, pad_id: ids != pad_id, seed=5, quiet=True)
    assert found.misconception == "(B, S), inverted"
    assert "keepdims" not in found.message


@pytest.mark.long
def test_greedy_decoding_that_keeps_the_end_token_and_counts_the_start_token():
    def answer(model, src, max_len=64, use_cache=True, return_log_probs=False):
        config, memory = model.config, model.encode(src)
        ids = np.full((len(src), 1), config.bos_id)
        while ids.shape[1] < max_len and not (ids == config.eos_id).any(1).all():
            new = model.decode(ids, memory, src)[:, -1].argmax(-1)
            ids = np.concatenate([ids, new[:, None]], axis=1)
        rows = ids[:, 1:].tolist()
        return [row[: row.index(config.eos_id) + 1] if config.eos_id in row else row for row in rows]

    found = check("greedy_decode", answer, seed=5, quiet=True)
    names = {"end token kept", "one token too few", "dropout left on", "return_log_probs ignored"}
    assert set(found.misconception.split(" and ")) == names  # it returns no log-probabilities


def test_every_call_that_must_raise_and_does_not_is_told():
    def rotary_frequencies(K, theta=10000.0, scaling=None):
        if theta == 0:
            return 1 / theta
        return F.rotary_frequencies(K, abs(theta), scaling)

    message = flat(check("rotary_frequencies", rotary_frequencies, seed=1, quiet=True))
    assert "With theta=0: it must raise ValueError, as its docstring says, but it raised ZeroDivisionError." in message
    assert "With theta=-1: it must raise ValueError, as its docstring says, but it returned a result." in message


def test_rng_is_not_spoken_of_where_there_is_none():
    def greedy_decode(model, src, max_len=64, use_cache=True, return_log_probs=False):
        np.random.random()  # noqa: NPY002
        return decoding.greedy_decode(model, src, max_len, use_cache, return_log_probs)

    message = flat(check("greedy_decode", greedy_decode, seed=1, quiet=True))
    assert "It draws from the global random numbers" in message
    assert "rng" not in message


# --- arguments that are not used --------------------------------------------------------------------------------------


def _unused(name):
    """The arguments of an exercise with a default, and their defaults; not those that only change how it computes."""
    exercise = all_exercises()[name]
    for argument, parameter in signature(exercise.reference).parameters.items():
        if parameter.default is not Parameter.empty and argument not in ("use_cache", "return_hypotheses", "tile"):
            yield argument, parameter.default


UNUSED = [
    (name, *unused) for name, exercise in all_exercises().items() if exercise.drive is call for unused in _unused(name)
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "argument", "default"), UNUSED, ids=[f"{n}: {a}" for n, a, _ in UNUSED])
def test_an_argument_that_is_not_used_is_named(name, argument, default):
    exercise = all_exercises()[name]

    def answer(*arguments, **options):
        bound = signature(exercise.reference).bind(*arguments, **options)
        return exercise.variant()(**bound.arguments | {argument: default})

    found = check(name, answer, seed=5, quiet=True)
    assert found.misconception
    assert argument in found.message


def test_an_ignored_argument_without_a_mistake_of_its_own_is_named():
    plain = replace(EXERCISE, mistakes={name: text for name, text in MISTAKES.items() if name != "no scale"})
    trials = Trials(plain, 0)
    found = judge(trials, [attempt(plain, lambda x, w, scale=1.0: scaled_sums(x, w), case) for case in trials.cases])
    assert found.misconception == "scale not used"
    assert "The results are as if `scale` were 1.0 in every call: is it used where it counts?" in flat(found)


@pytest.mark.long
def test_a_mistake_with_another_shape_is_not_named_where_the_shape_is_right():
    """Tokens one by one: windows of one token start at the same places, but these are wider."""

    def answer(ids, block_size, batch_size, rng):
        places = rng.integers(len(ids) - 1, size=(batch_size, block_size))
        return ids[places], ids[places + 1]

    verdict = check("text_windows", answer, seed=5, quiet=True)
    assert verdict.outcome == "wrong value"
    assert "block_size" not in verdict.message


def test_an_answer_that_remembers_its_first_result_for_each_shape():
    kept = {}

    def answer(x):
        return kept.setdefault(x.shape, F.merge_heads(x))

    found = check("merge_heads", answer, seed=5, quiet=True)
    assert found.misconception == "the result of an earlier call"


@pytest.mark.parametrize("name", ["sinusoidal_encoding", "additive"])
def test_an_answer_that_ignores_dtype(name):
    reference = all_exercises()[name].reference
    found = check(name, lambda *arguments, dtype=None: reference(*arguments), seed=5, quiet=True)
    assert found.misconception == OTHER_DTYPE
    assert "must have dtype float64, got float32" in flat(found)
    found = check(name, lambda *arguments, dtype=None: reference(*arguments, np.float64), seed=5, quiet=True)
    assert found.misconception == OTHER_DTYPE
    assert "must have dtype float32, got float64" in flat(found)


def test_a_crash_in_an_edge_case_is_told_beside_the_mistake():
    def answer(x, w, scale=1.0):
        return np.zeros(int(2 - scale)) * 0 if scale > 2 else wrong({"weights squared"}.__contains__, x, w, scale)

    found = verdict(answer)
    assert (found.outcome, found.misconception) == ("wrong value", "weights squared")
    assert "With scale=3: ValueError: negative dimensions" in flat(found)


def test_a_crash_in_the_first_case_is_told_beside_the_mistake_in_others():
    def answer(x, w, scale=1.0):
        if scale == 1 and x.all():
            raise ValueError("only for scale 3")
        return wrong({"weights squared"}.__contains__, x, w, scale)

    found = verdict(answer)
    assert (found.outcome, found.misconception) == ("crashed", "weights squared")
    assert "ValueError: only for scale 3." in flat(found)
    assert "The arrays of this case are x (" in flat(found)
    assert "The weights are squared, W · W. This shows with scale=3 and with a row of zeros." in flat(found)


def test_a_result_no_mistake_explains_is_described_beside_one_that_is():
    def answer(x, w, scale=1.0):
        y, _ = wrong({"weights squared"}.__contains__, x, w, scale)
        return y, -x.sum((0, 1))

    found = verdict(answer)
    assert found.misconception == "weights squared and wrong sign"
    assert "`total` has the wrong sign" in flat(found)


def test_a_mistake_that_explains_a_special_case_alone_is_not_named():
    def answer(x, w, scale=1.0):
        if (x == 0).all(-1).any():
            return wrong({"NaN for rows of zeros"}.__contains__, x, w, scale)
        return np.cbrt(x) @ np.cbrt(w), x.sum((0, 1))

    assert verdict(answer).misconception is None


def test_a_result_that_nothing_explains_is_not_left_without_a_word():
    def layer_norm_backward(dy, x_hat, inv_std, gamma):
        dx, dgamma, dbeta = F.layer_norm_backward(dy, x_hat, inv_std, gamma)
        return np.cbrt(dx), dgamma * gamma, dbeta

    found = check("layer_norm_backward", layer_norm_backward, seed=5, quiet=True)
    assert "dgamma is Σ dx̂ · x̂" in flat(found)
    assert "This alone does not explain `dx`." in flat(found)


def test_a_mistake_in_one_branch_beside_one_in_all():
    def gelu_backward(dy, x, approximate="tanh"):
        if approximate == "none":
            g, slope = np.vectorize(math.erf)(x / 2**0.5), np.exp(-x * x / 2) * (2 / np.pi) ** 0.5
        else:
            g = np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))
            slope = (1 - g**2) * (2 / np.pi) ** 0.5 * (1 + 3 * 0.044715 * x)
        return dy * (1 + g) / 2 + x * slope / 2

    message = flat(check("gelu_backward", gelu_backward, seed=1, quiet=True))
    assert "dy is before 1 + g only: a bracket is missing" in message
    assert "In g′ there is x where it is x²" in message and "shows" not in message


def test_another_mistake_where_the_named_one_makes_no_difference_is_not_hidden():
    reference = all_exercises()["sampling_distribution"].reference

    def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
        right = reference(logits, 1 / temperature if temperature else 0, top_k, top_p)
        return right if top_k is None else right * np.array(0.9, right.dtype)

    message = flat(check("sampling_distribution", sampling_distribution, seed=1, quiet=True))
    assert "The logits are multiplied by the temperature." in message
    assert "This alone does not explain all that is wrong with top_k" in message


def test_no_edit_makes_a_huge_array():
    cases = Trials(all_exercises()["window_mask"], 0).cases
    with without_huge_arrays(cases), pytest.raises(Endless):
        np.arange(np.exp(10))  # of which a mask has the square
    assert np.arange(4_000_000).size == 4_000_000


def test_few_numbers_beside_a_wrong_shape_name_no_mistake():
    """A row of random numbers for all rows leaves about the right share, but not nearly enough."""

    def dropout(x, p, rng):
        rng = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
        keep = rng.random(x.shape[-1]) >= p
        return np.where(keep, x / (1 - p), 0).astype(x.dtype), keep

    assert "probability" not in check("dropout", dropout, seed=1, quiet=True).message


@pytest.mark.long
def test_a_mistake_that_a_change_hides_is_not_named():
    """tanh makes −1 of every large number that may stand for −inf."""

    def answer(q, k, mask=None):
        scores = F.attention_scores(q, k, mask)
        return scores if mask is None else np.tanh(scores)

    assert "−inf" not in check("attention_scores", answer, seed=3, quiet=True).message


def test_a_simple_change_goes_before_a_pair_of_mistakes():
    pair = {"half": "It is halved, as one mistake.", "turned": "Its sign is turned."}

    def variant(made, x):
        return np.exp(x) * (0.5 if made("half") else 1) * (-2 if made("turned") else 1)

    def plain(x):
        return np.exp(x)

    exercise = Exercise(
        plain, (Result("y", "B T"),), lambda rng: [Case("", (rng.normal(size=(2, 3)),), {}, {"B": 2, "T": 3})],
        pair, variant, ("", "", ""), 1, "",
    )  # fmt: skip
    assert verdict(lambda x: -np.exp(x), exercise).misconception == "wrong sign"


def test_a_crash_is_explained_by_the_mistake_that_crashes_alike():
    found = verdict(lambda x, w, scale=1.0: (x @ w.T, x.sum((0, 1))))
    assert (found.outcome, found.misconception) == ("crashed", "weights transposed")


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
        found = verdict(answer, replace(EXERCISE, mistakes=mistakes, answer=right))
        assert found.misconception == name  # np.einsum has another text than matmul


def test_an_index_behind_the_axes_of_a_shape_is_a_fixed_number_of_axes():
    found = verdict(lambda x, w, scale=1.0: (np.zeros(x.shape[3]), x.sum((0, 1))))
    assert found.misconception == "a fixed number of axes"


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        (lambda x, w: x @ w - x.sum(-1) * np.ones((2, 1)), None),
        (lambda x, w: (x @ w)[..., :1] + np.zeros(x.shape[:-1]), "missing last axis"),
        (lambda x, w: math.log(-1 - np.abs(x).max()), "outside of the function's domain"),
    ],
)
def test_what_a_crash_tells_of_its_cause(broken, name):
    found = verdict(lambda x, w, scale=1.0: (broken(x, w), x.sum((0, 1))))
    assert (found.outcome, found.misconception) == ("crashed", name)


@pytest.mark.parametrize(("add", "how"), [(0, "right"), (1, "wrong")])
def test_the_results_that_are_none_are_told_and_what_the_others_are(add, how):
    found = flat(verdict(lambda x, w, scale=1.0: (None, x.sum((0, 1)) + add)))
    assert "but y is None." in found and f"Of the rest, total is {how}." in found


def test_a_result_in_the_place_of_another_shape_is_named():
    found = verdict(lambda x, w, scale=1.0: (x.sum((0, 1)), np.cos(x[0, 0])))
    assert "The array returned as y is total." in flat(found)


def test_a_crash_of_another_kind_is_not():
    found = verdict(lambda x, w, scale=1.0: undefined)  # noqa: F821
    assert (found.outcome, found.misconception) == ("crashed", "a name without a value")
    assert MISTAKES["weights transposed"] not in flat(found)


def test_shapes_in_a_crash_are_put_in_letters():
    trials = Trials(EXERCISE, 0)
    sizes = trials.cases[0].sizes
    found = verdict(lambda x, w, scale=1.0: np.zeros(sizes["T"]) + np.zeros((sizes["B"], sizes["D"])))
    assert f"({sizes['B']},{sizes['D']}) is (B, D)" in flat(found)
    assert f"x {trials.cases[0].arguments[0].shape}" in flat(found)


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (lambda x, w, scale=1.0: x[..., 0, 0, 0, 0, 0], "a fixed number of axes"),
        (lambda x, w, scale=1.0: x.sum(axis=-4), "a fixed number of axes"),
        (lambda x, w, scale=1.0: np.einsum("btdx,dk->btk", x, w), "a fixed number of axes"),
        (lambda x, w, scale=1.0: x if x else w, "an array as a condition"),
        (lambda x, w, scale=1.0: x[w], "floats as indices"),
        (lambda x, w, scale=1.0: nothing_at_all * x, "a name without a value"),  # noqa: F821
        (lambda x, w, scale=1.0: np.zeros((len(x) / 1, 2)), "a float as a size or index"),
        (lambda x, w, scale=1.0: x + x.T, "`.T` of more than two axes"),
        (lambda x, w, scale=1.0: [part for part in x[0, 0, 0]], "a fixed number of axes"),
        (lambda x, w, scale=1.0: x @ x @ w.T, None),  # no "weights transposed", which crashes at other sizes
        (lambda x, w, scale=1.0: [1][5], None),
    ],
)
def test_common_exceptions_get_a_name(answer, name):
    found = verdict(answer)
    assert (found.outcome, found.misconception) == ("crashed", name)


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (lambda x, w, scale=1.0: print(end=""), "nothing returned"),
        (lambda x, w, scale=1.0: scaled_sums(x, w, scale)[0], "returns too little"),
        (lambda x, w, scale=1.0: (*scaled_sums(x, w, scale), 1), "returns too much"),
        (lambda x, w, scale=1.0: (scaled_sums(x, w, scale)[0].tolist(), x[0, 0]), "a list instead of an array"),
        (lambda x, w, scale=1.0: (part for part in (x, w)), "a generator"),
        (lambda x, w, scale=1.0: (None, x.sum((0, 1))), "returns None for a result"),
        (with_total(y=lambda y: y + 0j), "complex numbers"),
    ],
)
def test_what_is_returned_in_the_wrong_form_is_named(answer, name):
    found = verdict(answer)
    assert (found.outcome, found.misconception) == ("wrong shape", name)


def test_a_tuple_of_one():
    found = check("softmax", lambda x, axis=-1: (F.softmax(x, axis),), seed=0, quiet=True)
    assert (found.outcome, found.misconception) == ("wrong shape", "returns a tuple of one")


# --- what is said of any wrong array ---------------------------------------------------------------------------------

SIZES = [{"B": 2, "T": 3, "K": 5}, {"B": 3, "T": 4, "K": 2}, {"B": 4, "T": 6, "K": 3}]


def draws(change, axes="B T K", make=None, sizes=SIZES, **more):
    """Three results, changed by change(right, sizes)."""
    rng = np.random.default_rng(0)
    made = []
    for letters in sizes:
        shape = tuple(letters[letter] for letter in axes.split())
        right = (make or (lambda rng, shape: rng.normal(size=shape)))(rng, shape)
        inputs = {name: value(rng, shape) for name, value in more.items()}
        made.append(Draw("y", axes, change(right, letters, **inputs), right, letters, inputs))
    return made


def truth(rng, shape):
    return rng.random(shape) < 0.4


def normal(rng, shape):
    return rng.normal(size=shape)


EXACT = {
    "wrong sign": lambda y, n: -y,
    "constant factor 1/B": lambda y, n: y / n["B"],
    "constant factor 1/(B·T)": lambda y, n: y / (n["B"] * n["T"]),
    "constant factor √K": lambda y, n: y * n["K"] ** 0.5,
    "constant factor −1/√K": lambda y, n: -y / n["K"] ** 0.5,
    "constant factor K": lambda y, n: y * n["K"],
    "constant factor 2": lambda y, n: 2 * y,
    "constant factor K/(K − 1)": lambda y, n: y * n["K"] / (n["K"] - 1),
    "constant factor 1.77": lambda y, n: 1.77 * y,
    "constant offset 1": lambda y, n: y + 1,
    "all zeros": lambda y, n: 0 * y,
    "NaN everywhere": lambda y, n: np.nan * y,
    "transposed": lambda y, n: y.transpose(0, 2, 1),
    "reversed along T": lambda y, n: y[:, ::-1],
    "rolled forward along T by one place": lambda y, n: np.roll(y, 1, 1),
    "shifted forward along T by one place": lambda y, n: np.concatenate([0 * y[:, :1], y[:, :-1]], 1),
    "shifted backward along T by one place": lambda y, n: np.concatenate([y[:, 1:], 0 * y[:, :1]], 1),
    "the first along B repeated": lambda y, n: y[:1] + 0 * y,
    "the absolute value of the right result": lambda y, n: abs(y),
    "the square of the right result": lambda y, n: y * y,
    "the exponential of the right result": lambda y, n: np.exp(y),
    "1 − the right result": lambda y, n: 1 - y,
    "truncated to integers": lambda y, n: np.trunc(y),
    "divided by the sum over K": lambda y, n: y / y.sum(-1, keepdims=True),
    "softmax over K of the right result": lambda y, n: F.softmax(y),
    "mean over K subtracted": lambda y, n: y - y.mean(-1, keepdims=True),
    "cumulative sum along T": lambda y, n: y.cumsum(1),
    "reshaped in the wrong order of axes": lambda y, n: y.swapaxes(1, 2).reshape(y.shape),
}


@pytest.mark.parametrize("name", EXACT)
def test_a_change_of_every_number_is_named(name):
    found = describe_exactly(draws(EXACT[name]))
    assert found.name == name
    assert re.search(r"\by\b", found.text)


def test_arbitrary_numbers_are_not_named():
    assert describe_exactly(draws(lambda y, n: np.sin(3 * y) + y)) is None


def test_a_finding_must_hold_in_every_draw():
    turn = iter([-1, -1, 1.5])
    assert describe_exactly(draws(lambda y, n: next(turn) * y)) is None
    assert describe_exactly(draws(lambda y, n: y / 2, sizes=[SIZES[0]] * 2)).name == "constant factor 1/2"


def test_one_single_number_proves_no_ratio():
    assert describe_exactly([Draw("loss", "", np.array(1.3), np.array(2.6), {"B": 2})]) is None
    two = [Draw("loss", "", np.array(c / b), np.array(c), {"B": b, "T": 7}) for b, c in ((3, 1.3), (5, 2.2), (4, 1.7))]
    assert describe_exactly(two).name == "constant factor 1/B"


def test_single_numbers_that_were_handed_in_name_a_factor():
    rng = np.random.default_rng(0)
    right = rng.normal(size=(3, 4))
    made = [Draw("y", "B T", right * (1 - p), right, {"B": 3, "T": 4}, numbers={"p": p}) for p in (0.17, 0.41)]
    assert describe_exactly(made).name == "constant factor 1 − p"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("returns x", lambda y, n, x: x),
        ("x added", lambda y, n, x: y + x),
        ("x not added", lambda y, n, x: y - x),
        ("x as an extra factor", lambda y, n, x: y * x),
        ("x missing as a factor", lambda y, n, x: y / x),
    ],
)
def test_an_input_in_the_result_is_named(name, change):
    assert describe_exactly(draws(change, x=normal)).name == name


def test_swapped_results_are_named():
    rng = np.random.default_rng(0)
    dq, dk = rng.normal(size=(2, 3, 4))
    others, returned = {"dq": dq, "dk": dk}, {"dq": dk, "dk": dq}
    swapped = Draw("dq", "T K", dk, dq, {}, others=others, returned=returned)
    assert describe_exactly([swapped]).name == "dq and dk swapped"
    twice = Draw("dq", "T K", dk, dq, {}, others=others, returned={"dq": dk, "dk": dk})
    assert describe_exactly([twice]).name == "dk instead of dq"


def test_permuted_heads_are_named():
    sizes = [{"H": 4, "T": 3}, {"H": 5, "T": 2}]
    found = describe_exactly(draws(lambda y, n: y[[1, 0, *range(2, n["H"])]], "H T", sizes=sizes))
    assert found.name == "heads permuted"
    assert "[1, 0, 2, 3]" in found.text


def test_right_rows_in_other_places_are_named():
    def made(rng, shape):
        y = rng.normal(size=shape)
        y[1] = y[4] = 0
        return y

    def packed(y, n):
        rows = y[y.any(1)]
        return np.concatenate([rows, np.zeros((len(y) - len(rows), n["D"]))])

    found = describe_exactly(draws(packed, "V D", make=made, sizes=[{"V": 6, "D": 3}, {"V": 6, "D": 2}]))
    assert found.name == "other places along V"
    assert "that of v = 2 is at 1, that of v = 3 is at 2 and that of v = 5 is at 3" in found.text


def test_numbers_that_a_view_has_made_are_not_described():
    rolled = draws(lambda y, n: np.roll(y, 1), "T", make=lambda rng, shape: rng.permutation(*shape))
    assert describe_exactly(rolled).name == "rolled forward along T by one place"
    ids = [replace(draw, of_view=True) for draw in rolled]
    assert (describe_exactly(ids), describe_roughly(ids).text) == (None, "")


@pytest.mark.parametrize("wrong", [lambda y: y + (np.arange(20) > 15), lambda y: y + 3e-4 * (np.arange(20) > 18)])
def test_an_example_shows_a_wrong_number(wrong):
    def long_rows(x, w):
        return x * w

    made = [Case("", (np.ones((3, 20)), np.arange(1.0, 21)))]
    exercise = Exercise(long_rows, (Result("y", "B K"),), lambda rng: made, {}, None, ("",), difficulty=1, section="§0")
    trials = Trials(exercise, 0)
    found = findings(trials, [attempt(exercise, lambda x, w: wrong(x * w), case) for case in trials.cases])
    _, expected, got = smallest_call(found).splitlines()
    assert expected.partition("must be ")[2] != got.partition("yours is ")[2]


SQUARE = [{"T": 4, "S": 4}, {"T": 5, "S": 5}, {"T": 6, "S": 6}]


def causal(rng, shape):
    return np.triu(np.ones(shape, bool), 1)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("inverted", lambda m, n: ~m),
        ("transposed", lambda m, n: m.T),
        ("off by one diagonal", lambda m, n: np.triu(np.ones(m.shape, bool))),
        ("off by one diagonal", lambda m, n: np.triu(np.ones(m.shape, bool), 2)),
        ("numbers instead of True and False", lambda m, n: m * 1),
        ("numbers instead of True and False", lambda m, n: m * 1.0),
        ("an additive mask", lambda m, n: np.where(m, -np.inf, 0)),
        ("an additive mask", lambda m, n: np.where(m, -1e9, 0)),
        ("False everywhere", lambda m, n: m & False),
    ],
)
def test_wrong_masks_are_named(name, change):
    assert describe_exactly(draws(change, "T S", causal, SQUARE)).name == name


def test_the_identity_too_much_is_named():
    assert describe_exactly(draws(lambda y, n: y + np.eye(len(y)), "T S", sizes=SQUARE)).name == "plus the identity"


def test_a_large_number_for_infinity_is_named():
    def additive(rng, shape):
        return np.where(rng.random(shape) < 0.5, -np.inf, 0)

    made = draws(lambda y, n: np.maximum(y, -1e9), make=additive)
    assert describe_exactly(made).name == "a large number instead of infinity"
    assert describe_exactly(draws(lambda y, n: np.isneginf(y), make=additive)).name == (
        "True and False instead of numbers"
    )


# of the wrong shape


@pytest.mark.parametrize(
    ("name", "change", "axes"),
    [
        ("transposed", lambda y, n: y.transpose(0, 2, 1), "B T K"),
        ("extra axis of length 1", lambda y, n: y[..., None], "B T K"),
        ("extra axis of length 1", lambda y, n: y.sum((), keepdims=True)[None], "K"),
        ("not summed over B and T", lambda y, n: _parts(y, (n["B"], n["T"])), "K"),
        ("not summed over B", lambda y, n: _parts(y, (n["B"],)), "T K"),
        ("not averaged over B", lambda y, n: _parts(y, (n["B"],)) * n["B"], "T K"),
        ("summed over B and T", lambda y, n: y.sum((0, 1)), "B T K"),
        ("averaged over K", lambda y, n: y.mean(-1), "B T K"),
        ("summed over T", lambda y, n: y.sum(1, keepdims=True), "B T K"),
        ("not reshaped", lambda y, n: y.reshape(-1, n["K"]), "B T K"),
        ("without the last along T", lambda y, n: y[:, :-1], "B T K"),
        ("without the first along T", lambda y, n: y[:, 1:], "B T K"),
        ("repeated along an axis", lambda y, n: np.repeat(y[None], n["B"], 0), "T K"),
        ("only the last along T", lambda y, n: y[:, -1], "B T K"),
        ("axes in the wrong order, and reshaped", lambda y, n: y.swapaxes(0, 1).reshape(-1, n["K"]), "B T K"),
    ],
)
def test_wrong_shapes_are_named(name, change, axes):
    assert describe_exactly(draws(change, axes)).name == name


def _parts(y, lead):
    """Random parts that add up to y."""
    parts = np.random.default_rng(1).normal(size=(*lead, *y.shape))
    axes = tuple(range(len(lead)))
    return parts - (parts.sum(axes) - y) / np.prod(lead)


def test_an_axis_of_length_1_too_few_is_named():
    sizes = [{"B": 2, "T": 3}, {"B": 4, "T": 2}]
    made = draws(lambda y, n: y[..., 0], make=lambda rng, shape: rng.normal(size=(*shape, 1)), axes="B T", sizes=sizes)
    assert describe_exactly(made).name == "missing axis of length 1"


def test_a_wrong_shape_with_wrong_numbers_is_described_by_its_letters():
    made = draws(lambda y, n: np.sin(3 * y).transpose(0, 2, 1))
    assert describe_exactly(made) is None
    found = describe_roughly(made)
    assert found.name == "axes T and K in the wrong order"
    assert "(B, K, T)" in found.text
    found = describe_roughly(draws(lambda y, n: np.ones((n["B"], *y.shape)), "T K"))
    assert found.name == "extra axis B"
    found = describe_roughly(draws(lambda y, n: np.sin(y[:, 0])))
    assert found.name == "missing axis T"
    found = describe_roughly(draws(lambda y, n: np.ones((n["B"], n["K"], n["K"]))))
    assert found.text == "`y` has the shape (B, K, K), not (B, T, K)."


# in part only


def _damaged(y, where):
    return np.where(where, np.sin(7 * y) + 3, y)


def _at(y, axis, chosen):
    where = np.zeros(y.shape, bool)
    np.moveaxis(where, axis, 0)[chosen] = True
    return where


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("only the first along T is wrong", lambda y, n: _damaged(y, _at(y, 1, [0]))),
        ("only the last along T is wrong", lambda y, n: _damaged(y, _at(y, 1, [-1]))),
        ("only the first along T is right", lambda y, n: _damaged(y, _at(y, 1, slice(1, None)))),
        ("not 0 where it must be", lambda y, n: np.where(y == 0, 0.5, y)),
        ("nearly right", lambda y, n: y.astype(np.float16)),
        ("NaN in some places", lambda y, n: np.where(y == y.max(), np.nan, y)),
    ],
)
def test_what_is_wrong_in_part_is_named(name, change):
    def some_zeros(rng, shape):
        return rng.normal(size=shape) * (rng.random(shape) < 0.8)

    made = draws(change, make=some_zeros)
    assert describe_exactly(made) is None
    assert describe_roughly(made).name == name


def test_only_hidden_places_wrong_is_named():
    found = describe_roughly(draws(lambda y, n, mask: _damaged(y, mask), mask=truth))
    assert found.name == "wrong only where mask is True"


def test_only_places_of_a_sign_wrong_is_named():
    found = describe_roughly(draws(lambda y, n, x: _damaged(y, x < 0), x=normal))
    assert found.name == "wrong only where x is below 0"


def test_rows_that_are_hidden_whole_are_named():
    def mask(rng, shape):
        hidden = rng.random(shape) < 0.3
        hidden[0, 0], hidden[1, 0] = True, False
        return hidden

    found = describe_roughly(draws(lambda y, n, mask: np.where(mask.all(-1)[..., None], np.nan, y), mask=mask))
    assert found.name == "NaN in fully hidden rows"


def test_repeated_ids_are_named():
    rng = np.random.default_rng(0)
    right, ids = rng.normal(size=(6, 3)), np.array([[0, 2, 2], [5, 4, 4]])
    wrong_rows = _damaged(right, _at(right, 0, [2, 4]))
    assert describe_roughly([Draw("y", "V D", wrong_rows, right, {}, {"ids": ids})]).name == "wrong for repeated ids"
    absent = _damaged(right, _at(right, 0, [1, 3]))
    assert describe_roughly([Draw("y", "V D", absent, right, {}, {"ids": ids})]).name == "wrong for absent ids"


def test_the_upper_triangle_is_named():
    found = describe_roughly(draws(lambda y, n: _damaged(y, causal(None, y.shape)), "T S", sizes=SQUARE))
    assert found.name == "wrong above the diagonal only"


def test_the_worst_place_is_given_in_letters():
    right = np.arange(24.0).reshape(2, 3, 4)
    actual = np.sin(right)
    actual[1, 0, 2] = 99
    found = describe_roughly([Draw("y", "B T K", actual, right, {"B": 2, "T": 3, "K": 4})])
    assert found.name is None
    assert "b = 1, t = 0, k = 2: expected 14, got 99" in found.text
    assert "23 of 24 entries are wrong" in found.text


@pytest.mark.parametrize("seed", range(5))
def test_findings_of_a_whole_answer(seed):
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
    assert len(found.message.splitlines()) > 1
    assert verdict(with_total(total=strange)).outcome in ("wrong shape", "wrong gradient")
