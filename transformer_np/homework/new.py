"""The file with which a teacher begins an exercise."""

import keyword
import shlex
from pathlib import Path

from ..support import files
from .path import all_exercises

_TEMPLATE = Path(__file__).with_name("new_exercise.txt")


def write_new(name, folder):
    """Write a file with an exercise that works; returns its path. ValueError if the name or the file cannot be used."""
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise ValueError(f"{name!r} cannot be the name of a function; for example rms_norm")
    if name in ("plain", "np", "Case", "Exercise", "Result", "draw_sizes"):
        raise ValueError(f"{name} is used in the file for something else; take another name")
    if name in all_exercises():
        raise ValueError(f"{name} is an exercise of the library; take another name")
    path, text = Path(folder) / f"{name}.py", _TEMPLATE.read_text(encoding="utf-8")
    files.write_new({path: text.format(name=name, folder=shlex.quote(Path(folder).as_posix()))})
    return path
