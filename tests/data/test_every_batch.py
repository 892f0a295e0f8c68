"""What holds for the batches of every kind: they depend on the data, the seed and the step alone, and ids are int64."""

import numpy as np
import pytest

from transformer_np import data
from transformer_np.data import BOS, EOS, PAD, Seq2SeqBatches, pad_batch
from transformer_np.tasks.copying import CopyStreams

IDS = np.random.default_rng(0).integers(4, 30, 200).astype(np.uint8)  # computed with as bytes, 255 + 1 would be 0
TEXTS = [[1, *IDS[i : i + 3 + i % 4].tolist(), 2] for i in range(23)]
PAIRS = [(text, text[1:-1]) for text in TEXTS]
KINDS = {  # name: the batches of a seed, how many make an epoch
    "pairs": (lambda seed: Seq2SeqBatches(PAIRS, 4, seed), 6),
    "labelled": (lambda seed: data.LabelledBatches([(text, i % 3) for i, text in enumerate(TEXTS)], 4, seed), 6),
    "masked": (lambda seed: data.MaskedBatches(TEXTS, 4, 31, seed), 6),
    "text": (lambda seed: data.TextBatches(IDS, 7, 4, seed), None),
    "spans": (lambda seed: data.SpanBatches(IDS, range(90, 99), 12, 4, seed), None),
    "mixed": (lambda seed: data.MixedBatches([Seq2SeqBatches(PAIRS, 4, seed), Seq2SeqBatches(PAIRS[:5], 2, seed)]), 6),
    "skip-grams": (lambda seed: data.SkipGrams(IDS, 30, 3, 2, 30, 0.05, seed), 7),
    "copying": (lambda seed: CopyStreams(5, 3, 4, 6, 8, seed), 8),
    "streams": (lambda seed: data.TextStreams(IDS, 4, 3), None),  # in the order of the text: no seed
}
each = pytest.mark.parametrize("kind", KINDS)


def arrays(batch):
    return {name: value for name, value in vars(batch).items() if isinstance(value, np.ndarray)}


def same(one, other):
    return all(np.array_equal(values, arrays(other)[name]) for name, values in arrays(one).items())


@each
def test_a_batch_depends_on_data_seed_and_step_alone(kind):
    make, epoch = KINDS[kind]
    one, other = make(5), make(5)
    forward = [one.batch(step) for step in range(20)]
    assert all(arrays(batch) for batch in forward)
    for step in reversed(range(20)):
        assert same(other.batch(step), forward[step])
    assert same(one.batch(3), forward[3]) and not same(forward[0], forward[1])
    if kind != "streams":
        assert not same(make(6).batch(0), forward[0])
    if epoch:
        assert not same(forward[epoch], forward[0])  # another order in each epoch
        assert not same(make(6).batch(0), forward[epoch])  # seed and epoch are not added up


@each
def test_ids_are_int64_and_a_step_is_no_less_than_0(kind):
    batches = KINDS[kind][0](0)
    whole = [array for array in arrays(batches.batch(0)).values() if array.dtype != bool]
    assert whole and {array.dtype for array in whole} == {np.dtype(np.int64)}
    with pytest.raises(ValueError, match="step must be at least 0, got -1"):
        batches.batch(-1)


@pytest.mark.parametrize("kind", [kind for kind, (make, _) in KINDS.items() if hasattr(make(0), "in_order")])
def test_the_order_of_a_validation_stays(kind):
    one, other = (KINDS[kind][0](5) for _ in range(2))
    found = list(one.in_order())
    one.batch(2)
    for again in (one.in_order(), other.in_order()):
        assert all(same(*pair) for pair in zip(found, again, strict=True))


# --- sentence pairs: padding, teacher forcing, and which are together -------------------------------------------------


def make_pairs(n, seed=0):
    """Pairs of random lengths; the ids of pair i are i + 10, so that a batch tells which pairs it has."""
    rng = np.random.default_rng(seed)
    src = rng.integers(1, 20, n)
    tgt = src + rng.integers(0, 4, n)
    return [([i + 10] * s, [i + 10] * t) for i, (s, t) in enumerate(zip(src, tgt, strict=True))]


def members(batch):
    return (batch.src[:, 0] - 10).tolist()


def all_members(batches):
    return [i for batch in batches for i in members(batch)]


