"""Grading: honest submissions among hostile ones, rubrics, the table, and a run that is broken off."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from shared import wait_until

from transformer_np import cli
from transformer_np.commands.homework_grade import EXAMPLE
from transformer_np.grading.report import overview
from transformer_np.grading.run import Grading
from transformer_np.grading.sandbox import keeper
from transformer_np.grading.sandbox.session import Limits
from transformer_np.grading.submissions import find_submissions, skipped_entries
from transformer_np.homework import all_exercises
from transformer_np.homework.course import parse_course
from transformer_np.homework.judging.judge import Verdict

TWO = parse_course('exercises = ["softmax", "softmax_backward"]')
PATIENT = Limits(seconds=60)  # right answers are right on a busy machine too

SOFTMAX = """
import numpy as np

def softmax(x, axis=-1):
    x = x - np.maximum(x.max(axis, keepdims=True), -1e300)
    e = np.exp(x)
    total = e.sum(axis, keepdims=True)
    return e / np.where(total == 0, 1, total)
"""
BACKWARD = """
def softmax_backward(dy, y, axis=-1):
    return y * (dy - (dy * y).sum(axis, keepdims=True))
"""
DIAGONAL = """
def softmax_backward(dy, y, axis=-1):
    return dy * y * (1 - y)
"""
HONEST = {"ada": SOFTMAX + BACKWARD, "ben": SOFTMAX + DIAGONAL}


def hand_in(folder, sources):
    """Write {name: source} into a folder; a name without an ending is that of a .py file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in sources.items():
        file = folder / (name if re.search(r"\.\w+$", name) else f"{name}.py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(source if isinstance(source, bytes) else source.encode())
    return folder


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return {row["student"].removeprefix("'"): row for row in csv.DictReader(file)}


LAYERS = []  # of this system, which the first grading finds with a process of its own


def graded(folder, course=TWO, out=None, **options):
    """({student: Grade}, the Grading) of a folder; course: also as the text of its file"""
    course = parse_course(course) if isinstance(course, str) else course
    options = {"limits": PATIENT, "trust": True, **options}
    grading = Grading(folder, out or folder.with_name("g.csv"), course, **options)
    grading.layers = LAYERS or None
    grades = {one.student: one for one in grading.run()}
    LAYERS[:] = grading.layers
    return grades, grading


def grade(*of, **options):
    return graded(*of, **options)[0]


def test_a_mistake_without_a_text_is_told_in_the_overview_as_to_the_student_who_made_it_alone():
    """An edit that makes an answer right has a text, that of its kind."""
    made = {"axis not used and NaN where all is hidden": "Both.", "axis not used": "Only `axis`.", "operator": ""}
    verdicts = [Verdict("softmax", "wrong value", message, misconception=name) for name, message in made.items()]
    grades = [SimpleNamespace(verdicts={"softmax": verdict}, points=lambda rubric: 0) for verdict in verdicts]
    text = overview(grades, SimpleNamespace(points={"softmax": 1}, possible=1), "run")
    assert "axis not used | Only \\`axis\\`. |" in text
    assert "| 1 | softmax | operator | This has the wrong operator. |" in text


@pytest.mark.parametrize(
    "part", [pytest.param(i, marks=pytest.mark.release if i else pytest.mark.long) for i in range(8)]
)
def test_all_exercises_can_be_sent_and_tried(tmp_path, part):
    """Every exercise with the library's own: each one is called, and none is there."""
    names = list(all_exercises())[part::8]
    lines = [f"from {all_exercises()[name].reference.__module__} import {name}\n" for name in names]
    (got,) = grade(hand_in(tmp_path / "in", {"imports": "".join(lines)}), f"exercises = {names}").values()
    assert {n: v.misconception for n, v in got.verdicts.items()} == dict.fromkeys(names, "calls the library's solution")


@pytest.mark.long
def test_the_file_that_start_writes_can_be_handed_in(tmp_path, capsys):
    """What its stubs need exists behind the walls: nothing is remarked, and what was written last counts."""
    assert cli.main(["homework", "start", str(tmp_path / "in" / "ada")]) == 0
    file = tmp_path / "in" / "ada" / "homework.py"
    last = "def repeat_heads(x, repeats):\n    return np.repeat(x, repeats, axis=1)\n"
    file.write_text(f"{file.read_text(encoding='utf-8')}\n\n{last}", encoding="utf-8")
    (got,) = grade(tmp_path / "in", 'exercises = ["softmax", "repeat_heads"]').values()
    assert [verdict.outcome for verdict in got.verdicts.values()] == ["not started", "passed"]
    assert got.remarks == ()


# --- folders ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_names_that_meet(tmp_path):
    folder = hand_in(tmp_path / "in", {"ada": SOFTMAX, "ada/a": SOFTMAX + BACKWARD, "notes.txt": ""})
    (folder / "nothing").mkdir()
    assert [path.name for path in find_submissions(folder)] == ["ada", "ada.py"]
    hand_in(folder / "exercises", {"scaled": "EXERCISES = []\n"})
    assert "exercises" in [path.name for path in find_submissions(folder)]  # which may be a name
    before = skipped_entries(folder)
    hand_in(folder, {"course.toml": 'exercises = ["scaled"]\n'})  # as it was handed out
    assert [path.name for path in find_submissions(folder)] == ["ada", "ada.py"]
    assert skipped_entries(folder) == before
    assert {name: g.points(TWO) for name, g in grade(folder).items()} == {"ada": 2, "ada.py": 1}
    rows = rows_of(tmp_path / "g.csv")
    for name, other in (("ada", "ada.py"), ("ada.py", "ada")):
        assert f"shares its name with {other}: with a roster" in rows[name]["remarks"]
    assert len(list((tmp_path / "g_reports").glob("ada*.md"))) == 2


def test_a_folder_without_submissions(tmp_path):
    with pytest.raises(ValueError, match="contains no submission"):
        find_submissions(tmp_path)
    with pytest.raises(NotADirectoryError):
        find_submissions(tmp_path / "none")


@pytest.mark.release
def test_files_that_cannot_be_put_down_are_one_students_trouble(tmp_path):
    folder = hand_in(tmp_path / "in", {"ada": SOFTMAX})
    os.makedirs(folder / "deep")
    here = os.open(folder / "deep", os.O_RDONLY)
    try:
        for _ in range(17):
            os.mkdir("d" * 230, dir_fd=here)
            below = os.open("d" * 230, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(os.open("a.py", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    finally:
        os.close(here)
    large = {f"large/f{i}": b"#" * (1 << 20) for i in range(12)}
    grades = grade(hand_in(folder, {"deep/b": SOFTMAX, "large/a": SOFTMAX, **large}))
    assert grades["ada"].points(TWO) == grades["large"].points(TWO) == 1
    assert any("larger than 8 MiB" in remark for remark in grades["large"].remarks)
    assert grades["deep"].points(TWO) in (0, 1)
    shutil.rmtree(folder / "deep")  # too deep for pytest


# --- again, and broken off -------------------------------------------------------------------------------------------


@pytest.mark.long
def test_only_what_changed_is_graded_again(tmp_path):
    folder, out = hand_in(tmp_path / "in", HONEST), tmp_path / "g.csv"
    _, first = graded(folder)
    table = out.read_text()
    _, again = graded(folder)
    assert again.seed == first.seed  # of the inputs that were graded with
    assert (again.reused, out.read_text()) == (2, table)
    hand_in(folder, {"ben": HONEST["ada"] + "# mine"})
    with (tmp_path / "g_records" / "results.jsonl").open("a") as file:
        file.write('{"key": ')  # half a line
    _, third = graded(folder)
    assert third.seed != first.seed
    assert (third.reused, len(third.attempts)) == (2, 3)  # ada's and ben's first
    assert graded(folder, seed=third.seed)[1].reused == 1
    assert rows_of(out)["ben"]["points"] == "2"
    assert graded(folder, seed=third.seed + 1)[1].reused == 0


def lines_of(path):
    return [line for line in map(json.loads, path.read_text().splitlines()) if "records of" not in line]


NO_WALLS = "from transformer_np.grading.sandbox import keeper\nkeeper.bubblewrap = lambda: ([], 0)\n"


def command(folder, out, first=""):
    """The command in a process of its own, which executes a piece of code first."""
    rubric = folder.parent / "rubric.toml"
    rubric.write_text('exercises = ["softmax"]\n')
    options = f"--out {out} --rubric {rubric} --workers 1 --seconds 5 --trust".split()
    code = f"{first}import sys\nfrom transformer_np import cli\nsys.exit(cli.main())"
    return [sys.executable, "-c", code, "homework", "grade", str(folder), *options]


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="POSIX only")
@pytest.mark.parametrize(
    "ending, walls",
    [
        ("SIGKILL", True),
        *(pytest.param(*one, marks=pytest.mark.release) for one in (("SIGTERM", False), ("SIGINT", True))),
    ],
)
def test_a_run_that_is_broken_off(tmp_path, ending, walls):
    sleeps = "import time\ntime.sleep(1000)\n"
    folder, out = hand_in(tmp_path / "in", {"ada": HONEST["ada"], "zoe": sleeps}), tmp_path / "grades.csv"
    record, hand_ins = (tmp_path / "grades_records" / name for name in ("results.jsonl", "hand-ins.jsonl"))
    (tmp_path / "temporary").mkdir()
    environment = os.environ | {"TMPDIR": str(tmp_path / "temporary")}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = command(folder, out, "" if walls else NO_WALLS)
    process = subprocess.Popen(started, env=environment, **quiet)
    try:
        wait_until(record.exists)
        wait_until(lambda: walls or [*(tmp_path / "temporary").glob("*/zoe.py")])
        wait_until(lambda: children_of(process.pid))
        children = children_of(process.pid)
        process.send_signal(getattr(signal, ending))
        code = process.wait(300)
    finally:
        process.kill()
        process.wait()
    assert code == {"SIGKILL": -signal.SIGKILL, "SIGTERM": -signal.SIGTERM, "SIGINT": 130}[ending]
    if sys.platform == "linux":
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))
    wait_until(lambda: not list((tmp_path / "temporary").iterdir()))
    assert not out.exists()
    seed = json.loads((tmp_path / "grades_reports" / "run.json").read_text())["seed"]
    assert [line["seed"] for line in lines_of(hand_ins)] == [seed, seed]
    finished = [line["key"] for line in lines_of(record)]
    hand_in(folder, {"zoe": ""})
    subprocess.run(started, check=True, capture_output=True)
    assert [line["key"] for line in lines_of(record)][: len(finished)] == finished
    assert not {*finished} & {line["key"] for line in lines_of(record)[len(finished) :]}
    assert [row["points"] for row in rows_of(out).values()] == ["1", "0"]
    *_, ada, zoe, new = lines_of(hand_ins)
    assert ada["seed"] == zoe["seed"] == seed != new["seed"]


def children_of(pid):
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = dict(map(int, line.split()) for line in listed.splitlines())
    found = [child for child, parent in parents.items() if parent == pid]
    return found + [child for child, parent in parents.items() if parent in found]


# --- the command -----------------------------------------------------------------------------------------------------


def parse(*arguments):
    return cli.build_parser("homework", "grade").parse_args(["homework", "grade", *map(str, arguments)])


def test_the_table_and_the_reports_with_the_example_of_a_rubric(tmp_path, capsys):
    args = parse("--rubric-example")
    assert args.run(args) == 0 and capsys.readouterr().out == EXAMPLE
    folder = hand_in(tmp_path / "in", HONEST | {"=1+1": HONEST["ada"], "bob.md": ""})
    (folder / "cy").mkdir()
    course = hand_in(tmp_path, {"course.toml": EXAMPLE}) / "course.toml"
    args = parse(folder, "--out", tmp_path / "g.csv", "--course", course, "--seed", 0, "--trust",
                 "--picture", tmp_path / "class.svg")  # fmt: skip
    assert args.run(args) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("Walls: ") and "ada   3.5 of 3.5" in shown.out and "Seed 0" in shown.out
    assert "No row for these, which are neither a .py or .ipynb file nor a folder with one: bob.md, cy\n" in shown.out
    assert not shown.err  # a bar is for a terminal
    rows, reports = rows_of(tmp_path / "g.csv"), tmp_path / "g_reports"
    assert ",".join(rows["ada"]) == "student,points,points possible,percent,passed,softmax,softmax_backward,remarks"
    same = "the same file as =1+1 (=1+1.py)"
    assert list(rows["ada"].values()) == ["ada", "3.5", "3.5", "100.0", "yes", "1", "2.5", same]
    assert list(rows["ben"].values()) == ["ben", "1", "3.5", "28.6", "no", "1", "0", ""]
    assert "'=1+1" in (tmp_path / "g.csv").read_text() and len(rows) == 3
    report = (reports / "ben.md").read_text()
    assert "| softmax_backward | 0 of 2.5 | wrong gradient | only the diagonal |" in report
    assert "off-diagonal" in report and "Isolation: own process" in report and "seed" not in report
    assert "only the diagonal (1)" in (reports / "overview.md").read_text()
    assert "softmax_backward" in (tmp_path / "class.svg").read_text()


def test_a_system_that_cannot_start_the_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(keeper, "CHILD", "raise EOFError")
    with pytest.raises(ValueError, match="no submission can be tried here: the process"):
        Grading(hand_in(tmp_path / "in", {"ada": HONEST["ada"]}), tmp_path / "g.csv", TWO).run()


def test_bad_use(tmp_path, capsys):
    for arguments in ("--seconds 0", "--memory much", "--workers 0", "--seed -1"):
        with pytest.raises(SystemExit):
            parse("x", *arguments.split())
    args = parse(tmp_path, "--out", tmp_path / "none" / "g.csv")
    with pytest.raises(ValueError, match="--out"):
        args.run(args)
    args = parse(tmp_path, "--out", tmp_path / "g.csv", "--picture", "class.txt")
    with pytest.raises(ValueError, match=r"--picture class.txt: the name must end in"):
        args.run(args)
    args = parse()
    with pytest.raises(ValueError, match="FOLDER"):
        args.run(args)
