"""Gradient checks: hand-written gradients against finite differences, for a function or a whole module."""

import copy
from dataclasses import dataclass
from inspect import signature

import numpy as np

from .. import functional as F
from ..module import Module
from ..support.checks import as_float_array, as_rng, check_at_least, check_number
from ..support.seals import sealed

TOLERANCE = 1e-6

# How the backward of a function is called where the rule of `backward_of` does not say it
IRREGULAR = {
    "embedding": lambda dy, ids, table: F.embedding_backward(dy, ids, len(table)),
    "relative_position_bias": lambda dy, table, buckets: F.relative_position_bias_backward(dy, buckets, len(table)),
    "split_heads": lambda dout, x, num_heads: F.merge_heads(dout),
    "merge_heads": lambda dout, x: F.split_heads(dout, x.shape[1]),
}


def backward_of(name):
    """The function from dout and the arguments of a function of `functional` to its gradients; None if it has none.

    NAME_backward takes dout first (a loss: dloss last), and its other arguments are arguments of NAME, by their names,
    and the last outputs of NAME. It returns a gradient for each array in the `@shapes` of NAME.
    """
    function, other = F.FUNCTIONS.get(name), F.FUNCTIONS.get(f"{name}_backward")
    if name in IRREGULAR or other is None:
        return IRREGULAR.get(name)

    def backward(dout, *inputs, **options):
        given = signature(function).bind(*inputs, **options)
        given.apply_defaults()
        given = given.arguments
        names = list(signature(other).parameters)
        of_output = [name for name in names if name not in given and name != "dloss"]
        if "dloss" in names:
            given["dloss"] = float(dout)
        else:
            given[of_output.pop(0)] = dout
        outputs = getattr(F, name)(*inputs, **options)  # by name: another function may stand in for it
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        given |= zip(of_output, outputs[len(outputs) - len(of_output) :], strict=True)
        gradients = getattr(F, f"{name}_backward")(*(given[name] for name in names))
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        asked = [given[name] is not None for name in function.shapes]  # a bias may be None
        return tuple(gradient for gradient, is_asked in zip(gradients, asked, strict=True) if is_asked)

    return backward


@dataclass(frozen=True)
class Entry:
    """One input or parameter: its name, the worst relative error, the index of it, and the two numbers there."""

    name: str
    error: float
    index: tuple
    analytic: float
    numeric: float


@dataclass(frozen=True)
class GradientReport:
    """The entries of all inputs and parameters. `print(report)` shows a table, the worst first."""

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
            numbers = f"backward {entry.analytic:.10g}, differences {entry.numeric:.10g}"
            lines.append(f"  {entry.name:<{width}}  {entry.error:8.1e} at ({place}): {numbers}")
        return "\n".join(lines)


def check_gradients(
    target, *inputs, backward=None, rng=0, step=1e-5, max_entries=None, tolerance=TOLERANCE, floor=1e-3, **options
):
    """Compare a hand-written backward with central differences, in float64.

        ∂L/∂x ≈ (L(x + h) − L(x − h)) / 2h,    L = Σ dout · output,  dout random

    target: a function of `functional`, any other function with its `backward(dout, *inputs, **options)`, a Module, or a
        method of one that takes the place of its forward: `check_gradients(bert.classify, ids)`
    inputs: its inputs; float arrays are checked, everything else (ids, a rate, a seed) is passed on unchanged
    options: keyword arguments for every call, such as mask=…; they are not differentiated
    max_entries: check this many entries of every array instead of all: half of them with the largest gradient, the
        others at random

    The relative error of a tensor is max |analytic − numeric| / max(largest |gradient| in the tensor, floor). The floor
    is for gradients that are always zero, such as that of the key bias of attention.

    The check works on a copy of a module. If a forward changes an array that a layer has kept, such as x += layer(x),
    it raises a RuntimeError that names the layer and the array. Active dropout draws the same numbers every time. The
    gradients of the parameters start from random values, because a backward must add to them.

    ->  GradientReport
    """
    # a stream of its own: with the seed that x was drawn from, dout would be x, and xᵀ dout equal to its transpose
    rng = np.random.default_rng(as_rng(rng).integers(2**63))
    check_number("step", step, "(0, ∞)")
    check_number("tolerance", tolerance, "[0, ∞)")
    check_number("floor", floor, "(0, ∞)")
    if max_entries is not None:
        check_at_least("max_entries", max_entries, 1)
    inputs = [np.array(x, np.float64) if is_float(x) else x for x in inputs]
    module = getattr(target, "__self__", target)
    if isinstance(module, Module):
        name = type(module).__name__
        method = "__call__" if module is target else target.__name__
        forward, gradients, parameters = _of_module(module, method, inputs, options, rng)
    else:
        name = getattr(target, "__name__", "function")
        backward = backward or backward_of(name)
        if backward is None:
            raise ValueError(f"{name} is not a function of transformer_np.functional: pass its backward=")
        forward, gradients, parameters = *_of_function(target, backward, inputs, options), {}

    variables = {f"input {i}": x for i, x in enumerate(inputs) if is_float(x)} | parameters  # changed below
    if not variables:
        raise ValueError(f"{name} has neither float inputs nor parameters: there is no gradient to check")
    output = as_float_array(forward(), f"the output of {name}")
    dout = rng.normal(size=output.shape)
    returned = gradients(dout)
    if len(returned) != len(variables):
        each = ", ".join(variables)
        raise ValueError(f"{name}: backward must return one gradient for each of {each}; got {len(returned)}")
    entries = []
    for (variable, array), analytic in zip(variables.items(), returned, strict=True):
        if not array.size:
            raise ValueError(f"{name}: {variable} is empty, its shape is {array.shape}")
        if np.shape(analytic) != array.shape:
            raise ValueError(f"{name}: the gradient of {variable} has shape {np.shape(analytic)}, not {array.shape}")
        entries.append(_compare(variable, array, analytic, lambda: dout * forward(), step, floor, max_entries, rng))
    return GradientReport(name, entries, tolerance)


