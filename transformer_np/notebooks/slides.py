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
    made, slide, notes, height, prose = [], [], [], 0, 0

    def end():
        nonlocal height
        made.extend(slide)
        if notes:
            made.append(_typed("markdown", "\n\n".join(notes), [], "notes"))
        slide.clear(), notes.clear()
        height = 0

    for kind, source, tags in cells:
        for block in [source] if kind == "code" else blocks(source):
            heading = kind == "markdown" and _HEADING.match(block)
            needed = lines(kind, block)
            if kind == "markdown" and not heading and not _KEPT.search(block):
                prose += 1
                if prose > 1:
                    notes.append(block)
                    continue
            if heading or height + needed > LINES:
                end()
            begins = "slide" if heading and len(heading[1]) < 3 else "subslide"
            slide.append(_typed(kind, block, tags, "-" if slide else begins if made else "slide"))
            height += needed
            prose = 0 if heading or kind == "code" else prose
    end()
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
