"""Make the site of README, docs and notebooks with Sphinx: `sphinx-build -W -c docs . build/site`.

Its pages are the files that a code host shows; only the reference is made, one page per module, from the docstrings as
they are written. Everything that a page needs is in the folder of the site: it works without a network.
"""

import ast
import importlib
import inspect
import re
import sys
import textwrap
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import matplotlib

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

import examples  # noqa: E402

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
REPOSITORY = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]

# --- settings ---------------------------------------------------------------------------------------------------------

project = "transformer_np"
author = copyright = "transformer_np contributors"
version = release = re.search(r'__version__ = "(.*)"', (ROOT / "transformer_np/__init__.py").read_text("utf-8"))[1]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton"]
copybutton_exclude = ".linenos, .gp, .go"  # prompts and results of Python are not copied
copybutton_selector = "div:not(.written):not(.cell_output) > div.highlight > pre"
root_doc = "README"
include_patterns = ["*.md", "docs/**", "notebooks/*.ipynb"]
exclude_patterns = ["**/.*", "build", "dist", "runs"]
highlight_language = "text"
smartquotes = False  # quotation marks of code stay as they are
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # the notebooks hold their outputs
nb_merge_streams = True
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
html_theme = "furo"
html_title = project
html_static_path = ["site.css", f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSerif.ttf"]
html_css_files = ["site.css"]
html_search_scorer = str(ROOT / "docs" / "search.js")
html_math_renderer = "mathml"
html_show_sourcelink = html_copy_source = False
html_domain_indices = False
html_theme_options = {"top_of_page_buttons": []}

# --- pages ------------------------------------------------------------------------------------------------------------

TRY = "homework-page"  # the folder of the exercises in a browser tab
OPEN = f"""
With nothing to install: <a href="docs/translator.html">a translator to look into</a>,
<a href="docs/gpt.html">a GPT that has read Alice in Wonderland</a> and
<a href="{TRY}/index.html">the homework</a> open in this browser.
"""  # on the first page
TASKS = ("classify", "copying", "mlm", "pretrained_classes", "runs", "t5", "text", "translation", "word2vec", "xl")
REFERENCE = {  # page: the modules on it
    **{name: [name] for name in ("functional", "masks", "module", "layers", "models", "decoding", "training")},
    "tasks": ["tasks", *(f"tasks.{name}" for name in TASKS)],
    **{name: [name] for name in ("data", "pretrained", "gradcheck", "tracing", "plots", "lecture", "complexity")},
    "blocks": ["blocks"],
    "inspection": ["inspection"],
    "homework": ["homework", "homework.exercise"],
}


def write_reference(app):
    folder = ROOT / "docs" / "reference"
    folder.mkdir(exist_ok=True)
    for name, paths in REFERENCE.items():
        lines = [name, "=" * len(name)]
        for path in paths:
            module = importlib.import_module(f"transformer_np.{path}")
            module.__all__ = members(module)  # of this process: the order of the page
            lines += ["", f".. automodule:: {module.__name__}", "   :members:", "   :imported-members:"]
        page, text = folder / f"{name}.rst", "\n".join(lines) + "\n"
        if not page.exists() or page.read_text("utf-8") != text:  # a new file would be read again
            page.write_text(text, "utf-8")


def members(module):
    """The public names in the order in which one reads the files: the lecture's mathematics first."""
    public = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
    found = {name: getattr(module, name) for name in public}
    homes = {name: getattr(thing, "__module__", None) for name, thing in found.items()}  # None: a constant
    shown = [name for name, home in homes.items() if home and (hasattr(module, "__all__") or home == module.__name__)]
    return sorted(shown, key=lambda name: (not homes[name].endswith(".core"), homes[name], line_of(found[name])))


def line_of(thing):
    thing = inspect.unwrap(thing)
    return thing.__code__.co_firstlineno if inspect.isfunction(thing) else inspect.getsourcelines(thing)[1]


def contents():
    """The pages beside the first one: {caption: [document, …]}, by the headings and tables of docs/README.md."""
    text = (ROOT / "docs" / "README.md").read_text("utf-8")
    found = {
        "": ["docs/README"],
        "Tutorial": [f"notebooks/{file.stem}" for file in sorted((ROOT / "notebooks").glob("*.ipynb"))],
    }
    for section in text.split("\n## ")[1:]:
        caption, *lines = section.splitlines()
        pages = [page for line in lines for page in re.findall(r"^\| \[[^]]*\]\(([\w./-]+)\.md\)", line)]
        found.setdefault(caption, []).extend(
            page.removeprefix("../") if "/" in page else f"docs/{page}" for page in pages
        )
    found["Reference"] += [f"docs/reference/{name}" for name in REFERENCE]
    return found


def prepare(app, document, source):
    """The text of a page as the site needs it: a link to code leads to its reference, one to a page of HTML to that
    page, one to another file of the repository is text; no picture is fetched from elsewhere; the first page has the
    contents, and links to what opens in a browser."""
    here = (ROOT / document).parent
    if not document.startswith("docs/reference/"):
        source[0] = re.sub(r"!\[([^]]*)\]\(https?:[^)]*\)", r"\1", source[0])
        source[0] = re.sub(r"(?<!!)\[([^]]*)\]\((?!https?:|#)([^)#]+)\)", lambda link: linked(here, link), source[0])
    source[0] = re.sub(r"<!-- try: (\w+) -->", lambda found: try_it(document, found[1]), source[0])
    if document == root_doc:
        source[0] = source[0].replace("\n\n", f"\n{OPEN}\n", 1)  # below its title
        source[0] += "".join(toctree(caption, pages) for caption, pages in contents().items())


def try_it(document, name):
    """A link beside an example, which leads to the exercise in a browser tab; a code host shows nothing there."""
    up = "../" * document.count("/")
    return f'<p><a href="{up}{TRY}/index.html?{name}">Try it: write <code>{name}</code> in this tab</a></p>'


def toctree(caption, pages):
    options = [":hidden:", ":titlesonly:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "```{toctree}", *options, "", *(f"/{page}" for page in pages), "```", ""])


def linked(here, link):
    text, target = link[1], (here / link[2]).resolve()
    if target.suffix in (".md", ".ipynb") or not target.exists():
        return link[0]
    path = target.relative_to(ROOT).as_posix()
    if target.suffix == ".html":
        return f'<a href="{link[2]}">{text}</a>'  # Sphinx would make it a file to download
    name = path.removeprefix("transformer_np/").split("/")[0].removesuffix(".py")
    if path.startswith("transformer_np/") and name in REFERENCE:
        return "{py:mod}`" + f"{text.strip('`')} <transformer_np.{name}>`"
    return f"[{text}]({REPOSITORY}/blob/main/{path})" if REPOSITORY else text


# --- docstrings -------------------------------------------------------------------------------------------------------

WIDTH, SLACK = 120, 15  # of a line of code; how much shorter a wrapped line may be
CODE = re.compile(r"`([^`]+)`")
ITEM = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*): (.*)")  # of a list of arguments


def as_rst(lines, indent):
    """A docstring as reStructuredText: prose flows, an argument is an item of a list; formulas, shapes and code stay in
    the lines and columns in which they are written.

    indent: of the docstring in its file
    """
    shown = []
    for paragraph in re.split(r"\n(?:[ \t]*\n)+", "\n".join(lines).strip("\n")):
        rows = joined(paragraph.splitlines(), WIDTH - indent)
        items = [ITEM.fullmatch(row) for row in rows]
        if all(items):
            shown += [f"- ``{item[1]}``: {inline(item[2])}" for item in items]
        elif len(rows) == 1 and "->" not in rows[0] and not rows[0].startswith(" "):
            shown += [inline(rows[0])]
        else:
            text = textwrap.dedent("\n".join(rows))
            shown += [
                f".. code-block:: {'python' if is_code(text) else 'text'}",
                "   :class: written",
                "",
                textwrap.indent(text, "   "),
            ]
        shown += [""]
    return "\n".join(shown).splitlines()


def is_code(text):
    try:
        return bool(ast.parse(text).body)
    except SyntaxError:
        return False


def joined(rows, width):
    """The rows without the breaks that a full line made; a block that is indented as a whole is left alone."""
    if all(row.startswith(" ") for row in rows):
        return rows
    found, before = rows[:1], rows[0]
    for row in rows[1:]:
        listed = ITEM.match(found[-1])  # in a list an indented line goes on with the item, and a next item ends it
        full = len(before) + 1 + len(row.split()[0]) > width - SLACK
        if row.startswith(" ") if listed and (row.startswith(" ") or ITEM.match(row)) else full:
            found[-1] += f" {row.strip()}"
        else:
            found.append(row)
        before = row
    return found


def inline(text):
    pieces = CODE.split(text)
    pieces[::2] = [re.sub(r"([\\*_|`:])", r"\\\1", piece) for piece in pieces[::2]]
    return "".join(f"``{piece}``\\ " if number % 2 else piece for number, piece in enumerate(pieces))


def show_docstring(app, what, name, obj, options, lines):
    lines[:] = as_rst(lines, {"module": 0, "method": 8, "property": 8, "attribute": 8}.get(what, 4))
    if what == "function" and name.startswith("transformer_np.functional.") and name.count(".") == 2:
        lines += ["", f"`Write it yourself, in this tab <../../{TRY}/index.html?{name.rpartition('.')[2]}>`__", ""]
    example = examples.of(obj) if what in ("function", "class") else None
    if example:
        lines += ["", ".. code-block:: pycon", "", *(f"   {line}" for line in example), ""]


def show_signature(app, what, name, obj, options, signature, returned):
    """Without the ten types that NumPy's DTypeLike stands for."""
    return signature and re.sub(r"\bdtype: type\[.*?\| str\b", "dtype: DTypeLike", signature), returned


# --- formulas ---------------------------------------------------------------------------------------------------------


def mathml(tex, block):
    """A formula of the notebooks, in TeX, as MathML, which browsers draw themselves."""
    from docutils.utils.math.latex2mathml import tex2mathml

    tex = re.sub(r"\\([bB]ig|textstyle)(?![a-zA-Z])", "", tex)  # brackets in MathML grow by themselves
    tex = re.sub(r"\\lt(?![a-zA-Z])", "<", re.sub(r"\\dots(?![a-zA-Z])", r"\\ldots", tex))
    return tex2mathml(tex, as_block=block)


def visit_math(writer, node):
    from docutils import nodes
    from sphinx.util.logging import getLogger

    try:
        writer.body.append(mathml(node.astext(), node.tagname == "math_block"))
    except SyntaxError as error:
        getLogger(__name__).warning("formula %r: %s", node.astext(), error, location=node)
    raise nodes.SkipNode


# --- the finished site ------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """ids: all anchors of a page; links: the targets of its links; fetched: the files that a browser loads with it"""

    def __init__(self, file):
        super().__init__()
        self.ids, self.links, self.fetched = set(), set(), set()
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids.update(attributes[name] for name in ("id", "name") if attributes.get(name))
        for name in ("href", "src"):
            if target := attributes.get(name):
                (self.links if tag == "a" else self.fetched).add(target)


def broken(folder):
    """Every link of the finished site that leads nowhere, and every file that a page loads from elsewhere."""
    pages = {file: Page(file) for file in sorted(Path(folder).resolve().rglob("*.html"))}
    for file, page in pages.items():
        for link in sorted(page.links | page.fetched):
            url = urlsplit(link)
            if url.scheme or url.netloc:
                if link in page.fetched and url.scheme != "data":
                    yield f"{file.relative_to(folder)} loads {link}"
                continue
            target = (file.parent / unquote(url.path)).resolve() if url.path else file
            anchor = unquote(url.fragment)
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].ids):
                yield f"{file.relative_to(folder)}: {link} leads nowhere"


def write_homework_page(folder):
    """The exercises in a browser tab, to which the functions of the reference lead; Python comes from the network."""
    from transformer_np.homework.course import default_course
    from transformer_np.homework.page.build import write_page

    write_page(folder / TRY, default_course())


def finish(app, error):
    from sphinx.util.logging import getLogger

    if error is None and app.builder.name == "html":
        front = Path(app.outdir, "index.html")
        front.write_bytes(Path(app.outdir, f"{root_doc}.html").read_bytes())  # beside it: its links hold
        write_homework_page(Path(app.outdir))
        for page in (ROOT / "docs").glob("*.html"):
            Path(app.outdir, "docs", page.name).write_bytes(page.read_bytes())
        for message in broken(app.outdir):
            getLogger(__name__).warning(message)


def setup(app):
    app.connect("builder-inited", write_reference)
    app.connect("source-read", prepare)
    app.connect("autodoc-process-docstring", show_docstring)
    app.connect("autodoc-process-signature", show_signature)
    app.connect("build-finished", finish)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
