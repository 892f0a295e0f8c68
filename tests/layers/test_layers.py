"""Every layer: gradients of its inputs and of each parameter, modes, dtype; what single layers are made of."""

import numpy as np
import pytest
from shared import peak_of

from transformer_np import functional as F
from transformer_np import layers
from transformer_np.inspection import check_layer
from transformer_np.inspection.gradcheck import check_gradients
from transformer_np.inspection.samples import LAYERS, layer_of
from transformer_np.layers import Dropout, Embedding, FeedForward, LayerNorm, Linear, PositionalEncoding, initial
from transformer_np.layers.blocks import AddNorm, EncoderBlock, composed
from transformer_np.masks import causal_mask, window_mask
from transformer_np.module import Module

B, T, D, H, FF = 2, 3, 10, 5, 7

ATTENTION = "w_q b_q w_k b_k w_v b_v w_o b_o"
PARAMETERS = {  # the names that others read and set
    **{"Linear": "w b", "Embedding": "table", "TiedLinear": "table", "LearnedPositionalEmbedding": "table"},
    **{"LayerNorm": "gamma beta", "LayerNorm without bias": "gamma", "RMSNorm": "gamma", "Linear without bias": "w"},
    **{"FeedForward": "w1 b1 w2 b2", "FeedForward without bias": "w1 w2", "FeedForward, gated": "w_gate w1 w2"},
    **{"MultiHeadAttention": ATTENTION, "WindowAttention": ATTENTION, "GroupedQueryAttention": ATTENTION},
    **{"MultiHeadAttention without bias": "w_q w_k w_v w_o", "RNN": "w_x w_h b", "CausalConv1d": "w b"},
    **{"RelativeMultiHeadAttention": "w_q w_k w_v w_o w_r u v", "RelativePositionBias": "table", "Dropout": ""},
    **{"UnscaledAttention with a bias": "w_q w_k w_v w_o relative_bias.table", "PositionalEncoding": "", "LoRA": "a b"},
}


@pytest.mark.parametrize("entries", [10, pytest.param(None, marks=pytest.mark.release)])
@pytest.mark.parametrize("name", LAYERS)
def test_the_contract(name, rng, entries):
    """All that the package asks of a layer, the gradients among it, and nothing to advise."""
    layer, inputs = layer_of(name, rng)
    assert not check_layer(layer, *inputs, max_entries=entries).advice
    assert not entries or name not in PARAMETERS or sorted(layer.state_dict()) == sorted(PARAMETERS[name].split())


def test_no_layer_is_forgotten():
    made = {type(make(rng=0)).__name__ for make, *_ in LAYERS.values()} - {"EncoderBlock", "DecoderBlock"}
    classes = {name for name in layers.__all__ if isinstance(getattr(layers, name), type)}
    assert made == {name for name in classes if issubclass(getattr(layers, name), Module)}


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "Dropout"])
def test_same_seed_same_bits(rng, name):
    make, *_ = LAYERS[name]
    one, same, generator, other = (make(rng=seed) for seed in (3, 3, np.random.default_rng(3), 4))
    states = [layer.state_dict() for layer in (one, same, generator, other)]
    assert {p.dtype for p in one.parameters()} <= {np.dtype("float32")}
    assert {p.dtype for p in make(rng=3, dtype="float64").parameters()} <= {np.dtype("float64")}
    for key, values in states[0].items():
        assert np.array_equal(values, states[1][key]) and np.array_equal(values, states[2][key])
        drawn = np.ptp(values) > 0 and not key.startswith("relative_bias")
        assert np.array_equal(values, states[3][key]) != drawn


# --- one by one ------------------------------------------------------------------------------------------------------


