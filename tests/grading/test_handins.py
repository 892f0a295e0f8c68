"""What is a student's answer, for every shape of a hand-in: `check` and `grade` agree, to the last remark."""

import io
import json
import subprocess
import sys
from functools import cache
from itertools import product

import pytest
from test_grade import SOFTMAX, grade, hand_in

from transformer_np import cli
from transformer_np.grading import run
from transformer_np.grading.results import seed_of
from transformer_np.grading.sandbox.session import Limits
from transformer_np.homework import all_exercises, checking, load, magics
from transformer_np.homework.answers import survey
from transformer_np.homework.course import parse_course
from transformer_np.homework.stubs import stub, stub_file
from transformer_np.homework.submission import Checks
from transformer_np.notebooks.texts import copy_of, texts

COURSE = parse_course('exercises = ["softmax", "relu"]')
ANSWERS = {
    "right": SOFTMAX,
    "wrong": (
        "import numpy as np\n\n\ndef softmax(x, axis=-1):\n    return np.exp(x) / np.exp(x).max(axis, keepdims=True)\n"
    ),
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


@cache
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
    return {f"{text.stem}.ipynb": copy_of(text) for text in chosen}


def shapes(answer):
    """{shape: {name after the student's: content}}."""
    wrong, old = ANSWERS["wrong"].replace("np.exp(x)", "x"), ANSWERS["not begun"]
    course = {f"/{name}": text for name, text in course_notebooks().items()}
    used = {name: saved_again(text) for name, text in course.items()}
    below = json.loads(used["/06_backpropagation.ipynb"])
    below["cells"].insert(-1, json.loads(notebook(answer))["cells"][0])
    return {
        "a file": {".py": answer},
        "Moodle": {" Lovelace_4711_assignsubmission_file/homework.py": answer},
        "Canvas": {"lovelace_12345_67890_homework-2.py": answer},
        "nbgrader": {"/sheet1/homework.ipynb": notebook(answer, RELU), "/sheet1/timestamp.txt": "2026-06-12"},
        "a notebook": {".ipynb": notebook(("markdown", "# Softmax"), answer)},
        "the folder of start": {"/homework.py": answer, **course},
        "the folder of start, used": {
            "/homework.py": answer, "/progress.json": "{}", **used,
            "/.ipynb_checkpoints/06-checkpoint.ipynb": notebook(wrong),
        },
        "a cell in the course's notebook": {"/homework.py": STUBS, "/06_backpropagation.ipynb": json.dumps(below)},
        "a notebook and the file of start": {"/homework.py": STUBS, "/sheet.ipynb": notebook(answer)},
        "the same twice": {"/homework.py": answer, "/homework (1).py": answer},
        "an old version": {
            "/homework.py": answer, "/homework - old.py": old, "/backup.py": STUBS,
            "/homework-Copy1.ipynb": notebook(old),
        },
        "another wrong one": {"/homework.py": answer, "/backup.py": wrong},
        "a wrong one of a better name": {"/v2.py": answer, "/homework.py": wrong},
        "an environment": {
            "/env/pyvenv.cfg": "", "/env/bin/activate_this.py": "raise SystemExit", "/src/homework.py": answer,
            **{f"/env/lib/python3.13/site-packages/{n}.py": "def softmax(x): return 0" for n in range(120)},
        },
        "an environment around": {
            "/pyvenv.cfg": "", "/bin/a.py": "1 / 0\nsoftmax = 1", "/node_modules/x/s.py": "1 / 0\nsoftmax = 1",
            "/homework.py": answer,
        },
        "unzipped": {"/hw 1/homework.py": answer, "/__MACOSX/hw 1/._homework.py": "\0\0", "/hw 1/.DS_Store": "x"},
        "a helper": {
            "/homework.py": "from parts.one import softmax\n", "/parts/one.py": answer,
            "/parts/train.py": "loss = 1 / 0\n",
        },
        "a package": {"/own/__init__.py": "from .core import softmax\n", "/own/core.py": answer},
        "a program": {".py": f"import argparse\nargparse.ArgumentParser().parse_args()\n{answer}"},
        "a cell that fails": {".ipynb": notebook("import torch", answer, "relu(")},
        "a file that fails": {"/homework.py": f"{answer}\n1 / 0\n"},
        "the library beside": {"/homework.py": answer, "/transformer_np/functional/core.py": SOFTMAX},
    }  # fmt: skip


SHAPES = list(shapes(""))
TWO_WRONG = "another wrong one", "a wrong one of a better name"
SEVERAL = *TWO_WRONG, "the same twice", "an old version", "the folder of start, used"


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory):
    """{(shape, state): (Grade, path)}, all graded at once."""
    folder = tmp_path_factory.mktemp("handins") / "in"
    cases = [(shape, state) for shape, state in product(SHAPES, ANSWERS) if state != "wrong" or shape in SEVERAL]
    for number, (shape, state) in enumerate(cases):
        files = shapes(f"{ANSWERS[state]}\n# {number}\n")[shape]
        hand_in(folder, {f"s{number:03}{name}": text for name, text in files.items()})
    grades = grade(folder, COURSE, seed=3).values()
    paths = [next(folder.glob(f"{one.student[:4]}*")) for one in grades]
    return dict(zip(cases, zip(grades, paths, strict=True), strict=True))


