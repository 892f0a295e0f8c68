"""The feed-forward network and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes
from .draws import only
from .linear import gradients, without_heads
from .sheet import Sheet

SHEET = Sheet(__file__)


def feed_forward_cases(rng):
    sizes = draw_sizes(rng, "B H T D F")
    B, H, T, D, F_ = sizes.values()
    deep, sizes = sizes, without_heads(sizes)
    x = rng.normal(size=(B, H, T, D))
    w1, b1, w2, b2 = rng.normal(size=(D, F_)), rng.normal(size=F_), rng.normal(size=(F_, D)), rng.normal(size=D)
    v1, c1, v2, c2 = rng.normal(size=(D, D)), rng.normal(size=D), rng.normal(size=(D, D)), rng.normal(size=D)
    return [
        Case("", (x[:, 0], w1, b1, w2, b2), sizes=sizes),
        Case("x of shape (T, D)", (x[0, 0], w1, b1, w2, b2), sizes=only(sizes, "T D F")),
        Case("x of four axes", (x, w1, b1, w2, b2), sizes=deep),
        Case("x of shape (D,)", (x[0, 0, 0], w1, b1, w2, b2), sizes=only(sizes, "D F")),
        Case("d_ff = d_model", (x[:, 0], v1, c1, v2, c2), sizes=sizes | {"F": D}),
    ]


def feed_forward(x, w1, b1, w2, b2):
    before = x @ w1 + b1
    hidden = np.maximum(before, 0)
    y = hidden @ w2 + b2
    return y, hidden


def feed_forward_backward_cases(rng):
    for case in feed_forward_cases(rng):
        x, w1, b1, w2, b2 = case.arguments
        _, hidden = F.feed_forward(x, w1, b1, w2, b2)
        yield Case(case.label, (rng.normal(size=x.shape), x, hidden, w1, w2), sizes=case.sizes)


def feed_forward_backward(dy, x, hidden, w1, w2):
    dw2, db2 = gradients(dy, hidden)
    dhidden = dy @ w2.T
    dbefore = dhidden * (hidden > 0)
    dw1, db1 = gradients(dbefore, x)
    dx = dbefore @ w1.T
    return dx, dw1, db1, dw2, db2


EXERCISES = [
    SHEET.exercise(F.feed_forward, feed_forward, feed_forward_cases, {"y": "... D", "hidden": "... F"}),
    SHEET.exercise(
        F.feed_forward_backward, feed_forward_backward, feed_forward_backward_cases,
        {"dx": "... D", "dw1": "D F", "db1": "F", "dw2": "F D", "db2": "D"},
    ),
]  # fmt: skip
