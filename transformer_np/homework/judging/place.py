"""The search for one edit that makes an answer right. Its line is where the mistake is, and that is proof.

The search is bounded by an amount of work, never by time: the number of calls that the interpreter counts in one
attempt says how many edits may be tried.
"""

import ast
import re
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest
from textwrap import indent

import numpy as np

from ..guard import guarded, unheard
from .attempt import attempt, work_of
from .compare import close
from .cover import Cells, Cover, unwarned
from .edit import MOVES, ORDER, Tokens, about, parameters, undone_by
from .edits import edits_of
from .family import MOST_STEPS, OF_A_STEP, Family, family_with, without_huge_arrays
from .finding import Finding
from .hypothesis import Hypothesis
from .sides import MOST_VALUES, Sides
from .suspect import suspects_of, to_show
from .syntax import name_of
from .traced import Traced, line_of_change

INVENTED = ("missing function", "missing factor", "missing term")  # edits that may make up for another mistake


@dataclass(frozen=True)
class Place:
    """Where an answer can be made right.

    edits: a Hypothesis for each edit that this takes, in the order of their lines
    repair: the line after the edit, "" if other lines change too; is_core: whether other than core cases stay wrong
    """

    edits: tuple
    repair: str = ""
    is_core: bool = False

    @property
    def kind(self):
        return self.edits[0].name

    @property
    def line(self):
        return self.edits[0].line

    @property
    def count(self):
        return sum(len(one.marks) for one in self.edits)

    @property
    def marks(self):
        return _together(item for one in self.edits for item in one.marks.items())


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

    mended: the Places of edits that each undo one of several named mistakes
    change: if it changes an argument, the line that does, or None
    """

    place: Place | None = None
    suspects: tuple = ()
    mended: tuple = ()
    change: Hypothesis | None = None


def find_place(trials, answer, found):
    """The Place where one edit makes a wrong answer right in all core cases, or in all cases if it is right in those,
    or the two places of two edits, as a Pointed; one with the suspects if none of the edits tried does.

    found: the Findings of the answer's attempts
    """
    family = Family(answer)
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
            edit = _Edits(trials, family, found, [*range(len(found))], ()).one_edit(found)
            return Pointed(edit and _place(family, edit))
        pointed = _place_in(trials, family, found, wanted)
        changing = next((f.case for f in found if f.tried.changed), None)
        return replace(
            pointed, change=_change(family, line_of_change(trials.exercise, answer, changing)) if changing else None
        )


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
    return node and Hypothesis(None, f"Line {line} changes it", "student", node=node, marks={line: family.marked(node)})


def _place_in(trials, family, found, wanted):
    wrong = [n for n in wanted if found[n].wrong != [] and not found[n].case.raises]
    sides = Sides(trials, family, found, wrong) if wrong else None
    cells = Cells(trials, [finding for finding in found if not finding.case.raises])
    named = Cover(cells, is_alone=True).picked if cells.wrong else []
    suspects = suspects_of(sides, [h.name for h in named if h.name in trials.exercise.mistakes]) if sides else []
    search = _Edits(trials, family, found, wanted, suspects, undone_by(trials, named))
    if sides:
        search.suspects |= sides.only_wrong
        search.kinds = sides.kinds
    edit = search.one_edit(found)
    if edit and not _makes_up(edit, sides):
        return Pointed(replace(_place(family, edit), is_core=search.leaves(edit)))
    if place := None if edit else _two_edits(search, family):
        return Pointed(place)
    shown = to_show(sides, suspects, named) if sides else []
    is_told = not sides or len(named) < 2 or any(h.name for h in shown)  # where NaN occurs
    return Pointed(suspects=tuple(shown), mended=() if is_told else _mended(search, sides, cells, named))


def _two_edits(search, family):
    """The Place of the edit that makes most of the wrong results right and of another that makes all right, or None."""
    first, better = search.partly_right()
    if first is None:
        return None
    first.make()
    try:
        second = search.one_edit(better, first)
        if second is None or second.kind in MOVES or (second.kind == "number" and second.node is first.new):
            return None  # two edits of a number make any
        both = [*_place(family, first).edits, *_place(family, second).edits]
        return Place(tuple(sorted(both, key=lambda h: h.line)), is_core=search.leaves(second))
    finally:
        first.undo()


def _makes_up(edit, sides):
    """Whether an edit adds something to a returned variable that is wrong from its making on."""
    is_returned = isinstance(edit.node, ast.Name) and isinstance(edit.parent, ast.Return | ast.Tuple)
    is_added = is_returned and edit.kind in INVENTED and not edit.also
    return bool(sides) and is_added and edit.node not in sides.fine_in(sides.failed[0], False)


def _mended(search, sides, cells, named):
    """The Places of edits with which the answer gives what a right one with all of some mistakes but one gives."""
    places, trials, family = {}, cells.trials, sides.family
    numbers = [n for n, f in enumerate(cells.found) if f.wrong is not None and cells.is_like(named, n)]
    for one in named:
        others = [h for h in named if h is not one]
        expected = {n: cells.run(others, n)[0] for n in numbers if cells.compatible(others)}
        expected = {n: results for n, results in expected.items() if results is not None}
        found = [cells.found[n].against(expected[n]) if n in expected else f for n, f in enumerate(cells.found)]
        if any(found[n].wrong for n in expected):
            edit = search.towards(expected, undone_by(trials, [one])).one_edit(found)
            if edit and not _makes_up(edit, sides):
                places.setdefault(edit.node.lineno, _place(family, edit))
    return tuple(places[line] for line in sorted(places))


class _Edits:
    """numbers: of the cases that must become right; undone: what the edit should change, a Counter of tokens
    kinds: those of the values of nodes and variables, as `Sides.kinds`
    """

    def __init__(self, trials, family, found, numbers, suspects, undone=None):
        self.trials, self.family, self.numbers = trials, family, numbers
        self.undone, self.expected = undone, trials.expected
        self._has_broken_rules = any(finding.tried.broken for finding in found)
        self.kinds, (self.suspects, self._last) = {}, _lines_around(family, suspects)
        self._with = {}  # {edit: the Findings of all cases}
        self._better = []  # (number of results that an edit makes right, the edit, the Findings with it)
        self._work, self._usual, case = 0, 1, trials.cases[self.numbers[0]]
        of_right = family_with(trials.exercise, ())  # whose loops may go on for longer than the wrong ones
        self._listed = cache(lambda first: self._all_edits(parameters(of_right) if of_right else set()))
        self._usual = max(1, self._steps(family), self._steps(of_right) if of_right else 0)  # of all loops in a case
        family.most_steps = 2 * self._usual + 20
        self._work = work_of(lambda: attempt(trials.exercise, family.answer, case, is_trial=True), case)
        self._work += OF_A_STEP * self._usual
        self._of_edit = family.work_of_edit
        self._allowed = self._affordable()

    def _affordable(self):
        """The work that a search may take now."""
        of_one = self._work + self._of_edit
        return of_one * self.trials.most(of_one)

    def _steps(self, family):
        """The most steps that the loops of an answer take in a case."""
        has_loops = any(isinstance(n, ast.For | ast.While) for tree in family.trees.values() for n in ast.walk(tree))
        answer, steps = family.compiled() if has_loops else (None, None)
        most = 0
        for number in self.numbers if answer is not None else ():
            self._finding(answer, steps, number)
            most = max(most, steps.taken)
        return most

    def towards(self, expected, undone):
        """The same search for an edit with which cases give what is expected of them, {number: results}"""
        other = copy(self)
        other.numbers, other.expected = [*expected], {**dict(enumerate(self.expected)), **expected}
        other.undone, other._with, other._better, other._allowed = undone, {}, [], self._affordable()
        return other

    def one_edit(self, found, first=None):
        """The edit that makes every case right, or None.

        found: the Findings without it, by number; first: another edit that is made already
        """
        self.found, self._before = found, self._right_in(found)
        wrong = [n for n in self.numbers if not found[n].right]
        self._order = wrong + [n for n in self.numbers if n not in wrong]
        least = self.trials.left - self._allowed // (2 if first else 1)
        for edit in self._edits(first):
            if self.trials.left <= least:
                return None
            if self._makes_right(edit) and self._is_tried(edit) and self._is_proof(edit):
                return self._smallest(edit)
        return None

    def _edits(self, first):
        """All edits: those of the lines of a crash, those that undo a named mistake, those of the suspicious lines and
        of the ones before them, the smallest first."""
        crash = self.found[self._order[0]].tried.crash
        lines = {int(part) for part in re.findall(r", line (\d+)", crash.trace)} if crash else ()
        edits, change_of = self._listed(first)

        def unlikeliness(edit):
            line = getattr(edit.node, "lineno", 0)
            is_near = line in self.suspects or edit.kind == "order of results"  # which no value tells
            level = 0 if is_near else 1 if line < self._last or not self._last else 9
            level = 9 if self._is_of_another_kind(edit) else level
            return edit.kind != ORDER, line not in lines, self._distance(edit, change_of), edit.group + level

        return sorted(edits, key=unlikeliness)

    def _all_edits(self, shared):
        """The edits of the answer as it is now, and what gives the tokens that each changes."""
        given, order = self.trials.exercise.given, self.trials.order
        edits = [edit for tree in self.family.trees.values() for edit in edits_of(tree, given, order)]
        return edits, cache(Tokens(self.family, shared).change_of)

    def _is_of_another_kind(self, edit):
        """Whether an edit puts a variable where values of another kind are, such as a list in the place of a number."""
        new = edit.new.right if edit.kind in ("missing term", "missing factor") else edit.new
        own, other = self.kinds.get(edit.node), self.kinds.get(getattr(new, "id", None))
        return bool(own) and bool(other) and not own & other

    def _distance(self, edit, change_of):
        """How far an edit is from what undoes the named mistakes, 0 or below: the nearer, the lower."""
        if self.undone is None or edit.kind in MOVES:
            return 0
        change = change_of(edit)
        if not self.undone:  # only the order changes
            return -1 if not any(change.values()) else 0
        return min(0, sum(abs(self.undone[token] - n) - abs(self.undone[token]) for token, n in change.items()))

    def _is_tried(self, edit):
        """Whether a condition that an edit changes is true in some places and false in others of the cases that are
        right with it: an edit that only avoids what is never asked for is no proof."""
        if edit.kind == "function" and edit.field != "test":  # any or all
            return True
        edit.make()
        try:
            test = next((n for tree in self.family.trees.values() for n in _conditions(tree) if _holds(n, edit)), None)
            traced, seen = Traced(self.trials, self.family, MOST_VALUES) if test is not None else None, set()
            for number in range(len(self.found)) if test is not None else ():
                if len(seen) == 2:
                    break
                results = traced.results(number)
                if results is not None and all(map(close, results, self.expected[number])):
                    seen |= {bool(part) for value in traced.of.get(test, ()) for part in np.ravel(value)[:MOST_VALUES]}
            return test is None or len(seen) == 2
        finally:
            edit.undo()

    def _smallest(self, edit):
        """An edit of several places without those that need none."""
        parts = [replace(edit, also=()), *edit.also]
        for part in parts if edit.kind not in MOVES else ():
            first, *others = [other for other in parts if other is not part] or parts
            fewer = replace(first, also=tuple(others))
            if len(others) + 1 < len(parts) and self._makes_right(fewer):
                edit, parts = fewer, [first, *others]
        return edit

    def _makes_right(self, edit):
        """Whether an edit makes every case right. One that makes some of the wrong results right, and no right one
        wrong, is noted."""
        first, *others = self._order
        edit.make()
        try:
            self.trials.left -= self._of_edit
            answer, steps = self.family.compiled()
            if answer is None:
                return False
            one = self._finding(answer, steps, first)
            if not one.right and not _is_better(one, self.found[first]):
                return False
            if one.right and all(self._finding(answer, steps, number).right for number in others):
                return True
            now = [self._finding(answer, steps, n) if n in self.numbers else f for n, f in enumerate(self.found)]
            right = self._right_in(now)
            if right > self._before and edit.kind not in MOVES:
                self._better.append((len(right), edit, now))
            return False
        finally:
            edit.undo()

    def _is_proof(self, edit):
        """Whether no result that is wrong after an edit was right, or is wrong otherwise than before: it may only avoid
        what the core cases ask for."""
        pairs = zip(self._after(edit), self.found, strict=False)
        pairs = [(now, before) for now, before in pairs if now.wrong and before.wrong is not None]
        return all(all(map(close, now.results, before.results)) for now, before in pairs)

    def leaves(self, edit):
        """Whether some cases are wrong with an edit that need not become right."""
        return any(finding.wrong != [] for finding in self._after(edit))

    def _after(self, edit):
        """The Findings of all cases with an edit, or () if it makes all of them right."""
        if len(self.numbers) == len(self.found):
            return ()
        if edit not in self._with:
            edit.make()
            usual, self.family.most_steps = self.family.most_steps, MOST_STEPS
            try:
                answer, steps = self.family.compiled()
                self._with[edit] = [self._finding(answer, steps, number) for number in range(len(self.found))]
            finally:
                edit.undo()
                self.family.most_steps = usual
        return self._with[edit]

    def _right_in(self, found):
        """{(label, result)} that are right in all draws"""
        results = range(len(self.trials.exercise.results))
        wrong = {(f.case.label, i) for f in found for i in results if f.wrong is None or i in f.wrong}
        return {(f.case.label, i) for f in found for i in results} - wrong

    def partly_right(self):
        """(the edit that makes most of the wrong results right, the Findings with it), or (None, None)."""
        return max(self._better, key=lambda item: item[0], default=(0, None, None))[1:]

    def _finding(self, answer, steps, number):
        trials, case = self.trials, self.trials.cases[number]
        steps.begin()
        tried = attempt(trials.exercise, answer, case, is_trial=not self._has_broken_rules)
        results = trials.results(case, tried)
        trials.left -= int(self._work * max(1, steps.taken / self._usual)) + _numbers_in(tried.output) // 10
        return Finding(trials.exercise, case, tried, results, self.expected[number], trials.shares[number])


def _lines_around(family, suspects):
    """({lines of suspects, and of the calls of helpers that they are in}, the last line that may run before them)"""
    lines, last = {line for suspect in suspects for line in suspect.marks}, 0
    calls = [node for tree in family.trees.values() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    left = [suspect.node for suspect in suspects]
    while left:
        node = left.pop()
        around = [n for tree in family.trees.values() for n in ast.walk(tree) if node in ast.walk(n)]
        last = max([last, node.lineno, *(n.end_lineno for n in around if isinstance(n, ast.For | ast.While))])
        names = [n.name for n in around if isinstance(n, ast.FunctionDef)]
        more = [call for call in calls if name_of(call.func) in names and call.lineno not in lines]
        lines |= {call.lineno for call in more}
        left += more
    return lines, last


def _is_better(now, before):
    if now.wrong is None or before.wrong is None:
        return now.wrong is not None
    return set(now.wrong) < set(before.wrong)


def _numbers_in(output, depth=2):
    """How many numbers there are in arrays and lists of arrays; a list may hold itself."""
    if depth and isinstance(output, list | tuple):
        return sum(_numbers_in(part, depth - 1) for part in output)
    return output.size if isinstance(output, np.ndarray) else 1


def _conditions(tree):
    """The conditions of `if` and the comparisons in a tree, the outer ones first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp):
            yield node.test
        elif isinstance(node, ast.Compare):
            yield node


