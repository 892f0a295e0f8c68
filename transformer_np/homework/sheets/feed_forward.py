"""The feed-forward network and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes
from .linear import BIAS_MISTAKES, WEIGHT_MISTAKES, gradients, without_heads

# --- feed_forward -----------------------------------------------------------------------------------------------------


def feed_forward_cases(rng):
    sizes = draw_sizes(rng, "B H T D F")
    B, H, T, D, F_ = sizes.values()
    deep, sizes = sizes, without_heads(sizes)
    x = rng.normal(size=(B, H, T, D))
    w1, b1, w2, b2 = rng.normal(size=(D, F_)), rng.normal(size=F_), rng.normal(size=(F_, D)), rng.normal(size=D)
    v1, c1, v2, c2 = rng.normal(size=(D, D)), rng.normal(size=D), rng.normal(size=(D, D)), rng.normal(size=D)
    return [
        Case("", (x[:, 0], w1, b1, w2, b2), sizes=sizes),
        Case("x of shape (T, D)", (x[0, 0], w1, b1, w2, b2), sizes=sizes),
        Case("x of four axes", (x, w1, b1, w2, b2), sizes=deep),
        Case("one row, x of shape (D,)", (x[0, 0, 0], w1, b1, w2, b2), sizes=sizes),
        Case("d_ff = d_model", (x[:, 0], v1, c1, v2, c2), sizes=sizes | {"F": D}),
    ]


def feed_forward(x, w1, b1, w2, b2):
    before = x @ w1 + b1
    hidden = np.maximum(before, 0)
    y = hidden @ w2 + b2
    return y, hidden


FEED_FORWARD = Exercise(
    F.feed_forward,
    results=(Result("y", "... D"), Result("hidden", "... F")),
    cases=feed_forward_cases,
    answer=feed_forward,
    hints=(
        "What would two matrices one after the other be worth with nothing between them?",
        "hidden = max(0, x W₁ + b₁), y = hidden W₂ + b₂",
        "notebook 04, sections 1 and 3; np.maximum, and your own linear. Return hidden too, as it comes out of the "
        "ReLU.",
    ),
    difficulty=1,
    section="§7",
    chapter="Feed-forward network and layer norm",
    place=5,
    mistakes="""
- no ReLU:  np.maximum(before, 0) -> before
  The ReLU between the two matrices is missing. Without it (x W₁) W₂ = x (W₁ W₂): the two are one matrix, and the width
  of the middle is for nothing.
- hidden before the ReLU:  return y, hidden -> return y, before
  The second result, hidden, is x W₁ + b₁ before the ReLU. It is the output of the ReLU, max(0, x W₁ + b₁): the backward
  needs that.
- ReLU at the end instead of between:
    np.maximum(before, 0) -> before
    hidden @ w2 + b2 -> np.maximum(hidden @ w2 + b2, 0)
  The ReLU stands after the second matrix instead of after the first. It belongs between the two; the output may be
  negative.
- ReLU at the end as well:  hidden @ w2 + b2 -> np.maximum(hidden @ w2 + b2, 0)
  There is a second ReLU after the second matrix. The ReLU stands between the two only; the output may be negative.
- ReLU before the first layer:
    x @ w1 -> np.maximum(x, 0) @ w1
    np.maximum(before, 0) -> before
  The ReLU is applied to x, before the first matrix, instead of to x W₁ + b₁ between the two.
- b1 forgotten:  x @ w1 + b1 -> x @ w1
  The first bias is forgotten: hidden = max(0, x W₁ + b₁), here + b₁ is missing.
- b2 forgotten:  hidden @ w2 + b2 -> hidden @ w2
  The second bias is forgotten: y = hidden W₂ + b₂, here + b₂ is missing.
- b1 added after the ReLU:
    x @ w1 + b1 -> x @ w1
    np.maximum(before, 0) -> np.maximum(before, 0) + b1
  b₁ is added after the ReLU, max(0, x W₁) + b₁. It stands inside: max(0, x W₁ + b₁) is never negative.
- b2 added before the product:  hidden @ w2 + b2 -> (hidden + b2) @ w2
  b₂ is added to hidden before the second matrix. It comes after: hidden W₂ + b₂.
- b1 and b2 exchanged:
    x @ w1 + b1 -> x @ w1 + b2
    hidden @ w2 + b2 -> hidden @ w2 + b1
  b₁ and b₂ are exchanged: b₁ is added after the first matrix, b₂ after the second.
- w1 and w2 exchanged:
    x @ w1 -> x @ w2
    hidden @ w2 -> hidden @ w1
  W₁ and W₂ are exchanged: W₁ (D, F) comes first, W₂ (F, D) second.
