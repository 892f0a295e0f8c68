"""The backward of attention."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes
from ..notes import amended
from .attention import SCALE_MISTAKES, attention_inputs, some_hidden
from .softmax import softmax_backward


def attention_backward_cases(rng):
    sizes = draw_sizes(rng, "B H T S K K_v", least=3)
    B, T, S = sizes["B"], sizes["T"], sizes["S"]
    hidden = some_hidden(rng, T, S)
    whole_row = hidden.copy()
    whole_row[1] = True
    n = T
    equal = dict(sizes, T=n, S=n, K=n, K_v=n)

    def case(label, axes=4, mask=None, sizes=sizes):
        q, k, v = attention_inputs(rng, sizes, axes)
        out, weights = F.scaled_dot_product_attention(q, k, v, mask)
        return Case(label, (rng.normal(size=out.shape), q, k, v, weights), sizes=sizes)

    return [
        case(""),
        case("hidden keys, weight 0", mask=some_hidden(rng, B, 1, 1, S)),
        case("hidden keys, others for each query", mask=hidden),
        case("a row hidden whole", mask=whole_row),
        case("a finite float mask in the forward", mask=rng.normal(size=(T, S))),
        case("inputs (T, K) and (S, K)", axes=2, sizes=dict(sizes, K=sizes["K"] + 7)),
        case("inputs (B, T, K) and (B, S, K)", axes=3),
        case("all sizes equal", sizes=equal),
        case("inputs (T, K) and all sizes equal", axes=2, sizes=equal),
    ]


def scaled_dot_product_attention_backward(dout, q, k, v, weights):
    scale = 1 / np.sqrt(q.shape[-1])
    dweights = dout @ np.swapaxes(v, -1, -2)
    dscores = softmax_backward(dweights, weights) * scale
    dq = dscores @ k
    dk = np.swapaxes(dscores, -1, -2) @ q
    dv = np.swapaxes(weights, -1, -2) @ dout
    return dq, dk, dv


_SCALES = (
    amended(
        SCALE_MISTAKES,
        instead="""
- no 1/√d_k:  1 / np.sqrt(q.shape[-1]) -> 1
  The scale is missing: dQ and dK are not divided by √d_k (sqrt). The forward divided the scores by it, so the backward
  divides their gradient by it, once.
- 1/d_k instead of 1/√d_k:  np.sqrt(q.shape[-1]) -> q.shape[-1]
  dQ and dK are divided by d_k: the square root (sqrt) is missing, or the scale 1/√d_k is applied twice, to the gradient
  of the scores and again later. It is 1/√d_k, once.
- multiplied by √d_k:  1 / np.sqrt(q.shape[-1]) -> np.sqrt(q.shape[-1])
  The gradient of the scores is multiplied by √d_k instead of divided by it. Backward, a factor stays the factor that it
  was: 1/√d_k.
- multiplied by d_k:  1 / np.sqrt(q.shape[-1]) -> q.shape[-1]
  The gradient of the scores is multiplied by d_k. It has to be divided by √d_k.
- always 1/8:  np.sqrt(q.shape[-1]) -> 8
  The gradient of the scores is always divided by 8, which is √64 and right for d_k = 64 only. Divide by √d_k, from
  `q.shape[-1]`.
- always 1/2:  np.sqrt(q.shape[-1]) -> 2
  The gradient of the scores is always divided by 2, which is √4 and right for d_k = 4 only. Divide by √d_k, from
  `q.shape[-1]`.
""",
    )
    + """
- 1/√d_v instead of 1/√d_k:  np.sqrt(q.shape[-1]) -> np.sqrt(v.shape[-1])
  The scale is 1/√d_v, from the width of the values, instead of 1/√d_k, the width of queries and keys (`q.shape[-1]`).
- 1/√d_k on dQ only:
    softmax_backward(dweights, weights) * scale -> softmax_backward(dweights, weights)
    dscores @ k -> dscores @ k * scale
  dK lacks the scale: 1/√d_k is on dQ only. Q and K both reach the scores through it, so both gradients have it once.
- 1/√d_k on dK only:
    softmax_backward(dweights, weights) * scale -> softmax_backward(dweights, weights)
    -1, -2) @ q -> -1, -2) @ q * scale
  dQ lacks the scale: 1/√d_k is on dK only. Q and K both reach the scores through it, so both gradients have it once.
