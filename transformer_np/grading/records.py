"""The records of a grading: what was handed in, the results of it, and the earlier gradings.

They lie beside the table, never among the submissions, so that no submission can be one. Lines are only appended, and a
file that was handed in is kept under the hash of its content: nothing overwrites or deletes a record.
"""

import hashlib
import json
import os
import re
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path

from ..support.files import LOCK, write_atomically
from .submissions import Entry

HEAD = {"records of": "transformer-np homework grade", "format": 1}


@dataclass(frozen=True, kw_only=True)
class Record(Entry):
    """A hand-in: an Entry as it was when a grading first saw it, with the hash of each content in its place.

    number: its place in the order of arrival; seen: when the grading saw it; seed: of that grading
    exercises: of the course at that time
    """

    number: int
    assignment: str
    seen: datetime
    seed: int
    exercises: tuple[str, ...] = field(compare=False)

    @property
    def content(self):
        """A hash of the names and contents of the files."""
        return hashlib.sha256(json.dumps(sorted(self.files.items())).encode()).hexdigest()


class Records:
    """The records in a folder, which nobody else may use meanwhile; without a folder they are kept in memory.

    Of the hand-ins, those of this assignment that share an exercise with the course: a folder may serve two sheets.
    results: {key: what was found out about a content}; gradings: summaries of the earlier ones, the last one last
    damaged: the lines that cannot be read
    """

    def __init__(self, folder, exercises, assignment=""):
        self.folder, self.exercises, self.assignment = folder and Path(folder), tuple(exercises), assignment
        self.hand_ins, self.results, self.gradings, self.damaged = [], {}, [], []
        self._contents, self._lines, self._writing = {}, 0, threading.Lock()
        if self.folder:
            self._read()

    def _read(self):
        lines = self._lines_of("hand-ins")
        if (lines and lines[0] != HEAD) or (not lines and {path.name for path in self.folder.iterdir()} - {LOCK}):
            raise ValueError(f"{self.folder} holds no records of a grading: choose another --out")
        if not lines:
            self._append("hand-ins", HEAD)
        for number, line in enumerate(lines):
            if not line or line.get("assignment") != self.assignment:
                continue
            if "renamed" in line:
                self._rename(line["renamed"], line["to"])
            else:
                said = line["said"] and datetime.fromisoformat(line["said"])
                line |= {"said": said, "seen": datetime.fromisoformat(line["seen"]), "number": number}
                record = Record(**line | {"remarks": tuple(line["remarks"]), "exercises": tuple(line["exercises"])})
                if {*record.exercises} & {*self.exercises}:
                    self.hand_ins.append(record)
        self._lines = max(1, len(lines))
        self.results = {line["key"]: line["result"] for line in filter(None, self._lines_of("results"))}
        for line in filter(None, self._lines_of("gradings")):
            graded = {exercise for exercise, _ in line["worth"].values()}
            if line["assignment"] == self.assignment and graded & {*self.exercises}:
                self.gradings.append(line)

    # --- hand-ins

    def last_of(self, entry):
        """The last Record of a file or folder, or None."""
        return next((record for record in reversed(self.hand_ins) if record.entry == entry), None)

    def add(self, seen, seed, time=None, by=""):
        """Keep an Entry of the submissions, unless it holds what it held last, or nothing of it could be read.

        time, by: of hand-in, if the roster says it
        """
        files = {name: self._keep(content) for name, content in seen.files.items()}
        last = self.last_of(seen.entry)
        if last and (
            _held(last.files, last.is_folder) == _held(files, seen.is_folder)
            if files
            else last.files or last.remarks == seen.remarks
        ):
            return
        record = Record(
            **vars(seen) | {"files": files} | ({"said": time, "by": by} if time else {}), number=self._lines,
            assignment=self.assignment, seen=datetime.now().replace(microsecond=0), seed=seed, exercises=self.exercises,
        )  # fmt: skip
        line = asdict(record) | {"said": record.said and record.said.isoformat(), "seen": record.seen.isoformat()}
        del line["number"]
        self._append("hand-ins", line)
        self.hand_ins.append(record)

    def renamed(self, seen, present):
        """The name of a file or folder that is gone and had the content of a new Entry, or None."""
        hashes = [_hash(content) for content in seen.files.values()]
        if hashes and self.last_of(seen.entry) is None:
            gone = {record.entry: record for record in self.hand_ins if record.entry not in present}
            return next((entry for entry, record in gone.items() if [*record.files.values()] == hashes), None)
        return None

    def rename(self, old, new):
        """Let the records of a file or folder follow it."""
        self._append("hand-ins", {"renamed": old, "to": new, "assignment": self.assignment})
        self._rename(old, new)

    def _rename(self, old, new):
        self.hand_ins = [replace(one, entry=new) if one.entry == old else one for one in self.hand_ins]

    def content(self, file):
        """The content of a file by its hash. ValueError if it is damaged."""
        content = self._contents.get(file)
        if content is None:
            with suppress(OSError), open(_opened(self.folder / "files" / file, os.O_RDONLY), "rb") as stream:
                content = stream.read()
        if content is None or _hash(content) != file:
            raise ValueError(f"the content {file[:8]}… is damaged in {self.folder}")
        return content

    def _keep(self, content):
        name = _hash(content)
        if not self.folder:
            self._contents[name] = content
            return name
        path = self.folder / "files" / name
        if not (os.path.lexists(path) and os.lstat(path).st_size == len(content)):
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, lambda temporary: temporary.write_bytes(content))
        return name

    # --- results, gradings and tables

    def found(self, key, result):
        """Keep a result. An interrupted grading goes on from these."""
        with self._writing:
            self.results[key] = result
            self._append("results", {"key": key, "result": result}, durable=False)

    def graded(self, summary):
        self._append("gradings", summary)

    def keep_table(self, path, content):
        """The Path of a copy of the table at this path if other content will overwrite it, else None."""
        if not self.folder or path.is_symlink() or not path.is_file() or path.read_bytes() == content:
            return None
        folder = self.folder / "tables"
        folder.mkdir(exist_ok=True)
        kept = (re.fullmatch(r".*-(\d+)", file.stem) for file in folder.iterdir())
        number = 1 + max((int(found[1]) for found in kept if found), default=0)  # also where earlier ones are deleted
        copy = folder / f"{path.stem}-{number}{path.suffix}"
        with open(copy, "xb") as file:
            file.write(path.read_bytes())
        return copy

    # --- lines

    def _lines_of(self, name):
        """The lines of a file as values; None for one that is damaged, as by a computer that was switched off."""
        try:
            with open(_opened(self.folder / f"{name}.jsonl", os.O_RDONLY), "rb") as file:
                texts = file.read().splitlines()
        except FileNotFoundError:
            return []
        lines = []
        for number, text in enumerate(texts, 1):
            try:
                value = json.loads(text)
                lines.append(value if isinstance(value, dict) else None)
            except (ValueError, RecursionError):
                lines.append(None)
            if lines[-1] is None and text:
                self.damaged.append(f"{name}.jsonl, line {number}")
        return lines

    def _append(self, name, value, durable=True):
        self._lines += name == "hand-ins"
        if not self.folder:
            return
        path, text = self.folder / f"{name}.jsonl", json.dumps(value).encode() + b"\n"
        with open(_opened(path, os.O_RDWR | os.O_APPEND | os.O_CREAT), "r+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(size - 1)
                text = text if file.read(1) == b"\n" else b"\n" + text  # below half a line
            file.write(text)
            if durable:
                os.fsync(file.fileno())


def _opened(path, flags):
    """A descriptor of a file that is no link."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _held(files, is_folder):
    """What an entry holds: a single file holds the same under another name."""
    return files if is_folder else [*files.values()]


def _hash(content):
    return hashlib.sha256(content).hexdigest()
