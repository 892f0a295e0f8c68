"""Batches for an encoder: labelled texts, and texts with holes in them. A text is [CLS] … [SEP]: <bos> stands for the
first, <eos> for the second; what stands for a hole, <mask>, is the last token of a vocabulary that has it."""

from dataclasses import dataclass

import numpy as np

from .batching import Seq2SeqBatches, pad_batch
from .tokenizers import BOS, EOS, SPECIAL_TOKENS

MASK_TOKEN = "<mask>"
IGNORED = -1  # the target where nothing is asked
CHOSEN, MASKED, REPLACED = 0.15, 0.8, 0.1  # share of tokens asked for; of those, hidden, and exchanged for another


def with_mask(tokenizer):
    """The same tokenizer with <mask> at the end of its vocabulary. No text is ever cut into that token."""
    return type(tokenizer)([*tokenizer.vocabulary, MASK_TOKEN], tokenizer.lowercase)


def as_encoder_input(ids, max_len):
    """[CLS], the ids, [SEP]; of a text too long for max_len tokens, its beginning."""
    return [BOS, *ids[: max_len - 2], EOS]


@dataclass(frozen=True)
class LabelledBatch:
    """A batch of texts: ids (B, S), padded, and the number of each one's label, labels (B,)."""

    ids: np.ndarray
    labels: np.ndarray


class LabelledBatches(Seq2SeqBatches):
    """Labelled texts as a sequence of batches without end, in the order that Seq2SeqBatches gives pairs.

    texts: (ids, number of the label) each, special tokens included
    """

    def __init__(self, texts, batch_size, seed=0):
        super().__init__([(ids, (label,)) for ids, label in texts], batch_size, seed)

    def _make(self, chosen):
        ids, labels = zip(*(self.pairs[i] for i in chosen), strict=True)
        return LabelledBatch(pad_batch(ids, self.pad_id), np.array(labels)[:, 0])


def mask_tokens(ids, vocab_size, rng):
    """Choose tokens to be asked for, and hide most of them (Devlin et al. 2019, §3.1 and §A.1).

    Each token is chosen with probability 15 %; of the chosen ones 80 % become <mask>, 10 % some token of the
    vocabulary, 10 % stay: so the model cannot tell which of the tokens it sees are right, and has to think about each.
    Special tokens are never chosen, and never take another's place. Where chance chose nothing, one token is chosen.

    ids (B, S) of a vocabulary whose last token is <mask>, rng a Generator or a seed
    ->  ids (B, S) with the holes, targets (B, S): the id where one was chosen, else IGNORED

    Raises ValueError if no token can be chosen, or there is none to exchange one for.
    """
    rng = np.random.default_rng(rng)
    first, mask_id = len(SPECIAL_TOKENS), vocab_size - 1
    if mask_id <= first:
        raise ValueError(f"a vocabulary of {vocab_size} tokens has none besides special ones and {MASK_TOKEN}")
    ids = np.asarray(ids)
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
    """A batch of texts with holes: ids (B, S), and targets (B, S), what was there where it is asked, else IGNORED."""

    ids: np.ndarray
    targets: np.ndarray


class MaskedBatches(Seq2SeqBatches):
    """Texts with holes as a sequence of batches without end, in the order that Seq2SeqBatches gives pairs. The holes
    depend on seed and step alone: a text has other ones each time it comes.

    texts: lists of ids, special tokens included, each with an ordinary one; vocab_size: <mask> is the last token
    """

    def __init__(self, texts, batch_size, vocab_size, seed=0):
        super().__init__([(ids, ()) for ids in texts], batch_size, seed)
        self.vocab_size = vocab_size

    def batch(self, step):
        return self._masked(super().batch(step), [self.seed, step, 1])

    def in_order(self):
        """Every text once, sorted by length, always with the same holes: yields the batches of a validation."""
        for number, ids in enumerate(super().in_order()):
            yield self._masked(ids, [self.seed, number, 2])

    def _make(self, chosen):
        return pad_batch([self.pairs[i][0] for i in chosen], self.pad_id)

    def _masked(self, ids, seed):
        return MaskedBatch(*mask_tokens(ids, self.vocab_size, np.random.default_rng(seed)))
