"""The keeper: `python -I -S -c "… main(…)"`. It loads NumPy and the library, and forks for every exercise.

The fork is the outer of two processes: it enters namespaces of its own, waits and cleans up. The inner one isolates
itself, removes the library's answers, reads its job, loads the submission and tries one exercise.
"""

import linecache
import os
import pickle
import select
import shutil
import signal
import struct
import sys
import tempfile
from dataclasses import asdict
from types import ModuleType

import numpy as np

from ...homework.exercise import Exercise
from ...homework.judging.attempt import Attempt, Crash, attempt_with, crash_of
from ...homework.path import all_exercises, use_exercises
from . import answers, isolation, limits
from .scan import COMPUTE, scan
from .wire import pack


def main(wrapped, control, inputs, report, status):
    """wrapped: in bubblewrap; control, inputs, report, status: the child's ends of a Keeper's pipes"""
    answers.load_library()
    use_exercises(_read(inputs))
    all_exercises()
    kept = _read(inputs)
    if kept is not None:
        answers.empty_everything(kept)
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    child, scratch = None, None
    while True:
        ready = select.select([control, awake], [], [])[0]
        if awake in ready:
            os.read(awake, 100)
            if child is not None:
                pid, code = os.waitpid(child, os.WNOHANG)
                if pid:
                    child = None
                    _remove(scratch)
                    os.write(status, struct.pack("<i", _exit_code(code)))
        if control in ready:
            command = os.read(control, 1)
            if command == b"t":
                scratch = f"{tempfile.gettempdir()}/submission-{os.getpid()}-{os.urandom(8).hex()}"
                keeper, child = os.getpid(), os.fork()
                if child == 0:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for pipe in (control, status, awake, wake):
                        os.close(pipe)
                    try:
                        _outer(wrapped, inputs, report, keeper, scratch, kept is not None)
                    finally:
                        os._exit(1)
            elif child is not None:
                os.kill(child, signal.SIGTERM)
                if not command:  # the grader is gone
                    os.waitpid(child, 0)
                    _remove(scratch)
            if not command:
                os._exit(0)


def _read(inputs):
    with open(inputs, "rb", buffering=0, closefd=False) as pipe:
        content, size = bytearray(), None
        while size is None or len(content) < size:
            content += pipe.read(8 if size is None else size - len(content)) or sys.exit(1)
            if size is None and len(content) == 8:
                (size,), content = struct.unpack("<Q", content), bytearray()
    return pickle.loads(content)


def _exit_code(status):
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _remove(folder):
    """Delete a folder, including entries without write permission."""

    def again(function, path, _):
        try:
            for place in (os.path.dirname(path), path):
                if not os.path.islink(place):
                    os.chmod(place, 0o700)
            function(path)
        except OSError:
            pass

    if os.path.lexists(folder):
        shutil.rmtree(folder, onerror=again)


# --- the outer process of an exercise --------------------------------------------------------------------------------


def _outer(wrapped, inputs, report, keeper, scratch, emptied):
    namespaces = isolation.enter_namespaces()
    layers = ["own process", *(["bubblewrap"] if wrapped else []), *(f"{name} namespace" for name in namespaces)]
    if limits.die_with(keeper):
        layers.append("ends with its parent")
    limits.adopt_orphans()
    outer = os.getpid()
    inner = os.fork()
    if inner == 0:
        code = 1
        try:
            limits.die_with(0 if "process" in namespaces else outer)
            os.setpgid(0, 0)
            _inside(inputs, report, layers, namespaces, scratch, emptied)
            code = 0
        except BaseException as error:
            _last_words(report, error)
        finally:
            os._exit(code)
    os.close(report)
    os.close(inputs)
    os._exit(_wait_for(inner))


def _last_words(report, error):
    """Report an error of the sandbox itself; a submission's errors are caught earlier."""
    try:
        _write(report, pack({"kind": "broken", "text": f"{type(error).__name__}: {error}"}))
    except OSError:
        pass


def _wait_for(inner):
    """The exit code of the inner process, or 128 + the signal that ended it; afterwards its processes are gone."""

    def stop(*_):
        raise SystemExit

    code = 1
    try:
        signal.signal(signal.SIGTERM, stop)
        while True:
            pid, status = os.wait()
            if pid == inner:
                code = os.waitstatus_to_exitcode(status)
                break
    except (SystemExit, ChildProcessError):
        pass
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for kill in (lambda: os.killpg(inner, signal.SIGKILL), lambda: os.kill(inner, signal.SIGKILL)):
        try:
            kill()
        except OSError:
            pass
    _kill_children()
    return code if code >= 0 else 128 - code


def _kill_children():
    """Kill the orphans of the inner process, which have become children of this one."""
    for _ in range(1000):
        try:
            with open(f"/proc/self/task/{os.getpid()}/children") as file:
                for pid in file.read().split():
                    os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass
        try:
            os.wait()
        except ChildProcessError:
            return


# --- the inner process -----------------------------------------------------------------------------------------------