@pytest.mark.long
def test_check_and_grade_agree(handed_in, monkeypatch):
    """One test, because they are graded once."""
    monkeypatch.setattr(checking, "find_place", lambda *_: None)  # only `check` runs the edited answer
    for (shape, state), (got, path) in handed_in.items():
        expected = {"right": "passed", "wrong": "wrong value", "not begun": "not started"}[state]
        if state == "not begun" and shape in TWO_WRONG:
            expected = "wrong value"  # it is the only one that is begun
        of_softmax = got.verdicts["softmax"]
        assert of_softmax.outcome == expected, (shape, state, got.remarks, of_softmax.message)
        broken = shape == "a cell that fails"  # in which relu is meant to be
        assert got.verdicts["relu"].outcome == "not started" or broken
        try:
            checks = Checks(load(path, time_limit=60, strict=False), seed=seed_of(3, "softmax"))
        except ValueError as error:
            assert state == "not begun", (shape, error)
            continue
        assert_agree(checks, got, (shape, state))


def assert_agree(checks, got, case):
    """That the Checks of a hand-in say the same as its Grade. case: what is told if they do not"""
    for name, verdict in got.verdicts.items():
        standing = checks.of(name)
        of_check = standing.verdict
        assert (of_check.outcome, of_check.misconception) == (verdict.outcome, verdict.misconception), case
        where = [(one.file, one.cell, one.line) for one in standing.definitions[:1]]
        assert where == ([got.graded[name]] if name in got.graded else []), case
    assert checks.remarks(COURSE.points) == list(got.remarks), case


@pytest.mark.long
def test_what_was_not_counted_is_remarked(handed_in):
    (remark,) = handed_in["another wrong one", "right"][0].remarks
    assert remark == "softmax: homework.py, line 4; also in backup.py, not counted"
    better = handed_in["a wrong one of a better name", "right"][0]
    assert better.remarks == ("softmax: v2.py, line 4; also in homework.py, not counted",)
    assert better.graded_files == ["v2.py"]
    for shape in ("an old version", "the folder of start", "the folder of start, used", "an environment"):
        assert not handed_in[shape, "right"][0].remarks, shape


def checked(folder, files, **how):
    """The Checks of {name: content} in a folder."""
    return Checks(load(hand_in(folder, files), strict=False, **how))


# --- names -----------------------------------------------------------------------------------------------------------

ELSEWHERE = {
    "def ReLU(x):\n    return x\n": "`ReLU` (homework.py, line 1) is not the name of an exercise: did you mean `relu`?",
    "def rellu(x):\n    return x\n": "did you mean `relu`?",
    "class Model:\n    def relu(x):\n        return x\n": "`relu` is inside of the class `Model` (homework.py, line 2)",
    "def f():\n    def relu(x):\n        return x\n": "`relu` is inside of the function `f` (homework.py, line 2)",
    "if __name__ == '__main__':\n    def relu(x):\n        return x\n": "`relu` is under `if __name__",
}


