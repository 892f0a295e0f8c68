"""The slides of a notebook: which cell begins one, what goes into the speaker notes, and how they fit the screen.

Every heading begins a slide, and so does what would not fit below it: a slide has room for some 22 lines. Of prose
without a formula, table, list or question only the first paragraph after a heading or a code cell is shown; the rest
becomes the speaker's notes. How tall an output is turns out in the browser: a slide still too tall is made smaller,
and of a long table only the beginning is shown.
"""

import re
from pathlib import Path

LINES = 22  # of a slide
_BLOCK = re.compile(r"(?:<details.*?</details>|```.*?```|(?!\n\n).)+", re.DOTALL)  # up to a blank line outside of both
_HEADING = re.compile(r"(#{1,3}) ")
_KEPT = re.compile(r"\$\$|^\||^[-*\d]+[.]? |^```|^<|\*\*(?:Guess|Try it|Exercise)", re.MULTILINE)
_PICTURE = re.compile(r"\bplt\.|\bplots\.|\binteract\(")

FIT = Path(__file__).with_suffix(".html")  # the look of all slides


def slides(cells):
    """The cells of a text, [(kind, source, tags)], cut into slides: each gets the slide type of nbconvert."""
    deck, height, prose = [], 0, 0  # deck: (cells, notes) of each slide
    for kind, source, tags in cells:
        for block in [source] if kind == "code" else blocks(source):
            heading = kind == "markdown" and _HEADING.match(block)
            if kind == "markdown" and not heading and not _KEPT.search(block):
                prose += 1
                if prose > 1:
                    deck[-1][1].append(block)
                    continue
            height += lines(kind, block)
            slide_type = "-"
            if heading or not deck or height > LINES:
                slide_type = "slide" if not deck or (heading and len(heading[1]) < 3) else "subslide"
                deck.append(([], []))
                height = lines(kind, block)
            deck[-1][0].append(_typed(kind, block, tags, slide_type))
            prose = 0 if heading or kind == "code" else prose
    made = []
    for shown, notes in deck:
        made += [*shown, *([_typed("markdown", "\n\n".join(notes), [], "notes")] if notes else [])]
    if made and made[0][0] == "markdown":
        kind, source, *rest = made[0]
        made[0] = kind, f"{source}\n\n{FIT.read_text(encoding='utf-8')}".rstrip("\n"), *rest
    return made


def _typed(kind, source, tags, slide_type):
    return kind, source, tags, {"slideshow": {"slide_type": slide_type}}


def blocks(source):
    """The headings, paragraphs, formulas, tables, lists, fences and <details> of a Markdown cell."""
    found = []
    for block in _BLOCK.findall(source):
        heading, _, rest = block.strip("\n").partition("\n")
        found += [heading, rest] if _HEADING.match(heading) and rest else [block.strip("\n")]
    return found


def lines(kind, block):
    """About how many lines of a slide a block is tall; the output of a code cell is guessed."""
    rows = block.split("\n")
    if kind == "code":
        return 0.7 * len(rows) + (10 if _PICTURE.search(block) else 3 * ("print" in block))
    if _HEADING.match(block):
        return 2
    if "```" in block or "|" in rows[0]:
        return 0.9 * len(rows)
    return len(block) / 100 + 0.7 + (2 + block.count("\\\\")) * (block.count("$$") // 2)
