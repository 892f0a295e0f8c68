"""Finders for wrong numbers that no simple change explains: their places, and their common features."""

import numpy as np

from ..compare import close
from ..words import listed
from .draw import NAN_ADVICE, Description, floats, subsets
from .exact import no_truth_values, truth_values


def not_finite(draw):
    """NaN or infinity instead of a number."""
    if draw.actual.dtype.kind != "f" or draw.is_boolean:
        return
    for word, here in (
        ("NaN", np.isnan(draw.actual) & ~np.isnan(draw.expected)),
        ("infinite", np.isinf(draw.actual) & ~np.isinf(draw.expected)),
    ):
        if not here.any():
            continue
        rest = np.array_equal(draw.wrong, here)
        also = " All other numbers are right." if rest else ""
        where = f"first at {place(draw, np.argwhere(here)[0])}"
        rows = here.all(-1) if here.ndim else here
        name = f"{word} in some places"
        text = f"{draw.name} is {word} at {here.sum()} of {here.size} places, {where}."
        hidden = _rows_hidden_whole(draw)
        if here.ndim and np.array_equal(np.broadcast_to(rows[..., None], here.shape), here):
            text = f"{draw.name} is {word} in {rows.sum()} whole rows, {where}."
            name = f"{word} in whole rows"
            if hidden is not None and np.array_equal(hidden, rows):
                text += " The mask hides all of such a row: all its scores are −inf. Its result must be 0."
                name = f"{word} in fully hidden rows"
        elif (draw.expected[here] == 0).all():
            text += " They must be 0."
        yield Description(name, text + also + (NAN_ADVICE if word == "NaN" else ""), exact=False)
        return


def _rows_hidden_whole(draw):
    """The rows of the result that an input hides completely, with True, −inf or weight 0, or None."""
    for array in draw.inputs.values():
        if array.ndim < 1 or array.dtype.kind not in "bf":
            continue
        hidden = (array if array.dtype == bool else np.isneginf(array)).all(-1)
        if not hidden.any() and array.dtype.kind == "f":
            hidden = (array == 0).all(-1)
        lead = draw.expected.shape[:-1]
        if not hidden.any():
            continue
        try:
            return np.broadcast_to(hidden, lead)
        except ValueError:
            continue
    return None


def nearly_right(draw):
    if floats(draw) is None or draw.expected.dtype.kind != "f":
        return
    actual, expected = floats(draw)
    if (np.abs(actual - expected) <= 3e-3 * np.maximum(np.abs(expected), 1e-2 * np.abs(expected).max(initial=0))).all():
        error = np.abs(actual - expected).max(initial=0) / np.abs(expected).max(initial=1e-30)
        text = (
            f"{draw.name} is nearly right: the error is {error:.1g} times the largest number. Low precision (float16), "
            "a rounded constant, or a small term such as eps that is missing or in the wrong place can do that."
        )
        yield Description("nearly right", text, exact=False)


def wrong_in_a_part(draw):
    """Right except at places with a common feature."""
    wrong, letters = draw.wrong, draw.letters
    if wrong.all() or wrong.size < 4:
        return
    if wrong.ndim >= 2 and min(wrong.shape[-2:]) > 1 and wrong.shape[-1] > 2:
        yield from _triangle(draw)
    for axis, letter in enumerate(letters):
        n = wrong.shape[axis]
        if n < 2:
            continue
        per_place = np.moveaxis(wrong, axis, 0).reshape(n, -1)
        bad = per_place.any(1)
        at = np.flatnonzero(bad)
        if list(at) == [0]:
            yield _part(
                draw,
                f"only the first along {letter} is wrong",
                f"Only the first entry along {letter} of {draw.name} is wrong.",
            )
        elif list(at) == [n - 1]:
            yield _part(
                draw,
                f"only the last along {letter} is wrong",
                f"Only the last entry along {letter} of {draw.name} is wrong.",
            )
        elif not np.any(draw.expected.take(np.flatnonzero(~bad), axis)):
            continue  # 0 is right by chance
        elif list(at) == list(range(1, n)) and n > 2:
            text = f"Only the first entry along {letter} of {draw.name} is right."
            yield _part(draw, f"only the first along {letter} is right", text)
        elif list(at) == list(range(n - 1)) and n > 2:
            yield _part(
                draw,
                f"only the last along {letter} is right",
                f"Only the last entry along {letter} of {draw.name} is right.",
            )
        elif n > 3 and (at % 2 == at[0] % 2).all() and len(at) == len(range(at[0] % 2, n, 2)):
            which = "odd" if at[0] % 2 else "even"
            yield _part(
                draw,
                f"only the {which} places along {letter} are wrong",
                f"{draw.name} is wrong only at the {which} places along {letter}.",
            )
    if not draw.is_boolean and draw.actual.dtype != bool and not (wrong & (draw.expected != 0)).any():
        yield _part(draw, "not 0 where it must be", f"{draw.name} is wrong only where it must be 0.")
    for name, array in draw.inputs.items():
        yield from _where_an_input_says(draw, name, array)
    if wrong.ndim >= 2:
        for kept in subsets(wrong)[: wrong.ndim]:
            others = tuple(i for i in range(wrong.ndim) if i not in kept)
            all_wrong, any_wrong = wrong.all(others), wrong.any(others)
            if np.array_equal(all_wrong, any_wrong) and any_wrong.any():
                letter = letters[kept[0]]
                at = np.flatnonzero(any_wrong)
                which = f"{at[0]} … {at[-1]}" if len(at) > 3 and at[-1] - at[0] < len(at) else ", ".join(map(str, at))
                text = f"{draw.name} is wrong in whole slices, {letter.lower()} = {which}. The others are right."
                yield _part(draw, f"wrong for some of {letter} only", text)
    if not draw.is_boolean and close(np.abs(draw.actual.astype(float)), np.abs(draw.expected)):
        yield _part(draw, "some signs wrong", f"{draw.name} is right but for the sign of some numbers.")


