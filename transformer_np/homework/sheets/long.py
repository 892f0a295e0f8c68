"""For long sequences: attention by tiles, and attention with relative positions."""

import numpy as np

from ... import functional as F
from ...masks import causal_mask
from ...tiled import TILE
from ..exercise import Case, Exercise, Result, draw_sizes
from .comparison import far_apart, sizes_without_squares


def _exactly(name):
    """A `made` with this mistake alone."""
    return {name}.__contains__


# --- tiled_attention ------------------------------------------------------------------------------------------------


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
)


# --- relative_shift -------------------------------------------------------------------------------------------------


def _present(T, S):
    """Where the key is not in the query's future, (T, S)."""
    return np.tri(T, S, S - T, dtype=bool)


def _shift_cases(rng):
    sizes = draw_sizes(rng, "B H T", least=3)
    B, H, T = sizes.values()
    S = T + int(rng.integers(2, 5))
    sizes |= {"S": S}
    return [
        Case("", (rng.normal(size=(B, H, T, S)),), sizes=sizes),
        Case("as many keys as queries", (rng.normal(size=(B, H, T, T)),), sizes=sizes | {"S": T}),
        Case("one query, T = 1", (rng.normal(size=(B, H, 1, S)),), sizes=sizes | {"T": 1}),
        Case("one batch axis, x of shape (B, T, S)", (rng.normal(size=(B, T, S)),), sizes=sizes),
        Case("no batch axis, x of shape (T, S)", (rng.normal(size=(T, S)),), sizes=sizes),
    ]


def _without_future(case, output):
    """y where the key is not in the query's future, 0 elsewhere: the leftovers there mean nothing."""
    (x,) = case.arguments
    if not isinstance(output, np.ndarray) or output.shape != x.shape or output.dtype.kind not in "biuf":
        return (output,)
    return (np.where(_present(*x.shape[-2:]), output, 0),)


_PLACES = {  # the column of x that y[t, s] comes from
    "not shifted": lambda t, s, T, S: s + 0 * t,
    "by t instead of T − 1 − t": lambda t, s, T, S: s + t,
    "one place too far": lambda t, s, T, S: s + T - t,
    "one place too little": lambda t, s, T, S: s + T - 2 - t,
    "by S − 1 − t instead of T − 1 − t": lambda t, s, T, S: s + S - 1 - t,
    "to the other side": lambda t, s, T, S: s - (T - 1 - t),
    "to the other side, round the end": lambda t, s, T, S: (s - (T - 1 - t)) % S,
    "by t, round the end": lambda t, s, T, S: (s + t) % S,
    "by t to the other side, round the end": lambda t, s, T, S: (s - t) % S,
    "every row by the same": lambda t, s, T, S: s + T - 1 + 0 * t,
    "distances in reverse order": lambda t, s, T, S: S - T + t - s,
}


def _place_of(made, T, S):
    """The column of x for every (t, s), −1 where there is none."""
    t, s = np.arange(T)[:, None], np.arange(S)
    column = s + T - 1 - t
    for name, place in _PLACES.items():
        if made(name):
            column = place(t, s, T, S)
    return np.where((column >= 0) & (column < S), column, -1)


def _shift(made, x):
    T, S = x.shape[-2:]
    if made("last numbers left off instead of the first") or made("one row of S left off instead of T"):
        flat = np.concatenate([np.zeros_like(x[..., :1]), x], axis=-1).reshape(*x.shape[:-2], -1)
        flat = flat[..., :-T] if made("last numbers left off instead of the first") else flat[..., S:]
        return flat.reshape(x.shape)  # the second one fits only if S = T
    column = _place_of(made, T, S)
    moved = np.take_along_axis(x, np.broadcast_to(np.maximum(column, 0), x.shape), axis=-1)
    return np.where(column >= 0, moved, 0)


def _unshift(made, dy):
    """The backward of _shift: everything back to where it came from."""
    T, S = dy.shape[-2:]
    column = _place_of(made, T, S)
    dx = np.zeros_like(dy)
    for t in range(T):
        for s in range(S):
            if column[t, s] >= 0:
                dx[..., t, column[t, s]] += dy[..., t, s]
    return dx


def _wrong_relative_shift(made, x):
    y = _shift(made, x)
    if made("the column of zeros kept"):
        return np.concatenate([np.zeros_like(y[..., :1]), y], axis=-1)
    return y


