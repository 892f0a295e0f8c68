"""Attention for long sequences: the same result as functional.scaled_dot_product_attention, but the scores never exist
as a whole. The temporary memory grows with T + S, not with T · S.

The scores are computed tile by tile, for some queries and some keys at a time. A tile stays in the processor's cache
between the matrix product that creates it and the one that consumes it. This is also faster as soon as all scores
together are larger than the cache.
"""

import math

import numpy as np

from ..masks import hide
from ..support.checks import as_masks, check_at_least
from ..support.processes import blas_threads, limit_blas_threads
from ..support.shapes import shapes

TILE = 256  # queries by keys: the two tiles of the backward, for two heads, fill a level-2 cache of 1 MiB
HEADS = 2  # at once: threads that call NumPy half as often wait less for each other


@shapes(q="... T K", k="... S K", v="... S K_v")
def tiled_attention(q, k, v, mask=None, tile=TILE):
    """softmax(Q Kᵀ / √d_k + M) V, without a matrix of scores (Rabe & Staats 2021; Dao et al. 2022, FlashAttention).

    A query meets its keys tile by tile, and its softmax is updated with each tile (Milakov & Gimelshein 2018). For the
    keys so far, m is the largest score, l = Σ exp(s − m) and o = Σ exp(s − m) v. A new tile has scores s and values v.
    If one of its scores is larger than m, the earlier sums are too large by the factor exp(m' − m):

        m' = max(m, max s),    l' = l exp(m − m') + Σ exp(s − m'),    o' = o exp(m − m') + Σ exp(s − m') v

    After the last tile  out = o / l  and  log_total = m + log l, the logarithm of Σ exp(s) over all keys.

    q (..., T, K), k (..., S, K), v (..., S, K_v); mask, or a tuple of masks, as for scaled_dot_product_attention
    ->  out (..., T, K_v), log_total (..., T), the last for the backward

    If all keys are hidden from a query, its output is 0 and its log_total −inf. Tiles that are entirely hidden are
    skipped, so a causal mask halves the work. The heads are shared among as many threads as a matrix product may use.
    """
    check_at_least("tile", tile, 1)
    *heads, T, _ = q.shape
    if not heads:
        return tuple(result[0] for result in tiled_attention(q[None], k[None], v[None], mask, tile))
    masks = _for_every_head(mask, (*heads, T, k.shape[-2]))
    out = np.empty((*heads, T, v.shape[-1]), q.dtype)
    log_total = np.empty((*heads, T), q.dtype)

    def attend(indices):  # large buffers are allocated once for all heads: new memory is slow
        scores = np.empty((HEADS, min(tile, T), min(tile, k.shape[-2])), q.dtype)
        for i in indices:
            _attend(q[i], k[i], v[i], [mask[i] for mask in masks], tile, scores, out[i], log_total[i])

    _share_out(attend, heads)
    return out, log_total


def _attend(q, k, v, masks, tile, buffer, out, log_total):
    """tiled_attention of H heads: q (H, T, K), k (H, S, K), v (H, S, K_v), masks (H, T, S); fills out (H, T, K_v) and
    log_total (H, T)."""
    scale = q.shape[-1] ** -0.5
    lowest = np.finfo(q.dtype).min
    ones = np.ones(tile, q.dtype)
    for rows in _cuts(q.shape[1], tile):
        queries, weighted = q[:, rows] * scale, out[:, rows]  # (H, R, K), (H, R, K_v)
        largest = np.full(queries.shape[:2], -np.inf, q.dtype)  # m, (H, R)
        total = np.zeros(queries.shape[:2], q.dtype)  # l, (H, R)
        weighted[...] = 0  # o
        for columns in _cuts(k.shape[1], tile):
            here = _masks_here(masks, rows, columns)
            if here is None:
                continue
            keys = k[:, columns]  # (H, C, K)
            scores = buffer[: len(q), : queries.shape[1], : keys.shape[1]]
            np.matmul(queries, keys.mT, out=scores)  # (H, R, C)
            hide(scores, here)
            before, largest = largest, np.maximum(largest, scores.max(axis=2))
            shift = np.maximum(largest, lowest)  # nothing seen yet: not −inf − (−inf), which is NaN
            scores -= shift[..., None]
            np.exp(scores, out=scores)
            correction = np.exp(before - shift)  # (H, R)
            total *= correction
            total += scores @ ones[: keys.shape[1]]
            weighted *= correction[..., None]
            weighted += scores @ v[:, columns]
        total[total == 0] = 1  # all keys hidden: 0 / 1
        weighted /= total[..., None]
        np.log(total, out=total)
        np.add(largest, total, out=log_total[:, rows])


