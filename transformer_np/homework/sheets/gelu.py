"""GELU and its backward."""

import numpy as np

from ... import functional as F
from ...functional.activations import erf
from ..exercise import Case, Exercise, Result
from .activations import _of_every_rank, _sigmoid, _with_zeros


def _gelu_cases(rng, backward=False):
    def arguments(x):
        return (rng.normal(size=x.shape), x) if backward else (x,)

    sizes, x, cases = _of_every_rank(rng, arguments)
    return [
        *cases,
        Case('approximate="none"', arguments(x), {"approximate": "none"}, sizes),
        Case('approximate="tanh" given', arguments(x), {"approximate": "tanh"}, sizes),
        Case('approximate="none", x of one axis', arguments(x[0, 0]), {"approximate": "none"}, sizes),
        Case("some x exactly 0", arguments(_with_zeros(rng, x)), sizes=sizes),
    ]


_RIGHT_FACTOR = np.sqrt(2 / np.pi)
_FACTORS = {
    "2/π for √(2/π)": 2 / np.pi,
    "√2/π for √(2/π)": np.sqrt(2) / np.pi,
    "√(π/2) for √(2/π)": np.sqrt(np.pi / 2),
    "√(2π) for √(2/π)": np.sqrt(2 * np.pi),
    "1/√(2π) for √(2/π)": 1 / np.sqrt(2 * np.pi),
    "2/√π for √(2/π)": 2 / np.sqrt(np.pi),
    "0.79 for √(2/π)": 0.79,
    "0.8 for √(2/π)": 0.8,
    "√(2/π) missing": 1.0,
}
_CUBICS = {
    "0.44715 for 0.044715": 0.44715,
    "0.0044715 for 0.044715": 0.0044715,
    "0.04 for 0.044715": 0.04,
    "0.044 for 0.044715": 0.044,
    "0.045 for 0.044715": 0.045,
    "0.047715 for 0.044715": 0.047715,
    "0.04715 for 0.044715": 0.04715,
    "0.044175 for 0.044715": 0.044175,
    "minus before 0.044715 x³": -0.044715,
    "the cubic term missing": 0.0,
    "the cubic term without 0.044715": 1.0,
}
_APPROXIMATIONS = {
    "SiLU": lambda x: x * _sigmoid(x),
    "x σ(1.702 x)": lambda x: x * _sigmoid(1.702 * x),
    "ReLU": lambda x: np.maximum(x, 0),
}


def _which_form(made, approximate):
    """The form of GELU that a student who makes these mistakes computes: "tanh" or "none"."""
    if approximate == "none" and made('"none" does not work'):
        raise AttributeError("module 'numpy' has no attribute 'erf'")
    if approximate is None:  # left out by the caller
        approximate = "none" if made('the default is not "tanh"') else "tanh"
    if made("always the tanh form"):
        return "tanh"
    if made("always the exact form"):
        return "none"
    if made("the two forms exchanged"):
        return {"tanh": "none", "none": "tanh"}[approximate]
    return approximate


