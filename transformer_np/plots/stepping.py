"""Products of matrices as a page that goes through them row by row."""

import html
import re
from pathlib import Path
from string import Template

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from ..inspection.explorer.page import Page
from .matrices import MOST, as_products, colours, numbers
from .style import as_words

SIGNS = {"\\mu": "μ", "\\sigma": "σ", "\\gamma": "γ", "\\beta": "β", "\\hat{X}": "X̂", "^\\top": "ᵀ"}


class MatricesPage(Page):
    """The page that `matrices_page` makes."""

    title, height = "Products of matrices", 460


def matrices_page(products, title="Products of matrices"):
    """A page that steps through products of matrices: one product at a time, one row of the result after the other.

    products: a Product or a list of them, as for `matrices`

    The arrow keys and the buttons step forwards and backwards; the space bar plays. The page is one file and needs no
    network. It never moves by itself; where the system asks for reduced motion, nothing fades.

    ->  a MatricesPage: the last value of a cell, or `.save("page.html")`
    """
    products = as_products(products)
    template = Template((Path(__file__).parent / "stepping.html").read_text(encoding="utf-8"))
    return MatricesPage(template.substitute(title=html.escape(title), sections="\n".join(map(_section, products))))


def _section(product):
    rows = len(product.matrices[0][1])
    words = as_words("words", product.words, rows, "row") if product.words else []
    last, parts, before = len(product.terms) - 1, [], None
    for i, term in enumerate(product.terms):
        if isinstance(term, str):
            parts.append(f'<span class="sign">{html.escape(term)}</span>')
        else:
            by_row = before != "·" and len(term[1]) == rows  # each row of a product reads the right factor as a whole
            parts.append(_table(term, words, by_row, is_result=i == last))
            words = []
        before = term
    return (
        f'<section data-rows="{rows}" hidden><h2>{_title(product.title)}</h2>\n'
        f'<div class="line">{"".join(parts)}</div></section>'
    )


def _table(term, words, by_row, is_result):
    """A matrix as a table, with words beside its rows. by_row: whether a step reads or writes one row of it"""
    matrix = np.asarray(term[1], float)
    look, is_small = colours(term[0], matrix), max(matrix.shape) > MOST
    levels = np.round(look["norm"](matrix), 6)  # no colour depends on the last bits, which differ between processors
    rgb = colormaps[look["cmap"]](levels)[..., :3]
    bright = rgb**2.2 @ (0.21, 0.72, 0.07) > 0.18
    texts, lines = numbers(matrix), []
    for i, row in enumerate(rgb):
        head = f'<th scope="row">{html.escape(words[i])}</th>' if words else ""
        cells = []
        for text, colour, is_light in zip(texts[i], map(to_hex, row), bright[i], strict=True):
            if is_small:
                cells.append(f'<td class="small" style="background:{colour}"></td>')
            else:
                cells.append(f'<td style="background:{colour};color:{"#000" if is_light else "#fff"}">{text}</td>')
        lines.append(f"<tr>{head}{''.join(cells)}</tr>")
    return (
        f"<table{' data-by=row' if by_row else ''}{' class=result' if is_result else ''}><caption>{_name(term[0])}"
        f"<small>{len(matrix)} × {len(matrix[0])}</small></caption><tbody>{''.join(lines)}</tbody></table>"
    )


def _title(text):
    """A text with TeX between dollars as HTML."""
    return re.sub(r"\$(.+?)\$", lambda tex: _name(html.unescape(tex[1])), html.escape(text))


def _name(text):
    """A name in TeX as HTML: W^Q, Z_1, K^\\top."""
    for sign, letter in SIGNS.items():
        text = text.replace(sign, letter)
    text = html.escape(text)
    return re.sub(r"\^(\w+)", r"<sup>\1</sup>", re.sub(r"_(\w+?)(?=\^|ᵀ|$)", r"<sub>\1</sub>", text))
