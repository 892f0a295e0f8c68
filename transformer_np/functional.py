"""The mathematics of the Transformer: pure functions, each forward beside its backward.

A row is a token and matrices multiply from the right, y = x W + b, as in the lecture. The letters in the shapes:

    B batch · T target (query) length · S source (key) length · D d_model · H heads · K d_k · F d_ff · V vocabulary

A backward takes `dout` (or `dy`), the gradient of the loss with respect to the forward's output, then the arrays it
needs by name, and returns the gradients in the order of the forward's differentiable arguments. `dx` has x's shape.
"""

import numpy as np

from .blocked import blocked
from .checks import as_ids, as_masks, check_at_least, check_probability, shapes
from .masks import hide
from .special import erf
from .tiled import TILE, tiled_attention, tiled_attention_backward  # noqa: F401  the same attention, of long sequences

# --- what the formulas share: sums and largest entries --------------------------------------------------------------
# A matrix times a vector of ones is a sum, and BLAS does it several times faster than ndarray.sum.


def _row_means(x):
    """Mean over the last axis, which stays as an axis of length 1."""
    return (x @ np.full(x.shape[-1], 1 / x.shape[-1], x.dtype))[..., None]


def _sums(x, axis):
    """Sum over one axis, which stays as an axis of length 1."""
    if axis in (-1, x.ndim - 1):
        return (x @ np.ones(x.shape[-1], x.dtype))[..., None]
    return x.sum(axis=axis, keepdims=True)


def _sum_of_rows(x):
    """Sum over every axis but the last: (..., D) -> (D,)."""
    rows = x.reshape(-1, x.shape[-1])
    return np.ones(len(rows), x.dtype) @ rows


_SHORT_ROW = 128  # numbers; longer rows are reduced fast as they are


def _largest(x, axis):
    """Largest entry along one axis, which stays as an axis of length 1. NumPy takes row after row and is slow at many
    short ones; turned around, they are a few long rows that are compared number by number."""
    if axis not in (-1, x.ndim - 1) or x.shape[-1] > _SHORT_ROW:
        return x.max(axis=axis, keepdims=True)
    columns = np.ascontiguousarray(x.reshape(-1, x.shape[-1]).T)
    return columns.max(axis=0).reshape(*x.shape[:-1], 1)


# --- linear ---------------------------------------------------------------------------------------------------------


@shapes(x="... D_in", w="D_in D_out", b="D_out")
def linear(x, w, b=None):
    """Every row times the same matrix: y = x W + b.

    x (..., D_in), w (D_in, D_out), b (D_out,) or None  ->  y (..., D_out)
    """
    rows = x.reshape(-1, x.shape[-1])  # one large matrix product is much faster than a batch of small ones
    y = rows @ w
    if b is not None:
        y += b
    return y.reshape(*x.shape[:-1], w.shape[1])


@shapes(dy="... D_out", x="... D_in", w="D_in D_out")
def linear_backward(dy, x, w):
    """Backward of linear.

    dx = dy Wᵀ,    dW = xᵀ dy,    db = Σ dy over the rows: W and b met every row, so their gradients add over rows.

    dy (..., D_out)  ->  dx (..., D_in), dw (D_in, D_out), db (D_out,)
    """
    dy_rows, rows = dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1])
    dx = (dy_rows @ w.T).reshape(x.shape)
    return dx, rows.T @ dy_rows, _sum_of_rows(dy_rows)


# --- embedding ------------------------------------------------------------------------------------------------------


@shapes(table="V D")
def embedding(ids, table):
    """Look up a row of the table for every id: the one-hot matrix of the ids times the table, without the zeros.

    ids (...) whole numbers in 0 … V − 1, table (V, D)  ->  y (..., D)
    """
    return table[as_ids(ids, len(table))]


@shapes(dy="... D")
def embedding_backward(dy, ids, num_embeddings):
    """Backward of embedding: a row's gradient is the sum over all places where its id stood.

    dy (..., D), ids (...)  ->  dtable (num_embeddings, D)
    """
    ids = as_ids(ids, num_embeddings)
    if dy.shape[:-1] != ids.shape:
        raise ValueError(f"embedding_backward: dy {dy.shape} must have the shape of ids {ids.shape} and one axis more")
    dtable = np.zeros((num_embeddings, dy.shape[-1]), dy.dtype)
    # `dtable[ids] += dy` would count a repeated id once. Sort, so that equal ids lie side by side, and sum each run.
    ids = ids.reshape(-1)
    order = np.argsort(ids, kind="stable")
    present, starts = np.unique(ids[order], return_index=True)
    dtable[present] = np.add.reduceat(dy.reshape(-1, dy.shape[-1])[order], starts, axis=0)
    return dtable


def sinusoidal_encoding(length, d_model, dtype=np.float32):
    """The positional encoding of the paper (Vaswani et al. 2017, §3.5).

        PE(pos, 2i) = sin(pos / 10000^(2i/d_model)),    PE(pos, 2i+1) = cos(pos / 10000^(2i/d_model))

    i counts pairs of dimensions. The wavelengths grow geometrically from 2π to 10000·2π positions.

    ->  (length, d_model)
    """
    if length < 1 or d_model < 1:
        raise ValueError(f"length and d_model must be at least 1, got {length} and {d_model}")
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
    """Positive weights that add to 1 along `axis`: y = exp(x) / Σ exp(x).

    x (...)  ->  y (...)

    The largest entry is subtracted first, which changes nothing and keeps exp from overflowing. −inf gives weight 0;
    where all is −inf there is nothing to choose from and every weight is 0.
    """
    largest = _largest(x, axis)
    y = x - np.maximum(largest, np.finfo(x.dtype).min)  # not −inf − (−inf), which is NaN
    np.exp(y, out=y)
    total = _sums(y, axis)
    y /= np.where(total == 0, 1, total)
    return y


