"""Finders for results of the wrong shape."""

from itertools import combinations, permutations

import numpy as np

from ..compare import close
from ..words import listed
from .draw import Description, same, subsets
from .exact import another_array, other_order_of_axes

MORE_AXES = 3  # of a result with more extra axes, or more entries, only the shape is described
MOST_ENTRIES = 1_000_000


def is_searchable(draw):
    """Whether the axes of a result are few enough to try every set of them."""
    return draw.actual.ndim <= draw.expected.ndim + MORE_AXES and draw.actual.size <= MOST_ENTRIES


def axes_of_length_1(draw):
    if draw.actual.size != draw.expected.size or _without_ones(draw.actual) != _without_ones(draw.expected):
        return
    known = close(draw.actual.reshape(draw.expected.shape), draw.expected)
    more = draw.actual.ndim - draw.expected.ndim
    advice = ""
    if more > 0:
        name, text = "extra axis of length 1", f"has {_of_length_1(more, 'an extra', 'extra ')}."
        advice = " keepdims=True, None and reshape can make such an axis."
    elif more < 0:
        name, text = "missing axis of length 1", f"lacks {_of_length_1(-more, 'an', '')}."
        advice = (
            "" if draw.is_boolean else " A reduction without keepdims=True loses such an axis, and so does squeeze()."
        )
    else:
        name, text = "axis of length 1 in the wrong place", "has an axis of length 1 in the wrong place."
    numbers = f"{advice} The numbers are right." if known else " The numbers are also wrong."
    yield Description(name, f"{draw.name} {text}{numbers}", exact=known)


def _of_length_1(number, article, adjective):
    return f"{article} axis of length 1" if number == 1 else f"{number} {adjective}axes of length 1"


def _without_ones(array):
    return [size for size in array.shape if size != 1]


def not_reduced(draw):
    """The sum, mean, maximum or one entry of the actual result is the right result."""
    letters = draw.letters_of(draw.actual.shape)
    ways = (("summed", np.sum), ("averaged", np.mean), ("reduced to the largest", np.max))
    for way, reduce in ways:
        if draw.is_boolean or draw.actual.dtype == bool:
            break
        for axes in subsets(draw.actual):
            if all(draw.actual.shape[i] == 1 for i in axes):
                continue
            reduced = reduce(draw.actual, axis=axes)
            kept = reduce(draw.actual, axis=axes, keepdims=True)
            if any(same(found, draw.expected) for found in (reduced, kept)):
                over = listed(letters[i] for i in axes)
                right = {np.sum: "sum", np.mean: "mean", np.max: "maximum"}[reduce]
                text = f"{draw.name} is not {way} over {over}. Its {right} over {over} is the right result."
                yield Description(f"not {way} over {over}", text)
    for axis, letter in enumerate(letters):
        for index, which in ((0, "first"), (-1, "last")):
            if draw.actual.shape[axis] > 1 and same(draw.actual.take(index, axis), draw.expected):
                text = f"{draw.name} has an extra axis, {letter}. Return only the {which} entry along it."
                yield Description(f"all along {letter} instead of the {which}", text)


def reduced_too_much(draw):
    letters = draw.letters
    ways = (("summed", np.sum), ("averaged", np.mean), ("reduced to the largest", np.max))
    for way, reduce in ways:
        if draw.is_boolean or draw.actual.dtype == bool:
            break
        for axes in subsets(draw.expected):
            if all(draw.expected.shape[i] == 1 for i in axes):
                continue
            reduced = reduce(draw.expected, axis=axes)
            if same(draw.actual, reduced) or same(draw.actual, reduce(draw.expected, axis=axes, keepdims=True)):
                over = listed(letters[i] for i in axes)
                text = f"{draw.name} is {way} over {over}. It must keep one entry for each {over}."
                yield Description(f"{way} over {over}", text)
    for axis, letter in enumerate(letters):
        for index, which in ((0, "first"), (-1, "last")):
            if draw.expected.shape[axis] > 1 and same(draw.actual, draw.expected.take(index, axis)):
                text = (
                    f"{draw.name} is only the {which} entry along {letter}. It must have one entry for each {letter}."
                )
                yield Description(f"only the {which} along {letter}", text)


def broadcast(draw):
    if draw.actual.size > draw.expected.size and _fits(draw.expected, draw.actual):
        text = f"{draw.name} repeats the right numbers along an axis. They must occur once."
        yield Description("repeated along an axis", text)
    elif draw.actual.size < draw.expected.size and _fits(draw.actual, draw.expected):
        text = f"{draw.name} has the right numbers, but too few: {draw.actual.shape}, not {draw.expected.shape}."
        yield Description("not broadcast to the full shape", text)


def _fits(small, large):
    try:
        return close(np.ascontiguousarray(np.broadcast_to(small, large.shape)), large)
    except ValueError:
        return False


