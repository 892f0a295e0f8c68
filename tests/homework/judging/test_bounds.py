"""A verdict depends on the answer and the seed alone, and costs a bounded amount of work."""

import sys
import time
import tracemalloc
from itertools import count

import numpy as np
import pytest

from transformer_np.homework import all_exercises, submission
from transformer_np.homework.judging import cover
from transformer_np.homework.judging.attempt import attempt
from transformer_np.homework.judging.cover import Cells
from transformer_np.homework.judging.describe import Draw, numbers, shapes
from transformer_np.homework.judging.finding import findings
from transformer_np.homework.judging.judge import judge
from transformer_np.homework.judging.trials import Trials

PAIRS = {
    "layer_norm_backward": ("dgamma of x − μ", "mean(dx̂) missing"),
    "feed_forward_backward": ("mask from the gradient", "the mask for hidden in dw2"),
    "gated_feed_forward": ("gate after the activation", "W₁ᵀ for W₂"),
}


def judged(name, answer, trials=None):
    exercise = all_exercises()[name]
    trials = trials or Trials(exercise, 0)
    return judge(trials, findings(trials, [attempt(exercise, answer, case) for case in trials.cases]))


def test_a_crash_has_its_advice_without_time_for_a_mistake():
    trials = Trials(all_exercises()["linear_backward"], 0)

    def answer(dy, x, w):
        return dy @ w.T, x.T @ dy, dy.sum(axis=tuple(range(dy.ndim - 1)))

    found = findings(trials, [attempt(trials.exercise, answer, case) for case in trials.cases])
    assert "`.T` reverses all axes" in judge(trials, found, is_brief=True).message


@pytest.fixture
def jumping_clock(monkeypatch):
    """Every clock jumps by an hour at each look, also where a module of the judging has imported it by name."""
    ticks, clocks = count(step=3600.0), {}
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time"):
        clocks[id(getattr(time, name))] = name
        monkeypatch.setattr(time, name, lambda: next(ticks))
    for module in [module for name, module in sys.modules.items() if name.startswith("transformer_np.homework.")]:
        for name, value in list(vars(module).items()):
            if id(value) in clocks:
                monkeypatch.setattr(module, name, lambda: next(ticks))


@pytest.fixture
def told():
    """The verdicts over answers with two mistakes, as the clock runs."""
    return {name: judged(name, all_exercises()[name].variant(pair)) for name, pair in PAIRS.items()}


@pytest.mark.long
def test_a_jumping_clock_changes_nothing(told, jumping_clock):
    for name, pair in PAIRS.items():
        assert judged(name, all_exercises()[name].variant(pair)) == told[name]
        assert set(told[name].misconception.split(" and ")) == set(" and ".join(pair).split(" and "))


@pytest.mark.long
def test_answers_judged_before_change_nothing(told):
    for name, pair in PAIRS.items():
        exercise = all_exercises()[name]
        trials, left = Trials(exercise, 0), set()
        for mistake in list(exercise.mistakes)[:4]:
            judged(name, exercise.variant({mistake}), trials)
        for of in (trials, trials, Trials(exercise, 0)):
            assert judged(name, exercise.variant(pair), of) == told[name]
            left.add(of.left)
        assert len(left) == 1 and Trials.WORK not in left


@pytest.mark.long
def test_the_search_ends_after_so_many_trials(monkeypatch):
    monkeypatch.setattr(Trials, "most", lambda trials: 50)
    exercise = all_exercises()["scaled_dot_product_attention_backward"]
    trials, rng = Trials(exercise, 0), np.random.default_rng(0)

    def unknown(*args, **options):
        return [rng.normal(size=result.shape) for result in exercise.reference(*args, **options)]

    attempts = [attempt(exercise, unknown, case) for case in trials.cases]
    all_found = findings(trials, attempts)
    cells = Cells(trials, [finding for finding in all_found if not finding.case.raises])
    found = cover.Cover(cells)
    assert not found.picked
    alone = len(cells.mistakes) * len({case.label for case in trials.cases})  # one draw of each case
    assert len(cells.tried) <= alone + 50 + Trials.DRAWS
    assert judge(trials, all_found).misconception is None


