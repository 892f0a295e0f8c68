"""Hypotheses that nobody has listed: edits of an exercise's readable right answer, with texts from patterns."""

import ast
import re
import sys
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction

import numpy as np

from .attempt import argument_names
from .edits import edits_of
from .hypothesis import Hypothesis
from .syntax import Names

MOST_EDITS = 500
_KINDS = ("operator", "comparison", "order", "brackets", "number", "flag", "axis", "name", "function", "transpose",
          "sign", "inverted", "overwritten", "extra part", "extra line", "order of results", "missing index",
          "missing function", "missing factor", "missing term")  # fmt: skip
MOST_LETTERS = 60  # of a piece of code in a text


class EditsOfRight:
    """The edits of the right answer that has the listed mistakes `base`, as Hypotheses without a text."""

    def __init__(self, cells, base):
        self.base, self.exercise = tuple(h.name for h in base), cells.trials.exercise
        self.family = cells.edited(self.base)
        given = argument_names(self.exercise)
        usual = {one.argument: one.value for name, one in cells.trials.ignored.items() if "not used" in name}
        arguments = {name: [f.arguments.get(name, usual.get(name)) for f in cells.found] for name in given}
        arguments = {name: [value for value in values if value is not None] for name, values in arguments.items()}
        self.no_numbers = {name for name, values in arguments.items() if not (values and all(map(_is_number, values)))}

    def __iter__(self):
        """The smallest edits first."""
        trees = self.family.trees.values() if self.family else ()
        edits = [edit for tree in trees for edit in edits_of(tree) if self._is_mistake(edit)]
        for edit in sorted(edits, key=lambda edit: edit.group)[:MOST_EDITS]:
            yield Hypothesis(None, "", edit, self.base)

    def told(self, one):
        """The Hypothesis with its text, or None if there is none without variables that the student may not have."""
        text = self._text(one.edit) or _without_code(one.edit)
        return replace(one, name=text.rstrip("."), text=text) if text else None

    def _text(self, edit):
        tree = next(tree for tree in self.family.trees.values() if any(node is edit.parent for node in ast.walk(tree)))
        names = Names(tree)
        own = names.computed | set(filter(self._is_helper, names.others))  # which the student may not have
        if tree is not next(iter(self.family.trees.values())):
            own |= names.parameters - set(argument_names(self.exercise))
        stored = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        written = {n.value.id for n in ast.walk(tree) if _is_stored_item(n)}  # np.zeros_like(x), which loops fill
        once = {n.id for n in stored if sum(n.id == other.id for other in stored) == 1} & own - written
        lines = [n for n in ast.walk(tree) if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)]
        return _text(edit, own, {n.targets[0].id: n.value for n in lines if n.targets[0].id in once})

    def _is_helper(self, name):
        """Whether a name is that of a function beside the right answer which the library's own code does not know."""
        function, answer = self.family.space.get(name), self.family.answer
        module = getattr(function, "__module__", None) or ""
        library = sys.modules.get(self.exercise.reference.__module__)
        return module.rpartition(".")[0] == answer.__module__.rpartition(".")[0] and not hasattr(library, name)

    def _is_mistake(self, edit):
        """Whether an edit is a mistake that people make: no arithmetic with an axis, an option or ids, no function of a
        comparison."""
        if edit.kind not in _KINDS or (edit.kind == "missing function" and isinstance(edit.node, ast.Compare)):
            return False
        if edit.kind == "number" and getattr(edit.new, "value", 1) == 0 and isinstance(edit.parent, ast.BinOp):
            return False  # the part is missing, which another edit says
        around = edit.new if isinstance(edit.new, ast.BinOp) else edit.parent
        if not isinstance(around, ast.BinOp):
            return True
        names = [edit.new] if around is edit.parent else [edit.new.left, edit.new.right]
        names = [n for n in names if isinstance(n, ast.Name) and n.id in self.no_numbers]
        return not names or all(n.id in _names_in(edit.node) for n in names)


def on_result(text, result):
    """A text as a sentence on one result."""
    started = re.sub(r"^The results are (those)?", lambda m: f"{result} is {'that' * bool(m[1])}", text)
    return re.sub(r"^Your result is that", f"{result} is that", started)


def _is_stored_item(node):
    """Whether a node is the target x[…] of an assignment to a part of a variable."""
    is_stored = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    return is_stored and isinstance(node.value, ast.Name)


