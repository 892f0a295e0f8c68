"""The child: `python -I -S -c "… main(job, report)"`. It isolates itself, loads one submission and tries its answers.

The outer of two processes waits and cleans up; the inner one has its own namespaces and runs the submission.
"""

import ast
import os
import pickle
import signal
import sys
from dataclasses import asdict
from types import ModuleType

from . import isolation, limits

# imports that the teacher is told about
_FRAMEWORKS = ("torch", "tensorflow", "jax", "keras", "cupy", "autograd", "scipy")


def main(job, report, parent):
    """job: path of a pickle from the parent; report: file descriptor of a pipe to it; parent: its process id"""
    namespaces = isolation.enter_namespaces()
    layers = ["own process", *(f"{name} namespace" for name in namespaces)]
    if limits.die_with(parent):
        layers.append("ends with its parent")
    limits.adopt_orphans()
    if not hasattr(os, "fork"):
        _inside(job, report, layers, namespaces)
        return
    outer = os.getpid()
    inner = os.fork()
    if inner == 0:
        code = 1
        try:
            limits.die_with(0 if "process" in namespaces else outer)
            os.setpgid(0, 0)
            _inside(job, report, layers, namespaces)
            code = 0
        except BaseException as error:
            _last_words(report, error)
        finally:
            os._exit(code)
    os.close(report)
    os._exit(_wait_for(inner))


def _last_words(report, error):
    """Report an error of the sandbox itself; a submission's errors are caught earlier."""
    from .wire import pack

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


def _inside(job, report, layers, namespaces):
    with open(job, "rb") as file:
        job = pickle.load(file)
    if "mount" in namespaces and isolation.bounded_folder(job["scratch"]):
        layers.append("folder in memory")
    os.chdir(job["scratch"])
    if limits.no_new_privileges():
        layers.append("no new privileges")
    if limits.drop_capabilities():
        layers.append("no capabilities")

    from . import answers  # loads NumPy, before the isolation
    from .wire import pack

    tasks = _prepare(job, answers)
    for name, content in job["files"].items():
        os.makedirs(os.path.dirname(os.path.join(job["scratch"], name)), exist_ok=True)
        with open(os.path.join(job["scratch"], name), "wb") as file:
            file.write(content)
    sys.path[:] = [p for p in sys.path if p not in job["hidden"]] + [job["scratch"]]
    answers.hollow_the_rest()

    if limits.set_limits(job["memory"], job["processor_seconds"]):
        layers.append("limits")
    read, listed = isolation.readable_places(job["hidden"])
    if isolation.landlock(read, listed, [job["scratch"]]):
        layers.append("Landlock")
    if isolation.seccomp():
        layers.append("seccomp")
    # an in-memory folder is small; on disk a submission could write without limit
    if isolation.audit(read, listed, [job["scratch"]], None if "folder in memory" in layers else 100):
        layers.append("audit hook")
    _write(report, pack({"kind": "ready", "layers": layers}))
    _run(job, tasks, report, answers, pack)


def _prepare(job, answers):
    """The exercises with their cases; afterwards the library's answers are gone."""
    from importlib import import_module

    from ...exercise import Exercise, call
    from ...path import use_exercises

    answers.load_library()
    use_exercises(job["exercises"])
    tasks, drives = [], []
    for task in job["tasks"]:
        drive, cases = call, None
        if task["sheet"]:
            known = {e.name: e for e in import_module(task["sheet"]).EXERCISES}[task["name"]]
            drive = known.drive
            if task["cases"] is None:  # they cannot be sent, so they are drawn here
                from ...judging.judge import Trials

                cases = Trials(known, task["seed"]).cases
        cases = pickle.loads(task["cases"]) if cases is None else cases
        exercise = Exercise(_stand_in(task), (), None, {}, None, ("", "", ""), 1, "", drive, None, task["parts"])
        tasks.append((exercise, cases))
        drives += [drive, *answers.given_in(cases)]
    if job["library"]:
        from ...path import all_exercises

        (name,) = [task["name"] for task in job["tasks"]]
        answers.empty_one(all_exercises()[name], drives, all_exercises().values())
    else:
        answers.empty_everything(drives)
    gone = f"{answers.HOMEWORK}.sheets", f"{answers.HOMEWORK}.judging.judge"
    for name in [name for name in sys.modules if name.startswith(gone)]:
        del sys.modules[name]
    return tasks


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


def _run(job, tasks, report, answers, pack):
    from ...judging.attempt import Attempt, Crash, crash_of
    from ...judging.attempt import attempt as try_case

    scans = {name: _scan(content, [*job["names"]]) for name, content in job["files"].items()}
    modules = []
    for name in job["files"]:
        if name not in job["left_out"]:
            _write(report, pack({"kind": "loading", "file": name, "remarks": scans[name]}))
            module, crash = _load(os.path.join(job["scratch"], name), name, crash_of)
            modules.append(module)
            defined = [exercise for exercise in job["names"] if callable(vars(module).get(exercise))]
            _write(report, pack({"kind": "loaded", "file": name, "crash": crash, "defined": defined}))
    for exercise, cases in tasks:
        answer, missing = _find(modules, exercise.name), "there is none"
        for number, case in enumerate(cases):
            del answers.called[:]
            if answer is None:
                tried = Attempt(crash=Crash("NotImplementedError", "", "", ""))
            else:
                missing = ""
                try:
                    tried = try_case(exercise, answer, case)
                except BaseException as error:  # a KeyboardInterrupt, or an object that raises when it is read
                    tried = Attempt(crash=crash_of(error))
            message = {
                "kind": "tried",
                "exercise": exercise.name,
                "case": number,
                "crash": tried.crash and {k: str(v)[:8000] for k, v in asdict(tried.crash).items()},
                "changed": list(tried.changed),
                "called": sorted(set(answers.called))[:20],
                "missing": missing,
            }
            try:
                content = pack(message, tried.output)
            except Exception as error:  # too large, or an object that raises when it is read
                message["crash"] = {"kind": type(error).__name__, "text": str(error)[:1000], "where": "", "trace": ""}
                content = pack(message)
            _write(report, content)


def _write(report, content):
    content = memoryview(content)
    while content:
        content = content[os.write(report, content) :]


def _load(path, name, crash_of):
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


# --- reading the source ----------------------------------------------------------------------------------------------


def _scan(content, names):
    """Remarks for the teacher on the imports of a file."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found, aliases = [], {}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").partition(".")[0] == "transformer_np"
            and not node.level
        ):
            for alias in node.names:
                aliases[alias.asname or alias.name] = alias.name
                if alias.name in names:
                    found.append(f"imports the library's {alias.name}")
                if alias.name == "*":
                    found.append(f"imports everything from {node.module}")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            for alias in node.names if isinstance(node, ast.Import) else ():
                if alias.name.partition(".")[0] == "transformer_np":
                    aliases[alias.asname or "transformer_np"] = alias.name
            found += [f"imports {name}" for m in modules if (name := m.partition(".")[0]) in _FRAMEWORKS]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in names:
            root = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in aliases:
                found.append(f"uses the library's {node.attr}")
    if b"transformer_np" in content:
        for word in (b"importlib", b"__import__", b"inspect.getsource", b"open("):
            if word in content:
                found.append(f"has transformer_np and {word.decode()} in its text")
    return sorted(set(found))[:20]
