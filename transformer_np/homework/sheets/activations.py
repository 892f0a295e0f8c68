"""ReLU and tanh, with their backward."""

import numpy as np

from ... import functional as F
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


# --- relu ------------------------------------------------------------------------------------------------------------


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
    chapter="Feed-forward network and layer norm",
    place=2,
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
    chapter="Backpropagation",
    place=3,
)


# --- tanh ------------------------------------------------------------------------------------------------------------


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
    chapter="Feed-forward network and layer norm",
    place=3,
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
    chapter="Backpropagation",
    place=4,
)


EXERCISES = [RELU, RELU_BACKWARD, TANH, TANH_BACKWARD]