@shapes(dy="...", y="...")
def softmax_backward(dy, y, axis=-1):
    """Backward of softmax.

    ∂yᵢ/∂xⱼ = yᵢ (δᵢⱼ − yⱼ), so every x reached every y:    dx = y · (dy − Σ dy · y)

    dy (...), y (...) the forward's output  ->  dx (...)
    """
    dx = dy - np.expand_dims(np.vecdot(dy, y, axis=axis), axis)
    dx *= y
    return dx


# --- activations ----------------------------------------------------------------------------------------------------


@shapes(x="...")
def relu(x):
    """max(0, x), element by element."""
    return np.maximum(x, 0)


@shapes(dy="...", x="...")
def relu_backward(dy, x):
    """Backward of relu: dy where x > 0, else 0. At x = 0 the gradient is taken as 0.

    The forward's output can stand for x: it is positive in the same places.
    """
    return dy * (x > 0)


@shapes(x="...")
def tanh(x):
    """(eˣ − e⁻ˣ) / (eˣ + e⁻ˣ), between −1 and 1, element by element."""
    return np.tanh(x)


@shapes(dy="...", y="...")
def tanh_backward(dy, y):
    """Backward of tanh: dx = dy · (1 − y²).

    dy (...), y (...) the forward's output  ->  dx (...)
    """
    dx = 1 - y * y
    dx *= dy
    return dx


_SQRT_2_OVER_PI = (2 / np.pi) ** 0.5  # Python floats: a NumPy float64 would promote a float32 array
_CUBIC = 0.044715


@shapes(x="...")
@blocked
def gelu(x, approximate="tanh"):
    """Gaussian error linear unit (Hendrycks & Gimpel 2016): x weighted by the normal distribution function, x Φ(x).

    "none":  y = x/2 · (1 + erf(x/√2)), exact;    "tanh":  y = x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))), as in GPT-2

    x (...)  ->  y (...)
    """
    y = _gelu_gate(x, approximate)
    y += 1
    y *= x
    y *= 0.5
    return y


@shapes(dy="...", x="...")
@blocked
def gelu_backward(dy, x, approximate="tanh"):
    """Backward of gelu, by the product rule on y = x/2 · (1 + g(x)).

    dx = dy · (1 + g(x) + x g'(x)) / 2
    "none":  g' = 2 φ(x) = √(2/π) exp(−x²/2);    "tanh":  g' = (1 − g²) √(2/π) (1 + 3 · 0.044715 x²)
    """
    gate = _gelu_gate(x, approximate)
    if approximate == "none":
        slope = np.exp(-0.5 * x * x)
    else:
        slope = (1 - gate * gate) * (1 + 3 * _CUBIC * x * x)
    slope *= x
    slope *= _SQRT_2_OVER_PI
    slope += gate
    slope += 1
    slope *= dy
    slope *= 0.5
    return slope


def _gelu_gate(x, approximate):
    """The g of gelu, between −1 and 1."""
    if approximate == "none":
        return erf(x * 0.5**0.5)
    if approximate == "tanh":
        inner = np.asarray(x * x)  # a single number stays an array
        inner *= _CUBIC
        inner += 1
        inner *= x  # x + 0.044715 x³
        inner *= _SQRT_2_OVER_PI
        return np.tanh(inner, out=inner)
    raise ValueError(f'approximate must be "tanh" or "none", got {approximate!r}')


# --- normalisation and dropout --------------------------------------------------------------------------------------


@shapes(x="... D", gamma="D", beta="D")
def layer_norm(x, gamma, beta, eps=1e-5):
    """Normalise each row to mean 0 and variance 1, then scale and shift (Ba et al. 2016).

        y = γ · x̂ + β,    x̂ = (x − μ) / √(σ² + ε),    μ, σ² over the last axis, σ² with 1/D

    x (..., D), gamma (D,), beta (D,)  ->  y (..., D), x_hat (..., D), inv_std (..., 1)
    The last two are what the backward needs.
    """
    x_hat = x - _row_means(x)  # centred first
    variance = np.vecdot(x_hat, x_hat)[..., None] / x.shape[-1]  # (..., 1)
    inv_std = 1 / np.sqrt(variance + eps)
    x_hat *= inv_std
    y = x_hat * gamma
    y += beta
    return y, x_hat, inv_std


@shapes(dy="... D", x_hat="... D", inv_std="... 1", gamma="D")
def layer_norm_backward(dy, x_hat, inv_std, gamma):
    """Backward of layer_norm.

    γ and β saw every row, so their gradients add over rows. x reached y three ways: by itself, through μ and through
    σ²; the two means that are subtracted are the last two.

        dx = (dx̂ − mean(dx̂) − x̂ · mean(dx̂ · x̂)) / √(σ² + ε),    dx̂ = dy · γ

    dy (..., D)  ->  dx (..., D), dgamma (D,), dbeta (D,)
    """
    dgamma = _sum_of_rows(dy * x_hat)
    dbeta = _sum_of_rows(dy)
    dx = dy * gamma  # dx̂
    through_variance = np.vecdot(dx, x_hat)[..., None] / x_hat.shape[-1]  # (..., 1)
    dx -= _row_means(dx)
    dx -= x_hat * through_variance
    dx *= inv_std
    return dx, dgamma, dbeta


