"""Pictures: they show the numbers they were given, under the right words, nothing clipped, nothing overlapping."""

import contextlib
import io
import math
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import FancyBboxPatch, Rectangle
from matplotlib.text import Text

from transformer_np import cli, masks, plots
from transformer_np import functional as F
from transformer_np.decoding import sampling_distribution
from transformer_np.models import (
    GPT,
    T5,
    Bert,
    BertConfig,
    GPTConfig,
    T5Config,
    Transformer,
    TransformerConfig,
    TransformerXL,
    TransformerXLConfig,
)
from transformer_np.tasks.text import TextGenerator
from transformer_np.tasks.translation import Translator

ENGLISH = "Lucas will travel in December".split()
PORTUGUESE = "Lucas vai viajar em dezembro".split()
TWELVE = "<bos> Lucas vai viajar para o Brasil em dezembro com amigos <eos>".split()


@pytest.fixture
def rng():
    return np.random.default_rng(0)


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


# --- layout -----------------------------------------------------------------------------------------------------------


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


ATTENTION_SIZES = {
    "5 words": ((5, 5), PORTUGUESE, ENGLISH),
    "12 words": ((12, 12), TWELVE, TWELVE),
    "1 × 1": ((1, 1), ["a"], ["antidisestablishmentarianism"]),
    "1 × 12": ((1, 12), ["a"], TWELVE),
    "4 heads": ((4, 5, 5), PORTUGUESE, ENGLISH),
    "4 heads of 12": ((4, 12, 12), TWELVE, TWELVE),
    "5 heads, one word": ((5, 1, 5), ["a"], ENGLISH),
    "2 × 4": ((2, 4, 5, 5), PORTUGUESE, ENGLISH),
    "4 heads of 30 × 1": ((4, 30, 1), TWELVE + TWELVE + TWELVE[:6], ["a"]),
    "leaning far to the left": ((3, 12), ["a", "b", "c"], ["institutionalisation", *"bcdefghijkl"]),
}


@pytest.mark.parametrize("size", ATTENTION_SIZES)
def test_attention_layout(rng, size):
    shape, queries, keys = ATTENTION_SIZES[size]
    title = "Cross-attention: where each Portuguese word looks in the English sentence"
    figure = plots.attention(weights_of(rng, *shape), queries, keys, title)
    assert check_layout(figure) > 8
    width, height = figure.get_size_inches()
    assert width < 10 and height < 9  # can be read in a README


@pytest.mark.parametrize("shown", [((5, 5), ENGLISH), ((12, 12), TWELVE), ((1, 5), None), ((100, 100), None)], ids=str)
def test_mask_layout(shown):
    (T, S), words = shown
    assert check_layout(plots.mask(masks.causal_mask(T, S), words, words)) > 6


@pytest.mark.parametrize("size", [(50, 64), (16, 14), (300, 1)], ids=str)
def test_positional_encoding_layout(size):
    assert check_layout(plots.positional_encoding(*size)) > 6


@pytest.mark.parametrize("steps", [1, 1000, 20_000])
def test_training_curve_layout(rng, steps):
    assert check_layout(plots.training_curve(history_of(rng, steps))) > 12


def test_the_layout_check_sees_a_fault(rng):
    figure = plots.attention(weights_of(rng, 5, 5), PORTUGUESE, ENGLISH)
    figure.set_size_inches(3, 3)
    with pytest.raises(AssertionError, match=r"leaves|overlaps|fit"):
        check_layout(figure)
    figure = plots.attention(weights_of(rng, 12, 12), TWELVE, TWELVE)
    for label in figure.axes[0].get_xticklabels():
        label.set_rotation(10)
    with pytest.raises(AssertionError, match="overlaps"):
        check_layout(figure)


# --- matplotlib, left in peace ----------------------------------------------------------------------------------------


