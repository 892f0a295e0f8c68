"""The lines in which a wrong value is made, where no edit shows them.

A wrong answer and the right ones run side by side in the same case. A value of the answer that no right one has is
suspicious. It is proven if the answer becomes right in every failing case with a value of a right answer in its place.
Of a named mistake it is enough if the value is one that the right answer with the mistake computes from right values.
NaN and infinity are told where they first occur.
"""

import ast
from operator import itemgetter

import numpy as np

from .compare import NEARLY_ALL, close
from .hypothesis import Hypothesis
from .replaced import MOST, Replaced
from .sides import inputs_of, is_empty, is_new, value_for
from .syntax import name_of
from .traced import Known, flat, is_array, is_data, is_filled, is_number, key
from .words import listed

_FEW = 4  # numbers that nothing has by chance
_SAME = np.finfo(float).eps ** 0.5  # what two numbers that are the same differ by, relatively


def _suspect(sides, places, said="Look at {}"):
    """The Hypothesis that some statements or expressions are wrong. said: what is known of their lines"""
    marked = {part.lineno: part for part in map(sides.whole_condition, reversed(places))}  # one mark in each line
    marks = {line: sides.family.marked(marked[line]) for line in sorted(marked)}
    lines = f"line{'s' * (len(marks) > 1)} {listed(map(str, marks))}"
    return Hypothesis(None, said.format(lines), node=marked[max(marks)], marks=marks)


def suspects_of(sides, names=()):
    """At most two places, as Hypotheses: where the values of listed mistakes are made, or else where other values make
    it right, or else what is between right values and a wrong result."""
    if sides.own.answer is None or not sides.right:
        return []
    search = Replaced(sides, with_late=not names)
    is_named = bool(names) and sides.trials.compatible(names)
    made = [places for name in names if is_named and (places := _made(sides, name, names))]
    single = [places for places in made if len(places) == 1]
    proven = search.places() if not single or len(names) == 1 else []
    lines = {part.lineno for places in proven for part in places}
    both = [places for places in made if places[-1].lineno in lines]
    first, found = sides.failed[0], {}
    new = _new_array(sides, first)
    if not both and single and proven and sides.is_before(proven[0][-1], single[0][-1], first):
        single = proven  # right values there make what follows right
    chosen = both or single or proven or made or [_before_results(sides) or new]
    told = {part.lineno for places in chosen for part in places}
    given = _given_by(sides, names, first) if is_named else [*search.proven]
    is_all = all(told & search.proven[i] for i in search.proven if i in given)
    for places in filter(None, chosen):
        maker = search.maker(places)
        places = maker or places
        if not any(sides.is_shared(part) or sides.calls_own(part, first) for part in places):
            is_known = bool(new) or (is_all and lines.issuperset(part.lineno for part in places))
            is_proven = maker or (is_known and not _read_wrong(sides, new or places, first))
            said = "Look at {}" if is_proven else "A mistake is in {}, or shows there"
            suspect = _suspect(sides, new or places, said)
            found.setdefault(tuple(suspect.marks), suspect)
    shown = {line for suspect in found.values() for line in suspect.marks}
    found = [s for s in found.values() if not _is_shown(sides, s.node, shown)]
    return found[:MOST]


def _given_by(sides, names, number):
    """The wrong results that listed mistakes give in a case."""
    finding, results = sides.found[number], sides.trials.variant_on(names, number)[0]
    return [i for i in finding.wrong or () if results and close(results[i], finding.results[i])]


def _read_wrong(sides, places, number):
    """Whether some places read a variable that has values of no right answer in a case, a parameter that is overwritten
    before, or a computed whole number, of which nobody knows what it counts."""
    own, fine = sides.values(number), sides.fine_in(number, False)
    read = {n for part in places for n in ast.walk(part) if isinstance(n, ast.Name | ast.Attribute)} - {*places}
    if any(all(map(is_data, own[n])) for n in read & own.keys() - fine):
        return True
    if any(sides.is_overwritten(n) for n in read & own.keys()):
        return True
    values = (v for n in read & own.keys() if type(own[n][0]) is int for v in sides.written_into(n))
    return any(isinstance(v, ast.BinOp | ast.Call) and name_of(getattr(v, "func", None)) != "len" for v in values)


