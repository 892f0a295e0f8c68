"""The shapes of a function's arguments, stated once: the decorator that checks them at every call."""

import linecache
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature, unwrap
from typing import TypeVar

import numpy as np

from .checks import as_float_array, check_flag

Function = TypeVar("Function", bound=Callable)
FLOATS = frozenset(np.dtype(char) for char in "efdg")


def shapes(**specs) -> Callable[[Function], Function]:
    """Declare the shape of each array argument of a function, checked on every call.

        @shapes(x="... D", w="D E", b="E")
        def linear(x, w, b=None): ...

    A letter stands for one size, the same wherever it appears; `...` stands for any leading axes, the same for all
    arguments. Arrays must share one floating dtype and must not be empty. An argument with a default may be None. An
    argument whose default is True or False must be one of them.

    The random arguments of the gradient checks and those of the tests come from these shapes too
    (inspection/samples.py).

    Raises ValueError for a wrong shape or a mix of dtypes, TypeError for anything that is not an array of floats.
    """
    specs = {name: tuple(spec.split()) for name, spec in specs.items()}

    def decorate(function):
        plain = unwrap(function)  # the function inside other decorators
        parameters = signature(plain).parameters
        optional = {name for name, parameter in parameters.items() if parameter.default is not Parameter.empty}
        flags = [name for name in optional if isinstance(parameters[name].default, bool)]

        def call_checked(**given):
            """The call of arguments that the quick test has not passed: convert them, or say what is wrong."""
            for name in flags:
                check_flag(name, given[name])
            return function(**_checked(plain.__name__, given, specs, optional))

        names = {"function": function, "call_checked": call_checked}
        checked = wraps(function)(_compiled(plain, parameters, _quick_test(specs, optional, flags), names))
        checked.shapes = specs
        return checked

    return decorate


def _compiled(plain, parameters, test, names):
    """A function with the parameters of `plain` that calls it if the test is true. Python's own code is several times
    faster than a loop over the arguments: a training step of a small model checks a hundred calls."""
    names |= {"__name__": plain.__module__, "ndarray": np.ndarray, "FLOATS": FLOATS}
    arguments = []
    for name, parameter in parameters.items():
        if parameter.kind is not Parameter.POSITIONAL_OR_KEYWORD:
            raise TypeError(f"shapes: {plain.__name__} may not have the parameter {parameter}")
        names[f"default_{name}"] = parameter.default
        arguments.append(name if parameter.default is Parameter.empty else f"{name}=default_{name}")
    source = (
        f"def {plain.__name__}({', '.join(arguments)}):\n"
        f"    if (\n        {test}\n    ):\n"
        f"        return function({', '.join(parameters)})\n"
        f"    return call_checked({', '.join(f'{name}={name}' for name in parameters)})\n"
    )
    file = f"<shapes of {plain.__module__}.{plain.__qualname__}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file  # a debugger shows it
    exec(compile(source, file, "exec"), names)
    return names[plain.__name__]


def _quick_test(specs, optional, flags):
    """The source of an expression that is true if all arguments fit. For x="... D" and gamma="D":

    type(x) is ndarray and x.dtype in FLOATS and len(s_x := x.shape) >= 1 and 0 not in s_x
    and type(gamma) is ndarray and gamma.dtype is x.dtype and len(s_gamma := gamma.shape) == 1 and …
    """
    first, known, unsure, terms = None, {}, set(), []  # known: {a letter, "..." or a whole shape: where it stands}
    for name, spec in specs.items():
        if not unsure.isdisjoint(spec):
            raise TypeError(f"shapes: the letters of {name} stand before it only in an argument that may be None")
        if first is None and name in optional:
            raise TypeError(f"shapes: {name} may be None, so another array must stand before it")
        same = f"({name}.dtype is {first}.dtype or {name}.dtype == {first}.dtype)"
        dtype = same if first else f"{name}.dtype in FLOATS"
        found = dict(known)
        fits = " and ".join([f"type({name}) is ndarray", dtype, *_fits(name, spec, found)])
        if name in optional:
            unsure |= set(spec) - known.keys()
            terms.append(f"({name} is None or {fits})")
        else:
            first, known = first or name, found
            terms.append(fits)
    return "\n        and ".join(terms + [f"({name} is True or {name} is False)" for name in flags])


def _fits(name, spec, known):
    """The terms that compare one array with what is known of the others; adds to what is known."""
    shape, tail = f"s_{name}", [letter for letter in spec if letter != "..."]
    if spec in known:
        return [f"{name}.shape == {known[spec]}"]
    terms = [f"len({shape} := {name}.shape) {'==' if tail == list(spec) else '>='} {len(tail)}"]
    parts = {"...": f"{shape}[:-{len(tail)}]" if tail else shape} if spec[0] == "..." else {}
    for place, letter in enumerate(tail):
        at = f"{shape}[{place - len(tail)}]"
        if letter in parts or letter in known or letter == "1":
            terms.append(f"{at} == {parts.get(letter) or known.get(letter, 1)}")
        else:
            parts[letter] = at
    terms += [f"{part} == {known[letter]}" for letter, part in parts.items() if letter in known]
    if parts.keys() - known.keys():
        terms.append(f"0 not in {shape}")
    known |= {letter: part for letter, part in parts.items() if letter not in known} | {spec: shape}
    return terms


def _checked(where, given, specs, optional):
    """The arguments, with lists as arrays; ValueError or TypeError for the first that does not fit."""
    sizes, first, order = {"1": 1}, None, [*specs]
    if where.endswith("_backward"):  # the others are the forward's: if dout does not fit them, dout is wrong
        order.append(order.pop(0))
    for name in order:
        if given[name] is None and name in optional:
            continue
        array = given[name] = as_float_array(given[name], f"{where}: {name}")
        if first is None:
            first = name
        elif array.dtype != given[first].dtype:
            dtypes = f"{name} is {array.dtype} but {first} is {given[first].dtype}"
            raise ValueError(f"{where}: {dtypes}; bring both to one dtype with .astype")
        beside = "" if name == first else f" for {first} {given[first].shape}"
        _match(where, name, array.shape, specs[name], sizes, beside)
    return given


def _match(where, name, shape, spec, sizes, beside):
    """Bind the sizes of one array to the letters of its spec; ValueError for a size that does not fit."""
    if spec[0] == "...":
        tail = len(spec) - 1
        lead = len(shape) - tail
        found = [("...", shape[:lead]), *zip(spec[1:], shape[lead:], strict=True)] if lead >= 0 else None
    else:
        found = zip(spec, shape, strict=True) if len(spec) == len(shape) else None
    if found is None:
        raise ValueError(f"{where}: {name} must have the axes ({', '.join(spec)}), got shape {shape}")
    for letter, size in found:
        known = sizes.setdefault(letter, size)
        if known != size:
            bound = ", ".join(f"{k} = {sizes[k]}" for k in spec if k in sizes and k != "1")
            raise ValueError(f"{where}: {name} must have shape ({', '.join(spec)}) with {bound}; got {shape}{beside}")
        if size == 0 or (letter == "..." and 0 in size):
            raise ValueError(f"{where}: {name} is empty, its shape is {shape}")
