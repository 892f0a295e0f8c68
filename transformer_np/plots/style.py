"""Shared by all pictures: colours, sizes, a Figure that Jupyter shows, and checks of arguments."""

import io
import textwrap
import unicodedata
import warnings
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, fontManager, get_font, weight_dict
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox

from ..support.checks import as_array, as_list
from ..support.files import write_atomically

WEIGHTS = "viridis"  # 0 … 1 from dark to bright: perceptually uniform, safe for the colour-blind
SIGNED = "RdBu_r"  # blue below zero, white at zero, red above
# Of SIGNED, and of the lines of weights: the pages have them too, in `inspection/explorer/common.css`
PAGE_COLOURS = {
    "light": {"neg": "#2166ac", "pos": "#b2182b", "weight": "#0072b2"},
    "dark": {"neg": "#92c5de", "pos": "#f4a582", "weight": "#56b4e9"},
}
SEEN, HIDDEN, HATCH = "#cfe6f5", "#b5b5b5", "#484848"
RAW, TRAINING, VALIDATION, RATE = "#9ecae1", "#0072b2", "#d55e00", "#009e73"  # the last three: Okabe and Ito
KEY, QUERY = "key (looked at)", "query (looking)"

FONT = "DejaVu Sans"  # which matplotlib brings; for a letter that it lacks, a font of the machine that has it
PREFERRED = (  # of several that have it; otherwise the first by name
    *("Noto Sans CJK JP", "Noto Sans CJK SC", "Hiragino Sans", "PingFang SC", "Yu Gothic", "Microsoft YaHei"),
    *("Malgun Gothic", "Noto Sans Devanagari", "Noto Sans Thai"),
)
TEXT, TITLE = 9, 11  # points
STYLE = {
    "font.family": [FONT],  # by its name: what "sans-serif" means would be asked when the style is over
    "font.size": TEXT, "axes.titlesize": TEXT, "axes.labelsize": TEXT, "figure.titlesize": TITLE,
    "legend.fontsize": TEXT, "hatch.linewidth": 0.8, "figure.dpi": 150,
}  # fmt: skip
styled = style.context(["default", STYLE])

# Inches. A page of width 8 has 1200 pixels, and is still readable in a README that shows 800.
PAGE = (8.0, 8.0)  # a picture with words has about this width and height …
LARGEST_PAGE = (14.0, 14.0)  # … unless it has too many words; beyond this, only every second, fifth … word is shown
CELL = 0.8  # one square of a heatmap, at most
CELL_WITH_VALUE = 0.36  # and at least, to print a number in it
LINE = 0.155  # a line of text
LABEL = 0.2  # an axis label, or the title of a panel
EDGE, PAD, GAP = 0.1, 0.07, 0.14  # blank: at the figure's edge, around words, between panels
LONGEST_WORD = 20  # characters
SMALLEST = 0.015  # of a slide's height, the least size of words: 16 of 1080 pixels
LAYER_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # Okabe and Ito
LAYER_MARKERS = "osD^"
HEAD_COLOURS = (  # Okabe and Ito without yellow, then colours that also differ in lightness
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#542788", "#8c510a"),
    *("#7f7f7f", "#000000", "#a6d854", "#b2182b"),
)


