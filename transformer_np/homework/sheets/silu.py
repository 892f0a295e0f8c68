"""SiLU, the activation in SwiGLU, and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, extended
from .activations import of_every_rank, with_zeros


def silu_cases(rng, backward=False):
    def arguments(x):
        return (rng.normal(size=x.shape), x) if backward else (x,)

    sizes, x, cases = of_every_rank(rng, arguments)
    return [
        *cases,
        Case("some x exactly 0", arguments(with_zeros(rng, x)), sizes=sizes),
        Case("x from −4 to −1", arguments(rng.uniform(-4, -1, x.shape)), sizes=sizes),
        extended(Case("x of ±1000", arguments(1000 * np.sign(x)), sizes=sizes)),
    ]


def sigma(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigma(x)


_SIGMA_MISTAKES = """
- σ of −x:  np.exp(-x) -> np.exp(x)
  The sign in the exponent is wrong: this is σ(−x) = 1/(1 + eˣ). It is σ(x) = 1/(1 + e⁻ˣ).
- overflow:  1 / (1 + np.exp(-x)) -> np.exp(x) / (1 + np.exp(x))
  σ is computed as eˣ / (1 + eˣ), and eˣ overflows for large x: inf/inf is NaN. Write it as 1 / (1 + e⁻ˣ).
- 1.702 x:  np.exp(-x) -> np.exp(-1.702 * x)
  The sigmoid is that of 1.702 x, which approximates the GELU. Here it is σ(x).
- 2^x for e^x:  np.exp(-x) -> np.exp2(-x)
  The sigmoid is made from 2⁻ˣ (np.exp2). It is e⁻ˣ, np.exp.
- the 1 missing:  1 / (1 + np.exp(-x)) -> 1 / np.exp(-x)
  The 1 in the denominator is missing: this is eˣ. It is σ(x) = 1/(1 + e⁻ˣ).
- tanh for σ:  1 / (1 + np.exp(-x)) -> np.tanh(x)
  The gate is tanh(x), from −1 to 1. It is the sigmoid σ(x), from 0 to 1.
- a step for σ:  1 / (1 + np.exp(-x)) -> np.where(x > 0, 1.0, 0.0)
  The gate is 1 or 0, which gives the ReLU. It is the sigmoid σ(x), which opens gradually.
"""

SILU = Exercise(
    F.silu,
    results=(Result("y"),),
    cases=silu_cases,
    answer=silu,
    hints=(
        "A ReLU multiplies x by 0 or 1. Which smooth function goes from 0 to 1?",
        "y = x σ(x), σ(x) = 1/(1 + e⁻ˣ)",
        "Elfwing et al. 2018; SwiGLU is this function in a gated feed-forward network, Shazeer 2020.",
    ),
    difficulty=1,
    section="Elfwing et al. 2018",
    chapter="Today's Transformers",
    place=4,
    mistakes="""
- only the sigmoid:  x * sigma(x) -> sigma(x)
  This is σ(x) alone, between 0 and 1. It is multiplied by x: y = x σ(x).
- x²:  x * sigma(x) -> x * x * sigma(x)
  This is x² σ(x). It is multiplied by x once: y = x σ(x).
- x + σ:  x * sigma(x) -> x + sigma(x)
  σ(x) is added to x. Multiply: y = x σ(x).
- the GELU:  x * sigma(x) -> F.gelu(x)
  This is the GELU, x Φ(x). The gate here is the sigmoid: y = x σ(x).
- softplus:  x * sigma(x) -> np.logaddexp(0, x)
  This is the softplus, ln(1 + eˣ). SiLU is x σ(x), and is negative for negative x.
- σ of the absolute value:  x * sigma(x) -> x * sigma(np.abs(x))
  The sigmoid is that of |x|, so negative x pass as well. It is σ(x).
- the sign of x lost:  x * sigma(x) -> np.abs(x) * sigma(x)
  The factor in front is |x|. It is x, so y is negative for negative x.
"""
    + _SIGMA_MISTAKES,
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
    hints=(
        "y is a product of x and σ(x), and both depend on x. What does the product rule say?",
        "dx = dy · (σ(x) + x σ(x) (1 − σ(x)))",
        "Elfwing et al. 2018; σ′ = σ (1 − σ).",
    ),
    difficulty=1,
    section="Elfwing et al. 2018",
    chapter="Today's Transformers",
    place=5,
    mistakes="""
- only σ:  gate + x * gate * (1 - gate) -> gate
  The slope is σ(x), as if the gate were a constant. The gate depends on x too: add x σ(x) (1 − σ(x)).
- only the gate's slope:  gate + x * gate * (1 - gate) -> x * gate * (1 - gate)
  The slope is x σ(x) (1 − σ(x)), as if the factor x were a constant. Add σ(x).
- the slope of the sigmoid:  gate + x * gate * (1 - gate) -> gate * (1 - gate)
  This is the slope of the sigmoid alone. By the product rule it is σ(x) + x σ(x) (1 − σ(x)).
- x forgotten in the second term:  x * gate * (1 - gate) -> gate * (1 - gate)
  The factor x is missing in the second term: σ(x) + x σ(x) (1 − σ(x)).
- minus between the terms:  gate + x * gate -> gate - x * gate
  The second term is subtracted. The product rule adds: σ(x) + x σ(x) (1 − σ(x)).
- 1 + σ for 1 − σ:  (1 - gate) -> (1 + gate)
  The second term has the factor 1 + σ(x). The slope of the sigmoid is σ(x) (1 − σ(x)).
- 1 − σ forgotten:  x * gate * (1 - gate) -> x * gate
  The factor 1 − σ(x) is missing in the second term: the slope of the sigmoid is σ(x) (1 − σ(x)).
- σ forgotten in the second term:  x * gate * (1 - gate) -> x * (1 - gate)
  The factor σ(x) is missing in the second term: the slope of the sigmoid is σ(x) (1 − σ(x)).
- the slope of tanh:  x * gate * (1 - gate) -> x * (1 - gate**2)
  The slope of the gate is 1 − σ², which is that of tanh. For the sigmoid it is σ (1 − σ).
- dy missing:  dy * slope -> slope
  The upstream gradient is missing: dx = dy · slope.
- the forward's output:  dy * slope -> dy * x * gate
  dy is multiplied by the output x σ(x). Multiply it by the slope, σ(x) + x σ(x) (1 − σ(x)).
"""
    + _SIGMA_MISTAKES,
)

EXERCISES = [SILU, SILU_BACKWARD]
