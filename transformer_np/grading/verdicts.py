"""From the tried submission to its Grade: a verdict for every exercise, and the remarks."""

from dataclasses import replace

from ..homework.judging.judge import Verdict
from .grade import Grade, Result
from .judges import NotJudged
from .sandbox.session import DISTURBED
from .sandbox.wire import one_line, plain_text

_SOLUTION = "LibrarySolution"


def results_of(tasks, tried, judge):
    """{name of an exercise: its Result} from the Tried of a submission."""
    not_loaded = {file: (crash.kind, crash.text, crash.trace) for file, crash in tried.not_loaded.items()}
    results = {}
    for task in tasks:
        called = tuple(tried.called.get(task.name, ()))
        lost, notes = _lost(task.name, tried)
        verdict = _verdict(task, tried, judge)
        results[task.name] = Result(verdict, tuple(tried.layers), not_loaded, called, lost, notes)
    return results


def grade_of(student, results, is_empty=False):
    """The Grade of a submission from the Results of all exercises. is_empty: whether none of its files could be read"""
    not_loaded = {file: crash for result in results.values() for file, crash in result.not_loaded.items()}
    layers = tuple(dict.fromkeys(layer for result in results.values() for layer in result.layers))
    return Grade(
        student, {name: result.verdict for name, result in results.items()},
        tuple(_remarks(results, not_loaded, is_empty)), layers,
        {file: f"{kind}: {text}" + (f"\n{trace}" if trace else "") for file, (kind, text, trace) in not_loaded.items()},
    )  # fmt: skip


def not_tried(student, tasks, error):
    """The Grade of a submission that the system could not try: it is not recorded."""
    verdicts = {task.name: _crashed(task, f"{task.name} could not be tried: {error}") for task in tasks}
    return Grade(student, verdicts, (f"could not be tried: {one_line(error)}",))


def not_started(name, message):
    return Verdict(name, "not started", f"{name}: not started: {message}")


def _verdict(task, tried, judge):
    replies, name, seed = tried.replies[task.name], task.name, task.trials.seed
    if name in tried.missing and tried.not_loaded:
        (file, crash), *_ = tried.not_loaded.items()
        return _crashed(task, f"{name} is missing because {file} could not be loaded ({crash.kind}).")
    if name in tried.missing:
        return replace(not_started(name, f"the submission contains no {name}."), seed=seed)
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


def _lost(name, tried):
    """How the process of an exercise was lost: in words of the table, and in its own."""
    texts, words = {}, {"TimeoutError": "timed out", "MemoryError": "out of memory"}
    crashes = [reply.crash for reply in tried.replies[name] if reply.crash] if name not in tried.missing else []
    for text in dict.fromkeys(crash.text for crash in crashes):
        if text.startswith(("it ended", "its process", DISTURBED, "its results")):
            texts[f"{name}: {one_line(text)}"] = None
        if text.startswith("the time for the whole"):
            texts["the time for the whole submission was used up"] = None
    kinds = {crash.kind for crash in crashes}
    return tuple(word for kind, word in words.items() if kind in kinds), tuple(texts)


def _remarks(results, not_loaded, is_empty):
    """The remarks on a submission."""
    remarks = ["no file could be read"] if is_empty else []
    for file, (kind, text, _) in not_loaded.items():
        how = "timed out while loading" if kind == "TimeoutError" else "could not be loaded"
        how = "has a cell that fails" if file.endswith(".ipynb") and kind != "TimeoutError" else how
        remarks.append(f"{file} {how}" + (f" ({kind}: {one_line(text)})" if kind != "TimeoutError" else ""))
    if called := [name for name, result in results.items() if result.called]:
        remarks.append(f"calls the library's solution: {', '.join(called)}")
    for words in ("timed out", "out of memory"):
        if names := [name for name, result in results.items() if words in result.lost]:
            remarks.append(f"{words}: {', '.join(names)}")
    notes = dict.fromkeys(note for result in results.values() for note in result.notes)
    return [*remarks, *sorted(notes, key=lambda note: note.startswith("the time for"))]
