"""The search for one edit that makes an answer right. Its line is where the mistake is, and that is proof.

The search is bounded by an amount of work, never by time: the number of calls that the interpreter counts in one attempt
says how many edits may be tried.
"""

import ast
import contextlib
import io
import sys
from dataclasses import dataclass

from ..judging.attempt import attempt, guarded_numpy
from ..judging.judge import Finding
from .code import Family
from .edits import KINDS, edits_of

MOST_EDITS = 900
USUAL = 400
WORK = 150_000  # calls that the interpreter counts, in all edited answers together


@dataclass(frozen=True)
class Place:
    """Where an answer can be made right.

    kind: the kind of the edit, as in `KINDS`; line: its number; shown: the line with a mark below it
    repair: the line after the edit
    """

    kind: str
    line: int
    shown: str
    repair: str

    @property
    def about(self):
        return KINDS[self.kind]


def find_place(trials, answer, found):
    """The Place where one edit makes a wrong answer right in all core cases, or in all cases if it is right in those;
    None if none of the edits tried does. found: the Findings of the answer's attempts"""
    family = Family(answer)
    failed = [n for n, finding in enumerate(found) if not finding.right]
    core = [n for n, finding in enumerate(found) if not finding.case.extended]
    wanted = core if set(core) & set(failed) else list(range(len(found)))
    numbers = [n for n in wanted if n in failed] + [n for n in wanted if n not in failed]
    if not family.trees or not failed:
        return None
    search = _Search(trials, family, numbers)
    with contextlib.redirect_stdout(io.StringIO()), guarded_numpy():
        work = _calls_in(lambda: attempt(trials.exercise, answer, trials.cases[numbers[0]]))
        most = min(MOST_EDITS, max(20, WORK // max(work, 1)))
        lines = _lines_of_crash(found[failed[0]])
        for tree in family.trees.values():
            for edit in edits_of(tree, lines):
                if most <= 0:
                    return None
                most -= 1
                if search.makes_right(edit):
                    return _place(family, edit)
    return None


def _lines_of_crash(finding):
    crash = finding.tried.crash
    if not crash:
        return ()
    return {int(part.split(",")[0]) for part in crash.trace.split(", line ")[1:] if part.split(",")[0].isdigit()}


def _calls_in(function):
    """How many calls the interpreter counts in a function; USUAL under a profiler, which would be disturbed."""
    if sys.getprofile() is not None:
        return USUAL
    count = 0

    def on_event(*_):
        nonlocal count
        count += 1

    sys.setprofile(on_event)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


class _Search:
    def __init__(self, trials, family, numbers):
        self.trials, self.family, self.numbers = trials, family, numbers
        self.expected = trials.expected

    def makes_right(self, edit):
        ast.fix_missing_locations(ast.copy_location(edit.new, edit.node))
        edit.make()
        try:
            answer, steps = self.family.compiled()
            return answer is not None and all(self._is_right(answer, steps, number) for number in self.numbers)
        finally:
            edit.undo()

    def _is_right(self, answer, steps, number):
        trials, case = self.trials, self.trials.cases[number]
        steps.begin()
        tried = attempt(trials.exercise, answer, case)
        return Finding(trials.exercise, case, tried, trials.results(case, tried), self.expected[number]).right


# --- what the student sees --------------------------------------------------------------------------------------------


def _place(family, edit):
    node = edit.node
    first = node.value if isinstance(node, ast.keyword) else node
    line = family.lines[first.lineno - 1].rstrip("\n")
    begin, end = node.col_offset, first.end_col_offset
    if isinstance(node, ast.For | ast.While | ast.If) or first.end_lineno != node.lineno:
        begin, end = len(line) - len(line.lstrip()), len(line.encode())
    before, marked = line.encode()[:begin].decode(), line.encode()[begin:end].decode()
    if node.lineno != first.lineno:
        before, marked = "", line.strip()
    gap = len(line) - len(line.lstrip())
    shown = f"    {line.strip()}\n    {' ' * (len(before) - gap)}{'^' * max(len(marked), 1)}"
    new = edit.new
    rest = line.encode()[end:].decode() if first.end_lineno == first.lineno else ""
    text = ast.unparse(new)
    if isinstance(new, ast.If) and isinstance(new.test, ast.Constant):  # a copy before the line
        text = "\n    ".join(ast.unparse(part) for part in new.body)
    needs_brackets = isinstance(new, ast.BinOp | ast.UnaryOp | ast.Compare) and isinstance(
        edit.parent, ast.BinOp | ast.UnaryOp | ast.Attribute | ast.Compare | ast.Subscript
    )
    repair = f"    {before.strip() and before.lstrip()}{f'({text})' if needs_brackets else text}{rest}"
    return Place(edit.kind, node.lineno, shown, repair.rstrip())