def test_padding():
    assert pad_batch([[5, 6, 7], [8], np.array([9, 4])]).tolist() == [[5, 6, 7], [8, 0, 0], [9, 4, 0]]
    assert pad_batch([[5], [6, 7]], pad_id=-1).tolist() == [[5, -1], [6, 7]]
    with pytest.raises(ValueError, match="no sequences"):
        pad_batch([])
    with pytest.raises(ValueError, match="sequence 1 of the batch is empty"):
        pad_batch([[1], [], [2]])
    with pytest.raises(TypeError, match=r"sequences must be a list of lists of token ids, got \[1, 2\]"):
        pad_batch([1, 2])


def test_the_special_ids_can_be_others():
    batch = Seq2SeqBatches([([5], [6]), ([5], [6, 7])], 2, pad_id=90, bos_id=91, eos_id=92).batch(0)
    assert sorted(batch.tgt_in.tolist()) == [[91, 6, 7], [91, 6, 90]]
    assert sorted(batch.tgt_out.tolist()) == [[6, 7, 92], [6, 92, 90]]
    assert 90 in Seq2SeqBatches([([5], [6]), ([5, 5], [6])], 2, pad_id=90).batch(0).src


# --- the order of batches --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n, size", [(1000, 8), (1003, 8), (5, 8), (7, 1)])
def test_every_pair_comes_once_an_epoch(n, size):
    batches = Seq2SeqBatches(make_pairs(n), size)
    per_epoch = batches.batches_per_epoch
    assert per_epoch == -(-n // size) and len(batches) == n
    for epoch in range(3):
        epoch_batches = [batches.batch(epoch * per_epoch + i) for i in range(per_epoch)]
        assert sorted(all_members(epoch_batches)) == list(range(n))
        assert all(len(batch.src) for batch in epoch_batches)


def test_a_batch_has_whole_pairs():
    pairs = make_pairs(100)
    batches = Seq2SeqBatches(pairs, 8)
    assert batches.pairs is pairs  # not copied
    for batch in [*batches.in_order(), *map(batches.batch, range(13))]:
        for src, tgt_in, tgt_out, i in zip(batch.src, batch.tgt_in, batch.tgt_out, members(batch), strict=True):
            assert src[src != PAD].tolist() == pairs[i][0]
            assert tgt_in[tgt_in != PAD].tolist() == [BOS, *pairs[i][1]]
            assert tgt_out[tgt_out != PAD].tolist() == [*pairs[i][1], EOS]


def test_very_long_sentences_pad_no_others():
    pairs = [([7] * (200 if i % 50 == 0 else 4 + i % 3), [7] * 5) for i in range(1000)]
    batches = Seq2SeqBatches(pairs, 20)
    epoch = [batches.batch(i) for i in range(50)]
    long = [batch for batch in epoch if batch.src.shape[1] == 200]
    assert sum((batch.src != PAD).sum(axis=1).max() > 6 for batch in epoch) == len(long) < 20
    assert sum(len(batch.src) < 20 for batch in long) >= len(long) - 1  # fewer rows, the same tokens
    filled = sum((batch.src != PAD).sum() for batch in epoch) / sum(batch.src.size for batch in epoch)
    assert filled > 0.6  # at random about 0.1
    spread = [i for i, batch in enumerate(epoch) if batch.src.shape[1] == 200]
    assert max(spread) - min(spread) > len(long)  # not one after the other


def test_in_order_has_every_pair_once_the_short_ones_first():
    pairs = make_pairs(100)
    batches = list(Seq2SeqBatches(pairs, 8, seed=5).in_order())
    order = all_members(batches)
    assert [len(batch.src) for batch in batches] == [8] * 12 + [4]
    assert sorted(order) == list(range(100))
    lengths = [(len(pairs[i][0]), len(pairs[i][1])) for i in order]
    assert lengths == sorted(lengths)


def test_the_order_of_an_epoch_is_made_once(monkeypatch):
    batches = Seq2SeqBatches(make_pairs(100), 8)
    made = []
    order = batches._order
    monkeypatch.setattr(batches, "_order", lambda epoch: made.append(epoch) or order(epoch))
    for step in range(26):
        batches.batch(step)
    assert made == [0, 1]


def test_errors():
    with pytest.raises(ValueError, match="no pairs"):
        Seq2SeqBatches([], 2)
    with pytest.raises(ValueError, match="source sequence of pair 2 is empty"):
        Seq2SeqBatches([([1], [1]), ([1], []), ([], [1])], 2)
    for wrong in ([(1, 2)], [([1], [2], [3])]):
        with pytest.raises(TypeError, match=r"pairs must be a list of \(source ids, target ids\), got"):
            Seq2SeqBatches(wrong, 2)
