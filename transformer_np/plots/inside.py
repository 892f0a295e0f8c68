"""What layers and heads contribute: the prediction after each layer, the loss without each head, the parts of a
logit."""

import re

import numpy as np
from matplotlib.colors import CenteredNorm, Normalize

from .. import functional as F
from ..support.checks import check_has
from .arguments import as_numbers, as_words, steady, visible
from .fonts import text_width
from .picture import Picture, styled
from .sizes import CELL, EDGE, GAP, LABEL, PAD, TEXT
from .style import SIGNED, WEIGHTS, print_values, round_ticks

LOW_ROW, ROW, TALL_ROW = 0.2, 0.27, 0.36  # inches
BAR = 0.55  # inches for a colour bar without the numbers at its ticks
STRONG = 0.3  # of the largest value: from here on, a colour is dark enough to need its sign in a grey print


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
    logits = as_numbers("logits", logits, "(L + 1, T, V)")
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
    texts = _texts(values, largest)
    cell = max(text_width(text, TEXT - 1) for row in texts for text in row) + 2 * PAD
    columns = [f"{h + 1}" for h in range(H)]
    quantity = f"change of the {quantity}"
    grid = _Grid(names, columns, min(CELL, max(cell, 0.5)), TALL_ROW, title, "head", *_bar(quantity, largest))
    print_values(grid.axes, values, grid.signed(values, largest, quantity), texts)
    return grid.figure


@styled
def contributions(parts, quantity="logit", title=None):
    """The terms of a logit: every head, feed-forward network, the embedding and the biases.

    parts: an `inspection.Contributions`, as returned by `inspection.contributions`
    quantity: the name of the sum

    How to read it: a row is a layer, the first one at the bottom, a square what one head or the feed-forward network
    adds. Red adds to the logit, blue subtracts from it. What enters the first block and all biases are no heads: each
    has a row of its own. The numbers of the strongest squares are printed, and their sign tells them apart in grey. The
    heads determine the colours; a larger number has the colour of the bar's arrow.
    """
    check_has("parts", parts, "heads", "feed_forwards", "embedding", "biases")
    rest = {"biases": parts.biases, "embedding": parts.embedding}
    return _parts([parts], [""], f"part of the {quantity}", title, rest)


@styled
def attribution(estimate, tried=None, quantity="logit", title=None):
    """What switching off each head and feed-forward network does, or patching it: estimated, and tried beside it.

    estimate: an `inspection.Effects`, as returned by `inspection.attribution`
    tried: that of `inspection.measured` for the same question, or None
    quantity: the name of the score

    How to read it: as `contributions`; blue: the logit is smaller without the part, which was needed. Where the two
    panels differ, later layers react to the change, or the change is too large for a straight line; the right one is
    what happens.

    Raises ValueError if the two have other parts.
    """
    effects, titles = [estimate], ["estimated by one backward pass", "measured, one part after the other"]
    check_has("estimate", estimate, "heads", "feed_forwards")
    if tried is not None:
        check_has("tried", tried, "heads", "feed_forwards")
        if list(tried.heads) != list(estimate.heads):
            raise ValueError("estimate and tried must be of the same model, their heads differ")
        effects.append(tried)
    return _parts(effects, titles[: len(effects)], f"change of the {quantity}", title)


def _parts(found, titles, quantity, title, rest=None):
    """For each of `found` a panel of layers × (heads, feed-forward), a row below for each {name: number} of rest."""
    rest, paths = rest or {}, list(found[0].heads)[::-1]  # the last layer is at the top
    H, blocks = max(map(len, found[0].heads.values())), [path.rpartition(".")[0] for path in paths]
    panels = np.full((len(found), len(paths) + len(rest), H + 1), np.nan)
    for panel, parts in zip(panels, found, strict=True):
        for row, path in zip(panel, paths, strict=False):
            row[: len(parts.heads[path])] = parts.heads[path]
        for block in set(blocks):  # its feed-forward network follows its last attention
            panel[blocks.index(block), -1] = parts.feed_forwards.get(f"{block}.feed_forward", np.nan)
        panel[len(paths) :] = np.reshape([*rest.values()], (-1, 1))
    panels = np.where(np.isnan(panels), np.nan, steady(np.nan_to_num(panels)))
    largest = np.nanmax(np.abs(panels[:, : len(paths), :H])) or 1.0
    shown = np.abs(panels) >= STRONG * largest
    shown[:, len(paths) :] = np.arange(H + 1) == H // 2  # once
    texts = [_texts(panel, largest, decimals=0) for panel in np.where(shown, panels, np.nan)]
    cell = max(text_width(text, TEXT - 1) for panel in texts for row in panel for text in row) + PAD / 2
    columns = [*(f"{h + 1}" for h in range(H)), "feed-\nforward"]
    rows = [*map(_named, paths), *rest]
    grid = _Grid(rows, columns, cell, LOW_ROW, title, "head", *_bar(quantity, largest), titles)
    for axes, panel, text in zip(grid.panels, panels, texts, strict=True):
        image = grid.signed(panel, largest, quantity, axes, np.nanmax(np.abs(panels)) > largest)
        print_values(axes, panel, image, text)
        axes.axvline(H - 0.5, color="white", linewidth=3)
    return grid.figure


