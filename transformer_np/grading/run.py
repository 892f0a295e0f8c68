"""The grading of a folder of submissions, from the records to the table and the reports."""

import json
import os
import threading
from contextlib import closing, nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from .. import __version__
from ..homework.magics import NeedsIPython
from ..support.checks import refusing
from ..support.files import held, write_atomically
from ..support.platform import check_processes
from .attempts import counting
from .changes import changes, summary
from .copies import alike, same_files, side_by_side, with_whom
from .feedback import MOODLE_ZIP, moodle_zip, page
from .people import Roster, people
from .records import Records
from .report import ALIKE_PAGE, grades_csv, overview, student_report
from .results import Results, task_of
from .sandbox.keeper import Keeper, NotStarted
from .sandbox.session import Limits, try_submission
from .submissions import find_submissions, read_entry, report_name, skipped_entries, with_metadata

WALLS = ("bubblewrap", "own namespaces", "system calls")  # layers that the system upholds, whatever a submission does


class NoWall(ValueError):
    """Nothing would keep the submissions from the teacher's files and programs."""


class Grading:
    """A folder of submissions, graded into a table and a folder of reports.

    Every hand-in is recorded the first time it is seen, in a folder beside the table, and the records of all gradings
    are graded: the same records, course and package give the same table.

    table: from grades and rubric to the text of the table
    single: the folder itself is the only submission, and nothing is recorded
    reused: the number of attempts of which everything was known
    seed: of the inputs, the same for all students of this grading; None draws one. A record keeps the seed of the
    grading that first saw it, unless one is given.
    trust: grade even if no wall keeps a submission from the files and programs of this user
    roster: a CSV file with the people of the course; assignment: the folder inside a student's folder that is graded
    """

    def __init__(
        self, folder, out, rubric, reports=None, limits=None, workers=1, seed=None, table=grades_csv, single=False,
        trust=False, roster=None, assignment="",
    ):  # fmt: skip
        self.table, self.single, self.assignment = table, single, assignment
        self.folder, self.out = Path(folder), Path(out)
        if roster and os.path.realpath(roster) == os.path.realpath(out):
            raise ValueError(f"the table would overwrite the roster, {roster}: choose another --out")
        self.roster = Roster(roster, rubric) if roster else None
        self.rubric = replace(rubric, written=self.roster.written) if roster else rubric
        self.reports = Path(reports) if reports else self._beside("reports")
        if reports and self._is_among_submissions(self.reports):
            raise ValueError(f"{reports} is among the submissions: choose another --reports")
        self.records = None if single else self._beside("records")
        self.limits, self.workers, self.trust = limits or Limits(), workers, trust
        self.paths = [self.folder.resolve()] if single else find_submissions(folder, assignment, roster is not None)
        self.given = seed is not None
        self.seed = seed if self.given else np.random.SeedSequence().entropy % 2**32
        self._stop, self.attempts, self.layers, self.moodle = threading.Event(), [], None, None
        self.changes, self.earlier, self.remarks, self.unread, self.reused = [], None, [], {}, 0
        if roster and self.roster.ignored:
            self.remarks.append(f"Columns of the roster without a meaning here: {', '.join(self.roster.ignored)}")

    def _is_among_submissions(self, path):
        """Whether a path is in the folder of submissions; where a link at its end leads does not matter."""
        folder, place = os.path.realpath(self.folder), os.path.realpath(Path(path).absolute().parent)
        return not self.single and os.path.commonpath([folder, place]) == folder

    def _beside(self, what):
        """A folder for what this grading writes: beside the table, or, if the table is among the submissions, which
        could have any name, beside these."""
        path = self.out
        if self._is_among_submissions(path):
            path = Path(os.path.realpath(self.folder))
            return path.with_name(f"{path.name}_{what}")
        return path.with_name(f"{path.stem}_{what}")

    def try_walls(self):
        """Find the layers of isolation of this system, which every submission then has. NoWall if they are not
        enough."""
        check_processes("grading needs")
        if not hasattr(os, "fork"):
            raise NoWall("grading needs Linux or macOS; on Windows, run it in WSL")
        tasks = [task_of(next(iter(self.rubric.points)), self.seed)]
        with refusing("no submission can be tried here", NotStarted), closing(Keeper(self._stop.is_set)) as keeper:
            tried = try_submission({}, tasks, self.limits, keeper=keeper)
        if not {"bubblewrap", "system calls"} <= set(tried.layers) and not self.trust:
            raise NoWall(
                "bubblewrap or libseccomp is not installed or not allowed here, so a submission could do anything that "
                "you can do. Install them (apt install bubblewrap libseccomp2), or pass --trust in a container that "
                "holds nothing but the submissions, as Gradescope's does: there, add --trust to the line in "
                "run_autograder"
            )
        self.layers = tried.layers

    def walls(self):
        """The walls that this system provides, in a line."""
        return f"Walls: {', '.join(self._standing()) or 'none; the submissions are trusted'}."

    def _standing(self):
        return [layer for layer in self.layers if layer in WALLS]

    def run(self, bar=None):
        """Grade all submissions; returns the grades as in the table. bar: a tqdm bar, updated for each attempt.

        After Ctrl-C the finished grades remain, and the next run uses them. FileExistsError if another grading is at
        work here.
        """
        if self.layers is None:
            self.try_walls()
        self.reports.mkdir(parents=True, exist_ok=True)
        with nullcontext() if self.single else held(self.records):
            return self._run(bar)

    def _run(self, bar):
        self.store = Records(self.records, self.rubric.points, self.assignment)
        self.remarks += [f"{self.records / line} is damaged and was left out" for line in self.store.damaged]
        seed = self.seed if self.given else None
        self.results = Results(self.store, self.rubric, self.limits, self._standing(), seed, self._stop)
        present = self._record()
        if not self.given and self.store.hand_ins:
            self.seed = self.store.hand_ins[-1].seed  # where nothing is new, that of the last that was
        self._write(self.reports / "run.json", json.dumps({"seed": self.seed, "version": __version__}) + "\n")
        if find_spec("IPython") is None and any(f.endswith(".ipynb") for of in self.store.hand_ins for f in of.files):
            raise NeedsIPython
        persons = people(self.store.hand_ins, present, self.roster)
        for person in persons:
            entries = dict.fromkeys(record.entry for record, _ in person.attempts)
            person.remarks += [self.unread[entry] for entry in entries if entry in self.unread]
        without = {person.student: person for person in persons if not person.attempts}
        for entry in skipped_entries(self.folder) if without else ():
            for one in without.keys() & {*self.roster.owners(entry)[0]}:
                without[one].remarks.append(f"{entry} was not read: it is no .py or .ipynb file, nor a folder with one")
        if self.single:
            persons[0].student = "submission"
        self.attempts = [(person.student, *attempt) for person in persons for attempt in person.attempts]
        if bar is not None:
            bar.reset(len(self.attempts))
        grades = self.results.grades(self.attempts, self.workers, bar)
        self.reused = self.results.reused
        records = {record.number: record for record in self.store.hand_ins}
        chosen = [counting(one, grades.get(one.student, ()), records, self.rubric) for one in persons]
        self._compare(chosen, grades)
        self._write_reports(persons, chosen)
        self.store.graded(self.summary)
        return chosen

    def _record(self):
        """Record what is new among the submissions; returns the names of the files and folders that are there."""
        present = {path.name for path in self.paths}
        for path in self.paths:
            entry = read_entry(path, self.assignment)
            entry = with_metadata(entry, path) if self.single else entry
            owners, time, _ = self.roster.owners(path.name) if self.roster else ((), None, False)
            old = self.store.renamed(entry, present)
            if old and (not self.roster or self.roster.owners(old)[0] in ([], owners)):
                self.store.rename(old, path.name)
                self.remarks.append(f"{path.name!r} has the content of {old!r}, which is gone: it counts as renamed")
            self.store.add(entry, self.seed, time, "roster")
            if not entry.files and self.store.last_of(path.name).files:
                self.unread[path.name] = f"{'; '.join(entry.remarks)}: what was there before counts"
        return present

    def _compare(self, chosen, grades):
        """Note whose answers are alike, and what is not as it was in the last grading."""
        one_of = {of[-1].number: student for student, of in reversed(grades.items())}  # who hand in together
        found = alike({student: grades[student][-1].answers for student in sorted(one_of.values())})
        files = {record.number: record.files for record in self.store.hand_ins}
        graded = {
            student: [
                {name: files[one.number].get(name) for name in (*one.graded_files, *one.not_loaded)}
                for one in of
                if one.begun or one.not_loaded
            ]
            for student, of in grades.items()
            if one_of[of[-1].number] == student
        }
        same = same_files(graded)
        for number, grade in enumerate(chosen):
            notes = (*grade.notes, *filter(None, [same.get(grade.student)]))
            chosen[number] = replace(grade, alike=with_whom(grade.student, found), notes=notes)
        self.alike = found
        now = summary(chosen, grades, self.rubric, self.results.rules)
        self.changes = changes(self.store.gradings[-1], now) if self.store.gradings else []
        self.summary = now | {"assignment": self.assignment, "seed": self.seed}

    def _write_reports(self, persons, chosen):
        text = self.table(chosen, self.rubric)
        self.earlier = self.store.keep_table(self.out, text.encode("utf-8", "replace"))
        self._write(self.out, text)
        if self.alike:
            self._write(self.reports / ALIKE_PAGE, side_by_side(self.alike))
        pages = {}
        for person, grade in zip(persons, chosen, strict=True):
            run, path = self.sentence([grade]), self.reports / report_name(grade.student)
            self._write(f"{path}.md", student_report(grade, self.rubric, run))
            self._write(f"{path}.html", html := page(grade, self.rubric, run))
            for record, _ in person.attempts:  # of two who hand in together, the one whom the folder names
                if record.entry not in pages or (person.name and person.name in record.entry):
                    pages[record.entry] = html
        if zipped := moodle_zip(pages):
            self.moodle = self.reports / MOODLE_ZIP
            self._write(self.moodle, zipped)
        self._write(self.reports / "overview.md", overview(chosen, self.rubric, self.sentence(chosen), self.alike))
        self._remove_pages({report_name(grade.student) for grade in chosen})

    def _remove_pages(self, written):
        """Remove the pages of the last grading that this one has not written again. written: names of reports"""
        rows = self.store.gradings[-1]["rows"] if self.store.gradings else ()
        gone = [f"{name}{end}" for name in {*map(report_name, rows)} - written for end in (".md", ".html")]
        gone += [] if self.alike else [ALIKE_PAGE]
        gone += [] if self.moodle else [MOODLE_ZIP]
        for name in gone:
            (self.reports / name).unlink(missing_ok=True)

    def _write(self, path, text):
        path = Path(path)
        if path.is_symlink() and (path.parent == self.reports or self._is_among_submissions(path)):
            path.unlink()  # a submission must not choose what is written
        content = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        write_atomically(path, lambda temporary: temporary.write_bytes(content))

    def sentence(self, grades):
        """The settings of the grading, in a sentence. Students read it: it does not name the seed."""
        layers = list(dict.fromkeys(layer for grade in grades for layer in grade.layers))
        return (
            f"transformer-np {__version__}, {self.limits.seconds:g} s for each exercise, {self.limits.total:g} s in "
            f"all, {self.limits.memory / 2**30:g} GiB. Isolation: {', '.join(layers) or 'nothing was run'}."
        )
