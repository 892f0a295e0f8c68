"""Skip-grams: batches of a word, a word near it, and randomly drawn words (Mikolov et al. 2013b)."""

from dataclasses import dataclass

import numpy as np

from ..support.checks import as_text_ids, check_all_at_least, check_at_least, check_number
from .tokenizers import UNK


@dataclass(frozen=True)
class SkipGramBatch:
    """Pairs of words, center (N,) and context (N,), and the words drawn for each pair, negatives (N, K)."""

    center: np.ndarray
    context: np.ndarray
    negatives: np.ndarray


class SkipGrams:
    """A text as an endless sequence of batches of skip-grams: `batch(step)` for step = 0, 1, 2, …

        grams = SkipGrams(tokenizer.encode(text), len(tokenizer), window=5, negatives=5, batch_size=1000)
        grams.batch(0).negatives                          # (N, 5), N about 4,000

    ids: the whole text, (n,); special tokens and unknown words are ignored
    window: each word is paired with the words up to r positions away, r drawn from 1 … window: near words count more
    negatives: K, the words drawn from `noise` for each pair; one of them may happen to be the context word itself
    subsample: the t of `keep_probability`, or 0 to keep every word
    batch_size: words of running text per batch; the number of pairs varies

    An epoch is one pass over the text in `steps_per_epoch` batches: some words are dropped, the others are shuffled,
    and each is the center once. A batch depends only on the text, the arguments and the step, so a resumed training run
    gets exactly the batches it would have had.

    Raises ValueError for sizes below 1, for a text with fewer words than a window, and for a text that repeats a single
    word, because no other can be drawn.
    """

    def __init__(self, ids, vocab_size, window=5, negatives=5, batch_size=1000, subsample=1e-3, seed=0):
        check_all_at_least(1, window=window, negatives=negatives, batch_size=batch_size)
        check_at_least("vocab_size", vocab_size, 1)
        check_at_least("seed", seed, 0)
        check_number("subsample", subsample, "[0, ∞)")
        self.vocab_size = vocab_size
        self.ids = self._known(ids)
        if len(self.ids) <= window:
            needed = f"a word and a window of {window} need {window + 1}: pass a longer text or a smaller window"
            raise ValueError(f"the text has {len(self.ids)} words that are in the vocabulary, but {needed}")
        self.counts = np.bincount(self.ids, minlength=vocab_size)  # (V,)
        if np.count_nonzero(self.counts) == 1:
            raise ValueError("the text repeats a single word of the vocabulary: at least two words are needed")
        self.window, self.negatives, self.batch_size, self.seed = window, negatives, batch_size, seed
        self.keep = keep_probability(self.counts, subsample)
        self._noise = np.cumsum(noise(self.counts))
        self._noise /= self._noise[-1]
        self._epoch = None, None, None  # the cached epoch: its number, words and order

    @property
    def steps_per_epoch(self):
        return -(-len(self.ids) // self.batch_size)

    def batch(self, step):
        """The batch of a training step, counted from 0."""
        check_at_least("step", step, 0)
        epoch, number = divmod(step, self.steps_per_epoch)
        words, order = self._words_of(epoch)
        return self._pairs(words, order[number :: self.steps_per_epoch], np.random.default_rng([self.seed, 2, step]))

    def validation(self, ids):
        """A list of batches from another text, in order and with all its words; negatives are drawn from this text."""
        words = self._known(ids)
        starts = range(0, len(words), self.batch_size) if len(words) > 1 else ()
        rng = np.random.default_rng([self.seed, 3])
        return [self._pairs(words, np.arange(start, min(start + self.batch_size, len(words))), rng) for start in starts]

    def _known(self, ids):
        """The ids without special tokens."""
        ids = as_text_ids(ids, size=self.vocab_size)
        return ids[ids > UNK].astype(np.intp)

    def _words_of(self, epoch):
        """The words that were not dropped, (M,), and the order in which they are centers, (M,)."""
        if self._epoch[0] != epoch:
            rng = np.random.default_rng([self.seed, 1, epoch])
            words = self.ids[rng.random(len(self.ids)) < self.keep[self.ids]]
            if len(words) < max(2, self.steps_per_epoch):  # a text this short needs all its words
                words = self.ids
            self._epoch = epoch, words, rng.permutation(len(words))
        return self._epoch[1:]

    def _pairs(self, words, places, rng):
        """The words at these positions, each paired with all words within its reach."""
        reach = rng.integers(1, self.window, size=len(places), endpoint=True)  # (n,)
        offsets = np.array([d for d in range(-self.window, self.window + 1) if d != 0])  # (2 · window,)
        near = places[:, None] + offsets  # (n, 2 · window)
        within = (np.abs(offsets) <= reach[:, None]) & (near >= 0) & (near < len(words))
        center, context = words[places.repeat(within.sum(axis=1))], words[near[within]]  # (N,)
        drawn = np.searchsorted(self._noise, rng.random((len(center), self.negatives)), side="right")
        return SkipGramBatch(center, context, drawn)


def keep_probability(counts, t):
    """The probability that a word is kept, so that frequent words do not dominate (Mikolov et al. 2013b, eq. 5).

        P(keep w) = min(1, √(t / f(w))),    f the share of w in the text

    t is 1e-5 for billions of words and larger for shorter texts: 1e-3 for a book. With t = 0 all words are kept.

    counts (V,)  ->  (V,)
    """
    if not t:
        return np.ones(len(counts))
    share = counts / counts.sum()
    return np.minimum(1, np.sqrt(t / np.maximum(share, np.finfo(float).tiny)))


def noise(counts):
    """The distribution of the negatives: P(w) ∝ count(w)^0.75 (Mikolov et al. 2013b, §2.2). The exponent lies between
    1 (the distribution of the text) and 0 (uniform), so rare words are drawn more often than they occur.

    counts (V,)  ->  (V,), with sum 1
    """
    weights = np.asarray(counts, float) ** 0.75
    return weights / weights.sum()
