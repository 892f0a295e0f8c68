"""Attention by tiles and its backward."""

from dataclasses import replace

import numpy as np

from ... import functional as F
from ...functional.tiled import TILE
from ...masks import causal_mask
from ..exercise import Case, Exercise, Result, extended
from ..notes import amended
from .attention import masked
from .draws import far_apart, sizes_without_squares


def tiled_cases(rng):
    sizes = sizes_without_squares(rng, "B H K K_v")
    B, H, K, K_v = sizes.values()
    T, S = 6, 7 + 2 * int(rng.integers(2))  # odd: the last of the tiles of 2 is smaller
    sizes |= {"T": T, "S": S}

    def qkv(*lead, T=T, S=S):
        return tuple(rng.normal(size=(*lead, *shape)) for shape in ((T, K), (S, K), (S, K_v)))

    q, k, v = plain = qkv(B)
    hidden = rng.random((B, T, S)) < 0.3
    hidden[..., 3] = False  # something to see in every row
    empty = hidden.copy()
    empty[:, 1] = empty[-1, 4] = True
    start = hidden.copy()
    start[:, ::2, :2] = True  # the first tile of keys, for some queries
    padding = np.zeros((B, 1, S), bool)
    padding[0, :, 4:] = padding[1, :, -1:] = True
    bias = rng.normal(size=(T, S))
    large = *far_apart(rng, q, k), v
    far_below = *far_apart(rng, q, k, signs=(-1,)), v
    square = qkv(B, T=S)
    small = {"tile": 2}
    return [
        Case("", plain, small, sizes),
        Case("tiles of one", plain, {"tile": 1}, sizes),
        Case("the default tile, larger than the sequence", plain, sizes=sizes),
        Case("a Boolean mask", plain, {"mask": hidden, **small}, sizes),
        Case("a float mask to be added", plain, {"mask": bias, **small}, sizes),
        Case("keys hidden from everyone", plain, {"mask": padding, "tile": 3}, sizes),
        extended(Case("a tuple of masks", plain, {"mask": (padding, bias, hidden), "tile": 3}, sizes)),
        Case("a causal mask, as many keys as queries", square, {"mask": causal_mask(S), **small}, sizes | {"T": S}),
        extended(Case("rows that are hidden whole", plain, {"mask": empty, **small}, sizes)),
        extended(Case("a first tile that is hidden whole", plain, {"mask": start, **small}, sizes)),
        Case("scores of ±10,000", large, small, sizes),
        Case("all scores far below 0, −10,000", far_below, small, sizes),
        Case("heads, q of shape (B, H, T, K)", qkv(B, H), {"tile": 4}, sizes),
        Case("one sequence, q of shape (T, K)", qkv(), {"tile": 4}, sizes),
        Case("as many keys as queries", square, small, sizes | {"T": S}),
        Case("a long sequence", _growing(*qkv(T=3, S=300)), {"tile": 64}, sizes | {"T": 3, "S": 300}),
    ]


def _growing(q, k, v):
    """Scores that go up and down along the keys, so that the largest so far is seldom in the last tile."""
    along = np.abs(q).mean() * np.sin(np.arange(len(k)) / 23)[:, None]
    return np.abs(q), k + along, v


SCALE_MISTAKES = """
- no 1/√d_k:  1 / np.sqrt(q.shape[-1]) -> 1
  The scores are not scaled: the factor 1/√d_k (1/sqrt(K)) is missing.
- 1/d_k instead of 1/√d_k:  np.sqrt(q.shape[-1]) -> q.shape[-1]
  The scores are divided by d_k instead of √d_k: the square root is missing, or the scale is there twice.
- multiplied by √d_k:  1 / np.sqrt(q.shape[-1]) -> np.sqrt(q.shape[-1])
  The scores are multiplied by √d_k (sqrt(K)). Divide by it.
- √ of the values' size:  np.sqrt(q.shape[-1]) -> np.sqrt(v.shape[-1])
  The scale is 1/√d_v, with the size of the values. A score is a product of query and key: 1/√d_k, q.shape[-1].
"""