_SHIFT_MISTAKES = {
    "not shifted": "Nothing is shifted: y[t, s] = x[t, s]. Column c of x is a distance, column s of y is a key.",
    "by t instead of T − 1 − t": (
        "Row t is shifted by t. It is the last row that stays where it is and the first that moves most: by T − 1 − t."
    ),
    "one place too far": (
        "Every row is shifted one place too far, by T − t: off by one. A zero behind each row, where the trick needs "
        "it in front, does the same. The last row does not move."
    ),
    "one place too little": (
        "Every row is shifted one place too little, by T − 2 − t: off by one. The last row does not move."
    ),
    "by S − 1 − t instead of T − 1 − t": (
        "Row t is shifted by S − 1 − t; it is by T − 1 − t, with the number of queries. So the distance is taken as t "
        "− s, as if there were no memory, but query t stands at position S − T + t. With S = T nobody would notice."
    ),
    "to the other side": (
        "The rows are shifted to the right. They have to move to the left: y[t, s] comes from column s + T − 1 − t."
    ),
    "by t, round the end": (
        "Row t is rolled by t. It is the last row that stays where it is and the first that moves most: by T − 1 − t."
    ),
    "by t to the other side, round the end": (
        "Row t is rolled to the right by t, as np.roll does with a positive number. The rows have to move to the left: "
        "row t by T − 1 − t, the last one not at all."
    ),
    "to the other side, round the end": (
        "The rows are rolled to the right. They have to move to the left: y[t, s] comes from column s + T − 1 − t."
    ),
    "every row by the same": (
        "All rows are shifted by T − 1. Each row moves one place less than the row above it: T − 1 − t."
    ),
    "distances in reverse order": (
        "Column c is taken for the distance c, the order reversed. Column c belongs to the distance S − 1 − c: the "
        "farthest comes first, distance 0 last."
    ),
}

RELATIVE_SHIFT = Exercise(
    F.relative_shift,
    (Result("y", "... T S"),),
    _shift_cases,
    {
        **_SHIFT_MISTAKES,
        "last numbers left off instead of the first": (
            "After the rows with their zeros were laid end to end, the last T numbers are left off. It is the first T."
        ),
        "one row of S left off instead of T": (
            "After the rows with their zeros were laid end to end, S numbers are left off. It is T of them, one zero "
            "for each row, so that T · S remain; with S ≠ T the reshape fails."
        ),
        "the column of zeros kept": "y is (T, S + 1): the column of zeros that was put in front is still there.",
    },
    _wrong_relative_shift,
    (
        "What distance has query t from key s, and in which column of x is that distance?",
        "y[t, s] = x[t, s + T − 1 − t] for every key that is not in the query's future",
        "notebook 10, “Transformer-XL”; Dai et al. 2019, appendix B. Row by row, or with one zero in front of each "
        "row and reshape.",
    ),
    difficulty=2,
    section="Dai et al. 2019, appendix B",
    view=_without_future,
)


def _shift_backward_cases(rng):
    cases = []
    for forward in _shift_cases(rng):
        (x,) = forward.arguments
        dy = np.where(_present(*x.shape[-2:]), x, 0)  # hidden keys have the gradient 0
        cases.append(Case(forward.label.replace("x of", "dy of"), (dy,), sizes=forward.sizes))
    return cases


def _wrong_relative_shift_backward(made, dy):
    T, S = dy.shape[-2:]
    if made("shifted once more"):
        return _shift(_exactly(""), dy)
    if made("shifted once more, round the end"):
        place = (np.arange(S) + T - 1 - np.arange(T)[:, None]) % S
        return np.take_along_axis(dy, np.broadcast_to(place, dy.shape), axis=-1)
    if made("zeros behind instead of in front"):
        flat = np.concatenate([dy.reshape(*dy.shape[:-2], -1), np.zeros((*dy.shape[:-2], T))], axis=-1)
        return flat.reshape(*dy.shape[:-1], S + 1)[..., 1:]
    if made("S zeros in front instead of T"):
        flat = np.concatenate([np.zeros((*dy.shape[:-2], S)), dy.reshape(*dy.shape[:-2], -1)], axis=-1)
        return flat.reshape(*dy.shape[:-1], S + 1)[..., 1:]
    dx = _unshift(made, dy)
    if made("the column of zeros kept"):
        return np.concatenate([np.zeros_like(dx[..., :1]), dx], axis=-1)
    if made("one place too far back"):
        dx = np.concatenate([np.zeros_like(dx[..., :1]), dx[..., :-1]], axis=-1)
    return dx


