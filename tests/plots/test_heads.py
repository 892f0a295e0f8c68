"""Attention as lines between words."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from reading import ENGLISH, PORTUGUESE, weights_of

from transformer_np import plots
from transformer_np.plots.arguments import steady

# --- head view --------------------------------------------------------------------------------------------------------


def bundles(figure):
    """The lines of each head: a list of {(y at the left, y at the right): (width, alpha)}."""
    (axes,) = figure.axes
    found = [child for child in axes.get_children() if isinstance(child, LineCollection)]
    heads = []
    for lines in found:
        ends = [tuple(points[:, 1]) for points in lines.get_segments()]
        heads.append(dict(zip(ends, zip(lines.get_linewidths(), lines.get_alpha(), strict=True), strict=True)))
    return heads


@pytest.mark.long
@pytest.mark.parametrize("shape", [(5, 4), (1, 5, 4), (8, 5, 4), (12, 5, 4), (16, 5, 4)])
def test_lines_are_as_thick_as_the_weights(rng, shape):
    weights = weights_of(rng, *shape)
    weights[..., 2, 1] = 0  # behind a mask: no line
    figure = plots.head_view(weights, PORTUGUESE, ENGLISH[1:])
    heads = bundles(figure)
    panels = steady(weights).reshape(-1, 5, 4)  # what is drawn
    assert len(heads) == len(panels)
    thickest = None
    for h, (lines, head) in enumerate(zip(heads, panels, strict=True)):
        assert len(lines) == 19
        shift = (h - (len(panels) - 1) / 2) * 0.7 / len(panels)
        for (left, right), (width, alpha) in lines.items():
            t, s = round(left - shift, 6), round(right - shift, 6)
            assert t == int(t) and s == int(s)
            weight = head[int(t), int(s)]
            thickest = thickest or width / weight
            np.testing.assert_allclose(width, thickest * weight)
            np.testing.assert_allclose(alpha, 0.3 + 0.7 * weight)
    assert 72 * 0.3 * 0.7 / len(panels) >= thickest > 0.5  # heads do not cover each other, and can be seen


def test_head_view_names_words_and_heads(rng):
    figure = plots.head_view(weights_of(rng, 3, 5, 4), ["$x$", *PORTUGUESE[1:]], ENGLISH[1:], title="Cost: $5")
    (axes,) = figure.axes
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["$x$", *PORTUGUESE[1:], *ENGLISH[1:], "query (looking)", "key (looked at)"]
    assert not any(text.get_parse_math() for text in axes.texts)
    assert figure.get_suptitle() == "Cost: $5"
    legend = axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["head 1", "head 2", "head 3"]
    lines = [child for child in axes.get_children() if isinstance(child, LineCollection)]
    for entry, drawn in zip(legend.legend_handles, lines, strict=True):
        np.testing.assert_allclose(to_rgb(entry.get_color()), drawn.get_colors()[0][:3])
    assert len({tuple(drawn.get_colors()[0][:3]) for drawn in lines}) == 3
    assert plots.head_view(weights_of(rng, 5, 4), PORTUGUESE, ENGLISH[1:]).axes[0].get_legend() is None


def test_head_view_follows_one_query(rng):
    weights = weights_of(rng, 2, 5, 4)
    figure = plots.head_view(weights, PORTUGUESE, ENGLISH[1:], query=3)
    for h, lines in enumerate(bundles(figure)):
        assert len(lines) == 4
        assert {round(left - (h - 0.5) * 0.35, 6) for left, _ in lines} == {3.0}
    assert [text.get_text() for text in figure.axes[0].texts if text.get_weight() == "bold"] == ["em"]
