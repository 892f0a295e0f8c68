"""The stage of the living page: lessons show what they say, on every kind of page and at every size of a screen."""

import html
import re
import tomllib
from pathlib import Path
from urllib.parse import parse_qs, unquote

import numpy as np
import pytest
from browsing import LivePage, opened
from shared import resize, wait_until

from transformer_np.cli import main
from transformer_np.data import CharTokenizer
from transformer_np.data.tokenizers import SPECIAL_TOKENS
from transformer_np.inspection import explorer
from transformer_np.inspection.explorer.finished import PAGES, finished_page
from transformer_np.inspection.explorer.lessons import CLAIMS, lessons_for
from transformer_np.inspection.explorer.live import explore_live
from transformer_np.lecture import five_words

LETTERS = CharTokenizer([*SPECIAL_TOKENS, *"abcde"])
SIZES = [(390, 844), (1024, 600), (640, 360), (1280, 720), (1366, 768), (1920, 1080)]  # 640 × 360: 1280 × 720 at 200 %

# Goes through lessons in a frame, which takes each of the sizes, and notes what each state shows.
PLAY = """
const [sizes, walk, done] = arguments;
const frame = document.querySelector("iframe"), page = frame.contentWindow, doc = page.document, { live } = page;
const root = doc.documentElement, at = (id) => doc.getElementById(id);
const until = (what) => new Promise((go) => {
  const look = () => root.dataset[what] ? go() : setTimeout(look, 2);
  look();
});
const frames = () => new Promise((go) => page.requestAnimationFrame(() => page.setTimeout(go, 0)));
const misfit = () => {
  const inside = (r, of = { left: 0, top: 0, right: page.innerWidth, bottom: page.innerHeight }) => r.width > 0 &&
    r.left >= of.left - 1 && r.top >= of.top - 1 && r.right <= of.right + 1 && r.bottom <= of.bottom + 1;
  const box = (it) => it.getBoundingClientRect(), text = at("lesson-box");
  const canvas = doc.querySelector("#equation canvas.live");
  const wrong = [];
  if (!inside(box(at("lesson-text"))) || text.scrollHeight > text.clientHeight + 1) wrong.push("text");
  if (!inside(box(canvas)) || box(canvas).height < 40 || box(canvas).width < 60) wrong.push("matrix");
  if (!inside(box(doc.querySelector("#equation figure")), box(at("equation")))) wrong.push("its words");
  const cut = (css, way) => [...doc.querySelectorAll(`#equation ${css} span`)]
    .filter((it) => it.firstChild[`offset${way}`] > it[`client${way}`] + 1);
  const names = page.innerWidth < 1280 ? [] : [...cut(".row-heads", "Width"), ...cut(".turned", "Height")];
  wrong.push(...names.map((it) => `${it.textContent} is cut`));
  const others = [...doc.querySelectorAll("#lesson-answers button, #effect dd, #stage-bar button, #cell")];
  wrong.push(...others.filter((it) => it.checkVisibility() && !inside(box(it))).map((it) => it.textContent));
  if (root.scrollHeight > page.innerHeight) wrong.push("the page scrolls");
  return wrong;
};
const seen = async (lesson, title, number, claims) => {
  const { matrix, names, picked, hidden } = live.drawn();
  const row = Array.from(matrix.row(picked.row), (x, j) => hidden(picked.row, j) ? null : x);
  const shape = [at("step-title").firstChild.textContent, at("step-title").innerText, at("lesson-title").textContent];
  const found = { lesson, title, number, claims, shape, cell: at("cell").innerText, row, at: picked.row,
    names: names.rows,
    rows: Array.from({ length: matrix.rows }, (_, i) => [...matrix.row(i)]), misfits: [],
    text: at("lesson-box").innerText, effect: at("effect").innerText,
    covered: !at("equation").checkVisibility({ visibilityProperty: true }) };
  for (const [width, height] of sizes) {
    frame.width = width; frame.height = height;
    await frames();
    await frames(); // the first one tells the page of its size
    found.misfits.push(...misfit().map((what) => [width, height, what]));
  }
  return found;
};
(async () => {
  await until("ready");
  live.goTo(-1);
  await until("offered");
  const all = [];
  for (let lesson = walk ? 0 : 1; lesson < live.lessons().length; lesson++) {
    const { title, steps } = live.lessons()[lesson];
    const kept = lesson ? live.shown.get(lesson) : steps.map((step) => ({ step })).filter((_, i) => i % walk === 0);
    for (const [i, { step }] of kept.entries()) {
      const claims = (commands) => commands.filter(([name]) => name === "see").map(([, what]) => what);
      const number = steps.indexOf(step);
      live.goTo(lesson, lesson ? i : number);
      await until("ready");
      const { before, after, question } = step;
      all.push(await seen(lesson, title, number, claims(question ? before : [...before, ...after])));
      if (!step.question) continue;
      doc.querySelector(`[data-key="answer ${step.right}"]`).click();
      await until("ready");
      all.push(await seen(lesson, title, number, claims(step.after)));
    }
  }
  done(all);
})();"""


