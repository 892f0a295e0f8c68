"""Softmax and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import draw_sizes, extended
from .draws import Calls
from .sheet import Sheet

SHEET = Sheet(__file__)


def softmax_cases(rng):
    case = Calls(rng, F.softmax, draw_sizes(rng, "B T S"), "B T S")
    plain = case("")
    (x,) = plain.arguments
    sign = np.sign(x)
    sign[0, 0], sign[-1, -1, 0] = -1, 1  # a row that lies far below the largest number of all
    large = 1e4 * sign + np.round(64 * x) / 64  # which float32 holds to the last digit
    large[-1, 1] = x[-1, 1]
    hidden = np.where(rng.random(x.shape) < 0.3, -np.inf, x)
    hidden[..., 0] = x[..., 0]  # something to choose from in every row
    empty = x.copy()
    empty[-1, 0] = -np.inf
    return [
        plain,
        case("axis=0", axis=0),
        case("logits of ±10,000", x=large),
        case("some logits −inf", x=hidden),
        extended(case("a row of nothing but −inf", x=empty)),
        extended(case("nothing but −inf", x=np.full_like(x, -np.inf))),
        case("x of shape (S,)", without="B T"),
    ]


def softmax(x, axis=-1):
    largest = x.max(axis=axis, keepdims=True)
    largest = np.maximum(largest, np.finfo(x.dtype).min)  # −inf where a row hides everything
    y = np.exp(x - largest)
    total = y.sum(axis=axis, keepdims=True)
    return y / np.where(total == 0, 1, total)


def softmax_backward(dy, y, axis=-1):
    total = np.sum(dy * y, axis=axis, keepdims=True)
    return y * (dy - total)


EXERCISES = SHEET.both(
    F.softmax, softmax, softmax_backward, softmax_cases,
    without=["10,000", "nothing but"],  # all y 0 or 1: no gradient
    labels={"some logits −inf": "some weights 0"},
)  # fmt: skip
