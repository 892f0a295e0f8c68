"""Finders for wrong numbers in the right shape."""

import re
from itertools import chain, combinations, permutations
from math import log, pi, prod

import numpy as np

from ...guard import UNSET
from ..compare import TOLERANCE, close
from ..words import listed
from .draw import broadcasts, close_where_finite, floats


def numbers_that_are_not_set(draw):
    """What np.empty has left in an array, or what was added to it."""
    if draw.actual.dtype.kind in "iuf" and draw.wrong.any():
        text = f"{draw.name} has entries that no line has set: np.empty leaves in them what the memory holds"
        for there in (UNSET, draw.expected + UNSET if not draw.is_boolean else UNSET):
            array = np.where(draw.wrong, there, draw.expected)
            yield "np.empty is not filled", f"{text} (here, always {UNSET}). np.zeros sets all to 0.", array


def truth_values(draw):
    expected, name = draw.expected, draw.name
    if not draw.is_boolean:
        if draw.actual.dtype == bool and np.array_equal(draw.actual, np.isneginf(expected)):
            text = f"{name} is Boolean. It must hold numbers: 0 for visible and −inf for hidden."
            yield "True and False instead of numbers", text
        return
    actual, kind, what = _as_truth(draw)
    if actual is None:
        return
    if kind and close(actual, expected):
        yield kind, f"{name} {what}, in the right places. It must hold True and False (dtype bool)."
    also = f" Also, it {what}, but it must be Boolean." if kind else ""
    if close(actual, ~expected):
        hidden = " True means hidden." if name == "mask" else ""
        yield "inverted", f"{name} is inverted: True and False are swapped.{hidden}{also}"
    if actual.ndim < 2 or actual.all() or not actual.any():
        return
    for k, where in ((1, "too far right"), (-1, "too far left")) if not kind else ():
        own, inside = (actual, expected) if k > 0 else (expected, actual)
        if np.array_equal(own[..., 1:], inside[..., :-1]):
            text = f"{name} is off by one along {draw.letters[-1]}: every edge is one column {where}."
            yield "off by one diagonal", text


def _as_truth(draw):
    """(The answer's mask as truth values or None, what it is instead, what is said of that)."""
    if draw.actual.dtype == bool:
        return draw.actual, "", ""
    values = draw.actual.astype(float)
    hidden = values < 0
    if np.isin(values, (0, 1)).all():
        return values == 1, "numbers instead of True and False", "holds the numbers 0 and 1"
    if np.isin(values[~hidden], (0, 1)).all() and hidden.any():
        return hidden, "an additive mask", "is an additive mask"
    return None, "", ""


def nothing_but_one_number(draw):
    if draw.actual.size < 2:
        return
    first = draw.actual.flat[0]
    if np.isnan(draw.actual.astype(float)).all():
        text = "NaN comes from 0/0, ∞/∞, ∞ − ∞ and 0 · ∞, and from the logarithm or root of a negative number."
        yield "NaN everywhere", f"{draw.name} is NaN everywhere. {text}"
    elif (draw.actual == first).all():
        if draw.is_boolean and draw.actual.dtype == bool:
            yield f"{first} everywhere", f"{draw.name} is {first} everywhere."
        elif first == 0:
            yield "all zeros", f"{draw.name} is 0 everywhere{' in this case' if draw.earlier else ''}."
        else:
            text = f"{draw.name} is the same number everywhere, here {first:.6g}."
            yield "the same number everywhere", text


def another_array(draw):
    for name, array in draw.inputs.items():
        yield f"returns {name}", f"{draw.name} has the numbers of {name}, unchanged.", array
    for name, array in draw.others.items():
        if name != draw.name and close(draw.returned[name], draw.expected):
            first, second = sorted((draw.name, name), key=list(draw.others).index)
            text = f"{first} and {second} are swapped: the numbers are right, but the order is wrong."
            yield f"{first} and {second} swapped", text, array
        elif name != draw.name:
            yield f"{name} instead of {draw.name}", f"The array returned as {draw.name} is {name}.", array


def an_earlier_result(draw):
    text = f"{draw.name} is the result of an earlier call with other inputs. Something is kept between calls."
    for array in draw.earlier if draw.expected.size > 1 or not draw.is_boolean else ():  # one Boolean is by chance
        yield "the result of an earlier call", text, array


