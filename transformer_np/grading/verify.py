"""The problems of a teacher's exercises, one sentence each."""

import inspect
import re
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np

from ..homework.checking import TOO_LONG, verdict_on
from ..homework.exercise import Case, call
from ..homework.judging.attempt import attempt
from ..homework.judging.compare import close, results_and_problem
from ..homework.judging.crash import crash_of
from ..homework.judging.trials import Trials
from ..homework.limit import Stopped, TimeLimit
from ..homework.own import lines_shown
from ..homework.stubs import stub_file
from .sandbox.session import Task

SEEDS = (0, 1)


def problems(exercise, seconds=10.0, ends_process=False, steps=None):
    """The problems of an exercise, one sentence each. The first step with a problem is the last: others build on it.

    ends_process: whether code in C that does not return ends this process; steps: None for STEPS
    """
    limit = TimeLimit(seconds, ends_process)
    return next((found for step in steps or STEPS if (found := _found(step, exercise, limit))), [])


def told(exercise, problem):
    """A problem as its teacher reads it."""
    said, *lines = problem.split("\n")
    return "\n".join([f"{exercise.name}: {said}{'' if said.endswith(('.', '?')) else '.'}", *lines])


def _found(step, exercise, limit):
    judged = step in (_about_answer, _about_mistakes)  # as a student's would be, which no line of a teacher's is
    with nullcontext() if judged else lines_shown():
        try:
            found = step(exercise, limit)
            return [found] if isinstance(found, str) else list(found or ())
        except Stopped as stopped:
            return [f"it does not end: {stopped}\n{stopped.trace}".rstrip()]
        except (Exception, SystemExit) as error:  # in a function of the teacher's
            return [f"it cannot be tried. {crash_of(error).told}"]


