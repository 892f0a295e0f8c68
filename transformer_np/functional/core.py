"""The mathematics of the lecture, from top to bottom. Each forward function is followed by its backward function.

A row is a token, and matrices multiply from the right as in the lecture: y = x W + b. The letters in the shapes:

    B batch · T target (query) length · S source (key) length · D d_model · H heads · K d_k · F d_ff · V vocabulary

A backward function takes `dout` (or `dy`), the gradient of the loss with respect to the forward's output, and then the
arrays that it needs. It returns the gradients in the order of the forward's differentiable arguments; `dx` has the
shape of x. `@shapes` states the shape of each array and checks it at every call.
"""

import numpy as np

from ..masks import hide
from ..support.checks import (
    MOST,
    as_array,
    as_ids,
    as_masks,
    as_rng,
    check_at_least,
    check_axis,
    check_number,
    floating_dtype,
    is_masked_array,
)
from ..support.shapes import shapes
from .fast import max_along, product, row_means, sum_along, sum_by_id, sum_of_rows

# --- linear ---------------------------------------------------------------------------------------------------------


@shapes(x="... D_in", w="D_in D_out", b="D_out")
def linear(x, w, b=None):
    """Multiply every row by the same matrix and add the bias: y = x W + b.

    x (..., D_in), w (D_in, D_out), b (D_out,) or None  ->  y (..., D_out)
    """
    rows = x.reshape(-1, x.shape[-1])  # one large matrix product is much faster than a batch of small ones
    y = product(rows, w)
    if b is not None:
        y += b
    return y.reshape(*x.shape[:-1], w.shape[1])


@shapes(dy="... D_out", x="... D_in", w="D_in D_out")
def linear_backward(dy, x, w):
    """Backward of linear.

    dx = dy Wᵀ,    dW = xᵀ dy,    db = Σ dy over the rows: every row used W and b, so their gradients add up.

    dy (..., D_out)  ->  dx (..., D_in), dw (D_in, D_out), db (D_out,)
    """
    dy_rows, rows = dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1])
    dx = (dy_rows @ w.T).reshape(x.shape)
    return dx, rows.T @ dy_rows, sum_of_rows(dy_rows)


# --- embedding ------------------------------------------------------------------------------------------------------


@shapes(table="V D")
def embedding(ids, table):
    """Look up the row of each id: y = table[ids], the product of one-hot rows and the table.

    ids (...) whole numbers in 0 … V − 1, table (V, D)  ->  y (..., D)
    """
    return table[as_ids(ids, len(table))]


@shapes(dy="... D")
def embedding_backward(dy, ids, num_embeddings):
    """Backward of embedding: the gradient of a table row is the sum of dy over all positions with its id.

    dy (..., D), ids (...)  ->  dtable (num_embeddings, D)
    """
    check_at_least("num_embeddings", num_embeddings, 1)
    ids = as_ids(ids, num_embeddings)
    if dy.shape[:-1] != ids.shape:
        raise ValueError(f"embedding_backward: dy {dy.shape} must have the shape of ids {ids.shape} and one axis more")
    return sum_by_id(dy.reshape(-1, dy.shape[-1]), ids.reshape(-1), num_embeddings)


# --- positions -------------------------------------------------------------------------------------------------------


