"""Run the long experiment of a notebook and store its results, which the notebook then shows.

    python notebooks/experiment.py 15            what is missing of three seeds; --seeds 5 for five

The experiment is the notebook's own code: its cells with the tag `experiment`, which define RUNS (names) and
`run(name, seed)` (a dict of numbers and lists of numbers). The results are text/NN_results.json, which the package
contains: `transformer_np.notebooks.texts.results("15")`. A run that is in the file already is not repeated; delete the
file after a change of those cells. It holds their fingerprint, and the tests compare it.
"""

import argparse
import hashlib
import json
import platform
import re
import sys
from pathlib import Path

from transformer_np.notebooks.texts import number, read_cells

TEXTS = Path(__file__).resolve().parent / "text"
EXPERIMENT = "experiment"


def experiment_cells(text):
    """The code cells of a text that define its long experiment."""
    cells = read_cells(text.read_text(encoding="utf-8"))
    return [source for kind, source, tags in cells if kind == "code" and EXPERIMENT in tags]


def fingerprint(text):
    """Of the cells of the long experiment, without comments, docstrings and line breaks: changes when the experiment
    does."""
    code = re.sub(r'""".*?"""', "", "\n".join(experiment_cells(text)), flags=re.DOTALL)
    words = "".join("".join(line.split("  #")[0] for line in code.splitlines()).split())
    return hashlib.sha256(re.sub(r",([)\]}])", r"\1", words).encode()).hexdigest()[:16]


def rounded(value):
    """Four decimals are far below the spread of the seeds."""
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    return [round(float(x), 4) for x in value] if hasattr(value, "__len__") else round(float(value), 4)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Run the long experiment of a notebook.")
    parser.add_argument("notebook", help="its number, such as 15")
    parser.add_argument("--seeds", type=int, default=3, help="how many runs of each kind (3)")
    options = parser.parse_args(arguments)
    [text] = TEXTS.glob(f"{options.notebook}_*.md")
    path, cells = text.with_name(f"{number(text)}_results.json"), experiment_cells(text)
    if not cells:
        parser.error(f"{text.name} has no cell with the tag {EXPERIMENT}")
    names = {}
    exec("\n".join(cells), names)
    about = {"cells": fingerprint(text), "python": platform.python_version()}
    stored = json.loads(path.read_text()) if path.exists() else about | {"runs": {}}
    if stored["cells"] != about["cells"]:
        parser.error(f"{path.name} is of other cells: delete it")
    for seed in range(options.seeds):
        for name in names["RUNS"]:
            done = stored["runs"].setdefault(name, [])
            if len(done) == seed:
                done.append(rounded(names["run"](name, seed)))
                path.write_text(json.dumps(stored, ensure_ascii=False) + "\n", encoding="utf-8")
                print(f"{name}, seed {seed}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
