"""Descriptions of a wrong result next to the right one, for answers that no known mistake explains.

A finder takes one Draw and yields the descriptions that hold for it. The student is told only what holds in every draw
of a case: sizes and numbers differ between the draws, so little holds three times by chance.
"""

import re
from dataclasses import replace

from ..words import subject
from .crashes import about_crash
from .draw import Description, Draw
from .exact import EXACT_FINDERS, an_earlier_result
from .partial import PARTIAL_FINDERS, worst
from .shapes import SHAPE_FINDERS, about_shape, axes_of_length_1, is_searchable
from .structures import about_structure

__all__ = ["Description", "Draw", "about_crash", "about_structure", "describe_exactly", "describe_roughly"]


def describe_exactly(draws):
    """The description that explains every number in all draws of a case, or None."""
    if sum(draw.expected.size for draw in draws) < 2:
        return None  # any number is a multiple of any other
    if any(0 in (draw.actual.size, draw.expected.size) or draw.is_coded for draw in draws):
        return None
    kept = _first_that_holds([an_earlier_result], draws)
    if kept and any(any(True for _ in an_earlier_result(replace(draw, earlier=draw.elsewhere))) for draw in draws):
        return kept
    if any(draw.actual.shape != draw.expected.shape for draw in draws):
        draws = [draw for draw in draws if draw.actual.shape != draw.expected.shape]
        found = _first_that_holds(SHAPE_FINDERS, draws) if all(map(is_searchable, draws)) else None
    else:
        found = _first_that_holds(EXACT_FINDERS, draws)
    return _in_words(found, draws) if found and found.exact else None


def describe_roughly(draws):
    """A description of what is wrong in all draws of a case; never None."""
    if not all(draw.actual.size for draw in draws):
        return Description("an empty array", f"{draws[0].name} is an empty array.", exact=False)
    if all(draw.is_coded for draw in draws):
        return Description(None, "", exact=False)
    different = [draw for draw in draws if draw.actual.shape != draw.expected.shape]
    if different:
        known = _first_that_holds([axes_of_length_1], different) if all(map(is_searchable, different)) else None
        return _in_words(known or about_shape(different), draws)
    return _in_words(_first_that_holds(PARTIAL_FINDERS, draws) or worst(draws[0]), draws)


def _in_words(description, draws):
    """The description with the result as the subject of a sentence: `dx` is, The gradients of norm 1 are."""
    name = draws[0].name
    verbs = {"is": "are", "has": "have", "holds": "hold", "lacks": "lack", "repeats": "repeat"}

    def said(match):
        before, verb = match.groups()
        who = subject(name, draws[0].inputs)
        is_plural = name not in draws[0].inputs and who.startswith("The ") and who.split()[1].endswith("s")
        return f"{before}{who} {verbs.get(verb, verb) if is_plural else verb}"

    pattern = rf"(^|[.:] ){re.escape(name)} ({'|'.join(verbs)}|would)\b" if name else "(?!)"
    return replace(description, text=re.sub(pattern, said, description.text))


def _first_that_holds(finders, draws):
    for finder in finders:
        first = {description.name: description for description in finder(draws[0])}
        names = list(first)
        for draw in draws[1:]:
            if not names:
                break
            others = {description.name for description in finder(draw)}
            names = [name for name in names if name in others]
        if names:
            return first[names[0]]
    return None
