"""GELU and its backward."""

import math  # noqa: F401 - for a mistake

import numpy as np

from ... import functional as F
from ...functional.activations import erf
from ..exercise import Case, extended
from .activations import of_every_rank, sigmoid, with_zeros  # noqa: F401 - for the mistakes
from .sheet import Sheet

SHEET = Sheet(__file__)


def gelu_cases(rng, backward=False):
    def arguments(x):
        return (rng.normal(size=x.shape), x) if backward else (x,)

    sizes, x, cases = of_every_rank(rng, arguments)
    return [
        *cases,
        extended(Case('approximate="none"', arguments(x), {"approximate": "none"}, sizes)),
        Case('approximate="tanh" given', arguments(x), {"approximate": "tanh"}, sizes),
        extended(Case('approximate="none" plus x of one axis', arguments(x[0, 0]), {"approximate": "none"}, sizes)),
        Case("x from −2.5 to −1.5", arguments(rng.uniform(-2.5, -1.5, x.shape)), sizes=sizes),
        Case("some x exactly 0", arguments(with_zeros(rng, x)), sizes=sizes),
    ]


def gate(x, approximate):
    """g in y = x/2 · (1 + g), and its slope g′."""
    if approximate == "none":
        scale = 1 / np.sqrt(2)
        g = erf(scale * x)
        slope = 2 / np.sqrt(np.pi) * np.exp(-((scale * x) ** 2)) * scale
    else:
        factor = np.sqrt(2 / np.pi)
        cubic = 0.044715
        g = np.tanh(factor * (x + cubic * x**3))
        slope = (1 - g**2) * factor * (1 + 3 * cubic * x**2)
    return g, slope


# the mistakes in `gate` that show in the forward too
GATE_MISTAKES = SHEET["gate mistakes"] + "".join(
    SHEET["cut off or miscopied"].format(number=number)
    for number in (0.04, 0.044, 0.0447, 0.045, 0.047715, 0.04715, 0.044175)
)


def gelu(x, approximate="tanh"):
    g, _ = gate(x, approximate)
    return x / 2 * (1 + g)


def gelu_backward(dy, x, approximate="tanh"):
    g, slope = gate(x, approximate)
    return dy * (1 + g + x * slope) / 2


EXERCISES = [
    SHEET.exercise(F.gelu, gelu, gelu_cases, {"y": "..."}, mistakes=SHEET["gelu"] + GATE_MISTAKES),
    SHEET.exercise(
        F.gelu_backward, gelu_backward, lambda rng: gelu_cases(rng, backward=True), {"dx": "..."},
        mistakes=SHEET["gelu_backward"] + GATE_MISTAKES,
    ),
]  # fmt: skip
