"""Descriptions of outputs of the wrong kind: too few values, too many, or no array."""

import numpy as np

from ..compare import close
from ..hypothesis import Hypothesis
from ..words import listed


def about_structure(exercise, output, expected):
    """The Hypothesis on an output with a wrong_structure, given the right results."""
    names = [result.name for result in exercise.results]
    if output is None or output is ...:
        return Hypothesis("nothing returned", "")
    if exercise.view is not None:
        return Hypothesis(None, "")
    if not isinstance(output, tuple | list):
        return _about_one(names, output, expected)
    found, kind = [_which(value, names, expected) for value in output], type(output).__name__
    if len(names) == 1 and names == found:
        comma = " A comma after the value makes a tuple." if kind == "tuple" else ""
        text = f"It returns {names[0]} inside a {kind}. Return {names[0]} itself.{comma}"
        return Hypothesis(f"returns a {kind} of one", text)
    if len(names) == 1 and names[0] in found:
        text = f"It must return only {names[0]}, which is value {found.index(names[0]) + 1} of those it returns."
        return Hypothesis("returns too much", text)
    if len(names) == 1 and isinstance(output, list):
        text = f"It returns a list, but {names[0]} must be an array. Convert it with np.array(…) or np.stack(…)."
        return Hypothesis("a list instead of an array", text)
    missing = [name for name in names if name not in found]
    if len(output) < len(names):
        text = f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} missing; the rest is right."
        return Hypothesis("returns too little", "" if None in found else text)
    if len(output) > len(names):
        return Hypothesis("returns too much", "" if missing else f"It returns {listed(names)}, and more.")
    nothing = [name for name, value in zip(names, output, strict=True) if value is None or value is ...]
    if nothing:
        kinds = (([name for name in found if name], "right"), ([n for n in missing if n not in nothing], "wrong"))
        said = [f"{listed(some)} {'is' if len(some) == 1 else 'are'} {how}" for some, how in kinds if some]
        return Hypothesis("returns None for a result", f"Of the rest, {', '.join(said)}." if said else "")
    lists = [name for name, value in zip(names, output, strict=True) if isinstance(value, list | tuple)]
    if lists:
        kind = type(output[names.index(lists[0])]).__name__
        text = f"{listed(lists)} must be an array, not a {kind}. Convert it with np.array(…)."
        return Hypothesis("a list instead of an array", text)
    strange = [value for value in output if np.asarray(value).dtype.kind not in "biuf"]
    return _about_one(names, strange[0], expected) if strange else Hypothesis(None, "")


def _about_one(names, value, expected):
    kind = value.dtype.kind if isinstance(value, np.ndarray | np.generic) else ""
    if kind == "c":
        text = "The numbers are complex. Is there a root or a power of a negative number?"
        return Hypothesis("complex numbers", text)
    if kind == "O" and value.ndim:
        text = "The array has dtype object. It was made from arrays of different shapes, or from None."
        return Hypothesis("an array of objects", text)
    if type(value).__name__ == "generator":
        return Hypothesis("a generator", "It returns a generator. Convert it to an array with np.stack(list(…)).")
    right = _which(value, names, expected) if kind and len(names) > 1 else None
    if right:
        missing = listed(name for name in names if name != right)
        return Hypothesis("returns too little", f"It returns only {right}. It must also return {missing}.")
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
