"""Llama: gradients, invariants, and the options of attention and feed-forward that it is made of."""

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np.decoding import KeyValueCache, generate
from transformer_np.inspection.gradcheck import check_gradients
from transformer_np.inspection.tracing import trace
from transformer_np.layers import FeedForward, GroupedQueryAttention, MultiHeadAttention
from transformer_np.masks import causal_mask, window_mask
from transformer_np.models import GPT, GPTConfig, Llama, LlamaConfig
from transformer_np.training import AdamW, NextToken, Trainer, load_model, save_checkpoint
from transformer_np.training.checkpoint import model_header

V, L, D, H, G, K, FF, N = 11, 12, 10, 6, 2, 4, 7, 2  # vocabulary, context, …: all different, and H·K is not D
IDS = np.array([[4, 10, 4, 0, 7, 1], [7, 2, 2, 9, 4, 3]])  # some tokens come more than once, some not at all
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 2.0,
    "original_max_position_embeddings": 16,
}


@pytest.fixture
def make(random_module):
    """make(**config) -> a small Llama in float64, every parameter random."""

    def make(**config):
        sizes = {"vocab_size": V, "max_len": L, "d_model": D, "num_heads": H, "num_kv_heads": G, "d_head": K}
        sizes |= {"num_layers": N, "d_ff": FF, "rope_theta": 30.0, "dtype": "float64"}
        return random_module(Llama(LlamaConfig(**{**sizes, **config})))

    return make


class Batch:
    def __init__(self, ids):
        self.ids, self.targets = ids[:, :-1], ids[:, 1:]


# --- gradients -------------------------------------------------------------------------------------------------------


def test_the_parameters():
    def count(**config):
        sizes = {"num_kv_heads": G, "d_head": K, "d_ff": FF, **config}
        return Llama(LlamaConfig(V, L, D, H, num_layers=N, **sizes)).num_parameters()

    block = 2 * D * H * K + 2 * D * G * K + 3 * D * FF + 2 * D  # w_q and w_o, w_k and w_v, feed-forward, two γ
    assert count(tie_embeddings=True) == V * D + N * block + D
    assert count() == count(tie_embeddings=True) + V * D
    assert count(qkv_bias=True) == count() + N * (H + 2 * G) * K


# --- what a token may see --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [0, 1, 2])
def test_through_a_window_a_token_reaches_so_far_and_no_further(make, window):
    """A layer carries a token `window` places on, so N layers carry it N · window places."""
    model = make(window=window, dtype="float32").eval()
    logits, changed = model(IDS), IDS.copy()
    changed[:, 0] = (changed[:, 0] + 1) % V
    other = model(changed)
    assert np.array_equal(other[:, N * window + 1 :], logits[:, N * window + 1 :])
    reached = ~np.isclose(other[:, : N * window + 1], logits[:, : N * window + 1]).all(axis=-1)
    assert reached.all()


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


# --- positions -------------------------------------------------------------------------------------------------------


def test_a_shift_of_all_positions_changes_nothing(make, monkeypatch):
    model, rotary = make().eval(), F.rotary
    logits = model(IDS)
    monkeypatch.setattr(F, "rotary", lambda x, positions, **options: rotary(x, positions + 7, **options))
    np.testing.assert_allclose(model(IDS), logits, rtol=1e-10, atol=1e-10)
    monkeypatch.setattr(F, "rotary", lambda x, positions, **options: x)
    assert not np.allclose(model(IDS), logits)


def test_the_order_of_the_tokens_matters(make):
    model = make().eval()
    assert not np.allclose(model(IDS[:1])[0, -1], model(IDS[:1, [1, 0, 2, 3, 4, 5]])[0, -1])


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_kv_heads": 4}, "num_kv_heads must divide num_heads, got 4 for num_heads = 6"),
        ({"num_kv_heads": 0}, "num_kv_heads must be at least 1, got 0"),
        ({"d_head": 3, "rotary": {}}, "K must be even, got 3"),
        ({"rotary": {"scaling": {"rope_type": "yarn"}}}, "rope_type is 'yarn', which is not supported"),
    ],
)
def test_options_of_attention_that_will_not_do(options, message):
    with pytest.raises(ValueError, match=message):
        GroupedQueryAttention(12, 6, **options)


