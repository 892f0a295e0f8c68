"""Descriptions of outputs of the wrong kind: too few values, too many, or no array."""

import numpy as np

from ..compare import close
from ..words import listed
from .draw import Description


def about_structure(exercise, output, expected):
    """The description of an output with a wrong_structure, given the right results."""
    names = [result.name for result in exercise.results]
    if output is None or output is ...:
        return Description("nothing returned", "")
    if exercise.view is not None:
        return Description(None, "")
    if not isinstance(output, tuple | list):
        return _about_one(names, output, expected)
    found = [_which(value, names, expected) for value in output]
    if len(names) == 1 and names[0] in found:
        if len(output) == 1:
            kind = type(output).__name__
            comma = " A comma after the value makes a tuple." if kind == "tuple" else ""
            return Description(
                f"returns a {kind} of one", f"It returns {names[0]} inside a {kind}. Return {names[0]} itself.{comma}"
            )
        text = f"It must return only {names[0]}, which is value {found.index(names[0]) + 1} of those it returns."
        return Description("returns too much", text)
    if len(names) == 1 and isinstance(output, list):
        text = f"It returns a list, but {names[0]} must be an array. Convert it with np.array(…) or np.stack(…)."
        return Description("a list instead of an array", text)
    if len(output) != len(names):
        missing = [name for name in names if name not in found]
        if len(output) < len(names):
            text = f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} missing; the rest is right."
            right = [name for name in found if name] if None not in found else []
            return Description("returns too little", text if right else "")
        text = f"It returns {listed(names)}, and more." if not missing else ""
        return Description("returns too much", text)
    nothing = [name for name, value in zip(names, output, strict=True) if value is None or value is ...]
    if nothing:
        right = [name for name in found if name]
        wrong = [name for name in names if name not in (*nothing, *right)]
        said = [
            f"{listed(some)} {'is' if len(some) == 1 else 'are'} {how}"
            for some, how in ((right, "right"), (wrong, "wrong")) if some
        ]  # fmt: skip
        return Description("returns None for a result", f"Of the rest, {', '.join(said)}." if said else "")
    lists = [name for name, value in zip(names, output, strict=True) if isinstance(value, list | tuple)]
    if lists:
        kind = type(output[names.index(lists[0])]).__name__
        text = f"{listed(lists)} must be an array, not a {kind}. Convert it with np.array(…)."
        return Description("a list instead of an array", text)
    strange = [value for value in output if np.asarray(value).dtype.kind not in "biuf"]
    return _about_one(names, strange[0], expected) if strange else Description(None, "")


def _about_one(names, value, expected):
    array = np.asarray(value) if isinstance(value, np.ndarray | np.generic) else None
    if array is not None and array.dtype.kind == "c":
        return Description(
            "complex numbers", "The numbers are complex. Is there a root or a power of a negative number?"
        )
    if array is not None and array.dtype.kind == "O" and array.ndim:
        text = "The array has dtype object. It was made from arrays of different shapes, or from None."
        return Description("an array of objects", text)
    if type(value).__name__ == "generator":
        return Description("a generator", "It returns a generator. Convert it to an array with np.stack(list(…)).")
    if array is not None and len(names) > 1:
        right = _which(array, names, expected)
        if right:
            missing = listed(name for name in names if name != right)
            return Description("returns too little", f"It returns only {right}. It must also return {missing}.")
    return Description(None, "")


def _which(value, names, expected):
    """The name of the right result that a value equals, or None."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            return None
        return next((name for name, right in zip(names, expected, strict=True) if close(array, right)), None)
    except (ValueError, TypeError):
        return None
