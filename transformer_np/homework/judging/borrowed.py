"""Expressions of an exercise's right answer over the names of a student's code, to be tried in place of the student's.

Both are run once on the same case, and the values of all their expressions are kept. A variable of the right answer
becomes the student's variable with the same values; without such a variable, its definition is written out. If an
expression put in place of one of the student's makes the answer right, the mistake is in that expression, provided that
nothing computed before it is left unused: otherwise it would only avoid a mistake made earlier.
"""

import ast
import copy
from collections import Counter
from dataclasses import replace
from difflib import SequenceMatcher

import numpy as np

from .edits import Edit
from .family import Family
from .syntax import Names, expression, is_named_result, is_replaceable, places
from .traced import Traced, same

MOST_VALUES = 3  # of one expression, in a loop
MOST_DEPTH = 3  # of definitions written out
MOST_BORROWED = 300
BEHIND = 2.6  # the groups of edits that are tried before
GIVEN = "_given_"
_CHANGES = ("np.square(x)", "np.sqrt(x)", "-x", "1 / x", "~x", "1 - x")  # of a student's variable


def with_borrowed(edits, trials, family, number, any_shape, may_be_wrong, without=()):
    """The edits and those that put an expression of the right answer in place of one of the student's, or beside it.
    A sign is only changed where the right answer has the other sign: a rotation turned back has no wrong sign.

    number: of a case that fails; any_shape: whether a shape may be what is wrong
    may_be_wrong: whether the mistake can be in a node; without: the names of methods that stay as they are
    """
    given = Family(trials.exercise.variant(), of_student=False)
    if not given.trees:
        return edits
    right, own = _Values(trials, given, number), _Values(trials, family, number)
    if not right.of:
        return edits
    family.given = right.names  # filled below
    edits = [edit for edit in edits if not _is_odd_sign(edit, own, right)]
    found, made = [], {}
    for tree in family.trees.values():
        names, alike, used = Names(tree), {}, _used(tree)
        for parent, field, index, node, is_size in places(tree, without):
            if (is_size and not any_shape) or not is_replaceable(node, parent, field) or not may_be_wrong(node):
                continue
            if is_named_result(node, parent, names) or (isinstance(node, ast.Name) and isinstance(parent, ast.Return)):
                continue
            known, before = names.at(node), own.of.get(node)
            before = [node.value] if isinstance(node, ast.Constant) else before
            loads, text = own.loads(tree, known), ast.unparse(node)
            seen, inside = {text}, _used(node)
            lost = [name for name, times in inside.items() if times == used[name]]
            lost = [name for name in lost if name in family.trees or name in names.computed]
            for other in right.expressions:
                kind = _fits(before, right.of[other], any_shape)
                if not kind:
                    continue
                key = other, tree, tuple(known)
                if key not in made:
                    made[key] = right.over(other, loads)
                if made[key] is None:
                    continue
                for what, whole in _combined(kind, node, made[key], before, right.of[other]):
                    if what != "expression" and isinstance(parent, ast.Compare):
                        continue  # such as an infinite number over itself, which only dodges a case
                    written = ast.unparse(whole)
                    if written in seen or (lost and not set(lost) <= set(_used(whole))):
                        continue  # a variable, or a function of the student's file, would be left unused
                    seen.add(written)
                    near = SequenceMatcher(None, text, written, autojunk=False).quick_ratio()
                    edit = Edit(
                        what, BEHIND if what == "expression" else BEHIND + 0.5, node, parent, field, index, whole
                    )
                    alike.setdefault((text, written), []).append(edit)
                    found.append((-near, edit))
        for first, *others in alike.values():
            if others and _key(first.node) in {"", *names.parameters}:
                found.append((0, replace(first, group=BEHIND + 0.2, also=tuple(others))))
    return edits + [edit for _, edit in sorted(found, key=lambda item: item[0])[:MOST_BORROWED]]


def _is_odd_sign(edit, own, right):
    if edit.kind != "sign" or not isinstance(edit.new, ast.UnaryOp):
        return False
    changed = _changed("-x", own.of.get(edit.node, ()))
    return bool(changed) and not any(same(changed, values) for values in right.of.values())


