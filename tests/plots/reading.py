"""What a picture shows: its words, panels and places; and pictures of every kind to look at."""

import io
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from matplotlib.text import Text

from transformer_np import functional as F
from transformer_np.models import Transformer, TransformerConfig

ENGLISH = "Lucas will travel in December".split()
PORTUGUESE = "Lucas vai viajar em dezembro".split()
TWELVE = "<bos> Lucas vai viajar para o Brasil em dezembro com amigos <eos>".split()


def weights_of(rng, *shape):
    return F.softmax(rng.normal(size=shape) * 2)


def words_on(axis):
    """{position: word} of the tick labels that are shown."""
    ticks = [tick for tick in axis.get_major_ticks() if tick.label1.get_visible()]
    return {tick.get_loc(): tick.label1.get_text() for tick in ticks}


def heatmaps(figure):
    """The axes that show an array, without the colour bar."""
    return [axes for axes in figure.axes if axes.images]


def colour_bar(figure):
    (axes,) = [axes for axes in figure.axes if not axes.images]
    return axes


def png(figure):
    data = io.BytesIO()
    figure.savefig(data, format="png")
    return data.getvalue()


def history_of(rng, steps):
    at = np.arange(steps)
    return SimpleNamespace(
        losses=(1 + 4 * np.exp(-at / 200) + rng.random(steps)).tolist(),
        learning_rates=(1e-3 * np.minimum(1, (at + 1) / 100)).tolist(),
        validation=[(step, 1.5 + 4 * np.exp(-step / 200)) for step in range(100, steps + 1, max(100, steps // 10))],
    )


def after_backward(norm_first=False, layers=2):
    sizes = {"d_model": 12, "num_heads": 3, "num_encoder_layers": layers, "num_decoder_layers": 1, "d_ff": 10}
    model, rng = Transformer(TransformerConfig(11, 13, norm_first=norm_first, **sizes)), np.random.default_rng(3)
    logits = model(rng.integers(3, 11, (2, 5)), rng.integers(3, 13, (2, 6)))
    _, probs = F.cross_entropy(logits, rng.integers(3, 13, (2, 6)))
    model.backward(F.cross_entropy_backward(probs, rng.integers(3, 13, (2, 6))))
    return model


def corners(text):
    """The four corners of a text as it is drawn, in pixels; also of a slanted one."""
    angle, mode = np.deg2rad(text.get_rotation()), text.get_rotation_mode()
    if mode != "anchor":
        return text.get_window_extent().corners()[[0, 1, 3, 2]]
    text.set_rotation(0)
    upright = text.get_window_extent().corners()[[0, 1, 3, 2]]
    text.set_rotation(np.rad2deg(angle))
    anchor = text.get_transform().transform(text.get_unitless_position())
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return (upright - anchor) @ turn + anchor


def overlap(a, b):
    """Whether two rectangles, at any angle, share a point: no line along an edge of either separates them."""
    if (a.max(axis=0) <= b.min(axis=0)).any() or (b.max(axis=0) <= a.min(axis=0)).any():
        return False
    for polygon in (a, b):
        for start, end in pairwise(polygon):
            direction = np.array([end[1] - start[1], start[0] - end[0]])
            if max(a @ direction) <= min(b @ direction) or max(b @ direction) <= min(a @ direction):
                return False
    return True


def check_layout(figure, on_panels=False):
    """No text leaves the figure, no two overlap, none but values lies on a panel, and values fit their cell.

    on_panels: text belongs on the panels of this figure"""
    figure.draw_without_rendering()  # a missing glyph or the like is a warning, and so an error here
    drawn = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    values = [text for axes in heatmaps(figure) for text in axes.texts if text.get_transform() == axes.transData]
    hidden_ticks = {
        id(tick.label1)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        if not tick.label1.get_visible() or not in_view(axes, tick)
    }
    outside = [text for text in drawn if text not in values and id(text) not in hidden_ticks]
    boxes = [corners(text) for text in outside]
    width, height = figure.canvas.get_width_height()
    for text, box in zip(outside, boxes, strict=True):
        assert box.min() >= 0 and box[:, 0].max() <= width and box[:, 1].max() <= height, f"{text} leaves the figure"
    for i, box in enumerate(boxes):
        for j in range(i):
            assert not overlap(box, boxes[j]), f"{outside[i]} overlaps {outside[j]}"
        for axes in () if on_panels else figure.axes:
            panel = axes.get_window_extent().corners()[[0, 1, 3, 2]]
            assert not overlap(box, panel), f"{outside[i]} lies on {axes}"
    for text in values:
        here = text.axes.transData.transform(text.get_position())
        cell = np.abs(text.axes.transData.transform(np.add(text.get_position(), 1)) - here)
        assert (text.get_window_extent().size < cell).all(), f"{text} does not fit its cell"
    return len(outside)


def in_view(axes, tick):
    """Whether a tick of a numeric axis lies within its limits; matplotlib does not draw the others."""
    at_x = tick in (*axes.xaxis.get_major_ticks(), *axes.xaxis.get_minor_ticks())
    low, high = sorted(axes.get_xlim() if at_x else axes.get_ylim())
    return low - 1e-9 <= tick.get_loc() <= high + 1e-9
