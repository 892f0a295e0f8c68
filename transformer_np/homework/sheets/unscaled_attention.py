"""Attention without a scale, with a bias, and its backward."""

from dataclasses import replace

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result
from ..notes import amended
from .attention import ATTENTION_MISTAKES, attention_cases, masked, some_hidden
from .attention_backward import BACKWARD_MISTAKES
from .softmax import softmax, softmax_backward

# --- unscaled_attention ----------------------------------------------------------------------------------------------


def unscaled_cases(rng):
    """The calls that try scaled_dot_product_attention with heads, with a bias."""

    def bias_for(q, k):
        return rng.normal(size=(q.shape[1], q.shape[2], k.shape[2]))

    cases = []
    for case in attention_cases(rng, only_scores=False):
        q, k, _ = case.arguments
        if q.ndim == 4 and not isinstance(case.options.get("mask"), tuple):
            cases.append(replace(case, options={"bias": bias_for(q, k), **case.options}))
    plain, sizes = cases[0].arguments, cases[0].sizes
    B, T, S = sizes["B"], sizes["T"], sizes["S"]
    q, k, v = (rng.normal(size=(B, B, *array.shape[2:])) for array in plain)
    return [
        *cases,
        Case("no bias", plain, sizes=sizes),
        Case("a mask and no bias", plain, {"mask": some_hidden(rng, T, S)}, sizes),
        Case("as many heads as rows of the batch", (q, k, v), {"bias": bias_for(q, k)}, sizes | {"H": B}),
    ]


def unscaled_attention(q, k, v, bias=None, mask=None):
    scores = q @ np.swapaxes(k, -1, -2)
    if bias is not None:
        scores = scores + bias
    scores = masked(scores, mask)
    weights = softmax(scores)
    out = weights @ v
    return out, weights


# behind the scores, or their gradient
_FACTORS = {
    "divided by √d_k": "/ np.sqrt(q.shape[-1])",
    "divided by d_k": "/ q.shape[-1]",
    "multiplied by √d_k": "* np.sqrt(q.shape[-1])",
    "divided by √d_model": "/ np.sqrt(q.shape[1] * q.shape[-1])",
    "divided by √S": "/ np.sqrt(k.shape[-2])",
    "divided by √T": "/ np.sqrt(q.shape[-2])",
    "divided by the fourth root of d_k": "/ q.shape[-1] ** 0.25",
    "divided by 8": "/ 8",
}

