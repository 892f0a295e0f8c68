from functools import lru_cache

import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..module import Module, Parameter
from ..support.checks import as_dout, check_all_at_least, check_flag, check_kind
from .attention import MultiHeadAttention
from .initial import normal


class RelativePositionBias(Module):
    """A learned number for each head and each bucket of distances, added to the scores (Raffel et al. 2020, §2.1).

    All layers of a stack share one table: pass it to each UnscaledAttention as `relative_bias`.
    """

    def __init__(
        self, num_heads, num_buckets=32, max_distance=128, bidirectional=True, rng=None,
        dtype: DTypeLike = np.float32, init_std=0.1,
    ):  # fmt: skip
        check_all_at_least(1, num_heads=num_heads, num_buckets=num_buckets, max_distance=max_distance)
        check_flag("bidirectional", bidirectional)
        self.num_buckets, self.max_distance, self.bidirectional = num_buckets, max_distance, bidirectional
        self.buckets(1, 1)  # raises here for wrong sizes
        self.table = Parameter(normal(rng, (num_buckets, num_heads), init_std, dtype))

    def buckets(self, T, S):
        """(T, S): the bucket of each distance."""
        return _buckets(F.relative_position_buckets, T, S, self.num_buckets, self.max_distance, self.bidirectional)

    def forward(self, T, S=None):
        """The bias of T queries, the last T of S positions, for all S keys: (H, T, S)."""
        buckets = self.buckets(T, T if S is None else S)  # (T, S)
        self.keep(buckets=buckets)
        return F.relative_position_bias(self.table.data, buckets)

    def backward(self, dbias):
        """dbias (H, T, S). Adds to the table's gradient. Lengths have no gradient: returns None."""
        buckets = self.kept("buckets")
        dbias = as_dout(dbias, (self.table.shape[1], *buckets.shape), self.table.dtype, "dbias")
        self.table.grad += F.relative_position_bias_backward(dbias, buckets, self.num_buckets)


class UnscaledAttention(MultiHeadAttention):
    """The attention of T5: the scores are not divided by √d_k, and a bias for each distance is added to them.

    relative_bias: a RelativePositionBias, which several layers may share, or None
    """

    def __init__(
        self, d_model, num_heads, bias=True, rng=None, dtype: DTypeLike = np.float32, d_head=None, relative_bias=None
    ):
        super().__init__(d_model, num_heads, bias, rng, dtype, d_head)
        if relative_bias is not None:
            check_kind("relative_bias", relative_bias, RelativePositionBias)
        self.relative_bias = relative_bias

    def _attend(self, q, k, v, mask):
        return F.unscaled_attention(q, k, v, self._bias(q, k), mask)

    def _bias(self, q, k):
        return None if self.relative_bias is None else self.relative_bias(q.shape[2], k.shape[2])  # (H, T, S)

    def _scores(self, q, k, mask):
        return F.unscaled_scores(q, k, self._bias(q, k), mask)

    def _attend_backward(self, dheads, q, k, v, weights, concat):
        dq, dk, dv, dbias = F.unscaled_attention_backward(dheads, q, k, v, weights)
        if self.relative_bias is not None:
            self.relative_bias.backward(dbias)
        return dq, dk, dv


@lru_cache(maxsize=64)
def _buckets(function, *arguments):
    """function(*arguments), cached because every layer needs the same buckets; read-only. The function is part of the
    cache key, so a swapped F.relative_position_buckets gets its own results."""
    buckets = function(*arguments)
    buckets.flags.writeable = False
    return buckets
