"""`transformer-np site`: the notebooks as a static JupyterLite, and notebook 02 in it."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "homework"))

from in_a_tab import pyodide, run, served
from shared import fails

from transformer_np.cli import main
from transformer_np.commands import site
from transformer_np.notebooks import in_a_browser
from transformer_np.notebooks.texts import number, texts

TEXT = """# A title

```python
model.fit(steps=600)
training = {"steps": 1200, "warmup": 100}
for _ in range(400):
    train(steps=30, lr=0.1)
```
"""


@pytest.mark.parametrize(
    ("name", "steps", "said"),
    [
        ("07_translator", "steps=60", "In the browser"),
        ("02_self_attention", "steps=600", "A title"),
        ("18_who_wrote_paris", "steps=600", "cannot run in a browser"),
    ],
)
def test_a_copy_for_the_browser_says_what_is_different(tmp_path, name, steps, said):
    text = tmp_path / f"{name}.md"
    text.write_text(TEXT, "utf-8")
    cells = json.loads(in_a_browser.browser_copy(text))["cells"]
    code = "".join(next(cell for cell in cells if cell["cell_type"] == "code")["source"])
    assert f"fit({steps})" in code and "steps=30" in code
    assert ('{"steps": 120, "warmup": 10}' in code and "range(40)" in code) == ("07" in name)
    first = "".join(cells[0]["source"])
    assert said in first and ("rowser" in first) == ("rowser" in said)


def test_the_longest_training_run_is_shorter():
    (text,) = [text for text in texts() if number(text) == "09"]
    assert "train_classifier(seed=0, steps=120)" in in_a_browser.browser_copy(text)


def test_refusals(capsys, tmp_path):
    pytest.importorskip("jupyterlite_core", reason="the site is made with JupyterLite, which is not there")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    assert "is not an empty folder" in fails(capsys, "site", "--out", tmp_path / "full")
    assert "contains no pyodide-lock.json" in fails(capsys, "site", "--out", tmp_path / "new", "--pyodide", tmp_path)
    assert not (tmp_path / "new").exists()


ALL_RUN = """
for (;;) {
  await new Promise((go) => setTimeout(go, 300));
  const page = window.jupyterapp?.shell?.currentWidget, kernel = page?.sessionContext?.session?.kernel;
  if (kernel?.status !== "idle") continue;
  const cells = page.content.widgets.filter(({ model }) => model.type === "code").map(({ model }) => model);
  if (!window.asked) { window.asked = true; window.jupyterapp.commands.execute("notebook:run-all-cells"); }
  if (cells.every(({ executionCount }) => executionCount)) {
    return cells.flatMap(({ outputs }) => outputs.toJSON()).map((output) => output.evalue ?? output.output_type);
  }
}
"""
CHECK = """
const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
const asked = kernel.requestExecute({ code: given[0] });
let said = "";
asked.onIOPub = ({ content }) => { said += content.text ?? content.evalue ?? ""; };
await asked.done;
return said;
"""
CODE = """
from transformer_np.homework import check
def relu(x):
    return x * (x > 0)
def gelu(x):
    while True:
        x = x + 1
check("relu", relu)
check("gelu", gelu, time_limit=1)
print(open("progress.json").read())
"""


def test_the_loader_of_both_kinds_of_workers():
    for is_new, last in ((True, "export const loadPyodide"), (False, "self.loadPyodide")):
        text = site._loader("1.2.3", {"ours": {"depends": []}}, is_new).decode()
        assert "/v1.2.3/full/" in text.splitlines()[0] and text.splitlines()[-1].startswith(last)


@pytest.mark.release
def test_a_site_that_takes_python_from_elsewhere(tmp_path):
    pytest.importorskip("jupyterlite_pyodide_kernel", reason="the site is made with JupyterLite, which is not there")
    assert main(["site", "--out", str(tmp_path)]) == 0
    assert {file.stem for file in (tmp_path / "files").glob("*.ipynb")} == {text.stem for text in texts()}
    assert not list(tmp_path.rglob("*.wasm"))
    config = json.loads((tmp_path / "jupyter-lite.json").read_text("utf-8"))["jupyter-config-data"]
    assert {extension["name"] for extension in config["federated_extensions"]} == set(site.EXTENSIONS)
    assert (tmp_path / config["litePluginSettings"][site.KERNEL]["pyodideUrl"]).exists()


@pytest.mark.release
@pytest.mark.parametrize("copies", [False, True])
def test_notebook_02_and_checks_in_jupyterlite(browser, tmp_path, monkeypatch, copies):
    pytest.importorskip("jupyterlite_pyodide_kernel", reason="the site is made with JupyterLite, which is not there")
    folder, python = tmp_path / "site", pyodide()
    with served(python) as (elsewhere, _), served(tmp_path) as (address, _):
        monkeypatch.setattr("transformer_np.support.pyodide.address", lambda version: elsewhere)
        assert main(["site", "--out", str(folder), *(["--pyodide", str(python)] if copies else [])]) == 0
        assert any(file.suffix == ".wasm" for file in folder.rglob("*")) == copies
        browser.get(f"{address}site/notebooks/index.html?path=02_self_attention.ipynb")
        outputs, said = run(browser, ALL_RUN), run(browser, CHECK, CODE)
        browser.get("about:blank")
    assert outputs.count("display_data") + outputs.count("execute_result") > 8
    assert set(outputs) <= {"stream", "display_data", "execute_result"}, outputs  # no error
    assert "relu: right." in said and "gelu: crashed. It took longer than 1 s. This line was running:" in said
    assert '"outcome":"passed"' in said.replace(" ", "")
