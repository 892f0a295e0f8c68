"""The decoder-only Transformer (Radford et al. 2018, 2019): it predicts the next token from all tokens before it."""

from dataclasses import dataclass

import numpy as np

from ..layers import Dropout, Embedding, LayerNorm, LearnedPositionalEmbedding
from ..layers.activations import ACTIVATIONS
from ..layers.blocks import EncoderBlock
from ..layers.feed_forward import GATED
from .base import ModelConfig, fitting
from .decoder_only import INIT_STD, DecoderOnly
from .layouts import gpt2


@dataclass(frozen=True)
class GPTConfig(ModelConfig):
    """Sizes and choices of a GPT. The defaults are the smallest GPT-2 (Radford et al. 2019).

    max_len: the context, in tokens
    d_ff: the width of the feed-forward network; None is 4 · d_model
    activation: "relu", "gelu" (exact), "gelu_tanh", "silu", or with bias=False "gated_gelu" or "gated_silu"
    tie_embeddings: whether the output projection is the token embedding transposed
    bias: whether the linear maps and the LayerNorms have biases
    window: how many tokens before it a token sees; None is all
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
    window: int | None = None
    dtype: str = "float32"
    seed: int = 0

    activations = (*ACTIVATIONS, *GATED)

    def __post_init__(self):
        super().__post_init__()
        if self.d_ff is None:
            self._set(d_ff=4 * self.d_model)
        if self.activation in GATED and self.bias:
            raise ValueError(f'activation is "{self.activation}", which needs bias=False')


class GPT(DecoderOnly):
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
        c = self.config = fitting(config)
        rng = np.random.default_rng(c.seed)
        self.embedding = Embedding(c.vocab_size, c.d_model, rng=rng, dtype=c.dtype, init_std=INIT_STD)
        self.position = LearnedPositionalEmbedding(c.max_len, c.d_model, rng=rng, dtype=c.dtype, init_std=INIT_STD)
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
        self.output = self._output(rng)
        self._draw(rng)

    def _positioned(self, x, start):
        return self.dropout(self.position(x, start))

    def _positioned_backward(self, dx):
        return self.position.backward(self.dropout.backward(dx))
