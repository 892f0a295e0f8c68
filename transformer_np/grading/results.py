"""The results of hand-ins: known from the records, or found by trying each exercise in a process of its own, on all
cores. An interrupted grading goes on from what was found."""

import hashlib
import json
import queue
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, replace
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np

from .. import __version__
from ..homework.answers import as_they_are, source_of
from ..homework.judging.trials import Trials
from ..homework.path import all_exercises, definition_of
from .copies import Answer
from .grade import result_from
from .judges import Judge, NotJudged
from .people import time_of
from .sandbox.keeper import Keeper, NotStarted
from .sandbox.process import Stopped
from .sandbox.session import Task, try_submission
from .verdicts import grade_of, not_tried, results_of


class Results:
    """What is known and found out about the hand-ins in some Records.

    walls: layers of isolation without which nothing is run; seed: of all inputs, or None for the seed of each Record
    stop: an Event that ends everything; reused: the number of hand-ins of which everything was known
    """

    def __init__(self, store, rubric, limits, walls, seed, stop):
        self.store, self.rubric, self.limits, self.walls, self.seed = store, rubric, limits, walls, seed
        self._stop, self._helpers, self.reused = stop, queue.SimpleQueue(), 0
        self._tasks, self._making, self._before = {}, threading.Lock(), {*store.results}
        definitions = {name: definition_of(name) for name in rubric.points}
        self.rules = {  # what a Result depends on beside the hand-in, under the names by which changes are told
            "package": [__version__, _library()], "limits": [asdict(limits), list(walls)], "definitions": definitions,
        }  # fmt: skip

    def grades(self, attempts, workers, bar=None):
        """{student: Grades in the order of arrival} of attempts, (student, Record, the time that the roster says)."""
        helpers = [(Keeper(self._stop.is_set), Judge(self._stop.is_set)) for _ in range(workers)]
        for pair in helpers:
            self._helpers.put(pair)
        found = {}
        pool = ThreadPoolExecutor(workers, thread_name_prefix="grading")
        try:
            running = {pool.submit(self._grade, *attempt): attempt[0] for attempt in attempts}
            for future in as_completed(running):
                found.setdefault(running[future], []).append(future.result())
                if bar is not None:
                    bar.update()
        finally:
            self._stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            for helper in chain(*helpers):
                helper.close()
        return {student: sorted(of, key=lambda grade: grade.number) for student, of in sorted(found.items())}

    def _grade(self, student, record, said):
        """The Grade of a hand-in; what is known of its content is not tried again."""
        keys = {name: self._key(record, name) for name in self.rubric.points}
        texts_key = self._key(record, "")
        results = {name: result_from(self.store.results.get(key)) for name, key in keys.items()}
        tasks = [self._task(name, self._seed_of(record)) for name, result in results.items() if result is None]
        if tasks or texts_key not in self.store.results:
            try:
                files = {name: self.store.content(content) for name, content in record.files.items()}
                results |= self._try(files, tasks, keys, texts_key)
            except Stopped:
                raise
            except Exception as error:  # for example, its files cannot be written: no reason to stop the class
                told = error if isinstance(error, NotStarted | ValueError) else f"{type(error).__name__}: {error}"
                every = [self._task(name, self._seed_of(record)) for name in self.rubric.points]
                grade = not_tried(student, every, told)
        else:
            self.reused += {texts_key, *keys.values()} <= self._before  # or else another has the same content
        if None not in results.values():
            grade, texts = grade_of(student, results, not record.files), self.store.results.get(texts_key)
            broken = ("its answers could not be compared with others: read them",) if texts is None else ()
            answers = {name: Answer(text, Counter(runs)) for name, (text, runs) in (texts or {}).items()}
            grade = replace(grade, remarks=grade.remarks + broken, answers=answers)
        time, known_by, unknown = time_of(record, said, grade.graded_files)
        told = {"remarks": (*record.remarks, *grade.remarks), "notes": tuple(filter(None, [unknown]))}
        return replace(grade, **told, handed_in=time, known_by=known_by, number=record.number)

    def _try(self, files, tasks, keys, texts_key):
        """{name of an exercise: its Result}, which are kept for the next grading."""
        if self._stop.is_set():
            raise Stopped
        keeper, judge = self._helpers.get()
        try:
            try:
                known, notes = judge.survey(files), ()
            except NotJudged:
                known, notes = as_they_are(files), ("its files take too long to read: its notebooks were not graded",)
            tried = tasks and try_submission(files, tasks, self.limits, self.walls, keeper, known)
            sources = source_of(files, known)
            results = results_of(known, tasks, tried, judge, notes, sources)
            try:
                texts = judge.answers(sources, list(self.rubric.points))
            except NotJudged:
                texts = None
        finally:
            self._helpers.put((keeper, judge))
        for name, result in results.items():
            if result.layers:  # otherwise it was not tried: the next run may succeed
                self.store.found(keys[name], asdict(result))
        self.store.found(texts_key, texts)
        return results

    def _seed_of(self, record):
        return record.seed if self.seed is None else self.seed

    def _task(self, name, seed):
        with self._making:
            if (name, seed) not in self._tasks:
                self._tasks[name, seed] = task_of(name, seed)
            return self._tasks[name, seed]

    def _key(self, record, name):
        """The key of a Result: a hash of all that it depends on. Without a name, that of the answers' texts."""
        rules = self.rules
        own = [rules["limits"], rules["definitions"][name], self._seed_of(record)] if name else [*self.rubric.points]
        parts = [record.content, name, rules["package"], own]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def task_of(name, seed):
    """The Task of an exercise in a grading with this seed."""
    return Task(Trials(all_exercises()[name], seed_of(seed, name)))


def seed_of(seed, name):
    """A seed of its own for an exercise, so that no exercise has the inputs of another."""
    return int(np.random.SeedSequence([seed, *name.encode()]).generate_state(1, np.uint64)[0])


@cache
def _library():
    """A hash of the library: another version may judge differently."""
    root, content = Path(__file__).parents[1], hashlib.sha256(__version__.encode())
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.md")]):
        content.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return content.hexdigest()
