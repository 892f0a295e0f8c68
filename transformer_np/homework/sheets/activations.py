"""The activations, with their backward: ReLU, tanh, GELU, and SiLU, the one in SwiGLU."""

import math  # noqa: F401 - for a mistake

import numpy as np

from ... import functional as F
from ...functional.activations import erf
from ..exercise import Case, draw_sizes, extended
from .draws import Calls
from .sheet import Sheet

SHEET = Sheet(__file__)


def elementwise_cases(rng, function):
    """Calls of a function of single numbers, on both sides of 0, and the cases that all of them have."""
    case = Calls(rng, function, draw_sizes(rng, "B H T D"), "B H T D", "H", x=lambda x: 1.5 * x)
    return case, [case(""), *case.of_other_ranks(), case("some x exactly 0", x=lambda x: with_zeros(rng, x))]


def with_zeros(rng, x):
    """Some entries exactly 0, among others of either sign."""
    x = np.where(rng.random(x.shape) < 0.3, 0.0, x)
    x.flat[:3] = 0.0, 1.0, -1.0
    return x


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def relu_cases(rng):
    case, cases = elementwise_cases(rng, F.relu)
    return [*cases, case("large x", x=lambda x: 30 * x)]


def relu(x):
    return np.where(x > 0, x, 0)


def with_output(rng, cases):
    *others, large = cases
    dy, x = large.arguments
    return [*others, Case("the forward's output for x", (dy, F.relu(x)), sizes=large.sizes)]


def relu_backward(dy, x):
    return np.where(x > 0, dy, 0)


def tanh_cases(rng):
    case, cases = elementwise_cases(rng, F.tanh)
    return [*cases, case("larger x", x=lambda x: 6 * x), extended(case("x of ±1,000", x=lambda x: 1500 * x))]


def tanh(x):
    x = np.clip(x, -40, 40)  # beyond, it is 1 to the last digit, and exp overflows
    return (np.exp(x) - np.exp(-x)) / (np.exp(x) + np.exp(-x))


def with_saturated(rng, cases):
    dy, y = cases[0].arguments
    saturated = np.where(rng.random(y.shape) < 0.3, np.sign(y), y)
    return [*cases, Case("some y exactly ±1", (dy, saturated), sizes=cases[0].sizes)]


def tanh_backward(dy, y):
    return dy * (1 - y**2)


def gelu_cases(rng):
    case, cases = elementwise_cases(rng, F.gelu)
    return [
        *cases,
        extended(case('approximate="none"', approximate="none")),
        case('approximate="tanh" given', approximate="tanh"),
        extended(case('approximate="none" plus x of shape (D,)', without="B H T", approximate="none")),
        case("x from −2.5 to −1.5", x=lambda x: rng.uniform(-2.5, -1.5, x.shape)),
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


def gelu(x, approximate="tanh"):
    g, _ = gate(x, approximate)
    return x / 2 * (1 + g)


def gelu_backward(dy, x, approximate="tanh"):
    g, slope = gate(x, approximate)
    return dy * (1 + g + x * slope) / 2


def silu_cases(rng):
    case, cases = elementwise_cases(rng, F.silu)

    def in_part(x):  # at ±1000 alone, many a wrong slope is right
        x[..., ::2] = 1000 * np.sign(x[..., ::2])
        return x

    return [
        *cases,
        case("x from −4 to −1", x=lambda x: rng.uniform(-4, -1, x.shape)),
        extended(case("some x of ±1000", x=in_part)),
    ]


def silu(x):
    return x * sigmoid(x)


def silu_backward(dy, x):
    gate = sigmoid(x)
    slope = gate + x * gate * (1 - gate)
    return dy * slope


EXERCISES = [
    *SHEET.both(F.relu, relu, relu_backward, relu_cases, then=with_output),
    *SHEET.both(F.tanh, tanh, tanh_backward, tanh_cases, without=["1,000"], then=with_saturated),
    *SHEET.both(F.gelu, gelu, gelu_backward, gelu_cases),
    *SHEET.both(F.silu, silu, silu_backward, silu_cases),
]
