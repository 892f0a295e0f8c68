"""Edits of several places at once: parameters, names and lines that change their places."""

import ast
from dataclasses import replace
from itertools import pairwise

from .edit import ORDER, Edit
from .syntax import counts, counts_up, in_order

_NOT_MOVED = (ast.FunctionDef, ast.Return, ast.Import, ast.ImportFrom)


def of_several_places(tree, without, parameters):
    """The Edits of a function or class that move something; without, parameters: as in `edits_of`"""
    yield from _reordered(tree, parameters)
    yield from _moved(tree, without)


def _reordered(tree, wanted):
    """The Edit that gives a function its parameters in the order of others with the same names."""
    if right := in_order(tree, wanted):
        args, hints = tree.args.args, {arg.arg: arg.annotation for arg in tree.args.args}
        moved = [(i, ast.arg(name, hints[name])) for i, name in enumerate(right) if name != args[i].arg]
        first, *others = [Edit(ORDER, 0, args[i], tree.args, "args", i, new) for i, new in moved]
        yield replace(first, also=tuple(others))


def _moved(tree, without):
    """Edits that move the last line of a loop behind it, the line behind a loop into it, and a line behind the next."""
    for parent in ast.walk(tree):
        for field in () if getattr(parent, "name", "") in without else ("body", "orelse"):
            lines = getattr(parent, field, None)
            for i, (line, below) in enumerate(pairwise(lines) if isinstance(lines, list) else ()):
                if not any(isinstance(one, _NOT_MOVED) or counts(one) for one in (line, below)):
                    other = Edit("order of lines", 1, below, parent, field, i + 1, line)
                    yield Edit("order of lines", 1, line, parent, field, i, below, (other,))
            for i, loop in enumerate(lines if isinstance(lines, list) else ()):
                if not isinstance(loop, ast.For | ast.While):
                    continue
                last, at, behind = loop.body[-1], len(loop.body) - 1, lines[i + 1] if i + 1 < len(lines) else None
                if at > 1 and not isinstance(last, ast.FunctionDef | ast.Return):  # the first counts steps
                    both = ast.If(ast.Constant(True), [loop, last], [])
                    order = 3 if counts_up(last) else 0.3
                    after = Edit("indentation", order, loop, parent, field, i, both)
                    yield Edit("indentation", order, last, loop, "body", at, ast.Pass(), (after,))
                if behind is not None and not isinstance(behind, ast.FunctionDef | ast.Return):
                    both = ast.If(ast.Constant(True), [last, behind], [])
                    inside = Edit("indentation", 0.3, last, loop, "body", at, both)
                    yield Edit("indentation", 0.3, behind, parent, field, i + 1, ast.Pass(), (inside,))
