"""Pretrained folders as a whole: what each command says of each kind, beside what the model alone says."""

import json
import re

import numpy as np
import pytest
from folders import UNKNOWN_FIRST, USUAL, bytewise, wordpiece, write
from safetensors.numpy import load_file, save_file
from shared import call, done, fails, stdin

from transformer_np import cli
from transformer_np.data import BOS, EOS
from transformer_np.decoding import sampling_distribution
from transformer_np.models import GPT, T5, Bert, BertConfig, GPTConfig, Llama, LlamaConfig, T5Config
from transformer_np.models.layouts.folder import load_any
from transformer_np.pretrained import PretrainedFolder, PretrainedTokenizer, SentenceEncoder
from transformer_np.tasks import pretrained_classes, runs
from transformer_np.tasks.mlm import MLMTask
from transformer_np.tasks.pretrained_classes import PretrainedClassifier
from transformer_np.tasks.pretrained_text import PretrainedTextGenerator
from transformer_np.tasks.t5 import TextToText
from transformer_np.tasks.text import TextGenerator
from transformer_np.training import load_model

tokenizers = pytest.importorskip("tokenizers", reason="tokenizer.json needs the tokenizers library")


def bert(**config):
    return Bert(BertConfig(len(USUAL), 24, 12, 3, 2, 10, **{"mlm_head": False, **config}))


def hidden_of(folder, ids, segments):
    """The hidden states of one text (S, D), as the model alone gives them, and a function for a linear map of the file.
    That a BERT computes what it should: test_layouts.py."""
    tensors = load_file(folder / "model.safetensors")
    t = {name.removeprefix("bert."): values.astype(float) for name, values in tensors.items()}
    ids = np.array([ids])
    (hidden,) = load_any(folder, "float64")(ids, segments=np.array([segments]), padding=np.zeros(ids.shape, bool))
    return hidden, lambda x, name: x @ t[f"{name}.weight"].T + t[f"{name}.bias"]


def said(capsys, *arguments):
    code, out, err = call(capsys, *arguments)
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()], err


# --- classes ---------------------------------------------------------------------------------------------------------

KINDS = {  # the classes, problem_type, and what is made of the logits
    "one label": (1, None, lambda z: 1 / (1 + np.exp(-z))),
    "one of two": (2, None, lambda z: np.exp(z) / np.exp(z).sum()),
    "one of three": (3, "single_label_classification", lambda z: np.exp(z) / np.exp(z).sum()),
    "several": (3, "multi_label_classification", lambda z: 1 / (1 + np.exp(-z))),
    "a number": (1, "regression", lambda z: z),
    "two numbers": (2, "regression", lambda z: z),
}


