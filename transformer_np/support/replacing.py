"""Values inside a module that change while it runs: the parts of `Module.replacing`."""

from contextlib import contextmanager

import numpy as np

from .intercept import methods


class Place:
    """A value inside a module, or its output.

    function and backward replace the value and its gradient. Meanwhile `forward` and `backward` of the place stand in
    for those of the module. They are bound methods, so that a deep copy of the module has a replacement of its own.
    """

    def __init__(self, module, name, function, backward):
        self.module, self.name, self.function, self.vjp = module, name, function, backward
        self.plain_forward, self.plain_backward = module.forward, module.backward
        self.array = self.new_array = None  # the value in the last forward, before and after

    def forward(self, *args, **kwargs):
        self.array = self.new_array = None
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
        return self.plain_forward(*args, **kwargs)

    def run_backward(self, dout, *args, **kwargs):
        """The module's backward with the gradient of the old value."""
        return self.plain_backward(dout, *args, **kwargs)

    def replace(self, array):
        """The new value of the array: a copy of what the function returns, because layers may work in place."""
        new = self.function(array.copy())
        if not isinstance(new, np.ndarray) or new.shape != array.shape or new.dtype.kind not in "biuf":
            got = f"{new.dtype} {new.shape}" if isinstance(new, np.ndarray) else type(new).__name__
            raise ValueError(f"function must return an array of the shape of {self.name}, {array.shape}, got {got}")
        self.array, self.new_array = array, np.array(new, array.dtype)
        return self.new_array

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
        with methods(self.module, {"forward": self.forward, "backward": self.backward}):
            try:
                yield
            finally:
                for _, module in self.module.named_modules() if self.new_array is not None else ():
                    kept = {name: array for name, array in module._kept.items() if name in module.always_kept}
                    object.__setattr__(module, "_kept", kept)


class Output(Place):
    """The output of the module, of several the first."""

    def run(self, *args, **kwargs):
        output = super().run(*args, **kwargs)
        if isinstance(output, tuple):
            return (self.replace(output[0]), *output[1:])
        return self.replace(output)

    def run_backward(self, dout, *args, **kwargs):
        return super().run_backward(self.gradient(dout), *args, **kwargs)


class Tap(Place):
    """A value that the module passes through `keep`, and its gradient through `gradient`."""

    @contextmanager
    def active(self):
        changes, value = vars(self.module).setdefault("_changes", {}), self.name.rpartition(".")[2]
        with super().active():
            changes[value] = self
            try:
                yield
            finally:
                del changes[value]

    def new(self, array):
        return None if array is None else self.replace(array)