class Picture(Figure):
    """A matplotlib Figure that Jupyter shows even without pyplot."""

    @classmethod
    def titled(cls, title, width, height):
        """A figure of this size in inches, with the lines of the title above it, if there is one."""
        lines = wrapped(title, width - 2 * EDGE) if title else []
        height += LABEL * len(lines) + PAD if lines else 0
        figure = cls(figsize=(width, height))
        if lines:
            figure.suptitle("\n".join(lines), y=1 - EDGE / height, va="top", parse_math=False)
        return figure

    def panel(self, x, y, width, height, **settings):
        """Axes of this size, x and y inches from the lower left corner."""
        across, down = self.get_size_inches()
        return self.add_axes((x / across, y / down, width / across, height / down), **settings)

    def savefig(self, fname, **options):
        """Like matplotlib's, but a file is written whole or not at all."""
        if hasattr(fname, "write"):
            super().savefig(fname, **options)
            self._say_boxes()
            return
        options.setdefault("format", Path(fname).suffix[1:].lower() or None)
        picture = io.BytesIO()  # matplotlib's writer of PDF raises AttributeError on a full disk
        self.savefig(picture, **options)
        write_atomically(fname, lambda temporary: temporary.write_bytes(picture.getvalue()))

    def draw(self, renderer):
        """Like matplotlib's, with fonts of the machine for letters that its own font lacks."""
        for text in self.findobj(Text):
            more = [name for name in fonts_for(text.get_text()) if name not in text.get_fontfamily()]
            if more:
                text.set_fontfamily([*text.get_fontfamily(), *more])
        with unknown_letters():
            super().draw(renderer)

    def _say_boxes(self):
        """A warning with the letters that no font of this machine has."""
        texts = (text.get_text() for text in self.findobj(Text) if text.get_visible())
        boxes = sorted({letter for text in texts for letter in text if font_with(letter) is None})
        if boxes:
            shown = " ".join(boxes[:12]) + " …" * (len(boxes) > 12)
            warnings.warn(
                f"no font of this machine has {shown}, which the picture shows as boxes: install one that does, such "
                "as Noto Sans CJK for Chinese, Japanese and Korean",
                stacklevel=4,
            )

    def save_slide(self, fname, title):
        """Save the picture as a slide of 16 : 9, with a title in large type above it; the page is just large enough for
        the picture, so that the words are as large as they can be when the slide fills a screen.

        Raises ValueError if words or numbers would be lower than SMALLEST of the slide's height.
        """
        width, height = self.get_size_inches()
        across = max(width, 16 / 9 * height / 0.84, text_width(title, TITLE) + 4 * EDGE)
        down = max(9 / 16 * across, height / 0.84)
        size = min(72 * 0.055 * down, TITLE * (across - 4 * EDGE) / text_width(title, TITLE))  # points
        left, below = (across - width) / 2, (0.86 * down - height) / 2
        page = Bbox.from_extents(-left, -below, across - left, down - below)  # inches, around the picture
        corner = -left / width, -below / height
        back = Rectangle(corner, across / width, down / height, color="white", zorder=-10, transform=self.transFigure)
        self.add_artist(back)
        x, y = (across / 2 - left) / width, (0.93 * down - below) / height
        words = self.text(x, y, title, ha="center", va="center", size=size, weight="bold", parse_math=False)
        try:
            with self._larger_labels(page, size / TITLE, words):
                drawn = [text for text in self.findobj(Text) if text.get_visible() and text.get_text().strip()]
                share = min(text.get_size() for text in drawn) / 72 / down
                if share < SMALLEST:
                    raise ValueError(
                        f"the words of this slide would have {share:.2%} of its height, and {SMALLEST:.1%} is the "
                        "least that can be read from a distance: show less"
                    )
                self.savefig(fname, bbox_inches=page)
        finally:
            back.remove()
            words.remove()

    @contextmanager
    def _larger_labels(self, page, most, title):
        """Inside the block, all words are as much larger as they can be, up to the factor `most`, with which they grow
        with the title. They must not leave the page, and not meet words or panels that they did not meet before."""
        self.draw_without_rendering()  # the marks of an axis have their words from now on
        words = [text for text in self.findobj(Text) if text.get_visible() and text.get_text().strip()]
        sizes = [text.get_size() for text in words]
        limits = page.transformed(self.dpi_scale_trans)

        def scaled(factor):
            for text, size in zip(words, sizes, strict=True):
                text.set_size(size if text is title else size * factor)
            self.draw_without_rendering()
            boxes = np.array([text.get_window_extent().extents for text in words])
            panels = np.array([axes.get_window_extent().extents for axes in self.axes]).reshape(-1, 4)
            inside = (boxes[:, :2] >= limits.min).all() and (boxes[:, 2:] <= limits.max).all()
            return inside, [_overlapping(boxes, others) for others in (boxes, panels)]

        _, before = scaled(1)
        for factor in np.arange(max(most, 1), 1, -0.1):
            inside, meet = scaled(factor)
            if inside and not any((now & ~then).any() for now, then in zip(meet, before, strict=True)):
                break
        else:
            scaled(1)
        try:
            yield
        finally:
            scaled(1)

    def _repr_png_(self):
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def _overlapping(boxes, others):
    """Which boxes (N, 4) and others (M, 4) overlap by more than a pixel, (N, M); each is x0, y0, x1, y1."""
    low = np.maximum(boxes[:, None, :2], others[:, :2])
    high = np.minimum(boxes[:, None, 2:], others[:, 2:])
    return (high - low > 1).all(axis=-1)


