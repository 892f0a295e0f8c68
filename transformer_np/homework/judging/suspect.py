"""The line whose value is the first that the right answer does not have.

A wrong answer and the right one run side by side in the same case. A value of the answer that occurs nowhere in the
right one is suspicious; if the answer becomes right in every failing case with a value of the right one in its place,
all that follows is right, so that the mistake is there or in what it is computed from. No edit of the code is needed.
"""

import ast
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np

from .compare import close
from .sides import MOST_VALUES, inputs_of, is_empty, is_new, is_whole, value_for
from .traced import kept, same
from .values import alike, flat, is_data, is_filled
from .words import listed

MOST_SUSPECTS, MOST_WRITES = 2, 2
RIGHT, ALL = "those that are right", "all"  # of the other results, which have to be right too
MOST_TRIALS, WORK = 160, 500_000  # of all, in units of `work_of`


@dataclass(frozen=True)
class Suspect:
    """node: the expression or statement to look at; others: those before it that its value comes from
    lines, shown: what the student sees, with a mark below each
    results: the numbers of the results that are right with another value of it, or of a variable
    """

    node: ast.AST
    others: tuple
    lines: list
    shown: str
    results: list = field(default_factory=list)

    @classmethod
    def of(cls, sides, node, others=()):
        parts = [part for place in (others or [node]) for part in sides.to_mark(place)]
        of_line = {part.lineno: part for part in reversed(parts)}  # one mark in each
        marked = [of_line[line] for line in sorted(of_line)]
        shown, lines = "\n".join(map(sides.family.marked, marked)), sorted({part.lineno for part in marked})
        *_, last = sides.to_mark(node)
        return cls(last, tuple(marked), lines, shown)

    @property
    def text(self):
        where = f"Look at line{'s' * (len(self.lines) > 1)} {listed(map(str, self.lines))}"
        where += ", where the first wrong value is made" if len(self.lines) > 1 else ""
        return f"{where}:\n{self.shown}"


def find_suspects(sides):
    """At most two Suspects for the results that are wrong."""
    search, found, suspects = _Sought(sides), sides.found, {}
    for i in range(len(sides.trials.exercise.results)) if sides.is_possible else ():
        failed = [n for n in search.failed if found[n].wrong is None or i in found[n].wrong]
        for node, writes in search.places(i, failed) if failed else ():
            if is_empty(getattr(node, "value", node)):
                continue  # a new array, whose numbers come later
            writes = () if len(writes) > MOST_WRITES else writes
            suspect = Suspect.of(sides, node, writes)
            suspects.setdefault(suspect.node, suspect).results.append(i)
    of_line = {}  # two for one line would ask it for two values
    for suspect in sorted(suspects.values(), key=lambda suspect: -len(suspect.results)):
        of_line.setdefault(suspect.node.lineno, suspect)
    return list(of_line.values())[:MOST_SUSPECTS]


