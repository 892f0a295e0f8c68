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


def activate(name, x, with_slope):
    """Apply an activation.  x (...)  ->  y (...), dy/dx (...) or None

    with_slope: whether the slope is wanted; it is None also where computing it beside y saves nothing
    """
    activation = ACTIVATIONS[name]
    if with_slope and activation.with_slope:
        return activation.with_slope(x)
    return activation.forward(x), None


def activate_backward(name, dy, x, slope):
    """Backward of activate, from x or from the slope.  dy (...)  ->  dx (...)"""
    if slope is not None:
        return dy * slope
    return ACTIVATIONS[name].backward(dy, x)
