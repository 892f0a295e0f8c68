"""Executing a student's files as Python or IPython would, and the definitions that they make.

`check` does it in its own process, `grade` behind the walls.
"""

import __future__

import ast
import inspect
import linecache
import os
import sys
import time
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from types import FunctionType, ModuleType

from .definitions import modules_of, root, stored
from .standins import Absent, found_by

MOST_TRIED = 12  # definitions of one exercise
_WHOLE = "_handed_in"  # no file has this name
_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


@dataclass
class Definition:
    """A value of an exercise's name. file, cell, line: where it gets it, the last two None if unknown; module: of the
    file; is_stub: whether it has no body yet; kind: for the grader, which has no value, the type of one that cannot be
    called"""

    file: str
    cell: int | None = None
    line: int | None = None
    value: object = None
    module: str = ""
    kind: str = ""
    is_stub: bool = False


def execute(name, path, pieces, names, skipped=(), caught=(Exception, SystemExit), begin=lambda module, found: None):
    """Execute the pieces of a file: (its module, {exercise: its Definitions, in order}, the first exception or None).

    name: relative to the hand-in's folder; names: of the exercises; skipped: names that are missing because the
    course's own cells are not run, which is no mistake; begin: called before each piece of a file that no other has
    imported, with its module and definitions. After an exception the next piece goes on; after an import of a module
    that does not exist, the next statement.
    """
    in_notebook = name.endswith(".ipynb")
    module, is_new = _module(name, path)
    if not is_new:  # another file has imported it
        last = {exercise: piece for piece in pieces for exercise in piece["lines"]}
        defined = [n for n in names if n in vars(module)]
        return module, {n: [_definition(name, None, last.get(n), n, module, vars(module)[n])] for n in defined}, None
    space, found, first, texts = vars(module), {}, None, {}
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if in_notebook else 0
    space.update(found_by(in_notebook))
    for piece in pieces:
        begin(module, found)
        bound = {n: piece["names"].get(n, n) for n in names}  # the names that answers have here
        before, error, title = {n: space.get(bound[n], space) for n in names}, None, str(path)
        if (cell := piece["cell"]) is not None:
            known = texts.get(cell, "")  # a later piece of a cell has empty lines in place of the earlier ones
            texts[cell] = text = known + piece["code"][known.count("\n") :]
            title = f"{path}, cell {cell}"
            linecache.cache[title] = (len(text), None, StringIO(text, None).readlines(), title)  # for a traceback
        try:
            more, absent = _run(piece["code"], title, space, flags, names)
            flags, first = flags | more, first or absent
        except caught as raised:
            error = raised
        for n in names:
            value = space.get(bound[n], before[n])
            if value is not before[n] and n not in piece["own"]:
                found.setdefault(n, []).append(_definition(name, piece["cell"], piece, n, module, value))
        if error is None:
            continue
        if type(error).__name__ == "LibrarySolution" and piece["lines"].keys() <= found.keys():
            # it compares with the library, which is not here
            skipped = {*skipped, *(name for node in ast.parse(piece["code"] or "").body for name in stored(node))}
        elif not (piece["course"] or (isinstance(error, NameError) and error.name in skipped)):
            first = first or error
    return module, found, first


def without(pieces, begun, again):
    """The pieces of a file without the last one that was begun, which took too long or ended the process; of a file in
    which this happens again, those before it: every piece may be slow. begun: how many were begun"""
    return [*pieces[: begun - 1], *([] if again else pieces[begun:])]


def _definition(file, cell, piece, name, module, value):
    """The Definition of an answer in a module, as a piece of its file, or None, has made it."""
    line, is_stub = (piece["lines"].get(name), name in piece["stubs"]) if piece else (None, False)
    return Definition(file, cell, line, value, module.__name__, is_stub=is_stub)


