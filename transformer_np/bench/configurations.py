"""The training runs to measure: model, optimizer and batches, all made from a seed.

Dropout is 0, because two implementations cannot draw the same masks, and all sequences of a batch have one length, so
that there is no padding. The batches are made in advance and repeat.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from .. import models
from ..data.batching import Seq2SeqBatches
from ..data.masking import MaskedBatches
from ..data.streams import TextStreams
from ..data.text import TextBatches
from ..data.tokenizers import BOS, EOS, SPECIAL_TOKENS
from ..training import Adam, AdamW, MaskedLanguageModel, NextToken, SegmentRecurrence, TeacherForcing, is_matrix

BATCHES = 16  # the number of different batches
SEED = 0
LEAST_ROWS = 12  # in a batch, so at most this many workers can share it

# The rate of the paper's warm-up after about 60 steps. Adam takes equally large steps where the gradient is only
# rounding error: at 1e-4 the first losses of this deep model agreed to 1e-7, but the tenth loss of PyTorch on one
# thread and on two differed from ours by 1e-4 and 2e-4.
BASE_LR = 1e-5
SIZES = {"d_model": 128, "num_heads": 4, "num_layers": 4, "seed": SEED}


@dataclass(frozen=True)
class Configuration:
    """The parts of a training run: kind(config) makes the model, objective(model) and optimizer(parameters) the next
    two; batches() returns a list; clip_norm is the Trainer's.

    checked: the number of steps whose losses must be those of the other contestants
    """

    kind: type
    config: object
    objective: Callable
    optimizer: Callable
    batches: Callable
    clip_norm: float | None = None
    checked: int = 10

    def model(self):
        return self.kind(self.config)


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


def _encoder_decoder(vocab_size, length, batch_size, lr, checked=10, **sizes):
    """Random pairs: the source has `length` tokens, and so has the target with its start or end token."""

    def batches():
        words = _words(vocab_size, BATCHES * batch_size, 2 * length - 1)
        return _first(Seq2SeqBatches([(row[:length], row[length:]) for row in words], batch_size, SEED))

    config = models.TransformerConfig(vocab_size, vocab_size, dropout=0.0, max_len=length, seed=SEED, **sizes)
    adam = partial(Adam, lr=lr, betas=(0.9, 0.98), eps=1e-9)
    return Configuration(models.Transformer, config, TeacherForcing, adam, batches, checked=checked)


def _masked_texts():
    words = _words(1000 - 1, BATCHES * 16, 64 - 2)  # the last token is <mask>
    return _first(MaskedBatches([[BOS, *row, EOS] for row in words], 16, 1000, SEED))


def _gpt(config, batch_size, lr=1e-3, checked=10):
    """With nanoGPT's optimizer."""
    adam = partial(AdamW, lr=lr, betas=(0.9, 0.99), weight_decay=0.1, decays=is_matrix)

    def batches():
        return _first(TextBatches(_words(config.vocab_size, 20_000), config.max_len, batch_size, SEED))

    return Configuration(models.GPT, config, NextToken, adam, batches, 1.0, checked)


def _gpt_of_size(layers, d_model, heads, batch_size, block, vocab_size=65):
    config = models.GPTConfig(vocab_size, block, d_model, heads, layers, bias=False, activation="gelu", seed=SEED)
    return _gpt(config, batch_size, lr=BASE_LR, checked=2)


CONFIGURATIONS = {
    "small": _encoder_decoder(
        32, 16, 32, lr=1e-3, d_model=64, num_heads=4, num_encoder_layers=2, num_decoder_layers=2, d_ff=256
    ),
    "gpt": _gpt(models.GPTConfig(65, 64, **SIZES, bias=False, activation="gelu"), LEAST_ROWS),
    "bert": Configuration(
        models.Bert, models.BertConfig(1000, 64, **SIZES, d_ff=512, pooler=False, dropout=0.0), MaskedLanguageModel,
        partial(AdamW, lr=5e-4, decays=is_matrix), _masked_texts,
    ),
    "xl": Configuration(
        models.TransformerXL, models.TransformerXLConfig(65, **SIZES, mem_len=64), SegmentRecurrence,
        partial(Adam, lr=5e-4), lambda: _first(TextStreams(_words(65, BATCHES * LEAST_ROWS * 64 + 1), 64, LEAST_ROWS)),
    ),
    "base": _encoder_decoder(8000, 32, 16, lr=BASE_LR, checked=3, tie_embeddings=True),
    "gpt-5M": _gpt_of_size(6, 256, 8, 96, 128),
    "gpt-11M": _gpt_of_size(6, 384, 6, 16, 64),
    "gpt-43M": _gpt_of_size(8, 640, 8, 4, 256, vocab_size=5000),
    "gpt-124M": _gpt_of_size(12, 768, 12, 4, 256, vocab_size=50_304),
}  # fmt: skip
