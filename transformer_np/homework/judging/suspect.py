"""The line whose value is the first that the right answer does not have.

A wrong answer and the right one run side by side in the same case. A value of the answer that occurs nowhere in the
right one is suspicious; if the answer becomes right in every failing case with a value of the right one in its place,
all that follows is right, so that the mistake is there or in what it is computed from. No edit of the code is needed.
"""

import ast
from bisect import bisect_left
from dataclasses import dataclass
from operator import itemgetter
from textwrap import fill

import numpy as np

from .attempt import calls_in
from .compare import close
from .describe.draw import listed
from .family import Family
from .ignored import arrays_of
from .judge import NUMBERS_OF_A_CALL, WIDTH
from .syntax import name_of
from .traced import Traced, kept, same

MOST_VALUES = 24  # of an expression in a loop
MOST_SUSPECTS = 2
MOST_TRIALS, WORK = 160, 150_000  # calls that the interpreter counts, in all of them


@dataclass(frozen=True)
class Suspect:
    """node: the expression or statement to look at; shown: its line, with a mark below
    results: the numbers of the results that are right with another value of it, or of the variable that it writes
    reads: where this variable is read; returned: whether it is a result
    since: where it goes wrong at the earliest: the node itself if all that it uses is right, or None
    """

    node: ast.AST
    results: list
    shown: str
    reads: list
    returned: bool
    since: ast.AST | None

    def text(self, names):
        line, lines = self.node.lineno, sorted({str(read.lineno) for read in self.reads})
        with_value = "with the right value there"
        if self.returned:  # then it says no more than that the result is wrong
            place = f"Look at line {line}, which writes the returned `{ast.unparse(self.reads[0])}`"
        elif self.reads:
            read = f"lines {listed(lines)} read" if len(lines) > 1 else f"line {lines[0]} reads"
            place = f"Look at `{ast.unparse(self.reads[0])}`, which line {line} writes and {read}"
            with_value = "with the right value of it"
        elif self.since is None:
            place = f"Look at line {line} and at what it uses"
        elif self.since.lineno < line:
            place, with_value = f"Look at lines {self.since.lineno} to {line}", f"with the right value in line {line}"
        else:
            place = f"It goes wrong in line {line}"
        end = "" if self.returned else f": {with_value}, {listed(names[i] for i in self.results)} would be right"
        return f"{fill(f'{place}{end}.', WIDTH, break_on_hyphens=False)}\n{self.shown}"


def find_suspects(trials, family, found, numbers):
    """At most two Suspects for the results that are wrong in some cases of these numbers."""
    failed = [n for n in numbers if found[n].wrong != [] and not found[n].case.raises]
    if not failed:
        return []
    search, suspects = _Search(trials, family, found, failed), {}
    for i in range(len(trials.exercise.results)) if search.own.answer is not None and search.right else ():
        if any(found[n].wrong is None or i in found[n].wrong for n in failed) and (place := search.suspect(i)):
            node, read, since = place
            returned = read in search.returned_as(search.own, i)
            new = Suspect(node, [], family.marked(node), [], returned, since)
            suspect = suspects.setdefault((node, read and ast.unparse(read)), new)
            suspect.results.append(i)
            suspect.reads.extend([read] if read else [])
    of_line = {}  # two for one line would ask it for two values
    for suspect in sorted(suspects.values(), key=lambda suspect: -len(suspect.results)):
        of_line.setdefault(suspect.node.lineno, suspect)
    return list(of_line.values())[:MOST_SUSPECTS]


