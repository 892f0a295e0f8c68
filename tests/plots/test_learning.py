"""Learning: loss curves, and how large the gradients are."""

import numpy as np
import pytest
from reading import after_backward, check_layout, history_of, png

from transformer_np import plots
from transformer_np.models import Transformer, TransformerConfig

# --- training ---------------------------------------------------------------------------------------------------------


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


@pytest.mark.long
def test_a_loss_that_is_not_finite_leaves_a_gap(rng):
    history = history_of(rng, 500)
    history.losses[200], history.losses[300:] = np.inf, [np.nan] * 200
    figure = plots.training_curve(history)
    smooth = lines_of(figure.axes[0])["mean of 11 steps"][:, 1]
    np.testing.assert_allclose(smooth[200], np.mean(history.losses[195:200] + history.losses[201:206]))
    assert np.isfinite(smooth[:305]).all() and np.isnan(smooth[305:]).all()
    assert figure.axes[0].get_ylim()[1] < 7
    png(figure)


# --- loss curves ------------------------------------------------------------------------------------------------------


def test_loss_curves():
    losses = {r"a$\frac{$": [3.0, 2.0, 1.0], "_baseline": [3.0, 2.5], "$x$": [1.0], "a_b": [2.0, 1.0]}
    figure = plots.loss_curves(losses, unit="nats per sentence")
    (axes,) = figure.axes
    for line, values in zip(axes.lines, losses.values(), strict=True):
        np.testing.assert_array_equal(line.get_xydata(), [*enumerate(values, 1)])
    assert [line.get_linestyle() for line in axes.lines] == ["-", *["--"] * 3]  # one on top of the other: both are seen
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(losses)
    assert (axes.get_ylabel(), axes.get_ylim()[0]) == ("loss (nats per sentence)", 0)
    assert png(figure)  # no name is read as a formula


# --- gradients --------------------------------------------------------------------------------------------------------


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
    decoder = model.decoder[0]
    both = [p.grad.ravel() for part in (decoder.self_attention, decoder.cross_attention) for p in part.parameters()]
    np.testing.assert_allclose(norms["decoder 1"]["attention"], np.linalg.norm(np.concatenate(both)), rtol=1e-5)


@pytest.mark.long
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


@pytest.mark.long
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
