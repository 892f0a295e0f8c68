"""Every exercise, answered by the student with `--submission FILE`, by the library itself without."""

import pytest

from transformer_np.homework import all_exercises, check, load
from transformer_np.homework.submission import Checks, LoadError

EXERCISES = all_exercises()


@pytest.fixture(scope="module")
def checks(request):
    """Of the student's answers; None where there is no submission."""
    path = request.config.getoption("submission")
    try:
        return Checks(load(path)) if path else None
    except (OSError, ValueError, LoadError) as error:
        return error


@pytest.mark.parametrize("name", EXERCISES)
def test_answer(checks, name):
    if isinstance(checks, Exception):
        pytest.fail(str(checks), pytrace=False)
    verdict = checks.of(name).verdict if checks else check(name, EXERCISES[name].reference, quiet=True)
    if not verdict.passed:
        seed = "" if verdict.outcome == "not started" else f"\nThe same inputs again: seed={verdict.seed}"
        pytest.fail(verdict.message + seed, pytrace=False)
