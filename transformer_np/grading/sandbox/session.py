"""A submission in its processes: one for each exercise, which has the inputs of this exercise and nothing else.

Its messages are untrusted bytes.
"""

import io
import os
import pickle
import signal
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from functools import cached_property
from inspect import signature
from types import FunctionType

from ...homework.answers import as_they_are
from ...homework.judging.crash import Crash
from ...homework.loading import MOST_TRIED, Definition
from .bubblewrap import START_SECONDS
from .keeper import Ended, Keeper, Late, NotStarted
from .package import PACKAGE, package_for
from .wire import CHANGEABLE, HEADER, MOST_BYTES, MOST_JSON, one_line, plain_text, unpack

MOST_RESULTS = 64 << 20  # bytes of all results for an exercise
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
        try:
            (self.inputs, needed), (self._drive, of_drive) = _pickled(inputs), _pickled(exercise.drive)
            self._signatures, of_signatures = _pickled(_signatures(exercise))
        except Exception as error:
            raise ValueError(f"{self.name}: the inputs of the exercise cannot be sent: {error}") from None
        self.after = [[type(v) for v in (*a, *o.values()) if type(v) in CHANGEABLE] for a, o in inputs]
        self._needed = needed | of_drive | of_signatures

    @cached_property
    def holds(self):
        """How much code of the library its process gets. One that gets an answer gets all that this is built from, so
        it gets more than the process that tries this answer."""
        return sum(len(code) for _, code in self.message["modules"].values())

    @cached_property
    def message(self):
        return {
            "name": self.name, "inputs": self.inputs, "drive": self._drive, "parts": self.exercise.parts,
            "signatures": self._signatures, "modules": package_for(self.exercise, self._needed),
        }  # fmt: skip


def _pickled(thing):
    """A thing as bytes, and the (module, name) of the library's functions and classes that are needed to read them."""
    needed = set()

    class Pickler(pickle.Pickler):
        def reducer_override(self, value):
            kind = value if isinstance(value, type | FunctionType) else type(value)
            if isinstance(kind.__module__, str) and kind.__module__.partition(".")[0] == PACKAGE:
                needed.add((kind.__module__, kind.__qualname__.partition(".")[0]))
            return NotImplemented

    buffer = io.BytesIO()
    Pickler(buffer, 5).dump(thing)
    return buffer.getvalue(), needed


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

    replies: {name of an exercise: a Reply for every case}, of the first of its definitions
    more: {name: [replies of a further definition, …]}; definitions: {name: [Definition, …]}
    called: {name of an exercise: functions of the library it tried to call}
    not_loaded: {file: Crash}; missing: exercises without an answer; defined: exercises with one, or None if unknown
    layers: the isolation that the system offered; spent: seconds of its processes
    """

    replies: dict = field(default_factory=dict)
    more: dict = field(default_factory=dict)
    definitions: dict = field(default_factory=dict)
    called: dict = field(default_factory=dict)
    not_loaded: dict = field(default_factory=dict)
    missing: set = field(default_factory=set)
    defined: set | None = None
    layers: list = field(default_factory=list)
    spent: float = 0.0

    def add(self, task, which, replies):
        """Add the replies of a definition of an exercise, by its number."""
        if which == 0:
            self.replies[task.name] = replies
        else:
            self.more.setdefault(task.name, []).append(replies)


def try_submission(files, tasks, limits, walls=(), keeper=None, known=None):
    """Try Python files, {name: bytes}, on the tasks, each in a process of its own; returns a Tried.

    keeper: starts the processes; None for one of its own
    known: the Survey of the files, which says what is executed; all of them by default
    Of an exercise with several definitions each is tried. A process that does not start, or whose messages are not in
    order, is tried once more.
    The processes that hold more of the library come later: whatever they leave on the machine, such as the time of a
    look at a file, the exercises whose answers they hold are tried by then.
    walls: layers of isolation without which nothing is run. Raises Stopped when the grading ends, NotStarted if a
    process does not start.
    """
    load = (known or as_they_are(files)).load
    tried, left_out, names = Tried(), set(), [task.name for task in tasks]
    with nullcontext(keeper) if keeper else Keeper() as keeper:
        for task in sorted(tasks, key=lambda task: task.holds):
            again, which = False, 0
            while True:
                if tried.defined is not None and task.name not in tried.defined:
                    tried.missing.add(task.name)
                    tried.replies[task.name] = _filled([], task, "NotImplementedError", "")
                    break
                if tried.spent >= limits.total:
                    tried.add(task, which, _filled([], task, "TimeoutError", _used_up(limits)))
                    break
                kept = [{n: c for n, c in of.items() if n not in left_out} for of in (files, load)]
                run = _Run(*kept, which, task, names, limits, keeper, walls)
                try:
                    run.go(limits.total - tried.spent)
                except NotStarted:
                    keeper.close()
                    if again:
                        raise
                    again = True
                    continue
                tried.spent += run.spent
                tried.layers = run.layers
                if run.lost == DISTURBED and not again:
                    again = True
                elif run.file is not None:
                    tried.not_loaded[run.file] = Crash(run.kind, run.lost, "", "")
                    left_out.add(run.file)  # loading the file ended the process: try again without it
                else:
                    run.add_to(tried)
                    which, again = which + 1, False
                    if which >= len(run.definitions):
                        break
    return tried


def _used_up(limits):
    return f"the time for the whole submission, {limits.total:g} s, was used up"


def _filled(done, task, kind, text):
    """The replies, with crashes for the cases of a task that were not tried."""
    return done + [Reply(Crash(kind, text, "", ""))] * (len(task.trials.cases) - len(done))


class _Lost(Exception):
    """The process ended, did not answer in time, or sent an invalid message."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


