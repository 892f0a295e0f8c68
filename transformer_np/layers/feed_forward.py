import numpy as np

from .. import functional as F
from ..module import Module, Parameter
from ..support.checks import check_at_least
from .initial import glorot_uniform

# how each kind of GELU is called in `functional`
_GELU = {"gelu": "none", "gelu_tanh": "tanh"}


class FeedForward(Module):
    """Two linear maps with an activation between, the same for every position: (B, T, D) -> (B, T, F) -> (B, T, D).

    activation: "relu" as in the paper (§3.3), "gelu" exact as in BERT, "gelu_tanh" as in GPT-2; "gated_gelu" as in T5
        v1.1, with a third matrix, w_gate, and no biases.
    """

    def __init__(self, d_model, d_ff, activation="relu", bias=True, rng=None, dtype=np.float32):
        check_at_least("d_model", d_model, 1)
        check_at_least("d_ff", d_ff, 1)
        if activation not in ("relu", "gated_gelu", *_GELU):
            raise ValueError(f'activation must be "relu", "gelu", "gelu_tanh" or "gated_gelu", got {activation!r}')
        if activation == "gated_gelu" and bias:
            raise ValueError("the gated network has no biases: bias=False")
        rng = np.random.default_rng(rng)
        self.activation = activation
        self.w_gate = Parameter(glorot_uniform(rng, d_model, d_ff, dtype)) if activation == "gated_gelu" else None
        self.w1 = Parameter(glorot_uniform(rng, d_model, d_ff, dtype))
        self.b1 = Parameter(np.zeros(d_ff, dtype)) if bias else None
        self.w2 = Parameter(glorot_uniform(rng, d_ff, d_model, dtype))
        self.b2 = Parameter(np.zeros(d_model, dtype)) if bias else None

    def forward(self, x):
        w1, w2 = self.w1.data, self.w2.data
        b1, b2 = (None if b is None else b.data for b in (self.b1, self.b2))
        if self.activation == "relu":
            if b1 is None:  # F.feed_forward is the paper's, with biases
                b1, b2 = np.zeros(w1.shape[1], w1.dtype), np.zeros(w2.shape[1], w2.dtype)
            y, hidden = F.feed_forward(x, w1, b1, w2, b2)
            self.keep(x=x, hidden=hidden)
            return y
        if self.activation == "gated_gelu":
            y, gate, value = F.gated_feed_forward(x, self.w_gate.data, w1, w2)
            self.keep(x=x, gate=gate, value=value)
            return y
        before = F.linear(x, w1, b1)  # (B, T, F)
        hidden = F.gelu(before, _GELU[self.activation])
        self.keep(x=x, before=before, hidden=hidden)
        return F.linear(hidden, w2, b2)  # (B, T, D)

    def backward(self, dy):
        if self.activation == "gated_gelu":
            weights = self.w_gate, self.w1, self.w2
            arrays = self.kept("x", "gate", "value")
            dx, *gradients = F.gated_feed_forward_backward(dy, *arrays, *(w.data for w in weights))
            for w, gradient in zip(weights, gradients, strict=True):
                w.grad += gradient
            return dx
        x, hidden = self.kept("x", "hidden")
        if self.activation == "relu":
            dx, dw1, db1, dw2, db2 = F.feed_forward_backward(dy, x, hidden, self.w1.data, self.w2.data)
        else:
            dhidden, dw2, db2 = F.linear_backward(dy, hidden, self.w2.data)
            dbefore = F.gelu_backward(dhidden, self.kept("before"), _GELU[self.activation])
            dx, dw1, db1 = F.linear_backward(dbefore, x, self.w1.data)
        self.w1.grad += dw1
        self.w2.grad += dw2
        if self.b1 is not None:
            self.b1.grad += db1
            self.b2.grad += db2
        return dx
