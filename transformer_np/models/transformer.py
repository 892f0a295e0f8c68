"""The encoder–decoder Transformer (Vaswani et al. 2017)."""

from dataclasses import dataclass

import numpy as np

from ..layers import Embedding, LayerNorm, Linear, PositionalEncoding, TiedLinear
from ..layers.blocks import DecoderBlock, EncoderBlock
from .base import ModelConfig, fitting
from .encoder_decoder import EncoderDecoder, InputEmbedding


@dataclass(frozen=True)
class TransformerConfig(ModelConfig):
    """Sizes and choices of a Transformer. The defaults are the sizes of the paper's base model (Vaswani et al. 2017,
    table 3). The paper also ties the embeddings: with tie_embeddings=True and one vocabulary of 37,000 this is its
    model of 63 million parameters; untied, it has 101 million.

    norm_first: whether LayerNorm comes before each sub-layer and at the end of a stack; False is the paper's order,
        after each residual sum
    activation: of the feed-forward network, "relu", "gelu", "gelu_tanh" or "silu"
    tie_embeddings: whether the output projection is the target embedding transposed; if source and target vocabulary
        have the same size, they count as one vocabulary, as in the paper, and the source embedding is tied too
    max_len: the greatest length of a source or target, in tokens
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
        super().__post_init__()
        self._check_ids(("bos_id", "eos_id"), "tgt_vocab_size")
        if len({self.pad_id, self.bos_id, self.eos_id}) < 3:
            raise ValueError(f"pad_id, bos_id and eos_id must differ: {self.pad_id}, {self.bos_id}, {self.eos_id}")


class Transformer(EncoderDecoder):
    """Encoder and decoder, from ids to scores over the target vocabulary.

        model = Transformer(TransformerConfig(src_vocab_size=11, tgt_vocab_size=13, d_model=16, num_heads=2,
                                              num_encoder_layers=1, num_decoder_layers=1, d_ff=32))
        src, tgt_in = np.array([[4, 5, 6, 2]]), np.array([[1, 7, 8]])
        logits = model(src, tgt_in)                       # (1, 3, 13)

    The encoder reads the whole source. The decoder reads the target so far, shifted right behind a start token, and
    scores the next token at each place. Padding (pad_id) is hidden from every query, the future from the decoder.

    Raises ValueError for ids out of range, and for sequences that are empty, only padding, or longer than max_len.
    """

    def __init__(self, config: TransformerConfig):
        c = self.config = fitting(config, TransformerConfig)
        rng = np.random.default_rng(c.seed)
        # after the factor √D, the embeddings are as large as the positional encoding; and the first logits are small
        std = 0.5 * c.d_model**-0.5
        stack = {
            "d_model": c.d_model, "num_heads": c.num_heads, "d_ff": c.d_ff, "dropout": c.dropout,
            "norm_first": c.norm_first, "activation": c.activation, "eps": c.layer_norm_eps, "rng": rng,
            "dtype": c.dtype,
        }  # fmt: skip

        src_embedding = Embedding(c.src_vocab_size, c.d_model, rng=rng, dtype=c.dtype, init_std=std)
        tgt_embedding = Embedding(c.tgt_vocab_size, c.d_model, rng=rng, dtype=c.dtype, init_std=std)
        if c.tie_embeddings and c.src_vocab_size == c.tgt_vocab_size:
            tgt_embedding.table = src_embedding.table

        def input_of(embedding):
            """√d_model · embedding + positional encoding (§3.4, §3.5)."""
            position = PositionalEncoding(c.d_model, c.max_len, dtype=c.dtype)
            return InputEmbedding(embedding, c.dropout, rng, position, scale=c.d_model**0.5)

        self.src_input = input_of(src_embedding)
        self.encoder = [EncoderBlock(**stack) for _ in range(c.num_encoder_layers)]
        self.encoder_norm = LayerNorm(c.d_model, c.layer_norm_eps, dtype=c.dtype) if c.norm_first else None

        self.tgt_input = input_of(tgt_embedding)
        self.decoder = [DecoderBlock(**stack) for _ in range(c.num_decoder_layers)]
        self.decoder_norm = LayerNorm(c.d_model, c.layer_norm_eps, dtype=c.dtype) if c.norm_first else None

        if c.tie_embeddings:
            self.output = TiedLinear(tgt_embedding)
        else:
            self.output = Linear(c.d_model, c.tgt_vocab_size, rng=rng, dtype=c.dtype, init_std=std)
