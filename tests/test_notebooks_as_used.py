"""Notebooks as students use them: every "Try it" is done, cells are run a second time, the stubs of the exercises have
the arguments that the check passes, and nothing is written into the student's folder."""

import ast
import contextlib
import inspect
import io
import itertools
import re
import sys
import types

import numpy
import pytest

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("IPython")
ipywidgets = pytest.importorskip("ipywidgets")

from test_notebooks import TRAINING, build  # noqa: E402

from transformer_np import homework  # noqa: E402
from transformer_np.notebooks.texts import FIELD, number, read_cells, shown, texts  # noqa: E402

# Where the reader writes, chooses or looks something up.
NO_GUESS = re.compile(
    r"Exercises?\b|How to work|The lecture and its|Every step|A folder|A different word|Step [12]|One model, many tasks"
)

# The edits that each "Try it" of a notebook asks for, in order: (text of the cell, what replaces it). None: it asks to
# look at something, or to run a cell on a page.
TRIES = {
    "00": [('"My sister can play the guitar tomorrow"', '"Lucas is a xylophone"')],
    "01b": [('line = "Lucas will travel"', 'line = "Is Ana tired?"'), ('"Lucas ", seed=seed', '"Is Ana ", seed=seed')],
    "02": [("changed[4] = x[0]", "changed[1] = x[3]")],
    "03": [("Q[0], [1, 0, 0]]", "Q[0], Q[0][0] + Q[0][1]]")],
    "05": [("forgotten = block(Y, C, None, pad)", "forgotten = block(Y, C, future, None)")],
    "06": [("attention, q, k_3, v_3, backward=dv_un", "attention, 0 * q, k_3, v_3, backward=dv_un")],
    "07": [("Lucas will travel in July", "Maria xyz"), ("weights[0], rows", "weights[1], rows"), None],
    "08": [('("The statem", ', '("Exc", "The statem", ')],
    "09": [
        ("the concert was far from dull", "the zebra was far from dull"),
        ("cuts = [(1, CLS, 4), (2, CLS, 4)]", "cuts = [(1, CLS, 4)]"),
        ('in ("awful", "superb"):', 'in ("dull", "good"):'),
        ('("a dog bites a man", "a man bites a dog"),', '("yes", "no"),'),
    ],
    "10": [("q, k, v, 20, causal=False", "q, k, v, 5, causal=False"), ("steps=400", "steps=60")],
    "12": [('"tupel"', '"list"'), ("pairs, steps, seed = 1500, 200, 0", "pairs, steps, seed = 500, 100, 1")],
    "13": [('"sentiment: the songs were dull"', '"sentiment: I liked it"')],
}
FEWER_CONTROLS = {"00": 0, "11": 1, "17": 0}  # no number that is worth moving; the others have three or more
LONG = TRAINING | {"00", "06"}  # longer with every cell run twice
each = pytest.mark.parametrize("text", texts(), ids=lambda text: text.stem)


def code_of(text):
    return [source for kind, source, _ in read_cells(text.read_text(encoding="utf-8")) if kind == "code"]


@each
def test_every_section_with_code_asks_for_a_guess(text):
    sections = re.split(r"^## ", text.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    asks = [part for part in sections if "```python" in part and not NO_GUESS.match(part)]
    missing = [part.split("\n")[0] for part in asks if "**Guess" not in part]
    assert number(text) in ("11", "17") or missing == []


@each
def test_every_try_it_has_an_edit_of_one_cell(text):
    tries = TRIES.get(number(text), [])
    assert len(tries) == text.read_text(encoding="utf-8").count("**Try it")
    for old, new in filter(None, tries):
        (cell,) = (cell for cell in code_of(text) if old in cell)
        before, after = (set(re.findall(r"\d\d+", code)) for code in (old, cell.replace(old, new)))
        assert before & after <= set(re.findall(r"\d\d+", new)), "the cell names a number that is no longer there"


@each
def test_readers_cells_need_nothing_that_only_a_test_defines(text):
    hidden = set()
    for cell in code_of(text):
        if cell.startswith("%"):
            continue
        readers = names(shown(cell), ast.Store)
        hidden = (hidden | defined(cell)) - readers
        assert not hidden & names(shown(cell), ast.Load), cell


def defined(code):
    """The names that a cell leaves behind: not those inside its functions."""
    nodes, found = [*ast.parse(code).body], set()
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        found |= {node.id} if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else set()
        found |= {node.asname or node.name} if isinstance(node, ast.alias) else set()
        scopes = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda
        nodes += [] if isinstance(node, scopes) else ast.iter_child_nodes(node)
    return found


def names(code, context):
    """The names that a cell assigns, defines or imports, or those that it reads."""
    nodes = [*ast.walk(ast.parse(code))]
    found = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, context)}
    if context is ast.Store:
        found |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        found |= {(a.asname or a.name) for n in nodes if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names}
        found |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return found


