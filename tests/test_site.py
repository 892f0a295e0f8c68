"""The site's pages and docstrings, as docs/conf.py prepares them, and the text for the package index. `.ci/run` reads
all pages, `.ci/release` builds the site and checks its links."""

import ast
import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
import textwrap
import tomllib
from functools import cache
from pathlib import Path

import pytest

import transformer_np
from transformer_np import functional as F
from transformer_np import layers
from transformer_np.bench import complexity
from transformer_np.homework import all_exercises
from transformer_np.layers import MultiHeadAttention

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def conf():
    spec = importlib.util.spec_from_file_location("conf_of_the_site", ROOT / "docs" / "conf.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines_of(thing):
    return inspect.getdoc(thing).splitlines()


def test_every_page_is_in_the_contents(conf):
    pages = [page for some in conf.contents().values() for page in some]
    assert len(pages) == len(set(pages))
    expected = {str(file.relative_to(ROOT).with_suffix("")) for pattern in ("docs/*.md", "notebooks/*.ipynb", "*.md")
                for file in ROOT.glob(pattern)}  # fmt: skip
    assert {page for page in pages if not page.startswith("docs/reference/")} | {"README"} == expected


def test_the_reference_has_every_public_module(conf):
    assert set(transformer_np._MODULES) <= set(conf.REFERENCE)
    order = conf.members(F)
    assert set(order) == set(F.__all__) and order[:2] == ["linear", "linear_backward"]


def test_prose_flows_and_shapes_stay(conf):
    assert conf.as_rst(lines_of(F.linear), 4) == [
        "Multiply every row by the same matrix and add the bias\\: y = x W + b.", "", ".. code-block:: text",
        "   :class: written", "", "   x (..., D_in), w (D_in, D_out), b (D_out,) or None  ->  y (..., D_out)",
    ]  # fmt: skip
    shown = conf.as_rst(lines_of(MultiHeadAttention), 4)
    assert [line.split("``")[1] for line in shown if line.startswith("- ")] == ["d_head"]
    formula = "   MultiHead(x) = Concat(head₁ … head_H) W_O,    headᵢ = Attention(x W_Qᵢ, source W_Kᵢ, source W_Vᵢ)"
    assert formula in shown
    assert ".. code-block:: python" in conf.as_rst(lines_of(transformer_np.models.GPT), 4)  # its code is code
    assert conf.as_rst(lines_of(F.layer_norm), 4)[2] == ".. code-block:: text"


def test_no_word_of_a_docstring_is_lost(conf):
    for name in F.__all__:
        text = inspect.getdoc(getattr(F, name))
        shown = re.sub(r"\.\. [a-z:-]+( text)?\n   :class: written\n", "", "\n".join(conf.as_rst(text.splitlines(), 4)))
        written, shown = (re.sub(r"[\s`\\]|^- ", "", some, flags=re.MULTILINE) for some in (text, shown))
        assert shown == written, name


NOT_REFUSED = {  # by an argument of another kind alone
    *("layers.RelativePositionBias", "homework.using", "homework.load", "plots.model_view", "plots.sampling"),
    *("decoding.greedy_steps", "decoding.generate_steps"),  # when they are asked for the first step
    *("data.BPETokenizer", "data.LargeText", "data.PackedPairs", "data.write_date", "training.save_checkpoint"),
    *("inspection.head_ablation", "lecture.read_statements", "tasks.runs.create_run", "tasks.runs.load_run_model"),
    "tasks.runs.load_layers",
    *("tasks.runs.replace_run", "tasks.runs.write_description"),
    *("complexity.counts", "complexity.measure_memory", "complexity.sequential_operations"),
}
EXAMPLES = [f"functional.{name}" for name in F.__all__]
EXAMPLES += [f"layers.{name}" for name in layers.__all__ if isinstance(getattr(layers, name), type)]


@pytest.mark.parametrize("part", [pytest.param(i, marks=pytest.mark.release if i else ()) for i in range(8)])
def test_every_example_of_the_reference_runs(conf, tmp_path, monkeypatch, part):
    monkeypatch.setattr(complexity, "gradients", cache(complexity.gradients))  # seconds, for the page and again here
    made = [f"{module}.{name}" for module, names in conf.examples.CALLS.items() for name in names]
    for number, path in enumerate((EXAMPLES + made)[part::8]):
        (tmp_path / str(number)).mkdir()
        monkeypatch.chdir(tmp_path / str(number))
        thing, lines = pkgutil.resolve_name(":".join(f"transformer_np.{path}".rsplit(".", 1))), ["y"]
        conf.show_docstring(None, "class" if isinstance(thing, type) else "function", path, thing, None, lines)
        text = textwrap.dedent("\n".join(lines[lines.index(".. code-block:: pycon") + 2 :]))
        test = doctest.DocTestParser().get_doctest(text, {}, path, None, 0)
        said = []
        assert len(test.examples) > 2 and doctest.DocTestRunner().run(test, out=said.append).failed == 0, "".join(said)
        if path in EXAMPLES or ("Raises" in (thing.__doc__ or "") and path not in NOT_REFUSED):
            assert re.search(r"^\w+Error: .{8}", text, re.M), path


def test_every_function_of_the_reference_has_an_example(conf):
    paths = [*EXAMPLES, *(f"{module}.{name}" for module, names in conf.examples.CALLS.items() for name in names)]
    shown = {pkgutil.resolve_name(":".join(f"transformer_np.{path}".rsplit(".", 1))) for path in paths}
    without = set()
    for path in (path for page in conf.REFERENCE.values() for path in page):
        module = importlib.import_module(f"transformer_np.{path}")
        things = {name: getattr(module, name) for name in conf.members(module)}
        without |= {name for name, thing in things.items() if inspect.isfunction(thing) and thing not in shown}
    # what needs a trained model or files of others, and what takes a minute
    assert without == {"load_trained", "merge_as_pretrained", "minilm_folder", "measure"}


def test_links_lead_to_the_reference_and_to_pages(conf):
    links = "[`functional/`](transformer_np/functional) [a test](tests/test_site.py) [docs](docs/README.md)"
    source = [f"{links} [a page](docs/gpt.html)"]
    conf.prepare(None, "SECURITY", source)
    links = "{py:mod}`functional/ <transformer_np.functional>` a test [docs](docs/README.md)"
    assert source == [f'{links} <a href="docs/gpt.html">a page</a>']
    first = ["# Title\n\nText"]
    conf.prepare(None, "README", first)
    for page in ("docs/gpt.html", "docs/translator.html", f"{conf.TRY}/index.html"):
        assert f'href="{page}"' in first[0]


def test_try_it_beside_an_example(conf):
    tried = [name for page in ROOT.glob("docs/*.md") for name in re.findall(r"<!-- try: (\w+) -->", page.read_text())]
    assert len(tried) >= 3 and set(tried) <= all_exercises().keys()
    source = ["An example.\n\n<!-- try: softmax -->\n"]
    conf.prepare(None, "docs/homework", source)
    assert '<a href="../homework-page/index.html?softmax">' in source[0] and "<!--" not in source[0]


def test_broken_links_are_found(conf, tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#here">b</a><a href="b.html#gone">b</a><a href="c.html">c</a>')
    (tmp_path / "b.html").write_text('<p id="here"><img src="https://x.org/y.png"><a href="https://x.org">x</a>')
    nowhere = ["a.html: b.html#gone leads nowhere", "a.html: c.html leads nowhere"]
    assert list(conf.broken(tmp_path)) == [*nowhere, "b.html loads https://x.org/y.png"]


def test_a_docstring_with_markup_is_text(conf):
    lines = textwrap.dedent("""\
        Take *args and name_ and |x|, as `F.name` does.

        size: the number
            of rows; `None` is all
        many, more: others

        size: one item
        and one line that is none
    """).splitlines()
    assert conf.as_rst(lines, 4) == [
        r"Take \*args and name\_ and \|x\|, as ``F.name``\  does.", "",
        r"- ``size``: the number of rows; ``None``\  is all", "- ``many, more``: others", "", ".. code-block:: text",
        "   :class: written", "", "   size: one item", "   and one line that is none",
    ]  # fmt: skip


# --- what the package index gets: the text, its links, the version ----------------------------------------------------

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


# --- the page that shows the plain Transformer as a reading -----------------------------------------------------------

PAGE = (ROOT / "docs" / "one-sitting.md").read_text(encoding="utf-8")
MOST_LINES = 1500
STOPS = re.findall(r"^```\{literalinclude\} (\S+)\n:language: python\n(?::pyobject: (\S+)\n)?```$", PAGE, re.MULTILINE)


def shown(file, name):
    """The source of a file, or of one definition in it, as the page includes it."""
    text = (ROOT / "docs" / file).resolve().read_text(encoding="utf-8")
    node = ast.parse(text)
    for part in name.split(".") if name else ():
        (node,) = (n for n in node.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name == part)
    if not name:
        return text
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])


