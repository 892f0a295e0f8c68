"""The homework as a web page: its files, what runs in the tab (here, and in Chromium with a Pyodide), its file."""

import asyncio
import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "inspection"))

from firefox import Firefox
from in_a_tab import as_file, pyodide, run, served

from transformer_np.commands.homework_check import message
from transformer_np.homework import all_exercises
from transformer_np.homework.course import course_at, opened, parse_course
from transformer_np.homework.limit import TimeLimit
from transformer_np.homework.page import build, tab
from transformer_np.homework.page.split import answers_in
from transformer_np.homework.path import exercises_in
from transformer_np.homework.stubs import stub_file
from transformer_np.homework.submission import Checks, load

SEED = 7
COURSE = 'title = "Attention"\nexercises = ["softmax", "relu", "attention_scores", "scaled_dot_product_attention"]\n'
RELU = "import numpy as np\n\n\ndef relu(x):\n    return np.maximum(x, 0)\n"
SOFTMAX = """import numpy as np


def softmax(x, axis=-1):
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)
"""
DEFAULTS = {name: tab.default(exercise) for name, exercise in all_exercises().items()}


def checked(name, texts, seconds=10):
    return json.loads(tab.check(name, json.dumps(texts), seconds, seed=SEED))


def by_command(name, text):
    """What `homework check` says of a file with this text."""
    with open("homework.py", "w", encoding="utf-8") as file:
        file.write(text)
    return message(Checks(load("homework.py"), SEED, TimeLimit(10)).of(name))


# --- the folder ------------------------------------------------------------------------------------------------------


def test_the_parts_make_the_file_of_the_command():
    course = build.described(course_at(None))
    pieces = [course["head"] + "\n"]
    for chapter in course["chapters"]:
        sections = [f"{exercise['comment']}\n{exercise['stub']}" for exercise in chapter["exercises"]]
        pieces.append("\n\n".join([chapter["heading"], *sections]))
    assert pieces[0] + "\n\n".join(pieces[1:]) == stub_file(all_exercises().values())
    for chapter in course["chapters"]:
        for exercise in chapter["exercises"]:
            assert exercise["text"].endswith(exercise["stub"]) and exercise["task"] and len(exercise["hints"]) == 3


def test_a_page_is_written_over_an_earlier_one(here):
    course = parse_course(COURSE)
    first = build.write_page(here / "page", course)
    (here / "page" / "transformer_np-000000000000.zip").write_bytes(b"of an earlier version")
    assert build.write_page(here / "page", course) == first  # the same content has the same names
    assert {file.name: file.stat().st_size for file in (here / "page").iterdir()} == first
    assert sum(size for name, size in first.items() if name.endswith(".zip")) < 800_000
    settings = json.loads((here / "page" / "course.json").read_text("utf-8"))
    assert settings["pyodide"].startswith("https://") and settings["title"] == "Attention"
    assert [e["name"] for c in settings["chapters"] for e in c["exercises"]] == list(course.points)
    (here / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="is a file; name a folder"):
        build.write_page(here / "file", course)
    with pytest.raises(ValueError, match=r"contains no pyodide-lock\.json"):
        build.write_page(here / "page", course, here)
    (here / "index.html").write_text("of something else")
    with pytest.raises(ValueError, match="contains another page, and nothing was written"):
        build.write_page(here, course)


def test_a_teachers_exercises_go_along(here):
    from transformer_np.homework.new import write_new

    file, used = write_new("scaled", here / "own"), ("shared/numbers.py", "words.txt", "scaled.md")
    (here / "own" / "shared").mkdir()
    for name in (*used, "of_nobody.txt"):
        (here / "own" / name).write_text("")
    reads = "from .shared import numbers\n\nopen(__file__.replace('scaled.py', 'words.txt')).close()\n"
    file.write_text(f"{reads}{file.read_text('utf-8')}", "utf-8")
    with opened(None, here / "own") as course:
        build.write_page(here / "page", course)
        (archive,) = (here / "page").glob("*.zip")
    shutil.unpack_archive(archive, here / "tab")
    along = {path.relative_to(here / "tab" / "exercises").as_posix() for path in (here / "tab/exercises").rglob("*.*")}
    assert along == {"scaled.py", *used}
    assert not list((here / "tab").rglob("0*.md")) and not list((here / "tab").rglob("grading"))
    with exercises_in(here / "tab" / "exercises"):
        assert checked("scaled", {"scaled": "def scaled(x): return x"})["outcome"] != "not started"


