"""The students' notebooks for a browser, where training is seven times slower, and some packages are missing."""

import json
import re

from .texts import number, student_copy

FEWER = 10  # times fewer training steps in the notebooks of SHORTER
SHORTER = ("06", "07", "08", "09", "10", "12", "13", "15")  # they would train for minutes
WITHOUT = {  # what a notebook needs and a browser lacks
    "09": "The end of this notebook needs pretrained weights, which are not here: it prints less.",
    "16": "This notebook cannot run in a browser: it needs pretrained weights (90 MB) and the package tokenizers. Read "
    "it here, and run it on a computer with `pip install 'transformer-np[notebooks,pretrained]'`.",
    "18": "This notebook cannot run in a browser: it needs a language model of 513 MB. Read it here, and run it on a "
    "computer with the packages that it names.",
}
_STEPS = re.compile(r"\b(steps=)(\d+)\b")


def browser_copy(text):
    """The .ipynb of a text as a student gets it, with what is different in a browser in a cell after the title."""
    notebook, name = json.loads(student_copy(text)), number(text)
    remarks = [WITHOUT[name]] if name in WITHOUT else []
    if name in SHORTER and _shorten(notebook):
        remarks.append(
            f"A browser is about seven times slower, so this copy trains with {FEWER} times fewer steps. The numbers "
            "in the text are those of the full runs; change `steps=` to repeat them."
        )
    if remarks:
        cell = {"cell_type": "markdown", "id": f"{name}-browser", "metadata": {}, "source": _lines(remarks)}
        notebook["cells"].insert(0, cell)
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _lines(remarks):
    return ("> **In the browser.** " + " ".join(remarks)).splitlines(keepends=True)


def _shorten(notebook):
    """Fewer training steps in all code cells; whether there were any to shorten."""
    found = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
            source, number_of = _STEPS.subn(lambda steps: f"{steps[1]}{max(10, int(steps[2]) // FEWER)}", source)
            cell["source"], found = source.splitlines(keepends=True), found + number_of
    return found
