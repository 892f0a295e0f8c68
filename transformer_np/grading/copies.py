"""Answers that are alike: those of two students, or of a student and the published solutions.

What is compared is the syntax tree of an answer with the functions that it calls, without names, comments, docstrings
and annotations, with keywords sorted and constants computed. Two trees are alike if they share nearly all their runs of
RUN neighbouring nodes. Short answers count only together, and forms that many students share do not: everyone writes
these.
"""

import ast
import inspect
import operator
import textwrap
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import combinations
from zlib import crc32

from ..homework.definitions import NO_PYTHON, by_name, is_stub, reached
from ..homework.path import all_exercises

RUN = 5  # nodes
LEAST, TOGETHER, SHORTEST = 60, 120, 25  # nodes of an answer that counts alone, of several together, of each of these
LARGEST = 20_000  # nodes; one with more is not compared
ALIKE = 0.9  # the shared part of the runs
MANY, MANY_PART = 5, 1 / 3  # students, and part of the class: a form that more of them share does not count
LIBRARY = "the library"
MEANING = (
    "The percentage is the part of the code that is the same apart from names, comments and the order of keywords. It "
    "does not say who wrote it, or why: two students may have learned from the same page. Read the answers, and ask."
)
_FOLDED = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.USub: operator.neg,
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """An answer as text, and its runs of nodes, each by a number, with how often they occur."""

    text: str
    runs: Counter

    @cached_property
    def size(self):
        return self.runs.total()


@dataclass(frozen=True)
class Alike:
    """two: a student and another, or LIBRARY; part: of the runs, in 0 … 1; texts: the answers of both"""

    exercise: str
    two: tuple[str, str]
    part: float
    texts: tuple[str, str]


def answers_in(files, names):
    """{name of an exercise: its Answer} in Python files, {name: bytes}."""
    found = {}
    for content in files.values():
        try:
            tree = ast.parse(content)
            nodes = by_name(tree.body)
            for name in names:
                node, exercise = nodes.get(name, [None])[-1], all_exercises()[name]
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and not is_stub(node, exercise.parts):
                    written = {**nodes, name: [_without_given(node, exercise)]}
                    answer = _answer(written, name, {*names} - {name})
                    found |= {name: answer} if answer.size <= LARGEST else {}
        except NO_PYTHON:
            continue
    return found


def published(name):
    """The Answers that anyone can look up: the library's own and that of the exercise."""
    exercise, found = all_exercises()[name], []
    for source in (inspect.unwrap(exercise.reference), exercise.answer):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(source)))
        except (OSError, TypeError, SyntaxError):
            continue
        nodes = {name: [_without_given(node, exercise)] for name, (*_, node) in by_name(tree.body).items()}
        found.append(_answer(nodes, tree.body[0].name, ()))
    return found


def alike(answers):
    """The Alikes among students' answers, {student: {name of an exercise: Answer}}, the most similar first."""
    found = []
    for name in dict.fromkeys(name for of in answers.values() for name in of):
        here = {s: of[name] for s, of in answers.items() if name in of and of[name].size > SHORTEST - RUN}
        pairs = [(two, _part(here[two[0]], here[two[1]])) for two in combinations(here, 2)]
        near = Counter(student for two, part in pairs if part >= ALIKE for student in two)
        usual = {s for s, number in near.items() if number + 1 > max(MANY, MANY_PART * len(answers))}
        for two, part in pairs:
            if part >= ALIKE and not usual & {*two}:
                found.append(Alike(name, two, part, (here[two[0]].text, here[two[1]].text)))
        for other in published(name):
            for student, answer in here.items():
                part = _part(answer, other)
                if part >= ALIKE and student not in usual:
                    found.append(Alike(name, (student, LIBRARY), part, (answer.text, other.text)))
    sizes = {}
    for one in found:
        sizes.setdefault(one.two, []).append(answers[one.two[0]][one.exercise].size + RUN - 1)
    enough = {two for two, of in sizes.items() if max(of) >= LEAST or sum(of) >= TOGETHER}
    return sorted((one for one in found if one.two in enough), key=lambda one: (-one.part, one.two, one.exercise))


def _part(one, other):
    if 2 * min(one.size, other.size) < ALIKE * (one.size + other.size):
        return 0.0
    return 2 * (one.runs & other.runs).total() / max(1, one.size + other.size)


def same_files(people):
    """{student: a remark} on those who handed in the same bytes as another; {student: [{name: hash of a file}, …]}."""
    owners, found = {}, {}
    for student, attempts in people.items():
        for name, content in sorted({(n, c) for files in attempts for n, c in files.items() if c}):
            owners.setdefault(content, {}).setdefault(student, name)
    for students in owners.values():
        for student in students if len(students) > 1 else ():
            others = found.setdefault(student, {})
            others |= {f"{other} ({name})": None for other, name in sorted(students.items()) if other != student}
    remarks = {student: [*others] for student, others in found.items()}
    return {
        student: f"the same file as {', '.join(others[:3])}" + (f" and {len(others) - 3} more" if others[3:] else "")
        for student, others in remarks.items()
    }


