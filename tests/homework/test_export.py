"""Exercises for nbgrader and Otter: the notebooks and tests; tests/grading/test_platforms.py tries the programs."""

import json
import sys
import warnings
from functools import partial
from types import SimpleNamespace

import pytest
from shared import call

from transformer_np import cli

COURSE = """
title = "Sheet 2"
exercises = ["softmax", "softmax_backward", "AddNorm"]
core = 0.75
[points]
softmax = 4
softmax_backward = { core = 2 }
"""
FOR_LECTURE = """
import numpy as np


def softmax(x, axis=-1):
    y = np.exp(x - x.max(axis, keepdims=True))
    return y / y.sum(axis, keepdims=True)
"""


@pytest.fixture
def export(here, capsys):
    (here / "course.toml").write_text(COURSE, encoding="utf-8")
    return partial(call, capsys, "homework", "export")


def cells_of(path, kind="code"):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == kind]


def answer():
    """The names that a student's notebook has, with a softmax that is right for the lecture."""
    space = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(FOR_LECTURE, space)
    return space


def test_an_nbgrader_cell_gives_the_points_and_says_what_is_wrong(export, tmp_path):
    code, out, _ = export("source/sheet", "--for", "nbgrader", "--course", "course.toml")
    assert (code, "nbgrader generate_assignment sheet" in out) == (0, True)
    cells = cells_of(tmp_path / "source" / "sheet" / "homework.ipynb")
    about = {cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in cells if cell["metadata"]}
    points = {name: cell["metadata"]["nbgrader"].get("points") for name, cell in about.items()}
    assert points == {
        "softmax": None, "softmax-core": 3, "softmax-rest": 1, "softmax_backward": None, "softmax_backward-core": 2,
        "AddNorm": None, "AddNorm-core": 0.75, "AddNorm-rest": 0.25,
    }  # fmt: skip
    space = answer()
    exec(about["softmax-core"]["source"], space)
    with pytest.raises(AssertionError, match="right for the lecture; still to do: a row of nothing but −inf"):
        exec(about["softmax-rest"]["source"], space)
    exec(cells[0]["source"], space)
    for name in ("softmax_backward", "AddNorm"):
        exec(about[name]["source"], space)
        with pytest.raises(AssertionError, match=f"{name}: not started"):
            exec(about[f"{name}-core"]["source"], space)


def test_otter_tests_ask_for_both_parts(export, tmp_path, monkeypatch):
    code, out, _ = export("sheet", "--for", "otter", "--course", "course.toml")
    assert (code, "otter generate -t sheet/tests" in out) == (0, True)
    names = {path.stem for path in (tmp_path / "sheet" / "tests").iterdir()}
    assert names == {"AddNorm", "softmax", "softmax_backward"}
    assert 'grader.check("softmax")' in [cell["source"] for cell in cells_of(tmp_path / "sheet" / "homework.ipynb")]
    tried = []
    otter = SimpleNamespace(test_case=lambda points, name: lambda test: tried.append((points, name, test)))
    monkeypatch.setitem(sys.modules, "otter.test_files", otter)
    exec((tmp_path / "sheet" / "tests" / "softmax.py").read_text(encoding="utf-8"), {})
    (core, name, of_core), (rest, extended, of_rest) = tried
    assert (core, name, rest, extended) == (3, "softmax", 1, "softmax (extended)")
    of_core(answer()["softmax"])
    with pytest.raises(AssertionError, match="still to do"):
        of_rest(answer()["softmax"])


def test_an_export_writes_over_nothing(export, tmp_path):
    assert export("sheet", "--for", "otter", "--only", "softmax")[0] == 0
    code, _, err = export("sheet", "--for", "otter", "--only", "relu")
    assert (code, "homework.ipynb already exists" in err) == (2, True)
    assert not (tmp_path / "sheet" / "tests" / "relu.py").exists()
    assert export("sheet", "--only", "softmax")[0] == 2  # for which grader?


OWN = 'folder = "mine"\nexercises = ["center", "softmax"]\n'
CENTER = "import numpy as np\ndef center(x, axis=-1):\n    return x / np.abs(x).max(axis, keepdims=True)\n"


def test_a_teachers_exercises_go_along_to_nbgrader(export, tmp_path, monkeypatch):
    cli.main(["homework", "new", "center", "--in", "mine"])
    (tmp_path / "course.toml").write_text(OWN, encoding="utf-8")
    assert export("sheet", "--for", "nbgrader", "--course", "course.toml")[0] == 0
    assert (tmp_path / "sheet" / "exercises" / "center.py").read_text() == (tmp_path / "mine" / "center.py").read_text()
    (test,) = [c["source"] for c in cells_of(tmp_path / "sheet" / "homework.ipynb") if 'check("center"' in c["source"]]
    monkeypatch.chdir(tmp_path / "sheet")
    space = {}
    exec(CENTER, space)
    exec(test, space)
    exec(CENTER.replace("np.abs(x)", "x"), space)
    with pytest.raises(AssertionError, match="center: wrong value"):
        exec(test, space)
