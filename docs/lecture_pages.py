"""Make docs/errata.md and docs/lecture-coverage.md from transformer_np/lecture/statements.toml, and docs/paths.md from
the notebooks.

python docs/lecture_pages.py            writes all
python docs/lecture_pages.py --check    says whether they are current
"""

import sys
from collections import Counter
from pathlib import Path

from transformer_np.homework import all_exercises
from transformer_np.lecture import (
    ANSWERED,
    DOCUMENTS,
    ERRATUM,
    FITTED,
    REPRODUCED,
    TRUNCATED,
    worked_examples,
)
from transformer_np.lecture.comparison import SLIP
from transformer_np.lecture.statements import read_statements
from transformer_np.notebooks.paths import PATHS, exercise_minutes, path_notebooks, reading_minutes
from transformer_np.notebooks.texts import number, students_cells, texts

DOCS = Path(__file__).resolve().parent
MADE = "<!-- Made by docs/lecture_pages.py from transformer_np/lecture/statements.toml. -->\n\n"

ERRATA = """# Errata of the lecture

The package recomputes every worked number that the lecture documents print. Of {rows} worked examples, {reproduced} are
reproduced to the last printed digit, and {truncated} were cut off in print instead of rounded. {fitted} print results
without their weights: weights that give them are fitted, which proves only that there are some. {answered} are
exercises without a printed answer, which the package answers. {errata} do not follow from what is printed before them.
{slips} statements in words are slips. The package shows all of them with the printed and the true value; no number of
the documents is hidden or copied.

```sh
transformer-np lecture --no-train
```

This command computes and prints all of them. The row numbers below are those of its table.
[The coverage](lecture-coverage.md) lists every statement of the documents with its check.

## What does not follow

| row | where | printed | true | why |
|---|---|---|---|---|
{table_errata}

## Slips in words

| where | said | true | why |
|---|---|---|---|
{table_slips}

## Cut off in print

| row | where | printed | true | remark |
|---|---|---|---|---|
{table_truncated}

## What holds, with a remark

- The printed softmax rows of §4 (row 3) are rounded, so rows 1 to 3 add up to 0.9999, 1.0001 and 1.0001.
- The three heads of §5 are printed without their weight matrices. X_e has rank 3, so W_i = pinv(X_e) Q_i gives every
  printed Q_i, K_i and V_i exactly (row 6), as it would for any 3 × 3 numbers. The feed-forward network of §7 is fitted
  in the same way (row 13); its ReLU step is printed, and holds.
- A mask of −∞ and a mask of −1e8 (row 16) give the same weights, unless a whole row is hidden: then −∞ alone gives NaN
  and −1e8 uniform weights. Here such a row gets the weights 0, the output 0 and the gradient 0.

Notebooks [01](../notebooks/01_embeddings_and_positions.ipynb), [02](../notebooks/02_self_attention.ipynb),
[03](../notebooks/03_multi_head_attention.ipynb), [04](../notebooks/04_feed_forward_and_norm.ipynb) and
[11](../notebooks/11_exercises.ipynb) show the errata where they occur.
"""

COVERAGE = """# The lecture, statement by statement

Every statement of the five documents with its verdict, the check that decides it, and the notebook that explains it.
{counts}.
A check is a row of `transformer-np lecture --no-train`, whose verdict comes from the numbers, or a function of
`transformer_np/lecture/claims.py`.

{documents}
## A document of your own

Write your statements in the same form, with checks of your own, and let the package run them:

```toml
[[statement]]
document = "my slides"
place = "page 3"
says = "the softmax of equal scores is uniform"
check = "my_checks:uniform"    # the function `uniform` of my_checks.py returns True or False
```

```sh
transformer-np lecture --no-train --statements my_slides.toml
```
"""


