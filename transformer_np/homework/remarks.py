"""What is said of the files of a hand-in: missing answers, files that fail, definitions that were not counted."""

import ast
import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import PurePath
from types import FunctionType, ModuleType

from ..support.intercept import is_of_package
from .definitions import DEFINES, by_name, modules_of, read_by, root
from .handin import may_answer
from .judging.judge import Verdict
from .judging.syntax import name_of
from .parts import gets_parts, names_beside
from .path import all_exercises
from .standins import is_stood_for

_THERE = {"numpy", *sys.stdlib_module_names}
_NOT_THERE = "{} needs `{}` ({}), which is not there where answers are graded: write it yourself"


def place(file, cell, line):
    """Where something is, in words."""
    return ", ".join(filter(None, [file, cell and f"cell {cell}", line and f"line {line}"]))


def crashed(name, said, seed, misconception=None):
    """The Verdict on an answer that gives no results. name: of the exercise"""
    return Verdict(name, "crashed", f"{name}: crashed. {said}", misconception, seed=seed)


def not_started(name, said, seed=None):
    """The Verdict on an exercise without an answer."""
    return Verdict(name, "not started", f"{name}: not started: {said}", seed=seed)


def missing(name, known, crashes, seed, where="the submission"):
    """The Verdict on an exercise for which no definition was found: crashed if it is begun. crashes: {file: Crash}"""
    for file, cell in known.begun.get(name, {}).items():
        if file in crashes:
            kind = crashes[file].kind  # of the first cell that failed, which may be another one
            why = f"{place(file, cell, None)}, fails" if cell else f"{file} {how(file, kind)} ({kind})"
            return crashed(name, f"{name} is missing because {why}.", seed)
    said = f"{where} contains no {name}."
    if name in known.elsewhere:
        said = known.elsewhere[name] + ("" if known.elsewhere[name].endswith("?") else ".")
    elif name in known.course:
        said = f"{known.course[name]} has it as the course's notebook does, which is no answer."
    return not_started(name, said, seed)


def remarks_on(known, crashes, definitions, names):
    """The remarks on a hand-in: files that fail, names, and definitions that were not counted.

    definitions: {exercise: [the Definition that counts, others]}; names: of the exercises of the course
    """
    remarks = [failed(file, crash) for file, crash in crashes.items()] + not_found(known, names)
    groups = {}
    for name in names:
        first, *others = definitions.get(name) or [None]
        others = [other for other in others if not _is_replaced(other, first)]
        if others:
            also = dict.fromkeys(place("", o.cell, o.line) if o.file == first.file else o.file for o in others)
            groups.setdefault((first.file, tuple(also)), []).append((name, first))
    for (file, also), here in groups.items():
        not_counted = f"also in {', '.join(also)}, not counted"
        if len(here) > 2:
            remarks.append(f"{', '.join(name for name, _ in here)}: {file}; {not_counted}")
        else:
            remarks += [f"{name}: {place(file, one.cell, one.line)}; {not_counted}" for name, one in here]
    return remarks


def not_found(known, names):
    """The remarks on answers where nothing finds them. Those that differ in the name of the answer are one."""
    together = {}
    for name in (name for name in names if name in known.elsewhere):
        what, _, where = known.elsewhere[name].partition(" ")
        together.setdefault(where, []).append(what)
    return [
        f"{', '.join(what)} {where.replace('is ', 'are ', 1) if what[1:] else where}"
        for where, what in together.items()
    ]


def _is_replaced(one, later):
    """Whether a later definition in the same file takes the place of one, as in any Python."""
    return one.file == later.file and (one.cell or 0, one.line or 0) < (later.cell or 0, later.line or 0)


def failed(file, crash):
    """A remark on a file that raised an exception."""
    if crash.kind == "TimeoutError":
        return f"{file} has code that takes too long, which was left out"
    text = " ".join(crash.text.split())[:120]
    said = f"{crash.kind}: {text}" if text else crash.kind
    if crash.kind == "ModuleNotFoundError":  # what does not need it is there
        return f"{file} imports what is not there where answers are graded ({text})"
    return f"{file} {how(file, crash.kind)} ({said})"


