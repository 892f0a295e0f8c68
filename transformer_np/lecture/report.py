"""Worked examples and exercises as plain text for a terminal."""

from collections import Counter
from itertools import zip_longest
from textwrap import wrap

import numpy as np

from ..support.counts import counted
from ..support.table import aligned
from .comparison import ANSWERED, ERRATUM, FITTED, REPRODUCED, SLIP, TRUNCATED, differences

_GAP = "  "
_NARROWEST = 72


def summary(examples):
    """One line with the number of worked examples, the number of each verdict, and whether all are as expected."""
    counts = Counter(example.verdict for example in examples)
    errata = "erratum" if counts[ERRATUM] == 1 else "errata"
    rare = (FITTED, "with fitted weights"), (ANSWERED, "exercises without a printed answer")
    unexpected = ", ".join(str(example.row) for example in examples if not example.ok)
    return (
        f"{counted(len(examples), 'worked example')}: {counts[REPRODUCED]} reproduced, "
        + "".join(f"{counts[kind]} {what}, " for kind, what in rare if counts[kind])
        + f"{counts[TRUNCATED]} truncated in print, {counts[ERRATUM]} {errata}; "
        + (f"NOT as expected: {unexpected}" if unexpected else "all as expected")
    )


def format_examples(examples, width=110):
    """All worked examples as an aligned table, then each that was not reproduced, with printed and true numbers and the
    reason. No line is longer than `width`, which must be at least 72."""
    _check_width(width)
    lines = [*_table(examples, width), "", *wrap(summary(examples), width)]
    for title, kind in (("Errata", ERRATUM), ("Truncated in print", TRUNCATED)):
        found = [example for example in examples if example.verdict == kind]
        if found:
            lines += ["", title, "─" * len(title)]
        for example in found:
            lines += [*_explained(example, width), ""]
        lines = lines[:-1] if found else lines
    unexpected = [example for example in examples if not example.ok]
    if unexpected:
        lines += ["", "Not as expected", "─" * 15]
    for example in unexpected:
        lines += _labelled(f"{example.row:>3}", "; ".join(example.failed), width)
    return "\n".join(lines)


def format_exercises(exercises, width=110):
    """The exercises with their options, the computed value and the answer. The right options have an arrow."""
    _check_width(width)
    lines = []
    for exercise in exercises:
        answer = ", ".join(f"({letter})" for letter in exercise.letters) or "none of the options"
        lines += _labelled(f"{exercise.number}", exercise.question, width)
        for letter, value in exercise.options.items():
            arrow = "→" if letter in exercise.letters else " "
            lines += _labelled(f" {arrow} ({letter})", _inline(value, exercise.digits), width)
        lines += _labelled("   computed", _inline(exercise.computed, exercise.digits, more=2), width)
        lines += _labelled("   answer  ", answer, width)
        lines += [*_labelled("   why     ", exercise.explanation, width), ""]
    return "\n".join(lines[:-1])


def format_statements(statements, width=110):
    """How many statements of each document hold, then every slip with the truth and the reason, then what failed."""
    _check_width(width)
    lines = []
    for document in dict.fromkeys(statement.document for statement in statements):
        counts = Counter(statement.verdict for statement in statements if statement.document == document)
        shown = ", ".join(f"{verdict} {count}" for verdict, count in counts.most_common())
        lines += _labelled(f"{document}:", f"of {counts.total()}: {shown}", width)
    for statement in statements:
        if statement.verdict == SLIP:
            lines += ["", *_labelled("slip", f"{statement.document}, {statement.place}: {statement.says}", width)]
            lines += _labelled("     true", statement.true, width)
            lines += _labelled("     why ", statement.why, width) if statement.why else []
    for statement in statements:
        if not statement.holds():
            where = f"{statement.document}, {statement.place}: {statement.says}"
            lines += ["", *_labelled("NOT as stated", f"{where} ({statement.check or f'row {statement.row}'})", width)]
    return "\n".join(lines)


def _check_width(width):
    if width < _NARROWEST:
        raise ValueError(f"width must be at least {_NARROWEST} columns, got {width}")


def _table(examples, width):
    header = ("row", "where", "what", "digits", "largest diff.", "verdict")
    rows = [
        (str(one.row), one.where, one.title, "exact" if one.digits is None else str(one.digits),
         f"{np.round(one.difference, 12):.2g}",  # what is below depends on the processor
         one.verdict + ("" if one.ok else " !"))
        for one in examples
    ]  # fmt: skip
    widths = [max(len(cells[i]) for cells in (header, *rows)) for i in range(len(header))]
    left = width - sum(widths) + widths[1] + widths[2] - len(_GAP) * (len(header) - 1)  # for `where` and `what`
    if widths[1] + widths[2] > left:
        widths[1] = left * widths[1] // (widths[1] + widths[2])
        widths[2] = left - widths[1]
    rule = ["─" * column for column in widths]
    lines = [*_wrapped(header, widths), rule, *(line for cells in rows for line in _wrapped(cells, widths))]
    return aligned(lines, "><<>><", _GAP)


def _wrapped(cells, widths):
    """The cells of one row line by line: `where` and `what` are wrapped to their column."""
    row, where, what, *others = cells
    columns = [[row], wrap(where, widths[1]), wrap(what, widths[2]), *([cell] for cell in others)]
    return zip_longest(*columns, fillvalue="")


def _explained(example, width):
    """The lines "printed", "true" and "why"; of an array, the row with the largest difference."""
    place, row = _worst_row(differences(example.printed, example.computed))
    shown, true = np.atleast_1d(example.printed[row]), np.atleast_1d(example.computed[row])
    cells = _numbers(shown, example.digits), _numbers(true, example.digits, more=2)
    column = max(len(cell) for line in cells for cell in line)
    shown, true = (_GAP.join(cell.rjust(column) for cell in line) for line in cells)
    yield from _labelled(f"{example.row:>3}", f"{example.where}: {example.title}", width)
    yield from _labelled("     printed", shown + place, width)
    yield from _labelled("     true   ", true, width)
    yield from _labelled("     why    ", example.reason, width)


def _worst_row(difference):
    """The place of the largest difference, as text and as the index of its row."""
    if difference.ndim < 2:
        return "", ()
    *leading, row, _ = (int(i) for i in np.unravel_index(np.argmax(np.round(difference, 12)), difference.shape))
    matrix = f" of matrix {leading[-1] + 1}" if leading else ""
    return f"   (row {row + 1}{matrix})", (*leading, row)


def _labelled(label, text, width):
    """The label and the text, wrapped and indented to the start of the text."""
    indent = len(label) + len(_GAP)
    first, *rest = wrap(text, width - indent, break_on_hyphens=False) or [""]
    return [label + _GAP + first, *(" " * indent + line for line in rest)]


def _numbers(values, digits, more=0):
    """Numbers as text: `digits` decimals, plus `more` if not all are whole; None: four significant digits."""
    values = np.asarray(values, np.float64)
    if np.isfinite(values).all() and (values == np.round(values)).all():
        more = 0
    return [_number(value, digits, more) for value in values.flat]


def _number(value, digits, more):
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.4g}" if digits is None else f"{value:.{digits + more}f}"


def _inline(value, digits, more=0):
    """A value on one line: a word, words, a number, or a matrix row by row."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ", ".join(value)
    value = np.asarray(value)
    cells = _numbers(value, digits, more)
    if value.ndim < 2:
        return " ".join(cells)
    size = value.shape[-1]
    return " ".join(f"[{' '.join(cells[i : i + size])}]" for i in range(0, len(cells), size))
