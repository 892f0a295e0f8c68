"""The layer of attention by distance, against a loop over queries and keys."""

import numpy as np
import pytest

from transformer_np.layers import RelativeMultiHeadAttention

B, H, T, M, K, D = 2, 3, 4, 5, 6, 18


@pytest.fixture
def layer(random_module):
    return random_module(RelativeMultiHeadAttention(D, H, dtype=np.float64))


def encoding(distance):
    """The sinusoids of a distance, one dimension after another."""
    angles = [distance / 10000 ** ((i - i % 2) / D) for i in range(D)]
    return np.array([np.cos(angle) if i % 2 else np.sin(angle) for i, angle in enumerate(angles)])


@pytest.mark.parametrize("with_memory", [True, False])
def test_the_layer_against_a_double_loop(layer, rng, with_memory):
    x, memory = rng.normal(size=(B, T, D)), rng.normal(size=(B, M, D)) if with_memory else np.zeros((B, 0, D))
    source, size = np.concatenate([memory, x], axis=1), D // H
    before, keys = memory.shape[1], source.shape[1]
    weights, heads = np.zeros((B, H, T, keys)), np.zeros((B, T, D))
    for b, h, t in np.ndindex(B, H, T):
        columns, i = slice(h * size, (h + 1) * size), before + t
        q = x[b, t] @ layer.w_q.data[:, columns]
        scores = np.full(keys, -np.inf)
        for j in range(i + 1):
            k, r = source[b, j] @ layer.w_k.data[:, columns], encoding(i - j) @ layer.w_r.data[:, columns]
            scores[j] = ((q + layer.u.data[h]) @ k + (q + layer.v.data[h]) @ r) / size**0.5
        weights[b, h, t] = np.exp(scores) / np.exp(scores).sum()
        heads[b, t, columns] = weights[b, h, t] @ (source[b] @ layer.w_v.data[:, columns])
    out = layer(x, memory if with_memory else None)
    np.testing.assert_allclose(layer.weights, weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(out, heads @ layer.w_o.data, rtol=1e-9, atol=1e-12)