def test_only_plots_imports_matplotlib_and_never_pyplot():
    code = """if True:
        import sys, transformer_np
        assert "matplotlib" not in sys.modules
        from transformer_np import plots
        plots.positional_encoding(3, 4)._repr_png_()
        assert "matplotlib.pyplot" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)
    package = Path(plots.__file__).parent.parent
    importing = [f for f in package.rglob("*.py") if re.search(r"^\s*(import|from) matplotlib", f.read_text(), re.M)]
    assert {file.relative_to(package).parts[0] for file in importing} == {"plots"}


def test_the_readers_style_is_neither_used_nor_changed(rng):
    def pictures():
        history = history_of(np.random.default_rng(1), 60)
        yield plots.attention(np.eye(2), ["a", "b"], ["c", "d"], "t")
        yield plots.mask(masks.causal_mask(2))
        yield plots.positional_encoding(3, 4)
        yield plots.training_curve(history)
        yield plots.wavelengths(20, 8)
        yield plots.head_view(np.eye(2)[None], ["a", "b"], ["c", "d"], title="t")
        yield plots.softmax_saturation()
        yield plots.decoding_steps([[("a", -0.5), ("b", -2.0)]], title="t")
        yield plots.sampling([1.0, 2.0], title="t")
        yield plots.gradient_flow(trained)
        yield plots.architecture(trained)

    trained = after_backward()
    expected = [png(figure) for figure in pictures()]
    own = {"font.size": 17, "font.family": "serif", "axes.grid": True, "xtick.direction": "in", "figure.dpi": 60}
    with matplotlib.style.context(["dark_background", own]):
        before = dict(matplotlib.rcParams)
        assert [png(figure) for figure in pictures()] == expected
        assert dict(matplotlib.rcParams) == before


def test_jupyter_gets_an_opaque_png_of_the_figures_size(rng):
    figure = plots.attention(weights_of(rng, 5, 5), PORTUGUESE, ENGLISH)
    assert isinstance(figure, Figure)
    pixels = imread(io.BytesIO(figure._repr_png_()))
    assert pixels.shape[:2] == tuple((figure.get_size_inches()[::-1] * 150).astype(int))
    assert (pixels[..., 3] == 1).all()
    assert (pixels[[0, 0, -1, -1], [0, -1, 0, -1]] == 1).all()  # white corners


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


@pytest.mark.parametrize(("scale", "limit"), [(0.3, 0.3), (7.0, 7.0), (0.0, 1.0), (0.95, 1.0)])
def test_a_table_of_ones_own_has_zero_in_the_middle(scale, limit):
    table = scale * np.array([[0.5, -0.25, 1.0], [0.0, 0.125, -0.5]])
    (axes,) = heatmaps(plots.positional_encoding(table=table))
    np.testing.assert_array_equal(axes.images[0].get_array(), table)
    assert axes.images[0].get_clim() == (-limit, limit)
    white = axes.images[0].to_rgba(np.zeros(1))[0, :3]
    assert white.min() > 0.95
    assert axes.images[0].to_rgba(np.array([limit]))[0, 0] > axes.images[0].to_rgba(np.array([limit]))[0, 2]  # red


def test_a_small_table_shows_its_values():
    (axes,) = heatmaps(plots.positional_encoding(3, 4))
    assert [text.get_text() for text in axes.texts] == [
        *("0", "1.00", "0", "1.00"),
        *("0.84", "0.54", "0.01", "1.00"),
        *("0.91", "−0.42", "0.02", "1.00"),
    ]


@pytest.mark.parametrize("shape", [(3,), (2, 3, 4), (0, 4)])
def test_positional_encoding_refuses_another_shape(shape):
    with pytest.raises(
        ValueError, match=rf"table must have the axes \(length, d_model\), got shape {re.escape(str(shape))}"
    ):
        plots.positional_encoding(table=np.ones(shape))


def test_positional_encoding_refuses_what_is_no_number():
    with pytest.raises(ValueError, match=r"table must be finite, got nan at index \(1, 0\)"):
        plots.positional_encoding(table=[[0.0, 1.0], [np.nan, np.inf]])
    with pytest.raises(TypeError, match="table must be an array of numbers"):
        plots.positional_encoding(table=[["a"]])
    with pytest.raises(ValueError, match="length"):
        plots.positional_encoding(0, 4)


# --- attention --------------------------------------------------------------------------------------------------------


def test_one_head(rng):
    weights = weights_of(rng, 5, 4)
    figure = plots.attention(weights, PORTUGUESE, ENGLISH[1:], title="Cost: $5 or $6")
    (axes,) = heatmaps(figure)
    np.testing.assert_array_equal(axes.images[0].get_array(), weights)
    assert axes.images[0].get_clim() == (0, 1)
    assert words_on(axes.yaxis) == dict(enumerate(PORTUGUESE))
    assert words_on(axes.xaxis) == dict(enumerate(ENGLISH[1:]))
    assert axes.get_ylim() == (4.5, -0.5)  # the first query on top
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("key (looked at)", "query (looking)")
    assert figure.get_suptitle() == "Cost: $5 or $6" and not figure._suptitle.get_parse_math()
    assert colour_bar(figure).get_ylabel() == "attention weight"
    assert colour_bar(figure).get_ylim() == (0, 1)
    assert axes.get_title() == ""


@pytest.mark.parametrize(("heads", "rows"), [(1, 1), (4, 1), (5, 2), (9, 3)])
def test_all_heads_of_a_layer(rng, heads, rows):
    weights = weights_of(rng, heads, 5, 4)
    figure = plots.attention(weights, PORTUGUESE, ENGLISH[1:])
    panels = heatmaps(figure)
    assert len(panels) == heads and len({round(axes.get_position().y0, 6) for axes in panels}) == rows
    for h, axes in enumerate(panels):
        np.testing.assert_array_equal(axes.images[0].get_array(), weights[h])
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


def test_all_layers(rng):
    weights = weights_of(rng, 2, 3, 5, 4)
    figure = plots.attention(weights, PORTUGUESE, ENGLISH[1:])
    panels = heatmaps(figure)
    for axes, panel in zip(panels, weights.reshape(6, 5, 4), strict=True):
        np.testing.assert_array_equal(axes.images[0].get_array(), panel)
        assert axes.images[0].get_clim() == (0, 1)
    assert [axes.get_title() for axes in panels] == ["head 1", "head 2", "head 3", "", "", ""]
    strips = [[text.get_text() for text in axes.texts if "layer" in text.get_text()] for axes in panels]
    assert strips == [[], [], ["layer 1"], [], [], ["layer 2"]]
    places = np.array([axes.get_position().p0 for axes in panels]).reshape(2, 3, 2)
    assert (np.diff(places[..., 0], axis=1) > 0).all() and (np.diff(places[..., 1], axis=0) < 0).all()
    assert [bool(words_on(axes.yaxis)) for axes in panels] == [True, False, False] * 2
    assert [bool(words_on(axes.xaxis)) for axes in panels] == [False] * 3 + [True] * 3
    colour_bar(figure)


def test_values_are_printed_where_there_is_room(rng):
    (axes,) = heatmaps(plots.attention([[1, 0], [0.004, 0.996]], ["a", "b"], ["c", "d"]))
    assert {text.get_position(): text.get_text() for text in axes.texts} == {
        (0, 0): "1.00",
        (1, 0): "0",
        (0, 1): "0.00",
        (1, 1): "1.00",
    }
    (axes,) = heatmaps(plots.attention(weights_of(rng, 30, 30), range(30), range(30)))
    assert not axes.texts


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


@pytest.mark.parametrize("shape", [(5, 4), (3, 5, 4), (2, 3, 5, 4)])
def test_the_words_must_fit_the_weights(rng, shape):
    weights = weights_of(rng, *shape)
    with pytest.raises(ValueError, match="queries must be 5 words, one for each row; got 4: Lucas, vai"):
        plots.attention(weights, PORTUGUESE[:4], ENGLISH[:4])
    with pytest.raises(ValueError, match="keys must be 4 words, one for each column; got 5: Lucas, will"):
        plots.attention(weights, PORTUGUESE, ENGLISH)
    with pytest.raises(TypeError, match="queries must be a list of words, got the string 'abcde'"):
        plots.attention(weights, "abcde", ENGLISH[:4])


@pytest.mark.parametrize("shape", [(5,), (1, 2, 3, 5, 5), (0, 5), (2, 0, 5, 5)])
def test_attention_refuses_another_shape(shape):
    with pytest.raises(ValueError, match=rf"weights must have the axes .*, got shape {re.escape(str(shape))}"):
        plots.attention(np.ones(shape), PORTUGUESE, ENGLISH)


def test_attention_refuses_what_are_no_weights(rng):
    with pytest.raises(ValueError, match=r"weights must lie in 0 … 1.*got -2 … 3"):
        plots.attention([[-2.0, 3.0]], ["a"], ["b", "c"])
    with pytest.raises(ValueError, match="weights must be finite"):
        plots.attention([[0.0, np.nan]], ["a"], ["b", "c"])
    plots.attention(np.float32([[0.0, 1 + 1e-6]]), ["a"], ["b", "c"])  # rounding


# --- attention of a model ---------------------------------------------------------------------------------------------


@pytest.fixture
def model():
    config = TransformerConfig(11, 13, d_model=12, num_heads=3, num_encoder_layers=2, num_decoder_layers=4, d_ff=10)
    return Transformer(config).eval()


def test_attention_maps(model, rng):
    model(rng.integers(3, 11, (2, 5)), rng.integers(3, 13, (2, 6)))
    for kind, shape in {"encoder": (2, 2, 3, 5, 5), "decoder": (4, 2, 3, 6, 6), "cross": (4, 2, 3, 6, 5)}.items():
        maps = plots.attention_maps(model, kind)
        assert maps.shape == shape
        np.testing.assert_allclose(maps.sum(-1), 1, rtol=1e-5)
    for i in range(4):
        np.testing.assert_array_equal(
            plots.attention_maps(model, "decoder")[i], model.decoder[i].self_attention.weights
        )
        np.testing.assert_array_equal(plots.attention_maps(model, "cross")[i], model.decoder[i].cross_attention.weights)
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


def test_attention_maps_says_what_it_cannot_show(model):
    with pytest.raises(ValueError, match="kind must be one of encoder, decoder, cross; got 'self'"):
        plots.attention_maps(model, "self")
    with pytest.raises(ValueError, match=r"model must have encoder layers.* SimpleNamespace has none"):
        plots.attention_maps(SimpleNamespace())
    config = TransformerConfig(11, 13, d_model=12, num_heads=3, num_encoder_layers=0, num_decoder_layers=1, d_ff=10)
    with pytest.raises(ValueError, match="model must have encoder layers"):
        plots.attention_maps(Transformer(config))


# --- masks ------------------------------------------------------------------------------------------------------------

MASKS = {
    "causal": masks.causal_mask(5),
    "window": masks.window_mask(6, 1) | masks.causal_mask(6),
    "padding": masks.padding_mask(np.array([[3, 4, 0, 0]]), 0)[0, 0],
    "none": np.zeros((2, 3), bool),
    "all": np.ones((2, 3), bool),
    "holes": np.array([[True, False, True, True, False], [False, True, True, False, True]]),
}


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


@pytest.mark.parametrize(
    "form", [masks.additive, lambda m: m * -1e8, lambda m: m * -1e4, lambda m: m[None, None]], ids=range(4)
)
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
    with pytest.raises(ValueError, match="queries must be 3 words, one for each row; got 5"):
        plots.mask(masks.causal_mask(3, 5), queries=ENGLISH)


def test_mask_refuses_what_is_no_mask():
    with pytest.raises(ValueError, match=r"mask must have the axes \(T, S\), got shape \(2, 3, 3\)"):
        plots.mask(np.zeros((2, 3, 3), bool))
    with pytest.raises(ValueError, match=r"mask must have the axes \(T, S\), got shape \(3,\)"):
        plots.mask(np.zeros(3, bool))
    with pytest.raises(TypeError, match=r"mask must be Boolean .* got int"):
        plots.mask(np.eye(3, dtype=int))
    for value in (0.5, -3.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"mask must be 0 .* or −inf"):
            plots.mask(np.array([[0.0, value]]))


# --- training ---------------------------------------------------------------------------------------------------------


def history_of(rng, steps):
    at = np.arange(steps)
    return SimpleNamespace(
        losses=(1 + 4 * np.exp(-at / 200) + rng.random(steps)).tolist(),
        learning_rates=(1e-3 * np.minimum(1, (at + 1) / 100)).tolist(),
        validation=[(step, 1.5 + 4 * np.exp(-step / 200)) for step in range(100, steps + 1, max(100, steps // 10))],
    )


def lines_of(axes):
    return {line.get_label(): line.get_xydata() for line in axes.lines}


def test_training_curve_with_everything(rng):
    history = history_of(rng, 500)
    figure = plots.training_curve(history)
    loss, rate = figure.axes
    lines = lines_of(loss)
    np.testing.assert_array_equal(lines["training, each step"], np.stack([np.arange(1, 501), history.losses], axis=1))
    np.testing.assert_array_equal(lines["validation"], history.validation)
    smooth = lines["mean of 11 steps"]
    brute = [np.mean(history.losses[max(0, i - 5) : i + 6]) for i in range(500)]
    np.testing.assert_allclose(smooth, np.stack([np.arange(1, 501), brute], axis=1), rtol=1e-12)
    np.testing.assert_array_equal(rate.lines[0].get_ydata(), history.learning_rates)
    assert loss.get_ylabel() == "loss (nats per token)"
    assert (rate.get_ylabel(), rate.get_xlabel()) == ("learning rate", "step")
    assert [text.get_text() for text in loss.get_legend().get_texts()] == list(lines)
    for axes, highest in ((loss, max(history.losses)), (rate, 1e-3)):
        low, high = axes.get_ylim()
        assert low == 0 and highest < high < 1.2 * highest
    assert loss.get_position().y0 > rate.get_position().y1 and loss.get_xlim() == rate.get_xlim()
    np.testing.assert_allclose(loss.get_xlim(), (1 - 0.02 * 499, 500 + 0.02 * 499))


def test_training_curve_with_less(rng):
    history = history_of(rng, 500)
    assert len(plots.training_curve(history, learning_rate=False).axes) == 1
    history.learning_rates, history.validation = [], []
    (loss,) = plots.training_curve(history, unit="nats per sentence").axes
    assert list(lines_of(loss)) == ["training, each step", "mean of 11 steps"]
    assert (loss.get_ylabel(), loss.get_xlabel()) == ("loss (nats per sentence)", "step")
    history.losses = history.losses[:7]
    (loss,) = plots.training_curve(history).axes
    assert list(lines_of(loss)) == ["training"]


def test_a_loss_that_is_not_finite_leaves_a_gap(rng):
    history = history_of(rng, 500)
    history.losses[200], history.losses[300:] = np.inf, [np.nan] * 200
    figure = plots.training_curve(history)
    smooth = lines_of(figure.axes[0])["mean of 11 steps"][:, 1]
    np.testing.assert_allclose(smooth[200], np.mean(history.losses[195:200] + history.losses[201:206]))
    assert np.isfinite(smooth[:305]).all() and np.isnan(smooth[305:]).all()
    assert figure.axes[0].get_ylim()[1] < 7
    png(figure)


def test_training_curve_refuses_a_history_that_does_not_fit(rng):
    history = history_of(rng, 20)
    for name, value in {"losses": [], "learning_rates": [1e-3] * 19, "validation": [1.0, 2.0]}.items():
        with pytest.raises(ValueError, match=rf"history\.{name} must be"):
            plots.training_curve(SimpleNamespace(**{**vars(history), name: value}))


# --- loss curves ------------------------------------------------------------------------------------------------------


def test_loss_curves():
    losses = {"library": [3.0, 2.0, 1.0], "yours": [3.0, 2.5]}
    (axes,) = plots.loss_curves(losses, unit="nats per sentence").axes
    lines = lines_of(axes)
    assert list(lines) == list(losses)
    for name, values in losses.items():
        np.testing.assert_array_equal(lines[name], [*enumerate(values, 1)])
    assert [line.get_linestyle() for line in axes.get_lines()] == ["-", "--"]  # one on top of the other: both are seen
    assert (axes.get_ylabel(), axes.get_ylim()[0]) == ("loss (nats per sentence)", 0)


@pytest.mark.parametrize("losses", [{}, {"a": []}, {"a": [[1.0]]}])
def test_loss_curves_of_nothing(losses):
    with pytest.raises(ValueError, match="losses"):
        plots.loss_curves(losses)


# --- wavelengths ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "d_model"), [(50, 64), (200, 512), (12, 5), (2, 2)])
def test_wavelengths(length, d_model):
    figure = plots.wavelengths(length, d_model)
    left, right = figure.axes
    encoding = F.sinusoidal_encoding(length, d_model, np.float64)
    period = right.lines[0].get_xydata()  # 2i, λ
    np.testing.assert_array_equal(period[:, 0], np.arange(0, d_model, 2))
    np.testing.assert_allclose(
        np.sin(2 * np.pi * 3 / period[:, 1]), F.sinusoidal_encoding(4, d_model)[3, 0::2], atol=1e-6
    )
    dots = right.collections[0].get_offsets().data
    shown = dots[:, 0].astype(int)
    assert shown[0] == 0 and shown[-1] == (d_model - 1) // 2 * 2
    assert set(map(tuple, dots)) <= set(map(tuple, period))
    curves = [line for line in left.lines if line.get_alpha() is None and line.get_linestyle() == "-"]
    for place, (curve, dimension) in enumerate(zip(curves, shown, strict=True)):
        positions, values = curve.get_data()
        at = np.interp(np.arange(length), positions, values) + 2.6 * place
        np.testing.assert_allclose(at, encoding[:, dimension], atol=0.03)
    names = [f"{d}, {d + 1}" if d + 1 < d_model else str(d) for d in shown]
    assert [label.get_text() for label in left.get_yticklabels()] == names
    assert right.get_legend().get_texts()[0].get_text() == f"{length} positions"
    check_layout(figure)


def test_wavelengths_need_a_pair_and_two_positions():
    with pytest.raises(ValueError, match="length must be at least 2, got 1"):
        plots.wavelengths(1)
    with pytest.raises(ValueError, match="d_model must be at least 2, got 1"):
        plots.wavelengths(8, 1)


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


@pytest.mark.parametrize("shape", [(5, 4), (1, 5, 4), (8, 5, 4), (12, 5, 4), (16, 5, 4)])
def test_lines_are_as_thick_as_the_weights(rng, shape):
    weights = weights_of(rng, *shape)
    weights[..., 2, 1] = 0  # behind a mask: no line
    figure = plots.head_view(weights, PORTUGUESE, ENGLISH[1:])
    heads = bundles(figure)
    panels = weights.reshape(-1, 5, 4)
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
    for wrong in (5, -1, "em", 1.0):
        with pytest.raises(ValueError, match="query must be None or a whole number in 0 … 4, got"):
            plots.head_view(weights, PORTUGUESE, ENGLISH[1:], query=wrong)


HEAD_VIEWS = {
    "5 words": ((5, 5), PORTUGUESE, ENGLISH),
    "8 heads of 12": ((8, 12, 12), TWELVE, TWELVE),
    "1 × 1": ((1, 1), ["a"], ["antidisestablishmentarianism"]),
    "12 heads, one word": ((12, 1, 5), ["a"], ENGLISH),
    "16 heads of 100 × 1": ((16, 100, 1), [f"word {i}" for i in range(100)], ["a"]),
}


@pytest.mark.parametrize("size", HEAD_VIEWS)
def test_head_view_layout(rng, size):
    shape, queries, keys = HEAD_VIEWS[size]
    figure = plots.head_view(weights_of(rng, *shape), queries, keys, title="Where each word looks, all heads in one")
    check_layout(figure)
    assert figure.get_size_inches()[0] < 10


def test_head_view_refuses_what_does_not_fit(rng):
    with pytest.raises(
        ValueError, match=r"weights must have the axes \(T, S\) or \(H, T, S\), got shape \(1, 1, 1, 1\)"
    ):
        plots.head_view(np.ones((1, 1, 1, 1)), ["a"], ["b"])
    with pytest.raises(ValueError, match="weights must lie in 0 … 1"):
        plots.head_view([[2.0]], ["a"], ["b"])
    with pytest.raises(ValueError, match="queries must be 5 words, one for each row; got 4"):
        plots.head_view(weights_of(rng, 5, 4), PORTUGUESE[:4], ENGLISH[:4])
    with pytest.raises(ValueError, match="keys must be 4 words, one for each column; got 5"):
        plots.head_view(weights_of(rng, 5, 4), PORTUGUESE, ENGLISH)


# --- the scale of the scores ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d_k", [1, 4, 64, 4096])
def test_softmax_saturation(d_k):
    scores = np.array([0.3, -1.2, 1.1, 0.0])
    figure = plots.softmax_saturation(scores, d_k)
    left, right = figure.axes
    curves = {line.get_label(): line for line in left.lines}
    for score in scores:
        scales, weights = curves[f"score {score:.2g}".replace("-", "−")].get_data()
        expected = np.exp(score * scales) / np.exp(np.outer(scales, scores)).sum(axis=1)
        np.testing.assert_allclose(weights, expected, rtol=1e-9)
    scales, norms = right.lines[0].get_data()
    for i in (0, 100, 200):
        y = F.softmax(scales[i] * scores)
        np.testing.assert_allclose(norms[i], np.linalg.norm(np.diag(y) - np.outer(y, y)), rtol=1e-6)
    (marks,) = [line for line in right.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(marks.get_xdata(), [1, d_k**0.5])
    np.testing.assert_allclose(
        np.log(marks.get_ydata()), np.interp(marks.get_xdata(), scales, np.log(norms)), atol=0.05
    )
    low, high = right.get_ylim()
    assert (low < marks.get_ydata()).all() and norms.max() < high
    for axes in (left, right):
        assert {text.get_text(): text.xy[0] for text in axes.texts} == {"÷ √d_k": 1, "not divided": d_k**0.5}
    check_layout(figure, on_panels=True)


def test_the_gradient_is_exact_where_it_is_almost_dead():
    scores = np.array([0.0, 1.0])
    scales, norms = plots.softmax_saturation(scores, 64).axes[1].lines[0].get_data()
    exact = 2 / (np.exp(scales[-1] / 2) + np.exp(-scales[-1] / 2)) ** 2  # 2 y (1 − y) for two scores
    np.testing.assert_allclose(norms[-1], exact, rtol=1e-6)


def test_softmax_saturation_refuses_what_makes_no_sense():
    for wrong, message in (
        ([1.0], "have .*two numbers"),
        ([[1.0, 2.0]], "have .*shape"),
        ([2.0, 2.0], "not all be equal"),
    ):
        with pytest.raises(ValueError, match=f"scores must {message}"):
            plots.softmax_saturation(wrong)
    with pytest.raises(ValueError, match="d_k must be at least 1, got 0"):
        plots.softmax_saturation(d_k=0)


# --- decoding steps ---------------------------------------------------------------------------------------------------


def test_likeliest(rng):
    logits, words = rng.normal(size=(3, 6)), list("abcdef")
    steps = plots.likeliest(logits, words, count=4)
    for row, step in zip(logits, steps, strict=True):
        p = np.exp(row) / np.exp(row).sum()
        assert [word for word, _ in step] == [words[i] for i in np.argsort(-p)[:4]]
        np.testing.assert_allclose([log_p for _, log_p in step], np.sort(np.log(p))[::-1][:4])
    assert plots.likeliest(logits)[0][0][0] == str(logits[0].argmax())
    assert len(plots.likeliest(logits, count=20)[0]) == 6
    with pytest.raises(ValueError, match=r"logits must have the axes \(T, V\), got shape \(6,\)"):
        plots.likeliest(logits[0])
    with pytest.raises(ValueError, match="words must be 6 words, one for each token of the vocabulary; got 5"):
        plots.likeliest(logits, words[:5])
    with pytest.raises(ValueError, match="count must be at least 1"):
        plots.likeliest(logits, words, 0)


def bars(axes):
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def test_decoding_steps():
    steps = [[("Lucas", np.log(0.9)), ("$A$", np.log(0.06))], [("vai", np.log(0.5)), ("foi", np.log(0.5)), ("e", -9.0)]]
    figure = plots.decoding_steps(steps, chosen=["Lucas", "foi"], title="Two steps")
    assert [axes.get_title() for axes in figure.axes] == ["step 1", "step 2"]
    for axes, step, taken in zip(figure.axes, steps, ("Lucas", "foi"), strict=True):
        np.testing.assert_allclose([bar.get_width() for bar in bars(axes)], [np.exp(log_p) for _, log_p in step])
        assert axes.get_xlim() == (0, 1)
        texts = [text.get_text() for text in axes.texts]
        assert texts[0::2] == [token for token, _ in step]
        colours = {bar.get_facecolor(): text for bar, text in zip(bars(axes), texts[0::2], strict=True)}
        (bold,) = {text.get_text() for text in axes.texts[0::2] if text.get_weight() == "bold"}
        assert bold == taken and len(colours) == 2
        (marked,) = [
            token
            for bar, token in zip(bars(axes), texts[0::2], strict=True)
            if [b.get_facecolor() for b in bars(axes)].count(bar.get_facecolor()) == 1 and token == taken
        ]
        assert marked == taken
    assert [text.get_text() for text in figure.axes[1].texts[1::2]] == ["50 %", "50 %", "< 0.1 %"]
    assert [text.get_text() for text in figure.axes[0].texts[1::2]] == ["90 %", "6.0 %"]
    assert figure.get_suptitle() == "Two steps"
    assert {t.get_text() for t in plots.decoding_steps(steps).axes[1].texts if t.get_weight() == "bold"} == {
        "vai",
        "50 %",
    }


@pytest.mark.parametrize(("T", "count"), [(1, 1), (6, 5), (30, 3)])
def test_decoding_steps_layout(rng, T, count):
    words = [*(f"word {i}" for i in range(30)), "antidisestablishmentarianism"]
    logits = rng.normal(size=(T, 31)) * 3
    logits[-1, -1] += 9
    figure = plots.decoding_steps(plots.likeliest(logits, words, count))
    check_layout(figure, on_panels=True)
    assert figure.get_size_inches()[0] < 9
    assert len(figure.axes) == T


def test_decoding_steps_refuses_what_makes_no_sense():
    for steps in ([], [[("a", -1.0)], []]):
        with pytest.raises(ValueError, match="steps must have a non-empty list of pairs"):
            plots.decoding_steps(steps)
    for value in (0.5, np.nan):
        with pytest.raises(ValueError, match=r"steps\[1\] must hold log-probabilities, 0 or below, got"):
            plots.decoding_steps([[("a", -1.0)], [("b", value)]])
    for chosen in ("a", ["a", "b"]):
        with pytest.raises(ValueError, match="chosen must be 1 tokens, one for each step; got"):
            plots.decoding_steps([[("a", -1.0)]], chosen)


# --- sampling ---------------------------------------------------------------------------------------------------------


def test_sampling_shows_the_distributions_that_are_drawn_from(rng):
    logits, words = rng.normal(size=9) * 2, [f"w{i}" for i in range(9)]
    settings = [{}, {"temperature": 0.5}, {"top_k": 3}, {"top_p": 0.8, "temperature": 2.0}]
    figure = plots.sampling(logits, words, settings, most=6, title="One distribution")
    order = np.argsort(-logits)[:6]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [words[i] for i in order]
    assert [axes.get_title() for axes in figure.axes] == [
        "as it is",
        "temperature 0.5",
        "top-k 3",
        "top-p 0.8\ntemperature 2",
    ]
    for axes, setting in zip(figure.axes, settings, strict=True):
        drawn, plain = axes.containers
        np.testing.assert_allclose([bar.get_width() for bar in drawn], sampling_distribution(logits, **setting)[order])
        np.testing.assert_allclose([bar.get_width() for bar in plain], F.softmax(logits)[order])
        assert axes.get_xlim() == figure.axes[0].get_xlim()
    assert [text.get_text() for text in figure.axes[2].texts].count("0") == 3
    check_layout(figure, on_panels=True)


@pytest.mark.parametrize(
    "words", [["a"], ["antidisestablishmentarianism", " the", "$x$"], [f"word {i}" for i in range(40)]]
)
def test_sampling_layout(rng, words):
    figure = plots.sampling(rng.normal(size=len(words)) * 3, words)
    check_layout(figure, on_panels=True)
    assert len(figure.axes) == 5 and figure.get_size_inches()[0] < 9


def test_sampling_refuses_what_makes_no_sense(rng):
    with pytest.raises(ValueError, match=r"logits must have the axes \(V,\), got shape \(2, 3\)"):
        plots.sampling(np.ones((2, 3)))
    with pytest.raises(ValueError, match="words must be 3 words, one for each token of the vocabulary; got 2"):
        plots.sampling(np.ones(3), ["a", "b"])
    with pytest.raises(ValueError, match=r"settings must be dicts with temperature, top_k, top_p; got \{'k': 3\}"):
        plots.sampling(np.ones(3), settings=[{"k": 3}])
    with pytest.raises(ValueError, match="settings must have at least one"):
        plots.sampling(np.ones(3), settings=[])
    with pytest.raises(ValueError, match="top_p must lie in"):
        plots.sampling(np.ones(3), settings=[{"top_p": 2}])
    with pytest.raises(ValueError, match="logits must be finite"):
        plots.sampling([1.0, np.inf])


# --- gradients --------------------------------------------------------------------------------------------------------


def after_backward(norm_first=False, layers=2):
    config = TransformerConfig(
        11, 13, d_model=12, num_heads=3, num_encoder_layers=layers, num_decoder_layers=1, d_ff=10, norm_first=norm_first
    )
    model, rng = Transformer(config), np.random.default_rng(3)
    _, probs = F.cross_entropy(
        model(rng.integers(3, 11, (2, 5)), rng.integers(3, 13, (2, 6))), rng.integers(3, 13, (2, 6))
    )
    model.backward(F.cross_entropy_backward(probs, rng.integers(3, 13, (2, 6))))
    return model


def test_gradient_norms():
    model = after_backward()
    norms = plots.gradient_norms(model)
    assert list(norms) == ["src input", "encoder 1", "encoder 2", "tgt input", "decoder 1", "output"]
    for layer in ("encoder 1", "encoder 2", "decoder 1"):
        assert list(norms[layer]) == ["attention", "norm", "feed-forward"]
    assert list(norms["src input"]) == ["embedding"] and list(norms["output"]) == ["output"]
    total = sum(norm**2 for parts in norms.values() for norm in parts.values())
    np.testing.assert_allclose(total, sum((p.grad.astype(float) ** 2).sum() for p in model.parameters()))
    attention = [p.grad.ravel() for p in model.encoder[1].attention.parameters()]
    np.testing.assert_allclose(norms["encoder 2"]["attention"], np.linalg.norm(np.concatenate(attention)), rtol=1e-5)
    both = [
        p.grad.ravel()
        for part in ("self", "cross")
        for p in getattr(model.decoder[0], f"{part}_attention").parameters()
    ]
    np.testing.assert_allclose(norms["decoder 1"]["attention"], np.linalg.norm(np.concatenate(both)), rtol=1e-5)


def test_gradient_flow_of_one_model():
    model = after_backward()
    norms = plots.gradient_norms(model)
    figure = plots.gradient_flow(model)
    (axes,) = figure.axes
    layers = [label.get_text() for label in axes.get_xticklabels()]
    assert layers == list(norms) and axes.get_yscale() == "log"
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["embedding", "attention", "feed-forward", "norm", "output"]
    colours = {line.get_label(): line.get_color() for line in axes.lines if line.get_label() in labels}
    for part in labels:
        drawn = {}
        for line in axes.lines:
            if line.get_color() == colours[part] and line.get_label() not in labels:
                drawn |= {layers[int(x)]: y for x, y in line.get_xydata() if np.isfinite(y)}
        assert drawn == {layer: parts[part] for layer, parts in norms.items() if part in parts}
    check_layout(figure)


def test_gradient_flow_compares_models():
    models = {"after": after_backward(), "first": after_backward(norm_first=True, layers=4)}
    figure = plots.gradient_flow(models)
    (axes,) = figure.axes
    layers = [label.get_text() for label in axes.get_xticklabels()]
    stack = [f"encoder {i}" for i in range(1, 5)]
    assert layers == ["src input", *stack, "encoder norm", "tgt input", "decoder 1", "decoder norm", "output"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["after", "first"]
    for place, model in enumerate(models.values()):
        norms = plots.gradient_norms(model)
        colour = axes.get_legend().get_lines()[place].get_color()
        points = [xy for line in axes.lines if line.get_color() == colour for xy in line.get_xydata()]
        drawn = {layers[int(x)]: y for x, y in points if np.isfinite(y)}
        assert drawn.keys() == norms.keys()
        for layer, parts in norms.items():
            np.testing.assert_allclose(drawn[layer], np.linalg.norm(list(parts.values())))
    longest = max((line for line in axes.lines), key=lambda line: len(line.get_xdata()))
    assert len(longest.get_xdata()) == 4  # the four encoder blocks, and nothing else joined to them
    check_layout(figure)


def test_gradient_flow_of_what_has_no_gradient():
    with pytest.raises(RuntimeError, match=r"every gradient is 0: call model.backward\(dlogits\) first"):
        plots.gradient_flow(Transformer(TransformerConfig(11, 13, d_model=12, num_heads=3, d_ff=10)))
    model = after_backward()
    model.decoder[0].feed_forward.w1.grad[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"the gradient of decoder.0.feed_forward.w1 is not finite"):
        plots.gradient_flow(model)
    with pytest.raises(TypeError, match="model must be a module with parameters, got int"):
        plots.gradient_flow(3)
    with pytest.raises(ValueError, match="model must be a model or a dict with at least one"):
        plots.gradient_flow({})


# --- architecture -----------------------------------------------------------------------------------------------------

SMALL = {"d_model": 12, "num_heads": 3, "d_ff": 10}


def texts_of(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def boxes_of(figure):
    """{title: (detail, parameters)} of the boxes of each column, in the order in which they were drawn."""
    (axes,) = figure.axes
    found = []
    for patch in axes.patches:
        if isinstance(patch, FancyBboxPatch):
            x, y, w, h = patch.get_bbox().bounds
            inside = [t for t in axes.texts if x < t.get_position()[0] < x + w and y < t.get_position()[1] < y + h]
            found.append([text.get_text() for text in inside])
    return found


def drawn_parameters(figure, model):
    """The sum of the numbers in the boxes, those in a block as often as there are blocks."""
    (axes,) = figure.axes
    frames = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    labels = [re.match(r"(\d+) (\w+) blocks?, ([\d,]+) parameters", text) for text in texts_of(figure)]
    times = [int(label[1]) for label in labels if label]
    total = 0
    for text in axes.texts:
        if re.fullmatch(r"\d{1,3}(,\d{3})*", text.get_text()):
            inside = [
                n for frame, n in zip(frames, times, strict=True) if frame.get_bbox().contains(*text.get_position())
            ]
            total += int(text.get_text().replace(",", "")) * (inside[0] if inside else 1)
    return total


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_architecture_of_an_encoder_decoder(rng, norm_first, tied):
    size = 13 if tied else 11
    config = TransformerConfig(
        size, 13, num_encoder_layers=2, num_decoder_layers=4, norm_first=norm_first, tie_embeddings=tied, **SMALL
    )
    model = Transformer(config)
    before = texts_of(plots.architecture(model))
    assert {"(B, S)", "(B, T)", "(B, S, 12)", "(B, T, 12)", "(B, T, 13)"} <= set(before)
    assert {"weights (B, 3, S, S)", "weights (B, 3, T, T)", "weights (B, 3, T, S)"} <= set(before)
    model(rng.integers(3, 11, (2, 5)), rng.integers(3, 13, (2, 6)))
    figure = plots.architecture(model)
    texts = texts_of(figure)
    shapes = {name: array.shape for name, array in model.intermediates().items()}
    for name in (
        "encoder.1.attention.weights",
        "decoder.3.self_attention.weights",
        "decoder.0.cross_attention.weights",
    ):
        assert texts.count(f"weights {shapes[name]}") == 1
    assert f"{shapes['src_input.embedding.ids']}" in texts and f"{shapes['tgt_input.embedding.ids']}" in texts
    assert texts.count(f"{shapes['encoder.0.attention.x']}") == texts.count("(2, 5, 12)") >= 5
    assert texts.count(f"{shapes['output.x']}") >= 7 and texts.count("(2, 6, 13)") == 1
    assert not any(letter in text for text in texts for letter in ("B,", "T,", "S,"))
    assert texts.count("tied") == (2 if tied else 0)
    blocks = {block.num_parameters() for block in (*model.encoder, *model.decoder)}
    for number in blocks:
        assert sum(f"{number:,} parameters each" in text for text in texts) == 1
    assert sum(text.startswith("Add") for text in texts) == 5 and ("Add" in texts) == norm_first
    assert drawn_parameters(figure, model) == model.num_parameters()
    assert figure.get_suptitle() == f"Transformer: {model.num_parameters():,} parameters"
    check_layout(figure, on_panels=True)


def test_architecture_of_a_t5():
    model = T5(T5Config(11, 12, 3, 5, 2, 4, 10, num_buckets=6, max_distance=5))
    figure = plots.architecture(model)
    texts = texts_of(figure)
    assert drawn_parameters(figure, model) == model.num_parameters()
    assert texts.count("RMS norm") == 2 + 3 + 2 and "11 × 12; 6 × 3" in texts  # the bias counts once
    own = model.encoder[0].num_parameters() - 6 * 3
    assert f"2 encoder blocks, {own:,} parameters each" in texts
    check_layout(figure, on_panels=True)


MODELS = {
    "gpt": lambda: GPT(GPTConfig(11, max_len=8, num_layers=2, **SMALL)),
    "gpt, one layer": lambda: GPT(GPTConfig(11, max_len=8, num_layers=1, tie_embeddings=False, bias=False, **SMALL)),
    "bert": lambda: Bert(BertConfig(11, max_len=8, num_layers=3, num_classes=3, **SMALL)),
    "bert, no classes": lambda: Bert(BertConfig(11, max_len=8, num_layers=1, **SMALL)),
    "bert, pooler": lambda: Bert(BertConfig(11, max_len=8, num_layers=2, mlm_head=False, **SMALL)),
    "bert, bare": lambda: Bert(BertConfig(11, max_len=8, num_layers=2, mlm_head=False, pooler=False, **SMALL)),
    "xl": lambda: TransformerXL(TransformerXLConfig(11, mem_len=4, num_layers=2, **SMALL)),
}


@pytest.mark.parametrize("name", MODELS)
def test_architecture_of_its_relatives(rng, name):
    model = MODELS[name]()
    letters = texts_of(plots.architecture(model))
    assert any("(B, " in text for text in letters) and not any("(2, " in text for text in letters)
    out = model(rng.integers(3, 11, (2, 5)))
    figure = plots.architecture(model)
    texts = texts_of(figure)
    weights = model.blocks[0].attention.weights
    assert f"weights {weights.shape}" in texts and "(2, 5)" in texts and texts.count("(2, 5, 12)") >= 5
    if not name.startswith("bert"):
        assert f"{(out[0] if name == 'xl' else out).shape}" in texts
    assert drawn_parameters(figure, model) == model.num_parameters()
    assert any("(2, 3)" in text for text in texts) == (name == "bert")
    each = " each" if len(model.blocks) > 1 else ""
    (label,) = [text for text in texts if "block" in text]
    assert label.startswith(f"{len(model.blocks)} ") and label.endswith(
        f"{model.blocks[0].num_parameters():,} parameters{each}"
    )
    check_layout(figure, on_panels=True)


def test_architecture_of_the_base_model_fits_its_boxes():
    config = TransformerConfig(37_000, 37_000, num_encoder_layers=1, num_decoder_layers=1, tie_embeddings=True)
    figure = plots.architecture(Transformer(config))
    check_layout(figure, on_panels=True)
    assert max(map(len, boxes_of(figure))) == 3  # title, detail, parameters; nothing of another box
    assert ["Feed-forward", "512 → 2048 → 512", "2,099,712"] in boxes_of(figure)


def test_architecture_of_something_else():
    with pytest.raises(TypeError, match="model must be a Transformer, T5, GPT, Bert or TransformerXL, got int"):
        plots.architecture(3)


# --- on the command line ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with a tiny translator, "tr", and a tiny GPT, "gpt"."""
    folder = tmp_path_factory.mktemp("plots")
    (folder / "pairs.tsv").write_text("".join(f"{s} {t}\t{t} {s}\n" for s in "abcd" for t in "efgh"), encoding="utf-8")
    (folder / "text.txt").write_text("the cat sat on the mat. " * 40, encoding="utf-8")
    sizes = "--steps 4 --batch-size 4 --layers 2 --heads 2 --d-model 8 --d-ff 10 --warmup 2".split()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for kind, data in (("translate", f"--pairs {folder}/pairs.tsv"), ("gpt", f"--text {folder}/text.txt")):
            name = "tr" if kind == "translate" else "gpt"
            assert cli.main(["train", kind, *sizes, *data.split(), "--out", str(folder / name)]) == 0
    return folder