RELATIVE_SHIFT_BACKWARD = Exercise(
    F.relative_shift_backward,
    (Result("dx", "... T S"),),
    _shift_backward_cases,
    {
        "not shifted": (
            "Nothing is shifted: dx[t, s] = dy[t, s]. The forward moved y[t, s] there from x[t, s + T − 1 − t]."
        ),
        "shifted once more": (
            "This is the forward shift once more, to the left. The gradient has to go back to where the number came "
            "from, to the right by T − 1 − t."
        ),
        "shifted once more, round the end": (
            "The rows are rolled to the left, as in the forward. The gradient has to go back to where the number came "
            "from, to the right by T − 1 − t."
        ),
        "by t instead of T − 1 − t": (
            "Row t is shifted back by t. In the forward the last row stayed where it was and the first moved most: by "
            "T − 1 − t."
        ),
        "one place too far back": (
            "Every row goes back one place too far: off by one. Cutting the column of the padded zeros off at the "
            "right end instead of the left does this."
        ),
        "one place too little": (
            "Every row goes back one place too little: off by one. It is T − 1 − t, for the last row 0."
        ),
        "by S − 1 − t instead of T − 1 − t": (
            "Row t is shifted back by S − 1 − t; it is by T − 1 − t, with the number of queries. So the distance is "
            "taken as t − s, as if there were no memory, but query t stands at position S − T + t. With S = T nobody "
            "would notice."
        ),
        "every row by the same": "All rows are shifted back by T − 1. Row t moved by T − 1 − t.",
        "distances in reverse order": (
            "Column c of dx is taken for the distance c, the order reversed. Column c belongs to the distance S − 1 − "
            "c."
        ),
        "zeros behind instead of in front": (
            "The T zeros for what was left off are put behind the numbers. In the forward the first T were left off, "
            "so they belong in front."
        ),
        "S zeros in front instead of T": (
            "S zeros are put in front for what was left off. It was T numbers, so that T · (S + 1) come together; with "
            "S ≠ T the reshape fails."
        ),
        "the column of zeros kept": (
            "dx is (T, S + 1): the column of the padded zeros is still there. They are no part of x and need no "
            "gradient."
        ),
    },
    _wrong_relative_shift_backward,
    (
        "Where in x did the number at y[t, s] come from?",
        "dx[t, s + T − 1 − t] = dy[t, s], and 0 where nothing came from",
        "notebook 10, “Transformer-XL”; the three steps of the forward in reverse: T zeros in front, cut anew, the "
        "first column left off.",
    ),
    difficulty=2,
    section="Dai et al. 2019, appendix B",
)


# --- relative_attention ---------------------------------------------------------------------------------------------


def _relative_inputs(rng, B, H, T, S, K, K_v):
    shapes = (B, H, T, K), (B, H, S, K), (B, H, S, K_v), (H, S, K), (H, K), (H, K)
    return tuple(rng.normal(size=shape) for shape in shapes)


def _relative_sizes(rng):
    sizes = sizes_without_squares(rng, "B H T K K_v")
    B, H, T, K, K_v = sizes.values()
    return {"B": B, "H": H, "T": T, "S": T + 2 + int(rng.integers(2)), "K": K, "K_v": K_v}


def _relative_cases(rng):
    while True:  # S is no other size, and the mask needs a few queries
        sizes = _relative_sizes(rng)
        if sizes["T"] > 2 and len(set(sizes.values())) == 6:
            break
    B, H, T, S = (sizes[letter] for letter in "BHTS")
    plain = _relative_inputs(rng, *sizes.values())
    hidden = rng.random((B, H, T, S)) < 0.3
    hidden[..., 0] = False  # something to see in every row
    empty = hidden.copy()
    empty[0, :, 1] = empty[-1, 0, -1] = True
    padding = np.zeros((B, 1, 1, S), bool)
    padding[0, ..., 1:3] = padding[1, ..., :2] = True
    bias = rng.normal(size=(T, S))
    q, k, *others = plain
    large = *far_apart(rng, q, k), *others

    def of(**other):
        changed = sizes | other
        return _relative_inputs(rng, *changed.values()), changed

    square, square_sizes = of(S=T)
    single, single_sizes = of(T=1)
    heads, heads_sizes = of(H=T)
    same, same_sizes = of(K_v=sizes["K"])
    return [
        Case("", plain, sizes=sizes),
        Case("as many keys as queries", square, sizes=square_sizes),
        Case("one query, T = 1", single, sizes=single_sizes),
        Case("a Boolean mask", plain, {"mask": hidden}, sizes),
        Case("a float mask to be added", plain, {"mask": bias}, sizes),
        Case("keys hidden from everyone", plain, {"mask": padding}, sizes),
        Case("rows that are hidden whole", plain, {"mask": empty}, sizes),
        Case("scores of ±10,000", large, sizes=sizes),
        Case("as many queries as heads", heads, sizes=heads_sizes),
        Case("K_v = K", same, sizes=same_sizes),
    ]


