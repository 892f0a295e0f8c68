"""From a student's file to one text per exercise, which brings what it needs.

A file that `homework start` or the page has made has a comment line above each exercise, and the lines below it belong
to that exercise. In any other file, an exercise has its definition. Imports and helpers outside of these are copied to
each exercise that reads their names.
"""

import ast
import builtins
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from ..definitions import KEPT, NO_PYTHON, by_name, first_line, parsed, reached, read_by, stored, touched, unread
from ..stubs import BODY, WIDTH

_COMMENT = re.compile(r"# .*hint: transformer-np homework hint (\w+)")
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(eq=False)
class Block:
    """Some lines of a file, such as those from one statement to the next. owner: the exercise that they belong to, or
    ""; tree: their syntax tree, or None; problem: why there is none"""

    text: str
    owner: str = ""

    def __post_init__(self):
        self.tree, self.problem = None, ""
        try:
            self.tree = parsed(self.text)
            compile(self.tree, "<answers>", "exec")  # which `return` outside of a function is not
        except NO_PYTHON as error:
            self.problem = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else str(error)

    @cached_property
    def binds(self):
        """{name: the code that binds it} for the names that the lines bind at top level, of an import each alone."""
        if self.tree is None:
            return {name: body for name, body, _ in unread(self.text)}
        parts = [(node, one) for node in self.tree.body for one in getattr(node, "names", [node])]
        alone = [ast.ImportFrom(getattr(n, "module", ""), [a]) if isinstance(a, ast.alias) else n for n, a in parts]
        return {name: ast.dump(node) for node in alone for name in stored(node)}

    @cached_property
    def changes(self):
        """The names that the lines bind at top level, and those of what they change, as in `x[0] = 1`."""
        return set(self.binds).union(*map(touched, self.tree.body if self.tree else ()))

    @cached_property
    def reads(self):
        """The names of the module that the lines read: neither parameters nor variables of their functions."""
        if self.tree is None:
            return set(_WORD.findall(self.text))
        return read_by(self.text) - set(dir(builtins))


def answers_in(text, defaults):
    """{exercise: text} of a student's file. defaults: {exercise: the text to begin with}, which are left out, as are
    the stubs of another course; its answers stay

    Raises ValueError if the file contains no exercise.
    """
    blocks = _blocks(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), defaults)
    unbound = _names(blocks, "reads") - _names(blocks, "binds") - defaults.keys()  # but by `from … import *`
    found = {}
    for name in dict.fromkeys(block.owner for block in blocks if block.owner):
        own = [block for block in blocks if block.owner == name]
        head, body = _head(defaults.get(name, "")), _joined(own)
        known = {*Block(head).binds, *_names(own, "binds")}
        others = [block for block in blocks if block.owner != name and not block.binds.keys() & defaults.keys()]
        gives = {block: (block.changes | (unbound if "*" in block.binds else set())) - known for block in others}
        helpers = by_name(others, gives.get)
        needed = reached(helpers, _names(own, "reads"), lambda block: block.reads)
        before = [block for block in others if needed & gives[block]]
        complete = "\n\n".join(filter(None, ["\n".join(_joined([block]) for block in before), body]))
        if head and not Block(head).binds.keys() & _names([*own, *before], "binds"):
            complete = f"{head}\n\n{complete}"
        begin = defaults.get(name, complete if BODY in complete else "")
        if body and complete.strip() != begin.strip():
            found[name] = complete
    if not any(block.owner for block in blocks):
        raise ValueError("the file contains no exercise")
    return found


def _names(blocks, kind):
    """The names that some blocks bind or read."""
    return {name for block in blocks for name in getattr(block, kind)}


def _head(default):
    """The import lines at the beginning of the text to begin with, each with its line end."""
    lines = default.splitlines(keepends=True)
    first = next((i for i, line in enumerate(lines) if line.startswith(("def ", "class ", "@"))), 0)
    return "".join(lines[:first]).rstrip("\n") + "\n" if first else ""


def _joined(blocks):
    text = "\n".join(block.text for block in blocks)
    return text.strip("\n") + "\n" if text.strip() else ""


def _blocks(text, names):
    """The Blocks of a file, without the lines that `homework start` writes around the exercises."""
    lines, blocks, owner = text.split("\n"), [], ""
    marks = {i: mark for i, line in enumerate(lines) if (mark := _mark(line)) is not None}
    starts = sorted({*_starts(lines, Block(text).tree), *marks})
    for first, last in pairwise([*starts, len(lines)]):
        owner = marks.get(first, owner)
        kept = lines[first + 1 if first in marks else first : last]
        block = Block("\n".join(line.removeprefix(KEPT) for line in kept), owner)
        defined = [name for name in block.binds if name in names]
        if defined and owner not in defined:
            block.owner = owner = defined[-1]
        blocks.append(block)
        if owner not in marks.values():  # only the definition is known to belong to the exercise
            owner = ""
    return blocks


def _mark(line):
    """The exercise of a line that `homework start` writes above one, "" for the heading of a chapter, else None. Those
    headings that students write for themselves are not of its width."""
    if comment := _COMMENT.fullmatch(line):
        return comment[1]
    return "" if len(line) == WIDTH and line.startswith("# --- ") and line.endswith("-") else None


def _starts(lines, tree):
    """The numbers of the lines at which blocks begin, counted from 0; comments above a statement belong to it."""
    if tree is not None:
        firsts = [first_line(node) - 1 for node in tree.body]
        ends = [node.end_lineno for node in tree.body]
    else:
        firsts = [i for i, line in enumerate(lines) if line[:1].strip() and line[0] not in ")]}#\"'"]
        ends = [first + 1 for first in firsts]
    starts = [0]
    for first, end in zip(firsts[1:], ends, strict=False):
        while first > end and lines[first - 1].startswith("#"):
            first -= 1
        if first > starts[-1]:
            starts.append(first)
    return starts
