"""`transformer-np explore`: where its model comes from, and which page it writes."""

import json
import re

import pytest

from transformer_np.cli import main
from transformer_np.data import english_portuguese
from transformer_np.data.corpus import LECTURE_SENTENCE, with_full_stops


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """The addresses that the command opens; in a folder without a run."""
    addresses = []
    monkeypatch.setattr("webbrowser.open", addresses.append)
    monkeypatch.chdir(tmp_path)
    return addresses


def data_of(path):
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)[1])


def test_alone_it_opens_the_finished_page(opened, tmp_path, capsys):
    assert main(["explore"]) == 0
    assert opened == [(tmp_path / "explore.html").as_uri()]
    captured = capsys.readouterr()
    assert captured.out.strip() == "explore.html" and "no trained model found" in captured.err
    data = data_of(tmp_path / "explore.html")
    assert data["text"] == LECTURE_SENTENCE and data["tokenizers"][0]["kind"] == "bpe" and len(data["lessons"]) == 9
    assert len(data["examples"]) > 5 and any(text.endswith(".") for text in data["examples"])
    assert main(["explore", "Zoë isn't tired!", "--live", "-o", "live.html"]) == 2
    assert "transformer-np train translate" in capsys.readouterr().err and len(opened) == 1


def test_a_gpt_proposes_lines_of_its_text(opened, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("".join(f"line {i} of a text that is worth reading\n" for i in range(99)), "utf-8")
    train = "train gpt --steps 2 --d-model 8 --heads 2 --layers 1 --block-size 16 --out run --workers 1 -q --text"
    assert main([*train.split(), str(text)]) == 0
    assert main(["explore", "--model", "run", "-o", "gpt.html"]) == 0
    data = data_of(tmp_path / "gpt.html")
    assert re.fullmatch(r"line \d+ of a text that", data["text"]) and data["text"] in data["examples"]
    text.unlink()
    assert main(["explore", "--model", "run", "-o", "gpt.html"]) == 2
    assert main(["explore", "line 1", "--live", "--model", "run", "-o", "gpt.html"]) == 0
    assert data_of(tmp_path / "gpt.html")["examples"] == []


def test_the_example_reads_full_stops_and_has_not_seen_the_lectures_sentence():
    pairs = with_full_stops(english_portuguese()[::7])
    sources = [source for source, _ in pairs]
    assert LECTURE_SENTENCE not in sources and LECTURE_SENTENCE + "." not in sources
    stops = sum(source.endswith(".") for source in sources)
    statements = sum(not source.endswith("?") for source in sources)
    assert 0.4 < stops / statements < 0.6
    assert all(source.endswith(".") == target.endswith(".") for source, target in pairs)