def sinusoidal_encoding(length, d_model, dtype=np.float32):
    """Sinusoidal positional encoding (Vaswani et al. 2017, §3.5).

        PE(pos, 2i) = sin(pos / 10000^(2i/d_model)),    PE(pos, 2i+1) = cos(pos / 10000^(2i/d_model))

    i counts pairs of dimensions. The wavelengths grow geometrically from 2π towards 10000·2π positions. If d_model is
    odd, the last dimension is a sine.

    ->  (length, d_model) of the given dtype
    """
    check_at_least("length", length, 1)
    check_at_least("d_model", d_model, 1)
    dtype = floating_dtype("dtype", dtype)
    position = np.arange(length)[:, None]  # (length, 1)
    pair = np.arange(0, d_model, 2)  # 2i
    angle = position / 10000.0 ** (pair / d_model)  # (length, ⌈D/2⌉)
    encoding = np.empty((length, d_model), dtype)
    encoding[:, 0::2] = np.sin(angle)
    encoding[:, 1::2] = np.cos(angle[:, : d_model // 2])
    return encoding


# --- softmax --------------------------------------------------------------------------------------------------------


@shapes(x="...")
def softmax(x, axis=-1):
    """Turn scores into positive weights that add up to 1 along `axis`: y = exp(x) / Σ exp(x).

    x (...)  ->  y (...)

    The largest entry is subtracted first: y stays the same, and exp cannot overflow. An entry of −inf gets weight 0.
    If all entries are −inf, all weights are 0.
    """
    check_axis(axis, x.ndim)
    largest = max_along(x, axis)
    y = x - np.maximum(largest, np.finfo(x.dtype).min)  # not −inf − (−inf), which is NaN
    np.exp(y, out=y)
    total = sum_along(y, axis)
    y /= np.where(total == 0, 1, total)
    return y


@shapes(dy="...", y="...")
def softmax_backward(dy, y, axis=-1):
    """Backward of softmax.

    ∂yᵢ/∂xⱼ = yᵢ (δᵢⱼ − yⱼ), so every x affects every y:    dx = y · (dy − Σ dy · y)

    dy (...), y (...) the forward's output  ->  dx (...)
    """
    check_axis(axis, y.ndim)
    dx = dy - np.expand_dims(np.vecdot(dy, y, axis=axis), axis)
    dx *= y
    return dx


# --- activation ------------------------------------------------------------------------------------------------------


@shapes(x="...")
def relu(x):
    """max(0, x), element by element.

    x (...)  ->  y (...)
    """
    return np.maximum(x, 0)


@shapes(dy="...", x="...")
def relu_backward(dy, x):
    """Backward of relu: dy where x > 0, else 0. At x = 0 the gradient is taken as 0.

    dy (...), x (...) the forward's input  ->  dx (...)

    The forward's output may be passed instead of x: it is positive in the same places.
    """
    return dy * (x > 0)


# --- normalisation and dropout --------------------------------------------------------------------------------------


@shapes(x="... D", gamma="D", beta="D")
def layer_norm(x, gamma, beta, eps=1e-5):
    """Normalise each row to mean 0 and variance 1, then scale and shift (Ba et al. 2016).

        y = γ · x̂ + β,    x̂ = (x − μ) / √(σ² + ε),    μ, σ² over the last axis, σ² with 1/D

    x (..., D), gamma (D,), beta (D,)  ->  y (..., D), x_hat (..., D), inv_std (..., 1)
    The backward pass needs the last two.
    """
    check_number("eps", eps, "[0, ∞)")
    x_hat = x - row_means(x)  # centred first
    variance = np.vecdot(x_hat, x_hat)[..., None] / x.shape[-1]  # (..., 1)
    inv_std = 1 / np.sqrt(variance + eps)
    x_hat *= inv_std
    y = x_hat * gamma
    y += beta
    return y, x_hat, inv_std


@shapes(dy="... D", x_hat="... D", inv_std="... 1", gamma="D")
def layer_norm_backward(dy, x_hat, inv_std, gamma):
    """Backward of layer_norm.

    Every row used γ and β, so their gradients add up over the rows. x affects y in three ways: directly, through μ and
    through σ². The two means that are subtracted come from μ and σ².

        dx = (dx̂ − mean(dx̂) − x̂ · mean(dx̂ · x̂)) / √(σ² + ε),    dx̂ = dy · γ

    dy (..., D)  ->  dx (..., D), dgamma (D,), dbeta (D,)
    """
    dgamma = sum_of_rows(dy * x_hat)
    dbeta = sum_of_rows(dy)
    dx = dy * gamma  # dx̂
    through_variance = np.vecdot(dx, x_hat)[..., None] / x_hat.shape[-1]  # (..., 1)
    dx -= row_means(dx)
    dx -= x_hat * through_variance
    dx *= inv_std
    return dx, dgamma, dbeta


@shapes(x="...")
def dropout(x, p, rng):
    """Set each entry to 0 with probability p, independently of the others, and scale the rest by 1/(1 − p), which
    keeps the expected value (Srivastava et al. 2014).

    x (...), p in [0, 1), rng a numpy.random.Generator or an int seed  ->  y (...), keep (...) Boolean
    """
    check_number("p", p, "[0, 1)")
    keep = as_rng(rng).random(x.shape, dtype=np.float32) >= p
    y = x * keep
    y *= 1 / (1 - p)
    return y, keep


@shapes(dy="...")
def dropout_backward(dy, keep, p):
    """Backward of dropout: the gradient passes where x passed, with the same scale.

    dy (...), keep (...) Boolean, the forward's second output, p as in the forward  ->  dx (...)
    """
    check_number("p", p, "[0, 1)")
    if not isinstance(keep, np.ndarray) or keep.dtype != bool or is_masked_array(keep):
        raise TypeError(f"dropout_backward: keep must be a Boolean array, got {getattr(keep, 'dtype', type(keep))}")
    if np.shape(keep) != dy.shape:
        raise ValueError(f"dropout_backward: keep {np.shape(keep)} must have the shape of dy {dy.shape}")
    dx = dy * keep
    dx *= 1 / (1 - p)
    return dx


# --- attention ------------------------------------------------------------------------------------------------------


@shapes(q="... T K", k="... S K")
def attention_scores(q, k, mask=None):
    """Score how well each query fits each key: Q Kᵀ / √d_k, with the mask applied (Vaswani et al. 2017, §3.2.1).

    q (..., T, K), k (..., S, K), mask broadcastable to (..., T, S)  ->  scores (..., T, S)

    A Boolean mask hides: where it is True, the score becomes −inf. A float mask is the lecture's M and is added. In a
    tuple, all masks are applied. Dividing by √d_k keeps the variance of the scores at 1 if q and k have variance 1,
    whatever their length.
    """
    scores = q @ k.swapaxes(-1, -2)  # (..., T, S)
    scores *= q.shape[-1] ** -0.5
    hide(scores, as_masks(mask, scores.shape))
    return scores


@shapes(q="... T K", k="... S K", v="... S K_v")
def scaled_dot_product_attention(q, k, v, mask=None):
    """Average the values for each query, weighted by how well the query fits their keys (Vaswani et al. 2017, eq. 1).

        out = A V,    A = softmax(Q Kᵀ / √d_k + M)

    q (..., T, K), k (..., S, K), v (..., S, K_v), mask broadcastable to (..., T, S)
    ->  out (..., T, K_v), weights A (..., T, S)

    The mask is Boolean (True hides) or float (added), or a tuple of such masks. If all keys are hidden from a query,
    its weights and its output are 0. tiled_attention computes the same output without the weights, for long sequences.
    """
    weights = softmax(attention_scores(q, k, mask))  # (..., T, S)
    return weights @ v, weights


@shapes(dout="... T K_v", q="... T K", k="... S K", v="... S K_v", weights="... T S")
def scaled_dot_product_attention_backward(dout, q, k, v, weights):
    """Backward of scaled_dot_product_attention. The mask is not needed: the weight of a hidden key is 0.

        dV = Aᵀ dout,    dA = dout Vᵀ,    dscores = softmax_backward(dA) / √d_k,    dQ = dscores K,    dK = dscoresᵀ Q

    dout (..., T, K_v)  ->  dq (..., T, K), dk (..., S, K), dv (..., S, K_v)
    """
    dv = weights.swapaxes(-1, -2) @ dout  # (..., S, K_v)
    dweights = dout @ v.swapaxes(-1, -2)  # (..., T, S)
    dscores = softmax_backward(dweights, weights)  # (..., T, S)
    dscores *= q.shape[-1] ** -0.5
    return dscores @ k, dscores.swapaxes(-1, -2) @ q, dv


# --- heads ----------------------------------------------------------------------------------------------------------


@shapes(x="B T D")
def split_heads(x, num_heads):
    """Cut the features into heads: (B, T, D) -> (B, H, T, K) with D = H·K. The result is a view of x."""
    B, T, D = x.shape
    check_at_least("num_heads", num_heads, 1)
    if D % num_heads:
        raise ValueError(f"num_heads must divide the last axis of x: got {num_heads} heads for D = {D}")
    return x.reshape(B, T, num_heads, D // num_heads).transpose(0, 2, 1, 3)


@shapes(x="B H T K")
def merge_heads(x):
    """Lay the heads side by side again, the inverse of split_heads: (B, H, T, K) -> (B, T, H·K).

    Both functions only move numbers, so each is the backward of the other.
    """
    B, H, T, K = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, H * K)


# --- feed-forward ---------------------------------------------------------------------------------------------------


@shapes(x="... D", w1="D F", b1="F", w2="F D_out", b2="D_out")
def feed_forward(x, w1, b1, w2, b2):
    """Position-wise feed-forward network (Vaswani et al. 2017, eq. 2): FFN(x) = max(0, x W₁ + b₁) W₂ + b₂.

    x (..., D), w1 (D, F), b1 (F,), w2 (F, D_out), b2 (D_out,)  ->  y (..., D_out), hidden (..., F) after the ReLU
    """
    hidden = linear(x, w1, b1)  # (..., F)
    hidden = relu(hidden)
    return linear(hidden, w2, b2), hidden


@shapes(dy="... D_out", x="... D", hidden="... F", w1="D F", w2="F D_out")
def feed_forward_backward(dy, x, hidden, w1, w2):
    """Backward of feed_forward: its three steps in reverse.

    dy (..., D_out)  ->  dx (..., D), dw1 (D, F), db1 (F,), dw2 (F, D_out), db2 (D_out,)
    """
    dhidden, dw2, db2 = linear_backward(dy, hidden, w2)  # (..., F)
    dhidden = relu_backward(dhidden, hidden)  # the ReLU's output is positive where its input was
    dx, dw1, db1 = linear_backward(dhidden, x, w1)
    return dx, dw1, db1, dw2, db2


# --- loss -----------------------------------------------------------------------------------------------------------


@shapes(logits="... V")
def cross_entropy(logits, targets, ignore_index=None, label_smoothing=0.0):
    """Mean surprise at the target class, in nats per counted target: −Σ q log p / count,  p = softmax(logits).

    q is 1 at the target and 0 elsewhere. With label smoothing ε it is 1 − ε + ε/V at the target and ε/V elsewhere
    (Szegedy et al. 2016). Rows whose target is `ignore_index` do not count; if no row counts, the loss is 0. Logits may
    be of any size: the loss is computed without exp(x) or log 0.

    logits (..., V), targets (...) whole numbers  ->  loss (a Python float), probs (..., V)
    """
    rows, targets, counts = _rows_and_targets(logits, targets, ignore_index, label_smoothing)
    shifted = rows - rows.max(axis=-1, keepdims=True)  # (N, V)
    probs = np.exp(shifted)
    total = probs.sum(axis=-1, keepdims=True)  # (N, 1)
    probs /= total
    log_total = np.log(total[counts, 0])
    surprise = log_total - shifted[counts, targets[counts]]  # −log p(target)
    if label_smoothing:
        mean_surprise = log_total - row_means(shifted)[counts, 0]  # −mean of log p over the classes
        surprise = (1 - label_smoothing) * surprise + label_smoothing * mean_surprise
    loss = float(surprise.mean()) if len(surprise) else 0.0
    return loss, probs.reshape(logits.shape)


@shapes(probs="... V")
def cross_entropy_backward(probs, targets, ignore_index=None, label_smoothing=0.0, dloss=1.0):
    """Backward of cross_entropy: softmax and logarithm combine to dlogits = dloss · (p − q) / count.

    probs (..., V) the forward's second output, dloss a number  ->  dlogits (..., V), 0 in rows that do not count
    """
    check_number("dloss", dloss)
    rows, targets, counts = _rows_and_targets(probs, targets, ignore_index, label_smoothing)
    dlogits = rows - label_smoothing / rows.shape[-1]  # (N, V)
    dlogits[np.arange(len(rows)), np.where(counts, targets, 0)] -= 1 - label_smoothing
    dlogits *= float(dloss) / max(1, int(counts.sum()))
    dlogits[~counts] = 0
    return dlogits.reshape(probs.shape)


def _rows_and_targets(logits, targets, ignore_index, label_smoothing):
    """Logits as rows (N, V), one target per row (N,), and which rows count (N,), Boolean."""
    check_number("label_smoothing", label_smoothing, "[0, 1]")
    if ignore_index is not None:
        check_at_least("ignore_index", ignore_index, -MOST)
    targets = as_array(targets, "targets", "whole numbers")
    if targets.shape != logits.shape[:-1]:
        wanted = f"shape {logits.shape[:-1]}, one for each row of logits"
        raise ValueError(f"targets must have {wanted}; got {targets.shape}")
    counts = np.ones(targets.shape, bool) if ignore_index is None else targets != ignore_index
    if counts.any():
        as_ids(targets if ignore_index is None else targets[counts], logits.shape[-1], "targets")
    elif targets.dtype.kind not in "iu":
        raise TypeError(f"targets must be whole numbers, got {targets.dtype}")
    return logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), counts.reshape(-1)
