"""Masks: Boolean arrays, True = hidden, that broadcast to the scores (B, H, T, S).

Combine masks with `|`, which makes an array of their common broadcast shape; or pass attention a tuple of masks, which
for long sequences avoids any array of size T · S.
"""

import numpy as np

from .support.checks import check_at_least


def causal_mask(T, S=None):
    """Hide the future: key s is hidden from query t where s > t + (S − T).

    ->  (T, S), square if S is not given

    With S > T the queries are the last T of S positions, so that the last query sees every key, as a key/value
    cache requires. The lecture's M is `additive(causal_mask(n))`: 0 where i ≥ j, −∞ elsewhere.
    """
    return _by_distance(lambda distance: distance > 0, T, S)


def padding_mask(ids, pad_id):
    """Hide the keys that are padding, from every query and every head.

    ids (B, S)  ->  (B, 1, 1, S)
    """
    ids = np.asarray(ids)
    if ids.ndim != 2:
        raise ValueError(f"ids must have the axes (B, S), got shape {ids.shape}")
    return (ids == pad_id)[:, None, None, :]


def window_mask(T, window, S=None):
    """Hide the keys more than `window` positions away, on either side; with `| causal_mask(T)` only the past remains.

    ->  (T, S), aligned to the end like causal_mask; with window 0 a position sees only itself
    """
    check_at_least("window", window, 0)
    return _by_distance(lambda distance: np.abs(distance) > window, T, S)


def _by_distance(hidden, T, S):
    """A mask that depends only on the distance from query t to key s: entry (t, s) is hidden(s − t − (S − T)).

    ->  (T, S), read-only

    There are only T + S − 1 distances, so the mask needs only that many Booleans: its rows are views of one line, each
    starting one place before the previous row.
    """
    S = T if S is None else S
    check_at_least("T", T, 1)
    check_at_least("S", S, T)
    line = hidden(np.arange(1 - S, T))  # (T + S − 1,)
    line.flags.writeable = False
    return np.ndarray((T, S), bool, line, offset=T - 1, strides=(-1, 1))


def additive(mask, dtype=np.float32):
    """The mask to add to the scores: 0 where seen, −inf where hidden.

    mask (...) Boolean  ->  (...) of the given float dtype
    """
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise TypeError(f"mask must be Boolean (True = hidden), got {mask.dtype}")
    return np.where(mask, np.array(-np.inf, dtype), np.array(0, dtype))


def hide(scores, masks):
    """Apply masks to the scores in place: −inf where a Boolean mask is True; float masks are added.

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
