"""The feed-forward network with a gate, and its backward."""

from dataclasses import replace

import numpy as np  # noqa: F401 - for the mistakes

from ... import functional as F
from ..exercise import Case, draw_sizes, extended
from .activations import sigmoid  # noqa: F401 - for the mistakes
from .draws import only
from .gelu import gelu, gelu_backward
from .linear import gradients, without_heads
from .sheet import Sheet
from .silu import silu, silu_backward

SHEET = Sheet(__file__)


def gated_cases(rng):
    sizes = draw_sizes(rng, "B H T D F")
    B, H, T, D, F_ = sizes.values()
    deep, sizes = sizes, without_heads(sizes)
    x = rng.normal(size=(B, H, T, D))

    def matrices(D, F_):
        """So that the gates are about 1.5, where the two forms of GELU differ most, and the values about 1."""
        w_gate, w1 = rng.normal(size=(2, D, F_)) / D**0.5
        return 1.5 * w_gate, w1, rng.normal(size=(F_, D))

    w = matrices(D, F_)
    return [
        Case("", (x[:, 0], *w), sizes=sizes),
        Case("x of shape (T, D)", (x[0, 0], *w), sizes=sizes),
        Case("x of four axes", (x, *w), sizes=deep),
        Case("x of shape (D,)", (x[0, 0, 0], *w), sizes=only(sizes, "D F")),
        Case("d_ff = d_model", (x[:, 0], *matrices(D, D)), sizes=sizes | {"F": D}),
        extended(Case('activation="silu"', (x[:, 0], *w), {"activation": "silu"}, sizes)),
    ]


def gated_feed_forward(x, w_gate, w1, w2, activation="gelu_tanh"):
    gate = x @ w_gate
    value = x @ w1
    opened = gelu(gate)
    if activation == "silu":
        opened = silu(gate)
    hidden = opened * value
    y = hidden @ w2
    return y, gate, value


def gated_backward_cases(rng):
    for case in gated_cases(rng):
        x, *matrices = case.arguments
        y, gate, value = F.gated_feed_forward(*case.arguments, **case.options)
        yield replace(case, arguments=(rng.normal(size=y.shape), x, gate, value, *matrices))


def gated_feed_forward_backward(dy, x, gate, value, w_gate, w1, w2, activation="gelu_tanh"):
    opened, slope = gelu(gate), gelu_backward
    if activation == "silu":
        opened, slope = silu(gate), silu_backward
    dw2, _ = gradients(dy, opened * value)
    dhidden = dy @ w2.T
    dgate = slope(dhidden * value, gate)
    dvalue = dhidden * opened
    dw_gate, _ = gradients(dgate, x)
    dw1, _ = gradients(dvalue, x)
    dx = dgate @ w_gate.T + dvalue @ w1.T
    return dx, dw_gate, dw1, dw2


EXERCISES = [
    SHEET.exercise(
        F.gated_feed_forward, gated_feed_forward, gated_cases, {"y": "... D", "gate": "... F", "value": "... F"},
    ),
    SHEET.exercise(
        F.gated_feed_forward_backward, gated_feed_forward_backward, gated_backward_cases,
        {"dx": "... D", "dw_gate": "D F", "dw1": "D F", "dw2": "F D"},
    ),
]  # fmt: skip
