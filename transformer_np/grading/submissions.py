"""The files of a folder of submissions: who handed in which. Links are never followed."""

import hashlib
import os
import re
import unicodedata
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from ..homework.handin import ENDINGS, hand_in, walk
from .sandbox.wire import one_line


@dataclass(frozen=True)
class HandedIn:
    """student: the name of the file or folder; files: {relative name: bytes}; remarks: files that were skipped"""

    student: str
    path: Path
    files: dict
    remarks: tuple[str, ...] = ()


def find_submissions(folder, none_is_fine=False):
    """[(student, path)] for every .py or .ipynb file, every folder with one, and every link that could be either.

    Sorted by name. All names are different, and printable on one line. ValueError if there is no submission.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder; name a folder with one file or one folder per student")
    entries = [e for e in sorted(os.scandir(folder), key=lambda e: e.name) if not e.name.startswith((".", "__"))]
    found = [Path(entry.path) for entry in entries if _is_submission(entry)]
    if not found and not none_is_fine:
        raise ValueError(f"{folder} contains no submission: no .py or .ipynb file, and no folder with one")
    students = {}
    for path in sorted(found, key=_changed):
        name = _shown(_stem(path.name))
        names = chain((name, _shown(path.name)), (f"{name} ({number})" for number in count(2)))
        students.setdefault(*next((_key(n), (n, path)) for n in names if _key(n) not in students))
    return sorted(students.values(), key=lambda submission: found.index(submission[1]))


def skipped_entries(folder):
    """The names of the files and folders that are not submissions; hidden ones are left out."""
    found = {path for _, path in find_submissions(folder)}
    entries = sorted(Path(folder).iterdir())
    return [_shown(path.name) for path in entries if path not in found and not path.name.startswith(".")]


def _changed(path):
    """Orders the names: those that are shown as they are come first, so that no other takes them."""
    name = _stem(path.name)
    return _shown(name) != name, _key(name) != name, path.is_file(), name


def _is_submission(entry):
    if entry.name.endswith(ENDINGS):
        return True
    if entry.is_symlink():
        return not entry.is_file()  # to a folder, or to nothing
    if not entry.is_dir():
        return False
    # an unreadable folder, or one with a link, gets a row that says so
    return any(path.name.endswith(ENDINGS) or problem for path, problem in walk(entry.path))


def _stem(name):
    return next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)


def _shown(name):
    """The name of a file on one printable line."""
    return one_line(os.fsencode(name).decode("utf-8", "backslashreplace"), 200) or "(no name)"


def _key(student):
    """Equal for names that look the same in the table."""
    return unicodedata.normalize("NFKC", student).casefold().lstrip("'")


def read_submission(student, path):
    """A HandedIn. Links, special files and files beyond the limits are skipped with a remark."""
    found = hand_in(path)
    return HandedIn(student, path, found.files, tuple(one_line(remark, 300) for remark in found.remarks))


def has_notebook(path):
    if not path.is_dir() or path.is_symlink():
        return path.name.endswith(".ipynb")
    return any(file.name.endswith(".ipynb") and not problem for file, problem in walk(path))


def report_name(path):
    """A file name of its own for the report on a submission: the student's name if possible."""
    student = _stem(path.name)
    name = re.sub(r"[^\w .+-]", "_", student, flags=re.ASCII)[:100].strip(" .")
    clear = (
        name == student != ""
        and name.lower() not in ("overview", "run", "alike")
        and not re.search(r"-[0-9a-f]{8}$|\.[0-9]+$", name)  # as the names below and of earlier versions end
        and not (path.suffix in ENDINGS and os.path.lexists(path.with_suffix("")))
        and not (path.suffix == ".ipynb" and os.path.lexists(path.with_suffix(".py")))
    )
    return name if clear else f"{name}-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]}"