"""
)

BACKWARD_MISTAKES = """
- dK from dQ:  -1, -2) @ q -> -1, -2) @ dq
  dK is dscoresᵀ dQ, with the gradient of the queries. It is the queries themselves: dscoresᵀ Q.
- dK reshaped, not transposed:
    np.swapaxes(dscores, -1, -2) -> dscores.reshape(*dscores.shape[:-2], dscores.shape[-1], dscores.shape[-2])
  In dK the gradient of the scores is reshaped to (..., S, T) instead of transposed. The shape is right, but reshape
  keeps the order in memory: swap the last two axes, dK = dscoresᵀ Q.
- dV reshaped, not transposed:
    np.swapaxes(weights, -1, -2) -> weights.reshape(*weights.shape[:-2], weights.shape[-1], weights.shape[-2])
  In dV the weights are reshaped to (..., S, T) instead of transposed. The shape is right, but reshape keeps the order
  in memory: swap the last two axes, dV = Aᵀ dout.
- V reshaped, not transposed in dA:  np.swapaxes(v, -1, -2) -> v.reshape(*v.shape[:-2], v.shape[-1], v.shape[-2])
  In dA the values are reshaped to (..., K_v, S) instead of transposed. The shape is right, but reshape keeps the order
  in memory: swap the last two axes, dA = dout Vᵀ.
- dV scaled too:  -1, -2) @ dout -> -1, -2) @ dout * scale
  dV is divided by √d_k. The scale belongs to the scores, and V does not pass through them: dV = Aᵀ dout.
- diagonal of the softmax only:  y * (dy - total) -> dy * y * (1 - y)
  The softmax backward is dA · A · (1 − A), the diagonal of its Jacobian alone. Each score is in the sum under every
  weight of its row: the off-diagonal terms −Aᵢ Aⱼ are missing.
- no softmax backward:  softmax_backward(dweights, weights) -> dweights
  The softmax is skipped: dA is taken for the gradient of the scores. Between A and the scores there is
  softmax_backward.
- backward of log softmax:
    np.sum(dy * y -> np.sum(dy
    y * (dy - total) -> dy - y * total
  The softmax backward is dA − A · Σ dA, that of log softmax. Here it is A · (dA − Σ dA · A), the sum over the keys.
- A before the sum only:  y * (dy - total) -> dy - y * total
  The softmax backward is dA − A · Σ dA · A: before the first dA the factor A is missing. It stands before both terms, A
  · (dA − Σ dA · A).
- diagonal of the softmax and the sum:  y * (dy - total) -> y * (1 - y) * (dy - total)
  In the softmax backward the factor in front is A · (1 − A), the diagonal of its Jacobian, and the sum is subtracted as
  well. The factor is A alone: A · (dA − Σ dA · A).
- A squared in front:  y * (dy - total) -> y * y * (dy - total)
  In the softmax backward the factor in front is A², one A too many: it is A · (dA − Σ dA · A).
- dA · (1 − A):  y * (dy - total) -> dy * (1 - y)
  The softmax backward is dA · (1 − A): half of its diagonal. It is A · (dA − Σ dA · A), the sum over the keys.
- A · (1 − A) without dA:  y * (dy - total) -> y * (1 - y)
  The softmax backward is A · (1 − A), with no upstream gradient dA in it. It is A · (dA − Σ dA · A).
- 1 in place of the sum:  dy - total -> dy - 1
  The softmax backward is A · (dA − 1): the sum is Σ A, which is always 1, instead of Σ dA · A.
- weights squared in the sum:  np.sum(dy * y -> np.sum(dy * y * y
  In the softmax backward the sum is Σ dA · A², each weight twice in it. It is Σ dA · A.
- sum without keepdims:  np.sum(dy * y, axis=axis, keepdims=True) -> np.sum(dy * y, axis=axis)
  The sum of the softmax backward loses its axis, and is then subtracted along the wrong one: it takes keepdims=True.
  With T ≠ S NumPy refuses, with T = S nothing is said.
- sum left out:  y * (dy - total) -> y * dy
  The softmax backward is A · dA, without the sum: A · (dA − Σ dA · A), the sum over the keys. Without it a row of
  weights would not have to add to 1.
- sum added:  dy - total -> dy + total
  In the softmax backward Σ dA · A is added. Subtract it: a sign is wrong.
- sum without the weights:  np.sum(dy * y -> np.sum(dy
  In the softmax backward the sum is Σ dA instead of Σ dA · A: each dA counts with its own weight.
- sum without dA:  np.sum(dy * y -> np.sum(y * y
  In the softmax backward the sum is Σ A · A instead of Σ dA · A: the upstream gradient is missing in it.
- mean for sum:  np.sum -> np.mean
  The softmax backward uses a mean of dA · A over the keys, too small by S. It must be the sum.
- sum not multiplied by the weights:  y * (dy - total) -> y * dy - total
  The softmax backward is A · dA − Σ dA · A here: a bracket is missing. The factor A stands before both terms, A · (dA −
  Σ dA · A).
- not multiplied by the weights:  y * (dy - total) -> dy - total
  In the softmax backward the factor A in front is missing: A · (dA − Σ dA · A).
- softmax backward over the queries:  dweights, weights) -> dweights, weights, axis=-2)
  The sum of the softmax backward runs over the queries (axis −2). It runs over the keys, the last axis, as the softmax
  did.
- softmax backward over the heads:  dweights, weights) -> dweights, weights, axis=1)
  The sum of the softmax backward runs over axis 1, the heads of (B, H, T, S). It runs over the keys, the last axis, as
  the softmax did.
- softmax backward over the batch:  dweights, weights) -> dweights, weights, axis=0)
  The sum of the softmax backward runs over axis 0, the batch. It runs over the keys, the last axis, as the softmax did.
- softmax backward over the whole array:  dweights, weights) -> dweights, weights, axis=None)
  The sum of the softmax backward runs over the whole array. It runs over the keys, the last axis, as the softmax did.