def test_values_at_the_start():
    assert not Linear(D, FF).b.data.any()
    assert abs(Linear(300, 200, rng=0).w.data).max() == pytest.approx((6 / 500) ** 0.5, rel=1e-3)
    assert Embedding(300, 100, rng=0).table.data.std() == pytest.approx(0.1, rel=0.05)
    biases = initial.uniform(0, (3000,), 0.5, np.float32)
    assert (biases.min(), biases.max(), biases.mean()) == (pytest.approx((-0.5, 0.5, 0), abs=0.02))
    assert LayerNorm(D).gamma.data.tolist() == [1] * D
    assert LayerNorm(D).beta.data.tolist() == [0] * D


@pytest.mark.parametrize("start", [0, 2, 6])
def test_positions_start_where_told(rng, random_module, start):
    x = rng.normal(size=(B, T, D))
    fixed = PositionalEncoding(D, 9, dtype=np.float64)
    learned = random_module(layers.LearnedPositionalEmbedding(9, D, dtype=np.float64))
    for t in range(T):
        np.testing.assert_array_equal(fixed(x, start)[:, t], x[:, t] + F.sinusoidal_encoding(9, D, float)[start + t])
        np.testing.assert_array_equal(learned(x, start)[:, t], x[:, t] + learned.table.data[start + t])
    assert check_gradients(learned, x, start=start).passed
    learned.backward(x)
    assert np.array_equal(np.flatnonzero(learned.table.grad.any(axis=1)), np.arange(start, start + T))


def test_dropout_passes_everything_on_in_eval(rng):
    x, layer = rng.normal(size=(2, 3)), Dropout(0.4, rng=0).eval()
    assert np.array_equal(layer(x), x) and np.array_equal(layer.backward(x), x)


# --- attention -------------------------------------------------------------------------------------------------------


