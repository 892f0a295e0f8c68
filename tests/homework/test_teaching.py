"""A teacher's own exercises: a new file, what is wrong with a file, and their way to the students and back."""

import re
import sys

import pytest

from transformer_np import cli
from transformer_np.functional import softmax
from transformer_np.grading.report import explained
from transformer_np.grading.run import Grading
from transformer_np.grading.verify import problems
from transformer_np.homework import all_exercises, check, load, progress
from transformer_np.homework.course import course_at
from transformer_np.homework.new import write_new
from transformer_np.homework.path import ExercisesError, exercises_in, own_exercises
from transformer_np.homework.stubs import effort, stub_file

CLASS = '''
import numpy as np

from transformer_np.homework.exercise import Case, Exercise, Result

from .helpers import total


class Counter:
    """Add up numbers."""

    def __init__(self, start=0.0):
        self.value = start

    def add(self, x):
        """Add the sum of x and return the value so far."""
        self.value = self.value + total(x)
        return self.value


def use(answer, start, x):
    counter = answer(start)
    return np.array([counter.add(part) for part in x])


def cases(rng):
    return [Case("", (1.0, rng.normal(size=(3, 4)))), Case("a start of 0", (0.0, rng.normal(size=(3, 4))))]


class Plain(Counter):
    def add(self, x):
        self.value = self.value + np.sum(x)
        return self.value


EXERCISES = [
    Exercise(
        reference=Counter,
        results=(Result("values", "T"),),
        cases=cases,
        drive=use,
        parts=("add",),
        answer=Plain,
        hints=("What must be kept between calls?", "v = v + sum x", "self.value"),
        difficulty=1,
        section="",
        mistakes="""
- nothing kept:  self.value = self.value + np.sum(x) -> self.value = np.sum(x)
  The sum replaces the value. It must be added to it.
- mean for sum:  np.sum -> np.mean
  The mean is added, not the sum.
""",
    )
]
'''


@pytest.fixture
def own(tmp_path):
    """A folder with the exercise of a new file."""
    return write_new("scaled", tmp_path / "mine").parent


def found(folder):
    with exercises_in(folder):
        return [problem for exercise in own_exercises().values() for problem in problems(exercise, 2.0)]


def test_a_new_file_works(own):
    assert found(own) == []
    with exercises_in(own):
        assert list(all_exercises())[-1] == "scaled"
        exercise = all_exercises()["scaled"]
        for mistake in exercise.mistakes:
            assert check("scaled", exercise.variant({mistake}), quiet=True, seed=1).misconception == mistake
    assert "scaled" not in all_exercises()
    assert not any(name.startswith("transformer_np.homework.sheets.own") for name in sys.modules)
    assert not (own / "__pycache__").exists()


