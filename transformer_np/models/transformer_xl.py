"""Transformer-XL (Dai et al. 2019): a decoder-only model that remembers earlier segments of the text."""

from dataclasses import dataclass

import numpy as np

from ..layers import Dropout, Embedding, FeedForward, LayerNorm, RelativeMultiHeadAttention
from ..layers.blocks import AddNorm, Block, composed
from ..layers.initial import width_std
from ..module import Module
from ..support.checks import as_float_array, as_rows
from .base import ModelConfig, fitting
from .decoder_only import output_of


@dataclass(frozen=True)
class TransformerXLConfig(ModelConfig):
    """Sizes and choices of a Transformer-XL.

    d_ff: the width of the feed-forward network; None is 4 · d_model
    mem_len: the number of positions each layer remembers; 0 is a model without memory
    norm_first: whether LayerNorm comes before each sub-layer; False is the paper's order, after it
    tie_embeddings: whether the output projection is the token embedding transposed
    """

    vocab_size: int
    d_model: int = 128
    num_heads: int = 4
    num_layers: int = 4
    d_ff: int | None = None
    mem_len: int = 128
    dropout: float = 0.0
    tie_embeddings: bool = True
    norm_first: bool = False
    activation: str = "relu"
    layer_norm_eps: float = 1e-5
    dtype: str = "float32"
    seed: int = 0

    def __post_init__(self):
        super().__post_init__()
        if self.d_ff is None:
            self._set(d_ff=4 * self.d_model)


class RecurrentBlock(Block):
    """Relative attention over memory and segment, then feed-forward, each with Add & Norm (Dai et al. 2019, §3.2).

    x (B, T, D), memory (B, M, D) or None  ->  (B, T, D), and the input of the attention, (B, T, D)

    A later segment needs the second output as its memory. It is x itself in the paper's order, LayerNorm(x) with
    norm_first.
    """

    sublayers = ("attention", "feed_forward")

    def forward(self, x, memory=None):
        read = None

        def attention(x):
            nonlocal read
            read = x
            return self.attention(x, memory)

        a = self.add_norm1(x, attention)  # (B, T, D)
        return self.add_norm2(a, self.feed_forward), read

    def backward(self, dout):
        """dout (B, T, D) of the first output; the second is a constant for later segments  ->  dx (B, T, D)"""
        da = self.add_norm2.backward(dout, self.feed_forward.backward)
        return self.add_norm1.backward(da, self.attention.backward)


class TransformerXL(Module):
    """A model that reads a text in segments; each layer remembers its own inputs from earlier segments.

        model = TransformerXL(TransformerXLConfig(vocab_size=11, d_model=16, num_heads=2, num_layers=2, mem_len=6))
        logits, mems = model(np.array([[4, 5, 6]]))       # (1, 3, 11), and 2 memories of (1, 3, 16)
        logits, mems = model(np.array([[7, 8, 9]]), mems) # goes on; the memories now hold 6 positions

    A layer sees mem_len positions before its segment, and each of these has seen mem_len positions before its own one
    layer below. So the context reaches num_layers · mem_len tokens back, at the cost of one segment. Gradients stop at
    the memory.

    With fixed parameters, consecutive segments give the same result as one long segment, until a layer forgets a
    position. `mem_len` may be larger than in training: no parameter depends on it.

    Raises ValueError for ids out of range, an empty segment, or memories of another model or batch.
    """

    def __init__(self, config: TransformerXLConfig):
        c = self.config = fitting(config, TransformerXLConfig)
        self.mem_len = c.mem_len
        rng = np.random.default_rng(c.seed)
        self.embedding = Embedding(c.vocab_size, c.d_model, rng=rng, dtype=c.dtype, init_std=width_std(c.d_model))
        self.dropout = Dropout(c.dropout, rng=rng)
        self.blocks = [self._block(rng) for _ in range(c.num_layers)]
        self.norm = LayerNorm(c.d_model, c.layer_norm_eps, dtype=c.dtype) if c.norm_first else None
        self.output = output_of(self.embedding, c, rng)

    def _block(self, rng):
        c = self.config
        return composed(
            RecurrentBlock,
            lambda: AddNorm(c.d_model, c.dropout, c.norm_first, c.layer_norm_eps, rng=rng, dtype=c.dtype),
            attention=RelativeMultiHeadAttention(c.d_model, c.num_heads, rng=rng, dtype=c.dtype),
            feed_forward=FeedForward(c.d_model, c.d_ff, c.activation, rng=rng, dtype=c.dtype),
        )

    def forward(self, ids, mems=None):
        """ids (B, T), mems or None  ->  logits (B, T, V), new mems: per layer (B, ≤ mem_len, D)

        mems: the memories that the previous segment returned; None at the beginning of a text
        """
        ids = as_rows(ids, self.config.vocab_size)
        mems = self._checked(mems, len(ids))
        x = self.dropout(self.embedding(ids) * self._scale)  # (B, T, D)
        new_mems = []
        for block, memory in zip(self.blocks, mems, strict=True):
            x, read = block(x, memory)  # (B, T, D), (B, T, D)
            new_mems.append(self._remembered(memory, read))
        if self.norm is not None:
            x = self.norm(x)
        return self.output(x), new_mems  # (B, T, V)

    def backward(self, dlogits):
        """From dlogits (B, T, V) to the gradients of all parameters. Ids and memories have no gradient."""
        dx = self.output.backward(dlogits)  # (B, T, D)
        if self.norm is not None:
            dx = self.norm.backward(dx)
        for block in reversed(self.blocks):
            dx = block.backward(dx)
        self.embedding.backward(self.dropout.backward(dx) * self._scale)

    def reader(self, use_cache=True):
        """For `decoding.generate`: a function from the text so far, ids (B, length), to the logits of its next token.

        Each call reads only the tokens that are new since the last one, and remembers the others; without the cache it
        reads the whole text again. Both give the same logits for texts of up to mem_len + 1 tokens.
        """
        mems, done = None, 0

        def read(ids):
            nonlocal mems, done
            if not use_cache:
                return self(ids)[0][:, -1]  # (B, V)
            logits, mems = self(ids[:, done:], mems)
            done = ids.shape[1]
            return logits[:, -1]  # (B, V)

        return read

    @property
    def _scale(self):
        """√D: the embedding is larger by this factor as input than as output projection (Vaswani et al. 2017, §3.4)."""
        return float(self.config.d_model) ** 0.5

    def _remembered(self, memory, read):
        """The last mem_len positions of memory and segment, joined."""
        read = read if memory is None else np.concatenate([memory, read], axis=1)
        return read[:, max(0, read.shape[1] - self.mem_len) :].copy()

    def _checked(self, mems, batch):
        """One memory per layer, None for an empty one."""
        c = self.config
        if mems is None:
            return [None] * c.num_layers
        if not isinstance(mems, list | tuple):
            raise TypeError(f"mems must be a list of arrays, one per layer, got {type(mems).__name__}")
        if len(mems) != c.num_layers:
            raise ValueError(f"mems must be {c.num_layers} memories, one per layer, got {len(mems)}")
        mems = [as_float_array(memory, f"mems[{i}]") for i, memory in enumerate(mems)]
        M = mems[0].shape[1] if mems[0].ndim > 1 else 0
        for i, memory in enumerate(mems):
            shape = batch, M, c.d_model
            if memory.shape != shape:
                raise ValueError(f"mems[{i}] must have shape (B, M, D) = {shape}, got {memory.shape}")
        return [memory if M else None for memory in mems]
