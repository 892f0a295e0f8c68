"""Heatmaps: positional encoding, attention, masks; and attention as lines between words."""

import io
import math

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.font_manager import fontManager
from reading import ENGLISH, PORTUGUESE, check_layout, colour_bar, heatmaps, weights_of, words_on
from shared import few_of

from transformer_np import functional as F
from transformer_np import masks, plots
from transformer_np.models import Transformer, TransformerConfig
from transformer_np.plots import fonts
from transformer_np.plots.arguments import steady
from transformer_np.plots.fonts import font_with, text_width, wrapped

# --- positional encoding ----------------------------------------------------------------------------------------------


def test_positional_encoding():
    figure = plots.positional_encoding(20, 30)
    (axes,) = heatmaps(figure)
    np.testing.assert_array_equal(axes.images[0].get_array(), F.sinusoidal_encoding(20, 30))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("dimension", "position")
    assert axes.get_ylim() == (19.5, -0.5) and axes.get_xlim() == (-0.5, 29.5)  # position 0 on top
    assert axes.images[0].get_clim() == (-1, 1)
    assert colour_bar(figure).get_ylabel() == "value"
    assert not axes.texts
    (axes,) = heatmaps(plots.positional_encoding(3, 4))  # a small one shows its values
    shown = " ".join(text.get_text() for text in axes.texts)
    assert shown == "0 1.00 0 1.00 0.84 0.54 0.01 1.00 0.91 −0.42 0.02 1.00"


@pytest.mark.parametrize(("scale", "limit"), [(0.3, 0.3), (7.0, 7.0), (0.0, 1.0), (0.95, 1.0)])
def test_a_table_of_ones_own_has_zero_in_the_middle(scale, limit):
    table = scale * np.array([[0.5, -0.25, 1.0], [0.0, 0.125, -0.5]])
    (axes,) = heatmaps(plots.positional_encoding(table=table))
    np.testing.assert_array_equal(axes.images[0].get_array(), table)
    assert axes.images[0].get_clim() == (-limit, limit)
    white, largest = axes.images[0].to_rgba(np.array([0, limit]))[:, :3]
    assert white.min() > 0.95 and largest[0] > largest[2]  # red


# --- attention --------------------------------------------------------------------------------------------------------


def test_one_head(rng):
    weights = weights_of(rng, 5, 4)
    figure = plots.attention(weights, PORTUGUESE, ENGLISH[1:], title="Cost: $5 or $6")
    (axes,) = heatmaps(figure)
    np.testing.assert_allclose(axes.images[0].get_array(), weights, atol=1e-6)
    assert axes.images[0].get_clim() == (0, 1)
    assert words_on(axes.yaxis) == dict(enumerate(PORTUGUESE))
    assert words_on(axes.xaxis) == dict(enumerate(ENGLISH[1:]))
    assert axes.get_ylim() == (4.5, -0.5)  # the first query on top
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("key (looked at)", "query (looking)")
    assert figure.get_suptitle() == "Cost: $5 or $6" and not figure._suptitle.get_parse_math()
    assert colour_bar(figure).get_ylabel() == "attention weight"
    assert colour_bar(figure).get_ylim() == (0, 1)
    assert axes.get_title() == ""


@pytest.mark.parametrize(("heads", "rows"), few_of([(1, 1), (4, 1), (5, 2), (9, 3)], [(1, 1), (5, 2)]))
def test_all_heads_of_a_layer(rng, heads, rows):
    weights = weights_of(rng, heads, 5, 4)
    figure = plots.attention(weights, PORTUGUESE, ENGLISH[1:])
    panels = heatmaps(figure)
    assert len(panels) == heads and len({round(axes.get_position().y0, 6) for axes in panels}) == rows
    for h, axes in enumerate(panels):
        np.testing.assert_allclose(axes.images[0].get_array(), weights[h], atol=1e-6)
        assert axes.get_title() == f"head {h + 1}"
        assert axes.images[0].get_clim() == (0, 1)
    first_column = [axes for axes in panels if words_on(axes.yaxis)]
    assert len(first_column) == rows
    assert all(words_on(axes.yaxis) == dict(enumerate(PORTUGUESE)) for axes in first_column)
    with_keys = [axes for axes in panels if words_on(axes.xaxis)]
    assert with_keys == panels[-math.ceil(heads / rows) :]  # the last panel of every column
    assert all(words_on(axes.xaxis) == dict(enumerate(ENGLISH[1:])) for axes in with_keys)
    if heads > 1:
        assert (figure.get_supxlabel(), figure.get_supylabel()) == ("key (looked at)", "query (looking)")
    colour_bar(figure)


