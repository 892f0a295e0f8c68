"""The removal of the library's answers from this process's memory, before a submission is loaded.

A function is emptied in place: its code is replaced by code that records the call and raises. All references to the
function, under any name, then refer to the empty one.
"""

import gc
import importlib.abc
import importlib.machinery
import sys
import warnings
from functools import cache, partial
from importlib import import_module
from inspect import signature
from types import CodeType, FunctionType, ModuleType

PACKAGE = __package__.partition(".")[0]
HOMEWORK, GRADING = f"{PACKAGE}.homework", f"{PACKAGE}.grading"

# modules that a submission may use; the others can be imported, but are empty
LOADED = ("functional", "masks", "module", "layers", "blocks", "models", "decoding", "training", "gradcheck")
# modules that do not help with any exercise
HELPERS = (
    PACKAGE,
    *(f"{PACKAGE}.{name}" for name in ("module", "functional.special", "support.checks", "support.processes")),
)
_OWN = (f"{HOMEWORK}.judging.attempt", f"{HOMEWORK}.exercise", f"{GRADING}.sandbox")


class LibrarySolution(RuntimeError):
    """A submission calls a function that it should have written."""


called = []  # names of the emptied functions that were called


def load_library():
    for name in LOADED:
        import_module(f"{PACKAGE}.{name}")
    import_module(f"{PACKAGE}.support.processes").blas_threads()  # once, while the system still allows the query


def _is_of(name, module):
    return name == module or name.startswith(f"{module}.")


def _is_ours(name):
    """Whether a module belongs to homework or grading, which know the answers."""
    return _is_of(name, HOMEWORK) or _is_of(name, GRADING)


def of_library(function):
    """The library's module that defines a function, or None."""
    name = function.__globals__.get("__name__", "")
    name = name if isinstance(name, str) else ""
    return name if _is_of(name, PACKAGE) else None


# --- dependencies ----------------------------------------------------------------------------------------------------


def uses(thing, follow):
    """The library's functions, classes and modules that something reads by name, directly or through others.

    follow(thing) -> whether to search it as well
    """
    found, open_things = {}, [thing]
    while open_things:
        for value in _read_by(open_things.pop()):
            if id(value) not in found:
                found[id(value)] = value
                if follow(value):
                    open_things.append(value)
    return list(found.values())


