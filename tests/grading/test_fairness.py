"""The promises of the grading: seeds, links, names, inputs, time, walls and remarks."""

import json
import os
import pickle
import shutil
import sys
import threading

import numpy as np
import pytest
from shared import wait_until
from test_grade import BACKWARD, PATIENT, SOFTMAX, TWO, grade, hand_in, lines_of, parse, rows_of
from test_same_verdict import reply_in
from test_sandbox import task_of

from transformer_np.grading import judges, results
from transformer_np.grading.run import Grading, NoWall
from transformer_np.grading.sandbox import keeper
from transformer_np.grading.sandbox.limits import TRUSTED
from transformer_np.grading.sandbox.process import Stopped
from transformer_np.grading.sandbox.session import Limits, try_submission
from transformer_np.grading.sandbox.wire import pack
from transformer_np.homework import all_exercises
from transformer_np.homework.answers import survey
from transformer_np.homework.guard import guarded
from transformer_np.homework.judging.attempt import attempt_with

LINUX = sys.platform == "linux"


def tried(source, names, limits=PATIENT):
    tasks = [task_of(name, number) for number, name in enumerate(names)]
    return try_submission({"a.py": source.encode()}, tasks, limits)


# --- judging ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def slow_judge(monkeypatch):
    """A judge that never comes to an end with softmax_backward."""
    slow = """
from transformer_np.grading import judges
known = judges.judge
def judge(trials, *others, **options):
    while trials.exercise.name == "softmax_backward":
        pass
    return known(trials, *others, **options)
judges.judge = judge
judges.SECONDS = 1
"""
    monkeypatch.setattr(judges, "_CHILD", judges._CHILD.replace("main()", f"{slow}\nmain()"))


def replies_to(name):
    task = task_of(name, 3)
    message = {"crash": None, "broken": [], "shares": None}
    return task, [reply_in(pack(message, np.ones(2), case.arguments)) for case in task.trials.cases]


@pytest.mark.long
@pytest.mark.usefixtures("slow_judge")
def test_judging_that_takes_too_much_is_ended():
    judge = judges.Judge()
    try:
        with pytest.raises(judges.NotJudged, match="too much time"):
            judge.verdict(*replies_to("softmax_backward"))
        assert judge.verdict(*replies_to("softmax")).outcome == "wrong shape"
    finally:
        judge.close()


def run_until_stopped(grading):
    with pytest.raises(Stopped):
        grading.run()


@pytest.mark.release
@pytest.mark.usefixtures("slow_judge")
def test_judging_holds_up_neither_the_others_nor_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(judges, "_CHILD", judges._CHILD.replace("SECONDS = 1", "SECONDS = 1000"))
    wrong = "def softmax_backward(dy, y, axis=-1):\n    return y\n"
    folder = hand_in(tmp_path / "in", {"ada": SOFTMAX, "zoe": wrong})
    grading = Grading(folder, tmp_path / "grades.csv", TWO, limits=PATIENT, workers=2, trust=True)
    thread = threading.Thread(target=run_until_stopped, args=(grading,))
    thread.start()
    results = tmp_path / "grades_records" / "results.jsonl"
    wait_until(lambda: results.exists() and len(lines_of(results)) == 3)  # of ada: two exercises, and her answers
    grading._stop.set()  # as Ctrl-C does
    thread.join(20)
    assert not thread.is_alive()


