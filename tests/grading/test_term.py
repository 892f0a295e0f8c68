"""A term: hand-ins are records, and every grading is a function of them. The table after each step."""

import json
import os
import threading
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from test_grade import BACKWARD, DIAGONAL, PATIENT, SOFTMAX, graded, hand_in, lines_of, parse, rows_of

from transformer_np.grading import results, submissions
from transformer_np.grading.changes import changes
from transformer_np.grading.grade import Result
from transformer_np.grading.records import Records
from transformer_np.grading.run import Grading
from transformer_np.grading.submissions import read_entry
from transformer_np.homework.course import parse_course
from transformer_np.homework.judging.judge import Verdict
from transformer_np.homework.new import write_new
from transformer_np.homework.path import definition_of, exercises_in

DUE = datetime(2026, 6, 12, 12)
RELU, NO_RELU = (f"import numpy as np\ndef relu(x):\n    return {body}\n" for body in ("np.maximum(x, 0)", "np.abs(x)"))
SCALE = "def scale(x, axis=-1):\n    return x / np.abs(x).{}(axis, keepdims=True)\n"
BY_MAX, BY_SUM = SCALE.format("max"), SCALE.format("sum")
SHEET = """
exercises = ["scale", "relu"]
folder = "own"
deadline = 2026-06-12T12:00:00
attempts = "best"
[late]
per_day = 10
[points]
scale = 2
"""
ROSTER = "id,deadline,corrected relu,written (4)\n" + "".join(
    f"{name},{'2026-06-15T12:00' if name == 'eli' else ''},,\n"
    for name in ("ada", "ben", "cem", "dana", "eli", "fay", "gus", "leo")
)


class Course:
    """A folder in which a teacher grades with the command."""

    def __init__(self, root, capsys):
        self.root, self.capsys = root, capsys
        write_new("scale", root / "own")
        self.correct("scale")  # a mistake, until it is corrected
        hand_in(root, {"sheet1.toml": SHEET, "sheet2.toml": 'exercises = ["softmax"]\n', "roster.csv": ROSTER})
        (root / "in").mkdir()

    def correct(self, name):
        """Exchange the sum and the maximum in an exercise."""
        file = self.root / "own" / f"{name}.py"
        file.write_text(file.read_text().replace("max", "?").replace("sum", "max").replace("?", "sum"))

    def hand_in(self, name, text, days, folder="in"):
        file = hand_in(self.root / folder, {name: f"# {name}\n{text}"}) / f"{name}.py"
        os.utime(file, ((DUE + timedelta(days=days)).timestamp(),) * 2)

    def grade(self, sheet="sheet1", folder="in"):
        """({student: points}, what the command says of changes)."""
        args = parse(folder, "--course", f"{sheet}.toml", "--roster", "roster.csv", "--trust")
        args.run(args)
        self.told = self.capsys.readouterr().out
        self.table, self.rows = (self.root / "grades.csv").read_text(), rows_of(self.root / "grades.csv")
        changes = [line for line in self.told.splitlines() if " → " in line or line.endswith(": new")]
        return {name: row["points"] for name, row in self.rows.items()}, changes


