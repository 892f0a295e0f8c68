"""The grading of a folder of submissions, each exercise in a process of its own, on all cores; an interrupted run can
continue."""

import hashlib
import json
import os
import queue
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict, replace
from functools import cache
from glob import escape
from itertools import chain
from pathlib import Path

import numpy as np

from .. import __version__
from ..homework.judging.trials import Trials
from ..homework.path import all_exercises, own_content
from ..support.files import write_atomically
from .copies import alike, side_by_side, with_whom
from .feedback import page
from .grade import Grade, as_record, read_record
from .judges import Judge
from .people import Person, handed_in, people
from .report import ALIKE_PAGE, grades_csv, overview, student_report
from .sandbox.keeper import Keeper, NotStarted, Stopped
from .sandbox.session import Limits, Task, try_submission
from .submissions import read_submission, report_name
from .verdicts import grade_of, not_started, not_tried

WALLS = ("bubblewrap", "own namespaces", "system calls")  # layers that the system upholds, whatever a submission does


class NoWall(ValueError):
    """Nothing would keep the submissions from the teacher's files and programs."""


class Grading:
    """A folder of submissions, graded into a table and a folder of reports.

    table: from grades and rubric to the text of the table; single: the folder itself is the only submission
    seed: of the inputs, the same for all students of this grading; None draws one. A grade in the folder of reports is
    used again if submission, limits, walls and library are unchanged, and the seed if it is given.
    trust: grade even if no wall keeps a submission from the files and programs of this user
    roster: a CSV file with the people of the course; assignment: the folder inside a student's folder that is graded
    """

    def __init__(
        self, folder, out, rubric, reports=None, limits=None, workers=1, seed=None, table=grades_csv, single=False,
        trust=False, roster=None, assignment="",
    ):  # fmt: skip
        self.table = table
        self.folder, self.out, self.rubric, self.roster = Path(folder), Path(out), rubric, roster
        self.reports = Path(reports) if reports else self.out.with_name(f"{self.out.stem}_reports")
        self.limits, self.workers, self.trust = limits or Limits(), workers, trust
        if single:
            self.people = [Person("submission", attempts=[handed_in(self.folder.resolve())])]
        else:
            self.people = people(folder, roster, assignment)
        self.attempts = [(person, attempt) for person in self.people for attempt in person.attempts]
        self.reports.mkdir(parents=True, exist_ok=True)
        self.given = seed is not None
        self.seed = seed if self.given else np.random.SeedSequence().entropy % 2**32
        self._stop, self._helpers = threading.Event(), queue.SimpleQueue()
        self.reused, self.layers = 0, None

    def try_walls(self):
        """The layers of isolation of this system, which every submission then has. NoWall if they are not enough."""
        if not hasattr(os, "fork"):
            raise NoWall("grading needs Linux or macOS; on Windows, run it in WSL")
        exercise = all_exercises()[next(iter(self.rubric.points))]
        tasks = [Task(exercise, Trials(exercise, self.seed))]
        try:
            tried = try_submission({}, tasks, self.limits, stopped=self._stop.is_set)
        except NotStarted as error:
            raise ValueError(f"no submission can be tried here: {error}") from None
        if not {"bubblewrap", "system calls"} <= set(tried.layers) and not self.trust:
            raise NoWall(
                "bubblewrap or libseccomp is not installed or not allowed here, so a submission could do anything that "
                "you can do. Install them (apt install bubblewrap libseccomp2), or pass --trust in a container that "
                "holds nothing but the submissions, as Gradescope's does: there, add --trust to the line in "
                "run_autograder"
            )
        self.layers = tried.layers
        return self.layers

    def walls(self):
        """The walls that this system provides, in a line."""
        standing = [layer for layer in self.layers if layer in WALLS]
        return f"Walls: {', '.join(standing) or 'none; the submissions are trusted'}."

    def run(self, bar=None):
        """Grade all submissions; returns the grades sorted by name. bar: a tqdm bar, updated for each student.

        After Ctrl-C the finished grades remain, and the next run uses them.
        """
        if self.layers is None:
            self.try_walls()
        _write(self.reports / "run.json", json.dumps({"seed": self.seed, "version": __version__}) + "\n")
        exercises = [all_exercises()[name] for name in self.rubric.points]
        self.tasks = [Task(exercise, Trials(exercise, _seed_of(self.seed, exercise.name))) for exercise in exercises]
        helpers = [(Keeper(self._stop.is_set), Judge(self._stop.is_set)) for _ in range(self.workers)]
        for pair in helpers:
            self._helpers.put(pair)
        grades = {}
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="grading")
        try:
            running = {pool.submit(self._grade, *attempt): attempt[0].student for attempt in self.attempts}
            while running:
                done, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in done:
                    grades.setdefault(running.pop(future), []).extend(future.result())
                    if bar is not None:
                        bar.update()
        finally:
            self._stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            for helper in chain(*helpers):
                helper.close()
        chosen = [self._chosen(person, grades.get(person.student, ())) for person in self.people]
        last = {student: max(of, key=lambda grade: grade.handed_in).answers for student, of in sorted(grades.items())}
        found = alike(last)
        chosen = [replace(grade, alike=with_whom(grade.student, found)) for grade in chosen]
        if found:
            _write(self.reports / ALIKE_PAGE, side_by_side(found))
        _write(self.out, self.table(chosen, self.rubric))
        for person, grade in zip(self.people, chosen, strict=True):
            self._write_feedback(person, grade)
        _write(self.reports / "overview.md", overview(chosen, self.rubric, self.sentence(chosen), found))
        return chosen

    def _chosen(self, person, grades):
        """The Grade of a person: that of the attempt that counts, with what the deadline makes of its points."""
        if not grades:
            verdicts = {name: not_started(name, "there is no submission.") for name in self.rubric.points}
            return Grade(person.student, verdicts, ("no submission",), name=person.name)
        late, timed = self.rubric.late, sorted(grades, key=lambda grade: grade.handed_in)
        if late:
            found = [(late.days_late(g.handed_in), late.factor(g.handed_in)) for g in timed]
            timed = [replace(g, days_late=d, factor=f) for g, (d, f) in zip(timed, found, strict=True)]
        best = max(timed, key=lambda grade: grade.points(self.rubric) + grade.extended_points(self.rubric))
        grade = best if self.rubric.attempts == "best" else timed[-1]
        remarks = (*filter(None, [person.remark]), *grade.remarks)
        if grade.days_late:
            days = "1 day" if grade.days_late == 1 else f"{grade.days_late} days"
            remarks = (f"{days} late ({grade.known_by}): {100 * grade.factor:g} % of the points", *remarks)
        return replace(grade, name=person.name, remarks=remarks, attempt=(timed.index(grade) + 1, len(timed)))

    def _write_feedback(self, person, grade):
        named = Path(person.student.replace(os.sep, "∕"))  # not a folder: report_name replaces the sign
        path = named if self.roster or not person.attempts else person.attempts[0].path
        run = self.sentence([grade])
        _write(self.reports / f"{report_name(path)}.md", student_report(grade, self.rubric, run))
        _write(self.reports / f"{report_name(path)}.html", page(grade, self.rubric, run))

    def sentence(self, grades):
        """The settings of the grading, in a sentence. Students read it: it does not name the seed."""
        layers = list(dict.fromkeys(layer for grade in grades for layer in grade.layers))
        return (
            f"transformer-np {__version__}, {self.limits.seconds:g} s for each exercise, {self.limits.total:g} s in "
            f"all, {self.limits.memory / 2**30:g} GiB. Isolation: {', '.join(layers) or 'nothing was run'}."
        )

    def _grade(self, person, attempt):
        """The Grades of an attempt and of earlier versions of the same file."""
        files = read_submission(person.student, attempt.files)
        record, content, rules = self.reports / f"{report_name(attempt.path)}.json", _hash_of(files), self._rules()
        time = {"handed_in": attempt.when, "known_by": attempt.known_by}
        known = read_record(record, person.student, self.rubric.points)
        if known and known[1:3] == (content, rules) and (not self.given or known[3] == self.seed):
            self.reused += 1
            return [replace(known[0], **time), *self._earlier(record, person, rules)]
        broken = ("the last record of this grade could not be read",) if known is None and record.exists() else ()
        grade = replace(self._try(files), **time)
        if grade.layers:  # otherwise it was not tried: the next run may succeed
            if known and known[1] != content:
                os.replace(record, record.with_name(f"{record.stem}.{len(_versions(record)) + 1}.json"))
            _write(record, json.dumps(as_record(grade, content, rules, self.seed), indent=1) + "\n")
        return [replace(grade, remarks=grade.remarks + broken), *self._earlier(record, person, rules)]

    def _earlier(self, record, person, rules):
        """The Grades of earlier versions of a file, under the same rules."""
        found = [read_record(path, person.student, self.rubric.points) for path in _versions(record)]
        return [one[0] for one in found if one and one[2] == rules]

    def _try(self, files):
        if self._stop.is_set():
            raise Stopped
        walls = [layer for layer in self.layers if layer in WALLS]
        keeper, judge = self._helpers.get()
        try:
            tried = try_submission(files.files, self.tasks, self.limits, walls, self._stop.is_set, keeper)
            return grade_of(files, self.tasks, tried, judge)
        except NotStarted as error:  # for example, its files cannot be written
            return not_tried(files, self.tasks, error)
        finally:
            self._helpers.put((keeper, judge))

    def _rules(self):
        """A hash of what a grade depends on, beside the submission."""
        walls = [layer for layer in self.layers if layer in WALLS]
        rules = [_library(), own_content(), asdict(self.limits), sorted(self.rubric.points), walls]
        return hashlib.sha256(json.dumps(rules).encode()).hexdigest()


def _hash_of(files):
    parts = [files.student, files.remarks, [(name, len(content)) for name, content in files.files.items()]]
    content = hashlib.sha256(json.dumps(parts).encode())
    for one in files.files.values():
        content.update(one)
    return content.hexdigest()


def _seed_of(seed, name):
    """A seed of its own for an exercise, so that no exercise has the inputs of another."""
    return int(np.random.SeedSequence([seed, *name.encode()]).generate_state(1, np.uint64)[0])


@cache
def _library():
    """A hash of the library: another version may judge differently."""
    root, content = Path(__file__).parents[1], hashlib.sha256(__version__.encode())
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.md")]):
        content.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return content.hexdigest()


def _versions(record):
    """The records of earlier versions of a submission, name.1.json, name.2.json, …"""
    found = record.parent.glob(f"{escape(record.stem)}.*.json")
    return [path for path in found if path.name[len(record.stem) + 1 : -len(".json")].isdecimal()]


def _write(path, text):
    content = text.encode("utf-8", "replace")
    write_atomically(path, lambda temporary: temporary.write_bytes(content))
