"""Pictures of every kind: nothing clipped, nothing overlapping, matplotlib left in peace; and their commands."""

import inspect
import io
import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread
from reading import ENGLISH, PORTUGUESE, TWELVE, after_backward, check_layout, history_of, png, weights_of, words_on
from shared import call, few_of, python

from transformer_np import masks, plots
from transformer_np.inspection.explorer.page import FOLDER
from transformer_np.models import GPT, T5, T5Config
from transformer_np.plots import style
from transformer_np.tasks.text import TextGenerator
from transformer_np.tasks.translation import Translator

# --- layout -----------------------------------------------------------------------------------------------------------


WORDS = [f"word {i}" for i in range(100)]
LONGEST = "antidisestablishmentarianism"
TITLE = "Cross-attention: where each Portuguese word looks in the English sentence"
OF_ATTENTION = {  # a picture of random weights: their shape, queries, keys
    "5 words": (plots.attention, (5, 5), PORTUGUESE, ENGLISH), "12 words": (plots.attention, (12, 12), TWELVE, TWELVE),
    "1 × 1": (plots.attention, (1, 1), ["a"], [LONGEST]), "1 × 12": (plots.attention, (1, 12), ["a"], TWELVE),
    "4 heads": (plots.attention, (4, 5, 5), PORTUGUESE, ENGLISH),
    "4 heads of 12": (plots.attention, (4, 12, 12), TWELVE, TWELVE),
    "5 heads, one word": (plots.attention, (5, 1, 5), ["a"], ENGLISH),
    "2 × 4": (plots.attention, (2, 4, 5, 5), PORTUGUESE, ENGLISH),
    "4 heads of 30 × 1": (plots.attention, (4, 30, 1), WORDS[:30], ["a"]),
    "leaning far to the left": (plots.attention, (3, 12), ["a", "b", "c"], ["institutionalisation", *"bcdefghijkl"]),
    "lines of 5 words": (plots.head_view, (5, 5), PORTUGUESE, ENGLISH),
    "lines of 8 heads of 12": (plots.head_view, (8, 12, 12), TWELVE, TWELVE),
    "lines of 1 × 1": (plots.head_view, (1, 1), ["a"], [LONGEST]),
    "lines of 12 heads, one word": (plots.head_view, (12, 1, 5), ["a"], ENGLISH),
    "lines of 16 heads of 100 × 1": (plots.head_view, (16, 100, 1), WORDS, ["a"]),
}  # fmt: skip
OTHERS = {  # how to draw a picture, and the least number of texts beside its panels; None: text belongs on the panels
    "mask of 5": (lambda rng: plots.mask(masks.causal_mask(5), ENGLISH, ENGLISH), 7),
    "mask of 12": (lambda rng: plots.mask(masks.causal_mask(12), TWELVE, TWELVE), 7),
    "mask of 1 × 5": (lambda rng: plots.mask(masks.causal_mask(1, 5)), 7),
    "mask of 100": (lambda rng: plots.mask(masks.causal_mask(100)), 7),
    "positions": (lambda rng: plots.positional_encoding(50, 64), 7),
    "few positions": (lambda rng: plots.positional_encoding(16, 14), 7),
    "positions of one feature": (lambda rng: plots.positional_encoding(300, 1), 7),
    "one step": (lambda rng: plots.training_curve(history_of(rng, 1)), 13),
    "1,000 steps": (lambda rng: plots.training_curve(history_of(rng, 1000)), 13),
    "20,000 steps": (lambda rng: plots.training_curve(history_of(rng, 20_000)), 13),
    "logit lens": (lambda rng: plots.logit_lens(rng.normal(size=(4, 3, 30)), WORDS[:3]), 1),
    "logit lens of one word": (lambda rng: plots.logit_lens(rng.normal(size=(1, 1, 2)), ["a"]), 1),
    "one decoding step": (lambda rng: plots.decoding_steps(hesitating(rng, 1, 1)), None),
    "6 decoding steps": (lambda rng: plots.decoding_steps(hesitating(rng, 6, 5)), None),
    "30 decoding steps": (lambda rng: plots.decoding_steps(hesitating(rng, 30, 3)), None),
    "sampling of one word": (lambda rng: plots.sampling([3.0], ["a"]), None),
    "sampling of odd words": (lambda rng: plots.sampling(rng.normal(size=3), [LONGEST, " the", "$x$"]), None),
    "sampling of 40 words": (lambda rng: plots.sampling(3 * rng.normal(size=40), WORDS[:40]), None),
    "map of 3 words": (lambda rng: plots.word_map(["a", LONGEST, "$x$"], rng.normal(size=(3, 2)), title=TITLE), None),
    "map of 100 words": (lambda rng: plots.word_map(WORDS, rng.normal(size=(100, 9)), title=TITLE), None),
}  # fmt: skip


