"""What is said of wrong numbers that no simple change explains: where they are."""

import numpy as np

from ..compare import NEARLY_ALL
from .draw import NAN_ADVICE, broadcasts, floats


def in_a_part(draw):
    """NaN and infinity, numbers that are nearly right, and places with a common feature."""
    yield from _not_finite(draw)
    actual, right, wrong = draw.actual, draw.expected, draw.wrong
    if floats(draw) is not None and right.dtype.kind == "f":
        largest, error = np.abs(right).max(initial=1e-30), np.abs(actual - right)
        if (error[np.isfinite(right)] <= 3e-3 * np.maximum(np.abs(right), 1e-2 * largest)[np.isfinite(right)]).all():
            text = (
                f"{draw.name} is nearly right: the error is {np.nanmax(error) / largest:.1g} times the largest number. "
                "Low precision (float16), a rounded constant, or a small term such as eps that is missing or in the "
                "wrong place can do that."
            )
            yield "nearly right", text
    for name, text, here in _places(draw) if wrong.size > 3 and not wrong.all() else ():
        if here.any() and not here.all() and not wrong[~here].any() and wrong[here].mean() > NEARLY_ALL:
            zero = "" if actual.dtype == bool or actual[wrong].any() else " The answer gives 0 there."
            yield name, f"{text}{zero} {worst_place(draw)}"


def _places(draw):
    """(name, text, where) of places that have something in common."""
    right, name = draw.expected, draw.name
    for axis, letter in enumerate(draw.letters):
        at, n = np.indices(right.shape)[axis], right.shape[axis]
        for which, here in (("first", at == 0), ("last", at == n - 1)) if n > 1 else ():
            yield (
                f"only the {which} along {letter} is wrong",
                f"Only the {which} entry along {letter} of {name} is wrong.", here,
            )  # fmt: skip
            if n > 2 and np.any(right[here]):  # 0 is right by chance
                text = f"Only the {which} entry along {letter} of {name} is right."
                yield f"only the {which} along {letter} is right", text, ~here
        for which, here in (("even", at % 2 == 0), ("odd", at % 2 == 1)) if n > 3 else ():
            text = f"{name} is wrong only at the {which} places along {letter}."
            yield f"only the {which} places along {letter} are wrong", text, here
    if right.ndim > 1:
        t, s = np.indices(right.shape)[-2:]
        for where, here in (("on", t == s), ("above", s > t), ("below", s < t)):
            yield f"wrong {where} the diagonal only", f"{name} is wrong only {where} the diagonal.", here
    if not draw.is_boolean and draw.actual.dtype != bool:
        yield "not 0 where it must be", f"{name} is wrong only where it must be 0.", draw.wrong & (right == 0)
        signs = draw.wrong & (np.abs(np.abs(draw.actual) - np.abs(right)) <= 1e-5 * np.abs(right).max(initial=0))
        yield "some signs wrong", f"{name} is right but for the sign of some numbers.", signs
    for given, array in draw.inputs.items():
        if array.dtype.kind in "iu" and right.ndim == 2 and np.isin(array, range(len(right))).all():
            counts = np.bincount(array.ravel(), minlength=len(right))
            rows = draw.wrong.any(1) & ((counts > 1) if counts.max(initial=0) > 1 else False)
            text = f"{name} is wrong only in the rows of repeated {given}. Their parts must be added."
            yield f"wrong for repeated {given}", text, np.broadcast_to(rows[:, None], right.shape)
            text = f"{name} is wrong only in the rows that do not occur in {given}."
            rows = draw.wrong.any(1) & (counts == 0)
            yield f"wrong for absent {given}", text, np.broadcast_to(rows[:, None], right.shape)
        for what, here in _kinds_of(array) if broadcasts(array, right) else ():
            text = f"{name} is wrong only where {given} is {what}."
            yield f"wrong only where {given} is {what}", text, np.broadcast_to(here, right.shape)


def _kinds_of(array):
    """(what numbers of an input are, where)"""
    if array.dtype == bool:
        yield from (("True", array), ("False", ~array))
    elif array.dtype.kind == "f":
        yield from (("0", array == 0), ("−inf", np.isneginf(array)), ("below 0", array < 0), ("above 0", array > 0))


def _not_finite(draw):
    """NaN or infinity instead of a number."""
    actual, right = draw.actual, draw.expected
    if actual.dtype.kind != "f" or draw.is_boolean:
        return
    for word, is_one in (("NaN", np.isnan), ("infinite", np.isinf)):
        here = is_one(actual) & ~is_one(right)
        if not here.any():
            continue
        rows = here.all(-1) if here.ndim else here
        is_rows = here.ndim and np.array_equal(np.broadcast_to(rows[..., None], here.shape), here)
        where = f"first at {place(draw, np.argwhere(here)[0])}"
        name, text = f"{word} in some places", f"{draw.name} is {word} at {here.sum()} of {here.size} places, {where}."
        if is_rows:
            name, text = f"{word} in whole rows", f"{draw.name} is {word} in {rows.sum()} whole rows, {where}."
        if (right[here] == 0).all():
            text += " They must be 0."
        also = " All other numbers are right." if np.array_equal(draw.wrong, here) else ""
        yield name, f"{text}{also}{NAN_ADVICE if word == 'NaN' else ''}"
        return


def worst_place(draw):
    wrong, actual, expected = draw.wrong, draw.actual, draw.expected
    if actual.size == 1:
        return f"Expected {number(expected.flat[0])}, got {number(actual.flat[0])}."
    errors = np.nan_to_num(np.abs(actual.astype(float) - expected.astype(float)), nan=np.inf)
    index = np.unravel_index(np.where(wrong, errors, -1).argmax(), errors.shape)
    numbers = f"expected {number(expected[index])}, got {number(actual[index])}"
    return f"The largest error is at {place(draw, index)}: {numbers}. {wrong.sum()} of {wrong.size} entries are wrong."


def place(draw, index):
    """ "b = 1, t = 0" """
    if any(letter.startswith("axis") for letter in draw.letters):
        return f"[{', '.join(str(int(i)) for i in index)}]"
    named = zip(draw.letters, index, strict=True)
    return ", ".join(f"{letter.lower()} = {int(i)}" for letter, i in named if letter != "1")


def number(value, digits=5):
    return str(value) if isinstance(value, bool | np.bool_) else f"{value:.{digits}g}"
