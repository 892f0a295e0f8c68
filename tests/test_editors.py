"""What an editor knows about the package: types, completions and docstrings, for the code of the documentation."""

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import transformer_np
from transformer_np import functional as F

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/homework.md", "docs/looking-inside.md", "docs/pretrained.md")
FIRST = "import transformer_np\nfrom transformer_np import Transformer, TransformerConfig, functional as F, models\n"


def test_the_stub_has_every_name_with_its_home():
    package = Path(transformer_np.__file__).parent
    stub = ast.parse((package / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    found = {name.asname: node.module for node in imports for name in node.names if name.name == name.asname}
    assert found == dict.fromkeys(transformer_np._MODULES) | transformer_np._HOMES
    assert (package / "py.typed").exists()


# --- Jedi: Jupyter, IPython, many editors ----------------------------------------------------------------------------


def script(code):
    return pytest.importorskip("jedi").Script(FIRST + code, path=ROOT / "example.py")


MODEL = "model = Transformer(TransformerConfig(src_vocab_size=5, tgt_vocab_size=5))\n"


COMPLETED = {  # what is typed, and names that are offered
    "transformer_np.": transformer_np.__all__, "F.": F.__all__, "models.": ["Transformer", "GPT", "Bert"],
    f"{MODEL}model.": ["encoder", "decoder", "parameters", "backward", "eval", "state_dict"],
}  # fmt: skip
SIGNATURES = {
    "F.softmax(": "softmax(x, axis=-1)", "F.linear(": "linear(x, w, b=None)",
    "Transformer(": "Transformer(config: TransformerConfig)",
}  # fmt: skip


@pytest.mark.long
def test_completions_signatures_and_docstrings():
    for code, public in COMPLETED.items():
        assert set(public) <= {completion.name for completion in script(code).complete()}, code
    for code, signature in SIGNATURES.items():
        assert [found.to_string() for found in script(code).get_signatures()] == [signature]
    for code, documented in (("F.softmax", F.softmax), ("Transformer", transformer_np.Transformer)):
        (found,) = script(code).help(FIRST.count("\n") + 1, len(code))
        assert documented.__doc__.splitlines()[0] in found.docstring(), code


# --- pyright: Pylance in VS Code -------------------------------------------------------------------------------------


def pyright(folder, **files):
    """What pyright says about these files: [(file, severity, message)]."""
    program = shutil.which("pyright", path=str(Path(sys.executable).parent)) or shutil.which("pyright")
    if program is None:
        pytest.skip("needs pyright")
    for name, code in files.items():
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    settings = {"extraPaths": [str(ROOT)], "reportPossiblyUnboundVariable": False, "reportMissingImports": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [program, "--outputjson", "--pythonpath", sys.executable, "--project", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright does not start: {done.stdout}{done.stderr}")
    said = json.loads(done.stdout)
    assert said["summary"]["filesAnalyzed"] == len(files)
    return [(Path(one["file"]).stem, one["severity"], one["message"]) for one in said["generalDiagnostics"]]


TYPES = {
    "F.softmax": "axis: int = -1", "F.cross_entropy([1.0], [0])": "tuple[float", "model": "Transformer",
    "model.encoder[0]": "EncoderBlock",
    "model.eval()": "Transformer", "model.parameters()": "list[Parameter]",
    "transformer_np.Adam(model.parameters())": "Adam", "transformer_np.plots.attention": "Picture",
}  # fmt: skip
WRONG = {  # what an editor should underline
    'F.softmax([1.0], axis="rows")': '"axis"', "F.sofmax([1.0])": '"sofmax"', "model.load_state_dict(3)": '"state"',
    "TransformerConfig(src_vocab_size=5)": '"tgt_vocab_size"',
}  # fmt: skip


@pytest.mark.release
def test_pyright_has_no_false_errors_and_knows_the_types(tmp_path):
    code = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
    blocks = {Path(page).stem.replace("-", "_"): code.findall((ROOT / page).read_text("utf-8")) for page in PAGES}
    assert all(blocks.values())
    files = {name: "import numpy as np\n" + "\n".join(codes) for name, codes in blocks.items()}
    files["types"] = FIRST + MODEL + "".join(f"reveal_type({code})\n" for code in TYPES)
    files["wrong"] = FIRST + MODEL + "\n".join(WRONG)
    found = pyright(tmp_path, **files)
    assert [one for one in found if one[1] == "error" and one[0] != "wrong"] == []
    revealed = [message for file, _, message in found if file == "types"]
    for (code, expected), message in zip(TYPES.items(), revealed, strict=True):
        assert expected in message.split(" is ")[1], code
    underlined = [message for file, severity, message in found if file == "wrong" and severity == "error"]
    for expected, message in zip(WRONG.values(), underlined, strict=True):
        assert expected in message