# --- what runs in the tab --------------------------------------------------------------------------------------------


def test_the_words_of_the_command(here):
    for name, text in (("softmax", SOFTMAX), ("relu", RELU), ("softmax", DEFAULTS["softmax"])):
        assert checked(name, {name: text})["text"] == by_command(name, text)
    found = checked("softmax", {"softmax": SOFTMAX})
    assert (found["passed"], found["outcome"], found["line"]) == (False, "wrong value", 5)
    broken = checked("relu", {"relu": "\n\ndef relu(x:\n    return x\n"})
    assert broken["text"].startswith("homework.py could not be loaded. SyntaxError: '(' was never closed")
    assert (broken["outcome"], broken["line"]) == ("cannot be imported", 3)
    raised = checked("relu", {"relu": "def relu(x):\n    y = x\n    return y.nothing\n"})
    assert (raised["outcome"], raised["line"]) == ("crashed", 3)


def test_an_answer_may_wait_where_the_loop_of_a_browser_always_runs(here, monkeypatch):
    monkeypatch.setattr(asyncio, "run", tab.run_coroutine)
    monkeypatch.setattr(tab, "_checked", in_a_browsers_loop(tab._checked))
    text = "import asyncio\n\nasync def positive(x):\n    await asyncio.sleep(0)\n    return x * (x > 0)\n\n\n"
    assert checked("relu", {"relu": f"{text}def relu(x):\n    return asyncio.run(positive(x))\n"})["passed"]


def in_a_browsers_loop(function):
    def called(*args):
        asyncio._set_running_loop(asyncio.AbstractEventLoop())
        try:
            return function(*args)
        finally:
            asyncio._set_running_loop(None)

    return called


def test_a_file_that_leaves_the_folder_is_not_judged_again_for_the_next(here):
    assert checked("relu", {"relu": f"import os\nos.chdir('..')\n{RELU}"})["passed"]
    assert not checked("relu", {"relu": "def relu(x):\n    return x\n"})["passed"]


def test_nothing_of_another_answer_is_seen_but_the_answer(here):
    uses = "def relu(x):\n    return np.maximum(x, 0)\n"
    assert "name 'np' is not defined" in checked("relu", {"relu": uses, "softmax": SOFTMAX})["text"]
    calls = "import numpy as np\n\n\ndef scaled_dot_product_attention(q, k, v, mask=None):\n"
    calls += "    weights = softmax(attention_scores(q, k, mask))\n    return weights @ v, weights\n"
    name = "scaled_dot_product_attention"
    right = {other: as_file(all_exercises()[other]) for other in ("softmax", "attention_scores")}
    assert checked(name, {name: calls, **right})["passed"]
    waiting = checked(name, {name: calls, **right, "softmax": SOFTMAX.replace("keepdims=True", "keepdims=False")})
    assert waiting["waits"] == ["softmax"] and waiting["text"].endswith("It is right as soon as your softmax is.")
    for unusable in ({}, {"softmax": "def softmax(:"}, {"softmax": "1 / 0"}):
        assert checked(name, {name: calls, "attention_scores": right["attention_scores"], **unusable})["waits"]


