"""A course with people in it: notebooks, a roster, attempts, deadlines, and the feedback that students read."""

import csv
import io
import json
import os
import re
import time
import unicodedata
import zipfile
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from test_grade import BACKWARD, DIAGONAL, SOFTMAX, grade, hand_in, rows_of
from test_handins import notebook

from transformer_np.grading.attempts import counting
from transformer_np.grading.copies import Alike, side_by_side
from transformer_np.grading.feedback import page
from transformer_np.grading.formats import as_json, gradescope, otter_csv, results_even_if_it_fails
from transformer_np.grading.grade import Grade
from transformer_np.grading.people import Roster, RosterError, people, time_of
from transformer_np.grading.records import Records
from transformer_np.grading.report import cell, number, parts_of_mistake, percent, student_report
from transformer_np.grading.submissions import find_submissions, read_entry, report_name
from transformer_np.homework.answers import survey
from transformer_np.homework.course import parse_course
from transformer_np.homework.deadline import Deadline, local, shown
from transformer_np.homework.handin import without_outputs
from transformer_np.homework.judging.judge import Verdict
from transformer_np.homework.new import write_new
from transformer_np.homework.path import exercises_in
from transformer_np.homework.remarks import not_started

TWO = 'exercises = ["softmax", "softmax_backward"]\n'
DUE = datetime(2026, 6, 12, 12)
TIMED = TWO + "deadline = 2026-06-12T12:00:00\n[late]\ngrace = 15\nper_day = 10\nmost_days = 3\n"
WRONG = "def softmax(x, axis=-1):\n    return x\n"


# --- notebooks -------------------------------------------------------------------------------------------------------


def pieces(text):
    """The code of the cells of a notebook, as they are executed."""
    return [piece["code"] for piece in survey({"a.ipynb": without_outputs(text.encode())}).load["a.ipynb"]["pieces"]]


def test_tests_of_nbgrader_are_not_the_students_code():
    cells = [{"cell_type": "code", "source": f"x = {n}", "metadata": {"nbgrader": {"grade": g, "solution": s}}}
             for n, (g, s) in enumerate([(True, False), (True, True), (False, True)])]  # fmt: skip
    assert pieces(json.dumps({"cells": cells})) == ["x = 1\n", "x = 2\n"]


def test_a_teachers_exercises_are_no_submission(tmp_path):
    """Not even as they were before the teacher changed them."""
    (tmp_path / "own").mkdir()
    write_new("center", tmp_path / "own")
    content = (tmp_path / "own" / "center.py").read_bytes() + b"# as it was released\n"
    with exercises_in(tmp_path / "own"):
        assert list(survey({"a.py": SOFTMAX.encode(), "center.py": content}).load) == ["a.py"]


NO_NOTEBOOKS = [b"", b"[]", b"{}", b'{"cells": 3}', b'{"cells": [{}]}', b"[" * 100_000, b"\xff"]
UNREADABLE = [
    *(("ada.ipynb", content, "ada.ipynb was skipped: it is not a notebook") for content in NO_NOTEBOOKS),
    ("ada.py", notebook(("code", SOFTMAX)).encode(), "it is a notebook; give its name the ending .ipynb"),
    *(("ada.py", SOFTMAX.encode("utf-16" + end), "it is UTF-16; save it as UTF-8") for end in ("", "-le", "-be")),
    ("ada.ipynb", bytes((16 << 20) + 1), "larger than 16 MiB: clear its outputs and hand it in again"),
]


@pytest.mark.parametrize(("name", "content", "told"), UNREADABLE, ids=range(len(UNREADABLE)))
def test_what_cannot_be_read_is_named(tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content)
    handed_in = read_entry(tmp_path / name)
    assert not handed_in.files
    assert [told in remark for remark in handed_in.remarks] == [True]
    (tmp_path / "ben.py").write_text("{print(1)}\n")
    assert read_entry(tmp_path / "ben.py").files


def test_an_old_notebook_is_read(tmp_path):
    """Before version 4 the cells were in worksheets, and code was called input."""
    cells = [
        {"cell_type": "heading", "level": 1, "source": ["Homework"], "metadata": {}},
        {"cell_type": "code", "input": SOFTMAX.splitlines(True), "outputs": [], "metadata": {}},
    ]
    content = {"worksheets": [{"cells": cells}], "nbformat": 3, "metadata": {"name": ""}}
    (tmp_path / "ada.ipynb").write_text(json.dumps(content))
    known = survey(read_entry(tmp_path / "ada.ipynb").files)
    assert known.begun == {"softmax": {"ada.ipynb": 2}}


