"""Layer normalisation and RMS norm, with their backward."""

from functools import partial

import numpy as np

from ... import functional as F
from ..exercise import draw_sizes
from .draws import Calls
from .sheet import Sheet

SHEET = Sheet(__file__)

EPS_OF_FORWARD = 0.01  # of a backward pass: so large that no row's scale is far above the others


def norm_cases(rng, forward, level, about_level):
    """The cases of a norm. level: the number in the row of equal numbers"""

    def rows(z):  # each with a mean and a standard deviation of its own, so large that the default ε does not show
        z = (z - z.mean(axis=-1, keepdims=True)) / z.std(axis=-1, keepdims=True)
        of_row = (*z.shape[:-1], 1)
        return z * rng.uniform(1.5, 3, size=of_row) + rng.normal(size=of_row)

    def with_equal(x):
        x = rows(x)
        x[-1, 0] = level
        return x

    def with_zero(gamma):  # by which no answer may divide
        gamma[0] = 0
        return gamma

    # from 3 on: two numbers, normalised, are −1 and 1 whatever they were
    case = Calls(rng, forward, draw_sizes(rng, "B H T D", least=3), without="H", x=rows)
    return [
        case(""),
        case("eps=0.3", x=lambda x: 0.3 * rows(x), eps=0.3),
        case("numbers so small that ε counts", x=lambda x: 0.0015 * rows(x)),
        case(about_level, x=with_equal),
        case("a γ of 0", gamma=with_zero),
        *case.of_other_ranks(),
    ]


def layer_norm(x, gamma, beta, eps=1e-5):
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    variance = (centred**2).mean(axis=-1, keepdims=True)
    std = np.sqrt(variance + eps)
    inv_std = 1 / std
    x_hat = centred * inv_std
    y = gamma * x_hat + beta
    return y, x_hat, inv_std


def layer_norm_backward(dy, x_hat, inv_std, gamma):
    rows = tuple(range(dy.ndim - 1))
    dgamma = (dy * x_hat).sum(axis=rows)
    dbeta = dy.sum(axis=rows)
    dx_hat = dy * gamma
    first = dx_hat.mean(axis=-1, keepdims=True)
    second = x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = inv_std * (dx_hat - first - second)
    return dx, dgamma, dbeta


def rms_norm(x, gamma, eps=1e-6):
    mean_square = (x**2).mean(axis=-1, keepdims=True)
    rms = np.sqrt(mean_square + eps)
    inv_rms = 1 / rms
    x_hat = x * inv_rms
    y = gamma * x_hat
    return y, x_hat, inv_rms


def rms_norm_backward(dy, x_hat, inv_rms, gamma):
    rows = tuple(range(dy.ndim - 1))
    dgamma = (dy * x_hat).sum(axis=rows)
    dx_hat = dy * gamma
    mean = (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = inv_rms * (dx_hat - x_hat * mean)
    return dx, dgamma


layer_norm_cases = partial(norm_cases, forward=F.layer_norm, level=0.25, about_level="a row of equal numbers")
rms_norm_cases = partial(norm_cases, forward=F.rms_norm, level=0, about_level="a row of zeros")

EXERCISES = [
    *SHEET.both(F.layer_norm, layer_norm, layer_norm_backward, layer_norm_cases, eps=EPS_OF_FORWARD),
    *SHEET.both(F.rms_norm, rms_norm, rms_norm_backward, rms_norm_cases, eps=EPS_OF_FORWARD),
]