def test_what_one_file_would_do_is_remarked(here):
    texts = {"relu": f"{RELU}\n\ndef half(x):\n    return x / 2\n"}
    texts["gelu"] = texts["relu"].replace("relu", "gelu").replace("/ 2", "/ 2.0")
    (remark,) = checked("relu", texts)["remarks"]
    assert remark.startswith("half: relu and gelu define this differently. In homework.py the definition that comes")
    assert checked("relu", {**texts, "gelu": texts["relu"].replace("def relu", "def gelu")})["remarks"] == []
    imports = {"relu": f"import math, {RELU[7:]}from math import e, pi\n", "gelu": f"{RELU}from math import pi\n"}
    assert checked("relu", imports | {"gelu": imports["gelu"].replace("relu", "gelu")})["remarks"] == []
    assert checked("relu", {"relu": f"from __future__ import annotations\n{RELU}"})["remarks"]
    told = json.loads(tab.examine(json.dumps({"relu": RELU, "gelu": "def gelu(x:\n", "tanh": "\nreturn y\n"})))
    assert told == {"gelu": "line 1: '(' was never closed", "tanh": "line 2: 'return' outside function"}


def test_a_file_becomes_texts():
    assert answers_in(stub_file(all_exercises().values()), DEFAULTS) == {}
    far = [replace(all_exercises()[name], section="Week 3,\n" * 20) for name in ("relu", "tanh")]
    assert answers_in(stub_file(far), DEFAULTS) == {}  # no comment is in the text of the exercise above it
    own = stub_file([all_exercises()["softmax"], all_exercises()["relu"]])
    body = "    e = np.exp(x - x.max(axis))\n    return half(e)\n"
    own = own.replace("    raise NotImplementedError\n", body, 1)
    top = "import numpy as np\nfrom math import e as E\n\n\ndef half(x):\n    return x / E\n"
    own = own.replace("import numpy as np  # noqa: F401\n", "import numpy as np\n").replace("import numpy as np\n", top)
    (name, text), *others = answers_in(own.replace("\n", "\r\n"), DEFAULTS).items()
    assert name == "softmax" and not others
    assert text.count("import numpy as np") == 1 and text.endswith(body)
    space = {}
    exec(text, space)
    assert {"np", "E", "half", "softmax"} <= space.keys() and "relu" not in space
    elsewhere = answers_in(f"{RELU}\n\nlater = 3\n\n\ndef gelu(x): return x * later\n", DEFAULTS)
    assert elsewhere == {"relu": RELU, "gelu": "import numpy as np\n\n\nlater = 3\n\n\ndef gelu(x): return x * later\n"}
    broken = answers_in(f"{RELU}\n\ndef gelu(x:\n    return x\n", DEFAULTS)
    assert broken["relu"] == RELU and "def gelu(x:\n    return x\n" in broken["gelu"]
    with pytest.raises(ValueError, match="contains no exercise"):
        answers_in("print('another course')\n", DEFAULTS)


def test_an_answer_of_another_course_stays_but_is_not_checked(here):
    stub = "\n\n# hint: transformer-np homework hint {0}\ndef {0}(x):\n    raise NotImplementedError\n"
    centre = "def centre(x):\n    return x\n"
    file = RELU + stub.format("theirs") + stub.format("centre").replace("raise NotImplementedError", "return x")
    assert answers_in(file, DEFAULTS) == {"centre": centre, "relu": RELU}
    assert checked("centre", {"centre": centre})["text"].startswith("centre is an exercise of another course")


def test_what_only_a_parameter_is_called_is_not_copied():
    others = "x = 3\nscale = 2\nseen = []\n\n\ndef noted(y, to=seen):\n    scale = len(to)\n    return y\n\n\n"
    text = answers_in(f"{others}def relu(x):\n    return noted(x * (x > 0))\n", DEFAULTS)["relu"]
    assert "seen = []" in text and "def noted" in text and "x = 3" not in text and "scale = 2" not in text
    methods = "class A:\n    def f(self, relu):\n        pass\n\n    def g(self, x):\n        return relu(x)\n"
    assert tab._called("gelu", {"gelu": methods}) == ["relu"]


def test_what_a_name_is_given_after_its_first_line_is_copied():
    top = "from math import *\n\nscale = {}\nscale['x'] = 2\nseen = []\nseen.append(1)\n\n\n"
    text = "def gelu(x):\n    return root(x) * scale['x']\n"
    file = f"{top}def root(x):\n    return sqrt(x)\n\n\n{RELU}\n\n{text}"
    found = answers_in(file, DEFAULTS)
    space = {}
    exec(found["gelu"], space)
    assert space["gelu"](4) == 4 and "seen" not in found["gelu"] and found["relu"] == RELU
    stub = DEFAULTS["tanh"].partition("\n\n\n")[2]
    assert "tanh" not in answers_in(f"{file}\n\n{stub}", DEFAULTS)  # which no import begins


