"""The linear map, the low-rank term that LoRA adds to it, and their backward."""

from dataclasses import replace

import numpy as np  # noqa: F401 - for the mistakes

from ... import functional as F
from ..exercise import Case, draw_sizes
from .draws import of_every_rank, of_forward
from .sheet import Sheet

SHEET = Sheet(__file__)


def linear_cases(rng):
    sizes = draw_sizes(rng, "B H T D_in D_out")
    B, H, T, D_in, D_out = sizes.values()
    x, w, b = rng.normal(size=(B, H, T, D_in)), rng.normal(size=(D_in, D_out)), rng.normal(size=D_out)
    square = rng.normal(size=(D_in, D_in)), rng.normal(size=D_in)
    words = rng.normal(size=(B, D_in, D_in))
    plain, *others = of_every_rank(x, (w, b), sizes)
    same = plain.sizes | {"D_out": D_in}
    return [
        plain,
        Case("no bias", (x[:, 0], w), sizes=plain.sizes),
        *others,
        Case("as many outputs as inputs", (x[:, 0], *square), sizes=same),
        Case("as many words as inputs and outputs", (words, *square), sizes=same | {"T": D_in}),
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
    sizes = draw_sizes(rng, "B H T D_in D_out R", least=2)
    B, H, T, D_in, D_out, R = sizes.values()
    x = rng.normal(size=(B, H, T, D_in))
    options = {"scale": float(rng.uniform(0.3, 0.7))}

    def matrices(R=R, D_out=D_out):
        return rng.normal(size=(D_in, R)), rng.normal(size=(R, D_out))

    plain, *others = of_every_rank(x, matrices(), sizes, **options)
    return [
        plain,
        replace(plain, label="the default scale", options={}),
        *others,
        Case("R = 1", (x[:, 0], *matrices(R=1)), options, plain.sizes | {"R": 1}),
        Case("as many outputs as inputs", (x[:, 0], *matrices(D_out=D_in)), options, plain.sizes | {"D_out": D_in}),
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
    SHEET.exercise(F.linear, linear, linear_cases),
    SHEET.exercise(F.linear_backward, linear_backward, of_forward(F.linear, linear_cases, ["no bias"])),
    SHEET.exercise(F.lora, lora, lora_cases),
    SHEET.exercise(F.lora_backward, lora_backward, of_forward(F.lora, lora_cases)),
]
