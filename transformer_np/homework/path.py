"""All exercises, in the order of the notebooks.

Every file in sheets/ that has a list EXERCISES is a sheet. An exercise says which chapter it belongs to and where it
stands there; sheets/chapters.toml has the chapters in order.
"""

import tomllib
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path

_SHEETS = Path(__file__).parent / "sheets"


@cache
def all_exercises():
    """{name: Exercise}, in the order of the path."""
    modules = (import_module(f".sheets.{file.stem}", __package__) for file in sorted(_SHEETS.glob("*.py")))
    found = [exercise for module in modules for exercise in getattr(module, "EXERCISES", ())]
    exercises = {exercise.name: exercise for _, _, here in chapters(found) for exercise in here}
    if len(exercises) < len(found):
        names = [exercise.name for exercise in found]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"exercises that are in the sheets twice: {', '.join(twice)}")
    return exercises


def chapters(exercises):
    """(title, notebook, exercises) of every chapter that has some of these exercises, in the order of the path."""
    exercises, notebooks = list(exercises), _notebooks()
    for title in dict.fromkeys([*notebooks, *(exercise.chapter for exercise in exercises)]):
        here = [exercise for exercise in exercises if exercise.chapter == title]
        if here:
            yield title, notebooks.get(title, ""), sorted(here, key=lambda exercise: exercise.place)


@cache
def _notebooks():
    """{title of a chapter: its notebook}, in order."""
    return tomllib.loads((_SHEETS / "chapters.toml").read_text(encoding="utf-8"))["notebooks"]


def find(name):
    """The exercise with this name; case and underscores are ignored. ValueError with near names for others."""
    plain = {_plain(known): exercise for known, exercise in all_exercises().items()}
    if _plain(name) in plain:
        return plain[_plain(name)]
    raise ValueError(f"there is no exercise {name!r}{did_you_mean(_plain(name), plain, lambda near: plain[near].name)}")


def did_you_mean(word, known, shown=str):
    """The end of a sentence about an unknown word: "; did you mean softmax?"."""
    near = get_close_matches(word, known, n=1, cutoff=0.8)
    near = near or [one for one in known if len(word) > 2 and word in one][:3]
    near = near or get_close_matches(word, known, n=3, cutoff=0.5)
    if not near:
        return "; `transformer-np homework list` shows all"
    *first, last = map(shown, near)
    return f"; did you mean {', '.join(first)}{' or ' if first else ''}{last}?"


def _plain(name):
    return name.lower().replace("_", "").replace("-", "")
