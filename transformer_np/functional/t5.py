"""The functions of T5 (Raffel et al. 2020; v1.1: Shazeer 2020): RMSNorm, a learned bias for each distance instead of
positions, attention without 1/√d_k, a gated feed-forward network. ALiBi's bias, which is fixed, is here as well."""

import numpy as np

from ..masks import hide
from ..support.checks import as_ids, as_masks, check_at_least, check_flag, check_number, floating_dtype
from ..support.shapes import shapes
from .activations import gelu, gelu_backward, silu, silu_backward
from .core import embedding_backward, linear, linear_backward, softmax, softmax_backward
from .fast import sum_of_rows

# --- normalisation ---------------------------------------------------------------------------------------------------


@shapes(x="... D", gamma="D")
def rms_norm(x, gamma, eps=1e-6):
    """Scale each row to a mean square of 1, then by γ: layer_norm without centring and without β (Zhang & Sennrich
    2019).

        y = γ · x̂,    x̂ = x / √(mean(x²) + ε),    the mean over the last axis

    x (..., D), gamma (D,)  ->  y (..., D), x_hat (..., D), inv_rms (..., 1)
    The backward pass needs the last two.
    """
    check_number("eps", eps, "[0, ∞)")
    mean_square = np.vecdot(x, x)[..., None] / x.shape[-1]  # (..., 1)
    inv_rms = 1 / np.sqrt(mean_square + eps)
    x_hat = x * inv_rms
    return x_hat * gamma, x_hat, inv_rms


@shapes(dy="... D", x_hat="... D", inv_rms="... 1", gamma="D")
def rms_norm_backward(dy, x_hat, inv_rms, gamma):
    """Backward of rms_norm: layer_norm_backward without the path through the mean.

        dx = (dx̂ − x̂ · mean(dx̂ · x̂)) / √(mean(x²) + ε),    dx̂ = dy · γ

    dy (..., D)  ->  dx (..., D), dgamma (D,)
    """
    dgamma = sum_of_rows(dy * x_hat)
    dx = dy * gamma  # dx̂
    dx -= x_hat * (np.vecdot(dx, x_hat)[..., None] / x_hat.shape[-1])
    dx *= inv_rms
    return dx, dgamma


# --- attention with a learned bias for each distance ----------------------------------------------------------------


def relative_position_buckets(T, S=None, num_buckets=32, max_distance=128, bidirectional=True):
    """Sort each distance from query to key into one of a few buckets (Raffel et al. 2020, §2.1).

    Half of the buckets hold one distance each, 0, 1, 2, …; the others widen with the logarithm of the distance n,

        bucket = N/2 + ⌊log(n / (N/2)) / log(max_distance / (N/2)) · N/2⌋,    N buckets for this direction

    and the last bucket holds all distances from max_distance on. If bidirectional, half of the buckets are for the
    query itself and the keys before it, the other half for the keys after it. Otherwise, in a decoder, the keys after
    the query share its own bucket 0: the causal mask hides them.

    ->  buckets (T, S) in 0 … num_buckets − 1, aligned to the end like causal_mask; S is T unless given
    """
    S = T if S is None else S
    check_at_least("T", T, 1)
    check_at_least("S", S, T)
    check_flag("bidirectional", bidirectional)
    directions = 2 if bidirectional else 1
    check_at_least("num_buckets", num_buckets, 2 * directions)
    N = num_buckets // directions
    half = N // 2
    check_at_least("max_distance", max_distance, 1)
    if max_distance <= half:
        raise ValueError(f"max_distance must be more than {half}, the distances with a bucket each; got {max_distance}")
    before = np.arange(S - T, S)[:, None] - np.arange(S)  # (T, S), how far the key stands before the query
    n = np.abs(before) if bidirectional else np.maximum(before, 0)
    # in float32 like the original: if n is exactly at a boundary, float64 would round to the other side
    growth = np.log(np.maximum(n, 1).astype(np.float32) / half) / np.float32(np.log(max_distance / half))
    far = np.minimum(half + (growth * (N - half)).astype(int), N - 1)
    buckets = np.where(n < half, n, far)
    return buckets + N * (before < 0) if bidirectional else buckets


@shapes(table="R H")
def relative_position_bias(table, buckets):
    """The number that each head adds to the score of a key at some distance: table[buckets] (Raffel et al. 2020, §2.1).

    table (R, H), one number per bucket and head, buckets (T, S)  ->  bias (H, T, S)
    """
    buckets = as_ids(buckets, len(table), "buckets")
    if buckets.ndim != 2:
        raise ValueError(f"buckets must have the axes (T, S), got shape {buckets.shape}")
    return np.ascontiguousarray(np.moveaxis(table[buckets], -1, 0))


@shapes(dbias="H T S")
def relative_position_bias_backward(dbias, buckets, num_buckets):
    """Backward of relative_position_bias: the gradient of a bucket is the sum over all pairs in that bucket.

    dbias (H, T, S), buckets (T, S)  ->  dtable (num_buckets, H)
    """
    check_at_least("num_buckets", num_buckets, 1)
    buckets = as_ids(buckets, num_buckets, "buckets")
    if buckets.shape != dbias.shape[1:]:
        raise ValueError(f"buckets must have the shape {dbias.shape[1:]} of dbias's last two axes, got {buckets.shape}")
    return embedding_backward(np.ascontiguousarray(np.moveaxis(dbias, 0, -1)), buckets, num_buckets)


