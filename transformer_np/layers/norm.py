import numpy as np
from numpy.typing import DTypeLike

from .. import functional as F
from ..module import Module, Parameter
from ..support.checks import check_at_least, check_flag, check_number


class LayerNorm(Module):
    """Normalise each row to mean 0 and variance 1, then scale by γ and shift by β (Ba et al. 2016). γ starts at 1, β at
    0.

    bias=False: without β
    """

    def __init__(self, d_model, eps=1e-5, bias=True, rng=None, dtype: DTypeLike = np.float32):
        check_at_least("d_model", d_model, 1)
        check_flag("bias", bias)
        self.gamma = Parameter(np.ones(d_model, dtype))
        self.beta = Parameter(np.zeros(d_model, dtype)) if bias else None
        check_number("eps", eps, "[0, ∞)")
        self.eps = eps

    def forward(self, x):
        beta = np.zeros(self.gamma.shape, self.gamma.dtype) if self.beta is None else self.beta.data
        y, x_hat, inv_std = F.layer_norm(x, self.gamma.data, beta, self.eps)  # (..., D)
        self.keep(x_hat=x_hat, inv_std=inv_std)
        return y

    def backward(self, dy):
        dx, dgamma, dbeta = F.layer_norm_backward(dy, *self.kept("x_hat", "inv_std"), self.gamma.data)
        self.gamma.grad += dgamma
        if self.beta is not None:
            self.beta.grad += dbeta
        return dx


class RMSNorm(Module):
    """Scale each row to a mean square of 1, then by γ (Zhang & Sennrich 2019). γ starts at 1."""

    def __init__(self, d_model, eps=1e-6, rng=None, dtype: DTypeLike = np.float32):
        check_at_least("d_model", d_model, 1)
        self.gamma = Parameter(np.ones(d_model, dtype))
        check_number("eps", eps, "[0, ∞)")
        self.eps = eps

    def forward(self, x):
        y, x_hat, inv_rms = F.rms_norm(x, self.gamma.data, self.eps)  # (..., D)
        self.keep(x_hat=x_hat, inv_rms=inv_rms)
        return y

    def backward(self, dy):
        dx, dgamma = F.rms_norm_backward(dy, *self.kept("x_hat", "inv_rms"), self.gamma.data)
        self.gamma.grad += dgamma
        return dx
