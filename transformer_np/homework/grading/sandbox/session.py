"""The parent: sends a submission and the inputs to a child, receives the results, and kills it when time is up."""

import importlib.util
import io
import os
import pickle
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field, fields
from inspect import signature
from pathlib import Path
from types import FunctionType

from ....support.processes import THREADS, interrupts_blocked
from ...exercise import call
from ...judging.attempt import Attempt, Crash
from ...path import own_folder
from . import answers
from .wire import HEADER, MOST_BYTES, MOST_JSON, plain_text, unpack

START_SECONDS = 60  # to load Python and NumPy on a busy machine; then the limit of the exercises applies
MOST_SESSIONS_LOST = 12  # of one submission; then the rest of it is not tried
MOST_RESULTS = 256 << 20  # bytes of all results of a submission
_FRAMEWORKS = (
    "torch",
    "tensorflow",
    "jax",
    "jaxlib",
    "keras",
    "autograd",
    "cupy",
    "mlx",
    "tinygrad",
)  # hidden from submissions
_ROOT = Path(__file__).parents[4]


class Stopped(Exception):
    """The grading must end now."""


@dataclass(frozen=True)
class Limits:
    """seconds for each exercise and for loading each file; memory in bytes"""

    seconds: float = 10.0
    memory: int = 2 << 30


# --- exercises as messages --------------------------------------------------------------------------------------------


class Task:
    """An exercise with its cases as a message: the inputs, never a result."""

    def __init__(self, exercise, trials):
        self.exercise, self.trials = exercise, trials
        self.name = exercise.name
        sheet = next((m for m in _sheets() if any(exercise is e for e in m.EXERCISES)), None)
        try:
            content, modules = _pickled(trials.cases)
        except Exception:  # a lambda among the arguments: the child draws its cases itself
            content, modules = None, {exercise.reference.__module__}
        homework = any(module.startswith(answers.HOMEWORK + ".sheets") for module in modules)
        if content is None or homework or exercise.drive is not call:
            if sheet is None:
                raise ValueError(f"{self.name}: the exercise cannot be sent because it is in no sheet")
        else:
            sheet = None
        foreign = {m for m in modules if m not in answers.HELPERS and not m.startswith(answers.HOMEWORK)}
        self.alone = isinstance(exercise.reference, type) or bool(foreign) or answers.needs_library(exercise.drive)
        self.message = {
            "name": self.name,
            "sheet": sheet and sheet.__name__,
            "cases": content,
            "seed": trials.seed if content is None else None,
            "parts": exercise.parts,
            "signatures": _signatures(exercise),
        }


def _sheets():
    return [
        m
        for name, m in list(sys.modules.items())
        if name.startswith(f"{answers.HOMEWORK}.sheets.") and hasattr(m, "EXERCISES")
    ]


def _pickled(cases):
    """Cases as bytes, and the library's modules that are needed to read them."""
    modules = set()

    class Pickler(pickle.Pickler):
        def reducer_override(self, value):
            module = value.__module__ if isinstance(value, type | FunctionType) else type(value).__module__
            if isinstance(module, str) and module.partition(".")[0] == answers.PACKAGE:
                modules.add(module)
            return NotImplemented

    buffer = io.BytesIO()
    Pickler(buffer, 5).dump(cases)
    return buffer.getvalue(), modules - {f"{answers.HOMEWORK}.exercise"}


def _signatures(exercise):
    reference = exercise.reference
    if isinstance(reference, type):
        return {name: signature(getattr(reference, name)) for name in ("__init__", *exercise.parts)}
    return {None: signature(reference)}


# --- a submission in its sessions ------------------------------------------------------------------------------------


@dataclass
class Tried:
    """The results of a submission.

    attempts: {name of an exercise: an Attempt for every case}
    remarks: for the teacher; called: {name of an exercise: functions of the library it tried to call}
    not_loaded: {file: Crash}; missing: exercises without an answer; defined: exercises with one, or None if unknown
    size: bytes of the results; layers: the isolation that the system offered
    """

    attempts: dict = field(default_factory=dict)
    remarks: list = field(default_factory=list)
    called: dict = field(default_factory=dict)
    not_loaded: dict = field(default_factory=dict)
    missing: set = field(default_factory=set)
    defined: set | None = None
    size: int = 0
    layers: list = field(default_factory=list)


