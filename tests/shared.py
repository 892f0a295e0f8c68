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


def randomize(module, rng, scale=1.0):
    """Give every parameter random values of order 1, because γ = 1 and b = 0 hide mistakes. A matrix about keeps the
    size of what it multiplies (times `scale`), so that no softmax saturates and no gradient dies out."""
    for name, parameter in module.named_parameters():
        values = rng.normal(size=parameter.shape)
        if name.endswith("gamma"):
            parameter.data = rng.uniform(0.5, 2, size=parameter.shape)
        elif values.ndim == 1:
            parameter.data = 0.5 * values
        else:
            parameter.data = scale * values / values.shape[name.endswith("table")] ** 0.5
    return module
