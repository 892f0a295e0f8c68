"""Fine-tuning: runs that start from a pretrained folder, with frozen layers and LoRA, and what is made of them."""

import json
import re

import numpy as np
import pytest
from safetensors.numpy import load_file

from transformer_np import cli
from transformer_np.inspection.samples import randomised
from transformer_np.models import GPT, Bert, BertConfig, GPTConfig, Llama, LlamaConfig, Word2Vec, Word2VecConfig
from transformer_np.models.layouts.folder import load_any
from transformer_np.tasks import fine_tuning, pretrained_classes, runs
from transformer_np.tasks.classify import Classifier, ClassifyOptions, ClassifyTask
from transformer_np.tasks.pretrained_classes import PretrainedClassifier
from transformer_np.tasks.runs import CHECKPOINT
from transformer_np.tasks.text import GPTOptions, GPTTask, TextGenerator
from transformer_np.training import Classification, load_checkpoint, save_model

tokenizers = pytest.importorskip("tokenizers", reason="tokenizer.json needs the tokenizers library")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "dog", "cat", "barks", "meows", "loudly", "here", "today", "and"]
TEXTS = [
    (f"a {animal} {sound} {how} {when}", animal)
    for animal, sound in (("dog", "barks"), ("cat", "meows"))
    for how in ("loudly", "and meows", "and barks", "here")
    for when in ("today", "here", "and barks", "loudly", "a dog")
]
MODELS = {
    "bert": lambda V: Bert(BertConfig(V, 16, 12, 3, 3, 20, mlm_head=False, dropout=0.1)),
    "gpt": lambda V: GPT(GPTConfig(V, 16, 12, 3, 3, 20, dropout=0.1)),
    "llama": lambda V: Llama(LlamaConfig(V, 16, 16, 4, 2, num_layers=3, d_ff=20, qkv_bias=True)),
}


