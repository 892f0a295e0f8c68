"""The lines of an answer that a message shows: the place of an edit that makes it right, or where to look."""

from dataclasses import dataclass, replace

import numpy as np

from .attempt import guarded, unheard, warn_of
from .family import without_huge_arrays
from .not_finite import first_not_finite
from .place import INVENTED, Place
from .rules import CHANGED
from .words import listed


@dataclass(frozen=True)
class Lines:
    """place: where edits make the answer right, or None; shown: what the student reads
    first: the number of the line to look at, or None; change: the line that changes an argument, ""
    """

    place: Place | None = None
    shown: tuple = ()
    first: int | None = None
    change: str = ""

    @property
    def repair(self):
        return self.place.repair if self.place else ""


def lines_to_show(trials, pointed, rules, names, of_sheet=()):
    """The Lines for a wrong answer.

    pointed: a Pointed or None; rules: {name: text} of those that are broken; names: of its mistakes; of_sheet: the
    names among them that a sheet lists
    """
    if pointed is None:
        return Lines()
    place, (change, at) = pointed.place, pointed.change if CHANGED in rules else ("", None)
    if place and of_sheet and "nan_to_num" in place.repair:
        place = None  # which only hides it
    if place and place.kind in INVENTED and len(of_sheet) > 1:
        place = replace(place, repair="")
        first, shown = place.line, [f"Look at line {place.line}:", place.shown]
    elif place:
        first, shown = place.line, _of_place(place, bool(trials.unread), bool(rules and names))
    elif pointed.mended:
        first = pointed.mended[0].line
        shown = [f"Look at line {part.line}:\n{part.shown}" for part in pointed.mended]
    else:
        suspects = _suspects(pointed, names, of_sheet)
        first, shown = suspects[0].node.lineno if suspects else at, [suspect.text for suspect in suspects]
    change = "" if place and place.line == at else change
    return Lines(place, tuple(shown), first, change and f"Line {at} changes it:\n{change}")


def _suspects(pointed, names, of_sheet):
    """The Suspects to show beside the texts of mistakes, or where NaN first occurs; none that runs under a condition on
    an argument that is not used, for it may be right where it should not run, and none of a method that the student
    need not write."""
    sides, suspects = pointed.sides, list(pointed.suspects)
    unused = {name.removesuffix(" not used") for name in names}
    try:
        if sides and not suspects:
            with unheard(), guarded(), without_huge_arrays(sides.trials.cases), np.errstate(all="ignore"):
                suspects = first_not_finite(sides)
    except Exception as error:
        warn_of(error, sides.trials.exercise.name)
    suspects = [suspect for suspect in suspects if not unused & sides.asked_around(suspect.node)]
    return [suspect for suspect in suspects if not (of_sheet and sides.is_given(suspect.node))]


def _of_place(place, is_rest, is_part):
    """The lines of a Place, with what is proved of them. is_rest: whether cases were left out; is_part: whether rules
    are broken beside"""
    what = "the rest" if is_rest else "the results" if is_part else "it"
    right = f"{what} right{' for the lecture' if place.is_core else ''}"
    if place.before:
        shown = dict(sorted([*place.before, (place.line, place.shown)]))
        return [f"Look at lines {listed(map(str, shown))}, where the first wrong value is made:", *shown.values()]
    if not place.also:
        return [f"One change in line {place.line} makes {right}:", place.shown]
    places = [place]
    while places[-1].also:
        places.append(places[-1].also)
    lines = sorted({part.line for part in places})
    if len(lines) == 2 == len(places):
        one, other = f"Two changes make {right}, one in line {place.line}:", f"and one in line {place.also.line}:"
        return [one, place.shown, other, place.also.shown]
    where = f"lines {listed(map(str, lines))}" if len(lines) > 1 else f"line {lines[0]}"
    many = ("Two", "Several")[len(places) > 2]
    return [f"{many} changes in {where} make {right}:", *dict.fromkeys(part.shown for part in places)]
