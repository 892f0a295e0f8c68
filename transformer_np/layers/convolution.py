import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..module import Module, Parameter
from ..support.checks import check_all_at_least, check_flag
from .initial import glorot_uniform


class CausalConv1d(Module):
    """A convolution over a token and the kernel_size − 1 tokens before it, y_t = Σ_j x_{t − j·dilation} W_j + b.

    x (B, T, d_in)  ->  y (B, T, d_out). w is (kernel_size, d_in, d_out), and w[0] is for the token itself; zeros stand
    before the start. b (d_out,) starts at 0.
    """

    def __init__(self, d_in, d_out, kernel_size, dilation=1, bias=True, rng=None, dtype: DTypeLike = np.float32):
        check_all_at_least(1, d_in=d_in, d_out=d_out, kernel_size=kernel_size, dilation=dilation)
        check_flag("bias", bias)
        self.dilation = dilation
        w = glorot_uniform(rng, kernel_size * d_in, d_out, dtype)  # y sums over kernel_size · d_in
        self.w = Parameter(w.reshape(kernel_size, d_in, d_out))
        self.b = Parameter(np.zeros(d_out, dtype)) if bias else None

    def forward(self, x):
        self.keep(x=x)
        return F.causal_conv1d(x, self.w.data, None if self.b is None else self.b.data, self.dilation)

    def backward(self, dy):
        dx, dw, db = F.causal_conv1d_backward(dy, self.kept("x"), self.w.data, self.dilation)
        self.w.grad += dw
        if self.b is not None:
            self.b.grad += db
        return dx
