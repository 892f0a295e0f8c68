"""Products of matrices as coloured grids with their numbers: attention and LayerNorm, one product at a time."""

from dataclasses import dataclass

import numpy as np
from matplotlib.colors import CenteredNorm, Normalize

from .. import functional as F
from ..layers import LayerNorm, MultiHeadAttention
from ..support.checks import as_list, check_kind, short
from .arguments import as_numbers, as_words, steady
from .fonts import text_width
from .picture import Picture, styled
from .sizes import EDGE, LABEL, PAD, TEXT, TITLE
from .style import SIGNED, WEIGHTS, is_bright

ROW = 0.24  # inches: the height of a row with numbers
SMALL = 0.16  # the side of a square without a number
MOST = 12  # rows or columns with numbers
BETWEEN = 0.1  # around a sign such as =


@dataclass(frozen=True)
class Product:
    """One line of `matrices`: an equation of matrices.

    title: what is computed, with TeX between dollars;  terms: pairs (name, matrix) and signs such as "·" and "="
    words: the names of the rows of the first matrix, or None

    Names are written as in TeX: "W^Q", "QK^T/\\sqrt{d_k}".
    """

    title: str
    terms: list
    words: list | None = None

    def __post_init__(self):
        check_kind("title", self.title, str)
        for term in as_list("terms", self.terms, "pairs (name, matrix) and signs"):
            if isinstance(term, str):
                continue
            if not isinstance(term, tuple | list) or len(term) != 2:
                raise TypeError(f"terms must be pairs (name, matrix) and signs, got {short(term)}")
            if as_numbers(term[0], term[1]).ndim != 2:
                raise ValueError(f"{term[0]} must be a matrix, got shape {np.shape(term[1])}")
        if not self.matrices:
            raise ValueError("terms must have at least one matrix")
        if self.words is not None:
            as_words("words", self.words, len(self.matrices[0][1]), f"row of {self.matrices[0][0]}")

    @property
    def matrices(self):
        return [term for term in self.terms if not isinstance(term, str)]


def attention_products(layer, words=None, head=1, row=0):
    """The products of a MultiHeadAttention's last forward pass, in order, for `matrices`.

        X W^Q = Q,  X W^K = K,  X W^V = V,  Q Kᵀ / √d_k = S,  softmax(S) = A,  A V = Z,
        and with several heads: the Z of all heads side by side,  Concat W^O = output

    layer: after a forward pass in train() or eval(keep=True);  words: the names of the T rows
    head: counted from 1;  row: of the batch, from 0

    Raises ValueError for a head or row out of range, or for cross-attention.
    """
    check_kind("layer", layer, MultiHeadAttention)
    x, memory, weights, concat = layer.kept("x", "memory", "weights", "concat")
    if memory is not None or weights is None:
        raise ValueError("layer must have computed self-attention with whole weights: call layer(x) in train()")
    H = layer.num_heads
    if not 1 <= head <= H or not 0 <= row < len(x):
        raise ValueError(f"head must lie in 1 … {H} and row in 0 … {len(x) - 1}, got {head} and {row}")
    x, (q, k, v) = x[row], (array[row, head - 1] for array in layer.kept("q", "k", "v"))
    A, S = weights[row, head - 1], F.attention_scores(q, k)
    K, of = q.shape[1], f"_{head}" if H > 1 else ""
    columns = slice((head - 1) * K, head * K)
    w = {name: getattr(layer, f"w_{name.lower()}").data[:, columns] for name in "QKV"}
    kinds = zip("QKV", ("queries", "keys", "values"), ("looks for", "offers", "gives"), (q, k, v), strict=True)
    products = {
        f"The {plural}: what each word {does}": [("X", x), "·", (f"W^{name}{of}", w[name]), "=", (name + of, y)]
        for name, plural, does, y in kinds
    }
    score = [(f"Q{of}", q), "·", (f"K{of}^\\top", k.T), f"/ √{K}  =", (f"S{of}", S)]
    products["How well each query fits each key"] = score
    products["Weights: each row adds up to 1"] = ["softmax", (f"S{of}", S), "=", (f"A{of}", A)]
    mean = [(f"A{of}", A), "·", (f"V{of}", v), "=", (f"Z{of}", A @ v)]
    products["The mean of the values, with these weights"] = mean
    out, w_o = concat[row], layer.w_o.data
    if H > 1:
        heads = [(f"Z_{h + 1}", out[:, h * K : (h + 1) * K]) for h in range(H)]
        products[f"The {H} heads side by side"] = [*heads, "=", ("Z", out)]
    bias = [] if layer.b_o is None else ["+", ("b^O", layer.b_o.data[None])]
    y = out @ w_o if layer.b_o is None else out @ w_o + layer.b_o.data
    products["The output of the layer"] = [("Z", out), "·", ("W^O", w_o), *bias, "=", ("Y", y)]
    return [Product(title, terms, words) for title, terms in products.items()]


