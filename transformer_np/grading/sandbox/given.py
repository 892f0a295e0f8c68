"""The modules of this library inside the process of a submission: those it was given, and empty ones for the others.

A name that a module was not given is a class whose call is refused.
"""

import importlib.abc
import importlib.machinery
import marshal
from importlib import import_module

PACKAGE = __name__.partition(".")[0]


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


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """modules: {name: (whether a package, code)}; constants: {module: {name: value}} of the empty modules"""

    def __init__(self, modules, constants):
        self.modules, self.constants = modules, constants

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] != PACKAGE:
            return None
        is_package, _ = self.modules.get(fullname, (True, None))
        return importlib.machinery.ModuleSpec(fullname, self, is_package=is_package)

    def exec_module(self, module):
        name = module.__name__

        def get(wanted):
            if wanted.startswith("__"):
                raise AttributeError(wanted)
            if f"{name}.{wanted}" in self.modules or f"{name}.{wanted}" in self.constants:
                return import_module(f"{name}.{wanted}")
            for part in [part for part in self.modules if part.startswith(f"{name}.")]:  # `layers` has a name of a part
                found = vars(import_module(part)).get(wanted)
                if getattr(found, "__module__", None) == part:
                    return found
            return _Absent(wanted, (), {"__module__": name})

        module.__getattr__ = get
        if name in self.modules:
            code = marshal.loads(self.modules[name][1])
            module.__file__ = code.co_filename
            exec(code, vars(module))
            return
        vars(module).update(self.constants.get(name, {}))
        if name == f"{PACKAGE}.homework":
            module.check = import_module(f"{name}.standins").unchecked
