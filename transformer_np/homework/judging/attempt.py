"""One call of an answer: its output, or its failure."""

import builtins
import copy
import os
import random
import re
import sys
import sysconfig
import traceback
import warnings
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from dis import get_instructions
from functools import cache
from inspect import Parameter, signature, unwrap
from pathlib import Path
from types import NoneType

import numpy as np

from ..exercise import call
from .syntax import handed_over, strange_slice

_LIBRARY = Path(__file__).parents[2]
_PACKAGES = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), Path(np.__file__).parents[1])
_PYTHON = (sysconfig.get_path("stdlib"), Path(traceback.__file__).parent)  # the second is a .zip file in a browser
_NUMPY, _SHEETS = str(Path(np.__file__).parent), f"{Path(__file__).parents[1] / 'sheets'}{os.sep}"
_NOT_THE_STUDENT = tuple(f"{folder}{os.sep}" for folder in (_LIBRARY, *_PACKAGES, *_PYTHON))
_NOT_THE_STUDENT += ("<frozen ", "<__array_function__", "<shapes of ")
USUAL_WORK, OF_A_CALL = 1000, 60
MOST_TEXT = 10_000  # characters of an exception's message, and of its lines
files_of_the_teacher = set()  # with exercises


@dataclass(frozen=True)
class Crash:
    """An exception that an answer raised.

    kind: its class, "ValueError"; text: its message
    where: the student's innermost function, "" for the answer itself
    trace: the student's lines of the traceback, as Python prints them
    advice: a sentence on parameters that do not fit the call, or on an answer that is begun, or ""
    empty: a sentence on a slice of the student's such as `x[:-n]` with n = 0, or `x[: T - n]` with n > T, or ""
    misplaced: a sentence on an argument that the student hands over in the place of another, or ""
    operation: what raised it in the answer's own code, "@", "[]" or "call", or ""
    """

    kind: str
    text: str
    where: str
    trace: str
    advice: str = ""
    empty: str = ""
    misplaced: str = ""
    operation: str = ""

    @property
    def not_started(self):
        return self.kind == "NotImplementedError" and not self.advice

    def is_like(self, other):
        """Whether another exception is of the same kind, from the same operation, with the same message but for its
        numbers; NumPy says the same of any two shapes that do not fit, so there these count too."""
        numbers = [sorted(re.findall(r"\d+", crash.text)) for crash in (self, other)]
        return (
            (self.kind, self.operation) == (other.kind, other.operation)
            and re.sub(r"[\d(), ]+", " ", self.text) == re.sub(r"[\d(), ]+", " ", other.text)
            and (self.kind != "ValueError" or numbers[0] == numbers[1])
        )


@dataclass(frozen=True)
class Attempt:
    """The outcome of one call.

    output: a copy of it; crash: the Crash instead; changed: the names of the arguments that were changed
    broken: the rules of `RULES` that the call has broken
    shares: whether a result shares memory with an argument; None if unknown
    """

    output: object = None
    crash: Crash | None = None
    changed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    shares: bool | None = None


def attempt(exercise, answer, case, is_trial=False):
    """Call an answer with copies of a case's arguments. In a trial, of a changed answer, the rules and the lines of a
    traceback do not matter; both take time."""
    arguments, options = copies(case.arguments, case.options)
    tried = attempt_with(exercise, answer, arguments, options, is_trial)
    return tried if tried.crash else replace(tried, changed=changed(exercise, case, (*arguments, *options.values())))


_PLAIN = (int, float, str, bool, type, NoneType)  # nobody can change them


def copies(arguments, options):
    """Copies of a case's arguments and options. copy.deepcopy is slow for plain arrays and numbers."""
    given = (*arguments, *options.values())
    if all(type(value) is np.ndarray or isinstance(value, _PLAIN) for value in given):
        given = [value.copy(order="K") if type(value) is np.ndarray else value for value in given]
        count = len(arguments)
        return tuple(given[:count]), dict(zip(options, given[count:], strict=True))
    return copy.deepcopy((arguments, options))


RULES = {
    "global random numbers": "It draws from the global random numbers (random, np.random), which all code "
    "shares. Draw from `rng` alone.",
    "rng not used": "The random numbers do not come from `rng`: the call leaves it as it was. Draw from `rng`.",
}