def write_folder(folder, kind):
    """A random model with a tokenizer of these words that marks the beginning and, in a BERT, the end."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(WORDS)}, "[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(WORDS[:4])
    end, pair = (" [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1") if kind == "bert" else ("", None)
    marks = [("[CLS]", 2), ("[SEP]", 3)]
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(f"[CLS] $A{end}", pair, marks)
    model = randomised(MODELS[kind](len(WORDS)), np.random.default_rng(0), 0.5)
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.tsv").write_text("".join(f"{label}\t{text}\n" for text, label in TEXTS), encoding="utf-8")
    (tmp_path / "text.txt").write_text("\n".join(text for text, _ in TEXTS) * 4, encoding="utf-8")
    for kind in MODELS:
        write_folder(tmp_path / kind, kind)
    return tmp_path


def train_classifier(out="run", **options):
    options = {"data": "data.tsv", "pretrained": "bert", "steps": 6, "batch_size": 8, "dropout": 0.1, **options}
    return ClassifyTask().train(ClassifyOptions(**options), out, progress=False)


def train_gpt(kind, out="run", **options):
    options = {"text": "text.txt", "pretrained": kind, "steps": 4, "block_size": 8, "batch_size": 4, **options}
    return GPTTask().train(GPTOptions(**options), out, progress=False)


def train(kind, out="run", **options):
    return train_classifier(out, **options) if kind == "bert" else train_gpt(kind, out, **options)


def changed(model, folder):
    """The names of the parameters that differ from those in the folder, the new ones left out."""
    before = load_any(folder).state_dict()
    return {n for n, p in model.named_parameters() if n in before and not np.array_equal(p.data, before[n])}


# --- what learns -----------------------------------------------------------------------------------------------------

WAYS = [{}, {"freeze": 0}, {"freeze": 2}, {"lora": 2}, {"lora": 2, "freeze": 1}]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_only_what_should_learn_learns_and_the_run_has_it_all(here, kind, way):
    run = train(kind, **way)
    tensors = {n for n in load_file(here / "run" / CHECKPOINT) if n.startswith("model.")}
    result = (Classifier if kind == "bert" else TextGenerator).load("run")
    model, names = result.model, changed(result.model, kind)
    head = {"classifier.w", "classifier.b"} if kind == "bert" else set()
    if "lora" in way:
        first = way.get("freeze", 0)
        assert names == {f"blocks.{i}.attention.w_{x}" for i in range(first, 3) for x in "qkvo"}
        assert {n.removeprefix("model.") for n in tensors} == head | {
            f"blocks.{i}.attention.lora_{x}.{ab}" for i in range(first, 3) for x in "qkvo" for ab in "ab"
        }
    else:
        low = ("embedding.", "position.", "segment.", "norm." if kind == "bert" else "-")
        low += tuple(f"blocks.{i}." for i in range(way.get("freeze", 0)))
        assert not any(n.startswith(low) for n in names) or not way
        assert any(n.startswith("blocks.2.") for n in names) and ("embedding.table" in names) == (not way)
    ids = np.array([[4, 5, 7, 9]])
    outputs = [m.classify(ids) if kind == "bert" else m(ids) for m in (run.setup.model.eval(), model)]
    np.testing.assert_allclose(*outputs, rtol=1e-4, atol=1e-5)
    assert all(not p.frozen for p in model.parameters())


@pytest.mark.parametrize("kind", MODELS)
def test_the_gradients_above_frozen_blocks_are_those_of_the_whole_model(here, kind, rng):
    whole, part = load_any(kind).astype("float64"), load_any(kind).astype("float64")
    dout = None
    for model in (whole, part.freeze_below(2)):
        model.train()
        for _, module in model.named_modules():
            if hasattr(module, "p"):
                module.p = 0
        y = model(np.array([[4, 5, 7, 9], [4, 6, 8, 2]]))
        dout = rng.normal(size=y.shape) if dout is None else dout
        model.backward(dout)
    gradients = {name: p.grad for name, p in whole.named_parameters()}
    assert part.learned() and all(
        name.startswith(("blocks.2.", "norm.", "pooler", "output")) for name in part.learned()
    )
    for name, parameter in part.learned().items():
        np.testing.assert_allclose(parameter.grad, gradients[name], rtol=1e-9, atol=1e-12, err_msg=name)
    assert not part.blocks[0]._kept and part.blocks[2].attention.training and not part.blocks[1].attention.training


def test_an_interrupted_run_is_the_uninterrupted_one(here, monkeypatch):
    way = {"steps": 8, "lora": 2, "freeze": 1, "seed": 3, "dropout": 0.2, "lr": 0.01}
    whole = train_classifier("whole", **way).setup.model
    forward, calls = Classification.forward, []

    def failing(self, batch):
        calls.append(batch)
        if len(calls) == 5:
            raise OSError("the power is gone")
        return forward(self, batch)

    monkeypatch.setattr(Classification, "forward", failing)
    options = ClassifyOptions(data="data.tsv", pretrained="bert", batch_size=8, **way)
    with pytest.raises(OSError, match="power"):
        ClassifyTask().train(options, "part", progress=False, save_seconds=0)
    assert (here / "part" / CHECKPOINT).exists()
    resumed = ClassifyTask().train({}, "part", resume=True, progress=False).setup.model
    for (name, one), other in zip(whole.learned().items(), resumed.learned().values(), strict=True):
        assert np.array_equal(one.data, other.data), name


# --- the folder it came from -----------------------------------------------------------------------------------------


def test_another_folder_is_noticed(here):
    train_classifier(lora=2)
    write_folder(here / "other", "bert")
    model = load_any("other")
    model.blocks[0].feed_forward.w1.data = model.blocks[0].feed_forward.w1.data + 1
    model.save_pretrained(here / "bert")
    with pytest.raises(ValueError, match=r"is not the model that .* was fine-tuned from"):
        Classifier.load("run")
    (here / "bert").rename(here / "gone")
    with pytest.raises(FileNotFoundError, match=r"needs the pretrained folder .* if it was moved, move it back"):
        Classifier.load("run")


def test_a_run_in_which_all_learns_needs_no_folder(here):
    train_classifier()
    (here / "bert").rename(here / "gone")
    assert Classifier.load("run").probabilities("a dog barks").keys() == {"cat", "dog"}


# --- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("classify", {"lora": 2}, "lora needs pretrained"),
        ("classify", {"freeze": 2}, "freeze needs pretrained"),
        ("classify", {"pretrained": "bert", "init": "run"}, "exclude each other"),
        ("classify", {"pretrained": "bert", "layers": 2}, "layers is that of the model in bert"),
        ("classify", {"pretrained": "gpt"}, "gpt holds a GPT; this task needs a BERT"),
        ("classify", {"pretrained": "bert", "freeze": 4}, "4 blocks cannot be frozen: this Bert has 3"),
        ("classify", {"pretrained": "bert", "lora": 13}, "rank is 13"),
        ("gpt", {"pretrained": "bert"}, "bert holds a Bert; this task needs a GPT or Llama"),
        ("gpt", {"pretrained": "gpt", "block_size": 17}, "block_size is 17, but the model in gpt sees 16"),
        ("gpt", {"pretrained": "gpt", "d_model": 64}, "d_model is that of the model in gpt"),
    ],
)
def test_options_that_do_not_fit(here, kind, options, message):
    with pytest.raises(ValueError, match=message):
        if kind == "classify":
            train_classifier(**{"pretrained": None, **options})
        else:
            train_gpt(options.pop("pretrained"), **options)


def test_a_small_context_is_the_default_block_size(here):
    train_gpt("gpt", block_size=None)
    assert TextGenerator.load("run").context == 16


# --- from the command line -------------------------------------------------------------------------------------------


def transformer_np(capsys, *arguments):
    assert cli.main(list(arguments)) == 0
    return capsys.readouterr().out


def test_a_fine_tuned_classifier_on_the_command_line(here, capsys):
    out = transformer_np(
        capsys,
        *("train", "classify", "--pretrained", "bert", "--data", "data.tsv", "--out", "run", "--lora", "3"),
        *("--pooling", "cls", "--steps", "60", "--lr", "0.05", "--old-rate", "0.5", "-q", "--workers", "1"),
    )
    assert float(re.search(r"accuracy on unseen sentences ([\d.]+)%", out).group(1)) == 100
    assert re.match(r"dog \d", transformer_np(capsys, "classify", "--model", "run", "a dog barks today"))
    transformer_np(capsys, "explore", "--model", "run", "a dog barks", "-o", "page.html")
    assert "barks" in (here / "page.html").read_text()
    transformer_np(capsys, "plot", "attention", "--model", "run", "a dog barks", "-o", "weights.png")


@pytest.mark.parametrize("kind", ["gpt", "llama"])
def test_a_fine_tuned_gpt_on_the_command_line(here, capsys, kind):
    out = transformer_np(
        capsys,
        *("train", "gpt", "--pretrained", kind, "--text", "text.txt", "--out", "run", "--freeze", "1"),
        *("--steps", "30", "--block-size", "8", "--lr", "0.01", "-q", "--workers", "1"),
    )
    assert "validation loss" in out
    text = transformer_np(capsys, "generate", "--model", "run", "a dog", "--max-new-tokens", "5", "--temperature", "0")
    assert text.startswith("a dog ") and set(text.split()) <= set(WORDS)
    transformer_np(capsys, "explore", "--model", "run", "a dog barks", "-o", "page.html")
    transformer_np(capsys, "plot", "attention", "--model", "run", "a dog barks", "-o", "weights.png")
    transformer_np(capsys, "plot", "architecture", "--model", "run", "-o", "model.png")


def test_the_tokenizer_of_a_run_is_the_pretrained_one(here):
    train_classifier()
    (here / "bert").rename(here / "gone")
    tokenizer = Classifier.load("run").tokenizer
    assert tokenizer.encode("a dog barks") == [2, 4, 5, 7, 3] and tokenizer.token(5) == "dog"
    assert fine_tuning.read_tokenizer(tokenizer.to_dict()).encode("dog") == [2, 5, 3]


def test_pretrained_layers_learn_with_the_lower_rate(here):
    """Adam's first steps are about as long as the rate, so the parameters move in its proportion."""
    moved = {}
    for rate in (1.0, 0.05):
        model = train_classifier(f"rate-{rate}", old_rate=rate, steps=2, dropout=0.0).trainer.model
        before = load_any(here / "bert").state_dict()
        now = model.state_dict()
        moved[rate] = np.mean([np.abs(now[name] - before[name]).mean() for name in before if name.endswith(".w1")])
    assert moved[0.05] < 0.2 * moved[1.0]


