"""Span corruption: a text with holes, and what was in them (Raffel et al. 2020, §3.1.4). A hole is marked by a
sentinel, <extra_id_0>, <extra_id_1>, …; each is a token of its own and stands once in the input, once in the target."""

import re

import numpy as np

from ..support.checks import check_at_least
from .batching import Seq2SeqBatch, pad_batch, shift_right
from .tokenizers import EOS, PAD

NOISE_DENSITY, MEAN_SPAN_LENGTH = 0.15, 3.0
SENTINEL = re.compile(r"<extra_id_(\d+)>")


def sentinel(number):
    """How the sentinel of this number, from 0, is written."""
    return f"<extra_id_{number}>"


def count_spans(length, density=NOISE_DENSITY, mean_length=MEAN_SPAN_LENGTH):
    """How many tokens of a text are taken out, and in how many spans:

        tokens = round(length · density),    spans = round(tokens / mean_length),    at least 1 each

    and at least one token stays. Raises ValueError for a length below 2, a density outside (0, 1), a mean below 1.
    """
    check_at_least("length", length, 2)
    if not 0 < density < 1:
        raise ValueError(f"density must lie in (0, 1), got {density}")
    if not 1 <= mean_length < float("inf"):
        raise ValueError(f"mean_length must be at least 1, got {mean_length}")
    tokens = min(max(round(length * density), 1), length - 1)
    most = length - tokens + 1  # one token between two spans, or they would be one
    return tokens, min(max(round(tokens / mean_length), 1), tokens, most)


def choose_spans(length, rng, density=NOISE_DENSITY, mean_length=MEAN_SPAN_LENGTH):
    """Where the spans are: `count_spans` says how many, chance how long each is and where; no two touch.

    rng: a Generator or a seed
    ->  (spans, 2): start and end of each, in order
    """
    rng = np.random.default_rng(rng)
    tokens, spans = count_spans(length, density, mean_length)
    lengths = _parts(tokens, spans, rng)
    gaps = _parts(length - tokens + 2, spans + 1, rng)  # before, between and behind the spans
    gaps[0] -= 1  # nothing need be before the first …
    gaps[-1] -= 1  # … or behind the last
    ends = np.cumsum(gaps[:-1] + lengths)
    return np.stack([ends - lengths, ends], axis=1)


def _parts(total, parts, rng):
    """A whole number as the sum of so many, each at least 1; every way to do it is equally likely."""
    cuts = 1 + np.sort(rng.choice(total - 1, size=parts - 1, replace=False))
    return np.diff(cuts, prepend=0, append=total)


def corrupt_spans(ids, sentinels, rng, density=NOISE_DENSITY, mean_length=MEAN_SPAN_LENGTH):
    """Take spans out of a text (Raffel et al. 2020, figure 2).

        text      Thank you for inviting me to your party last week .
        input     Thank you <extra_id_0> me to your party <extra_id_1> week .
        target    <extra_id_0> for inviting <extra_id_1> last <extra_id_2>

    ids: the text; sentinels: the ids of <extra_id_0>, <extra_id_1>, …, one more than there are spans
    rng: a Generator or a seed: the same gives the same spans
    ->  input, target, two lists of ids; `join_spans` makes the text of them again

    Raises ValueError for fewer than two ids, too few sentinels, or a sentinel among the ids.
    """
    ids, sentinels = [int(i) for i in ids], [int(i) for i in sentinels]
    if set(ids) & set(sentinels):
        raise ValueError("there is a sentinel in the text already")
    spans = choose_spans(len(ids), rng, density, mean_length).tolist()
    if len(sentinels) <= len(spans):
        raise ValueError(f"{len(spans)} spans need {len(spans) + 1} sentinels, got {len(sentinels)}")
    corrupted, target, done = [], [], 0
    for (start, end), mark in zip(spans, sentinels, strict=False):
        corrupted += [*ids[done:start], mark]
        target += [mark, *ids[start:end]]
        done = end
    return [*corrupted, *ids[done:]], [*target, sentinels[len(spans)]]


def join_spans(corrupted, target, sentinels):
    """The inverse of corrupt_spans: every sentinel of the input replaced by what stands behind it in the target.

    A target may lack the last sentinel. Raises ValueError where the two do not belong together.
    """
    number = {int(i): n for n, i in enumerate(sentinels)}
    found, last = {}, None
    for i in map(int, target):
        if i in number:
            if number[i] != len(found):
                raise ValueError(f"the target has {sentinel(number[i])} where {sentinel(len(found))} belongs")
            last = found[i] = []
        elif last is None:
            raise ValueError(f"the target must begin with {sentinel(0)}")
        else:
            last.append(i)
    asked = [i for i in map(int, corrupted) if i in number]
    if [number[i] for i in asked] != list(range(len(asked))):
        raise ValueError("the sentinels of the input must be all different and in order, from the first on")
    behind = list(found)[len(asked) :]
    if len(found) < len(asked) or len(behind) > 1 or any(found[i] for i in behind):
        raise ValueError(f"the input has {len(asked)} holes, but the target does not fill just these")
    return [token for i in map(int, corrupted) for token in (found[i] if i in number else [i])]


