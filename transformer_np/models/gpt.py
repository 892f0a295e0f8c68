"""The decoder-only Transformer (Radford et al. 2018, 2019): the next token of a text from all before it."""

from dataclasses import dataclass

import numpy as np

from ..layers import Dropout, Embedding, LayerNorm, LearnedPositionalEmbedding, Linear, TiedLinear
from ..layers.blocks import EncoderBlock
from ..layers.initial import normal
from ..masks import causal_mask
from ..module import Module
from ..support.checks import as_ids, check_at_least, check_probability


@dataclass(frozen=True)
class GPTConfig:
    """Sizes and choices of a GPT. The defaults are those of the smallest GPT-2 (Radford et al. 2019).

    max_len: the context, in tokens
    d_ff: inside the feed-forward network; None is 4 · d_model
    tie_embeddings: the output projection is the token embedding transposed
    bias: of the linear maps and the LayerNorms
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

    def __post_init__(self):
        for name in ("vocab_size", "max_len", "d_model", "num_heads", "num_layers"):
            check_at_least(name, getattr(self, name), 1)
        if self.d_ff is None:
            object.__setattr__(self, "d_ff", 4 * self.d_model)
        check_at_least("d_ff", self.d_ff, 1)
        check_probability("dropout", self.dropout)
        if self.d_model % self.num_heads:
            raise ValueError(f"num_heads must divide d_model, got {self.num_heads} heads for d_model = {self.d_model}")
        object.__setattr__(self, "dtype", np.dtype(self.dtype).name)


class GPT(Module):
    """A stack of pre-norm blocks under a causal mask, from ids to scores of the next token.

        model = GPT(GPTConfig(vocab_size=11, max_len=8, d_model=16, num_heads=2, num_layers=2))
        logits = model(np.array([[4, 5, 6]]))             # (1, 3, 11): row t scores what follows token t

    The block is the encoder's, with the future hidden: there is nothing to cross-attend to. Matrices start normal with
    standard deviation 0.02, those that write into the residual path 1/√(2 · num_layers) of it (GPT-2).

    Raises ValueError for ids out of range, an empty sequence or one longer than max_len.
    """

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

        cache: a decoding.DecoderCache; then ids holds only the tokens that came since the last call with it.
        """
        ids = as_ids(ids, self.config.vocab_size)
        if ids.ndim != 2:
            raise ValueError(f"ids must have the axes (batch, length), got shape {ids.shape}")
        T = ids.shape[1]
        start = 0 if cache is None else cache.length
        if start + T > self.config.max_len:
            raise ValueError(f"ids is {start + T} tokens long, more than max_len = {self.config.max_len}")
        mask = causal_mask(T, start + T) if T > 1 else None  # (T, S); the last token may see all
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

    @classmethod
    def from_pretrained(cls, folder, dtype=None):
        """The model of a folder in Hugging Face's layout, model_type gpt2; see `pretrained.load_pretrained`."""
        from ..pretrained import load_pretrained

        return load_pretrained(cls, folder, dtype)

    def save_pretrained(self, folder, tokenizer=None):
        """Write a folder that Hugging Face loads; see `pretrained.save_pretrained`."""
        from ..pretrained import save_pretrained

        save_pretrained(self, folder, tokenizer)