def _biases(made, content_bias, position_bias, H, T):
    """What is added to q in the two terms, (H, 1, K)."""
    if made("biases swapped"):
        content_bias, position_bias = position_bias, content_bias
    if made("content bias in both terms"):
        position_bias = content_bias
    if made("position bias in both terms"):
        content_bias = position_bias
    if made("both biases in both terms"):
        content_bias = position_bias = content_bias + position_bias
    if made("content bias forgotten"):
        content_bias = 0 * content_bias
    if made("position bias forgotten"):
        position_bias = 0 * position_bias
    if made("biases subtracted"):
        content_bias, position_bias = -content_bias, -position_bias
    if made("biases added along the queries"):
        if H != T:
            raise ValueError
        return content_bias, position_bias
    return content_bias[:, None], position_bias[:, None]


def _relative_scale(made, H, K, K_v):
    """What the two terms are multiplied by."""
    scale = (H * K) ** -0.5 if made("√d_model instead of √d_k") else _scale(made, K, K_v)
    scale = scale * 2**-0.5 if made("1/√(2 d_k)") else scale
    return 1 if made("scale only in the position term") else scale, 1 if made(
        "scale only in the content term"
    ) else scale


def _wrong_relative_attention(made, q, k, v, r, content_bias, position_bias, mask=None):
    (_, H, T, K), (S, K_v) = q.shape, v.shape[-2:]
    u_here, v_here = _biases(made, content_bias, position_bias, H, T)
    if made("r in reverse order"):
        r = r[:, ::-1]
    content_scale, position_scale = _relative_scale(made, H, K, K_v)
    if made("biases not scaled"):
        u_here, v_here = u_here / content_scale, v_here / position_scale
    content = np.einsum("bhtk,bhsk->bhts", q + u_here, k) * content_scale
    distances = np.einsum("bhtk,hsk->bhts", q + v_here, k[0] if made("k of the first sequence for r") else r)
    position = _shift(made, distances * position_scale)
    if made("future not hidden"):
        flat = np.concatenate([np.zeros_like(distances[..., :1]), distances * position_scale], axis=-1)
        position = flat.reshape(*q.shape[:2], -1)[..., T:].reshape(distances.shape)
    if made("future not hidden, distances rolled round"):
        place = (np.arange(S) + T - 1 - np.arange(T)[:, None]) % S
        position = np.take_along_axis(distances * position_scale, np.broadcast_to(place, distances.shape), axis=-1)
    if made("position term forgotten"):
        position = 0 * position
    if made("content term forgotten"):
        content = 0 * content
    if made("position term subtracted"):
        position = -position
    hide = mask if not made("mask after the softmax") else None
    scores = _mask(made, content + position, hide)
    present = _present(T, S)
    if made("future hidden as if S = T"):
        present = np.tri(T, S, dtype=bool)
    if made("the token itself hidden"):
        present = np.tri(T, S, S - T - 1, dtype=bool)
    if made("past hidden instead of the future"):
        present = ~np.tri(T, S, S - T - 1, dtype=bool)
    if any(made(f"future not hidden{how}") for how in ("", ", position term 0 there", ", distances rolled round")):
        present = np.ones_like(present)
    low = -1e9 if made("−1e9 for −inf") else -np.inf
    if made("future hidden after the softmax"):
        weights = np.where(present, _weights_of(made, scores), 0)
    else:
        weights = _weights_of(made, np.where(present, scores, low))
    if made("mask after the softmax") and mask is not None:
        weights = weights * (~mask if mask.dtype == bool else 1)
    return weights @ (k if made("keys in place of the values") else v), weights


def _weights_of(made, scores):
    axis = -2 if made("softmax over the queries") else -1
    if not made("largest score not subtracted"):
        largest = scores.max(axis=axis, keepdims=True)
        scores = scores - (largest if made("NaN where all is hidden") else np.maximum(largest, np.finfo(float).min))
    weights = np.exp(scores)
    if made("not divided by the sum"):
        return weights
    total = weights.sum(axis=axis, keepdims=True)
    if not made("NaN where all is hidden") and not made("largest score not subtracted"):
        total = np.where(total == 0, 1, total)
    return weights / total


