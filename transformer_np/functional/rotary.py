"""Rotary positions (Su et al. 2021): a query and a key are turned by angles that grow with their positions, so that
their score depends on the distance between them alone."""

from functools import lru_cache

import numpy as np

from ..support.checks import as_array, check_at_least, check_number
from ..support.shapes import shapes

SCALINGS = {  # kind: the numbers it needs
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
}


@shapes(x="... T K")
def rotary(x, positions, theta=10000.0, scaling=None, adjacent=False):
    """Turn each pair of features by an angle proportional to the position (Su et al. 2021, eq. 34).

        y₁ = x₁ cos(p ω) − x₂ sin(p ω),    y₂ = x₁ sin(p ω) + x₂ cos(p ω),    ωᵢ = θ^(−2i/K)

    x (..., T, K) with an even K, positions p (T,) or one for all rows, theta θ, scaling as in rotary_frequencies
    ->  y (..., T, K)

    The pair i is (xᵢ, xᵢ₊K/₂) as in Llama's files; adjacent=True pairs (x₂ᵢ, x₂ᵢ₊₁) as in the paper. The two differ by
    a permutation of the features. Turning a query by p and a key by s changes their product as turning the query
    alone by p − s would.
    """
    cos, sin = _cos_and_sin(positions, x, theta, scaling)  # (T, K/2)
    first, second = _pairs(x, adjacent)  # (..., T, K/2)
    y = np.empty_like(x)
    y_first, y_second = _pairs(y, adjacent)
    np.multiply(first, cos, out=y_first)
    y_first -= second * sin
    np.multiply(first, sin, out=y_second)
    y_second += second * cos
    return y


@shapes(dy="... T K")
def rotary_backward(dy, positions, theta=10000.0, scaling=None, adjacent=False):
    """Backward of rotary: turn the gradient back. The transpose of a rotation is its inverse.

        dx₁ = dy₁ cos(p ω) + dy₂ sin(p ω),    dx₂ = −dy₁ sin(p ω) + dy₂ cos(p ω)

    dy (..., T, K)  ->  dx (..., T, K)
    """
    return rotary(dy, -_as_positions(positions, dy.shape[-2]), theta, scaling, adjacent)


def rotary_frequencies(K, theta=10000.0, scaling=None):
    """The angle by which each pair of features turns per position.

        ωᵢ = θ^(−2i/K),    i = 0 … K/2 − 1

    scaling: None, or how a model was stretched to longer texts, as a dictionary in the words of Llama's config.json:
        {"rope_type": "linear", "factor": f}    ω / f (Chen et al. 2023)
        {"rope_type": "llama3", "factor": f, "low_freq_factor": a, "high_freq_factor": b,
         "original_max_position_embeddings": n}    ω of pairs that turn more than b times within n positions, ω / f of
                                                   those that turn less than a times. In between, a pair that turns
                                                   t times has s ω + (1 − s) ω / f with s = (t − a)/(b − a)

    ->  (K/2,) float64

    Raises ValueError for an odd K, a theta that is not positive, or a scaling that is not supported.
    """
    check_at_least("K", K, 2)
    if K % 2:
        raise ValueError(f"rotary positions turn pairs of features: K must be even, got {K}")
    check_number("theta", theta, "(0, ∞)")
    frequencies = float(theta) ** (-np.arange(0, K, 2) / K)  # (K/2,)
    kind, *numbers = _scaling(scaling)
    if kind == "default":
        return frequencies
    factor = numbers[0]
    kept = 0.0
    if kind == "llama3":
        low, high, length = numbers[1:]
        turns = length * frequencies / (2 * np.pi)
        kept = np.clip((turns - low) / (high - low), 0, 1)
    return frequencies * (kept + (1 - kept) / factor)


def _scaling(scaling):
    """The kind of a scaling and its numbers, or ValueError that says what is supported."""
    if scaling is None:
        return ("default",)
    if not isinstance(scaling, dict):
        raise ValueError(f"scaling must be a dictionary with a rope_type, got {scaling!r}")
    kind = scaling.get("rope_type", scaling.get("type"))  # older files say "type"
    if kind not in SCALINGS:
        raise ValueError(f"rope_type is {kind!r}, which is not supported; supported are {', '.join(SCALINGS)}")
    for name in SCALINGS[kind]:
        number = scaling.get(name)
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < float("inf"):
            raise ValueError(f"{name} of the rope_type {kind!r} must be a positive number, got {number!r}")
    if kind == "llama3" and scaling["high_freq_factor"] <= scaling["low_freq_factor"]:
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        raise ValueError(f"high_freq_factor must be more than low_freq_factor = {low}, got {high}")
    return kind, *(scaling[name] for name in SCALINGS[kind])


def _cos_and_sin(positions, x, theta, scaling):
    """(T, K/2) each, of x's dtype."""
    T, K = x.shape[-2:]
    check_number("theta", theta, "(0, ∞)")
    positions = _as_positions(positions, T)
    return _tables(rotary_frequencies, positions.tobytes(), positions.shape, K, theta, _scaling(scaling), x.dtype)


@lru_cache(maxsize=4)
def _tables(frequencies, positions, shape, K, theta, scaling, dtype):
    """cos and sin of all angles, read-only, which every layer needs. The angles are float64: at position 100,000 a
    float32 has two digits left. frequencies: part of the key, so that a swapped function gets its own results"""
    kind, *numbers = scaling
    scaling = dict(zip(("rope_type", *SCALINGS[kind]), (kind, *numbers), strict=True))
    angles = np.frombuffer(positions).reshape(shape)[..., None] * frequencies(K, theta, scaling)  # (T, K/2)
    tables = np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)
    for table in tables:
        table.flags.writeable = False
    return tables


def _as_positions(positions, T):
    """The positions as float64: the negative of an unsigned integer would wrap around."""
    positions = as_array(positions, "positions")
    if positions.dtype.kind not in "iuf" or positions.shape not in ((), (T,)):
        got = f"{positions.dtype} of shape {positions.shape}"
        raise ValueError(f"positions must be numbers of shape ({T},), one for each row of x; got {got}")
    return positions.astype(np.float64)


def _pairs(x, adjacent):
    """The first and the second feature of every pair, as views."""
    half = x.shape[-1] // 2
    return (x[..., 0::2], x[..., 1::2]) if adjacent else (x[..., :half], x[..., half:])