def test_endings_in_capitals(tmp_path):
    folder = hand_in(tmp_path / "in", {"ada/SHEET.PY": SOFTMAX, "BEN.IPYNB": notebook(SOFTMAX)})
    entries = [read_entry(path) for path in find_submissions(folder)]
    assert [list(entry.files) for entry in entries] == [["BEN.ipynb"], ["SHEET.py"]]
    assert all(list(survey(entry.files).begun["softmax"]) == list(entry.files) for entry in entries)
    assert attempts_of(tmp_path, "id\nada\nben\n")["ben"] == ["BEN.IPYNB"]


# --- the roster ------------------------------------------------------------------------------------------------------


def people_in(folder, roster=None, assignment=""):
    """The Persons of a folder and a roster's text. The entries are recorded in the order of their names."""
    if roster is not None:
        file = folder.with_name("roster.csv")
        file.write_text(roster, encoding="utf-8")
        roster = Roster(file, parse_course(TWO))
    records, paths = Records(None, ["softmax"], assignment), find_submissions(folder, assignment, roster is not None)
    for path in paths:
        records.add(read_entry(path, assignment), seed=1)
    return people(records.hand_ins, {path.name for path in paths}, roster)


def attempts_of(tmp_path, roster):
    found = people_in(tmp_path / "in", roster)
    return {person.student: [record.entry for record, _ in person.attempts] for person in found}


def remarks_of(tmp_path, roster=None):
    return {person.student: person.remarks for person in people_in(tmp_path / "in", roster) if person.remarks}


@pytest.mark.parametrize(
    ("roster", "entry", "owner"),
    [
        ("m,Maria Muster", "Anna-Maria Muster_22_assignsubmission_file_", ""),
        ("m,Maria Muster", "Anna Maria Muster_22_assignsubmission_file_", ""),
        ("m,Maria Muster\na,Anna-Maria Muster", "Anna-Maria Muster_22_assignsubmission_file_", "a"),
        ("m,Maria Muster\na,Anna-Maria Muster", "Maria Muster_11_assignsubmission_file_", "m"),
        ("m,Maria Muster\na,Anna Maria Muster", "sheet 1 Anna Maria Muster", "a"),
        ("anna,\nanna-maria,", "anna-maria", "anna-maria"), ("anna,\nanna-maria,", "anna", "anna"),
        ("ada,\n2,", "ada_2", "ada"), ("ada,\nada_2,", "ada_2", "ada_2"),
        ("anna,\nmaria,", "anna-maria", ""), ("anna,", "anna-2", "anna"), ("anna,", "hw1-anna", "anna"),
        ("b,Brien", "Sean O'Brien_3", ""), ("b,Brien", "Sean O’Brien_3", ""), ("o,Sean O’Brien", "Sean O’Brien_3", "o"),
        ("ada,\nben,", "ada and ben", "ada or ben"), ("ada,\nben,Ada B", "ada_b", "ada"),
        ("1,Ben Doe\n2,Ben Doe", "Ben Doe_1", "1 or 2"), ("9,\nada,Ada L", "Ada L_9_assignsubmission_file_", "ada"),
        ("4711,Ada L", "Ada Lo_4711_assignsubmission_file_", "4711"), ("é,", "e\u0301", "é"), ("ann,", "anné", ""),
        ("ada,", "ａda", ""), ("ada,", "adam", ""), ("e.1,", "e.1", "e.1"), ("ben,", "hw1_ben_2", "ben"),
        ("99,dana doe", "Dana Doe_77_assignsubmission_file_", "99"),
        ("o,O'Neil_A", "ONeil A_7_assignsubmission_file", "o"),
        ("müller-lüdenscheidt,", "Müller-Lüdenscheidt (2)", "müller-lüdenscheidt"), ("x,İpek", "İpek_1", "x"),
    ],
)  # fmt: skip
def test_whose_name_it_is(tmp_path, roster, entry, owner):
    """The whole name wins, then the longest; a hyphen or an apostrophe between letters does not end a name."""
    (tmp_path / "roster.csv").write_text(f"id,name\n{roster}\n", encoding="utf-8")
    ids, *_ = Roster(tmp_path / "roster.csv", parse_course(TWO)).owners(f"{entry}.py")
    assert " or ".join(ids) == owner


