"""Where a wrong answer can be made right by one edit, or which lines are suspicious if none does."""

import ast
from dataclasses import dataclass, replace
from itertools import zip_longest
from textwrap import indent

import numpy as np

from ..guard import guarded, unheard
from .cover import NOTHING, Cells, Cover, unwarned
from .edit import MOVE, ORDER, OTHER, about
from .family import without_huge_arrays
from .hypothesis import Hypothesis
from .search import Search
from .sides import Sides
from .suspect import suspects_of, to_show
from .traced import line_of_change

INVENTED = ("missing function", "missing factor", "missing term")  # edits that may make up for another mistake


@dataclass(frozen=True)
class Place:
    """Where an answer can be made right.

    edit: what is known of the edit; changes: how many
    repair: the line after it, "" if other lines change too, or if it would show the right answer
    is_core: whether other than core cases stay wrong; second: the sentence on the second of two edits, or ""
    """

    edit: Hypothesis
    changes: int = 1
    repair: str = ""
    is_core: bool = False
    second: str = ""

    @property
    def kind(self):
        return self.edit.name

    @property
    def line(self):
        return self.edit.line

    @property
    def marks(self):
        return self.edit.marks


def _together(marks):
    """{line: it with a mark below it, or with several} of (line, it with one mark)."""
    together = {}
    for line, shown in sorted(marks, key=lambda item: item[0]):
        *before, mark = together.get(line, shown).split("\n")
        new = shown.split("\n")[-1]
        pairs = [*zip_longest(mark, new, fillvalue=" ")]
        is_apart = mark == new or ("^", "^") not in pairs
        together[line] = "\n".join([*before, *(["".join(map(max, pairs))] if is_apart else [mark, new])])
    return together


@dataclass(frozen=True)
class Pointed:
    """What is known about the lines of a wrong answer, as Hypotheses: its Place, or else suspects.

    change: if it changes an argument, the line that does, or None
    """

    place: Place | None = None
    suspects: tuple = ()
    change: Hypothesis | None = None


def find_place(trials, family, found):
    """The Place where one edit makes a wrong answer right in all core cases, or in all cases if it is right in those,
    as a Pointed; one with the suspects if none of the edits tried does.

    family: of the answer; found: the Findings of its attempts
    """
    failed = [n for n, finding in enumerate(found) if not finding.right]
    core = [n for n, finding in enumerate(found) if not finding.case.extended]
    wanted = core if set(core) & set(failed) else list(range(len(found)))
    if not family.trees or not failed:
        return Pointed()
    with unheard(), guarded(), without_huge_arrays(trials.cases), unwarned():
        if not _runs_again_alike(trials, family, found, failed[0]):
            if family.is_decorated:  # the mistake may be in the decorator
                return Pointed()
            # only an edit that makes all right says something
            edit = Search(trials, family, found, [*range(len(found))]).one_edit()
            return Pointed(edit and _place(family, edit))
        pointed = _place_in(trials, family, found, wanted)
        changing = next((f.case for f in found if f.tried.changed), None)
        if changing is None:
            return pointed
        line = line_of_change(trials.exercise, family.answer, changing)
        return replace(pointed, change=_change(family, line))


