"""Runs of an answer that are watched: the values of its expressions, others in their place, what it writes into."""

import ast
import copy
import sys
from bisect import bisect_left
from operator import itemgetter

import numpy as np

from ..exercise import call
from ..guard import is_students
from .attempt import attempt, attempt_with, copies
from .compare import are_close
from .family import MOST_STEPS
from .objects import MOST_DEPTH, MOST_ITEMS
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
        ends = [(float(a.flat[i]), float(b.flat[i])) for i in (0, -1) if a.size]  # of most, which differ
        if any(abs(one - other) > 1e-4 * (1 + abs(other)) for one, other in ends):
            return False
        return bool(are_close(a.astype(float, copy=False), b.astype(float, copy=False), 1e-5, 1e-7).all())
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
        if isinstance(node, ast.JoinedStr | ast.pattern):
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


# --- which values are the same, and which can stand in place of others ------------------------------------------------


class Known:
    """Values, to be found by their first number and their size."""

    def __init__(self, values):
        self._equal, self._by_size = {key(value): value for value in values}, {}
        for value in self._equal.values():
            self._by_size.setdefault(_size(value), []).append((_first(value), value))
        for group in self._by_size.values():
            group.sort(key=_place)

    def has(self, value):
        if key(value) in self._equal:
            return True
        group, first = self._by_size.get(_size(value), ()), _first(value)
        near = 2e-4 * (1 + abs(first))  # farther apart than two numbers that are called the same
        begin, end = (bisect_left(group, first + far, key=_place) for far in (-near, near))
        return any(same([value], [other]) for _, other in group[begin:end])


_place = itemgetter(0)


def _first(value):
    if not is_array(value) or value.dtype.kind not in "biuf":
        return float(value) if isinstance(value, int | float) else 0.0
    return float(value.flat[0]) if value.size and np.isfinite(value.flat[0]) else 0.0


def key(value):
    """What two values have in common only if they are the same to the last bit."""
    if isinstance(value, list | tuple):
        return tuple(map(key, value))
    return (value.shape, value.tobytes()) if is_array(value) else str(value)


def _size(value):
    if isinstance(value, list | tuple | dict):
        return "items", len(value)
    return value.size if is_array(value) else isinstance(value, int | float) or value


def flat(value, shape):
    """An array without its axes, unless its shape counts."""
    return np.ravel(value) if is_array(value) and not shape else value


def joined(values):
    """The values of an expression in a loop as one array, as a formula without the loop gives them, or None."""
    is_whole = len(values) > 1 and all(is_number(v) and np.shape(v) == np.shape(values[0]) for v in values)
    return np.stack(values) if is_whole else None


def is_filled(values):
    """Whether arrays hold one number only: new ones, which the next lines fill."""
    return bool(values) and all(is_array(v) and v.size > 1 and np.all(v == v.flat[0]) for v in values)


def is_array(value):
    return isinstance(value, np.ndarray | np.generic)


def is_data(value):
    return is_array(value) or isinstance(value, int | float | str | list | tuple | dict)


def is_number(value):
    return is_array(value) or type(value) is float


def _are_numbers(values):
    """Whether values are arrays and floats, or one whole number: in a loop these are mostly places."""
    return bool(values) and (all(map(is_number, values)) or (len(values) == 1 and type(values[0]) is int))


def _are_names(values):
    """Whether values are texts, or tuples of whole numbers and texts: what something is called."""
    parts = [part for value in values for part in (value if type(value) is tuple else [value])]
    is_kind = all(type(value) in (tuple, str) for value in values)
    return bool(parts) and is_kind and all(type(part) in (int, str) for part in parts)


def alike(values, right, any_shape, origins=frozenset()):
    """Those of the right values, with their nodes, that can be put in place of others: those of `origins` first, then
    those that have most in common."""
    is_kind = next((is_kind for is_kind in (_are_numbers, _are_names) if is_kind(values)), None)
    if not is_kind:
        return []

    def is_as_large(value):
        return getattr(value, "size", 1) == getattr(values[0], "size", 1)

    def fitted(value, own):
        """The value in the shape of the answer's, which may have joined axes, or None."""
        if is_kind is _are_names:
            return value
        if (np.asarray(value).dtype == bool) != (np.asarray(own).dtype == bool):
            return None
        if any_shape or np.shape(value) == np.shape(own):
            return value
        return np.reshape(value, np.shape(own)) if np.size(value) == np.size(own) else None

    def unlikeliness(item):
        return not item[1] & origins, -sum(same([a], [b]) for a, b in zip(values, item[0], strict=True))

    found = [item for item in right if len(item[0]) == len(values) and (any_shape or is_as_large(item[0][0]))]
    found = [item for item in found if is_kind(item[0])]
    found = [(list(map(fitted, others, values)), nodes) for others, nodes in found]
    return sorted((item for item in found if not any(value is None for value in item[0])), key=unlikeliness)


# --- which line writes into an argument -------------------------------------------------------------------------------


def line_of_change(exercise, answer, case):
    """The number of the line after which an argument is no longer as it was, or None if it is not found.

    The line is the one that ran last: the arguments are compared whenever a line of the student's begins or a function
    returns.
    """
    if exercise.drive is not call or sys.gettrace() is not None:
        return None
    arguments, options = copies(case.arguments, case.options)
    given = [value for value in (*arguments, *options.values()) if isinstance(value, np.ndarray | list | dict)]
    before = list(map(_content, given))
    last, found, events = None, None, 0

    def on_event(frame, event, _):
        nonlocal last, found, events
        events += 1
        if found is None and last is not None and events < MOST_STEPS and list(map(_content, given)) != before:
            found = last
        is_back = event == "return" and is_students(frame.f_back.f_code.co_filename)
        last = (frame.f_back if is_back else frame).f_lineno  # which may write what is returned
        return on_event if found is None else None

    def on_call(frame, event, _):
        return on_event if found is None and is_students(frame.f_code.co_filename) else None

    sys.settrace(on_call)
    try:
        attempt_with(exercise, answer, arguments, options, is_trial=True)
    finally:
        sys.settrace(None)
    return found


def _content(value):
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value)
