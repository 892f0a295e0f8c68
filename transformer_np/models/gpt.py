"""The decoder-only Transformer (Radford et al. 2018, 2019): it predicts the next token from all tokens before it."""

from dataclasses import dataclass

import numpy as np

from .. import functional as F
from ..layers import Dropout, Embedding, FeedForward, GroupedQueryAttention, LayerNorm, MultiHeadAttention, RMSNorm
from ..layers.activations import ACTIVATIONS
from ..layers.blocks import AddNorm, EncoderBlock, composed
from ..layers.gated import GATED
from ..layers.initial import width_std
from ..layers.positional import LearnedPositionalEmbedding, PositionalEncoding
from ..support.checks import check_choice, check_kv_heads
from .base import ModelConfig, fitting
from .decoder_only import DecoderOnly, output_of
from .layouts import gpt2

POSITIONS = ("learned", "sinusoidal", "rotary", "alibi")
NORMS = ("layer", "rms")


@dataclass(frozen=True)
class GPTConfig(ModelConfig):
    """Sizes and choices of a GPT. The defaults are the smallest GPT-2 (Radford et al. 2019).

    max_len: the context, in tokens
    d_ff: the width of the feed-forward network; None is 4 · d_model
    activation: "relu", "gelu" (exact), "gelu_tanh", "silu", or with bias=False "gated_gelu" or "gated_silu"
    tie_embeddings: whether the output projection is the token embedding transposed
    bias: whether the linear maps and the LayerNorms have biases
    layer_norm_eps: of the norms of either kind
    window: the number of earlier tokens that a token sees; None means all
    positions: "learned", one row per position; "sinusoidal", added to √d_model · embedding (Vaswani et al. 2017);
        "rotary", which turns queries and keys (Su et al. 2021); "alibi", which lowers the scores of distant keys (Press
        et al. 2022)
    num_kv_heads: heads of keys and values, each shared by num_heads / num_kv_heads heads of queries; None is num_heads
    norm: "layer" for LayerNorm, "rms" for RMSNorm
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
    positions: str = "learned"
    num_kv_heads: int | None = None
    norm: str = "layer"
    dtype: str = "float32"
    seed: int = 0

    activations = (*ACTIVATIONS, *GATED)

    def __post_init__(self):
        super().__post_init__()
        if self.d_ff is None:
            self._set(d_ff=4 * self.d_model)
        if self.activation in GATED and self.bias:
            raise ValueError(f'activation is "{self.activation}", which needs bias=False')
        check_choice("positions", self.positions, POSITIONS)
        check_choice("norm", self.norm, NORMS)
        if self.num_kv_heads is not None:
            check_kv_heads(self.num_kv_heads, self.num_heads)
        if self.positions == "rotary":
            F.rotary_frequencies(self.d_model // self.num_heads)  # raises errors

    @property
    def position_table(self):
        return self.positions in ("learned", "sinusoidal")


def _norm(c):
    if c.norm == "rms":
        return RMSNorm(c.d_model, c.layer_norm_eps, dtype=c.dtype)
    return LayerNorm(c.d_model, c.layer_norm_eps, bias=c.bias, dtype=c.dtype)


class GPT(DecoderOnly):
    """A stack of pre-norm blocks under a causal mask, from ids to scores of the next token.

        model = GPT(GPTConfig(vocab_size=11, max_len=8, d_model=16, num_heads=2, num_layers=2))
        logits = model(np.array([[4, 5, 6]]))             # (1, 3, 11): row t scores the token after token t

    The block is an encoder block under a causal mask; without an encoder there is no cross-attention. Matrices and
    embeddings start normal with the standard deviation of `layers.initial.width_std`, 0.02 at the width of 768; the
    matrices that write into the residual path have 1/√(2 · num_layers) of it (GPT-2).

    Raises ValueError for ids out of range and for a sequence that is empty or longer than max_len.
    """

    config_class = GPTConfig
    layouts = (gpt2,)

    def __init__(self, config):
        c = self.config = fitting(config, GPTConfig)
        rng, std = np.random.default_rng(c.seed), width_std(c.d_model)
        self.embedding = Embedding(c.vocab_size, c.d_model, rng=rng, dtype=c.dtype, init_std=std)
        self.position, self.scale = None, 1.0  # for rotary and ALiBi, which work inside the attention
        if c.positions == "learned":
            self.position = LearnedPositionalEmbedding(c.max_len, c.d_model, rng=rng, dtype=c.dtype, init_std=std)
        elif c.positions == "sinusoidal":
            self.position, self.scale = PositionalEncoding(c.d_model, c.max_len, dtype=c.dtype), c.d_model**0.5
        self.dropout = Dropout(c.dropout, rng=rng)
        self.blocks = [self._block(rng) for _ in range(c.num_layers)]
        self.norm = _norm(c)
        self.output = output_of(self.embedding, c, rng)
        self._draw(rng)

    def _block(self, rng):
        """A pre-norm block with the sub-layers that the config chooses."""
        c = self.config
        rotary = {"theta": 10000.0} if c.positions == "rotary" else None
        attention, heads = MultiHeadAttention, {}
        if rotary or c.num_kv_heads:
            attention, heads = GroupedQueryAttention, {"num_kv_heads": c.num_kv_heads, "rotary": rotary}
        return composed(
            EncoderBlock,
            lambda: AddNorm(c.d_model, c.dropout, norm_first=True, rng=rng, norm=_norm(c)),
            attention=attention(c.d_model, c.num_heads, c.bias, rng, c.dtype, **heads),
            feed_forward=FeedForward(c.d_model, c.d_ff, c.activation, c.bias, rng, c.dtype),
        )

    def _positioned(self, x, start):
        if self.scale != 1:
            x = x * self.scale
        if self.position is not None:
            x = self.position(x, start)
        return self.dropout(x)

    def _positioned_backward(self, dx):
        dx = self.dropout.backward(dx)
        if self.position is not None:
            dx = self.position.backward(dx)
        return dx if self.scale == 1 else dx * self.scale

    def _masks(self, T, S):
        masks = super()._masks(T, S)
        if self.config.positions == "alibi":
            masks += (F.alibi_bias(self.config.num_heads, T, S, self.embedding.table.dtype),)  # (H, T, S)
        return masks
