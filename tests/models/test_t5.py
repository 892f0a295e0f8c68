"""T5: its own formulas, and the encoder–decoder made of them."""

import math

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np.decoding import DecoderCache, beam_search, greedy_decode
from transformer_np.inspection.gradcheck import check_gradients
from transformer_np.layers import FeedForward
from transformer_np.models import T5, T5Config

NEAR = {"rtol": 1e-10, "atol": 1e-10}


# --- formulas --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [(), (3,), (2, 3)])
@pytest.mark.parametrize("eps", [1e-6, 0.3])
def test_rms_norm(rng, rows, eps):
    x, gamma = 2 + rng.normal(size=(*rows, 5)), rng.normal(size=5)
    y, x_hat, inv_rms = F.rms_norm(x, gamma, eps)
    assert inv_rms.shape == (*rows, 1)
    for row in np.ndindex(rows):
        expected = x[row] / math.sqrt(sum(v * v for v in x[row]) / 5 + eps)
        np.testing.assert_allclose(x_hat[row], expected, **NEAR)
        np.testing.assert_allclose(y[row], expected * gamma, **NEAR)
    assert check_gradients(F.rms_norm, x, gamma, eps).passed


def bucket(distance, num_buckets, max_distance, bidirectional):
    """The formula, for one distance: how far the key stands before the query."""
    N, first = (num_buckets // 2, num_buckets // 2 * (distance < 0)) if bidirectional else (num_buckets, 0)
    n = abs(distance) if bidirectional else max(distance, 0)
    if n < N // 2:
        return first + n
    far = math.log(n / (N // 2)) / math.log(max_distance / (N // 2)) * (N - N // 2)
    return first + min(N // 2 + math.floor(far + 1e-6), N - 1)  # 1e-6: just at a boundary float32 decides


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (8, 11), (6, 30), (7, 20)])
def test_relative_position_buckets(bidirectional, num_buckets, max_distance):
    T, S = 30, 171
    buckets = F.relative_position_buckets(T, S, num_buckets, max_distance, bidirectional)
    expected = [[bucket(S - T + t - s, num_buckets, max_distance, bidirectional) for s in range(S)] for t in range(T)]
    assert np.array_equal(buckets, expected)
    used = set(np.unique(F.relative_position_buckets(200, 200, num_buckets, max_distance, bidirectional)))
    N = num_buckets // 2
    assert used == ({*range(2 * N)} - {N} if bidirectional else {*range(num_buckets)})  # N: distance 0 after the query


def test_relative_position_buckets_of_the_paper():
    both = F.relative_position_buckets(300)
    assert both[150, [150, 149, 143, 142, 22, 21, 0]].tolist() == [0, 1, 7, 8, 15, 15, 15]
    assert both[150, [151, 157, 158, 278, 299]].tolist() == [17, 23, 24, 31, 31]
    back = F.relative_position_buckets(300, bidirectional=False)
    assert back[150, [150, 149, 135, 134, 22, 0, 151, 299]].tolist() == [0, 1, 15, 16, 31, 31, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 2), "S must be at least 3"),
        ((3, 3, 3), "num_buckets must be at least 4"), ((3, 3, 1, 128, False), "num_buckets must be at least 2"),
        ((3, 3, 32, 8), "max_distance must be more than 8"),
    ],
)  # fmt: skip
def test_buckets_that_make_no_sense(arguments, message):
    with pytest.raises(ValueError, match=message):
        F.relative_position_buckets(*arguments)


def test_relative_position_bias(rng):
    table, buckets = rng.normal(size=(6, 3)), F.relative_position_buckets(4, 7, 6, 5)
    bias = F.relative_position_bias(table, buckets)
    assert all(bias[h, t, s] == table[buckets[t, s], h] for h, t, s in np.ndindex(3, 4, 7))
    assert check_gradients(F.relative_position_bias, table, buckets).passed


def test_unscaled_attention(rng):
    q, k, v = rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(2, 3, 6, 5)), rng.normal(size=(2, 3, 6, 7))
    bias, hidden = rng.normal(size=(3, 4, 6)), rng.random((2, 1, 1, 6)) < 0.4
    out, weights = F.unscaled_attention(q, k, v, bias, hidden)
    expected = F.scaled_dot_product_attention(q * 5**0.5, k, v, (bias, hidden))
    np.testing.assert_allclose(out, expected[0], **NEAR)
    np.testing.assert_allclose(weights, expected[1], **NEAR)
    everything = np.ones((4, 6), bool)
    assert not F.unscaled_attention(q, k, v, bias, everything)[0].any()
    for mask in (None, hidden, everything):
        assert check_gradients(F.unscaled_attention, q, k, v, bias, mask).passed
    assert check_gradients(F.unscaled_attention, q, k, v).passed


# --- layers ----------------------------------------------------------------------------------------------------------


def test_a_gated_network_has_no_biases():
    with pytest.raises(ValueError, match="bias=False"):
        FeedForward(4, 5, "gated_gelu")


# --- the model -------------------------------------------------------------------------------------------------------


SIZES = {"vocab_size": 13, "d_model": 8, "num_heads": 3, "d_head": 5, "d_ff": 10, "num_buckets": 6, "max_distance": 5}
BLOCKS = {"num_encoder_layers": 2, "num_decoder_layers": 3}
MODEL = "T5", {**SIZES, **BLOCKS, "activation": "relu", "dropout": 0.0}
V1_0, V1_1 = {}, {"activation": "gated_gelu", "tie_embeddings": False}
KINDS = pytest.mark.parametrize("kind", [V1_0, V1_1], ids=["v1.0", "v1.1"])
SRC = np.array([[4, 5, 6, 3, 9, 1, 0], [7, 5, 1, 0, 0, 0, 0]])
TGT_IN = np.array([[0, 4, 12, 7], [0, 9, 9, 2]])


@KINDS
def test_the_cache_changes_nothing(make, kind):
    model = make(**kind).eval()
    memory = model.encode(SRC)
    whole = model.decode(TGT_IN, memory, SRC)
    cache = DecoderCache(len(model.decoder))
    for t in range(TGT_IN.shape[1]):
        np.testing.assert_allclose(model.decode(TGT_IN[:, t : t + 1], memory, SRC, cache)[:, 0], whole[:, t], **NEAR)
    assert greedy_decode(model, SRC, 12) == greedy_decode(model, SRC, 12, use_cache=False)
    assert beam_search(model, SRC, 3, 8) == beam_search(model, SRC, 3, 8, use_cache=False)
    assert beam_search(model, SRC, 1, 8, length_penalty=0) == greedy_decode(model, SRC, 8)


@KINDS
def test_scores_start_of_order_one(kind):
    """Although they are not divided by √d_k: the queries start smaller."""
    model = T5(T5Config(500, 64, 4, 16, num_encoder_layers=2, num_decoder_layers=2, d_ff=128, **kind)).eval(keep=True)
    ids = np.random.default_rng(0).integers(2, 500, size=(4, 20))
    model(ids, ids)
    kept = model.encoder[0].attention._kept
    assert 0.5 < kept["q"].std() * kept["k"].std() * 4 < 2


def test_an_output_that_is_not_scaled(make):
    model, other = make().eval(), make(scale_output=False).eval()
    other.load_state_dict(model.state_dict())
    np.testing.assert_allclose(other(SRC, TGT_IN), model(SRC, TGT_IN) * 8**0.5, **NEAR)


def test_there_is_no_longest_input(make):
    model = make(max_len=4).eval()
    assert model(np.full((1, 40), 5), np.full((1, 30), 5)).shape == (1, 30, 13)
