"""Descriptions of a wrong result next to the right one, for answers that no known mistake explains.

A finder takes one Draw and yields (name, text, array): what is said of an answer whose result is this array; without
an array, what is known of the result. The student is told only what holds in every draw of a case: sizes and numbers
differ between the draws, so little holds three times by chance.
"""

import re
from dataclasses import replace

import numpy as np

from ..hypothesis import Hypothesis
from ..words import subject
from .crashes import about_crash
from .draw import Draw, same
from .numbers import OF_NUMBERS, an_earlier_result
from .shapes import OF_SHAPES, about_structure, is_searchable

__all__ = ["Draw", "about_crash", "about_structure", "describe_exactly"]
_VERBS = {"is": "are", "has": "have", "holds": "hold", "lacks": "lack", "repeats": "repeat"}  # {singular: plural}


def describe_exactly(draws):
    """The Hypothesis that explains every number in all draws of a case, or None."""
    if sum(draw.expected.size for draw in draws) < 2:
        return None  # any number is a multiple of any other
    if any(0 in (draw.actual.size, draw.expected.size) or draw.is_coded for draw in draws):
        return None
    if kept := _first_that_holds([an_earlier_result], draws):
        return kept
    different = [draw for draw in draws if draw.actual.shape != draw.expected.shape]
    if different:
        return _first_that_holds(OF_SHAPES, different) if all(map(is_searchable, different)) else None
    return _first_that_holds(OF_NUMBERS, draws)


def _first_that_holds(finders, draws):
    for finder in finders:
        first = dict(_holding(finder, draws[0]))
        names = [*first]
        for draw in draws[1:] if names else ():
            others = dict(_holding(finder, draw))
            names = [name for name in names if name in others]
        if names:
            return _in_words(Hypothesis(names[0], first[names[0]]), draws)
    return None


def _holding(finder, draw):
    """(name, text) of what a finder yields for a draw, if it holds."""
    with np.errstate(all="ignore"):
        for name, text, *array in finder(draw):
            if not array or same(draw.actual, array[0]):
                yield name, text


def _in_words(one, draws):
    """The Hypothesis with the result as the subject of a sentence: `dx` is, The gradients of norm 1 are."""
    name = draws[0].name

    def said(match):
        before, verb = match.groups()
        who = subject(name, draws[0].inputs)
        is_plural = name not in draws[0].inputs and who.startswith("The ") and who.split()[1].endswith("s")
        return f"{before}{who} {_VERBS.get(verb, verb) if is_plural else verb}"

    pattern = rf"(^|[.:] ){re.escape(name)} ({'|'.join(_VERBS)}|would)\b" if name else "(?!)"
    return replace(one, text=re.sub(pattern, said, one.text))
