from functools import partial

import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..module import Module, Parameter
from ..support.checks import as_rng, check_all_at_least, check_at_least, check_flag, check_heads
from ..support.shapes import shapes
from .initial import glorot_uniform
from .places import Weights, Written
from .tiles import Tiles, are_worth_it


class MultiHeadAttention(Module):
    """H attentions side by side, each on its own D/H features (Vaswani et al. 2017, §3.2.2).

        MultiHead(x) = Concat(head₁ … head_H) W_O,    headᵢ = Attention(x W_Qᵢ, source W_Kᵢ, source W_Vᵢ)

    The W_Qᵢ of all heads lie side by side in one matrix w_q (D, D): head i has the columns i·K … (i+1)·K − 1. The same
    holds for w_k and w_v. The source is x itself (self-attention) or, if `memory` is given, the memory
    (cross-attention).

    Large scores are never stored as a whole (layers.tiles). A variant is a subclass that changes one or two of the four
    steps, `_heads`, `_attend` and their backward, such as layers.grouped_attention, and `_scores`, which shows them.

    d_head: K, if it is not D/H: the matrices are then (D, H·K), and w_o (H·K, D)
    """

    always_kept = ("weights",)
    taps = ("x", "memory", "q", "k", "v", "concat")
    places = (("scores", Weights), ("weights", Weights), ("written", Written))

    def __init__(self, d_model, num_heads, bias=True, rng=None, dtype: DTypeLike = np.float32, d_head=None):
        check_all_at_least(1, d_model=d_model, num_heads=num_heads)
        check_flag("bias", bias)
        if d_head is None:
            check_heads(num_heads, d_model)
            d_head = d_model // num_heads
        check_at_least("d_head", d_head, 1)
        self.num_heads, self.d_head = num_heads, d_head
        rng = as_rng(rng)
        for name, (d_in, d_out) in self._sizes(d_model).items():
            setattr(self, f"w_{name}", Parameter(glorot_uniform(rng, d_in, d_out, dtype)))
            setattr(self, f"b_{name}", Parameter(np.zeros(d_out, dtype)) if bias else None)

    def _sizes(self, d_model):
        """The shape of each matrix."""
        inner = self.num_heads * self.d_head
        return {"q": (d_model, inner), "k": (d_model, inner), "v": (d_model, inner), "o": (inner, d_model)}

    @property
    def weights(self) -> np.ndarray:
        """The attention weights of the last forward, (B, H, T, S): row t holds the weights of query t. None before the
        first forward. Those of tiles are computed each time they are read."""
        weights = self._kept.get("weights")
        return weights.weights() if isinstance(weights, Tiles) else weights

    @shapes(x="B T D", memory="B S D")
    def forward(self, x, memory=None, mask=None, cache=None):
        """x (B, T, D), memory (B, S, D) or None, mask broadcastable to (B, H, T, S), or a tuple of masks  ->  (B, T, D)

        cache: a decoding.KeyValueCache with the earlier keys and values, if x is only the newest part of a sequence
        """
        x, memory = self.keep(x=x, memory=memory)
        source = x if memory is None else memory
        q = self._heads("q", x, cache)  # (B, H, T, K)
        if memory is not None and cache is not None and cache.length:
            k, v = cache.keys, cache.values  # the memory is the same at every step
        else:
            k, v = self._heads("k", source, cache), self._heads("v", source, cache)  # (B, H, S, K)
            if cache is not None:
                k, v = cache.append(k, v)
        q, k, v = self.keep(q=q, k=k, v=v)
        heads, weights = self._attend(q, k, v, mask)  # (B, H, T, K), (B, H, T, S)
        concat, _ = self.keep(concat=F.merge_heads(heads), weights=weights)  # (B, T, D)
        out = self._project("o", concat)
        self.show(scores=partial(self._scores, q, k, mask), written=partial(self._written, concat))
        return out

    def backward(self, dout):
        """dout (B, T, D)  ->  dx (B, T, D), dmemory (B, S, D), or None for self-attention"""
        x, memory, q, k, v, weights, concat = self.kept("x", "memory", "q", "k", "v", "weights", "concat")
        dconcat = self.gradient(concat=self._project_backward("o", dout, concat))  # (B, T, D)
        dheads = F.split_heads(dconcat, self.num_heads)  # (B, H, T, K)
        dq, dk, dv = self._attend_backward(dheads, q, k, v, weights, concat)
        dq, dk, dv = self.gradient(q=dq, k=dk, v=dv)
        source = x if memory is None else memory
        dx = self._heads_backward("q", dq, x)
        dsource = self._heads_backward("k", dk, source)  # the source became keys and values
        dsource += self._heads_backward("v", dv, source)
        if memory is not None:
            return self.gradient(x=dx, memory=dsource)
        dx += dsource
        return self.gradient(x=dx), None

    # --- the four steps ------------------------------------------------------------------------------------------

    def _heads(self, name, x, cache=None):
        """The queries, keys or values of x (B, T, D): (B, H, T, K)."""
        return F.split_heads(self._project(name, x), self.num_heads)

    def _heads_backward(self, name, dheads, x):
        return self._project_backward(name, F.merge_heads(dheads), x)

    def _attend(self, q, k, v, mask):
        if are_worth_it(q, k) and not self._shows("weights"):
            tiles = Tiles(q, k, mask)
            return tiles.forward(v), tiles
        return F.scaled_dot_product_attention(q, k, v, mask)

    def _attend_backward(self, dheads, q, k, v, weights, concat):
        if isinstance(weights, Tiles):
            return weights.backward(dheads, v, F.split_heads(concat, self.num_heads))
        return F.scaled_dot_product_attention_backward(dheads, q, k, v, weights)

    def _scores(self, q, k, mask):
        """The scores before the softmax, (B, H, T, S), −∞ where hidden."""
        return F.attention_scores(q, k, mask)

    def _written(self, concat):
        """What each head adds to the output, (B, H, T, D). With b_o they add up to it."""
        return F.split_heads(concat, self.num_heads) @ self._w_o().reshape(self.num_heads, self.d_head, -1)

    def _w_o(self):
        return self.w_o.data

    def _w_o_backward(self, dw):
        self.w_o.grad += dw

    def _project(self, name, x):
        w, b = getattr(self, f"w_{name}"), getattr(self, f"b_{name}")
        return F.linear(x, w.data, None if b is None else b.data)

    def _project_backward(self, name, dy, x):
        w, b = getattr(self, f"w_{name}"), getattr(self, f"b_{name}")
        dx, dw, db = F.linear_backward(dy, x, w.data)
        w.grad += dw
        if b is not None:
            b.grad += db
        return dx
