"""What is a student's answer: which files are executed, cell by cell, and which definitions in them may count.

Nothing is executed here. `loading` executes what this module has chosen, for `check` in this process, for `grade`
behind the walls. Three kinds of definitions are no answers: those of the course's own notebooks, recognised by their
content, those of a teacher's exercise files, and stubs.
"""

import ast
import io
import re
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.util import decode_source
from itertools import pairwise
from pathlib import PurePosixPath

from ..support.intercept import is_of_package
from . import course_cells
from .course_cells import cell_tree, course_of, fingerprint, only_needed
from .definitions import DEFINES, KEPT, NO_PYTHON, bindings, dead_from, first_line, inner, is_stub, parsed, unread
from .handin import cells_of, rank
from .judging.syntax import name_of
from .magics import as_python, from_cells
from .path import all_exercises, plain
from .remarks import place

_EXPORTED = re.compile(r"^# ?(?:In ?\[|%%)|get_ipython|Colab", re.MULTILINE)  # Jupyter, VS Code and Spyder, Colab


def _piece(cell=None, code=None, found=(), own=frozenset(), course=False, names=()):
    """Code that is executed at once: a file, a cell, or a part of one: the definitions up to a second one of the same
    name, or the statements between them, which may take too long.

    cell: its number, None in a file; code: None for the whole file as it is; found: its bindings: the lines and the
    stubs of those that may be answers are noted; own: names that are defined as in the course's notebook; course:
    whether all of it is the course's; names: {exercise: another name that its answer has here}
    """
    exercises = {name: node for name, node, _ in found if name in all_exercises()}
    nodes = {name: node for name, node in exercises.items() if name not in own}
    lines = {name: node.lineno for name, node in nodes.items()}
    stubs = [name for name, node in nodes.items() if not _is_written(name, node)]
    return {
        "cell": cell, "code": code, "lines": lines, "stubs": stubs, "own": sorted(exercises.keys() & own),
        "course": course, "names": dict(names),
    }  # fmt: skip


@dataclass
class Survey:
    """What is known of the files of a hand-in before anything runs.

    load: {file: {"pieces": what is executed of it, "skipped": names that the course's own cells would have defined if
        they had run}}, in the order in which the answers count
    begun: {exercise: {file: cell or None}} of definitions that are no stubs; course: {exercise: place} of the course's
        own
    elsewhere: {exercise: remark} for names that nearly match and definitions where nothing finds them
    """

    load: dict = field(default_factory=dict)
    begun: dict = field(default_factory=dict)
    course: dict = field(default_factory=dict)
    elsewhere: dict = field(default_factory=dict)

    def names(self, file):
        """{exercise: another name that its answer has in this file}"""
        return {n: own for piece in self.load.get(file, {}).get("pieces", ()) for n, own in piece["names"].items()}


def survey(files):
    """The Survey of {name: bytes}. A lone file is executed whatever is in it. Raises NeedsIPython."""
    read = {name: _Notebook(name, content) if name.endswith(".ipynb") else _File(name, content)
            for name, content in sorted(files.items(), key=lambda item: rank(item[0]))}  # fmt: skip
    of_teacher = {name for name, one in read.items() if one.is_sheet}
    for name in of_teacher.copy():
        folder = PurePosixPath(name).parent
        of_teacher |= {str(folder / f"{helper}.py") for helper in read[name].helpers}
    found = Survey()
    for name, one in read.items():
        if name in of_teacher:
            continue
        if len(files) == 1 or one.may_answer:
            found.load[name] = {"pieces": one.pieces, "skipped": sorted(one.skipped)}
        for exercise, cell in one.begun.items():
            found.begun.setdefault(exercise, {})[name] = cell
        found.course |= one.course | found.course  # the first file's count
        found.elsewhere |= one.elsewhere | found.elsewhere
    found.elsewhere = {name: remark for name, remark in found.elsewhere.items() if name not in found.begun}
    return found


def source_of(files, known, course=False):
    """{file: its code} of the files that are executed, the first one last; of a notebook without the course's own
    cells, or those alone."""
    cells = {
        name: [piece["code"] for piece in of_file["pieces"] if piece["course"] == course]
        for name, of_file in reversed(known.load.items())
    }
    return {
        name: files[name] if name.endswith(".py") else "\n".join(codes).encode("utf-8", "replace")
        for name, codes in cells.items()
    }


def as_they_are(files):
    """The Survey of files that cannot be read in time: every .py file is executed."""
    return Survey({name: {"pieces": [_piece()], "skipped": []} for name in sorted(files) if name.endswith(".py")})


# --- a file -----------------------------------------------------------------------------------------------------------


