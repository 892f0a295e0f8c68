"""What the package index gets: the text, its links, the version."""

import importlib
import re
import tomllib
from pathlib import Path

import pytest

import transformer_np

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
HOST = "https://host.example/owner/name"


@pytest.fixture
def hook(monkeypatch):
    pytest.importorskip("hatchling")
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("hatch_build")


def test_every_link_and_picture_leads_into_the_repository(hook):
    text = hook.for_the_index(README, HOST)
    shown, here = (re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", page) for page in (text, README))
    assert len(shown) == len(here) > 30
    for (picture, address), (_, path) in zip(shown, here, strict=True):
        assert address == f"{HOST}/{'raw' if picture else 'blob'}/main/{path}"


def test_without_a_repository_there_are_no_dead_links(hook):
    text = hook.for_the_index(README, "")
    assert not re.search(r"\]\((?!https?:)", text) and "## Gallery" not in text
    assert "transformer-np lecture" in text and "In the benchmarks, a training step" in text
    headings = re.findall(r"^## .*$", README, re.MULTILINE)
    assert [heading for heading in headings if heading != "## Gallery"] == re.findall(r"^## .*$", text, re.MULTILINE)


def test_the_hook_fills_in_the_text_and_the_addresses(hook):
    for repository in ("", HOST):
        metadata = {}
        hook.CustomMetadataHook(str(ROOT), {"repository": repository}).update(metadata)
        assert metadata["readme"]["text"] == hook.for_the_index(README, repository)
        assert metadata.get("urls", {}).get("Source", "") == repository


def test_the_version_is_one():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["hatch"]["version"]["path"] == "transformer_np/__init__.py"
    assert f"\nversion: {transformer_np.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {transformer_np.__version__}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
