"""The feed-forward network with a gate, and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes
from .activations import sigmoid
from .linear import without_heads

# --- gated_feed_forward ----------------------------------------------------------------------------------------------


# the mistakes that linear_backward and feed_forward_backward have in common: those in the gradients of w and b
_GRADIENT_MISTAKES = {
    "bias gradient not summed": (
        "The gradient of a bias is not summed: it is dy itself, one gradient for each row. Every row met the same b, "
        "so it is Σ dy over all rows, with the shape of b."
    ),
    "bias gradient summed over the batch only": (
        "The gradient of a bias is summed over the first axis, the batch, only. Every row of every sentence met the "
        "same b: sum over all axes but the last."
    ),
    "bias gradient summed over the words only": (
        "The gradient of a bias is summed over the words of a sentence only, one gradient for each sentence. Sum over "
        "the batch too: over all axes but the last."
    ),
    "bias gradient summed over everything": (
        "The gradient of a bias is summed over all axes to a single number. The last axis stays: b has one number for "
        "each output."
    ),
    "bias gradient summed over the features": (
        "The gradient of a bias is summed over the last axis, the features. It is the other way around: sum over all "
        "axes but the last, and keep the last."
    ),
    "bias gradient with axes of length 1": (
        "The gradient of a bias keeps axes of length 1 in front (keepdims). It has the shape of b, one axis."
    ),
    "bias gradient of the last row": (
        "The gradient of a bias comes from the last row alone. Every row met the same bias: sum over all of them."
    ),
    "x reshaped, not transposed": (
        "In the gradient of a matrix x is reshaped to (D_in, rows) instead of transposed. The shape is right, but "
        "reshape keeps the order in memory and tears the rows apart. First (rows, D_in), then the transpose: xᵀ dy."
    ),
    "bias gradient averaged over the rows": (
        "The gradient of a bias is averaged over the rows (mean), too small by their number, a factor 1/(B·T). It is a "
        "sum: any mean is the loss's doing and is in dy already."
    ),
    "bias gradient divided by the batch size": (
        "The gradient of a bias is divided by the batch size, 1/B too much. It is a plain sum: any mean is the loss's "
        "doing and is in dy already."
    ),
    "bias gradient divided by the length": (
        "The gradient of a bias is divided by the number of words, 1/T too much. It is a plain sum: any mean is the "
        "loss's doing and is in dy already."
    ),
    "bias gradient without dy": (
        "The gradient of a bias is the number of rows (or 1), without dy. ∂y/∂b is 1, but the chain rule multiplies it "
        "by dy, and the rows add: Σ dy."
    ),
    "bias gradient of zeros": (
        "The gradient of a bias is 0. It is the sum of dy over all rows: y grows with b by as much."
    ),
    "weight gradient averaged over the rows": (
        "The gradient of a matrix is averaged over the rows, a factor 1/(B·T) too much. It is a sum, xᵀ dy: any mean "
        "is the loss's doing and is in dy already."
    ),
    "weight gradient divided by the batch size": (
        "The gradient of a matrix is divided by the batch size, 1/B too much. It is a plain sum, xᵀ dy: any mean is "
        "the loss's doing and is in dy already."
    ),
    "weight gradient divided by the length": (
        "The gradient of a matrix is divided by the number of words, 1/T too much. It is a plain sum, xᵀ dy: any mean "
        "is the loss's doing and is in dy already."
    ),
    "weight gradient transposed": (
        "The gradient of a matrix is transposed: dyᵀ x, (D_out, D_in). A gradient has the shape of its array: xᵀ dy, "
        "(D_in, D_out)."
    ),
    "weight gradient of every sentence": (
        "The gradient of a matrix is not summed over the batch: there is one for each sentence. All sentences met the "
        "same matrix, so their gradients add."
    ),
    "weight gradient without dy": (
        "The gradient of a matrix does not use dy: it is the sum of its inputs. The chain rule multiplies them by dy: "
        "xᵀ dy."
    ),
    "weight gradient from the sums": (
        "The rows are summed first, x and dy each on its own, and then multiplied. Each row of x belongs with its own "
        "row of dy: multiply first, then sum over the rows, xᵀ dy."
    ),
    "only the first sentence": (
        "A gradient of parameters comes from the first sentence alone, x[0] and dy[0]. All sentences met the same "
        "parameters: their gradients add."
    ),
    "weight gradient of the last row": (
        "The gradient of a matrix comes from the last row alone (an outer product that is replaced, not added to). "
        "Every row met the same matrix: sum over all of them, xᵀ dy."
    ),
    "only the last sentence": (
        "A gradient of parameters comes from the last sentence alone: in the loop over the batch it is replaced (=) "
        "instead of added to (+=). All sentences met the same parameters."
    ),
    "x.T for the rows": (
        "The gradient of the matrix is x.T @ dy, which is right for x of two axes only: of three axes .T reverses all. "
        "`x.reshape(-1, D_in)` and the same for dy make rows of any x first."
    ),
    "a single row not handled": (
        "It fails for x of one axis, a single row (D_in,). x may have any leading axes, none too: the gradient of the "
        "matrix is then the outer product of x and dy. `x.reshape(-1, D_in)` makes rows of any x."
    ),
}


def _wrong_gradients(made, dy, x):
    """The gradients of w and b in y = x w + b, with the mistakes above."""
    if x.ndim == 1 and made("a single row not handled"):
        raise ValueError("mismatch")
    lead = tuple(range(dy.ndim - 1))
    dy_bias = dy
    if made("only the first sentence") and x.ndim > 1:
        x, dy_bias = x[:1], dy[:1]
    if made("only the last sentence") and x.ndim > 1:
        x, dy_bias = x[-1:], dy[-1:]
    dy_weight = dy_bias
    if made("bias gradient without dy"):
        dy_bias = np.ones_like(dy)
    if made("bias gradient not summed"):
        db = dy_bias
    elif made("bias gradient summed over the batch only"):
        db = dy_bias.sum(axis=0)
    elif made("bias gradient summed over the words only"):
        db = dy_bias.sum(axis=-2)
    elif made("bias gradient of the last row"):
        db = dy_bias.reshape(-1, dy.shape[-1])[-1]
    elif made("bias gradient summed over everything"):
        db = dy_bias.sum()
    elif made("bias gradient summed over the features"):
        db = dy_bias.sum(axis=-1)
    else:
        db = dy_bias.sum(axis=lead, keepdims=made("bias gradient with axes of length 1"))
    rows = dy.size // dy.shape[-1]
    words = dy.shape[-2] if dy.ndim > 1 else 1
    if made("bias gradient averaged over the rows"):
        db = db / rows
    if made("bias gradient divided by the batch size"):
        db = db / len(dy)
    if made("bias gradient divided by the length"):
        db = db / words
    if made("bias gradient of zeros"):
        db = 0 * db
    if made("weight gradient without dy"):
        dy_weight = np.ones_like(dy_weight)
    if made("weight gradient of every sentence"):
        dw = x.swapaxes(-1, -2) @ dy_weight
    elif made("x reshaped, not transposed"):
        dw = x.reshape(x.shape[-1], -1) @ dy_weight.reshape(-1, dy.shape[-1])
    elif made("weight gradient of the last row"):
        dw = np.outer(x.reshape(-1, x.shape[-1])[-1], dy_weight.reshape(-1, dy.shape[-1])[-1])
    elif made("x.T for the rows"):
        dw = x.T @ dy_weight
    elif made("weight gradient from the sums"):
        dw = np.multiply.outer(x.sum(axis=lead), dy_weight.sum(axis=lead))
    else:
        dw = np.einsum("ni,no->io", x.reshape(-1, x.shape[-1]), dy_weight.reshape(-1, dy.shape[-1]))
    if made("weight gradient averaged over the rows"):
        dw = dw / rows
    if made("weight gradient divided by the batch size"):
        dw = dw / len(dy)
    if made("weight gradient divided by the length"):
        dw = dw / words
    return (dw.swapaxes(-1, -2) if made("weight gradient transposed") else dw), db


def _gated_cases(rng):
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
    ]


_GATES = {
    "no GELU": lambda x: x,
    "the exact GELU": lambda x: F.gelu(x, "none"),
    "ReLU for GELU": lambda x: np.maximum(x, 0),
    "sigmoid for GELU": sigmoid,
    "SiLU for GELU": lambda x: x * sigmoid(x),
    "x σ(1.702 x) for GELU": lambda x: x * sigmoid(1.702 * x),
    "tanh for GELU": np.tanh,
    "softmax for GELU": F.softmax,
    "GELU without x in front": lambda x: (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2,
}


def _wrong_gated(made, x, w_gate, w1, w2):
    given, D = x, x.shape[-1]
    activation = next((f for name, f in _GATES.items() if made(name)), F.gelu)
    if made("W_g and W₁ exchanged"):
        w_gate, w1 = w1, w_gate
    if made("W_g for both"):
        w1 = w_gate
    if made("W₁ for both"):
        w_gate = w1
    gate = x @ (w_gate.T if made("W_g transposed") else w2.T if made("W₂ᵀ for W_g") else w_gate)
    value = x @ (w1.T if made("W₁ transposed") else w2.T if made("W₂ᵀ for W₁") else w1)
    opened = activation(gate)
    if made("GELU of the value instead"):
        hidden = gate * F.gelu(value)
    elif made("GELU of both"):
        hidden = opened * F.gelu(value)
    elif made("GELU of the product"):
        hidden = F.gelu(gate * value)
    elif made("sum for product"):
        hidden = opened + value
    elif made("value left out"):
        hidden = opened
    elif made("gate left out"):
        hidden = value
    elif made("gate multiplied by itself"):
        hidden = opened * gate
    elif made("GELU of W₁ without gate"):
        hidden = F.gelu(value)
    elif made("1 − gate"):
        hidden = (1 - opened) * value
    else:
        hidden = opened * value
    y = hidden @ (w2.T if made("W₂ transposed") else w1.T if made("W₁ᵀ for W₂") else w2)
    if made("W_gᵀ for W₂"):
        y = hidden @ w_gate.T
    if made("GELU at the end as well"):
        y = F.gelu(y)
    if made("x added"):
        y = y + given
    if made("divided by √d_model"):
        y = y / np.sqrt(D)
    if made("gate after the GELU"):
        gate = opened
    if made("hidden for gate"):
        gate = hidden
    if made("hidden for value"):
        value = hidden
    if made("x for value"):
        value = given
    if made("hidden and value for gate and value"):
        gate, value = hidden, value
    if made("gate and value returned exchanged"):
        gate, value = value, gate
    return (gate, value, y) if made("y returned last") else (y, gate, value)


_PRODUCT = "FFN(x) = (GELU(x W_g) · x W₁) W₂."

GATED_FEED_FORWARD = Exercise(
    F.gated_feed_forward,
    (Result("y", "... D"), Result("gate", "... F"), Result("value", "... F")),
    _gated_cases,
    {
        "no GELU": f"The GELU is missing: the gate x W_g is multiplied as it is (a bilinear layer). {_PRODUCT}",
        "the exact GELU": (
            "The GELU is the exact one, with erf. Here it is the one with tanh, the default of gelu, as in T5 v1.1."
        ),
        "ReLU for GELU": f"The gate goes through a ReLU (ReGLU). Here it is the GELU: {_PRODUCT}",
        "sigmoid for GELU": f"The gate goes through a sigmoid (GLU). Here it is the GELU: {_PRODUCT}",
        "SiLU for GELU": (
            f"The gate goes through x · sigmoid(x), SiLU or swish (SwiGLU). Here it is the GELU: {_PRODUCT}"
        ),
        "x σ(1.702 x) for GELU": (
            "The GELU is x · sigmoid(1.702 x), a coarser approximation. Here it is the one with tanh."
        ),
        "tanh for GELU": f"The gate goes through a tanh. Here it is the GELU: {_PRODUCT}",
        "softmax for GELU": f"The gate goes through a softmax over the features. Here it is the GELU: {_PRODUCT}",
        "GELU without x in front": (
            "The gate is Φ(x W_g), between 0 and 1: the factor in front is missing, GELU(x) = x Φ(x)."
        ),
        "GELU of the value instead": (
            f"The GELU is on the wrong factor: x W_g · GELU(x W₁). It is on the gate: {_PRODUCT}"
        ),
        "GELU of both": f"Both factors go through the GELU. Only the gate does: {_PRODUCT}",
        "GELU of the product": f"The GELU is of the product, GELU(x W_g · x W₁). It is on the gate alone: {_PRODUCT}",
        "GELU at the end as well": f"There is a second GELU after W₂. There is none at the end: {_PRODUCT}",
        "GELU of W₁ without gate": (
            f"This is a plain feed-forward network, GELU(x W₁) W₂: the gate x W_g is not used. {_PRODUCT}"
        ),
        "sum for product": f"The two factors are added, GELU(x W_g) + x W₁. They are multiplied: {_PRODUCT}",
        "value left out": f"The value x W₁ is left out, GELU(x W_g) W₂: it is a product of two. {_PRODUCT}",
        "gate left out": f"The gate is left out, x W₁ W₂: it is a product of two. {_PRODUCT}",
        "gate multiplied by itself": (
            f"The gate is multiplied by itself, GELU(x W_g) · x W_g. The other factor is the value, x W₁: {_PRODUCT}"
        ),
        "1 − gate": f"The value is multiplied by 1 − GELU(x W_g), the gate the wrong way round. {_PRODUCT}",
        "W_g and W₁ exchanged": f"W_g and W₁ are exchanged: W_g makes the gate, W₁ the value. {_PRODUCT}",
        "W_g for both": f"Both factors are made with W_g. The value has a matrix of its own, W₁: {_PRODUCT}",
        "W₁ for both": f"Both factors are made with W₁. The gate has a matrix of its own, W_g: {_PRODUCT}",
        "W_g transposed": "W_g is transposed. A row is a token and W_g is (D, F): x W_g, not x W_gᵀ.",
        "W₁ transposed": "W₁ is transposed. A row is a token and W₁ is (D, F): x W₁, not x W₁ᵀ.",
        "W₂ transposed": "W₂ is transposed. A row is a token and W₂ is (F, D): no transpose before it.",
        "W₂ᵀ for W_g": "The gate is made with W₂ᵀ instead of W_g. The shapes fit, but W_g is a matrix of its own.",
        "W₂ᵀ for W₁": "The value is made with W₂ᵀ instead of W₁. The shapes fit, but W₁ is a matrix of its own.",
        "W₁ᵀ for W₂": "The last product is with W₁ᵀ instead of W₂. The shapes fit, but W₂ is a matrix of its own.",
        "W_gᵀ for W₂": "The last product is with W_gᵀ instead of W₂. The shapes fit, but W₂ is a matrix of its own.",
        "x added": f"x is added to the output. The residual path is not part of this function: {_PRODUCT}",
        "divided by √d_model": f"The output is divided by √d_model. There is no scale in it: {_PRODUCT}",
        "gate after the GELU": (
            "What is returned as gate is GELU(x W_g). It is x W_g, before the GELU: the backward needs the slope there."
        ),
        "hidden for gate": (
            "What is returned as gate is the product that W₂ is given. It is x W_g alone, before the GELU."
        ),
        "hidden for value": (
            "What is returned as value is the product that W₂ is given. It is x W₁ alone: the backward needs both "
            "factors."
        ),
        "x for value": "What is returned as value is x. It is the factor x W₁, (..., F).",
        "gate and value returned exchanged": "gate and value are returned in each other's place: y, gate, value.",
        "y returned last": "y is returned last. The order is y, gate, value.",
    },
    _wrong_gated,
    (
        "A ReLU only cuts features off. How can one matrix decide how much of the features of another one passes?",
        "gate = x W_g, value = x W₁, y = (GELU(gate) · value) W₂",
        "notebook 13; your own linear and gelu. There are no biases; return gate before the GELU.",
    ),
    difficulty=1,
    section="Shazeer 2020",
    chapter="T5",
    place=8,
)


# --- gated_feed_forward_backward -------------------------------------------------------------------------------------


def _gated_backward_cases(rng):
    cases = []
    for case in _gated_cases(rng):
        x, *matrices = case.arguments
        y, gate, value = F.gated_feed_forward(*case.arguments)
        cases.append(Case(case.label, (rng.normal(size=y.shape), x, gate, value, *matrices), sizes=case.sizes))
    return cases


def _silu_slope(x):
    return sigmoid(x) * (1 + x * (1 - sigmoid(x)))


_SLOPES = {
    "the slope of GELU missing": lambda x: np.ones_like(x),
    "the slope of the exact GELU": lambda x: F.gelu_backward(np.ones_like(x), x, "none"),
    "the slope of the ReLU": lambda x: (x > 0) * 1.0,
    "the slope of the sigmoid": lambda x: sigmoid(x) * (1 - sigmoid(x)),
    "the slope of SiLU": _silu_slope,
    "the slope of the tanh": lambda x: 1 - np.tanh(x) ** 2,
    "GELU for its slope": F.gelu,
    "Φ for the slope": lambda x: _GATES["GELU without x in front"](x),
    "the slope at GELU(gate)": lambda x: F.gelu_backward(np.ones_like(x), F.gelu(x)),
}


def _wrong_gated_backward(made, dy, x, gate, value, w_gate, w1, w2):
    opened = gate if made("gate taken for GELU(gate)") else F.gelu(gate)
    slope = next((f for name, f in _SLOPES.items() if made(name)), lambda x: F.gelu_backward(np.ones_like(x), x))
    factors = {
        "gate for GELU(gate) in dW₂": gate * value,
        "dW₂ from the gate alone": opened,
        "dW₂ from the value alone": value,
        "x for hidden in dW₂": x,
    }
    hidden = next((factor for name, factor in factors.items() if made(name)), opened * value)
    dw2, _ = _wrong_gradients(made, dy, hidden)
    if made("dy not sent through W₂"):
        dhidden = dy
    elif made("W₁ for W₂ᵀ"):
        dhidden = dy @ w1
    elif made("W_g for W₂ᵀ"):
        dhidden = dy @ w_gate
    else:
        dhidden = dy @ (w2 if made("W₂ not transposed") else w2.T)
    other = 1.0 if made("value missing in the gate's gradient") else value
    if made("each factor times itself"):
        other = opened
    place = value if made("the slope at the value") else gate * value if made("the slope at the product") else gate
    dgate = dhidden * other * slope(place)
    if made("gate's gradient without dy"):
        dgate = other * slope(gate)
    other = opened
    if made("GELU(gate) missing in the value's gradient"):
        other = 1.0
    if made("gate for GELU(gate) in the value's gradient"):
        other = gate
    if made("GELU(value) for GELU(gate)"):
        other = F.gelu(value)
    if made("each factor times itself"):
        other = value
    dvalue = dhidden * other
    if made("the slope of GELU on the value too"):
        dvalue = dvalue * slope(gate)
    if made("dgate and dvalue exchanged"):
        dgate, dvalue = dvalue, dgate
    inputs = hidden if made("hidden for x in dW₁ and dW_g") else x
    dw_gate, _ = _wrong_gradients(made, dy if made("dW₁ and dW_g from dy") else dgate, inputs)
    dw1, _ = _wrong_gradients(made, dy if made("dW₁ and dW_g from dy") else dvalue, inputs)
    back_gate = w1.T if made("W₁ᵀ for both in dx") else w2 if made("W₂ for W₁ᵀ and W_gᵀ") else w_gate.T
    back_value = w_gate.T if made("W_gᵀ for both in dx") else w2 if made("W₂ for W₁ᵀ and W_gᵀ") else w1.T
    if made("W₁ and W_g exchanged in dx"):
        back_gate, back_value = back_value, back_gate
    if made("W₁ and W_g not transposed"):
        back_gate, back_value = back_gate.T, back_value.T
    through_gate, through_value = dgate @ back_gate, dvalue @ back_value
    ways = {
        "dx through the gate only": through_gate,
        "dx through the value only": through_value,
        "dx a difference": through_value - through_gate,
        "dx a mean of both ways": (through_gate + through_value) / 2,
    }
    dx = next((way for name, way in ways.items() if made(name)), through_gate + through_value)
    if made("dy added to dx"):
        dx = dx + dy
    if made("dx flattened"):
        dx = dx.reshape(-1, dx.shape[-1])
    if made("dx divided by the batch size"):
        dx = dx / len(x)
    if made("dx divided by the number of rows"):
        dx = dx / (x.size // x.shape[-1])
    orders = {
        "dw_gate and dw1 exchanged": (dx, dw1, dw_gate, dw2),
        "dw2 first": (dx, dw2, dw_gate, dw1),
        "dw2 before dw1": (dx, dw_gate, dw2, dw1),
        "in reverse order": (dx, dw2, dw1, dw_gate),
        "dx returned last": (dw_gate, dw1, dw2, dx),
    }
    return next((order for name, order in orders.items() if made(name)), (dx, dw_gate, dw1, dw2))


_OF_A_PRODUCT = "Each factor of a product gets the gradient times the other one"
_ORDER_OF_GATED = "The order is dx, dw_gate, dw1, dw2."

GATED_FEED_FORWARD_BACKWARD = Exercise(
    F.gated_feed_forward_backward,
    (Result("dx", "... D"), Result("dw_gate", "D F"), Result("dw1", "D F"), Result("dw2", "F D")),
    _gated_backward_cases,
    {
        "value missing in the gate's gradient": (
            f"The value is missing in the gradient of the gate. {_OF_A_PRODUCT}: dgate = dhidden · value · GELU′(gate)."
        ),
        "GELU(gate) missing in the value's gradient": (
            f"GELU(gate) is missing in the gradient of the value. {_OF_A_PRODUCT}: dvalue = dhidden · GELU(gate)."
        ),
        "gate for GELU(gate) in the value's gradient": (
            "The gradient of the value is dhidden · gate. The value was multiplied by GELU(gate): dvalue = dhidden · "
            "GELU(gate)."
        ),
        "each factor times itself": (
            f"Each factor gets the gradient times itself. {_OF_A_PRODUCT}: dvalue = dhidden · GELU(gate), and dhidden "
            "· value goes on to the gate."
        ),
        "dgate and dvalue exchanged": (
            "The two gradients go on through each other's matrix: that of the gate, dhidden · value · GELU′(gate), "
            "belongs to W_g, that of the value, dhidden · GELU(gate), to W₁."
        ),
        "gate's gradient without dy": "The gradient of the gate is value · GELU′(gate): dhidden is missing in it.",
        "gate taken for GELU(gate)": (
            "`gate` is used as if it were GELU(gate) already. It is x W_g, before the GELU: the factor beside the "
            "value is gelu(gate)."
        ),
        "the slope of GELU missing": (
            "The backward of the GELU is missing: the gradient of the gate is dhidden · value · GELU′(gate)."
        ),
        "GELU for its slope": (
            "The gradient of the gate has GELU(gate) in it where its slope GELU′(gate) belongs: gelu_backward."
        ),
        "Φ for the slope": (
            "GELU′ is taken to be Φ(gate), (1 + g)/2. That is one term of the product rule; the other is x · g′/2."
        ),
        "the slope of the exact GELU": (
            "The slope is that of the exact GELU, with erf. The forward has the one with tanh, the default of "
            "gelu_backward."
        ),
        "the slope of the ReLU": "The slope is that of the ReLU, 1 where gate > 0. The forward has the GELU.",
        "the slope of the sigmoid": "The slope is that of the sigmoid (GLU). The forward has the GELU.",
        "the slope of SiLU": "The slope is that of x · sigmoid(x), SiLU (SwiGLU). The forward has the GELU.",
        "the slope of the tanh": "The slope is that of the tanh. The forward has the GELU.",
        "the slope at GELU(gate)": (
            "The slope is taken at GELU(gate). It is taken where the GELU was, at gate: GELU′(gate)."
        ),
        "the slope at the value": (
            "The slope of the GELU is taken at the value. The GELU was on the gate: GELU′(gate)."
        ),
        "the slope at the product": (
            "The slope of the GELU is taken at gate · value. The GELU was on the gate alone: GELU′(gate)."
        ),
        "GELU(value) for GELU(gate)": (
            "The gradient of the value is dhidden · GELU(value). Beside the value stood GELU(gate): dvalue = dhidden · "
            "GELU(gate)."
        ),
        "the slope of GELU on the value too": (
            "The slope of the GELU is in the gradient of the value too. The value went through no GELU: dvalue = "
            "dhidden · GELU(gate)."
        ),
        "gate for GELU(gate) in dW₂": (
            "dW₂ is made with gate · value. W₂ was given GELU(gate) · value: dW₂ = (GELU(gate) · value)ᵀ dy."
        ),
        "dW₂ from the gate alone": (
            "dW₂ is made with GELU(gate) alone. W₂ was given the product: dW₂ = (GELU(gate) · value)ᵀ dy."
        ),
        "dW₂ from the value alone": (
            "dW₂ is made with the value alone. W₂ was given the product: dW₂ = (GELU(gate) · value)ᵀ dy."
        ),
        "x for hidden in dW₂": (
            "dW₂ is made with x. W₂ was given the product: dW₂ = (GELU(gate) · value)ᵀ dy."
        ),
        "hidden for x in dW₁ and dW_g": (
            "dW₁ and dW_g are made with the product that W₂ was given. These two matrices were given x."
        ),
        "dW₁ and dW_g from dy": (
            "dW₁ and dW_g are made from dy, the gradient of the output. They need those of value and gate, behind W₂ᵀ "
            "and the product."
        ),
        "dy not sent through W₂": "W₂ is left out on the way back: dhidden = dy W₂ᵀ, here it is dy itself.",
        "W₂ not transposed": "dhidden is dy W₂ where it has to be dy W₂ᵀ: the transpose is missing.",
        "W₁ for W₂ᵀ": "dhidden is dy W₁ where it has to be dy W₂ᵀ. The shapes fit, but it is another matrix.",
        "W_g for W₂ᵀ": "dhidden is dy W_g where it has to be dy W₂ᵀ. The shapes fit, but it is another matrix.",
        "dx through the gate only": (
            "dx comes through the gate only. x went into both factors, so both gradients add: dx = dgate W_gᵀ + dvalue "
            "W₁ᵀ."
        ),
        "dx through the value only": (
            "dx comes through the value only. x went into both factors, so both gradients add: dx = dgate W_gᵀ + "
            "dvalue W₁ᵀ."
        ),
        "dx a difference": (
            "The two ways to x are subtracted, where they have to be added: dx = dgate W_gᵀ + dvalue W₁ᵀ."
        ),
        "dx a mean of both ways": (
            "The two ways to x are averaged, a factor ½ too much: dx = dgate W_gᵀ + dvalue W₁ᵀ, a sum."
        ),
        "W₁ and W_g exchanged in dx": (
            "In dx the two matrices are exchanged: dgate goes back through W_gᵀ, dvalue through W₁ᵀ."
        ),
        "W₁ᵀ for both in dx": "In dx both gradients go back through W₁ᵀ. That of the gate goes through W_gᵀ.",
        "W_gᵀ for both in dx": "In dx both gradients go back through W_gᵀ. That of the value goes through W₁ᵀ.",
        "W₂ for W₁ᵀ and W_gᵀ": (
            "dx comes through W₂ where it has to come through W_gᵀ and W₁ᵀ. The shapes fit, but it is another matrix."
        ),
        "W₁ and W_g not transposed": (
            "dx is made with W_g and W₁ where it has to be W_gᵀ and W₁ᵀ: the transpose is missing."
        ),
        **{name: text for name, text in _GRADIENT_MISTAKES.items() if not name.startswith("bias")},
        "dy added to dx": f"dy is added to dx, the gradient of a residual path. The forward has none: {_PRODUCT}",
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
        "dw_gate and dw1 exchanged": f"dw_gate and dw1 are returned in each other's place. {_ORDER_OF_GATED}",
        "dw2 first": f"dw2 is returned before the other two matrices. {_ORDER_OF_GATED}",
        "dw2 before dw1": f"dw2 and dw1 are returned in each other's place. {_ORDER_OF_GATED}",
        "in reverse order": f"The matrices are returned in reverse order. {_ORDER_OF_GATED}",
        "dx returned last": f"dx is returned last. {_ORDER_OF_GATED}",
    },
    _wrong_gated_backward,
    (
        "Two factors are multiplied, and x is in both. What does each factor get, and how many ways lead back to x?",
        "dhidden = dy W₂ᵀ, dgate = dhidden · value · GELU′(gate), dvalue = dhidden · GELU(gate), dx = dgate W_gᵀ + "
        "dvalue W₁ᵀ",
        "notebook 13; your own linear_backward, three times, and gelu_backward. W₂ was given gelu(gate) · value.",
    ),
    difficulty=3,
    section="Shazeer 2020",
    chapter="T5",
    place=9,
)  # fmt: skip


EXERCISES = [GATED_FEED_FORWARD, GATED_FEED_FORWARD_BACKWARD]
