"""The files of a folder of submissions: who handed in which. Links are never followed."""

import hashlib
import os
import re
import stat
import unicodedata
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from .sandbox.wire import one_line

MOST_BYTES = 1 << 20  # of one file
MOST_FILES, MOST_TOTAL = 100, 8 << 20  # files and bytes of one submission
MOST_ENTRIES = 10_000  # files and folders of any kind in one submission


@dataclass(frozen=True)
class HandedIn:
    """student: the name of the file or folder; files: {relative name: bytes}; remarks: files that were skipped"""

    student: str
    path: Path
    files: dict
    remarks: tuple[str, ...] = ()


def find_submissions(folder):
    """[(student, path)] for every .py file, every folder with one, and every link that could be either, sorted by name.

    All names are different, and printable on one line. ValueError if there is no submission.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder; name a folder with one file or one folder per student")
    entries = [e for e in sorted(os.scandir(folder), key=lambda e: e.name) if not e.name.startswith((".", "__"))]
    found = [Path(entry.path) for entry in entries if _is_submission(entry)]
    if not found:
        raise ValueError(f"{folder} contains no submission: neither a .py file nor a folder with .py files")
    students = {}
    for path in sorted(found, key=_changed):
        name = _shown(path.name.removesuffix(".py"))
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
    name = path.name.removesuffix(".py")
    return _shown(name) != name, _key(name) != name, path.is_file(), name


def _is_submission(entry):
    if entry.name.endswith(".py"):
        return True
    if entry.is_symlink():
        return not entry.is_file()  # to a folder, or to nothing
    if not entry.is_dir():
        return False
    # an unreadable folder, or one with a link, gets a row that says so
    return any(path.name.endswith(".py") or problem for path, problem in _walk(entry.path))


def _shown(name):
    """The name of a file on one printable line."""
    return one_line(os.fsencode(name).decode("utf-8", "backslashreplace"), 200) or "(no name)"


def _key(student):
    """Equal for names that look the same in the table."""
    return unicodedata.normalize("NFKC", student).casefold().lstrip("'")


def _walk(folder):
    """(path, "" or why it is skipped) of the files and links in a folder, the first MOST_ENTRIES."""
    left, waiting = MOST_ENTRIES, [Path(folder)]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(place) as entries:
                entries = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            yield place, error.strerror or "it cannot be read"
            continue
        folders = []
        for entry in entries:
            left -= 1
            if left < 0:
                yield place, f"there are more than {MOST_ENTRIES} files and folders"
                return
            if entry.name.startswith((".", "__pycache__")):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            else:
                linked = entry.is_symlink() and (entry.name.endswith(".py") or not entry.is_file())
                yield Path(entry.path), "it is a link" if linked else ""
        waiting += reversed(folders)


def read_submission(student, path):
    """A HandedIn. Links, special files and files beyond the limits are skipped with a remark."""
    if path.is_dir() and not path.is_symlink():
        root, found = path, _walk(path)
    else:
        root, found = path.parent, [(path, "it is a link" if path.is_symlink() else "")]
    files, remarks, total = {}, [], 0
    for file, problem in found:
        if not problem and not file.name.endswith(".py"):
            continue
        if len(files) + len(remarks) >= MOST_FILES:
            remarks.append(f"only the first {MOST_FILES} files were read")
            break
        relative = file.relative_to(root).as_posix()
        name = re.sub(r"[^ -~]", lambda sign: sign[0] if sign[0].isprintable() else "_", relative)
        try:
            if problem:
                raise ValueError(problem)
            content = _content(file)
            if name in files:
                raise ValueError("another file has the same name but for characters that cannot be printed")
            total += len(content)
            if total > MOST_TOTAL:
                raise ValueError(f"all files together are larger than {MOST_TOTAL >> 20} MiB")
            files[name] = content
        except (OSError, ValueError) as error:
            remarks.append(one_line(f"{name} was skipped: {getattr(error, 'strerror', None) or error}", 300))
    return HandedIn(student, path, files, tuple(remarks))


def _content(path):
    kind = os.lstat(path)
    if stat.S_ISLNK(kind.st_mode):
        raise ValueError("it is a link")
    if not stat.S_ISREG(kind.st_mode):
        raise ValueError("it is not a regular file")
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB")
    return content


def report_name(path):
    """A file name of its own for the report on a submission: the student's name if possible."""
    student = path.name.removesuffix(".py")
    name = re.sub(r"[^\w .+-]", "_", student, flags=re.ASCII)[:100].strip(" .")
    clear = (
        name == student
        and name.lower() not in ("overview", "run")
        and not re.search(r"-[0-9a-f]{8}$", name)  # as the names below end
        and not (path.suffix == ".py" and os.path.lexists(path.with_suffix("")))
    )
    return name if clear else f"{name}-{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]}"
