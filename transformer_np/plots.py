"""Pictures: the positional encoding, attention weights, masks, training curves.

Every function returns a matplotlib Figure. Jupyter shows it where it is the last value of a cell; a script saves it with
`figure.savefig("name.png")`. No pyplot, so nothing global: no backend is chosen, no figure is left open, and the
reader's own matplotlib style is neither used nor changed.
"""

import io
import math
import textwrap

import numpy as np
from matplotlib import style
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from matplotlib.textpath import text_to_path
from matplotlib.ticker import MaxNLocator

from . import functional as F

WEIGHTS = "viridis"  # 0 … 1, dark to bright; perceptually uniform, safe for the colour-blind
SIGNED = "RdBu_r"  # blue below zero, white at zero, red above
SEEN, HIDDEN, HATCH = "#cfe6f5", "#8c8c8c", "#3d3d3d"
RAW, TRAINING, VALIDATION, RATE = "#9ecae1", "#0072b2", "#d55e00", "#009e73"  # Okabe and Ito's blue, vermilion, green

TEXT = 9  # points
STYLE = {
    "font.size": TEXT,
    "axes.titlesize": TEXT,
    "axes.labelsize": TEXT,
    "figure.titlesize": 11,
    "figure.dpi": 150,
    "legend.fontsize": TEXT,
    "hatch.linewidth": 0.8,
}
styled = style.context(["default", STYLE])

# Inches. A page is 8 wide: 1200 pixels, still readable in a README that shows it 800 wide.
PAGE = (8.0, 8.0)  # a picture of words keeps to this width and height …
LARGEST_PAGE = (14.0, 14.0)  # … unless its words would not fit; beyond this only every second, third … word is named
CELL = 0.8  # at most, one square of a heatmap
CELL_WITH_VALUE = 0.36  # at least, to print a number in it
LINE = 0.155  # one line of text
EDGE, PAD, LABEL, GAP = 0.1, 0.07, 0.25, 0.14  # figure's edge, around tick labels, an axis label, between panels
LONGEST_WORD = 20  # characters


class Picture(Figure):
    """A matplotlib Figure that Jupyter shows without pyplot."""

    def _repr_png_(self):
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


# --- positional encoding ----------------------------------------------------------------------------------------------


@styled
def positional_encoding(length=50, d_model=64, table=None):
    """The positional encoding, one row a position, one column a dimension.

    table: another table (length, d_model) to show instead, say a learned one; `length` and `d_model` are then its own

    How to read it: a row is what is added to the embedding of the word at that position, so no two rows may be alike.
    Down a column runs a sine (even dimension) or cosine (odd dimension) over the position: on the left it turns over
    within a few words, like the last digit of a counter, on the right it has hardly moved from sin 0 = 0 and cos 0 = 1
    by the last row. White is 0, red is positive, blue is negative.
    """
    if table is None:
        table = F.sinusoidal_encoding(length, d_model)
    table = _numbers("table", table)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"table must have the axes (length, d_model), got shape {table.shape}")
    limit = float(np.abs(table).max()) or 1.0
    limit = 1.0 if 0.9 < limit < 1 else limit  # a sine whose crest falls between two positions

    figure = Picture(figsize=(8, 4.4), layout="constrained")
    axes = figure.add_subplot(xlabel="dimension", ylabel="position")
    image = axes.imshow(table, cmap=SIGNED, vmin=-limit, vmax=limit, aspect="auto")
    axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(10, integer=True))
    figure.colorbar(image, label="value", pad=0.02)
    return _finished(figure)


# --- attention --------------------------------------------------------------------------------------------------------


