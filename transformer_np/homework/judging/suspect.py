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
from .values import Known, alike, flat, is_array, is_data
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
    made = _made(sides, names) if names and sides.trials.compatible(names) else []
    proven = _proven(sides) if not made or len(names) == 1 else []
    both = [place for place in made if place[-1].lineno in {part.lineno for other in proven for part in other}]
    chosen = both or made[: len(names)] or proven
    found = {}
    for places in chosen:
        if not any(map(sides.is_shared, places)):
            suspect = Suspect.of(sides, places)
            found.setdefault(suspect.lines, suspect)
    return list(found.values())[:MOST]


# --- values that are put in place of others ---------------------------------------------------------------------------


def _proven(sides):
    """The places, as lists of statements and expressions, for the results that are wrong."""
    search, places = _Replaced(sides), {}
    for i in range(len(sides.trials.exercise.results)):
        failed = [n for n in search.failed if sides.found[n].wrong is None or i in sides.found[n].wrong]
        place = search.place(i, failed) if failed else None
        if place:
            places.setdefault(place[-1].lineno, place)
    return list(places.values())


class _Replaced:
    def __init__(self, sides):
        self.sides, self.found = sides, sides.found
        self.left = max(20, WORK // sides.work)
        failed = sorted(sides.failed, key=lambda n: n not in sides.one_of_each_label)
        self.failed = failed[: max(3, WORK // (sides.work * (1 + len(sides.right))))]

    def place(self, i, failed):
        """The first place where other values make a result right that is wrong in some cases, or None."""
        first, sides = failed[0], self.sides
        own, right = sides.values(first)
        shape = self.found[first].outcome == "wrong shape"  # or else arrays are compared whatever their shape is
        fine, expected = sides.fine_in(first, shape), self.found[first].expected[i]
        candidates = []
        for node, values in own.items():
            if node not in fine and len(values) < MOST_VALUES and all(map(is_data, values)):
                if not is_new(node, values):
                    inputs = inputs_of(sides.written_at(node, first, fine, shape), own)
                    candidates.append((not all(n in fine for n in inputs), node))
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
    mistaken, places = Traced(sides.trials, family, MOST_VALUES), []
    cases = [n for n in sides.failed if n in sides.one_of_each_label][:3]
    for find in (partial(_with_values, shape=True), partial(_with_values, shape=False), _with_numbers):
        for number in cases if not places else ():
            mistaken.results(number)
            sides.trials.left -= sides.work
            places += find(sides, number, mistaken.of)
    own = {place[-1].lineno: place for place in sorted(places, key=lambda place: -place[-1].lineno)}
    return [own[line] for line in sorted(own)]


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
    """[the places of those of some nodes that compute from right values only]"""
    own, places = sides.values(number)[0], {}
    for node in nodes:
        place = node
        if isinstance(node, ast.Name | ast.Attribute):
            place = sides.written_at(node, number, fine, shape)
        inputs = inputs_of(place, own)
        if not isinstance(place, ast.Name | ast.Attribute) and all(n in fine for n in inputs):
            places.setdefault(place, [place])
    inside = {part for place in places for part in ast.walk(place) if part is not place}
    return [place for node, place in places.items() if node not in inside or not _is_statement_of(node, places)]


def _is_statement_of(node, places):
    return any(isinstance(other, ast.stmt) and node in ast.walk(other) for other in places if other is not node)


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
