"""One wrong result next to the right one, and names for its axes."""

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from ..compare import close, wrong_entries


@dataclass(frozen=True)
class Draw:
    """A wrong result of one call.

    name, axes: of the Result; sizes: the letters of the case
    inputs: the array arguments by name; numbers: the single numbers among the arguments
    others: all right results of the call by name; returned: all results of the answer by name
    earlier: this result in the earlier calls that were right and had other arrays
    of_view: whether the exercise's view has made the arrays from what is returned
    """

    name: str
    axes: str
    actual: np.ndarray
    expected: np.ndarray
    sizes: dict
    inputs: dict = field(default_factory=dict)
    numbers: dict = field(default_factory=dict)
    others: dict = field(default_factory=dict)
    returned: dict = field(default_factory=dict)
    earlier: tuple = ()
    of_view: bool = False

    @property
    def letters(self):
        """A name for each axis of the right result: "T", or "axis 1" without a letter."""
        named = [letter for letter in self.axes.split() if letter != "..."]
        lead, shape = self.expected.ndim - len(named), self.expected.shape
        return [*self.letters_of(shape[:lead]), *named] if lead >= 0 else self.letters_of(shape)

    def letters_of(self, shape):
        """A name for each axis of a shape, found by its size: the sizes of a case all differ."""
        return [self.letter_of(size, i) for i, size in enumerate(shape)]

    def letter_of(self, size, i):
        letters = [letter for letter, known in self.sizes.items() if known == size and size > 1]
        return letters[0] if len(letters) == 1 else f"axis {i}"

    @property
    def is_boolean(self):
        return self.expected.dtype == bool

    @property
    def is_coded(self):
        """Whether the numbers are not the student's, but places, facts, or ids with a filling."""
        whole = self.expected[np.isfinite(self.expected)]
        is_whole = not self.is_boolean and np.array_equal(whole, np.round(whole))
        return self.of_view and is_whole and self.actual.shape == self.expected.shape

    @property
    def wrong(self):
        """Boolean array of the wrong entries; only for a result of the right shape."""
        return wrong_entries(self.actual, self.expected)


def floats(draw):
    """The finite numbers of both arrays as float64, (actual, expected), or None if they cannot be compared: they are
    truth values or all zeros, or differ in NaN and infinities."""
    if draw.is_boolean or draw.actual.dtype == bool:
        return None
    actual, expected = draw.actual.astype(float), draw.expected.astype(float)
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(actual)) or not np.any(actual[finite]):
        return None
    if not np.array_equal(actual[~finite], expected[~finite], equal_nan=True):
        return None
    return actual[finite], expected[finite]


def close_where_finite(draw, expected):
    """Whether the actual result equals `expected` wherever the right result is finite."""
    finite = np.isfinite(draw.expected)
    return close(draw.actual[finite], np.asarray(expected)[finite])


def broadcasts(array, to):
    try:
        return np.broadcast_shapes(array.shape, to.shape) == to.shape
    except ValueError:
        return False


def subsets(array):
    """All non-empty sets of an array's axes, small ones first."""
    axes = range(array.ndim)
    return [chosen for n in range(1, array.ndim + 1) for chosen in combinations(axes, n)]


def same(actual, expected):
    """Whether two arrays are equal and informative: not all zeros, not all NaN."""
    return close(actual, expected) and bool(np.any(expected)) and not np.isnan(expected).all()