def _is_shown(sides, node, lines):
    """Whether the value of a returned variable is made in one of the lines that are shown anyhow."""
    writes = sides.writes(node, sides.failed[0]) if node in sides.returned and isinstance(node, ast.Name) else ()
    return any(s.lineno in lines - {node.lineno} for s in writes)


def to_show(sides, suspects, named):
    """The suspects to show beside the texts of some named mistakes, or where NaN first occurs; none that runs under a
    condition on an argument that is not used, for it may be right where it should not run, and none of a method that
    the student need not write. If there is none, the only line that reads the argument."""
    suspects = first_not_finite(sides) or suspects
    unused = {h.ignored.argument for h in named if h.ignored}
    suspects = [suspect for suspect in suspects if not unused & sides.asked_around(suspect.node)]
    is_listed = any(not h.ignored for h in named)
    suspects = [suspect for suspect in suspects if not (is_listed and sides.is_given(suspect.node))]
    reads = {n.lineno: n for n in sides.scope if isinstance(n, ast.Name) and n.id in unused}
    return suspects or ([_suspect(sides, [*reads.values()])] if len(reads) == 1 else [])


# --- values that named mistakes make ----------------------------------------------------------------------------------


def _made(sides, name, names):
    """The statements and expressions between right values and the first value that a mistake makes, or [].

    What the right answer with all mistakes computes, and neither the right one nor the one with the other mistakes
    does, is made by this mistake. An answer that computes row by row or in tiles has the same numbers in other arrays.
    """
    others = tuple(other for other in names if other != name)
    cases = [n for n in sides.failed if n in sides.one_of_each_label][:3]
    every = [*cases, *sides.right_case]
    of = {number: (sides.right_with(tuple(names), number), sides.right_with(others, number)) for number in every}
    if any(None in both for both in of.values()):
        return []
    found = []
    for by, shape in ((_ByValue, True), (_ByValue, False), (_ByNumbers, False)):
        harmless = {node for number in sides.right_case for node in by(sides, number, *of[number], shape).nodes()}
        found += [places for number in cases if (places := by(sides, number, *of[number], shape).first(harmless))]
        if any(len(places) == 1 for places in found):
            break

    def unlikeliness(places):  # what some cases do without is not what is wrong with all
        runs = [getattr(places[-1], "value", places[-1]) in sides.values(number) for number in cases]
        return len(places), not all(runs), -found.count(places), places[0].lineno

    return min(found, key=unlikeliness, default=[])


class _ByValue:
    """What a mistake computes in a case, to be found in the answer.

    of, usual_of: the values of the right answer with it, and without it, {node: values}; shape: whether that of an
    array counts
    """

    def __init__(self, sides, number, of, usual_of, shape):
        self.sides, self.number, self.shape, self.own = sides, number, shape, sides.values(number)
        self.usual = Known(self._flat(usual_of))
        self.known = sides.known_in(number, self.shape)
        values = {key(value): value for value in self._flat(of)}.values()
        self.made = Known(value for value in values if not _ByValue.is_usual(self, value))
        self.fine = sides.fine_in(number, self.shape)
        right = [n for n in self.fine if is_array(self.own[n][0]) and not is_filled(self.own[n])]
        self.within = {part for n in right for part in ast.walk(n)} - self.fine  # what right values are computed from

    def _flat(self, of):
        return (flat(v, self.shape) for node, values in of.items() for v in values if _tells(node, v))

    def is_usual(self, value):
        value = flat(value, self.shape)
        return is_data(value) and (self.known.has(value) or self.usual.has(value))

    def is_made(self, node, value):
        return _tells(node, value) and self.made.has(flat(value, self.shape))

    def nodes(self):
        """The nodes of the answer with a value that the mistake makes, in the order of their first evaluation."""
        return [node for node, values in self.own.items() if any(self.is_made(node, value) for value in values)]

    def first(self, harmless):
        """The places between right values and the first value that the mistake makes, at most MOST, or []; none of some
        harmless nodes."""
        found = []
        for node in self.nodes():
            is_right = len(self.own[node]) > 1 and node in self.fine  # as a whole
            if is_right or node in self.within or node in harmless:
                continue
            place = node
            if isinstance(node, ast.Name | ast.Attribute):
                place = self.sides.written_at(node, self.number, self.fine)
            value = getattr(place, "value", place) if isinstance(place, ast.stmt) else place
            if isinstance(place, ast.Name | ast.Attribute) or is_empty(value):
                continue
            if self.sides.is_shared(place):
                continue
            made = (n for n, v in enumerate(self.own.get(value, ())) if self.is_made(value, v))
            unknown = self._unknown(place, next(made, 0))
            if unknown is not None:
                found.append(
                    [*_lines_before(self.sides, unknown, self.number, self.fine), place] if unknown else [place]
                )
        found = [places for places in found if None not in places]
        inside = [places for places in found if len(places) == 1]
        inside = [p for p in inside if not ({*ast.walk(p[0])} - {p[0]}) & {q[0] for q in inside}]
        found = inside or [places for places in found if len({place.lineno for place in places}) <= MOST]
        return min(found, key=lambda places: (len(places), places[0].lineno), default=[])

    def _unknown(self, place, step):
        """The variables that a place reads in an evaluation with values of no right answer; None if the mistake made
        one of them."""
        unknown = []
        for node in inputs_of(place, self.own):
            value = self.own[node][min(step, len(self.own[node]) - 1)]
            if node in self.fine or is_filled([value]) or (len(self.own[node]) > 1 and self.is_usual(value)):
                continue
            if self.is_made(node, value):
                return None
            unknown.append(node)
        return unknown