@pytest.mark.parametrize("words", [USUAL, UNKNOWN_FIRST], ids=["usual", "unknown first"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_classifier_says(tmp_path, capsys, kind, words):
    classes, problem, outcome = KINDS[kind]
    folder = write(tmp_path / "f", bert(num_classes=classes), wordpiece(words), 3, {"problem_type": problem})
    texts, pair = ["a dog zzz barks", "not bad"], ["not zzz", "a loud dog ?"]
    found, _ = said(capsys, "classify", "--pretrained", folder, "--json", *texts)
    paired, _ = said(capsys, "classify", "--pretrained", folder, "--json", "--pair", *pair)
    pieces = [["a", "dog", "[UNK]", "bark", "##s"], ["not", "bad"], ["not", "[UNK]", "[SEP]", "a", "loud", "dog", "?"]]
    for answer, tokens in zip(found + paired, pieces, strict=True):
        ids = [words.index(token) for token in ["[CLS]", *tokens, "[SEP]"]]
        first = tokens.index("[SEP]") + 2 if "[SEP]" in tokens else len(ids)
        hidden, linear = hidden_of(folder, ids, [int(i >= first) for i in range(len(ids))])
        expected = outcome(linear(np.tanh(linear(hidden[0], "pooler.dense")), "classifier"))
        values = answer["values" if problem == "regression" else "probabilities"]
        np.testing.assert_allclose(list(values.values()), expected, atol=1e-5)
        assert answer["label"] == f"LABEL_{expected.argmax()}" and answer["tokens_left_out"] == 0
    assert PretrainedClassifier.load(folder).probabilities(texts[0]) == list(found[0].values())[3]
    line = call(capsys, "classify", "--pretrained", folder, texts[0])[1]
    assert ("%" in line) == (problem != "regression") and line.endswith(f"  {texts[0]}\n")


def test_pairs_on_standard_input_and_what_is_no_pair(tmp_path, capsys, monkeypatch):
    folder = write(tmp_path / "f", bert(num_classes=2), wordpiece())
    given = said(capsys, "classify", "--pretrained", folder, "--json", "--pair", "a dog", "a cat")[0]
    stdin(monkeypatch, b"a dog\ta cat\n")
    assert said(capsys, "classify", "--pretrained", folder, "--json", "--pair")[0] == given
    for texts, message in ((["a"], "the texts two by two, got 1"), (["a", ""], "the text is empty")):
        assert message in fails(capsys, "classify", "--pretrained", folder, "--pair", *texts)


def test_without_segments_if_the_tokenizer_has_none(tmp_path):
    """transformers gives a model the segments only if the class of its tokenizer has them."""
    texts = ("a dog", "a cat")
    found = []
    for settings in ({}, {"tokenizer_class": "PreTrainedTokenizerFast"}, {"model_input_names": ["input_ids"]}):
        write(tmp_path / "f", bert(num_classes=2), wordpiece(), tokenizer_config=settings)
        found.append(PretrainedFolder(tmp_path / "f").read(*texts).segments)
    assert found == [[0] * 4 + [1] * 3, [0] * 7, [0] * 7]


def test_settings_of_the_tokenizer_beside_it_count_more(tmp_path):
    write(tmp_path / "f", bert(), wordpiece([*USUAL, "Dog"][: len(USUAL)]), tokenizer_config={"do_lower_case": False})
    tokenizer = PretrainedTokenizer(tmp_path / "f")
    assert tokenizer.tokens("a dog Dog") == ["[CLS]", "a", "dog", "[UNK]", "[SEP]"]
    again = PretrainedTokenizer(text=tokenizer.to_dict()["json"])  # as a run stores it
    assert again.encode("a dog Dog") == tokenizer.encode("a dog Dog")
    (tmp_path / "f" / "tokenizer_config.json").write_text('{"do_lower_case": 3, "model_max_length": 5}')
    with pytest.raises(ValueError, match=r"tokenizer_config\.json: lowercase must be true or false, got 3"):
        PretrainedTokenizer(tmp_path / "f")


def test_labels_with_the_same_name_are_kept_apart(tmp_path, capsys):
    names = {"id2label": {"0": "bad", "1": "good", "2": "bad"}}
    folder = write(tmp_path / "f", bert(num_classes=3), wordpiece(), settings=names)
    (found,), _ = said(capsys, "classify", "--pretrained", folder, "--json", "a dog")
    assert list(found["probabilities"]) == ["bad (0)", "good", "bad (2)"]
    assert sum(found["probabilities"].values()) == pytest.approx(1)
    load_any(folder).save_pretrained(tmp_path / "g")
    assert json.loads((tmp_path / "g" / "config.json").read_text())["id2label"] == names["id2label"]


def test_a_head_for_choices_and_an_unknown_problem_are_refused_by_name(tmp_path, capsys):
    settings = {"architectures": ["BertForMultipleChoice"]}
    folder = write(tmp_path / "f", bert(num_classes=1), wordpiece(), settings=settings)
    with pytest.warns(UserWarning, match=r"ignored classifier\.bias, classifier\.weight: the model here has no head"):
        message = fails(capsys, "classify", "--pretrained", folder, "a")
    assert "holds a BERT without a head for a task; train one with `train classify --pretrained`" in message
    write(folder, bert(num_classes=2), wordpiece(), settings={"problem_type": "ranking"})
    message = fails(capsys, "classify", "--pretrained", folder, "a")
    assert "problem_type is 'ranking', which is not supported; supported are single_label" in message


def test_what_is_left_out_is_told_everywhere(tmp_path, capsys):
    """The model reads 24 tokens, of a text of 80 with [CLS] and [SEP], and with a question of two words and [SEP]."""
    long, note = "a dog barks " * 20, "the text is too long for the model: its last {} tokens are ignored\n"
    heads = {"num_classes": 2}, {"token_classes": 2, "pooler": False}, {"span_head": True, "pooler": False}
    for head, count in zip(heads, (82 - 24, 82 - 24, 85 - 24), strict=True):
        folder = write(tmp_path / "f", bert(**head), wordpiece())
        question = ["--question", "where ?"] if "span_head" in head else []
        (found,), _ = said(capsys, "classify", "--pretrained", folder, "--json", *question, long)
        assert found["tokens_left_out"] == count
        assert call(capsys, "classify", "--pretrained", folder, *question, long)[2] == note.format(count)
    folder = write(tmp_path / "s", bert(), wordpiece())
    (found,), err = said(capsys, "embed", "--model", folder, "--json", "a", long)
    assert found["tokens_left_out"] == [0, 82 - 24] and err.startswith("sentence 2 is too long")


# --- tokens and answers ----------------------------------------------------------------------------------------------


def test_labels_of_tokens_with_padding_at_a_token_of_the_text(tmp_path, capsys):
    folder = write(tmp_path / "f", bert(token_classes=3, pooler=False), wordpiece(UNKNOWN_FIRST), 5)
    ids = [UNKNOWN_FIRST.index(token) for token in ("[CLS]", "a", "[UNK]", "bark", "##s", "[SEP]")]
    hidden, linear = hidden_of(folder, ids, [0] * 6)
    z = np.exp(linear(hidden[1:-1], "classifier"))
    expected = z / z.sum(axis=1, keepdims=True)
    found = PretrainedClassifier.load(folder).tokens("a zzz barks")
    assert [token for token, *_ in found] == ["a", "zzz", "bark", "##s"]  # an unknown piece as it was typed
    assert [label for _, label, _ in found] == [f"LABEL_{i}" for i in expected.argmax(axis=1)]
    np.testing.assert_allclose([p for *_, p in found], expected.max(axis=1), atol=1e-5)
    ask = ("classify", "--pretrained", folder)
    lines = done(capsys, *ask, "a zzz barks", "cat").splitlines()
    assert lines[:4] == [f"{label} {p:.1%}  {token}" for token, label, p in found] and len(lines) == 5
    (shown,), _ = said(capsys, *ask, "--json", "a zzz barks")
    assert [tuple(row.values()) for row in shown["tokens"]] == found and shown["text"] == "a zzz barks"
    assert "answers no questions" in fails(capsys, *ask, "--question", "where ?", "a dog")


@pytest.mark.parametrize("seed", range(6))
def test_answers_and_no_answer(tmp_path, capsys, seed):
    """By brute force; half of the seeds have a text without an answer."""
    folder = write(tmp_path / "f", bert(span_head=True, pooler=False), wordpiece(), seed)
    text = "a dog barks in london"
    tokens = ["[CLS]", "where", "?", "[SEP]", "a", "dog", "bark", "##s", "in", "london", "[SEP]"]
    hidden, linear = hidden_of(folder, [USUAL.index(token) for token in tokens], [0] * 4 + [1] * 7)
    scores = np.exp(3 * linear(hidden, "qa_outputs"))
    values = load_file(folder / "model.safetensors")
    save_file({n: 3 * v if n.startswith("qa_outputs") else v for n, v in values.items()}, folder / "model.safetensors")
    starts, ends = (scores / scores[[0, 4, 5, 6, 7, 8, 9]].sum(axis=0)).T
    spans = {(s, e): starts[s] * ends[e] for s in range(4, 10) for e in range(s, 10)}
    best, none = max(spans, key=spans.get), starts[0] * ends[0]
    words = [(0, 1), (2, 5), (6, 11), (6, 11), (12, 14), (15, 21)]  # "barks" is never cut
    span = text[words[best[0] - 4][0] : words[best[1] - 4][1]]
    (found,), _ = said(capsys, "classify", "--pretrained", folder, "--json", "--question", "where ?", text)
    assert found["best_span"]["answer"] == span
    assert found["best_span"]["probability"] == pytest.approx(spans[best], abs=1e-5)
    assert found["no_answer"] == pytest.approx(none, abs=1e-5)
    answer, p = PretrainedClassifier.load(folder).answer("where ?", text)
    assert (answer, p) == ("" if none > spans[best] else span, pytest.approx(max(none, spans[best]), abs=1e-5))
    shown = call(capsys, "classify", "--pretrained", folder, "--question", "where ?", text)[1]
    assert shown == f"{p:6.1%}  {answer or 'no answer'}\n"


def test_an_answer_ends_after_it_begins_and_is_short(tmp_path, capsys, monkeypatch):
    folder = write(tmp_path / "f", bert(span_head=True, pooler=False), wordpiece())
    classifier = PretrainedClassifier.load(folder)
    for given, message in ((("a cat", ""), "text is empty"), (("a " * 30, "a dog"), "no room for the second in 24")):
        with pytest.raises(ValueError, match=message):
            classifier.answer(*given)
    assert "needs --question" in fails(capsys, "classify", "--pretrained", folder, "a dog")
    scores = np.zeros((1, 10, 2))  # [CLS] a cat [SEP], five words, [SEP]
    scores[0, [8, 5], 0] = 9, 8  # the best beginning lies behind the best end
    scores[0, [4, 7], 1] = 9, 8
    monkeypatch.setattr(classifier.model, "span_scores", lambda ids, padding, segments: scores)
    assert classifier.answer("a cat", "dog cat not bad loud")[0] == "cat not bad"
    monkeypatch.setattr(pretrained_classes, "LONGEST_ANSWER", 2)
    assert len(classifier.answer("a cat", "dog cat not bad loud")[0].split()) <= 2


# --- sentences -------------------------------------------------------------------------------------------------------

MODES = {
    "cls": lambda h: h[0],
    "mean": lambda h: h.mean(axis=0),
    "max": lambda h: h.max(axis=0),
    "mean_sqrt_len_tokens": lambda h: h.sum(axis=0) / len(h) ** 0.5,
    "weightedmean": lambda h: np.arange(1, len(h) + 1) @ h / np.arange(1, len(h) + 1).sum(),
    "lasttoken": lambda h: h[-1],
}


def listed(*kinds):
    names = ["", *(f"{i}_{kind}" for i, kind in enumerate(kinds, 1))]
    return [{"idx": i, "path": path, "type": f"x.y.{path[2:] or 'Transformer'}"} for i, path in enumerate(names)]


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_each_pooling(tmp_path, mode, normalized):
    """In the form of old files and of new ones, in a batch of different lengths."""
    old = {"pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max", "pooling_mode_mean_tokens": "mean"}
    old |= {f"pooling_mode_{name}": name for name in ("mean_sqrt_len_tokens", "lasttoken")}
    old["pooling_mode_weightedmean_tokens"] = "weightedmean"
    kinds = ("Pooling", "Normalize") if normalized else ("Pooling",)
    sentences = {"a zzz dog": ["a", "[UNK]", "dog"], "not bad ? a loud cat": ["not", "bad", "?", "a", "loud", "cat"]}
    expected = []
    for form in ({key: name == mode for key, name in old.items()}, {"pooling_mode": mode}):
        files = {"modules": listed(*kinds), "1_Pooling__config": form}
        folder = write(tmp_path / "f", bert(), wordpiece(UNKNOWN_FIRST), **files)
        for tokens in sentences.values():
            ids = [UNKNOWN_FIRST.index(token) for token in ["[CLS]", *tokens, "[SEP]"]]
            vector = MODES[mode](hidden_of(folder, ids, [0] * len(ids))[0])
            expected.append(vector / np.linalg.norm(vector) if normalized else vector)
        np.testing.assert_allclose(SentenceEncoder.load(folder).encode(list(sentences)), expected, atol=2e-5)
        expected.clear()


def test_two_poolings_a_dense_layer_a_prompt_and_lower_case(tmp_path, rng):
    dense = {"in_features": 24, "out_features": 5, "activation_function": "torch.nn.modules.activation.Tanh"}
    folder = write(
        tmp_path / "f", bert(), wordpiece(), modules=listed("Pooling", "Dense", "Dropout"),
        sentence_bert_config={"max_seq_length": 6, "do_lower_case": True},
        config_sentence_transformers={"prompts": {"query": "not "}, "default_prompt_name": "query"},
        **{"1_Pooling__config": {"pooling_mode": ["cls", "max"]}, "2_Dense__config": dense},
    )  # fmt: skip
    w, b = rng.normal(size=(5, 24)).astype("float32"), rng.normal(size=5).astype("float32")
    save_file({"linear.weight": w, "linear.bias": b}, folder / "2_Dense" / "model.safetensors")
    ids = [USUAL.index(token) for token in ("[CLS]", "not", "a", "dog", "bark", "[SEP]")]  # the end is cut off
    hidden = hidden_of(folder, ids, [0] * 6)[0]
    expected = np.tanh(w @ np.concatenate([hidden[0], hidden.max(axis=0)]) + b)
    for place in (folder, tmp_path / "again"):
        encoder = SentenceEncoder.load(place)
        np.testing.assert_allclose(encoder.encode(["A dog barks"]), [expected], atol=1e-4)
        encoder.model.save_pretrained(tmp_path / "again")  # with all that the folder says of its use


ONLY = {"modules": listed("Pooling")}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"modules": listed("Pooling", "LSTM")}, r"modules\.json has a module LSTM, .*supported are Transformer, Pool"),
        ({"modules": listed("Normalize")}, r"has Transformer, Normalize; expected Transformer, Pooling and then"),
        ({"modules": [{"path": "../x", "type": "a.Transformer"}]}, r"names '\.\./x', expected the name of a folder"),
        ({"modules": {}}, r"modules\.json has ; expected"),
        ({"modules": [3]}, r"modules\.json is damaged: expected a list of modules"),
        ({"1_Pooling__config": {"pooling_mode": "attention"}}, r"pooling_mode is \['attention'\]; supported are cls,"),
        (ONLY | {"sentence_bert_config": {"transformer_task": "fill-mask"}}, "transformer_task is 'fill-mask', which"),
        (ONLY | {"sentence_bert_config": {"max_seq_length": "9"}}, "max_seq_length must be at least 1, got '9'"),
        ({"config_sentence_transformers": {"default_prompt_name": "q"}}, r"prompts has no text named 'q'"),
        ({"2_Dense__config": {"use_residual": True}}, "use_residual is True, which is not supported"),
        ({"2_Dense__config": {"activation_function": "torch.nn.Mish"}}, "activation_function is torch.nn.Mish; supp"),
    ],
)
def test_modules_that_are_not_supported_are_named(tmp_path, files, message):
    files = {"modules": listed("Pooling", "Dense"), "1_Pooling__config": {"pooling_mode": "mean"}, **files}
    with pytest.raises(ValueError, match=message):
        SentenceEncoder.load(write(tmp_path / "f", bert(), wordpiece(), **files))


