"""Where the parameters start."""

import numpy as np


def glorot_uniform(rng, d_in, d_out, dtype):
    """Uniform in ±√(6/(d_in + d_out)), which keeps the variance of signals and gradients (Glorot & Bengio 2010)."""
    bound = (6 / (d_in + d_out)) ** 0.5
    return np.random.default_rng(rng).uniform(-bound, bound, size=(d_in, d_out)).astype(dtype)


def normal(rng, shape, std, dtype):
    """Normal with mean 0 and the given standard deviation."""
    return (np.random.default_rng(rng).standard_normal(shape) * std).astype(dtype)
