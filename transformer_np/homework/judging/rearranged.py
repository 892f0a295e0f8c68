"""Edits of several places at once: parameters, names and lines that change their places."""

import ast
import copy
from dataclasses import replace
from itertools import combinations, pairwise

from .edit import MOVE, ORDER, Edit
from .syntax import counts, places

_NOT_MOVED = (ast.FunctionDef, ast.Return, ast.Import, ast.ImportFrom)


def of_several_places(tree, without, order):
    """The Edits of a function or class that move something; without, order: as in `edits_of`"""
    yield from _reordered(tree, order)
    yield from _exchanged(tree)
    yield from _moved(tree, without)
    yield from _out_of_loops(tree, without)


def _reordered(tree, order):
    """The Edit that gives a function its parameters in another order."""
    if order:
        args, hints = tree.args.args, {arg.arg: arg.annotation for arg in tree.args.args}
        moved = [(i, ast.arg(name, hints[name])) for i, name in enumerate(order) if name != args[i].arg]
        first, *others = [Edit(ORDER, 0, args[i], tree.args, "args", i, new) for i, new in moved]
        yield replace(first, also=tuple(others))


def _exchanged(tree):
    """Edits that exchange two parameters of a function or method everywhere, or two names of a formula."""
    within, used = {}, {}
    functions = [f for f in (tree, *getattr(tree, "body", ())) if isinstance(f, ast.FunctionDef)]
    of_function = {n: f for f in functions[::-1] for n in ast.walk(f)}  # the outer one last
    for formula in (n for n in ast.walk(tree) if isinstance(n, ast.BinOp)):  # from the outside to the inside
        within |= {n: formula for n in ast.walk(formula) if n not in within}
    for parent, field, index, node, is_size in places(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and field != "func":
            for whole in (of_function.get(node), None if is_size else within.get(node)):
                used.setdefault(whole, {}).setdefault(node.id, []).append((node, parent, field, index))
    used.pop(None, None)
    for whole, of_name in used.items():
        of_name.pop("np", None)
        is_function = whole in functions
        names = [arg.arg for arg in whole.args.args if arg.arg in of_name] if is_function else [*of_name]
        for a, b in combinations(names, 2):
            both = [(place, ast.Name(other, ast.Load())) for one, other in ((a, b), (b, a)) for place in of_name[one]]
            first, *others = [Edit("name", 0.4 if is_function else 1.4, *place, new) for place, new in both]
            yield replace(first, also=tuple(others))


def _moved(tree, without):
    """Edits that move a line behind the next one, or to the end of the loop above it. Of a line and a loop or branch
    the line is marked."""
    for parent in ast.walk(tree):
        for field in () if getattr(parent, "name", "") in without else ("body", "orelse"):
            lines = getattr(parent, field, None)
            for i, (line, below) in enumerate(pairwise(lines) if isinstance(lines, list) else ()):
                if any(isinstance(one, _NOT_MOVED) or counts(one) for one in (line, below)):
                    continue
                both = [Edit(MOVE, 1, line, parent, field, i, below), Edit(MOVE, 1, below, parent, field, i + 1, line)]
                first, other = sorted(both, key=lambda edit: hasattr(edit.node, "body"))
                yield replace(first, also=(other,))
                if isinstance(line, ast.For | ast.While):
                    longer = copy.copy(line)
                    longer.body = [*line.body, below]
                    inside = Edit(MOVE, 1, line, parent, field, i, longer)
                    yield Edit(MOVE, 1, below, parent, field, i + 1, ast.Pass(), (inside,))


def _out_of_loops(tree, without):
    """Edits that move an assignment in a loop to before the loop, or the last line of a loop to behind it."""
    for parent, field, i, loop, _ in places(tree, without):
        body = loop.body if isinstance(loop, ast.For | ast.While) else ()
        for k, line in enumerate(body):
            for both in [[line, loop]] * isinstance(line, ast.Assign) + [[loop, line]] * (line is body[-1]):
                outside = Edit(MOVE, 0, loop, parent, field, i, ast.If(ast.Constant(True), both, []))
                yield Edit(MOVE, 0, line, loop, "body", k, ast.Pass(), (outside,))
