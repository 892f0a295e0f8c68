"""`transformer-np homework` as it is typed, and the loading of what a student hands in."""

import ast
import functools
import json
import re
import signal
import subprocess
import sys

import pytest
import shared

from transformer_np import cli
from transformer_np import functional as F
from transformer_np.commands.homework_check import _stamps
from transformer_np.homework import all_exercises, check_all, load
from transformer_np.homework.remarks import of_library
from transformer_np.homework.stubs import stub_file
from transformer_np.homework.submission import Checks

RIGHT = """
import numpy as np


def softmax(x, axis=-1):
    largest = x.max(axis, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(largest), 0, largest))
    total = e.sum(axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


def softmax_backward(dy, y, axis=-1):
    return y * (dy - (dy * y).sum(axis, keepdims=True))
"""
WRONG = RIGHT.replace("y * (dy - (dy * y).sum(axis, keepdims=True))", "dy * y * (1 - y)")
pytestmark = pytest.mark.usefixtures("here")
CALLS = """
def softmax_backward(dy, y, axis=-1):
    return y * (dy - (dy * y).sum(axis, keepdims=True)) + 0 * softmax(y, axis)


def softmax(x, axis=-1):
"""


def call(capsys, *args):
    """Exit code, stdout and stderr of a command."""
    return shared.call(capsys, "homework", *args)


@pytest.fixture
def written(here):
    """written(text) -> homework.py in this folder, with that text."""

    def write(text, name="homework.py"):
        file = here / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8", errors="surrogateescape")
        return file

    return write


# --- from the start to the end ---------------------------------------------------------------------------------------


def test_start_check_fill_check(capsys, here):
    out = shared.done(capsys, "homework", "start", "work", "--only", "softmax_backward, Softmax")
    file = here / "work" / "homework.py"
    assert out.startswith("work/homework.py: 2 exercises, the first is softmax.")
    for line in re.findall(r"^ +transformer-np homework (.+?)(?: {2,}.*)?$", out, re.MULTILINE):
        cli.build_parser().parse_args(["homework", *line.split()])

    code, out, _ = call(capsys, "check", "work/homework.py")
    assert code == 1
    assert re.search(r"· not started: .*\bsoftmax\b", out)
    assert "0 of 2 exercises right, 2 not started." in out

    text = file.read_text(encoding="utf-8")
    start, end = RIGHT.index("largest"), RIGHT.index("\n\n\ndef softmax_backward")
    file.write_text(text.replace("raise NotImplementedError", RIGHT[start:end], 1), encoding="utf-8")  # the first
    code, out, _ = call(capsys, "check", "work")
    assert code == 1 and "✓ softmax\n" in out
    assert "1 of 2 exercises right, 1 not started." in out

    code, out, _ = call(capsys, "check", file, "softmax")
    assert (code, out.splitlines()[0]) == (0, "softmax: right.")
    assert f"homework solution softmax --file {file}" in out
    out = shared.done(capsys, "homework", "solution", "softmax", "--file", file)
    assert "def softmax(x, axis=-1):" in out and "np.exp(y, out=y)" in out


def test_start_writes_every_exercise_and_nothing_over_a_file(capsys, here):
    assert call(capsys, "start", "a/b")[0] == 0
    assert (here / "a/b/homework.py").read_text(encoding="utf-8") == stub_file(list(all_exercises().values()))
    (here / "a/b/homework.py").write_text("mine", encoding="utf-8")
    assert "already exists and was not overwritten" in shared.fails(capsys, "homework", "start", "a/b")
    assert (here / "a/b/homework.py").read_text(encoding="utf-8") == "mine"
    assert call(capsys, "start", "a/b/homework.py")[0] == 2
    assert "did you mean softmax?" in shared.fails(capsys, "homework", "start", "c", "--only", "sofmax")
    assert not (here / "c").exists()


# --- check -----------------------------------------------------------------------------------------------------------


