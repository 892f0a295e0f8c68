"""The paths through the notebooks, and the slides of a teacher's copies."""

import json
import re
import sys
import types
from pathlib import Path

import pytest
from shared import call, resize
from test_notebooks_as_used import run

from transformer_np.homework import all_exercises
from transformer_np.notebooks import paths
from transformer_np.notebooks.paths import PATHS, SESSION_MINUTES, chosen, exercise_minutes, minutes, stated_minutes
from transformer_np.notebooks.slides import LINES, blocks, lines, slides
from transformer_np.notebooks.texts import copy_of, number, read_cells, students_cells, teachers_cells, texts

ROOT = Path(__file__).parents[1]
EXERCISES = all_exercises()
each = pytest.mark.parametrize("text", texts(), ids=lambda text: text.stem)


def parts_of(name):
    return paths.path_notebooks(name, students_cells, EXERCISES)


# --- times ------------------------------------------------------------------------------------------------------------


def test_minutes_count_words_code_guesses_and_exercises():
    cells = [
        ("markdown", "word " * 300 + "$$y_i = x^2$$\n\n**Guess.** What?\n\n**Try it.** Do.", []),
        ("code", "x = 1\n# no\n\ny = 2\n" * 5, []),
    ]
    assert paths.reading_minutes(cells) == pytest.approx((305 + 7) / 150 + 1 + 1)
    asked = [("markdown", "## Exercise 1 · Softmax\n\n## Exercise 2 · Count", []), ("code", 'check("softmax", f)', [])]
    assert exercise_minutes(cells, EXERCISES) == 2
    assert exercise_minutes(asked, {"softmax": types.SimpleNamespace(difficulty=3)}) == 12 + 5
    assert exercise_minutes(asked, {}) == 10


@each
def test_a_notebook_states_its_minutes(text):
    cells = teachers_cells(text)
    assert stated_minutes(cells) in (None, minutes(cells, EXERCISES))


def test_the_table_of_the_readme_has_these_minutes():
    table = (ROOT / "README.md").read_text(encoding="utf-8")
    for text in texts():
        stated = stated_minutes(teachers_cells(text))
        (cell,) = re.findall(rf"^\| \[{number(text)}\].*\|([^|]*)\|[^|]*\|$", table, re.MULTILINE)
        assert stated is None or cell.strip() == " + ".join(str(time) for time in stated if time), text.stem


# --- paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PATHS)
def test_a_path_fits_its_time_and_follows_the_lecture(name):
    spent = {}
    for part in parts_of(name):
        spent[part.session] = spent.get(part.session, 0) + part.minutes
        whole, *sections = map(int, re.findall(r"(\d+) min", part.cells[0][1]))
        assert whole == sum(sections) == part.minutes  # as they are written, so that a reader can add them
    assert len(spent) == {"lecture": 1, "lab": 4}[name]
    assert all(0.8 * SESSION_MINUTES < minutes <= SESSION_MINUTES for minutes in spent.values())
    parts = paths.LECTURE if name == "lecture" else [part for session in paths.LAB for part in session]
    order = [number for number, _ in parts]
    # attention (§4) before positions (§6) and masks (§9)
    assert order.index("02") < order.index("01") < order.index("05")


