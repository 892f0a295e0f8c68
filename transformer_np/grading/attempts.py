"""Which attempt of a person counts, and what the deadline and the teacher make of its points."""

from dataclasses import replace
from datetime import datetime
from itertools import chain

from ..homework.deadline import Deadline
from ..homework.remarks import not_started
from ..support.counts import counted
from .grade import Grade
from .report import has_passed


def counting(person, grades, records, rubric):
    """The Grade of a Person: that of the attempt that counts, with what the deadline and the teacher make of it.

    grades: of all attempts, in the order of arrival; records: {number: Record}
    """
    said = {"name": person.name, "corrected": person.corrected, "written": person.written}
    notes = (*person.remarks, *_out_of_range(person, rubric))
    remarks = [f"{title}: points corrected by the teacher" for title in person.corrected]
    if not grades:
        verdicts = {name: not_started(name, "there is no submission.") for name in rubric.points}
        return Grade(person.student, verdicts, ("no submission", *remarks), notes=notes, attempt=(0, 0), **said)
    late = rubric.late
    if person.deadline:
        late = replace(late, due=person.deadline) if late else Deadline(person.deadline)
    remarks += [f"deadline {rubric.shown(person.deadline)} (roster)"] if person.deadline else []
    timed = _in_order(grades, records)
    if late:
        days = [late.days_late(grade.handed_in) if grade.handed_in else 0 for grade in timed]
        timed = [replace(g, days_late=d, factor=late.factor(d)) for g, d in zip(timed, days, strict=True)]
    timed = [replace(grade, **said) for grade in timed]
    grade = max(timed, key=lambda grade: _rank(grade, rubric)) if rubric.attempts == "best" else timed[-1]
    if grade.days_late:
        late = f"{counted(grade.days_late, 'day')} late ({grade.known_by})"
        remarks = [f"{late}: {100 * grade.factor:g} % of the points", *remarks]
    if elsewhere := [name for name in rubric.points if name in {*chain(*(one.begun for one in timed))} - grade.begun]:
        remarks.append(f"answered only in attempts that do not count: {', '.join(elsewhere)}")
    return replace(
        grade, remarks=(*remarks, *grade.remarks), notes=(*notes, *grade.notes),
        attempt=([one.number for one in timed].index(grade.number) + 1, len(timed)),
    )  # fmt: skip


def _rank(grade, rubric):
    """Orders attempts by their points: one that has passed is better than one that has not."""
    points = grade.points(rubric)
    return has_passed(points, rubric), points + grade.extended_points(rubric)


def _out_of_range(person, rubric):
    """Remarks on points by hand beyond those that are possible: a bonus, or a slip."""
    possible = {part.title: part.worth for part in rubric.parts} | rubric.written
    given = person.corrected | person.written
    return [
        f"{title}: {points:g} of {possible[title]:g} points by hand"
        for title, points in given.items()
        if not 0 <= points <= possible[title]
    ]


def _in_order(grades, records):
    """The grades by time, then by arrival. A file that replaces another is later, whatever times the two have."""
    order, last = {}, {}
    for grade in grades:
        record = records[grade.number]
        last[record.entry] = max(grade.handed_in or record.seen, last.get(record.entry, datetime.min))
        order[grade.number] = last[record.entry], grade.number
    return sorted(grades, key=lambda grade: order[grade.number])
