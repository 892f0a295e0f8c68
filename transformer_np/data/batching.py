"""From lists of ids to the arrays of a training step: padding, teacher forcing, batches."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..support.checks import MOST, as_ids, check_all_at_least, check_at_least, expecting
from .tokenizers import BOS, EOS, PAD


def pad_batch(sequences, pad_id=PAD):
    """Sequences of different lengths as one array, the short ones padded at the end.

    sequences: B sequences of ids, the longest of T  ->  (B, T)

    Raises ValueError for no sequences or an empty one, TypeError for ids that are not whole numbers.
    """
    check_at_least("pad_id", pad_id, -MOST)
    with expecting("sequences", "lists of token ids", sequences):
        lengths = np.array([len(sequence) for sequence in sequences])
    if not len(lengths):
        raise ValueError("there are no sequences to pad")
    if not lengths.all():
        raise ValueError(f"sequence {int(lengths.argmin())} of the batch is empty")
    ids = np.concatenate([as_ids(sequence, name="sequences") for sequence in sequences])
    batch = np.full((len(lengths), lengths.max()), pad_id, np.intp)  # (B, T)
    batch[np.arange(lengths.max()) < lengths[:, None]] = ids
    return batch


def shift_right(ids, bos_id=BOS, eos_id=EOS):
    """Teacher forcing: the decoder's input for a target sentence, and the output it should predict.

    ids: y₁ … yₙ  ->  tgt_in, tgt_out, lists of n + 1 ids

        tgt_in[t] = y_t, with y₀ = bos          tgt_out[t] = y_{t+1}, with y_{n+1} = eos        t = 0 … n

        tgt_in    <bos>   Lucas   vai       viajar
                    ↓       ↓       ↓          ↓
        tgt_out   Lucas   vai     viajar    <eos>

    At every position the decoder sees the correct beginning, not its own predictions, and predicts the next token. So
    one pass trains all positions at once, and the causal mask hides from each the token it should predict.
    """
    check_all_at_least(0, bos_id=bos_id, eos_id=eos_id)
    return [bos_id, *ids], [*ids, eos_id]


class PackedPairs(Sequence):
    """Pairs of sequences of ids in two arrays, which take a tenth of the memory of lists. It is used like a list of
    (source ids, target ids).

    pairs: an iterable of pairs, read once

    Raises OverflowError for an id below 0 or above 2³² − 1, and TypeError for one that is not a whole number.
    """

    def __init__(self, pairs):
        ids, lengths = array("I"), array("I")
        for pair in pairs:
            for side in pair:
                ids.extend(side)
                lengths.append(len(side))
        self._ids = np.asarray(ids)
        self._starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.intp)])  # of each side, and the end

    @property
    def lengths(self):
        """The lengths of both sides of each pair, (n, 2)."""
        return np.diff(self._starts).reshape(-1, 2)

    def __len__(self):
        return len(self._starts) // 2

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[place] for place in range(len(self))[i]]
        i = range(len(self))[i]
        start, middle, end = self._starts[2 * i : 2 * i + 3]
        return self._ids[start:middle].tolist(), self._ids[middle:end].tolist()


@dataclass(frozen=True)
class Seq2SeqBatch:
    """A padded batch of sentence pairs: src (B, S), and tgt_in (B, T) and tgt_out (B, T) as made by `shift_right`."""

    src: np.ndarray
    tgt_in: np.ndarray
    tgt_out: np.ndarray


class Seq2SeqBatches:
    """The training data as an endless sequence of batches: `batch(step)` for step = 0, 1, 2, …

    A batch depends only on the data, batch_size, seed and step, so a resumed training run gets exactly the
    batches it would have had. An epoch is `batches_per_epoch` steps and has every pair once, in a new random order.

    The batches have about equally many tokens, and on average batch_size pairs. Short and long sentences share them at
    random: with sentences of one length per batch, a model loses more in learning than it saves in padding
    (docs/train-on-your-pairs.md has the numbers). Only pairs longer than LONG times the mean have batches of their own,
    because one of them would pad all others of its batch.

        batches = Seq2SeqBatches([([5, 6, 7], [8, 9]), ([5, 6], [8])], batch_size=2)
        batches.batch(0).tgt_in                           # (2, 3)

    pairs: a list of (source ids, target ids) without special tokens, or PackedPairs; len() is the number of pairs

    Raises ValueError for a batch_size below 1, no pairs, or an empty source sequence.
    """

    LONG = 2

    def __init__(self, pairs, batch_size, seed=0, pad_id=PAD, bos_id=BOS, eos_id=EOS):
        check_at_least("batch_size", batch_size, 1)
        check_all_at_least(0, seed=seed, bos_id=bos_id, eos_id=eos_id)
        check_at_least("pad_id", pad_id, -MOST)
        if not len(pairs):
            raise ValueError("there are no pairs to make batches of")
        self.pairs, self.batch_size, self.seed = pairs, batch_size, seed
        self.pad_id, self.bos_id, self.eos_id = pad_id, bos_id, eos_id
        with expecting("pairs", "(source ids, target ids)", pairs):
            if isinstance(pairs, PackedPairs):
                self._lengths = pairs.lengths  # (n, 2)
            else:
                self._lengths = np.array([(len(src), len(tgt)) for src, tgt in pairs])
        if not self._lengths[:, 0].all():
            raise ValueError(f"the source sequence of pair {int(self._lengths[:, 0].argmin())} is empty")
        self._tokens = self._lengths.sum(axis=1) + 1  # of each pair; <bos> is one
        self._current = (None, None)  # the cached epoch and its batches

    def __len__(self):
        return len(self.pairs)

    @property
    def longest(self):
        """The number of ids of the longest source sequence."""
        return int(self._lengths[:, 0].max())

    @property
    def batches_per_epoch(self):
        return -(-len(self.pairs) // self.batch_size)  # the last one may be smaller

    def batch(self, step):
        """The batch of a training step, counted from 0 across all epochs."""
        check_at_least("step", step, 0)
        epoch, index = divmod(step, self.batches_per_epoch)
        if epoch != self._current[0]:
            self._current = epoch, self._order(epoch)
        return self._make(self._current[1][index])

    def in_order(self):
        """Yield the batches for validation: every pair once, sorted by length."""
        order = self._sorted(np.arange(len(self)))
        for start in range(0, len(self), self.batch_size):
            yield self._make(order[start : start + self.batch_size])

    def _order(self, epoch):
        """The batches of an epoch in order: shuffle the pairs, put the long ones behind the others and sort them by
        length, cut this line into batches of equally many tokens, and shuffle the batches.

        ->  for each step of the epoch, the indices of its pairs
        """
        rng, n = np.random.default_rng([self.seed, epoch]), self.batches_per_epoch
        shuffled = rng.permutation(len(self))
        is_long = self._tokens[shuffled] > self.LONG * self._tokens.mean()
        order = np.concatenate([shuffled[~is_long], self._sorted(shuffled[is_long])])
        tokens = np.cumsum(self._tokens[order])
        places = np.arange(n + 1)
        ends = np.searchsorted(tokens, tokens[-1] * places // n, side="right")
        ends = places + np.maximum.accumulate(ends - places)  # no batch is empty
        ends = np.minimum(ends, len(self) - n + places)
        return [order[ends[i] : ends[i + 1]] for i in rng.permutation(n)]

    def _sorted(self, chosen):
        """Sort by source length, then target length; pairs of equal lengths stay shuffled."""
        src, tgt = self._lengths[chosen].T
        return chosen[np.lexsort((tgt, src))]

    def _make(self, chosen):
        pairs = [self.pairs[i] for i in chosen]
        shifted = [shift_right(tgt, self.bos_id, self.eos_id) for _, tgt in pairs]
        sides = [src for src, _ in pairs], *zip(*shifted, strict=True)
        return Seq2SeqBatch(*(pad_batch(side, self.pad_id) for side in sides))


class MixedBatches:
    """Some rows of each task in every batch (Raffel et al. 2020, §3.5.2): `batch(step)` for step = 0, 1, 2, …

    parts: Seq2SeqBatches, SpanBatches or similar, one per task; their batch sizes are the shares of the mixture

    Raises ValueError for an empty list.
    """

    def __init__(self, parts, pad_id=PAD):
        check_at_least("pad_id", pad_id, -MOST)
        self.parts, self.pad_id = list(parts), pad_id
        if not self.parts:
            raise ValueError("there are no batches to mix")

    def batch(self, step):
        """The batch of a training step, counted from 0: the rows of all parts, in order."""
        batches = [part.batch(step) for part in self.parts]
        columns = zip(*((batch.src, batch.tgt_in, batch.tgt_out) for batch in batches), strict=True)
        return Seq2SeqBatch(*(pad_batch([row for array in arrays for row in array], self.pad_id) for arrays in columns))


class Lazy(Sequence):
    """make(place) for each of the places; a slice is lazy too.

    batches = Lazy(make_batch, range(1_000_000))
    batches[::1000][3]                                    # only this batch is made
    """

    def __init__(self, make, places):
        self._make, self._places = make, places

    def __len__(self):
        return len(self._places)

    def __getitem__(self, i):
        if isinstance(i, slice):
            return Lazy(self._make, self._places[i])
        return self._make(self._places[i])
