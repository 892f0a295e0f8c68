"""The feed-forward network with another activation than the lecture's ReLU, or without biases."""

from .. import functional as F
from .activations import ACTIVATIONS, activate, activate_backward
from .feed_forward import FeedForward


class ActivatedFeedForward(FeedForward, activations=ACTIVATIONS):
    """y = f(x W₁ + b₁) W₂ + b₂ with f of layers.activations, such as GELU; the biases are optional."""

    taps = ("x", "before", "hidden")
    places = ()

    def forward(self, x):
        x = self.keep(x=x)
        b1, b2 = (None if b is None else b.data for b in (self.b1, self.b2))
        before = self.keep(before=F.linear(x, self.w1.data, b1))  # (B, T, F)
        hidden, slope = activate(self.activation, before, self.keeping)  # (B, T, F)
        if slope is not None:
            self.keep(slope=slope)
            del self._kept["before"]  # the slope is all that the backward pass needs of it
        return F.linear(self.keep(hidden=hidden), self.w2.data, b2)  # (B, T, D)

    def _network_backward(self, dy, x, hidden):
        back = frozen_linear_backward if self.w1.frozen else F.linear_backward
        dhidden, dw2, db2 = back(dy, hidden, self.w2.data)
        dhidden = self.gradient(hidden=dhidden)
        dbefore = activate_backward(self.activation, dhidden, self._kept.get("before"), self._kept.get("slope"))
        dx, dw1, db1 = back(self.gradient(before=dbefore), x, self.w1.data)
        return dx, dw1, db1, dw2, db2


def frozen_linear_backward(dy, x, w):
    """As F.linear_backward, without the gradients of what does not learn: a third less work."""
    return F.linear(dy, w.T), None, None