- softmax backward with the scores:  dweights, weights) -> dweights, q @ np.swapaxes(k, -1, -2) * scale)
  The softmax backward is done with the scores Q Kᵀ/√d_k in the place of the weights. Its second argument is the output
  of the softmax, A.
- weights taken for the scores:  dweights, weights) -> dweights, F.softmax(weights))
  `weights` are the softmax's output already; here they are put through softmax once more, as if they were the scores.
- weights computed anew without the mask:
    dweights = dout -> weights = F.softmax(q @ np.swapaxes(k, -1, -2) * scale); dweights = dout
  The weights are computed again from q and k, without the forward's mask. Hidden keys get a gradient: use the `weights`
  that are handed in, they are 0 where the mask hid.
- V untransposed in dA:  np.swapaxes(v, -1, -2) -> v
  dA is dout V, without the transpose of V. For out = A V it is dA = dout Vᵀ.
- out instead of dout in dA:  dout @ np.swapaxes(v, -1, -2) -> weights @ v @ np.swapaxes(v, -1, -2)
  dA is out Vᵀ, with no upstream gradient in it: it is dA = dout Vᵀ.
- dA multiplied by A once too often:  dweights, weights) -> dweights * weights, weights)
  dA is multiplied by the weights before the softmax backward, which does so again. dA = dout Vᵀ, and then A · (dA − Σ
  dA · A).
- V instead of K in dQ:  dscores @ k -> dscores @ v
  dQ is made with V: dscores V. In Q Kᵀ the factor beside Q is K, so dQ = dscores K.
- K instead of V in dA:  np.swapaxes(v, -1, -2) -> np.swapaxes(k, -1, -2)
  dA is dout Kᵀ instead of dout Vᵀ: out = A V has V in it, not K.
- dK untransposed:  np.swapaxes(dscores, -1, -2) -> dscores
  dK is dscores Q, without the transpose. Each key gathers from all queries: dK = dscoresᵀ Q. With T ≠ S NumPy refuses,
  with T = S nothing is said.
- dQ transposed:  dscores @ k -> np.swapaxes(dscores, -1, -2) @ k
  dQ is made with dscoresᵀ. Each query gathers from all keys, row by row: dQ = dscores K, without a transpose.
- dV untransposed:  np.swapaxes(weights, -1, -2) -> weights
  dV is A dout, without the transpose of A. Each value gathers from all queries that looked at it: dV = Aᵀ dout. With T
  ≠ S NumPy refuses, with T = S nothing is said.
- Q instead of K in dQ:  dscores @ k -> dscores @ q
  dQ is made with Q: dscores Q. In Q Kᵀ the factor beside Q is K, so dQ = dscores K.
- K instead of Q in dK:  -1, -2) @ q -> -1, -2) @ k
  dK is made with K: dscoresᵀ K. In Q Kᵀ the factor beside K is Q, so dK = dscoresᵀ Q.
