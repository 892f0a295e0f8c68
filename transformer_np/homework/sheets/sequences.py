"""What attention is compared with: the recurrent layer and the causal convolution, with their backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes
from .activations import relu, sigmoid  # noqa: F401 - for the mistakes
from .draws import Calls, only
from .sheet import Sheet

SHEET = Sheet(__file__)


def rnn_cases(rng):
    def scaled(w):  # a matrix that keeps the variance of what it multiplies
        return w * len(w) ** -0.5

    case = Calls(rng, F.rnn, draw_sizes(rng, "B T D_in D", least=3), w_x=scaled, w_h=scaled)
    return [
        case(""),
        case("no bias", b=None),
        case("a single step (T = 1)", {"T": 1}),
        case("as many features in as out", {"D_in": case.sizes["D"]}),
    ]


def rnn(x, w_x, w_h, b=None):
    a = x @ w_x
    if b is not None:
        a = a + b
    h = np.zeros_like(a[:, 0])
    states = []
    for t in range(a.shape[1]):
        h = np.tanh(a[:, t] + h @ w_h)
        states.append(h)
    return np.stack(states, axis=1)


def with_large(rng, cases):
    dh, *arguments = cases[0].arguments
    return [*cases, Case("dh a hundred times as large", (100 * dh, *arguments), sizes=cases[0].sizes)]


def before(x):
    """x of the step before: x_{t−1} at step t, zero in the first."""
    return np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], axis=1)


def products(inputs, da):
    """Σ inputs_tᵀ da_t, over the batch and all steps."""
    return np.einsum("bti,btj->ij", inputs, da)


def rnn_backward(dh, x, h, w_x, w_h):
    T = h.shape[1]
    slope = 1 - h**2
    da = np.zeros_like(h)
    back = np.zeros_like(h[:, 0])
    for t in reversed(range(T)):
        dh_t = dh[:, t] + back
        da[:, t] = dh_t * slope[:, t]
        back = da[:, t] @ w_h.T
    h_before = before(h)
    dx = da @ w_x.T
    dw_x = products(x, da)
    dw_h = products(h_before, da)
    db = da.sum(axis=(0, 1))
    return dx, dw_x, dw_h, db


# --- the causal convolution -------------------------------------------------------------------------------------------


def conv_cases(rng):
    sizes = draw_sizes(rng, "B D_in D_out")
    k = int(rng.choice([3, 5]))  # odd: there is one way only to pad on both sides
    T = 2 * k + 3 + int(rng.integers(2))
    case = Calls(rng, F.causal_conv1d, only(sizes | {"T": T, "k": k}, "B T k D_in D_out"))
    short = {"T": T // 2 + 1, "k": 3}  # two taps reach it, the third looks at what lies before the start
    return [
        case(""),
        case("dilation 2", dilation=2),
        case("dilation 3", dilation=3),
        case("no bias", b=None),
        case("a dilation with taps wholly before the start", short, dilation=T // 2),
        case("as many features out as in", {"D_out": sizes["D_in"]}),
        case("one token and one tap", {"T": 1, "k": 1}),
    ]


def shifted(x, places):
    """x_{t − places} at token t, and 0 where there is no such token."""
    T = x.shape[1]
    t = np.arange(T) - places
    inside = (0 <= t) & (t < T)
    return x[:, t % T] * inside[:, None]


def causal_conv1d(x, w, b=None, dilation=1):
    B, T, _ = x.shape
    k, _, D_out = w.shape
    y = np.zeros((B, T, D_out))
    for j in range(k):
        back = j * dilation
        y = y + shifted(x, back) @ w[j]
    if b is not None:
        y = y + b
    return y


def causal_conv1d_backward(dy, x, w, dilation=1):
    B, T, D_in = x.shape
    k = len(w)
    dx, dw = np.zeros((B, T, D_in)), np.zeros_like(w)
    for j in range(k):
        back = j * dilation
        dx = dx + shifted(dy, -back) @ w[j].T
        dw[j] = products(shifted(x, back), dy)
    db = dy.sum(axis=(0, 1))
    return dx, dw, db


EXERCISES = [
    *SHEET.both(F.rnn, rnn, rnn_backward, rnn_cases, without=["no bias"], then=with_large),
    *SHEET.both(F.causal_conv1d, causal_conv1d, causal_conv1d_backward, conv_cases, without=["no bias"]),
]
