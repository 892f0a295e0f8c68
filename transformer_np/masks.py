"""Masks: Boolean arrays, True = hidden, that broadcast to the scores (B, H, T, S). Combine them with `|`."""

import numpy as np

from .checks import check_at_least


def causal_mask(T, S=None):
    """Hide the future: key s is hidden from query t where s > t + (S − T).

    ->  (T, S), square if S is not given

    With S > T the queries are the last T of S positions, so that the last query sees every key: what a key/value
    cache needs. The lecture's M is `additive(causal_mask(n))`: 0 where i ≥ j, −∞ elsewhere.
    """
    return _distance(T, S) > 0


def padding_mask(ids, pad_id):
    """Hide the keys that are padding, from every query and every head.

    ids (B, S)  ->  (B, 1, 1, S)
    """
    ids = np.asarray(ids)
    if ids.ndim != 2:
        raise ValueError(f"ids must have the axes (B, S), got shape {ids.shape}")
    return (ids == pad_id)[:, None, None, :]


def window_mask(T, window, S=None):
    """Hide what is further away than `window` positions, on either side; `| causal_mask(T)` leaves the past alone.

    ->  (T, S), aligned to the end like causal_mask; window 0 lets a position see itself
    """
    check_at_least("window", window, 0)
    return np.abs(_distance(T, S)) > window


def _distance(T, S):
    """How far key s lies after query t: (T, S)."""
    S = T if S is None else S
    check_at_least("T", T, 1)
    check_at_least("S", S, T)
    return np.arange(S) - np.arange(S - T, S)[:, None]


def additive(mask, dtype=np.float32):
    """The same mask as something to add to the scores: 0 where seen, −inf where hidden.

    mask (...) Boolean  ->  (...) of the given float dtype
    """
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise TypeError(f"mask must be Boolean (True = hidden), got {mask.dtype}")
    return np.where(mask, np.array(-np.inf, dtype), np.array(0, dtype))
