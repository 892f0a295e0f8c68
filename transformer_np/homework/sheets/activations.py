"""Activations and dropout, and their backwards."""

import numpy as np

from ... import functional as F
from ...special import erf
from ..exercise import Case, Exercise, Result, draw_sizes


def _draw(rng, letters="B T D"):
    """Sizes, and random numbers of that shape on both sides of 0."""
    sizes = draw_sizes(rng, letters)
    return sizes, 1.5 * rng.normal(size=tuple(sizes.values()))


def _of_every_rank(rng, call):
    """The cases of a function that works element by element: `call` makes the arguments from an x."""
    sizes, x = _draw(rng)
    deep_sizes, deep = _draw(rng, "B H T S")
    return sizes, x, [
        Case("", call(x), sizes=sizes),
        Case("x of one axis", call(x[0, 0]), sizes=sizes),
        Case("x of four axes", call(deep), sizes=deep_sizes),
    ]  # fmt: skip


def _with_zeros(rng, x):
    """Some entries exactly 0, among others of either sign."""
    x = np.where(rng.random(x.shape) < 0.3, 0.0, x)
    x.flat[:3] = 0.0, 1.0, -1.0
    return x


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


# --- relu -----------------------------------------------------------------------------------------------------------


def _relu_cases(rng):
    sizes, x, cases = _of_every_rank(rng, lambda x: (x,))
    return [
        *cases,
        Case("some x exactly 0", (_with_zeros(rng, x),), sizes=sizes),
        Case("large x", (20 * x,), sizes=sizes),
    ]


_RELU_VARIANTS = {
    "nothing cut off": lambda x: x.copy(),
    "the negative numbers kept": lambda x: np.minimum(x, 0),
    "the absolute value": np.abs,
    "the sign turned first": lambda x: np.maximum(-x, 0),
    "leaky": lambda x: np.where(x > 0, x, 0.01 * x),
    "leaky, slope 0.1": lambda x: np.where(x > 0, x, 0.1 * x),
    "leaky, slope 0.2": lambda x: np.where(x > 0, x, 0.2 * x),
    "ELU": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "GELU": F.gelu,
    "exact GELU": lambda x: F.gelu(x, "none"),
    "SiLU": lambda x: x * _sigmoid(x),
    "softplus": lambda x: np.logaddexp(0, x),
    "the sigmoid": _sigmoid,
    "tanh": np.tanh,
    "squared": lambda x: np.maximum(x, 0) ** 2,
    "cut off at 1 too": lambda x: np.clip(x, 0, 1),
    "cut off at 6 too": lambda x: np.clip(x, 0, 6),
    "negative numbers turned to 1": lambda x: np.where(x > 0, x, 1),
    "the Boolean mask": lambda x: x > 0,
    "0 and 1": lambda x: (x > 0).astype(float),
    "np.max for np.maximum": lambda x: np.max(x, 0),
    "negative numbers left out": lambda x: x[x > 0],
}


def _wrong_relu(made, x):
    return next((f for name, f in _RELU_VARIANTS.items() if made(name)), lambda x: np.where(x > 0, x, 0))(x)


RELU = Exercise(
    F.relu,
    (Result("y"),),
    _relu_cases,
    {
        "nothing cut off": "x comes out as it was (the identity): negative numbers have to become 0, y = max(0, x).",
        "the negative numbers kept": (
            "It keeps the negative numbers and sets the positive ones to 0: min(0, x) for max(0, x)."
        ),
        "the absolute value": "Negative numbers turn positive, |x|. They have to become 0: y = max(0, x).",
        "the sign turned first": "It is max(0, −x): the sign of x is turned. y = max(0, x).",
        "leaky": "This is a leaky ReLU: 0.01 of negative numbers passes. They have to become 0: y = max(0, x).",
        "leaky, slope 0.1": (
            "This is a leaky ReLU: 0.1 of negative numbers passes. They have to become 0: y = max(0, x)."
        ),
        "leaky, slope 0.2": (
            "This is a leaky ReLU: 0.2 of negative numbers passes. They have to become 0: y = max(0, x)."
        ),
        "ELU": "This is the ELU, exp(x) − 1 for negative x. Negative numbers have to become 0: y = max(0, x).",
        "GELU": "This is GELU (the tanh form). The ReLU has a corner at 0: y = max(0, x).",
        "exact GELU": "This is GELU (with erf). The ReLU has a corner at 0: y = max(0, x).",
        "SiLU": "This is x · sigmoid(x), SiLU or swish. The ReLU has a corner at 0: y = max(0, x).",
        "softplus": "This is softplus, log(1 + exp(x)), a smooth ReLU. The ReLU has a corner at 0: y = max(0, x).",
        "the sigmoid": (
            "This is the sigmoid, 1/(1 + exp(−x)). The ReLU lets positive numbers pass as they are: y = max(0, x)."
        ),
        "tanh": "This is tanh. The ReLU lets positive numbers pass as they are: y = max(0, x).",
        "squared": "The result is squared, max(0, x)². Positive numbers pass as they are: y = max(0, x).",
        "cut off at 1 too": "It cuts off above 1 too. Positive numbers pass as they are, however large: y = max(0, x).",
        "cut off at 6 too": (
            "It cuts off above 6 too (ReLU6). Positive numbers pass as they are, however large: y = max(0, x)."
        ),
        "negative numbers turned to 1": "Negative numbers become 1. They have to become 0: y = max(0, x).",
        "the Boolean mask": (
            "It returns the mask x > 0, Boolean. That says where x passes; y is x itself there, and 0 elsewhere."
        ),
        "0 and 1": "It returns 1 where x > 0 and 0 elsewhere, a step. y is x itself where x > 0, and 0 elsewhere.",
        "np.max for np.maximum": (
            "`np.max(x, 0)` is the largest number along axis 0, one axis fewer. The larger of each number and 0, "
            "element by element, is np.maximum(x, 0)."
        ),
        "negative numbers left out": (
            "The negative numbers are left out (`x[x > 0]`), and what is left has one axis. y has the shape of x, with "
            "0 in their places."
        ),
    },
    _wrong_relu,
    (
        "What becomes of a positive number, what of a negative one?",
        "y = max(0, x), element by element",
        "notebook 04, sections 1 and 3; np.maximum (not np.max), or np.where.",
    ),
    difficulty=1,
    section="§7",
)


