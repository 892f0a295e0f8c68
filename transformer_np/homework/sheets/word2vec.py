"""Skip-gram with negative sampling: the loss and its backward."""

from dataclasses import replace

import numpy as np

from ... import functional as F
from ..exercise import draw_sizes, extended
from .activations import sigmoid
from .draws import Calls
from .sheet import Sheet

SHEET = Sheet(__file__)


def with_scores(rng, N, K, D, size):
    """Vectors whose scores are ±size, of either sign for the context and for the negatives."""
    center = rng.choice([-1, 1], (N, D)) * rng.uniform(0.5, 1.5, (N, D))
    score, noise = size * rng.choice([-1.0, 1.0], N), size * rng.choice([-1.0, 1.0], (N, K))
    score[:2], noise[0, :2] = (-size, size), (-size, size)
    length = (center**2).sum(axis=-1)  # (N,)
    noise = (noise / length[:, None])[..., None] * center[:, None]
    return {"center": center, "context": (score / length)[:, None] * center, "negatives": noise}


def negative_sampling_loss_cases(rng):
    case = Calls(rng, F.negative_sampling_loss, draw_sizes(rng, "N K D", least=3))
    N, K, D = case.sizes.values()
    plain = case("")
    _, context, negatives = (array.copy() for array in plain.arguments)
    negatives[:, 1] = context
    negatives[0] = context[0]
    return [
        plain,
        extended(case("scores of ±60", **with_scores(rng, N, K, D, 60.0))),
        extended(case("scores of ±10,000", **with_scores(rng, N, K, D, 1e4))),
        case("the context among its negatives", context=context, negatives=negatives),
        case("all scores 0", center=np.zeros_like),
        case("as many negatives as pairs", {"K": N}),
        case("as many negatives as dimensions", {"D": K}),
        case("all sizes equal", {"K": N, "D": N}),
        case("one pair", {"N": 1}),
        case("one negative for each pair", {"K": 1}),
    ]


def log_sigmoid(x):
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def negative_sampling_loss(center, context, negatives):
    score = (center * context).sum(axis=-1)  # (N,)
    noise = (center[:, None] * negatives).sum(axis=-1)  # (N, K)
    log_p, log_q = log_sigmoid(score), log_sigmoid(-noise)
    of_negatives = log_q.sum(axis=-1)
    loss = -np.mean(log_p + of_negatives)
    p_context, p_negatives = sigmoid(score), sigmoid(noise)
    return loss, p_context, p_negatives


def with_dloss(rng, cases):
    plain, *others = cases
    return [
        plain,
        *(replace(case, extended=False) for case in others),
        *(replace(plain, label=f"dloss={dloss}", options={"dloss": dloss}) for dloss in (-0.7, 2.5)),
    ]


def negative_sampling_loss_backward(center, context, negatives, p_context, p_negatives, dloss=1.0):
    N = len(center)
    scale = dloss / N
    ds = scale * (p_context - 1)  # (N,)
    dnoise = scale * p_negatives  # (N, K)
    from_context = ds[:, None] * context
    from_negatives = (dnoise[..., None] * negatives).sum(axis=1)
    dcenter = from_context + from_negatives
    dcontext = ds[:, None] * center
    dnegatives = dnoise[..., None] * center[:, None]
    return dcenter, dcontext, dnegatives


EXERCISES = SHEET.both(
    F.negative_sampling_loss, negative_sampling_loss, negative_sampling_loss_backward, negative_sampling_loss_cases,
    first={"results": {"loss": "", "p_context": "N", "p_negatives": "N K"}}, then=with_dloss,
)  # fmt: skip
