"""The linear map and its backward."""

import numpy as np  # noqa: F401 - for the mistakes

from ... import functional as F
from ..exercise import Case, draw_sizes
from .draws import of_forward
from .sheet import Sheet

SHEET = Sheet(__file__)


def without_heads(sizes):
    """The sizes of the cases that are not of four axes."""
    return {letter: size for letter, size in sizes.items() if letter != "H"}


def linear_cases(rng):
    sizes = draw_sizes(rng, "B H T D_in D_out")
    B, H, T, D_in, D_out = sizes.values()
    deep, sizes = sizes, without_heads(sizes)
    x, w, b = rng.normal(size=(B, H, T, D_in)), rng.normal(size=(D_in, D_out)), rng.normal(size=D_out)
    square = rng.normal(size=(D_in, D_in))
    b_square = rng.normal(size=D_in)
    words = rng.normal(size=(B, D_in, D_in))
    return [
        Case("", (x[:, 0], w, b), sizes=sizes),
        Case("no bias", (x[:, 0], w), sizes=sizes),
        Case("x of shape (T, D_in)", (x[0, 0], w, b), sizes=sizes),
        Case("x of four axes", (x, w, b), sizes=deep),
        Case("x of shape (D_in,)", (x[0, 0, 0], w, b), sizes=sizes),
        Case("as many outputs as inputs", (x[:, 0], square, b_square), sizes=sizes | {"D_out": D_in}),
        Case(
            "as many words as inputs and outputs", (words, square, b_square), sizes=sizes | {"D_out": D_in, "T": D_in}
        ),
    ]


def linear(x, w, b=None):
    y = x @ w
    if b is not None:
        y = y + b
    return y


def gradients(dy, x):
    """The gradients of w and b in y = x w + b."""
    lead = tuple(range(dy.ndim - 1))
    x_rows, dy_rows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    dw = x_rows.T @ dy_rows
    db = dy.sum(axis=lead)
    return dw, db


def linear_backward(dy, x, w):
    dw, db = gradients(dy, x)
    dx = dy @ w.T
    return dx, dw, db


EXERCISES = [
    SHEET.exercise(F.linear, linear, linear_cases),
    SHEET.exercise(F.linear_backward, linear_backward, of_forward(F.linear, linear_cases, ["no bias"])),
]
