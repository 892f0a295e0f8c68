"""Hand-written gradients against finite differences, for a function or a whole module."""

import copy
from dataclasses import dataclass

import numpy as np

from . import functional as F

TOLERANCE = 1e-6

# How to get from the inputs of a forward in `functional` to the gradients its backward returns.
BACKWARDS = {
    "linear": lambda dy, x, w, b=None: F.linear_backward(dy, x, w)[: 2 if b is None else 3],
    "embedding": lambda dy, ids, table: F.embedding_backward(dy, ids, len(table)),
    "softmax": lambda dy, x, axis=-1: F.softmax_backward(dy, F.softmax(x, axis), axis),
    "relu": lambda dy, x: F.relu_backward(dy, x),
    "gelu": lambda dy, x, approximate="tanh": F.gelu_backward(dy, x, approximate),
    "layer_norm": lambda dy, x, gamma, beta, eps=1e-5: F.layer_norm_backward(
        dy, *F.layer_norm(x, gamma, beta, eps)[1:], gamma
    ),
    "dropout": lambda dy, x, p, rng: F.dropout_backward(dy, F.dropout(x, p, rng)[1], p),
    "scaled_dot_product_attention": lambda dout, q, k, v, mask=None: F.scaled_dot_product_attention_backward(
        dout, q, k, v, F.scaled_dot_product_attention(q, k, v, mask)[1]
    ),
    "split_heads": lambda dout, x, num_heads: F.merge_heads(dout),
    "merge_heads": lambda dout, x: F.split_heads(dout, x.shape[1]),
    "feed_forward": lambda dy, x, w1, b1, w2, b2: F.feed_forward_backward(
        dy, x, F.feed_forward(x, w1, b1, w2, b2)[1], w1, w2
    ),
    "cross_entropy": lambda dloss, logits, targets, ignore_index=None, label_smoothing=0.0: F.cross_entropy_backward(
        F.cross_entropy(logits, targets)[1], targets, ignore_index, label_smoothing, float(dloss)
    ),
}


@dataclass(frozen=True)
class Entry:
    """One input or parameter: its name, the worst relative error, where that is, and the two numbers found there."""

    name: str
    error: float
    index: tuple
    analytic: float
    numeric: float


@dataclass(frozen=True)
class GradientReport:
    """The entries of all inputs and parameters. `print(report)` shows them as a table, the worst first."""

    target: str
    entries: list
    tolerance: float

    @property
    def worst(self):
        """The entry with the largest error."""
        return max(self.entries, key=lambda entry: entry.error)

    @property
    def passed(self):
        return self.worst.error <= self.tolerance

    def __str__(self):
        width = max(len(entry.name) for entry in self.entries)
        lines = [f"{self.target}: {'right' if self.passed else 'WRONG'} (tolerance {self.tolerance:g})"]
        for entry in sorted(self.entries, key=lambda entry: -entry.error):
            place = ", ".join(map(str, entry.index))
            lines.append(
                f"  {entry.name:<{width}}  {entry.error:8.1e} at ({place}): "
                f"backward {entry.analytic:.10g}, differences {entry.numeric:.10g}"
            )
        return "\n".join(lines)


