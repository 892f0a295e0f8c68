"""Finders for results of the wrong shape, and descriptions of outputs of the wrong kind."""

import numpy as np

from ..compare import MOST_NUMBERS, close
from ..hypothesis import Hypothesis
from ..words import listed
from .draw import same, subsets
from .numbers import another_array, other_order_of_axes

MORE_AXES = 3  # of a result with more extra axes, or more entries, only the shape is described
_WAYS = (("summed", "sum", np.sum), ("averaged", "mean", np.mean), ("reduced to the largest", "maximum", np.max))


def is_searchable(draw):
    """Whether the axes of a result are few enough to try every set of them."""
    return draw.actual.ndim <= draw.expected.ndim + MORE_AXES and draw.actual.size <= MOST_NUMBERS


def axes_of_length_1(draw):
    actual, right = draw.actual, draw.expected
    sizes, wanted = ([size for size in array.shape if size != 1] for array in (actual, right))
    if sizes != wanted or not close(actual.reshape(right.shape), right):
        return
    more = actual.ndim - right.ndim
    way, has = ("extra", "has an extra") if more > 0 else ("missing", "lacks an")
    text = f"{draw.name} {has if more else 'has a misplaced'} axis of length 1, but the numbers are right."
    also = "keepdims=True, None and reshape make such an axis; squeeze() and a reduction without keepdims lose it."
    yield f"{way if more else 'misplaced'} axis of length 1", f"{text} {also}"


def not_reduced(draw):
    """The sum, mean, maximum or one entry of the actual result is the right result."""
    actual, letters = draw.actual, draw.letters_of(draw.actual.shape)
    for way, right, reduce in _WAYS if not draw.is_boolean and actual.dtype != bool else ():
        for axes in subsets(actual):
            is_much = any(actual.shape[i] != 1 for i in axes)
            if is_much and any(same(reduce(actual, axis=axes, keepdims=kept), draw.expected) for kept in (False, True)):
                over = listed(letters[i] for i in axes)
                text = f"{draw.name} is not {way} over {over}. Its {right} over {over} is the right result."
                yield f"not {way} over {over}", text
    for axis, letter in enumerate(letters):
        for index, which in ((0, "first"), (-1, "last")):
            if actual.shape[axis] > 1 and same(actual.take(index, axis), draw.expected):
                text = f"{draw.name} has an extra axis, {letter}. Return only the {which} entry along it."
                yield f"all along {letter} instead of the {which}", text


def reduced_too_much(draw):
    right, letters = draw.expected, draw.letters
    for way, _, reduce in _WAYS if not draw.is_boolean and draw.actual.dtype != bool else ():
        for axes in subsets(right):
            over = listed(letters[i] for i in axes)
            text = f"{draw.name} is {way} over {over}. It must keep one entry for each {over}."
            for kept in (False, True) if any(right.shape[i] != 1 for i in axes) else ():
                yield f"{way} over {over}", text, reduce(right, axis=axes, keepdims=kept)
    for axis, letter in enumerate(letters):
        for index, which in ((0, "first"), (-1, "last")) if right.shape[axis] > 1 else ():
            text = f"{draw.name} is only the {which} entry along {letter}. It must have one entry for each {letter}."
            yield f"only the {which} along {letter}", text, right.take(index, axis)


def too_long_or_short(draw):
    """A result that lacks, or has extra, entries at an end of one axis."""
    pairs = enumerate(zip(draw.actual.shape, draw.expected.shape, strict=False))
    axes = [i for i, (got, wanted) in pairs if got != wanted]
    if draw.actual.ndim != draw.expected.ndim or len(axes) != 1:
        return
    axis, letter = axes[0], draw.letters[axes[0]]
    short, long = sorted((draw.actual, draw.expected), key=lambda array: array.shape[axis])
    n, missing = short.shape[axis], long.shape[axis] - short.shape[axis]
    fewer, much = short is draw.actual, "one" if missing == 1 else str(missing)
    for ends, begin in (("last", 0), ("first", missing)):
        if close(short, long.take(range(begin, begin + n), axis)):
            which, are = (f"the {ends}", "is") if missing == 1 else (f"the {ends} {missing}", "are")
            text = f"{draw.name} is too {'short' if fewer else 'long'} along {letter} by {much}: {which} {are} "
            text += f"{'missing' if fewer else 'extra'}."
            yield f"{'without' if fewer else 'longer by'} {which} along {letter}", text


OF_SHAPES = (
    another_array, other_order_of_axes, axes_of_length_1, not_reduced, reduced_too_much, too_long_or_short
)  # fmt: skip


# --- outputs of the wrong kind ----------------------------------------------------------------------------------------


def about_structure(exercise, output, expected):
    """The Hypothesis on an output of the wrong kind, given the right results."""
    names = [result.name for result in exercise.results]
    if output is None or output is ...:
        return Hypothesis("nothing returned", "")
    if exercise.view is not None:
        return Hypothesis(None, "")
    if (of := type(output).__name__) in ("generator", "map", "zip", "filter"):
        return Hypothesis("a generator", f"It returns a {of}. Convert it to an array with np.stack(list(…)).")
    values = output if isinstance(output, tuple | list) else [output]
    found = [_which(value, names, expected) for value in values]
    missing = [name for name in names if name not in found]
    if len(values) < len(names):
        text = f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} missing; the rest is right."
        return Hypothesis("returns too little", "" if None in found else text)
    lists = names if len(names) == 1 and of == "list" and missing else ()
    if len(values) > len(names) and not lists:
        return Hypothesis("returns too much", "" if missing else f"It returns {listed(names)}, and more.")
    if names == found and len(names) == 1:
        comma = " A comma after the value makes a tuple." if of == "tuple" else ""
        text = f"It returns {names[0]} inside a {of}. Return {names[0]} itself.{comma}"
        return Hypothesis(f"returns a {of} of one", text)
    pairs = [*zip(names, values, strict=False)]
    nothing = [name for name, value in pairs if value is None or value is ...]
    if nothing and not lists:
        kinds = (([name for name in found if name], "right"), ([n for n in missing if n not in nothing], "wrong"))
        said = [f"{listed(some)} {'is' if len(some) == 1 else 'are'} {how}" for some, how in kinds if some]
        return Hypothesis("returns None for a result", f"Of the rest, {', '.join(said)}." if said else "")
    lists = lists or [name for name, value in pairs if isinstance(value, list | tuple)]
    if lists:
        text = f"{listed(lists)} must be an array, not a list. Convert it with np.array(…) or np.stack(…)."
        return Hypothesis("a list instead of an array", text)
    return Hypothesis(None, "")


def _which(value, names, expected):
    """The name of the right result that a value equals, or None."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            return None
        return next((name for name, right in zip(names, expected, strict=True) if close(array, right)), None)
    except (ValueError, TypeError):
        return None
