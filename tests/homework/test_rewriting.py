"""Mistakes as rewrites of a right answer: finding places, making variants, saying what does not fit."""

import numpy as np
import pytest

from transformer_np.homework.rewriting import Exclusive, Mistakes, read
from transformer_np.homework.sheets.sheet import Sheet

# --- an answer with a helper, and one that is a class -----------------------------------------------------------------


def spread(x):
    centred = x - x.mean()
    return (centred * centred).mean()


def standardise(x, eps=0.0):
    """Mean 0 and variance 1."""
    y = x - x.mean()
    if eps:
        y = y / np.sqrt(
            spread(x)  # of all numbers
            + eps
        )
    else:
        y = y / np.sqrt(spread(x))
    return y


class Sum:
    def __init__(self, start=0.0):
        self.total = start

    def add(self, x):
        self.total = self.total + x
        return self.total

    def remove(self, x):
        self.total = self.total - x
        return self.total


X = np.array([1.0, 2.0, 6.0])


def mistakes(notes, answer=standardise):
    return Mistakes(answer, notes)


def only(code, answer=standardise):
    return mistakes(f"- m:{code}\n  The text.\n", answer).variant(["m"])


# --- making variants --------------------------------------------------------------------------------------------------


def test_without_mistakes_it_is_the_answer_itself():
    assert mistakes("- m:  return y -> return 2 * y\n  T.").variant() is standardise


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("  return y -> return 2 * y", 2 * standardise(X)),
        ("  y = x - x.mean() -> y = x", X / np.sqrt(spread(X))),
        ("  in standardise: x.mean() -> x.max()", (X - 6) / np.sqrt(spread(X))),
        ("  in spread: x.mean() -> 0", (X - 3) / np.sqrt((X * X).mean())),
        ("  every x.mean() -> x.max()", (X - 6) / np.sqrt(((X - 6) ** 2).mean())),
        ("  2nd np.sqrt -> np.square", (X - 3) / spread(X) ** 2),
        ("  return y -> y = 3 * y; return y", 3 * standardise(X)),
        ("  y = x - x.mean(); if eps: -> y = 1 + x; if eps:", (1 + X) / np.sqrt(spread(X))),
        ("  return np.abs(x)", X),
        ("\n    y = 7 * x\n    if eps:\n        y = 0\n    return y", 7 * X),
        ("  in spread: return x.max()", (X - 3) / np.sqrt(6)),
        ("\n    in spread:\n        x = 2 * x\n        return x.max()", (X - 3) / np.sqrt(12)),
        ("\n    return y ->\n        if not eps:\n            y[0] = 9\n        return y", [9, *standardise(X)[1:]]),
        ("\n    in standardise: x.mean() -> 1\n    np.sqrt(spread(x)) -> 2", (X - 1) / 2),
        ("\n    if eps: -> if not eps:\n    np.sqrt(spread(x)   +eps) -> 5", (X - 3) / 5),  # on lines with a comment
    ],
)
def test_a_rewrite_changes_the_answer(code, expected):
    assert np.allclose(only(code)(X), expected)
    assert np.allclose(standardise(X), (X - 3) / np.sqrt(14 / 3))  # which is as it was


def test_methods_of_a_class():
    answer = only("\n    in add: self.total + x -> self.total - x\n    in Sum.remove: return None", Sum)
    total = answer(3.0)
    assert (total.add(1), total.remove(1), total.total) == (2, None, 2)
    assert Sum(3.0).add(1) == 4
    with pytest.raises(ValueError, match="which method"):
        only("  return None", Sum)


def test_variants_are_made_once():
    both = mistakes("- a:  return y -> return -y\n  T.\n- b:  np.sqrt(spread(x)) -> 2\n  T.\n")
    assert both.variant(["a", "b"]) is both.variant(("b", "a"))
    assert np.allclose(both.variant(["a", "b"])(X), -(X - 3) / 2)


def test_comments_headings_and_texts():
    notes = "# --- heading\n\n- cut: off:  return y -> return -y\n  One line\n  and another.\n"
    found = mistakes(notes + "\n- b:\n    return x\n  B.\n")
    assert dict(found) == {"cut: off": "One line and another.", "b": "B."}


# --- what does not fit ------------------------------------------------------------------------------------------------


