"""The student's code as syntax trees: the answer and its helpers in the same file, to be edited and compiled again."""

import ast
import copy
import linecache
import sys
import warnings
from contextlib import contextmanager
from functools import lru_cache
from io import StringIO
from math import isqrt
from types import CellType

import numpy as np

from ..definitions import bindings, first_line
from ..guard import is_students
from ..magics import timed
from ..path import all_exercises
from ..rewriting import Mistakes
from . import objects
from .attempt import arrays_of
from .compare import MOST_NUMBERS
from .objects import MOST_DEPTH, MOST_ITEMS
from .syntax import STEP

MOST_STEPS = 200_000  # of all loops of one call: an edit may make a loop endless
LOOK = 4  # steps from one look at what a loop has made to the next
_NESTING = (list, tuple, dict)
_GROWING = (*_NESTING, str)
OF_A_NODE, OF_A_STEP = 12, 5  # the work of compiling an edited answer, and of a step of a loop
OF_PYTHON = ("__builtins__", "In", "Out", "_ih", "_oh")  # not copied: what Python and IPython put among the names


class Endless(Exception):
    """A loop of an edited answer took more than MOST_STEPS steps, or an array would be huge."""


@contextmanager
def without_huge_arrays(cases):
    """Inside the block, np.arange refuses the sizes that an edit of a number may ask for in these cases; a table of
    pairs has their square."""
    most = max([isqrt(MOST_NUMBERS), *(2 * array.size for case in cases for array in arrays_of(case))])
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
    """An answer and its private helpers: the functions and classes of its file that it calls and that are no exercises
    of their own. A call of another exercise is one expression, whatever is in it: it is judged on its own.

    of_student: whether it must be a student's code; trees: {name: syntax tree of its definition}, the answer first
    file: their file; lines: its lines; is_decorated: whether a decorator that returns another function is left out
    """

    def __init__(self, answer, of_student=True):
        bare, origin_of, copy_of = objects.undecorated, objects.origin_of, objects.copied
        if not of_student:  # the library's functions change nothing
            bare, origin_of, copy_of = objects.unwrapped, *2 * [lambda thing: thing]
        self.answer, self._origin = answer, origin_of(answer)
        answer = bare(self._origin)
        self.trees, self.lines, self.is_decorated, self._made = {}, [], answer is not self._origin, {}
        self.most_steps = MOST_STEPS
        function = objects.function_of(answer)
        self.file = function and function.__code__.co_filename
        if function is None or (of_student and not is_students(self.file)):
            return
        self.space = {  # copies of what a run could change
            name: objects.safe(value) if callable(value) else value if name in OF_PYTHON else copy_of(value)
            for name, value in function.__globals__.items()
        }
        linecache.checkcache(self.file)  # saved again since the last check
        self.lines = linecache.getlines(self.file, self.space)
        if self.file == "<timed exec>":
            self.lines = StringIO(timed(answer.__name__, self.space.get("In", ()))).readlines()  # as Python reads them
        tree = objects.parsed("".join(self.lines), self.file)
        known = _definitions(tree)
        origins = {name: origin_of(value) for name, value in self.space.items()}
        own = {name: bare(origins[name]) for name in known if name in origins}
        known = {name: tree for name, tree in known.items() if _is_at(tree, own.get(name), self.file)}
        first = next((name for name, tree in known.items() if _is_at(tree, answer, self.file)), None)
        if first is None and not isinstance(answer, type) and (inner := _inner(tree, answer, self.file)):
            first, own[inner.name], known[inner.name] = inner.name, answer, inner
            cells = zip(answer.__code__.co_freevars, answer.__closure__ or (), strict=True)
            self.space |= {name: objects.copied(cell.cell_contents) for name, cell in cells if cell != CellType()}
        left = [first] if first else []
        while left:
            name = left.pop(0)
            if of_student and self.trees and name in all_exercises():
                continue
            origin = origins.get(name)
            of = name if name == first else next((other for other in known if own[other] is bare(origin)), None)
            if of and (of != name or self.space.get(name) is not origin):
                self._made[name] = of, origin
            if of and of not in self.trees:
                self.trees[of] = _Unhinted().visit(known[of])
                left += [n.id for n in ast.walk(known[of]) if isinstance(n, ast.Name)]
        self._originals = {name: answer if name == first else own[name] for name in self.trees}
        self.is_decorated |= any(own[name] is not origins[name] for name in self.trees if name != first)
        for tree in self.trees.values():
            count_steps(tree)

    @property
    def tree(self):
        """The syntax tree of the answer, None if there is none."""
        return next(iter(self.trees.values()), None)

    @property
    def work_of_edit(self):
        return OF_A_NODE * sum(1 for tree in self.trees.values() for _ in ast.walk(tree))

    def compiled(self, more=()):
        """The answer with the trees as they are now, and its _Steps; (None, None) if they cannot be compiled.

        more: {name: value} that the trees use besides the names of their file
        """
        space = dict(self.space) | dict(more)
        space[STEP] = _Steps(self.most_steps)
        made = {}  # {id of a function or class: what stands for it}
        try:
            with warnings.catch_warnings():  # an edit may call a number
                warnings.simplefilter("ignore")
                for name, tree in sorted(self.trees.items(), key=lambda item: item[1].lineno):
                    thing = self._originals[name]
                    codes = objects.codes_in(compile(ast.Module([tree], []), self.file, "exec"))
                    made[id(thing)] = space[name] = objects.made_again(thing, codes, space, made)
                for name, (of, origin) in self._made.items():
                    space[name] = objects.made_of(self.space[name], origin, space[of])
                return objects.made_of(self.answer, self._origin, space[next(iter(self.trees))]), space[STEP]
        except Exception:  # such as an assignment to an expression
            return None, None

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


