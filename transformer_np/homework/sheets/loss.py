"""Cross-entropy and its backward."""

from dataclasses import replace

import numpy as np

from ... import functional as F
from ..exercise import draw_sizes, extended
from .draws import Calls
from .sheet import Sheet

SHEET = Sheet(__file__)

# --- what both have in common -----------------------------------------------------------------------------------------


def certain_logits(rng, sizes):
    """Logits of a model that is certain, and sometimes wrong: one of 10,000 in each row, the others −10,000, and a row
    that lies far below them. They and everything computed from them are exact in float32 too."""
    B, T, V = sizes.values()
    likeliest = rng.integers(V, size=(B, T))
    likeliest[0, 0] = 0  # where the target is 1
    logits = np.where(np.arange(V) == likeliest[..., None], 1e4, -1e4)
    logits[-1, -1] -= 3e4
    return logits


def counted(targets, ignore_index):
    """Which targets count, and how many they are."""
    counts = np.ones(targets.shape, bool)
    if ignore_index is not None:
        counts = targets != ignore_index
    return counts, max(1, counts.sum())


def target_distribution(targets, V, smoothing):
    """q, (..., V): 1 − ε + ε/V at the target, ε/V elsewhere."""
    one_hot = 1.0 * (np.arange(V) == targets[..., None])
    return (1 - smoothing) * one_hot + smoothing / V


def cross_entropy_cases(rng):
    sizes = draw_sizes(rng, "B T V", least=3)
    B, T, V = sizes.values()
    targets = rng.integers(1, V, size=(B, T))
    targets[0, :2] = 1  # an id that occurs twice
    targets[0, 2], targets[1, 0] = 2, V - 1
    padded = targets.copy()
    padded[0, -1:] = padded[1, -2:] = padded[2, 1] = 0  # at least one target is left in every sentence
    with_zero = targets.copy()
    with_zero[-1, -1] = 0  # a class like any other
    case = Calls(rng, F.cross_entropy, sizes, "B T", logits=lambda x: 1.5 * x, targets=with_zero)
    return [
        case(""),
        case("ignore_index=0", targets=padded, ignore_index=0),
        case("ignore_index=-100", targets=np.where(padded == 0, -100, padded), ignore_index=-100),
        case("label_smoothing=0.3", label_smoothing=0.3),
        case("label_smoothing plus ignored ids", targets=padded, ignore_index=0, label_smoothing=0.2),
        case("logits of shape (T, V)", without="B", targets=targets[0]),
        case("logits of ±10,000", logits=certain_logits(rng, sizes), targets=targets),
        extended(case("all targets ignored", without="B", targets=np.full(T, 2), ignore_index=2)),
    ]


def cross_entropy(logits, targets, ignore_index=None, label_smoothing=0.0):
    V = logits.shape[-1]
    shifted = logits - logits.max(axis=-1, keepdims=True)
    powers = np.exp(shifted)
    total = powers.sum(axis=-1, keepdims=True)
    probs = powers / total
    log_probs = shifted - np.log(total)
    counts, number = counted(targets, ignore_index)
    weights = counts / number
    q = target_distribution(targets, V, label_smoothing)
    surprise = -np.sum(q * log_probs, axis=-1)
    loss = np.sum(weights * surprise)
    return loss, probs


def with_dloss(rng, cases):
    return [
        *cases,
        replace(cases[0], label="dloss=-0.7", options={"dloss": -0.7}),
        replace(cases[0], label="label_smoothing plus dloss", options={"label_smoothing": 0.2, "dloss": 1.7}),
    ]


def cross_entropy_backward(probs, targets, ignore_index=None, label_smoothing=0.0, dloss=1.0):
    V = probs.shape[-1]
    counts, number = counted(targets, ignore_index)
    q = target_distribution(targets, V, label_smoothing)
    share = np.ones(targets.shape) / number
    dlogits = dloss * share[..., None] * (counts[..., None] * (probs - q))
    return dlogits


EXERCISES = SHEET.both(
    F.cross_entropy, cross_entropy, cross_entropy_backward, cross_entropy_cases,
    labels={"logits of shape (T, V)": "probs of shape (T, V)", "logits of ±10,000": "some probabilities exactly 0"},
    first={"results": {"loss": "", "probs": "... V"}}, then=with_dloss,
)  # fmt: skip
