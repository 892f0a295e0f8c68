"""The feed-forward network with a gate (Shazeer 2020), of T5 v1.1 and Llama."""

import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..module import Parameter
from ..support.checks import as_rng, check_all_at_least
from .feed_forward import FeedForward
from .initial import glorot_uniform

GATED = {"gated_gelu": (), "gated_silu": ("silu",)}  # the arguments of F.gated_feed_forward for the gate


class GatedFeedForward(FeedForward, activations=GATED):
    """y = (f(x W_gate) · x W₁) W₂: what one linear map lets through is multiplied with another. There are no biases."""

    taps = ("x", "gate", "value")
    may_have_bias = False

    def __init__(self, d_model, d_ff, activation="gated_gelu", bias=False, rng=None, dtype: DTypeLike = np.float32):
        check_all_at_least(1, d_model=d_model, d_ff=d_ff)
        rng = as_rng(rng)
        self.w_gate = Parameter(glorot_uniform(rng, d_model, d_ff, dtype))
        super().__init__(d_model, d_ff, activation, bias, rng, dtype)

    def replaceable(self):
        places = super().replaceable()
        del places["hidden"]  # it is the product of gate and value, and never kept
        return places

    def forward(self, x):
        x, gate_of = self.keep(x=x), GATED[self.activation]
        y, gate, value = F.gated_feed_forward(x, self.w_gate.data, self.w1.data, self.w2.data, *gate_of)
        new_gate, new_value = self.keep(gate=gate, value=value)  # (B, T, F)
        if new_gate is gate and new_value is value:
            return y
        both, (left, right) = np.concatenate([new_gate, new_value], axis=-1), self._halves()
        return F.gated_feed_forward(both, left, right, self.w2.data, *gate_of)[0]

    def backward(self, dy):
        """The gate and the value are two linear maps of x; what follows sees them as the halves of one array, so that
        their gradients are at hand."""
        x, gate, value = self.kept("x", "gate", "value")
        w_gate, w1, w2, gate_of = self.w_gate.data, self.w1.data, self.w2.data, GATED[self.activation]
        if not self._changes:
            dx, dw_gate, dw1, dw2 = F.gated_feed_forward_backward(dy, x, gate, value, w_gate, w1, w2, *gate_of)
        else:
            both, (left, right) = np.concatenate([gate, value], axis=-1), self._halves()
            dboth, _, _, dw2 = F.gated_feed_forward_backward(dy, both, gate, value, left, right, w2, *gate_of)
            dgate, dvalue = np.split(dboth, 2, axis=-1)
            dgate, dvalue = self.gradient(gate=dgate, value=dvalue)
            dx_gate, dw_gate, _ = F.linear_backward(dgate, x, w_gate)
            dx, dw1, _ = F.linear_backward(dvalue, x, w1)
            dx += dx_gate
        self.w_gate.grad += dw_gate
        self.w1.grad += dw1
        self.w2.grad += dw2
        return self.gradient(x=dx)

    def _halves(self):
        """Two matrices (2F, F) that cut (..., 2F) into halves."""
        one_hot = np.eye(2 * self.w1.shape[1], dtype=self.w1.dtype)
        return np.split(one_hot, 2, axis=1)
