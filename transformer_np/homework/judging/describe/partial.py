"""What is said of wrong numbers that no simple change explains."""

import numpy as np

from .draw import NAN_ADVICE, floats


def in_a_part(draw):
    """NaN and infinity, and numbers that are nearly right."""
    yield from _not_finite(draw)
    actual, right = draw.actual, draw.expected
    if floats(draw) is not None and right.dtype.kind == "f":
        largest, error = np.abs(right).max(initial=1e-30), np.abs(actual - right)
        if (error[np.isfinite(right)] <= 3e-3 * np.maximum(np.abs(right), 1e-2 * largest)[np.isfinite(right)]).all():
            text = (
                f"{draw.name} is nearly right: the error is {np.nanmax(error) / largest:.1g} times the largest number. "
                "Low precision (float16), a rounded constant, or a small term such as eps that is missing or in the "
                "wrong place can do that."
            )
            yield "nearly right", text


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
