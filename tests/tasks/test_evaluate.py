"""What becomes of a run after training: its measures on another file, its curve, more steps, pairs of texts."""

import json
import math
import re

import numpy as np
import pytest
from shared import call, done, fails, stdin

from transformer_np.tasks.bleu import bleu
from transformer_np.tasks.classify import Classifier
from transformer_np.tasks.t5 import TextToText
from transformer_np.tasks.text import TextGenerator
from transformer_np.tasks.translation import Translator
from transformer_np.tasks.xl import XLTextGenerator
from transformer_np.training import History

SIZES = "--layers 1 --heads 2 --d-model 8 --batch-size 4 -q".split()
TEXT = "a dog barks and a cat sleeps in the sun\n" * 60


def train(capsys, kind, *options, steps=4):
    return done(capsys, "train", kind, "--steps", steps, *SIZES, "--out", "run", *options)


def evaluated(capsys, file):
    return json.loads(done(capsys, "evaluate", file, "--model", "run", "--json"))


# --- evaluate --------------------------------------------------------------------------------------------------------


def test_a_text(here, capsys):
    """Each token but the first is predicted once, from the start of its block."""
    (here / "text.txt").write_text(TEXT)
    (here / "other.txt").write_text("the cat barks in a dog")
    train(capsys, "gpt", "--text", "text.txt", "--block-size", 8)
    generator = TextGenerator.load("run")
    ids = np.array(generator.tokenizer.encode("the cat barks in a dog"))
    nats = []
    for start in range(0, len(ids) - 1, 8):
        logits = generator.model(ids[None, start : start + 8])[0].astype(float)
        for z, target in zip(logits, ids[start + 1 : start + 9], strict=False):
            nats.append(math.log(np.exp(z).sum()) - z[target])
    found = evaluated(capsys, "other.txt")
    assert found["loss (nats per token)"] == pytest.approx(np.mean(nats), abs=1e-5) and len(nats) == len(ids) - 1
    assert found["perplexity"] == pytest.approx(math.exp(np.mean(nats)), rel=1e-5) and found["tokens"] == len(ids)
    lines = call(capsys, "evaluate", "other.txt")[1].splitlines()
    assert lines[0] == "model run" and lines[1] == f"loss (nats per token) {np.mean(nats):.4f}"
    (here / "other.txt").write_text("the ZZ")
    assert evaluated(capsys, "other.txt")["unknown characters"] == 2
    (here / "other.txt").write_text("t")
    assert "other.txt has 1 token, but at least 2 are needed" in fails(capsys, "evaluate", "other.txt")


def test_a_text_with_a_memory(here, capsys):
    """Segment by segment, each with the memory of those before it."""
    (here / "text.txt").write_text(TEXT)
    train(capsys, "xl", "--text", "text.txt", "--segment-len", 8, "--mem-len", 8)
    generator = XLTextGenerator.load("run")
    ids = np.array(generator.tokenizer.encode(TEXT))
    nats, mems = [], None
    for start in range(0, len(ids) - 1, 8):
        targets = ids[start + 1 : start + 9]
        z, mems = generator.model(ids[None, start : start + len(targets)], mems)
        z = z[0].astype(float)
        nats += list(np.log(np.exp(z).sum(axis=1)) - z[range(len(targets)), targets])
    found = evaluated(capsys, "text.txt")
    assert found["loss (nats per token)"] == pytest.approx(np.mean(nats), abs=1e-5) and found["tokens"] == len(TEXT)


def test_labelled_texts(here, capsys):
    rows = [(f"a {word} film {i}", label) for i in range(20) for word, label in (("good", "x"), ("bad", "y"))]
    (here / "data.tsv").write_text("".join(f"{label}\t{text}\n" for text, label in rows))
    (here / "other.tsv").write_text("y\ta good film\ny\ta bad day\nx\ta film\n")
    train(capsys, "classify", "--data", "data.tsv", "--d-ff", 8)
    classifier = Classifier.load("run")
    found = evaluated(capsys, "other.tsv")
    p = [classifier.probabilities(text) for text in ("a good film", "a bad day", "a film")]
    assert found["loss (nats per text)"] == pytest.approx(-np.log([p[0]["y"], p[1]["y"], p[2]["x"]]).mean(), abs=1e-5)
    assert found["accuracy"] == np.mean([p[0]["y"] > 0.5, p[1]["y"] > 0.5, p[2]["x"] > 0.5]) and found["texts"] == 3
    (here / "other.tsv").write_text("z\ta film\nx\ta day\nz\tno day\n")
    message = fails(capsys, "evaluate", "other.tsv", "--model", "run")
    assert "other.tsv has labels that the model lacks: z; it has x, y" in message
    (here / "other.tsv").write_text(f"x\t{'good ' * 500}\ny\tbad\n")
    assert evaluated(capsys, "other.tsv")["longer ones cut off"] == 1 and "longer ones cut off" not in found