def _read_by(thing):
    """The library's functions and classes that a thing itself names or holds."""
    for function in _functions_of(thing):
        names = set(_names(function.__code__))
        values = [function.__globals__[name] for name in names if name in function.__globals__]
        values += [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
        values += function.__defaults__ or ()
        for value in values:
            if isinstance(value, FunctionType | type | partial) and _home(value):
                yield value
            elif isinstance(value, ModuleType) and _is_of(value.__name__, PACKAGE):
                yield from (
                    member for name, member in vars(value).items()
                    if name in names and isinstance(member, FunctionType | type) and _home(member)
                )  # fmt: skip
    if isinstance(thing, type):
        yield from (base for base in thing.__bases__ if _home(base))


def _home(thing):
    while isinstance(thing, partial):
        thing = thing.func
    if isinstance(thing, FunctionType):
        return of_library(thing)
    module = getattr(thing, "__module__", None)
    return module if isinstance(module, str) and _is_of(module, PACKAGE) else None


def _functions_of(thing):
    """The functions that make up a function, method, property or class."""
    while isinstance(thing, partial | staticmethod | classmethod):
        thing = thing.func if isinstance(thing, partial) else thing.__func__
    if isinstance(thing, FunctionType):
        yield thing
        if hasattr(thing, "__wrapped__"):
            yield from _functions_of(thing.__wrapped__)
    elif isinstance(thing, property):
        for part in (thing.fget, thing.fset, thing.fdel):
            yield from _functions_of(part)
    elif isinstance(thing, type):
        for member in list(vars(thing).values()):
            if not isinstance(member, type):
                yield from _functions_of(member)


def _names(code):
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _filled(cell):
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def of_homework(thing):
    home = _home(thing)
    return home is not None and _is_ours(home)


def given_in(inputs):
    """The homework's functions and classes that occur in the inputs of an exercise."""
    found, open_things, seen = [], [inputs], {}
    while open_things:
        thing = open_things.pop()
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing
        if isinstance(thing, dict):
            open_things += thing.values()
        elif isinstance(thing, tuple | list | set):
            open_things += thing
        elif isinstance(thing, FunctionType | type | partial):
            found.append(thing)
        elif hasattr(thing, "__dict__"):
            found.append(type(thing))
            open_things.append(vars(thing))
    return [thing for thing in found if of_homework(thing)]


def needs_library(drive):
    """Whether a `drive` needs more of the library than the HELPERS."""
    return any(not of_homework(thing) and _home(thing) not in HELPERS for thing in uses(drive, follow=of_homework))


# --- emptying --------------------------------------------------------------------------------------------------------


def empty_everything(drives):
    """For exercises that need nothing of the library: empty all its functions but the helpers and the `drives`."""
    _empty(_all_functions(), _kept(drives))


def empty_one(exercise, drives, exercises):
    """For an exercise that is built from other parts of the library: empty the homework, the reference, the functions
    of its module that it uses or that use it, and the module's other exercises unless it needs them."""
    reference = exercise.reference
    home = sys.modules[reference.__module__]
    others = [e.reference for e in exercises if e.reference.__module__ == home.__name__ and e.name != exercise.name]
    here = [
        thing
        for thing in vars(home).values()
        if isinstance(thing, FunctionType | type) and _home(thing) == home.__name__
    ]
    needed = uses(reference, follow=lambda thing: thing in here and thing not in others)
    emptied = [thing for thing in others if thing not in needed]
    emptied += [thing for thing in needed if thing in here and thing not in others and isinstance(thing, FunctionType)]
    emptied += [
        thing for thing in here
        if isinstance(thing, FunctionType) and reference in uses(thing, follow=lambda t: t in here)
    ]  # fmt: skip
    functions = [f for f in _all_functions() if _is_ours(of_library(f))]
    functions += [function for thing in emptied for function in _functions_of(thing)]
    constructor = ()
    if isinstance(reference, type) and exercise.parts and "__init__" not in exercise.parts:
        constructor = _functions_of(vars(reference).get("__init__"))  # the student keeps it
    given = set(map(id, constructor))
    functions += [function for function in _functions_of(reference) if id(function) not in given]
    kept = _kept(drives) - {id(f) for f in functions if not _is_ours(of_library(f))}
    _empty(functions, kept)


def _all_functions():
    return [thing for thing in gc.get_objects() if type(thing) is FunctionType and of_library(thing)]


def _kept(drives):
    kept = {
        id(f) for f in _all_functions() if any(_is_of(of_library(f), own) for own in _OWN) or of_library(f) in HELPERS
    }
    for drive in drives:
        for thing in (drive, *uses(drive, follow=of_homework)):
            if of_homework(thing):
                kept.update(id(function) for function in _functions_of(thing))
    return kept


def _empty(functions, kept):
    check = getattr(sys.modules.get(f"{HOMEWORK}.checking"), "check", None)
    for function in functions:
        if function is check:
            function.__code__ = _code(lambda *args, **kwargs: _Checked(), 0)
        elif id(function) not in kept:
            name = f"{of_library(function)}.{function.__qualname__}"
            function.__signature__ = _signature(function)
            function.__code__ = _code(partial(_say, name), len(function.__code__.co_freevars))


def _signature(function):
    try:
        return signature(function)
    except (TypeError, ValueError):
        return None


class _Checked:
    """The result of `check` in the sandbox, where nothing can be checked."""

    passed, core, outcome, message, misconception, share, seed = True, True, "", "", None, 0.0, None


def _say(name, *args, **kwargs):
    called.append(name)
    raise LibrarySolution(f"the library's {name.removeprefix(PACKAGE + '.')} cannot be called here")


def _code(instead, free):
    """Code that returns `instead(*args, **kwargs)`, for a function with this number of free variables."""
    code = _template(free)
    return code.replace(co_consts=tuple(instead if constant == "instead" else constant for constant in code.co_consts))


@cache
def _template(free):
    names = [f"v{i}" for i in range(free)]
    source = "\n ".join(["def outer():", *(f"{name} = None" for name in names), "def emptied(*args, **kwargs):"])
    source += "\n  " + "\n  ".join(
        [*(f"if False: {name}" for name in names), "do = 'instead'", "return do(*args, **kwargs)"]
    )
    space = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(
            compile(source + "\n return emptied", __file__, "exec"), space
        )  # hidden in tracebacks like the rest of the library
    return space["outer"]().__code__


# --- empty modules ---------------------------------------------------------------------------------------------------


class _Hollow(type):
    """The type of the names in an empty module: they can be imported and inherited from, but not called."""

    def __call__(cls, *args, **kwargs):
        return _say(f"{cls.__module__}.{cls.__name__}")


class _HollowModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname, path=None, target=None):
        if _is_of(fullname, PACKAGE):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def exec_module(self, module):
        def get(name):
            if name.startswith("__"):
                raise AttributeError(name)
            return _Hollow(name, (), {"__module__": module.__name__})

        module.__getattr__ = get


def hollow_the_rest():
    """From now on, every module of the library that is not yet loaded can be imported, but is empty."""
    sys.meta_path.insert(0, _HollowModules())