def attempt_with(exercise, answer, arguments, options, is_trial=False):
    """Call an answer, which may change its arguments. NumPy's warnings are hidden: only the result counts."""
    missing = unwritten(answer, exercise.parts)
    if missing is not None:
        return Attempt(crash=Crash("NotImplementedError", "", missing if missing in exercise.parts else "", ""))
    before, rng = (None, None) if is_trial else (_global_state(), _state_of_generator(arguments, options))
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            output = exercise.drive(answer, *arguments, **options)
            shares = _shares(output, (*arguments, *options.values()))
            output = _as_it_is_now(output)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit, or one of the student's own
        if is_trial:
            return Attempt(crash=Crash(*_kind_and_text(error), "", "", operation=_operation_of(error)))
        return Attempt(crash=crash_of(error, exercise, answer))
    if is_trial:
        return Attempt(output, shares=shares)
    broken = ["global random numbers"] if _global_state() != before else []
    if rng is not None and rng == _state_of_generator(arguments, options):
        broken.append("rng not used")
    return Attempt(output, broken=tuple(broken), shares=shares)


def _shares(output, arguments):
    """Whether an array of the output shares memory with an array among the arguments."""
    outputs = [part for part in (output if type(output) in (tuple, list) else [output]) if type(part) is np.ndarray]
    arrays = [value for value in arguments if type(value) is np.ndarray]
    return any(np.may_share_memory(part, array) for part in outputs for array in arrays)


def _global_state():
    """The state of the random numbers that all code shares."""
    _, keys, *rest = np.random.get_state()  # noqa: NPY002 - an answer may use it
    return random.getstate(), keys.tobytes(), rest


def _state_of_generator(arguments, options):
    """The state of the Generator among the arguments, or None."""
    for value in (*arguments, *options.values()):
        if isinstance(value, np.random.Generator):
            return str(value.bit_generator.state)
    return None


def arrays_of(case):
    """The arrays among the arguments of a case."""
    given = (*case.arguments, *case.options.values())
    return [value for value in given if isinstance(value, np.ndarray)]


def work_of(function, case):
    """A measure of the work in a function that is called with a case: the calls that the interpreter counts, in units
    of about 0.1 µs, never a time; USUAL_WORK if something else, such as a debugger, counts already."""
    if sys.getprofile() is not None:
        return USUAL_WORK
    work = OF_A_CALL + sum(array.size for array in arrays_of(case)) // 10

    def on_event(frame, event, _):
        nonlocal work
        if event == "call":  # a function of NumPy does more than others do, one written in C less
            work += 15 if frame.f_code.co_filename.startswith(_NUMPY) else 3
        elif event == "c_call":
            work += 1

    sys.setprofile(on_event)
    try:
        function()
    finally:
        sys.setprofile(None)
    return work


def changed(exercise, case, after):
    """The names of the arguments and options that a call has changed. after: their values after the call, in order.
    Lists are compared only where the answer gets them itself, not a drive."""
    before = dict(zip(argument_names(exercise), case.arguments, strict=False)) | case.options
    if exercise.drive is not call:
        before = {name: None if type(value) in (list, dict) else value for name, value in before.items()}
    return tuple(n for (n, value), now in zip(before.items(), after, strict=True) if not _same(now, value))


def argument_names(exercise):
    """The names of a case's arguments, in order."""
    return _parameters(exercise.reference) if exercise.drive is call else _parameters(exercise.drive)[1:]


@cache
def _parameters(function):
    return [p.name for p in signature(function).parameters.values() if p.kind is not Parameter.VAR_KEYWORD]


def no_input(prompt=""):
    """In place of `input`."""
    raise RuntimeError("input() is not possible: nobody types while an answer is checked")


UNSET = 77  # stands for what the memory holds
_MAKERS = ((np, "empty"), (np, "empty_like"), (np.lib.stride_tricks, "as_strided"))


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
    and other arrays change."""

    def viewed(x, *args, **options):
        view, memory = as_strided(x, *args, **options), np.asarray(x)
        while isinstance(memory.base, np.ndarray):
            memory = memory.base
        (first, last), (begin, end) = map(np.lib.array_utils.byte_bounds, (view, memory))
        if view.size and not begin <= first <= last <= end:
            raise ValueError("the view of as_strided reaches outside of its array")
        return view

    return viewed


SAFE = {  # {function of NumPy: what stands for it while an answer runs}
    make: (_inside if name == "as_strided" else _always_same)(make)
    for make, name in ((getattr(module, name), name) for module, name in _MAKERS)
}


def make_numpy_safe():
    """Replace the functions that read or write any memory. Returns a function that undoes it."""
    before = [(module, name, getattr(module, name)) for module, name in _MAKERS]
    for module, name, make in before:
        setattr(module, name, SAFE.get(make, make))
    return lambda: [setattr(*item) for item in before]


@contextmanager
def safe_numpy():
    undo = make_numpy_safe()
    try:
        yield
    finally:
        undo()


@contextmanager
def unheard():
    """Inside the block, what is printed or written to sys.stdout goes nowhere."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        yield