def check_gradients(
    target, *inputs, backward=None, rng=0, step=1e-5, max_entries=None, tolerance=TOLERANCE, floor=1e-3, **options
):
    """Compare a hand-written backward with central differences, in float64.

        ∂L/∂x ≈ (L(x + h) − L(x − h)) / 2h,    L = Σ dout · output,  dout random

    target: a function of `functional`, any other function with its `backward(dout, *inputs, **options)`, or a Module
    inputs: its inputs; arrays of floats are checked, everything else (ids, a rate, a seed) is passed on as it is
    options: keyword arguments for every call, such as mask=…; they are not differentiated
    max_entries: check this many random entries of every array instead of all

    A tensor's relative error is max |analytic − numeric| / max(largest |gradient| in the tensor, floor): a gradient
    that is zero by nature, such as the key bias of attention, is compared with the floor.

    A module is copied before anything is done to it; dropout, where it is on, draws the same numbers every time. The
    gradients of its parameters start from random values, which a backward must add to.

    ->  GradientReport
    """
    rng = np.random.default_rng(rng)
    inputs = [np.array(x, np.float64) if _is_float_array(x) else x for x in inputs]
    if hasattr(target, "named_parameters"):
        name = type(target).__name__
        forward, gradients, parameters = _of_module(target, inputs, options, rng)
    else:
        name = getattr(target, "__name__", "function")
        backward = backward or BACKWARDS.get(name)
        if backward is None:
            raise ValueError(f"{name} is not a function of transformer_np.functional: give its backward=")
        forward, gradients, parameters = _of_function(target, backward, inputs, options), None, {}
        gradients = _gradients_of_function(backward, inputs, options)

    output = forward()
    dout = rng.normal(size=np.shape(output))
    variables = {**_names_of_inputs(inputs), **parameters}  # name -> array, changed in place below
    entries = []
    for (variable, array), analytic in zip(variables.items(), gradients(dout), strict=True):
        if np.shape(analytic) != array.shape:
            raise ValueError(f"{name}: the gradient of {variable} has shape {np.shape(analytic)}, not {array.shape}")
        entries.append(
            _compare(variable, array, analytic, lambda: np.sum(dout * forward()), step, floor, max_entries, rng)
        )
    if not entries:
        raise ValueError(f"{name} has neither inputs of floats nor parameters: there is nothing to check")
    return GradientReport(name, entries, tolerance)


def _is_float_array(x):
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def _names_of_inputs(inputs):
    return {f"input {i}": x for i, x in enumerate(inputs) if _is_float_array(x)}


def _first(output):
    """Functions that return more than their result return the result first."""
    return output[0] if isinstance(output, tuple) else output


def _of_function(function, backward, inputs, options):
    return lambda: _first(function(*inputs, **options))


def _gradients_of_function(backward, inputs, options):
    def gradients(dout):
        result = backward(dout, *inputs, **options)
        return result if isinstance(result, tuple) else (result,)

    return gradients


def _of_module(module, inputs, options, rng):
    """forward, gradients(dout) and {name: array} of a float64 copy of the module."""
    module = copy.deepcopy(module).astype(np.float64)
    if not module.keeping:
        module.eval(keep=True)
    generators = [m.rng for _, m in module.named_modules() if hasattr(m, "rng")]
    states = [g.bit_generator.state for g in generators]

    def forward():
        for generator, state in zip(generators, states, strict=True):
            generator.bit_generator.state = state
        return _first(module(*inputs, **options))

    def gradients(dout):
        before = {}
        for name, parameter in module.named_parameters():
            before[name] = parameter.grad = rng.normal(size=parameter.shape)
        forward()
        returned = module.backward(dout)
        returned = returned if isinstance(returned, tuple) else (returned,)
        returned = [gradient for gradient in returned if gradient is not None]
        return [*returned, *(p.grad - before[name] for name, p in module.named_parameters())]

    return forward, gradients, {name: parameter.data for name, parameter in module.named_parameters()}


def _compare(name, array, analytic, loss, step, floor, max_entries, rng):
    """The entry for one array: every element, or a sample, moved up and down by `step`."""
    places = np.arange(array.size)
    if max_entries is not None and array.size > max_entries:
        places = np.sort(rng.choice(array.size, max_entries, replace=False))
    flat, analytic = array.reshape(-1), np.asarray(analytic).reshape(-1)
    numeric = np.empty(len(places))
    for i, place in enumerate(places):
        value = flat[place]
        flat[place] = value + step
        up = loss()
        flat[place] = value - step
        down = loss()
        flat[place] = value
        numeric[i] = (up - down) / (2 * step)
    scale = max(np.abs(analytic).max(), np.abs(numeric).max(), floor)
    errors = np.abs(analytic[places] - numeric) / scale
    errors = np.where(np.isfinite(errors), errors, np.inf)  # NaN is never right
    worst = int(errors.argmax())
    index = tuple(int(i) for i in np.unravel_index(places[worst], array.shape))
    return Entry(name, float(errors[worst]), index, float(analytic[places[worst]]), float(numeric[worst]))