_RELATIVE_MISTAKES = {
    "biases swapped": (
        "The two biases are swapped: the content bias u belongs to the term with the keys, (Q + u) Kᵀ, the position "
        "bias v to the term with the distances, (Q + v) Rᵀ."
    ),
    "content bias forgotten": "The content bias u is not added to q in the term with the keys, (Q + u) Kᵀ.",
    "position bias forgotten": "The position bias v is not added to q in the term with the distances, (Q + v) Rᵀ.",
    "content bias in both terms": (
        "The content bias u is in both terms. The term with the distances has a bias of its own, (Q + v) Rᵀ."
    ),
    "position bias in both terms": (
        "The position bias v is in both terms. The term with the keys has a bias of its own, (Q + u) Kᵀ."
    ),
    "both biases in both terms": (
        "Both biases are added to q in both terms: u belongs to (Q + u) Kᵀ alone, v to (Q + v) Rᵀ."
    ),
    "biases subtracted": "The biases are subtracted from q; they are added.",
    "biases added along the queries": (
        "The biases (H, K) are added as if their first axis were the queries: NumPy aligns axes from the right. They "
        "are one row a head, content_bias[:, None]. With T ≠ H it crashes."
    ),
    "r in reverse order": (
        "R is read in reverse order. Row c of R is the distance S − 1 − c: the farthest first, distance 0 in the last "
        "row."
    ),
    "√d_model instead of √d_k": (
        "The scores are divided by √d_model = √(H · K). Each head has its own √d_k, q.shape[-1]."
    ),
}

RELATIVE_ATTENTION = Exercise(
    F.relative_attention,
    (Result("out", "B H T K_v"), Result("weights", "B H T S")),
    _relative_cases,
    {
        **_RELATIVE_MISTAKES,
        **_SCALE_MISTAKES,
        "1/√(2 d_k)": (
            "The scores are divided by √(2 d_k), since there are two terms. It is √d_k, as in all attention here."
        ),
        "biases not scaled": (
            "Only q is scaled, the biases are added behind it: their share lacks the factor 1/√d_k. Scale the scores, "
            "((Q + u) Kᵀ + shift((Q + v) Rᵀ)) / √d_k."
        ),
        "scale only in the content term": (
            "Only the term with the keys has the factor 1/√d_k. Both have it: ((Q + u) Kᵀ + shift((Q + v) Rᵀ)) / √d_k."
        ),
        "scale only in the position term": (
            "Only the term with the distances has the factor 1/√d_k. Both have it: ((Q + u) Kᵀ + shift((Q + v) Rᵀ)) / "
            "√d_k."
        ),
        "position term forgotten": (
            "The term with the distances, shift((Q + v) Rᵀ), is missing: nothing tells how far away a key is."
        ),
        "content term forgotten": "The term with the keys, (Q + u) Kᵀ, is missing: nothing tells what a key says.",
        "position term subtracted": "The term with the distances is subtracted; a sign is wrong.",
        "k of the first sequence for r": "The position term is made with keys instead of R: it is shift((Q + v) Rᵀ).",
        **{
            name: f"In the shift of the position term: {text}"
            for name, text in _SHIFT_MISTAKES.items()
            if name != "distances in reverse order"  # that is R in reverse order
        },
        "future not hidden": (
            "The future is not hidden: a key behind the query has no distance, and what the shift leaves there means "
            "nothing. Set these scores to −inf, even without a mask."
        ),
        "future not hidden, position term 0 there": (
            "The future is not hidden: a key behind the query has no distance. That its position term is 0 does not "
            "hide it; set these scores to −inf, even without a mask."
        ),
        "future not hidden, distances rolled round": (
            "The future is not hidden: a key behind the query has no distance, and what the roll brings there belongs "
            "to keys far in the past. Set these scores to −inf, even without a mask."
        ),
        "future hidden as if S = T": (
            "The future is hidden as if query t stood at position t. The queries are the last T of S positions: hidden "
            "is s > t + (S − T), as in causal_mask(T, S)."
        ),
        "future hidden after the softmax": (
            "The future is set to 0 after the softmax: it was in the sum, and the weights add to less than 1. Hide "
            "first (−inf), then softmax."
        ),
        "past hidden instead of the future": (
            "The past is hidden instead of the future: the mask is the wrong way round."
        ),
        "the token itself hidden": (
            "The token itself is hidden too, off by one: distance 0 is seen, only what is behind it is the future."
        ),
        **_MASK_MISTAKES,
        "mask after the softmax": (
            "The mask is applied after the softmax: hidden keys were in the sum, and the weights add to less than 1. "
            "Hide first (−inf), then softmax."
        ),
        "−1e9 for −inf": (
            "Hidden scores are set to −1e9 instead of −inf. A query that may see nothing then has equal scores and "
            "gets a mean of values, those of the future too; its weights and output are 0."
        ),
        "−1e9 added for −inf": (
            "−1e9 is added to hidden scores. In a row that is hidden whole that changes nothing, and the query sees "
            "all; its weights and output are 0. Set hidden scores to −inf."
        ),
        "NaN where all is hidden": (
            "A query that may see nothing gets NaN: −inf − (−inf), or 0/0. Its weights and its output are 0."
        ),
        "softmax over the queries": (
            "The softmax runs over the queries instead of the keys, axis −2 instead of −1: the weights of a query do "
            "not add to 1."
        ),
        "not divided by the sum": (
            "The exponentials are not divided by their sum: the weights of a query do not add to 1."
        ),
        "largest score not subtracted": (
            "The largest score is not subtracted before the exponential: exp of a large score overflows, and inf/inf "
            "is NaN."
        ),
        "keys in place of the values": "The weights multiply the keys K instead of the values V: out = A V.",
    },
    _wrong_relative_attention,
    (
        "A score has two parts: what the key says and how far away it is. Which bias and which partner has each?",
        "scores = ((Q + u) Kᵀ + shift((Q + v) Rᵀ)) / √d_k, −inf in the future and where the mask hides; out = "
        "softmax(scores) V",
        "notebook 10, “Transformer-XL”; Dai et al. 2019, §3.3; relative_shift, and causal_mask(T, S) for the future.",
    ),
    difficulty=3,
    section="Dai et al. 2019, §3.3",
)


