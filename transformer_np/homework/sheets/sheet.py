"""A sheet: a file with exercises of the library, the Markdown file beside it, and their lines in chapters.toml."""

import inspect
import re
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from ... import functional as F
from ..exercise import NOTHING, Exercise, Result


class Sheet:
    """The notes beside a sheet: sheet["relu"] is a section of them, the text below a heading.

    In a section, a line "= heading" includes the mistakes of another one, "= tanh: relu" those of a section of another
    sheet. A mistake of the same name below it takes the place of the one that is included. Indented lines belong to it:

        = another default ε
          without: one mistake | another      leaves these out
          eps: 1e-6 | 1e-8                    includes the section once for each of these, in the place of {eps},
          small: a variance                   and with this in the place of {small}
    """

    def __init__(self, file):
        self.file = Path(file)
        self.notes = sections(self.file)

    def __getitem__(self, heading):
        if heading not in self.notes:
            other, _, heading = heading.partition(": ")
            return Sheet(self.file.with_stem(other))[heading]
        found = {}
        for name, lines in parts_of(self.notes[heading]):
            found |= {name: lines} if lines.startswith("-") else self._included(name, lines)
        return "\n" + "".join(f"{lines.rstrip()}\n" for lines in found.values())

    def _included(self, heading, lines):
        """{name: lines} of the mistakes of another section."""
        settings = [line.partition(":") for line in lines.splitlines()[1:] if line.strip()]
        values = {key.strip(): value.strip().split(" | ") for key, _, value in settings}
        without, notes = values.pop("without", []), self[heading]
        if values:
            rows = range(max(map(len, values.values())))
            notes = "".join(notes.format(**{key: of[i % len(of)] for key, of in values.items()}) for i in rows)
        found = dict(parts_of(notes))
        if unknown := {*without} - found.keys():
            raise ValueError(f"{self.file.stem}: there are no such mistakes to leave out: {', '.join(sorted(unknown))}")
        return {name: lines for name, lines in found.items() if name not in without}

    def exercise(self, reference, answer, cases, results=None, gradients=None, **more):
        """The Exercise with these fields, `more` among them, the mistakes in the section with its name, the hints in
        "name: hints", and what chapters.toml says of it.

        cases: as the exercise's, or a generator of them
        results: {name: axes}, by default those of the docstring
        gradients: the same of a class's further results, which are gradients
        """
        name = reference.__name__
        chapter, fields = next((title, of[name]) for title, of in chapters_of_library().items() if name in of)
        hints = re.split(r"^- ", self[f"{name}: hints"], flags=re.MULTILINE)[1:]
        found = [Result(*result) for result in (results or results_of(reference)).items()]
        found += [Result(*result, gradient=True) for result in (gradients or {}).items()]
        return Exercise(
            reference, tuple(found), lambda rng: list(cases(rng)), self[name], answer,
            hints=tuple(re.sub(r"\n *", " ", hint.strip()) for hint in hints), chapter=chapter, **fields, **more,
        )  # fmt: skip

    def both(self, function, answer, backward, cases, results=None, first=NOTHING, then=lambda _, cases: cases, **how):
        """The exercises of a function and of its backward. answer, backward: right answers to them

        results: of the second; first: further fields of the first
        then: what the cases of the second are made of those of the forward; how: as for `_of_forward`
        """
        reference, of_backward = getattr(F, f"{function.__name__}_backward"), _of_forward(function, cases, **how)
        second = self.exercise(reference, backward, lambda rng: then(rng, [*of_backward(rng)]), results)
        return [self.exercise(function, answer, cases, **first), second]


def _of_forward(forward, cases, without=(), letters=NOTHING, labels=NOTHING, **usual):
    """The cases of a backward function: those of its forward. A backward takes the gradient of the first result, and
    what else it takes has the name of an argument or a result of the forward.

    without: parts of the labels of cases that have no gradient, or the same as another case
    letters: {argument of the backward: the letter of the size that it is}
    labels: {label of a case of the forward: that of the backward}
    usual: options of the forward where a case has no others
    """
    parameters = inspect.signature(getattr(F, f"{forward.__name__}_backward")).parameters
    needed = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]

    def backward_cases(rng):
        plain, *others = cases(rng)
        for case in (plain, *others):
            if case.raises or any(part in case.label for part in without):
                continue
            results = forward(*case.arguments, **usual | case.options)
            results = results if isinstance(results, tuple) else (results,)
            known = dict(zip(results_of(forward), results, strict=True))
            known |= inspect.signature(forward).bind(*case.arguments, **case.options).arguments
            known |= {name: case.sizes[letter] for name, letter in letters.items()}
            gradient = rng.normal(size=np.shape(results[0]))
            arguments = tuple(known.get(name, gradient) for name in needed)
            options = {name: value for name, value in case.options.items() if name in parameters.keys() - needed}
            label = labels.get(case.label, case.label)
            label = label if "x" in parameters else label.replace("x of", f"{needed[0]} of")
            changed = {"label": label, "arguments": arguments, "options": options}
            if case.options.keys() - parameters.keys() - plain.options.keys():  # the backward sees what it led to
                changed |= {"label": f"{label} in the forward", "extended": False}
            yield replace(case, **changed)

    return backward_cases


@cache
def sections(sheet):
    """{heading: notes} of the Markdown file beside a sheet: its mistakes and hints, as prose to edit."""
    text = Path(sheet).with_suffix(".md").read_text(encoding="utf-8")
    found = re.split(r"^## (.*)$", text, flags=re.MULTILINE)[1:]
    return {heading: f"\n{notes.strip()}\n" for heading, notes in zip(found[::2], found[1::2], strict=True)}


def parts_of(section):
    """[(name, lines)] of the mistakes of a section, and [(heading, lines)] of those that it includes, "= heading"."""
    parts = re.split(r"^(?=[-=] )", section, flags=re.MULTILINE)[1:]
    return [(part[2:].partition("\n")[0].partition(":  ")[0].removesuffix(":"), part) for part in parts]


def results_of(function):
    """{name: axes} of what a function returns, from the end of its docstring: "->  y (..., D), weights A (..., S)"."""
    returned = inspect.getdoc(function).rpartition("->")[2].partition("\n\n")[0]
    results = re.findall(r"(\w+)(?: [A-Z])? \(([^)]*)\)", returned)
    return {name: " ".join(axes.replace(",", " ").split()) for name, axes in results}


@cache
def chapters_of_library():
    """{title of a chapter: {"notebook": its number, name of an exercise: its place, difficulty and section}}"""
    return tomllib.loads(Path(__file__).with_name("chapters.toml").read_text(encoding="utf-8"))
