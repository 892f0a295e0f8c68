"""Grades in the forms that other programs read: JSON, Gradescope's results.json, the table of `otter grade`."""

import csv
import io
import json

from ..path import all_exercises
from .report import cell, grades_csv, number

MOST_OUTPUT = 10_000  # characters of one verdict


def as_json(grades, course):
    """All verdicts of all students."""
    students = []
    for grade in grades:
        students.append(
            {
                "student": grade.student,
                "points": grade.points(course),
                "points possible": course.possible,
                "extended points": grade.extended_points(course),
                "extended points possible": course.possible_extended,
                "remarks": list(grade.remarks),
                "exercises": [_exercise(grade.verdicts[name], course) for name in course.points],
            }
        )
    return _text({"title": course.title, "students": students})


def _exercise(verdict, course):
    return {
        **verdict_as_dict(verdict),
        "points": course.points_for(verdict),
        "points possible": course.points[verdict.exercise],
        "extended": verdict.exercise in course.extended,
    }


def verdict_as_dict(verdict):
    return {
        "exercise": verdict.exercise,
        "chapter": all_exercises()[verdict.exercise].chapter,
        "outcome": verdict.outcome,
        "right for the lecture": verdict.core,
        "misconception": verdict.misconception,
        "share": round(verdict.share, 4),
        "message": verdict.message,
    }


def gradescope(grades, course):
    """The results.json of the only student. Points beyond the core are extra: they raise the score, not its maximum."""
    (grade,), tests = grades, []
    for name in course.points:
        verdict = grade.verdicts[name]
        extended = name in course.extended
        tests.append(
            {
                "name": f"{name} (extended)" if extended else name,
                "score": round(course.points_for(verdict), 4),
                "max_score": 0 if extended else course.points[name],
                "status": "passed" if verdict.passed else "failed",
                "output": verdict.message[:MOST_OUTPUT],
                "output_format": "text",
                "visibility": "visible",
            }
        )
    score = round(grade.points(course) + grade.extended_points(course), 4)
    return _text({"score": score, "output": "\n".join(grade.remarks), "output_format": "text", "tests": tests})


def otter_csv(grades, course):
    """The final_grades.csv of `otter grade`: one column per exercise, in alphabetical order, and the possible points in
    the first row."""
    names = sorted(course.points)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["file", *names, "total_points_earned", "percent_correct", "grading_status"])
    worth = [number(course.points[name]) for name in names]
    table.writerow(["points-per-question", *worth, number(course.possible), 1, "--"])
    for grade in grades:
        points = grade.points(course) + grade.extended_points(course)
        row = [number(course.points_for(grade.verdicts[name])) for name in names]
        status = "; ".join(grade.remarks) or "Completed"
        table.writerow([cell(grade.student), *row, number(points), number(points / course.possible), cell(status)])
    return text.getvalue()


def _text(value):
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


# name: the function, and the file it is written to if none is named
FORMATS = {
    "csv": (grades_csv, "grades.csv"),
    "json": (as_json, "grades.json"),
    "gradescope": (gradescope, "results.json"),
    "otter": (otter_csv, "final_grades.csv"),
}
