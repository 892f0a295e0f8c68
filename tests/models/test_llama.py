"""Llama: gradients, invariants, and the options of attention and feed-forward that it is made of."""

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np.decoding import KeyValueCache
from transformer_np.inspection.gradcheck import check_gradients
from transformer_np.inspection.tracing import trace
from transformer_np.layers import FeedForward, GroupedQueryAttention, MultiHeadAttention
from transformer_np.masks import causal_mask, window_mask
from transformer_np.models import GPT, GPTConfig, Llama, LlamaConfig

V, L, D, H, G, K, FF, N = 11, 12, 10, 6, 2, 4, 7, 2  # vocabulary, context, …: all different, and H·K is not D
IDS = np.array([[4, 10, 4, 0, 7, 1], [7, 2, 2, 9, 4, 3]])  # some tokens come more than once, some not at all


@pytest.fixture
def make(random_module):
    """make(**config) -> a small Llama in float64, every parameter random."""

    def make(**config):
        sizes = {"vocab_size": V, "max_len": L, "d_model": D, "num_heads": H, "num_kv_heads": G, "d_head": K}
        sizes |= {"num_layers": N, "d_ff": FF, "rope_theta": 30.0, "dtype": "float64"}
        return random_module(Llama(LlamaConfig(**{**sizes, **config})))

    return make


# --- what a token may see --------------------------------------------------------------------------------------------


def test_a_window_is_full_attention_under_a_mask(make):
    model = make(window=2).eval()
    T = IDS.shape[1]
    mask = causal_mask(T) | window_mask(T, 2)
    x = model.embedding(IDS)
    for block in model.blocks:
        x = block(x, mask)
    np.testing.assert_allclose(model(IDS), model.output(model.norm(x)), rtol=1e-12, atol=1e-12)
    heads = F.scaled_dot_product_attention(*(q := np.random.default_rng(0).normal(size=(3, 2, T, 4))), mask)[0]
    np.testing.assert_allclose(F.window_attention(*q, 2, causal=True)[0], heads, rtol=1e-12)
    full = make().eval()
    full.load_state_dict(model.state_dict())
    assert not np.allclose(full(IDS), model(IDS))
    far = make(window=T - 1).eval()
    far.load_state_dict(model.state_dict())
    assert np.array_equal(far(IDS), full(IDS))


def test_logits_of_the_last_token_alone(make):
    model = make().eval()
    np.testing.assert_allclose(model(IDS, last=True), model(IDS)[:, -1:], rtol=1e-12, atol=1e-12)


# --- the options of attention and feed-forward -----------------------------------------------------------------------


def test_as_many_heads_of_keys_as_of_queries_is_plain_attention(random_module, rng):
    x, dout = rng.normal(size=(2, 5, D)), rng.normal(size=(2, 5, D))
    plain = random_module(MultiHeadAttention(D, 5, dtype="float64"))
    grouped = GroupedQueryAttention(D, 5, dtype="float64", num_kv_heads=5)
    grouped.load_state_dict(plain.state_dict())
    assert np.array_equal(grouped(x), plain(x))
    assert np.array_equal(grouped.backward(dout)[0], plain.backward(dout)[0])