class _ByNumbers(_ByValue):
    def __init__(self, sides, number, of, usual_of, shape):
        super().__init__(sides, number, of, usual_of, shape)
        right = sides.right_values(number)
        values = [v for some in (*(values for values, _ in right), *usual_of.values()) for v in some]
        self.usual_numbers, made = _numbers(values), _numbers(v for values in of.values() for v in values)
        self.made_numbers = made[~_are_in(made, self.usual_numbers)]
        self.numbers = {id(value): _numbers([value]) for values in self.own.values() for value in values}
        self.fine = self.fine | {n for n, values in self.own.items() if all(map(self.is_usual, values))}

    def is_usual(self, value):
        numbers = self.numbers[id(value)]
        return bool(len(numbers)) and bool(_are_in(numbers, self.usual_numbers).all())

    def is_made(self, node, value):
        numbers = self.numbers[id(value)]
        is_new = len(numbers) >= _FEW and _are_in(numbers, self.made_numbers).mean() > NEARLY_ALL
        return is_new or (self.is_usual(value) and super().is_made(node, value))  # the same numbers at other places


def _lines_before(sides, nodes, number, fine):
    """The statements between right values and some variables, the first one first; [None] of a variable that no
    statement writes, or of more than MOST."""
    own, left, found, seen = sides.values(number), list(nodes), [], set()
    while left:
        node = left.pop()
        if node in seen or ast.unparse(node).partition(".")[0] in sides.family.space:  # such as np.pi
            continue
        seen.add(node)
        every = sides.writes(node, number)
        writes = [s for s in every if not is_empty(value_for(s, node))]
        loops = [] if every else sides.loops_over(node)
        left += [n for loop in loops for n in inputs_of(loop.iter, own) if n not in fine]
        if not (every or loops) or len(found) > MOST:
            return [None]
        for statement in [s for s in writes if value_for(s, node) not in fine] or writes[-1:]:
            if statement not in found:
                found.append(statement)
                left += [n for n in inputs_of(statement, own) if n not in fine]
    return sorted(found, key=lambda s: s.lineno)


def _before_results(sides):
    """The statements and expressions between right values and the wrong results, if they are in at most MOST lines, and
    if no NaN is made, whose line tells more."""
    number, places = sides.failed[0], []
    own, fine = sides.values(number), sides.fine_in(number, False)
    finding, returned = sides.found[number], [n for n in sides.returned if n in own]
    if finding.results is None or first_not_finite(sides):
        return []
    is_each = len(returned) == len(finding.expected)
    wrong = [n for i, n in enumerate(returned) if (i in finding.wrong if is_each else n not in fine)]
    wrong = [n for n in wrong if is_array(own[n][0])]
    if wrong == returned and finding.outcome == "wrong shape" and fine.issuperset(returned):
        return returned  # right for something else
    for node in wrong:
        is_variable = isinstance(node, ast.Name | ast.Attribute)
        variables = [node] if is_variable else [n for n in inputs_of(node, own) if n not in fine]
        places += _lines_before(sides, variables, number, fine) + ([] if is_variable else [node])
    is_few = None not in places and len({place.lineno for place in places}) <= MOST
    return sorted(places, key=lambda place: place.lineno) if is_few else []