@pytest.mark.parametrize("text", ELSEWHERE)
def test_an_answer_where_nobody_looks_is_named(tmp_path, text):
    checks = checked(tmp_path, {"homework": f"{text}\n\n{RELU}"})
    (remark,) = checks.remarks(["relu"])
    assert ELSEWHERE[text] in remark
    assert checks.of("relu").verdict.outcome == "not started"
    assert not checked(tmp_path, {"homework": f"{text}\n\nrelu = abs\n"}).remarks(["relu"])


@pytest.mark.parametrize("call", ['check("relu", mine)', 'verdict = homework.check("relu", answer=mine)'])
def test_what_a_notebook_checks_as_an_exercise_is_its_answer_whatever_its_name_is(tmp_path, call):
    cells = ["from transformer_np import homework\nfrom transformer_np.functional import relu", "", call]
    for body, outcome in (("return x * (x > 0)", "passed"), ("return x", "wrong value"), ("...", "not started")):
        cells[1] = f"check = homework.check\n\n\ndef mine(x):\n    {body}"
        checks = checked(tmp_path, {"homework.ipynb": notebook(*cells)})
        standing = checks.of("relu")
        assert standing.verdict.outcome == outcome and not checks.remarks(["relu"])
        assert [(one.cell, one.line) for one in standing.definitions] == [(2, 4)]


@pytest.mark.long
@pytest.mark.parametrize("name", ["homework.ipynb", "homework.py"])
def test_the_time_to_load_matplotlib_is_not_the_students(tmp_path, name):
    first = "import sys\nassert any(name[:4] == 'matp' for name in sys.modules)\nfrom transformer_np import homework"
    content = notebook(first, "homework.progress()", RELU) if name.endswith("b") else f"{first}\n{RELU}# to plot\n"
    (tmp_path / name).write_text(content, encoding="utf-8")
    code = f"from transformer_np.homework import load; load({str(tmp_path / name)!r})"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", ["markdown", "raw", "%%bash"])
def test_an_answer_that_is_no_code_is_named(tmp_path, kind, capsys):
    both = "def relu(x):\n    return x\n\n\ndef gelu(x):\n    return x\n"
    text = f"```python\n{both}```" if kind == "markdown" else both
    cell = ("code", f"{kind}\n{text}") if kind[0] == "%" else (kind, text)
    files = {"homework.ipynb": notebook("def softmax(x):\n    return x", cell)}
    (remark,) = checked(tmp_path, files).remarks(["relu", "gelu"])
    assert "`relu`, `gelu` are in " in remark and "(homework.ipynb, cell 2): make it a code cell" in remark
    hand_in(tmp_path, {"homework.ipynb": notebook("1 / 0", cell)})
    assert cli.main(["homework", "check", str(tmp_path / "homework.ipynb")]) == 1
    assert f"! {remark}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "begun", "why"),
    [
        (
            f"{RELU}\n\ndef softmax(x, axis=-1):\n    return x +\n\n\nclass tanh(:\n    pass\n",
            "softmax",
            "could not be loaded (S",
        ),
        (
            "1 / 0\nfrom transformer_np.functional import softmax\nfrom mine import tanh\n",
            "tanh",
            "has a line that fails (Z",
        ),
    ],
)
def test_what_is_not_written_or_the_librarys_is_not_begun_where_a_file_fails(tmp_path, text, begun, why):
    checks = checked(tmp_path, {"homework": text})
    of = {name: checks.of(name).verdict for name in ("relu", "softmax", "gelu", begun)}
    assert {name for name, verdict in of.items() if verdict.outcome != "not started"} == {begun}
    assert f"{begun} is missing because homework.py {why}" in of[begun].message


