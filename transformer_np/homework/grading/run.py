"""The grading of a folder of submissions, each in its own processes, on all cores; an interrupted run can continue."""

import hashlib
import json
import os
import re
import stat
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from ... import __version__
from ...support.files import write_atomically
from ..judging.judge import OUTCOMES, Trials, Verdict, judge
from ..path import all_exercises, own_content
from .report import grades_csv, overview, student_report
from .sandbox.session import Limits, Stopped, Task, try_submission
from .sandbox.wire import plain_text

MOST_BYTES = 1 << 20  # of one file
MOST_FILES, MOST_TOTAL = 100, 8 << 20  # files and bytes of one submission
_SOLUTION = "LibrarySolution"


# --- submissions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HandedIn:
    """student: the name of the file or folder; files: {relative name: bytes}; remarks: files that were skipped"""

    student: str
    path: Path
    files: dict
    remarks: tuple[str, ...] = ()


def find_submissions(folder):
    """[(student, path)] for every .py file and every folder with one, sorted by name. ValueError if there is none."""
    folder = Path(folder)
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder; name a folder with one file or one folder per student")
    found = []
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name.startswith((".", "__")):
            continue
        if entry.is_dir(follow_symlinks=False) and _has_python(entry.path):
            found.append((entry.name, Path(entry.path)))
        elif entry.name.endswith(".py"):
            found.append((entry.name.removesuffix(".py"), Path(entry.path)))
    if not found:
        raise ValueError(f"{folder} contains no submission: neither a .py file nor a folder with .py files")
    names = [student.lower() for student, _ in found]
    doubled = {name for name in names if names.count(name) > 1}
    return [
        (_shown(path.name if student.lower() in doubled and path.suffix == ".py" else student), path)
        for student, path in found
    ]


def _shown(name):
    """The name of a file in printable form."""
    return plain_text(os.fsencode(name).decode("utf-8", "backslashreplace"), 200)


def _has_python(folder):
    return any(name.endswith(".py") for _, _, files in os.walk(folder) for name in files)


def read_submission(student, path):
    """A HandedIn. Links, special files and files beyond the limits are skipped with a remark."""
    if path.suffix == ".py" and not path.is_dir():
        paths, root = [path], path.parent
    else:
        paths, root = [], path
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
            paths += [Path(folder, name) for name in sorted(names) if name.endswith(".py") and name[0] != "."]
            if len(paths) > MOST_FILES:
                break
    files, remarks, total = {}, [], 0
    for file in paths[:MOST_FILES]:
        name = file.relative_to(root).as_posix()
        try:
            content = _content(file)
            name.encode()
            total += len(content)
            if total > MOST_TOTAL:
                raise ValueError(f"all files together are larger than {MOST_TOTAL >> 20} MiB")
            files[name] = content
        except (OSError, ValueError) as error:
            remarks.append(plain_text(f"{name} was skipped: {getattr(error, 'strerror', None) or error}", 200))
    if len(paths) > MOST_FILES:
        remarks.append(f"only the first {MOST_FILES} files were read")
    return HandedIn(student, path, files, tuple(remarks))


def _content(path):
    kind = os.lstat(path)
    if stat.S_ISLNK(kind.st_mode):
        raise ValueError("it is a link")
    if not stat.S_ISREG(kind.st_mode):
        raise ValueError("it is not a regular file")
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB")
    return content


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
        return sum(rubric.points_for(self.verdicts[name]) for name in rubric.core)

    def extended_points(self, rubric):
        return sum(rubric.points_for(self.verdicts[name]) for name in rubric.extended)