@pytest.mark.long
def test_all_layers(rng):
    weights = weights_of(rng, 2, 3, 5, 4)
    figure = plots.attention(weights, PORTUGUESE, ENGLISH[1:])
    panels = heatmaps(figure)
    for axes, panel in zip(panels, steady(weights)[::-1].reshape(6, 5, 4), strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), panel)
        assert axes.images[0].get_clim() == (0, 1)
    assert [axes.get_title() for axes in panels] == ["head 1", "head 2", "head 3", "", "", ""]
    strips = [[text.get_text() for text in axes.texts if "layer" in text.get_text()] for axes in panels]
    assert strips == [[], [], ["layer 2"], [], [], ["layer 1"]]  # the first layer at the bottom
    places = np.array([axes.get_position().p0 for axes in panels]).reshape(2, 3, 2)
    assert (np.diff(places[..., 0], axis=1) > 0).all() and (np.diff(places[..., 1], axis=0) < 0).all()
    assert [bool(words_on(axes.yaxis)) for axes in panels] == [True, False, False] * 2
    assert [bool(words_on(axes.xaxis)) for axes in panels] == [False] * 3 + [True] * 3
    colour_bar(figure)


@pytest.mark.long
@pytest.mark.parametrize("layers", [1, 2])
def test_no_number_of_heads_makes_the_panels_tiny(rng, layers):
    weights = weights_of(rng, layers, 29, 5, 4)
    figure = plots.attention(weights, PORTUGUESE, ENGLISH[1:], first_layer=3)
    panels = heatmaps(figure)
    assert [axes.get_title() for axes in panels] == [f"head {h}" for h in range(1, 30)] * layers
    sides = [axes.get_position().size * figure.get_size_inches() for axes in panels]
    assert np.min(sides) >= 0.45
    columns = [sum(bool(words_on(axes.xaxis)) for axes in panels[-29:])] * layers
    names = [(i, text.get_text()) for i, axes in enumerate(panels) for text in axes.texts if "layer" in text.get_text()]
    rows = zip(columns, range(layers), strict=True)
    assert names == [(29 * i + n - 1, f"layer {layers + 2 - i}") for n, i in rows]
    check_layout(figure)


@pytest.mark.long
def test_many_layers_have_names_side_by_side(rng):
    figure = plots.attention(weights_of(rng, 30, 1, 2, 2), list("ab"), list("ab"), first_layer=7)
    names = [text for axes in heatmaps(figure) for text in axes.texts if "layer" in text.get_text()]
    assert [text.get_text() for text in names] == [f"layer {n}" for n in range(36, 6, -1)]
    check_layout(figure)


def test_values_are_printed_where_there_is_room(rng):
    (axes,) = heatmaps(plots.attention([[1, 0], [0.004, 0.996]], ["a", "b"], ["c", "d"]))
    shown = {text.get_position(): text.get_text() for text in axes.texts}
    assert shown == {(0, 0): "1.00", (1, 0): "0", (0, 1): "0.00", (1, 1): "1.00"}
    (axes,) = heatmaps(plots.attention(weights_of(rng, 30, 30), range(30), range(30)))
    assert not axes.texts
    (axes,) = heatmaps(plots.attention(np.float32([[0.0, 1 + 1e-6]]), ["a"], ["b", "c"]))  # too large by rounding
    assert [text.get_text() for text in axes.texts] == ["0", "1.00"]


@pytest.mark.long
def test_values_stand_out_from_their_cell():
    def light(colour):
        colour = np.array(to_rgb(colour))
        return np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4) @ (0.2126, 0.7152, 0.0722)

    ramp = np.linspace(0, 1, 36).reshape(6, 6)
    for figure in (plots.attention(ramp, range(6), range(6)), plots.positional_encoding(table=2 * ramp - 1)):
        (axes,) = heatmaps(figure)
        cells = axes.images[0].to_rgba(axes.images[0].get_array())
        assert len(axes.texts) == 36
        for text in axes.texts:
            s, t = text.get_position()
            dark, bright = sorted([light(text.get_color()), light(cells[t, s, :3])])
            assert (bright + 0.05) / (dark + 0.05) > 4.4  # WCAG AA asks for 4.5