def test_the_lines_of_code_that_is_no_python(tmp_path):
    """A parenthesis may begin one, and so may a blank that Python does not know: each is read once."""
    text = "def relu(\n    x,\n):\n\u00a0   y = x\n" + "    y = x  # a comment of some length\n" * 40
    text += "    raise NotImplementedError\n\ndef gelu(x):\n\u3000return x\n"
    assert survey({"homework.py": text.encode()}).begun == {"gelu": {"homework.py": None}}


def test_a_stub_beside_an_answer_is_not_what_is_judged(tmp_path):
    """Not even beside one that cannot be loaded."""
    beside = checked(tmp_path / "two", {"homework": RELU, "answers": "def relu(x):\n    return x * (x > 0)\n"})
    assert [one.file for one in beside.of("relu").definitions] == ["answers.py"]
    mine = notebook("assert False", "def relu(x):\n    return x +")  # another cell fails first
    checks = checked(tmp_path / "one", {"homework": RELU, "mine.ipynb": mine})
    verdict = checks.of("relu").verdict
    assert verdict.outcome == "crashed"
    assert "relu is missing because mine.ipynb, cell 2, fails." in verdict.message
    assert checks.remarks(["relu"]) == ["mine.ipynb has a cell that fails (AssertionError)"]


@pytest.mark.long
@pytest.mark.parametrize("file", ["homework.ipynb", pytest.param("homework.py", marks=pytest.mark.release)])
def test_what_is_beside_code_that_does_not_end_counts(tmp_path, file):
    right = "def relu(x):\n    return x * (x > 0)"
    for student, code in {"ada": "while True: pass", "ben": "import os\nos._exit(0)"}.items():
        cells = right, code, SOFTMAX
        text = notebook(*cells) if file.endswith(".ipynb") else "\n".join(cells)
        hand_in(tmp_path / "in", {f"{student}/{file}": text})
    ada, ben = grade(tmp_path / "in", COURSE, limits=Limits(seconds=1)).values()
    checks = Checks(load(tmp_path / "in" / "ada", time_limit=1, strict=False))
    assert list(ada.remarks) == checks.remarks(COURSE.points)
    assert f'"{file}, cell 2"' in ada.not_loaded[file] or f'"{file}", line 3' in ada.not_loaded[file]
    assert ada.remarks == (f"{file} has code that takes too long, which was left out",)
    for told in (ada.verdicts, ben.verdicts, {name: checks.of(name).verdict for name in COURSE.points}):
        assert told["relu"].passed and told["softmax"].passed


def test_what_is_below_the_second_code_that_does_not_end_does_not_count(tmp_path):
    cells = ["while True: pass", "def relu(x):\n    return x * (x > 0)", "while True: pass", SOFTMAX]
    checks = checked(tmp_path, {"homework": "\n".join(cells)}, time_limit=0.5)
    assert checks.of("relu").passed
    assert checks.of("softmax").verdict.message.startswith("softmax: crashed. softmax is missing because")


@pytest.mark.parametrize(
    "how", ["from helping import positive", "from .helping import positive", "from . import helping"]
)
def test_a_helper_may_be_imported_inside_of_an_answer(tmp_path, how):
    helping = "def positive(x):\n    return x * (x > 0)\n"
    text = f"def relu(x):\n    {how}\n    return {how.split()[-1].replace('helping', 'helping.positive')}(x)\n"
    hand_in(tmp_path / "src", {"helping": helping, "homework": text})
    alone = ["homework.py imports helping from its folder: hand in both"]
    for path, remarks in ((tmp_path, []), (tmp_path / "src", []), (tmp_path / "src" / "homework.py", alone)):
        checks = Checks(load(path))
        assert (checks.of("relu").passed, checks.remarks(["relu"])) == (True, remarks)
    assert "helping" not in sys.modules


def test_a_file_that_asks_is_refused_as_in_grade_even_where_somebody_types(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("ada\n"))
    (remark,) = checked(tmp_path, {"homework": "name = input()\n" + SOFTMAX}).remarks(["softmax"])
    assert "input() is not possible: nobody types while an answer is checked" in remark