class _File:
    """A .py file."""

    def __init__(self, name, content):
        self.name, self.pieces, self.begun, self.elsewhere = name, [], {}, {}
        self.skipped, self.course, self.helpers = set(), {}, []
        self.is_sheet = self.dynamic = False
        self._checked = {}  # {name: exercise} of what a notebook checks under another name
        self._read(content)

    @property
    def may_answer(self):
        return self.dynamic or any(piece["lines"] for piece in self.pieces) or bool(self.begun)

    def _read(self, content):
        try:
            text, whole = decode_source(content), None
            try:
                tree = parsed(text)
            except SyntaxError:
                text = whole = from_cells(text)
                tree = parsed(text)
        except NO_PYTHON:
            self._take_unread(content.decode("utf-8", "replace"))
            self.pieces, self.dynamic = [_piece()], True  # it is executed for its error
            return
        imported = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        has_exercises = any(name == "EXERCISES" for name, _, _ in bindings(tree.body))
        if has_exercises and any("homework.exercise" in (node.module or "") for node in imported):
            self.is_sheet = True
            near = [node for node in imported if node.level]
            self.helpers = [name for node in near for name in (node.module, *(a.name for a in node.names)) if name]
            return
        cells = [(None, code, cell_tree(code)) for code in _cells_of_export(text)] if _EXPORTED.search(text) else []
        if known := course_of(tree for _, _, tree in cells):
            self._take_cells(cells, known)
        else:
            self._take_code(None, text, tree)
        kept = "".join(line.removeprefix(KEPT) if line.startswith(KEPT) else "\n" for line in io.StringIO(text))
        for name, _, line in unread(kept):
            if name in all_exercises():
                where = f"({place(self.name, None, line + 1)}), where the page puts what cannot be imported"
                self.elsewhere[name] = f"`{name}` is behind `#|` {where}: mend it and delete the `#|`"
        if len(self.pieces) == 1:
            self.pieces[0]["code"] = whole

    def _take_cells(self, cells, known):
        """Note the answers in [(number, code, its tree or None), …]. known: the notebook of the course that they are
        from, or None"""
        trees = [tree for _, _, tree in cells if tree]
        self._checked = {name: exercise for tree in trees for name, exercise in _checked(tree)}
        needed = course_cells.needed_by_answers(
            [node for tree in trees if known for node in tree.body], known, self._checked
        )
        for number, code, tree in cells:
            if tree is None:
                self._take_unread(code, number)
                self.pieces.append(_piece(number, code))
            else:
                self._take_code(number, code, tree, known, needed)
        self.dynamic = self.dynamic and not known

    def _take_code(self, number, code, tree, known=None, needed=()):
        """Note the answers in a file, or in the cell with this number, and the pieces in which it is executed. known:
        the notebook of the course that it is from; needed: the names that answers need there"""
        bound = list(bindings(tree.body, in_notebook=number is not None))
        found = [(self._checked.get(name, name), node, top) for name, node, top in bound]
        own = {name: node for name, node, _ in found if known and fingerprint(node) in known.definitions}
        for name, node in own.items():
            if _is_written(name, node):
                self.course[name] = place(self.name, number, node.lineno)
        is_unchanged = known and course_cells.statements(tree) in known.cells
        others = [one for one in found if one[0] not in own]
        if is_unchanged or (known and not any(name in all_exercises() for name, _, _ in others)):
            code, skipped = only_needed(code, tree, needed)
            self.skipped |= skipped
        if is_unchanged:
            self.pieces.append(_piece(number, code, found, own.keys(), course=True))
            return
        self._take(others, number)
        self._take_elsewhere(tree, number)
        for part, here in self._cut(code, tree, found):
            tops = [top for _, _, top in here]
            names = {self._checked[name]: name for name, _, top in bound if name in self._checked and top in tops}
            self.pieces.append(_piece(number, part, here, own.keys(), names=names))

    @staticmethod
    def _cut(text, tree, found):
        """[(code, its bindings)]: a text, cut before each further definition of the same exercise, and where statements
        begin or end that run something."""
        cuts, seen, ran, last = [], set(), False, first_line(tree.body[0]) if tree.body else 0
        for node in tree.body:
            names = {name for name, _, top in found if top is node and name in all_exercises()}
            runs = not names and _runs(node)
            if (names & seen or runs != ran) and first_line(node) > last:
                cuts.append(first_line(node))
                seen = set()
            seen, ran, last = seen | names, runs, node.end_lineno
        lines, parts = io.StringIO(text).readlines(), []
        for begin, end in zip([1, *cuts], [*cuts, len(lines) + 1], strict=True):
            here = [one for one in found if begin <= first_line(one[2]) < end]
            parts.append(("\n" * (begin - 1) + "".join(lines[begin - 1 : end - 1]), here))
        return parts

    def _take(self, found, cell):
        """Note which exercises some bindings begin, and the names that nearly match."""
        stars = [node.module or "" for name, node, _ in found if name == "*"]
        self.dynamic = self.dynamic or any(map(is_of_package, stars))
        for name, node, _ in found:
            if _is_written(name, node):
                self.begun[name] = cell
            elif name in all_exercises():
                if line := dead_from(node):
                    where = place(self.name, cell, line)
                    self.elsewhere[name] = f"`{name}` ends at `raise NotImplementedError` ({where}): delete this line"
            elif isinstance(node, DEFINES) and (meant := _meant(name)):
                where = place(self.name, cell, node.lineno)
                self.elsewhere.setdefault(
                    meant, f"`{name}` ({where}) is not the name of an exercise: did you mean `{meant}`?"
                )

    def _take_elsewhere(self, tree, cell):
        """Note the definitions that nobody can call by the exercise's name."""
        for name, node, inside in inner(tree.body, cell is not None):
            if _is_written(name, node):
                where = place(self.name, cell, node.lineno)
                self.elsewhere.setdefault(name, f"`{name}` is {inside} ({where}): move it to the top level")

    def _take_unread(self, text, cell=None):
        """Note which exercises are begun in code that is no Python, as far as its lines tell."""
        for name, body, _ in unread(text):
            code = re.sub(r'""".*?"""', "", body, flags=re.DOTALL)
            if name in all_exercises() and "raise NotImplementedError" not in code:
                self.begun[name] = cell


