"""The line in which a value of a named mistake first occurs.

The right answer with the mistake and the student's run side by side in the same case. What the mistake computes from
right values, and no right answer does, is its own: the first place of the answer that computes it from right values is
where the mistake is made. An answer that computes row by row or in tiles has the same numbers in other arrays.
"""

import ast
from functools import partial

import numpy as np

from .family import family_with
from .sides import MOST_VALUES, inputs_of, is_empty, is_new
from .suspect import MOST_SUSPECTS, Suspect
from .traced import Traced
from .values import Known, flat, is_array, is_data, is_filled

MOST_CASES = 3
MANY = 12  # expressions
FEW = 10  # Boolean or whole numbers, which other code has by chance
FEW_NUMBERS, MOST_OF, SAME = 4, 0.9, 1e-8  # what two numbers that are the same differ by, relatively


def suspects_of(sides, names, suspects):
    """Those of the Suspects that are places where listed mistakes are made in the answer, or else the first such place;
    if there is none, the Suspects that leave little to look at, or else the first place with a value that follows from
    the mistakes."""
    mistaken = _Mistaken(sides, names)
    seen = mistaken.places(mistaken.own, is_loose=not mistaken.has_wrong_numbers)
    chains = [[sides.chain(n, sides.failed[0]) for n in suspect.others] for suspect in suspects]
    early = [Suspect.of(sides, parts[-1][-1], dict.fromkeys(sum(parts, ()))) for parts in chains if all(parts)]
    of_line = {tuple(place.lines): place for place in reversed(seen)}
    first = sorted(of_line.values(), key=lambda suspect: suspect.lines)
    same = [place for place in first if place.lines in [suspect.lines for suspect in suspects]]
    shown = []
    for suspect in (*same, *first, *early):
        if not any({*suspect.lines} & {*other.lines} for other in shown):
            shown.append(suspect)
    shown = shown[:MOST_SUSPECTS] if len(names) > 1 else same or first[:1] or early
    if not shown and not suspects:
        shown = mistaken.places(mistaken.all)[:1]
    shown = [suspect for suspect in (_at_use(sides, suspect) for suspect in shown) if suspect]
    return [suspect for suspect in shown if not mistaken.is_elsewhere(suspect.node)]


def _at_use(sides, suspect):
    """The Suspect; if what is right is computed from its variable too, one where this is returned as a wrong result, or
    None."""
    line = next((s for s in sides.scope if isinstance(s, ast.Assign) and suspect.node in ast.walk(s)), None)
    if line is None or not isinstance(line.targets[0], ast.Name):
        return suspect
    wrong = {i for finding in sides.found for i in finding.wrong or ()}
    stores = sides.stores.get((sides.scope[line], line.targets[0].id), ())
    itself = {n for s in stores for n in ast.walk(s)}  # as in `state = state @ w`
    reads = {n for n in sides.scope if isinstance(n, ast.Name) and n.id == line.targets[0].id} - itself
    reads = {n for n in reads if n.lineno > line.lineno or sides.loops_around(line)}  # what it wrote
    results = range(len(sides.trials.exercise.results))
    returned = {i: [n for n in sides.returned_as(sides.own, i) if n in reads] for i in results}
    bare = [n for i in sorted(wrong) for n in returned[i]]
    if bare and len(wrong) < len(results) and reads - {n for nodes in returned.values() for n in nodes}:
        return Suspect.of(sides, bare[0])
    fine = sides.fine_in(sides.failed[0], False)
    others = (s for s in sides.scope if isinstance(s, ast.Assign) and s is not line and s.value in fine)
    parts = {n for s in sides.scope if isinstance(s, ast.Subscript) for n in ast.walk(s)}  # which may be the right ones
    return None if any(n in reads - parts for s in others for n in ast.walk(s.value)) else suspect


