"""All exercises, in the order of the notebooks.

Every file in sheets/ that has a list EXERCISES is a sheet; sheets/chapters.toml has the chapters in order, and the
place of an exercise in its chapter. A teacher's folder can add such files, whose exercises say both themselves.
"""

import hashlib
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path

from .own import ExercisesError, behind, forget, loaded
from .sheets.sheet import chapters_of_library

_SHEETS = Path(__file__).parent / "sheets"
# a teacher's folder, the exercises in it, {name: file} of them, and all exercises with them
_folder, _own, _files, _all = None, {}, {}, None


def all_exercises():
    """{name: Exercise}, in the order of the path."""
    return _of_library() if _all is None else _all


@cache
def _of_library():
    modules = [import_module(f".sheets.{file.stem}", __package__) for file in sorted(_SHEETS.glob("*.py"))]
    return _in_order([exercise for module in modules for exercise in getattr(module, "EXERCISES", ())])


def _in_order(found):
    """{name: Exercise} of these exercises, sorted."""
    return {exercise.name: exercise for _, _, here in chapters(found) for exercise in here}


def chapters(exercises):
    """(title, notebook, exercises) of every chapter that has some of these exercises, in the order of the path.

    The notebook of a teacher's chapter is "".
    """
    exercises, known = list(exercises), chapters_of_library()
    for title in dict.fromkeys([*known, *(exercise.chapter for exercise in exercises)]):
        here = [exercise for exercise in exercises if exercise.chapter == title]
        if here:
            notebook = known[title]["notebook"] if title in known else ""
            yield title, notebook, sorted(here, key=lambda exercise: exercise.place)


def chapter_line(title, notebook):
    """A chapter as a heading."""
    return f"{title or 'Exercises'} (notebook {notebook})" if notebook else title or "Exercises"


# --- a teacher's exercises -------------------------------------------------------------------------------------------


@contextmanager
def exercises_in(folder, limit=None):
    """Inside the block, the exercises of a folder are added to the library's, and replace those with the same names.

    folder: with files that have a list EXERCISES; None for the library's alone; limit: a TimeLimit for each file.
    Raises ExercisesError, with the file and the line, if a file cannot be used or none has exercises.
    """
    before = _folder
    try:
        use_exercises(folder, limit)
        yield
    finally:
        use_exercises(before)


def use_exercises(folder, limit=None):
    """As `exercises_in`, until the next call."""
    global _folder, _own, _files, _all
    forget()
    _folder, _own, _files, _all = None, {}, {}, None
    if folder is None:
        return
    found = loaded(Path(folder).resolve(), limit)
    own = _in_order(exercise for exercise, _ in found)
    if not own:
        raise ExercisesError(
            f"{folder} has no exercises: no .py file in it has a list EXERCISES with one. "
            f"`transformer-np homework new NAME --in {folder}` writes the first"
        )
    _folder, _own, _all = Path(folder).resolve(), own, _in_order((_of_library() | own).values())
    _files = {exercise.name: file for exercise, file in found}


def own_folder():
    """The teacher's folder in use, or None."""
    return _folder


def own_exercises():
    """{name: Exercise} of the teacher's folder in use; empty without one."""
    return _own


def own_files(names):
    """{name relative to the teacher's folder: bytes} of all that the teacher's exercises among these names need."""
    return behind([_files[name] for name in names if name in _files], _folder)


def definition_of(name):
    """A hash of the teacher's files that define an exercise. "" for an exercise of the library."""
    files = [file.encode() + content for file, content in sorted(own_files([name]).items())]
    return hashlib.sha256(b"\0".join(files)).hexdigest() if files else ""


# --- names -----------------------------------------------------------------------------------------------------------


def find(name):
    """The exercise with this name; case and underscores are ignored. Raises ValueError with similar names if none."""
    known = {plain(one): exercise for one, exercise in all_exercises().items()}
    if plain(name) in known:
        return known[plain(name)]
    where = f" in {_folder} or in the library" if _folder else ""  # beside a released copy, the originals
    raise ValueError(f"there is no exercise {name!r}{where}{_did_you_mean(plain(name), known)}")


def chosen(word):
    """The exercises that a word stands for: the number of a notebook, the title of a chapter or a name."""
    known = list(chapters(all_exercises().values()))
    for title, _, here in known:
        if plain(word) == plain(title):
            return here
    if word.isdecimal():
        here = [exercise for _, notebook, here in known if notebook == word.zfill(2) for exercise in here]
        if not here:
            raise ValueError(f"there are no exercises of notebook {word}; `transformer-np homework list` shows all")
        return here
    return [find(word)]


def _did_you_mean(word, known):
    """The end of a sentence about an unknown name: "; did you mean softmax?"."""
    near = get_close_matches(word, known, n=1, cutoff=0.8)
    near = near or [one for one in known if len(word) > 2 and word in one][:3]
    near = near or get_close_matches(word, known, n=3, cutoff=0.5)
    if not near:
        return "; `transformer-np homework list` shows all"
    *first, last = (known[one].name for one in near)
    return f"; did you mean {', '.join(first)}{' or ' if first else ''}{last}?"


def plain(name):
    """Equal for names that differ in case and underscores alone."""
    return name.lower().replace("_", "").replace("-", "")