@pytest.mark.parametrize("name", ["a-b", "class", "softmax", "_x", "plain", ""])
def test_a_name_that_cannot_be_used(tmp_path, name):
    with pytest.raises(ValueError, match=r"name"):
        write_new(name, tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


WRONG = {
    "its answer is not right: wrong value": ("return x / largest", "return 2 * x / largest"),
    "the function breaks a rule (scaled.py, line 41)\nIt changes x": (
        "    return x / largest", "    x /= largest\n    return x / 1"
    ),
    "its answer is not right: crashed. TypeError: plain() got an unexpected keyword argument 'axis'. The plain case is "
    "right; it fails with axis=0 (scaled.py": ("def plain(x, axis=-1):", "def plain(x):\n    axis = -1"),
    "'np.abs(x)' is not in the answer": ("    largest = np.max(np.abs(x)", "    largest = np.max(np.abs(2 * x)"),
    "its reference does not raise ValueError with axis=0, but AxisError": (
        '{"axis": 0}, sizes)', '{"axis": 9}, sizes, raises="ValueError")'
    ),
    "its reference does not raise ValueError with axis=0 (": (
        '{"axis": 0}, sizes)', '{"axis": 0}, sizes, raises="ValueError")'
    ),
    "it has no hints: write three": ('''hints=(
            "Which number do you divide by, and how many of them are there?",
            "y = x / max |x|",
            "np.abs, np.max with axis and keepdims.",
        )''', "hints=()"),
    "hints must be three texts": ('            "y = x / max |x|",\n', ""),
    "'nothing refused' is never read: an answer with this mistake is explained as 'does not raise the exception'": (
        '{"axis": 0}, sizes),', '{"axis": 0}, sizes), Case("axis=5", (x,), {"axis": 5}, sizes, raises="ValueError"),',
        "    return x / np.abs(x)", "    if axis > 4:\n        raise ValueError\n    return x / np.abs(x)",
        "    largest =", "    if axis > 4:\n        raise ValueError\n    largest =",
        "- along the last", "- nothing refused:  raise ValueError -> pass\n  Nothing is refused.\n- along the last",
    ),
    "'divided by the sum' is no mistake": ("np.max(np.abs -> np.sum(np.abs", "np.max(np.abs -> np.amax(np.abs"),
    "'without the absolute value' and 'again' look alike": (
        "- along the last", "- again:  np.abs(x) -> 1 * x\n  The same.\n- along the last"
    ),
    "the text of 'not written' is never read": (
        "- along the last", "- not written:  return x / largest -> raise NotImplementedError\n  W.\n- along the last"
    ),
    "has no text for the student": (
        "  `axis` is ignored: the maximum is always taken along the last axis. Pass it on to np.max.\n", ""
    ),
    "'without the absolute value' does not end": ("np.abs(x) -> x", "np.abs(x) -> [0 for _ in iter(int, 1)]"),
    "its inputs are the same every time": (
        'rng.normal(size=(sizes["B"], sizes["T"], sizes["D"]))', "np.arange(60.0).reshape(3, 4, 5)"
    ),
    "its inputs are others for the same rng": ("rng.normal(size", "np.random.default_rng().normal(size"),
    "its reference has no docstring": ('    """Scale x so that', '    ""\n    """Scale x so that'),
    "but its axes are 'T D'": ('Result("y", "B T D")', 'Result("y", "T D")'),
    "difficulty must be 1, 2 or 3": ("difficulty=1", "difficulty=7"),
    "it has no mistakes": ('mistakes="""', 'mistakes="""""" and """'),
    "begin with the plain one": ('Case("", (x,)', 'Case("b", (x,)'),
    "uses HALF of this file": ("def scaled(x, axis=-1)", "HALF = 0.5\n\n\ndef scaled(x, axis=-1, by=HALF)"),
    "its results are exact draws of a generator": (
        "    sizes = draw_sizes(rng",
        "    return [Case('', (rng.normal(size=(3, 4, 5)),), {'rng': rng})]\n    sizes = draw_sizes(rng",
        "def scaled(x, axis=-1", "def scaled(x, axis=-1, rng=None", "    return x / np.abs(x).max(",
        "    x = x * (rng.random(x.shape) < 0.5) if rng else x\n    return x / np.abs(x).max(",
    ),
    "'along the last axis only' raises IndexError in every case": ("axis=axis -> axis=-1", "axis=axis -> axis=[][0]"),
    "'along the last axis only' raises IndexError in every case with the message 'list index out of range'": (
        "axis=axis -> axis=-1\n  ", "axis=axis -> axis=[][0]\n  IndexError: "
    ),
    "its reference returns y as float32": (
        "    return x / np.abs(x).max(axis", "    x = np.float32(x)\n    return x / np.abs(x).max(axis"
    ),
    "its reference returns nothing but NaN for y": ("    return x / np.abs(x)", "    return x / np.abs(x * np.nan)"),
    "its reference changes x": ("    return x / np.abs(x).max(axis", "    x *= 1.5\n    return x / np.abs(x).max(axis"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("told", WRONG)
def test_what_is_wrong_is_said(own, told):
    file, (*edits,) = own / "scaled.py", WRONG[told]
    text = file.read_text(encoding="utf-8")
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        assert old in text
        text = text.replace(old, new, 1)
    file.write_text(text, encoding="utf-8")
    said = found(own)
    assert any(told in problem for problem in said) and len({*said}) == len(said), said


def test_an_empty_folder(tmp_path):
    with pytest.raises(ExercisesError, match="homework new NAME"), exercises_in(tmp_path):
        pass
    with pytest.raises(NotADirectoryError), exercises_in(tmp_path / "none"):
        pass


def test_verify_is_a_check(own, capsys):
    assert f"verify {own} " in (own / "scaled.py").read_text()
    assert "verify '" in write_new("centre", own.parent / "with space").read_text()
    assert cli.main(["homework", "verify", str(own), "--only", "scaled, Scaled"]) == 0
    assert capsys.readouterr().out == "1 exercise: nothing is wrong.\n"
    file = own / "scaled.py"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("difficulty=1", "difficulty=0"), encoding="utf-8")
    assert cli.main(["homework", "verify", str(own)]) == 1
    assert capsys.readouterr().out == ("scaled: difficulty must be 1, 2 or 3, got 0.\n1 exercise: 1 to correct.\n")
    file.write_text(text.replace("return x / np.abs(x)", "y = x / np.abs(x)"), encoding="utf-8")
    assert cli.main(["homework", "verify", str(own)]) == 1
    assert "Is there a `return` on every way through it?\n" in capsys.readouterr().out


def test_to_the_student_and_back(own, capsys, here):
    def call(*args):
        code = cli.main(["homework", *args])
        return code, capsys.readouterr().out

    assert call("start", "work", "--exercises", "mine")[0] == 0
    file = here / "work" / "homework.py"
    assert call("check", "work")[0] == 1
    text = file.read_text(encoding="utf-8")
    wrong = text.replace("raise NotImplementedError", "return x / x.max(axis, keepdims=True)")
    file.write_text(wrong, encoding="utf-8")
    code, out = call("check", "work/homework.py")
    assert code == 1 and "0 of 1 exercise right" in out
    assert "✗ scaled: wrong value: without the absolute value" in out
    assert "Which number do you divide by" in call("hint", "scaled")[1]
    (here / "another").mkdir()
    (here / "another" / "homework.py").touch()  # now a command that is printed must name the file
    again, hint = re.findall("transformer-np homework (.+)", call("check", "work")[1])
    assert call(*again.split())[0] == 1 and "Which number do you divide by" in call(*hint.split())[1]
    (here / "another" / "homework.py").unlink()
    assert "0 of 1 exercise right" in call("status")[1]
    file.write_text(wrong.replace("x.max(", "abs(x).max("), encoding="utf-8")
    assert call("check", "work") == (0, "Exercises of our own\n  ✓ scaled\n\n1 of 1 exercise right.\n")
    assert "return x / np.abs(x).max(axis, keepdims=True)" in call("solution", "scaled")[1]


def test_a_notebook_in_the_students_folder_knows_the_exercises(own, tmp_path, monkeypatch):
    def scaled(x, axis=-1):
        return x / x.max(axis, keepdims=True)

    assert cli.main(["homework", "start", str(tmp_path / "work"), "--exercises", str(own)]) == 0
    (tmp_path / "work" / "progress.json").write_text("{}", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "work")
    assert check("scaled", scaled, quiet=True).misconception == "without the absolute value"
    assert check("softmax", softmax, quiet=True).passed
    assert "Exercises of our own" in [text.get_text() for text in progress().axes[0].get_yticklabels()]
    there = "no exercise 'scaled' in .*others or in the library"
    with exercises_in(write_new("other", tmp_path / "others").parent), pytest.raises(ValueError, match=there):
        check("scaled", scaled, quiet=True)  # a folder that is in use stays
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="there is no exercise 'scaled'"):
        check("scaled", scaled, quiet=True)


@pytest.mark.long
def test_graded_in_isolation(own, tmp_path):
    (own / "counter.py").write_text(CLASS, encoding="utf-8")
    (own / "helpers.py").write_text("def total(x):\n    return x.sum()\n", encoding="utf-8")
    assert found(own) == []
    subs = tmp_path / "subs"
    subs.mkdir()
    right = "def scaled(x, axis=-1):\n    return x / abs(x).max(axis, keepdims=True)\n"
    add = "class Counter:\n    def __init__(self, start=0.0):\n        self.value = start\n\n    def add(self, x):\n"
    theirs = "from transformer_np.homework.sheets.own.scaled import plain as scaled\n"
    reads = f"def scaled(x, axis=-1):\n    return open({str(own / 'scaled.py')!r}).read()\n"
    for name, text in {
        "ada": right + add + "        self.value += x.sum()\n        return self.value\n",
        "ben": right.replace("abs(x)", "x") + add + "        self.value = x.sum()\n        return self.value\n",
        "eve": theirs,
        "mal": reads,
        "uma": "import numpy as np\n\n\ndef scaled(x, axis=-1):\n    raise ValueError(str(np.empty(2)))\n",
    }.items():
        (subs / f"{name}.py").write_text(text, encoding="utf-8")
    with exercises_in(own):
        grades = {g.student: g for g in Grading(subs, tmp_path / "g.csv", course_at(None), seed=1, trust=True).run()}
    assert all(verdict.passed for verdict in grades["ada"].verdicts.values())
    assert grades["ben"].verdicts["scaled"].misconception == "without the absolute value"
    assert grades["ben"].verdicts["Counter"].misconception == "nothing kept"
    with exercises_in(own):
        below = {title: text for title, _, text in explained(grades["ben"], course_at(None))}
    assert re.fullmatch(r"Lecture: Week 1\. \d+% of the cases are right\.", below["scaled"])
    assert re.fullmatch(r"\d+% of the cases are right\.", below["Counter"])  # which has no section
    assert not grades["eve"].verdicts["scaled"].passed
    assert not grades["mal"].verdicts["scaled"].passed
    assert "FileNotFoundError" in grades["mal"].verdicts["scaled"].message
    assert "[77. 77.]" in grades["uma"].verdicts["scaled"].message  # what the memory held is not there


def test_an_exercise_without_a_section(own):
    (own / "counter.py").write_text(CLASS, encoding="utf-8")
    (own / "helpers.py").write_text("def total(x):\n    return x.sum()\n", encoding="utf-8")
    with exercises_in(own):
        assert "\n# a line or two; hint: transformer-np homework hint Counter\n" in stub_file(own_exercises().values())
        assert "translator" not in stub_file(own_exercises().values())  # which calls none of these
        assert "translator" in stub_file([all_exercises()["softmax"]])
        assert [effort(one) for one in own_exercises().values()] == ["a line or two", "a line or two, Week 1"]


def test_a_class_keeps_its_decorators(own):
    """Without @dataclass there is no constructor, so that no answer was right."""
    given = "    def __init__(self, start=0.0):\n        self.value = start\n"
    text = CLASS.replace(given, "    value: float = 0.0\n").replace("class Counter", "@dataclass\nclass Counter", 1)
    (own / "counter.py").write_text("from dataclasses import dataclass\n" + text, encoding="utf-8")
    (own / "helpers.py").write_text("def total(x):\n    return x.sum()\n", encoding="utf-8")
    with exercises_in(own):
        exec(stub_file([own_exercises()["Counter"]]), names := {})
    assert names["Counter"](2.0).value == 2


def test_a_property_is_a_method_to_write(own):
    """`check` could call it, but `grade` could not send its signature."""
    doubled = '    @property\n    def double(self):\n        """2v"""\n        return 2 * self.value\n\n    def add('
    text = CLASS.replace("    def add(", doubled, 1).replace('parts=("add",)', 'parts=("add", "double")')
    (own / "counter.py").write_text(text, encoding="utf-8")
    (own / "helpers.py").write_text("def total(x):\n    return x.sum()\n", encoding="utf-8")
    assert found(own) == []


def test_a_students_file_in_the_same_folder_is_no_sheet(own):
    (own / "homework.py").write_text("raise ValueError('loaded')\n", encoding="utf-8")
    with exercises_in(own):
        assert list(own_exercises()) == ["scaled"]
    (own / "homework.py").write_text("def scaled(x, axis=-1):\n    return x / y\n", encoding="utf-8")
    with exercises_in(own):
        verdict = check("scaled", load(own / "homework.py").answers["scaled"], quiet=True)
    assert "return x / y" in verdict.message


MASKED = '''
import numpy as np

from transformer_np.homework.exercise import Case, Exercise, Result, draw_sizes


def masked_mean(x, mask):
    """The mean over the positions that a mask shows; True hides.

    y = sum(x where shown) / number shown,  x (B, T), mask (B, T)  ->  y (B,)
    """
    return np.where(mask, 0, x).sum(1) / (~mask).sum(1)


def cases(rng):
    sizes = draw_sizes(rng, "B T", least=4)
    mask = rng.random((sizes["B"], sizes["T"])) < 0.4
    mask[:, 0] = False
    return [Case("", (rng.normal(size=mask.shape), mask), sizes=sizes)]


def plain(x, mask):
    shown = np.logical_not(mask).astype(float)
    return (x * shown).mean(axis=1) / shown.mean(axis=1)


EXERCISES = [
    Exercise(
        reference=masked_mean,
        results=(Result("y", "B"),),
        cases=cases,
        answer=plain,
        hints=("How many positions count?", "sum / number shown", "np.where"),
        difficulty=1,
        section="",
        mistakes="""
- hidden for shown:  x * shown -> x * mask
  The hidden positions are averaged.
""",
    )
]
'''


@pytest.mark.parametrize(
    "wrong",
    ["(x * ~mask).mean(1)", "(~mask).mean(1)", "x.mean(1) / (~mask).mean(1)", "(x + ~mask).mean(1) / (~mask).mean(1)"],
)
def test_no_message_quotes_the_private_answer(wrong, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "masked_mean.py").write_text(MASKED, encoding="utf-8")
    with exercises_in(tmp_path / "mine"):
        said = check("masked_mean", eval(f"lambda x, mask: {wrong}"), quiet=True, seed=3).message
    assert "logical_not" not in said
    with exercises_in(tmp_path / "mine"):
        hidden = check("masked_mean", lambda x, mask: (x * mask).mean(1) / (~mask).mean(1), quiet=True, seed=3).message
    assert "The hidden positions are averaged." in hidden


def test_what_student_and_teacher_have_both_written_is_quoted(own):
    (own / "masked_mean.py").write_text(MASKED, encoding="utf-8")
    code = MASKED[MASKED.index("def plain") : MASKED.index("EXERCISES")].replace("plain", "masked_mean")
    (own / "homework.py").write_text("import numpy as np\n" + code.replace("/", "*"), encoding="utf-8")
    with exercises_in(own):
        said = check("masked_mean", load(own / "homework.py").answers["masked_mean"], quiet=True, seed=3).message
    assert "shown.mean(axis=1)` has the wrong operator." in said
