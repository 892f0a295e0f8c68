"""The student's functions in place of the library's, inside a `with` block."""

import inspect
import sys
import threading
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce, wraps

import numpy as np

from ..masks import hide
from ..support.checks import short
from ..support.intercept import methods, namespaces, rebind
from .judging.attempt import attempt
from .path import all_exercises

_current = None  # the active Swap


@dataclass(frozen=True)
class Swap:
    """left_out: the names of answers that are not started; the library's functions stay in their place"""

    left_out: tuple[str, ...] = ()


@contextmanager
def using(answers):
    """Inside the block, the library computes with the student's functions and classes.

        import homework
        with using(homework) as swap:
            model = Transformer(config)
            loss = ...
        print(swap.left_out)

    answers: a module, `globals()` of a notebook, or {name: function}; names of no exercise, answers that are not
        started and the library's own functions are ignored. Create the model inside to use the student's blocks.

    Yields a Swap. Afterwards the library is restored, also after an exception. Raises ValueError if the answers contain
    no exercise, RuntimeError inside another `using`.
    """
    if _current is not None:
        raise RuntimeError("`using` cannot be nested: the library already computes with the student's functions")
    started, left_out = started_answers(answers)
    swap = Swap(left_out)
    in_library = []  # pairs (old, new)
    for name, answer in started.items():
        exercise = all_exercises()[name]
        new = answer if isinstance(answer, type) else stand_in(exercise, answer)
        in_library.append((exercise.reference, new))
    inside = methods(sys.modules[__name__], {"_current": swap})
    with inside, rebound(in_library, lambda: namespaces(without="homework")):
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


# --- stand-ins for the library's functions and classes ---------------------------------------------------------------


def stand_in(exercise, answer, on_call=lambda: None):
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
