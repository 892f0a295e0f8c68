"""The positional encoding."""

import numpy as np

from .. import functional as F
from ..checks import check_at_least
from .style import (
    HATCH,
    HEAD_COLOURS,
    HIDDEN,
    SIGNED,
    Picture,
    as_numbers,
    light_grid,
    print_values,
    round_ticks,
    styled,
)


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
    table = as_numbers("table", table)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"table must have the axes (length, d_model), got shape {table.shape}")
    limit = float(np.abs(table).max()) or 1.0
    if 0.9 < limit < 1.0:  # a sine whose crest falls between two positions
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
    """The waves that the positional encoding is made of, and how long they are.

    length: positions to show, at least 2;  d_model: the dimensions of the encoding

        PE(pos, 2i) = sin(2π pos / λ),    PE(pos, 2i + 1) = cos(2π pos / λ),    λ = 2π · 10000^(2i / d_model)

    How to read it: at the left some of the pairs of dimensions, the sine dark and the cosine pale. At the right the
    wavelength of every pair, on a logarithmic axis: a straight line, since each pair's wave is the same factor longer
    than that of the pair before it. The coloured dots are the waves at the left. Waves shorter than the text (below the
    dashed line) tell near neighbours apart and repeat themselves; longer ones say roughly where in the text a word is.

    Raises ValueError for a length below 2 or a d_model below 2.
    """
    check_at_least("length", length, 2)
    check_at_least("d_model", d_model, 2)
    even = np.arange(0, d_model, 2)  # 2i
    waves = 2 * np.pi * 10000.0 ** (even / d_model)  # positions
    bending = np.flatnonzero(waves <= 4 * length)  # longer waves look straight here; one of them is enough
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
    right.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, borderaxespad=0.2)
    for axes in (left, right):
        light_grid(axes)
    return figure