def test_queries_and_keys_are_normalised_before_they_are_turned(rng):
    layer = layers.GroupedQueryAttention(12, 3, False, 0, np.float64, num_kv_heads=1, rotary={}, norm_eps=1e-6)
    layer.norm_q.gamma, layer.norm_k.gamma = rng.uniform(0.5, 2, size=4), rng.uniform(0.5, 2, size=4)
    x = rng.normal(size=(2, 5, 12))
    layer(x)
    q, k, v = (layer.intermediates()[name] for name in "qkv")
    for heads, w, gamma in ((q, layer.w_q, layer.norm_q.gamma), (k, layer.w_k, layer.norm_k.gamma)):
        plain = F.split_heads(x @ w.data, w.shape[1] // 4)
        plain = gamma.data * plain / np.sqrt((plain**2).mean(axis=-1, keepdims=True) + 1e-6)
        np.testing.assert_allclose(heads, F.rotary(plain, np.arange(5)))
    np.testing.assert_allclose(v, F.split_heads(x @ layer.w_v.data, 1))


OTHERS = {  # options that no model has: a layer of width D, and the lengths of its inputs
    "adjacent pairs": (lambda: layers.GroupedQueryAttention(D, H, rotary={"theta": 20.0, "adjacent": True}), (5,)),
    "no output bias": (lambda: layers.GroupedQueryAttention(D, H, d_head=4, output_bias=False), (5,)),
    "groups of a memory": (lambda: layers.GroupedQueryAttention(D, 6, d_head=4, num_kv_heads=2), (3, 5)),
    "silu": (lambda: FeedForward(D, FF, "silu", bias=False), (5,)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_layers_with_other_options(random_module, rng, name):
    make, lengths = OTHERS[name]
    layer, inputs = random_module(make()), [rng.normal(size=(2, n, D)).astype("float32") for n in lengths]
    mask = {"mask": causal_mask(5)} if lengths == (5,) and name != "silu" else {}
    assert check_layer(layer, *inputs, max_entries=6, **mask).passed
    assert getattr(layer, "b_o", None) is None or name != "no output bias"


def encoding(distance, D):
    """The sinusoids of a distance, one dimension after another."""
    angles = [distance / 10000 ** ((i - i % 2) / D) for i in range(D)]
    return np.array([np.cos(angle) if i % 2 else np.sin(angle) for i, angle in enumerate(angles)])


@pytest.mark.parametrize("with_memory", [True, False])
def test_relative_attention_against_a_double_loop(random_module, rng, with_memory):
    D, H, M = 18, 3, 5
    layer = random_module(layers.RelativeMultiHeadAttention(D, H, dtype=np.float64))
    x, memory = rng.normal(size=(B, T, D)), rng.normal(size=(B, M, D)) if with_memory else np.zeros((B, 0, D))
    source, size = np.concatenate([memory, x], axis=1), D // H
    before, keys = memory.shape[1], source.shape[1]
    weights, heads = np.zeros((B, H, T, keys)), np.zeros((B, T, D))
    for b, h, t in np.ndindex(B, H, T):
        columns, i = slice(h * size, (h + 1) * size), before + t
        q = x[b, t] @ layer.w_q.data[:, columns]
        scores = np.full(keys, -np.inf)
        for j in range(i + 1):
            k, r = source[b, j] @ layer.w_k.data[:, columns], encoding(i - j, D) @ layer.w_r.data[:, columns]
            scores[j] = ((q + layer.u.data[h]) @ k + (q + layer.v.data[h]) @ r) / size**0.5
        weights[b, h, t] = np.exp(scores) / np.exp(scores).sum()
        heads[b, t, columns] = weights[b, h, t] @ (source[b] @ layer.w_v.data[:, columns])
    out = layer(x, memory if with_memory else None)
    np.testing.assert_allclose(layer.weights, weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(out, heads @ layer.w_o.data, rtol=1e-9, atol=1e-12)


# --- attention in a window, and blocks -------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [0, 1, 7, 16, 30, 99])
@pytest.mark.parametrize("length", [1, 2, 16, 17, 50, 97])
def test_window_attention_is_masked_attention(rng, random_module, length, window, causal):
    layer = random_module(layers.WindowAttention(6, 2, window, causal, dtype=np.float64))
    masked = layers.MultiHeadAttention(6, 2, dtype=np.float64)
    masked.load_state_dict(layer.state_dict())
    x, dout = rng.normal(size=(2, 3, length, 6))
    mask = window_mask(length, window)
    if causal:
        mask = mask | causal_mask(length)
    scale = 1e-12 * max(1, length)
    np.testing.assert_allclose(layer(x), masked(x, mask=mask), rtol=0, atol=1e-12)
    np.testing.assert_allclose(layer.backward(dout), masked.backward(dout)[0], rtol=0, atol=1e-12)
    for (name, p), q in zip(layer.named_parameters(), masked.parameters(), strict=True):
        np.testing.assert_allclose(p.grad, q.grad, rtol=0, atol=scale, err_msg=name)  # sums over all positions


@pytest.mark.parametrize("causal", [False, True])
def test_memory_of_window_attention_is_linear(causal):
    """The most bytes held at once: doubling n doubles them, and they are far below one n × n array."""

    def peak(n, window=8):
        q, k, v, dout = np.random.default_rng(0).normal(size=(4, n, 4))

        def forward_and_backward():
            _, weights = F.window_attention(q, k, v, window, causal)
            F.window_attention_backward(dout, q, k, v, weights, window, causal)

        return peak_of(forward_and_backward)

    peak(64)  # what is made once
    small, large = peak(1024), peak(4096)
    assert 3.6 < large / small < 4.4
    assert large < 4096 * 4096 * 8 / 10
    assert peak(64, window=10**6) < 64 * 64 * 8 * 20  # a window beyond the sequence costs no more than the sequence


def test_a_block_is_composed_of_its_own_sublayers():
    attention, network = layers.MultiHeadAttention(D, H, rng=0), FeedForward(D, FF, rng=0)
    with pytest.raises(TypeError, match="has the sub-layers attention, feed_forward, got attention, feedforward"):
        composed(EncoderBlock, lambda: AddNorm(D), attention=attention, feedforward=network)
