"""One thing that may be wrong with an answer: a mistake that a sheet lists, or an argument that it does not use."""

import ast
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from types import FunctionType

import numpy as np

from .attempt import argument_names


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """name: of the mistake, or None; text: for the student
    side: whose code its program changes. "right": a right answer makes the listed mistake, or ignores the argument, of
    this name; it is believed of a wrong result where that gives the student's numbers. "student": the answer is edited,
    or a value in it is another; it is believed where that gives the right numbers. "": there are only wrong numbers
    program: the Ignored argument or the Edit, None of a listed mistake and of another value
    node: of the student's code, that it speaks of; marks: {line: it with a mark below}
    """

    name: str | None
    text: str
    side: str = ""
    program: object = None
    node: ast.AST | None = None
    marks: dict = field(default_factory=dict)

    @property
    def line(self):
        return self.node.lineno


def listed(trials):
    """The Hypotheses of an exercise: its listed mistakes, and that it ignores an argument."""
    of_sheet = [Hypothesis(name, text, "right") for name, text in trials.exercise.mistakes.items()]
    return of_sheet + [Hypothesis(name, one.text, "right", one) for name, one in trials.ignored.items()]


@dataclass(frozen=True)
class Ignored:
    """An argument that an answer does not use.

    position: its place among the arguments; value: the value used instead, for arrays in every entry
    has_default: whether the value is the default
    """

    argument: str
    position: int | None
    value: object
    has_default: bool = False

    @property
    def text(self):
        value = self.value.__name__ if isinstance(self.value, type) else repr(self.value)
        as_if = f"The results are as if `{self.argument}` were {value} in every call: is it used"
        is_text = isinstance(self.value, str)
        return (
            f"{as_if}, and compared with `==`? Every text but '' counts as true."
            if is_text
            else f"{as_if} where it counts?"
        )

    def is_set_in(self, case):
        """Whether a case gives the argument another value."""
        given = case.options.get(self.argument, self.value)
        if self.position is not None and self.position < len(case.arguments):
            given = case.arguments[self.position]
        return given is not self.value and (isinstance(given, np.ndarray) or given != self.value)

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
    found, of_answer = {}, _of_answer(exercise)
    for name in given:
        if name not in of_answer:  # it says how the cases use the answer
            continue
        position = names.index(name) if name in names else None
        default = _default(exercise, name)
        if default is not Parameter.empty:
            found[f"{name} not used"] = Ignored(name, position, default, has_default=True)
        elif position:
            values = list(_values(cases, name, position))
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
    methods = (
        [member for cls in reference.__mro__ for member in vars(cls).values()] if isinstance(reference, type) else []
    )
    functions = [reference, *(member for member in methods if isinstance(member, FunctionType))]
    return {name for function in functions for name in signature(function).parameters}


def _default(exercise, name):
    for function in (exercise.drive, exercise.reference):
        parameter = signature(function).parameters.get(name)
        if parameter is not None:
            return parameter.default
    return Parameter.empty


def _values(cases, name, position):
    for case in cases:
        if name in case.options:
            yield case.options[name]
        elif position < len(case.arguments):
            yield case.arguments[position]
