"""Columns of boxes and arrows, and how they are drawn: the pieces of `architecture`."""

from dataclasses import dataclass
from itertools import chain, pairwise

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from .picture import Picture
from .sizes import EDGE, LABEL, TEXT
from .style import HATCH

# Inches
BOX, HEIGHT = 2.8, 0.46  # of a box
MASK_LINE = 0.17  # more height for the masks of an attention
ARROW = 0.34  # an arrow with its shape
STUB = 0.24  # the piece of an arrow inside a block where the residual path leaves
DETOUR = 0.17  # the distance of the residual path from the boxes
FRAME = 0.3  # from the boxes to the frame around a block
PADDING = 0.06  # between the frame and the first branch, and above the last box
APART = 1.35  # between two columns


@dataclass
class Box:
    """A layer: its title, a detail, the modules with its parameters, and the number of these."""

    title: str
    detail: str
    modules: tuple
    colour: str
    residual: bool = False  # whether the residual path joins here
    count: str = ""
    masks: str = ""  # of an attention

    @property
    def height(self):
        return HEIGHT + MASK_LINE * bool(self.masks)


@dataclass
class Block:
    """Equal blocks, of which one is drawn: its boxes, and the shape between them."""

    name: str
    modules: list
    parts: list  # lists of boxes, one per sub-layer with its residual path
    shape: str


@dataclass
class Words:
    """The text at an end of a column."""

    text: str


def _parameters(modules, counted=()):
    """The number of parameters in these modules together, without those already counted."""
    unique = {id(p): p.data.size for module in modules for p in module.parameters() if id(p) not in counted}
    return sum(unique.values())


def _count_parameters(columns):
    """Set the number of parameters of each box. A tied parameter counts in the first box that has it."""
    counted = set()
    for item in (item for column in columns for item in column):
        boxes = [item] if isinstance(item, Box) else [*chain(*item.parts)] if isinstance(item, Block) else []
        for box in boxes:
            if box.modules:
                own = _parameters(box.modules, counted)
                box.count = f"{own:,}" if own else "tied" if _parameters(box.modules) else ""
                counted |= {id(p) for module in box.modules for p in module.parameters()}


def _height(column):
    """The height of a column in inches."""
    return sum(_item_height(item) for item in column)


def _item_height(item):
    if isinstance(item, Block):
        return sum(STUB + sum(box.height + STUB for box in part) for part in item.parts) + 2 * PADDING
    return item.height if isinstance(item, Box) else {Words: LABEL, str: ARROW}[type(item)]


def draw(title, *columns):
    """The figure of one or two columns. The second is beside the first, or for Bert on top of it."""
    _count_parameters(columns)
    beside = len(columns) == 2 and isinstance(columns[1][0], Words)
    margin = EDGE + LABEL + FRAME
    width = 2 * margin + BOX + (len(columns) - 1) * (BOX + APART)
    heights = [_height(column) for column in columns]
    start = 0.0
    if len(columns) == 2 and not beside:  # the second begins at the arrow after the blocks of the first
        blocks = next(i for i, item in enumerate(columns[0]) if isinstance(item, Block))
        start = _height(columns[0][: blocks + 2])
    height = 2 * EDGE + max(heights[0], start + heights[-1]) + LABEL + 2 * EDGE
    figure = Picture(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height))
    axes.set_axis_off()
    page = _Page(axes)
    middle = margin + BOX / 2
    top = page.column(columns[0], middle, EDGE, side=-1)
    if beside:
        page.column(columns[1], middle + BOX + APART, EDGE, side=1)
        if page.cross is not None:
            (left, y), out, x = page.cross, top - LABEL / 2, middle + BOX / 2 + FRAME + 0.3
            page.line((middle + 0.3, out), (x, out), (x, y), (left, y))
            axes.text((x + left - FRAME) / 2, y + 0.02, "K, V", ha="center", va="bottom", size=TEXT - 1)
    elif len(columns) == 2:  # the other head, from the same vectors
        x, y = middle + BOX + APART, EDGE + start
        page.column(columns[1], x, y, side=1)
        page.line((middle, y - 0.75 * ARROW), (x, y - 0.75 * ARROW), (x, y))
    figure.suptitle(title, y=1 - EDGE / height, va="top")
    return figure


