"""Tokenizers: how text is cut, numbered and put together again."""

import json
import unicodedata

import numpy as np
import pytest

from transformer_np.data import BOS, EOS, PAD, UNK, BPETokenizer, CharTokenizer, Tokenizer, WordTokenizer

KINDS = WordTokenizer, CharTokenizer
SPECIAL = ["<pad>", "<bos>", "<eos>", "<unk>"]


def words(*texts, **options):
    return WordTokenizer.train(texts, **{"min_count": 1, **options})


def test_special_tokens_come_first_are_left_out_and_cannot_be_typed():
    assert (PAD, BOS, EOS, UNK) == (0, 1, 2, 3)
    assert words("a").vocabulary[:4] == CharTokenizer.train(["a"]).vocabulary[:4] == SPECIAL
    assert words("a b").encode("b a") == [5, 4] and words("a b").encode("") == []  # none is added
    ids = np.array([BOS, 4, UNK, 5, EOS, PAD])
    assert words("a b").decode(ids) == "a <unk> b"  # but the unknown is shown
    assert CharTokenizer.train(["ab"]).decode(ids.tolist()) == "a<unk>b"
    text = "<pad> <bos> <eos> <unk>"
    for tokenizer in (words(text), CharTokenizer.train([text])):
        assert min(tokenizer.encode(text)) > UNK
    assert set(words("a").encode(text)) == {UNK}


@pytest.mark.parametrize("texts", [["c b a c", "b c d"], ["d b", "c c c b a"]])
def test_vocabulary_is_sorted_by_count_then_alphabetically(texts):
    assert WordTokenizer.train(texts, min_count=1).vocabulary[4:] == ["c", "b", "a", "d"]
    assert CharTokenizer.train(texts).vocabulary[4:] == [" ", "c", "b", "a", "d"]


def test_the_smallest_count_and_the_largest_vocabulary():
    assert WordTokenizer.train(["a a b"]).vocabulary[4:] == ["a"]
    assert CharTokenizer.train(["aab"]).vocabulary[4:] == ["a", "b"]
    assert words("a a a b b c", max_size=6).vocabulary == [*SPECIAL, "a", "b"]


@pytest.mark.parametrize(
    "text, pieces",
    [
        ("na segunda-feira, hoje.", ["na", "segunda-feira", ",", "hoje", "."]),
        ("don't d'água d’água", ["don't", "d'água", "d’água"]), ("Do they? Yes!", ["Do", "they", "?", "Yes", "!"]),
        ("wait...", ["wait", ".", ".", "."]),
        ("the students' -x- 3rd", ["the", "students", "‿'", "-‿", "x", "‿-", "3rd"]),
        ("snake_case", ["snake", "‿_‿", "case"]), ("14:30, 629.313", ["14", ":‿", "30", ",", "629", ".‿", "313"]),
        ('a 6" B "c" d', ["a", "6", '‿"', "B", '"', "c", '"', "d"]), ("no , x‿y", ["no", " ,", "x", "‿‿‿", "y"]),
        ("नमस्ते می‌خواهم", ["नमस्ते", "می‌خواهم"]), (" \t\n", []),
    ],
)  # fmt: skip
def test_words_are_cut(text, pieces):
    tokenizer = words(text, "something")
    assert [tokenizer.token(i) for i in tokenizer.encode(text)] == pieces


