"""The search for one edit that makes an answer right. Its line is where the mistake is, and that is proof.

The search is bounded by an amount of work, never by time: the number of calls that the interpreter counts in one
attempt says how many edits may be tried.
"""

import ast
from dataclasses import dataclass, replace

import numpy as np

from .about_edit import about, about_numbers
from .attempt import arrays_of, attempt, guarded, unheard, work_of
from .cells import Cells
from .changes import line_of_change
from .compare import close
from .cover import Cover
from .edit import MOVES
from .edits import edits_of
from .family import MOST_STEPS, Family, family_with, without_huge_arrays
from .finding import Finding
from .sides import MOST_VALUES, Sides
from .suspect import suspects_of
from .syntax import lines_behind
from .tokens import change_of, undone_by
from .traced import Traced

MOST_EDITS, MOST_BESIDE = 750, 300  # without and with a suspicious line
WORK = 1_500_000  # of all edited answers together, in units of `work_of`
MOST_FIRST, MOST_SECOND = 1, 200  # of two edits
MORE_STEPS = 20  # than twice as many as without an edit
INVENTED = ("missing function", "missing factor", "missing term")  # edits that may make up for another mistake
LARGE = 5000  # numbers in the arguments of a case


@dataclass(frozen=True)
class Place:
    """Where an answer can be made right.

    kind: the kind of the edit, as in `KINDS`; about: a sentence on it; line: its number; shown: with a mark below
    repair: the line after the edit, "" if the edit changes other lines too
    also: the Place of a second edit that is needed too, or None; is_core: whether cases that are not core stay wrong
    before: (line, shown) of the statements that make the returned variable to which the edit adds something
    """

    kind: str
    about: str
    line: int
    shown: str
    repair: str
    also: "Place | None" = None
    is_core: bool = False
    before: tuple = ()


@dataclass(frozen=True)
class Pointed:
    """What is known about the lines of a wrong answer: its Place, or else Suspects, with the Sides to look further.

    mended: the Places of edits that each undo one of several named mistakes
    change: if it changes an argument, the line that does, and its number
    """

    place: Place | None = None
    suspects: tuple = ()
    sides: Sides | None = None
    mended: tuple = ()
    change: tuple = ("", None)


def find_place(trials, answer, found):
    """The Place where one edit makes a wrong answer right in all core cases, or in all cases if it is right in those,
    or the two places of two edits, as a Pointed; one with the Suspects if none of the edits tried does.

    found: the Findings of the answer's attempts
    """
    family = Family(answer)
    failed = [n for n, finding in enumerate(found) if not finding.right]
    core = [n for n, finding in enumerate(found) if not finding.case.extended]
    wanted = core if set(core) & set(failed) else list(range(len(found)))
    if not family.trees or not failed:
        return Pointed()
    with unheard(), guarded(), without_huge_arrays(trials.cases):
        if not _runs_again_alike(trials, family, found, failed[0]):
            return Pointed()  # what a changed answer gives would say nothing
        pointed = _place_in(trials, family, found, failed, wanted)
        changing = next((f.case for f in found if f.tried.changed), None)
        line = line_of_change(trials.exercise, answer, changing) if changing else None
        return replace(pointed, change=_shown_line(family, line))


def _runs_again_alike(trials, family, found, number):
    """Whether an answer gives once more in a case what it gave when it was judged."""
    answer, _ = family.compiled()
    if answer is None:
        return False
    results, before = trials.results_of(answer, number)[0], found[number].results
    if results is None or before is None:
        return results is before
    return all(
        a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for a, b in zip(results, before, strict=True)
    )


def _shown_line(family, line):
    """The statement at a line of the student's code with a mark below it, and its number; ("", None)."""
    statements = [n for tree in family.trees.values() for n in ast.walk(tree) if isinstance(n, ast.stmt)]
    there = [n for n in statements if line and n.lineno <= line <= n.end_lineno]
    return (family.marked(max(there, key=lambda n: n.lineno)), line) if there else ("", None)


