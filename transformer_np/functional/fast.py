"""What makes the formulas fast without changing them: cache blocking, sums as matrix products."""

from functools import wraps

import numpy as np

BLOCK = 1 << 15  # elements: a block and the temporaries of a formula stay in the cache, and need no new memory
SHORT_ROW = 128  # numbers; longer rows are reduced fast as they are


def blocked(function):
    """For a function of arrays of one shape that returns another of that shape and the first one's dtype, in which an
    element depends on the elements at its place alone. Arguments that are no arrays are handed through.

    A formula of ten operations passes ten times over arrays that lie in the cache, instead of ten times over memory.
    """

    @wraps(function)
    def in_blocks(*args, **kwargs):
        given = [*args, *kwargs.values()]
        first = next(value for value in given if isinstance(value, np.ndarray))
        if first.size <= BLOCK:
            return function(*args, **kwargs)
        result = np.empty(first.shape, first.dtype)
        flat = [value.reshape(-1) if isinstance(value, np.ndarray) else value for value in given]
        flat_result = result.reshape(-1)
        for start in range(0, result.size, BLOCK):
            block = slice(start, start + BLOCK)
            values = [value[block] if isinstance(value, np.ndarray) else value for value in flat]
            named = dict(zip(kwargs, values[len(args) :], strict=True))
            flat_result[block] = function(*values[: len(args)], **named)
        return result

    return in_blocks


# --- sums and largest entries ---------------------------------------------------------------------------------------
# A matrix times a vector of ones is a sum, and BLAS does it several times faster than ndarray.sum.


def row_means(x):
    """Mean over the last axis, which stays as an axis of length 1."""
    return (x @ np.full(x.shape[-1], 1 / x.shape[-1], x.dtype))[..., None]


def sum_along(x, axis):
    """Sum over one axis, which stays as an axis of length 1."""
    if axis in (-1, x.ndim - 1):
        return (x @ np.ones(x.shape[-1], x.dtype))[..., None]
    return x.sum(axis=axis, keepdims=True)


def sum_of_rows(x):
    """Sum over every axis but the last: (..., D) -> (D,)."""
    rows = x.reshape(-1, x.shape[-1])
    return np.ones(len(rows), x.dtype) @ rows


def sum_by_id(rows, ids, num_ids):
    """Sum of the rows that carry the same id: rows (N, D), ids (N,) in 0 … num_ids − 1  ->  (num_ids, D)

    `total[ids] += rows` would count a repeated id once, and np.add.at is slow. Sorted, equal ids lie side by side, and
    each run of them is one sum.
    """
    total = np.zeros((num_ids, rows.shape[-1]), rows.dtype)
    order = np.argsort(ids, kind="stable")
    present, starts = np.unique(ids[order], return_index=True)
    total[present] = np.add.reduceat(rows[order], starts, axis=0)
    return total


def max_along(x, axis):
    """Largest entry along one axis, which stays as an axis of length 1. NumPy takes row after row and is slow at many
    short ones; turned around, they are a few long rows that are compared number by number."""
    if axis not in (-1, x.ndim - 1) or x.shape[-1] > SHORT_ROW:
        return x.max(axis=axis, keepdims=True)
    columns = np.ascontiguousarray(x.reshape(-1, x.shape[-1]).T)
    return columns.max(axis=0).reshape(*x.shape[:-1], 1)
