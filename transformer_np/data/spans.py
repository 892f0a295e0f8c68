"""Span corruption: predict the spans removed from a text (Raffel et al. 2020, §3.1.4). A removed span is marked by a
sentinel, <extra_id_0>, <extra_id_1>, …; each is a token of its own, once in the input and once in the target."""

import re

import numpy as np

from ..support.checks import as_ids, as_rng, as_text_ids, check_all_at_least, check_at_least, check_number
from .batching import Seq2SeqBatch, pad_batch, shift_right
from .tokenizers import EOS, PAD, UNK

NOISE_DENSITY, MEAN_SPAN_LENGTH = 0.15, 3.0
SENTINEL = re.compile(r"<extra_id_(\d+)>")


def sentinel(number):
    """The text of a sentinel, numbered from 0."""
    return f"<extra_id_{number}>"


def count_spans(length, density=NOISE_DENSITY, mean_length=MEAN_SPAN_LENGTH):
    """The number of tokens to remove from a text, and the number of spans they form:

        tokens = round(length · density),    spans = round(tokens / mean_length),    at least 1 each

    At least one token stays. Raises ValueError for a length below 2, a density outside (0, 1), a mean below 1.
    """
    check_at_least("length", length, 2)
    check_number("density", density, "(0, 1)")
    check_number("mean_length", mean_length, "[1, ∞)")
    tokens = min(max(round(length * density), 1), length - 1)
    most = length - tokens + 1  # there is at least one token between two spans
    return tokens, min(max(round(tokens / mean_length), 1), most)


def choose_spans(length, rng, density=NOISE_DENSITY, mean_length=MEAN_SPAN_LENGTH):
    """Random places for the spans: as many as in `count_spans`, of random lengths, and no two adjacent.

    rng: a Generator or a seed
    ->  (spans, 2): start and end of each, in order
    """
    rng = as_rng(rng)
    tokens, spans = count_spans(length, density, mean_length)
    lengths = _parts(tokens, spans, rng)
    # before, between and after the spans; the 2 are for the first and the last gap, which may be empty
    *gaps, _ = _parts(length - tokens + 2, spans + 1, rng)
    gaps[0] -= 1
    ends = np.cumsum(gaps + lengths)
    return np.stack([ends - lengths, ends], axis=1)


def _parts(total, parts, rng):
    """A whole number as the sum of `parts` positive ones; every such sum is equally likely."""
    cuts = 1 + np.sort(rng.choice(total - 1, size=parts - 1, replace=False))
    return np.diff(cuts, prepend=0, append=total)


