"""Attention in a window and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result
from ..notes import amended
from .draws import far_apart, sizes_without_squares
from .relative_attention import DSCORES_SCALE_MISTAKES, SOFTMAX_BACKWARD_MISTAKES
from .softmax import softmax, softmax_backward
from .tiled_attention import SCALE_MISTAKES


def window_cases(rng):
    sizes = sizes_without_squares(rng, "B H K K_v")
    B, H, K, K_v = sizes.values()
    T = int(rng.integers(7, 10))
    w = int(rng.integers(2, 4))
    sizes |= {"T": T}

    def qkv(*lead, T=T, K_v=K_v):
        return tuple(rng.normal(size=(*lead, T, width)) for width in (K, K, K_v))

    q, k, v = plain = qkv(B)
    square = qkv(B, T=2 * w + 1)
    return [
        Case("", (*plain, w), sizes=sizes),
        Case("causal=True", (*plain, w), {"causal": True}, sizes),
        Case("a window of 0", (*plain, 0), sizes=sizes),
        Case("a window larger than the sequence", (*plain, T + 2), sizes=sizes),
        Case("a causal window larger than the sequence", (*plain, T + 1), {"causal": True}, sizes),
        Case("a window as wide as the sequence", (*square, w), sizes=sizes | {"T": 2 * w + 1}),
        Case("heads, q of shape (B, H, T, K)", (*qkv(B, H), w), {"causal": True}, sizes),
        Case("one sequence, q of shape (T, K)", (*qkv(), w), sizes=sizes),
        Case("scores of ±10,000", (*far_apart(rng, q, k), v, w), {"causal": True}, sizes),
        Case("a longer sequence", (*qkv(T=37), w), sizes=sizes | {"T": 37}),
        Case("K_v = K", (*qkv(B, K_v=K), w), sizes=sizes | {"K_v": K}),
        Case("a window below 0", (*plain, -1), sizes=sizes, extended=True, raises="ValueError"),
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


def padded_window_attention(q, k, v, window, causal, mode):
    """Before the start and after the end there are zeros, or other keys: mode as in np.pad."""
    behind = min(window, q.shape[-2] - 1)
    ahead = 0 if causal else behind
    around = [(0, 0)] * (q.ndim - 2) + [(behind, ahead), (0, 0)]
    k, v = np.pad(k, around, mode), np.pad(v, around, mode)
    keys = np.arange(q.shape[-2])[:, None] + np.arange(behind + 1 + ahead)  # (T, R)
    scores = np.einsum("...tk,...trk->...tr", q, k[..., keys, :]) / np.sqrt(q.shape[-1])
    weights = softmax(scores)
    return np.einsum("...tr,...trk->...tk", weights, v[..., keys, :]), weights


WINDOW_ATTENTION = Exercise(
    F.window_attention,
    results=(Result("out", "... T K_v"), Result("weights", "... T R")),
    cases=window_cases,
    answer=window_attention,
    hints=(
        "Which keys has query t, which column of the weights is which of them, and what is in a column without a key?",
        "A = softmax(Q Kᵀ / √d_k) over |t − s| ≤ window (and s ≤ t if causal), weights[t, j] = A[t, t − window + j]",
        "notebook 10, “A window”; scores of −inf where there is no key. Right first: all (T, T) scores, then cut out "
        "the band.",
    ),
    difficulty=3,
    section="Vaswani et al. 2017, §4",
    chapter="Long sequences",
    place=5,
    mistakes=SCALE_MISTAKES
    + """
- causal ignored:  0 if causal else behind -> behind
  `causal` is ignored: with causal=True it still looks into the future. Then the keys are t − window … t, and the band
  has window + 1 columns.
- always causal:  0 if causal else behind -> 0
  It never looks at the keys behind the query, as if causal were True always. By default the window is open to both
  sides, |t − s| ≤ window.
- looks ahead instead of back:
    ahead = 0 if causal else behind -> ahead = behind; behind = 0 if causal else behind
  With causal=True it sees t … t + window, the future instead of the past: the inequality is the wrong way round. Causal
  is s ≤ t.
