"""A mistake that is possible with every argument: not using it."""

from dataclasses import dataclass, replace
from inspect import Parameter, signature

import numpy as np

from .attempt import argument_names


@dataclass(frozen=True)
class Ignored:
    """An argument that an answer does not use.

    position: its place among the arguments; value: the value used instead, for arrays in every entry
    """

    argument: str
    position: int | None
    value: object
    text: str

    def applied(self, case):
        """The case as a right answer sees it if it does not use the argument."""
        if self.argument in case.options:
            value = self._instead_of(case.options[self.argument])
            return replace(case, options=case.options | {self.argument: value})
        if self.position is None or self.position >= len(case.arguments):
            return case
        arguments = list(case.arguments)
        arguments[self.position] = self._instead_of(arguments[self.position])
        return replace(case, arguments=tuple(arguments))

    def _instead_of(self, given):
        is_neutral = isinstance(given, np.ndarray) and isinstance(self.value, int)
        return np.full_like(given, self.value) if is_neutral else self.value


def ignored_arguments(exercise, cases):
    """{name: Ignored} for the arguments of an exercise: those with a default as if they had that value, the others,
    except the first, as if they were one of their own values, or arrays of 0 or 1."""
    names = argument_names(exercise)
    given = dict.fromkeys([*names, *(name for case in cases for name in case.options)])
    found = {}
    for name in given:
        position = names.index(name) if name in names else None
        default = _default(exercise, name)
        if default is not Parameter.empty:
            text = f"`{name}` is not used: the results are those for {name}={_written(default)} in every call."
            found[f"{name} not used"] = Ignored(name, position, default, text)
        elif position and any(_is_number(value) for value in _values(cases, name, position)):
            values = list(_values(cases, name, position))
            is_array = any(isinstance(value, np.ndarray) for value in values)
            # a number outside the cases may be none that the function is made for
            for value in (0, 1) if is_array else sorted({value for value in values if _is_number(value)})[:2]:
                text = f"`{name}` is not used: the results are those for {name} = {value} in every call."
                found[f"{name} taken for {value}"] = Ignored(name, position, value, text)
    return {name: ignored for name, ignored in found.items() if name not in exercise.mistakes}


def _default(exercise, name):
    for function in (exercise.drive, exercise.reference):
        parameter = signature(function).parameters.get(name)
        if parameter is not None:
            return parameter.default
    return Parameter.empty


def _written(value):
    return value.__name__ if isinstance(value, type) else repr(value)


def _values(cases, name, position):
    for case in cases:
        if name in case.options:
            yield case.options[name]
        elif position < len(case.arguments):
            yield case.arguments[position]


def _is_number(value):
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f"
    return isinstance(value, int | float) and not isinstance(value, bool)


def arrays_of(case):
    """The arrays among the arguments of a case."""
    given = (*case.arguments, *case.options.values())
    return [value for value in given if isinstance(value, np.ndarray)]
