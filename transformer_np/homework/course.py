"""A course: a TOML file with its exercises, their points, and which of them are core.

`check` and `status` read `course.toml` beside the student's file, and `grade` reads the same file.
"""

import json
import math
import os
import re
import tomllib
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from ..support.files import read_bytes
from .deadline import KEYS, Deadline, possible, shown
from .limit import SECONDS, TimeLimit
from .path import all_exercises, chosen, exercises_in, own_exercises, own_folder

FILE, OWN = "course.toml", "exercises"  # the file of a course, and the copy of a teacher's exercises beside it


class CourseError(ValueError):
    """The file of a course cannot be used; the message names the line."""


@dataclass(frozen=True)
class Part:
    """Points of an exercise that are counted together.

    extended: whether they are counted separately from the core's points
    of: "all" for all points of the exercise; if its points are split, "core" for those of an answer that is right for
        the lecture, and "rest" for those of an answer that is right in the extended cases too
    """

    exercise: str
    worth: float
    extended: bool
    of: str = "all"

    @property
    def title(self):
        return f"{self.exercise} (extended)" if self.of == "rest" else self.exercise

    def is_right(self, verdict):
        return verdict.core if self.of == "core" else verdict.passed


@dataclass(frozen=True)
class Course:
    """points: {name of an exercise of the course: its points}, in the order of the path
    partial: points by the share of right cases; pass_mark: percent of the core's points, or None
    extended: the exercises beyond the core; their points are counted separately
    for_lecture: {name: those of its points that an answer gets if it is right for the lecture}, for the exercises whose
        points are split; the others give points only to an answer that is right in every case
    late: the Deadline, if it is a time and not just a text; attempts: "last" or "best", the one that counts
    written: {title: possible points} for answers that the teacher reads, which the roster holds
    """

    points: dict = field(default_factory=dict)
    partial: bool = False
    pass_mark: float | None = None
    extended: frozenset = frozenset()
    title: str = ""
    deadline: str = ""
    for_lecture: dict = field(default_factory=dict)
    late: Deadline | None = None
    attempts: str = "last"
    written: dict = field(default_factory=dict)

    @property
    def exercises(self):
        return [all_exercises()[name] for name in self.points]

    def parts_of(self, name):
        """The Parts of an exercise: one, or two if its points are split."""
        if name not in self.for_lecture:
            return [Part(name, self.points[name], name in self.extended)]
        core = self.for_lecture[name]
        rest = round(self.points[name] - core, 9)  # 0.2, not 0.19999999999999996
        return [Part(name, core, False, "core")] + ([Part(name, rest, True, "rest")] if rest else [])

    @cached_property
    def parts(self):
        return [part for name in self.points for part in self.parts_of(name)]

    def worth(self, name):
        """The points of an exercise in words; "" if every exercise of the course counts 1."""
        points = self.points[name]
        return "" if {*self.points.values()} == {1} else f"{points:g} point{'s'[: points != 1]}"

    @property
    def has_extended(self):
        return any(part.extended for part in self.parts)

    @property
    def possible(self):
        """The points of the core and of written answers."""
        return math.fsum([*(part.worth for part in self.parts if not part.extended), *self.written.values()])

    @property
    def possible_extended(self):
        return math.fsum(part.worth for part in self.parts if part.extended)

    def in_zone(self, time):
        """A local time in the zone of the deadline, if this has one."""
        return time.astimezone(self.late.zone) if self.late and self.late.zone else time

    def shown(self, time):
        return shown(self.in_zone(time))

    def points_for(self, part, verdict):
        """The points of an answer with this verdict for a part."""
        if part.is_right(verdict):
            return part.worth
        if not self.partial or part.of == "rest":
            return 0.0
        of_core = part.of == "core" and verdict.core_share is not None
        return part.worth * (verdict.core_share if of_core else verdict.share)


@contextmanager
def opened(path=None, folder=None, seconds=SECONDS):
    """Inside the block, the exercises of a course are found by name; yields the Course.

    path: the course's file; None for all exercises. folder: a teacher's exercises, instead of the folder in the file
    seconds: the time limit of each file of the teacher's
    """
    if folder is None and path is not None:
        folder = folder_in(path)
    with exercises_in(folder, TimeLimit(seconds, ends_process=True)):
        yield course_at(path)