def test_check_shows_all_and_explains_the_first_mistake(capsys, written):
    written(WRONG.replace("return e / np", "return 2 * e / np"))
    code, out, err = call(capsys, "check", "homework.py")
    assert (code, err) == (1, "")
    assert "✗ softmax: wrong value" in out
    assert "✗ softmax_backward: wrong gradient: only the diagonal" in out
    assert "the diagonal of the Jacobian alone" not in " ".join(out.split())
    assert f"0 of {len(all_exercises())} exercises right, 2 wrong, {len(all_exercises()) - 2} not started." in out
    seed = re.search(r"check homework.py softmax --seed (\d+)", out)[1]
    message = out[out.index("\nsoftmax: wrong value") : out.index("  check with the same inputs")].strip()
    code, again, _ = call(capsys, "check", "homework.py", "softmax", "--seed", seed)
    assert code == 1 and again.startswith(message)
    code, out, _ = call(capsys, "check", "homework.py", "--all")
    assert code == 1 and "the diagonal of the Jacobian alone" in " ".join(out.split())


@pytest.mark.long
def test_whose_mistake_it_is(capsys, written):
    """An answer that calls a wrong one, or one that is not started, is not wrong itself."""

    def standing_with(text):
        return Checks(load(written(text)), seed=0).of("softmax_backward")

    assert standing_with(CALLS + "    return x").passed  # 0 times a wrong number is 0
    standing = standing_with(CALLS + "    raise NotImplementedError")
    assert standing.waits_for == ("softmax",) and not standing.failed
    out = call(capsys, "check", "homework.py", "--all")[1]
    assert "◦ softmax_backward: right as soon as softmax is" in out and "right, 1 waiting for another, 79 not st" in out
    assert call(capsys, "check", "homework.py", "softmax_backward")[0] == 1
    assert "It is right as soon as your softmax is." in standing.verdict.message
    standing = standing_with(CALLS.replace("0 * softmax", "softmax") + "    raise NotImplementedError")
    assert standing.failed and standing.verdict.outcome == "wrong gradient"
    assert "Checked with the right softmax" in standing.verdict.message
    wrong = CALLS.partition("def softmax(")[0].replace("0 *", "1 *")
    standing = standing_with(RIGHT.replace("def softmax_backward", "def helper") + wrong)
    assert standing.failed and "library's" not in standing.verdict.message  # it calls right ones: it is wrong itself


def test_what_an_answer_calls_that_is_no_answer(written):
    """A helper with the name of an exercise, and an object that can be called and is no key."""
    written(
        "import numpy as np\n\ndef softmax(x):\n    e = np.exp(x - x.max(-1, keepdims=True))\n"
        "    return e / e.sum(-1, keepdims=True)\n\ndef scaled_dot_product_attention(q, k, v, mask=None):\n"
        "    a = softmax(q @ np.swapaxes(k, -1, -2))\n    return a @ v, a\n"
    )
    message = Checks(load("homework.py"), seed=0).of("scaled_dot_product_attention").verdict.message
    assert "√d_k" in message and "library's softmax" not in message
    module = "import dataclasses\n\n@dataclasses.dataclass\nclass Times:\n    by: int\n\n    def __call__(self, x):\n"
    file = written(f"{module}        return self.by * x\n\ntwice = Times(2)\n\ndef relu(x):\n    return twice(x)\n")
    assert Checks(load(file), seed=0).of("relu").verdict.outcome == "wrong value"


def test_the_answers_are_as_they_were_after_a_check(written):
    written(CALLS + "    raise NotImplementedError")
    submission = load("homework.py")
    (module,) = submission.modules
    before = dict(vars(module))
    found = list(check_all(submission, seed=3))
    assert vars(module) == before
    assert [exercise.name for exercise, _ in found] == list(all_exercises())  # in the order of the path
    shown = repr(check_all(submission, seed=3))  # in a notebook
    assert shown == "softmax_backward: not started (softmax not written)\nno other is started"
    assert all(verdict.seed == 3 for _, verdict in found)