@lru_cache(64)
def family_of(answer):
    """The Family of a right answer, the same at every call."""
    return Family(answer, of_student=False)


def family_with(exercise, names):
    """The Family of an exercise's right answer with these listed mistakes made, or None if it cannot be made. It is the
    same at every call."""
    mistakes = exercise.mistakes
    return _mistaken(mistakes, frozenset(names) & {*mistakes}) if isinstance(mistakes, Mistakes) else None


@lru_cache(64)
def _mistaken(mistakes, names):
    family = Family(mistakes.answer, of_student=False)
    for code, text in mistakes.rewritten(names).items():
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
        if self.left < 0 or (self.left % LOOK == 0 and _is_large(sys._getframe(1).f_locals.values())):
            raise Endless


def _is_large(values):
    """Whether a variable of a loop has grown beyond measure, such as a list that doubles in every step, or one that
    holds itself several times: comparing it takes 2^depth steps."""
    for value in values:
        kind = type(value)
        if kind is np.ndarray:
            if value.size > MOST_NUMBERS:
                return True
        elif kind in _GROWING and value:
            if len(value) > MOST_ITEMS or (kind is not str and _is_deep(value)):
                return True
    return False


def _is_deep(value):
    """Whether a list, a tuple or the keys of a dict hold others that deep, wherever they are."""
    level = [value]
    for _ in range(MOST_DEPTH):
        level = [*{id(item): item for one in level for item in one if type(item) in _NESTING}.values()]
    return bool(level)


def _definitions(tree):
    """{name: syntax tree} of the functions, classes and lambdas at the top of a file, those in its `if` and `try`
    too."""
    nodes = [node for _, node, _ in bindings(tree.body, in_notebook=True)]
    return {_bound_name(node): node for node in nodes if _bound_name(node)}


class _Unhinted(ast.NodeTransformer):
    """Makes an assignment of one with a type hint."""

    def visit_AnnAssign(self, node):
        return ast.copy_location(ast.Assign([node.target], node.value) if node.value else ast.Pass(), node)


def _inner(tree, function, file):
    """The syntax tree of a function that another one has made, or None."""
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    return next((_Unhinted().visit(copy.deepcopy(n)) for n in nodes if _is_at(n, function, file)), None)


def _bound_name(node):
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def _is_at(tree, thing, file):
    """Whether a function or class is the one that a tree defines."""
    code = getattr(objects.function_of(thing), "__code__", None)
    if code is None or code.co_filename != file:
        return False
    if isinstance(tree, ast.ClassDef):
        return isinstance(thing, type) and tree.lineno <= code.co_firstlineno <= tree.end_lineno
    if code.co_name != getattr(tree, "name", "<lambda>"):
        return False
    return code.co_firstlineno == first_line(tree) or (isinstance(tree, ast.FunctionDef) and _has_code(tree, code))


def _has_code(tree, code):
    """Whether a function has the code that a tree makes: IPython's autoreload forgets its line."""
    try:
        others = objects.codes_in(compile(ast.Module([tree], []), code.co_filename, "exec"))
    except SyntaxError:  # such as `nonlocal` in an inner function
        return False
    return any((one.co_code, one.co_names) == (code.co_code, code.co_names) for one in others.get(tree.name, ()))


def count_steps(tree):
    """Insert a call that counts into every loop."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.While):
            call = ast.Expr(ast.Call(ast.Name(STEP, ast.Load()), [], []))
            ast.copy_location(call, node)
            for child in ast.walk(call):
                ast.copy_location(child, node)
            node.body.insert(0, call)