def _relative_backward_cases(rng):
    cases = []
    for forward in _relative_cases(rng):
        if "10,000" in forward.label:  # all weights 0 or 1 there: no gradient
            continue
        out, weights = F.relative_attention(*forward.arguments, **forward.options)
        arguments = rng.normal(size=out.shape), *forward.arguments, weights
        cases.append(Case(forward.label, arguments, sizes=forward.sizes))
    return cases


def _wrong_relative_attention_backward(made, dout, q, k, v, r, content_bias, position_bias, weights):
    (B, H, T, K), K_v = q.shape, v.shape[-1]
    u_here, v_here = _biases(made, content_bias, position_bias, H, T)
    partner = r[:, ::-1] if made("r in reverse order") else r
    dweights = dout @ v.swapaxes(-1, -2)  # (B, H, T, S)
    dscores = _softmax_backward(made, dweights, weights)
    content_scale, position_scale = _relative_scale(made, H, K, K_v)
    dcontent, dposition = dscores * content_scale, dscores * position_scale
    if made("shifted forward once more"):
        dposition = _shift(_exactly(""), dposition)
    else:
        dposition = _unshift(made, dposition)
    swapped = made("Q and K swapped")
    dq_content = dcontent @ (q if swapped else k)
    dq_position = np.einsum("bhts,hsk->bhtk", dposition, partner)
    turned = "bhst,bhtk->bhsk" if made("dscores not transposed") else "bhts,bhtk->bhsk"
    dk = np.einsum(turned, dcontent, (k if swapped else q) + u_here)
    dr = np.einsum(turned, dposition, q + v_here)  # (B, H, S, K)
    if made("dR without the shift"):
        dr = np.einsum(turned, dscores * position_scale, q + v_here)
    if made("r in reverse order"):
        dr = dr[:, :, ::-1]
    dv = np.einsum("bhst,bhtk->bhsk" if made("A not transposed") else "bhts,bhtk->bhsk", weights, dout)
    if made("dscores in place of A in dV"):
        dv = np.einsum("bhts,bhtk->bhsk", dcontent, dout)
    du, dv_bias = dq_content, dq_position
    if made("bias gradients from the whole dQ"):
        du = dv_bias = dq_content + dq_position
    if made("bias gradients swapped"):
        du, dv_bias = dv_bias, du
    dq = dq_content * (not made("dQ without the content term")) + dq_position * (
        not made("dQ without the position term")
    )
    if made("position term of dQ without the shift"):
        dq = dq_content + np.einsum("bhts,hsk->bhtk", dscores * position_scale, partner)
    if made("dR of the last sequence only"):
        dr = dr[-1]
    elif not made("dR not summed over the batch"):
        dr = dr.sum(axis=0)
    over = {0, 2}
    if made("bias gradients summed over heads too"):
        over |= {1}
    if made("bias gradients not summed over the batch") or made("bias gradients not summed at all"):
        over -= {0}
    if made("bias gradients not summed over the queries") or made("bias gradients not summed at all"):
        over -= {2}
    du, dv_bias = du.sum(axis=tuple(over)), dv_bias.sum(axis=tuple(over))
    if made("mean over the batch"):
        dr, du, dv_bias = dr / B, du / B, dv_bias / B
    if made("mean over the queries"):
        du, dv_bias = du / T, dv_bias / T
    return dq, dk, dv, dr, du, dv_bias