_UNSCALED_MISTAKES = """
- divided by √d_k:  @ np.swapaxes(k, -1, -2) -> @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
  The scores are divided by √d_k (sqrt), as in the attention of the original Transformer. T5 leaves the scale 1/√d_k
  out: its W_q starts smaller by as much.
- divided by d_k:  @ np.swapaxes(k, -1, -2) -> @ np.swapaxes(k, -1, -2) / q.shape[-1]
  The scores are divided by d_k. There is no scale in this attention: A = softmax(Q Kᵀ + bias + M).
- multiplied by √d_k:  @ np.swapaxes(k, -1, -2) -> @ np.swapaxes(k, -1, -2) * np.sqrt(q.shape[-1])
  The scores are multiplied by √d_k (sqrt), as if a scale had to be undone. There is none: A = softmax(Q Kᵀ + bias + M).
- divided by √d_model:  @ np.swapaxes(k, -1, -2) -> @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[1] * q.shape[-1])
  The scores are divided by √d_model = √(H · d_k). There is no scale in this attention: A = softmax(Q Kᵀ + bias + M).
- divided by √S:  @ np.swapaxes(k, -1, -2) -> @ np.swapaxes(k, -1, -2) / np.sqrt(k.shape[-2])
  The scores are divided by √S, from the number of keys. There is no scale in this attention: A = softmax(Q Kᵀ + bias +
  M).
- divided by √T:  @ np.swapaxes(k, -1, -2) -> @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-2])
  The scores are divided by √T, from the number of queries. There is no scale in this attention: A = softmax(Q Kᵀ + bias
  + M).
- divided by the fourth root of d_k:  @ np.swapaxes(k, -1, -2) -> @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.25
  One of q and k is divided by the fourth root of d_k, or the scores are. There is no scale in this attention: A =
  softmax(Q Kᵀ + bias + M).
- divided by 8:  @ np.swapaxes(k, -1, -2) -> @ np.swapaxes(k, -1, -2) / 8
  The scores are divided by 8, which is √d_k for d_k = 64. There is no scale in this attention: A = softmax(Q Kᵀ + bias
  + M).
- scores and bias divided by √d_k:  = masked(scores, mask) -> = masked(scores / np.sqrt(q.shape[-1]), mask)
  Scores and bias together are divided by √d_k (sqrt), (Q Kᵀ + bias) / √d_k. T5 leaves the scale out: A = softmax(Q Kᵀ +
  bias + M).
- bias forgotten:  scores = scores + bias -> pass
  The bias is not used: A = softmax(Q Kᵀ + bias + M). Nothing else tells T5 about positions.
- bias subtracted:  scores + bias -> scores - bias
  The bias is subtracted from the scores: the sign is wrong, it is added.
- bias added twice:  scores + bias -> scores + 2 * bias
  The bias is added to the scores twice.
- bias divided by √d_k:  scores + bias -> scores + bias / np.sqrt(q.shape[-1])
  The bias is divided by √d_k. It is added as it is: there is no scale here.
- bias multiplied by √d_k:  scores + bias -> scores + bias * np.sqrt(q.shape[-1])
  The bias is multiplied by √d_k. It is added as it is: there is no scale here.
- bias after the softmax:
    if bias is not None: scores = scores + bias -> pass
    weights = softmax(scores) ->
        weights = softmax(scores)
        if bias is not None:
            weights = weights + bias
  The bias is added to the weights, after the softmax, so that they do not add to 1. It belongs to the scores, before
  the softmax.
- weights multiplied by the bias:
    if bias is not None: scores = scores + bias -> pass
    weights = softmax(scores) ->
        weights = softmax(scores)
        if bias is not None:
            weights = weights * bias
  The weights are multiplied by the bias, after the softmax. It is added to the scores, before the softmax.
- scores multiplied by the bias:  scores + bias -> scores * bias
  The scores are multiplied by the bias. It is added: Q Kᵀ + bias.
- bias transposed:  scores + bias -> scores + np.swapaxes(bias, -1, -2)
  The bias is transposed: its last two axes are exchanged. It lies like the scores, (H, T, S): queries are rows, keys
  are columns. With T ≠ S NumPy refuses, with T = S nothing is said.
- bias along the batch:  scores + bias -> scores + bias[:, None]
  The first axis of the bias is laid along the batch (`bias[:, None]`). It is the heads: (H, T, S) broadcasts over the
  batch as it is.
- only what raises a score in the bias:  scores + bias -> scores + np.maximum(bias, 0)
  The negative numbers of the bias are lost. It raises and lowers scores, and is added as it is.
- bias averaged over the heads:  scores + bias -> scores + bias.mean(axis=0)
  The bias is averaged over the heads. Every head has a bias of its own.
- bias summed over the heads:  scores + bias -> scores + bias.sum(axis=0)
  The bias is summed over the heads. Every head has a bias of its own.
- bias of the first head for all:  scores + bias -> scores + bias[0]
  All heads get the bias of the first. Every head has a bias of its own.
- bias of the first query for all:  scores + bias -> scores + bias[:, :1]
  All queries get the bias of the first. Each has its own distances to the keys, a row of the bias each.
- bias taken for a Boolean mask:  scores + bias -> np.where(bias != 0, -np.inf, scores)
  The bias hides: it is used as if it were a mask. It is added to the scores and only raises or lowers them.
- bias = None not handled:  if bias is not None: scores = scores + bias -> scores = scores + bias
  It fails without a bias. bias is None by default, and then nothing is added: a test such as `if bias is not None` is
  missing.
- bias ignored where there is a mask:  if bias is not None -> if bias is not None and mask is None
  Where there is a mask, the bias is not used, as in `if mask … elif bias …`. Both are applied: Q Kᵀ + bias + M.
- mask ignored where there is a bias:
    scores = masked(scores, mask) ->
        else:
            scores = masked(scores, mask)
  Where there is a bias, the mask is not used, as in `if bias … elif mask …`. Both are applied: Q Kᵀ + bias + M.
- mask ignored where there is no bias:
    scores = masked(scores, mask) ->
        if bias is not None:
            scores = masked(scores, mask)
  Without a bias the mask is not used, as when its code is inside `if bias is not None`. Each of the two may be there
  without the other.
"""

