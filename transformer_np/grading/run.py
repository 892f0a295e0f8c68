"""The grading of a folder of submissions, each exercise in a process of its own, on all cores; an interrupted run can
continue."""

import hashlib
import json
import os
import queue
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from .. import __version__
from ..homework.judging.judge import OUTCOMES, Trials, Verdict
from ..homework.path import all_exercises, own_content
from ..support.files import write_atomically
from .judges import Judge, NotJudged
from .report import grades_csv, overview, student_report
from .sandbox.keeper import NotStarted, Stopped
from .sandbox.session import Limits, Task, try_submission
from .sandbox.wire import one_line, plain_text
from .submissions import find_submissions, read_submission, report_name

_SOLUTION = "LibrarySolution"
WALLS = ("bubblewrap", "system calls")  # layers that the system upholds, whatever a submission does


# --- grades ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grade:
    """verdicts: {name of an exercise: Verdict}; layers: the isolation of the submission"""

    student: str
    verdicts: dict
    remarks: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()

    def points(self, rubric):
        """The points for the core."""
        return self._points(rubric, extended=False)

    def extended_points(self, rubric):
        return self._points(rubric, extended=True)

    def _points(self, rubric, extended):
        parts = [part for part in rubric.parts if part.extended == extended]
        return sum(rubric.points_for(part, self.verdicts[part.exercise]) for part in parts)


class NoWall(ValueError):
    """Nothing would keep the submissions from the teacher's files and programs."""


class Grading:
    """A folder of submissions, graded into a table and a folder of reports.

    table: from grades and rubric to the text of the table; single: the folder itself is the only submission
    seed: of the inputs, the same for all students of this grading; None draws one. A grade in the folder of reports is
    used again if submission, limits, walls and library are unchanged, and the seed if it is given.
    trust: grade even if no wall keeps a submission from the files and programs of this user
    """

    def __init__(
        self, folder, out, rubric, reports=None, limits=None, workers=1, seed=None, table=grades_csv, single=False,
        trust=False,
    ):  # fmt: skip
        self.table = table
        self.folder, self.out, self.rubric = Path(folder), Path(out), rubric
        self.reports = Path(reports) if reports else self.out.with_name(f"{self.out.stem}_reports")
        self.limits, self.workers, self.trust = limits or Limits(), workers, trust
        self.submissions = find_submissions(folder)
        if single:
            self.submissions = [("submission", self.folder.resolve())]
        self.reports.mkdir(parents=True, exist_ok=True)
        self.given, self.seed = seed is not None, np.random.SeedSequence().entropy % 2**32 if seed is None else seed
        self._stop, self._judges = threading.Event(), queue.SimpleQueue()
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
        if "bubblewrap" not in tried.layers and not self.trust:
            raise NoWall(
                "bubblewrap is not installed or not allowed here, so a submission could do anything that you can do. "
                "Install it (apt install bubblewrap), or pass --trust in a container that holds nothing but the "
                "submissions"
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
        judges = [Judge(self._stop.is_set) for _ in range(self.workers)]
        for judge in judges:
            self._judges.put(judge)
        grades = [None] * len(self.submissions)
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="grading")
        try:
            running = {pool.submit(self._grade, *submission): i for i, submission in enumerate(self.submissions)}
            while running:
                done, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in done:
                    grades[running.pop(future)] = future.result()
                    if bar is not None:
                        bar.update()
        finally:
            self._stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            for judge in judges:
                judge.close()
        _write(self.out, self.table(grades, self.rubric))
        _write(self.reports / "overview.md", overview(grades, self.rubric, self.sentence(grades)))
        return grades

    def sentence(self, grades):
        """The settings of the grading, in a sentence. Students read it: it does not name the seed."""
        layers = list(dict.fromkeys(layer for grade in grades for layer in grade.layers))
        return (
            f"transformer-np {__version__}, {self.limits.seconds:g} s for each exercise, {self.limits.total:g} s in "
            f"all, {self.limits.memory / 2**30:g} GiB. Isolation: {', '.join(layers) or 'nothing was run'}."
        )

    def _grade(self, student, path):
        handed_in = read_submission(student, path)
        record, key = self.reports / f"{report_name(path)}.json", self._key(handed_in)
        grade = _read_record(record, key, student, self.rubric.points, self.seed if self.given else None)
        if grade is None:
            judge = self._judges.get()
            try:
                grade = self._try(handed_in, judge)
            finally:
                self._judges.put(judge)
            if grade.layers:  # otherwise it was not tried: the next run may succeed
                _write(record, json.dumps(_as_record(grade, key, self.seed), indent=1) + "\n")
        else:
            self.reused += 1
        _write(self.reports / f"{report_name(path)}.md", student_report(grade, self.rubric, self.sentence([grade])))
        return grade

    def _try(self, handed_in, judge):
        if self._stop.is_set():
            raise Stopped
        walls = [layer for layer in self.layers if layer in WALLS]
        try:
            tried = try_submission(handed_in.files, self.tasks, self.limits, walls, self._stop.is_set)
        except NotStarted as error:  # for example, its files cannot be written
            verdicts = {task.name: _crashed(task, f"{task.name} could not be tried: {error}") for task in self.tasks}
            remarks = (*handed_in.remarks, f"could not be tried: {one_line(error)}")
            return Grade(handed_in.student, verdicts, remarks)
        verdicts = {task.name: self._verdict(task, tried, judge) for task in self.tasks}
        remarks = [*handed_in.remarks, *_remarks(tried, handed_in)]
        return Grade(handed_in.student, verdicts, tuple(remarks), tuple(tried.layers))

    def _verdict(self, task, tried, judge):
        replies, name, seed = tried.replies[task.name], task.name, task.trials.seed
        if name in tried.missing and tried.not_loaded:
            (file, crash), *_ = tried.not_loaded.items()
            return _crashed(task, f"{name} is missing because {file} could not be loaded. {_what(crash)}")
        if name in tried.missing:
            return Verdict(name, "not started", f"{name}: not started: the submission contains no {name}.", seed=seed)
        first = next((reply.crash for reply in replies if reply.crash), None)
        try:
            verdict = judge.verdict(task, replies)
        except NotJudged as error:
            return _crashed(task, f"{name} returned something that could not be judged ({error}).")
        own = first is not None and first.kind == _SOLUTION
        if name in tried.called and not verdict.passed and (own or verdict.misconception is None):
            what = f"{name} calls the library's solution: {', '.join(tried.called[name])}. Write it yourself."
            outcome = "crashed" if own else verdict.outcome
            return replace(verdict, outcome=outcome, misconception="calls the library's solution", message=what)
        return replace(verdict, message=plain_text(verdict.message, 10_000))

    def _key(self, handed_in):
        """A hash of everything that a grade depends on."""
        key = hashlib.sha256(_library().encode())
        rules = [asdict(self.limits), sorted(self.rubric.points), [layer for layer in self.layers if layer in WALLS]]
        parts = [*rules, handed_in.student, handed_in.remarks]
        key.update(own_content().encode())
        key.update(json.dumps(parts).encode())
        for name, content in handed_in.files.items():
            key.update(json.dumps([name, len(content)]).encode() + content)
        return key.hexdigest()


