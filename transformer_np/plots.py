"""Pictures: the positional encoding, attention weights, masks, training curves, how layers grow.

Every function returns a matplotlib Figure. Jupyter shows it where it is the last value of a cell; a script saves it
with `figure.savefig("name.png")`. No pyplot, so nothing global: no backend is chosen, no figure is left open, and the
reader's own matplotlib style is neither used nor changed.
"""

import io
import itertools
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
from matplotlib.ticker import LogLocator, MaxNLocator

from . import functional as F

WEIGHTS = "viridis"  # 0 … 1 from dark to bright: perceptually uniform, safe for the colour-blind
SIGNED = "RdBu_r"  # blue below zero, white at zero, red above
SEEN, HIDDEN, HATCH = "#cfe6f5", "#b5b5b5", "#484848"
RAW, TRAINING, VALIDATION, RATE = "#9ecae1", "#0072b2", "#d55e00", "#009e73"  # the last three: Okabe and Ito
KEY, QUERY = "key (looked at)", "query (looking)"

TEXT, TITLE = 9, 11  # points
STYLE = {
    "font.size": TEXT,
    "axes.titlesize": TEXT,
    "axes.labelsize": TEXT,
    "figure.titlesize": TITLE,
    "legend.fontsize": TEXT,
    "hatch.linewidth": 0.8,
    "figure.dpi": 150,
}
styled = style.context(["default", STYLE])

# Inches. A page 8 wide is 1200 pixels, and can still be read in a README that shows it 800 wide.
PAGE = (8.0, 8.0)  # a picture with words keeps to about this width and height …
LARGEST_PAGE = (14.0, 14.0)  # … unless there are too many words; beyond this only every second, fifth … is named
CELL = 0.8  # one square of a heatmap, at most
CELL_WITH_VALUE = 0.36  # and at least, to print a number in it
LINE = 0.155  # a line of text
LABEL = 0.2  # an axis label, or the title of a panel
EDGE, PAD, GAP = 0.1, 0.07, 0.14  # blank: at the figure's edge, around words, between panels
LONGEST_WORD = 20  # characters


