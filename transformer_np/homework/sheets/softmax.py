"""Softmax and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes, extended

# --- softmax ----------------------------------------------------------------------------------------------------------


def softmax_cases(rng):
    sizes = draw_sizes(rng, "B T S")
    x = rng.normal(size=tuple(sizes.values()))
    sign = np.sign(x)
    sign[0, 0], sign[-1, -1, 0] = -1, 1  # a row that lies far below the largest number of all
    large = 1e4 * sign + np.round(64 * x) / 64  # which float32 holds to the last digit
    large[-1, 1] = x[-1, 1]
    hidden = np.where(rng.random(x.shape) < 0.3, -np.inf, x)
    hidden[..., 0] = x[..., 0]  # something to choose from in every row
    empty = x.copy()
    empty[-1, 0] = -np.inf
    return [
        Case("", (x,), sizes=sizes),
        Case("axis=1", (x,), {"axis": 1}, sizes),
        Case("logits of ±10,000", (large,), sizes=sizes),
        Case("some logits −inf", (hidden,), sizes=sizes),
        extended(Case("a row of nothing but −inf", (empty,), sizes=sizes)),
        Case("one row, x of shape (S,)", (x[0, 0],), sizes=sizes),
    ]


def softmax(x, axis=-1):
    largest = x.max(axis=axis, keepdims=True)
    largest = np.maximum(largest, np.finfo(x.dtype).min)  # −inf where a row hides everything
    y = np.exp(x - largest)
    total = y.sum(axis=axis, keepdims=True)
    return y / np.where(total == 0, 1, total)


SOFTMAX = Exercise(
    F.softmax,
    results=(Result("y"),),
    cases=softmax_cases,
    answer=softmax,
    hints=(
        "What makes numbers positive whatever they are, and what makes them add to 1?",
        "y = exp(x − max x) / Σ exp(x − max x), maximum and sum along `axis`, kept as an axis of length 1",
        "notebook 02, step 4; np.max and np.sum with keepdims=True. In a row of nothing but −inf the maximum is −inf.",
    ),
    difficulty=1,
    section="§4 step 4",
    chapter="Self-attention",
    place=1,
    mistakes="""
- over the wrong axis:  every axis=axis -> axis=0
  The sum runs over the first axis instead of the one that `axis` names, which is the last unless the caller says
  otherwise: the weights of one row do not add to 1.
- always over the last axis:  every axis=axis -> axis=-1
  It does not use `axis`: the sum always runs over the last axis.
- over all numbers at once:  every axis=axis -> axis=None
  The sum runs over the whole array instead of along `axis`: all weights together add to 1, but each row must.
- largest logit not subtracted:
    x - largest -> x
    np.where(total == 0, 1, total) -> total
  The largest logit is not subtracted before the exponential. exp(710) is already too large for a float64, and inf/inf
  is NaN. Subtracting the largest entry of each row changes nothing and keeps exp at 1 or below.
- NaN where all is hidden:  x - largest -> x - x.max(axis=axis, keepdims=True)
  A row of nothing but −inf gives NaN: −inf − (−inf), or 0/0. Such a row hides everything, and its weights must be 0.
- uniform where all is hidden:  y / np.where(total == 0, 1, total) -> np.where(total == 0, 1 / x.shape[axis], y / total)
  A row of nothing but −inf gets the same weight everywhere. Such a row hides everything, and its weights must be 0.
- one maximum for all rows:  x - largest -> x - x.max()
  The maximum of the whole array is subtracted (np.max without an axis), not that of each row. Rows far below it
  underflow: all their exponentials are 0, and so are their weights. It takes the maximum along `axis`, with
  keepdims=True.
- maximum over the wrong axis:  x.max(axis=axis, keepdims=True) -> x.max(axis=0, keepdims=True)
  The maximum is taken over the first axis, so that entries of one row have different numbers subtracted, which does
  change the result. One number for a row: the maximum runs along `axis`, as the sum does.
- another number for the maximum:  x - largest -> x - x.mean(axis=axis, keepdims=True)
  The mean or the minimum of each row is subtracted, not its maximum. Numbers far above it still overflow in the
  exponential; below the maximum every exponent is 0 or less.
- largest absolute value for the maximum:
    x.max(axis=axis, keepdims=True) -> np.abs(x).max(axis=axis, keepdims=True)
    np.maximum(largest, np.finfo(x.dtype).min) -> np.minimum(largest, np.finfo(x.dtype).max)
  The largest absolute value of each row is subtracted instead of its maximum. In a row of large negative numbers all
  exponentials become 0. It is np.max(x), without abs.
