"""The decoder-only model: gradients, what it may see, and the one table that is used twice."""

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np.masks import causal_mask
from transformer_np.models import GPT, GPTConfig, Llama, LlamaConfig

V, L, D, H, FF, N = 11, 9, 12, 3, 10, 2  # vocabulary, context, features, heads, inside, blocks: all different
IDS = np.array([[4, 10, 4, 0, 7], [7, 2, 2, 9, 4]])  # some tokens come more than once, some not at all


MODEL = "GPT", {"vocab_size": V, "max_len": L, "d_model": D, "num_heads": H, "num_layers": N, "d_ff": FF}


def test_sinusoids_are_added_to_scaled_embeddings(make):
    model = make(positions="sinusoidal").eval(keep=True)
    model(IDS)
    expected = np.sqrt(D) * model.embedding.table.data[IDS] + F.sinusoidal_encoding(L, D, np.float64)[:5]
    np.testing.assert_allclose(model._positioned(model.embedding(IDS), 0), expected, rtol=1e-12)


def test_alibi_is_added_to_the_scores(make):
    model = make(positions="alibi").eval()
    x = model.embedding(IDS)
    for block in model.blocks:
        x = block(x, (causal_mask(5), F.alibi_bias(H, 5, dtype=np.float64)))
    np.testing.assert_allclose(model(IDS), model.output(model.norm(x)), rtol=1e-12, atol=1e-12)
    plain = make(positions="rotary").eval()  # the same parameters
    plain.load_state_dict(model.state_dict())
    assert not np.allclose(model(IDS), plain(IDS))


def test_rotary_positions_and_all_other_changes_make_a_llama(make, random_module):
    """Two ways to the same model: a GPT with every change, and Llama."""
    how = {"positions": "rotary", "norm": "rms", "activation": "gated_silu", "bias": False}
    model = make(**how, num_heads=6, num_kv_heads=2).eval()
    sizes = {"d_model": D, "num_heads": 6, "num_kv_heads": 2, "num_layers": N, "d_ff": FF, "eps": 1e-5}
    llama = Llama(LlamaConfig(V, L, **sizes, tie_embeddings=True, dtype="float64")).eval()
    llama.load_state_dict(model.state_dict())
    assert np.array_equal(llama(IDS), model(IDS))


def test_matrices_start_as_in_gpt2():
    """Standard deviation 0.02 at its width, divided by √(2 · layers) where a block adds to its input; biases 0, γ 1."""
    for name, parameter in GPT(GPTConfig(500, 100, 192, 4, 8, d_ff=100, tie_embeddings=False)).named_parameters():
        if parameter.data.ndim == 1:
            assert (parameter.data == name.endswith("gamma")).all(), name
        else:
            std = 0.04 / 4 if name.endswith(("w_o", "w2")) else 0.04  # a quarter of its width, twice as large
            assert parameter.data.std() == pytest.approx(std, rel=0.1), name
