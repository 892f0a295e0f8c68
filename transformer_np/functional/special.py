"""The error function, which NumPy lacks and the exact GELU needs."""

from functools import cache
from math import erf as exact_erf
from math import erfc, exp, log, log1p

import numpy as np


def erf(x):
    """The error function 2/√π ∫₀ˣ exp(−s²) ds, to 1e-14 (float64) or 2e-7 (float32), absolute.

    float32:  tanh(x p(x²));    float64:  1 − exp(−x²) q(2/(2 + x)) for x ≥ 0, and −erf(−x) below

    x (...)  ->  (...), of the same dtype

    Both polynomials are fitted to Python's own `math.erf`, once. The one for float32 costs half the time.
    """
    return _erf_float32(x) if x.dtype == np.float32 else _erf_float64(x).astype(x.dtype, copy=False)


def _erf_float32(x):
    x = np.clip(x, -_EDGE, _EDGE)
    inside = _polynomial(_fit_p(), x * x)
    inside *= x
    return np.tanh(inside, out=inside)


def _erf_float64(x):
    z = np.minimum(np.abs(x), _LARGEST)
    tail = _polynomial(_fit_q(), (2 / (2 + z) - _SMALLEST_T) * (2 / (1 - _SMALLEST_T)) - 1)
    tail *= np.exp(-z * z)
    return np.copysign(1 - tail, x)


def _polynomial(coefficients, x):
    """The polynomial with these coefficients, highest power first, by Horner's rule."""
    highest, second, *others = coefficients
    y = np.asarray(x * highest)  # a single number stays an array
    y += second
    for coefficient in others:
        y *= x
        y += coefficient
    return y


# --- the two fits; the coefficients are Python floats, because a NumPy float64 would promote a float32 array ----------

_EDGE = 4.3  # erf is ±1 in float32 from 4.0 on; here z p(z²) is 12.8, whose tanh is exactly 1 on every processor
_LARGEST = 6.5  # above it 1 − erf(z) < 1e-18, which is 0 in float64
_SMALLEST_T = 2 / (2 + _LARGEST)


def _nodes(number):
    """Chebyshev's nodes in (−1, 1): a fit in them does not oscillate at the ends."""
    return np.cos(np.pi * (np.arange(number) + 0.5) / number)


@cache
def _fit_p(terms=7):
    """p with z p(z²) = artanh(erf z) in (0, _EDGE), weighted by 1 − erf², the slope of tanh there."""
    z = _EDGE / 2 * (1 + _nodes(400))
    inside = np.array([(log1p(exact_erf(value)) - log(erfc(value))) / 2 for value in z])
    weight = np.array([erfc(value) * (1 + exact_erf(value)) for value in z])
    powers = z[:, None] ** np.arange(1, 2 * terms, 2)
    return np.linalg.lstsq(powers * weight[:, None], inside * weight, rcond=None)[0][::-1].tolist()


@cache
def _fit_q(degree=18):
    """q(u) = erfc(z)·exp(z²), smooth where erf itself flattens out; u ∈ (−1, 1) is t = 2/(2 + z), stretched."""
    u = _nodes(64)
    z = 2 / (_SMALLEST_T + (u + 1) / 2 * (1 - _SMALLEST_T)) - 2
    from numpy.polynomial import chebyshev  # here, because few commands need it

    fit = chebyshev.chebfit(u, [erfc(value) * exp(value * value) for value in z], degree)
    return chebyshev.cheb2poly(fit)[::-1].tolist()
