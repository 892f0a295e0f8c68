"""The positional encoding."""

import numpy as np

from ... import functional as F
from ..exercise import Case, extended
from .sheet import Sheet

SHEET = Sheet(__file__)


def sinusoidal_encoding_cases(rng):
    length, half = map(int, rng.permutation(np.arange(4, 10))[:2])
    even, odd = 2 * half, 2 * half + 1
    length = 2 * length + 3  # odd: never d_model where that is even

    def case(label, length, d_model, **options):
        return Case(label, (length, d_model), options, {"length": length, "d_model": d_model})

    return [
        case("", length, even),
        extended(case("an odd d_model", length + 1, odd)),
        extended(case("dtype=float64", length, even, dtype=np.float64)),
        extended(case("dtype=float32", length, even, dtype=np.float32)),
        case("more dimensions than positions", 3, 2 * even),
        case("d_model = 4", 5, 4),
    ]


def sinusoidal_encoding(length, d_model, dtype=np.float32):
    position = np.arange(length)[:, None]  # (length, 1)
    dimension = np.arange(d_model)
    i = dimension // 2  # counts pairs of dimensions
    divisor = 10000.0 ** (2 * i / d_model)
    angle = position / divisor  # (length, d_model)
    encoding = np.where(dimension % 2 == 0, np.sin(angle), np.cos(angle))
    return encoding.astype(dtype)


EXERCISES = [
    SHEET.exercise(
        F.sinusoidal_encoding, sinusoidal_encoding, sinusoidal_encoding_cases, {"encoding": "length d_model"},
    ),
]  # fmt: skip