def test_an_import_that_works_only_here_is_remarked(tmp_path):
    imports = "import json, numpy.ma, pytest\nfrom matplotlib import pyplot\nfrom transformer_np import functional\n"
    tried = "try:\n    import ruff\nexcept ImportError:\n    ruff = None\n"
    (remark,) = checked(tmp_path, {"homework": imports + tried + SOFTMAX}).remarks(["softmax"])
    assert remark == "homework.py imports pytest, which is not there where answers are graded"


def test_a_file_that_is_only_here_is_remarked(tmp_path, monkeypatch):
    (tmp_path / "scale.json").write_text("[1]")
    monkeypatch.chdir(tmp_path)
    text = f"import json\n{SOFTMAX}\nSCALE = json.load(open('scale.json')), 'other.json', 'homework.py'\n"
    (remark,) = checked(tmp_path, {"homework": text}).remarks(["softmax"])
    assert remark.startswith("homework.py names the file scale.json, which is not there where answers are graded")


# --- cells -----------------------------------------------------------------------------------------------------------

CELLS = r"""
x = !ls
relu = len(x) == 0 and relu or relu
---
!pip install \
    numpy
---
!ls
%matplotlib inline
x?
?x
np.abs??
---
%%bash
rm -r /
---
%timeit relu(np.ones(3))
t = %timeit -o relu(np.ones(3))
print(t.best, f'{t.average:.2f}')
---
%time y = relu(np.ones(3))
assert y.sum() == 3
---
%%time
y = relu(np.ones(3))
assert y.sum() == 3
---
%%capture out
out.show()
---
text = '''
%d
!ls
?
'''
assert text % 3 == '\n3\n!ls\n?\n'
---
y = (
    3
    != 4
)
y = (
    7
    % 5
    / 2
)
---
import asyncio
await asyncio.sleep(0.001)
y = await asyncio.gather(asyncio.sleep(0, 3))
assert y == [3]
---
async def f():
    return 3

assert await f() == 3
---
# a<U+2028>b
y = 3
---
y = 'a<U+0085>b'
assert len(y) == 3
---
def f():
    '''
    # In [3]:
    '''

assert 'In [3]' in f.__doc__
---
display(3)
get_ipython().run_line_magic('x', '')
---
from IPython import get_ipython
from IPython.display import display, HTML, Math, Image
display(HTML('x'))
Math('x')
get_ipython().system('ls')
---
import ipywidgets as widgets
widgets.interact(print, x=3)

@widgets.interact(x=3)
def moved(x):
    return x

assert moved(3) == 3
---
>>> y = 3
---
In [3]: y = 3
---
    y = 3
    z = 4
---


%%time
y = 3
---
if True:
    %matplotlib inline
    y = 3
---
import matplotlib.pyplot as plt
fig, ax = plt.subplots()
plt.show()
---
from tqdm.notebook import tqdm
assert sum(tqdm([1, 2])) == 3
---
if __name__ == '__main__':
    z = 5
---
assert z == 5
---
%load_ext autoreload
%autoreload 2
---
print(In, Out)
"""
CELLS = CELLS[1:-1].replace("<U+2028>", "\u2028").replace("<U+0085>", "\x85").split("\n---\n")


