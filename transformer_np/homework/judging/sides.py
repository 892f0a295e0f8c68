"""A wrong answer and the right ones, run side by side in the same cases with the values of all their expressions."""

import ast
from functools import cache, cached_property
from operator import itemgetter

import numpy as np

from .attempt import arrays_of, work_of
from .family import family_of, family_with
from .syntax import is_name, name_of
from .traced import Known, Traced, flat, is_array, is_data, is_filled, is_number, joined, key

MOST_VALUES = 24  # of an expression in a loop


class Sides:
    """failed: the numbers of the cases to look at, the small ones first
    own: the Traced answer; right: the Families of the right answers
    stores: {(function, name): statements that write into it}; scope: {node: its function}
    work: of one call of the answer, in units of `work_of`
    """

    def __init__(self, trials, family, found, failed):
        self.trials, self.family, self.found = trials, family, found
        self.failed = sorted(failed, key=lambda n: sum(array.size for array in arrays_of(trials.cases[n])))
        self.own = Traced(trials, family, MOST_VALUES)
        of_sheet = family_of(trials.exercise.variant())
        self.right = [f for f in dict.fromkeys((of_sheet, family_of(trials.exercise.reference))) if f.trees]
        self._traced = {}  # right answers, and those with mistakes, by their Families
        self.stores, self.scope = _stores(family)
        for name in ("run", "_of", "right_values", "known_in", "fine_in", "_arguments", "_at_the_end"):
            setattr(self, name, cache(getattr(self, name)))  # once for each case
        first = self.failed[0]
        self.work = work_of(lambda: self.own.results(first), trials.cases[first])

    @cached_property
    def one_of_each_label(self):
        """The numbers of the first failed cases of each label."""
        return {self.found[n].case.label: n for n in reversed(self.failed)}.values()

    @cached_property
    def right_case(self):
        """[the number of the first case that is right in all draws, and no narrow one], or []"""
        wrong = {finding.case.label for finding in self.found if not finding.right}
        others = ((n, f.case) for n, f in enumerate(self.found) if f.case.label not in wrong)
        return [n for n, case in others if not (case.is_narrow or case.raises)][:1]

    @cached_property
    def only_wrong(self):
        """The lines that run in wrong cases and in no right one."""
        right = {f.case.label: n for n, f in enumerate(self.found) if f.right and not f.case.raises}.values()
        wrong, right = ({n.lineno for c in cases for n in self.values(c)} for cases in (self.one_of_each_label, right))
        return wrong - right if right else set()

    def is_given(self, node):
        """Whether a node is in a method that the student need not write."""
        methods = [method for method in getattr(self.family.tree, "body", ()) if isinstance(method, ast.FunctionDef)]
        return any(method.name in self.trials.exercise.given and node in ast.walk(method) for method in methods)

    def whole_condition(self, node):
        """Of a part of a condition, the whole condition."""
        tests = (n.test for n in self.scope if isinstance(n, ast.If | ast.While | ast.IfExp))
        return next((test for test in tests if node in ast.walk(test) and _is_truth(node, test)), node)

    def asked_around(self, node):
        """The names in the conditions under which a node runs."""
        around = (n for n in self.scope if isinstance(n, ast.If) and node is not n.test and node in ast.walk(n))
        return {name.id for n in around for name in ast.walk(n.test) if isinstance(name, ast.Name)}

    def loops_over(self, variable):
        """The loops that give a variable its values."""
        loops, name = (n for n in self.scope if isinstance(n, ast.For | ast.comprehension)), ast.unparse(variable)
        return [n for n in loops if any(is_name(part, name) for part in ast.walk(n.target))]

    def is_shared(self, node):
        """Whether a node is in a helper or a lambda of the student's that several places call, itself not counted."""
        lambdas = (s for s in self.scope if isinstance(s, ast.Assign) and isinstance(s.value, ast.Lambda))
        short = next((s for s in lambdas if node in ast.walk(s)), None)
        name = ast.unparse(short.targets[0]) if short else getattr(self.scope.get(node), "name", "")
        is_helper = name not in (*list(self.family.trees)[:1], *self.trials.exercise.parts)
        calls = (call for call in self._calls if name_of(call.func) == name)
        return is_helper and sum(self.scope.get(call) is not self.scope.get(node) for call in calls) > 1

    def calls_helper(self, node):
        """Whether a node is a call of a function of the student's."""
        return isinstance(node, ast.Call) and name_of(node.func) in self._functions

    def call_that_gives(self, variable):
        """The only call of the helper of which a variable is a parameter, or None."""
        function = self.scope.get(variable)
        name, given = ast.unparse(variable), ast.walk(function.args) if function else ()
        is_given = any(isinstance(part, ast.arg) and part.arg == name for part in given)
        calls = [call for call in self._calls if is_given and name_of(call.func) == function.name]
        return calls[0] if len(calls) == 1 and (function, name) not in self.stores else None

    def calls_own(self, node, number):
        """Whether a node calls a method, an inner function or a generator of the student's, or hands on any function of
        theirs, with a wrong value: the mistake may be in there."""
        generators = {function.name for n, function in self.scope.items() if isinstance(n, ast.Yield | ast.YieldFrom)}
        functions = self._functions
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
        inside = [n for n in calls if name_of(n.func) in functions - {*self.family.trees} | generators]
        inside += [n for n in calls if any(isinstance(a, ast.Name) and a.id in functions for a in n.args)]
        inside += [n for n in calls if self._is_given_right(n, number)]
        fine = self.fine_in(number, False)
        right = {name_of(call.func) for call in self._calls if call in fine}  # which give something right elsewhere
        return any(n not in fine and name_of(n.func) not in right for n in inside)

    def _is_given_right(self, call, number):
        """Whether a helper of the student's gets all that it takes, and nothing wrong: the mistake is in there."""
        own, fine = self.values(number), self.fine_in(number, False)
        helper = self.family.trees.get(name_of(call.func))
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        takes = [n for n in ast.walk(helper.args) if isinstance(n, ast.arg)] if hasattr(helper, "args") else ()
        return 0 < len(takes) == len(given) and all(n in fine or (n in own and own[n][0] is None) for n in given)

    def written_into(self, variable):
        """The values of the assignments to a variable."""
        stores = self.stores.get(self._variable(variable), ())
        return [s.value for s in stores if isinstance(s, ast.Assign)]

    def is_overwritten(self, variable):
        """Whether a parameter gets another value."""
        function = self.scope.get(variable)
        given = [n.arg for n in ast.walk(function.args) if isinstance(n, ast.arg)] if function else []
        writes = self.stores.get(self._variable(variable), ())
        return ast.unparse(variable) in given and any(is_whole(s, variable) for s in writes)

    def read_from(self, name):
        """The values of statements, and those that are returned, which read a variable, not only its shape."""
        values = [s.value for s in self.scope if isinstance(s, ast.Assign | ast.AugAssign)]
        values += self.returned
        shapes = {n.value for n in self.scope if isinstance(n, ast.Attribute) and n.attr in ("shape", "ndim", "dtype")}
        names = {n for n in self.scope if isinstance(n, ast.Name) and n.id == name} - shapes
        return [value for value in values if names & {*ast.walk(value)}]

    @cached_property
    def _functions(self):
        return {n.name for n in self.scope if isinstance(n, ast.FunctionDef)}

    @cached_property
    def _calls(self):
        return [n for tree in self.family.trees.values() for n in ast.walk(tree) if isinstance(n, ast.Call)]

    @cached_property
    def returned(self):
        """The expressions that the answer returns, but its inner functions do not."""
        tree = self.family.tree
        returns = [n for n in ast.walk(tree) if isinstance(n, ast.Return) and n.value]
        values = [n.value for n in returns if isinstance(tree, ast.ClassDef) or self.scope[n] is tree]
        return [part for value in values for part in getattr(value, "elts", [value])]

    def run(self, number):
        """{node: values} of the answer in a case, and {node: their times}"""
        self.own.results(number)
        self.trials.left -= self.work
        return self.own.of, self.own.when

    def values(self, number):
        """{node: values} of the answer in a case"""
        return self.run(number)[0]

    def right_with(self, names, number):
        """{node: values} of the right answer with some mistakes in a case, or None if it cannot be made"""
        family = family_with(self.trials.exercise, names)
        return family and self._of(family, number)

    def _of(self, family, number):
        if family not in self._traced:
            self._traced[family] = Traced(self.trials, family, MOST_VALUES)
        traced = self._traced[family]
        traced.results(number)
        self.trials.left -= self.work
        return traced.of

    def right_values(self, number):
        """The different values of the right answers in a case, each with the set of its nodes there."""
        right, of_right = {}, [(i, [value]) for i, value in enumerate(arrays_of(self.trials.cases[number]))]
        for family in self.right:
            of_right += [item for item in self._of(family, number).items() if all(map(is_data, item[1]))]
        for node, values in of_right:
            right.setdefault(key(values), (values, set()))[1].add(node)
        return list(right.values())

    def known_in(self, number, shape):
        """The values of the right answers in a case, the shapes of its arrays, and the axes in front and at their end,
        which *b is in `*b, T, D = x.shape`; shape: whether an array's shape counts, not only its numbers"""
        shapes = [a.shape for a in arrays_of(self.trials.cases[number])]
        axes = [part for sizes in shapes for n in range(len(sizes)) for part in (sizes[:n], sizes[n:])]
        return Known([*axes, *(flat(value, shape) for values, _ in self.right_values(number) for value in values)])

    def fine_in(self, number, shape):
        """The nodes of the answer with values of the right ones only."""
        own, known = self.values(number), self.known_in(number, shape)
        fine = {n for n, values in own.items() if all(self.is_right(v, number, shape) for v in values)}
        whole = {n: joined(values) for n, values in own.items() if n not in fine and len(values) < MOST_VALUES}
        fine |= {n for n, value in whole.items() if value is not None and known.has(flat(value, shape))}
        fine |= {n for n in own if np.isscalar(own[n][0]) and self._is_read_of(n, fine)}
        fine |= {n for n, values in own.items() if all(map(self._arguments(number).has, map(_nonzero, values)))}
        # i − j is as right as j − i
        signed = {n: values for n, values in own.items() if all(is_array(v) and v.dtype.kind in "if" for v in values)}
        fine |= {n for n, values in signed.items() if all(known.has(-flat(v, shape)) for v in values)}
        return fine - {n for n in fine & self._sums if not self._at_the_end(number).has(flat(own[n][0], False))}

    def _is_read_of(self, node, fine):
        """Whether a variable is read whose only assignments are of some values: one number of many says nothing."""
        writes = self.stores.get(self._variable(node), ()) if isinstance(node, ast.Name) else ()
        return bool(writes) and all(is_whole(s, node) and value_for(s, node) in fine for s in writes)

    def _arguments(self, number):
        """The arrays that a case gives, without their zeros: an answer may put zeros in front of them."""
        return Known(_nonzero(a) for a in arrays_of(self.trials.cases[number]) if a.dtype.kind == "f")

    def _at_the_end(self, number):
        """The values that right answers have outside of loops: what a loop adds up is right at its end only."""
        trees = [tree for family in self.right for tree in family.trees.values()]
        loops = [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.For | ast.While)]
        inside = {n for loop in loops for n in ast.walk(loop)}
        right = (values for values, nodes in self.right_values(number) if nodes - inside)
        return Known(flat(value, False) for values in right for value in values)

    @cached_property
    def _sums(self):
        """The nodes behind a loop that read a variable which the loop changes."""
        loops = [n for n in self.scope if isinstance(n, ast.For | ast.While)]
        inside = {n for loop in loops for n in ast.walk(loop)}
        written = {name for (_, name), some in self.stores.items() if any(s in inside for s in some)}
        reads = (n for n in self.scope if isinstance(n, ast.Name) and n.id in written and n not in inside)
        return {n for n in reads if isinstance(n.ctx, ast.Load)}

    def writes(self, node, number):
        """The statements that write what a variable's node reads where it is first wrong: the last one that writes all
        of it, and those after it; of these only what comes after the variable was last read and right."""
        when, variable, now = self.run(number)[1], self._variable(node), self._wrong_from(node, number)
        times = {s: [time for time in when.get(s.value, ()) if time < now] for s in self.stores.get(variable, ())}
        written = sorted(((some[-1], s) for s, some in times.items() if some), key=itemgetter(0))
        rightly = [(time, n) for time, n in self._right_reads(variable, number) if time < now]
        later = [(t, s) for t, s in written if not any(time > t and n not in ast.walk(s) for time, n in rightly)]
        written = [s for _, s in later or written]
        whole = [n for n, s in enumerate(written) if is_whole(s, node)]
        return written[whole[-1] :] if whole else written

    def is_before(self, place, other, number):
        """Whether a place has a value before another one has a wrong one; it does not write what is returned, which is
        right anyhow with right values."""
        when, (one, two) = self.run(number)[1], (getattr(part, "value", part) for part in (place, other))
        is_result = any(place in self.stores.get(self._variable(node), ()) for node in self.returned)
        return not is_result and one in when and when[one][0] < self._wrong_from(two, number)

    def _wrong_from(self, node, number):
        """The time of a node's first wrong value, or of its first one if all are right; 0 if it has none."""
        own, when = self.run(number)
        times = when.get(node, ())
        wrong = (t for t, value in zip(times, own.get(node, ()), strict=True) if not self.is_right(value, number))
        return next(wrong, next(iter(times), 0))

    def is_right(self, value, number, shape=False):
        """Whether a right answer has a value in a case; shape: as in `known_in`"""
        return is_data(value) and self.known_in(number, shape).has(flat(value, shape))

    def _variable(self, node):
        """What a variable's nodes have in common, (its function, its name)."""
        return self.scope.get(node), ast.unparse(node)

    def _right_reads(self, variable, number):
        """(time, node) of the right values of a variable"""
        own, when = self.run(number)
        for n in self._reads.get(variable, ()):
            pairs = zip(when.get(n, ()), own.get(n, ()), strict=True)
            yield from ((time, n) for time, value in pairs if self.is_right(value, number))

    @cached_property
    def _reads(self):
        """{variable: its nodes}"""
        reads = {}
        for node in self.scope:
            if isinstance(node, ast.Name | ast.Attribute):
                reads.setdefault(self._variable(node), []).append(node)
        return reads

    def written_at(self, node, number, fine):
        """The statement that computes what a variable's node reads: the first that writes a value that is not fine, or
        else the last; the node itself if it is no variable."""
        own = self.values(number)
        before = {s: value_for(s, node) for s in self.writes(node, number)}
        before = {s: v for s, v in before.items() if v in own and all(x is None or is_data(x) for x in own[v])}
        wrong = [s for s, value in before.items() if value not in fine and not is_new(value, own[value])]
        place = (wrong or [*before][-1:] or [node])[0]
        is_sole = place is not node and len(before) == 1 and is_whole(place, node)
        is_changed = is_sole and key(own[node][0]) not in map(key, own[before[place]])  # through a view of it
        return node if is_changed else place


def _nonzero(value):
    """The numbers of an array but its zeros, in their order."""
    return value[value != 0] if isinstance(value, np.ndarray) and value.dtype.kind == "f" else None


def _is_truth(node, test):
    """Whether a node is a condition, or one of those that `and`, `or` and `not` join to one."""
    parts = getattr(test, "values", None) or [getattr(test, "operand", None)]
    return node is not test and any(part is node or (part is not None and _is_truth(node, part)) for part in parts)


def inputs_of(place, own):
    """The variables that a statement or expression reads, but those that it makes itself, as a lambda does."""
    nodes = [*ast.walk(place.value if isinstance(place, ast.stmt) else place)]
    inner = {n.arg for n in nodes if isinstance(n, ast.arg)}
    nodes = [n for n in nodes if n is not place and n in own and getattr(n, "id", None) not in inner]
    return [node for node in nodes if _is_variable(node, own[node])]


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
    return _parts(statement.targets[0] if isinstance(statement, ast.Assign) else statement.target)


def _parts(target):
    """The targets in a tuple, and in the tuples in it."""
    if isinstance(target, ast.Tuple | ast.List):
        return [part for inner in target.elts for part in _parts(inner)]
    return [target.value if isinstance(target, ast.Starred) else target]


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