# --- merged on request -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
def test_a_merged_run_stands_alone(here, capsys, kind):
    train(kind, **{"lora": 2, "lr": 0.05})
    transformer_np(capsys, "merge", "--model", "run", "--out", "new")
    result = Classifier if kind == "bert" else TextGenerator
    before, ids = result.load("run").model, np.array([[4, 5, 7, 9]])
    (here / kind).rename(here / "gone")
    (here / "run").rename(here / "old")
    after = result.load("new").model
    old, new = (load_checkpoint(f"{folder}/{CHECKPOINT}")[1] for folder in ("old", "new"))
    assert {"kind", "vocabulary"} < new.keys() and {name: old[name] for name in new} == new
    ask = "classify" if kind == "bert" else "forward"
    assert np.array_equal(getattr(after, ask)(ids), getattr(before, ask)(ids))
    assert cli.main(["merge", "--model", "new", "--out", "new"]) == 2
    assert capsys.readouterr().err == "transformer-np: error: new already has a model: choose another folder\n"


@pytest.mark.parametrize("kind", MODELS)
def test_a_merged_model_in_the_layout_of_others(here, capsys, kind):
    train(kind, lora=2, lr=0.05, **({"pooling": "cls"} if kind == "bert" else {}))
    transformer_np(capsys, "merge", "--model", "run", "--out", "new", "--pretrained")
    text = "a dog barks"
    if kind == "bert":
        found = PretrainedClassifier.load("new").probabilities(text)
        assert found == Classifier.load("run").probabilities(text) and found.keys() == {"cat", "dog"}
        assert transformer_np(capsys, "classify", "--pretrained", "new", text) == transformer_np(
            capsys, "classify", "--model", "run", text
        )
    else:
        assert transformer_np(capsys, "generate", "--pretrained", "new", text, "--max-new-tokens", "3").startswith(text)
        run = TextGenerator.load("run").model.state_dict()
        assert all(np.array_equal(array, run[name]) for name, array in load_any("new").state_dict().items())
    with pytest.raises(FileExistsError, match="new already has a model"):
        runs.merge_as_pretrained("run", "new")


