"""The edits that undo a listed mistake: what the right answer has, and the one with the mistake lacks or has otherwise,
is put into the student's code."""

import ast
from functools import lru_cache

from .edit import OTHER, Edit
from .edits import filled, match
from .family import family_with
from .syntax import expression, is_value, places

_GAP = "_gap"  # the name of what a part of the right answer is built around
_NEUTRAL = {(ast.Mult, 1), (ast.Div, 1), (ast.Pow, 1), (ast.Add, 0), (ast.Sub, 0)}  # what is as if it were not there


def undoing(exercise, name, tree):
    """The Edits of a function or class of the student's that undo a listed mistake, the outermost first; none of one
    that is more than one change of the right answer."""
    wrong, right = _change(exercise, name)
    if right is None:
        return
    is_around = wrong is None
    for parent, field, index, node, _ in places(tree, exercise.given):
        found = {_GAP: node} if is_around else {}
        if is_value(node, parent, field) if is_around else match(wrong, node, found):
            new = filled(right, found)
            yield Edit(_kind(new) if is_around else OTHER, 1, node, parent, field, index, new)


@lru_cache(256)
def _change(exercise, name):
    """(a form of what a mistake has, what the right answer has in its place); None for the form if it has the same
    around any value; (None, None) if it is no change of one expression."""
    right, wrong = (family_with(exercise, names) for names in ((), (name,)))
    if not right or not wrong:
        return None, None
    pairs = [pair for name in wrong.trees for pair in _differences(right.trees[name], wrong.trees[name])]
    pairs = {(ast.dump(one), ast.dump(other)): (one, other) for one, other in pairs}
    one, other = next(iter(pairs.values())) if len(pairs) == 1 else (None, None)
    if not isinstance(one, ast.expr) or not isinstance(other, ast.expr):
        return None, None
    once = _once(right)
    around = _around(_inlined(one, once), _inlined(other, once))
    if around:
        return None, around
    own = {n.id for tree in wrong.trees.values() for n in ast.walk(tree) if _is_stored(n)}
    own = sorted({n.id for n in ast.walk(other) if isinstance(n, ast.Name)} & own)
    letters = {name: ast.Name(chr(ord("α") + i), ast.Load()) for i, name in enumerate(own)}  # for any expression
    form = filled(other, letters)
    return (None, None) if isinstance(form, ast.Name) else (form, _inlined(filled(one, letters), once))


def _differences(right, wrong):
    """[(part of one tree, that of the other)] of the smallest expressions and statements in which two trees differ."""
    if ast.dump(right) == ast.dump(wrong):
        return []
    found, whole = [], [(right, wrong)]
    for field, one in ast.iter_fields(right):
        other = getattr(wrong, field, None)
        both = (one, other) if isinstance(one, list) and isinstance(other, list) else ([one], [other])
        if type(right) is not type(wrong) or len(both[0]) != len(both[1]):
            return whole
        for a, b in zip(*both, strict=True):
            if isinstance(a, ast.AST) and isinstance(b, ast.AST):
                found += _differences(a, b)
            elif a != b:
                return whole
    is_smaller = all(isinstance(part, ast.expr | ast.stmt) for part, _ in found) and _idle(wrong) is wrong
    return found if is_smaller and (len(found) == 1 or not isinstance(right, ast.expr)) else whole


def _idle(node):
    """Of a product with 1 or a sum with 0 the other part, or else the node itself."""
    if isinstance(node, ast.BinOp):
        if (type(node.op), getattr(node.right, "value", None)) in _NEUTRAL:
            return node.left
        if isinstance(node.op, ast.Add | ast.Mult) and (type(node.op), getattr(node.left, "value", None)) in _NEUTRAL:
            return node.right
    return node


def _around(right, wrong):
    """The part of the right answer with a gap where it has the wrong one; None if it is built otherwise."""
    value = getattr(wrong, "value", None)
    if isinstance(wrong, ast.Constant) and value in (0, 1):
        is_inverse = isinstance(right, ast.BinOp) and isinstance(right.op, ast.Div) and value
        if is_inverse and getattr(right.left, "value", None) == 1:
            return ast.BinOp(ast.Name(_GAP), ast.Div(), right.right)
        return ast.BinOp(ast.Name(_GAP), ast.Mult() if value else ast.Add(), right)
    form = _with_gap(right, ast.dump(_idle(wrong)))
    return form if any(isinstance(n, ast.Name) and n.id == _GAP for n in ast.walk(form)) else None


def _with_gap(form, dumped):
    """A form with a gap in place of a part."""
    if isinstance(form, list):
        return [_with_gap(part, dumped) for part in form]
    if not isinstance(form, ast.AST):
        return form
    if ast.dump(form) == dumped:
        return expression(_GAP)
    return type(form)(**{field: _with_gap(part, dumped) for field, part in ast.iter_fields(form)})


def _is_stored(node):
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _once(family):
    """{variable: what it is made of} of the variables of a right answer that are written once, parameters left out."""
    nodes = [node for tree in family.trees.values() for node in ast.walk(tree)]
    stored = [n.id for n in nodes if _is_stored(n)] + [n.arg for n in nodes if isinstance(n, ast.arg)]
    lines = [n for n in nodes if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)]
    return {n.targets[0].id: n.value for n in lines if stored.count(n.targets[0].id) == 1}


def _inlined(part, once):
    """An expression with what its variables are made of in their place."""
    for _ in once:
        part = filled(part, once)
    return part


def _kind(new):
    if isinstance(new, ast.BinOp):
        return "missing term" if isinstance(new.op, ast.Add | ast.Sub) else "missing factor"
    return "missing function"