# --- generated text --------------------------------------------------------------------------------------------------


def small(kind):
    if kind == "gpt":
        return GPT(GPTConfig(260, 32, 16, 4, 2, 12))
    return Llama(LlamaConfig(260, 32, 16, 4, 2, num_layers=2, d_ff=12, tie_embeddings=True))


@pytest.mark.parametrize("kind", ["gpt", "llama"])
def test_end_tokens_and_their_files_stay_with_the_model(here, kind, capsys):
    """After saving, and in a fine-tuned run and its merged folder."""
    ends = {"eos_token_id": [0, 99], "pad_token_id": 7, "repetition_penalty": 1.2}
    folder = write(here / "f", small(kind), bytewise(), settings={"eos_token_id": 5}, generation_config=ends)
    load_any(folder).save_pretrained("saved")
    (here / "text.txt").write_text("one two three " * 40)
    done(capsys, *"train gpt --text text.txt --pretrained f --steps 1 --block-size 8 -q --out run".split())
    assert TextGenerator.load("run").end_ids == (0, 99)
    runs.merge_as_pretrained("run", "merged")
    for place in ("f", "saved", "merged"):
        generator = PretrainedTextGenerator.load(place)
        assert generator.end_ids == (0, 99) and generator.not_applied == ["repetition_penalty 1.2"]
        assert json.loads((here / place / "generation_config.json").read_text()) == ends
        assert json.loads((here / place / "config.json").read_text())["eos_token_id"] == 5


