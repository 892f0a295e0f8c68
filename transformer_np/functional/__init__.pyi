"""Made by tests/make_stubs.py for editors and type checkers."""

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

TILE: int
FUNCTIONS: Mapping[str, Callable]

__all__ = [
    "alibi_bias",
    "attention_scores",
    "causal_conv1d",
    "causal_conv1d_backward",
    "cross_entropy",
    "cross_entropy_backward",
    "dropout",
    "dropout_backward",
    "embedding",
    "embedding_backward",
    "feed_forward",
    "feed_forward_backward",
    "gated_feed_forward",
    "gated_feed_forward_backward",
    "gelu",
    "gelu_backward",
    "layer_norm",
    "layer_norm_backward",
    "linear",
    "linear_backward",
    "lora",
    "lora_backward",
    "merge_heads",
    "negative_sampling_loss",
    "negative_sampling_loss_backward",
    "relative_attention",
    "relative_attention_backward",
    "relative_position_bias",
    "relative_position_bias_backward",
    "relative_position_buckets",
    "relative_scores",
    "relative_shift",
    "relative_shift_backward",
    "relu",
    "relu_backward",
    "repeat_heads",
    "repeat_heads_backward",
    "rms_norm",
    "rms_norm_backward",
    "rnn",
    "rnn_backward",
    "rotary",
    "rotary_backward",
    "rotary_frequencies",
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_backward",
    "silu",
    "silu_backward",
    "sinusoidal_encoding",
    "softmax",
    "softmax_backward",
    "split_heads",
    "tanh",
    "tanh_backward",
    "tiled_attention",
    "tiled_attention_backward",
    "unscaled_attention",
    "unscaled_attention_backward",
    "unscaled_scores",
    "window_attention",
    "window_attention_backward",
    "window_scores",
]

def alibi_bias(num_heads: int, T: int, S: int | None = None, dtype: DTypeLike = np.float32) -> np.ndarray:
    r"""A fixed bias: each head lowers the score of a key by its distance times a slope, ALiBi (Press et al. 2022).

        bias_hts = −m_h · |t − s|,    m_h = 2^(−8 (h + 1)/H)

    If H is not a power of two, the first slopes are those of the power below, and the others every second slope of the
    power above.

    ->  bias (H, T, S), a float mask for any attention, aligned to the end like causal_mask; S is T unless given
    """

def attention_scores(q: ArrayLike, k: ArrayLike, mask: np.ndarray | tuple[np.ndarray, ...] | None = None) -> np.ndarray:
    r"""Score how well each query fits each key: Q Kᵀ / √d_k, with the mask applied (Vaswani et al. 2017, §3.2.1).

    q (..., T, K), k (..., S, K), mask broadcastable to (..., T, S)  ->  scores (..., T, S)

    A Boolean mask hides: where it is True, the score becomes −inf. A float mask is the lecture's M and is added. In a
    tuple, all masks are applied. Dividing by √d_k keeps the variance of the scores at 1 if q and k have variance 1,
    whatever their length.
    """

def causal_conv1d(x: ArrayLike, w: ArrayLike, b: ArrayLike | None = None, dilation: int = 1) -> np.ndarray:
    r"""A convolution that only looks back: every token sees itself and k − 1 tokens before it.

        y_t = Σ_j x_{t − j·dilation} W_j + b,    j = 0 … k − 1,    x = 0 before the start

    x (B, T, D_in), w (k, D_in, D_out) where w[0] is for the token itself, b (D_out,) or None  ->  y (B, T, D_out)

    dilation: the distance between the tokens seen. In a stack of layers with dilations 1, k, k², … each layer sees k
    times as far as the one below (van den Oord et al. 2016).
    """