def _relu_backward_cases(rng):
    sizes, x, cases = _of_every_rank(rng, lambda x: (rng.normal(size=x.shape), x))
    dy = rng.normal(size=x.shape)
    return [
        *cases,
        Case("some x exactly 0", (dy, _with_zeros(rng, x)), sizes=sizes),
        Case("the forward's output for x", (dy, F.relu(x)), sizes=sizes),
    ]


_RELU_BACKWARD_VARIANTS = {
    "gradient 1 at 0": lambda dy, x: dy * (x >= 0),
    "gradient ½ at 0": lambda dy, x: dy * (0.5 + 0.5 * np.sign(x)),
    "everything passes": lambda dy, x: dy.copy(),
    "dy forgotten": lambda dy, x: (x > 0).astype(float),
    "the Boolean mask": lambda dy, x: x > 0,
    "mask from dy": lambda dy, x: dy * (dy > 0),
    "mask from dy and x": lambda dy, x: dy * ((dy > 0) & (x > 0)),
    "mask from dy · x": lambda dy, x: dy * (dy * x > 0),
    "mask where x > dy": lambda dy, x: dy * (x > dy),
    "mask where x > 1": lambda dy, x: dy * (x > 1),
    "one mask for a whole row": lambda dy, x: dy * (x.sum(axis=-1, keepdims=True) > 0),
    "mask inverted": lambda dy, x: dy * (x <= 0),
    "mask inverted, 0 not passing": lambda dy, x: dy * (x < 0),
    "multiplied by the forward's output": lambda dy, x: dy * np.maximum(x, 0),
    "multiplied by x": lambda dy, x: dy * x,
    "the forward again": lambda dy, x: np.maximum(x, 0),
    "x where dy is to pass": lambda dy, x: np.where(dy > 0, x, 0),
    "the slope of the absolute value": lambda dy, x: dy * np.sign(x),
    "leaky": lambda dy, x: dy * np.where(x > 0, 1, 0.01),
    "leaky, slope 0.1": lambda dy, x: dy * np.where(x > 0, 1, 0.1),
    "leaky, slope 0.2": lambda dy, x: dy * np.where(x > 0, 1, 0.2),
    "1 where x is negative": lambda dy, x: np.where(x > 0, dy, 1),
    "1 where x is positive": lambda dy, x: np.where(x > 0, 1, dy),
    "mask added": lambda dy, x: dy + (x > 0),
    "summed over the batch": lambda dy, x: (dy * (x > 0)).sum(axis=0),
    "entries left out": lambda dy, x: dy[x > 0],
}


def _wrong_relu_backward(made, dy, x):
    right = _RELU_BACKWARD_VARIANTS.items()
    return next((f for name, f in right if made(name)), lambda dy, x: np.where(x > 0, dy, 0))(dy, x)


RELU_BACKWARD = Exercise(
    F.relu_backward,
    (Result("dx"),),
    _relu_backward_cases,
    {
        "gradient 1 at 0": (
            "At x = 0 exactly the gradient passes: x ≥ 0 (or nothing but x < 0 set to 0). It is taken as 0 there, x > "
            "0. With the forward's output for x, which is 0 wherever the ReLU cut off, everything would pass."
        ),
        "gradient ½ at 0": "At x = 0 exactly half the gradient passes. It is taken as 0 there: dy where x > 0, else 0.",
        "everything passes": (
            "dy is passed on whole: the mask is missing. Where the ReLU cut off, x did not reach the loss: dx = dy "
            "where x > 0, else 0."
        ),
        "dy forgotten": (
            "It returns the slope alone, 1 where x > 0 and 0 elsewhere. The chain rule multiplies it by dy: dx = dy · "
            "(x > 0)."
        ),
        "the Boolean mask": (
            "It returns the mask x > 0, Boolean. The chain rule multiplies it by dy: dx = dy · (x > 0)."
        ),
        "mask from dy · x": (
            "The mask is taken from the product, dy · x > 0, where dy and x have the same sign. The sign of dy has no "
            "part in it: x > 0."
        ),
        "mask where x > dy": "x is compared with dy. The ReLU compared it with 0: dx = dy where x > 0, else 0.",
        "mask where x > 1": "x is compared with 1. The ReLU compared it with 0: dx = dy where x > 0, else 0.",
        "one mask for a whole row": (
            "The mask is one for a whole row, from the sign of its sum. Every entry is looked at by itself: x > 0."
        ),
        "mask from dy": (
            "The mask is taken from dy: where dy > 0 (the ReLU of the gradient). What the forward let pass is decided "
            "by x > 0; a gradient may have either sign."
        ),
        "mask from dy and x": (
            "The gradient passes only where x > 0 and dy > 0 too. x alone decides; a gradient may have either sign."
        ),
        "mask inverted": "The mask is the wrong way around: dy passes where x ≤ 0. It passes where x > 0.",
        "mask inverted, 0 not passing": (
            "The mask is the wrong way around: dy passes where x < 0. It passes where x > 0."
        ),
        "multiplied by the forward's output": (
            "dy is multiplied by max(0, x), the forward's output, instead of by its slope: 1 where x > 0, else 0."
        ),
        "multiplied by x": "dy is multiplied by x instead of by the slope of the ReLU: 1 where x > 0, else 0.",
        "the forward again": (
            "It returns max(0, x), the forward, without dy. The slope is 1 where x > 0: dx = dy · (x > 0)."
        ),
        "x where dy is to pass": "dy and x are exchanged: it returns x where dy > 0. It is dy where x > 0, else 0.",
        "the slope of the absolute value": (
            "Where x < 0 the gradient passes with its sign turned, the slope of |x|. It is 0 there: dy where x > 0, "
            "else 0."
        ),
        "leaky": "Where x < 0 a share 0.01 of dy passes, as for a leaky ReLU. It is 0 there: dy where x > 0, else 0.",
        "leaky, slope 0.1": "Where x < 0 a share 0.1 of dy passes, as for a leaky ReLU. It is 0 there.",
        "leaky, slope 0.2": "Where x < 0 a share 0.2 of dy passes, as for a leaky ReLU. It is 0 there.",
        "1 where x is negative": "Where x is negative it returns 1. It is 0 there: dy where x > 0, else 0.",
        "1 where x is positive": (
            "Where x > 0 it returns 1, and dy elsewhere: dy where x > 0, else 0. (The slope 1 has to be multiplied by "
            "dy.)"
        ),
        "mask added": "The mask is added to dy instead of multiplied with it: dx = dy · (x > 0).",
        "summed over the batch": (
            "dx is summed over the first axis. It has the shape of x: every x has a gradient of its own."
        ),
        "entries left out": (
            "The entries where x ≤ 0 are left out (`dy[x > 0]`), and what is left has one axis. dx has the shape of x, "
            "with 0 in their places."
        ),
    },
    _wrong_relu_backward,
    (
        "Move x a little. Where does y follow, and where does it not move at all?",
        "dx = dy · (x > 0), with 0 at x = 0",
        "notebook 06, section 10 (the kink) and exercise 3; a comparison gives a Boolean array, which multiplies as 0 "
        "and 1.",
    ),
    difficulty=1,
    section="behind §7",
)


