"""The error function, which NumPy lacks and the exact GELU needs."""

from math import erfc, exp

import numpy as np

_LARGEST = 6.5  # above it 1 − erf(z) < 1e-18, which is 0 in float64


def _scaled_erfc_coefficients(degree):
    """Coefficients of a polynomial in u ∈ [−1, 1] for erfc(z)·exp(z²), highest power first. That function is smooth
    where erf itself flattens out."""
    u = np.cos(np.pi * (np.arange(64) + 0.5) / 64)  # Chebyshev nodes: no oscillation at the ends
    z = [_z_of_u(node) for node in u]
    fit = np.polynomial.chebyshev.chebfit(u, [erfc(value) * exp(value * value) for value in z], degree)
    return np.polynomial.chebyshev.cheb2poly(fit)[::-1]


_SMALLEST_T = 2 / (2 + _LARGEST)


def _z_of_u(u):
    t = _SMALLEST_T + (u + 1) / 2 * (1 - _SMALLEST_T)
    return 2 / t - 2


_COEFFICIENTS = {  # as Python floats: a NumPy float64 would promote a float32 array
    np.dtype(np.float32): _scaled_erfc_coefficients(8).tolist(),
    np.dtype(np.float64): _scaled_erfc_coefficients(18).tolist(),
}


def erf(x):
    """The error function 2/√π ∫₀ˣ exp(−s²) ds, to 1e-14 (float64) or 3e-7 (float32), absolute.

    x (...)  ->  (...), of the same dtype

    erfc(z)·exp(z²) is fitted once, from Python's own `math.erfc`, by a Chebyshev polynomial in t = 2/(2 + z).
    """
    z = np.minimum(np.abs(x), _LARGEST)
    u = (2 / (2 + z) - _SMALLEST_T) * (2 / (1 - _SMALLEST_T)) - 1
    highest, *others = _COEFFICIENTS.get(x.dtype, _COEFFICIENTS[np.dtype(np.float64)])
    tail = np.full_like(u, highest)
    for coefficient in others:  # Horner's rule
        tail *= u
        tail += coefficient
    tail *= np.exp(-z * z)
    return np.copysign(1 - tail, x).astype(x.dtype, copy=False)
