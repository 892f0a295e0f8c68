"""The activations by name, each forward beside its backward."""

from collections.abc import Callable
from typing import NamedTuple

from .. import functional as F


class Activation(NamedTuple):
    """forward(x) -> y and backward(dy, x) -> dx. All look up F.name at every call, so a swapped function is used.

    with_slope(x) -> y, dy/dx, if computing both together saves much work; dy/dx is None if one function is swapped.
    """

    forward: Callable
    backward: Callable
    with_slope: Callable | None = None


def _gelu(approximate):
    return Activation(
        lambda x: F.gelu(x, approximate),
        lambda dy, x: F.gelu_backward(dy, x, approximate),
        lambda x: F.gelu_with_slope(x, approximate),
    )


ACTIVATIONS = {
    "relu": Activation(lambda x: F.relu(x), lambda dy, x: F.relu_backward(dy, x)),
    "gelu": _gelu("none"),  # exact, as in BERT
    "gelu_tanh": _gelu("tanh"),  # as in GPT-2
    "silu": Activation(lambda x: F.silu(x), lambda dy, x: F.silu_backward(dy, x)),
}


def activate(module, x):
    """Apply the module's `activation`, and return the arrays for activate_backward as keyword arguments for `keep`.

    x (...)  ->  y (...), {"slope": dy/dx} or {"before": x}
    """
    activation = ACTIVATIONS[module.activation]
    if module.keeping and activation.with_slope:
        y, slope = activation.with_slope(x)
        return y, {"before": x} if slope is None else {"slope": slope}
    return activation.forward(x), {"before": x}


def activate_backward(module, dy):
    """Backward of activate, from the array that the module kept.  dy (...)  ->  dx (...)"""
    if "slope" in module._kept:
        return dy * module.kept("slope")
    return ACTIVATIONS[module.activation].backward(dy, module.kept("before"))
