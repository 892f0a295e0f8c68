"""What a change of code adds and takes away, whatever the variables are called."""

import ast
from collections import Counter

from .attempt import argument_names
from .family import family_with

_OPERATORS = (ast.operator, ast.cmpop, ast.unaryop, ast.boolop)


def undone_by(trials, named):
    """The tokens that undo some mistakes in a right answer, {token: how many more}."""
    listed = [h.name for h in named if h.name in trials.exercise.mistakes]
    ignored = [trials.ignored[h.name].argument for h in named if h.name in trials.ignored]
    right, wrong = family_with(trials.exercise, ()), family_with(trials.exercise, listed)
    undone, names = Counter(ignored), {*argument_names(trials.exercise)}
    for family, sign in ((right, 1), (wrong, -1)) if listed and right and wrong else ():
        for tree in family.trees.values():
            _count(undone, tree, sign, names)
    return Counter({token: n for token, n in undone.items() if n})


def change_of(edit):
    """The tokens that an Edit adds, and takes away, {token: how many more}."""
    change = Counter()
    for part in (edit, *edit.also):
        _count(change, part.new, 1)
        _count(change, part.node, -1)
    return change


def _count(tokens, tree, sign, names=None):
    """Count the tokens of a tree; names: of the variables that count, None for all"""
    for node in ast.walk(tree) if isinstance(tree, ast.AST) else ():
        if isinstance(node, _OPERATORS):
            tokens[type(node)] += sign
        elif isinstance(node, ast.Constant):
            tokens[repr(node.value)] += sign
        elif isinstance(node, ast.Attribute | ast.keyword):
            tokens[getattr(node, "attr", None) or node.arg] += sign
        elif isinstance(node, ast.Name) and (names is None or node.id in names):
            tokens[node.id] += sign
