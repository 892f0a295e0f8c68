"""T5, the text-to-text Transformer: an encoder–decoder whose tasks are told apart by the text (Raffel et al. 2020)."""

from dataclasses import dataclass

import numpy as np

from ..layers import Embedding, Linear, RelativePositionBias, RMSNorm, TiedLinear
from ..layers.blocks import DecoderBlock, EncoderBlock
from ..layers.initial import normal
from ..support.checks import check_at_least, check_probability
from .encoder_decoder import EncoderDecoder, InputEmbedding


@dataclass(frozen=True)
class T5Config:
    """Sizes and choices of a T5. The defaults are those of T5 v1.0 small.

    d_head: K, features of a head; num_heads · d_head need not be d_model
    activation: "relu" in v1.0, "gated_gelu" in v1.1
    tie_embeddings: the output projection is the embedding transposed, as in v1.0; v1.1 has one of its own
    num_buckets, max_distance: of the relative position bias; no distance from max_distance on is told from another
    bos_id: what the decoder starts with, which in T5 is the padding
    max_len: the most tokens a decoding may write. There is no longest input: nothing depends on absolute positions
    """

    vocab_size: int
    d_model: int = 512
    num_heads: int = 8
    d_head: int = 64
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    d_ff: int = 2048
    dropout: float = 0.1
    activation: str = "relu"
    tie_embeddings: bool = True
    num_buckets: int = 32
    max_distance: int = 128
    layer_norm_eps: float = 1e-6
    pad_id: int = 0
    eos_id: int = 1
    bos_id: int = 0
    max_len: int = 512
    dtype: str = "float32"
    seed: int = 0

    def __post_init__(self):
        for name in ("vocab_size", "d_model", "num_heads", "d_head", "d_ff", "max_len"):
            check_at_least(name, getattr(self, name), 1)
        for name in ("num_encoder_layers", "num_decoder_layers"):
            check_at_least(name, getattr(self, name), 0)
        check_at_least("num_buckets", self.num_buckets, 4)
        check_at_least("max_distance", self.max_distance, self.num_buckets // 2 + 1)
        check_probability("dropout", self.dropout)
        if self.activation not in ("relu", "gated_gelu"):
            raise ValueError(f'activation must be "relu" or "gated_gelu", got {self.activation!r}')
        for name in ("pad_id", "eos_id", "bos_id"):
            check_at_least(name, getattr(self, name), 0)
            if getattr(self, name) >= self.vocab_size:
                raise ValueError(f"{name} is {getattr(self, name)}, not in vocab_size = {self.vocab_size}")
        if self.eos_id in (self.pad_id, self.bos_id):
            raise ValueError(f"eos_id is {self.eos_id}, the same as pad_id or bos_id: no decoding would ever end")
        if np.dtype(self.dtype).kind != "f":
            raise ValueError(f"dtype must be a floating type, got {self.dtype!r}")
        object.__setattr__(self, "dtype", np.dtype(self.dtype).name)

    @property
    def src_vocab_size(self):
        return self.vocab_size

    @property
    def tgt_vocab_size(self):
        return self.vocab_size


class T5(EncoderDecoder):
    """The encoder–decoder with one vocabulary, relative positions and RMSNorm before each sub-layer.

        model = T5(T5Config(vocab_size=11, d_model=16, num_heads=2, d_head=8, num_encoder_layers=1,
                            num_decoder_layers=1, d_ff=32))
        src, tgt_in = np.array([[4, 5, 6, 1]]), np.array([[0, 7, 8]])
        logits = model(src, tgt_in)                       # (1, 3, 11)

    What differs from the Transformer of 2017: no positions are added to the embeddings; a learned bias for each head
    and bucket of distances is added to the scores of self-attention, one table for all layers of a stack. The scores
    are not divided by √d_k: W_q starts smaller by that factor instead, after which nothing is missing. No biases
    anywhere, no means subtracted. Dropout is on what enters a stack and on each sub-layer's output.

    Raises ValueError for ids out of range, sequences that are empty, or a source of only padding.
    """

    pads_target = False  # the decoder starts with pad_id
    limited = False

    def __init__(self, config):
        c = self.config = config
        rng = np.random.default_rng(c.seed)
        embedding = Embedding(c.vocab_size, c.d_model, rng=rng, dtype=c.dtype, init_std=0.5)
        self.src_input = InputEmbedding(embedding, c.dropout, rng)
        self.encoder_bias, self.encoder = self._stack(EncoderBlock, c.num_encoder_layers, True, rng)
        self.encoder_norm = RMSNorm(c.d_model, c.layer_norm_eps, dtype=c.dtype)

        tgt_embedding = Embedding(c.vocab_size, c.d_model, rng=rng, dtype=c.dtype)
        tgt_embedding.table = embedding.table  # one table, looked up in twice
        self.tgt_input = InputEmbedding(tgt_embedding, c.dropout, rng)
        self.decoder_bias, self.decoder = self._stack(DecoderBlock, c.num_decoder_layers, False, rng)
        self.decoder_norm = RMSNorm(c.d_model, c.layer_norm_eps, dtype=c.dtype)

        if c.tie_embeddings:
            self.output = TiedLinear(embedding, scale=c.d_model**-0.5)  # 0.5: the first loss is about ln V
        else:
            std = 0.5 * c.d_model**-0.5
            self.output = Linear(c.d_model, c.vocab_size, bias=False, rng=rng, dtype=c.dtype, init_std=std)
        self._draw(rng)

    def _stack(self, block, num_layers, bidirectional, rng):
        """The relative position bias of a stack and its blocks."""
        c = self.config
        bias = RelativePositionBias(
            c.num_heads, c.num_buckets, c.max_distance, bidirectional, rng, c.dtype, init_std=c.d_model**-0.5
        )
        blocks = [
            block(
                c.d_model,
                c.num_heads,
                c.d_ff,
                c.dropout,
                norm_first=True,
                activation=c.activation,
                eps=c.layer_norm_eps,
                bias=False,
                rng=rng,
                dtype=c.dtype,
                norm="rms",
                attention={"d_head": c.d_head, "scaled": False, "relative_bias": bias},
            )
            for _ in range(num_layers)
        ]
        return bias, blocks

    def _draw(self, rng):
        """The matrices as in the original: each keeps the size of what it multiplies, and W_q takes 1/√d_k with it."""
        c = self.config
        stds = {
            "w_q": (c.d_model * c.d_head) ** -0.5,
            "w_k": c.d_model**-0.5,
            "w_v": c.d_model**-0.5,
            "w_o": (c.num_heads * c.d_head) ** -0.5,
            "w_gate": c.d_model**-0.5,
            "w1": c.d_model**-0.5,
            "w2": c.d_ff**-0.5,
        }
        for name, parameter in self.named_parameters():
            std = stds.get(name.rpartition(".")[2])
            if std is not None:
                parameter.data = normal(rng, parameter.shape, std, c.dtype)

    @classmethod
    def from_pretrained(cls, folder, dtype=None):
        """The model of a folder in Hugging Face's layout, model_type t5; see `pretrained.load_pretrained`."""
        from ..pretrained import load_pretrained

        return load_pretrained(cls, folder, dtype)

    def save_pretrained(self, folder, tokenizer=None):
        """Write a folder that Hugging Face loads; see `pretrained.save_pretrained`."""
        from ..pretrained import save_pretrained

        save_pretrained(self, folder, tokenizer)
