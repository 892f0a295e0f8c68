"""The committed notebooks: what is in them, and a fresh execution of each (`pytest -m notebooks`)."""

import asyncio
import importlib.util
import json
import re
import time
import warnings
from functools import cache
from pathlib import Path

import pytest

from transformer_np.notebooks.texts import copy_of, results

# nbformat takes seconds to import, so the tests that use it import it: collecting them stays cheap.
MISSING = [name for name in ("nbformat", "nbclient") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.notebooks,
    pytest.mark.skipif(bool(MISSING), reason="needs the notebooks extra: " + ", ".join(MISSING)),
]

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"


def _loaded(name):
    spec = importlib.util.spec_from_file_location(f"notebooks_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)  # as for a script: it imports its neighbour
        spec.loader.exec_module(module)
    return module


build, experiment = _loaded("build"), _loaded("experiment")
TEXTS = build.sources()
each = pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.stem)


# --- the committed notebooks, cheaply -------------------------------------------------------------------------------


def test_every_notebook_has_its_text_and_a_number_of_its_own():
    assert TEXTS, "no text in notebooks/text"
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == {text.stem for text in TEXTS}
    numbers = [build.number(text) for text in TEXTS]
    assert len(set(numbers)) == len(numbers)


@each
def test_a_notebook_is_that_of_its_text(text):
    assert build.source_differences(_committed(text), build.read_text(text)) == []


BOUND = r"at (least|most)\s+{{([^{}]*)}}|{{([^{}]*)}}[\w\s%]{0,20}\bor (more|fewer)\b"


@each
def test_a_bound_of_stored_results_is_rounded_outwards(text):
    """0.998 is not "at least 1.00"."""
    for found in re.finditer(BOUND, text.read_text(encoding="utf-8")):
        side, one, other, way = found.groups()
        field, rounded = one or other, "floor" if (side or way) in ("least", "more") else "ceil"
        assert "run in stored" not in field or f"np.{rounded}(" in field, f"{field} is not rounded with np.{rounded}"


@each
def test_a_notebook_has_no_faults_and_is_written_as_build_writes(text):
    notebook = _committed(text)
    assert build.faults(notebook, build.target(text).stat().st_size) == []
    _nbformat().validate(notebook)
    tidied = build.tidy(notebook, build.number(text))
    number = build.number(text)
    assert build.written(tidied) == build.target(text).read_bytes(), f"run python notebooks/build.py {number}"


def _nbformat():
    import nbformat

    return nbformat


def _committed(text):
    path = build.target(text)
    assert path.exists(), f"run python notebooks/build.py {build.number(text)}"
    return build.read_notebook(path)


TRAINING = {"01b", "07", "08", "09", "10", "12", "13", "14", "15", "16", "18"}  # ten seconds to a minute each
EXECUTED = {"01", "02", "03", "04", "05", "11", "17"}  # with every cell in tests/test_notebooks_as_used.py
RARELY = TRAINING | EXECUTED | {"06"}
FEWER = {  # what these models say is not compared
    "00": ("steps=500, warmup=200", "steps=10, warmup=5"),
    "06": ("for seed in range(3)]", "for seed in range(1)]"),
}


@pytest.mark.parametrize(
    "text", [pytest.param(t, id=t.stem, marks=[pytest.mark.release] * (build.number(t) in RARELY)) for t in TEXTS]
)
def test_a_fresh_execution_says_the_same(text, monkeypatch):
    execute = build.execute

    def with_fewer_steps(notebook):
        for old, new in filter(None, [FEWER.get(build.number(text))]):
            [cell] = (cell for cell in notebook.cells if old in cell.source)
            cell.source = cell.source.replace(old, new)
        return execute(notebook)

    monkeypatch.setattr(build, "execute", with_fewer_steps)
    if build.missing(text):
        pytest.skip(f"needs {build.missing(text)}")
    assert build.check(text) == []


@each
def test_stored_results_are_of_the_experiment_in_the_text(text):
    if not experiment.experiment_cells(text):
        return
    number = build.number(text)
    stored = json.loads(text.with_name(f"{number}_results.json").read_text(encoding="utf-8"))
    assert stored["cells"] == experiment.fingerprint(text), f"run python notebooks/experiment.py {number} again"
    assert all(len(runs) >= 3 for runs in results(number).values())