# --- what the teacher reads ------------------------------------------------------------------------------------------

MOST_SHOWN = 200  # pairs of answers, side by side


def with_whom(student, found):
    """With whom a student's answers are alike, in a line: "ben: softmax, gelu; the library: relu"."""
    exercises = {}
    for one in found:
        if student in one.two:
            exercises.setdefault(one.two[one.two[0] == student], []).append(one.exercise)
    return "; ".join(f"{other}: {', '.join(sorted(names))}" for other, names in exercises.items())


def matrix(found):
    """[[name, number of exercises with each other one, …], …] with a head, of those whose answers are alike."""
    names = sorted({name for one in found for name in one.two}, key=lambda name: (name == LIBRARY, name))
    numbers = Counter(pair for one in found for pair in {one.two, one.two[::-1]})
    return [["", *names], *([a, *(str(numbers[a, b] or "") for b in names)] for a in names if a != LIBRARY)]


def side_by_side(found):
    """A page of HTML with the answers that are alike."""
    parts = [
        f"<h2>{escape(one.exercise)}: {escape(one.two[0])} and {escape(one.two[1])}, {one.part:.0%}</h2>"
        f"<div><pre>{escape(one.texts[0])}</pre><pre>{escape(one.texts[1])}</pre></div>"
        for one in found[:MOST_SHOWN]
    ]
    more = f"<p>{len(found) - MOST_SHOWN} more pairs are not shown.</p>" if len(found) > MOST_SHOWN else ""
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Answers that are alike</title>\n'
        "<style>body { font: 15px system-ui, sans-serif; margin: 2rem; } div { display: grid; gap: 1rem; "
        "grid-template-columns: 1fr 1fr; } pre { background: #f6f6f6; padding: .8rem; white-space: pre-wrap; "
        "overflow-wrap: anywhere; }</style>\n"
        f"<h1>Answers that are alike</h1>\n<p>{escape(MEANING)}</p>\n" + "\n".join(parts) + f"{more}\n</html>\n"
    )


# --- the normal form -------------------------------------------------------------------------------------------------


def _without_given(node, exercise):
    """A class without the methods that every student is given; anything else as it is."""
    if not isinstance(node, ast.ClassDef):
        return node
    body = [n for n in node.body if getattr(n, "name", None) not in exercise.given]
    return ast.ClassDef(node.name, node.bases, node.keywords, body or [ast.Pass()], node.decorator_list)


def _answer(nodes, name, others):
    imports = ast.Import | ast.ImportFrom
    defined = {n: found for n, found in nodes.items() if n not in others and not isinstance(found[-1], imports)}
    needed = reached(defined, [name])
    parts = [nodes[n][-1] for n in nodes if n in needed]
    labels = [label for part in parts for label in _labels(part)]
    texts = ("\0".join(labels[i : i + RUN]) for i in range(len(labels) - RUN + 1))
    runs = Counter(str(crc32(text.encode("utf-8", "replace"))) for text in texts)
    return Answer("\n\n".join(map(ast.unparse, dict.fromkeys(parts))), runs)


def _labels(node):
    """The kinds of the nodes of a tree, from the top, with the names of attributes and the values of constants."""
    node = _folded(node)
    if isinstance(node, ast.Constant):
        return [repr(node.value)]
    if isinstance(node, ast.Name | ast.arg):
        return ["name"]
    labels = [node.attr if isinstance(node, ast.Attribute) else type(node).__name__]
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "type_comment", "ctx", "decorator_list"):
            continue
        parts = value if isinstance(value, list) else [value]
        if field == "keywords":
            parts = sorted(parts, key=lambda keyword: keyword.arg or "")
            labels += [keyword.arg or "**" for keyword in parts]
        for part in parts:
            if isinstance(part, ast.AST) and not _says_nothing(part):
                labels += _labels(part)
    return labels


def _says_nothing(node):
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _folded(node):
    """A constant for an expression of constants."""
    try:
        if isinstance(node, ast.UnaryOp) and type(node.op) in _FOLDED:
            return ast.Constant(_FOLDED[type(node.op)](ast.literal_eval(node.operand)))
        if isinstance(node, ast.BinOp) and type(node.op) in _FOLDED:
            left, right = _folded(node.left), _folded(node.right)
            if _is_number(left) and _is_number(right):
                return ast.Constant(_FOLDED[type(node.op)](left.value, right.value))
    except (ValueError, TypeError, ArithmeticError, AttributeError):
        pass
    return node


def _is_number(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and abs(node.value) < 1e100
