"""Masks, against the definition written out entry by entry. True = hidden."""

import numpy as np
import pytest

from transformer_np.masks import additive, causal_mask, padding_mask, window_mask


@pytest.mark.parametrize(("T", "S"), [(4, None), (4, 4), (3, 5), (1, 6), (1, 1)])
def test_causal(T, S):
    mask = causal_mask(T, S)
    S = S or T
    assert mask.dtype == bool and mask.shape == (T, S)
    for t, s in np.ndindex(T, S):
        assert mask[t, s] == (s > t + (S - T))
    assert not mask[-1].any()  # the last query sees every key


@pytest.mark.parametrize(("T", "S"), [(5, None), (3, 7)])
@pytest.mark.parametrize("window", [0, 1, 3, 9])
def test_window(T, S, window):
    mask = window_mask(T, window, S)
    S = S or T
    assert mask.shape == (T, S)
    for t, s in np.ndindex(T, S):
        assert mask[t, s] == (abs(s - (t + S - T)) > window)


def test_padding():
    ids = np.array([[5, 0, 7], [9, 9, 0]])
    mask = padding_mask(ids, 0)
    assert mask.shape == (2, 1, 1, 3) and mask.dtype == bool
    assert mask[:, 0, 0].tolist() == [[False, True, False], [False, False, True]]
    assert padding_mask(ids, 9)[:, 0, 0].tolist() == [[False, False, False], [True, True, False]]
    assert np.array_equal(padding_mask(ids.tolist(), 0), mask)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_additive(dtype):
    mask = causal_mask(3)
    added = additive(mask, dtype)
    assert added.dtype == dtype
    for t, s in np.ndindex(3, 3):
        assert added[t, s] == (-np.inf if mask[t, s] else 0)
    assert additive(mask).dtype == np.float32
