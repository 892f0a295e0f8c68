"""Mistakes that nobody has listed: single edits of an exercise's readable right answer, with texts from patterns."""

import ast

from ..rewriting import Mistakes
from .attempt import attempt
from .compare import close
from .edits import edits_of
from .family import Family

MOST_EDITS = 500
WORK = 300_000  # calls that the interpreter counts, in all edited answers together
_KINDS = ("operator", "comparison", "order", "number", "flag", "axis", "name", "function", "transpose", "sign",
          "inverted", "overwritten", "extra part", "extra line", "order of results", "missing index")  # fmt: skip
MOST_LETTERS = 60  # of a piece of code in a text


def pattern_for(trials, found):
    """The name and the text of an edit that makes the right answer return what the student's returns, in every case;
    None if there is none among those tried."""
    mistakes = trials.exercise.mistakes
    family = Family(mistakes.answer, of_student=False) if isinstance(mistakes, Mistakes) else None
    if family is None or not family.trees:
        return None
    failed = [n for n, finding in enumerate(found) if finding.wrong]
    order = failed + [n for n in range(len(found)) if n not in failed]
    if not failed or any(finding.results is None for finding in found):
        return None

    def is_same(answer, steps, number):
        steps.begin()
        results = trials.results(trials.cases[number], attempt(trials.exercise, answer, trials.cases[number]))
        return results is not None and all(map(close, results, found[number].results))

    left = trials.most(MOST_EDITS, WORK)
    edits = (edit for tree in family.trees.values() for edit in edits_of(tree))
    for edit in sorted((edit for edit in edits if edit.kind in _KINDS), key=lambda edit: edit.group):
        left -= 1
        if left < 0:
            return None
        edit.make()
        try:
            answer, steps = family.compiled()
            fits = answer is not None and all(is_same(answer, steps, number) for number in order)
        finally:
            edit.undo()
        if fits and (text := _text(edit)):
            return edit.kind, text
    return None


def _text(edit):
    """A sentence on a mistake, the edit of a right answer."""
    old, new = _code(edit.node), _code(edit.new)
    if edit.kind == "extra part" and isinstance(edit.node, ast.BinOp):
        kept_left = edit.new is edit.node.left
        part = _code(edit.node.right if kept_left else edit.node.left)
        sign = {ast.Add: "+ ", ast.Sub: "− "}.get(type(edit.node.op), "")
        what = "term" if sign else "factor" if isinstance(edit.node.op, ast.Mult) else "part"
        return old and part and f"The {what} `{sign if kept_left else ''}{part}` is missing in `{old}`."
    if edit.kind == "extra part":
        return old and new and f"Your numbers are those of `{new}`, where it must be `{old}`."
    if edit.kind == "extra line":
        return old and f"The step `{old}` is missing."
    if edit.kind == "order of results":
        return "The results are returned in the wrong order."
    return old and new and f"Your numbers are those of `{new}` instead of `{old}`."


def _code(node):
    """A node as one short line, or ""."""
    text = ast.unparse(node)
    return text if len(text) <= MOST_LETTERS and "\n" not in text and "_step_of" not in text else ""