class _Page:
    """Axes in inches to draw columns on. cross: the left end of the last cross-attention, where its arrow ends"""

    def __init__(self, axes):
        self.axes, self.cross = axes, None

    def column(self, items, x, y, side):
        """Draw the items from y upwards, centred at x  ->  where the last one ends. side: −1 for residual paths on the
        left, 1 on the right; the shapes are on the other side."""
        for item in items:
            if isinstance(item, str):
                self.line((x, y), (x, y + ARROW))
                self.shape(x, y + ARROW / 2, item, side)
            elif isinstance(item, Box):
                self.box(item, x, y)
            elif isinstance(item, Words):
                self.axes.text(x, y + LABEL / 2, item.text, ha="center", va="center", size=TEXT)
            else:
                self.block(item, x, y, side)
            y += _item_height(item)
        return y

    def block(self, block, x, y, side):
        tall, edge = _item_height(block), x + side * (BOX / 2 + FRAME)
        frame = Rectangle((x - BOX / 2 - FRAME, y), BOX + 2 * FRAME, tall, facecolor="#f7f7f7", edgecolor=HATCH)
        frame.set(linewidth=0.8, zorder=0)
        self.axes.add_patch(frame)
        times = len(block.modules)
        of_all = [{id(p) for p in module.parameters()} for module in block.modules]
        shared = set.intersection(*of_all) if times > 1 else ()
        each = _parameters(block.modules[:1], shared)
        label = f"{times} {block.name} block{'s' if times > 1 else ''}, {each:,} parameters" + " each" * (times > 1)
        rotation = 90 if side < 0 else 270
        self.axes.text(edge + side * LABEL / 2, y + tall / 2, label, ha="center", va="center", rotation=rotation)
        self.axes.plot([x, x], [y, y + PADDING], color="black", linewidth=0.9, snap=False)
        y += PADDING
        for i, part in enumerate(block.parts):
            branch = y + STUB / 2 - 0.02
            if i:
                self.shape(x, branch - STUB + 0.02, block.shape, side)
            for box in part:
                self.line((x, y), (x, y + STUB))
                if box is not part[0]:
                    self.shape(x, y + STUB / 2, block.shape, side)
                y += STUB
                self.box(box, x, y)
                if box.title.startswith("Cross"):
                    self.cross = (x - BOX / 2, y + box.height / 2)
                if box.residual:
                    beside = x + side * (BOX / 2 + DETOUR)
                    into = y + box.height / 2
                    self.line((x, branch), (beside, branch), (beside, into), (x + side * BOX / 2, into))
                y += box.height
            self.axes.plot([x, x], [y, y + STUB], color="black", linewidth=0.9, snap=False)
            y += STUB
        self.axes.plot([x, x], [y, y + PADDING], color="black", linewidth=0.9, snap=False)

    def box(self, box, x, y):
        self.axes.add_patch(
            FancyBboxPatch(
                (x - BOX / 2, y), BOX, box.height, boxstyle="round,pad=0,rounding_size=0.06", facecolor=box.colour,
                edgecolor=HATCH, linewidth=0.8, zorder=2,
            )
        )  # fmt: skip
        left, right, low = x - BOX / 2 + 0.08, x + BOX / 2 - 0.08, y + 0.12
        if box.masks:
            self.axes.text(left, low, box.masks, va="center", size=TEXT - 1, zorder=3)
            low += MASK_LINE
        if box.detail or box.count:
            self.axes.text(left, y + box.height - 0.13, box.title, va="center", size=TEXT, weight="bold", zorder=3)
            self.axes.text(left, low, box.detail, va="center", size=TEXT - 1, zorder=3)
            self.axes.text(right, low, box.count, va="center", ha="right", size=TEXT - 1, zorder=3)
        else:
            self.axes.text(left, y + box.height / 2, box.title, va="center", size=TEXT, weight="bold", zorder=3)

    def shape(self, x, y, text, side):
        """Write the shape at an arrow, on the side without a residual path."""
        self.axes.text(x - side * 0.07, y, text, ha="left" if side < 0 else "right", va="center", size=TEXT - 1)

    def line(self, *points):
        """Draw a line through the points, with an arrowhead at the last."""
        for start, end in pairwise(points[:-1]):
            self.axes.plot(*zip(start, end, strict=True), color="black", linewidth=0.9, zorder=1, snap=False)
        arrow = FancyArrowPatch(points[-2], points[-1], arrowstyle="-|>", mutation_scale=8, shrinkA=0, shrinkB=0)
        arrow.set(linewidth=0.9, color="black", zorder=1)
        self.axes.add_patch(arrow)
