import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..module import Module, Parameter
from ..support.checks import as_rng, check_at_least, check_choice, check_flag
from .activations import ACTIVATIONS, activate, activate_backward
from .initial import glorot_uniform
from .places import Result

GATED = {"gated_gelu": (), "gated_silu": ("silu",)}  # the arguments of F.gated_feed_forward for the gate


class FeedForward(Module):
    """Two linear maps with an activation between them, applied to each position: (B, T, D) -> (B, T, F) -> (B, T, D).

    activation: "relu" as in the paper (§3.3), "gelu" (exact) as in BERT, "gelu_tanh" as in GPT-2, "silu"; "gated_gelu"
        as in T5 v1.1 and "gated_silu" as in Llama, which add a third matrix, w_gate, and have no biases.
    """

    def __init__(self, d_model, d_ff, activation="relu", bias=True, rng=None, dtype: DTypeLike = np.float32):
        check_at_least("d_model", d_model, 1)
        check_at_least("d_ff", d_ff, 1)
        check_choice("activation", activation, (*ACTIVATIONS, *GATED))
        check_flag("bias", bias)
        if activation in GATED and bias:
            raise ValueError("a gated feed-forward network has no biases: pass bias=False")
        rng = as_rng(rng)
        self.activation = activation
        self.w_gate = Parameter(glorot_uniform(rng, d_model, d_ff, dtype)) if activation in GATED else None
        self.w1 = Parameter(glorot_uniform(rng, d_model, d_ff, dtype))
        self.b1 = Parameter(np.zeros(d_ff, dtype)) if bias else None
        self.w2 = Parameter(glorot_uniform(rng, d_ff, d_model, dtype))
        self.b2 = Parameter(np.zeros(d_model, dtype)) if bias else None

    @property
    def _is_the_papers(self):
        """Whether F.feed_forward computes this network: it has a ReLU and biases."""
        return self.activation == "relu" and self.b1 is not None

    taps = ("x",)

    def replaceable(self):
        if self.w_gate is not None:
            inside = {"gate": Result("linear", calls=(0, 1)), "value": Result("linear", calls=(1, 2))}
        else:
            inside = {"hidden": Result(self.activation.removesuffix("_tanh"))}  # the name of a function
            if not self._is_the_papers:
                inside["before"] = Result("linear", calls=(0, 1))
        return {**super().replaceable(), **inside}

    def forward(self, x):
        x, w1, w2 = self.keep(x=x), self.w1.data, self.w2.data
        if self.w_gate is not None:
            y, gate, value = F.gated_feed_forward(x, self.w_gate.data, w1, w2, *GATED[self.activation])
            self.keep(gate=gate, value=value)
            return y
        b1, b2 = (None if b is None else b.data for b in (self.b1, self.b2))
        if self._is_the_papers:
            y, hidden = F.feed_forward(x, w1, b1, w2, b2)
            self.keep(hidden=hidden)
            return y
        before = F.linear(x, w1, b1)  # (B, T, F)
        hidden, kept = activate(self, before)
        self.keep(hidden=hidden, **kept)
        return F.linear(hidden, w2, b2)  # (B, T, D)

    def backward(self, dy):
        w1, w2 = self.w1.data, self.w2.data
        if self.w_gate is not None:
            x, gate, value = self.kept("x", "gate", "value")
            arrays = dy, x, gate, value, self.w_gate.data, w1, w2
            dx, dw_gate, dw1, dw2 = F.gated_feed_forward_backward(*arrays, *GATED[self.activation])
            self.w_gate.grad += dw_gate
        elif self._is_the_papers:
            x, hidden = self.kept("x", "hidden")
            dx, dw1, db1, dw2, db2 = F.feed_forward_backward(dy, x, hidden, w1, w2)
        else:
            x, hidden = self.kept("x", "hidden")
            dhidden, dw2, db2 = F.linear_backward(dy, hidden, w2)
            dbefore = activate_backward(self, dhidden)
            dx, dw1, db1 = F.linear_backward(dbefore, x, w1)
        self.w1.grad += dw1
        self.w2.grad += dw2
        if self.b1 is not None:
            self.b1.grad += db1
            self.b2.grad += db2
        return self.gradient(x=dx)
