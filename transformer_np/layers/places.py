"""Values that exist only inside a function of `functional`, for `Module.replacing`: the weights, the hidden features.

While such a value is replaced, one step of this one layer computes what follows from the new value. Its backward needs
the gradient that belongs to the old value, and gets it from the function's own backward: where the values are one-hot
rows, an attention's output is its weights.
"""

from contextlib import contextmanager

import numpy as np

from .. import functional as F
from ..support.intercept import methods
from ..support.replacing import Tap


class Inside(Tap):
    """A value that is born and used inside the steps `steps` of the module, which methods here stand in for."""

    steps = ()

    @contextmanager
    def active(self):
        self.plain = {step: getattr(self.module, step) for step in self.steps}
        with super().active(), methods(self.module, {step: getattr(self, step) for step in self.steps}):
            yield

    def new(self, array):  # the module keeps what its step returned
        return array


class Weights(Inside):
    """The weights of an attention: the heads are averaged again with the new ones."""

    steps = ("_attend", "_attend_backward")

    def _attend(self, q, k, v, *others):
        _, weights = self.plain["_attend"](q, k, v, *others)
        new = self.replace(weights)
        return self.spread(new, k) @ self.repeated(v), new

    def _attend_backward(self, dheads, q, k, v, weights, *others):
        spread = self.spread(self.new_array, k)  # (B, H, T, S)
        dv = spread.swapaxes(-1, -2) @ dheads  # (B, H, S, K)
        dv = dv.reshape(*v.shape[:2], -1, *v.shape[2:]).sum(axis=2)  # (B, G, S, K): heads of a group share their v
        dspread = dheads @ self.repeated(v).swapaxes(-1, -2)  # (B, H, T, S)
        dweights = self.spread(self.gradient(self.gathered(dspread)), k)
        one_hot = np.broadcast_to(np.eye(k.shape[2], dtype=k.dtype), (*k.shape[:3], k.shape[2]))
        dq, dk, _, *more = self.plain["_attend_backward"](dweights, q, k, one_hot, self.array, *others)
        return dq, dk, dv, *more

    def repeated(self, v):
        """v (B, G, S, K)  ->  (B, H, S, K)"""
        return F.repeat_heads(v, self.module.num_heads // v.shape[1])

    def spread(self, weights, k):
        """The weights in their own form  ->  (B, H, T, S), one column per key."""
        return weights

    def gathered(self, spread):
        """The other way round."""
        return spread


class BandWeights(Weights):
    """The weights of a window, (B, H, T, R): a band along the diagonal of (B, H, T, S)."""

    def spread(self, weights, k):
        T, R = weights.shape[2:]
        window = R - 1 if self.module.causal else (R - 1) // 2
        self.key = np.arange(T)[:, None] + np.arange(R) - window  # (T, R)
        self.is_key = (self.key >= 0) & (self.key < T)
        spread = np.zeros((*weights.shape[:3], T), weights.dtype)
        row = np.broadcast_to(np.arange(T)[:, None], self.key.shape)
        spread[..., row[self.is_key], self.key[self.is_key]] = weights[..., self.is_key]
        return spread

    def gathered(self, spread):
        row = np.arange(spread.shape[2])[:, None]
        return np.where(self.is_key, spread[..., row, np.clip(self.key, 0, spread.shape[3] - 1)], 0)


class Hidden(Inside):
    """What F.feed_forward hides between its two linear maps: the second map is applied again, to the new features."""

    steps = ("_network", "_network_backward")

    def _network(self, x):
        _, hidden = self.plain["_network"](x)
        new, layer = self.replace(hidden), self.module
        return F.linear(new, layer.w2.data, layer.b2.data), new

    def _network_backward(self, dy, x, hidden):
        dhidden, dw2, db2 = F.linear_backward(dy, hidden, self.module.w2.data)
        one_hot = np.eye(hidden.shape[-1], dtype=hidden.dtype)  # a second map that changes nothing
        dhidden = self.gradient(dhidden)
        dx, dw1, db1, *_ = F.feed_forward_backward(dhidden, x, self.array, self.module.w1.data, one_hot)
        return dx, dw1, db1, dw2, db2
