"""From a student's file to one text per exercise, which brings what it needs.

A file that `homework start` or the page has made has a comment line above each exercise, and the lines below it belong
to that exercise. In any other file, an exercise has its definition. Imports and helpers outside of these are copied to
each exercise that reads their names.
"""

import ast
import builtins
import re
import symtable
from dataclasses import dataclass, field

from .. import definitions
from ..definitions import KEPT, first_line, names_in, read_by, stored, unread
from ..stubs import WIDTH

_COMMENT = re.compile(r"# .*hint: transformer-np homework hint (\w+)")
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass
class Block:
    """Lines from one statement to the next. binds, reads: the names that it defines at top level, and that it uses"""

    lines: list
    owner: str | None = None
    binds: dict = field(default_factory=dict)
    reads: set = field(default_factory=set)


def parsed(text):
    """(syntax tree or None, why there is none)"""
    try:
        return definitions.parsed(text), ""
    except definitions.NO_PYTHON as error:
        return None, f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else str(error)


def bound_by(text):
    """{name: the code that binds it} for the names that a text binds at top level; {} if it is not Python."""
    tree, _ = parsed(text)
    return {name: ast.dump(node) for node in (tree.body if tree else ()) for name in stored(node)}


def free_names(text):
    """The names that a text reads and does not bind at top level."""
    tree, _ = parsed(text)
    body = tree.body if tree else ()
    return {name for node in body for name in read_by(node)} - {name for node in body for name in stored(node)}


def answers_in(text, defaults):
    """{exercise: text} of a student's file. defaults: {exercise: the text to begin with}, which are left out

    Raises ValueError if the file contains no exercise.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    blocks = _blocks(text, defaults)
    found = {}
    for name in dict.fromkeys(block.owner for block in blocks if block.owner):
        own = [block for block in blocks if block.owner == name]
        body = _joined(own)
        if not any(name in block.binds for block in own) and not body:
            continue
        bound, needed = {n for block in own for n in block.binds}, []
        head = bound_by(_head(defaults[name]))
        reads = {n for block in own for n in block.reads} - bound - head.keys()
        others = [block for block in blocks if block.owner != name and not block.binds.keys() & defaults.keys()]
        while new := [b for b in others if b.binds.keys() & reads and b not in needed]:
            needed += new
            reads = {n for block in new for n in block.reads} - bound - head.keys()
        before = "\n".join(_joined([block]) for block in blocks if block in needed)
        complete = f"{before}\n\n{body}" if before else body
        if not head.keys() & (bound | {n for block in needed for n in block.binds}) and head:
            complete = f"{_head(defaults[name])}\n\n{complete}"
        if complete.strip() != defaults[name].strip():
            found[name] = complete
    if not any(block.owner for block in blocks):
        raise ValueError("the file contains no exercise")
    return found


def _head(default):
    """The import lines at the beginning of the text to begin with, each with its line end."""
    lines = default.splitlines(keepends=True)
    first = next((i for i, line in enumerate(lines) if line.startswith(("def ", "class ", "@"))), 0)
    return "".join(lines[:first]).rstrip("\n") + "\n" if first else ""


def _joined(blocks):
    lines = [line for block in blocks for line in block.lines]
    return "\n".join(lines).strip("\n") + "\n" if any(line.strip() for line in lines) else ""


def _blocks(text, names):
    """The Blocks of a file, without the lines that `homework start` writes around the exercises."""
    lines, blocks, owner = text.split("\n"), [], None
    tree, _ = parsed(text)
    starts = _starts(lines, tree)
    docstring = tree is not None and ast.get_docstring(tree, clean=False) is not None
    for place, first in enumerate(starts):
        last = starts[place + 1] if place + 1 < len(starts) else len(lines)
        block = Block([])
        for line in lines[first:last]:
            comment = _COMMENT.fullmatch(line)
            if (comment and comment[1] in names) or _is_heading(line):
                if block.lines:
                    blocks.append(_with_names(block, owner))
                owner, block = comment[1] if comment else None, Block([])
            else:
                block.lines.append(line.removeprefix(KEPT))
        block = _with_names(block, owner)
        defined = [name for name in block.binds if name in names]
        if defined and block.owner not in defined:
            block.owner = owner = defined[-1]
        if not (docstring and place == 0 and not block.binds):
            blocks.append(block)
        if owner is not None and not any(match and match[1] == owner for match in map(_COMMENT.fullmatch, lines)):
            owner = None  # without comment lines, only the definition is known to belong to the exercise
    return blocks


def _is_heading(line):
    """Whether the line is a chapter's. Those that students write for themselves are not of its width."""
    return len(line) == WIDTH and line.startswith("# --- ") and line.endswith("-")


def _with_names(block, owner):
    block.owner, text = owner, "\n".join(block.lines)
    tree, _ = parsed(text)
    if tree is not None:
        block.binds = bound_by(text)
        block.reads = _read(text) - set(dir(builtins))
    else:
        block.binds = {name: body for name, body, _ in unread(text)}
        block.reads = set(_WORD.findall(text))
    return block


def _read(text):
    """The names of the module that a text reads: neither parameters nor variables of its functions."""
    try:
        left, found = [symtable.symtable(text, "<answers>", "exec")], set()
    except SyntaxError:  # of `await` outside of a function, which a notebook allows
        return names_in(parsed(text)[0])
    while left:
        table = left.pop()
        found |= {s.get_name() for s in table.get_symbols() if s.is_global() or table.get_type() == "module"}
        left += table.get_children()
    return found


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
