"""A course: a TOML file with its exercises, their points, and which of them are core.

`check` and `status` read `course.toml` beside the student's file, and `grade` reads the same file.
"""

import math
import os
import re
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from ..support.files import read_bytes
from .path import all_exercises, chosen, exercises_in, own_exercises

FILE = "course.toml"


class CourseError(ValueError):
    """The file of a course cannot be used; the message names the line."""


@dataclass(frozen=True)
class Course:
    """points: {name of an exercise of the course: its points}, in the order of the path
    partial: points by the share of right cases; pass_mark: percent of the core's points, or None
    extended: the exercises beyond the core; their points are counted apart
    """

    points: dict = field(default_factory=dict)
    partial: bool = False
    pass_mark: float | None = None
    extended: frozenset = frozenset()
    title: str = ""
    deadline: str = ""

    @property
    def exercises(self):
        return [all_exercises()[name] for name in self.points]

    @property
    def core(self):
        return [name for name in self.points if name not in self.extended]

    @property
    def possible(self):
        """The points of the core."""
        return math.fsum(self.points[name] for name in self.core)

    @property
    def possible_extended(self):
        return math.fsum(self.points[name] for name in self.extended)

    def points_for(self, verdict):
        """The points of an answer with this verdict."""
        share = 1.0 if verdict.passed else verdict.share if self.partial else 0.0
        return self.points[verdict.exercise] * share


@contextmanager
def opened(path=None, folder=None):
    """Inside, the exercises of a course are at hand; yields the Course.

    path: of its file; None for all exercises. folder: of exercises by a teacher, instead of the one the file names
    """
    if folder is None and path is not None:
        folder = folder_in(path)
    with exercises_in(folder):
        yield read_course(path) if path is not None else default_course()


def default_course():
    """All exercises, of a teacher's folder if there is one. Each counts 1 point, all or nothing."""
    return Course(dict.fromkeys(own_exercises() or all_exercises(), 1.0))


def read_course(path):
    """The course in a TOML file. CourseError with the line if it cannot be used."""
    return parse_course(_read(path), path)


def folder_in(path):
    """The folder of exercises that the file of a course names, or None."""
    folder = _table(_read(path), path).get("folder")
    if folder is None:
        return None
    if not isinstance(folder, str):
        raise CourseError(f"{path}: folder must be a text, got {folder!r}")
    return Path(path).parent / folder


def written(names):
    """The text of a file with these exercises."""
    lines = ["# The exercises that check and status show.", "exercises = ["]
    return "\n".join([*lines, *(f"    {_quoted(name)}," for name in names), "]", ""])


def moved(text, to, folder):
    """The text of a course's file in the folder `to`, from which the folder of a teacher's exercises is seen."""
    if folder is None:
        return text
    line = f"folder = {_quoted(os.path.relpath(folder, to).replace(os.sep, '/'))}\n"
    return line + re.sub(r"^[ \t]*folder[ \t]*=.*\n", "", text, flags=re.MULTILINE)


def _quoted(text):
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _read(path):
    try:
        return read_bytes(path, "the TOML file of a course").decode("utf-8")
    except UnicodeDecodeError:
        raise CourseError(f"{path} is not UTF-8") from None


def _table(text, path):
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise CourseError(f"{path} is not TOML: {error}") from None


def parse_course(text, path="the course"):
    table = _table(text, path)

    def fail(key, message):
        raise CourseError(f"{path}{_line(text, key)}: {message}")

    known = ("title", "deadline", "folder", "partial", "pass_mark", "exercises", "extended", "points")
    for key in table:
        if key not in known:
            advice = "".join(f"; did you mean {near}?" for near in get_close_matches(key, known, n=1))
            fail(key, f"there is no setting {key!r}{advice or '; the settings are ' + ', '.join(known)}")
    for key in ("title", "deadline", "folder"):
        if not isinstance(table.get(key, ""), str):
            fail(key, f"{key} must be a text in quotes, got {table[key]!r}")
    partial = table.get("partial", False)
    if not isinstance(partial, bool):
        fail("partial", f"partial must be true or false, got {partial!r}")
    pass_mark = table.get("pass_mark")
    if pass_mark is not None and not (_is_number(pass_mark) and 0 <= pass_mark <= 100):
        fail("pass_mark", f"pass_mark must be a number in 0 … 100, got {pass_mark!r}")

    def names_in(key, default):
        """The names that a list of names and chapters stands for."""
        words, names = table.get(key), []
        if words is None:
            return default
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            fail(key, f"{key} must be a list of names, got {words!r}")
        for word in words:
            try:
                meant = [exercise.name for exercise in chosen(word)]
            except ValueError as error:
                fail(word, str(error))
            if twice := [name for name in meant if name in names]:
                fail(word, f"{key} names {twice[0]} twice")
            names += meant
        return names

    names = names_in("exercises", list(own_exercises() or all_exercises()))
    extended = names_in("extended", [])
    for name in extended:
        if name not in names:
            fail("extended", f"{name} is extended, but {name} is not in exercises")
    points = table.get("points", {})
    if not isinstance(points, dict):
        fail("points", f"points must be a table, [points], got {points!r}")
    for name, value in points.items():
        if name not in all_exercises():
            near = get_close_matches(name, all_exercises(), n=1, cutoff=0.4)
            fail(name, f"there is no exercise {name!r}" + "".join(f"; did you mean {n}?" for n in near))
        if name not in names:
            fail(name, f"points for {name}, but {name} is not in exercises")
        if not _is_number(value) or not 0 <= value < math.inf:
            fail(name, f"the points for {name} must be a number, 0 or more, got {value!r}")
    counted = {name: float(points.get(name, 1)) for name in all_exercises() if name in names}
    course = Course(
        counted,
        partial,
        None if pass_mark is None else float(pass_mark),
        frozenset(extended),
        table.get("title", ""),
        table.get("deadline", ""),
    )
    if not course.possible:
        fail("points", "no exercise gives points" if not extended else "no exercise of the core gives points")
    return course


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _line(text, key):
    """ ", line 3": the line of a key or of a name in a list; the last one, because [points] comes after the list."""
    word = rf"(?<![\w-]){re.escape(key)}(?![\w-])"
    lines = [number for number, line in enumerate(text.splitlines(), 1) if re.search(word, line.partition("#")[0])]
    return f", line {lines[-1]}" if lines else ""