def not_there(read, path):
    """The remarks on imports and on files beside a hand-in that code names, which work here, but not where answers are
    graded: there are only Python, NumPy and the files with code.

    read: {file: its syntax tree}; path: of the hand-in, a file or a folder
    """
    for file, tree in read.items():
        folder = (path / file).parent if path.is_dir() else path.parent
        for package, is_near in _imported(tree).items():
            if any((near / f"{package}{end}").exists() for near in (path, folder) for end in ("", ".py")):
                if not path.is_dir():
                    yield f"{file} imports {package} from its folder: hand in both"
            elif not (is_near or package in _THERE or is_of_package(package) or is_stood_for(package)):
                with suppress(ImportError, ValueError):
                    if find_spec(package):
                        yield f"{file} imports {package}, which is not there where answers are graded"
        texts = [node.value for node in _outside(tree, _writes) if isinstance(node, ast.Constant)]
        for text in dict.fromkeys(text for text in texts if isinstance(text, str) and PurePath(text).suffix):
            if (os.path.isfile(folder / text) or os.path.isfile(text)) and not may_answer(text):
                what = f"{file} names the file {text}, which is not there where answers are graded"
                yield f"{what}: write what it holds as code"


def _outside(tree, is_left_out):
    """The nodes of a tree without those that are left out and all inside of them."""
    inside = {id(one) for node in ast.walk(tree) if is_left_out(node) for one in ast.walk(node)}
    return [node for node in ast.walk(tree) if id(node) not in inside]


def _writes(node):
    """Whether a node calls what makes a file: `plt.savefig(…)`, `Path(…).write_text(…)`, `open(…, "w")`."""
    name = name_of(node.func) if isinstance(node, ast.Call) else ""
    texts = (str(one.value) for one in ast.walk(node) if isinstance(one, ast.Constant))
    return name.startswith(("save", "write")) or (name == "open" and any(x.rstrip("bt+") in {*"wax"} for x in texts))


def _imported(tree):
    """{package that some code imports: whether from its own folder, as in `from .helpers import …`}, but for those that
    it can do without."""
    nodes = _outside(tree, lambda node: isinstance(node, ast.Try))
    near = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 1]
    own = [node.module or alias.name for node in near for alias in node.names]
    names = [name for node in nodes for name in modules_of(node)]
    return {name.partition(".")[0]: is_near for is_near, of in ((True, own), (False, names)) for name in of}


def _of_package(nodes):
    """The names that the imports from this package bind, among some nodes."""
    names = set()
    for node in nodes:
        for alias in node.names if any(map(is_of_package, modules_of(node))) else ():
            names.add(alias.asname or alias.name.partition(".")[0])
    return names


def of_library(read, imported=(), known=None, course=None):
    """The remarks on answers that need calls of this package: they are right here, but where answers are graded such a
    call is refused, except that of a part from which the exercise is built.

    read: as for `not_there`; imported: the files among it that others import, which need what their import calls
    known: the Survey of the files, for the names that answers have in them; course: {file: the tree of the course's own
        cells}, from which answers may take a name
    """
    course = course or {}
    if not any(_of_package(ast.walk(tree)) for tree in (*read.values(), *course.values())):
        return  # what an answer reads takes long to find
    own = {file: by_name(tree.body) for file, tree in read.items()}
    nodes = {file: (by_name(course[file].body) if file in course else {}) | own[file] for file in read}
    for file, tree in read.items():
        names = {name: name for name in all_exercises()} | (known.names(file) if known else {})
        begun = {name: own[file][here] for name, here in names.items() if here in own[file]}
        if file in imported:
            begun = {f"importing {file}": [node for node in tree.body if not _is_idle(node)]}
        for name, begin in begun.items():
            needed = _needed(nodes, file, begin)
            exercise = all_exercises().get(name)
            refused = [(of, used) for of, statements in needed.items() for used in _refused(statements, exercise)]
            if refused:
                at, used = refused[0]
                where = place(at, None, None if at.endswith(".ipynb") else used.lineno)
                yield _NOT_THERE.format(name, ast.unparse(used), where)


