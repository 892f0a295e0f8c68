"""The linear map, the low-rank term that LoRA adds to it, and their backward."""

import numpy as np  # noqa: F401 - for the mistakes

from ... import functional as F
from ..exercise import draw_sizes
from .draws import Calls
from .sheet import Sheet

SHEET = Sheet(__file__)


def linear_cases(rng):
    case = Calls(rng, F.linear, draw_sizes(rng, "B H T D_in D_out"), without="H")
    D_in = case.sizes["D_in"]
    return [
        case(""),
        case("no bias", b=None),
        *case.of_other_ranks(),
        case("as many outputs as inputs", {"D_out": D_in}),
        case("as many words as inputs and outputs", {"T": D_in, "D_out": D_in}),
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


# --- the low-rank term of LoRA ----------------------------------------------------------------------------------------


def lora_cases(rng):
    sizes = draw_sizes(rng, "B H T D_in D_out R")
    case = Calls(rng, F.lora, sizes, without="H", scale=float(rng.uniform(0.3, 0.7)))
    return [
        case(""),
        case("the default scale", scale=None),
        *case.of_other_ranks(),
        case("R = 1", {"R": 1}),
        case("as many outputs as inputs", {"D_out": sizes["D_in"]}),
    ]


def lora(x, a, b, scale=1.0):
    low = x @ a
    y = scale * (low @ b)
    return y, low


def lora_backward(dy, x, low, a, b, scale=1.0):
    x_rows, low_rows, dy_rows = (rows.reshape(-1, rows.shape[-1]) for rows in (x, low, dy))
    dlow = scale * (dy @ b.T)
    dlow_rows = dlow.reshape(-1, dlow.shape[-1])
    dx = dlow @ a.T
    da = x_rows.T @ dlow_rows
    db = scale * (low_rows.T @ dy_rows)
    return dx, da, db


EXERCISES = [
    *SHEET.both(F.linear, linear, linear_backward, linear_cases, without=["no bias"]),
    *SHEET.both(F.lora, lora, lora_backward, lora_cases),
]
