"""The student's functions in the place of the library's own, for as long as a `with` lasts."""

import inspect
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps

import numpy as np

from .judging.attempt import attempt
from .path import all_exercises

_PACKAGE = __package__.partition(".")[0]
_current = None  # the Swap that is in force


@dataclass(frozen=True)
class Swap:
    """What `using` put in place.

    calls: {name of an exercise: how often the student's was called so far}
    left_out: the names of answers that are not started; there the library's own stay
    """

    calls: dict = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


@contextmanager
def using(answers):
    """Inside, the library computes with the student's functions and classes.

        import homework
        with using(homework) as swap:
            model = Transformer(config)
            loss = …
        print(swap.calls)

    answers: a module, `globals()` of a notebook, or {name: function}; what is no exercise, not started or the library's
        own is left alone. A model must be made inside, where it is to have the student's blocks.

    Yields a Swap. Afterwards everything is as it was, whatever happened. Raises ValueError if nothing in the answers is
    an exercise, RuntimeError inside another `using`.
    """
    global _current
    if _current is not None:
        raise RuntimeError("`using` inside `using`: the library already computes with the student's functions")
    started, left_out = started_answers(answers)
    swap = Swap(dict.fromkeys(started, 0), left_out)
    exercises = all_exercises()
    with ExitStack() as undo:
        _current = swap
        undo.callback(_forget)
        in_library, in_answers = [], []  # pairs, what is replaced and by what
        for name, answer in started.items():
            exercise, on_call = exercises[name], partial(_count, swap.calls, name)
            if isinstance(answer, type):
                undo.enter_context(_counted_methods(exercise, answer, on_call))
                in_library.append((exercise.reference, answer))
            else:
                in_library.append((exercise.reference, stand_in(exercise, answer, on_call)))
                in_answers.append((answer, _counted(answer, on_call)))  # where one answer calls another
        namespaces = _namespaces(started.values())
        undo.callback(_replace, [(new, old) for old, new in in_answers], namespaces)
        _replace(in_answers, namespaces)
        # afterwards wherever they are then: also in modules that were loaded meanwhile
        undo.callback(lambda: _replace([(new, old) for old, new in in_library], _of_library()))
        _replace(in_library, _of_library())
        yield swap


def _forget():
    global _current
    _current = None


def refuse_inside_using(what):
    """RuntimeError inside `using`, where the library is not the library."""
    if _current is not None:
        raise RuntimeError(f"{what} inside `using`: the answer would be compared with itself; do it before or after")


def started_answers(answers):
    """Of answers as `using` takes them {name: object} of those that are begun, and the names of those that are not."""
    exercises = all_exercises()
    if not isinstance(answers, Mapping):
        answers = answers.answers if hasattr(answers, "answers") else vars(answers)
    given = {
        name: answers[name]
        for name, exercise in exercises.items()
        if callable(answers.get(name)) and answers[name] is not exercise.reference
    }
    if not given:
        raise ValueError("there is no answer to an exercise to use: none of the names is that of an exercise")
    left_out = tuple(name for name, answer in given.items() if not is_started(exercises[name], answer))
    return {name: answer for name, answer in given.items() if name not in left_out}, left_out


def is_started(exercise, answer):
    """Whether an answer does anything but raise NotImplementedError."""
    crash = attempt(exercise, answer, exercise.cases(np.random.default_rng(0))[0]).crash
    return not (crash and crash.not_started)


def _count(calls, name):
    calls[name] += 1


def _counted(answer, on_call):
    @wraps(answer)
    def called(*args, **kwargs):
        on_call()
        return answer(*args, **kwargs)

    return called


@contextmanager
def _counted_methods(exercise, answer, on_call):
    """Inside, a class counts the calls of the methods to be written, or if it has none of these, its objects."""
    before = dict(vars(answer))
    names = _methods(exercise, answer)
    for name in names:
        setattr(answer, name, _counted(getattr(answer, name), on_call))
    try:
        yield
    finally:
        for name in names:
            if name in before:
                setattr(answer, name, before[name])
            else:  # it was a base's
                delattr(answer, name)


