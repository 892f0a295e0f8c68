"""Batches for an encoder: labelled texts, and texts with masked tokens. A text is [CLS] … [SEP], where <bos> serves as
[CLS] and <eos> as [SEP]; <mask> is the last token of the vocabulary."""

from dataclasses import dataclass

import numpy as np

from ..support.checks import as_ids, as_rng, as_text_ids, check_at_least, check_kind
from .batching import Seq2SeqBatches, pad_batch
from .tokenizers import BOS, EOS, PAD, SPECIAL_TOKENS, Tokenizer

MASK_TOKEN = "<mask>"
MASK_WORD = "[MASK]"  # what stands for it in a text, and in the files of other libraries
IGNORED = -1  # the target at positions that are not predicted
CHOSEN, MASKED, REPLACED = 0.15, 0.8, 0.1  # share of tokens to predict; of these, share masked, share replaced


def with_mask(tokenizer):
    """The same tokenizer with <mask> at the end of its vocabulary. No text is ever encoded as that token."""
    check_kind("tokenizer", tokenizer, Tokenizer)
    return type(tokenizer)([*tokenizer.vocabulary, MASK_TOKEN], tokenizer.lowercase)


def as_encoder_input(ids, max_len):
    """[CLS], the ids, [SEP], as a list; a text longer than max_len tokens is cut off."""
    check_at_least("max_len", max_len, 3)
    return [BOS, *as_text_ids(ids)[: max_len - 2].tolist(), EOS]


@dataclass(frozen=True)
class LabelledBatch:
    """A batch of texts: padded ids (B, S), the index of each text's label, labels (B,), and padding (B, S), True where
    a row is padded, and segments (B, S) of pairs of texts; without them the model takes pad_id for padding."""

    ids: np.ndarray
    labels: np.ndarray
    padding: np.ndarray | None = None
    segments: np.ndarray | None = None


class LabelledBatches(Seq2SeqBatches):
    """Labelled texts as an endless sequence of batches, in the order of Seq2SeqBatches.

    texts: a list of (ids, index of the label), special tokens included
    segments: the segments of each text, a list of lists, or None: all 0
    """

    def __init__(self, texts, batch_size, seed=0, pad_id=PAD, segments=None):
        super().__init__([(ids, (label,)) for ids, label in texts], batch_size, seed, pad_id)
        self.segments = segments

    def _make(self, chosen):
        ids, labels = zip(*(self.pairs[i] for i in chosen), strict=True)
        padded = pad_batch(ids, self.pad_id)
        padding = np.arange(padded.shape[1]) >= np.array([len(row) for row in ids])[:, None]
        segments = None if self.segments is None else pad_batch([self.segments[i] for i in chosen], 0)
        return LabelledBatch(padded, np.array(labels)[:, 0], padding, segments)


def mask_tokens(ids, vocab_size, rng):
    """Choose tokens to predict, and mask most of them (Devlin et al. 2019, §3.1 and §A.1).

    Each token is chosen with probability 15 %. Of the chosen tokens 80 % become <mask>, 10 % a random token of the
    vocabulary, and 10 % stay unchanged: the model cannot tell which of the tokens it sees are correct, so it has to
    model all of them. Special tokens are never chosen and never used as replacements. At least one token is always
    chosen.

    ids (B, S) of a vocabulary whose last token is <mask>, rng a Generator or a seed
    ->  masked ids (B, S), targets (B, S): the original id of a chosen token, else IGNORED

    Raises ValueError if no token can be chosen or the vocabulary has no ordinary token.
    """
    check_at_least("vocab_size", vocab_size, 1)
    rng = as_rng(rng)
    first, mask_id = len(SPECIAL_TOKENS), vocab_size - 1
    if mask_id <= first:
        raise ValueError(f"a vocabulary of {vocab_size} tokens has none besides the special tokens and {MASK_TOKEN}")
    ids = as_ids(ids, vocab_size).astype(np.intp, copy=False)  # signed: the targets contain IGNORED
    ordinary = (ids >= first) & (ids != mask_id)
    if not ordinary.any():
        raise ValueError("there is no token that can be masked: all are special or unknown")
    chosen = ordinary & (rng.random(ids.shape) < CHOSEN)
    if not chosen.any():
        places = np.argwhere(ordinary)
        chosen[tuple(places[rng.integers(len(places))])] = True
    how = rng.random(ids.shape)
    others = rng.integers(first, mask_id, size=ids.shape)
    holes = np.where(chosen & (how < MASKED), mask_id, ids)
    holes = np.where(chosen & (how >= 1 - REPLACED), others, holes)
    return holes, np.where(chosen, ids, IGNORED)


@dataclass(frozen=True)
class MaskedBatch:
    """A batch of masked texts: ids (B, S), and targets (B, S), the original ids of tokens to predict, else IGNORED."""

    ids: np.ndarray
    targets: np.ndarray


class MaskedBatches(Seq2SeqBatches):
    """Masked texts as an endless sequence of batches, in the order of Seq2SeqBatches. The masks depend only on seed and
    step, so a text is masked differently each time.

    texts: lists of ids, special tokens included, each with at least one ordinary token
    vocab_size: the number of tokens, including <mask>
    """

    def __init__(self, texts, batch_size, vocab_size, seed=0):
        super().__init__([(ids, ()) for ids in texts], batch_size, seed)
        check_at_least("vocab_size", vocab_size, 1)
        self.vocab_size = vocab_size

    def batch(self, step):
        return self._masked(super().batch(step), [self.seed, step, 1])

    def in_order(self):
        """Yield the batches for validation: every text once, sorted by length, always with the same masks."""
        for number, ids in enumerate(super().in_order()):
            yield self._masked(ids, [self.seed, number, 2])

    def _make(self, chosen):
        return pad_batch([self.pairs[i][0] for i in chosen], self.pad_id)

    def _masked(self, ids, seed):
        return MaskedBatch(*mask_tokens(ids, self.vocab_size, np.random.default_rng(seed)))