MASK_MISTAKES = """
- mask ignored:  in masked: return scores
  The mask is ignored: hidden keys are seen.
- only the first of several masks:  in masked: for part in mask: -> for part in mask[:1]:
  Only the first mask of a tuple is applied. Apply all of them: go through the tuple.
- Boolean mask the other way round:  np.where(mask, -np.inf -> np.where(~mask, -np.inf
  The mask is read the other way round: True hides, here it shows.
- Boolean mask added as a number:  np.where(mask, -np.inf, scores) -> scores + mask
  A Boolean mask is added to the scores as a number, True as 1. Where it is True the score has to become −inf.
- hidden scores set to 0:  mask, -np.inf -> mask, 0
  Hidden scores are set to 0 instead of −inf: a score of 0 still has the weight exp(0) = 1 in the sum.
- float mask ignored:  scores + mask -> scores
  A float mask is ignored. It is the lecture's M and is added to the scores, whatever its numbers.
- float mask taken for a Boolean one:  scores + mask -> np.where(mask != 0, -np.inf, scores)
  A float mask is used as if it were Boolean, hiding where it is not 0. It is the lecture's M: add it to the scores.
- float mask subtracted:  scores + mask -> scores - mask
  A float mask is subtracted; it is the lecture's M and is added to the scores.
"""


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
    log_total = m + np.log(total)
    return out, log_total


def log_sum_exp(scores, axis):
    largest = np.maximum(scores.max(axis=axis, keepdims=True), np.finfo(float).min)
    return largest + np.log(np.exp(scores - largest).sum(axis=axis, keepdims=True))


