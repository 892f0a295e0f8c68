"""Checks of what the lecture's documents say in words. Each returns whether the true statement holds here; for a slip
that is the corrected one. `statements.toml` names them."""

import numpy as np

from .. import functional as F
from ..data import shift_right
from ..decoding import greedy_decode
from ..inspection.samples import small_model
from ..layers import RNN, Embedding, FeedForward, MultiHeadAttention, PositionalEncoding
from ..layers.blocks import AddNorm, DecoderBlock, EncoderBlock
from ..masks import causal_mask, padding_mask
from ..models import TransformerConfig
from ..notebooks.texts import results
from . import steps


def _normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def random_table():
    one, other = (Embedding(7, 4, rng=seed).table.data for seed in (0, 1))
    return not np.allclose(one, other)


def table_is_learned():
    """The embedding has a gradient like every other weight of the model."""
    model = _model()
    model.train().backward(np.ones_like(model(np.array([[4, 5, 2]]), np.array([[1, 5]]))))
    return bool(model.src_input.embedding.table.grad[[4, 5, 2]].all())


def rows_are_words():
    """The rows that are looked up are X_e = one-hot rows · E; with words as columns it would be Eᵀ X."""
    table, ids = _normal(7, 4), np.array([3, 1, 3])
    rows = np.eye(7)[ids] @ table
    return np.array_equal(F.embedding(ids, table), rows) and np.array_equal((table.T @ np.eye(7)[ids].T).T, rows)


def equivariant():
    """Reordered words get reordered outputs, not the same ones; their mean is the same."""
    x, order, layer = _normal(1, 5, 8), [3, 0, 4, 1, 2], MultiHeadAttention(8, 2, rng=0, dtype=np.float64)
    moved, plain = layer(x[:, order]), layer(x)
    reordered = np.allclose(moved, plain[:, order]) and not np.allclose(moved, plain)
    return reordered and np.allclose(moved.mean(axis=1), plain.mean(axis=1))


def encoding_formula():
    """10000^(2i/d) divides the position, and i counts pairs of dimensions."""
    table, pos, i = F.sinusoidal_encoding(9, 8, np.float64), np.arange(9)[:, None], np.arange(4)
    angle = pos / 10000 ** (2 * i / 8)
    return np.allclose(table[:, 0::2], np.sin(angle)) and np.allclose(table[:, 1::2], np.cos(angle))


def wavelengths():
    """The longest is 10000^((d − 2)/d) · 2π: 100 · 2π for d = 4, 9647 · 2π for d = 512."""
    longest = [10000 ** ((d - 2) / d) for d in (4, 512)]
    slowest = [F.sinusoidal_encoding(2, d, np.float64)[1, d - 2] for d in (4, 512)]
    return np.allclose(np.arcsin(slowest), 1 / np.array(longest)) and np.allclose(np.round(longest), [100, 9647])


def shift_is_linear():
    """PE(pos + k) = PE(pos) R_k with one R_k for all positions."""
    table = F.sinusoidal_encoding(60, 8, np.float64)
    rotation = np.linalg.lstsq(table[:-7], table[7:], rcond=None)[0]
    return np.allclose(table[:-7] @ rotation, table[7:])


def unique_and_bounded():
    table = F.sinusoidal_encoding(2000, 4, np.float64)
    distances = np.linalg.norm(table[:, None] - table[None, :200], axis=-1)
    return np.abs(table).max() <= 1 and (distances + 9 * np.eye(2000)[:, :200]).min() > 1e-4


def feed_forward_formula():
    layer, x = FeedForward(8, 32, rng=0, dtype=np.float64), _normal(2, 3, 8)
    w1, b1, w2, b2 = (p.data for p in (layer.w1, layer.b1, layer.w2, layer.b2))
    return np.allclose(layer(x), np.maximum(0, x @ w1 + b1) @ w2 + b2)


def feed_forward_shapes():
    """FFN(C) = C W₂ cannot be: (3, 4) · (8, 4). The second factor is the hidden row."""
    example = steps.feed_forward_example()
    return example.output.shape == (3, 4) and example.hidden.shape == (3, 8)


def position_wise():
    layer, x = FeedForward(8, 32, rng=0, dtype=np.float64), _normal(2, 3, 8)
    return np.allclose(layer(x)[:, 1:2], layer(x[:, 1:2]))


