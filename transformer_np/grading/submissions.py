"""The files of a folder of submissions: who handed in which. Links are never followed."""

import hashlib
import json
import os
import re
import stat
import unicodedata
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, count
from pathlib import Path

from ..homework.deadline import possible
from ..homework.path import own_folder
from .sandbox.wire import CELL, one_line

TIMESTAMP = "timestamp.txt"  # nbgrader writes it into the folder of an assignment
ENDINGS = (".py", ".ipynb")
MOST_BYTES = 1 << 20  # of one file
MOST_NOTEBOOK = 16 << 20  # of a notebook, whose outputs hold pictures
MOST_FILES, MOST_TOTAL = 100, 8 << 20  # files and bytes of one submission
MOST_ENTRIES = 10_000  # files and folders of any kind in one submission


@dataclass(frozen=True)
class Entry:
    """A file or folder among the submissions, as it is now.

    files: {relative name: bytes}; changed: {relative name: seconds since 1970}, with "" for the entry itself
    remarks: on what could not be read; said: the time of hand-in if something other than a file says it, by: what
    """

    name: str
    is_folder: bool
    files: dict = field(default_factory=dict)
    changed: dict = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    said: datetime | None = None
    by: str = ""


def find_submissions(folder, assignment="", none_is_fine=False):
    """The paths of every .py or .ipynb file, every folder with one, and every link that could be either, by name.

    assignment: the folder inside a student's folder that is graded. ValueError if there is no submission.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder; name a folder with one file or one folder per student")
    entries = [e for e in sorted(os.scandir(folder), key=lambda e: e.name) if not e.name.startswith((".", "__"))]
    found = [Path(entry.path) for entry in entries if _is_submission(entry)]
    if not found and not none_is_fine:
        raise ValueError(f"{folder} contains no submission: no .py or .ipynb file, and no folder with one")
    if assignment:
        found = [path for path in found if _is_folder(path / assignment)]
    if not found and not none_is_fine:
        raise ValueError(f"{folder} contains no submission to {assignment}: no student has a folder of this name")
    return found


def read_entry(path, assignment=""):
    """The Entry at a path. Whatever a student's files do to the reader, it ends here, as a remark."""
    is_folder = False
    try:
        is_folder = not path.is_symlink() and path.is_dir()
        place = path / assignment if assignment and is_folder else path
        files, paths, remarks = read_submission(place)
        changed = {"": os.lstat(place).st_mtime} | {name: os.lstat(paths[name]).st_mtime for name in files}
        said, remark = _handed_in(place / TIMESTAMP) if assignment else (None, "")
        return Entry(path.name, is_folder, files, changed, (*remarks, *filter(None, [remark])), said, TIMESTAMP)
    except Exception as error:
        told = one_line(
            f"it could not be read: {getattr(error, 'strerror', None) or error or type(error).__name__}", 300
        )
        return Entry(path.name, is_folder, remarks=(told,))


def _handed_in(file):
    """(the time that nbgrader has written, a remark if it is no time)."""
    try:
        text = content_of(file)[:100].decode("utf-8", "replace")
    except (OSError, ValueError):
        return None, ""
    try:
        return possible(_parsed(text)), ""
    except (ValueError, OverflowError, OSError):
        return None, one_line(f"{TIMESTAMP} holds no possible time, {text!r}: the time of the files was taken", 300)


def _parsed(text):
    """The time in nbgrader's words, "2026-06-12 11:58:00.000000 UTC", or in another common form."""
    words = text.strip().removesuffix(" UTC")
    time = datetime.fromisoformat(words)
    return time if words == text.strip() else datetime.fromisoformat(f"{words}+00:00")


def students_of(entries):
    """{name of an entry: name of its student}; entries: {name: whether it is a folder}. All students' names are
    different, and printable on one line."""
    students = {}

    def order(name):
        """Those that are shown as they are come first, so that no other takes their name."""
        shown = _shown(_stem(name))
        return shown != _stem(name), _key(_stem(name)) != _stem(name), not entries[name], _stem(name), name

    for entry in sorted(entries, key=order):
        name = _shown(_stem(entry))
        names = chain((name, _shown(entry)), (f"{name} ({number})" for number in count(2)))
        students.setdefault(*next((_key(n), (entry, n)) for n in names if _key(n) not in students))
    return dict(students.values())


def skipped_entries(folder):
    """The names of the files and folders that are not submissions; hidden ones are left out."""
    found = {*find_submissions(folder, none_is_fine=True)}
    entries = sorted(Path(folder).iterdir())
    return [_shown(path.name) for path in entries if path not in found and not path.name.startswith(".")]


def _is_folder(path):
    """Whether a folder is at this path, or something that cannot be looked at, which gets a row that says so."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _is_submission(entry):
    if entry.name.endswith(ENDINGS):
        return True
    if entry.is_symlink():
        return not os.path.isfile(entry.path)  # to a folder, or to nothing
    if not _is_folder(entry.path):
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


def read_submission(path):
    """({relative name: bytes}, {relative name: Path}, remarks) of a file or a folder. Links, special files and files
    beyond the limits are skipped with a remark."""
    if path.is_dir() and not path.is_symlink():
        root, found = path, _walk(path)
    else:
        root, found = path.parent, [(path, "it is a link" if path.is_symlink() else "")]
    files, paths, remarks, total = {}, {}, [], 0
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
            files[name], paths[name] = content, file
        except (OSError, ValueError) as error:
            remarks.append(one_line(f"{name} was skipped: {getattr(error, 'strerror', None) or error}", 300))
    return files, paths, tuple(remarks)


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


def report_name(student):
    """A file name of its own for the report on a student: the student's name if possible."""
    name = re.sub(r"[^\w .+-]", "_", student, flags=re.ASCII)[:100].strip(" .")
    clear = name == student != "" and name.lower() not in ("overview", "run", "alike")
    if clear and not re.search(r"-[0-9a-f]{8}$|\.[0-9]+$", name):  # as the names below and of earlier versions end
        return name
    return f"{name}-{hashlib.sha256(student.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
