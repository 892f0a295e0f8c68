"""The line of an answer in which NaN or infinity first occurs where a right answer has numbers."""

import ast
from dataclasses import dataclass

import numpy as np

from .suspect import Suspect
from .values import flat, is_array, is_data


@dataclass(frozen=True)
class NotFinite(Suspect):
    """A Suspect that makes the first NaN or infinity; cause: what occurs there"""

    cause: str = ""

    @property
    def text(self):
        return f"{self.cause} first occurs in line {self.node.lineno}:\n{self.shown}"


def first_not_finite(sides):
    """[the NotFinite of the first case whose results are not finite where they must be], or []."""
    for number in sides.one_of_each_label:
        finding = sides.found[number]
        pairs = [(finding.results[i], finding.expected[i]) for i in finding.wrong or ()]
        pairs = [(got, right) for got, right in pairs if got.shape == right.shape]
        if not any((~np.isfinite(got) & np.isfinite(right)).any() for got, right in pairs):
            continue
        own, when, known = sides.values(number)[0], sides.when(number), sides.known_in(number, False)
        made = [n for n in own if not isinstance(n, ast.Name | ast.Attribute) and _is_not_finite(own[n][0])]
        made = [
            n for n in made if not (is_data(own[n][0]) and known.has(flat(own[n][0], False)))
        ]  # such as a mask's −inf
        if made:
            node = min(made, key=lambda n: when[n][0])
            suspect = Suspect.of(sides, node)
            cause = _cause(node, own)
            return [NotFinite(suspect.node, suspect.others, suspect.lines, suspect.shown, [], cause)]
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