UNSCALED_ATTENTION = Exercise(
    F.unscaled_attention,
    results=(Result("out", "B H T K_v"), Result("weights", "B H T S")),
    cases=unscaled_cases,
    answer=unscaled_attention,
    hints=(
        "Which factor is missing that the original attention has, and what is added to the scores in its place?",
        "out = A V,  A = softmax(Q Kᵀ + bias + M), the softmax over the keys; weight 0 in a row hidden whole",
        "notebook 13; your own scaled_dot_product_attention of notebook 02. The bias (H, T, S) broadcasts over the "
        "batch.",
    ),
    difficulty=2,
    section="Raffel et al. 2020, §2.1",
    chapter="T5",
    place=6,
    mistakes=_UNSCALED_MISTAKES
    + amended(
        ATTENTION_MISTAKES,
        instead="""
- output scaled by 1/√d_k:  weights @ v -> weights @ v / np.sqrt(q.shape[-1])
  The output is divided by √d_k. There is no scale in this attention: out = A V.
""",
        without=(
            "mask added before the scale",
            "only the first of several masks",
            "written for four axes only",
            "written for three axes only",
            "softmax over axis 2",  # the queries: there are always four axes
        ),
    ),
)


# --- unscaled_attention_backward -------------------------------------------------------------------------------------


def unscaled_backward_cases(rng):
    cases = []
    for forward in unscaled_cases(rng):
        if "10,000" in forward.label or "far above" in forward.label:  # all weights 0 or 1 there: no gradient
            continue
        out, weights = F.unscaled_attention(*forward.arguments, **forward.options)
        cases.append(
            Case(forward.label, (rng.normal(size=out.shape), *forward.arguments, weights), sizes=forward.sizes)
        )
    return cases


def unscaled_attention_backward(dout, q, k, v, weights):
    dweights = dout @ np.swapaxes(v, -1, -2)
    dscores = softmax_backward(dweights, weights)
    dbias = dscores.sum(axis=0)
    dq = dscores @ k
    dk = np.swapaxes(dscores, -1, -2) @ q
    dv = np.swapaxes(weights, -1, -2) @ dout
    return dq, dk, dv, dbias


_ALL_OF_DSCORES = "".join(
    f"""
- {name}:  softmax_backward(dweights, weights) -> softmax_backward(dweights, weights) {code}
  The gradient of the scores is {name}, and with it dQ, dK and dbias. The forward has no scale: dQ = dscores K, dK =
  dscoresᵀ Q, dbias = Σ dscores.
"""
    for name, code in _FACTORS.items()
)

