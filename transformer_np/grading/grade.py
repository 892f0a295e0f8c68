"""A grade: the verdicts on a submission, the remarks, and the points."""

from dataclasses import dataclass, field
from datetime import datetime

from ..homework.judging.crash import Crash
from ..homework.judging.judge import Verdict
from ..homework.remarks import place


@dataclass(frozen=True)
class Result:
    """What was found out about the answer to an exercise. It depends on nothing but the files of the submission, the
    exercise, its inputs and the limits, so the next grading can use it.

    found: (file, cell, line) of the definition that counts, then of the others; elsewhere: where else its name was seen
    layers: the isolation; not_loaded: {file: its Crash}; called: functions of the library
    lost: "timed out" and the like; notes: other remarks
    """

    verdict: Verdict
    found: tuple[tuple, ...] = ()
    elsewhere: str = ""
    layers: tuple[str, ...] = ()
    not_loaded: dict = field(default_factory=dict)
    called: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def result_from(said):
    """The Result in a dictionary that JSON has kept, or None if it is none."""
    try:
        not_loaded = {file: Crash(**crash) for file, crash in said["not_loaded"].items()}
        return Result(**said | {"verdict": Verdict(**said["verdict"]), "not_loaded": not_loaded})
    except (KeyError, TypeError):
        return None


@dataclass(frozen=True)
class Grade:
    """verdicts: {name of an exercise: Verdict}; layers: the isolation of the submission
    remarks: for the student and the teacher; notes: for the teacher alone
    not_loaded: {file: why it could not be loaded, with the student's lines}
    name: of the student, if a roster says it; handed_in: the time, None without one; known_by: where the time
        comes from; attempt: 2 of 3; days_late, factor: what the deadline makes of the points
    alike: with whose answers its own are alike, for the teacher; answers: {name of an exercise: its Answer}, of which
        that is told
    graded: {name of an exercise: (file, cell, line)} of the definition that was graded, the last two None if unknown
    corrected, written: {title: points} that the roster gives, instead of the points of a column and beside them
    number: of the Record
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
    notes: tuple[str, ...] = field(default=(), compare=False)
    corrected: dict = field(default_factory=dict)
    written: dict = field(default_factory=dict)
    number: int = field(default=-1, compare=False)

    @property
    def begun(self):
        """The names of the exercises with more than what every student was given."""
        return {name for name, verdict in self.verdicts.items() if verdict.outcome != "not started"}

    @property
    def graded_files(self):
        """The files whose definitions were graded, without those that are not started; all that were, if none is."""
        begun = [file for name, (file, _, _) in self.graded.items() if name in self.begun]
        return sorted({*begun} or {file for file, _, _ in self.graded.values()})

    def place(self, name):
        """Where the definition of an exercise is that was graded, in words."""
        return place(*self.graded[name]) if name in self.graded else ""

    def points(self, rubric):
        """The points for the core, with those for written answers."""
        return self._points(rubric, extended=False) + sum(self.written.values())

    def extended_points(self, rubric):
        return self._points(rubric, extended=True)

    def points_for(self, part, rubric):
        """The points for a Part of the rubric: less what lateness costs."""
        points = self.corrected.get(part.title)
        return self.factor * (rubric.points_for(part, self.verdicts[part.exercise]) if points is None else points)

    def _points(self, rubric, extended):
        return sum(self.points_for(part, rubric) for part in rubric.parts if part.extended == extended)