@pytest.mark.notebooks
@pytest.mark.parametrize(
    "text", [pytest.param(t, id=t.stem, marks=[pytest.mark.release] * (number(t) in LONG)) for t in texts()]
)
def test_cells_run_twice_and_every_try_it_shows_something(text, tmp_path, monkeypatch):
    """Each cell is run with its tests, run again as its readers see it, and then with the edit of a "Try it". Each
    control is moved to both of its ends."""
    if build.missing(text):
        pytest.skip(f"needs {build.missing(text)}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("IPython.display.display", print)
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: print("a picture"))
    controls = set()
    monkeypatch.setattr("ipywidgets.interact", lambda *given, **widgets: move(controls, *given, **widgets))
    module = types.ModuleType("notebook")
    monkeypatch.setitem(sys.modules, "notebook", module)
    edits = dict(filter(None, TRIES.get(number(text), [])))
    with matplotlib.rc_context({"backend": "agg"}):
        for cell in code_of(text):
            run(cell, module)
            readers = shown(cell)
            if not trains(cell):
                run(readers, module)
            for old, new in edits.items():
                if old in readers:
                    assert run(readers.replace(old, new), module), f"nothing is shown: {new}"
                    run(readers, module)  # the notebook goes on with the original
            matplotlib.pyplot.close("all")
    assert len(controls) >= FEWER_CONTROLS.get(number(text), 3)
    assert not [path.name for path in tmp_path.iterdir() if path.name != "progress.json"]


def move(controls, function, **widgets):
    """In place of ipywidgets.interact: call the function with both ends of every control; it shows something."""
    ends = {}
    for name, widget in widgets.items():
        if isinstance(widget, ipywidgets.fixed):
            ends[name] = [widget.value]
        else:
            values = widget if isinstance(widget, tuple | list) else (widget.min, widget.max)
            ends[name] = list(values)[:2] if isinstance(widget, tuple) else [values[0], values[-1]]
            controls.add((getattr(function, "__qualname__", ""), name))
    for i in range(2):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            value = function(**{name: values[min(i, len(values) - 1)] for name, values in ends.items()})
        assert value is not None or out.getvalue(), f"{function.__qualname__} shows nothing"
        matplotlib.pyplot.close("all")


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
        exec(stub, imports(cells), names)
        functions = names[name], homework.all_exercises()[asked].reference
        given, wanted = (inspect.signature(function).parameters for function in functions)
        assert len(given) == len(wanted), (asked, [*given], [*wanted])
        optional = [[p.name for p in parameters.values() if p.default is not p.empty] for parameters in (given, wanted)]
        assert set(optional[1]) <= {*given}, (asked, optional)


def imports(cells):
    """What the first cells of a notebook import, which the default of an argument may need."""
    found = {"np": numpy}
    for node in (node for cell in cells[:2] for node in ast.parse(cell).body):
        if isinstance(node, ast.Import | ast.ImportFrom):
            exec(ast.unparse(node), found)
    return found


@each
def test_nothing_is_doubled(text):
    lines = [line.strip() for line in text.read_text(encoding="utf-8").splitlines()]
    doubled = [a for a, b in itertools.pairwise(lines) if a == b and len(a) > 10]
    assert doubled == []


