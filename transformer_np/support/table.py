"""Text in columns."""


def aligned(rows, sides, gap="  "):
    """The lines of a table whose columns are as wide as their longest cells.

    rows: one sequence of cells per line, each as long as `sides`
    sides: one "<" or ">" per column, the side at which its cells are aligned
    """
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [gap.join(map(_padded, row, sides, widths)).rstrip() for row in rows]


def _padded(cell, side, width):
    return f"{cell:{side}{width}}"