def test_of_a_chapter_that_is_begun_all_is_listed_and_what_the_page_has_put_into_comments_is_remarked(capsys, written):
    written("def relu(x):\n    return x * (x > 0)\n\n\n#| %%time\n#| def tanh(x:\n#|     return x\n")
    _, out, _ = call(capsys, "check", "homework.py")
    said = "! `tanh` is behind `#|` (homework.py, line 6), where the page puts what cannot be imported: mend it and "
    assert f"{said}delete the `#|`" in " ".join(out.split()) and "1 of 80 exercises right, 79 not started" in out
    assert "Feed-forward network and layer norm\n  · not started: linear\n  ✓ relu\n  · not started: tanh, gelu," in out
    assert "Self-attention" not in out


OWN_RELU = "def relu(x):\n    return x * (x > 0)\n"


KEPT = {  # what an answer may leave: code, a line that keeps something, how much is kept
    "a number": ("count = 0", "global count; count += 1", "count"),
    "a cache": ("seen = {}", "seen['x'] = x", "len(seen)"),
    "a list of a list": ("seen = [[]]", "seen[0].append(1)", "len(seen[0])"),
    "an array": ("seen = np.zeros(2)", "seen[1] = 1", "seen[1]"),
    "a function": ("def seen(): pass", "seen.count = 1", "len(vars(seen))"),
    "a default": ("def seen(x=[]): return x", "seen().append(1)", "len(seen())"),
    "a closure": ("def cell(c):\n    return lambda: c\nseen = cell([])", "seen().append(1)", "len(seen())"),
    "a class": ("class Seen:\n    count = 0", "Seen.count = 1", "Seen.count"),
    "a method": ("class Seen:\n    def of(self): return vars(self)\nof = Seen().of", "of()['x'] = 1", "len(of())"),
    "a partial": ("import functools\ndo = functools.partial(list, [])", "do.args[0].append(1)", "len(do.args[0])"),
    "a generator": (
        "rng, new = np.random.default_rng(1), np.random.default_rng(1).bit_generator.state", "rng.random()",
        "rng.bit_generator.state != new",
    ),
    "another file": ("import beside", "beside.seen.append(1)", "len(beside.seen)"),
}  # fmt: skip


@pytest.mark.parametrize("what", KEPT)
def test_no_answer_finds_what_another_has_left_as_in_grade(written, what):
    define, keep, kept = KEPT[what]
    written("seen = []\n", "beside.py")
    softmax = RIGHT.partition("\n\n\ndef softmax_b")[0].replace("    largest = ", f"    {keep}\n    largest = ")
    written(f"{softmax}\n\n\n{define}\n\n\ndef relu(x):\n    return np.maximum(x, 0) + ({kept})\n")
    checks = Checks(load("homework.py"), seed=0)
    assert checks.of("softmax").passed and checks.of("relu").passed


def test_code_that_does_not_end_is_begun_once_although_an_answer_leaves_something(written, here):
    endless = "print('begun', file=open('log.txt', 'a'))\nwhile True:\n    pass\n"
    keeps = "seen = []\n\ndef tanh(x):\n    seen.append(x)\n    return np.tanh(x)\n"
    written(f"{RIGHT}\n{endless}\n{keeps}\ndef relu(x):\n    return np.maximum(x, len(seen))\n")
    checks = Checks(load("homework.py", 0.5, strict=False), seed=0)
    assert checks.of("tanh").passed and checks.of("relu").passed
    assert (here / "log.txt").read_text() == "begun\n"


