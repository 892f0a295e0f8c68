"""The head view: attention weights as lines between two columns of words."""

import math

import numpy as np
from matplotlib import colormaps
from matplotlib.collections import LineCollection

from .arguments import as_weights, as_words
from .fonts import text_width
from .picture import Picture, styled
from .sizes import EDGE, LABEL, LARGEST_PAGE, LINE, PAD, TEXT
from .style import HATCH, HEAD_COLOURS, KEY, QUERY, TRAINING

ROW = 0.3  # inches from word to word; less for many words
BETWEEN = 3.0  # inches between the two columns
THICKEST = 5.0  # points, for weight 1; less if several heads share the space
MOST_LINES = 200_000  # matplotlib draws as many in half a minute
LEAST_INK = 0.3  # opacity of a weight near 0, whose line is also thin


@styled
def head_view(weights, queries, keys, query=None, title=None):
    """Attention weights as lines from the query words on the left to the key words on the right.

    weights: (T, S) one head, or (H, T, S) all heads of a layer, one colour each. No batch axis: `layer.weights[0]`.
    queries, keys: the T query words and the S key words
    query: the index of one query, from 0, to draw only its lines

    How to read it: the larger the weight, the thicker and more opaque the line. In each colour, the thicknesses of the
    lines from one word add up to 1: one thick line is focused attention, a fan of thin lines is spread out. Parallel
    lines in one colour: that head attends a fixed number of words ahead or back. Lines of all colours into one word:
    all heads attend to it. A weight of 0, as under a mask, has no line.

    Raises ValueError for a wrong number of words, a weight outside 0 … 1, a query out of range, or too many lines.
    """
    weights = as_weights(weights, "(T, S)", "(H, T, S)")
    *heads, T, S = weights.shape
    queries, keys = as_words("queries", queries, T, "row"), as_words("keys", keys, S, "column")
    if query is not None and not (isinstance(query, int | np.integer) and 0 <= query < T):
        raise ValueError(f"query must be None or a whole number in 0 … {T - 1}, got {query!r}")
    weights = weights.reshape(-1, T, S)
    count = np.count_nonzero(weights if query is None else weights[:, query])
    if count > MOST_LINES:
        lines = f"the weights are {count:,} lines, more than the {MOST_LINES:,} that a picture can show"
        raise ValueError(f"{lines}: choose one head, one query, or a shorter text")
    H, longest = len(weights), max(T, S)
    colours = _colours(H)

    # inches: the words determine every size
    row = max(LINE, min(ROW, (LARGEST_PAGE[1] - 1) / longest))
    entries = [f"head {h + 1}" for h in range(H)] if heads else []
    per_column = max(1, int(longest * row / (1.3 * LINE)))  # of the legend
    entry_width = 0.25 + max(map(text_width, entries), default=0.0) + 2 * PAD
    legend = entry_width * math.ceil(H / per_column) if entries else 0.0
    bold = "normal" if query is None else "bold"  # the chosen one
    left = EDGE + max(*(text_width(word, weight=bold) for word in queries), text_width(QUERY) / 2) + PAD
    right = PAD + max(*map(text_width, keys), text_width(KEY) / 2) + (2 * PAD + legend if entries else 0) + EDGE
    figure = Picture.titled(title, left + BETWEEN + right, 2 * EDGE + longest * row + LABEL)
    axes = figure.panel(left, EDGE, BETWEEN, longest * row, xlim=(0, 1), ylim=(longest - 0.5, -0.5))
    axes.set_axis_off()
    for h, head in enumerate(weights):
        lane = 0.7 / H  # each head has its own height at a word, so that heads do not cover each other
        lines = _lines(head, query, (h - (H - 1) / 2) * lane, min(THICKEST, 72 * row * lane))
        lines.set(color=colours[h], label=f"head {h + 1}" if heads else "attention")
        axes.add_collection(lines, autolim=False)
    for t, word in enumerate(queries):
        bold = {"weight": "bold"} if t == query else {"color": HATCH} if query is not None else {}
        _word(axes, 0, -PAD, t, word, "right", **bold)
    for s, word in enumerate(keys):
        _word(axes, 1, PAD, s, word, "left")
    top = -0.5 - 0.5 * LABEL / row
    _word(axes, 0, 0, top, QUERY, "center", color=HATCH)
    _word(axes, 1, 0, top, KEY, "center", color=HATCH)
    if entries:
        both = zip(colours, entries, strict=True)
        handles = [LineCollection([], colors=[colour], linewidths=4, label=entry) for colour, entry in both]
        width, height = figure.get_size_inches()
        axes.legend(
            handles=handles, loc="center right",
            bbox_to_anchor=(1 - EDGE / width, (EDGE + longest * row / 2) / height),
            bbox_transform=figure.transFigure, borderaxespad=0, borderpad=0, frameon=False, handlelength=1.0,
            handletextpad=0.5, labelspacing=0.25, columnspacing=1.0, ncols=math.ceil(H / per_column),
        )  # fmt: skip
    return figure


def _lines(head, query, offset, thickest):
    """The weights of one head (T, S) as lines, the strongest on top; of one query alone if it is given."""
    t, s = np.nonzero(head if query is None else head * (np.arange(len(head)) == query)[:, None])
    order = np.argsort(head[t, s], kind="stable")
    t, s = t[order], s[order]
    sides, heights = np.broadcast_arrays([0, 1], np.stack([t, s], axis=1) + offset)  # (n, 2) each
    return LineCollection(
        np.stack([sides, heights], axis=2), linewidths=thickest * head[t, s],
        alpha=LEAST_INK + (1 - LEAST_INK) * np.minimum(1.0, head[t, s]), capstyle="round",
    )  # fmt: skip


def _word(axes, x, shift, y, text, side, **look):
    look |= {"ha": side, "va": "center_baseline", "size": TEXT, "parse_math": False}  # a $ is a $
    axes.annotate(text, (x, y), (72 * shift, 0), textcoords="offset points", annotation_clip=False, **look)


def _colours(count):
    """One colour per head: a colour-blind safe palette if it has enough colours."""
    if count == 1:
        return [TRAINING]
    if count <= len(HEAD_COLOURS):
        return HEAD_COLOURS[:count]
    return [colormaps["turbo"](x) for x in np.linspace(0, 1, count)]