@shapes(x="... D", gamma="D")
def rms_norm(x, gamma, eps=1e-6):
    """Scale each row to a mean square of 1, then by γ: layer_norm without the centring and without β (Zhang & Sennrich
    2019), as T5 does.

        y = γ · x̂,    x̂ = x / √(mean(x²) + ε),    the mean over the last axis

    x (..., D), gamma (D,)  ->  y (..., D), x_hat (..., D), inv_rms (..., 1)
    The last two are what the backward needs.
    """
    mean_square = np.vecdot(x, x)[..., None] / x.shape[-1]  # (..., 1)
    inv_rms = 1 / np.sqrt(mean_square + eps)
    x_hat = x * inv_rms
    return x_hat * gamma, x_hat, inv_rms


@shapes(dy="... D", x_hat="... D", inv_rms="... 1", gamma="D")
def rms_norm_backward(dy, x_hat, inv_rms, gamma):
    """Backward of rms_norm: that of layer_norm without the way through the mean.

        dx = (dx̂ − x̂ · mean(dx̂ · x̂)) / √(mean(x²) + ε),    dx̂ = dy · γ

    dy (..., D)  ->  dx (..., D), dgamma (D,)
    """
    dgamma = _sum_of_rows(dy * x_hat)
    dx = dy * gamma  # dx̂
    dx -= x_hat * (np.vecdot(dx, x_hat)[..., None] / x_hat.shape[-1])
    dx *= inv_rms
    return dx, dgamma


@shapes(x="...")
def dropout(x, p, rng):
    """Set each entry to 0 with probability p and scale the others by 1/(1 − p), so that the mean stays (Srivastava et
    al. 2014).

    x (...), p in [0, 1), rng a numpy.random.Generator or an int seed  ->  y (...), keep (...) Boolean
    """
    check_probability("p", p)
    keep = np.random.default_rng(rng).random(x.shape, dtype=np.float32) >= p
    y = x * keep
    y *= 1 / (1 - p)
    return y, keep


@shapes(dy="...")
def dropout_backward(dy, keep, p):
    """Backward of dropout: the gradient passes where x passed, with the same scale."""
    check_probability("p", p)
    if np.shape(keep) != dy.shape:
        raise ValueError(f"dropout_backward: keep {np.shape(keep)} must have the shape of dy {dy.shape}")
    dx = dy * keep
    dx *= 1 / (1 - p)
    return dx


# --- attention ------------------------------------------------------------------------------------------------------


@shapes(q="... T K", k="... S K")
def attention_scores(q, k, mask=None):
    """How well each query fits each key: Q Kᵀ / √d_k, with the mask applied (Vaswani et al. 2017, §3.2.1).

    q (..., T, K), k (..., S, K), mask broadcastable to (..., T, S)  ->  scores (..., T, S)

    A Boolean mask hides: True becomes −inf. A float mask is the lecture's M and is added. In a tuple of masks each does
    its part. √d_k keeps the variance of the scores at 1 where q and k have variance 1, whatever their length.
    """
    scores = q @ k.swapaxes(-1, -2)  # (..., T, S)
    scores *= q.shape[-1] ** -0.5
    hide(scores, as_masks(mask, scores.shape))
    return scores


@shapes(q="... T K", k="... S K", v="... S K_v")
def scaled_dot_product_attention(q, k, v, mask=None):
    """Each query's mean of the values, weighted by how well it fits their keys (Vaswani et al. 2017, eq. 1).

        out = A V,    A = softmax(Q Kᵀ / √d_k + M)

    q (..., T, K), k (..., S, K), v (..., S, K_v), mask broadcastable to (..., T, S)
    ->  out (..., T, K_v), weights A (..., T, S)

    The mask is Boolean (True hides) or float (added), or a tuple of such masks. A query that may see nothing gets
    weight 0 everywhere, output 0. tiled_attention has the same output without the weights, for long sequences.
    """
    weights = softmax(attention_scores(q, k, mask))  # (..., T, S)
    return weights @ v, weights


@shapes(dout="... T K_v", q="... T K", k="... S K", v="... S K_v", weights="... T S")
def scaled_dot_product_attention_backward(dout, q, k, v, weights):
    """Backward of scaled_dot_product_attention. The mask is not needed: where it hid, the weight is 0.

        dV = Aᵀ dout,    dA = dout Vᵀ,    dscores = softmax_backward(dA) / √d_k,    dQ = dscores K,    dK = dscoresᵀ Q

    dout (..., T, K_v)  ->  dq (..., T, K), dk (..., S, K), dv (..., S, K_v)
    """
    dv = weights.swapaxes(-1, -2) @ dout  # (..., S, K_v)
    dweights = dout @ v.swapaxes(-1, -2)  # (..., T, S)
    dscores = softmax_backward(dweights, weights)  # (..., T, S)
    dscores *= q.shape[-1] ** -0.5
    return dscores @ k, dscores.swapaxes(-1, -2) @ q, dv


@shapes(x="B T D")
def split_heads(x, num_heads):
    """Cut the features into heads: (B, T, D) -> (B, H, T, K) with D = H·K. A view, nothing is copied."""
    B, T, D = x.shape
    if num_heads < 1 or D % num_heads:
        raise ValueError(f"num_heads must divide the last axis of x: got {num_heads} heads for D = {D}")
    return x.reshape(B, T, num_heads, D // num_heads).transpose(0, 2, 1, 3)


@shapes(x="B H T K")
def merge_heads(x):
    """Lay the heads side by side again, the inverse of split_heads: (B, H, T, K) -> (B, T, H·K).

    Each is the other's backward: they only move numbers.
    """
    B, H, T, K = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, H * K)


