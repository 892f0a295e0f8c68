"""Encoder and decoder block: attention, feed-forward network, residual path and LayerNorm put together.

The lecture's pseudo-code adds the positional encoding at the top of every block. The paper adds it once, below the
first block (Vaswani et al. 2017, fig. 1 and §3.5), and so does this package: `models.encoder_decoder.InputEmbedding`.

`composed` makes a block of other sub-layers, for the other models.
"""

import numpy as np

from ..module import Module
from ..support.checks import as_rng, check_flag, check_kind, check_number
from . import Dropout, FeedForward, LayerNorm, MultiHeadAttention


class AddNorm(Module):
    """The residual path around a sub-layer, and the LayerNorm ("Add & Norm", Vaswani et al. 2017, §3.1 and §5.4).

        post-norm, the paper:             LayerNorm(x + Dropout(sublayer(x)))
        norm_first (Xiong et al. 2020):   x + Dropout(sublayer(LayerNorm(x)))

    The sub-layer is passed in: its forward to `forward`; its backward, a function from dout to dx, to `backward`.
    `intermediates` names the residual path: residual_before is x, written what the sub-layer adds, residual_after the
    sum.

    norm: a layer to use instead of the LayerNorm, such as RMSNorm(d_model); eps, bias and dtype are then ignored
    """

    taps = ("residual_before", "written", "residual_after")

    def __init__(
        self, d_model, dropout=0.0, norm_first=False, eps=1e-5, bias=True, rng=None, dtype=np.float32, norm=None
    ):
        check_number("dropout", dropout, "[0, 1)")
        check_flag("norm_first", norm_first)
        if norm is not None:
            check_kind("norm", norm, Module)
        self.norm = LayerNorm(d_model, eps, bias, dtype=dtype) if norm is None else norm
        self.dropout = Dropout(dropout, rng=rng)
        self.norm_first = norm_first

    def forward(self, x, sublayer):
        x = self.show(residual_before=x)
        written = sublayer(self.norm(x) if self.norm_first else x)  # (B, T, D)
        written = self.show(written=self.dropout(written))
        x = self.show(residual_after=x + written)  # (B, T, D)
        return x if self.norm_first else self.norm(x)

    def backward(self, dout, sublayer_backward):
        dsum = self.gradient(residual_after=dout if self.norm_first else self.norm.backward(dout))
        dwritten = self.gradient(written=dsum)  # a sum hands its gradient to both terms
        dx = sublayer_backward(self.dropout.backward(dwritten))
        return self.gradient(residual_before=dsum + (self.norm.backward(dx) if self.norm_first else dx))


class Block(Module):
    """Sub-layers in the order of the forward, each with its Add & Norm: add_norm1, add_norm2, …

    add_norm() makes the Add & Norm around each; TypeError for other sub-layers than the class names in `sublayers`
    """

    sublayers: tuple[str, ...] = ()

    def __init__(self, add_norm, **sublayers):
        if tuple(sublayers) != self.sublayers:
            wanted, got = (", ".join(names) for names in (self.sublayers, sublayers))
            raise TypeError(f"{type(self).__name__} has the sub-layers {wanted}, got {got}")
        for number, (name, sublayer) in enumerate(sublayers.items(), 1):
            setattr(self, name, sublayer)
            setattr(self, f"add_norm{number}", add_norm())

    def parts(self):
        """[(sub-layer, its Add & Norm), …]"""
        return [(getattr(self, name), getattr(self, f"add_norm{i}")) for i, name in enumerate(self.sublayers, 1)]


