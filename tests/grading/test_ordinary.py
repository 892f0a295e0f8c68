"""What the walls let through: every right answer, and what students' programs do besides."""

import ast
import re
from contextlib import closing
from pathlib import Path

import pytest
from test_grade import PATIENT, SOFTMAX
from test_sandbox import BUILT, task_of

from transformer_np.grading.judges import Judge
from transformer_np.grading.sandbox import package
from transformer_np.grading.sandbox.keeper import Keeper
from transformer_np.grading.sandbox.session import Limits, try_submission
from transformer_np.homework import all_exercises, parts

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("walls")]
# each does something that a wall could stop: the first imports what is computed inside of Python
PROGRAMS = Path(__file__).with_name("ordinary.txt").read_text(encoding="utf-8").split("\n---\n")
EXERCISES = [name for name, one in all_exercises().items() if ".sheets." not in one.reference.__module__]


@pytest.fixture(scope="module")
def helpers():
    """The processes of a grading."""
    with closing(Keeper()) as keeper, closing(Judge()) as judge:
        yield keeper, judge


def test_ordinary_programs_run():
    files = {f"p{number}.py": text.encode() for number, text in enumerate(PROGRAMS)}
    tried = try_submission({**files, "z.py": SOFTMAX.encode()}, [task_of("softmax")], Limits(60))
    assert {file: (crash.kind, crash.text) for file, crash in tried.not_loaded.items()} == {}
    assert not any(reply.crash for reply in tried.replies["softmax"][0])


def copied(name):
    """A submission that holds a copy of the library, as far as an answer needs it: {file: content}."""
    home = all_exercises()[name].reference.__module__
    files = {"answer.py": home.replace(package.PACKAGE, "import mine").encode(), "mine/__init__.py": b""}
    waiting = [home]
    while waiting:
        module = waiting.pop()
        file = parts.file_of(module)
        key = f"mine/{file.relative_to(parts.ROOT / package.PACKAGE)}" if file else ""
        if key and key not in files and module != package.PACKAGE:
            files[key] = re.sub(rb"from \.+module import", b"from transformer_np.module import", file.read_bytes())
            parent = module.rpartition(".")[0]
            found = package._imports(parts.parsed(file), module if file.name == "__init__.py" else parent)
            waiting += [parent, *(target for target, _ in found)]
    return files


def built(name):
    """The library's answer as a student would write it: with imports of the library's other parts."""
    home = all_exercises()[name].reference.__module__
    tree = parts.parsed(parts.file_of(home))
    kept, given = package._pruned(tree, frozenset([name])), parts.names_beside(all_exercises()[name])
    body = [node for node in kept.body if getattr(node, "name", "") not in given]
    taken = [node.name for node in kept.body if getattr(node, "name", "") in given]
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.level:
            node.module, node.level = ".".join([*home.split(".")[: -node.level], *filter(None, [node.module])]), 0
    head = f"from {home} import {', '.join(taken)}\n" if taken else ""
    return {"answer.py": (head + ast.unparse(ast.Module(body, []))).encode()}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.release] * (i % 3 > 0)) for i, n in enumerate(BUILT)]
)
def test_an_answer_may_use_the_parts_it_is_built_from(name, helpers):
    check_right(name, built(name), *helpers)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if i % 8 == 5 else pytest.mark.release) for i, name in enumerate(EXERCISES)]
)
def test_a_right_answer_is_right(name, helpers):
    check_right(name, copied(name), *helpers)


def check_right(name, files, keeper, judge):
    task = task_of(name)
    tried = try_submission(files, [task], PATIENT, keeper=keeper)
    verdict = judge.verdict(task, tried.replies[name][0])
    assert verdict.passed, (verdict.message, tried.not_loaded)
