"""A map of words: their vectors projected to two dimensions."""

import numpy as np

from ..support.checks import check_at_least
from .arguments import as_numbers, as_words, steady
from .fonts import text_width
from .picture import Picture, styled
from .sizes import TEXT
from .style import HATCH, HEAD_COLOURS, TRAINING, label, light_grid, plain, round_ticks

WIDTH, HEIGHT = 8.0, 6.0  # inches
_LEFT, _RIGHT, _BOTTOM, _TOP = 0.75, 0.15, 0.6, 0.15  # around the panel
_DOT, _LINE = 0.04, 0.14  # the radius of a dot, the height of a word
# possible places of a word beside its dot, in halves of its width and height: right, left, above, below, diagonal
_PLACES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))


@styled
def word_map(words, vectors, groups=None, title=None):
    """A two-dimensional map of word vectors, by principal component analysis.

    words: a list of V strings, the most important first;  vectors: (V, D), D at least 2
    groups: a group name for each word; the words of a group have one colour, shown in a legend

        X = vectors − their mean = U Σ Wᵀ,    the map is X W with the first two columns of W

    How to read it: close words have similar vectors, as far as two of D directions can show; the axis labels give the
    share of the variance that these two explain, often little. The directions have no meaning of their own, and their
    signs are arbitrary. Words without room are left out; a note says how many.

    Raises ValueError for fewer than 3 words and for vectors that are all equal.
    """
    vectors = as_numbers("vectors", vectors)
    if vectors.ndim != 2 or vectors.shape[1] < 2:
        raise ValueError(f"vectors must have the axes (V, D) with D at least 2, got shape {vectors.shape}")
    words = as_words("words", words, len(vectors), "vector")
    if len(words) < 3:
        raise ValueError(f"words must be at least 3, got {len(words)}")
    names = ["" for _ in words] if groups is None else [str(group) for group in groups]
    if len(names) != len(words):
        raise ValueError(f"groups must have {len(words)} names, one for each word; got {len(names)}")
    points, explained = principal_components(vectors)
    colours = {name: HEAD_COLOURS[i % len(HEAD_COLOURS)] for i, name in enumerate(dict.fromkeys(names))}
    if groups is None:
        colours = {"": TRAINING}

    figure = Picture(figsize=(WIDTH, HEIGHT))
    width, height = WIDTH - _LEFT - _RIGHT, HEIGHT - _BOTTOM - _TOP - (0.25 if title else 0)
    axes = figure.add_axes((_LEFT / WIDTH, _BOTTOM / HEIGHT, width / WIDTH, height / HEIGHT))
    low, high = points.min(axis=0), points.max(axis=0)
    span = np.where(high > low, high - low, 1)
    margin = np.array([0.08, 0.05]) * span  # room for the words at the edge
    low, high = low - margin, high + margin
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    inches = (points - low) / (high - low) * (width, height)  # (V, 2), on the panel
    placed = dict(_room_for_words(words, inches, (width, height)))  # {index of a word: its centre}
    for name, colour in colours.items():
        chosen = [i for i in sorted(placed) if names[i] == name]
        axes.scatter(*points[chosen].T, s=12, color=colour, label=label(name), zorder=2, linewidths=0)
    for i, centre in placed.items():
        x, y = low + centre / (width, height) * (high - low)
        colour = colours[names[i]] if groups is not None else "black"
        axes.text(x, y, words[i], ha="center", va="center", size=TEXT - 1, color=colour, parse_math=False, zorder=3)
    for set_label, share, which in zip((axes.set_xlabel, axes.set_ylabel), explained, ("first", "second"), strict=True):
        set_label(f"{which} principal component ({share:.1%} of the variance)")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(round_ticks(6))
    if left_out := len(words) - len(placed):
        note = f"no room for {left_out} of {len(words)} words"
        figure.text(1 - _RIGHT / WIDTH, 0.1 / HEIGHT, note, ha="right", va="bottom", size=TEXT - 1, color=HATCH)
    if title:
        axes.set_title(title, loc="left", parse_math=False)
    if groups is not None:
        plain(axes.legend(loc="best", framealpha=0.8, fontsize=TEXT - 1))
    light_grid(axes)
    return figure


def principal_components(vectors, count=2):
    """Project vectors onto the directions of largest variance, by singular value decomposition.

        X = vectors − mean = U Σ Wᵀ;  the coordinates are X W = U Σ, the variance along the i-th is σ_i² / Σ_j σ_j²

    vectors (V, D)  ->  coordinates (V, count), the share of the variance of each (count,)

    The sign of a direction is arbitrary; here its largest entry is positive, so that the same vectors give the same map
    everywhere.
    """
    X = as_numbers("vectors", vectors, "(V, D)").astype(np.float64)
    check_at_least("count", count, 1)
    X -= X.mean(axis=0)
    _, sizes, directions = np.linalg.svd(X, full_matrices=False)  # (r,), (r, D)
    variance = sizes**2
    if not variance.sum() > 0:
        raise ValueError("vectors must not all be equal: they differ in no direction")
    directions = directions[:count]
    largest = np.abs(steady(directions)).argmax(axis=1)
    directions = directions * np.sign(directions[np.arange(len(directions)), largest])[:, None]
    return X @ directions.T, variance[:count] / variance.sum()


def _room_for_words(words, dots, panel):
    """Yield (index of a word, its centre in inches on the panel) for every word that has room, in order.

    A word gets the first of the _PLACES beside its dot where it covers no dot and no other word. A word whose dot is
    covered, or that has no such place, has no room.
    """
    taken = []
    for number, (word, dot) in enumerate(zip(words, dots, strict=True)):
        own = (*(dot - _DOT), *(dot + _DOT))
        if _is_taken(taken, own):
            continue
        half = np.array([text_width(word, TEXT - 1) / 2 + 0.01, _LINE / 2])
        for place in _PLACES:
            centre = dot + place * (half + _DOT * 1.01)
            left, bottom, right, top = *(centre - half), *(centre + half)
            inside = left >= 0 and bottom >= 0 and right <= panel[0] and top <= panel[1]
            if inside and not _is_taken(taken, (left, bottom, right, top)):
                taken += [own, (left, bottom, right, top)]
                yield number, centre
                break


def _is_taken(taken, box):
    left, bottom, right, top = box
    return any(left < r and l < right and bottom < t and b < top for l, b, r, t in taken)
