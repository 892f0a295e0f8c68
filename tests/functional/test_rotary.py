"""What Llama's attention and feed-forward are made of: rotary positions, shared keys and values, SiLU, ALiBi."""

import numpy as np
import pytest

from transformer_np import functional as F

LLAMA3 = {
    "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.5, "high_freq_factor": 3.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip


def test_far_positions_are_exact_in_float32(rng):
    x = rng.normal(size=(1, 2, 8))
    far = np.array([100_001, 131_071])
    expected = F.rotary(x, far)
    assert abs(F.rotary(x.astype(np.float32), far) - expected).max() < 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, 10000.0, None), r"K must be even, got 5"),
        ((6, 0.0, None), r"theta must lie in \(0, ∞\), got 0.0"),
        ((6, 9.0, {"rope_type": "yarn"}), r"rope_type is 'yarn', .* supported are default, linear, llama3"),
        ((6, 9.0, {"factor": 2.0}), r"rope_type is None"),
        ((6, 9.0, "linear"), r"scaling must be a dictionary with a rope_type, got 'linear'"),
        ((6, 9.0, {"rope_type": "linear"}), r"factor of the rope_type 'linear' must be a positive number, got None"),
        ((6, 9.0, {**LLAMA3, "factor": -1}), r"factor of the rope_type 'llama3' .* got -1"),
        ((6, 9.0, {**LLAMA3, "high_freq_factor": 1.5}), r"high_freq_factor must be more than low_freq_factor = 1.5"),
    ],
)
def test_what_rotary_frequencies_cannot_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        F.rotary_frequencies(*arguments)


def test_positions_must_fit_the_rows(rng):
    with pytest.raises(ValueError, match=r"positions must be numbers of shape \(4,\).* got int64 of shape \(3,\)"):
        F.rotary(rng.normal(size=(2, 4, 6)), np.arange(3))


# --- grouped queries -------------------------------------------------------------------------------------------------


def test_repeat_heads_backward_wants_whole_groups(rng):
    with pytest.raises(ValueError, match="repeats must divide the heads of dy: got repeats = 4 for 6 heads"):
        F.repeat_heads_backward(rng.normal(size=(2, 6, 4, 5)), 4)


# --- ALiBi -----------------------------------------------------------------------------------------------------------


def test_alibi_slopes_of_six_heads_are_those_of_the_paper():
    """Four of the power of two below, then the first and the third of eight (Press et al. 2022, appendix A)."""
    slopes = -F.alibi_bias(6, 2, dtype=np.float64)[:, 1, 0]
    np.testing.assert_allclose(slopes, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3], rtol=1e-14)