# --- tanh -----------------------------------------------------------------------------------------------------------


def _tanh_cases(rng):
    sizes, x, cases = _of_every_rank(rng, lambda x: (x,))
    return [
        *cases,
        Case("some x exactly 0", (_with_zeros(rng, x),), sizes=sizes),
        Case("larger x", (4 * x,), sizes=sizes),
    ]


_TANH_VARIANTS = {
    "the sigmoid": _sigmoid,
    "tanh of x/2": lambda x: np.tanh(x / 2),
    "tanh of 2x": lambda x: np.tanh(2 * x),
    "the sign turned": lambda x: np.tanh(-x),
    "sinh": np.sinh,
    "cosh": np.cosh,
    "sinh without ½": lambda x: 2 * np.sinh(x),
    "upside down": lambda x: 1 / np.tanh(x),
    "brackets missing": lambda x: np.exp(x) - np.exp(-x) / np.exp(x) + np.exp(-x),
    "½ of it": lambda x: np.tanh(x) / 2,
    "e^x over the sum": lambda x: np.exp(2 * x) / (np.exp(2 * x) + 1),
    "the tangent": np.tan,
    "the arc tangent": np.arctan,
    "its inverse": np.arctanh,
    "its slope": lambda x: 1 - np.tanh(x) ** 2,
    "cut off straight": lambda x: np.clip(x, -1, 1),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "ReLU": lambda x: np.maximum(x, 0),
}


def _wrong_tanh(made, x):
    return next((f for name, f in _TANH_VARIANTS.items() if made(name)), lambda x: 2 * _sigmoid(2 * x) - 1)(x)


TANH = Exercise(
    F.tanh,
    (Result("y"),),
    _tanh_cases,
    {
        "the sigmoid": (
            "This is the sigmoid, 1/(1 + e⁻ˣ), between 0 and 1. tanh lies between −1 and 1 and is 2σ(2x) − 1."
        ),
        "tanh of x/2": (
            "This is tanh(x/2), for example (eˣ − 1)/(eˣ + 1) or 2σ(x) − 1: a factor 2 in the exponent is missing. "
            "tanh x = (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ) = 2σ(2x) − 1."
        ),
        "tanh of 2x": "This is tanh(2x): there is a factor 2 too much in the exponent. tanh x = (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ).",
        "the sign turned": "The sign is turned, −tanh x: above stands eˣ − e⁻ˣ, not e⁻ˣ − eˣ.",
        "sinh": "This is sinh, (eˣ − e⁻ˣ)/2. tanh is sinh/cosh: divide by the sum eˣ + e⁻ˣ instead of by 2.",
        "cosh": "This is cosh, (eˣ + e⁻ˣ)/2. tanh is sinh/cosh, (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ).",
        "sinh without ½": "This is eˣ − e⁻ˣ, not divided by the sum eˣ + e⁻ˣ: tanh lies between −1 and 1.",
        "upside down": (
            "The fraction is upside down, (eˣ + e⁻ˣ)/(eˣ − e⁻ˣ), which is 1/tanh x. The difference stands above."
        ),
        "brackets missing": (
            "Brackets are missing: eˣ − e⁻ˣ / eˣ + e⁻ˣ divides only e⁻ˣ by eˣ. (eˣ − e⁻ˣ) / (eˣ + e⁻ˣ)."
        ),
        "½ of it": "This is half of tanh: it lies between −½ and ½. (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ) has no factor ½.",
        "e^x over the sum": (
            "This is eˣ/(eˣ + e⁻ˣ), or (1 + tanh x)/2, between 0 and 1: above, − e⁻ˣ is missing. tanh lies between −1 "
            "and 1."
        ),
        "the tangent": (
            "This is the tangent, np.tan, of an angle. The hyperbolic tangent is np.tanh: (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ)."
        ),
        "the arc tangent": "This is the arc tangent, np.arctan, between −π/2 and π/2. tanh is (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ).",
        "its inverse": "This is the inverse, np.arctanh, which is NaN for x beyond ±1. tanh is (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ).",
        "its slope": "This is the slope of tanh, 1 − tanh² x, its derivative. The forward is tanh x itself.",
        "cut off straight": "x is cut off at −1 and 1 (hard tanh). tanh is smooth: (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ).",
        "softsign": "This is x/(1 + |x|), softsign. tanh is (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ).",
        "ReLU": "This is the ReLU, max(0, x). tanh is (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ), between −1 and 1.",
    },
    _wrong_tanh,
    (
        "Where does (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ) go for large positive x, for large negative x, and what is it at 0?",
        "y = (eˣ − e⁻ˣ) / (eˣ + e⁻ˣ)",
        "notebook 10 (the recurrent layer uses it) and notebook 06, section 1; np.exp, or NumPy's own function.",
    ),
    difficulty=1,
    section="§2",
)


