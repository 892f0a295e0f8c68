"""T5, the text-to-text Transformer: an encoder–decoder whose input text names the task (Raffel et al. 2020)."""

from dataclasses import dataclass

import numpy as np

from ..layers import Embedding, FeedForward, Linear, RelativePositionBias, RMSNorm, TiedLinear, UnscaledAttention
from ..layers.blocks import AddNorm, DecoderBlock, EncoderBlock, composed
from ..layers.initial import normal
from ..support.checks import check_at_least
from .base import ModelConfig, Pretrained, fitting
from .encoder_decoder import EncoderDecoder, InputEmbedding
from .layouts import t5 as layout


@dataclass(frozen=True)
class T5Config(ModelConfig):
    """Sizes and choices of a T5. The defaults are T5 v1.0 small.

    d_head: K, the features of a head; num_heads · d_head need not be d_model
    activation: "relu" in v1.0, "gated_gelu" in v1.1
    tie_embeddings: whether the output projection is the embedding transposed, as in v1.0; False as in v1.1
    scale_output: whether a tied output projection first scales its input by 1/√D, as in all published weights
    num_buckets, max_distance: of the relative position bias; all distances from max_distance on share one bucket
    bos_id: the decoder's first token, which in T5 is the padding
    max_len: the most tokens that decoding writes; the input may be longer, because nothing depends on absolute
        positions
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
    scale_output: bool = True

    position_table = False

    activations = ("relu", "gated_gelu")

    def __post_init__(self):
        super().__post_init__()
        check_at_least("num_buckets", self.num_buckets, 4)
        check_at_least("max_distance", self.max_distance, self.num_buckets // 2 + 1)
        self._check_ids(("pad_id", "eos_id", "bos_id"), "vocab_size")
        if self.eos_id in (self.pad_id, self.bos_id):
            raise ValueError(f"eos_id is {self.eos_id}, the same as pad_id or bos_id, so decoding would never end")

    src_vocab_size = tgt_vocab_size = property(lambda self: self.vocab_size)


class T5(Pretrained, EncoderDecoder):
    """The encoder–decoder with one vocabulary, relative positions and RMSNorm before each sub-layer.

        model = T5(T5Config(vocab_size=11, d_model=16, num_heads=2, d_head=8, num_encoder_layers=1,
                            num_decoder_layers=1, d_ff=32))
        src, tgt_in = np.array([[4, 5, 6, 1]]), np.array([[0, 7, 8]])
        logits = model(src, tgt_in)                       # (1, 3, 11)

    T5 differs from the Transformer of 2017 in four ways. Instead of positions in the embeddings, a learned bias per
    head and bucket of distances is added to the scores of self-attention; the layers of a stack share one table. The
    scores are not divided by √d_k; W_q starts smaller by that factor instead. No layer has a bias, and RMSNorm
    subtracts no mean. Dropout acts on the input of a stack and on the output of each sub-layer.

    Raises ValueError for ids out of range, empty sequences, or a source of only padding.
    """

    config_class = T5Config
    layouts = (layout,)

    pads_target = False  # the decoder starts with pad_id
    limited = False

    def __init__(self, config: T5Config):
        c = self.config = fitting(config, T5Config)
        rng = np.random.default_rng(c.seed)
        embedding = Embedding(c.vocab_size, c.d_model, rng=rng, dtype=c.dtype, init_std=0.5)
        self.src_input = InputEmbedding(embedding, c.dropout, rng)
        self.encoder_bias, self.encoder = self._stack(EncoderBlock, c.num_encoder_layers, True, rng)
        self.encoder_norm = RMSNorm(c.d_model, c.layer_norm_eps, dtype=c.dtype)

        tgt_embedding = Embedding(c.vocab_size, c.d_model, rng=rng, dtype=c.dtype)
        tgt_embedding.table = embedding.table  # one table for both sides
        self.tgt_input = InputEmbedding(tgt_embedding, c.dropout, rng)
        self.decoder_bias, self.decoder = self._stack(DecoderBlock, c.num_decoder_layers, False, rng)
        self.decoder_norm = RMSNorm(c.d_model, c.layer_norm_eps, dtype=c.dtype)

        if c.tie_embeddings:
            self.output = TiedLinear(embedding, scale=c.d_model**-0.5 if c.scale_output else 1.0)  # first loss ≈ ln V
        else:
            std = 0.5 * c.d_model**-0.5
            self.output = Linear(c.d_model, c.vocab_size, bias=False, rng=rng, dtype=c.dtype, init_std=std)
        self._draw(rng)

    def _stack(self, block, num_layers, bidirectional, rng):
        """The relative position bias and the blocks of a stack."""
        c = self.config
        bias = RelativePositionBias(
            c.num_heads, c.num_buckets, c.max_distance, bidirectional, rng, c.dtype, init_std=c.d_model**-0.5
        )
        return bias, [self._block(block, bias, rng) for _ in range(num_layers)]

    def _block(self, block, relative_bias, rng):
        """Its cross-attention has no bias: there is no distance between a target and a source position."""
        c = self.config

        def attention(bias):
            return UnscaledAttention(c.d_model, c.num_heads, False, rng, c.dtype, c.d_head, bias)

        def add_norm():
            norm = RMSNorm(c.d_model, c.layer_norm_eps, dtype=c.dtype)
            return AddNorm(c.d_model, c.dropout, norm_first=True, rng=rng, norm=norm)

        if block is EncoderBlock:
            attentions = {"attention": attention(relative_bias)}
        else:
            attentions = {"self_attention": attention(relative_bias), "cross_attention": attention(None)}
        feed_forward = FeedForward(c.d_model, c.d_ff, c.activation, bias=False, rng=rng, dtype=c.dtype)
        return composed(block, add_norm, **attentions, feed_forward=feed_forward)

    def _draw(self, rng):
        """Draw the matrices as the original does: each preserves the variance of its input; W_q includes the 1/√d_k."""
        c = self.config
        stds = {
            "w_q": (c.d_model * c.d_head) ** -0.5, "w_k": c.d_model**-0.5, "w_v": c.d_model**-0.5,
            "w_o": (c.num_heads * c.d_head) ** -0.5, "w_gate": c.d_model**-0.5, "w1": c.d_model**-0.5,
            "w2": c.d_ff**-0.5,
        }  # fmt: skip
        for name, parameter in self.named_parameters():
            std = stds.get(name.rpartition(".")[2])
            if std is not None:
                parameter.data = normal(rng, parameter.shape, std, c.dtype)
