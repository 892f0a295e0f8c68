"""The student's code as syntax trees: the answer and its helpers in the same file, to be edited and compiled again."""

import ast
import linecache
import sys
import warnings
from contextlib import contextmanager
from types import CodeType, FunctionType

import numpy as np

from ..rewriting import Mistakes
from .attempt import SAFE, arrays_of, is_students
from .syntax import STEP

MOST_NUMBERS, MOST_ITEMS, MOST_DEPTH = 3_000_000, 100_000, 5  # in a variable of a loop
MOST_POSITIONS = 2_000  # of np.arange: a table of pairs has their square
MOST_STEPS = 20_000  # of all loops of one call: an edit may make a loop endless
ROUNDS = 4  # of a loop, after which its variables are looked at again: one that doubles in each grows 16-fold
_GROWING = (list, str, tuple, dict)
OF_AN_EDIT, OF_A_NODE = 400, 9  # the work of compiling an edited answer


class Endless(Exception):
    """A loop of an edited answer took more than MOST_STEPS steps, or an array would be huge."""


@contextmanager
def without_huge_arrays(cases):
    """Inside the block, np.arange refuses the sizes that an edit of a number may ask for in these cases."""
    most = max([MOST_POSITIONS, *(2 * array.size for case in cases for array in arrays_of(case))])
    arange = np.arange

    def bounded(*args, **options):
        if any(isinstance(number, int | float) and abs(number) > most for number in args):
            raise Endless
        return arange(*args, **options)

    np.arange = bounded
    try:
        yield
    finally:
        np.arange = arange


class Family:
    """An answer and the functions and classes of its file that it calls.

    of_student: whether it must be a student's code; trees: {name: syntax tree of its definition}, the answer first
    file: their file; lines: its lines
    """

    def __init__(self, answer, of_student=True):
        self.answer, self.trees, self.lines = answer, {}, []
        self.most_steps = MOST_STEPS
        self.file = _file_of(answer, of_student)
        self.space = _space_of(answer)
        if self.file is None or self.space is None:
            return
        self.space = {k: SAFE.get(v, v) if callable(v) else v for k, v in self.space.items()}
        linecache.checkcache(self.file)  # saved again since the last check
        self.lines = linecache.getlines(self.file, self.space)
        known = _definitions("".join(self.lines), self.file)
        known = {name: tree for name, tree in known.items() if _is_at(tree, self.space.get(name), self.file)}
        name = next((name for name, tree in known.items() if _is_at(tree, answer, self.file)), None)
        left = [name] if name else []
        while left:
            name = left.pop(0)
            if name not in self.trees and name in known:
                self.trees[name] = known[name]
                left += [n.id for n in ast.walk(known[name]) if isinstance(n, ast.Name) and n.id in known]
        for tree in self.trees.values():
            count_steps(tree)

    @property
    def work_of_edit(self):
        return OF_AN_EDIT + OF_A_NODE * sum(1 for tree in self.trees.values() for _ in ast.walk(tree))

    def compiled(self, more=()):
        """The answer with the trees as they are now, and its _Steps; (None, None) if they cannot be compiled.

        more: {name: value} that the trees use besides the names of their file
        """
        space = dict(self.space) | dict(more)
        space[STEP] = _Steps(self.most_steps)
        first = next(iter(self.trees))
        module = ast.Module(sorted(self.trees.values(), key=lambda tree: tree.lineno), [])
        try:
            with warnings.catch_warnings():  # an edit may call a number
                warnings.simplefilter("ignore")
                exec(compile(module, self.file, "exec"), space)
        except Exception:  # such as an assignment to an expression
            return None, None
        return space.get(_bound_name(self.trees[first])), space[STEP]

    def marked(self, node):
        """The line of a node with a mark below it."""
        return self.parts(node)[0]

    def parts(self, node, of_name=False):
        """The line of a node with a mark below it, or below the name at its end; what the line has before the node,
        and after it"""
        first = node.value if isinstance(node, ast.keyword) else node
        line = self.lines[first.lineno - 1].rstrip("\n")
        begin, end = node.col_offset, first.end_col_offset
        if isinstance(node, ast.For | ast.While | ast.If) or first.end_lineno != node.lineno:
            begin, end = len(line) - len(line.lstrip()), len(line.encode())
        before, marked = line.encode()[:begin].decode(), line.encode()[begin:end].decode()
        if node.lineno != first.lineno:
            before, marked = "", line.strip()
        gap = len(line) - len(line.lstrip())
        skipped = len(marked) - len(node.attr) if of_name else 0
        shown = f"    {line.strip()}\n    {' ' * (len(before) - gap + skipped)}{'^' * max(len(marked) - skipped, 1)}"
        rest = line.encode()[end:].decode() if first.end_lineno == first.lineno else ""
        return shown, before, rest


