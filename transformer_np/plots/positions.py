"""The positional encoding, and the relative position bias of a T5."""

import numpy as np

from .. import functional as F
from ..models import T5
from ..support.checks import check_all_at_least, check_at_least, check_kind
from .arguments import as_numbers
from .picture import Picture, styled
from .style import HATCH, HEAD_COLOURS, HIDDEN, SIGNED, legend_above, light_grid, print_values, round_ticks


@styled
def positional_encoding(length=50, d_model=64, table=None):
    """The positional encoding as a heatmap, one row per position, one column per dimension.

    table: another table (length, d_model) to show instead, such as a learned one; `length` and `d_model` are ignored

    How to read it: a row is added to the embedding of the word at that position, so no two rows may be equal. A column
    is a sine (even dimension) or a cosine (odd dimension) of the position: on the left it repeats within a few words,
    like the last digit of a counter; on the right it has hardly moved from sin 0 = 0 and cos 0 = 1 by the last row.
    White is 0, red positive, blue negative.
    """
    if table is None:
        table = F.sinusoidal_encoding(length, d_model)
    table = as_numbers("table", table, "(length, d_model)")
    limit = float(np.abs(table).max()) or 1.0
    if 0.9 < limit < 1.0:  # a sine with its crest between two positions
        limit = 1.0

    figure = Picture(figsize=(8, 4.4), layout="constrained")
    axes = figure.add_subplot(xlabel="dimension", ylabel="position")
    image = axes.imshow(table, cmap=SIGNED, vmin=-limit, vmax=limit, aspect="auto")
    axes.xaxis.set_major_locator(round_ticks(10, integer=True))
    axes.yaxis.set_major_locator(round_ticks(10, integer=True))
    if table.shape[0] <= 16 and table.shape[1] <= 14:
        print_values(axes, table, image)
    figure.colorbar(image, label="value", pad=0.02, ticks=round_ticks(8))
    return figure


@styled
def wavelengths(length=50, d_model=64):
    """The waves of the positional encoding, and their wavelengths.

    length: positions to show, at least 2;  d_model: the dimensions of the encoding

        PE(pos, 2i) = sin(2π pos / λ),    PE(pos, 2i + 1) = cos(2π pos / λ),    λ = 2π · 10000^(2i / d_model)

    How to read it: the left panel shows some pairs of dimensions, the sine dark and the cosine pale. The right panel
    shows the wavelength of every pair on a logarithmic axis: a straight line, since each wavelength is the same factor
    longer than the previous one. The coloured dots are the waves on the left. Waves shorter than the text (below the
    dashed line) distinguish near neighbours but repeat; longer ones show roughly where in the text a word is.

    Raises ValueError for a length below 2 or a d_model below 2.
    """
    check_all_at_least(2, length=length, d_model=d_model)
    even = np.arange(0, d_model, 2)  # 2i
    waves = 2 * np.pi * 10000.0 ** (even / d_model)  # positions
    bending = np.flatnonzero(waves <= 4 * length)  # longer waves look straight here, so one is enough
    shown = np.unique([*np.linspace(0, bending[-1] if len(bending) else 0, 4).round().astype(int), len(even) - 1])
    encoding = F.sinusoidal_encoding(length, d_model, np.float64)
    fine = np.linspace(0, length - 1, 1000)

    figure = Picture(figsize=(8, 4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    names = []
    for place, pair in enumerate(shown):
        colour, dimension = HEAD_COLOURS[place], int(even[pair])
        angle = 2 * np.pi * fine / waves[pair]
        base = -2.6 * place  # one wave below the other
        names.append(f"{dimension}, {dimension + 1}" if dimension + 1 < d_model else str(dimension))
        if dimension + 1 < d_model:
            left.plot(fine, base + np.cos(angle), color=colour, alpha=0.35, linewidth=1.2)
        left.plot(fine, base + np.sin(angle), color=colour, linewidth=1.6)
        if length <= 60:
            left.plot(base + encoding[:, dimension], "o", color=colour, markersize=2.5)
    left.set_yticks(-2.6 * np.arange(len(shown)), names)
    left.set(xlabel="position", ylabel="dimensions")
    left.xaxis.set_major_locator(round_ticks(8, integer=True))
    left.margins(x=0.02)

    right.plot(even, waves, color=HIDDEN, linewidth=1.2, zorder=1)
    right.scatter(even[shown], waves[shown], color=HEAD_COLOURS[: len(shown)], s=28, zorder=2)
    right.axhline(length, color=HATCH, linewidth=1, linestyle="--", label=f"{length} positions")
    right.set(yscale="log", xlabel="dimension", ylabel="wavelength (positions)", xlim=(-0.03 * d_model, 1.02 * d_model))
    right.xaxis.set_major_locator(round_ticks(6, integer=True))
    legend_above(right)
    for axes in (left, right):
        light_grid(axes)
    return figure


@styled
def relative_bias(model, longest=64):
    """The bias that a T5 adds to the scores for the distance between two words, one row per head.

    model: a T5; longest: the largest distance to show

    How to read it: at 0 a word attends to itself; to the left are earlier words, to the right later ones. The bias is
    added to the score before the softmax, so a bias of 1 more makes a weight about e times as large, for the same
    words. Red near 0: the head prefers neighbours. A row of one colour: the head ignores positions. The cells get wider
    with the distance, because many large distances share a bucket. The decoder has only the left half, because the
    causal mask hides later words. All layers of a stack share these rows.

    Raises TypeError for another model, ValueError for a longest below 1.
    """
    check_kind("model", model, T5)
    check_at_least("longest", longest, 1)
    stacks = {"encoder": model.encoder_bias, "decoder": model.decoder_bias}
    limit = max(float(np.abs(bias.table.data).max()) for bias in stacks.values()) or 1.0
    figure = Picture(figsize=(8, 2.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True, width_ratios=[2 * longest + 1, longest + 1])
    for axes, (name, bias) in zip(panels, stacks.items(), strict=True):
        buckets = bias.buckets(2 * longest + 1, 2 * longest + 1)[longest]  # (2 · longest + 1,): seen from the middle
        after = longest if bias.bidirectional else 0
        values = bias.table.data[buckets[: longest + 1 + after]].T  # (H, distances)
        edges = (-longest - 0.5, after + 0.5, len(values) + 0.5, 0.5)
        image = axes.imshow(values, cmap=SIGNED, vmin=-limit, vmax=limit, aspect="auto", extent=edges)
        axes.axvline(0, color=HATCH, linewidth=0.8, linestyle=":")
        axes.set(title=name, xlabel="distance (negative: earlier words)")
        axes.xaxis.set_major_locator(round_ticks(9, integer=True))
        axes.yaxis.set_major_locator(round_ticks(8, integer=True))
    panels[0].set_ylabel("head")
    figure.colorbar(image, ax=panels, label="bias on the score", pad=0.02, ticks=round_ticks(6))
    return figure