@contextmanager
def exercises_of(folder=".", limit=None):
    """Inside the block, the exercises that the course.toml in a student's folder names are found, unless a teacher's
    folder is in use already. limit: a TimeLimit for each file of the teacher's. Yields the path of the file, or None"""
    path = None if own_folder() else beside(folder)
    with nullcontext() if path is None else exercises_in(folder_in(path), limit):
        yield path


def beside(file):
    """The course.toml beside a student's file or in a student's folder, or None."""
    path = (Path(file) if Path(file).is_dir() else Path(file).parent) / FILE
    return path if path.exists() else None


def course_at(path):
    """The Course in a TOML file. Without one: all exercises, or those of a teacher's folder if there is one, each for 1
    point. CourseError with the line if the file cannot be used."""
    return parse_course("" if path is None else text_of(path), path)


def folder_in(path):
    """The folder of exercises that the file of a course names, or None. Of a copy that was released to students it is
    that of the originals where they are: what the teacher corrects afterwards counts."""
    table = _table(text_of(path), path)
    for key in ("released_from", "folder"):
        folder = table.get(key)
        if isinstance(folder, str) and (key == "folder" or (Path(path).parent / folder).is_dir()):
            return Path(path).parent / folder
    return None


def written(names):
    """The text of a course file with these exercises."""
    lines = ["# The exercises that check and status show.", "exercises = ["]
    return "\n".join([*lines, *(f"    {json.dumps(name, ensure_ascii=False)}," for name in names), "]", ""])


def released(text, to, folder):
    """The text of a course file in the folder `to`, beside a copy of the exercises of a teacher's folder."""
    text = re.sub(r"^[ \t]*(folder|released_from)[ \t]*=.*\n", "", text, flags=re.MULTILINE)
    if folder is None:
        return text
    origin = os.path.relpath(folder, to).replace(os.sep, "/")
    quoted = json.dumps(origin, ensure_ascii=False)
    line = f"released_from = {quoted}  # the originals, which count where they are\n" if origin != OWN else ""
    return f'folder = "{OWN}"\n{line}{text}'


def text_of(path):
    """The text of the file of a course, without the byte order mark that some editors begin it with."""
    try:
        return read_bytes(path, "the TOML file of a course").decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise CourseError(f"{path} is not UTF-8") from None


def _table(text, path):
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise CourseError(f"{path} is not TOML: {error}") from None


def parse_course(text, path="the course"):
    """The Course in the text of a TOML file. Raises CourseError with path and line for a bad setting."""
    return _Settings(text, path).course()


