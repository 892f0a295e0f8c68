"""What is a student's answer, for every shape of a hand-in: `check` and `grade` agree, to the last remark."""

import json
from functools import cache
from itertools import product

import pytest
from test_grade import PATIENT, SOFTMAX

from transformer_np.grading.run import Grading, _seed_of
from transformer_np.homework import all_exercises, load
from transformer_np.homework.course import parse_course
from transformer_np.homework.stubs import stub, stub_file
from transformer_np.homework.submission import Checks
from transformer_np.notebooks.texts import student_copy, texts

COURSE = parse_course('exercises = ["softmax", "relu"]')
ANSWERS = {
    "right": SOFTMAX,
    "wrong": "import numpy as np\n\n\ndef softmax(x, axis=-1):\n    return np.exp(x) / np.exp(x).sum()\n",
    "not begun": "def softmax(x, axis=-1):\n    raise NotImplementedError\n",
}
STUBS = stub_file([all_exercises()[name] for name in COURSE.points])
RELU = stub(all_exercises()["relu"])


# --- shapes ----------------------------------------------------------------------------------------------------------


def notebook(*cells, **more):
    """A notebook of code cells; ("markdown", text) for another."""
    pairs = [cell if isinstance(cell, tuple) else ("code", cell) for cell in cells]
    made = [{"cell_type": kind, "source": text.splitlines(True), "metadata": {}} for kind, text in pairs]
    made = [one | ({"outputs": [], "execution_count": None} if one["cell_type"] == "code" else {}) for one in made]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more})


def saved_again(text):
    """A notebook after it was run, formatted and saved: other metadata and outputs."""
    content = json.loads(text)
    for number, cell in enumerate(content["cells"]):
        cell["metadata"] = {"collapsed": False, "trusted": True}
        cell["source"] = cell["source"].splitlines(True) if isinstance(cell["source"], str) else cell["source"]
        if cell["cell_type"] == "code":
            cell["execution_count"] = number
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["softmax\n"]}]
            cell["source"] = [line.replace("  #", " #") for line in cell["source"]]
    return json.dumps(content, indent=2)


@cache
def course_notebooks():
    """Those that define softmax themselves, and one more."""
    chosen = [text for text in texts() if text.stem[:2] in ("02", "05", "06")]
    return {f"{text.stem}.ipynb": student_copy(text) for text in chosen}


def shapes(answer):
    """{shape: {name after the student's: content}}."""
    wrong, old = ANSWERS["wrong"].replace("sum()", "max()"), ANSWERS["not begun"]
    course = {f"/{name}": text for name, text in course_notebooks().items()}
    used = {name: saved_again(text) for name, text in course.items()}
    below = json.loads(used["/06_backpropagation.ipynb"])
    below["cells"].insert(-1, json.loads(notebook(answer))["cells"][0])
    return {
        "a file": {".py": answer},
        "a folder": {"/homework.py": answer},
        "another name": {"/my answers.py": answer},
        "Moodle": {" Lovelace_4711_assignsubmission_file/homework.py": answer},
        "Canvas": {"lovelace_12345_67890_homework-2.py": answer},
        "nbgrader": {
            "/sheet1/homework.ipynb": notebook(answer, RELU),
            "/sheet1/timestamp.txt": "2026-06-12",
        },
        "a notebook": {".ipynb": notebook(("markdown", "# Softmax"), answer)},
        "the folder of start": {"/homework.py": answer, **course},
        "the folder of start, used": {
            "/homework.py": answer,
            "/progress.json": "{}",
            "/.ipynb_checkpoints/06-checkpoint.ipynb": notebook(wrong),
            **used,
        },
        "a cell in the course's notebook": {"/homework.py": STUBS, "/06_backpropagation.ipynb": json.dumps(below)},
        "a notebook and the file of start": {"/homework.py": STUBS, "/sheet.ipynb": notebook(answer)},
        "the same twice": {"/homework.py": answer, "/homework (1).py": answer},
        "an old version": {
            "/homework.py": answer,
            "/homework - old.py": old,
            "/backup.py": STUBS,
            "/homework-Copy1.ipynb": notebook(old),
        },
        "another wrong one": {"/homework.py": answer, "/backup.py": wrong},
        "a wrong one of a better name": {"/v2.py": answer, "/homework.py": wrong},
        "an environment": {
            "/env/pyvenv.cfg": "",
            "/env/bin/activate_this.py": "raise SystemExit",
            "/src/homework.py": answer,
            **{f"/env/lib/python3.13/site-packages/{n}.py": "def softmax(x): return 0" for n in range(120)},
        },
        "an environment around": {
            "/pyvenv.cfg": "",
            "/bin/a.py": "1 / 0\nsoftmax = 1",
            "/node_modules/x/s.py": "1 / 0\nsoftmax = 1",
            "/homework.py": answer,
        },
        "unzipped": {
            "/hw 1/homework.py": answer,
            "/__MACOSX/hw 1/._homework.py": "\0\0",
            "/hw 1/.DS_Store": "x",
        },
        "a helper": {
            "/homework.py": "from parts.one import softmax\n",
            "/parts/one.py": answer,
            "/parts/train.py": "loss = 1 / 0\n",
        },
        "a cell that fails": {".ipynb": notebook("import torch", answer, "relu(")},
        "a file that fails": {"/homework.py": f"{answer}\n1 / 0\n"},
        "formatted": {".ipynb": notebook(answer, "y = (\n    3\n    != 4\n    % 5\n)", "%matplotlib inline\nx = !ls")},
        "a stub below": {".ipynb": notebook(answer, STUBS)},
        "the library beside": {"/homework.py": answer, "/transformer_np/functional/core.py": SOFTMAX},
    }


