"""The feed-forward network with a gate, and its backward."""

from dataclasses import replace

import numpy as np  # noqa: F401 - for the mistakes

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes, extended
from .activations import sigmoid  # noqa: F401 - for the mistakes
from .linear import WEIGHT_MISTAKES, gradients, without_heads

# --- gated_feed_forward -----------------------------------------------------------------------------------------------


def gated_cases(rng):
    sizes = draw_sizes(rng, "B H T D F")
    B, H, T, D, F_ = sizes.values()
    deep, sizes = sizes, without_heads(sizes)
    x = rng.normal(size=(B, H, T, D))

    def matrices(D, F_):
        """So that the gates are about 1.5, where the two forms of GELU differ most, and the values about 1."""
        w_gate, w1 = rng.normal(size=(2, D, F_)) / D**0.5
        return 1.5 * w_gate, w1, rng.normal(size=(F_, D))

    w = matrices(D, F_)
    return [
        Case("", (x[:, 0], *w), sizes=sizes),
        Case("x of shape (T, D)", (x[0, 0], *w), sizes=sizes),
        Case("x of four axes", (x, *w), sizes=deep),
        Case("one row, x of shape (D,)", (x[0, 0, 0], *w), sizes=sizes),
        Case("d_ff = d_model", (x[:, 0], *matrices(D, D)), sizes=sizes | {"F": D}),
        extended(Case('activation="silu"', (x[:, 0], *w), {"activation": "silu"}, sizes)),
    ]


def gated_feed_forward(x, w_gate, w1, w2, activation="gelu_tanh"):
    gate = x @ w_gate
    value = x @ w1
    hidden = F.gelu(gate) * value
    if activation == "silu":
        hidden = F.silu(gate) * value
    y = hidden @ w2
    return y, gate, value


