"""The feed-forward network, without and with a gate, and the backward of both."""

import numpy as np

from ... import functional as F
from ..exercise import draw_sizes, extended
from .activations import gelu, gelu_backward, sigmoid, silu, silu_backward  # noqa: F401 - sigmoid for the mistakes
from .draws import Calls
from .linear import gradients
from .sheet import Sheet

SHEET = Sheet(__file__)


def feed_forward_cases(rng):
    sizes = draw_sizes(rng, "B H T D F") | {"D_out": "D"}
    case = Calls(rng, F.feed_forward, sizes, without="H")
    return [case(""), *case.of_other_ranks(), case("d_ff = d_model", {"F": sizes["D"]})]


def feed_forward(x, w1, b1, w2, b2):
    before = x @ w1 + b1
    hidden = np.maximum(before, 0)
    y = hidden @ w2 + b2
    return y, hidden


def feed_forward_backward(dy, x, hidden, w1, w2):
    dw2, db2 = gradients(dy, hidden)
    dhidden = dy @ w2.T
    dbefore = dhidden * (hidden > 0)
    dw1, db1 = gradients(dbefore, x)
    dx = dbefore @ w1.T
    return dx, dw1, db1, dw2, db2


# --- with a gate ------------------------------------------------------------------------------------------------------


def gated_cases(rng):
    sizes = draw_sizes(rng, "B H T D F") | {"D_out": "D"}
    # so that the gates are about 1.5, where the two forms of GELU differ most, and the values about 1
    scale = sizes["D"] ** -0.5
    usual = {"w_gate": lambda w: 1.5 * scale * w, "w1": lambda w: scale * w}
    case = Calls(rng, F.gated_feed_forward, sizes, without="H", **usual)
    return [
        case(""),
        *case.of_other_ranks(),
        case("d_ff = d_model", {"F": sizes["D"]}),
        extended(case('activation="silu"', activation="silu")),
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
    *SHEET.both(F.feed_forward, feed_forward, feed_forward_backward, feed_forward_cases),
    *SHEET.both(F.gated_feed_forward, gated_feed_forward, gated_feed_forward_backward, gated_cases),
]
