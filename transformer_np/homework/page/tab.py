"""The homework in a browser tab: what the page's worker calls. Text in, JSON out.

Each exercise has a text of its own, a module that sees no import or helper of the others. It may call the answers of
the other exercises by their names, as in homework.py, where all texts are one file.
"""

import asyncio
import json
import linecache
import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..judging.words import wrapped
from ..limit import Interrupted, TimeLimit
from ..loading import new_loop
from ..path import all_exercises, use_exercises
from ..standins import without_pictures
from ..stubs import imports, stub
from ..submission import Checks, LoadError, load
from .split import Block, answers_in

FILE = "homework.py"
OTHERS = Path("others")  # the folder of the files with the other exercises' texts
_SHARED = re.compile(r"(numpy|builtins|math|transformer_np)(\.|$)")  # modules that an answer may change for all others
_untouched = []  # (namespace of such a module, its content in the beginning)


def begin(folder_of_teacher=None):
    """Prepare Python for the students' code, once per worker."""
    use_exercises(folder_of_teacher)
    ours = ("RepodataPackagesFinder", "UnvendoredStdlibFinder")  # their advice on `import torch` helps nobody here
    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ not in ours]
    without_pictures()
    asyncio.run = run_coroutine
    spaces = [vars(module) for name, module in sys.modules.items() if _SHARED.match(name)]
    _untouched[:] = [(space, dict(space)) for space in spaces]


def run_coroutine(main, **_):
    """In place of `asyncio.run`, which refuses where a browser's own loop runs, as it always does."""
    running = asyncio._get_running_loop()
    if isinstance(running, asyncio.BaseEventLoop):
        raise RuntimeError("asyncio.run() cannot be called from a running event loop")
    asyncio._set_running_loop(None)
    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(main)
    finally:
        asyncio._set_running_loop(running)


def check(name, texts, seconds, tell=lambda seconds: None, seed=None):
    """Check the answer to an exercise as `homework check` does  ->  JSON.

    texts: JSON, {exercise: its text}, of those that the student has begun
    tell: of a TimeLimit: code in C that does not return is ended by the page, with the whole worker
    """
    if name not in all_exercises():
        return _said(f"{name} is an exercise of another course: this page cannot check it.", "not started", False)
    for space, names in _untouched:  # an answer may have changed NumPy, or `len`, for all that follow
        space.update(names)
    texts = json.loads(texts)
    _write(FILE, texts[name])
    try:
        return _checked(name, texts, TimeLimit(seconds, tell=tell), seed)
    except LoadError as error:
        line, remarks = _last_line(error.crash.trace), _remarks(name, texts)
        if error.crash.kind == "ModuleNotFoundError":
            remarks.append("In this page only NumPy can be imported, and what comes with Python.")
        return _said(str(error), "cannot be imported", False, line=line, remarks=remarks)
    except Interrupted as error:  # no Ctrl-C reaches Python here
        return _said(f"{error}\nIt raised KeyboardInterrupt.", "crashed", False, line=_last_line(str(error)))


def _checked(name, texts, limit, seed):
    checks = Checks(_submission(name, texts, limit), seed, limit)
    standing = checks.of(name)
    verdict = standing.verdict
    return _said(
        wrapped(verdict.message), verdict.outcome, standing.passed, line=verdict.line or _last_line(verdict.message),
        repair=verdict.repair, mends=verdict.mends, seed=checks.seed, waits=standing.waits_for,
        remarks=[*checks.submission.skipped, *_remarks(name, texts)],
    )  # fmt: skip


def _said(text, outcome, passed, **more):
    return json.dumps({"text": text, "outcome": outcome, "passed": passed, **more})


def _last_line(text):
    """The last line of the student's file that a text names, or None."""
    numbers = re.findall(rf'File "{FILE}", line (\d+)', text)
    return int(numbers[-1]) if numbers else None


# --- answers that call each other -------------------------------------------------------------------------------------


def _submission(name, texts, limit):
    """The Submission with the answer to an exercise, and the answers that it calls, each from a module of its own."""
    own = load(FILE, limit)
    definitions, modules = dict(own.definitions), list(own.modules)
    for other in _called(name, texts):
        begin = default(all_exercises()[other])
        try:
            loaded = load(_write(OTHERS / f"{other}.py", texts.get(other) or begin), limit)
        except LoadError:  # it counts as not started
            loaded = load(_write(OTHERS / f"{other}.py", begin))
        modules += loaded.modules
        if other in loaded.answers:
            definitions.setdefault(other, loaded.definitions[other])
    again = partial(_submission, name, texts, limit)
    whole = replace(own, definitions=definitions, modules=tuple(modules), again=again)
    for module in modules:
        for other, answer in whole.answers.items():
            vars(module).setdefault(other, answer)
    return whole


def default(exercise):
    """The text that a student begins with."""
    text = stub(exercise)
    head = imports([exercise], {exercise.name: text}).replace("  # noqa: F401", "")
    return f"{head}\n\n{text}".lstrip()


def _called(name, texts):
    """The other exercises whose names a text reads, and those that theirs read."""
    found, left = [], [name]
    while left:
        block = Block(texts.get(left.pop()) or "")
        new = [n for n in all_exercises() if n in block.reads - block.binds.keys() and n not in (name, *found)]
        found += new
        left += new
    return found


def _write(path, text):
    path = Path(path)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode("utf-8", "replace"))
    linecache.cache.pop(str(path), None)  # a file may keep its size and, in a browser, its time
    return path


# --- one file from all texts ------------------------------------------------------------------------------------------


def _remarks(name, texts):
    """Sentences on what will be different in homework.py, where all texts are one file."""
    binds = {other: block.binds for other, text in texts.items() if not (block := Block(text)).problem}
    own, found = binds.pop(name, {}), []
    if any("from __future__" in line for line in texts[name].splitlines()):
        found.append(f"{FILE} cannot contain `from __future__` below its beginning: remove this line.")
    for other, theirs in binds.items():
        twice = [n for n in own if n in theirs and own[n] != theirs[n]]
        twice += [other] if other in own and other not in theirs else []
        if twice:
            found.append(
                f"{' and '.join(twice)}: {name} and {other} define this differently. In {FILE} the definition that "
                "comes last counts for both: give one of them another name."
            )
    return found


def examine(texts):
    """{exercise: why its text is not Python}, as JSON, for those of a JSON {exercise: text} that are not."""
    problems = {name: Block(text).problem for name, text in json.loads(texts).items()}
    return json.dumps({name: problem for name, problem in problems.items() if problem})


def opened(text):
    """The texts of the exercises in a student's file, as JSON {exercise: text}."""
    return json.dumps(answers_in(text, {name: default(exercise) for name, exercise in all_exercises().items()}))
