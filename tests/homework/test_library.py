"""Every function of the library as an answer to its own exercise, judged by the readable right answer of the sheet: a
broken function gets the diagnosis that a student would get."""

from dataclasses import replace

import pytest

from transformer_np.homework import all_exercises
from transformer_np.homework.judging.attempt import attempt
from transformer_np.homework.judging.finding import findings
from transformer_np.homework.judging.judge import judge
from transformer_np.homework.judging.trials import Trials

EXERCISES = all_exercises()


def verdict_on_library(name, answer=None):
    exercise = EXERCISES[name]
    plain = exercise.variant()
    plain.__doc__ = exercise.reference.__doc__
    trials = Trials(replace(exercise, reference=plain), seed=0)
    attempts = [attempt(exercise, answer or exercise.reference, case) for case in trials.cases]
    attempts = [replace(tried, shares=None) for tried in attempts]  # the library may copy or not
    return judge(trials, findings(trials, attempts))


@pytest.mark.parametrize("name", EXERCISES)
def test_the_library_is_right(name):
    verdict = verdict_on_library(name)
    if not verdict.passed:
        pytest.fail(verdict.message, pytrace=False)


def test_a_broken_function_gets_the_students_diagnosis():
    verdict = verdict_on_library("softmax_backward", lambda dy, y, axis=-1: dy * y * (1 - y))
    assert "the diagonal of the Jacobian alone" in " ".join(verdict.message.split())
