import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..module import Module, Parameter
from ..support.checks import as_rng, check_all_at_least, check_flag
from .initial import glorot_uniform


class RNN(Module):
    """The vanilla recurrent layer, h_t = tanh(x_t W_x + h_{t−1} W_h + b) with h_{−1} = 0 (Elman 1990).

    x (B, T, d_in)  ->  h (B, T, d_out). w_x is (d_in, d_out), w_h (d_out, d_out), b (d_out,) starts at 0.
    """

    def __init__(self, d_in, d_out, bias=True, rng=None, dtype: DTypeLike = np.float32):
        check_all_at_least(1, d_in=d_in, d_out=d_out)
        check_flag("bias", bias)
        rng = as_rng(rng)
        self.w_x = Parameter(glorot_uniform(rng, d_in, d_out, dtype))
        self.w_h = Parameter(glorot_uniform(rng, d_out, d_out, dtype))
        self.b = Parameter(np.zeros(d_out, dtype)) if bias else None

    def forward(self, x):
        h = F.rnn(x, self.w_x.data, self.w_h.data, None if self.b is None else self.b.data)  # (B, T, d_out)
        self.keep(x=x, h=h)
        return h

    def backward(self, dh):
        dx, dw_x, dw_h, db = F.rnn_backward(dh, *self.kept("x", "h"), self.w_x.data, self.w_h.data)
        self.w_x.grad += dw_x
        self.w_h.grad += dw_h
        if self.b is not None:
            self.b.grad += db
        return dx
