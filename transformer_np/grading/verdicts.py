"""From the tried submission to its Grade: a verdict for every exercise, and the remarks."""

from dataclasses import replace
from functools import partial
from itertools import zip_longest

from ..homework.answers import as_they_are, best, missing, remarks_on, source_of
from ..homework.judging.judge import Verdict
from .grade import Grade
from .judges import NotJudged
from .sandbox.session import DISTURBED
from .sandbox.wire import one_line, plain_text

_SOLUTION = "LibrarySolution"


def surveyed(files, judge):
    """(the Survey of a submission's files, remarks on it)."""
    try:
        return judge.survey(files), ()
    except NotJudged:
        return as_they_are(files), ("its files take too long to read: its notebooks were not graded",)


def grade_of(handed_in, known, tasks, tried, judge):
    """The Grade of a submission from its Survey and its Tried."""
    verdicts, definitions = {}, {}
    for task in tasks:
        verdicts[task.name], definitions[task.name] = _verdict(task, known, tried, judge)
    graded = {name: (of[0].file, of[0].cell, of[0].line) for name, of in definitions.items() if of}
    not_loaded = {file: _what(crash) for file, crash in tried.not_loaded.items()}
    remarks = ["no file could be read"] if not handed_in.files else []
    remarks += remarks_on(known, tried.not_loaded, definitions, verdicts)
    remarks = (*handed_in.remarks, *map(partial(one_line, most=300), remarks), *_remarks(tried))
    try:
        answers = judge.answers(source_of(handed_in.files, known), [task.name for task in tasks])
    except NotJudged:
        answers, remarks = {}, (*remarks, "its answers could not be compared with others: read them")
    layers = tuple(tried.layers)
    return Grade(handed_in.student, verdicts, remarks, layers, not_loaded, answers=answers, graded=graded)


def not_tried(handed_in, tasks, error):
    """The Grade of a submission that the system could not try: it is not recorded."""
    verdicts = {task.name: _crashed(task, f"{task.name} could not be tried: {error}") for task in tasks}
    return Grade(handed_in.student, verdicts, (*handed_in.remarks, f"could not be tried: {one_line(error)}"))


def not_started(name, message):
    return Verdict(name, "not started", f"{name}: not started: {message}")


def _verdict(task, known, tried, judge):
    """(the verdict on the best of an exercise's definitions, the Found: this one and the others)."""
    name, found = task.name, tried.definitions.get(task.name, [])
    if name in tried.missing:
        begun, said = missing(name, known, tried.not_loaded)
        said = plain_text(said)
        return (_crashed(task, said) if begun else replace(not_started(name, said), seed=task.trials.seed)), []
    verdicts = [
        _verdict_on(task, replies, where, tried, judge)
        for replies, where in zip_longest([tried.replies[name], *tried.more.get(name, ())], found)
    ]
    chosen = best(verdicts)
    others = [one for one in found if one is not found[chosen]] if found else []
    return verdicts[chosen], [*found[chosen : chosen + 1], *others]


def _verdict_on(task, replies, where, tried, judge):
    name = task.name
    if where is not None and where.kind:
        return _crashed(task, f"It must be a function or a class, got {where.kind}.")
    first = next((reply.crash for reply in replies if reply.crash), None)
    try:
        verdict = judge.verdict(task, replies)
    except NotJudged as error:
        return _crashed(task, f"{name} returned something that could not be judged ({error}).")
    own = first is not None and first.kind == _SOLUTION
    if name in tried.called and not verdict.passed and (own or verdict.misconception is None):
        what = f"{name} calls the library's solution: {', '.join(tried.called[name])}. Write it yourself."
        outcome = "crashed" if own else verdict.outcome
        return replace(verdict, outcome=outcome, misconception="calls the library's solution", message=what)
    return replace(verdict, message=plain_text(verdict.message, 10_000))


def _crashed(task, message):
    return Verdict(task.name, "crashed", f"{task.name}: crashed. {message}", seed=task.trials.seed)


def _what(crash):
    return f"{crash.kind}: {crash.text}" + (f"\n{crash.trace}" if crash.trace else "")


def _remarks(tried):
    """The remarks on the processes of a submission."""
    remarks = []
    if tried.called:
        remarks.append(f"calls the library's solution: {', '.join(tried.called)}")
    crashes = {
        name: [reply.crash for reply in replies if reply.crash]
        for name, replies in tried.replies.items()
        if name not in tried.missing
    }
    lost = {"TimeoutError": "timed out", "MemoryError": "out of memory"}
    for kind, words in lost.items():
        names = [name for name, found in crashes.items() if any(crash.kind == kind for crash in found)]
        if names:
            remarks.append(f"{words}: {', '.join(names)}")
    for name, found in crashes.items():
        for text in dict.fromkeys(crash.text for crash in found):
            if text.startswith(("it ended", "its process", DISTURBED, "its results")):
                remarks.append(f"{name}: {one_line(text)}")
    if any(crash.text.startswith("the time for the whole") for found in crashes.values() for crash in found):
        remarks.append("the time for the whole submission was used up")
    return remarks
