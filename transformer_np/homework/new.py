"""The file with which a teacher begins an exercise."""

import keyword
import shlex
from pathlib import Path

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
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    try:
        with open(path, "x", encoding="utf-8") as file:
            text = _TEMPLATE.read_text(encoding="utf-8")
            file.write(text.format(name=name, folder=shlex.quote(folder.as_posix())))
    except FileExistsError:
        raise ValueError(f"{path} already exists and was not overwritten") from None
    return path