@pytest.mark.parametrize(
    "names",
    [("ada", "ada\ufe0f"), ("ada", "\u0430da"), ("ada", "a\u034fda"), ("Οscar", "oscar"), ("ada", "аda", "аdа")],
)
def test_names_that_look_alike_are_remarked(tmp_path, names):
    hand_in(tmp_path / "in", dict.fromkeys((*names, "ben"), SOFTMAX))
    remarks = remarks_of(tmp_path)
    assert len(remarks) == len(names)
    others = f"{len(names) - 1} other row{'s'[: len(names) > 2]}"
    assert all(said[0].startswith(f"its name looks like that of {others}") for said in remarks.values())
    strange = next(sign for name in names for sign in name if not sign.isascii())
    assert any(f"U+{ord(sign):04X}" in said[0] for said in remarks.values() for sign in [strange, *"Οа"])
    hand_in(tmp_path / "in", {"bén": SOFTMAX, "ben-1": SOFTMAX})
    assert set(remarks_of(tmp_path)) == set(remarks)
    assert [*remarks_of(tmp_path, "id\nfay\nf\u200bay\n")][:2] == ["fay", "f\u200bay"]


def test_files_of_one_name_may_be_of_one_student(tmp_path):
    """Also where the file systems of two computers spell it in two ways."""
    hand_in(tmp_path / "in", dict.fromkeys(("Jürgen", unicodedata.normalize("NFD", "Jürgen"), "ben"), SOFTMAX))
    said = [remark for of in remarks_of(tmp_path).values() for remark in of]
    assert len(said) == 2 and all("shares its name with" in remark for remark in said)


def test_two_of_the_same_name_need_a_path(tmp_path):
    hand_in(tmp_path / "in", dict.fromkeys(("Ben Doe_1", "Ben Doe_2", "3 and 4"), SOFTMAX))
    roster = "id,name,path\n1,Ben Doe,{}\n2,Ben Doe,{}\n3,Cem,\n4,Dana,\n"
    alone = {"Ben Doe_1": ["Ben Doe_1.py"], "Ben Doe_2": ["Ben Doe_2.py"], "3 and 4": ["3 and 4.py"]}
    assert attempts_of(tmp_path, roster.format("", "")) == {"1": [], "2": [], "3": [], "4": []} | alone
    remarks = remarks_of(tmp_path, roster.format("", ""))
    assert remarks["Ben Doe_1"] == ["could be from 1 or 2: write a path for each into the roster"]
    assert remarks["1"] == [f"Ben Doe_{n} could be theirs: write a path into the roster" for n in (1, 2)]
    assert remarks["3"] == remarks["4"] == ["3 and 4 could be theirs: write a path into the roster"]
    (tmp_path / "in" / "3 and 4.py").unlink()
    attempts = attempts_of(tmp_path, roster.format("*_1", "*_2"))
    assert attempts == {"1": ["Ben Doe_1.py"], "2": ["Ben Doe_2.py"], "3": [], "4": []}


def test_folders_of_two_people_in_moodle_are_not_taken_for_attempts_of_one_unremarked(tmp_path):
    hand_in(tmp_path / "in", {f"Wang Wei_{n}_assignsubmission_file": SOFTMAX for n in (13, 14)})
    hand_in(tmp_path / "in", {f"Ada L_5_assignsubmission_{kind}": SOFTMAX for kind in ("file", "onlinetext")})
    remarks = remarks_of(tmp_path, "id,name\nw,Wang Wei\na,Ada L\n")
    assert [*remarks] == ["w"] and "2 people in Moodle, whose folders have the numbers 13, 14" in remarks["w"][0]