- w1 transposed:  x @ w1 -> x @ w1.T
  W₁ is transposed. A row is a token and W₁ is (D, F): x W₁, not x W₁ᵀ.
- w2 transposed:  hidden @ w2 -> hidden @ w2.T
  W₂ is transposed. A row is a token and W₂ is (F, D): hidden W₂, not hidden W₂ᵀ.
- w1ᵀ for w2:  hidden @ w2 -> hidden @ w1.T
  The second product is with W₁ᵀ instead of W₂. The shapes fit, but W₂ is a matrix of its own: hidden W₂ + b₂.
- w2ᵀ for w1:  x @ w1 -> x @ w2.T
  The first product is with W₂ᵀ instead of W₁. The shapes fit, but W₁ is a matrix of its own: x W₁ + b₁.
- GELU for ReLU:  np.maximum(before, 0) -> F.gelu(before)
  The activation is GELU (in the tanh form). Here it is the ReLU of the paper, max(0, ·).
- exact GELU for ReLU:  np.maximum(before, 0) -> F.gelu(before, "none")
  The activation is GELU (in the exact form, with erf). Here it is the ReLU of the paper, max(0, ·).
- tanh for ReLU:  np.maximum(before, 0) -> np.tanh(before)
  The activation is tanh. Here it is the ReLU of the paper, max(0, ·).
- sigmoid for ReLU:  np.maximum(before, 0) -> 1 / (1 + np.exp(-before))
  The activation is the sigmoid. Here it is the ReLU of the paper, max(0, ·).
- SiLU for ReLU:  np.maximum(before, 0) -> before / (1 + np.exp(-before))
  The activation is x · sigmoid(x), SiLU or swish. Here it is the ReLU of the paper, max(0, ·).
- softmax for ReLU:  np.maximum(before, 0) -> F.softmax(before)
  The activation is a softmax over the hidden features. Here it is the ReLU of the paper, max(0, ·).
- leaky ReLU for ReLU:  np.maximum(before, 0) -> np.where(before > 0, before, 0.01 * before)
  The activation is a leaky ReLU, which lets 0.01 of negative numbers pass. Here they become 0: max(0, ·).
- the absolute value for ReLU:  np.maximum(before, 0) -> np.abs(before)
  The activation is the absolute value |·|: negative numbers turn positive. They become 0.
- leaky ReLU, slope 0.1, for ReLU:  np.maximum(before, 0) -> np.where(before > 0, before, 0.1 * before)
  The activation is a leaky ReLU with the slope 0.1 below 0. The ReLU is 0 there: max(0, ·).
- ELU for ReLU:  np.maximum(before, 0) -> np.where(before > 0, before, np.exp(before) - 1)
  The activation is ELU, eˣ − 1 below 0. The ReLU is 0 there: max(0, ·).
- softplus for ReLU:  np.maximum(before, 0) -> np.log(1 + np.exp(before))
  The activation is softplus, log(1 + eˣ). The ReLU is its sharp form: max(0, ·).
- 0 and 1 for ReLU:  np.maximum(before, 0) -> (before > 0).astype(float)
  The activation is the step, 1 where the number is positive. The ReLU keeps the number itself: max(0, ·).
- b1 subtracted:  x @ w1 + b1 -> x @ w1 - b1
  b₁ is subtracted. Add it: x W₁ + b₁.
- cut off at 1 as well:  np.maximum(before, 0) -> np.clip(before, 0, 1)
  The hidden numbers are cut off at 1 as well (np.clip). The ReLU has no upper end: max(0, ·).
- the negative numbers kept:  np.maximum(before, 0) -> np.minimum(before, 0)
  The activation keeps the negative numbers and sets the positive ones to 0: min(0, ·) for max(0, ·).
- np.max for np.maximum:  np.maximum(before, 0) -> np.max(before, 0)
  `np.max(x, 0)` is the largest number along axis 0, one axis fewer. The larger of each number and 0, element by
  element, is np.maximum(x, 0).
- x added:  hidden @ w2 + b2 -> hidden @ w2 + b2 + x
  x is added to the output. The residual path is not part of this function: y = hidden W₂ + b₂.
- the mask for hidden:  return y, hidden -> return y, before > 0
  The second result is the mask x W₁ + b₁ > 0 instead of hidden. It is the numbers that come out of the ReLU; the
  backward needs them for dW₂.
- x for hidden:  return y, hidden -> return y, x
  The second result is x instead of hidden, the output of the ReLU, (..., F).
- y and hidden exchanged:  return y, hidden -> return hidden, y
  y and hidden are returned in each other's place: y comes first.