def _named(path):
    """blocks.3.attention -> layer 4; decoder.0.cross_attention -> decoder 1, cross"""
    match = re.fullmatch(r"(\w+)\.(\d+)\.(\w*?)_?attention", path)
    if not match:
        return path
    stack, number, kind = match.groups()
    return f"{'layer' if stack == 'blocks' else stack} {int(number) + 1}" + (f", {kind}" if kind else "")


def _texts(values, largest, decimals=2):
    """The values with their sign, at least so many decimals and two digits of the largest; "" for a missing one."""
    digits = np.maximum(decimals, 1 - np.floor(np.log10(np.fmax(largest, np.abs(values)))).astype(int))
    return [list(map(_signed, *row)) for row in zip(values, digits, strict=True)]


def _ticks(largest):
    """{tick: its mark} of a scale from −largest to largest."""
    ticks = [tick for tick in round_ticks(4).tick_values(-largest, largest) if abs(tick) <= largest]
    return {tick: f"{tick:g}".replace("-", "−") for tick in ticks}


def _bar(quantity, largest):
    """The label of a colour bar, and its width in inches."""
    return quantity, max(map(text_width, _ticks(largest).values())) + BAR


def _signed(value, digits):
    if np.isnan(value):  # a layer with fewer heads
        return ""
    return "0" if abs(value) < 0.5 * 10.0**-digits else f"{value:+.{digits}f}".replace("-", "−")


class _Grid:
    """A figure with panels of rows × columns side by side, named on the left and below, and axes for a colour bar.

    .figure, .panels, .axes (the first of them), .bar
    """

    def __init__(self, rows, columns, cell, height, title, label, bar_label, bar, titles=("",)):
        across, down = cell * len(columns), height * len(rows)
        left = EDGE + max(map(text_width, rows)) + 2 * PAD
        pitch = max(across, text_width(label), *map(text_width, titles)) + 2 * GAP
        lines = [line for name in columns for line in name.split("\n")]
        beyond = max(0, (text_width(lines[-1]) - cell) / 2)  # a long name of the last column
        width = left + len(titles) * pitch - 2 * GAP + beyond + bar + EDGE
        room = max(down, 1.1, text_width(bar_label))  # for the colour bar
        bottom = max(2 * EDGE, EDGE + 2 * LABEL + PAD - (room - down))
        above = LABEL if any(titles) else 0
        self.figure = Picture.titled(title, width, bottom + room + above + EDGE)
        self.panels = []
        for i, name in enumerate(titles):
            middle = left + (i + 0.5) * pitch - GAP
            axes = self.figure.panel(middle - across / 2, bottom + room - down, across, down)
            axes.set_xticks(range(len(columns)), columns)
            axes.set_yticks(*([[]] if i else [range(len(rows)), rows]))
            axes.set_title(name, pad=4)
            axes.tick_params(length=0, pad=4)
            for word in axes.get_xticklabels() + axes.get_yticklabels():
                word.set_parse_math(False)
            axes.set_xlabel(label)
            axes.spines[:].set_visible(False)
            self.panels.append(axes)
        self.axes = self.panels[0]
        self.bar = self.figure.panel(width - EDGE - bar + 2 * PAD, bottom, 0.14, room)

    def signed(self, values, largest, quantity, axes=None, beyond=False):
        """Draw the values, red above 0 and blue below, and their bar; beyond: whether some exceed its ends."""
        axes = axes or self.axes
        image = axes.imshow(values, cmap=SIGNED, norm=CenteredNorm(0, largest), aspect="auto")
        self.bar.clear()
        extend = "both" if beyond else "neither"
        bar = self.figure.colorbar(image, cax=self.bar, label=quantity, extend=extend, extendfrac=0.03)
        ticks = _ticks(largest)
        bar.set_ticks(list(ticks), labels=list(ticks.values()))
        return image
