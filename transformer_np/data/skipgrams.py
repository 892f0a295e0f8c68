"""Skip-grams: words of a text, each with a word near it and some that were drawn, in batches (Mikolov et al. 2013b)."""

from dataclasses import dataclass

import numpy as np

from ..support.checks import as_ids, check_at_least
from .tokenizers import UNK


@dataclass(frozen=True)
class SkipGramBatch:
    """A pair of words in each row, center (N,) and context (N,), and the words drawn for it, negatives (N, K)."""

    center: np.ndarray
    context: np.ndarray
    negatives: np.ndarray


class SkipGrams:
    """A text as a sequence of batches of skip-grams without end: `batch(step)` for step = 0, 1, 2, …

        grams = SkipGrams(tokenizer.encode(text), len(tokenizer), window=5, negatives=5, batch_size=1000)
        grams.batch(0).negatives                          # (N, 5), N about 4,000

    ids: the whole text, (n,); special tokens and unknown words are left out, as if they were not there
    window: a word is paired with those up to r places away, r drawn from 1 … window for each: near words count more
    negatives: K, drawn for each pair from `noise`; that one of them is the context word itself happens, and is rare
    subsample: the t of `keep_probability`, or 0 to keep every word
    batch_size: words of running text for one batch. How many pairs that makes is left to chance

    Once through the text, `steps_per_epoch` batches, is an epoch: words are dropped, the others shuffled and each met
    once as the center. A batch depends on the text, the arguments and the step alone, so a training that stopped goes
    on with the very batch it would have had.

    Raises ValueError for sizes below 1, a text with fewer words than a window, and one with a single word, over and
    over: no other can be drawn.
    """

    def __init__(self, ids, vocab_size, window=5, negatives=5, batch_size=1000, subsample=1e-3, seed=0):
        for name, value in (("window", window), ("negatives", negatives), ("batch_size", batch_size)):
            check_at_least(name, value, 1)
        if not 0 <= subsample < float("inf"):
            raise ValueError(f"subsample must be 0 or positive, got {subsample}")
        self.vocab_size = vocab_size
        self.ids = self._known(ids)
        if len(self.ids) <= window:
            raise ValueError(
                f"the text has {len(self.ids)} words that are in the vocabulary, but a word and a window of {window} "
                f"need {window + 1}: give a longer text or a smaller window"
            )
        self.counts = np.bincount(self.ids, minlength=vocab_size)  # (V,)
        if np.count_nonzero(self.counts) == 1:
            raise ValueError("the text has a single word of the vocabulary, over and over: there is nothing to tell")
        self.window, self.negatives, self.batch_size, self.seed = window, negatives, batch_size, seed
        self.keep = keep_probability(self.counts, subsample)
        self._noise = np.cumsum(noise(self.counts))
        self._noise /= self._noise[-1]
        self._epoch = None, None, None  # its number, words and order, of the one used last

    @property
    def steps_per_epoch(self):
        return -(-len(self.ids) // self.batch_size)

    def batch(self, step):
        """The batch of a training step, counted from 0."""
        if step < 0:
            raise ValueError(f"step must not be negative, got {step}")
        epoch, number = divmod(step, self.steps_per_epoch)
        words, order = self._words_of(epoch)
        return self._pairs(words, order[number :: self.steps_per_epoch], np.random.default_rng([self.seed, 2, step]))

    def validation(self, ids):
        """Another text once, no word dropped and none shuffled, beside words drawn from this one: a list of batches."""
        words = self._known(ids)
        starts = range(0, len(words), self.batch_size) if len(words) > 1 else ()
        rng = np.random.default_rng([self.seed, 3])
        return [self._pairs(words, np.arange(start, min(start + self.batch_size, len(words))), rng) for start in starts]

    def _known(self, ids):
        """The ids without those of special tokens."""
        ids = np.asarray(ids)
        if ids.ndim != 1:
            raise ValueError(f"ids must have the one axis (length,), got shape {ids.shape}")
        ids = as_ids(ids, self.vocab_size) if ids.size else ids
        return ids[ids > UNK].astype(np.int64)

    def _words_of(self, epoch):
        """The words that were not dropped, (M,), and the order in which they come up as centers, (M,)."""
        if self._epoch[0] != epoch:
            rng = np.random.default_rng([self.seed, 1, epoch])
            words = self.ids[rng.random(len(self.ids)) < self.keep[self.ids]]
            if len(words) < max(2, self.steps_per_epoch):  # of so short a text all words are needed
                words = self.ids
            self._epoch = epoch, words, rng.permutation(len(words))
        return self._epoch[1:]

    def _pairs(self, words, places, rng):
        """The words at these places, each with all within its reach."""
        reach = rng.integers(1, self.window, size=len(places), endpoint=True)  # (n,)
        offsets = np.array([d for d in range(-self.window, self.window + 1) if d != 0])  # (2 · window,)
        near = places[:, None] + offsets  # (n, 2 · window)
        within = (np.abs(offsets) <= reach[:, None]) & (near >= 0) & (near < len(words))
        center, context = words[places.repeat(within.sum(axis=1))], words[near[within]]  # (N,)
        drawn = np.searchsorted(self._noise, rng.random((len(center), self.negatives)), side="right")
        return SkipGramBatch(center, context, drawn)


def keep_probability(counts, t):
    """How likely a word is kept, so that frequent ones do not crowd out the others (Mikolov et al. 2013b, eq. 5).

        P(keep w) = min(1, √(t / f(w))),    f the share of w in the text

    t is 1e-5 for billions of words; the fewer there are, the larger: 1e-3 for a book. With t = 0 all are kept.

    counts (V,)  ->  (V,)
    """
    if not t:
        return np.ones(len(counts))
    share = counts / counts.sum()
    return np.minimum(1, np.sqrt(t / np.maximum(share, np.finfo(float).tiny)))


def noise(counts):
    """The distribution that negatives are drawn from: P(w) ∝ count(w)^0.75 (Mikolov et al. 2013b, §2.2). The power
    lies between the text's own distribution and every word alike: rare words come up more than they occur.

    counts (V,)  ->  (V,), adding to 1
    """
    weights = np.asarray(counts, float) ** 0.75
    return weights / weights.sum()