ABSENT = "no_such_package"  # as torch, pandas and seaborn behind the walls
TOP = f"import {ABSENT}.nn as nn, {ABSENT}\nfrom {ABSENT}.types import Shape\n{ABSENT}.set(0)\nimport numpy as np\n"
USED = (
    "class Net(nn.Module):\n    pass\n\n\n@nn.compiled\ndef relu(x: Shape | None, y: Shape[3] = None):\n"
    "    return np.maximum(x, 0)\n"
)
RIGHT = "def relu(x):\n    return x * (x > 0)\n"
MOUNT = "from google.colab import drive, files\ndrive.mount('/x')\n"
HANDED_IN = {  # {name: (content, or the files of a folder, points, part of the only remark)}
    "files without an answer": (
        {f"a{number}.py": "raise SystemExit\n" for number in range(120)}
        | {"train.py": "'''With softmax.'''\nimport homework\n1 / 0\n", "sub/homework.py": f"exec({RIGHT!r})\n"},
        1, "only the first 100 files were read",
    ),
    "all cells.ipynb": (
        notebook("import numpy as np\n\n\ndef relu(x):\n    return np.maximum(x, 0)", *CELLS, SOFTMAX), 2, "",
    ),
    "one imports another": (
        {"one.py": SOFTMAX, "two.py": f"from one import softmax\n{RIGHT}", "zzz.py": "1 / 0\nrelu = 3\n"}, 2,
        "zzz.py has a line that fails (ZeroDivisionError: division by zero)",
    ),
    "one imports others from its folder": (
        {"a.py": SOFTMAX, "b.py": "from .a import softmax\nfrom . import z\nrelu = z.relu\n", "z.py": RIGHT},
        2, "",
    ),
    "from a folder above": ({"base.py": RIGHT, "one/two/b.py": f"from ...base import relu\n{SOFTMAX}"}, 2, ""),
    "one fails": ({"a.py": SOFTMAX, "b.py": f"raise ValueError('no')\n{RIGHT}"}, 2, "line that fails (ValueError: no)"),
    "an assert fails.py": (f"{SOFTMAX}\nassert softmax is None\n{RIGHT}", 2, "line that fails (AssertionError)"),
    "a cell writes a file.ipynb": (
        notebook(f"%%writefile softly.py\n{SOFTMAX}", "%%writefile run.py\n1 / 0", "from softly import softmax", RIGHT),
        2, "",
    ),
    "a cell runs another file": (
        {"a.ipynb": notebook("%run softly.py", f"np.pi\n{RIGHT}"), "softly.py": SOFTMAX}, 2, "",
    ),
    "a cell runs a file below": (
        {"a.ipynb": notebook("%run -i ./sub/softly", f"np.pi\n{RIGHT}"), "sub/softly.py": SOFTMAX}, 2, "",
    ),
    "stub below.py": (f"{SOFTMAX}\n{ANSWERS['not begun']}\n{RIGHT}", 2, ""),
    "stub below.ipynb": (notebook(f"{SOFTMAX}\n{ANSWERS['not begun']}\n{RIGHT}"), 2, ""),
    "wrong below.py": (f"{SOFTMAX}\n{ANSWERS['wrong']}\n{RIGHT}", 2, "; also in line 13, not counted"),
    "wrong below.ipynb": (notebook(f"{SOFTMAX}\n{ANSWERS['wrong']}\n{RIGHT}"), 2, "also in cell 1, line 13, not c"),
    "keeps.py": (
        f"kept = []\n{SOFTMAX.replace('    e =', '    kept.append(x)' + chr(10) + '    e =')}\ndef relu(x):\n"
        "    return np.maximum(x, 0) if kept else x\n", 1, "",
    ),
    "exits.py": (f"{SOFTMAX}\ndef relu(x):\n    exit()\n", 1, ""),
    "colab.ipynb": (
        notebook(
            f"{MOUNT}!gdown 1\n%cd /x\nimport numpy as np",
            "for name in files.upload():\n    print(name)\nimport google.colab.output\n",
            RIGHT,
            SOFTMAX.replace("import numpy as np", ""),
        ),
        2, "",
    ),
    "otter.ipynb": (
        notebook('import otter\ngrader = otter.Notebook("homework.ipynb")', SOFTMAX, RIGHT, 'grader.check("x")'), 2, "",
    ),
    "exported.py": (
        f"{MOUNT}get_ipython().run_line_magic('pylab', 'inline')\nget_ipython().system('ls')\n"
        f"{SOFTMAX}\n{RIGHT}\ndisplay(relu(np.ones(2)))\n", 2, "",
    ),
    "spyder.py": (f"from IPython import get_ipython\nget_ipython().magic('reset -sf')\n{SOFTMAX}\n{RIGHT}", 2, ""),
    "no metadata.ipynb": (notebook(SOFTMAX, RIGHT).replace('"metadata": {}', '"metadata": null'), 2, ""),
    "nobody's.ipynb": (notebook(SOFTMAX, RIGHT).replace('"metadata": {}', '"metadata": {"nbgrader": null}'), 2, ""),
    "cells.py": (f"# %%\n%matplotlib inline\n!ls\n# %%\n{SOFTMAX}\n{RIGHT}", 2, ""),
    "imports.py": (f"{TOP}{USED}{SOFTMAX}", 2, "imports what is not there"),
    "imports.ipynb": (notebook(TOP, USED, SOFTMAX), 2, f"No module named '{ABSENT}'"),
    "star.py": (f"from {ABSENT} import *\n{SOFTMAX}\ndef relu(x):\n    return {ABSENT}(x)\n", 1, "imports what"),
    "uses.py": (f"from {ABSENT} import relu\nimport {ABSENT} as t\n{SOFTMAX}", 1, "imports what"),
    "tries.py": (
        f"try:\n    import {ABSENT}\nexcept ImportError:\n    {ABSENT} = None\n{SOFTMAX}\ndef relu(x):\n"
        f"    return x * (x > 0) if {ABSENT} is None else x\n", 2, "",
    ),
    "julia.ipynb": (notebook("relu(x) = max.(x, 0)"), 0, "has a cell that fails (SyntaxError"),
    "raises.py": (
        SOFTMAX + "\ndef relu(x):\n    '''Text.'''\n    raise NotImplementedError()\n    return x * (x > 0)\n", 1,
        "`relu` ends at `raise NotImplementedError` (raises.py, line",
    ),
}  # fmt: skip


