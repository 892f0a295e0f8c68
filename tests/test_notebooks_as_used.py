"""Notebooks as students use them: every "Try it" is done, cells are run a second time, the stubs of the exercises have
the arguments that the check passes, and nothing is written into the student's folder."""

import ast
import contextlib
import inspect
import io
import re
import sys
import types

import numpy
import pytest

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("IPython")
pytest.importorskip("ipywidgets")

from test_notebooks import TRAINS_LONG  # noqa: E402

from transformer_np import homework  # noqa: E402
from transformer_np.notebooks.texts import number, read_cells, texts  # noqa: E402

# The edits that each "Try it" of a notebook asks for, in order: (text of the cell, what replaces it). None: it asks to
# look at something, or to run a cell on a page.
TRIES = {
    "00": [('"My sister can play the guitar tomorrow"', '"Lucas is a xylophone"')],
    "01": [("base = 100", "base = 10**6")],
    "01b": [('line = "Lucas will travel"', 'line = "Is Ana tired?"'), ('"Lucas ", seed=seed', '"Is Ana ", seed=seed')],
    "02": [("factor = 5  #", "factor = -100  #"), ("changed[4] = x[0]", "changed[1] = x[3]")],
    "03": [
        ("Q[0], [1, 0, 0]]", "Q[0], Q[0][0] + Q[0][1]]"),
        ("factor = 4  #", "factor = 20  #"),
        ("MultiHeadAttention(512, 7)", "MultiHeadAttention(512, 16)"),
    ],
    "04": [
        ("w_2 = np.array([[1.0], [1.0]])  # change me", "w_2 = np.array([[1.0], [0.0]])"),
        ("[[0.002, 0.001, 0.0, -0.001]]", "[[2.0, 2, 2, 2]]"),
    ],
    "05": [
        ("plots.mask(window_mask(8, 2)) ", "plots.mask(window_mask(8, 2) | causal_mask(8)) "),
        ("layers = 3 ", "layers = 5 "),
        ("forgotten = block(Y, C, None, pad)", "forgotten = block(Y, C, future, None)"),
    ],
    "06": [
        ("for h in (1e-1,", "for h in (1e-8, 1e-1,"),
        ("variant(through_s=6 / 5)", "variant(through_s=1.001)"),
        ("attention, q, k_3, v_3, backward=dv_untransposed", "attention, 0 * q, k_3, v_3, backward=dv_untransposed"),
    ],
    "07": [("Lucas will travel in July", "Maria xyz"), ("weights[0], rows", "weights[1], rows"), None],
    "08": [('("The statem", ', '("Exc", "The statem", ')],
    "09": [
        ("the concert was far from dull", "the zebra was far from dull"),
        ("cuts = [(1, CLS, 4), (2, CLS, 4)]", "cuts = [(1, CLS, 4)]"),
        ('("awful", "superb")', '("dull", "good")'),
        ('("a dog bites a man", "a man bites a dog"),', '("yes", "no"),'),
    ],
    "10": [("q, k, v, 20, causal=False", "q, k, v, 5, causal=False"), ("steps=400", "steps=60")],
    "11": [('option = "d"', 'option = "b"')],
    "12": [
        ("for number in (1, 2)", "for number in (3,)"),
        ('vectors.neighbours("tupel")', 'vectors.neighbours("list")'),
        ("pairs, steps, seed = 1500, 200, 0", "pairs, steps, seed = 500, 100, 1"),
    ],
    "13": [
        ("num_buckets=8, max_distance=20", "num_buckets=4, max_distance=10"),
        ("for seed in (1, 2, 5)", "for seed in (7,)"),
        ('"sentiment: the songs were dull"', '"sentiment: I liked it"'),
    ],
    "14": [],
    "15": [],
    "16": [],
}
each = pytest.mark.parametrize("text", texts(), ids=lambda text: text.stem)


def code_of(text):
    return [source for kind, source, _ in read_cells(text.read_text(encoding="utf-8")) if kind == "code"]


@each
def test_every_try_it_has_an_edit_of_one_cell(text):
    tries = TRIES[number(text)]
    assert len(tries) == text.read_text(encoding="utf-8").count("**Try it")
    for edit in filter(None, tries):
        assert sum(edit[0] in cell for cell in code_of(text)) == 1, edit


@pytest.mark.notebooks
@pytest.mark.parametrize(
    "text", [pytest.param(t, id=t.stem, marks=[pytest.mark.release] * (number(t) in TRAINS_LONG)) for t in texts()]
)
def test_cells_run_twice_and_every_try_it_shows_something(text, tmp_path, monkeypatch):
    """Each cell is run, run again as it is, and then with the edit of a "Try it" in place of the original."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("IPython.display.display", print)
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: print("a picture"))
    module = types.ModuleType("notebook")
    monkeypatch.setitem(sys.modules, "notebook", module)
    edits = dict(filter(None, TRIES[number(text)]))
    with matplotlib.rc_context({"backend": "agg"}):
        for cell in code_of(text):
            run(cell, module)
            if not trains(cell):
                run(cell, module)
            for old, new in edits.items():
                if old in cell:
                    assert run(cell.replace(old, new), module), f"nothing is shown: {new}"
                    run(cell, module)  # the notebook goes on with the original
            matplotlib.pyplot.close("all")
    assert not [path.name for path in tmp_path.iterdir() if path.name != "progress.json"]


def trains(cell):
    """Cells that take long, and those that change what a cell before them has made."""
    return re.search(r"\.fit\(|\.train\(|train\(|add\(\"|\+=", cell)


def run(cell, module):
    """Run a cell as a notebook does; what it printed, and its last value."""
    tree = ast.parse(cell)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, "cell", "exec"), module.__dict__)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), module.__dict__)
            print("" if value is None else repr(value))
    return out.getvalue().strip()


@each
def test_the_stubs_have_the_arguments_that_the_check_passes(text):
    cells = code_of(text)
    for asked, name in re.findall(r"(?:homework\.)?check\(\"(\w+)\", (\w+)\)", "\n".join(cells)):
        if asked not in homework.all_exercises():
            continue
        stub = next(cell for cell in cells if f"def {name}(" in cell)
        names = {}
        exec(stub, {"np": numpy}, names)
        given, wanted = (
            inspect.signature(f).parameters for f in (names[name], homework.all_exercises()[asked].reference)
        )
        assert len(given) == len(wanted), (asked, [*given], [*wanted])
        optional = [[p.name for p in parameters.values() if p.default is not p.empty] for parameters in (given, wanted)]
        assert set(optional[1]) <= {*given}, (asked, optional)