GATED_FEED_FORWARD = Exercise(
    F.gated_feed_forward,
    results=(Result("y", "... D"), Result("gate", "... F"), Result("value", "... F")),
    cases=gated_cases,
    answer=gated_feed_forward,
    hints=(
        "A ReLU only cuts features off. How can one matrix decide how much of the features of another one passes?",
        "gate = x W_g, value = x W₁, y = (GELU(gate) · value) W₂",
        "notebook 13; your own linear and gelu. There are no biases; return gate before the GELU.",
    ),
    difficulty=1,
    section="Shazeer 2020",
    chapter="T5",
    place=8,
    mistakes="""
- no GELU:  F.gelu(gate) -> gate
  The GELU is missing: the gate x W_g is multiplied as it is (a bilinear layer). FFN(x) = (GELU(x W_g) · x W₁) W₂.
- the exact GELU:  F.gelu(gate) -> F.gelu(gate, "none")
  The GELU is the exact one, with erf. Here it is the one with tanh, the default of gelu, as in T5 v1.1.
- ReLU for GELU:  F.gelu(gate) -> np.maximum(gate, 0)
  The gate goes through a ReLU (ReGLU). Here it is the GELU: FFN(x) = (GELU(x W_g) · x W₁) W₂.
- sigmoid for GELU:  F.gelu(gate) -> sigmoid(gate)
  The gate goes through a sigmoid (GLU). Here it is the GELU: FFN(x) = (GELU(x W_g) · x W₁) W₂.
- SiLU for GELU:  F.gelu(gate) -> gate * sigmoid(gate)
  The gate goes through x · sigmoid(x), SiLU or swish (SwiGLU). Here it is the GELU: FFN(x) = (GELU(x W_g) · x W₁) W₂.
- x σ(1.702 x) for GELU:  F.gelu(gate) -> gate * sigmoid(1.702 * gate)
  The GELU is x · sigmoid(1.702 x), a coarser approximation. Here it is the one with tanh.
- tanh for GELU:  F.gelu(gate) -> np.tanh(gate)
  The gate goes through a tanh. Here it is the GELU: FFN(x) = (GELU(x W_g) · x W₁) W₂.
- softmax for GELU:  F.gelu(gate) -> F.softmax(gate)
  The gate goes through a softmax over the features. Here it is the GELU: FFN(x) = (GELU(x W_g) · x W₁) W₂.
- GELU without x in front:  F.gelu(gate) -> (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3))) / 2
  The gate is Φ(x W_g), between 0 and 1: the factor in front is missing, GELU(x) = x Φ(x).
- GELU of the value instead:  F.gelu(gate) * value -> gate * F.gelu(value)
  The GELU is on the wrong factor: x W_g · GELU(x W₁). It is on the gate: FFN(x) = (GELU(x W_g) · x W₁) W₂.
- GELU of both:  F.gelu(gate) * value -> F.gelu(gate) * F.gelu(value)
  Both factors go through the GELU. Only the gate does: FFN(x) = (GELU(x W_g) · x W₁) W₂.
- GELU of the product:  F.gelu(gate) * value -> F.gelu(gate * value)
  The GELU is of the product, GELU(x W_g · x W₁). It is on the gate alone: FFN(x) = (GELU(x W_g) · x W₁) W₂.
- GELU at the end as well:  hidden @ w2 -> F.gelu(hidden @ w2)
  There is a second GELU after W₂. There is none at the end: FFN(x) = (GELU(x W_g) · x W₁) W₂.
- GELU of W₁ without gate:  F.gelu(gate) * value -> F.gelu(value)
  This is a plain feed-forward network, GELU(x W₁) W₂: the gate x W_g is not used. FFN(x) = (GELU(x W_g) · x W₁) W₂.
- sum for product:  F.gelu(gate) * value -> F.gelu(gate) + value
  The two factors are added, GELU(x W_g) + x W₁. They are multiplied: FFN(x) = (GELU(x W_g) · x W₁) W₂.
- value left out:  F.gelu(gate) * value -> F.gelu(gate)
  The value x W₁ is left out, GELU(x W_g) W₂: it is a product of two. FFN(x) = (GELU(x W_g) · x W₁) W₂.
- gate left out:  F.gelu(gate) * value -> value
  The gate is left out, x W₁ W₂: it is a product of two. FFN(x) = (GELU(x W_g) · x W₁) W₂.
- gate multiplied by itself:  F.gelu(gate) * value -> F.gelu(gate) * gate
  The gate is multiplied by itself, GELU(x W_g) · x W_g. The other factor is the value, x W₁: FFN(x) = (GELU(x W_g) · x
  W₁) W₂.
- 1 − gate:  F.gelu(gate) * value -> (1 - F.gelu(gate)) * value
  The value is multiplied by 1 − GELU(x W_g), the gate the wrong way round. FFN(x) = (GELU(x W_g) · x W₁) W₂.
- W_g and W₁ exchanged:
    x @ w_gate -> x @ w1
    x @ w1 -> x @ w_gate
  W_g and W₁ are exchanged: W_g makes the gate, W₁ the value. FFN(x) = (GELU(x W_g) · x W₁) W₂.
- W_g for both:  x @ w1 -> x @ w_gate
  Both factors are made with W_g. The value has a matrix of its own, W₁: FFN(x) = (GELU(x W_g) · x W₁) W₂.
- W₁ for both:  x @ w_gate -> x @ w1
  Both factors are made with W₁. The gate has a matrix of its own, W_g: FFN(x) = (GELU(x W_g) · x W₁) W₂.
- W_g transposed:  x @ w_gate -> x @ w_gate.T
  W_g is transposed. A row is a token and W_g is (D, F): x W_g, not x W_gᵀ.
- W₁ transposed:  x @ w1 -> x @ w1.T
  W₁ is transposed. A row is a token and W₁ is (D, F): x W₁, not x W₁ᵀ.
- W₂ transposed:  hidden @ w2 -> hidden @ w2.T
  W₂ is transposed. A row is a token and W₂ is (F, D): no transpose before it.
- W₂ᵀ for W_g:  x @ w_gate -> x @ w2.T
  The gate is made with W₂ᵀ instead of W_g. The shapes fit, but W_g is a matrix of its own.
- W₂ᵀ for W₁:  x @ w1 -> x @ w2.T
  The value is made with W₂ᵀ instead of W₁. The shapes fit, but W₁ is a matrix of its own.
- W₁ᵀ for W₂:  hidden @ w2 -> hidden @ w1.T
  The last product is with W₁ᵀ instead of W₂. The shapes fit, but W₂ is a matrix of its own.
- W_gᵀ for W₂:  hidden @ w2 -> hidden @ w_gate.T
  The last product is with W_gᵀ instead of W₂. The shapes fit, but W₂ is a matrix of its own.
- x added:  hidden @ w2 -> hidden @ w2 + x
  x is added to the output. The residual path is not part of this function: FFN(x) = (GELU(x W_g) · x W₁) W₂.
- divided by √d_model:  hidden @ w2 -> hidden @ w2 / np.sqrt(x.shape[-1])
  The output is divided by √d_model. There is no scale in it: FFN(x) = (GELU(x W_g) · x W₁) W₂.
- gate after the GELU:  return y, gate -> return y, F.gelu(gate)
  The returned gate is GELU(x W_g). It is x W_g, before the GELU: the backward needs the slope there.
- hidden for gate:  return y, gate -> return y, hidden
  The returned gate is the product that W₂ is given. It is x W_g alone, before the GELU.
- hidden for value:  y, gate, value -> y, gate, hidden
  The returned value is the product that W₂ is given. It is x W₁ alone: the backward needs both factors.
- x for value:  y, gate, value -> y, gate, x
  The returned value is x. It is the factor x W₁, (..., F).
- gate and value returned exchanged:  y, gate, value -> y, value, gate
  gate and value are returned in each other's place: y, gate, value.
- y returned last:  y, gate, value -> gate, value, y
  y is returned last. The order is y, gate, value.
""",
)