TILED_ATTENTION = Exercise(
    F.tiled_attention,
    results=(Result("out", "... T K_v"), Result("log_total", "... T")),
    cases=tiled_cases,
    answer=tiled_attention,
    hints=(
        "You have the softmax over some keys, and more keys come, one with a larger score. How must the old sums "
        "change?",
        "m' = max(m, max s), l' = l exp(m − m') + Σ exp(s − m'), o' = o exp(m − m') + Σ exp(s − m') v; out = o / l, "
        "log_total = m + log l",
        "notebook 10, “Tiles”. Right first: without tiles, log_total is the log-sum-exp of a row of scores.",
    ),
    difficulty=3,
    section="Milakov & Gimelshein 2018; Dao et al. 2022",
    chapter="Long sequences",
    place=7,
    mistakes=SCALE_MISTAKES
    + MASK_MISTAKES
    + """
- −1e9 for −inf:  mask, -np.inf -> mask, -1e9
  Hidden scores are set to −1e9 instead of −inf. A query that may see nothing then has equal scores and gets the mean of
  the values; it gets output 0 and log_total −inf.
- −1e8 for −inf:  mask, -np.inf -> mask, -1e8
  Hidden scores are set to −1e8 instead of −inf. A query that may see nothing then has equal scores and gets the mean of
  the values; it gets output 0 and log_total −inf.
- −1e9 added for −inf:  np.where(mask, -np.inf, scores) -> scores - 1e9 * mask
  −1e9 is added to hidden scores. In a row that is hidden whole that changes nothing, and the query sees all; it gets
  output 0 and log_total −inf. Set hidden scores to −inf.
- running maximum not corrected for:
    l * correction -> l
    o * correction[..., None] -> o
  When the maximum grows, the earlier sums are not corrected: l and o of the earlier tiles belong to the old maximum m
  and have to be multiplied by exp(m − m').
- l not corrected:  l * correction -> l
  When the maximum grows, the sum l is not corrected, only o is: both were summed with the old maximum and take the
  factor exp(m − m').
- o not corrected:  o * correction[..., None] -> o
  When the maximum grows, the weighted sum o is not corrected, only l is: both were summed with the old maximum and take
  the factor exp(m − m').
- correction the wrong way round:  np.exp(m - shift) -> np.where(np.isinf(m), 0, np.exp(shift - m))
  The correction is exp(m' − m), its inverse: a larger maximum m' makes the earlier sums smaller, exp(m − m').
- maximum of the tile alone:  np.maximum(m, s.max(axis=-1)) -> s.max(axis=-1)
  The maximum is that of the newest tile, not the largest so far: m' = max(m, max s). Where an earlier tile had larger
  scores, the correction exp(m − m') overflows, and with a tile of −inf it is NaN.
- maximum of the tile alone, 0 where hidden:
    np.maximum(m, s.max(axis=-1)) -> s.max(axis=-1)
    np.maximum(largest, np.finfo(float).min) -> np.where(np.isneginf(largest), 0, largest)
  The maximum is that of the newest tile, not the largest so far: m' = max(m, max s). In a tile that is hidden whole it
  is −inf, so that the earlier sums are forgotten or weighted again.
- running maximum starts at 0:  np.full(scores.shape[:-1], -np.inf) -> np.zeros(scores.shape[:-1])
  The running maximum starts at 0 instead of −inf: where all scores are far below 0, every exp(s − m) is 0 and 0/0 is
  left.
- one maximum for all rows:  s.max(axis=-1) -> s.max()
  One maximum is subtracted from all rows. A row whose scores are all far below it has exp = 0 everywhere. Each query
  has its own m.
- largest score not subtracted:  np.maximum(m, s.max(axis=-1)) -> np.zeros_like(m)
  The largest score is not subtracted before the exponential: exp of a large score overflows, and inf/inf is NaN.
- not divided by l:  o / total[..., None] -> o
  o is not divided by l at the end: out = o / l. The weights are not normalised.
- divided by l at every tile:
    o * correction[..., None] + e @ values ->
        (o * correction[..., None] + e @ values) / np.where(l == 0, 1, l)[..., None]
    o / total[..., None] -> o
  o is divided by l at every tile and goes on as it is, so the earlier part is divided again. Divide once, at the end:
  out = o / l.
- mask of the first query for all:
    if mask.dtype == bool: ->
        mask = np.broadcast_to(mask, scores.shape)[..., :1, :]
        if mask.dtype == bool:
  The mask's row of the first query is used for all queries. Each tile takes the rows of its own queries.
- mask of the first tile for all:
    scores = masked(scores, mask) ->
        if mask is not None:
            mask = np.broadcast_to(mask, scores.shape)[..., np.arange(scores.shape[-1]) % tile]
        scores = masked(scores, mask)
  The mask's columns of the first tile are used for all tiles. Each tile takes the columns of its own keys.
- log of the mean:  np.log(total) -> np.log(total / S)
  log_total is the logarithm of the mean of exp(s), divided by S; it is that of the sum.
- tiles averaged:
    o * correction[..., None] + e @ values -> o + e @ values / np.where(share == 0, 1, share)[..., None]
    o / total[..., None] -> o / np.ceil(S / tile)
  Every tile has its own softmax and the results are averaged. The softmax is over all keys: a tile with larger scores
  counts more, and l and o are carried from tile to tile.
- tiles added:
    o * correction[..., None] + e @ values -> o + e @ values / np.where(share == 0, 1, share)[..., None]
    o / total[..., None] -> o
  Every tile has its own softmax and the results are added: the weights of a query add to the number of tiles. Divide
  once, at the end: out = o / l.
- overwritten at every tile:
    l * correction + share -> share
    o * correction[..., None] + e @ values -> e @ values
  l and o are overwritten at every tile, `=` instead of `+=`: only the last tile is left. What came before is kept,
  times exp(m − m').
- last tile only:  range(0, S, tile) -> range(0, S, tile)[-1:]
  Only the last tile of keys is seen: m, l and o have to go on from tile to tile.
- first tile only:  range(0, S, tile) -> range(0, S, tile)[:1]
  Only the first tile of keys is seen: every query meets all tiles.
- last, smaller tile left out:  range(0, S, tile) -> range(0, S - tile + 1, tile)
  The last tile is left out where it is smaller: S // tile counts the full ones only. The last may be shorter.
- zeros counted in the last, smaller tile:
    largest = ->
        missing = tile - s.shape[-1]
        s = np.concatenate([s, np.zeros((*s.shape[:-1], missing))], axis=-1)
        values = np.concatenate([values, np.zeros((*values.shape[:-2], missing, values.shape[-1]))], axis=-2)
        largest =
  The last, smaller tile is filled up with keys of zeros, and they take part: a score of 0 is exp(0) = 1 in the sum l.
  Take a shorter tile, or −inf.
- a query tile meets its own key tile only:
    S = scores.shape[-1] ->
        T, S = scores.shape[-2:]
        scores = np.where(np.arange(T)[:, None] // tile == np.arange(S) // tile, scores, -np.inf)
  A tile of queries meets only the tile of keys at the same place. Every query meets every key, so each tile of queries
  goes through all tiles of keys.
- always causal:  = masked(scores, mask) -> = np.where(causal_mask(*scores.shape[-2:]), -np.inf, masked(scores, mask))
  The future is hidden without a mask that says so. Only the mask says what is hidden.
- softmax over the queries:
    scores = masked(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), mask)
    scores = scores - log_sum_exp(scores, axis=-2)
    return np.exp(scores) @ v, log_sum_exp(scores, axis=-1)[..., 0]
  The softmax runs over the queries instead of the keys, axis −2 instead of −1: the weights of a query do not add to 1.
- NaN where a tile is hidden whole:
    np.maximum(largest, np.finfo(float).min) -> largest
    np.where(l == 0, 1, l) -> l
  Where a query sees nothing of a tile (or nothing at all) the result is NaN: the maximum is still −inf, and −inf −
  (−inf) is NaN. Subtract something finite there; the tile adds 0.
- NaN where all is hidden:  np.where(l == 0, 1, l) -> l
  A query that may see nothing gets NaN, 0/0: its l is 0. Its output is 0 and its log_total −inf.
- log forgotten:  np.log(total) -> total
  log_total is m + l: the logarithm is missing. log_total = m + log l, log Σ exp(s).
- m forgotten:  m + np.log(total) -> np.log(l)
  log_total is log l: the maximum m that was subtracted is missing. log_total = m + log l, log Σ exp(s).
- l alone:  m + np.log(total) -> l
  log_total is l, the sum of the exponentials. It is m + log l, the logarithm of Σ exp(s).
- m alone:  m + np.log(total) -> m
  log_total is m, the largest score alone. It is m + log l, the logarithm of Σ exp(s).
- log l subtracted:  m + np.log(total) -> m - np.log(total)
  log_total is m − log l: a sign is wrong. log_total = m + log l, log Σ exp(s).
- log to the base 2:  np.log(total) -> np.log2(total)
  The logarithm in log_total is to the base 2. It is the natural one, to undo exp.
- log_total of the last tile only:  np.log(total) -> np.log(share)
  log_total is that of the last tile alone: its own maximum and sum. It is over all keys, m + log l at the end.
- log_total not −inf where all is hidden:
    return out, log_total -> return out, np.where(np.isneginf(log_total), 0, log_total)
  log_total is 0 for a query that may see nothing. The sum of its exponentials is 0, and the logarithm of that −inf.
- log_total with an axis more:  return out, log_total -> return out, log_total[..., None]
  log_total keeps an axis of length 1, (…, T, 1). It is one number a query, (…, T).
- weights instead of log_total:  return out, log_total -> return out, F.softmax(scores)
  The second result is the weights, (…, T, S). Here it is log_total, (…, T): the weights of a long sequence are what
  must be avoided.
""",
)