def _seed_of(seed, name):
    """A seed of its own for an exercise, so that no exercise has the inputs of another."""
    return int(np.random.SeedSequence([seed, *name.encode()]).generate_state(1, np.uint64)[0])


def _crashed(task, message):
    return Verdict(task.name, "crashed", f"{task.name}: crashed. {message}", seed=task.trials.seed)


def _what(crash):
    return f"{crash.kind}: {crash.text}" + (f"\n{crash.trace}" if crash.trace else "")


def _remarks(tried, handed_in):
    """The remarks on a submission for the teacher."""
    remarks = [] if handed_in.files else ["no file could be read"]
    for file, crash in tried.not_loaded.items():
        how = "timed out while loading" if crash.kind == "TimeoutError" else "could not be loaded"
        remarks.append(
            f"{file} {how}" + (f" ({crash.kind}: {one_line(crash.text)})" if crash.kind != "TimeoutError" else "")
        )
    if tried.called:
        remarks.append(f"calls the library's solution: {', '.join(tried.called)}")
    crashes = {
        name: [reply.crash for reply in replies if reply.crash]
        for name, replies in tried.replies.items()
        if name not in tried.missing
    }
    lost = {"TimeoutError": "timed out", "MemoryError": "out of memory"}
    for kind, words in lost.items():
        names = [name for name, found in crashes.items() if any(crash.kind == kind for crash in found)]
        if names:
            remarks.append(f"{words}: {', '.join(names)}")
    for name, found in crashes.items():
        for text in dict.fromkeys(crash.text for crash in found):
            if text.startswith(("it ended", "its process", "it disturbed", "its results")):
                remarks.append(f"{name}: {one_line(text)}")
    if any(crash.text.startswith("the time for the whole") for found in crashes.values() for crash in found):
        remarks.append("the time for the whole submission was used up")
    return remarks


# --- records ---------------------------------------------------------------------------------------------------------


@cache
def _library():
    """A hash of the library: another version may judge differently."""
    root, content = Path(__file__).parents[1], hashlib.sha256(__version__.encode())
    for path in sorted(root.rglob("*.py")):
        content.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return content.hexdigest()


def _as_record(grade, key, seed):
    return {
        "key": key,
        "seed": seed,
        "student": grade.student,
        "remarks": grade.remarks,
        "layers": grade.layers,
        "verdicts": [asdict(verdict) for verdict in grade.verdicts.values()],
    }


def _read_record(path, key, student, names, seed=None):
    """The recorded grade, or None if there is none, or it belongs to another submission, other rules or another seed
    than the given one."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["key"] != key or (seed is not None and record["seed"] != seed):
            return None
        verdicts = {said["exercise"]: Verdict(**said) for said in record["verdicts"]}
        if not set(names) <= set(verdicts) or not all(verdict.outcome in OUTCOMES for verdict in verdicts.values()):
            return None
        return Grade(student, verdicts, tuple(record["remarks"]), tuple(record["layers"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _write(path, text):
    content = text.encode("utf-8", "replace")
    write_atomically(path, lambda temporary: temporary.write_bytes(content))
