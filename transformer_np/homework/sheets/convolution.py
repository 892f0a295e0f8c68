"""The causal convolution and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes
from .draws import of_forward
from .rnn import products
from .sheet import Sheet

SHEET = Sheet(__file__)


def conv_cases(rng):
    sizes = draw_sizes(rng, "B D_in D_out")
    B, D_in, D_out = sizes.values()
    k = int(rng.choice([3, 5]))  # odd: there is one way only to pad on both sides
    T = 2 * k + 3 + int(rng.integers(2))
    sizes = {"B": B, "T": T, "k": k, "D_in": D_in, "D_out": D_out}
    x, w, b = rng.normal(size=(B, T, D_in)), rng.normal(size=(k, D_in, D_out)), rng.normal(size=D_out)
    square = x, rng.normal(size=(k, D_in, D_in)), rng.normal(size=D_in)
    short = T // 2 + 1  # two taps reach it, the third looks at what lies before the start
    return [
        Case("", (x, w, b), sizes=sizes),
        Case("dilation 2", (x, w, b), {"dilation": 2}, sizes),
        Case("dilation 3", (x, w, b), {"dilation": 3}, sizes),
        Case("no bias", (x, w), sizes=sizes),
        Case(
            "a dilation with taps wholly before the start",
            (x[:, :short], w[:3], b),
            {"dilation": short - 1},
            sizes | {"T": short, "k": 3},
        ),
        Case("as many features out as in", square, sizes=sizes | {"D_out": D_in}),
        Case("one token and one tap", (x[:, :1], w[:1], b), sizes=sizes | {"T": 1, "k": 1}),
    ]


def shifted(x, places):
    """x_{t − places} at token t, and 0 where there is no such token."""
    T = x.shape[1]
    t = np.arange(T) - places
    inside = (0 <= t) & (t < T)
    return x[:, t % T] * inside[:, None]


def causal_conv1d(x, w, b=None, dilation=1):
    B, T, _ = x.shape
    k, _, D_out = w.shape
    y = np.zeros((B, T, D_out))
    for j in range(k):
        back = j * dilation
        y = y + shifted(x, back) @ w[j]
    if b is not None:
        y = y + b
    return y


def causal_conv1d_backward(dy, x, w, dilation=1):
    B, T, D_in = x.shape
    k = len(w)
    dx, dw = np.zeros((B, T, D_in)), np.zeros_like(w)
    for j in range(k):
        back = j * dilation
        dx = dx + shifted(dy, -back) @ w[j].T
        dw[j] = products(shifted(x, back), dy)
    db = dy.sum(axis=(0, 1))
    return dx, dw, db


EXERCISES = [
    SHEET.exercise(F.causal_conv1d, causal_conv1d, conv_cases),
    SHEET.exercise(
        F.causal_conv1d_backward, causal_conv1d_backward, of_forward(F.causal_conv1d, conv_cases, ["no bias"])
    ),
]
