"""An answer that runs with all values of its expressions kept, and with other values in their place."""

import ast
import copy

import numpy as np

from .attempt import attempt
from .family import MOST_DEPTH, MOST_ITEMS
from .syntax import is_read

_TAP = "_tapped"


class Traced:
    """A Family with a tap around every expression.

    most: values kept of one expression, in a loop
    of: {node: its first values} of the last call without another value, in the order of their first evaluation
    when: {node: the time of each of these values, as a number}
    """

    def __init__(self, trials, family, most):
        self.trials, self.family, self.most, self._instead = trials, family, most, None
        self.of, self.when = {}, {}
        originals, trees, self._nodes = family.trees, copy.deepcopy(family.trees), []
        for name, tree in trees.items():
            twins = dict(zip(map(id, ast.walk(tree)), ast.walk(originals[name]), strict=True))
            _Tapped(self._nodes, twins).visit(tree)
        family.trees = trees
        try:
            self.answer, self._steps = family.compiled({_TAP: self._tapped})
        finally:
            family.trees = originals

    def results(self, number, node=None, values=()):
        """The results of a case, or None; values: what a node is worth instead, by number of its evaluation"""
        if self.answer is None:
            return None
        self.of, self.when, self._now, self._instead = {}, {}, 0, (node, list(values))
        self._steps.begin()
        case = self.trials.cases[number]
        return self.trials.results(case, attempt(self.trials.exercise, self.answer, case, is_trial=True))

    def _tapped(self, number, value):
        node, (changed, values) = self._nodes[number], self._instead
        if changed:
            return values.pop(0) if node is changed and values else value
        if node not in self.of:
            self.of[node], self.when[node] = [], []
        if len(self.of[node]) < self.most:
            self._now += 1
            self.of[node].append(kept(value))
            self.when[node].append(self._now)
        return value


def kept(value, depth=MOST_DEPTH):
    """A value as it is now; `...`, which equals nothing, for what lies too deep: lists that hold each other twice have
    2^depth items."""
    if type(value) is np.ndarray:
        return value.copy()
    if type(value) in (list, tuple) and not depth:
        return ...
    if type(value) in (list, tuple) and len(value) <= MOST_ITEMS:
        return type(value)(kept(item, depth - 1) for item in value)
    return dict(value) if type(value) is dict and len(value) <= MOST_ITEMS else value


def same(some, others):
    return len(some) == len(others) and all(map(_equal, some, others))


def _equal(a, b):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        if not all(isinstance(value, np.ndarray | int | float | np.generic) for value in (a, b)):
            return False
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or (a.dtype == bool) != (b.dtype == bool) or {a.dtype.kind, b.dtype.kind} - set("biuf"):
            return False
        ends = [(float(a.flat[i]), float(b.flat[i])) for i in (0, -1) if a.size]  # np.allclose is slow
        if any(abs(one - other) > 1e-4 * (1 + abs(other)) for one, other in ends):
            return False
        return bool(np.allclose(a, b, rtol=1e-5, atol=1e-7, equal_nan=True))
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b or abs(a - b) <= 1e-6 * max(abs(a), abs(b))
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return same(a, b)
    if isinstance(a, dict) and isinstance(b, dict):
        return same(sorted(a.items(), key=str), sorted(b.items(), key=str))
    return type(a) is type(b) and isinstance(a, str) and a == b


class _Tapped(ast.NodeTransformer):
    """Put a call of the tap around every expression of a copied tree; nodes: the originals, by number."""

    def __init__(self, nodes, twins):
        self.nodes, self.twins = nodes, twins

    def visit_FunctionDef(self, node):
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_ClassDef(self, node):
        node.body = [self.visit(part) if isinstance(part, ast.FunctionDef) else part for part in node.body]
        return node

    def visit_Lambda(self, node):
        node.body = self.visit(node.body)
        return node

    def visit_Assign(self, node):
        is_number, original = isinstance(node.value, ast.Constant), self.twins[id(node)]
        node = self.generic_visit(node)
        if is_number:
            node.value = self._with_tap(node.value, original.value)
        return node

    visit_AugAssign = visit_Assign

    def generic_visit(self, node):
        if isinstance(node, ast.JoinedStr):
            return node
        original = self.twins.get(id(node))
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                node.func.value = self.visit(node.func.value)
            node.args = [self.visit(arg) for arg in node.args]
            node.keywords = [self.visit(keyword) for keyword in node.keywords]
        else:
            node = super().generic_visit(node)
        return self._around(node, original)

    def _around(self, node, original):
        if original is None or not is_read(node):
            return node
        if isinstance(node, ast.Slice | ast.Starred | ast.Lambda | ast.Constant):
            return node
        return self._with_tap(node, original)

    def _with_tap(self, node, original):
        self.nodes.append(original)
        call = ast.Call(ast.Name(_TAP, ast.Load()), [ast.Constant(len(self.nodes) - 1), node], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))