def _triangle(draw):
    t, s = np.indices(draw.wrong.shape[-2:])
    wrong = draw.wrong.reshape(-1, *t.shape).any(0)
    for where, part in (("on the diagonal", t == s), ("above the diagonal", s > t), ("below the diagonal", s < t)):
        if wrong[part].all() and not wrong[~part].any():
            yield _part(draw, f"wrong {where} only", f"{draw.name} is wrong only {where}.")


def _part(draw, name, text):
    if draw.actual.dtype != bool and not draw.actual[draw.wrong].any():
        text += " The answer gives 0 there."
    return Description(name, f"{text} {_worst_place(draw)}", exact=False)


def _where_an_input_says(draw, name, array):
    wrong = draw.wrong
    if array.dtype.kind in "iu":
        if wrong.ndim == 2 and array.max(initial=0) < len(wrong) and array.min(initial=0) >= 0:
            rows, counts = wrong.any(1), np.bincount(array.ravel(), minlength=len(wrong))
            if rows.any() and not rows[counts < 2].any():
                text = f"{draw.name} is wrong only in the rows of repeated {name}. Their parts must be added."
                yield _part(draw, f"wrong for repeated {name}", text)
            elif rows.any() and not rows[counts > 0].any():
                text = f"{draw.name} is wrong only in the rows that do not occur in {name}."
                yield _part(draw, f"wrong for absent {name}", text)
        return
    if array.ndim > wrong.ndim or array.ndim == 0:
        return
    try:
        array = np.broadcast_to(array, wrong.shape)
    except ValueError:
        return
    groups = {f"{name} is True": array, f"{name} is False": ~array} if array.dtype == bool else {}
    if array.dtype.kind == "f":
        groups = {
            f"{name} is 0": array == 0,
            f"{name} is −inf": np.isneginf(array),
            f"{name} is below 0": array < 0,
            f"{name} is above 0": array > 0,
        }
    for where, here in groups.items():
        if here.any() and not here.all() and not wrong[~here].any() and wrong[here].mean() > 0.9:
            yield _part(draw, f"wrong only where {where}", f"{draw.name} is wrong only where {where}.")


def factor_or_offset_of_each_row(draw):
    if floats(draw) is None or not np.isfinite(draw.expected).all():
        return
    actual, expected, letters = draw.actual.astype(float), draw.expected, draw.letters
    for kept in subsets(expected):
        others = tuple(i for i in range(expected.ndim) if i not in kept)
        if np.prod([expected.shape[i] for i in others]) < 2 or np.prod([expected.shape[i] for i in kept]) < 2:
            continue
        each = listed(letters[i] for i in kept)
        along = listed(letters[i] for i in others)
        square = (expected**2).sum(others, keepdims=True)
        ratio = (actual * expected).sum(others, keepdims=True) / np.where(square == 0, 1, square)
        if close(actual, ratio * expected) and f"{ratio.min():.3g}" != f"{ratio.max():.3g}":
            text = (
                f"{draw.name} is the right result times a factor. The factor is constant along {along} and "
                f"differs along {each}, here from {ratio.min():.3g} to {ratio.max():.3g}."
            )
            yield Description(f"a different factor for each {each}", text, exact=False)
            return
        offset = (actual - expected).mean(others, keepdims=True)
        if close(actual, expected + offset) and f"{offset.min():.3g}" != f"{offset.max():.3g}":
            text = (
                f"{draw.name} is the right result plus a term. The term is constant along {along} and differs along "
                f"{each}, here from {offset.min():.3g} to {offset.max():.3g}."
            )
            yield Description(f"a different offset for each {each}", text, exact=False)
            return


def same_numbers_in_other_places(draw):
    if draw.is_boolean or draw.expected.size < 4 or floats(draw) is None:
        return
    actual, expected = map(np.sort, floats(draw))
    if np.unique(expected).size > expected.size / 2 and close(actual, expected):
        text = f"{draw.name} has the right numbers in the wrong places. {_worst_place(draw)}"
        yield Description("right numbers in the wrong places", text, exact=False)


def worst(draw):
    """The place of the largest error."""
    return Description(None, _worst_place(draw), exact=False)


def _worst_place(draw):
    wrong, actual, expected = draw.wrong, draw.actual, draw.expected
    if actual.size == 1:
        return f"Expected {number(expected.flat[0])}, got {number(actual.flat[0])}."
    with np.errstate(all="ignore"):
        errors = np.nan_to_num(np.abs(actual.astype(float) - expected.astype(float)), nan=np.inf)
    index = np.unravel_index(np.where(wrong, errors, -1).argmax(), errors.shape)
    numbers = f"expected {number(expected[index])}, got {number(actual[index])}"
    return f"The largest error is at {place(draw, index)}: {numbers}. {wrong.sum()} of {wrong.size} entries are wrong."


def place(draw, index):
    """ "b = 1, t = 0" """
    letters = draw.letters
    if any(letter.startswith("axis") for letter in letters):
        return f"[{', '.join(str(int(i)) for i in index)}]"
    named = zip(letters, index, strict=True)
    return ", ".join(f"{letter.lower()} = {int(i)}" for letter, i in named if letter != "1")


def number(value, digits=5):
    return str(value) if isinstance(value, bool | np.bool_) else f"{value:.{digits}g}"


PARTIAL_FINDERS = (
    truth_values,
    no_truth_values,
    not_finite,
    nearly_right,
    wrong_in_a_part,
    factor_or_offset_of_each_row,
    same_numbers_in_other_places,
)