def _runs_again_alike(trials, family, found, number):
    """Whether an answer gives once more in a case what it gave when it was judged."""
    answer, _ = family.compiled()
    results, before = trials.results_of(answer, number)[0] if answer else None, found[number].results
    if answer is None or results is None or before is None:
        return answer is not None and results is before
    pairs = zip(results, before, strict=True)
    return all(a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


def _change(family, line):
    """The Hypothesis that the statement at a line of the student's code writes into an argument, or None."""
    statements = [n for tree in family.trees.values() for n in ast.walk(tree) if isinstance(n, ast.stmt)]
    there = [n for n in statements if line and n.lineno <= line <= n.end_lineno]
    node = max(there, key=lambda n: n.lineno, default=None)
    return node and Hypothesis(None, f"Line {line} changes it", node=node, marks={line: family.marked(node)})


def _place_in(trials, family, found, wanted):
    wrong = [n for n in wanted if found[n].wrong != [] and not found[n].case.raises]
    sides = Sides(trials, family, found, wrong) if wrong else None
    cells = Cells(trials, [finding for finding in found if not finding.case.raises])
    named = Cover(cells, is_alone=True).picked if cells.wrong else []
    listed = [h.name for h in named if h.name in trials.exercise.mistakes]
    suspects = suspects_of(sides, listed) if sides else []
    search = Search(trials, family, found, wanted, named, sides, suspects)
    edit, second = search.one_edit(), None
    if not edit and sides:
        edit, second = _two_edits(search, cells, named)
    if edit and not _makes_up(edit, sides, listed):
        place = replace(_place(family, edit), is_core=search.leaves(edit))
        return Pointed(replace(place, changes=2, second=about(second)) if second else place)
    shown = to_show(sides, suspects, named) if sides else []
    return Pointed(suspects=tuple(shown))


def _two_edits(search, cells, named):
    """Two Edits that together make all right as one Edit, and the second of them: the first undoes a named mistake
    where it alone is made, the second is made beside it; or None, None."""
    for h in named:
        own, wanted = cells.covered((h,)), {}
        for i, label in own:
            for n in {*cells.labels[label]} & {*search.numbers}:
                wanted.setdefault(n, set()).update({i} - {NOTHING})
        if not wanted or own == cells.wrong:
            continue
        first = search.like([h], wanted).one_edit()
        if first is None or first.kind in (MOVE, ORDER):
            continue
        first.make()
        try:
            second = search.like((), beside=first).one_edit()
        finally:
            first.undo()
        if second and second.kind not in (MOVE, ORDER):
            return replace(first, also=(*first.also, replace(second, also=()), *second.also)), second
    return None, None


def _makes_up(edit, sides, named):
    """Whether an edit adds something to a returned variable that is wrong from its making on, or hides the NaN of one
    of some named mistakes."""
    if named and "nan_to_num" in ast.unparse(edit.new):
        return True
    is_returned = isinstance(edit.node, ast.Name) and isinstance(edit.parent, ast.Return | ast.Tuple)
    is_added = is_returned and edit.kind in INVENTED and not edit.also
    return bool(sides) and is_added and edit.node not in sides.fine_in(sides.failed[0], False)


# --- what the student sees --------------------------------------------------------------------------------------------


def _place(family, edit):
    node = edit.node
    is_attribute = edit.kind == "function" and isinstance(node, ast.Attribute) and node.lineno == node.end_lineno
    shown, before, rest = family.parts(node, is_attribute)
    others = [other.node for other in edit.also if edit.kind != MOVE]
    marks = _together([(node.lineno, shown), *((other.lineno, family.marked(other)) for other in others)])
    one = Hypothesis(edit.kind, about(edit), node=node, marks=marks)
    if edit.kind == OTHER:
        return Place(one)
    if edit.also:
        return Place(one, 1 if edit.is_exchange else 1 + len(others), _repaired(family, edit))
    repair = f"{before.strip() and before.lstrip()}{_written(edit)}{rest}"
    return Place(one, repair=indent(repair, "    ").rstrip())


def _written(edit):
    """The code that an edit puts in the place of its node."""
    new = edit.new
    if isinstance(new, ast.If) and isinstance(new.test, ast.Constant):  # a copy before the line
        return "\n".join(ast.unparse(part) for part in new.body)
    needs_brackets = isinstance(new, ast.BinOp | ast.UnaryOp | ast.Compare) and isinstance(
        edit.parent, ast.BinOp | ast.UnaryOp | ast.Attribute | ast.Compare | ast.Subscript
    )
    return f"({ast.unparse(new)})" if needs_brackets else ast.unparse(new)


def _repaired(family, edit):
    """A line after an edit of several of its places; "" if they are in several lines, or one in another."""
    parts = sorted((edit, *edit.also), key=lambda part: part.node.col_offset)
    begins, ends = [part.node.col_offset for part in parts], [part.node.end_col_offset for part in parts]
    is_one = {line for part in parts for line in (part.node.lineno, part.node.end_lineno)} == {edit.node.lineno}
    if edit.kind == MOVE or not is_one or any(end > begin for end, begin in zip(ends, begins[1:], strict=False)):
        return ""
    line = family.lines[edit.node.lineno - 1].encode()
    for part, begin, end in zip(parts[::-1], begins[::-1], ends[::-1], strict=True):
        line = line[:begin] + _written(part).encode() + line[end:]
    return indent(line.decode().strip(), "    ")
