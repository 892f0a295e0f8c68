"""The search for one edit that makes an answer right. Its line is where the mistake is, and that is proof.

The search is bounded by an amount of work, never by time: the number of calls that the interpreter counts in one
attempt says how many edits may be tried.
"""

import ast
import re
from copy import copy
from dataclasses import replace
from functools import cache

import numpy as np

from .attempt import attempt, work_of
from .compare import close
from .edit import MOVES, ORDER, Tokens, parameters
from .edits import edits_of
from .family import MOST_STEPS, OF_A_STEP, family_with
from .finding import Finding
from .sides import MOST_VALUES
from .syntax import name_of
from .traced import Traced


class Search:
    """numbers: of the cases that must become right; undone: what the edit should change, a Counter of tokens
    sides: what is known of the answer's values, or None; suspects: of its lines
    """

    def __init__(self, trials, family, found, numbers, undone=None, sides=None, suspects=()):
        self.trials, self.family, self.numbers = trials, family, numbers
        self.undone, self.expected = undone, trials.expected
        self._has_broken_rules = any(finding.tried.broken for finding in found)
        self._suspects, self._last = _lines_around(family, suspects)
        self._suspects |= sides.only_wrong if sides else set()
        self._kinds = sides.kinds if sides else {}
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
            is_near = line in self._suspects or edit.kind == "order of results"  # which no value tells
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
        own, other = self._kinds.get(edit.node), self._kinds.get(getattr(new, "id", None))
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
