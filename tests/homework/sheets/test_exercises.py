"""The exercises: complete, in order, the library right, and every mistake recognised as itself.

Some 2,000 mistakes are tried before a release. Of these the long run tries one in 32 and the default run one in 100,
chosen by a hash of the names.
"""

import inspect
from dataclasses import replace
from functools import lru_cache
from zlib import crc32

import numpy as np
import pytest

from transformer_np import functional, masks
from transformer_np.grading.verify import STEPS, problems
from transformer_np.homework import all_exercises, check
from transformer_np.homework.guard import guarded
from transformer_np.homework.judging import compare
from transformer_np.homework.judging.attempt import argument_names, attempt
from transformer_np.homework.judging.finding import findings
from transformer_np.homework.judging.judge import judge
from transformer_np.homework.judging.trials import Trials
from transformer_np.homework.path import chapters

EXERCISES = all_exercises()
ONE_IN = 100  # in the default run


def mistakes():
    """(exercise, mistake) of all."""
    for name, exercise in EXERCISES.items():
        for mistake in exercise.mistakes:
            label = f"{name}: {mistake}"
            number = crc32(label.encode())
            marks = () if number % ONE_IN == 0 else pytest.mark.long if number % 64 == 0 else pytest.mark.release
            yield pytest.param(name, mistake, id=label, marks=marks)


@lru_cache(maxsize=8)
def trials_of(name):
    """The trials of an exercise, drawn once for all its mistakes, as grading draws them once for all submissions."""
    return Trials(EXERCISES[name], seed=0)


def verdict_of(name, answer):
    trials = trials_of(name)
    with guarded():
        attempts = [attempt(trials.exercise, answer, case) for case in trials.cases]
    return judge(trials, findings(trials, attempts))


WITHOUT_AN_EXERCISE = {"alibi_bias", "relative_scores", "unscaled_scores", "window_scores"}


def test_every_function_but_these_is_an_exercise():
    own = {name for name, f in vars(masks).items() if inspect.isfunction(f) and f.__module__ == masks.__name__}
    of_masks = {name for name in own if not name.startswith("_")} - {"hide"}
    assert (set(functional.__all__) | of_masks) - set(EXERCISES) == WITHOUT_AN_EXERCISE
    assert {"AddNorm", "EncoderBlock", "DecoderBlock", "Adam", "greedy_decode", "beam_search"} <= set(EXERCISES)


def test_every_exercise_has_its_place_in_a_chapter():
    notebooks = [notebook for _, notebook, _ in chapters(EXERCISES.values())]
    assert notebooks == sorted(notebooks)  # the path never goes back
    assert (notebooks[0], notebooks[-1]) == ("01", "18")
    places = [(exercise.chapter, exercise.place) for exercise in EXERCISES.values()]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("name", EXERCISES)
def test_the_library_is_right(name, monkeypatch):
    """As an answer to its own exercise, judged by the readable right answer of the sheet: a broken function gets the
    diagnosis that a student would get. Other tests ask for what the exercise leaves out."""
    monkeypatch.setattr(compare, "TOLERANCE", 1e-10)  # an answer may be less exact
    exercise = EXERCISES[name]
    plain = exercise.variant()
    plain.__doc__ = exercise.reference.__doc__
    trials = Trials(replace(exercise, reference=plain), seed=0)
    attempts = [attempt(exercise, exercise.reference, case) for case in trials.cases]
    attempts = [replace(tried, shares=None) for tried in attempts]  # the library may copy or not
    verdict = judge(trials, findings(trials, attempts))
    if not verdict.passed:
        pytest.fail(verdict.message, pytrace=False)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.long if i % 5 == 3 else pytest.mark.release) for i, n in enumerate(EXERCISES)],
)  # the answers and the library are compared above
def test_the_librarys_exercises_are_what_verify_asks_of_a_teachers(name):
    assert problems(EXERCISES[name], seconds=60, steps=STEPS[:-1]) == []  # the mistakes are tried below


@pytest.mark.parametrize(("name", "mistake"), list(mistakes()))
def test_a_mistake_is_told_by_its_own_hint_and_no_other(name, mistake):
    exercise = EXERCISES[name]
    verdict = verdict_of(name, exercise.variant({mistake}))
    assert verdict.misconception == mistake, verdict.message
    assert verdict.outcome in ("wrong value", "wrong gradient", "wrong shape", "crashed")
    words = verdict.message.replace("\n", " ")
    assert " ".join(exercise.mistakes[mistake].split()) in " ".join(words.split())
    others = [text for other, text in exercise.mistakes.items() if other != mistake]
    assert not any(" ".join(text.split()) in " ".join(words.split()) for text in others)


@pytest.mark.parametrize("name", ["softmax_backward", "cross_entropy", "sinusoidal_encoding"])
def test_a_check_of_its_own_says_the_same(name):
    """Whatever other answers to the same exercise were tried before."""
    for mistake in list(EXERCISES[name].mistakes)[:3]:
        answer = EXERCISES[name].variant({mistake})
        assert check(name, answer, seed=0, quiet=True) == verdict_of(name, answer)


@pytest.mark.parametrize("name", EXERCISES)
def test_an_exercise_says_what_it_is(name):
    exercise = EXERCISES[name]
    assert exercise.section and exercise.hints[0].endswith("?")
    assert exercise.hints[1] not in [" ".join(line.split()) for line in exercise.reference.__doc__.splitlines()]
    assert all(text.endswith((".", "…", ".)")) and len(text) > 20 for text in exercise.mistakes.values())
    assert len(exercise.mistakes) >= 2 and exercise.mistakes.problems() == []


# --- hints ------------------------------------------------------------------------------------------------------------

FRAGMENTS = {  # of code in the last hint, {exercise: (code, what its names stand for besides the arguments)}
    "rotary": ("np.multiply.outer(positions, frequencies)", {"frequencies": np.ones(3)}),
    "sinusoidal_encoding": ("np.arange(0, d_model, 2)", {}),
    "rotary_frequencies": ("np.arange(0, K, 2)", {}),
    "scaled_dot_product_attention_backward": ("np.swapaxes(x, -1, -2)", {"x": np.ones((2, 3, 4))}),
    "text_windows": ("rng.integers(high, size=B)", {"high": 5, "rng": np.random.default_rng(0), "B": 2}),
}


@pytest.mark.parametrize("name", FRAGMENTS)
def test_a_fragment_runs_on_every_case(name):
    exercise, (code, names) = EXERCISES[name], FRAGMENTS[name]
    assert code in exercise.hints[2]
    for case in exercise.cases(np.random.default_rng(0)):
        given = dict(zip(argument_names(exercise), case.arguments, strict=False)) | case.options | names
        if not case.raises:
            assert isinstance(eval(code, {"np": np}, given), np.ndarray)


def test_what_the_papers_say_otherwise():
    assert "section 4, where p is the probability of keeping" in EXERCISES["dropout"].hints[2]
    assert "beside n finished ones" in EXERCISES["beam_search"].hints[1]