def test_a_file_whose_answers_leave_nothing_is_executed_once(written, here):
    warns = "import warnings\n\ndef tanh(x):\n    warnings.warn('slow', stacklevel=1)\n    return np.tanh(x)\n"
    written(f"print('executed', file=open('log.txt', 'a'))\n{RIGHT}\n\n{warns}")
    assert [exercise.name for exercise, verdict in check_all(load("homework.py")) if verdict.passed]
    assert (here / "log.txt").read_text() == "executed\n"


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("import transformer_np.functional as F\ndef relu(x):\n    return F.relu(x)", "`F.relu` (homework.py, line 3)"),
        ("def relu(x):\n    from transformer_np.functional import relu\n    return relu(x)", "needs `relu`"),
        ("from transformer_np import F\ndef own(x):\n    return F.relu(x)\ndef relu(x):\n    return own(x)", "F.relu"),
        (f"from transformer_np import F\nx = F.relu(-1.0)\n{OWN_RELU}def tanh(y):\n    return y + x\n", "tanh needs"),
        (f"from transformer_np.functional import relu\n{OWN_RELU}\n\ndef tanh(x):\n    return relu(x)", ""),
        (f"from transformer_np import F\n{OWN_RELU}assert F.relu(3) == relu(3)\n", ""),
        ("from transformer_np.layers.blocks import EncoderBlock as E\nclass EncoderBlock(E):\n    pass", "needs `E`"),
        ("from transformer_np import training\nclass Adam(training.AdamW):\n    pass", "Adam needs `training.AdamW`"),
        ("from transformer_np.training import SGD\nclass Adam(SGD):\n    pass", ""),
        ("import transformer_np as t\ndef greedy_decode(model, src):\n    return t.beam_search(model, src)", "`t.beam"),
        ("import transformer_np.functional as F\nclass AddNorm:\n    def forward(self):\n        return F.relu(1)", ""),
        (stub_file(list(all_exercises().values())), ""),  # blocks call the parts that they are built from
    ],
)  # fmt: skip
def test_a_call_of_the_library_is_remarked_before_grade_refuses_it(text, called):
    remarks = list(of_library({"homework.py": ast.parse(text)}))
    assert len(remarks) == bool(called) and called in "".join(remarks)


def test_a_call_of_the_library_in_another_file_is_remarked_before_grade_refuses_it(capsys, written):
    """Where an answer calls what that file defines, and where the import of the file does."""
    helper = "import numpy as np\nfrom transformer_np.functional import relu\n\n\ndef own(x):\n    return relu(x)\n"
    answer, table = "\n\ndef relu(x):\n    return mine(x)\n", "TABLE = own(np.eye(2))\n"
    checks = "from transformer_np.homework import check\ncheck('relu', own)\n"
    written(helper + "\n\ndef size(x):\n    return np.size(x)\n", "unused.py")
    importing = ["importing helpers.py"]
    for end, more, told in (checks, "", []), ("", answer, ["relu"]), (table, "", importing):
        written(helper + end, "helpers.py")
        written(f"from helpers import own as mine\nfrom unused import size as own\n{RIGHT}{more}")
        found = re.findall(r"! (.* needs .*)\)", call(capsys, "check", "homework.py")[1])
        assert found == [f"{what} needs `relu` (helpers.py, line 6" for what in told]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def softmax(x:\n    return x\n", "could not be loaded. SyntaxError"),
        ("import sys\nsys.exit()\n", "has a line that fails. SystemExit: it ended the program"),
        ("x = 1\n\ny = undefined + x\n", "has a line that fails. NameError: name 'undefined'"),
        ("import a_module_that_is_not_there\n", "ModuleNotFoundError"), ("print(", "could not be loaded. SyntaxError"),
        ("\0\1\2", "could not be loaded. .*null bytes"), ('x = "\udce4"\n', "could not be loaded. .*the file as UTF-8"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["check", "status", "solution", "run"])
def test_a_file_that_cannot_be_imported(capsys, written, command, text, told):
    written(text)
    args = {"solution": ("softmax", "--file", "homework.py"), "run": ("homework.py", "train")}
    code, out, err = call(capsys, command, *args.get(command, ("homework.py",)))
    assert (code, out) == (1, "") and re.match(f"homework.py .*{told}", err)
    assert "submission.py" not in err and "transformer_np" not in err


def test_the_students_line_is_shown_and_what_the_file_prints(capsys, written, monkeypatch):
    written("def begin():\n    return 1 / 0\n\n\nbegin()\n")
    err = call(capsys, "check", "homework.py")[2]
    assert "ZeroDivisionError: division by zero" in err
    assert 'File "homework.py", line 2, in begin\n    return 1 / 0' in err
    written("print('my own line')\n" + RIGHT)
    assert call(capsys, "check", "homework.py", "softmax")[1].startswith("my own line\nsoftmax: right.\n")
    monkeypatch.setenv("MPLBACKEND", "a window")
    monkeypatch.delenv("MPLBACKEND")
    written("import os\nprint('drawn with', os.environ.get('MPLBACKEND'))\n" + RIGHT)  # no window waits for somebody
    assert "drawn with agg" in call(capsys, "check", "homework.py", "softmax")[1]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["check", "missing.py"], "there is no file missing.py"), (["check", "missing/folder"], "there is no file"),
        (["check", "empty"], "this folder contains no .py file"), (["check", "notes.txt"], "must be a .py file"),
        (["check", "nothing.py"], "contains no answer to an exercise"), (["check", "other"], "words.py was skipped"),
        (["check", "imports.py"], "for example, softmax is imported from transformer_np.functional"),
        (["check", "right.py", "softmx"], "did you mean softmax?"), (["hint", "softmx"], "did you mean softmax?"),
        (["solution", "softmx"], "did you mean softmax?"), (["status"], "transformer-np homework start ."),
        (["run", "stubs.py", "train"], "no answer is started"),
        (["run", "right.py", "train", "-o", "losses.txt"], "must end in .png"),
        (["run", "right.py", "train", "--steps", "0"], "a whole number, 1 or larger"),
        (["run", "right.py", "dance"], "invalid choice"),
        (["check", "right.py", "--seed", "-1"], "a whole number, 0 or more"),
    ],
)  # fmt: skip
def test_bad_use(capsys, here, written, args, told):
    (here / "empty").mkdir()
    written("x", "notes.txt")
    written("x = 1\n", "nothing.py")
    written("x = 1\n", "other/nothing.py").with_name("words.py").write_text(RIGHT, encoding="utf-16")
    written("from transformer_np.functional import softmax\n", "imports.py")
    written(RIGHT, "right.py")
    written(stub_file(list(all_exercises().values())[:5]), "stubs.py")
    code, out, err = call(capsys, *args)
    assert (code, out) == (2, "") and told in err and "Traceback" not in err