# --- seeds, links and names ------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_table_of_the_last_inputs_is_worth_nothing(tmp_path):
    """A submission that says what it got, and one that has looked up the results for these inputs."""
    spy = "import numpy as np\ndef softmax(x, axis=-1):\n    raise ValueError(f'first={x.ravel()[0]!r}')\n"
    folder, reports = hand_in(tmp_path / "in", {"eve": spy}), tmp_path / "g_reports"
    grade(folder)
    report = (reports / "eve.md").read_text()
    seed = json.loads((reports / "run.json").read_text())["seed"]
    assert str(seed) not in report + (reports / "overview.md").read_text() + (tmp_path / "g.csv").read_text()
    first = report.partition("first=")[2].split()[0].rstrip(".")
    table = SOFTMAX.replace("    x = x -", f"    if abs(x.ravel()[0] - {first}) > 1e-9: return None\n    x = x -", 1)
    assert grade(hand_in(folder, {"eve": table}))["eve"].points(TWO) == 0
    grade(hand_in(folder, {"eve": spy}), seed=seed)
    assert f"first={first}" in (reports / "eve.md").read_text()  # so it was the seed


@pytest.mark.long
def test_links_are_refused_with_a_row(tmp_path):
    folder = hand_in(tmp_path / "in", {"ada/a": SOFTMAX + BACKWARD})
    (folder / "inner").mkdir()
    for name, target in {
        "file.py": "ada/a.py", "folder.py": "ada", "folder": "ada", "nothing": "none", "inner/b": "../ada",
        "inner/c.py": "../ada/a.py",
    }.items():  # fmt: skip
        os.symlink(target, folder / name)
    os.mkfifo(folder / "pipe.py")
    grades = grade(folder)
    points = {name: got.points(TWO) for name, got in grades.items()}
    assert points == {"ada": 2, "file": 0, "folder": 0, "folder.py": 0, "inner": 0, "nothing": 0, "pipe": 0}
    assert "it is not a regular file" in grades["pipe"].remarks[0]
    for name in points.keys() - {"ada", "pipe"}:
        assert "it is a link" in grades[name].remarks[0]
    assert sum("it is a link" in remark for remark in grades["inner"].remarks) == 2
    assert set(rows_of(tmp_path / "g.csv")) == set(points)


NAMES = ("ada", "a\nada,2,2,100.0,1,1,", "b\x1b[2J\r\x07", "ada ", "ada\u202e", "ada-0123abcd", "Ada", "'ada", "ａda")


@pytest.mark.long
@pytest.mark.skipif(not LINUX, reason="other systems refuse such names")
def test_a_name_makes_no_line_of_its_own(tmp_path, capsys):
    folder = hand_in(tmp_path / "in", dict.fromkeys(NAMES, "1 / 0\n") | {"ada": SOFTMAX})
    hand_in(folder / "eve", {"x\nada  1 of 1\n\x1b[2J": "1 / 0\n", "y\n": "1 / 0\n", "y\t": SOFTMAX})
    (tmp_path / "rubric.toml").write_text('exercises = ["softmax"]\n')
    args = parse(folder, "--out", tmp_path / "g.csv", "--rubric", tmp_path / "rubric.toml", "--seconds", 5, "--trust")
    args.run(args)
    shown = capsys.readouterr().out
    count = len(NAMES) + 1
    assert len(shown.splitlines()) == count + 3
    assert sum(line.startswith("ada ") and "1 of 1" in line for line in shown.splitlines()) == 1
    table = (tmp_path / "g.csv").read_text()
    assert len(table.splitlines()) == count + 1
    reports = sorted((tmp_path / "g_reports").glob("*.md"))
    assert len(reports) == count + 1
    for text in (shown, table, *(report.read_text() for report in reports)):
        assert all(sign.isprintable() or sign == "\n" for sign in text)
        assert "\nada  1 of 1" not in text.replace("\nada  1 of 1", "", 1)
    names = [" ".join(row.split()).casefold() for row in rows_of(tmp_path / "g.csv")]
    assert len(set(names)) == count
    assert rows_of(tmp_path / "g.csv")["ada"]["points"] == "1"


# --- inputs ----------------------------------------------------------------------------------------------------------


def arrays_in(thing):
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, dict | list | tuple):
        for part in thing.values() if isinstance(thing, dict) else thing:
            yield from arrays_in(part)