def doubled(state):
    """Two rows of the picture that belong to the same word."""
    first = {}
    for i, word in enumerate(state["names"]):
        if word in first:
            return [state["rows"][first[word]], state["rows"][i]]
        first[word] = i
    return None


def numbers_of(state):
    """The loss of the text before and after, as it is written."""
    before, after = re.search(r"loss of the text\s+([\d.]+) → ([\d.]+)", state["effect"]).groups()
    return float(before), float(after)


def shown(row):
    return [x for x in row if x is not None]


def terms(state):
    """The numbers of the sum behind a logit, and the logit."""
    numbers = re.findall(r"[−\d.]+(?= \+|\) \+|\)? =|, the logit)", state["cell"])
    return [float(x.replace("−", "-")) for x in numbers[-5:]]


SEEN = {  # claim: what the picture and the numbers of the page show, before and after the prediction
    "loss rises": lambda before, now: numbers_of(now)[1] > numbers_of(now)[0],
    "loss falls": lambda before, now: numbers_of(now)[1] < numbers_of(now)[0],
    "the gradient is not 0": lambda before, now: max(map(abs, shown(now["row"]))) > 0,
    "the gradients of the row add up to 0": lambda before, now: abs(sum(shown(now["row"]))) < 1e-9,
    "the row adds up to 1": lambda before, now: abs(sum(shown(now["row"])) - 1) < 1e-9,
    "the row has one weight": lambda before, now: len(shown(now["row"])) == 1 and now["row"][0] == 1,
    "the row sees more": lambda before, now: len(shown(now["row"])) > len(shown(before["row"])),
    "the largest weight rises": lambda before, now: max(shown(now["row"])) > max(shown(before["row"])),
    "the row is nearly equal": lambda before, now: max(now["row"]) < 1.5 * min(now["row"]),
    "the row's own is largest": lambda before, now: int(np.argmax(now["row"])) == now["at"],
    "some of the row are 0": lambda before, now: min(now["row"]) == 0 < max(now["row"]),
    "the rows get one size": lambda before, now: np.ptp(np.std(now["rows"], axis=1)) < 2,
    "two equal words": lambda before, now: doubled(now) is not None,
    "equal rows": lambda before, now: np.allclose(*doubled(now)),
    "different rows": lambda before, now: not np.allclose(*doubled(now)),
    "the longest grows": lambda before, now: max(now["rows"][1]) > max(now["rows"][0]),
    "the parts add up to the logit": lambda before, now: abs(np.sum(terms(now)[:-1]) - terms(now)[-1]) < 0.1,
    "the logit changes by another amount": lambda before, now: terms(now)[-1] != terms(before)[-1],
    "k are left": lambda before, now: np.count_nonzero(now["rows"][1]) == 3,
}


def play(browser, page, tmp_path, sizes=(), walk=0):
    """All states of all lessons of a page, and every `walk`-th of the walk; each shows what its step claims."""
    frame = f'<iframe srcdoc="{html.escape(page.page)}" width="1280" height="720"></iframe>'
    path = tmp_path / "frame.html"
    path.write_text(f'<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">{frame}', "utf-8")
    for here in opened(browser, path):
        states = here.browser.execute_async_script(PLAY, list(sizes), walk)
    for i, state in enumerate(states):
        where = state["title"], state["number"], state["text"]
        before = states[i - 1]
        asked = (before["lesson"], before["number"]) == (state["lesson"], state["number"])
        for claim in state["claims"]:
            assert SEEN[claim](before if asked else state, state), (claim, *where, state["effect"], state["row"])
        if state["lesson"] == 0:  # the step of the walk is the one that is open
            of, heading, lesson = state["shape"]
            place = lesson.removeprefix("Back: ").removesuffix(f": {of}")
            assert lesson.endswith(of) and place.split(": ")[-1].lower() in heading.lower(), where
        if asked:  # what is asked for is not there before the answer
            changed = any(before[name] != state[name] for name in ("rows", "effect"))
            assert before["covered"] or changed, where
            assert not state["covered"], where
        assert not re.search(r"undefined|NaN|\{\w+\}", state["text"] + state["effect"]), where
    assert [(*misfit, s["title"], s["number"], s["text"]) for s in states for misfit in s["misfits"]] == []
    return states