@pytest.fixture
def drawn(monkeypatch):
    """(name of the function, arguments) of every call into plots."""
    calls = []

    def watch(name, real):
        monkeypatch.setattr(plots, name, lambda *a, **k: calls.append((name, a, k)) or real(*a, **k))

    pictures = "wavelengths softmax_saturation architecture gradient_flow decoding_steps sampling head_view"
    for name in pictures.split():
        watch(name, getattr(plots, name))
    return calls


def draw(capsys, folder, *arguments):
    """Exit code and the last line of stderr, of `transformer-np plot …` in that folder."""
    try:
        code = cli.main(["plot", *map(str, arguments), "-o", str(folder / "picture.png")])
    except SystemExit as stop:
        code = stop.code
    return code, capsys.readouterr().err.strip().rpartition("\n")[2]


def test_pictures_that_need_no_run(capsys, tmp_path, drawn):
    assert draw(capsys, tmp_path, "wavelengths", "--length", 9, "--d-model", 6) == (0, "")
    assert draw(capsys, tmp_path, "saturation", "--d-k", 16) == (0, "")
    assert draw(capsys, tmp_path, "gradients", "--layers", 2) == (0, "")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    (waves, _), (saturation, _, options), (flow, (models,), _) = (drawn[0][:2], drawn[1], drawn[2])
    assert (waves, drawn[0][1]) == ("wavelengths", (9, 6))
    assert (saturation, options) == ("softmax_saturation", {"d_k": 16})
    after, first = models.values()
    assert flow == "gradient_flow" and not after.config.norm_first and first.config.norm_first
    assert len(after.encoder) == len(first.decoder) == 2


