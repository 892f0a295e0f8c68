"""SiLU, the activation in SwiGLU, and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, extended
from .activations import of_every_rank, with_zeros
from .sheet import Sheet

SHEET = Sheet(__file__)


def silu_cases(rng, backward=False):
    def arguments(x):
        return (rng.normal(size=x.shape), x) if backward else (x,)

    sizes, x, cases = of_every_rank(rng, arguments)
    large = x.copy()  # in part: at ±1000 alone, many a wrong slope is right
    large[..., ::2] = 1000 * np.sign(x[..., ::2])
    return [
        *cases,
        Case("some x exactly 0", arguments(with_zeros(rng, x)), sizes=sizes),
        Case("x from −4 to −1", arguments(rng.uniform(-4, -1, x.shape)), sizes=sizes),
        extended(Case("some x of ±1000", arguments(large), sizes=sizes)),
    ]


def sigma(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigma(x)


def silu_backward(dy, x):
    gate = sigma(x)
    slope = gate + x * gate * (1 - gate)
    return dy * slope


EXERCISES = [
    SHEET.exercise(F.silu, silu, silu_cases, {"y": "..."}),
    SHEET.exercise(F.silu_backward, silu_backward, lambda rng: silu_cases(rng, backward=True), {"dx": "..."}),
]
