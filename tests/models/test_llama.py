"""Llama: gradients, invariants, and the options of attention and feed-forward that it is made of."""

import numpy as np
import pytest

from transformer_np.inspection import check_layer
from transformer_np.layers import FeedForward, GroupedQueryAttention
from transformer_np.masks import causal_mask
from transformer_np.models import GPT, GPTConfig

V, L, D, H, G, K, FF, N = 11, 12, 10, 6, 2, 4, 7, 2  # vocabulary, context, …: all different, and H·K is not D
IDS = np.array([[4, 10, 4, 0, 7, 1], [7, 2, 2, 9, 4, 3]])  # some tokens come more than once, some not at all


SIZES = {"vocab_size": V, "max_len": L, "d_model": D, "num_layers": N, "d_ff": FF, "rope_theta": 30.0}
MODEL = "Llama", {**SIZES, "num_heads": H, "num_kv_heads": G, "d_head": K, "qkv_bias": False}


def test_logits_of_the_last_token_alone(make):
    model = make().eval()
    np.testing.assert_allclose(model(IDS, last=True), model(IDS)[:, -1:], rtol=1e-12, atol=1e-12)


# --- the options of attention and feed-forward -----------------------------------------------------------------------


LAYERS = {  # those that no model here has: a layer, and the lengths of its inputs
    "adjacent pairs": (lambda: GroupedQueryAttention(D, H, d_head=K, rotary={"theta": 20.0, "adjacent": True}), (5,)),
    "no output bias": (lambda: GroupedQueryAttention(D, H, d_head=K, output_bias=False), (5,)),
    "groups": (lambda: GroupedQueryAttention(D, H, d_head=K, num_kv_heads=3), (5,)),
    "groups of a memory": (lambda: GroupedQueryAttention(D, H, d_head=K, num_kv_heads=G), (3, 5)),
    "silu": (lambda: FeedForward(D, FF, "silu", bias=False), (5,)),
    "gated silu": (lambda: FeedForward(D, FF, "gated_silu", bias=False), (5,)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_with_other_options(random_module, rng, name):
    make, lengths = LAYERS[name]
    layer, inputs = random_module(make()), [rng.normal(size=(2, n, D)).astype("float32") for n in lengths]
    mask = {"mask": causal_mask(5)} if lengths == (5,) and isinstance(layer, GroupedQueryAttention) else {}
    assert check_layer(layer, *inputs, max_entries=6, **mask).passed
    assert getattr(layer, "b_o", None) is None or name != "no output bias"


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
