"""A sheet: a file with exercises of the library, the Markdown file beside it, and their lines in chapters.toml."""

import inspect
import re
import tomllib
from functools import cache
from pathlib import Path

from ..exercise import Exercise, Result
from ..notes import hints_of, sections


class Sheet:
    """The notes beside a sheet: sheet["relu"] is a section of them, the text below a heading, and sheet["tanh: relu"]
    one of another sheet. In a section, a line "= heading" stands for a section."""

    def __init__(self, file):
        self.file = Path(file)
        self.notes = sections(self.file)

    def __getitem__(self, heading):
        if heading not in self.notes:
            other, _, heading = heading.partition(": ")
            return Sheet(self.file.with_stem(other))[heading]
        return re.sub("^= (.+)$", lambda line: self[line[1]], self.notes[heading], flags=re.MULTILINE)

    def exercise(self, reference, answer, cases, results=None, gradients=None, also="", **more):
        """The Exercise with these fields, `more` among them, and what chapters.toml says of it.

        cases: as the exercise's, or a generator of them
        results: {name: axes}, by default those of the docstring
        gradients: the same of a class's further results, which are gradients
        also: more mistakes than those of the section with the exercise's name; the hints are in "name: hints"
        """
        name = reference.__name__
        found = [Result(*result) for result in (results or results_of(reference)).items()]
        found += [Result(*result, gradient=True) for result in (gradients or {}).items()]
        return Exercise(
            reference, tuple(found), lambda rng: list(cases(rng)), self[name] + also, answer,
            hints=hints_of(self[f"{name}: hints"]), **of_path()[name], **more,
        )  # fmt: skip


def results_of(function):
    """{name: axes} of what a function returns, from the end of its docstring: "->  y (..., D), weights A (..., S)"."""
    returned = inspect.getdoc(function).rpartition("->")[2].partition("\n\n")[0]
    results = re.findall(r"(\w+)(?: [A-Z])? \(([^)]*)\)", returned)
    return {name: " ".join(axes.replace(",", " ").split()) for name, axes in results}


@cache
def chapters_of_library():
    """{title of a chapter: {"notebook": its number, name of an exercise: its place, difficulty and section}}"""
    return tomllib.loads(Path(__file__).with_name("chapters.toml").read_text(encoding="utf-8"))


@cache
def of_path():
    """{name of an exercise: its chapter, place, difficulty and section}"""
    return {
        name: {"chapter": title, **fields}
        for title, chapter in chapters_of_library().items()
        for name, fields in chapter.items()
        if name != "notebook"
    }
