"""`transformer-np start`: a student's folder, and the record of the exercises that are right in it."""

import json
import os
from types import SimpleNamespace

import pytest
from shared import call

from transformer_np import cli, plots
from transformer_np import functional as F
from transformer_np.commands import start
from transformer_np.homework import all_exercises, check, load, progress
from transformer_np.notebooks.texts import SOLUTION, copy_of, read_cells, shown, texts

ALL = len(all_exercises())


pytestmark = pytest.mark.usefixtures("here")


def test_a_students_folder(capsys, here):
    code, out, _ = call(capsys, "start", "work")
    assert code == 0 and f"homework.py with {ALL} exercises" in out
    names = {path.name for path in (here / "work").iterdir()}
    assert names == {f"{text.stem}.ipynb" for text in texts()} | {"homework.py", "progress.json"}
    for text in texts():
        notebook = json.loads((here / "work" / f"{text.stem}.ipynb").read_text(encoding="utf-8"))
        assert all(cell["outputs"] == [] for cell in notebook["cells"] if cell["cell_type"] == "code")
        assert "<summary>Solution" not in str(notebook)
        assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"]) > 5
    assert load("work/homework.py").answers.keys() == all_exercises().keys()


@pytest.mark.parametrize("exists", [False, True])
def test_a_start_that_dies_leaves_nothing(capsys, here, monkeypatch, exists):
    folder, write = here / "work", start.write_text
    if exists:
        folder.mkdir()

    def dying(path, text):
        if path.name.startswith("03"):
            raise KeyboardInterrupt
        write(path, text)

    with monkeypatch.context() as patch:
        patch.setattr(start, "write_text", dying)
        assert call(capsys, "start", "work")[0] == 130
    assert list(here.rglob("*")) == [folder] * exists
    assert call(capsys, "start", "work")[0] == 0 and (folder / "homework.py").exists()
    assert [path.name for path in here.iterdir()] == ["work"]


@pytest.mark.long
def test_a_teachers_folder(capsys, here):
    assert call(capsys, "start", "work", "--teacher")[0] == 0
    some = (here / "work" / "02_self_attention.ipynb").read_text(encoding="utf-8")
    assert "<summary>Solution" in some
    kinds = [cell["metadata"]["slideshow"]["slide_type"] for cell in json.loads(some)["cells"]]
    assert kinds[0] == "slide" and {"slide", "subslide", "-", "notes"} == set(kinds)


def test_a_file_that_is_there_stays(capsys, here, monkeypatch):
    (here / "work").mkdir()
    (here / "work" / "homework.py").write_text("mine")
    (here / "file").write_text("mine")
    for folder, why in ("work", "already contains files"), ("file", "is a file"), ("file/work", "cannot be created"):
        code, out, err = call(capsys, "start", folder)
        assert code == 2 and why in err and err.count("\n") == 1 and not out
    assert {path.name for path in here.rglob("*")} == {"work", "homework.py", "file"}
    assert (here / "work" / "homework.py").read_text() == (here / "file").read_text() == "mine"
    monkeypatch.setattr(os, "access", lambda *_: False)
    code, _, err = call(capsys, "start", "new")
    assert code == 2 and "new cannot be written: no permission" in err and err.count("\n") == 1
    assert not (here / "new").exists()


# --- the copies -------------------------------------------------------------------------------------------------------

TEXT = """---
jupyter:
---

# A title

```python tags=["varies"]
x = 1


y = 2
```

Some words.

```
plain, no cell
```


<details>
<summary>Solution</summary>

42
</details>

<!-- #region tags=["solution"] -->
## Answers
<!-- #endregion -->

```python tags=["solution"]
print(42)
```
"""


def test_reading_a_text(here):
    assert read_cells(TEXT) == [
        ("markdown", "# A title", []),
        ("code", "x = 1\n\n\ny = 2", ["varies"]),
        ("markdown", "Some words.\n\n```\nplain, no cell\n```", []),
        ("markdown", "<details>\n<summary>Solution</summary>\n\n42\n</details>", []),
        ("markdown", "## Answers", [SOLUTION]),
        ("code", "print(42)", [SOLUTION]),
    ]


SOURCE = """import numpy as np
import printed  # test

x = np.ones(3)
for i in range(3):
    assert x[i] == 1

for i in range(3):
    print(i)
    np.testing.assert_allclose(
        x, 1
    )
assert x.all()  # shown: the right one
assert x.any()  # shown
right = {1: 2}  # test
assert right"""


