"""The file a student begins with."""

import ast
import inspect
from importlib.util import find_spec

import numpy as np
import pytest
from shared import python

from transformer_np import cli
from transformer_np.homework import all_exercises, check, checking
from transformer_np.homework.judging.attempt import attempt
from transformer_np.homework.path import chapter_line, chapters
from transformer_np.homework.stubs import stub, stub_file
from transformer_np.layers import blocks

NAMES = list(all_exercises())
WHOLE_PATH = list(all_exercises().values())
PARTS = [name for name, exercise in all_exercises().items() if exercise.parts]


def executed(text):
    names = {"__name__": "stubs"}
    exec(compile(text, "stubs", "exec"), names)
    return names


@pytest.fixture(scope="module")
def whole():
    return executed(stub_file(WHOLE_PATH))


@pytest.mark.parametrize("exercise", WHOLE_PATH, ids=NAMES)
def test_a_stub_is_the_library_without_the_bodies(exercise, whole):
    """Signature and docstring to the letter, and for a class of the methods too."""
    own = whole[exercise.name]
    for part in ("", *exercise.parts):
        mine, theirs = (inspect.unwrap(getattr(f, part) if part else f) for f in (own, exercise.reference))
        assert str(inspect.signature(mine)) == str(inspect.signature(theirs))
        assert mine.__doc__ == theirs.__doc__
        if not isinstance(theirs, type):
            assert theirs.__code__.co_code != mine.__code__.co_code
            arguments = [None] * sum(p.default is p.empty for p in inspect.signature(mine).parameters.values())
            with pytest.raises(NotImplementedError):
                mine(*arguments)


@pytest.mark.parametrize("name", PARTS)
def test_a_class_keeps_all_but_what_is_to_be_written(name, whole):
    exercise, own = all_exercises()[name], whole[name]
    assert own.__bases__ == tuple(whole.get(base.__name__, base) for base in exercise.reference.__bases__)
    kept, original = (
        {item.name: ast.dump(item) for item in ast.parse(text).body[0].body if isinstance(item, ast.FunctionDef)}
        for text in (stub(exercise), inspect.getsource(exercise.reference))
    )
    assert kept.keys() == original.keys()
    changed = {method for method in kept if kept[method] != original[method]}
    assert changed == set(exercise.parts)
    assert vars(own).get("slots") == vars(exercise.reference).get("slots")


def test_blocks_of_the_stubs_use_each_other(whole):
    """What the student writes is used by what the student writes: the AddNorm in the blocks."""
    block = whole["EncoderBlock"](4, 2, 6)
    assert type(block.add_norm1) is whole["AddNorm"]
    assert whole["AddNorm"] is not blocks.AddNorm
    alone = executed(stub_file([all_exercises()["EncoderBlock"]]))  # where the rest is the library's
    assert type(alone["EncoderBlock"](4, 2, 6).add_norm1) is alone["AddNorm"] is blocks.AddNorm


def test_the_file_is_in_the_order_of_the_path():
    text = stub_file(WHOLE_PATH[::-1])
    _, first, second, *rest = ast.parse(text).body
    assert ast.unparse(first) == "import numpy as np"
    assert [item.name for item in (second, *rest) if isinstance(item, ast.FunctionDef | ast.ClassDef)] == NAMES
    assert second.name == NAMES[0]
    places = [text.index(f"# --- {chapter_line(title, notebook)} ") for title, notebook, _ in chapters(WHOLE_PATH)]
    assert places == sorted(places)
    assert all(text.count(f"transformer-np homework hint {name}\n") >= 1 for name in NAMES)
    assert "homework check homework.py" in ast.get_docstring(ast.parse(text))


@pytest.mark.long
@pytest.mark.skipif(find_spec("ruff") is None, reason="ruff is not installed")
@pytest.mark.parametrize("names", [NAMES, ["softmax"], ["EncoderBlock", "tiled_attention"]], ids=len)
def test_ruff_finds_nothing(tmp_path, names):
    file = tmp_path / "homework.py"
    file.write_text(stub_file([all_exercises()[name] for name in names]), encoding="utf-8")
    strict = ["check", "--isolated", "--select", "E,F,W,B", "--ignore", "E402", "--line-length", "120"]
    for arguments in (["check", "--isolated"], strict):  # a chapter has the imports that it needs
        result = python("-m", "ruff", *arguments, file)
        assert result.returncode == 0, result.stdout


@pytest.mark.long
@pytest.mark.parametrize("name", ["relu", *PARTS])
def test_a_stub_alone_is_not_started(name):
    """Also without the other stubs around it, with the library's in their places."""
    exercise = all_exercises()[name]
    verdict = check(name, executed(stub_file([exercise]))[name], seed=0, quiet=True)
    assert verdict.outcome == "not started" and np.isclose(verdict.share, 0)


def test_only_the_plain_case_tells_whether_it_is_started(monkeypatch):
    """A whole file of stubs is checked at a glance; an answer that leaves out other cases is begun."""
    calls = []
    monkeypatch.setattr(checking, "attempt", lambda *call: calls.append(call) or attempt(*call))

    def causal_mask(T, S=None):
        raise NotImplementedError

    assert check("causal_mask", causal_mask, seed=0, quiet=True).outcome == "not started" and len(calls) == 1

    def for_equal_lengths(T, S=None):
        if S is not None:
            raise NotImplementedError
        return np.triu(np.ones((T, T), bool), 1)

    assert check("causal_mask", for_equal_lengths, seed=0, quiet=True).outcome == "crashed"


RESET = """import numpy as np  # a\u2028b\x85\x1c
\f


@np.vectorize
def relu(x):
    return x{}


def tanh(x):
    return 3


def relu(x):
    y = 1


relu = np.vectorize(relu)
"""


@pytest.mark.parametrize("broken", ["", " +"])
def test_a_stub_comes_back(tmp_path, capsys, broken):
    """Also in a file that is no Python at the moment."""
    file = tmp_path / "homework.py"
    file.write_text(RESET.format(broken), encoding="utf-8")
    for number in (1, 2):
        assert cli.main(["homework", "start", str(file), "--reset", "ReLU"]) == 0
        assert f"homework.relu.{number}.txt" in capsys.readouterr().out
    text = file.read_text(encoding="utf-8")
    assert stub(all_exercises()["relu"]) in text and text.count("def relu") == 1 and "relu = " not in text
    assert "def tanh(x):\n    return 3\n" in text
    old = (tmp_path / "homework.relu.1.txt").read_text(encoding="utf-8")
    assert f"return x{broken}\n" in old and "y = 1\n" in old
    assert cli.main(["homework", "start", str(file), "--reset", "gelu"]) == 2
    assert "has no gelu at its top level" in capsys.readouterr().err
    assert cli.main(["homework", "start", str(tmp_path / "none.py"), "--reset", "gelu"]) == 2
    assert "error: there is no file" in capsys.readouterr().err
    (tmp_path / "homework.ipynb").write_text('{"cells": []}', encoding="utf-8")
    assert cli.main(["homework", "start", str(tmp_path / "homework.ipynb"), "--reset", "gelu"]) == 2
    assert "is a notebook, and --reset only rewrites .py files" in capsys.readouterr().err
    file.write_bytes("# -*- coding: latin-1 -*-\n# Übung\ndef gelu(x): pass\n".encode("latin-1"))
    assert cli.main(["homework", "start", str(file), "--reset", "gelu"]) == 2
    assert "homework.py, line 2: the byte 0xdc at column 3 is not UTF-8" in capsys.readouterr().err