def test_the_headings_of_a_student_stay():
    own = "# --- a helper ---\ndef pos(x):\n    return x > 0\n\n\n# --- the answer ---------\ndef relu(x):\n"
    own += "    return x * pos(x)\n\n\n# --- a test ---\nassert relu(2) == 2\n"
    file = stub_file([all_exercises()["relu"], all_exercises()["softmax_backward"]])
    stub = file[file.index("def relu") : file.index("\n\n# --- Backpropagation")]
    assert answers_in(file.replace(stub, own), DEFAULTS) == {"relu": f"import numpy as np\n\n\n{own}"}
    without_comment = "".join(line for line in file.replace(stub, RELU).splitlines(True) if "hint relu" not in line)
    assert answers_in(without_comment, DEFAULTS) == {"relu": RELU}


# --- in Chromium -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """(the browser with the page, a function that ends its server)"""
    folder = tmp_path_factory.mktemp("page")
    build.write_page(folder, course_at(None), pyodide())
    with served(folder) as (address, stop):
        browser.get(address)
        run(browser, "await homework.ready")
        yield browser, stop
        browser.get("about:blank")


@pytest.mark.release
def test_firefox(tmp_path):
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if not program:
        pytest.skip("Firefox is not there")
    build.write_page(tmp_path / "page", parse_course(COURSE), pyodide())
    (tmp_path / "profile").mkdir()
    firefox = Firefox(program, tmp_path / "profile")
    firefox.ask("WebDriver:SetTimeouts", script=120_000)
    try:
        with served(tmp_path / "page") as (address, stop):
            firefox.get(address)
            run(firefox, "await homework.ready")
            stop()
            test_code_without_an_end((firefox, stop))
            test_code_in_c_without_an_end((firefox, stop))
            for changes in HARM:
                test_an_answer_that_changes_python_harms_no_other((firefox, stop), changes)
            test_an_answer_that_stops_has_its_line((firefox, stop))
            firefox.get(address)  # without a network
            run(firefox, "await homework.ready")
            assert not answered((firefox, stop), "softmax", SOFTMAX)["passed"]
    finally:
        firefox.quit()


def answered(page, name, text, seconds=20):
    script = "homework.choose(given[0]); homework.set(given[1]); return await homework.check(given[2], given[3])"
    return run(page[0], script, name, text, SEED, seconds)


NAMES = list(all_exercises())
FEW = NAMES[::60]


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in FEW else pytest.mark.release) for n in NAMES])
def test_every_exercise_in_the_tab(page, here, name):
    exercise = all_exercises()[name]
    for text in (as_file(exercise), as_file(exercise, [next(iter(exercise.mistakes))])):
        assert answered(page, name, text)["text"] == by_command(name, text)


def test_code_without_an_end(page):
    catches = "    while True:\n        try:\n            x = x + 1\n        except:\n            pass\n"
    found = answered(page, "relu", f"def relu(x):\n{catches}", 1)
    assert found["text"].startswith("relu: crashed. It took longer than 1 s. This line was running:\n  File ")
    assert found["line"] in (2, 3, 4, 5, 6) and not found["passed"]
    assert answered(page, "relu", RELU)["passed"]


@pytest.mark.release
def test_code_in_c_without_an_end(page):
    """The worker is ended, and starts again by itself."""
    found = answered(page, "relu", "def relu(x):\n    sum(range(10**15))\n", 1)
    assert (found["outcome"], found["line"]) == ("crashed", None) and "inside one call of code in C" in found["text"]
    assert answered(page, "relu", RELU)["passed"]


HARM = (
    f"{RELU}\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nnp.maximum = None\n",
    "import sys\nsys.modules.clear()\n",
    "import sys\nsys.monitoring.free_tool_id(2)\n",
)


