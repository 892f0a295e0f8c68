"""Training curves: the loss, the learning rate, the share of right answers."""

import numpy as np

from ..support.checks import check_has, check_kind
from .arguments import as_numbers
from .picture import Picture, styled
from .style import HATCH, RATE, RAW, TRAINING, VALIDATION, label, legend_above, light_grid, plain, round_ticks


@styled
def training_curve(history, learning_rate=True, unit="nats per token"):
    """The loss during training, and the learning rate below it.

    history: an object with `.losses`, the training loss of each step; `.learning_rates`, one per step or empty;
        `.validation`, pairs (step, loss), may be empty. Steps count from 1.
    learning_rate: whether to show the learning rate, if the history has it
    unit: the unit of the loss

    How to read it: the pale line is the loss of each batch, the blue line its moving average, and the orange dots are
    the loss on the validation data. An untrained model starts near ln(vocabulary size) nats per token; e to the power
    of the loss is the number of equally likely words that the model still chooses from. Both falling: it learns. Blue
    falling while orange rises: it memorizes the training data. Orange below blue is normal: dropout and label smoothing
    make only training harder.
    """
    check_has("history", history, "losses", "learning_rates", "validation")
    losses, rates = np.asarray(history.losses, float), np.asarray(history.learning_rates, float)
    validation = np.asarray(history.validation, float)
    if losses.ndim != 1 or not len(losses):
        raise ValueError(f"history.losses must be a list of numbers, one per step, got shape {losses.shape}")
    if validation.size and (validation.ndim != 2 or validation.shape[1] != 2):
        raise ValueError(f"history.validation must be pairs (step, loss), got shape {validation.shape}")
    if rates.size and rates.shape != losses.shape:
        raise ValueError(f"history.learning_rates must be {len(losses)} numbers, one per loss, got shape {rates.shape}")
    steps = np.arange(1, len(losses) + 1)
    window = len(losses) // 50 // 2 * 2 + 1  # odd, so that it has a middle
    dots = {"marker": "o", "markersize": 3} if len(losses) < 10 else {}
    with_rates = learning_rate and rates.size > 0

    figure = Picture(figsize=(8, 5.4 if with_rates else 4), layout="constrained")
    heights = [3, 1] if with_rates else [1]
    panels = figure.subplots(len(heights), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    if window == 1:
        panels[0].plot(steps, losses, color=TRAINING, label="training", **dots)
    else:
        panels[0].plot(steps, losses, color=RAW, linewidth=0.6, label="training, each step")
        panels[0].plot(steps, _smooth(losses, window), color=TRAINING, linewidth=1.8, label=f"mean of {window} steps")
    if validation.size:
        panels[0].plot(*validation.T, "o-", color=VALIDATION, markersize=4.5, linewidth=1, label="validation")
    panels[0].set_ylabel(f"loss ({unit})")
    panels[0].yaxis.set_major_locator(round_ticks(8))
    legend_above(panels[0], 3)
    if with_rates:
        panels[1].plot(steps, rates, color=RATE, **dots)
        panels[1].set_ylabel("learning rate")
        panels[1].ticklabel_format(axis="y", scilimits=(-3, 4), useMathText=True)
        panels[1].yaxis.set_major_locator(round_ticks(3))
    for axes in panels:
        axes.update_datalim([(1, 0)])  # 0 is in the picture
        axes.margins(x=0.02)
        axes.autoscale_view()
        axes.set_ylim(bottom=0)
        light_grid(axes)
    panels[-1].set_xlabel("step")
    panels[-1].xaxis.set_major_locator(round_ticks(9, integer=True))
    figure.align_ylabels()
    return figure


def _smooth(values, window):
    """The mean of the `window` values around each value, ignoring missing and non-finite ones."""
    finite = np.isfinite(values)
    total, count = (np.convolve(x, np.ones(window), "same") for x in (np.where(finite, values, 0), finite))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


@styled
def loss_curves(losses, unit="nats per token"):
    """The losses of several training runs in one picture.

    losses: {name: the loss of each step}, step 1 first; the lengths may differ
    unit: the unit of the loss

    How to read it: training runs of the same model with the same batches and seed have the same curve, one dashed on
    top of the other. Where two curves diverge, the two runs compute something different.
    """
    check_kind("losses", losses, dict)
    if not losses:
        raise ValueError("losses must have at least one curve, got an empty dict")
    figure = Picture(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="step", ylabel=f"loss ({unit})")
    for i, (name, values) in enumerate(losses.items()):
        values = np.asarray(values, float)
        if values.ndim != 1 or not len(values):
            raise ValueError(f"losses[{name!r}] must be a list of numbers, one per step, got shape {values.shape}")
        look = {"color": (TRAINING, VALIDATION, RATE)[i % 3], "linewidth": 1.8, "label": label(name)}
        axes.plot(np.arange(1, len(values) + 1), values, "--" if i else "-", **look)
    axes.set_ylim(bottom=0)
    axes.margins(x=0.02)
    axes.xaxis.set_major_locator(round_ticks(9, integer=True))
    plain(axes.legend(loc="best", frameon=False))
    light_grid(axes)
    return figure


@styled
def copy_curves(curves):
    """The share of right answers during training when models learn to copy a symbol from an earlier segment.

    curves: a `tasks.copying.CopyCurves`: .steps, .accuracies {model: shares in 0 … 1, one per step}, .chance, .lag and
        .segment_len

    How to read it: the symbol in question is `lag` segments back. A model that carries a memory from segment to segment
    rises to 100 %. A model that sees only its segment stays on the dashed line, the accuracy of guessing, however long
    it is trained.
    """
    check_has("curves", curves, "steps", "accuracies", "chance", "lag", "segment_len")
    steps = as_numbers("curves.steps", curves.steps)
    figure = Picture(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="step", ylabel="right answers (%)")
    axes.axhline(100 * curves.chance, color=HATCH, linewidth=1, linestyle="--", label="guessing")
    for (name, shares), color in zip(curves.accuracies.items(), (TRAINING, VALIDATION, RATE), strict=False):
        shares = as_numbers(f"curves.accuracies[{name!r}]", shares)
        if shares.shape != steps.shape:
            raise ValueError(f"{name} must have {len(steps)} shares, one per step, got shape {shares.shape}")
        axes.plot(steps, 100 * shares, "o-", color=color, markersize=3.5, linewidth=1.8, label=label(name))
    axes.set_title(f"copying from {curves.lag} segments back, segments of {curves.segment_len} tokens", loc="left")
    axes.set_ylim(-2, 102)
    axes.margins(x=0.02)
    axes.xaxis.set_major_locator(round_ticks(9, integer=True))
    legend_above(axes, 4)
    light_grid(axes)
    return figure
