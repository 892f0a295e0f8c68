"""One call of a layer or model, as the rules ask for it again and again, on copies."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...module import Module
from ..gradcheck import is_float


@dataclass
class Case:
    """A layer or model with the inputs of one call. Every rule works on copies."""

    module: Module
    inputs: list
    options: dict
    rng: np.random.Generator
    max_entries: int = 10

    def fresh(self, dtype=None):
        """A copy of the module in train(), with cleared gradients and, like the inputs, another dtype if asked."""
        module = copy.deepcopy(self.module).train()
        module = module if dtype is None else module.astype(dtype)
        module.zero_grad()
        return module

    def random(self):
        """A copy whose parameters are moved a little: γ = 1 and b = 0 would hide mistakes."""
        module, rng = self.fresh(), np.random.default_rng(0)
        for parameter in module.parameters():
            size = np.sqrt(np.mean(np.square(parameter.data))) or 1
            parameter.data = parameter.data + 0.3 * size * rng.normal(size=parameter.shape)
        return module

    @property
    def dtype(self):
        """The dtype of the parameters; without any, of the inputs."""
        arrays = [*self.module.parameters(), *self.floats().values()]
        return arrays[0].dtype if arrays else np.dtype(np.float32)

    def floats(self):
        """{place of an input: the array}, of those that have a gradient."""
        return {i: x for i, x in enumerate(self.inputs) if is_float(x)}

    def forward(self, module, inputs=None, dtype=None, options=None):
        """The first output of a call with copies of the inputs; a number is an array without axes."""
        dtype = dtype or self.dtype
        inputs = as_dtype(self.inputs if inputs is None else inputs, dtype)
        return self.first(module(*inputs, **as_dtype(options or self.options, dtype)), dtype)

    def first(self, output, dtype=None):
        output = output[0] if isinstance(output, tuple) else output
        return np.asarray(output, dtype or self.dtype) if isinstance(output, float) else output

    def backward(self, module, dout):
        """The gradients of the inputs, as a list."""
        returned = module.backward(dout if dout.ndim else float(dout))
        returned = returned if isinstance(returned, tuple) else (returned,)
        return [gradient for gradient in returned if gradient is not None]

    def dout(self, output):
        return np.random.default_rng(1).normal(size=output.shape).astype(output.dtype)

    def step(self, module):
        """Forward and backward of a copy  ->  [output, gradients of inputs, gradients of parameters]"""
        output = self.forward(module)
        gradients = self.backward(module, self.dout(output))
        return [output, *gradients, *(p.grad.copy() for p in module.learned().values())]


def as_dtype(x, dtype):
    """A copy of an input, or of several, floats in this dtype."""
    if isinstance(x, dict):
        return {name: as_dtype(value, dtype) for name, value in x.items()}
    if isinstance(x, list):
        return [as_dtype(item, dtype) for item in x]
    return x.astype(dtype) if is_float(x) else copy.copy(x)


def same(one, other):
    return np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True)


def near(one, other, dtype):
    """Equal up to the rounding errors of sums in another order."""
    tolerance = 1e3 * float(np.finfo(dtype).eps)
    return np.allclose(one, other, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(other).max(initial=0))))


def refusal(call):
    """The error that a call raises, None if it raises none."""
    try:
        call()
    except Exception as error:
        return error


def arrays_in(module):
    """{dotted name: array} of all arrays that are plain attributes, directly or in a list, tuple or dictionary."""
    found: dict[str, Any] = {}
    for path, part in module.named_modules():
        for name, value in vars(part).items():
            if name in ("_kept", "_changes"):
                continue
            items = value.values() if isinstance(value, dict) else value
            items = items if isinstance(value, dict | list | tuple) else [value]
            for i, item in enumerate(items):
                if isinstance(item, np.ndarray):
                    key = f"{path}.{name}" if path else name
                    found[key if item is value else f"{key}[{i}]"] = item
    return found