def is_float(x):
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def _first(output):
    """The result of a function: the first element if it returns a tuple."""
    return output[0] if isinstance(output, tuple) else output


def _of_function(function, backward, inputs, options):
    """forward and gradients(dout) of a function."""

    def forward():
        return _first(function(*inputs, **options))

    def gradients(dout):
        result = backward(dout, *inputs, **options)
        return result if isinstance(result, tuple) else (result,)

    return forward, gradients


def _of_module(module, method, inputs, options, rng):
    """forward, gradients(dout) and {name: array} of a float64 copy of the module; method: the name of its forward"""
    module = copy.deepcopy(module).astype(np.float64)
    if not module.keeping:
        module.eval(keep=True)
    generators = module.generators()
    states = [g.bit_generator.state for g in generators]

    def forward():
        for generator, state in zip(generators, states, strict=True):
            generator.bit_generator.state = state
        return _first(getattr(module, method)(*inputs, **options))

    def gradients(dout):
        before = {}
        for name, parameter in module.learned().items():
            before[name] = parameter.grad = rng.normal(size=parameter.shape)
        with sealed(module):  # x += layer(x) would change what the layer has kept
            forward()
            returned = module.backward(dout)
        returned = returned if isinstance(returned, tuple) else (returned,)
        returned = [gradient for gradient in returned if gradient is not None]
        return [*returned, *(p.grad - before[name] for name, p in module.learned().items())]

    return forward, gradients, {name: parameter.data for name, parameter in module.learned().items()}


def _compare(name, array, analytic, terms, step, floor, max_entries, rng):
    """The entry for one array: moves every element, or a sample, up and down by `step`. The loss is Σ terms()."""
    flat, analytic = array.flat, np.asarray(analytic).reshape(-1)  # .flat is never a copy, whatever the memory layout
    places = np.arange(array.size)
    if max_entries is not None and array.size > max_entries:  # in a table, few rows have a gradient
        largest, others = np.split(np.argsort(-np.abs(analytic), kind="stable"), [max_entries // 2])
        places = np.sort([*largest, *rng.choice(others, max_entries - len(largest), replace=False)])
    numeric = np.empty(len(places))
    for i, place in enumerate(places):
        value = flat[place]
        flat[place] = value + step
        up = terms()
        flat[place] = value - step
        down = terms()
        flat[place] = value
        numeric[i] = np.sum(up - down) / (2 * step)  # subtract before summing: less rounding error
    scale = max(np.abs(a).max(initial=floor, where=np.isfinite(a)) for a in (analytic, numeric))
    errors = np.abs(analytic[places] - numeric) / scale
    errors = np.where(np.isfinite(errors), errors, np.inf)  # NaN counts as wrong
    worst = int(errors.argmax())
    index = tuple(int(i) for i in np.unravel_index(places[worst], array.shape))
    return Entry(name, float(errors[worst]), index, float(analytic[places[worst]]), float(numeric[worst]))


def standard_checks(seed=0):
    """The checks of `transformer-np gradcheck`: {name: a function that returns the report}, for every function pair,
    every layer and block, and small models. Raises ValueError for a seed below 0."""
    from . import samples

    check_at_least("seed", seed, 0)
    rng = np.random.default_rng(seed)
    names = filter(backward_of, F.FUNCTIONS)
    targets = {name: (getattr(F, name), *samples.arguments_of(name, rng).values()) for name in names}
    for name in filter(str.isidentifier, samples.LAYERS):  # one of each class, none of its variants
        layer, inputs = samples.layer_of(name, rng)
        targets[name] = layer, *inputs
    for name in samples.MODELS:
        model, batch = samples.model_of(name, rng, dtype="float64")
        targets[name] = model, *batch
        if name == "Bert":
            targets |= {f"Bert.{head}": (getattr(model, head), *batch) for head in ("classify", "mlm_logits")}
    how = {"rng": seed, "max_entries": 20}
    return {name: (lambda given=given: check_gradients(*given, **how)) for name, given in targets.items()}