def test_a_fingerprint_changes_with_the_experiment_only(text):
    def of(old, new):
        text.write_text(SOURCE.replace("```python\n", '```python tags=["experiment"]\n', 1).replace(old, new))
        return experiment.fingerprint(text)

    before = of("", "")
    assert of("x = 1 / 3", "x = 1 / 3  # a comment") == of("Some words", "Other words") == before
    assert of("1 / 3", "1 / 4") != before


# --- the checks themselves ------------------------------------------------------------------------------------------

SOURCE = """# 01 · A title

Some words.

```python
x = 1 / 3
x
```

```python tags=["varies"]
print("a sample")
```
"""


def _stream(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": text}


def _display(**data):
    return {"output_type": "display_data", "metadata": {}, "data": data}


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text" / "01_title.md"
    path.parent.mkdir()
    path.write_text(SOURCE, encoding="utf-8")
    return path


@pytest.fixture
def notebook(text):
    """As if executed."""
    return _executed(build.read_text(text), [_stream("0.3333\n")], [_stream("a sample\n")])


def _executed(notebook, *outputs):
    for count, (cell, given) in enumerate(zip(notebook.cells[1:], outputs, strict=True), 1):
        cell.execution_count, cell.outputs = count, [_nbformat().from_dict(output) for output in given]
    return build.tidy(notebook, "01")


def test_a_tidy_notebook(notebook, text):
    assert [cell.id for cell in notebook.cells] == ["01-001", "01-002", "01-003"]
    assert notebook.cells[2].metadata == {"tags": ["varies"]}
    assert build.faults(notebook) == []
    assert build.source_differences(notebook, build.read_text(text)) == []
    _nbformat().validate(notebook)


def test_tidying_takes_out_what_changes_from_run_to_run(text):
    cell = build.read_text(text)
    outputs = [_stream("a "), _stream("b <object at 0x7f00aabbccdd>\n"), _display(**{"image/png": "AAAA"})]
    outputs[2]["metadata"] = {"image/png": {"width": 3, "height": 2, "more": 1}, "transient": 1}
    notebook = _executed(cell, outputs, [])
    notebook.cells[1].metadata["execution"] = {"iopub.execute_input": "2026-01-01T00:00:00"}
    notebook = build.tidy(notebook, "01")
    assert notebook.cells[1].metadata == {}
    assert [output.get("text") for output in notebook.cells[1].outputs] == ["a b <object at 0x…>\n", None]
    assert notebook.cells[1].outputs[1].metadata == {"image/png": {"width": 3, "height": 2}}


LINK = "01-001: a link to {}, which a student does not have"
ERROR = {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda n: n.cells[1].outputs.append(_stream("oh", "stderr")), "01-002: stderr: oh"),
        (lambda n: n.cells[1].update(source="\n".join(["x = 1"] * 21)), "01-002: 21 lines of code, at most 20"),
        (lambda n: n.cells[1].update(source="x" * 101), "01-002: a line of 101 characters, at most 100"),
        (lambda n: n.cells[1].update(source="assert x\n" * 4), "4 assertions are shown, at most 3"),
        (lambda n: n.cells[1].update(execution_count=5), "01-002: its execution count is 5, not 1"),
        (lambda n: n.cells[1].update(source="open('/home/ana/x')"), "01-002: an absolute path in its source"),
        (lambda n: n.cells[0].update(source="in C:\\Users"), "01-001: an absolute path in its source"),
        (lambda n: n.cells[0].update(source="[a](../docs/a.md)"), LINK.format("../docs/a.md")),
        (lambda n: n.cells[0].update(source='<img src="a.png">'), LINK.format("a.png")),
        (lambda n: n.cells[1].outputs.append(_stream("/tmp/x")), "01-002: an absolute path in its output"),
        (lambda n: n.metadata.update(widgets={}), "its metadata are not those of build.py"),
        (lambda n: [c.update(outputs=[]) for c in n.cells[1:]], "no outputs"),
        (lambda n: n.cells[1].outputs.append(ERROR), "01-002: error: ValueError: no"),
    ],
)
def test_faults_are_found(notebook, change, message):
    change(notebook)
    assert build.faults(notebook) == [message]


def test_what_is_no_fault(notebook):
    notebook.cells[1].source = "# a comment\n\n" * 30 + "x = 1  # https://example.org/home/ a/tmp/b"
    links = "[web](https://example.org/a) [next](02_self_attention.ipynb)"
    notebook.cells[0].source = f"A <b>word</home>, and/or, 1/usr, {links}"
    notebook.cells[1].outputs.append(_nbformat().from_dict(_display(**{"image/png": "aa/tmp/bb", "text/plain": "x"})))
    assert build.faults(notebook) == []
    assert build.faults(notebook, 1_600_000) == ["1.60 MB, 1.5 are too many"]