class _Mistaken:
    """The right answer with listed mistakes, beside the student's.

    own, all: {case: {node: values}} of what the mistakes compute from right values, and of all
    """

    def __init__(self, sides, names):
        self.sides, self.own, self.all, self._right, self._of_right = sides, {}, {}, {}, {}
        self._elsewhere = set()  # the names of helpers of the right answer in which the mistakes change nothing
        if not sides.trials.compatible(names):
            return
        family, usual_family = (family_with(sides.trials.exercise, some) for some in (names, ()))
        if family is None:
            return
        codes, usual_codes = (
            {name: ast.unparse(tree) for name, tree in of.trees.items()} for of in (family, usual_family)
        )
        self._elsewhere = {name for name, code in codes.items() if code == usual_codes.get(name)} - {next(iter(codes))}
        if any(isinstance(n, ast.Pass) for tree in family.trees.values() for n in ast.walk(tree)):
            return  # a line that is left out is in no line
        usual = {ast.unparse(node) for node in _expressions(usual_family)}
        expressions = _expressions(family)
        shapes = {part for node in expressions if is_empty(node) for part in ast.walk(node)}  # zeros_like(x) is no x
        changed = {node for node in expressions if ast.unparse(node) not in usual} - shapes
        if len(changed) > max(MANY, len(expressions) // 2):  # written otherwise, with right values of its own
            return
        mistaken = Traced(sides.trials, family, MOST_VALUES)
        for number in [n for n in sides.failed if n in sides.one_of_each_label][:MOST_CASES]:
            mistaken.results(number)
            sides.trials.left -= sides.work
            known, of = sides.known_in(number, False), mistaken.of
            roots = (n for n in of if n in changed and _is_made_of(n, of, lambda v, known=known: _is_usual(known, v)))
            self.own[number], self.all[number] = {node: of[node] for node in roots}, of

    def is_elsewhere(self, node):
        """Whether a node is in a helper that has the name of one in which the mistakes change nothing."""
        trees = self.sides.family.trees
        return any(node in ast.walk(trees[name]) for name in self._elsewhere if name in trees)

    @property
    def has_wrong_numbers(self):
        """Whether what the mistakes compute differs in more than its shape."""
        known = {number: self.sides.known_in(number, False) for number in self.own}
        values = ((n, node, v) for n, of in self.own.items() for node, of_node in of.items() for v in of_node)
        return any(_tells(node, v) and not _has(known[n], v, False) for n, node, v in values)

    def places(self, values, is_loose=False):
        """Suspects for the places where these values are made in the answer from right ones, the first one first.

        is_loose: whether what has right numbers in a wrong shape is such a place
        """
        by_shape = partial(self._by_values, shape=True, is_loose=is_loose)
        for find in (by_shape, partial(self._by_values, shape=False), self._by_numbers):
            found = {number: nodes for number, of in values.items() if (nodes := find(number, of))}
            if found:  # in a case of one row a mean over the rows, for example, is no mistake yet
                number = min(found, key=lambda number: found[number][0].lineno)
                fine = self._nodes_of_right_numbers(number) if find == self._by_numbers else ()
                found = dict.fromkeys(filter(None, (self.sides.chain(node, number, fine) for node in found[number])))
                found = [parts for parts in found if not any(map(self.sides.used_twice, parts))]
                return [Suspect.of(self.sides, parts[-1], parts) for parts in found]
        return []

    def _by_values(self, number, of, shape, is_loose=False):
        """The nodes of the answer that compute one of some values which is not right from right ones."""
        known, (own, _), when = self.sides.known_in(number, shape), self.sides.values(number), self.sides.when(number)
        right = known if is_loose else self.sides.known_in(number, False)
        values = [value for node, of_node in of.items() for value in of_node if _tells(node, value)]
        if is_loose:
            values = [value for value in values if not is_array(value) or value.dtype.kind == "f"]
        made = Known(flat(v, shape) for v in values if not _has(right, v, shape and is_loose))
        times = {}
        for node, values in own.items():
            n = next((n for n, v in enumerate(values) if _tells(node, v) and made.has(flat(v, shape))), None)
            if n is not None:
                times[node] = when[node][n]
        places = self._made_there(number, times, self.sides.fine_in(number, shape and is_loose))
        places = [place for place in places if not (is_loose and _is_entry(place))]  # which has no say in the shape
        return [place for place in places if _is_made_of(place, own, lambda value: _has(known, value, shape))]

    def _by_numbers(self, number, of):
        """The same for an answer that computes in other pieces, such as row by row: the nodes with numbers that no
        right answer has, computed from right numbers."""
        own, fine = self.sides.values(number)[0], self._nodes_of_right_numbers(number)
        made = _numbers(value for values in of.values() for value in values)
        made = made[~_are_in(made, self._right_numbers(number))]
        numbers = {node: _numbers(values) for node, values in own.items()}
        shares = {node: _are_in(some, made).mean() for node, some in numbers.items() if len(some) >= FEW_NUMBERS}
        times = {node: self.sides.when(number)[node][0] for node, share in shares.items() if share >= MOST_OF}
        places = self._made_there(number, times, fine)
        known = fine | self.sides.fine_in(number, False)
        return [place for place in places if known.issuperset(inputs_of(place, own))]

    def _right_numbers(self, number):
        if number not in self._right:
            self._right[number] = _numbers(value for values, _ in self.sides.values(number)[1] for value in values)
        return self._right[number]

    def _nodes_of_right_numbers(self, number):
        """The nodes of the answer whose numbers the right answers have, whatever their arrays are."""
        if number not in self._of_right:
            own, known = self.sides.values(number)[0], self._right_numbers(number)
            numbers = {node: _numbers(values) for node, values in own.items() if all(map(_is_told_by_numbers, values))}
            self._of_right[number] = {n for n, some in numbers.items() if len(some) and _are_in(some, known).all()}
        return self._of_right[number]

    def _made_there(self, number, times, fine):
        """The places that give nodes their values, in the order of their times, but those inside of what is right."""
        sides, right = self.sides, self.sides.fine_in(number, False)
        own = sides.values(number)[0]
        whole = {n for n, values in own.items() if all(map(_is_float, values)) and not len(_numbers(values))}
        fine_or_whole = right | self._nodes_of_right_numbers(number) | whole
        of_right = (s.value for s in sides.scope if isinstance(s, ast.Assign | ast.AugAssign) and s.value in fine)
        inside = {n for value in of_right for n in ast.walk(value)}
        places = (
            sides.written_at(node, number, fine_or_whole, False) if _is_read(node) else node
            for node in sorted(times, key=times.get)
        )
        return [
            place for place in places
            if not _is_read(place) and place not in inside and not _is_plain(place)
        ]  # fmt: skip


def _expressions(family):
    trees = family.trees.values()
    return [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.expr) and not _is_read(n)]


