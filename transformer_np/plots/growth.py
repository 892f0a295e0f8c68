"""Time, memory and gradients of the layers over the sequence length."""

import itertools
import math

import numpy as np
from matplotlib.ticker import LogLocator

from ..support.checks import as_list, check_has, check_kind
from .arguments import as_numbers
from .picture import Picture, styled
from .style import LAYER_COLOURS, LAYER_MARKERS, label, legend_above, light_grid, plain, round_ticks


@styled
def complexity_curves(curves):
    """Time and memory of the layers over sequence length and number of features, on logarithmic axes.

    curves: a list of objects as returned by `complexity.measure`, with .name, .quantity ("time" in seconds, "memory"
        in bytes), .variable, .sizes, .values and .exponent; only those of "n" and "d" are drawn, with one panel per
        quantity and variable

    How to read it: on these axes c · n^p is a straight line of slope p for every c. The exponent at the end of
    a line is its slope: at n^2, twice the length costs four times as much. The heights of the lines cannot
    be compared, because the fixed sizes differ between layers.
    """
    panels = {}
    for i, curve in enumerate(as_list("curves", curves, "the curves of complexity.measure")):
        check_has(f"curves[{i}]", curve, "name", "quantity", "variable", "sizes", "values", "exponent")
        if curve.variable in ("n", "d"):
            panels.setdefault((curve.quantity, curve.variable), []).append(curve)
    if not panels:
        raise ValueError("curves must have at least one curve over n or d")
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
        axes.set_xlim(low / 1.3, high * (high / low) ** 0.36)  # room for the powers
        powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
        ticks = [2**p for p in powers if (p - powers[0]) % math.ceil(len(powers) / 4) == 0]
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
        axes.yaxis.set_major_formatter("{x:g}")
        _slopes(axes, group, scale, [handles[curve.name].get_color() for curve in group])
        light_grid(axes)
    columns = len(names) if len(panels) > 2 else 2
    names = list(map(label, handles))
    plain(figure.legend(handles.values(), names, loc="outside upper center", ncols=columns, frameon=False))
    return figure


def _slopes(axes, group, scale, colours):
    """Write n or d to the power of the slope at the end of each line; texts that would overlap are moved apart."""
    bottom, top = np.log(axes.get_ylim())
    apart = 0.062 * (top - bottom)
    heights = np.array([np.log(scale * curve.values[-1]) for curve in group])
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
            curve.sizes[-1] * (axes.get_xlim()[1] / axes.get_xlim()[0]) ** 0.03, np.exp(height),
            f"${curve.variable}^{{{curve.exponent:.2f}}}$", color=colour, va="center",
        )  # fmt: skip


@styled
def gradient_distance(norms):
    """The influence of an input on the last output of a layer, over the distance between them.

    norms: {layer: (distances,)}, at index k the norm of ∂y_T/∂x_{T−k}, as returned by `complexity.gradients`

    How to read it: the axis is logarithmic, so a falling straight line is exponential decay: each step back loses the
    same share. The recurrent layer cannot learn from a token fifty positions back; attention reaches every token in one
    step, so its line stays level. Distance 0 is the influence of the last input itself.

    Raises ValueError for no layer, fewer than two distances, or norms that are not positive.
    """
    check_kind("norms", norms, dict)
    norms = {name: as_numbers(name, values) for name, values in norms.items()}
    if not norms:
        raise ValueError("norms must have at least one layer")
    for name, values in norms.items():
        if values.ndim != 1 or len(values) < 2 or (values <= 0).any():
            raise ValueError(f"{name} must be at least two positive norms, one per distance; got shape {values.shape}")
    figure = Picture(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="distance k (positions)", ylabel="‖ ∂y(T) / ∂x(T − k) ‖", yscale="log")
    colours = {"recurrent": LAYER_COLOURS[1], "self-attention": LAYER_COLOURS[0]}
    others = itertools.cycle(LAYER_COLOURS[2:])
    for name, values in norms.items():
        colour = colours.get(name) or next(others)
        axes.plot(np.arange(len(values)), values, color=colour, linewidth=1.6, label=label(name))
    axes.margins(x=0.02)
    legend_above(axes, len(norms))
    axes.xaxis.set_major_locator(round_ticks(10, integer=True))
    light_grid(axes)
    return figure
