"""The encoder–decoder Transformer (Vaswani et al. 2017)."""

from dataclasses import dataclass

import numpy as np

from ..blocks import DecoderBlock, EncoderBlock
from ..checks import as_ids, check_at_least, check_probability, shapes
from ..layers import Dropout, Embedding, LayerNorm, Linear, PositionalEncoding, TiedLinear
from ..masks import causal_mask, padding_mask
from ..module import Module


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes and choices of a Transformer. The defaults are the paper's base model (Vaswani et al. 2017, table 3).

    norm_first: LayerNorm before each sub-layer instead of after its residual sum, and once more at the end of a stack
    activation: of the feed-forward network, "relu", "gelu" or "gelu_tanh"
    tie_embeddings: the output projection is the target embedding transposed; where source and target vocabulary have
        one size they are taken for one vocabulary, as in the paper, and the source embedding is the same table too
    max_len: the longest sequence, source or target, in tokens
    """

    src_vocab_size: int
    tgt_vocab_size: int
    d_model: int = 512
    num_heads: int = 8
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    d_ff: int = 2048
    dropout: float = 0.1
    max_len: int = 512
    norm_first: bool = False
    activation: str = "relu"
    tie_embeddings: bool = False
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    dtype: str = "float32"
    seed: int = 0
    layer_norm_eps: float = 1e-5

    def __post_init__(self):
        for name in ("src_vocab_size", "tgt_vocab_size", "d_model", "num_heads", "d_ff", "max_len"):
            check_at_least(name, getattr(self, name), 1)
        for name in ("num_encoder_layers", "num_decoder_layers"):
            check_at_least(name, getattr(self, name), 0)
        check_probability("dropout", self.dropout)
        if self.d_model % self.num_heads:
            raise ValueError(f"num_heads must divide d_model, got {self.num_heads} heads for d_model = {self.d_model}")
        if np.dtype(self.dtype).kind != "f":
            raise ValueError(f"dtype must be a floating type, got {self.dtype!r}")
        object.__setattr__(self, "dtype", np.dtype(self.dtype).name)  # np.float64 and "float64" are the same
        for name in ("bos_id", "eos_id"):
            check_at_least(name, getattr(self, name), 0)
            if getattr(self, name) >= self.tgt_vocab_size:
                raise ValueError(f"{name} is {getattr(self, name)}, not in tgt_vocab_size = {self.tgt_vocab_size}")
        if len({self.pad_id, self.bos_id, self.eos_id}) < 3:
            raise ValueError(f"pad_id, bos_id and eos_id must differ: {self.pad_id}, {self.bos_id}, {self.eos_id}")


class InputEmbedding(Module):
    """What enters the first block: √d_model · embedding + positional encoding, then dropout (§3.4, §3.5, §5.4).

    ids (B, T), start: the position of the first id  ->  (B, T, D)
    """

    def __init__(self, embedding, max_len, dropout, rng, dtype):
        d_model = embedding.table.shape[1]
        self.embedding = embedding
        self.position = PositionalEncoding(d_model, max_len, dtype=dtype)
        self.dropout = Dropout(dropout, rng=rng)
        self.scale = d_model**0.5

    def forward(self, ids, start=0):
        x = self.embedding(ids)  # (B, T, D)
        x *= self.scale
        return self.dropout(self.position(x, start))

    def backward(self, dout):
        dx = self.position.backward(self.dropout.backward(dout))
        self.embedding.backward(dx * self.scale)


class Transformer(Module):
    """Encoder and decoder, from ids to scores over the target vocabulary.

        model = Transformer(TransformerConfig(src_vocab_size=11, tgt_vocab_size=13, d_model=16, num_heads=2,
                                              num_encoder_layers=1, num_decoder_layers=1, d_ff=32))
        src, tgt_in = np.array([[4, 5, 6, 2]]), np.array([[1, 7, 8]])
        logits = model(src, tgt_in)                       # (1, 3, 13)

    The encoder reads the whole source. The decoder reads the target so far, shifted right behind a start token, and
    says at each place which token comes next. Padding (pad_id) is hidden from every query, the future from the decoder.

    Raises ValueError for ids out of range, sequences that are empty, only padding, or longer than max_len.
    """

    def __init__(self, config):
        c = self.config = config
        rng = np.random.default_rng(c.seed)
        # 1/(2√D): times √D the embeddings are of the size of the positional encoding, and the first logits are small
        std = 0.5 * c.d_model**-0.5
        stack = {
            "d_model": c.d_model,
            "num_heads": c.num_heads,
            "d_ff": c.d_ff,
            "dropout": c.dropout,
            "norm_first": c.norm_first,
            "activation": c.activation,
            "eps": c.layer_norm_eps,
            "rng": rng,
            "dtype": c.dtype,
        }

        src_embedding = Embedding(c.src_vocab_size, c.d_model, rng=rng, dtype=c.dtype, init_std=std)
        tgt_embedding = Embedding(c.tgt_vocab_size, c.d_model, rng=rng, dtype=c.dtype, init_std=std)
        if c.tie_embeddings and c.src_vocab_size == c.tgt_vocab_size:
            tgt_embedding.table = src_embedding.table

        self.src_input = InputEmbedding(src_embedding, c.max_len, c.dropout, rng, c.dtype)
        self.encoder = [EncoderBlock(**stack) for _ in range(c.num_encoder_layers)]
        self.encoder_norm = LayerNorm(c.d_model, c.layer_norm_eps, dtype=c.dtype) if c.norm_first else None

        self.tgt_input = InputEmbedding(tgt_embedding, c.max_len, c.dropout, rng, c.dtype)
        self.decoder = [DecoderBlock(**stack) for _ in range(c.num_decoder_layers)]
        self.decoder_norm = LayerNorm(c.d_model, c.layer_norm_eps, dtype=c.dtype) if c.norm_first else None

        if c.tie_embeddings:
            self.output = TiedLinear(tgt_embedding)
        else:
            self.output = Linear(c.d_model, c.tgt_vocab_size, rng=rng, dtype=c.dtype, init_std=std)

    def forward(self, src, tgt_in):
        """src (B, S), tgt_in (B, T)  ->  logits (B, T, V)"""
        return self.decode(tgt_in, self.encode(src), src)

    def encode(self, src):
        """src (B, S)  ->  memory (B, S, D)"""
        src = as_ids(src, self.config.src_vocab_size, "src")
        self._check_sequences("src", src)
        mask = padding_mask(src, self.config.pad_id)  # (B, 1, 1, S)
        x = self.src_input(src)  # (B, S, D)
        for block in self.encoder:
            x = block(x, mask)
        return self.encoder_norm(x) if self.encoder_norm else x

    @shapes(memory="B S D")
    def decode(self, tgt_in, memory, src, cache=None):
        """tgt_in (B, T), memory (B, S, D) = encode(src), src (B, S) for its padding  ->  logits (B, T, V)

        cache: a decoding.DecoderCache; then tgt_in holds only the tokens that came since the last call with it.
        """
        tgt_in = as_ids(tgt_in, self.config.tgt_vocab_size, "tgt_in")
        past = None if cache is None else cache.ids
        ids = tgt_in if past is None else np.concatenate([past, tgt_in], axis=1)  # (B, S): all target ids so far
        self._check_sequences("tgt_in", ids)
        if not len(tgt_in) == len(memory) == len(src):
            raise ValueError(f"batch sizes differ: tgt_in {len(tgt_in)}, memory {len(memory)}, src {len(src)}")
        if np.shape(src) != memory.shape[:2]:
            raise ValueError(
                f"src of shape {np.shape(src)} is not what memory of shape {memory.shape} was encoded from"
            )
        start = ids.shape[1] - tgt_in.shape[1]
        mask = causal_mask(tgt_in.shape[1], ids.shape[1]), padding_mask(ids, self.config.pad_id)  # (T, S), (B, 1, 1, S)
        memory_mask = padding_mask(src, self.config.pad_id)  # (B, 1, 1, S)
        x = self.tgt_input(tgt_in, start)  # (B, T, D)
        for i, block in enumerate(self.decoder):
            x = block(x, memory, mask, memory_mask, (None, None) if cache is None else cache.blocks[i])
        x = self.decoder_norm(x) if self.decoder_norm else x
        if cache is not None:
            cache.extend(tgt_in)
        return self.output(x)  # (B, T, V)

    def backward(self, dlogits):
        """From dlogits (B, T, V) to the gradients of all parameters. Ids have no gradient: returns None."""
        dx = self.output.backward(dlogits)  # (B, T, D)
        dx = self.decoder_norm.backward(dx) if self.decoder_norm else dx
        dmemory = 0
        for block in reversed(self.decoder):
            dx, dmemory_here = block.backward(dx)
            dmemory = dmemory + dmemory_here  # every decoder block read the memory
        self.tgt_input.backward(dx)
        if not self.decoder:  # then nothing read the memory
            return
        dmemory = self.encoder_norm.backward(dmemory) if self.encoder_norm else dmemory
        for block in reversed(self.encoder):
            dmemory = block.backward(dmemory)
        self.src_input.backward(dmemory)

    def _check_sequences(self, name, ids):
        """Ids are (B, T), no longer than the positional encoding reaches, and no row is empty."""
        if ids.ndim != 2:
            raise ValueError(f"{name} must have the axes (batch, length), got shape {ids.shape}")
        if ids.shape[1] > self.config.max_len:
            raise ValueError(f"{name} is {ids.shape[1]} tokens long, more than max_len = {self.config.max_len}")
        empty = (ids == self.config.pad_id).all(axis=1)
        if empty.any():
            raise ValueError(f"{name} has nothing but padding in row {int(empty.argmax())}")
