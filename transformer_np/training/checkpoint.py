"""Checkpoints: one safetensors file with the tensors by name and a JSON header. Nothing is ever unpickled."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from .. import models
from ..support.files import write_atomically

_HEADER = "transformer_np"  # the key of our header in the file's metadata


def save_checkpoint(path, tensors, header):
    """Write {name: array} and a header (JSON data) to a safetensors file, atomically.

    Raises OSError if the file cannot be written; an older file of that name then stays as it was.
    """
    from safetensors.numpy import save  # here, because `import transformer_np` loads NumPy alone

    tensors = {name: np.asarray(array, order="C") for name, array in tensors.items()}  # a number stays of shape ()
    content = save(tensors, {_HEADER: json.dumps(header)})
    write_atomically(path, lambda temporary: temporary.write_bytes(content))


def load_checkpoint(path, prefix=""):
    """Read a file of save_checkpoint: ({name: array}, header), with the names that begin with `prefix`.

    Raises FileNotFoundError, or ValueError for a file that is truncated, damaged or not ours.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            header = _header_of(path, file.metadata() or {})
            return {name: file.get_tensor(name) for name in file.keys() if name.startswith(prefix)}, header
    except SafetensorError as error:
        raise ValueError(f"{path} is truncated, damaged or not a safetensors file: {error}") from None


def _header_of(path, metadata):
    """Our header, read before any tensor, because other files may hold types that NumPy lacks."""
    if _HEADER not in metadata:
        raise ValueError(f"{path} is a safetensors file, but not a checkpoint of transformer_np")
    try:
        header = json.loads(metadata[_HEADER])
    except ValueError as error:
        raise ValueError(f"{path} is damaged, its header is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise ValueError(f"{path} is damaged, its header is not a JSON object")
    return header


def model_header(model):
    """The entries of a checkpoint's header about its model: the class and the configuration."""
    return {"model": type(model).__name__, "config": asdict(model.config)}


def model_tensors(model):
    """{"model." + dotted name: values} for a checkpoint."""
    return {f"model.{name}": parameter.data for name, parameter in model.named_parameters()}


def load_model(path):
    """The model of a checkpoint, in eval mode, and the checkpoint's header.

    Raises FileNotFoundError, or ValueError for a damaged file or a model class that this package lacks.
    """
    tensors, header = load_checkpoint(path, "model.")
    cls = getattr(models, str(header.get("model")), None)
    config_class = getattr(models, f"{header.get('model')}Config", None)
    if cls is None or config_class is None:
        raise ValueError(f"{path} holds a model of an unknown class, {header.get('model')!r}")
    try:
        model = cls(config_class(**header.get("config", {})))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: its configuration does not fit {config_class.__name__}: {error}") from None
    load_model_tensors(model, tensors, path)
    return model.eval(), header


def load_model_tensors(model, tensors, path):
    """Copy the "model." tensors of a checkpoint into the model; ValueError, and nothing changed, if they do not fit."""
    state = {name.removeprefix("model."): array for name, array in tensors.items() if name.startswith("model.")}
    try:
        model.load_state_dict(state)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} does not fit the model: {error}") from None
