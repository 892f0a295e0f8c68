"""Heatmaps of words against words: attention weights and masks."""

import math

import numpy as np
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from ..support.checks import as_array, check_has
from .arguments import as_weights, as_words
from .fonts import text_width
from .picture import Picture, styled
from .sheet import Sheet, rows_and_columns, rows_of_a_layer
from .sizes import CELL_WITH_VALUE, EDGE, GAP, LABEL, LARGEST_PAGE, PAD, PAGE, THUMBNAIL
from .style import HATCH, HIDDEN, SEEN, WEIGHTS, print_values, round_ticks

BAR = 0.85  # inches for the colour bar of all thumbnails
NEARLY_EQUAL = 0.2  # the difference of weights that cannot be told apart on a scale of 0 … 1


@styled
def attention(weights, queries, keys, title=None, own_range=None, first_layer=1):
    """Attention weights as heatmaps, one panel per head.

    weights: (T, S) one head; (H, T, S) all heads of a layer; (L, H, T, S) all layers, one row of panels each, or
        several if they would be too small, the first layer at the bottom. No batch axis: take one sentence,
        `layer.weights[0]` or `attention_maps(model)[:, 0]`.
    queries, keys: the T query words and the S key words
    own_range: scale the colours to the weights that occur instead of 0 … 1; None does so for weights so close to each
        other that they would all look the same, in less than a fifth of the range
    first_layer: the number of the first of several layers

    How to read it: find a word on the left; the bright squares in its row are the words from which it takes its
    information. A row adds up to 1, so one bright square is focused attention, and an evenly dark row is spread out. A
    bright diagonal: words attend to themselves. A bright column: all words attend to this one. In a decoder, a row "→
    word" shows the attention while the model chooses that word, which it has not read yet. A printed 0 without decimals
    is exactly 0, hidden by the mask. All panels share one scale: dark is 0, bright is 1, unless the bar at the right
    says otherwise. Head 1 of layer 1 is weights[0, 0].

    Raises ValueError for a wrong number of words or a weight outside 0 … 1.
    """
    weights = as_weights(weights, "(T, S)", "(H, T, S)", "(L, H, T, S)")
    low, high = weights.min(), weights.max()
    *layers, T, S = weights.shape
    queries, keys = as_words("queries", queries, T, "row"), as_words("keys", keys, S, "column")
    panels = (weights[::-1] if len(layers) == 2 else weights).reshape(-1, T, S)  # the last layer is at the top

    heads = [f"head {h + 1}" for h in range(layers[-1])] if layers else []
    if len(layers) == 2:
        L, H = layers
        own_rows = rows_of_a_layer(L, H)
        rows, columns = L * own_rows, math.ceil(H / own_rows)
        places = [layer * own_rows * columns + head for layer in range(L) for head in range(H)]
        heads *= L if own_rows > 1 else 1
    else:
        rows, columns = rows_and_columns(len(panels))
        places = range(len(panels))
    if own_range is None:
        own_range = high - low < NEARLY_EQUAL
    norm = Normalize(low, high) if own_range and high > low else Normalize(0, 1)
    names = [f"layer {first_layer + i}" for i in range(layers[0])][::-1] if len(layers) == 2 else []
    longest = max(map(text_width, names), default=0)
    for across in (0.2 * bool(names), longest):  # the names of layers are turned, or side by side with low panels
        gap = 0.1 + across
        side = gap + (0.65 if norm.vmax == 1 else 0.85)  # room for ticks such as 0.225
        sheet = Sheet(rows, columns, queries, keys, heads, title, side, places)
        if longest <= T * sheet.cell + GAP:
            break
    for axes, panel in zip(sheet.panels, panels, strict=True):
        image = axes.imshow(panel, cmap=WEIGHTS, norm=norm)
        if sheet.cell >= CELL_WITH_VALUE:
            print_values(axes, panel, image)
    for name, axes in zip(names, sheet.panels[columns - 1 :: layers[-1]] if names else [], strict=True):
        x = 1 + 0.05 / (S * sheet.cell)
        axes.text(x, 0.5, name, transform=axes.transAxes, va="center", rotation=270 if across < longest else 0)
    bar = sheet.bar_axes(gap)
    ticks = np.arange(6) / 5 if norm.vmax == 1 and norm.vmin == 0 else round_ticks(5)
    sheet.figure.colorbar(image, cax=bar, label="attention weight", ticks=ticks)
    return sheet.figure


@styled
def model_view(weights, title=None):
    """All heads of all layers at a glance, as thumbnails without words.

    weights: (L, H, T, S), `attention_maps(model)[:, 0]`

    How to read it: a row is a layer, the first one at the bottom, and a column a head. In a thumbnail, queries go down
    and keys to the right, as in `attention`; all have the same colours, which the bar shows: a dark thumbnail is a head
    without a large weight. A diagonal: each word looks at itself, or at a word a fixed number of places away. A column:
    all words look at one word. An even square: the head looks everywhere. Draw a head that stands out with `attention`.

    Raises ValueError for another shape or a weight outside 0 … 1.
    """
    weights = as_weights(weights, "(L, H, T, S)")
    L, H = weights.shape[:2]
    width = max(THUMBNAIL, min(0.9, (LARGEST_PAGE[0] - 1) / H - PAD))
    left, pitch = EDGE + LABEL + PAD, width + PAD
    right = left + H * pitch
    tall = max(L * pitch - PAD, 1.1)  # the bar
    figure = Picture.titled(title, right + BAR, EDGE + LABEL + PAD + tall + PAD + EDGE)
    norm = Normalize(0, weights.max() or 1)
    for layer, heads in enumerate(weights):
        for head, panel in enumerate(heads):
            axes = figure.panel(left + head * pitch, EDGE + layer * pitch + PAD, width, width, xticks=[], yticks=[])
            image = axes.imshow(panel, cmap=WEIGHTS, norm=norm, aspect="auto")
            axes.spines[:].set_visible(False)
            if layer == L - 1:
                axes.set_title(f"head {head + 1}" if text_width(f"head {head + 1}") < width else f"{head + 1}", pad=4)
            if head == 0:
                axes.set_ylabel(f"layer {layer + 1}", labelpad=4)
    bar = figure.panel(right + PAD, EDGE + PAD, 0.14, tall)
    figure.colorbar(image, cax=bar, label="weight", ticks=round_ticks(5))
    return figure