@pytest.mark.release
def test_two_sheets_of_a_class(here, capsys, monkeypatch):
    course = Course(here, capsys)
    points, changes = course.grade()
    assert [row["remarks"] for row in course.rows.values()] == ["no submission"] * 8
    assert ({*points.values()}, changes) == ({"0"}, [])

    first = {"ada": RELU + BY_MAX, "ben": NO_RELU + BY_MAX, "cem": RELU + BY_SUM, "leo": NO_RELU + BY_SUM}
    for name, text in first.items():
        course.hand_in(name, text, -1)
    for name in ("dana", "eli"):
        course.hand_in(name, RELU + BY_MAX, 1.5)
    hand_in(here / "in" / "fay", {"homework": (here / "in" / "ada.py").read_bytes()})
    os.utime(here / "in" / "fay" / "homework.py", (DUE.timestamp(),) * 2)
    released = {"ada": "1", "ben": "0", "cem": "3", "dana": "0.8", "eli": "1", "fay": "1", "gus": "0", "leo": "2"}
    assert course.grade()[0] == released
    assert "2 days late (file): 80 % of the points" in course.rows["dana"]["remarks"]
    assert course.rows["eli"]["remarks"] == "deadline 2026-06-15 12:00 (roster)"
    assert course.rows["ada"]["remarks"] == "the same file as fay (homework.py)"
    assert "fay" not in (here / "grades_reports" / "ada.md").read_text()

    course.hand_in("ben", RELU + BY_MAX, -1)  # the same name, the same time
    course.hand_in("ada", NO_RELU, -0.5)
    again = released | {"ben": "1"}
    assert course.grade() == (again, ["ben 0 → 1: a new hand-in, attempt 2 of 2 counts"])
    assert [course.rows[name]["attempt"] for name in ("ben", "ada", "cem")] == ["2 of 2", "1 of 2", "1 of 1"]

    course.correct("scale")
    corrected = again | {"ada": "3", "ben": "3", "cem": "1", "dana": "2.4", "eli": "3", "fay": "3", "leo": "0"}
    why = [f"{n} {was} → {corrected[n]}: exercise scale corrected" for n, was in again.items() if n != "gus"]
    assert course.grade() == (corrected, why)
    earlier = Path(course.told.partition("The earlier table: ")[2].splitlines()[0])
    assert {name: row["points"] for name, row in rows_of(earlier).items()} == again

    by_teacher = ROSTER.replace("leo,,,", "leo,,1,3").replace("dana,,,", "dana,,,2.5")
    hand_in(here, {"roster.csv": by_teacher})
    why = ["dana 2.4 → 4.9: written answers", "leo 0 → 4: relu corrected in the roster; written answers"]
    assert course.grade() == (corrected | {"leo": "4", "dana": "4.9"}, why)

    before = course.table
    with monkeypatch.context() as newer:
        newer.setattr(results, "__version__", "9.0")
        newer.setattr(results, "_library", lambda: "9.0")
        assert course.grade()[1] == [] and "unchanged" not in course.told
    assert course.table == before
    assert course.grade()[1] == [] and "9 of 9 submissions unchanged" in course.told
    assert course.table == before

    hand_in(here, {"roster.csv": ROSTER})  # relu is not in this sheet
    for name in ("ada", "ben", "zoe"):
        course.hand_in(name, SOFTMAX, 7, "in2")
    points, _ = course.grade("sheet2", "in2")
    assert {name for name, of in points.items() if of == "1"} == {"ada", "ben", "zoe"}
    hand_in(here, {"roster.csv": by_teacher})
    assert course.grade()[1] == [] and course.table == before


# --- what keeps the records ------------------------------------------------------------------------------------------

TWO = parse_course('exercises = ["softmax", "softmax_backward"]\nattempts = "best"')


@pytest.mark.long
def test_an_earlier_attempt_outlives_another_course_and_another_file(tmp_path):
    folder = hand_in(tmp_path / "in", {"ada": SOFTMAX + BACKWARD})
    graded(folder, TWO)
    hand_in(folder, {"ada": SOFTMAX + DIAGONAL})
    more = parse_course('exercises = ["softmax", "softmax_backward", "relu"]\nattempts = "best"')
    grades, grading = graded(folder, more)
    assert (grades["ada"].points(more), grades["ada"].attempt) == (2, (1, 2))
    assert grading.changes == []
    (folder / "ada.py").unlink()
    hand_in(folder, {"ben": RELU})
    grades, grading = graded(folder, more)
    assert (grades["ada"].points(more), grades["ada"].attempt) == (2, (1, 2))
    assert grades["ada"].notes == ("its file is not among the submissions any more",)
    assert grading.changes == ["ben 1: new"]
    told = [(tmp_path / name).read_text() for name in ("g.csv", "g_reports/ada.md", "g_reports/overview.md")]
    (tmp_path / "g_records" / "results.jsonl").unlink()
    _, grading = graded(folder, more)  # of the records alone
    assert (grading.reused, grading.changes, grading.earlier) == (0, [], None)
    assert told == [(tmp_path / name).read_text() for name in ("g.csv", "g_reports/ada.md", "g_reports/overview.md")]
    entries = [line["entry"] for line in lines_of(tmp_path / "g_records" / "hand-ins.jsonl")]
    assert entries == ["ada.py", "ada.py", "ben.py"]


