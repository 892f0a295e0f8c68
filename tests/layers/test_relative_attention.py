"""Attention by distance: the shift, the function and the layer, against loops over queries and keys."""

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np.inspection.gradcheck import check_gradients
from transformer_np.layers import RelativeMultiHeadAttention

B, H, T, M, K, KV, D = 2, 3, 4, 5, 6, 7, 18
S = M + T


@pytest.fixture
def arrays(rng):
    """q, k, v, r, u, v of relative_attention, all sizes different."""
    shapes = [(B, H, T, K), (B, H, S, K), (B, H, S, KV), (H, S, K), (H, K), (H, K)]
    return [rng.normal(size=shape) for shape in shapes]


def plain_attention(q, k, v, r, content_bias, position_bias, hidden):
    """One query and one key at a time; the encoding of the distance i − j is row S − 1 − (i − j) of r."""
    batch, heads, queries, size = q.shape
    keys = k.shape[2]
    out, weights = np.zeros((batch, heads, queries, v.shape[3])), np.zeros((batch, heads, queries, keys))
    for b, h, t in np.ndindex(batch, heads, queries):
        i = keys - queries + t
        scores = {}
        for j in range(i + 1):
            if not hidden[t, j]:
                by_content = (q[b, h, t] + content_bias[h]) @ k[b, h, j]
                by_position = (q[b, h, t] + position_bias[h]) @ r[h, keys - 1 - (i - j)]
                scores[j] = (by_content + by_position) / size**0.5
        total = sum(np.exp(score) for score in scores.values())
        for j, score in scores.items():
            weights[b, h, t, j] = np.exp(score) / total
            out[b, h, t] += weights[b, h, t, j] * v[b, h, j]
    return out, weights


# --- shift -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 4), (3, 3), (3, 4), (3, 8)])
def test_the_shift_brings_each_distance_to_its_key(rng, queries, keys):
    distances = np.broadcast_to(np.arange(keys - 1.0, -1, -1), (2, queries, keys)).copy()
    shifted = F.relative_shift(distances)
    for t in range(queries):
        i = keys - queries + t
        assert shifted[0, t, : i + 1].tolist() == [i - j for j in range(i + 1)]
    x = rng.normal(size=(2, queries, keys))
    y = F.relative_shift(x)
    for t in range(queries):
        assert np.array_equal(y[:, t, : keys - queries + t + 1], x[:, t, queries - 1 - t :])
    assert check_gradients(F.relative_shift, x).passed


def test_more_queries_than_keys_are_refused(rng, arrays):
    for function in (F.relative_shift, F.relative_shift_backward):
        with pytest.raises(ValueError, match="T = 4, S = 3"):
            function(rng.normal(size=(4, 3)))
    q, k, v, r, *biases = arrays
    with pytest.raises(ValueError, match="at least as many: got T = 4, S = 3"):
        F.relative_attention(q, k[:, :, :3], v[:, :, :3], np.ascontiguousarray(r[:, :3]), *biases)


# --- function --------------------------------------------------------------------------------------------------------

NOTHING = np.zeros((T, S), bool)
SOME = np.zeros((T, S), bool)
SOME[[0, 1, 1, 3], [0, 2, 4, 8]] = True
A_ROW = SOME.copy()
A_ROW[2] = True


@pytest.mark.parametrize("hidden", [NOTHING, SOME, A_ROW], ids=["nothing", "some", "a whole row"])
def test_relative_attention(arrays, hidden):
    mask = hidden if hidden.any() else None
    out, weights = F.relative_attention(*arrays, mask=mask)
    expected_out, expected_weights = plain_attention(*arrays, hidden)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(out, expected_out, rtol=1e-10, atol=1e-12)
    report = check_gradients(F.relative_attention, *arrays, mask=mask)
    assert len(report.entries) == 6
    assert report.passed, report


def test_a_float_mask_is_added(arrays, rng):
    added, seen = rng.normal(size=(T, S)), np.tri(T, S, M, dtype=bool)
    expected = F.relative_attention(*arrays)[1] * np.exp(added)
    weights = F.relative_attention(*arrays, mask=added)[1]
    np.testing.assert_allclose(weights, expected / expected.sum(axis=-1, keepdims=True), rtol=1e-10)
    assert not weights[..., ~seen].any()
    assert check_gradients(F.relative_attention, *arrays, mask=added).passed


# --- layer -----------------------------------------------------------------------------------------------------------


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