def attention_maps(model, kind="encoder"):
    """The attention weights of a Transformer's last forward pass, all layers in one array.

    kind: "encoder" (self-attention of the source), "decoder" (causal self-attention of the target) or "cross" (the
        target attends to the source)
    ->  (L, B, H, T, S)

        plots.attention(plots.attention_maps(model, "cross")[:, 0], target_words, source_words)

    For a padded sentence, take the part without padding: `[:, row, :, :T, :S]`.

    Raises RuntimeError before the first forward pass, ValueError for another kind or a model without such layers.
    """
    names = {"encoder": "attention", "decoder": "self_attention", "cross": "cross_attention"}
    if kind not in names:
        raise ValueError(f"kind must be one of {', '.join(names)}; got {kind!r}")
    stack, name = "encoder" if kind == "encoder" else "decoder", names[kind]
    blocks, own = getattr(model, stack, None), type(model).__name__
    if not blocks:
        raise ValueError(f"model must have {stack} layers to show its {kind} attention, {own} has none")
    maps = [getattr(block, name).weights for block in blocks]
    if any(weights is None for weights in maps):
        raise RuntimeError(f"the {stack} has no attention weights yet: call model(src, tgt_in) first")
    return np.stack(maps)


def translator_attention(translator, sentence, kind="cross"):
    """The attention weights of a Translator while it translates a sentence, and the words for both axes.

    ->  weights (L, H, T, S), T queries, S keys: the arguments of `attention`. A row of the decoder is named "→ word",
        after the word that it chooses: it reads only the words before.

    Raises ValueError for another kind, and for a sentence that the translator cannot read.
    """
    check_has("translator", translator, "attention", "model")
    source, target = translator.attention(sentence)
    weights = attention_maps(translator.model, kind)[:, 0]  # (L, H, T, S)
    read, chosen = ["<bos>", *target[:-1]], [f"→ {word}" for word in target]  # the decoder's input and output
    return weights, *{"encoder": (source, source), "decoder": (chosen, read), "cross": (chosen, source)}[kind]


@styled
def mask(mask, queries=None, keys=None):
    """A mask: the keys that each query may attend to.

    mask: (T, S), Boolean (True = hidden) or float, added to the scores (0 = seen, −inf = hidden; −1e4 and less count as
        hidden too). Leading axes of size 1 are dropped.
    queries, keys: the T and S words; by default positions 0, 1, …

    How to read it: find a word on the left; the plain squares in its row are the words it may attend to; the hatched
    ones get weight 0 whatever their score. A hatched triangle at the upper right is the causal mask: no word sees later
    words. Hatched columns are padding.

    Raises TypeError for a mask that is neither Boolean nor float, ValueError for another shape or other numbers.
    """
    hidden = _hidden(mask)
    T, S = hidden.shape
    page = PAGE if queries is None and keys is None else LARGEST_PAGE
    queries = as_words("queries", range(T) if queries is None else queries, T, "row")
    keys = as_words("keys", range(S) if keys is None else keys, S, "column")

    sheet = Sheet(1, 1, queries, keys, side=0.95, largest_cell=0.5, largest_page=page)
    (axes,) = sheet.panels
    axes.imshow(hidden, cmap=ListedColormap([SEEN, HIDDEN]), vmin=0, vmax=1)
    axes.add_patch(PathPatch(_outline(hidden), facecolor="none", edgecolor=HATCH, linewidth=0, hatch="////"))
    if sheet.cell > 0.1:  # white lines between the squares
        axes.set_xticks(np.arange(1, S) - 0.5, minor=True)
        axes.set_yticks(np.arange(1, T) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=1)
        axes.tick_params(which="minor", length=0)
    look = {"edgecolor": HATCH, "linewidth": 0.5}
    legend = [
        Patch(facecolor=SEEN, label="seen", **look), Patch(facecolor=HIDDEN, label="hidden", hatch="////", **look)
    ]  # fmt: skip
    axes.legend(handles=legend, loc="upper left", bbox_to_anchor=(1, 1), borderaxespad=0, frameon=False)
    return sheet.figure


def _hidden(mask):
    """The mask as a Boolean array (T, S)."""
    mask = as_array(mask, "mask", "Booleans or floats")
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
        raise ValueError(f"mask must be 0 (seen) or −inf (hidden) if it is float, got {other[0]:.4g}")
    return hidden


def _outline(hidden):
    """The hidden squares as one path, with a rectangle for each run in a row."""
    edges = np.diff(np.pad(hidden, ((0, 0), (1, 1))).astype(np.int8), axis=1)  # (T, S + 1): 1 starts a run, −1 ends it
    rows, starts = np.nonzero(edges == 1)
    _, stops = np.nonzero(edges == -1)
    left, right, top, bottom = starts - 0.5, stops - 0.5, rows - 0.5, rows + 0.5
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    vertices = np.array(corners).transpose(2, 0, 1).reshape(-1, 2)  # (5 · runs, 2)
    return Path(vertices, np.tile([Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY], len(rows)))