def test_what_cannot_be_merged(here, capsys):
    train_classifier(lora=2)
    with pytest.raises(ValueError, match=r'pooling is "mean"'):
        runs.merge_as_pretrained("run", "new")
    ClassifyTask().train(ClassifyOptions(data="data.tsv", steps=1, d_model=8, heads=2), "own", progress=False)
    with pytest.raises(ValueError, match="a tokenizer of words, whose rules for spaces and marks"):
        runs.merge_as_pretrained("own", "new")
    (here / "words").mkdir()
    save_model("words/checkpoint.safetensors", Word2Vec(Word2VecConfig(5, 4)))
    with pytest.raises(ValueError, match="words has a Word2Vec; Hugging Face's layout"):
        runs.merge_as_pretrained("words", "new")
    for command in (["explain"], ["plot", "architecture", "-o", "a.png"]):
        assert cli.main([*command, "--model", "words"]) == 2
        assert "words has word vectors, which have no layers" in capsys.readouterr().err
    runs.merge("own", "copy")
    with pytest.raises(ValueError, match="not a checkpoint to resume from"):
        ClassifyTask().train({"steps": 2}, "copy", resume=True, progress=False)


def test_padding_is_known_from_the_lengths(here):
    """A word has the id of the padding here, and is read all the same: in training, and by the run."""
    settings = json.loads((here / "bert" / "config.json").read_text())
    (here / "bert" / "config.json").write_text(json.dumps({**settings, "pad_token_id": WORDS.index("dog")}))
    run = train_classifier(steps=1)
    batch = run.setup.batches.batch(0)
    lengths = (~batch.padding).sum(axis=1)
    assert (batch.ids[~batch.padding] == WORDS.index("dog")).any() and batch.padding.any()
    assert all(row[length - 1] == 3 for row, length in zip(batch.ids, lengths, strict=True))  # [SEP]
    seen = Classifier.load("run")
    assert seen.probabilities("a dog barks") != seen.probabilities("a [PAD] barks")
    model, ids = seen.model, np.array([seen.encode("a dog barks")])
    p = model.classify(ids, padding=np.zeros(ids.shape, bool))[0].astype(float)
    assert list(seen.probabilities("a dog barks").values()) == pytest.approx(np.exp(p) / np.exp(p).sum())
    assert not np.allclose(model.classify(ids)[0], p)  # without the mask the dog would be hidden


# --- heads of other tasks --------------------------------------------------------------------------------------------


