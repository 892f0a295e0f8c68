"""ReLU and tanh, with their backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes, extended


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


# --- relu -------------------------------------------------------------------------------------------------------------


def relu_cases(rng):
    sizes, x, cases = of_every_rank(rng, lambda x: (x,))
    return [
        *cases,
        Case("some x exactly 0", (with_zeros(rng, x),), sizes=sizes),
        Case("large x", (20 * x,), sizes=sizes),
    ]


def relu(x):
    return np.where(x > 0, x, 0)


RELU = Exercise(
    F.relu,
    results=(Result("y"),),
    cases=relu_cases,
    answer=relu,
    hints=(
        "What happens to a positive number, and what happens to a negative one?",
        "y = max(0, x), element by element",
        "notebook 04, sections 1 and 3; np.maximum (not np.max), or np.where.",
    ),
    difficulty=1,
    section="§7",
    chapter="Feed-forward network and layer norm",
    place=2,
    mistakes="""
- nothing cut off:  return x
  x comes out as it was (the identity): negative numbers have to become 0, y = max(0, x).
- the negative numbers kept:  return np.minimum(x, 0)
  It keeps the negative numbers and sets the positive ones to 0: min(0, x) for max(0, x).
- the absolute value:  return np.abs(x)
  Negative numbers turn positive, |x|. They have to become 0: y = max(0, x).
- the sign turned first:  return np.maximum(-x, 0)
  It is max(0, −x): the sign of x is turned. y = max(0, x).
- leaky:  return np.where(x > 0, x, 0.01 * x)
  This is a leaky ReLU: 0.01 of negative numbers passes. They have to become 0: y = max(0, x).
- leaky, slope 0.1:  return np.where(x > 0, x, 0.1 * x)
  This is a leaky ReLU: 0.1 of negative numbers passes. They have to become 0: y = max(0, x).
- leaky, slope 0.2:  return np.where(x > 0, x, 0.2 * x)
  This is a leaky ReLU: 0.2 of negative numbers passes. They have to become 0: y = max(0, x).
- ELU:  return np.where(x > 0, x, np.exp(x) - 1)
  This is the ELU, exp(x) − 1 for negative x. Negative numbers have to become 0: y = max(0, x).
- GELU:  return F.gelu(x)
  This is GELU (the tanh form). The ReLU has a corner at 0: y = max(0, x).
- exact GELU:  return F.gelu(x, "none")
  This is GELU (with erf). The ReLU has a corner at 0: y = max(0, x).
- SiLU:  return x * sigmoid(x)
  This is x · sigmoid(x), SiLU or swish. The ReLU has a corner at 0: y = max(0, x).
- softplus:  return np.logaddexp(0, x)
  This is softplus, log(1 + exp(x)), a smooth ReLU. The ReLU has a corner at 0: y = max(0, x).
- the sigmoid:  return sigmoid(x)
  This is the sigmoid, 1/(1 + exp(−x)). The ReLU lets positive numbers pass as they are: y = max(0, x).
- tanh:  return np.tanh(x)
  This is tanh. The ReLU lets positive numbers pass as they are: y = max(0, x).
- squared:  return np.maximum(x, 0) ** 2
  The result is squared, max(0, x)². Positive numbers pass as they are: y = max(0, x).
- cut off at 1 too:  return np.clip(x, 0, 1)
  It cuts off above 1 too. Positive numbers pass as they are, however large: y = max(0, x).
- cut off at 6 too:  return np.clip(x, 0, 6)
  It cuts off above 6 too (ReLU6). Positive numbers pass as they are, however large: y = max(0, x).
- negative numbers turned to 1:  return np.where(x > 0, x, 1)
  Negative numbers become 1. They have to become 0: y = max(0, x).
- the Boolean mask:  return x > 0
  It returns the mask x > 0, Boolean. That says where x passes; y is x itself there, and 0 elsewhere.
- 0 and 1:  return (x > 0).astype(float)
  It returns 1 where x > 0 and 0 elsewhere, a step. y is x itself where x > 0, and 0 elsewhere.
- np.max for np.maximum:  return np.max(x, 0)
  `np.max(x, 0)` is the largest number along axis 0, one axis fewer. The larger of each number and 0, element by
  element, is np.maximum(x, 0).
- negative numbers left out:  return x[x > 0]
  The negative numbers are left out (`x[x > 0]`), and the rest has one axis. y has the shape of x, with 0 in their
  places.
""",
)


# --- relu_backward ----------------------------------------------------------------------------------------------------


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


RELU_BACKWARD = Exercise(
    F.relu_backward,
    results=(Result("dx"),),
    cases=relu_backward_cases,
    answer=relu_backward,
    hints=(
        "Move x a little. Where does y follow, and where does it not move at all?",
        "dx = dy · (x > 0), with 0 at x = 0",
        "notebook 06, section 10 (the kink) and exercise 3; a comparison gives a Boolean array, which multiplies as 0 "
        "and 1.",
    ),
    difficulty=1,
    section="behind §7",
    chapter="Backpropagation",
    place=3,
    mistakes="""