class _Notebook(_File):
    """A notebook. Of one that was made from a notebook of the course, a cell that nobody changed is no answer, and a
    cell without an answer is not executed as a whole: its imports, definitions and constants are, and of its
    computations those that an answer needs. What a cell checks as an exercise is an answer whatever its name is."""

    def _read(self, content):
        cells = []
        for number, kind, text in cells_of(content):
            if kind == "code":
                code, others = as_python(text)
                cells.append((number, code, cell_tree(code)))
                self._take_texts(others, number, "in a cell that another program runs")
            elif kind in ("markdown", "raw"):
                self._take_texts(text, number, f"in a {kind.capitalize()} cell")
        self._take_cells(cells, course_of(tree for _, _, tree in cells))

    def _take_texts(self, text, number, inside):
        with suppress(*NO_PYTHON):
            for name, node, _ in bindings(parsed(_fenced(text)).body):
                if isinstance(node, DEFINES) and _is_written(name, node):
                    where = place(self.name, number, None)
                    self.elsewhere.setdefault(name, f"`{name}` is {inside} ({where}): make it a code cell")


def _cells_of_export(text):
    """The cells of a .py file that was exported from a notebook, each below as many lines as there."""
    lines = io.StringIO(text).readlines()
    begins = sorted({1, *map(first_line, course_cells.first_of_cells(cell_tree(text)))})
    for begin, end in pairwise([*begins, len(lines) + 1]):
        yield "\n" * (begin - 1) + "".join(lines[begin - 1 : end - 1])


def _runs(node):
    """Whether a statement does more than to define something."""
    is_definition = isinstance(node, DEFINES | ast.Import | ast.ImportFrom)
    running = ast.Call | ast.For | ast.While | ast.Assert | ast.Raise | ast.Return
    return not is_definition and any(isinstance(n, running) for n in ast.walk(node))


def _is_written(name, node):
    """Whether a definition is of an exercise, and neither a stub nor the library's."""
    if isinstance(node, ast.ImportFrom) and is_of_package(node.module):
        return False
    return name in all_exercises() and not is_stub(node, all_exercises()[name].parts)


def _checked(tree):
    """(name, exercise) of each check("exercise", name) in a cell, if the name is no exercise's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name_of(node.func) == "check":
            given = dict(zip(("name", "answer"), node.args, strict=False)) | {k.arg: k.value for k in node.keywords}
            exercise, answer = getattr(given.get("name"), "value", None), getattr(given.get("answer"), "id", None)
            if exercise in all_exercises() and answer and answer not in all_exercises():
                yield answer, exercise


def _fenced(text):
    """The code in a Markdown cell: that between fences, or all of it."""
    fenced = re.findall(r"^```[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    if fenced:
        return "\n".join(fenced)
    begin = re.search(r"^(?:def|class|@|import|from)\b", text, re.MULTILINE)
    return text[begin.start() :] if begin else ""


def _meant(name):
    """The exercise that a name nearly matches, or ""."""
    known = {plain(exercise): exercise for exercise in all_exercises()}
    near = get_close_matches(plain(name), known, n=1, cutoff=0.85 if len(name) > 3 else 1)
    return known[near[0]] if near else ""
