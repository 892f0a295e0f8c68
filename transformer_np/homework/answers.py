"""What is a student's answer: which files are executed, cell by cell, and which definitions in them may count.

Nothing is executed here. `loading` executes what this module has chosen, for `check` in this process, for `grade`
behind the walls. Three kinds of definitions are no answers: those of the course's own notebooks, recognised by their
content, those of a teacher's exercise files, and stubs.
"""

import ast
import io
import re
import tokenize
import warnings
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import PurePosixPath

from ..notebooks.texts import SOLUTION, read_cells, shown, texts
from .handin import cells_of, rank
from .path import all_exercises

PIP = "pip install 'transformer-np[notebooks]'"
_SHARED = 3  # code cells that a notebook has in common with one of the course's if it was made from it
_DYNAMIC = {"exec", "globals", "setattr", "vars"}  # may bind names that stand in a text
_PACKAGE = __package__.partition(".")[0]
_RUN_BY = ("time", "capture", "prun")  # magics whose cell is Python of the notebook itself
_DEFINES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class NeedsIPython(ValueError):
    """A notebook cannot be read without IPython."""

    def __init__(self):
        super().__init__(f"notebooks are read with IPython, which is not installed here: {PIP}")


def _piece(cell=None, code=None, lines=None, own=(), course=False):
    """Code that is executed at once: a file, a cell, or a part of a file up to a second definition of the same name.

    cell: its number, None in a file; code: None for the whole file as it is; lines: {name of an exercise: line of its
    definition}; own: names that it defines as the course's notebook does; course: whether all of it is the course's
    """
    return {"cell": cell, "code": code, "lines": lines or {}, "own": list(own), "course": course}


@dataclass
class Survey:
    """What is known of the files of a hand-in before anything runs.

    load: {file: its pieces}, the files that are executed, in the order in which their answers count
    skipped: {file: names that the course's own cells would have defined if they had run}
    begun: {exercise: [file, …]} with a definition that is no stub; course: {exercise: place} of the course's own
    elsewhere: {exercise: remark} for names that nearly match and definitions where nothing finds them
    """

    load: dict = field(default_factory=dict)
    skipped: dict = field(default_factory=dict)
    begun: dict = field(default_factory=dict)
    course: dict = field(default_factory=dict)
    elsewhere: dict = field(default_factory=dict)


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
            found.load[name] = one.pieces
            found.skipped[name] = sorted(one.skipped)
        for exercise in one.begun:
            found.begun.setdefault(exercise, []).append(name)
        for exercise, place in one.course.items():
            found.course.setdefault(exercise, place)
    for name, one in read.items():
        for exercise, remark in one.elsewhere.items() if name not in of_teacher else ():
            if exercise not in found.begun:
                found.elsewhere.setdefault(exercise, remark)
    return found


def source_of(files, known):
    """{file: its code} of the files that are executed, without the course's own cells, the first one last."""
    return {
        name: files[name]
        if name.endswith(".py")
        else "\n".join(piece["code"] for piece in pieces if not piece["course"]).encode("utf-8", "replace")
        for name, pieces in reversed(known.load.items())
    }


def as_they_are(files):
    """The Survey of files that cannot be read in time: every .py file is executed."""
    load = {name: [_piece()] for name in sorted(files) if name.endswith(".py")}
    return Survey(load, dict.fromkeys(load, ()))


def place(file, cell, line):
    """Where something is, in words."""
    return ", ".join(filter(None, [file, cell and f"cell {cell}", line and f"line {line}"]))


# --- what is said of it ----------------------------------------------------------------------------------------------


def missing(name, known, crashes, where="the submission"):
    """(whether it is begun, a sentence) of an exercise for which no definition was found. crashes: {file: Crash}"""
    broken = next((file for file in known.begun.get(name, ()) if file in crashes), None)
    if broken is not None:
        return True, f"{name} is missing because {broken} {_how(broken)} ({crashes[broken].kind})."
    if name in known.elsewhere:
        return False, known.elsewhere[name] + ("" if known.elsewhere[name].endswith("?") else ".")
    if name in known.course:
        return False, f"{known.course[name]} has it as the course's notebook does, which is no answer."
    return False, f"{where} contains no {name}."