SHAPES = list(shapes(""))
TWO_WRONG = "another wrong one", "a wrong one of a better name"


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """{(shape, state): (Grade, path)}, all graded at once."""
    root, found = tmp_path_factory.mktemp("handins"), {}
    for number, (shape, state) in enumerate(product(SHAPES, ANSWERS)):
        student = f"s{number:03}"
        for name, text in shapes(f"{ANSWERS[state]}\n# {student}\n")[shape].items():
            file = root / "in" / f"{student}{name}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            found[student] = (shape, state), root / "in" / f"{student}{name}".partition("/")[0]
    grading = Grading(root / "in", root / "g.csv", COURSE, limits=PATIENT, seed=3, trust=True, workers=2)
    return {found[grade.student[:4]][0]: (grade, found[grade.student[:4]][1]) for grade in grading.run()}


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_check_and_grade_agree(graded, shape):
    for state in ANSWERS:
        grade, path = graded[shape, state]
        expected = {"right": "passed", "wrong": "wrong value", "not begun": "not started"}[state]
        if state == "not begun" and shape in TWO_WRONG:
            expected = "wrong value"  # it is the only one that is begun
        assert grade.verdicts["softmax"].outcome == expected, (state, grade.remarks, grade.verdicts["softmax"].message)
        broken = shape == "a cell that fails"  # in which relu is meant to be
        assert grade.verdicts["relu"].outcome == "not started" or broken
        try:
            checks = Checks(load(path, strict=False), seed=_seed_of(3, "softmax"))
        except ValueError as error:
            assert state == "not begun", error
            continue
        for name, verdict in grade.verdicts.items():
            standing = checks.of(name)
            assert (standing.verdict.outcome, standing.verdict.misconception) == (
                verdict.outcome,
                verdict.misconception,
            )
            where = [(one.file, one.cell, one.line) for one in standing.definitions[:1]]
            assert where == [grade.graded[name]] if name in grade.graded else not where
        assert checks.remarks(COURSE.points) == list(grade.remarks)


@pytest.mark.long
def test_what_was_not_counted_is_remarked(graded):
    assert graded["another wrong one", "right"][0].remarks == (
        "softmax: homework.py, line 4; also in backup.py, not counted",
    )
    better = graded["a wrong one of a better name", "right"][0]
    assert better.remarks == ("softmax: v2.py, line 4; also in homework.py, not counted",)
    assert better.graded_files == ["v2.py"]
    for shape in (
        "an old version",
        "the folder of start",
        "the folder of start, used",
        "an environment",
        "a stub below",
    ):
        assert not graded[shape, "right"][0].remarks, shape
