"""The lines of an answer that a message shows: the place of an edit that makes it right, or where to look."""

from dataclasses import dataclass, replace

from ..guard import guarded, unheard
from .cells import unwarned
from .crash import warn_of
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
        shown = [_look(place.marks)]
    elif place:
        what = "the rest" if trials.unread else "the results" if rules and names else "it"
        shown = _of_place(place, f"{what} right{' for the lecture' if place.is_core else ''}")
    elif pointed.mended:
        first, shown = pointed.mended[0].line, [_look(part.marks) for part in pointed.mended]
    else:
        suspects = _suspects(pointed, names, of_sheet)
        first, shown = suspects[0].node.lineno if suspects else at, [suspect.text for suspect in suspects]
        if change:  # which is shown by itself
            shown = [suspect.text for suspect in suspects if suspect.lines != (at,)]
    first = place.line if place else first
    change = "" if place and place.line == at else change
    return Lines(place, tuple(shown), first, change and f"Line {at} changes it:\n{change}")


def _look(marks):
    return "\n".join([f"Look at line{'s' * (len(marks) > 1)} {listed(map(str, marks))}:", *marks.values()])


def _of_place(place, right):
    """The lines of a Place, with what is proved of them."""
    if place.before:
        marks = dict(sorted({**place.before, **place.marks}.items()))
        return [f"Look at lines {listed(map(str, marks))}, where the first wrong value is made:", *marks.values()]
    if place.edits == 1:
        return [f"One change in line {place.line} makes {right}:", *place.marks.values()]
    if place.edits == len(place.marks) == 2:
        (one, first), (other, second) = place.marks.items()
        return [f"Two changes make {right}, one in line {one}:", first, f"and one in line {other}:", second]
    where = f"line{'s' * (len(place.marks) > 1)} {listed(map(str, place.marks))}"
    return [f"{('Two', 'Several')[place.edits > 2]} changes in {where} make {right}:", *place.marks.values()]


def _suspects(pointed, names, of_sheet):
    """The Suspects to show beside the texts of mistakes, or where NaN first occurs; none that runs under a condition on
    an argument that is not used, for it may be right where it should not run, and none of a method that the student
    need not write."""
    sides, suspects = pointed.sides, pointed.suspects
    unused = {name.removesuffix(" not used") for name in names}
    try:
        if sides and not suspects:
            with unheard(), guarded(), without_huge_arrays(sides.trials.cases), unwarned():
                suspects = first_not_finite(sides)
    except Exception as error:
        warn_of(error, sides.trials.exercise.name)
    suspects = [suspect for suspect in suspects if not unused & sides.asked_around(suspect.node)]
    return [suspect for suspect in suspects if not (of_sheet and sides.is_given(suspect.node))]
