"""SiLU, the activation in SwiGLU, and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, extended
from ..notes import hints_of, sections
from .activations import of_every_rank, with_zeros

MISTAKES = sections(__file__)


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


_SIGMA_MISTAKES = MISTAKES["sigma mistakes"]

SILU = Exercise(
    F.silu,
    results=(Result("y"),),
    cases=silu_cases,
    answer=silu,
    hints=hints_of(MISTAKES["silu: hints"]),
    difficulty=1,
    section="Elfwing et al. 2018",
    chapter="Today's Transformers",
    place=4,
    mistakes=MISTAKES["silu"] + _SIGMA_MISTAKES,
)


def silu_backward(dy, x):
    gate = sigma(x)
    slope = gate + x * gate * (1 - gate)
    return dy * slope


SILU_BACKWARD = Exercise(
    F.silu_backward,
    results=(Result("dx"),),
    cases=lambda rng: silu_cases(rng, backward=True),
    answer=silu_backward,
    hints=hints_of(MISTAKES["silu_backward: hints"]),
    difficulty=1,
    section="Elfwing et al. 2018",
    chapter="Today's Transformers",
    place=5,
    mistakes=MISTAKES["silu_backward"] + _SIGMA_MISTAKES,
)

EXERCISES = [SILU, SILU_BACKWARD]
