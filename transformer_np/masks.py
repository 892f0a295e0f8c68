"""Masks: Boolean arrays, True = hidden, that broadcast to the scores (B, H, T, S).

Combine masks with `|`, which creates an array of their common shape. Or pass a tuple of masks to attention: then no
array of size T · S exists, which matters for long sequences.
"""

import numpy as np

from .support.checks import MOST, as_array, as_ids, check_at_least, floating_dtype


def causal_mask(T, S=None):
    """Hide the future: key s is hidden from query t if s > t + (S − T).

    ->  (T, S) Boolean, square if S is not given

    With S > T the queries are the last T of S positions, so the last query sees every key, as a key/value cache needs.
    The lecture's M is `additive(causal_mask(n))`: 0 where i ≥ j, −∞ elsewhere.
    """
    return _by_distance(lambda distance: distance > 0, T, S)


def padding_mask(ids, pad_id):
    """Hide padding keys from every query in every head.

    ids (B, S)  ->  (B, 1, 1, S) Boolean
    """
    ids = as_ids(ids, name="ids")
    check_at_least("pad_id", pad_id, -MOST)
    if ids.ndim != 2:
        raise ValueError(f"ids must have the axes (B, S), got shape {ids.shape}")
    return (ids == pad_id)[:, None, None, :]


def window_mask(T, window, S=None):
    """Hide keys that are more than `window` positions away on either side; `| causal_mask(T)` hides the future too.

    ->  (T, S) Boolean, aligned to the end like causal_mask; with window 0 a position sees only itself
    """
    check_at_least("window", window, 0)
    return _by_distance(lambda distance: np.abs(distance) > window, T, S)


def _by_distance(hidden, T, S):
    """A mask that depends only on how far key s lies after query t: entry (t, s) is hidden(s − t − (S − T)).

    ->  (T, S), read-only

    There are T + S − 1 distances, so T + S − 1 Booleans are enough: the rows are views of one line, and each row starts
    one place before the row above it.
    """
    S = T if S is None else S
    check_at_least("T", T, 1)
    check_at_least("S", S, T)
    line = hidden(np.arange(1 - S, T))  # (T + S − 1,)
    line.flags.writeable = False
    return np.ndarray((T, S), bool, line, offset=T - 1, strides=(-1, 1))


def additive(mask, dtype=np.float32):
    """Turn a Boolean mask into one that is added to the scores: 0 where visible, −inf where hidden.

    mask (...) Boolean  ->  (...) of the given float dtype
    """
    dtype = floating_dtype("dtype", dtype)
    mask = as_array(mask, "mask", "Booleans")
    if mask.dtype != bool:
        raise TypeError(f"mask must be Boolean (True = hidden), got {mask.dtype}")
    return np.where(mask, np.array(-np.inf, dtype), np.array(0, dtype))


def hide(scores, masks):
    """Apply masks to the scores in place: set −inf where a Boolean mask is True, add float masks.

    Boolean masks are combined first, because with several heads they are smaller than the scores.
    """
    hidden = None
    for mask in masks:
        if mask.dtype != bool:
            scores += mask
        else:
            hidden = mask if hidden is None else hidden | mask
    if hidden is not None:
        np.copyto(scores, -np.inf, where=hidden)
