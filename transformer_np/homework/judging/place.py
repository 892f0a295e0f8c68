"""The search for one edit that makes an answer right. Its line is where the mistake is, and that is proof.

The search is bounded by an amount of work, never by time: the number of calls that the interpreter counts in one
attempt says how many edits may be tried.
"""

import ast
from dataclasses import dataclass, replace

from .attempt import attempt, calls_in, guarded, unheard
from .borrowed import GIVEN, with_borrowed
from .compare import close
from .edits import KINDS, edits_of
from .family import NUDGE, Family
from .ignored import arrays_of
from .judge import NUMBERS_OF_A_CALL, Finding

MOST_EDITS = 750
WORK = 750_000  # calls that the interpreter counts, in all edited answers together
OF_AN_EDIT = 400  # as many calls take as long as making it, beside one for each node of the code
MOST_FIRST, MOST_SECOND = 1, 200  # of two edits
MORE_STEPS = 20  # than twice as many as without an edit
LARGE = 5000  # numbers in the arguments of a case


@dataclass(frozen=True)
class Place:
    """Where an answer can be made right.

    kind: the kind of the edit, as in `KINDS`; line: its number; shown: the line with a mark below it
    repair: the line after the edit, "" if it holds code of the right answer
    also: the Place of a second edit that is needed too, or None
    """

    kind: str
    line: int
    shown: str
    repair: str
    also: "Place | None" = None

    @property
    def about(self):
        return KINDS[self.kind]


def find_place(trials, answer, found):
    """The Place where one edit makes a wrong answer right in all core cases, or in all cases if it is right in those,
    or the two places of two edits; None if none of the edits tried does. found: the Findings of the answer's attempts
    """
    family = Family(answer)
    failed = [n for n, finding in enumerate(found) if not finding.right]
    core = [n for n, finding in enumerate(found) if not finding.case.extended]
    wanted = core if set(core) & set(failed) else list(range(len(found)))
    if not family.trees or not failed:
        return None
    with unheard(), guarded():
        search = _Search(trials, family, wanted)
        edit = search.one_edit(found)
        if edit:
            return _place(family, edit)
        for first, better in search.partly_right():
            first.make()
            try:
                second = search.one_edit(better)
                places = second and [_place(family, edit) for edit in (first, second)]
            finally:
                first.undo()
            if places:
                one, other = sorted(places, key=lambda place: place.line)
                return one if one.line == other.line else replace(one, also=other)
    return None


def _lines_of_crash(finding):
    crash = finding.tried.crash
    if not crash:
        return ()
    return {int(part.split(",")[0]) for part in crash.trace.split(", line ")[1:] if part.split(",")[0].isdigit()}


class _Search:
    """numbers: of the cases that must become right"""

    def __init__(self, trials, family, numbers):
        self.trials, self.family, self.numbers = trials, family, numbers
        reference, parts = trials.exercise.reference, trials.exercise.parts
        self.given = set(vars(reference)) - set(parts) if parts else ()  # methods that the student does not write
        self._better = []  # (number of results that an edit makes right, the edit, the Findings with it)
        self.numbers.sort(key=self._size)
        case = trials.cases[self.numbers[0]]
        self._usual = self._steps()  # of all loops in a case
        family.most_steps = 2 * self._usual + MORE_STEPS
        work = calls_in(lambda: attempt(trials.exercise, family.answer, case))
        work += sum(array.size for array in arrays_of(case)) // NUMBERS_OF_A_CALL
        of_edit = OF_AN_EDIT + sum(1 for tree in family.trees.values() for _ in ast.walk(tree))  # compiling it
        self.left = min(MOST_EDITS, max(20, WORK // (work + of_edit)))  # edits that may be tried
        self._most = self.left
        self._of_a_case = work / (work + of_edit)  # the share of one case in the work for an edit

    def _steps(self):
        """The most steps that the loops of the answer take in a case."""
        answer, steps = self.family.compiled()
        most = 0
        for number in self.numbers if answer is not None else ():
            self._finding(answer, steps, number)
            most = max(most, steps.taken)
        return most

    def one_edit(self, found):
        """The edit that makes every case right, or None. found: the Findings without it, by number"""
        self.found, self._before = found, self._right_in(found)
        wrong = sorted((n for n in self.numbers if not found[n].right), key=self._size)
        self._order = wrong + [n for n in self.numbers if n not in wrong]
        return next((edit for edit in self._edits() if self._makes_right(edit)), None)

    def _size(self, number):
        """What a case costs: cases with a similar number of numbers cost the same."""
        return sum(array.size for array in arrays_of(self.trials.cases[number])) // LARGE

    def _edits(self):
        """All edits that may be tried: first those of the lines of a crash and of the likely statements, the smallest
        first; expressions of the right answer come after the small ones."""
        finding = self.found[self._order[0]]
        lines, likely = _lines_of_crash(finding), self._likely_statements(finding)

        def level_of(node):
            line = getattr(node, "lineno", 0)
            return min((level for (first, last), level in likely.items() if first <= line <= last), default=1)

        def unlikeliness(edit):
            level = level_of(edit.node)
            return getattr(edit.node, "lineno", 0) not in lines, edit.group + (level if level < 3 else 9)

        def may_be_wrong(node):
            return level_of(node) < 3 or node.lineno in lines

        edits = [edit for tree in self.family.trees.values() for edit in edits_of(tree, self.given)]
        any_shape = finding.outcome in ("crashed", "wrong shape")
        edits = with_borrowed(edits, self.trials, self.family, self._order[0], any_shape, may_be_wrong, self.given)
        for edit in sorted(edits, key=unlikeliness):
            if self.left <= 0:
                return
            self.left -= 1
            yield edit

    def _makes_right(self, edit):
        """Whether an edit makes every case right. One that makes some of the wrong results right, and no right one
        wrong, is noted."""
        edit.make()
        try:
            answer, steps = self.family.compiled()
            if answer is None:
                return False
            first = self._finding(answer, steps, self._order[0])
            self.left -= self._of_a_case * max(0, steps.taken / max(1, self._usual) - 1)
            if not first.right and not self._is_better(first, self.found[self._order[0]]):
                return False
            for number in self._order[1:] if first.right else ():
                self.left -= self._of_a_case
                if not self._finding(answer, steps, number).right:
                    break
            else:
                if first.right:
                    return True
            self.left -= self._of_a_case * len(self.numbers)
            now = [
                self._finding(answer, steps, n) if n in self.numbers else self.found[n] for n in range(len(self.found))
            ]
            right = self._right_in(now)
            if right > self._before:
                self._better.append((len(right), edit, now))
            return False
        finally:
            edit.undo()

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
        tried = attempt(trials.exercise, answer, case)
        results = trials.results(case, tried)
        return Finding(trials.exercise, case, tried, results, trials.expected[number], trials.shares[number])

    def _likely_statements(self, finding):
        """{(first line, last line) of a statement: how unlikely it is to hold the mistake}.

        A small change of its value changes, in the first wrong case, 0: every wrong result and no right one; 1: some
        wrong ones and no right one; 2: nobody knows; 3: nothing, or a right one, so that it can hardly be wrong.
        """
        number, results = self._order[0], finding.results
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
        return likely if any(level < 3 for level in likely.values()) else {}

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
    if edit.kind == "expression" or GIVEN in text:
        return Place(edit.kind, node.lineno, shown, "")
    repair = f"    {before.strip() and before.lstrip()}{f'({text})' if needs_brackets else text}{rest}"
    return Place(edit.kind, node.lineno, shown, repair.rstrip())
