"""Paths through the notebooks for a course: sections in the order of the lecture, and the minutes that they take.

A path is a folder with one notebook for each group of sections. Sections that a path leaves out may define what a later
one uses; those cells stay where they are, under a heading of their own.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from .texts import number, texts

SESSION_MINUTES = 90
EXERCISE_MINUTES = {1: 5, 2: 8, 3: 12}  # by the difficulty of the function to write
TRY_MINUTES = 2

# (notebook, the beginnings of its sections), in the order of the lecture notes: attention (§4) before positions (§6).
LECTURE = (
    ("00", ("Why not", "The whole")),
    ("02", ("The idea", "Step 1", "Step 2", "Step 3", "Step 4", "Step 5", "Why √d_k")),
    ("03", ("1 ·", "4 ·")),
    ("01", ("3 ·", "4 ·")),
    ("04", ("1 ·", "5 ·")),
    ("05", ("1 ·", "6 ·")),
    ("07", ("Shifted", "Teacher", "Decoding", "Cross-attention")),
)
ALL = ("",)
LAB = (
    (("02", ("The idea", "Step", "Self-", '"Thinking', "Why", "Is attention", "Exercises", "What")), ("03", ALL)),
    (("01", ALL), ("04", ("1 ·", "2 ·", "3 ·", "5 ·", "6 ·", "8 ·", "Exercise"))),
    (("05", ALL), ("07", ("Shifted", "Teacher", "The loss", "Training", "Does it", "Decoding", "Exercise 1"))),
    (("06", ("1 ·", "2 ·", "3 ·", "4 ·", "5 ·", "6 ·", "8 ·", "Exercises")),),
)
PATHS = {"lecture": (LECTURE,), "lab": LAB}

LEFT_OUT = "### From a section left out\n\nRun this: the sections below use it."

_SYMBOL = re.compile(r"\\?[A-Za-z]+|\d+|[=+/^_-]")
_SECTION = re.compile(r"^(?=## )", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\(\w+\.ipynb\)")
_TRAINS = re.compile(r"\b(\w+)\.(?:fit|train|backward|step)\(")
_CHECK = re.compile(r"\bcheck\(\s*\"(\w+)\"")


def reading_minutes(cells):
    """The minutes to read and run cells: 150 words or symbols of formulas, or 10 lines of code a minute, and one for
    each guess."""
    prose = _prose(cells)
    plain = re.sub(r"\$\$.*?\$\$|```.*?```|<details>.*?</details>", "", prose, flags=re.DOTALL)
    words = len(re.findall(r"[A-Za-z]{2,}", plain))
    symbols = sum(len(_SYMBOL.findall(formula)) for formula in re.findall(r"\$\$.*?\$\$", prose, re.DOTALL))
    code = [line.strip() for kind, source, *_ in cells if kind == "code" for line in source.splitlines()]
    lines = sum(1 for line in code if line and not line.startswith("#"))
    return (words + symbols) / 150 + lines / 10 + prose.count("**Guess")


def exercise_minutes(cells, exercises):
    """The minutes for the exercises of cells: 5, 8 or 12 by difficulty, 5 without one, and 2 for each "Try it".

    exercises: of the homework, {name: Exercise}
    """
    prose = _prose(cells)
    names = {name for kind, source, *_ in cells if kind == "code" for name in _CHECK.findall(source)}
    asked = [EXERCISE_MINUTES[exercises[name].difficulty] for name in names & exercises.keys()]
    headings = len(re.findall(r"^## Exercise(?!s)", prose, re.MULTILINE))
    bold = len(re.findall(r"\*\*Exercise[ .:]|\*\*(?:Write|Count|Compute) it", prose))
    other = max(headings, bold) - len(asked)
    return sum(asked) + max(0, other) * EXERCISE_MINUTES[1] + prose.count("**Try it") * TRY_MINUTES


def minutes(cells, exercises):
    """(reading, exercises), both to five minutes."""
    return tuple(5 * round(x / 5) for x in (reading_minutes(cells), exercise_minutes(cells, exercises)))


def stated_minutes(cells):
    """What a notebook says of itself, "*30 minutes, and 15 for the exercises"; None if it says nothing."""
    found = re.search(r"^\*(\d+) minutes(?:, and (\d+) for the exercises)?", _prose(cells), re.MULTILINE)
    return found and (int(found[1]), int(found[2] or 0))


def _prose(cells):
    return "\n".join(source for kind, source, *_ in cells if kind == "markdown")


def sections(cells):
    """[(heading, cells)] of a notebook; the first has what comes before the first heading of level 2."""
    found = [("", [])]
    for kind, source, tags in cells:
        for part in [source] if kind == "code" else _SECTION.split(source):
            if kind != "code" and part.startswith("## "):
                found.append((part[3:].partition("\n")[0], []))
            if part.strip():
                found[-1][1].append((kind, part.strip("\n"), tags))
    return found


def chosen(cells, beginnings):
    """[(heading, first, cells)] of the sections whose heading has one of these beginnings.

    first: the code cells between it and the section chosen before that this or a later section needs

    Raises LookupError for a beginning that no heading has.
    """
    parts, kept, left_out = sections(cells), [], []
    for beginning in beginnings:
        if not any(heading.startswith(beginning) for heading, _ in parts):
            raise LookupError(f"no section begins with {beginning!r}")
    for heading, inside in parts:
        if heading and heading.startswith(tuple(beginnings)):
            kept.append((heading, left_out, inside))
            left_out = []
        else:
            left_out += [cell for cell in inside if cell[0] == "code"]
    needed = _loads(cell for _, _, inside in kept for cell in inside)
    made = []
    for heading, left_out, inside in reversed(kept):
        first = []
        for cell in reversed(left_out):
            if (_stores([cell]) | set(_TRAINS.findall(cell[1]))) & needed:
                first.insert(0, cell)
                needed |= _loads([cell])
        made.insert(0, (heading, first, inside))
    return made


def _loads(cells):
    return {node.id for node in _nodes(cells) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _stores(cells):
    found = set()
    for node in _nodes(cells):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
    return found


def _nodes(cells):
    return (node for kind, source, *_ in cells if kind == "code" for node in ast.walk(ast.parse(source)))


@dataclass(frozen=True)
class Part:
    """A notebook of a path. times: [(heading, whole minutes)] of its sections"""

    session: int
    file: str
    text: Path
    cells: list
    times: list

    @property
    def minutes(self):
        return sum(spent for _, spent in self.times)


def path_notebooks(name, cells_of, exercises):
    """The parts of a path; the minutes of the exercises count in the lab only.

    cells_of: a function of a text file that gives its cells as a reader sees them
    exercises: of the homework, {name: Exercise}
    """
    made, sessions, files = [], PATHS[name], {number(text): text for text in texts()}
    for session, groups in enumerate(sessions, 1):
        for place, (notebook, beginnings) in enumerate(groups, 1):
            text = files[notebook]
            cells = cells_of(text)
            kept = chosen(cells, beginnings)
            times = [
                (heading, reading_minutes(inside) + exercise_minutes(inside, exercises) * (name == "lab"))
                for heading, _, inside in kept
            ]
            times = [(heading, max(1, round(spent))) for heading, spent in times]
            prefix, where = f"{place}", f"Part {place} of {len(groups)}"
            if len(sessions) > 1:
                prefix, where = f"{session}_{place}", f"Session {session} of {len(sessions)}, part {place}"
            title = next(source for kind, source, _ in cells if kind == "markdown").partition("\n")[0]
            listed = "\n".join(f"- {heading}: {spent} min" for heading, spent in times)
            minutes = sum(spent for _, spent in times)
            body = [("markdown", f"{title}\n\n*{where} · {minutes} minutes*\n\n{listed}", [])]
            for _, first, inside in kept:
                body += [("markdown", LEFT_OUT, []), *first] if first else []
                body += [(kind, _LINK.sub(r"\1", source), tags) for kind, source, tags in inside]
            made.append(Part(session, f"{prefix}_{text.stem}.ipynb", text, body, times))
    return made
