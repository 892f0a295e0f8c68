"""A course as it is used: packages that are zipped and moved alone, and the programs of other graders themselves where
they are installed."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from shared import write_answers

from transformer_np import __version__, cli
from transformer_np.homework.new import write_new

COURSE = """
title = "Sheet 2"
folder = "mine"
exercises = ["softmax", "relu", "center"]
[points]
softmax = { core = 3, extended = 1 }
"""
ANSWERS = {
    "softmax": "y = np.exp(x - x.max(axis, keepdims=True))\n    return y / y.sum(axis, keepdims=True)",
    "relu": "return np.maximum(x, 0)",
    "center": "return x / np.abs(x).max(axis, keepdims=True)",
}
NEEDED = {"center.py", "helpers.py", "sizes.txt"}
LATER = ("return x / np.abs(x).max(axis, keepdims=True)", "return x - x.mean(axis, keepdims=True)")


@pytest.fixture
def teacher(tmp_path, monkeypatch):
    """A teacher's folder with a course: an exercise of their own, which reads a helper and a file."""
    folder = tmp_path / "teacher"
    folder.mkdir()
    monkeypatch.chdir(folder)
    file = write_new("center", "mine")
    text = file.read_text(encoding="utf-8").replace('"B T D", least=3', "SIZES, least=3")
    numpy = "import numpy as np"
    file.write_text(text.replace(numpy, f"{numpy}\n\nfrom .helpers import SIZES", 1), encoding="utf-8")
    helper = "from pathlib import Path\n\nSIZES = (Path(__file__).parent / 'sizes.txt').read_text().strip()\n"
    (folder / "mine" / "helpers.py").write_text(helper)
    (folder / "mine" / "sizes.txt").write_text("B T D\n")
    (folder / "mine" / "roster.csv").write_text("id\nada\n")  # nobody's business
    write_new("next_week", "mine")
    (folder / "course.toml").write_text(COURSE, encoding="utf-8")
    return folder


def run(*command, folder):
    """A command as its user types it, in an environment that is active."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = Path(sys.executable).with_name(command[0])
    environment = {**os.environ, "PATH": path}  # nbgrader calls alembic
    done = subprocess.run([found, *command[1:]], cwd=folder, capture_output=True, encoding="utf-8", env=environment)
    return done.returncode, done.stdout, done.stderr


def zipped_and_moved(folder, to):
    """The folder as its receiver has it, with nothing of the teacher's beside it."""
    archive = shutil.make_archive(str(to.with_name("sent")), "zip", folder.parent, folder.name)
    with zipfile.ZipFile(archive) as file:
        file.extractall(to)
    shutil.rmtree(folder.parent)
    return to / folder.name


@pytest.mark.long
def test_a_handout_works_when_it_is_zipped_and_moved_alone(teacher, tmp_path, monkeypatch):
    assert cli.main(["homework", "start", "handout", "--course", "course.toml"]) == 0
    found = {path.relative_to("handout").as_posix() for path in Path("handout").rglob("*") if path.is_file()}
    assert found == {"homework.py", "course.toml"} | {f"exercises/{name}" for name in NEEDED}
    monkeypatch.chdir(tmp_path)
    folder = zipped_and_moved(teacher / "handout", tmp_path / "student")
    write_answers(folder / "homework.py", ANSWERS)
    typed = "check homework.py", "check homework.py center", "hint center", "status"
    program = f"from transformer_np.cli import main\nfor line in {typed}: print('=', main(['homework', *line.split()]))"
    code, out, err = run("python", "-c", program, folder=folder)
    assert (code, err, re.findall(r"^= (\d)$", out, re.MULTILINE)) == (0, "", ["1", "0", "0", "0"])
    checked, _, hint, status, _ = re.split(r"^= \d\n", out, flags=re.MULTILINE)
    assert "2 of 3 exercises right, 1 wrong" in checked  # softmax is right for the lecture
    assert "Which number do you divide by" in hint and "2 of 3" in status
    code, out, _ = run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", folder=folder)
    assert (code, "2 of 3 exercises right, 1 wrong" in out) == (1, True), out


