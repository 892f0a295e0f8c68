"""An answer's output as arrays, and the comparison of two arrays up to rounding."""

import numpy as np

from .words import listed

TOLERANCE = 1e-5  # relative to the array's largest number: an answer may use float32 and any order of operations
NEARLY_ALL = 0.9  # of some numbers, where a few may be equal by chance
MOST_NUMBERS = 3_000_000  # of an array that a search makes or looks at
FLOOR = 1e-3  # stands for the largest number of an array of zeros


def results_and_problem(exercise, case, output):
    """The output as one array for each result, and None; or None, and a sentence on an output of the wrong kind."""
    results = exercise.results
    names = ", ".join(result.name for result in results)
    if exercise.view is not None:
        try:
            with np.errstate(all="ignore"):  # it may compute with NaN
                values = tuple(exercise.view(case, output))
        except (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError):
            return None, _must_return("what its docstring says", output)  # the names are of what the view reads in it
    elif len(results) == 1:
        values = (output,)
    elif not isinstance(output, tuple | list) or len(output) != len(results):
        return None, _must_return(f"{len(results)} values ({names})", output)
    else:
        values = output
    if len(values) != len(results) or output is None:
        return None, _must_return(names, output)
    nothing = [result.name for result, value in zip(results, values, strict=True) if value is None or value is ...]
    if nothing:
        return None, f"It must return {names}, but {listed(nothing)} {'is' if len(nothing) == 1 else 'are'} None."
    for result, value in zip(results, values, strict=True):
        if isinstance(value, tuple | list) or _is_masked(value) or _array(value).dtype.kind not in "biuf":
            return None, f"{result.name} must be an array of numbers, got {_kind(value)}."
    return [_array(value) for value in values], None


def _is_masked(value):
    subclass = isinstance(value, np.ndarray) and type(value) is not np.ndarray
    return subclass and np.ma.is_masked(value)  # np.ma is loaded on first use, and takes a while


def _must_return(wanted, output):
    if output is None:
        return f"It must return {wanted}, but it returned None. Is there a `return` on every way through it?"
    return f"It must return {wanted}, got {_kind(output)}."


def close(actual, expected):
    """Whether two arrays are equal up to rounding: they have the same shape, are both Boolean or both not, and
    wrong_entries has none."""
    if actual.shape != expected.shape or (actual.dtype == bool) != (expected.dtype == bool):
        return False
    return not wrong_entries(actual, expected).any()


def wrong_entries(actual, expected):
    """Boolean array of the entries that differ by more than rounding, of two arrays of the same shape: by more than
    TOLERANCE times the largest number, or at all where NaN or infinity is expected."""
    if expected.dtype == bool or actual.dtype == bool:
        return actual != expected
    with np.errstate(all="ignore"):
        actual, expected = actual.astype(float, copy=False), expected.astype(float, copy=False)
        scale = np.abs(expected).max(initial=FLOOR)
        if np.isfinite(scale):
            return ~(np.abs(actual - expected) <= TOLERANCE * scale)
        finite = np.isfinite(expected)
        scale = np.abs(expected[finite]).max(initial=FLOOR)
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        return np.where(finite, ~(np.abs(actual - expected) <= TOLERANCE * scale), ~same)


def are_close(some, others, relative, absolute=1e-8):
    """np.isclose of two arrays of floats, NaN equal to itself, in a quarter of its time."""
    apart = np.abs(some - others)
    are_near = (apart <= absolute + relative * np.abs(others)) & (apart < np.inf)
    return are_near if are_near.all() else are_near | (some == others) | (np.isnan(some) & np.isnan(others))


def _array(value):
    try:
        return np.asarray(value)
    except ValueError:  # a ragged list
        return np.asarray(None)


def _kind(value):
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, np.ma.MaskedArray):
        return "a masked array. Convert it with .filled(…)"
    if isinstance(value, np.ndarray | np.generic):
        array = (
            f"one array of shape {value.shape}" if value.dtype.kind in "biuf" else f"an array of dtype {value.dtype}"
        )
        return array if value.ndim else f"a single value of type {type(value).__name__}"
    return f"a value of type {type(value).__name__}"
