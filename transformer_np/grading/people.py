"""The people of a course and their attempts: which submission is whose, and when it was handed in."""

import csv
import io
import math
import re
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from fnmatch import fnmatchcase
from unicodedata import category, normalize
from unicodedata import name as name_of_sign

from ..homework.deadline import local, possible
from ..homework.handin import stem
from ..homework.path import all_exercises
from ..support.counts import counted
from ..support.files import read_bytes
from .submissions import students_of

UNKNOWN = "not on the roster"
GONE = "its file is not among the submissions any more"
COLUMNS = ("id", "name", "path", "submitted", "deadline")
CORRECTED, WRITTEN = "corrected ", "written"
_MORE = "and, for points by hand, `corrected softmax` for each column of the table and `written (4)` with its points"


class RosterError(ValueError):
    """A roster cannot be used; the message names the line."""


@dataclass
class Person:
    """student: the id, or the name of the file without a roster; attempts: [(a Record, the time that the roster says)]
    remarks: for the teacher, on whose it is; deadline: of this person alone, or None
    corrected: {title of a column: points}, written: {title: points}, which the roster says
    """

    student: str
    name: str = ""
    attempts: list = field(default_factory=list)
    remarks: list = field(default_factory=list)
    deadline: datetime | None = None
    corrected: dict = field(default_factory=dict)
    written: dict = field(default_factory=dict)


def people(hand_ins, present, roster=None):
    """A Person for each entry among the Records; with a Roster, one for each of its people and for each entry of nobody
    among them. present: the names of the entries that are there now."""
    records, others = {}, []
    for record in hand_ins:
        records.setdefault(record.entry, []).append(record)
    students = students_of({entry: of[-1].is_folder for entry, of in records.items()})
    persons = roster.persons() if roster else {}
    for entry in sorted(records, key=lambda entry: (students[entry], entry)):
        attempts = [(record, None) for record in records[entry]]
        ids, time, are_sure = roster.owners(entry) if roster else ([], None, False)
        if are_sure:
            for one in ids:
                persons[one].attempts += [*attempts[:-1], (records[entry][-1], time)]
            continue
        person = Person(students[entry], attempts=attempts)
        others.append(person)
        if ids:
            person.remarks.append(f"could be from {' or '.join(ids)}: write a path for each into the roster")
        elif roster:
            person.remarks.append(UNKNOWN)
        for one in ids:
            persons[one].remarks.append(f"{students[entry]} could be theirs: write a path into the roster")
    same = {}
    for person in others if not roster else ():
        name = normalize("NFC", stem(person.attempts[0][0].entry)).casefold()
        same.setdefault(name, []).append(person)
    for of in same.values():
        for person in of if of[1:] else ():
            names = ", ".join(one.student for one in of if one is not person)
            person.remarks.append(f"shares its name with {names}: with a roster they are attempts of one student")
    taken = {person.student.casefold() for person in persons.values()}
    for person in others:
        person.student += " (not on the roster)" if person.student.casefold() in taken else ""
    found = [*persons.values(), *others]
    for person in found:
        if person.attempts and not any(record.entry in present for record, _ in person.attempts):
            person.remarks.append(GONE)
        numbers = {said[2] for record, _ in person.attempts if (said := _of_moodle(stem(record.entry)))}
        if len(numbers) > 1:
            told = f"its attempts are of {len(numbers)} people in Moodle, whose folders have the numbers"
            person.remarks.append(f"{told} {', '.join(sorted(numbers))}: write a path for each into the roster")
    _remark_names_that_look_alike(found)
    return found


def time_of(record, said=None, graded=()):
    """(the time of a hand-in, what says it, a remark if nothing does). graded: the files that hold the answers"""
    if said or record.said:
        return local(said or record.said), "roster" if said else record.by, ""
    seconds = [record.changed[name] for name in graded if name in record.changed]
    seconds = seconds or [s for name, s in record.changed.items() if name] or list(record.changed.values())
    try:
        return possible(max(seconds)), "file", ""
    except (ValueError, OverflowError, OSError):
        why = f"is in the year {1970 + max(seconds) / 31556952:.0f}" if seconds else "cannot be read"
        return None, "", f"its time {why}, so it counts as in time: write the time into the roster's column submitted"


# --- the roster ------------------------------------------------------------------------------------------------------


