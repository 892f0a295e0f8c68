"""Finders for wrong numbers in the right shape."""

import re
from functools import partial
from itertools import permutations

import numpy as np

from ..attempt import UNSET
from ..compare import close
from ..words import listed
from .draw import (
    NAN_ADVICE,
    Description,
    broadcasts,
    close_where_finite,
    count_of_places,
    floats,
    same,
    subsets,
)
from .factors import names_of

MOST_PLACES = 4  # of a shift


def numbers_that_are_not_set(draw):
    """What np.empty has left in an array, or what was added to it."""
    if draw.actual.dtype.kind not in "iuf":
        return
    got, right = draw.actual[draw.wrong], draw.expected[draw.wrong]
    if got.size and any(close(array, np.full_like(got, UNSET)) for array in (got, got - right)):
        text = f"{draw.name} has entries that no line has set: np.empty leaves in them what the memory holds"
        yield Description("np.empty is not filled", f"{text} (here, always {UNSET}). np.zeros sets all to 0.")


def nothing_but_one_number(draw):
    if draw.actual.size < 2:
        return
    first = draw.actual.flat[0]
    if np.isnan(draw.actual.astype(float)).all():
        yield Description("NaN everywhere", f"{draw.name} is NaN everywhere." + NAN_ADVICE)
    elif (draw.actual == first).all():
        if draw.is_boolean and draw.actual.dtype == bool:
            yield Description(f"{first} everywhere", f"{draw.name} is {first} everywhere.")
        elif first == 0:
            yield Description("all zeros", f"{draw.name} is 0 everywhere{' in this case' if draw.earlier else ''}.")
        else:
            yield Description(
                "the same number everywhere", f"{draw.name} is the same number everywhere, here {first:.6g}."
            )


def another_array(draw):
    for name, array in draw.inputs.items():
        if same(draw.actual, array):
            yield Description(f"returns {name}", f"{draw.name} has the numbers of {name}, unchanged.")
    for name, array in draw.others.items():
        if name == draw.name or not same(draw.actual, array):
            continue
        if close(draw.returned[name], draw.expected):
            first, second = sorted((draw.name, name), key=list(draw.others).index)
            text = f"{first} and {second} are swapped: the numbers are right, but the order is wrong."
            yield Description(f"{first} and {second} swapped", text)
        else:
            yield Description(f"{name} instead of {draw.name}", f"The array returned as {draw.name} is {name}.")


def an_earlier_result(draw):
    for array in draw.earlier:
        if same(draw.actual, array):
            text = f"{draw.name} is the result of an earlier call with other inputs. Something is kept between calls."
            yield Description("the result of an earlier call", text)


def constant_ratio(draw):
    if floats(draw) is None:
        return
    ratio = _ratio(draw)
    if ratio is None:
        return
    if abs(ratio + 1) < 1e-4:
        yield Description("wrong sign", f"{draw.name} has the wrong sign: it is −1 times the right result.")
        return
    for name in names_of(ratio, draw.sizes, draw.numbers):
        text = f"{draw.name} is {name} times the right result.{_in_words(name)}"
        yield Description(f"constant factor {name}", text)
    number = f"{ratio:.3g}"
    if number == "1":
        return  # nothing that a student could look for
    yield Description(f"constant factor {number}", f"{draw.name} is {number} times the right result.")


def _ratio(draw):
    """The factor between actual and right result, or None."""
    actual, expected = floats(draw)
    square = np.vdot(expected, expected)
    if not square:
        return None
    ratio = float(np.vdot(actual, expected) / square)
    return ratio if ratio and close_where_finite(draw, ratio * draw.expected) else None


def _in_words(name):
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
    if "/" not in name and "√" not in name and " " not in name and "²" not in name and letters.isupper():
        return f" Is a division by {listed(name.split('·'))} missing, or a sum used instead of a mean?"
    return ""


def constant_offset(draw):
    if floats(draw) is None or draw.expected.size < 2:
        return
    actual, expected = floats(draw)
    offset = float(np.mean(actual - expected))
    if not offset or not close_where_finite(draw, draw.expected + offset):
        return
    names = names_of(offset, draw.sizes, draw.numbers) if abs(abs(offset) - 1) > 1e-4 else ["1" if offset > 0 else "−1"]
    for name in [*names, f"{offset:.3g}"]:
        yield Description(f"constant offset {name}", f"{draw.name} is the right result plus {name}.")


