"""The student's functions in place of the library's, inside a `with` block."""

import inspect
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial, reduce, wraps

import numpy as np

from ..masks import hide
from ..support.checks import short
from ..support.intercept import is_of_package, methods, namespaces, rebind
from .judging.attempt import attempt
from .path import all_exercises

_current = None  # the active Swap


@dataclass(frozen=True)
class Swap:
    """The functions replaced by `using`.

    calls: {name of an exercise: number of calls of the student's function so far}
    left_out: the names of answers that are not started; the library's functions stay in their place
    """

    calls: dict = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


@contextmanager
def using(answers):
    """Inside the block, the library computes with the student's functions and classes.

        import homework
        with using(homework) as swap:
            model = Transformer(config)
            loss = ...
        print(swap.calls)

    answers: a module, `globals()` of a notebook, or {name: function}; names of no exercise, answers that are not
        started and the library's own functions are ignored. Create the model inside to use the student's blocks.

    Yields a Swap. Afterwards the library is restored, also after an exception. Raises ValueError if the answers contain
    no exercise, RuntimeError inside another `using`.
    """
    if _current is not None:
        raise RuntimeError("`using` cannot be nested: the library already computes with the student's functions")
    started, left_out = started_answers(answers)
    swap = Swap(dict.fromkeys(started, 0), left_out)
    with ExitStack() as undo:
        undo.enter_context(methods(sys.modules[__name__], {"_current": swap}))
        in_library, in_answers = [], []  # pairs (old, new)
        for name, answer in started.items():
            exercise, on_call = all_exercises()[name], partial(_count, swap.calls, name)
            if isinstance(answer, type):
                undo.enter_context(methods(answer, _counted_methods(exercise, answer, on_call)))
                in_library.append((exercise.reference, answer))
            else:
                in_library.append((exercise.reference, stand_in(exercise, answer, on_call)))
                in_answers.append((answer, _counted(answer, on_call)))  # one answer may call another
        undo.enter_context(rebound(in_answers, lambda: _namespaces(started.values())))
        undo.enter_context(rebound(in_library, lambda: namespaces(without="homework")))
        yield swap


@contextmanager
def rebound(pairs, namespaces):
    """Inside the block, every name that is bound to an old object is bound to its new one; pairs: [(old, new), …].

    namespaces: a function that lists them; it is called again at the end, because modules may be loaded inside
    """
    rebind(pairs, namespaces())
    try:
        yield
    finally:
        rebind([(new, old) for old, new in pairs], namespaces())


def refuse_inside_using():
    """Raise RuntimeError inside `using`, where the library's functions are replaced."""
    if _current is not None:
        raise RuntimeError("check inside `using` would compare the answer with itself; call it before or after")


def started_answers(answers):
    """The started answers as {name: object}, and the names of the others. answers: as for `using`"""
    exercises = all_exercises()
    if not isinstance(answers, Mapping):
        if not hasattr(answers, "__dict__"):
            raise TypeError(f"answers must be a module or {{name: function}}, got {short(answers)}")
        answers = answers.answers if hasattr(answers, "answers") else vars(answers)
    given = {
        name: answers[name]
        for name, exercise in exercises.items()
        if callable(answers.get(name)) and answers[name] is not exercise.reference
    }
    if not given:
        raise ValueError("there is no answer to use: none is a function or class with the name of an exercise")
    plain = {name: exercises[name].cases(np.random.default_rng(0))[0] for name in given}
    left_out = tuple(name for name in given if attempt(exercises[name], given[name], plain[name]).not_started)
    return {name: answer for name, answer in given.items() if name not in left_out}, left_out


def _count(calls, name):
    calls[name] += 1


def _counted(answer, on_call):
    @wraps(answer)
    def called(*args, **kwargs):
        on_call()
        return answer(*args, **kwargs)

    return called


def _counted_methods(exercise, answer, on_call):
    """{name: the method of a class, which counts its calls} of those to write, or of the constructor if it has none."""
    names = [name for name in exercise.parts if hasattr(answer, name)] or ["__init__"]
    return {name: _counted(getattr(answer, name), on_call) for name in names}


def _namespaces(answers):
    """The global namespaces of these answers' code, without the library's."""
    code = [vars(answer).values() if isinstance(answer, type) else [inspect.unwrap(answer)] for answer in answers]
    found = [getattr(function, "__globals__", {}) for functions in code for function in functions]
    return [names for names in found if not is_of_package(names.get("__name__"))]


# --- stand-ins for the library's functions and classes ---------------------------------------------------------------


def stand_in(exercise, answer, on_call):
    """An answer in the form that the library calls; on_call() is called each time.

    The library asks for more than the exercise does: it passes several masks in a tuple, and needs results of its own
    dtype. If the answer calls the library's function of the same name, it gets the original. Of a class it is a
    subclass.
    """
    if isinstance(answer, type):
        body = {"__doc__": answer.__doc__, "__module__": answer.__module__, "__qualname__": answer.__qualname__}
        return type(answer.__name__, (answer,), body | _counted_methods(exercise, answer, on_call))
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


def one_mask(masks, dtype):
    """Several masks as one: Boolean if all are Boolean, otherwise additive."""
    if not masks:
        return None
    if all(mask.dtype == bool for mask in masks):
        return reduce(np.logical_or, masks)
    combined = np.zeros(np.broadcast_shapes(*(mask.shape for mask in masks)), dtype)
    hide(combined, masks)
    return combined


def _dtype(parameters, given):
    """The dtype of the results: the `dtype` argument, or the dtype of the first float array."""
    if "dtype" in parameters.parameters:
        return given.get("dtype", parameters.parameters["dtype"].default)
    arrays = (value for value in given.values() if isinstance(value, np.ndarray) and value.dtype.kind == "f")
    return next((array.dtype for array in arrays), None)


def _as_the_library_would(output, dtype):
    """Writeable float arrays of this dtype; several of them in a tuple."""
    if isinstance(output, tuple | list):
        return tuple(_as_the_library_would(value, dtype) for value in output)
    if isinstance(output, np.ndarray) and output.dtype.kind == "f" and dtype is not None:
        output = output.astype(dtype, copy=not output.flags.writeable)
    return output