def a_factor_or_a_term(draw):
    if floats(draw) is None:
        return
    actual, expected = floats(draw)
    square = np.vdot(expected, expected)
    ratio = float(np.vdot(actual, expected) / square) if square else 0
    if ratio and close_where_finite(draw, ratio * draw.expected):
        if abs(ratio + 1) < 1e-4:
            yield "wrong sign", f"{draw.name} has the wrong sign: it is −1 times the right result."
        for name in _names_of(ratio, draw.sizes, draw.numbers):
            text = f"{draw.name} is {name} times the right result.{_about_factor(name)}"
            yield f"constant factor {name}", text
        if f"{ratio:.3g}" != "1":
            yield f"constant factor {ratio:.3g}", f"{draw.name} is {ratio:.3g} times the right result."
    offset = float(np.mean(actual - expected))
    if draw.expected.size > 1 and offset and close_where_finite(draw, draw.expected + offset):
        names = _names_of(offset, draw.sizes, draw.numbers)
        for name in ["1" if offset > 0 else "−1"] if abs(abs(offset) - 1) <= 1e-4 else [*names, f"{offset:.3g}"]:
            yield f"constant offset {name}", f"{draw.name} is the right result plus {name}."


def _about_factor(name):
    name = name.removeprefix("−")
    letters = "".join(c for c in name if c.isalpha())
    if re.fullmatch(r"√\w+", name):
        return f" The factor 1/{name} is missing."
    if re.fullmatch(r"1/√\w+", name):
        return f" There is a factor {name} too many."
    if name.startswith("1/") and "√" not in name and " " not in name and letters:
        sizes = name[2:].strip("()").split("·")
        mean = ", or a mean instead of a sum" if letters.isupper() else f", or is a factor {listed(sizes)} missing"
        return f" Is there an extra division by {listed(sizes)}{mean}?"
    if not set("/√ ²") & set(name) and letters.isupper():
        return f" Is a division by {listed(name.split('·'))} missing, or a sum used instead of a mean?"
    return ""


def an_input_too_much_or_missing(draw):
    if floats(draw) is None:
        return
    right, said = draw.expected, f"{draw.name} is the right result"
    for name, array in draw.inputs.items():
        if array.dtype.kind in "fb" and broadcasts(array, right) and np.isfinite(array).all() and array.any():
            array = array.astype(float)
            yield f"{name} added", f"{said} plus {name}.", right + array
            text = f"{said} minus {name}. Is {name} not added, or subtracted?"
            yield f"{name} not added", text, right - array
            yield f"{name} as an extra factor", f"{said} times {name}.", right * array
            text = f"{said} divided by {name}. Is a factor {name} missing?"
            yield f"{name} missing as a factor", text, right / array
    for name, array in draw.others.items():
        if name != draw.name and array.shape == right.shape and array.dtype.kind == "f":
            yield f"{name} added to {draw.name}", f"{said} plus {name}.", right + array


def other_order_of_axes(draw):
    right = draw.expected
    for order in permutations(range(right.ndim)) if draw.actual.ndim == right.ndim else ():
        axes = listed(draw.letters[i] for i, j in enumerate(order) if i != j)
        text = f"{draw.name} is transposed: the numbers are right, but the axes {axes} are in the wrong order."
        yield "transposed", text, right.transpose(order)


def other_order_along_an_axis(draw):
    right, name = draw.expected, draw.name
    for axis, letter in enumerate(draw.letters):
        n = right.shape[axis]
        if n < 2:
            continue
        yield f"reversed along {letter}", f"{name} is in reverse order along {letter}.", np.flip(right, axis)
        for k in (k for places in range(1, n) for k in (places, -places)):
            many = "one place" if abs(k) == 1 else f"{abs(k)} places"
            how = f"{'forward' if k > 0 else 'backward'} along {letter} by {many}"
            text = f"{name} is rolled {how}: entries that leave at one end come back at the other."
            yield f"rolled {how}", text, np.roll(right, k, axis)
            for fill in (False, True) if draw.is_boolean else (0,):
                text = f"{name} is right, but shifted {how}. The empty places hold {fill}."
                yield f"shifted {how}", text, _shifted(right, k, axis, fill)


def _shifted(array, k, axis, fill):
    """The array shifted by k places along an axis, with `fill` in the empty places."""
    moved = np.moveaxis(np.full_like(array, fill), axis, 0)
    source = np.moveaxis(array, axis, 0)
    if k > 0:
        moved[k:] = source[:-k]
    else:
        moved[:k] = source[-k:]
    return np.moveaxis(moved, 0, axis)


_ELEMENTWISE = {
    "the absolute value": np.abs, "the square": np.square, "the square root": np.sqrt, "the logarithm": np.log,
    "minus the logarithm": lambda x: -np.log(x), "the logarithm to base 2": np.log2, "the exponential": np.exp,
    "the exponential of the negative": lambda x: np.exp(-x), "the reciprocal": np.reciprocal,
    "1 −": lambda x: 1 - x, "the cube": lambda x: x**3, "the reciprocal square": lambda x: x**-2.0,
    "the tanh": np.tanh, "the ReLU": lambda x: np.maximum(x, 0), "the sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "the sign": np.sign,
}  # fmt: skip