class Picture(Figure):
    """A matplotlib Figure that Jupyter shows even without pyplot."""

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
    Down a column runs a sine (even dimension) or a cosine (odd dimension) of the position: at the left it turns over
    within a few words, like the last digit of a counter; at the right it has hardly moved from sin 0 = 0 and cos 0 = 1
    by the last row. White is 0, red positive, blue negative.
    """
    if table is None:
        table = F.sinusoidal_encoding(length, d_model)
    table = _numbers("table", table)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"table must have the axes (length, d_model), got shape {table.shape}")
    limit = float(np.abs(table).max()) or 1.0
    if 0.9 < limit < 1.0:  # a sine whose crest falls between two positions
        limit = 1.0

    figure = Picture(figsize=(8, 4.4), layout="constrained")
    axes = figure.add_subplot(xlabel="dimension", ylabel="position")
    image = axes.imshow(table, cmap=SIGNED, vmin=-limit, vmax=limit, aspect="auto")
    axes.xaxis.set_major_locator(_ticks(10, integer=True))
    axes.yaxis.set_major_locator(_ticks(10, integer=True))
    if table.shape[0] <= 16 and table.shape[1] <= 14:
        _print_values(axes, table, image)
    figure.colorbar(image, label="value", pad=0.02, ticks=_ticks(8))
    return figure


# --- attention --------------------------------------------------------------------------------------------------------


@styled
def attention(weights, queries, keys, title=None):
    """Attention weights as heatmaps: who looks at whom.

    weights: (T, S) one head; (H, T, S) all heads of a layer; (L, H, T, S) all layers, a row of panels each. There is
        no batch axis: take one sentence, `layer.weights[0]` or `attention_maps(model)[:, 0]`.
    queries, keys: the T words that look and the S words that are looked at

    How to read it: find a word on the left; along its row the bright squares are the words it takes its information
    from. A row adds up to 1, so one bright square is a sharp look and an evenly dark row a look at everything. A bright
    diagonal: words look at themselves. A bright column: a word that all look at. In a decoder the row of a word is the
    look at the moment when the *next* word is to be said. A printed 0 without decimals is exactly 0, hidden by the
    mask. Dark is 0 and bright is 1 in all panels alike. Head 1 of layer 1 is weights[0, 0].

    Raises ValueError if there are not as many words as rows or columns, or if a weight lies outside 0 … 1.
    """
    weights = _numbers("weights", weights)
    if weights.ndim not in (2, 3, 4) or 0 in weights.shape:
        raise ValueError(f"weights must have the axes (T, S), (H, T, S) or (L, H, T, S), got shape {weights.shape}")
    low, high = weights.min(), weights.max()
    if low < -1e-5 or high > 1 + 1e-5:
        raise ValueError(f"weights must lie in 0 … 1, as after the softmax; got {low:.4g} … {high:.4g}")
    *layers, T, S = weights.shape
    queries, keys = _words("queries", queries, T, "row"), _words("keys", keys, S, "column")
    panels = weights.reshape(-1, T, S)

    rows, columns = layers if len(layers) == 2 else _rows_and_columns(len(panels))
    heads = [f"head {h + 1}" for h in range(layers[-1])] if layers else []
    side = 0.75 + 0.2 * (len(layers) == 2)
    sheet = _Sheet(rows, columns, queries, keys, heads, title, side, len(panels))
    for axes, panel in zip(sheet.panels, panels, strict=True):
        image = axes.imshow(panel, cmap=WEIGHTS, norm=Normalize(0, 1))
        if sheet.cell >= CELL_WITH_VALUE:
            _print_values(axes, panel, image)
    if len(layers) == 2:
        for layer, axes in enumerate(sheet.panels[columns - 1 :: columns]):
            x = 1 + 0.05 / (S * sheet.cell)
            axes.text(x, 0.5, f"layer {layer + 1}", transform=axes.transAxes, rotation=270, va="center")
    bar = sheet.bar_axes(side - 0.65)
    sheet.figure.colorbar(image, cax=bar, label="attention weight", ticks=np.arange(6) / 5)
    return sheet.figure


def attention_maps(model, kind="encoder"):
    """The attention weights of a Transformer's last forward, all layers in one array.

    kind: "encoder" (the source looks at itself), "decoder" (the target looks at itself, back to its start) or "cross"
        (the target looks at the source)
    ->  (L, B, H, T, S)

        plots.attention(plots.attention_maps(model, "cross")[:, 0], target_words, source_words)

    Where the sentence is padded, take the part without the padding: `[:, row, :, :T, :S]`.

    Raises RuntimeError if there was no forward, ValueError for another kind or a model without such layers.
    """
    places = {
        "encoder": ("encoder", "attention"),
        "decoder": ("decoder", "self_attention"),
        "cross": ("decoder", "cross_attention"),
    }
    if kind not in places:
        raise ValueError(f"kind must be one of {', '.join(places)}; got {kind!r}")
    stack, name = places[kind]
    blocks = getattr(model, stack, None)
    if not blocks:
        raise ValueError(
            f"model must have {stack} layers to show its {kind} attention, {type(model).__name__} has none"
        )
    maps = [getattr(block, name).weights for block in blocks]
    if any(weights is None for weights in maps):
        raise RuntimeError(f"the {stack} has not looked at anything yet: call model(src, tgt_in) first")
    return np.stack(maps)


def _rows_and_columns(count):
    """A grid for so many heads, at most four in a row, as evenly filled as can be."""
    rows = math.ceil(count / 4)
    return rows, math.ceil(count / rows)


def _print_values(axes, panel, image):
    """The number in each square, black on bright and white on dark."""
    linear = image.to_rgba(panel)[..., :3] ** 2.2  # light, from the screen's scale of it
    bright = linear @ (0.21, 0.72, 0.07) > 0.18  # (T, S): black has the higher contrast
    for (t, s), value in np.ndenumerate(panel):
        text = "0" if value == 0 else f"{value:.2f}".replace("-", "−")
        axes.text(s, t, text, ha="center", va="center", size=TEXT - 1, color="black" if bright[t, s] else "white")


# --- masks ------------------------------------------------------------------------------------------------------------


@styled
def mask(mask, queries=None, keys=None):
    """A mask: what each query may see.

    mask: (T, S), Boolean (True = hidden) or float, to be added to the scores (0 = seen, −inf = hidden; −1e4 and less
        count as hidden too). Leading axes of size 1 are dropped.
    queries, keys: the T and S words; positions 0, 1, … where not given

    How to read it: find a word on the left; along its row the plain squares are the words it may look at, the hatched
    ones get weight 0 whatever their score. A hatched triangle at the upper right is the causal mask: no word sees those
    that come after it. Hatched columns are padding.

    Raises TypeError for a mask that is neither Boolean nor float, ValueError for another shape or other numbers.
    """
    hidden = _hidden(mask)
    T, S = hidden.shape
    page = PAGE if queries is None and keys is None else LARGEST_PAGE
    queries = _words("queries", range(T) if queries is None else queries, T, "row")
    keys = _words("keys", range(S) if keys is None else keys, S, "column")

    sheet = _Sheet(1, 1, queries, keys, side=0.95, largest_cell=0.5, largest_page=page)
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
        Patch(facecolor=HIDDEN, edgecolor=HATCH, linewidth=0.5, label="hidden", hatch="////"),
    ]
    axes.legend(handles=legend, loc="upper left", bbox_to_anchor=(1, 1), borderaxespad=0, frameon=False)
    return sheet.figure


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
    other = mask[~hidden & (mask != 0)]
    if len(other):
        raise ValueError(f"mask must be 0 (seen) or −inf (hidden) where it is float, got {other[0]:.4g}")
    return hidden


def _outline(hidden):
    """The hidden squares as one path: a rectangle for each run of them in a row."""
    edges = np.diff(np.pad(hidden, ((0, 0), (1, 1))).astype(np.int8), axis=1)  # (T, S + 1): 1 a run starts, −1 it ended
    rows, starts = np.nonzero(edges == 1)
    _, stops = np.nonzero(edges == -1)
    left, right, top, bottom = starts - 0.5, stops - 0.5, rows - 0.5, rows + 0.5
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    vertices = np.array(corners).transpose(2, 0, 1).reshape(-1, 2)  # (5 · runs, 2)
    return Path(vertices, np.tile([Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY], len(rows)))


# --- training ---------------------------------------------------------------------------------------------------------


@styled
def training_curve(history, learning_rate=True, unit="nats per token"):
    """The loss during training, and the learning rate below it.

    history: an object with `.losses`, the training loss of each step; `.learning_rates`, one a step, or none;
        `.validation`, pairs (step, loss), or none. Steps count from 1.
    learning_rate: whether to show it, where the history has it
    unit: of the loss

    How to read it: the pale line is the loss of each batch, the blue one its mean over the steps around, the orange
    dots are the loss on the validation data. A model that knows nothing starts near ln(vocabulary size) nats per token;
    e to the power of the loss is the number of equally likely words it still hesitates between. Both falling: it
    learns. Blue falling while orange rises: it learns the training data by heart. Orange below blue is no mistake:
    dropout and label smoothing make only the training harder.
    """
    losses, rates = np.asarray(history.losses, float), np.asarray(history.learning_rates, float)
    validation = np.asarray(history.validation, float)
    if losses.ndim != 1 or not len(losses):
        raise ValueError(f"history.losses must be a list of numbers, one a step, got shape {losses.shape}")
    if validation.size and (validation.ndim != 2 or validation.shape[1] != 2):
        raise ValueError(f"history.validation must be pairs (step, loss), got shape {validation.shape}")
    if rates.size and rates.shape != losses.shape:
        raise ValueError(f"history.learning_rates must be as many as the {len(losses)} losses, got shape {rates.shape}")
    steps = np.arange(1, len(losses) + 1)
    window = len(losses) // 50 // 2 * 2 + 1  # odd, so that it has a middle
    dots = {"marker": "o", "markersize": 3} if len(losses) < 10 else {}
    with_rates = learning_rate and rates.size > 0

    figure = Picture(figsize=(8, 5.4 if with_rates else 4), layout="constrained")
    heights = [3, 1] if with_rates else [1]
    panels = figure.subplots(len(heights), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    if window == 1:
        panels[0].plot(steps, losses, color=TRAINING, label="training", **dots)
    else:
        panels[0].plot(steps, losses, color=RAW, linewidth=0.6, label="training, each step")
        panels[0].plot(steps, _smooth(losses, window), color=TRAINING, linewidth=1.8, label=f"mean of {window} steps")
    if validation.size:
        panels[0].plot(*validation.T, "o-", color=VALIDATION, markersize=4.5, linewidth=1, label="validation")
    panels[0].set_ylabel(f"loss ({unit})")
    panels[0].yaxis.set_major_locator(_ticks(8))
    panels[0].legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False, borderaxespad=0.2)
    if with_rates:
        panels[1].plot(steps, rates, color=RATE, **dots)
        panels[1].set_ylabel("learning rate")
        panels[1].ticklabel_format(axis="y", scilimits=(-3, 4), useMathText=True)
        panels[1].yaxis.set_major_locator(_ticks(3))
    for axes in panels:
        axes.update_datalim([(1, 0)])  # 0 is in the picture
        axes.margins(x=0.02)
        axes.autoscale_view()
        axes.set_ylim(bottom=0)
        axes.grid(color="#e5e5e5", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("step")
    panels[-1].xaxis.set_major_locator(_ticks(9, integer=True))
    figure.align_ylabels()
    return figure


def _smooth(values, window):
    """The mean of the `window` values around each, of those that exist and are finite."""
    finite = np.isfinite(values)
    reach = window // 2
    start = np.maximum(np.arange(len(values)) - reach, 0)
    stop = np.minimum(np.arange(len(values)) + reach + 1, len(values))
    total, count = (np.concatenate([[0.0], np.cumsum(x)]) for x in (np.where(finite, values, 0), finite))
    count = count[stop] - count[start]
    return np.where(count > 0, (total[stop] - total[start]) / np.maximum(count, 1), np.nan)


@styled
def copy_curves(curves):
    """How well models learn to copy a symbol from before their segment: the share of right answers over training.

    curves: a `tasks.copying.CopyCurves`: .steps, .accuracies {model: shares in 0 … 1, one for each of the steps},
        .chance, .lag and .segment_len

    How to read it: the symbol that is asked for lies `lag` segments back. A model that carries a memory from segment to
    segment rises to 100 %; one that sees only its segment stays on the dashed line, the share of guessing, however long
    it is trained.
    """
    steps = _numbers("curves.steps", curves.steps)
    figure = Picture(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="step", ylabel="right answers (%)")
    axes.axhline(100 * curves.chance, color=HATCH, linewidth=1, linestyle="--", label="guessing")
    for (name, shares), color in zip(curves.accuracies.items(), (TRAINING, VALIDATION, RATE), strict=False):
        shares = _numbers(f"curves.accuracies[{name!r}]", shares)
        if shares.shape != steps.shape:
            raise ValueError(
                f"{name} must have {len(steps)} shares, one for each of the steps, got shape {shares.shape}"
            )
        axes.plot(steps, 100 * shares, "o-", color=color, markersize=3.5, linewidth=1.8, label=name)
    axes.set_title(f"copying from {curves.lag} segments back, segments of {curves.segment_len} tokens", loc="left")
    axes.set_ylim(-2, 102)
    axes.margins(x=0.02)
    axes.xaxis.set_major_locator(_ticks(9, integer=True))
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=4, frameon=False, borderaxespad=0.2)
    axes.grid(color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


# --- words along both axes --------------------------------------------------------------------------------------------


class _Sheet:
    """A figure with rows × columns panels of square cells, the queries at its left edge and the keys at its lower edge.

    heads: titles, of the upper panels, or of all where they are more than columns
    side: inches to leave free at the right
    count: how many panels there are, where they do not fill the last row

    Every size follows from the words, so that nothing is clipped, nothing overlaps and no room is wasted.
    .figure, .panels (a list, row by row), .cell (inches)
    """

    def __init__(
        self,
        rows,
        columns,
        queries,
        keys,
        heads=(),
        title=None,
        side=0.0,
        count=1,
        largest_cell=CELL,
        largest_page=LARGEST_PAGE,
    ):
        T, S = len(queries), len(keys)
        key_width = max(map(_width, keys))
        left = EDGE + LABEL + max(map(_width, queries)) + 2 * PAD
        gap_x, gap_y = GAP, GAP + (LABEL if len(heads) > columns else 0)
        lowest = EDGE + LABEL + 2 * PAD
        above = EDGE + (LABEL if heads else 0)

        # how large a cell can be, with keys written upright
        taken_x = left + side + (columns - 1) * gap_x
        taken_y = lowest + key_width + above + (rows - 1) * gap_y
        fits, fits_at_most = (
            min((page[0] - taken_x) / (columns * S), (page[1] - taken_y) / (rows * T)) for page in (PAGE, largest_page)
        )
        self.cell = cell = max(0.01, min(largest_cell, max(fits, min(LINE, fits_at_most))))
        every = next(n for n in (1, 2, 5, 10, 20, 50) if n * cell > LINE - 1e-6)  # every n-th word is named

        if key_width + 2 * PAD <= every * cell:
            rotation, key_height = 0, LINE
        elif count == 1 and every * cell > 1.5 * LINE:
            rotation, key_height = 45, (key_width + LINE) * 0.71
            left = max(left, EDGE + LABEL + 2 * PAD + key_width * 0.71 - cell / 2)  # the first leans to the left
        else:
            rotation, key_height = 90, key_width

        panel = S * cell, T * cell
        pitch = max(panel[0], *map(_width, heads), 0.0) + gap_x, panel[1] + gap_y
        grid = columns * pitch[0] - gap_x, rows * pitch[1] - gap_y
        room = max(grid[0], 1.1), max(grid[1], 1.1)  # what axis labels and colour bar need
        bottom = lowest + key_height
        width = left + room[0] + side
        lines = _wrapped(title, width - 2 * EDGE) if title else []
        height = bottom + room[1] + above + (LABEL * len(lines) + PAD if lines else 0)

        figure = self.figure = Picture(figsize=(width, height))
        self._page, self._corner, self._room = (width, height), (left, bottom), room
        self.panels = []
        for i in range(count):
            row, column = divmod(i, columns)
            x = left + (room[0] - grid[0]) / 2 + column * pitch[0] + (pitch[0] - gap_x - panel[0]) / 2
            y = bottom + (room[1] + grid[1]) / 2 - row * pitch[1] - panel[1]
            axes = self._axes(x, y, *panel)
            axes.set(xlim=(-0.5, S - 0.5), ylim=(T - 0.5, -0.5))
            named_keys, named_queries = keys[::every], queries[::every]
            if i + columns < count:  # another panel below
                named_keys = []
            if column > 0:
                named_queries = []
            axes.set_xticks(every * np.arange(len(named_keys)), named_keys)
            axes.set_yticks(every * np.arange(len(named_queries)), named_queries)
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
            self.panels[0].set(xlabel=KEY, ylabel=QUERY)
        else:
            figure.supxlabel(KEY, x=(left + room[0] / 2) / width, y=EDGE / height, va="bottom", size=TEXT)
            figure.supylabel(QUERY, x=EDGE / width, y=(bottom + room[1] / 2) / height, ha="left", size=TEXT)
        if lines:
            figure.suptitle("\n".join(lines), y=1 - EDGE / height, va="top", parse_math=False)

    def bar_axes(self, gap):
        """Axes for a colour bar, as high as all panels together and `gap` to the right of them."""
        return self._axes(self._corner[0] + self._room[0] + gap, self._corner[1], 0.14, self._room[1])

    def _axes(self, x, y, width, height):
        W, H = self._page
        return self.figure.add_axes((x / W, y / H, width / W, height / H))


def _width(text, size=TEXT):
    """How wide the text is, in inches."""
    return text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0] / 72


def _wrapped(title, width):
    """The title in lines of no more than `width` inches."""
    for longest in range(len(title), 0, -1):
        lines = [line for part in title.splitlines() for line in textwrap.wrap(part, longest)]
        if max((_width(line, TITLE) for line in lines), default=0) <= width:
            break
    return lines


def _words(name, words, count, what):
    """The words as they are shown, if there are as many as needed."""
    if isinstance(words, str):
        raise TypeError(f"{name} must be a list of words, got the string {words!r}; use its .split()")
    words = [str(word) for word in words]
    if len(words) != count:
        some = ", ".join(words[:12]) + (", …" if len(words) > 12 else "")
        raise ValueError(f"{name} must be {count} words, one for each {what}; got {len(words)}: {some}")
    return [_visible(word) for word in words]


def _visible(word):
    """Blanks at its ends and breaks in it as signs, and no longer than LONGEST_WORD."""
    core = word.lstrip(" ")
    word = "␣" * (len(word) - len(core)) + core
    core = word.rstrip(" ")
    word = core + "␣" * (len(word) - len(core))
    word = word.replace("\n", "⏎").replace("\t", "⇥")
    return word if len(word) <= LONGEST_WORD else word[: LONGEST_WORD - 1] + "…"


def _ticks(most, integer=False):
    """At most so many ticks at round numbers. The default of matplotlib goes by the reader's font size."""
    return MaxNLocator(most, steps=[1, 2, 2.5, 5, 10], integer=integer)


