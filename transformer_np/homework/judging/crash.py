"""An exception that an answer raised, in the student's own lines, and what is known of it."""

import os
import re
import traceback
import warnings
from dataclasses import dataclass
from dis import get_instructions
from functools import lru_cache
from inspect import Parameter, getargs, signature
from pathlib import Path

from ..guard import files_of_the_teacher, is_students
from .objects import MOST_ITEMS

_SHEETS = f"{Path(__file__).parents[1] / 'sheets'}{os.sep}"


@dataclass(frozen=True)
class Crash:
    """An exception that an answer raised.

    kind: its class, "ValueError"; text: its message
    where: the student's innermost function, "" for the answer itself
    trace: the student's lines of the traceback, as Python prints them
    advice: a sentence on parameters that do not fit the call, or on an answer that is begun, or ""
    by: what raised it in the answer's own code, as `operation`; of a trial (code, offset) of the instruction
    """

    kind: str
    text: str
    where: str
    trace: str
    advice: str = ""
    by: str | tuple = ""

    @property
    def not_started(self):
        return self.kind == "NotImplementedError" and not self.advice

    @property
    def told(self):
        """The exception with its lines, as a student or a teacher reads it."""
        head = f"{self.kind}: {self.text}" if self.text else self.kind
        return f"{head}\n{self.trace}" if self.trace else head

    @property
    def operation(self):
        """What raised it: an operator such as "@", the name of another instruction of Python, "call", or ""."""
        return _instruction(*self.by) if isinstance(self.by, tuple) else self.by

    def is_like(self, other):
        """Whether another exception is of the same kind, from the same operation, with the same message but for its
        numbers; NumPy says the same of any two shapes that do not fit, so there these count too."""
        numbers = [sorted(re.findall(r"\d+", crash.text)) for crash in (self, other)]
        return (
            self.kind == other.kind
            and self.operation == other.operation
            and re.sub(r"[\d(), ]+", " ", self.text) == re.sub(r"[\d(), ]+", " ", other.text)
            and (self.kind != "ValueError" or numbers[0] == numbers[1])
        )


def crash_of(error, exercise=None, answer=None):
    """An exception as a Crash, with only the student's lines."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_students(frame.filename)]
    shown = traceback.format_list(frames[-8:])  # an endless recursion repeats itself
    lines = "".join(line for line in shown if not line.startswith("  [Previous line repeated"))  # in these few frames
    kind, text = _kind_and_text(error)
    if isinstance(error, SyntaxError) and error.filename and is_students(error.filename):
        lines = "".join(traceback.format_exception_only(error)[:-1])
        text = error.msg
        text += ": save the file as UTF-8" if "'utf-8' codec can't decode" in text else ""
    advice = ""
    if isinstance(error, TypeError) and not frames and exercise is not None:
        advice = _parameters_that_do_not_fit(exercise, answer)
    if isinstance(error, NotImplementedError) and _is_begun(error):
        advice = "The answer is begun, but this line says that a part of it is not written yet."
    where = frames[-1].name if frames else ""
    inside = next((frame.f_locals.get("self") for frame, _ in _running(error)), None)
    if isinstance(answer, type) and inside is not None and answer not in type(inside).__mro__:
        where = type(inside).__name__  # which has methods of the same names
    where = "" if where == getattr(answer, "__name__", None) else where
    lines, by = lines[:MOST_ITEMS].rstrip(), _innermost(error)
    return Crash(kind, text[:MOST_ITEMS], where, lines, advice, by and _instruction(*by))


def crash_of_trial(error):
    """The same without what only a student reads."""
    return Crash(*_kind_and_text(error), "", "", by=_innermost(error))


def _innermost(error):
    """(code, offset) of the instruction in the innermost function of a student or a sheet, or ""."""
    innermost, entry = None, error.__traceback__
    while entry is not None:
        file = entry.tb_frame.f_code.co_filename
        is_of_teacher = file.removesuffix(", rewritten") in files_of_the_teacher
        innermost = entry if is_of_teacher or _SHEETS in file or is_students(file) else innermost
        entry = entry.tb_next
    return (innermost.tb_frame.f_code, innermost.tb_lasti) if innermost else ""


@lru_cache(1024)
def _instruction(code, offset):
    """The instruction of some code at an offset, as an operator or a name."""
    running = next((i for i in get_instructions(code) if i.offset == offset), None)
    if running is not None and running.opname.startswith(("CALL", "PRECALL")):  # 3.11 has the second
        return "call"
    return "" if running is None else running.argrepr or running.opname


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
    args, *others = getargs(code) if code else ((), None, None)  # *args and **options are variables, too
    given = len(args) + sum(map(bool, others))
    return bool(code) and (set(code.co_names) > {"NotImplementedError"} or code.co_nlocals > given)


def _kind_and_text(error):
    kind = type(error).__name__
    if isinstance(error, SystemExit):
        return kind, "it ended the program (exit, quit or sys.exit)"
    try:
        text = str(error)[:MOST_ITEMS].strip()
    except Exception as second:
        text = f"its text cannot be shown: str() of it raises {type(second).__name__}"
    return kind, f"there is no {text}" if isinstance(error, KeyError) else text


def _parameters_that_do_not_fit(exercise, answer):
    """A sentence on the difference between the answer's parameters and the exercise's, or ""."""
    pairs = [(exercise.reference, answer)]
    if isinstance(answer, type) and not isinstance(exercise.reference, type):
        return f"The answer is a class, but the exercise is a function. Is an object of it meant, {answer.__name__}(…)?"
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
