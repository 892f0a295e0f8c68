"""The lecture's examples step by step, computed with the package's own layers in float64.

Every function returns all intermediate arrays by name, for notebooks, pictures and checks.
"""

from dataclasses import dataclass

import numpy as np

from .. import functional as F
from ..inspection.samples import small_model
from ..layers import FeedForward, LayerNorm, MultiHeadAttention, PositionalEncoding
from ..masks import causal_mask
from . import printed

# --- self-attention -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AttentionSteps:
    """One forward of a MultiHeadAttention, H heads over T words (Vaswani et al. 2017, §3.2).

    x (T, D)  ->  q, k, v (H, T, K)  ->  scores = Q Kᵀ/√d_k (H, T, T)  ->  weights = softmax(scores) (H, T, T)
    ->  heads = weights · V (H, T, K)  ->  concat (T, D)  ->  output = concat · W_O (T, D)
    """

    words: tuple
    layer: MultiHeadAttention
    x: np.ndarray
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    scores: np.ndarray
    weights: np.ndarray
    heads: np.ndarray
    concat: np.ndarray
    output: np.ndarray


def five_words():
    """Self-attention over "Lucas will travel in December", one head, d_k = d_model = 4 (lecture notes §4).

    W^Q, W^K and W^V are the printed ones. W_O is the identity, because §4 has none.
    """
    layer = MultiHeadAttention(4, 1, bias=False, rng=0, dtype=np.float64)
    layer.w_q, layer.w_k, layer.w_v = printed.FIVE_PROJECTIONS.values
    layer.w_o = np.eye(4)
    return _attention_steps(printed.FIVE_WORDS, layer, printed.FIVE_EMBEDDINGS.values)


def three_heads():
    """Multi-head attention over "Lucas will travel", h = 3, d_model = 9, d_k = 3 (lecture notes §5).

    The notes print Q_i, K_i, V_i but no weights. X_e has three independent rows, so some weights map it to any three
    rows; W = pinv(X_e) · Q are the smallest. W_O is not printed either; here it is the identity.
    """
    x = printed.THREE_EMBEDDINGS.values  # (T, D)
    layer = MultiHeadAttention(9, 3, bias=False, rng=0, dtype=np.float64)
    sought = F.merge_heads(printed.THREE_QKV.values)  # (3, T, D): the heads side by side
    layer.w_q, layer.w_k, layer.w_v = weights_between(x, sought)
    layer.w_o = np.eye(9)
    return _attention_steps(printed.THREE_WORDS, layer, x)


def weights_between(x, y):
    """The smallest W with x W = y, by the pseudo-inverse: W = pinv(x) · y. Exact if the rows of x are independent.

    x (T, D_in), y (..., T, D_out)  ->  W (..., D_in, D_out)
    """
    return np.linalg.pinv(x) @ y


def _attention_steps(words, layer, x):
    output = layer(x[None])[0]
    q, k, v, weights, concat = layer.kept("q", "k", "v", "weights", "concat")
    heads = F.split_heads(concat, layer.num_heads)
    scores = F.attention_scores(q, k)
    return AttentionSteps(words, layer, x, q[0], k[0], v[0], scores[0], weights[0], heads[0], concat[0], output)


@dataclass(frozen=True, eq=False)
class ScoreSteps:
    """From dot products to weights: scores (T, S)  ->  scaled = scores/√d_k  ->  weights = softmax(scaled)."""

    words: tuple
    d_k: float
    scores: np.ndarray
    scaled: np.ndarray
    weights: np.ndarray


def two_words():
    """ "Thinking" attends to "Thinking" and "Machines" (illustrated slides): T = 1, S = 2, d_k = 64.

    Only the dot products are printed. Here the query is all ones and each key is constant, so that they have these
    products.
    """
    d_k = printed.TWO_WORDS_D_K
    q = np.ones((1, d_k))  # (T, K)
    k = np.outer(printed.TWO_SCORES.values[0] / d_k, np.ones(d_k))  # (S, K)
    _, weights = F.scaled_dot_product_attention(q, k, np.eye(2))
    return ScoreSteps(printed.TWO_WORDS, d_k, q @ k.T, F.attention_scores(q, k), weights)