def _place_in(trials, family, found, failed, wanted):
    wrong = [n for n in wanted if found[n].wrong != [] and not found[n].case.raises]
    sides = Sides(trials, family, found, wrong) if wrong else None
    cells = Cells(trials, [finding for finding in found if not finding.case.raises])
    named = Cover(cells, is_alone=True).picked if cells.wrong else []
    suspects = suspects_of(sides, [h.name for h in named if h.name in trials.exercise.mistakes]) if sides else []
    search = _Edits(trials, family, found, wanted, suspects, undone_by(trials, named))
    edit, after = search.one_edit(found)
    if edit:
        said = about_numbers(edit, sides) or about(edit)
        fine = sides.fine_in(wrong[0], False) if sides else ()
        writes = sides.writes(edit.node, wrong[0], False) if sides and edit.node not in fine else ()
        writes = [s for s in writes if s.value not in fine or s is writes[-1]] if _adds_to_result(edit) else ()
        before = tuple((s.lineno, family.marked(s)) for s in writes if s.lineno != edit.node.lineno)
        return Pointed(replace(_place(family, edit), about=said, is_core=bool(after), before=before))
    for first, better in search.partly_right():
        first.make()
        try:
            second, after = search.one_edit(better)
            places = second and [replace(_place(family, edit), is_core=bool(after)) for edit in (first, second)]
        finally:
            first.undo()
        if places and second.kind not in MOVES:
            one, other = sorted(places, key=lambda place: place.line)
            return Pointed(replace(one, also=other))
    mended = _mended(trials, family, cells, suspects, named) if len(named) > 1 else ()
    return Pointed(suspects=tuple(suspects), sides=sides, mended=mended)


def _mended(trials, family, cells, suspects, named):
    """The Places of edits with which the answer gives what a right one with all of some mistakes but one gives."""
    places = {}
    numbers = [n for n, f in enumerate(cells.found) if f.wrong is not None and not cells.unlike(named, n)]
    for one in named:
        others = [h for h in named if h is not one]
        expected = {n: cells.run(others, n)[0] for n in numbers}
        expected = {n: results for n, results in expected.items() if results is not None}
        found = [cells.found[n].against(expected[n]) if n in expected else f for n, f in enumerate(cells.found)]
        if any(found[n].wrong for n in expected):
            search = _Edits(trials, family, found, [*expected], suspects, undone_by(trials, [one]), expected)
            edit, _ = search.one_edit(found)
            if edit:
                places.setdefault(edit.node.lineno, _place(family, edit))
    return tuple(places[line] for line in sorted(places))


def _adds_to_result(edit):
    """Whether an edit adds a factor, a term or a function to a variable that is returned, which may be wrong where it
    is computed."""
    is_returned = isinstance(edit.node, ast.Name) and isinstance(edit.parent, ast.Return | ast.Tuple)
    return edit.kind in INVENTED and is_returned and not edit.also


def _numbers_in(output, depth=2):
    """How many numbers there are in arrays and lists of arrays; a list may hold itself."""
    if depth and isinstance(output, list | tuple):
        return sum(_numbers_in(part, depth - 1) for part in output)
    return output.size if isinstance(output, np.ndarray) else 1


def _lines_of_crash(finding):
    crash = finding.tried.crash
    if not crash:
        return ()
    return {int(part.split(",")[0]) for part in crash.trace.split(", line ")[1:] if part.split(",")[0].isdigit()}


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


