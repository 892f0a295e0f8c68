"""Mistakes that nobody has listed: single edits of an exercise's readable right answer, with texts from patterns."""

import ast
import re

from ..rewriting import Mistakes
from .attempt import attempt
from .compare import close
from .edits import edits_of
from .family import Family
from .syntax import Names

MOST_EDITS = 500
WORK = 200_000  # calls that the interpreter counts, in all edited answers together
_KINDS = ("operator", "comparison", "order", "brackets", "number", "flag", "axis", "name", "function", "transpose",
          "sign", "inverted", "overwritten", "extra part", "extra line", "order of results", "missing index",
          "missing function", "missing factor", "missing term")  # fmt: skip
MOST_LETTERS = 60  # of a piece of code in a text


def patterns_for(trials, found):
    """[(name, text)] of edits that make the right answer return what the student's returns: of one edit for all wrong
    results, or of one for each; [] if those tried do not explain every number."""
    mistakes = trials.exercise.mistakes
    family = Family(mistakes.answer, of_student=False) if isinstance(mistakes, Mistakes) else None
    wrong = {i for finding in found for i in finding.wrong or ()}
    if family is None or not family.trees or not wrong or any(finding.results is None for finding in found):
        return []
    order = sorted(range(len(found)), key=lambda n: not found[n].wrong)

    def explained(answer, steps):
        """The wrong results that an answer has in common with the student's, {} if it changes others."""
        common = set(wrong)
        for number in order:
            steps.begin()
            results = trials.results(trials.cases[number], attempt(trials.exercise, answer, trials.cases[number]))
            if results is None:
                return set()
            finding = found[number]
            for i, result in enumerate(results):
                if not close(result, finding.results[i]):
                    common.discard(i)
                    if not close(result, finding.expected[i]):
                        return set()
            if not common:
                return common
        return common

    own = set().union(*(Names(tree).computed for tree in family.trees.values()))  # which the student may not have
    known = {}  # {wrong results: the first (name, text) that explains them}
    edits = (edit for tree in family.trees.values() for edit in edits_of(tree))
    edits = sorted((edit for edit in edits if edit.kind in _KINDS), key=lambda edit: edit.group)
    for edit in edits[: min(trials.most(MOST_EDITS, WORK), WORK // family.work_of_edit)]:
        edit.make()
        try:
            answer, steps = family.compiled()
            common = frozenset(explained(answer, steps) if answer is not None else ())
        finally:
            edit.undo()
        if common not in known and (text := common and _text(edit, own)):
            known[common] = text.rstrip("."), text
            if common == wrong:
                return [known[common]]
    chosen = []
    for common in sorted(known, key=len, reverse=True):
        if common <= wrong:
            chosen.append(known[common])
            wrong -= common
    return [] if wrong else chosen


def _text(edit, own):
    """A sentence on a mistake, the edit of a right answer, without its own variables."""

    def code(node):
        return "" if own & {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} else _code(node)

    old, new = code(edit.node), code(edit.new)
    if edit.kind == "extra part" and isinstance(edit.node, ast.BinOp):
        kept_left = edit.new is edit.node.left
        part = code(edit.node.right if kept_left else edit.node.left)
        sign = {ast.Add: "+ ", ast.Sub: "− "}.get(type(edit.node.op), "")
        what = "term" if sign else "factor" if isinstance(edit.node.op, ast.Mult) else "part"
        return part and f"The {what} `{sign if kept_left else ''}{part}` is missing{f' in `{old}`' if old else ''}."
    if edit.kind == "extra part" and isinstance(edit.node, ast.Call) and edit.new in edit.node.args:
        return old and new and f"`{code(edit.node.func)}` is missing around `{new}`."
    if edit.kind == "extra part":
        return old and new and f"Your result is that of `{new}`, where `{old}` is needed."
    if edit.kind == "extra line":
        return old and f"The step `{old}` is missing."
    if edit.kind == "order of results":
        return "The results are returned in the wrong order."
    if edit.kind == "missing factor" and edit.new.left is edit.node and not (old and new):
        factor = code(edit.new.right)
        if isinstance(edit.new.op, ast.Div):
            return factor and f"A factor `{factor}` is missing, or there is a division by it too many."
        return factor and f"There is a factor `{factor}` too many, or a division by it is missing."
    if isinstance(edit.node, ast.Constant | ast.Name | ast.Attribute):  # which say nothing alone
        old = code(edit.parent)
        edit.make()
        new = code(edit.parent)
        edit.undo()
    return old and new and f"Your result is that of `{new}` instead of `{old}`."


def _code(node):
    """A node as one short line without attributes, whose names are the answer's own, or ""."""
    text = ast.unparse(node)
    return "" if len(text) > MOST_LETTERS or re.search(r"\n|_step_of|self\.", text) else text