@contextmanager
def guarded():
    """Undo afterwards what an answer may change in this process: NumPy and the library's functions (np.exp = …), the
    global random numbers, the folder, the limit of recursion, the output. Inside the block, input() raises."""
    functional = sys.modules.get(f"{_LIBRARY.name}.functional", np)  # not loaded by a worker of the grader
    before = {module: dict(vars(module)) for module in (np, np.linalg, np.random, functional)}
    numbers, keys = random.getstate(), np.random.get_state()  # noqa: NPY002
    folder, depth, out, read = os.getcwd(), sys.getrecursionlimit(), sys.stdout, builtins.input
    builtins.input = no_input
    try:
        with safe_numpy():
            yield
    finally:
        for module, members in before.items():
            for name, member in members.items():
                if vars(module).get(name) is not member:
                    setattr(module, name, member)
        random.setstate(numbers)
        np.random.set_state(keys)  # noqa: NPY002
        os.chdir(folder)
        sys.setrecursionlimit(depth)
        sys.stdout, builtins.input = out, read


# --- answers that are not written yet ---------------------------------------------------------------------------------


def unwritten(answer, parts=()):
    """The name of the function or required method whose body is empty (a docstring, `pass` or `...`), or None."""
    if isinstance(answer, type):
        return next((name for name in parts if unwritten(vars(answer).get(name)) is not None), None)
    function = unwrap(answer) if callable(answer) else answer
    code = getattr(function, "__code__", None)
    if code is None or code.co_names or not set(code.co_consts) <= {None, ..., function.__doc__}:
        return None
    does = {instruction.opname for instruction in get_instructions(code)}
    return function.__name__ if does <= {"RESUME", "NOP", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST"} else None


# --- answers that raise -----------------------------------------------------------------------------------------------


def crash_of(error, exercise=None, answer=None):
    """An exception as a Crash, with only the student's lines."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_students(frame.filename)]
    lines = "".join(traceback.format_list(frames[-8:]))  # an endless recursion repeats itself
    kind, text = _kind_and_text(error)
    if isinstance(error, SyntaxError) and error.filename and is_students(error.filename):
        lines = "".join(traceback.format_exception_only(error)[:-1])
        text = error.msg
    advice = ""
    if isinstance(error, TypeError) and not frames and exercise is not None:
        advice = _parameters_that_do_not_fit(exercise, answer)
    if isinstance(error, NotImplementedError) and _is_begun(error):
        advice = "The answer is begun, but this line says that a part of it is not written yet."
    where = frames[-1].name if frames else ""
    where = "" if where == getattr(answer, "__name__", None) else where
    empty = ""
    if isinstance(error, ValueError | IndexError | TypeError | ZeroDivisionError):  # of shapes; else nothing is parsed
        empty = next((_about_slice(*running) for running in _running(error)), "")
    misplaced = ""
    if refused := re.match(r"(?:\w+: )?(\w+) must (?:be|lie)", text):  # what the library's functions say
        misplaced = next((_about_place(*running, refused[1]) for running in _running(error)), "")
    lines = lines[:MOST_TEXT].rstrip()
    return Crash(kind, text[:MOST_TEXT], where, lines, advice, empty, misplaced, _operation_of(error))


def _operation_of(error):
    """What raised an exception in the innermost function of a student or a sheet: an operator such as "@", the name of
    another instruction of Python, or "call"."""
    innermost, entry = None, error.__traceback__
    while entry is not None:
        file = entry.tb_frame.f_code.co_filename
        is_of_teacher = file.removesuffix(", rewritten") in files_of_the_teacher
        innermost = entry if is_of_teacher or _SHEETS in file or is_students(file) else innermost
        entry = entry.tb_next
    instructions = get_instructions(innermost.tb_frame.f_code) if innermost else ()
    running = next((i for i in instructions if i.offset == innermost.tb_lasti), None)
    if running is None:
        return ""
    is_call = running.opname.startswith(("CALL", "PRECALL"))  # 3.11 has the second
    return "call" if is_call else running.argrepr or running.opname


def _about_slice(frame, line):
    """A sentence on a slice such as `x[:-n]` with n = 0 in a running function, or ""."""
    piece, end, number = strange_slice(frame, line) or ("", "", 0)
    if number:
        return f"In `{piece}`, {end} is {number} in this call, and a negative end counts from the end: 0 is the least."
    return piece and f"`{piece}` is empty in this call: {end} is 0, and `:-0` means `:0`. Count the end from the front."


def _about_place(frame, line, parameter):
    """A sentence on what a call in a running function hands over as a parameter that is refused, or ""."""
    value, call, names = handed_over(frame, line, parameter) or ("", "", ())
    if value in names and value != parameter:
        return (
            f"`{value}` stands in the place of `{parameter}` here: the parameters are {call}({', '.join(names)}). Hand "
            f"it over by its name, {value}=…."
        )
    return f"`{value}` is handed over as `{parameter}`, and {call} refuses it." if value not in ("", parameter) else ""


def _running(error):
    """The student's functions in which an exception was raised, (frame, line), the innermost first."""
    frames = [*traceback.walk_tb(error.__traceback__)][::-1]
    return [(frame, line) for frame, line in frames if is_students(frame.f_code.co_filename)]


def warn_of(error, name):
    """Warn of an exception that no line of a student's has raised: the explanation of an answer has a bug."""
    if not _running(error):
        said = (
            f"{name}: the search for the mistake ended with {_kind_and_text(error)}. Please report it with the answer."
        )
        warnings.warn(said, RuntimeWarning, stacklevel=2)


def _is_begun(error):
    """Whether the student's function that raises does anything else."""
    code = next((frame.f_code for frame, _ in _running(error)), None)
    return bool(code) and (
        set(code.co_names) > {"NotImplementedError"} or code.co_nlocals > code.co_argcount + code.co_kwonlyargcount
    )


def _kind_and_text(error):
    kind = type(error).__name__
    if isinstance(error, SystemExit):
        return kind, "it ended the program (exit, quit or sys.exit)"
    try:
        text = str(error)[:MOST_TEXT].strip()
    except Exception as second:
        text = f"its text cannot be shown: str() of it raises {type(second).__name__}"
    return kind, f"there is no {text}" if isinstance(error, KeyError) else text


def _parameters_that_do_not_fit(exercise, answer):
    """A sentence on the difference between the answer's parameters and the exercise's, or ""."""
    pairs = [(exercise.reference, answer)]
    if isinstance(answer, type):
        pairs = [(getattr(exercise.reference, n), getattr(answer, n, None)) for n in ("__init__", *exercise.parts)]
    for wanted, given in pairs:
        try:
            wanted, given = signature(wanted).parameters, signature(given).parameters
        except (TypeError, ValueError):  # missing, or not written in Python
            continue
        if [p.kind for p in given.values() if p.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)]:
            continue
        both = f"The answer has the parameters ({_listed(given)}), but the exercise has ({_listed(wanted)})."
        missing = [name for name in wanted if name not in given]
        optional = [name for name in missing if wanted[name].default is not Parameter.empty]
        if len(given) < len(wanted) and missing and missing == optional:
            names = " and ".join(f"`{name}`" for name in missing)
            return f"The answer has no optional parameter {names}. {both}"
        if list(given) != list(wanted):
            return both
    return ""


