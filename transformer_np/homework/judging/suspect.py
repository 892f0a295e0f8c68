"""The line whose value is the first that the right answer does not have.

A wrong answer and the right one run side by side in the same case. A value of the answer that occurs nowhere in the
right one is suspicious; if the answer becomes right in every failing case with a value of the right one in its place,
all that follows is right, so that the mistake is there or in what it is computed from. No edit of the code is needed.
"""

import ast
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from .attempt import arrays_of, work_of
from .compare import close
from .describe.draw import listed
from .family import Family
from .syntax import name_of
from .traced import Traced, kept, same
from .values import Known, alike, flat, is_data, is_filled, is_number, key

MOST_VALUES = 24  # of an expression in a loop
MOST_SUSPECTS, MOST_WRITES = 2, 2
RIGHT, ALL = "those that are right", "all"  # of the other results, which have to be right too
MOST_TRIALS, WORK = 160, 500_000  # of all, in units of `work_of`


@dataclass(frozen=True)
class Suspect:
    """node: the expression or statement to look at; shown: its line, with a mark below
    results: the numbers of the results that are right with another value of it, or of a variable
    writes: the statements that write this variable
    """

    node: ast.AST
    results: list
    shown: str
    writes: tuple

    @property
    def text(self):
        lines = sorted({node.lineno for node in self.writes or [self.node]})
        return f"Look at line{'s' * (len(lines) > 1)} {listed(map(str, lines))}:\n{self.shown}"


def find_suspects(trials, family, found, numbers):
    """At most two Suspects for the results that are wrong in some cases of these numbers."""
    failed = [n for n in numbers if found[n].wrong != [] and not found[n].case.raises]
    if not failed:
        return []
    search, suspects = _Search(trials, family, found, failed), {}
    for i in range(len(trials.exercise.results)) if search.own.answer is not None and search.right else ():
        if any(found[n].wrong is None or i in found[n].wrong for n in failed) and (place := search.suspect(i)):
            node, writes = search.whole_test(place[0]), place[1]
            writes = () if len(writes) > MOST_WRITES else writes
            shown = "\n".join(map(family.marked, writes or [node]))
            suspects.setdefault(node, Suspect(node, [], shown, writes)).results.append(i)
    of_line = {}  # two for one line would ask it for two values
    for suspect in sorted(suspects.values(), key=lambda suspect: -len(suspect.results)):
        of_line.setdefault(suspect.node.lineno, suspect)
    return list(of_line.values())[:MOST_SUSPECTS]


