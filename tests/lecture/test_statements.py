"""The statements of the lecture's documents: their checks, their pages and a document of one's own."""

import importlib.util
import inspect
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np.cli import main
from transformer_np.lecture import DOCUMENTS, claims, format_statements, read_statements
from transformer_np.lecture.comparison import ERRATUM, SLIP, TRUNCATED
from transformer_np.notebooks.texts import number, texts

ROOT = Path(__file__).parents[2]
STATEMENTS = read_statements()
MINE = """
[[statement]]
document = "my slides"
place = "page 3"
says = "equal scores have equal weights"
check = "my_checks:uniform"
"""


def test_every_statement_is_as_stated():
    assert [statement.says for statement in STATEMENTS if not statement.holds()] == []
    assert len(STATEMENTS) > 80 and {statement.document for statement in STATEMENTS} == set(DOCUMENTS)
    assert {statement.row for statement in STATEMENTS} - {None} == set(range(1, 25))
    assert all(bool(s.true) == (s.verdict in (SLIP, ERRATUM, TRUNCATED)) for s in STATEMENTS)
    assert sum(s.verdict == SLIP for s in STATEMENTS) >= 15


def test_every_check_is_used_and_every_notebook_exists():
    defined = {name for name, f in inspect.getmembers(claims, inspect.isfunction) if f.__module__ == claims.__name__}
    assert {s.check for s in STATEMENTS} - {""} == {name for name in defined if not name.startswith("_")}
    numbers = {number(text) for text in texts()}
    assert all(set(s.notebook.split(", ")) <= numbers for s in STATEMENTS)


@pytest.mark.parametrize(
    ("function", "wrong", "broken"),
    [
        ("softmax", lambda x, axis=-1: x, {"attention_formula", "probability_vector"}),
        (
            "sinusoidal_encoding",
            lambda length, d_model, dtype=np.float32: np.ones((length, d_model), dtype),
            {"encoding_formula", "wavelengths", "unique_and_bounded"},
        ),
        ("embedding", lambda ids, table: table[np.zeros_like(ids)], {"rows_are_words"}),
        ("attention_scores", lambda q, k, mask=None: q @ k.swapaxes(-1, -2), {"attention_formula"}),
    ],
)
def test_a_check_fails_where_the_package_is_broken(function, wrong, broken):
    with patch.object(F, function, wrong):
        for name in broken:
            assert not getattr(claims, name)(), name


def test_the_pages_are_made_from_the_statements(capsys):
    spec = importlib.util.spec_from_file_location("lecture_pages", ROOT / "docs" / "lecture_pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    assert pages.main(["--check"]) == 0, "run python docs/lecture_pages.py"
    other = [*STATEMENTS, STATEMENTS[0]]
    assert pages.coverage(other) != pages.coverage(STATEMENTS)


@pytest.mark.parametrize(("answer", "status"), [("True", 0), ("False", 1)])
def test_a_document_of_ones_own(tmp_path, monkeypatch, capsys, answer, status):
    (tmp_path / "mine.toml").write_text(MINE, encoding="utf-8")
    (tmp_path / "my_checks.py").write_text(f"def uniform():\n    return {answer}\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_checks", raising=False)
    assert main(["lecture", "--no-train", "--statements", str(tmp_path / "mine.toml")]) == status
    out = capsys.readouterr().out
    assert "my slides:  of 1: holds 1" in out
    assert ("NOT as stated  my slides, page 3: equal scores have equal weights (my_checks:uniform)" in out) == status
    sys.modules.pop("my_checks")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("place", "where", "statement 1: unknown field where; fields: document, place"),
        ('says = "equal scores have equal weights"\n', "", "statement 1 has no says"),
        ('check = "my_checks:uniform"\n', "", "neither a row nor a check: 'equal scores"),
        ('check = "my_checks:uniform"', "row = 25", "there is no row 25"),
        ("[[statement]]", "[[statement", "is not TOML"),
        ("[[statement]]", "[[claim]]", r"has no \[\[statement\]\]"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path, old, new, message):
    path = tmp_path / "mine.toml"
    path.write_text(MINE.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_statements(path)


def test_a_file_is_read_as_other_files_are(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text(MINE, encoding="utf-8-sig")
    assert read_statements(path)[0].document == "my slides"
    assert main(["lecture", "--no-train", "--statements", str(tmp_path / "other.toml")]) == 2
    assert f"there is no file {tmp_path / 'other.toml'}" in capsys.readouterr().err


def test_no_pictures_without_training(tmp_path, capsys):
    assert main(["lecture", "--no-train", "--figures", str(tmp_path)]) == 2
    assert "leave out --out and --figures" in capsys.readouterr().err


def test_a_check_that_does_not_exist(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(MINE.replace("my_checks:uniform", "no_such_check"), encoding="utf-8")
    with pytest.raises(ValueError, match='check "no_such_check" cannot be found'):
        read_statements(path)[0].holds()


def test_the_report_fits_the_terminal():
    for width in (72, 110):
        text = format_statements(STATEMENTS, width)
        assert max(map(len, text.splitlines())) <= width and "NOT" not in text
        assert text.count("\nslip  ") == sum(s.verdict == SLIP for s in STATEMENTS)
        assert "illustrated slides:  of 8: holds 6, reproduced 1, slip 1\n" in text  # not "6 holds"