class _Edits:
    """numbers: of the cases that must become right; undone: what the edit should change, a Counter of tokens
    expected: {number: the results that are right}, if they are others than the reference's
    """

    def __init__(self, trials, family, found, numbers, suspects, undone=None, expected=None):
        self.undone, self.expected = undone, dict(enumerate(trials.expected)) | (expected or {})
        self.trials, self.family, self.numbers = trials, family, numbers
        self._has_broken_rules = any(finding.tried.broken for finding in found)
        self.suspects = {line for suspect in suspects for line in suspect.lines}
        self._better = []  # (number of results that an edit makes right, the edit, the Findings with it)
        self.left, self._work = 0, 1
        self.numbers.sort(key=self._size)
        case = trials.cases[self.numbers[0]]
        of_right = family_with(trials.exercise, ())  # whose loops may go on for longer than the wrong ones
        self._usual = max(self._steps(family), self._steps(of_right) if of_right else 0)  # of all loops in a case
        family.most_steps = 2 * self._usual + MORE_STEPS
        work = work_of(lambda: attempt(trials.exercise, family.answer, case, is_trial=True), case)
        of_edit = family.work_of_edit
        self._most = min(
            MOST_BESIDE if suspects else MOST_EDITS, max(20, min(WORK, trials.beside // 2) // (work + of_edit))
        )
        self.left, self._work = self._most, work + of_edit  # edits that may be tried
        self._of_a_case = work / (work + of_edit)  # the share of one case in the work for an edit

    def _spend(self, edits):
        self.left -= edits
        self.trials.left -= int(edits * self._work)

    def _steps(self, family):
        """The most steps that the loops of an answer take in a case."""
        answer, steps = family.compiled()
        most = 0
        for number in self.numbers if answer is not None else ():
            self._finding(answer, steps, number)
            most = max(most, steps.taken)
        return most

    def one_edit(self, found):
        """The edit that makes every case right, or None, and what `after` says of it.

        found: the Findings without it, by number
        """
        self.found, self._before = found, self._right_in(found)
        wrong = sorted((n for n in self.numbers if not found[n].right), key=self._size)
        self._order = wrong + [n for n in self.numbers if n not in wrong]
        for edit in self._edits():
            if self._makes_right(edit) and self._is_tried(edit) and self._is_proof(after := self.after(edit)):
                smallest = self._smallest(edit)
                return smallest, after if smallest is edit else self.after(smallest)
        return None, ()

    def _is_tried(self, edit):
        """Whether a condition that an edit changes is true in some places and false in others of the cases that are
        right with it: an edit that only avoids what is never asked for is no proof."""
        if edit.kind == "function" and edit.field != "test":  # any or all
            return True
        edit.make()
        try:
            test = next((n for tree in self.family.trees.values() for n in _conditions(tree) if _holds(n, edit)), None)
            if test is None:
                return True
            traced, seen = Traced(self.trials, self.family, MOST_VALUES), set()
            for number in range(len(self.found)):
                results = traced.results(number)
                if results is not None and all(map(close, results, self.expected[number])):
                    seen |= {bool(part) for value in traced.of.get(test, ()) for part in np.ravel(value)[:MOST_VALUES]}
            return len(seen) == 2
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

    def _size(self, number):
        """What a case costs: cases with a similar number of numbers cost the same."""
        return sum(array.size for array in arrays_of(self.trials.cases[number])) // LARGE

    def _edits(self):
        """All edits that may be tried: first those of the lines of a crash, of the suspicious lines and of those before
        them, the smallest first."""
        lines, last = _lines_of_crash(self.found[self._order[0]]), max(self.suspects, default=0)
        wrong = {i for n in self.numbers for i in self.found[n].wrong or ()}
        others = lines_behind(self.family, wrong) if wrong and not last else {}

        def unlikeliness(edit):
            line = getattr(edit.node, "lineno", 0)
            level = 0 if line in self.suspects else 1 if line < last or not last else 9
            return line not in lines, self._distance(edit), edit.group + others.get(line, level)

        edits = [edit for tree in self.family.trees.values() for edit in edits_of(tree, self.trials.exercise.given)]
        for edit in sorted(edits, key=unlikeliness):
            if self.left <= 0:
                return
            self._spend(1)
            yield edit

    def _distance(self, edit):
        """How far an edit is from what undoes the named mistakes, 0 or below: the nearer, the lower."""
        if not self.undone:
            return 0
        change = change_of(edit)
        left = sum(abs(self.undone[token] - change[token]) for token in {*self.undone, *change})
        return min(0, left - sum(map(abs, self.undone.values())))

    def _makes_right(self, edit):
        """Whether an edit makes every case right. One that makes some of the wrong results right, and no right one
        wrong, is noted."""
        edit.make()
        try:
            answer, steps = self.family.compiled()
            if answer is None:
                return False
            first = self._finding(answer, steps, self._order[0])
            self._spend(self._of_a_case * max(0, steps.taken / max(1, self._usual) - 1))
            if not first.right and not self._is_better(first, self.found[self._order[0]]):
                return False
            for number in self._order[1:] if first.right else ():
                self._spend(self._of_a_case)
                if not self._finding(answer, steps, number).right:
                    break
            else:
                if first.right:
                    return True
            self._spend(self._of_a_case * len(self.numbers))
            now = [
                self._finding(answer, steps, n) if n in self.numbers else self.found[n] for n in range(len(self.found))
            ]
            right = self._right_in(now)
            if right > self._before and edit.kind not in MOVES:
                self._better.append((len(right), edit, now))
            return False
        finally:
            edit.undo()

    def _is_proof(self, after):
        """Whether no result that is wrong after an edit was right, or is wrong otherwise than before: it may only avoid
        what the core cases ask for."""
        for now, before in zip(after, self.found, strict=False):
            if now.wrong and before.wrong is not None and not all(map(close, now.results, before.results)):
                return False
        return True

    def after(self, edit):
        """The Findings of all cases with an edit, if some are wrong that need not become right, or else ()."""
        if len(self.numbers) == len(self.found):  # which the edit makes right
            return ()
        edit.make()
        self.family.most_steps = MOST_STEPS
        try:
            answer, steps = self.family.compiled()
            found = tuple(self._finding(answer, steps, number) for number in range(len(self.found)))
        finally:
            edit.undo()
        return found if any(finding.wrong != [] for finding in found) else ()

    @staticmethod
    def _is_better(now, before):
        if now.wrong is None or before.wrong is None:
            return now.wrong is not None
        return set(now.wrong) < set(before.wrong)

    def _right_in(self, found):
        """{(label, result)} that are right in all draws"""
        results = range(len(self.trials.exercise.results))
        wrong = {(f.case.label, i) for f in found for i in results if f.wrong is None or i in f.wrong}
        return {(f.case.label, i) for f in found for i in results} - wrong

    def partly_right(self):
        """(edit, Findings with it) of the edits that make most of the wrong results right."""
        better, self._better = sorted(self._better, key=lambda item: -item[0]), []
        self.left = min(MOST_SECOND, self._most // 2) * min(len(better), MOST_FIRST)
        for _, edit, found in better[:MOST_FIRST]:
            yield edit, found

    def _finding(self, answer, steps, number):
        trials, case = self.trials, self.trials.cases[number]
        steps.begin()
        tried = attempt(trials.exercise, answer, case, is_trial=not self._has_broken_rules)
        results = trials.results(case, tried)
        self._spend(_numbers_in(tried.output) / 10 / self._work)
        return Finding(trials.exercise, case, tried, results, self.expected[number], trials.shares[number])


# --- what the student sees --------------------------------------------------------------------------------------------


def _place(family, edit):
    node, new = edit.node, edit.new
    is_attribute = edit.kind == "function" and isinstance(node, ast.Attribute) and node.lineno == node.end_lineno
    shown, before, rest = family.parts(node, is_attribute)
    text = ast.unparse(new)
    if isinstance(new, ast.If) and isinstance(new.test, ast.Constant):  # a copy before the line
        text = "\n    ".join(ast.unparse(part) for part in new.body)
    needs_brackets = isinstance(new, ast.BinOp | ast.UnaryOp | ast.Compare) and isinstance(
        edit.parent, ast.BinOp | ast.UnaryOp | ast.Attribute | ast.Compare | ast.Subscript
    )
    others = [other.node for other in edit.also if edit.kind not in MOVES and other.node.lineno != node.lineno]
    also = None
    for other in list({other.lineno: other for other in others}.values())[::-1]:
        also = Place(edit.kind, "", other.lineno, family.marked(other), "", also)
    if edit.also:
        return Place(edit.kind, about(edit), node.lineno, shown, "", also)
    repair = f"    {before.strip() and before.lstrip()}{f'({text})' if needs_brackets else text}{rest}"
    return Place(edit.kind, about(edit), node.lineno, shown, repair.rstrip())
