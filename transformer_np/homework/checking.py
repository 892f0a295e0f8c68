"""Checking one answer, in this process."""

from contextlib import nullcontext, suppress
from dataclasses import replace

import numpy as np

from ..support.checks import check_at_least, check_kind
from .course import course_at, exercises_of
from .guard import guarded, unheard
from .judging.attempt import attempt
from .judging.crash import crash_of, warn_of
from .judging.family import Family
from .judging.finding import findings
from .judging.judge import judge, not_started
from .judging.objects import outdated_file
from .judging.place import find_place
from .judging.syntax import order_of
from .judging.trials import Trials
from .judging.words import wrapped
from .limit import SECONDS, Stopped, TimeLimit
from .path import find
from .record import bar, note
from .remarks import crashed, of_library_in
from .swap import refuse_inside_using

TOO_LONG = "takes too long"

_OUTDATED = (
    "{file} has changed since it was loaded: this is the verdict on its old code. Restart the kernel and run the cells "
    "again. With `%load_ext autoreload` and `%autoreload 2` before the import, changes count at once."
)
_ENDLESS = (
    "The exercise's own code took longer than {seconds:g} s, not the answer. If the machine is not busy, report it to "
    "the teacher: a call of the reference does not end."
)
_FAILS = (
    "The exercise's own code fails, not the answer: {what}. Report it to the teacher, whom `transformer-np homework "
    "verify` tells the line."
)


def check(name, answer, *, seed=None, quiet=False, time_limit=SECONDS):
    """Check an answer to an exercise, print the verdict and return it.

        check("softmax_backward", my_softmax_backward)

    name: of the exercise, which is the name of the library's function or class
    answer: a function or class with the same signature
    seed: of the inputs; None draws new inputs every time
    quiet: print nothing
    time_limit: seconds after which the answer is stopped; the verdict then shows the line that was running

    ->  a Verdict: .passed, .outcome, .misconception, .message. Raises ValueError for an unknown name, RuntimeError
    inside `using`. If this folder has a progress.json (`transformer-np start`), the verdict is recorded there. If it
    has a course.toml, a teacher's exercises that this names are known, too.
    """
    check_kind("name", name, str)
    if seed is not None:
        check_at_least("seed", seed, 0)
    limit = TimeLimit(time_limit)
    with exercises_of(limit=limit) as path:
        exercise = find(name)
        verdict = verdict_on(exercise, answer, seed, limit)
        if file := outdated_file(answer):
            verdict = replace(verdict, message=f"{verdict.message}\n{wrapped(_OUTDATED.format(file=file.name))}")
        with suppress(Exception):  # an object whose code cannot be read
            for remark in of_library_in(exercise, Family(answer)):
                verdict = replace(verdict, message=f"{verdict.message}\n{wrapped(remark)}")
        entries = note([verdict])
        if not quiet:
            print(verdict.message)
            if entries is not None:
                print(bar(entries, course_at(path)))
    return verdict


def verdict_on(exercise, answer, seed, limit):
    """The verdict on an answer, which may run for as long as the TimeLimit allows."""
    refuse_inside_using()
    seed = np.random.SeedSequence().entropy % 2**32 if seed is None else seed
    if not callable(answer):
        return crashed(exercise.name, f"It must be a function or a class, got {type(answer).__name__}.", seed)
    try:
        with limit(exercise.name):
            trials, attempts, running = Trials(exercise, seed), [], None
            expected = trials.expected  # before the answer runs: it may change something that the reference uses
    except Stopped as stopped:
        return crashed(exercise.name, _ENDLESS.format(seconds=stopped.seconds), seed, TOO_LONG)
    except (Exception, SystemExit) as error:  # a teacher's cases
        return crashed(exercise.name, _FAILS.format(what=crash_of(error).kind), seed)
    if any(results is None and not case.raises for case, results in zip(trials.cases, expected, strict=True)):
        return crashed(exercise.name, _FAILS.format(what="its reference gives no result"), seed)
    try:
        with guarded(), limit(exercise.name) as over:
            for running in trials.cases:
                with nullcontext() if not attempts else unheard():  # what it prints is shown once
                    attempts.append(attempt(exercise, answer, running))
                if attempts[0].not_started:
                    return not_started(trials, attempts[0])
                if over():  # and the answer went on
                    break
        found, pointed, order = None, None, ()
        try:
            with limit(exercise.name):
                found = findings(trials, attempts)
                family = None if all(finding.right for finding in found) else Family(answer)
                order = order_of(exercise, family.tree) if family else ()
            pointed = family and _pointed(trials, family, found, limit)
            with limit(exercise.name):
                return judge(trials, found, pointed, order)
        except Stopped:  # the exercise's own code with a mistake made in it is slow, or does not end
            with limit(exercise.name):
                found = found or findings(trials, attempts)
                return judge(trials, found, pointed, order, is_brief=True)
    except Stopped as stopped:
        return crashed(exercise.name, _about_time(stopped, running), seed, TOO_LONG)
    except (Exception, SystemExit) as error:  # the answer returned an object that raises when it is read
        return crashed(exercise.name, f"It returned an object that cannot be read: {crash_of(error).kind}.", seed)


def _pointed(trials, family, found, limit):
    """What is known about the lines of the answer of a Family, a Pointed or None."""
    try:
        with limit(trials.exercise.name):
            return find_place(trials, family, found)
    except Stopped:  # a changed answer does not end
        return None
    except Exception as error:  # its results raise when they are read
        warn_of(error, trials.exercise.name)
        return None


def _about_time(stopped, case):
    """The text for a student about an answer that was stopped; case: None if the time was over before the first."""
    stopped_in = f" It was stopped with {case.label}." if case is not None and case.label else ""
    running = f" This line was running:\n{stopped.trace}\n" if stopped.trace else "\n"
    return (
        f"It took longer than {stopped.seconds:g} s.{stopped_in}{running}"
        "Does every loop come to an end? If the answer is only slow, raise the time limit."
    )
