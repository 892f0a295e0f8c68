"""The lines in which a wrong value is made, where no edit shows them.

A wrong answer and the right ones run side by side in the same case. A value of the answer that no right one has is
suspicious. It is proven if the answer becomes right in every failing case with a value of a right answer in its place.
Of a named mistake it is enough if the value is one that the right answer with the mistake computes from right values.
"""

import ast
from dataclasses import dataclass
from functools import partial

import numpy as np

from .compare import close
from .family import family_with
from .sides import MOST_VALUES, inputs_of, is_empty, is_new
from .traced import Traced, kept
from .values import Known, alike, flat, is_array, is_data, is_filled
from .words import listed

MOST = 2  # places to look at
WORK = 500_000  # of all values that are put in place of others, in units of `work_of`
_FEW, _SAME = 4, 1e-8  # numbers that nothing has by chance; what two that are the same differ by, relatively


@dataclass(frozen=True)
class Suspect:
    """node: the expression or statement to look at; lines, shown: what the student sees; cause: what occurs there"""

    node: ast.AST
    lines: tuple
    shown: str
    cause: str = ""

    @classmethod
    def of(cls, sides, places, cause=""):
        marked = {part.lineno: part for part in map(sides.to_mark, reversed(places))}  # one mark in each line
        lines = tuple(sorted(marked))
        shown = "\n".join(sides.family.marked(marked[line]) for line in lines)
        return cls(marked[lines[-1]], lines, shown, cause)

    @property
    def text(self):
        if self.cause:
            return f"{self.cause} first occurs in line {self.lines[0]}:\n{self.shown}"
        where = f"Look at line{'s' * (len(self.lines) > 1)} {listed(map(str, self.lines))}"
        where += ", where the first wrong value is made" if len(self.lines) > 1 else ""
        return f"{where}:\n{self.shown}"


def suspects_of(sides, names=()):
    """At most two Suspects: where the values of listed mistakes are made, or else where other values make it right."""
    if not sides.is_possible:
        return []
    made = [[place] for place in _made(sides, names)] if names and sides.trials.compatible(names) else []
    proven = _proven(sides, not names) if not made or len(names) == 1 else []
    both = [place for place in made if place[-1].lineno in {part.lineno for other in proven for part in other}]
    chosen = (both or made)[: len(names)] or proven or _sole(sides)
    found = {}
    for places in chosen:
        first = sides.failed[0]
        is_elsewhere = any(sides.is_shared(part) or sides.calls_own(part, first) for part in places)
        if not is_elsewhere and not (names and sides.is_used_rightly(places[-1], first)):
            suspect = Suspect.of(sides, places)
            found.setdefault(suspect.lines, suspect)
    return list(found.values())[:MOST]


def _sole(sides):
    """[[the only statement of the answer]], if it has one only."""
    body = [s for s in getattr(next(iter(sides.family.trees.values())), "body", ()) if not _is_text(s)]
    return [body] if len(body) == 1 and isinstance(body[0], ast.Return) else []


# --- values that are put in place of others ---------------------------------------------------------------------------


def _proven(sides, with_late):
    """The places, as lists of statements and expressions, for the results that are wrong. with_late: also those that
    read what is wrong"""
    search, places = _Replaced(sides, with_late), {}
    for i in range(len(sides.trials.exercise.results)):
        failed = [n for n in search.failed if sides.found[n].wrong is None or i in sides.found[n].wrong]
        place = search.place(i, failed) if failed else None
        if place:
            places.setdefault(place[-1].lineno, place)
    return list(places.values())


