"""Softmax and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes, extended
from .draws import only
from .sheet import Sheet

SHEET = Sheet(__file__)


def softmax_cases(rng):
    sizes = draw_sizes(rng, "B T S")
    x = rng.normal(size=tuple(sizes.values()))
    sign = np.sign(x)
    sign[0, 0], sign[-1, -1, 0] = -1, 1  # a row that lies far below the largest number of all
    large = 1e4 * sign + np.round(64 * x) / 64  # which float32 holds to the last digit
    large[-1, 1] = x[-1, 1]
    hidden = np.where(rng.random(x.shape) < 0.3, -np.inf, x)
    hidden[..., 0] = x[..., 0]  # something to choose from in every row
    empty = x.copy()
    empty[-1, 0] = -np.inf
    return [
        Case("", (x,), sizes=sizes),
        Case("axis=0", (x,), {"axis": 0}, sizes),
        Case("logits of ±10,000", (large,), sizes=sizes),
        Case("some logits −inf", (hidden,), sizes=sizes),
        extended(Case("a row of nothing but −inf", (empty,), sizes=sizes)),
        extended(Case("nothing but −inf", (np.full_like(x, -np.inf),), sizes=sizes)),
        Case("x of shape (S,)", (x[0, 0],), sizes=only(sizes, "S")),
    ]


def softmax(x, axis=-1):
    largest = x.max(axis=axis, keepdims=True)
    largest = np.maximum(largest, np.finfo(x.dtype).min)  # −inf where a row hides everything
    y = np.exp(x - largest)
    total = y.sum(axis=axis, keepdims=True)
    return y / np.where(total == 0, 1, total)


def softmax_backward_cases(rng):
    sizes = draw_sizes(rng, "B T S")
    x, dy = rng.normal(size=(2, *sizes.values()))
    hidden = F.softmax(np.where(rng.random(x.shape) < 0.3, -np.inf, x))
    return [
        Case("", (dy, F.softmax(x)), sizes=sizes),
        Case("axis=0", (dy, F.softmax(x, axis=0)), {"axis": 0}, sizes),
        Case("some weights 0", (dy, hidden), sizes=sizes),
        Case("y of shape (S,)", (dy[0, 0], F.softmax(x[0, 0])), sizes=only(sizes, "S")),
    ]


def softmax_backward(dy, y, axis=-1):
    total = np.sum(dy * y, axis=axis, keepdims=True)
    return y * (dy - total)


EXERCISES = [
    SHEET.exercise(F.softmax, softmax, softmax_cases),
    SHEET.exercise(F.softmax_backward, softmax_backward, softmax_backward_cases),
]