""",
)


# --- feed_forward_backward --------------------------------------------------------------------------------------------


def feed_forward_backward_cases(rng):
    cases = []
    for case in feed_forward_cases(rng):
        x, w1, b1, w2, b2 = case.arguments
        _, hidden = F.feed_forward(x, w1, b1, w2, b2)
        cases.append(Case(case.label, (rng.normal(size=x.shape), x, hidden, w1, w2), sizes=case.sizes))
    return cases


def feed_forward_backward(dy, x, hidden, w1, w2):
    dw2, db2 = gradients(dy, hidden)
    dhidden = dy @ w2.T
    dbefore = dhidden * (hidden > 0)
    dw1, db1 = gradients(dbefore, x)
    dx = dbefore @ w1.T
    return dx, dw1, db1, dw2, db2


FEED_FORWARD_BACKWARD = Exercise(
    F.feed_forward_backward,
    results=(
        Result("dx", "... D"),
        Result("dw1", "D F"),
        Result("db1", "F"),
        Result("dw2", "F D"),
        Result("db2", "D"),
    ),
    cases=feed_forward_backward_cases,
    answer=feed_forward_backward,
    hints=(
        "Read the forward from the bottom up: which of its three steps does the gradient meet first?",
        "dhidden = dy W₂ᵀ, then · (hidden > 0), then dx = dhidden W₁ᵀ; the gradients of W and b as in linear_backward",
        "notebook 06, section 2 and exercise 3; your own linear_backward, twice, and relu_backward between.",
    ),
    difficulty=2,
    section="behind §7",
    chapter="Backpropagation",
    place=7,
    mistakes="""
- no ReLU:  dhidden * (hidden > 0) -> dhidden
  The backward of the ReLU is missing (the mask): dhidden goes on whole. It passes only where hidden > 0; `hidden >= 0`
  is true everywhere and hides nothing.
- no ReLU in dx:  dbefore @ w1.T -> dhidden @ w1.T
  dx comes from dhidden before the ReLU's backward: the mask hidden > 0 is missing there. Everything below the ReLU
  needs it.
- no ReLU in dw1 and db1:  gradients(dbefore, x) -> gradients(dhidden, x)
  dW₁ and db₁ come from dhidden before the ReLU's backward: the mask hidden > 0 is missing there. Everything below the
  ReLU needs it.
- no ReLU in dw1:  gradients(dbefore, x) -> gradients(dhidden, x)[0], gradients(dbefore, x)[1]
  dW₁ comes from dhidden before the ReLU's backward: the mask hidden > 0 is missing there. Everything below the ReLU
  needs it.
- no ReLU in db1:  gradients(dbefore, x) -> gradients(dbefore, x)[0], gradients(dhidden, x)[1]
  db₁ comes from dhidden before the ReLU's backward: the mask hidden > 0 is missing there. Everything below the ReLU
  needs it.
- mask without b1:  hidden > 0 -> x @ w1 > 0
  The mask is taken from x W₁ > 0, without b₁. The ReLU was given x W₁ + b₁: hidden > 0 says where it let pass.
- the mask for hidden in dw2:  gradients(dy, hidden) -> gradients(dy, (hidden > 0).astype(float))
  dW₂ has the mask hidden > 0 in the place of hidden itself. The second layer was given hidden: dW₂ = hiddenᵀ dy.
- mask inverted:  hidden > 0 -> hidden <= 0
  The mask is the wrong way around: the gradient passes where hidden is 0. It passes where hidden > 0.
- mask from the gradient:  hidden > 0 -> dhidden > 0
  The mask is taken from the gradient, dhidden > 0. The ReLU let pass by the sign of its input, and so hidden > 0
  decides; a gradient may have either sign.
- mask on dx:
    dhidden * (hidden > 0) -> dhidden
    dbefore @ w1.T -> dbefore @ w1.T * (x > 0)
  The mask is in the wrong place: x > 0, on dx, at the end. The ReLU stands between the two matrices, so the mask hidden
  > 0 goes on dhidden.
- mask before W₂:
    dy @ w2.T -> (dy * (hidden > 0)) @ w2.T
    dhidden * (hidden > 0) -> dhidden
  The mask is in the wrong place: on dy, before W₂ᵀ. Backwards the gradient first goes through W₂ᵀ and then through the
  ReLU: (dy W₂ᵀ) · (hidden > 0).
- hidden for its mask:  (hidden > 0) -> hidden
  dhidden is multiplied by hidden itself instead of by the mask hidden > 0: the slope of the ReLU is 1 where it passes,
  however large the number.
- the derivative of the leaky ReLU:  (hidden > 0) -> np.where(hidden > 0, 1, 0.01)
  Where hidden is 0, 1/100 of the gradient passes, as in a leaky ReLU. Through the ReLU nothing does.
