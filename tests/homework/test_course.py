"""A course decides what `start` writes, what `check` and `status` show, and which columns `grade` has."""

import csv
import json
import re
from functools import partial

import pytest
import shared

from transformer_np.grading.formats import FORMATS
from transformer_np.grading.grade import Grade
from transformer_np.grading.report import class_results, explained, overview, student_report
from transformer_np.homework import all_exercises, check
from transformer_np.homework.course import CourseError, course_at, parse_course
from transformer_np.homework.judging.judge import Verdict
from transformer_np.homework.path import chosen

COURSE = """
title = "Sheet 2"
deadline = "Friday, 12:00"
exercises = ["02", "relu"]
extended = ["relu"]
pass_mark = 50
[points]
softmax = 3
"""

LOUD = """
print('loud')


def relu(x):
    print('loud')
    return x * (x > 0)


def softmax(x, axis=-1):
    return x
"""


@pytest.fixture
def call(here, capsys):
    (here / "sheet2.toml").write_text(COURSE, encoding="utf-8")
    return partial(shared.call, capsys, "homework")


def test_the_words_of_a_list():
    assert [exercise.name for exercise in chosen("02")] == [exercise.name for exercise in chosen("self-attention")]
    assert [exercise.name for exercise in chosen("2")] == [exercise.name for exercise in chosen("02")]
    assert [exercise.name for exercise in chosen("Softmax")] == ["softmax"]
    assert len({exercise.chapter for exercise in chosen("06")}) == 2
    assert course_at(None).points == dict.fromkeys(all_exercises(), 1.0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('exercises = ["02", "softmax"]', "line 1: exercises names softmax twice"),
        ('exercises = [\n"softmax",\n"softmax"]', "line 3: exercises names softmax twice"),
        ("points = " + "[" * 100_000, " is not TOML"),
        ("partial = \n", "line 1"), ("\npartial = 1", "line 2: partial must be true or false, got 1"),
        ("patial = true", "line 1: there is no setting 'patial'; did you mean partial?"),
        ('exercises = "softmax"', "line 1: exercises must be a list"), ("exercises = []", "no exercise gives points"),
        ("[points]\nsoftmax_bckward = 1", "did you mean softmax_backward?"), ("[points]\nsoftmax = inf", "line 2"),
        ("[points]\nsoftmax = 1\nsoftmax_backward = -1", "line 3: the points for softmax_backward must be a number"),
        ('[points]\nsoftmax = "2"', "line 2: the points for softmax must be a number"),
        ("[points]\nsoftmax = true", "line 2: the points for softmax must be a number"),
        ('exercises = ["softmax"]\n[points]\nsoftmax_backward = 1', "line 3: points for softmax_backward, but"),
        ("points = 3", "line 1: points must be a table"), ("pass_mark = 101", "line 1: pass_mark"),
        ('\nexercises = ["99"]', "line 2: there are no exercises of notebook 99"),
        ('exercises = ["sofmax"]', "did you mean softmax?"),
        ('exercises = ["softmax"]\nextended = ["relu"]', "line 2: relu is extended, but not in exercises"),
        ('exercises = ["softmax"]\nextended = ["softmax"]', "no exercise of the core gives points"),
        ("deadline = 2026-06-12", "deadline must be a text in quotes or a time"),
        ("deadline = 9999-12-31T23:00:00-05:00", "line 1: nobody can hand in at the deadline 9999-12-31"),
        ("[late]\nper_day = 10", "line 1: [late] needs a deadline that is a time"),
        ("deadline = 2026-06-12T12:00:00\n[late]\nper_day = 101", "line 3: per_day must be percent of the points, in"),
        ("deadline = 2026-06-12T12:00:00\n[late]\nper_week = 1", "line 3: [late] has the settings grace, per_day,"),
        ("deadline = 2026-06-12T12:00:00\n[late]\nmost_days = 1.5", "line 3: most_days must be whole days"),
        ('attempts = "first"', 'line 1: attempts must be "best" or "last"'),
        ("\ncore = 80", "line 2: core must be a number in 0 … 1"),
        ("core = true", "line 1: core must be a number"),
        ("[points]\nrelu = { core = 1, more = 1 }", "line 2: the points for relu must be a number or { core = 3,"),
        ("[points]\nrelu = {}", "line 2: the points for relu must be a number or"),
        ("[points]\nrelu = { core = -1 }", "line 2: the points for relu must be a number, 0 or more, got -1"),
        ('extended = ["relu"]\n[points]\nrelu = { core = 1 }', "line 3: relu is extended, so all its points are"),
        ("core = 0", "no exercise of the core gives points"),
        ("folder = 3", "folder must be a text in quotes"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_course(text, told):
    with pytest.raises(CourseError, match=re.escape(told)):
        parse_course(text)


@pytest.mark.long
def test_only_decides_what_is_shown(call, tmp_path):
    code, out, _ = call("start", "work", "--only", "02,relu")
    names = [exercise.name for exercise in chosen("02")] + ["relu"]
    assert (code, f"work/homework.py: {len(names)} exercises" in out) == (0, True)
    assert call("check", "work")[1].count("· not started") == 2  # a line for each of two chapters
    out = call("status")[1]
    assert f"0 of {len(names)} exercises right" in out and "embedding" not in out
    assert call("start", "work", "--only", "03")[0] == 2
    (tmp_path / "work" / "homework.py").unlink()
    code, _, err = call("start", "work", "--only", "03")
    assert (code, "course.toml already exists" in err) == (2, True)
    assert not (tmp_path / "work" / "homework.py").exists()
    assert call("start", "work", "--only", "02,relu")[0] == 0  # the same course


@pytest.mark.parametrize("words", [["zzz"], ["99"], [","], ["softmax,sofmax"]])
def test_only_with_a_wrong_word(call, tmp_path, words):
    code, out, err = call("start", "work", "--only", *words)
    assert (code, out) == (2, "") and "Traceback" not in err and not (tmp_path / "work").exists()


def test_a_course_file_goes_along(call, tmp_path):
    assert call("start", "work", "--course", "sheet2.toml")[0] == 0
    assert (tmp_path / "work" / "course.toml").read_text(encoding="utf-8") == COURSE
    out = call("status", "work")[1]
    assert out.startswith("Sheet 2\nDeadline: Friday, 12:00\n")
    assert "not started (3 points)" in out and "not started (1 point, extended)" in out
    assert call("start", "more", "--course", "missing.toml")[0] == 2
    (tmp_path / "wrong.toml").write_text("title = 'A'\nfolder = 3\n", encoding="utf-8")
    assert "wrong.toml, line 2: folder must be a text" in call("start", "more", "--course", "wrong.toml")[2]
    assert "--only" in call("start", "more", "--course", "sheet2.toml", "--only", "02")[2]


def test_json(call, tmp_path):
    (tmp_path / "homework.py").write_text(LOUD, encoding="utf-8")
    code, out, err = call("check", "homework.py", "--course", "sheet2.toml", "--json", "--seed", "3")
    found = json.loads(out)
    assert (code, "loud" in err) == (1, True)
    assert (found["title"], found["seed"], found["right"]) == ("Sheet 2", 3, 1)
    of = {exercise["exercise"]: exercise for exercise in found["exercises"]}
    assert list(of) == [*(exercise.name for exercise in chosen("02")), "relu"]
    assert (of["relu"]["outcome"], of["relu"]["extended"]) == ("passed", True)
    assert of["softmax"]["outcome"] == "wrong value"
    assert of["softmax"]["message"].startswith("softmax: wrong value.")
    code, out, _ = call("check", "homework.py", "relu", "--json")
    assert (code, [exercise["exercise"] for exercise in json.loads(out)["exercises"]]) == (0, ["relu"])
    assert call("status", "homework.py", "--json")[0] == 0
    (tmp_path / "homework.py").write_text("def relu(x:\n    return x\n", encoding="utf-8")  # it cannot be loaded
    code, out, err = call("check", "homework.py", "--course", "sheet2.toml", "--json")
    found = json.loads(out)
    assert (code, found["right"], found["exercises"][-1]["outcome"]) == (1, 0, "crashed") and "SyntaxError" in err
    assert "could not be loaded (SyntaxError" in found["remarks"][0]
    (tmp_path / "homework.py").write_text("x = 1\n", encoding="utf-8")
    code, out, _ = call("check", "homework.py", "--json")
    assert (code, {exercise["outcome"] for exercise in json.loads(out)["exercises"]}) == (1, {"not started"})


# --- the formats of the grades ----------------------------------------------------------------------------------------


SPLIT = """
pass_mark = 50
exercises = ["softmax", "relu", "gelu"]
extended = ["gelu"]
core = 0.75
[points]
softmax = 4
relu = { core = 2, extended = 3 }
gelu = 5
"""


def graded(course, softmax, *remarks):
    """A student with this verdict on softmax, and nothing else."""
    others = {name: Verdict(name, "not started", f"{name}: not started.") for name in ("relu", "gelu")}
    return [Grade("=ada", {"softmax": softmax, **others}, remarks)]


FOR_LECTURE = Verdict("softmax", "wrong value", "softmax: right for the lecture.", share=0.5, core=True)
RIGHT = Verdict("softmax", "passed", "softmax: right.", share=1.0, core=True)
HALF = Verdict("softmax", "wrong value", "softmax: wrong value.", share=0.5)


def test_a_course_splits_the_points_of_an_exercise():
    course = parse_course(SPLIT)
    assert [(part.title, part.worth, part.extended) for part in course.parts] == [
        ("softmax", 3, False), ("softmax (extended)", 1, True), ("relu", 2, False), ("relu (extended)", 3, True),
        ("gelu", 5, True),
    ]  # fmt: skip
    assert (course.possible, course.possible_extended, course.points["relu"]) == (5, 9, 5)
    assert [part.title for part in parse_course('exercises = ["relu"]\ncore = 1').parts] == ["relu"]


@pytest.mark.parametrize(
    ("settings", "verdict", "points"),
    [
        ("core = 0.75", RIGHT, (3, 1)),
        ("core = 0.75", FOR_LECTURE, (3, 0)),
        ("core = 0.75", HALF, (0, 0)),
        ("core = 0.75\npartial = true", HALF, (1.5, 0)),
        ("core = 1", FOR_LECTURE, (4, 0)),
        ("", FOR_LECTURE, (0, 0)),  # without `core` only an answer that is right in every case gives points
        ("", RIGHT, (4, 0)),
        ("partial = true", FOR_LECTURE, (2, 0)),
    ],
)
def test_points_for_an_answer_that_is_right_for_the_lecture(settings, verdict, points):
    course = parse_course(f'exercises = ["softmax", "relu", "gelu"]\n{settings}\n[points]\nsoftmax = 4')
    (grade,) = graded(course, verdict)
    assert (grade.points(course), grade.extended_points(course)) == points


def test_every_format_has_core_and_extended_points():
    course = parse_course(SPLIT)
    of, half = graded(course, FOR_LECTURE, "timed out: relu"), graded(course, HALF)

    def table(name, of=of):
        return FORMATS[name][0](of, course)

    head, row = csv.reader(table("csv").splitlines())
    assert head == [
        "student", "points", "points possible", "percent", "extended points", "passed", "softmax", "softmax (extended)",
        "relu", "relu (extended)", "gelu", "remarks",
    ]  # fmt: skip
    assert row == ["'=ada", "3", "5", "60.0", "0", "yes", "3", "0", "0", "0", "0", "timed out: relu"]
    assert table("csv", half).splitlines()[1].startswith("'=ada,0,5,0.0,0,no,")
    (student,) = json.loads(table("json"))["students"]
    softmax = student["exercises"][list(course.points).index("softmax")]
    assert (softmax["points"], softmax["points possible"]) == (3, 4)
    assert (softmax["extended points"], softmax["extended points possible"]) == (0, 1)
    tests = {test["name"]: test for test in json.loads(table("gradescope"))["tests"]}
    core, rest = tests["softmax"], tests["softmax (extended)"]
    assert (core["score"], core["max_score"], core["status"]) == (3, 3, "passed")
    assert (rest["score"], rest["max_score"], rest["status"]) == (0, 0, "failed")
    assert sum(test["score"] for test in tests.values()) == json.loads(table("gradescope"))["score"] == 3
    head, possible, row = csv.reader(table("otter").splitlines())
    assert head == [
        "file", "gelu", "relu", "relu (extended)", "softmax", "softmax (extended)",
        "total_points_earned", "percent_correct", "grading_status",
    ]  # fmt: skip
    assert possible == ["points-per-question", "5", "2", "3", "3", "1", "5", "1", "--"]
    assert row[1:] == ["0", "0", "0", "3", "0", "3", "0.6", "timed out: relu"]
    assert table("otter", half).endswith(",Completed\n")
    report = student_report(of[0], course, "")
    assert "3 of 5 points, 60.0 %. Beyond the core: 0 of 9 points." in report
    assert "| softmax | 3 of 3, 0 of 1 (extended) | right for the lecture |  |" in report


# --- the class --------------------------------------------------------------------------------------------------------


def test_the_overview_counts_who_is_right_and_which_mistakes_are_made():
    course = parse_course('exercises = ["softmax"]')
    wrong = Verdict("softmax", "wrong value", "", "the sigmoid", share=0.2)
    of = [Grade("", {"softmax": verdict}) for verdict in (RIGHT, FOR_LECTURE, wrong, wrong)]
    text = overview(of, course, "")
    assert "| softmax | 1 | 1 | 2 | 0 | the sigmoid (2) |" in text
    assert "| 2 | softmax | the sigmoid | This is the sigmoid of every number by itself" in text
    (result,) = class_results(of, course)
    assert result.states == {"right": 1, "right for the lecture": 1, "wrong": 2, "not started": 0}
    assert result.mistakes == {"the sigmoid": 2}


@pytest.mark.long
def test_gradescope_grades_one_submission_of_several_files(call, tmp_path):
    folder = tmp_path / "submission"
    folder.mkdir()
    (folder / "homework.py").write_text("from helper import sign\n\n\ndef relu(x):\n    return x * sign(x)\n")
    (folder / "helper.py").write_text("def sign(x):\n    return x > 0\n")
    (tmp_path / "relu.toml").write_text(GRADESCOPE, encoding="utf-8")
    about = {"id": 4, "created_at": "2026-06-13T08:00:00.365935-07:00", "previous_submissions": []}
    (tmp_path / "submission_metadata.json").write_text(json.dumps(about))
    assert call("grade", "submission", "--course", "relu.toml", "--format", "gradescope", "--seed", "1")[0] == 0
    result = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    tests = {test.pop("name"): (test.pop("output"), test)[1] for test in result["tests"]}
    output = "2 days late (submission_metadata.json): 50 % of the points"
    assert result == {"score": 1.5, "output": output, "output_format": "text", "tests": result["tests"]}
    same = {"output_format": "text", "visibility": "visible"}
    assert tests == {
        "softmax": {"score": 0.0, "max_score": 2.4, "status": "failed", **same},
        "softmax (extended)": {"score": 0.0, "max_score": 0, "status": "failed", **same},
        "relu": {"score": 1.2, "max_score": 2.4, "status": "passed", **same},
        "relu (extended)": {"score": 0.3, "max_score": 0, "status": "passed", **same},
    }


@pytest.mark.parametrize("text", ["exercises = ['relu']", "title = 'A'\r\nexercises = ['relu']\r\n"])
def test_a_byte_order_mark_of_an_editor_is_no_part_of_a_course(text, call, tmp_path):
    (tmp_path / "windows.toml").write_bytes(text.encode("utf-8-sig"))
    assert list(course_at(tmp_path / "windows.toml").points) == ["relu"]
    assert call("start", "work", "--course", "windows.toml")[0] == 0
    assert list(course_at(tmp_path / "work" / "course.toml").points) == ["relu"]


GRADESCOPE = """
exercises = ["softmax", "relu"]
core = 0.8
deadline = 2026-06-12T12:00:00Z
[points]
softmax = 3
relu = 3
[late]
per_day = 25
"""


def test_points_for_the_lecture_follow_its_cases_alone():
    """Two answers that are right in 4 of 5 of the lecture's cases, and differ in the extended ones."""
    course = parse_course(SPLIT.replace("[points]", "partial = true\n[points]"))
    worse, better = (Verdict("softmax", "wrong value", "", share=share, core_share=0.8) for share in (0.57, 0.86))
    assert {graded(course, verdict)[0].points(course) for verdict in (worse, better)} == {3 * 0.8}
    (_, _, below), *_ = explained(graded(course, worse)[0], course)
    assert below.endswith("80% of the lecture's cases and 57% of all cases are right.")


@pytest.mark.parametrize("name", ["softmax", "cross_entropy"])
def test_the_share_of_the_lectures_cases(name):
    exercise = all_exercises()[name]
    verdict = check(name, exercise.variant({next(iter(exercise.mistakes))}), quiet=True, seed=1)
    assert 0 <= verdict.core_share < 1
    assert check(name, exercise.reference, quiet=True).core_share == 1
