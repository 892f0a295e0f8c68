"""The activations by name, each forward beside its backward."""

from collections.abc import Callable
from typing import NamedTuple

from .. import functional as F


class Activation(NamedTuple):
    """forward(x) -> y and backward(dy, x) -> dx. Both look up F.name at every call: a swapped function is used."""

    forward: Callable
    backward: Callable


ACTIVATIONS = {
    "relu": Activation(lambda x: F.relu(x), lambda dy, x: F.relu_backward(dy, x)),
    "gelu": Activation(lambda x: F.gelu(x, "none"), lambda dy, x: F.gelu_backward(dy, x, "none")),  # exact, as in BERT
    "gelu_tanh": Activation(lambda x: F.gelu(x, "tanh"), lambda dy, x: F.gelu_backward(dy, x, "tanh")),  # as in GPT-2
    "silu": Activation(lambda x: F.silu(x), lambda dy, x: F.silu_backward(dy, x)),
}
