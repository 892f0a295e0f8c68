"""The part of this library that the process of a submission holds: modules as compiled code, and no answer.

For most exercises these are the worker and `module` with what it imports. An exercise that is built from other parts of
the library (a block, an optimizer, decoding) gets what the module with its answer imports, and nothing else. A
module is cut to the names that are imported from it, and what these need; that with the answer, to the names beside it.
"""

import ast
import marshal
import sys
from functools import cache
from importlib.util import resolve_name

from ...homework.definitions import by_name, reached, stored
from ...homework.parts import PACKAGE, file_of, names_beside, parsed

HOMEWORK = f"{PACKAGE}.homework"
INSIDE = "/library"  # the folder that the modules seem to be in

# in every process: the worker, and modules that help with no exercise
ALWAYS = tuple(
    f"{PACKAGE}.{name}"
    for name in ("grading.sandbox.worker", "grading.sandbox.given", "module", "functional.special", "support.checks")
)
_FUNCTIONAL = f"{PACKAGE}.functional"
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

    def need(self, module, names=None):
        """Add these names of a module, or all of it, and what it imports for them."""
        file = file_of(module)
        if file is None:
            return
        tree, is_package = parsed(file), file.name == "__init__.py"
        if is_package and not (self.exercise and module == _FUNCTIONAL):  # used as F.name: nothing says which
            for target, offered in _imports(tree, module):
                if wanted := {*(names or ())}.intersection(offered or ()):
                    self.need(target, wanted)
            return
        if self.exercise and module == self.exercise.reference.__module__:
            names = names_beside(self.exercise)
        known = self._names.get(module, set())  # None: all of it
        names = None if names is None or known is None else known.union(names)
        if module in self._names and names == known:
            return
        self._names[module] = names
        self._trees[module] = tree if names is None else _pruned(tree, frozenset(names))
        package = module if is_package else module.rpartition(".")[0]
        for target, wanted in _imports(self._trees[module], package):
            self.need(target, wanted)

    @property
    def helps(self):
        """Whether it holds more of the library than every process does."""
        return any(name not in always_given() and not name.startswith(f"{HOMEWORK}.") for name in self._trees)

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
def _imports(tree, package):
    """[(module of this library, names, or None for all of it)] of every import in a tree."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            found.append((base, [alias.name for alias in node.names]))
            found += [(f"{base}.{alias.name}", None) for alias in node.names]
    return [(name, names) for name, names in found if name.partition(".")[0] == PACKAGE and file_of(name)]


@cache
def _compiled(name, tree):
    file = file_of(name)
    inside = f"{INSIDE}/{name.replace('.', '/')}" + ("/__init__.py" if file.name == "__init__.py" else ".py")
    return file.name == "__init__.py", marshal.dumps(compile(tree, inside, "exec", dont_inherit=True))


# --- parts of a module -----------------------------------------------------------------------------------------------


@cache
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
