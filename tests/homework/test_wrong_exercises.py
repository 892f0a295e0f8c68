"""A teacher's files that nobody can be graded with: `verify` and `grade` name the file and the line, and end."""

import re

import pytest
from shared import IMPATIENT, python

from transformer_np import cli
from transformer_np.commands.homework_grade import _check_own
from transformer_np.homework.course import opened
from transformer_np.homework.new import write_new

BODY, DRAW = "    return x / np.abs(x).max", "    sizes = draw_sizes("
LIST, ALL = "    return [\n        Case", "EXERCISES = [\n    Exercise("
WRONG = {  # name: (old text, new text, what is said)
    "the program ended at its top": ("import numpy", "import sys\n\nsys.exit(0)\nimport numpy", "SystemExit"),
    "an error at its top": ("import numpy", "1 / 0\nimport numpy", "ZeroDivisionError"),
    "a loop at its top": ("import numpy", "while True:\n    pass\nimport numpy", "does not end"),
    "a loop that catches all": (
        "import numpy", "while True:\n    try:\n        pass\n    except:\n        pass\nimport numpy", "does not end",
    ),
    "EXERCISES is None": (ALL, f"EXERCISES = None\n_ = [\n{ALL[14:]}", "must be a list of Exercise, got None"),
    "EXERCISES is an exercise": (ALL, "EXERCISES = (\n    Exercise(", "'(' on line"),
    "a function in EXERCISES": (ALL, "EXERCISES = [\n    scaled,\n    Exercise(", "[0] must be an Exercise, got"),
    "a field is missing": ("        difficulty=1,\n", "", "'difficulty'"),
    "a field that is none": ("difficulty=1", "dificulty=1", "'dificulty'"),
    "results without a comma": ('(Result("y", "B T D"),)', 'Result("y", "B T D")', "results must be a tuple"),
    "cases is a list": ("cases=scaled_cases", "cases=[]", "cases must be a function"),
    "answer is a text": ("answer=plain", "answer='plain'", "answer must be a function"),
    "a reference without a name": ("reference=scaled", "reference=lambda x: x", "a class with a name"),
    "parts is a text": ("place=1,", "place=1,\n        parts='forward',", "parts must be a tuple"),
    "parts names nothing": ("place=1,", "place=1,\n        parts=('forward',),", "parts names forward"),
    "place is a text": ("place=1", "place='1'", "place must be a number"),
    "mistakes is a list": ('mistakes="""', 'mistakes=[] and """', "mistakes must be a text"),
    "no cases": (LIST, f"    return []\n{LIST}", "its cases must be a list of Case, at least one"),
    "cases of tuples": ('Case("", (x,), sizes=sizes)', '("", (x,))', "its cases must be a list of Case"),
    "cases one by one": (LIST, f"    yield Case('', (x,))\n{LIST}", "its cases must be a list of Case"),
    "an argument without a comma": ('"", (x,)', '"", (x)', "a Case needs a tuple of arguments"),
    "an error in cases": (DRAW, f"    1 / 0\n{DRAW}", "its cases cannot be drawn. ZeroDivisionError"),
    "the program ended in cases": (DRAW, f"    raise SystemExit(0)\n{DRAW}", "its cases cannot be drawn. SystemExit"),
    "a loop in cases": (DRAW, f"    while True:\n        pass\n{DRAW}", "does not end"),
    "the program ended in the reference": (BODY, f"    exit(0)\n{BODY}", "its reference crashes. SystemExit"),
    "a loop in the reference": (BODY, f"    while True:\n        pass\n{BODY}", "does not end"),
    "no end of calls": (BODY, f"    scaled(x)\n{BODY}", "its reference crashes. RecursionError"),
}  # fmt: skip
ANSWER = "def scaled(x, axis=-1):\n    return x / abs(x).max(axis, keepdims=True)\n"