@styled
def attention(weights, queries, keys, title=None):
    """Attention weights as heatmaps: who looks at whom.

    weights: (T, S) one head; (H, T, S) all heads of a layer; (L, H, T, S) all layers, a row of pictures each. There is no
        batch axis: take one sentence, `layer.weights[0]` or `attention_maps(model)[:, 0]`.
    queries, keys: the T words that look and the S words that are looked at

    How to read it: go to a word on the left; along its row the bright squares are the words it takes its information
    from. A row adds up to 1, so one bright square means a sharp look and an evenly dark row a look at everything. A
    bright diagonal is words looking at themselves, a bright column a word that all look at. A printed 0 without
    decimals is exactly 0: hidden by the mask. The colours mean the same in all panels: dark 0, bright 1. Head 1 of
    layer 1 is weights[0, 0].

    Raises ValueError if the words are not as many as the rows and columns, or a weight lies outside 0 … 1.
    """
    weights = _numbers("weights", weights)
    if weights.ndim not in (2, 3, 4) or 0 in weights.shape:
        raise ValueError(f"weights must have the axes (T, S), (H, T, S) or (L, H, T, S), got shape {weights.shape}")
    if weights.min() < -1e-5 or weights.max() > 1 + 1e-5:
        raise ValueError(
            f"weights must lie in 0 … 1, got {weights.min():.4g} … {weights.max():.4g}: not after softmax?"
        )
    T, S = weights.shape[-2:]
    queries, keys = _words("queries", queries, T, "row"), _words("keys", keys, S, "column")

    count, layers = math.prod(weights.shape[:-2]), weights.ndim == 4
    if layers:
        rows, columns = weights.shape[:2]
    else:
        rows = math.ceil(count / 4)  # of at most four heads
        columns = math.ceil(count / rows)
    sheet = _Sheet(
        rows,
        columns,
        count,
        queries,
        keys,
        labels=("key (looked at)", "query (looking)"),
        title=title,
        heads=[] if weights.ndim == 2 else [f"head {h + 1}" for h in range(columns if layers else count)],
        right=(0.95 if layers else 0.75),
    )
    for axes, panel in zip(sheet.panels, weights.reshape(-1, T, S), strict=True):
        image = axes.imshow(panel, cmap=WEIGHTS, norm=Normalize(0, 1))
        if sheet.cell >= CELL_WITH_VALUE:
            _print_values(axes, panel, image)
    if layers:
        for layer, axes in enumerate(sheet.panels[columns - 1 :: columns]):
            axes.annotate(
                f"layer {layer + 1}",
                (1, 0.5),
                xytext=(4, 0),
                xycoords="axes fraction",
                textcoords="offset points",
                rotation=270,
                va="center",
            )
    sheet.figure.colorbar(image, cax=sheet.bar_axes(0.1 if not layers else 0.3), label="attention weight")
    return _finished(sheet.figure)


def attention_maps(model, kind="encoder"):
    """The attention weights of a Transformer's last forward, all layers in one array.

    kind: "encoder" (the source looks at itself), "decoder" (the target looks at itself and its past) or "cross" (the
        target looks at the source)
    ->  (L, B, H, T, S)

        plots.attention(plots.attention_maps(model, "cross")[:, 0], target_words, source_words)

    Of a padded sentence take the part without the padding: `[:, row, :, :T, :S]`.

    Raises RuntimeError if there was no forward, ValueError for another kind or a model without such layers.
    """
    stacks = {"encoder": "encoder.attention", "decoder": "decoder.self_attention", "cross": "decoder.cross_attention"}
    if kind not in stacks:
        raise ValueError(f"kind must be one of {', '.join(stacks)}, got {kind!r}")
    stack, name = stacks[kind].split(".")
    blocks = getattr(model, stack, None)
    if not blocks:
        raise ValueError(f"model must have {stack} layers to show, got a {type(model).__name__} without any")
    maps = [getattr(block, name).weights for block in blocks]
    if any(weights is None for weights in maps):
        raise RuntimeError(f"the {stack} has no attention weights yet: run a forward, model(src, tgt_in), first")
    return np.stack(maps)


def _print_values(axes, panel, image):
    """The number in each square, black on bright and white on dark."""
    red, green, blue, _ = np.moveaxis(image.to_rgba(panel) ** 2.2, -1, 0)  # linear light
    bright = 0.21 * red + 0.72 * green + 0.07 * blue > 0.18  # (T, S)
    for (t, s), value in np.ndenumerate(panel):
        text = "0" if value == 0 else f"{value:.2f}"
        axes.text(s, t, text, ha="center", va="center", size=TEXT - 1, color="black" if bright[t, s] else "white")


# --- masks ------------------------------------------------------------------------------------------------------------


