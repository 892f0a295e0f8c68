"""A wrong answer and the right ones, run side by side in the same cases with the values of all their expressions."""

import ast
import copy
from functools import cached_property
from operator import itemgetter

from .attempt import arrays_of, work_of
from .family import Family
from .syntax import name_of
from .traced import Traced, same
from .values import Known, flat, is_array, is_data, is_filled, is_number, key

MOST_VALUES = 24  # of an expression in a loop
FEW_PLACES = 2  # to look at


class Sides:
    """failed: the numbers of the cases to look at, the small ones first
    own, right: the Traced answer, and those of the right answers
    stores: {(function, name): statements that write into it}; scope: {node: its function}
    work: of one call of the answer, in units of `work_of`
    """

    def __init__(self, trials, family, found, failed):
        self.trials, self.family, self.found = trials, family, found
        self.failed = sorted(failed, key=lambda n: sum(array.size for array in arrays_of(trials.cases[n])))
        self.own = Traced(trials, family, MOST_VALUES)
        right = dict.fromkeys((trials.exercise.variant(), trials.exercise.reference))
        families = [Family(answer, of_student=False) for answer in right]
        self.right = [Traced(trials, family, MOST_VALUES) for family in families if family.trees]
        self.stores, self.scope = _stores(family)
        self._own, self._when, self._right, self._known, self._fine, self._chains = {}, {}, {}, {}, {}, {}
        first = self.failed[0]
        self.work = work_of(lambda: self.own.results(first), trials.cases[first])

    def with_edit(self):
        """The same with the trees of the answer as they are now."""
        sides = copy.copy(self)
        sides.own = Traced(self.trials, self.family, MOST_VALUES)
        sides._own, sides._when, sides._fine, sides._chains = {}, {}, {}, {}
        return sides

    @cached_property
    def one_of_each_label(self):
        """The numbers of the first failed cases of each label."""
        return {self.found[n].case.label: n for n in reversed(self.failed)}.values()

    @cached_property
    def returned(self):
        """The nodes of all return statements."""
        return {n for node in self.scope if isinstance(node, ast.Return) for n in ast.walk(node)}

    @cached_property
    def functions(self):
        """The names of the student's own functions and classes."""
        return {node.name for node in self.scope if isinstance(node, ast.FunctionDef)} | {*self.family.trees}

    def used_twice(self, node):
        """The name of the student's own function that a node is in, if several places call it, or ""."""
        lambdas = (s for s in self.scope if isinstance(s, ast.Assign) and isinstance(s.value, ast.Lambda))
        short = next((s for s in lambdas if s is node or node in ast.walk(s.value)), None)
        name = ast.unparse(short.targets[0]) if short else getattr(self.scope.get(node), "name", "")
        calls = (n for tree in self.family.trees.values() for n in ast.walk(tree) if isinstance(n, ast.Call))
        is_helper = (short or name in self.functions) and name not in (
            *list(self.family.trees)[:1],
            *self.trials.exercise.parts,
        )
        return name if is_helper and sum(name_of(n.func) == name for n in calls) > 1 else ""

    def is_given(self, node):
        """Whether a node is in a method that the student need not write."""
        answer = next(iter(self.family.trees.values()))
        methods = [method for method in getattr(answer, "body", ()) if isinstance(method, ast.FunctionDef)]
        return any(method.name in self.trials.exercise.given and node in ast.walk(method) for method in methods)

    @property
    def is_possible(self):
        return self.own.answer is not None and bool(self.right)

    def whole_test(self, node):
        """The whole condition of an `if` or a loop, if a node is a part of it that is true or false."""
        for around in self.scope:
            test = getattr(around, "test", None)
            if test is not None and node is not test and any(n is node for n in _conditions(test)):
                return test
        return node

    def to_mark(self, node):
        """What to show of a statement that sets True or False under a condition: the condition, behind the variables
        that the same loop computes for it, for what is wrong is not the constant. Or else [the node itself]."""
        if not (isinstance(node, ast.Assign) and isinstance(getattr(node.value, "value", None), bool)):
            return [node]
        if self.found[self.failed[0]].outcome == "wrong shape":  # which no condition decides
            return [node]
        around = [n for n in self.scope if isinstance(n, ast.If) and any(part is node for part in ast.walk(n))]
        if not around:
            return [node]
        inner = max(around, key=lambda n: n.lineno)
        read = [n for n in ast.walk(inner.test) if isinstance(n, ast.Name)]
        writes = {s for n in read for s in self.stores.get((self.scope[inner], n.id), ()) if is_whole(s, n)}
        loops = self.loops_around(inner)
        return [*(s for s in writes if loops and self.loops_around(s) == loops), inner.test]

    def asked_around(self, node):
        """The names in the conditions under which a node runs."""
        around = (n for n in self.scope if isinstance(n, ast.If) and node is not n.test and node in ast.walk(n))
        return {name.id for n in around for name in ast.walk(n.test) if isinstance(name, ast.Name)}

    def loops_around(self, node):
        """The loops that a node is in, from the outside to the inside."""
        return [
            loop for loop in self.scope
            if isinstance(loop, ast.For | ast.While) and loop is not node and node in ast.walk(loop)
        ]  # fmt: skip

    def returned_as(self, traced, i):
        """The expressions that a function returns as a result."""
        tree = next(iter(traced.family.trees.values()))
        for node in ast.walk(tree) if isinstance(tree, ast.FunctionDef) else ():
            if isinstance(node, ast.Return) and node.value:
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
                is_each = len(values) == len(self.trials.exercise.results)
                yield from values[i : i + 1] if is_each else values[len(values) > 1 :]

    def chain(self, place, number, fine=frozenset()):
        """The place and those before it that compute the wrong values it reads in a case, in the order of their lines;
        () if they are many, or if a wrong value comes from elsewhere: then the place only passes on what is wrong."""
        key = place, number, frozenset(fine)
        if key not in self._chains:
            self._chains[key] = None  # a loop that comes back here adds nothing
            self._chains[key] = self._chain_of(place, number, fine)
        return self._chains[key]

    def _chain_of(self, place, number, fine):
        own = self.values(number)[0]
        calls = {n for n in ast.walk(place) if isinstance(n, ast.Call) and name_of(n.func) in self.functions}
        calls = {n for n in calls if getattr(n.func, "id", "") not in self.family.trees}  # methods, inner functions
        if calls - self.fine_in(number, False):
            return ()  # the mistake may be in that function
        wrong = [n for n in self._read_at(place) if n in own and not self._is_right(n, number, fine)]
        writes = [self.writes(n, number, False) for n in wrong]
        before = [self.chain(s, number, fine) for s in dict.fromkeys(s for some in writes for s in some)]
        before = [parts for parts in before if parts is not None]
        if not all(writes) or not all(before):
            return ()
        places = {part for parts in before for part in parts} | {*self._counted_before(place, number)}
        places |= {place} if not isinstance(place, ast.Name) else set()
        return tuple(sorted(places, key=lambda part: part.lineno)) if len(places) <= FEW_PLACES else ()

    def _read_at(self, place):
        """The variables that a statement or expression reads, and those in the index of what it writes."""
        nodes = [*ast.walk(place.value if isinstance(place, ast.stmt) else place)]
        targets = getattr(place, "targets", [getattr(place, "target", None)])
        nodes += [n for target in targets if isinstance(target, ast.Subscript) for n in ast.walk(target.slice)]
        return [n for n in nodes if isinstance(n, ast.Name)]

    def _counted_before(self, place, number):
        """The statements of a loop that compute whole numbers which a place reads, such as an index."""
        own = self.values(number)[0]
        counted = [n for n in self._read_at(place) if n in own and all(type(value) is int for value in own[n])]
        counted = [n for n in counted if self._is_computed_in_loop(n)]
        return dict.fromkeys(s for n in counted for s in self.writes(n, number, False) if s is not place)

    def _is_right(self, node, number, fine):
        """Whether a variable's values are those of a right answer, or none that could be wrong; a number that a loop
        computes may be right elsewhere only."""
        values = self.values(number)[0][node]
        if all(map(is_number, values)):
            behind_loops = len(values) == 1 and not self.loops_around(node)
            known = self.known_variables(number, behind_loops)  # what is right in the middle of a line is not yet here
            is_known = node in fine or all(known.has(flat(v, False)) or _is_padded(v, known) for v in values)
            if is_known or (behind_loops and self._is_computed_in_loop(node)):
                return is_known  # a sum is right at the end of its loop only
            return node in self.fine_in(number, False) and self._is_used_rightly(node, number)
        if not all(type(value) is int for value in values) or not self._is_computed_in_loop(node):
            return True
        writes = self.writes(node, number, False)
        return len(writes) == 1 and not any(map(self._is_computed_in_loop, self._read_at(writes[0])))

    def _is_used_rightly(self, node, number):
        """Whether another statement computes a right value from a variable."""
        right = (s for s in self.scope if isinstance(s, ast.Assign | ast.AugAssign))
        right = (s for s in right if s.value in self.fine_in(number, False) and node not in ast.walk(s))
        names = (n.id for s in right for n in ast.walk(s.value) if isinstance(n, ast.Name))
        return node.id in names

    def _is_computed_in_loop(self, node):
        stores = self.stores.get((self.scope.get(node), ast.unparse(node)), ())
        return any(self.loops_around(s) for s in stores if not isinstance(s.value, ast.Constant))

    def values(self, number):
        """{node: values} of the answer in a case, and the different values of the right answers, each with the set of
        its nodes there."""
        if number not in self._own:
            self.own.results(number)
            self._own[number], self._when[number] = self.own.of, self.own.when
            self.trials.left -= self.work
        return self._own[number], self._values_of_right(number)

    def _values_of_right(self, number):
        if number not in self._right:
            self.trials.left -= self.work * len(self.right)
            right, of_right = {}, [(i, [value]) for i, value in enumerate(arrays_of(self.trials.cases[number]))]
            for traced in self.right:
                traced.results(number)
                of_right += [item for item in traced.of.items() if all(map(is_data, item[1]))]
            for node, values in of_right:
                right.setdefault(key(values), (values, set()))[1].add(node)
            self._right[number] = list(right.values())
        return self._right[number]

    def when(self, number):
        """{node: the times of its values}"""
        self.values(number)
        return self._when[number]

    def fine_in(self, number, shape):
        """The nodes of the answer with values of the right ones only."""
        if (number, shape) not in self._fine:
            own, known = self.values(number)[0], self.known_in(number, shape)
            fine = {n for n, values in own.items() if all(is_data(v) and known.has(flat(v, shape)) for v in values)}
            self._fine[number, shape] = fine
        return self._fine[number, shape]

    def known_in(self, number, shape):
        """The values of the right answers in a case; shape: whether an array's shape counts, not only its numbers"""
        if (number, shape) not in self._known:
            right = self._values_of_right(number)
            self._known[number, shape] = Known(flat(value, shape) for values, _ in right for value in values)
        return self._known[number, shape]

    def known_variables(self, number, behind_loops):
        """The values that variables and results of the right answers have in a case. behind_loops: outside of their
        loops only, for what a loop adds up is right at the end only"""
        at = number, "variables", behind_loops
        if at not in self._known:
            trees = [tree for traced in self.right for tree in traced.family.trees.values()]
            nodes = [n for tree in trees for n in ast.walk(tree)]
            inside = {n for loop in nodes if isinstance(loop, ast.For | ast.While) for n in ast.walk(loop)}
            whole = {part for n in nodes if isinstance(n, ast.stmt) for part in _parts(getattr(n, "value", None))}
            whole |= {n for n in nodes if isinstance(n, ast.Name | ast.Attribute | ast.Subscript)}
            whole -= inside if behind_loops else set()
            whole |= {*range(len(arrays_of(self.trials.cases[number])))}  # the arguments
            right = (values for values, nodes in self._values_of_right(number) if nodes & whole)
            self._known[at] = Known(flat(value, False) for values in right for value in values)
        return self._known[at]

    def first_wrong(self, node, number, shape):
        """The number of the evaluation in which a node first has a value that is not right."""
        (own, _), known = self.values(number), self.known_in(number, shape)
        values = own.get(node.value if isinstance(node, ast.stmt) else node, ())
        return next((n for n, v in enumerate(values) if not (is_data(v) and known.has(flat(v, shape)))), 0)

    def writes(self, node, number, shape):
        """The statements that write what a variable's node reads where it is first wrong: the last one that writes all
        of it, and those after it."""
        (own, _), when, written = self.values(number), self._when[number], []
        now = when[node][self.first_wrong(node, number, shape)] if node in own else 0
        for s in self.stores.get((self.scope.get(node), ast.unparse(node)), ()):
            times = [time for time in when.get(s.value, ()) if time < now]
            written += [(times[-1], s)] if times and not _is_vain(s, node, own) else []
        written = [s for _, s in sorted(written, key=itemgetter(0))]
        whole = [n for n, s in enumerate(written) if is_whole(s, node)]
        return written[whole[-1] :] if whole else written

    def all_writes(self, node, failed, shape):
        """The statements that write what a variable's node reads, in any of the cases, without new arrays."""
        writes = [self.writes(node, number, shape) for number in failed]
        every = sorted(set().union(*writes), key=lambda s: s.lineno) if all(writes) else []
        return tuple(s for s in every if not is_empty(value_for(s, node)))

    def written_at(self, node, number, fine, shape):
        """The statement that computes what a variable's node reads: the first that writes a value that is not fine, or
        else the last; the node itself if it is no variable."""
        own, _ = self.values(number)
        before = {s: value_for(s, node) for s in self.writes(node, number, shape)}
        before = {s: v for s, v in before.items() if v in own and all(x is None or is_data(x) for x in own[v])}
        wrong = [s for s, value in before.items() if value not in fine and not is_new(value, own[value])]
        return (wrong or [*before][-1:] or [node])[0]