def _fits(old, new, any_shape):
    """How values may be put in place of others: "" not at all, "beside" only as a factor or term, "instead" also
    alone."""
    if old is None:
        return "instead" if any_shape else ""
    a, b = old[0], new[0]
    if isinstance(a, bool) or isinstance(b, bool | str | type(None)) or same(old, new):
        return ""
    if any_shape:
        return "instead"
    if not all(isinstance(value, np.ndarray | np.generic | int | float) for value in (a, b)):
        return ""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind not in "biuf" or b.dtype.kind not in "biuf":
        return ""
    if a.shape == b.shape:
        return "instead" if (a.dtype == bool) == (b.dtype == bool) else "beside"
    return "beside" if b.ndim == 0 or b.shape == a.shape[-b.ndim :] else ""


def _combined(kind, node, new, old, values):
    if kind == "instead":
        yield "expression", new
    if old is None or not _is_number(old[0]) or not _is_number(values[0]):
        return
    if isinstance(old[0], int) and isinstance(values[0], int):
        yield "missing term", ast.BinOp(node, ast.Add(), new)
        yield "missing term", ast.BinOp(node, ast.Sub(), new)
    if isinstance(node, ast.Constant) or not _is_float(old[0]):
        return
    yield "missing factor", ast.BinOp(node, ast.Mult(), new)
    if _is_float(values[0]):
        if np.ndim(values[0]) == 0:
            yield "missing factor", ast.BinOp(node, ast.Div(), new)
        if np.shape(old[0]) == np.shape(values[0]):
            yield "missing term", ast.BinOp(node, ast.Add(), new)
            yield "missing term", ast.BinOp(node, ast.Sub(), new)


def _is_number(value):
    return isinstance(value, np.ndarray | np.generic | int | float) and np.asarray(value).dtype.kind in "biuf"


def _is_float(value):
    return _is_number(value) and np.asarray(value).dtype.kind == "f"


def _key(node):
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else ""


def _used(node):
    return Counter(filter(None, map(_key, ast.walk(node))))


