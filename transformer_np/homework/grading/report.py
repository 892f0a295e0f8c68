"""Grades as a table for a spreadsheet, a report per student, and an overview of the class."""

import csv
import io
from collections import Counter

from ..path import all_exercises

_RISKY = ("=", "+", "-", "@")  # a cell that begins with one of these is a formula to a spreadsheet


def number(value):
    """A number of points, as short as possible."""
    return f"{round(value, 4):g}"


def percent(points, possible):
    return f"{100 * points / possible:.1f}"


def grades_csv(grades, rubric):
    """The text of the CSV: one row per student, in the order of the grades."""
    names = list(rubric.points)
    columns = ["student", "points", "points possible", "percent", *names, "remarks"]
    if rubric.pass_mark is not None:
        columns.insert(4, "passed")
    if rubric.extended:
        columns.insert(columns.index("percent") + 1, "extended points")
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    for grade in grades:
        points = grade.points(rubric)
        share = percent(points, rubric.possible)
        row = [cell(grade.student), number(points), number(rubric.possible), share]
        if rubric.extended:
            row.append(number(grade.extended_points(rubric)))
        if rubric.pass_mark is not None:
            row.append("yes" if _has_passed(points, rubric) else "no")
        row += [number(rubric.points_for(grade.verdicts[name])) for name in names]
        table.writerow([*row, cell("; ".join(grade.remarks))])
    return text.getvalue()


def _has_passed(points, rubric):
    return 100 * points >= rubric.pass_mark * rubric.possible - 1e-9


def cell(text):
    text = " ".join(text.split())
    return f"'{text}" if text.startswith(_RISKY) else text


def student_report(grade, rubric, run):
    """The report on one student, in Markdown. run: a sentence on the settings of the grading."""
    points = grade.points(rubric)
    lines = [f"# {_plain(grade.student)}", ""]
    lines += [f"{_plain(rubric.title)}", ""] if rubric.title else []
    lines.append(f"{number(points)} of {number(rubric.possible)} points, {percent(points, rubric.possible)} %.")
    if rubric.extended:
        more = f"{number(grade.extended_points(rubric))} of {number(rubric.possible_extended)}"
        lines[-1] += f" Beyond the core: {more} points."
    if rubric.pass_mark is not None:
        lines[-1] += (
            f" {'Passed' if _has_passed(points, rubric) else 'Not passed'} (from {number(rubric.pass_mark)} %)."
        )
    if grade.remarks:
        lines += ["", "Remarks:", "", *(f"- {_plain(remark)}" for remark in grade.remarks)]
    lines += ["", "| exercise | points | outcome | mistake |", "|---|---|---|---|"]
    for name, worth in rubric.points.items():
        verdict = grade.verdicts[name]
        got = f"{number(rubric.points_for(verdict))} of {number(worth)}"
        got += " (extended)" if name in rubric.extended else ""
        lines.append(f"| {name} | {got} | {verdict.outcome} | {_plain(verdict.misconception or '')} |")
    for name in rubric.points:
        verdict = grade.verdicts[name]
        if not verdict.passed and verdict.outcome != "not started":
            fence = "`" * (3 + max((len(run) for run in _runs_of_backticks(verdict.message)), default=0))
            lines += ["", f"## {name}", "", f"{fence}text", verdict.message, fence]
            section = all_exercises()[name].section
            lines += ["", f"Lecture: {section}. {verdict.share:.0%} of the cases are right."]
    return "\n".join([*lines, "", run, ""])


def overview(grades, rubric, run):
    """The results and the most frequent mistakes of the class, in Markdown."""
    totals = [100 * grade.points(rubric) / rubric.possible for grade in grades]
    mean = sum(totals) / len(totals)
    students = "1 student" if len(grades) == 1 else f"{len(grades)} students"
    lines = ["# The class", "", f"{students}, {mean:.1f} % on average.", ""]
    lines += ["| exercise | passed | started | most frequent mistakes |", "|---|---|---|---|"]
    for name in rubric.points:
        verdicts = [grade.verdicts[name] for grade in grades]
        passed = sum(verdict.passed for verdict in verdicts)
        started = sum(verdict.outcome != "not started" for verdict in verdicts)
        wrong = Counter(verdict.misconception for verdict in verdicts if verdict.misconception).most_common(3)
        often = ", ".join(f"{_plain(mistake)} ({count})" for mistake, count in wrong)
        lines.append(f"| {name} | {passed} | {started} | {often} |")
    return "\n".join([*lines, "", run, ""])


def _plain(text):
    """Untrusted text as one escaped line of Markdown."""
    text = " ".join(str(text).split())
    for sign in "\\`|<>[]*":
        text = text.replace(sign, f"\\{sign}")
    return text


def _runs_of_backticks(text):
    run = ""
    for character in text + " ":
        if character == "`":
            run += character
        elif run:
            yield run
            run = ""
