"""A submission in its processes: one for each exercise, which has the inputs of this exercise and nothing else.

Its messages are untrusted bytes.
"""

import io
import pickle
import signal
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from inspect import signature
from types import FunctionType

from ...homework.answers import as_they_are
from ...homework.judging.crash import Crash
from ...homework.loading import MOST_TRIED, Definition, without
from ...support.checks import refusing
from .bubblewrap import START_SECONDS
from .keeper import Ended, Keeper, NotStarted
from .package import PACKAGE, package_for
from .process import Late
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

    def __init__(self, trials):
        exercise = trials.exercise
        self.trials, self.exercise, self.name = trials, exercise, exercise.name
        inputs = [(case.arguments, case.options) for case in trials.cases]
        with refusing(f"{self.name}: the inputs of the exercise cannot be sent", Exception):
            self.inputs, needed = _pickled(inputs)
            self._call, of_call = _pickled((exercise.drive, exercise.parts, _signatures(exercise)))
        self.after = [[type(v) for v in (*a, *o.values()) if type(v) in CHANGEABLE] for a, o in inputs]
        self._needed = needed | of_call

    @cached_property
    def modules(self):
        """The part of the library that its process gets."""
        return package_for(self.exercise, self._needed)

    @property
    def holds(self):
        """How much code of the library its process gets. One that gets an answer gets all that this is built from, so
        it gets more than the process that tries this answer."""
        return sum(len(code) for _, code in self.modules.values())

    @property
    def message(self):
        return {"name": self.name, "inputs": self.inputs, "call": self._call, "modules": self.modules}


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
    """{name of a method: its signature}, with None for that of a function."""
    reference = exercise.reference
    if isinstance(reference, type):
        methods = {name: getattr(reference, name) for name in ("__init__", *exercise.parts)}
        return {name: signature(getattr(method, "fget", method)) for name, method in methods.items()}  # of a property
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

    replies: {name of an exercise: [a Reply for every case, of each of its definitions]}; [] without an answer
    definitions: {name: [Definition, …]}; called: {name: functions of the library it tried to call}
    not_loaded: {file: Crash}; defined: exercises with an answer, or None if unknown
    layers: the isolation that the system offered; spent: seconds of its processes
    """

    replies: dict = field(default_factory=dict)
    definitions: dict = field(default_factory=dict)
    called: dict = field(default_factory=dict)
    not_loaded: dict = field(default_factory=dict)
    defined: set | None = None
    layers: list = field(default_factory=list)
    spent: float = 0.0


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
    tried = Tried()
    job = {
        "files": {name: content for name, content in files.items() if name.endswith(".py")},
        "load": {**(known or as_they_are(files)).load}, "names": [task.name for task in tasks], "walls": list(walls),
        "memory": limits.memory,
    }  # fmt: skip
    with nullcontext(keeper) if keeper else closing(Keeper()) as keeper:
        for task in sorted(tasks, key=lambda task: task.holds):
            _try_task(task, job, limits, keeper, tried)
    return tried


def _try_task(task, job, limits, keeper, tried):
    """Add the results of an exercise to a Tried. A piece of a file that ends the process is taken out of the job, or
    the file if it sends forged messages."""
    replies, definitions = tried.replies.setdefault(task.name, []), None
    while definitions is None or len(replies) < len(definitions):
        if tried.defined is not None and task.name not in tried.defined:
            return
        if tried.spent >= limits.total:
            replies.append(_filled([], task, Crash("TimeoutError", _used_up(limits), "", "")))
            return
        run = _tried_run(task, job | {"which": len(replies)}, limits, keeper, tried)
        if run.file is not None:
            pieces = job["load"][run.file]["pieces"]
            trace, again = _place(run.file, pieces[run.pieces - 1]) if run.pieces else "", run.file in tried.not_loaded
            tried.not_loaded.setdefault(run.file, replace(run.lost, trace=trace))
            if left := without(pieces, run.pieces, again) if run.pieces and run.lost.text != DISTURBED else []:
                job["load"][run.file] = job["load"][run.file] | {"pieces": left}
                continue
            for of in (job["files"], job["load"]):
                of.pop(run.file, None)
        else:
            _add(run, tried)
            definitions = run.definitions


def _place(file, piece):
    """Where a piece of a file begins, as in a traceback."""
    if piece["cell"] is not None:
        return f'  File "{file}, cell {piece["cell"]}"'
    code = piece["code"] or ""
    return f'  File "{file}", line {1 + len(code) - len(code.lstrip())}'


def _tried_run(task, job, limits, keeper, tried):
    """A _Run that has come to its end, the second one if the first did not start or its messages were not in order."""
    for is_last in (False, True):
        run = _Run(task, job, limits, keeper)
        try:
            run.go(limits.total - tried.spent)
        except NotStarted:
            keeper.close()
            if is_last:
                raise
            continue
        tried.spent += run.spent
        tried.layers = run.layers
        if is_last or not run.lost or run.lost.text != DISTURBED:
            return run


def _add(run, tried):
    name = run.task.name
    if run.definitions or run.lost:
        tried.replies[name].append(_filled(run.replies, run.task, run.lost))
    tried.definitions.setdefault(name, run.definitions)
    if run.called:
        tried.called[name] = run.called
    for file, crash in run.not_loaded.items():
        tried.not_loaded.setdefault(file, crash)
    if tried.defined is None:
        tried.defined = run.defined


def _used_up(limits):
    return f"the time for the whole submission, {limits.total:g} s, was used up"


def _filled(done, task, crash):
    """The replies, with a Crash for the cases of a task that were not tried."""
    return done + [Reply(crash)] * (len(task.trials.cases) - len(done))


class _Lost(Exception):
    """The process ended, did not answer in time, or sent an invalid message."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.crash = Crash(kind, text, "", "")


