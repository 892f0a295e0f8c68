"""GELU and its backward."""

import numpy as np

from ... import functional as F
from ...functional.activations import erf
from ..exercise import Case, Exercise, Result, extended
from ..notes import sections
from .activations import of_every_rank, sigmoid, with_zeros  # noqa: F401 - for the mistakes

MISTAKES = sections(__file__)


def gelu_cases(rng, backward=False):
    def arguments(x):
        return (rng.normal(size=x.shape), x) if backward else (x,)

    sizes, x, cases = of_every_rank(rng, arguments)
    return [
        *cases,
        extended(Case('approximate="none"', arguments(x), {"approximate": "none"}, sizes)),
        Case('approximate="tanh" given', arguments(x), {"approximate": "tanh"}, sizes),
        extended(Case('approximate="none", x of one axis', arguments(x[0, 0]), {"approximate": "none"}, sizes)),
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
GATE_MISTAKES = MISTAKES["gate mistakes"]


# --- gelu -------------------------------------------------------------------------------------------------------------


def gelu(x, approximate="tanh"):
    g, _ = gate(x, approximate)
    return x / 2 * (1 + g)


GELU = Exercise(
    F.gelu,
    results=(Result("y"),),
    cases=gelu_cases,
    answer=gelu,
    hints=(
        "x is weighted by the chance that a normally distributed number is smaller than x. What is that for large x, "
        "at 0, and for very negative x?",
        'y = x/2 · (1 + g): "tanh" g = tanh(√(2/π) (x + 0.044715 x³)), "none" g = erf(x/√2)',
        "in GPT and BERT it stands where notebook 04, section 1, has the ReLU; np.tanh, and math.erf with "
        "np.vectorize.",
    ),
    difficulty=2,
    section="Hendrycks & Gimpel 2016",
    chapter="Feed-forward network and layer norm",
    place=4,
    mistakes=MISTAKES["gelu"] + GATE_MISTAKES,
)


# --- gelu_backward ----------------------------------------------------------------------------------------------------


def gelu_backward(dy, x, approximate="tanh"):
    g, slope = gate(x, approximate)
    return dy * (1 + g + x * slope) / 2


GELU_BACKWARD = Exercise(
    F.gelu_backward,
    results=(Result("dx"),),
    cases=lambda rng: gelu_cases(rng, backward=True),
    answer=gelu_backward,
    hints=(
        "y = x/2 · (1 + g(x)) is a product, and x is in both factors. Which two terms does the product rule give?",
        'dx = dy · (1 + g + x g′)/2: "tanh" g′ = (1 − g²) √(2/π) (1 + 3 · 0.044715 x²), "none" g′ = √(2/π) exp(−x²/2)',
        "notebook 06, section 1, has the slope of tanh and the check by differences; use the same g as in the forward.",
    ),
    difficulty=3,
    section="Hendrycks & Gimpel 2016",
    chapter="Backpropagation",
    place=5,
    mistakes=MISTAKES["gelu_backward"] + GATE_MISTAKES,
)

EXERCISES = [GELU, GELU_BACKWARD]
