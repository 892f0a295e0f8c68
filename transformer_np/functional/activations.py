"""Activations beyond the ReLU: tanh, GELU and SiLU."""

import numpy as np

from ..support.shapes import shapes
from .fast import blocked
from .special import erf


@shapes(x="...")
def tanh(x):
    """(eˣ − e⁻ˣ) / (eˣ + e⁻ˣ), between −1 and 1, element by element.

    x (...), of any size: no overflow  ->  y (...)
    """
    return np.tanh(x)


@shapes(dy="...", y="...")
def tanh_backward(dy, y):
    """Backward of tanh: dx = dy · (1 − y²).

    dy (...), y (...) the forward's output  ->  dx (...)
    """
    dx = 1 - y * y
    dx *= dy
    return dx


# --- GELU -------------------------------------------------------------------------------------------------------------

_SQRT_2_OVER_PI = (2 / np.pi) ** 0.5  # Python floats: a NumPy float64 would promote a float32 array
_CUBIC = 0.044715


@shapes(x="...")
@blocked
def gelu(x, approximate="tanh"):
    """Gaussian error linear unit (Hendrycks & Gimpel 2016): x times the normal distribution function, x Φ(x).

    "none":  y = x/2 · (1 + erf(x/√2)), exact;    "tanh":  y = x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))), as in GPT-2

    x (...)  ->  y (...)
    """
    y = _gelu_gate(x, approximate)
    y += 1
    y *= x
    y *= 0.5
    return y


@shapes(dy="...", x="...")
def gelu_backward(dy, x, approximate="tanh"):
    """Backward of gelu, by the product rule on y = x/2 · (1 + g(x)).

    dx = dy · (1 + g(x) + x g'(x)) / 2
    "none":  g' = 2 φ(x) = √(2/π) exp(−x²/2);    "tanh":  g' = (1 − g²) √(2/π) (1 + 3 · 0.044715 x²)

    dy (...), x (...) the forward's input  ->  dx (...)
    """
    return dy * _gelu_and_slope(x, approximate)[1]


_OWN = gelu, gelu_backward


@shapes(x="...")
def gelu_with_slope(x, approximate="tanh"):
    """gelu and its derivative together: they share the gate, which is most of the work. Backward: dx = dy · slope.

    x (...)  ->  y (...), slope (...), or None if gelu or gelu_backward was replaced, so that the replacement is called
    """
    if (gelu, gelu_backward) != _OWN:
        return gelu(x, approximate), None
    return _gelu_and_slope(x, approximate)


@blocked
def _gelu_and_slope(x, approximate):
    weight = _gelu_gate(x, approximate)
    weight += 1
    weight *= 0.5  # Φ(x), so that y = x Φ
    y = x * weight
    slope = np.asarray(x * x)
    if approximate == "none":  # y' = Φ + x φ
        slope *= -0.5
        np.exp(slope, out=slope)
        slope *= x
        slope *= _SQRT_2_OVER_PI / 2
    else:  # y' = Φ + 2 x Φ (1 − Φ) √(2/π) (1 + 3 · 0.044715 x²)
        slope *= 3 * _CUBIC
        slope += 1
        slope *= 2 * _SQRT_2_OVER_PI
        slope *= y
        slope *= 1 - weight
    slope += weight
    return y, slope


def _gelu_gate(x, approximate):
    """The g(x) of gelu, between −1 and 1."""
    if approximate == "none":
        return erf(x * 0.5**0.5)
    if approximate == "tanh":
        inner = np.asarray(x * x)  # a single number stays an array
        inner *= _CUBIC
        inner += 1
        inner *= x  # x + 0.044715 x³
        inner *= _SQRT_2_OVER_PI
        return np.tanh(inner, out=inner)
    raise ValueError(f'approximate must be "tanh" or "none", got {approximate!r}')


# --- SiLU -------------------------------------------------------------------------------------------------------------


@shapes(x="...")
@blocked
def silu(x):
    """Sigmoid linear unit, or Swish (Elfwing et al. 2018): y = x σ(x), where σ(x) = 1/(1 + e⁻ˣ).

    x (...)  ->  y (...)
    """
    return _sigmoid(x) * x


@shapes(dy="...", x="...")
@blocked
def silu_backward(dy, x):
    """Backward of silu, by the product rule: dx = dy · σ(x) (1 + x (1 − σ(x))).

    dy (...), x (...) the forward's input  ->  dx (...)
    """
    gate = _sigmoid(x)
    slope = 1 - gate
    slope *= x
    slope += 1
    slope *= gate
    slope *= dy
    return slope


def _sigmoid(x):
    """σ(x) = 1 / (1 + e⁻ˣ). If e⁻ˣ is too large for the dtype, it becomes inf, and σ correctly 0."""
    with np.errstate(over="ignore"):
        y = np.asarray(np.exp(-x))  # a single number stays an array
    y += 1
    return np.reciprocal(y, out=y)
