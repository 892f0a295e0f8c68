"""Gradient norms of the parameters by layer."""

import re
from itertools import groupby

import numpy as np

from .fonts import text_width
from .picture import Picture, styled
from .sizes import PAD
from .style import HEAD_COLOURS, legend_above, light_grid

PARTS = ("embedding", "attention", "feed-forward", "norm", "output")
_SIGNS = {  # the first pattern in the name of a parameter says its part
    "attention": "attention", r"feed_forward|^[wb]\d$": "feed-forward", "norm": "norm",
    "embedding|position|segment": "embedding",
}  # fmt: skip
MARKERS = dict(zip(PARTS, "*os^D", strict=True))


def gradient_norms(model):
    """The norm of a model's gradient after a backward pass, by layer and part of the layer.

        ‖g‖ = √(Σ g²), over all gradients of the part's parameters, in the unit of the loss per unit of the parameter

    Frozen parameters have no gradient.

    ->  {layer: {part: norm}} in the order of the forward pass; parts are "embedding", "attention", "feed-forward",
    "norm" and "output". A tied output projection counts as part of its embedding: they are one parameter.

    Raises ValueError for a gradient that is not finite, RuntimeError if all are 0 because no backward pass was run.
    """
    if not hasattr(model, "learned"):
        raise TypeError(f"model must be a module with parameters, got {type(model).__name__}")
    squares = {}
    for name, parameter in model.learned().items():
        gradient = np.asarray(parameter.grad, float)
        if not np.isfinite(gradient).all():
            raise ValueError(f"the gradient of {name} is not finite, so it has no norm")
        layer, part = _place(name)
        parts = squares.setdefault(layer, {})
        parts[part] = parts.get(part, 0.0) + float(np.vdot(gradient, gradient))
    if not any(value for parts in squares.values() for value in parts.values()):
        raise RuntimeError("every gradient is 0: call model.backward(dlogits) first")
    return {layer: {part: value**0.5 for part, value in parts.items()} for layer, parts in squares.items()}


def _place(name):
    """The layer and the part of a parameter, from its dotted name."""
    numbered = re.match(r"(\w+)\.(\d+)\.", name)
    if numbered:
        stack = {"blocks": "block"}.get(numbered[1], numbered[1])
        layer, rest = f"{stack} {int(numbered[2]) + 1}", name[numbered.end() :]
    else:
        layer, rest = name.split(".")[0].replace("_", " "), name
    return layer, next((part for sign, part in _SIGNS.items() if re.search(sign, rest)), "output")


@styled
def gradient_flow(model):
    """The norm of the gradient by layer, after a backward pass.

    model: a model with gradients; or {name: model}, to compare several with one line each, over all parts

        loss, probs = F.cross_entropy(model(src, tgt_in), tgt_out)
        model.backward(F.cross_entropy_backward(probs, tgt_out))
        plots.gradient_flow(model)

    How to read it: the layers are in the order of the forward pass; the gradient flows from right to left. The axis is
    logarithmic. A line that falls steadily to the left shows a vanishing gradient, one that rises an exploding one; the
    residual path is meant to keep it level. A part with norm 0 has no point.

    Raises TypeError for anything but a model, ValueError for a gradient that is not finite, RuntimeError without a
    backward pass.
    """
    several = isinstance(model, dict)
    if several and not model:
        raise ValueError("model must be a model or a dict with at least one, got an empty dict")
    series = {}  # {label: {layer: norm}}
    if several:
        for label, one in model.items():
            parts = gradient_norms(one)
            series[str(label)] = {layer: sum(v**2 for v in norms.values()) ** 0.5 for layer, norms in parts.items()}
    else:
        for layer, parts in gradient_norms(model).items():
            for part, norm in parts.items():
                series.setdefault(part, {})[layer] = norm
        series = {part: series[part] for part in PARTS if part in series}
    layers = _in_order(series.values() if several else [gradient_norms(model)])

    figure = Picture(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot(ylabel="norm of the gradient", yscale="log")
    for i, (label, norms) in enumerate(series.items()):
        values = np.array([norms.get(layer, 0.0) or np.nan for layer in layers])
        marker = "osD^v*"[i % 6] if several else MARKERS[label]
        colour = HEAD_COLOURS[i % len(HEAD_COLOURS)]
        look = {"ls": "-", "color": colour, "markersize": 5, "linewidth": 1.4}
        for stack in _stacks(layers):  # lines do not join different stacks
            axes.plot(stack, values[stack], marker, label="_", **look)
        axes.plot([], [], marker, label=label, **look)
    steep = max(map(text_width, layers)) + PAD > 7 / len(layers)  # inches
    axes.set_xticks(range(len(layers)), layers, rotation=45 if steep else 0)
    if steep:
        for tick in axes.get_xticklabels():
            tick.set(ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.5, len(layers) - 0.5)
    legend_above(axes, 5)
    light_grid(axes)
    return figure


def _in_order(orders):
    """The merged names of several lists, which keeps the order of each list as far as possible."""
    merged = []
    for order in orders:
        place = 0
        for name in order:
            if name in merged:
                place = merged.index(name) + 1
            else:
                merged.insert(place, name)
                place += 1
    return merged


def _stacks(layers):
    """The places of the layers grouped by stack: consecutive layers with the same name before a number."""
    runs = groupby(range(len(layers)), lambda place: re.sub(r" \d+$", "", layers[place]))
    return [list(places) for _, places in runs]