def try_submission(files, tasks, limits, hidden=(), stopped=lambda: False):
    """Try Python files, {name: bytes}, on the tasks, in as many processes as needed; returns a Tried.

    hidden: folders that the submission must not see. Raises Stopped when stopped() becomes true, RuntimeError if a
    process cannot start.
    """
    tried, lost, left_out = Tried(), 0, set()
    names = [task.name for task in tasks]
    together = [task for task in tasks if not task.alone]
    groups = [together] if together else []
    groups += [[task] for task in tasks if task.alone]  # last: they have access to the library
    while groups:
        group = groups.pop(0)
        if lost >= MOST_SESSIONS_LOST:
            for task in group:
                _fill(tried, task, "its process failed too often in earlier exercises")
            continue
        if group[0].alone and tried.defined is not None and group[0].name not in tried.defined:
            tried.missing.add(group[0].name)
            _fill(tried, group[0], "", "NotImplementedError")
            continue
        session = _Session(files, group, names, limits, hidden, left_out, tried, stopped)
        rest = session.run()
        lost += session.lost
        if session.lost and session.file is not None:
            left_out.add(session.file)
        if rest:
            groups.insert(0, rest)
    tried.remarks = list(dict.fromkeys(tried.remarks))
    return tried


def _fill(tried, task, text, kind="RuntimeError"):
    """Add crashes for the cases of a task that were not tried."""
    done = tried.attempts.setdefault(task.name, [])
    crash = Crash(kind, text, "", "")
    done += [Attempt(crash=crash)] * (len(task.trials.cases) - len(done))


class _Lost(Exception):
    """The child ended, did not answer in time, or sent an invalid message."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


class _Session:
    """One child process."""

    def __init__(self, files, tasks, names, limits, hidden, left_out, tried, stopped):
        self.names = names
        self.files, self.tasks, self.limits, self.tried, self.stopped = files, tasks, limits, tried, stopped
        self.left_out = left_out
        self.hidden = [*map(str, [*hidden, *filter(None, [own_folder()])]), *_copies_of_the_library()]
        self.lost, self.file = False, None

    def run(self):
        """Try the tasks; returns the tasks that were not reached because the child was lost."""
        self.scratch = scratch = os.path.realpath(tempfile.mkdtemp(prefix="submission-"))
        done = 0
        try:
            with tempfile.NamedTemporaryFile(prefix="submission-") as job:
                pickle.dump(self._job(scratch), job)
                job.flush()
                self._start(job.name, scratch)
                try:
                    self._begin()
                    self._take_loading()
                    for done, task in enumerate(self.tasks):  # noqa: B007  the exercise it was lost in
                        self._take(task)
                    done = len(self.tasks)
                except _Lost as error:
                    self.lost = True
                    return self._after(error, done)
                finally:
                    self._end()
        finally:
            _remove(scratch)
        return []

    def _job(self, scratch):
        tasks = [task.message for task in self.tasks]
        return {
            "files": self.files,
            "left_out": sorted(self.left_out),
            "tasks": tasks,
            "names": self.names,
            "exercises": own_folder(),
            "library": any(task.alone for task in self.tasks),
            "scratch": scratch,
            "hidden": self.hidden,
            "memory": self.limits.memory,
            "processor_seconds": int(self.limits.seconds * (len(tasks) + len(self.files)) + START_SECONDS),
        }

    def _start(self, job, scratch):
        path = list(dict.fromkeys([*map(os.path.abspath, sys.path), str(_ROOT), *_place_of_numpy()]))
        arguments = [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", _CHILD, repr(path), job]
        environment = {
            name: os.environ[name]
            for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
            if name in os.environ
        }
        environment |= dict.fromkeys(THREADS, "1")
        environment |= {"HOME": scratch, "TMPDIR": scratch, "LANG": "C.UTF-8", "PATH": os.defpath}
        environment |= {"MPLBACKEND": "Agg", "MPLCONFIGDIR": scratch}
        self.reader, writer = os.pipe()
        os.set_blocking(self.reader, False)
        try:
            with interrupts_blocked():
                self.process = subprocess.Popen(
                    [*arguments, str(writer), str(os.getpid())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd=scratch,
                    env=environment,
                    pass_fds=(writer,),
                    start_new_session=True,
                )
        except BaseException:
            os.close(self.reader)
            raise
        finally:
            os.close(writer)

    def _end(self):
        """End the child and all its processes."""
        self.process.terminate()  # the outer one takes the inner one with it
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.reader)

    # the child's messages, in the required order

    def _begin(self):
        try:
            message = self._receive(START_SECONDS)
            if message.get("kind") != "ready":
                raise _Lost("", message.get("text", "it does not start"))
        except _Lost as error:  # not the submission's fault: its code is not even loaded
            raise RuntimeError(f"the process for a submission does not start: {plain_text(error, 500)}") from None
        self.tried.layers = [plain_text(layer, 60) for layer in message["layers"]]

    def _take_loading(self):
        defined = set()
        for name in self.files:
            if name in self.left_out:
                continue
            self.file = name
            message = self._expect("loading", file=name)
            self.tried.remarks += [plain_text(f"{name}: {remark}", 200) for remark in _strings(message, "remarks")]
            message = self._expect("loaded", file=name)
            crash = message.get("crash")
            defined.update(_strings(message, "defined", len(self.names)))
            if crash is not None:
                self.tried.not_loaded[name] = self._crash(crash)
        self.file = None
        self.tried.defined = defined

    def _take(self, task):
        deadline = time.monotonic() + self.limits.seconds
        done = self.tried.attempts.setdefault(task.name, [])
        for number in range(len(done), len(task.trials.cases)):
            message = self._expect("tried", deadline, exercise=task.name, case=number)
            crash = message.get("crash")
            changed = tuple(plain_text(name, 60) for name in _strings(message, "changed"))
            done.append(Attempt(message["output"], crash and self._crash(crash), changed))
            called = [plain_text(name, 120) for name in _strings(message, "called")]
            if called:
                self.tried.called.setdefault(task.name, called)
            if message.get("missing"):
                self.tried.missing.add(task.name)

    def _crash(self, said):
        """A Crash from the child's message."""
        said = said if isinstance(said, dict) else {}
        texts = {f.name: str(said.get(f.name, "")).replace(f"{self.scratch}{os.sep}", "") for f in fields(Crash)}
        most = {"kind": 80, "where": 80, "text": 1000}
        return Crash(**{name: plain_text(text, most.get(name, 4000)) for name, text in texts.items()})

    def _after(self, error, done):
        """Record why the child was lost; returns the tasks that remain."""
        if self.file is not None:
            self.tried.not_loaded[self.file] = Crash(error.kind, str(error), "", "")
            return self.tasks
        task = self.tasks[done]
        _fill(self.tried, task, str(error), error.kind)
        return self.tasks[done + 1 :]

    def _expect(self, kind, deadline=None, **values):
        message = self._receive(self.limits.seconds if deadline is None else max(0, deadline - time.monotonic()))
        if message.get("kind") != kind or any(message.get(name) != value for name, value in values.items()):
            raise _Lost("RuntimeError", "it disturbed the way back to the grader")
        return message

    def _receive(self, seconds):
        """The next message. Raises _Lost."""
        deadline = time.monotonic() + seconds
        text, arrays = HEADER.unpack(self._read(HEADER.size, deadline))
        if text > MOST_JSON or arrays > MOST_BYTES:
            raise _Lost("RuntimeError", "it disturbed the way back to the grader")
        self.tried.size += arrays
        if self.tried.size > MOST_RESULTS:
            raise _Lost("RuntimeError", "its results are too large")
        content = self._read(text + arrays, deadline)
        try:
            message = unpack(bytes(content[:text]), content[text:])
            if not isinstance(message, dict):
                raise ValueError
        except ValueError:
            raise _Lost("RuntimeError", "it disturbed the way back to the grader") from None
        return message

    def _read(self, size, deadline):
        content = bytearray()
        while len(content) < size:
            if self.stopped():
                raise Stopped
            left = deadline - time.monotonic()
            if left <= 0:
                raise _Lost("TimeoutError", f"it took longer than {self.limits.seconds:g} s")
            if select.select([self.reader], [], [], min(left, 0.2))[0]:
                part = os.read(self.reader, min(size - len(content), 1 << 20))
                if not part:
                    raise _Lost("RuntimeError", self._how_it_ended())
                content += part
        return content

    def _how_it_ended(self):
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            return "it closed the way back to the grader"
        if code <= 128:
            return f"it ended the process (exit code {code})"
        try:
            name = signal.Signals(code - 128).name
        except ValueError:
            name = f"signal {code - 128}"
        return f"its process was killed ({name})"


