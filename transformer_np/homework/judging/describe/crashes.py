"""What may be said of an exception beside what Python says."""

import re

import numpy as np

from .draw import Description, Draw, listed


def about_crash(crash, case, inputs):
    """The description of a crash in a case, given its arguments by name."""
    if crash.advice:
        optional = crash.advice.startswith("The answer has no optional")
        name = f"no parameter {' and '.join(_quoted(crash.advice))}" if optional else "other parameters"
        return Description(name, crash.advice)
    for kinds, pattern, name, text in _KNOWN:
        if crash.kind in kinds and re.search(pattern, crash.text):
            return Description(name, " ".join([text, *_arguments(case, inputs)]))
    if crash.kind == "TypeError" and "NoneType" in crash.text:
        nothing = [name for name, value in inputs.items() if value is None]
        if nothing:
            text = f"{listed(nothing)} is None in this case: that stands for leaving it out."
            return Description(f"{listed(nothing)} may be None", text)
    if crash.kind in _OF_SHAPES:
        return Description(None, " ".join([*_sizes_in(crash.text, case), *_arguments(case, inputs)]))
    return Description(None, "")


_OF_SHAPES = ("ValueError", "IndexError", "LinAlgError", "AxisError", "TypeError", "ZeroDivisionError")
_KNOWN = (
    (
        ("ValueError",),
        r"(not enough|too many) values to unpack",
        "a fixed number of axes",
        "The answer expects another number of axes than came. Axes counted from the end (x.shape[-1], axis=-1) are "
        "always right.",
    ),
    (
        ("AxisError", "IndexError"),
        r"axis .* out of bounds|too many indices",
        "a fixed number of axes",
        "There is no such axis here. Axes counted from the end (axis=-1, x[..., 0]) are always right.",
    ),
    (
        ("ValueError",),
        r"truth value of an array",
        "an array as a condition",
        "`if`, `and`, `or` and `not` take one truth value, not an array: np.where, `&`, `|`, `~` are for arrays, "
        "`is None` for a mask that may be left out.",
    ),
    (
        ("ValueError",),
        r"read-only",
        "writes into an array that is read-only",
        "This array cannot be written to: work on a new one, or on a copy.",
    ),
    (
        ("UFuncTypeError", "_UFuncOutputCastingError", "UFuncOutputCastingError"),
        r"Cannot cast",
        "writes floats into whole numbers",
        "An array of whole numbers or truth values cannot take floats in place: make a float array first.",
    ),
    (
        ("IndexError",),
        r"arrays used as indices must be of integer",
        "floats as indices",
        "Indices must be whole numbers: .astype(int).",
    ),
    (
        ("RecursionError",),
        "",
        "calls itself without end",
        "The function calls itself, directly or through another one, and nothing ends it.",
    ),
)


def _quoted(text):
    return re.findall(r"`(\w+)`", text)


def _sizes_in(text, case):
    """The letters for the shapes and sizes that NumPy names."""
    draw = Draw("", "...", np.zeros(()), np.zeros(()), case.sizes)
    found = {}
    for shape in re.findall(r"\((\d+(?:,\s?\d+)*),?\)", text):
        sizes = [int(size) for size in shape.split(",")]
        letters = draw.letters_of(sizes)
        if not any(letter.startswith("axis") for letter in letters):
            found[f"({','.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"] = f"({', '.join(letters)})"
    for size in re.findall(r"size (\d+)|different from (\d+)", text):
        number = int("".join(size))
        letter = draw.letter_of(number, 0)
        if not letter.startswith("axis"):
            found[str(number)] = letter
    return [f"In this case {listed(f'{number} is {letter}' for number, letter in found.items())}."] if found else []


def _arguments(case, inputs):
    """The arguments that are arrays, with their shapes."""
    shapes = [f"{name} {value.shape}" for name, value in inputs.items() if isinstance(value, np.ndarray)]
    sizes = ", ".join(f"{letter} = {size}" for letter, size in case.sizes.items())
    given = [f"It was called with {', '.join(shapes)}{f'; {sizes}' if sizes else ''}."] if shapes else []
    return given or ([f"The sizes in this case: {sizes}."] if sizes else [])