def test_mistakes_in_the_same_place_exclude_each_other_unless_they_are_the_same():
    notes = "- a:  np.sqrt(spread(x)) -> 2\n  A.\n- b:  2nd np.sqrt -> np.square\n  B.\n"
    found = mistakes(notes + "- c:  return y -> return -y\n  C.\n")
    with pytest.raises(Exclusive, match=r"standardise, 'a' and 'b' rewrite the same place"):
        found.variant(["b", "a"])
    assert not found.compatible(["a", "b"]) and found.compatible(["a", "c"])
    both = "    in standardise: x.mean() -> 0\n"
    found = mistakes(f"- a:\n{both}    return y -> return -y\n  A.\n- b:\n{both}    np.sqrt(spread(x)) -> 2\n  B.\n")
    assert np.allclose(found.variant(["a", "b"])(X), -X / 2)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("  x.sum() -> 0", r"standardise, 'm': 'x.sum\(\)' is not in the answer"),
        ("  x.mean() -> 0", r"is in the answer 2 times; write more of it, or 'every', '2nd' or 'in name:' before"),
        ("  3rd x.mean() -> 0", "is in the answer 2 times, not 3rd"),
        ("  in spred: x.mean() -> 0", "there are 0 functions or classes 'spred'"),
        ("  x.mean() ->", "code on both sides"),
        ("  x.mean() -> 0\n    return x", "'return x' has no arrow"),
        ("", "has no rewrite"),
        ("  return y -> return (y", "was never closed"),
        ("\n    np.sqrt(spread(x)) -> 2\n    2nd np.sqrt -> np.square", "rewrite the same place"),
    ],
)
def test_a_rewrite_that_does_not_fit_is_said(code, message):
    with pytest.raises((ValueError, SyntaxError), match=message):
        only(code)
    (problem,) = mistakes(f"- m:{code}\n  T.\n").problems()
    assert problem


def test_problems_of_the_notes_themselves():
    assert mistakes("- a:  return y -> return -y\n  A.\n").problems() == []
    (twice,) = mistakes("- a:  return y -> return x\n  A.\n- a:  return y -> return -y\n  B.\n").problems()
    assert "two mistakes called 'a'" in twice
    (no_text,) = mistakes("- a:  return y -> return -y\n").problems()
    assert "no text" in no_text
    (stray,) = mistakes("return y -> return -y\n").problems()
    assert "not part of a mistake" in stray


def test_rewrites_of_different_parts_of_a_line_can_be_made_together():
    returned = {"squared": "return y**2", "tripled": "return 3 * y", "negative": "return -y"}
    centred = {"sum": "y = x - x.sum()", "plus": "y = x + x.mean()", "of rows": "y = x - np.mean(x)"}
    rewrites = {name: f"return y -> {code}" for name, code in returned.items()}
    rewrites |= {name: f"y = x - x.mean() -> {code}" for name, code in centred.items()}
    notes = mistakes("".join(f"- {name}:  {code}\n  T.\n" for name, code in rewrites.items()))
    np.testing.assert_allclose(notes.variant(["squared", "tripled"])(X), 3 * standardise(X) ** 2)
    np.testing.assert_allclose(notes.variant(["sum", "plus"])(X), (X + X.sum()) / np.std(X))
    assert not notes.compatible(["tripled", "negative"])  # at one place
    assert not notes.compatible(["sum", "of rows"])


OTHERS = """## others

- first:  x -> y
  One.
- second:
    x -> y
    y -> x
  Two.
- times {n}:  x -> {n} * x
  Not {n}.
"""


@pytest.fixture
def section(tmp_path):
    """A function: the mistakes of a section that includes OTHERS as the lines say."""
    (tmp_path / "other.md").write_text(OTHERS, encoding="utf-8")

    def written(lines):
        file = tmp_path / f"sheet{len(list(tmp_path.iterdir()))}.md"
        file.write_text(f"## own\n\n= other: others\n{lines}", encoding="utf-8")
        return [(entry.name, entry.text, entry.code) for entry in read(Sheet(file)["own"])]

    return written


def test_a_section_includes_another_one(section):
    left = section("  without: first | second\n  n: 2 | 3\n")
    assert left == [("times 2", "Not 2.", "x -> 2 * x"), ("times 3", "Not 3.", "x -> 3 * x")]
    with pytest.raises(ValueError, match=r"no such mistakes.*fourth"):
        section("  without: fourth\n")


def test_a_mistake_of_its_own_takes_the_place_of_one_that_is_included(section):
    first, second, *_, last = section("- second:  y -> z\n  Another two.\n- third:  x -> z\n  Three.\n")
    assert first == ("first", "One.", "x -> y")
    assert second == ("second", "Another two.", "y -> z")
    assert last == ("third", "Three.", "x -> z")