class _Sought:
    def __init__(self, sides):
        self.sides, self.trials, self.found, self.own = sides, sides.trials, sides.found, sides.own
        self._of_all = None
        self.left = min(MOST_TRIALS, max(20, WORK // sides.work))
        failed = sorted(sides.failed, key=lambda n: n not in sides.one_of_each_label)
        self.failed = failed[: max(3, WORK // (sides.work * (1 + len(sides.right))))]

    def places(self, i, failed):
        """The places to look at for a result that is wrong in some cases, as `suspect` returns them: one of each case
        if a variable is written in other statements in each."""
        place = self.suspect(i, failed)
        if place and 1 < len(place[1]) <= MOST_WRITES:
            own = {n: self.sides.values(n)[0] for n in failed}
            parts = [[n for n in failed if write.value in own[n]] for write in place[1]]
            if all(parts) and sum(map(len, parts)) == len({n for part in parts for n in part}):
                of_parts = [self.suspect(i, part) for part in parts]
                return [(self.sides.whole_test(of[0]), of[1]) for of in of_parts if of]
        return [(self.sides.whole_test(place[0]), place[1])] if place else []

    def suspect(self, i, failed):
        """(The node to look at for a result that is wrong in some cases, the statements that write what is read there),
        or None."""
        if self._of_all:
            return self._of_all
        own, right = self.sides.values(failed[0])
        own = {node: values for node, values in own.items() if all(map(is_data, values))}
        shape = self.found[failed[0]].outcome == "wrong shape"  # or else arrays are compared whatever their shape is
        fine = self.sides.fine_in(failed[0], shape)
        expected = self.found[failed[0]].expected[i]
        known = [
            traced.of[n] for traced in self.sides.right for n in self.sides.returned_as(traced, i) if n in traced.of
        ]
        returned = {
            n for n in fine.intersection(self.sides.returned_as(self.own, i)) if not any(same(own[n], v) for v in known)
        }
        fine = fine - returned  # which stay as they are for the next result
        others = [[result] for result in self.found[failed[0]].expected if result is not expected]
        elsewhere = {n for n in returned if any(same(own[n], other) for other in others)}  # of another result
        candidates = []
        for node, values in own.items():
            if node in fine or len(values) == MOST_VALUES or is_new(node, values):
                continue
            place = node if node in elsewhere else self.sides.written_at(node, failed[0], fine, shape)
            late = not all(n in fine and not self._is_unfilled(n, own) for n in inputs_of(place, own))
            candidates.append((late, node, place))
        for late, node, place in sorted(candidates, key=itemgetter(0)):  # the first wrong values come first
            for others, origins in alike(own[node], right, shape):
                if self.left <= 0:
                    return None
                last = np.asarray(others[-1])  # a view makes several results of one
                results = self.found[failed[0]].expected if self.trials.exercise.view else [expected]
                is_result = any(last.size == e.size and close(last.reshape(e.shape), e) for e in results)
                if is_result and (late or self._right_inputs(place, failed, shape) <= 0.5):
                    continue
                if all(isinstance(other, float | np.floating) and other == 0 for other in others):
                    continue  # without a factor or a term much is right
                if self._is_right_with(node, others, i, failed[0], RIGHT) and self._is_proven(
                    node, i, failed[1:], shape, origins=origins
                ):
                    if node in elsewhere:
                        return node, ()
                    place, *others = self._origin(node, i, failed, fine, shape)
                    if place is node and node in self.sides.returned and isinstance(node, ast.Name):
                        break  # which says no more than that the result is wrong
                    if self._is_passed_on(place, failed[0], shape):
                        return None
                    return place, *others
        return None

    def _origin(self, node, i, failed, fine, shape):
        """The first place from which a right value comes to a node, as `suspect` returns it."""
        own, place = self.sides.values(failed[0])[0], node
        if isinstance(node, ast.Name | ast.Attribute):
            place = self.sides.written_at(node, failed[0], fine, shape)
            value = place if place is node else value_for(place, node)
            is_proven = place is not node and self._is_proven(value, i, failed, shape, RIGHT)
            if not is_proven and self.sides.writes(node, failed[0], shape) == [place] and self._is_read_elsewhere(node):
                return node, ()  # another place needs the value as it is
            if value in fine or not is_proven:
                writes = self.sides.all_writes(node, failed, shape)
                if len(writes) > 1 and self._is_right_start(writes[0], writes[1:], node, fine):
                    writes = writes[1:]
                place = writes[0] if 0 < len(writes) <= MOST_WRITES else node
                return place, writes
        passed = []
        while True:
            inside = place.value if isinstance(place, ast.stmt) else place
            known = [n for n in inputs_of(inside, own) if self.sides.writes(n, failed[0], shape)]
            wrong = next((n for n in known if self._is_proven(n, i, failed, shape, RIGHT)), None)
            if wrong is None or place in passed:
                return place, ()
            passed.append(place)
            before = self.sides.written_at(wrong, failed[0], fine, shape)
            value = value_for(before, wrong) if before is not wrong else None
            if value is None or not self._is_proven(value, i, failed, shape, RIGHT):
                return place, ()
            if value in fine:
                # right for something else, or where it goes wrong if no later value makes all results right
                is_later = self._is_proven(inside, i, self.failed, shape, ALL)
                if not is_later and self._is_proven(value, i, self.failed, shape, ALL):
                    self._of_all = before, ()
                return self._of_all or (place, ())
            place = before

    def _is_right_start(self, write, others, node, fine):
        """Whether a statement gives a variable a right value that others change later: it is in no loop, or they are in
        an inner one, and the variable is not read outside of the loop, so that each round has a value of its own."""
        value = value_for(write, node)
        if not is_whole(write, node) or not (value in fine or isinstance(value, ast.Constant)):
            return False
        around = self.sides.loops_around(write)
        reads = (n for n in self.sides.scope if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load))
        used = [*others, *(n for n in reads if ast.unparse(n) == ast.unparse(node))]
        return not around or (
            all(around[-1] in self.sides.loops_around(n) for n in used)
            and all(self.sides.loops_around(other) != around for other in others)
        )

    def _is_read_elsewhere(self, node):
        """Whether a variable's node is not returned, and the variable is read in another place too."""
        reads = [n for n in self.sides.scope if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        return node not in self.sides.returned and sum(ast.unparse(n) == ast.unparse(node) for n in reads) > 1

    def _is_passed_on(self, place, number, shape):
        """Whether a statement only copies a variable that is wrong from the first time on."""
        variable = getattr(place, "value", None)
        values = self.sides.values(number)[0].get(variable, ())
        if not (isinstance(place, ast.stmt) and isinstance(variable, ast.Name) and values and is_data(values[0])):
            return False
        return not self.sides.known_in(number, shape).has(flat(values[0], shape))

    def _is_unfilled(self, node, own):
        return is_filled(own[node]) and (self.sides.scope.get(node), ast.unparse(node)) in self.sides.stores

    def _right_inputs(self, place, failed, shape):
        """The share of the failing cases in which a place computes its value from right ones: it does not only return
        what is wrong before."""
        numbers, right_inputs = {self.found[n].case.label: n for n in failed}.values(), 0
        for number in numbers:
            (own, _), known = self.sides.values(number), self.sides.known_in(number, shape)
            nodes = inputs_of(place, own)
            step = self.sides.first_wrong(place, number, shape)
            values = [own[node][min(step, len(own[node]) - 1)] for node in nodes]
            if not any(self._is_unfilled(node, own) for node in nodes):
                right_inputs += all(is_data(value) and known.has(flat(value, shape)) for value in values)
        return right_inputs / len(numbers)

    def _is_proven(self, node, i, failed, shape, others=None, origins=frozenset()):
        """Whether some right values of a node make a result right in all failing cases.

        others: the other results that must be right with them, RIGHT or ALL, or None
        origins: the nodes of a right answer whose values are tried first
        """
        for number in failed:
            own, right = self.sides.values(number)
            for values, nodes in alike(own.get(node, ()), right, shape, origins):
                if (self.left > 0 or not others) and self._is_right_with(node, values, i, number, others):
                    origins = origins & nodes or nodes
                    break
            else:
                return False
        return True

    def _is_right_with(self, node, values, i, number, others=None):
        self.left -= 1
        self.trials.left -= self.sides.work
        results, finding = self.own.results(number, node, map(kept, values)), self.found[number]
        wanted = {i}
        if others == ALL:
            wanted = range(len(finding.expected))
        elif others == RIGHT and finding.wrong is not None:
            wanted |= {*range(len(finding.expected))} - {*finding.wrong}
        return results is not None and all(close(results[j], finding.expected[j]) for j in wanted)