@pytest.mark.parametrize("rotary", [None, {"theta": 20.0}])
def test_grouped_attention_is_plain_attention_with_equal_heads(random_module, rng, rotary):
    """The matrices of keys and values repeated; the gradient of a shared one is the sum over its copies."""
    x, dout, mask = rng.normal(size=(2, 5, D)), rng.normal(size=(2, 5, D)), causal_mask(5)
    options = {"d_head": K, "dtype": "float64", "rotary": rotary}
    grouped = random_module(GroupedQueryAttention(D, H, num_kv_heads=G, **options))
    plain = GroupedQueryAttention(D, H, **options)
    state = dict(grouped.state_dict())

    def repeated(w):  # (…, G·K) -> (…, H·K)
        return np.repeat(w.reshape(*w.shape[:-1], G, K), H // G, axis=-2).reshape(*w.shape[:-1], H * K)

    plain.load_state_dict({n: repeated(w) if n in ("w_k", "w_v", "b_k", "b_v") else w for n, w in state.items()})
    np.testing.assert_allclose(grouped(x, mask=mask), plain(x, mask=mask), rtol=1e-12)
    np.testing.assert_allclose(grouped.weights, plain.weights, rtol=1e-12)
    np.testing.assert_allclose(grouped.backward(dout)[0], plain.backward(dout)[0], rtol=1e-10, atol=1e-12)
    for name in ("w_k", "w_v"):
        copies = getattr(plain, name).grad.reshape(D, G, H // G, K).sum(axis=2).reshape(D, G * K)
        np.testing.assert_allclose(getattr(grouped, name).grad, copies, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "options", [{"rotary": {"theta": 20.0, "adjacent": True}}, {"output_bias": False}, {"num_kv_heads": 3}]
)
def test_gradients_of_attention_with_options(random_module, rng, options):
    module = random_module(GroupedQueryAttention(D, H, d_head=K, **options))
    report = check_gradients(module, rng.normal(size=(2, 5, D)), mask=causal_mask(5), max_entries=6)
    assert report.passed, str(report)
    assert (module.b_o is None) == ("output_bias" in options)


def test_grouped_cross_attention(random_module, rng):
    module = random_module(GroupedQueryAttention(D, H, d_head=K, num_kv_heads=G))
    assert check_gradients(module, rng.normal(size=(2, 3, D)), rng.normal(size=(2, 5, D)), max_entries=6).passed


def test_tiled_attention_with_groups_and_rotary(random_module, rng, monkeypatch):
    from transformer_np.layers import tiles

    x, dout = rng.normal(size=(2, 9, D)), rng.normal(size=(2, 9, D))
    module = random_module(GroupedQueryAttention(D, H, d_head=K, num_kv_heads=G, rotary={}, dtype="float64"))
    expected = module(x, mask=causal_mask(9)), module.backward(dout)[0], module.weights
    monkeypatch.setattr(tiles, "TILED_BYTES", 0)
    monkeypatch.setattr(tiles, "TILED_LENGTH", 1)
    found = module(x, mask=causal_mask(9)), module.backward(dout)[0], module.weights
    assert "log_total" not in vars(module) and isinstance(module.kept("weights"), tiles.Tiles)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_alibi_on_shared_keys_and_a_cache(random_module, rng):
    """A bias of its own for each head, also when the heads of a group are the queries of one."""
    x = rng.normal(size=(2, 5, D))
    module = random_module(GroupedQueryAttention(D, H, d_head=K, num_kv_heads=G, dtype="float64")).eval()
    whole = module(x, mask=(causal_mask(5), F.alibi_bias(H, 5, dtype="float64")))
    cache = KeyValueCache()
    module(x[:, :4], mask=causal_mask(4), cache=cache)
    newest = module(x[:, 4:], mask=F.alibi_bias(H, 1, 5, "float64"), cache=cache)
    np.testing.assert_allclose(newest, whole[:, 4:], rtol=1e-12)
    assert not np.allclose(module(x, mask=causal_mask(5))[:, 4:], newest)


@pytest.mark.parametrize("activation", ["silu", "gated_silu"])
def test_gradients_of_feed_forward_with_silu(random_module, rng, activation):
    module = random_module(FeedForward(D, FF, activation, bias=False))
    assert check_gradients(module, rng.normal(size=(2, 3, D)), max_entries=6).passed
    assert module(np.ones((1, 1, D), np.float32)).dtype == np.float32


def test_rotary_positions_are_for_one_sequence_and_heads_for_whole_groups(rng):
    with pytest.raises(ValueError, match="num_kv_heads must divide num_heads, got 4 for num_heads = 6"):
        GroupedQueryAttention(12, 6, num_kv_heads=4)
    with pytest.raises(ValueError, match="memory must be None"):
        GroupedQueryAttention(D, 5, rotary={}, dtype="float64")(rng.normal(size=(1, 2, D)), rng.normal(size=(1, 3, D)))


# --- training, and looking inside ------------------------------------------------------------------------------------


def test_trace(make):
    steps = trace(make(), IDS, backward=np.ones((2, 6, V)))
    assert len(steps.forward["rotary"]) == 2 * N and len(steps.backward["rotary_backward"]) == 2 * N
    assert len(steps.forward["repeat_heads"]) == 2 * N
    assert len(steps.forward["silu"]) == N
    assert steps["blocks.1"].forward[-1].function == "residual"
    assert steps.output.shape == (2, 6, V)


def test_intermediates_are_those_that_attention_uses(make):
    model = make().eval(keep=True)
    model(IDS)
    kept = model.intermediates()
    q, k = kept["blocks.1.attention.q"], kept["blocks.1.attention.k"]
    assert q.shape == (2, H, 6, K) and k.shape == (2, G, 6, K)
    weights = F.softmax(F.attention_scores(q, F.repeat_heads(k, H // G), causal_mask(6)))
    np.testing.assert_allclose(kept["blocks.1.attention.weights"], weights, rtol=1e-12)


# --- a window in a GPT -----------------------------------------------------------------------------------------------


def test_a_window_in_a_gpt(random_module):
    sizes = {"vocab_size": V, "max_len": L, "d_model": 12, "num_heads": 3, "num_layers": N, "d_ff": FF}
    model = random_module(GPT(GPTConfig(**sizes, window=1, dtype="float64"))).eval()
    logits, changed = model(IDS), IDS.copy()
    changed[:, 0] = (changed[:, 0] + 1) % V
    assert np.array_equal(model(changed)[:, N + 1 :], logits[:, N + 1 :])
    assert not np.isclose(model(changed)[:, : N + 1], logits[:, : N + 1]).all(axis=-1).any()