PATHS_PAGE = """# Paths for a course

The notebooks take {whole} minutes to read and run, and {exercises} for the exercises. Two paths take less:

```sh
transformer-np start work/lecture --path lecture             # one lecture of 90 minutes
transformer-np start work/lab --path lab                     # four lab sessions of 90 minutes, with the exercises
transformer-np start work/slides --path lecture --teacher    # the same with solutions, cut into slides
```

Each makes a folder with these sections, in the order of the lecture notes: attention (§4) before positions (§6). Cells
of other sections that they need are in them, too. A minute is 150 words or symbols of a
formula, 10 lines of code or one guess; an exercise takes 5, 8 or 12 minutes by its difficulty.

## One lecture

Read aloud at 130 words a minute, with the formulas and the names in the code, a minute for each guess and the time that
the cells run, these sections take 86 minutes (2026-11-28).

{lecture}

## Four lab sessions

{lab}

## Slides

In a teacher's folder every heading begins a slide, prose beyond the first paragraph is in the speaker notes (key S),
and what is taller than the screen is made smaller; a long table is cut off. The command that `start --teacher` prints
writes a page that loads reveal.js and MathJax from the network.
"""


def row(*cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def where(statement):
    return f"{statement.document}{' ' if statement.place[0] == '§' else ', '}{statement.place}"


def errata(statements):
    rows = {kind: [s for s in statements if s.verdict == kind] for kind in (ERRATUM, TRUNCATED, SLIP)}
    tables = {
        kind: "\n".join(row(s.row, where(s), s.says, s.true, s.why) for s in sorted_by_row(rows[kind]))
        for kind in (ERRATUM, TRUNCATED)
    }
    counts = Counter(example.verdict for example in worked_examples())
    return ERRATA.format(
        rows=counts.total(),
        reproduced=counts[REPRODUCED],
        fitted=counts[FITTED],
        answered=counts[ANSWERED],
        truncated=counts[TRUNCATED],
        errata=counts[ERRATUM],
        slips=len(rows[SLIP]),
        table_errata=tables[ERRATUM],
        table_truncated=tables[TRUNCATED],
        table_slips="\n".join(row(where(s), s.says, s.true, s.why) for s in rows[SLIP]),
    )


def sorted_by_row(statements):
    return sorted(statements, key=lambda s: s.row)


def coverage(statements):
    counts = Counter(s.verdict for s in statements)
    parts = []
    for document, what in DOCUMENTS.items():
        lines = [
            row(s.place, s.says, s.verdict, f"row {s.row}" if s.row else f"`{s.check}`", s.notebook)
            for s in statements
            if s.document == document
        ]
        head = "| where | statement | verdict | check | notebook |\n|---|---|---|---|---|\n"
        parts.append(f"## The {document}\n\n{what[0].upper()}{what[1:]}.\n\n{head}" + "\n".join(lines) + "\n")
    shown = ", ".join(f"{verdict} {count}" for verdict, count in counts.most_common())
    return COVERAGE.format(counts=f"There are {len(statements)}: {shown}", documents="\n".join(parts))


def paths():
    tables = {}
    for name in PATHS:
        lines = ["| session | notebook | sections | minutes |", "|---|---|---|---|"]
        for part in path_notebooks(name, students_cells, all_exercises()):
            sections = "; ".join(heading for heading, _ in part.times)
            lines.append(row(part.session, number(part.text), sections, part.minutes))
        tables[name] = "\n".join(lines)
    whole = [students_cells(text) for text in texts()]
    exercises = round(sum(exercise_minutes(cells, all_exercises()) for cells in whole))
    return PATHS_PAGE.format(whole=round(sum(map(reading_minutes, whole))), exercises=exercises, **tables)


def main(arguments):
    statements = read_statements()
    pages = {"errata.md": errata(statements), "lecture-coverage.md": coverage(statements), "paths.md": paths()}
    old = [name for name, text in pages.items() if (DOCS / name).read_text(encoding="utf-8") != MADE + text]
    if "--check" in arguments:
        print(f"not current: {', '.join(old)}" if old else "current")
        return 1 if old else 0
    for name in old:
        (DOCS / name).write_text(MADE + pages[name], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