def write_head(folder, labels=(), **head):
    """A folder like "bert" with this head and these labels."""
    write_folder(folder, "bert")
    model = Bert(BertConfig(len(WORDS), 16, 12, 3, 3, 20, mlm_head=False, pooler=False, **head))
    model = randomised(model, np.random.default_rng(1))
    model.save_pretrained(folder)
    settings = json.loads((folder / "config.json").read_text())
    settings["id2label"] = {str(i): label for i, label in enumerate(labels)}
    (folder / "config.json").write_text(json.dumps(settings))
    return model.eval()


def test_the_label_of_each_token(here, capsys):
    model = write_head(here / "tokens", ["O", "ANIMAL", "SOUND"], token_classes=3)
    classifier = PretrainedClassifier.load("tokens")
    found = classifier.tokens("a dog barks")
    best = model.classify_tokens(np.array([[2, 4, 5, 7, 3]]))[0, 1:-1].argmax(axis=-1)
    assert [(token, label) for token, label, _ in found] == [
        (token, ["O", "ANIMAL", "SOUND"][i]) for token, i in zip(["a", "dog", "barks"], best, strict=True)
    ]
    assert all(1 / 3 < p <= 1 for *_, p in found)
    lines = transformer_np(capsys, "classify", "--pretrained", "tokens", "a dog barks", "cat").splitlines()
    assert lines[:3] == [f"{label} {p:.1%}  {token}" for token, label, p in found] and len(lines) == 4
    shown = json.loads(transformer_np(capsys, "classify", "--pretrained", "tokens", "--json", "a dog barks"))
    assert [tuple(row.values()) for row in shown["tokens"]] == found and shown["text"] == "a dog barks"


def test_the_answer_in_a_text(here, capsys):
    model = write_head(here / "answers", span_head=True)
    question, text = "a cat", "a  Dog barks loudly here"  # "Dog" is unknown; places are those of the text as written
    ids = [2, 4, 6, 3, 4, 1, 7, 9, 10, 3]
    every = np.exp(model.span_scores(np.array([ids]), segments=np.array([[0] * 4 + [1] * 6]))[0])
    p = (every / every[[0, 4, 5, 6, 7, 8]].sum(axis=0))[4:9]  # [CLS], which stands for no answer, and the text
    spans = {(s, e): p[s, 0] * p[e, 1] for s in range(5) for e in range(s, 5)}
    start, end = max(spans, key=spans.get)
    places = [(0, 1), (3, 6), (7, 12), (13, 19), (20, 24)]
    answer, probability = PretrainedClassifier.load("answers").answer(question, text)
    assert answer == text[places[start][0] : places[end][1]]
    assert probability == pytest.approx(spans[start, end], rel=1e-4)
    shown = transformer_np(capsys, "classify", "--pretrained", "answers", "--question", question, text)
    assert shown == f"{probability:6.1%}  {answer}\n"
    long = PretrainedClassifier.load("answers").answer(question, "barks " * 100)[0]  # the end is cut off
    assert len(long) < 70
    for given, message in (((question, ""), "text is empty"), (("a " * 20, text), "no room for the second in 16")):
        with pytest.raises(ValueError, match=message):
            PretrainedClassifier.load("answers").answer(*given)


def test_an_answer_ends_after_it_begins_and_is_short(here, monkeypatch):
    write_head(here / "answers", span_head=True)
    classifier = PretrainedClassifier.load("answers")
    scores = np.zeros((1, 10, 2))  # [CLS] a cat [SEP], five words, [SEP]
    scores[0, [8, 5], 0] = 9, 8  # the best beginning lies behind the best end
    scores[0, [4, 7], 1] = 9, 8
    monkeypatch.setattr(classifier.model, "span_scores", lambda ids, padding, segments: scores)
    assert classifier.answer("a cat", "dog cat barks meows loudly")[0] == "cat barks meows"
    monkeypatch.setattr(pretrained_classes, "LONGEST_ANSWER", 2)
    assert len(classifier.answer("a cat", "dog cat barks meows loudly")[0].split()) <= 2


def test_a_question_to_the_wrong_model(here, capsys):
    write_head(here / "answers", span_head=True)
    for arguments, message in (
        (["--pretrained", "answers", "a dog"], "needs --question"),
        (["--pretrained", "bert", "a dog"], "a BERT without a head for a task; train one with"),
    ):
        assert cli.main(["classify", *arguments]) == 2
        assert message in capsys.readouterr().err
    train_classifier()
    assert cli.main(["classify", "--model", "run", "--question", "a cat", "a dog"]) == 2
    assert "the model in run answers no questions: leave out --question" in capsys.readouterr().err