class EncoderBlock(Block):
    """Self-attention, then feed-forward, each with Add & Norm (Vaswani et al. 2017, fig. 1 left; lecture §8.1).

        A = LayerNorm(X + MultiHeadAttention(X)),    O = LayerNorm(A + FFN(A))

    x (B, T, D), mask broadcastable to (B, H, T, T), or a tuple of such masks  ->  (B, T, D)
    With a causal mask this is the block of a decoder-only model; cache: its key/value cache during decoding.
    An attention is called with (x, memory=None, mask=None, cache=None); its backward returns dx and dmemory, None for
    self-attention.
    """

    sublayers = ("attention", "feed_forward")

    def __init__(
        self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False, activation="relu", eps=1e-5, bias=True,
        rng=None, dtype=np.float32,
    ):  # fmt: skip
        rng = as_rng(rng)
        around = dropout, norm_first, eps, bias, rng, dtype
        self.attention = MultiHeadAttention(d_model, num_heads, bias, rng, dtype)
        self.add_norm1 = AddNorm(d_model, *around)
        self.feed_forward = FeedForward(d_model, d_ff, activation, bias, rng, dtype)
        self.add_norm2 = AddNorm(d_model, *around)

    def forward(self, x, mask=None, cache=None):
        a = self.add_norm1(x, lambda x: self.attention(x, mask=mask, cache=cache))  # (B, T, D)
        return self.add_norm2(a, self.feed_forward)  # (B, T, D)

    def backward(self, dout):
        da = self.add_norm2.backward(dout, self.feed_forward.backward)
        return self.add_norm1.backward(da, lambda d: self.attention.backward(d)[0])


class DecoderBlock(Block):
    """Masked self-attention, cross-attention over the encoder's output, feed-forward, each with Add & Norm
    (Vaswani et al. 2017, fig. 1 right; lecture §8.2).

        A = LayerNorm(Y + MaskedMultiHeadAttention(Y)),  B = LayerNorm(A + MultiHeadAttention(A, C)),
        O = LayerNorm(B + FFN(B))

    x (B, T, D), memory (B, S, D), mask to (B, H, T, T), memory_mask to (B, H, T, S), or tuples  ->  (B, T, D)
    cache: the key/value caches of self-attention and cross-attention, in this order, during decoding
    An attention is called as in EncoderBlock; its backward returns dx and dmemory.
    """

    sublayers = ("self_attention", "cross_attention", "feed_forward")

    def __init__(
        self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False, activation="relu", eps=1e-5, bias=True,
        rng=None, dtype=np.float32,
    ):  # fmt: skip
        rng = as_rng(rng)
        around = dropout, norm_first, eps, bias, rng, dtype
        self.self_attention = MultiHeadAttention(d_model, num_heads, bias, rng, dtype)
        self.add_norm1 = AddNorm(d_model, *around)
        self.cross_attention = MultiHeadAttention(d_model, num_heads, bias, rng, dtype)
        self.add_norm2 = AddNorm(d_model, *around)
        self.feed_forward = FeedForward(d_model, d_ff, activation, bias, rng, dtype)
        self.add_norm3 = AddNorm(d_model, *around)

    def forward(self, x, memory, mask=None, memory_mask=None, cache=(None, None)):
        self_cache, cross_cache = cache
        a = self.add_norm1(x, lambda x: self.self_attention(x, mask=mask, cache=self_cache))  # (B, T, D)
        b = self.add_norm2(a, lambda a: self.cross_attention(a, memory, memory_mask, cross_cache))  # (B, T, D)
        return self.add_norm3(b, self.feed_forward)  # (B, T, D)

    def backward(self, dout):
        """dout (B, T, D)  ->  dx (B, T, D), dmemory (B, S, D)"""
        dmemory = None

        def cross_attention_backward(d):
            nonlocal dmemory
            da, dmemory = self.cross_attention.backward(d)
            return da

        db = self.add_norm3.backward(dout, self.feed_forward.backward)
        da = self.add_norm2.backward(db, cross_attention_backward)
        dx = self.add_norm1.backward(da, lambda d: self.self_attention.backward(d)[0])
        return dx, dmemory


def composed(block_class, add_norm, **sublayers):
    """A block of these sub-layers in place of the lecture's, made as `Block` makes them:

    composed(EncoderBlock, lambda: AddNorm(8, norm=RMSNorm(8)), attention=…, feed_forward=…)
    """
    block = block_class.__new__(block_class)
    Block.__init__(block, add_norm, **sublayers)
    return block