def layer_norm_products(layer, x, words=None):
    """The steps of a LayerNorm for the rows of x (T, D), as products: centre, divide, scale and shift."""
    check_kind("layer", layer, LayerNorm)
    x = as_numbers("x", x)
    gamma = layer.gamma.data
    beta = np.zeros_like(gamma) if layer.beta is None else layer.beta.data
    y, x_hat, inv_std = F.layer_norm(x, gamma, beta, layer.eps)
    mean = x.mean(axis=-1, keepdims=True)
    centred, scaled = ("X - \\mu", x - mean), ("\\hat{X}", x_hat)
    shift = "+", ("\\beta", beta[None])
    products = {
        "Subtract the mean of each row": [("X", x), "−", ("\\mu", mean), "=", centred],
        "Divide by the standard deviation of each row": [centred, "/", ("\\sigma", 1 / inv_std), "=", scaled],
        "Scale and shift each column": [scaled, "⊙", ("\\gamma", gamma[None]), *shift, "=", ("Y", y)],
    }
    return [Product(title, terms, words) for title, terms in products.items()]


@styled
def matrices(products, title=None):
    """Products of matrices as coloured grids, one below the other.

    products: a Product or a list of them, as returned by `attention_products` and `layer_norm_products`

    How to read it: red is positive, blue negative, white 0; the weights A are brighter the larger they are. Each
    matrix has its own scale. Its name and its shape (rows × columns) are below it. A number of a product is a row of
    the first matrix times a column of the second. Matrices with more than 12 rows or columns have no numbers.

    Raises ValueError for no products and for anything but matrices.
    """
    products = [products] if isinstance(products, Product) else as_list("products", products, "Product")
    if not products:
        raise ValueError("products must have at least one Product")
    for i, product in enumerate(products):
        check_kind(f"products[{i}]", product, Product)
    rows = [_Row(product) for product in products]
    width = 2 * EDGE + max(row.width for row in rows)
    height = 2 * EDGE + sum(row.height for row in rows) + 2 * LABEL * (len(rows) - 1)
    figure = Picture.titled(title, width, height)
    axes = figure.panel(0, 0, width, height, xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    y = EDGE
    for row in rows:
        row.draw(axes, EDGE, y)
        y += row.height + 2 * LABEL
    return figure


class _Row:
    """The sizes of one product in inches, and its drawing."""

    def __init__(self, product):
        self.title = product.title
        self.terms = [_Sign(term) if isinstance(term, str) else _Matrix(*term) for term in product.terms]
        self.words = as_words("words", product.words, len(product.matrices[0][1]), "row") if product.words else []
        self.left = max(map(text_width, self.words), default=0) + PAD * bool(self.words)
        self.tall = max(term.height for term in self.terms)
        self.height = LABEL + PAD + self.tall + 2.2 * LABEL
        self.width = max(self.left + sum(term.width for term in self.terms), text_width(self.title, TITLE))

    def draw(self, axes, x, y):
        axes.text(x, y + LABEL / 2, self.title, va="center", size=TITLE)
        top, words = y + LABEL + PAD, self.words
        for term in self.terms:
            if words and isinstance(term, _Matrix):  # beside the first matrix
                x, words = x + self.left, []
                for word, at in zip(self.words, term.rows(top + self.tall / 2), strict=True):
                    axes.text(x + BETWEEN / 2 - PAD, at, word, ha="right", va="center", parse_math=False)
            term.draw(axes, x, top + self.tall / 2, top + self.tall)
            x += term.width


class _Sign:
    """A sign between two matrices."""

    height = 0

    def __init__(self, text):
        self.text, self.width = text, text_width(text, TITLE) + BETWEEN

    def draw(self, axes, x, middle, bottom):
        axes.text(x + self.width / 2, middle, self.text, ha="center", va="center", size=TITLE, parse_math=False)


class _Matrix:
    """A grid of coloured cells, with their numbers if there are few."""

    def __init__(self, name, matrix):
        self.name, self.matrix = f"${name}$", steady(np.asarray(matrix, float))
        self.colours = colours(name, self.matrix)
        rows, columns = self.matrix.shape
        self.shape = f"{rows} × {columns}"
        self.texts = numbers(self.matrix) if max(rows, columns) <= MOST else []
        widths = [text_width(text, TEXT - 1) for row in self.texts for text in row]
        self.cell = (max(widths) + PAD, ROW) if widths else (SMALL, SMALL)
        self.across, self.height = columns * self.cell[0], rows * self.cell[1]
        self.width = max(self.across, text_width(self.shape)) + BETWEEN

    def rows(self, middle):
        """The height of the middle of each row."""
        return middle - self.height / 2 + (np.arange(len(self.matrix)) + 0.5) * self.cell[1]

    def draw(self, axes, x, middle, bottom):
        """Draw the cells, with name and shape below the line `bottom`."""
        x, top = x + (self.width - self.across) / 2, middle - self.height / 2
        rows, columns = self.matrix.shape
        edges = np.linspace(x, x + self.across, columns + 1), np.linspace(top, top + self.height, rows + 1)
        look = {"edgecolors": "white", "linewidth": 0.5} if self.texts else {"edgecolors": "face", "linewidth": 0.0}
        mesh = axes.pcolormesh(*edges, self.matrix, **self.colours, **look)
        centred = {"ha": "center", "va": "center"}
        for (i, j), light in np.ndenumerate(is_bright(mesh, self.matrix)) if self.texts else ():
            at = x + (j + 0.5) * self.cell[0], top + (i + 0.5) * self.cell[1]
            look = {"size": TEXT - 1, "color": "black" if light else "white", "parse_math": False}
            axes.text(*at, self.texts[i][j], **centred, **look)
        axes.text(x + self.across / 2, bottom + 0.7 * LABEL, self.name, size=TITLE, **centred)
        axes.text(x + self.across / 2, bottom + 1.7 * LABEL, self.shape, parse_math=False, **centred)


def colours(name, matrix):
    """The colour map and scale of a matrix: around 0, or for the weights A from the smallest to the largest."""
    low, high = matrix.min(), matrix.max()
    if name[0] == "A" and low >= 0 and high > low:
        return {"cmap": WEIGHTS, "norm": Normalize(low, high)}
    return {"cmap": SIGNED, "norm": CenteredNorm(0, np.abs(matrix).max() or 1)}


def numbers(matrix):
    """The numbers of a matrix as short texts of equal precision."""
    most = np.abs(matrix).max()
    digits = 2 if most < 10 else 1 if most < 100 else 0
    return [[f"{value:z.{digits}f}".replace("-", "−") for value in row] for row in matrix]  # z: no −0.00