def remarks_on(known, crashes, definitions, names):
    """The remarks on a hand-in: files that fail, names, and definitions that were not counted.

    definitions: {exercise: [the Definition that counts, others]}; names: of the exercises of the course
    """
    remarks = [failed(file, crash) for file, crash in crashes.items()]
    remarks += [known.elsewhere[name] for name in names if name in known.elsewhere]
    groups = {}
    for name in names:
        first, *others = definitions.get(name) or [None]
        others = [other for other in others if not _is_replaced(other, first)]
        if others:
            also = dict.fromkeys(place("", o.cell, o.line) if o.file == first.file else o.file for o in others)
            groups.setdefault((first.file, tuple(also)), []).append((name, first))
    for (file, also), here in groups.items():
        not_counted = f"also in {', '.join(also)}, not counted"
        if len(here) > 2:
            remarks.append(f"{', '.join(name for name, _ in here)}: {file}; {not_counted}")
        else:
            remarks += [f"{name}: {place(file, one.cell, one.line)}; {not_counted}" for name, one in here]
    return remarks


def _is_replaced(one, later):
    """Whether a later definition in the same file takes the place of one, as in any Python."""
    return one.file == later.file and (one.cell or 0, one.line or 0) < (later.cell or 0, later.line or 0)


def failed(file, crash):
    """A remark on a file that raised an exception."""
    if crash.kind == "TimeoutError":
        return f"{file} timed out while loading"
    text = " ".join(crash.text.split())[:120]
    if crash.kind == "ModuleNotFoundError":  # what does not need it is there
        return f"{file} imports what is not there where answers are graded ({text})"
    return f"{file} {_how(file)} ({crash.kind}: {text})"


def _how(file):
    return "has a cell that fails" if file.endswith(".ipynb") else "could not be loaded"


def best(verdicts):
    """The index of the verdict that counts: the first that is right, or else comes nearest."""
    return max(range(len(verdicts)), key=lambda i: (_worth(verdicts[i]), -i))


def _worth(verdict):
    return verdict.passed, verdict.core, verdict.outcome != "not started", verdict.share


# --- a file ----------------------------------------------------------------------------------------------------------


