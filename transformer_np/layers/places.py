"""Values that exist only inside a function of `functional`, for `Module.replacing`: the weights, the hidden features.

While such a value is replaced, the function that makes it is swapped as long as the layer runs.
"""

from contextlib import contextmanager
from functools import wraps

from .. import functional as F
from ..support.replacing import Tap


class Result(Tap):
    """The result of a function that the layer calls.

    calls: for the function and for its backward, the number of the call in question, from 0
    """

    def __init__(self, function, calls=(0, 0)):
        self.function_name, self.calls = function, calls

    def run(self, *args, **kwargs):
        self.left = self.calls[0]
        with swapped(self.function_name, self._result):
            return super().run(*args, **kwargs)

    def run_backward(self, *args, **kwargs):
        self.left = self.calls[1]
        with swapped(f"{self.function_name}_backward", self._gradient):
            return super().run_backward(*args, **kwargs)

    def new(self, array):  # the layer keeps what the function returned
        return array

    def _result(self, function, *args, **kwargs):
        result = function(*args, **kwargs)
        self.left -= 1
        return self.replace(result) if self.left == -1 else result

    def _gradient(self, function, dy, *args, **kwargs):
        self.left -= 1
        if self.left == -1:
            dy = self.gradient(dy)
            args = [self.array if arg is self.new_array else arg for arg in args]  # softmax_backward reads the old ones
        return function(dy, *args, **kwargs)


@contextmanager
def swapped(name, change):
    """Inside the block, F.name(…) calls change(the function, …)."""
    function = getattr(F, name)

    @wraps(function)
    def called(*args, **kwargs):
        return change(function, *args, **kwargs)

    setattr(F, name, called)
    try:
        yield
    finally:
        setattr(F, name, function)
