"""A teacher's right answer is private: what students read quotes no code that stands only there.

The search for a mistake edits the right answer, and describes the edit that gives the student's numbers. Of the
library's exercises anyone can read the answers; of a teacher's own, students know the docstring, the signature, the
hints and the texts of the mistakes.
"""

import ast
import inspect
import re
import sys
from dataclasses import replace

from .definitions import tree_of
from .path import own_exercises

INSTEAD = "A right answer with one part changed gives your numbers."
_SENTENCE = re.compile(r"(?:`[^`]*`|[^`.!?]|[.!?](?!\s|$))+(?:[.!?]+(?=\s|$)|$)")
_COMPUTED = ast.BinOp | ast.BoolOp | ast.Call | ast.Compare | ast.IfExp | ast.Subscript | ast.UnaryOp


def for_students(verdict, exercise):
    """The Verdict without the sentences that quote an expression of a teacher's right answer."""
    if own_exercises().get(exercise.name) is not exercise or "`" not in verdict.message:
        return verdict
    public, private = _plain("\n".join(_public(exercise))), _computed(_source(exercise))
    lines, said = verdict.message.split("\n"), []

    def kept(match):
        quoted = [code for code in re.findall("`([^`]*)`", match[0]) if _plain(code) not in public]
        if not any(_computed(" ".join(code.lstrip("+−- ").split())) & private for code in quoted):
            return match[0]
        said.append(INSTEAD)
        space = match[0][: len(match[0]) - len(match[0].lstrip())]
        return space + INSTEAD if len(said) == 1 else ""

    first = next((number for number, line in enumerate(lines) if line.startswith("  ")), len(lines))
    text = _SENTENCE.sub(kept, "\n".join(lines[:first])).rstrip()  # below are the student's own lines
    return replace(verdict, message="\n".join([text, *lines[first:]]))


def _public(exercise):
    parts = [getattr(exercise.reference, name, None) for name in ("__init__", *exercise.parts)]
    for thing in [exercise.reference, *filter(inspect.isfunction, parts)]:
        yield inspect.getdoc(thing) or ""
        yield str(inspect.signature(thing))
    yield from map(str, exercise.hints)
    yield from exercise.mistakes.values()


def _source(exercise):
    try:
        return inspect.getsource(sys.modules[exercise.answer.__module__])
    except (OSError, TypeError, KeyError):
        return ""


def _computed(code):
    """The expressions in code that compute something, each in one form."""
    tree = tree_of(code)
    return {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, _COMPUTED)} if tree else set()


def _plain(code):
    return re.sub(r"\s", "", code.replace("−", "-"))