def _tanh_backward_cases(rng):
    sizes, x, cases = _of_every_rank(rng, lambda x: (rng.normal(size=x.shape), np.tanh(x)))
    saturated = np.where(rng.random(x.shape) < 0.3, np.sign(x), np.tanh(x))
    return [*cases, Case("some y exactly ±1", (rng.normal(size=x.shape), saturated), sizes=sizes)]


_TANH_BACKWARD_VARIANTS = {
    "y taken for x": lambda dy, y: dy * (1 - np.tanh(y) ** 2),
    "x worked out and taken for y": lambda dy, y: dy * (1 - np.arctanh(y) ** 2),
    "1 − y": lambda dy, y: dy * (1 - y),
    "1 + y": lambda dy, y: dy * (1 + y),
    "1 + y²": lambda dy, y: dy * (1 + y * y),
    "y² − 1": lambda dy, y: dy * (y * y - 1),
    "1 missing": lambda dy, y: dy * y * y,
    "(1 − y)²": lambda dy, y: dy * (1 - y) ** 2,
    "1 − 2y": lambda dy, y: dy * (1 - 2 * y),
    "1 − |y|": lambda dy, y: dy * (1 - np.abs(y)),
    "1 − y³": lambda dy, y: dy * (1 - y**3),
    "1 − 2y²": lambda dy, y: dy * (1 - 2 * y * y),
    "the root of it": lambda dy, y: dy * np.sqrt(1 - y * y),
    "squared": lambda dy, y: dy * (1 - y * y) ** 2,
    "the slope of the sigmoid": lambda dy, y: dy * y * (1 - y),
    "y (1 − y²)": lambda dy, y: dy * y * (1 - y * y),
    "multiplied by y": lambda dy, y: dy * y,
    "dy forgotten": lambda dy, y: 1 - y * y,
    "dy under the square": lambda dy, y: 1 - (dy * y) ** 2,
    "bracket missing": lambda dy, y: dy - y * y,
    "bracket missing, 1 − dy y²": lambda dy, y: 1 - dy * y * y,
    "dy added": lambda dy, y: dy + (1 - y * y),
    "divided by the slope": lambda dy, y: dy / (1 - y * y),
    "dy and y exchanged": lambda dy, y: y * (1 - dy * dy),
    "dy taken for y": lambda dy, y: dy * (1 - dy * dy),
    "dy put through tanh": lambda dy, y: np.tanh(dy) * (1 - y * y),
    "the slope of the arc tangent": lambda dy, y: dy / (1 + y * y),
    "everything passes": lambda dy, y: dy.copy(),
    "the mask of the ReLU": lambda dy, y: dy * (y > 0),
}


def _wrong_tanh_backward(made, dy, y):
    known = _TANH_BACKWARD_VARIANTS.items()
    return next((f for name, f in known if made(name)), lambda dy, y: dy * (1 - y) * (1 + y))(dy, y)


TANH_BACKWARD = Exercise(
    F.tanh_backward,
    (Result("dx"),),
    _tanh_backward_cases,
    {
        "y taken for x": (
            "y is taken for x: it is dy · (1 − tanh(y)²). y is the forward's output, tanh x already; putting it "
            "through tanh again takes the slope at the wrong place. dx = dy · (1 − y²)."
        ),
        "x worked out and taken for y": (
            "The slope is 1 − x², with x = artanh y. It is made of the output: 1 − tanh² x = 1 − y²."
        ),
        "1 − y": "The slope is 1 − y² (tanh squared); here it is 1 − y, the square is missing.",
        "1 + y": "The slope is 1 − y²; here it is 1 + y, a square is missing and a sign is wrong.",
        "1 + y²": (
            "The slope is 1 − y²; here it is 1 + y², a sign is wrong. tanh flattens out: the slope goes to 0 as y goes "
            "to ±1."
        ),
        "y² − 1": "The sign is turned: the slope is 1 − y², which is never negative; here it is y² − 1.",
        "1 missing": "dy is multiplied by y² alone: the slope is 1 − y². At y = 0 it is 1, not 0.",
        "(1 − y)²": "The slope is 1 − y², only y is squared; here it is (1 − y)².",
        "1 − 2y": (
            "The slope is 1 − y²; here it is 1 − 2y, as if the square had been differentiated or mistaken for a factor "
            "2."
        ),
        "1 − |y|": "The slope is 1 − y², with the square; here it is 1 − |y|.",
        "1 − y³": "The slope is 1 − y², with the square; here it is 1 − y³.",
        "1 − 2y²": "The slope is 1 − y²; here it is 1 − 2y², with a factor 2 too much.",
        "the root of it": "The slope is 1 − y²; here it is its square root, √(1 − y²).",
        "squared": "The slope is 1 − y²; here it is squared, (1 − y²)²: it is multiplied in twice.",
        "the slope of the sigmoid": "This is dy · y (1 − y), the slope of the sigmoid. That of tanh is 1 − y².",
        "y (1 − y²)": "There is a factor y too much: dx = dy · (1 − y²).",
        "multiplied by y": "dy is multiplied by y, the output, instead of by the slope 1 − y².",
        "dy forgotten": "It returns the slope 1 − y² alone. The chain rule multiplies it by dy: dx = dy · (1 − y²).",
        "dy under the square": (
            "dy stands under the square: 1 − (dy · y)². It is a factor in front: dx = dy · (1 − y²)."
        ),
        "bracket missing": (
            "This is dy − y²: a bracket is missing, dy · (1 − y²). The factor dy stands before both terms."
        ),
        "bracket missing, 1 − dy y²": (
            "This is 1 − dy · y²: a bracket is missing, dy · (1 − y²). The factor dy stands before both terms."
        ),
        "dy added": "dy is added to the slope. The chain rule multiplies: dx = dy · (1 − y²).",
        "divided by the slope": "dy is divided by the slope 1 − y². The chain rule multiplies: dx = dy · (1 − y²).",
        "dy and y exchanged": "dy and y are exchanged: y · (1 − dy²). The order of the arguments is dy, y.",
        "dy taken for y": "The slope is made of dy, 1 − dy². It is made of the output: dx = dy · (1 − y²).",
        "dy put through tanh": (
            "dy is put through tanh. A gradient goes back through the slope only: dx = dy · (1 − y²)."
        ),
        "the slope of the arc tangent": "This is dy/(1 + y²), the slope of the arc tangent. That of tanh is 1 − y².",
        "everything passes": "dy is passed on as it came: the slope 1 − y² is missing.",
        "the mask of the ReLU": (
            "dy passes where y > 0, as through a ReLU. tanh has the slope 1 − y² on both sides of 0."
        ),
    },
    _wrong_tanh_backward,
    (
        "Where is tanh steepest, where is it flat, and what is y there?",
        "dx = dy · (1 − y²), with y = tanh x the forward's output",
        "notebook 06, section 1: there the slope is written with x. You are given y.",
    ),
    difficulty=1,
    section="behind §2",
)


