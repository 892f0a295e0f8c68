"""Draw the package's floors, and the paths of a token id and of a gradient through them.

    python docs/house.py figures/house.png

The floors are those that tests/test_house.py checks; the stops are those that docs/architecture.md lists.
"""

import ast
import re
import sys
from pathlib import Path

from matplotlib.patches import Circle, FancyBboxPatch

from transformer_np.plots.style import EDGE, HATCH, LABEL, SEEN, TEXT, TRAINING, VALIDATION, Picture, styled

ROOT = Path(__file__).resolve().parent.parent
SUBJECTS = {
    "support": "checks, files, processes",
    "masks": "True hides",
    "module": "Parameter, Module",
    "data": "texts, ids, batches",
    "functional": "the mathematics: every forward beside its backward",
    "layers": "parameters around the functions",
    "decoding": "greedy, beam, sampling",
    "models": "Transformer, GPT, Llama, BERT, T5, Transformer-XL, Word2Vec",
    "training": "optimizers, loop, checkpoints",
    "pretrained": "tokenizers, sentence vectors",
    "inspection": "gradients checked, steps traced",
    "tasks": "data + model + training",
    "bench": "measurements",
    "lecture": "worked examples",
    "plots": "pictures",
    "homework": "exercises and judging",
    "notebooks": "their texts",
    "grading": "submissions in isolation",
    "commands": "one file per command",
    "cli": "transformer-np …",
    "__main__": "python -m transformer_np",
}
HOUSE, HEIGHT, SPACE = 5.0, 0.42, 0.1  # inches: the house's width, a floor's height, between rooms and between floors
RADIUS, STEP = 0.085, 0.19  # of a stop, and from one stop to the next
ROOM, GRID = "#f2f2f2", "#e5e5e5"
FLOW = {"The path of a token id": TRAINING, "The path of a gradient": VALIDATION}


def floors():
    """The parts of the package, from the ground up: [(part, …), …]."""
    for node in ast.parse((ROOT / "tests" / "test_house.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "FLOORS":
            return ast.literal_eval(node.value)


def stops(heading):
    """The list under a heading of architecture.md: [(file, name), …]."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\d+\. `([\w/]+\.py)`, `([\w.]+)`", section, re.MULTILINE)


def content():
    """All that the picture says, in words; it is stored in the picture, so that an outdated one shows."""
    return ascii([floors(), {part: SUBJECTS[part] for floor in floors() for part in floor}, *map(stops, FLOW)])


@styled
def house():
    """The figure: one row per floor and one box per part; at the right the stops in order, each at its floor."""
    rows, ways = floors(), {heading: stops(heading) for heading in FLOW}
    right = EDGE + HOUSE + 3 * SPACE  # where the stops begin
    width = right + STEP * sum(map(len, ways.values())) + EDGE
    height = 2 * EDGE + len(rows) * (HEIGHT + SPACE) + LABEL
    figure = Picture(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()

    middle = {}  # part -> height of its floor's middle
    for number, row in enumerate(rows):
        room = (HOUSE - (len(row) - 1) * SPACE) / len(row)
        low = EDGE + number * (HEIGHT + SPACE)
        axes.plot([EDGE + HOUSE, width - EDGE], [low + HEIGHT / 2] * 2, color=GRID, linewidth=0.8, zorder=0)
        for place, part in enumerate(row):
            middle[part] = low + HEIGHT / 2
            corner = EDGE + place * (room + SPACE), low
            box = FancyBboxPatch(corner, room, HEIGHT, "round,pad=0,rounding_size=0.06", edgecolor=HATCH, linewidth=0.8)
            box.set_facecolor(SEEN if part == "functional" else ROOM)
            axes.add_patch(box)
            axes.text(corner[0] + 0.08, low + HEIGHT - 0.13, part, va="center", weight="bold")
            axes.text(corner[0] + 0.08, low + 0.11, SUBJECTS[part], va="center", size=TEXT - 1)

    x = right + RADIUS
    for heading, colour in FLOW.items():
        name = heading.removeprefix("The path of ")
        axes.text(x - RADIUS, height - EDGE - LABEL / 2, name, color=colour, va="center")
        points = []
        for number, (file, _) in enumerate(ways[heading], 1):
            here = x, middle[file.split("/")[0].removesuffix(".py")]
            axes.add_patch(Circle(here, RADIUS, facecolor=colour, edgecolor="none", zorder=3))
            digit = axes.text(*here, str(number), color="white", weight="bold", size=TEXT - 2, zorder=4)
            digit.set(ha="center", va="center_baseline")
            points.append(here)
            x += STEP
        axes.plot(*zip(*points, strict=True), color=colour, linewidth=1.2, zorder=2)
    return figure


if __name__ == "__main__":
    (target,) = sys.argv[1:]
    house().savefig(target, metadata={"Description": content()})
