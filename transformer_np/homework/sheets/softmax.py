"""Softmax and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes


def _softmax_cases(rng):
    sizes = draw_sizes(rng, "B T S")
    x = rng.normal(size=tuple(sizes.values()))
    large = 1e4 * np.sign(x) + np.round(64 * x) / 64  # which float32 holds to the last digit
    hidden = np.where(rng.random(x.shape) < 0.3, -np.inf, x)
    hidden[..., 0] = x[..., 0]  # something to choose from in every row
    empty = x.copy()
    empty[-1, 0] = -np.inf
    return [
        Case("", (x,), sizes=sizes),
        Case("axis=1", (x,), {"axis": 1}, sizes),
        Case("logits of ±10,000", (large,), sizes=sizes),
        Case("some logits −inf", (hidden,), sizes=sizes),
        Case("a row of nothing but −inf", (empty,), sizes=sizes),
        Case("one row, x of shape (S,)", (x[0, 0],), sizes=sizes),
    ]


def _wrong_softmax(made, x, axis=-1):
    if made("over the wrong axis"):
        axis = 0
    if made("always over the last axis"):
        axis = -1
    if made("over all numbers at once"):
        axis = tuple(range(x.ndim))
    if not made("largest logit not subtracted"):
        largest = x.max(axis=axis, keepdims=True)
        x = x - (largest if made("NaN where all is hidden") else np.maximum(largest, np.finfo(x.dtype).min))
    y = np.exp(x)
    if made("not divided by the sum"):
        return y
    total = y.sum(axis=axis, keepdims=True)
    if not made("NaN where all is hidden") and not made("largest logit not subtracted"):
        total = np.where(total == 0, 1, total)
    y = y / total
    return np.log(y) if made("the logarithm of it") else y


SOFTMAX = Exercise(
    F.softmax,
    (Result("y"),),
    _softmax_cases,
    {
        "over the wrong axis": (
            "The sum runs over the first axis instead of the one that `axis` names, which is the last unless the "
            "caller says otherwise: the weights of one row do not add to 1."
        ),
        "always over the last axis": "It does not use `axis`: the sum always runs over the last axis.",
        "over all numbers at once": (
            "The sum runs over the whole array instead of along `axis`: all weights together add to 1, but each row "
            "must."
        ),
        "largest logit not subtracted": (
            "The largest logit is not subtracted before the exponential. exp(710) is already too large for a float64, "
            "and inf/inf is NaN. Subtracting the largest entry of each row changes nothing and keeps exp at 1 or below."
        ),
        "NaN where all is hidden": (
            "A row of nothing but −inf gives NaN: −inf − (−inf), or 0/0. Such a row hides everything, and its weights "
            "are to be 0."
        ),
        "not divided by the sum": "The exponentials are not divided by their sum: the weights do not add to 1.",
        "the logarithm of it": "This is log softmax: the logarithm of the weights is returned instead of the weights.",
    },
    _wrong_softmax,
    (
        "What makes numbers positive whatever they are, and what makes them add to 1?",
        "y = exp(x − max x) / Σ exp(x − max x), maximum and sum along `axis`, kept as an axis of length 1",
        "notebook 02, step 4; np.max and np.sum with keepdims=True. In a row of nothing but −inf the maximum is −inf.",
    ),
    difficulty=1,
    section="§4 step 4",
)


def _softmax_backward_cases(rng):
    sizes = draw_sizes(rng, "B T S")
    x, dy = rng.normal(size=(2, *sizes.values()))
    hidden = F.softmax(np.where(rng.random(x.shape) < 0.3, -np.inf, x))
    return [
        Case("", (dy, F.softmax(x)), sizes=sizes),
        Case("axis=1", (dy, F.softmax(x, axis=1)), {"axis": 1}, sizes),
        Case("some weights 0", (dy, hidden), sizes=sizes),
        Case("one row, y of shape (S,)", (dy[0, 0], F.softmax(x[0, 0])), sizes=sizes),
    ]


def _wrong_softmax_backward(made, dy, y, axis=-1):
    if made("always over the last axis"):
        axis = -1
    if made("over the wrong axis"):
        axis = 0
    if made("only the diagonal"):
        return dy * y * (1 - y)
    if made("taken for the logits"):
        y = F.softmax(y, axis)
    reduce = np.mean if made("mean for sum") else np.sum
    if made("dy not weighted by y in the sum"):
        through_sum = reduce(dy, axis=axis, keepdims=True)
    elif made("dy missing in the sum"):
        through_sum = reduce(y * y, axis=axis, keepdims=True)
    else:
        through_sum = reduce(dy * y, axis=axis, keepdims=True)
    if made("sum added"):
        through_sum = -through_sum
    if made("sum not multiplied by y"):
        return y * dy - through_sum
    dx = dy - through_sum
    return dx if made("not multiplied by y") else y * dx


SOFTMAX_BACKWARD = Exercise(
    F.softmax_backward,
    (Result("dx"),),
    _softmax_backward_cases,
    {
        "only the diagonal": (
            "This is dy · y · (1 − y), the diagonal of the Jacobian alone, as if each output hung on its own input "
            "only. Every x is in the sum under every y: the off-diagonal terms −yᵢ yⱼ are missing."
        ),
        "over the wrong axis": "The sum runs over the first axis instead of the one that `axis` names.",
        "always over the last axis": "It does not use `axis`: the sum always runs over the last axis.",
        "taken for the logits": (
            "y is already the softmax, the forward's output; here it is put through softmax once more, as if it were "
            "the logits x."
        ),
        "mean for sum": "Σ dy · y is a sum along the axis; here it is a mean, too small by the length of the axis.",
        "dy not weighted by y in the sum": "The sum is Σ dy instead of Σ dy · y: each dy counts with its own weight y.",
        "dy missing in the sum": "The sum is Σ y · y instead of Σ dy · y: the upstream gradient is missing in it.",
        "sum added": "The sum Σ dy · y is added where it has to be subtracted: a sign is wrong.",
        "sum not multiplied by y": (
            "This is y · dy − Σ dy · y: the factor y stands before both terms, y · (dy − Σ dy · y). A bracket is "
            "missing."
        ),
        "not multiplied by y": "The factor y in front is missing: dx = y · (dy − Σ dy · y).",
    },
    _wrong_softmax_backward,
    (
        "If one logit grows, its own weight grows. What happens to all the others, which must still add to 1 with it?",
        "∂yᵢ/∂xⱼ = yᵢ (δᵢⱼ − yⱼ), so dx = y · (dy − Σ dy · y), the sum along `axis`",
        "notebook 06, softmax; y is all you need of the forward.",
    ),
    difficulty=2,
    section="behind §4 step 4",
)

EXERCISES = [SOFTMAX, SOFTMAX_BACKWARD]
