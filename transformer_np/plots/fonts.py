"""Fonts: for letters that matplotlib's own lacks, one of the machine; how wide a text is."""

import textwrap
import unicodedata
import warnings
from contextlib import contextmanager
from functools import cache

from matplotlib.font_manager import FontProperties, fontManager, get_font, weight_dict
from matplotlib.textpath import text_to_path

from .sizes import TEXT, TITLE

FONT = "DejaVu Sans"  # which matplotlib brings; for a letter that it lacks, a font of the machine that has it
PREFERRED = (  # of several that have it; otherwise the first by name
    *("Noto Sans CJK JP", "Noto Sans CJK SC", "Hiragino Sans", "PingFang SC", "Yu Gothic", "Microsoft YaHei"),
    *("Malgun Gothic", "Noto Sans Devanagari", "Noto Sans Thai"),
)


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
    """The lines of the title, each at most `width` inches wide: as few as can be, and of nearly equal length."""
    fitting = []
    for longest in range(len(title), 0, -1):
        lines = [line for part in title.splitlines() for line in textwrap.wrap(part, longest)]
        if fitting and len(lines) > len(fitting):
            break
        if max((text_width(line, TITLE) for line in lines), default=0) <= width:
            fitting = lines
    return fitting or lines