def test_other_sources_are_found(notebook, text):
    text.write_text(SOURCE.replace("1 / 3", "1 / 4"), encoding="utf-8")
    assert build.source_differences(notebook, build.read_text(text)) == ["01-002: its source is not that of the text"]
    text.write_text(SOURCE.replace(' tags=["varies"]', ""), encoding="utf-8")
    assert build.source_differences(notebook, build.read_text(text)) == ["01-003: its metadata is not that of the text"]
    text.write_text(SOURCE + "\nMore.\n", encoding="utf-8")
    assert build.source_differences(notebook, build.read_text(text)) == ["3 cells, the text has 4"]


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("loss 2.0000", "loss 2.0015", True),  # 0.1 %
        ("loss 2.0000", "loss 2.0030", False),
        ("0.24", "0.25", True),  # one unit of the last decimal: rounding
        ("0.24", "0.26", False),
        ("[1.    0.5]", "[0.9999 0.5 ]", True),  # zeros that NumPy leaves out
        ("[-0. 1.]", "[0. 1.]", True),
        ("1.2e-10", "7.0e-12", True),  # both nothing
        ("1.2e-04", "3.4e-04", False),
        ("step 100", "step 101", False),  # whole numbers
        ("5123 tokens", "5124 tokens", True),
        ("−0.5 here", "-0.5 here", True),
        ("nan", "0.5", False),
        ("yes 1.0", "no 1.0", False),
        ("a\nb", "a", False),
        ("Time: 3.1 s\nsame", "  Time for 2: 9.9 s\nsame", True),
        ("in Time 3.1 s", "in Time 9.9 s", False),
        ("took 3.1 s", "took 9.9 s", False),
    ],
)
def test_how_outputs_are_compared(text, old, new, same):
    a, b = (_executed(build.read_text(text), [_stream(line)], []) for line in (old, new))
    assert (build.output_differences(a, b) == []) is same


def test_what_may_vary_and_what_may_not(text):
    def made(first, second):
        return _executed(build.read_text(text), first, second)

    picture, other = _display(**{"image/png": "AAAA"}), _display(**{"image/png": "BBBB"})
    committed = made([_stream("1"), picture], [_stream("one")])
    assert build.output_differences(committed, made([_stream("1"), other], [_stream("another")])) == []
    found = build.output_differences(committed, made([_stream("1"), other], [_stream("one")]), exact=True)
    assert found == ["01-002: another picture"]
    found = build.output_differences(committed, made([_stream("1")], []))
    assert found[0] == "01-002: its outputs were stdout, image/png, now stdout"
    assert found[1] == "01-003: its outputs were stdout, now nothing"


@pytest.mark.parametrize("installed", [True, False])
def test_what_the_pretrained_encoder_prints_is_compared_where_it_is_installed(text, monkeypatch, installed):
    text.write_text(SOURCE.replace("```python\n", '```python tags=["pretrained"]\n', 1), encoding="utf-8")
    a, b = (_executed(build.read_text(text), [_stream(line)], []) for line in ("1.0\n", "no encoder\n"))
    monkeypatch.setattr(build, "has_pretrained", lambda: installed)
    assert bool(build.output_differences(a, b)) is installed


SENTENCES = (
    SOURCE.replace("Some words.\n", "")
    + """
A third is {{ x:.2f }}, and that is {{ less if x < 0.5 }}
than a {{ "half" }}; {{ [i for i in (1, 2)
if i > 1][0] }} of them.
"""
)


def test_a_sentence_has_the_values_of_its_notebook(text):
    text.write_text(SENTENCES, encoding="utf-8")
    assert build.build(text) == [] == build.check(text)
    said = "A third is 0.33, and that is less\nthan a half; 2 of them."
    for notebook in (build.read_notebook(build.target(text)), json.loads(copy_of(text))):
        assert notebook["cells"][-1]["source"] == said and len(notebook["cells"]) == 4
    text.write_text(SENTENCES.replace("A third", "One third"), encoding="utf-8")
    assert build.retext(text) == []
    assert build.read_notebook(build.target(text)).cells[-1].source == said.replace("A third", "One third")


