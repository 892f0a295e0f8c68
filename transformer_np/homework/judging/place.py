"""The search for one edit that makes an answer right. Its line is where the mistake is, and that is proof.

The search is bounded by an amount of work, never by time: the number of calls that the interpreter counts in one
attempt says how many edits may be tried.
"""

import ast
import contextlib
import io
from dataclasses import dataclass

from .attempt import attempt, calls_in, guarded
from .compare import close
from .edits import KINDS, edits_of
from .family import NUDGE, Family
from .ignored import arrays_of
from .judge import Finding

MOST_EDITS = 900
WORK = 600_000  # calls that the interpreter counts, in all edited answers together
OF_AN_EDIT = 600  # as many calls take as long as making it
NUMBERS_OF_A_CALL = 10  # as many numbers in the arguments take as long as a call


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
    with contextlib.redirect_stdout(io.StringIO()), guarded():
        work = calls_in(lambda: attempt(trials.exercise, answer, trials.cases[numbers[0]]))
        work += sum(array.size for array in arrays_of(trials.cases[numbers[0]])) // NUMBERS_OF_A_CALL
        most = min(MOST_EDITS, max(20, WORK // (work + OF_AN_EDIT)))
        likely = search.likely_statements(found)
        for edit in _in_order(family, likely, _lines_of_crash(found[failed[0]])):
            if most <= 0:
                return None
            most -= 1
            if search.makes_right(edit):
                return _place(family, edit)
    return None


def _in_order(family, likely, lines):
    """All edits: first those of the lines of a crash and of the likely statements, the smallest first."""
    edits = [edit for tree in family.trees.values() for edit in edits_of(tree)]

    def unlikeliness(edit):
        line = getattr(edit.node, "lineno", 0)
        level = min((level for (first, last), level in likely.items() if first <= line <= last), default=1)
        return line not in lines, level

    return sorted(edits, key=lambda edit: (*unlikeliness(edit), edit.group))


def _lines_of_crash(finding):
    crash = finding.tried.crash
    if not crash:
        return ()
    return {int(part.split(",")[0]) for part in crash.trace.split(", line ")[1:] if part.split(",")[0].isdigit()}


class _Search:
    def __init__(self, trials, family, numbers):
        self.trials, self.family, self.numbers = trials, family, numbers

    def right_at(self, number):
        return self.trials.expected[number], self.trials.shares[number]

    def likely_statements(self, found):
        """{(first line, last line) of a statement: how unlikely it is to hold the mistake}.

        A small change of its value changes, in the first wrong case, 0: every wrong result and no right one; 1: some
        wrong ones and no right one; 2: nobody knows; 3: nothing, or a right one, so that it can hardly be wrong.
        """
        number = self.numbers[0]
        finding, results = found[number], found[number].results
        likely = {}
        for tree in self.family.trees.values():
            for parent, index in (place for statement in ast.walk(tree) for place in _values_of(statement)):
                node, level = parent.value if index is None else parent.elts[index], 2
                now = results and self._with_nudge(parent, index, number)
                if now:
                    moved = {i for i, (a, b) in enumerate(zip(now, results, strict=True)) if not close(a, b)}
                    level = 0 if moved == set(finding.wrong) else 1 if moved and moved < set(finding.wrong) else 3
                lines = node.lineno, node.end_lineno
                likely[lines] = min(level, likely.get(lines, 3))
        return likely

    def _with_nudge(self, parent, index, number):
        """The results if a statement has a slightly different value; None if it cannot have one, or is not reached."""
        node = parent.value if index is None else parent.elts[index]
        call = ast.Call(ast.Name(NUDGE, ast.Load()), [node], [])
        ast.fix_missing_locations(ast.copy_location(call, node))
        _put(parent, index, call)
        try:
            answer, steps = self.family.compiled()
            if answer is None:
                return None
            steps.begin()
            case = self.trials.cases[number]
            return self.trials.results(case, attempt(self.trials.exercise, answer, case))
        finally:
            _put(parent, index, node)

    def makes_right(self, edit):
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
        return Finding(trials.exercise, case, tried, trials.results(case, tried), *self.right_at(number)).right


def _values_of(node):
    """The places of the values that a statement computes, (parent, index)."""
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
        return [(node.value, i) for i in range(len(node.value.elts))]
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Return) and node.value is not None:
        return [(node, None)]
    return []


def _put(parent, index, node):
    if index is None:
        parent.value = node
    else:
        parent.elts[index] = node


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