def test_rotary_positions_are_for_one_sequence(rng):
    with pytest.raises(ValueError, match="memory must be None"):
        GroupedQueryAttention(D, 5, rotary={}, dtype="float64")(rng.normal(size=(1, 2, D)), rng.normal(size=(1, 3, D)))


# --- at the start, and what is refused -------------------------------------------------------------------------------


def test_defaults():
    config = LlamaConfig(32000)
    assert (config.max_len, config.d_model, config.num_heads, config.num_layers) == (2048, 512, 8, 8)
    assert (config.num_kv_heads, config.d_head, config.d_ff) == (8, 64, 1368)  # 8/3 · 512 is 1365 ⅓
    assert (config.rope_theta, config.eps, config.window, config.tie_embeddings) == (10000.0, 1e-6, None, False)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"num_kv_heads": 4}, "num_kv_heads must divide num_heads, got 4 for num_heads = 6"),
        ({"d_head": 3}, "K must be even, got 3"),
        ({"d_head": None}, "num_heads must divide d_model, got 6 heads for d_model = 10"),
        ({"rope_scaling": {"rope_type": "dynamic"}}, "'dynamic', .*; supported are default, linear, llama3"),
        ({"rope_theta": 0.0}, "theta must lie in"),
        ({"window": -1}, "window must be at least 0, got -1"),
        ({"eps": -1.0}, "eps"),
    ],
)
def test_sizes_that_will_not_do(make, config, message):
    with pytest.raises(ValueError, match=message) as info:
        make(**config)
    assert "\n" not in str(info.value)


def test_ids_that_will_not_do(make):
    with pytest.raises(ValueError, match="ids is 13 tokens long, more than max_len = 12"):
        make()(np.zeros((1, L + 1), int))


# --- training, and looking inside ------------------------------------------------------------------------------------


class Repeating:
    """Batches of texts that repeat two tokens; step n has its own."""

    def batch(self, step):
        return Batch(np.tile(np.random.default_rng(step).integers(V, size=(8, 2)), 5))


@pytest.mark.long
def test_it_learns_and_a_checkpoint_brings_it_back(tmp_path):
    config = LlamaConfig(V, L, 24, 6, 2, num_layers=2, window=8, rope_scaling=LLAMA3, tie_embeddings=True)
    model = Llama(config)
    path = tmp_path / "llama.safetensors"
    trainer = Trainer(model, AdamW(model.parameters(), lr=1e-2), NextToken(model), clip_norm=1.0)
    history = trainer.fit(Repeating(), 150, progress=False)
    assert history.losses[0] == pytest.approx(np.log(V), abs=0.2)
    assert np.mean(history.losses[-10:]) < 0.4 * np.log(V)  # all but the second token can be known
    save_checkpoint(path, {f"model.{name}": array for name, array in model.state_dict().items()}, model_header(model))
    again, _ = load_model(path)
    assert again.config == config
    assert np.array_equal(again(IDS), model.eval()(IDS))


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
    texts = [generate(model, IDS, 6, temperature=0, use_cache=use) for use in (True, False)]
    assert np.array_equal(*texts)
    assert check_gradients(model, IDS, max_entries=5).passed


@pytest.mark.parametrize("activation", ["silu", "gated_silu"])
def test_silu_in_a_gpt(random_module, activation):
    config = GPTConfig(V, L, 12, 3, N, FF, activation=activation, bias=False, dtype="float64")
    assert check_gradients(random_module(GPT(config)), IDS, max_entries=5).passed