class Grading:
    """A folder of submissions, graded into a table and a folder of reports.

    table: from grades and rubric to the text of the table; single: the folder itself is the only submission
    seed: of the inputs, the same for all students; None takes the seed of the last run, or draws one. A grade in the
    folder of reports is used again if submission, seed, limits and library are unchanged.
    """

    def __init__(
        self, folder, out, rubric, reports=None, limits=None, workers=1, seed=None, table=grades_csv, single=False
    ):
        self.table = table
        self.folder, self.out, self.rubric = Path(folder), Path(out), rubric
        self.reports = Path(reports) if reports else self.out.with_name(f"{self.out.stem}_reports")
        self.limits, self.workers = limits or Limits(), workers
        self.submissions = find_submissions(folder)
        if single:
            self.submissions = [("submission", self.folder)]
        self.reports.mkdir(parents=True, exist_ok=True)
        self.seed = self._seed_of_last_run() if seed is None else seed
        self._stop, self._judging = threading.Event(), threading.Lock()
        self.reused = 0

    def _seed_of_last_run(self):
        try:
            seed = json.loads((self.reports / "run.json").read_text(encoding="utf-8"))["seed"]
            if isinstance(seed, int) and seed >= 0:
                return seed
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return np.random.SeedSequence().entropy % 2**32

    def run(self, bar=None):
        """Grade all submissions; returns the grades sorted by name. bar: a tqdm bar, updated for each student.

        After Ctrl-C the finished grades remain, and the next run uses them.
        """
        _write(self.reports / "run.json", json.dumps({"seed": self.seed, "version": __version__}) + "\n")
        exercises = [all_exercises()[name] for name in self.rubric.points]
        self.tasks = [Task(exercise, Trials(exercise, self.seed)) for exercise in exercises]
        # if not even an empty submission can be tried, no grade means anything
        try_submission({}, self.tasks[:1], self.limits, self._hidden(), self._stop.is_set)
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
        _write(self.out, self.table(grades, self.rubric))
        _write(self.reports / "overview.md", overview(grades, self.rubric, self.sentence(grades)))
        return grades

    def sentence(self, grades):
        """The settings of the grading, in a sentence."""
        layers = list(dict.fromkeys(layer for grade in grades for layer in grade.layers))
        return (
            f"transformer-np {__version__}, seed {self.seed}, {self.limits.seconds:g} s for each exercise, "
            f"{self.limits.memory / 2**30:g} GiB. Isolation: {', '.join(layers) or 'nothing was run'}."
        )

    def _grade(self, student, path):
        handed_in = read_submission(student, path)
        record, key = self.reports / f"{_file_name(path)}.json", self._key(handed_in)
        grade = _read_record(record, key, student, self.rubric.points)
        if grade is None:
            grade = self._try(handed_in)
            if grade.layers:  # otherwise it was not tried: the next run may succeed
                _write(record, json.dumps(_as_record(grade, key), indent=1) + "\n")
        else:
            self.reused += 1
        _write(self.reports / f"{_file_name(path)}.md", student_report(grade, self.rubric, self.sentence([grade])))
        return grade

    def _try(self, handed_in):
        if self._stop.is_set():
            raise Stopped
        try:
            tried = try_submission(handed_in.files, self.tasks, self.limits, self._hidden(), self._stop.is_set)
        except RuntimeError as error:  # for example, its files cannot be written
            verdicts = {task.name: _crashed(task, f"{task.name} could not be tried: {error}") for task in self.tasks}
            return Grade(handed_in.student, verdicts, (*handed_in.remarks, f"could not be tried: {_short(str(error))}"))
        with self._judging:  # all threads share NumPy's settings and the cached variants
            verdicts = {task.name: self._verdict(task, tried) for task in self.tasks}
        return Grade(
            handed_in.student,
            verdicts,
            tuple([*handed_in.remarks, *_remarks(tried, verdicts, handed_in)]),
            tuple(tried.layers),
        )

    def _hidden(self):
        return [self.folder.resolve(), self.reports.resolve(), self.out.resolve()]

    def _verdict(self, task, tried):
        attempts, name = tried.attempts[task.name], task.name
        if name in tried.missing and tried.not_loaded:
            (file, crash), *_ = tried.not_loaded.items()
            return _crashed(task, f"{name} is missing because {file} could not be loaded. {_what(crash)}")
        if name in tried.missing:
            return Verdict(
                name, "not started", f"{name}: not started: the submission contains no {name}.", seed=self.seed
            )
        first = next((attempt.crash for attempt in attempts if attempt.crash), None)
        try:
            with np.errstate(all="ignore"):
                verdict = judge(task.trials, attempts)
        except Exception as error:  # a strange result must not end the run
            return _crashed(task, f"{name} returned something that could not be judged ({type(error).__name__}).")
        own = first is not None and first.kind == _SOLUTION
        if name in tried.called and not verdict.passed and (own or verdict.misconception is None):
            what = f"{name} calls the library's solution: {', '.join(tried.called[name])}. Write it yourself."
            outcome = "crashed" if own else verdict.outcome
            return replace(verdict, outcome=outcome, misconception="calls the library's solution", message=what)
        return replace(verdict, message=plain_text(verdict.message, 10_000))

    def _key(self, handed_in):
        """A hash of everything that a grade depends on."""
        key = hashlib.sha256(_library().encode())
        parts = [self.seed, asdict(self.limits), sorted(self.rubric.points), handed_in.student, handed_in.remarks]
        key.update(own_content().encode())
        key.update(json.dumps(parts).encode())
        for name, content in handed_in.files.items():
            key.update(json.dumps([name, len(content)]).encode() + content)
        return key.hexdigest()


