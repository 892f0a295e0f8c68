"""The files of a folder of submissions: who handed in which. Links are never followed."""

import hashlib
import json
import os
import re
import stat
import unicodedata
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, count
from pathlib import Path

from ..homework.course import FILE, OWN
from ..homework.deadline import possible
from ..homework.handin import content_of, hand_in, may_answer, stem, walk
from .sandbox.wire import one_line

TIMESTAMP = "timestamp.txt"  # nbgrader writes it into the folder of an assignment
METADATA = "submission_metadata.json"  # Gradescope writes it beside the folder of the submission


@dataclass(frozen=True)
class Entry:
    """A file or folder among the submissions, as it is now.

    entry: its name; files: {relative name: bytes}
    changed: {relative name: seconds since 1970} by the file system, with "" for the entry itself
    remarks: on what could not be read
    said: the time of hand-in if something other than a file says it, with the zone that it says; by: what
    """

    entry: str
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
    entries = [e for e in sorted(os.scandir(folder), key=lambda e: e.name) if not _is_no_ones(e)]
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
        files, paths, remarks = hand_in(place)
        changed = {"": os.lstat(place).st_mtime} | {name: os.lstat(file).st_mtime for name, file in paths.items()}
        said, remark = _handed_in(place / TIMESTAMP) if assignment else (None, "")
        remarks = tuple(one_line(text, 300) for text in filter(None, [*remarks, remark]))
        return Entry(path.name, is_folder, files, changed, remarks, said, TIMESTAMP if said else "")
    except Exception as error:
        told = one_line(
            f"it could not be read: {getattr(error, 'strerror', None) or error or type(error).__name__}", 300
        )
        return Entry(path.name, is_folder, remarks=(told,))


def _handed_in(file):
    """(the time that nbgrader has written, "2026-06-12 11:58:00.000000 UTC", a remark if it is no time)."""
    try:
        text = content_of(file)[:100].decode("utf-8", "replace")
    except (OSError, ValueError):
        return None, ""
    try:
        time = datetime.fromisoformat(re.sub(" UTC$", "+00:00", text.strip()))
        possible(time)
        return time, ""
    except (ValueError, OverflowError, OSError):
        return None, one_line(
            f"{TIMESTAMP} holds no possible time, {text.strip()!r}: the time of the files was taken", 300
        )


def with_metadata(entry, folder):
    """The Entry of a folder that is one submission to Gradescope, with the time that Gradescope says."""
    try:
        about = json.loads((folder.parent / METADATA).read_bytes())
        return replace(entry, said=possible(datetime.fromisoformat(about["created_at"])), by=METADATA)
    except FileNotFoundError:
        return entry
    except (OSError, ValueError, OverflowError, KeyError, TypeError, RecursionError):
        remark = f"{METADATA} holds no possible time: the time of the files was taken"
        return replace(entry, remarks=(*entry.remarks, remark))


def students_of(entries):
    """{name of an entry: name of its student}; entries: {name: whether it is a folder}. All students' names are
    different, and printable on one line."""
    students = {}

    def order(name):
        """Those that are shown as they are come first, so that no other takes their name."""
        shown = _shown(stem(name))
        return shown != stem(name), _key(stem(name)) != stem(name), not entries[name], stem(name), name

    for entry in sorted(entries, key=order):
        name = _shown(stem(entry))
        names = chain((name, _shown(entry)), (f"{name} ({number})" for number in count(2)))
        students.setdefault(*next((_key(n), (entry, n)) for n in names if _key(n) not in students))
    return dict(students.values())


def skipped_entries(folder):
    """The names of the files and folders that are not submissions; hidden ones are left out."""
    found = {*find_submissions(folder, none_is_fine=True)}
    entries = sorted(Path(folder).iterdir())
    return [_shown(path.name) for path in entries if path not in found and not _is_no_ones(path)]


def _is_no_ones(entry):
    """Whether a file or folder is hidden, a cache, or of a folder as the teacher has handed it out: nobody's work."""
    beside = Path(entry).parent / FILE
    return entry.name.startswith((".", "__")) or (entry.name in (FILE, OWN) and beside.exists())


def _is_folder(path):
    """Whether a folder is at this path, or something that cannot be looked at, which gets a row that says so."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _is_submission(entry):
    """Whether a file or folder gets a row; one that cannot be looked at gets a row that says so."""
    try:
        if may_answer(entry.name):
            return True
        if entry.is_symlink():
            return not os.path.isfile(entry.path)  # to a folder, or to nothing
        return entry.is_dir() and any(may_answer(path.name) or problem for path, problem in walk(entry.path))
    except OSError:
        return True


def _shown(name):
    """The name of a file on one printable line."""
    return one_line(os.fsencode(name).decode("utf-8", "backslashreplace"), 200) or "(no name)"


def _key(student):
    """Equal for names that look the same in the table."""
    return unicodedata.normalize("NFKC", student).casefold().lstrip("'")


def report_name(student):
    """A file name of its own for the report on a student: the student's name if possible."""
    name = re.sub(r"[^\w .+-]", "_", unicodedata.normalize("NFC", student)).encode()[:100].decode(errors="ignore")
    name = name.strip(" .")
    clear = name == student != "" and name.lower() not in ("overview", "run", "alike")
    if clear and not re.search(r"-[0-9a-f]{8}$|\.[0-9]+$", name):  # as the names below and of earlier versions end
        return name
    return f"{name}-{hashlib.sha256(student.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
