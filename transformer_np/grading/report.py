"""Grades as a table for a spreadsheet, a report per student, and an overview of the class."""

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass

from ..homework.judging.edit import of_kind
from ..homework.path import all_exercises
from ..homework.remarks import how
from ..support.counts import counted
from .copies import MEANING, matrix

RIGHT, FOR_LECTURE, WRONG, NOT_STARTED = STATES = ("right", "right for the lecture", "wrong", "not started")
MOST_MISTAKES = 20  # in the overview's list

ALIKE_PAGE = "alike.html"

# the beginning of a formula to a spreadsheet: of a cell, and where a semicolon separates the columns, also after one
_RISKY = re.compile(r"(^|;\s*)(?=[=+@＝＋＠-])")


def number(value):
    """A number of points to four digits, as short as possible: -0 is 0."""
    return f"{round(value, 4) + 0:.15g}"


def percent(points, rubric):
    """To one digit, and to more if it would look like the pass mark that it misses."""
    value, digits = 100 * points / rubric.possible, 1
    while not has_passed(points, rubric) and round(value, digits) >= rubric.pass_mark:
        digits += 1
    return f"{value:.{digits}f}"


def grades_csv(grades, rubric):
    """The text of the CSV: one row per student, in the order of the grades."""
    titles, say = zip(*_columns(grades, rubric), strict=True)
    return as_csv([titles, *([one(grade) for one in say] for grade in grades)])