def test_sampling_as_the_folder_says(tmp_path, capsys):
    how = {"do_sample": True, "temperature": 0.5, "top_k": 3, "top_p": 0.9}
    folder = write(tmp_path / "f", small("gpt"), bytewise(), generation_config={**how, "num_beams": 4})
    given = ["--temperature", 0.5, "--top-k", 3, "--top-p", 0.9]
    call_it = ["generate", "--pretrained", folder, "--json", "--max-new-tokens", 9, "one"]
    asked, err = said(capsys, *call_it)
    assert asked == said(capsys, *call_it, *given)[0] != said(capsys, *call_it, "--temperature", 1)[0]
    assert asked == said(capsys, *call_it, "--top-k", 3)[0]  # a flag says otherwise of its own setting alone
    assert err == "not applied here, from generation_config.json: num_beams 4\n"
    (folder / "generation_config.json").write_text('{"do_sample": true, "top_p": 7}')
    assert "generation_config.json: --top-p must lie in (0, 1], got 7" in fails(capsys, *call_it)


def test_a_row_of_the_embedding_without_a_token_is_never_written(tmp_path):
    generator = PretrainedTextGenerator.load(write(tmp_path / "f", small("gpt"), bytewise()))  # 260 rows, 259 tokens
    assert generator.excluded_ids == [259] and len(generator.generate("one", 200, temperature=9.0, rng=0)) > 3


