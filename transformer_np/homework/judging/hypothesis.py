"""One thing that may be wrong with an answer: a mistake that a sheet lists, or an argument that it does not use."""

import ast
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from types import FunctionType

import numpy as np

from .attempt import argument_names, given


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """name: of the mistake, or None; text: for the student
    ignored: the Ignored argument, None of all others
    node: of the student's code, that it speaks of; marks: {line: it with a mark below}
    """

    name: str | None
    text: str
    ignored: object = None
    node: ast.AST | None = None
    marks: dict = field(default_factory=dict)

    @property
    def line(self):
        return self.node.lineno


def listed(trials):
    """The Hypotheses of an exercise: its listed mistakes, and that it ignores an argument."""
    of_sheet = [Hypothesis(name, text) for name, text in trials.exercise.mistakes.items()]
    return of_sheet + [Hypothesis(name, one.text, one) for name, one in trials.ignored.items()]


@dataclass(frozen=True)
class Ignored:
    """An argument that an answer does not use.

    position: its place among the arguments; value: the value used instead, for arrays in every entry
    """

    argument: str
    position: int | None
    value: object

    @property
    def text(self):
        value = self.value.__name__ if isinstance(self.value, type) else repr(self.value)
        text, others = ", and compared with `==`? Every text but '' counts as true.", " where it counts?"
        also = text if isinstance(self.value, str) else others
        return f"The results are as if `{self.argument}` were {value} in every call: is it used{also}"

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

    def _instead_of(self, old):
        is_neutral = isinstance(old, np.ndarray) and isinstance(self.value, int)
        return np.full_like(old, self.value) if is_neutral else self.value


def ignored_arguments(exercise, cases):
    """{name: Ignored} for the arguments of an exercise: those with a default as if they had that value, the others,
    except the first, as if they were one of their own values, or arrays of 0 or 1."""
    names, every = argument_names(exercise), [given(exercise, case) for case in cases]
    found, of_answer = {}, _of_answer(exercise)
    for name in dict.fromkeys([*names, *(name for of_case in every for name in of_case)]):
        if name not in of_answer:  # it says how the cases use the answer
            continue
        position = names.index(name) if name in names else None
        default = _default(exercise, name)
        if default is not Parameter.empty:
            found[f"{name} not used"] = Ignored(name, position, default)
        elif position:
            values = [of_case[name] for of_case in every if name in of_case]
            numbers = sorted({value for value in values if type(value) in (int, float)})
            if any(isinstance(value, np.ndarray) and value.dtype.kind == "f" for value in values):
                numbers = [0, 1]
            elif len(numbers) == 2 and numbers[1] - numbers[0] <= 1:
                numbers = []  # one for the other may as well be an argument that is counted wrong
            for value in numbers[:2]:  # a number outside the cases may be none that the function is made for
                found[f"{name} taken for {value}"] = Ignored(name, position, value)
    return {name: ignored for name, ignored in found.items() if name not in exercise.mistakes}


def _of_answer(exercise):
    """The names of all parameters of an answer: of a class, also those of its methods."""
    reference = exercise.reference
    classes = reference.__mro__ if isinstance(reference, type) else ()
    members = [reference, *(member for cls in classes for member in vars(cls).values())]
    functions = [member for member in members if member is reference or isinstance(member, FunctionType)]
    return {name for function in functions for name in signature(function).parameters}


def _default(exercise, name):
    found = (signature(function).parameters.get(name) for function in (exercise.drive, exercise.reference))
    return next((parameter.default for parameter in found if parameter is not None), Parameter.empty)
