"""What a student hands in: a file or a folder of files, loaded and checked in the order of the path."""

import functools
import importlib
import os
import sys
import types
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from .checking import check
from .exercise import public_home
from .judging.attempt import attempt, crash_of, is_students
from .judging.judge import Verdict
from .path import all_exercises
from .swap import stand_in


class LoadError(Exception):
    """A file could not be imported; `path`, and `crash` with the student's lines."""

    def __init__(self, path, crash):
        self.path, self.crash = path, crash
        text = f"{crash.kind}: {crash.text}" if crash.text else crash.kind
        super().__init__(f"{path} cannot be imported. {text}" + (f"\n{crash.trace}" if crash.trace else ""))


@dataclass(frozen=True)
class Submission:
    """path: what was loaded; answers: {name of an exercise: the student's function or class}, in the path's order;
    imported: {name of an exercise: the module it comes from} of those that the student did not write"""

    path: Path
    answers: dict
    imported: dict = field(default_factory=dict)
    modules: tuple = field(default=(), repr=False)


# --- loading ---------------------------------------------------------------------------------------------------------


def load(path):
    """A .py file, or all those of a folder, executed anew every time, and the answers in them.

    Files may import others of their folder. Raises FileNotFoundError, ValueError for something else than such a file or
    folder and for an exercise that two files answer, LoadError for what happens while a file is executed.
    """
    path = Path(path)
    files = files_of(path)
    with _importable(path if path.is_dir() else path.parent) as of_students:
        modules = tuple(_execute(file) for file in files)
        names = of_students()
    answers, imported, homes = {}, {}, {}
    for name in all_exercises():
        for module in modules:
            found = vars(module).get(name)
            if not callable(found):
                continue
            home = _home(found)
            if home is not None and home not in names:
                imported[name] = home
            elif name in answers and answers[name] is not found:
                raise ValueError(f"{path}: {name} is in {homes[name]} and in {Path(module.__file__).name}; keep one")
            else:
                answers[name], homes[name] = found, Path(module.__file__).name
    imported = {name: home for name, home in imported.items() if name not in answers}
    return Submission(path, answers, imported, modules)


def files_of(path):
    """The files that `load` executes."""
    path = Path(path)
    if path.is_dir():
        files = sorted(file for file in path.glob("*.py") if file.is_file() and not file.name.startswith("."))
        if not files:
            raise ValueError(f"{path}: there is no .py file in this folder")
        return files
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix != ".py" or not path.is_file():
        raise ValueError(f"{path}: this must be a .py file, or a folder of such files")
    return [path]


def _home(found):
    """The module that defines a function or class; None for other things that can be called, such as a ufunc."""
    while isinstance(found, functools.partial):
        found = found.func
    if not isinstance(found, types.FunctionType | type):
        return None
    return public_home(found.__name__, found, found.__module__)


@contextmanager
def _importable(folder):
    """Inside, the modules of a folder can be imported; nothing of it remains in sys.modules, nor on the disk.

    Yields a function that says the names of the modules that came from there.
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


def _execute(file):
    """The module of a file, under a name of its own, so that none of Python's is hidden by it and `__main__` is not
    run; the one that is there if another file has imported it."""
    known = sys.modules.get(file.stem)
    if known is not None and getattr(known, "__file__", None) and os.path.samefile(known.__file__, file):
        return known
    module = types.ModuleType(f"_homework_{file.stem}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    sys.modules.setdefault(file.stem, module)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # shown, whatever the caller does with warnings
            exec(compile(file.read_bytes(), str(file), "exec"), vars(module))
    except (Exception, SystemExit) as error:
        raise LoadError(file, crash_of(error)) from None
    return module


# --- checking --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """How one exercise stands.

    waits_for: the names of other answers that are not right yet, but for which this one would be
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
        """Whether something is wrong with this answer itself."""
        return not (self.passed or self.not_started or self.waits_for)


class Checks:
    """The checks of a submission, each done when it is first asked for.

    An answer may call others of the same submission. Where it fails, it is tried once more with the library's in their
    places: that tells whose mistake it is.
    """

    def __init__(self, submission, seed=None):
        self.submission = submission
        self.seed = np.random.SeedSequence().entropy % 2**32 if seed is None else seed
        self._done = {}

    def of(self, name):
        """The Standing of an exercise."""
        if name not in self._done:
            self._done[name] = self._check(all_exercises()[name])
        return self._done[name]

    def _check(self, exercise):
        name = exercise.name
        if name not in self.submission.answers:
            return Standing(exercise, Verdict(name, "not started", self._missing(name), seed=self.seed))
        answer = self.submission.answers[name]
        verdict = self._verdict(exercise, answer)
        if verdict.passed:
            return Standing(exercise, verdict)
        others = self.submission.answers.keys() - {name}
        with library_instead(self.submission, others) as called:
            alone = self._verdict(exercise, answer) if self._runs(exercise, answer) else None
        if alone is None or not called:
            return Standing(exercise, verdict)
        # an answer that calls itself through another is asked for here while it is being checked
        self._done[name] = Standing(exercise, verdict)
        wrong = tuple(other for other in all_exercises() if other in called and not self.of(other).passed)
        if not wrong:
            return Standing(exercise, verdict)
        yours = f"your {wrong[0]} is" if len(wrong) == 1 else f"your {', '.join(wrong[:-1])} and {wrong[-1]} are"
        if alone.passed:
            message = f"{verdict.message}\nIt is right once {yours}."
            return Standing(exercise, replace(verdict, message=message), wrong)
        message = f"{alone.message}\nChecked with the library's {' and '.join(wrong)}: {yours} not right yet."
        return Standing(exercise, replace(alone, message=message))

    def _verdict(self, exercise, answer):
        return check(exercise.name, answer, seed=self.seed, quiet=True)

    def _runs(self, exercise, answer):
        """Whether it is started: as another answer that it calls may not be, this is asked with the library's there."""
        crash = attempt(exercise, answer, exercise.cases(np.random.default_rng(self.seed))[0]).crash
        return not (crash and crash.not_started)

    def _missing(self, name):
        if name in self.submission.imported:
            return f"{name}: not started: it is imported from {self.submission.imported[name]}, not written."
        return f"{name}: not started: there is no {name} in {self.submission.path}."


def check_all(submission, seed=None):
    """Every exercise with the verdict over its answer, (exercise, verdict), in the order of the path."""
    checks = Checks(submission, seed)
    for name, exercise in all_exercises().items():
        yield exercise, checks.of(name).verdict


@contextmanager
def library_instead(submission, names):
    """Inside, where the student's code calls answers of these names it gets the library's; yields the set of the names
    of those that were called."""
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