def _methods(exercise, answer):
    return [name for name in exercise.parts if hasattr(answer, name)] or ["__init__"]


def _namespaces(answers):
    """The global names that the code of these answers sees, each dict once; not those of the library."""
    found = {}
    for answer in answers:
        functions = vars(answer).values() if isinstance(answer, type) else [inspect.unwrap(answer)]
        for function in functions:
            names = getattr(function, "__globals__", None)
            if names is not None and not _is_library(names.get("__name__")):
                found[id(names)] = names
    return list(found.values())


def _of_library():
    """The names of every module of the library that is loaded, but those of the homework itself."""
    return [
        vars(module)
        for name, module in list(sys.modules.items())
        if module is not None and _is_library(name) and not f"{name}.".startswith(f"{__package__}.")
    ]


def _is_library(name):
    return str(name).partition(".")[0] == _PACKAGE


def _replace(pairs, namespaces):
    """Each old object by its new one, under whatever name it has there."""
    new_of = {id(old): new for old, new in pairs}
    for names in namespaces:
        for name, value in list(names.items()):
            if id(value) in new_of:
                names[name] = new_of[id(value)]


# --- what stands in for a function or class of the library ----------------------------------------------------------


def stand_in(exercise, answer, on_call):
    """An answer as the library calls it; on_call() is called each time.

    The library asks for more than the exercise: it hands over several masks in a tuple, and needs results of the dtype
    it works in. An answer that calls the library's function of the same name gets the library's own.
    """
    make = _class_stand_in if isinstance(answer, type) else _function_stand_in
    return make(exercise, answer, on_call)


def _function_stand_in(exercise, answer, on_call):
    reference = exercise.reference
    parameters = inspect.signature(reference)
    inside = threading.local()

    @wraps(reference)
    def called(*args, **kwargs):
        if getattr(inside, "of_answer", False):
            return reference(*args, **kwargs)
        on_call()
        bound = parameters.bind(*args, **kwargs)
        given = bound.arguments
        if isinstance(given.get("mask"), tuple):
            given["mask"] = one_mask(given["mask"], _dtype(parameters, given))
        inside.of_answer = True
        try:
            output = answer(*bound.args, **bound.kwargs)
        finally:
            inside.of_answer = False
        return _as_the_library_would(output, _dtype(parameters, given))

    return called


def _class_stand_in(exercise, answer, on_call):
    """A subclass that counts."""
    body = {"__doc__": answer.__doc__, "__module__": answer.__module__, "__qualname__": answer.__qualname__}
    counted = {name: _counted(getattr(answer, name), on_call) for name in _methods(exercise, answer)}
    return type(answer.__name__, (answer,), body | counted)


def one_mask(masks, dtype):
    """Several masks as one: Boolean where all are, else one to be added."""
    if not masks:
        return None
    combined = masks[0]
    for mask in masks[1:]:
        if combined.dtype == mask.dtype == bool:
            combined = combined | mask
        else:
            combined = _added(combined, dtype) + _added(mask, dtype)
    return combined


def _added(mask, dtype):
    return np.where(mask, -np.inf, 0.0).astype(dtype) if mask.dtype == bool else mask


def _dtype(parameters, given):
    """The dtype of the results: the one that is asked for, or that of the first array of floats."""
    if "dtype" in parameters.parameters:
        return given.get("dtype", parameters.parameters["dtype"].default)
    arrays = (value for value in given.values() if isinstance(value, np.ndarray) and value.dtype.kind == "f")
    return next((array.dtype for array in arrays), None)


def _as_the_library_would(output, dtype):
    """Arrays of floats in this dtype, and such as may be written to; several in a tuple."""
    if isinstance(output, tuple | list):
        return tuple(_as_the_library_would(value, dtype) for value in output)
    if isinstance(output, np.ndarray) and output.dtype.kind == "f" and dtype is not None:
        output = output.astype(dtype, copy=not output.flags.writeable)
    return output
