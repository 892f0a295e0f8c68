"""Values inside a module that change while it runs: the parts of `Module.replacing`."""

import copy
from contextlib import ExitStack, contextmanager

import numpy as np


class Place:
    """The output of a module; a subclass stands for another value inside the module.

    While a value is replaced, `forward` and `backward` of a copy of its place stand in for those of the module. They
    are bound methods, so that a deep copy of the module has a replacement of its own.
    """

    off = ()  # methods of the module that choose a shortcut; they return False while the value is replaced

    def on(self, module, name, function, backward):
        """This place in a module, with the functions that replace the value and its gradient."""
        place = copy.copy(self)
        place.module, place.name, place.function, place.vjp = module, name, function, backward
        place.plain_forward, place.plain_backward = module.forward, module.backward
        place.array = place.new = None  # the value in the last forward, before and after
        return place

    def forward(self, *args, **kwargs):
        self.array = self.new = None
        output = self.run(*args, **kwargs)
        if self.array is None:
            raise RuntimeError(f"{self.name} was not computed in this forward pass, so it cannot be replaced")
        return output

    def backward(self, *args, **kwargs):
        if self.array is None:
            raise RuntimeError(f"{self.name} has no forward pass yet: call the forward inside `replacing` as well")
        return self.run_backward(*args, **kwargs)

    def run(self, *args, **kwargs):
        """The module's forward with the new value."""
        output = self.plain_forward(*args, **kwargs)
        if isinstance(output, tuple):
            return (self.replace(output[0]), *output[1:])
        return self.replace(output)

    def run_backward(self, dout, *args, **kwargs):
        """The module's backward with the gradient of the old value."""
        return self.plain_backward(self.gradient(dout), *args, **kwargs)

    def replace(self, array):
        """The new value of the array: a copy of what the function returns, because layers may work in place."""
        new = self.function(array.copy())
        if not isinstance(new, np.ndarray) or new.shape != array.shape or new.dtype.kind not in "biuf":
            got = f"{new.dtype} {new.shape}" if isinstance(new, np.ndarray) else type(new).__name__
            raise ValueError(f"function must return an array of the shape of {self.name}, {array.shape}, got {got}")
        self.array, self.new = array, np.array(new, array.dtype)
        return self.new

    def gradient(self, dnew):
        """The gradient of the old value, from the gradient of the new value."""
        if self.vjp is None:
            return np.zeros_like(dnew)
        dold = self.vjp(dnew.copy(), self.array.copy())
        if not isinstance(dold, np.ndarray) or dold.shape != dnew.shape or dold.dtype.kind != "f":
            got = f"{dold.dtype} {dold.shape}" if isinstance(dold, np.ndarray) else type(dold).__name__
            raise ValueError(f"backward must return the gradient of {self.name}, {dnew.shape}, got {got}")
        return dold.astype(dnew.dtype, copy=False)

    @contextmanager
    def active(self):
        """Inside the block, the value is replaced. Afterwards the module keeps only the values that eval() keeps: a
        backward pass outside would mix the two computations, so it raises an error."""
        running = self.plain_forward
        while isinstance(place := getattr(running, "__self__", None), Place):
            if place.name == self.name:
                raise RuntimeError(f"{self.name} is already being replaced: do both in one function")
            running = place.plain_forward
        with ExitStack() as stack:
            for method in ("forward", "backward"):
                stack.enter_context(method_replaced(self.module, method, getattr(self, method)))
            for method in self.off:
                stack.enter_context(method_replaced(self.module, method, _never))
            try:
                yield
            finally:
                for _, module in self.module.named_modules() if self.new is not None else ():
                    kept = {name: array for name, array in module._kept.items() if name in module.always_kept}
                    object.__setattr__(module, "_kept", kept)


class Input(Place):
    """An argument of a module's forward. The backward returns its gradient in the same place.

    index: of the argument, and of its gradient if the backward returns several
    """

    def __init__(self, name, index=0):
        self.argument, self.index = name, index

    def run(self, *args, **kwargs):
        if len(args) > self.index:
            args = _exchanged(args, self.index, self._of_argument)
        else:
            kwargs[self.argument] = self._of_argument(kwargs.get(self.argument))
        return self.plain_forward(*args, **kwargs)

    def run_backward(self, *args, **kwargs):
        gradients = self.plain_backward(*args, **kwargs)
        if isinstance(gradients, tuple):
            return _exchanged(gradients, self.index, self.gradient)
        return self.gradient(gradients)

    def _of_argument(self, array):
        return None if array is None else self.replace(array)


def _exchanged(values, index, function):
    """The tuple with function(value) in place of one value."""
    return (*values[:index], function(values[index]), *values[index + 1 :])


def _never(*_):
    return False


@contextmanager
def method_replaced(module, method, function):
    """Inside the block, one object has another method."""
    before = vars(module).get(method)
    object.__setattr__(module, method, function)
    try:
        yield
    finally:
        if before is None:
            object.__delattr__(module, method)
        else:
            object.__setattr__(module, method, before)
