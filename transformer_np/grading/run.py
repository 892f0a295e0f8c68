"""The grading of a folder of submissions, each exercise in a process of its own, on all cores; an interrupted run can
continue."""

import hashlib
import json
import os
import queue
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import datetime
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import numpy as np

from .. import __version__
from ..homework.answers import NeedsIPython, source_of
from ..homework.deadline import Deadline, shown
from ..homework.judging.trials import Trials
from ..homework.path import all_exercises, definition_of
from ..support.files import held, write_atomically
from ..support.platform import check_processes
from .changes import changes, summary
from .copies import alike, answers_from, as_texts, same_files, side_by_side, with_whom
from .feedback import MOODLE_ZIP, moodle_zip, page
from .grade import Grade, as_lines, result_from
from .judges import Judge, NotJudged
from .people import Roster, people, time_of
from .records import Records
from .report import ALIKE_PAGE, grades_csv, overview, student_report
from .sandbox.keeper import Keeper, NotStarted, Stopped
from .sandbox.session import Limits, Task, try_submission
from .submissions import find_submissions, read_entry, report_name, with_metadata
from .verdicts import grade_of, not_started, not_tried, results_of, surveyed

WALLS = ("bubblewrap", "own namespaces", "system calls")  # layers that the system upholds, whatever a submission does


class NoWall(ValueError):
    """Nothing would keep the submissions from the teacher's files and programs."""


