"""The low-rank term of LoRA and its backward."""

import numpy as np  # noqa: F401 - for the mistakes

from ... import functional as F
from ..exercise import Case, draw_sizes
from .draws import of_forward
from .linear import without_heads
from .sheet import Sheet

SHEET = Sheet(__file__)


def lora_cases(rng):
    sizes = draw_sizes(rng, "B H T D_in D_out R", least=2)
    B, H, T, D_in, D_out, R = sizes.values()
    plain = without_heads(sizes)
    scale = float(rng.uniform(0.3, 0.7))

    def case(label, sizes, *rows, wide=R, out=D_out, **options):
        sizes = sizes | {"R": wide, "D_out": out}
        x, a, b = rng.normal(size=(*rows, D_in)), rng.normal(size=(D_in, wide)), rng.normal(size=(wide, out))
        return Case(label, (x, a, b), options, sizes)

    return [
        case("", plain, B, T, scale=scale),
        case("the default scale", plain, B, T),
        case("x of shape (T, D_in)", plain, T, scale=scale),
        case("x of four axes", sizes, B, H, T, scale=scale),
        case("x of shape (D_in,)", plain, scale=scale),
        case("R = 1", plain, B, T, wide=1, scale=scale),
        case("as many outputs as inputs", plain, B, T, out=D_in, scale=scale),
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
    SHEET.exercise(F.lora, lora, lora_cases),
    SHEET.exercise(F.lora_backward, lora_backward, of_forward(F.lora, lora_cases)),
]
