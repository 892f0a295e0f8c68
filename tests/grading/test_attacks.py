"""Hostile submissions: none gets a point that it does not earn, and none changes an honest neighbour's grade."""

import itertools
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from attacks import ATTACKS, BY_CHANCE, CARRIES
from test_grade import BACKWARD, DIAGONAL, SOFTMAX, children_of, hand_in, rows_of
from test_sandbox import task_of

from transformer_np.grading.run import Grading
from transformer_np.grading.sandbox.session import Limits, try_submission
from transformer_np.homework.course import parse_course

pytestmark = pytest.mark.long
RUBRIC = parse_course('partial = true\nexercises = ["softmax", "softmax_backward"]')
SOME = dict(list(ATTACKS.items())[9::15])

LOOPS = """
import math

def softmax(x, axis=-1):
    y = [0.0] * len(x)
    moved = np.moveaxis(x, axis, -1)
    out = np.empty(moved.shape)
    for place in np.ndindex(moved.shape[:-1]):
        row = [float(v) for v in moved[place]]
        top = max(row)
        e = [0.0 if top == -math.inf else math.exp(v - top) for v in row]
        out[place] = [v / (sum(e) or 1) for v in e]
    return np.moveaxis(out, -1, axis)
"""
HONEST = {
    "h_plain": (SOFTMAX + BACKWARD, 2),
    "h_loops": ("import numpy as np\n" + LOOPS + BACKWARD, 2),
    "h_diagonal": (SOFTMAX + DIAGONAL, 1),
    "h_no_axis": (SOFTMAX + BACKWARD.replace("(axis,", "(-1,"), 1),
    "h_half": (BACKWARD + "def softmax(x, axis=-1):\n    raise NotImplementedError\n", 1),
    "h_prints": (SOFTMAX.replace("    e =", "    print('x', x)\n    e =") + BACKWARD, 2),
    "h_settings": ("import numpy as np, warnings\nnp.seterr(all='raise')\nwarnings.simplefilter('error')\n"
                   + BACKWARD, 1),
    "h_threads": ("from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n"
                  + SOFTMAX + BACKWARD
                  + "inner = softmax\ndef softmax(x, axis=-1):\n    return pool.submit(inner, x, axis).result()\n", 2),
    "h_windows": (b"\xef\xbb\xbf" + (SOFTMAX + BACKWARD).replace("\n", "\r\n").encode(), 2),
    "h_error": (SOFTMAX + "def softmax_backward(dy, y, axis=-1):\n    return dy @ y @ undefined\n", 1),
}  # fmt: skip


def graded(folder, out, seconds=3):
    grading = Grading(folder, out, RUBRIC, limits=Limits(seconds), seed=7)
    return {g.student: g for g in grading.run()}


@pytest.fixture(scope="module")
def alone(tmp_path_factory, walls):
    root = tmp_path_factory.mktemp("alone")
    folder = hand_in(root / "in", {name: source for name, (source, _) in HONEST.items()})
    return graded(folder, root / "grades.csv", seconds=60)


def among(root, attacks, between):
    """The attacks, after every so many of them an honest submission of another kind each time: the grades."""
    sources, honest = {}, itertools.cycle(HONEST.items())
    hand_in(root / "in", {})
    for number, (name, (source, *_)) in enumerate(attacks.items()):
        if number % between == 0:
            before, (honest_source, _) = next(honest)
            hand_in(root / "in" / f"{number:03} {before}", {before: honest_source})  # the same file name as alone
        text = source if isinstance(source, bytes) else source.replace("FOLDER", str(root / "in"))
        sources[f"{number:03} {name}"] = text
    last, (honest_source, _) = next(honest)
    hand_in(root / "in" / f"999 {last}", {last: honest_source})
    return graded(hand_in(root / "in", sources), root / "grades.csv")


def host():
    """What a submission could leave on the machine: files and devices, objects of System V, folders for all."""
    seen = {}
    files = [sys.executable, np.__file__, os.__file__, "/dev/null", "/dev/zero", "/dev/urandom"]
    for file in filter(os.path.exists, [*files, *map(os.path.dirname, files[:3])]):
        state = os.stat(os.path.realpath(file))
        seen[file] = state.st_mode, state.st_uid, state.st_mtime_ns, state.st_nlink
    for file in Path("/proc/sysvipc").glob("*"):
        head, *lines = map(str.split, file.read_text().splitlines())
        objects = [dict(zip(head, line, strict=False)) for line in lines]  # other programs may have some, too
        seen[file.name] = [one for one in objects if one["key"] == "7" or one["uid"] == "65534"]
    for folder in ("/dev/shm", "/dev/mqueue", tempfile.gettempdir()):
        names = os.listdir(folder) if os.path.isdir(folder) else ()
        seen[folder] = [name for name in names if "left" in name or name.startswith("submission-")]
    commands = {pid: _command_of(pid) for pid in children_of(os.getpid())}
    seen["processes"] = [pid for pid, text in commands.items() if "bwrap" in text or "grading" in text]
    return seen


def _command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_honest_grades_are_what_they_should_be(alone):
    for name, (_, points) in HONEST.items():
        assert alone[name].points(RUBRIC) >= points, [v.message for v in alone[name].verdicts.values()]
        assert not alone[name].remarks
    told = {name: alone[name].verdicts["softmax_backward"].misconception for name in ("h_diagonal", "h_no_axis")}
    assert told == {"h_diagonal": "only the diagonal", "h_no_axis": "axis not used"}
    assert alone["h_half"].verdicts["softmax"].outcome == "not started"


@pytest.mark.parametrize(
    ("attacks", "between"),
    [(SOME, 3), pytest.param(ATTACKS, 1, marks=pytest.mark.release)],
    ids=["some", "all"],
)
def test_an_attack_gains_nothing_and_changes_no_honest_grade(alone, walls, tmp_path, attacks, between):
    """One test, because they are graded once; all of them take two minutes."""
    before = host()
    grades = among(tmp_path, attacks, between)
    honest = [(student[4:], grade) for student, grade in grades.items() if student[4:] in HONEST]
    assert len(honest) == -(-len(attacks) // between) + 1
    for name, grade in honest:
        same = alone[name]
        assert replace(grade, student=name, handed_in=same.handed_in, alike=same.alike) == same, grade.student
    assert not list(filter(None, (gained(grades, name, *rest) for name, (_, *rest) in attacks.items())))

    assert set(rows_of(tmp_path / "grades.csv")) == set(grades)
    (report,) = (tmp_path / "grades_reports").glob("* report_of_another.md")
    lines = [line for line in report.read_text().splitlines() if line.startswith(("# ", "| softmax | 1"))]
    assert lines == [f"# {report.stem}"]
    assert host() == before


def gained(grades, name, points, word):
    """What an attack has got that it should not, or None."""
    (got,) = [grade for student, grade in grades.items() if student[4:] == name]
    remarks, earned = "; ".join(got.remarks), got.points(RUBRIC)
    if name in BY_CHANCE:
        return (name, earned) if earned > 1 else None
    fine = earned == points and word in remarks and "77" not in remarks
    return None if fine else (name, earned, remarks, [v.message for v in got.verdicts.values()])


def test_nothing_is_carried_from_one_exercise_to_the_next(walls):
    before, tasks = host(), [task_of("softmax"), task_of("softmax_backward")]
    tried = try_submission({"a.py": CARRIES.encode()}, tasks, Limits(60))
    (left, *_), ((found, *_),) = tried.replies["softmax"][0], tried.replies["softmax_backward"]
    assert left.crash is None and (found.crash.kind, found.crash.text) == ("ValueError", "[]")
    assert host() == before