- gradient 1 at 0:  return dy * (x >= 0)
  At x = 0 exactly the gradient passes: x ≥ 0 (or nothing but x < 0 set to 0). It is taken as 0 there, x > 0. With the
  forward's output for x, which is 0 wherever the ReLU cut off, everything would pass.
- gradient ½ at 0:  return dy * (0.5 + 0.5 * np.sign(x))
  At x = 0 exactly half the gradient passes. It is taken as 0 there: dy where x > 0, else 0.
- everything passes:  return dy
  dy is passed on whole: the mask is missing. Where the ReLU cut off, x did not reach the loss: dx = dy where x > 0,
  else 0.
- dy forgotten:  return (x > 0).astype(float)
  It returns the slope alone, 1 where x > 0 and 0 elsewhere. The chain rule multiplies it by dy: dx = dy · (x > 0).
- the Boolean mask:  return x > 0
  It returns the mask x > 0, Boolean. The chain rule multiplies it by dy: dx = dy · (x > 0).
- mask from dy · x:  return dy * (dy * x > 0)
  The mask is taken from the product, dy · x > 0, where dy and x have the same sign. The sign of dy has no part in it: x
  > 0.
- mask where x > dy:  return dy * (x > dy)
  x is compared with dy. The ReLU compared it with 0: dx = dy where x > 0, else 0.
- mask where x > 1:  return dy * (x > 1)
  x is compared with 1. The ReLU compared it with 0: dx = dy where x > 0, else 0.
- one mask for a whole row:  return dy * (x.sum(axis=-1, keepdims=True) > 0)
  The mask is one for a whole row, from the sign of its sum. Every entry is looked at by itself: x > 0.
- mask from dy:  return dy * (dy > 0)
  The mask is taken from dy: where dy > 0 (the ReLU of the gradient). The forward decided by x > 0 which entries pass; a
  gradient may have either sign.
- mask from dy and x:  return dy * ((dy > 0) & (x > 0))
  The gradient passes only where x > 0 and dy > 0 too. x alone decides; a gradient may have either sign.
- mask inverted:  return dy * (x <= 0)
  The mask is the wrong way around: dy passes where x ≤ 0. It passes where x > 0.
- mask inverted, 0 not passing:  return dy * (x < 0)
  The mask is the wrong way around: dy passes where x < 0. It passes where x > 0.
- multiplied by the forward's output:  return dy * np.maximum(x, 0)
  dy is multiplied by max(0, x), the forward's output, instead of by its slope: 1 where x > 0, else 0.
- multiplied by x:  return dy * x
  dy is multiplied by x instead of by the slope of the ReLU: 1 where x > 0, else 0.
- the forward again:  return np.maximum(x, 0)
  It returns max(0, x), the forward, without dy. The slope is 1 where x > 0: dx = dy · (x > 0).
- x where dy is to pass:  return np.where(dy > 0, x, 0)
  dy and x are exchanged: it returns x where dy > 0. It is dy where x > 0, else 0.
- the slope of the absolute value:  return dy * np.sign(x)
  Where x < 0 the gradient passes with its sign turned, the slope of |x|. It is 0 there: dy where x > 0, else 0.
- leaky:  return dy * np.where(x > 0, 1, 0.01)
  Where x < 0 a share 0.01 of dy passes, as for a leaky ReLU. It is 0 there: dy where x > 0, else 0.
- leaky, slope 0.1:  return dy * np.where(x > 0, 1, 0.1)
  Where x < 0 a share 0.1 of dy passes, as for a leaky ReLU. It is 0 there.
- leaky, slope 0.2:  return dy * np.where(x > 0, 1, 0.2)
  Where x < 0 a share 0.2 of dy passes, as for a leaky ReLU. It is 0 there.
- 1 where x is negative:  return np.where(x > 0, dy, 1)
  Where x is negative it returns 1. It is 0 there: dy where x > 0, else 0.
- 1 where x is positive:  return np.where(x > 0, 1, dy)
  Where x > 0 it returns 1, and dy elsewhere: dy where x > 0, else 0. (The slope 1 has to be multiplied by dy.)
- mask added:  return dy + (x > 0)
  The mask is added to dy instead of multiplied with it: dx = dy · (x > 0).
- summed over the batch:  return (dy * (x > 0)).sum(axis=0)
  dx is summed over the first axis. It has the shape of x: every x has a gradient of its own.
- entries left out:  return dy[x > 0]
  The entries where x ≤ 0 are left out (`dy[x > 0]`), and the rest has one axis. dx has the shape of x, with 0 in their
  places.