@styled
def mask(mask, queries=None, keys=None):
    """A mask: what each query may see.

    mask: (T, S), Boolean (True = hidden) or float, to be added to the scores (0 = seen, −inf = hidden; −1e4 and less count
        as hidden too). Leading axes of size 1 are dropped.
    queries, keys: the T and S words; positions 0, 1, … where not given

    How to read it: go to a word on the left; along its row the plain squares are the words it may look at, the hatched
    ones get weight 0 whatever their score. A hatched triangle at the upper right is the causal mask: no word sees those
    that come after it. Hatched columns are padding.
    """
    hidden = _hidden(mask)
    T, S = hidden.shape
    queries = _words("queries", range(T) if queries is None else queries, T, "row")
    keys = _words("keys", range(S) if keys is None else keys, S, "column")

    sheet = _Sheet(1, 1, 1, queries, keys, labels=("key (looked at)", "query (looking)"), right=0.95, largest_cell=0.5)
    (axes,) = sheet.panels
    axes.imshow(hidden, cmap=ListedColormap([SEEN, HIDDEN]), vmin=0, vmax=1)
    axes.add_patch(PathPatch(_outline(hidden), facecolor="none", edgecolor=HATCH, linewidth=0, hatch="////"))
    if sheet.cell > 0.1:  # white lines between the squares
        axes.set_xticks(np.arange(1, S) - 0.5, minor=True)
        axes.set_yticks(np.arange(1, T) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=1)
        axes.tick_params(which="minor", length=0)
    legend = [
        Patch(facecolor=SEEN, edgecolor=HATCH, linewidth=0.5, label="seen"),
        Patch(facecolor=HIDDEN, edgecolor=HATCH, linewidth=0.5, hatch="////", label="hidden"),
    ]
    axes.legend(handles=legend, loc="upper left", bbox_to_anchor=(1, 1), borderaxespad=0, frameon=False)
    return _finished(sheet.figure)


def _hidden(mask):
    """The mask as a Boolean array (T, S)."""
    mask = np.asarray(mask)
    if mask.dtype.kind not in "bf":
        raise TypeError(f"mask must be Boolean (True = hidden) or float (added to the scores), got {mask.dtype}")
    if mask.ndim < 2 or math.prod(mask.shape[:-2]) != 1 or mask.size == 0:
        raise ValueError(f"mask must have the axes (T, S), got shape {mask.shape}")
    mask = mask.reshape(mask.shape[-2:])
    if mask.dtype == bool:
        return mask
    hidden = mask <= -1e4
    if not (hidden | (mask == 0)).all():
        other = mask[~hidden & (mask != 0)][0]
        raise ValueError(f"mask must be 0 (seen) or −inf (hidden) where it is float, got {other:.4g}")
    return hidden


def _outline(hidden):
    """The hidden squares as one path, a rectangle for each run of them in a row."""
    edges = np.diff(np.pad(hidden, ((0, 0), (1, 1))).astype(np.int8), axis=1)  # (T, S + 1): 1 a run starts, −1 it ended
    rows, starts = np.nonzero(edges == 1)
    _, stops = np.nonzero(edges == -1)
    left, right, top, bottom = starts - 0.5, stops - 0.5, rows - 0.5, rows + 0.5
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    vertices = np.array(corners, float).transpose(2, 0, 1).reshape(-1, 2)  # (5 · runs, 2)
    return Path(vertices, np.tile([Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY], len(rows)))


# --- training ---------------------------------------------------------------------------------------------------------