def _holds(condition, edit):
    """Whether an edit that is made changes a condition."""
    changed = edit.new.test if edit.kind == "inverted" and isinstance(edit.new, ast.If | ast.IfExp) else edit.new
    return any(part is changed for part in ast.walk(condition))


# --- what the student sees --------------------------------------------------------------------------------------------


def _place(family, edit):
    node = edit.node
    is_attribute = edit.kind == "function" and isinstance(node, ast.Attribute) and node.lineno == node.end_lineno
    shown, before, rest = family.parts(node, is_attribute)
    others = [other.node for other in edit.also if edit.kind not in MOVES]
    marks = _together([(node.lineno, shown), *((other.lineno, family.marked(other)) for other in others)])
    edits = (Hypothesis(edit.kind, about(edit), "student", edit, node, marks),)
    if edit.also:
        return Place(edits, _repaired(family, edit))
    repair = f"{before.strip() and before.lstrip()}{_written(edit)}{rest}"
    return Place(edits, indent(repair, "    ").rstrip())


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
    if edit.kind in MOVES or not is_one or any(end > begin for end, begin in zip(ends, begins[1:], strict=False)):
        return ""
    line = family.lines[edit.node.lineno - 1].encode()
    for part, begin, end in zip(parts[::-1], begins[::-1], ends[::-1], strict=True):
        line = line[:begin] + _written(part).encode() + line[end:]
    return indent(line.decode().strip(), "    ")