- the sigmoid:  y / np.where(total == 0, 1, total) -> 1 / (1 + np.exp(largest - x))
  This is the sigmoid of every number by itself, 1/(1 + exp(−x)). The weights of a row must add to 1: the exponential
  divided by the sum of all exponentials.
- no exponential:  np.exp(x - largest) -> x - largest
  The numbers themselves are divided by their sum: the exponential is missing. It makes weights of either sign positive.
- only the largest:  y / np.where(total == 0, 1, total) -> np.where(x == x.max(axis=axis, keepdims=True), 1.0, 0.0)
  The largest entry gets weight 1 and all others 0 (argmax). Softmax gives every entry a share: the exponential divided
  by the sum of all exponentials.
- 1 added to the sum:  np.where(total == 0, 1, total) -> (1 + total)
  The denominator is 1 + Σ exp: the 1 is too much, and the weights do not add to 1.
- divided by the sum of the others:  np.where(total == 0, 1, total) -> np.where(total == y, 1, total - y)
  Each exponential is divided by the sum of the others. The sum in the denominator runs over all of them, its own as
  well.
- logits clipped:  largest = x.max -> x = np.clip(x, -50, 50); largest = x.max
  The logits are clipped (np.clip) against overflow: all beyond the limit count the same, and −inf is no longer −inf.
  Subtract the maximum of each row instead, which changes nothing.
- one sum for all rows:  y.sum(axis=axis, keepdims=True) -> y.sum()
  The sum in the denominator runs over the whole array (np.sum without an axis): all weights together add to 1, but each
  row must. The sum runs along `axis`, with keepdims=True.
- norm for sum:  y.sum(axis=axis, keepdims=True) -> np.sqrt((y * y).sum(axis=axis, keepdims=True))
  The exponentials are divided by their norm, the root of the sum of their squares: it is their sum, so that the weights
  add to 1.
- the smallest preferred:
    x.max(axis=axis, keepdims=True) -> (-x).max(axis=axis, keepdims=True)
    x - largest -> -x - largest
  The sign in the exponent is wrong, exp(−x): the smallest logit gets the largest weight. It is exp(x).
- powers of 2:  np.exp(x - largest) -> np.exp2(x - largest)
  The weights are made from 2ˣ (np.exp2) instead of eˣ (np.exp).
- divided by √S:  np.exp(x - largest) -> np.exp((x - largest) / np.sqrt(x.shape[axis]))
  The logits are divided by √S, the root of the row's length, before the exponential. Softmax has no scale of its own;
  the 1/√d_k of attention is not part of it.
- not divided by the sum:  y / np.where(total == 0, 1, total) -> y
  The exponentials are not divided by their sum: the weights do not add to 1.
- the logarithm of it:  y / np.where(total == 0, 1, total) -> np.log(y / np.where(total == 0, 1, total))
  This is log softmax: the logarithm of the weights is returned instead of the weights.
""",
)


# --- softmax_backward -------------------------------------------------------------------------------------------------


def softmax_backward_cases(rng):
    sizes = draw_sizes(rng, "B T S")
    x, dy = rng.normal(size=(2, *sizes.values()))
    hidden = F.softmax(np.where(rng.random(x.shape) < 0.3, -np.inf, x))
    return [
        Case("", (dy, F.softmax(x)), sizes=sizes),
        Case("axis=1", (dy, F.softmax(x, axis=1)), {"axis": 1}, sizes),
        Case("some weights 0", (dy, hidden), sizes=sizes),
        Case("one row, y of shape (S,)", (dy[0, 0], F.softmax(x[0, 0])), sizes=sizes),
    ]


def softmax_backward(dy, y, axis=-1):
    total = np.sum(dy * y, axis=axis, keepdims=True)
    return y * (dy - total)


SOFTMAX_BACKWARD = Exercise(
    F.softmax_backward,
    results=(Result("dx"),),
    cases=softmax_backward_cases,
    answer=softmax_backward,
    hints=(
        "If one logit grows, its own weight grows. What happens to all the others, which must still add to 1 with it?",
        "∂yᵢ/∂xⱼ = yᵢ (δᵢⱼ − yⱼ), so dx = y · (dy − Σ dy · y), the sum along `axis`",
        "notebook 06, softmax; y is all you need of the forward.",
    ),
    difficulty=2,
    section="behind §4 step 4",
    chapter="Backpropagation",
    place=8,
    mistakes="""