def base_model():
    config = TransformerConfig(9, 9)
    stacks = config.num_heads, config.num_encoder_layers, config.num_decoder_layers
    return stacks == (8, 6, 6) and config.d_model == 512 and config.d_ff == 2048 == 4 * 512


def post_norm():
    x, layer, norm = _normal(2, 3, 8), FeedForward(8, 16, rng=0, dtype=np.float64), AddNorm(8, dtype=np.float64)
    y = x + layer(x)
    centred = y - y.mean(axis=-1, keepdims=True)
    return np.allclose(norm(x, layer), centred / np.sqrt(y.var(axis=-1, keepdims=True) + 1e-5))


def path_around_each_sublayer():
    """An encoder block has two residual paths, a decoder block three."""
    blocks = EncoderBlock(8, 2, 16), DecoderBlock(8, 2, 16)
    return [sum(isinstance(m, AddNorm) for _, m in block.named_modules()) for block in blocks] == [2, 3]


def batch_norm_can():
    """Padded positions left out, batch norm is computed for rows of any lengths."""
    x, real = _normal(2, 5, 3), np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], bool)
    normed = (x - x[real].mean(axis=0)) / x[real].std(axis=0)
    return np.allclose(normed[real].mean(axis=0), 0) and np.allclose(normed[real].std(axis=0), 1)


def attention_formula():
    """Scores divided by √d_k, a softmax over each row, and the weights times the values."""
    q, k, v = _normal(3, 16), _normal(5, 16, seed=1), _normal(5, 6, seed=2)
    out, weights = F.scaled_dot_product_attention(q, k, v)
    exponentials = np.exp(q @ k.T / 4)
    expected = exponentials / exponentials.sum(axis=-1, keepdims=True)  # (3, 5)
    return np.allclose(weights, expected) and np.allclose(out, expected @ v)


def minus_1e8():
    scores = _normal(4, 4)
    finite = F.softmax(np.where(causal_mask(4), -1e8, scores))
    return np.allclose(finite, F.softmax(np.where(causal_mask(4), -np.inf, scores)))


def head_shapes():
    """Eight heads of 64 features, side by side 512; W_O keeps that shape."""
    layer = MultiHeadAttention(512, 8, rng=0)
    output = layer(_normal(1, 5, 512).astype(np.float32))
    inside = layer.intermediates()
    return inside["q"].shape == (1, 8, 5, 64) and inside["concat"].shape == output.shape == (1, 5, 512)


def heads_read_all_features():
    """The first head's query depends on every feature of the embedding, not on a slice of it."""
    layer, x = MultiHeadAttention(9, 3, rng=0, dtype=np.float64), _normal(1, 3, 9)
    layer(x)
    before = layer.intermediates()["q"][0, 0].copy()
    for feature in range(9):
        other = x.copy()
        other[..., feature] += 1
        layer(other)
        if np.allclose(layer.intermediates()["q"][0, 0], before):
            return False
    return True


def shifted_right():
    given, asked = shift_right([5, 6, 7])
    return list(given) == [1, 5, 6, 7] and list(asked) == [5, 6, 7, 2]


def _model(name="Transformer"):
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 16, "dropout": 0.0, "dtype": "float64"}
    return small_model(name, **sizes, **({"num_encoder_layers": 2} if name == "Transformer" else {})).eval()


def no_future():
    model, src, tgt = _model(), np.array([[4, 5, 2]]), np.array([[1, 5, 6, 7]])
    before, other = model(src, tgt), tgt.copy()
    other[0, 2] = 8
    differs = (model(src, other) != before).any(axis=(0, 2))
    return not differs[:2].any() and bool(differs[2])


def parallel_training():
    """One pass over the shifted target gives what one pass per beginning gives."""
    model, src, tgt = _model(), np.array([[4, 5, 2]]), np.array([[1, 5, 6, 7]])
    return np.allclose(model(src, tgt)[:, -2], model(src, tgt[:, :3])[:, -1])


def memory_is_encoder_output():
    """Keys and values of the cross-attention are made from the encoder's output, not from the embedded input."""
    model, src, tgt = _model(), np.array([[4, 5, 6, 2]]), np.array([[1, 5]])
    memory, block = model.encode(src), model.decoder[0].cross_attention
    model.eval(keep=True)(src, tgt)
    key = F.split_heads(memory @ block.w_k + block.b_k, 2)
    embedded = F.split_heads(model.src_input(src) @ block.w_k + block.b_k, 2)
    kept = model.intermediates()["decoder.0.cross_attention.k"]
    return np.allclose(kept, key) and not np.allclose(kept, embedded)