# --- gelu -----------------------------------------------------------------------------------------------------------


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
)


# --- dropout --------------------------------------------------------------------------------------------------------


def _dropout_cases(rng):
    def some(*shape):
        """Numbers of that shape, none of them near 0."""
        return rng.choice([-1, 1], shape) * rng.uniform(0.5, 2, shape)

    def generator():
        return np.random.default_rng(rng.integers(2**31))

    sizes = draw_sizes(rng, "B T D", least=22)  # large enough to count
    x = some(*sizes.values())
    p = float(rng.choice([0.2, 0.25]))  # so that p, 1 − p, ½ and (1 − p)² can be told apart
    few = draw_sizes(rng, "B T D", least=8)
    small = some(*few.values())
    zeros = np.where(rng.random(small.shape) < 0.5, 0.0, small)
    return [
        Case("", (x, p, generator()), sizes=sizes),
        Case("an int seed", (small, p, int(rng.integers(2**31))), sizes=few),
        Case("p above ½", (small, 0.7, generator()), sizes=few),
        Case("p = 0", (small, 0.0, generator()), sizes=few),
        Case("some x exactly 0", (zeros, p, generator()), sizes=few),
        Case("x of one axis", (small.reshape(-1), p, generator()), sizes=few),
        Case("x of four axes", (some(2, *few.values()), p, generator()), sizes=few),
    ]


def _drive_dropout(answer, x, p, rng):
    """Call the answer four times, of an int seed twice with the same and twice with the next: [(y, keep), …]. What is
    no pair is returned as it is."""
    seeds = [rng, rng, rng + 1, rng + 1] if isinstance(rng, int) else [rng] * 4
    pairs = []
    for seed in seeds:
        output = answer(x, p, seed)
        if not isinstance(output, tuple | list) or len(output) != 2:
            return output
        pairs.append([np.array(part) for part in output])  # copies: the next call may write into x
    return pairs


_LARGE = 5000  # entries; from there on shares are counted


def _view_dropout(case, pairs):
    """What every right answer has in common, whatever its random numbers, as two arrays of x's shape.

    y: x times the factor that the entries have which are not 0; in a large array the last entry is something else
    unless as many are left as should be. keep: its first entries say what holds of the mask, the others are 0.
    """
    x, p, _ = case.arguments
    if not isinstance(pairs, list) or len(pairs) != 4 or not all(isinstance(pair, list) for pair in pairs):
        raise ValueError("no pairs of y and keep")
    y, keep = pairs[0]
    if y.shape == x.shape and y.dtype.kind in "biuf":
        y = _view_y(x, p, y, keep)
    if keep.shape == x.shape and keep.dtype.kind in "biuf":
        facts = _facts_about_keep(x, p, pairs)
        keep = np.zeros(x.size)
        keep[: len(facts)] = facts
        keep = keep.reshape(x.shape)
    return y, keep


def _view_y(x, p, y, keep):
    seen = np.zeros(x.shape)
    if ((y == 0) | (y == 1)).all():
        return seen + 1  # no numbers but a mask
    filled = y[keep == 0] if keep.shape == y.shape else y[:0]
    if filled.size and (filled == filled[0]).all() and filled[0] != 0:
        return seen + 2  # not 0 but another number
    with np.errstate(all="ignore"):
        factors = np.where(x == 0, np.where(y == 0, 1 / (1 - p), np.inf), y / x)[y != 0]
    low, high = (factors.min(), factors.max()) if factors.size else (1 / (1 - p),) * 2
    left = (y != 0).sum() / max(1, (x != 0).sum())
    one_factor = low == high or np.isclose(low, high, rtol=1e-4)
    if not one_factor and not np.isclose([low, high], [1, 1 / (1 - p)], rtol=1e-4).all():
        return seen  # nor the two factors of entries that were scaled and entries that stayed as they were
    if x.size >= _LARGE and np.isclose(high, 1 / left, rtol=1e-9) and not np.isclose(high, 1 / (1 - p), rtol=1e-9):
        low = high = -1  # the share that happened to be kept
    flat = x.reshape(-1)
    seen = np.where(np.arange(x.size) % 2, low * flat, high * flat)
    if x.size >= _LARGE:
        seen[-1] *= _share(left, p, x.size)
    return seen.reshape(x.shape)


