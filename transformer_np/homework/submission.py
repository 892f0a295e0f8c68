"""A student's submission: a file or a folder of files, loaded and checked in the order of the path."""

import builtins
import importlib
import inspect
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from ..support.intercept import methods
from .answers import Survey, source_of, survey
from .checking import TOO_LONG, verdict_on
from .definitions import tree_of
from .exercise import public_home
from .guard import back_to, guarded, is_students, no_input, safe_numpy, unheard
from .handin import hand_in, may_answer
from .judging.attempt import attempt
from .judging.crash import Crash, crash_of
from .judging.judge import Verdict
from .judging.words import listed
from .kept import Kept
from .limit import SECONDS, Stopped, TimeLimit
from .loading import MOST_TRIED, execute, is_own, ranked, without
from .magics import NeedsIPython
from .path import all_exercises
from .remarks import best, how, missing, not_started, not_there, of_library, place, remarks_on
from .standins import colab, unchecked, unseen
from .swap import rebound, stand_in

DRAWING = b"plot", b"progress"  # words in code that may draw
IN_NOTEBOOK = "from transformer_np.homework import check; check('softmax', softmax)"


class LoadError(Exception):
    """A file could not be loaded; `path`, and `crash` with the student's lines."""

    def __init__(self, path, crash):
        self.path, self.crash = path, crash
        super().__init__(f"{path} {how(str(path), crash.kind)}. {crash.told}")


@dataclass(frozen=True)
class Submission:
    """A loaded submission.

    path: the file or folder
    definitions: {name of an exercise: its Definitions}, in the path's order: each may be the answer, the first that is
        right counts
    imported: {name of an exercise: its module} for functions that the student imports instead of writing them
    survey: what its files are; crashes: {file: Crash} of those that raised an exception; skipped: remarks on files
    helpers: {name: module} that its files import; again: a function that executes the files again
    """

    path: Path
    definitions: dict
    imported: dict = field(default_factory=dict)
    modules: tuple = field(default=(), repr=False)
    survey: Survey = field(default_factory=Survey, repr=False)
    crashes: dict = field(default_factory=dict)
    skipped: tuple = ()
    helpers: dict = field(default_factory=dict, repr=False)
    again: Callable = field(default=None, repr=False)

    @property
    def answers(self):
        """{name of an exercise: the student's function or class}"""
        return {name: of[0].value for name, of in self.definitions.items() if callable(of[0].value)}

    def place(self, definition):
        """Where a definition is, in words: "line 3" of the only file."""
        return place(definition.file if self.path.is_dir() else "", definition.cell, definition.line)


# --- loading ---------------------------------------------------------------------------------------------------------


def load(path, time_limit=SECONDS, strict=True):
    """Execute a .py file, a notebook, or the files of a folder that can hold answers, and return the Submission.

    Files may import others of their folder; each may run for `time_limit`, seconds or a TimeLimit. Raises
    FileNotFoundError; ValueError if the path is no such file or folder; LoadError if a file raises an exception or is
    stopped, unless `strict` is false: then the answers that were defined before count, as in `grade`.
    """
    path, limit = Path(path), time_limit if isinstance(time_limit, TimeLimit) else TimeLimit(time_limit)
    files, paths, remarks, known = files_of(path)
    loaded = _executed(Submission(path, {}, survey=known), paths, limit, strict)
    codes = source_of(files, known)
    others = [module.__file__ for module in loaded.helpers.values() if module not in loaded.modules]
    others = filter(os.path.isfile, others)  # a folder for relative imports may have no __init__.py
    beside = {os.path.relpath(file, path if path.is_dir() else path.parent): file for file in others}
    codes |= {name: Path(file).read_bytes() for name, file in beside.items()}
    read = {file: tree for file, code in codes.items() if (tree := tree_of(code))}
    course = {file: tree for file, code in source_of(files, known, course=True).items() if (tree := tree_of(code))}
    skipped = *remarks, *not_there(read, path), *of_library(read, beside, known, course)
    return replace(loaded, skipped=skipped)


def _executed(submission, paths, limit, strict, is_again=False):
    """The Submission with all that its files, {name: Path}, define. is_again: whether they have shown everything."""
    path, names = submission.path, list(all_exercises())
    found, modules, crashes, ended = [], [], {}, {}
    with _importable(path) as of_students:
        left = [*submission.survey.load.items()]
        while left:
            (name, of_file), begun = left.pop(0), []
            again = is_again or name in crashes
            try:
                module, defined, error = _execute(
                    name, paths[name], **of_file, names=names, limit=limit, begun=begun, again=again
                )
            except Stopped as stopped:
                for module, _ in begun[-1:]:  # once more without what took too long
                    for known in [known for known, one in sys.modules.items() if one is module]:
                        del sys.modules[known]
                    pieces = without(of_file["pieces"], len(begun), name in crashes)
                    left.insert(0, (name, of_file | {"pieces": pieces}))
                crashes.setdefault(name, Crash("TimeoutError", str(stopped), "", stopped.trace))
            else:
                modules.append(module)
                found.append(defined)
                ended[name] = of_file
                if error is not None:
                    crashes.setdefault(name, crash_of(error))
            if strict and name in crashes:
                raise LoadError(paths[name], crashes[name])
        helpers = {name: sys.modules[name] for name in of_students()}
        own = {module.__name__ for module in modules} | helpers.keys()
    definitions, imported = {}, {}
    for name in names:
        of = ranked(found, name, own)[:MOST_TRIED]
        if of and callable(of[0].value) and not is_own(of[0].value, own):
            imported[name] = public_home(of[0].value.__name__, of[0].value, of[0].value.__module__)
        elif of:
            definitions[name] = of
    at_once = replace(submission, survey=replace(submission.survey, load=ended))  # without what took too long
    return replace(
        submission, definitions=definitions, imported=imported, modules=tuple(modules), crashes=crashes,
        helpers=helpers, again=partial(_executed, at_once, paths, limit, strict=False, is_again=True),
    )  # fmt: skip


