"""A submission in its processes: one for each exercise, which has the inputs of this exercise and nothing else.

Its messages are untrusted bytes.
"""

import io
import os
import pickle
import signal
import sys
import time
from dataclasses import dataclass, field, fields
from inspect import signature
from types import FunctionType

import numpy as np

from ...homework.judging.attempt import Crash
from ...homework.path import own_folder
from . import answers
from .keeper import ROOT, START_SECONDS, Ended, Keeper, Late
from .scan import FRAMEWORKS
from .wire import HEADER, MOST_BYTES, MOST_JSON, one_line, plain_text, unpack

MOST_RESULTS = 256 << 20  # bytes of all results of a submission
DISTURBED = "it disturbed the way back to the grader"


@dataclass(frozen=True)
class Limits:
    """seconds for each exercise and for loading each file; total: seconds for a whole submission; memory in bytes"""

    seconds: float = 10.0
    memory: int = 2 << 30
    total: float = 600.0


# --- exercises as messages --------------------------------------------------------------------------------------------


class Task:
    """An exercise with its inputs, as a message: never a result, and nothing of another exercise."""

    def __init__(self, exercise, trials):
        self.exercise, self.trials = exercise, trials
        self.name = exercise.name
        inputs = [(case.arguments, case.options) for case in trials.cases]
        kept = [exercise.drive, *answers.given_in(inputs)]  # functions of the library that it needs, by name
        try:
            self.inputs, modules = _pickled(inputs)
            pickle.dumps(kept)
        except Exception as error:
            raise ValueError(f"{self.name}: the inputs of the exercise cannot be sent: {error}") from None
        self.sizes = [sum(isinstance(v, np.ndarray) for v in (*a, *o.values())) for a, o in inputs]
        foreign = {
            m for m in modules if m not in answers.HELPERS and not m.startswith((answers.HOMEWORK, answers.GRADING))
        }
        alone = isinstance(exercise.reference, type) or bool(foreign) or answers.needs_library(exercise.drive)
        self.message = {
            "name": self.name,
            "inputs": self.inputs,
            "kept": kept,
            "parts": exercise.parts,
            "signatures": _signatures(exercise),
            "library": alone,  # it is built from other parts of the library
        }


def _pickled(inputs):
    """Inputs as bytes, and the library's modules that are needed to read them."""
    modules = set()

    class Pickler(pickle.Pickler):
        def reducer_override(self, value):
            module = value.__module__ if isinstance(value, type | FunctionType) else type(value).__module__
            if isinstance(module, str) and module.partition(".")[0] == answers.PACKAGE:
                modules.add(module)
            return NotImplemented

    buffer = io.BytesIO()
    Pickler(buffer, 5).dump(inputs)
    return buffer.getvalue(), modules - {f"{answers.HOMEWORK}.exercise"}


def _signatures(exercise):
    reference = exercise.reference
    if isinstance(reference, type):
        return {name: signature(getattr(reference, name)) for name in ("__init__", *exercise.parts)}
    return {None: signature(reference)}


# --- a submission ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reply:
    """A process's reply on one case: a Crash, or the bytes of its output and of its arguments after the call."""

    crash: Crash | None = None
    content: tuple = ()


@dataclass
class Tried:
    """The results of a submission.

    replies: {name of an exercise: a Reply for every case}
    remarks: for the teacher; called: {name of an exercise: functions of the library it tried to call}
    not_loaded: {file: Crash}; missing: exercises without an answer; defined: exercises with one, or None if unknown
    size: bytes of the results; layers: the isolation that the system offered; deadline: the end of its time
    """

    replies: dict = field(default_factory=dict)
    remarks: list = field(default_factory=list)
    called: dict = field(default_factory=dict)
    not_loaded: dict = field(default_factory=dict)
    missing: set = field(default_factory=set)
    defined: set | None = None
    size: int = 0
    layers: list = field(default_factory=list)
    deadline: float = 0.0


