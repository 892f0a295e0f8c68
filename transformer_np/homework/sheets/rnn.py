"""The recurrent layer and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes
from .activations import relu, sigmoid  # noqa: F401 - for the mistakes
from .draws import of_forward
from .sheet import Sheet

SHEET = Sheet(__file__)


def weights(rng, *shape):
    """A random matrix that keeps the variance of what it multiplies."""
    return rng.normal(size=shape) * shape[0] ** -0.5


def rnn_cases(rng):
    sizes = draw_sizes(rng, "B T D_in D", least=3)
    B, T, D_in, D = sizes.values()
    x = rng.normal(size=(B, T, D_in))
    w_x, w_h, b = weights(rng, D_in, D), weights(rng, D, D), rng.normal(size=D)
    square = rng.normal(size=(B, T, D)), weights(rng, D, D), w_h, b
    return [
        Case("", (x, w_x, w_h, b), sizes=sizes),
        Case("no bias", (x, w_x, w_h), sizes=sizes),
        Case("a single step (T = 1)", (x[:, :1], w_x, w_h, b), sizes=sizes | {"T": 1}),
        Case("as many features in as out", square, sizes=sizes | {"D_in": D}),
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


def rnn_backward_cases(rng):
    plain, *others = of_forward(F.rnn, rnn_cases, ["no bias"])(rng)
    dh, *arguments = plain.arguments
    return [plain, *others, Case("dh a hundred times as large", (100 * dh, *arguments), sizes=plain.sizes)]


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


EXERCISES = [
    SHEET.exercise(F.rnn, rnn, rnn_cases),
    SHEET.exercise(F.rnn_backward, rnn_backward, rnn_backward_cases),
]