# --- gated_feed_forward_backward --------------------------------------------------------------------------------------


def gated_backward_cases(rng):
    cases = []
    for case in gated_cases(rng):
        x, *matrices = case.arguments
        y, gate, value = F.gated_feed_forward(*case.arguments, **case.options)
        cases.append(replace(case, arguments=(rng.normal(size=y.shape), x, gate, value, *matrices)))
    return cases


def gated_feed_forward_backward(dy, x, gate, value, w_gate, w1, w2, activation="gelu_tanh"):
    if activation == "silu":
        return F.gated_feed_forward_backward(dy, x, gate, value, w_gate, w1, w2, activation)
    opened = F.gelu(gate)
    dw2, _ = gradients(dy, opened * value)
    dhidden = dy @ w2.T
    dgate = F.gelu_backward(dhidden * value, gate)
    dvalue = dhidden * opened
    dw_gate, _ = gradients(dgate, x)
    dw1, _ = gradients(dvalue, x)
    dx = dgate @ w_gate.T + dvalue @ w1.T
    return dx, dw_gate, dw1, dw2


GATED_FEED_FORWARD_BACKWARD = Exercise(
    F.gated_feed_forward_backward,
    results=(Result("dx", "... D"), Result("dw_gate", "D F"), Result("dw1", "D F"), Result("dw2", "F D")),
    cases=gated_backward_cases,
    answer=gated_feed_forward_backward,
    hints=(
        "Two factors are multiplied, and x is in both. What does each factor get, and how many ways lead back to x?",
        "dhidden = dy W₂ᵀ, dgate = dhidden · value · GELU′(gate), dvalue = dhidden · GELU(gate), dx = dgate W_gᵀ + "
        "dvalue W₁ᵀ",
        "notebook 13; your own linear_backward, three times, and gelu_backward. W₂ was given gelu(gate) · value.",
    ),
    difficulty=3,
    section="Shazeer 2020",
    chapter="T5",
    place=9,
    mistakes="""
- value missing in the gate's gradient:  dhidden * value -> dhidden
  The value is missing in the gradient of the gate. Each factor of a product gets the gradient times the other one:
  dgate = dhidden · value · GELU′(gate).
- GELU(gate) missing in the value's gradient:  dhidden * opened -> dhidden
  GELU(gate) is missing in the gradient of the value. Each factor of a product gets the gradient times the other one:
  dvalue = dhidden · GELU(gate).
- gate for GELU(gate) in the value's gradient:  dhidden * opened -> dhidden * gate
  The gradient of the value is dhidden · gate. The value was multiplied by GELU(gate): dvalue = dhidden · GELU(gate).
- each factor times itself:
    dhidden * value -> dhidden * opened
    dhidden * opened -> dhidden * value
  Each factor gets the gradient times itself. Each factor of a product gets the gradient times the other one: dvalue =
  dhidden · GELU(gate), and dhidden · value goes on to the gate.
- dgate and dvalue exchanged:  dw_gate, _ = -> dgate, dvalue = dvalue, dgate; dw_gate, _ =
  The two gradients go on through each other's matrix: that of the gate, dhidden · value · GELU′(gate), belongs to W_g,
  that of the value, dhidden · GELU(gate), to W₁.
- gate's gradient without dy:  dhidden * value -> value
  The gradient of the gate is value · GELU′(gate): dhidden is missing in it.
- gate taken for GELU(gate):  opened = F.gelu(gate) -> opened = gate
  `gate` is used as if it were GELU(gate) already. It is x W_g, before the GELU: the factor beside the value is
  gelu(gate).
- the slope of GELU missing:  F.gelu_backward(dhidden * value, gate) -> dhidden * value
  The backward of the GELU is missing: the gradient of the gate is dhidden · value · GELU′(gate).
- GELU for its slope:  F.gelu_backward(dhidden * value, gate) -> dhidden * value * opened
  The gradient of the gate has GELU(gate) in it where its slope GELU′(gate) belongs: gelu_backward.
- Φ for the slope:
    F.gelu_backward(dhidden * value, gate) ->
        dhidden * value * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3))) / 2
  GELU′ is taken to be Φ(gate), (1 + g)/2. That is one term of the product rule; the other is x · g′/2.
- the slope of the exact GELU:  F.gelu_backward(dhidden * value, gate) -> F.gelu_backward(dhidden * value, gate, "none")
  The slope is that of the exact GELU, with erf. The forward has the one with tanh, the default of gelu_backward.
- the slope of the ReLU:  F.gelu_backward(dhidden * value, gate) -> dhidden * value * (gate > 0)
  The slope is that of the ReLU, 1 where gate > 0. The forward has the GELU.
- the slope of the sigmoid:
    F.gelu_backward(dhidden * value, gate) -> dhidden * value * sigmoid(gate) * (1 - sigmoid(gate))
  The slope is that of the sigmoid (GLU). The forward has the GELU.
- the slope of SiLU:
    F.gelu_backward(dhidden * value, gate) -> dhidden * value * sigmoid(gate) * (1 + gate * (1 - sigmoid(gate)))
  The slope is that of x · sigmoid(x), SiLU (SwiGLU). The forward has the GELU.
- the slope of the tanh:  F.gelu_backward(dhidden * value, gate) -> dhidden * value * (1 - np.tanh(gate) ** 2)
  The slope is that of the tanh. The forward has the GELU.
- the slope at GELU(gate):  F.gelu_backward(dhidden * value, gate) -> F.gelu_backward(dhidden * value, opened)
  The slope is taken at GELU(gate). It is taken where the GELU was, at gate: GELU′(gate).
- the slope at the value:  F.gelu_backward(dhidden * value, gate) -> F.gelu_backward(dhidden * value, value)
  The slope of the GELU is taken at the value. The GELU was on the gate: GELU′(gate).
- the slope at the product:  F.gelu_backward(dhidden * value, gate) -> F.gelu_backward(dhidden * value, gate * value)
  The slope of the GELU is taken at gate · value. The GELU was on the gate alone: GELU′(gate).
- GELU(value) for GELU(gate):  dhidden * opened -> dhidden * F.gelu(value)
  The gradient of the value is dhidden · GELU(value). The value's factor is GELU(gate): dvalue = dhidden · GELU(gate).
- the slope of GELU on the value too:  dhidden * opened -> F.gelu_backward(dhidden * opened, gate)
  The slope of the GELU is in the gradient of the value too. The value went through no GELU: dvalue = dhidden ·
  GELU(gate).
- gate for GELU(gate) in dW₂:  gradients(dy, opened * value) -> gradients(dy, gate * value)
  dW₂ is made with gate · value. W₂ was given GELU(gate) · value: dW₂ = (GELU(gate) · value)ᵀ dy.
- dW₂ from the gate alone:  gradients(dy, opened * value) -> gradients(dy, opened)
  dW₂ is made with GELU(gate) alone. W₂ was given the product: dW₂ = (GELU(gate) · value)ᵀ dy.
- dW₂ from the value alone:  gradients(dy, opened * value) -> gradients(dy, value)
  dW₂ is made with the value alone. W₂ was given the product: dW₂ = (GELU(gate) · value)ᵀ dy.
- x for hidden in dW₂:  gradients(dy, opened * value) -> gradients(dy, x)
  dW₂ is made with x. W₂ was given the product: dW₂ = (GELU(gate) · value)ᵀ dy.
- hidden for x in dW₁ and dW_g:
    gradients(dgate, x) -> gradients(dgate, opened * value)
    gradients(dvalue, x) -> gradients(dvalue, opened * value)
  dW₁ and dW_g are made with the product that W₂ was given. These two matrices were given x.
- dW₁ and dW_g from dy:
    gradients(dgate, x) -> gradients(dy, x)
    gradients(dvalue, x) -> gradients(dy, x)
  dW₁ and dW_g are made from dy, the gradient of the output. They need those of value and gate, behind W₂ᵀ and the
  product.
- dy not sent through W₂:  dy @ w2.T -> dy
  W₂ is left out on the way back: dhidden = dy W₂ᵀ, here it is dy itself.
- W₂ not transposed:  dy @ w2.T -> dy @ w2
  dhidden is dy W₂. It must be dy W₂ᵀ: the transpose is missing.
- W₁ for W₂ᵀ:  dy @ w2.T -> dy @ w1
  dhidden is dy W₁. It must be dy W₂ᵀ. The shapes fit, but it is another matrix.
- W_g for W₂ᵀ:  dy @ w2.T -> dy @ w_gate
  dhidden is dy W_g. It must be dy W₂ᵀ. The shapes fit, but it is another matrix.
- dx through the gate only:  dgate @ w_gate.T + dvalue @ w1.T -> dgate @ w_gate.T
  dx comes through the gate only. x went into both factors, so both gradients add: dx = dgate W_gᵀ + dvalue W₁ᵀ.
- dx through the value only:  dgate @ w_gate.T + dvalue @ w1.T -> dvalue @ w1.T
  dx comes through the value only. x went into both factors, so both gradients add: dx = dgate W_gᵀ + dvalue W₁ᵀ.
- dx a difference:  dgate @ w_gate.T + dvalue @ w1.T -> dvalue @ w1.T - dgate @ w_gate.T
  The two ways to x are subtracted. Add it: dx = dgate W_gᵀ + dvalue W₁ᵀ.
- dx a mean of both ways:  dgate @ w_gate.T + dvalue @ w1.T -> (dgate @ w_gate.T + dvalue @ w1.T) / 2
  The two ways to x are averaged, a factor ½ too much: dx = dgate W_gᵀ + dvalue W₁ᵀ, a sum.
- W₁ and W_g exchanged in dx:  dgate @ w_gate.T + dvalue @ w1.T -> dgate @ w1.T + dvalue @ w_gate.T
  In dx the two matrices are exchanged: dgate goes back through W_gᵀ, dvalue through W₁ᵀ.
- W₁ᵀ for both in dx:  dgate @ w_gate.T -> dgate @ w1.T
  In dx both gradients go back through W₁ᵀ. That of the gate goes through W_gᵀ.
- W_gᵀ for both in dx:  dvalue @ w1.T -> dvalue @ w_gate.T
  In dx both gradients go back through W_gᵀ. That of the value goes through W₁ᵀ.
- W₂ for W₁ᵀ and W_gᵀ:  dgate @ w_gate.T + dvalue @ w1.T -> dgate @ w2 + dvalue @ w2
  dx comes through W₂. It must come through W_gᵀ and W₁ᵀ. The shapes fit, but it is another matrix.
- W₁ and W_g not transposed:  dgate @ w_gate.T + dvalue @ w1.T -> dgate @ w_gate + dvalue @ w1
  dx is made with W_g and W₁. It needs W_gᵀ and W₁ᵀ: the transpose is missing.
"""
    + WEIGHT_MISTAKES
    + """
- dy added to dx:  return dx -> return dx + dy
  dy is added to dx, the gradient of a residual path. The forward has none: FFN(x) = (GELU(x W_g) · x W₁) W₂.
- dx flattened:  return dx -> return dx.reshape(-1, x.shape[-1])
  dx has all rows in one axis. A gradient has the shape of its array: the last reshape, back to x.shape, is missing.
- dx divided by the batch size:  return dx -> return dx / len(x)
  dx is divided by the batch size, 1/B too much. If the loss is a mean, that is already in dy.
- dx divided by the number of rows:  return dx -> return dx / (x.size // x.shape[-1])
  dx is divided by the number of rows, 1/(B·T) too much. If the loss is a mean, that is already in dy.
- dw_gate and dw1 exchanged:  return dx, dw_gate, dw1, dw2 -> return dx, dw1, dw_gate, dw2
  dw_gate and dw1 are returned in each other's place. The order is dx, dw_gate, dw1, dw2.
- dw2 first:  return dx, dw_gate, dw1, dw2 -> return dx, dw2, dw_gate, dw1
  dw2 is returned before the other two matrices. The order is dx, dw_gate, dw1, dw2.
- dw2 before dw1:  return dx, dw_gate, dw1, dw2 -> return dx, dw_gate, dw2, dw1
  dw2 and dw1 are returned in each other's place. The order is dx, dw_gate, dw1, dw2.
- in reverse order:  return dx, dw_gate, dw1, dw2 -> return dx, dw2, dw1, dw_gate
  The matrices are returned in reverse order. The order is dx, dw_gate, dw1, dw2.
- dx returned last:  return dx, dw_gate, dw1, dw2 -> return dw_gate, dw1, dw2, dx
  dx is returned last. The order is dx, dw_gate, dw1, dw2.
""",
)

EXERCISES = [GATED_FEED_FORWARD, GATED_FEED_FORWARD_BACKWARD]
