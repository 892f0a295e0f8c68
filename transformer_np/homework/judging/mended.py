"""The Findings of an answer with a wrong shape mended, so that what else is wrong can be told."""

from itertools import permutations

import numpy as np

from .finding import Finding

MOST_RESULTS = 6
ORDER_OF_RESULTS = "order of results"
ABOUT_ORDER = "The results are returned in the wrong order, as their shapes show."


def fixed_axes(found):
    """A sentence on an array whose number of axes decides whether a call is right, or ""."""
    for name in found[0].arguments:
        given = [f for f in found if isinstance(f.arguments.get(name), np.ndarray)]
        right, wrong = (sorted({f.arguments[name].ndim for f in given if f.right == kind}) for kind in (True, False))
        is_chance = right == [1] and not all(f.right or f.tried.crash for f in given)  # there is only one row
        if right and wrong and not is_chance and not {*right} & {*wrong}:
            one = "is" if right == [1] else "es"
            right, wrong = (" or ".join(map(str, numbers)) for numbers in (right, wrong))
            return (
                f"All calls in which {name} has {right} ax{one} are right, and all in which it has {wrong} are wrong. "
                "The code must hold for any number of axes: count from the end, as x.shape[-1] does, and let `...` "
                "stand for the axes in front."
            )
    return ""


def with_right_shapes(found):
    """The Findings with a result of a wrong shape mended, if they then have the right shapes and wrong numbers: the
    axes in another order, other axes of length 1, or one array as the first of several results; or else []."""
    first = next(finding for finding in found if not finding.right)
    is_single = first.results is None and isinstance(first.tried.output, np.ndarray) and len(first.expected) > 1
    pairs = enumerate(zip(first.results or (), first.expected, strict=False))
    i = 0 if is_single else next((i for i, (a, b) in pairs if a.shape != b.shape), None)
    if i is None or any(f.tried.crash or (is_single and not isinstance(f.tried.output, np.ndarray)) for f in found):
        return []
    axes = range(first.expected[i].ndim)
    orders = permutations(axes) if not is_single and first.results[i].ndim == len(axes) else ()
    for change in (*map(_in_order, orders), _with_shape):

        def results_of(f, change=change):
            array, results = (f.tried.output, f.expected) if is_single else (f.results[i], f.results)
            return [*results[:i], change(array, f.expected[i].shape), *results[i + 1 :]]

        mended = _with_results(found, results_of)
        if all(f.results[i].shape == f.expected[i].shape for f in mended):
            return mended if any(finding.wrong for finding in mended) else []
    return []


def with_results_in_order(found):
    """The Findings with the results in another order, if one order gives all of them the right shapes; or else []."""
    first = next(finding for finding in found if not finding.right)
    if first.outcome != "wrong shape" or any(finding.results is None for finding in found):
        return []
    for order in permutations(range(len(first.expected))) if len(first.expected) <= MOST_RESULTS else ():
        pairs = [(f.results[n], right) for f in found for n, right in zip(order, f.expected, strict=True)]
        if all(result.shape == right.shape for result, right in pairs):
            return _with_results(found, lambda f, order=order: [f.results[n] for n in order])
    return []


def _with_results(found, results_of):
    """The Findings with other results."""
    mended = []
    for f in found:
        mended.append(Finding(f.exercise, f.case, f.tried, results_of(f), f.expected, f.shares, tuple(mended)))
    return mended


def _in_order(axes):
    return lambda array, shape: array.transpose(axes) if array.ndim == len(axes) else array


def _with_shape(array, shape):
    """The array with other axes of length 1, if that gives it a shape."""
    sizes, wanted = ([size for size in of if size != 1] for of in (array.shape, shape))
    return array.reshape(shape) if sizes == wanted else array
