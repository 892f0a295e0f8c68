"""Values of right answers in place of an answer's own: where one makes it right, the wrong value is made."""

import ast
from operator import itemgetter

import numpy as np

from .compare import close
from .sides import MOST_VALUES, inputs_of, is_empty, is_new, is_whole, value_for
from .traced import alike, is_data, kept, key

MOST = 2  # places to look at


class Replaced:
    """The search for the places of an answer; with_late: whether what reads wrong values is a place too"""

    def __init__(self, sides, with_late):
        self.sides, self.found, self.with_late, self._results = sides, sides.found, with_late, {}
        self.proven = {}  # {wrong result: the lines of its place}
        self.left = sides.trials.most(sides.work)  # values that are put in place of others
        failed = sorted(sides.failed, key=lambda n: n not in sides.one_of_each_label)
        self.failed = failed[: sides.trials.most(sides.work * (1 + len(sides.right)))]

    def places(self):
        """The places, as lists of statements and expressions, for the results that are wrong."""
        places = {}
        for i in range(len(self.sides.trials.exercise.results)):
            wrong = [n for n in self.failed if i in (self.found[n].wrong or ())]
            failed = wrong or [n for n in self.failed if self.found[n].wrong is None]  # which may crash elsewhere
            place = self.place(i, failed) if failed else None
            if place:
                places.setdefault(place[-1].lineno, place)
            if wrong:
                self.proven[i] = {part.lineno for part in place or ()}
        return list(places.values())

    def maker(self, places):
        """[the statement that makes a count, or a right value which only something else needs, and which the first of
        some places reads], if every result is right with another value of it; or None."""
        place, sides = places[0], self.sides
        first = next((n for n in self.failed if getattr(place, "value", place) in sides.values(n)), None)
        if first is None or len(places) > 1:
            return None
        own = sides.values(first)
        names = (n for n in ast.walk(place) if isinstance(n, ast.Name) and len(own.get(n, ())) == 1)
        counts = [n for n in names if type(own[n][0]) is int]
        for node in [place] if isinstance(place, ast.Name) else [*counts, *inputs_of(place, own)]:
            writes = sides.writes(node, first)
            value = value_for(writes[0], node) if len(writes) == 1 and is_whole(writes[0], node) else None
            is_asked = value and (node in counts or self._is_for_others(value, node, place, first))
            cases = [n for n in self.failed if value in sides.values(n)] if is_asked else ()
            if cases and self._is_proven(value, None, cases, False, frozenset()):
                return [writes[0] if value is writes[0].value else value]
        return None

    def _is_for_others(self, value, node, place, number):
        """Whether the value of a variable, which a node of a place reads, is one that only other code needs."""
        sides, own, fine = self.sides, self.sides.values(number), self.sides.fine_in(number, False)
        if value not in fine or is_new(value, own[value]) or any(value in sides.values(n) for n in sides.right_case):
            return False
        readers = [v for v in sides.read_from(ast.unparse(node)) if v in own]
        if not fine.isdisjoint({*readers} - {place}):  # others need it as it is
            return False
        readers = readers[:1] if place in readers and place in sides.written_into(node) else readers
        # what is missing may be missing where the only one reads it
        return len(readers) != 1 or place is node or getattr(place, "args", ()) == [node]

    def place(self, i, failed):
        """The first place where other values make a result right that is wrong in some cases, or None."""
        first, sides = failed[0], self.sides
        own, right = sides.values(first), sides.right_values(first)
        shape = self.found[first].outcome == "wrong shape"  # or else arrays are compared whatever their shape is
        fine, expected = sides.fine_in(first, shape), self.found[first].expected[i]
        returned = sides.returned
        is_each = 1 < len(returned) == len(self.found[first].expected)
        if is_each and self.found[first].results and returned[i] in fine and not is_new(returned[i], own[returned[i]]):
            return [returned[i]]  # which is right for something else
        candidates = []
        for node, values in own.items():
            if node not in fine and len(values) < MOST_VALUES and all(map(is_data, values)):
                if not is_new(node, values):
                    place = sides.written_at(node, first, fine)
                    names = [n for n in ast.walk(place) if isinstance(n, ast.Name) and n in own and n is not place]
                    names = [n for n in names if (sides.scope.get(n), n.id) in sides.stores]
                    counted = [n for n in names if all(type(value) is int for value in own[n])]
                    read = [n for n in inputs_of(place, own) if type(own[n][0]) is not dict]  # of the student's design
                    late = not fine.issuperset([*read, *counted])
                    is_number = type(values[0]) is int  # which many right ones are alike to
                    candidates += [(late, is_number, node)] if self.with_late or not late else []
        for late, _, node in sorted(candidates, key=itemgetter(0, 1)):  # the first wrong values come first
            for values, origins in alike(own[node], right, shape):
                if self.left <= 0:
                    return None
                is_zero = all(isinstance(v, float | np.floating) and v == 0 for v in values)
                if is_zero or (late and _is_result(values[-1], expected)):
                    continue  # nothing follows from the result itself; without a factor or a term much is right
                if self._is_right_with(node, values, i, first) and self._is_proven(node, i, failed[1:], shape, origins):
                    return self._origin(node, failed, fine)
        return None

    def _origin(self, node, failed, fine):
        """The statements that compute what a node reads, or the node itself."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return [node]
        if call := self.sides.call_that_gives(node):
            return [call]
        sides, writes = self.sides, [self.sides.writes(node, n) for n in failed]
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
            own, right = self.sides.values(number), self.sides.right_values(number)
            options = alike(own.get(node, ()), right, shape, origins)
            if not any(self.left > 0 and self._is_right_with(node, values, i, number) for values, _ in options):
                return False
        return True

    def _is_right_with(self, node, values, i, number):
        """Whether a result, or every one if it is None, is right with other values of a node, and the others that are
        right stay so."""
        run, finding = (number, node, key(values)), self.found[number]
        if run not in self._results:  # as for another result
            self.left -= 1
            self.sides.trials.left -= self.sides.work
            self._results[run] = self.sides.own.results(number, node, map(kept, values))
        results = self._results[run]
        wrong = {*range(len(finding.expected))} if finding.wrong is None else {*finding.wrong}
        wanted = {i, *range(len(finding.expected))} - (wrong - {i}) if i is not None else range(len(finding.expected))
        return results is not None and all(close(results[j], finding.expected[j]) for j in wanted)


def _is_result(value, expected):
    """Whether a value has the numbers of a result, in whatever shape."""
    value = np.asarray(value)
    is_as_large = value.dtype.kind in "biuf" and value.size == expected.size
    return is_as_large and close(value.reshape(expected.shape), expected)
