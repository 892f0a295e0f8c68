"""The finished pages that come with the package."""

import re
import tomllib
from pathlib import Path

import pytest
from browsing import LivePage, opened

from transformer_np.inspection.explorer.finished import PAGES, finished_page

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
        ("gpt", "Alice was beginning to get", "Alice was beginning to get very"),
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