@pytest.mark.parametrize(
    "name",
    ["translator", *(pytest.param(n, marks=pytest.mark.release) for n in ("gpt", "translate", "gpt run", "classify"))],
)
def test_every_lesson_shows_what_it_says(browser, name, request, tmp_path):
    """Five kinds of page, two of which come with the package."""
    finished = name in ("translator", "gpt")
    if not finished:
        run = request.getfixturevalue("small_runs") / name.split()[0]
        assert main(["explore", "--model", str(run), "-o", str(tmp_path / "page.html")]) == 0
    page = finished_page(name) if finished else type("Page", (), {"page": (tmp_path / "page.html").read_text("utf-8")})
    states = play(browser, page, tmp_path, SIZES[:1] if name == "translator" else (), walk=8)
    titles = {state["title"] for state in states}
    assert len(titles) >= {"translator": 14, "gpt": 14}.get(name, 5), titles
    if name == "translator":
        assert {claim for state in states for claim in state["claims"]} == set(CLAIMS)
    assert {"The lecture's five words", "A walk through every step"} <= titles


@pytest.mark.release
@pytest.mark.parametrize("name", ["translator", "gpt"])
def test_every_state_fits_every_screen(browser, name, tmp_path):
    states = play(browser, finished_page(name), tmp_path, SIZES, walk=1)
    assert len(states) > 60


@pytest.fixture
def page(browser, make_translator, tokenizers, tmp_path):
    made = explore_live(make_translator().eval(), tokenizers, "Ana is < is")
    yield from opened(browser, made.save(tmp_path / "page.html"), LivePage)


def test_a_lesson_that_the_model_does_not_show_is_not_offered(browser, make_gpt, tmp_path, monkeypatch):
    file = tmp_path / "mine.txt"
    false = "see: loss rises\nNothing changes, so the loss stays.\n"
    true = "open: weights row=last\nsee: the row adds up to 1\nIt does.\n"
    for text, expected in ((f"== One\n{false}", [0]), (f"== One\n{false}\n== Two\n{true}", [1])):
        file.write_text("title: T\n\n" + text, "utf-8")
        made = lessons_for("GPT", [file])
        monkeypatch.setattr("transformer_np.inspection.explorer.live.lessons_for", lambda kind, made=made: made)
        page = explore_live(make_gpt().eval(), LETTERS, "abc").save(tmp_path / "page.html")
        for here in opened(browser, page, LivePage):
            here.click("#lessons")
            here.wait("offered")
            assert [here.read("live.shown.get(1).length")] == expected
            hidden = here.read("document.querySelector('[data-key=\"lesson 1\"]').parentElement.hidden")
            assert hidden == (expected == [0])
            here.wait(first="live.goTo(1)")
            assert here.one("#lesson-title").text == ("Lessons" if hidden else "T: Two")


def test_the_first_lesson_has_the_numbers_of_the_lecture(page):
    five = five_words()
    page.wait(first="live.goTo(1)")
    page.at(2, 1)  # the sum runs as the grid reads
    assert "Q₃,₂ = 0.30 · (−0.10) + 0.20 · 0.90 + 1.00 · 0.10 + 0.40 · 0.20 = 0.33" in page.one("#cell").text
    for matrix in (five.q, five.k, five.v, five.scores, five.weights, five.output):
        matrix = np.asarray(matrix).reshape(5, -1)
        for button in page.all("#lesson-answers button")[:1]:
            button.click()
        page.wait()
        for row, column in ((0, 0), (2, 1), (4, 3)):
            assert page.at(row, column) == pytest.approx(matrix[row, column], abs=0.0051)
        page.click("#lesson-next")
    assert page.one("#lesson-title").text == "Lessons"  # and the contents again


def test_keys_lead_through_the_stage_and_terms_explain_themselves(page):
    page.open("cross 0 0")
    page.open("Output logits")
    page.click("#to-stage")
    assert "Decoder: output: A logit" in page.one("#lesson-title").text
    page.click("#lesson-end")
    page.open("cross scores")
    page.click("#to-stage")
    assert "Cross-attention: Scores" in page.one("#lesson-title").text  # the walk, at the step that was open
    assert page.one("#step h2 small").text == "cross-attention, layer 1, head 1"  # which need not be that of the page
    assert not page.one("#pinned").is_displayed() and not page.one("#map").is_displayed()
    page.press("ARROW_RIGHT")
    page.wait()
    assert "Attention weights" in page.one("#lesson-title").text
    page.press("ARROW_LEFT", "PAGE_DOWN")
    page.wait()
    assert "Attention weights" in page.one("#lesson-title").text
    assert page.words_of(".axis") == ["query", "key"] and page.words_of(".legend") == ["0\n1"]
    page.click(".term")
    assert re.match(r"Softmax: e to the power .* Notebook 02\.", page.one("#term").text)
    page.press("ESCAPE")
    page.click("#contents")
    page.press("ESCAPE")
    page.wait()
    assert page.one("#step").is_displayed() and page.one("#pinned").is_displayed() and page.changes == []


