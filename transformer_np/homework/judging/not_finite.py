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
        usual = {str(value) for right in finding.expected for value in right.flat if np.isinf(value)}
        made = []
        for node, values in own.items():
            inputs = inputs_of(node, own)
            is_written = not inputs and np.isscalar(values[0])  # such as -np.inf
            is_known = is_data(values[0]) and known.has(flat(values[0], False))  # such as a mask's −inf
            read = {kind for n in inputs for value in own[n] for kind in _not_finite(value)}
            if _not_finite(values[0]) - read - usual and not (is_written or is_known):
                made.append(node)
        made = [n for n in made if not isinstance(n, ast.Name | ast.Attribute)]
        if made:
            node = min(made, key=lambda n: when[n][0])
            return [Suspect.of(sides, [node], _cause(node, own))]
    return []


def _not_finite(value):
    """Which of nan, inf and -inf a number or an array has."""
    if not (isinstance(value, float) or (is_array(value) and value.dtype.kind == "f")):
        return set()
    return {str(kind) for kind in np.unique(value) if not np.isfinite(kind)}


def _cause(node, own):
    """What makes a value that is not finite."""
    divisor = node.right if isinstance(getattr(node, "op", None), ast.Div) else None
    value = own[divisor][0] if divisor in own else getattr(divisor, "value", 1)
    if isinstance(value, int | float | np.ndarray | np.generic) and (np.asarray(value) == 0).any():
        return "A division by 0"
    return "NaN" if np.isnan(own[node][0]).any() else "Infinity"