def _wrong_gate(made, x, form):
    """g(x) and its derivative, for y = x/2 · (1 + g(x))."""
    if form == "none":
        scale = np.sqrt(0.5)
        if made("erf(x)"):
            scale = 1.0
        if made("erf(x/2)"):
            scale = 0.5
        if made("erf(√2 x)"):
            scale = np.sqrt(2)
        exponent = -x * x if made("exp(−x²)") else -((scale * x) ** 2)
        slope = 2 / np.sqrt(np.pi) * np.exp(-exponent if made("exp(+x²/2)") else exponent)
        if not made("inner derivative missing"):
            slope = slope * scale
        if made("√(2/π) missing in g′"):
            slope = slope / _RIGHT_FACTOR
        if made("φ divided by 2π"):
            slope = slope / np.sqrt(2 * np.pi)
        if made("φ not divided by √(2π)"):
            slope = slope * np.sqrt(2 * np.pi)
        gate = erf(scale * x)
    else:
        factor = next((value for name, value in _FACTORS.items() if made(name)), _RIGHT_FACTOR)
        cubic = next((value for name, value in _CUBICS.items() if made(name)), 0.044715)
        power = 2 if made("x² for x³") else 4 if made("x⁴ for x³") else 3
        first, second = factor, factor * cubic
        if made("√(2/π) before x only"):
            second = cubic
        linear = 0 if made("x missing in tanh") else 1
        gate = np.tanh(linear * first * x + second * x**power)
        inner = linear * first + power * second * x ** (power - 1)
        if made("3 missing in g′"):
            inner = first + second * x**2
        if made("0.044715 missing in g′"):
            inner = first + 3 * factor * x**2
        if made("2 for 3 in g′"):
            inner = first + 2 * second * x**2
        if made("x³ for x² in g′"):
            inner = first + 3 * second * x**3
        if made("cubic term missing in g′"):
            inner = first
        if made("inner derivative missing"):
            inner = 1.0
        if made("√(2/π) missing in g′"):
            inner = inner / factor
        outer = 1 - gate * gate
        if made("1 − g for 1 − g²"):
            outer = 1 - gate
        if made("√(1 − g²) for 1 − g²"):
            outer = np.sqrt(outer)
        if made("1 + g² for 1 − g²"):
            outer = 1 + gate * gate
        if made("1 missing in 1 − g²"):
            outer = -gate * gate
        slope = outer * inner
    return gate, slope


def _wrong_gelu(made, x, approximate=None):
    form = _which_form(made, approximate)
    for name, approximation in _APPROXIMATIONS.items():
        if made(name):
            return approximation(x)
    gate, slope = _wrong_gate(made, x, form)
    if made("φ for Φ"):
        return x * np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)
    if made("1 − g for 1 + g"):
        gate = -gate
    y = gate if made("1 missing in 1 + g") else 1 + gate
    if not made("x missing in front"):
        y = x * y
    if not made("½ missing"):
        y = y / 2
    if made("½ only before the 1"):
        y = x * (0.5 + gate)
    if made("dy/dx instead of y"):
        y = (1 + gate + x * slope) / 2
    return y


