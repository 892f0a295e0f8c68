"""One call of an answer: its output, or its failure."""

import copy
import random
import sys
import warnings
from dataclasses import dataclass, replace
from dis import get_instructions
from functools import cache
from inspect import Parameter, signature, unwrap
from pathlib import Path
from types import NoneType

import numpy as np

from ..exercise import call
from .crash import Crash, crash_of, crash_of_trial

_NUMPY = str(Path(np.__file__).parent)
USUAL_WORK = 1000


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

    @property
    def not_started(self):
        """Whether it ended where nothing is written yet."""
        return self.crash is not None and self.crash.not_started


def attempt(exercise, answer, case, is_trial=False):
    """Call an answer with copies of a case's arguments. In a trial, of a changed answer, the rules and the lines of a
    traceback do not matter; both take time."""
    arguments, options = copies(case.arguments, case.options)
    tried = attempt_with(exercise, answer, arguments, options, is_trial)
    return tried if tried.crash else replace(tried, changed=changed(exercise, case, (*arguments, *options.values())))


_PLAIN = (int, float, str, bool, type, NoneType)  # nobody can change them


def copies(arguments, options):
    """Copies of a case's arguments and options."""
    return tuple(map(_copy_of, arguments)), {name: _copy_of(value) for name, value in options.items()}


def _copy_of(value):  # copy.deepcopy is slow for plain arrays and numbers
    if type(value) is np.ndarray or isinstance(value, _PLAIN):
        return value.copy(order="K") if type(value) is np.ndarray else value
    if type(value) is dict:
        return {key: _copy_of(part) for key, part in value.items()}
    return type(value)(map(_copy_of, value)) if type(value) in (list, tuple) else copy.deepcopy(value)


RULES = {
    "global random numbers": "It draws from the global random numbers (random, np.random), which all code "
    "shares. Draw from `rng` alone.",
    "rng not used": "The random numbers do not come from `rng`: the call leaves it as it was. Draw from `rng`.",
}


def attempt_with(exercise, answer, arguments, options, is_trial=False):
    """Call an answer, which may change its arguments. NumPy's warnings are hidden: only the result counts."""
    missing = None if is_trial else unwritten(answer, exercise.parts)
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
            return Attempt(crash=crash_of_trial(error))
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
    return [value for value in (*case.arguments, *case.options.values()) if isinstance(value, np.ndarray)]


def work_of(function, case):
    """A measure of the work in a function that is called with a case: the calls that the interpreter counts, in units
    of about 0.1 µs, never a time; USUAL_WORK if something else, such as a debugger, counts already."""
    if sys.getprofile() is not None:
        return USUAL_WORK
    work = sum(array.size for array in arrays_of(case)) // 10

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
    before = given(exercise, case)
    if exercise.drive is not call:
        before = {name: None if type(value) in (list, dict) else value for name, value in before.items()}
    return tuple(n for (n, value), now in zip(before.items(), after, strict=True) if not _same(now, value))


def argument_names(exercise):
    """The names of a case's arguments, in order."""
    return _parameters(exercise.reference) if exercise.drive is call else _parameters(exercise.drive)[1:]


def given(exercise, case):
    """{name: value} of the arguments and options of a case."""
    return dict(zip(argument_names(exercise), case.arguments, strict=False)) | case.options


@cache
def _parameters(function):
    return [p.name for p in signature(function).parameters.values() if p.kind is not Parameter.VAR_KEYWORD]


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


# --- what is returned ----------------------------------------------------------------------------------------------


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
