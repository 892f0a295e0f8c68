"""The function or class behind an object, made again from other code: no statement of its file runs again."""

import ast
import copy
import linecache
from contextlib import suppress
from functools import partial
from inspect import unwrap
from pathlib import Path
from types import CellType, CodeType, FunctionType, MemberDescriptorType, MethodType

import numpy as np

from ..guard import SAFE, is_students
from ..magics import from_cells

MOST_ITEMS = 10_000  # of a list, or characters of a text
MOST_DEPTH = 5  # of lists in lists, and of decorators around a function


def undecorated(thing):
    """The function that decorators have wrapped: `__wrapped__`, or the only function that a closure holds."""
    for _ in range(MOST_DEPTH):
        cells = [cell.cell_contents for cell in getattr(thing, "__closure__", None) or () if cell != CellType()]
        held = [value for value in cells if isinstance(value, FunctionType)]
        thing = getattr(thing, "__wrapped__", held[0] if len(held) == 1 else thing)
    return thing


def unwrapped(thing):
    """A function of the library without its check of shapes."""
    return unwrap(thing) if isinstance(thing, FunctionType) else thing


def origin_of(thing):
    """The function or class that a partial, a method or an object with `__call__` is made of."""
    if isinstance(thing, partial | np.vectorize | MethodType):
        return origin_of(next(getattr(thing, name) for name in ("func", "pyfunc", "__self__") if hasattr(thing, name)))
    function = None if isinstance(thing, FunctionType | type) else function_of(type(thing))
    return type(thing) if function and is_students(function.__code__.co_filename) else thing


def made_of(thing, origin, new):
    """The same partial, method or object, made of another function or class."""
    if isinstance(thing, MethodType):  # a copy of it has the old function
        return getattr(made_of(thing.__self__, origin, new), thing.__name__)
    return copy.deepcopy(thing, {id(origin): new})


def function_of(thing):
    """A function itself, or the first function among the members of a class; None of anything else."""
    return next(iter(_functions_of(thing)), None)


def _functions_of(thing):
    members = vars(thing).values() if isinstance(thing, type) else [thing]
    members = (m.__func__ if isinstance(m, staticmethod | classmethod) else m for m in members)
    return [member for member in members if isinstance(member, FunctionType)]


def copied(value):
    """A copy of a container; itself if it holds something that has none, such as an open file or a figure."""
    try:
        return copy.deepcopy(value) if type(value) in (list, dict, set, np.ndarray) else value
    except Exception:
        return value


def safe(value):
    """What stands for a function while an answer runs. An object that can be called may have no hash."""
    return next((safe for function, safe in SAFE.items() if function is value), value)


def codes_in(code):
    """{name: code objects} of the functions and classes defined directly in some code, which does not run."""
    codes = {}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            codes.setdefault(inner.co_name, []).append(inner)
    return codes


def made_again(thing, codes, space, made):
    """A function or class with other code and globals. No statement, decorator or default of the file runs again.

    codes: as `codes_in` returns them; made: {id of a class: what stands for it as a base}
    """
    if not isinstance(thing, type):
        return _function(thing, codes, space)
    codes, cell = codes_in(codes[thing.__name__][0]), CellType()
    members = {k: v for k, v in vars(thing).items() if k not in ("__dict__", "__weakref__")}
    members = {k: v for k, v in members.items() if not isinstance(v, MemberDescriptorType)}  # of __slots__
    for name, member in members.items():
        if isinstance(member, staticmethod | classmethod):
            members[name] = type(member)(_function(member.__func__, codes, space, cell))
        elif isinstance(member, property):
            parts = (member.fget, member.fset, member.fdel)
            members[name] = property(*(part and _function(part, codes, space, cell) for part in parts))
        elif isinstance(member, FunctionType):
            members[name] = _function(member, codes, space, cell)
    again = type(thing)(thing.__name__, tuple(made.get(id(base), base) for base in thing.__bases__), members)
    cell.cell_contents = again
    return again


def _function(function, codes, space, cell=None):
    """A function with the code of its name, with the first line that it has; itself if there is none."""
    own = function.__code__
    found = sorted(codes.get(own.co_name, ()), key=lambda code: code.co_firstlineno != own.co_firstlineno)
    if not found or not {*found[0].co_freevars} <= {"__class__"}:
        return function
    closure = (cell,) if found[0].co_freevars else None
    again = FunctionType(found[0], space, function.__name__, copy.deepcopy(function.__defaults__), closure)
    again.__kwdefaults__ = copy.deepcopy(function.__kwdefaults__)
    return again


def outdated_file(answer):
    """The student's file that an answer was loaded from, if the file has other code now; None otherwise."""
    origin = undecorated(origin_of(answer))
    codes = [function.__code__ for function in _functions_of(origin)]
    codes = [code for code in codes if "@pytest_ar" not in code.co_names]  # pytest writes its assertions anew
    file = Path(codes[0].co_filename) if codes else None
    if file is None or not is_students(str(file)) or not file.is_file():
        return None
    linecache.checkcache(str(file))
    there = _keys_in(compile(parsed("".join(linecache.getlines(str(file))), str(file)), str(file), "exec"))
    return file if {_key(code) for code in codes if code.co_filename == str(file)} - there else None


def parsed(text, file):
    """The syntax tree of a file, which may have magics; an empty one if it is no Python."""
    for read in (str, from_cells):
        with suppress(SyntaxError, ValueError, RecursionError):
            return ast.parse(read(text), file)
    return ast.Module([], [])


def _key(code):
    """What two code objects of the same lines have in common, wherever these are in a file."""
    constants = [_key(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return code.co_name, code.co_code, code.co_names, code.co_varnames, *constants


def _keys_in(code):
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return {_key(one) for one in inner}.union(*map(_keys_in, inner))