# the mistakes that gelu and gelu_backward have in common: those in g and in the choice of the form
_GATE_MISTAKES = {
    "2/π for √(2/π)": "The factor inside the tanh is 2/π; the root is missing, √(2/π) ≈ 0.798.",
    "√2/π for √(2/π)": (
        "The factor inside the tanh is √2/π; the root is over both, √(2/π) = np.sqrt(2 / np.pi) ≈ 0.798."
    ),
    "√(π/2) for √(2/π)": "The factor inside the tanh is √(π/2), upside down. It is √(2/π) ≈ 0.798.",
    "√(2π) for √(2/π)": "The factor inside the tanh is √(2π). It is √(2/π) ≈ 0.798, a quotient.",
    "1/√(2π) for √(2/π)": "The factor inside the tanh is 1/√(2π), half of what it should be. It is √(2/π) ≈ 0.798.",
    "2/√π for √(2/π)": "The factor inside the tanh is 2/√π, without root over the 2. It is √(2/π) ≈ 0.798.",
    "0.79 for √(2/π)": "The factor inside the tanh is cut off to 0.79. It is √(2/π) = 0.79788….",
    "0.8 for √(2/π)": "The factor inside the tanh is rounded to 0.8. It is √(2/π) = 0.79788….",
    "√(2/π) missing": "The factor √(2/π) inside the tanh is missing: tanh(√(2/π) (x + 0.044715 x³)).",
    "√(2/π) before x only": (
        "The factor √(2/π) stands before x only: a bracket is missing, tanh(√(2/π) (x + 0.044715 x³))."
    ),
    "0.44715 for 0.044715": "The constant before x³ is 0.44715, ten times too large: a zero is missing, 0.044715.",
    "0.0044715 for 0.044715": "The constant before x³ is 0.0044715, ten times too small: a zero too many, 0.044715.",
    "0.04 for 0.044715": "The constant before x³ is rounded to 0.04. It is 0.044715.",
    "0.044 for 0.044715": "The constant before x³ is cut off to 0.044. It is 0.044715.",
    "0.045 for 0.044715": "The constant before x³ is rounded to 0.045. It is 0.044715.",
    "0.047715 for 0.044715": "The constant before x³ is 0.047715, a slip in a digit. It is 0.044715.",
    "0.04715 for 0.044715": "The constant before x³ is 0.04715: a digit is missing. It is 0.044715.",
    "0.044175 for 0.044715": "The constant before x³ is 0.044175: two digits are exchanged. It is 0.044715.",
    "minus before 0.044715 x³": "The sign before 0.044715 x³ is wrong: tanh(√(2/π) (x + 0.044715 x³)).",
    "the cubic term missing": "The term 0.044715 x³ inside the tanh is missing: tanh(√(2/π) (x + 0.044715 x³)).",
    "the cubic term without 0.044715": ("The term x³ inside the tanh has no constant: tanh(√(2/π) (x + 0.044715 x³))."),
    "x² for x³": "The power inside the tanh is x² where it is x³ (the cube): tanh(√(2/π) (x + 0.044715 x³)).",
    "x⁴ for x³": "The power inside the tanh is x⁴ where it is x³ (the cube): tanh(√(2/π) (x + 0.044715 x³)).",
    "x missing in tanh": "The term x inside the tanh is missing, only x³ is left: tanh(√(2/π) (x + 0.044715 x³)).",
    "erf(x)": 'In the exact form ("none") it is erf(x) where it has to be erf(x/√2): the division by √2 is missing.',
    "erf(x/2)": 'In the exact form ("none") it is erf(x/2) where it has to be erf(x/√2): the root is missing.',
    "erf(√2 x)": 'In the exact form ("none") it is erf(√2 x) where it has to be erf(x/√2): divide by √2.',
    "always the tanh form": (
        "It does not use `approximate`: it always computes the tanh form. "
        'With "none" it is to be exact, with erf(x/√2).'
    ),
    "always the exact form": (
        "It does not use `approximate`: it always computes the exact form, with erf. "
        'With "tanh" it is to be the approximation of GPT-2.'
    ),
    "the two forms exchanged": (
        'The two forms are exchanged: "tanh" is the approximation with tanh, '
        '"none" (no approximation) the exact one with erf.'
    ),
    'the default is not "tanh"': (
        'Without `approximate` it computes the exact form. The default is approximate="tanh", the form of GPT-2.'
    ),
    '"none" does not work': (
        'With approximate="none" it does not work. That is the exact form, with erf(x/√2). NumPy has no erf, '
        "but math.erf takes one number at a time, and np.vectorize makes it take arrays."
    ),
}