def _share(left, p, size):
    """1 for a share that 1 − p explains, within 5 standard deviations, another number for the share of a mistake."""
    shares = {1: 1 - p, 2: p, 3: 0.5, 4: _normal_above(p), 5: 1.0, 6: 0.0}
    for code, share in shares.items():
        if abs(left - share) <= 5 * np.sqrt(share * (1 - share) / size) + 1e-9:
            return code
    return 0


def _normal_above(p):
    """The share of normally distributed numbers above p."""
    return 0.5 * (1 - float(erf(np.array([p]) / np.sqrt(2))[0]))


def _facts_about_keep(x, p, pairs):
    y, keep = pairs[0]
    scale = float(keep.max()) or 1.0
    kept = keep != 0
    even = (~kept | (keep == scale)).all()  # one number for all that are kept
    facts = [float(np.round(scale, 4)) if even and scale > 0 else -1.0]
    agrees = ((y != 0) == kept)[x != 0].mean()
    facts.append(agrees if agrees in (0, 1) else 0.5)
    shared = [
        float(p > 0 and kept.shape[a] > 1 and (kept == kept.take([0], a)).all()) for a in range(-min(3, x.ndim), 0)
    ]
    large = x.size >= _LARGE and not any(shared)
    facts += shared if x.size >= _LARGE else [0.0] * len(shared)
    facts.append(_share(kept.mean(), p, x.size) if large else 1.0)
    counts = {int((other[1] != 0).sum()) for other in pairs if other[1].shape == x.shape}
    facts.append(
        float(large and 0 < p and len(counts) == 1 and not _same_keep(pairs, 0, 1))
    )  # a number fixed beforehand
    facts.append(float(p > 0 and (x == 0).any() and not kept[x == 0].any()))  # read off y
    if p > 0 and x.size >= 100 and not any(shared):
        facts.append(float(_same_keep(pairs, 0, 1)))
        facts.append(float(_same_keep(pairs, 1, 2)))
    return facts


def _same_keep(pairs, i, j):
    return np.array_equal(pairs[i][1], pairs[j][1])


# axes, from the end, along which one random number counts for all
_SHARED = {
    "one mask for all sentences": (-3,),
    "one mask for all words of a sentence": (-2,),
    "whole words dropped": (-1,),
    "whole features dropped": (-3, -2),
    "whole sentences dropped": (-2, -1),
    "one mask entry for the same word of all sentences": (-3, -1),
    "all or nothing": (-3, -2, -1),
}


def _wrong_dropout(made, x, p, rng):
    if isinstance(rng, int) and made("an int seed does not work"):
        raise AttributeError("'int' object has no attribute 'random'")
    if not isinstance(rng, int) and made("a Generator does not work"):
        raise TypeError("SeedSequence expects int")
    random = np.random.default_rng(rng)
    if made("the seed not used"):
        random = np.random.default_rng()
    if made("always the same mask"):
        random = np.random.default_rng(0)
    shared = next((axes for name, axes in _SHARED.items() if made(name)), ())
    shape = [1 if axis - x.ndim in shared else size for axis, size in enumerate(x.shape)]
    if made("normal draws"):
        draws = random.normal(size=shape)
    else:
        draws = random.uniform(size=shape)
    if made("kept with probability ½, whatever p"):
        keep = draws < 0.5
    elif made("kept with probability p") or made("p taken for the probability to keep"):
        keep = draws < p
    else:
        keep = draws >= p
    if made("a fixed number dropped"):
        order = random.permutation(x.size).reshape(x.shape)
        keep = order >= round(p * x.size)
    if made("kept with another probability"):
        keep = draws >= p / 2
    keep = np.broadcast_to(keep, x.shape)
    if made("Gaussian noise for a mask"):
        keep = random.normal(1, np.sqrt(p / (1 - p)), x.shape)
        return x * keep, keep
    applied = np.ones(x.shape, bool) if made("nothing dropped") else keep
    if made("the kept entries dropped"):
        applied = ~keep
    if made("y and keep from different draws"):
        applied = random.uniform(size=x.shape) >= p
    y = np.where(applied, x, 0.0)
    scale = np.float64(1 - p)
    with np.errstate(all="ignore"):
        if made("scaled by the share that was kept"):
            y = y / np.maximum(applied.mean(), 1e-300)
        elif made("scaled by 1/p") or made("p taken for the probability to keep"):
            y = y / np.float64(p)
        elif made("multiplied by 1 − p"):
            y = y * scale
        elif made("multiplied by p"):
            y = y * p
        elif made("1/√(1 − p)"):
            y = y / np.sqrt(scale)
        elif made("1/(1 + p)"):
            y = y / (1 + p)
        elif made("1 + p"):
            y = y * (1 + p)
        elif made("scaled twice"):
            y = y / scale**2
        elif not made("no 1/(1 − p)"):
            y = y / scale
    if made("dropped entries stay as they were"):
        y = np.where(applied, y, x)
    if made("dropped entries set to another number than 0"):
        y = np.where(applied, y, 7.0)
    if made("keep inverted"):
        keep = ~keep
    if made("keep read off y"):
        keep = y != 0
    if made("the scale in keep"):
        keep = keep / scale
    if made("y for keep"):
        keep = y
    return (keep, y) if made("y and keep exchanged") else (y, keep)


