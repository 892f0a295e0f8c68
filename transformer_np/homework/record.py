"""The record of a student's solved exercises: one file in the student's folder, written by every check there.

`transformer-np start` creates progress.json. In its folder, `check` in a notebook and the commands `homework check` and
`homework status` add their verdicts. Without the file nothing is recorded.
"""

import json
from pathlib import Path

from ..support.counts import counted
from ..support.files import read_json, write_text
from .course import course_at, exercises_of
from .path import chapters

FILE = "progress.json"
EMPTY = "{}\n"
NOTEBOOK = "notebook"
_WIDTH = 24  # characters of the bar


def read(folder="."):
    """{name of an exercise: {"outcome", "misconception", "where"}} of the last verdicts in a folder; {} without a file.

    Raises ValueError for a damaged file.
    """
    path = Path(folder) / FILE
    if not path.exists():
        return {}
    entries = read_json(path)
    if not isinstance(entries, dict) or not all(isinstance(entry, dict) for entry in entries.values()):
        raise ValueError(f"{path} is damaged: it must be an object of verdicts. Delete it, or write {{}} into it")
    return entries


def note(verdicts, folder=".", where=NOTEBOOK):
    """Add verdicts to the file of a folder, if it has one. Returns all entries, or None without a file."""
    path = Path(folder) / FILE
    if not path.exists():
        return None
    before = read(folder)
    entries = noted(verdicts, before, where)
    if entries != before:
        write_text(path, json.dumps(entries, indent=1, ensure_ascii=False) + "\n")
    return entries


def noted(verdicts, entries, where=NOTEBOOK):
    """The entries with those of verdicts. An exercise that was right stays right, and one that is not started leaves no
    entry."""
    new = [one for one in verdicts if one.outcome != "not started" and not is_right(entries, one.exercise)]
    return entries | {
        one.exercise: {"outcome": one.outcome, "misconception": one.misconception, "where": where} for one in new
    }


def is_right(entries, name):
    return entries.get(name, {}).get("outcome") == "passed"


def by_chapter(entries, exercises):
    """{title of a chapter: (right, begun, all)} of these exercises, in the order of the path."""
    found = {}
    for title, _, here in chapters(exercises):
        names = [exercise.name for exercise in here]
        right = sum(is_right(entries, name) for name in names)
        found[title] = right, sum(name in entries for name in names) - right, len(names)
    return found


def bar(entries, course):
    """The share of a Course's exercises that are right as a line of text."""
    right, every = sum(is_right(entries, name) for name in course.points), len(course.points)
    full = -(-_WIDTH * right // every)  # rounded up: the first one shows
    return f"{'█' * full}{'░' * (_WIDTH - full)} {right} of {counted(every, 'exercise')} right"


def progress(folder="."):
    """A picture of the right answers in a student's folder, by chapter (`plots.progress`)."""
    from .. import plots

    with exercises_of(folder) as path:
        return plots.progress(by_chapter(read(folder), course_at(path).exercises))