class _Replaced:
    def __init__(self, sides, with_late):
        self.sides, self.found, self.with_late = sides, sides.found, with_late
        self.left = max(20, WORK // sides.work)
        failed = sorted(sides.failed, key=lambda n: n not in sides.one_of_each_label)
        self.failed = failed[: max(3, WORK // (sides.work * (1 + len(sides.right))))]

    def place(self, i, failed):
        """The first place where other values make a result right that is wrong in some cases, or None."""
        first, sides = failed[0], self.sides
        own, right = sides.values(first)
        shape = self.found[first].outcome == "wrong shape"  # or else arrays are compared whatever their shape is
        fine, expected = sides.fine_in(first, shape), self.found[first].expected[i]
        returned = sides.returned_as(sides.own)
        if 1 < len(returned) == len(self.found[first].expected) and returned[i] in fine:
            return [returned[i]]  # which is right for something else
        candidates = []
        for node, values in own.items():
            if node not in fine and len(values) < MOST_VALUES and all(map(is_data, values)):
                if not is_new(node, values):
                    place = sides.written_at(node, first, fine, shape)
                    names = [n for n in ast.walk(place) if isinstance(n, ast.Name) and n in own and n is not place]
                    names = [n for n in names if (sides.scope.get(n), n.id) in sides.stores]
                    counted = [n for n in names if all(type(value) is int for value in own[n])]
                    late = not all(n in fine for n in (*inputs_of(place, own), *counted))
                    candidates += [(late, node)] if self.with_late or not late else []
        for late, node in sorted(candidates, key=lambda candidate: candidate[0]):  # the first wrong values come first
            for values, origins in alike(own[node], right, shape):
                if self.left <= 0:
                    return None
                last = np.asarray(values[-1])
                is_result = last.size == expected.size and close(last.reshape(expected.shape), expected)
                if (late and is_result) or all(isinstance(v, float | np.floating) and v == 0 for v in values):
                    continue  # nothing follows from the result itself; without a factor or a term much is right
                if self._is_right_with(node, values, i, first) and self._is_proven(node, i, failed[1:], shape, origins):
                    return self._origin(node, failed, fine, shape)
        return None

    def _origin(self, node, failed, fine, shape):
        """The statements that compute what a node reads, or the node itself."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return [node]
        sides, writes = self.sides, [self.sides.writes(node, n, shape) for n in failed]
        every = sorted(set().union(*writes), key=lambda s: s.lineno) if all(writes) else []
        every = [s for s in every if not is_empty(getattr(s, "value", s))]
        wrong = [s for s in every if s.value not in fine]
        if 0 < len(wrong or every) <= MOST:
            return wrong or every
        is_returned = any(isinstance(n, ast.Return) and node in ast.walk(n) for n in sides.scope)
        return None if is_returned else [node]

    def _is_proven(self, node, i, failed, shape, origins):
        """Whether some right values of a node make a result right in all of some cases."""
        for number in failed:
            own, right = self.sides.values(number)
            options = alike(own.get(node, ()), right, shape, origins)
            if not any(self.left > 0 and self._is_right_with(node, values, i, number) for values, _ in options):
                return False
        return True

    def _is_right_with(self, node, values, i, number):
        """Whether a result is right with other values of a node, and the others that are right stay so."""
        self.left -= 1
        self.sides.trials.left -= self.sides.work
        results, finding = self.sides.own.results(number, node, map(kept, values)), self.found[number]
        wrong = {*range(len(finding.expected))} if finding.wrong is None else {*finding.wrong}
        wanted = {i, *range(len(finding.expected))} - (wrong - {i})
        return results is not None and all(close(results[j], finding.expected[j]) for j in wanted)


# --- values that named mistakes make ----------------------------------------------------------------------------------


def _made(sides, names):
    """The places that compute, from right values, what the right answer with some mistakes computes and no right one
    does; an answer that computes row by row or in tiles has the same numbers in other arrays."""
    family = family_with(sides.trials.exercise, names)
    if family is None:
        return []
    usual = {ast.unparse(node) for node in _expressions(family_with(sides.trials.exercise, ()))}
    changed = {node for node in _expressions(family) if ast.unparse(node) not in usual}
    mistaken = Traced(sides.trials, family, MOST_VALUES)
    cases = [n for n in sides.failed if n in sides.one_of_each_label][:3]
    for find in (partial(_with_values, shape=True), partial(_with_values, shape=False), _with_numbers):
        found = []
        for number in cases:
            mistaken.results(number)
            sides.trials.left -= sides.work
            known, of = sides.known_in(number, False), mistaken.of
            roots = (n for n in changed if n in of and _is_made_of(n, of, known))
            found.append(find(sides, number, {node: of[node] for node in roots}))
        if any(found):  # in a case of one row a mean over the rows, for example, is no mistake yet
            return min(filter(None, found), key=lambda places: places[0].lineno)
    return []


def _expressions(family):
    nodes = (n for tree in family.trees.values() for n in ast.walk(tree) if isinstance(n, ast.expr))
    return [n for n in nodes if not isinstance(n, ast.Name | ast.Attribute)]


def _is_made_of(node, own, known):
    """Whether all that a node reads is right, or a new array."""
    values = [value for n in inputs_of(node, own) for value in own[n]]
    return all(is_filled([v]) or (is_data(v) and known.has(flat(v, False))) for v in values)


def _with_values(sides, number, of, shape):
    """The places with one of some values that is not right, computed from right ones."""
    own, known = sides.values(number)[0], sides.known_in(number, shape)
    wrong = [v for node, values in of.items() for v in values if _tells(node, v)]
    made = Known(v for v in (flat(v, shape) for v in wrong) if not known.has(v))
    nodes = [n for n, values in own.items() if any(_tells(n, v) and made.has(flat(v, shape)) for v in values)]
    return _first(sides, number, nodes, sides.fine_in(number, shape), shape)


def _with_numbers(sides, number, of):
    """The same of an answer that computes in other pieces: the places with numbers that no right answer has."""
    own, right = sides.values(number)
    usual, others = (
        _numbers(v for values, _ in right for v in values),
        _numbers(v for of_n in of.values() for v in of_n),
    )
    others = others[~_are_in(others, usual)]
    numbers = {node: _numbers(values) for node, values in own.items()}
    nodes = [n for n, some in numbers.items() if len(some) >= _FEW and _are_in(some, others).mean() > 0.9]
    fine = {n for n, some in numbers.items() if len(some) and _are_in(some, usual).all()}
    return _first(sides, number, nodes, fine | sides.fine_in(number, False), False)


def _first(sides, number, nodes, fine, shape):
    """The places of those of some nodes that compute from right values only, in the order of their lines."""
    own, places = sides.values(number)[0], {}
    for node in nodes:
        place = node
        if isinstance(node, ast.Name | ast.Attribute):
            place = sides.written_at(node, number, fine, shape)
        inputs = inputs_of(place, own)
        is_made = not isinstance(place, ast.Name | ast.Attribute) and not is_empty(getattr(place, "value", place))
        if is_made and all(n in fine for n in inputs):
            places[place] = None
    inner = [place for place in places if not ({*ast.walk(place)} - {place}) & {*places}]
    return sorted(inner, key=lambda place: place.lineno)


def _is_text(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _tells(node, value):
    """Whether nothing else has a value by chance."""
    if is_array(value) and value.size > 1:
        return not is_new(node, [value]) and (value.dtype.kind == "f" or value.size > 2 * _FEW)
    return isinstance(value, float) and not value.is_integer()


def _numbers(values):
    """The different numbers of arrays and floats that are no whole ones, in order."""
    parts = [np.ravel(v) for v in values if isinstance(v, float) or (is_array(v) and v.dtype.kind == "f")]
    numbers = np.unique(np.concatenate([np.empty(0), *parts]))
    return numbers[np.isfinite(numbers) & (numbers % 1 != 0)]


def _are_in(numbers, others):
    """Which numbers are among others, in order, but for the last digits."""
    if not len(others):
        return np.zeros(len(numbers), bool)
    at = np.searchsorted(others, numbers)
    nearest = (others[np.clip(at + step, 0, len(others) - 1)] for step in (-1, 0))
    return np.logical_or(*(np.abs(numbers - other) <= _SAME * np.abs(other) for other in nearest))
