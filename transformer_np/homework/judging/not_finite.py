"""The line of an answer in which NaN or infinity first occurs where a right answer has numbers."""

import ast

import numpy as np

from .sides import inputs_of
from .suspect import Suspect
from .values import flat, is_array, is_data


def first_not_finite(sides):
    """[the Suspect of the first case whose results are not finite where they must be], or []."""
    for number in sides.one_of_each_label:
        finding = sides.found[number]
        pairs = [(finding.results[i], finding.expected[i]) for i in finding.wrong or ()]
        if not any((~np.isfinite(a) & np.isfinite(b)).any() for a, b in pairs if a.shape == b.shape):
            continue
        own, when, known = sides.values(number)[0], sides.when(number), sides.known_in(number, False)
        made = [n for n in own if not isinstance(n, ast.Name | ast.Attribute) and _is_not_finite(own[n][0])]
        made = [n for n in made if not (is_data(own[n][0]) and known.has(flat(own[n][0], False)))]  # a mask's −inf
        fine = sides.fine_in(number, False)
        wrong = {n for n in own if n not in fine and any(map(_is_not_finite, own[n]))}
        made = [n for n in made if not wrong & {*inputs_of(n, own)}]
        if made:
            node = min(made, key=lambda n: when[n][0])
            return [Suspect.of(sides, [node], _cause(node, own))]
    return []


def _is_not_finite(value):
    is_float = isinstance(value, float) or (is_array(value) and value.dtype.kind == "f")
    return is_float and not np.isfinite(value).all()


def _cause(node, own):
    """What makes a value that is not finite."""
    divisor = node.right if isinstance(getattr(node, "op", None), ast.Div) else None
    value = own[divisor][0] if divisor in own else getattr(divisor, "value", 1)
    if isinstance(value, int | float | np.ndarray | np.generic) and (np.asarray(value) == 0).any():
        return "A division by 0"
    return "NaN" if np.isnan(own[node][0]).any() else "Infinity"