@pytest.mark.parametrize(
    "changes",
    [HARM[0], *(pytest.param(harm, marks=pytest.mark.release) for harm in HARM[1:])],
    ids=["NumPy", "modules", "monitoring"],
)
def test_an_answer_that_changes_python_harms_no_other(page, changes):
    assert not answered(page, "relu", changes)["passed"]
    assert answered(page, "relu", RELU)["passed"]


def test_an_answer_that_stops_has_its_line(page):
    said = answered(page, "relu", "import torch\n")
    assert said["outcome"] == "cannot be imported" and "No module named 'torch'" in said["text"]
    interrupted = answered(page, "relu", "def relu(x):\n    raise KeyboardInterrupt\n")
    assert (interrupted["outcome"], interrupted["line"]) == ("crashed", 2)
    for text, mark in ((RELU, "right"), ("def relu(x):\n    return x\n", "not right yet")):
        answered(page, "relu", text)
        chosen = "document.querySelector('#list [aria-current=true]')"
        assert run(page[0], f"return {chosen}.getAttribute('aria-label')") == f"relu, {mark}"


def test_save_open_reload_without_a_network_and_a_full_disk(page, here):
    browser, stop = page
    stop()  # what a next visit needs is in the browser after the first
    answered(page, "relu", RELU)
    broken = "def gelu(x:\n    return x\n"
    assert answered(page, "gelu", broken)["outcome"] == "cannot be imported"
    answered(page, "softmax", SOFTMAX)
    saved = run(browser, "return homework.save()")
    (here / "homework.py").write_text(saved, "utf-8")
    submission = load("homework.py")  # although the text of gelu is not Python
    assert {"relu", "softmax"} <= submission.answers.keys() and "#| def gelu(x:\n" in saved
    texts = "const entry = ([key, value]) => [key.split(' ').pop(), JSON.parse(value).text];"
    texts += "return Object.fromEntries(Object.entries(localStorage).map(entry))"
    browser.refresh()
    run(browser, "await homework.ready")
    assert run(browser, "return homework.save()") == saved
    changed = SOFTMAX.replace("np.exp(x)", "np.exp(2 * x)")
    opened = "window.confirm = () => true; await homework.open(given[0])"
    run(browser, opened, saved.replace("np.exp(x)", "np.exp(2 * x)"))
    assert {name: run(browser, texts)[name] for name in ("relu", "gelu", "softmax")} == {
        "relu": RELU, "gelu": f"import numpy as np\n\n\n{broken}", "softmax": changed,
    }  # fmt: skip

    assert not answered(page, "softmax", SOFTMAX)["passed"]
    assert [line.text.strip() for line in browser.find_elements("css selector", ".guilty")] == ["e = np.exp(x)"]

    run(browser, "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }")
    assert answered(page, "relu", RELU)["passed"]
    assert "save homework.py before you leave it" in browser.find_element("css selector", "#notice").text


def test_the_keyboard_alone(page):
    from selenium.webdriver import ActionChains, Keys

    browser, _ = page
    run(browser, "homework.choose('relu'); homework.set(''); document.querySelector('#verdict').hidden = true")
    run(browser, "document.querySelector('.cm-content').focus()")
    keys = ActionChains(browser)
    for line in ("import numpy as np", *40 * [""], "def relu(x):", "return np.maximum(x, 0)"):
        keys.send_keys(line, Keys.ENTER)  # the editor indents
    keys.key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()
    said = "while (document.querySelector('#verdict').hidden) await new Promise((go) => setTimeout(go, 50)); "
    assert run(browser, f"{said} return document.querySelector('#said').innerText") == "relu: right."
    seen = "const { top, bottom } = document.querySelector('#verdict').getBoundingClientRect(); "
    assert run(browser, f"{seen} return 0 <= top && bottom < innerHeight + 1"), "the verdict is outside of the window"
    assert re.match(r"\d+ of 80 exercises right", browser.find_element("css selector", "#count").text)
    ActionChains(browser).send_keys(Keys.ESCAPE, Keys.TAB).perform()
    assert browser.switch_to.active_element.get_attribute("id") == "check"