@pytest.mark.long
def test_the_same_bytes_are_remarked_even_where_nothing_can_be_graded(tmp_path):
    broken = "def relu(x:\n    return x\n"
    folder = hand_in(tmp_path / "in", {"ada": broken, "ben": broken, "cem": "x = 1\n", "dana": "x = 1\n"})
    grades, _ = graded(folder, parse_course('exercises = ["relu"]'))
    assert {name: of.notes for name, of in grades.items()} == {
        "ada": ("the same file as ben (ben.py)",), "ben": ("the same file as ada (ada.py)",), "cem": (), "dana": (),
    }  # fmt: skip


@pytest.mark.long
def test_two_gradings_at_once(tmp_path, monkeypatch):
    folder, relu = hand_in(tmp_path / "in", {"ada": RELU}), parse_course('exercises = ["relu"]')
    grading = Grading(folder, tmp_path / "g.csv", relu, limits=PATIENT, trust=True)
    record = grading._record

    def meanwhile():
        with pytest.raises(FileExistsError, match=rf"g_records is in use by process {os.getpid()}"):
            graded(folder, relu)
        return record()

    monkeypatch.setattr(grading, "_record", meanwhile)
    (ada,) = grading.run()
    assert ada.points(relu) == 1
    assert graded(folder, relu)[0]["ada"].attempt == (1, 1)


@pytest.mark.long
def test_nothing_among_the_submissions_is_a_record(tmp_path):
    """The table is among the submissions, so a submission may have any name."""
    folder, relu = hand_in(tmp_path / "in", {"ada": NO_RELU}), parse_course('exercises = ["relu"]')
    grades, grading = graded(folder, relu, folder / "grades.csv")
    assert grades["ada"].points(relu) == 0
    assert (grading.reports, grading.records) == (tmp_path / "in_reports", tmp_path / "in_records")
    (tmp_path / "mine").write_text("mine")
    for name in ("grades_records", "grades_reports"):
        os.rename(grading.records, folder / name) if name == "grades_records" else (folder / name).mkdir()
        (folder / name / "eve.py").write_text("")
        (folder / name / "ada.md").symlink_to(tmp_path / "mine")
    results = folder / "grades_records" / "results.jsonl"
    results.write_text(results.read_text().replace('"wrong value"', '"passed"'))
    (folder / "grades.csv").unlink()
    (folder / "grades.csv").symlink_to(tmp_path / "mine")
    (tmp_path / "in_reports" / "ada.md").unlink()
    (tmp_path / "in_reports" / "ada.md").symlink_to(tmp_path / "mine")
    grades, _ = graded(folder, relu, folder / "grades.csv")
    assert grades["ada"].points(relu) == 0
    assert (tmp_path / "mine").read_text() == "mine"
    assert "ada" in rows_of(folder / "grades.csv")
    with pytest.raises(ValueError, match="among the submissions: choose another --reports"):
        Grading(folder, tmp_path / "g.csv", relu, folder / "grades_reports")


def test_a_folder_with_something_else_is_no_records_and_no_link_in_it_is_followed(tmp_path):
    place = tmp_path / "g_records"
    place.mkdir()
    (place / "ada.json").write_text("{}")
    with pytest.raises(ValueError, match="g_records holds no records of a grading"):
        Records(place, ["relu"])
    (place / "ada.json").rename(tmp_path / "mine")
    (place / "hand-ins.jsonl").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError):
        Records(place, ["relu"])


def recorded(records, path, **options):
    records.add(read_entry(path), 1, **options)
    return [(record.entry, *record.files, record.by) for record in records.hand_ins]