def alibi_bias(num_heads, T, S=None, dtype=np.float32):
    """A fixed bias: each head lowers the score of a key by its distance times a slope, ALiBi (Press et al. 2022).

        bias_hts = −m_h · |t − s|,    m_h = 2^(−8 (h + 1)/H)

    If H is not a power of two, the first slopes are those of the power below, and the others every second slope of the
    power above.

    ->  bias (H, T, S), a float mask for any attention, aligned to the end like causal_mask; S is T unless given
    """
    S = T if S is None else S
    check_at_least("num_heads", num_heads, 1)
    check_at_least("T", T, 1)
    check_at_least("S", S, T)
    dtype = floating_dtype("dtype", dtype)
    power = 1 << (int(num_heads).bit_length() - 1)  # the power of two below H, or H itself
    exponents = [*np.arange(1, power + 1) / power, *np.arange(1, 2 * power, 2) / (2 * power)][:num_heads]
    slopes = 2.0 ** (-8 * np.array(exponents, dtype))  # (H,)
    distances = np.abs(np.arange(S - T, S)[:, None] - np.arange(S)).astype(dtype)  # (T, S)
    return -slopes[:, None, None] * distances


@shapes(q="B H T K", k="B H S K", bias="H T S")
def unscaled_scores(q, k, bias=None, mask=None):
    """Score how well each query fits each key as in T5: Q Kᵀ + bias, with the mask applied (Raffel et al. 2020, §2.1).

    q (B, H, T, K), k (B, H, S, K), bias (H, T, S) or None, mask broadcastable to (B, H, T, S)  ->  scores (B, H, T, S)
    """
    scores = q @ k.swapaxes(-1, -2)  # (B, H, T, S)
    if bias is not None:
        scores += bias
    hide(scores, as_masks(mask, scores.shape))
    return scores


@shapes(q="B H T K", k="B H S K", v="B H S K_v", bias="H T S")
def unscaled_attention(q, k, v, bias=None, mask=None):
    """Attention as in T5: no 1/√d_k, and a bias on the scores, the same for the whole batch (Raffel et al. 2020, §2.1).

        out = A V,    A = softmax(Q Kᵀ + bias + M)

    q (B, H, T, K), k (B, H, S, K), v (B, H, S, K_v), bias (H, T, S) or None, mask broadcastable to (B, H, T, S)
    ->  out (B, H, T, K_v), weights A (B, H, T, S)

    Training works without the scale because the initial weights include it: W_q starts smaller by 1/√d_k, so the scores
    also start with variance 1, and Adafactor, T5's optimizer, changes a small matrix by small steps.
    """
    weights = softmax(unscaled_scores(q, k, bias, mask))  # (B, H, T, S)
    return weights @ v, weights


@shapes(dout="B H T K_v", q="B H T K", k="B H S K", v="B H S K_v", weights="B H T S")
def unscaled_attention_backward(dout, q, k, v, weights):
    """Backward of unscaled_attention. The bias was added to the scores of every batch row, so its gradients add up.

        dV = Aᵀ dout,    dscores = softmax_backward(dout Vᵀ)
        dQ = dscores K,    dK = dscoresᵀ Q,    dbias = Σ dscores over the batch

    dout (B, H, T, K_v)  ->  dq (B, H, T, K), dk (B, H, S, K), dv (B, H, S, K_v), dbias (H, T, S)
    """
    dv = weights.swapaxes(-1, -2) @ dout  # (B, H, S, K_v)
    dscores = softmax_backward(dout @ v.swapaxes(-1, -2), weights)  # (B, H, T, S)
    return dscores @ k, dscores.swapaxes(-1, -2) @ q, dv, dscores.sum(axis=0)


# --- feed-forward with a gate ----------------------------------------------------------------------------------------


@shapes(x="... D", w_gate="D F", w1="D F", w2="F D_out")
def gated_feed_forward(x, w_gate, w1, w2, activation="gelu_tanh"):
    """Feed-forward network with a gate (Shazeer 2020): FFN(x) = (act(x W_g) · x W₁) W₂.

    x (..., D), w_gate (D, F), w1 (D, F), w2 (F, D_out)  ->  y (..., D_out), gate (..., F) before act, value (..., F)

    activation: "gelu_tanh", GEGLU as in T5 v1.1, or "silu", SwiGLU as in Llama. Instead of only being cut off, each of
    the F features is multiplied by another.
    """
    act, _ = _gate(activation)
    gate, value = linear(x, w_gate), linear(x, w1)  # (..., F)
    return linear(act(gate) * value, w2), gate, value


@shapes(dy="... D_out", x="... D", gate="... F", value="... F", w_gate="D F", w1="D F", w2="F D_out")
def gated_feed_forward_backward(dy, x, gate, value, w_gate, w1, w2, activation="gelu_tanh"):
    """Backward of gated_feed_forward: each factor of the product gets the gradient times the other.

    dy (..., D_out), the forward's activation  ->  dx (..., D), dw_gate (D, F), dw1 (D, F), dw2 (F, D_out)
    """
    act, act_backward = _gate(activation)
    opened = act(gate)  # (..., F)
    dhidden, dw2, _ = linear_backward(dy, opened * value, w2)  # (..., F)
    dx_gate, dw_gate, _ = linear_backward(act_backward(dhidden * value, gate), x, w_gate)
    dx, dw1, _ = linear_backward(dhidden * opened, x, w1)
    dx += dx_gate
    return dx, dw_gate, dw1, dw2


def _gate(activation):
    """The activation of the gate and its backward."""
    if activation == "gelu_tanh":
        return gelu, gelu_backward
    if activation == "silu":
        return silu, silu_backward
    raise ValueError(f'activation must be "gelu_tanh" or "silu", got {activation!r}')