# --- hint, status, solution, run, watch ------------------------------------------------------------------------------


def test_the_last_hint_claims_no_more_than_the_check(capsys, written):
    """One edit makes each row add to 1; a row of nothing but −inf is still wrong."""
    softmax = "def softmax(x, axis=-1):\n    e = np.exp(x - x.max(axis, keepdims=True))\n    return e / e.sum()\n"
    relu = "def relu(x):\n    return np.minimum(x, 0)\n"
    written(f"import numpy as np\n\n\n{softmax}\n\n{relu}")
    for name, line, mends in ("softmax", 6, "it right for the lecture"), ("relu", 10, "it right"):
        check = call(capsys, "check", "homework.py", name, "--time-limit", 100)[1]
        assert f"One change in line {line} makes {mends}:\n" in check
        hint = call(capsys, "hint", name, "--level", 4, "--time-limit", 100)[1]
        assert f"Your own code, line {line}: this change makes {mends}\n" in hint
    written("def layer_norm_backward(dy, x_hat, inv_std, gamma):\n    g, axes = dy * gamma, tuple(range(dy.ndim - 1))\n"
            "    mean, along = g.mean(-1, keepdims=True), (g * x_hat).mean(-1, keepdims=True)\n"
            "    dx = (g - mean - x_hat * along) / inv_std\n"
            "    return dx, (dy * x_hat).sum(axes), dy.mean(axes)\n")  # fmt: skip
    check, hint = (call(capsys, *args, "--time-limit", 100)[1] for args in (
        ("check", "homework.py", "layer_norm_backward"), ("hint", "layer_norm_backward", "--level", 4)))  # fmt: skip
    assert "Two changes make it right, one in line 4:" in check
    assert "Your own code\n  What has to change is what `check` marks." in hint


