"""Fine-tuning: runs that start from a pretrained folder, with frozen layers and LoRA, and what is made of them."""

import json
import re

import numpy as np
import pytest
from folders import write
from safetensors.numpy import load_file
from shared import assert_same, done, fails, interrupted

from transformer_np.models import GPT, Bert, BertConfig, GPTConfig, Llama, LlamaConfig, Word2Vec, Word2VecConfig
from transformer_np.models.layouts.folder import load_any
from transformer_np.tasks import fine_tuning, runs
from transformer_np.tasks.classify import Classifier, ClassifyOptions, ClassifyTask
from transformer_np.tasks.pretrained_classes import PretrainedClassifier
from transformer_np.tasks.runs import CHECKPOINT
from transformer_np.tasks.text import GPTOptions, GPTTask, TextGenerator
from transformer_np.training import load_checkpoint, save_model

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
    return write(folder, MODELS[kind](len(WORDS)), tokenizer)


@pytest.fixture
def here(here):
    (here / "data.tsv").write_text("".join(f"{label}\t{text}\n" for text, label in TEXTS), encoding="utf-8")
    (here / "text.txt").write_text("\n".join(text for text, _ in TEXTS) * 4, encoding="utf-8")
    for kind in MODELS:
        write_folder(here / kind, kind)
    return here


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


@pytest.mark.parametrize("head", [{"num_classes": 3}, {"token_classes": 4}, {"span_head": True}], ids=str)
def test_the_head_of_another_task_is_left_behind(here, monkeypatch, head):
    monkeypatch.setitem(MODELS, "bert", lambda V: Bert(BertConfig(V, 16, 12, 3, 3, 20, mlm_head=False, **head)))
    write_folder(here / "other", "bert")
    trained, loaded = Classifier.of(train_classifier(pretrained="other", lora=2)), Classifier.load("run")
    assert loaded.probabilities("a dog") == pytest.approx(trained.probabilities("a dog"), abs=1e-5)
    assert loaded.model.config.token_classes is None and not loaded.model.config.span_head


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
    above = "blocks.2.", "norm.", "pooler", "output"
    assert part.learned() and all(name.startswith(above) for name in part.learned())
    for name, parameter in part.learned().items():
        np.testing.assert_allclose(parameter.grad, gradients[name], rtol=1e-9, atol=1e-12, err_msg=name)
    assert not part.blocks[0]._kept and part.blocks[2].attention.training and not part.blocks[1].attention.training


def test_an_interrupted_run_is_the_uninterrupted_one(here):
    way = {"steps": 8, "lora": 2, "freeze": 1, "seed": 3, "dropout": 0.2, "lr": 0.01}
    whole = train_classifier("whole", **way).setup.model
    with interrupted(5):
        assert train_classifier("part", **way).trainer.interrupted
    resumed = ClassifyTask().train({}, "part", resume=True, progress=False).setup.model
    for (name, one), other in zip(whole.learned().items(), resumed.learned().values(), strict=True):
        assert np.array_equal(one.data, other.data), name


# --- the folder it came from -----------------------------------------------------------------------------------------


def spoil(folder):
    model = load_any(folder)
    model.blocks[0].feed_forward.w1.data = model.blocks[0].feed_forward.w1.data + 1
    model.save_pretrained(folder)


def test_another_folder_is_noticed(here):
    train_classifier(lora=2)
    spoil(here / "bert")
    with pytest.raises(ValueError, match=r"is not the model that .* was fine-tuned from"):
        Classifier.load("run")
    (here / "bert").rename(here / "gone")
    with pytest.raises(FileNotFoundError, match=r"needs the pretrained folder .* if it was moved, move it back"):
        Classifier.load("run")


@pytest.mark.parametrize("lora", [None, 2])
def test_a_run_is_resumed_where_its_folder_is_now(here, lora):
    train_classifier(lora=lora, lr=0.01)
    (here / "bert").rename(here / "moved")

    def resume(**options):
        return ClassifyTask().train({"steps": 8, **options}, "run", resume=True, progress=False)

    with pytest.raises(FileNotFoundError, match=r"no folder bert.* pass its option with the path"):
        resume()
    if lora:
        spoil(write_folder(here / "other", "bert"))
        with pytest.raises(ValueError, match="belongs to another run: its base"):
            resume(pretrained="other")
    resume(pretrained="moved")
    assert Classifier.load("run").probabilities("a dog barks").keys() == {"cat", "dog"}


def test_a_run_in_which_all_learns_needs_no_folder(here):
    train_classifier()
    (here / "bert").rename(here / "gone")
    classifier = Classifier.load("run")
    assert classifier.probabilities("a dog barks").keys() == {"cat", "dog"}
    tokenizer = classifier.tokenizer  # the pretrained one
    assert tokenizer.encode("a dog barks") == [2, 4, 5, 7, 3] and tokenizer.token(5) == "dog"
    assert fine_tuning.read_tokenizer(tokenizer.to_dict()).encode("dog") == [2, 5, 3]