@pytest.mark.parametrize(
    ("roster", "told"),
    [
        ("", "line 1: there is no column id"), ("name\nada\n", "line 1: there is no column id"),
        ("id\n", "names nobody"), ("id,name\nada,A\n,B\n", "line 3: the id is missing"),
        ("id,name\nada,A\nada,\nada,B\n", "line 4: another line says something else on ada, name"),
        ("id,submitted\nada,Friday\n", "line 2: submitted must be a time such as 2026-06-12T11:58, got 'Friday'"),
        ("id,submitted\nada,9999-12-31T23:00Z\n", "line 2: submitted must be a time"),
        ("id,deadline\nada,0001-01-01T00:00Z\n", "line 2: deadline must be a time"),
        ("id,submited\nada,\n", "line 1: there is no column 'submited'; did you mean submitted"),
        ("id;Dead line\nada;\n", "line 1: there is no column 'Dead line'; did you mean deadline"),
        ("id,names\nada,\n", "did you mean name"), ("id,corrected sofmax\nada,\n", "did you mean corrected softmax"),
        ("id,corrected softmax\nada,2p\n", "line 2: the points for softmax must be a number, got '2p'"),
        ("id,written\nada,1\n", "line 1: the column 'written' needs the points that are possible"),
        ("id,name,name\nada,,\n", "line 1: there are two columns name"),
        ("id,path\nada,hw1/ada*\n", "line 2: path must be a pattern for the name of a file or folder directly in"),
        ("id,name\nada,Lovelace, Ada\n", "line 2: there are 3 cells, and 2 columns"),
        ('id,name\nada,"Ada\nben,Ben\neli,Eli\n', "line 2: its quotes do not match"),
        ("id,deadline\nada,2026-06-12\n", "line 2: deadline must be a time such as 2026-06-12T11:58, got '2026-06-12'"),
        ("id,deadline\na,2026-06-12T12\na,2026-06-13T12\n", "line 3: another line says something else on a, deadline"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_roster(tmp_path, roster, told):
    hand_in(tmp_path / "in", {"ada": SOFTMAX})
    with pytest.raises(RosterError, match=told):
        attempts_of(tmp_path, roster)


def test_the_columns_of_a_roster(tmp_path):
    (tmp_path / "r.csv").write_text(
        "Id;E-Mail;DEADLINE;corrected softmax;corrected relu;Written Proof (2,5);group\n"
        "ada;a@b;2026-06-13T12:00;1,5;9;2;x\n"
    )
    roster = Roster(tmp_path / "r.csv", parse_course(TWO))
    (ada,) = roster.persons().values()
    assert (ada.deadline, ada.corrected) == (datetime(2026, 6, 13, 12), {"softmax": 1.5})  # relu is of another sheet
    assert (ada.written, roster.written) == ({"written proof": 2.0}, {"written proof": 2.5})
    assert roster.ignored == ["E-Mail", "group"]
    (tmp_path / "r.csv").write_text("id;written (2,5)\nada;2,25\n")  # as many commas as semicolons
    assert Roster(tmp_path / "r.csv", parse_course(TWO)).persons()["ada"].written == {"written": 2.25}
    with pytest.raises(ValueError, match="the table would overwrite the roster"):
        grade(tmp_path, TWO, tmp_path / "x" / ".." / "r.csv", roster=tmp_path / "r.csv")


@pytest.mark.parametrize("head", ["\ufeff", "sep=;\r\n", "\ufeffsep=;\r\n"])
@pytest.mark.parametrize("delimiter", [";", ",", "\t"])
def test_a_roster_as_spreadsheets_save_it(tmp_path, head, delimiter):
    """With tabs, with the line that tells Excel the delimiter, and with line ends inside of a cell."""
    text = 'id;name;path\r\n"s1";"Zoë\r\nMüller";\r\n"s2";"Seán ""Shay"" O\'Grady";"a  b*"\r\n'
    (tmp_path / "r.csv").write_bytes((head + text).replace(";", delimiter).encode())
    roster = Roster(tmp_path / "r.csv", parse_course(TWO))
    rows = [(row["id"], row["name"], row["path"]) for row in roster.rows]
    assert rows == [("s1", "Zoë Müller", ""), ("s2", 'Seán "Shay" O\'Grady', "a  b*")]
    assert roster.owners("Zoë Müller_12_assignsubmission_file")[0] == ["s1"]


def test_those_who_hand_in_together_have_one_path(tmp_path):
    """Each gets the points; they are not said to have copied from each other, but from others."""
    hand_in(tmp_path / "in", dict.fromkeys(("team 1", "cem"), BACKWARD))
    (tmp_path / "r.csv").write_text("id,path,submitted\nada,team 1*,2026-06-12T12:00\nben,team 1*,\ncem,,\n")
    roster, out = tmp_path / "r.csv", tmp_path / "g.csv"
    grade(tmp_path / "in", TWO, roster=roster)
    rows = rows_of(out)
    assert [rows[name]["points"] for name in ("ada", "ben", "cem")] == ["1", "1", "1"]
    assert "the same file as cem" in rows["ada"]["remarks"] and "the same file as ada" in rows["cem"]["remarks"]
    assert "ben" not in f"{rows['ada']}{rows['cem']}"
    hand_in(tmp_path / "in" / "Ada L_7_assignsubmission_file", {"a": BACKWARD})
    (tmp_path / "r.csv").write_text("id,name,path\nada,Ada L,Ada L_*\nben,Ben D,Ada L_*\n")
    grade(tmp_path / "in", TWO, roster=roster)
    with zipfile.ZipFile(tmp_path / "g_reports" / "moodle_feedback.zip") as file:
        assert b"Ada L</h1>" in file.read(*file.namelist())
    (tmp_path / "r.csv").write_text("id,path\nada,team*\nben,team 1*\n")
    assert Roster(roster, parse_course(TWO)).owners("team 1.py") == (["ada", "ben"], None, False)  # perhaps a slip


def times_in(folder, assignment=""):
    return {person.student: time_of(*person.attempts[-1]) for person in people_in(folder, assignment=assignment)}


@pytest.fixture
def stamp(tmp_path):
    """The path of the time that nbgrader writes beside ada's submission."""
    return hand_in(tmp_path / "in" / "ada" / "sheet1", {"a": SOFTMAX}) / "timestamp.txt"


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("2026-06-12 11:58:00.000000 UTC\n", "2026-06-12T11:58:00+00:00"),
        ("2026-06-12 11:58:00+02:00", "2026-06-12T09:58:00+00:00"),
    ],
)
def test_the_time_of_a_collected_submission(tmp_path, stamp, text, when):
    stamp.write_text(text)
    time, known_by, _ = times_in(tmp_path / "in", "sheet1")["ada"]
    assert (time.astimezone(), known_by) == (datetime.fromisoformat(when), "timestamp.txt")
    assert times_in(tmp_path / "in" / "ada")["sheet1"][1] == "file"  # nobody says that nbgrader has written it


@pytest.mark.parametrize("text", ["9999-12-31 23:59:59 UTC", "0001-01-01 00:00+14:00", "9999-06-01", "soon", "\xff"])
def test_a_timestamp_that_nobody_can_have(tmp_path, stamp, text):
    stamp.write_text(text, encoding="latin-1")
    assert times_in(tmp_path / "in", "sheet1")["ada"][1] == "file"
    assert "timestamp.txt holds no possible time" in read_entry(tmp_path / "in" / "ada", "sheet1").remarks[0]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path), lambda path: path.mkdir()])
