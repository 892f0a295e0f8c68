"""What a change of code adds and takes away: operators, numbers, names."""

import ast
from collections import Counter

from .family import family_with

_OPERATORS = (ast.operator, ast.cmpop, ast.unaryop, ast.boolop)


def undone_by(trials, named):
    """The tokens that undo some mistakes in a right answer, {token: how many more}; None of no mistakes."""
    listed = [h.name for h in named if h.name in trials.exercise.mistakes]
    listed = listed if trials.compatible(listed) else []
    ignored = [trials.ignored[h.name].argument for h in named if h.name in trials.ignored]
    right, wrong = family_with(trials.exercise, ()), family_with(trials.exercise, listed)
    undone = Counter(ignored)
    for family, sign in ((right, 1), (wrong, -1)) if listed and right and wrong else ():
        for tree in family.trees.values():
            _count(undone, tree, sign)
    return Counter({token: n for token, n in undone.items() if n}) if listed or ignored else None


def change_of(edit):
    """The tokens that an Edit adds, and takes away, {token: how many more}."""
    change = Counter()
    for part in (edit, *edit.also):
        _count(change, part.new, 1)
        _count(change, part.node, -1)
    return change


def _count(tokens, tree, sign):
    for node in ast.walk(tree) if isinstance(tree, ast.AST) else ():
        if isinstance(node, _OPERATORS):
            tokens[type(node)] += sign
        elif isinstance(node, ast.Constant):
            tokens[repr(node.value)] += sign
        elif isinstance(node, ast.Attribute | ast.keyword):
            tokens[getattr(node, "attr", None) or node.arg] += sign
        elif isinstance(node, ast.Name):
            tokens[node.id] += sign