@pytest.mark.long
def test_many_words_are_thinned_and_stay_in_place(rng):
    words = [f"word {i}" for i in range(100)]
    figure = plots.attention(weights_of(rng, 100, 40), words, words[:40])
    (axes,) = heatmaps(figure)
    assert words_on(axes.yaxis) == {i: f"word {i}" for i in range(0, 100, 2)}
    assert words_on(axes.xaxis) == {i: f"word {i}" for i in range(0, 40, 2)}
    check_layout(figure)
    (axes,) = heatmaps(plots.attention(weights_of(rng, 2, 40), words[:2], words[:40]))
    assert words_on(axes.xaxis) == dict(enumerate(words[:40]))


def test_words_are_shown_as_they_are(rng):
    words = ["$x$", " the", "a b", "\n", "x" * 50, 7]
    figure = plots.attention(weights_of(rng, 6, 6), words, words)
    (axes,) = heatmaps(figure)
    shown = ["$x$", "␣the", "a b", "⏎", "x" * 19 + "…", "7"]
    for axis in (axes.xaxis, axes.yaxis):
        assert list(words_on(axis).values()) == shown
        assert not any(label.get_parse_math() for label in axis.get_ticklabels())
    check_layout(figure)  # a missing glyph is a warning, and so an error here


# --- attention of a model ---------------------------------------------------------------------------------------------


@pytest.fixture
def model():
    config = TransformerConfig(11, 13, d_model=12, num_heads=3, num_encoder_layers=2, num_decoder_layers=4, d_ff=10)
    return Transformer(config).eval()


@pytest.mark.long
def test_attention_maps(model, rng):
    model(rng.integers(3, 11, (2, 5)), rng.integers(3, 13, (2, 6)))
    for kind, shape in {"encoder": (2, 2, 3, 5, 5), "decoder": (4, 2, 3, 6, 6), "cross": (4, 2, 3, 6, 5)}.items():
        maps = plots.attention_maps(model, kind)
        assert maps.shape == shape
        np.testing.assert_allclose(maps.sum(-1), 1, rtol=1e-5)
    for i, block in enumerate(model.decoder):
        np.testing.assert_array_equal(plots.attention_maps(model, "decoder")[i], block.self_attention.weights)
        np.testing.assert_array_equal(plots.attention_maps(model, "cross")[i], block.cross_attention.weights)
    np.testing.assert_array_equal(plots.attention_maps(model)[1], model.encoder[1].attention.weights)
    assert len(heatmaps(plots.attention(plots.attention_maps(model, "cross")[:, 0], range(6), ENGLISH))) == 12


def test_attention_maps_before_a_forward(model, rng):
    for kind in ("encoder", "decoder", "cross"):
        with pytest.raises(RuntimeError, match=r"call model\(src, tgt_in\) first"):
            plots.attention_maps(model, kind)
    model.encode(rng.integers(3, 11, (2, 5)))
    assert plots.attention_maps(model).shape == (2, 2, 3, 5, 5)
    with pytest.raises(RuntimeError, match="the decoder has no attention weights"):
        plots.attention_maps(model, "cross")


# --- masks ------------------------------------------------------------------------------------------------------------

MASKS = {
    "causal": masks.causal_mask(5), "window": masks.window_mask(6, 1) | masks.causal_mask(6),
    "padding": masks.padding_mask(np.array([[3, 4, 0, 0]]), 0)[0, 0], "none": np.zeros((2, 3), bool),
    "all": np.ones((2, 3), bool),
    "holes": np.array([[True, False, True, True, False], [False, True, True, False, True]]),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKS)