def test_sentence_pairs(here, capsys):
    pairs = [(f"a {a} {b}", f"um {a} {b} ali") for a in ("dog", "cat", "cow") for b in ("runs", "eats", "sits", "here")]
    (here / "pairs.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs * 2))
    train(capsys, "translate", "--pairs", "pairs.tsv", "--d-ff", 8, steps=2)
    translator = Translator.load("run")
    outputs = [translator.translate(source) for source, _ in pairs]
    (here / "same.tsv").write_text("".join(f"{s}\t{o or 'x'}\n" for (s, _), o in zip(pairs, outputs, strict=True)))
    found = evaluated(capsys, "same.tsv")
    assert found["exact match"] == np.mean([bool(output) for output in outputs]) and found["sentence pairs"] == 12
    found = evaluated(capsys, "pairs.tsv")
    assert found["perplexity"] == pytest.approx(math.exp(found["loss (nats per token)"]))
    assert found["BLEU"] == pytest.approx(bleu(outputs * 2, [target for _, target in pairs * 2]))
    assert "unknown tokens" not in found
    (here / "other.tsv").write_text("a bird runs\tum bird canta ali\n")
    assert evaluated(capsys, "other.tsv")["unknown tokens"] == 3


def test_the_loss_of_pairs_reads_spaces_as_the_translations_do(here, capsys):
    lines = [f"a {a} {b}\tum {a} {b}\n" for a in ("dog", "cat", "cow") for b in ("runs", "eats", "sits", "here")]
    (here / "pairs.tsv").write_text("".join(lines))
    train(capsys, "translate", "--pairs", "pairs.tsv", "--tokens", "char", "--d-ff", 8)
    found = evaluated(capsys, "pairs.tsv")
    (here / "wide.tsv").write_text("".join(line.replace(" ", "  ", 1) for line in lines))
    assert evaluated(capsys, "wide.tsv") == {**found, "file": "wide.tsv"} and "BLEU" not in found


def test_text_to_text_and_what_has_no_measure(here, capsys, monkeypatch):
    rows = [("date: 24 March 2019", "2019-03-24"), ("date: 1 May 2020", "2020-05-01")]
    (here / "dates.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    train(capsys, "t5", "--tasks", "date", "--vocab-size", 280, "--max-len", 40)
    found = evaluated(capsys, "dates.tsv")
    assert found["examples"] == 2
    model, nats = TextToText.load("run"), []
    for text, answer in rows:
        ids = model.tokenizer.encode(answer)
        z = model.model(model.encode(text), np.array([[0, *ids]]))[0].astype(float)
        nats += list(np.log(np.exp(z).sum(axis=1)) - z[range(len(z)), [*ids, model.model.config.eos_id]])
    assert found["loss (nats per token)"] == pytest.approx(np.mean(nats), abs=1e-4)
    monkeypatch.setattr(TextToText, "exact_match", lambda self, pairs: float(pairs == rows))
    assert evaluated(capsys, "dates.tsv")["exact match"] == 1.0  # of the pairs in the file
    (here / "text.txt").write_text(TEXT * 4)
    message = fails(capsys, "evaluate", "text.txt", "--model", "run")
    assert "line 1: expected a text with its prefix, a tab and the answer; there is no tab" in message
    done(capsys, *"train word2vec --text text.txt --min-count 1 --steps 1 --d-model 4 --out words".split())
    message = fails(capsys, "evaluate", "text.txt", "--model", "words")
    assert "a run of the kind 'word2vec' has no measure for a file" in message


def test_a_text_with_hidden_spans(here, capsys):
    """On the validation part of the training text, the measures are those at the end of training."""
    (here / "text.txt").write_text(TEXT)
    (here / "part.txt").write_text(TEXT[int(len(TEXT) * 0.9) :])
    out = train(capsys, "t5", "--tasks", "spans", "--text", "text.txt", "--vocab-size", 280, "--block-size", 16)
    lines = done(capsys, "evaluate", "part.txt", "--model", "run").splitlines()
    assert lines[0] == "loss (nats per token) " + re.search("validation loss (.*)", out)[1]
    assert lines[2] == re.search("spans: (.*)", out)[1]
    (here / "part.txt").write_text("a dog")  # shorter than a block
    assert evaluated(capsys, "part.txt")["tokens"] < 16
    (here / "part.txt").write_text("a")
    assert "part.txt has 1 token, but at least 2 are needed" in fails(capsys, "evaluate", "part.txt", "--model", "run")
    (here / "part.txt").write_text("a <extra_id_0> barks\t<extra_id_0> dog <extra_id_1>\n")
    assert evaluated(capsys, "part.txt")["examples"] == 1


def test_bleu():
    """By hand."""
    with pytest.raises(ValueError, match="no translations"):
        bleu([], [])
    assert bleu(["the cat sat on the mat"], ["the cat sat on the mat"]) == 1.0
    assert bleu(["the cat is on the mat"], ["the cat sat on the mat"]) == 0.0
    longer = bleu(["a b c d e f"], ["a b c d e g"])  # 5/6, 4/5, 3/4, 2/3
    assert longer == pytest.approx((5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25)
    assert bleu(["a b c d"], ["a b c d e f"]) == pytest.approx(math.exp(1 - 6 / 4))
    assert bleu(["a a a a a"], ["a a a a"]) == pytest.approx((4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert bleu(["cba", "a b c"], ["cba", "a b c"]) is None  # every 4-gram is right: there is none
    both = bleu(["a b c d", "a b c d e f"], ["a b c d", "a b c d e g"])  # counts of all, not a mean of scores
    assert both == pytest.approx((9 / 10 * 7 / 8 * 5 / 6 * 3 / 4) ** 0.25)


# --- more steps ------------------------------------------------------------------------------------------------------


def test_more_steps_say_what_the_learning_rate_does(here, capsys):
    """A constant one stays the same when the run is interrupted and resumed."""
    (here / "text.txt").write_text(TEXT)
    options = ["--text", "text.txt", "--block-size", 8, "--warmup", 2, "--lr", 0.01]
    train(capsys, "gpt", *options, steps=20)
    more = ["train", "gpt", "--out", "run", "--resume", "--steps"]
    code, _, err = call(capsys, *more, 60)
    *_, last, new = History.load("run/checkpoint.safetensors").learning_rates[:21]
    assert code == 0 and new > 1.2 * last
    assert f"goes from {last:.2g} to {new:.2g}, because its schedule now has 60 steps instead of 20; " in err
    assert f"--constant-lr {last:.2g} goes on with that rate instead" in err
    code, _, err = call(capsys, *more, 62, "--constant-lr", 0.0003)
    assert code == 0 and " to 0.0003\n" in err  # because it was asked for
    assert call(capsys, *more, 64)[0] == 0
    rates = History.load("run/checkpoint.safetensors").learning_rates
    assert rates[60:] == [0.0003] * 4 and 0.0003 not in rates[:60]
    message = fails(capsys, "train", "gpt", *options, *SIZES, "--out", "new", "--constant-lr", 0.1)
    assert "--constant-lr is for a run that is resumed" in message


@pytest.mark.long
def test_the_curve_of_a_run(here, capsys):
    (here / "text.txt").write_text(TEXT)
    train(capsys, "gpt", "--text", "text.txt", "--block-size", 8)
    for arguments in (["run"], []):
        done(capsys, "plot", "loss", *arguments, "-o", "loss.png")
        assert (here / "loss.png").read_bytes().startswith(b"\x89PNG")
        (here / "loss.png").unlink()
    message = fails(capsys, "plot", "attention", "--model", "run", "-o", "a.png")
    assert "pass a TEXT, not 'Lucas will travel in December': the training text of the model" in message
    assert "there is no checkpoint" in fails(capsys, "plot", "loss", "text.txt", "-o", "loss.png")


def test_the_axis_of_a_curve_has_the_unit_of_its_loss(here, capsys):
    (here / "labels.tsv").write_text("".join(f"{'xy'[n % 2]}\tthe {'ab'[n % 2]} {n}\n" for n in range(30)))
    (here / "text.txt").write_text(TEXT)
    train(capsys, "classify", "--data", "labels.tsv")
    done(capsys, "train", "word2vec", "--text", "text.txt", "--steps", 2, "--out", "words", "-q")
    (here / "run" / "run.json").unlink()  # the checkpoint and its history are enough
    for run, unit in (("run", "text"), ("words", "pair")):
        done(capsys, "plot", "loss", run, "-o", "loss.svg")
        assert f"loss (nats per {unit})" in (here / "loss.svg").read_text()


# --- pairs of texts, and texts on standard input ---------------------------------------------------------------------


def test_a_classifier_of_pairs(here, capsys, monkeypatch):
    """Whether the second text repeats the first: no text decides that alone."""
    animals = ["dog", "cat", "cow", "pig", "hen", "fox"]
    rows = [("yn"[a != b], f"a {a} {w}", f"the {b}") for w in ("here", "now") for a in animals for b in animals]
    rows += [row for row in rows if row[0] == "y"] * 4
    (here / "pairs.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    train(capsys, "classify", "--data", "pairs.tsv", "--d-ff", 8)
    assert json.loads((here / "run" / "run.json").read_text())["pairs"] is True
    classifier = Classifier.load("run")
    encoded = classifier.read("a dog", "the cat")
    assert encoded.segments == [0] * 4 + [1] * 3 and encoded.ids[0] == 1 and encoded.ids.count(2) == 2
    long = classifier.read("dog " * 200, "the cat")
    assert len(long.ids) == 128 and long.segments.count(1) == 3 and long.left_out == 200 - 123
    found = json.loads(done(capsys, "classify", "--model", "run", "--json", "--pair", "a dog", "the cat"))
    assert (found["text"], found["second"]) == ("a dog", "the cat")
    assert found["probabilities"] == classifier.probabilities("a dog", "the cat")
    assert 0 <= evaluated(capsys, "pairs.tsv")["accuracy"] <= 1
    for words, message in ((["a dog", "the cat"], "the model reads pairs of texts: pass --pair, and two of them"),
                           (["--pair", "a"], "two by two, got 1")):  # fmt: skip
        assert message in fails(capsys, "classify", "--model", "run", *words)
    assert "reads pairs of texts, not one" in fails(capsys, "plot", "attention", "--model", "run", "a dog")
    stdin(monkeypatch, b"a dog\n")
    code, out, message = call(capsys, "classify", "--model", "run", "--pair")
    assert (code, out) == (2, "\n")
    assert "line 1: --pair needs two texts with a tab between them on each line; there is none in 'a dog'" in message
    (here / "test.tsv").write_text("y\tone text\nn\tanother text\n")
    message = fails(capsys, "train", "classify", "--data", "pairs.tsv", "--test", "test.tsv", *SIZES)
    assert "the texts to learn from are pairs, with three columns, but some of the others are not" in message


def test_a_text_that_cannot_be_used_does_not_end_the_others(here, capsys, monkeypatch):
    (here / "pairs.tsv").write_text("".join(f"a dog {i % 9}\tum cão {i % 9}\n" for i in range(40)))
    train(capsys, "translate", "--pairs", "pairs.tsv", "--d-ff", 8, "--max-len", 6)
    stdin(monkeypatch, b"a dog 1\n" + b"a " * 20 + b"\n" + b"x" * (2 << 20) + b"\na dog 2\n")
    code, out, err = call(capsys, "translate", "--model", "run")
    first, too_long, not_text, last = out.split("\n")[:4]
    assert code == 2 and (too_long, not_text) == ("", "")
    assert (first, last) == tuple(call(capsys, "translate", "--model", "run", f"a dog {i}")[1][:-1] for i in (1, 2))
    assert "standard input, line 2: the sentence has 20 tokens, the model reads at most 6" in err
    assert "standard input, line 3 has more than 1,048,576 bytes: is it text?" in err
    code, out, err = call(capsys, "translate", "--model", "run", "--json", "a " * 20, "a dog 1")
    error, good = map(json.loads, out.splitlines())
    assert code == 2 and "reads at most 6" in error["error"] and good["translation"] == first and "text 1: " in err