@shapes(dout="... T K_v", q="... T K", k="... S K", v="... S K_v", out="... T K_v", log_total="... T")
def tiled_attention_backward(dout, q, k, v, out, log_total, mask=None, tile=TILE):
    """Backward of tiled_attention. Each tile of the weights is computed again, which is cheaper than storing all of
    them (Dao et al. 2022, algorithm 4).

        A = exp(scores − log_total),    dA = dout Vᵀ,    dscores = A · (dA − δ) / √d_k
        dV = Aᵀ dout,    dQ = dscores K,    dK = dscoresᵀ Q

    δ is the sum that softmax_backward subtracts, Σ dA · A over the keys of a query. Because out = A V, it also equals
    Σ dout · out over the features and is known before the first tile.

    One extra column in the matrix products gives both differences: [Q, −log_total] [K, 1]ᵀ and [dout, −δ] [V, 1]ᵀ.

    dout (..., T, K_v), out and log_total from the forward, and the forward's mask
    A query that sees nothing has no gradient.
    ->  dq (..., T, K), dk (..., S, K), dv (..., S, K_v)
    """
    check_at_least("tile", tile, 1)
    *heads, T, _ = q.shape
    if not heads:
        arrays = (array[None] for array in (dout, q, k, v, out, log_total))
        return tuple(gradient[0] for gradient in tiled_attention_backward(*arrays, mask, tile))
    masks = _for_every_head(mask, (*heads, T, k.shape[-2]))
    gradients = [np.empty(x.shape, x.dtype) for x in (q, k, v)]

    def attend_backward(indices):
        tiles = np.empty((2, HEADS, min(tile, T), min(tile, k.shape[-2])), q.dtype)
        wider = (np.empty_like(q, order="C", shape=(HEADS, T, x.shape[-1] + 1)) for x in (q, v))
        buffers = (tiles, *wider)
        for i in indices:
            head_masks, into = [mask[i] for mask in masks], [gradient[i] for gradient in gradients]
            _attend_backward(dout[i], q[i], k[i], v[i], out[i], log_total[i], head_masks, tile, buffers, *into)

    _share_out(attend_backward, heads)
    return tuple(gradients)


def _attend_backward(dout, q, k, v, out, log_total, masks, tile, buffers, dq, dk, dv):
    """tiled_attention_backward of H heads; adds to dq (H, T, K), dk (H, S, K) and dv (H, S, K_v).

    buffers: two tiles, and space for queries and dout with one extra column each
    """
    tiles, queries, dweighted = buffers[0][:, : len(q)], buffers[1][: len(q)], buffers[2][: len(q)]
    scale = q.shape[-1] ** -0.5
    for gradient in (dq, dk, dv):
        gradient[...] = 0  # memory that is read before it is written, as of np.zeros, makes the threads wait
    log_total = np.where(log_total == -np.inf, 0, log_total)  # all keys hidden: the scores are −inf anyway
    queries[..., :-1], queries[..., -1] = q, -log_total  # (H, T, K + 1)
    queries[..., :-1] *= scale
    dweighted[..., :-1], dweighted[..., -1] = dout, -np.vecdot(dout, out)  # (H, T, K_v + 1)
    for columns in _cuts(k.shape[1], tile):
        keys, values = (_with_ones(x[:, columns]) for x in (k, v))  # (H, C, K + 1), (H, C, K_v + 1)
        for rows in _cuts(q.shape[1], tile):
            here = _masks_here(masks, rows, columns)
            if here is None:
                continue
            weights, dscores = tiles[:, :, : q[:, rows].shape[1], : keys.shape[1]]
            np.matmul(queries[:, rows], keys.mT, out=weights)  # (H, R, C), scores − log_total
            hide(weights, here)
            np.exp(weights, out=weights)  # (H, R, C)
            np.matmul(dweighted[:, rows], values.mT, out=dscores)  # (H, R, C), dA − δ
            dscores *= weights
            dv[:, columns] += weights.mT @ dout[:, rows]
            dk[:, columns] += dscores.mT @ queries[:, rows, :-1]  # the scale is in the queries
            dq[:, rows] += dscores @ k[:, columns]
    dq *= scale


def _with_ones(x):
    """One more feature, 1 everywhere: (H, C, K)  ->  (H, C, K + 1)"""
    return np.concatenate([x, np.ones((*x.shape[:2], 1), x.dtype)], axis=2)


def _cuts(length, tile):
    """The positions 0 … length − 1 in slices of `tile`; the last one may be shorter."""
    return [slice(start, min(start + tile, length)) for start in range(0, length, tile)]


def _for_every_head(mask, shape):
    """The masks, each as a view with the shape of all scores, (..., T, S)."""
    return [np.broadcast_to(mask, shape) for mask in as_masks(mask, shape)]


def _masks_here(masks, rows, columns):
    """The parts (H, R, C) of the masks (H, T, S) that change something in a tile; None if one hides all of it."""
    parts = [mask[:, rows, columns] for mask in masks]
    if any((part if part.dtype == bool else part == -np.inf).all() for part in parts):
        return None
    return [part for part in parts if part.any()]


def _share_out(work, heads):
    """Do `work` for every index of the leading axes `heads`, HEADS of the last one at a time, on as many threads as a
    matrix product may use.

    work(indices) iterates over the indices. All threads take theirs from the same iterator, one at a time. One thread
    computes a head from beginning to end, so the number of threads does not change a single bit of the result.
    """
    *rest, last = heads
    threads = min(blas_threads() or 1, math.prod(heads))
    at_once = min(HEADS, math.prod(heads) // threads)
    indices = iter([(*i, slice(h, h + at_once)) for i in np.ndindex(*rest) for h in range(0, last, at_once)])
    if threads == 1:
        work(indices)
        return
    from concurrent.futures import ThreadPoolExecutor  # here, because it takes 10 ms to import

    with limit_blas_threads(1), ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, [indices] * threads))  # list() raises the error of a thread
