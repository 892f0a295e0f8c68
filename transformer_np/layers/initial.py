"""Initial values of parameters."""

from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from ..support.checks import as_rng, check_number, listed

_drawing = ContextVar("_drawing", default=True)  # of this thread alone


@contextmanager
def blank():
    """`with blank(): model = …` sets all parameters to 0 and draws nothing: their values are loaded afterwards."""
    before = _drawing.set(False)
    try:
        yield
    finally:
        _drawing.reset(before)


def check_as_made(model):
    """Raise ValueError if the parameters are not those that its configuration makes: a file would be read as another
    model."""
    with blank():
        made = type(model)(model.config)
    shapes = [{(name, parameter.shape) for name, parameter in one.named_parameters()} for one in (made, model)]
    if differing := sorted({name for name, _ in shapes[0] ^ shapes[1]}):
        more = "merge_lora(model) merges LoRA; of other changes, save model.state_dict() with save_checkpoint"
        raise ValueError(f"the parameters are not those of the model's configuration: {listed(differing)}; {more}")


def glorot_uniform(rng, d_in, d_out, dtype):
    """Uniform in ±√(6/(d_in + d_out)), which keeps the variance of signals and gradients (Glorot & Bengio 2010)."""
    return uniform(rng, (d_in, d_out), (6 / (d_in + d_out)) ** 0.5, dtype)


def width_std(d_model):
    """The standard deviation with which GPT and Llama start their matrices and embeddings, and Transformer-XL its
    embeddings, for this width.

        σ = 0.02 · √(768 / d_model) ≈ 0.55 / √d_model

    At a width of 768 it is GPT-2's 0.02 (Radford et al. 2019). A sum of d_model products keeps its
    size if their factors fall as 1/√d_model; so a narrow model starts as alive as a wide one, and learns faster than
    with 0.02.
    """
    return 0.02 * (768 / d_model) ** 0.5


def normal(rng, shape, std, dtype):
    """Normal with mean 0 and the given standard deviation, which the layers call `init_std`."""
    check_number("init_std", std, "[0, ∞)")
    if not _drawing.get():
        return _zeros(shape, dtype)
    return (as_rng(rng).standard_normal(shape) * std).astype(dtype)


def uniform(rng, shape, bound, dtype):
    """Uniform in ±bound."""
    if not _drawing.get():
        return _zeros(shape, dtype)
    return as_rng(rng).uniform(-bound, bound, size=shape).astype(dtype)


def _zeros(shape, dtype):
    """Read-only zeros that take no memory until a Parameter copies them. Real zeros would be freed after the copy, and
    the next gradients would reuse their memory. That memory has been written to, so it would be resident long before a
    backward pass."""
    return np.broadcast_to(np.zeros((), dtype), shape)