def test_controls_are_large_enough_for_a_finger_and_the_page_opens_at_its_top(page, browser):
    page.open("cross weights")
    small = page.read(
        "[...document.querySelectorAll('button, input, select, summary')].filter((it) => it.checkVisibility())"
        ".filter((it) => { const { width, height } = it.getBoundingClientRect(); return width < 24 || height < 24 })"
        ".map((it) => it.outerHTML)"
    )
    assert small == []
    for width, height in ((390, 844), (640, 360)):
        resize(browser, width, height)
        browser.refresh()
        page.wait()
        assert page.read("scrollY") == 0


WRITTEN = """  // whoever types is not held up: the address follows
const look = () => location.hash === live.written() ? arguments[0]() : setTimeout(look, 10); look();"""


def test_a_link_opens_the_same_state_and_a_reload_keeps_it(page, browser):
    page.type("text", "is Ana < tired")
    page.open("cross 0 1")
    page.click("#head-off")
    page.open("cross scores")
    page.at(1, 2)
    page.show("difference")
    browser.execute_async_script(WRITTEN)
    link = page.read("location.href")
    assert parse_qs(unquote(link.split("#")[1]))["text"] == ["is Ana < tired"]
    told = "[document.getElementById('cell').innerText, document.getElementById('effect').innerText, live.written()]"
    before = page.read(told)
    browser.refresh()
    page.wait()
    assert page.read(told) == before and page.changes and page.one("#text").get_attribute("value") == "is Ana < tired"
    page.wait(first="live.goTo(4, 1, 1)")
    browser.execute_async_script(WRITTEN)
    before = page.read("document.getElementById('lesson-box').innerText")
    browser.refresh()
    page.wait()
    assert page.read("document.getElementById('lesson-box').innerText") == before and "Yes" in before
    wrongs = "#text=Ana&layer=99&head=x&changes=[1,{}]&lesson=[77]&show=no&at=nothing&steps=-3", "#%E0%A4%A", "#a"
    for wrong in wrongs:
        browser.get(link.split("#")[0] + wrong)
        browser.refresh()
        page.wait()


def test_words_are_coloured_by_attention_and_joined_by_lines(page):
    page.open("cross 1 2")
    weights = page.read("[...live.result().values['decoder.1.cross_attention.weights'][2].row(1)]")
    look = "document.querySelector(arguments[0]).dispatchEvent(new PointerEvent(arguments[1], {bubbles: true}))"
    page.browser.execute_script(look, '[data-key="target 1"]', "pointerover")
    words = "[...document.querySelectorAll('#tokens button')]"
    tones = page.read(f"{words}.map((it) => it.style.getPropertyValue('--look'))")
    assert [float(tone.strip("%")) for tone in tones] == pytest.approx([100 * w for w in weights], abs=0.51)
    page.browser.execute_script(look, "#steps", "pointerleave")
    assert "0%" in page.read("document.querySelector('#tokens button').style.getPropertyValue('--look')")
    for choice, heads in (("head", 1), ("all", 3)):
        page.type("lines", choice, "change")
        lines = "[...document.querySelectorAll('.lines line')]"
        strengths = page.read(f"{lines}.map((it) => +it.getAttribute('stroke-opacity'))")
        rows = len(page.steps)
        assert sum(strengths) == pytest.approx(heads * rows, abs=0.1 * heads * rows)


def test_a_picture_is_saved(page, browser, tmp_path):
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page.open("cross weights")
    for css, name, begins in (("#save-svg", "svg", b"<svg"), ("#save-png", "png", b"\x89PNG")):
        page.click(css)
        file = Path(tmp_path / f"transformer-weights.{name}")
        wait_until(lambda file=file: file.exists() and file.stat().st_size)
        assert file.read_bytes().startswith(begins)
    words = file.with_suffix(".svg").read_text("utf-8")
    assert "rows: query, columns: key" in words and "&lt;" in words


