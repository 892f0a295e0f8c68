"""The search for one edit that makes an answer right. Its line is where the mistake is, and that is proof.

The search is bounded by an amount of work, never by time: the number of calls that the interpreter counts in one
attempt says how many edits may be tried.
"""

import ast
import re
from contextlib import contextmanager
from functools import cache

import numpy as np

from .attempt import attempt, work_of
from .edit import MOVE, ORDER, OTHER, Tokens, parameters, undone_by
from .edits import edits_of
from .family import MOST_STEPS, OF_A_STEP, family_with
from .finding import Finding
from .syntax import name_of, order_of
from .undoing import undoing


class Search:
    """numbers: of the cases that must become right; named: the Hypotheses whose mistakes the edit should undo
    sides: what is known of the answer's values, or None; suspects: of its lines
    wanted: {number: the results that must become right}, while none gets wrong, if not all must
    beside: an Edit that is made already, or None
    """

    def __init__(self, trials, family, found, numbers, named=(), sides=None, suspects=(), wanted=None, beside=None):
        self.trials, self.family, self.numbers, self.wanted = trials, family, numbers, wanted
        self._sides, self._beside = sides, beside
        self._listed = [h.name for h in named if h.name in trials.exercise.mistakes]
        self._undone, self.found = undone_by(trials, named), found
        self._has_broken_rules = any(finding.tried.broken for finding in found)
        self._suspects, self._last = _lines_around(family, suspects)
        self._suspects |= sides.only_wrong if sides else set()
        self._work, self._usual, case = 0, 1, trials.cases[self.numbers[0]]
        of_right = family_with(trials.exercise, ())  # whose loops may go on for longer than the wrong ones
        self._shared = parameters(of_right) if of_right else set()
        self._usual = max(1, self._steps(family), self._steps(of_right) if of_right else 0)  # of all loops in a case
        sizes = [array.size for n in numbers for array in trials.expected[n] or ()]
        family.most_steps = 2 * self._usual + max(sizes, default=0)  # a loop may go over all numbers
        self._work = work_of(lambda: attempt(trials.exercise, family.answer, case, is_trial=True), case)
        self._work += OF_A_STEP * self._usual
        wrong = [n for n in numbers if (not found[n].right if wanted is None else n in wanted)]
        self._order = wrong + [n for n in numbers if n not in wrong]
        self.leaves = cache(self.leaves)  # asked again of the edit that is found

    def like(self, named, wanted=None, beside=None):
        """The same search for another edit, in any line."""
        of = self.trials, self.family, self.found, self.numbers
        return Search(*of, named, self._sides, wanted=wanted, beside=beside)

    def _steps(self, family):
        """The most steps that the loops of an answer take in a case."""
        has_loops = any(isinstance(n, ast.For | ast.While) for tree in family.trees.values() for n in ast.walk(tree))
        answer, steps = family.compiled() if has_loops else (None, None)
        most = 0
        for number in self.numbers if answer is not None else ():
            self._finding(answer, steps, number)
            most = max(most, steps.taken)
        return most

    def one_edit(self):
        """The first edit that makes every case right, or None; a later one if that leaves no other case wrong."""
        of_edit, first = self.family.work_of_edit, None
        least = self.trials.left - (self._work + of_edit) * self.trials.most(self._work + of_edit)
        for edit in self._edits():
            if self.trials.left <= least:
                break
            self.trials.left -= of_edit
            if self._makes_right(edit):
                if self.wanted or not self.leaves(edit):
                    return edit
                if first is None or first.kind == MOVE:  # which may only take a line out of effect
                    first = edit
        return first

    def _edits(self):
        """All edits: those of the lines of a crash, those that undo a named mistake, those of the suspicious lines and
        of the ones before them, the smallest first."""
        crash, trials = self.found[self._order[0]].tried.crash, self.trials
        lines = {int(part) for part in re.findall(r", line (\d+)", crash.trace)} if crash else ()
        first, *helpers = self.family.trees.values()
        edits = edits_of(first, trials.exercise.given, order_of(trials.exercise, first))
        edits = [*edits, *(edit for tree in helpers for edit in edits_of(tree))]
        pairs = [(name, tree) for name in self._listed for tree in self.family.trees.values()]
        edits += [edit for name, tree in pairs for edit in undoing(trials.exercise, name, tree)]
        parts = (self._beside, *self._beside.also) if self._beside else ()
        made = {n for part in parts for n in ast.walk(part.new) if isinstance(n, ast.expr | ast.stmt)}
        edits = [edit for edit in edits if made.isdisjoint(ast.walk(edit.node))] if made else edits
        change_of = cache(Tokens(self.family, self._shared).change_of)

        def unlikeliness(edit):
            line = getattr(edit.node, "lineno", 0)
            is_near = line in self._suspects or line in lines or edit.kind == "order of results"  # which no value tells
            level = 0 if is_near else 2 if lines else 1 if line < self._last or not self._last else 9
            return edit.kind != ORDER, self._distance(edit, change_of), edit.group + level

        return sorted(edits, key=unlikeliness)

    def _distance(self, edit, change_of):
        """How far an edit is from what undoes the named mistakes, 0 or below: the nearer, the lower."""
        if self._undone is None or edit.kind in (MOVE, OTHER):
            return 0
        change = change_of(edit)
        if not self._undone:  # only the order changes
            return -1 if not any(change.values()) else 0
        return min(0, sum(abs(self._undone[token] - n) - abs(self._undone[token]) for token, n in change.items()))

    def _makes_right(self, edit):
        """Whether an edit makes every case right, or what is wanted of it."""
        with self._made(edit) as (answer, steps):
            return answer is not None and all(self._is_mended(answer, steps, number) for number in self._order)

    def _is_mended(self, answer, steps, number):
        after, before = self._finding(answer, steps, number), self.found[number].wrong
        if self.wanted is None:
            return after.right
        mended = self.wanted.get(number)
        if after.wrong is None or before is None:  # no results
            return after.wrong == (before if mended is None else [])
        return {*after.wrong} <= {*before} - (mended or set())

    def leaves(self, edit):
        """Whether some cases are wrong with an edit that need not become right."""
        others, usual = {*range(len(self.found))} - {*self.numbers}, self.family.most_steps
        if not others:
            return False
        self.family.most_steps = MOST_STEPS
        with self._made(edit) as (answer, steps):
            self.family.most_steps = usual
            return any(self._finding(answer, steps, number).wrong != [] for number in others)

    @contextmanager
    def _made(self, edit):
        """Inside the block, the answer with an edit and its steps."""
        edit.make()
        try:
            yield self.family.compiled()
        finally:
            edit.undo()

    def _finding(self, answer, steps, number):
        trials, case = self.trials, self.trials.cases[number]
        steps.begin()
        tried = attempt(trials.exercise, answer, case, is_trial=not self._has_broken_rules)
        results = trials.results(case, tried)
        trials.left -= int(self._work * max(1, steps.taken / self._usual)) + _numbers_in(tried.output) // 10
        return Finding(trials.exercise, case, tried, results, trials.expected[number], trials.shares[number])


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


def _numbers_in(output, depth=2):
    """How many numbers there are in arrays and lists of arrays; a list may hold itself."""
    if depth and isinstance(output, list | tuple):
        return sum(_numbers_in(part, depth - 1) for part in output)
    return output.size if isinstance(output, np.ndarray) else 1
