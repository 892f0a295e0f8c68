"""Grades as a table for a spreadsheet, a report per student, and an overview of the class."""

import csv
import io
from collections import Counter
from dataclasses import dataclass

from ..homework.path import all_exercises

RIGHT, FOR_LECTURE, WRONG, NOT_STARTED = STATES = ("right", "right for the lecture", "wrong", "not started")
MOST_MISTAKES = 20  # in the overview's list

_RISKY = ("=", "+", "-", "@")  # a cell that begins with one of these is a formula to a spreadsheet


def number(value):
    """A number of points, as short as possible."""
    return f"{round(value, 4):g}"


def percent(points, possible):
    return f"{100 * points / possible:.1f}"


def grades_csv(grades, rubric):
    """The text of the CSV: one row per student, in the order of the grades."""
    names = [part.title for part in rubric.parts]
    columns = ["student", "points", "points possible", "percent", *names, "remarks"]
    if rubric.pass_mark is not None:
        columns.insert(4, "passed")
    if rubric.has_extended:
        columns.insert(columns.index("percent") + 1, "extended points")
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    for grade in grades:
        points = grade.points(rubric)
        share = percent(points, rubric.possible)
        row = [cell(grade.student), number(points), number(rubric.possible), share]
        if rubric.has_extended:
            row.append(number(grade.extended_points(rubric)))
        if rubric.pass_mark is not None:
            row.append("yes" if _has_passed(points, rubric) else "no")
        row += [number(rubric.points_for(part, grade.verdicts[part.exercise])) for part in rubric.parts]
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
    if rubric.has_extended:
        more = f"{number(grade.extended_points(rubric))} of {number(rubric.possible_extended)}"
        lines[-1] += f" Beyond the core: {more} points."
    if rubric.pass_mark is not None:
        lines[-1] += (
            f" {'Passed' if _has_passed(points, rubric) else 'Not passed'} (from {number(rubric.pass_mark)} %)."
        )
    if grade.remarks:
        lines += ["", "Remarks:", "", *(f"- {_plain(remark)}" for remark in grade.remarks)]
    lines += ["", "| exercise | points | outcome | mistake |", "|---|---|---|---|"]
    for name in rubric.points:
        verdict = grade.verdicts[name]
        got = ", ".join(
            f"{number(rubric.points_for(part, verdict))} of {number(part.worth)}"
            + (" (extended)" if part.extended else "")
            for part in rubric.parts_of(name)
        )
        outcome = verdict.outcome if verdict.passed or not verdict.core else FOR_LECTURE
        lines.append(f"| {name} | {got} | {outcome} | {_plain(verdict.misconception or '')} |")
    for name in rubric.points:
        verdict = grade.verdicts[name]
        if not verdict.passed and verdict.outcome != NOT_STARTED:
            fence = "`" * (3 + max((len(run) for run in _runs_of_backticks(verdict.message)), default=0))
            lines += ["", f"## {name}", "", f"{fence}text", verdict.message, fence]
            section = all_exercises()[name].section
            lines += ["", f"Lecture: {section}. {verdict.share:.0%} of the cases are right."]
    return "\n".join([*lines, "", run, ""])


@dataclass(frozen=True)
class ClassResult:
    """An exercise in a class: how many students have each of STATES, and how many make each mistake, the most frequent
    first."""

    exercise: str
    states: dict
    mistakes: dict


def class_results(grades, rubric):
    """A ClassResult for every exercise."""
    results = []
    for name in rubric.points:
        verdicts = [grade.verdicts[name] for grade in grades]
        states = Counter(map(_state, verdicts))
        mistakes = Counter(verdict.misconception for verdict in verdicts if verdict.misconception)
        results.append(ClassResult(name, {state: states[state] for state in STATES}, dict(mistakes.most_common())))
    return results


def _state(verdict):
    if verdict.passed:
        return RIGHT
    if verdict.core:
        return FOR_LECTURE
    return NOT_STARTED if verdict.outcome == NOT_STARTED else WRONG


def overview(grades, rubric, run):
    """The results and the most frequent mistakes of the class, in Markdown."""
    totals = [100 * grade.points(rubric) / rubric.possible for grade in grades]
    mean = sum(totals) / len(totals)
    students = "1 student" if len(grades) == 1 else f"{len(grades)} students"
    lines = ["# The class", "", f"{students}, {mean:.1f} % on average.", ""]
    lines += [f"| exercise | {' | '.join(STATES)} | most frequent mistakes |", f"|---|{'---|' * len(STATES)}---|"]
    results = class_results(grades, rubric)
    for result in results:
        often = ", ".join(f"{_plain(mistake)} ({n})" for mistake, n in list(result.mistakes.items())[:3])
        lines.append(f"| {result.exercise} | {' | '.join(map(str, result.states.values()))} | {often} |")
    found = [(n, result.exercise, mistake) for result in results for mistake, n in result.mistakes.items()]
    if found:
        lines += ["", "## The most frequent mistakes", "", "| students | exercise | mistake | feedback |"]
        lines.append("|---|---|---|---|")
    for n, name, mistake in sorted(found, key=lambda row: -row[0])[:MOST_MISTAKES]:
        feedback = all_exercises()[name].mistakes.get(mistake, "")
        lines.append(f"| {n} | {name} | {_plain(mistake)} | {_plain(feedback)} |")
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
