"""Llama (Touvron et al. 2023), and the models with its architecture: Mistral, Qwen2, Qwen3, SmolLM."""

from dataclasses import dataclass

import numpy as np

from .. import functional as F
from ..layers import Embedding, FeedForward, GroupedQueryAttention, RMSNorm
from ..layers.blocks import AddNorm, EncoderBlock, composed
from ..layers.initial import width_std
from ..support.checks import check_kv_heads
from .base import ModelConfig, fitting
from .decoder_only import DecoderOnly, output_of
from .layouts import llama as layout


@dataclass(frozen=True)
class LlamaConfig(ModelConfig):
    """Sizes and choices of a Llama.

    max_len: the context, in tokens
    num_kv_heads: heads of keys and values, each shared by num_heads / num_kv_heads heads of queries; None is num_heads
    d_head: K, the width of a head; None is d_model / num_heads
    d_ff: the width of the feed-forward network; None is ⅔ · 4 · d_model, rounded up to a multiple of 8, which gives as
        many parameters as 4 · d_model without a gate
    rope_theta, rope_scaling: of the rotary positions, see functional.rotary_frequencies
    window: how many tokens before it a token sees; None is all. Hugging Face's sliding_window is window + 1
    eps: of the RMSNorms
    qkv_bias: whether queries, keys and values have biases, as in Qwen2
    output_bias: whether the output projection of attention has one too, as with Hugging Face's attention_bias
    norm_heads: whether each head's queries and keys are normalised, as in Qwen3
    tie_embeddings: whether the output projection is the token embedding transposed
    """

    vocab_size: int
    max_len: int = 2048
    d_model: int = 512
    num_heads: int = 8
    num_kv_heads: int | None = None
    d_head: int | None = None
    num_layers: int = 8
    d_ff: int | None = None
    rope_theta: float = 10000.0
    rope_scaling: dict | None = None
    window: int | None = None
    eps: float = 1e-6
    qkv_bias: bool = False
    tie_embeddings: bool = False
    dtype: str = "float32"
    seed: int = 0
    output_bias: bool = False
    norm_heads: bool = False

    position_table = False

    def __post_init__(self):
        super().__post_init__()
        if self.output_bias and not self.qkv_bias:
            raise ValueError("output_bias is True, which needs qkv_bias=True")
        if self.num_kv_heads is None:
            self._set(num_kv_heads=self.num_heads)
        check_kv_heads(self.num_kv_heads, self.num_heads)
        if self.d_head is None:
            self._set(d_head=self.d_model // self.num_heads)
            if self.d_head % 2:
                cut = f"num_heads = {self.num_heads} cuts d_model = {self.d_model} into heads of {self.d_head}"
                needed = "rotary positions turn pairs of features, so a head must have an even number of them"
                raise ValueError(f"{cut}: {needed}")
        if self.d_ff is None:
            self._set(d_ff=8 * -(-self.d_model // 3))
        # raises errors; of the beginning, because sizes in a file may ask for any amount of memory
        F.rotary_frequencies(min(self.d_head, 1 << 16), self.rope_theta, self.rope_scaling)


class Llama(DecoderOnly):
    """The decoder-only model of today, from ids to scores of the next token.

        model = Llama(LlamaConfig(vocab_size=11, max_len=8, d_model=16, num_heads=4, num_kv_heads=2, num_layers=2))
        logits = model(np.array([[4, 5, 6]]))             # (1, 3, 11): row t scores the token after token t

    It differs from GPT-2 in four parts. RMSNorm replaces LayerNorm. Positions are not added to the embeddings; they
    turn the queries and keys (Su et al. 2021). Several heads of queries share one head of keys and values (Ainslie et
    al. 2023). The feed-forward network has a gate, SwiGLU (Shazeer 2020). There are no biases and no dropout.

    Raises ValueError for ids out of range and for a sequence that is empty or longer than max_len.
    """

    config_class = LlamaConfig
    layouts = (layout,)

    def __init__(self, config):
        c = self.config = fitting(config, LlamaConfig)
        rng, std = np.random.default_rng(c.seed), width_std(c.d_model)
        self.embedding = Embedding(c.vocab_size, c.d_model, rng=rng, dtype=c.dtype, init_std=std)
        self.blocks = [self._block(rng) for _ in range(c.num_layers)]
        self.norm = RMSNorm(c.d_model, c.eps, dtype=c.dtype)
        self.output = output_of(self.embedding, c, rng)
        self._draw(rng)

    def _block(self, rng):
        c = self.config
        rotary = {"theta": c.rope_theta, "scaling": c.rope_scaling}
        heads = {"d_head": c.d_head, "num_kv_heads": c.num_kv_heads, "rotary": rotary}
        heads |= {"output_bias": c.output_bias, "norm_eps": c.eps if c.norm_heads else None}
        return composed(
            EncoderBlock,
            lambda: AddNorm(c.d_model, norm_first=True, rng=rng, norm=RMSNorm(c.d_model, c.eps, dtype=c.dtype)),
            attention=GroupedQueryAttention(c.d_model, c.num_heads, c.qkv_bias, rng, c.dtype, **heads),
            feed_forward=FeedForward(c.d_model, c.d_ff, "gated_silu", bias=False, rng=rng, dtype=c.dtype),
        )