- own position hidden:  seen = -> seen = ((key != query) | (window == 0)) &
  A query does not see its own position, with or without causal. The distance |t − s| = 0 is in the window.
- the token itself hidden:  seen = -> seen = ((key != query) | (not causal)) &
  With causal=True the token itself is hidden, s < t, and the first one sees nothing. Causal is s ≤ t.
- columns of the future kept:
    0 if causal else behind -> behind
    key <= query + ahead -> key <= query + (0 if causal else ahead)
  With causal=True the weights still have 2 · window + 1 columns, with zeros for the future. The band then has window +
  1 columns, the last of them the token itself.
- first key of the window left out:  key >= query - behind -> key > query - max(behind, 1)
  In the past the window is one key too short: the key s = t − window, at the distance `window`, is left out. Off by
  one.
- last key of the window left out:  key <= query + ahead -> key < query + max(ahead, 1)
  In the future the window is one key too short: the key s = t + window is left out. A slice or a range ends before its
  end, so that has to be t + window + 1.
- window one too small:  seen = -> seen = (np.abs(key - query) <= max(window - 1, 0)) &
  The window is one too small: |t − s| < window instead of |t − s| ≤ window. The key at the distance `window` itself is
  seen.
- window one too large:  min(window, T - 1) -> min(window + 1, T - 1)
  The window is one too large: |t − s| ≤ window + 1 instead of |t − s| ≤ window. Off by one.
- window taken for the whole width:
    behind = min -> window = max(window - 1, 0) if causal else window // 2; behind = min
  `window` is taken for the number of keys in all. It is the distance on each side: 2 · window + 1 keys, or window + 1
  if causal.
- window not cut to T − 1:  min(window, T - 1) -> window
  A window beyond T − 1 counts as T − 1, since no key is further away: the band has at most 2 T − 1 columns, T if
  causal. Here it has columns for distances that do not exist.
- zeros beyond the ends counted:  return padded_window_attention(q, k, v, window, causal, "constant")
  The zeros that stand for keys before the start and after the end take part in the softmax: a score of 0 is exp(0) = 1
  in the sum. Where there is no key the score is −inf.
- zeros beyond the ends counted, then hidden:
    out, weights = padded_window_attention(q, k, v, window, causal, "constant")
    T, R = weights.shape[-2:]
    key = np.arange(T)[:, None] - min(window, T - 1) + np.arange(R)
    return out, np.where((key >= 0) & (key < T), weights, 0)
  Where there is no key the weight is set to 0 after the softmax, but its exp(0) = 1 is still in the sum: the weights at
  both ends add to less than 1. Set the score to −inf before the softmax.
- 0 instead of −inf outside the window:  scores, -np.inf -> scores, 0
  The scores outside the window are set to 0 instead of −inf: a score of 0 still has the weight exp(0) = 1 in the sum,
  and those keys are seen.
- softmax before the window:
    scores = np.where(seen, scores, -np.inf) -> pass
    softmax(scores) -> np.where(seen, softmax(scores), 0)
  The softmax runs over all keys and the window is cut out of the weights afterwards: they are not normalised, a row
  adds to less than 1. Hide first (−inf), then softmax.
- softmax over the queries:  softmax(scores) -> softmax(scores, axis=-2)
  The softmax runs over the queries instead of the keys, axis −2 instead of −1: the weights of a query do not add to 1.
- not divided by the sum:  y / np.where(total == 0, 1, total) -> y
  The exponentials are not divided by their sum: the softmax is not normalised and the weights of a query do not add to
  1.
- no softmax, all alike:  np.where(seen, scores, -np.inf) -> np.where(seen, np.zeros_like(scores), -np.inf)
  The scores play no part: every key in the window has the same weight. A = softmax of the scores.
- largest score not subtracted:
    x - largest -> x
    np.where(total == 0, 1, total) -> total
  The largest score is not subtracted before the exponential: exp of a large score overflows, and inf/inf is NaN.