def test_what_a_reader_sees_of_the_tests():
    seen = "import numpy as np\n\nx = np.ones(3)\n\nfor i in range(3):\n    print(i)\n"
    assert shown(SOURCE) == seen + "assert x.all()  # the right one\nassert x.any()"
    assert shown("%pip install x") == "%pip install x" and shown("assert 1") == ""
    branches = "if x:\n    assert x\nelse:\n    print(x)"
    assert shown(branches) == branches  # an empty branch would be an error


@pytest.mark.parametrize("teacher", [False, True])
def test_copies_have_no_tests(here, teacher):
    text = here / "00_title.md"
    text.write_text(f"# Title\n\n```python\n{SOURCE}\n```\n\n```python\nassert True\n```\n", encoding="utf-8")
    title, code = (cell["source"] for cell in json.loads(copy_of(text, teacher))["cells"])
    assert title.startswith("# Title") and code == shown(SOURCE)


def test_solutions_are_for_teachers(here):
    text = here / "00_title.md"
    text.write_text(TEXT, encoding="utf-8")
    students, teachers = copy_of(text), copy_of(text, teacher=True)
    assert [cell["source"] for cell in json.loads(students)["cells"]] == [cell for _, cell, _ in read_cells(TEXT)[:3]]
    assert "42" not in students and "42" in teachers and "Answers" in teachers


# --- the record -------------------------------------------------------------------------------------------------------


def wrong(x, axis=-1):
    return x


def test_what_was_right_stays_right(here, capsys):
    check("softmax", F.softmax)
    assert capsys.readouterr().out == "softmax: right.\n" and not list(here.iterdir())  # there is no record
    (here / "progress.json").write_text("{}")
    check("softmax", wrong)
    assert capsys.readouterr().out.endswith(f" 0 of {ALL} exercises right\n")
    check("softmax", F.softmax)
    assert capsys.readouterr().out.endswith(f" 1 of {ALL} exercises right\n")
    (here / "course.toml").write_text('exercises = ["softmax"]')  # of these `status` tells, too
    check("softmax", F.softmax)
    assert capsys.readouterr().out.endswith(" 1 of 1 exercise right\n")
    (here / "course.toml").unlink()
    check("softmax", wrong, quiet=True)
    check("relu", lambda x: ..., quiet=True)
    entries = json.loads((here / "progress.json").read_text())
    assert entries == {"softmax": {"outcome": "passed", "misconception": None, "where": "notebook"}}
    (here / "progress.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"progress\.json is damaged"):
        check("softmax", F.softmax)


@pytest.mark.long
def test_status_shows_it(here, capsys):
    (here / "progress.json").write_text("{}")
    (here / "homework.py").write_text("import numpy as np\n\n\ndef relu(x):\n    return np.maximum(0, x)\n")
    check("softmax", F.softmax, quiet=True)
    check("tanh", wrong, quiet=True)
    assert cli.main(["homework", "status", "-o", "progress.png"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert next(line for line in lines if " softmax " in line).endswith("not started; right before, in a notebook")
    assert next(line for line in lines if " tanh " in line).endswith("not started; in a notebook: returns x")
    assert lines[-1] == f"1 of {ALL} exercises right in homework.py, 1 more in a notebook or before"
    assert set(json.loads((here / "progress.json").read_text())) == {"softmax", "tanh", "relu"}
    assert (here / "progress.png").stat().st_size > 1000


def test_the_picture_of_status_shows_what_its_table_shows(here, monkeypatch):
    """Of the course alone, and without a progress.json."""
    (here / "homework.py").write_text("def relu(x):\n    return x * (x > 0)\n")
    (here / "course.toml").write_text('exercises = ["softmax", "relu"]\n')
    drawn = []
    monkeypatch.setattr(plots, "progress", lambda found: SimpleNamespace(savefig=lambda _: drawn.append(found)))
    assert cli.main(["homework", "status", "-o", "progress.png"]) == 0
    assert drawn == [{"Self-attention": (0, 0, 1), "Feed-forward network and layer norm": (1, 0, 1)}]


def test_the_picture_shows_the_numbers(here):
    entries = {"softmax": {"outcome": "passed"}, "attention_scores": {"outcome": "wrong value"}}
    (here / "progress.json").write_text(json.dumps(entries))
    (axes,) = progress().axes
    texts = [text.get_text() for text in axes.texts]
    assert "1 of 3" in texts and axes.get_title(loc="left") == f"1 of {ALL} exercises right"
    row = [label.get_text() for label in axes.get_yticklabels()].index("Self-attention")
    widths = [bars[row].get_width() for bars in axes.containers]
    assert widths == [3, 1, 1]  # all, right, tried