def _listed(parameters):
    return ", ".join(str(parameter) for parameter in parameters.values())


def is_installed(filename):
    """Whether code is in a file of the library, of Python or of an installed package, and not made by rewriting one."""
    return filename.startswith(_NOT_THE_STUDENT) and filename.endswith(".py")


def is_students(filename):
    """Whether a file is the student's: not part of the library, of Python, of an installed package, nor a teacher's."""
    of_teacher = filename.removesuffix(", rewritten") in files_of_the_teacher
    return not of_teacher and not filename.startswith(_NOT_THE_STUDENT) and not filename.endswith(".pyx")


# --- answers that return ----------------------------------------------------------------------------------------------


def _as_it_is_now(output, made=None):
    """A copy of the output: the answer may write to its arrays again in the next call. A list that it holds twice is
    copied once (made: {its id: its copy}), or lists of lists of themselves would have no end."""
    made = {} if made is None else made
    if isinstance(output, np.ndarray):
        return _copy(output)
    if type(output) not in (tuple, list):
        return output
    if id(output) not in made:
        made[id(output)] = type(output)(_as_it_is_now(item, made) for item in output)
    return made[id(output)]


def _copy(array):
    """A copy that takes no more memory than the array does: repeats made by np.broadcast_to stay repeats."""
    if type(array) is not np.ndarray or 0 not in array.strides or not array.size:
        return array.copy()
    once = array[tuple(slice(None) if stride else slice(1) for stride in array.strides)]
    return np.broadcast_to(once.copy(), array.shape)


def _same(after, before):
    """Whether an argument is unchanged. A random generator is expected to change; a list may be unknown, None."""
    if type(before) in (list, dict) and after is not None:
        return _same_items(after, before)
    if not isinstance(before, np.ndarray):
        return True
    if after.shape != before.shape:
        return False
    same_bytes = after.dtype == before.dtype and after.tobytes() == before.tobytes()  # the rule, and faster
    return same_bytes or np.array_equal(after, before, equal_nan=before.dtype.kind == "f")


def _same_items(after, before):
    if type(before) is dict:
        return list(after) == list(before) and all(_same(after[key], before[key]) for key in before)
    if len(after) != len(before):
        return False
    plain = (int, float, str, tuple)
    pairs = zip(after, before, strict=True)
    return all(a == b if isinstance(b, plain) else _same(a, b) for a, b in pairs)