@pytest.mark.release
def test_a_sentence_that_is_not_true_fails_the_build(text):
    text.write_text(SENTENCES.replace("x < 0.5", "x < 0.3"), encoding="utf-8")
    assert build.build(text) == ['01-004: AssertionError: the text says "less", but this is false: x < 0.3']
    assert not build.target(text).exists()


def test_one_field_has_one_value(text):
    notebook = build.read_text(text)
    for told in ("0.33", "1.00"):
        cell = _nbformat().v4.new_code_cell("", metadata={"tags": [build.VALUES]}, id=told.replace(".", "-"))
        cell.outputs = [_nbformat().from_dict(_stream(json.dumps({"x:.2f": told})))]
        notebook.cells.append(cell)
    with pytest.raises(build.Fault, match=r"\{\{ x:\.2f \}\} is 0\.33 in one sentence, 1\.00 in another"):
        build.take_values(notebook)


def test_a_value_that_changes_is_found(text):
    text.write_text(SENTENCES, encoding="utf-8")
    build.keep_values(text, {"x:.2f": "0.36", "less if x < 0.5": "less"})
    found = {"x:.2f": "0.33", "less if x < 0.5": "less"}
    assert build.value_differences(text, found) == ["{{ x:.2f }} was '0.36', now '0.33'"]
    assert build.value_differences(text, {}) == ["01_values.json is not of this text: build it"]
    missing = ['the value of {{ "half" }} is not known: build the notebook without --text']
    build.target(text).write_bytes(build.written(build.read_text(text, values=True)))
    assert build.retext(text) == build.check(text) == missing
    text.write_text(SENTENCES.replace("```python\nx", '```python tags=["varies"]\nx'), encoding="utf-8")
    assert build.value_differences(text, found) == []  # x varies


@pytest.mark.release
def test_with_a_repository_a_notebook_installs_the_package(text, monkeypatch):
    before = build.read_text(text)
    monkeypatch.setattr(build, "repository", lambda: "https://host.example/owner/name")
    install, *others = build.read_text(text).cells
    assert install.source.endswith("%pip install --quiet git+https://host.example/owner/name")
    assert [cell.source for cell in others] == [cell.source for cell in before.cells]
    assert build.build(text) == []  # it runs where the package is there

    monkeypatch.setattr(build, "repository", lambda: "https://github.com/owner/name")
    badge, install, *_ = build.read_text(text).cells
    assert badge.source.endswith("colab.research.google.com/github/owner/name/blob/main/notebooks/01_title.ipynb)")
    assert (badge.cell_type, install.cell_type) == ("markdown", "code")


def test_of_a_long_line_only_what_is_around_the_difference_is_shown(text):
    a, b = (_executed(build.read_text(text), [_stream(f"{'x' * 500} {end}")], []) for end in ("0.1", "0.9"))
    [message] = build.output_differences(a, b)
    assert "0.1" in message and "0.9" in message and len(message) < 350


def test_a_model_is_unpacked_before_its_notebook_runs(text, monkeypatch):
    """Its first use warns, which a notebook must not print."""
    used = []
    monkeypatch.setattr(build, "located", lambda name: (used.append(name), warnings.warn("unpacked", stacklevel=2)))
    for package, absent in (("json", []), ("no_such_model", ["no_such_model"])):
        text.write_text(f'```python\nfind_spec("{package}") is None\n```\n', encoding="utf-8")
        assert build.missing(text) == absent
    assert used == ["json"]


def test_which_notebooks(text):
    folder = text.parent.parent
    assert build.sources(folder=folder) == [text]
    for name in ("1", "01", "01_title", "notebooks/text/01_title.md"):
        assert build.sources([name], folder) == [text]
    with pytest.raises(LookupError, match=r"no text/07_\*\.md"):
        build.sources(["7"], folder)


