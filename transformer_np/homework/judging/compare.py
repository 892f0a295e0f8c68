"""What an answer returned as arrays, and whether two arrays are the same but for rounding."""

import numpy as np

TOLERANCE = 1e-5  # of the largest number in the array: an answer may work in float32, and in any order
FLOOR = 1e-3  # an array of zeros is compared with this instead


def wrong_structure(exercise, case, output):
    """What is wrong with the kind of thing an answer returned, in a sentence, or None."""
    results = exercise.results
    names = ", ".join(result.name for result in results)
    if exercise.view is not None:
        try:
            values = tuple(exercise.view(case, output))
        except (TypeError, ValueError, IndexError, KeyError, AttributeError):
            return f"It must return {names}, got {_kind(output)}."
    elif len(results) == 1:
        values = (output,)
    elif not isinstance(output, tuple | list) or len(output) != len(results):
        return f"It must return {len(results)} things ({names}), got {_kind(output)}."
    else:
        values = output
    if len(values) != len(results):
        return f"It must return {names}, got {_kind(output)}."
    for result, value in zip(results, values, strict=True):
        if value is None or value is ...:
            return f"It must return {names}, but " + (
                "it returned None. Is there a `return`?" if output is None else f"{result.name} is {value}."
            )
        if isinstance(value, tuple | list) or np.ma.is_masked(value) or _array(value).dtype.kind not in "biuf":
            return f"{result.name} must be an array of numbers, got {_kind(value)}."
    return None


def as_results(exercise, case, output):
    """The output as one array a result; only for what has no wrong_structure."""
    if exercise.view is not None:
        output = exercise.view(case, output)
    elif len(exercise.results) == 1:
        output = (output,)
    return [_array(value) for value in output]


def close(actual, expected):
    """Whether two arrays are equal but for rounding: the same shape, NaN and infinities in the same places, truth
    values only with truth values, and no number further off than TOLERANCE of the largest one."""
    if actual.shape != expected.shape or (actual.dtype == bool) != (expected.dtype == bool):
        return False
    if expected.dtype == bool:
        return np.array_equal(actual, expected)
    finite = np.isfinite(expected)
    if not np.array_equal(actual[~finite], expected[~finite], equal_nan=True):
        return False
    actual, expected = actual[finite].astype(float), expected[finite].astype(float)
    scale = np.abs(expected).max(initial=FLOOR)
    with np.errstate(all="ignore"):
        return bool((np.abs(actual - expected) <= TOLERANCE * scale).all())


def _array(value):
    try:
        return np.asarray(value)
    except ValueError:  # a ragged list
        return np.asarray(None)


def _kind(value):
    if value is None:
        return "nothing (None). Is there a `return`?"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, np.ma.MaskedArray):
        return "a masked array: .filled(…) makes an array of it"
    if isinstance(value, np.ndarray | np.generic):
        array = (
            f"one array of shape {value.shape}" if value.dtype.kind in "biuf" else f"an array of dtype {value.dtype}"
        )
        return array if value.ndim else f"a single value of type {type(value).__name__}"
    return f"a value of type {type(value).__name__}"
