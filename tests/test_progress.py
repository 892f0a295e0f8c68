"""Progress: a bar on a terminal, nothing elsewhere and nothing with -q."""

import io
import json
import sys

import numpy as np
import pytest

from transformer_np import cli, data
from transformer_np.bench import complexity
from transformer_np.commands import complexity as command
from transformer_np.support import progress

MANY = 500
CURVES = [complexity.Curve("recurrent", "time", "n", (1, 2, 4), (3.0, 6.0, 12.0), 1)]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def a_terminal(monkeypatch):
    """In place of standard error; called in the test, because pytest sets its own after the fixtures."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "SECONDS", 0)
    monkeypatch.setattr(progress, "MANY", MANY)
    return sys.stderr


def test_a_bar_on_a_terminal(monkeypatch):
    terminal = a_terminal(monkeypatch)
    assert list(progress.progress(range(MANY), "counting")) == list(range(MANY))
    assert "counting" in terminal.getvalue() and f"/{MANY}" in terminal.getvalue()


def test_nothing_elsewhere(monkeypatch):
    things = range(10**6)
    assert progress.progress(things, "counting") is things  # pytest's stderr is no terminal
    monkeypatch.setattr(sys, "stderr", None)
    assert progress.progress(things, "counting") is things


def test_nothing_for_little_and_nothing_if_unwanted(monkeypatch):
    terminal = a_terminal(monkeypatch)
    few, many = range(MANY - 1), range(MANY)
    assert progress.progress(few, "counting") is few
    with progress.showing_progress(False):
        assert progress.progress(many, "counting") is many
        progress.note("still counting")
    assert terminal.getvalue() == ""
    progress.note("counted")
    assert terminal.getvalue() == "counted\n"


@pytest.mark.parametrize("binary", [False, True])
def test_large_vectors(binary, monkeypatch, tmp_path):
    terminal = a_terminal(monkeypatch)
    words = [f"w{i}" for i in range(MANY)]
    data.write_vectors(tmp_path / "words.vec", words, np.ones((MANY, 1), np.float32), binary)
    read, vectors = data.read_vectors(tmp_path / "words.vec")
    assert read == words and len(vectors) == MANY
    assert "reading vectors" in terminal.getvalue()


@pytest.mark.parametrize("tokenizer", [data.WordTokenizer.train(["a b a b"]), data.BPETokenizer([])])
def test_a_large_text(tokenizer, monkeypatch):
    terminal = a_terminal(monkeypatch)
    assert len(tokenizer.encode("a " * 10)) >= 10 and terminal.getvalue() == ""
    tokenizer.encode("a " * MANY)
    assert "tokenizing" in terminal.getvalue()


def test_the_command_is_quiet(monkeypatch, tmp_path):
    """-q holds for what a command calls, however deep; here a command that only reads vectors."""
    terminal = a_terminal(monkeypatch)
    data.write_vectors(tmp_path / "words.vec", [f"w{i}" for i in range(MANY)], np.ones((MANY, 1), np.float32), True)
    monkeypatch.setattr(complexity, "gradients", lambda: {"recurrent": [1.0, 0.5, 0.25]})
    monkeypatch.setattr(command, "_with_one_thread", lambda *_: data.read_vectors(tmp_path / "words.vec") and CURVES)
    assert cli.main(["complexity", "-q"]) == 0 and terminal.getvalue() == ""
    assert cli.main(["complexity"]) == 0 and "reading vectors" in terminal.getvalue()


def test_commands_with_progress_can_be_quiet():
    for words in ("bench", "lecture", "complexity", "train gpt", "homework grade x"):
        assert cli.build_parser().parse_args([*words.split(), "-q"]).quiet


@pytest.mark.long
def test_complexity_as_json(monkeypatch, capsys):
    monkeypatch.setattr(command, "_with_one_thread", lambda *_: CURVES)
    assert cli.main(["complexity", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (curve,) = found["curves"]
    assert curve["sizes"] == [1, 2, 4] and curve["exponent"] == pytest.approx(1) and curve["agrees"]
    assert found["sequential_operations"]["recurrent"] == found["lengths"]
    assert found["path_lengths"]["self-attention"] == [1, 1, 1]
    assert len(found["gradients"]["recurrent"]) > 10