class _Search:
    def __init__(self, trials, family, found, failed):
        self.trials, self.found = trials, found
        self.failed = sorted(failed, key=lambda n: sum(array.size for array in arrays_of(trials.cases[n])))
        self.own = Traced(trials, family, MOST_VALUES)
        right = dict.fromkeys((trials.exercise.variant(), trials.exercise.reference))
        families = [Family(answer, of_student=False) for answer in right]
        self.right = [Traced(trials, family, MOST_VALUES) for family in families if family.trees]
        self.stores, self.scope = _stores(family)
        self.returned = {n for node in self.scope if isinstance(node, ast.Return) for n in ast.walk(node)}
        self._known = {}
        work = calls_in(lambda: self.own.results(self.failed[0]))
        work += sum(array.size for array in arrays_of(trials.cases[self.failed[0]])) // NUMBERS_OF_A_CALL
        self.left = min(MOST_TRIALS, max(20, WORK // work))

    def _values(self, number):
        """{node: values} of the answer in a case, and the different values of the right answers, each with the set of
        its nodes there."""
        if number not in self._known:
            self.own.results(number)
            own, right = dict(self.own.of), {}
            of_right = [(i, [value]) for i, value in enumerate(arrays_of(self.trials.cases[number]))]
            for traced in self.right:
                traced.results(number)
                of_right += [item for item in traced.of.items() if all(map(_is_data, item[1]))]
            for node, values in of_right:
                right.setdefault(_key(values), (values, set()))[1].add(node)
            self._known[number] = own, list(right.values())
        return self._known[number]

    def suspect(self, i):
        """(The node to look at for a wrong result, where the variable that it writes is read or None, and where it goes
        wrong at the earliest or None), or None."""
        failed = [n for n in self.failed if self.found[n].wrong is None or i in self.found[n].wrong]
        own, right = self._values(failed[0])
        own = {node: values for node, values in own.items() if all(map(_is_data, values))}
        shape = self.found[failed[0]].outcome == "wrong shape"  # or else arrays are compared whatever their shape is
        known = _known(right, shape)
        fine = {node for node, values in own.items() if all(known.has(_flat(value, shape)) for value in values)}
        expected = self.found[failed[0]].expected[i]
        known = [traced.of[n] for traced in self.right for n in self.returned_as(traced, i) if n in traced.of]
        returned = {
            n for n in fine.intersection(self.returned_as(self.own, i)) if not any(same(own[n], v) for v in known)
        }
        fine -= returned
        others = [[result] for result in self.found[failed[0]].expected if result is not expected]
        elsewhere = {n for n in returned if any(same(own[n], other) for other in others)}  # of another result
        candidates = []
        for node, values in own.items():
            if node in fine or len(values) == MOST_VALUES or _is_new(node, values):
                continue
            place = node if node in elsewhere else self._written_at(node, own, fine)
            late = not all(n in fine and not self._is_unfilled(n, own) for n in _inputs(place, own))
            candidates.append((late, node, place))
        for late, node, place in sorted(candidates, key=itemgetter(0)):  # the first wrong values come first
            for others, origins in _alike(own[node], right, shape):
                if self.left <= 0:
                    return None
                is_result = close(np.asarray(others[-1]), expected)
                if is_result and (late or self._right_inputs(place, failed, shape) <= 0.5):
                    continue
                if self._is_right_with(node, others, i, failed[0]) and self._is_proven(
                    node, i, failed[1:], shape, origins=origins
                ):
                    place, read, since = node, None, None
                    if node not in elsewhere:
                        place, read, since = self._origin(node, i, failed, fine, shape)
                    if place is node and node in self.returned and isinstance(node, ast.Name) and node not in elsewhere:
                        break  # which says no more than that the result is wrong
                    return place, read, since
        return None

    def _origin(self, node, i, failed, fine, shape):
        """The first place from which a right value comes to a node, as `suspect` returns it."""
        own, _ = self._values(failed[0])
        place = node
        if isinstance(node, ast.Name | ast.Attribute):
            place = self._written_at(node, own, fine)
            if place is node or not self._is_proven(place.value, i, failed, shape, True):
                place = self._last_written(node, failed)
                return place, None if place is node else node, None
            if place.value in fine:
                return place, node, None
        while True:
            inside = place.value if isinstance(place, ast.stmt) else place
            known = [n for n in _inputs(inside, own) if self._before(n)]
            wrong = next((n for n in known if self._is_proven(n, i, failed, shape, True)), None)
            if wrong is None:
                is_first = self.left > 0 and self._right_inputs(inside, failed, shape) == 1
                return place, None, place if is_first else None
            before = self._written_at(wrong, own, fine)
            if before is wrong or before.value in fine or not self._is_proven(before.value, i, failed, shape, True):
                return place, None, before
            place = before

    def _is_unfilled(self, node, own):
        return _is_filled(own[node]) and (self.scope.get(node), ast.unparse(node)) in self.stores

    def _right_inputs(self, place, failed, shape):
        """The share of the failing cases in which a place computes its value from right ones: it does not only return
        what is wrong before."""
        numbers, right_inputs = {self.found[n].case.label: n for n in failed}.values(), 0
        for number in numbers:
            own, right = self._values(number)
            known, nodes = _known(right, shape), _inputs(place, own)
            values = [own[node][0] for node in nodes]  # in a loop those of its first step
            if not any(self._is_unfilled(node, own) for node in nodes):
                right_inputs += all(_is_data(value) and known.has(_flat(value, shape)) for value in values)
        return right_inputs / len(numbers)

    def _is_proven(self, node, i, failed, shape, spared=False, origins=frozenset()):
        """Whether some right values of a node make a result right in all failing cases.

        spared: and the right results stay so; origins: the nodes of a right answer whose values are tried first
        """
        for number in failed:
            own, right = self._values(number)
            for values, nodes in _alike(own.get(node, ()), right, shape, origins):
                if (self.left > 0 or not spared) and self._is_right_with(node, values, i, number, spared):
                    origins = origins & nodes or nodes
                    break
            else:
                return False
        return True

    def _last_written(self, node, failed):
        """The last statement before a variable's node that writes what the node reads, in all cases the same one; the
        node itself if several parts of an array are written."""
        last = set()
        for number in failed:
            own, written = self._values(number)[0], []
            for s in self._before(node):
                if any(part in own for part in ast.walk(s)):  # it ran
                    is_whole = isinstance(s, ast.Assign) and _target(s, node) == ast.unparse(node)
                    written = [s] if is_whole else [*written, s]
            parts = [s for s in written if not _is_new(s.value, own.get(s.value, ()))] or written[-1:]
            last.add(parts[-1] if len({_target(s, node) for s in parts}) == 1 else node)
        return last.pop() if len(last) == 1 else node

    def _before(self, node):
        """The statements before a variable's node that write into it."""
        stores = self.stores.get((self.scope.get(node), ast.unparse(node)), ())
        return sorted((s for s in stores if s.lineno < node.lineno), key=lambda s: s.lineno)

    def returned_as(self, traced, i):
        """The expressions that a function returns as a result."""
        tree = next(iter(traced.family.trees.values()))
        for node in ast.walk(tree) if isinstance(tree, ast.FunctionDef) else ():
            if isinstance(node, ast.Return) and node.value:
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                is_each = len(values) == len(self.trials.exercise.results)
                yield from values[i : i + 1] if is_each else values[len(values) > 1 :]

    def _written_at(self, node, own, fine):
        """The statement before a variable's node that computes its value: the first that writes a value that is not
        fine, or else the last; the node itself if it is no variable."""
        before = [s for s in self._before(node) if s.value in own]
        wrong = [s for s in before if s.value not in fine and not _is_new(s.value, own[s.value])]
        return (wrong or before[-1:] or [node])[0]

    def _is_right_with(self, node, values, i, number, spared=False):
        self.left -= 1
        results, finding = self.own.results(number, node, map(kept, values)), self.found[number]
        wanted = [j for j in range(len(finding.expected)) if j == i or (spared and j not in (finding.wrong or [j]))]
        return results is not None and all(close(results[j], finding.expected[j]) for j in wanted)


class _Known:
    """Values, to be found by their first number and their size."""

    def __init__(self, values):
        self._by_size = {}
        for value in values:
            self._by_size.setdefault(_size(value), []).append((_first(value), value))
        for group in self._by_size.values():
            group.sort(key=_place)

    def has(self, value):
        group, first = self._by_size.get(_size(value), ()), _first(value)
        near = 2e-4 * (1 + abs(first))  # farther apart than two numbers that are called the same
        begin, end = (bisect_left(group, first + far, key=_place) for far in (-near, near))
        return any(same([value], [other]) for _, other in group[begin:end])


_place = itemgetter(0)


def _first(value):
    if not _is_array(value) or value.dtype.kind not in "biuf":
        return float(value) if isinstance(value, int | float) else 0.0
    return float(value.flat[0]) if value.size and np.isfinite(value.flat[0]) else 0.0


def _known(right, shape):
    return _Known(_flat(value, shape) for values, _ in right for value in values)


def _inputs(place, own):
    """The variables that a statement or expression reads."""
    nodes = ast.walk(place.value if isinstance(place, ast.stmt) else place)
    return [node for node in nodes if node is not place and node in own and _is_variable(node, own[node])]


def _stores(family):
    """{(function, name): statements that write into it}, and {node: its function}"""
    stores, scope = {}, {}
    for function in (n for tree in family.trees.values() for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        scope |= dict.fromkeys(ast.walk(function), function)
    for node in scope:
        if isinstance(node, ast.Assign | ast.AugAssign):
            for name in dict.fromkeys(map(_whole, _targets(node))):
                stores.setdefault((scope[node], name), []).append(node)
    return stores, scope


def _targets(statement):
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    return target.elts if isinstance(target, ast.Tuple) else [target]


def _target(statement, variable):
    """What a statement writes of a variable, such as `x` or `x[:, t]`."""
    return next(ast.unparse(part) for part in _targets(statement) if _whole(part) == ast.unparse(variable))


def _whole(target):
    """The name of the variable that a target is a part of."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return ast.unparse(target)


def _key(value):
    if isinstance(value, list | tuple):
        return tuple(map(_key, value))
    return (value.shape, value.tobytes()) if _is_array(value) else str(value)


def _size(value):
    return value.size if _is_array(value) else isinstance(value, int | float)


def _flat(value, shape):
    return np.ravel(value) if _is_array(value) and not shape else value


def _is_variable(node, values):
    return isinstance(node, ast.Name | ast.Attribute) and all(
        _is_number(v) if not isinstance(v, list | tuple | dict) else v for v in values
    )


def _is_new(node, values):
    """Whether arrays are new ones, with one number or with anything in them."""
    return _is_filled(values) or (isinstance(node, ast.Call) and name_of(node.func) in ("empty", "empty_like"))


def _is_filled(values):
    """Whether arrays hold one number only: new ones, which the next lines fill."""
    return bool(values) and all(_is_array(v) and v.size > 1 and np.all(v == v.flat[0]) for v in values)


def _is_array(value):
    return isinstance(value, np.ndarray | np.generic)


def _is_data(value):
    return _is_array(value) or isinstance(value, int | float | str | list | tuple | dict)


def _is_number(value):
    return _is_array(value) or type(value) is float


def _alike(values, right, any_shape, origins=frozenset()):
    """Those of the right values, with their nodes, that can be put in place of others: those of `origins` first, then
    those that have most in common."""
    if not values or not all(map(_is_number, values)):
        return []

    def fitted(value, own):
        """The value in the shape of the answer's, which may have joined axes, or None."""
        if (np.asarray(value).dtype == bool) != (np.asarray(own).dtype == bool):
            return None
        if any_shape or np.shape(value) == np.shape(own):
            return value
        return np.reshape(value, np.shape(own)) if np.size(value) == np.size(own) else None

    def unlikeliness(item):
        return not item[1] & origins, -sum(same([a], [b]) for a, b in zip(values, item[0], strict=True))

    found = [item for item in right if len(item[0]) == len(values) and all(map(_is_number, item[0]))]
    found = [(list(map(fitted, others, values)), nodes) for others, nodes in found]
    return sorted((item for item in found if not any(value is None for value in item[0])), key=unlikeliness)
