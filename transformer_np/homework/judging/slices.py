"""The lines of an answer that a wrong value may come from: the place where it is computed, and what computes the
variables that are read there and have values of no right answer (a dynamic slice, Korel & Laski 1988)."""

import ast
from functools import partial
from types import ModuleType

import numpy as np

from .attempt import arrays_of
from .syntax import name_of
from .values import flat, is_data, is_filled

MOST_LINES = 4  # to look at


class Slice:
    """places: the statements and expressions, in the order of their lines, of at most MOST_LINES lines
    reads: the variables and functions that they read and that may be wrong too, as they are written
    """

    def __init__(self, sides, nodes, number, fine=()):
        self.sides, self.number, self._in_pieces = sides, number, fine
        self._own, self._fine = sides.values(number)[0], sides.fine_in(number, False)
        self._sizes = {size for array in arrays_of(sides.trials.cases[number]) for size in np.shape(array)}
        tree = next(iter(sides.family.trees.values()))
        methods = [n for n in tree.body if isinstance(n, ast.FunctionDef)] if isinstance(tree, ast.ClassDef) else []
        given = (function.args for function in methods or [getattr(tree, "value", tree)])  # or of `f = lambda x: …`
        self._given = {arg.arg for arguments in given for arg in arguments.args}
        found, level = [], list(nodes)
        while True:
            unknown = [node for place in level for node in self._unknown(place)]
            found += [place for place in level if not self._only_reads(place, unknown)]
            before = {s: None for node in unknown for s in self._writes(node) if s not in found and s not in level}
            if not before or len({place.lineno for place in (*found, *before)}) > MOST_LINES:
                break
            level = [*before]
        left = [node for node in unknown if {*self._writes(node)} - {*found} or self._is_from_outside(node)]
        self.places = sorted(found, key=lambda place: place.lineno)
        self.reads = list(dict.fromkeys(map(ast.unparse, left)))

    def _only_reads(self, place, unknown):
        """Whether a place reads a variable and no more, or an entry of one that may be wrong, such as `x[..., 0]`."""
        if isinstance(place, ast.Subscript) and not any(isinstance(n, ast.Name) for n in ast.walk(place.slice)):
            return place.value in unknown and bool(self._writes(place.value))
        return isinstance(place, ast.Name)

    def _unknown(self, place):
        """The nodes of the variables and of the student's own functions that a place reads, and that may be wrong."""
        nodes = [_read_in(place), *self._parts_of(_read_in(place))]
        nodes += [node for node in _indices_of(place) if type(self._own.get(node, [None])[0]) in (int, slice)]
        bounds = {n for part in nodes if isinstance(part, ast.Slice) for n in ast.walk(part)}
        for node in nodes:
            if node in bounds and type(self._own.get(node, [None])[0]) is int:
                continue  # most bounds are right
            if isinstance(node, ast.Call) and self._is_students(node.func):
                if node not in self._fine:
                    yield node.func
            elif node in self._own and self._is_variable(node):
                if self._may_be_wrong(node) or self._loops_that_fill(node):
                    yield node

    def _parts_of(self, node):
        """The parts of a node, but those in the index of a part of an array that a right answer takes too."""
        for part in ast.iter_child_nodes(node):
            yield part
            if not self._is_right_part(part):
                yield from self._parts_of(part)

    def _is_right_part(self, node):
        return isinstance(node, ast.Subscript) and node in self._own and self.sides.has_values(node, self.number)

    def _is_variable(self, node):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            is_module = isinstance(self.sides.family.space.get(node.value.id), ModuleType)
            return not is_module and node.attr not in ("T", "shape")
        return isinstance(node, ast.Name)

    def _may_be_wrong(self, node):
        values = self._own[node]
        parts = [part for value in values for part in (value if type(value) in (list, tuple) else [value])]
        if all(type(part) is int and part in self._sizes for part in parts) and not self._is_computed_in_loop(node):
            return False
        if all(isinstance(value, str) for value in values):
            return False
        if all(isinstance(value, slice) for value in values):
            return (self._is_computed_in_loop(node) or bool(self._loops_over(node))) and not self._takes_rightly(node)
        if all(map(is_data, values)):
            if type(values[0]) is int:  # any is right somewhere
                return node not in self._fine or self._is_computed_in_loop(node)
            behind_loops = len(values) == 1 and not self.sides.loops_around(node)
            known = self.sides.known_variables(self.number, behind_loops)
            is_known = node in self._in_pieces or all(
                known.has(flat(value, False)) or _is_padded(value, known) for value in values
            )
            is_sum = behind_loops and self._is_computed_in_loop(node)
            return not (is_known or (not is_sum and node in self._fine and self._is_used_rightly(node)))
        return any(self._is_own(value) for value in values)

    def _is_used_rightly(self, node):
        """Whether another statement computes a right value from a variable."""
        name, scope = ast.unparse(node), self.sides.scope
        for s in scope:
            if isinstance(s, ast.Assign | ast.AugAssign) and s.value in self._fine and scope[s] is scope.get(node):
                read = [n for n in ast.walk(s.value) if isinstance(n, ast.Name | ast.Attribute)]
                if node not in read and any(ast.unparse(n) == name for n in read):
                    return True
        return False

    def _takes_rightly(self, node):
        """Whether a part that a variable takes of an array is one that a right answer takes too."""
        scope, name = self.sides.scope, ast.unparse(node)
        parts = (s for s in scope if isinstance(s, ast.Subscript) and scope[s] is scope.get(node))
        return any(name in map(ast.unparse, ast.walk(s.slice)) and self._is_right_part(s) for s in parts)

    def _is_own(self, value):
        """Whether a value is a function that the student made."""
        code = getattr(value, "__code__", None)
        return isinstance(value, partial) or (code is not None and code.co_filename == self.sides.family.file)

    def _stores(self, node):
        """The statements that put values into the array of a node."""
        return self.sides.stores.get((self.sides.scope.get(node), ast.unparse(node)), ())

    def _is_computed_in_loop(self, node):
        return any(self.sides.loops_around(s) for s in self._stores(node) if not isinstance(s.value, ast.Constant))

    def _loops_that_fill(self, node):
        """The loops that should fill an array of one number, and did not."""
        if not is_filled(self._own.get(node, ())):
            return []
        around = {loop: None for store in self._stores(node) for loop in self.sides.loops_around(store)}
        return [loop for loop in around if loop not in self.sides.loops_around(node)]

    def _is_students(self, function):
        """Whether a called function is in the student's file, or a method of a class there."""
        if isinstance(function, ast.Name):
            return function.id in self.sides.functions
        if not isinstance(function, ast.Attribute):  # as in `FUNCTIONS[name](x)`
            return True
        value = self._own.get(function.value, [None])[0]
        return {type(value).__name__, function.attr} <= self.sides.functions

    def _is_from_outside(self, node):
        """Whether no statement or loop around a node gives its variable a value, nor the call of the answer."""
        is_given = isinstance(node, ast.Name) and node.id in self._given and node.id not in self.sides.functions
        return not (self._writes(node) or self._loops_over(node) or is_given)

    def _writes(self, node):
        """The statements that give a variable the value that is read at a node; a loop, for its variable."""
        writes = self.sides.writes(node, self.number, False)
        filling = {loop: None for write in writes for loop in self.sides.loops_around(write)}
        filling |= dict.fromkeys(self._loops_that_fill(node))
        around = self.sides.loops_around(node)
        filling = [loop for loop in filling if loop not in around and _is_counted(loop)]
        over = [] if writes or filling else self._loops_over(node)[-1:]
        return [*writes, *(loop for loop in (*filling, *over) if not self._is_plain(loop.iter))]

    def _loops_over(self, node):
        """The loops around a node whose variable it reads."""
        loops = (loop for loop in self.sides.loops_around(node) if isinstance(loop, ast.For))
        return [loop for loop in loops if ast.unparse(node) in map(ast.unparse, ast.walk(loop.target))]

    def _is_plain(self, iterated):
        """Whether a loop goes over all of something right, as in `range(T)`."""
        parts = [n for n in ast.walk(iterated) if n is not iterated and isinstance(n, ast.expr)]
        sizes = {n.slice for n in parts if isinstance(n, ast.Subscript) and getattr(n.value, "attr", "") == "shape"}
        parts = [n for n in parts if n not in sizes and getattr(n, "value", None) != 0]
        is_own = isinstance(iterated, ast.Call) and self._is_students(iterated.func)
        return not (is_own or any(isinstance(n, ast.Constant | ast.BinOp) for n in parts)) and all(
            n in self._fine or not self._may_be_wrong(n) for n in parts if n in self._own
        )


def _is_padded(value, known):
    """Whether an array is a known one with zeros around."""
    is_float = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return is_float and not value.all() and value.any() and known.has(value[value != 0])


def _read_in(place):
    """The expression that a place reads: of a loop what it goes over, of an assignment its value."""
    field = {ast.For: "iter", ast.While: "test"}.get(type(place), "value")
    return getattr(place, field) if isinstance(place, ast.stmt) else place


def _indices_of(place):
    """The nodes of the indices of what an assignment writes."""
    targets = getattr(place, "targets", [getattr(place, "target", None)])
    return [n for target in targets if isinstance(target, ast.Subscript) for n in ast.walk(target.slice)]


def _is_counted(loop):
    return isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and name_of(loop.iter.func) == "range"
