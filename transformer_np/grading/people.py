"""The people of a course and their attempts: which submission is whose, and when it was handed in."""

import csv
import os
import re
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from unicodedata import normalize

from ..homework.deadline import local
from ..homework.handin import content_of
from ..support.files import read_bytes
from .submissions import find_submissions

TIMESTAMP = "timestamp.txt"  # nbgrader writes it into the folder of an assignment
UNKNOWN = "not on the roster"
COLUMNS = ("id", "name", "path", "submitted")


class RosterError(ValueError):
    """A roster cannot be used; the message names the line."""


@dataclass(frozen=True)
class HandIn:
    """A submission. path: of the file or folder that names it; files: what is graded of it
    known_by: where its time comes from, "roster", "timestamp.txt" or "file"
    """

    path: Path
    files: Path
    when: datetime
    known_by: str


@dataclass
class Person:
    """student: the id, or the name of the file without a roster; attempts: HandIns, the earliest first
    remark: why it is not known who this is, or ""
    """

    student: str
    name: str = ""
    attempts: list = field(default_factory=list)
    remark: str = ""


def people(folder, roster=None, assignment=""):
    """A Person for each submission in the folder; with a roster, a CSV file, one for each of its people and for each
    submission of nobody among them. Raises RosterError.

    assignment: the folder inside a student's folder that is graded; the others are other assignments
    """
    found = find_submissions(folder, none_is_fine=roster is not None)
    if assignment:
        found = [(student, path) for student, path in found if (path / assignment).is_dir()]
    if not found and roster is None:
        raise ValueError(f"{folder} contains no submission to {assignment}: no student has a folder of this name")
    if roster is None:
        return [Person(student, attempts=[handed_in(path, assignment)]) for student, path in found]
    persons, others, rows = {}, [], _rows(roster)
    for _, row in rows:
        persons.setdefault(row["id"], Person(row["id"], row["name"]))
    for student, path in found:
        owners = [(line, row) for line, row in rows if _belongs(path.name, row, rows)]
        ids = list(dict.fromkeys(row["id"] for _, row in owners))
        if len(ids) == 1:
            line, row = owners[0]
            persons[ids[0]].attempts.append(handed_in(path, assignment, _time(row["submitted"], roster, line)))
        else:
            remark = f"could be from {' or '.join(ids)}: write a path for each into the roster" if ids else UNKNOWN
            others.append(Person(student, attempts=[handed_in(path, assignment)], remark=remark))
    for person in persons.values():
        person.attempts.sort(key=lambda attempt: (attempt.when, attempt.path.name))
    taken = {person.student.casefold() for person in persons.values()}
    for person in others:
        person.student += " (not on the roster)" if person.student.casefold() in taken else ""
    return [*persons.values(), *others]


# --- the roster ------------------------------------------------------------------------------------------------------


def _rows(roster):
    """[(line, {column: text})] of a roster."""
    content = read_bytes(roster, "the roster, a CSV file")
    try:
        lines = normalize("NFC", content.decode("utf-8-sig")).splitlines()
    except UnicodeDecodeError:
        raise RosterError(f"{roster} is not UTF-8") from None
    semicolons = bool(lines) and lines[0].count(";") > lines[0].count(",")
    reader = csv.reader(lines, delimiter=";" if semicolons else ",")
    head = [word.strip().casefold() for word in next(reader, [])]
    if "id" not in head:
        raise RosterError(f"{roster}, line 1: there is no column id; the columns are {', '.join(COLUMNS)}")
    rows = []
    for row in reader:
        cells = dict(zip(head, map(str.strip, row), strict=False))
        if any(cells.values()):
            if not cells.get("id"):
                raise RosterError(f"{roster}, line {reader.line_num}: the id is missing")
            rows.append((reader.line_num, {name: cells.get(name, "") for name in COLUMNS}))
    if not rows:
        raise RosterError(f"{roster} names nobody: write one line per student below the head")
    return rows


def _belongs(entry, row, rows):
    """Whether a file or folder belongs to the person of a row: by its pattern, or its name is or contains the id."""
    entry = normalize("NFC", entry)  # macOS takes letters and accents apart
    stem = re.sub(r"\.(py|ipynb)$", "", entry)
    if row["path"]:
        return any(fnmatchcase(text, row["path"].strip("/")) for text in (entry, stem))
    if any(other["path"] and fnmatchcase(entry, other["path"]) for _, other in rows):
        return False
    return any(word and _contains(stem, word) for word in (row["id"], row["name"]))


def _contains(text, word):
    """Whether a text has a word, not as a part of a longer one: ada in "ada-2" and "hw1_ada", not in "adam"."""
    return re.search(rf"(?<![^\W_]){re.escape(word.casefold())}(?![^\W_])", text.casefold()) is not None


def _time(text, roster, line):
    if not text:
        return None
    try:
        return local(datetime.fromisoformat(text))
    except ValueError:
        raise RosterError(
            f"{roster}, line {line}: submitted must be a time such as 2026-06-12T11:58, got {text!r}"
        ) from None


# --- the time --------------------------------------------------------------------------------------------------------


def handed_in(path, assignment="", said=None):
    files = path / assignment if assignment and not path.is_symlink() else path
    if said is not None:
        return HandIn(path, files, said, "roster")
    try:
        if assignment:  # otherwise a student may have written it
            text = content_of(files / TIMESTAMP)[:100].decode()
            return HandIn(path, files, local(_parsed(text)), TIMESTAMP)
    except (OSError, ValueError):
        pass
    return HandIn(path, files, datetime.fromtimestamp(_last_change(files)), "file")


def _parsed(text):
    """The time in nbgrader's words, "2026-06-12 11:58:00.000000 UTC", or in another common form."""
    words = text.strip().removesuffix(" UTC")
    time = datetime.fromisoformat(words)
    return time.astimezone() if words == text.strip() else datetime.fromisoformat(f"{words}+00:00")


def _last_change(path):
    """When a file, or the last of a folder's files, was changed."""
    files = [entry.path for entry in os.scandir(path)] if path.is_dir() and not path.is_symlink() else []
    return max((os.lstat(file).st_mtime for file in files), default=os.lstat(path).st_mtime)