def _numbers(name, values):
    """An array of finite numbers."""
    values = np.asarray(values)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be an array of numbers, got {values.dtype}")
    if not np.isfinite(values).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(f"{name} must be finite, got {values[where]} at index {where}")
    return values


# --- how layers grow --------------------------------------------------------------------------------------------------

LAYER_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # Okabe and Ito
LAYER_MARKERS = "osD^"


@styled
def complexity_curves(curves):
    """Time and memory of the layers as the sequence or the features grow, on logarithmic axes.

    curves: a list of objects as `complexity.measure` returns them, with .name, .quantity ("time" in seconds, "memory"
        in bytes), .variable, .sizes, .values and .exponent; those of "n" and "d" are drawn, a panel for each quantity
        and variable

    How to read it: on these axes c · n^p is a straight line of slope p, whatever c is. The number at the end of a line
    is its slope: 2 means that twice the length costs four times as much. How high a line lies says little, the layers
    were measured at different sizes of what stays fixed.
    """
    panels = {}
    for curve in curves:
        if curve.variable in ("n", "d"):
            panels.setdefault((curve.quantity, curve.variable), []).append(curve)
    if not panels:
        raise ValueError("curves must have one of the variable n or d at least")
    names = list(dict.fromkeys(curve.name for group in panels.values() for curve in group))

    figure = Picture(figsize=(max(5, 1 + 2.6 * len(panels)), 3.9), layout="constrained")
    handles = {}
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, ((quantity, variable), group) in zip(all_axes, panels.items(), strict=True):
        scale, unit = (1e3, "ms") if quantity == "time" else (2**-20, "MiB")
        for curve in group:
            i = names.index(curve.name) % len(LAYER_COLOURS)
            values = scale * np.asarray(curve.values)
            style_of_line = {"color": LAYER_COLOURS[i], "marker": LAYER_MARKERS[i], "markersize": 4, "linewidth": 1.4}
            (handles[curve.name],) = axes.plot(curve.sizes, values, **style_of_line)
        what = "length n" if variable == "n" else "features d"
        axes.set(xscale="log", yscale="log", xlabel=what, ylabel=f"{quantity} ({unit})")
        axes.set_title(f"{quantity} and {what}")
        low, high = (f(x for curve in group for x in curve.sizes) for f in (min, max))
        axes.set_xlim(low / 1.3, high * (high / low) ** 0.3)  # room for the slopes
        powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
        ticks = [2**p for p in powers if (p - powers[0]) % math.ceil(len(powers) / 4) == 0]
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
        axes.yaxis.set_major_formatter("{x:g}")
        _slopes(axes, group, scale, [LAYER_COLOURS[names.index(c.name) % len(LAYER_COLOURS)] for c in group])
        axes.grid(color="#e5e5e5", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    columns = len(names) if len(panels) > 2 else 2
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=columns, frameon=False)
    return figure