def test_generate_without_a_text_asks_for_one(tmp_path, capsys):
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "?": 1}, "?"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    folder = write(tmp_path / "f", small("gpt"), words)
    message = fails(capsys, "generate", "--pretrained", folder)
    assert "pass a TEXT to continue: this model cannot begin with a new line" in message


def test_a_t5_hides_no_token_of_a_text(tmp_path):
    """Its padding is the id 0, and so is the unknown token of this tokenizer."""
    model = T5(T5Config(len(USUAL), 12, 3, 4, 1, 1, 10, eos_id=2, bos_id=1, pad_id=0))
    folder = write(tmp_path / "f", model, wordpiece(UNKNOWN_FIRST), 2, generation_config={"eos_token_id": 4})
    answers = TextToText.from_pretrained(folder)
    assert answers.model.config.eos_id == 4
    src = answers.encode("a zzz dog")
    assert src.tolist() == [[1, 4, 0, 5, 2]]  # the tokenizer says how a text ends
    shown = np.zeros(src.shape, bool)
    memory = model.eval().encode(src, padding=shown)
    logits = model.decode(np.array([[1]]), memory, src, padding=shown)[0, -1]
    assert not np.allclose(memory, model.encode(src))
    np.testing.assert_array_equal(answers._writer.encode(src), memory)  # what `answer` decodes with
    np.testing.assert_array_equal(answers._writer.decode(np.array([[1]]), memory, src)[0, -1], logits)
    (folder / "generation_config.json").write_text('{"eos_token_id": [1, 2]}')
    with pytest.raises(ValueError, match=r"eos_token_id is \[1, 2\], which is not supported; supported is one id"):
        TextToText.from_pretrained(folder)