class SentinelTokenizer:
    """A tokenizer with sentinels behind its vocabulary, which unlike other special tokens may be typed:
    "Thank you <extra_id_0> me". <extra_id_n> has the id len(tokenizer) + n.

    tokenizer: a data.Tokenizer; count: how many sentinels
    """

    between = ""  # a sentinel and the text beside it: the blanks are in the text

    def __init__(self, tokenizer, count):
        check_at_least("count", count, 0)
        self.tokenizer = tokenizer
        self.sentinels = range(len(tokenizer), len(tokenizer) + count)

    def __len__(self):
        return len(self.tokenizer) + len(self.sentinels)

    def encode(self, text):
        """The ids of a text, no start or end token added. ValueError for a sentinel that there is not."""
        ids, done = [], 0
        for found in SENTINEL.finditer(text):
            number = int(found[1])
            if number >= len(self.sentinels):
                raise ValueError(f"there is no {found[0]}: the model has {len(self.sentinels)} sentinels, from 0 on")
            ids += [*self.tokenizer.encode(text[done : found.start()]), self.sentinels[number]]
            done = found.end()
        return ids + self.tokenizer.encode(text[done:])

    def decode(self, ids):
        """The text of the ids: sentinels as they are written, other special tokens left out."""
        numbers = {i: number for number, i in enumerate(self.sentinels)}
        pieces, run = [], []
        for i in ids:
            if i in numbers:
                pieces += [self.tokenizer.decode(run), sentinel(numbers[i])]
                run = []
            else:
                run.append(i)
        return self.between.join(filter(None, [*pieces, self.tokenizer.decode(run)]))


class SpanBatches:
    """A text as a sequence of batches of span corruption without end: `batch(step)` for step = 0, 1, 2, …

    A batch is `batch_size` windows of `block_size` tokens that start anywhere in the text, with spans of their own: the
    same window has others each time it comes. All windows have as many spans and holes, so that nothing is padded. It
    depends on the arguments and the step alone. The source ends with <eos>; the decoder starts with bos_id.

    ids: the whole text, without special tokens; sentinels: as for corrupt_spans

    Raises ValueError for sizes that are too small, a text shorter than a block, or too few sentinels.
    """

    def __init__(self, ids, sentinels, block_size, batch_size, seed=0, bos_id=PAD, eos_id=EOS):
        check_at_least("block_size", block_size, 2)
        check_at_least("batch_size", batch_size, 1)
        self.ids = np.asarray(ids, np.int64)
        if len(self.ids) < block_size:
            raise ValueError(
                f"the text has {len(self.ids)} tokens, a block {block_size}: give a longer text or a smaller block_size"
            )
        self.sentinels, self.block_size, self.batch_size, self.seed = list(sentinels), block_size, batch_size, seed
        self.bos_id, self.eos_id = bos_id, eos_id
        self._corrupted([0], 0)  # too few sentinels show now

    def batch(self, step):
        """The batch of a training step, counted from 0."""
        if step < 0:
            raise ValueError(f"step must not be negative, got {step}")
        rng = np.random.default_rng([self.seed, step, 3])
        return self._corrupted(rng.integers(len(self.ids) - self.block_size + 1, size=self.batch_size), rng)

    def in_order(self):
        """The text in windows one behind the other, always with the same spans; what is left at the end is left out.
        Yields the batches of a validation."""
        starts = np.arange(0, len(self.ids) - self.block_size + 1, self.block_size)
        for number, first in enumerate(range(0, len(starts), self.batch_size)):
            yield self._corrupted(starts[first : first + self.batch_size], [self.seed, number, 4])

    def _corrupted(self, starts, rng):
        rng = np.random.default_rng(rng)
        windows = [self.ids[start : start + self.block_size] for start in starts]
        sources, targets = zip(*(corrupt_spans(window, self.sentinels, rng) for window in windows), strict=True)
        tgt_in, tgt_out = zip(*(shift_right(target, self.bos_id, self.eos_id) for target in targets), strict=True)
        return Seq2SeqBatch(
            *(pad_batch(rows) for rows in ([[*source, self.eos_id] for source in sources], tgt_in, tgt_out))
        )