# --- attention with relative positions ------------------------------------------------------------------------------


@shapes(x="... T S")
def relative_shift(x):
    """Turn columns that count distances into columns that count keys (Dai et al. 2019, appendix B).

    The queries are the last T of S positions: query t stands at position S − T + t, at the distance S − T + t − s from
    key s. Column c of x belongs to the distance S − 1 − c, whatever the query, so each row has to move to the left,
    the last one not at all, the one above it by one, …:

        y[t, s] = x[t, s + T − 1 − t]

    Done without a loop: a zero in front of each row, the rows laid end to end, cut anew, the first T numbers left off.
    T = 3, S = 4, an entry names its row and its distance:

        x  a3 a2 a1 a0        0 a3 a2 a1 a0                         y  a1 a0  0 b3
           b3 b2 b1 b0   →    0 b3 b2 b1 b0   →  without 0 a3 a2  →    b2 b1 b0  0
           c3 c2 c1 c0        0 c3 c2 c1 c0                            c3 c2 c1 c0

    To the right of distance 0, where the key is in the query's future, remain leftovers that mean nothing.

    x (..., T, S), S ≥ T  ->  y (..., T, S)
    """
    *batch, T, S = x.shape
    _check_relative(T, S)
    padded = np.zeros((*batch, T, S + 1), x.dtype)
    padded[..., 1:] = x
    return padded.reshape(*batch, -1)[..., T:].reshape(x.shape)


@shapes(dy="... T S")
def relative_shift_backward(dy):
    """Backward of relative_shift: its three steps in reverse. What was left off has the gradient 0, a padded zero needs
    none.

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


@shapes(q="B H T K", k="B H S K", v="B H S K_v", r="H S K", content_bias="H K", position_bias="H K")
def relative_attention(q, k, v, r, content_bias, position_bias, mask=None):
    """Attention that knows the distance to each key instead of its position (Dai et al. 2019, §3.3).

        out = A V,    A = softmax(((Q + u) Kᵀ + shift((Q + v) Rᵀ)) / √d_k + M)

    u, the content bias: how much a key is wanted for what it says, whoever asks; v, the position bias: how much for how
    far back it stands. Row c of R is the projected encoding of the distance S − 1 − c, so the last row is distance 0.

    q (B, H, T, K), the last T of the S positions; k (B, H, S, K), v (B, H, S, K_v), r (H, S, K), content_bias and
    position_bias (H, K), mask broadcastable to (B, H, T, S)
    ->  out (B, H, T, K_v), weights A (B, H, T, S)

    There are no distances below 0: a key in a query's future is always hidden. Raises ValueError for S < T.
    """
    T, S = q.shape[2], k.shape[2]
    scores = attention_scores(q + content_bias[:, None], k, mask)  # (B, H, T, S), a column a key
    by_distance = attention_scores(q + position_bias[:, None], np.broadcast_to(r, k.shape))  # a column a distance
    scores += relative_shift(by_distance)
    np.copyto(scores, -np.inf, where=~np.tri(T, S, S - T, dtype=bool))
    weights = softmax(scores)  # (B, H, T, S)
    return weights @ v, weights


@shapes(
    dout="B H T K_v",
    q="B H T K",
    k="B H S K",
    v="B H S K_v",
    r="H S K",
    content_bias="H K",
    position_bias="H K",
    weights="B H T S",
)
def relative_attention_backward(dout, q, k, v, r, content_bias, position_bias, weights):
    """Backward of relative_attention. A hidden key has weight 0, so neither mask nor leftovers of the shift matter.

        dV = Aᵀ dout,    dscores = softmax_backward(dout Vᵀ) / √d_k,    ddistances = relative_shift_backward(dscores)
        dK = dscoresᵀ (Q + u),    dR = Σ ddistancesᵀ (Q + v) over the batch, which shares R
        dQ = dscores K + ddistances R, and of these two du and dv are the sums over batch and queries

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


# --- attention with a learned bias for each distance ----------------------------------------------------------------


def relative_position_buckets(T, S=None, num_buckets=32, max_distance=128, bidirectional=True):
    """Which of a few buckets each distance from query to key belongs to (Raffel et al. 2020, §2.1).

    Half of the buckets hold one distance each, 0, 1, 2, …; the others grow with the logarithm of the distance n,

        bucket = N/2 + ⌊log(n / (N/2)) / log(max_distance / (N/2)) · N/2⌋,    N buckets for this direction

    and the last holds everything beyond, so that no distance from max_distance on is told from another. bidirectional:
    half of all buckets are for keys before the query and itself, the other half for keys after it; otherwise, in a
    decoder, keys after it share bucket 0 with itself: the causal mask hides them.

    ->  buckets (T, S) in 0 … num_buckets − 1, aligned to the end like causal_mask; S is T unless given
    """
    S = T if S is None else S
    check_at_least("T", T, 1)
    check_at_least("S", S, T)
    directions = 2 if bidirectional else 1
    check_at_least("num_buckets", num_buckets, 2 * directions)
    N = num_buckets // directions
    half = N // 2
    if max_distance <= half:
        raise ValueError(f"max_distance must be more than {half}, the distances with a bucket each; got {max_distance}")
    before = np.arange(S - T, S)[:, None] - np.arange(S)  # (T, S), how far the key stands before the query
    n = np.abs(before) if bidirectional else np.maximum(before, 0)
    # in float32, as in the original: where n is just at a boundary, float64 would round to the other side
    growth = np.log(np.maximum(n, 1).astype(np.float32) / half) / np.float32(np.log(max_distance / half))
    far = np.minimum(half + (growth * (N - half)).astype(int), N - 1)
    buckets = np.where(n < half, n, far)
    return buckets + N * (before < 0) if bidirectional else buckets


