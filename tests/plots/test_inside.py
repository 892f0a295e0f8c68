"""Logit lens, ablation of heads, and all heads at a glance."""

import re

import numpy as np
import pytest
from matplotlib.transforms import Bbox
from reading import check_layout, colour_bar, heatmaps, weights_of, words_on

from transformer_np import functional as F
from transformer_np import plots
from transformer_np.inspection import Contributions, Effects, HeadAblation
from transformer_np.plots.arguments import steady
from transformer_np.plots.sizes import PAGE, TEXT


def test_logit_lens_shows_the_likeliest_words(rng):
    logits = rng.normal(size=(3, 4, 6)) * 2
    words = ["$x$", "cat", " the", "December", "a", "b"]
    figure = plots.logit_lens(logits, ["I", "saw", "a", "$"], words, title="After each block")
    (axes,) = heatmaps(figure)
    p = F.softmax(logits)
    np.testing.assert_allclose(axes.images[0].get_array(), p.max(axis=-1)[::-1], atol=1e-6)  # the last block on top
    shown = {text.get_position(): text.get_text() for text in axes.texts}
    for (layer, t), i in np.ndenumerate(p.argmax(axis=-1)):
        assert shown[(t, 2 - layer)] == ("␣the" if i == 2 else words[i])
    assert list(words_on(axes.yaxis).values()) == ["block 2", "block 1", "input"]
    assert list(words_on(axes.xaxis).values()) == ["I", "saw", "a", "$"]
    check_layout(figure)


def test_head_ablation_shows_the_changes():
    table = HeadAblation(1.0, {"encoder.0.attention": np.array([1.5, 0.9, 1.001]), "short": np.array([3.0])})
    figure = plots.head_ablation(table, "loss", title="Without one head")
    (axes,) = heatmaps(figure)
    image = axes.images[0]
    np.testing.assert_allclose(image.get_array()[1], [0.5, -0.1, 0.001])  # the first layer at the bottom
    assert (image.norm.vmin, image.norm.vmax) == (-2, 2) and image.get_array().mask[0, 1:].all()
    assert [text.get_text() for text in axes.texts] == ["+2.00", "+0.50", "−0.10", "0"]
    assert list(words_on(axes.yaxis).values()) == [*table.without][::-1]
    assert colour_bar(figure).get_ylabel() == "change of the loss"
    check_layout(figure)
    small = HeadAblation(1.0, {"blocks.0.attention": np.array([0.9893, 1.0021, 1.0001])})
    figure = plots.head_ablation(small, "accuracy")
    assert [text.get_text() for text in heatmaps(figure)[0].texts] == ["−0.011", "+0.002", "0"]
    check_layout(figure)


LAYERS = "encoder.0.attention", "decoder.0.self_attention", "decoder.0.cross_attention"
HEADS = dict(zip(LAYERS, map(np.array, ([1.0, -0.2], [0.5], [0.1, -2.0])), strict=True))
FEED_FORWARDS = {"encoder.0.feed_forward": 5.0, "decoder.0.feed_forward": -0.1}


def printed(axes):
    """{(row, column): text} of the numbers on a panel."""
    return {(text.get_position()[1], text.get_position()[0]): text.get_text() for text in axes.texts}


def test_contributions_shows_every_part():
    figure = plots.contributions(Contributions(0.3, HEADS, FEED_FORWARDS, 0.0), "logit of “a”", title="Who wrote it?")
    (axes,) = heatmaps(figure)
    values = axes.images[0].get_array()  # the first layer at the bottom
    expected = [[0.1, -2, -0.1], [0.5, np.nan, np.nan], [1, -0.2, 5], [0] * 3, [0.3] * 3]
    np.testing.assert_allclose(values.filled(np.nan), expected)
    rows = ["decoder 1, cross", "decoder 1, self", "encoder 1", "biases", "embedding"]
    assert list(words_on(axes.yaxis).values()) == rows
    assert list(words_on(axes.xaxis).values()) == ["1", "2", "feed-\nforward"]
    assert printed(axes) == {(0, 1): "−2.0", (2, 0): "+1.0", (2, 2): "+5.0", (3, 1): "0", (4, 1): "+0.3"}
    assert axes.images[0].get_clim() == (-2, 2)  # of the heads: 5 lies beyond the bar
    assert colour_bar(figure).get_ylabel() == "part of the logit of “a”"
    check_layout(figure)


@pytest.mark.parametrize("layers, heads", [(1, 1), (24, 9)])
def test_attribution_shows_the_estimate_beside_what_is_measured(rng, layers, heads):
    drawn = []
    for _ in range(2):
        values = {f"blocks.{i}.attention": rng.normal(size=heads) for i in range(layers)}
        drawn.append(Effects(1.0, values, {f"blocks.{i}.feed_forward": float(i) for i in range(layers)}, {}))
    figure = plots.attribution(*drawn, title="Without each part")
    panels = heatmaps(figure)
    for axes, effects in zip(panels, drawn, strict=True):
        shown = axes.images[0].get_array()
        np.testing.assert_allclose(shown[::-1, :heads], list(effects.heads.values()), atol=1e-4)
        np.testing.assert_allclose(shown[::-1, -1], list(effects.feed_forwards.values()))
    assert panels[0].images[0].get_clim() == panels[1].images[0].get_clim()
    assert [axes.get_title().split()[0].strip(",") for axes in panels] == ["estimated", "measured"]
    assert words_on(panels[0].yaxis)[0] == f"layer {layers}" and not words_on(panels[1].yaxis)
    assert figure.get_size_inches().max() < 1.07 * PAGE[0]  # readable on a page
    check_layout(figure)
    check_layout(plots.attribution(drawn[0]))
    with pytest.raises(ValueError, match="of the same model"):
        plots.attribution(drawn[0], Effects(1.0, HEADS, FEED_FORWARDS, {}))


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 4, 6, 5), pytest.param((3, 40, 2, 2), marks=pytest.mark.long)])
def test_model_view(rng, shape):
    weights = weights_of(rng, *shape)
    figure = plots.model_view(weights, title="All heads")
    panels = heatmaps(figure)
    assert len(panels) == shape[0] * shape[1]
    for axes, panel in zip(panels, weights.reshape(-1, *shape[2:]), strict=True):
        np.testing.assert_allclose(axes.images[0].get_array(), panel, atol=1e-6)
    assert {axes.images[0].get_clim() for axes in panels} == {(0, panels[0].images[0].norm.vmax)}  # one scale for all
    assert panels[0].images[0].norm.vmax == pytest.approx(weights.max()) and colour_bar(figure).get_ylabel() == "weight"
    assert panels[-1].get_ylabel() == (f"layer {shape[0]}" if shape[1] == 1 else "")
    check_layout(figure)