def test_a_timestamp_that_is_no_file(tmp_path, stamp, make):
    make(stamp)
    assert times_in(tmp_path / "in", "sheet1")["ada"][1] == "file"


@pytest.mark.parametrize("seconds", [1e12, -1e11, 1e18, 7.3e9, float("inf")])
def test_a_file_time_beyond_the_calendar(tmp_path, seconds):
    """Such a time is a remark, and costs nobody points."""
    hand_in(tmp_path / "in", {"ada": SOFTMAX})
    record = replace(people_in(tmp_path / "in")[0].attempts[0][0], changed={"": 0, "ada.py": seconds})
    time, known_by, remark = time_of(record)
    assert (time, known_by) == (None, "")
    assert "its time is in the year " in remark and "roster's column submitted" in remark


def test_the_time_is_that_of_what_was_graded(tmp_path):
    folder = hand_in(tmp_path / "in" / "ada", {"notes": "", "src/homework": SOFTMAX, ".DS_Store": ""})
    for name, days in (("src/homework.py", 3), ("notes.py", 1), (".DS_Store", 9), ("src", 9), ("", 9)):
        os.utime(folder / name, ((DUE + timedelta(days=days)).timestamp(),) * 2)
    ((record, _),) = people_in(tmp_path / "in")[0].attempts
    assert time_of(record)[0] == DUE + timedelta(days=3)
    assert time_of(record, None, ["notes.py"])[0] == DUE + timedelta(days=1)
    assert time_of(record, DUE, ["notes.py"])[:2] == (DUE, "roster")


def test_of_several_assignments_one_is_graded(tmp_path):
    hand_in(tmp_path / "in", dict.fromkeys(("ada/sheet1/1", "ada/sheet2/2", "ben/sheet2/2"), SOFTMAX))
    (path,) = find_submissions(tmp_path / "in", "sheet1")
    assert (path.name, list(read_entry(path, "sheet1").files)) == ("ada", ["1.py"])
    with pytest.raises(ValueError, match="no submission to sheet3"):
        find_submissions(tmp_path / "in", "sheet3")


@pytest.mark.parametrize("link", ["ben", "ben/sheet1"])
def test_an_assignment_in_a_link_is_nobodys(tmp_path, link):
    hand_in(tmp_path / "in", {"ada/sheet1/a": SOFTMAX} | ({} if link == "ben" else {"ben/notes": ""}))
    os.symlink(tmp_path / "in" / link.replace("ben", "ada"), tmp_path / "in" / link)
    _, ben = find_submissions(tmp_path / "in", "sheet1")
    assert read_entry(ben, "sheet1").remarks == (f"{Path(link).name} was skipped: it is a link",)


# --- attempts and the deadline ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("minutes", "days", "factor"),
    [(-1, 0, 1), (0, 0, 1), (15, 0, 1), (16, 1, 0.9), (1440, 1, 0.9), (1441, 2, 0.8), (4 * 1440, 4, 0)],
)
def test_what_a_late_submission_costs(minutes, days, factor):
    late, when = parse_course(TIMED).late, DUE + timedelta(minutes=minutes)
    assert (late.days_late(when), late.factor(late.days_late(when))) == (days, pytest.approx(factor))
    alone = parse_course(f"{TWO}deadline = 2026-06-12T12:00:00").late  # a deadline that costs nothing
    assert (alone.days_late(when), alone.factor(days)) == (max(1, days) if minutes > 0 else 0, 1)