def test_mask_shows_what_is_hidden_in_colour_and_hatch(name):
    hidden = MASKS[name]
    figure = plots.mask(hidden)
    (axes,) = heatmaps(figure)
    image = axes.images[0]
    np.testing.assert_array_equal(image.get_array(), hidden)
    assert image.get_clim() == (0, 1)
    cells = [(s, t) for t in range(hidden.shape[0]) for s in range(hidden.shape[1])]
    (hatched,) = [patch for patch in axes.patches if patch.get_hatch()]
    np.testing.assert_array_equal(hatched.get_path().contains_points(cells).reshape(hidden.shape), hidden)
    for entry, is_hidden in zip(axes.get_legend().get_patches(), (False, True), strict=True):
        np.testing.assert_allclose(entry.get_facecolor(), image.to_rgba(np.array([is_hidden]))[0])
        assert bool(entry.get_hatch()) == is_hidden
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["seen", "hidden"]


FORMS = [masks.additive, lambda m: m * -1e8, lambda m: m * -1e4, lambda m: m[None, None]]


@pytest.mark.parametrize("form", FORMS, ids=range(4))
def test_mask_takes_every_form_of_a_mask(form):
    hidden = MASKS["window"]
    (axes,) = heatmaps(plots.mask(form(hidden)))
    np.testing.assert_array_equal(axes.images[0].get_array(), hidden)


def test_mask_is_labelled_with_words_or_positions():
    figure = plots.mask(masks.causal_mask(3, 5), keys=ENGLISH)
    (axes,) = heatmaps(figure)
    assert words_on(axes.xaxis) == dict(enumerate(ENGLISH))
    assert words_on(axes.yaxis) == {0: "0", 1: "1", 2: "2"}
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("key (looked at)", "query (looking)")


@pytest.fixture
def font(tmp_path, monkeypatch):
    """A font that has one letter beside those of matplotlib's own."""
    made = FontBuilder(1000)
    made.setupGlyphOrder([".notdef", "square"])
    made.setupCharacterMap({0x12031: "square"})
    pen = TTGlyphPen(None)
    for corner in ((50, 0), (50, 700), (950, 700), (950, 0)):
        (pen.lineTo if pen.points else pen.moveTo)(corner)
    pen.closePath()
    square = pen.glyph()
    made.setupGlyf({".notdef": square, "square": square})
    made.setupHorizontalMetrics({".notdef": (1000, 50), "square": (1500, 50)})
    made.setupHorizontalHeader(ascent=800, descent=-200)
    made.setupNameTable({"familyName": "A Square", "styleName": "Regular"})
    made.setupOS2()
    made.setupPost()
    made.save(tmp_path / "square.ttf")
    monkeypatch.setattr(fontManager, "ttflist", list(fontManager.ttflist))
    fontManager.addfont(tmp_path / "square.ttf")
    font_with.cache_clear()
    yield "A Square"
    font_with.cache_clear()


def test_letters_come_from_a_font_that_has_them(font, monkeypatch):
    """Also when the picture is saved, and the style in which it was drawn is over; the others are named once."""
    monkeypatch.setattr(fonts, "_has", lambda file, letter, has=fonts._has: letter != "は" and has(file, letter))
    words = ["Ω", "は", "Ω\U00012031"]
    picture = plots.attention(np.ones((3, 3)) / 3, words, words)
    assert list(words_on(heatmaps(picture)[0].yaxis).values()) == words
    for ending in ("png", "svg", "pdf"):
        with pytest.warns(UserWarning, match="^no font of this machine has は, which") as said:
            picture.savefig(io.BytesIO(), format=ending)
        assert len(said) == 1
    families = {text.get_text(): text.get_fontfamily() for text in heatmaps(picture)[0].get_yticklabels()}
    assert families["Ω\U00012031"] == ["DejaVu Sans", font] and families["Ω"] == ["DejaVu Sans"]
    assert text_width("\U00012031", 72) == pytest.approx(1.5, abs=0.1)  # of this font, not of a box


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


@pytest.mark.parametrize("width", [3, 4, 5, 6])
def test_a_long_title_has_lines_of_nearly_equal_length(width):
    title = "logit of Paris − Rome after 'The capital of France is', patched from 'The capital of Italy is'"
    lines = wrapped(title, width)
    assert " ".join(lines) == title and len(lines) > 1 and max(map(text_width, lines)) <= width
    assert max(map(len, lines)) - min(map(len, lines)) <= len("patched from")