@pytest.mark.long
def test_attention_with_a_range_of_its_own(rng):
    weights = F.softmax(rng.normal(size=(2, 3, 3)) / 9)
    figure = plots.attention(weights, list("abc"), list("abc"), own_range=True)
    norm = heatmaps(figure)[0].images[0].norm
    drawn = steady(weights)
    assert (norm.vmin, norm.vmax) == (drawn.min(), drawn.max())
    check_layout(figure)
    for given, expected in ((None, (0.45, 0.55)), (False, (0, 1))):  # nearly equal weights have it by themselves
        nearly = plots.attention([[0.45, 0.55], [0.5, 0.5]], list("ab"), list("ab"), own_range=given)
        assert heatmaps(nearly)[0].images[0].get_clim() == pytest.approx(expected)
    wide = heatmaps(plots.attention([[0.35, 0.65], [0.5, 0.5]], list("ab"), list("ab")))[0].images[0]
    assert wide.get_clim() == (0, 1)
    even = np.full((2, 2), 0.5)
    norm = heatmaps(plots.attention(even, list("ab"), list("ab"), own_range=True))[0].images[0].norm
    assert (norm.vmin, norm.vmax) == (0, 1)


@pytest.mark.parametrize(("word", "count", "around"), [("a long word", 8, 9), ("w", 12, 0)])
def test_larger_words_of_a_slide_neither_meet_nor_leave_it(rng, word, count, around):
    """Words that have no room stay as they are: long names of many columns, and a page as large as the picture."""
    words = [f"{word} {i}" for i in range(count)]
    figure = plots.attention(weights_of(rng, count, count), words, words)
    label = figure.axes[0].get_xticklabels()[0]
    page = Bbox.from_bounds(0, 0, *figure.get_size_inches()).padded(around)
    with figure._larger_labels(page, 1.4, None):
        assert label.get_size() < 1.3 * TEXT
        check_layout(figure)


def test_a_slide_that_nobody_can_read_is_refused(tmp_path):
    shown = plots.matrices([plots.Product("a sum", [("A", np.eye(1)), "=", ("B", np.eye(1))])] * 7)
    artists = len(shown.texts), len(shown.artists)
    with pytest.raises(ValueError, match=r"would have [01]\.\d+% of its height, and 1\.5% is the least .*: show less"):
        shown.save_slide(tmp_path / "slide.png", "Seven sums")
    assert not list(tmp_path.iterdir()) and (len(shown.texts), len(shown.artists)) == artists


def test_a_long_title_stays_on_its_slide(rng, tmp_path, monkeypatch):
    figure, margins = plots.attention(weights_of(rng, 2, 2), list("ab"), list("ab")), []

    def noted(name, bbox_inches):
        page, title = bbox_inches.transformed(figure.dpi_scale_trans), figure.texts[-1].get_window_extent()
        margins.extend([title.x0 - page.x0, page.x1 - title.x1])

    monkeypatch.setattr(figure, "savefig", noted)
    figure.save_slide(tmp_path / "slide.png", "Which head looks at which word? " * 3)
    assert len(margins) == 2 and min(margins) > 0


@pytest.mark.long
@pytest.mark.parametrize("name", ["slide.png", "slide.svg", "slide.pdf"])
def test_slides_are_16_to_9(rng, tmp_path, name, monkeypatch):
    figure = plots.attention(weights_of(rng, 5, 4), list("abcde"), list("abcd"))
    before, label = (len(figure.texts), len(figure.artists)), figure.axes[0].xaxis.label
    size, drawn, savefig = label.get_size(), [], type(figure).savefig

    def noted(*args, **options):
        drawn.append(label.get_size())
        savefig(*args, **options)

    monkeypatch.setattr(type(figure), "savefig", noted)
    figure.save_slide(tmp_path / name, "Cost: $5 for a head")
    assert max(drawn) > 1.3 * size and label.get_size() == size  # the words grow with the title, on the slide alone
    assert (len(figure.texts), len(figure.artists)) == before
    data = (tmp_path / name).read_bytes()
    if name == "slide.png":
        width, height = (int.from_bytes(data[i : i + 4], "big") for i in (16, 20))
    else:
        width, height = map(float, re.search(rb"(?:viewBox=.|MediaBox \[ )0 0 ([\d.]+) ([\d.]+)", data).groups())
    assert width / height == pytest.approx(16 / 9, rel=0.01)