def _where(function):
    """ " (center.py, line 12)" of a function or class of the teacher's."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return ""
    return f" ({Path(code.co_filename).name}, line {code.co_firstlineno})"


def _about_fields(exercise, _):
    hints = exercise.hints
    if not hints:
        yield "it has no hints: write three, a question, the equation and where to look"
    elif not isinstance(hints, tuple | list) or len(hints) != 3 or not all(isinstance(h, str) and h for h in hints):
        yield "hints must be three texts: a question, the equation and where to look"
    if not inspect.getdoc(exercise.reference):
        yield "its reference has no docstring, which is all that students know of it"
    if exercise.difficulty not in (1, 2, 3):
        yield f"difficulty must be 1, 2 or 3, got {exercise.difficulty!r}"
    if not exercise.results:
        yield "results is empty: name what the answer returns, (Result('y', 'B T D'),)"
    try:
        if not exercise.mistakes:
            yield "it has no mistakes, so that only those of one small edit are explained"
    except ValueError as error:
        yield f"its mistakes cannot be read: {error}"


def _about_cases(exercise, limit):
    for seed in SEEDS:
        try:
            with limit("cases"):
                cases = exercise.cases(np.random.default_rng(seed))
        except Stopped:
            raise
        except (Exception, SystemExit) as error:
            return f"its cases cannot be drawn. {crash_of(error).told}"
        if not isinstance(cases, list | tuple) or not cases or not all(isinstance(case, Case) for case in cases):
            return f"its cases must be a list of Case, at least one{_where(exercise.cases)}"
        for case in cases:
            if not isinstance(case.arguments, tuple) or not isinstance(case.options, dict):
                return f"a Case needs a tuple of arguments, (x,), and a dict of options{_where(exercise.cases)}"


def _about_inputs(exercise, limit):
    with limit("cases"):
        drawn = [exercise.cases(np.random.default_rng(seed)) for seed in (*SEEDS, SEEDS[0])]
    cases = drawn[0]
    if cases[0].label:
        yield f"the first case is with {cases[0].label}: begin with the plain one, whose label is ''"
    if any(not case.label for case in cases[1:]):
        yield "only the first case may have the label '': say what is special about the others"
    first, second, again = ([a for case in one for a in case.arguments if isinstance(a, np.ndarray)] for one in drawn)
    if first and _same(first, second):
        yield "its inputs are the same every time: draw them from rng, so that no answer can know them"
    elif not _same(first, again):
        yield "its inputs are others for the same rng: draw them from it alone, or no grading could be repeated"


def _same(arrays, others):
    return len(arrays) == len(others) and all(map(np.array_equal, arrays, others))


def _tried(exercise, limit):
    """(case, " with …", the reference's Attempt) of all cases."""
    with limit("cases"):
        trials = Trials(exercise, SEEDS[0])
    for case in trials.cases:
        with limit("the reference"):
            tried = attempt(exercise, exercise.reference, case)
        yield case, f" with {case.label}" if case.label else "", tried


def _about_running(exercise, limit):
    for case, where, tried in _tried(exercise, limit):
        if tried.crash and not case.raises:
            return f"its reference crashes{where}. {tried.crash.told}"


def _about_reference(exercise, limit):
    for case, where, tried in _tried(exercise, limit):
        if case.raises:
            raised = tried.crash and tried.crash.kind
            if raised == case.raises:
                continue
            instead = f", but {raised}" if raised else ""
            return f"its reference does not raise {case.raises}{where}{instead}{_where(exercise.reference)}"
        if tried.changed:
            return f"its reference changes {' and '.join(tried.changed)}{where}; it must make a new array"
        results, structure = results_and_problem(exercise, case, tried.output)
        if structure:
            return f"its reference does not return the results it names{where}. {structure}"
        for result, value in zip(exercise.results, results, strict=True):
            letters = result.axes.split()
            if "..." not in letters and len(letters) != value.ndim:
                return f"{result.name} has the shape {value.shape}{where}, but its axes are {result.axes!r}"
            if value.size and np.isnan(value).all():
                return f"its reference returns nothing but NaN for {result.name}{where}{_where(exercise.reference)}"
            if _is_rounded(value, case) and exercise.drive is call and exercise.view is None:
                return (
                    f"its reference returns {result.name} as {value.dtype}{where}, though its arguments are float64, "
                    f"so right answers are compared with what it has rounded: compute in float64"
                    f"{_where(exercise.reference)}"
                )


def _is_rounded(value, case):
    """Whether a result has fewer digits than the arguments, and no argument asks for that."""
    given = (*case.arguments, *case.options.values())
    of_float64 = any(getattr(one, "dtype", None) == np.float64 for one in given)
    return of_float64 and "dtype" not in case.options and value.dtype.kind == "f" and value.dtype.itemsize < 8


def _about_draws(exercise, limit):
    """Whether the right results are those of one way to draw random numbers. A class whose constructor is given may
    draw there."""
    if "__init__" in exercise.given:
        return
    with limit("the reference"):
        trials = Trials(exercise, SEEDS[0])
        expected = trials.expected
    for number, case in enumerate(trials.cases):
        if not case.raises:
            with limit("the reference"), _other_draws(case) as redrawn:
                results = trials.results(case, attempt(exercise, exercise.reference, redrawn))
            if results is None or not all(map(close, results, expected[number])):
                where = f" with {case.label}" if case.label else ""
                return (
                    f"its results{where} are exact draws of a generator, and a right answer may draw in another way: "
                    "compare in `view` what does not depend on the draws, or call the answer in `drive` so that it "
                    f"does not{_where(exercise.cases)}"
                )


@contextmanager
def _other_draws(case):
    """The case with other generators; inside the block, those that are made from a seed give other numbers, too."""
    made = np.random.default_rng

    def other(value):
        return made(SEEDS) if isinstance(value, np.random.Generator) else value

    options = {name: other(value) for name, value in case.options.items()}
    np.random.default_rng = lambda seed=None: made([*SEEDS, seed] if isinstance(seed, int | np.integer) else seed)
    try:
        yield replace(case, arguments=tuple(map(other, case.arguments)), options=options)
    finally:
        np.random.default_rng = made


def _about_stub(exercise, _):
    try:
        text = stub_file([exercise])
    except (OSError, KeyError, AttributeError) as error:
        return f"the students' file cannot be written. {type(error).__name__}: {error}"
    line = next((line for line in text.splitlines() if "homework.sheets.own" in line), None)
    if line:
        names = line.partition(" import ")[2]
        return f"its signature uses {names} of this file, which the students' file cannot import: write the value"
    try:
        exec(compile(text, "homework.py", "exec"), {"__name__": "homework"})
    except (Exception, SystemExit) as error:
        return f"the students' file cannot be imported. {type(error).__name__}: {error}"


def _about_answer(exercise, limit):
    try:
        answer = exercise.variant()
    except (Exception, SystemExit) as error:
        return f"its answer cannot be made. {crash_of(error).told}"
    for seed in SEEDS:
        verdict = verdict_on(exercise, answer, seed, limit)
        if not verdict.passed:
            said, below = re.fullmatch(r"[^:]*: (.*?)\.\n(.*)", f"{verdict.message}\n", re.DOTALL).groups()
            below = "" if verdict.misconception in exercise.mistakes else below  # they rewrite this very answer
            return f"its answer is not right: {' '.join(said.split())}{_where(exercise.answer)}\n{below}".rstrip()
    try:
        Task(Trials(exercise, SEEDS[0]))
    except Exception as error:
        return f"`grade` cannot send it to a submission. {error}"


def _about_rewrites(exercise, _):
    yield from exercise.mistakes.problems()


def _about_mistakes(exercise, limit):
    names = list(exercise.mistakes)
    trials = Trials(exercise, SEEDS[0])
    found = {}
    for name in names:
        try:
            with limit(name):
                found[name] = [trials.variant_on({name}, i) for i in range(len(trials.cases))]
        except Stopped:
            yield f"{name!r} does not end; a mistake must return or raise"
            return
    for name, of in found.items():
        crashes = [tried.crash for case, (_, tried) in zip(trials.cases, of, strict=True) if not case.raises]
        if all(crashes):
            yield from _about_crashes(name, crashes, exercise.mistakes[name])
    right = [name for name in names if all(map(_as_expected, trials.cases, found[name], trials.expected))]
    yield from (f"{name!r} is no mistake: it is right in every case. Add a case in which it is wrong" for name in right)
    alike = [(a, b) for a, b in combinations(names, 2) if a not in right and all(map(_alike, found[a], found[b]))]
    for a, b in alike:
        yield f"{a!r} and {b!r} look alike: add a case in which they give something different, or drop one of them"
    known = {*right, *(name for pair in alike for name in pair)}
    for name in names:
        if name not in known:
            verdict = verdict_on(exercise, exercise.variant({name}), SEEDS[0], limit)
            if verdict.misconception != name:
                instead = verdict.misconception if verdict.misconception != TOO_LONG else None
                told = f"as {instead!r}" if instead else "by no mistake"
                yield f"the text of {name!r} is never read: an answer with this mistake is explained {told}"


def _about_crashes(name, crashes, text):
    """The problems of a mistake that raises an exception in every case. A student's exception of the same message is
    explained by it, whatever its cause."""
    kinds = " or ".join(dict.fromkeys(crash.kind for crash in crashes))
    if not any(crash.kind in text for crash in crashes):
        yield (
            f"{name!r} raises {kinds} in every case, of which its text says nothing: correct the rewrite, or name the "
            "exception in the text"
        )
    elif usual := next((crash.text for crash in crashes if _USUAL.search(crash.text)), ""):
        yield (
            f"{name!r} raises {kinds} in every case with the message {usual!r}, as other mistakes do, whose students "
            "would read its text: drop it, or let it return something wrong"
        )


_USUAL = re.compile(
    r"index out of range|division by zero|^(local |free )?(name|variable) '|cannot access local variable|"
    r"object is not (subscriptable|iterable|callable)|has no (attribute|len\(\))|recursion depth|unexpected keyword|"
    r"(missing|takes) .* positional argument|not enough values|too many values|^there is no "
)


def _as_expected(case, variant, expected):
    results, tried = variant
    if case.raises:
        return bool(tried.crash) and tried.crash.kind == case.raises
    return results is not None and not tried.changed and all(map(close, results, expected))


def _alike(first, second):
    (results, tried), (others, other) = first, second
    if results is None or others is None:
        crashes = [t.crash and (t.crash.kind, t.crash.text) for t in (tried, other)]
        return results is others and crashes[0] is not None and crashes[0] == crashes[1]
    return tried.changed == other.changed and all(map(close, results, others))


HINDRANCES = _about_cases, _about_running  # with a problem in these, nobody can be graded
DOUBTS = _about_answer, _about_rewrites  # with one in these, right answers are wrong, or no wrong one is explained
STEPS = (  # each returns its one problem, or yields them
    _about_fields, _about_cases, _about_inputs, _about_running, _about_reference, _about_draws, _about_stub,
    _about_rewrites, _about_answer, _about_mistakes,
)  # fmt: skip
