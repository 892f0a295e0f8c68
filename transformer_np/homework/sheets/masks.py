"""The masks: what to hide, and the additive form."""

import numpy as np

from ... import masks as M
from ..exercise import Case, draw_sizes, extended
from .draws import only
from .sheet import Sheet

SHEET = Sheet(__file__)


def positions(T, S):
    """The positions of the queries, (T, 1), which are the last T of S, and of the keys, (S,)."""
    S = T if S is None else S
    offset = S - T
    return offset + np.arange(T)[:, None], np.arange(S)


def causal_mask_cases(rng):
    sizes = draw_sizes(rng, "T S", least=3)
    T, S = sorted(sizes.values())
    sizes = {"T": T, "S": S}
    return [
        Case("", (S,), sizes={"T": S, "S": S}),
        extended(Case("S > T", (T, S), sizes=sizes)),
        Case("S = T given", (T, T), sizes={"T": T, "S": T}),
        extended(Case("one query for many keys", (1, S), sizes={"T": 1, "S": S})),
        extended(Case("S twice as large as T", (T, 2 * T), sizes={"T": T, "S": 2 * T})),
    ]


def causal_mask(T, S=None):
    query, key = positions(T, S)
    mask = key > query
    return mask


def window_mask_cases(rng):
    T = int(rng.integers(8, 10))
    S = T + int(rng.integers(3, 5))
    window = int(rng.integers(3, 5))
    sizes = {"T": T, "S": T}
    return [
        Case("", (T, 4), sizes=sizes),
        extended(Case("S > T", (T, window, S), sizes={"T": T, "S": S})),
        Case("window 0", (T, 0), sizes=sizes),
        Case("window 1", (T, 1), sizes=sizes),
        Case("window 3", (T + 1, 3), sizes={"T": T + 1, "S": T + 1}),
        Case("a window that covers all", (T, T + 1), sizes=sizes),
        extended(Case("one query for many keys", (1, window, S), sizes={"T": 1, "S": S})),
    ]


def window_mask(T, window, S=None):
    query, key = positions(T, S)
    distance = np.abs(key - query)
    mask = distance > window
    return mask


# --- padding ----------------------------------------------------------------------------------------------------------


def padding_mask_cases(rng):
    sizes = draw_sizes(rng, "B S", least=3)
    sizes["S"] += 4
    B, S = sizes["B"], sizes["S"]
    position = np.arange(S)
    lengths = rng.permutation(np.arange(B) % (S - 2) + 2)[:, None]  # (B, 1), two tokens at least
    ids = rng.integers(1, 9, (B, S))
    behind = np.where(position < lengths, ids, 0)
    in_front = np.where(position < S - lengths, 0, ids)
    between = ids.copy()
    between[:, [1, 3]] = between[0, -1] = 0
    pad_id = int(rng.integers(3, 6))
    other = np.where(ids == pad_id, pad_id + 1, ids)
    other[:, :2] = 0, pad_id - 1  # with this pad_id, 0 is a token like any other
    other = np.where(position < lengths + 1, other, pad_id)
    empty = behind.copy()
    empty[-1] = 0
    square = np.where(position[:B] <= rng.permutation(B)[:, None], ids[:, :B], 0)
    return [
        Case("", (behind, 0), sizes=sizes),
        Case("a pad_id other than 0", (other, pad_id), sizes=sizes),
        Case("padding in front", (in_front, 0), sizes=sizes),
        Case("padding between tokens", (between, 0), sizes=sizes),
        Case("no padding at all", (ids, 0), sizes=sizes),
        Case("a row of nothing but padding", (empty, 0), sizes=sizes),
        Case("as many rows as tokens", (square, 0), sizes={"B": B, "S": B}),
    ]


def padding_mask(ids, pad_id):
    mask = ids == pad_id
    return mask[:, None, None, :]


# --- the additive form ------------------------------------------------------------------------------------------------


def additive_cases(rng):
    sizes = draw_sizes(rng, "B H T S")
    B, H, T, S = sizes.values()

    def draw(*shape):
        mask = rng.random(shape) < 0.4
        mask[..., 0, :2], mask[..., -1, -2:] = (True, False), (False, True)
        return mask

    of_matrix = only(sizes, "T S")
    return [
        Case("", (draw(T, S),), sizes=of_matrix),
        extended(Case("dtype=np.float64", (draw(T, S),), {"dtype": np.float64}, of_matrix)),
        extended(Case("dtype=np.float32", (draw(T, S),), {"dtype": np.float32}, of_matrix)),
        Case("a mask of shape (B, 1, 1, S)", (draw(B, 1, 1, S),), sizes=only(sizes, "B S")),
        Case("a mask of shape (B, H, T, S)", (draw(B, H, T, S),), sizes=sizes),
        Case("a row hidden whole", (draw(T, S) | (np.arange(T) == 1)[:, None],), sizes=of_matrix),
        Case("nothing hidden", (np.zeros((T, S), bool),), sizes=of_matrix),
    ]


def additive(mask, dtype=np.float32):
    return np.where(mask, -np.inf, 0).astype(dtype)


EXERCISES = [
    SHEET.exercise(M.causal_mask, causal_mask, causal_mask_cases, {"mask": "T S"}),
    SHEET.exercise(M.padding_mask, padding_mask, padding_mask_cases, {"mask": "B 1 1 S"}),
    SHEET.exercise(M.window_mask, window_mask, window_mask_cases, {"mask": "T S"}),
    SHEET.exercise(M.additive, additive, additive_cases, {"M": "..."}),
]
