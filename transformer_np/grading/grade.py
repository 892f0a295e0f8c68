"""A grade: the verdicts on a submission and the remarks, and its record, which the next grading reads."""

import json
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime

from ..homework.answers import place
from ..homework.judging.judge import OUTCOMES, Verdict
from .copies import answers_from, as_texts


@dataclass(frozen=True)
class Grade:
    """verdicts: {name of an exercise: Verdict}; layers: the isolation of the submission
    not_loaded: {file: why it could not be loaded, with the student's lines}
    name: of the student, if a roster says it; handed_in: the time, None without a submission; known_by: where the time
        comes from; attempt: 2 of 3; days_late, factor: what the deadline makes of the points
    alike: with whose answers its own are alike, for the teacher; answers: {name of an exercise: its Answer}, of which
        that is told
    graded: {name of an exercise: (file, cell, line)} of the definition that was graded, the last two None if unknown
    """

    student: str
    verdicts: dict
    remarks: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    not_loaded: dict = field(default_factory=dict)
    name: str = ""
    handed_in: datetime | None = None
    known_by: str = ""
    attempt: tuple[int, int] = (1, 1)
    days_late: int = 0
    factor: float = 1.0
    alike: str = ""
    answers: dict = field(default_factory=dict)
    graded: dict = field(default_factory=dict)

    @property
    def graded_files(self):
        """The files whose definitions were graded, without those that are not started; all that were, if none is."""
        begun = [file for name, (file, _, _) in self.graded.items() if self.verdicts[name].outcome != "not started"]
        return sorted({*begun} or {file for file, _, _ in self.graded.values()})

    def place(self, name):
        """Where the definition of an exercise is that was graded, in words."""
        return place(*self.graded[name]) if name in self.graded else ""

    def points(self, rubric):
        """The points for the core."""
        return self._points(rubric, extended=False)

    def extended_points(self, rubric):
        return self._points(rubric, extended=True)

    def _points(self, rubric, extended):
        parts = [part for part in rubric.parts if part.extended == extended]
        return self.factor * sum(rubric.points_for(part, self.verdicts[part.exercise]) for part in parts)


def as_record(grade, content, rules, seed):
    return {
        "content": content, "rules": rules, "seed": seed, "student": grade.student,
        "handed in": grade.handed_in and grade.handed_in.isoformat(), "known by": grade.known_by,
        "remarks": grade.remarks, "layers": grade.layers, "not loaded": grade.not_loaded,
        "graded": grade.graded,
        "answers": as_texts(grade.answers), "verdicts": [asdict(verdict) for verdict in grade.verdicts.values()],
    }  # fmt: skip


def read_record(path, student, names):
    """(the recorded Grade, the hashes of its submission and its rules, its seed), or None if the file is no record
    with these exercises."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        verdicts = {said["exercise"]: Verdict(**said) for said in record["verdicts"]}
        if not set(names) <= set(verdicts) or not all(verdict.outcome in OUTCOMES for verdict in verdicts.values()):
            return None
        handed_in = record["handed in"] and datetime.fromisoformat(record["handed in"])
        remarks, layers = tuple(map(str, record["remarks"])), tuple(map(str, record["layers"]))
        of = Grade(student, verdicts, remarks, layers, dict(record["not loaded"]), "", handed_in, record["known by"])
        graded = {str(name): tuple(where) for name, where in record.get("graded", {}).items()}
        of = replace(of, answers=answers_from(record.get("answers", {})), graded=graded)
        return of, record["content"], record["rules"], record["seed"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