UNSCALED_ATTENTION_BACKWARD = Exercise(
    F.unscaled_attention_backward,
    results=(
        Result("dq", "B H T K"),
        Result("dk", "B H S K"),
        Result("dv", "B H S K_v"),
        Result("dbias", "H T S"),
    ),
    cases=unscaled_backward_cases,
    answer=unscaled_attention_backward,
    hints=(
        "The bias was added to the scores of every row of the batch. What is its gradient, and what is gone from the "
        "other three?",
        "dV = Aᵀ dout,  dscores = softmax_backward(dout Vᵀ, A),  dQ = dscores K,  dK = dscoresᵀ Q,  dbias = Σ dscores "
        "over the batch",
        "notebook 13; your own scaled_dot_product_attention_backward of notebook 06, section 6, without its factor.",
    ),
    difficulty=2,
    section="Raffel et al. 2020, §2.1",
    chapter="T5",
    place=7,
    mistakes=_ALL_OF_DSCORES
    + """
- dQ and dK divided by √d_k:
    dscores @ k -> dscores @ k / np.sqrt(q.shape[-1])
    -1, -2) @ q -> -1, -2) @ q / np.sqrt(q.shape[-1])
  dQ and dK are divided by √d_k (sqrt), as in the attention of the original Transformer. The forward has no scale 1/√d_k
  here, and so the backward has none: dQ = dscores K, dK = dscoresᵀ Q.
- dQ divided by √d_k:  dscores @ k -> dscores @ k / np.sqrt(q.shape[-1])
  dQ is divided by √d_k. The forward has no scale: dQ = dscores K.
- dK divided by √d_k:  -1, -2) @ q -> -1, -2) @ q / np.sqrt(q.shape[-1])
  dK is divided by √d_k. The forward has no scale: dK = dscoresᵀ Q.
- dbias divided by √d_k:  dscores.sum(axis=0) -> dscores.sum(axis=0) / np.sqrt(q.shape[-1])
  dbias is divided by √d_k. The forward has no scale: dbias is Σ dscores, as it is.
- dbias not summed:  dscores.sum(axis=0) -> dscores
  dbias is not summed over the batch: (B, H, T, S). Every row of the batch had the same bias, (H, T, S), so its
  gradients add.
- dbias averaged over the batch:  dscores.sum(axis=0) -> dscores.mean(axis=0)
  dbias is a mean over the batch, too small by the factor 1/B. It is the sum Σ dscores: a mean, if there is one, is the
  loss's, and is in dout already.
- dbias of the first sentence only:  dscores.sum(axis=0) -> dscores[0]
  dbias comes from the first row of the batch alone. All rows had the same bias: Σ dscores over the batch.
- dbias of the last sentence only:  dscores.sum(axis=0) -> dscores[-1]
  dbias comes from the last row of the batch alone: replaced (=) in a loop instead of added to (+=). All rows had the
  same bias: Σ dscores over the batch.
- dbias with an axis for the batch:  dscores.sum(axis=0) -> dscores.sum(axis=0, keepdims=True)
  dbias keeps an axis of length 1 for the batch (keepdims). It has the shape of the bias, (H, T, S).
- dbias summed over the heads instead of the batch:  dscores.sum(axis=0) -> dscores.sum(axis=1)
  dbias is summed over axis 1, the heads. Each head had a bias of its own; it is the batch, axis 0, that shared it.
- dbias summed over the heads too:  dscores.sum(axis=0) -> dscores.sum(axis=(0, 1))
  dbias is summed over the heads too. Each head had a bias of its own: the sum runs over the batch alone.
- dbias summed over the queries too:  dscores.sum(axis=0) -> dscores.sum(axis=(0, 2))
  dbias is summed over the queries too. Each query had its own row of the bias: the sum runs over the batch alone.
- dbias summed over the keys too:  dscores.sum(axis=0) -> dscores.sum(axis=(0, 3))
  dbias is summed over the keys too. Each key had its own column of the bias: the sum runs over the batch alone.
- dbias transposed:  dscores.sum(axis=0) -> np.swapaxes(dscores.sum(axis=0), -1, -2)
  dbias is transposed, (H, S, T). It lies like the scores: queries are rows, keys are columns.
- dbias from dA:  dscores.sum(axis=0) -> dweights.sum(axis=0)
  dbias is made from dA, the gradient of the weights. The bias was added to the scores, before the softmax: dbias = Σ
  dscores, behind softmax_backward.
- dbias from A:  dscores.sum(axis=0) -> weights.sum(axis=0)
  dbias is Σ A, the sum of the weights, with no gradient in it: dbias = Σ dscores over the batch.
- dbias from the scores:  dscores.sum(axis=0) -> (q @ np.swapaxes(k, -1, -2)).sum(axis=0)
  dbias is made from the scores Q Kᵀ themselves. It is the sum of their gradient: Σ dscores over the batch.
"""
    + amended(
        BACKWARD_MISTAKES,
        instead="""
- dV scaled too:  -1, -2) @ dout -> -1, -2) @ dout / np.sqrt(q.shape[-1])
  dV is divided by √d_k. There is no scale in this attention: dV = Aᵀ dout.
- softmax backward with the scores:  dweights, weights) -> dweights, q @ np.swapaxes(k, -1, -2))
  The softmax backward is done with the scores Q Kᵀ in the place of the weights. Its second argument is the output of
  the softmax, A.
- weights computed anew without the mask:
    dweights = dout -> weights = F.softmax(q @ np.swapaxes(k, -1, -2)); dweights = dout
  The weights are computed again from q and k, without the forward's bias and mask. Use the `weights` that are handed
  in.
- dQ and dK swapped:  return dq, dk, dv -> return dk, dq, dv
  dQ and dK are returned in the wrong order: it is dq, dk, dv, dbias.
- dK and dV swapped:  return dq, dk, dv -> return dq, dv, dk
  dK and dV are returned in the wrong order: it is dq, dk, dv, dbias.
- dQ and dV swapped:  return dq, dk, dv -> return dv, dk, dq
  The gradients are returned in the wrong order, dv, dk, dq, dbias: it is dq, dk, dv, dbias.
- dV first:  return dq, dk, dv -> return dv, dq, dk
  The gradients are returned in the wrong order, dv, dq, dk, dbias: it is dq, dk, dv, dbias.
""",
        without=("written for four axes only", "written for three axes only"),
    )
    + """
- dbias first:  return dq, dk, dv, dbias -> return dbias, dq, dk, dv
  The gradients are returned in the wrong order, dbias, dq, dk, dv: it is dq, dk, dv, dbias.
""",
)


EXERCISES = [UNSCALED_ATTENTION, UNSCALED_ATTENTION_BACKWARD]
