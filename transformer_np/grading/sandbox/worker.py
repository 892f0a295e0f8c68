"""Inside: a process that loads NumPy and forks for every exercise; the fork tries the exercise.

The first process runs no line of a submission. The fork leaves it for namespaces of its own, so that nothing of one
exercise is there for the next. Both get what they need through pipes; no answer is in their memory, and in bubblewrap
none is in their file system.
"""

import builtins
import gc
import linecache
import os
import pickle
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
from dataclasses import asdict
from types import SimpleNamespace

import numpy.ma
import numpy.random  # noqa: F401 - NumPy loads both when they are first used: here, once, not in every process

from ...homework.guard import no_input, safe_numpy
from ...homework.judging.attempt import Attempt, attempt_with, copies
from ...homework.judging.crash import Crash, crash_of
from ...homework.loading import MOST_TRIED, execute, ranked
from ...homework.standins import give_exit, stand_in, unchecked  # noqa: F401 - `given` takes two of them from there
from . import given, limits
from .limits import APART, TRUSTED
from .wire import CHANGEABLE, pack

_ENDING = 0.05  # seconds for a process that has closed its pipe to end by itself


def serve(control, wall, calls):
    """Fork for every exercise that the grader sends. control: the socket to the grader; wall: TRUSTED, …; calls: the
    filter of system calls"""
    gc.freeze()  # a collection in a process does not copy the memory that it shares with this one
    child, scratch = None, None
    while True:
        command, sockets, *_ = socket.recv_fds(control, 1, 1)
        if command == b"t":
            scratch = tempfile.mkdtemp(prefix="submission-") if wall == TRUSTED else f"{limits.SCRATCH}/submission"
            child = limits.fork_apart() if wall == APART else os.fork()
            if child == 0:
                control.close()
                _try_exercise(*sockets, scratch, wall, calls)
            os.close(*sockets)
        elif child:
            ended = _ended(child, _ENDING if command == b"e" else 0)
            if wall == TRUSTED:
                shutil.rmtree(scratch, ignore_errors=True)
            child = None
            if command:
                control.send(struct.pack("<if", *ended))
        if not command:  # the grader is gone
            os._exit(0)


