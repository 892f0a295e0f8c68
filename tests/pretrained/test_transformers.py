"""The commands beside transformers and sentence-transformers themselves, on folders that these made, and these on
folders that we wrote. Without them (torch 2.13.0, transformers 5) the tests are skipped."""

import json
from contextlib import suppress

import numpy as np
import pytest
from folders import UNKNOWN_FIRST, USUAL, bytewise, wordpiece
from shared import call

from transformer_np import cli
from transformer_np.pretrained import SentenceEncoder, load_any
from transformer_np.tasks.classify import Classifier
from transformer_np.tasks.pretrained_classes import PretrainedClassifier
from transformer_np.tasks.pretrained_text import PretrainedTextGenerator
from transformer_np.tasks.t5 import TextToText
from transformer_np.tasks.text import TextGenerator

why = "compares with transformers, which is not installed"
torch, theirs = pytest.importorskip("torch", reason=why), pytest.importorskip("transformers", reason=why)
tokenizers = pytest.importorskip("tokenizers", reason=why)
pytestmark = [pytest.mark.release, pytest.mark.filterwarnings("ignore")]

TEXTS = ["a dog barks", "zzz not bad", "in london ? a loud cat"]
PAIR = ["zzz not bad", "a dog"]
PROMPTS = ["one two", "não são", "x"]


def write(folder, model, tokenizer, seed=0, **special):
    """A folder of transformers: random weights of size 1, and the tokenizer with the class that has no segments."""
    torch.manual_seed(seed)
    for parameter in model.parameters():
        parameter.data = 0.4 * torch.randn_like(parameter) + (parameter.dim() == 1) * parameter.data
    model.eval().save_pretrained(folder)
    theirs.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    return folder


