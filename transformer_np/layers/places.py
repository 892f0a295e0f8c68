"""Values that exist only inside a function of `functional`, for `Module.replacing`: the scores and the weights of an
attention, what each head writes, the hidden features.

While such a value is replaced, one step of this one layer computes what follows from the new value. Its backward needs
the gradient that belongs to the old value, and gets it from the function's own backward: where the values are one-hot
rows, an attention's output is its weights.
"""

from contextlib import contextmanager
from functools import partial

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

    def new(self, array):  # the module keeps what its step returned, or would compute it from the old value
        return self.new_array if isinstance(array, partial) else array


class Weights(Inside):
    """The weights of an attention: the heads are averaged again with the new ones. The scores may be replaced as well,
    so their stand-in is the same."""

    steps = ("_attend", "_attend_backward")

    def _attend(self, q, k, v, *others):
        module, scores, weights = self.module, *self.both()
        if scores is None:
            _, found = self.own("_attend")(q, k, v, *others)
        else:
            found = F.softmax(scores.replace(module._scores(q, k, *others)))
        found = found if weights is None else weights.replace(found)
        return self.spread(found, k) @ self.repeated(v), found

    def _attend_backward(self, dheads, q, k, v, weights, *others):
        scores, replaced = self.both()
        dv = self.spread(weights, k).swapaxes(-1, -2) @ dheads  # (B, H, S, K)
        dv = dv.reshape(*v.shape[:2], -1, *v.shape[2:]).sum(axis=2)  # (B, G, S, K): heads of a group share their v
        dweights = self.gathered(dheads @ self.repeated(v).swapaxes(-1, -2))  # (B, H, T, S)
        if replaced is not None:
            dweights, weights = replaced.gradient(dweights), replaced.array
        if scores is not None:
            dscores = scores.gradient(F.softmax_backward(dweights, weights))
            dweights, weights = self.without_softmax(dscores, scores.array)
        one_hot = np.broadcast_to(np.eye(k.shape[2], dtype=k.dtype), (*k.shape[:3], k.shape[2]))
        backward = self.own("_attend_backward")
        dq, dk, _, *more = backward(self.spread(dweights, k), q, k, one_hot, weights, *others)
        return dq, dk, dv, *more

    def both(self):
        """The places of the scores and of the weights, None for one that is not replaced."""
        return self.module._changes.get("scores"), self.module._changes.get("weights")

    def own(self, step):
        """The step of the module's class."""
        return getattr(type(self.module), step).__get__(self.module)

    def without_softmax(self, dscores, scores):
        """Gradients and weights from which the backward of softmax, A (dA − Σ dA A), computes these dscores.

        With A = a for each visible score, dA = dscores/a + Σ dscores / (1 − Σ a). A hidden score is a constant.
        """
        a = 0.5 / scores.shape[-1] * (scores > -np.inf).astype(scores.dtype)  # (B, H, T, S)
        seen = dscores * (a > 0)
        total = seen.sum(axis=-1, keepdims=True) / (1 - a.sum(axis=-1, keepdims=True))
        return 2 * scores.shape[-1] * seen + total, a

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


class Written(Inside):
    """What each head adds to the output of an attention, (B, H, T, D)."""

    steps = ("_project", "_project_backward")

    def _project(self, name, x):
        y = self.plain["_project"](name, x)
        if name != "o":
            return y
        old = self.module._written(x)
        return y + (self.replace(old) - old).sum(axis=1)  # (B, T, D)

    def _project_backward(self, name, dy, x):
        if name != "o":
            return self.plain["_project_backward"](name, dy, x)
        module, H = self.module, self.module.num_heads
        dold = self.gradient(np.repeat(dy[:, None], H, axis=1))  # (B, H, T, D): every head is in the sum
        w = module._w_o().reshape(H, -1, dy.shape[-1])  # (H, K, D)
        dw = F.split_heads(x, H).swapaxes(-1, -2) @ dold  # (B, H, K, D)
        module._w_o_backward(dw.sum(axis=0).reshape(-1, dy.shape[-1]))
        if module.b_o is not None:
            module.b_o.grad += dy.sum(axis=(0, 1))
        return F.merge_heads(dold @ w.swapaxes(-1, -2))  # (B, T, H·K)


class Hidden(Inside):
    """What F.feed_forward hides between its two linear maps: the second map is applied again, to the new features."""

    steps = ("_network", "_network_backward")

    def _network(self, x):
        _, hidden = self.plain["_network"](x)
        new, layer = self.replace(hidden), self.module
        return F.linear(new, layer.w2.data, layer.b2.data), new

    def _network_backward(self, dy, x, hidden):
        dhidden, dw2, db2 = F.linear_backward(dy, hidden, self.module.w2.data)
        dbefore = F.relu_backward(self.gradient(dhidden), self.array)
        return *F.linear_backward(dbefore, x, self.module.w1.data), dw2, db2
