"""The notebooks as text: reading them, and the copies that a student and a teacher get.

A text is Markdown, as Jupytext writes it: a fence of ```python is a code cell, the text between two fences is Markdown,
and two blank lines begin a new cell. Tags may follow ```python, as in ```python tags=["varies"]. A Markdown cell with
tags stands between <!-- #region tags=["solution"] --> and <!-- #endregion -->.

A cell with the tag `solution`, and a <details> block with the summary "Solution", are for teachers.

An assertion (`assert …`, `np.testing.…`) tests the text and is not shown to its readers, unless its comment is
"# shown" or "# shown: …". Neither is any other statement that has the comment "# test" in its first line.

A number or a comparison in a sentence is an expression between double braces, which `notebooks/build.py` evaluates.
"""

import ast
import json
import re
from pathlib import Path

from .slides import slides

SOLUTION = "solution"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}

FIELD = re.compile(r"\{\{\s(.+?)\s\}\}", re.DOTALL)  # an expression in a sentence
_HERE = Path(__file__).resolve().parent
_HEADER = re.compile(r"\A---\n.*?^---\n", re.DOTALL | re.MULTILINE)
_SPECIAL = re.compile(
    r"^```python(?P<code_tags>[^\n]*)\n(?P<code>.*?)^```$"
    r"|^<!-- #region(?P<region_tags>[^\n]*)-->\n(?P<region>.*?)^<!-- #endregion -->$",
    re.DOTALL | re.MULTILINE,
)
_TAGS = re.compile(r"tags=(\[.*?\])")
_MARKS = re.compile(r"\bassert\b|\bnp\.testing\b|# test")
_SHOWN = re.compile(r"  # shown(?:: (.*))?$")
_DETAILS = re.compile(r"^<details>\s*<summary>Solution.*?</details>\n?", re.DOTALL | re.MULTILINE)


def texts():
    """The text files of all notebooks, in order: those in the package or, in a working copy, in notebooks/text."""
    folders = (_HERE, _HERE.parents[1] / "notebooks" / "text")
    return next((found for folder in folders if (found := sorted(folder.glob("[0-9][0-9]*_*.md")))), [])


def number(text):
    """The number of a notebook: "01b" of 01b_build_it.md. With a letter it stands between two others."""
    return text.stem.partition("_")[0]


def results(name):
    """The stored results of a notebook's long experiment, such as results("15"): {name: [one dict per seed]}.

    `python notebooks/experiment.py 15` in a working copy makes them, with the notebook's own cells.
    """
    path = next(text.with_name(f"{name}_results.json") for text in texts() if number(text) == name)
    return json.loads(path.read_text(encoding="utf-8"))["runs"]


def cells_of(text):
    """The cells of a text file as `read_cells` gives them, with the values of its last execution in its sentences."""
    path = text.with_name(f"{number(text)}_values.json")
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    cells = read_cells(text.read_text(encoding="utf-8"))
    return [(kind, filled(source, known) if kind == "markdown" else source, tags) for kind, source, tags in cells]


def filled(source, known):
    """A Markdown cell with its fields replaced. Raises LookupError for a field whose value is not known."""

    def known_value(found):
        field = " ".join(found[1].split())
        if field not in known:
            raise LookupError(f"the value of {{{{ {field} }}}} is not known: build the notebook without --text")
        return known[field]

    return FIELD.sub(known_value, source)


def read_cells(text):
    """[(cell_type, source, tags)] of the text of a notebook."""
    text, cells, end = _HEADER.sub("", text), [], 0
    for found in _SPECIAL.finditer(text):
        cells += _markdown(text[end : found.start()])
        if found["code"] is not None:
            cells.append(("code", found["code"].rstrip("\n"), _tags(found["code_tags"])))
        else:
            cells.append(("markdown", found["region"].strip("\n"), _tags(found["region_tags"])))
        end = found.end()
    return cells + _markdown(text[end:])


def shown(source):
    """The code of a cell as its readers see it: without the statements that only test the text."""
    if not _MARKS.search(source):
        return source
    lines = source.splitlines()
    for first, last in reversed(_tests(ast.parse(source).body, lines)):
        if not "".join(lines[last + 1 : last + 2]).strip():  # one gap where there were two
            while first and not lines[first - 1].strip():
                first -= 1
        del lines[first : last + 1]
    kept = (_SHOWN.sub(lambda found: f"  # {found[1]}" if found[1] else "", line) for line in lines)
    return "\n".join(kept).strip("\n")


def _tests(body, lines):
    """[(first line, last line)] of the tests in a list of statements, counted from 0; a loop of nothing else is one."""
    found = []
    for node in body:
        span, inner = (node.lineno - 1, node.end_lineno - 1), getattr(node, "body", ())
        asserts = isinstance(node, ast.Assert) or ast.unparse(node).startswith("np.testing.")
        if "# test" in lines[span[0]] or (asserts and not _SHOWN.search(lines[span[1]])):
            found.append(span)
        elif inner and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            tests, other = _tests(inner, lines), _tests(getattr(node, "orelse", ()), lines)
            whole = len(tests) == len(inner), len(other) == len(getattr(node, "orelse", ()))
            found += [span] if all(whole) else [] if whole[0] else tests + other
    return found


def _markdown(text):
    return [("markdown", part.strip("\n"), []) for part in text.split("\n\n\n") if part.strip()]


def _tags(attributes):
    found = _TAGS.search(attributes)
    return json.loads(found[1]) if found else []


def as_notebook(cells, prefix):
    """The notebook of (cell_type, source, tags, …) as JSON data, not executed; its cells are named prefix-001, ….

    The fourth entry of a cell, if any, is further metadata.
    """
    made = []
    for i, (kind, source, tags, *more) in enumerate(cells, 1):
        metadata = {"tags": tags} if tags else {}
        cell = {"id": f"{prefix}-{i:03}", "cell_type": kind, "metadata": metadata | dict(*more), "source": source}
        made.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": METADATA, "cells": made}


def students_cells(text):
    """The cells of a text as students get them: without solutions, and without what only tests the text."""
    cells = []
    for kind, source, tags in cells_of(text):
        source = shown(source) if kind == "code" else _DETAILS.sub("", source).strip("\n")
        if source and SOLUTION not in tags:
            cells.append((kind, source, tags))
    return cells


def teachers_cells(text):
    """The cells of a text with the solutions, without what only tests the text."""
    cells = [(kind, shown(source) if kind == "code" else source, tags) for kind, source, tags in cells_of(text)]
    return [cell for cell in cells if cell[1]]


def copy(cells, prefix, teacher=False):
    """The .ipynb of cells without outputs; for teachers cut into slides for `jupyter nbconvert --to slides`."""
    cells = slides(cells) if teacher else [(kind, source, []) for kind, source, _ in cells]
    return json.dumps(as_notebook(cells, prefix), indent=1, ensure_ascii=False) + "\n"


def copy_of(text, teacher=False):
    """The .ipynb of a text without outputs: without its solutions, or with them and cut into slides."""
    return copy((teachers_cells if teacher else students_cells)(text), number(text), teacher)
