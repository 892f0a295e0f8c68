"""Colours, and what several pictures draw: legends, ticks, a grid, the numbers in squares."""

import numpy as np
from matplotlib.ticker import MaxNLocator

from .sizes import TEXT

WEIGHTS = "viridis"  # 0 … 1 from dark to bright: perceptually uniform, safe for the colour-blind
SIGNED = "RdBu_r"  # blue below zero, white at zero, red above
# Of SIGNED, and of the lines of weights: the pages have them too, in `inspection/explorer/live_page/page.css`
PAGE_COLOURS = {
    "light": {"neg": "#2166ac", "pos": "#b2182b", "weight": "#0072b2"},
    "dark": {"neg": "#92c5de", "pos": "#f4a582", "weight": "#56b4e9"},
}
SEEN, HIDDEN, HATCH = "#cfe6f5", "#b5b5b5", "#484848"
RAW, TRAINING, VALIDATION, RATE = "#9ecae1", "#0072b2", "#d55e00", "#009e73"  # the last three: Okabe and Ito
KEY, QUERY = "key (looked at)", "query (looking)"
LAYER_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # Okabe and Ito
LAYER_MARKERS = "osD^"
HEAD_COLOURS = (  # Okabe and Ito without yellow, then colours that also differ in lightness
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#542788", "#8c510a"),
    *("#7f7f7f", "#000000", "#a6d854", "#b2182b"),
)


def label(name):
    """A name for a legend, of which matplotlib hides those that begin with `_`."""
    return f" {name}" if str(name).startswith("_") else str(name)


def plain(legend):
    """A legend with the names as they are: no `$` begins a formula."""
    for text in legend.get_texts():
        text.set(text=text.get_text().removeprefix(" "), parse_math=False)


def legend_above(axes, columns=1):
    """A legend above the upper right corner of the axes."""
    plain(axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=columns, frameon=False, borderaxespad=0.2))


def round_ticks(most, integer=False):
    """At most `most` ticks at round numbers. Matplotlib's default depends on the user's font size."""
    return MaxNLocator(most, steps=[1, 2, 2.5, 5, 10], integer=integer, min_n_ticks=1 if integer else 2)


def light_grid(axes):
    """Draw pale lines behind the curves, and no frame at the top and right."""
    axes.grid(color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def is_bright(image, panel):
    """Where the colours of the panel are bright: black text on them has the higher contrast."""
    linear = image.to_rgba(panel)[..., :3] ** 2.2  # linear light, from screen colours
    return linear @ (0.21, 0.72, 0.07) > 0.18


def print_values(axes, panel, image, texts=None, size=TEXT - 1):
    """Print the number or the given text in each square, black on bright and white on dark colours."""
    bright = is_bright(image, panel)  # (T, S)
    for (t, s), value in np.ndenumerate(panel):
        text = texts[t][s] if texts else "0" if value == 0 else f"{value:.2f}".replace("-", "−")
        colour = "black" if bright[t, s] else "white"
        if text:
            axes.text(s, t, text, ha="center", va="center", size=size, color=colour, parse_math=False)
