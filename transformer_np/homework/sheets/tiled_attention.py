"""Attention by tiles and its backward."""

import numpy as np

from ... import functional as F
from ...functional.tiled import TILE
from ...masks import causal_mask
from ..exercise import Case, Exercise, Result
from .draws import far_apart, sizes_without_squares


def _exactly(name):
    """A `made` with this mistake alone."""
    return {name}.__contains__


def _tiled_cases(rng):
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
        Case("a causal mask, as many keys as queries", square, {"mask": causal_mask(S), **small}, sizes | {"T": S}),
        Case("rows that are hidden whole", plain, {"mask": empty, **small}, sizes),
        Case("a first tile that is hidden whole", plain, {"mask": start, **small}, sizes),
        Case("scores of ±10,000", large, small, sizes),
        Case("all scores far below 0, −10,000", far_below, small, sizes),
        Case("heads, q of shape (B, H, T, K)", qkv(B, H), {"tile": 4}, sizes),
        Case("one sequence, q of shape (T, K)", qkv(), {"tile": 4}, sizes),
        Case("as many keys as queries", square, small, sizes | {"T": S}),
    ]


def _scale(made, K, K_v):
    """What the scores are multiplied by."""
    if made("no 1/√d_k"):
        return 1
    if made("1/d_k instead of 1/√d_k"):
        return 1 / K
    if made("multiplied by √d_k"):
        return K**0.5
    return (K_v if made("√ of the values' size") else K) ** -0.5


def _mask(made, scores, mask):
    """The scores with the mask applied."""
    if mask is None or made("mask ignored"):
        return scores
    mask = np.broadcast_to(mask, scores.shape)
    if made("float mask taken for a Boolean one"):
        mask = mask != 0
    if mask.dtype != bool:
        return scores + mask * (0 if made("float mask ignored") else -1 if made("float mask subtracted") else 1)
    if made("Boolean mask added as a number"):
        return scores + mask
    if made("Boolean mask the other way round"):
        mask = ~mask
    if made("−1e9 added for −inf"):
        return scores - 1e9 * mask
    low = -1e9 if made("−1e9 for −inf") else -1e8 if made("−1e8 for −inf") else -np.inf
    low = 0 if made("hidden scores set to 0") else low
    return np.where(mask, low, scores)


