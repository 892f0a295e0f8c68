"""Exercises that are built from other parts of the library: what their answers may use of it where they are graded."""

import ast
from functools import cache
from pathlib import Path

import numpy as np

from ..support.intercept import is_of_package
from .definitions import by_name, reached
from .path import all_exercises, own_folder

PACKAGE = __package__.partition(".")[0]
ROOT = Path(__file__).parents[2]
OWN = f"{PACKAGE}.homework.sheets.own"


def gets_parts(exercise):
    """Whether an exercise is built from parts of the library, which it then has where it is graded."""
    given = [value for case in exercise.cases(np.random.default_rng(0)) for value in case.arguments]
    return isinstance(exercise.reference, type) or any(is_of_package(type(value).__module__) for value in given)


def names_beside(exercise):
    """The public names that the module with the answer to an exercise keeps: neither the answer, nor what uses it, nor
    functions that it uses, nor other answers unless it inherits from them or calls them."""
    home, name = exercise.reference.__module__, exercise.name
    nodes = by_name(parsed(file_of(home)).body)
    others = {one.name for one in all_exercises().values() if one.reference.__module__ == home}
    uses = reached(nodes, [name])
    functions = {n for n, found in nodes.items() if isinstance(found[-1], ast.FunctionDef)}
    hidden = {n for n in nodes if name in reached(nodes, [n])} | (uses & functions) | (others - uses)
    return {n for n in nodes.keys() - hidden if n[0] != "_"}


def file_of(module):
    """The file of a module of this library or of a teacher's folder, or None."""
    root, parts = ROOT, module.split(".")
    if module.startswith(f"{OWN}.") and own_folder():
        root, parts = own_folder(), module.removeprefix(f"{OWN}.").split(".")
    place = root.joinpath(*parts)
    return next((p for p in (place.with_suffix(".py"), place / "__init__.py") if p.is_file()), None)


def parsed(file):
    """The syntax tree of a file as it is now."""
    return _tree_of(file, file.stat().st_mtime_ns)


@cache
def _tree_of(file, changed):
    return ast.parse(file.read_bytes())