class _Run:
    """One exercise in its process.

    which: the number of the definition that is tried
    file: the one that is being loaded; kind, lost: how the process was lost, "" if it was not
    """

    def __init__(self, files, load, which, task, names, limits, keeper, walls):
        self.files, self.task, self.names, self.limits, self.keeper = files, task, names, limits, keeper
        self.load, self.which, self.definitions = load, which, []
        self.walls, self.file, self.scratch, self.kind, self.lost = walls, None, "", "", ""
        self.replies, self.called, self.not_loaded, self.defined = [], [], {}, set()
        self.processor_seconds = int(limits.seconds * (1 + len(load))) + 3
        self.layers, self.missing, self.size, self.spent = [], False, 0, 0.0

    def go(self, total):
        """Try the exercise, in at most `total` seconds. Raises NotStarted."""
        try:
            self.keeper.begin(self._job())
            self._begin()
            self.whole = self.keeper.clock(total)
            self._take_loading()
            self._take_cases()
        except _Lost as error:
            self.kind, self.lost = error.kind, str(error)
        finally:
            self.spent = self.whole.spent if self.scratch else 0.0
            self.keeper.end()

    def add_to(self, tried):
        tried.add(self.task, self.which, _filled(self.replies, self.task, self.kind, self.lost))
        tried.definitions.setdefault(self.task.name, self.definitions)
        if self.called:
            tried.called[self.task.name] = self.called
        if self.missing:
            tried.missing.add(self.task.name)
        for file, crash in self.not_loaded.items():
            tried.not_loaded.setdefault(file, crash)
        if tried.defined is None:
            tried.defined = self.defined

    def _job(self):
        return {
            "files": {name: content for name, content in self.files.items() if name.endswith(".py")},
            "load": self.load, "which": self.which,
            "task": self.task.message, "names": self.names, "walls": list(self.walls),
            "memory": self.limits.memory, "processor_seconds": self.processor_seconds,
        }  # fmt: skip

    # the messages, in the required order

    def _begin(self):
        try:
            message = self._receive([self.keeper.clock(START_SECONDS)])
            if message.get("kind") != "ready":
                raise _Lost("", message.get("text", "it does not start"))
        except _Lost as error:  # not the submission's fault: its code is not even loaded
            raise NotStarted(f"the process for a submission does not start: {plain_text(error, 500)}") from None
        self.layers = [one_line(layer, 60) for layer in message["layers"]]
        self.scratch = message["scratch"]

    def _take_loading(self):
        for name in self.load:
            self.file = name
            clocks = self.keeper.clock(self.limits.seconds), self.whole
            self._expect("loading", clocks, file=name)
            message = self._expect("loaded", clocks, file=name)
            crash = message.get("crash")
            self.defined.update(_strings(message, "defined", len(self.names)))
            if crash is not None:
                self.not_loaded[name] = self._crash(crash)
        self.file = None

    def _take_cases(self):
        clocks = self.keeper.clock(self.limits.seconds), self.whole
        found = self._expect("found", clocks).get("definitions")
        if not isinstance(found, list) or len(found) > MOST_TRIED:
            raise _Lost("RuntimeError", DISTURBED)
        self.definitions = [_found(said, self.load) for said in found]
        for number, kinds in enumerate(self.task.after):
            message = self._expect("tried", clocks, exercise=self.task.name, case=number)
            crash = message.get("crash")
            if crash is None and [type(value) for value in message["after"]] != kinds:
                raise _Lost("RuntimeError", DISTURBED)
            self.replies.append(Reply(self._crash(crash)) if crash is not None else Reply(None, self.content))
            self.called = self.called or [one_line(name, 120) for name in _strings(message, "called")]
            self.missing = self.missing or bool(message.get("missing"))

    def _crash(self, said):
        """A Crash from the process's message."""
        said = said if isinstance(said, dict) else {}
        texts = {f.name: str(said.get(f.name, "")).replace(f"{self.scratch}{os.sep}", "") for f in fields(Crash)}
        most = {"kind": 80, "where": 80, "text": 1000}
        return Crash(**{name: plain_text(text, most.get(name, 4000)) for name, text in texts.items()})

    def _expect(self, kind, clocks, **values):
        message = self._receive(clocks)
        if message.get("kind") != kind or any(message.get(name) != value for name, value in values.items()):
            raise _Lost("RuntimeError", DISTURBED)
        return message

    def _receive(self, clocks):
        """The next message. Raises _Lost."""
        try:
            text, arrays = HEADER.unpack(self.keeper.read(HEADER.size, clocks))
            if text > MOST_JSON or arrays > MOST_BYTES:
                raise _Lost("RuntimeError", DISTURBED)
            self.size += arrays
            if self.size > MOST_RESULTS:
                raise _Lost("RuntimeError", "its results are too large")
            self.content = self.keeper.read(text, clocks), self.keeper.read(arrays, clocks)
            message = unpack(*self.content)
            if not isinstance(message, dict) or not isinstance(message["after"], list):
                raise ValueError
        except ValueError:
            raise _Lost("RuntimeError", DISTURBED) from None
        except Late:
            used_up = len(clocks) > 1 and self.whole.left <= 0
            raise _Lost("TimeoutError", _used_up(self.limits) if used_up else self._too_long()) from None
        except Ended as ended:
            if ended.seconds >= self.processor_seconds:  # in several threads
                raise _Lost("TimeoutError", self._too_long()) from None
            raise _Lost("RuntimeError", _ending(ended.code)) from None
        return message

    def _too_long(self):
        return f"it took longer than {self.limits.seconds:g} s"


def _ending(code):
    if code <= 128:
        return f"it ended the process (exit code {code})"
    try:
        name = signal.Signals(code - 128).name
    except ValueError:
        name = f"signal {code - 128}"
    return f"its process was killed ({name})"


def _found(said, files):
    """The Definition in a process's message."""
    if not isinstance(said, list) or len(said) != 4 or said[0] not in list(files):
        raise _Lost("RuntimeError", DISTURBED)
    file, cell, line, kind = said
    numbers = [n if type(n) is int and 0 < n < 10**6 else None for n in (cell, line)]
    return Definition(file, *numbers, kind=one_line(kind, 60))


def _strings(message, name, most=50):
    values = message.get(name)
    return [value for value in values if isinstance(value, str)][:most] if isinstance(values, list) else []