GELU = Exercise(
    F.gelu,
    (Result("y"),),
    _gelu_cases,
    {
        "½ missing": "The factor ½ is missing: y = x/2 · (1 + g), which goes to x for large x; here it goes to 2x.",
        "1 missing in 1 + g": "The 1 in the bracket is missing: y = x/2 · (1 + g); here it is x/2 · g.",
        "½ only before the 1": "The factor ½ stands before the 1 only, x (½ + g): it is before both, x · ½ (1 + g).",
        "1 − g for 1 + g": (
            "The sign in the bracket is wrong: y = x/2 · (1 + g); here it is x/2 · (1 − g), which is 0 for large x."
        ),
        "x missing in front": "The factor x in front is missing: y = x · Φ(x); here it is the weight Φ(x) alone.",
        "φ for Φ": (
            "This is x φ(x), with the density exp(−x²/2)/√(2π). It is x Φ(x), with the distribution function, the "
            "integral of φ: between 0 and 1, rising."
        ),
        "x σ(1.702 x)": (
            "This is x · sigmoid(1.702 x), a coarser approximation of GELU. Here it is the one with tanh, or the exact "
            "one with erf."
        ),
        "SiLU": "This is x · sigmoid(x), SiLU or swish. GELU is x Φ(x), with the normal distribution function.",
        "ReLU": "This is the ReLU, max(0, x). GELU is smooth: x Φ(x), with the normal distribution function.",
        "dy/dx instead of y": "This is the derivative of GELU, (1 + g + x g′)/2. The forward is x/2 · (1 + g).",
        **_GATE_MISTAKES,
    },
    _wrong_gelu,
    (
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
)


def _wrong_gelu_backward(made, dy, x, approximate=None):
    form = _which_form(made, approximate)
    sigma, of_1702 = _sigmoid(x), _sigmoid(1.702 * x)
    if made("the slope of SiLU"):
        return dy * (sigma + x * sigma * (1 - sigma))
    if made("the slope of x σ(1.702 x)"):
        return dy * (of_1702 + 1.702 * x * of_1702 * (1 - of_1702))
    if made("the slope of the ReLU"):
        return dy * (x > 0)
    gate, slope = _wrong_gate(made, x, form)
    if made("the forward for the slope"):
        return dy * x * (1 + gate) / 2
    first = gate if made("1 missing in 1 + g") else 1 + gate
    second = slope if made("x missing before g′") else x * slope
    if made("x² before g′"):
        second = x * x * slope
    if made("x g′ subtracted"):
        second = -second
    if made("x g′ missing"):
        second = 0 * x
    if made("only x g′"):
        first = 0 * x
    if not made("½ missing") and not made("½ missing before 1 + g"):
        first = first / 2
    if not made("½ missing") and not made("½ missing before x g′"):
        second = second / 2
    dx = first + second
    return (
        dx
        if made("dy forgotten")
        else first + dy * second
        if made("dy before x g′ only")
        else (dy * first + second if made("dy before 1 + g only") else dy * dx)
    )


GELU_BACKWARD = Exercise(
    F.gelu_backward,
    (Result("dx"),),
    lambda rng: _gelu_cases(rng, backward=True),
    {
        "x g′ missing": (
            "The second term of the product rule is missing: x stands in g too. dx = dy · (1 + g + x g′)/2; here it is "
            "dy · (1 + g)/2."
        ),
        "only x g′": (
            "The first term of the product rule is missing: x stands in front too. dx = dy · (1 + g + x g′)/2; here it "
            "is dy · x g′/2."
        ),
        "x missing before g′": (
            "The x before g′ is missing: dx = dy · (1 + g + x g′)/2; here it is dy · (1 + g + g′)/2."
        ),
        "x² before g′": "There is an x too much before g′: dx = dy · (1 + g + x g′)/2; here it is x² g′.",
        "x g′ subtracted": (
            "The sign of x g′ is wrong: the product rule adds the two terms, dx = dy · (1 + g + x g′)/2."
        ),
        "1 missing in 1 + g": "The 1 is missing: dx = dy · (1 + g + x g′)/2; here it is dy · (g + x g′)/2.",
        "½ missing": "The factor ½ is missing: dx = dy · (1 + g + x g′)/2; here it goes to 2 dy for large x.",
        "½ missing before 1 + g": (
            "The factor ½ is missing before 1 + g: dx = dy · (1 + g + x g′)/2, half of both terms."
        ),
        "½ missing before x g′": (
            "The factor ½ is missing before x g′: dx = dy · (1 + g + x g′)/2, half of both terms. (In the exact form "
            "that is 2φ(x) for φ(x).)"
        ),
        "dy forgotten": "It returns the slope alone. The chain rule multiplies it by dy: dx = dy · (1 + g + x g′)/2.",
        "dy before x g′ only": "dy stands before x g′ only: a bracket is missing, dx = dy · (1 + g + x g′)/2.",
        "dy before 1 + g only": "dy stands before 1 + g only: a bracket is missing, dx = dy · (1 + g + x g′)/2.",
        "inner derivative missing": (
            "In g′ the derivative of the inside is missing (the chain rule): √(2/π) (1 + 3 · 0.044715 x²) in the tanh "
            "form, 1/√2 in the exact one."
        ),
        "√(2/π) missing in g′": (
            "The factor √(2/π) is missing in g′: (1 − g²) · √(2/π) (1 + 3 · 0.044715 x²), or √(2/π) exp(−x²/2) in the "
            "exact form."
        ),
        "3 missing in g′": ("In g′ the 3 is missing: the derivative of 0.044715 x³ is 3 · 0.044715 x²."),
        "0.044715 missing in g′": (
            "In g′ the constant is missing: the derivative of 0.044715 x³ is 3 · 0.044715 x², not 3 x²."
        ),
        "exp(+x²/2)": (
            "In the exact form the density is taken with exp(+x²/2), which grows without end: the minus is missing, "
            "φ(x) = exp(−x²/2)/√(2π). (In Python −x ** 2 is −(x²), but (−x) ** 2 is +x².)"
        ),
        "2 for 3 in g′": "In g′ the factor is 2 where it is 3: the derivative of 0.044715 x³ is 3 · 0.044715 x².",
        "x³ for x² in g′": "In g′ the power is not lowered: the derivative of 0.044715 x³ is 3 · 0.044715 x², not x³.",
        "cubic term missing in g′": (
            "In g′ the derivative of the cubic term is missing: that of x + 0.044715 x³ is 1 + 3 · 0.044715 x², not 1."
        ),
        "1 − g for 1 − g²": "The slope of tanh is 1 − g², with the square; here it is 1 − g.",
        "√(1 − g²) for 1 − g²": (
            "The slope of tanh is 1 − g², which is 1/cosh², with the square; here it is the root of that, 1/cosh."
        ),
        "1 + g² for 1 − g²": "The slope of tanh is 1 − g²; here it is 1 + g²: a sign is wrong.",
        "1 missing in 1 − g²": "The slope of tanh is 1 − g²; here it is −g²: the 1 is missing.",
        "exp(−x²)": (
            "In the exact form the density is taken with exp(−x²), as for erf(x). The derivative of erf(x/√2) has "
            "exp(−x²/2): the ½ in the exponent is missing."
        ),
        "φ divided by 2π": (
            "In the exact form the density is divided by 2π: the root is missing, φ(x) = exp(−x²/2)/√(2π)."
        ),
        "φ not divided by √(2π)": (
            "In the exact form the density is not divided by √(2π): φ(x) = exp(−x²/2)/√(2π), and g′ = 2 φ(x)."
        ),
        "the forward for the slope": (
            "dy is multiplied by the forward, x/2 · (1 + g), instead of by its slope, (1 + g + x g′)/2."
        ),
        "the slope of SiLU": "This is the slope of x · sigmoid(x), SiLU. That of GELU is (1 + g + x g′)/2.",
        "the slope of x σ(1.702 x)": (
            "This is the slope of x · sigmoid(1.702 x), a coarser approximation. Here it is the one with tanh, or the "
            "exact one with erf."
        ),
        "the slope of the ReLU": (
            "dy passes where x > 0, as through a ReLU. GELU is smooth: dx = dy · (1 + g + x g′)/2."
        ),
        **_GATE_MISTAKES,
    },
    _wrong_gelu_backward,
    (
        "y = x/2 · (1 + g(x)) is a product, and x is in both factors. Which two terms does the product rule give?",
        'dx = dy · (1 + g + x g′)/2: "tanh" g′ = (1 − g²) √(2/π) (1 + 3 · 0.044715 x²), "none" g′ = √(2/π) exp(−x²/2)',
        "notebook 06, section 1, has the slope of tanh and the check by differences; use the same g as in the forward.",
    ),
    difficulty=3,
    section="Hendrycks & Gimpel 2016",
    chapter="Backpropagation",
    place=5,
)


EXERCISES = [GELU, GELU_BACKWARD]
