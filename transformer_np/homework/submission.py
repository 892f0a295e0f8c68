"""A student's submission: a file or a folder of files, loaded and checked in the order of the path."""

import functools
import importlib
import inspect
import os
import sys
import types
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from .checking import TOO_LONG, verdict_on
from .exercise import public_home
from .judging.attempt import Crash, attempt, crash_of, guarded, is_students, safe_numpy, unheard
from .judging.judge import Verdict
from .limit import SECONDS, Stopped, TimeLimit
from .path import all_exercises
from .swap import stand_in


class LoadError(Exception):
    """A file cannot be imported; `path`, and `crash` with the student's lines."""

    def __init__(self, path, crash):
        self.path, self.crash = path, crash
        text = f"{crash.kind}: {crash.text}" if crash.text else crash.kind
        super().__init__(f"{path} cannot be imported. {text}" + (f"\n{crash.trace}" if crash.trace else ""))


@dataclass(frozen=True)
class Submission:
    """A loaded submission.

    path: the file or folder; answers: {name of an exercise: the student's function or class}, in the path's order
    imported: {name of an exercise: its module} for functions that the student imports instead of writing them
    others: {name of an exercise: the object of that name, if it is not a function}
    """

    path: Path
    answers: dict
    imported: dict = field(default_factory=dict)
    others: dict = field(default_factory=dict)
    modules: tuple = field(default=(), repr=False)


# --- loading ---------------------------------------------------------------------------------------------------------


def load(path, time_limit=SECONDS):
    """Execute a .py file, or all .py files of a folder, and return the Submission with the answers in them.

    Files may import others of their folder; each may run for `time_limit`, seconds or a TimeLimit. Raises
    FileNotFoundError; ValueError if the path is no .py file or folder of such files, or if two files answer the same
    exercise; LoadError if a file raises an exception or is stopped.
    """
    path = Path(path)
    files = files_of(path)
    limit = time_limit if isinstance(time_limit, TimeLimit) else TimeLimit(time_limit)
    with _importable(path if path.is_dir() else path.parent) as of_students:
        modules = tuple(_execute(file, limit) for file in files)
        names = of_students()
    answers, imported, others, homes = {}, {}, {}, {}
    for name in all_exercises():
        for module in modules:
            if name not in vars(module):
                continue
            found = vars(module)[name]
            if not callable(found):
                others[name] = found
                continue
            home = _home(found)
            if home is not None and home not in names:
                imported[name] = home
            elif name in answers and answers[name] is not found:
                raise ValueError(f"{path}: {name} is in both {homes[name]} and {Path(module.__file__).name}; keep one")
            else:
                answers[name], homes[name] = found, Path(module.__file__).name
    imported = {name: home for name, home in imported.items() if name not in answers}
    others = {name: found for name, found in others.items() if name not in answers}
    return Submission(path, answers, imported, others, modules)


def files_of(path):
    """The files that `load` executes."""
    path = Path(path)
    if path.is_dir():
        files = sorted(file for file in path.glob("*.py") if file.is_file() and not file.name.startswith("."))
        if not files:
            raise ValueError(f"{path}: this folder contains no .py file")
        return files
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix != ".py" or not path.is_file():
        raise ValueError(f"{path} must be a .py file or a folder of .py files")
    return [path]


def _home(found):
    """The module that defines a function or class; None for other callables, such as a ufunc."""
    while isinstance(found, functools.partial):
        found = found.func
    if not isinstance(found, types.FunctionType | type):
        return None
    return public_home(found.__name__, found, found.__module__)


@contextmanager
def _importable(folder):
    """Inside the block, the modules of a folder can be imported; afterwards no trace remains in sys.modules or on disk.

    Yields a function that returns the names of the modules loaded from the folder.
    """
    before, path, write = dict(sys.modules), list(sys.path), sys.dont_write_bytecode
    root = os.path.abspath(folder)

    def of_students():
        return {
            name
            for name, module in list(sys.modules.items())
            if before.get(name) is not module and _is_below(getattr(module, "__file__", None), root)
        }

    importlib.invalidate_caches()  # a file may be new
    sys.path.insert(0, root)
    sys.dont_write_bytecode = True
    try:
        yield of_students
    finally:
        sys.path[:], sys.dont_write_bytecode = path, write
        for name in of_students():
            if name in before:
                sys.modules[name] = before[name]
            else:
                del sys.modules[name]


def _is_below(file, root):
    file = file and os.path.abspath(file)
    return bool(file) and file.startswith(os.path.join(root, "")) and is_students(file)