def files_of(path):
    """(files, paths, remarks, the Survey of the files) of a file or folder, the first three as of `hand_in`."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if not path.is_dir() and not (path.is_file() and may_answer(path.name)):
        raise ValueError(f"{path} must be a .py file, a notebook or a folder of such files")
    files, paths, remarks = hand_in(path.resolve() if path.is_symlink() else path)  # who names a link means its file
    if not files:
        raise ValueError("; ".join(remarks) or f"{path}: this folder contains no .py file and no notebook")
    try:
        return files, paths, remarks, survey(files)
    except NeedsIPython as error:
        files = {name: content for name, content in files.items() if name.endswith(".py")}
        if not files:
            raise ValueError(f"{path}: {error}. In the notebook, `check` needs no IPython: {IN_NOTEBOOK}") from None
        return files, paths, [*remarks, str(error)], survey(files)


@contextmanager
def _importable(path, helpers=None):
    """Inside the block, the modules in a folder, or beside a file, can be imported; afterwards no trace remains in
    sys.modules or on disk.

    helpers: {name: module} that were loaded before, when answers are called that import them inside a function
    Yields a function that returns the names of the modules loaded from the folder.
    """
    before = dict(sys.modules)
    root = os.path.abspath(path if path.is_dir() else path.parent)

    def of_students():
        new = [(name, module) for name, module in list(sys.modules.items()) if before.get(name) is not module]
        files = {name: os.path.abspath(file) for name, module in new if (file := getattr(module, "__file__", None))}
        return {name for name, file in files.items() if file.startswith(os.path.join(root, "")) and is_students(file)}

    importlib.invalidate_caches()  # a file may be new
    places = [root, *sys.path]
    if helpers is not None:
        places = dict.fromkeys([*sys.path, root, *(os.path.dirname(module.__file__) for module in helpers.values())])
    sys.modules.update({name: module for name, module in (helpers or {}).items() if name not in before})
    try:
        with methods(sys, {"path": [*places], "meta_path": [*sys.meta_path], "dont_write_bytecode": True}):
            yield of_students
    finally:
        for name in of_students():
            if name in before:
                sys.modules[name] = before[name]
            else:
                del sys.modules[name]


def _execute(name, path, pieces, skipped, names, limit, begun, again):
    """What `execute` returns. A notebook is silent, and shows nothing, as does a file that was exported from one.

    begun: a list to which the module and its definitions are added before each piece; again: whether it is executed
        once more, and has shown everything
    """
    code = (
        path.read_bytes()
        if name.endswith(".py")
        else "".join(piece["code"] for piece in pieces).encode("utf-8", "replace")
    )
    of_course = any(piece["course"] for piece in pieces)
    in_notebook = of_course or name.endswith(".ipynb") or b"get_ipython" in code
    if any(word in code for word in DRAWING):
        with suppress(ImportError):  # in the page's Python there are no pictures
            from .. import plots  # noqa: F401 - matplotlib takes seconds that are not the student's
    with ExitStack() as around:
        around.enter_context(warnings.catch_warnings())
        shown = (unseen(), unheard(errors=False)) if in_notebook or again else ()
        without_check = methods(sys.modules[__package__], {"check": unchecked})  # what is loaded is checked later
        alone = methods(sys, {"argv": [str(path)]}), methods(builtins, {"input": no_input})
        around.callback(back_to, os.getcwd())
        for context in (safe_numpy(), without_check, colab(), *alone, *shown):
            around.enter_context(context)
        around.enter_context(limit(str(path)))
        warnings.simplefilter("default")  # visible even if the caller hides warnings
        warnings.simplefilter("ignore", ResourceWarning)  # open(…).read() is no mistake
        return execute(name, path, pieces, names, skipped, begin=lambda *known: begun.append(known))


# --- checking --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """The state of one exercise.

    waits_for: the names of other answers that this one calls and that must become right first
    definitions: the Definition that was checked, then others that were not counted
    """

    exercise: object
    verdict: Verdict
    waits_for: tuple[str, ...] = ()
    definitions: tuple = ()

    @property
    def passed(self):
        return self.verdict.passed

    @property
    def until(self):
        """ "softmax is", "softmax and relu are": what must come true before this is right."""
        return f"{listed(self.waits_for)} {'is' if len(self.waits_for) == 1 else 'are'}"

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
    their place: this tells which of them has the mistake. No answer finds what another has left in its modules, such as
    a cache, because `grade` tries each in a process of its own.
    """

    def __init__(self, submission, seed=None, limit=None):
        self.submission, self.limit = submission, limit or TimeLimit()
        self.seed = np.random.SeedSequence().entropy % 2**32 if seed is None else seed
        self._done = {}
        self._begin(submission)

    def _begin(self, submission):
        self._current, self._kept = submission, Kept(_modules(submission))

    def of(self, name):
        """The Standing of an exercise."""
        if name not in self._done:
            if name in self.submission.definitions and self._kept != Kept(_modules(self._current)):
                self._begin(self._current.again())
            self._done[name] = self._check(all_exercises()[name], self._current)
        return self._done[name]

    def remarks(self, names):
        """The remarks on the submission, as `grade` makes them. names: of the exercises of the course"""
        definitions, of = {name: self.of(name).definitions for name in names}, self.submission
        return [*of.skipped, *remarks_on(of.survey, of.crashes, definitions, names)]

    def _check(self, exercise, submission):
        name, definitions = exercise.name, submission.definitions.get(exercise.name, ())
        if not definitions:
            return Standing(exercise, self._missing(name))
        standings = []
        for definition in definitions:
            standings.append(self._check_answer(exercise, submission, definition.value))
            if standings[-1].passed:
                break
        chosen = best([standing.verdict for standing in standings])
        others = [one for one in definitions if one is not definitions[chosen]]
        if standings[chosen].not_started and self._missing(name).outcome == "crashed":
            return Standing(exercise, self._missing(name))  # only the stub could be loaded
        return replace(standings[chosen], definitions=(definitions[chosen], *others))

    @cached_property
    def _callable(self):
        """The names of the answers that another answer may call."""
        exercises = all_exercises()
        answers = self.submission.answers.items()
        return {name for name, answer in answers if _has_parameters(answer, exercises[name].reference)}

    def _check_answer(self, exercise, submission, answer):
        name = exercise.name
        verdict, others = self._verdict(exercise, submission, answer), self._callable - {name}
        in_own_code = verdict.misconception == TOO_LONG and not others & self.limit.stopped_in
        if verdict.passed or in_own_code or not others:
            return Standing(exercise, verdict)
        with library_instead(submission, others) as called:
            runs = self._runs(exercise, answer)
        # two answers that call each other meet here while the first is still being checked
        self._done[name] = Standing(exercise, verdict)
        wrong = tuple(other for other in all_exercises() if runs and other in called and not self.of(other).passed)
        if not wrong:
            return Standing(exercise, verdict)
        with library_instead(submission, others), unheard():
            alone = self._verdict(exercise, submission, answer)
        if alone.passed:
            standing = Standing(exercise, verdict, wrong)
            message = f"{verdict.message}\nIt is right as soon as your {standing.until}."
            return replace(standing, verdict=replace(verdict, message=message))
        own = "do not pass their own checks" if len(wrong) > 1 else "does not pass its own check"
        message = f"{alone.message}\nChecked with the right {listed(wrong)}: yours {own} yet."
        return Standing(exercise, replace(alone, message=message))

    def _verdict(self, exercise, submission, answer):
        with _importable(submission.path, submission.helpers):
            return verdict_on(exercise, answer, self.seed, self.limit)

    def _runs(self, exercise, answer):
        """Whether an answer is started and ends. Called with the library's functions in place of the other answers."""
        with suppress(Stopped), self.limit(exercise.name), guarded(), unheard():
            plain, *others = exercise.cases(np.random.default_rng(self.seed))
            if not attempt(exercise, answer, plain).not_started:
                for case in others:  # each may call other answers
                    attempt(exercise, answer, case)
                return True
        return False

    def _missing(self, name):
        of = self.submission
        if name in of.imported:
            return not_started(name, f"it is imported from {of.imported[name]}. Write it yourself.", self.seed)
        return missing(name, of.survey, of.crashes, self.seed, of.path)


@dataclass(frozen=True, repr=False)
class Verdicts:
    """(exercise, verdict) for every exercise, in the order of the path, each checked when it is asked for. A notebook
    shows a line for each that is begun."""

    checks: Checks

    def __iter__(self):
        for name, exercise in all_exercises().items():
            yield exercise, self.checks.of(name).verdict

    def __repr__(self):
        begun = [one for one in map(self.checks.of, all_exercises()) if not one.not_started]
        return "\n".join([*(repr(one.verdict).strip("<>") for one in begun), "no other is started"])


def check_all(submission, seed=None):
    """The Verdicts on a Submission."""
    return Verdicts(Checks(submission, seed))


def _modules(submission):
    return [*submission.modules, *submission.helpers.values()]


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
    called, pairs = set(), []
    for exercise in map(all_exercises().get, names):
        for one in submission.definitions[exercise.name]:
            known = stand_in(exercise, exercise.reference, partial(called.add, exercise.name))
            pairs.append((one.value, known))
    with rebound(pairs, lambda: map(vars, submission.modules)):
        yield called