@pytest.fixture
def zone(monkeypatch):
    """zone(name): the zone of this computer from now on."""
    if not hasattr(time, "tzset"):
        pytest.skip("needs tzset")
    yield lambda name: (monkeypatch.setenv("TZ", name), time.tzset())
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("due", "when", "days"),
    [  # on 25 October 2026 the hour from 2:00 to 3:00 comes twice in Berlin
        ("2026-10-25T02:10+01:00", "2026-10-25T02:40+02:00", 0),
        ("2026-10-25T02:40+02:00", "2026-10-25T02:10+01:00", 1),
        ("2026-10-24T12:00", "2026-10-25T12:00", 1), ("2026-10-24T12:00", "2026-10-25T12:01", 2),
        ("2026-03-28T12:00", "2026-03-29T12:01", 2), ("2026-03-29T01:59", "2026-03-29T03:14", 0),
        ("2026-06-12T12:00+02:00", "2026-06-12T10:15Z", 0), ("2026-06-12T12:00", "2026-06-12T10:16Z", 1),
    ],
)  # fmt: skip
def test_summer_time_ends(zone, due, when, days):
    zone("Europe/Berlin")
    late = Deadline(local(datetime.fromisoformat(due)), grace=15)
    assert late.days_late(local(datetime.fromisoformat(when))) == days


def test_records_say_the_same_on_a_computer_in_another_zone(tmp_path, zone, stamp):
    """A time with a zone stays this time, and is shown in the zone of the deadline that it is compared with."""
    stamp.write_text("2026-06-12 10:30:00.000000 UTC")
    (tmp_path / "r").mkdir()
    said = set()
    for name in ("UTC", "Europe/Berlin", "America/New_York"):
        zone(name)
        course = parse_course(TWO + f"deadline = {DUE}+02:00")
        records = Records(tmp_path / "r", ["softmax"], "sheet1")
        records.add(read_entry(tmp_path / "in" / "ada", "sheet1"), seed=1)
        when, *_ = time_of(*people(records.hand_ins, {"ada"})[0].attempts[-1])
        grade = Grade("ada", {name: not_started(name, "") for name in course.points}, handed_in=when)
        in_json = json.loads(as_json([grade], course))["students"][0]["handed in"]
        said.add((course.deadline, course.shown(when), in_json, course.late.days_late(when)))
    assert said == {("2026-06-12 12:00 UTC+02:00", "2026-06-12 12:30 UTC+02:00", "2026-06-12T12:30:00+02:00", 1)}


def test_reports_of_ids_that_look_alike():
    names = [report_name(student) for student in ("a/b", "a_b", "a:b", ".", "overview", "a.1")]
    assert len({*names, "a_b"}) == len(names)
    assert all(name and "/" not in name for name in names)
    assert report_name("Jürgen Groß") == "Jürgen Groß"
    of_mac = report_name(unicodedata.normalize("NFD", "Jürgen Groß"))  # where both are one file
    assert of_mac.startswith("Jürgen Groß-")
    assert len(report_name("漢" * 200).encode()) < 200
    assert report_name("\udcff").isprintable()


@pytest.mark.long
def test_everyone_on_the_roster_has_a_row_with_what_the_teacher_gives_by_hand(tmp_path):
    """A corrected column is less by lateness as others are, the points for written answers are not."""
    folder = hand_in(tmp_path / "in", {"ada": WRONG + BACKWARD, "stranger": SOFTMAX, "ada.pdf": "", "ben_2.zip": ""})
    os.utime(folder / "ada.py", ((DUE + timedelta(hours=20)).timestamp(),) * 2)
    roster, reports = tmp_path / "roster.csv", tmp_path / "g_reports"
    lines = "id,name,corrected softmax,written proof (4)", "ada,Ada Lovelace,0.5,3", "ben,Ben,,", "eli,,-1,40"
    roster.write_text("\n".join(lines))
    ada = grade(folder, TIMED + "\n[points]\nsoftmax = 1\n", roster=roster)["ada"]
    rows = rows_of(tmp_path / "g.csv")
    row, ben, eli, stranger = rows.values()
    assert list(rows) == ["ada", "ben", "eli", "stranger"]
    assert (ben["name"], ben["points"], ben["written proof"]) == ("Ben", "0", "")
    assert ben["remarks"].startswith("ben_2.zip was not read: it is no .py or") and ".pdf" not in row["remarks"]
    assert "softmax: -1 of 1 points by hand; written proof: 40 of 4 points by hand" in eli["remarks"]
    assert "not on the roster" in stranger["remarks"]
    points = [row[column] for column in ("softmax", "softmax_backward", "written proof", "points", "points possible")]
    assert (row["name"], *points, row["percent"]) == ("Ada Lovelace", "0.45", "0.9", "3", "4.35", "6", "72.5")
    assert "by hand" not in row["remarks"] and ada.factor == 0.9
    for text in ("| softmax | 0.45 of 1 | ", "| written proof | 3 of 4 |  |  |  |", "points corrected by the teacher"):
        assert text in (reports / "ada.md").read_text()
    assert "| written proof | 0 of 4 | not graded |  |  |" in (reports / "ben.md").read_text()
    roster.write_text("id,name\nada,Ada Lovelace\nbennie,Ben\n")
    hand_in(reports, {"mine.md": ""})
    grade(folder, TWO, roster=roster)
    for ending, more in ((".md", {"mine", "overview"}), (".html", set())):
        assert {page.stem for page in reports.glob(f"*{ending}")} == {"ada", "bennie", "stranger", *more}


