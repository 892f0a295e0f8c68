"""Cache blocking: an element-by-element function of large arrays, a block at a time."""

from functools import wraps

import numpy as np

BLOCK = 1 << 15  # elements: a block and the temporaries of a formula stay in the cache, and need no new memory


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
