import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..module import Module, Parameter
from ..support.checks import as_rng, check_at_least, check_flag, check_heads, check_kv_heads, shapes, short
from ..support.replacing import Input
from .initial import glorot_uniform
from .places import ATTENTIONS, Argument, Result

# Attention is computed tile by tile if both sizes are reached: that is faster once the scores outgrow the cache.
TILED_BYTES = 16 * 2**20  # of all scores, (B, H, T, S)
TILED_LENGTH = 256  # of queries and of keys


class MultiHeadAttention(Module):
    """H attentions side by side, each on its own D/H features (Vaswani et al. 2017, §3.2.2).

        MultiHead(x) = Concat(head₁ … head_H) W_O,    headᵢ = Attention(x W_Qᵢ, source W_Kᵢ, source W_Vᵢ)

    The W_Qᵢ of all heads lie side by side in one matrix w_q (D, D): head i has the columns i·K … (i+1)·K − 1. The same
    holds for w_k and w_v. The source is x itself (self-attention) or, if `memory` is given, the memory
    (cross-attention).

    Large scores (TILED_BYTES, TILED_LENGTH) are never stored as a whole: functional.tiled_attention does the work,
    unless eval(keep=True) requests all intermediates.

    d_head: K, if it is not D/H: the matrices are then (D, H·K), and w_o (H·K, D)
    bias: whether all four linear maps have a bias; with "qkv" the output has none, as in Qwen2
    scaled: whether the scores are divided by √d_k; T5 scales its initial weights instead
    relative_bias: a RelativePositionBias added to unscaled scores; several layers may share one
    num_kv_heads: G heads of keys and values, each shared by H/G heads of queries (Ainslie et al. 2023); w_k and w_v are
        then (D, G·K). None means H
    rotary: how queries and keys are turned by their positions (Su et al. 2021): the arguments of functional.rotary
        after the positions, such as {"theta": 10000.0}; None leaves them as they are. For self-attention only
    """

    always_kept = ("weights", "tiled")

    def __init__(
        self,
        d_model,
        num_heads,
        bias=True,
        rng=None,
        dtype: DTypeLike = np.float32,
        d_head=None,
        scaled=True,
        relative_bias=None,
        num_kv_heads=None,
        rotary=None,
    ):
        check_at_least("d_model", d_model, 1)
        check_at_least("num_heads", num_heads, 1)
        if d_head is None:
            check_heads(num_heads, d_model)
        check_flag("scaled", scaled)
        if scaled and relative_bias is not None:
            raise ValueError("a relative_bias is added to unscaled scores: pass scaled=False")
        d_head = d_model // num_heads if d_head is None else d_head
        check_at_least("d_head", d_head, 1)
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        check_kv_heads(num_kv_heads, num_heads)
        if rotary is not None:
            F.rotary(np.zeros((1, d_head)), [0], **rotary)  # raises errors now, not in the first forward
        known = isinstance(bias, bool | np.bool_ | str)
        biased = {True: "qkvo", False: "", "qkv": "qkv"}.get(bias if known else None)
        if biased is None:
            raise ValueError(f'bias must be True, False or "qkv", got {short(bias)}')
        rng = as_rng(rng)
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.scaled, self.relative_bias, self.rotary = scaled, relative_bias, rotary
        inner, shared = num_heads * d_head, num_kv_heads * d_head
        sizes = {"q": (d_model, inner), "k": (d_model, shared), "v": (d_model, shared), "o": (inner, d_model)}
        for name, (d_in, d_out) in sizes.items():
            setattr(self, f"w_{name}", Parameter(glorot_uniform(rng, d_in, d_out, dtype)))
            setattr(self, f"b_{name}", Parameter(np.zeros(d_out, dtype)) if name in biased else None)

    @property
    def weights(self) -> np.ndarray:
        """The attention weights of the last forward, (B, H, T, S): row t holds the weights of query t. None before the
        first forward.

        After a tiled forward they are computed each time they are read.
        """
        tiled = self._kept.get("tiled")
        return self._kept.get("weights") if tiled is None else tiled.weights()

    def replaceable(self):
        shortcuts = "_is_folded", "_is_tiled"
        return {
            "x": Input("x"),
            "memory": Input("memory", 1),
            **{name: Argument(name, ATTENTIONS, i, shortcuts) for i, name in enumerate("qkv")},
            "weights": Result("softmax", off=shortcuts),
            "concat": Result("merge_heads", "split_heads"),
        }

    @shapes(x="B T D", memory="B S D")
    def forward(self, x, memory=None, mask=None, cache=None):
        """x (B, T, D), memory (B, S, D) or None, mask broadcastable to (B, H, T, S), or a tuple of masks  ->  (B, T, D)

        cache: a decoding.KeyValueCache with the earlier keys and values, if x is only the newest part of a sequence
        """
        q = F.split_heads(self._project("q", x), self.num_heads)  # (B, H, T, K)
        if cache is not None and memory is not None and cache.length:
            k, v = cache.keys, cache.values  # the memory is the same at every step
        else:
            source = x if memory is None else memory
            k = F.split_heads(self._project("k", source), self.num_kv_heads)  # (B, G, S, K)
            v = F.split_heads(self._project("v", source), self.num_kv_heads)  # (B, G, S, K)
            if self.rotary is not None:
                if memory is not None:
                    raise ValueError("rotary positions are those of one sequence: memory must be None")
                start = 0 if cache is None else cache.length
                positions = np.arange(start, start + x.shape[1])
                q, k = F.rotary(q, positions, **self.rotary), F.rotary(k, positions, **self.rotary)
            if cache is not None:
                k, v = cache.append(k, v)
        repeats = self.num_heads // self.num_kv_heads
        is_folded = self._is_folded(repeats, q, mask)
        if is_folded:
            q = q.reshape(*k.shape[:2], repeats, q.shape[3])  # (B, G, H/G, K)
        elif repeats > 1:
            k, v = F.repeat_heads(k, repeats), F.repeat_heads(v, repeats)  # (B, H, S, K)
        weights = tiled = None  # a forward has one or the other
        if not self.scaled:
            bias = None if self.relative_bias is None else self.relative_bias(q.shape[2], k.shape[2])  # (H, T, S)
            heads, weights = F.unscaled_attention(q, k, v, bias, mask)
        elif self._is_tiled(q, k):
            tiled = _Tiled(q, k, mask)
            heads = tiled.forward(v)  # (B, H, T, K)
        else:
            heads, weights = F.scaled_dot_product_attention(q, k, v, mask)  # (B, H, T, K), (B, H, T, S)
        if is_folded:
            heads, weights = (a.reshape(len(x), self.num_heads, 1, a.shape[3]) for a in (heads, weights))
        concat = F.merge_heads(heads)  # (B, T, D)
        self.keep(x=x, memory=memory, q=q, k=k, v=v, weights=weights, tiled=tiled, concat=concat)
        return self._project("o", concat)

    def _is_folded(self, repeats, q, mask):
        """Decoding: the heads of a group are queries of the one head they share, and nothing is copied."""
        return repeats > 1 and q.shape[2] == 1 and mask is None and self.scaled and not self.keeping

    def _is_tiled(self, q, k):
        """Whether to tile: the scores are large and intermediates were not requested."""
        B, H, T, _ = q.shape
        S = k.shape[2]
        large = B * H * T * S * q.itemsize >= TILED_BYTES and min(T, S) >= TILED_LENGTH
        return large and (self.training or not self.keeping)

    def backward(self, dout):
        """dout (B, T, D)  ->  dx (B, T, D), dmemory (B, S, D), or None for self-attention"""
        x, memory, q, k, v, concat = self.kept("x", "memory", "q", "k", "v", "concat")
        weights, tiled = self.kept("weights", "tiled")
        dconcat = self._project_backward("o", dout, concat)  # (B, T, D)
        dheads = F.split_heads(dconcat, self.num_heads)  # (B, H, T, K)
        if tiled is not None:
            dq, dk, dv = tiled.backward(dheads, v, heads=F.split_heads(concat, self.num_heads))
        elif not self.scaled:
            dq, dk, dv, dbias = F.unscaled_attention_backward(dheads, q, k, v, weights)
            if self.relative_bias is not None:
                self.relative_bias.backward(dbias)
        else:
            dq, dk, dv = F.scaled_dot_product_attention_backward(dheads, q, k, v, weights)
        repeats = self.num_heads // self.num_kv_heads
        if repeats > 1:
            dk, dv = F.repeat_heads_backward(dk, repeats), F.repeat_heads_backward(dv, repeats)  # (B, G, S, K)
        if self.rotary is not None:
            positions = np.arange(x.shape[1])
            dq, dk = F.rotary_backward(dq, positions, **self.rotary), F.rotary_backward(dk, positions, **self.rotary)
        source = x if memory is None else memory
        dx = self._project_backward("q", F.merge_heads(dq), x)
        dsource = self._project_backward("k", F.merge_heads(dk), source)  # the source became keys and values
        dsource += self._project_backward("v", F.merge_heads(dv), source)
        if memory is not None:
            return dx, dsource
        dx += dsource
        return dx, None

    def _project(self, name, x):
        w, b = self._weight_and_bias(name)
        return F.linear(x, w.data, None if b is None else b.data)

    def _project_backward(self, name, dy, x):
        w, b = self._weight_and_bias(name)
        dx, dw, db = F.linear_backward(dy, x, w.data)
        w.grad += dw
        if b is not None:
            b.grad += db
        return dx

    def _weight_and_bias(self, name):
        return getattr(self, f"w_{name}"), getattr(self, f"b_{name}")


class _Tiled:
    """One forward pass of tiled attention, with the arrays from which its backward and its weights are computed."""

    def __init__(self, q, k, mask):
        self.q, self.k, self.mask = q, k, mask

    def forward(self, v):
        """v (B, H, S, K)  ->  heads (B, H, T, K)"""
        heads, self.log_total = F.tiled_attention(self.q, self.k, v, self.mask)
        return heads

    def backward(self, dheads, v, heads):
        """dheads, and the forward's v and heads  ->  dq (B, H, T, K), dk (B, H, S, K), dv (B, H, S, K)"""
        return F.tiled_attention_backward(dheads, self.q, self.k, v, heads, self.log_total, self.mask)

    def weights(self):
        """The weights, which the forward never stored: (B, H, T, S)."""
        return F.softmax(F.attention_scores(self.q, self.k, self.mask))
