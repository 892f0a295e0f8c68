"""Texts and pairs that are larger than the memory for them: the same tokens, batches and checksums as in memory."""

import hashlib
import json
import tempfile
from dataclasses import asdict

import numpy as np
import pytest

from transformer_np import data
from transformer_np.data import large
from transformer_np.data.batching import Lazy
from transformer_np.tasks.task import Task
from transformer_np.tasks.text import GPTOptions, GPTTask

TEXT = (
    "“Olá”,  disse: não\u00a0é\u3000um e\u0301 …\n\n\t indented\r\nit's  3,000 漢字 words_with_lines\n " * 5
    + "unbroken" * 20
    + " \n\n end\r"
)


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(large, "PART", 7)
    monkeypatch.setattr(large, "LARGE", 50)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    return path


def test_a_large_text_is_the_string(file, small_parts):
    whole, text = data.read_text(file), data.open_text(file)
    assert isinstance(text, data.LargeText) and len(text) == len(whole)
    assert "".join(text.strings()) == whole
    for part in (slice(3, 40), slice(None, -9), slice(-9, None), slice(5, 5), slice(0, 10_000)):
        assert "".join(text[part].strings()) == whole[part] and len(text[part]) == len(whole[part])
    assert "".join(text[10:90][5:20].strings()) == whole[15:30]
    with pytest.raises(ValueError, match="step 1, got 2"):
        text[::2]


def test_a_small_text_is_read_whole(file):
    assert data.open_text(file) == data.read_text(file)


def test_the_errors_of_a_large_text(tmp_path, small_parts):
    file = tmp_path / "file"
    file.write_bytes(b"a\n" * 50 + b"b\xff\n")
    with pytest.raises(ValueError, match="line 51: the byte 0xff at column 2 is not UTF-8"):
        data.open_text(file)
    file.write_text(" \n" * 99)
    with pytest.raises(ValueError, match="has no text"):
        data.open_text(file)
    file.write_text("a b" * 99)
    text = data.open_text(file)
    file.write_text("a b")
    with pytest.raises(ValueError, match="became shorter"):
        list(text.strings())


@pytest.mark.parametrize("tokenizer", [data.CharTokenizer.train([TEXT]), data.BPETokenizer.train([TEXT], max_size=300)])
def test_the_tokens_of_the_parts_are_those_of_the_whole(file, small_parts, tokenizer, monkeypatch):
    whole = data.read_text(file)
    expected = tokenizer.encode(whole)
    for size in (1, 2, 3, 7, 50):
        monkeypatch.setattr(large, "PART", size)
        for text in (whole, data.open_text(file)):
            assert "".join(large.parts(text)) == whole
            ids = data.encode_text(tokenizer, text)
            assert ids.tolist() == expected and ids.dtype == (np.uint8 if len(tokenizer) <= 256 else np.uint16)
    assert data.encode_text(tokenizer, "").tolist() == []


def test_the_tokens_of_a_large_text_are_not_in_memory(file, small_parts, monkeypatch):
    ids = data.encode_text(data.CharTokenizer.train([TEXT]), data.open_text(file))
    assert isinstance(ids.base, np.memmap) and type(ids) is np.ndarray
    monkeypatch.setattr(tempfile, "TemporaryFile", None)
    assert len(data.encode_text(data.CharTokenizer.train([TEXT]), TEXT[:20])) == 20


@pytest.mark.parametrize("tokens", ["char", "bpe"])
def test_a_run_is_the_same_from_a_large_text(file, tokens, monkeypatch):
    options = GPTOptions(text=file, tokens=tokens, block_size=8, layers=1, d_model=8, heads=1, vocab_size=300)
    task = GPTTask()

    def made():
        split = task.load(options)
        tokenizers = task.train_tokenizers(options, split)
        setup = task.setup(options, split, tokenizers)
        batches = [setup.batches.batch(step) for step in range(20)] + list(setup.validation)
        arrays = [array for batch in batches for array in (batch.ids, batch.targets)]
        assert {array.dtype for array in arrays} == {np.dtype(np.int64)}
        return split, task.fingerprint(split), tokenizers["tokenizer"].to_dict(), setup.note, arrays

    split, *expected, arrays = made()
    assert expected[0] == hashlib.sha256(json.dumps(split, default=asdict).encode()).hexdigest()
    monkeypatch.setattr(large, "PART", 7)
    monkeypatch.setattr(large, "LARGE", 50)
    split, *found, others = made()
    assert isinstance(split.train, data.LargeText) and found == expected
    assert all(np.array_equal(a, b) for a, b in zip(arrays, others, strict=True))


def test_the_checksum_of_other_data():
    split = data.split_pairs([(f"a {i}", f"é {i}") for i in range(20)])
    as_json = json.dumps({"x": asdict(split), "y": [1, None]}).encode()
    assert Task().fingerprint({"x": split, "y": [1, None]}) == hashlib.sha256(as_json).hexdigest()


def test_lazy_items_are_made_when_asked_for():
    made = []
    lazy = Lazy(lambda place: made.append(place) or place**2, range(1000))
    part = lazy[10::100]
    assert len(lazy) == 1000 and len(part) == 10 and made == []
    assert part[1] == 110**2 and lazy[-1] == 999**2 and made == [110, 999]
    assert list(part[:2]) == [100, 12100]


def test_packed_pairs_are_the_list(rng):
    lengths = rng.integers(1, 9, (30, 2))
    pairs = [(rng.integers(4, 70_000, n).tolist(), rng.integers(4, 9, m).tolist()) for n, m in lengths]
    packed = data.PackedPairs(iter(pairs))
    assert len(packed) == 30 and list(packed) == pairs and packed[-1] == pairs[-1] and packed[3:9:2] == pairs[3:9:2]
    with pytest.raises(IndexError):
        packed[30]
    plain, of_packed = (data.Seq2SeqBatches(some, 4, seed=5) for some in (pairs, packed))
    for step in range(20):
        for a, b in zip(vars(plain.batch(step)).values(), vars(of_packed.batch(step)).values(), strict=True):
            assert np.array_equal(a, b) and a.dtype == b.dtype
    assert len(data.PackedPairs([])) == 0
    for wrong, error in (([([1], [-1])], OverflowError), ([([1], ["a"])], TypeError)):
        with pytest.raises(error):
            data.PackedPairs(wrong)


def test_the_order_of_the_batches_stays():
    """A resumed run needs the batches it would have had: an order that was written down."""
    pairs = [([4 + i] * (1 + i * 7 % 5), [4]) for i in range(23)]
    batches = data.Seq2SeqBatches(pairs, 3, seed=2)
    first = [batches.batch(step).src[:, 0].tolist() for step in (0, 1, 7, 8, 15)]
    assert first == [[22, 18, 20], [21, 6, 15], [14, 17, 4, 19], [6, 18, 13], [16, 11, 25]]
