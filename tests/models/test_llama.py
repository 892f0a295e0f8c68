"""Llama: gradients, invariants, and the options of attention and feed-forward that it is made of."""

import numpy as np
import pytest

from transformer_np.inspection.gradcheck import check_gradients
from transformer_np.layers import FeedForward, GroupedQueryAttention
from transformer_np.masks import causal_mask
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


def test_logits_of_the_last_token_alone(make):
    model = make().eval()
    np.testing.assert_allclose(model(IDS, last=True), model(IDS)[:, -1:], rtol=1e-12, atol=1e-12)


# --- the options of attention and feed-forward -----------------------------------------------------------------------


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


# --- a window in a GPT -----------------------------------------------------------------------------------------------


def test_a_window_in_a_gpt(random_module):
    sizes = {"vocab_size": V, "max_len": L, "d_model": 12, "num_heads": 3, "num_layers": N, "d_ff": FF}
    model = random_module(GPT(GPTConfig(**sizes, window=1, dtype="float64"))).eval()
    logits, changed = model(IDS), IDS.copy()
    changed[:, 0] = (changed[:, 0] + 1) % V
    assert np.array_equal(model(changed)[:, N + 1 :], logits[:, N + 1 :])
    assert not np.isclose(model(changed)[:, : N + 1], logits[:, : N + 1]).all(axis=-1).any()