@shapes(table="R H")
def relative_position_bias(table, buckets):
    """What each head adds to the score of a key because of its distance: table[buckets] (Raffel et al. 2020, §2.1).

    table (R, H), a number for every bucket and head, buckets (T, S)  ->  bias (H, T, S)
    """
    return np.ascontiguousarray(np.moveaxis(embedding(buckets, table), -1, 0))


@shapes(dbias="H T S")
def relative_position_bias_backward(dbias, buckets, num_buckets):
    """Backward of relative_position_bias: a bucket's gradient is the sum over all pairs that far apart.

    dbias (H, T, S), buckets (T, S)  ->  dtable (num_buckets, H)
    """
    return embedding_backward(np.ascontiguousarray(np.moveaxis(dbias, 0, -1)), buckets, num_buckets)


@shapes(q="B H T K", k="B H S K", v="B H S K_v", bias="H T S")
def unscaled_attention(q, k, v, bias=None, mask=None):
    """Attention as in T5: no 1/√d_k, and a bias on the scores, the same for the whole batch (Raffel et al. 2020, §2.1).

        out = A V,    A = softmax(Q Kᵀ + bias + M)

    q (B, H, T, K), k (B, H, S, K), v (B, H, S, K_v), bias (H, T, S) or None, mask broadcastable to (B, H, T, S)
    ->  out (B, H, T, K_v), weights A (B, H, T, S)

    It trains without the scale because the scale is in the weights: W_q starts smaller by 1/√d_k, so that the scores
    start at variance 1 all the same, and Adam's step does not depend on the size of a gradient.
    """
    scores = q @ k.swapaxes(-1, -2)  # (B, H, T, S)
    if bias is not None:
        scores += bias
    hide(scores, as_masks(mask, scores.shape))
    weights = softmax(scores)  # (B, H, T, S)
    return weights @ v, weights


@shapes(dout="B H T K_v", q="B H T K", k="B H S K", v="B H S K_v", weights="B H T S")
def unscaled_attention_backward(dout, q, k, v, weights):
    """Backward of unscaled_attention. The bias was added to the scores of every row of the batch: its gradients add.

        dV = Aᵀ dout,    dscores = softmax_backward(dout Vᵀ)
        dQ = dscores K,    dK = dscoresᵀ Q,    dbias = Σ dscores over the batch

    dout (B, H, T, K_v)  ->  dq (B, H, T, K), dk (B, H, S, K), dv (B, H, S, K_v), dbias (H, T, S)
    """
    dv = weights.swapaxes(-1, -2) @ dout  # (B, H, S, K_v)
    dscores = softmax_backward(dout @ v.swapaxes(-1, -2), weights)  # (B, H, T, S)
    return dscores @ k, dscores.swapaxes(-1, -2) @ q, dv, dscores.sum(axis=0)


# --- feed-forward ---------------------------------------------------------------------------------------------------


@shapes(x="... D", w1="D F", b1="F", w2="F D_out", b2="D_out")
def feed_forward(x, w1, b1, w2, b2):
    """Position-wise feed-forward network (Vaswani et al. 2017, eq. 2): FFN(x) = max(0, x W₁ + b₁) W₂ + b₂.

    x (..., D), w1 (D, F), b1 (F,), w2 (F, D), b2 (D,)  ->  y (..., D), hidden (..., F) after the ReLU
    """
    hidden = linear(x, w1, b1)  # (..., F)
    hidden = relu(hidden)
    return linear(hidden, w2, b2), hidden


@shapes(dy="... D_out", x="... D", hidden="... F", w1="D F", w2="F D_out")
def feed_forward_backward(dy, x, hidden, w1, w2):
    """Backward of feed_forward: its three steps in reverse.

    dy (..., D)  ->  dx (..., D), dw1 (D, F), db1 (F,), dw2 (F, D), db2 (D,)
    """
    dhidden, dw2, db2 = linear_backward(dy, hidden, w2)  # (..., F)
    dhidden = relu_backward(dhidden, hidden)  # the ReLU's output is positive where its input was
    dx, dw1, db1 = linear_backward(dhidden, x, w1)
    return dx, dw1, db1, dw2, db2


@shapes(x="... D", w_gate="D F", w1="D F", w2="F D_out")
def gated_feed_forward(x, w_gate, w1, w2):
    """Feed-forward network with a gate, GEGLU (Shazeer 2020), as in T5 v1.1: FFN(x) = (GELU(x W_g) · x W₁) W₂.

    x (..., D), w_gate (D, F), w1 (D, F), w2 (F, D)  ->  y (..., D), gate (..., F) before the GELU, value (..., F)

    The GELU is the "tanh" one. Instead of only being cut off, each of the F features is multiplied by another.
    """
    gate, value = linear(x, w_gate), linear(x, w1)  # (..., F)
    return linear(gelu(gate) * value, w2), gate, value