def four_words(d_k=None):
    """The scores of "Hi how are you" (architecture slides) and the weights that follow for a d_k, T = S = 4.

    The slides do not give d_k. None means the d_k from 1 to 10⁸ with the smallest largest difference to the printed
    weights.
    """
    scores = printed.FOUR_SCORES.values
    low, high = 0.0, 8.0  # log₁₀ d_k
    while d_k is None:
        tried = np.linspace(low, high, 2001)
        weights = F.softmax(scores / 10.0 ** (tried / 2)[:, None, None])  # (2001, T, S)
        best = np.abs(weights - printed.FOUR_WEIGHTS.values).max(axis=(1, 2)).argmin()
        low, high = tried[max(0, best - 1)], tried[min(2000, best + 1)]  # around the best of the grid
        if high - low < 1e-9:
            d_k = 10.0 ** tried[best]
    scaled = scores / d_k**0.5
    return ScoreSteps(printed.FOUR_WORDS, d_k, scores, scaled, F.softmax(scaled))


def order_broken(scores, weights):
    """The rows in which a larger score has a smaller weight, as (..., row) indices.

    Softmax keeps the order of a row's scores, for every positive divisor, and so does rounding.

    scores, weights (..., T, S)  ->  list of tuples
    """
    larger_score = scores[..., :, None] > scores[..., None, :] + 1e-12  # (..., T, S, S), ties left out
    smaller_weight = weights[..., :, None] < weights[..., None, :]
    return [tuple(int(i) for i in row) for row in np.argwhere((larger_score & smaller_weight).any(axis=(-2, -1)))]


def hidden_row():
    """The weights of a row whose keys are all masked, computed in three ways (the first row of lecture notes §4).

        "textbook":  −∞ in exp(x)/Σ exp(x) as written: 0/0, NaN
        "finite":    the hidden scores set to −1e8 (lecture slides): all equal, so every weight is 1/S
        "package":   a Boolean mask: every weight is 0

    ->  {name: (S,)}
    """
    steps = five_words()
    scores = steps.scores[0, :1]  # (1, S)
    hidden = np.ones(scores.shape, bool)
    with np.errstate(invalid="ignore"):
        textbook = textbook_softmax(np.where(hidden, -np.inf, scores))
    finite = F.softmax(np.where(hidden, printed.FINITE_MASK.values, scores))
    _, package = F.scaled_dot_product_attention(steps.q[0, :1], steps.k[0], steps.v[0], hidden)
    return {"textbook": textbook[0], "finite": finite[0], "package": package[0]}


def textbook_softmax(x):
    """exp(x)/Σ exp(x) over the last axis as written, to check the package's softmax."""
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


def masked_weights():
    """Causal attention over the five words, T = S = 5, in three ways: M added (lecture notes §9), hidden scores set to
    −1e8 (lecture slides), a Boolean mask  ->  {"added" | "finite" | "package": (T, S)}
    """
    steps = five_words()
    q, k, v = steps.q[0], steps.k[0], steps.v[0]  # (T, K)
    hidden = causal_mask(len(q))
    return {
        "added": F.scaled_dot_product_attention(q, k, v, printed.MASK.values)[1],
        "finite": F.softmax(np.where(hidden, printed.FINITE_MASK.values, F.attention_scores(q, k))),
        "package": F.scaled_dot_product_attention(q, k, v, hidden)[1],
    }


# --- positional encoding and feed-forward ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PositionSteps:
    """encoding (T, D) of the positions 0 … T−1; output (T, D) = x + encoding (Vaswani et al. 2017, §3.5)."""

    words: tuple
    layer: PositionalEncoding
    x: np.ndarray
    encoding: np.ndarray
    output: np.ndarray


def five_positions():
    """Positional encoding of the five words, d_model = 4 (lecture notes §6), added to their X_e of §4."""
    layer = PositionalEncoding(4, 5, dtype=np.float64)
    x = printed.FIVE_EMBEDDINGS.values
    return PositionSteps(printed.FIVE_WORDS, layer, x, layer.table, layer(x[None])[0])