- wraps round:  return padded_window_attention(q, k, v, window, causal, "wrap")
  Beyond the ends it goes on at the other end, as np.roll and negative indices do: the first tokens see the last ones.
  There is no key there, weight 0.
- end tokens repeated:  return padded_window_attention(q, k, v, window, causal, "edge")
  Beyond the ends the first or last token is seen again and again, as with np.clip on the index or padding of mode
  “edge”. There is no key there, weight 0.
- keys in place of the values:  weights @ v -> weights @ k
  The weights multiply the keys K instead of the values V: out = A V.
- weights as (T, T):  band(weights, behind, ahead) -> weights
  The weights are returned as (T, T), one column per key. They must be the band (T, R): column j is the key t − window +
  j.
- scores in place of the weights:  band(weights, behind, ahead) -> scores
  The second result is the scores, (T, T), before the softmax. It is the weights, as the band (T, R).
- band of scores in place of the weights:
    band(weights, behind, ahead) -> band(scores, behind, ahead)
    np.zeros((*full.shape[:-1], behind + 1 + ahead)) -> np.full((*full.shape[:-1], behind + 1 + ahead), -np.inf)
  The second result is the scores, before the softmax. It is the weights, which add to 1 in each row.
- columns in reverse order:  band(weights, behind, ahead) -> band(weights, behind, ahead)[..., ::-1]
  The columns of the weights are in reverse order: column j is the key t − window + j, the farthest in the past first.
- columns from the first key there is:  columns[..., t, j] -> columns[..., t, j - max(behind - t, 0)]
  Near the start the columns begin with the first key there is. Column j is always the key t − window + j, also where
  there is none and the weight is 0.
""",
)


def window_backward_cases(rng):
    cases = []
    for forward in window_cases(rng):
        if forward.raises or "10,000" in forward.label:  # all weights 0 or 1 there: no gradient
            continue
        q, k, v, window = forward.arguments
        out, weights = F.window_attention(q, k, v, window, **forward.options)
        arguments = rng.normal(size=out.shape), q, k, v, weights, window
        cases.append(Case(forward.label, arguments, forward.options, forward.sizes))
    return cases


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


WINDOW_ATTENTION_BACKWARD = Exercise(
    F.window_attention_backward,
    results=(Result("dq", "... T K"), Result("dk", "... T K"), Result("dv", "... T K_v")),
    cases=window_backward_cases,
    answer=window_attention_backward,
    hints=(
        "Which queries saw key s, and in which column of their rows?",
        "dV = Aᵀ dout, dA = dout Vᵀ, dscores = A · (dA − Σ dA · A) / √d_k, dQ = dscores K, dK = dscoresᵀ Q, in the "
        "band only",
        "notebook 10, “A window”, and 06 for attention's backward. weights[t, j] belongs to the key t − window + j.",
    ),
    difficulty=3,
    section="Vaswani et al. 2017, §4",
    chapter="Long sequences",
    place=6,
    mistakes="""
- no 1/√d_k:  1 / np.sqrt(q.shape[-1]) -> 1
  The scale is missing: the scores were divided by √d_k (sqrt(K)), so dscores has the factor 1/√d_k too, in dQ and in
  dK.
"""
    + DSCORES_SCALE_MISTAKES
    + """
- scale only in dQ:
    softmax_backward(dweights, weights) * scale -> softmax_backward(dweights, weights)
    dscores @ k -> dscores @ k * scale
  The factor 1/√d_k is in dQ and missing in dK. It belongs to dscores, from which both are made.
- scale only in dK:
    softmax_backward(dweights, weights) * scale -> softmax_backward(dweights, weights)
    -1, -2) @ q -> -1, -2) @ q * scale
  The factor 1/√d_k is in dK and missing in dQ. It belongs to dscores, from which both are made.
"""
    + amended(
        SOFTMAX_BACKWARD_MISTAKES,
        instead="""
