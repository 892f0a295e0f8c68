"""Span corruption: nothing is lost, the shares are those asked for, and chance decides only where."""

from collections import Counter

import numpy as np
import pytest

from transformer_np import data
from transformer_np.data import MixedBatches, SentinelTokenizer, choose_spans, corrupt_spans, count_spans, join_spans

X, Y, Z, W = SENTINELS = (90, 91, 92, 93)


# --- spans -----------------------------------------------------------------------------------------------------------


def test_the_papers_example(monkeypatch):
    """Figure 2 of Raffel et al. 2020, with its spans."""
    words = "Thank you for inviting me to your party last week .".split()
    ids = list(range(10, 10 + len(words)))
    monkeypatch.setattr("transformer_np.data.spans.choose_spans", lambda *_: np.array([[2, 4], [8, 9]]))
    corrupted, target = corrupt_spans(ids, SENTINELS, 0)
    names = {**dict(zip(ids, words, strict=True)), X: "<X>", Y: "<Y>", Z: "<Z>"}
    assert " ".join(names[i] for i in corrupted) == "Thank you <X> me to your party <Y> week ."
    assert " ".join(names[i] for i in target) == "<X> for inviting <Y> last <Z>"


@pytest.mark.parametrize("length", [2, 3, 4, 7, 10, 20, 21, 64, 512])
@pytest.mark.parametrize("density, mean", [(0.15, 3.0), (0.5, 1.0), (0.9, 3.0), (0.01, 10.0)])
def test_input_and_target_give_the_text_back(length, density, mean):
    ids = np.random.default_rng(1).integers(10, 90, length)  # many twice
    sentinels = range(1000, 1600)
    for seed in range(5):
        corrupted, target = corrupt_spans(ids, sentinels, seed, density, mean)
        assert join_spans(corrupted, target, sentinels) == ids.tolist()
        assert join_spans(corrupted, target[:-1], sentinels) == ids.tolist()
        tokens, spans = count_spans(length, density, mean)
        assert len(corrupted) == length - tokens + spans and len(target) == tokens + spans + 1
        marks = [i for i in corrupted if i >= 1000]
        assert marks == list(sentinels[:spans]) and [i for i in target if i >= 1000] == list(sentinels[: spans + 1])


def test_the_shares():
    assert count_spans(512) == (77, 26)  # 15 %, 3 each
    assert count_spans(100, 0.2, 4) == (20, 5)
    assert count_spans(2) == (1, 1) and count_spans(5, 0.9, 1) == (4, 2)  # no more fit with a token between


@pytest.mark.long
def test_spans_do_not_touch_and_chance_is_fair():
    places, lengths, numbers = np.zeros(20), Counter(), Counter()
    rng = np.random.default_rng(0)
    for _ in range(6000):
        spans = choose_spans(20, rng, 0.3, 3)
        assert spans[0, 0] >= 0 and spans[-1, 1] <= 20
        assert (spans[1:, 0] > spans[:-1, 1]).all() and (spans[:, 1] > spans[:, 0]).all()
        for start, end in spans:
            places[start:end] += 1
            lengths[int(end - start)] += 1
        numbers[len(spans)] += 1
    assert numbers == {2: 6000}
    assert sorted(lengths) == [1, 2, 3, 4, 5]
    for length in range(1, 6):  # 6 tokens in 2 spans: five ways, equally likely
        assert lengths[length] / 12000 == pytest.approx(0.2, abs=0.02)
    share = places / 6000
    assert share == pytest.approx(share[::-1], abs=0.03)  # neither end is spared
    assert share[0] == pytest.approx(2 / 15, abs=0.02) and share.mean() == pytest.approx(0.3)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([5], SENTINELS, 0), "length must be at least 2"),
        (([], SENTINELS, 0), "length must be at least 2"),
        ((range(64), SENTINELS[:3], 0), "3 spans need 4 sentinels, got 3"),
        (([5, 90, 6], SENTINELS, 0), "ids must not contain a sentinel"),
        ((range(64), SENTINELS, 0, 0.0), "density must lie in"),
        ((range(64), SENTINELS, 0, 1.0), "density must lie in"),
        ((range(64), SENTINELS, 0, 0.15, 0.5), "mean_length must lie in"),
    ],
)
def test_what_cannot_be_corrupted(arguments, message):
    with pytest.raises(ValueError, match=message):
        corrupt_spans(*arguments)


@pytest.mark.parametrize(
    "corrupted, target, message",
    [
        ([5, X, 6], [7, X], "must begin with <extra_id_0>"),
        ([5, X, 6], [Y, 7], "has <extra_id_1> where <extra_id_0> belongs"),
        ([5, X, 6], [X, 7, X, 8], "has <extra_id_0> where <extra_id_1> belongs"),
        ([5, X, 6, Y], [X, 7], r"one span for each sentinel of the input \(2\)"),
        ([5, X, 6], [X, 7, Y, 8], r"one span for each sentinel of the input \(1\)"),
        ([5, X, 6], [X, 7, Y, Z], r"one span for each sentinel of the input \(1\)"),
        ([5, Y, 6, X], [X, 7, Y, 8, Z], "must be consecutive, starting with <extra_id_0>"),
        ([5, X, 6, X], [X, 7, Y], "must be consecutive, starting with <extra_id_0>"),
        ([5, X, 6], [], r"each sentinel of the input \(1\)"),
    ],
)
def test_what_does_not_belong_together(corrupted, target, message):
    with pytest.raises(ValueError, match=message):
        join_spans(corrupted, target, SENTINELS)