""",
)


# --- tanh -------------------------------------------------------------------------------------------------------------


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


TANH = Exercise(
    F.tanh,
    results=(Result("y"),),
    cases=tanh_cases,
    answer=tanh,
    hints=(
        "Where does (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ) go for large positive x, for large negative x, and what is it at 0?",
        "y = (eˣ − e⁻ˣ) / (eˣ + e⁻ˣ)",
        "notebook 10 (the recurrent layer uses it) and notebook 06, section 1; np.exp, or NumPy's own function.",
    ),
    difficulty=1,
    section="§2",
    chapter="Feed-forward network and layer norm",
    place=3,
    mistakes="""
- the sigmoid:  return sigmoid(x)
  This is the sigmoid, 1/(1 + e⁻ˣ), between 0 and 1. tanh lies between −1 and 1 and is 2σ(2x) − 1.
- tanh of x/2:  return np.tanh(x / 2)
  This is tanh(x/2), for example (eˣ − 1)/(eˣ + 1) or 2σ(x) − 1: a factor 2 in the exponent is missing. tanh x = (eˣ −
  e⁻ˣ)/(eˣ + e⁻ˣ) = 2σ(2x) − 1.
- tanh of 2x:  return np.tanh(2 * x)
  This is tanh(2x): there is a factor 2 too much in the exponent. tanh x = (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ).
- the sign turned:  return np.tanh(-x)
  The sign is turned, −tanh x: above stands eˣ − e⁻ˣ, not e⁻ˣ − eˣ.
- sinh:  return np.sinh(x)
  This is sinh, (eˣ − e⁻ˣ)/2. tanh is sinh/cosh: divide by the sum eˣ + e⁻ˣ instead of by 2.
- cosh:  return np.cosh(x)
  This is cosh, (eˣ + e⁻ˣ)/2. tanh is sinh/cosh, (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ).
- sinh without ½:  return np.exp(x) - np.exp(-x)
  This is eˣ − e⁻ˣ, not divided by the sum eˣ + e⁻ˣ: tanh lies between −1 and 1.
- upside down:  return (np.exp(x) + np.exp(-x)) / (np.exp(x) - np.exp(-x))
  The fraction is upside down, (eˣ + e⁻ˣ)/(eˣ − e⁻ˣ), which is 1/tanh x. The difference stands above.
- brackets missing:  return np.exp(x) - np.exp(-x) / np.exp(x) + np.exp(-x)
  Brackets are missing: eˣ − e⁻ˣ / eˣ + e⁻ˣ divides only e⁻ˣ by eˣ. (eˣ − e⁻ˣ) / (eˣ + e⁻ˣ).
- ½ of it:  return np.tanh(x) / 2
  This is half of tanh: it lies between −½ and ½. (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ) has no factor ½.
- e^x over the sum:  return np.exp(x) / (np.exp(x) + np.exp(-x))
  This is eˣ/(eˣ + e⁻ˣ), or (1 + tanh x)/2, between 0 and 1: above, − e⁻ˣ is missing. tanh lies between −1 and 1.
- the tangent:  return np.tan(x)
  This is the tangent, np.tan, of an angle. The hyperbolic tangent is np.tanh: (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ).
- the arc tangent:  return np.arctan(x)
  This is the arc tangent, np.arctan, between −π/2 and π/2. tanh is (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ).
- its inverse:  return np.arctanh(x)
  This is the inverse, np.arctanh, which is NaN for x beyond ±1. tanh is (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ).
- its slope:  return 1 - np.tanh(x) ** 2
  This is the slope of tanh, 1 − tanh² x, its derivative. The forward is tanh x itself.
- cut off straight:  return np.clip(x, -1, 1)
  x is cut off at −1 and 1 (hard tanh). tanh is smooth: (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ).
- softsign:  return x / (1 + np.abs(x))
  This is x/(1 + |x|), softsign. tanh is (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ).
- ReLU:  return np.maximum(x, 0)
  This is the ReLU, max(0, x). tanh is (eˣ − e⁻ˣ)/(eˣ + e⁻ˣ), between −1 and 1.
""",
)


# --- tanh_backward ----------------------------------------------------------------------------------------------------


def tanh_backward_cases(rng):
    sizes, x, cases = of_every_rank(rng, lambda x: (rng.normal(size=x.shape), np.tanh(x)))
    saturated = np.where(rng.random(x.shape) < 0.3, np.sign(x), np.tanh(x))
    return [*cases, Case("some y exactly ±1", (rng.normal(size=x.shape), saturated), sizes=sizes)]


def tanh_backward(dy, y):
    return dy * (1 - y**2)


TANH_BACKWARD = Exercise(
    F.tanh_backward,
    results=(Result("dx"),),
    cases=tanh_backward_cases,
    answer=tanh_backward,
    hints=(
        "Where is tanh steepest, where is it flat, and what is y there?",
        "dx = dy · (1 − y²), with y = tanh x the forward's output",
        "notebook 06, section 1: there the slope is written with x. You are given y.",
    ),
    difficulty=1,
    section="behind §2",
    chapter="Backpropagation",
    place=4,
    mistakes="""
