"""The layers attention is compared with: against masked attention, causal, linear in memory."""

import numpy as np
import pytest
from shared import peak_of

from transformer_np import functional as F
from transformer_np.layers import MultiHeadAttention, WindowAttention
from transformer_np.masks import causal_mask, window_mask

B, T, D, E, H = 3, 7, 6, 5, 2


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [0, 1, 7, 16, 30, 99])
@pytest.mark.parametrize("length", [1, 2, 16, 17, 50, 97])
def test_window_attention_is_masked_attention(rng, random_module, length, window, causal):
    layer = random_module(WindowAttention(D, H, window, causal, dtype=np.float64))
    masked = MultiHeadAttention(D, H, dtype=np.float64)
    masked.load_state_dict(layer.state_dict())
    x, dout = rng.normal(size=(2, B, length, D))
    mask = window_mask(length, window)
    if causal:
        mask = mask | causal_mask(length)
    scale = 1e-12 * max(1, length)
    np.testing.assert_allclose(layer(x), masked(x, mask=mask), rtol=0, atol=1e-12)
    np.testing.assert_allclose(layer.backward(dout), masked.backward(dout)[0], rtol=0, atol=1e-12)
    for (name, p), q in zip(layer.named_parameters(), masked.parameters(), strict=True):
        np.testing.assert_allclose(p.grad, q.grad, rtol=0, atol=scale, err_msg=name)  # sums over all positions


@pytest.mark.parametrize("causal", [False, True])
def test_memory_of_window_attention_is_linear(causal):
    """The most bytes held at once: doubling n doubles them, and they are far below one n × n array."""

    def peak(n, window=8):
        q, k, v, dout = np.random.default_rng(0).normal(size=(4, n, 4))

        def forward_and_backward():
            _, weights = F.window_attention(q, k, v, window, causal)
            F.window_attention_backward(dout, q, k, v, weights, window, causal)

        return peak_of(forward_and_backward)

    peak(64)  # what is made once
    small, large = peak(1024), peak(4096)
    assert 3.6 < large / small < 4.4
    assert large < 4096 * 4096 * 8 / 10
    assert peak(64, window=10**6) < 64 * 64 * 8 * 20  # a window beyond the sequence costs no more than the sequence