@pytest.mark.parametrize(
    "text",
    [
        "Lucas vai viajar em dezembro", "Sim, claro! Você vem? Não; talvez: amanhã.",
        "Ela (a professora) [disse] “não” ‘sim’ «talvez» e saiu…", '"Sim", disse ele, "e não".', "¿Qué? ¡Sí! 5%",
        "espera...", "the U.S. at 14:30 for $629.313 (or 5 %), and/or the boys' toys",
        'He\'s 6\'2" tall. "Really?" \'Yes\', "I said " no', "l'été : « où ? » 1. FC Köln — x--y http://a.b/c?d=1&e",
        "我喜欢苹果，你呢？ नमस्ते। می‌خواهم؟ 👍🏽 ‿ a‿b",
    ],
)  # fmt: skip
def test_words_come_back_with_the_same_spaces(text):
    tokenizer = words(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.long
def test_any_text_comes_back_up_to_runs_of_white_space():
    rng = np.random.default_rng(0)
    signs = [*"\"''‿‿  \n-.,:;!?()[]«»“”%$_/1a漢。👍\u200d\u0301\x1f", "é", "e\u0301", "word", "\U0001f3fd"]
    texts = ["".join(signs[i] for i in rng.integers(len(signs), size=rng.integers(14))) for _ in range(4000)]
    texts += ["".join(map(chr, rng.integers(1, 0x3000, 12))) for _ in range(1000)]
    wrong = [text for text in texts if WordTokenizer.join(WordTokenizer.cut(text)) != " ".join(text.split())]
    assert wrong == []


def test_a_mark_is_known_with_all_spaces_around_it():
    """So vocabularies from before there were notes encode as they did."""
    tokenizer = WordTokenizer([*SPECIAL, ".", ":", "14", "30", "U", "S", "‿'", "'‿"])
    assert [tokenizer.token(i) for i in tokenizer.encode("U.S. 14:30 S ' ")] == [*"U.S.", "14", ":", "30", "S", "‿'"]
    assert tokenizer.unknown("U.S. / and/or 'U") == ["/", "and", "or"]
    assert tokenizer.pieces("U.S. and/or") == [*"U.S.", "and", "/", "or"]


def test_accents_are_one_spelling():
    composed, decomposed = (unicodedata.normalize(form, "amanhã você") for form in ("NFC", "NFD"))
    assert composed != decomposed
    for kind in (WordTokenizer, CharTokenizer):
        tokenizer = kind.train([decomposed], min_count=1)
        assert tokenizer.vocabulary == kind.train([composed], min_count=1).vocabulary
        assert tokenizer.encode(composed) == tokenizer.encode(decomposed)
        assert tokenizer.unknown(decomposed) == []


def test_lowercase():
    tokenizer = words("Ana ANA ana Lucas", lowercase=True)
    assert tokenizer.vocabulary[4:] == ["ana", "lucas"]
    assert tokenizer.decode(tokenizer.encode("LUCAS Ana")) == "lucas ana"
    assert len(set(words("Ana ANA ana").vocabulary[4:])) == 3


def test_unknown_lists_pieces_as_typed_once_and_in_order():
    tokenizer = words("Lucas will travel", lowercase=True)
    assert tokenizer.unknown("Zebras will TRAVEL, with Apes, with lucas") == ["Zebras", ",", "with", "Apes"]
    assert tokenizer.encode("Zebras will") == [UNK, tokenizer.encode("will")[0]]
    assert CharTokenizer.train(["ab"]).unknown("aXbYX") == ["X", "Y"]


@pytest.mark.parametrize(("tokenizer", "last"), [(words("a"), 4), (BPETokenizer([]), 259)])
def test_an_id_out_of_range_is_an_error(tokenizer, last):
    tokenizer.decode([tokenizer.encode(tokenizer.token(last))[0], last])
    for i in (-1, last + 1):
        for method in (tokenizer.token, lambda i: tokenizer.decode([4, i])):
            with pytest.raises(ValueError, match=f"0 … {last}, got {i}"):
                method(i)
    for wrong in ([[4]], np.array([[4, last]])):  # such as the result of generate, which is a batch
        with pytest.raises(ValueError, match=r"ids must have the one axis \(length,\), got shape \(1, "):
            tokenizer.decode(wrong)
    with pytest.raises(TypeError, match=r"text must be a str, got \['a'\]"):
        tokenizer.encode(["a"])
    for texts in (["a", 1], None, 3, "a"):
        with pytest.raises(TypeError, match="texts must be a list of strings, got"):
            type(tokenizer).train(texts)


@pytest.mark.parametrize(
    "kind, texts, options, message",
    [
        (WordTokenizer, [], {}, "no text"),
        (WordTokenizer, ["", "  "], {}, "no text"),
        (WordTokenizer, ["a b b"], {"min_count": 3}, "min_count is 3, but no token occurs more than 2 times"),
        (WordTokenizer, ["a b c"], {"min_count": 2}, "min_count is 2, but no token occurs more than once: is the text"),
        (WordTokenizer, ["a"], {"max_size": 4}, "max_size must be at least 5, got 4"),
        (BPETokenizer, [], {}, "no text"),
        (BPETokenizer, [""], {}, "no text"),
        (BPETokenizer, ["a"], {"max_size": 259}, "max_size must be at least 260, got 259"),
    ],
)
def test_training_errors(kind, texts, options, message):
    with pytest.raises(ValueError, match=message):
        kind.train(texts, **options)
    with pytest.raises(TypeError, match=r"single|a list of strings"):
        kind.train("a b c")


@pytest.mark.parametrize(
    "tokenizer",
    [
        *(kind.train(["Não, Ana!"], min_count=1, lowercase=low) for kind in KINDS for low in (False, True)),
        BPETokenizer.train(["Não, Ana! Não"], max_size=270),
    ],
)
def test_a_tokenizer_survives_json(tokenizer):
    copy = Tokenizer.from_dict(json.loads(json.dumps(tokenizer.to_dict())))
    assert type(copy) is type(tokenizer) and copy.to_dict() == tokenizer.to_dict()
    assert copy.encode("ana, Não?") == tokenizer.encode("ana, Não?")
    assert repr(copy) == f"{type(tokenizer).__name__} of {len(tokenizer)} tokens"


GOOD = {"kind": "word", "vocabulary": [*SPECIAL, "a"], "lowercase": False}


@pytest.mark.parametrize(
    "data, message",
    [
        (["word"], "a dict, got list"),
        ({k: GOOD[k] for k in ("vocabulary", "lowercase")}, "'char' or 'word'.* got None"),
        ({**GOOD, "kind": "morse"}, "'char' or 'word'.* got 'morse'"),
        ({**GOOD, "kind": ["word"]}, "'char' or 'word'.* got \\['word'\\]"),
        ({k: GOOD[k] for k in ("kind", "lowercase")}, "got \\['kind', 'lowercase'\\]"),
        ({**GOOD, "merges": []}, "'merges'"),
        ({**GOOD, "lowercase": 1}, "lowercase must be true or false, got 1"),
        ({**GOOD, "vocabulary": "abcde"}, "a list of strings, got str"),
        ({**GOOD, "vocabulary": ["a", *SPECIAL]}, "must begin with"),
        ({**GOOD, "vocabulary": [*SPECIAL, "a", 7]}, "entry 5 is 7"),
        ({**GOOD, "vocabulary": [*SPECIAL, ""]}, "entry 4 is ''"),
        ({**GOOD, "vocabulary": [*SPECIAL, "a", "b", "a"]}, "'a' twice, the second time as entry 6"),
        ({"kind": "bpe"}, "a bpe tokenizer is described by"),
        ({"kind": "bpe", "merges": "ab"}, "merges must be a list of pairs of ids, got str"),
        ({"kind": "bpe", "merges": [[4, 5], [4]]}, r"entry 1 is \[4\]"),
        ({"kind": "bpe", "merges": [[4, "b"]]}, "entry 0"),
        ({"kind": "bpe", "merges": [[4, True]]}, "entry 0"),
        ({"kind": "bpe", "merges": [[4, 260]]}, "ids of merge 0 must lie in 4 … 259"),
        ({"kind": "bpe", "merges": [[3, 5]]}, "ids of merge 0 must lie in 4 … 259"),
        ({"kind": "bpe", "merges": [[4, 5], [6, 7], [4, 5]]}, r"\[4, 5\] twice, the second time as entry 2"),
    ],
)
def test_a_wrong_description_is_an_error(data, message):
    assert Tokenizer.from_dict(GOOD).encode("a") == [4]
    with pytest.raises(ValueError, match=message):
        Tokenizer.from_dict(data)


def test_a_kind_only_takes_its_own_description():
    assert len(WordTokenizer.from_dict(GOOD)) == 5
    with pytest.raises(ValueError, match="must be 'char', got 'word'"):
        CharTokenizer.from_dict(GOOD)
