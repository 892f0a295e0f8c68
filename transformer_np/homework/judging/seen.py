"""The line in which a value of a named mistake first occurs.

The right answer with the mistake and the student's run side by side in the same case. What the mistake computes from
right values, and no right answer does, is its own: the first place of the answer that computes it from right values is
where the mistake is made.
"""

import ast

from .family import family_with
from .sides import MOST_VALUES, inputs_of, is_new
from .suspect import Suspect
from .traced import Traced
from .values import Known, flat, is_array, is_data

MOST_CASES = 4


def first_seen(sides, names):
    """A Suspect for the place where listed mistakes are made in the answer, or None."""
    family = family_with(sides.trials.exercise, names)
    if family is None or not sides.failed:
        return None
    mistaken = Traced(sides.trials, family, MOST_VALUES)
    usual = {ast.unparse(node) for node in _expressions(family_with(sides.trials.exercise, ()))}
    changed = {node for node in _expressions(family) if ast.unparse(node) not in usual}
    first = {sides.found[n].case.label: n for n in reversed(sides.failed)}.values()  # one of each label
    cases, of_mistake = [n for n in sides.failed if n in first][:MOST_CASES], {}
    for number in cases:
        mistaken.results(number)
        sides.trials.left -= sides.work
        of_mistake[number] = mistaken.of
    for shape in (True, False):
        for number in cases:
            node = _first_in(sides, of_mistake[number], changed, number, shape)
            if node is not None:
                return Suspect(node, [], sides.family.marked(node), ())
    return None


def _expressions(family):
    trees = family.trees.values()
    return [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.expr) and not _is_read(n)]


def _first_in(sides, of_mistake, changed, number, shape):
    """The first node of the answer in a case that computes a value of the mistakes from right ones."""
    known, fine = sides.known_in(number, shape), sides.fine_in(number, shape)

    def is_right(value):
        return is_data(value) and known.has(flat(value, shape))

    def is_made_from_right(node, of):
        return all(is_right(value) for n in inputs_of(node, of) for value in of[n])

    roots = [n for n in of_mistake if n in changed and is_made_from_right(n, of_mistake)]
    made = [value for node in roots for value in of_mistake[node] if _tells(node, value) and not is_right(value)]
    made, (own, _), when, times = Known(flat(v, shape) for v in made), sides.values(number), sides.when(number), {}
    for node, values in own.items():
        has = (n for n, value in enumerate(values) if _tells(node, value) and made.has(flat(value, shape)))
        n = next(has, None)
        if n is not None:
            times[node] = when[node][n]
    for node in sorted(times, key=times.get):
        place = sides.written_at(node, number, fine, shape) if _is_read(node) else node
        if not _is_read(place) and is_made_from_right(place, own):
            return place
    return None


def _is_read(node):
    return isinstance(node, ast.Name | ast.Attribute)


def _tells(node, value):
    """Whether nothing else has a value by chance."""
    if is_array(value) and value.size > 1:
        return not is_new(node, [value])
    return isinstance(value, float) and not value.is_integer()