def _execute(file, limit):
    """The module of a file. It has a private name, so that it hides no module of Python and runs no `__main__` block. A
    module that another file has imported is reused."""
    known = sys.modules.get(file.stem)
    if known is not None and getattr(known, "__file__", None) and os.path.samefile(known.__file__, file):
        return known
    module = types.ModuleType(f"_homework_{file.stem}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    sys.modules.setdefault(file.stem, module)
    try:
        with warnings.catch_warnings(), safe_numpy(), limit(str(file)):
            warnings.simplefilter("default")  # visible even if the caller hides warnings
            exec(compile(file.read_bytes(), str(file), "exec"), vars(module))
    except Stopped as stopped:
        raise LoadError(file, Crash("TimeoutError", str(stopped), "", stopped.trace)) from None
    except (Exception, SystemExit) as error:
        raise LoadError(file, crash_of(error)) from None
    return module


# --- checking --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """The state of one exercise.

    waits_for: the names of other answers that this one calls and that must become right first
    """

    exercise: object
    verdict: Verdict
    waits_for: tuple[str, ...] = ()

    @property
    def passed(self):
        return self.verdict.passed

    @property
    def not_started(self):
        return self.verdict.outcome == "not started" and not self.waits_for

    @property
    def failed(self):
        """Whether the mistake is in this answer itself."""
        return not (self.passed or self.not_started or self.waits_for)


class Checks:
    """The checks of a submission, each done on first use.

    An answer may call others of the same submission. If it fails, it is checked again with the library's functions in
    their place: this tells which of them has the mistake.
    """

    def __init__(self, submission, seed=None, limit=None):
        self.submission, self.limit = submission, limit or TimeLimit()
        self.seed = np.random.SeedSequence().entropy % 2**32 if seed is None else seed
        self._done = {}

    def of(self, name):
        """The Standing of an exercise."""
        if name not in self._done:
            self._done[name] = self._check(all_exercises()[name])
        return self._done[name]

    def _check(self, exercise):
        name = exercise.name
        if name in self.submission.others:
            return Standing(exercise, self._verdict(exercise, self.submission.others[name]))
        if name not in self.submission.answers:
            return Standing(exercise, Verdict(name, "not started", self._missing(name), seed=self.seed))
        answer = self.submission.answers[name]
        verdict = self._verdict(exercise, answer)
        if verdict.passed:
            return Standing(exercise, verdict)
        answers = {other: of for other, of in self.submission.answers.items() if other != name}
        others = {other for other, of in answers.items() if _has_parameters(of, all_exercises()[other].reference)}
        if verdict.misconception == TOO_LONG and not others & self.limit.stopped_in:
            return Standing(exercise, verdict)  # it was stopped in its own code
        if not others:
            return Standing(exercise, verdict)
        with library_instead(self.submission, others) as called:
            runs = self._runs(exercise, answer)
            with unheard():
                alone = self._verdict(exercise, answer) if runs and called else None
        if alone is None:
            return Standing(exercise, verdict)
        # two answers that call each other meet here while the first is still being checked
        self._done[name] = Standing(exercise, verdict)
        wrong = tuple(other for other in all_exercises() if other in called and not self.of(other).passed)
        if not wrong:
            return Standing(exercise, verdict)
        yours = f"your {wrong[0]} is" if len(wrong) == 1 else f"your {', '.join(wrong[:-1])} and {wrong[-1]} are"
        if alone.passed:
            message = f"{verdict.message}\nIt is right as soon as {yours}."
            return Standing(exercise, replace(verdict, message=message), wrong)
        own = "do not pass their own checks" if len(wrong) > 1 else "does not pass its own check"
        message = f"{alone.message}\nChecked with the library's {' and '.join(wrong)}: yours {own} yet."
        return Standing(exercise, replace(alone, message=message))

    def _verdict(self, exercise, answer):
        return verdict_on(exercise, answer, self.seed, self.limit)

    def _runs(self, exercise, answer):
        """Whether an answer is started and ends. Called with the library's functions in place of the other answers."""
        try:
            with self.limit(exercise.name), guarded(), unheard():
                cases = exercise.cases(np.random.default_rng(self.seed))
                tried = [attempt(exercise, answer, case) for case in cases]  # each may call other answers
        except Stopped:
            return False
        return not (tried[0].crash and tried[0].crash.not_started)

    def _missing(self, name):
        if name in self.submission.imported:
            return f"{name}: not started: it is imported from {self.submission.imported[name]}. Write it yourself."
        return f"{name}: not started: {self.submission.path} contains no {name}."


def check_all(submission, seed=None):
    """Yield (exercise, verdict) for every exercise, in the order of the path."""
    checks = Checks(submission, seed)
    for name, exercise in all_exercises().items():
        yield exercise, checks.of(name).verdict


def _has_parameters(answer, reference):
    """Whether a function has the parameters of the library's, and is no helper of the same name; True for a class."""
    if not inspect.isfunction(answer):
        return True
    given = inspect.signature(answer).parameters
    has_any = any(parameter.kind == parameter.VAR_KEYWORD for parameter in given.values())
    return has_any or inspect.signature(reference).parameters.keys() <= given.keys()


@contextmanager
def library_instead(submission, names):
    """Inside the block, the student's code calls the library's functions instead of its own answers with these names.
    Yields the set of the names called so far."""
    called, exercises = set(), all_exercises()
    instead = {
        id(submission.answers[name]): stand_in(
            exercises[name], exercises[name].reference, lambda name=name: called.add(name)
        )
        for name in names
    }
    places = [
        (vars(module), attribute, value)
        for module in submission.modules
        for attribute, value in vars(module).items()
        if id(value) in instead
    ]
    for namespace, attribute, value in places:
        namespace[attribute] = instead[id(value)]
    try:
        yield called
    finally:
        for namespace, attribute, value in places:
            namespace[attribute] = value