def function_of_each_number(draw):
    right = draw.expected
    if floats(draw) is None or right.dtype.kind != "f":
        return
    for name, function in _ELEMENTWISE.items():
        name = f"{name}{' of' * (name != '1 −')} the right result"
        yield name, f"{draw.name} is {name}.", function(right)
    for name, function in (("rounded", np.round), ("truncated to integers", np.trunc)):
        yield name, f"{draw.name} is {name}. Is it stored in an integer array?", function(right)
    for sign, word in ((1, "plus"), (-1, "minus")) if right.ndim > 1 and right.shape[-1] == right.shape[-2] else ():
        text = f"{draw.name} is the right result {word} the identity matrix."
        yield f"{word} the identity", text, right + sign * np.eye(right.shape[-1])


ROUNDED = 1e-9  # relative to the largest number


def nearly_right(draw):
    if floats(draw) is None or draw.expected.dtype.kind != "f":
        return
    actual, right = floats(draw)
    largest, error = np.abs(right).max(initial=1e-30), np.abs(actual - right)
    if (error <= 3e-3 * np.maximum(np.abs(right), 1e-2 * largest)).all():
        many, of_all = (error > ROUNDED * largest).sum(), draw.wrong.size  # the others are right to the last digits
        where = ""
        cause = (
            "Low precision (float16), a rounded constant, or a small term such as eps missing or misplaced does that."
        )
        if 2 * many < of_all:
            where = f" of {many} of {of_all} numbers"
            cause = "What is special about these: is a bound too narrow for them, or a small term missing?"
        error = f"the error{where} is {error.max() / largest:.1g} times the largest number"
        yield "nearly right", f"{draw.name} is nearly right: {error}. {cause}"


OF_NUMBERS = (
    numbers_that_are_not_set, truth_values, nothing_but_one_number, another_array, a_factor_or_a_term,
    other_order_of_axes, an_input_too_much_or_missing, other_order_along_an_axis, function_of_each_number,
    nearly_right,
)  # fmt: skip


# --- numbers as expressions in a case's sizes: 0.1667 is 1/(B·T) ------------------------------------------------------

_CONSTANTS = {
    "2": 2, "1/2": 0.5, "4": 4, "1/4": 0.25, "√2": 2**0.5, "1/√2": 0.5**0.5, "√(2/π)": (2 / pi) ** 0.5,
    "ln 2": log(2), "1/ln 2": 1 / log(2), "ln 10": log(10), "1/ln 10": 1 / log(10),
}  # fmt: skip


def _names_of(number, sizes, numbers=None):
    """Expressions for a number, simplest first: constants, and products, quotients and roots of the sizes and of the
    single arguments; with a minus if it is negative."""
    found = []
    for name, value in _candidates(sizes, numbers or {}).items():
        if abs(abs(number) - abs(value)) <= 10 * TOLERANCE * abs(value):
            turned = f"−({name})" if " − " in name and name[0] != "√" else f"−{name}"
            found.append(name if number * value > 0 else turned)
    return found


def _candidates(sizes, numbers):
    every = [*sizes.values()]
    sizes = {letter: size for letter, size in sizes.items() if size > 1 and every.count(size) == 1}
    found = dict(_CONSTANTS)
    subsets = chain.from_iterable(combinations(sizes, n) for n in range(1, min(5, len(sizes) + 1)))
    for letters in subsets:
        product, value = "·".join(letters), prod(sizes[letter] for letter in letters)
        bracket = f"({product})" if len(letters) > 1 else product
        found |= {product: value, f"1/{bracket}": 1 / value, f"√{bracket}": value**0.5, f"1/√{bracket}": value**-0.5}
        less = f"{product} − 1"
        found |= {f"{product}/({less})": value / (value - 1), f"({less})/{product}": (value - 1) / value}
    for a, b in permutations(sizes, 2):
        found |= {f"{a}/{b}": sizes[a] / sizes[b], f"√({a}/{b})": (sizes[a] / sizes[b]) ** 0.5}
    for name, value in numbers.items():
        found |= _powers(name, value)
        for letters in chain(combinations(sizes, 1), combinations(sizes, 2)):  # such as a mean without the scale
            product, size = "·".join(letters), prod(sizes[letter] for letter in letters)
            if value not in (0, 1, -1):
                bracket = f"({product})" if len(letters) > 1 else product
                found |= {f"1/({product}·{name})": 1 / (size * value), f"{name}/{bracket}": value / size}
        if 0 < value < 1:
            found |= _powers(f"(1 − {name})", 1 - value)
    return found


def _powers(name, value):
    if value in (0, 1, -1):
        return {}
    plain = name[1:-1] if name.startswith("(") else name
    powers = {plain: value, f"1/{name}": 1 / value, f"{name}²": value**2, f"1/{name}²": value**-2}
    return powers | ({f"√{name}": value**0.5, f"1/√{name}": value**-0.5} if value > 0 else {})