def _is_number(value):
    """Whether an argument is one that people compute with."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f"
    return isinstance(value, float | np.floating) or (type(value) is int and value >= 0)


def _text(edit, own, definitions):
    """A sentence on a mistake, the edit of a right answer, without its own variables.

    definitions: {own variable: the expression that it stands for}
    """

    def code(node):
        node = _spelled_out(node, own, definitions)
        return "" if own & _names_in(node) else _code(node)

    old, new = code(edit.node), code(edit.new)
    if edit.kind == "extra part" and isinstance(edit.node, ast.BinOp):
        kept_left = edit.new is edit.node.left
        part = code(edit.node.right if kept_left else edit.node.left)
        sign = {ast.Add: "+ ", ast.Sub: "− "}.get(type(edit.node.op), "")
        what = "term" if sign else "factor" if isinstance(edit.node.op, ast.Mult) else "part"
        piece = f"`{sign if kept_left else ''}{part}`{f' in `{old}`' if old else ''}"
        return part and f"The results are those without the {what} {piece}."
    if edit.kind == "extra part" and isinstance(edit.node, ast.Call) and edit.new in edit.node.args:
        return old and new and f"The results are those without `{code(edit.node.func)}` around `{new}`."
    if edit.kind == "extra part":
        return old and new and f"Your result is that of `{new}`, where `{old}` is needed."
    if edit.kind == "brackets" and not (old and new) and isinstance(getattr(edit.node, "op", None), ast.Mult):
        factor = code(edit.node.left)
        return factor and f"The results are as if `{factor}` were a factor of one term alone, not of the whole sum."
    if edit.kind == "extra line":
        return old and f"The results are those without the step `{old}`."
    if edit.kind == "order of results":
        return "The results are returned in the wrong order."
    if edit.kind == "missing factor" and edit.new.left is edit.node:
        factor, shown = code(edit.new.right), f" Your result is that of `{new}`." if old and new else ""
        here = "" if shown else " in one part of the formula"
        if isinstance(edit.new.op, ast.Div):
            return factor and f"A factor `{factor}` is missing{here}, or there is a division by it too many.{shown}"
        return factor and f"There is a factor `{factor}` too many{here}, or a division by it is missing.{shown}"
    if isinstance(edit.node, ast.Constant | ast.Name | ast.Attribute):  # which say nothing alone
        old = code(edit.parent)
        edit.make()
        new = code(edit.parent)
        edit.undo()
    if edit.kind == "number" and old and new and (times := _ratio(old, new)):
        return f"The results are as if a constant in it were {times} times what it must be."
    if edit.kind == "name" and not edit.also:
        lost = _names_of(old) - _names_of(new)
        if new and len(lost) == 1 and len(new) < len(old) and _names_of(new) < _names_of(old):
            return f"In one place `{lost.pop()}` is missing: your result is that of `{new}` there."
    return old and new and f"Your result is that of `{new}` instead of `{old}`."


def _without_code(edit):
    """A sentence on a part of the right answer that the edit leaves out, or ""."""
    operator = getattr(edit.node, "op", None) if edit.kind == "extra part" else None
    what = "term" if isinstance(operator, ast.Add | ast.Sub) else "factor" if isinstance(operator, ast.Mult) else ""
    return what and f"A {what} is missing: the results are those of the formula without it."


def _ratio(old, new):
    """The quotient of two expressions without variables, as text, or ""."""
    try:
        if (_names_of(old) | _names_of(new)) - {"np"}:
            return ""
        return str(Fraction(eval(new, {"np": np}) / eval(old, {"np": np})).limit_denominator(100))
    except Exception:  # it needs more than NumPy, or is no expression
        return ""


def _spelled_out(node, own, definitions):
    """A copy of an expression with the definitions of its own variables in their place."""

    class Spelled(ast.NodeTransformer):
        def visit_Name(self, name):
            known = definitions.get(name.id) if isinstance(name.ctx, ast.Load) else None
            return (
                name
                if known is None
                else _spelled_out(known, own, {k: v for k, v in definitions.items() if k != name.id})
            )

    return Spelled().visit(deepcopy(node))


def _names_in(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _names_of(code):
    try:
        return _names_in(ast.parse(code))
    except SyntaxError:  # a slice
        return set()


def _code(node):
    """A node as one short line without attributes, whose names are the answer's own, or ""."""
    text = re.sub(r"\bF\.| \*\* 1$", "", ast.unparse(node))
    return "" if len(text) > MOST_LETTERS or re.search(r"\n|_step_of|self\.", text) else text