def family_with(exercise, names):
    """The Family of an exercise's right answer with these listed mistakes made, or None if it cannot be made."""
    mistakes = exercise.mistakes
    if not isinstance(mistakes, Mistakes):
        return None
    family = Family(mistakes.answer, of_student=False)
    for code, text in mistakes.rewritten([name for name in names if name in mistakes]).items():
        tree = ast.parse(text).body[0]
        if tree.name not in family.trees:
            return None
        family.trees[tree.name] = ast.increment_lineno(tree, code.line - 1)
        count_steps(tree)
    return family if family.trees else None


class _Steps:
    """Counts the steps of all loops since `begin`; most: after so many, Endless"""

    def __init__(self, most):
        self.most = most
        self.begin()

    def begin(self):
        self.left = self.most

    @property
    def taken(self):
        return self.most - self.left

    def __call__(self):
        self.left -= 1
        is_due = self.left % ROUNDS == 0
        if self.left < 0 or (is_due and _is_large(sys._getframe(1).f_locals.values())):
            raise Endless


def _is_large(values):
    """Whether a variable of a loop has grown beyond measure, such as a list that doubles in every step, or one that
    holds itself several times: comparing it takes 2^depth steps."""
    for value in values:
        if type(value) in _GROWING and (
            len(value) > MOST_ITEMS or max(_depth(value, 0), _depth(value, -1)) > MOST_DEPTH
        ):
            return True
        if type(value) is np.ndarray and value.size > MOST_NUMBERS:
            return True
    return False


def _depth(value, end):
    """How deep the first or last item lies in lists, tuples and the keys of dicts. end: 0 or -1"""
    depth = 0
    while type(value) in (list, tuple, dict) and value and depth <= MOST_DEPTH:
        value = value[end] if type(value) is not dict else next(reversed(value) if end else iter(value))
        depth += 1
    return depth


def _file_of(answer, of_student):
    code = _code_of(answer)
    if code is None or (of_student and not is_students(code.co_filename)):
        return None
    return code.co_filename


def _code_of(answer):
    if isinstance(answer, type):
        methods = [value for value in vars(answer).values() if isinstance(value, FunctionType)]
        return methods[0].__code__ if methods else None
    code = getattr(answer, "__code__", None)
    return code if isinstance(code, CodeType) and not code.co_freevars else None  # a closure cannot be made again


def _space_of(answer):
    if isinstance(answer, type):
        methods = [value for value in vars(answer).values() if isinstance(value, FunctionType)]
        return methods[0].__globals__ if methods else None
    return getattr(answer, "__globals__", None)


def _definitions(text, file):
    """{name: syntax tree} of the functions, classes and lambdas at the top of a file; new trees at every call."""
    try:
        body = ast.parse(text, file).body
    except (SyntaxError, ValueError, RecursionError):
        return {}
    return {_bound_name(node): node for node in body if _bound_name(node)}


def _bound_name(node):
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def _is_at(tree, thing, file):
    """Whether a function or class is the one that a tree defines."""
    code = _code_of(thing)
    if code is None or code.co_filename != file:
        return False
    if isinstance(tree, ast.ClassDef):
        return isinstance(thing, type) and tree.lineno <= code.co_firstlineno <= tree.end_lineno
    first = min([tree.lineno, *(d.lineno for d in getattr(tree, "decorator_list", ()))])
    return code.co_firstlineno == first and code.co_name == getattr(tree, "name", "<lambda>")


def count_steps(tree):
    """Insert a call that counts into every loop."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.While):
            call = ast.Expr(ast.Call(ast.Name(STEP, ast.Load()), [], []))
            ast.copy_location(call, node)
            for child in ast.walk(call):
                ast.copy_location(child, node)
            node.body.insert(0, call)
