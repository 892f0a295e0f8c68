"""Helpers of the layouts: activations, stored tensors, and settings that are missing or unsupported."""

import warnings
from dataclasses import dataclass

# Hugging Face's names of the activations; gelu_new, gelu_pytorch_tanh and gelu_fast are one formula
ACTIVATIONS = {
    "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu_fast": "gelu_tanh",
    "relu": "relu", "silu": "silu",
}  # fmt: skip
ACTIVATION_NAMES = {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu", "silu": "silu"}


@dataclass(frozen=True)
class Stored:
    """A tensor of the file: one of our parameters, or several side by side along the last axis.

    transposed: whether the file stores a matrix as (d_out, d_in), like torch.nn.Linear; ours are (d_in, d_out)
    """

    parameters: tuple
    transposed: bool = False


def matrix(theirs, ours):
    """{name in the file: the matrix that it stores, as torch.nn.Linear does}"""
    return {f"{theirs}.weight": Stored((ours,), transposed=True)}


def activation(settings, key, default):
    """Our name of the activation in the setting `key`."""
    name = settings.get(key, default)
    if name not in ACTIVATIONS:
        raise ValueError(f"{key} is {name!r}, which is not supported; supported are {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def required(settings, *keys):
    """The value of the first of these keys that is set; ValueError if none is."""
    for key in keys:
        if settings.get(key) is not None:
            return settings[key]
    raise ValueError(f"{keys[0]} is missing")


def given(settings, key, default):
    """The setting, or the default if it is missing or null."""
    value = settings.get(key)
    return default if value is None else value


def refuse(settings, supported, path=None):
    """Raise ValueError if a setting has another value than the supported one. path: of their file, for the message"""
    for key, value in supported.items():
        if settings.get(key, value) not in (value, None):
            where = "" if path is None else f"{path}: "
            raise ValueError(f"{where}{key} is {settings[key]!r}, which is not supported; supported is {value!r}")


def is_tied(settings, weights, embedding, default):
    """Whether the output projection is the embedding transposed. If config.json says so but the file has a different
    lm_head.weight, the answer is no, with a warning.

    embedding: the standard name of the table;  default: the answer if config.json has none
    """
    tied = bool(settings.get("tie_word_embeddings", default))
    if tied and "lm_head.weight" in weights and not weights.equal("lm_head.weight", embedding):
        what = "config.json ties lm_head to the embedding, but the file has another lm_head.weight, which is used"
        warnings.warn(what, stacklevel=5)
        return False
    return tied