DROPOUT = Exercise(
    F.dropout,
    (Result("y"), Result("keep")),
    _dropout_cases,
    {
        "kept with probability p": (
            "An entry is kept with probability p. p is the probability to drop: keep where a uniform random number is "
            "≥ p, which happens with probability 1 − p."
        ),
        "p taken for the probability to keep": (
            "p is taken for the probability to keep: kept with p and scaled by 1/p. Here p is the probability to drop; "
            "1 − p of the entries are kept and scaled by 1/(1 − p)."
        ),
        "kept with probability ½, whatever p": (
            "Half of the entries are kept, whatever p is. The probability to keep is 1 − p."
        ),
        "kept with another probability": (
            "The share of entries that are kept is not 1 − p, nor p. Keep an entry where a uniform random number in "
            "[0, 1) is ≥ p: that happens with probability 1 − p, the same everywhere in the array."
        ),
        "Gaussian noise for a mask": (
            "x is multiplied by noise of many values. Here an entry is either dropped, 0, or kept and scaled by 1/(1 − "
            "p)."
        ),
        "the kept entries dropped": (
            "The mask is applied the wrong way around: y is 0 where keep is True. y = x · keep / (1 − p)."
        ),
        "normal draws": (
            "The random numbers are normally distributed (rng.normal). Compared with p they have to be uniform in [0, "
            "1): rng.random."
        ),
        "a fixed number dropped": (
            "The number of dropped entries is fixed beforehand, p of the whole. Every entry is drawn for itself, with "
            "probability p, independent of the others."
        ),
        "no 1/(1 − p)": (
            "The scale 1/(1 − p) is missing. With it the mean of each entry stays what it was, and nothing needs to "
            "change when dropout is off."
        ),
        "scaled by 1/p": (
            "The kept entries are scaled by 1/p. A share 1 − p is kept, so the scale that keeps the mean is 1/(1 − p)."
        ),
        "multiplied by 1 − p": (
            "The kept entries are multiplied by 1 − p where they are to be divided by it: that makes the mean smaller "
            "still. (The first paper did it at test time.)"
        ),
        "multiplied by p": "The kept entries are multiplied by p. The scale that keeps the mean is 1/(1 − p).",
        "1/√(1 − p)": (
            "The kept entries are scaled by 1/√(1 − p). The scale that keeps the mean is 1/(1 − p), without root."
        ),
        "1/(1 + p)": "The kept entries are scaled by 1/(1 + p): a sign is wrong, 1/(1 − p).",
        "1 + p": "The kept entries are scaled by 1 + p. The scale that keeps the mean is 1/(1 − p).",
        "scaled twice": "The kept entries are scaled by 1/(1 − p) twice.",
        "scaled by the share that was kept": (
            "The kept entries are divided by the share that happened to be kept. It is the probability, 1/(1 − p), a "
            "fixed number: the entries are independent, and the backward has to know the scale."
        ),
        "nothing dropped": "keep is drawn but not used for y: nothing is set to 0, the mask is not multiplied in.",
        "dropped entries stay as they were": "The dropped entries stay as they were in x. They become 0.",
        "dropped entries set to another number than 0": (
            "The dropped entries become a number that is not 0. They become 0: y = x · keep / (1 − p)."
        ),
        "y and keep from different draws": (
            "y and keep do not belong together: random numbers are drawn twice. The backward needs the very mask that "
            "made y."
        ),
        "keep inverted": "keep is inverted: True where an entry was dropped. It is True where it was kept.",
        "keep read off y": (
            "keep is read off the result, y ≠ 0. Where x is 0 already, y is 0 although the entry was kept: return the "
            "mask that was drawn."
        ),
        "the scale in keep": (
            "The scale 1/(1 − p) is multiplied into keep, which is returned. keep is the mask alone, True or False; "
            "dropout_backward scales by itself."
        ),
        "y for keep": "The second result is y once more. It is keep, the mask: True where an entry was kept.",
        "y and keep exchanged": "y and keep are returned in each other's place: y comes first.",
        "one mask for all sentences": (
            "One mask is drawn for a sentence and shared over the batch (the first axis). Every entry is drawn for "
            "itself: a random number for each entry of x.shape."
        ),
        "one mask for all words of a sentence": (
            "One mask of features is drawn for each sentence and shared by all its words. Every entry is drawn for "
            "itself: a random number for each entry of x.shape."
        ),
        "whole words dropped": (
            "One random number is drawn for each row: whole words (rows) are kept or dropped. Every entry is drawn for "
            "itself: a random number for each entry of x.shape."
        ),
        "whole features dropped": (
            "One random number is drawn for each feature, shared by all rows: whole columns are kept or dropped. Every "
            "entry is drawn for itself: a random number for each entry of x.shape."
        ),
        "whole sentences dropped": (
            "One random number is drawn for each sentence of the batch. Every entry is drawn for itself: a random "
            "number for each entry of x.shape."
        ),
        "one mask entry for the same word of all sentences": (
            "One random number is drawn for each place in the sentence, shared by the batch and all features. Every "
            "entry is drawn for itself: a random number for each entry of x.shape."
        ),
        "all or nothing": (
            "A single random number decides over the whole array: all is kept or all dropped. Every entry is drawn for "
            "itself: a random number for each entry of x.shape."
        ),
        "the seed not used": (
            "rng is not used: the numbers come from NumPy's global generator (np.random…) or from a new one. The same "
            "int seed has to give the same mask."
        ),
        "always the same mask": (
            "rng is not used: the seed is a fixed one, and the mask is the same on every call. Draw from rng; another "
            "seed has to give another mask, and a Generator a new one on every call."
        ),
        "an int seed does not work": (
            "It fails with an int seed, which has no .random(). rng is a Generator or an int; "
            "np.random.default_rng(rng) makes a Generator of either."
        ),
        "a Generator does not work": (
            "It fails with a Generator for rng, as if it were always a number (np.random.seed). rng is a Generator or "
            "an int; np.random.default_rng(rng) makes a Generator of either."
        ),
    },
    _wrong_dropout,
    (
        "If an entry is 0 with probability p, by what do the others have to grow for the mean to stay?",
        "keep with probability 1 − p, each entry for itself; y = x · keep / (1 − p)",
        "section 3 of the paper on dropout; np.random.default_rng(rng) takes a Generator or an int, .random(shape) is "
        "uniform in [0, 1).",
    ),
    difficulty=2,
    section="Srivastava et al. 2014",
    drive=_drive_dropout,
    view=_view_dropout,
)