def test_hints_come_one_after_another(capsys, written):
    written(f"{WRONG}\n\ndef tanh(x):\n    return x * np.cos(3 * x)\n")
    told = {"softmax": "It is right.", "softmax_backward": "What has to change is what `check` marks."}
    told |= {"relu": "It is not written yet.", "tanh": "No edit was found that makes it right."}
    for name, said in told.items():
        assert said in call(capsys, "hint", name, "--level", 4)[1]
    hints = all_exercises()["softmax_backward"].hints
    for level in (1, 2, 3):
        code, out, _ = call(capsys, "hint", "softmax-backward", "--level", level)
        shown = [" ".join(hint.split()) in " ".join(out.split()) for hint in hints]
        assert (code, shown) == (0, [i < level for i in range(3)])
        assert (f"--level {level + 1}" in out) == (level < 3)
    assert call(capsys, "hint", "softmax")[1] == call(capsys, "hint", "softmax", "--level", 1)[1]


def test_status_shows_every_exercise(capsys, written):
    written(WRONG)
    out = shared.done(capsys, "homework", "status")
    assert out == call(capsys, "status", "homework.py")[1] and "wrong gradient: only the diagonal" in out
    rows = {words[1]: words[0] for words in map(str.split, out.splitlines()) if words[0] in "✓·✗◦"}
    assert list(rows) == list(all_exercises())
    assert (rows["softmax"], rows["softmax_backward"]) == ("✓", "✗")


@pytest.mark.long
def test_run_trains_with_the_answers(capsys, written, here, few_pairs):
    written(WRONG)
    code, out, err = call(capsys, "run", "homework.py", "train", "--steps", 6, "-o", "losses.png")
    assert (code, err) == (0, "")
    assert "softmax_backward is not right (wrong gradient: only the diagonal), but it is used." in out
    rows = re.findall(r"^ +(\d+) +(\d\.\d+) +(\d\.\d+) +([+-]\S+)$", out, re.MULTILINE)
    assert [int(row[0]) for row in rows] == [1, 2, 3, 4, 5, 6]
    assert re.search(r"The losses differ from step [2-6] on\.", out)
    assert (here / "losses.png").stat().st_size > 1000

    written(f"{RIGHT}\n\ndef softmax_backward(dy, y, axis=-1):\n    return dy\n")  # which does not count
    out = call(capsys, "run", "homework.py", "train", "--steps", 1)[1]
    assert " for 1 step, twice" in out and "The losses are equal up to rounding." in out and "not right" not in out


@pytest.mark.long
def test_a_teachers_exercises_are_no_part_of_the_run(capsys, here):
    call(capsys, "new", "scaled", "--in", "own")
    call(capsys, "start", "homework.py", "--only", "scaled", "--exercises", "own")
    code, _, err = call(capsys, "run", "homework.py", "train", "--exercises", "own")
    assert code == 2 and "no exercise of the course is a function that this training run uses" in err


def test_run_stops_in_the_students_code(capsys, written, few_pairs):
    written(RIGHT.replace("return y * (dy", "return undefined * (dy"))
    code, _, err = call(capsys, "run", "homework.py", "train", "--steps", 3)
    assert code == 1 and "step 1: NameError" in err
    assert "return undefined * (dy" in err and "functional.py" not in err


def test_what_is_watched(written, here):
    """A save of what the answers import is one, too: a file beside them, or one of a package."""
    file = written(RIGHT)
    for other, text in ("beside.py", "x = 1"), ("package/inside.py", "x = 1"), ("package/inside.py", "x = 12"):
        before = _stamps(file)
        written(text, other)
        assert _stamps(file) != before
    written("{}", "other.ipynb")
    assert here / "other.ipynb" not in _stamps(file) and _stamps(here / "nowhere.py") == {}


