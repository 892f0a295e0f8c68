"""What a model has seen: white space is folded as in its training texts, and other words are named, by every user."""

import json
from itertools import product

import numpy as np
import pytest
from shared import call

from transformer_np.cli import main
from transformer_np.data import BPETokenizer, CharTokenizer, Seen, WordTokenizer
from transformer_np.tasks.classify import Classifier
from transformer_np.tasks.t5 import TextToText
from transformer_np.tasks.text import TextGenerator
from transformer_np.tasks.translation import Translator

SPELLINGS = [
    " Ana is  tired",
    "Ana is tired ",
    "Ana\u00a0is\ttired\r\n",
    "\ufeffAna is\n\ntired\u2003",
    "Ana is\x0btir\u200bed",
]
PAIRS = [f"{who} is {what}\t{who} está {what}" for who in ("Ana", "Eva", "Ida") for what in ("tired", "glad", "here")]
TINY = "--steps 2 --layers 1 --heads 2 --d-model 8 --d-ff 8 --batch-size 4 -q".split()


@pytest.mark.parametrize("kind", [WordTokenizer, CharTokenizer, BPETokenizer])
def test_texts_in_lines_have_single_spaces(kind):
    texts = ["Ana is tired", "Is Ana here"] * 2
    seen = Seen.of(texts, ["Ana is here"], kind.train(texts))
    assert {seen.fold(text) for text in SPELLINGS} == {"Ana is tired"} and seen.fold(" \n") == ""
    with pytest.raises(TypeError, match="text must be a str, got None"):
        seen.fold(None)
    assert seen.outside("Ana is a  black cat, a cat of 9 ana") == ["a", "black", "cat", "of", "ana"]
    begun = {"Ana is tir": [], "tir ": ["tir"], "tir Ana": ["tir"], "he xy": ["he", "xy"], "xy he": ["xy"], "": []}
    assert {text: seen.outside(text, True) for text in begun} == begun
    assert sorted(seen.words) == ["Ana", "Is", "here", "is", "tired"]
    again = Seen.from_dict(json.loads(json.dumps(seen.to_dict())))
    assert (again.words, again.spaces, again.lowercase) == (seen.words, seen.spaces, seen.lowercase)


def test_a_running_text_keeps_the_white_space_that_it_has():
    text = "One two.\n\nThree\n\n    four, five.\n"
    kinds = CharTokenizer, BPETokenizer
    of_characters, of_pieces = (Seen.of([text], [], kind.train([text]), running=True) for kind in kinds)
    for seen in (of_characters, of_pieces):
        assert seen.fold(text) == text
        assert seen.fold("One\ntwo\tand\n\n\nthree") == "One\ntwo and\n\nthree"
        assert seen.fold("\n\n\n") == seen.fold("\n") == "\n"
    assert of_pieces.fold(" One two ") == "One two"  # a piece begins with its space
    assert of_characters.fold(" One  two ") == " One two "  # a space is a character like others
    wrapped = Seen.of(["One two.\n\nThree."], [], BPETokenizer.train([text]), running=True)
    assert wrapped.fold("One\ntwo.\n \nThree") == "One two.\n\nThree" and wrapped.fold("\n") == "\n\n"
    assert Seen(spaces=None).fold(" a  b ") == " a  b "


def test_words_are_not_listed_where_they_say_little(rng):
    texts = ["".join(rng.choice(list("abcdefgh"), 6)) for _ in range(40)]
    tokenizer = CharTokenizer.train(texts)
    assert Seen.of(texts[:30], texts[30:], tokenizer).words == ()  # most are new in unseen data too
    assert Seen.of(texts[:30], texts[20:30], tokenizer).outside("zzz") == ["zzz"]
    many = ["".join(letters) for letters in product("abcdefgh", repeat=5)]
    assert [len(Seen.of(many[:number], [], tokenizer).words) for number in (20_000, 20_001)] == [20_000, 0]
    lowercase = WordTokenizer.train(["good film"] * 2, lowercase=True)
    assert Seen.of(["good film"], [], lowercase).outside("GOOD Day") == ["day"]


def test_a_wrong_description():
    for wrong in ([], {}, {"words": 1, "spaces": []}, {"words": "", "spaces": ["a"]}):
        with pytest.raises(ValueError, match="is described by words, spaces and lowercase"):
            Seen.from_dict(wrong and {**wrong, "lowercase": False})


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of each kind that reads what users type."""
    folder = tmp_path_factory.mktemp("seen")
    (folder / "pairs.tsv").write_text("\n".join(PAIRS * 2), "utf-8")
    texts = [pair.split("\t")[0] for pair in PAIRS]
    (folder / "labels.tsv").write_text("\n".join(f"{i % 2}\t{text}" for i, text in enumerate(texts * 4)), "utf-8")
    (folder / "text.txt").write_text(" ".join(texts * 9), "utf-8")
    own = {
        "translate": ["--pairs", "pairs.tsv", "--tokens", "bpe", "--vocab-size", "270"],
        "classify": ["--data", "labels.tsv", "--tokens", "char"],
        "gpt": ["--text", "text.txt", "--tokens", "bpe", "--vocab-size", "280", "--block-size", "16"],
        "t5": ["--tasks", "date", "--vocab-size", "300", "--d-head", "4"],
    }  # fmt: skip
    for kind, flags in own.items():
        flags = [str(folder / flag) if "." in flag else flag for flag in flags]
        assert main(["train", kind, *TINY, *flags, "--out", str(folder / kind)]) == 0
    return folder


USES = {  # in Python and on the command line
    "translate": (Translator, ["translate"]), "classify": (Classifier, ["classify"]),
    "t5": (TextToText, ["t5", "--max-len", "4"]),
    "gpt": (TextGenerator, ["generate", "--temperature", "0", "--max-new-tokens", "4"]),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("kind", USES)
def test_every_kind_reads_the_same_text_and_names_new_words(runs, capsys, kind):
    prefix, texts, (Trained, use) = "date: " if kind == "t5" else "", ["Ana is tired", *SPELLINGS], USES[kind]
    encoded = [Trained.load(runs / kind).encode(text) for text in texts]
    assert all(np.array_equal(ids, encoded[0]) for ids in encoded)
    said = [call(capsys, *use, "--model", runs / kind, prefix + text) for text in texts]
    results = [out.removesuffix(f"  {text}\n") for (_, out, _), text in zip(said, texts, strict=True)]
    assert {code for code, _, _ in said} == {0} and len(set(results)) == 1
    _, _, err = call(capsys, *use, "--model", runs / kind, f"{prefix}Ana is a unicorn", f"{prefix}unicorn")
    lines = err.splitlines()
    assert sum("unicorn" in line for line in lines) == 2 and sum(" words: " in line for line in lines) == 1
    _, _, err = call(capsys, *use, "--model", runs / kind, f"{prefix}Ana is tir")
    assert ("tir" in err) == (kind != "gpt")  # which continues the word
    _, out, err = call(capsys, *use, "--model", runs / kind, "--json", f"{prefix}Ana is a unicorn")
    assert "unicorn" in json.loads(out)["unseen"] and err == ""