def _crashed(task, message):
    return Verdict(task.name, "crashed", f"{task.name}: crashed. {message}", seed=task.trials.seed)


def _what(crash):
    return f"{crash.kind}: {crash.text}" + (f"\n{crash.trace}" if crash.trace else "")


def _remarks(tried, verdicts, handed_in):
    """The remarks on a submission for the teacher."""
    remarks = [] if handed_in.files else ["no file could be read"]
    for file, crash in tried.not_loaded.items():
        how = "timed out while loading" if crash.kind == "TimeoutError" else "could not be loaded"
        remarks.append(
            f"{file} {how}" + (f" ({crash.kind}: {_short(crash.text)})" if crash.kind != "TimeoutError" else "")
        )
    own = [name for name in tried.called if not verdicts[name].passed]
    if own:
        remarks.append(f"calls the library's solution: {', '.join(own)}")
    lost = {"TimeoutError": "timed out", "MemoryError": "out of memory"}
    for kind, words in lost.items():
        names = [
            n
            for n, a in tried.attempts.items()
            if any(t.crash and t.crash.kind == kind for t in a) and n not in tried.missing
        ]
        if names:
            remarks.append(f"{words}: {', '.join(names)}")
    for name, attempts in tried.attempts.items():
        for crash in {
            t.crash.text
            for t in attempts
            if t.crash and t.crash.text.startswith(("it ended", "its process", "it disturbed"))
        }:
            if name not in tried.missing:
                remarks.append(f"{name}: {_short(crash)}")
    return [*remarks, *tried.remarks]


def _short(text):
    return plain_text(" ".join(text.split()), 120)


# --- records ---------------------------------------------------------------------------------------------------------


@cache
def _library():
    """A hash of the library: another version may judge differently."""
    root, content = Path(__file__).parents[2], hashlib.sha256(__version__.encode())
    for path in sorted(root.rglob("*.py")):
        content.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return content.hexdigest()


def _as_record(grade, key):
    return {
        "key": key,
        "student": grade.student,
        "remarks": grade.remarks,
        "layers": grade.layers,
        "verdicts": [asdict(verdict) for verdict in grade.verdicts.values()],
    }


def _read_record(path, key, student, names):
    """The recorded grade, or None if there is none or it belongs to other inputs."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["key"] != key:
            return None
        verdicts = {said["exercise"]: Verdict(**said) for said in record["verdicts"]}
        if not set(names) <= set(verdicts) or not all(verdict.outcome in OUTCOMES for verdict in verdicts.values()):
            return None
        return Grade(student, verdicts, tuple(record["remarks"]), tuple(record["layers"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _file_name(path):
    """A unique file name for a submission's report: the student's name if possible."""
    student = path.name.removesuffix(".py")
    name = re.sub(r"[^\w .+-]", "_", student, flags=re.ASCII)[:100].strip(" .")
    clear = name == student and name.lower() not in ("overview", "run") and not (
        path.suffix == ".py" and path.with_suffix("").exists()
    )  # fmt: skip
    return name if clear else f"{name}-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]}"


def _write(path, text):
    content = text.encode("utf-8", "replace")
    write_atomically(path, lambda temporary: temporary.write_bytes(content))