- sum missing:  y * (dy - total) -> y * dy
  The term −Σ dy · y is missing: this is y · dy. One larger weight makes all others smaller, because they add to 1.
- only the diagonal:  y * (dy - total) -> dy * y * (1 - y)
  This is dy · y · (1 − y), the diagonal of the Jacobian alone, as if each output depended on its own input only. Every
  x is in the sum under every y: the off-diagonal terms −yᵢ yⱼ are missing.
- over the wrong axis:  axis=axis -> axis=0
  The sum runs over the first axis instead of the one that `axis` names.
- always over the last axis:  axis=axis -> axis=-1
  It does not use `axis`: the sum always runs over the last axis.
- taken for the logits:
    total = -> y = F.softmax(y, axis); total =
  y goes through the softmax once more, as if it were the logits x. It is already the softmax, the forward's output.
- mean for sum:  np.sum -> np.mean
  A mean of dy · y along the axis is subtracted, too small by the length of the axis. It must be the sum.
- dy not weighted by y in the sum:  np.sum(dy * y -> np.sum(dy
  The sum is Σ dy instead of Σ dy · y: each dy counts with its own weight y.
- dy missing in the sum:  np.sum(dy * y -> np.sum(y * y
  The sum is Σ y · y instead of Σ dy · y: the upstream gradient is missing in it.
- sum added:  dy - total -> dy + total
  The sum Σ dy · y is added. Subtract it: a sign is wrong.
- sum not multiplied by y:  y * (dy - total) -> y * dy - total
  This is y · dy − Σ dy · y: the factor y stands before both terms, y · (dy − Σ dy · y). A bracket is missing.
- one sum for all rows:  np.sum(dy * y, axis=axis, keepdims=True) -> np.sum(dy * y)
  Σ dy · y runs over the whole array (np.sum without an axis). Each row has a softmax of its own, and so a sum of its
  own: along `axis`, with keepdims=True.
- y twice in the sum:  np.sum(dy * y -> np.sum(dy * y * y
  The sum is Σ dy · y² instead of Σ dy · y: y is in it once too often.
- y before the sum only:  y * (dy - total) -> dy - y * total
  This is dy − y · Σ dy · y: the factor y stands before both terms, y · (dy − Σ dy · y). Before the first dy it is
  missing.
- y before the sum twice:  y * (dy - total) -> y * (dy - y * total)
  This is y · (dy − y · Σ dy · y): y stands before the bracket, and inside, before the sum, once too often.
- diagonal and sum:  y * (dy - total) -> y * (1 - y) * (dy - total)
  The factor in front is y · (1 − y), the diagonal of the Jacobian, and the sum is subtracted as well. The sum holds the
  diagonal's −yᵢ yᵢ already: the factor is y alone.
- dy missing in the first term:  y * (dy - total) -> y * (1 - total)
  This is y · (1 − Σ dy · y): the upstream gradient dy is missing in the first term, y · (dy − Σ dy · y).
- dy · (1 − y):  y * (dy - total) -> dy * (1 - y)
  This is dy · (1 − y): half of the diagonal. It is y · (dy − Σ dy · y).
- only off the diagonal:  y * (dy - total) -> y * (dy * y - total)
  Only the terms off the diagonal are there, −yᵢ yⱼ. The diagonal is yᵢ (1 − yᵢ): the term y · dy is missing.
- plus off the diagonal:  y * (dy - total) -> y * (dy * (1 - 2 * y) + total)
  Off the diagonal the sign is wrong: ∂yᵢ/∂xⱼ = −yᵢ yⱼ there. If one logit grows, all other weights shrink.
- diagonal counted twice:  y * (dy - total) -> y * (dy * (1 - y) - total)
  This is y (1 − y) · dy − y · Σ dy · y, with the diagonal's −yᵢ yᵢ in both terms: the sum holds it already. It is y ·
  dy − y · Σ dy · y.
- backward of log softmax:
    np.sum(dy * y -> np.sum(dy
    y * (dy - total) -> dy - y * total
  This is dy − y · Σ dy, the backward of log softmax. Without the logarithm it is y · (dy − Σ dy · y).
- not multiplied by y:  y * (dy - total) -> dy - total
  The factor y in front is missing: dx = y · (dy − Σ dy · y).
""",
)

EXERCISES = [SOFTMAX, SOFTMAX_BACKWARD]
