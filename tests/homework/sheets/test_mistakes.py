"""The exercises: complete, in order, and every mistake recognised as itself."""

import inspect

import numpy as np
import pytest

from transformer_np import functional, masks
from transformer_np.homework import all_exercises, check
from transformer_np.homework.judging.judge import Trials
from transformer_np.homework.path import chapters

EXERCISES = all_exercises()
MISTAKES = [(name, mistake) for name, exercise in EXERCISES.items() for mistake in exercise.mistakes]


def test_every_function_is_an_exercise():
    own = {name for name, f in vars(masks).items() if inspect.isfunction(f) and f.__module__ == masks.__name__}
    of_masks = {name for name in own if not name.startswith("_")} - {"hide"}
    assert set(functional.__all__) | of_masks <= set(EXERCISES)
    assert {"AddNorm", "EncoderBlock", "DecoderBlock", "Adam", "greedy_decode", "beam_search"} <= set(EXERCISES)


def test_every_exercise_has_its_place_in_a_chapter():
    notebooks = [notebook for _, notebook, _ in chapters(EXERCISES.values())]
    assert all(notebook.isdigit() for notebook in notebooks)
    assert notebooks[0] == "01"
    places = [(exercise.chapter, exercise.place) for exercise in EXERCISES.values()]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("name", EXERCISES)
def test_a_right_answer_of_other_code_passes(name):
    for seed in range(3):
        verdict = check(name, EXERCISES[name].variant(), seed=seed, quiet=True)
        assert verdict.passed, verdict.message


@pytest.mark.parametrize(("name", "mistake"), MISTAKES, ids=[f"{name}: {mistake}" for name, mistake in MISTAKES])
def test_a_mistake_is_told_by_its_own_hint_and_no_other(name, mistake):
    exercise = EXERCISES[name]
    verdict = check(name, exercise.variant({mistake}), seed=0, quiet=True)
    assert verdict.misconception == mistake, verdict.message
    assert verdict.outcome in ("wrong value", "wrong gradient", "wrong shape", "crashed")
    words = verdict.message.replace("\n", " ")
    assert " ".join(exercise.mistakes[mistake].split()) in " ".join(words.split())
    others = [text for other, text in exercise.mistakes.items() if other != mistake]
    assert not any(" ".join(text.split()) in " ".join(words.split()) for text in others)


@pytest.mark.parametrize("name", EXERCISES)
def test_an_exercise_says_what_it_is(name):
    exercise = EXERCISES[name]
    assert exercise.difficulty in (1, 2, 3)
    assert exercise.section
    assert len(exercise.hints) == 3
    assert exercise.hints[0].endswith("?")
    assert all(text.endswith((".", "…", ".)")) and len(text) > 20 for text in exercise.mistakes.values())
    assert len(exercise.mistakes) >= 2


@pytest.mark.parametrize("name", EXERCISES)
def test_every_rewrite_finds_its_place(name):
    assert EXERCISES[name].problems() == []


@pytest.mark.parametrize("name", EXERCISES)
def test_inputs_are_drawn_afresh(name):
    first, second = (Trials(EXERCISES[name], seed) for seed in (0, 1))
    assert first.cases[0].label == ""
    assert not _equal(first.expected[0], second.expected[0]) or not _equal(first.expected[-1], second.expected[-1])
    assert all(map(_equal, first.expected, Trials(EXERCISES[name], 0).expected))


def _equal(a, b):
    return all(np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in zip(a, b, strict=True))
