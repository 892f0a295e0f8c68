"""The part of this library that the process of a submission holds: modules as compiled code, and no answer.

For most exercises these are the worker and `module` with what it imports. An exercise that is built from other parts of
the library (a block, an optimizer, decoding) gets these parts too, without its own answer: the functions with the
answer are replaced by ones that refuse the call. Of a sheet, only the function that tries an answer is left, with what
it needs; the answers and the mistakes are cut off.
"""

import ast
import marshal
import sys
from functools import cache
from pathlib import Path

from ...homework.path import own_folder

PACKAGE = __package__.partition(".")[0]
ROOT = Path(__file__).parents[3]
HOMEWORK, OWN = f"{PACKAGE}.homework", f"{PACKAGE}.homework.sheets.own"
INSIDE = "/library"  # the folder that the modules seem to be in

# in every process: the worker, and modules that help with no exercise
ALWAYS = tuple(
    f"{PACKAGE}.{name}"
    for name in ("grading.sandbox.worker", "grading.sandbox.given", "module", "functional.special", "support.checks")
)
# packages that an exercise which is built from other parts of the library gets whole
_LIBRARY = ("functional", "layers", "models", "training")
_LIBRARY_NAMES = (*_LIBRARY, "decoding", "masks", "module")


class Package:
    """The modules that some names need: `need` adds one, `modules` has them as {name: (whether a package, code)}."""

    def __init__(self, library=False):
        self.library, self._trees, self._names = library, {}, {}
        for name in ALWAYS:
            self.need(name)
        if library:
            for name in _LIBRARY_NAMES:
                self.need(f"{PACKAGE}.{name}")

    def need(self, module, names=()):
        """Add a module and what it imports; of a module of the homework, only these names and what they need."""
        file = _file_of(module)
        if file is None or (file.name == "__init__.py" and not self._is_whole(module)):
            return
        if _is_cut(module):
            known = self._names.setdefault(module, set())
            if module in self._trees and known >= set(names):
                return
            known.update(names)
            tree = _pruned(_parsed(file), known)
        elif module in self._trees:
            return
        else:
            tree = _parsed(file)
        self._trees[module] = tree
        parent = module.rpartition(".")[0]
        self.need(parent)
        for target, wanted in _imports(tree, module if file.name == "__init__.py" else parent):
            self.need(target, wanted)

    def _is_whole(self, module):
        return self.library and (module == PACKAGE or module.split(".")[1] in _LIBRARY)

    @property
    def helps(self):
        """Whether it holds more of the library than every process does."""
        return any(name not in always_given() and not _is_cut(name) for name in self._trees)

    def modules(self, exercise=None, exercises=()):
        """The code of the modules, without the answer to an exercise."""
        hidden = hidden_names(exercise, exercises) if exercise is not None and self.library else set()
        home = exercise.reference.__module__ if hidden else ""
        trees = {n: _without_bodies(t, n, hidden) if n == home else t for n, t in self._trees.items()}
        return {name: _compiled(name, tree) for name, tree in trees.items()}


@cache
def always_given():
    """The modules that the process of every exercise has."""
    return Package().modules()


def constants():
    """{module: {name: value}} of the numbers and texts in the library's modules: defaults of some parameters."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{PACKAGE}.") and name.split(".")[1] in _LIBRARY_NAMES:
            values = {k: v for k, v in vars(module).items() if k[0] != "_" and isinstance(v, int | float | str)}
            found[name] = values
    return found


# --- modules and their imports ---------------------------------------------------------------------------------------


def _is_cut(module):
    """Whether only those names of a module are given that are needed."""
    return module.startswith(f"{HOMEWORK}.")


def _file_of(module):
    """The file of a module of this library or of a teacher's folder, or None."""
    root, parts = ROOT, module.split(".")
    if module.startswith(f"{OWN}.") and own_folder():
        root, parts = own_folder(), module.removeprefix(f"{OWN}.").split(".")
    place = root.joinpath(*parts)
    return next((p for p in (place.with_suffix(".py"), place / "__init__.py") if p.is_file()), None)


def _parsed(file):
    return _tree_of(file, file.stat().st_mtime_ns)


@cache
def _tree_of(file, changed):
    return ast.parse(file.read_bytes())