def test_times_and_points_have_as_many_digits_as_they_need():
    """What is a second late, or almost enough, does not look in time, or enough."""
    assert [shown(DUE + timedelta(seconds=s)) for s in (0, 1)] == ["2026-06-12 12:00", "2026-06-12 12:00:01"]
    course = parse_course(TWO + "pass_mark = 50")
    assert [percent(points, course) for points in (0.98, 0.9999, 0.99996, 1)] == ["49.0", "49.99", "49.998", "50.0"]
    values = (0.1 + 0.2, 2 / 3, 1333.33333, 1e6 + 0.5, -0.0 * 0.9)
    assert [number(value) for value in values] == ["0.3", "0.6667", "1333.3333", "1000000.5", "0"]


def test_the_columns_of_otters_table_add_up_to_its_total():
    course = replace(parse_course(TWO), written={"proof": 4.0})
    verdicts = {name: Verdict(name, "passed", "") for name in course.points}
    rows = [*csv.reader(io.StringIO(otter_csv([Grade("ada", verdicts, written={"proof": 2.5})], course)))]
    assert rows[0] == ["file", "softmax", "softmax_backward", "proof", *rows[0][4:]]
    assert [sum(map(float, row[1:4])) for row in rows[1:]] == [float(row[4]) for row in rows[1:]] == [6, 4.5]


@pytest.mark.long
@pytest.mark.parametrize(
    ("which", "points", "attempt"),
    [("last", "0.9", "3 of 3"), pytest.param("best", "2", "1 of 3", marks=pytest.mark.release)],
)
def test_the_attempt_that_counts(tmp_path, which, points, attempt):
    folder = hand_in(tmp_path / "in", {"ada-1": SOFTMAX + BACKWARD, "ada-2": SOFTMAX + DIAGONAL, "ada-3": WRONG})
    for name, minutes in (("ada-1", -30), ("ada-2", 60), ("ada-3", 10)):
        os.utime(folder / f"{name}.py", (time := (DUE + timedelta(minutes=minutes)).timestamp(), time))
    (tmp_path / "roster.csv").write_text("id\nada\nben\n")
    grade(folder, f'attempts = "{which}"\n' + TIMED, roster=tmp_path / "roster.csv")
    row, absent = rows_of(tmp_path / "g.csv").values()
    assert absent["attempt"] == "0 of 0"
    assert (row["points"], row["time from"]) == (points, "file")
    assert float(row["softmax"]) + float(row["softmax_backward"]) == pytest.approx(float(points))
    assert row["attempt"] == attempt
    assert ("1 day late (file): 90 % of the points" in row["remarks"]) == (which == "last")
    report = (tmp_path / "g_reports" / "ada.md").read_text()
    assert f"Attempt {attempt} counts, the {which}." in report


def test_an_answer_in_an_attempt_that_does_not_count_is_named(tmp_path):
    """As after two files of one student, each with an exercise of its own."""
    hand_in(tmp_path / "in", {"ada-1": SOFTMAX, "ada-2": BACKWARD})
    (person, *_) = people_in(tmp_path / "in", "id\nada\n")
    done, left = (lambda name: Verdict(name, "passed", "")), (lambda name: Verdict(name, "not started", ""))
    of = [{"softmax": done("softmax"), "softmax_backward": left("softmax_backward")}]
    of += [{"softmax": left("softmax"), "softmax_backward": done("softmax_backward")}]
    records = {number: record for number, (record, _) in enumerate(person.attempts)}
    grades = [Grade("ada", verdicts, handed_in=DUE, number=number) for number, verdicts in enumerate(of)]
    told = "answered only in attempts that do not count: softmax"
    assert counting(person, grades, records, parse_course(TWO)).remarks == (told,)
    assert counting(person, grades[:1], records, parse_course(TWO)).remarks == ()
    core = 'extended = ["softmax_backward"]\nattempts = "best"\n[points]\nsoftmax_backward = 5'
    assert counting(person, grades, records, parse_course(TWO + core)).number == 1
    assert counting(person, grades, records, parse_course(f"{TWO}pass_mark = 50\n{core}")).number == 0  # it has passed
    person.corrected = {"softmax": 0.5}  # as of an answer on paper
    assert counting(person, [], {}, parse_course(TWO)).remarks[1:] == ("softmax: points corrected by the teacher",)