@shapes(dy="... D_out", x="... D", gate="... F", value="... F", w_gate="D F", w1="D F", w2="F D_out")
def gated_feed_forward_backward(dy, x, gate, value, w_gate, w1, w2):
    """Backward of gated_feed_forward: each factor of the product gets the gradient times the other.

    dy (..., D)  ->  dx (..., D), dw_gate (D, F), dw1 (D, F), dw2 (F, D)
    """
    opened = gelu(gate)  # (..., F)
    dhidden, dw2, _ = linear_backward(dy, opened * value, w2)  # (..., F)
    dx_gate, dw_gate, _ = linear_backward(gelu_backward(dhidden * value, gate), x, w_gate)
    dx, dw1, _ = linear_backward(dhidden * opened, x, w1)
    dx += dx_gate
    return dx, dw_gate, dw1, dw2


# --- loss -----------------------------------------------------------------------------------------------------------


@shapes(logits="... V")
def cross_entropy(logits, targets, ignore_index=None, label_smoothing=0.0):
    """Mean surprise at the true class, in nats per target that counts: −Σ q log p / count,  p = softmax(logits).

    q is 1 at the target; with label smoothing ε it is 1 − ε + ε/V there and ε/V elsewhere (Szegedy et al. 2016). Rows
    whose target is `ignore_index` do not count; with no row left the loss is 0.

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
        mean_surprise = log_total - _row_means(shifted)[counts, 0]  # −mean of log p over the classes
        surprise = (1 - label_smoothing) * surprise + label_smoothing * mean_surprise
    loss = float(surprise.mean()) if len(surprise) else 0.0
    return loss, probs.reshape(logits.shape)


@shapes(probs="... V")
def cross_entropy_backward(probs, targets, ignore_index=None, label_smoothing=0.0, dloss=1.0):
    """Backward of cross_entropy: softmax and logarithm together leave dlogits = dloss · (p − q) / count.

    probs (..., V) the forward's second output, dloss a number  ->  dlogits (..., V), 0 in the rows that do not count
    """
    rows, targets, counts = _rows_and_targets(probs, targets, ignore_index, label_smoothing)
    dlogits = rows - label_smoothing / rows.shape[-1]  # (N, V)
    dlogits[np.arange(len(rows)), np.where(counts, targets, 0)] -= 1 - label_smoothing
    dlogits *= float(dloss) / max(1, int(counts.sum()))
    dlogits[~counts] = 0
    return dlogits.reshape(probs.shape)


def _rows_and_targets(logits, targets, ignore_index, label_smoothing):
    """One row a target, (N, V) and (N,), and which of them count, (N,) Boolean."""
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"label_smoothing must lie in [0, 1], got {label_smoothing}")
    targets = np.asarray(targets)
    if targets.shape != logits.shape[:-1]:
        raise ValueError(
            f"targets must have shape {logits.shape[:-1]}, one for each row of logits; got {targets.shape}"
        )
    counts = np.ones(targets.shape, bool) if ignore_index is None else targets != ignore_index
    if counts.any():
        as_ids(targets if ignore_index is None else targets[counts], logits.shape[-1], "targets")
    elif targets.dtype.kind not in "iu":
        raise TypeError(f"targets must be whole numbers, got {targets.dtype}")
    return logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), counts.reshape(-1)


@shapes(center="N D", context="N D", negatives="N K D")
def negative_sampling_loss(center, context, negatives):
    """Skip-gram with negative sampling (Mikolov et al. 2013b, eq. 4): tell the word that stood near from K drawn ones.

        L = −mean over N of [log σ(c · o) + Σ_k log σ(−c · n_k)],    σ(s) = 1 / (1 + exp(−s))

    center c (N, D), context o (N, D), negatives n (N, K, D)
    ->  loss in nats per pair (a Python float), p_context (N,), p_negatives (N, K)

    p = σ(score) is how sure the model is that the word stood near: it should become 1 for the context and 0 for the
    negatives. Where all scores are 0 the loss is (K + 1) ln 2.
    """
    surprise, p_not_context = _softplus(-np.vecdot(center, context))  # (N,)
    noise_surprise, p_negatives = _softplus(np.vecdot(center[:, None], negatives))  # (N, K)
    loss = float((surprise + noise_surprise.sum(axis=-1)).mean())
    return loss, 1 - p_not_context, p_negatives


@shapes(center="N D", context="N D", negatives="N K D", p_context="N", p_negatives="N K")
def negative_sampling_loss_backward(center, context, negatives, p_context, p_negatives, dloss=1.0):
    """Backward of negative_sampling_loss. σ and logarithm together leave p − 1 for the context and p for a negative.

        ds = dloss · (p − 1) / N,    ds_k = dloss · p_k / N
        dc = ds o + Σ_k ds_k n_k,    do = ds c,    dn_k = ds_k c

    p_context (N,), p_negatives (N, K) the forward's second and third output, dloss a number
    ->  dcenter (N, D), dcontext (N, D), dnegatives (N, K, D)
    """
    scale = float(dloss) / len(center)
    dscore = (scale * (p_context - 1))[:, None]  # (N, 1)
    dnoise = scale * p_negatives  # (N, K)
    dcenter = dscore * context
    dcenter += (dnoise[:, None] @ negatives)[:, 0]  # (N, 1, K) @ (N, K, D)
    return dcenter, dscore * center, dnoise[..., None] * center[:, None]


def _softplus(x):
    """log(1 + exp(x)), and its slope 1 / (1 + exp(−x)). exp is given nothing positive, so that it cannot overflow."""
    small = np.exp(-np.abs(x))
    return np.maximum(x, 0) + np.log1p(small), np.where(x >= 0, 1, small) / (1 + small)


# --- what attention is compared with: recurrence, convolution, a window ---------------------------------------------


@shapes(x="B T D_in", w_x="D_in D", w_h="D D", b="D")
def rnn(x, w_x, w_h, b=None):
    """A recurrent layer: one token after the other, all that is known of the past in one vector (Elman 1990).

        h_t = tanh(x_t W_x + h_{t−1} W_h + b),    h_{−1} = 0

    x (B, T, D_in), w_x (D_in, D), w_h (D, D), b (D,) or None  ->  h (B, T, D)

    The T steps wait for one another; nothing but x W_x can be done for all at once.
    """
    h = linear(x, w_x, b)  # (B, T, D)
    for t in range(h.shape[1]):
        if t > 0:
            h[:, t] += h[:, t - 1] @ w_h  # (B, D)
        np.tanh(h[:, t], out=h[:, t])
    return h


@shapes(dh="B T D", x="B T D_in", h="B T D", w_x="D_in D", w_h="D D")
def rnn_backward(dh, x, h, w_x, w_h):
    """Backward of rnn: backpropagation through time (Werbos 1990).

    h_t reached the loss by itself and through h_{t+1}, so the gradient comes from the end, one step at a time. With a_t
    what the tanh was given:

        da_t = (dh_t + da_{t+1} W_hᵀ) · (1 − h_t²),    dx_t = da_t W_xᵀ
        dW_x = Σ x_tᵀ da_t,    dW_h = Σ h_{t−1}ᵀ da_t,    db = Σ da_t    over all steps: they met every one

    Every step back is one more factor W_hᵀ · (1 − h²): that is why the gradient vanishes, or explodes.

    dh (B, T, D), h (B, T, D) the forward's output  ->  dx (B, T, D_in), dw_x (D_in, D), dw_h (D, D), db (D,)
    """
    D = h.shape[-1]
    da = 1 - h * h  # (B, T, D), the slope of the tanh
    da[:, -1] *= dh[:, -1]
    for t in range(h.shape[1] - 2, -1, -1):
        da[:, t] *= dh[:, t] + da[:, t + 1] @ w_h.T  # (B, D)
    dw_h = h[:, :-1].reshape(-1, D).T @ da[:, 1:].reshape(-1, D)
    dx, dw_x, db = linear_backward(da, x, w_x)
    return dx, dw_x, dw_h, db


@shapes(x="B T D_in", w="k D_in D_out", b="D_out")
def causal_conv1d(x, w, b=None, dilation=1):
    """A convolution that looks back only: every token sees itself and k − 1 tokens before it.

        y_t = Σ_j x_{t − j·dilation} W_j + b,    j = 0 … k − 1,    x = 0 before the start

    x (B, T, D_in), w (k, D_in, D_out) where w[0] meets the token itself, b (D_out,) or None  ->  y (B, T, D_out)

    dilation: the distance between the tokens seen; with 1, k, k², … in the layers of a stack each layer sees k times
    as far as the one below (van den Oord et al. 2016).
    """
    check_at_least("dilation", dilation, 1)
    T = x.shape[1]
    y = x @ w[0]  # (B, T, D_out)
    for j in range(1, _taps(w, T, dilation)):
        y[:, j * dilation :] += x[:, : T - j * dilation] @ w[j]  # the whole sequence, shifted
    if b is not None:
        y += b
    return y


@shapes(dy="B T D_out", x="B T D_in", w="k D_in D_out")
def causal_conv1d_backward(dy, x, w, dilation=1):
    """Backward of causal_conv1d: what was shifted forward goes back by as much.

        dx_t = Σ_j dy_{t + j·dilation} W_jᵀ,    dW_j = Σ_t x_{t − j·dilation}ᵀ dy_t,    db = Σ_t dy_t

    dy (B, T, D_out)  ->  dx (B, T, D_in), dw (k, D_in, D_out), db (D_out,)
    """
    check_at_least("dilation", dilation, 1)
    T = x.shape[1]
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for j in range(_taps(w, T, dilation)):
        shift = j * dilation
        dy_rows = dy[:, shift:].reshape(-1, dy.shape[-1])  # (B·(T − shift), D_out)
        dx[:, : T - shift] += (dy_rows @ w[j].T).reshape(len(x), T - shift, -1)
        dw[j] = x[:, : T - shift].reshape(-1, x.shape[-1]).T @ dy_rows
    return dx, dw, _sum_of_rows(dy)


def _taps(w, T, dilation):
    """How many of the k matrices meet a token at all: the others look at what lies before the start."""
    return min(len(w), (T - 1) // dilation + 1)


_SMALLEST_BLOCK = 16  # queries; smaller matrix products cost more in calls than they save


@shapes(q="... T K", k="... T K", v="... T K_v")
def window_attention(q, k, v, window, causal=False):
    """Attention to the neighbours only, in O(T · window) time and memory (Vaswani et al. 2017, §4, "restricted").

        out_t = Σ_s A_ts V_s,    A = softmax(Q Kᵀ / √d_k) over the keys |t − s| ≤ window, and s ≤ t if causal

    q (..., T, K), k (..., T, K), v (..., T, K_v)
    ->  out (..., T, K_v), weights (..., T, R),  R = 2 · window + 1, or window + 1 if causal

    weights[..., t, j] is the weight of the key s = t − window + j, 0 where there is none; a window beyond T − 1 counts
    as T − 1. Raises ValueError for a window below 0. The result is that of
    scaled_dot_product_attention with masks.window_mask; the (T, T) scores never exist: the queries are cut into blocks,
    each meets the keys its window reaches, and the band along the diagonal of each product is what counts.
    """
    cut = _Blocks(q.shape[-2], window, causal)
    scores = cut.band(cut.queries(q) @ cut.keys(k).swapaxes(-1, -2))  # (..., T, R)
    scores *= q.shape[-1] ** -0.5
    np.copyto(scores, -np.inf, where=cut.outside)
    weights = softmax(scores)  # (..., T, R)
    return cut.join(cut.unband(weights) @ cut.keys(v)), weights


@shapes(dout="... T K_v", q="... T K", k="... T K", v="... T K_v", weights="... T R")
def window_attention_backward(dout, q, k, v, weights, window, causal=False):
    """Backward of window_attention: that of scaled_dot_product_attention, block by block. A key was seen from more
    than one block, so its gradients add.

    dout (..., T, K_v), weights (..., T, R) the forward's second output
    ->  dq (..., T, K), dk (..., T, K), dv (..., T, K_v)
    """
    cut = _Blocks(q.shape[-2], window, causal)
    if weights.shape[-1] != cut.reach:
        raise ValueError(
            f"window_attention_backward: weights must have {cut.reach} columns, as window = {window} "
            f"{'and causal ' if causal else ''}gives; got shape {weights.shape}"
        )
    dout = cut.queries(dout)  # (..., N, C, K_v)
    dv = cut.add_up(cut.unband(weights).swapaxes(-1, -2) @ dout)
    dweights = cut.band(dout @ cut.keys(v).swapaxes(-1, -2))  # (..., T, R)
    dscores = softmax_backward(dweights, weights)
    dscores *= q.shape[-1] ** -0.5
    dscores = cut.unband(dscores)  # (..., N, C, L)
    return cut.join(dscores @ cut.keys(k)), cut.add_up(dscores.swapaxes(-1, -2) @ cut.queries(q)), dv


class _Blocks:
    """T positions in N blocks of C queries; a block meets L keys, from `window` before its first query on.

    In a block's product (C, L) query c meets the keys of its window in the columns c … c + R − 1: a band along the
    diagonal. `band` and `unband` go from the blocks (..., N, C, L) to the bands (..., T, R) and back.
    """

    def __init__(self, T, window, causal):
        check_at_least("window", window, 0)
        self.T, self.window = T, min(window, T - 1)  # no key is further away than that
        self.reach = self.window + 1 if causal else 2 * self.window + 1  # R
        self.C = min(T, max(self.window, _SMALLEST_BLOCK))
        self.N = -(-T // self.C)
        self.L = self.C + self.reach - 1
        key = np.arange(T)[:, None] + np.arange(self.reach) - self.window  # (T, R)
        self.outside = (key < 0) | (key >= T)

    def queries(self, x):
        """(..., T, K) -> (..., N, C, K), with zeros after the end."""
        return _pad_rows(x, 0, self.N * self.C - self.T).reshape(*x.shape[:-2], self.N, self.C, x.shape[-1])

    def keys(self, x):
        """(..., T, K) -> (..., N, L, K), with zeros around. A view: neighbouring blocks share their keys."""
        x = _pad_rows(x, self.window, self.N * self.C + self.L - self.C - self.window - self.T)
        windows = np.lib.stride_tricks.sliding_window_view(x, self.L, axis=-2, subok=True)  # (..., all starts, K, L)
        return windows[..., :: self.C, :, :].swapaxes(-1, -2)

    def band(self, blocks):
        """(..., N, C, L) -> (..., T, R)"""
        band = self._diagonal(blocks)
        return band.reshape(*band.shape[:-3], -1, self.reach)[..., : self.T, :]

    def unband(self, band):
        """(..., T, R) -> (..., N, C, L), with zeros beside the band."""
        blocks = np.zeros((*band.shape[:-2], self.N, self.C, self.L), band.dtype)
        rows = _pad_rows(band, 0, self.N * self.C - self.T)
        self._diagonal(blocks)[...] = rows.reshape(*band.shape[:-2], self.N, self.C, self.reach)
        return blocks

    def _diagonal(self, blocks):
        """The band of every block, (..., N, C, R), as a view: a row starts one column further than the row above."""
        *lead, row, column = blocks.strides
        shape = (*blocks.shape[:-1], self.reach)
        return np.lib.stride_tricks.as_strided(blocks, shape, (*lead, row + column, column))

    def join(self, blocks):
        """(..., N, C, K) -> (..., T, K)"""
        return blocks.reshape(*blocks.shape[:-3], -1, blocks.shape[-1])[..., : self.T, :]

    def add_up(self, blocks):
        """(..., N, L, K) -> (..., T, K), the backward of `keys`: what blocks share is added."""
        N, C, L = self.N, self.C, self.L
        total = np.zeros((*blocks.shape[:-3], N + -(-L // C), C, blocks.shape[-1]), blocks.dtype)
        for i, start in enumerate(range(0, L, C)):  # the i-th C rows of every block at once
            part = blocks[..., start : start + C, :]
            total[..., i : i + N, : part.shape[-2], :] += part
        rows = total.reshape(*blocks.shape[:-3], -1, blocks.shape[-1])
        return rows[..., self.window : self.window + self.T, :]


def _pad_rows(x, before, after):
    """Rows of zeros before and after the second axis from the end."""
    if not before and not after:
        return x
    padded = np.zeros_like(x, shape=(*x.shape[:-2], before + x.shape[-2] + after, x.shape[-1]))
    padded[..., before : before + x.shape[-2], :] = x
    return padded
