"""What the layouts have in common: how tensors of the file and parameters of ours correspond."""

from dataclasses import dataclass

# what Hugging Face calls the activations; gelu_new, gelu_pytorch_tanh and gelu_fast are three writings of one formula
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
}
ACTIVATION_NAMES = {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu"}


@dataclass(frozen=True)
class Stored:
    """A tensor of the file: one parameter of ours, or several side by side along the last axis; transposed where the
    file has a matrix as (d_out, d_in), as torch.nn.Linear does. Ours are (d_in, d_out)."""

    parameters: tuple
    transposed: bool = False


def activation(settings, key, default):
    """Our name of the activation that config.json names under `key`."""
    name = settings.get(key, default)
    if name not in ACTIVATIONS:
        raise ValueError(f"{key} is {name!r}, which is not supported; supported are {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def required(settings, *keys):
    """The value of the first of these keys that is there."""
    for key in keys:
        if settings.get(key) is not None:
            return settings[key]
    raise ValueError(f"{keys[0]} is missing")


def refuse(settings, supported):
    """Raise ValueError where a setting is there and has another value than the one supported."""
    for key, value in supported.items():
        if settings.get(key, value) not in (value, None):
            raise ValueError(f"{key} is {settings[key]!r}, which is not supported; supported is {value!r}")