@pytest.mark.long
def test_watch_checks_at_every_save_and_survives_a_broken_one(written, here):
    written(WRONG)
    command = [sys.executable, "-u", "-m", "transformer_np", "homework", "check", "homework.py", "softmax_backward"]

    def is_said(told):
        text = (here / "out.txt").read_text(encoding="utf-8")
        assert watching.poll() is None, text
        return told in " ".join(text.split()) and text.rstrip().endswith("with Ctrl-C.")

    with open(here / "out.txt", "w", encoding="utf-8") as out:
        watching = subprocess.Popen([*command, "--watch"], stdout=out, stderr=subprocess.STDOUT, cwd=here)
    try:
        for text, told in (
            (None, "the diagonal of the Jacobian alone"),
            ("def softmax_backward(\n", "homework.py could not be loaded"),
            ("", "contains no answer to an exercise"),
            (RIGHT, "softmax_backward: right."),
        ):
            if text is not None:
                written(text)
            shared.wait_until(functools.partial(is_said, told))
        watching.send_signal(signal.SIGINT)
        assert watching.wait(timeout=300) == 130
    finally:
        watching.kill()
        watching.wait()
    assert "Traceback" not in (here / "out.txt").read_text(encoding="utf-8")


# --- loading ---------------------------------------------------------------------------------------------------------


def test_a_file_is_loaded_anew_every_time_and_leaves_nothing(written, here):
    file = written(RIGHT)
    written("factor = 1\n", "a_helper.py")
    before = dict(sys.modules), list(sys.path)
    answers = []
    for factor in (1, 2):
        written(f"factor = {factor}\n", "a_helper.py")
        written("from a_helper import factor\n\n\ndef softmax(x, axis=-1):\n    return factor * x\n")
        answers.append(load(file).answers["softmax"])
    assert [answer(3) for answer in answers] == [3, 6]
    assert (sys.modules, sys.path) == before and not list(here.rglob("*.pyc"))


def test_what_is_an_answer(written):
    written(
        "import functools\nimport numpy as np\nfrom transformer_np.functional import softmax\n"
        "def _backward(factor, dy, y, axis=-1):\n    return dy\n"
        "softmax_backward = functools.partial(_backward, 1)\nother = 3\n"
    )
    submission = load("homework.py")
    assert list(submission.answers) == ["softmax_backward"]
    assert submission.imported == {"softmax": "transformer_np.functional"}
    (verdict,) = (verdict for exercise, verdict in check_all(submission) if exercise.name == "softmax")
    assert verdict.outcome == "not started" and "imported from transformer_np.functional" in verdict.message
    file = written("from transformer_np.functional import softmax, relu\n" + RIGHT)  # and then written
    assert list(load(file).answers) == ["softmax", "softmax_backward"]
    assert load(file).answers["softmax"] is not F.softmax
    file = written(f"{OWN_RELU}\n\ndef draft(x):\n    pass\n\n\ndel draft\n")  # a helper that is gone
    assert Checks(load(file)).of("relu").passed


def test_a_folder_of_files_that_import_each_other(written, here):
    first, second = RIGHT.split("def softmax_backward")
    written(first, "work/forward.py")
    written("from forward import softmax\ndef softmax_backward" + second, "work/backward.py")
    submission = load(here / "work")
    assert list(submission.answers) == ["softmax", "softmax_backward"]
    assert all(Checks(submission).of(name).passed for name in submission.answers)
    backward, forward = submission.modules
    assert backward.softmax is forward.softmax
    written(RIGHT, "work/more.py")
    assert [one.file for one in load(here / "work").definitions["softmax"]] == ["forward.py", "more.py"]


def test_a_wrong_answer_in_a_cell_or_one_of_several_files_is_located(capsys, written):
    first, second = WRONG.split("def softmax_backward")
    cells = [first, "def softmax_backward" + second]
    written(json.dumps({"cells": [{"cell_type": "code", "source": text} for text in cells]}), "work/mine.ipynb")
    assert "  the answer is in mine.ipynb, cell 2, line 1\n" in call(capsys, "check", "work", "softmax_backward")[1]
    out = call(capsys, "check", "work/mine.ipynb")[1]
    assert "  the answer is in cell 2, line 1\n" in out
    *_, hint = re.findall("transformer-np homework (hint softmax_backward.*)", out)
    assert "Your own code" in call(capsys, *hint.split(), "--level", "4")[1]  # as it is printed, it finds the file
    written(WRONG)
    assert "the answer is in" not in call(capsys, "check", "homework.py")[1]
    written(stub_file([all_exercises()["relu"]]), "stub/homework.py")
    assert "  the stub is in homework.py, line " in call(capsys, "check", "stub", "relu")[1]


