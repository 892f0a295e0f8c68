"""Checking one answer, in this process."""

import numpy as np

from .judging.attempt import attempt, guarded_numpy
from .judging.judge import Trials, judge
from .path import find
from .swap import refuse_inside_using


def check(name, answer, *, seed=None, quiet=False):
    """Check an answer to an exercise, print the verdict and return it.

        check("softmax_backward", my_softmax_backward)

    name: of the exercise, which is the name of the library's function or class
    answer: a function or class with the same signature
    seed: of the inputs; None draws new inputs every time
    quiet: print nothing

    ->  a Verdict: .passed, .outcome, .misconception, .message. Raises ValueError for an unknown name, TypeError for an
    answer that is not callable, RuntimeError inside `using`.
    """
    exercise = find(name)
    refuse_inside_using("check")
    if not callable(answer):
        raise TypeError(f"the answer to {exercise.name} must be a function or a class, got {type(answer).__name__}")
    trials = Trials(exercise, np.random.SeedSequence().entropy % 2**32 if seed is None else seed)
    _ = trials.expected  # before the answer runs: it may change what the reference uses
    with guarded_numpy():
        attempts = [attempt(exercise, answer, case) for case in trials.cases]
    verdict = judge(trials, attempts)
    if not quiet:
        print(verdict.message)
    return verdict