def _slopes(axes, group, scale, colours):
    """The exponent at the end of each line; those that would overlap are moved apart."""
    bottom, top = np.log(axes.get_ylim())
    apart = 0.062 * (top - bottom)
    ends = np.array([np.log(scale * curve.values[-1]) for curve in group])
    heights = ends.copy()
    for _ in range(200):
        order = np.argsort(heights)
        for below, above in itertools.pairwise(order):
            a, b = group[below].sizes[-1], group[above].sizes[-1]
            lack = apart - (heights[above] - heights[below])
            if lack > 1e-9 and max(a, b) < 2.1 * min(a, b):
                heights[below] -= lack / 2
                heights[above] += lack / 2
    for curve, height, colour in zip(group, heights, colours, strict=True):
        axes.text(
            curve.sizes[-1] * (axes.get_xlim()[1] / axes.get_xlim()[0]) ** 0.03,
            np.exp(height),
            f"{curve.exponent:.2f}",
            color=colour,
            va="center",
        )


@styled
def gradient_distance(norms):
    """How much the last output of a layer still feels an input, against the distance between them.

    norms: {layer: (distances,)}, at index k the norm of ∂y_T/∂x_{T−k}, as `complexity.gradients` returns them

    How to read it: the axis is logarithmic, so a straight line down is exponential decay: each step back takes the same
    share away. What the recurrent layer saw fifty tokens ago can teach it nothing any more; attention reaches every
    token in one step, so its line stays level. At distance 0 an input meets itself.

    Raises ValueError for no layer, fewer than two distances or norms that are not positive.
    """
    norms = {name: _numbers(name, values) for name, values in norms.items()}
    if not norms:
        raise ValueError("norms must hold one layer at least")
    for name, values in norms.items():
        if values.ndim != 1 or len(values) < 2 or (values <= 0).any():
            raise ValueError(f"{name} must be two positive norms or more, one a distance; got shape {values.shape}")
    figure = Picture(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="distance k (positions)", ylabel="‖ ∂y(T) / ∂x(T − k) ‖", yscale="log")
    colours = {"recurrent": LAYER_COLOURS[1], "self-attention": LAYER_COLOURS[0]}
    for i, (name, values) in enumerate(norms.items()):
        colour = colours.get(name, LAYER_COLOURS[(i + 2) % len(LAYER_COLOURS)])
        axes.plot(np.arange(len(values)), values, color=colour, linewidth=1.6, label=name)
    axes.margins(x=0.02)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(norms), frameon=False, borderaxespad=0.2)
    axes.xaxis.set_major_locator(_ticks(10, integer=True))
    axes.grid(color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