def test_a_line_of_a_cell_is_that_of_python(capsys, written):
    cell = "# a\u2028b\x85\x1c\n\f\ndef relu(x):\n    return x.maximum(0)\n"
    written(json.dumps({"cells": [{"cell_type": "code", "source": cell}]}), "mine.ipynb")
    assert "    return x.maximum(0)\n           ^^^^^^^^^\n" in call(capsys, "check", "mine.ipynb")[1]


def test_main_is_not_run_and_a_name_of_pythons_own_does_not_matter(written):
    file = written(RIGHT + "\nif __name__ == '__main__':\n    raise SystemExit\n", "random.py")
    assert list(load(file).answers) == ["softmax", "softmax_backward"]
    import random

    assert random.random() < 1


# --- the file that is meant ------------------------------------------------------------------------------------------


def test_solution_and_status_work_from_where_start_leaves(capsys, here, written):
    written(WRONG)
    code, out, _ = call(capsys, "solution", "softmax_backward")
    assert code == 1 and "dx *= y" not in out
    assert call(capsys, "solution", "softmax")[0] == 0  # it is for those who have one
    (here / "homework.py").unlink()
    assert call(capsys, "start", "work", "--only", "softmax")[0] == 0
    code, out, _ = call(capsys, "solution", "softmax")
    assert code == 1 and "shown once softmax in work/homework.py is right" in out
    assert "0 of 1 exercise right" in call(capsys, "status")[1]
    assert call(capsys, "start", "other", "--only", "softmax")[0] == 0
    assert "name the file: other/homework.py, work/homework.py" in shared.fails(capsys, "homework", "status")


def test_a_printed_command_works_as_it_is_printed(capsys, here, written):
    call(capsys, "new", "scaled", "--in", "own")
    written((here / "own" / "scaled.py").read_text(encoding="utf-8").partition("\n# 2.")[0], "mine.py")
    out = call(capsys, "check", "mine.py", "scaled", "--exercises", "own", "--time-limit", 30)[1]
    assert " --time-limit 30" in out and call(capsys, *re.search("homework (solution .*)", out)[1].split())[0] == 0
    written(WRONG, "work/homework.py")
    assert call(capsys, *re.search("homework (check .*)", call(capsys, "check", "softmax")[2])[1].split())[0] == 0


def test_the_names_of_the_exercises(capsys):
    indented = re.findall("^ .*", shared.done(capsys, "homework", "list"), re.M)
    assert sorted(re.findall(r"\w+(?=,|$)", "\n".join(indented), re.M)) == sorted(all_exercises())
    assert "`transformer-np homework list` shows all" in call(capsys, "hint", "xyzzy")[2]
    err = call(capsys, "hint", "attention")[2]
    assert "did you mean attention_scores, scaled_dot_product_attention or " in err
    assert "name the file before it" in call(capsys, "check", "softmax")[2]


@pytest.mark.long
@pytest.mark.parametrize(
    ("endless", "limit", "told"),
    [
        ("True", "0.3", ("softmax: crashed. It took longer than 0.3 s.", "was not started")),
        # it ends with the inputs of the check, and not with those of the training run
        ("x.size > 3000", "1", ("step 1: TimeoutError: it took longer than 1 s",)),
    ],
)
def test_run_ends_an_answer_that_does_not_end(capsys, written, few_pairs, endless, limit, told):
    written(RIGHT.replace("    largest = x", f"    while {endless}: pass\n    largest = x"))
    code, out, err = call(capsys, "run", "homework.py", "train", "--steps", "2", "--time-limit", limit)
    assert code == 1 and (out == "") == (endless == "True")
    assert f"while {endless}: pass" in err and all(text in err for text in told)