def _wrong_tiled_attention(made, q, k, v, mask=None, tile=TILE):
    (T, K), (S, K_v) = q.shape[-2:], v.shape[-2:]
    if mask is not None and made("mask of the first query for all"):
        mask = np.broadcast_to(mask, (*q.shape[:-1], S))[..., :1, :]
    if mask is not None and made("mask of the first tile for all"):
        mask = np.broadcast_to(mask, (*q.shape[:-1], S))[..., np.arange(S) % tile]
    scores = _mask(made, q @ k.swapaxes(-1, -2) * _scale(made, K, K_v), mask)  # (..., T, S)
    if made("always causal"):
        scores = np.where(causal_mask(T, S) if S >= T else False, -np.inf, scores)
    if made("softmax over the queries"):
        scores = scores - _log_total(scores, -2)[..., None, :]
        return np.exp(scores) @ v, _log_total(scores, -1)
    starts = range(0, S, tile)
    if made("last, smaller tile left out"):
        starts = starts[: S // tile]
    if made("first tile only"):
        starts = starts[:1]
    if made("last tile only"):
        starts = starts[-1:]
    if made("a query tile meets its own key tile only"):
        same = np.arange(T)[:, None] // tile == np.arange(S) // tile
        scores = np.where(same, scores, -np.inf)
    m, l = np.full((2, *scores.shape[:-1]), -np.inf)
    l = np.zeros_like(m)
    o = np.zeros((*m.shape, K_v))
    if made("running maximum starts at 0"):
        m = np.zeros_like(m)
    lone = []  # every tile by itself
    careless = made("NaN where a tile is hidden whole")
    for start in starts:
        s, values = scores[..., start : start + tile], v[..., start : start + tile, :]
        if made("zeros counted in the last, smaller tile"):
            missing = tile - s.shape[-1]
            s = np.concatenate([s, np.zeros((*s.shape[:-1], missing))], axis=-1)
            values = np.concatenate([values, np.zeros((*values.shape[:-2], missing, K_v))], axis=-2)
        largest = s.max(axis=-1)
        if made("one maximum for all rows"):
            largest = np.full_like(largest, s.max())
        if made("largest score not subtracted"):
            largest = np.zeros_like(largest)
        new = largest if made("maximum of the tile alone") else np.maximum(m, largest)
        shift = new if careless else np.maximum(new, np.finfo(float).min)
        if made("maximum of the tile alone, 0 where hidden"):
            new = largest
            shift = np.where(np.isneginf(new), 0, new)
        e, correction = np.exp(s - shift[..., None]), np.exp(m - shift)
        if made("running maximum not corrected for"):
            correction = np.ones_like(correction)
        if made("correction the wrong way round"):
            correction = np.where(np.isfinite(m), np.exp(shift - m), 0)
        share, weighted = e.sum(axis=-1), e @ values
        lone.append((new, share, weighted))
        if made("overwritten at every tile"):
            correction = np.zeros_like(correction)
        l = l * (1 if made("l not corrected") else correction) + share
        o = o * (np.ones_like(m) if made("o not corrected") else correction)[..., None] + weighted
        if made("divided by l at every tile"):
            o = o / (l if careless else np.where(l == 0, 1, l))[..., None]
        m = new
    total = l if careless or made("NaN where all is hidden") else np.where(l == 0, 1, l)
    out = o if made("not divided by l") or made("divided by l at every tile") else o / total[..., None]
    if made("tiles averaged") or made("tiles added"):
        parts = [w / np.where(share == 0, 1, share)[..., None] for _, share, w in lone]
        out = sum(parts) / (len(parts) if made("tiles averaged") else 1)
    log = np.log(total)
    if made("log forgotten"):
        log = total
    if made("log of the mean"):
        log = np.log(total / S)
    if made("log to the base 2"):
        log = np.log2(total)
    if made("l alone"):
        return out, l
    if made("m alone"):
        return out, m
    if made("m forgotten"):
        return out, np.where(l == 0, -np.inf, log)
    log_total = m - log if made("log l subtracted") else m + log
    if made("log_total of the last tile only"):
        log_total = lone[-1][0] + np.log(lone[-1][1])
    if made("log_total not −inf where all is hidden"):
        log_total = np.where(np.isneginf(log_total), 0, log_total)
    if made("log_total with an axis more"):
        log_total = log_total[..., None]
    if made("weights instead of log_total"):
        log_total = np.exp(scores - np.where(np.isneginf(log_total), 0, log_total)[..., None])
    return out, log_total


def _log_total(scores, axis):
    m = np.maximum(scores.max(axis=axis, keepdims=True), np.finfo(float).min)
    return (m + np.log(np.exp(scores - m).sum(axis=axis, keepdims=True))).squeeze(axis)


_SCALE_MISTAKES = {
    "no 1/√d_k": "The scores are not scaled: the factor 1/√d_k (1/sqrt(K)) is missing.",
    "1/d_k instead of 1/√d_k": (
        "The scores are divided by d_k instead of √d_k: the square root is missing, or the scale is there twice."
    ),
    "multiplied by √d_k": "The scores are multiplied by √d_k (sqrt(K)) where they have to be divided by it.",
    "√ of the values' size": (
        "The scale is 1/√d_v, with the size of the values. A score is a product of query and key: 1/√d_k, q.shape[-1]."
    ),
}

_MASK_MISTAKES = {
    "mask ignored": "The mask is ignored: hidden keys are seen.",
    "Boolean mask the other way round": "The mask is read the other way round: True hides, here it shows.",
    "Boolean mask added as a number": (
        "A Boolean mask is added to the scores as a number, True as 1. Where it is True the score has to become −inf."
    ),
    "hidden scores set to 0": (
        "Hidden scores are set to 0 instead of −inf: a score of 0 still has the weight exp(0) = 1 in the sum."
    ),
    "float mask ignored": (
        "A float mask is ignored. It is the lecture's M and is added to the scores, whatever its numbers."
    ),
    "float mask taken for a Boolean one": (
        "A float mask is used as if it were Boolean, hiding where it is not 0. It is the lecture's M: add it to the "
        "scores."
    ),
    "float mask subtracted": "A float mask is subtracted; it is the lecture's M and is added to the scores.",
}

TILED_ATTENTION = Exercise(
    F.tiled_attention,
    (Result("out", "... T K_v"), Result("log_total", "... T")),
    _tiled_cases,
    {
        **_SCALE_MISTAKES,
        **_MASK_MISTAKES,
        "−1e9 for −inf": (
            "Hidden scores are set to −1e9 instead of −inf. A query that may see nothing then has equal scores and "
            "gets the mean of the values; it gets output 0 and log_total −inf."
        ),
        "−1e8 for −inf": (
            "Hidden scores are set to −1e8 instead of −inf. A query that may see nothing then has equal scores and "
            "gets the mean of the values; it gets output 0 and log_total −inf."
        ),
        "−1e9 added for −inf": (
            "−1e9 is added to hidden scores. In a row that is hidden whole that changes nothing, and the query sees "
            "all; it gets output 0 and log_total −inf. Set hidden scores to −inf."
        ),
        "running maximum not corrected for": (
            "When the maximum grows, what was summed before is not corrected: l and o of the earlier tiles belong to "
            "the old maximum m and have to be multiplied by exp(m − m')."
        ),
        "l not corrected": (
            "When the maximum grows, the sum l is not corrected, only o is: both were summed with the old maximum and "
            "take the factor exp(m − m')."
        ),
        "o not corrected": (
            "When the maximum grows, the weighted sum o is not corrected, only l is: both were summed with the old "
            "maximum and take the factor exp(m − m')."
        ),
        "correction the wrong way round": (
            "The correction is exp(m' − m), its inverse: with a larger maximum m' what was summed before has to become "
            "smaller, exp(m − m')."
        ),
        "maximum of the tile alone": (
            "The maximum is that of the newest tile, not the largest so far: m' = max(m, max s). Where an earlier tile "
            "had larger scores, the correction exp(m − m') overflows, and with a tile of −inf it is NaN."
        ),
        "maximum of the tile alone, 0 where hidden": (
            "The maximum is that of the newest tile, not the largest so far: m' = max(m, max s). In a tile that is "
            "hidden whole it is −inf, so that what was summed before it is forgotten or weighted anew."
        ),
        "running maximum starts at 0": (
            "The running maximum starts at 0 instead of −inf: where all scores are far below 0, every exp(s − m) is 0 "
            "and 0/0 is left."
        ),
        "one maximum for all rows": (
            "One maximum is subtracted from all rows. A row whose scores are all far below it has exp = 0 everywhere. "
            "Each query has its own m."
        ),
        "largest score not subtracted": (
            "The largest score is not subtracted before the exponential: exp of a large score overflows, and inf/inf "
            "is NaN."
        ),
        "not divided by l": "o is not divided by l at the end: out = o / l. The weights are not normalised.",
        "divided by l at every tile": (
            "o is divided by l at every tile and goes on as it is: what was divided once is divided again. Divide "
            "once, at the end: out = o / l."
        ),
        "mask of the first query for all": (
            "The mask's row of the first query is used for all queries. Each tile takes the rows of its own queries."
        ),
        "mask of the first tile for all": (
            "The mask's columns of the first tile are used for all tiles. Each tile takes the columns of its own keys."
        ),
        "log of the mean": "log_total is the logarithm of the mean of exp(s), divided by S; it is that of the sum.",
        "tiles averaged": (
            "Every tile has its own softmax and the results are averaged. The softmax is over all keys: a tile with "
            "larger scores counts more, and l and o are carried from tile to tile."
        ),
        "tiles added": (
            "Every tile has its own softmax and the results are added: the weights of a query add to the number of "
            "tiles. Divide once, at the end: out = o / l."
        ),
        "overwritten at every tile": (
            "l and o are overwritten at every tile, `=` instead of `+=`: only the last tile is left. What came before "
            "is kept, times exp(m − m')."
        ),
        "last tile only": "Only the last tile of keys is seen: m, l and o have to go on from tile to tile.",
        "first tile only": "Only the first tile of keys is seen: every query meets all tiles.",
        "last, smaller tile left out": (
            "The last tile is left out where it is smaller: S // tile counts the full ones only. The last may be "
            "shorter."
        ),
        "zeros counted in the last, smaller tile": (
            "The last, smaller tile is filled up with keys of zeros, and they take part: a score of 0 is exp(0) = 1 in "
            "the sum l. Take a shorter tile, or −inf."
        ),
        "a query tile meets its own key tile only": (
            "A tile of queries meets only the tile of keys at the same place. Every query meets every key, so each "
            "tile of queries goes through all tiles of keys."
        ),
        "always causal": "The future is hidden without a mask that says so. What is hidden, the mask alone decides.",
        "softmax over the queries": (
            "The softmax runs over the queries instead of the keys, axis −2 instead of −1: the weights of a query do "
            "not add to 1."
        ),
        "NaN where a tile is hidden whole": (
            "Where a query sees nothing of a tile (or nothing at all) the result is NaN: the maximum is still −inf, "
            "and −inf − (−inf) is NaN. Subtract something finite there; the tile adds 0."
        ),
        "NaN where all is hidden": (
            "A query that may see nothing gets NaN, 0/0: its l is 0. Its output is 0 and its log_total −inf."
        ),
        "log forgotten": "log_total is m + l: the logarithm is missing. log_total = m + log l, log Σ exp(s).",
        "m forgotten": (
            "log_total is log l: the maximum m that was subtracted is missing. log_total = m + log l, log Σ exp(s)."
        ),
        "l alone": "log_total is l, the sum of the exponentials. It is m + log l, the logarithm of Σ exp(s).",
        "m alone": "log_total is m, the largest score alone. It is m + log l, the logarithm of Σ exp(s).",
        "log l subtracted": "log_total is m − log l: a sign is wrong. log_total = m + log l, log Σ exp(s).",
        "log to the base 2": "The logarithm in log_total is to the base 2. It is the natural one, to undo exp.",
        "log_total of the last tile only": (
            "log_total is that of the last tile alone: its own maximum and sum. It is over all keys, m + log l at the "
            "end."
        ),
        "log_total not −inf where all is hidden": (
            "log_total is 0 for a query that may see nothing. The sum of its exponentials is 0, and the logarithm of "
            "that −inf."
        ),
        "log_total with an axis more": (
            "log_total keeps an axis of length 1, (…, T, 1). It is one number a query, (…, T)."
        ),
        "weights instead of log_total": (
            "The second result is the weights, (…, T, S). Here it is log_total, (…, T): the weights of a long sequence "
            "are what is to be avoided."
        ),
    },
    _wrong_tiled_attention,
    (
        "You have the softmax over some keys, and more keys come, one with a larger score. What of the old sums is "
        "wrong?",
        "m' = max(m, max s), l' = l exp(m − m') + Σ exp(s − m'), o' = o exp(m − m') + Σ exp(s − m') v; out = o / l, "
        "log_total = m + log l",
        "notebook 10, “Tiles”. Right first: without tiles, log_total is the log-sum-exp of a row of scores.",
    ),
    difficulty=3,
    section="Milakov & Gimelshein 2018; Dao et al. 2022",
    chapter="Long sequences",
    place=7,
)


def _tiled_backward_cases(rng):
    cases = []
    for forward in _tiled_cases(rng):
        if "10,000" in forward.label:  # all weights 0 or 1 there: no gradient
            continue
        q, k, v = forward.arguments
        out, log_total = F.tiled_attention(q, k, v, **forward.options)
        arguments = rng.normal(size=out.shape), q, k, v, out, log_total
        cases.append(Case(forward.label, arguments, forward.options, forward.sizes))
    return cases


def _wrong_tiled_attention_backward(made, dout, q, k, v, out, log_total, mask=None, tile=TILE):
    (T, K), (S, K_v) = q.shape[-2:], v.shape[-2:]
    of_one = ("no 1/√d_k in the weights", "no 1/√d_k in the gradients", "1/√d_k twice in the gradients")
    of_scores = of_gradients = _exactly("") if any(map(made, of_one)) else made
    if made("no 1/√d_k in the weights"):
        of_scores = _exactly("no 1/√d_k")
    if made("no 1/√d_k in the gradients"):
        of_gradients = _exactly("no 1/√d_k")
    if made("1/√d_k twice in the gradients"):
        of_gradients = _exactly("1/d_k instead of 1/√d_k")
    scores = _mask(made, q @ k.swapaxes(-1, -2) * _scale(of_scores, K, K_v), mask)  # (..., T, S)
    safe = np.where(np.isneginf(log_total), 0, log_total)
    if made("NaN where all is hidden"):
        safe = log_total
    parts = np.arange(S) // tile
    weights = np.exp(scores - safe[..., None])
    if made("log_total not subtracted"):
        weights = np.exp(scores)
    if made("log_total added"):
        weights = np.exp(scores + safe[..., None])
    if made("divided by log_total"):
        weights = np.exp(scores) / np.where(safe == 0, 1, safe)[..., None]
    if made("softmax of each tile"):
        weights = np.concatenate(
            [
                np.exp(scores[..., parts == i] - np.maximum(_log_total(scores[..., parts == i], -1), -1e300)[..., None])
                for i in range(parts[-1] + 1)
            ],
            axis=-1,
        )
    if made("last, smaller tile left out"):
        weights = weights * (np.arange(S) < S // tile * tile)
    if made("a query tile meets its own key tile only"):
        weights = weights * (np.arange(T)[:, None] // tile == parts)
    dweights = dout @ v.swapaxes(-1, -2)  # (..., T, S)
    delta = (dout * out).sum(axis=-1, keepdims=True)
    if made("δ missing"):
        delta = 0
    if made("δ added"):
        delta = -delta
    if made("δ is Σ out · out"):
        delta = (out * out).sum(axis=-1, keepdims=True)
    if made("δ is Σ dout"):
        delta = dout.sum(axis=-1, keepdims=True)
    if made("δ a mean"):
        delta = delta / K_v
    if made("δ summed over all queries"):
        delta = delta.sum(axis=-2, keepdims=True)
    if made("δ of each tile"):
        products = weights * dweights
        delta = np.stack([products[..., parts == i].sum(axis=-1) for i in parts], axis=-1)
    if made("δ not weighted by A"):
        delta = dweights.sum(axis=-1, keepdims=True)
    if made("only the diagonal of the softmax"):
        dscores = dweights * weights * (1 - weights)
    elif made("softmax left out"):
        dscores = dweights
    elif made("A missing before the bracket"):
        dscores = dweights - delta
    elif made("δ not multiplied by A"):
        dscores = weights * dweights - delta
    else:
        dscores = weights * (dweights - delta)
    scale = _scale(of_gradients, K, K_v)
    scaled = dscores * scale
    dq_scores = dscores if made("scale only in dK") else scaled
    dk_scores = dscores if made("scale only in dQ") else scaled
    from_queries, from_keys = np.ones((T, 1)), np.ones(S)
    if made("overwritten at every tile"):
        from_queries = (np.arange(T) // tile == (T - 1) // tile)[:, None]
        from_keys = parts == parts[-1]
    if made("first tile only"):
        from_queries, from_keys = (np.arange(T) < tile)[:, None], np.arange(S) < tile
    dq = (dq_scores * from_keys) @ (q if made("Q and K swapped") else k)
    dk_scores = dk_scores * from_queries
    dk = (dk_scores if made("dscores not transposed") else dk_scores.swapaxes(-1, -2)) @ (
        k if made("Q and K swapped") else q
    )
    spread = (scaled if made("dscores in place of A in dV") else weights) * from_queries
    dv = (spread if made("A not transposed") else spread.swapaxes(-1, -2)) @ dout
    if made("mean over the tiles"):
        dq, dk, dv = dq / (parts[-1] + 1), dk / (parts[-1] + 1), dv / (parts[-1] + 1)
    if made("out in place of dout in dV"):
        dv = spread.swapaxes(-1, -2) @ out
    return dq, dk, dv


TILED_ATTENTION_BACKWARD = Exercise(
    F.tiled_attention_backward,
    (Result("dq", "... T K"), Result("dk", "... S K"), Result("dv", "... S K_v")),
    _tiled_backward_cases,
    {
        "no 1/√d_k": (
            "The scale 1/√d_k (1/sqrt(K)) is missing, in the scores that the weights are made from and in the "
            "gradients."
        ),
        "no 1/√d_k in the gradients": (
            "The scale is missing in the gradients: the scores were divided by √d_k (sqrt(K)), so dscores has the "
            "factor 1/√d_k too, in dQ and in dK."
        ),
        "no 1/√d_k in the weights": (
            "The scores are computed anew without the scale 1/√d_k (1/sqrt(K)), so A = exp(scores − log_total) are not "
            "the forward's weights."
        ),
        "1/√d_k twice in the gradients": (
            "The factor 1/√d_k is there twice in dQ and dK, 1/d_k in all: once is right, in dscores or in one of its "
            "partners."
        ),
        "scale only in dQ": (
            "The factor 1/√d_k is in dQ and missing in dK. It belongs to dscores, from which both are made."
        ),
        "scale only in dK": (
            "The factor 1/√d_k is in dK and missing in dQ. It belongs to dscores, from which both are made."
        ),
        **{name: text for name, text in _SCALE_MISTAKES.items() if name != "no 1/√d_k"},
        **_MASK_MISTAKES,
        "NaN where all is hidden": (
            "A query that may see nothing gives NaN: its scores and its log_total are −inf, and −inf − (−inf) is NaN. "
            "Its weights are 0, and so are its gradients."
        ),
        "log_total not subtracted": (
            "The weights are exp(scores), not normalised: log_total is not subtracted. A = exp(scores − log_total)."
        ),
        "log_total added": "log_total is added to the scores: a sign is wrong. A = exp(scores − log_total).",
        "divided by log_total": (
            "exp(scores) is divided by log_total, which is the logarithm of the sum, not the sum: A = exp(scores − "
            "log_total)."
        ),
        "softmax of each tile": (
            "The weights are the softmax within one tile: they add to 1 in each tile instead of over all keys. That is "
            "what log_total is for, A = exp(scores − log_total)."
        ),
        "δ missing": (
            "δ is missing: dscores = A · (dA − δ), where δ = Σ dA · A = Σ dout · out is the sum that the backward of "
            "the softmax subtracts."
        ),
        "δ added": "δ is added where it has to be subtracted: dscores = A · (dA − δ). A sign is wrong.",
        "δ of each tile": (
            "δ = Σ dA · A is summed over the keys of one tile. It is the sum over all keys of the query, which no tile "
            "knows; but Σ dout · out is the same."
        ),
        "δ is Σ out · out": "δ is Σ out · out; it is Σ dout · out.",
        "δ is Σ dout": "δ is Σ dout, without out; it is Σ dout · out.",
        "δ a mean": "δ is the mean of dout · out over the features; it is the sum.",
        "δ summed over all queries": (
            "δ is summed over the queries too. It is one number for each query, the sum of dout · out over the "
            "features alone."
        ),
        "δ not weighted by A": (
            "δ is Σ dA; it is Σ dA · A over the keys, each dA with its weight, which is Σ dout · out."
        ),
        "δ not multiplied by A": (
            "This is A · dA − δ: the factor A stands before both terms, A · (dA − δ). A bracket is missing."
        ),
        "A missing before the bracket": "The factor A in front is missing: dscores = A · (dA − δ).",
        "only the diagonal of the softmax": (
            "This is dA · A · (1 − A), the diagonal of the softmax's Jacobian alone. Every score is in the sum under "
            "every weight: dscores = A · (dA − δ)."
        ),
        "softmax left out": (
            "The backward of the softmax is left out: dA is used as if it were the gradient of the scores."
        ),
        "Q and K swapped": (
            "dQ and dK are made with the wrong partner: dQ = dscores K, dK = dscoresᵀ Q. It shows no error where there "
            "are as many keys as queries."
        ),
        "dscores not transposed": (
            "dK is dscores Q; it is dscoresᵀ Q: a row of dscores is a query, a row of dK is a key. It shows no error "
            "where there are as many keys as queries."
        ),
        "A not transposed": (
            "dV is A dout; it is Aᵀ dout: a row of A is a query, a row of dV is a key. It shows no error where there "
            "are as many keys as queries."
        ),
        "dscores in place of A in dV": "dV is made with dscoresᵀ instead of Aᵀ: out = A V, so dV = Aᵀ dout.",
        "out in place of dout in dV": "dV is Aᵀ out; it is Aᵀ dout, with the gradient that comes in.",
        "overwritten at every tile": (
            "A tile overwrites what the tiles before it gave, `=` instead of `+=`. dQ is a sum over the tiles of keys, "
            "dK and dV are sums over the tiles of queries."
        ),
        "first tile only": (
            "Only the first tile is used. dQ is a sum over the tiles of keys, dK and dV are sums over the tiles of "
            "queries."
        ),
        "last, smaller tile left out": (
            "The last tile of keys is left out where it is smaller: S // tile counts the full ones only."
        ),
        "a query tile meets its own key tile only": (
            "A tile of queries meets only the tile of keys at the same place. Every query saw every key."
        ),
        "mean over the tiles": "The gradients are divided by the number of tiles. They are sums over tiles, not means.",
    },
    _wrong_tiled_attention_backward,
    (
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
)


EXERCISES = [TILED_ATTENTION, TILED_ATTENTION_BACKWARD]