class _Search:
    def __init__(self, trials, family, found, failed):
        self.trials, self.found = trials, found
        failed = sorted(failed, key=lambda n: sum(array.size for array in arrays_of(trials.cases[n])))
        self.own = Traced(trials, family, MOST_VALUES)
        right = dict.fromkeys((trials.exercise.variant(), trials.exercise.reference))
        families = [Family(answer, of_student=False) for answer in right]
        self.right = [Traced(trials, family, MOST_VALUES) for family in families if family.trees]
        self.stores, self.scope = _stores(family)
        self.returned = {n for node in self.scope if isinstance(node, ast.Return) for n in ast.walk(node)}
        self._of_case, self._when, self._known, self._of_all = {}, {}, {}, None
        self.work = work_of(lambda: self.own.results(failed[0]), trials.cases[failed[0]])
        self.left = min(MOST_TRIALS, max(20, WORK // self.work))
        first = {found[n].case.label: n for n in reversed(failed)}.values()  # one of each label, the small ones first
        failed = sorted(failed, key=lambda n: n not in first)
        self.failed = failed[: max(3, WORK // (self.work * (1 + len(self.right))))]

    def whole_test(self, node):
        """The whole condition of an `if` or a loop, if a node is a part of it that is true or false."""
        for around in self.scope:
            test = getattr(around, "test", None)
            if test is not None and node is not test and any(n is node for n in _conditions(test)):
                return test
        return node

    def _values(self, number):
        """{node: values} of the answer in a case, and the different values of the right answers, each with the set of
        its nodes there."""
        if number not in self._of_case:
            self.own.results(number)
            own, right, self._when[number] = self.own.of, {}, self.own.when
            self.trials.left -= self.work * (1 + len(self.right))
            of_right = [(i, [value]) for i, value in enumerate(arrays_of(self.trials.cases[number]))]
            for traced in self.right:
                traced.results(number)
                of_right += [item for item in traced.of.items() if all(map(is_data, item[1]))]
            for node, values in of_right:
                right.setdefault(key(values), (values, set()))[1].add(node)
            self._of_case[number] = own, list(right.values())
        return self._of_case[number]

    def suspect(self, i):
        """(The node to look at for a wrong result, the statements that write what is read there), or None."""
        if self._of_all:
            return self._of_all
        failed = [n for n in self.failed if self.found[n].wrong is None or i in self.found[n].wrong]
        own, right = self._values(failed[0])
        own = {node: values for node, values in own.items() if all(map(is_data, values))}
        shape = self.found[failed[0]].outcome == "wrong shape"  # or else arrays are compared whatever their shape is
        known = self._known_in(failed[0], shape)
        fine = {node for node, values in own.items() if all(known.has(flat(value, shape)) for value in values)}
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
            place = node if node in elsewhere else self._written_at(node, failed[0], fine, shape)
            late = not all(n in fine and not self._is_unfilled(n, own) for n in _inputs(place, own))
            candidates.append((late, node, place))
        for late, node, place in sorted(candidates, key=itemgetter(0)):  # the first wrong values come first
            for others, origins in alike(own[node], right, shape):
                if self.left <= 0:
                    return None
                is_result = close(np.asarray(others[-1]), expected)
                if is_result and (late or self._right_inputs(place, failed, shape) <= 0.5):
                    continue
                if self._is_right_with(node, others, i, failed[0]) and self._is_proven(
                    node, i, failed[1:], shape, origins=origins
                ):
                    if node in elsewhere:
                        return node, ()
                    place, *others = self._origin(node, i, failed, fine, shape)
                    if place is node and node in self.returned and isinstance(node, ast.Name):
                        break  # which says no more than that the result is wrong
                    if self._is_passed_on(place, failed[0], shape):
                        return None
                    return place, *others
        return None

    def _origin(self, node, i, failed, fine, shape):
        """The first place from which a right value comes to a node, as `suspect` returns it."""
        own, place = self._values(failed[0])[0], node
        if isinstance(node, ast.Name | ast.Attribute):
            place = self._written_at(node, failed[0], fine, shape)
            value = place if place is node else _value(place, node)
            is_proven = place is not node and self._is_proven(value, i, failed, shape, RIGHT)
            if not is_proven and self._writes(node, failed[0], shape) == [place] and self._is_read_elsewhere(node):
                return node, ()  # another place needs the value as it is
            if value in fine or not is_proven:
                writes = self._all_writes(node, failed, shape)
                if len(writes) > 1 and self._is_right_start(writes[0], writes[1:], node, fine):
                    writes = writes[1:]
                place = writes[0] if 0 < len(writes) <= MOST_WRITES else node
                return place, writes
        passed = []
        while True:
            inside = place.value if isinstance(place, ast.stmt) else place
            known = [n for n in _inputs(inside, own) if self._writes(n, failed[0], shape)]
            wrong = next((n for n in known if self._is_proven(n, i, failed, shape, RIGHT)), None)
            if wrong is None or place in passed:
                return place, ()
            passed.append(place)
            before = self._written_at(wrong, failed[0], fine, shape)
            value = _value(before, wrong) if before is not wrong else None
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
        value = _value(write, node)
        if not _is_whole(write, node) or not (value in fine or isinstance(value, ast.Constant)):
            return False
        around = self._loops_around(write)
        reads = (n for n in self.scope if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Load))
        used = [*others, *(n for n in reads if ast.unparse(n) == ast.unparse(node))]
        return not around or (
            all(around[-1] in self._loops_around(n) for n in used)
            and all(self._loops_around(other) != around for other in others)
        )

    def _is_read_elsewhere(self, node):
        """Whether a variable's node is not returned, and the variable is read in another place too."""
        reads = [n for n in self.scope if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
        return node not in self.returned and sum(ast.unparse(n) == ast.unparse(node) for n in reads) > 1

    def _loops_around(self, node):
        """The loops that a node is in, from the outside to the inside."""
        return [
            loop for loop in self.scope
            if isinstance(loop, ast.For | ast.While) and loop is not node and node in ast.walk(loop)
        ]  # fmt: skip

    def _is_passed_on(self, place, number, shape):
        """Whether a statement only copies a variable that is wrong from the first time on."""
        variable = getattr(place, "value", None)
        values = self._values(number)[0].get(variable, ())
        if not (isinstance(place, ast.stmt) and isinstance(variable, ast.Name) and values and is_data(values[0])):
            return False
        return not self._known_in(number, shape).has(flat(values[0], shape))

    def _is_unfilled(self, node, own):
        return is_filled(own[node]) and (self.scope.get(node), ast.unparse(node)) in self.stores

    def _right_inputs(self, place, failed, shape):
        """The share of the failing cases in which a place computes its value from right ones: it does not only return
        what is wrong before."""
        numbers, right_inputs = {self.found[n].case.label: n for n in failed}.values(), 0
        for number in numbers:
            (own, _), known = self._values(number), self._known_in(number, shape)
            nodes = _inputs(place, own)
            step = self._first_wrong(place, number, shape)
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
            own, right = self._values(number)
            for values, nodes in alike(own.get(node, ()), right, shape, origins):
                if (self.left > 0 or not others) and self._is_right_with(node, values, i, number, others):
                    origins = origins & nodes or nodes
                    break
            else:
                return False
        return True

    def _all_writes(self, node, failed, shape):
        """The statements that write what a variable's node reads, in any of the cases, without new arrays."""
        writes = [self._writes(node, number, shape) for number in failed]
        every = sorted(set().union(*writes), key=lambda s: s.lineno) if all(writes) else []
        return tuple(s for s in every if not _is_empty(_value(s, node))) or tuple(every[-1:])

    def _writes(self, node, number, shape):
        """The statements that write what a variable's node reads where it is first wrong: the last one that writes all
        of it, and those after it."""
        (own, _), when, written = self._values(number), self._when[number], []
        now = when[node][self._first_wrong(node, number, shape)] if node in own else 0
        for s in self.stores.get((self.scope.get(node), ast.unparse(node)), ()):
            times = [time for time in when.get(s.value, ()) if time < now]
            written += [(times[-1], s)] if times and not _is_vain(s, node, own) else []
        written = [s for _, s in sorted(written, key=itemgetter(0))]
        whole = [n for n, s in enumerate(written) if _is_whole(s, node)]
        return written[whole[-1] :] if whole else written

    def _first_wrong(self, node, number, shape):
        """The number of the evaluation in which a node first has a value that is not right."""
        (own, _), known = self._values(number), self._known_in(number, shape)
        values = own.get(node.value if isinstance(node, ast.stmt) else node, ())
        return next((n for n, v in enumerate(values) if not (is_data(v) and known.has(flat(v, shape)))), 0)

    def _known_in(self, number, shape):
        if (number, shape) not in self._known:
            right = self._values(number)[1]
            self._known[number, shape] = Known(flat(value, shape) for values, _ in right for value in values)
        return self._known[number, shape]

    def returned_as(self, traced, i):
        """The expressions that a function returns as a result."""
        tree = next(iter(traced.family.trees.values()))
        for node in ast.walk(tree) if isinstance(tree, ast.FunctionDef) else ():
            if isinstance(node, ast.Return) and node.value:
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                is_each = len(values) == len(self.trials.exercise.results)
                yield from values[i : i + 1] if is_each else values[len(values) > 1 :]

    def _written_at(self, node, number, fine, shape):
        """The statement that computes what a variable's node reads: the first that writes a value that is not fine, or
        else the last; the node itself if it is no variable."""
        own, _ = self._values(number)
        before = {s: _value(s, node) for s in self._writes(node, number, shape)}
        before = {s: value for s, value in before.items() if value in own}
        wrong = [s for s, value in before.items() if value not in fine and not _is_new(value, own[value])]
        return (wrong or [*before][-1:] or [node])[0]

    def _is_right_with(self, node, values, i, number, others=None):
        self.left -= 1
        self.trials.left -= self.work
        results, finding = self.own.results(number, node, map(kept, values)), self.found[number]
        wanted = {i}
        if others == ALL:
            wanted = range(len(finding.expected))
        elif others == RIGHT and finding.wrong is not None:
            wanted |= {*range(len(finding.expected))} - {*finding.wrong}
        return results is not None and all(close(results[j], finding.expected[j]) for j in wanted)


def _conditions(test):
    """The parts of a condition that `and`, `or` and `not` join."""
    parts = getattr(test, "values", []) if isinstance(test, ast.BoolOp) else []
    parts = [test.operand] if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else parts
    return [test, *(inner for part in parts for inner in _conditions(part))]


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
        if isinstance(node, ast.Assign | ast.AugAssign) or _is_call(node):
            for name in dict.fromkeys(map(_whole, _targets(node))):
                stores.setdefault((scope[node], name), []).append(node)
    return stores, scope


def _is_call(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)


def _targets(statement):
    """What a statement may write: a call as in np.add.at(x, …) or x.fill(0) its arguments and their object."""
    if isinstance(statement, ast.Expr):
        call = statement.value
        return [*call.args, *(k.value for k in call.keywords), getattr(call.func, "value", call.func)]
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    return target.elts if isinstance(target, ast.Tuple) else [target]


def _value(statement, variable):
    """The expression that a statement writes into a variable."""
    value, targets = statement.value, _targets(statement)
    if isinstance(value, ast.Tuple) and len(value.elts) == len(targets) > 1:
        value = next(v for v, t in zip(value.elts, targets, strict=True) if _whole(t) == ast.unparse(variable))
    return value


def _is_whole(statement, variable):
    """Whether a statement writes all of a variable, not only a part such as `x[:, t]`."""
    return isinstance(statement, ast.Assign) and ast.unparse(variable) in map(ast.unparse, _targets(statement))


def _is_vain(statement, variable, own):
    """Whether a call changes nothing in a variable, such as print(x)."""
    given = [n for n in ast.walk(statement) if n in own and ast.unparse(n) == ast.unparse(variable)]
    return isinstance(statement, ast.Expr) and any(same(own[n][-1:], own[variable][:1]) for n in given)


def _whole(target):
    """The name of the variable that a target is a part of."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return ast.unparse(target)


def _is_variable(node, values):
    return (
        isinstance(node, ast.Name | ast.Attribute)
        and getattr(node, "attr", "") != "T"
        and all(is_number(v) if not isinstance(v, list | tuple | dict) else v for v in values)
    )


def _is_new(node, values):
    """Whether arrays are new ones, with one number or with anything in them."""
    return is_filled(values) or _is_empty(node)


def _is_empty(node):
    return isinstance(node, ast.Call) and name_of(node.func).removesuffix("_like") in ("empty", "zeros", "ones")
