"""What a wrong result looks like next to the right one, where no known mistake explains it.

A finder looks at one Draw and yields the descriptions that hold for it. What is said is what holds in every draw of
the case: with sizes and numbers drawn afresh each time, few things hold three times by chance.
"""

from .crashes import about_crash
from .draw import Description, Draw
from .exact import EXACT_FINDERS, an_earlier_result
from .partial import PARTIAL_FINDERS, worst
from .shapes import SHAPE_FINDERS, about_shape, is_searchable
from .structures import about_structure

__all__ = ["Description", "Draw", "about_crash", "about_structure", "describe_exactly", "describe_roughly"]


def describe_exactly(draws):
    """The description that accounts for every number of all these draws of one case, or None."""
    if sum(draw.expected.size for draw in draws) < 2:
        return None  # one number is in proportion to any other
    if any(0 in (draw.actual.size, draw.expected.size) for draw in draws):
        return None
    kept = _first_that_holds([an_earlier_result], draws)
    if kept:
        return kept
    if any(draw.actual.shape != draw.expected.shape for draw in draws):
        draws = [draw for draw in draws if draw.actual.shape != draw.expected.shape]
        return _first_that_holds(SHAPE_FINDERS, draws) if all(map(is_searchable, draws)) else None
    found = _first_that_holds(EXACT_FINDERS, draws)
    return found if found and found.exact else None


def describe_roughly(draws):
    """A description of what is wrong in all these draws of one case: there is always something to say."""
    if not all(draw.actual.size for draw in draws):
        return Description("an empty array", f"{draws[0].name} is empty: it has no entries.", exact=False)
    different = [draw for draw in draws if draw.actual.shape != draw.expected.shape]
    if different:
        return about_shape(different)
    return _first_that_holds(PARTIAL_FINDERS, draws) or worst(draws[0])


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