def tiled_backward_cases(rng):
    cases = []
    for forward in tiled_cases(rng):
        if "10,000" in forward.label:  # all weights 0 or 1 there: no gradient
            continue
        q, k, v = forward.arguments
        out, log_total = F.tiled_attention(q, k, v, **forward.options)
        arguments = rng.normal(size=out.shape), q, k, v, out, log_total
        cases.append(replace(forward, arguments=arguments))
    return cases


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


TILED_ATTENTION_BACKWARD = Exercise(
    F.tiled_attention_backward,
    results=(Result("dq", "... T K"), Result("dk", "... S K"), Result("dv", "... S K_v")),
    cases=tiled_backward_cases,
    answer=tiled_attention_backward,
    hints=(
        "Which two numbers for each query have to be known before the first tile, and what gives them?",
        "A = exp(scores − log_total), dscores = A · (dA − δ) / √d_k with δ = Σ dout · out, dQ = dscores K, dK = "
        "dscoresᵀ Q, dV = Aᵀ dout",
        "notebook 10, “Tiles”, and 06 for attention's backward. Right first: without tiles. A row hidden whole has "
        "log_total −inf.",
    ),
    difficulty=3,
    section="Dao et al. 2022",
    chapter="Long sequences",
    place=8,
    mistakes="""
- no 1/√d_k:  1 / np.sqrt(q.shape[-1]) -> 1
  The scale 1/√d_k (1/sqrt(K)) is missing, in the scores that the weights are made from and in the gradients.
- no 1/√d_k in the gradients:  delta[..., rows, :]) * scale -> delta[..., rows, :])
  The scale is missing in the gradients: the scores were divided by √d_k (sqrt(K)), so dscores has the factor 1/√d_k
  too, in dQ and in dK.
- no 1/√d_k in the weights:  @ np.swapaxes(k, -1, -2) * scale -> @ np.swapaxes(k, -1, -2)
  The scores are computed again without the scale 1/√d_k (1/sqrt(K)), so A = exp(scores − log_total) are not the
  forward's weights.
- 1/√d_k twice in the gradients:
    dscores @ k[..., keys, :] -> dscores @ k[..., keys, :] * scale
    @ q[..., rows, :] -> @ q[..., rows, :] * scale
  The factor 1/√d_k is there twice in dQ and dK, 1/d_k in all: once is right, in dscores or in one of its partners.
- scale only in dQ:
    delta[..., rows, :]) * scale -> delta[..., rows, :])
    dscores @ k[..., keys, :] -> dscores @ k[..., keys, :] * scale
  The factor 1/√d_k is in dQ and missing in dK. It belongs to dscores, from which both are made.
- scale only in dK:
    delta[..., rows, :]) * scale -> delta[..., rows, :])
    @ q[..., rows, :] -> @ q[..., rows, :] * scale
  The factor 1/√d_k is in dK and missing in dQ. It belongs to dscores, from which both are made.
"""
    + amended(SCALE_MISTAKES, without=["no 1/√d_k"])
    + MASK_MISTAKES
    + """
- NaN where all is hidden:  np.where(np.isneginf(log_total), 0, log_total) -> log_total
  A query that may see nothing gives NaN: its scores and its log_total are −inf, and −inf − (−inf) is NaN. Its weights
  are 0, and so are its gradients.
- log_total not subtracted:  scores[..., rows, keys] - shift[..., rows, :] -> scores[..., rows, keys]
  The weights are exp(scores), not normalised: log_total is not subtracted. A = exp(scores − log_total).
- log_total added:  keys] - shift -> keys] + shift
  log_total is added to the scores: a sign is wrong. A = exp(scores − log_total).
- divided by log_total:
    np.exp(scores[..., rows, keys] - shift[..., rows, :]) ->
        np.exp(scores[..., rows, keys]) / np.where(shift == 0, 1, shift)[..., rows, :]
  exp(scores) is divided by log_total, which is the logarithm of the sum, not the sum: A = exp(scores − log_total).
- softmax of each tile:  np.exp(scores[..., rows, keys] - shift[..., rows, :]) -> F.softmax(scores[..., rows, keys])
  The weights are the softmax within one tile: they add to 1 in each tile instead of over all keys. That is what
  log_total is for, A = exp(scores − log_total).
- δ missing:  dweights - delta[..., rows, :] -> dweights
  δ is missing: dscores = A · (dA − δ), where δ = Σ dA · A = Σ dout · out is the sum that the backward of the softmax
  subtracts.
- δ added:  dweights - delta -> dweights + delta
  δ is added. Subtract it: dscores = A · (dA − δ). A sign is wrong.
- δ of each tile:
    dweights - delta[..., rows, :] -> dweights - (weights * dweights).sum(axis=-1, keepdims=True)
  δ = Σ dA · A is summed over the keys of one tile. It is the sum over all keys of the query, which no tile knows; but Σ
  dout · out is the same.
- δ is Σ out · out:  dout * out -> out * out
  δ is Σ out · out; it is Σ dout · out.
- δ is Σ dout:  (dout * out).sum -> dout.sum
  δ is Σ dout, without out; it is Σ dout · out.
- δ a mean:  (dout * out).sum -> (dout * out).mean
  δ is the mean of dout · out over the features; it is the sum.
- δ summed over all queries:  delta[..., rows, :] -> delta.sum(axis=-2, keepdims=True)
  δ is summed over the queries too. It is one number for each query, the sum of dout · out over the features alone.
- δ not weighted by A:  (dout * out).sum -> (dout @ np.swapaxes(v, -1, -2)).sum
  δ is Σ dA; it is Σ dA · A over the keys, each dA with its weight, which is Σ dout · out.
- δ not multiplied by A:
    weights * (dweights - delta[..., rows, :]) -> (weights * dweights - delta[..., rows, :])
  This is A · dA − δ: the factor A stands before both terms, A · (dA − δ). A bracket is missing.
- A missing before the bracket:  weights * (dweights - delta[..., rows, :]) -> (dweights - delta[..., rows, :])
  The factor A in front is missing: dscores = A · (dA − δ).
- only the diagonal of the softmax:  weights * (dweights - delta[..., rows, :]) -> dweights * weights * (1 - weights)
  This is dA · A · (1 − A), the diagonal of the softmax's Jacobian alone. Every score is in the sum under every weight:
  dscores = A · (dA − δ).
- softmax left out:  weights * (dweights - delta[..., rows, :]) -> dweights
  The backward of the softmax is left out: dA is used as if it were the gradient of the scores.
- Q and K swapped:
    dscores @ k[..., keys, :] -> dscores @ q[..., keys, :]
    @ q[..., rows, :] -> @ k[..., rows, :]
  dQ and dK are made with the wrong partner: dQ = dscores K, dK = dscoresᵀ Q. It shows no error where there are as many
  keys as queries.
- dscores not transposed:
    dk[..., keys, :] += np.swapaxes(dscores, -1, -2) @ q[..., rows, :] ->
        dk[..., rows, :] += dscores @ q[..., keys, :]
  dK is dscores Q; it is dscoresᵀ Q: a row of dscores is a query, a row of dK is a key. It shows no error where there
  are as many keys as queries.
- A not transposed:
    dv[..., keys, :] += np.swapaxes(weights, -1, -2) @ dout[..., rows, :] ->
        dv[..., rows, :] += weights @ dout[..., keys, :]
  dV is A dout; it is Aᵀ dout: a row of A is a query, a row of dV is a key. It shows no error where there are as many
  keys as queries.
- dscores in place of A in dV:  np.swapaxes(weights, -1, -2) -> np.swapaxes(dscores, -1, -2)
  dV is made with dscoresᵀ instead of Aᵀ: out = A V, so dV = Aᵀ dout.
- out in place of dout in dV:  -1, -2) @ dout[..., rows, :] -> -1, -2) @ out[..., rows, :]
  dV is Aᵀ out; it is Aᵀ dout, with the gradient that comes in.
- overwritten at every tile:
    dq[..., rows, :] += -> dq[..., rows, :] =
    dk[..., keys, :] += -> dk[..., keys, :] =
    dv[..., keys, :] += -> dv[..., keys, :] =
  A tile overwrites what the tiles before it gave, `=` instead of `+=`. dQ is a sum over the tiles of keys, dK and dV
  are sums over the tiles of queries.
- first tile only:
    dq[..., rows, :] += dscores @ k[..., keys, :] ->
        if j == 0:
            dq[..., rows, :] += dscores @ k[..., keys, :]
        if i > 0:
            continue
  Only the first tile is used. dQ is a sum over the tiles of keys, dK and dV are sums over the tiles of queries.
- last, smaller tile left out:  range(0, S, tile) -> range(0, S - tile + 1, tile)
  The last tile of keys is left out where it is smaller: S // tile counts the full ones only.
- a query tile meets its own key tile only:  range(0, S, tile) -> [i]
  A tile of queries meets only the tile of keys at the same place. Every query saw every key.
- mean over the tiles:  return dq, dk, dv -> tiles = np.ceil(S / tile); return dq / tiles, dk / tiles, dv / tiles
  The gradients are divided by the number of tiles. They are sums over tiles, not means.
""",
)


EXERCISES = [TILED_ATTENTION, TILED_ATTENTION_BACKWARD]
