"""Advice on an exception, in addition to Python's own message."""

import re
from itertools import permutations

import numpy as np

from ..hypothesis import Hypothesis
from ..words import listed
from .draw import Draw


def about_crash(crash, case, inputs):
    """The Hypothesis on a crash in a case, given its arguments by name."""
    if crash.advice and crash.kind == "NotImplementedError":
        return Hypothesis("not finished", crash.advice)
    if crash.advice:
        optional = crash.advice.startswith("The answer has no optional")
        name = f"no parameter {' and '.join(_quoted(crash.advice))}" if optional else "other parameters"
        return Hypothesis(name, crash.advice)
    if crash.kind == "ModuleNotFoundError":
        text = "Answers are graded with Python's standard library and NumPy alone: write it with these."
        return Hypothesis("a module that is not there", text)
    if crash.kind == "TypeError" and "NoneType" in crash.text and "not callable" not in crash.text:
        nothing = [name for name, value in inputs.items() if value is None]
        if nothing:
            text = f"In this case {listed(nothing)} is None. The answer must also work without it."
            return Hypothesis(f"{listed(nothing)} may be None", text)
    raised = f"{crash.text} of a shape" if ".shape[" in crash.trace else crash.text
    if of_python := re.search(r"(?<![\w.])(max|min|sorted)\(", crash.trace):
        raised += f" in {of_python[1]}"
    sizes, given = _sizes_in(crash.text, case, inputs), _arguments(case, inputs)
    for kinds, pattern, name, text in _KNOWN:
        if crash.kind in kinds.split() and re.search(pattern, raised):
            return Hypothesis(name, " ".join([text, *(sizes if crash.kind == "IndexError" else ()), *given]))
    if crash.kind in _OF_SHAPES:
        advice, name = _transposed(crash, inputs), "`.T` of more than two axes"
        if not advice:
            advice, name = _without_axis(crash.text), "missing axis"
        is_empty = re.search(r"\((?:\d+,\s?)*0(?:,\s?\d+)*,?\)", crash.text)  # a shape
        if not advice and is_empty and all(np.size(value) for value in inputs.values()):
            advice, name = ["An array here has an axis of length 0."], "a slice behind the end"
            advice[0] += " Does a slice begin behind the end of its axis, or end at −0?"
        return Hypothesis(name if advice else None, " ".join([*advice, *sizes, *given]))
    return Hypothesis(None, "")


FIXED_AXES = "a fixed number of axes"
_OF_SHAPES = ("ValueError", "IndexError", "LinAlgError", "AxisError", "TypeError", "ZeroDivisionError")
_KNOWN = (  # kinds of exceptions, a pattern of their message, the name of the mistake, the advice
    ("ValueError", "(not enough|too many) values to unpack", FIXED_AXES,
     "The answer expects a fixed number of axes, but the number differs between cases. Count axes from the end: "
     "x.shape[-1], axis=-1."),
    ("AxisError", r"axis -\d+ is out of bounds", FIXED_AXES,
     "The array has fewer axes than that: their number differs between cases, and a row alone has one."),
    ("AxisError IndexError", "axis .* out of bounds|too many indices|tuple index out of range of a shape", FIXED_AXES,
     "The array has no such axis: the number of axes differs between cases. Count axes from the end: axis=-1, x[..., "
     "0]."),
    ("ValueError", "string contains too many subscripts|^operand has more dimensions than subscripts", FIXED_AXES,
     "np.einsum needs one letter for each axis of an array, and this one has another number of axes. Where it "
     "differs between cases, `...` stands for the axes in front: `...i,io->...o`."),
    ("TypeError", r"'(numpy\.\w+|int|float)' object is not (iterable|subscriptable)|iteration over a 0-d array",
     FIXED_AXES,
     "This is a single number, no row of numbers: the number of axes differs between cases. Work on whole arrays, or "
     "on the rows of reshape(-1, …)."),
    ("ValueError", "math domain error|expected a (positive|nonnegative) (input|number)",
     "outside of the function's domain",
     "math.log needs a number above 0, math.sqrt one that is not below 0. Compute it only where it is needed."),
    ("ValueError", "truth value of an array.* in (max|min|sorted)$", "Python's max, min or sorted of arrays",
     "max, min and sorted of Python ask which of two things is larger, and two arrays give many answers. "
     "np.maximum(a, b) and np.minimum(a, b) take each pair of numbers; x.max(axis=…) is the largest along an axis."),
    ("ValueError", "truth value of an array", "an array as a condition",
     "`if`, `and`, `or` and `not` need one truth value, not an array. For arrays use np.where, `&`, `|` and `~`. To "
     "test for a missing argument use `is None`."),
    ("ValueError", "inhomogeneous shape", "arrays of different shapes as one",
     "One array is made here of a list or tuple whose parts differ in shape. Is it a tuple of several results, of "
     "which one is meant?"),
    ("ValueError", "as_strided", "a view outside of its array",
     "With this shape and these strides as_strided reads memory that belongs to others. Strides count bytes. "
     "np.lib.stride_tricks.sliding_window_view makes windows and needs no strides."),
    ("ValueError", "read-only", "writes into a read-only array",
     "This array is read-only. Make a new array or a copy."),
    ("UFuncTypeError TypeError", r"dtype\('O'\)|operand type.* 'NoneType'", "computes with None",
     "One of the values here is None or a list, not an array: is it an argument that this call leaves out, or the "
     "result of a function without `return`?"),
    ("ValueError", r"matmul: Input operand \d does not have enough dimensions \(has 0", "computes with None",
     "One side of this product is None or a single number, not an array: is it the result of a function without "
     "`return`?"),
    ("UFuncTypeError _UFuncOutputCastingError UFuncOutputCastingError", "Cannot cast",
     "writes floats into an integer array",
     "An array of integers or truth values cannot store floats. Make a float array first."),
    ("IndexError", "arrays used as indices must be of integer", "floats as indices",
     "Indices must be integers. Convert them with .astype(int)."),
    ("IndexError", "boolean index did not match", "a Boolean index of another shape",
     "A Boolean array as an index must have the axes of the array, or the first of them: it is not broadcast. "
     "np.where(mask, …, …) broadcasts."),
    ("ValueError", "output has more dimensions than subscripts", "an ellipsis in einsum",
     "In np.einsum the axes of `...` can only be kept, `...i,...o->...io`. To sum over them, give them letters, or "
     "first make one axis of them with reshape."),
    ("ZeroDivisionError", "division by zero|modulo", "a division by 0",
     "The divisor is 0 in this call. Ask for that before the division: what must the result be then?"),
    ("NameError", "name '(np|numpy)' is not defined", "NumPy is not imported",
     "`import numpy as np` is missing at the top of the file."),
    ("NameError", "is not defined", "a name without a value",
     "Nothing has this name here: it is misspelt, no line gives it a value, or only another function does so, for "
     "itself."),
    ("UnboundLocalError", "", "a variable without a value",
     "In this call no line has given the variable a value before: look at the branches and loops that could."),
    ("TypeError", "cannot be interpreted as an integer|expected a sequence of integers|slice indices must be integers",
     "a float as a size or index",
     "A size, an index or a number of steps must be an int. `/` gives a float, `//` an int."),
    ("TypeError", "only integer scalar arrays can be converted to a scalar index", "an array as a single place",
     "An end of a slice, a place in a list and a count of range are a single number each, and this is an array. An "
     "index array takes several places at once: x[starts[:, None] + np.arange(n)]."),
    ("IndexError", r"index -?\d+ is out of bounds|(list|tuple) index out of range$", "a place behind the end",
     "The places of n entries are 0 … n − 1: does a loop, or a place such as i + 1, go beyond the last one here?"),
    ("TypeError", "only .* arrays can be converted to Python scalars", "a function of single numbers for an array",
     "The functions of math, float() and int() take a single number. NumPy's own, such as np.exp for math.exp, take "
     "whole arrays."),
    ("TypeError", "object is not callable", "calls what is no function",
     "What is called here is no function in this call: has a parameter or a variable the same name?"),
    ("TypeError", "unhashable type: 'numpy.ndarray'", "an array as a key",
     "An array can change, so it is no key of a dict and no item of a set. @lru_cache and @cache keep their results in "
     "a dict whose keys are the arguments: they work for numbers, not for arrays."),
    ("RecursionError", "", "endless recursion",
     "The function calls itself, directly or through another function, and never stops."),
)  # fmt: skip


