"""What stands for a notebook's surroundings where nobody is looking: the shell, displays, sliders, pictures, bars."""

import os
import re
import sys
from contextlib import contextmanager, nullcontext, suppress
from functools import partialmethod
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from types import FunctionType, ModuleType, SimpleNamespace

import numpy as np

from ..support.intercept import methods
from ..support.processes import environment

OTHERS = ("IPython", "google", "ipywidgets", "matplotlib", "otter", "tqdm")  # often imported, and needed by no answer


def _returning(value):
    """A method that returns this value, whatever it is given."""
    return lambda *_: value


class _Whole:
    """Its attributes and items are itself."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def _itself(self, *_):
        return self

    __getitem__ = _itself


class Nothing(_Whole):
    """Any value: it can be called, indexed and computed with, and does nothing; a progress bar goes through what it is
    given. results: of the next loop over it
    """

    def __init__(self, results=(), *of_class):
        self._results = () if of_class else results  # of a class that inherits from one: it is nothing, too

    def __call__(self, *args, **kwargs):
        only = args[0] if len(args) == 1 and not kwargs else None
        return only if callable(only) and not isinstance(only, Nothing) else self  # a decorator leaves its function

    def __getattr__(self, name):
        return _WITH_RESULTS.get(name) or super().__getattr__(name)

    def __iter__(self):
        return iter(self._results)

    _itself = _Whole._itself
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _itself
    __neg__ = __pow__ = __floordiv__ = __mod__ = __round__ = __enter__ = _itself
    __lt__ = __le__ = __gt__ = __ge__ = _returning(False)
    __setitem__ = __exit__ = _returning(None)
    __str__ = __format__ = _returning("")
    __float__, __int__ = _returning(0.0), _returning(0)


class Output(list):
    """The lines of a shell command that nobody has run: each is empty."""

    s = n = p = ""

    def __getitem__(self, key):
        return "" if isinstance(key, int) else Output()


def _subplots(rows=1, columns=1, *, nrows=0, ncols=0, **_):
    shape = tuple(size for size in (nrows or rows, ncols or columns) if size > 1)
    axes = np.full(shape, Nothing(), object)
    return Nothing(), axes if shape else axes[()]


class Written(SourceFileLoader):
    """Finds the module that a `%%writefile` cell would write, and loads it from the text of the cell."""

    def __init__(self, name, path, text):
        super().__init__(name, path)
        self._text = text.encode("utf-8", "replace")

    def find_spec(self, name, path=None, target=None):
        return spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_data(self, path):
        return self._text


class Shell(Nothing):
    """In place of IPython's shell: magics and shell commands do nothing, but for `%time`, which executes its line, and
    `%%writefile name.py`, whose module the other cells can import."""

    def __init__(self, space):
        super().__init__()
        self.user_ns = space

    def run_line_magic(self, name, line="", *_):
        if name in ("time", "prun") and line.strip():
            exec(line.lstrip(), self.user_ns)
        return Output() if name in ("sx", "system") else Nothing()

    def run_cell_magic(self, name, line="", cell="", *_):
        file = re.fullmatch(r"(?:\./)?([A-Za-z_]\w*)\.py", line.strip())
        if name in ("writefile", "file") and file:
            folder = os.path.dirname(os.path.abspath(self.user_ns["__file__"]))
            sys.meta_path.insert(0, Written(file[1], os.path.join(folder, f"{file[1]}.py"), cell))
        return Nothing()

    def getoutput(self, *_):
        return Output()


def _shell():
    """The shell of the cell that calls this."""
    return Shell(sys._getframe(1).f_globals)


_WITH_RESULTS = {
    "tqdm": lambda iterable=(), *_, **__: Nothing(iterable), "trange": lambda *limits, **_: Nothing(range(*limits)),
    "subplots": _subplots, "plot": lambda *_, **__: [Nothing()],
    "hist": lambda *_, **__: (Nothing(), Nothing(), Nothing()), "get_ipython": _shell,
}  # fmt: skip


def leave(*_):
    raise SystemExit


def found_by(in_notebook):
    """{name: value} of what every cell finds; a .py file may have been exported from a notebook with its magics."""
    found = {"get_ipython": _shell, "display": Nothing()}
    return found | {"exit": leave, "quit": leave, "In": [""], "Out": {}} if in_notebook else found


class Absent(_Whole):
    """In place of a module that does not exist, and of its parts: in annotations and as a base class they do no harm, a
    decorator leaves its function, and any other call fails as the import would have."""

    def __init__(self, error, *of_class):
        self._error = str(of_class[0][0]) if of_class else error  # of a class that inherits from one

    def __call__(self, *args, **kwargs):
        if len(args) == 1 and not kwargs and isinstance(args[0], FunctionType):
            return args[0]
        raise ModuleNotFoundError(self._error)

    __or__ = __ror__ = _Whole._itself

    def __str__(self):
        return self._error


def unchecked(*args, **kwargs):
    """In place of `check` while a file is loaded."""
    return SimpleNamespace(passed=True, core=True, outcome="", message="", misconception=None, share=0.0, seed=None)


class _Package(ModuleType):
    __path__ = ()
    __file__ = None

    def __getattr__(self, name):
        return getattr(Nothing(), name)


class Finder:
    """Finds stand-ins for the modules with some names."""

    def __init__(self, is_stood_for):
        self.is_stood_for = is_stood_for

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self, is_package=True) if self.is_stood_for(name) else None

    def create_module(self, spec):
        return _Package(spec.name)

    def exec_module(self, module):
        pass


def _is_seen(module):
    """Whether a module shows something in a notebook. The library imports matplotlib and tqdm, so these stay."""
    in_notebooks = ("tqdm.notebook", "tqdm.auto", "tqdm.autonotebook")
    return module.partition(".")[0] in ("IPython", "ipywidgets") or module in in_notebooks


def _is_of_colab(module):
    return module in ("google", "otter") or f"{module}.".startswith("google.colab.")


def is_stood_for(module):
    """Whether a module has a stand-in where answers are graded."""
    return module.partition(".")[0] in OTHERS


def without_pictures():
    """From now on, what draws and shows is a stand-in where it does not exist: files that import it can be loaded."""
    sys.meta_path.append(Finder(lambda module: is_stood_for(module) and not module.startswith("IPython.core")))


@contextmanager
def colab():
    """Inside the block, google.colab is a stand-in where it does not exist: drives, uploads and forms do nothing."""
    sys.meta_path.append(finder := Finder(_is_of_colab))
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name, module in [*sys.modules.items()]:
            if _is_of_colab(name) and isinstance(module, _Package):
                del sys.modules[name]


@contextmanager
def unseen():
    """Inside the block, nothing is shown: IPython, its widgets and bars are stand-ins, pictures are drawn for no
    screen, and progress bars are silent."""
    silent = nullcontext()
    with suppress(ImportError):  # it is not in every browser tab
        from tqdm import tqdm

        silent = methods(tqdm, {"__init__": partialmethod(tqdm.__init__, disable=True)})
    before = {name: sys.modules.pop(name) for name in [*filter(_is_seen, sys.modules)]}
    sys.meta_path.insert(0, finder := Finder(_is_seen))
    try:
        with silent, environment({"MPLBACKEND": "agg"}):
            yield
    finally:
        sys.meta_path.remove(finder)
        for name in [*filter(_is_seen, sys.modules)]:
            del sys.modules[name]
            vars(sys.modules.get("tqdm", sys)).pop(name.removeprefix("tqdm."), None)
        sys.modules.update(before)
