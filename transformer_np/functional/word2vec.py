"""Skip-gram with negative sampling (Mikolov et al. 2013b)."""

import numpy as np

from ..support.checks import check_number
from ..support.shapes import shapes


@shapes(center="N D", context="N D", negatives="N K D")
def negative_sampling_loss(center, context, negatives):
    """Skip-gram with negative sampling (Mikolov et al. 2013b, eq. 4): tell the context word from K random words.

        L = −mean over N of [log σ(c · o) + Σ_k log σ(−c · n_k)],    σ(s) = 1 / (1 + exp(−s))

    center c (N, D), context o (N, D), negatives n (N, K, D)
    ->  loss in nats per pair (a Python float), p_context (N,), p_negatives (N, K)

    p = σ(score) is the model's probability that the word is a context word. It should become 1 for the context and 0
    for the negatives. If all scores are 0, the loss is (K + 1) ln 2. It is finite for scores of any size.
    """
    surprise, p_not_context = _softplus(-np.vecdot(center, context))  # (N,)
    noise_surprise, p_negatives = _softplus(np.vecdot(center[:, None], negatives))  # (N, K)
    loss = float((surprise + noise_surprise.sum(axis=-1)).mean())
    return loss, 1 - p_not_context, p_negatives


@shapes(center="N D", context="N D", negatives="N K D", p_context="N", p_negatives="N K")
def negative_sampling_loss_backward(center, context, negatives, p_context, p_negatives, dloss=1.0):
    """Backward of negative_sampling_loss. σ and logarithm combine to p − 1 for the context and p for a negative.

        ds = dloss · (p − 1) / N,    ds_k = dloss · p_k / N
        dc = ds o + Σ_k ds_k n_k,    do = ds c,    dn_k = ds_k c

    p_context (N,), p_negatives (N, K) the forward's second and third output, dloss a number
    ->  dcenter (N, D), dcontext (N, D), dnegatives (N, K, D)
    """
    check_number("dloss", dloss)
    scale = float(dloss) / len(center)
    dscore = (scale * (p_context - 1))[:, None]  # (N, 1)
    dnoise = scale * p_negatives  # (N, K)
    dcenter = dscore * context
    dcenter += (dnoise[:, None] @ negatives)[:, 0]  # (N, 1, K) @ (N, K, D)
    return dcenter, dscore * center, dnoise[..., None] * center[:, None]


def _softplus(x):
    """log(1 + exp(x)) and its slope 1 / (1 + exp(−x)). The argument of exp is never positive: it cannot overflow."""
    small = np.exp(-np.abs(x))
    return np.maximum(x, 0) + np.log1p(small), np.where(x >= 0, 1, small) / (1 + small)