- mean instead of the sum:
    keepdims=True) -> keepdims=True) / R
    def softmax_backward(dy, y, axis=-1) -> def softmax_backward(dy, y, axis=-1, R=1)
    softmax_backward(dweights, weights) * -> softmax_backward(dweights, weights, R=behind + 1 + ahead) *
  The backward of the softmax uses a mean of dA · A over the R columns. It must be the sum over the keys.
""",
    )
    + """
- softmax taken of the weights:
    weights = spread(weights, T, behind, ahead) -> weights = softmax(spread(weights, T, behind, ahead))
    np.zeros((*columns.shape[:-1], T)) -> np.full((*columns.shape[:-1], T), -np.inf)
  The weights are put through softmax once more, as if they were scores. They are the forward's output.
- Q and K swapped:
    dscores @ k -> dscores @ q
    -1, -2) @ q -> -1, -2) @ k
  dQ and dK are made with the wrong partner: dQ = dscores K, dK = dscoresᵀ Q.
- dscores not transposed:  np.swapaxes(dscores, -1, -2) -> dscores
  dK is dscores Q; it is dscoresᵀ Q. A row of dscores is a query, a row of dK is a key: key s gathers from all queries
  that saw it.
- A not transposed:  np.swapaxes(weights, -1, -2) -> weights
  dV is A dout; it is Aᵀ dout. A row of A is a query, a row of dV is a key: key s gathers from all queries that saw it.
- dscores in place of A in dV:  np.swapaxes(weights, -1, -2) -> np.swapaxes(dscores, -1, -2)
  dV is made with dscoresᵀ instead of Aᵀ: out = A V, so dV = Aᵀ dout.
- overwritten instead of added:
    dk = np.swapaxes(dscores, -1, -2) @ q ->
        last = np.minimum(np.arange(T) + ahead, T - 1)
        dk = dscores[..., last, np.arange(T), None] * q[..., last, :]
    np.swapaxes(weights, -1, -2) @ dout -> weights[..., last, np.arange(T), None] * dout[..., last, :]
  In dK and dV a query overwrites what the queries before it gave, `=` instead of `+=` (or an index that comes up
  twice). A key was seen by many queries, and its gradients add; np.add.at counts repeated indices.
- only the token's own query:
    np.swapaxes(dscores, -1, -2) @ q -> dscores[..., range(T), range(T), None] * q
    np.swapaxes(weights, -1, -2) @ dout -> weights[..., range(T), range(T), None] * dout
  dK and dV gather from the query at the key's own place only. A key was seen by every query at a distance of at most
  `window`, and their gradients add.
- mean over the window:  return dq, dk, dv -> R = behind + 1 + ahead; return dq, dk / R, dv / R
  dK and dV are divided by the R columns of the window. They are sums over queries.
- columns in reverse order:  columns[..., t, j] -> columns[..., t, -1 - j]
  The columns of the weights are read in reverse order. Column j is the key t − window + j, the farthest in the past
  first.
- columns counted from the query on:  s = t - behind + j -> s = t + j
  Column j is read as the key t + j. It is t − window + j: the window begins `window` keys before the query.
- band taken for weights (T, T):  spread(weights, T, behind, ahead) -> weights.reshape(*weights.shape[:-1], T)
  The weights are used as if they were (T, T), one column per key. They are the band (T, R): column j is the key t −
  window + j.
- columns counted from 0:  s = t - behind + j -> s = j
  Column j is read as key j. It is the key t − window + j: the band moves with the query.
- band one column off:  s = t - behind + j -> s = t - behind + j + 1
  The band is read one column off: column j is the key t − window + j, without + 1.
- causal ignored:  0 if causal else behind -> behind
  `causal` is ignored: it looks for 2 · window + 1 columns in weights that have window + 1 if causal.
- window not cut to T − 1:  min(window, T - 1) -> window
  A window beyond T − 1 counts as T − 1: the weights have at most 2 T − 1 columns, T if causal. Here it looks for
  columns that are not there.
""",
)


EXERCISES = [WINDOW_ATTENTION, WINDOW_ATTENTION_BACKWARD]