def probability_vector():
    """The softmax at the top gives V probabilities, one per token of the vocabulary: no embedding."""
    p = F.softmax(_model()(np.array([[4, 5, 2]]), np.array([[1, 5]])))
    return p.shape == (1, 2, 13) and np.allclose(p.sum(axis=-1), 1)


def padding_is_hidden():
    model, tgt = _model(), np.array([[1, 5]])
    same = np.allclose(model(np.array([[4, 5, 2]]), tgt), model(np.array([[4, 5, 2, 0, 0]]), tgt))
    return same and bool(padding_mask(np.array([[4, 0]]), 0)[0, 0, 0, 1])


def _layers_to_reach(layer, n):
    """How many of a layer, one above the other, until the last of n outputs depends on the first input."""
    x = _normal(1, n, 4)
    changed, layers = x.copy(), 0
    changed[:, 0] += 1
    while layers < n and np.array_equal(x[:, -1], changed[:, -1]):
        x, changed, layers = layer(x, layers), layer(changed, layers), layers + 1
    return layers


def path_lengths():
    """Layers on the path from the first of 17 positions to the last: attention, windows of 4, dilated kernels of 4."""
    kernel = _normal(4, 4, 4)
    found = [
        _layers_to_reach(lambda x, _: F.scaled_dot_product_attention(x, x, x)[0], 17),
        _layers_to_reach(lambda x, _: F.window_attention(x, x, x, 4, causal=True)[0], 17),
        _layers_to_reach(lambda x, i: F.causal_conv1d(x, kernel, np.zeros(4), dilation=4**i), 17),
    ]
    return found == [1, 4, 3]  # O(1), O(n/r), O(log_k n)


def vanishing_gradient():
    """Through a recurrent layer the gradient shrinks with the distance; an attention layer passes it on in one step."""
    norms = {}
    for name, layer in (("recurrent", RNN(16, 16, rng=0, dtype=np.float64)), ("attention", MultiHeadAttention(16, 2))):
        dout = np.zeros((1, 40, 16), np.float64)
        dout[:, -1] = 1
        layer.astype(np.float64)(_normal(1, 40, 16))
        dx = layer.backward(dout)
        norms[name] = np.linalg.norm(dx[0] if isinstance(dx, tuple) else dx, axis=-1)[0]  # (40,)
    return norms["recurrent"][0] < 1e-3 * norms["recurrent"][-1] and norms["attention"][:-1].min() > 1e-3


def short_sequences():
    return all((n * n * 512 < n * 512 * 512) == (n < 512) for n in (32, 511, 512, 513, 8192))


def quadratic_memory():
    return steps.powers_of_memory() == (2, 1) and steps.attention_memory(512, 1)[0] == 512 * 512


def any_length():
    """The length is limited, not fixed: one model reads sentences of several lengths."""
    model = _model()
    return [model(np.full((1, n), 4), np.array([[1, 5]])).shape for n in (1, 3, 9)] == [(1, 2, 13)] * 3


def relatives():
    """GPT: decoder blocks without cross-attention, no token sees a later one. BERT: encoder blocks, each sees all."""
    ids, other = np.array([[4, 5, 6, 7]]), np.array([[4, 5, 6, 8]])
    gpt, bert = _model("GPT"), _model("Bert")
    return np.array_equal(gpt(ids)[:, :3], gpt(other)[:, :3]) and not np.allclose(bert(ids)[:, :3], bert(other)[:, :3])


def recurrent_decoder():
    """Transformer-XL: two segments with the memory give what one long segment gives."""
    model = _model("TransformerXL")
    ids = np.array([[1, 2, 3, 4, 5, 6]])
    _, memory = model(ids[:, :3])
    return np.allclose(model(ids[:, 3:], memory)[0], model(ids)[0][:, 3:], atol=1e-5)


def encoding_once():
    """One embedding and one positional encoding for the source, and one each for the target, below all blocks."""
    modules = [module for _, module in _model().named_modules()]
    numbers = [sum(isinstance(module, kind) for module in modules) for kind in (Embedding, PositionalEncoding)]
    return len(_model().encoder) == 2 and numbers == [2, 2]