- y taken for x:  return dy * (1 - np.tanh(y) ** 2)
  y is taken for x: it is dy · (1 − tanh(y)²). y is the forward's output, tanh x already; putting it through tanh again
  takes the slope at the wrong place. dx = dy · (1 − y²).
- x worked out and taken for y:  return dy * (1 - np.arctanh(y) ** 2)
  The slope is 1 − x², with x = artanh y. It is made of the output: 1 − tanh² x = 1 − y².
- 1 − y:  return dy * (1 - y)
  The slope is 1 − y² (tanh squared); here it is 1 − y, the square is missing.
- 1 + y:  return dy * (1 + y)
  The slope is 1 − y²; here it is 1 + y, a square is missing and a sign is wrong.
- 1 + y²:  return dy * (1 + y**2)
  The slope is 1 − y²; here it is 1 + y², a sign is wrong. tanh flattens out: the slope goes to 0 as y goes to ±1.
- y² − 1:  return dy * (y**2 - 1)
  The sign is turned: the slope is 1 − y², which is never negative; here it is y² − 1.
- 1 missing:  return dy * y**2
  dy is multiplied by y² alone: the slope is 1 − y². At y = 0 it is 1, not 0.
- (1 − y)²:  return dy * (1 - y) ** 2
  The slope is 1 − y², only y is squared; here it is (1 − y)².
- 1 − 2y:  return dy * (1 - 2 * y)
  The slope is 1 − y²; here it is 1 − 2y, as if the square had been differentiated or mistaken for a factor 2.
- 1 − |y|:  return dy * (1 - np.abs(y))
  The slope is 1 − y², with the square; here it is 1 − |y|.
- 1 − y³:  return dy * (1 - y**3)
  The slope is 1 − y², with the square; here it is 1 − y³.
- 1 − 2y²:  return dy * (1 - 2 * y**2)
  The slope is 1 − y²; here it is 1 − 2y², with a factor 2 too much.
- the root of it:  return dy * np.sqrt(1 - y**2)
  The slope is 1 − y²; here it is its square root, √(1 − y²).
- squared:  return dy * (1 - y**2) ** 2
  The slope is 1 − y²; here it is squared, (1 − y²)²: it is multiplied in twice.
- the slope of the sigmoid:  return dy * y * (1 - y)
  This is dy · y (1 − y), the slope of the sigmoid. That of tanh is 1 − y².
- y (1 − y²):  return dy * y * (1 - y**2)
  There is a factor y too much: dx = dy · (1 − y²).
- multiplied by y:  return dy * y
  dy is multiplied by y, the output, instead of by the slope 1 − y².
- dy forgotten:  return 1 - y**2
  It returns the slope 1 − y² alone. The chain rule multiplies it by dy: dx = dy · (1 − y²).
- dy under the square:  return 1 - (dy * y) ** 2
  dy stands under the square: 1 − (dy · y)². It is a factor in front: dx = dy · (1 − y²).
- bracket missing:  return dy - y**2
  This is dy − y²: a bracket is missing, dy · (1 − y²). The factor dy stands before both terms.
- bracket missing, 1 − dy y²:  return 1 - dy * y**2
  This is 1 − dy · y²: a bracket is missing, dy · (1 − y²). The factor dy stands before both terms.
- dy added:  return dy + (1 - y**2)
  dy is added to the slope. The chain rule multiplies: dx = dy · (1 − y²).
- divided by the slope:  return dy / (1 - y**2)
  dy is divided by the slope 1 − y². The chain rule multiplies: dx = dy · (1 − y²).
- dy and y exchanged:  return y * (1 - dy**2)
  dy and y are exchanged: y · (1 − dy²). The order of the arguments is dy, y.
- dy taken for y:  return dy * (1 - dy**2)
  The slope is made of dy, 1 − dy². It is made of the output: dx = dy · (1 − y²).
- dy put through tanh:  return np.tanh(dy) * (1 - y**2)
  dy is put through tanh. A gradient goes back through the slope only: dx = dy · (1 − y²).
- the slope of the arc tangent:  return dy / (1 + y**2)
  This is dy/(1 + y²), the slope of the arc tangent. That of tanh is 1 − y².
- everything passes:  return dy
  dy is passed on as it came: the slope 1 − y² is missing.
- the mask of the ReLU:  return dy * (y > 0)
  dy passes where y > 0, as through a ReLU. tanh has the slope 1 − y² on both sides of 0.
""",
)

EXERCISES = [RELU, RELU_BACKWARD, TANH, TANH_BACKWARD]
