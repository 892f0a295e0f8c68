"""Every function of the library as an answer to its own exercise, judged by the readable right answer of the sheet: a
broken function gets the diagnosis that a student would get. Other tests ask for what the exercise leaves out."""

from dataclasses import replace

import pytest

from transformer_np.homework import all_exercises
from transformer_np.homework.judging import compare
from transformer_np.homework.judging.attempt import attempt
from transformer_np.homework.judging.finding import findings
from transformer_np.homework.judging.judge import judge
from transformer_np.homework.judging.trials import Trials

EXERCISES = all_exercises()


@pytest.mark.parametrize("name", EXERCISES)
def test_the_library_is_right(name, monkeypatch):
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
