import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..module import Module, Parameter
from ..support.checks import check_all_at_least, check_flag
from .initial import glorot_uniform, normal


class Linear(Module):
    """y = x W + b for every row. W is (d_in, d_out); b starts at 0.

    W starts uniform in ±√(6/(d_in + d_out)), or normal with standard deviation `init_std` if that is given.
    """

    def __init__(self, d_in, d_out, bias=True, rng=None, dtype: DTypeLike = np.float32, init_std=None):
        check_all_at_least(1, d_in=d_in, d_out=d_out)
        check_flag("bias", bias)
        if init_std is None:
            self.w = Parameter(glorot_uniform(rng, d_in, d_out, dtype))
        else:
            self.w = Parameter(normal(rng, (d_in, d_out), init_std, dtype))
        self.b = Parameter(np.zeros(d_out, dtype)) if bias else None

    taps = ("x",)

    def forward(self, x):
        x = self.keep(x=x)
        return F.linear(x, self.w.data, None if self.b is None else self.b.data)  # (..., d_out)

    def backward(self, dy):
        dx, dw, db = F.linear_backward(dy, self.kept("x"), self.w.data)
        self.w.grad += dw
        if self.b is not None:
            self.b.grad += db
        return self.gradient(x=dx)