def hesitating(rng, T, count):
    """T steps with `count` words each, a long one among those of the last."""
    logits = rng.normal(size=(T, 31)) * 3
    logits[-1, -1] += 9
    return plots.likeliest(logits, [*WORDS[:30], LONGEST], count)


@pytest.mark.parametrize("name", few_of(zip(OF_ATTENTION), [("5 words",), ("2 × 4",)]))
def test_attention_layout(rng, name):
    draw, shape, queries, keys = OF_ATTENTION[name]
    figure = draw(weights_of(rng, *shape), queries, keys, title=TITLE)
    assert check_layout(figure) > (4 if draw is plots.head_view else 8)
    width, height = figure.get_size_inches()
    assert width < 10 and height < (9 if draw is plots.attention else 30)  # can be read in a README


@pytest.mark.parametrize("name", few_of(zip(OTHERS), [("one decoding step",), ("6 decoding steps",)]))
def test_layout(rng, name):
    draw, texts = OTHERS[name]
    figure = draw(rng)
    assert check_layout(figure, on_panels=texts is None) >= (texts or 1)
    assert figure.get_size_inches()[0] < 9


@pytest.mark.parametrize("draw", [
    lambda: plots.positional_encoding(1, 4),
    lambda: plots.relative_bias(T5(T5Config(9, d_model=4, num_heads=1, num_encoder_layers=1, num_decoder_layers=1)), 1),
])  # fmt: skip
def test_one_row_has_no_half_positions(draw):
    figure = draw()
    figure.draw_without_rendering()
    ticks = [tick for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis) for tick in words_on(axis)]
    assert ticks and all(tick == round(tick) for tick in ticks)


@pytest.mark.long
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


@pytest.mark.long
def test_only_plots_imports_matplotlib_and_never_pyplot():
    code = """if True:
        import sys, transformer_np
        assert "matplotlib" not in sys.modules
        from transformer_np import plots
        plots.positional_encoding(3, 4)._repr_png_()
        assert "matplotlib.pyplot" not in sys.modules
    """
    python("-c", code, check=True)
    package = Path(plots.__file__).parent.parent
    importing = [f for f in package.rglob("*.py") if re.search(r"^\s*(import|from) matplotlib", f.read_text(), re.M)]
    assert {file.relative_to(package).parts[0] for file in importing} == {"plots"}


PICTURES = {
    "attention": lambda: plots.attention(np.eye(2), ["a", "b"], ["c", "d"], "t"),
    "training curve": lambda: plots.training_curve(history_of(np.random.default_rng(1), 60)),
    "architecture": lambda: plots.architecture(after_backward()),
    "mask": lambda: plots.mask(masks.causal_mask(2)),
    "positional encoding": lambda: plots.positional_encoding(3, 4),
    "wavelengths": lambda: plots.wavelengths(20, 8),
    "head view": lambda: plots.head_view(np.eye(2)[None], ["a", "b"], ["c", "d"], title="t"),
    "saturation": plots.softmax_saturation,
    "decoding steps": lambda: plots.decoding_steps([[("a", -0.5), ("b", -2.0)]], title="t"),
    "sampling": lambda: plots.sampling([1.0, 2.0], title="t"),
    "gradient flow": lambda: plots.gradient_flow(after_backward()),
}


WRONG = [None, 3, 2.5, True, "text", [], {}, [None], np.zeros(3), object()]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda it: type(it).__name__)
def test_what_cannot_be_drawn_is_named(wrong):
    for name in plots.__all__:
        function = getattr(plots, name)
        needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
        if needed and not (name == "sampling" and isinstance(wrong, np.ndarray)):
            with pytest.raises((TypeError, ValueError), match=" must "):
                pytest.fail(f"{name} took {function(*[wrong] * len(needed))}")


@pytest.mark.parametrize(
    "picture",  # three kinds in the long run, all before a release
    [
        pytest.param(draw, id=name, marks=pytest.mark.release if i % 4 else pytest.mark.long)
        for i, (name, draw) in enumerate(PICTURES.items())
    ],
)
def test_the_readers_style_is_neither_used_nor_changed(picture):
    expected = png(picture())
    own = {"font.size": 17, "font.family": "serif", "axes.grid": True, "xtick.direction": "in", "figure.dpi": 60}
    with matplotlib.style.context(["dark_background", own]):
        before = dict(matplotlib.rcParams)
        assert png(picture()) == expected
        assert dict(matplotlib.rcParams) == before


@pytest.mark.long
def test_jupyter_gets_an_opaque_png_of_the_figures_size(rng):
    figure = plots.attention(weights_of(rng, 5, 5), PORTUGUESE, ENGLISH)
    assert isinstance(figure, Figure)
    pixels = imread(io.BytesIO(figure._repr_png_()))
    assert pixels.shape[:2] == tuple((figure.get_size_inches()[::-1] * 150).astype(int))
    assert (pixels[..., 3] == 1).all()
    assert (pixels[[0, 0, -1, -1], [0, -1, 0, -1]] == 1).all()  # white corners


