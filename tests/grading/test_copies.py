"""Answers that are alike are seen, and what everyone writes is not."""

import inspect

import pytest
from test_grade import BACKWARD, SOFTMAX, grade, hand_in, rows_of

from transformer_np.functional import core
from transformer_np.grading import copies
from transformer_np.grading.copies import LIBRARY, alike, answers_in, matrix, published, side_by_side, with_whom
from transformer_np.homework import all_exercises
from transformer_np.homework.stubs import stub_file

NORM = """
import numpy as np

def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    inv_std = 1.0 / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + eps)
    x_hat = centred * inv_std
    if not np.isfinite(x_hat).all():
        raise ValueError("not finite")
    return gamma * x_hat + beta, x_hat, inv_std
"""
COPY = '''
import numpy as np
# all of it is mine

def layer_norm(data, g, b, eps: float = 1e-5):
    """Normalise."""
    m = data.mean(keepdims=True, axis=-1)
    c = data - m
    i = (3 - 2.0) / np.sqrt(np.mean(c**2, keepdims=True, axis=-1) + eps)  # the deviation
    h = c * i
    if not np.isfinite(h).all():
        raise ValueError("not finite")
    return g * h + b, h, i
'''
OTHER = """
import numpy as np

def layer_norm(x, gamma, beta, eps=1e-5):
    n = x.shape[-1]
    mu = np.einsum("...d->...", x)[..., None] / n
    variance = np.einsum("...d,...d->...", x - mu, x - mu)[..., None] / n
    inv_std = np.power(variance + eps, -0.5)
    x_hat = (x - mu) * inv_std
    return np.multiply(gamma, x_hat) + beta, x_hat, inv_std
"""


def found_in(**sources):
    names = list(all_exercises())
    return alike({name: answers_in({"a.py": source.encode()}, names) for name, source in sources.items()})


def pairs(found):
    return {(one.exercise, *one.two) for one in found}


def test_a_copy_is_seen_through_its_disguise_with_a_line_more_and_cut_into_functions():
    (one,) = found_in(ada=NORM, ben=COPY, cem=OTHER)
    assert (one.exercise, one.two, one.part) == ("layer_norm", ("ada", "ben"), 1)
    changed = COPY.replace("    m = data", "    unused = 0\n    m = data")
    (one,) = found_in(ada=NORM, ben=changed)
    assert 0.9 <= one.part < 1
    calls = "\ndef layer_norm(x, g, b, eps=1e-5):\n    return {0}(x, g, b, eps)\n"
    ada = NORM.replace("def layer_norm", "def _own") + calls.format("_own")
    ben = COPY.replace("def layer_norm", "def _mine") + calls.format("_mine")
    assert pairs(found_in(ada=ada, ben=ben)) == {("layer_norm", "ada", "ben")}


def test_short_answers_count_only_together():
    first = SOFTMAX + BACKWARD
    more = "def layer_norm(x, g, b, eps=1e-5):\n    y = x - x.mean(-1, keepdims=True)\n"
    more += "    i = (np.mean(y * y, -1, keepdims=True) + eps) ** -0.5\n    return y * i * g + b, y * i, i\n"
    more += "def linear_backward(dy, x, w):\n    d, a = dy.reshape(-1, w.shape[1]), x.reshape(-1, w.shape[0])\n"
    more += "    return dy @ w.T, a.T @ d, d.sum(0)\n"
    assert not found_in(ada=first, ben=first)
    names = {one.exercise for one in found_in(ada=first + more, ben=first + more)}
    assert names == {"softmax", "layer_norm", "linear_backward"}


def test_a_form_that_many_share_does_not_count():
    few, many = {f"s{i}": NORM for i in range(4)}, {f"s{i}": NORM for i in range(6)}
    assert len(found_in(**few)) == 6
    assert not found_in(**many)


@pytest.mark.parametrize("name", ["layer_norm", "cross_entropy", "layer_norm_backward"])
def test_the_library_is_recognised(name):
    copied = "import numpy as np\n" + inspect.getsource(inspect.unwrap(getattr(core, name)))
    assert (name, "ada", LIBRARY) in pairs(found_in(ada=copied, cem=OTHER))


def test_every_published_solution_is_found():
    assert all(published(name) for name in all_exercises())


@pytest.mark.parametrize("content", ["def f(:", "x = " + "(" * 5000, "-" * 100_000 + "1", "\0", "a" + ".b" * 20_000])
def test_what_cannot_be_read_is_no_answer(content):
    assert answers_in({"a.py": content.encode()}, ["softmax"]) == {}


def test_what_the_teacher_reads():
    found = found_in(ada=NORM, ben=COPY.replace("mine", "<b>"))
    assert with_whom("ada", found) == "ben: layer_norm"
    assert with_whom("cem", found) == ""
    assert matrix(found) == [["", "ada", "ben"], ["ada", "", "1"], ["ben", "1", ""]]
    assert "x_hat = centred * inv_std" in side_by_side(found) and "<b>" not in side_by_side(found)


@pytest.mark.long
def test_a_column_a_matrix_and_a_page(tmp_path):
    folder = hand_in(tmp_path / "in", {"ada": NORM, "ben": COPY, "cem": OTHER})
    grade(folder, 'exercises = ["layer_norm"]')
    rows, reports = rows_of(tmp_path / "g.csv"), tmp_path / "g_reports"
    assert [rows[name]["alike"] for name in ("ada", "ben", "cem")] == ["ben: layer_norm", "ada: layer_norm", ""]
    assert "| ada |  | 1 |" in (reports / "overview.md").read_text()
    assert "ada and ben, 100%" in (reports / "alike.html").read_text()
    for name in rows:  # students do not read about each other
        for ending in ("md", "html"):
            assert "alike" not in (reports / f"{name}.{ending}").read_text()


@pytest.mark.parametrize("name", ["AddNorm", "EncoderBlock"])
def test_what_every_student_is_given_is_no_copy(name):
    exercise = all_exercises()[name]
    handout = stub_file([exercise])
    assert exercise.given or name not in handout
    begun = handout.replace("raise NotImplementedError", "return self.norm(x)", 1)
    assert found_in(ada=handout, ben=handout, eve=handout.replace("self", "me")) == []
    assert found_in(ada=begun, ben=handout) == []
    assert "__init__" not in answers_in({"a.py": begun.encode()}, [name])[name].text


def test_the_methods_that_students_write_are_compared():
    body = inspect.getsource(all_exercises()["AddNorm"].reference)
    own = "import numpy as np\n" + body.replace("self", "this")
    assert ("AddNorm", "ada", "ben") in pairs(found_in(ada=own, ben=own.replace("this", "me")))


def test_who_has_the_same_file_is_told_in_the_same_order_again():
    """Texts have another hash in every process: no order may come from a set of them."""
    others = {f"s{number}": [{"homework.py": str(number)}] for number in range(8)}
    mine = {f"{number}.py": str(number) for number in range(8)}
    told = copies.same_files({"ada": [mine], **others})["ada"]
    assert told == "the same file as s0 (homework.py), s1 (homework.py), s2 (homework.py) and 5 more"