def square_projections_of_four():
    """X (2, 4) times a (4, 3) matrix is (2, 3). A (4, 4) matrix would give (2, 4), as it does for Q."""
    return (np.ones((2, 4)) @ np.ones((4, 3))).shape == (2, 3) and (np.ones((2, 4)) @ np.ones((4, 4))).shape == (2, 4)


def one_vector_per_word():
    """An encoder makes a vector for each source word; the decoder reads them all, and the tokens written so far."""
    model, src = _model(), np.array([[4, 5, 6, 2]])
    other = src.copy()
    other[0, 3] = 7
    logits = [model(ids, np.array([[1, 5]])) for ids in (src, other)]
    return model.encode(src).shape == (1, 4, 8) and not np.allclose(*logits)


def every_pair_has_a_score():
    layer = MultiHeadAttention(8, 2, rng=0)
    layer(_normal(1, 5, 8).astype(np.float32))
    return layer.weights.shape == (1, 2, 5, 5) and bool((layer.weights > 0).all())


def three_projections():
    """Query, key and value are three linear maps of the same rows, computed for all rows at once."""
    layer, x = MultiHeadAttention(8, 1, rng=0, dtype=np.float64), _normal(1, 5, 8)
    layer(x)
    found, biases = layer.intermediates(), (layer.b_q, layer.b_k, layer.b_v)
    matrices = layer.w_q, layer.w_k, layer.w_v
    return all(np.allclose(found[n][0, 0], x[0] @ w + b) for n, w, b in zip("qkv", matrices, biases, strict=True))


def heads_can_differ():
    """Two heads of one layer have weights of their own on the same words."""
    layer = MultiHeadAttention(8, 2, rng=0)
    layer(_normal(1, 5, 8).astype(np.float32))
    return not np.allclose(layer.weights[0, 0], layer.weights[0, 1], atol=1e-3)


def fast_and_slow_dimensions():
    """At d_model = 4 the first pair turns 100 times as fast as the last."""
    steps_taken = np.abs(np.diff(F.sinusoidal_encoding(50, 4, np.float64), axis=0)).max(axis=0)
    return steps_taken[:2].min() > 40 * steps_taken[2:].max()


def feed_forward_has_most_parameters():
    """At d_ff = 4 · d_model it has twice as many numbers as the four matrices of the attention."""
    sizes = FeedForward(32, 128).num_parameters(), MultiHeadAttention(32, 4).num_parameters()
    return 1.9 < sizes[0] / sizes[1] < 2.1


def decoder_parts():
    """Self-attention under a mask, cross-attention and feed-forward network, each with its Add & Norm."""
    attentions = [m for _, m in DecoderBlock(8, 2, 16).named_modules() if isinstance(m, MultiHeadAttention)]
    return len(attentions) == 2 and path_around_each_sublayer() and no_future()


def teacher_forcing_helps():
    """In the stored experiment of notebook 07: with each seed more sequences are right than after own words."""
    forced, own = ([run["right"] for run in results("07")[name]] for name in ("teacher forcing", "own words"))
    return min(forced) > max(own)


def sinusoids_do_not_extrapolate():
    """In the stored experiment of notebook 15: far beyond the training length the loss is worse than counting pairs."""
    runs = [run["by_position"] for run in results("15")["2017"]]
    return min(np.mean(run[96:]) for run in runs) > 2.4 > 1.7 > max(np.mean(run[:32]) for run in runs)


def one_token_at_a_time():
    """In use the decoder appends its own token and runs again, until the end token or the longest length."""
    model, written = _model(), [1]
    while written[-1] != 2 and len(written) < 6:
        written.append(int(model(np.array([[4, 5, 2]]), np.array([written]))[0, -1].argmax()))
    wanted = [token for token in written[1:] if token != 2]
    return greedy_decode(model, np.array([[4, 5, 2]]), max_len=5)[0] == wanted


def argmax_of_the_logits():
    """The softmax keeps the order: the index of the largest logit is that of the largest log-probability."""
    logits = _normal(20, 13)
    return np.array_equal(logits.argmax(axis=-1), np.log(F.softmax(logits)).argmax(axis=-1))


def sum_of_two_vectors():
    """The encoder's input is embedding plus positional encoding, of the same shape."""
    model, src = _model(), np.array([[4, 5, 6, 2]])
    table = model.src_input.embedding.table.data
    return np.allclose(model.src_input(src)[0], table[src[0]] * 8**0.5 + F.sinusoidal_encoding(4, 8, np.float64))
