"""Attention with relative positions (Dai et al. 2019): the score depends on the distance between query and key."""

import numpy as np

from ..support.shapes import shapes
from .core import attention_scores, softmax, softmax_backward


@shapes(x="... T S")
def relative_shift(x):
    """Turn columns that count distances into columns that count keys (Dai et al. 2019, appendix B).

    The queries are the last T of S positions: query t has position S − T + t and distance S − T + t − s from key s.
    Column c of x belongs to the distance S − 1 − c for every query. So each row moves to the left: the last row by
    nothing, the row above it by one, …

        y[t, s] = x[t, s + T − 1 − t]

    This needs no loop: put a zero in front of each row, lay the rows end to end, drop the first T numbers, and cut the
    rest into rows again. For T = 3 and S = 4, where an entry names its row and its distance:

        x  a3 a2 a1 a0        0 a3 a2 a1 a0                         y  a1 a0  0 b3
           b3 b2 b1 b0   →    0 b3 b2 b1 b0   →  without 0 a3 a2  →    b2 b1 b0  0
           c3 c2 c1 c0        0 c3 c2 c1 c0                            c3 c2 c1 c0

    The entries to the right of distance 0, where the key is in the query's future, have no meaning: any numbers may
    stand there.

    x (..., T, S), S ≥ T  ->  y (..., T, S)
    """
    *batch, T, S = x.shape
    _check_relative(T, S)
    padded = np.zeros((*batch, T, S + 1), x.dtype)
    padded[..., 1:] = x
    return padded.reshape(*batch, -1)[..., T:].reshape(x.shape)


@shapes(dy="... T S")
def relative_shift_backward(dy):
    """Backward of relative_shift: its steps in reverse. Dropped numbers have gradient 0; the padded zeros need none.

    dy (..., T, S)  ->  dx (..., T, S)
    """
    *batch, T, S = dy.shape
    _check_relative(T, S)
    padded = np.zeros((*batch, T * (S + 1)), dy.dtype)
    padded[..., T:] = dy.reshape(*batch, -1)
    return np.ascontiguousarray(padded.reshape(*batch, T, S + 1)[..., 1:])


def _check_relative(T, S):
    if S < T:
        raise ValueError(f"the queries are the last of the keys, so there are at least as many: got T = {T}, S = {S}")


@shapes(q="B H T K", k="B H S K", r="H S K", content_bias="H K", position_bias="H K")
def relative_scores(q, k, r, content_bias, position_bias, mask=None):
    """Score each key for each query by its content and its distance; see relative_attention (Dai et al. 2019, §3.3).

        scores = ((Q + u) Kᵀ + shift((Q + v) Rᵀ)) / √d_k + M

    q (B, H, T, K), k (B, H, S, K), r (H, S, K), content_bias and position_bias (H, K), mask broadcastable to
    (B, H, T, S)
    ->  scores (B, H, T, S), −inf where hidden
    """
    T, S = q.shape[2], k.shape[2]
    scores = attention_scores(q + content_bias[:, None], k, mask)  # (B, H, T, S), one column per key
    by_distance = attention_scores(q + position_bias[:, None], np.broadcast_to(r, k.shape))  # one per distance
    scores += relative_shift(by_distance)
    np.copyto(scores, -np.inf, where=~np.tri(T, S, S - T, dtype=bool))
    return scores


@shapes(q="B H T K", k="B H S K", v="B H S K_v", r="H S K", content_bias="H K", position_bias="H K")
def relative_attention(q, k, v, r, content_bias, position_bias, mask=None):
    """Attention that uses the distance to each key instead of its position (Dai et al. 2019, §3.3).

        out = A V,    A = softmax(((Q + u) Kᵀ + shift((Q + v) Rᵀ)) / √d_k + M)

    u, the content bias, scores the content of a key for any query; v, the position bias, scores its distance for any
    query. Row c of R is the projected encoding of the distance S − 1 − c, so the last row is distance 0.

    q (B, H, T, K), the last T of the S positions; k (B, H, S, K), v (B, H, S, K_v), r (H, S, K), content_bias and
    position_bias (H, K), mask broadcastable to (B, H, T, S)
    ->  out (B, H, T, K_v), weights A (B, H, T, S)

    There are no negative distances: keys in a query's future are always hidden. Raises ValueError for S < T.
    """
    weights = softmax(relative_scores(q, k, r, content_bias, position_bias, mask))  # (B, H, T, S)
    return weights @ v, weights


@shapes(
    dout="B H T K_v", q="B H T K", k="B H S K", v="B H S K_v", r="H S K", content_bias="H K", position_bias="H K",
    weights="B H T S",
)  # fmt: skip
def relative_attention_backward(dout, q, k, v, r, content_bias, position_bias, weights):
    """Backward of relative_attention. A hidden key has weight 0, so the mask and the shift's leftovers do not matter.

        dV = Aᵀ dout,    dscores = softmax_backward(dout Vᵀ) / √d_k,    ddistances = relative_shift_backward(dscores)
        dK = dscoresᵀ (Q + u),    dR = Σ ddistancesᵀ (Q + v) over the batch, which shares R
        dQ = dscores K + ddistances R; du and dv are the sums of its two terms over batch and queries

    dout (B, H, T, K_v)  ->  dq (B, H, T, K), dk (B, H, S, K), dv (B, H, S, K_v), dr (H, S, K),
    dcontent_bias (H, K), dposition_bias (H, K)
    """
    dv = weights.swapaxes(-1, -2) @ dout  # (B, H, S, K_v)
    dscores = softmax_backward(dout @ v.swapaxes(-1, -2), weights)  # (B, H, T, S)
    dscores *= q.shape[-1] ** -0.5
    ddistances = relative_shift_backward(dscores)  # (B, H, T, S)
    dk = dscores.swapaxes(-1, -2) @ (q + content_bias[:, None])  # (B, H, S, K)
    dr = (ddistances.swapaxes(-1, -2) @ (q + position_bias[:, None])).sum(axis=0)  # (H, S, K)
    dq_content = dscores @ k  # (B, H, T, K)
    dq_position = ddistances @ r  # (B, H, T, K)
    dcontent_bias, dposition_bias = dq_content.sum(axis=(0, 2)), dq_position.sum(axis=(0, 2))  # (H, K)
    return dq_content + dq_position, dk, dv, dr, dcontent_bias, dposition_bias
