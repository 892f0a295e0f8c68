"""The files of a folder of submissions: who handed in which. Links are never followed."""

import hashlib
import json
import os
import re
import stat
import unicodedata
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from ..homework.path import own_folder
from .sandbox.wire import CELL, one_line

ENDINGS = (".py", ".ipynb")
MOST_BYTES = 1 << 20  # of one file
MOST_NOTEBOOK = 16 << 20  # of a notebook, whose outputs hold pictures
MOST_FILES, MOST_TOTAL = 100, 8 << 20  # files and bytes of one submission
MOST_ENTRIES = 10_000  # files and folders of any kind in one submission


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
    return any(path.name.endswith(ENDINGS) or problem for path, problem in _walk(entry.path))


def _stem(name):
    return next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)


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
                linked = entry.is_symlink() and (entry.name.endswith(ENDINGS) or not entry.is_file())
                yield Path(entry.path), "it is a link" if linked else ""
        waiting += reversed(folders)


def read_submission(student, path):
    """A HandedIn. Links, special files and files beyond the limits are skipped with a remark."""
    if path.is_dir() and not path.is_symlink():
        root, found = path, _walk(path)
    else:
        root, found = path.parent, [(path, "it is a link" if path.is_symlink() else "")]
    files, remarks, total = {}, [], 0
    of_teacher = {one.read_bytes() for one in own_folder().glob("*.py")} if own_folder() else ()
    for file, problem in found:
        if not problem and not file.name.endswith(ENDINGS):
            continue
        if len(files) + len(remarks) >= MOST_FILES:
            remarks.append(f"only the first {MOST_FILES} files were read")
            break
        relative = file.relative_to(root).as_posix()
        name = re.sub(r"[^ -~]", lambda sign: sign[0] if sign[0].isprintable() else "_", relative)
        try:
            if problem:
                raise ValueError(problem)
            content = content_of(file)
            if content in of_teacher:  # exercises that came along with a notebook
                continue
            if name in files:
                raise ValueError("another file has the same name but for characters that cannot be printed")
            total += len(content)
            if total > MOST_TOTAL:
                raise ValueError(f"all files together are larger than {MOST_TOTAL >> 20} MiB")
            files[name] = content
        except (OSError, ValueError) as error:
            remarks.append(one_line(f"{name} was skipped: {getattr(error, 'strerror', None) or error}", 300))
    return HandedIn(student, path, files, tuple(remarks))


def content_of(path):
    """The bytes of a file, or the code of a notebook. OSError or ValueError if it cannot be graded: a link, a pipe, too
    large."""
    kind = os.lstat(path)
    if stat.S_ISLNK(kind.st_mode):
        raise ValueError("it is a link")
    if not stat.S_ISREG(kind.st_mode):
        raise ValueError("it is not a regular file")
    most = MOST_NOTEBOOK if path.name.endswith(".ipynb") else MOST_BYTES
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it is larger than {most >> 20} MiB")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or content[:200].count(0) > len(content[:200]) // 3:
        raise ValueError("it is UTF-16; save it as UTF-8 and hand it in again")
    if path.name.endswith(".ipynb"):
        content = code_of(content)
        if len(content) > MOST_BYTES:
            raise ValueError(f"its code is larger than {MOST_BYTES >> 20} MiB")
    return content


def code_of(notebook):
    """The code of a notebook, each cell below a line `# In [3]:`. Magics and shell commands become comments. ValueError
    if it is not a notebook."""
    try:
        cells = json.loads(notebook)["cells"]
        codes = [cell["source"] for cell in cells if cell["cell_type"] == "code" and not _is_test(cell)]
        texts = [code if isinstance(code, str) else "".join(code) for code in codes]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("it is not a notebook") from None
    return "\n".join(f"{CELL.format(n)}\n{_plain_python(text)}" for n, text in enumerate(texts, 1)).encode(
        "utf-8", "replace"
    )


def _is_test(cell):
    """Whether a cell is a test of nbgrader's, not the student's code."""
    about = cell.get("metadata", {}).get("nbgrader", {})
    return about.get("grade", False) and not about.get("solution", False)


def _plain_python(text):
    lines = text.splitlines()
    if lines and lines[0].startswith("%%") and not lines[0].startswith(("%%time", "%%capture")):
        return "\n".join(f"# {line}" for line in lines)  # another language, or a file to be written
    return "\n".join(re.sub(r"^(\s*)([%!].*|\?.*|[\w.]+\?\??)$", r"\1pass  # \2", line) for line in lines)


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
