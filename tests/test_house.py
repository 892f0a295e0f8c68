"""The house: what the parts of the package import of one another."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import transformer_np

PACKAGE = Path(transformer_np.__file__).parent

# From the ground up; a part imports from floors below it, and from its own. docs/architecture.md shows them.
FLOORS = (
    ("support",), ("masks", "module", "data", "notebooks"), ("functional",), ("layers", "decoding"), ("models",),
    ("training", "pretrained"), ("inspection", "tasks"), ("bench", "lecture", "plots"), ("homework",),
    ("grading",), ("commands",), ("cli",), ("__main__",),
)  # fmt: skip
FLOOR_OF = {part: floor for floor, parts in enumerate(FLOORS) for part in parts}
PATHS = {"blocks", "complexity", "gradcheck", "tracing"}  # documented import paths of what lives in a folder
FILES = {file.relative_to(PACKAGE).with_suffix("").parts: file for file in PACKAGE.rglob("*.py")}
MODULES = {(parts[:-1] if parts[-1] == "__init__" else parts): file for parts, file in FILES.items()}


def imports_of(module):
    """The modules of the package that a module imports, anywhere in its code; () is the package itself."""
    file = MODULES[module]
    folder = module if file.name == "__init__.py" else module[:-1]
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = folder[: len(folder) + 1 - node.level] + tuple((node.module or "").split(".") if node.module else ())
            for alias in node.names:
                inner = (*base, alias.name)
                assert base or inner in MODULES or alias.name == "__version__", f"{file}: import it from where it lives"
                found.add(inner if inner in MODULES else base)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            assert not any(name.split(".")[0] == PACKAGE.name for name in names), f"{file}: import it relatively"
    return found - {module}


# The only files that import a module by a name which they compute; the floors cannot be read off such an import.
BY_NAME = {
    ("__init__",),  # the package loads its parts when they are asked for
    ("bench", "contestants"),  # a module of its own folder
    ("cli",),  # the command that is called
    ("lecture", "statements"),  # the checks of a lecturer's statements
    ("homework", "exercise"),  # the package of an exercise's function
    ("homework", "path"),  # its own sheets
    ("support", "platform"),  # whether a module of the system is there
    ("commands", "site"),  # whether JupyterLite is installed
    ("homework", "own"),  # the files of a teacher
    ("tasks", "__init__"),  # the task that is trained
    ("grading", "sandbox", "given"),  # a module of the package that a submission names
}
IMPORTERS = {"import_module", "__import__", "run_module", "run_path"}


def names_called(file):
    """The last names of everything that a file calls: `f` of f(…) and of a.b.f(…)."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield getattr(node.func, "id", None) or getattr(node.func, "attr", None)


@pytest.fixture(scope="module")
def imports():
    return {module: imports_of(module) for module in MODULES}


def test_every_import_is_understood(imports):
    assert all(imported in MODULES for found in imports.values() for imported in found)
    assert ("functional", "core") in imports[("functional", "t5")]
    assert sum(map(len, imports.values())) > 400


def test_no_circle(imports):
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail("these files import one another in a circle: " + " -> ".join("/".join(m) for m in error.args[1]))


def test_every_part_has_a_floor_and_the_documentation_shows_them():
    assert {module[0] for module in MODULES if module} - PATHS == set(FLOOR_OF)
    text = (PACKAGE.parent / "docs" / "architecture.md").read_text("utf-8")
    shown = text.split("```text\n")[1].split("\n```")[0].splitlines()
    assert shown[::-1] == [", ".join(parts) for parts in FLOORS]


def test_no_import_upwards(imports):
    assert imports[()] == set()  # the package itself imports nothing of its parts
    for module in (m for m in MODULES if m and m[0] not in PATHS):
        parts = {imported[0] for imported in imports[module] if imported}
        assert not parts & PATHS, f"{'/'.join(module)}: inside the package import from where it lives"
        upwards = {part for part in parts if FLOOR_OF[part] > FLOOR_OF[module[0]]}
        beside = {part for part in parts if FLOOR_OF[part] == FLOOR_OF[module[0]]} - {module[0]}
        assert not upwards and not beside, "/".join(module)


@pytest.mark.long
def test_no_other_file_imports_by_name():
    found = {parts for parts, file in FILES.items() if IMPORTERS & set(names_called(file))}
    assert found == BY_NAME
