"""The modules of this library inside the process of a submission: those it was given, and empty ones for the others.

A name that a module was not given is a class whose call is refused.
"""

import importlib.abc
import importlib.machinery
import marshal
import sys
from importlib import import_module
from types import SimpleNamespace

import numpy as np

PACKAGE = __name__.partition(".")[0]
OTHERS = ("matplotlib", "tqdm")  # often used at the top of a file, and needed by no answer


class LibrarySolution(RuntimeError):
    """A submission calls a function that it should have written."""


called = []  # names of the library's functions that were called


def refuse(name):
    called.append(name)
    raise LibrarySolution(f"the library's {name.removeprefix(PACKAGE + '.')} cannot be called here")


class _Absent(type):
    """The type of the names that are not given: they can be imported and inherited from, but not called."""

    def __call__(cls, *args, **kwargs):
        absent = next(base for base in cls.__mro__ if base.__module__.startswith(PACKAGE))
        return refuse(f"{absent.__module__}.{absent.__name__}")

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(name, (), {"__module__": f"{cls.__module__}.{cls.__name__}"})


class _Nothing:
    """Any name of matplotlib or tqdm: it can be called, and does nothing; a progress bar goes through what it is given.

    results: of the next loop over it
    """

    def __init__(self, results=()):
        self._results = results

    def __call__(self, *args, **kwargs):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _WITH_RESULTS.get(name, self)

    def __iter__(self):
        return iter(self._results)

    def __getitem__(self, key):
        return self

    def __setitem__(self, key, value):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def _subplots(rows=1, columns=1, *, nrows=0, ncols=0, **_):
    shape = tuple(size for size in (nrows or rows, ncols or columns) if size > 1)
    axes = np.full(shape, _Nothing(), object)
    return _Nothing(), axes if shape else axes[()]


_WITH_RESULTS = {
    "tqdm": lambda iterable=(), *_, **__: _Nothing(iterable), "trange": lambda *limits, **_: _Nothing(range(*limits)),
    "subplots": _subplots, "plot": lambda *_, **__: [_Nothing()],
    "hist": lambda *_, **__: (_Nothing(), _Nothing(), _Nothing()),
}  # fmt: skip


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """modules: {name: (whether a package, code)}; constants: {module: {name: value}} of the empty modules"""

    def __init__(self, modules, constants):
        self.modules, self.constants = modules, constants

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] not in (PACKAGE, *OTHERS):
            return None
        is_package, _ = self.modules.get(fullname, (True, None))
        return importlib.machinery.ModuleSpec(fullname, self, is_package=is_package)

    def exec_module(self, module):
        name = module.__name__

        def get(wanted):
            if wanted.startswith("__"):
                raise AttributeError(wanted)
            if name.partition(".")[0] in OTHERS:
                return getattr(_Nothing(), wanted)
            if f"{name}.{wanted}" in self.modules or f"{name}.{wanted}" in self.constants:
                return import_module(f"{name}.{wanted}")
            return _Absent(wanted, (), {"__module__": name})

        module.__getattr__ = get
        if name in self.modules:
            code = marshal.loads(self.modules[name][1])
            module.__file__ = code.co_filename
            exec(code, vars(module))
            return
        vars(module).update(self.constants.get(name, {}))
        if name == f"{PACKAGE}.homework":
            module.check = _unchecked


def _unchecked(*args, **kwargs):
    """The result of `check` inside, where nothing can be checked."""
    return SimpleNamespace(passed=True, core=True, outcome="", message="", misconception=None, share=0.0, seed=None)


def finder():
    return next(found for found in sys.meta_path if isinstance(found, Finder))
