"""Attention to a window of neighbours: time and memory grow with the length, not with its square."""

import numpy as np

from ..support.checks import check_at_least
from ..support.shapes import shapes
from .core import softmax, softmax_backward

_SMALLEST_BLOCK = 16  # queries: the calls of smaller matrix products cost more time than they save


@shapes(q="... T K", k="... T K")
def window_scores(q, k, window, causal=False):
    """Score each key in the window of each query, by distance; see window_attention.

        scores = Q Kᵀ / √d_k over the keys |t − s| ≤ window, and s ≤ t if causal

    q (..., T, K), k (..., T, K)  ->  scores (..., T, R), −inf where there is no key
    """
    cut = _Blocks(q.shape[-2], window, causal)
    scores = cut.band(cut.queries(q) @ cut.keys(k).swapaxes(-1, -2))  # (..., T, R)
    scores *= q.shape[-1] ** -0.5
    np.copyto(scores, -np.inf, where=cut.outside)
    return scores


@shapes(q="... T K", k="... T K", v="... T K_v")
def window_attention(q, k, v, window, causal=False):
    """Attention to neighbours only, in O(T · window) time and memory (Vaswani et al. 2017, §4, "restricted").

        out_t = Σ_s A_ts V_s,    A = softmax(Q Kᵀ / √d_k) over the keys |t − s| ≤ window, and s ≤ t if causal

    q (..., T, K), k (..., T, K), v (..., T, K_v)
    ->  out (..., T, K_v), weights (..., T, R),  R = 2 · window + 1, or window + 1 if causal

    weights[..., t, j] is the weight of the key s = t − window + j, or 0 if there is no such key. A window larger than
    T − 1 is treated as T − 1. Raises ValueError for a window below 0. The result is the same as for
    scaled_dot_product_attention with masks.window_mask, but the (T, T) scores never exist: the queries are cut into
    blocks, each block meets the keys in its reach, and only the band along the diagonal of each product is used.
    """
    weights = softmax(window_scores(q, k, window, causal))  # (..., T, R)
    cut = _Blocks(q.shape[-2], window, causal)
    return cut.join(cut.unband(weights) @ cut.keys(v)), weights


@shapes(dout="... T K_v", q="... T K", k="... T K", v="... T K_v", weights="... T R")
def window_attention_backward(dout, q, k, v, weights, window, causal=False):
    """Backward of window_attention: scaled_dot_product_attention_backward, block by block. Several blocks used a key,
    so its gradients add up.

    dout (..., T, K_v), weights (..., T, R) the forward's second output
    ->  dq (..., T, K), dk (..., T, K), dv (..., T, K_v)
    """
    cut = _Blocks(q.shape[-2], window, causal)
    if weights.shape[-1] != cut.reach:
        right = f"{cut.reach} columns, as window = {window} {'and causal ' if causal else ''}gives"
        raise ValueError(f"window_attention_backward: weights must have {right}; got shape {weights.shape}")
    dout = cut.queries(dout)  # (..., N, C, K_v)
    dv = cut.add_up(cut.unband(weights).swapaxes(-1, -2) @ dout)
    dweights = cut.band(dout @ cut.keys(v).swapaxes(-1, -2))  # (..., T, R)
    dscores = softmax_backward(dweights, weights)
    dscores *= q.shape[-1] ** -0.5
    dscores = cut.unband(dscores)  # (..., N, C, L)
    return cut.join(dscores @ cut.keys(k)), cut.add_up(dscores.swapaxes(-1, -2) @ cut.queries(q)), dv


class _Blocks:
    """T positions in N blocks of C queries; a block meets L keys, from `window` before its first query on.

    In a block's product (C, L) query c meets the keys of its window in the columns c … c + R − 1: a band along the
    diagonal. `band` and `unband` go from the blocks (..., N, C, L) to the bands (..., T, R) and back.
    """

    def __init__(self, T, window, causal):
        check_at_least("window", window, 0)
        self.T, self.window = T, min(window, T - 1)  # no key is further away than that
        self.reach = self.window + 1 if causal else 2 * self.window + 1  # R
        self.C = min(T, max(self.window, _SMALLEST_BLOCK))
        self.N = -(-T // self.C)
        self.L = self.C + self.reach - 1
        key = np.arange(T)[:, None] + np.arange(self.reach) - self.window  # (T, R)
        self.outside = (key < 0) | (key >= T)

    def queries(self, x):
        """(..., T, K) -> (..., N, C, K), with zeros after the end."""
        return _pad_rows(x, 0, self.N * self.C - self.T).reshape(*x.shape[:-2], self.N, self.C, x.shape[-1])

    def keys(self, x):
        """(..., T, K) -> (..., N, L, K), with zeros around. A view: neighbouring blocks share their keys."""
        x = _pad_rows(x, self.window, self.N * self.C + self.L - self.C - self.window - self.T)
        windows = np.lib.stride_tricks.sliding_window_view(x, self.L, axis=-2, subok=True)  # (..., all starts, K, L)
        return windows[..., :: self.C, :, :].swapaxes(-1, -2)

    def band(self, blocks):
        """(..., N, C, L) -> (..., T, R)"""
        band = self._diagonal(blocks)
        return band.reshape(*band.shape[:-3], -1, self.reach)[..., : self.T, :]

    def unband(self, band):
        """(..., T, R) -> (..., N, C, L), with zeros beside the band."""
        blocks = np.zeros((*band.shape[:-2], self.N, self.C, self.L), band.dtype)
        rows = _pad_rows(band, 0, self.N * self.C - self.T)
        self._diagonal(blocks)[...] = rows.reshape(*band.shape[:-2], self.N, self.C, self.reach)
        return blocks

    def _diagonal(self, blocks):
        """The band of every block, (..., N, C, R), as a view: each row starts one column later."""
        *lead, row, column = blocks.strides
        shape = (*blocks.shape[:-1], self.reach)
        return np.lib.stride_tricks.as_strided(blocks, shape, (*lead, row + column, column))

    def join(self, blocks):
        """(..., N, C, K) -> (..., T, K)"""
        return blocks.reshape(*blocks.shape[:-3], -1, blocks.shape[-1])[..., : self.T, :]

    def add_up(self, blocks):
        """(..., N, L, K) -> (..., T, K), the backward of `keys`: the gradients of shared keys are added."""
        N, C, L = self.N, self.C, self.L
        total = np.zeros((*blocks.shape[:-3], N + -(-L // C), C, blocks.shape[-1]), blocks.dtype)
        for i, start in enumerate(range(0, L, C)):  # the i-th C rows of every block at once
            part = blocks[..., start : start + C, :]
            total[..., i : i + N, : part.shape[-2], :] += part
        rows = total.reshape(*blocks.shape[:-3], -1, blocks.shape[-1])
        return rows[..., self.window : self.window + self.T, :]


def _pad_rows(x, before, after):
    """Rows of zeros before and after the second axis from the end."""
    if not before and not after:
        return x
    padded = np.zeros_like(x, shape=(*x.shape[:-2], before + x.shape[-2] + after, x.shape[-1]))
    padded[..., before : before + x.shape[-2], :] = x
    return padded
