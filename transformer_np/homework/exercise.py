"""An exercise: a function or class of the library that a student reimplements, the calls that test it, and the mistakes
people make in it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MappingProxyType

import numpy as np

from ..support.checks import short
from .rewriting import Mistakes

NOTHING = MappingProxyType({})


@dataclass(frozen=True)
class Result:
    """One thing that an answer returns.

    axes: its axes in the letters of `functional`, "B T D", with "..." for any leading ones; "" for a single number
    gradient: whether it is a gradient, so that a wrong one is called a wrong gradient, not a wrong value; None means
        that it is one if the exercise is a backward function
    """

    name: str
    axes: str = "..."
    gradient: bool | None = None


@dataclass(frozen=True)
class Case:
    """One call that an answer has to get right.

    label: its special feature, written to follow "with": "logits of ±10,000"; "" for the plain case
    sizes: the letters of the shapes, {"B": 2, "T": 3}, in which a message names shapes and factors
    extended: more than the lecture teaches; an answer that is right in all other cases is right for the lecture
    raises: the class of the exception that the docstring promises, "ValueError"; "" for a call that returns
    is_narrow: whether it tells so little that an answer which is right in it is not told so
    """

    label: str
    arguments: tuple
    options: dict = field(default_factory=dict)
    sizes: dict = field(default_factory=dict)
    extended: bool = False
    raises: str = ""
    is_narrow: bool = False

    def __post_init__(self):
        if np.intp is not np.int64 and isinstance(self.arguments, tuple):  # in a browser
            object.__setattr__(self, "arguments", tuple(map(_as_index, self.arguments)))
            object.__setattr__(self, "options", {name: _as_index(value) for name, value in self.options.items()})


def _as_index(value):
    """An array of int64 in the type of indices: np.bincount and np.repeat take no larger one."""
    return value.astype(np.intp) if isinstance(value, np.ndarray) and value.dtype == np.int64 else value


def extended(case):
    """The case as an extended one."""
    return replace(case, extended=True)


def call(answer, *arguments, **options):
    """Try an answer by calling it, which is the default."""
    return answer(*arguments, **options)


def _has_name(value):
    return callable(value) and getattr(value, "__name__", "").isidentifier()


def _is_text(value):
    return isinstance(value, str)


def _all_are(kind):
    return lambda value: isinstance(value, list | tuple) and all(isinstance(one, kind) for one in value)


_FIELDS = {  # field: what it must be, in words, and whether a value is that
    "reference": ("a function or a class with a name", _has_name),
    "results": ("a tuple of Result, (Result('y', 'B T D'),)", _all_are(Result)),
    "cases": ("a function, cases(rng)", callable),
    "mistakes": ("a text", lambda value: isinstance(value, str) or hasattr(value, "variant")),
    "answer": ("a function, a right answer", callable),
    "drive": ("a function", callable),
    "view": ("a function", lambda value: value is None or callable(value)),
    "section": ("a text", _is_text),
    "chapter": ("a text", _is_text),
    "place": ("a number", lambda value: isinstance(value, int | float)),
    "parts": ("a tuple of names of methods, ('forward',)", _all_are(str)),
}


@dataclass(frozen=True)
class Exercise:
    """A function or class of the library as homework.

    reference: the library's own, whose name and signature the answer has
    results: what an answer returns, in order
    cases: from a random generator to a list of Case, the plain one first; all inputs come from the generator
    mistakes: the mistakes that people make, in the form that `rewriting` describes: a name, a rewrite of the right
        answer's code, and the text for the student. Read as {name: text}; the names are short, the texts say what is
        wrong and why it matters
    answer: a right answer in plain code, which the mistakes rewrite
    hints: three, a question, then the equation, then where to look
    difficulty: 1, a line or two; 2, a few lines; 3, takes thought
    section: of the lecture, "§4", or of the paper where the lecture has none
    chapter, place: the chapter of the path, by its title in sheets/chapters.toml, and a number that sorts the
        exercises of a chapter
    drive: the function that tries an answer: `drive(answer, *arguments, **options)` returns its output as arrays and
        numbers in tuples and lists. For classes, which must be instantiated first, and for answers that use randomness
    view: the arrays to compare: `view(case, output)` -> one array for each result; the default takes the output itself
    parts: the methods of a class that the student writes
    """

    reference: Callable
    results: tuple[Result, ...]
    cases: Callable
    mistakes: str | Mapping[str, str]
    answer: Callable
    hints: tuple[str, str, str]
    difficulty: int
    section: str
    drive: Callable = call
    view: Callable | None = None
    parts: tuple[str, ...] = ()
    chapter: str = ""
    place: float = 0

    def __post_init__(self):
        for name, (words, is_right) in _FIELDS.items():
            if not is_right(getattr(self, name)):
                raise TypeError(f"{name} must be {words}, got {short(getattr(self, name))}")
        if isinstance(self.mistakes, str):
            object.__setattr__(self, "mistakes", Mistakes(self.answer, self.mistakes))

    @property
    def name(self):
        return self.reference.__name__

    @property
    def given(self):
        """The names of the methods of a class that the student need not write."""
        return set(vars(self.reference)) - set(self.parts) if self.parts else set()

    def variant(self, mistakes=()):
        """An answer with these mistakes; without any, a right answer that is not the library's. Raises `Exclusive`, a
        ValueError, if two of them rewrite the same place of the right answer."""
        return self.mistakes.variant(mistakes)

    def compatible(self, mistakes):
        """Whether these mistakes can be made together."""
        return self.mistakes.compatible(mistakes)

    def is_gradient(self, result):
        return self.name.endswith("_backward") if result.gradient is None else result.gradient


def draw_sizes(rng, letters, least=2):
    """Sizes for the letters of a shape, "B T D" -> {"B": 4, "T": 2, "D": 5}: all different, so that no axis can be
    mistaken for another, and at least `least`."""
    letters = letters.split()
    chosen = rng.permutation(np.arange(least, least + len(letters) + 2))[: len(letters)]
    return dict(zip(letters, map(int, chosen), strict=True))


def public_home(name, value, found_in):
    """The shortest name of a module that offers this value under this name: transformer_np.layers for LayerNorm."""
    home = getattr(value, "__module__", None) or found_in
    parts = home.split(".")
    for length in range(2, len(parts)):
        package = ".".join(parts[:length])
        if getattr(import_module(package), name, None) is value:
            return package
    return home
