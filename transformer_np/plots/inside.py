"""What layers and heads contribute: the prediction after each layer, the loss without each head."""

import numpy as np
from matplotlib.colors import CenteredNorm, Normalize

from .. import functional as F
from ..support.checks import check_has
from .style import (
    CELL,
    EDGE,
    LABEL,
    PAD,
    SIGNED,
    TEXT,
    WEIGHTS,
    Picture,
    as_numbers,
    as_words,
    print_values,
    round_ticks,
    steady,
    styled,
    text_width,
    visible,
)

ROW, TALL_ROW = 0.27, 0.36  # inches
BAR = 0.55  # inches for a colour bar without the numbers at its ticks


@styled
def logit_lens(logits, read, words=None, title=None):
    """The likeliest next word after each layer, as if the model ended there.

    logits: (L + 1, T, V) of one text, `inspection.logits_by_layer(model, ids)[:, 0]`
    read: the T words that the model reads;  words: the V words, by default the ids 0, 1, …

    How to read it: a column is a position; the word below it is the one that the model reads there. The words above it
    are those that the model would predict from the input of the first block and from the output of each block; the top
    row is the prediction of the whole model. The brighter a square, the more probable its word. A word that appears
    high up was computed by the block beside it; one that stays the same over many rows was settled early.

    Raises ValueError for another shape and a wrong number of words.
    """
    logits = as_numbers("logits", logits)
    if logits.ndim != 3 or 0 in logits.shape:
        raise ValueError(f"logits must have the axes (L + 1, T, V), got shape {logits.shape}")
    layers, T, V = logits.shape
    read = as_words("read", read, T, "position")
    words = [visible(str(word)) for word in range(V)] if words is None else as_words("words", words, V, "token")
    probabilities = steady(F.softmax(logits.astype(float)))
    best = probabilities.argmax(axis=-1)  # (L + 1, T)
    likely = np.take_along_axis(probabilities, best[..., None], axis=-1)[..., 0]  # (L + 1, T)

    shown = {words[i] for i in best.flat}
    cell = max(map(text_width, shown | set(read))) + 2 * PAD
    rows = ["input", *(f"block {i + 1}" for i in range(layers - 1))]
    grid = _Grid(rows[::-1], read, cell, ROW, title, "word that is read", "probability", text_width("0.8") + BAR)
    norm = Normalize(0, 1)
    image = grid.axes.imshow(likely[::-1], cmap=WEIGHTS, norm=norm, aspect="auto")
    print_values(grid.axes, likely[::-1], image, [[words[i] for i in row] for row in best[::-1]], TEXT)
    grid.figure.colorbar(image, cax=grid.bar, label="probability", ticks=np.arange(6) / 5)
    return grid.figure


@styled
def head_ablation(table, quantity="loss", title=None):
    """The change of a measure when one head is switched off, for all heads.

    table: an `inspection.HeadAblation`, as returned by `inspection.head_ablation`
    quantity: the name of the measure

    How to read it: a row is an attention layer, the first one at the bottom, a square one of its heads. Red: the
    measure is larger without the head, blue: smaller; nearly white: it makes no difference, or another head does the
    same. For a loss, a red head is needed; for an accuracy, a blue one.
    """
    check_has("table", table, "without", "changes")
    names, changes = list(table.without)[::-1], list(table.changes.values())[::-1]
    H = max(map(len, changes))
    values = np.full((len(changes), H), np.nan)
    for row, change in zip(values, changes, strict=True):
        row[: len(change)] = change
    largest = np.nanmax(np.abs(values)) or 1.0
    digits = max(2, 1 - int(np.floor(np.log10(largest))))  # two of the largest change
    texts = [[_signed(value, digits) for value in row] for row in values]
    ticks = [tick for tick in round_ticks(4).tick_values(-largest, largest) if abs(tick) <= largest]
    marks = [f"{tick:g}".replace("-", "−") for tick in ticks]
    cell = max(text_width(text, TEXT - 1) for row in texts for text in row) + 2 * PAD
    grid = _Grid(
        names, [f"{h + 1}" for h in range(H)], min(CELL, max(cell, 0.5)), TALL_ROW, title, "head",
        f"change of the {quantity}", max(map(text_width, marks)) + BAR,
    )  # fmt: skip
    image = grid.axes.imshow(values, cmap=SIGNED, norm=CenteredNorm(0, largest), aspect="auto")
    print_values(grid.axes, values, image, texts)
    bar = grid.figure.colorbar(image, cax=grid.bar, label=f"change of the {quantity}")
    bar.set_ticks(ticks, labels=marks)
    return grid.figure


def _signed(value, digits):
    if np.isnan(value):  # a layer with fewer heads
        return ""
    return "0" if abs(value) < 0.5 * 10.0**-digits else f"{value:+.{digits}f}".replace("-", "−")


class _Grid:
    """A figure with one panel of rows × columns, named on the left and below, and axes for a colour bar."""

    def __init__(self, rows, columns, cell, height, title, label, bar_label, bar):
        panel = cell * len(columns), height * len(rows)
        left = EDGE + max(map(text_width, rows)) + 2 * PAD
        width = left + max(panel[0], text_width(label)) + bar + EDGE
        room = max(panel[1], 1.1, text_width(bar_label))  # for the colour bar
        bottom = max(2 * EDGE, EDGE + 2 * LABEL + PAD - (room - panel[1]))
        self.figure = Picture.titled(title, width, bottom + room + EDGE)
        self.axes = self.figure.panel(left, bottom + room - panel[1], *panel)
        self.bar = self.figure.panel(width - EDGE - bar + 2 * PAD, bottom, 0.14, room)
        self.axes.set_xticks(range(len(columns)), columns)
        self.axes.set_yticks(range(len(rows)), rows)
        self.axes.tick_params(length=0, pad=4)
        for word in self.axes.get_xticklabels() + self.axes.get_yticklabels():
            word.set_parse_math(False)
        self.axes.set_xlabel(label)
        self.axes.spines[:].set_visible(False)