def _module(name, path):
    """(module, whether it is new) for a file. Only a .py file can be imported by others."""
    short = name.rpartition(".")[0].replace("/", ".").removesuffix(".__init__")
    whole = f"{_WHOLE}.{short}"  # relative imports reach all of the hand-in, as in `from ..base import …`
    if name.endswith(".ipynb"):
        module = ModuleType("__main__")
        module.__file__ = str(path)
        return module, True
    folder = os.path.dirname(os.path.abspath(path))
    if folder not in sys.path:
        sys.path.append(folder)
    for known in map(sys.modules.get, (short, short.rpartition(".")[2], whole)):
        file = getattr(known, "__file__", None)
        if file and os.path.abspath(file) == os.path.abspath(path):
            return known, False
    if short in sys.modules or short in sys.stdlib_module_names:
        short = whole
    module = ModuleType(short)
    module.__file__ = str(path)
    module.__package__ = whole if name.endswith("__init__.py") else whole.rpartition(".")[0]
    if _WHOLE not in sys.modules:  # the package of the folder, in which its files import each other: `from .helpers …`
        root = Path(os.path.abspath(path)).parents[name.count("/")]
        package = sys.modules[_WHOLE] = ModuleType(_WHOLE)
        package.__path__, package.__file__ = [str(root)], str(root / "__init__.py")
    if name.endswith("__init__.py"):
        module.__path__ = [folder]
    sys.modules[short] = sys.modules[whole] = module
    return module, True


def _run(code, title, space, flags, names):
    """Execute the code of a piece, None for that of the file with this title: (the flags of its imports from
    __future__, which hold for those that follow; the exception of an import that was left out, or None)."""
    if code is None:
        code = Path(title).read_bytes()
    tree = compile(code, title, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    absent = [node for node in tree.body if _is_absent(node)]
    error = None
    for node in absent:
        try:
            exec(compile(ast.Module([node], []), title, "exec", dont_inherit=True), space)
        except ModuleNotFoundError as raised:
            error = error or raised
            bound = {alias.asname or alias.name.partition(".")[0] for alias in node.names} - {"*", *names}
            space.update(dict.fromkeys(bound, Absent(str(raised))))
    absent += [node for node in tree.body if _is_call_of_absent(node, space)]
    tree.body = [ast.copy_location(ast.Pass(), node) if node in absent else node for node in tree.body]
    compiled = compile(tree, title, "exec", flags, dont_inherit=True)
    if compiled.co_flags & inspect.CO_COROUTINE:
        _loop().run_until_complete(eval(compiled, space))
    else:
        exec(compiled, space)
    return compiled.co_flags & _FUTURE, error


def _is_absent(node):
    """Whether a statement imports from a package that does not exist."""
    packages = {module.partition(".")[0] for module in modules_of(node)}
    return any(name not in sys.modules and find_spec(name) is None for name in packages)


def _is_call_of_absent(node, space):
    """Whether a statement is nothing but a call in a package that does not exist, such as `torch.manual_seed(0)`."""
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return is_call and isinstance(space.get(root(node.value.func)), Absent)


def new_loop():
    """An event loop that needs no sockets, which the walls refuse and a browser lacks."""
    import asyncio

    class Waiting:
        def select(self, seconds):
            time.sleep(min(seconds or 0, 60))
            return []

    class Loop(asyncio.BaseEventLoop):
        _selector = Waiting()

        def _process_events(self, events):
            pass

        def _write_to_self(self):
            pass

    return Loop()


_loop = cache(new_loop)  # that of all cells


# --- which definitions count -----------------------------------------------------------------------------------------


def ranked(found, name, modules):
    """The Definitions of an exercise that may be its answer, in the order in which they count.

    found: {exercise: its Definitions} for every file, in order; modules: the names of the student's own modules. Of a
    file the last definition comes first. A stub, a function that is imported from elsewhere, and a value that cannot be
    called count only where there is nothing else; what `from numpy import *` binds never does.
    """
    every = []
    for of_file in found:
        for one in reversed(of_file.get(name, ())):
            if not (one.line or isinstance(one.value, FunctionType | type)):
                continue
            at = next((i for i, other in enumerate(every) if one.value is other.value), None)
            if at is None:
                every.append(one)
            elif getattr(one.value, "__module__", None) == one.module:  # the others have imported it
                every[at] = one
    callables = [one for one in every if callable(one.value)]
    own = [one for one in callables if is_own(one.value, modules)]
    return [one for one in own if not one.is_stub] or own[:1] or callables[:1] or every[:1]


def is_own(value, modules):
    """Whether a function or class is the student's; True for other values, such as a ufunc."""
    while isinstance(value, partial):
        value = value.func
    return not isinstance(value, FunctionType | type) or value.__module__ in modules