- only the mask passed on:  dhidden * (hidden > 0) -> (hidden > 0).astype(float)
  Behind the ReLU only the mask is left, without dhidden: the slope 1 has to be multiplied by the gradient, dhidden ·
  (hidden > 0).
- the derivative of tanh:  (hidden > 0) -> (1 - hidden**2)
  dhidden is multiplied by 1 − hidden², the slope of tanh. That of the ReLU is 1 where hidden > 0, else 0.
- the derivative of the sigmoid:  (hidden > 0) -> hidden * (1 - hidden)
  dhidden is multiplied by hidden (1 − hidden), the slope of the sigmoid. That of the ReLU is 1 where hidden > 0, else
  0.
- W₁ for W₂ᵀ:  dy @ w2.T -> dy @ w1
  dhidden is dy W₁. It must be dy W₂ᵀ. The shapes fit, but the gradient goes back through the matrix the forward came
  through, transposed.
- W₂ for W₁ᵀ:  dbefore @ w1.T -> dbefore @ w2
  dx comes through W₂. It must come through W₁ᵀ. The shapes fit, but the gradient goes back through the matrix the
  forward came through, transposed.
- W₂ not transposed:  dy @ w2.T -> dy @ w2
  dhidden is dy W₂. It must be dy W₂ᵀ: the transpose is missing.
- W₁ not transposed:  dbefore @ w1.T -> dbefore @ w1
  dx comes through W₁. It must come through W₁ᵀ: the transpose is missing.
- dy not sent through W₂:  dy @ w2.T -> dy
  W₂ is left out on the way back: dhidden = dy W₂ᵀ, here it is dy itself.
- x for hidden in dw2:  gradients(dy, hidden) -> gradients(dy, x)
  dW₂ is made with x, the input of the first matrix. The second one was given hidden: dW₂ = hiddenᵀ dy.
- hidden for x in dw1:  gradients(dbefore, x) -> gradients(dbefore, hidden)
  dW₁ is made with hidden. The first matrix was given x: dW₁ = xᵀ times the gradient behind the ReLU.
- dw1 and db1 from dy:  gradients(dbefore, x) -> gradients(dy, x)
  dW₁ and db₁ are made from dy, the gradient of the output. The first matrix needs that of its own output: dy W₂ᵀ,
  through the ReLU.
"""
    + BIAS_MISTAKES
    + WEIGHT_MISTAKES
    + """
- dy added to dx:  dbefore @ w1.T -> dbefore @ w1.T + dy
  dy is added to dx, the gradient of a residual path. The forward has none: y = hidden W₂ + b₂.
- dx flattened:  dbefore @ w1.T -> (dbefore @ w1.T).reshape(-1, x.shape[-1])
  dx has all rows in one axis. A gradient has the shape of its array: the last reshape, back to x.shape, is missing.
- dx divided by the batch size:  dbefore @ w1.T -> dbefore @ w1.T / len(x)
  dx is divided by the batch size, 1/B too much. If the loss is a mean, that is already in dy.
- dx divided by the number of rows:  dbefore @ w1.T -> dbefore @ w1.T / (x.size // x.shape[-1])
  dx is divided by the number of rows, 1/(B·T) too much. If the loss is a mean, that is already in dy.
- the two layers exchanged:  return dx, dw1, db1, dw2, db2 -> return dx, dw2, db2, dw1, db1
  The gradients of the two layers are returned in each other's place, as they are computed: dx, dw2, db2, dw1, db1. The
  order is dx, dw1, db1, dw2, db2.
- weights first, then biases:  return dx, dw1, db1, dw2, db2 -> return dx, dw1, dw2, db1, db2
  The gradients come in the order dx, dw1, dw2, db1, db2. The order is dx, dw1, db1, dw2, db2.
- dw1 and dw2 exchanged:  return dx, dw1, db1, dw2, db2 -> return dx, dw2, db1, dw1, db2
  dw1 and dw2 are returned in each other's place. The order is dx, dw1, db1, dw2, db2.
- db1 and db2 exchanged:  return dx, dw1, db1, dw2, db2 -> return dx, dw1, db2, dw2, db1
  db1 and db2 are returned in each other's place. The order is dx, dw1, db1, dw2, db2.
- dx returned last:  return dx, dw1, db1, dw2, db2 -> return dw1, db1, dw2, db2, dx
  dx is returned last: dw1, db1, dw2, db2, dx. The order is dx, dw1, db1, dw2, db2.
""",
)

EXERCISES = [FEED_FORWARD, FEED_FORWARD_BACKWARD]
