"""The rubric: a TOML file with the exercises that count and their points."""

import math
import re
import tomllib
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from ..path import all_exercises


class RubricError(ValueError):
    """A rubric cannot be used; the message names the line."""


@dataclass(frozen=True)
class Rubric:
    """points: {name of an exercise that counts: its points}; partial: points by the share of right cases
    pass_mark: percent, or None"""

    points: dict = field(default_factory=dict)
    partial: bool = False
    pass_mark: float | None = None

    @property
    def possible(self):
        return math.fsum(self.points.values())

    def points_for(self, verdict):
        """The points of an answer with this verdict."""
        share = 1.0 if verdict.passed else verdict.share if self.partial else 0.0
        return self.points[verdict.exercise] * share


def default_rubric():
    """Every exercise counts 1 point, all or nothing."""
    return Rubric(dict.fromkeys(all_exercises(), 1.0))


def read_rubric(path):
    """The rubric in a TOML file. RubricError with the line if it cannot be used."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise RubricError(f"{path} is not UTF-8") from None
    return parse_rubric(text, path)


def parse_rubric(text, path="the rubric"):
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RubricError(f"{path} is not TOML: {error}") from None

    def fail(key, message):
        raise RubricError(f"{path}{_line(text, key)}: {message}")

    known = ("partial", "pass_mark", "exercises", "points")
    for key in table:
        if key not in known:
            advice = "".join(f"; did you mean {near}?" for near in get_close_matches(key, known, n=1))
            fail(key, f"there is no setting {key!r}{advice or '; the settings are ' + ', '.join(known)}")
    partial = table.get("partial", False)
    if not isinstance(partial, bool):
        fail("partial", f"partial must be true or false, got {partial!r}")
    pass_mark = table.get("pass_mark")
    if pass_mark is not None and not (_is_number(pass_mark) and 0 <= pass_mark <= 100):
        fail("pass_mark", f"pass_mark must be a number in 0 … 100, got {pass_mark!r}")

    def exercise(name, key):
        if name not in all_exercises():
            near = get_close_matches(name, all_exercises(), n=1, cutoff=0.4)
            fail(key, f"there is no exercise {name!r}" + "".join(f"; did you mean {n}?" for n in near))
        return name

    names = table.get("exercises", list(all_exercises()))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        fail("exercises", f"exercises must be a list of names, got {names!r}")
    for name in names:
        exercise(name, name)
        if names.count(name) > 1:
            fail(name, f"exercises names {name} twice")
    points = table.get("points", {})
    if not isinstance(points, dict):
        fail("points", f"points must be a table, [points], got {points!r}")
    for name, value in points.items():
        exercise(name, name)
        if name not in names:
            fail(name, f"points for {name}, but {name} is not in exercises")
        if not _is_number(value) or not 0 <= value < math.inf:
            fail(name, f"the points for {name} must be a number, 0 or more, got {value!r}")
    counted = {name: float(points.get(name, 1)) for name in all_exercises() if name in names}
    if not math.fsum(counted.values()):
        fail("points", "no exercise gives points")
    return Rubric(counted, partial, None if pass_mark is None else float(pass_mark))


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _line(text, key):
    """ ", line 3": the line of a key or of a name in a list; the last one, because [points] comes after the list."""
    word = rf"(?<![\w-]){re.escape(key)}(?![\w-])"
    lines = [number for number, line in enumerate(text.splitlines(), 1) if re.search(word, line.partition("#")[0])]
    return f", line {lines[-1]}" if lines else ""