def _dropout_backward_cases(rng):
    sizes, dy = _draw(rng)
    deep_sizes, deep = _draw(rng, "B H T S")
    p = float(rng.choice([0.2, 0.3, 0.4]))

    def keep(p, shape):
        kept = rng.random(shape) >= p
        kept.flat[:2] = True, False  # some of each
        return kept

    return [
        Case("", (dy, keep(p, dy.shape), p), sizes=sizes),
        Case("p above ½", (dy, keep(0.7, dy.shape), 0.7), sizes=sizes),
        Case("p = 0", (dy, np.ones(dy.shape, bool), 0.0), sizes=sizes),
        Case("dy of one axis", (dy[0, 0], keep(p, dy.shape[-1]), p), sizes=sizes),
        Case("dy of four axes", (deep, keep(p, deep.shape), p), sizes=deep_sizes),
        Case("some dy exactly 0", (_with_zeros(rng, dy), keep(p, dy.shape), p), sizes=sizes),
    ]


def _wrong_dropout_backward(made, dy, keep, p):
    if made("mask inverted"):
        keep = ~keep
    if made("mask from dy"):
        keep = dy > 0
    if made("mask not used"):
        keep = np.ones(dy.shape, bool)
    if made("dy forgotten"):
        dy = np.ones(dy.shape)
    dx = np.where(keep, dy, 0.0)
    scale = np.float64(1 - p)
    share = keep.mean()
    with np.errstate(all="ignore"):
        factors = {
            "no 1/(1 − p)": 1.0,
            "scaled by 1/p": 1 / np.float64(p),
            "multiplied by 1 − p": scale,
            "multiplied by p": p,
            "scaled twice": 1 / scale**2,
            "1/√(1 − p)": 1 / np.sqrt(scale),
            "1/(1 + p)": 1 / (1 + p),
            "1 + p": 1 + p,
            "scaled by the share that was kept": 1 / share,
            "dy handed on": 1.0,
        }
        dx = dx * next((factor for name, factor in factors.items() if made(name)), 1 / scale)
    if made("dropped entries pass"):
        dx = np.where(keep, dx, dy)
    if made("dy handed on"):
        return dy.copy()
    return keep.copy() if made("keep returned") else dx


DROPOUT_BACKWARD = Exercise(
    F.dropout_backward,
    (Result("dx"),),
    _dropout_backward_cases,
    {
        "no 1/(1 − p)": (
            "The scale 1/(1 − p) is missing: the forward multiplied what it kept by it, so the gradient gets the same "
            "factor."
        ),
        "scaled by 1/p": (
            "The gradient is scaled by 1/p. The forward scaled by 1/(1 − p), so the gradient gets the same factor."
        ),
        "multiplied by 1 − p": (
            "The gradient is multiplied by 1 − p where it is to be divided by it: the forward's factor is 1/(1 − p), "
            "and the backward has the same, not its inverse."
        ),
        "multiplied by p": (
            "The gradient is multiplied by p. The forward's factor is 1/(1 − p), and the backward has the same."
        ),
        "1/√(1 − p)": "The gradient is scaled by 1/√(1 − p). The forward's factor is 1/(1 − p), without root.",
        "1/(1 + p)": "The gradient is scaled by 1/(1 + p): a sign is wrong, 1/(1 − p).",
        "1 + p": "The gradient is scaled by 1 + p. The forward's factor is 1/(1 − p), and the backward has the same.",
        "scaled twice": "The gradient is scaled by 1/(1 − p) twice: once, as in the forward.",
        "scaled by the share that was kept": (
            "The gradient is divided by the share that happened to be kept, keep.mean(). The forward's factor is 1/(1 "
            "− p), with the probability."
        ),
        "mask inverted": (
            "The mask is the wrong way around: the gradient passes where the entry was dropped. It passes where keep "
            "is True."
        ),
        "mask not used": (
            "keep is not used: dy is scaled but passes everywhere. Where an entry was dropped, x did not reach the "
            "loss, and dx is 0."
        ),
        "mask from dy": "The mask is taken from dy, where it is positive. The forward's mask is keep.",
        "dropped entries pass": (
            "Where an entry was dropped, dy passes as it came. x did not reach the loss there: dx is 0."
        ),
        "dy handed on": "dy is handed on as it came: dx = dy · keep / (1 − p), the forward's mask and scale.",
        "dy forgotten": (
            "It returns keep / (1 − p) alone. The chain rule multiplies it by dy: dx = dy · keep / (1 − p)."
        ),
        "keep returned": "It returns keep, the mask. The chain rule multiplies it by dy: dx = dy · keep / (1 − p).",
    },
    _wrong_dropout_backward,
    (
        "The forward multiplied each entry by a number. What are the two values of that number, and what is its "
        "gradient?",
        "dx = dy · keep / (1 − p)",
        "notebook 06, section 1, on what a backward is; y = x · (a constant), entry by entry. keep multiplies as 0 "
        "and 1.",
    ),
    difficulty=1,
    section="Srivastava et al. 2014",
)

EXERCISES = [RELU, RELU_BACKWARD, TANH, TANH_BACKWARD, GELU, GELU_BACKWARD, DROPOUT, DROPOUT_BACKWARD]