def an_input_too_much_or_missing(draw):
    if floats(draw) is None:
        return
    expected = draw.expected
    for name, array in draw.inputs.items():
        if array.dtype.kind not in "fb" or not broadcasts(array, expected):
            continue
        array = array.astype(float)
        if np.isfinite(array).all() and array.any():
            if same(draw.actual, expected + array):
                yield Description(f"{name} added", f"{draw.name} is the right result plus {name}.")
            if same(draw.actual, expected - array):
                text = f"{draw.name} is the right result minus {name}. Is {name} not added, or subtracted?"
                yield Description(f"{name} not added", text)
            if same(draw.actual, expected * array):
                yield Description(f"{name} as an extra factor", f"{draw.name} is the right result times {name}.")
            if same(draw.actual * array, expected):
                text = f"{draw.name} is the right result divided by {name}. Is a factor {name} missing?"
                yield Description(f"{name} missing as a factor", text)
    for name, array in draw.others.items():
        if name != draw.name and array.shape == expected.shape and array.dtype.kind == "f":
            if same(draw.actual, expected + array):
                yield Description(f"{name} added to {draw.name}", f"{draw.name} is the right result plus {name}.")


def other_order_of_axes(draw):
    if draw.actual.ndim != draw.expected.ndim:
        return
    for order in permutations(range(draw.expected.ndim)):
        moved = draw.expected.transpose(order)
        if moved.shape == draw.actual.shape and same(draw.actual, moved):
            axes = listed(draw.letters[i] for i, j in enumerate(order) if i != j)
            text = f"{draw.name} is transposed: the numbers are right, but the axes {axes} are in the wrong order."
            yield Description("transposed", text)
            return


def other_order_along_an_axis(draw):
    actual, expected = draw.actual, draw.expected
    for axis, letter in enumerate(draw.letters):
        n = expected.shape[axis]
        if n < 2:
            continue
        if same(actual, np.flip(expected, axis)):
            yield Description(f"reversed along {letter}", f"{draw.name} is in reverse order along {letter}.")
        for places in range(1, min(n, MOST_PLACES + 1)):
            for k in (places, -places):
                how = f"{'forward' if k > 0 else 'backward'} along {letter} by {count_of_places(abs(k))}"
                if same(actual, np.roll(expected, k, axis)):
                    text = f"{draw.name} is rolled {how}: entries that leave at one end come back at the other."
                    yield Description(f"rolled {how}", text)
                for fill in (False, True) if draw.is_boolean else (0,):
                    if same(actual, _shifted(expected, k, axis, fill)):
                        text = f"{draw.name} is right, but shifted {how}. The empty places hold {fill}."
                        yield Description(f"shifted {how}", text)
        for index, which in ((0, "first"), (n - 1, "last")):
            if same(actual, np.broadcast_to(expected.take([index], axis), expected.shape)):
                text = f"{draw.name} repeats its {which} entry along {letter} at every place."
                yield Description(f"the {which} along {letter} repeated", text)
        order = _order(actual, expected, axis)
        if order is not None:
            name = "heads permuted" if letter == "H" else f"another order along {letter}"
            text = f"{draw.name} has the wrong order along {letter}: it holds the right entries in the order {order}."
            yield Description(name, text)
        moved = _moved(actual, expected, axis)
        if moved:
            shown = listed(f"that of {letter.lower()} = {j} is at {i}" for i, j in list(moved.items())[:3])
            text = f"{draw.name} holds the right entries along {letter} in other places, and 0 elsewhere: {shown}."
            yield Description(f"other places along {letter}", text)


def _moved(actual, expected, axis):
    """{place: that where the right result has the same entries} of those that are in another place, if all others are
    0 in both; {} if there are no such ones."""
    if actual.dtype == bool or actual.ndim < 2:
        return {}
    actual, expected = np.moveaxis(actual, axis, 0), np.moveaxis(expected, axis, 0)
    own, right = ([i for i, part in enumerate(array) if np.any(part)] for array in (actual, expected))
    found = {i: [j for j in right if close(actual[i], expected[j])] for i in own}
    single = sorted(places[0] for places in found.values() if len(places) == 1)
    if len(own) != len(right) or len(own) < 2 or single != right:
        return {}
    return {i: places[0] for i, places in found.items() if places != [i]}


def _shifted(array, k, axis, fill):
    """The array shifted by k places along an axis, with `fill` in the empty places."""
    moved = np.moveaxis(np.full_like(array, fill), axis, 0)
    source = np.moveaxis(array, axis, 0)
    if k > 0:
        moved[k:] = source[:-k]
    else:
        moved[:k] = source[-k:]
    return np.moveaxis(moved, 0, axis)