# --- what students read ----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_syntax_error_is_shown_once(tmp_path):
    ada, course = grade(hand_in(tmp_path / "in", {"ada": "def softmax(x:\n    return x\n"}))["ada"], parse_course(TWO)
    for text in (student_report(ada, course, ""), page(ada, course, ""), gradescope([ada], course)):
        assert text.count("def softmax(x:") == 1
        assert text.count("softmax is missing because ada.py could not be loaded (SyntaxError).") == 1
    assert ada.verdicts["softmax_backward"].outcome == "not started"


def test_a_page_escapes_what_students_wrote():
    verdict = Verdict("softmax", "crashed", "<script>alert(1)</script>", "<b>", core=False)
    bad = Grade("<img src=x>", {"softmax": verdict}, ("<i>",), not_loaded={"<a>.py": "<u>"}, name="<h1>")
    text = page(bad, parse_course('exercises = ["softmax"]'), "<run>")
    for tag in ("script", "img", "i>", "a>", "u>", "b>", "run"):
        assert f"<{tag}" not in text
    assert "&lt;script&gt;" in text


def test_a_page_is_no_wider_than_a_phone_or_paper(browser, tmp_path):
    course = parse_course('exercises = ["softmax", "softmax_backward"]\ncore = 0.8')
    verdicts = {name: Verdict(name, "wrong value", "", "largest logit not subtracted") for name in course.points}
    graded = dict.fromkeys(course.points, (f"{'homework_of_week_2_' * 6}.ipynb", 12, 4))
    grade = Grade("ada_lovelace_" * 9, verdicts, graded=graded)
    (tmp_path / "ada.html").write_text(page(grade, course, ""), encoding="utf-8")
    try:
        for width in (375, 700):  # of a phone, of a printed page
            screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
            browser.get((tmp_path / "ada.html").as_uri())
            assert browser.execute_script("return document.documentElement.scrollWidth") == width
        copied = Alike("softmax", ("ada", "ben"), 1.0, ("x = 1 + " * 30 + "y" * 99, "x"))
        (tmp_path / "alike.html").write_text(side_by_side([copied]), encoding="utf-8")
        browser.get((tmp_path / "alike.html").as_uri())
        hidden = "return [...document.querySelectorAll('pre')].some(pre => pre.scrollWidth > pre.clientWidth)"
        assert not browser.execute_script(hidden)  # paper does not scroll
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_mistakes_made_together_count_for_each_of_them():
    from transformer_np.homework import all_exercises

    one, other, *_ = [name for name in all_exercises()["softmax"].mistakes if " and " not in name]
    assert parts_of_mistake("softmax", f"{one} and {other}") == [one, other]
    assert parts_of_mistake("softmax", one) == [one]
    assert parts_of_mistake("softmax", f"axis not used and {one}") == ["axis not used", one]
    assert parts_of_mistake("softmax", "this and that") == ["this and that"]
    assert parts_of_mistake("softmax", None) == []


def test_a_cell_is_no_formula():
    """Some spreadsheets separate columns by semicolons."""
    for text in ("=1+1", "+1", "-1", "@SUM(1)", "\t=1", "a;=1", "a ;  @b", "＝1"):
        assert not re.search(r"(^|;\s*)[=+@＝-]", cell(text)), text
    assert cell("a=b; c - d") == "a=b; c - d"


@pytest.mark.long
def test_results_json_is_written_for_a_submission_without_a_file(tmp_path):
    grade(hand_in(tmp_path / "in", {}), TWO, table=gradescope, single=True)
    said = json.loads((tmp_path / "g.csv").read_text())
    assert (said["score"], said["output"], len(said["tests"])) == (0, "no file could be read", 2)


def test_results_json_is_written_even_after_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), results_even_if_it_fails(tmp_path / "results.json"):
        raise ZeroDivisionError("division by zero \udcff")
    said = json.loads((tmp_path / "results.json").read_text())
    assert "score" not in said and "ZeroDivisionError: division by zero" in said["output"]
