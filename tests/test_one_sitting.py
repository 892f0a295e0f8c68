"""The page that shows the plain Transformer as a reading."""

import ast
import re
from pathlib import Path

import pytest

from transformer_np import functional as F
from transformer_np.functional import core

ROOT = Path(__file__).parents[1]
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
    assert called and all(getattr(F, name).__module__ == core.__name__ for name in called)


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