@pytest.mark.long
def test_which_parts_wrote_a_word_a_class_or_an_answer(tmp_path, capsys, drawn):
    """`plot contributions` and `attribution` with a BERT that guesses, one that classifies, and a T5."""
    words = [*USUAL, "[MASK]"]
    masked = wordpiece(words)
    masked.add_special_tokens(["[MASK]"])
    guesses = Bert(BertConfig(len(words), 24, 12, 3, 2, 10))
    write(tmp_path / "guesses", guesses, masked)
    labels = {"id2label": {0: "no", 1: "yes"}}
    write(tmp_path / "classes", bert(num_classes=2), wordpiece(UNKNOWN_FIRST), settings=labels)
    write(tmp_path / "vectors", bert(), wordpiece())
    write(tmp_path / "no_mask", Bert(BertConfig(len(USUAL), 24, 12, 3, 2, 10)), wordpiece())
    write(tmp_path / "answers", T5(T5Config(len(USUAL), 12, 3, 4, 1, 1, 10, eos_id=3, bos_id=0, pad_id=0)), wordpiece())
    out = tmp_path / "a.svg"
    for name, words in (
        ("guesses", "a [MASK] dog"), ("guesses", "a [MASK] dog --target cat --other bad"), ("classes", "not bad"),
        ("classes", "not bad --target yes --other no"), ("answers", "a dog"), ("answers", "a dog --after cat"),
    ):  # fmt: skip
        text, *flags = re.split(r" (?=--)", words)
        flags = [word for flag in flags for word in flag.split()]
        for picture in ("contributions",) if flags else ("contributions", "attribution"):
            asked = ("plot", picture, text, "--pretrained", tmp_path / name, *flags, "-o", out)
            assert call(capsys, *asked) == (0, f"{out}\n", "")
    titles = [arguments[2] for name, arguments, _ in drawn if name == "contributions"]
    where = [re.search(r" = \S+ (\w+) '", title)[1] for title in titles]
    assert where == ["in", "in", "for", "for", "after", "after"]  # a masked word and a class follow no text
    for name, words, message in (
        ("guesses", ["a dog"], "'a dog' must have one [MASK], whose logits are split: it has 0"),
        ("guesses", ["[MASK] [MASK]"], "it has 2"),
        ("classes", ["a dog", "--target", "maybe"], "--target 'maybe' must be a class of the model: no, yes"),
        ("classes", ["a dog", "--target", "no", "--other", "no"], "--other 'no' is the --target itself: choose a diff"),
        ("classes", ["a dog", "--after", "a"], "--after is the beginning of an answer: only a translator or a T5"),
        ("answers", ["a dog", "--target", "cats"], "'cats' must be one token of the model, but it is cat '##s'"),
        ("no_mask", ["a [MASK]"], "no_mask has a tokenizer without [MASK], the word to be predicted"),
        ("vectors", ["a dog"], "holds a BERT that has no logits of words or of classes of a text"),
    ):
        assert message in fails(capsys, "plot", "contributions", *words, "--pretrained", tmp_path / name, "-o", out)