def test_a_mistake_that_changes_a_right_result_is_tried_in_the_first_failing_case_alone():
    exercise = all_exercises()["layer_norm_backward"]
    trials, answer = Trials(exercise, 0), exercise.variant({"dgamma of x − μ"})
    cells = Cells(trials, findings(trials, [attempt(exercise, answer, case) for case in trials.cases]))
    cover.Cover(cells)
    wrong, others = {*cells.first_failed.wrong}, {number for _, number in cells.tried} - {0}
    of_right = {some for some, number in cells.tried if not number and cells.changed(some, 0) - wrong}
    assert others and of_right
    assert not {some for some, number in cells.tried if number} & of_right


def test_an_answer_beside_a_right_one_is_judged_once(tmp_path, monkeypatch):
    file, judged = tmp_path / "homework.py", []
    file.write_text("""import numpy as np
def relu(x):
    return np.maximum(x, 0)

def feed_forward(x, w1, b1, w2, b2):
    hidden = relu(x @ w1)
    return hidden @ w2 + b2, hidden
""")
    verdict_on = submission.verdict_on
    monkeypatch.setattr(submission, "verdict_on", lambda one, *rest: judged.append(one.name) or verdict_on(one, *rest))
    assert not submission.Checks(submission.load(file), seed=0).of("feed_forward").passed
    assert judged == ["feed_forward", "relu"]


def test_an_order_is_looked_for_among_the_same_numbers_alone(monkeypatch):
    rng, compared, close = np.random.default_rng(0), [], numbers.close
    monkeypatch.setattr(numbers, "close", lambda *pair: compared.append(pair) or close(*pair))
    draw = Draw("db", "F", rng.normal(size=50), rng.normal(size=50), {})
    assert all(len(found) == 3 for found in numbers.other_order_along_an_axis(draw))  # nothing that is known to hold
    assert len(compared) < 50


# --- results of any shape --------------------------------------------------------------------------------------------


@pytest.fixture
def few_comparisons(monkeypatch):
    left, same, subsets = count(5000, -1), shapes.same, shapes.subsets

    def counted(*args):
        assert next(left), "the description of a shape takes more and more comparisons"
        return same(*args)

    def of_few_axes(array):
        assert array.ndim < 10, "every axis more doubles the sets of axes"
        return subsets(array)

    monkeypatch.setattr(shapes, "same", counted)
    monkeypatch.setattr(shapes, "subsets", of_few_axes)


@pytest.mark.usefixtures("few_comparisons")
@pytest.mark.parametrize("axes", [19, 32])
@pytest.mark.parametrize("size", [1, 2])
def test_a_result_of_many_axes(axes, size):
    verdict = judged("softmax", lambda x, axis=-1: np.broadcast_to(0.5, (size,) * axes))
    assert verdict.outcome == "wrong shape"
    assert f"got {(size,) * axes}." in " ".join(verdict.message.split())


@pytest.mark.usefixtures("few_comparisons")
def test_many_extra_axes_are_not_searched():
    verdict = judged("softmax", lambda x, axis=-1: np.ones((1,) * 16 + x.shape))
    assert verdict.outcome == "wrong shape" and "must have the shape" in verdict.message


@pytest.mark.long
@pytest.mark.usefixtures("few_comparisons")
@pytest.mark.parametrize("shape", [(10**8,), (100, 1000, 1000), (10, 100, 1000, 100), (10**8, 1, 1)])
def test_a_result_of_many_entries_in_little_memory(shape):
    tracemalloc.start()
    try:
        verdict = judged("softmax", lambda x, axis=-1: np.broadcast_to(x.flat[0], shape))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert verdict.outcome == "wrong shape"
    assert most < 50e6


def test_a_repeat_is_compared_as_what_it_is():
    """np.broadcast_to is a right way to write equal rows, and the memory behind them may change afterwards."""
    kept = np.zeros(1)

    def answer(x, axis=-1):
        kept[:] = 1 / x.shape[axis]
        return np.broadcast_to(kept, x.shape)

    exercise = all_exercises()["softmax"]
    case = Trials(exercise, 0).cases[0]
    first = attempt(exercise, answer, case).output
    kept[:] = 7
    assert np.array_equal(first, np.full(first.shape, 1 / first.shape[-1]))


@pytest.mark.parametrize("depth", [60, 200])
def test_lists_that_hold_the_same_list_twice(depth):
    """`ids.append(ids_of_word)` in a loop: 2^depth numbers if they were counted out."""

    def answer(ids, merges):
        for _ in range(depth):
            ids = [ids, ids]
        return ids

    assert judged("apply_merges", answer).outcome == "wrong shape"
