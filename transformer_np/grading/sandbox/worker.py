"""Inside: a process that loads NumPy and forks for every exercise; the fork tries the exercise.

The first process runs no line of a submission. The fork leaves it for namespaces of its own, so that nothing of one
exercise is there for the next. Both get what they need through sockets; no answer is in their memory, and in bubblewrap
none is in their file system.
"""

import builtins
import gc
import os
import pickle
import shutil
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from types import SimpleNamespace

import numpy.ma
import numpy.random  # noqa: F401 - NumPy loads both when they are first used: here, once, not in every process

from ...homework.guard import no_input, safe_numpy
from ...homework.judging.attempt import Attempt, attempt_with, copies
from ...homework.judging.crash import crash_of
from ...homework.loading import MOST_TRIED, execute, ranked
from ...homework.standins import Finder, is_stood_for, leave, unchecked  # noqa: F401 - `given` takes one from there
from . import given, limits
from .limits import APART, TRUSTED
from .process import received
from .wire import CHANGEABLE, ENDED, pack

_ENDING = 0.05  # seconds for a process that has closed its socket to end by itself


def serve(control, wall, calls, modules):
    """Fork for every exercise that the grader sends, until it is gone. control: the socket to the grader; wall:
    TRUSTED, …; calls: the filter of system calls; modules: the dict of those that can be imported"""
    sys.meta_path.insert(0, Finder(is_stood_for))
    gc.freeze()  # a collection in a process does not copy the memory that it shares with this one
    while sockets := socket.recv_fds(control, 1, 1)[1]:
        scratch = tempfile.mkdtemp(prefix="submission-") if wall == TRUSTED else f"{limits.SCRATCH}/submission"
        child = limits.fork_apart() if wall == APART else os.fork()
        if child == 0:
            control.close()
            _try_exercise(socket.socket(fileno=sockets[0]), scratch, wall, calls, modules)
        os.close(sockets[0])
        with suppress(EOFError, OSError):  # if the grader is gone
            received(control)  # the exercise must end
        ended = _ended(child)
        if wall == TRUSTED:
            shutil.rmtree(scratch, ignore_errors=True)
        with suppress(OSError):
            control.send(ENDED.pack(*ended))
    os._exit(0)


def _ended(child):
    """(exit code, seconds of processor time) of a process, which is killed after a moment with all that it started."""
    until, pid = time.monotonic() + _ENDING, 0
    while not pid and time.monotonic() < until:
        pid, status, used = os.wait4(child, os.WNOHANG)
        if not pid:
            time.sleep(0.001)
    for kill in (os.killpg,) if pid else (os.killpg, os.kill):
        with suppress(OSError):
            kill(child, signal.SIGKILL)
    if not pid:
        _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code, used.ru_utime + used.ru_stime


# --- the process of an exercise --------------------------------------------------------------------------------------


@safe_numpy()
def _try_exercise(report, scratch, wall, calls, modules):
    code = 1
    try:
        os.setpgid(0, 0)
        job = received(report)
        if wall == APART:
            limits.leave_everything()
        if wall != TRUSTED:
            os.mkdir(scratch)
        exercise, cases = _prepared(job, scratch, modules)
        layers = ["own process", "bubblewrap", "own namespaces"][: 1 + wall]
        layers += ["limits"] * limits.set_limits(job["memory"], job["processor_seconds"], wall != TRUSTED)
        layers += ["system calls"] * limits.refuse_calls(calls)
        if missing := sorted({*job["walls"]} - {*layers}):
            raise RuntimeError(f"a wall that stood at the start is missing: {', '.join(missing)}")
        report.sendall(pack({"kind": "started", "error": "", "layers": layers}))
        _run(job, exercise, cases, scratch, report)
        code = 0
    except BaseException as error:
        with suppress(OSError):
            report.sendall(pack({"kind": "started", "error": f"{type(error).__name__}: {error}"}))
    finally:
        os._exit(code)


def _prepared(job, scratch, modules):
    """(the exercise, its inputs), for which this process is made ready."""
    os.chdir(scratch)
    os.environ.update(dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR"), scratch))
    tempfile.tempdir, builtins.input = None, no_input
    builtins.exit = builtins.quit = leave  # which Python makes only outside of -S
    for name, content in job["files"].items():
        os.makedirs(os.path.dirname(os.path.join(scratch, name)), exist_ok=True)
        with open(os.path.join(scratch, name), "wb") as file:
            file.write(content)
    sys.path.append(scratch)
    task = job["task"]
    for name in task["modules"]:
        sys.modules.pop(name, None)  # loaded with less in it
    modules.update(task["modules"])
    drive, parts, signatures = pickle.loads(task["call"])
    exercise = SimpleNamespace(name=task["name"], reference=_stand_in(signatures), drive=drive, parts=parts)
    return exercise, pickle.loads(task["inputs"])


def _stand_in(signatures):
    """What has the signatures of the reference, a function or a class."""

    def with_signature(one):
        def reference():
            raise NotImplementedError

        reference.__signature__ = one
        return reference

    made = {name: with_signature(one) for name, one in signatures.items()}
    return made[None] if None in made else type("reference", (), made)


def _run(job, exercise, cases, scratch, report):
    modules, found, below = [], [], os.path.join(scratch, "")

    def begin(*_):
        report.sendall(pack({"kind": "piece"}))

    for name, file in job["load"].items():
        path = os.path.join(scratch, name)
        module, of_file, error = execute(name, path, names=job["names"], caught=BaseException, begin=begin, **file)
        modules.append(module.__name__)
        found.append(of_file)
        report.sendall(pack({"kind": "loaded", "file": name, "crash": error and _told(crash_of(error), below)}))
    modules += [n for n, m in list(sys.modules.items()) if str(getattr(m, "__file__", "")).startswith(below)]
    definitions = ranked(found, exercise.name, modules)[:MOST_TRIED]
    kinds = ["" if callable(one.value) else type(one.value).__name__ for one in definitions]
    places = [[one.file, one.cell, one.line, kind] for one, kind in zip(definitions, kinds, strict=True)]
    defined = sorted({name for of_file in found for name in of_file})
    report.sendall(pack({"kind": "found", "definitions": places, "defined": defined}))
    for case in cases if definitions else ():
        report.sendall(try_case(exercise, definitions[job["which"]].value, case, below))


def try_case(exercise, answer, case, below=""):
    """The message on the call of an answer with copies of a case's arguments and options. below: the beginning of the
    names of a submission's files, which nobody reads"""
    arguments, options = copies(*case)
    del given.called[:]
    try:
        tried = attempt_with(exercise, answer, arguments, options)
    except BaseException as error:  # a KeyboardInterrupt, or an object that raises when it is read
        tried = Attempt(crash=crash_of(error))
    message = {
        "kind": "tried", "crash": tried.crash and _told(tried.crash, below), "called": sorted({*given.called}),
        "broken": tried.broken, "shares": tried.shares,
    }  # fmt: skip
    # the grader compares the arguments with its own
    after = [value for value in (*arguments, *options.values()) if type(value) in CHANGEABLE]
    try:
        return pack(message, tried.output, after)
    except Exception as error:  # too large, or an object that raises when it is read
        return pack(message | {"crash": {"kind": type(error).__name__, "text": str(error)[:1000]}})


def _told(crash, below):
    """A Crash for a message."""
    return {name: str(value).replace(below, "")[:8000] for name, value in asdict(crash).items()}
