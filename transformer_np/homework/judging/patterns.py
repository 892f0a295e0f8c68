"""Mistakes that nobody has listed: edits of an exercise's readable right answer, with texts from patterns."""

import ast
import re
import sys
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np

from .attempt import argument_names
from .compare import close
from .edit import Edit
from .edits import edits_of
from .family import family_with, without_huge_arrays
from .syntax import Names
from .words import subject

MOST_EDITS = 500
_KINDS = ("operator", "comparison", "order", "brackets", "number", "flag", "axis", "name", "function", "transpose",
          "sign", "inverted", "overwritten", "extra part", "extra line", "order of results", "missing index",
          "missing function", "missing factor", "missing term")  # fmt: skip
MANY_NUMBERS = 30  # in results: nobody has them by chance
MOST_LETTERS = 60  # of a piece of code in a text
MOST_TOGETHER = 3  # edits that explain the first failing case, each of them some of its results


@dataclass
class Pattern:
    """An edit with its text; same, other: the wrong cells, (result, label of a case), in which the right answer with
    this edit has the student's numbers, and numbers of its own; labels: of the cases that it adds to other Patterns"""

    edit: Edit
    text: str
    same: set
    other: set
    labels: list = field(default_factory=list)

    @property
    def name(self):
        return self.text.rstrip(".")

    def text_on(self, result):
        """The text, as a sentence on one result."""
        started = re.sub(r"^The results are (those)?", lambda m: f"{result} is {'that' * bool(m[1])}", self.text)
        return re.sub(r"^Your result is that", f"{result} is that", started)


def patterns_for(trials, found, listed=()):
    """The Patterns that turn the right answer with these listed mistakes into one with the student's results, and the
    wrong cells that they leave right; ([], …) if there are none for the first failing case.

    Each explains some results of the first failing case; one more may explain the rest of the other cases.
    """
    if trials.left <= 0:
        return [], set()
    search = _Patterns(trials, found, listed)
    with without_huge_arrays(trials.cases):
        return search.found() if search.is_possible else ([], set())


