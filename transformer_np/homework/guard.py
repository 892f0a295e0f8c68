"""What the code of a student may do to the process that runs it, and which code is a student's."""

import builtins
import logging
import os
import random
import sys
import sysconfig
import traceback
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import numpy as np

from ..support.intercept import methods

_LIBRARY = Path(__file__).parents[1]
_PACKAGES = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), Path(np.__file__).parents[1])
_PYTHON = (sysconfig.get_path("stdlib"), Path(traceback.__file__).parent)  # the second is a .zip file in a browser
_NOT_THE_STUDENT = tuple(f"{folder}{os.sep}" for folder in (_LIBRARY, *_PACKAGES, *_PYTHON))
_NOT_THE_STUDENT += ("<frozen ", "<__array_function__", "<shapes of ")
files_of_the_teacher = set()  # with exercises


def is_installed(filename):
    """Whether code is in a file of the library, of Python or of an installed package, and not made by rewriting one."""
    return filename.startswith(_NOT_THE_STUDENT) and filename.endswith(".py")


def is_students(filename):
    """Whether a file is the student's: not part of the library, of Python, of an installed package, nor a teacher's."""
    of_teacher = filename.removesuffix(", rewritten") in files_of_the_teacher
    return not of_teacher and not filename.startswith(_NOT_THE_STUDENT) and not filename.endswith(".pyx")


def no_input(prompt=""):
    """In place of `input`."""
    raise RuntimeError("input() is not possible: nobody types while an answer is checked")


UNSET = 77  # stands for what the memory holds


def _always_same(make):
    """A function that makes an array without setting it, with the same numbers in it every time."""

    def made(*args, **options):
        array = make(*args, **options)
        if array.dtype != object:
            array[...] = UNSET
        return array

    return made


def _inside(as_strided):
    """as_strided, which raises ValueError if the view would reach outside of the memory of its array: Python could end,
    and other arrays change. NumPy's own code, such as np.vectorize, only asks such a view for its shape."""

    def viewed(x, *args, **options):
        view, memory = as_strided(x, *args, **options), np.asarray(x)
        if is_installed(sys._getframe(1).f_code.co_filename):
            return view
        while isinstance(memory.base, np.ndarray):
            memory = memory.base
        (first, last), (begin, end) = map(np.lib.array_utils.byte_bounds, (view, memory))
        if view.size and not begin <= first <= last <= end:
            raise ValueError("the view of as_strided reaches outside of its array")
        return view

    return viewed


_STRIDES = np.lib.stride_tricks
SAFE = {  # {function of NumPy: what stands for it while an answer runs}
    **{make: _always_same(make) for make in (np.empty, np.empty_like)},
    _STRIDES.as_strided: _inside(_STRIDES.as_strided),
}


@contextmanager
def safe_numpy():
    """Inside the block, the functions that read or write any memory do not."""
    safe = {make.__name__: function for make, function in SAFE.items()}
    strided = {"as_strided": safe.pop("as_strided")}
    with methods(np, safe), methods(_STRIDES, strided):
        yield


@contextmanager
def unheard(errors=True):
    """Inside the block, what is written to sys.stdout goes nowhere, and if `errors`, to sys.stderr; nothing is logged,
    and no picture of pyplot's is shown."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), ExitStack() as undo:
        if errors:
            undo.enter_context(redirect_stderr(nowhere))
        if plt := sys.modules.get("matplotlib.pyplot"):
            before = {*plt.get_fignums()}
            undo.callback(lambda: [plt.close(number) for number in {*plt.get_fignums()} - before])
            undo.enter_context(methods(plt, {"show": lambda *_, **__: None}))
        undo.callback(logging.disable, logging.root.manager.disable)  # a handler keeps the stream it was made with
        logging.disable()
        yield


def back_to(folder):
    """Go to a folder, from which the names of files are relative, unless a student's code has removed it."""
    with suppress(FileNotFoundError):
        os.chdir(folder)


@contextmanager
def guarded():
    """Undo afterwards what an answer may change in this process: NumPy and the library's functions (np.exp = …), the
    global random numbers, the folder, the limit of recursion, the output. Inside the block, input() raises."""
    functional = sys.modules.get(f"{_LIBRARY.name}.functional", np)  # not loaded by a worker of the grader
    before = {module: dict(vars(module)) for module in (np, np.linalg, np.random, functional)}
    numbers, keys = random.getstate(), np.random.get_state()  # noqa: NPY002
    folder, depth, out = os.getcwd(), sys.getrecursionlimit(), sys.stdout
    try:
        with safe_numpy(), methods(builtins, {"input": no_input}):
            yield
    finally:
        for module, members in before.items():
            for name, member in members.items():
                if vars(module).get(name) is not member:
                    setattr(module, name, member)
        random.setstate(numbers)
        np.random.set_state(keys)  # noqa: NPY002
        back_to(folder)
        sys.setrecursionlimit(depth)
        sys.stdout = out