class _Values:
    """The values of all expressions of a Family in one case.

    of: {node: its first values}; expressions: the nodes worth borrowing; names: what they need besides variables
    """

    def __init__(self, trials, family, number):
        self.family, self.names = family, {}
        traced = Traced(trials, family, MOST_VALUES)
        traced.results(number)
        self.of, originals = traced.of, family.trees
        self.definitions = {tree: _definitions(tree) for tree in originals.values()}
        self.tree_of = {node: tree for tree in originals.values() for node in ast.walk(tree)}
        self._loads, self._known = {}, {}
        self.expressions = [
            node for node in self.of
            if not isinstance(node, ast.Name | ast.Constant) and any(map(_key, ast.walk(node)))
            and not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))
        ]  # fmt: skip

    def _is(self, values, others, change=""):
        """Whether two lists of values are equal, the second after a change; both lists live as long as this object."""
        key = id(values), id(others), change
        if key not in self._known:
            changed = _changed(change, others) if change else others
            self._known[key] = bool(changed) and same(values, changed)
        return self._known[key]

    def loads(self, tree, names):
        """{name: [values at each place where a variable is read]}, None for a parameter that is not used at all;
        {None: parameters that never change}"""
        if tree not in self._loads:
            arguments = [arg.arg for arg in tree.args.args] if isinstance(tree, ast.FunctionDef) else []
            found = self._loads[tree] = dict.fromkeys(arguments)
            for node in ast.walk(tree):
                is_own = isinstance(node, ast.Attribute) and _key(node.value) == "self"
                if (is_own or isinstance(node, ast.Name)) and node in self.of:
                    name = ast.unparse(node)
                    found[name] = found.get(name) or []
                    if not any(same(self.of[node], values) for values in found[name]):
                        found[name].append(self.of[node])
        found = self._loads[tree]
        parameters = {name for name, value in self.definitions[tree].items() if value == ""}
        known = {name: found[name] for name in found if name in names or name.startswith("self.")}
        return known | {None: parameters & set(names)}

    def over(self, node, loads, depth=0, tree=None):
        """An expression over the names of a student's code with these values, or None."""
        bound = {
            n.id if isinstance(n, ast.Name) else n.arg
            for n in ast.walk(node)
            if isinstance(n, ast.arg) or (isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        }
        local = self.definitions[tree or self.tree_of[node]]
        replaced = {}
        for part in (n for n in ast.walk(node) if isinstance(n, ast.Attribute) and _key(n.value) == "self"):
            for other, kinds in loads.items():
                if (
                    other
                    and other.startswith("self.")
                    and part in self.of
                    and any(self._is(self.of[part], kind) for kind in kinds)
                ):
                    replaced[id(part)] = expression(other)
        for name in (n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id not in bound):
            if name.id == "self":
                continue
            if name.id in local:
                new = self._variable(name, loads, depth)
                if new is None:
                    return None
                replaced[id(name)] = new
            elif name.id not in ("np", GIVEN):
                space = self.family.space
                builtins = space["__builtins__"]
                builtins = builtins if isinstance(builtins, dict) else vars(builtins)
                if name.id not in space and name.id not in builtins:
                    return None
                self.names[GIVEN + name.id] = space.get(name.id, builtins.get(name.id))
                replaced[id(name)] = ast.Name(GIVEN + name.id, ast.Load())
        return _with_names(node, replaced)

    def _variable(self, name, loads, depth):
        """What stands for a variable: a student's one with its values, a change of one, or its definition."""
        values = self.of.get(name)
        if values is None:
            return None
        if name.id in loads[None] and self.definitions[self.tree_of[name]].get(name.id) == "":
            return ast.Name(name.id, ast.Load())
        known = {other: kinds for other, kinds in loads.items() if other}
        alike = [
            other for other, kinds in known.items() if kinds is None or any(self._is(values, kind) for kind in kinds)
        ]
        if name.id in alike:
            return ast.Name(name.id, ast.Load())
        alike = [other for other in alike if known[other]]
        if alike:
            return expression(alike[-1])
        for other, kinds in known.items():
            for text in _CHANGES:
                if any(self._is(values, kind, text) for kind in kinds or ()):
                    new = expression(text)
                    places = [id(n) for n in ast.walk(new) if _key(n) == "x"]
                    return _with_names(new, dict.fromkeys(places, expression(other)))
        definition = self.definitions[self.tree_of[name]][name.id]
        if not definition or depth == MOST_DEPTH:
            return None
        return self.over(definition, loads, depth + 1, self.tree_of[name])


def _changed(text, values):
    kinds = {value.dtype.kind if isinstance(value, np.ndarray) else "" for value in values}
    if not kinds or kinds - ({"b"} if text == "~x" else {"f", "i"} if text == "-x" else {"f"}):
        return None
    make = {
        "np.square(x)": np.square, "np.sqrt(x)": lambda x: np.sqrt(np.abs(x)), "-x": np.negative,
        "1 / x": lambda x: 1 / x, "~x": np.invert, "1 - x": lambda x: 1 - x,
    }[text]  # fmt: skip
    with np.errstate(all="ignore"):
        return [make(value) for value in values]


def _with_names(node, replaced):
    """A copy of an expression with some names replaced, {id of the name: expression}."""
    if id(node) in replaced:
        return copy.deepcopy(replaced[id(node)])
    new = copy.copy(node)
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            setattr(new, field, _with_names(value, replaced))
        elif isinstance(value, list):
            setattr(new, field, [_with_names(v, replaced) if isinstance(v, ast.AST) else v for v in value])
    for place in ("lineno", "end_lineno", "col_offset", "end_col_offset"):
        new.__dict__.pop(place, None)
    return new


def _definitions(tree):
    """{name of a variable of a function: the expression that it stands for, or None; "" for a parameter that never
    changes}"""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)):
            name = node.arg if isinstance(node, ast.arg) else node.id
            found[name] = None
    assigned = [n for n in ast.walk(tree) if isinstance(n, ast.Assign) and len(n.targets) == 1]
    stores = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    stores += [n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)]
    for node in assigned:
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = zip(target.elts, value.elts, strict=False)
        elif isinstance(target, ast.Tuple):
            pairs = [(part, ast.Subscript(value, ast.Constant(i), ast.Load())) for i, part in enumerate(target.elts)]
        for part, value in pairs:
            if isinstance(part, ast.Name) and stores.count(part.id) == 1:
                found[part.id] = value
    arguments = tree.args.args if isinstance(tree, ast.FunctionDef) else ()
    return found | {arg.arg: "" for arg in arguments if stores.count(arg.arg) == 1}
