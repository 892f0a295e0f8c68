"""The values of two answers that run side by side: which are the same, and which can stand in place of others."""

from bisect import bisect_left
from operator import itemgetter

import numpy as np

from .traced import same


class Known:
    """Values, to be found by their first number and their size."""

    def __init__(self, values):
        self._by_size = {}
        for value in {key(value): value for value in values}.values():
            self._by_size.setdefault(_size(value), []).append((_first(value), value))
        for group in self._by_size.values():
            group.sort(key=_place)

    def has(self, value):
        group, first = self._by_size.get(_size(value), ()), _first(value)
        near = 2e-4 * (1 + abs(first))  # farther apart than two numbers that are called the same
        begin, end = (bisect_left(group, first + far, key=_place) for far in (-near, near))
        return any(same([value], [other]) for _, other in group[begin:end])


_place = itemgetter(0)


def _first(value):
    if not is_array(value) or value.dtype.kind not in "biuf":
        return float(value) if isinstance(value, int | float) else 0.0
    return float(value.flat[0]) if value.size and np.isfinite(value.flat[0]) else 0.0


def key(value):
    """What two values have in common only if they are the same to the last bit."""
    if isinstance(value, list | tuple):
        return tuple(map(key, value))
    return (value.shape, value.tobytes()) if is_array(value) else str(value)


def _size(value):
    if isinstance(value, list | tuple | dict):
        return "items", len(value)
    return value.size if is_array(value) else isinstance(value, int | float) or value


def flat(value, shape):
    """An array without its axes, unless its shape counts."""
    return np.ravel(value) if is_array(value) and not shape else value


def is_filled(values):
    """Whether arrays hold one number only: new ones, which the next lines fill."""
    return bool(values) and all(is_array(v) and v.size > 1 and np.all(v == v.flat[0]) for v in values)


def is_array(value):
    return isinstance(value, np.ndarray | np.generic)


def is_data(value):
    return is_array(value) or isinstance(value, int | float | str | list | tuple | dict)


def is_number(value):
    return is_array(value) or type(value) is float


def alike(values, right, any_shape, origins=frozenset()):
    """Those of the right values, with their nodes, that can be put in place of others: those of `origins` first, then
    those that have most in common."""
    if not values or not all(map(is_number, values)):
        return []

    def is_as_large(value):
        return getattr(value, "size", 1) == getattr(values[0], "size", 1)

    def fitted(value, own):
        """The value in the shape of the answer's, which may have joined axes, or None."""
        if (np.asarray(value).dtype == bool) != (np.asarray(own).dtype == bool):
            return None
        if any_shape or np.shape(value) == np.shape(own):
            return value
        return np.reshape(value, np.shape(own)) if np.size(value) == np.size(own) else None

    def unlikeliness(item):
        return not item[1] & origins, -sum(same([a], [b]) for a, b in zip(values, item[0], strict=True))

    found = [item for item in right if len(item[0]) == len(values) and (any_shape or is_as_large(item[0][0]))]
    found = [item for item in found if all(map(is_number, item[0]))]
    found = [(list(map(fitted, others, values)), nodes) for others, nodes in found]
    return sorted((item for item in found if not any(value is None for value in item[0])), key=unlikeliness)
