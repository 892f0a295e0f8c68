"""The layers that attention is compared with: recurrence and convolution."""

import numpy as np

from ..support.checks import check_at_least
from ..support.shapes import shapes
from .core import linear, linear_backward
from .fast import sum_of_rows


@shapes(x="B T D_in", w_x="D_in D", w_h="D D", b="D")
def rnn(x, w_x, w_h, b=None):
    """A recurrent layer: it reads one token after another and keeps the whole past in one vector (Elman 1990).

        h_t = tanh(x_t W_x + h_{t−1} W_h + b),    h_{−1} = 0

    x (B, T, D_in), w_x (D_in, D), w_h (D, D), b (D,) or None  ->  h (B, T, D)

    Each of the T steps waits for the one before; only x W_x can be computed for all at once.
    """
    h = linear(x, w_x, b)  # (B, T, D)
    for t in range(h.shape[1]):
        if t > 0:
            h[:, t] += h[:, t - 1] @ w_h  # (B, D)
        np.tanh(h[:, t], out=h[:, t])
    return h


@shapes(dh="B T D", x="B T D_in", h="B T D", w_x="D_in D", w_h="D D")
def rnn_backward(dh, x, h, w_x, w_h):
    """Backward of rnn: backpropagation through time (Werbos 1990).

    h_t affects the loss directly and through h_{t+1}, so the gradient is computed from the last step to the first. a_t
    is the input of the tanh:

        da_t = (dh_t + da_{t+1} W_hᵀ) · (1 − h_t²),    dx_t = da_t W_xᵀ
        dW_x = Σ x_tᵀ da_t,    dW_h = Σ h_{t−1}ᵀ da_t,    db = Σ da_t    over all steps: each step used them

    Each step back multiplies by W_hᵀ · (1 − h²). That is why the gradient vanishes or explodes.

    dh (B, T, D), h (B, T, D) the forward's output  ->  dx (B, T, D_in), dw_x (D_in, D), dw_h (D, D), db (D,)
    """
    D = h.shape[-1]
    da = 1 - h * h  # (B, T, D), the slope of the tanh
    da[:, -1] *= dh[:, -1]
    for t in range(h.shape[1] - 2, -1, -1):
        da[:, t] *= dh[:, t] + da[:, t + 1] @ w_h.T  # (B, D)
    dw_h = h[:, :-1].reshape(-1, D).T @ da[:, 1:].reshape(-1, D)
    dx, dw_x, db = linear_backward(da, x, w_x)
    return dx, dw_x, dw_h, db


@shapes(x="B T D_in", w="k D_in D_out", b="D_out")
def causal_conv1d(x, w, b=None, dilation=1):
    """A convolution that only looks back: every token sees itself and k − 1 tokens before it.

        y_t = Σ_j x_{t − j·dilation} W_j + b,    j = 0 … k − 1,    x = 0 before the start

    x (B, T, D_in), w (k, D_in, D_out) where w[0] is for the token itself, b (D_out,) or None  ->  y (B, T, D_out)

    dilation: the distance between the tokens seen. In a stack of layers with dilations 1, k, k², … each layer sees k
    times as far as the one below (van den Oord et al. 2016).
    """
    check_at_least("dilation", dilation, 1)
    T = x.shape[1]
    y = x @ w[0]  # (B, T, D_out)
    for j in range(1, _taps(w, T, dilation)):
        y[:, j * dilation :] += x[:, : T - j * dilation] @ w[j]  # the whole sequence, shifted
    if b is not None:
        y += b
    return y


@shapes(dy="B T D_out", x="B T D_in", w="k D_in D_out")
def causal_conv1d_backward(dy, x, w, dilation=1):
    """Backward of causal_conv1d: each shift forward becomes the same shift back.

        dx_t = Σ_j dy_{t + j·dilation} W_jᵀ,    dW_j = Σ_t x_{t − j·dilation}ᵀ dy_t,    db = Σ_t dy_t

    dy (B, T, D_out)  ->  dx (B, T, D_in), dw (k, D_in, D_out), db (D_out,)
    """
    check_at_least("dilation", dilation, 1)
    T = x.shape[1]
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    for j in range(_taps(w, T, dilation)):
        shift = j * dilation
        dy_rows = dy[:, shift:].reshape(-1, dy.shape[-1])  # (B·(T − shift), D_out)
        dx[:, : T - shift] += (dy_rows @ w[j].T).reshape(len(x), T - shift, -1)
        dw[j] = x[:, : T - shift].reshape(-1, x.shape[-1]).T @ dy_rows
    return dx, dw, sum_of_rows(dy)


def _taps(w, T, dilation):
    """The number of the k matrices that meet a token; the others only meet the zeros before the start."""
    return min(len(w), (T - 1) // dilation + 1)
