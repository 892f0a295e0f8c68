"""Attention in a window and its backward."""

from dataclasses import replace

import numpy as np

from ... import functional as F
from .draws import Calls, far_apart, only, sizes_without_squares
from .sheet import Sheet
from .softmax import softmax, softmax_backward

SHEET = Sheet(__file__)


def window_cases(rng):
    sizes = sizes_without_squares(rng, "B H K K_v")
    T = int(rng.integers(8, 10))  # no other size
    w = int(rng.integers(2, 4))
    sizes = only(sizes | {"T": T}, "B H T K K_v")
    case = Calls(rng, F.window_attention, sizes, leading="B H", without="H", window=w)
    plain = case("")
    q, k, *_ = plain.arguments
    return [
        plain,
        case("causal=True", causal=True),
        case("a window of 0", window=0),
        case("a window larger than the sequence", window=T + 2),
        case("a causal window larger than the sequence", window=T + 1, causal=True),
        case("a window as wide as the sequence", {"T": 2 * w + 1}),
        case("q of shape (B, H, T, K)", without=""),
        case("q of shape (T, K)", without="B H"),
        case("scores of ±10,000", **far_apart(rng, q, k)),
        case("a longer sequence", {"T": 23}, "B H"),
        case("K_v = K", {"K_v": sizes["K"]}),
        replace(case("a window below 0", window=-1), extended=True, raises="ValueError"),
    ]


def window_attention(q, k, v, window, causal=False):
    if window < 0:
        raise ValueError("window must be 0 or larger")
    T = q.shape[-2]
    behind = min(window, T - 1)
    ahead = 0 if causal else behind
    query, key = np.arange(T)[:, None], np.arange(T)
    seen = (key >= query - behind) & (key <= query + ahead)  # (T, T)
    scale = 1 / np.sqrt(q.shape[-1])
    scores = q @ np.swapaxes(k, -1, -2) * scale
    scores = np.where(seen, scores, -np.inf)
    weights = softmax(scores)
    out = weights @ v
    return out, band(weights, behind, ahead)


def band(full, behind, ahead):
    """Of (..., T, T) the columns (..., T, R) from `behind` before the diagonal to `ahead` after it."""
    T = full.shape[-1]
    columns = np.zeros((*full.shape[:-1], behind + 1 + ahead))
    for t in range(T):
        for j in range(behind + 1 + ahead):
            s = t - behind + j
            if 0 <= s < T:
                columns[..., t, j] = full[..., t, s]
    return columns


def padded_window_attention(q, k, v, behind, ahead, scale, mode, hidden="", cut=False):
    """Before the start and after the end there are zeros, or other keys: mode as in np.pad. hidden: the end where they
    are hidden, "start" or "end"; cut: whether their weights are set to 0 at the end."""
    around = [(0, 0)] * (q.ndim - 2) + [(behind, ahead), (0, 0)]
    k, v = np.pad(k, around, mode), np.pad(v, around, mode)
    keys = np.arange(q.shape[-2])[:, None] + np.arange(behind + 1 + ahead)  # (T, R)
    scores = np.einsum("...tk,...trk->...tr", q, k[..., keys, :]) * scale
    outside = {"start": keys < behind, "end": keys >= behind + q.shape[-2]}
    scores = np.where(outside.get(hidden, False), -np.inf, scores)
    weights = softmax(scores)
    weights = np.where(cut & (outside["start"] | outside["end"]), 0, weights)
    return np.einsum("...tr,...trk->...tk", weights, v[..., keys, :]), weights


def with_columns(rng, cases):
    """The cases with the size of a window."""
    for case in cases:
        *_, weights, _ = case.arguments
        yield replace(case, sizes=case.sizes | {"R": weights.shape[-1]})


def window_attention_backward(dout, q, k, v, weights, window, causal=False):
    T = q.shape[-2]
    behind = min(window, T - 1)
    ahead = 0 if causal else behind
    weights = spread(weights, T, behind, ahead)  # (..., T, T)
    inside = weights > 0
    dweights = inside * (dout @ np.swapaxes(v, -1, -2))
    scale = 1 / np.sqrt(q.shape[-1])
    dscores = inside * softmax_backward(dweights, weights) * scale
    dq = dscores @ k
    dk = np.swapaxes(dscores, -1, -2) @ q
    dv = np.swapaxes(weights, -1, -2) @ dout
    return dq, dk, dv


def spread(columns, T, behind, ahead):
    """The columns (..., T, R) of a band as (..., T, T)."""
    full = np.zeros((*columns.shape[:-1], T))
    for t in range(T):
        for j in range(behind + 1 + ahead):
            s = t - behind + j
            if 0 <= s < T:
                full[..., t, s] = columns[..., t, j]
    return full


EXERCISES = SHEET.both(
    F.window_attention, window_attention, window_attention_backward, window_cases,
    without=["10,000"], then=with_columns,  # all weights 0 or 1: no gradient
)  # fmt: skip