def _order(actual, expected, axis):
    """The order in which the actual result holds the entries of the right one, or None."""
    if actual.dtype == bool or expected.dtype == bool:
        return None  # truth values coincide too often
    actual, expected = np.moveaxis(actual, axis, 0), np.moveaxis(expected, axis, 0)
    order = []
    for part in actual:
        fits = [i for i, other in enumerate(expected) if close(part, other)]
        if len(fits) != 1:
            return None
        order += fits
    return order if sorted(order) == list(range(len(expected))) else None


def same_numbers_elsewhere(draw):
    if draw.is_boolean or draw.expected.size < 4 or draw.expected.ndim < 2:
        return
    for order in permutations(range(draw.expected.ndim)):
        if list(order) == sorted(order):
            continue
        if same(draw.actual, draw.expected.transpose(order).reshape(draw.actual.shape)):
            yield Description(
                "reshaped in the wrong order of axes",
                f"{draw.name} has the right numbers in the wrong places. A reshape only splits or joins neighbouring "
                "axes. To reorder axes, use a transpose before or after it.",
            )
            return


_ELEMENTWISE = {
    "the absolute value": np.abs,
    "the square": np.square,
    "the square root": np.sqrt,
    "the logarithm": np.log,
    "minus the logarithm": lambda x: -np.log(x),
    "the logarithm to base 2": np.log2,
    "the exponential": np.exp,
    "the exponential of the negative": lambda x: np.exp(-x),
    "the reciprocal": np.reciprocal,
    "1 − the right result": lambda x: 1 - x,
    "1 + the right result": lambda x: 1 + x,
    "the cube": lambda x: x**3,
    "the reciprocal square": lambda x: x**-2.0,
    "the tanh": np.tanh,
    "the ReLU": lambda x: np.maximum(x, 0),
    "the sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "the sign": np.sign,
    "rounded": np.round,
    "truncated to integers": np.trunc,
}


def function_of_each_number(draw):
    if floats(draw) is None or draw.expected.dtype.kind != "f":
        return
    with np.errstate(all="ignore"):
        for name, function in _ELEMENTWISE.items():
            if same(draw.actual, function(draw.expected)):
                if name in ("rounded", "truncated to integers"):
                    text = f"{draw.name} is {name}. Is it stored in an integer array?"
                else:
                    name = name if name.startswith("1 ") else f"{name} of the right result"
                    text = f"{draw.name} is {name}."
                yield Description(name, text)
                return
        if draw.expected.ndim >= 2 and draw.expected.shape[-1] == draw.expected.shape[-2]:
            for sign, word in ((1, "plus"), (-1, "minus")):
                if same(draw.actual, draw.expected + sign * np.eye(draw.expected.shape[-1])):
                    text = f"{draw.name} is the right result {word} the identity matrix."
                    yield Description(f"{word} the identity", text)


def function_of_each_row(draw):
    if floats(draw) is None or draw.expected.dtype.kind != "f":
        return
    actual, expected, letters = draw.actual, draw.expected, draw.letters
    with np.errstate(all="ignore"):
        for axes in subsets(draw.expected):
            along = listed(letters[i] for i in axes)
            total = partial(np.sum, axis=axes, keepdims=True)
            if np.prod([expected.shape[i] for i in axes]) < 2:
                continue
            if same(actual / total(actual), expected):
                text = f"{draw.name} would be right if it were divided by its own sum over {along}."
                yield Description(f"not divided by the sum over {along}", text)
            if same(actual, expected / total(expected)):
                yield Description(
                    f"divided by the sum over {along}", f"{draw.name} is divided by its own sum over {along}."
                )
            mean = expected.mean(axes, keepdims=True)
            if same(actual, expected - mean):
                text = f"The mean over {along} is subtracted from {draw.name}."
                yield Description(f"mean over {along} subtracted", text)
            if same(actual, np.broadcast_to(mean, expected.shape)):
                text = f"{draw.name} holds the mean of the right result over {along} at every place."
                yield Description(f"the mean over {along} everywhere", text)
            if same(actual, np.broadcast_to(total(expected), expected.shape)):
                text = f"{draw.name} holds the sum of the right result over {along} at every place."
                yield Description(f"the sum over {along} everywhere", text)
            if same(actual, expected / np.sqrt(total(expected**2))):
                text = f"{draw.name} is divided by its norm over {along}."
                yield Description(f"divided by the norm over {along}", text)
            powers = np.exp(expected - expected.max(axes, keepdims=True))
            if same(actual, powers / total(powers)):
                text = f"{draw.name} has an extra softmax over {along}."
                yield Description(f"softmax over {along} of the right result", text)
        for axis, letter in enumerate(letters):
            if expected.shape[axis] < 2:
                continue
            if same(actual, np.cumsum(expected, axis)):
                text = f"{draw.name} is a cumulative sum along {letter}: each place also contains the earlier ones."
                yield Description(f"cumulative sum along {letter}", text)
            if same(actual, np.flip(np.cumsum(np.flip(expected, axis), axis), axis)):
                text = (
                    f"{draw.name} is a cumulative sum along {letter} from the end: each place contains the later ones."
                )
                yield Description(f"cumulative sum along {letter} from the end", text)