def _imports(tree, package):
    """(module of this library, names) for every import in a tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names if alias.name.partition(".")[0] == PACKAGE)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])
            base = base if node.level else node.module
            if base.partition(".")[0] == PACKAGE:
                yield base, [alias.name for alias in node.names]
                yield from ((f"{base}.{alias.name}", ()) for alias in node.names if _file_of(f"{base}.{alias.name}"))


def _compiled(name, tree):
    file = _file_of(name)
    inside = f"{INSIDE}/{name.replace('.', '/')}" + ("/__init__.py" if file.name == "__init__.py" else ".py")
    return file.name == "__init__.py", marshal.dumps(compile(tree, inside, "exec", dont_inherit=True))


# --- parts of a module -----------------------------------------------------------------------------------------------


def _bound(node):
    """The names that a statement at the top of a module binds."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _read(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def reached(nodes, names):
    """The names of a module that these names need, themselves included. nodes: {name: statements that bind it}"""
    found, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name in nodes and name not in found:
            found.add(name)
            waiting += [other for node in nodes[name] for other in _read(node)]
    return found


def by_name(tree):
    nodes = {}
    for node in tree.body:
        for name in _bound(node):
            nodes.setdefault(name, []).append(node)
    return nodes


def _pruned(tree, names):
    """The module with nothing but these names and what they need."""
    kept, body = reached(by_name(tree), names), []
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            aliases = [a for a in node.names if (a.asname or a.name.partition(".")[0]) in kept]
            if isinstance(node, ast.Import) and aliases:
                body.append(ast.copy_location(ast.Import(aliases), node))
            elif aliases:
                body.append(ast.copy_location(ast.ImportFrom(node.module, aliases, node.level), node))
        elif _bound(node) & kept:
            body.append(node)
    return ast.Module(body, [])


def hidden_names(exercise, exercises):
    """The qualified names of the functions with the answer to an exercise: the reference, the functions of its module
    that it uses or that use it, and the module's other exercises unless it needs them."""
    reference = exercise.reference
    nodes = by_name(_parsed(_file_of(reference.__module__)))
    defined = {
        name: found[-1] for name, found in nodes.items() if isinstance(found[-1], ast.FunctionDef | ast.ClassDef)
    }
    others = {e.name for e in exercises if e.reference.__module__ == reference.__module__} - {exercise.name}
    needed, waiting = set(), [exercise.name]
    while waiting:
        name = waiting.pop()
        bases = getattr(defined[name], "bases", ())  # of another exercise, only what it inherits
        for other in set().union(*map(_read, bases if name in others else [defined[name]])) & defined.keys() - needed:
            needed.add(other)
            waiting.append(other)
    whole = (others & defined.keys()) - needed | {exercise.name}
    whole |= {name for name in needed - others if isinstance(defined[name], ast.FunctionDef)}
    here = {name: [node] for name, node in defined.items()}
    functions = [name for name, node in defined.items() if isinstance(node, ast.FunctionDef)]
    whole |= {name for name in functions if exercise.name in reached(here, [name])}
    given = {"__init__"} if exercise.parts and "__init__" not in exercise.parts else set()
    hidden = set()
    for name in whole:
        node = defined[name]
        if isinstance(node, ast.FunctionDef):
            hidden.add(name)
        else:
            methods = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            hidden |= {f"{name}.{method}" for method in methods - (given if name == exercise.name else set())}
    return hidden


def _without_bodies(tree, module, hidden):
    """The module with functions that refuse the call in place of the hidden ones."""

    def emptied(node, name):
        if isinstance(node, ast.ClassDef):
            body = [emptied(part, f"{name}.{getattr(part, 'name', '')}") for part in node.body]
            return ast.copy_location(
                ast.ClassDef(node.name, node.bases, node.keywords, body, node.decorator_list), node
            )
        if name not in hidden:
            return node
        said = ast.parse(f"return __refuse__({f'{module}.{name}'!r})").body
        return ast.copy_location(ast.FunctionDef(node.name, node.args, said, node.decorator_list, node.returns), node)

    first = ast.parse(f"from {__package__}.given import refuse as __refuse__").body
    body = [emptied(node, getattr(node, "name", "")) for node in tree.body]
    return ast.fix_missing_locations(ast.Module([*first, *body], []))