@styled
def training_curve(history, learning_rate=True, unit="nats per token"):
    """The loss while training, and the learning rate below it.

    history: an object with `.losses`, one training loss a step; `.validation`, pairs (step, loss), may be empty;
        `.learning_rates`, one a step, may be empty
    learning_rate: whether to show it, where the history has it
    unit: of the loss

    How to read it: the pale line is the loss of each batch, the blue one its mean over the steps around, the orange dots
    the loss on the validation data. A model that knows nothing starts near ln(vocabulary size) nats per token; e to the
    power of the loss is the number of equally likely words it still hesitates between. Both falling: it learns. Blue
    falling while orange rises: it learns the training data by heart.
    """
    losses, rates = np.asarray(history.losses, float), np.asarray(history.learning_rates, float)
    validation = np.asarray(history.validation, float)
    if losses.ndim != 1 or not len(losses):
        raise ValueError(f"history.losses must be a list of numbers, one a step, got shape {losses.shape}")
    if validation.size and (validation.ndim != 2 or validation.shape[1] != 2):
        raise ValueError(f"history.validation must be pairs (step, loss), got shape {validation.shape}")
    if len(rates) and rates.shape != losses.shape:
        raise ValueError(f"history.learning_rates must be as many as the {len(losses)} losses, got shape {rates.shape}")
    steps = np.arange(1, len(losses) + 1)
    window = len(losses) // 25 // 2 * 2 + 1  # odd
    with_rates = learning_rate and len(rates) > 0

    figure = Picture(figsize=(8, 5.4 if with_rates else 4), layout="constrained")
    panels = figure.subplots(1 + with_rates, sharex=True, squeeze=False, height_ratios=[3, 1][: 1 + with_rates])[:, 0]
    loss = panels[0]
    few = {"marker": "o", "markersize": 3} if len(losses) < 10 else {}
    if window == 1:
        loss.plot(steps, losses, color=TRAINING, label="training", **few)
    else:
        loss.plot(steps, losses, color=RAW, linewidth=0.6, label="training, each step")
        loss.plot(steps, _smooth(losses, window), color=TRAINING, linewidth=1.8, label=f"mean of {window} steps")
    if validation.size:
        loss.plot(*validation.T, "o-", color=VALIDATION, markersize=4.5, linewidth=1, label="validation")
    loss.set_ylabel(f"loss ({unit})")
    loss.set_ylim(bottom=0)
    loss.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False, borderaxespad=0.2)
    if with_rates:
        panels[1].plot(steps, rates, color=RATE, **few)
        panels[1].set_ylabel("learning rate")
        panels[1].set_ylim(bottom=0)
        panels[1].ticklabel_format(axis="y", scilimits=(-3, 4), useMathText=True)
        panels[1].yaxis.set_major_locator(MaxNLocator(3))
    for axes in panels:
        axes.grid(color="#e5e5e5", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("step")
    panels[-1].xaxis.set_major_locator(MaxNLocator(9, integer=True))
    figure.align_ylabels()
    return _finished(figure)


def _smooth(values, window):
    """The mean over the `window` values around each, of those that exist and are finite."""
    finite = np.isfinite(values)
    total = np.convolve(np.where(finite, values, 0), np.ones(window), "same")
    count = np.convolve(finite, np.ones(window), "same")
    return np.where(count > 0.5, total / np.maximum(count, 1), np.nan)


# --- words along both axes --------------------------------------------------------------------------------------------


class _Sheet:
    """A figure with rows × columns panels of square cells, words at its left and lower edge only.

    The sizes follow from the words, in inches, so that nothing is clipped, nothing overlaps and nothing is left empty.
    .figure, .panels (a flat list), .cell (inches)
    """

    def __init__(self, rows, columns, count, queries, keys, labels, title=None, heads=(), right=0.0, largest_cell=CELL):
        T, S = len(queries), len(keys)
        titled_rows = min(1, len(heads)) if len(heads) == columns else rows
        query_width, key_width = max(map(_width, queries)), max(map(_width, keys))
        left = EDGE + LABEL + query_width + 2 * PAD

        gaps = (columns - 1) * GAP, (rows - 1) * GAP + titled_rows * LABEL
        margins = left + right + gaps[0], EDGE + LABEL + key_width + 2 * PAD + gaps[1]
        fits, fits_at_most = (
            min((page[0] - margins[0]) / (columns * S), (page[1] - margins[1]) / (rows * T))
            for page in (PAGE, LARGEST_PAGE)
        )
        self.cell = cell = max(min(largest_cell, max(fits, min(LINE, fits_at_most))), 0.01)
        every = math.ceil(LINE / cell - 1e-6)  # every so many-th word is named

        if key_width + 2 * PAD <= cell * every:
            rotation, key_height = 0, LINE
        elif count == 1 and cell * every > 1.5 * LINE:
            rotation, key_height = 45, (key_width + LINE) * 0.71
            left = max(left, EDGE + LABEL + 2 * PAD + key_width * 0.71 - cell / 2)  # the first leans over the edge
        else:
            rotation, key_height = 90, key_width

        panel = S * cell, T * cell
        pitch = max(panel[0], *map(_width, heads), 0.0) + GAP, panel[1] + GAP + (LABEL if titled_rows == rows else 0)
        grid = columns * pitch[0] - GAP, (rows - 1) * pitch[1] + panel[1]
        room = max(grid[0], 1.1), max(grid[1], 1.2)  # not too small for the axis labels and the colour bar
        bottom = EDGE + LABEL + key_height + 2 * PAD
        width = left + room[0] + right
        lines = textwrap.wrap(title, int((width - 2 * EDGE) / _width(title, 11) * len(title))) if title else []
        top = EDGE + 0.2 * len(lines) + (PAD if lines else 0) + (LABEL if heads else 0)
        height = bottom + room[1] + top

        self.figure = Picture(figsize=(width, height))
        self._size, self._right = (width, height), (left + room[0], bottom, room[1])
        self.panels = []
        for i in range(count):
            row, column = divmod(i, columns)
            x = left + (room[0] - grid[0]) / 2 + column * pitch[0] + (pitch[0] - GAP - panel[0]) / 2
            y = bottom + (room[1] + grid[1]) / 2 - row * pitch[1] - panel[1]
            axes = self._axes(x, y, *panel)
            axes.set(xlim=(-0.5, S - 0.5), ylim=(T - 0.5, -0.5))
            axes.set_xticks(range(0, S, every), keys[::every] if i + columns >= count else [""] * len(keys[::every]))
            axes.set_yticks(range(0, T, every), queries[::every] if column == 0 else [""] * len(queries[::every]))
            axes.tick_params(length=2, pad=3, width=0.6)
            for word in axes.get_xticklabels() + axes.get_yticklabels():
                word.set(parse_math=False, rotation_mode="anchor")  # a $ is a $
            for word in axes.get_xticklabels() if rotation else ():
                word.set(rotation=rotation, ha="right", va="center" if rotation == 90 else "top")
            axes.spines[:].set_visible(False)
            if i < len(heads):
                axes.set_title(heads[i], pad=4)
            self.panels.append(axes)

        if count == 1:
            self.panels[0].set(xlabel=labels[0], ylabel=labels[1])
        else:
            middle = (left + room[0] / 2) / width, (bottom + room[1] / 2) / height
            self.figure.supxlabel(labels[0], x=middle[0], y=EDGE / height, va="bottom", size=TEXT)
            self.figure.supylabel(labels[1], x=EDGE / width, y=middle[1], ha="left", size=TEXT)
        if lines:
            self.figure.suptitle("\n".join(lines), y=1 - EDGE / height, va="top", parse_math=False)

    def bar_axes(self, gap):
        """Axes for a colour bar, as high as the panels together and `gap` to the right of them."""
        x, y, height = self._right
        return self._axes(x + gap, y, 0.14, height)

    def _axes(self, x, y, width, height):
        W, H = self._size
        return self.figure.add_axes((x / W, y / H, width / W, height / H))


def _width(word, size=TEXT):
    """How wide the word is, in inches."""
    return text_to_path.get_text_width_height_descent(word, FontProperties(size=size), ismath=False)[0] / 72


def _words(name, words, count, what):
    """The words as they are shown: blanks at an end and line breaks made visible, very long ones cut."""
    if isinstance(words, str):
        raise TypeError(f"{name} must be a list of words, got the string {words!r}; use its .split()")
    words = [str(word) for word in words]
    if len(words) != count:
        raise ValueError(f"{name} must have {count} words, one a {what}; got {len(words)}: {words[:20]}")
    return [_visible(word) for word in words]


def _visible(word):
    core = word.strip(" ")
    blanks = len(word) - len(word.lstrip(" ")), len(word.lstrip(" ")) - len(core)
    word = ("␣" * blanks[0] + core + "␣" * blanks[1]).replace("\n", "⏎").replace("\t", "⇥").replace("\r", "␍")
    return word if len(word) <= LONGEST_WORD else word[: LONGEST_WORD - 1] + "…"


# --- all pictures -----------------------------------------------------------------------------------------------------


def _numbers(name, values):
    """An array of finite numbers."""
    values = np.asarray(values)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be an array of numbers, got {values.dtype}")
    if not np.isfinite(values).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(f"{name} must be finite, got {values[where]} at index {where}")
    return values


def _finished(figure):
    """Everything that matplotlib would make at the first drawing, ticks above all, made now and in our style."""
    figure.draw_without_rendering()
    return figure
