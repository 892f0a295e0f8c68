"""Grades in the forms that other programs read: JSON, Gradescope's results.json, the table of `otter grade`."""

import json
import math
from contextlib import contextmanager

from ..homework.path import all_exercises
from ..homework.remarks import how
from ..support.files import write_text
from .report import as_csv, cell, grades_csv, number

MOST_OUTPUT = 10_000  # characters of one verdict


def as_json(grades, course):
    """All verdicts of all students."""
    students = [
        {
            "student": grade.student, "name": grade.name,
            "handed in": grade.handed_in and course.in_zone(grade.handed_in).isoformat(timespec="seconds"),
            "time from": grade.known_by, "days late": grade.days_late, "attempt": grade.attempt[0],
            "attempts": grade.attempt[1], "points": _points(grade.points(course)),
            "points possible": _points(course.possible),
            "extended points": _points(grade.extended_points(course)),
            "extended points possible": _points(course.possible_extended),
            "remarks": [*grade.notes, *grade.remarks], "not loaded": grade.not_loaded, "alike": grade.alike,
            "exercises": [_exercise(grade, name, course) for name in course.points], "written": grade.written,
        }
        for grade in grades
    ]  # fmt: skip
    return _text({"title": course.title, "students": students})


def _exercise(grade, name, course):
    verdict, parts = grade.verdicts[name], course.parts_of(name)
    extended = [part for part in parts if part.extended]
    return {
        **verdict_as_dict(verdict),
        "points": _points(*(grade.points_for(part, course) for part in parts)),
        "points possible": _points(course.points[verdict.exercise]),
        "extended points": _points(*(grade.points_for(part, course) for part in extended)),
        "extended points possible": _points(*(part.worth for part in extended)),
        "extended": verdict.exercise in course.extended,
    }


def verdict_as_dict(verdict):
    return {
        "exercise": verdict.exercise, "chapter": all_exercises()[verdict.exercise].chapter,
        "outcome": verdict.outcome, "right for the lecture": verdict.core, "misconception": verdict.misconception,
        "share": round(verdict.share, 4), "message": verdict.message,
    }  # fmt: skip


def gradescope(grades, course):
    """The results.json of the only student. Points beyond the core are extra: they raise the score, not its maximum."""
    (grade,), tests = grades, []
    for part in course.parts:
        verdict = grade.verdicts[part.exercise]
        tests.append(
            {
                "name": f"{part.exercise} (extended)" if part.extended else part.exercise,
                "score": _points(grade.points_for(part, course)),
                "max_score": 0 if part.extended else _points(part.worth),
                "status": "passed" if part.is_right(verdict) else "failed", "output": verdict.message[:MOST_OUTPUT],
                "output_format": "text", "visibility": "visible",
            }
        )  # fmt: skip
    score = _points(grade.points(course), grade.extended_points(course))
    failed = (f"{file} {how(file, text.partition(':')[0])}. {text}" for file, text in grade.not_loaded.items())
    output = "\n\n".join([*grade.remarks, *failed])
    return _text({"score": score, "output": output[:MOST_OUTPUT], "output_format": "text", "tests": tests})


@contextmanager
def results_even_if_it_fails(out):
    """Gradescope shows nothing but results.json: an error inside the block is written there, then raised. There is no
    score in it, so Gradescope reports a failed autograder and gives no 0 points."""
    try:
        yield
    except Exception as error:
        told = (
            "This submission has not been graded, which is not its fault, and has no points yet. Tell your teacher: "
            f"{type(error).__name__}: {error}"
        )
        write_text(out, _text({"output": told[:MOST_OUTPUT], "output_format": "text"}))
        raise


def otter_csv(grades, course):
    """The final_grades.csv of `otter grade`: one column per exercise, in alphabetical order, or two if its points are
    split, then the written answers, and the possible points in the first row."""
    parts = sorted(course.parts, key=lambda part: part.title)
    names = [*(part.title for part in parts), *course.written]
    worth = map(number, [*(part.worth for part in parts), *course.written.values()])
    rows = [["file", *names, "total_points_earned", "percent_correct", "grading_status"]]
    rows.append(["points-per-question", *worth, number(course.possible), 1, "--"])
    for grade in grades:
        points = grade.points(course) + grade.extended_points(course)
        row = [number(grade.points_for(part, course)) for part in parts]
        row += [number(grade.written.get(title, 0)) for title in course.written]
        status = "; ".join((*grade.notes, *grade.remarks)) or "Completed"
        rows.append([cell(grade.student), *row, number(points), number(points / course.possible), cell(status)])
    return as_csv(rows)


def _points(*values):
    """Their sum, 2.4 and not 2.4000000000000004."""
    return round(math.fsum(values), 4)


def _text(value):
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "replace").decode()  # without the half signs of a file name that is not UTF-8


# {format: (the function that writes it, the default file)}
FORMATS = {
    "csv": (grades_csv, "grades.csv"), "json": (as_json, "grades.json"), "gradescope": (gradescope, "results.json"),
    "otter": (otter_csv, "final_grades.csv"),
}  # fmt: skip