def test_pictures_move_where_the_reader_allows_it(page, browser):
    count = "window.moved = 0; const own = document.startViewTransition.bind(document);"
    browser.execute_script(count + "document.startViewTransition = (act) => { window.moved++; return own(act); }")
    for motion, expected in (("reduce", 0), ("no-preference", 1)):
        feature = {"name": "prefers-reduced-motion", "value": motion}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        page.wait(first="live.goTo(0, 3)")
        browser.execute_async_script(
            "live.goTo(0, 4); const look = () => live.state.step === 'v' && document.documentElement.dataset.ready ?"
            " arguments[0]() : setTimeout(look, 20); setTimeout(look, 50)"
        )
        assert bool(page.read("window.moved")) == bool(expected)
        drawn = "[...document.querySelectorAll('#step canvas:not(.ramp)')]"
        names = page.read(f"{drawn}.map((it) => it.style.viewTransitionName)")
        assert len(names) == len(set(names)) == 3


def test_a_lesson_of_a_lecturer(tmp_path):
    file = tmp_path / "mine.txt"
    text = "title: T\n\n== One\nopen: scores\nA text\nof two lines.\n\nAnother.\n? Which?\n- no\n* yes\nundo\nWhy.\n"
    file.write_text(text, "utf-8")
    (lesson,) = lessons_for("GPT", [file])
    (step,) = lesson["steps"]
    assert step["text"] == ["A text of two lines.", "Another."] and step["right"] == 1 and step["why"] == "Why."
    assert step["before"] == [["open", "scores"]] and step["after"] == [["undo", ""]]
    for text, message in (
        ("== One\nA", "a title and at least one step"),
        ("title: T\nfor: BERT\n== One", r"line 2: for must be one of attention, any, .*, got 'BERT'"),
        ("title: T\nmatrix: X = 1 b\n== One", "line 2: expected a matrix such as"),
        ("title: T\nmatrix: X = 1 2; 3\n== One", "line 2: the rows of X must be equally long"),
        ("title: T\n== One\n? Which?\n- no\n- yes", '"One": a question has at least two answers'),
        ("hello", "line 1: expected title"),
        ("title: T\n== One\nsee: magic", "line 3: a claim must be one of loss rises; .*, got 'magic'"),
    ):
        file.write_text(text, "utf-8")
        with pytest.raises(ValueError, match=message):
            lessons_for("GPT", [file])


def test_the_two_ends_of_the_colours_differ_in_grey():
    css = (Path(explorer.__file__).parent / "live_page/page.css").read_text("utf-8")
    for theme in re.findall(r":root \{(.*?)\}", css, re.DOTALL):
        ends = [np.array([int(c[i : i + 2], 16) / 255 for i in (0, 2, 4)]) for c in re.findall(ENDS, theme)]
        above, below = (end**2.2 @ [0.21, 0.72, 0.07] for end in ends)
        assert abs(above - below) > 0.15


ENDS = r"--(?:above|below): #(\w{6});"


# --- the finished pages that come with the package --------------------------------------------------------------------

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", PAGES)
def test_the_page_in_the_documentation_has_the_scripts_of_today(name):
    page = (ROOT / "docs" / f"{name}.html").read_text("utf-8")
    assert page == finished_page(name).page, "python docs/finished_pages.py"
    assert len(page) < 2_500_000
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"][f"docs/{name}.html"].endswith(f"explorer/finished/{name}.html")


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("translator", "Lucas will travel in December", "Lucas vai viajar em dezembro"),
        pytest.param("gpt", "Alice was beginning to get", "Alice was beginning to get very", marks=pytest.mark.release),
    ],
)
def test_the_finished_page_answers(browser, tmp_path, name, text, expected):
    """The same whatever white space is typed; a word that was in no training text is named."""
    for page in opened(browser, finished_page(name).save(tmp_path / "page.html"), LivePage):
        assert page.read("live.gradients().loss") < 3  # of the text that it begins with
        answers = set()
        for typed in (text, f"  {text} ", text.replace(" ", "\n", 1).replace(" ", "  "), text.replace(" ", "\u00a0\t")):
            page.type("text", typed)
            page.click("#restart")
            page.click("#finish")
            answers.add(page.output)
            assert page.one("#remark").text == ""
        (answer,) = answers
        assert answer.startswith(expected)
        page.type("text", "Zoë, “isn’t” 7 ☃")  # byte pairs read everything
        expected = r"Expect mistakes: the model has seen [\d,]+ words, listed below, and not “Zoë”, .*"
        assert re.fullmatch(expected, page.one("#remark").text)
        listed = page.read("document.getElementById('word-list').textContent")
        assert listed.split()[0] == page.read("live.seen.words[0]")
