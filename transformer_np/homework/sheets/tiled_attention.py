"""Attention by tiles and its backward."""

import numpy as np

from ... import functional as F
from ...functional.tiled import TILE
from ...masks import causal_mask
from ..exercise import extended
from .attention import masked
from .draws import Calls, far_apart, only, sizes_without_squares
from .sheet import Sheet

SHEET = Sheet(__file__)


def tiled_cases(rng):
    sizes = sizes_without_squares(rng, "B H K K_v")
    T, S = 8, 9 + 2 * int(rng.integers(2))  # no other sizes; odd: the last of the tiles of 2 is smaller
    sizes = only(sizes | {"T": T, "S": S}, "B H T S K K_v")
    case = Calls(rng, F.tiled_attention, sizes, leading="B H", without="H", tile=2)
    B = sizes["B"]
    hidden = rng.random((B, T, S)) < 0.3
    hidden[..., [1, 3]] = False  # something to see in every row, with each of the masks below
    empty = hidden.copy()
    empty[:, 1] = empty[-1, 4] = True
    start = hidden.copy()
    start[:, ::2, :2] = True  # the first tile of keys, for some queries
    padding = np.zeros((B, 1, S), bool)
    padding[0, :, 4:] = padding[1, :, -1:] = padding[..., 2:4] = True  # the second tile from every query
    bias = rng.normal(size=(T, S))
    plain = case("")
    q, k, _ = plain.arguments
    return [
        plain,
        case("tiles of one", tile=1),
        case("tiles of three", tile=3),
        case("the default tile (larger than the sequence)", tile=None),
        case("a Boolean mask", mask=hidden),
        case("a float mask to be added", mask=bias),
        case("keys hidden from everyone", mask=padding),
        extended(case("a tuple of masks", mask=(padding, bias, hidden))),
        case("a causal mask with as many keys as queries", {"T": S}, mask=causal_mask(S)),
        extended(case("rows that are hidden whole", mask=empty)),
        extended(case("rows that are hidden whole by −inf", mask=np.where(empty, -np.inf, bias))),
        extended(case("one number of a mask for all keys", mask=rng.normal(size=(T, 1)))),
        extended(case("a first tile that is hidden from some queries", mask=start)),
        case("scores of ±10,000", **far_apart(rng, q, k)),
        case("all scores near −10,000", **far_apart(rng, q, k, signs=(-1,))),
        case("q of shape (B, H, T, K)", without=""),
        case("q of shape (T, K)", without="B H"),
        case("a long sequence in tiles of 64", {"T": 3, "S": 300}, "B H", q=np.abs, k=_rising_and_falling, tile=64),
    ]


def _rising_and_falling(k):
    """Keys whose scores, with a q above 0, go up and down, so that the largest so far is seldom in the last tile."""
    return k + 0.8 * np.sin(np.arange(len(k)) / 23)[:, None]


def tiled_attention(q, k, v, mask=None, tile=TILE):
    scale = 1 / np.sqrt(q.shape[-1])
    scores = q @ np.swapaxes(k, -1, -2) * scale
    scores = masked(scores, mask)
    S = scores.shape[-1]
    m = np.full(scores.shape[:-1], -np.inf)
    l = np.zeros_like(m)
    o = np.zeros((*m.shape, v.shape[-1]))
    for start in range(0, S, tile):
        s, values = scores[..., start : start + tile], v[..., start : start + tile, :]
        largest = np.maximum(m, s.max(axis=-1))
        shift = np.maximum(largest, np.finfo(float).min)  # −inf where all was hidden so far
        e, correction = np.exp(s - shift[..., None]), np.exp(m - shift)
        share = e.sum(axis=-1)
        l = l * correction + share
        o = o * correction[..., None] + e @ values
        m = largest
    total = np.where(l == 0, 1, l)
    out = o / total[..., None]
    log_total = np.where(l == 0, -np.inf, m + np.log(total))
    return out, log_total


def log_sum_exp(scores, axis):
    largest = np.maximum(scores.max(axis=axis, keepdims=True), np.finfo(float).min)
    return largest + np.log(np.exp(scores - largest).sum(axis=axis, keepdims=True))


def tiled_attention_backward(dout, q, k, v, out, log_total, mask=None, tile=TILE):
    scale = 1 / np.sqrt(q.shape[-1])
    scores = q @ np.swapaxes(k, -1, -2) * scale
    scores = masked(scores, mask)
    shift = np.where(np.isneginf(log_total), 0, log_total)[..., None]
    delta = (dout * out).sum(axis=-1, keepdims=True)
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    T, S = scores.shape[-2:]
    for i in range(0, T, tile):
        for j in range(0, S, tile):
            rows, keys = slice(i, i + tile), slice(j, j + tile)
            weights = np.exp(scores[..., rows, keys] - shift[..., rows, :])
            dweights = dout[..., rows, :] @ np.swapaxes(v[..., keys, :], -1, -2)
            dscores = weights * (dweights - delta[..., rows, :]) * scale
            dq[..., rows, :] += dscores @ k[..., keys, :]
            dk[..., keys, :] += np.swapaxes(dscores, -1, -2) @ q[..., rows, :]
            dv[..., keys, :] += np.swapaxes(weights, -1, -2) @ dout[..., rows, :]
    return dq, dk, dv


EXERCISES = SHEET.both(
    F.tiled_attention, tiled_attention, tiled_attention_backward, tiled_cases,
    without=["10,000", "tiles of one"],  # weights of 0 or 1; many tiles
)  # fmt: skip
