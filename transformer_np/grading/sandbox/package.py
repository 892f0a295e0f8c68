"""The part of this library that the process of a submission holds: modules as compiled code, and no answer.

For most exercises these are the worker and `module` with what it imports. An exercise that is built from other parts of
the library (a block, an optimizer, decoding) gets what the module with its answer imports, and nothing else. Three
kinds of modules are cut to some names and what these need: a sheet, of which the function that tries an answer is left,
the module with the answer, and modules with other answers.
"""

import ast
import marshal
import sys
from functools import cache
from pathlib import Path

from ...homework.definitions import by_name, reached, stored
from ...homework.path import all_exercises, own_folder

PACKAGE = __package__.partition(".")[0]
ROOT = Path(__file__).parents[3]
HOMEWORK, OWN = f"{PACKAGE}.homework", f"{PACKAGE}.homework.sheets.own"
INSIDE = "/library"  # the folder that the modules seem to be in

# in every process: the worker, and modules that help with no exercise
ALWAYS = tuple(
    f"{PACKAGE}.{name}"
    for name in ("grading.sandbox.worker", "grading.sandbox.given", "module", "functional.special", "support.checks")
)
_PACKAGES = tuple(f"{PACKAGE}.{name}" for name in ("decoding", "layers", "models", "training"))
_LIBRARY = ("functional", "layers", "models", "training", "decoding", "masks", "module")


class Package:
    """The modules that some names need: `need` adds one, `modules` has them as {name: (whether a package, code)}.

    exercise: one that is built from other parts of the library, without its answer; None for no such parts
    """

    def __init__(self, exercise=None):
        self.exercise, self._trees, self._names = exercise, {}, {}
        for name in ALWAYS:
            self.need(name)
        if exercise is not None:
            self.need(exercise.reference.__module__)

    def need(self, module, names=()):
        """Add a module and what it imports; of a module that is cut, only these names and what they need."""
        file = _file_of(module)
        if file is None:
            return
        tree, has_parts = _parsed(file), self.exercise is not None
        is_whole = has_parts and module == f"{PACKAGE}.functional"  # used as F.name: nothing says which
        if file.name == "__init__.py" and not is_whole:
            if has_parts and module in _PACKAGES:
                for target, wanted in _imports(tree, module):
                    if {*wanted} & {*names}:
                        self.need(target, wanted)
            return
        if self._is_answers(module):
            names = names_beside(self.exercise)
        named = names and module in _answers() and (module in self._names or module not in self._trees)
        if _is_sheet(module) or self._is_answers(module) or named:
            known = self._names.setdefault(module, set())
            if module in self._trees and known >= set(names):
                return
            known.update(names)
            tree = _pruned(tree, known)
        elif module in self._trees and module not in self._names:
            return
        else:
            self._names.pop(module, None)
        self._trees[module] = tree
        package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        for target, wanted in _imports(tree, package):
            self.need(target, wanted)

    def _is_answers(self, module):
        return self.exercise is not None and module == self.exercise.reference.__module__

    @property
    def helps(self):
        """Whether it holds more of the library than every process does."""
        return any(name not in always_given() and not _is_sheet(name) for name in self._trees)

    def modules(self):
        return {name: _compiled(name, tree) for name, tree in self._trees.items()}


def package_for(exercise, needed):
    """The modules that the process of an exercise gets beside those that every process has. needed: (module, name) of
    what its inputs are made of"""
    for parts_of in [exercise] if isinstance(exercise.reference, type) else [None, exercise]:
        package = Package(parts_of)
        for module, name in needed:
            package.need(module, [name])
        if not package.helps:
            break
    return {name: code for name, code in package.modules().items() if always_given().get(name) != code}


@cache
def always_given():
    """The modules that the process of every exercise has."""
    return Package().modules()


def constants():
    """{module: {name: value}} of the numbers, texts and tuples of these in the library's modules: defaults of some
    parameters."""
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{PACKAGE}.") and name.split(".")[1] in _LIBRARY:
            found[name] = {k: v for k, v in vars(module).items() if k[0] != "_" and _is_constant(v)}
    return found


def _is_constant(value):
    return all(map(_is_constant, value)) if type(value) is tuple else isinstance(value, int | float | str)


# --- modules and their imports ---------------------------------------------------------------------------------------


@cache
def _answers():
    """The modules with answers, which are cut where they are imported by name. `functional` is used as F.name."""
    homes = {one.reference.__module__ for one in all_exercises().values()}
    return {home for home in homes if not home.startswith(f"{PACKAGE}.functional")}


def _is_sheet(module):
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


@cache
def _imports(tree, package):
    """(module of this library, names) for every import in a tree."""
    return list(_found_imports(tree, package))


def _found_imports(tree, package):
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


def _pruned(tree, names):
    """The module with nothing but these names and what they need."""
    kept, body = reached(by_name(tree.body), names), []
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            aliases = [a for a in node.names if (a.asname or a.name.partition(".")[0]) in kept]
            if isinstance(node, ast.Import) and aliases:
                body.append(ast.copy_location(ast.Import(aliases), node))
            elif aliases:
                body.append(ast.copy_location(ast.ImportFrom(node.module, aliases, node.level), node))
        elif kept.intersection(stored(node)):
            body.append(node)
    return ast.Module(body, [])


def names_beside(exercise):
    """The public names that the module with the answer to an exercise keeps: neither the answer, nor what uses it, nor
    functions that it uses, nor other answers unless it inherits from them or calls them."""
    home, name = exercise.reference.__module__, exercise.name
    nodes = by_name(_parsed(_file_of(home)).body)
    others = {one.name for one in all_exercises().values() if one.reference.__module__ == home}
    uses = reached(nodes, [name])
    functions = {n for n, found in nodes.items() if isinstance(found[-1], ast.FunctionDef)}
    hidden = {n for n in nodes if name in reached(nodes, [n])} | (uses & functions) | (others - uses)
    return {n for n in nodes.keys() - hidden if n[0] != "_"}
