"""What a grading changes in the table of the one before, and why."""

import json
from dataclasses import asdict
from math import isclose

from .report import number


def summary(chosen, grades, rubric, rules):
    """What the next grading needs to tell what it has changed, for JSON.

    chosen: the Grades of the table; grades: {student: those of all attempts}; rules: what they depend on
    """
    rows = {}
    for grade in chosen:
        rows[grade.student] = {
            "points": [grade.points(rubric), grade.extended_points(rubric)], "factor": grade.factor,
            "parts": {part.title: rubric.points_for(part, grade.verdicts[part.exercise]) for part in rubric.parts},
            "corrected": grade.corrected, "written": grade.written, "number": grade.number, "attempt": grade.attempt,
            "all": [one.number for one in grades.get(grade.student, ())],
            "time": grade.handed_in and grade.handed_in.isoformat(),
        }  # fmt: skip
    late = rubric.late and {key: str(value) for key, value in asdict(rubric.late).items()}
    course = {"late": late, "attempts": rubric.attempts, "partial": rubric.partial}
    worth = {part.title: [part.exercise, part.worth] for part in rubric.parts}
    return {"rows": rows, "course": course, "worth": worth} | rules


def changes(before, now):
    """A line for everyone whose points have changed since the summary `before`, such as "ada 8.6 → 10.2: exercise relu
    corrected"."""
    lines = []
    for student, row in now["rows"].items():
        was = before["rows"].get(student)
        if was is None:
            lines.append(f"{student} {_points(row)}: new")
        elif _points(row) != _points(was):
            lines.append(f"{student} {_points(was)} → {_points(row)}: {'; '.join(_reasons(was, row, before, now))}")
    return lines + [f"{student}: no row any more" for student in before["rows"] if student not in now["rows"]]


def _points(row):
    core, extended = row["points"]
    return number(core) + (f" + {number(extended)}" if extended else "")


def _reasons(was, row, before, now):
    why = {}
    if row["number"] != was["number"]:
        attempt, attempts = row["attempt"]
        new = "a new hand-in, " if row["number"] not in was["all"] else ""
        why[f"{new}attempt {attempt} of {attempts} counts"] = None
    for title in dict.fromkeys([*before["worth"], *now["worth"]]):
        old, new = (of["corrected"].get(title, of["parts"].get(title, 0)) for of in (was, row))
        if old != new:
            why |= dict.fromkeys(_reasons_for(title, was, row, before, now))
    if was["written"] != row["written"]:
        why["written answers"] = None
    rules = [(of["course"]["late"] or {}) | {"due": ""} for of in (before, now)]
    if was["factor"] != row["factor"] and rules[0] != rules[1]:
        why["[late] changed"] = None
    elif was["factor"] != row["factor"] and was["number"] == row["number"]:  # another attempt has a time of its own
        why["another deadline" if was["time"] == row["time"] else "another time of hand-in"] = None
    return why or ["the course changed"]


def _reasons_for(title, was, row, before, now):
    """Why the points for a column are others."""
    if title not in before["worth"] or title not in now["worth"]:
        yield f"{title} {'added' if title in now['worth'] else 'left out'}"
        return
    if was["corrected"].get(title) != row["corrected"].get(title):
        yield f"{title} corrected in the roster"
        return
    exercise, worth = now["worth"][title]
    old = before["worth"][title][1]
    if old != worth:
        yield f"{title} counts {number(worth)}, not {number(old)}"
        if isclose(was["parts"][title] * worth, row["parts"][title] * old):
            return
    if before["course"]["partial"] != now["course"]["partial"]:
        yield f"partial = {json.dumps(now['course']['partial'])}"
    if before["definitions"].get(exercise) != now["definitions"][exercise]:
        yield f"exercise {exercise} corrected"
    if before["package"] != now["package"]:
        versions = dict.fromkeys((before["package"][0], now["package"][0]))
        yield f"transformer-np {' → '.join(versions)}" + (" changed" if len(versions) == 1 else "")
    if before["limits"] != now["limits"]:
        yield "other limits"