@cache
def font_with(letter):
    """The name of a font that has this letter, FONT if possible; None if no font of this machine has it."""
    own = next(font for font in fontManager.ttflist if font.name == FONT)
    if _has(own.fname, letter) or unicodedata.category(letter)[0] in "CZ":  # what is not drawn
        return FONT
    usual = (font for font in fontManager.ttflist if font.style == "normal" and "last resort" not in font.name.lower())
    order = {name: place for place, name in enumerate(PREFERRED)}
    fonts = sorted(usual, key=lambda font: (order.get(font.name, len(order)), abs(_weight(font) - 400), font.name))
    return next((font.name for font in fonts if _has(font.fname, letter)), None)


def _has(file, letter):
    try:
        font = get_font(file)
        font.set_size(TEXT, 72)  # fonts of coloured bitmaps, which matplotlib cannot draw, have no such size
    except (OSError, RuntimeError):
        return False
    return font.get_char_index(ord(letter)) > 0


def _weight(font):
    return weight_dict.get(font.weight, font.weight)


def fonts_for(text):
    """The names of the fonts beside FONT that a text needs."""
    return dict.fromkeys(name for name in map(font_with, text) if name not in (None, FONT))


@contextmanager
def unknown_letters():
    """Inside the block, a letter that no font of this machine has is drawn as a box, without a warning for each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        yield


def text_width(text, size=TEXT, weight="normal"):
    """The width of the text in inches."""
    font = FontProperties(family=[FONT, *fonts_for(text)], size=size, weight=weight)
    with unknown_letters():
        return text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] / 72


def wrapped(title, width):
    """The lines of the title, each at most `width` inches wide."""
    for longest in range(len(title), 0, -1):
        lines = [line for part in title.splitlines() for line in textwrap.wrap(part, longest)]
        if max((text_width(line, TITLE) for line in lines), default=0) <= width:
            break
    return lines


def as_words(name, words, count, what):
    """The words as shown in a picture; ValueError for a wrong number of words."""
    if isinstance(words, str):
        raise TypeError(f"{name} must be a list of words, got the string {words!r}; use its .split()")
    words = [str(word) for word in as_list(name, words, "words")]
    if len(words) != count:
        some = ", ".join(words[:12]) + (", …" if len(words) > 12 else "")
        raise ValueError(f"{name} must be {count} words, one for each {what}; got {len(words)}: {some}")
    return [visible(word) for word in words]


def label(name):
    """A name for a legend, of which matplotlib hides those that begin with `_`."""
    return f" {name}" if str(name).startswith("_") else str(name)


def plain(legend):
    """A legend with the names as they are: no `$` begins a formula."""
    for text in legend.get_texts():
        text.set(text=text.get_text().removeprefix(" "), parse_math=False)


def visible(word):
    """The word with signs for blanks at its ends and for line breaks, cut to LONGEST_WORD characters."""
    core = word.lstrip(" ")
    word = "␣" * (len(word) - len(core)) + core
    core = word.rstrip(" ")
    word = core + "␣" * (len(word) - len(core))
    word = word.replace("\n", "⏎").replace("\t", "⇥")
    return word if len(word) <= LONGEST_WORD else word[: LONGEST_WORD - 1] + "…"


def round_ticks(most, integer=False):
    """At most `most` ticks at round numbers. Matplotlib's default depends on the user's font size."""
    return MaxNLocator(most, steps=[1, 2, 2.5, 5, 10], integer=integer)


def as_numbers(name, values):
    """An array of finite numbers."""
    values = as_array(values, name)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be an array of numbers, got {values.dtype}")
    if not np.isfinite(values).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(f"{name} must be finite, got {values[where]} at index {where}")
    return values.astype(float) if values.dtype == bool else values


def as_weights(weights, *axes):
    """Attention weights, rounded. axes: those that they may have, such as "(T, S)", "(H, T, S)"

    Raises ValueError for other axes and for weights outside 0 … 1.
    """
    weights = steady(as_numbers("weights", weights))
    if weights.ndim not in [names.count(",") + 1 for names in axes] or 0 in weights.shape:
        raise ValueError(f"weights must have the axes {' or '.join(axes)}, got shape {weights.shape}")
    low, high = weights.min(), weights.max()
    if low < -1e-5 or high > 1 + 1e-5:
        raise ValueError(f"weights must lie in 0 … 1, as after the softmax; got {low:.4g} … {high:.4g}")
    return weights


def steady(values):
    """The values, rounded to six digits of the largest. No colour, order or number of a picture may depend on the last
    bits of a sum, which differ between processors: 0.125 would sometimes be shown as 0.13."""
    largest = np.abs(values).max(initial=0)
    return np.round(values, 5 - int(np.floor(np.log10(largest)))) if largest > 0 else values


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