def _softmax_backward(made, dweights, weights):
    total = (dweights * weights).sum(axis=-1, keepdims=True)
    if made("sum of the softmax missing"):
        total = 0
    if made("sum of the softmax added"):
        total = -total
    if made("mean instead of the sum"):
        total = total / weights.shape[-1]
    if made("sum not weighted by A"):
        total = dweights.sum(axis=-1, keepdims=True)
    if made("only the diagonal of the softmax"):
        return dweights * weights * (1 - weights)
    if made("softmax left out"):
        return dweights
    if made("A missing before the bracket"):
        return dweights - total
    if made("sum not multiplied by A"):
        return dweights * weights - total
    return weights * (dweights - total)


RELATIVE_ATTENTION_BACKWARD = Exercise(
    F.relative_attention_backward,
    (
        Result("dq", "B H T K"),
        Result("dk", "B H S K"),
        Result("dv", "B H S K_v"),
        Result("dr", "H S K"),
        Result("dcontent_bias", "H K"),
        Result("dposition_bias", "H K"),
    ),
    _relative_backward_cases,
    {
        "dQ without the position term": (
            "dQ lacks the position term: q went into both terms of the scores, so dQ = dscores K + ddistances R."
        ),
        "dQ without the content term": (
            "dQ lacks the content term: q went into both terms of the scores, so dQ = dscores K + ddistances R."
        ),
        "biases swapped": (
            "The two biases are swapped: dK takes q with the content bias, dscoresᵀ (Q + u), and dR takes q with the "
            "position bias, ddistancesᵀ (Q + v)."
        ),
        "content bias forgotten": "In dK the content bias is missing: the keys met Q + u, so dK = dscoresᵀ (Q + u).",
        "position bias forgotten": "In dR the position bias is missing: R met Q + v, so dR = Σ ddistancesᵀ (Q + v).",
        "content bias in both terms": (
            "In dR stands the content bias u. R met q with the position bias: dR = Σ ddistancesᵀ (Q + v)."
        ),
        "position bias in both terms": (
            "In dK stands the position bias v. The keys met q with the content bias: dK = dscoresᵀ (Q + u)."
        ),
        "both biases in both terms": "Both biases are added to q in dK and dR: dK has (Q + u), dR has (Q + v).",
        "biases subtracted": "The biases are subtracted from q in dK and dR; in the forward they were added.",
        "biases added along the queries": _RELATIVE_MISTAKES["biases added along the queries"],
        "r in reverse order": (
            "R is used in reverse order. Row c of R is the distance S − 1 − c: the farthest first, distance 0 in the "
            "last row."
        ),
        "not shifted": (
            "The shift is not undone: dscores has a column for each key, and R and dR a row for each distance. First "
            "ddistances = relative_shift_backward(dscores)."
        ),
        "dR without the shift": (
            "dR is made from dscores, whose columns are keys. Its rows are distances: dR = Σ ddistancesᵀ (Q + v)."
        ),
        "position term of dQ without the shift": (
            "The position term of dQ is dscores R, whose columns are keys. The rows of R are distances: ddistances R."
        ),
        "shifted forward once more": (
            "dscores is shifted forward once more, to the left. Back is to the right: relative_shift_backward, not "
            "relative_shift."
        ),
        "by t instead of T − 1 − t": "Row t is shifted back by t; it is by T − 1 − t: the last row did not move.",
        "by S − 1 − t instead of T − 1 − t": (
            "The distance of query t and key s is taken as t − s, as if there were no memory. Query t stands at "
            "position S − T + t: row t is shifted back by T − 1 − t, not by S − 1 − t."
        ),
        "one place too far": "The shift back is off by one: row t goes by T − 1 − t, the last row not at all.",
        "one place too little": (
            "The shift back is off by one, too little: row t goes by T − 1 − t, the last row not at all."
        ),
        "no 1/√d_k": (
            "The scale is missing: the scores were divided by √d_k (sqrt(K)), so dscores has the factor 1/√d_k too."
        ),
        "1/d_k instead of 1/√d_k": (
            "The factor is 1/d_k instead of 1/√d_k: the square root is missing, or the scale is there twice."
        ),
        "multiplied by √d_k": "dscores is multiplied by √d_k (sqrt(K)) where it has to be divided by it.",
        "√ of the values' size": (
            "The scale is 1/√d_v, with the size of the values. The scores were divided by √d_k, q.shape[-1]."
        ),
        "√d_model instead of √d_k": "The factor is 1/√d_model = 1/√(H · K). Each head has its own √d_k, q.shape[-1].",
        "scale only in the content term": (
            "The factor 1/√d_k is missing in what goes back to the position term: ddistances needs it as well as "
            "dscores."
        ),
        "scale only in the position term": (
            "The factor 1/√d_k is missing in what goes back to the content term: dscores needs it as well as "
            "ddistances."
        ),
        "sum of the softmax missing": (
            "The backward of the softmax is A · (dA − Σ dA · A) along the keys; here the sum is missing."
        ),
        "sum of the softmax added": (
            "In the backward of the softmax the sum Σ dA · A is added where it has to be subtracted: a sign is wrong."
        ),
        "mean instead of the sum": "In the backward of the softmax Σ dA · A is a sum over the keys; here it is a mean.",
        "sum not weighted by A": (
            "In the backward of the softmax the sum is Σ dA instead of Σ dA · A: each dA counts with its weight."
        ),
        "sum not multiplied by A": (
            "This is A · dA − Σ dA · A: the factor A stands before both terms, A · (dA − Σ dA · A). A bracket is "
            "missing."
        ),
        "A missing before the bracket": "The factor A in front is missing: dscores = A · (dA − Σ dA · A).",
        "only the diagonal of the softmax": (
            "This is dA · A · (1 − A), the diagonal of the softmax's Jacobian alone. Every score is in the sum under "
            "every weight: the off-diagonal terms −Aᵢ Aⱼ are missing."
        ),
        "softmax left out": (
            "The backward of the softmax is left out: dA is used as if it were the gradient of the scores."
        ),
        "Q and K swapped": (
            "dQ and dK are made with the wrong partner: dQ has dscores K, dK is dscoresᵀ (Q + u). It shows no error "
            "where there are as many keys as queries."
        ),
        "dscores not transposed": (
            "In dK or dR the gradient is not transposed: dK = dscoresᵀ (Q + u), dR = Σ ddistancesᵀ (Q + v). It shows "
            "no error where there are as many keys as queries."
        ),
        "A not transposed": (
            "dV is A dout; it is Aᵀ dout: a row of A is a query, a row of dV is a key. It shows no error where there "
            "are as many keys as queries."
        ),
        "dscores in place of A in dV": "dV is made with dscoresᵀ instead of Aᵀ: out = A V, so dV = Aᵀ dout.",
        "dR not summed over the batch": (
            "dr keeps an axis of B: it is not summed over the batch. All sequences share R, (H, S, K)."
        ),
        "dR of the last sequence only": (
            "dr is that of the last sequence only, overwritten instead of added. All sequences share R: dR is the sum "
            "over the batch."
        ),
        "bias gradients swapped": (
            "The two bias gradients are swapped: dcontent_bias is the sum of dscores K, dposition_bias that of "
            "ddistances R."
        ),
        "bias gradients from the whole dQ": (
            "Both bias gradients are the sum of the whole dQ. u was in the content term only, so it gets Σ dscores K; "
            "v was in the position term only and gets Σ ddistances R."
        ),
        "bias gradients not summed over the queries": (
            "The bias gradients keep an axis of T: they are not summed over the queries. A head has one bias for all "
            "queries."
        ),
        "bias gradients not summed over the batch": (
            "The bias gradients keep an axis of B: they are not summed over the batch. All sequences share the biases."
        ),
        "bias gradients not summed at all": (
            "The bias gradients are (B, H, T, K), not summed. A head has one bias: they are sums over batch and "
            "queries, (H, K)."
        ),
        "bias gradients summed over heads too": (
            "The bias gradients are summed over the heads too. Each head has its own biases, (H, K)."
        ),
        "mean over the batch": (
            "A mean over the batch is taken, too small by the factor 1/B. What all sequences share gets the sum: if "
            "the loss is a mean, that is already in dout."
        ),
        "mean over the queries": (
            "The bias gradients are a mean over the queries, too small by the factor 1/T. They are sums over batch and "
            "queries."
        ),
    },
    _wrong_relative_attention_backward,
    (
        "q is in two terms of each score. Which gradient comes back through each, and who shares R and the biases?",
        "ddistances = relative_shift_backward(dscores); dQ = dscores K + ddistances R, dK = dscoresᵀ (Q + u), dR = Σ "
        "ddistancesᵀ (Q + v), dV = Aᵀ dout; du, dv: the two terms of dQ, summed",
        "notebook 10, “Transformer-XL”, and 06 for attention's backward; relative_shift_backward. R is shared by the "
        "batch, the biases by batch and queries.",
    ),
    difficulty=3,
    section="Dai et al. 2019, §3.3",
)

EXERCISES = [
    TILED_ATTENTION,
    TILED_ATTENTION_BACKWARD,
    RELATIVE_SHIFT,
    RELATIVE_SHIFT_BACKWARD,
    RELATIVE_ATTENTION,
    RELATIVE_ATTENTION_BACKWARD,
]