@pytest.mark.long
def test_what_a_hand_in_gets(tmp_path):
    """Files that use each other, Colab, exported notebooks, cells in a .py file, imports of what does not exist where
    answers are graded: one grading, because they say the same in any company."""
    folder = tmp_path / "in"
    for number, (name, (content, *_)) in enumerate(HANDED_IN.items()):
        hand_in(folder / f"s{number:02}", content if isinstance(content, dict) else {name: content})
    rows = zip(grade(folder, COURSE, seed=3).values(), HANDED_IN.items(), strict=True)
    for got, (name, (_, points, remark)) in rows:
        checks = Checks(load(folder / got.student, time_limit=60, strict=False), seed=3)
        assert got.points(COURSE) == points, (name, got.remarks)
        assert_agree(checks, got, name)
        assert len(got.remarks) == bool(remark) and all(remark in one for one in got.remarks), (name, got.remarks)
        if name == "exits.py":
            for verdict in (got.verdicts["relu"], checks.of("relu").verdict):
                assert "it ended the program (exit, quit or sys.exit)" in verdict.message
        if name == "imports.ipynb":
            assert "imports.ipynb, cell 1" in got.not_loaded[name]


def test_without_ipython_a_notebook_is_refused_with_the_command(tmp_path, monkeypatch):
    folder = hand_in(tmp_path / "in", {"ada.ipynb": notebook(SOFTMAX)})
    monkeypatch.setitem(sys.modules, "IPython.core.inputtransformer2", None)
    magics._transformers.cache_clear()
    try:
        with pytest.raises(ValueError, match=r"pip install 'transformer-np\[notebooks\]'.*`check` needs no IPython"):
            load(folder / "ada.ipynb")
    finally:
        magics._transformers.cache_clear()
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    with pytest.raises(magics.NeedsIPython, match="pip install"):
        grade(folder, COURSE)


@pytest.mark.parametrize("check", ["", "check('relu', mine)"])
def test_in_the_courses_notebook_only_what_an_answer_needs_is_computed(tmp_path, check):
    content = json.loads(course_notebooks()["06_backpropagation.ipynb"])
    answer = "def relu(x): return np.maximum(x, (lambda least: least[0])(least))"
    answer = answer.replace("relu", "mine") if check else answer
    mine = "least = np.ones(2)", "least[:] = 0", "while True: pass", answer, check
    content["cells"] += [cell for text in mine for cell in json.loads(notebook(text))["cells"]]
    (tmp_path / "06.ipynb").write_text(json.dumps(content), encoding="utf-8")
    submission = load(tmp_path / "06.ipynb", time_limit=60)
    assert list(submission.answers) == ["relu"] and Checks(submission).of("relu").passed