@pytest.mark.long
def test_an_exercise_that_is_edited_after_the_release(teacher, capsys):
    """Neither the copy in the handout nor that in a submission decides."""
    assert cli.main(["homework", "start", "handout", "--course", "course.toml"]) == 0
    assert cli.main(["homework", "export", "sheet", "--for", "nbgrader", "--course", "course.toml"]) == 0
    mine = teacher / "mine" / "center.py"
    text = mine.read_text(encoding="utf-8").replace(*LATER)
    mine.write_text(text.replace("x / largest", "x - x.mean(axis, keepdims=True)"))
    for student, package in (("ada", "handout"), ("ben", "handout"), ("eve", "sheet")):
        shutil.copytree(package, f"subs/{student}")
    write_answers(Path("subs/ada/homework.py"), ANSWERS)
    text = Path("subs/ada/homework.py").read_text(encoding="utf-8")
    Path("subs/ada/homework.py").write_text(text.replace(*LATER), encoding="utf-8")
    write_answers(Path("subs/ben/homework.py"), ANSWERS)
    for course in ("course.toml", "handout/course.toml"):
        capsys.readouterr()
        assert cli.main(f"homework grade subs --course {course} --trust -q --out g.csv".split()) == 0
        out = capsys.readouterr().out
        assert re.findall(r"^(\w+)  ([\d.]+) of 5", out, re.MULTILINE) == [("ada", "5"), ("ben", "4"), ("eve", "0")]


def test_an_export_is_whole(teacher, capsys):
    nbformat = pytest.importorskip("nbformat")
    for grader in ("nbgrader", "otter"):
        assert cli.main(["homework", "export", grader, "--for", grader, "--course", "course.toml"]) == 0
        assert {path.name for path in Path(grader, "exercises").iterdir()} == NEEDED
        nbformat.validate(nbformat.read(Path(grader, "homework.ipynb"), as_version=nbformat.NO_CONVERT))
    (command,) = re.findall(r"autograder: (.*)", capsys.readouterr().out)
    assert command == "cd otter && otter generate -t tests exercises/center.py exercises/helpers.py exercises/sizes.txt"
    assert f"\ntransformer-np=={__version__}\n" in Path("otter", "requirements.txt").read_text()
    wheel = Path("transformer_np-9.9-py3-none-any.whl")
    wheel.write_bytes(b"wheel")
    assert cli.main(["homework", "export", "o2", "--for", "otter", "--only", "relu", "--wheel", str(wheel)]) == 0
    assert f"/autograder/source/files/{wheel}" in Path("o2", "requirements.txt").read_text()
    assert f"cd o2 && otter generate -t tests {wheel}" in capsys.readouterr().out
    assert cli.main(["homework", "export", "o3", "--for", "nbgrader", "--wheel", str(wheel)]) == 2


# --- Moodle -----------------------------------------------------------------------------------------------------------


def moodle_takes(path, participants):
    """(id, file name) if Moodle's import of feedback files accepts a path in the zip (mod/assign/feedback/file)."""
    parts = path.split("/")
    while parts:
        info = parts.pop(0).split("_", 4)
        if len(info) >= 4 and info[1].isdecimal() and int(info[1]) in participants and info[2] == "assignsubmission":
            return int(info[1]), "/".join([*info[4:], *parts]).lstrip("/")
    return None


@pytest.mark.long
def test_moodle_takes_the_feedback_back(here, capsys):
    people = {4711: "Ada Lovelace", 4712: "Zoë Ångström-O'Neill"}
    for number, name in people.items():
        folder = here / "subs" / f"{name}_{number}_assignsubmission_file"
        folder.mkdir(parents=True)
        (folder / "homework.py").write_text("def relu(x):\n    return x\n")
    (here / "subs" / "late.py").write_text("def relu(x):\n    return x\n")
    (here / "course.toml").write_text('exercises = ["relu"]\n')
    assert cli.main(["homework", "grade", "subs", "--course", "course.toml", "--trust", "-q"]) == 0
    assert "moodle_feedback.zip" in capsys.readouterr().out
    with zipfile.ZipFile(here / "grades_reports" / "moodle_feedback.zip") as file:
        assert {moodle_takes(name, people) for name in file.namelist()} == {(n, "feedback.html") for n in people}
        assert all(b"relu" in file.read(name) for name in file.namelist())