class Grading:
    """A folder of submissions, graded into a table and a folder of reports.

    Every hand-in is recorded the first time it is seen, in a folder beside the table, and the records of all gradings
    are graded: the same records, course and package give the same table.

    table: from grades and rubric to the text of the table
    single: the folder itself is the only submission, and nothing is recorded
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
        self._stop, self._helpers = threading.Event(), queue.SimpleQueue()
        self._tasks, self._making = {}, threading.Lock()
        self.attempts, self.reused, self.layers, self.moodle = [], 0, None, None
        self.changes, self.earlier, self.remarks, self.unread = [], None, [], {}
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
        """The layers of isolation of this system, which every submission then has. NoWall if they are not enough."""
        check_processes("grading needs")
        if not hasattr(os, "fork"):
            raise NoWall("grading needs Linux or macOS; on Windows, run it in WSL")
        exercise = all_exercises()[next(iter(self.rubric.points))]
        tasks = [self._task(exercise.name, self.seed)]
        try:
            with Keeper(self._stop.is_set) as keeper:
                tried = try_submission({}, tasks, self.limits, keeper=keeper)
        except NotStarted as error:
            raise ValueError(f"no submission can be tried here: {error}") from None
        if not {"bubblewrap", "system calls"} <= set(tried.layers) and not self.trust:
            raise NoWall(
                "bubblewrap or libseccomp is not installed or not allowed here, so a submission could do anything that "
                "you can do. Install them (apt install bubblewrap libseccomp2), or pass --trust in a container that "
                "holds nothing but the submissions, as Gradescope's does: there, add --trust to the line in "
                "run_autograder"
            )
        self.layers = tried.layers
        return self.layers

    def walls(self):
        """The walls that this system provides, in a line."""
        standing = [layer for layer in self.layers if layer in WALLS]
        return f"Walls: {', '.join(standing) or 'none; the submissions are trusted'}."

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
        self._write(self.reports / "run.json", json.dumps({"seed": self.seed, "version": __version__}) + "\n")
        present, _ = self._record(), self.rules
        if find_spec("IPython") is None and any(f.endswith(".ipynb") for of in self.store.hand_ins for f in of.files):
            raise NeedsIPython
        persons = people(self.store.hand_ins, present, self.roster)
        if self.single:
            persons[0].student = "submission"
        self.attempts = [(person, *attempt) for person in persons for attempt in person.attempts]
        if bar is not None:
            bar.reset(len(self.attempts))
        grades = self._graded(bar)
        chosen = [self._chosen(person, grades.get(person.student, ())) for person in persons]
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
            owners, time = self.roster.owners(path.name) if self.roster else ((), None)
            old = self.store.renamed(entry, present)
            if old and (not self.roster or self.roster.owners(old)[0] in ([], owners)):
                self.store.rename(old, path.name)
                self.remarks.append(f"{path.name!a} has the content of {old!a}, which is gone: it counts as renamed")
            self.store.add(entry, self.seed, time, "roster")
            if not entry.files and self.store.last_of(path.name).files:
                self.unread[path.name] = (*entry.remarks, "what was there before counts")
        return present

    def _graded(self, bar):
        """{student: the Grades of all attempts, in the order of arrival}."""
        helpers = [(Keeper(self._stop.is_set), Judge(self._stop.is_set)) for _ in range(self.workers)]
        for pair in helpers:
            self._helpers.put(pair)
        found = {}
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="grading")
        try:
            running = {pool.submit(self._grade, *attempt): attempt[0].student for attempt in self.attempts}
            while running:
                done, _ = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in done:
                    found.setdefault(running.pop(future), []).append(future.result())
                    if bar is not None:
                        bar.update()
        finally:
            self._stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            for helper in chain(*helpers):
                helper.close()
        return {student: sorted(of, key=lambda grade: grade.number) for student, of in sorted(found.items())}

    def _compare(self, chosen, grades):
        """Note whose answers are alike, and what is not as it was in the last grading."""
        found = alike({student: of[-1].answers for student, of in grades.items()})
        files = {record.number: record.files for record in self.store.hand_ins}
        graded = {
            student: [{name: files[one.number].get(name) for name in one.graded_files} for one in of]
            for student, of in grades.items()
        }
        same = same_files(graded)
        for number, grade in enumerate(chosen):
            notes = (*grade.notes, *filter(None, [same.get(grade.student)]))
            chosen[number] = replace(grade, alike=with_whom(grade.student, found), notes=notes)
        self.alike = found
        now = summary(chosen, grades, self.rubric, self.rules)
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
            pages |= {record.entry: html for record, _ in person.attempts}
        if zipped := moodle_zip(pages):
            self.moodle = self.reports / MOODLE_ZIP
            self._write(self.moodle, zipped)
        self._write(self.reports / "overview.md", overview(chosen, self.rubric, self.sentence(chosen), self.alike))

    def _write(self, path, text):
        path = Path(path)
        if path.is_symlink() and (path.parent == self.reports or self._is_among_submissions(path)):
            path.unlink()  # a submission must not choose what is written
        content = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        write_atomically(path, lambda temporary: temporary.write_bytes(content))

    def _chosen(self, person, grades):
        """The Grade of a person: that of the attempt that counts, with what the deadline and the teacher make of it."""
        said = {"name": person.name, "corrected": person.corrected, "written": person.written}
        if not grades:
            verdicts = {name: not_started(name, "there is no submission.") for name in self.rubric.points}
            return Grade(person.student, verdicts, ("no submission",), notes=tuple(person.remarks), **said)
        late = self.rubric.late
        if person.deadline:
            late = replace(late, due=person.deadline) if late else Deadline(person.deadline)
        timed = self._in_order(grades)
        if late:
            days = [late.days_late(grade.handed_in) if grade.handed_in else 0 for grade in timed]
            timed = [replace(g, days_late=d, factor=late.factor_after(d)) for g, d in zip(timed, days, strict=True)]
        timed = [replace(grade, **said) for grade in timed]
        best = max(timed, key=lambda grade: grade.points(self.rubric) + grade.extended_points(self.rubric))
        grade = best if self.rubric.attempts == "best" else timed[-1]
        remarks = [f"{title}: points corrected by the teacher" for title in person.corrected]
        remarks += [f"deadline {shown(person.deadline)} (roster)"] if person.deadline else []
        if grade.days_late:
            days = "1 day" if grade.days_late == 1 else f"{grade.days_late} days"
            remarks = [f"{days} late ({grade.known_by}): {100 * grade.factor:g} % of the points", *remarks]
        return replace(
            grade, remarks=(*remarks, *grade.remarks), notes=(*person.remarks, *grade.notes),
            attempt=([one.number for one in timed].index(grade.number) + 1, len(timed)),
        )  # fmt: skip

    def _in_order(self, grades):
        """The grades by time, then by arrival. A file that replaces another is later, whatever times the two have."""
        records, order, last = {record.number: record for record in self.store.hand_ins}, {}, {}
        for grade in grades:
            record = records[grade.number]
            last[record.entry] = max(grade.handed_in or record.seen, last.get(record.entry, datetime.min))
            order[grade.number] = last[record.entry], grade.number
        return sorted(grades, key=lambda grade: order[grade.number])

    def sentence(self, grades):
        """The settings of the grading, in a sentence. Students read it: it does not name the seed."""
        layers = list(dict.fromkeys(layer for grade in grades for layer in grade.layers))
        return (
            f"transformer-np {__version__}, {self.limits.seconds:g} s for each exercise, {self.limits.total:g} s in "
            f"all, {self.limits.memory / 2**30:g} GiB. Isolation: {', '.join(layers) or 'nothing was run'}."
        )

    # --- an attempt

    def _grade(self, person, record, said):
        """The Grade of an attempt: what is known of its content is not tried again."""
        keys = {name: self._key(record, name) for name in self.rubric.points}
        texts_key = self._key(record, "")
        results = {name: result_from(self.store.results.get(key)) for name, key in keys.items()}
        tasks = [self._task(name, self._seed_for(record)) for name, result in results.items() if result is None]
        if tasks or texts_key not in self.store.results:
            try:
                files = {name: self.store.content(content) for name, content in record.files.items()}
                results |= self._try(files, tasks, keys, texts_key)
            except (NotStarted, ValueError) as error:  # for example, its files cannot be written
                every = [self._task(name, self._seed_for(record)) for name in self.rubric.points]
                grade = not_tried(person.student, every, error)
        else:
            self.reused += 1
        if None not in results.values():
            grade, texts = grade_of(person.student, results, not record.files), self.store.results.get(texts_key)
            broken = ("its answers could not be compared with others: read them",) if texts is None else ()
            grade = replace(grade, remarks=grade.remarks + broken, answers=answers_from(texts or {}))
        time, known_by, unknown = time_of(record, said, grade.graded_files)
        notes = (*filter(None, [unknown]), *self.unread.get(record.entry, ()))
        told = {"remarks": (*record.remarks, *grade.remarks), "notes": notes}
        return replace(grade, **told, handed_in=time, known_by=known_by, number=record.number)

    def _try(self, files, tasks, keys, texts_key):
        """{name of an exercise: its Result}, which are kept for the next grading."""
        if self._stop.is_set():
            raise Stopped
        walls = [layer for layer in self.layers if layer in WALLS]
        keeper, judge = self._helpers.get()
        try:
            known, notes = surveyed(files, judge)
            load = {name: {"pieces": pieces, "skipped": known.skipped[name]} for name, pieces in known.load.items()}
            tried = tasks and try_submission(files, tasks, self.limits, walls, keeper, load)
            results = results_of(known, tasks, tried, judge, notes) if tasks else {}
            try:
                texts = as_texts(judge.answers(source_of(files, known), list(self.rubric.points)))
            except NotJudged:
                texts = None
        finally:
            self._helpers.put((keeper, judge))
        for name, result in results.items():
            if result.layers:  # otherwise it was not tried: the next run may succeed
                self.store.found(keys[name], as_lines(result))
        self.store.found(texts_key, texts)
        return results

    def _task(self, name, seed):
        with self._making:
            if (name, seed) not in self._tasks:
                exercise = all_exercises()[name]
                self._tasks[name, seed] = Task(exercise, Trials(exercise, _seed_of(seed, name)))
            return self._tasks[name, seed]

    def _seed_for(self, record):
        return self.seed if self.given else record.seed

    @cached_property
    def rules(self):
        """What a grade depends on beside the submission and the course, under the names by which changes are told."""
        limits = [asdict(self.limits), [layer for layer in self.layers if layer in WALLS]]
        definitions = {name: definition_of(name) for name in self.rubric.points}
        return {"package": [__version__, _library()], "limits": limits, "definitions": definitions}

    def _key(self, record, name):
        """The key of a Result: a hash of all that it depends on. Without a name, that of the answers' texts."""
        rules = self.rules
        own = [rules["limits"], rules["definitions"][name], self._seed_for(record)] if name else [*self.rubric.points]
        parts = [record.content, name, rules["package"], own]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _seed_of(seed, name):
    """A seed of its own for an exercise, so that no exercise has the inputs of another."""
    return int(np.random.SeedSequence([seed, *name.encode()]).generate_state(1, np.uint64)[0])


@cache
def _library():
    """A hash of the library: another version may judge differently."""
    root, content = Path(__file__).parents[1], hashlib.sha256(__version__.encode())
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.md")]):
        content.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return content.hexdigest()
