"""The feed-forward network with a gate (Shazeer 2020), of T5 v1.1 and Llama."""

import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..module import Parameter
from ..support.checks import as_rng, check_all_at_least
from .activated import frozen_linear_backward
from .activations import ACTIVATIONS
from .feed_forward import FeedForward
from .initial import glorot_uniform

GATED = {"gated_gelu": "gelu_tanh", "gated_silu": "silu"}  # the activation of the gate


class GatedFeedForward(FeedForward, activations=GATED):
    """y = (f(x W_gate) · x W₁) W₂: what one linear map lets through is multiplied with another. There are no biases."""

    taps = ("x", "gate", "value")
    places = ()  # the hidden features are the product of gate and value, and never kept
    may_have_bias = False

    def __init__(self, d_model, d_ff, activation="gated_gelu", bias=False, rng=None, dtype: DTypeLike = np.float32):
        check_all_at_least(1, d_model=d_model, d_ff=d_ff)
        rng = as_rng(rng)
        self.w_gate = Parameter(glorot_uniform(rng, d_model, d_ff, dtype))
        super().__init__(d_model, d_ff, activation, bias, rng, dtype)

    def forward(self, x):
        x, w_gate, w1, w2 = self.keep(x=x), self.w_gate.data, self.w1.data, self.w2.data
        if not self._changes:
            y, gate, value = F.gated_feed_forward(x, w_gate, w1, w2, GATED[self.activation])
            self.keep(gate=gate, value=value)  # (B, T, F)
            return y
        gate, value = self.keep(gate=F.linear(x, w_gate), value=F.linear(x, w1))  # (B, T, F)
        return F.linear(ACTIVATIONS[GATED[self.activation]].forward(gate) * value, w2)

    def backward(self, dy):
        kept = self.kept("x", "gate", "value")
        if self._changes or self.w1.frozen:
            dx, dw_gate, dw1, dw2 = self._step_by_step(dy, *kept)
        else:
            weights = self.w_gate.data, self.w1.data, self.w2.data, GATED[self.activation]
            dx, dw_gate, dw1, dw2 = F.gated_feed_forward_backward(dy, *kept, *weights)
        self.w_gate.grad += dw_gate
        self.w1.grad += dw1
        self.w2.grad += dw2
        return self.gradient(x=dx)

    def _step_by_step(self, dy, x, gate, value):
        """As F.gated_feed_forward_backward, with the gradients of gate and value at hand."""
        back = frozen_linear_backward if self.w1.frozen else F.linear_backward
        act, act_backward, _ = ACTIVATIONS[GATED[self.activation]]
        opened = act(gate)  # (B, T, F)
        dhidden, dw2, _ = back(dy, opened * value, self.w2.data)
        dgate, dvalue = self.gradient(gate=act_backward(dhidden * value, gate), value=dhidden * opened)
        dx_gate, dw_gate, _ = back(dgate, x, self.w_gate.data)
        dx, dw1, _ = back(dvalue, x, self.w1.data)
        return dx + dx_gate, dw_gate, dw1, dw2