# --- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("classify", {"lora": 2}, "lora needs pretrained"),
        ("classify", {"freeze": 2}, "freeze needs pretrained"),
        ("classify", {"pooling": "mean"}, "pooling needs pretrained"),
        ("classify", {"pretrained": "bert", "init": "run"}, "exclude each other"),
        ("classify", {"pretrained": "bert", "layers": 2}, "layers is that of the model in bert"),
        ("classify", {"pretrained": "gpt"}, "gpt holds a GPT; this task needs a BERT"),
        ("classify", {"pretrained": "bert", "freeze": 4}, "4 blocks cannot be frozen: this Bert has 3"),
        ("classify", {"pretrained": "bert", "lora": 13}, "rank is 13"),
        ("classify", {"pretrained": "bert", "lora": 2, "freeze": 3}, "LoRA from block 3 on has no place: .* 3 blocks$"),
        ("classify", {"pretrained": "bert", "lora": 2, "old_rate": 0.5}, "old_rate and lora exclude each other"),
        ("classify", {"old_rate": 0.1}, "old_rate needs pretrained"),
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


def test_a_small_context_is_the_default_block_size_and_a_run_no_folder_to_start_from(here):
    train_gpt("gpt", block_size=None)
    assert TextGenerator.load("run").context == 16
    message = r"run is not the folder of a model: it has no config\.json; it has a training run, of which"
    with pytest.raises(FileNotFoundError, match=message):
        train_gpt("run", out="new")


# --- from the command line -------------------------------------------------------------------------------------------


def test_a_fine_tuned_classifier_on_the_command_line(here, capsys):
    options = "--lora 3 --pooling cls --steps 60 --lr 0.05 -q --workers 1".split()
    out = done(capsys, *"train classify --pretrained bert --data data.tsv --out run".split(), *options)
    assert float(re.search(r"accuracy on unseen sentences ([\d.]+)%", out).group(1)) == 100
    assert re.match(r"dog \d", done(capsys, "classify", "--model", "run", "a dog barks today"))
    message = fails(capsys, "classify", "--model", "run", "--question", "a cat", "a dog")
    assert message == "the model in run answers no questions: leave out --question"


@pytest.mark.parametrize("kind", ["gpt", "llama"])
def test_a_fine_tuned_gpt_on_the_command_line(here, capsys, kind):
    options = "--freeze 1 --steps 30 --block-size 8 --lr 0.01 -q --workers 1".split()
    train = f"train gpt --pretrained {kind} --text text.txt --out run".split()
    assert "validation loss" in done(capsys, *train, *options)
    text = done(capsys, "generate", "--model", "run", "a dog", "--max-new-tokens", 5, "--temperature", 0)
    assert text.startswith("a dog ") and set(text.split()) <= set(WORDS)


@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_pictures_of_a_fine_tuned_run(here, capsys, kind):
    train(kind, steps=1)
    done(capsys, "explore", "--model", "run", "a dog barks", "-o", "page.html")
    assert "barks" in (here / "page.html").read_text()
    done(capsys, "plot", "attention", "--model", "run", "a dog barks", "-o", "weights.png")
    done(capsys, "plot", "architecture", "--model", "run", "-o", "model.png")


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
    """As a run, and as a folder in the layout of others."""
    train(kind, lora=2, lr=0.05, **({"pooling": "cls"} if kind == "bert" else {}))
    done(capsys, "merge", "--model", "run", "--out", "merged")
    done(capsys, "merge", "--model", "run", "--out", "folder", "--pretrained")
    result = Classifier if kind == "bert" else TextGenerator
    run, ids, text = result.load("run"), np.array([[4, 5, 7, 9]]), "a dog barks"
    (here / kind).rename(here / "gone")
    (here / "run").rename(here / "old")
    after = result.load("merged").model
    old, new = (load_checkpoint(f"{folder}/{CHECKPOINT}")[1] for folder in ("old", "merged"))
    assert {"kind", "vocabulary"} < new.keys() and {name: old[name] for name in new} == new
    ask = "classify" if kind == "bert" else "forward"
    assert np.array_equal(getattr(after, ask)(ids), getattr(run.model, ask)(ids))
    if kind == "bert":
        found = PretrainedClassifier.load("folder").probabilities(text)
        assert found == run.probabilities(text) and found.keys() == {"cat", "dog"}
        said = [done(capsys, "classify", *of, text) for of in (["--pretrained", "folder"], ["--model", "merged"])]
        assert said[0] == said[1]
    else:
        assert done(capsys, "generate", "--pretrained", "folder", text, "--max-new-tokens", 3).startswith(text)
        assert_same(load_any("folder"), run.model)
    for arguments in (
        ["explain"],
        ["merge", "--out", "new"],
        [*"plot architecture -o a.png".split()],
        ["classify" if kind == "bert" else "generate", "a"],
    ):
        message = fails(capsys, *arguments, "--model", "folder")
        assert message.endswith("; it has a pretrained model, which some commands read with --pretrained")
    assert fails(capsys, "plot", "loss", "merged", "-o", "a.png").endswith("'step' is missing, as in a merged run")
    message = fails(capsys, "merge", "--model", "merged", "--out", "merged")
    assert message == "merged already has a model: choose another folder"
    message = fails(capsys, "merge", "--model", "merged", "--out", f"merged/{CHECKPOINT}")
    assert message == f"merged/{CHECKPOINT} is a file, expected the folder of a run"
    with pytest.raises(FileExistsError, match="folder already has a model"):
        runs.merge_as_pretrained("merged", "folder")


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
        assert "words has word vectors, which have no layers" in fails(capsys, *command, "--model", "words")
    runs.merge("own", "copy")
    with pytest.raises(ValueError, match="cannot be resumed"):
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
