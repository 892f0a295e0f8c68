"""The parameters of an answer in another order than the exercise has them."""

import ast
from inspect import signature

from ..definitions import tree_of


def order_of(exercise, function):
    """The parameters of an answer, of which this is the syntax tree, in the order of the exercise; () if they are in
    it, or others are among them."""
    own = [arg.arg for arg in function.args.args] if isinstance(function, ast.FunctionDef) else []
    right = tuple(name for name in signature(exercise.reference).parameters if name in own)
    return right if len(right) == len(own) and right != tuple(own) else ()


def function_in(source, name):
    """The syntax tree of the only function of this name in the source of a file, or None."""
    tree = tree_of(source)
    nodes = [node for node in tree.body if getattr(node, "name", "") == name] if tree else []
    return nodes[0] if len(nodes) == 1 else None