def test_records_are_only_added_to(tmp_path):
    folder, place = hand_in(tmp_path / "in", {"ada": "x = 1"}), tmp_path / "r"
    place.mkdir()
    assert recorded(Records(place, ["relu"]), folder / "ada.py") == [("ada.py", "ada.py", "")]
    (before,) = lines_of(place / "hand-ins.jsonl")
    os.utime(folder / "ada.py", (1, 1))
    assert len(recorded(Records(place, ["relu"]), folder / "ada.py")) == 1  # only its time is another
    hand_in(folder, {"ada": "x = 2"})
    with (place / "hand-ins.jsonl").open("ab") as file:
        file.write(b'{"entry": "b')  # the computer was switched off
    records = Records(place, ["relu"])
    assert records.damaged == ["hand-ins.jsonl, line 3"]
    assert len(recorded(records, folder / "ada.py", time=DUE)) == 2
    again = Records(place, ["relu", "softmax"])
    assert (again.hand_ins, again.hand_ins[1].said) == (records.hand_ins, DUE)
    assert json.loads((place / "hand-ins.jsonl").read_text().splitlines()[1]) == before
    assert [again.content(*one.files.values()) for one in again.hand_ins] == [b"x = 1", b"x = 2"]
    assert not Records(place, ["softmax"]).hand_ins  # of another sheet
    assert not Records(place, ["relu"], "sheet1").hand_ins
    (place / "files" / again.hand_ins[0].files["ada.py"]).write_bytes(b"x = 9")
    with pytest.raises(ValueError, match="damaged"):
        again.content(again.hand_ins[0].files["ada.py"])


def test_a_reason_is_named_only_where_it_changes_points():
    """Of other points for an exercise, of another package, of both; none where the teacher gave the points."""
    rows = [{"points": [p, 0], "parts": {"relu": p}, "corrected": {}, "written": {}, "number": 1, "factor": 1} for p in
            (0.5, 1, 2)]  # fmt: skip
    half, one, two = (
        {"rows": {"ada": row}, "worth": {"relu": ["relu", worth]}, "package": ["1.0", digest], "limits": [],
         "definitions": {"relu": ""}, "course": {"late": None, "partial": True}}
        for row, worth, digest in zip(rows, (1, 2, 2), "abc", strict=True)
    )  # fmt: skip
    assert changes(half, one) == ["ada 0.5 → 1: relu counts 2, not 1"]
    assert changes(one, two) == ["ada 1 → 2: transformer-np 1.0 changed"]
    assert changes(half, two) == ["ada 0.5 → 2: relu counts 2, not 1; transformer-np 1.0 changed"]
    course = {"late": None, "partial": False}
    none = half | {"rows": {"ada": rows[0] | {"points": [0, 0], "parts": {"relu": 0}}}, "course": course}
    assert changes(half, none) == ["ada 0.5 → 0: partial = false"]
    by_hand = rows[0] | {"corrected": {"relu": 0.5}, "factor": 0.5, "time": None, "all": [1, 2]}
    late = course | {"late": {"due": "12", "per_day": "10"}}
    half["rows"]["ada"] |= {"corrected": {"relu": 0.5}, "time": None}
    less = two | {"rows": {"ada": by_hand | {"points": [0.25, 0]}}, "course": late}
    assert changes(half, less) == ["ada 0.5 → 0.25: [late] changed"]
    second = by_hand | {"points": [0.2, 0], "factor": 0.4, "number": 2, "time": "13", "attempt": [2, 2]}
    assert changes(less, less | {"rows": {"ada": second}}) == ["ada 0.25 → 0.2: attempt 2 of 2 counts"]
    gone = less | {"rows": {"ada": by_hand | {"points": [0, 0], "corrected": {}, "parts": {}}}, "worth": {}}
    assert changes(less, gone) == ["ada 0.25 → 0: relu left out"]


def test_no_earlier_table_is_in_the_way_of_another(tmp_path):
    records, table = Records(tmp_path, ["relu"]), tmp_path / "g.csv"
    table.write_text("0")
    assert [records.keep_table(table, b"1").name for _ in range(2)] == ["g-1.csv", "g-2.csv"]
    (tmp_path / "tables" / "g-1.csv").unlink()  # by the teacher
    assert records.keep_table(table, b"1").name == "g-3.csv"


