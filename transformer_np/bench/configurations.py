"""The training runs to measure: model, optimizer and batches, all made from a seed.

Dropout is 0, because two implementations cannot draw the same masks, and all sequences of a batch have one length, so
that there is no padding. The batches are made in advance and repeat.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..data.batching import Seq2SeqBatches
from ..data.masking import MaskedBatches
from ..data.streams import TextStreams
from ..data.text import TextBatches
from ..data.tokenizers import BOS, EOS, SPECIAL_TOKENS
from ..models import (
    GPT,
    Bert,
    BertConfig,
    GPTConfig,
    Transformer,
    TransformerConfig,
    TransformerXL,
    TransformerXLConfig,
)
from ..training import Adam, AdamW, MaskedLanguageModel, NextToken, SegmentRecurrence, TeacherForcing, is_matrix

BATCHES = 16  # the number of different batches
SEED = 0
LEAST_ROWS = 12  # in a batch, so at most this many workers can share it

# The rate of the paper's warm-up after about 60 steps. Adam takes equally large steps where the gradient is only
# rounding error: at 1e-4 the first losses of this deep model agreed to 1e-7, but the tenth loss of PyTorch on one
# thread and on two differed from ours by 1e-4 and 2e-4.
BASE_LR = 1e-5


@dataclass(frozen=True)
class Configuration:
    """Functions that make the parts of a training run: model(), objective(model), optimizer(parameters), and batches(),
    which returns a list; clip_norm is the Trainer's."""

    model: Callable
    objective: Callable
    optimizer: Callable
    batches: Callable
    clip_norm: float | None = None


class Repeated:
    """Batches that repeat endlessly: `batch(step)` for step = 0, 1, 2, …"""

    def __init__(self, batches):
        self.batches = batches

    def batch(self, step):
        return self.batches[step % len(self.batches)]


def _words(vocab_size, *shape):
    """Random ids without the special tokens."""
    return np.random.default_rng(SEED).integers(len(SPECIAL_TOKENS), vocab_size, size=shape)


def _first(batches):
    return [batches.batch(step) for step in range(BATCHES)]


def _pairs(vocab_size, length, batch_size):
    """Batches of random pairs: the source has `length` tokens, and so has the target with its start or end token."""
    words = _words(vocab_size, BATCHES * batch_size, 2 * length - 1)
    return _first(Seq2SeqBatches([(row[:length], row[length:]) for row in words], batch_size, SEED))


def _masked_texts(vocab_size, length, batch_size):
    words = _words(vocab_size - 1, BATCHES * batch_size, length - 2)  # the last token is <mask>
    return _first(MaskedBatches([[BOS, *row, EOS] for row in words], batch_size, vocab_size, SEED))


def _encoder_decoder(vocab_size, length, batch_size, lr, **sizes):
    config = TransformerConfig(vocab_size, vocab_size, dropout=0.0, max_len=length, seed=SEED, **sizes)
    return Configuration(
        model=lambda: Transformer(config),
        objective=TeacherForcing,
        optimizer=lambda parameters: Adam(parameters, lr, betas=(0.9, 0.98), eps=1e-9),
        batches=lambda: _pairs(vocab_size, length, batch_size),
    )


def _gpt(vocab_size=65, block_size=64, batch_size=LEAST_ROWS):
    config = GPTConfig(
        vocab_size, block_size, d_model=128, num_heads=4, num_layers=4, bias=False, seed=SEED, activation="gelu"
    )
    return Configuration(
        model=lambda: GPT(config),
        objective=NextToken,
        optimizer=lambda parameters: AdamW(parameters, 1e-3, betas=(0.9, 0.99), weight_decay=0.1, decays=is_matrix),
        batches=lambda: _first(TextBatches(_words(vocab_size, 20_000), block_size, batch_size, SEED)),
        clip_norm=1.0,
    )


def _bert(vocab_size=1000, length=64, batch_size=16):
    config = BertConfig(
        vocab_size, length, d_model=128, num_heads=4, num_layers=4, d_ff=512, pooler=False, dropout=0.0, seed=SEED
    )
    return Configuration(
        model=lambda: Bert(config),
        objective=MaskedLanguageModel,
        optimizer=lambda parameters: AdamW(parameters, 5e-4, decays=is_matrix),
        batches=lambda: _masked_texts(vocab_size, length, batch_size),
    )


def _xl(vocab_size=65, segment_len=64, batch_size=LEAST_ROWS):
    config = TransformerXLConfig(vocab_size, d_model=128, num_heads=4, num_layers=4, mem_len=64, seed=SEED)
    return Configuration(
        model=lambda: TransformerXL(config),
        objective=SegmentRecurrence,
        optimizer=lambda parameters: Adam(parameters, 5e-4),
        batches=lambda: _first(
            TextStreams(_words(vocab_size, BATCHES * batch_size * segment_len + 1), segment_len, batch_size)
        ),
    )


CONFIGURATIONS = {
    "small": _encoder_decoder(
        32, 16, 32, lr=1e-3, d_model=64, num_heads=4, num_encoder_layers=2, num_decoder_layers=2, d_ff=256
    ),
    "gpt": _gpt(),
    "bert": _bert(),
    "xl": _xl(),
    "base": _encoder_decoder(8000, 32, 16, lr=BASE_LR, tie_embeddings=True),
}