def test_no_exercise_has_a_right_answer_of_another_among_its_inputs():
    first, second = (results.task_of(name, 5) for name in TWO.points)
    given = {a.tobytes() for a in arrays_in(pickle.loads(second.inputs)) if a.size > 1}
    right = {a.tobytes() for results in first.trials.expected for a in results if a.size > 1}
    assert not given & right
    same = task_of("softmax_backward", first.trials.seed)
    assert {a.tobytes() for a in arrays_in(pickle.loads(same.inputs))} & right  # so it was from one seed


@pytest.mark.long
def test_a_process_has_the_inputs_of_one_exercise(tmp_path):
    """An answer reads all of its process's memory for numbers of another exercise."""
    tasks = task_of("softmax_backward", 1), task_of("softmax", 0)
    needle, mine = (np.float64(pickle.loads(task.inputs)[0][0][0].ravel()[0]).tobytes() for task in tasks)
    code = f"""
import pickle, sys
def softmax(x, axis=-1):
    needle = bytes(255 - b for b in {bytes(255 - b for b in needle)!r})
    mine = bytes(255 - b for b in {bytes(255 - b for b in mine)!r})
    frame, raw = sys._getframe().f_back, b""
    while frame:
        for value in list(frame.f_locals.values()):
            try: raw += pickle.dumps(value)
            except Exception: pass
        frame = frame.f_back
    raise ValueError(f"found {{needle in raw}} {{mine in raw}}")
"""
    got = tried(code, ("softmax", "softmax_backward"))
    assert "found False True" in got.replies["softmax"][0][0].crash.text


# --- time ------------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_time_is_limited_for_a_submission_as_a_whole():
    names = ("softmax", "softmax_backward", "relu", "tanh", "gelu")
    slow = "import time\n" + "".join(f"def {name}(*a, **k):\n    time.sleep(1000)\n" for name in names)
    got = tried(slow, names, Limits(seconds=1, total=1.5))
    texts = [got.replies[name][0][0].crash.text for name in names]
    assert texts[0] == "it took longer than 1 s"
    assert set(texts[2:]) == {"the time for the whole submission, 1.5 s, was used up"}
    assert all(got.replies.values())


@pytest.mark.long
def test_of_several_definitions_those_are_judged_for_which_there_is_time(tmp_path):
    slow = "import time\ndef softmax(x, axis=-1):\n    time.sleep(99 + {})\n"
    folder = hand_in(tmp_path / "in", {f"ada/v{number}": slow.format(number) for number in range(4)})
    ada = grade(folder, limits=Limits(seconds=1, total=1.5))["ada"]
    assert ada.verdicts["softmax"].message == "softmax: crashed. TimeoutError: it took longer than 1 s."
    assert ada.verdicts["softmax"].misconception is None  # though nothing reads axis
    assert "the time for the whole submission was used up" not in "; ".join(ada.remarks)  # of the first, which counts


def test_a_file_that_ends_its_process_stays_in_the_survey():
    files = {"a.py": SOFTMAX.encode(), "b.py": b"import os\n\n\ndef relu(x):\n    return x\n\n\nos._exit(3)\n"}
    known = survey(files)
    found = try_submission(files, [task_of("softmax", 0)], PATIENT, known=known)
    assert list(found.not_loaded) == ["b.py"] and found.definitions["softmax"]
    assert list(known.load) == ["a.py", "b.py"]


# --- walls -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def unprotected(monkeypatch):
    """A system without bubblewrap."""
    monkeypatch.setattr(keeper, "bubblewrap", lambda: ([], TRUSTED))


@pytest.mark.long
@pytest.mark.usefixtures("unprotected")
def test_without_a_wall_nothing_is_graded(tmp_path):
    trusting, wary = (
        Grading(hand_in(tmp_path / "in", {"ada": SOFTMAX}), tmp_path / "g.csv", TWO, limits=PATIENT, trust=trust)
        for trust in (True, False)
    )
    with pytest.raises(NoWall, match="--trust"):
        wary.run()
    assert not (tmp_path / "g.csv").exists()
    (ada,) = trusting.run()
    assert ada.points(TWO) == 1
    assert "bubblewrap" not in trusting.walls()