class Roster:
    """A CSV file with the people of a course. Raises RosterError.

    written: {title: possible points} of its columns for written answers; ignored: the columns without a meaning here
    """

    def __init__(self, path, course):
        self.path, self.written, self.ignored = path, {}, []
        content = read_bytes(path, "the roster, a CSV file")
        try:
            text = normalize("NFC", content.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise RosterError(f"{path} is not UTF-8: save it as CSV UTF-8, as Excel calls it") from None
        text = re.sub(r"\Asep=.\r?\n", "", text)  # for Excel
        delimiter = max(";\t,", key=text.partition("\n")[0].count)  # of "id;written (2,5)", the first
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        self.rows, head, line, titles = [], None, 1, [part.title for part in course.parts]
        try:
            for row in reader:
                cells = [" ".join(cell.splitlines()).strip() for cell in row]
                if head is None:
                    head = self._read_head(cells, titles)
                elif any(cells):
                    self.rows.append(self._read_row(head, cells, line))
                line = reader.line_num + 1
        except csv.Error:  # such as a text that goes on to the end of the file
            self._fail(line, "its quotes do not match: a quote inside a text in quotes is written twice")
        if head is None:
            self._read_head([], titles)
        if not self.rows:
            raise RosterError(f"{path} names nobody: write one line per student below the head")

    def _read_head(self, words, titles):
        """What each column is: one of COLUMNS, (CORRECTED, title), (WRITTEN, title), or None without a meaning."""
        head, words = [], [" ".join(word.split()) for word in words]
        known = {column: column for column in COLUMNS}  # and those for the exercises of all sheets
        for title in (title for name in all_exercises() for title in (name, f"{name} (extended)")):
            known[f"{CORRECTED}{title}".casefold()] = (CORRECTED, title) if title in titles else None
        for word in words:
            plain, with_points = word.casefold(), re.fullmatch(r"(written\b.*?)\s*\((\d+(?:[.,]\d+)?)\)", word, re.I)
            if with_points:
                title = with_points[1].casefold()
                self.written[title] = float(with_points[2].replace(",", "."))
                head.append((WRITTEN, title))
            elif plain in known:
                head.append(known[plain])
            else:
                near = get_close_matches(plain, [one for one in known if len(one) > 2], n=1, cutoff=0.75)
                if plain.startswith(WRITTEN):
                    self._fail(1, f"the column {word!r} needs the points that are possible, as in {word} (4)")
                if near or plain.startswith(CORRECTED):
                    self._fail(1, f"there is no column {word!r}" + "".join(f"; did you mean {one}?" for one in near))
                self.ignored += [word] if word else []
                head.append(None)
        if "id" not in head:
            self._fail(1, f"there is no column id; the columns are {', '.join(COLUMNS)}, {_MORE}")
        if twice := [word for word, column in zip(words, head, strict=True) if column and head.count(column) > 1]:
            self._fail(1, f"there are two columns {twice[0]}")
        return head

    def _read_row(self, head, cells, line):
        if any(cells[len(head) :]):
            self._fail(
                line, f"there are {len(cells)} cells, and {len(head)} columns: put a name with a comma in quotes"
            )
        row = {column: cell for column, cell in zip(head, cells, strict=False) if column}
        row = dict.fromkeys(COLUMNS, "") | row | {"line": line}
        if not row["id"]:
            self._fail(line, "the id is missing")
        if "/" in row["path"].strip("/"):
            what = "the name of a file or folder directly in the folder of submissions"
            self._fail(line, f"path must be a pattern for {what}, got {row['path']!r}")
        for column in ("submitted", "deadline"):
            row[column] = self._time(row[column], column, line)
        for column, cell in row.items():
            if isinstance(column, tuple) and cell:
                row[column] = self._points(cell, column[1], line)
        return row

    def _time(self, text, column, line):
        try:
            time = datetime.fromisoformat(text) if text else None
            if 0 < len(text) <= len("2026-06-12"):
                raise ValueError("of a day alone, the beginning would count")
            here = time and possible(time)
            return time if column == "submitted" else here
        except (ValueError, OverflowError, OSError):
            self._fail(line, f"{column} must be a time such as 2026-06-12T11:58, got {text!r}")

    def _points(self, text, title, line):
        try:
            points = float(text.replace(",", "."))
        except ValueError:
            points = math.nan
        if not math.isfinite(points):
            self._fail(line, f"the points for {title} must be a number, got {text!r}")
        return points

    def _fail(self, line, message):
        raise RosterError(f"{self.path}, line {line}: {message}")

    def persons(self):
        """{id: Person} without attempts, in order. What several lines say of one person must agree."""
        persons = {}
        for row in self.rows:
            person = persons.setdefault(row["id"], Person(row["id"]))
            said = {"name": row["name"], "deadline": row["deadline"]} | {
                key: cell for key, cell in row.items() if isinstance(key, tuple)
            }
            for key, value in said.items():
                kind, name = key if isinstance(key, tuple) else ("", key)
                kept = {"": vars(person), CORRECTED: person.corrected, WRITTEN: person.written}[kind]
                if value in (None, ""):
                    continue
                if kept.get(name) not in (None, "", value):
                    self._fail(row["line"], f"another line says something else on {row['id']}, {name}")
                kept[name] = value
        return persons

    def owners(self, entry):
        """([the ids whose file or folder this could be], the time that the roster says, whether it is theirs): it is of
        one person, or of those who work together, whose rows have one path."""
        found = self._rows_of(entry)
        ids, paths = (list(dict.fromkeys(row[column] for row in found)) for column in ("id", "path"))
        are_sure = len(ids) == 1 or (len(paths) == 1 and paths != [""])
        return ids, found[0]["submitted"] if are_sure else None, are_sure

    def _rows_of(self, entry):
        entry = normalize("NFC", entry)  # macOS takes letters and accents apart
        texts = entry, stem(entry)
        found = [r for r in self.rows if r["path"] and any(fnmatchcase(t, r["path"].strip("/")) for t in texts)]
        return found or self._named([row for row in self.rows if not row["path"]], stem(entry).casefold())

    @staticmethod
    def _named(rows, stem):
        """The rows whose id or name is in a file name: if one is all of it, that; else those that are no part of a
        longer one."""
        words = [(word.casefold(), row) for row in rows for word in (row["name"], row["id"]) if word]
        if of_moodle := _of_moodle(stem):
            name, number = of_moodle.groups()
            named = [row for word, row in words if _in_moodle(word) == _in_moodle(name)]
            return named or [row for word, row in words if word == number]
        found = [(m, row) for word, row in words for m in _names(stem, word)]
        for rest in (r"", r"[\W\d_]*"):  # ada, then ada_2
            if exact := [row for m, row in found if re.fullmatch(rest, stem[: m.start()] + stem[m.end() :])]:
                return exact
        return [
            row for m, row in found
            if not any(o.start() <= m.start() and m.end() <= o.end() and len(o[0]) > len(m[0]) for o, _ in found)
        ]  # fmt: skip


def _in_moodle(name):
    """A name without the signs that Moodle leaves out of the name of a folder."""
    return re.sub(r"[&<>\"`|':\\/]", "", name.replace("_", " "))


def _of_moodle(stem):
    """A match with the name and the number of a participant, if Moodle has named this folder."""
    return re.match(r"(.+?)_(\d+)_(?:assignsubmission|onlinetext)_", f"{stem}_")


def _names(text, word):
    """Where a text has a word as a name: ada in "ada-2" and "hw1_ada", not in "adam" or "ada-maria" or "o'ada"."""
    letter, joint = r"[^\W\d_]", r"[-'‐‑–’ʼ`´]"
    before = rf"(?<![^\W_])(?<!{letter}{joint})"
    return re.finditer(rf"{before}{re.escape(word)}(?![^\W_])(?!{joint}{letter})", text)


# --- names that look alike -------------------------------------------------------------------------------------------

_LOOKS_LIKE = str.maketrans(  # Cyrillic, Greek, Latin; NFKC makes others plain
    "авеѕіјкмнорстухһԁԛԝѵ" + "αβεζηικμνορτυχϲ" + "ıɑɡ", "abesijkmhopctyxhdqwv" + "abezhikmvoptyxc" + "iag"
)


def _look(name):
    """Equal for names that look the same: without invisible signs, and with Latin letters for those like them."""
    plain = normalize("NFC", normalize("NFKC", name).casefold())
    return "".join(sign for sign in plain if not _is_unseen(sign)).translate(_LOOKS_LIKE)


def _is_unseen(sign):
    return category(sign) == "Cf" or "VARIATION SEL" in name_of_sign(sign, "") or sign in "\u034f\u115f\u1160\u3164"


def _remark_names_that_look_alike(persons):
    looks = {}
    for person in persons:
        looks.setdefault(_look(person.student.removesuffix(f" ({UNKNOWN})")), []).append(person)
    for alike in looks.values():
        for person in alike if len({one.student.casefold() for one in alike}) > 1 else ():
            signs = [sign for sign in person.student if not sign.isascii()]
            strange = ", ".join(f"U+{ord(sign):04X} {name_of_sign(sign, '')}".strip() for sign in dict.fromkeys(signs))
            person.remarks.append(
                f"its name looks like that of {counted(len(alike) - 1, 'other row')}"
                + (f"; it has the sign {strange}" if strange else "")
            )
