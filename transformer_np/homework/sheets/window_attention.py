"""Attention in a window and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result
from .draws import far_apart, sizes_without_squares


def _window_cases(rng):
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
    ]


def _band(T, window, ahead):
    """The key of every column of the band, (T, R), from `window` before the query to `ahead` after it."""
    return np.arange(T)[:, None] + np.arange(-window, ahead + 1)


def _softmax(scores, axis=-1, made=lambda name: False):
    if not made("largest score not subtracted"):
        scores = scores - np.maximum(scores.max(axis=axis, keepdims=True), np.finfo(float).min)
    weights = np.exp(scores)
    if made("not divided by the sum"):
        return weights
    total = weights.sum(axis=axis, keepdims=True)
    if not made("largest score not subtracted"):
        total = np.where(total == 0, 1, total)
    return weights / total


def _scale(made, K, K_v):
    """What the scores are multiplied by."""
    if made("no 1/√d_k"):
        return 1
    if made("1/d_k instead of 1/√d_k"):
        return 1 / K
    if made("multiplied by √d_k"):
        return K**0.5
    return (K_v if made("√ of the values' size") else K) ** -0.5


def _wrong_window_attention(made, q, k, v, window, causal=False):
    T = q.shape[-2]
    if made("causal ignored"):
        causal = False
    if made("always causal"):
        causal = True
    if made("window taken for the whole width"):
        window = max(window - 1, 0) if causal else window // 2
    if made("window one too large"):
        window += 1
    near = window - made("window one too small")
    if not made("window not cut to T − 1"):
        window = min(window, T - 1)
    behind, ahead = window, 0 if causal else window
    if causal and made("looks ahead instead of back"):
        behind, ahead = 0, window
    if causal and made("columns of the future kept"):
        ahead = window
    key = _band(T, behind, ahead)  # (T, R)
    inside = (key >= 0) & (key < T)
    query = np.arange(T)[:, None]
    seen = inside & (np.abs(key - query) <= max(near, 0))
    if causal and made("columns of the future kept"):
        seen &= key <= query
    if made("first key of the window left out"):
        seen &= (query - key < window) | (key == query)
    if made("last key of the window left out") and not causal:
        seen &= (key - query < window) | (key == query)
    if (causal and made("the token itself hidden")) or (window and made("own position hidden")):
        seen &= key != query
    if made("wraps round"):
        key, seen = key % T, np.ones_like(seen)
    if made("end tokens repeated"):
        key, seen = np.clip(key, 0, T - 1), np.ones_like(seen)
    place = np.clip(key, 0, T - 1)
    scores = q @ k.swapaxes(-1, -2) * _scale(made, q.shape[-1], v.shape[-1])  # (..., T, T), a column a key
    band = np.broadcast_to(place, (*scores.shape[:-1], key.shape[1]))
    visible = np.zeros((T, T), bool)
    visible[np.broadcast_to(query, key.shape)[seen], place[seen]] = True
    if made("0 instead of −inf outside the window"):
        full = _softmax(np.where(visible, scores, 0), made=made)
    elif made("softmax before the window"):
        full = np.where(visible, _softmax(scores, made=made), 0)
    elif made("softmax over the queries"):
        full = _softmax(np.where(visible, scores, -np.inf), axis=-2, made=made)
    else:
        full = None
    if full is None:
        chosen = np.take_along_axis(scores, band, axis=-1)  # (..., T, R)
        counted = made("zeros beyond the ends counted") or made("zeros beyond the ends counted, then hidden")
        chosen = np.where(seen, chosen, np.where(inside, -np.inf, 0) if counted else -np.inf)
        weights = np.ones_like(chosen) * seen if made("no softmax, all alike") else _softmax(chosen, made=made)
        if made("no softmax, all alike"):
            weights = weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1)
    else:
        weights = np.where(inside, np.take_along_axis(full, band, axis=-1), 0)
    values = k if made("keys in place of the values") else v
    used = np.where(inside | seen, weights, 0)
    out = np.einsum("...tr,...trk->...tk", used, values[..., place, :])
    if made("0 instead of −inf outside the window"):
        out = full @ values
    if made("zeros beyond the ends counted, then hidden"):
        weights = used
    if made("scores in place of the weights"):
        return out, np.where(visible, scores, -np.inf)
    if made("band of scores in place of the weights"):
        return out, np.where(seen, np.take_along_axis(scores, band, axis=-1), -np.inf)
    if made("weights as (T, T)"):
        weights = full if full is not None else _spread(used, key, T)
    if made("columns in reverse order"):
        weights = weights[..., ::-1]
    if made("columns from the first key there is"):
        first = np.minimum(np.argmax(inside, axis=-1)[:, None] + np.arange(key.shape[1]), key.shape[1])
        padded = np.concatenate([weights, np.zeros_like(weights[..., :1])], axis=-1)
        weights = np.take_along_axis(padded, np.broadcast_to(first, weights.shape), axis=-1)
    return out, weights


def _spread(band, key, T):
    """The band (..., T, R), whose columns are the keys `key` (T, R), as an array (..., T, T)."""
    full = np.zeros((*band.shape[:-1], T))
    for t in range(T):
        for j, s in enumerate(key[t]):
            if 0 <= s < T:
                full[..., t, s] += band[..., t, j]
    return full


WINDOW_ATTENTION = Exercise(
    F.window_attention,
    (Result("out", "... T K_v"), Result("weights", "... T R")),
    _window_cases,
    {
        "no 1/√d_k": "The scores are not scaled: the factor 1/√d_k (1/sqrt(K)) is missing.",
        "1/d_k instead of 1/√d_k": (
            "The scores are divided by d_k instead of √d_k: the square root is missing, or the scale is there twice."
        ),
        "multiplied by √d_k": "The scores are multiplied by √d_k (sqrt(K)) where they have to be divided by it.",
        "√ of the values' size": (
            "The scale is 1/√d_v, with the size of the values. A score is a product of query and key: 1/√d_k, "
            "q.shape[-1]."
        ),
        "causal ignored": (
            "`causal` is ignored: with causal=True it still looks into the future. Then the keys are t − window … t, "
            "and the band has window + 1 columns."
        ),
        "always causal": (
            "It never looks at the keys behind the query, as if causal were True always. By default the window is open "
            "to both sides, |t − s| ≤ window."
        ),
        "looks ahead instead of back": (
            "With causal=True it sees t … t + window, the future instead of the past: the inequality is the wrong way "
            "round. Causal is s ≤ t."
        ),
        "own position hidden": (
            "A query does not see its own position, with or without causal. The distance |t − s| = 0 is in the window."
        ),
        "the token itself hidden": (
            "With causal=True the token itself is hidden, s < t, and the first one sees nothing. Causal is s ≤ t."
        ),
        "columns of the future kept": (
            "With causal=True the weights still have 2 · window + 1 columns, with zeros for the future. The band then "
            "has window + 1 columns, the last of them the token itself."
        ),
        "first key of the window left out": (
            "In the past the window is one key too short: the key s = t − window, at the distance `window`, is left "
            "out. Off by one."
        ),
        "last key of the window left out": (
            "In the future the window is one key too short: the key s = t + window is left out. A slice or a range "
            "ends before its end, so that has to be t + window + 1."
        ),
        "window one too small": (
            "The window is one too small: |t − s| < window instead of |t − s| ≤ window. The key at the distance "
            "`window` itself is seen."
        ),
        "window one too large": (
            "The window is one too large: |t − s| ≤ window + 1 instead of |t − s| ≤ window. Off by one."
        ),
        "window taken for the whole width": (
            "`window` is taken for the number of keys in all. It is the distance on each side: 2 · window + 1 keys, or "
            "window + 1 if causal."
        ),
        "window not cut to T − 1": (
            "A window beyond T − 1 counts as T − 1, since no key is further away: the band has at most 2 T − 1 "
            "columns, T if causal. Here it has columns for distances that do not exist."
        ),
        "zeros beyond the ends counted": (
            "The zeros that stand for keys before the start and after the end take part in the softmax: a score of 0 "
            "is exp(0) = 1 in the sum. Where there is no key the score is −inf."
        ),
        "zeros beyond the ends counted, then hidden": (
            "Where there is no key the weight is set to 0 after the softmax, but its exp(0) = 1 is still in the sum: "
            "the weights at both ends add to less than 1. Set the score to −inf before the softmax."
        ),
        "0 instead of −inf outside the window": (
            "The scores outside the window are set to 0 instead of −inf: a score of 0 still has the weight exp(0) = 1 "
            "in the sum, and those keys are seen."
        ),
        "softmax before the window": (
            "The softmax runs over all keys and the window is cut out of the weights afterwards: they are not "
            "normalised, a row adds to less than 1. Hide first (−inf), then softmax."
        ),
        "softmax over the queries": (
            "The softmax runs over the queries instead of the keys, axis −2 instead of −1: the weights of a query do "
            "not add to 1."
        ),
        "not divided by the sum": (
            "The exponentials are not divided by their sum: the softmax is not normalised and the weights of a query "
            "do not add to 1."
        ),
        "no softmax, all alike": (
            "The scores play no part: every key in the window has the same weight. A = softmax of the scores."
        ),
        "largest score not subtracted": (
            "The largest score is not subtracted before the exponential: exp of a large score overflows, and inf/inf "
            "is NaN."
        ),
        "wraps round": (
            "Beyond the ends it goes on at the other end, as np.roll and negative indices do: the first tokens see the "
            "last ones. There is no key there, weight 0."
        ),
        "end tokens repeated": (
            "Beyond the ends the first or last token is seen again and again, as with np.clip on the index or padding "
            "of mode “edge”. There is no key there, weight 0."
        ),
        "keys in place of the values": "The weights multiply the keys K instead of the values V: out = A V.",
        "weights as (T, T)": (
            "The weights are returned as (T, T), one column a key. They are to be the band (T, R): column j is the key "
            "t − window + j."
        ),
        "scores in place of the weights": (
            "The second result is the scores, (T, T), before the softmax. It is the weights, as the band (T, R)."
        ),
        "band of scores in place of the weights": (
            "The second result is the scores, before the softmax. It is the weights, which add to 1 in each row."
        ),
        "columns in reverse order": (
            "The columns of the weights are in reverse order: column j is the key t − window + j, the farthest in the "
            "past first."
        ),
        "columns from the first key there is": (
            "Near the start the columns begin with the first key there is. Column j is always the key t − window + j, "
            "also where there is none and the weight is 0."
        ),
    },
    _wrong_window_attention,
    (
        "Which keys has query t, which column of the weights is which of them, and what is in a column without a key?",
        "A = softmax(Q Kᵀ / √d_k) over |t − s| ≤ window (and s ≤ t if causal), weights[t, j] = A[t, t − window + j]",
        "notebook 10, “A window”; scores of −inf where there is no key. Right first: all (T, T) scores, then cut out "
        "the band.",
    ),
    difficulty=3,
    section="Vaswani et al. 2017, §4",
    chapter="Long sequences",
    place=5,
)


def _window_backward_cases(rng):
    cases = []
    for forward in _window_cases(rng):
        if "10,000" in forward.label:  # all weights 0 or 1 there: no gradient
            continue
        q, k, v, window = forward.arguments
        out, weights = F.window_attention(q, k, v, window, **forward.options)
        arguments = rng.normal(size=out.shape), q, k, v, weights, window
        cases.append(Case(forward.label, arguments, forward.options, forward.sizes))
    return cases


def _wrong_window_attention_backward(made, dout, q, k, v, weights, window, causal=False):
    T, R = q.shape[-2], weights.shape[-1]
    cut = min(window, T - 1)
    if made("causal ignored") and causal and cut:
        raise IndexError
    if made("window not cut to T − 1") and window > cut:
        raise IndexError
    if made("softmax taken of the weights"):
        key = _band(T, cut, 0 if causal else cut)
        weights = _softmax(np.where((key >= 0) & (key < T), weights, -np.inf))
    key = np.arange(T)[:, None] - cut + np.arange(R)  # (T, R)
    if made("columns in reverse order"):
        key = key[:, ::-1]
    if made("columns counted from the query on"):
        key = key + cut
    if made("columns counted from 0"):
        key = np.broadcast_to(np.arange(R), key.shape)
    if made("band one column off"):
        key = key + 1
    if made("band taken for weights (T, T)"):
        if R != T:
            raise ValueError
        key = np.broadcast_to(np.arange(T), key.shape)
    weights = _spread(weights, key, T)  # (..., T, T)
    dscores = _dscores(made, dout @ v.swapaxes(-1, -2), weights, R)
    scaled = dscores * _scale(made, q.shape[-1], v.shape[-1])
    before = dscores if made("scale only in dQ") else scaled
    dq = (dscores if made("scale only in dK") else scaled) @ (q if made("Q and K swapped") else k)
    transposed = before if made("dscores not transposed") else before.swapaxes(-1, -2)
    dk = transposed @ (k if made("Q and K swapped") else q)
    spread = weights if made("A not transposed") else weights.swapaxes(-1, -2)
    if made("dscores in place of A in dV"):
        spread = scaled.swapaxes(-1, -2)
    dv = spread @ dout
    if made("overwritten instead of added") or made("only the token's own query"):
        last = np.arange(T) if made("only the token's own query") else np.minimum(np.arange(T) + R - 1 - cut, T - 1)
        dk = before[..., last, np.arange(T)][..., None] * q[..., last, :]
        dv = weights[..., last, np.arange(T)][..., None] * dout[..., last, :]
    if made("mean over the window"):
        dk, dv = dk / R, dv / R
    return dq, dk, dv


def _dscores(made, dweights, weights, length):
    """The backward of softmax: A · (dA − Σ dA · A)."""
    total = (dweights * weights).sum(axis=-1, keepdims=True)
    if made("sum of the softmax missing"):
        total = 0
    if made("sum of the softmax added"):
        total = -total
    if made("mean instead of the sum"):
        total = total / length
    if made("sum not weighted by A"):
        total = (dweights * (weights > 0)).sum(axis=-1, keepdims=True)
    if made("only the diagonal of the softmax"):
        return dweights * weights * (1 - weights)
    if made("softmax left out"):
        return dweights * (weights > 0)
    if made("A missing before the bracket"):
        return (dweights - total) * (weights > 0)
    if made("sum not multiplied by A"):
        return (dweights * weights - total) * (weights > 0)
    return weights * (dweights - total)


WINDOW_ATTENTION_BACKWARD = Exercise(
    F.window_attention_backward,
    (Result("dq", "... T K"), Result("dk", "... T K"), Result("dv", "... T K_v")),
    _window_backward_cases,
    {
        "no 1/√d_k": (
            "The scale is missing: the scores were divided by √d_k (sqrt(K)), so dscores has the factor 1/√d_k too, in "
            "dQ and in dK."
        ),
        "1/d_k instead of 1/√d_k": (
            "The factor is 1/d_k instead of 1/√d_k: the square root is missing, or the scale is there twice."
        ),
        "multiplied by √d_k": "dscores is multiplied by √d_k (sqrt(K)) where it has to be divided by it.",
        "√ of the values' size": (
            "The scale is 1/√d_v, with the size of the values. The scores were divided by √d_k, q.shape[-1]."
        ),
        "scale only in dQ": (
            "The factor 1/√d_k is in dQ and missing in dK. It belongs to dscores, from which both are made."
        ),
        "scale only in dK": (
            "The factor 1/√d_k is in dK and missing in dQ. It belongs to dscores, from which both are made."
        ),
        "sum of the softmax missing": (
            "The backward of the softmax is A · (dA − Σ dA · A) along the keys; here the sum is missing."
        ),
        "sum of the softmax added": (
            "In the backward of the softmax the sum Σ dA · A is added where it has to be subtracted: a sign is wrong."
        ),
        "mean instead of the sum": (
            "In the backward of the softmax Σ dA · A is a sum over the keys; here it is a mean over the R columns."
        ),
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
        "softmax taken of the weights": (
            "The weights are put through softmax once more, as if they were scores. They are the forward's output."
        ),
        "Q and K swapped": "dQ and dK are made with the wrong partner: dQ = dscores K, dK = dscoresᵀ Q.",
        "dscores not transposed": (
            "dK is dscores Q; it is dscoresᵀ Q. A row of dscores is a query, a row of dK is a key: key s gathers from "
            "all queries that saw it."
        ),
        "A not transposed": (
            "dV is A dout; it is Aᵀ dout. A row of A is a query, a row of dV is a key: key s gathers from all queries "
            "that saw it."
        ),
        "dscores in place of A in dV": "dV is made with dscoresᵀ instead of Aᵀ: out = A V, so dV = Aᵀ dout.",
        "overwritten instead of added": (
            "In dK and dV a query overwrites what the queries before it gave, `=` instead of `+=` (or an index that "
            "comes up twice). A key was seen by many queries, and its gradients add; np.add.at counts repeated indices."
        ),
        "only the token's own query": (
            "dK and dV gather from the query at the key's own place only. A key was seen by every query at a distance "
            "of at most `window`, and their gradients add."
        ),
        "mean over the window": "dK and dV are divided by the R columns of the window. They are sums over queries.",
        "columns in reverse order": (
            "The columns of the weights are read in reverse order. Column j is the key t − window + j, the farthest in "
            "the past first."
        ),
        "columns counted from the query on": (
            "Column j is read as the key t + j. It is t − window + j: the window begins `window` keys before the query."
        ),
        "band taken for weights (T, T)": (
            "The weights are used as if they were (T, T), one column a key. They are the band (T, R): column j is the "
            "key t − window + j."
        ),
        "columns counted from 0": (
            "Column j is read as key j. It is the key t − window + j: the band moves with the query."
        ),
        "band one column off": "The band is read one column off: column j is the key t − window + j, without + 1.",
        "causal ignored": (
            "`causal` is ignored: it looks for 2 · window + 1 columns in weights that have window + 1 if causal."
        ),
        "window not cut to T − 1": (
            "A window beyond T − 1 counts as T − 1: the weights have at most 2 T − 1 columns, T if causal. Here it "
            "looks for columns that are not there."
        ),
    },
    _wrong_window_attention_backward,
    (
        "Which queries saw key s, and in which column of their rows?",
        "dV = Aᵀ dout, dA = dout Vᵀ, dscores = A · (dA − Σ dA · A) / √d_k, dQ = dscores K, dK = dscoresᵀ Q, in the "
        "band only",
        "notebook 10, “A window”, and 06 for attention's backward. weights[t, j] belongs to the key t − window + j.",
    ),
    difficulty=3,
    section="Vaswani et al. 2017, §4",
    chapter="Long sequences",
    place=6,
)


EXERCISES = [WINDOW_ATTENTION, WINDOW_ATTENTION_BACKWARD]