@pytest.fixture
def folder(here):
    """A folder with mine/scaled.py and a submission; a function rewrites the first."""
    file = write_new("scaled", here / "mine")
    (here / "subs").mkdir()
    (here / "subs" / "ada.py").write_text(ANSWER)

    def rewrite(old, new):
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), encoding="utf-8")

    return rewrite


VERIFY = ("verify", "mine", "--time-limit", "0.4")
GRADE = ("grade", "subs", "--exercises", "mine", "--seconds", "0.4", "-q")


@pytest.mark.long
@pytest.mark.parametrize("wrong", WRONG)
def test_a_file_that_nobody_can_be_graded_with(wrong, folder, capsys, tmp_path):
    old, new, said = WRONG[wrong]
    folder(old, new)
    for command, code in ((VERIFY, 1), (GRADE, 2)):
        assert cli.main(["homework", *command]) == code
        text = "".join(capsys.readouterr())
        assert said in text
        assert re.search(r'scaled\.py"?, line \d', text), text
        assert "a bug" not in text
    assert not (tmp_path / "grades.csv").exists()


IN_DOUBT = {  # name: (old text, new text, what a teacher who grades is told)
    "nothing": ("difficulty=1", "difficulty=2", "^$"),
    "the reference contradicts the answer": (
        BODY, BODY.replace("max", "min"),
        r"scaled: its answer is not right: wrong value. Wrong: y \(scaled.py, line \d+\)\.\n(?s:.*)\nCorrect it ",
    ),
    "a rewrite finds nothing": (
        "np.abs(x) -> x", "np.mean(x) -> x",
        r"scaled: plain, 'without the absolute value': 'np.mean\(x\)' is not in the answer\.\nCorrect it before ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", IN_DOUBT)
def test_a_teacher_who_grades_reads_what_is_in_doubt(wrong, folder, capsys, tmp_path):
    old, new, said = IN_DOUBT[wrong]
    folder(old, new)
    with opened(folder=tmp_path / "mine") as course:
        _check_own(course, 10.0)
    assert re.search(said, capsys.readouterr().err)


@pytest.mark.parametrize("wrong", ["no cases", "the program ended in cases", "the program ended in the reference"])
def test_a_student_reads_that_it_is_not_the_answer(wrong, folder, capsys, tmp_path):
    (tmp_path / "homework.py").write_text(ANSWER)
    folder(*WRONG[wrong][:2])
    assert cli.main(["homework", "check", "homework.py", "scaled", "--exercises", "mine"]) == 1
    assert "The exercise's own code fails, not the answer" in capsys.readouterr().out


def test_two_files_with_one_exercise_are_named(folder, capsys, tmp_path):
    mine = tmp_path / "mine"
    (mine / "again.py").write_text((mine / "scaled.py").read_text(encoding="utf-8"), encoding="utf-8")
    assert cli.main(["homework", *VERIFY]) == 1
    assert re.search(r"twice: scaled \(again\.py, line \d+ and scaled\.py, line \d+\)", capsys.readouterr().out)


@pytest.mark.long
@pytest.mark.parametrize("place", [pytest.param("import numpy", marks=pytest.mark.release), DRAW])
def test_a_loop_in_c_ends_too(place, folder):
    indent = place[: len(place) - len(place.lstrip())]
    folder(place, f"{indent}sum(range(10**13))\n{place}")
    run = python(*IMPATIENT, "homework", *VERIFY)
    assert run.returncode == 1
    assert re.search(r'scaled\.py", line \d', run.stderr)


def test_the_lines_of_a_helper_that_fails_stand_one_below_the_other(folder, capsys, tmp_path):
    (tmp_path / "mine" / "_helpers.py").write_text("1 / 0\n")
    folder("import numpy", "from . import _helpers\nimport numpy")
    assert cli.main(["homework", *GRADE]) == 2
    err = capsys.readouterr().err
    assert re.search(r"\n    from \. import _helpers\n(    \^+\n)?  File .*\n    1 / 0\n", err)  # 3.11 marks no import
