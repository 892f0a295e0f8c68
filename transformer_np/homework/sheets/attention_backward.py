"""The backward of attention."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes
from .attention import _PRODUCTS, _SCALES, _inputs, _reshaped, _scale, _some_hidden


def _backward_cases(rng):
    sizes = draw_sizes(rng, "B H T S K K_v", least=3)
    B, T, S = sizes["B"], sizes["T"], sizes["S"]
    hidden = _some_hidden(rng, T, S)
    whole_row = hidden.copy()
    whole_row[1] = True
    n = T
    equal = dict(sizes, T=n, S=n, K=n, K_v=n)

    def case(label, axes=4, mask=None, sizes=sizes):
        q, k, v = _inputs(rng, sizes, axes)
        out, weights = F.scaled_dot_product_attention(q, k, v, mask)
        return Case(label, (rng.normal(size=out.shape), q, k, v, weights), sizes=sizes)

    return [
        case(""),
        case("hidden keys, weight 0", mask=_some_hidden(rng, B, 1, 1, S)),
        case("hidden keys, others for each query", mask=hidden),
        case("a row hidden whole", mask=whole_row),
        case("a finite float mask in the forward", mask=rng.normal(size=(T, S))),
        case("inputs (T, K) and (S, K)", axes=2, sizes=dict(sizes, K=sizes["K"] + 7)),
        case("inputs (B, T, K) and (B, S, K)", axes=3),
        case("all sizes equal", sizes=equal),
        case("inputs (T, K) and all sizes equal", axes=2, sizes=equal),
    ]


_BACKWARD_SCALES = {
    **{name: text for name, (_, text) in _SCALES.items()},
    "no 1/√d_k": (
        "The scale is missing: dQ and dK are not divided by √d_k (sqrt). The forward divided the scores by it, so the "
        "backward divides their gradient by it, once."
    ),
    "1/d_k instead of 1/√d_k": (
        "dQ and dK are divided by d_k: the square root (sqrt) is missing, or the scale 1/√d_k is applied twice, to the "
        "gradient of the scores and again later. It is 1/√d_k, once."
    ),
    "multiplied by √d_k": (
        "The gradient of the scores is multiplied by √d_k instead of divided by it. Backward, a factor stays the "
        "factor that it was: 1/√d_k."
    ),
    "multiplied by d_k": "The gradient of the scores is multiplied by d_k. It has to be divided by √d_k.",
    "always 1/8": (
        "The gradient of the scores is always divided by 8, which is √64 and right for d_k = 64 only. Divide by √d_k, "
        "from `q.shape[-1]`."
    ),
    "always 1/2": (
        "The gradient of the scores is always divided by 2, which is √4 and right for d_k = 4 only. Divide by √d_k, "
        "from `q.shape[-1]`."
    ),
}


def _wrong_softmax_backward(made, dweights, weights):
    if made("no softmax backward"):
        return dweights
    if made("backward of log softmax"):
        return dweights - weights * dweights.sum(axis=-1, keepdims=True)
    if made("A before the sum only"):
        return dweights - weights * (dweights * weights).sum(axis=-1, keepdims=True)
    if made("diagonal of the softmax and the sum"):
        return weights * (1 - weights) * (dweights - (dweights * weights).sum(axis=-1, keepdims=True))
    if made("A squared in front"):
        return weights * weights * (dweights - (dweights * weights).sum(axis=-1, keepdims=True))
    if made("diagonal of the softmax only"):
        return dweights * weights * (1 - weights)
    if made("sum left out"):
        return weights * dweights
    if made("dA · (1 − A)"):
        return dweights * (1 - weights)
    if made("A · (1 − A) without dA"):
        return weights * (1 - weights)
    if made("1 in place of the sum"):
        return weights * (dweights - 1)
    axes = {"queries": -2, "heads": 1, "batch": 0, "whole array": None}
    axis = next((axis for name, axis in axes.items() if made(f"softmax backward over the {name}")), -1)
    product = dweights * weights
    if made("sum without the weights"):
        product = dweights
    if made("sum without dA"):
        product = weights * weights
    if made("weights squared in the sum"):
        product = product * weights
    reduce = np.mean if made("mean for sum") else np.sum
    through_sum = reduce(product, axis=axis, keepdims=not made("sum without keepdims"))
    if made("sum added"):
        through_sum = -through_sum
    if made("sum not multiplied by the weights"):
        return weights * dweights - through_sum
    dscores = dweights - through_sum
    return dscores if made("not multiplied by the weights") else weights * dscores


def _transpose(made):
    """How the last two axes are swapped."""
    return np.transpose if made(".T of more than two axes") else lambda x: x.swapaxes(-1, -2)


def _wrong_dscores(made, dout, q, k, v, weights):
    """The weights, and the gradients of weights and scores."""
    transposed = _transpose(made)
    scale = v.shape[-1] ** -0.5 if made("1/√d_v instead of 1/√d_k") else _scale(made, q, k)
    if made("weights computed anew without the mask"):
        weights = F.softmax(q @ k.swapaxes(-1, -2) * scale)
    dweights = dout @ (v if made("V untransposed in dA") else transposed(v))
    if made("V reshaped, not transposed in dA"):
        dweights = dout @ _reshaped(v)
    if made("K instead of V in dA"):
        dweights = dout @ transposed(k)
    if made("out instead of dout in dA"):
        dweights = (weights @ v) @ transposed(v)
    if made("dA multiplied by A once too often"):
        dweights = dweights * weights
    y = weights
    if made("softmax backward with the scores"):
        y = q @ transposed(k) * scale
    if made("weights taken for the scores"):
        y = F.softmax(weights)
    return weights, dweights, _wrong_softmax_backward(made, dweights, y) * scale


def _wrong_backward(made, dout, q, k, v, weights):
    if (made("written for four axes only") and q.ndim != 4) or (made("written for three axes only") and q.ndim != 3):
        raise ValueError("axes don't match array")
    transposed, root, scale = _transpose(made), q.shape[-1] ** -0.5, _scale(made, q, k)
    weights, dweights, dscores = _wrong_dscores(made, dout, q, k, v, weights)
    left = weights if made("A instead of dscores") else dscores
    beside = q if made("Q instead of K in dQ") else v if made("V instead of K in dQ") else k
    dq = (transposed(left) if made("dQ transposed") else left) @ beside
    dk = (left if made("dK untransposed") else transposed(left)) @ (k if made("K instead of Q in dK") else q)
    if made("dK from dQ"):
        dk = transposed(left) @ dq
    if made("dK reshaped, not transposed"):
        dk = _reshaped(left) @ q
    if made("1/√d_k on dQ only"):
        dk = dk / scale
    if made("1/√d_k on dK only"):
        dq = dq / scale
    before = dweights if made("dV with dA") else dscores if made("dV with dscores") else weights
    dv = (before if made("dV untransposed") else transposed(before)) @ (v if made("V instead of dout in dV") else dout)
    if made("dV reshaped, not transposed"):
        dv = _reshaped(before) @ dout
    if made("dV scaled too"):
        dv = dv * root
    gradients = dq, dk, dv
    if made("divided by the batch"):
        gradients = [gradient / len(q) for gradient in gradients]
    if made("divided by the number of queries"):
        gradients = [gradient / q.shape[-2] for gradient in gradients]
    if made("summed over the batch") and q.ndim > 2:
        gradients = [gradient.sum(axis=0) for gradient in gradients]
    dq, dk, dv = gradients
    orders = {
        "dQ and dK swapped": (dk, dq, dv),
        "dK and dV swapped": (dq, dv, dk),
        "dQ and dV swapped": (dv, dk, dq),
        "dV first": (dv, dq, dk),
    }
    return next((order for name, order in orders.items() if made(name)), (dq, dk, dv))


_OVER = "It runs over the keys, the last axis, as the softmax did."

SCALED_DOT_PRODUCT_ATTENTION_BACKWARD = Exercise(
    F.scaled_dot_product_attention_backward,
    (Result("dq", "... T K"), Result("dk", "... S K"), Result("dv", "... S K_v")),
    _backward_cases,
    {
        **_BACKWARD_SCALES,
        "1/√d_v instead of 1/√d_k": (
            "The scale is 1/√d_v, from the width of the values, instead of 1/√d_k, the width of queries and keys "
            "(`q.shape[-1]`)."
        ),
        "1/√d_k on dQ only": (
            "dK lacks the scale: 1/√d_k is on dQ only. Q and K both reach the scores through it, so both gradients "
            "have it once."
        ),
        "1/√d_k on dK only": (
            "dQ lacks the scale: 1/√d_k is on dK only. Q and K both reach the scores through it, so both gradients "
            "have it once."
        ),
        "dK from dQ": "dK is dscoresᵀ dQ, with the gradient of the queries. It is the queries themselves: dscoresᵀ Q.",
        "dK reshaped, not transposed": (
            "In dK the gradient of the scores is reshaped to (..., S, T) instead of transposed. The shape is right, "
            "but reshape keeps the order in memory: swap the last two axes, dK = dscoresᵀ Q."
        ),
        "dV reshaped, not transposed": (
            "In dV the weights are reshaped to (..., S, T) instead of transposed. The shape is right, but reshape "
            "keeps the order in memory: swap the last two axes, dV = Aᵀ dout."
        ),
        "V reshaped, not transposed in dA": (
            "In dA the values are reshaped to (..., K_v, S) instead of transposed. The shape is right, but reshape "
            "keeps the order in memory: swap the last two axes, dA = dout Vᵀ."
        ),
        "dV scaled too": (
            "dV is divided by √d_k. The scale belongs to the scores, and V does not pass through them: dV = Aᵀ dout."
        ),
        "diagonal of the softmax only": (
            "The softmax backward is dA · A · (1 − A), the diagonal of its Jacobian alone. Each score is in the sum "
            "under every weight of its row: the off-diagonal terms −Aᵢ Aⱼ are missing."
        ),
        "no softmax backward": (
            "The softmax is skipped: dA is taken for the gradient of the scores. Between A and the scores there is "
            "softmax_backward."
        ),
        "backward of log softmax": (
            "The softmax backward is dA − A · Σ dA, that of log softmax. Here it is A · (dA − Σ dA · A), the sum over "
            "the keys."
        ),
        "A before the sum only": (
            "The softmax backward is dA − A · Σ dA · A: before the first dA the factor A is missing. It stands before "
            "both terms, A · (dA − Σ dA · A)."
        ),
        "diagonal of the softmax and the sum": (
            "In the softmax backward the factor in front is A · (1 − A), the diagonal of its Jacobian, and the sum is "
            "subtracted as well. The factor is A alone: A · (dA − Σ dA · A)."
        ),
        "A squared in front": (
            "In the softmax backward the factor in front is A², one A too many: it is A · (dA − Σ dA · A)."
        ),
        "dA · (1 − A)": (
            "The softmax backward is dA · (1 − A): half of its diagonal. It is A · (dA − Σ dA · A), the sum over the "
            "keys."
        ),
        "A · (1 − A) without dA": (
            "The softmax backward is A · (1 − A), with no upstream gradient dA in it. It is A · (dA − Σ dA · A)."
        ),
        "1 in place of the sum": (
            "The softmax backward is A · (dA − 1): the sum is Σ A, which is always 1, instead of Σ dA · A."
        ),
        "weights squared in the sum": (
            "In the softmax backward the sum is Σ dA · A², each weight twice in it. It is Σ dA · A."
        ),
        "sum without keepdims": (
            "The sum of the softmax backward loses its axis, and is then subtracted along the wrong one: it takes "
            "keepdims=True. With T ≠ S NumPy refuses, with T = S nothing is said."
        ),
        "sum left out": (
            "The softmax backward is A · dA, without the sum: A · (dA − Σ dA · A), the sum over the keys. Without it a "
            "row of weights would not have to add to 1."
        ),
        "sum added": "In the softmax backward Σ dA · A is added where it has to be subtracted: a sign is wrong.",
        "sum without the weights": (
            "In the softmax backward the sum is Σ dA instead of Σ dA · A: each dA counts with its own weight."
        ),
        "sum without dA": (
            "In the softmax backward the sum is Σ A · A instead of Σ dA · A: the upstream gradient is missing in it."
        ),
        "mean for sum": "In the softmax backward Σ dA · A is a sum over the keys; here it is a mean, too small by S.",
        "sum not multiplied by the weights": (
            "The softmax backward is A · dA − Σ dA · A here: a bracket is missing. The factor A stands before both "
            "terms, A · (dA − Σ dA · A)."
        ),
        "not multiplied by the weights": (
            "In the softmax backward the factor A in front is missing: A · (dA − Σ dA · A)."
        ),
        "softmax backward over the queries": (
            f"The sum of the softmax backward runs over the queries (axis −2). {_OVER}"
        ),
        "softmax backward over the heads": (
            f"The sum of the softmax backward runs over axis 1, the heads of (B, H, T, S). {_OVER}"
        ),
        "softmax backward over the batch": f"The sum of the softmax backward runs over axis 0, the batch. {_OVER}",
        "softmax backward over the whole array": (
            f"The sum of the softmax backward runs over the whole array. {_OVER}"
        ),
        "softmax backward with the scores": (
            "The softmax backward is done with the scores Q Kᵀ/√d_k in the place of the weights. Its second argument "
            "is the output of the softmax, A."
        ),
        "weights taken for the scores": (
            "`weights` are the softmax's output already; here they are put through softmax once more, as if they were "
            "the scores."
        ),
        "weights computed anew without the mask": (
            "The weights are computed anew from q and k, without the forward's mask. Hidden keys get a gradient: use "
            "the `weights` that are handed in, they are 0 where the mask hid."
        ),
        "V untransposed in dA": (
            "dA is dout V, without the transpose of V. For out = A V it is dA = dout Vᵀ."
        ),
        "out instead of dout in dA": "dA is out Vᵀ, with no upstream gradient in it: it is dA = dout Vᵀ.",
        "dA multiplied by A once too often": (
            "dA is multiplied by the weights before the softmax backward, which does so again. dA = dout Vᵀ, and then "
            "A · (dA − Σ dA · A)."
        ),
        "V instead of K in dQ": "dQ is made with V: dscores V. In Q Kᵀ the factor beside Q is K, so dQ = dscores K.",
        "K instead of V in dA": "dA is dout Kᵀ instead of dout Vᵀ: out = A V has V in it, not K.",
        "dK untransposed": (
            "dK is dscores Q, without the transpose. Each key gathers from all queries: dK = dscoresᵀ Q. With T ≠ S "
            "NumPy refuses, with T = S nothing is said."
        ),
        "dQ transposed": (
            "dQ is made with dscoresᵀ. Each query gathers from all keys, row by row: dQ = dscores K, without a "
            "transpose."
        ),
        "dV untransposed": (
            "dV is A dout, without the transpose of A. Each value gathers from all queries that looked at it: dV = Aᵀ "
            "dout. With T ≠ S NumPy refuses, with T = S nothing is said."
        ),
        "Q instead of K in dQ": (
            "dQ is made with Q: dscores Q. In Q Kᵀ the factor beside Q is K, so dQ = dscores K."
        ),
        "K instead of Q in dK": (
            "dK is made with K: dscoresᵀ K. In Q Kᵀ the factor beside K is Q, so dK = dscoresᵀ Q."
        ),
        "A instead of dscores": (
            "dQ and dK are made with the weights A in the place of the gradient of the scores: dQ = dscores K, dK = "
            "dscoresᵀ Q."
        ),
        "dV with dA": (
            "dV is dAᵀ dout, with the gradient of the weights. For out = A V it is dV = Aᵀ dout, with A itself."
        ),
        "dV with dscores": (
            "dV is dscoresᵀ dout, with the gradient of the scores. For out = A V it is dV = Aᵀ dout, with the weights "
            "A."
        ),
        "V instead of dout in dV": "dV is Aᵀ V, with no upstream gradient in it: it is dV = Aᵀ dout.",
        "dQ and dK swapped": "dQ and dK are returned in the wrong order: it is dq, dk, dv.",
        "dK and dV swapped": "dK and dV are returned in the wrong order: it is dq, dk, dv.",
        "dQ and dV swapped": "The gradients are returned in reverse, dv, dk, dq: it is dq, dk, dv.",
        "dV first": "The gradients are returned in the wrong order, dv, dq, dk: it is dq, dk, dv.",
        "divided by the batch": (
            "All gradients are divided by the size of the first axis, the batch. The mean over the batch is the "
            "loss's, and is in dout already."
        ),
        "divided by the number of queries": (
            "All gradients are divided by T, the number of queries. They are sums: a mean, if there is one, is the "
            "loss's, and is in dout already."
        ),
        "summed over the batch": (
            "The gradients are summed over the batch. That is for parameters, which all rows share; q, k and v have "
            "their own rows, and each gradient has the shape of its array."
        ),
        ".T of more than two axes": (
            "It works for matrices only: with more axes `.T` reverses all of them, heads and batch too. Swap the last "
            "two axes alone, `np.swapaxes(x, -1, -2)`."
        ),
        "written for four axes only": _PRODUCTS["written for four axes only"],
        "written for three axes only": _PRODUCTS["written for three axes only"],
    },
    _wrong_backward,
    (
        "Go through the forward from its end: out = A V is a product, A a softmax, the scores a product with a "
        "factor. What is the backward of each?",
        "dV = Aᵀ dout,  dA = dout Vᵀ,  dscores = A · (dA − Σ dA · A) / √d_k,  dQ = dscores K,  dK = dscoresᵀ Q",
        (
            "notebook 06, section 6; softmax_backward is an exercise of its own, np.swapaxes(x, -1, -2) transposes a "
            "stack."
        ),
    ),
    difficulty=3,
    section="behind §4 steps 3 to 5",
    chapter="Backpropagation",
    place=10,
)  # fmt: skip


EXERCISES = [SCALED_DOT_PRODUCT_ATTENTION_BACKWARD]