def test_heads_on_the_command_line(capsys, runs, drawn):
    assert draw(capsys, runs, "heads", "a e", "--model", runs / "tr", "--kind", "encoder", "--word", 2) == (0, "")
    assert draw(capsys, runs, "heads", "a e", "--model", runs / "tr", "--layer", 1, "--head", 2) == (0, "")
    (_, (weights, queries, keys, query), _), (_, (one, *_), _) = drawn
    assert weights.shape == (2, 2, 2) and queries == keys == ["a", "e"] and query == 1
    assert one.ndim == 2
    code, message = draw(capsys, runs, "heads", "a e", "--model", runs / "tr", "--kind", "encoder", "--word", 3)
    assert code == 2 and "--word must lie in 1 … 2, got 3" in message
    code, message = draw(capsys, runs, "heads", "a e", "--model", runs / "tr", "--layer", 3)
    assert code == 2 and "--layer must lie in 1 … 2, got 3" in message


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_translator_attention(runs, kind):
    translator = Translator.load(runs / "tr")
    source, target = translator.attention("a e")
    read = ["<bos>", *target[:-1]]  # the decoder's input
    words = {"encoder": (source, source), "decoder": (target, read), "cross": (target, source)}[kind]
    weights, *found = plots.translator_attention(translator, "a e", kind)
    assert tuple(found) == words and weights.shape == (2, 2, *map(len, words))
    np.testing.assert_array_equal(weights, plots.attention_maps(translator.model, kind)[:, 0])