@pytest.mark.notebooks
@pytest.mark.release
@pytest.mark.parametrize("name", PATHS)
def test_every_cell_of_a_path_runs(name, here, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("ipywidgets")
    monkeypatch.setattr("IPython.display.display", print)
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    monkeypatch.setattr("ipywidgets.interact", lambda *given, **widgets: None)
    for part in parts_of(name):
        module = types.ModuleType("notebook")
        monkeypatch.setitem(sys.modules, "notebook", module)
        with matplotlib.rc_context({"backend": "agg"}):
            for kind, source, _ in part.cells:
                if kind == "code":
                    run(source, module)
                    matplotlib.pyplot.close("all")


def test_the_folder_of_a_path(capsys, here):
    code, out, _ = call(capsys, "start", "work", "--path", "lecture")
    parts = parts_of("lecture")
    assert code == 0 and all(f"{part.minutes} min  {part.file}: " in out for part in parts)
    names = {path.name for path in (here / "work").iterdir()}
    assert names == {part.file for part in parts} | {"homework.py", "progress.json"}
    for part in parts:
        cells = json.loads((here / "work" / part.file).read_text(encoding="utf-8"))["cells"]
        shown = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
        assert all(f"## {heading}\n" in shown + "\n" for heading, _ in part.times)
        assert ".ipynb)" not in shown and "{{" not in shown


TEXT = """# 01 · Title

```python
import math
one = 1
```

## First

```python
two = one + 1
```

## Second

```python
unused = 5
```

## Third

```python
print(two)
```
"""


def test_a_path_brings_the_cells_that_its_sections_need():
    cells = read_cells(TEXT)
    assert [heading for heading, _ in paths.sections(cells)] == ["", "First", "Second", "Third"]
    [(heading, first, _)] = chosen(cells, ("Third",))
    assert heading == "Third" and [source for _, source, _ in first] == ["import math\none = 1", "two = one + 1"]
    both = chosen(cells, ("First", "Third"))
    assert [(heading, left_out) for heading, left_out, _ in both] == [("First", first[:1]), ("Third", [])]
    with pytest.raises(LookupError, match="no section begins with 'Fourth'"):
        chosen(cells, ("Fourth",))


# --- slides -----------------------------------------------------------------------------------------------------------


@each
def test_every_heading_begins_a_slide(text):
    cells = json.loads(copy_of(text, teacher=True))["cells"]
    for cell in cells:
        inside = re.sub(r"```.*?```|<details>.*?</details>", "", cell["source"], flags=re.DOTALL)
        headings = re.findall(r"^#{1,3} ", inside, re.MULTILINE) if cell["cell_type"] == "markdown" else []
        kind = cell["metadata"]["slideshow"]["slide_type"]
        assert len(headings) == 0 or (len(headings) == 1 and kind in ("slide", "subslide") and inside.startswith("#"))
    said = {
        kind: [block for k, s, _ in teachers_cells(text) if k == kind for block in ([s] if k == "code" else blocks(s))]
        for kind in ("code", "markdown")
    }
    made = "\n".join(cell["source"] for cell in cells)
    assert all(block in made for blocks_of in said.values() for block in blocks_of)  # nothing is lost


def test_what_is_shown_and_what_is_said():
    prose = "# Title\n\nOne.\n\nTwo.\n\n$$x$$\n\n- a list\n\n## Next\n\nThree.\n\n**Guess.** What?\n\n"
    cells = read_cells(prose + "```python\n1\n```\n\nFour.\n")
    made = [(source.partition("\n")[0], more["slideshow"]["slide_type"]) for _, source, _, more in slides(cells)]
    assert made == [
        ("# Title", "slide"), ("One.", "-"), ("$$x$$", "-"), ("- a list", "-"), ("Two.", "notes"),
        ("## Next", "slide"), ("Three.", "-"), ("**Guess.** What?", "-"), ("1", "-"), ("Four.", "-"),
    ]  # fmt: skip
    long = slides([("code", "x = 1\n" * 20, []), ("code", "y = 1\n" * 20, [])])
    assert [cell[3]["slideshow"]["slide_type"] for cell in long] == ["slide", "subslide"]
    assert lines("code", "x = 1\n" * 20) < LINES < 2 * lines("code", "x = 1\n" * 20)


REVEAL = """
<style>.reveal .slides { width: 960px; height: 700px; position: relative; } section { display: none; width: 960px; }
section.present { display: block; }</style>"""  # the layout of reveal.js, which comes from the network


@pytest.mark.release
@each
def test_every_slide_fits_the_screen(browser, text, tmp_path):
    nbconvert = pytest.importorskip("nbconvert")
    nbformat = pytest.importorskip("nbformat")
    stored = nbformat.read(text.parents[1] / f"{text.stem}.ipynb", 4)
    outputs = {cell.source: cell.outputs for cell in stored.cells if cell.cell_type == "code"}
    notebook = nbformat.reads(copy_of(text, teacher=True), 4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = outputs[cell.source]
    page, _ = nbconvert.SlidesExporter().from_notebook_node(notebook)
    page = re.sub(r"<script[^>]*src=.*?</script>|<link[^>]*>", "", page, flags=re.DOTALL)
    (tmp_path / "slides.html").write_text(page.replace("</head>", REVEAL + "</head>"), encoding="utf-8")
    resize(browser, 1280, 860)
    browser.get((tmp_path / "slides.html").as_uri())
    tall = browser.execute_async_script(MEASURE)
    assert len(tall) > 3 and [slide for slide in tall if slide["height"] > 700 or slide["width"] > 1280] == []
    assert [slide for slide in tall if slide["size"] < 0.5] == []


MEASURE = """
const done = arguments[0], slides = [...document.querySelectorAll("section")].filter(s => !s.querySelector("section"));
const found = [];
(async () => {
  for (const slide of slides) {
    const above = slide.parentElement.closest("section");
    [slide, above].forEach(s => s && s.classList.add("present"));
    await new Promise(go => setTimeout(go, 400));
    const box = slide.getBoundingClientRect();
    const size = Number(slide.style.zoom || 1), text = slide.innerText.slice(0, 40);
    found.push({height: box.height, width: box.width, size: size, text: text});
    [slide, above].forEach(s => s && s.classList.remove("present"));
  }
  done(found);
})();
"""
