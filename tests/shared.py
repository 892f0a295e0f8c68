"""What tests in several folders import."""

import os
import re

import pytest


def stderr_until(process, pattern):
    """What a process says on stderr until the pattern is in it; for ever if it says something else."""
    said = b""
    while not re.search(pattern, said):
        assert process.poll() is None, said
        said += os.read(process.stderr.fileno(), 1000)
    return said


def few_of(cases, few):
    """The cases of a test as parameters; all but a few are long."""
    return [pytest.param(*case, marks=() if case in few else pytest.mark.long) for case in cases]


A_STEP_IS_DONE = rb" [1-9]\d*/\d+ \["  # on the bar of a training run
