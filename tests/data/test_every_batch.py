"""What holds for the batches of every kind: they depend on the data, the seed and the step alone, and ids are int64."""

import numpy as np
import pytest

from transformer_np import data
from transformer_np.data import MixedBatches, Seq2SeqBatches, SkipGrams, SpanBatches, TextBatches, TextStreams
from transformer_np.tasks.copying import CopyStreams

IDS = np.random.default_rng(0).integers(4, 30, 200).astype(np.uint8)  # computed with as bytes, 255 + 1 would be 0
TEXTS = [[1, *IDS[i : i + 3 + i % 4].tolist(), 2] for i in range(23)]
PAIRS = [(text, text[1:-1]) for text in TEXTS]
KINDS = {  # name: the batches of a seed, how many make an epoch
    "pairs": (lambda seed: Seq2SeqBatches(PAIRS, 4, seed), 6),
    "labelled": (lambda seed: data.LabelledBatches([(text, i % 3) for i, text in enumerate(TEXTS)], 4, seed), 6),
    "masked": (lambda seed: data.MaskedBatches(TEXTS, 4, 31, seed), 6),
    "text": (lambda seed: TextBatches(IDS, 7, 4, seed), None),
    "spans": (lambda seed: SpanBatches(IDS, range(90, 99), 12, 4, seed), None),
    "mixed": (lambda seed: MixedBatches([Seq2SeqBatches(PAIRS, 4, seed), Seq2SeqBatches(PAIRS[:5], 2, seed)]), 6),
    "skip-grams": (lambda seed: SkipGrams(IDS, 30, 3, 2, 30, 0.05, seed), 7),
    "copying": (lambda seed: CopyStreams(5, 3, 4, 6, 8, seed), 8),
    "streams": (lambda seed: TextStreams(IDS, 4, 3), None),  # in the order of the text: no seed
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
