"""A worked example: a number that the documents print beside the number that the package computes."""

from dataclasses import dataclass

import numpy as np

from . import printed
from .comparison import ANSWERED, FITTED, REPRODUCED, differences, verdict

EXACT = 1e-12


@dataclass(frozen=True, eq=False)
class WorkedExample:
    """A printed result and the computed one.

    row: its number in the list of all worked examples
    where, title: the place in the documents, and a short description
    printed, computed: arrays of one shape; for a sentence, `printed` is its claim as numbers
    digits: the number of printed decimals; None for a sentence that claims exact values
    expected: the verdict that the authors of this package found
    reason: the explanation of the verdict; an erratum's also gives the true value
    checks: ((description, whether it holds), …), further conditions
    """

    row: int
    where: str
    title: str
    printed: np.ndarray
    computed: np.ndarray
    digits: int | None
    expected: str
    reason: str
    checks: tuple = ()

    @property
    def difference(self):
        """The largest |printed − computed|."""
        return float(differences(self.printed, self.computed).max())

    @property
    def verdict(self):
        """ "reproduced", "truncated in print" or "erratum", from the numbers. Instead of "reproduced", "weights fitted"
        where the documents do not determine the weights, and "answered here" where they print no answer."""
        found = verdict(self.printed, self.computed, self.digits)
        return self.expected if found == REPRODUCED and self.expected in (FITTED, ANSWERED) else found

    @property
    def failed(self):
        """Descriptions of everything that is not as expected."""
        failed = [what for what, holds in self.checks if not holds]
        if self.verdict != self.expected:
            failed.insert(0, f"expected: {self.expected}")
        return tuple(failed)

    @property
    def ok(self):
        """Whether the verdict and every check are as expected."""
        return not self.failed


EXAMPLES = {}  # {row: a function that computes the WorkedExample}


def example(row, title, source, expected):
    """Make a worked example of the function below.

    source: the name of a Printed; the function returns the computed numbers, the reason, if there are any the checks,
    and if necessary {"where", "printed" or "digits": what stands in for that of the source}
    """

    def register(function):
        def made():
            shown = getattr(printed, source)
            computed, reason, *more = function()
            checks, other = [*more, (), ()][:2]
            parts = {"where": shown.where, "printed": shown.values, "digits": shown.digits} | dict(other)
            parts["printed"], parts["computed"] = np.asarray(parts["printed"]), np.asarray(computed, np.float64)
            return WorkedExample(row, title=title, expected=expected, reason=reason, checks=checks, **parts)

        EXAMPLES[row] = made
        return made

    return register


def equal(a, b):
    """Whether two arrays are equal up to rounding in float64."""
    return bool((differences(a, b) <= EXACT).all())