def as_csv(rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _columns(grades, rubric):
    """(title, function of a grade) of the columns of the table, without those that this course and class do not
    need."""
    late, again = rubric.late or any(g.days_late for g in grades), any(g.attempt[1] > 1 for g in grades)
    yield "student", lambda grade: cell(grade.student)
    if any(grade.name for grade in grades):
        yield "name", lambda grade: cell(grade.name)
    if late or again:
        yield "handed in", lambda grade: (grade.handed_in and rubric.shown(grade.handed_in)) or ""
        yield "time from", lambda grade: grade.known_by
    if late:
        yield "days late", lambda grade: grade.days_late
    if again:
        yield "attempt", lambda grade: f"{grade.attempt[0]} of {grade.attempt[1]}"
    if any(grade.alike for grade in grades):
        yield "alike", lambda grade: cell(grade.alike)
    yield "points", lambda grade: number(grade.points(rubric))
    yield "points possible", lambda grade: number(rubric.possible)
    yield "percent", lambda grade: percent(grade.points(rubric), rubric)
    if rubric.has_extended:
        yield "extended points", lambda grade: number(grade.extended_points(rubric))
    if rubric.pass_mark is not None:
        yield "passed", lambda grade: "yes" if has_passed(grade.points(rubric), rubric) else "no"
    for part in rubric.parts:
        yield part.title, lambda grade, part=part: number(grade.points_for(part, rubric))
    for title in rubric.written:
        yield title, lambda grade, title=title: number(grade.written[title]) if title in grade.written else ""
    yield "remarks", lambda grade: cell("; ".join((*grade.notes, *grade.remarks)))


def has_passed(points, rubric):
    """Whether points of the core reach the pass mark, if there is one."""
    return rubric.pass_mark is None or 100 * points >= rubric.pass_mark * rubric.possible - 1e-9


def cell(text):
    return _RISKY.sub(r"\1'", " ".join(text.split()))


def summary(grade, rubric):
    """The points of a student in a few sentences."""
    points = grade.points(rubric)
    text = f"{number(points)} of {number(rubric.possible)} points, {percent(points, rubric)} %."
    if rubric.has_extended:
        more = f"{number(grade.extended_points(rubric))} of {number(rubric.possible_extended)}"
        text += f" Beyond the core: {more} points."
    if rubric.pass_mark is not None:
        text += f" {'Passed' if has_passed(points, rubric) else 'Not passed'} (from {number(rubric.pass_mark)} %)."
    if grade.handed_in and (rubric.late or grade.days_late or grade.attempt[1] > 1):
        text += f" Handed in {rubric.shown(grade.handed_in)} (time from: {grade.known_by})."
    if grade.attempt[1] > 1:
        text += f" Attempt {grade.attempt[0]} of {grade.attempt[1]} counts, the {rubric.attempts}."
    return text


def rows_of_report(grade, rubric):
    """(exercise, points, outcome, mistake, what was graded) for every exercise, and for answers that the teacher
    reads."""
    for name in rubric.points:
        verdict = grade.verdicts[name]
        got = ", ".join(
            f"{number(grade.points_for(part, rubric))} of {number(part.worth)}"
            + (" (extended)" if part.extended else "")
            for part in rubric.parts_of(name)
        )
        outcome = verdict.outcome if verdict.passed or not verdict.core else FOR_LECTURE
        yield name, got, outcome, verdict.misconception or "", grade.place(name)
    for title, worth in rubric.written.items():
        outcome = "" if title in grade.written else "not graded"
        yield title, f"{number(grade.written.get(title, 0))} of {number(worth)}", outcome, "", ""


def explained(grade, rubric):
    """(title, text, sentence below it) of all that went wrong: files that could not be loaded, then the answers."""
    for file, text in grade.not_loaded.items():
        yield f"{file} {how(file, text.partition(':')[0])}", text, ""
    for name in rubric.points:
        verdict = grade.verdicts[name]
        if not verdict.passed and verdict.outcome != NOT_STARTED:
            right = f"{verdict.share:.0%} of the cases"
            if name in rubric.for_lecture and verdict.core_share is not None:  # which gives the core's points
                right = f"{verdict.core_share:.0%} of the lecture's cases and {verdict.share:.0%} of all cases"
            section = all_exercises()[name].section
            yield name, verdict.message, (f"Lecture: {section}. " if section else "") + f"{right} are right."


def student_report(grade, rubric, run):
    """The report on one student, in Markdown. run: a sentence on the settings of the grading."""
    lines = [f"# {_plain(grade.student)}{f', {_plain(grade.name)}' if grade.name else ''}", ""]
    lines += [f"{_plain(rubric.title)}", ""] if rubric.title else []
    lines.append(summary(grade, rubric))
    if grade.remarks:
        lines += ["", "Remarks:", "", *(f"- {_plain(remark)}" for remark in grade.remarks)]
    lines += ["", "| exercise | points | outcome | mistake | graded |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join([*row[:3], *map(_plain, row[3:])])} |" for row in rows_of_report(grade, rubric)]
    for title, text, below in explained(grade, rubric):
        fence = "`" * (3 + max(map(len, re.findall("`+", text)), default=0))
        lines += ["", f"## {_plain(title)}", "", f"{fence}text", text, fence, *(["", below] if below else [])]
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
        mistakes = Counter(part for verdict in verdicts for part in parts_of_mistake(name, verdict.misconception))
        results.append(ClassResult(name, {state: states[state] for state in STATES}, dict(mistakes.most_common())))
    return results


def parts_of_mistake(exercise, misconception):
    """The mistakes of a verdict: several names are joined by "and", which a name may also contain."""
    known, words, parts = all_exercises()[exercise].mistakes, (misconception or "").split(" and "), []

    def is_known(name):
        return name in known or of_kind(name) or re.fullmatch(r"\w+ not used", name)

    while words != [""] and words:
        size = next((n for n in range(len(words), 0, -1) if is_known(" and ".join(words[:n]))), 0)
        if not size:
            return [misconception]
        parts.append(" and ".join(words[:size]))
        del words[:size]
    return parts


def _state(verdict):
    if verdict.passed:
        return RIGHT
    if verdict.core:
        return FOR_LECTURE
    return NOT_STARTED if verdict.outcome == NOT_STARTED else WRONG


def overview(grades, rubric, run, copied=()):
    """The results and the most frequent mistakes of the class, in Markdown. copied: the Alikes of `copies`"""
    totals = [100 * grade.points(rubric) / rubric.possible for grade in grades]
    mean = sum(totals) / len(totals)
    lines = ["# The class", "", f"{counted(len(grades), 'student')}, {mean:.1f} % on average.", ""]
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
        feedback = _feedback(name, mistake, [grade.verdicts[name] for grade in grades])
        lines.append(f"| {n} | {name} | {_plain(mistake)} | {_plain(feedback)} |")
    if copied:
        head, *rows = [[_plain(cell) for cell in row] for row in matrix(copied)]
        lines += ["", "## Answers that are alike", "", f"{MEANING} {ALIKE_PAGE} has them side by side.", ""]
        lines += ["The numbers of exercises:", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
        lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, "", run, ""])


def _feedback(name, mistake, verdicts):
    """The text on a mistake. If it has none of its own: the message of a verdict with few other mistakes."""
    parts = [(parts_of_mistake(name, verdict.misconception), verdict.message) for verdict in verdicts]
    told = min((len(of), message) for of, message in parts if mistake in of)[1]
    return all_exercises()[name].mistakes.get(mistake) or of_kind(mistake) or told


def _plain(text):
    """Untrusted text as one escaped line of Markdown."""
    text = " ".join(str(text).split())
    for sign in "\\`|<>[]*":
        text = text.replace(sign, f"\\{sign}")
    return text