def try_submission(files, tasks, limits, keepers, hidden=(), walls=()):
    """Try Python files, {name: bytes}, on the tasks, each in a process of its own; returns a Tried.

    keepers: as `keepers_for` makes them; hidden: folders that the submission must not see; walls: layers of isolation
    without which nothing is run. Raises Stopped when the grading ends, RuntimeError if a process cannot start.
    """
    tried, left_out = Tried(deadline=time.monotonic() + limits.total), set()
    names = [task.name for task in tasks]
    for task in tasks:
        while True:
            if tried.defined is not None and task.name not in tried.defined:
                tried.missing.add(task.name)
                _fill(tried, task, "", "NotImplementedError")
                break
            if time.monotonic() > tried.deadline:
                _fill(tried, task, _used_up(limits), "TimeoutError")
                break
            keeper = keepers[task.message["library"]]
            run = _Run(files, task, names, limits, keeper, hidden, walls, left_out, tried)
            if run.finished():
                break
            left_out.add(run.file)  # loading the file ended the process: try again without it
    tried.remarks = list(dict.fromkeys(tried.remarks))
    return tried


def keepers_for(tasks, stopped=lambda: False):
    """{whether an exercise is built from other parts of the library: its Keeper}"""
    kept = [thing for task in tasks if not task.message["library"] for thing in task.message["kept"]]
    return {False: Keeper(kept, stopped), True: Keeper(None, stopped)}


def _used_up(limits):
    return f"the time for the whole submission, {limits.total:g} s, was used up"


def _fill(tried, task, text, kind="RuntimeError"):
    """Add crashes for the cases of a task that were not tried."""
    done = tried.replies.setdefault(task.name, [])
    done += [Reply(Crash(kind, text, "", ""))] * (len(task.trials.cases) - len(done))


