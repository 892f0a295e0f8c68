"""Distributions: wavelengths, saturation, what a model hesitates between, sampling; a class and its homework."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.patches import Rectangle
from reading import check_layout

from transformer_np import functional as F
from transformer_np import plots
from transformer_np.decoding import sampling_distribution


@pytest.mark.long
@pytest.mark.parametrize(("length", "d_model"), [(50, 64), (200, 512), (12, 5), (2, 2)])
def test_wavelengths(length, d_model):
    figure = plots.wavelengths(length, d_model)
    left, right = figure.axes
    encoding = F.sinusoidal_encoding(length, d_model, np.float64)
    period = right.lines[0].get_xydata()  # 2i, λ
    np.testing.assert_array_equal(period[:, 0], np.arange(0, d_model, 2))
    sines = F.sinusoidal_encoding(4, d_model)[3, 0::2]
    np.testing.assert_allclose(np.sin(2 * np.pi * 3 / period[:, 1]), sines, atol=1e-6)
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


@pytest.mark.long
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
    (marks,) = [line.get_data() for line in right.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(marks[0], [1, d_k**0.5])
    np.testing.assert_allclose(np.log(marks[1]), np.interp(marks[0], scales, np.log(norms)), atol=0.05)
    low, high = right.get_ylim()
    assert (low < marks[1]).all() and norms.max() < high
    for axes in (left, right):
        assert {text.get_text(): text.xy[0] for text in axes.texts} == {"÷ √d_k": 1, "not divided": d_k**0.5}
    check_layout(figure, on_panels=True)


def test_the_gradient_is_exact_where_it_is_almost_dead():
    scores = np.array([0.0, 1.0])
    scales, norms = plots.softmax_saturation(scores, 64).axes[1].lines[0].get_data()
    exact = 2 / (np.exp(scales[-1] / 2) + np.exp(-scales[-1] / 2)) ** 2  # 2 y (1 − y) for two scores
    np.testing.assert_allclose(norms[-1], exact, rtol=1e-6)


def test_likeliest(rng):
    logits, words = rng.normal(size=(3, 6)), list("abcdef")
    steps = plots.likeliest(logits, words, count=4)
    for row, step in zip(logits, steps, strict=True):
        p = np.exp(row) / np.exp(row).sum()
        assert [word for word, _ in step] == [words[i] for i in np.argsort(-p)[:4]]
        np.testing.assert_allclose([log_p for _, log_p in step], np.sort(np.log(p))[::-1][:4])
    assert plots.likeliest(logits)[0][0][0] == str(logits[0].argmax())
    assert len(plots.likeliest(logits, count=20)[0]) == 6


def bars(axes):
    return [patch for patch in axes.patches if isinstance(patch, Rectangle)]


def test_decoding_steps():
    steps = [[("Lucas", np.log(0.9)), ("$A$", np.log(0.06))], [("vai", np.log(0.5)), ("foi", np.log(0.5)), ("e", -9.0)]]
    figure = plots.decoding_steps(steps, chosen=["Lucas", "foi"], title="Two steps")
    assert [axes.get_title() for axes in figure.axes] == ["step 1", "step 2"]
    for axes, step, taken in zip(figure.axes, steps, ("Lucas", "foi"), strict=True):
        np.testing.assert_allclose([bar.get_width() for bar in bars(axes)], [np.exp(log_p) for _, log_p in step])
        assert axes.get_xlim() == (0, 1)
        texts = [text.get_text() for text in axes.texts[0::2]]
        assert texts == [token for token, _ in step]
        assert [text.get_text() for text in axes.texts[0::2] if text.get_weight() == "bold"] == [taken]
        colours = [bar.get_facecolor() for bar in bars(axes)]
        assert len({*colours}) == 2 and colours.count(colours[texts.index(taken)]) == 1
    assert [text.get_text() for text in figure.axes[1].texts[1::2]] == ["50 %", "50 %", "< 0.1 %"]
    assert [text.get_text() for text in figure.axes[0].texts[1::2]] == ["90 %", "6.0 %"]
    assert figure.get_suptitle() == "Two steps"
    likeliest = plots.decoding_steps(steps).axes[1].texts
    assert {text.get_text() for text in likeliest if text.get_weight() == "bold"} == {"vai", "50 %"}


@pytest.mark.long
def test_sampling_shows_the_distributions_that_are_drawn_from(rng):
    logits, words = rng.normal(size=9) * 2, [f"w{i}" for i in range(9)]
    settings = [{}, {"temperature": 0.5}, {"top_k": 3}, {"top_p": 0.8, "temperature": 2.0}]
    figure = plots.sampling(logits, words, settings, most=6, title="One distribution")
    order = np.argsort(-logits)[:6]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [*(words[i] for i in order), "3 others"]
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["as it is", "temperature 0.5", "top-k 3", "top-p 0.8\ntemperature 2"]
    for axes, setting in zip(figure.axes, settings, strict=True):
        drawn, plain = axes.containers
        for bars, p in ((drawn, sampling_distribution(logits, **setting)), (plain, F.softmax(logits))):
            widths = [bar.get_width() for bar in bars]
            np.testing.assert_allclose(widths[:-1], p[order])
            np.testing.assert_allclose(sum(widths), 1)  # with the others
        assert axes.get_xlim() == figure.axes[0].get_xlim()
    assert [text.get_text() for text in figure.axes[2].texts].count("0") == 4
    check_layout(figure, on_panels=True)


def result(name, states, mistakes=()):
    return SimpleNamespace(exercise=name, states=states, mistakes=dict(mistakes))


@pytest.mark.long
def test_class_results_shows_the_numbers():
    long = "a mistake with a name that is far too long for the edge of a picture"
    results = [
        result("softmax", {"right": 3, "right for the lecture": 1, "wrong": 2}, {"no sum": 2, "other": 1}),
        result("scaled_dot_product_attention", {"wrong": 1, "not started": 5}, {long: 1}),
        result("relu", {"right": 6}),
    ]
    figure = plots.class_results(results, "Sheet 2")
    (axes,) = figure.axes
    widths = {bars.get_label(): [bar.get_width() for bar in bars] for bars in axes.containers}
    assert list(widths) == ["right", "right for the lecture", "wrong", "not started"]
    assert list(widths.values()) == [[3, 0, 6], [1, 0, 0], [2, 1, 0], [0, 5, 0]]
    starts = np.array([[bar.get_x() for bar in bars] for bars in axes.containers])
    np.testing.assert_array_equal(starts[:, 0], [0, 3, 4, 6])
    assert [label.get_text() for label in axes.get_yticklabels()] == [r.exercise for r in results]
    (right,) = axes.child_axes
    first, second, third = (label.get_text() for label in right.get_yticklabels())
    assert (first, third) == ("no sum (2)", "")
    assert second.endswith("… (1)") and len(second) < 50
    assert check_layout(figure) > 8
    assert check_layout(plots.class_results(results[:1])) > 5