def _quoted(text):
    return re.findall(r"`(\w+)`", text)


def _sizes_in(text, case, inputs):
    """A sentence with the letters for the shapes and sizes in NumPy's message, or with the arguments of such a size."""
    sizes = case.sizes | {name: value for name, value in inputs.items() if type(value) is int}
    draw = Draw("", "...", np.zeros(()), np.zeros(()), sizes)
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


def _transposed(crash, inputs):
    """[a sentence on `.T` of an argument of more than two axes], if it stands in a student's line."""
    for name in re.findall(r"\b(\w+)\.T\b", crash.trace):
        array = inputs.get(name)
        if isinstance(array, np.ndarray) and array.ndim > 2:
            return [
                f"`.T` reverses all axes: of {name} {array.shape} it makes {array.T.shape}. np.swapaxes exchanges two "
                "axes, np.moveaxis moves one; for a sum over all rows, first make rows of the leading axes by reshape."
            ]
    return []


def _without_axis(text):
    """[a sentence on two shapes of NumPy's message of which one lacks an axis between or behind its own]"""
    shapes = [tuple(map(int, re.findall(r"\d+", s))) for s in re.findall(r"\((\d+(?:,\d*)*)\)", text)]
    for short, long in permutations(shapes, 2) if "broadcast" in text else ():
        end = long[-len(short) - 1 :]
        whole = f"{long}" if end == long else f"the end {end} of {long}"
        if short and short == end[:-1]:
            return [
                f"{short} is {whole} without the last axis, but NumPy aligns shapes from the right. If a sum or a mean "
                "has lost the axis, keepdims=True keeps it; x[..., None] adds one at the end."
            ]
        for axis in range(1, len(end) - 1):
            others = (*end[:axis], *end[axis + 1 :])
            if len(short) == len(others) and all(a == b or b == 1 for a, b in zip(short, others, strict=True)):
                how = "is" if short == others else "fits"
                return [
                    f"{short} {how} {whole} without axis {axis}, but NumPy aligns shapes from the right: "
                    f"np.expand_dims(x, {axis}) adds an axis of length 1 there."
                ]
    return []


def _arguments(case, inputs):
    """A sentence with the shapes of the case's arrays, of which a call may get a part, such as one token."""
    shapes = [f"{name} {value.shape}" for name, value in inputs.items() if isinstance(value, np.ndarray)]
    sizes = ", ".join(f"{letter} = {size}" for letter, size in case.sizes.items())
    given = [f"The arrays of this case are {', '.join(shapes)}{f'; {sizes}' if sizes else ''}."] if shapes else []
    return given or ([f"The sizes in this case are {sizes}."] if sizes else [])