def _is_padded(value, known):
    """Whether an array is a known one with zeros around."""
    is_float = is_array(value) and value.ndim > 0 and value.dtype.kind == "f"
    return is_float and not value.all() and value.any() and known.has(value[value != 0])


def _parts(value):
    """An expression, and those of a tuple."""
    return {value, *getattr(value, "elts", ())}


def _conditions(test):
    """The parts of a condition that `and`, `or` and `not` join."""
    parts = getattr(test, "values", []) if isinstance(test, ast.BoolOp) else []
    parts = [test.operand] if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else parts
    return [test, *(inner for part in parts for inner in _conditions(part))]


def inputs_of(place, own):
    """The variables that a statement or expression reads."""
    nodes = ast.walk(place.value if isinstance(place, ast.stmt) else place)
    return [node for node in nodes if node is not place and node in own and _is_variable(node, own[node])]


def _is_variable(node, values):
    return (
        isinstance(node, ast.Name | ast.Attribute)
        and getattr(node, "attr", "") != "T"
        and all(is_number(v) if not isinstance(v, list | tuple | dict) else v for v in values)
    )


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


def value_for(statement, variable):
    """The expression that a statement writes into a variable."""
    value, targets = statement.value, _targets(statement)
    if isinstance(value, ast.Tuple) and len(value.elts) == len(targets) > 1:
        pairs = zip(value.elts, targets, strict=True)
        value = next((v for v, t in pairs if _whole(t) == ast.unparse(variable)), value)
    return value


def is_whole(statement, variable):
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


def is_new(node, values):
    """Whether arrays are new ones, with one number or with anything in them."""
    return is_filled(values) or is_empty(node)


def is_empty(node):
    if isinstance(node, ast.Tuple):
        return all(map(is_empty, node.elts))
    return isinstance(node, ast.Call) and name_of(node.func).removesuffix("_like") in ("empty", "zeros", "ones")
