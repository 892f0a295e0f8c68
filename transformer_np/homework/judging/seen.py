"""The line in which a value of a named mistake first occurs.

The right answer with the mistake and the student's run side by side in the same case. What the mistake computes from
right values, and no right answer does, is its own: the first place of the answer that computes it from right values is
where the mistake is made.
"""

import ast

from .family import family_with
from .sides import MOST_VALUES, inputs_of, is_empty, is_new
from .suspect import MOST_SUSPECTS, Suspect
from .traced import Traced
from .values import Known, flat, is_array, is_data

MOST_CASES = 3
MANY = 12  # expressions
FEW = 10  # Boolean numbers, which other code has by chance


def suspects_of(sides, names, suspects):
    """Those of the Suspects that are places where listed mistakes are made in the answer, or else the first such place;
    if there is none, the Suspects that do more than read what is wrong before."""
    seen = _places_of(sides, names)
    early = [suspect for suspect in suspects if suspect.is_narrow]
    inside = ((suspect, [place for place in seen if place.node.lineno in suspect.lines]) for suspect in suspects)
    same = [places[0] if len(suspect.lines) > 1 else suspect for suspect, places in inside if places]
    shown = [*([] if same else seen[:1]), *early][:MOST_SUSPECTS] if len(names) > 1 else same or seen[:1] or early
    return [suspect for suspect in (_at_use(sides, suspect) for suspect in shown) if suspect]


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
    results = range(len(sides.trials.exercise.results))
    returned = {i: [n for n in sides.returned_as(sides.own, i) if n in reads] for i in results}
    bare = [n for i in sorted(wrong) for n in returned[i]]
    if bare and len(wrong) < len(results) and reads - {n for nodes in returned.values() for n in nodes}:
        return Suspect.of(sides, bare[0])
    fine = sides.fine_in(sides.failed[0], False)
    others = (s for s in sides.scope if isinstance(s, ast.Assign) and s is not line and s.value in fine)
    parts = {n for s in sides.scope if isinstance(s, ast.Subscript) for n in ast.walk(s)}  # which may be the right ones
    return None if any(n in reads - parts for s in others for n in ast.walk(s.value)) else suspect


def _places_of(sides, names):
    """Suspects for the places where listed mistakes are made in the answer, the first one first."""
    family = family_with(sides.trials.exercise, names)
    if family is None or sides.trials.left <= 0:
        return []
    mistaken = Traced(sides.trials, family, MOST_VALUES)
    usual = {ast.unparse(node) for node in _expressions(family_with(sides.trials.exercise, ()))}
    expressions = _expressions(family)
    shapes = {
        part for node in expressions if is_empty(node) for part in ast.walk(node)
    }  # np.zeros_like(x) says no value
    changed = {node for node in expressions if ast.unparse(node) not in usual} - shapes
    if len(changed) > max(MANY, len(expressions) // 2):  # written otherwise, with right values of its own
        return []
    made = {}  # {case: the values of all nodes}, if some of those that differ tell something
    for number in [n for n in sides.failed if n in sides.one_of_each_label][:MOST_CASES]:
        mistaken.results(number)
        sides.trials.left -= sides.work
        if any(_tells(node, value) for node in changed for value in mistaken.of.get(node, ())):
            made[number] = mistaken.of
    for shape in (True, False):
        found = [_nodes_in(sides, of_mistake, changed, number, shape) for number, of_mistake in made.items()]
        if any(found):  # in a case of one row a mean over the rows, for example, is no mistake yet
            nodes = min(filter(None, found), key=lambda nodes: nodes[0].lineno)
            return [Suspect.of(sides, node) for node in nodes]
    return []


def _expressions(family):
    trees = family.trees.values()
    return [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.expr) and not _is_read(n)]


def _nodes_in(sides, of_mistake, changed, number, shape):
    """The nodes of the answer that compute a value of the mistakes in a case from right ones."""
    known = sides.known_in(number, shape)

    def is_right(value):
        return is_data(value) and known.has(flat(value, shape))

    def is_made_from_right(node, of):
        return all(is_right(value) for n in inputs_of(node, of) for value in of[n])

    roots = [n for n in of_mistake if n in changed and is_made_from_right(n, of_mistake)]
    made = [value for node in roots for value in of_mistake[node] if _tells(node, value) and not is_right(value)]
    if not made:
        return []
    made, (own, _), when, times = Known(flat(v, shape) for v in made), sides.values(number), sides.when(number), {}
    for node, values in own.items():
        has = (n for n, value in enumerate(values) if _tells(node, value) and made.has(flat(value, shape)))
        n = next(has, None)
        if n is not None:
            times[node] = when[node][n]
    places = (
        sides.written_at(node, number, sides.fine_in(number, shape), shape) if _is_read(node) else node
        for node in sorted(times, key=times.get)
    )
    places = (place for place in places if not _is_read(place) and not is_empty(getattr(place, "value", place)))
    return [place for place in places if is_made_from_right(place, own)]


def _is_read(node):
    return isinstance(node, ast.Name | ast.Attribute)


def _tells(node, value):
    """Whether nothing else has a value by chance."""
    if is_array(value) and value.size > 1:
        return not is_new(node, [value]) and (value.dtype != bool or value.size >= FEW)
    return isinstance(value, float) and not value.is_integer()