# --- sentinels in text, and batches ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tokenizer", [data.BPETokenizer.train(["thank you for"], max_size=262), data.CharTokenizer.train(["thank you for"])]
)
def test_sentinels_in_a_text(tokenizer):
    both = SentinelTokenizer(tokenizer, 3)
    assert len(both) == len(tokenizer) + 3
    text = "<extra_id_0> you<extra_id_2> for <extra_id_1>"
    ids = both.encode(text)
    assert [i - len(tokenizer) for i in ids if i >= len(tokenizer)] == [0, 2, 1]
    assert both.decode(ids) == text
    assert both.encode("thank you") == tokenizer.encode("thank you")
    assert both.decode([*both.encode("you"), 0, 2]) == "you"  # padding and end
    assert data.sentinel(2) == "<extra_id_2>"
    with pytest.raises(ValueError, match="there is no <extra_id_3>: the model has 3 sentinels"):
        both.encode("you <extra_id_3>")


def batches_of(length=200, **options):
    ids = np.random.default_rng(0).integers(4, 90, length)
    return ids, data.SpanBatches(ids, SENTINELS, **{"block_size": 21, "batch_size": 5, **options})


def texts_of(batch, sentinels=SENTINELS):
    """The windows that a batch is made of, and that its three arrays fit together."""
    assert (batch.tgt_in[:, 0] == 0).all() and (batch.tgt_in[:, 1:] == batch.tgt_out[:, :-1]).all()
    assert (batch.tgt_out[:, -1] == 2).all() and (batch.src[:, -1] == 2).all()
    return [join_spans(src[:-1], tgt[:-1], sentinels) for src, tgt in zip(batch.src, batch.tgt_out, strict=True)]


@pytest.mark.long
def test_batches_are_windows_of_the_text():
    ids, batches = batches_of()
    windows = {tuple(ids[i : i + 21].tolist()) for i in range(180)}
    starts = set()
    for step in range(150):
        batch = batches.batch(step)
        assert batch.src.shape == (5, 21 - 3 + 1 + 1) and batch.tgt_out.shape == batch.tgt_in.shape == (5, 3 + 2 + 1)
        texts = [tuple(text) for text in texts_of(batch)]
        assert set(texts) <= windows
        starts |= set(texts)
    assert {tuple(ids[:21].tolist()), tuple(ids[-21:].tolist())} <= starts  # both ends of the text come too


def test_every_batch_and_every_row_has_its_own_spans():
    batches = batches_of(seed=1)[1]
    marks = {str((batches.batch(step).src >= min(SENTINELS)).tolist()) for step in range(5)}
    assert len(marks) == 5 and len({str(row) for row in batches.batch(0).src >= min(SENTINELS)}) > 1


def test_in_order_every_window_comes_once():
    ids, batches = batches_of(length=200)
    held_out = list(batches.in_order())
    assert [len(batch.src) for batch in held_out] == [5, 4]
    assert [text for batch in held_out for text in texts_of(batch)] == ids[:189].reshape(9, 21).tolist()
    assert not np.array_equal(held_out[0].src[:4] >= min(SENTINELS), held_out[1].src >= min(SENTINELS))
    assert len(next(iter(batches_of(length=105)[1].in_order())).src) == 5  # no token is left over


def test_a_text_that_is_just_long_enough():
    _, batches = batches_of(length=21)
    assert len({tuple(text) for text in texts_of(batches.batch(0))}) == 1
    with pytest.raises(ValueError, match="the text has 20 tokens, a block 21: pass a longer text"):
        batches_of(length=20)
    with pytest.raises(ValueError, match="4 spans need 5 sentinels, got 4"):
        batches_of(block_size=80)


def test_a_mixture_has_the_rows_of_all():
    _, spans = batches_of(batch_size=2)
    pairs = data.Seq2SeqBatches([([i, i, 2], [i]) for i in range(4, 14)], 3, bos_id=0)
    mixed = MixedBatches([pairs, spans])
    for step in range(5):
        batch, first, second = mixed.batch(step), pairs.batch(step), spans.batch(step)
        for name in ("src", "tgt_in", "tgt_out"):
            rows, above, below = getattr(batch, name), getattr(first, name), getattr(second, name)
            assert np.array_equal(rows[: len(above), : above.shape[1]], above)
            assert not rows[: len(above), above.shape[1] :].any()
            assert np.array_equal(rows[len(above) :, : below.shape[1]], below)
    with pytest.raises(ValueError, match="no batches to mix"):
        MixedBatches([])