def truth_values(draw):
    actual, expected, name = draw.actual, draw.expected, draw.name
    if not draw.is_boolean:
        return
    kind = ""
    if actual.dtype != bool:
        values = actual.astype(float)
        if np.isin(values, (0, 1)).all():
            kind, actual, what = "numbers instead of True and False", values == 1, "holds the numbers 0 and 1"
        elif np.isin(values[values > -1e4], (0, 1)).all() and (values <= -1e4).any():
            kind, actual, what = "an additive mask", values <= -1e4, "is an additive mask"
        else:
            text = f"{name} holds numbers (dtype {actual.dtype}). It must hold True and False (dtype bool)."
            yield Description("numbers instead of True and False", text, exact=False)
            return
        if close(actual, expected):
            text = f"{name} {what}, in the right places. It must hold True and False (dtype bool)."
            yield Description(kind, text)
            return
    also = f" Also, it {what}, but it must be Boolean." if kind else ""
    if close(actual, ~expected):
        yield Description("inverted", f"{name} is inverted: True and False are swapped. True means hidden.{also}")
        return
    if kind:
        text = f"{name} {what}, in the wrong places. It must hold True and False (dtype bool)."
        yield Description(kind, text, exact=False)
    if actual.ndim < 2 or actual.all() or not actual.any():
        return
    turned = expected.swapaxes(-1, -2)
    if turned.shape == actual.shape and close(actual, turned):
        text = f"{name} is transposed: rows and columns are swapped.{also}"
        yield Description("transposed", text)
    if not kind:
        yield from other_diagonal(draw)
    if turned.shape == actual.shape and close(actual, ~turned):
        yield Description("inverted and transposed", f"{name} is inverted, and rows and columns are swapped.{also}")


def other_diagonal(draw):
    """A mask whose diagonal is off by one."""
    letter = draw.letters[-1]
    for k, where in ((1, "too far right"), (-1, "too far left")):
        inside = draw.expected[..., :-1] if k > 0 else draw.expected[..., 1:]
        if np.array_equal(draw.actual[..., 1:] if k > 0 else draw.actual[..., :-1], inside):
            text = f"{draw.name} is off by one along {letter}: every edge is one column {where}."
            yield Description("off by one diagonal", text)


def no_truth_values(draw):
    if draw.is_boolean or draw.actual.dtype != bool:
        return
    text = f"{draw.name} is Boolean. It must hold numbers."
    additive = np.isneginf(draw.expected).any()
    if additive and np.array_equal(draw.actual, np.isneginf(draw.expected)):
        text = f"{draw.name} is Boolean. It must hold numbers: 0 for visible and −inf for hidden."
    yield Description("True and False instead of numbers", text, exact=additive)


def finite_for_infinite(draw):
    if draw.is_boolean or draw.actual.dtype == bool:
        return
    infinite = np.isinf(draw.expected)
    if not infinite.any() or not close(draw.actual[~infinite], draw.expected[~infinite]):
        return
    there = draw.actual[infinite]
    if (
        np.isfinite(there).all()
        and (np.abs(there) > 1e3).all()
        and (np.sign(there) == np.sign(draw.expected[infinite])).all()
    ):
        wanted = draw.expected[infinite].flat[0]
        text = f"{draw.name} holds a large number, here {there.flat[0]:.3g}, instead of {wanted}."
        yield Description("a large number instead of infinity", text)
    elif (there == -draw.expected[infinite]).all():
        yield Description("infinity of the wrong sign", f"The infinities in {draw.name} have the wrong sign.")


EXACT_FINDERS = (
    numbers_that_are_not_set,
    truth_values,
    no_truth_values,
    nothing_but_one_number,
    another_array,
    constant_ratio,
    constant_offset,
    other_order_of_axes,
    an_input_too_much_or_missing,
    other_order_along_an_axis,
    finite_for_infinite,
    function_of_each_number,
    function_of_each_row,
    same_numbers_elsewhere,
)