def test_building_and_checking(text, capsys, monkeypatch):
    """Assertions are executed and not shown."""
    monkeypatch.setattr(build, "sources", lambda only=(): [text])
    monkeypatch.setattr(build, "executed", cache(build.executed))  # each code once
    path, tested = build.target(text), SOURCE.replace("x = 1 / 3", "x = 1 / 3\nassert 3 * x == 1\n1 + 1  # test")
    tested = tested.replace("\nx\n", "\nassert x\nx\n") + "\n```python\nassert x < 1\n```\n\n```python\nx > 0\n```\n"
    text.write_text(tested, encoding="utf-8")
    assert build.main(["--check"]) == 1 and "no 01_title.ipynb" in capsys.readouterr().err
    assert build.main([]) == 0
    assert path.exists() and "01_title.ipynb" in capsys.readouterr().err
    written = path.stat().st_mtime_ns
    assert build.main([]) == 0 and path.stat().st_mtime_ns == written  # nothing changed, nothing written
    notebook = build.read_notebook(path)
    assert [cell.source for cell in notebook.cells[1:]] == ["x = 1 / 3\nx", 'print("a sample")', "x > 0"]
    assert [cell.execution_count for cell in notebook.cells[1:]] == [1, 2, 3]
    assert build.source_differences(notebook, build.read_text(text)) == []

    path.write_text(path.read_text().replace("0.3333", "0.4333"))
    assert build.main(["--check"]) == 1 and "01-002: '0.4333" in capsys.readouterr().err
    text.write_text(tested.replace("== 1", "== 2"), encoding="utf-8")
    build.executed.cache_clear()
    assert build.main([]) == 1 and "01-002: AssertionError" in capsys.readouterr().err
    assert sorted(p.name for p in path.parent.iterdir()) == ["01_title.ipynb", "text"]


@pytest.mark.release
def test_a_notebook_whose_kernel_is_not_heard_is_tried_again(text, monkeypatch, tmp_path):
    monkeypatch.setattr(build, "SECONDS", 5)
    monkeypatch.setenv("FIRST", str(tmp_path / "first"))
    waits = 'import os, time\nif not os.path.exists(first := os.environ["FIRST"]):\n'
    waits += '    open(first, "w").close()\n    time.sleep(60)\nx = 1 / 3'
    text.write_text(SOURCE.replace("x = 1 / 3", waits), encoding="utf-8")
    assert build.build(text) == [] and (tmp_path / "first").exists()


@pytest.mark.release
def test_a_message_that_pyzmq_overlooks(text, monkeypatch):
    """The reply comes while nobody reads, and a look past asyncio's socket takes its sign away, as a send does."""
    import zmq

    looking, waited = build._looking_client, []

    class Overlooking(looking()):
        async def async_execute_cell(self, *args, **options):
            loop = asyncio.get_running_loop()
            loop.call_later(0.2, self.overlook)
            ends = loop.call_later(20, self.end)
            try:
                return await super().async_execute_cell(*args, **options)
            finally:
                ends.cancel()

        def overlook(self):
            time.sleep(1)
            zmq.Socket.shadow(self.kc.shell_channel.socket.underlying).get(zmq.EVENTS)

        def end(self):
            waited.append(self.kc.shell_channel.socket.get(zmq.EVENTS))

    monkeypatch.setattr(build, "_looking_client", lambda: Overlooking)
    monkeypatch.setattr(build, "LOOK_SECONDS", 0.2)
    text.write_text(SOURCE.replace("x = 1 / 3", "import time\ntime.sleep(0.5)\nx = 1 / 3"), encoding="utf-8")
    notebook = build.execute(build.read_text(text), again=False)
    assert not waited and notebook.cells[1].outputs[0].data["text/plain"] == "0.3333333333333333"


@pytest.mark.release
def test_a_notebook_that_takes_too_long(text, monkeypatch):
    monkeypatch.setattr(build, "SECONDS", 1)
    text.write_text(SOURCE.replace("x = 1 / 3", "import time; time.sleep(20)"), encoding="utf-8")
    assert build.build(text) == ["01-002: the notebook has taken more than 1 s"]
    assert not build.target(text).exists()


def test_a_slider_is_left_out_and_the_output_of_a_large_cell(text):
    text.write_text(SOURCE, encoding="utf-8")
    notebook = build.read_text(text)
    slider = {"application/vnd.jupyter.widget-view+json": {"model_id": "5"}, "text/plain": "interactive(…)"}
    cell = next(cell for cell in notebook.cells if cell.cell_type == "code")
    cell.outputs = [_display(**data) for data in (slider, {"text/plain": "0.5"})]
    tidied = next(cell for cell in build.tidy(notebook, "01").cells if cell.cell_type == "code")
    assert [output["data"] for output in tidied.outputs] == [{"text/plain": "0.5"}]
    text.write_text(SOURCE.replace("varies", "large"), encoding="utf-8")
    notebook = _executed(build.read_text(text), [_stream("0.3333\n")], [_stream("a sample\n")])
    assert [len(cell.outputs) for cell in notebook.cells[1:]] == [1, 0]
    assert build.faults(notebook) == []
