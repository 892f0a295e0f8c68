"""The finished pages that come with the package."""

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
        ("gpt", "The attention weights", "The attention weights"),
    ],
)
def test_the_finished_page_answers(browser, tmp_path, name, text, expected):
    for page in opened(browser, finished_page(name).save(tmp_path / "page.html"), LivePage):
        page.type("text", text)
        page.click("#finish")
        assert page.output.startswith(expected)
        page.type("text", "Zoë, “isn’t” 7 ☃")
        assert page.one("#remark").text == ""  # byte pairs read everything