_CHILD = """
import sys
sys.path[:] = eval(sys.argv[1])
from transformer_np.homework.grading.sandbox.worker import main
job, report, parent = sys.argv[2:]
del sys.argv[1:]
main(job, int(report), int(parent))
"""


def _strings(message, name, most=50):
    values = message.get(name)
    return [value for value in values if isinstance(value, str)][:most] if isinstance(values, list) else []


def _place_of_numpy():
    return [str(Path(importlib.util.find_spec("numpy").origin).parents[1])]


def _copies_of_the_library():
    """The places of answers: this copy of the library, its tests, installed copies, other frameworks."""
    places = {str(_ROOT / "transformer_np"), str(_ROOT / "tests"), str(_ROOT / "notebooks")}
    if not any(part in ("site-packages", "dist-packages") for part in _ROOT.parts):
        places.add(str(_ROOT))
    installed = (os.path.join(path, name) for path in sys.path for name in ("transformer_np", *_FRAMEWORKS))
    return sorted(places | {os.path.abspath(place) for place in installed if os.path.isdir(place)})


def _remove(folder):
    """Delete a folder, including entries without write permission."""

    def again(function, path, _):
        try:
            for place in (os.path.dirname(path), path):
                if not os.path.islink(place):
                    os.chmod(place, stat.S_IRWXU)
            function(path)
        except OSError:
            pass

    shutil.rmtree(folder, onerror=again)