class _Settings:
    """The table in the text of a course's file, of which each setting is checked when it is read."""

    def __init__(self, text, path):
        self.text, self.path, self.table = text, path, _table(text, path)

    def fail(self, key, message):
        """Raise CourseError with the last line of a key or of a name in a list: [points] comes after the list."""
        word, lines = rf"(?<![\w-]){re.escape(key)}(?![\w-])", enumerate(self.text.split("\n"), 1)
        found = [number for number, line in lines if re.search(word, line.partition("#")[0])]
        raise CourseError(f"{self.path}{f', line {found[-1]}' if found else ''}: {message}")

    def course(self):
        self._check_keys()
        due, shown_as = self._deadline()
        late = self._late(due) | {"zone": getattr(self.table.get("deadline"), "tzinfo", None)}
        names = self._names("exercises", list(own_exercises() or all_exercises()))
        extended = self._names("extended", [])
        for name in extended:
            if name not in names:
                self.fail("extended", f"{name} is extended, but not in exercises")
        points, for_lecture = self._points(names, extended)
        given = {key: self.table[key] for key in ("partial", "pass_mark", "title", "attempts") if key in self.table}
        given |= {"deadline": shown_as, "late": Deadline(due, **late) if due else None, "for_lecture": for_lecture}
        course = Course(points, extended=frozenset(extended), **given)
        if not course.possible:
            what = "no exercise of the core gives points" if course.has_extended else "no exercise gives points"
            self.fail("points", what)
        return course

    def _check_keys(self):
        known = (*_PLAIN, "deadline", "late", "exercises", "extended", "points")
        for key, value in self.table.items():
            if key not in known:
                advice = "".join(f"; did you mean {near}?" for near in get_close_matches(key, known, n=1))
                self.fail(key, f"there is no setting {key!r}{advice or '; the settings are ' + ', '.join(known)}")
            words, is_right = _PLAIN.get(key, ("", lambda value: True))
            if not is_right(value):
                self.fail(key, f"{key} must be {words}, got {value!r}")

    def _deadline(self):
        """(the deadline as a time or None, as a text)"""
        deadline = self.table.get("deadline", "")
        if isinstance(deadline, str):
            return None, deadline
        if not isinstance(deadline, datetime):
            self.fail("deadline", f"deadline must be a text in quotes or a time, 2026-06-12T12:00:00, got {deadline}")
        try:
            return possible(deadline), shown(deadline)
        except (ValueError, OverflowError, OSError) as error:
            self.fail("deadline", f"nobody can hand in at the deadline {deadline}: {error}")

    def _late(self, due):
        late = self.table.get("late", {})
        if "late" in self.table and due is None:
            self.fail("late", "[late] needs a deadline that is a time, deadline = 2026-06-12T12:00:00")
        for key, value in late.items() if isinstance(late, dict) else [("late", late)]:
            words, most = KEYS.get(key, ("", 0))
            if not words:
                self.fail(key, f"[late] has the settings {', '.join(KEYS)}, got {key!r}")
            if not _is_number(value) or not 0 <= value <= most or (key == "most_days" and value != int(value)):
                self.fail(key, f"{key} must be {words}, got {value!r}")
        return late

    def _names(self, key, default):
        """The names that a list of names and chapters stands for."""
        words, names = self.table.get(key), []
        if words is None:
            return default
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            self.fail(key, f"{key} must be a list of names, got {words!r}")
        for word in words:
            try:
                meant = [exercise.name for exercise in chosen(word)]
            except ValueError as error:
                self.fail(word, str(error))
            if twice := [name for name in meant if name in names]:
                self.fail(word, f"{key} names {twice[0]} twice")
            names += meant
        return names

    def _points(self, names, extended):
        """(points, for_lecture) of a Course"""
        said, core = self.table.get("points", {}), self.table.get("core")
        if not isinstance(said, dict):
            self.fail("points", f"points must be a table, [points], got {said!r}")
        for name, value in said.items():
            self._check_points(name, value, names, extended)
        points, for_lecture = {}, {}
        for name in (name for name in all_exercises() if name in names):
            worth = said.get(name, 1)
            if isinstance(worth, dict):
                for_lecture[name] = float(worth.get("core", 0))
                worth = for_lecture[name] + worth.get("extended", 0)
            elif core is not None and name not in extended:
                for_lecture[name] = float(round(core * worth, 9))  # 2.4, not 2.4000000000000004
            points[name] = float(round(worth, 9))
        return points, for_lecture

    def _check_points(self, name, value, names, extended):
        if name not in all_exercises():
            near = get_close_matches(name, all_exercises(), n=1, cutoff=0.4)
            self.fail(name, f"there is no exercise {name!r}" + "".join(f"; did you mean {n}?" for n in near))
        if name not in names:
            self.fail(name, f"points for {name}, but {name} is not in exercises")
        if isinstance(value, dict) and name in extended:
            self.fail(name, f"{name} is extended, so all its points are: give it a number, got {value!r}")
        if isinstance(value, dict) and not (value and set(value) <= {"core", "extended"}):
            self.fail(name, f"the points for {name} must be a number or {{ core = 3, extended = 1 }}, got {value!r}")
        for number in value.values() if isinstance(value, dict) else [value]:
            if not _is_number(number) or not 0 <= number < math.inf:
                self.fail(name, f"the points for {name} must be a number, 0 or more, got {number!r}")


def _is_text(value):
    return isinstance(value, str)


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


_PLAIN = {  # setting: what it must be, in words, and whether a value is that
    "title": ("a text in quotes", _is_text),
    "attempts": ('"best" or "last"', lambda value: value in ("best", "last")),
    "folder": ("a text in quotes", _is_text),
    "released_from": ("a text in quotes", _is_text),
    "partial": ("true or false", lambda value: isinstance(value, bool)),
    "core": ("a number in 0 … 1, the share of the points for the lecture", lambda v: _is_number(v) and 0 <= v <= 1),
    "pass_mark": ("a number in 0 … 100", lambda value: _is_number(value) and 0 <= value <= 100),
}