def causal_conv1d_backward(
    dy: ArrayLike,
    x: ArrayLike,
    w: ArrayLike,
    dilation: int = 1,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Backward of causal_conv1d: each shift forward becomes the same shift back.

        dx_t = Σ_j dy_{t + j·dilation} W_jᵀ,    dW_j = Σ_t x_{t − j·dilation}ᵀ dy_t,    db = Σ_t dy_t

    dy (B, T, D_out)  ->  dx (B, T, D_in), dw (k, D_in, D_out), db (D_out,)
    """

def cross_entropy(
    logits: ArrayLike,
    targets: ArrayLike,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
) -> tuple[np.floating, np.ndarray]:
    r"""Mean surprise at the target class, in nats per counted target: −Σ q log p / count,  p = softmax(logits).

    q is 1 at the target and 0 elsewhere. With label smoothing ε it is 1 − ε + ε/V at the target and ε/V elsewhere
    (Szegedy et al. 2016). Rows whose target is `ignore_index` do not count; if no row counts, the loss is 0. Logits may
    be of any size: the loss is computed without exp(x) or log 0.

    logits (..., V), targets (...) whole numbers  ->  loss (a Python float), probs (..., V)
    """

def cross_entropy_backward(
    probs: ArrayLike,
    targets: ArrayLike,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    dloss: float | np.floating | np.ndarray = 1.0,
) -> np.ndarray:
    r"""Backward of cross_entropy: softmax and logarithm combine to dlogits = dloss · (p − q) / count.

    probs (..., V) the forward's second output, dloss a number  ->  dlogits (..., V), 0 in rows that do not count
    """

def dropout(x: ArrayLike, p: float, rng: np.random.Generator | int) -> tuple[np.ndarray, np.ndarray]:
    r"""Set each entry to 0 with probability p, independently of the others, and scale the rest by 1/(1 − p), which
    keeps the expected value (Srivastava et al. 2014).

    x (...), p in [0, 1), rng a numpy.random.Generator or an int seed  ->  y (...), keep (...) Boolean
    """

def dropout_backward(dy: ArrayLike, keep: np.ndarray, p: float) -> np.ndarray:
    r"""Backward of dropout: the gradient passes where x passed, with the same scale.

    dy (...), keep (...) Boolean, the forward's second output, p as in the forward  ->  dx (...)
    """

def embedding(ids: ArrayLike, table: ArrayLike) -> np.ndarray:
    r"""Look up the row of each id: y = table[ids], the product of one-hot rows and the table.

    ids (...) whole numbers in 0 … V − 1, table (V, D)  ->  y (..., D)
    """

def embedding_backward(dy: ArrayLike, ids: ArrayLike, num_embeddings: int) -> np.ndarray:
    r"""Backward of embedding: the gradient of a table row is the sum of dy over all positions with its id.

    dy (..., D), ids (...)  ->  dtable (num_embeddings, D)
    """

def feed_forward(
    x: ArrayLike,
    w1: ArrayLike,
    b1: ArrayLike,
    w2: ArrayLike,
    b2: ArrayLike,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Position-wise feed-forward network (Vaswani et al. 2017, eq. 2): FFN(x) = max(0, x W₁ + b₁) W₂ + b₂.

    x (..., D), w1 (D, F), b1 (F,), w2 (F, D_out), b2 (D_out,)  ->  y (..., D_out), hidden (..., F) after the ReLU
    """

def feed_forward_backward(
    dy: ArrayLike,
    x: ArrayLike,
    hidden: ArrayLike,
    w1: ArrayLike,
    w2: ArrayLike,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    r"""Backward of feed_forward: its three steps in reverse.

    dy (..., D_out)  ->  dx (..., D), dw1 (D, F), db1 (F,), dw2 (F, D_out), db2 (D_out,)
    """

def gated_feed_forward(
    x: ArrayLike,
    w_gate: ArrayLike,
    w1: ArrayLike,
    w2: ArrayLike,
    activation: str = "gelu_tanh",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Feed-forward network with a gate (Shazeer 2020): FFN(x) = (act(x W_g) · x W₁) W₂.

    x (..., D), w_gate (D, F), w1 (D, F), w2 (F, D_out)  ->  y (..., D_out), gate (..., F) before act, value (..., F)

    activation: "gelu_tanh", GEGLU as in T5 v1.1, or "silu", SwiGLU as in Llama. Instead of only being cut off, each of
    the F features is multiplied by another.
    """

def gated_feed_forward_backward(
    dy: ArrayLike,
    x: ArrayLike,
    gate: ArrayLike,
    value: ArrayLike,
    w_gate: ArrayLike,
    w1: ArrayLike,
    w2: ArrayLike,
    activation: str = "gelu_tanh",
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    r"""Backward of gated_feed_forward: each factor of the product gets the gradient times the other.

    dy (..., D_out), the forward's activation  ->  dx (..., D), dw_gate (D, F), dw1 (D, F), dw2 (F, D_out)
    """

def gelu(x: ArrayLike, approximate: Literal["tanh", "none"] = "tanh") -> np.ndarray:
    r"""Gaussian error linear unit (Hendrycks & Gimpel 2016): x times the normal distribution function, x Φ(x).

    "none":  y = x/2 · (1 + erf(x/√2)), exact;    "tanh":  y = x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))), as in GPT-2

    x (...)  ->  y (...)
    """

def gelu_backward(dy: ArrayLike, x: ArrayLike, approximate: Literal["tanh", "none"] = "tanh") -> np.ndarray:
    r"""Backward of gelu, by the product rule on y = x/2 · (1 + g(x)).

    dx = dy · (1 + g(x) + x g'(x)) / 2
    "none":  g' = 2 φ(x) = √(2/π) exp(−x²/2);    "tanh":  g' = (1 − g²) √(2/π) (1 + 3 · 0.044715 x²)

    dy (...), x (...) the forward's input  ->  dx (...)
    """

def layer_norm(
    x: ArrayLike,
    gamma: ArrayLike,
    beta: ArrayLike,
    eps: float = 1e-05,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Normalise each row to mean 0 and variance 1, then scale and shift (Ba et al. 2016).

        y = γ · x̂ + β,    x̂ = (x − μ) / √(σ² + ε),    μ, σ² over the last axis, σ² with 1/D

    x (..., D), gamma (D,), beta (D,)  ->  y (..., D), x_hat (..., D), inv_std (..., 1)
    The backward pass needs the last two.
    """

def layer_norm_backward(
    dy: ArrayLike,
    x_hat: ArrayLike,
    inv_std: ArrayLike,
    gamma: ArrayLike,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Backward of layer_norm.

    Every row used γ and β, so their gradients add up over the rows. x affects y in three ways: directly, through μ and
    through σ². The two means that are subtracted come from μ and σ².

        dx = (dx̂ − mean(dx̂) − x̂ · mean(dx̂ · x̂)) / √(σ² + ε),    dx̂ = dy · γ

    dy (..., D)  ->  dx (..., D), dgamma (D,), dbeta (D,)
    """

def linear(x: ArrayLike, w: ArrayLike, b: ArrayLike | None = None) -> np.ndarray:
    r"""Multiply every row by the same matrix and add the bias: y = x W + b.

    x (..., D_in), w (D_in, D_out), b (D_out,) or None  ->  y (..., D_out)
    """

def linear_backward(dy: ArrayLike, x: ArrayLike, w: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Backward of linear.

    dx = dy Wᵀ,    dW = xᵀ dy,    db = Σ dy over the rows: every row used W and b, so their gradients add up.

    dy (..., D_out)  ->  dx (..., D_in), dw (D_in, D_out), db (D_out,)
    """

def lora(x: ArrayLike, a: ArrayLike, b: ArrayLike, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    r"""The term that LoRA adds to x W: the change of W is a product of two thin matrices (Hu et al. 2021, §4.1).

        y = s · (x A) B,    so that  x W + y = x (W + s · A B)

    x (..., D_in), a (D_in, R), b (R, D_out)  ->  y (..., D_out), low (..., R)

    The second result, x A, is what the backward pass needs. With R much smaller than D, A and B have R · (D_in + D_out)
    numbers to learn, where W has D_in · D_out. B starts at 0, so that the first y is 0.
    """

def lora_backward(
    dy: ArrayLike,
    x: ArrayLike,
    low: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    scale: float = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Backward of lora, two linear maps in a row.

        dlow = s · dy Bᵀ,    dx = dlow Aᵀ,    dA = xᵀ dlow,    dB = s · lowᵀ dy,    the last two summed over the rows

    dy (..., D_out)  ->  dx (..., D_in), da (D_in, R), db (R, D_out)
    """

def merge_heads(x: ArrayLike) -> np.ndarray:
    r"""Lay the heads side by side again, the inverse of split_heads: (B, H, T, K) -> (B, T, H·K).

    Both functions only move numbers, so each is the backward of the other.
    """

def negative_sampling_loss(
    center: ArrayLike,
    context: ArrayLike,
    negatives: ArrayLike,
) -> tuple[np.floating, np.ndarray, np.ndarray]:
    r"""Skip-gram with negative sampling (Mikolov et al. 2013b, eq. 4): tell the context word from K random words.

        L = −mean over N of [log σ(c · o) + Σ_k log σ(−c · n_k)],    σ(s) = 1 / (1 + exp(−s))

    center c (N, D), context o (N, D), negatives n (N, K, D)
    ->  loss in nats per pair (a Python float), p_context (N,), p_negatives (N, K)

    p = σ(score) is the model's probability that the word is a context word. It should become 1 for the context and 0
    for the negatives. If all scores are 0, the loss is (K + 1) ln 2. It is finite for scores of any size.
    """

def negative_sampling_loss_backward(
    center: ArrayLike,
    context: ArrayLike,
    negatives: ArrayLike,
    p_context: ArrayLike,
    p_negatives: ArrayLike,
    dloss: float | np.floating | np.ndarray = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Backward of negative_sampling_loss. σ and logarithm combine to p − 1 for the context and p for a negative.

        ds = dloss · (p − 1) / N,    ds_k = dloss · p_k / N
        dc = ds o + Σ_k ds_k n_k,    do = ds c,    dn_k = ds_k c

    p_context (N,), p_negatives (N, K) the forward's second and third output, dloss a number
    ->  dcenter (N, D), dcontext (N, D), dnegatives (N, K, D)
    """

def relative_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    r: ArrayLike,
    content_bias: ArrayLike,
    position_bias: ArrayLike,
    mask: np.ndarray | tuple[np.ndarray, ...] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Attention that uses the distance to each key instead of its position (Dai et al. 2019, §3.3).

        out = A V,    A = softmax(((Q + u) Kᵀ + shift((Q + v) Rᵀ)) / √d_k + M)

    u, the content bias, scores the content of a key for any query; v, the position bias, scores its distance for any
    query. Row c of R is the projected encoding of the distance S − 1 − c, so the last row is distance 0.

    q (B, H, T, K), the last T of the S positions; k (B, H, S, K), v (B, H, S, K_v), r (H, S, K), content_bias and
    position_bias (H, K), mask broadcastable to (B, H, T, S)
    ->  out (B, H, T, K_v), weights A (B, H, T, S)

    There are no negative distances: keys in a query's future are always hidden. Raises ValueError for S < T.
    """

def relative_attention_backward(
    dout: ArrayLike,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    r: ArrayLike,
    content_bias: ArrayLike,
    position_bias: ArrayLike,
    weights: ArrayLike,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    r"""Backward of relative_attention. A hidden key has weight 0, so the mask and the shift's leftovers do not matter.

        dV = Aᵀ dout,    dscores = softmax_backward(dout Vᵀ) / √d_k,    ddistances = relative_shift_backward(dscores)
        dK = dscoresᵀ (Q + u),    dR = Σ ddistancesᵀ (Q + v) over the batch, which shares R
        dQ = dscores K + ddistances R; du and dv are the sums of its two terms over batch and queries

    dout (B, H, T, K_v)  ->  dq (B, H, T, K), dk (B, H, S, K), dv (B, H, S, K_v), dr (H, S, K),
    dcontent_bias (H, K), dposition_bias (H, K)
    """

def relative_position_bias(table: ArrayLike, buckets: ArrayLike) -> np.ndarray:
    r"""The number that each head adds to the score of a key at some distance: table[buckets] (Raffel et al. 2020, §2.1).

    table (R, H), one number per bucket and head, buckets (T, S)  ->  bias (H, T, S)
    """

def relative_position_bias_backward(dbias: ArrayLike, buckets: ArrayLike, num_buckets: int) -> np.ndarray:
    r"""Backward of relative_position_bias: the gradient of a bucket is the sum over all pairs in that bucket.

    dbias (H, T, S), buckets (T, S)  ->  dtable (num_buckets, H)
    """

def relative_position_buckets(
    T: int,
    S: int | None = None,
    num_buckets: int = 32,
    max_distance: int = 128,
    bidirectional: bool = True,
) -> np.ndarray:
    r"""Sort each distance from query to key into one of a few buckets (Raffel et al. 2020, §2.1).

    Half of the buckets hold one distance each, 0, 1, 2, …; the others widen with the logarithm of the distance n,

        bucket = N/2 + ⌊log(n / (N/2)) / log(max_distance / (N/2)) · N/2⌋,    N buckets for this direction

    and the last bucket holds all distances from max_distance on. If bidirectional, half of the buckets are for the
    query itself and the keys before it, the other half for the keys after it. Otherwise, in a decoder, the keys after
    the query share its own bucket 0: the causal mask hides them.

    ->  buckets (T, S) in 0 … num_buckets − 1, aligned to the end like causal_mask; S is T unless given
    """

def relative_scores(
    q: ArrayLike,
    k: ArrayLike,
    r: ArrayLike,
    content_bias: ArrayLike,
    position_bias: ArrayLike,
    mask: np.ndarray | tuple[np.ndarray, ...] | None = None,
) -> np.ndarray:
    r"""Score each key for each query by its content and its distance; see relative_attention (Dai et al. 2019, §3.3).

        scores = ((Q + u) Kᵀ + shift((Q + v) Rᵀ)) / √d_k + M

    q (B, H, T, K), k (B, H, S, K), r (H, S, K), content_bias and position_bias (H, K), mask broadcastable to
    (B, H, T, S)
    ->  scores (B, H, T, S), −inf where hidden
    """

def relative_shift(x: ArrayLike) -> np.ndarray:
    r"""Turn columns that count distances into columns that count keys (Dai et al. 2019, appendix B).

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

def relative_shift_backward(dy: ArrayLike) -> np.ndarray:
    r"""Backward of relative_shift: its steps in reverse. Dropped numbers have gradient 0; the padded zeros need none.

    dy (..., T, S)  ->  dx (..., T, S)
    """

def relu(x: ArrayLike) -> np.ndarray:
    r"""max(0, x), element by element.

    x (...)  ->  y (...)
    """

def relu_backward(dy: ArrayLike, x: ArrayLike) -> np.ndarray:
    r"""Backward of relu: dy where x > 0, else 0. At x = 0 the gradient is taken as 0.

    dy (...), x (...) the forward's input  ->  dx (...)

    The forward's output may be passed instead of x: it is positive in the same places.
    """

def repeat_heads(x: ArrayLike, repeats: int) -> np.ndarray:
    r"""Give each head of keys or values to `repeats` heads of queries that lie side by side.

        y_h = x_g,    g = ⌊h / repeats⌋

    x (B, G, S, K)  ->  y (B, H, S, K) with H = G · repeats

    G = 1 is multi-query attention (Shazeer 2019), repeats = 1 the lecture's attention.
    """

def repeat_heads_backward(dy: ArrayLike, repeats: int) -> np.ndarray:
    r"""Backward of repeat_heads: a head that was given to several gets the sum of their gradients.

        dx_g = Σ dy_h over the heads h of the group g

    dy (B, H, S, K)  ->  dx (B, G, S, K) with G = H / repeats
    """

def rms_norm(x: ArrayLike, gamma: ArrayLike, eps: float = 1e-06) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Scale each row to a mean square of 1, then by γ: layer_norm without centring and without β (Zhang & Sennrich
    2019).

        y = γ · x̂,    x̂ = x / √(mean(x²) + ε),    the mean over the last axis

    x (..., D), gamma (D,)  ->  y (..., D), x_hat (..., D), inv_rms (..., 1)
    The backward pass needs the last two.
    """

def rms_norm_backward(
    dy: ArrayLike,
    x_hat: ArrayLike,
    inv_rms: ArrayLike,
    gamma: ArrayLike,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Backward of rms_norm: layer_norm_backward without the path through the mean.

        dx = (dx̂ − x̂ · mean(dx̂ · x̂)) / √(mean(x²) + ε),    dx̂ = dy · γ

    dy (..., D)  ->  dx (..., D), dgamma (D,)
    """

def rnn(x: ArrayLike, w_x: ArrayLike, w_h: ArrayLike, b: ArrayLike | None = None) -> np.ndarray:
    r"""A recurrent layer: it reads one token after another and keeps the whole past in one vector (Elman 1990).

        h_t = tanh(x_t W_x + h_{t−1} W_h + b),    h_{−1} = 0

    x (B, T, D_in), w_x (D_in, D), w_h (D, D), b (D,) or None  ->  h (B, T, D)

    Each of the T steps waits for the one before; only x W_x can be computed for all at once.
    """

def rnn_backward(
    dh: ArrayLike,
    x: ArrayLike,
    h: ArrayLike,
    w_x: ArrayLike,
    w_h: ArrayLike,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    r"""Backward of rnn: backpropagation through time (Werbos 1990).

    h_t affects the loss directly and through h_{t+1}, so the gradient is computed from the last step to the first. a_t
    is the input of the tanh:

        da_t = (dh_t + da_{t+1} W_hᵀ) · (1 − h_t²),    dx_t = da_t W_xᵀ
        dW_x = Σ x_tᵀ da_t,    dW_h = Σ h_{t−1}ᵀ da_t,    db = Σ da_t    over all steps: each step used them

    Each step back multiplies by W_hᵀ · (1 − h²). That is why the gradient vanishes or explodes.

    dh (B, T, D), h (B, T, D) the forward's output  ->  dx (B, T, D_in), dw_x (D_in, D), dw_h (D, D), db (D,)
    """

def rotary(
    x: ArrayLike,
    positions: ArrayLike,
    theta: float = 10000.0,
    scaling: Mapping[str, str | float] | None = None,
    adjacent: bool = False,
) -> np.ndarray:
    r"""Turn each pair of features by an angle proportional to the position (Su et al. 2021, eq. 34).

        y₁ = x₁ cos(p ω) − x₂ sin(p ω),    y₂ = x₁ sin(p ω) + x₂ cos(p ω),    ωᵢ = θ^(−2i/K)

    x (..., T, K) with an even K, positions p (T,) or one for all rows, theta θ, scaling as in rotary_frequencies
    ->  y (..., T, K)

    The pair i is (xᵢ, xᵢ₊K/₂) as in Llama's files; adjacent=True pairs (x₂ᵢ, x₂ᵢ₊₁) as in the paper. The two differ by
    a permutation of the features. Turning a query by p and a key by s changes their product as turning the query
    alone by p − s would.
    """

def rotary_backward(
    dy: ArrayLike,
    positions: ArrayLike,
    theta: float = 10000.0,
    scaling: Mapping[str, str | float] | None = None,
    adjacent: bool = False,
) -> np.ndarray:
    r"""Backward of rotary: turn the gradient back. The transpose of a rotation is its inverse.

        dx₁ = dy₁ cos(p ω) + dy₂ sin(p ω),    dx₂ = −dy₁ sin(p ω) + dy₂ cos(p ω)

    dy (..., T, K)  ->  dx (..., T, K)
    """

def rotary_frequencies(K: int, theta: float = 10000.0, scaling: Mapping[str, str | float] | None = None) -> np.ndarray:
    r"""The angle by which each pair of features turns per position.

        ωᵢ = θ^(−2i/K),    i = 0 … K/2 − 1

    scaling: None, or how a model was stretched to longer texts, as a dictionary in the words of Llama's config.json:
        {"rope_type": "linear", "factor": f}    ω / f (Chen et al. 2023)
        {"rope_type": "llama3", "factor": f, "low_freq_factor": a, "high_freq_factor": b,
         "original_max_position_embeddings": n}    ω of pairs that turn more than b times within n positions, ω / f of
                                                   those that turn less than a times. In between, a pair that turns
                                                   t times has s ω + (1 − s) ω / f with s = (t − a)/(b − a)

    ->  (K/2,) float64

    Raises ValueError for an odd K, a theta that is not positive, or a scaling that is not supported.
    """

def scaled_dot_product_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    mask: np.ndarray | tuple[np.ndarray, ...] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Average the values for each query, weighted by how well the query fits their keys (Vaswani et al. 2017, eq. 1).

        out = A V,    A = softmax(Q Kᵀ / √d_k + M)

    q (..., T, K), k (..., S, K), v (..., S, K_v), mask broadcastable to (..., T, S)
    ->  out (..., T, K_v), weights A (..., T, S)

    The mask is Boolean (True hides) or float (added), or a tuple of such masks. If all keys are hidden from a query,
    its weights and its output are 0. tiled_attention computes the same output without the weights, for long sequences.
    """

def scaled_dot_product_attention_backward(
    dout: ArrayLike,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    weights: ArrayLike,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Backward of scaled_dot_product_attention. The mask is not needed: the weight of a hidden key is 0.

        dV = Aᵀ dout,    dA = dout Vᵀ,    dscores = softmax_backward(dA) / √d_k,    dQ = dscores K,    dK = dscoresᵀ Q

    dout (..., T, K_v)  ->  dq (..., T, K), dk (..., S, K), dv (..., S, K_v)
    """

def silu(x: ArrayLike) -> np.ndarray:
    r"""Sigmoid linear unit, or Swish (Elfwing et al. 2018): y = x σ(x), where σ(x) = 1/(1 + e⁻ˣ).

    x (...)  ->  y (...)
    """

def silu_backward(dy: ArrayLike, x: ArrayLike) -> np.ndarray:
    r"""Backward of silu, by the product rule: dx = dy · σ(x) (1 + x (1 − σ(x))).

    dy (...), x (...) the forward's input  ->  dx (...)
    """

def sinusoidal_encoding(length: int, d_model: int, dtype: DTypeLike = np.float32) -> np.ndarray:
    r"""Sinusoidal positional encoding (Vaswani et al. 2017, §3.5).

        PE(pos, 2i) = sin(pos / 10000^(2i/d_model)),    PE(pos, 2i+1) = cos(pos / 10000^(2i/d_model))

    i counts pairs of dimensions. The wavelengths grow geometrically from 2π towards 10000·2π positions. If d_model is
    odd, the last dimension is a sine.

    ->  (length, d_model) of the given dtype
    """

def softmax(x: ArrayLike, axis: int = -1) -> np.ndarray:
    r"""Turn scores into positive weights that add up to 1 along `axis`: y = exp(x) / Σ exp(x).

    x (...)  ->  y (...)

    The largest entry is subtracted first: y stays the same, and exp cannot overflow. An entry of −inf gets weight 0.
    If all entries are −inf, all weights are 0.
    """

def softmax_backward(dy: ArrayLike, y: ArrayLike, axis: int = -1) -> np.ndarray:
    r"""Backward of softmax.

    ∂yᵢ/∂xⱼ = yᵢ (δᵢⱼ − yⱼ), so every x affects every y:    dx = y · (dy − Σ dy · y)

    dy (...), y (...) the forward's output  ->  dx (...)
    """

def split_heads(x: ArrayLike, num_heads: int) -> np.ndarray:
    r"""Cut the features into heads: (B, T, D) -> (B, H, T, K) with D = H·K. The result is a view of x.
    """

def tanh(x: ArrayLike) -> np.ndarray:
    r"""(eˣ − e⁻ˣ) / (eˣ + e⁻ˣ), between −1 and 1, element by element.

    x (...), of any size: no overflow  ->  y (...)
    """

def tanh_backward(dy: ArrayLike, y: ArrayLike) -> np.ndarray:
    r"""Backward of tanh: dx = dy · (1 − y²).

    dy (...), y (...) the forward's output  ->  dx (...)
    """

def tiled_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    mask: np.ndarray | tuple[np.ndarray, ...] | None = None,
    tile: int = 256,
) -> tuple[np.ndarray, np.ndarray]:
    r"""softmax(Q Kᵀ / √d_k + M) V, without a matrix of scores (Rabe & Staats 2021; Dao et al. 2022, FlashAttention).

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

def tiled_attention_backward(
    dout: ArrayLike,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    out: ArrayLike,
    log_total: ArrayLike,
    mask: np.ndarray | tuple[np.ndarray, ...] | None = None,
    tile: int = 256,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Backward of tiled_attention. Each tile of the weights is computed again, which is cheaper than storing all of
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

def unscaled_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    bias: ArrayLike | None = None,
    mask: np.ndarray | tuple[np.ndarray, ...] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Attention as in T5: no 1/√d_k, and a bias on the scores, the same for the whole batch (Raffel et al. 2020, §2.1).

        out = A V,    A = softmax(Q Kᵀ + bias + M)

    q (B, H, T, K), k (B, H, S, K), v (B, H, S, K_v), bias (H, T, S) or None, mask broadcastable to (B, H, T, S)
    ->  out (B, H, T, K_v), weights A (B, H, T, S)

    Training works without the scale because the initial weights include it: W_q starts smaller by 1/√d_k, so the scores
    also start with variance 1, and Adam's step does not depend on the size of a gradient.
    """

def unscaled_attention_backward(
    dout: ArrayLike,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    weights: ArrayLike,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    r"""Backward of unscaled_attention. The bias was added to the scores of every batch row, so its gradients add up.

        dV = Aᵀ dout,    dscores = softmax_backward(dout Vᵀ)
        dQ = dscores K,    dK = dscoresᵀ Q,    dbias = Σ dscores over the batch

    dout (B, H, T, K_v)  ->  dq (B, H, T, K), dk (B, H, S, K), dv (B, H, S, K_v), dbias (H, T, S)
    """

def unscaled_scores(
    q: ArrayLike,
    k: ArrayLike,
    bias: ArrayLike | None = None,
    mask: np.ndarray | tuple[np.ndarray, ...] | None = None,
) -> np.ndarray:
    r"""Score how well each query fits each key as in T5: Q Kᵀ + bias, with the mask applied (Raffel et al. 2020, §2.1).

    q (B, H, T, K), k (B, H, S, K), bias (H, T, S) or None, mask broadcastable to (B, H, T, S)  ->  scores (B, H, T, S)
    """

def window_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    window: int,
    causal: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Attention to neighbours only, in O(T · window) time and memory (Vaswani et al. 2017, §4, "restricted").

        out_t = Σ_s A_ts V_s,    A = softmax(Q Kᵀ / √d_k) over the keys |t − s| ≤ window, and s ≤ t if causal

    q (..., T, K), k (..., T, K), v (..., T, K_v)
    ->  out (..., T, K_v), weights (..., T, R),  R = 2 · window + 1, or window + 1 if causal

    weights[..., t, j] is the weight of the key s = t − window + j, or 0 if there is no such key. A window larger than
    T − 1 is treated as T − 1. Raises ValueError for a window below 0. The result is the same as for
    scaled_dot_product_attention with masks.window_mask, but the (T, T) scores never exist: the queries are cut into
    blocks, each block meets the keys in its reach, and only the band along the diagonal of each product is used.
    """

def window_attention_backward(
    dout: ArrayLike,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    weights: ArrayLike,
    window: int,
    causal: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Backward of window_attention: scaled_dot_product_attention_backward, block by block. Several blocks used a key,
    so its gradients add up.

    dout (..., T, K_v), weights (..., T, R) the forward's second output
    ->  dq (..., T, K), dk (..., T, K), dv (..., T, K_v)
    """

def window_scores(q: ArrayLike, k: ArrayLike, window: int, causal: bool = False) -> np.ndarray:
    r"""Score each key in the window of each query, by distance; see window_attention.

        scores = Q Kᵀ / √d_k over the keys |t − s| ≤ window, and s ≤ t if causal

    q (..., T, K), k (..., T, K)  ->  scores (..., T, R), −inf where there is no key
    """

