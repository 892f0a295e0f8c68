from functools import lru_cache, partial

import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..module import Parameter
from ..support.shapes import shapes
from .attention import MultiHeadAttention


class RelativeMultiHeadAttention(MultiHeadAttention):
    """Causal self-attention by distance, over a memory of earlier inputs and x (Dai et al. 2019, §3.3).

        scores = ((x W_Q + u) (source W_K)ᵀ + shift((x W_Q + v) (R W_R)ᵀ)) / √d_k,    source = [memory; x]

    in each of H heads. R has the sinusoids of the distances M + T − 1 … 0. The scores depend on the distance between
    two tokens and not on their positions. So the hidden states of an earlier segment can be reused without giving two
    tokens the same position, and a memory may be longer than in training.

    u (H, K) and v (H, K) are learned and start at 0. The memory is a constant: it gets no gradient.
    """

    taps = ("x", "q", "k", "v", "r", "concat")

    def __init__(self, d_model, num_heads, rng=None, dtype: DTypeLike = np.float32):
        super().__init__(d_model, num_heads, False, rng, dtype)
        for name in "uv":
            setattr(self, name, Parameter(np.zeros((num_heads, self.d_head), dtype)))

    def _sizes(self, d_model):
        return {**super()._sizes(d_model), "r": (d_model, d_model)}

    @shapes(x="B T D", memory="B M D")
    def forward(self, x, memory=None, mask=None):
        """x (B, T, D), memory (B, M, D): the inputs before x, or None; mask broadcastable to (B, H, T, M + T)
        ->  (B, T, D)

        The future is always hidden; a mask hides more.
        """
        x = self.keep(x=x)
        source = x if memory is None else np.concatenate([memory, x], axis=1)  # (B, S, D), S = M + T
        encodings = distance_encodings(F.sinusoidal_encoding, source.shape[1], x.shape[2], x.dtype)  # (S, D)
        q = self._heads("q", x)  # (B, H, T, K)
        k, v = self._heads("k", source), self._heads("v", source)  # (B, H, S, K)
        r = self._heads("r", encodings[None])[0]  # (H, S, K)
        q, k, v, r = self.keep(q=q, k=k, v=v, r=r)
        heads, weights = self._attend(q, k, v, r, mask)
        concat, *_ = self.keep(concat=F.merge_heads(heads), weights=weights, source=source, encodings=encodings)
        out = self._project("o", concat)
        self.show(scores=partial(self._scores, q, k, r, mask), written=partial(self._written, concat))
        return out

    def backward(self, dout):
        """dout (B, T, D)  ->  dx (B, T, D). The memory's projections get a gradient; the memory itself does not."""
        x, source, encodings, concat = self.kept("x", "source", "encodings", "concat")
        q, k, v, r, weights = self.kept("q", "k", "v", "r", "weights")
        dconcat = self.gradient(concat=self._project_backward("o", dout, concat))  # (B, T, D)
        dheads = F.split_heads(dconcat, self.num_heads)  # (B, H, T, K)
        dq, dk, dv, dr, du, dposition_bias = self._attend_backward(dheads, q, k, v, weights, r)
        dq, dk, dv, dr = self.gradient(q=dq, k=dk, v=dv, r=dr)
        self.u.grad += du
        self.v.grad += dposition_bias
        self._heads_backward("r", dr[None], encodings[None])  # the encodings are constants
        dsource = self._heads_backward("k", dk, source)  # (B, S, D): the source became keys and values
        dsource += self._heads_backward("v", dv, source)
        dx = self._heads_backward("q", dq, x)  # (B, T, D)
        dx += dsource[:, -x.shape[1] :]  # the memory's part is dropped
        return self.gradient(x=dx)

    def _attend(self, q, k, v, r, mask):
        return F.relative_attention(q, k, v, r, self.u.data, self.v.data, mask)

    def _attend_backward(self, dheads, q, k, v, weights, r):
        return F.relative_attention_backward(dheads, q, k, v, r, self.u.data, self.v.data, weights)

    def _scores(self, q, k, r, mask):
        return F.relative_scores(q, k, r, self.u.data, self.v.data, mask)


@lru_cache(maxsize=16)
def distance_encodings(function, length, d_model, dtype):
    """The sinusoids of the distances length − 1 … 0, the farthest first: (length, d_model), read-only.

    function: F.sinusoidal_encoding. It is part of the cache key, so a swapped function gets its own results.
    """
    encodings = np.ascontiguousarray(function(length, d_model, dtype)[::-1])
    encodings.flags.writeable = False
    return encodings
