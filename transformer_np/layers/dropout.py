import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..module import Module
from ..support.checks import as_dout, as_rng, check_number


class Dropout(Module):
    """In training mode, set each entry to 0 with probability p and scale the others by 1/(1 − p); do nothing in eval.

    The random numbers come from `rng`, which other layers may share.
    """

    def __init__(self, p, rng=None, dtype: DTypeLike = np.float32):
        check_number("p", p, "[0, 1)")
        self.p = p
        self.rng = as_rng(rng)

    def forward(self, x):
        if not self.training or self.p == 0:
            self.keep(keep=None, like=(np.shape(x), x.dtype))
            return x
        y, keep = F.dropout(x, self.p, self.rng)
        self.keep(keep=keep)
        return y

    def backward(self, dy):
        if not self.training and not self._kept:  # eval() keeps nothing
            return dy
        keep = self.kept("keep")
        if keep is None:  # nothing was dropped
            return as_dout(dy, *self.kept("like"), "dy")
        return F.dropout_backward(dy, keep, self.p)
