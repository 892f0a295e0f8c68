"""The exercises: complete, in order, and every mistake recognised as itself.

Some 2,000 mistakes are tried before a release. Of these the long run tries one in 32 and the default run one in 100,
chosen by a hash of the names.
"""

import inspect
from functools import lru_cache
from zlib import crc32

import pytest

from transformer_np import functional, masks
from transformer_np.grading.verify import STEPS, problems
from transformer_np.homework import all_exercises, check
from transformer_np.homework.guard import guarded
from transformer_np.homework.judging.attempt import attempt
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
            marks = () if number % ONE_IN == 0 else pytest.mark.long if number % 32 == 0 else pytest.mark.release
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


@pytest.mark.long  # tests/homework/test_library.py compares the two the other way round
@pytest.mark.parametrize("name", EXERCISES)
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
    assert all(text.endswith((".", "…", ".)")) and len(text) > 20 for text in exercise.mistakes.values())
    assert len(exercise.mistakes) >= 2 and exercise.mistakes.problems() == []