class _Patterns:
    def __init__(self, trials, found, listed):
        self.trials, self.cases, self.listed = trials, found, listed
        self.least = trials.left // 2  # for the searches after this one
        self.labels = list(dict.fromkeys(finding.case.label for finding in found))
        self.wrong = {(i, finding.case.label) for finding in found for i in finding.wrong or ()}
        self.is_possible = bool(self.wrong) and all(f.results is not None for f in found) and self._prepare()

    def _prepare(self):
        """Make the trees of the right answer with the listed mistakes. Returns whether they can be edited."""
        self.family = family_with(self.trials.exercise, self.listed)
        if self.family is None:
            return False
        given = argument_names(self.trials.exercise)
        usual = {ignored.argument: ignored.value for name, ignored in self.trials.ignored.items() if "not used" in name}
        arguments = {name: [f.arguments.get(name, usual.get(name)) for f in self.cases] for name in given}
        arguments = {name: [value for value in values if value is not None] for name, values in arguments.items()}
        self.no_numbers = {name for name, values in arguments.items() if not (values and all(map(_is_number, values)))}
        return True

    def found(self):
        """The Patterns, and the wrong cells that they leave."""
        before, other = self._cells_of_trees() if self.listed else (set(), set())
        if (self.listed and not before) or before == self.wrong:
            return [], self.wrong - before
        first = label = self._first_of(self.wrong - before)
        chosen, explained = self._of_first(first, before)
        if not chosen and (others := self._other_branch(first, before)):
            label = self._first_of(others)
            chosen, explained = self._of_first(label, before)
        with ExitStack() as made:
            for pattern in chosen:
                pattern.edit.make()
                made.callback(pattern.edit.undo)
                vars(self).pop("_edits", None)
            if len(chosen) > 1:
                explained, other = self._cells_of_trees(label, before)
            else:
                other = chosen[0].other if chosen else set()
            if not chosen:
                return [], self.wrong
            if left := self.wrong - explained:
                label = self._first_of(left)
                more = [pattern for pattern in self._sweep(label, explained) if not pattern.other]
                if more:
                    best = max(more, key=lambda pattern: len(pattern.same))
                    best.labels = [label for label in self.labels if any(c[1] == label for c in best.same - explained)]
                    chosen, explained, other = [*chosen, best], best.same, set()
        is_whole = explained >= {cell for cell in self.wrong if cell[1] == first}
        if other or not is_whole or (explained != self.wrong and not self._tells_much(explained)):
            return [], self.wrong
        results = self.trials.exercise.results
        for pattern in chosen if len(results) > 1 else ():
            of_result = {i for i, _ in pattern.same - before}
            if len(of_result) == 1:
                pattern.text = pattern.text_on(subject(results[of_result.pop()].name))
        return chosen, self.wrong - explained

    def _other_branch(self, first, before):
        """The unexplained cells of cases with other options than the first."""
        options = {finding.case.label: finding.case.options for finding in self.cases}
        return {cell for cell in self.wrong - before if options[cell[1]].keys() - options[first].keys()}

    def _first_of(self, cells):
        """The first label of some cells."""
        return next(label for label in self.labels if any(cell[1] == label for cell in cells))

    def _tells_much(self, cells):
        """Whether the student's results in some cells are so many numbers that nobody has them by chance."""
        return sum(f.results[i].size for f in self.cases for i in f.wrong if (i, f.case.label) in cells) >= MANY_NUMBERS

    def _of_first(self, label, before):
        """The Patterns that together explain the results of a case, and the cells they explain.

        before: the cells that are explained without them
        """
        found = self._sweep(label, before)
        chosen, explained = [], set(before)
        wanted = {cell for cell in self.wrong - before if cell[1] == label}
        for pattern in sorted(found, key=lambda p: (len(p.same & wanted), len(p.same), -len(p.other)), reverse=True):
            if (
                not pattern.same & wanted & explained - before
                and len(chosen) < MOST_TOGETHER
                and not wanted <= explained
            ):
                chosen.append(pattern)
                explained |= pattern.same
        return chosen, explained

    def _sweep(self, label, wanted=frozenset()):
        """The Patterns that explain some of the wrong results of a case, and all wanted cells; no two of them the same
        cells. If there are none, one that explains everything by code that has no name."""
        found, seen, vague = [], set(), []
        work = self.family.work_of_edit
        for edit in self._edits:
            if self.trials.left <= self.least:
                break
            self.trials.left -= work
            edit.make()
            try:
                same, other = self._cells_of_trees(label, wanted)
            finally:
                edit.undo()
            key = frozenset(same), frozenset(other)
            if same == self.wrong and not vague and (text := _without_code(edit)):
                vague = [Pattern(edit, text, same, other)]
            if same and key not in seen and (text := self._text(edit)):
                seen.add(key)
                found.append(Pattern(edit, text, same, other))
                if same == self.wrong:
                    return found[-1:]
        return found or vague

    @cached_property
    def _edits(self):
        """The edits to try, the smallest ones first."""
        edits = [edit for tree in self.family.trees.values() for edit in edits_of(tree) if self._is_pattern(edit)]
        return sorted(edits, key=lambda edit: edit.group)[:MOST_EDITS]

    def _cells_of_trees(self, first=None, wanted=frozenset()):
        """The wrong cells in which the trees as they are now give the student's numbers, and those in which they give
        neither these nor the right ones; none if they are wrong where the student is right, give other numbers in the
        first case, or do not have the student's in all wanted cells."""
        answer, steps = self.family.compiled()
        same, other = set(self.wrong), set()
        if answer is None:
            return set(), other
        order = sorted(
            range(len(self.cases)), key=lambda n: (self.cases[n].case.label != first, not self.cases[n].wrong)
        )
        for n in order:
            finding, label = self.cases[n], self.cases[n].case.label
            steps.begin()
            results = self.trials.results_of(answer, n, self.listed)[0]
            if results is None:
                return set(), other
            for i, result in enumerate(results):
                if close(result, finding.results[i]):
                    continue
                cell = i, label
                same.discard(cell)
                if cell in wanted:
                    return set(), other
                if not close(result, finding.expected[i]):
                    if cell not in self.wrong or label == first:
                        return set(), other
                    other.add(cell)
            if first is not None and not any(cell[1] == first for cell in same - wanted):
                return set(), other
        return same, other

    def _text(self, edit):
        tree = next(tree for tree in self.family.trees.values() if any(node is edit.parent for node in ast.walk(tree)))
        names = Names(tree)
        own = names.computed | set(filter(self._is_helper, names.others))  # which the student may not have
        if tree is not next(iter(self.family.trees.values())):
            own |= names.parameters - set(argument_names(self.trials.exercise))
        stored = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        written = {n.value.id for n in ast.walk(tree) if _is_stored_item(n)}  # np.zeros_like(x), which loops fill
        once = {n.id for n in stored if sum(n.id == other.id for other in stored) == 1} & own - written
        lines = [n for n in ast.walk(tree) if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)]
        return _text(edit, own, {n.targets[0].id: n.value for n in lines if n.targets[0].id in once})

    def _is_helper(self, name):
        """Whether a name is that of a function beside the right answer which the library's own code does not know."""
        function, answer = self.family.space.get(name), self.family.answer
        module = getattr(function, "__module__", None) or ""
        library = sys.modules.get(self.trials.exercise.reference.__module__)
        return module.rpartition(".")[0] == answer.__module__.rpartition(".")[0] and not hasattr(library, name)

    def _is_pattern(self, edit):
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