class _File:
    """A .py file."""

    is_sheet = False

    def __init__(self, name, content):
        self.name, self.pieces, self.begun, self.elsewhere = name, [], {}, {}
        self.skipped, self.course, self.helpers, self.dynamic = set(), {}, [], False
        self._read(content)

    @property
    def may_answer(self):
        return self.dynamic or any(piece["lines"] for piece in self.pieces) or bool(self.begun)

    def _read(self, content):
        try:
            text, whole = _decoded(content), None
            try:
                tree = _parsed(text)
            except SyntaxError:
                text = whole = _from_cells(text)
                tree = _parsed(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._take_unread(content.decode("utf-8", "replace"))
            self.pieces, self.dynamic = [_piece()], True  # it is executed for its error
            return
        imported = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        bound = {name for node in tree.body for name in _stored(node)}
        if "EXERCISES" in bound and any("homework.exercise" in (node.module or "") for node in imported):
            self.is_sheet = True
            near = [node for node in imported if node.level]
            self.helpers = [name for node in near for name in (node.module, *(a.name for a in node.names)) if name]
            return
        found = list(_bindings(tree.body))
        self._take(found, None)
        self._take_elsewhere(tree, None)
        cuts, seen = [], set()
        for name, _, top in found:
            if name in all_exercises() and name in seen and _first_line(top) not in cuts:
                cuts.append(_first_line(top))
                seen = set()
            seen.add(name)
        if not cuts:
            self.pieces = [_piece(None, whole, self._lines(found))]
            return
        lines = io.StringIO(text).readlines()
        for begin, end in zip([1, *cuts], [*cuts, len(lines) + 1], strict=True):
            code = "\n" * (begin - 1) + "".join(lines[begin - 1 : end - 1])
            here = [one for one in found if begin <= _first_line(one[2]) < end]
            self.pieces.append(_piece(None, code, self._lines(here)))

    @staticmethod
    def _lines(found):
        return {name: node.lineno for name, node, _ in found if name in all_exercises()}

    def _take(self, found, cell):
        """Note which exercises some bindings begin, and the names that nearly match."""
        stars = [node.module or "" for name, node, _ in found if name == "*"]
        self.dynamic = self.dynamic or any(module.startswith(_PACKAGE) for module in stars)
        for name, node, _ in found:
            if name in all_exercises():
                if not is_stub(node, all_exercises()[name].parts):
                    self.begun[name] = cell
                elif line := _dead_from(node):
                    where = place(self.name, cell, line)
                    self.elsewhere[name] = f"`{name}` ends at `raise NotImplementedError` ({where}): delete this line"
            elif isinstance(node, _DEFINES) and (meant := _meant(name)):
                where = place(self.name, cell, node.lineno)
                self.elsewhere.setdefault(
                    meant, f"`{name}` ({where}) is not the name of an exercise: did you mean `{meant}`?"
                )

    def _take_elsewhere(self, tree, cell):
        """Note the definitions that nobody can call by the exercise's name."""
        calls = [n.func for n in ast.walk(tree) if isinstance(n, ast.Call)]
        texts_in = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        if _DYNAMIC & {getattr(call, "id", None) or getattr(call, "attr", None) for call in calls}:
            self.dynamic |= any(all_exercises().keys() & set(re.findall(r"\w+", text)) for text in texts_in)
        for name, node, inside in _inner(tree.body, cell is not None):
            if name in all_exercises() and not is_stub(node, all_exercises()[name].parts):
                where = place(self.name, cell, node.lineno)
                self.elsewhere.setdefault(name, f"`{name}` is {inside} ({where}): move it to the top level")

    def _take_unread(self, text, cell=None):
        """Note which exercises are begun in code that is no Python, as far as its lines tell."""
        heads = r"^(?:async\s+def|def|class)\s+(\w+)|^(\w+)\s*=[^=]"
        found = list(re.finditer(heads, text, re.MULTILINE))
        for one in found:
            name = one[1] or one[2]
            body = re.match(r".*\n?(?:(?:[ \t)].*)?\n?)*?(?=^\S|\Z)", text[one.start() :], re.MULTILINE)
            body = re.sub(r'""".*?"""', "", body[0] if body else "", flags=re.DOTALL)
            if name in all_exercises() and "raise NotImplementedError" not in body:
                self.begun[name] = cell


class _Notebook(_File):
    """A notebook. Of one that was made from a notebook of the course, a cell that nobody changed is no answer, and a
    cell without an answer is not executed as a whole: its imports, definitions and constants are, and of its
    computations those that an answer needs."""

    def _read(self, content):
        cells, parsed = [], []
        for number, kind, text in cells_of(content):
            if kind == "code":
                code, others = as_python(text)
                cells.append((number, code))
                parsed.append(_cell_tree(code))
                self._take_texts(others, number, "in a cell that another program runs")
            elif kind in ("markdown", "raw"):
                self._take_texts(text, number, f"in a {kind.capitalize()} cell")
        known = _course_of(parsed)
        needed = _needed([node for tree in parsed if tree and known for node in tree.body], known)
        for (number, code), tree in zip(cells, parsed, strict=True):
            if tree is None:
                self._take_unread(code, number)
                self.pieces.append(_piece(number, code))
            else:
                self._take_cell(number, code, tree, known, needed)
        self.dynamic = self.dynamic and not known

    def _take_cell(self, number, code, tree, known, needed):
        found = list(_bindings(tree.body, in_notebook=True))
        own = {name: node for name, node, _ in found if known and _fingerprint(node) in known.definitions}
        for name in own.keys() & all_exercises().keys():
            if not is_stub(own[name], all_exercises()[name].parts):
                self.course[name] = place(self.name, number, own[name].lineno)
        if known and _fingerprint(tree) in known.cells:
            names = all_exercises().keys() & {name for name, _, _ in found}
            self.pieces.append(_piece(number, self._only(code, tree, needed), own=names, course=True))
            return
        others = [one for one in found if one[0] not in own]
        if known and not any(name in all_exercises() for name, _, _ in others):
            code = self._only(code, tree, needed)
        self._take(others, number)
        self._take_elsewhere(tree, number)
        own_names = tuple(name for name in own if name in all_exercises() and name not in {n for n, _, _ in others})
        self.pieces.append(_piece(number, code, self._lines(others), own_names))

    def _only(self, code, tree, needed):
        """The code of a cell without the statements that compute what no answer needs."""
        lines, kept = io.StringIO(code).readlines(), set()
        for node in tree.body:
            names = set(_stored(node)) | set(_changed(node))
            if isinstance(node, ast.Import | ast.ImportFrom | _DEFINES) or _is_constant(node) or names & needed:
                kept.update(range(_first_line(node), node.end_lineno + 1))
            else:
                self.skipped |= names
        return "".join(line if n in kept else "\n" for n, line in enumerate(lines, 1))

    def _take_texts(self, text, number, inside):
        try:
            for name, node, _ in _bindings(_parsed(_fenced(text)).body):
                self._note_text(name, node, number, inside)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass

    def _note_text(self, name, node, number, inside):
        if name in all_exercises() and isinstance(node, _DEFINES) and not is_stub(node, all_exercises()[name].parts):
            where = place(self.name, number, None)
            self.elsewhere.setdefault(name, f"`{name}` is {inside} ({where}): make it a code cell")


def _fenced(text):
    """The code in a Markdown cell: that between fences, or all of it."""
    fenced = re.findall(r"^```[^\n]*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    if fenced:
        return "\n".join(fenced)
    begin = re.search(r"^(?:def|class|@|import|from)\b", text, re.MULTILINE)
    return text[begin.start() :] if begin else ""


# --- cells as IPython runs them --------------------------------------------------------------------------------------


def as_python(text):
    """(Python code, text that is no code of the notebook's) of a cell: IPython's own transformer decides what is a
    magic or a shell command, and makes a call of `get_ipython()` of it. Raises NeedsIPython."""
    manager = _transformers()
    blank = len(text) - len(text.lstrip("\r\n"))
    before, body = "\n" * text[:blank].count("\n"), text[blank:]
    head, _, rest = body.partition("\n")
    magic = re.match(r"%%(\w+)(.*)", head)
    if magic and magic[1] in _RUN_BY:
        output = re.match(r"\s*(?:--\S+\s+)*([A-Za-z_]\w*)\s*$", magic[2]) if magic[1] == "capture" else None
        code, others = as_python(rest)
        return f"{before}{f'{output[1]} = get_ipython()' if output else ''}\n{code}", others
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code = manager.transform_cell(body if body.endswith("\n") else f"{body}\n")
        except (SyntaxError, ValueError, IndexError, RecursionError):  # it is shown when the cell is executed
            code = body
    return before + code, rest if magic else ""


def _from_cells(text):
    """The Python code of a .py file that only IPython understands, such as one with cells and magics. SyntaxError if
    there is no magic in it, or no IPython here."""
    if not re.search(r"^(?:[%!]|>>> )", text, re.MULTILINE):
        raise SyntaxError
    try:
        return as_python(text)[0]
    except NeedsIPython:
        raise SyntaxError from None


@cache
def _transformers():
    try:
        from IPython.core.inputtransformer2 import TransformerManager
    except ImportError:
        raise NeedsIPython from None
    return TransformerManager()


# --- the course's own ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Known:
    """The fingerprints of the code cells of a notebook of the course, and of the definitions in them."""

    cells: frozenset
    definitions: frozenset


@cache
def _course():
    """A _Known for every notebook of the course."""
    found = []
    for text in texts():
        trees = []
        for kind, source, tags in read_cells(text.read_text(encoding="utf-8")):
            if kind == "code" and SOLUTION not in tags and (tree := _cell_tree(shown(source))):
                trees += [tree] if tree.body else []
        nodes = [node for tree in trees for _, node, _ in _bindings(tree.body)]
        found.append(_Known(frozenset(map(_fingerprint, trees)), frozenset(map(_fingerprint, nodes))))
    return found


def _course_of(trees):
    """The _Known of the notebook of the course that a notebook was made from, or None."""
    prints = {_fingerprint(tree) for tree in trees if tree is not None}
    best = max(_course(), key=lambda known: len(known.cells & prints), default=None)
    return best if best and len(best.cells & prints) >= min(_SHARED, len(best.cells)) else None


def _fingerprint(node):
    """Equal for code that differs in format, comments and docstrings alone; of a tree from `_cell_tree`."""
    return ast.dump(node)


def _cell_tree(code):
    """The syntax tree of a cell without docstrings, which a formatter changes; None if it is no Python."""
    try:
        tree = _parsed(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, _DEFINES) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return tree


def _needed(nodes, known):
    """The names that the answers among some statements need, themselves included."""
    by_name = {}
    for node in nodes:
        for name in {*_stored(node), *_changed(node)}:
            by_name.setdefault(name, []).append(node)
    own = [name for name in by_name.keys() & all_exercises().keys()
           if any(_fingerprint(node) not in known.definitions for node in by_name[name])]  # fmt: skip
    found, waiting = set(), own
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in found:
            found.add(name)
            waiting += [read for node in by_name[name] for read in _read(node)]
    return found


def _read(node):
    """The names that a statement reads, of a function or class without its own variables."""
    inside = list(ast.walk(node))
    read = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    if not isinstance(node, _DEFINES):
        return read
    own = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return read - own - {n.arg for n in inside if isinstance(n, ast.arg)}


def _changed(node):
    """The names of what a statement changes: x in `x[0] = 1`, `x.y = 1`, `x += 1` and `x.append(1)`."""
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        targets = [node.value.func] if isinstance(node.value.func, ast.Attribute) else []
    for target in targets:
        while isinstance(target, ast.Attribute | ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name):
            yield target.id


def _is_constant(node):
    try:
        ast.literal_eval(node.value if isinstance(node, ast.Assign) else None)
        return isinstance(node, ast.Assign)
    except (ValueError, TypeError):
        return False


# --- syntax trees ----------------------------------------------------------------------------------------------------


def _decoded(content):
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    return io.TextIOWrapper(io.BytesIO(content), encoding).read()


def _parsed(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an escape such as "\d"
        return compile(text, "<answers>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def _first_line(node):
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])


def _stored(node):
    """The names that a statement binds, without those inside of functions and classes."""
    if isinstance(node, _DEFINES):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _stored(child)


def _bindings(body, in_notebook=False, top=None):
    """(name, node, statement of the module) for every name that the statements of a module bind, in order. A block
    under `if __name__ == "__main__"` is executed in a notebook only."""
    for node in body:
        first = top or node
        if isinstance(node, ast.If) and _is_main(node.test):
            yield from _bindings(node.body if in_notebook else node.orelse, in_notebook, first)
        elif isinstance(node, ast.If | ast.For | ast.While | ast.With | ast.Try | ast.TryStar | ast.Match):
            for block in ("body", "orelse", "finalbody"):
                yield from _bindings(getattr(node, block, ()), in_notebook, first)
            for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                yield from _bindings(part.body, in_notebook, first)
        else:
            yield from ((name, node, first) for name in _stored(node))


def _is_main(test):
    names = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    return "__name__" in names and any(isinstance(n, ast.Constant) and n.value == "__main__" for n in ast.walk(test))


def _inner(body, in_notebook):
    """(name, node, where) of the functions and classes that are not at the top level of a module."""
    for node in body:
        if isinstance(node, ast.If) and _is_main(node.test) and not in_notebook:
            for name, inner, _ in _bindings(node.body):
                yield name, inner, 'under `if __name__ == "__main__":`, which is not executed here'
        for inner in ast.walk(node) if isinstance(node, _DEFINES | ast.If) else ():
            if isinstance(inner, _DEFINES):
                kind = "class" if isinstance(inner, ast.ClassDef) else "function"
                for child in inner.body:
                    if isinstance(child, _DEFINES):
                        yield child.name, child, f"inside of the {kind} `{inner.name}`"


def is_stub(node, parts=()):
    """Whether a definition has no body yet: of a class, whether none of the methods to write has one."""
    if isinstance(node, ast.ClassDef):
        methods = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
        return bool(parts) and all(name not in methods or is_stub(methods[name]) for name in parts)
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    if _dead_from(node):
        return True
    return all(isinstance(n, ast.Pass) or _is_dots(n) or _is_not_written(n) for n in body)


def _dead_from(node):
    """The line of a `raise NotImplementedError` that a student has left above the code of a function, or 0."""
    body = [n for n in getattr(node, "body", ()) if not isinstance(n, ast.Pass) and not _is_dots(n)]
    return body[0].lineno if len(body) > 1 and _is_not_written(body[0]) else 0


def _is_dots(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_not_written(node):
    if not isinstance(node, ast.Raise) or node.exc is None:
        return False
    error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return isinstance(error, ast.Name) and error.id == "NotImplementedError"


# --- names that nearly match -----------------------------------------------------------------------------------------


def _meant(name):
    """The exercise that a name nearly matches, or ""."""
    plain = {_plain(known): known for known in all_exercises()}
    if _plain(name) in plain:
        return plain[_plain(name)]
    near = get_close_matches(_plain(name), plain, n=1, cutoff=0.85) if len(name) > 3 else ()
    return plain[near[0]] if near else ""


def _plain(name):
    return name.lower().replace("_", "")