class _Lost(Exception):
    """The process ended, did not answer in time, or sent an invalid message."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


class _Run:
    """One exercise in its process."""

    def __init__(self, files, task, names, limits, keeper, hidden, walls, left_out, tried):
        self.files, self.task, self.names, self.limits, self.keeper = files, task, names, limits, keeper
        self.hidden = [*map(str, [*hidden, *filter(None, [own_folder()])]), *_copies_of_the_library()]
        self.walls, self.left_out, self.tried = walls, left_out, tried
        self.file, self.scratch = None, ""

    def finished(self):
        """Try the exercise; False if the process was lost while it loaded `file`."""
        try:
            started = time.monotonic()
            self.keeper.begin(self._job())
            self._begin()
            self.tried.deadline += time.monotonic() - started  # none of its code has run
            self._take_loading()
            self._take_cases()
        except _Lost as error:
            if self.file is not None:
                self.tried.not_loaded[self.file] = Crash(error.kind, str(error), "", "")
                return False
            _fill(self.tried, self.task, str(error), error.kind)
        finally:
            self.keeper.end()
        return True

    def _job(self):
        return {
            "files": {name: content for name, content in self.files.items() if name not in self.left_out},
            "task": self.task.message,
            "names": self.names,
            "hidden": self.hidden,
            "walls": list(self.walls),
            "memory": self.limits.memory,
            "processor_seconds": int(self.limits.seconds * (1 + len(self.files)) + START_SECONDS),
        }

    # the messages, in the required order

    def _begin(self):
        try:
            message = self._receive(START_SECONDS, bounded=False)
            if message.get("kind") != "ready":
                raise _Lost("", message.get("text", "it does not start"))
        except _Lost as error:  # not the submission's fault: its code is not even loaded
            raise RuntimeError(f"the process for a submission does not start: {plain_text(error, 500)}") from None
        self.tried.layers = [one_line(layer, 60) for layer in message["layers"]]
        self.scratch = message["scratch"]

    def _take_loading(self):
        defined = set()
        for name in self.files:
            if name in self.left_out:
                continue
            self.file = name
            message = self._expect("loading", file=name)
            self.tried.remarks += [one_line(f"{name}: {remark}", 200) for remark in _strings(message, "remarks")]
            message = self._expect("loaded", file=name)
            crash = message.get("crash")
            defined.update(_strings(message, "defined", len(self.names)))
            if crash is not None:
                self.tried.not_loaded.setdefault(name, self._crash(crash))
        self.file = None
        if self.tried.defined is None:
            self.tried.defined = defined

    def _take_cases(self):
        deadline = time.monotonic() + self.limits.seconds
        done = self.tried.replies.setdefault(self.task.name, [])
        for number, arrays in enumerate(self.task.sizes):
            message = self._expect("tried", deadline, exercise=self.task.name, case=number)
            crash = message.get("crash")
            if crash is None and sum(isinstance(value, np.ndarray) for value in message["after"]) != arrays:
                raise _Lost("RuntimeError", DISTURBED)
            done.append(Reply(self._crash(crash)) if crash is not None else Reply(None, self.content))
            called = [one_line(name, 120) for name in _strings(message, "called")]
            if called:
                self.tried.called.setdefault(self.task.name, called)
            if message.get("missing"):
                self.tried.missing.add(self.task.name)

    def _crash(self, said):
        """A Crash from the process's message."""
        said = said if isinstance(said, dict) else {}
        texts = {f.name: str(said.get(f.name, "")).replace(f"{self.scratch}{os.sep}", "") for f in fields(Crash)}
        most = {"kind": 80, "where": 80, "text": 1000}
        return Crash(**{name: plain_text(text, most.get(name, 4000)) for name, text in texts.items()})

    def _expect(self, kind, deadline=None, **values):
        seconds = self.limits.seconds if deadline is None else max(0, deadline - time.monotonic())
        message = self._receive(seconds)
        for _ in range(100):
            if message.get("kind") != "noted":
                break
            note = f"uses {message.get('text')}"
            if len(self.tried.remarks) < 200:
                self.tried.remarks.append(one_line(note))
            message = self._receive(seconds)
        if message.get("kind") != kind or any(message.get(name) != value for name, value in values.items()):
            raise _Lost("RuntimeError", DISTURBED)
        return message

    def _receive(self, seconds, bounded=True):
        """The next message. Raises _Lost."""
        deadline = time.monotonic() + seconds
        if bounded:
            deadline = min(deadline, max(self.tried.deadline, time.monotonic()))
        try:
            text, arrays = HEADER.unpack(self.keeper.read(HEADER.size, deadline))
            if text > MOST_JSON or arrays > MOST_BYTES:
                raise _Lost("RuntimeError", DISTURBED)
            self.tried.size += arrays
            if self.tried.size > MOST_RESULTS:
                raise _Lost("RuntimeError", "its results are too large")
            self.content = self.keeper.read(text, deadline), self.keeper.read(arrays, deadline)
            message = unpack(*self.content)
            if not isinstance(message, dict) or not isinstance(message["after"], list):
                raise ValueError
        except ValueError:
            raise _Lost("RuntimeError", DISTURBED) from None
        except Late:
            whole = bounded and time.monotonic() >= self.tried.deadline
            text = _used_up(self.limits) if whole else f"it took longer than {self.limits.seconds:g} s"
            raise _Lost("TimeoutError", text) from None
        except Ended as ended:
            raise _Lost("RuntimeError", _ending(ended.code)) from None
        return message


def _ending(code):
    if code <= 128:
        return f"it ended the process (exit code {code})"
    try:
        name = signal.Signals(code - 128).name
    except ValueError:
        name = f"signal {code - 128}"
    return f"its process was killed ({name})"


def _strings(message, name, most=50):
    values = message.get(name)
    return [value for value in values if isinstance(value, str)][:most] if isinstance(values, list) else []


def _copies_of_the_library():
    """The places of answers: this copy of the library, its tests, installed copies, other frameworks."""
    places = {str(ROOT / "transformer_np"), str(ROOT / "tests"), str(ROOT / "notebooks")}
    if not any(part in ("site-packages", "dist-packages") for part in ROOT.parts):
        places.add(str(ROOT))
    installed = (os.path.join(path, name) for path in sys.path for name in (answers.PACKAGE, *FRAMEWORKS))
    return sorted(places | {os.path.abspath(place) for place in installed if os.path.isdir(place)})
