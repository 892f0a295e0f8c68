"""The feed-forward network and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes
from .linear import _GRADIENT_MISTAKES, _without_heads, _wrong_gradients


def _feed_forward_cases(rng):
    sizes = draw_sizes(rng, "B H T D F")
    B, H, T, D, F_ = sizes.values()
    deep, sizes = sizes, _without_heads(sizes)
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


_OTHER_ACTIVATIONS = {
    "GELU for ReLU": F.gelu,
    "exact GELU for ReLU": lambda x: F.gelu(x, "none"),
    "tanh for ReLU": np.tanh,
    "sigmoid for ReLU": lambda x: 1 / (1 + np.exp(-x)),
    "SiLU for ReLU": lambda x: x / (1 + np.exp(-x)),
    "softmax for ReLU": F.softmax,
    "leaky ReLU for ReLU": lambda x: np.where(x > 0, x, 0.01 * x),
    "the absolute value for ReLU": np.abs,
    "leaky ReLU, slope 0.1, for ReLU": lambda x: np.where(x > 0, x, 0.1 * x),
    "ELU for ReLU": lambda x: np.where(x > 0, x, np.expm1(x)),
    "softplus for ReLU": lambda x: np.log1p(np.exp(x)),
    "0 and 1 for ReLU": lambda x: (x > 0).astype(float),
    "cut off at 1 as well": lambda x: np.clip(x, 0, 1),
    "the negative numbers kept": lambda x: np.minimum(x, 0),
    "np.max for np.maximum": lambda x: np.max(x, 0),
    "no ReLU": lambda x: x,
    "ReLU at the end instead of between": lambda x: x,
}


def _wrong_feed_forward(made, x, w1, b1, w2, b2):
    if made("w1 and w2 exchanged"):
        w1, w2 = w2, w1
    if made("b1 and b2 exchanged"):
        b1, b2 = b2, b1
    w1_used = w1.T if made("w1 transposed") else w1
    w2_used = w2.T if made("w2 transposed") else w2
    if made("w1ᵀ for w2"):
        w2_used = w1.T
    if made("w2ᵀ for w1"):
        w1_used = w2.T
    given = x
    if made("ReLU before the first layer"):
        x = np.maximum(x, 0)
    before = x @ w1_used
    late_b1 = made("b1 added after the ReLU")
    if not made("b1 forgotten") and not late_b1:
        before = before - b1 if made("b1 subtracted") else before + b1
    activation = next((f for name, f in _OTHER_ACTIVATIONS.items() if made(name)), lambda x: np.where(x > 0, x, 0))
    if made("ReLU before the first layer"):
        activation = _OTHER_ACTIVATIONS["no ReLU"]
    hidden = activation(before)
    if late_b1 and not made("b1 forgotten"):
        hidden = hidden + b1
    if made("b2 added before the product"):
        y = (hidden + b2) @ w2_used
    else:
        y = hidden @ w2_used
        if not made("b2 forgotten"):
            y = y + b2
    if made("ReLU at the end as well") or made("ReLU at the end instead of between"):
        y = np.maximum(y, 0)
    if made("x added"):
        y = y + given
    if made("hidden before the ReLU"):
        hidden = before
    if made("the mask for hidden"):
        hidden = before > 0
    if made("x for hidden"):
        hidden = given
    return (hidden, y) if made("y and hidden exchanged") else (y, hidden)


FEED_FORWARD = Exercise(
    F.feed_forward,
    (Result("y", "... D"), Result("hidden", "... F")),
    _feed_forward_cases,
    {
        "no ReLU": (
            "The ReLU between the two matrices is missing. Without it (x W₁) W₂ = x (W₁ W₂): the two are one matrix, "
            "and the width of the middle is for nothing."
        ),
        "hidden before the ReLU": (
            "The second result, hidden, is x W₁ + b₁ before the ReLU. It is what comes out of the ReLU, max(0, x W₁ + "
            "b₁): the backward needs that."
        ),
        "ReLU at the end instead of between": (
            "The ReLU stands after the second matrix instead of after the first. It belongs between the two; the "
            "output may be negative."
        ),
        "ReLU at the end as well": (
            "There is a second ReLU after the second matrix. The ReLU stands between the two only; the output may be "
            "negative."
        ),
        "ReLU before the first layer": (
            "The ReLU is applied to x, before the first matrix, instead of to x W₁ + b₁ between the two."
        ),
        "b1 forgotten": "The first bias is forgotten: hidden = max(0, x W₁ + b₁), here + b₁ is missing.",
        "b2 forgotten": "The second bias is forgotten: y = hidden W₂ + b₂, here + b₂ is missing.",
        "b1 added after the ReLU": (
            "b₁ is added after the ReLU, max(0, x W₁) + b₁. It stands inside: max(0, x W₁ + b₁) is never negative."
        ),
        "b2 added before the product": (
            "b₂ is added to hidden before the second matrix. It comes after: hidden W₂ + b₂."
        ),
        "b1 and b2 exchanged": "b₁ and b₂ are exchanged: b₁ is added after the first matrix, b₂ after the second.",
        "w1 and w2 exchanged": "W₁ and W₂ are exchanged: W₁ (D, F) comes first, W₂ (F, D) second.",
        "w1 transposed": "W₁ is transposed. A row is a token and W₁ is (D, F): x W₁, not x W₁ᵀ.",
        "w2 transposed": "W₂ is transposed. A row is a token and W₂ is (F, D): hidden W₂, not hidden W₂ᵀ.",
        "w1ᵀ for w2": (
            "The second product is with W₁ᵀ instead of W₂. The shapes fit, but W₂ is a matrix of its own: hidden W₂ + "
            "b₂."
        ),
        "w2ᵀ for w1": (
            "The first product is with W₂ᵀ instead of W₁. The shapes fit, but W₁ is a matrix of its own: x W₁ + b₁."
        ),
        "GELU for ReLU": "The activation is GELU (in the tanh form). Here it is the ReLU of the paper, max(0, ·).",
        "exact GELU for ReLU": (
            "The activation is GELU (in the exact form, with erf). Here it is the ReLU of the paper, max(0, ·)."
        ),
        "tanh for ReLU": "The activation is tanh. Here it is the ReLU of the paper, max(0, ·).",
        "sigmoid for ReLU": "The activation is the sigmoid. Here it is the ReLU of the paper, max(0, ·).",
        "SiLU for ReLU": (
            "The activation is x · sigmoid(x), SiLU or swish. Here it is the ReLU of the paper, max(0, ·)."
        ),
        "softmax for ReLU": (
            "The activation is a softmax over the hidden features. Here it is the ReLU of the paper, max(0, ·)."
        ),
        "leaky ReLU for ReLU": (
            "The activation is a leaky ReLU, which lets 0.01 of negative numbers pass. Here they become 0: max(0, ·)."
        ),
        "the absolute value for ReLU": (
            "The activation is the absolute value |·|: negative numbers turn positive. They become 0."
        ),
        "leaky ReLU, slope 0.1, for ReLU": (
            "The activation is a leaky ReLU with the slope 0.1 below 0. The ReLU is 0 there: max(0, ·)."
        ),
        "ELU for ReLU": "The activation is ELU, eˣ − 1 below 0. The ReLU is 0 there: max(0, ·).",
        "softplus for ReLU": "The activation is softplus, log(1 + eˣ). The ReLU is its sharp form: max(0, ·).",
        "0 and 1 for ReLU": (
            "The activation is the step, 1 where the number is positive. The ReLU keeps the number itself: max(0, ·)."
        ),
        "b1 subtracted": "b₁ is subtracted where it has to be added: x W₁ + b₁.",
        "cut off at 1 as well": (
            "The hidden numbers are cut off at 1 as well (np.clip). The ReLU has no upper end: max(0, ·)."
        ),
        "the negative numbers kept": (
            "The activation keeps the negative numbers and sets the positive ones to 0: min(0, ·) for max(0, ·)."
        ),
        "np.max for np.maximum": (
            "`np.max(x, 0)` is the largest number along axis 0, one axis fewer. The larger of each number and 0, "
            "element by element, is np.maximum(x, 0)."
        ),
        "x added": "x is added to the output. The residual path is not part of this function: y = hidden W₂ + b₂.",
        "the mask for hidden": (
            "The second result is the mask x W₁ + b₁ > 0 instead of hidden. It is the numbers that come out of the "
            "ReLU; the backward needs them for dW₂."
        ),
        "x for hidden": "The second result is x instead of hidden, the output of the ReLU, (..., F).",
        "y and hidden exchanged": "y and hidden are returned in each other's place: y comes first.",
    },
    _wrong_feed_forward,
    (
        "What would two matrices one after the other be worth with nothing between them?",
        "hidden = max(0, x W₁ + b₁), y = hidden W₂ + b₂",
        "notebook 04, sections 1 and 3; np.maximum, and your own linear. Return hidden too, as it comes out of the "
        "ReLU.",
    ),
    difficulty=1,
    section="§7",
    chapter="Feed-forward network and layer norm",
    place=5,
)


def _feed_forward_backward_cases(rng):
    cases = []
    for case in _feed_forward_cases(rng):
        x, w1, b1, w2, b2 = case.arguments
        _, hidden = F.feed_forward(x, w1, b1, w2, b2)
        cases.append(Case(case.label, (rng.normal(size=x.shape), x, hidden, w1, w2), sizes=case.sizes))
    return cases


def _wrong_feed_forward_backward(made, dy, x, hidden, w1, w2):
    active = hidden <= 0 if made("mask inverted") else hidden > 0
    if made("mask without b1"):
        active = x @ w1 > 0
    slope = active.astype(float)
    if made("hidden for its mask"):
        slope = hidden
    if made("the derivative of tanh"):
        slope = 1 - hidden**2
    if made("the derivative of the sigmoid"):
        slope = hidden * (1 - hidden)
    if made("the derivative of the leaky ReLU"):
        slope = np.where(hidden > 0, 1, 0.01)
    given, late = dy, made("mask on dx") or made("mask before W₂")
    dw2, db2 = _wrong_gradients(made, dy, x if made("x for hidden in dw2") else hidden)
    if made("mask before W₂"):
        dy = dy * slope
    if made("dy not sent through W₂"):
        dhidden = dy
    elif made("W₁ for W₂ᵀ"):
        dhidden = dy @ w1
    else:
        dhidden = dy @ (w2 if made("W₂ not transposed") else w2.T)
    if made("mask from the gradient"):
        slope = dhidden > 0
    if made("only the mask passed on"):
        dhidden = np.ones_like(dhidden)
    passed = dhidden
    if not made("no ReLU") and not late:
        passed = dhidden * slope
    if made("the mask for hidden in dw2"):
        dw2, _ = _wrong_gradients(made, given, (hidden > 0).astype(float))
    dw1_source = given if made("dw1 and db1 from dy") else dhidden if made("no ReLU in dw1 and db1") else passed
    first_input = hidden if made("hidden for x in dw1") else x
    dw1, db1 = _wrong_gradients(made, dw1_source, first_input)
    if made("no ReLU in dw1"):
        dw1, _ = _wrong_gradients(made, dhidden, first_input)
    if made("no ReLU in db1"):
        _, db1 = _wrong_gradients(made, dhidden, first_input)
    back = dhidden if made("no ReLU in dx") else passed
    if made("W₂ for W₁ᵀ"):
        dx = back @ w2
    else:
        dx = back @ (w1 if made("W₁ not transposed") else w1.T)
    if made("mask on dx"):
        dx = dx * (x > 0)
    if made("dy added to dx"):
        dx = dx + given
    if made("dx flattened"):
        dx = dx.reshape(-1, dx.shape[-1])
    if made("dx divided by the batch size"):
        dx = dx / len(x)
    if made("dx divided by the number of rows"):
        dx = dx / (x.size // x.shape[-1])
    if made("the two layers exchanged"):
        return dx, dw2, db2, dw1, db1
    if made("weights first, then biases"):
        return dx, dw1, dw2, db1, db2
    if made("dw1 and dw2 exchanged"):
        return dx, dw2, db1, dw1, db2
    if made("db1 and db2 exchanged"):
        return dx, dw1, db2, dw2, db1
    return (dw1, db1, dw2, db2, dx) if made("dx returned last") else (dx, dw1, db1, dw2, db2)


FEED_FORWARD_BACKWARD = Exercise(
    F.feed_forward_backward,
    (
        Result("dx", "... D"),
        Result("dw1", "D F"),
        Result("db1", "F"),
        Result("dw2", "F D"),
        Result("db2", "D"),
    ),
    _feed_forward_backward_cases,
    {
        "no ReLU": (
            "The backward of the ReLU is missing (the mask): dhidden goes on whole. It passes only where hidden > 0; "
            "`hidden >= 0` is true everywhere and hides nothing."
        ),
        "no ReLU in dx": (
            "dx comes from dhidden before the ReLU's backward: the mask hidden > 0 is missing there. Everything below "
            "the ReLU needs it."
        ),
        "no ReLU in dw1 and db1": (
            "dW₁ and db₁ come from dhidden before the ReLU's backward: the mask hidden > 0 is missing there. "
            "Everything below the ReLU needs it."
        ),
        "no ReLU in dw1": (
            "dW₁ comes from dhidden before the ReLU's backward: the mask hidden > 0 is missing there. Everything below "
            "the ReLU needs it."
        ),
        "no ReLU in db1": (
            "db₁ comes from dhidden before the ReLU's backward: the mask hidden > 0 is missing there. Everything below "
            "the ReLU needs it."
        ),
        "mask without b1": (
            "The mask is taken from x W₁ > 0, without b₁. The ReLU was given x W₁ + b₁: hidden > 0 says where it let "
            "pass."
        ),
        "the mask for hidden in dw2": (
            "dW₂ has the mask hidden > 0 in the place of hidden itself. The second layer was given hidden: dW₂ = "
            "hiddenᵀ dy."
        ),
        "mask inverted": (
            "The mask is the wrong way around: the gradient passes where hidden is 0. It passes where hidden > 0."
        ),
        "mask from the gradient": (
            "The mask is taken from the gradient, dhidden > 0. The ReLU let pass by the sign of its input, and so "
            "hidden > 0 decides; a gradient may have either sign."
        ),
        "mask on dx": (
            "The mask is in the wrong place: x > 0, on dx, at the end. The ReLU stands between the two matrices, so "
            "the mask hidden > 0 goes on dhidden."
        ),
        "mask before W₂": (
            "The mask is in the wrong place: on dy, before W₂ᵀ. Backwards the gradient first goes through W₂ᵀ and then "
            "through the ReLU: (dy W₂ᵀ) · (hidden > 0)."
        ),
        "hidden for its mask": (
            "dhidden is multiplied by hidden itself instead of by the mask hidden > 0: the slope of the ReLU is 1 "
            "where it passes, however large the number."
        ),
        "the derivative of the leaky ReLU": (
            "Where hidden is 0, 1/100 of the gradient passes, as in a leaky ReLU. Through the ReLU nothing does."
        ),
        "only the mask passed on": (
            "Behind the ReLU only the mask is left, without dhidden: the slope 1 has to be multiplied by the gradient, "
            "dhidden · (hidden > 0)."
        ),
        "the derivative of tanh": (
            "dhidden is multiplied by 1 − hidden², the slope of tanh. That of the ReLU is 1 where hidden > 0, else 0."
        ),
        "the derivative of the sigmoid": (
            "dhidden is multiplied by hidden (1 − hidden), the slope of the sigmoid. That of the ReLU is 1 where "
            "hidden > 0, else 0."
        ),
        "W₁ for W₂ᵀ": (
            "dhidden is dy W₁ where it has to be dy W₂ᵀ. The shapes fit, but the gradient goes back through the matrix "
            "the forward came through, transposed."
        ),
        "W₂ for W₁ᵀ": (
            "dx comes through W₂ where it has to come through W₁ᵀ. The shapes fit, but the gradient goes back through "
            "the matrix the forward came through, transposed."
        ),
        "W₂ not transposed": "dhidden is dy W₂ where it has to be dy W₂ᵀ: the transpose is missing.",
        "W₁ not transposed": "dx comes through W₁ where it has to come through W₁ᵀ: the transpose is missing.",
        "dy not sent through W₂": "W₂ is left out on the way back: dhidden = dy W₂ᵀ, here it is dy itself.",
        "x for hidden in dw2": (
            "dW₂ is made with x, the input of the first matrix. The second one was given hidden: dW₂ = hiddenᵀ dy."
        ),
        "hidden for x in dw1": (
            "dW₁ is made with hidden. The first matrix was given x: dW₁ = xᵀ times the gradient behind the ReLU."
        ),
        "dw1 and db1 from dy": (
            "dW₁ and db₁ are made from dy, the gradient of the output. The first matrix needs that of its own output: "
            "dy W₂ᵀ, through the ReLU."
        ),
        **_GRADIENT_MISTAKES,
        "dy added to dx": (
            "dy is added to dx, the gradient of a residual path. The forward has none: y = hidden W₂ + b₂."
        ),
        "dx flattened": (
            "dx has all rows in one axis. A gradient has the shape of its array: the last reshape, back to x.shape, is "
            "missing."
        ),
        "dx divided by the batch size": (
            "dx is divided by the batch size, 1/B too much. Any mean is the loss's doing and is in dy already."
        ),
        "dx divided by the number of rows": (
            "dx is divided by the number of rows, 1/(B·T) too much. Any mean is the loss's doing and is in dy already."
        ),
        "the two layers exchanged": (
            "The gradients of the two layers are returned in each other's place, as they are computed: dx, dw2, db2, "
            "dw1, db1. The order is dx, dw1, db1, dw2, db2."
        ),
        "weights first, then biases": (
            "The gradients come in the order dx, dw1, dw2, db1, db2. The order is dx, dw1, db1, dw2, db2."
        ),
        "dw1 and dw2 exchanged": "dw1 and dw2 are returned in each other's place. The order is dx, dw1, db1, dw2, db2.",
        "db1 and db2 exchanged": "db1 and db2 are returned in each other's place. The order is dx, dw1, db1, dw2, db2.",
        "dx returned last": "dx is returned last: dw1, db1, dw2, db2, dx. The order is dx, dw1, db1, dw2, db2.",
    },
    _wrong_feed_forward_backward,
    (
        "Read the forward from the bottom up: which of its three steps does the gradient meet first?",
        "dhidden = dy W₂ᵀ, then · (hidden > 0), then dx = dhidden W₁ᵀ; the gradients of W and b as in linear_backward",
        "notebook 06, section 2 and exercise 3; your own linear_backward, twice, and relu_backward between.",
    ),
    difficulty=2,
    section="behind §7",
    chapter="Backpropagation",
    place=7,
)

EXERCISES = [FEED_FORWARD, FEED_FORWARD_BACKWARD]
