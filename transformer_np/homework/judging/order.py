"""The parameters of an answer in another order than the exercise has them."""

import ast
from inspect import signature

from .family import Family


def order_of(exercise, function):
    """The parameters of an answer, of which this is the syntax tree, in the order of the exercise; () if they are in
    it, or others are among them."""
    own = [arg.arg for arg in function.args.args] if isinstance(function, ast.FunctionDef) else []
    right = tuple(name for name in signature(exercise.reference).parameters if name in own)
    return right if len(right) == len(own) and right != tuple(own) else ()


def function_of(answer):
    """The syntax tree of an answer, or None."""
    return next(iter(Family(answer).trees.values()), None)


def function_in(source, name):
    """The syntax tree of the only function of this name in the source of a file, or None."""
    try:
        nodes = [n for n in ast.parse(source).body if getattr(n, "name", "") == name]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return nodes[0] if len(nodes) == 1 else None
