"""What holds of every verdict: files with one listed mistake each, as a student would write them."""

import sys
from difflib import SequenceMatcher
from pathlib import Path
from textwrap import dedent, indent

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from in_a_tab import as_file
from wrong_answers import shown_in

from transformer_np.homework import all_exercises

PARTS, LONG = 8, 7  # of the exercises, and the one in the long run: it has a repair of two lines


def changed_lines(right, wrong):
    """The numbers of the lines of the second text that differ from the first, below `import numpy as np`."""
    steps = SequenceMatcher(None, right.splitlines(), wrong.splitlines(), autojunk=False).get_opcodes()
    return {
        line + 2 for kind, _, _, first, end in steps if kind != "equal" for line in range(first, max(end, first + 1))
    }


@pytest.mark.parametrize(
    "part", [pytest.param(n, marks=pytest.mark.long if n == LONG else pytest.mark.release) for n in range(PARTS)]
)
def test_what_is_said_of_a_listed_mistake_holds(verdict_on, part):
    exercises = list(all_exercises().values())[part::PARTS]
    found = 0
    for exercise in exercises:
        right, wrong = (as_file(exercise, of) for of in ((), [next(iter(exercise.mistakes))]))
        verdict = verdict_on(wrong, exercise.name)
        lines = [line for line, _ in shown_in(verdict.message)]
        assert not verdict.passed
        assert len({*lines}) == len(lines), verdict.message
        assert {*lines} <= {line.strip() for line in wrong.splitlines()}
        found += verdict.line in changed_lines(right, wrong)
        if verdict.repair:
            repaired = wrong.splitlines()
            old = repaired[verdict.line - 2]
            repaired[verdict.line - 2] = indent(dedent(verdict.repair), old[: len(old) - len(old.lstrip())])
            again = verdict_on("\n".join(repaired), exercise.name)
            assert again.passed or (again.core and "for the lecture" in verdict.message), verdict.message
    assert found > len(exercises) / 2  # of all, four in five