def _new_array(sides, number):
    """[the statement that makes a new array of the wrong shape, which is returned], or []."""
    own, finding, returned = sides.values(number), sides.found[number], sides.returned
    if finding.results and len(returned) == len(finding.expected):
        triples = zip(returned, finding.results, finding.expected, strict=True)
        returned = [node for node, result, expected in triples if result.shape != expected.shape]
    returned = [n for n in returned if isinstance(n, ast.Name) and n in own]
    makers = [s for n in returned for s in sides.writes(n, number)[:1] if is_empty(value_for(s, n))]
    values = [own[s.value][0] for s in makers if s.value in own]
    shapes = [getattr(value, "shape", None) for value in (*values, *(own[n][0] for n in returned[:1]))]
    if finding.outcome != "wrong shape" or sides.fine_in(number, False).issuperset(returned):
        return []  # or all but the last step is right
    return makers if len(values) == 1 and None not in shapes and len({*shapes}) == 1 else []


def _tells(node, value):
    """Whether nothing else has a value by chance."""
    if is_array(value) and value.size > 1:
        return not is_new(node, [value]) and (value.dtype.kind == "f" or value.size > 2 * _FEW)
    return isinstance(value, float | np.floating) and not float(value).is_integer()


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
    nearest = (others.take(at + step, mode="clip") for step in (-1, 0))
    return np.logical_or(*(np.abs(numbers - other) <= _SAME * np.abs(other) for other in nearest))


# --- where a value first is not finite --------------------------------------------------------------------------------


def first_not_finite(sides):
    """[the place in the first case whose results are not finite where they must be], or []."""
    for number in sorted(sides.one_of_each_label):
        finding = sides.found[number]
        pairs = [(finding.results[i], finding.expected[i]) for i in finding.wrong or ()]
        if not any((~np.isfinite(a) & np.isfinite(b)).any() for a, b in pairs if a.shape == b.shape):
            continue
        own, when = sides.run(number)
        right = [value for values, _ in sides.right_values(number) for value in values]
        usual = set().union(*map(_not_finite, right)) & {"-inf"}  # as of masks, when inf is often an overflow
        usual |= set().union(*map(_not_finite, finding.expected)) - {"nan"}
        kinds = {node: [*map(_not_finite, values)] for node, values in own.items()}
        made = []  # (time, node, value) of the first value of each expression that is not finite
        for node, values in own.items():
            inner = [n for n in ast.walk(node) if n is not node and n in own]
            read = usual.union(*(kind for n in inner for kind in kinds[n]))
            first = next((i for i, kind in enumerate(kinds[node]) if kind - read), None)
            if first is None or isinstance(node, ast.Name | ast.Attribute) or sides.calls_helper(node):
                continue
            value = values[first]
            is_written = np.isscalar(value) and all(kinds[n][0] for n in inputs_of(node, own))  # as -np.inf
            if not (is_written or sides.is_right(value, number)):
                made.append((when[node][first], node, value))
        finite = (n for n, values in own.items() if is_number(values[0]) and not any(kinds[n]))
        within = {part for n in finite for part in ast.walk(n)}  # 1 / (1 + inf) is right
        made = [one for one in made if one[1] not in within]
        if made:
            _, node, value = min(made, key=itemgetter(0))
            return [_suspect(sides, [node], f"{_cause(node, value, own)} first occurs in {{}}")]
    return []


def _not_finite(value):
    """Which of nan, inf and -inf a number or an array has."""
    if not (isinstance(value, float) or (is_array(value) and value.dtype.kind == "f")):
        return set()
    return {str(kind) for kind in np.unique(value) if not np.isfinite(kind)}


def _cause(node, value, own):
    """What makes the value of a node that is not finite."""
    divisor = node.right if isinstance(getattr(node, "op", None), ast.Div) else None
    divisors = own.get(divisor) or [getattr(divisor, "value", 1)]
    if any(isinstance(d, int | float | np.ndarray | np.generic) and (np.asarray(d) == 0).any() for d in divisors):
        return "A division by 0"
    return "NaN" if "nan" in _not_finite(value) else "Infinity"