def too_long_or_short(draw):
    """A result that lacks, or has extra, entries at an end of one axis."""
    if draw.actual.ndim != draw.expected.ndim:
        return
    axes = [i for i in range(draw.actual.ndim) if draw.actual.shape[i] != draw.expected.shape[i]]
    if len(axes) != 1:
        return
    axis, letter = axes[0], draw.letters[axes[0]]
    short, long = sorted((draw.actual, draw.expected), key=lambda array: array.shape[axis])
    n, missing = short.shape[axis], long.shape[axis] - short.shape[axis]
    fewer, much = short is draw.actual, "one" if missing == 1 else str(missing)
    if not n:
        return
    for ends, part in (("last", long.take(range(n), axis)), ("first", long.take(range(missing, n + missing), axis))):
        if close(short, part):
            which = f"the {ends}" if missing == 1 else f"the {ends} {missing}"
            text = f"{draw.name} is too {'short' if fewer else 'long'} along {letter} by {much}: "
            text += f"{which} {'is' if missing == 1 else 'are'} {'missing' if fewer else 'extra'}."
            yield Description(f"{'without' if fewer else 'longer by'} {which} along {letter}", text)


def cut_otherwise(draw):
    """The right numbers with axes joined or split differently."""
    actual, expected = draw.actual, draw.expected
    if actual.size != expected.size or actual.size < 2:
        return
    if close(actual.reshape(-1), expected.reshape(-1)):
        text = f"{draw.name} has the right numbers in the right order, but the wrong shape."
        yield Description("not reshaped", text)
        return
    for order in permutations(range(expected.ndim)):
        if same(actual.reshape(-1), expected.transpose(order).reshape(-1)):
            axes = listed(draw.letters[i] for i, j in enumerate(order) if i != j)
            text = (
                f"{draw.name} has the right numbers, but the axes {axes} are in the wrong order, and joined or split."
            )
            yield Description("axes in the wrong order, and reshaped", text)
            return


SHAPE_FINDERS = (
    another_array,
    other_order_of_axes,
    axes_of_length_1,
    broadcast,
    not_reduced,
    reduced_too_much,
    too_long_or_short,
    cut_otherwise,
)


def about_shape(draws):
    """A description of the shapes alone."""
    draw = draws[0]
    wanted, got = draw.expected.shape, draw.actual.shape
    letters, came = draw.letters, draw.letters_of(got)
    if any(draw.letters_of(draw.expected.shape)[i].startswith("axis") for i in range(len(wanted))):
        came = [
            letters[wanted.index(size)] if wanted.count(size) == 1 else name
            for size, name in zip(got, came, strict=True)
        ]
    exchanged = [letters[i] for i, size in enumerate(got) if size != wanted[i]] if len(got) == len(wanted) else []
    if sorted(wanted) == sorted(got) and all(sorted(d.expected.shape) == sorted(d.actual.shape) for d in draws):
        text = f"The axes {listed(exchanged)} are in the wrong order, ({', '.join(came)}). The numbers are also wrong."
        return Description(f"axes {listed(exchanged)} in the wrong order", text, exact=False)
    for removed, kind in ((got, "extra"), (wanted, "missing")):
        kept, names = (wanted, came) if removed is got else (got, letters)
        if len(kept) < len(removed) <= len(kept) + MORE_AXES:
            for places in combinations(range(len(removed)), len(removed) - len(kept)):
                if tuple(size for i, size in enumerate(removed) if i not in places) == kept:
                    axis = f"{'axis' if len(places) == 1 else 'axes'} {listed(names[i] for i in places)}"
                    if removed is got:
                        text = f"{draw.name} has the extra {axis}. Is a sum missing? The numbers are also wrong."
                    else:
                        text = f"{draw.name} lacks the {axis}. The numbers are also wrong."
                    return Description(f"{kind} {axis}", text, exact=False)
    axes = {tuple(d.letters_of(d.actual.shape)) for d in draws}
    if exchanged and len(axes) == 1 and not any(name.startswith("axis") for name in came):
        text = f"{draw.name} has the shape ({', '.join(came)}), not ({', '.join(letters)})."
        return Description(f"shape ({', '.join(came)})", text, exact=False)
    if exchanged:
        other = [f"{w} along {x} (got {g})" for w, g, x in zip(wanted, got, letters, strict=True) if w != g]
        return Description(None, f"Its length must be {listed(other)}.", exact=False)
    if got and len(got) <= len(wanted) + MORE_AXES and not any(name.startswith("axis") for name in came):
        return Description(None, f"The result has the axes ({', '.join(came)}).", exact=False)
    return Description(None, f"The result must have {_axes(len(wanted))}, got {len(got)}.", exact=False)


def _axes(number):
    return "1 axis" if number == 1 else f"{number} axes"