# --- the programs themselves ------------------------------------------------------------------------------------------


@pytest.mark.release
def test_nbgrader_from_source_to_grades(teacher):
    pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install nbgrader")
    (teacher / "nbgrader_config.py").write_text('c = get_config()\nc.CourseDirectory.course_id = "c101"\n')
    assert cli.main(["homework", "export", "source/sheet", "--for", "nbgrader", "--course", "course.toml"]) == 0
    code, _, err = run("nbgrader", "generate_assignment", "sheet", folder=teacher)
    assert code == 0, err
    for student in ("ada", "ben"):
        shutil.copytree("release/sheet", f"submitted/{student}/sheet")
    _fill(Path("submitted", "ada", "sheet", "homework.ipynb"), "# YOUR CODE HERE\n    raise NotImplementedError()")
    mine = Path("source", "sheet", "exercises", "center.py")  # corrected after the release
    mine.write_text(mine.read_text(encoding="utf-8").replace(*LATER), encoding="utf-8")
    code, _, err = run("nbgrader", "autograde", "sheet", folder=teacher)
    assert code == 0, err
    assert run("nbgrader", "export", folder=teacher)[0] == 0
    rows = [line.split(",") for line in (teacher / "grades.csv").read_text().splitlines()[1:]]
    assert {(row[3], *row[-2:]) for row in rows} == {("ada", "4.0", "6.0"), ("ben", "0.0", "6.0")}


@pytest.mark.release
def test_otter_from_generate_to_results(teacher):
    """The command as it is printed; a zip with an older copy of the exercises is graded with the autograder's."""
    pytest.importorskip("otter", reason="otter-grader is not installed: pip install otter-grader")
    assert cli.main(["homework", "export", "sheet", "--for", "otter", "--course", "course.toml"]) == 0
    student = Path(shutil.copytree("sheet", "student"))
    mine = teacher / "sheet" / "exercises" / "center.py"
    mine.write_text(mine.read_text(encoding="utf-8").replace(*LATER), encoding="utf-8")
    along = ["exercises/center.py", "exercises/helpers.py", "exercises/sizes.txt"]
    assert run("otter", "generate", "-t", "tests", *along, folder="sheet")[0] == 0
    with zipfile.ZipFile("sheet/autograder.zip") as file:
        assert f"transformer-np=={__version__}" in file.read("environment.yml").decode()
    _fill(student / "homework.ipynb", "raise NotImplementedError")
    with zipfile.ZipFile("student.zip", "w") as file:
        for path in [student / "homework.ipynb", *(student / "exercises").iterdir()]:
            file.write(path, path.relative_to(student))
    code, out, err = run("otter", "run", "-a", "sheet/autograder.zip", "student.zip", "-o", ".", folder=teacher)
    assert code == 0, out + err
    tests = json.loads(Path("results.json").read_text())["tests"]
    points = {test["name"]: (test["score"], test["max_score"]) for test in tests if "score" in test}
    assert points == {"softmax": (3, 4), "relu": (1, 1), "center": (0, 1)}


def _fill(notebook, body):
    """Write the answers into the cells of a notebook."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    for cell in content["cells"]:
        text = "".join(cell["source"])
        name = next((name for name in ANSWERS if text.startswith(f"def {name}(")), None)
        if name:
            assert body in text
            cell["source"] = text.replace(body, ANSWERS[name])
    os.chmod(notebook, 0o644)
    notebook.write_text(json.dumps(content), encoding="utf-8")