# --- on the command line ----------------------------------------------------------------------------------------------


def draw(capsys, folder, *arguments):
    """Exit code and the last line of stderr, of `transformer-np plot …` in that folder."""
    code, _, err = call(capsys, "plot", *arguments, "-o", folder / "picture.png")
    return code, err.strip().rpartition("\n")[2]


@pytest.mark.long
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


@pytest.mark.long
def test_heads_on_the_command_line(capsys, small_runs, tmp_path, drawn):
    def heads(*how):
        return draw(capsys, tmp_path, "heads", "Ana sings", "--model", small_runs / "translate", *how)

    assert heads("--kind", "encoder", "--word", 2) == heads("--layer", 1, "--head", 2) == (0, "")
    (_, (weights, queries, keys, query), _), (_, (one, *_), _) = drawn
    assert weights.shape == (2, 2, 2) and queries == keys == ["Ana", "sings"] and query == 1
    assert one.ndim == 2
    for how, message in (
        (("--kind", "encoder", "--word", 3), "--word must lie in 1 … 2, got 3"),
        (("--layer", 3), "--layer must lie in 1 … 2, got 3"),
    ):
        code, said = heads(*how)
        assert code == 2 and message in said


@pytest.mark.long
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_translator_attention(small_runs, kind):
    translator = Translator.load(small_runs / "translate")
    source, target = translator.attention("Ana sings")
    read = ["<bos>", *target[:-1]]  # the decoder's input
    chosen = [f"→ {word}" for word in target]  # what a row of the decoder is about to write
    words = {"encoder": (source, source), "decoder": (chosen, read), "cross": (chosen, source)}[kind]
    weights, *found = plots.translator_attention(translator, "Ana sings", kind)
    assert tuple(found) == words and weights.shape == (2, 2, *map(len, words))
    np.testing.assert_array_equal(weights, plots.attention_maps(translator.model, kind)[:, 0])


def test_steps_on_the_command_line(capsys, small_runs, tmp_path, drawn):
    steps = "steps", "Ana sings", "--model", small_runs / "translate", "--candidates"
    assert draw(capsys, tmp_path, *steps, 4) == (0, "")
    ((name, (steps_drawn,), _),) = drawn
    assert name == "decoding_steps" and all(len(step) == 4 for step in steps_drawn)
    code, message = draw(capsys, tmp_path, *steps, 0)
    assert code == 2 and "--candidates must be at least 1, got 0" in message


@pytest.mark.long
def test_sampling_and_architecture_on_the_command_line(capsys, small_runs, tmp_path, drawn):
    assert draw(capsys, tmp_path, "sampling", "the cat", "--model", small_runs / "gpt") == (0, "")
    ((name, (logits, words), _),) = drawn
    assert name == "sampling" and len(logits) == len(words) and {"t", "c", "s"} <= set(words)
    generator = TextGenerator.load(small_runs / "gpt")
    np.testing.assert_allclose(logits, generator.model(np.array([generator.encode("the cat")]))[0, -1], rtol=1e-5)
    assert draw(capsys, tmp_path, "architecture", "--model", small_runs / "gpt") == (0, "")
    _, (_, (model,), _) = drawn
    assert isinstance(model, GPT) and model.config.d_model == 16
    code, message = draw(capsys, tmp_path, "architecture", "--model", small_runs / "nowhere")
    assert code == 2 and "nowhere" in message


def test_pages_and_pictures_have_the_same_colours():
    css = (FOLDER / "live_page/page.css").read_text("utf-8")
    blocks = dict(zip(("light", "dark"), re.findall(r":root \{(.*?)\}", css, re.DOTALL), strict=True))
    for theme, low, high in (("light", 0.1, 0.9), ("dark", 0.3, 0.7)):
        expected = style.PAGE_COLOURS[theme]
        assert dict(re.findall(r"--(neg|pos|weight): (#\w+);", blocks[theme])) == expected
        ends = [to_hex(colormaps[style.SIGNED](end)) for end in (low, high)]
        for name, end in zip(("neg", "pos"), ends, strict=True):
            assert np.abs(np.subtract(to_rgb(expected[name]), to_rgb(end))).max() < 0.02
        assert expected["weight"] in style.HEAD_COLOURS
    steps = re.search(r'VIRIDIS = "(.*?)"', (FOLDER / "live_page/drawing.js").read_text("utf-8"))[1].split()
    wanted = colormaps[style.WEIGHTS](np.linspace(0, 1, len(steps)))[:, :3]
    np.testing.assert_allclose([to_rgb(f"#{step}") for step in steps], wanted, rtol=0, atol=0.01)
