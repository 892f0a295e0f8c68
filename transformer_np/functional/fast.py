"""Faster ways to compute the same formulas: cache blocking, and sums as matrix products."""

from functools import wraps

import numpy as np

BLOCK = 1 << 15  # elements: a block and the temporaries of a formula fit into the cache
SHORT_ROW = 128  # numbers: NumPy reduces longer rows fast


def blocked(function):
    """Decorate an element-wise function so that it works block by block.

    The function takes arrays of one shape and returns one or several arrays of that shape, with the dtype of the first.
    Arguments that are not arrays are passed on. A formula of ten operations then passes ten times over a block in the
    cache, not ten times over main memory.
    """

    @wraps(function)
    def in_blocks(*args, **kwargs):
        given = [*args, *kwargs.values()]
        first = next(value for value in given if isinstance(value, np.ndarray))
        if first.size <= BLOCK:
            return function(*args, **kwargs)
        flat = [value.reshape(-1) if isinstance(value, np.ndarray) else value for value in given]
        results = ()
        for start in range(0, first.size, BLOCK):
            block = slice(start, start + BLOCK)
            values = [value[block] if isinstance(value, np.ndarray) else value for value in flat]
            named = dict(zip(kwargs, values[len(args) :], strict=True))
            parts = function(*values[: len(args)], **named)
            several = isinstance(parts, tuple)
            parts = parts if several else (parts,)
            results = results or [np.empty(first.size, first.dtype) for _ in parts]
            for result, part in zip(results, parts, strict=True):
                result[block] = part
        shaped = tuple(result.reshape(first.shape) for result in results)
        return shaped if several else shaped[0]

    return in_blocks


# --- products -------------------------------------------------------------------------------------------------------

FEW_ROWS = 3  # more of them are as fast together
LARGE_MATRIX = 1 << 16  # entries: reading a smaller one takes less time than the calls


def product(rows, w):
    """rows @ w. BLAS multiplies one row twice as fast as it begins with a product of matrices: so do two or three, one
    after the other, as in decoding with a few beams or texts.

    rows (N, D_in), w (D_in, D_out)  ->  (N, D_out)
    """
    if not 1 < len(rows) <= FEW_ROWS or w.size < LARGE_MATRIX:
        return rows @ w
    return (rows[:, None] @ w)[:, 0]


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
    """Sum of the rows with the same id: rows (N, D), ids (N,) in 0 … num_ids − 1  ->  (num_ids, D)

    `total[ids] += rows` would count a repeated id once, and np.add.at is slow. After sorting, equal ids lie side by
    side, and each run of them is one sum.
    """
    total = np.zeros((num_ids, rows.shape[-1]), rows.dtype)
    order = np.argsort(ids, kind="stable")
    present, starts = np.unique(ids[order], return_index=True)
    total[present] = np.add.reduceat(rows[order], starts, axis=0)
    return total


def max_along(x, axis):
    """Largest entry along one axis, which stays as an axis of length 1. NumPy reduces row after row, which is slow for
    many short rows. Their transpose has a few long rows instead, which NumPy compares element by element."""
    if axis not in (-1, x.ndim - 1) or x.shape[-1] > SHORT_ROW:
        return x.max(axis=axis, keepdims=True)
    columns = np.ascontiguousarray(x.reshape(-1, x.shape[-1]).T)
    return columns.max(axis=0).reshape(*x.shape[:-1], 1)
