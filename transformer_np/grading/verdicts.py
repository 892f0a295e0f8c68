"""From the tried submission to its Grade: a verdict for every exercise, and the remarks."""

from dataclasses import replace
from functools import partial
from itertools import chain, repeat

from ..homework.answers import Survey
from ..homework.loading import Definition
from ..homework.remarks import best, crashed, missing, remarks_on
from .grade import Grade, Result
from .judges import NotJudged
from .sandbox.session import DISTURBED
from .sandbox.wire import one_line, plain_text

_SOLUTION = "LibrarySolution"


def results_of(known, tasks, tried, judge, notes, sources):
    """{name of an exercise: its Result} from the Survey and the Tried of a submission.

    notes: remarks on its files; sources: {file: its code}, of those that were executed
    """
    results = {}
    for task in tasks:
        verdict, found = _verdict(task, known, tried, judge, sources)
        places = tuple((one.file, one.cell, one.line) for one in found)
        called, (lost, more) = tuple(tried.called.get(task.name, ())), _lost(task.name, tried)
        results[task.name] = Result(
            verdict, places, known.elsewhere.get(task.name, ""), tuple(tried.layers), tried.not_loaded, called, lost,
            (*notes, *more),
        )  # fmt: skip
    return results


def grade_of(student, results, is_empty=False):
    """The Grade of a submission from the Results of all exercises. is_empty: whether none of its files could be read"""
    crashes = {file: crash for result in results.values() for file, crash in result.not_loaded.items()}
    known = Survey(elsewhere={name: result.elsewhere for name, result in results.items() if result.elsewhere})
    definitions = {name: [Definition(*place) for place in result.found] for name, result in results.items()}
    remarks = ["no file could be read"] if is_empty else []
    remarks += map(partial(one_line, most=300), remarks_on(known, crashes, definitions, results))
    return Grade(
        student, {name: result.verdict for name, result in results.items()}, (*remarks, *_remarks(results)),
        tuple(dict.fromkeys(layer for result in results.values() for layer in result.layers)),
        {file: crash.told for file, crash in crashes.items()},
        graded={name: tuple(result.found[0]) for name, result in results.items() if result.found},
    )  # fmt: skip


def not_tried(student, tasks, error):
    """The Grade of a submission that the system could not try: it is not recorded."""
    verdicts = {
        task.name: crashed(task.name, f"{task.name} could not be tried: {error}", task.trials.seed) for task in tasks
    }
    return Grade(student, verdicts, (f"could not be tried: {one_line(error)}",))


def _verdict(task, known, tried, judge, sources):
    """(the verdict on the best of an exercise's Definitions, these: this one and the others)."""
    name, found = task.name, tried.definitions.get(task.name, [])
    absent = missing(name, known, tried.not_loaded, task.trials.seed)
    absent = replace(absent, message=plain_text(absent.message))
    if not tried.replies[name]:
        return absent, []
    verdicts = [
        _verdict_on(task, replies, where, tried, judge, sources.get(where.file, b"") if where else b"")
        for replies, where in zip(tried.replies[name], chain(found, repeat(None)), strict=False)  # the time may end
    ]
    chosen = best(verdicts)
    if absent.outcome == "crashed" and verdicts[chosen].outcome == "not started":  # only the stub could be loaded
        return absent, []
    others = [one for one in found if one is not found[chosen]] if found else []
    return verdicts[chosen], [*found[chosen : chosen + 1], *others]


def _verdict_on(task, replies, where, tried, judge, source):
    name = task.name
    if where is not None and where.kind:
        return crashed(task.name, f"It must be a function or a class, got {where.kind}.", task.trials.seed)
    first = next((reply.crash for reply in replies if reply.crash), None)
    if first is not None and first.kind == "TimeoutError":
        source = b""  # as for `check`, the order of its parameters is no reason for it
    try:
        verdict = judge.verdict(task, replies, source)
    except NotJudged as error:
        return crashed(task.name, f"{name} returned something that could not be judged ({error}).", task.trials.seed)
    own = first is not None and first.kind == _SOLUTION
    if name in tried.called and not verdict.passed and (own or verdict.misconception is None):
        what = f"{name} calls the library's solution: {', '.join(tried.called[name])}. Write it yourself."
        outcome = "crashed" if own else verdict.outcome
        return replace(verdict, outcome=outcome, misconception="calls the library's solution", message=what)
    return replace(verdict, message=plain_text(verdict.message, 10_000))


def _lost(name, tried):
    """How the process of an exercise was lost: in words of the table, and in its own."""
    texts, words = {}, {"TimeoutError": "timed out", "MemoryError": "out of memory"}
    crashes = [reply.crash for replies in tried.replies[name][:1] for reply in replies if reply.crash]
    for text in dict.fromkeys(crash.text for crash in crashes):
        if text.startswith(("it ended the process", "its process", DISTURBED, "its results")):
            texts[f"{name}: {one_line(text)}"] = None
        if text.startswith("the time for the whole"):
            texts["the time for the whole submission was used up"] = None
    kinds = {crash.kind for crash in crashes}
    return tuple(word for kind, word in words.items() if kind in kinds), tuple(texts)


def _remarks(results):
    """The remarks on the processes of a submission."""
    remarks = []
    if called := [name for name, result in results.items() if result.called]:
        remarks.append(f"calls the library's solution: {', '.join(called)}")
    for words in ("timed out", "out of memory"):
        if names := [name for name, result in results.items() if words in result.lost]:
            remarks.append(f"{words}: {', '.join(names)}")
    notes = dict.fromkeys(note for result in results.values() for note in result.notes)
    return [*remarks, *sorted(notes, key=lambda note: note.startswith("the time for"))]
