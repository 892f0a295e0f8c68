"""Add & Norm and blocks: what is dropped, and of which sub-layers a block is composed."""

import numpy as np
import pytest

from transformer_np.layers import FeedForward, MultiHeadAttention
from transformer_np.layers.blocks import AddNorm, EncoderBlock, composed

D, H, FF = 10, 5, 7


@pytest.fixture(params=[False, True], ids=["post-norm", "pre-norm"])
def norm_first(request):
    return request.param


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
