"""The decoder-only Transformer (Radford et al. 2018, 2019): it predicts the next token from all tokens before it."""

from dataclasses import dataclass

import numpy as np

from ..layers import Dropout, Embedding, LayerNorm, LearnedPositionalEmbedding, Linear, TiedLinear
from ..layers.blocks import EncoderBlock
from ..layers.initial import normal
from ..masks import causal_mask
from ..module import Module
from ..support.checks import as_ids
from .base import ModelConfig, Pretrained
from .layouts import gpt2


@dataclass(frozen=True)
class GPTConfig(ModelConfig):
    """Sizes and choices of a GPT. The defaults are the smallest GPT-2 (Radford et al. 2019).

    max_len: the context, in tokens
    d_ff: the width of the feed-forward network; None is 4 · d_model
    activation: "relu", "gelu" (exact), "gelu_tanh", or "gated_gelu" with bias=False
    tie_embeddings: whether the output projection is the token embedding transposed
    bias: whether the linear maps and the LayerNorms have biases
    """

    vocab_size: int
    max_len: int = 1024
    d_model: int = 768
    num_heads: int = 12
    num_layers: int = 12
    d_ff: int | None = None
    dropout: float = 0.0
    activation: str = "gelu_tanh"
    tie_embeddings: bool = True
    bias: bool = True
    layer_norm_eps: float = 1e-5
    dtype: str = "float32"
    seed: int = 0

    activations = ("relu", "gelu", "gelu_tanh", "gated_gelu")

    def __post_init__(self):
        super().__post_init__()
        if self.d_ff is None:
            self._set(d_ff=4 * self.d_model)
        if self.activation == "gated_gelu" and self.bias:
            raise ValueError('activation is "gated_gelu", which needs bias=False')


class GPT(Pretrained, Module):
    """A stack of pre-norm blocks under a causal mask, from ids to scores of the next token.

        model = GPT(GPTConfig(vocab_size=11, max_len=8, d_model=16, num_heads=2, num_layers=2))
        logits = model(np.array([[4, 5, 6]]))             # (1, 3, 11): row t scores the token after token t

    The block is an encoder block under a causal mask; without an encoder there is no cross-attention. Matrices start
    normal with standard deviation 0.02; matrices that write into the residual path have 1/√(2 · num_layers) of it
    (GPT-2).

    Raises ValueError for ids out of range and for a sequence that is empty or longer than max_len.
    """

    config_class = GPTConfig
    layouts = (gpt2,)

    def __init__(self, config):
        c = self.config = config
        rng = np.random.default_rng(c.seed)
        self.embedding = Embedding(c.vocab_size, c.d_model, rng=rng, dtype=c.dtype, init_std=0.02)
        self.position = LearnedPositionalEmbedding(c.max_len, c.d_model, rng=rng, dtype=c.dtype, init_std=0.02)
        self.dropout = Dropout(c.dropout, rng=rng)
        self.blocks = [
            EncoderBlock(
                c.d_model,
                c.num_heads,
                c.d_ff,
                c.dropout,
                norm_first=True,
                activation=c.activation,
                eps=c.layer_norm_eps,
                bias=c.bias,
                rng=rng,
                dtype=c.dtype,
            )
            for _ in range(c.num_layers)
        ]
        self.norm = LayerNorm(c.d_model, c.layer_norm_eps, bias=c.bias, dtype=c.dtype)
        if c.tie_embeddings:
            self.output = TiedLinear(self.embedding)
        else:
            self.output = Linear(c.d_model, c.vocab_size, bias=False, rng=rng, dtype=c.dtype, init_std=0.02)
        self._draw(rng)

    def _draw(self, rng):
        residual = 0.02 / (2 * self.config.num_layers) ** 0.5
        for block in self.blocks:
            attention, feed_forward = block.attention, block.feed_forward
            for w in (attention.w_q, attention.w_k, attention.w_v, feed_forward.w1):
                w.data = normal(rng, w.shape, 0.02, w.dtype)
            for w in (attention.w_o, feed_forward.w2):
                w.data = normal(rng, w.shape, residual, w.dtype)

    def forward(self, ids, cache=None):
        """ids (B, T)  ->  logits (B, T, V)

        cache: a decoding.DecoderCache; ids then holds only the tokens that are new since the last call with it
        """
        ids = as_ids(ids, self.config.vocab_size)
        if ids.ndim != 2:
            raise ValueError(f"ids must have the axes (batch, length), got shape {ids.shape}")
        T = ids.shape[1]
        start = 0 if cache is None else cache.length
        if start + T > self.config.max_len:
            raise ValueError(f"ids is {start + T} tokens long, more than max_len = {self.config.max_len}")
        mask = causal_mask(T, start + T) if T > 1 else None  # (T, S); one token sees all before it
        x = self.dropout(self.position(self.embedding(ids), start))  # (B, T, D)
        for i, block in enumerate(self.blocks):
            x = block(x, mask, None if cache is None else cache.blocks[i][0])
        if cache is not None:
            cache.extend(ids)
        return self.output(self.norm(x))  # (B, T, V)

    def backward(self, dlogits):
        """From dlogits (B, T, V) to the gradients of all parameters. Ids have no gradient: returns None."""
        dx = self.norm.backward(self.output.backward(dlogits))  # (B, T, D)
        for block in reversed(self.blocks):
            dx = block.backward(dx)
        self.embedding.backward(self.position.backward(self.dropout.backward(dx)))