- A instead of dscores:
    dscores @ k -> weights @ k
    np.swapaxes(dscores, -1, -2) -> np.swapaxes(weights, -1, -2)
  dQ and dK are made with the weights A in the place of the gradient of the scores: dQ = dscores K, dK = dscoresᵀ Q.
- dV with dA:  np.swapaxes(weights, -1, -2) -> np.swapaxes(dweights, -1, -2)
  dV is dAᵀ dout, with the gradient of the weights. For out = A V it is dV = Aᵀ dout, with A itself.
- dV with dscores:  np.swapaxes(weights, -1, -2) -> np.swapaxes(dscores, -1, -2)
  dV is dscoresᵀ dout, with the gradient of the scores. For out = A V it is dV = Aᵀ dout, with the weights A.
- V instead of dout in dV:  -1, -2) @ dout -> -1, -2) @ v
  dV is Aᵀ V, with no upstream gradient in it: it is dV = Aᵀ dout.
- dQ and dK swapped:  return dq, dk, dv -> return dk, dq, dv
  dQ and dK are returned in the wrong order: it is dq, dk, dv.
- dK and dV swapped:  return dq, dk, dv -> return dq, dv, dk
  dK and dV are returned in the wrong order: it is dq, dk, dv.
- dQ and dV swapped:  return dq, dk, dv -> return dv, dk, dq
  The gradients are returned in reverse, dv, dk, dq: it is dq, dk, dv.
- dV first:  return dq, dk, dv -> return dv, dq, dk
  The gradients are returned in the wrong order, dv, dq, dk: it is dq, dk, dv.
- divided by the batch:  dweights = dout -> dout = dout / len(q); dweights = dout
  All gradients are divided by the size of the first axis, the batch. The mean over the batch is the loss's, and is in
  dout already.
- divided by the number of queries:  dweights = dout -> dout = dout / q.shape[-2]; dweights = dout
  All gradients are divided by T, the number of queries. They are sums: a mean, if there is one, is the loss's, and is
  in dout already.
- summed over the batch:
    return dq, dk, dv ->
        if q.ndim > 2:
            dq, dk, dv = dq.sum(axis=0), dk.sum(axis=0), dv.sum(axis=0)
        return dq, dk, dv
  The gradients are summed over the batch. That is for parameters, which all rows share; q, k and v have their own rows,
  and each gradient has the shape of its array.
- .T of more than two axes:
    np.swapaxes(v, -1, -2) -> v.T
    np.swapaxes(dscores, -1, -2) -> dscores.T
    np.swapaxes(weights, -1, -2) -> weights.T
  It works for matrices only: with more axes `.T` reverses all of them, heads and batch too. Swap the last two axes
  alone, `np.swapaxes(x, -1, -2)`.
- written for four axes only:  np.swapaxes(v, -1, -2) -> v.transpose(0, 1, 3, 2)
  It works for inputs (B, H, T, K) only. The inputs may have any leading axes, or none: name the axes from the end, -1
  and -2, or write `...` in einsum.
- written for three axes only:  np.swapaxes(v, -1, -2) -> v.transpose(0, 2, 1)
  It works for inputs (B, T, K) only. The inputs may have any leading axes, or none: name the axes from the end, -1 and
  -2, or write `...` in einsum.
"""

SCALED_DOT_PRODUCT_ATTENTION_BACKWARD = Exercise(
    F.scaled_dot_product_attention_backward,
    results=(Result("dq", "... T K"), Result("dk", "... S K"), Result("dv", "... S K_v")),
    cases=attention_backward_cases,
    answer=scaled_dot_product_attention_backward,
    hints=(
        "Go through the forward from its end: out = A V is a product, A a softmax, the scores a product with a "
        "factor. What is the backward of each?",
        "dV = Aᵀ dout,  dA = dout Vᵀ,  dscores = A · (dA − Σ dA · A) / √d_k,  dQ = dscores K,  dK = dscoresᵀ Q",
        "notebook 06, section 6; softmax_backward is an exercise of its own, np.swapaxes(x, -1, -2) transposes a "
        "stack.",
    ),
    difficulty=3,
    section="behind §4 steps 3 to 5",
    chapter="Backpropagation",
    place=10,
    mistakes=_SCALES + BACKWARD_MISTAKES,
)


EXERCISES = [SCALED_DOT_PRODUCT_ATTENTION_BACKWARD]
