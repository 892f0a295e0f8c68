"""A class of 150: the honest grades are the same with 60 attacks among them, and no attack earns what it should not."""

import itertools
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from attacks import ATTACKS as KNOWN
from invented import BY_CHANCE, INVENTED
from test_attacks import HONEST
from test_grade import BACKWARD, DIAGONAL, NO_AXIS, SOFTMAX, hand_in, rows_of
from test_people import WRONG, notebook

from transformer_np.grading.run import Grading
from transformer_np.grading.sandbox.session import Limits
from transformer_np.homework.course import parse_course

pytestmark = pytest.mark.long
COURSE = parse_course('partial = true\nexercises = ["softmax", "softmax_backward"]')
ATTACKS = dict(itertools.islice((INVENTED | KNOWN).items(), 60))
RIGHT, SYNTAX = SOFTMAX + BACKWARD, "def softmax(x:\n    return x\n"
HUGE = SOFTMAX + "TABLE = [" + "0.123456789, " * 300_000 + "]\n"
# {ending: contents of files, which are different students}; 90 together with the links and those without a submission
FILES = {
    ".py": [source for source, _ in HONEST.values()] * 2
    + [SOFTMAX + DIAGONAL, SOFTMAX + NO_AXIS, WRONG, WRONG + BACKWARD, "def softmax(x, axis=-1):\n    x -= 1\n"] * 3
    + ["", "\n\n", "# nothing yet\n", SYNTAX, SYNTAX + RIGHT, "def softmax(x):\n\treturn x\n        return 1\n"] * 2
    + [RIGHT.encode("utf-16"), RIGHT.encode("utf-8-sig"), f"# é\n{RIGHT}".encode("latin-1"), RIGHT.encode("utf-32")]
    + [b"\0" * 1000, bytes(range(256)) * 40, HUGE, "x = [0] * 10**11\n" + RIGHT, RIGHT.replace("\n", "\r")],
    ".ipynb": [notebook(("code", RIGHT)), notebook(("code", SOFTMAX), ("code", "1 / 0"), ("code", BACKWARD)),
               notebook(("markdown", RIGHT)), notebook(), "{", "[]", notebook(("code", "%pylab\n" + WRONG))],
}  # fmt: skip


def graded(root, attacks):
    folder, ids = hand_in(root / "in", {name: source for name, (source, *_) in attacks.items()}), []
    for ending, contents in FILES.items():
        for content in contents:
            ids.append(f"s{len(ids):03}")
            content = content if isinstance(content, bytes) else content.encode()
            (folder / f"{ids[-1]}{ending}").write_bytes(content)
    for _ in range(5):  # three attempts each
        ids.append(f"s{len(ids):03}")
        for number, source in enumerate([WRONG, RIGHT, SOFTMAX + DIAGONAL]):
            hand_in(folder, {f"{ids[-1]}-{number}": source})
            os.utime(folder / f"{ids[-1]}-{number}.py", (time := 1e9 + number, time))
    for target in ("s000.py", "/etc/passwd", "nothing", "."):
        ids.append(f"s{len(ids):03}")
        os.symlink(target, folder / f"{ids[-1]}.py")
    ids += [f"s{number:03}" for number in range(len(ids), 90)]  # without a submission
    (root / "roster.csv").write_text("id\n" + "".join(f"{name}\n" for name in ids))
    grading = Grading(
        folder, root / "grades.csv", COURSE, limits=Limits(3), workers=2, seed=7, roster=root / "roster.csv"
    )
    return {grade.student: grade for grade in grading.run()}


@pytest.mark.release
@pytest.mark.usefixtures("walls")
def test_a_class_of_150(tmp_path):
    roots = [tmp_path / "alone", tmp_path / "among"]
    for root in roots:
        root.mkdir()
    alone, among = graded(roots[0], {}), graded(roots[1], ATTACKS)
    assert (len(alone), len(among)) == (90, 150)
    assert set(rows_of(roots[1] / "grades.csv")) == set(among)
    for name, grade in alone.items():
        assert replace(among[name], handed_in=grade.handed_in, alike=grade.alike) == grade
    for name, (_, points, word) in ATTACKS.items():
        got = among[name]
        if name in BY_CHANCE:
            assert got.points(COURSE) <= 1, name
        else:
            assert got.points(COURSE) == points, name
            assert word in "; ".join(got.remarks), name
    assert not list(Path(tempfile.gettempdir()).glob("submission-*"))
