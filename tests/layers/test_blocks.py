"""Encoder and decoder block: gradients, wiring, and what a wrong wiring would break."""

import numpy as np
import pytest

from transformer_np.layers import FeedForward, MultiHeadAttention
from transformer_np.layers.blocks import AddNorm, DecoderBlock, EncoderBlock, composed
from transformer_np.masks import causal_mask

B, T, S, D, H, FF = 2, 3, 4, 10, 5, 7
MASK = np.arange(S) >= np.array([4, 2])[:, None, None, None]  # (B, 1, 1, S)


@pytest.fixture(params=[False, True], ids=["post-norm", "pre-norm"])
def norm_first(request):
    return request.param


@pytest.fixture
def encoder(random_module, norm_first):
    return random_module(EncoderBlock(D, H, FF, norm_first=norm_first, rng=0, dtype=np.float64))


@pytest.fixture
def decoder(random_module, norm_first):
    return random_module(DecoderBlock(D, H, FF, norm_first=norm_first, rng=0, dtype=np.float64))


def test_wiring_of_the_encoder_block(rng, encoder, norm_first):
    x = rng.normal(size=(B, S, D))
    norm1, norm2 = encoder.add_norm1.norm, encoder.add_norm2.norm
    attention = lambda x: encoder.attention(x, mask=MASK)  # noqa: E731
    if norm_first:
        a = x + attention(norm1(x))
        expected = a + encoder.feed_forward(norm2(a))
    else:
        a = norm1(x + attention(x))
        expected = norm2(a + encoder.feed_forward(a))
    np.testing.assert_allclose(encoder(x, MASK), expected, rtol=1e-12)


def test_wiring_of_the_decoder_block(rng, decoder, norm_first):
    x, memory, mask = rng.normal(size=(B, T, D)), rng.normal(size=(B, S, D)), causal_mask(T)
    norm1, norm2, norm3 = decoder.add_norm1.norm, decoder.add_norm2.norm, decoder.add_norm3.norm
    look_back = lambda x: decoder.self_attention(x, mask=mask)  # noqa: E731
    look_across = lambda x: decoder.cross_attention(x, memory, MASK)  # noqa: E731
    if norm_first:
        a = x + look_back(norm1(x))
        b = a + look_across(norm2(a))
        expected = b + decoder.feed_forward(norm3(b))
    else:
        a = norm1(x + look_back(x))
        b = norm2(a + look_across(a))
        expected = norm3(b + decoder.feed_forward(b))
    np.testing.assert_allclose(decoder(x, memory, mask, MASK), expected, rtol=1e-12)


def test_add_norm_drops_what_the_sublayer_says_and_keeps_the_path(rng, norm_first):
    add_norm = AddNorm(50, dropout=0.5, norm_first=norm_first, rng=0, dtype=np.float64)
    x = rng.normal(size=(1, 40, 50))
    y = add_norm(x, lambda h: np.full_like(h, 100))
    if norm_first:  # x itself, or x and the sublayer's 100 doubled
        assert ((y == x) | (y == x + 200)).all()
    else:  # the sum is normalised: two clusters
        low, high = y < 0, y > 0
        assert (low ^ high).all()
        assert 0.4 < high.mean() < 0.6
    add_norm.eval()
    if norm_first:
        assert np.array_equal(add_norm(x, lambda h: np.full_like(h, 100)), x + 100)
    else:
        expected = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
        np.testing.assert_allclose(add_norm(x, lambda h: np.full_like(h, 100)), expected, rtol=1e-9, atol=1e-9)


def test_a_block_is_composed_of_its_own_sublayers():
    attention, network = MultiHeadAttention(D, H, rng=0), FeedForward(D, FF, rng=0)
    with pytest.raises(TypeError, match="has the sub-layers attention, feed_forward, got attention, feedforward"):
        composed(EncoderBlock, lambda: AddNorm(D), attention=attention, feedforward=network)