def of_library_in(exercise, family):
    """The remarks of `of_library` on an answer in this process, of which this is the Family, at most one."""
    trees = [*family.trees.values()]
    read = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found = {name: value for name, value in getattr(family, "space", {}).items() if name in read}
    imports = [ast.parse(text).body[0] for name, value in found.items() if (text := _import_of(name, value))]
    for used in _refused([*trees, *imports], exercise)[:1]:
        yield _NOT_THERE.format(exercise.name, ast.unparse(used), place("", None, used.lineno))


def _import_of(name, value):
    """The statement that would bind a name to a module, a function or a class of this package, or ""."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}" if is_of_package(value.__name__) else ""
    is_known = isinstance(value, FunctionType | type) and value.__name__.isidentifier()
    if not (is_known and is_of_package(value.__module__)):
        return ""
    return f"from {value.__module__} import {value.__name__} as {name}"


def _is_idle(node):
    """Whether the import of a file calls nothing for a statement where answers are graded: `check` does nothing."""
    return isinstance(node, DEFINES) or name_of(getattr(getattr(node, "value", None), "func", None)) == "check"


def _needed(nodes, file, begin):
    """{file: its statements} of some statements of a file and of what they need, also in files that they import from.

    nodes: {file: {name: the statements that bind it}}
    """
    waiting, needed = [(file, node) for node in begin], {}
    for here, node in waiting:  # which grows
        if node in needed.setdefault(here, []):
            continue
        needed[here].append(node)
        names = [(here, name) for name in read_by(ast.unparse(node))]
        if isinstance(node, ast.ImportFrom):
            stem = (node.module or "").rpartition(".")[2]
            names = [(other, alias.name) for other in nodes if PurePath(other).stem == stem for alias in node.names]
        waiting += [(other, one) for other, name in names for one in nodes[other].get(name, ())]
    return needed


def _refused(statements, exercise):
    """The expressions in some statements that call or inherit from what an answer does not get of this package;
    exercise: None of an import"""
    definitions = [node for node in statements if isinstance(node, DEFINES)]
    nodes = [node for one in statements for node in ast.walk(one)]
    inside = [node for one in definitions for node in ast.walk(one)]
    imported = _of_package(statements) - {node.name for node in definitions} | _of_package(inside)
    found = []
    for node in nodes:
        for used in [node.func] if isinstance(node, ast.Call) else getattr(node, "bases", []):
            if root(used) in imported:
                found.append((used, isinstance(node, ast.Call)))
    if found and exercise and gets_parts(exercise):
        imports = [node for node in nodes if _of_package([node])]
        return [used for used, _ in found if _is_no_part(_meant(used, imports), exercise)]
    return [used for used, is_call in found if is_call]


def _meant(used, imports):
    """The object of this package that an expression stands for, None if there is none."""
    space = {}
    with suppress(ImportError, AttributeError, NameError):
        exec(compile(ast.Module(imports, []), "<imports>", "exec"), space)
        return eval(ast.unparse(used), space)


def _is_no_part(value, exercise):
    """Whether an answer to an exercise that gets parts of the library does not get this one."""
    home = exercise.reference.__module__
    return getattr(value, "__module__", None) == home and value.__name__ not in names_beside(exercise)


def how(file, kind):
    """In which way a file was not loaded, in words. kind: of its exception; the rest of the file counts"""
    if file.endswith(".ipynb"):
        return "has a cell that fails"
    return "could not be loaded" if kind in ("SyntaxError", "IndentationError", "TabError") else "has a line that fails"


def best(verdicts):
    """The index of the verdict that counts: the first that is right, or else comes nearest."""
    worth = [(one.passed, one.core, one.outcome != "not started", one.share) for one in verdicts]
    return worth.index(max(worth))
