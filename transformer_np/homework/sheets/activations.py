"""ReLU and tanh, with their backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes, extended
from .sheet import Sheet

SHEET = Sheet(__file__)


def draw(rng, letters="B T D"):
    """Sizes, and random numbers of that shape on both sides of 0."""
    sizes = draw_sizes(rng, letters)
    return sizes, 1.5 * rng.normal(size=tuple(sizes.values()))


def of_every_rank(rng, call):
    """The cases of a function that works element by element: `call` makes the arguments from an x."""
    sizes, x = draw(rng)
    deep_sizes, deep = draw(rng, "B H T S")
    return sizes, x, [
        Case("", call(x), sizes=sizes),
        Case("x of one axis", call(x[0, 0]), sizes=sizes),
        Case("x of four axes", call(deep), sizes=deep_sizes),
    ]  # fmt: skip


def with_zeros(rng, x):
    """Some entries exactly 0, among others of either sign."""
    x = np.where(rng.random(x.shape) < 0.3, 0.0, x)
    x.flat[:3] = 0.0, 1.0, -1.0
    return x


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def relu_cases(rng):
    sizes, x, cases = of_every_rank(rng, lambda x: (x,))
    return [
        *cases,
        Case("some x exactly 0", (with_zeros(rng, x),), sizes=sizes),
        Case("large x", (20 * x,), sizes=sizes),
    ]


def relu(x):
    return np.where(x > 0, x, 0)


def relu_backward_cases(rng):
    sizes, x, cases = of_every_rank(rng, lambda x: (rng.normal(size=x.shape), x))
    dy = rng.normal(size=x.shape)
    return [
        *cases,
        Case("some x exactly 0", (dy, with_zeros(rng, x)), sizes=sizes),
        Case("the forward's output for x", (dy, F.relu(x)), sizes=sizes),
    ]


def relu_backward(dy, x):
    return np.where(x > 0, dy, 0)


def tanh_cases(rng):
    sizes, x, cases = of_every_rank(rng, lambda x: (x,))
    return [
        *cases,
        Case("some x exactly 0", (with_zeros(rng, x),), sizes=sizes),
        Case("larger x", (4 * x,), sizes=sizes),
        extended(Case("x of ±1,000", (1000 * x,), sizes=sizes)),
    ]


def tanh(x):
    x = np.clip(x, -40, 40)  # beyond, it is 1 to the last digit, and exp overflows
    return (np.exp(x) - np.exp(-x)) / (np.exp(x) + np.exp(-x))


def tanh_backward_cases(rng):
    sizes, x, cases = of_every_rank(rng, lambda x: (rng.normal(size=x.shape), np.tanh(x)))
    saturated = np.where(rng.random(x.shape) < 0.3, np.sign(x), np.tanh(x))
    return [*cases, Case("some y exactly ±1", (rng.normal(size=x.shape), saturated), sizes=sizes)]


def tanh_backward(dy, y):
    return dy * (1 - y**2)


EXERCISES = [
    SHEET.exercise(F.relu, relu, relu_cases, {"y": "..."}),
    SHEET.exercise(F.relu_backward, relu_backward, relu_backward_cases, {"dx": "..."}),
    SHEET.exercise(F.tanh, tanh, tanh_cases, {"y": "..."}),
    SHEET.exercise(F.tanh_backward, tanh_backward, tanh_backward_cases, {"dx": "..."}),
]
