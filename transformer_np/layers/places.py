"""Values that a layer computes with the functions of `functional`, for `Module.replacing`.

A layer calls F.name, and so do the functions themselves. While a value is replaced, such a function is swapped as long
as the layer runs. So the layers need no code for replacements, and a model without a replacement runs as fast as
before.
"""

from contextlib import ExitStack, contextmanager
from functools import wraps

from .. import functional as F
from ..support.replacing import Place

ATTENTIONS = (
    "scaled_dot_product_attention",
    "unscaled_attention",
    "relative_attention",
    "window_attention",
)


class Argument(Place):
    """An argument of a function: of the first one among `functions` that the layer calls.

    index: of the argument, and of its gradient among the results of the function's backward
    key: the name by which the layer keeps the value
    """

    def __init__(self, key, functions, index, off=()):
        self.key, self.functions, self.index, self.off = key, functions, index, off

    def run(self, *args, **kwargs):
        with swapped({name: self._before for name in self.functions}):
            output = self.plain_forward(*args, **kwargs)
        if self.key in self.module._kept:
            self.module._kept[self.key] = self.new
        return output

    def run_backward(self, *args, **kwargs):
        with swapped({f"{name}_backward": self._after for name in self.functions}):
            return self.plain_backward(*args, **kwargs)

    def _before(self, function, *args, **kwargs):
        if self.array is None:  # skip calls inside the first one
            args = list(args)
            args[self.index] = self.replace(args[self.index])
        return function(*args, **kwargs)

    def _after(self, function, dout, *args, **kwargs):
        gradients = list(function(dout, *args, **kwargs))
        gradients[self.index] = self.gradient(gradients[self.index])
        return tuple(gradients)


class Result(Place):
    """The result of a function that the layer calls.

    function, backward: the names of the function and of the one that receives the gradient of its result
    calls: for each of the two, the number of the call in question, from 0
    """

    def __init__(self, function, backward=None, calls=(0, 0), off=()):
        self.function_name, self.backward_name = function, backward or f"{function}_backward"
        self.calls, self.off = calls, off

    def run(self, *args, **kwargs):
        self.left = self.calls[0]
        with swapped({self.function_name: self._result}):
            return self.plain_forward(*args, **kwargs)

    def run_backward(self, *args, **kwargs):
        self.left = self.calls[1]
        with swapped({self.backward_name: self._gradient}):
            return self.plain_backward(*args, **kwargs)

    def _result(self, function, *args, **kwargs):
        result = function(*args, **kwargs)
        self.left -= 1
        return self.replace(result) if self.left == -1 else result

    def _gradient(self, function, dy, *args, **kwargs):
        self.left -= 1
        if self.left == -1:
            dy = self.gradient(dy)
            args = [self.array if arg is self.new else arg for arg in args]  # softmax_backward reads the old weights
        return function(dy, *args, **kwargs)


@contextmanager
def swapped(changes):
    """Inside the block, F.name(…) calls changes[name](the function, …)."""
    with ExitStack() as stack:
        for name, change in changes.items():
            if (function := getattr(F, name, None)) is not None:
                stack.callback(setattr, F, name, function)
                setattr(F, name, _changed(function, change))
        yield


def _changed(function, change):
    @wraps(function)
    def called(*args, **kwargs):
        return change(function, *args, **kwargs)

    return called