def test_the_whole_of_it_fits_into_one_sitting():
    assert len(STOPS) == PAGE.count("```{literalinclude}") > 25
    assert sum(len(shown(*stop).splitlines()) for stop in STOPS) <= MOST_LINES


def test_it_is_the_lecture_and_nothing_else():
    """Every function that the shown layers call is one of the lecture's, which the page shows."""
    code = "\n".join(shown(*stop) for stop in STOPS)
    called = set(re.findall(r"\bF\.(\w+)", code))
    assert called and all(getattr(F, name).__module__ == F.core.__name__ for name in called)


@pytest.mark.parametrize(
    "section", re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:], ids=lambda text: text.split("\n")[0]
)
def test_every_stop_has_a_sentence_and_its_formula(section):
    if section.startswith(("Masks", "What a layer is")):
        return
    assert section.count("$$") == 2 and re.search(r"\.\n\n\$\$", section)


def test_the_reading_order():
    """What a shown layer is made of has been shown before it."""
    names = [name.split(".")[0] for _, name in STOPS if name]
    for later, *earlier in (
        ("AddNorm", "LayerNorm", "Dropout"),
        ("EncoderBlock", "MultiHeadAttention", "FeedForward", "AddNorm"),
        ("Transformer", "EncoderBlock", "DecoderBlock", "Linear", "Embedding", "InputEmbedding", "PositionalEncoding"),
        ("Trainer", "Objective", "Optimizer", "Adam"),
    ):
        assert all(names.index(name) < names.index(later) for name in earlier)
