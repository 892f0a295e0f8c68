"""Whether an array that a forward kept is still what it was: the part of `Module.train(check=True)`."""

import zlib
from contextlib import contextmanager

import numpy as np


class Seals:
    """The checksums of what one module keeps in a forward, and of its parameters meanwhile.

    path: the module's dotted name inside the model
    """

    def __init__(self, path):
        self.path, self.sums, self.of_parameters = path, {}, {}

    def add(self, module, arrays):
        self.sums |= {name: _sum(array) for name, array in arrays.items() if isinstance(array, np.ndarray)}
        self.of_parameters = {name: _sum(parameter.data) for name, parameter in _parameters(module)}

    def check(self, module, names):
        """Raise RuntimeError if one of the kept arrays with these names, or a parameter, has changed since `add`."""
        where = f"{self.path} ({type(module).__name__})" if self.path else type(module).__name__
        for name in names:
            if name in self.sums and _sum(module._kept[name]) != self.sums[name]:
                what = f"{where}: {name} was changed in place after the forward pass had kept it"
                advice = "Make a new array instead: x = x + y, not x += y"
                raise RuntimeError(f"{what}, so the gradient would be wrong. {advice}")
        for name, parameter in _parameters(module):
            if self.of_parameters.get(name, _sum(parameter.data)) != _sum(parameter.data):
                what = f"{where}: the parameter {name} was changed between the forward and the backward pass"
                raise RuntimeError(f"{what}, so the gradient would be wrong. Update parameters after the backward pass")


def seal(model):
    """Every module of the model looks whether what it keeps is changed, until `train` or `eval` is called."""
    for path, module in model.named_modules():
        object.__setattr__(module, "_seals", Seals(path))


@contextmanager
def sealed(model):
    """Inside the block, as after `seal`."""
    seal(model)
    try:
        yield
    finally:
        for _, module in model.named_modules():
            vars(module).pop("_seals", None)


def _parameters(module):
    return ((name, value) for name, value in vars(module).items() if hasattr(value, "grad"))


def _sum(array):
    return zlib.crc32(np.ascontiguousarray(array))