@pytest.mark.long
def test_which_parts_wrote_a_masked_word_of_a_run(here, capsys, drawn):
    (here / "text.txt").write_text("a dog barks\na cat is loud\n" * 40)
    done(capsys, *"train mlm --text text.txt --steps 1 --layers 1 --d-model 8 --heads 2 -q --out run".split())
    model = load_model(here / "run" / "checkpoint.safetensors")[0].eval()
    tokenizer = MLMTask().read("run")[2]["tokenizer"]
    ids = [BOS, *tokenizer.encode("a"), len(tokenizer) - 1, *tokenizer.encode("barks"), EOS]
    logits, (loud, dog) = model.mlm_logits(np.array([ids]))[0, 2], tokenizer.encode("loud dog")
    asked = ("plot", "contributions", "a [MASK] barks", "--model", "run", "--target", "loud", "-o", "a.svg")
    assert call(capsys, *asked) == call(capsys, *asked, "--other", "dog") == (0, "a.svg\n", "")
    assert drawn[0][1][0].total == pytest.approx(logits[loud], abs=1e-5)
    assert drawn[1][1][0].total == pytest.approx(logits[loud] - logits[dog], abs=1e-5)
    assert call(capsys, "plot", "attribution", "a [MASK] barks", "--model", "run", "-o", "b.svg") == (0, "b.svg\n", "")
    message = fails(capsys, "plot", "attribution", "a dog barks", "--model", "run", "-o", "c.svg")
    assert "must have one [MASK], whose logits are split: it has 0" in message
    done(capsys, *"train mlm --text text.txt --tokens char --steps 1 --d-model 8 --heads 2 -q --out letters".split())
    done(capsys, *"merge --pretrained --model letters --out folder".split())
    for of in (("--model", "letters"), ("--pretrained", "folder")):
        done(capsys, "plot", "contributions", "a d[MASK]g", *of, "--target", "o", "-o", "d.svg")
    run, merged = (arguments[0].total for _, arguments, _ in drawn[-2:])
    assert merged == pytest.approx(run, abs=1e-5)
    assert PretrainedTokenizer("folder").decode(PretrainedTokenizer("folder").encode("a [MASK]")) == "a "
    assert json.loads((here / "folder" / "tokenizer_config.json").read_text())["mask_token"] == "[MASK]"


@pytest.mark.parametrize("layers", [10, 10**6, 10**18])
def test_too_many_layers_are_refused_before_their_names_are_listed(tmp_path, monkeypatch, layers):
    from transformer_np.models.layouts import gpt2, llama

    for kind, layout, key in (("gpt", gpt2, "n_layer"), ("llama", llama, "num_hidden_layers")):
        folder = write(tmp_path / "f", small(kind), bytewise(), settings={key: layers})
        with monkeypatch.context() as patched:
            patched.setattr(layout, "body", lambda config: pytest.fail("names were listed"))
            with pytest.raises(ValueError, match=rf"missing most tensors of {layers:,} layers, because it has only \d"):
                load_any(folder)


# --- tokenizers ------------------------------------------------------------------------------------------------------


def test_tokens_as_a_person_reads_them(tmp_path, capsys, drawn):
    tokenizer = PretrainedTokenizer(text=bytewise().to_str())
    assert tokenizer.tokens("não são") == ["n", "ã", "o", " s", "ã", "o"]
    assert tokenizer.tokens("é") == ["\\xc3", "\\xa9"]  # parts of a character, as in our own byte pairs
    with pytest.raises(ValueError, match="an id must lie in 0 … "):  # the library gives "" for it
        tokenizer.decode([0, len(tokenizer)])
    with pytest.raises(ValueError, match=r"an id must lie in 0 … .*, got -1"):
        tokenizer.decode([-1])
    folder = write(tmp_path / "f", small("gpt"), bytewise())
    assert call(capsys, "plot", "attention", "--pretrained", folder, "não são", "-o", tmp_path / "a.png")[0] == 0
    ((_, (_, queries, keys), _),) = drawn
    assert queries == keys == ["n", "ã", "o", " s", "ã", "o"]
    pieces = tokenizers.Tokenizer(tokenizers.models.BPE({"▁": 0, "a": 1, "▁a": 2}, [("▁", "a")]))
    pieces.pre_tokenizer, pieces.decoder = tokenizers.pre_tokenizers.Metaspace(), tokenizers.decoders.Metaspace()
    assert PretrainedTokenizer(text=pieces.to_str()).tokens("a a") == [" a", " a"]