def corrupt_spans(ids, sentinels, rng, density=NOISE_DENSITY, mean_length=MEAN_SPAN_LENGTH):
    """Remove spans from a text (Raffel et al. 2020, figure 2).

        text      Thank you for inviting me to your party last week .
        input     Thank you <extra_id_0> me to your party <extra_id_1> week .
        target    <extra_id_0> for inviting <extra_id_1> last <extra_id_2>

    ids: the text; sentinels: the ids of <extra_id_0>, <extra_id_1>, …, one more than there are spans
    rng: a Generator or a seed; the same seed gives the same spans
    ->  input, target, two lists of ids; `join_spans` restores the text from them

    Raises ValueError for fewer than two ids, too few sentinels, or a sentinel among the ids.
    """
    ids, sentinels = as_text_ids(ids).tolist(), as_ids(sentinels, name="sentinels").tolist()
    if set(ids) & set(sentinels):
        raise ValueError("ids must not contain a sentinel: the text has one already")
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
    """The inverse of corrupt_spans: replace every sentinel of the input by the span after it in the target.

    The target may lack the last sentinel. Raises ValueError if the two do not match.
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
        raise ValueError(f"the sentinels of the input must be consecutive, starting with {sentinel(0)}")
    behind = list(found)[len(asked) :]
    if len(found) < len(asked) or len(behind) > 1 or any(found[i] for i in behind):
        raise ValueError(f"the target must have one span for each sentinel of the input ({len(asked)}), and no other")
    return [token for i in map(int, corrupted) for token in (found[i] if i in number else [i])]


class SentinelTokenizer:
    """A tokenizer with sentinels after its vocabulary. Unlike other special tokens, sentinels may be typed: "Thank you
    <extra_id_0> me". <extra_id_n> has the id len(tokenizer) + n.

    tokenizer: a data.Tokenizer; count: the number of sentinels
    """

    between = ""  # joins sentinels and text: the spaces are in the text
    unknown_ids = (UNK,)

    def __init__(self, tokenizer, count):
        check_at_least("count", count, 0)
        self.tokenizer = tokenizer
        self.sentinels = range(len(tokenizer), len(tokenizer) + count)

    def __len__(self):
        return len(self.tokenizer) + len(self.sentinels)

    def encode(self, text):
        """The ids of a text, without start and end tokens. ValueError for a sentinel that does not exist."""
        ids, done = [], 0
        for found in SENTINEL.finditer(text):
            number = int(found[1])
            if number >= (count := len(self.sentinels)):
                raise ValueError(f"there is no {found[0]}: the model has {count} sentinels, numbered from 0")
            ids += [*self.tokenizer.encode(text[done : found.start()]), self.sentinels[number]]
            done = found.end()
        return ids + self.tokenizer.encode(text[done:])

    def decode(self, ids):
        """The text of the ids, with sentinels but without other special tokens."""
        numbers = {i: number for number, i in enumerate(self.sentinels)}
        pieces, run = [], []
        for i in as_text_ids(ids).tolist():
            if i in numbers:
                pieces += [self.tokenizer.decode(run), sentinel(numbers[i])]
                run = []
            else:
                run.append(i)
        return self.between.join(filter(None, [*pieces, self.tokenizer.decode(run)]))


class SpanBatches:
    """A text as an endless sequence of batches for span corruption: `batch(step)` for step = 0, 1, 2, …

    A batch is `batch_size` windows of `block_size` tokens that start anywhere in the text, each with random spans. All
    windows have equally many spans and removed tokens, so that there is no padding. A batch depends only on the
    arguments and the step. The source ends with <eos>; the decoder starts with bos_id.

    ids: the whole text, without special tokens; sentinels: as for corrupt_spans

    Raises ValueError for sizes that are too small, a text shorter than a block, or too few sentinels.
    """

    def __init__(self, ids, sentinels, block_size, batch_size, seed=0, bos_id=PAD, eos_id=EOS):
        check_at_least("block_size", block_size, 2)
        check_at_least("batch_size", batch_size, 1)
        check_all_at_least(0, seed=seed, bos_id=bos_id, eos_id=eos_id)
        self.ids = as_text_ids(ids).astype(np.intp, copy=False)
        if len(self.ids) < block_size:
            sizes = f"the text has {len(self.ids)} tokens, a block {block_size}"
            raise ValueError(f"{sizes}: pass a longer text or a smaller block_size")
        self.sentinels, self.block_size, self.batch_size, self.seed = list(sentinels), block_size, batch_size, seed
        self.bos_id, self.eos_id = bos_id, eos_id
        self._corrupted([0], 0)  # raises the error for too few sentinels now

    def batch(self, step):
        """The batch of a training step, counted from 0."""
        check_at_least("step", step, 0)
        rng = np.random.default_rng([self.seed, step, 3])
        return self._corrupted(rng.integers(len(self.ids) - self.block_size + 1, size=self.batch_size), rng)

    def in_order(self):
        """Yield the batches for validation: the text in consecutive windows, always with the same spans. An incomplete
        last window is dropped."""
        starts = np.arange(0, len(self.ids) - self.block_size + 1, self.block_size)
        for number, first in enumerate(range(0, len(starts), self.batch_size)):
            yield self._corrupted(starts[first : first + self.batch_size], [self.seed, number, 4])

    def _corrupted(self, starts, rng):
        rng = as_rng(rng)
        windows = [self.ids[start : start + self.block_size] for start in starts]
        sources, targets = zip(*(corrupt_spans(window, self.sentinels, rng) for window in windows), strict=True)
        tgt_in, tgt_out = zip(*(shift_right(target, self.bos_id, self.eos_id) for target in targets), strict=True)
        sources = [[*source, self.eos_id] for source in sources]
        return Seq2SeqBatch(*map(pad_batch, (sources, tgt_in, tgt_out)))