SHOWN_TO_A_CHECK = {"verdict", "RUNS"}  # read by the reader, and by notebooks/experiment.py


@each
def test_hidden_tests_leave_no_names_that_nothing_reads(text):
    cells = [shown(cell) for cell in code_of(text)]
    fields = "".join(FIELD.findall(text.read_text(encoding="utf-8")))
    for i, cell in enumerate(cells):
        for node in ast.parse(cell).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                rest = "\n".join(cells[i:]).replace(ast.get_source_segment(cell, node), "", 1)
                assert name in SHOWN_TO_A_CHECK or re.search(rf"\b{name}\b", rest + fields), (name, cell)


@each
def test_a_guess_is_not_answered_before_its_cell(text):
    """Nothing in the paragraph of a guess begins like an answer."""
    for paragraph in re.split(r"\n\n", text.read_text(encoding="utf-8")):
        for after in re.findall(r"\*\*Guess\.\*\*[^?]*\?(.*)", paragraph, re.DOTALL):
            answers = r"\s*(?:It (?:can|does|is)|Yes|No|That depends|Because|The factor is)\b"
            assert not re.match(answers, after), paragraph


# What a sentence quotes, defines or asks: no field, no number of a run.
QUOTED = re.compile(
    r"<details>.*?</details>|```.*?```|`[^`]*`|\"[^\"]*\"|\]\([^)]*\)|\$\$.*?\$\$|§\s?[\d.]+|v1\.\d|Llama 3\.1",
    re.DOTALL,
)
GIVEN = {  # by a paper, by the code above, by an exercise
    "07": {"0.6", "0.4", "100 %"}, "08": {"0.5"}, "09": {"15 %", "80 %", "10 %", "3.3"}, "12": {"6 %"},
    "13": {"15 %"}, "15": {"0.02"},
}  # fmt: skip
COMPARES = re.compile(
    r"\b(?:better|worse|lower|higher|larger|smaller|nearly|almost|half|twice|faster|slower|fewer|no more than"
    r"|as well as|far (?:more|below|above|behind)|most of|mostly|best|worst)\b"
)
GENERAL = (  # sentences after a training run that say nothing of it
    "The better the query", "Without it the scores grow", "The backward pass of a block", "So a good check has sizes",
    "Real models use larger tokens", "A text then has fewer tokens", "The learning rate rises for",
    "Text with a meaning needs", "The lecture slides add", "The authors found that", "Every factor of the product",
    "The residual path counts as half", "A difference means something", "The table takes the rate",
    "Its checkpoint is smaller",
)  # fmt: skip


def said_by_author(source):
    return QUOTED.sub(" ", FIELD.sub(" FIELD ", source))


@each
def test_a_decimal_number_or_a_percentage_in_prose_is_a_value(text):
    for kind, source, _ in read_cells(text.read_text(encoding="utf-8")):
        if kind == "markdown":
            plain = re.sub(r"\$[^$]*\$", lambda found: found[0] * ("approx" in found[0]), said_by_author(source))
            found = {" ".join(value.split()) for value in re.findall(r"\d\.\d+|\d+\s%", plain)}
            assert found <= GIVEN.get(number(text), set()), source


@each
def test_a_comparison_after_a_training_run_is_a_value(text):
    ran = False
    for kind, source, tags in read_cells(text.read_text(encoding="utf-8")):
        if kind == "code":
            ran = bool({"varies", "pretrained"} & set(tags)) or re.search(r"\bresults\(|\bstored\b|\bloss\[", source)
        elif ran:
            plain = re.sub(r"\$[^$]*\$|^\|.*$|^#.*$|\*\*", "", said_by_author(source), flags=re.MULTILINE)
            for sentence in re.split(r"(?<=[.?!])\s+(?=[A-Z*{(`])|\n\n|^- ", plain, flags=re.MULTILINE):
                asks = sentence.rstrip().endswith("?") or sentence.strip().startswith(GENERAL)
                assert asks or "FIELD" in sentence or not COMPARES.search(sentence), sentence