def test_a_padding_mask_for_plots(tmp_path, capsys, drawn):
    folder = write(tmp_path / "f", bert(), wordpiece(UNKNOWN_FIRST))
    assert call(capsys, "plot", "attention", "--pretrained", folder, "a zzz", "-o", tmp_path / "a.png")[0] == 0
    assert (drawn[0][1][0][..., 2] > 0).all()  # [UNK], whose id is that of the padding, is seen


def test_an_id_beyond_the_table_names_the_tokenizer(tmp_path, capsys):
    folder = write(tmp_path / "f", bert(num_classes=2), wordpiece([*USUAL, "extra"]))
    for command in (["classify", "--pretrained"], ["embed", "--model"], ["plot", "attention", "--pretrained"]):
        message = fails(capsys, *command, folder, "an extra", *(["-o", tmp_path / "a.png"] * ("plot" in command)))
        assert "tokenizer.json has the token 'extra' with the id 16, but the table of the model has" in message


@pytest.mark.parametrize("older", [["vocab.txt"], ["vocab.json", "merges.txt"], ["tokenizer.model"]])
def test_a_folder_with_an_older_tokenizer_says_how_to_make_the_new_one(tmp_path, older):
    folder = write(tmp_path / "f", bert(), wordpiece())
    (folder / "tokenizer.json").unlink()
    for name in older:
        (folder / name).write_text("x")
    message = rf"only {' and '.join(older)}\. Make it .*from transformers import"
    with pytest.raises(FileNotFoundError, match=message) as e:
        PretrainedTokenizer(folder)
    assert str(folder) in str(e.value) and "save_pretrained" in str(e.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_pointer_of_git_lfs_is_named(tmp_path, capsys, name):
    folder = write(tmp_path / "f", bert(num_classes=2), wordpiece())
    (folder / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 123\n")
    message = fails(capsys, "classify", "--pretrained", folder, "a")
    assert f"{name} is a Git LFS pointer, not the file itself: run `git lfs pull`" in message


def test_a_panic_of_the_library_is_one_line(tmp_path, capfd):
    for change in (
        lambda data: data["model"]["vocab"].pop("Ġs"),
        lambda data: data.update(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
        lambda data: data["model"]["merges"].append(["a", "漢"]),
    ):
        folder = write(tmp_path / "f", small("gpt"), bytewise())
        data = json.loads((folder / "tokenizer.json").read_text())
        change(data)
        (folder / "tokenizer.json").write_text(json.dumps(data))
        assert cli.main(["generate", "--pretrained", str(folder), "one"]) == 2
        out, err = capfd.readouterr()
        assert not out and len(err.splitlines()) == 1 and "tokenizer.json is damaged or not a tokenizer: " in err
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, "[UNK]"))
    folder = write(tmp_path / "f", small("gpt"), words)
    assert cli.main(["generate", "--pretrained", str(folder), "one"]) == 2
    assert "tokenizer.json cannot encode this text: WordLevel error: Missing [UNK]" in capfd.readouterr().err


# --- decoding --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_top_p_keeps_just_enough_at_every_boundary_in_tenths(dtype):
    from itertools import combinations_with_replacement

    for count in (2, 3, 4):
        for tenths in combinations_with_replacement(range(9, 0, -1), count):
            if sum(tenths) == 10:
                for kept in range(1, count):
                    p = sum(tenths[:kept]) / 10
                    found = sampling_distribution(np.log(np.array(tenths, dtype) / 10), top_p=p)
                    assert np.count_nonzero(found) == kept, (tenths, p)


@pytest.mark.parametrize("temperature", [5e-324, 1e-45, 1e-30])
def test_a_temperature_near_0_takes_the_most_likely_token(temperature):
    with np.errstate(all="raise"):
        for dtype in ("float32", "float64"):
            found = sampling_distribution(np.array([1.0, 3.0, 2.0], dtype), temperature)
            np.testing.assert_array_equal(found, [0, 1, 0])