def nearest_return(d_model=4, length=100_000):
    """The position below `length` whose encoding is nearest to the encoding of position 0, and the Euclidean distance:
    (position, distance)."""
    encoding = F.sinusoidal_encoding(length, d_model, np.float64)  # (length, D)
    distance = np.linalg.norm(encoding[1:] - encoding[0], axis=-1)
    nearest = int(distance.argmin())
    return nearest + 1, float(distance[nearest])


@dataclass(frozen=True, eq=False)
class FeedForwardSteps:
    """x (T, D)  ->  before = x W_1 + b_1 (T, F)  ->  hidden = max(0, before)  ->  output = hidden W_2 + b_2 (T, D)."""

    words: tuple
    layer: FeedForward
    x: np.ndarray
    before: np.ndarray
    hidden: np.ndarray
    output: np.ndarray


def feed_forward_example():
    """The feed-forward network over "Lucas will travel", d_model = 4, d_ff = 8 (lecture notes §7).

    Neither weights nor biases are printed. The rows of C and those after the ReLU are independent, so W_1 = pinv(C) ·
    (C W_1) and W_2 = pinv(hidden) · output with b = 0 map each printed matrix to the next.
    """
    x = printed.FEED_FORWARD_INPUT.values
    layer = FeedForward(4, 8, rng=0, dtype=np.float64)
    layer.w1 = weights_between(x, printed.FEED_FORWARD_BEFORE.values)
    layer.w2 = weights_between(F.relu(printed.FEED_FORWARD_BEFORE.values), printed.FEED_FORWARD_OUTPUT.values)
    output = layer(x[None])[0]
    before = F.linear(x, layer.w1.data, layer.b1.data)  # (T, F)
    return FeedForwardSteps(printed.THREE_WORDS, layer, x, before, layer.kept("hidden")[0], output)


# --- the blocks of a Transformer ------------------------------------------------------------------------------------


def encodings():
    """The numbers of positional encodings in an encoder block, a decoder block, and a Transformer of 6 + 6 blocks."""
    model = small_model("Transformer", num_encoder_layers=6, num_decoder_layers=6)
    return tuple(
        sum(isinstance(module, PositionalEncoding) for _, module in part.named_modules())
        for part in (model.encoder[0], model.decoder[0], model)
    )


def block_parts():
    """The parts of an encoder block and a decoder block, found by inspecting a small Transformer after a forward on a
    source of 5 and a target of 3 tokens (Vaswani et al. 2017, fig. 1).

    ->  {part: (how many in the encoder block, how many in the decoder block)}
    """
    model = small_model("Transformer")
    model(np.array([[4, 5, 6, 7, 2]]), np.array([[1, 8, 9]]))
    columns = []
    for block in (model.encoder[0], model.decoder[0]):
        modules = [module for _, module in block.named_modules()]
        attentions = [module.weights for module in modules if isinstance(module, MultiHeadAttention)]  # (B, H, T, S)
        square = [weights for weights in attentions if weights.shape[-2] == weights.shape[-1]]
        masked = sum(not np.triu(weights, 1).any() for weights in square)
        kinds = (sum(isinstance(module, kind) for module in modules) for kind in (FeedForward, LayerNorm))
        columns.append((masked, len(attentions) - len(square), *kinds))
    names = "masked self-attention", "cross-attention", "feed-forward network", "layer normalisation"
    return dict(zip(names, zip(*columns, strict=True), strict=True))


def attention_memory(n, num_heads, d_model=16):
    """The attention weights that one layer keeps for a sequence of n tokens: (count, bytes in float32)."""
    layer = MultiHeadAttention(d_model, num_heads, rng=0)
    layer(np.random.default_rng(0).normal(size=(1, n, d_model)).astype(np.float32))
    return layer.weights.size, layer.weights.nbytes


def powers_of_memory(n=16, num_heads=4):
    """The powers a, b in "attention weights ∝ nᵃ hᵇ", measured by doubling n and h separately."""
    size = attention_memory(n, num_heads)[0]
    longer, wider = attention_memory(2 * n, num_heads)[0], attention_memory(n, 2 * num_heads)[0]
    return float(np.log2(longer / size)), float(np.log2(wider / size))