def marks(words):
    return {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP")} if words else {}


def bert(folder, head, words=USUAL, **settings):
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    sizes |= {"max_position_embeddings": 40, "vocab_size": len(words) + 3}
    model = getattr(theirs, f"BertFor{head}" if head else "BertModel")(theirs.BertConfig(**sizes, **settings))
    return write(folder, model, wordpiece(words), **marks(words))


def again(folder):
    """The folder, and the same as we write it."""
    load_any(folder).save_pretrained(folder.parent / "ours")
    return folder, folder.parent / "ours"


CLASSIFIERS = {
    "one": {"num_labels": 1}, "two": {"num_labels": 2}, "five": {"num_labels": 5},
    "number": {"num_labels": 1, "problem_type": "regression"},
    "several": {"num_labels": 3, "problem_type": "multi_label_classification"},
    "padding elsewhere": {"num_labels": 2, "pad_token_id": 0, "words": UNKNOWN_FIRST},
    "no padding": {"num_labels": 2, "pad_token_id": None, "words": UNKNOWN_FIRST},
    "a name twice": {"num_labels": 3, "id2label": {0: "x", 1: "y", 2: "x"}},
}  # fmt: skip


def said_by(pipe, given):
    """All classes of a pipeline, in their order."""
    return pipe.postprocess(pipe.forward(pipe.preprocess(given)), top_k=None)


@pytest.mark.parametrize("segments", [True, False])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_classes_of_texts_and_of_pairs(tmp_path, kind, segments):
    folder = bert(tmp_path / "theirs", "SequenceClassification", **CLASSIFIERS[kind])
    if segments:
        path = folder / "tokenizer_config.json"
        names = ["input_ids", "token_type_ids", "attention_mask"]
        path.write_text(json.dumps({**json.loads(path.read_text()), "model_input_names": names}))
    expected = None
    for place in again(folder):
        pipe = theirs.pipeline("text-classification", model=str(place))
        inputs = [*TEXTS, {"text": PAIR[0], "text_pair": PAIR[1]}]
        scores = [[row["score"] for row in said_by(pipe, given)] for given in inputs]
        expected = expected or scores
        np.testing.assert_allclose(scores, expected, atol=1e-5)  # transformers says the same of what we wrote
        ours = PretrainedClassifier.load(place)
        found = [list(ours.probabilities(*given).values()) for given in [*((text,) for text in TEXTS), PAIR]]
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_labels_of_tokens(tmp_path):
    folder = bert(tmp_path / "theirs", "TokenClassification", UNKNOWN_FIRST, num_labels=3, pad_token_id=0)
    for place in again(folder):
        pipe = theirs.pipeline("token-classification", model=str(place), ignore_labels=[])
        for text in TEXTS:
            rows = [(row["word"], row["entity"], float(row["score"])) for row in pipe(text)]
            found = PretrainedClassifier.load(place).tokens(text)
            assert [row[:2] for row in found] == [row[:2] for row in rows]
            np.testing.assert_allclose([row[2] for row in found], [row[2] for row in rows], atol=1e-5)


MODES = ["cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", ("cls", "mean")]


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_sentence_vectors(tmp_path, mode, normalized):
    library = pytest.importorskip("sentence_transformers", reason=why)
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    transformer = Transformer(str(bert(tmp_path / "plain", "", UNKNOWN_FIRST, pad_token_id=0)))
    transformer.max_seq_length = 12
    two = [Dense(32, 5)] if isinstance(mode, tuple) else []
    modules = [transformer, Pooling(16, mode), *two, *([Normalize()] if normalized else [])]
    library.SentenceTransformer(modules=modules).save(str(tmp_path / "theirs"))
    sentences = [*TEXTS, "a dog barks in london " * 5]
    SentenceEncoder.load(tmp_path / "theirs").model.save_pretrained(tmp_path / "ours")
    expected = library.SentenceTransformer(str(tmp_path / "theirs"), device="cpu").encode(sentences)
    for place in ("theirs", "ours"):
        found = library.SentenceTransformer(str(tmp_path / place), device="cpu").encode(sentences)
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_allclose(SentenceEncoder.load(tmp_path / place).encode(sentences), expected, atol=1e-5)


SMALL = {
    "vocab_size": 260, "max_position_embeddings": 48, "hidden_size": 16, "num_attention_heads": 4,
    "num_key_value_heads": 2, "num_hidden_layers": 2, "intermediate_size": 24, "eos_token_id": 0, "bos_token_id": None,
}  # fmt: skip
GPT2 = {"vocab_size": 260, "n_positions": 48, "n_embd": 16, "n_head": 2, "n_layer": 2, "eos_token_id": 0}
DECODERS = {
    "GPT2LMHeadModel": ("GPT2Config", GPT2), "LlamaForCausalLM": ("LlamaConfig", SMALL),
    "MistralForCausalLM": ("MistralConfig", {**SMALL, "sliding_window": 4}),
    "Qwen2ForCausalLM": ("Qwen2Config", SMALL),
    "Qwen3ForCausalLM": ("Qwen3Config", {**SMALL, "head_dim": 8, "tie_word_embeddings": True}),
}  # fmt: skip


def written(place, prompt, **how):
    """The ids and the text that transformers writes after a prompt."""
    tokenizer = theirs.AutoTokenizer.from_pretrained(place)
    model = theirs.AutoModelForCausalLM.from_pretrained(place)
    ids = tokenizer(prompt, return_tensors="pt", return_token_type_ids=False)
    ids = model.eval().generate(**ids, max_new_tokens=12, do_sample=False, **how)[0].tolist()
    return ids, tokenizer.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("name", DECODERS)
def test_generated_text_and_where_it_ends(tmp_path, name):
    config, sizes = DECODERS[name]
    model = getattr(theirs, name)(getattr(theirs, config)(**sizes))
    folder = write(tmp_path / "theirs", model, bytewise(), eos_token="<end>")
    long = written(folder, PROMPTS[0])[0]
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = [0, long[-6]], 0
    model.save_pretrained(folder)
    from safetensors.torch import save_model

    with suppress(RuntimeError):  # keeps one of the two names of a tied weight, which need not be the usual one
        save_model(model, str(folder / "model.safetensors"))
    for place in again(folder):
        generator = PretrainedTextGenerator.load(place)
        for prompt in PROMPTS:
            assert generator.generate(prompt, 12, temperature=0) == written(place, prompt)[1]
    assert len(written(folder, PROMPTS[0])[0]) < len(long)


@pytest.mark.parametrize(
    "settings", [{}, {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}, {"pad_token_id": 1}]
)
def test_t5(tmp_path, settings):
    sizes = {"vocab_size": 20, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, "eos_token_id": 3}
    config = theirs.T5Config(**{"decoder_start_token_id": 0, "pad_token_id": 0, **sizes, **settings})
    folder = write(tmp_path / "theirs", theirs.T5ForConditionalGeneration(config), wordpiece(), **marks(USUAL))
    for place in again(folder):
        tokenizer = theirs.AutoTokenizer.from_pretrained(place)
        model = theirs.T5ForConditionalGeneration.from_pretrained(place).eval()
        for text in TEXTS:
            ids = tokenizer(text, return_tensors="pt", return_token_type_ids=False)
            expected = tokenizer.decode(model.generate(**ids, max_new_tokens=9, do_sample=False)[0], True)
            assert TextToText.from_pretrained(place).answer(text, max_len=9) == expected


@pytest.mark.parametrize("tokens", ["char", "bpe"])
def test_a_merged_run_of_our_own(here, capsys, tokens):
    """Its tokenizer gives the same ids in transformers, and its model writes the same text."""
    texts = ["São três pães, não é?", "don't x's\u00a0 9 99٣ ²Ⅳ½ _x_", "a\n\n b\t 漢字 e\u0301 \x1c\x85 zzz"]
    (here / "text.txt").write_text("\n".join(texts) * 40, encoding="utf-8")
    sizes = "--steps 9 --layers 1 --d-model 16 --heads 2 -q".split()
    options = ["--vocab-size", "290"] if tokens == "bpe" else []
    gpt = ["train", "gpt", "--text", "text.txt", "--tokens", tokens, "--block-size", "16", *options, *sizes]
    assert cli.main([*gpt, "--out", "run"]) == 0
    assert call(capsys, "merge", "--model", "run", "--out", "merged", "--pretrained")[0] == 0
    generator, tokenizer = TextGenerator.load("run"), theirs.AutoTokenizer.from_pretrained("merged")
    for text in texts:
        ids = generator.tokenizer.encode(text)
        assert tokenizer(text)["input_ids"] == ids and tokenizer.decode(ids) == generator.tokenizer.decode(ids)
    blocked = [[i] for i in range(4)]  # ours never writes a special token
    assert written("merged", "São", bad_words_ids=blocked)[1] == generator.generate("São", 12, temperature=0)
    if tokens == "char":
        train = ["train", "classify", "--tokens", "char", "--d-ff", "8", *sizes, "--out", "classes"]
        assert cli.main(train) == 0
        assert call(capsys, "merge", "--model", "classes", "--out", "folder", "--pretrained")[0] == 0
        pipe = theirs.pipeline("text-classification", model="folder")
        for text in ("the film was dull", "GOOD é"):
            expected = {row["label"]: row["score"] for row in said_by(pipe, text)}
            for classifier in (Classifier.load("classes"), PretrainedClassifier.load("folder")):
                assert classifier.probabilities(text) == pytest.approx(expected, abs=1e-5)