def _is_usual(known, value):
    """Whether right answers have a value, or may have it: a new array."""
    return is_filled([value]) or _has(known, value, False)


def _has(known, value, shape):
    return is_data(value) and known.has(flat(value, shape))


def _is_made_of(node, own, is_right):
    """Whether all variables that a node reads have right values."""
    return all(is_right(value) for n in inputs_of(node, own) for value in own[n])


def _numbers(values):
    """The different numbers of arrays and floats that are no whole ones, in order."""
    parts = [np.ravel(v) for v in values if _is_float(v)]
    numbers = np.unique(np.concatenate([np.empty(0), *parts]))
    numbers = numbers[np.isfinite(numbers)]
    return numbers[numbers % 1 != 0]


def _is_float(value):
    return isinstance(value, float) or (is_array(value) and value.dtype.kind == "f")


def _is_told_by_numbers(value):
    """Whether a value has no infinite numbers and no zeros, whose places its other numbers do not tell."""
    return not is_array(value) or value.dtype.kind != "f" or bool((np.isfinite(value) & (value != 0)).all())


def _are_in(numbers, others):
    """Which numbers are among others, in order, but for the last digits."""
    if not len(others):
        return np.zeros(len(numbers), bool)
    at = np.searchsorted(others, numbers)
    nearest = (others[np.clip(at + step, 0, len(others) - 1)] for step in (-1, 0))
    return np.logical_or(*(np.abs(numbers - other) <= SAME * np.abs(other) for other in nearest))


def _is_plain(place):
    """Whether a place is a new array, or writes a number into an entry."""
    value = getattr(place, "value", place)
    is_number = isinstance(value, ast.Constant) and not isinstance(value.value, bool)
    return is_empty(value) or (_is_entry(place) and is_number)


def _is_entry(place):
    return isinstance(place, ast.Assign) and isinstance(place.targets[0], ast.Subscript)


def _is_read(node):
    return isinstance(node, ast.Name | ast.Attribute)


def _tells(node, value):
    """Whether nothing else has a value by chance."""
    if is_array(value) and value.size > 1:
        return not is_new(node, [value]) and (value.dtype.kind == "f" or value.size >= FEW)
    return isinstance(value, float) and not value.is_integer()