def test_steps_on_the_command_line(capsys, runs, drawn):
    assert draw(capsys, runs, "steps", "a e", "--model", runs / "tr", "--candidates", 4) == (0, "")
    ((name, (steps,), _),) = drawn
    assert name == "decoding_steps" and all(len(step) == 4 for step in steps)
    code, message = draw(capsys, runs, "steps", "a e", "--model", runs / "tr", "--candidates", 0)
    assert code == 2 and "--candidates must be at least 1, got 0" in message


def test_sampling_on_the_command_line(capsys, runs, drawn):
    assert draw(capsys, runs, "sampling", "the ca", "--model", runs / "gpt") == (0, "")
    ((name, (logits, words), _),) = drawn
    assert name == "sampling" and len(logits) == len(words) and {"t", "c", "."} <= set(words)
    generator = TextGenerator.load(runs / "gpt")
    np.testing.assert_allclose(logits, generator.model(np.array([generator.encode("the ca")]))[0, -1], rtol=1e-5)


def test_architecture_on_the_command_line(capsys, runs, drawn):
    assert draw(capsys, runs, "architecture", "--model", runs / "gpt") == (0, "")
    ((_, (model,), _),) = drawn
    assert isinstance(model, GPT) and model.config.d_model == 8
    code, message = draw(capsys, runs, "architecture", "--model", runs / "nowhere")
    assert code == 2 and "nowhere" in message
