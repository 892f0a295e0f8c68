"""Byte-level BPE: what is merged, that no text is lost, and that training looks only where it must."""

import pytest

from transformer_np.data import BPETokenizer, bpe, documentation_text

TEXT = "low low low low low lower lower newest newest newest newest newest newest widest widest widest"


def ids_of(text):
    return [4 + byte for byte in text.encode()]


def test_rare_pairs_are_not_merged():
    assert BPETokenizer.train(["abc"]).merges == []
    assert len(BPETokenizer.train(["abc"], min_count=1)) == 262
    assert len(BPETokenizer.train([TEXT], max_size=262)) == 262
    assert len(BPETokenizer.train([TEXT], max_size=260)) == 260


def test_what_merges_need_and_give(monkeypatch):
    """A merge looks only at the words that have the pair, and no token reaches over the end of a word. Else training is
    quadratic: ten times the text with as many merges again would take a hundred times as long. A text repeats its
    words: most of it is looked up."""
    looked_at, merge, text = [], bpe._merge, documentation_text()[:50_000]
    with monkeypatch.context() as patch:
        patch.setattr(bpe, "_merge", lambda word, *how: looked_at.append(word) or merge(word, *how))
        tokenizer = BPETokenizer.train([text], max_size=700)
    assert len(looked_at) < 0.1 * len(tokenizer.merges) * len(set(BPETokenizer.cut(text)))
    tokens = [tokenizer.decode([i]) for i in range(260, 700)]
    whole = [token for token in tokens if "\ufffd" not in token]  # the others are a part of a character
    assert len(whole) > 400 and all(len(BPETokenizer.cut(token)) == 1 for token in whole)
    encoded, apply = [], bpe.apply_merges
    monkeypatch.setattr(bpe, "apply_merges", lambda ids, merges: encoded.append(ids) or apply(ids, merges))
    assert tokenizer.encode(text) == tokenizer.encode(text)
    assert sorted(encoded) == sorted(ids_of(piece) for piece in set(BPETokenizer.cut(text)))


@pytest.mark.parametrize(
    "text, pieces",
    [
        ("Hello world", ["Hello", " world"]), ("it's we'll don't", ["it", "'s", " we", "'ll", " don", "'t"]),
        ("a  b\n\n c", ["a", " ", " b", "\n\n", " c"]), ("x = 12.5e3", ["x", " =", " 12", ".", "5", "e", "3"]),
        ("__init__ (a)", ["__", "init", "__", " (", "a", ")"]), ("ação 漢字 é!", ["ação", " 漢字", " é", "!"]),
        ("end \n", ["end", " \n"]), ("a" * 70 + " " * 70 + "b", ["a" * 64, "a" * 6, " " * 64, " " * 5, " b"]),
        ("", []),
    ],
)  # fmt: skip
def test_the_pieces(text, pieces):
    assert BPETokenizer.cut(text) == pieces and BPETokenizer.join(pieces) == text


@pytest.mark.long
def test_a_long_text_becomes_short():
    text = documentation_text()
    tokenizer = BPETokenizer.train([text], max_size=1000)
    assert len(tokenizer) == 1000
    ids = tokenizer.encode(text)
    assert len(ids) < 0.45 * len(text) and tokenizer.decode(ids) == text


@pytest.mark.long
@pytest.mark.parametrize("every", [17, pytest.param(1, marks=pytest.mark.release)])
def test_every_character_there_is_comes_back(every):
    tokenizer = BPETokenizer.train([TEXT, "é e\u0301 ação"])
    text = "".join(chr(i) for i in range(0, 0x110000, every) if not 0xD800 <= i < 0xE000)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize(
    "text", ["", " ", "\n\t  \r\n", "e\u0301 é", "  two  spaces ", "👩‍👩‍👧 🇧🇷", "\0\x1f\x7f\x85\ufeff", "<pad><eos>"]
)
def test_nothing_is_changed_or_unknown(text):
    tokenizer = BPETokenizer.train([TEXT])
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text and tokenizer.unknown(text) == []
    assert all(i > 3 for i in ids)


def test_bytes_that_are_no_character():
    tokenizer = BPETokenizer.train([TEXT])
    first, second = tokenizer.encode("é")
    assert tokenizer.decode([first]) == "\ufffd" and tokenizer.decode([first, second]) == "é"
    assert tokenizer.token(first) == "\\xc3"
    assert tokenizer.decode([0, first, 1, second, 2, 3]) == "é"  # special tokens are left out
    with pytest.raises(ValueError, match=r"'\\ud800' is half of a surrogate pair"):
        tokenizer.encode("a \ud800")


def test_merges_that_double_are_refused_before_they_fill_the_memory():
    doubling = [[100, 100], *([260 + i, 260 + i] for i in range(30))]  # 2³¹ bytes from less than a kilobyte
    with pytest.raises(ValueError, match="spells a token of more than 260 bytes, longer than any piece"):
        BPETokenizer(doubling)
    assert len(BPETokenizer(doubling[:8])) == 268
