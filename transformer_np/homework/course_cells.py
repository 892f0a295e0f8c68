"""The course's own notebooks: a student's notebook that was made from one, and the cells in it that nobody changed."""

import ast
import io
from dataclasses import dataclass
from functools import cache

from ..notebooks.texts import SOLUTION, read_cells, shown, texts
from .definitions import DEFINES, bindings, by_name, first_line, reached, read_by, stored, touched, tree_of
from .path import all_exercises

_SHARED = 3  # code cells that a notebook has in common with one of the course's if it was made from it


@dataclass(frozen=True)
class _Known:
    """The code cells of a notebook of the course, each as `statements`, and the fingerprints of the definitions in
    them."""

    cells: frozenset
    definitions: frozenset


@cache
def _course():
    """A _Known for every notebook of the course."""
    found = []
    for text in texts():
        trees = []
        for kind, source, tags in read_cells(text.read_text(encoding="utf-8")):
            if kind == "code" and SOLUTION not in tags and (tree := cell_tree(shown(source))):
                trees += [tree] if tree.body else []
        nodes = [node for tree in trees for _, node, _ in bindings(tree.body)]
        found.append(_Known(frozenset(map(statements, trees)), frozenset(map(fingerprint, nodes))))
    return found


def course_of(trees):
    """The _Known of the notebook of the course that a notebook was made from, or None."""
    prints = {statements(tree) for tree in trees if tree is not None}
    best = max(_course(), key=lambda known: len(known.cells & prints), default=None)
    return best if best and len(best.cells & prints) >= min(_SHARED, len(best.cells)) else None


def first_of_cells(tree):
    """The statements of a .py file with which a cell of the course begins, and all that are in no such cell: not every
    program that exports a notebook marks its cells."""
    prints, cells = statements(tree), frozenset().union(*(known.cells for known in _course()))
    longest, found, at = max(map(len, cells), default=0), [], 0
    while at < len(prints):
        found.append(tree.body[at])
        ends = range(min(at + longest, len(prints)), at, -1)
        at = next((end for end in ends if prints[at:end] in cells), at + 1)
    return found


def fingerprint(node):
    """Equal for code that differs in format, comments and docstrings alone; of a tree from `cell_tree`."""
    return ast.dump(node)


def statements(tree):
    """The fingerprints of the statements of a cell."""
    return tuple(map(fingerprint, tree.body))


def cell_tree(code):
    """The syntax tree of a cell without docstrings, which a formatter changes; None if it is no Python."""
    tree = tree_of(code)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, DEFINES) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return tree


def needed_by_answers(nodes, known, checked=()):
    """(the names that the answers among some statements need, themselves included, those of imported modules). checked:
    names of other answers"""
    modules = {name for node in nodes if isinstance(node, ast.Import) for name in stored(node)}
    nodes = by_name(nodes, lambda node: touched(node, modules))
    own = [name for name in nodes.keys() & {*all_exercises(), *checked}
           if any(fingerprint(node) not in known.definitions for node in nodes[name])]  # fmt: skip
    return reached(nodes, own, lambda node: read_by(ast.unparse(node)) - touched(node)), modules


def only_needed(code, tree, needed):
    """(the code of a cell without the statements that compute what no answer needs, the names that these bind). needed:
    as of `needed_by_answers`"""
    needed, modules = needed
    lines, kept, skipped = io.StringIO(code).readlines(), set(), set()
    for node in tree.body:
        names = touched(node, modules)
        if isinstance(node, ast.Import | ast.ImportFrom | DEFINES) or _is_constant(node) or names & needed:
            kept.update(range(first_line(node), node.end_lineno + 1))
        else:
            skipped |= names
    return "".join(line if n in kept else "\n" for n, line in enumerate(lines, 1)), skipped


def _is_constant(node):
    try:
        ast.literal_eval(node.value if isinstance(node, ast.Assign) else None)
        return isinstance(node, ast.Assign)
    except (ValueError, TypeError):
        return False