def _ended(child, seconds):
    """(exit code, seconds of processor time) of a process, which is killed after some seconds with all that it
    started."""
    until = time.monotonic() + seconds
    while True:
        pid, status, used = os.wait4(child, os.WNOHANG)
        if pid or time.monotonic() >= until:
            break
        time.sleep(0.001)
    for kill in (os.killpg,) if pid else (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except OSError:
            pass
    if not pid:
        _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code, used.ru_utime + used.ru_stime


# --- the process of an exercise --------------------------------------------------------------------------------------


def _try_exercise(report, scratch, wall, calls):
    code = 1
    try:
        os.setpgid(0, 0)
        with open(report, "rb", closefd=False) as job:
            job = pickle.load(job)
        if wall == APART:
            limits.leave_everything()
        if wall != TRUSTED:
            os.mkdir(scratch)
        layers = ["own process", "bubblewrap", "own namespaces"][: 1 + wall]
        _inside(job, report, scratch, layers, calls)
        code = 0
    except BaseException as error:
        try:
            _write(report, pack({"kind": "broken", "text": f"{type(error).__name__}: {error}"}))
        except OSError:
            pass
    finally:
        os._exit(code)


@safe_numpy()
def _inside(job, report, scratch, layers, calls):
    os.chdir(scratch)
    builtins.input = no_input
    give_exit()
    os.environ.update(dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR"), scratch))
    task = job["task"]
    for name in task["modules"]:
        sys.modules.pop(name, None)  # loaded with less in it
    given.finder().modules.update(task["modules"])
    exercise = SimpleNamespace(
        name=task["name"], reference=_stand_in(task), drive=pickle.loads(task["drive"]), parts=task["parts"]
    )
    cases = pickle.loads(task["inputs"])
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None) or ""
        if module.__name__.startswith(given.PACKAGE):
            linecache.cache[file] = (0, None, [], file)  # a traceback does not look for these files
    for name, content in job["files"].items():
        os.makedirs(os.path.dirname(os.path.join(scratch, name)), exist_ok=True)
        with open(os.path.join(scratch, name), "wb") as file:
            file.write(content)
    sys.path.append(scratch)
    tempfile.tempdir = None
    if limits.set_limits(job["memory"], job["processor_seconds"], "bubblewrap" in layers):
        layers.append("limits")
    limits.leave_no_core()
    if limits.refuse_calls(calls):
        layers.append("system calls")
    missing = sorted(set(job["walls"]) - set(layers))
    if missing:
        raise RuntimeError(f"a wall that stood at the start is missing: {', '.join(missing)}")
    _write(report, pack({"kind": "ready", "layers": layers, "scratch": scratch}))
    _run(job, exercise, cases, scratch, report)


def _stand_in(task):
    """A stand-in for the reference, with its name and signatures."""

    def named(name, its_signature):
        def reference(*args, **kwargs):
            raise NotImplementedError

        reference.__name__ = reference.__qualname__ = name
        reference.__signature__ = its_signature
        return reference

    signatures = pickle.loads(task["signatures"])
    if None in signatures:
        return named(task["name"], signatures[None])
    return type(task["name"], (), {name: named(name, s) for name, s in signatures.items()})


def _run(job, exercise, cases, scratch, report):
    modules, found = [], []
    for name, file in job["load"].items():
        _write(report, pack({"kind": "loading", "file": name}))
        path = os.path.join(scratch, name)
        module, of_file, error = execute(name, path, file["pieces"], job["names"], file["skipped"], BaseException)
        modules.append(module.__name__)
        found.append(of_file)
        crash = error and _as_texts(crash_of(error))
        _write(report, pack({"kind": "loaded", "file": name, "crash": crash, "defined": sorted(of_file)}))
    below = os.path.join(scratch, "")
    modules += [n for n, m in list(sys.modules.items()) if str(getattr(m, "__file__", "")).startswith(below)]
    definitions = ranked(found, exercise.name, modules)[:MOST_TRIED]
    kinds = ["" if callable(one.value) else type(one.value).__name__ for one in definitions]
    places = [[one.file, one.cell, one.line, kind] for one, kind in zip(definitions, kinds, strict=True)]
    _write(report, pack({"kind": "found", "definitions": places}))
    answer = definitions[job["which"]].value if definitions else None
    for number, case in enumerate(cases):
        _write(report, try_case(exercise, answer, number, case))


def _as_texts(crash):
    return {name: str(value)[:8000] for name, value in asdict(crash).items()}


def try_case(exercise, answer, number, case):
    """The message on the call of an answer, or of None, with copies of a case's arguments and options."""
    arguments, options = copies(*case)
    del given.called[:]
    if answer is None:
        tried = Attempt(crash=Crash("NotImplementedError", "", "", ""))
    else:
        try:
            tried = attempt_with(exercise, answer, arguments, options)
        except BaseException as error:  # a KeyboardInterrupt, or an object that raises when it is read
            tried = Attempt(crash=crash_of(error))
    message = {
        "kind": "tried", "exercise": exercise.name, "case": number,
        "crash": tried.crash and _as_texts(tried.crash), "broken": tried.broken, "shares": tried.shares,
        "called": sorted(set(given.called))[:20], "missing": answer is None,
    }  # fmt: skip
    # the grader compares the arguments with its own
    after = [value for value in (*arguments, *options.values()) if type(value) in CHANGEABLE]
    try:
        return pack(message, tried.output, after)
    except Exception as error:  # too large, or an object that raises when it is read
        message["crash"] = {"kind": type(error).__name__, "text": str(error)[:1000], "where": "", "trace": ""}
        return pack(message)


def _write(report, content):
    content = memoryview(content)
    while content:
        content = content[os.write(report, content) :]