def test_a_renamed_file_keeps_its_records(tmp_path):
    folder, place = hand_in(tmp_path / "in", {"homework (1)": "x = 1"}), tmp_path / "r"
    place.mkdir()
    recorded(Records(place, ["relu"]), folder / "homework (1).py")
    os.rename(folder / "homework (1).py", folder / "ada.py")
    records = Records(place, ["relu"])
    seen = read_entry(folder / "ada.py")
    assert records.renamed(seen, {"ada.py", "homework (1).py"}) is None
    assert records.renamed(seen, {"ada.py"}) == "homework (1).py"
    records.rename("homework (1).py", "ada.py")
    assert records.renamed(seen, {"ada.py"}) is None
    assert [one.entry for of in (records, Records(place, ["relu"])) for one in of.hand_ins] == ["ada.py"] * 2
    for again in (records, Records(place, ["relu"])):
        assert len(recorded(again, folder / "ada.py")) == 1  # not another attempt


def test_what_cannot_be_read_is_this_students_remark(tmp_path, monkeypatch):
    folder = hand_in(tmp_path / "in", {})
    hand_in(folder / "ada", {"homework": RELU})
    records = Records(None, ["relu"])
    assert len(recorded(records, folder / "ada")) == 1

    def refused(*_):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as unreadable:  # the tests may run as root, who can read everything
        unreadable.setattr(os, "scandir", refused)
        entry = read_entry(folder / "ada")
        assert not entry.files and "Permission denied" in entry.remarks[0]
        assert len(recorded(records, folder / "ada")) == 1  # what was read before is not replaced
    monkeypatch.setattr(submissions, "walk", refused)
    assert submissions.find_submissions(folder) == [folder / "ada"]
    monkeypatch.setattr(submissions, "hand_in", refused)
    assert read_entry(folder / "ada").remarks == ("it could not be read: Permission denied",)


def test_what_was_found_for_another_with_the_same_content_is_not_unchanged(tmp_path):
    """As after a grading with other limits: what the texts of the answers are depends on none."""
    store, relu = Records(None, ["relu"]), parse_course('exercises = ["relu"]')
    recorded(store, hand_in(tmp_path / "in", {"ada": RELU}) / "ada.py")
    (record,), reused = store.hand_ins, []
    for walls in ([], ["bubblewrap"], ["bubblewrap"]):
        known = results.Results(store, relu, PATIENT, walls, None, threading.Event())
        store.results |= {
            known._key(record, "relu"): asdict(Result(Verdict("relu", "passed", ""))), known._key(record, ""): {},
        }  # fmt: skip
        assert known._grade("ada", record, None).points(relu) == 1
        reused.append(known.reused)
    assert reused == [0, 0, 1]


@pytest.mark.long
def test_what_breaks_the_grading_of_one_leaves_the_others(tmp_path, monkeypatch):
    folder, known = hand_in(tmp_path / "in", {"ada": RELU, "eve": RELU + "# eve"}), results.source_of

    def breaks(files, survey):
        return {}[0] if b"# eve" in files.get("eve.py", b"") else known(files, survey)

    monkeypatch.setattr(results, "source_of", breaks)
    course = parse_course('exercises = ["relu"]')
    grades, _ = graded(folder, course)
    assert [grades[name].points(course) for name in ("ada", "eve")] == [1, 0]
    assert grades["eve"].remarks == ("could not be tried: KeyError: 0",)
    monkeypatch.undo()
    assert graded(folder, course)[0]["eve"].points(course) == 1  # it is tried again


# --- what an exercise is defined by ----------------------------------------------------------------------------------


def test_the_definition_of_an_exercise(tmp_path):
    own = tmp_path / "own"
    write_new("scale", own)
    write_new("centre", own)
    (own / "scale.py").write_text((own / "scale.py").read_text() + "\nfrom . import helper\n")
    (own / "helper.py").write_text("table = 'numbers.csv'\n")
    (own / "numbers.csv").write_text("1")
    (own / "notes.txt").write_text("")

    def definitions():
        with exercises_in(own):
            return {name: definition_of(name) for name in ("scale", "centre", "relu")}

    first = definitions()
    assert first["relu"] == ""
    assert first["scale"] != first["centre"]
    changes = {"notes.txt": set(), "numbers.csv": {"scale"}, "helper.py": {"scale"}, "centre.py": {"centre"}}
    for name, changed in changes.items():
        before = definitions()
        with (own / name).open("a") as file:
            file.write("# more\n")
        assert {name for name, of in definitions().items() if of != before[name]} == changed