class _Run:
    """A definition of an exercise in its process.

    file: the one that is being loaded; pieces: how many of its pieces were begun
    lost: a Crash for the way in which the process was lost, or None
    """

    def __init__(self, task, job, limits, keeper):
        self.task, self.limits, self.keeper, self.load = task, limits, keeper, job["load"]
        self.processor_seconds = int(limits.seconds * (1 + len(self.load))) + 3
        self.job = job | {"task": task.message, "processor_seconds": self.processor_seconds}
        self.whole, self.spent, self.size, self.layers = None, 0.0, 0, []
        self.file, self.pieces, self.lost, self.defined = None, 0, None, None
        self.definitions, self.replies, self.called, self.not_loaded = [], [], [], {}

    def go(self, total):
        """Try the exercise, in at most `total` seconds. Raises NotStarted."""
        self.keeper.begin(self.job)
        self._take_start()
        self.whole = self.keeper.clock(total)
        try:
            self._take_loading()
            self._take_cases()
        except _Lost as error:
            self.lost = error.crash
        finally:
            self.spent = self.whole.spent
            self.keeper.end()

    # the messages, in the required order

    def _take_start(self):
        try:
            message = self._receive("started", self.keeper.clock(START_SECONDS))
        except _Lost as error:  # not the submission's fault: its code is not even loaded
            message = {"error": str(error)}
        if message["error"]:
            raise NotStarted(f"the process for a submission does not start: {plain_text(message['error'], 500)}")
        self.layers = message["layers"]

    def _take_loading(self):
        for name in self.load:
            self.file, clock = name, self.keeper.clock(self.limits.seconds)
            for begun in range(1 + len(self.load[name]["pieces"])):
                self.pieces = begun
                message = self._receive(("piece", "loaded"), clock, self.whole)
                if message["kind"] == "loaded":
                    break
            if message.get("file") != name:
                raise _Lost("RuntimeError", DISTURBED)
            if crash := _crash(message):
                self.not_loaded[name] = crash
        self.file = None

    def _take_cases(self):
        clocks = self.keeper.clock(self.limits.seconds), self.whole
        message = self._receive("found", *clocks)
        places = message.get("definitions")
        if not isinstance(places, list) or len(places) > MOST_TRIED:
            raise _Lost("RuntimeError", DISTURBED)
        self.definitions = [_definition(place, self.load) for place in places]
        self.defined = {*_texts(message, "defined", len(self.job["names"]))}
        for kinds in self.task.after if places else ():
            message = self._receive("tried", *clocks)
            crash = _crash(message)
            if not crash and [type(value) for value in message["after"]] != kinds:
                raise _Lost("RuntimeError", DISTURBED)
            self.replies.append(Reply(crash) if crash else Reply(None, self.content))
            self.called = self.called or _texts(message, "called", 20)

    def _receive(self, kinds, *clocks):
        """The next message, which must be of this kind, or of one of several. Raises _Lost."""
        try:
            text, arrays = HEADER.unpack(self.keeper.read(HEADER.size, *clocks))
            if text > MOST_JSON or arrays > MOST_BYTES:
                raise ValueError
            self.size += arrays
            if self.size > MOST_RESULTS:
                raise _Lost("RuntimeError", "its results are too large")
            self.content = self.keeper.read(text, *clocks), self.keeper.read(arrays, *clocks)
            message = unpack(*self.content)
            if message.get("kind") not in (kinds if isinstance(kinds, tuple) else (kinds,)):
                raise ValueError
        except ValueError:
            raise _Lost("RuntimeError", DISTURBED) from None
        except Late:
            used_up = self.whole and self.whole.left <= 0
            raise _Lost("TimeoutError", _used_up(self.limits) if used_up else self._too_long()) from None
        except Ended as ended:
            if round(ended.seconds) >= self.processor_seconds:  # in several threads; the limit counts in ticks
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


def _crash(message):
    """The Crash in a message, or None."""
    said = message.get("crash")
    if said is None:
        return None
    said, most = said if isinstance(said, dict) else {}, {"kind": 80, "where": 80, "text": 1000}
    return Crash(**{f.name: plain_text(said.get(f.name, ""), most.get(f.name, 4000)) for f in fields(Crash)})


def _definition(place, files):
    """The Definition at a place in a message."""
    if not isinstance(place, list) or len(place) != 4 or place[0] not in list(files):
        raise _Lost("RuntimeError", DISTURBED)
    file, cell, line, kind = place
    numbers = [n if type(n) is int and 0 < n < 10**6 else None for n in (cell, line)]
    return Definition(file, *numbers, kind=one_line(kind, 60))


def _texts(message, name, most):
    """The first texts of a list in a message."""
    values = message.get(name)
    return [one_line(text) for text in values if isinstance(text, str)][:most] if isinstance(values, list) else []
