"""The layout of heatmap panels with words along both axes."""

import math

from .fonts import text_width
from .picture import Picture
from .sizes import CELL, EDGE, GAP, LABEL, LARGEST_PAGE, LINE, PAD, PAGE, TEXT, THUMBNAIL
from .style import KEY, QUERY


class Sheet:
    """A figure with rows × columns panels of square cells, with the queries on the left and the keys at the bottom.

    heads: titles of the top panels, or of all panels if there are more titles than columns
    side: inches to leave free at the right
    places: where the panels are, counted row by row; default: at all places

    The words determine every size, so that nothing is clipped, nothing overlaps and no space is wasted.
    .figure, .panels (a list, row by row), .cell (inches)
    """

    def __init__(
        self, rows, columns, queries, keys, heads=(), title=None, side=0.0, places=None, largest_cell=CELL,
        largest_page=LARGEST_PAGE,
    ):  # fmt: skip
        T, S = len(queries), len(keys)
        places = places or range(rows * columns)
        key_width = max(map(text_width, keys))
        left = EDGE + LABEL + max(map(text_width, queries)) + 2 * PAD
        gap_x, gap_y = GAP, GAP + (LABEL if len(heads) > columns else 0)
        lowest = EDGE + LABEL + 2 * PAD
        above = EDGE + (LABEL if heads else 0)

        # the largest possible cell with vertical keys
        taken_x = left + side + (columns - 1) * gap_x
        taken_y = lowest + key_width + above + (rows - 1) * gap_y
        fits, fits_at_most = (
            min((page[0] - taken_x) / (columns * S), (page[1] - taken_y) / (rows * T)) for page in (PAGE, largest_page)
        )
        self.cell = cell = max(0.01, min(largest_cell, max(fits, min(LINE, fits_at_most))))
        every = next(n for n in (1, 2, 5, 10, 20, 50) if n * cell > LINE - 1e-6)  # every n-th word is named

        if key_width + 2 * PAD <= every * cell:
            rotation, key_height = 0, LINE
        elif len(places) == 1 and every * cell > 1.5 * LINE:
            rotation, key_height = 45, (key_width + LINE) * 0.71
            left = max(left, EDGE + LABEL + 2 * PAD + key_width * 0.71 - cell / 2)  # the first key leans to the left
        else:
            rotation, key_height = 90, key_width

        panel = S * cell, T * cell
        pitch = max(panel[0], *map(text_width, heads), 0.0) + gap_x, panel[1] + gap_y
        grid = columns * pitch[0] - gap_x, rows * pitch[1] - gap_y
        room = max(grid[0], 1.1), max(grid[1], 1.1)  # axis labels and colour bar need this much
        bottom = lowest + key_height
        width = left + room[0] + side
        figure = self.figure = Picture.titled(title, width, bottom + room[1] + above)
        height = figure.get_size_inches()[1]
        self._corner, self._room = (left, bottom), room
        self.panels = []
        for i, place in enumerate(places):
            row, column = divmod(place, columns)
            x = left + (room[0] - grid[0]) / 2 + column * pitch[0] + (pitch[0] - gap_x - panel[0]) / 2
            y = bottom + (room[1] + grid[1]) / 2 - row * pitch[1] - panel[1]
            axes = figure.panel(x, y, *panel, xlim=(-0.5, S - 0.5), ylim=(T - 0.5, -0.5))
            lowest_panel = place + columns > places[-1]
            _name_cells(axes, queries if column == 0 else (), keys if lowest_panel else (), every, rotation)
            if i < len(heads):
                axes.set_title(heads[i], pad=4)
            self.panels.append(axes)

        if len(places) == 1:
            self.panels[0].set(xlabel=KEY, ylabel=QUERY)
        else:
            figure.supxlabel(KEY, x=(left + room[0] / 2) / width, y=EDGE / height, va="bottom", size=TEXT)
            figure.supylabel(QUERY, x=EDGE / width, y=(bottom + room[1] / 2) / height, ha="left", size=TEXT)

    def bar_axes(self, gap):
        """Axes for a colour bar, as high as all panels together, `gap` inches to the right of them."""
        return self.figure.panel(self._corner[0] + self._room[0] + gap, self._corner[1], 0.14, self._room[1])


def _name_cells(axes, queries, keys, every, rotation):
    """Write every n-th query at the left of a panel and every n-th key below it."""
    axes.set_xticks(range(0, len(keys), every), keys[::every])
    axes.set_yticks(range(0, len(queries), every), queries[::every])
    axes.tick_params(length=2, pad=3, width=0.6)
    for word in axes.get_xticklabels() + axes.get_yticklabels():
        word.set(parse_math=False, rotation_mode="anchor")  # a $ is a $
    for word in axes.get_xticklabels() if rotation else ():
        word.set(rotation=rotation, ha="right", va="center" if rotation == 90 else "top")
    axes.spines[:].set_visible(False)


def rows_and_columns(count):
    """A grid for `count` heads, at most four per row or as many as there are rows, filled evenly."""
    rows = math.ceil(count / max(4, math.ceil(math.sqrt(count))))
    return rows, math.ceil(count / rows)


def rows_of_a_layer(layers, heads):
    """The rows for the heads of each layer: one, unless its panels would be smaller than a thumbnail; then as many as
    make them largest."""

    def side(rows):
        width, height = LARGEST_PAGE[0] / math.ceil(heads / rows), LARGEST_PAGE[1] / (layers * rows)
        return min(width - GAP, height - GAP - LABEL * (rows > 1))

    return 1 if side(1) >= THUMBNAIL else max(range(1, heads + 1), key=side)
