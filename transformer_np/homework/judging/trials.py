"""The cases of an exercise with the right results and those of wrong variants, and the work that a verdict may take."""

from dataclasses import replace
from functools import cached_property

import numpy as np

from .attempt import Attempt, attempt, work_of
from .compare import results_and_problem
from .crash import crash_of
from .hypothesis import ignored_arguments

SHARE = 3  # so much of the work of a verdict is done by one search
FEWEST = 40  # trials of a search, however long they take


class Trials:
    """The cases of an exercise, drawn from a seed, with the results of the reference and of the wrong variants.

    left: the work that may still be done for a verdict, by all searches together, in units of `work_of`; an answer that
    was judged before changes nothing: what it made known is paid for again
    """

    DRAWS = 3  # of every case, with different sizes and numbers
    WORK, OF_A_VARIANT = 9_000_000, 5_000

    def __init__(self, exercise, seed):
        self.exercise, self.seed = exercise, seed
        self._of_variant = {}
        self.begin()
        self.cases = [
            case for child in np.random.SeedSequence(seed).spawn(self.DRAWS)
            for case in exercise.cases(np.random.default_rng(child))
        ]  # fmt: skip
        self.cases += _with_other_numbers(self.cases[0])
        self.cases.sort(key=lambda case: bool(case.raises))  # at the end: they have no results to explain

    @cached_property
    def expected(self):
        """The right results of every case."""
        return [self.results(case, tried) for case, tried in zip(self.cases, self._of_reference, strict=True)]

    @cached_property
    def shares(self):
        """Whether the reference's results share memory with an argument, for every case."""
        return [tried.shares for tried in self._of_reference]

    @cached_property
    def _of_reference(self):
        return [attempt(self.exercise, self.exercise.reference, case) for case in self.cases]

    def begin(self):
        """Before another verdict."""
        self.left, self._paid = self.WORK, set()

    def most(self, of_one=None):
        """How many trials one search may make, each of so much work, that of a wrong variant if it is None."""
        of_one = of_one or self._work + self.OF_A_VARIANT
        return max(FEWEST, min(self.WORK // SHARE, self.left // 2) // of_one)

    @property
    def most_joined(self):
        """How many runs of several mistakes together are worth it, whatever other searches have done."""
        return self.WORK // (self._work + self.OF_A_VARIANT)

    @cached_property
    def _work(self):
        case, answer = self.cases[0], self.exercise.variant()
        attempt(self.exercise, answer, case, is_trial=True)  # what it remembers for the next time
        return work_of(lambda: self.results(case, attempt(self.exercise, answer, case, is_trial=True)), case)

    @cached_property
    def ignored(self):
        """{name of a mistake: Ignored} for every argument that an answer may leave unused."""
        return ignored_arguments(self.exercise, self.cases)

    def compatible(self, mistakes):
        """Whether these mistakes can be made together."""
        return self.exercise.compatible([name for name in mistakes if name not in self.ignored])

    def variant_on(self, mistakes, number):
        """The results of a wrong variant on one case, or None, and its attempt."""
        key = mistakes, number = frozenset(mistakes), number
        if key not in self._of_variant:
            try:
                answer = self.exercise.variant([name for name in mistakes if name not in self.ignored])
                self._of_variant[key] = self.results_of(answer, number, mistakes)
            except SyntaxError as error:  # two rewrites beside each other may make no code
                self._of_variant[key] = None, Attempt(crash=crash_of(error))
        if key not in self._paid:
            self.left -= self._work + self.OF_A_VARIANT * (mistakes not in self._paid)
            self._paid |= {key, mistakes}
        return self._of_variant[key]

    def results_of(self, answer, number, mistakes=()):
        """An answer's results on one case, or None, and its attempt, without the arguments that mistakes ignore."""
        case = called = self.cases[number]
        for name in mistakes:
            called = self.ignored[name].applied(called) if name in self.ignored else called
        tried = attempt(self.exercise, answer, called, is_trial=True)
        return self.results(case, tried), tried

    def results(self, case, tried):
        """The attempt's output as one array for each result, or None if it has no such output."""
        return None if tried.crash else results_and_problem(self.exercise, case, tried.output)[0]


def _with_other_numbers(case):
    """[the case with the rows of its first array in reverse order]: other numbers of the same shapes, for an answer
    that remembers what it returned for a shape. [] for a case without such an array."""
    arguments = list(case.arguments)
    for i, array in enumerate(arguments):
        if isinstance(array, np.ndarray) and array.ndim and not np.array_equal(array, array[::-1]):
            arguments[i] = array[::-1].copy()
            return [replace(case, arguments=tuple(arguments))]
    return []
