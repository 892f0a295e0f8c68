"""From the tried submission to its Grade: a verdict for every exercise, and the remarks."""

from dataclasses import replace

from ..homework.judging.judge import Verdict
from .grade import Grade
from .judges import NotJudged
from .sandbox.session import DISTURBED
from .sandbox.wire import one_line, plain_text

_SOLUTION = "LibrarySolution"


def grade_of(handed_in, tasks, tried, judge):
    """The Grade of a submission from its Tried."""
    verdicts = {task.name: _verdict(task, tried, judge) for task in tasks}
    not_loaded = {file: _what(crash) for file, crash in tried.not_loaded.items()}
    remarks = (*handed_in.remarks, *_remarks(tried, handed_in))
    try:
        answers = judge.answers(handed_in.files, [task.name for task in tasks])
    except NotJudged:
        answers, remarks = {}, (*remarks, "its answers could not be compared with others: read them")
    return Grade(handed_in.student, verdicts, remarks, tuple(tried.layers), not_loaded, answers=answers)


def not_tried(handed_in, tasks, error):
    """The Grade of a submission that the system could not try: it is not recorded."""
    verdicts = {task.name: _crashed(task, f"{task.name} could not be tried: {error}") for task in tasks}
    return Grade(handed_in.student, verdicts, (*handed_in.remarks, f"could not be tried: {one_line(error)}"))


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


def _what(crash):
    return f"{crash.kind}: {crash.text}" + (f"\n{crash.trace}" if crash.trace else "")


def _remarks(tried, handed_in):
    """The remarks on a submission for the teacher."""
    remarks = [] if handed_in.files else ["no file could be read"]
    for file, crash in tried.not_loaded.items():
        how = "timed out while loading" if crash.kind == "TimeoutError" else "could not be loaded"
        how = "has a cell that fails" if file.endswith(".ipynb") and crash.kind != "TimeoutError" else how
        remarks.append(
            f"{file} {how}" + (f" ({crash.kind}: {one_line(crash.text)})" if crash.kind != "TimeoutError" else "")
        )
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
