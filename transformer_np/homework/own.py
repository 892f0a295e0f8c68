"""A teacher's own exercises: the files of a folder, executed within a time limit, and the lists EXERCISES in them."""

import ast
import re
import sys
from contextlib import contextmanager
from importlib import import_module
from importlib.util import decode_source
from pathlib import Path
from types import ModuleType

from ..support.checks import short
from ..support.intercept import methods
from .exercise import Exercise
from .guard import files_of_the_teacher
from .judging.crash import crash_of
from .limit import Stopped, TimeLimit

PACKAGE = f"{__package__}.sheets.own"  # the package that a teacher's files are loaded into


class ExercisesError(ValueError):
    """A folder of exercises cannot be used; the message names the file and the line."""


def loaded(folder, limit=None):
    """[(Exercise, its file), …] of a folder; a file without EXERCISES, such as a student's, does not count.

    Raises ExercisesError if a file cannot be imported, does not end within the TimeLimit, or has an EXERCISES that is
    no list of Exercise.
    """
    if not folder.is_dir():
        raise NotADirectoryError(f"there is no folder {folder} with exercises")
    package = ModuleType(PACKAGE)
    package.__path__ = [str(folder)]
    sys.modules[PACKAGE] = package
    with methods(sys, {"dont_write_bytecode": True}):
        files = [file for file in sorted(folder.glob("[!._]*.py")) if b"EXERCISES" in file.read_bytes()]
        found = [(exercise, file) for file in files for exercise in _exercises_of(file, limit or TimeLimit())]
    files_of_the_teacher.update(
        getattr(module, "__file__", "") for name, module in sys.modules.items() if name.startswith(f"{PACKAGE}.")
    )
    places = {}
    for exercise, file in found:
        places.setdefault(exercise.name, []).append(place_in(file, exercise.name))
    if twice := [f"{name} ({' and '.join(of)})" for name, of in sorted(places.items()) if len(of) > 1]:
        raise ExercisesError(f"exercises that are in {folder} twice: {', '.join(twice)}")
    return found


def behind(files, folder):
    """{name relative to the folder: bytes} of these files, of what they import from the folder, of the notes beside
    them, and of other files in it that they name in a text, such as "words.txt"."""
    found, waiting = {}, list(files)
    while waiting:
        file = waiting.pop()
        name = file.relative_to(folder).as_posix()
        if name not in found:
            found[name] = file.read_bytes()
            waiting += _used_by(ast.parse(found[name]), file, folder) if file.suffix == ".py" else ()
    return found


def _used_by(tree, file, folder):
    yield from filter(Path.is_file, [file.with_suffix(".md")])
    for node in ast.walk(tree):
        paths = []
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith(f"{PACKAGE}.")):
            base = file.parents[node.level - 1] if node.level else folder
            module = base.joinpath(*(node.module or "").removeprefix(f"{PACKAGE}.").split("."))
            for path in (module, *(module / alias.name for alias in node.names)):
                paths += path.with_name(f"{path.name}.py"), path / "__init__.py"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"[\w./ -]+", node.value):
            paths = [folder / node.value, *(place / node.value for place in folder.iterdir() if place.is_dir())]
        yield from (path for path in paths if path.is_file() and path.resolve().is_relative_to(folder))


def forget():
    """Forget the files that are loaded."""
    for name in [name for name in sys.modules if name == PACKAGE or name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    files_of_the_teacher.clear()


@contextmanager
def lines_shown():
    """Inside the block, what is shown of a crash includes the teacher's lines, which students do not see."""
    hidden = set(files_of_the_teacher)
    files_of_the_teacher.clear()
    try:
        yield
    finally:
        files_of_the_teacher.update(hidden)


def place_in(file, name):
    """ "center.py, line 33": where an exercise stands in a file, or else the list EXERCISES."""
    text = decode_source(Path(file).read_bytes())
    found = name and re.search(rf"\breference\s*=\s*{name}\b", text)
    found = found or re.search(r"^EXERCISES\b", text, re.MULTILINE)
    return f"{Path(file).name}, line {1 + text.count(chr(10), 0, found.start() if found else 0)}"


def _exercises_of(file, limit):
    try:
        with limit(file.name):
            module = import_module(f"{PACKAGE}.{file.stem}")
    except Stopped as stopped:
        raise ExercisesError(f"{file.name} does not end: {stopped}\n{stopped.trace}".rstrip()) from None
    except (Exception, SystemExit) as error:
        raise ExercisesError(f"{file.name} cannot be imported. {crash_of(error).told}") from None
    found = getattr(module, "EXERCISES", ())
    if not isinstance(found, list | tuple):
        raise ExercisesError(f"{place_in(file, '')}: EXERCISES must be a list of Exercise, got {short(found)}")
    for number, exercise in enumerate(found):
        if not isinstance(exercise, Exercise):
            what = f"EXERCISES[{number}] must be an Exercise, got {short(exercise)}"
            raise ExercisesError(f"{place_in(file, '')}: {what}")
        if missing := [part for part in exercise.parts if not hasattr(exercise.reference, part)]:
            what = f"parts names {missing[0]}, which {exercise.name} does not have"
            raise ExercisesError(f"{place_in(file, exercise.name)}: {what}")
    return found