def _inside(inputs, report, layers, namespaces, scratch, emptied):
    job = _read(inputs)
    os.close(inputs)
    bounded = "mount" in namespaces and isolation.bounded_folder([*sys.path, os.path.realpath(sys.executable)])
    if bounded:
        scratch = bounded
        layers.append("folder in memory")
    else:
        os.mkdir(scratch, 0o700)
    os.chdir(scratch)
    os.environ.update(dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR"), scratch))
    if limits.no_new_privileges():
        layers.append("no new privileges")
    if limits.drop_capabilities():
        layers.append("no capabilities")

    task = job.pop("task")
    exercise, given = _prepare(task, emptied)
    for name, content in job["files"].items():
        os.makedirs(os.path.dirname(os.path.join(scratch, name)), exist_ok=True)
        with open(os.path.join(scratch, name), "wb") as file:
            file.write(content)
    known = list(sys.path)
    sys.path[:] = [p for p in sys.path if p not in job["hidden"]] + [scratch]
    answers.hollow_the_rest()
    tempfile.tempdir = None

    if limits.set_limits(job["memory"], job["processor_seconds"]):
        layers.append("limits")
    read, listed = isolation.readable_places(job["hidden"])
    if isolation.landlock(read, listed, [scratch]):
        layers.append("Landlock")
    if isolation.seccomp():
        layers.append("seccomp")
    notes = {os.path.join(p, name): _note(name) for p in known for name in (*COMPUTE, answers.PACKAGE)}

    def note(path):
        """Tell the grader at once, so that the submission cannot take it back."""
        for place in [place for place in notes if path.startswith(place + os.sep)]:
            _write(report, notes.pop(place))

    # an in-memory folder is small; on disk a submission could write without limit
    if isolation.audit(read, listed, [scratch], None if bounded or "bubblewrap" in layers else 100, note):
        layers.append("audit hook")
    missing = sorted(set(job["walls"]) - set(layers))
    if missing:
        raise RuntimeError(f"a wall that stood at the start is missing: {', '.join(missing)}")
    _write(report, pack({"kind": "ready", "layers": layers, "scratch": scratch}))
    _run(job, exercise, given, scratch, report)


def _note(name):
    return pack({"kind": "noted", "text": name})


def _prepare(task, emptied):
    """The exercise without its answer, and the inputs; afterwards the library's answers are gone."""
    drive, inputs = task["kept"][0], pickle.loads(task["inputs"])
    exercise = Exercise(_stand_in(task), (), None, {}, None, ("", "", ""), 1, "", drive, None, task["parts"])
    if task["library"]:
        answers.empty_one(all_exercises()[task["name"]], task["kept"], all_exercises().values())
    elif not emptied:
        answers.empty_everything(task["kept"])
    for file in [getattr(m, "__file__", None) for n, m in sys.modules.items() if n.startswith(answers.PACKAGE)]:
        linecache.cache[file] = (0, None, [], file)  # a traceback does not open these files
    gone = f"{answers.HOMEWORK}.sheets", f"{answers.HOMEWORK}.judging.judge"
    for name in [name for name in sys.modules if name.startswith(gone)]:
        del sys.modules[name]
    return exercise, inputs


def _stand_in(task):
    """A stand-in for the reference, with its name and signatures."""

    def named(name, its_signature):
        def reference(*args, **kwargs):
            raise NotImplementedError

        reference.__name__ = reference.__qualname__ = name
        reference.__signature__ = its_signature
        return reference

    if None in task["signatures"]:
        return named(task["name"], task["signatures"][None])
    return type(task["name"], (), {name: named(name, s) for name, s in task["signatures"].items()})


def _run(job, exercise, inputs, scratch, report):
    scans = {name: scan(content, [*job["names"]]) for name, content in job["files"].items()}
    modules = []
    for name in job["files"]:
        _write(report, pack({"kind": "loading", "file": name, "remarks": scans[name]}))
        module, crash = _load(os.path.join(scratch, name), name)
        modules.append(module)
        defined = [known for known in job["names"] if callable(vars(module).get(known))]
        _write(report, pack({"kind": "loaded", "file": name, "crash": crash, "defined": defined}))
    answer, missing, array = _find(modules, exercise.name), "there is none", np.ndarray
    for number, (arguments, options) in enumerate(inputs):
        del answers.called[:]
        if answer is None:
            tried = Attempt(crash=Crash("NotImplementedError", "", "", ""))
        else:
            missing = ""
            try:
                tried = attempt_with(exercise, answer, arguments, options)
            except BaseException as error:  # a KeyboardInterrupt, or an object that raises when it is read
                tried = Attempt(crash=crash_of(error))
        # the grader compares the arguments with its own
        after = [value for value in (*arguments, *options.values()) if type(value) is array]
        message = {
            "kind": "tried",
            "exercise": exercise.name,
            "case": number,
            "crash": tried.crash and {k: str(v)[:8000] for k, v in asdict(tried.crash).items()},
            "called": sorted(set(answers.called))[:20],
            "missing": missing,
        }
        try:
            content = pack(message, tried.output, after)
        except Exception as error:  # too large, or an object that raises when it is read
            message["crash"] = {"kind": type(error).__name__, "text": str(error)[:1000], "where": "", "trace": ""}
            content = pack(message)
        _write(report, content)


def _write(report, content):
    content = memoryview(content)
    while content:
        content = content[os.write(report, content) :]


def _load(path, name):
    """The module of a file, as far as it was executed, and its Crash or None."""
    short = name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    known = sys.modules.get(short)
    if getattr(known, "__file__", None) == path:  # another file has imported it
        return known, None
    if known is not None or short in sys.stdlib_module_names:
        short = f"submission.{short}"
    module = ModuleType(short)
    module.__file__ = path
    module.__package__ = short if name.endswith("__init__.py") else short.rpartition(".")[0]
    sys.modules[short] = module
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec")
        exec(code, vars(module))
    except BaseException as error:
        return module, {k: str(v)[:8000] for k, v in asdict(crash_of(error)).items()}
    return module, None


def _find(modules, name):
    """The answer to an exercise; among several, one that the submission itself defines."""
    found = [vars(module)[name] for module in modules if name in vars(module) and callable(vars(module)[name])]
    own = {module.__name__ for module in modules}
    return next((answer for answer in found if getattr(answer, "__module__", None) in own), found[0] if found else None)