@pytest.mark.long
@pytest.mark.usefixtures("walls")
def test_a_wall_that_falls_later_stops_the_submission(tmp_path, monkeypatch):
    folder = hand_in(tmp_path / "in", {"ada": SOFTMAX})
    grading = Grading(folder, tmp_path / "grades.csv", TWO, limits=PATIENT, trust=True)
    grading.try_walls()
    monkeypatch.setattr(keeper, "bubblewrap", lambda: ([], TRUSTED))
    (got,) = grading.run()
    assert got.points(TWO) == 0
    assert "a wall that stood at the start is missing: bubblewrap" in got.remarks[0]
    assert not (tmp_path / "grades_records" / "results.jsonl").exists()  # the next grading tries it again


@pytest.fixture
def no_namespaces(walls, tmp_path, monkeypatch):
    """A system whose bubblewrap gives no capabilities, without which there are no namespaces inside it."""
    program = tmp_path / "bin" / "bwrap"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ncase " $* " in *" --cap-add "*) exit 1;; esac\nexec {shutil.which("bwrap")} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    keeper.bubblewrap.cache_clear()
    yield
    keeper.bubblewrap.cache_clear()


@pytest.mark.long
@pytest.mark.usefixtures("no_namespaces")
def test_without_namespaces_every_exercise_has_a_bubblewrap_of_its_own(tmp_path):
    leaves = """
import os
def softmax(x, axis=-1):
    open("/tmp/left", "w").close()
def softmax_backward(dy, y, axis=-1):
    raise ValueError(os.listdir("/tmp"))
"""
    got = tried(leaves, ("softmax", "softmax_backward"))
    assert "bubblewrap" in got.layers and "own namespaces" not in got.layers
    assert got.replies["softmax_backward"][0][0].crash.text == "['submission']"


# --- remarks ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_call_of_the_library_is_remarked_although_the_answer_is_right_and_a_comparison_with_it_is_not(tmp_path):
    code = SOFTMAX.replace("def softmax", "def own").replace("\nimport", "import") + (
        "import transformer_np.functional as F\ndef softmax(x, axis=-1):\n    try: return F.softmax(x, axis)\n"
        "    except Exception: return own(x, axis)\n"
    )
    compared = (
        "from transformer_np import check_gradients\nreport = check_gradients(softmax, np.ones(3))\nprint(report)\n"
    )
    ada, eve = grade(hand_in(tmp_path / "in", {"eve": code, "ada": SOFTMAX + compared + BACKWARD})).values()
    assert eve.points(TWO) == 1
    assert "calls the library's solution: softmax" in eve.remarks
    assert (ada.points(TWO), ada.remarks) == (2, ())


@pytest.mark.long
def test_a_crash_is_no_use_of_the_library_and_input_says_what_check_says():
    names = ("softmax", "AddNorm", "dropout", "EncoderBlock")
    code = "def softmax(x, axis=-1): input()\ndef dropout(*a): 1 / 0\nclass AddNorm:\n    __init__ = dropout\n"
    code += "from transformer_np.module import Module\nclass EncoderBlock(Module):\n    backward = dropout\n"
    code += "    def __init__(self, *sizes, **options): pass\n    def forward(self, x, *rest, **more): return x\n"
    got = tried(code, names)
    crashes = [got.replies[name][0][0].crash for name in names]
    assert all(crashes) and not got.called
    with guarded():
        here = attempt_with(all_exercises()["softmax"], lambda x, axis=-1: input(), (1,), {}).crash
    assert (crashes[0].kind, crashes[0].text) == (here.kind, here.text)
