"""Attention without a scale, with a bias, and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result
from .attention import _SCALES, SCALED_DOT_PRODUCT_ATTENTION, _cases, _products, _some_hidden, _wrong_attention
from .attention_backward import SCALED_DOT_PRODUCT_ATTENTION_BACKWARD, _wrong_backward, _wrong_dscores

# --- unscaled_attention ----------------------------------------------------------------------------------------------


def _unscaled_cases(rng):
    """The calls that try scaled_dot_product_attention with heads, with a bias."""

    def bias_for(q, k):
        return rng.normal(size=(q.shape[1], q.shape[2], k.shape[2]))

    cases = []
    for case in _cases(rng, only_scores=False):
        q, k, _ = case.arguments
        if q.ndim == 4:
            cases.append(Case(case.label, case.arguments, {"bias": bias_for(q, k), **case.options}, case.sizes))
    plain, sizes = cases[0].arguments, cases[0].sizes
    B, T, S = sizes["B"], sizes["T"], sizes["S"]
    q, k, v = (rng.normal(size=(B, B, *array.shape[2:])) for array in plain)
    return [
        *cases,
        Case("no bias", plain, sizes=sizes),
        Case("a mask and no bias", plain, {"mask": _some_hidden(rng, T, S)}, sizes),
        Case("as many heads as rows of the batch", (q, k, v), {"bias": bias_for(q, k)}, sizes | {"H": B}),
    ]


# what the scores are multiplied by, and what the student reads
_FACTORS = {
    "divided by √d_k": (
        lambda H, T, S, K: K**-0.5,
        "The scores are divided by √d_k (sqrt), as in the attention of the original Transformer. T5 leaves the scale "
        "1/√d_k out: its W_q starts smaller by as much.",
    ),
    "divided by d_k": (
        lambda H, T, S, K: K**-1.0,
        "The scores are divided by d_k. There is no scale in this attention: A = softmax(Q Kᵀ + bias + M).",
    ),
    "multiplied by √d_k": (
        lambda H, T, S, K: K**0.5,
        "The scores are multiplied by √d_k (sqrt), as if a scale had to be undone. There is none: A = softmax(Q Kᵀ + "
        "bias + M).",
    ),
    "divided by √d_model": (
        lambda H, T, S, K: (H * K) ** -0.5,
        "The scores are divided by √d_model = √(H · d_k). There is no scale in this attention: A = softmax(Q Kᵀ + bias "
        "+ M).",
    ),
    "divided by √S": (
        lambda H, T, S, K: S**-0.5,
        "The scores are divided by √S, from the number of keys. There is no scale in this attention: A = softmax(Q Kᵀ "
        "+ bias + M).",
    ),
    "divided by √T": (
        lambda H, T, S, K: T**-0.5,
        "The scores are divided by √T, from the number of queries. There is no scale in this attention: A = softmax(Q "
        "Kᵀ + bias + M).",
    ),
    "divided by the fourth root of d_k": (
        lambda H, T, S, K: K**-0.25,
        "One of q and k is divided by the fourth root of d_k, or the scores are. There is no scale in this attention: "
        "A = softmax(Q Kᵀ + bias + M).",
    ),
    "divided by 8": (
        lambda H, T, S, K: 1 / 8,
        "The scores are divided by 8, which is √d_k for d_k = 64. There is no scale in this attention: A = softmax(Q "
        "Kᵀ + bias + M).",
    ),
}


def _factor(made, q, k):
    sizes = q.shape[1], q.shape[2], k.shape[2], q.shape[3]
    return next((factor(*sizes) for name, (factor, _) in _FACTORS.items() if made(name)), 1.0)


def _unscaled(made):
    """A `made` for what scaled_dot_product_attention has in common with this one."""
    return lambda name: name == "no 1/√d_k" or made(name)


def _wrong_bias_of_scores(made, bias, q, k):
    """The bias as it is added."""
    if bias is None:
        if made("bias = None not handled"):
            raise TypeError("unsupported operand")
        return 0.0
    root = q.shape[-1] ** -0.5
    changed = {
        "bias forgotten": lambda: 0.0,
        "bias subtracted": lambda: -bias,
        "bias added twice": lambda: 2 * bias,
        "bias divided by √d_k": lambda: bias * root,
        "bias multiplied by √d_k": lambda: bias / root,
        "scores and bias divided by √d_k": lambda: bias * root,
        "bias transposed": lambda: bias.swapaxes(-1, -2),
        "bias along the batch": lambda: bias[:, None],
        "only what raises a score in the bias": lambda: np.maximum(bias, 0),
        "bias averaged over the heads": lambda: bias.mean(axis=0),
        "bias summed over the heads": lambda: bias.sum(axis=0),
        "bias of the first head for all": lambda: bias[0],
        "bias of the first query for all": lambda: bias[:, :1],
        "scores multiplied by the bias": lambda: _products(_unscaled(made), q, k) * (bias - 1),
        "bias taken for a Boolean mask": lambda: np.where(bias != 0, -np.inf, 0.0),
        "bias after the softmax": lambda: 0.0,
        "weights multiplied by the bias": lambda: 0.0,
    }
    return next((change() for name, change in changed.items() if made(name)), bias)


def _wrong_unscaled_attention(made, q, k, v, bias=None, mask=None):
    if mask is not None and made("bias ignored where there is a mask"):
        bias = None
    if bias is not None and made("mask ignored where there is a bias"):
        mask = None
    if bias is None and made("mask ignored where there is no bias"):
        mask = None
    factor = q.shape[-1] ** -0.5 if made("scores and bias divided by √d_k") else _factor(made, q, k)
    results = _wrong_attention(_unscaled(made), q * factor, k, v, mask, _wrong_bias_of_scores(made, bias, q, k))
    late = made("bias after the softmax") or made("weights multiplied by the bias")
    if bias is None or not late:
        return results
    weights = results[1] + bias if made("bias after the softmax") else results[1] * bias
    return weights @ v, weights


_OF_SCALED = {
    *_SCALES,
    "1/√d_v instead of 1/√d_k",
    "scale after the softmax",
    "mask added before the scale",
    "1/√d_k on dQ only",
    "1/√d_k on dK only",
    "written for four axes only",
    "written for three axes only",
    "softmax over axis 2",  # the queries: there are always four axes
}  # the mistakes in scaled attention that cannot be made here


def _but_those_of_the_scale(mistakes):
    return {name: text for name, text in mistakes.items() if name not in _OF_SCALED}


UNSCALED_ATTENTION = Exercise(
    F.unscaled_attention,
    (Result("out", "B H T K_v"), Result("weights", "B H T S")),
    _unscaled_cases,
    {
        **{name: text for name, (_, text) in _FACTORS.items()},
        "scores and bias divided by √d_k": (
            "Scores and bias together are divided by √d_k (sqrt), (Q Kᵀ + bias) / √d_k. T5 leaves the scale out: A = "
            "softmax(Q Kᵀ + bias + M)."
        ),
        "bias forgotten": "The bias is not used: A = softmax(Q Kᵀ + bias + M). Nothing else tells T5 about positions.",
        "bias subtracted": "The bias is subtracted from the scores: the sign is wrong, it is added.",
        "bias added twice": "The bias is added to the scores twice.",
        "bias divided by √d_k": "The bias is divided by √d_k. It is added as it is: there is no scale here.",
        "bias multiplied by √d_k": "The bias is multiplied by √d_k. It is added as it is: there is no scale here.",
        "bias after the softmax": (
            "The bias is added to the weights, after the softmax, so that they do not add to 1. It belongs to the "
            "scores, before the softmax."
        ),
        "weights multiplied by the bias": (
            "The weights are multiplied by the bias, after the softmax. It is added to the scores, before the softmax."
        ),
        "scores multiplied by the bias": "The scores are multiplied by the bias. It is added: Q Kᵀ + bias.",
        "bias transposed": (
            "The bias is transposed: its last two axes are exchanged. It lies like the scores, (H, T, S): queries are "
            "rows, keys are columns. With T ≠ S NumPy refuses, with T = S nothing is said."
        ),
        "bias along the batch": (
            "The first axis of the bias is laid along the batch (`bias[:, None]`). It is the heads: (H, T, S) "
            "broadcasts over the batch as it is."
        ),
        "only what raises a score in the bias": (
            "The negative numbers of the bias are lost. It raises and lowers scores, and is added as it is."
        ),
        "bias averaged over the heads": "The bias is averaged over the heads. Every head has a bias of its own.",
        "bias summed over the heads": "The bias is summed over the heads. Every head has a bias of its own.",
        "bias of the first head for all": "All heads get the bias of the first. Every head has a bias of its own.",
        "bias of the first query for all": (
            "All queries get the bias of the first. Each has its own distances to the keys, a row of the bias each."
        ),
        "bias taken for a Boolean mask": (
            "The bias hides: it is used as if it were a mask. It is added to the scores and only raises or lowers them."
        ),
        "bias = None not handled": (
            "It fails without a bias. bias is None by default, and then nothing is to be added: a test such as `if "
            "bias is not None` is missing."
        ),
        "bias ignored where there is a mask": (
            "Where there is a mask, the bias is not used, as in `if mask … elif bias …`. Both are applied: Q Kᵀ + bias "
            "+ M."
        ),
        "mask ignored where there is a bias": (
            "Where there is a bias, the mask is not used, as in `if bias … elif mask …`. Both are applied: Q Kᵀ + bias "
            "+ M."
        ),
        "mask ignored where there is no bias": (
            "Without a bias the mask is not used, as when its code is inside `if bias is not None`. Each of the two "
            "may be there without the other."
        ),
        **_but_those_of_the_scale(SCALED_DOT_PRODUCT_ATTENTION.mistakes),
        "output scaled by 1/√d_k": "The output is divided by √d_k. There is no scale in this attention: out = A V.",
    },
    _wrong_unscaled_attention,
    (
        "Which factor is missing that the original attention has, and what is added to the scores in its place?",
        "out = A V,  A = softmax(Q Kᵀ + bias + M), the softmax over the keys; weight 0 in a row hidden whole",
        "notebook 13; your own scaled_dot_product_attention of notebook 02. The bias (H, T, S) broadcasts over the "
        "batch.",
    ),
    difficulty=2,
    section="Raffel et al. 2020, §2.1",
    chapter="T5",
    place=6,
)


# --- unscaled_attention_backward -------------------------------------------------------------------------------------


def _unscaled_backward_cases(rng):
    cases = []
    for forward in _unscaled_cases(rng):
        if "10,000" in forward.label or "far above" in forward.label:  # all weights 0 or 1 there: no gradient
            continue
        out, weights = F.unscaled_attention(*forward.arguments, **forward.options)
        cases.append(
            Case(forward.label, (rng.normal(size=out.shape), *forward.arguments, weights), sizes=forward.sizes)
        )
    return cases


def _wrong_unscaled_attention_backward(made, dout, q, k, v, weights):
    B, _, T, K = q.shape
    root, factor = K**-0.5, _factor(made, q, k)
    both = root if made("dQ and dK divided by √d_k") else 1.0
    of_q = root if made("dQ divided by √d_k") else factor * both
    of_k = root if made("dK divided by √d_k") else factor * both
    unscaled = _unscaled(made)
    *orders, dv = _wrong_backward(unscaled, dout, q * of_k, k * of_q, v, weights)  # dQ = dscores K, dK = dscoresᵀ Q
    used, dweights, dscores = _wrong_dscores(unscaled, dout, q, k, v, weights)
    terms = dscores * factor
    if made("dbias from dA"):
        terms = dweights
    if made("dbias from A"):
        terms = used
    if made("dbias from the scores"):
        terms = q @ k.swapaxes(-1, -2)
    if made("dbias divided by √d_k"):
        terms = terms * root
    sums = {
        "dbias not summed": lambda: terms,
        "dbias averaged over the batch": lambda: terms.mean(axis=0),
        "dbias of the first sentence only": lambda: terms[0],
        "dbias of the last sentence only": lambda: terms[-1],
        "dbias with an axis for the batch": lambda: terms.sum(axis=0, keepdims=True),
        "dbias summed over the heads instead of the batch": lambda: terms.sum(axis=1),
        "dbias summed over the heads too": lambda: terms.sum(axis=(0, 1)),
        "dbias summed over the queries too": lambda: terms.sum(axis=(0, 2)),
        "dbias summed over the keys too": lambda: terms.sum(axis=(0, 3)),
        "dbias transposed": lambda: terms.sum(axis=0).swapaxes(-1, -2),
        "divided by the batch": lambda: terms.sum(axis=0) / B,
        "divided by the number of queries": lambda: terms.sum(axis=0) / T,
    }
    dbias = next((total() for name, total in sums.items() if made(name)), terms.sum(axis=0))
    return (dbias, *orders, dv) if made("dbias first") else (*orders, dv, dbias)


_ALL_OF_DSCORES = {
    name: f"The gradient of the scores is {name}, and with it dQ, dK and dbias. The forward has no scale: dQ = dscores "
    "K, dK = dscoresᵀ Q, dbias = Σ dscores."
    for name in _FACTORS
}
_ORDER = "it is dq, dk, dv, dbias."

UNSCALED_ATTENTION_BACKWARD = Exercise(
    F.unscaled_attention_backward,
    (
        Result("dq", "B H T K"),
        Result("dk", "B H S K"),
        Result("dv", "B H S K_v"),
        Result("dbias", "H T S"),
    ),
    _unscaled_backward_cases,
    {
        **_ALL_OF_DSCORES,
        "dQ and dK divided by √d_k": (
            "dQ and dK are divided by √d_k (sqrt), as in the attention of the original Transformer. The forward has no "
            "scale 1/√d_k here, and so the backward has none: dQ = dscores K, dK = dscoresᵀ Q."
        ),
        "dQ divided by √d_k": "dQ is divided by √d_k. The forward has no scale: dQ = dscores K.",
        "dK divided by √d_k": "dK is divided by √d_k. The forward has no scale: dK = dscoresᵀ Q.",
        "dbias divided by √d_k": "dbias is divided by √d_k. The forward has no scale: dbias is Σ dscores, as it is.",
        "dbias not summed": (
            "dbias is not summed over the batch: (B, H, T, S). Every row of the batch had the same bias, (H, T, S), so "
            "its gradients add."
        ),
        "dbias averaged over the batch": (
            "dbias is a mean over the batch, too small by the factor 1/B. It is the sum Σ dscores: a mean, if there is "
            "one, is the loss's, and is in dout already."
        ),
        "dbias of the first sentence only": (
            "dbias comes from the first row of the batch alone. All rows had the same bias: Σ dscores over the batch."
        ),
        "dbias of the last sentence only": (
            "dbias comes from the last row of the batch alone: replaced (=) in a loop instead of added to (+=). All "
            "rows had the same bias: Σ dscores over the batch."
        ),
        "dbias with an axis for the batch": (
            "dbias keeps an axis of length 1 for the batch (keepdims). It has the shape of the bias, (H, T, S)."
        ),
        "dbias summed over the heads instead of the batch": (
            "dbias is summed over axis 1, the heads. Each head had a bias of its own; it is the batch, axis 0, that "
            "shared it."
        ),
        "dbias summed over the heads too": (
            "dbias is summed over the heads too. Each head had a bias of its own: the sum runs over the batch alone."
        ),
        "dbias summed over the queries too": (
            "dbias is summed over the queries too. Each query had its own row of the bias: the sum runs over the batch "
            "alone."
        ),
        "dbias summed over the keys too": (
            "dbias is summed over the keys too. Each key had its own column of the bias: the sum runs over the batch "
            "alone."
        ),
        "dbias transposed": (
            "dbias is transposed, (H, S, T). It lies like the scores: queries are rows, keys are columns."
        ),
        "dbias from dA": (
            "dbias is made from dA, the gradient of the weights. The bias was added to the scores, before the softmax: "
            "dbias = Σ dscores, behind softmax_backward."
        ),
        "dbias from A": (
            "dbias is Σ A, the sum of the weights, with no gradient in it: dbias = Σ dscores over the batch."
        ),
        "dbias from the scores": (
            "dbias is made from the scores Q Kᵀ themselves. It is the sum of their gradient: Σ dscores over the batch."
        ),
        **_but_those_of_the_scale(SCALED_DOT_PRODUCT_ATTENTION_BACKWARD.mistakes),
        "dV scaled too": "dV is divided by √d_k. There is no scale in this attention: dV = Aᵀ dout.",
        "softmax backward with the scores": (
            "The softmax backward is done with the scores Q Kᵀ in the place of the weights. Its second argument is the "
            "output of the softmax, A."
        ),
        "weights computed anew without the mask": (
            "The weights are computed anew from q and k, without the forward's bias and mask. Use the `weights` that "
            "are handed in."
        ),
        "dQ and dK swapped": f"dQ and dK are returned in the wrong order: {_ORDER}",
        "dK and dV swapped": f"dK and dV are returned in the wrong order: {_ORDER}",
        "dQ and dV swapped": f"The gradients are returned in the wrong order, dv, dk, dq, dbias: {_ORDER}",
        "dV first": f"The gradients are returned in the wrong order, dv, dq, dk, dbias: {_ORDER}",
        "dbias first": f"The gradients are returned in the wrong order, dbias, dq, dk, dv: {_ORDER}",
    },
    _wrong_unscaled_attention_backward,
    (
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
)


EXERCISES = [UNSCALED_ATTENTION, UNSCALED_ATTENTION_BACKWARD]
