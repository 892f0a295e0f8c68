"""GELU and its backward."""

import numpy as np

from ... import functional as F
from ...functional.activations import erf
from ..exercise import Case, Exercise, Result, extended
from .activations import of_every_rank, sigmoid, with_zeros  # noqa: F401 - for the mistakes


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
GATE_MISTAKES = """
- 2/π for √(2/π):  factor = np.sqrt(2 / np.pi) -> factor = 2 / np.pi
  The factor inside the tanh is 2/π; the root is missing, √(2/π) ≈ 0.798.
- √2/π for √(2/π):  factor = np.sqrt(2 / np.pi) -> factor = np.sqrt(2) / np.pi
  The factor inside the tanh is √2/π; the root is over both, √(2/π) = np.sqrt(2 / np.pi) ≈ 0.798.
- √(π/2) for √(2/π):  factor = np.sqrt(2 / np.pi) -> factor = np.sqrt(np.pi / 2)
  The factor inside the tanh is √(π/2), upside down. It is √(2/π) ≈ 0.798.
- √(2π) for √(2/π):  factor = np.sqrt(2 / np.pi) -> factor = np.sqrt(2 * np.pi)
  The factor inside the tanh is √(2π). It is √(2/π) ≈ 0.798, a quotient.
- 1/√(2π) for √(2/π):  factor = np.sqrt(2 / np.pi) -> factor = 1 / np.sqrt(2 * np.pi)
  The factor inside the tanh is 1/√(2π), half of what it should be. It is √(2/π) ≈ 0.798.
- 2/√π for √(2/π):  factor = np.sqrt(2 / np.pi) -> factor = 2 / np.sqrt(np.pi)
  The factor inside the tanh is 2/√π, without root over the 2. It is √(2/π) ≈ 0.798.
- 0.79 for √(2/π):  factor = np.sqrt(2 / np.pi) -> factor = 0.79
  The factor inside the tanh is cut off to 0.79. It is √(2/π) = 0.79788….
- 0.8 for √(2/π):  factor = np.sqrt(2 / np.pi) -> factor = 0.8
  The factor inside the tanh is rounded to 0.8. It is √(2/π) = 0.79788….
- √(2/π) missing:  factor = np.sqrt(2 / np.pi) -> factor = 1
  The factor √(2/π) inside the tanh is missing: tanh(√(2/π) (x + 0.044715 x³)).
- √(2/π) before x only:
    factor * (x + cubic * x**3) -> factor * x + cubic * x**3
    factor * (1 + 3 * cubic * x**2) -> (factor + 3 * cubic * x**2)
  The factor √(2/π) stands before x only: a bracket is missing, tanh(√(2/π) (x + 0.044715 x³)).
- 0.44715 for 0.044715:  cubic = 0.044715 -> cubic = 0.44715
  The constant before x³ is 0.44715, ten times too large: a zero is missing, 0.044715.
- 0.0044715 for 0.044715:  cubic = 0.044715 -> cubic = 0.0044715
  The constant before x³ is 0.0044715, ten times too small: a zero too many, 0.044715.
- 0.04 for 0.044715:  cubic = 0.044715 -> cubic = 0.04
  The constant before x³ is rounded to 0.04. It is 0.044715.
- 0.044 for 0.044715:  cubic = 0.044715 -> cubic = 0.044
  The constant before x³ is cut off to 0.044. It is 0.044715.
- 0.0447 for 0.044715:  cubic = 0.044715 -> cubic = 0.0447
  The constant before x³ is rounded to 0.0447. It is 0.044715.
- 0.045 for 0.044715:  cubic = 0.044715 -> cubic = 0.045
  The constant before x³ is rounded to 0.045. It is 0.044715.
- 0.047715 for 0.044715:  cubic = 0.044715 -> cubic = 0.047715
  The constant before x³ is 0.047715, a slip in a digit. It is 0.044715.
- 0.04715 for 0.044715:  cubic = 0.044715 -> cubic = 0.04715
  The constant before x³ is 0.04715: a digit is missing. It is 0.044715.
- 0.044175 for 0.044715:  cubic = 0.044715 -> cubic = 0.044175
  The constant before x³ is 0.044175: two digits are exchanged. It is 0.044715.
- minus before 0.044715 x³:  cubic = 0.044715 -> cubic = -0.044715
  The sign before 0.044715 x³ is wrong: tanh(√(2/π) (x + 0.044715 x³)).
- the cubic term missing:  cubic = 0.044715 -> cubic = 0
  The term 0.044715 x³ inside the tanh is missing: tanh(√(2/π) (x + 0.044715 x³)).
- the cubic term without 0.044715:  cubic = 0.044715 -> cubic = 1
  The term x³ inside the tanh has no constant: tanh(√(2/π) (x + 0.044715 x³)).
- x² for x³:
    cubic * x**3 -> cubic * x**2
    3 * cubic * x**2 -> 2 * cubic * x
  The power inside the tanh is x² where it is x³ (the cube): tanh(√(2/π) (x + 0.044715 x³)).
- x⁴ for x³:
    cubic * x**3 -> cubic * x**4
    3 * cubic * x**2 -> 4 * cubic * x**3
  The power inside the tanh is x⁴ where it is x³ (the cube): tanh(√(2/π) (x + 0.044715 x³)).
- x missing in tanh:
    x + cubic * x**3 -> cubic * x**3
    1 + 3 * cubic * x**2 -> 3 * cubic * x**2
  The term x inside the tanh is missing, only x³ is left: tanh(√(2/π) (x + 0.044715 x³)).
- erf(x):  scale = 1 / np.sqrt(2) -> scale = 1
  In the exact form ("none") it is erf(x). It must be erf(x/√2): the division by √2 is missing.
- erf(x/2):  scale = 1 / np.sqrt(2) -> scale = 1 / 2
  In the exact form ("none") it is erf(x/2). It must be erf(x/√2): the root is missing.
- erf(√2 x):  scale = 1 / np.sqrt(2) -> scale = np.sqrt(2)
  In the exact form ("none") it is erf(√2 x). It must be erf(x/√2): divide by √2.
- always the tanh form:
    if approximate == "none": -> approximate = "tanh"; if approximate == "none":
  It does not use `approximate`: it always computes the tanh form. With "none" it must be exact, with erf(x/√2).
- always the exact form:
    if approximate == "none": -> approximate = "none"; if approximate == "none":
  It does not use `approximate`: it always computes the exact form, with erf. With "tanh" it must be the approximation
  of GPT-2.
- the two forms exchanged:  approximate == "none" -> approximate == "tanh"
  The two forms are exchanged: "tanh" is the approximation with tanh, "none" (no approximation) the exact one with erf.
- the default is not "tanh":  approximate="tanh" -> approximate="none"
  Without `approximate` it computes the exact form. The default is approximate="tanh", the form of GPT-2.
- "none" does not work:  erf(scale * x) -> np.erf(scale * x)
  With approximate="none" it does not work. That is the exact form, with erf(x/√2). NumPy has no erf, but math.erf takes
  one number at a time, and np.vectorize makes it take arrays.
"""


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
    mistakes="""
- ½ missing:  x / 2 * (1 + g) -> x * (1 + g)
  The factor ½ is missing: y = x/2 · (1 + g), which goes to x for large x; here it goes to 2x.
- 1 missing in 1 + g:  1 + g -> g
  The 1 in the bracket is missing: y = x/2 · (1 + g); here it is x/2 · g.
- ½ only before the 1:  x / 2 * (1 + g) -> x * (1 / 2 + g)
  The factor ½ stands before the 1 only, x (½ + g): it is before both, x · ½ (1 + g).
- 1 − g for 1 + g:  1 + g -> 1 - g
  The sign in the bracket is wrong: y = x/2 · (1 + g); here it is x/2 · (1 − g), which is 0 for large x.
- x missing in front:  x / 2 -> 1 / 2
  The factor x in front is missing: y = x · Φ(x); here it is the weight Φ(x) alone.
- φ for Φ:  x / 2 * (1 + g) -> x * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
  This is x φ(x), with the density exp(−x²/2)/√(2π). It is x Φ(x), with the distribution function, the integral of φ:
  between 0 and 1, rising.
- x σ(1.702 x):  x / 2 * (1 + g) -> x * sigmoid(1.702 * x)
  This is x · sigmoid(1.702 x), a coarser approximation of GELU. Here it is the one with tanh, or the exact one with
  erf.
- SiLU:  x / 2 * (1 + g) -> x * sigmoid(x)
  This is x · sigmoid(x), SiLU or swish. GELU is x Φ(x), with the normal distribution function.
- ReLU:  x / 2 * (1 + g) -> np.maximum(x, 0)
  This is the ReLU, max(0, x). GELU is smooth: x Φ(x), with the normal distribution function.
- dy/dx instead of y:
    g, _ = -> g, slope =
    x / 2 * (1 + g) -> (1 + g + x * slope) / 2
  This is the derivative of GELU, (1 + g + x g′)/2. The forward is x/2 · (1 + g).
"""
    + GATE_MISTAKES,
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
    mistakes="""
- x g′ missing:  1 + g + x * slope -> 1 + g
  The second term of the product rule is missing: x stands in g too. dx = dy · (1 + g + x g′)/2; here it is dy · (1 +
  g)/2.
- only x g′:  1 + g + x * slope -> x * slope
  The first term of the product rule is missing: x stands in front too. dx = dy · (1 + g + x g′)/2; here it is dy · x
  g′/2.
- x missing before g′:  x * slope -> slope
  The x before g′ is missing: dx = dy · (1 + g + x g′)/2; here it is dy · (1 + g + g′)/2.
- x² before g′:  x * slope -> x**2 * slope
  There is an x too much before g′: dx = dy · (1 + g + x g′)/2; here it is x² g′.
- x g′ subtracted:  1 + g + x * slope -> 1 + g - x * slope
  The sign of x g′ is wrong: the product rule adds the two terms, dx = dy · (1 + g + x g′)/2.
- 1 missing in 1 + g:  1 + g + x -> g + x
  The 1 is missing: dx = dy · (1 + g + x g′)/2; here it is dy · (g + x g′)/2.
- ½ missing:  (1 + g + x * slope) / 2 -> (1 + g + x * slope)
  The factor ½ is missing: dx = dy · (1 + g + x g′)/2; here it goes to 2 dy for large x.
- ½ missing before 1 + g:  (1 + g + x * slope) / 2 -> (1 + g + x * slope / 2)
  The factor ½ is missing before 1 + g: dx = dy · (1 + g + x g′)/2, half of both terms.
- ½ missing before x g′:  (1 + g + x * slope) / 2 -> ((1 + g) / 2 + x * slope)
  The factor ½ is missing before x g′: dx = dy · (1 + g + x g′)/2, half of both terms. (In the exact form that is 2φ(x)
  for φ(x).)
- dy forgotten:  dy * (1 + g -> (1 + g
  It returns the slope alone. The chain rule multiplies it by dy: dx = dy · (1 + g + x g′)/2.
- dy before x g′ only:  dy * (1 + g + x * slope) -> (1 + g + dy * x * slope)
  dy stands before x g′ only: a bracket is missing, dx = dy · (1 + g + x g′)/2.
- dy before 1 + g only:  dy * (1 + g + x * slope) -> (dy * (1 + g) + x * slope)
  dy stands before 1 + g only: a bracket is missing, dx = dy · (1 + g + x g′)/2.
- inner derivative missing:
    2 / np.sqrt(np.pi) * np.exp(-((scale * x) ** 2)) * scale -> 2 / np.sqrt(np.pi) * np.exp(-((scale * x) ** 2))
    factor * (1 + 3 * cubic * x**2) -> 1
  In g′ the derivative of the inside is missing (the chain rule): √(2/π) (1 + 3 · 0.044715 x²) in the tanh form, 1/√2 in
  the exact one.
- √(2/π) missing in g′:
    2 / np.sqrt(np.pi) * np.exp(-((scale * x) ** 2)) * scale -> np.exp(-((scale * x) ** 2))
    factor * (1 + 3 -> (1 + 3
  The factor √(2/π) is missing in g′: (1 − g²) · √(2/π) (1 + 3 · 0.044715 x²), or √(2/π) exp(−x²/2) in the exact form.
- 3 missing in g′:  3 * cubic * x**2 -> cubic * x**2
  In g′ the 3 is missing: the derivative of 0.044715 x³ is 3 · 0.044715 x².
- 0.044715 missing in g′:  3 * cubic * x**2 -> 3 * x**2
  In g′ the constant is missing: the derivative of 0.044715 x³ is 3 · 0.044715 x², not 3 x².
- exp(+x²/2):  np.exp(-((scale * x) ** 2)) -> np.exp((scale * x) ** 2)
  In the exact form the density is taken with exp(+x²/2), which grows without end: the minus is missing, φ(x) =
  exp(−x²/2)/√(2π). (In Python −x ** 2 is −(x²), but (−x) ** 2 is +x².)
- 2 for 3 in g′:  3 * cubic * x**2 -> 2 * cubic * x**2
  In g′ the factor is 2 where it is 3: the derivative of 0.044715 x³ is 3 · 0.044715 x².
- x³ for x² in g′:  3 * cubic * x**2 -> 3 * cubic * x**3
  In g′ the power is not lowered: the derivative of 0.044715 x³ is 3 · 0.044715 x², not x³.
- cubic term missing in g′:  factor * (1 + 3 * cubic * x**2) -> factor
  In g′ the derivative of the cubic term is missing: that of x + 0.044715 x³ is 1 + 3 · 0.044715 x², not 1.
- 1 − g for 1 − g²:  1 - g**2 -> 1 - g
  The slope of tanh is 1 − g², with the square; here it is 1 − g.
- √(1 − g²) for 1 − g²:  (1 - g**2) -> np.sqrt(1 - g**2)
  The slope of tanh is 1 − g², which is 1/cosh², with the square; here it is the root of that, 1/cosh.
- 1 + g² for 1 − g²:  1 - g**2 -> 1 + g**2
  The slope of tanh is 1 − g²; here it is 1 + g²: a sign is wrong.
- 1 missing in 1 − g²:  (1 - g**2) -> (-(g**2))
  The slope of tanh is 1 − g²; here it is −g²: the 1 is missing.
- exp(−x²):  np.exp(-((scale * x) ** 2)) -> np.exp(-(x**2))
  In the exact form the density is taken with exp(−x²), as for erf(x). The derivative of erf(x/√2) has exp(−x²/2): the ½
  in the exponent is missing.
- φ divided by 2π:  2 / np.sqrt(np.pi) -> 2 / np.sqrt(np.pi) / np.sqrt(2 * np.pi)
  In the exact form the density is divided by 2π: the root is missing, φ(x) = exp(−x²/2)/√(2π).
- φ not divided by √(2π):  2 / np.sqrt(np.pi) -> 2 * np.sqrt(2)
  In the exact form the density is not divided by √(2π): φ(x) = exp(−x²/2)/√(2π), and g′ = 2 φ(x).
- the forward for the slope:  (1 + g + x * slope) / 2 -> x / 2 * (1 + g)
  dy is multiplied by the forward, x/2 · (1 + g), instead of by its slope, (1 + g + x g′)/2.
- the slope of SiLU:  (1 + g + x * slope) / 2 -> sigmoid(x) * (1 + x * (1 - sigmoid(x)))
  This is the slope of x · sigmoid(x), SiLU. That of GELU is (1 + g + x g′)/2.
- the slope of x σ(1.702 x):
    (1 + g + x * slope) / 2 -> sigmoid(1.702 * x) * (1 + 1.702 * x * (1 - sigmoid(1.702 * x)))
  This is the slope of x · sigmoid(1.702 x), a coarser approximation. Here it is the one with tanh, or the exact one
  with erf.
- the slope of the ReLU:  (1 + g + x * slope) / 2 -> (x > 0)
  dy passes where x > 0, as through a ReLU. GELU is smooth: dx = dy · (1 + g + x g′)/2.
"""
    + GATE_MISTAKES,
)

EXERCISES = [GELU, GELU_BACKWARD]
