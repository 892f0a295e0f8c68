"""A Figure that Jupyter shows, in the same style everywhere, and slides of it."""

import io
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from ..support.files import write_atomically
from .fonts import FONT, font_with, fonts_for, text_width, unknown_letters, wrapped
from .sizes import EDGE, LABEL, PAD, TEXT, TITLE

STYLE = {
    "font.family": [FONT],  # by its name: what "sans-serif" means would be asked when the style is over
    "font.size": TEXT, "axes.titlesize": TEXT, "axes.labelsize": TEXT, "figure.titlesize": TITLE,
    "legend.fontsize": TEXT, "hatch.linewidth": 0.8, "figure.dpi": 150,
}  # fmt: skip
styled = style.context(["default", STYLE])
SMALLEST = 0.015  # of a slide's height, the least size of words: 16 of 1080 pixels


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
            how = "install one that does, such as Noto Sans CJK for Chinese, Japanese and Korean"
            warnings.warn(f"no font of this machine has {shown}, which the picture shows as boxes: {how}", stacklevel=4)

    def save_slide(self, fname, title):
        """Save the picture as a slide of 16 : 9, with a title in large type above it; the page is just large enough for
        the picture, so that the words are as large as they can be when the slide fills a screen.

        Raises ValueError if words or numbers would be lower than SMALLEST of the slide's height.
        """
        (width, height), of_title = self.get_size_inches(), text_width(title, TITLE, weight="bold")
        across = max(width, 16 / 9 * height / 0.84, of_title + 4 * EDGE)
        down = max(9 / 16 * across, height / 0.84)
        size = min(72 * 0.055 * down, TITLE * (across - 4 * EDGE) / of_title)  # points
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
                    least = f"{SMALLEST:.1%} is the least that can be read from a distance"
                    what = f"the words of this slide would have {share:.2%} of its height"
                    raise ValueError(f"{what}, and {least}: show less")
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
