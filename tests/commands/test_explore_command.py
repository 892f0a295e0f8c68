"""`transformer-np explore`: where its model comes from, and which page it writes."""

import re
import shutil

import numpy as np
import pytest
import shared
from shared import data_of

from transformer_np.cli import main
from transformer_np.data import LECTURE_SENTENCE


@pytest.fixture
def opened(monkeypatch, here):
    """The addresses that the command opens; in a folder without a run."""
    addresses = []
    monkeypatch.setattr("webbrowser.open", addresses.append)
    return addresses


def test_alone_it_opens_the_finished_page(opened, tmp_path, capsys):
    assert main(["explore"]) == 0
    assert opened == [(tmp_path / "explore.html").as_uri()]
    captured = capsys.readouterr()
    assert captured.out.strip() == "explore.html" and "no trained model found" in captured.err
    data = data_of(tmp_path / "explore.html")
    assert data["text"] == LECTURE_SENTENCE and data["tokenizers"][0]["kind"] == "bpe" and len(data["lessons"]) == 13
    assert len(data["examples"]) > 5 and any(text.endswith(".") for text in data["examples"])
    for given in (["Zoë isn't tired!"], ["--target", "cansada"]):
        assert main(["explore", *given, "-o", "live.html"]) == 2
        assert "transformer-np train translate" in capsys.readouterr().err and len(opened) == 1


def test_a_gpt_proposes_lines_of_its_text(opened, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("".join(f"line {i} of a text that is worth reading\n" for i in range(99)), "utf-8")
    train = "train gpt --steps 2 --d-model 8 --heads 2 --layers 1 --block-size 16 --out run --workers 1 -q --text"
    assert main([*train.split(), str(text)]) == 0
    assert main(["explore", "--model", "run", "-o", "gpt.html"]) == 0
    data = data_of(tmp_path / "gpt.html")
    assert re.fullmatch(r"line \d+ of a text that", data["text"]) and data["text"] in data["examples"]
    text.write_text("".join(f"line {i}\n" for i in range(99)), "utf-8")
    assert main(["explore", "--model", "run", "-o", "gpt.html"]) == 0
    assert data_of(tmp_path / "gpt.html")["text"] == "line"
    text.write_text("a text of one line " * 99, "utf-8")
    assert main(["explore", "--model", "run", "-o", "gpt.html"]) == 0
    assert len(data_of(tmp_path / "gpt.html")["text"].split()) == 6
    text.unlink()
    assert main(["explore", "--model", "run", "-o", "gpt.html"]) == 2
    assert main(["explore", "line 1", "--model", "run", "-o", "gpt.html"]) == 0
    assert data_of(tmp_path / "gpt.html")["examples"] == []


def call(capsys, *args):
    return shared.call(capsys, "explore", *args)


@pytest.mark.long
def test_a_text_and_a_translation_to_begin_with(small_runs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(small_runs)
    out = tmp_path / "page.html"
    assert call(capsys, "Ana sings", "-o", out) == (0, f"{out}\n", "")
    data = data_of(out)
    assert (data["kind"], data["text"], data["format"]) == ("Transformer", "Ana sings", "float32")
    sources = (small_runs / "translate.txt").read_text(encoding="utf-8").splitlines()
    assert set(data["examples"]) <= {line.split("\t")[0] for line in sources}
    code, _, err = call(capsys, "Ana flies", "--target", "Ana voa", "-o", out)
    assert code == 0 and err.splitlines()[::2] == ["the model does not know: flies", "the model does not know: voa"]
    assert err.splitlines()[1].startswith("expect mistakes: it has seen 6 words: ")
    data = data_of(out)
    assert [data["tokenizers"][1]["vocabulary"][i] for i in data["written"]] == ["Ana", "<unk>", "<eos>"]
    assert call(capsys, "-o", out) == (0, f"{out}\n", "")  # its pairs have none of the words of the lecture's sentence
    assert data_of(out)["text"] in data["examples"]


@pytest.mark.long
def test_the_page_of_a_classifier(small_runs, tmp_path, capsys):
    out = tmp_path / "page.html"
    for text in (["a good film"], []):
        assert call(capsys, *text, "--model", small_runs / "classify", "-o", out)[:2] == (0, f"{out}\n")
    data = data_of(out)
    assert data["classes"] == ["+", "-"] and data["text"] in data["examples"]
    shapes = {name: size for name, *size in data["shapes"]}
    assert shapes["classifier.w"] == [16, 2] and shapes["pooler.linear.b"] == [1, 16]
    assert np.array(data["tokenizers"][0]["vocabulary"])[data["tokenizers"][0]["before"]] == ["[CLS]"]


@pytest.mark.usefixtures("opened")
def test_a_gpt_where_there_is_no_translator_and_a_target_that_does_not_fit(small_runs, tmp_path, capsys):
    shutil.copytree(small_runs / "gpt", tmp_path / "gpt")
    assert call(capsys, "the cat", "-o", "page.html") == (0, "page.html\n", "")
    assert data_of(tmp_path / "page.html")["text"] == "the cat"
    given = "Ana", "--target", "canta " * 64, "--model", small_runs / "translate", "-o", "page.html"
    assert "must have 1 … 63 tokens, got 64: leave it out" in call(capsys, *given)[2]


@pytest.mark.parametrize(
    "args, message",
    [
        ("Ana -o page.png", "the name must end in .html"),
        ("Ana -o nowhere/page.html", "there is no folder nowhere"),
        ("Ana --model nowhere", "nowhere is not the folder of a run"),
        ("cat --target sat --model gpt", "target is for a translator"),
        ("good --target sat --model classify", "target is for a translator"),
        ("€ --model gpt", "does not have: '€'"),
        ("  --model translate", "the sentence is empty"),
        ("cat --pretrained nowhere", "there is no folder nowhere; models are not downloaded"),
    ],
)
def test_what_it_cannot_do(small_runs, capsys, monkeypatch, args, message):
    monkeypatch.chdir(small_runs)
    text, *others = args.split(" ")
    code, out, err = call(capsys, text, *filter(None, others), *([] if "-o" in others else ["-o", "page.html"]))
    assert (code, out, len(err.splitlines())) == (2, "", 1) and message in err
