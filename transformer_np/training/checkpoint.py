"""Checkpoints: one safetensors file with the tensors by name and a JSON header. Nothing is ever unpickled."""

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from zlib import crc32

import numpy as np

from .. import models
from ..layers.initial import check_as_made
from ..module import Module
from ..support.checks import check_kind, refusing
from ..support.files import parse_json, write_atomically

_HEADER, _SUMS = "transformer_np", "checksums"  # the keys of our header and of its checksums in the file's metadata


def save_checkpoint(path, tensors, header):
    """Write {name: array} and a header (JSON data) to a safetensors file, atomically.

    Raises OSError if the file cannot be written; an older file of that name is then unchanged.
    """
    from safetensors.numpy import save  # here, because `import transformer_np` loads NumPy alone

    check_kind("tensors", tensors, Mapping)
    check_kind("header", header, Mapping)
    arrays = {name: np.asarray(array) for name, array in tensors.items()}
    tensors = {name: np.asarray(array, array.dtype.newbyteorder("="), order="C") for name, array in arrays.items()}
    text = json.dumps(header, default=np.ndarray.tolist)  # some random states are arrays
    sums = {name: _sum(array) for name, array in tensors.items()}
    content = save(tensors, {_HEADER: text, _SUMS: json.dumps({"tensors": sums, "header": _sum(text)})})
    write_atomically(path, lambda temporary: temporary.write_bytes(content))


def load_checkpoint(path, prefix=""):
    """Read a file of save_checkpoint: ({name: array}, header), with the names that begin with `prefix`.

    Raises FileNotFoundError, or ValueError for a file that is truncated, damaged or not ours. Every tensor is compared
    with its checksum, so that a single wrong bit is found. An older file without checksums is read without this check.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    what = f"{path} is truncated, damaged or not a safetensors file"
    with (
        refusing(what, (SafetensorError, TypeError, AttributeError)),  # the last two: a type that NumPy lacks
        safe_open(path, framework="numpy") as file,
    ):
        header, sums = _header_of(path, file.metadata() or {})
        if sums is not None and sums.keys() != set(file.keys()):
            raise ValueError(f"{path} is damaged: its tensors are not those that were written")
        tensors = {name: file.get_tensor(name) for name in file.keys() if name.startswith(prefix)}
    for name, array in tensors.items():
        if sums is not None and _sum(array) != sums[name]:
            raise ValueError(f"{path} is damaged: {name} does not have the checksum that was written")
    return tensors, header


def _sum(content):
    """The checksum of a text, or of an array with its type and shape."""
    if isinstance(content, str):
        return crc32(content.encode())
    start = crc32(f"{content.dtype} {content.shape}".encode())
    return crc32(np.ascontiguousarray(content).reshape(-1).view(np.uint8), start)


def _header_of(path, metadata):
    """Our header, read before any tensor, because other files may hold types that NumPy lacks; and {name: checksum of
    the tensor}, or None in an older file."""
    if _HEADER not in metadata:
        raise ValueError(f"{path} is a safetensors file, but not a checkpoint of transformer_np")
    header = parse_json(metadata[_HEADER], path)
    if not isinstance(header, dict):
        raise ValueError(f"{path} is damaged: its header is not a JSON object")
    if metadata.keys() == {_HEADER}:
        return header, None
    try:
        sums = parse_json(metadata[_SUMS], path)
        written, sums = sums["header"], dict(sums["tensors"])
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{path} is damaged: its checksums cannot be read") from None
    if written != _sum(metadata[_HEADER]):
        raise ValueError(f"{path} is damaged: its header does not have the checksum that was written")
    return header, sums


def model_header(model):
    """The entries of a checkpoint's header about its model: the class and the configuration, if it has one."""
    config = getattr(model, "config", None)
    return {"model": type(model).__name__, "config": asdict(config) if is_dataclass(config) else None}


def model_tensors(model):
    """{"model." + dotted name: values} of the parameters that learn, for a checkpoint. Frozen ones stay outside."""
    return {f"model.{name}": parameter.data for name, parameter in model.learned().items()}


def save_model(path, model):
    """Write the configuration and all weights of a model, frozen ones too, to a file for `load_model`.

    Raises TypeError for a model of your own and ValueError for one whose layers have changed, as with LoRA, which
    `load_model` could not make; otherwise as save_checkpoint.
    """
    check_kind("model", model, Module)
    if getattr(models, type(model).__name__, None) is not type(model):
        own = "save_checkpoint(path, model.state_dict(), {}), model.load_state_dict(load_checkpoint(path)[0])"
        raise TypeError(f"model must be one of this package, got {type(model).__name__}; for your own: {own}")
    check_as_made(model)
    tensors = {f"model.{name}": parameter.data for name, parameter in model.named_parameters()}
    save_checkpoint(path, tensors, model_header(model))


def load_model(path):
    """The model of a checkpoint, in eval mode, and the checkpoint's header. If the run keeps its best weights, the
    model has the best weights.

    Raises FileNotFoundError, or ValueError for a damaged file or a model class that this package lacks.
    """
    tensors, header = load_checkpoint(path, "model.")
    cls = getattr(models, str(header.get("model")), None)
    config_class = getattr(models, f"{header.get('model')}Config", None)
    if cls is None or config_class is None:
        raise ValueError(f"{path} holds a model of an unknown class, {header.get('model')!r}")
    what = f"{path}: its configuration does not fit {config_class.__name__}"
    with refusing(what, (TypeError, ValueError, AttributeError)):
        config = config_class(**header.get("config", {}))
        config.check_fits(sum(array.size for array in tensors.values()), "it is damaged")
        model = cls(config)
    load_model_tensors(model, tensors, path)
    return model.eval(), header


def load_model_tensors(model, tensors, path, prefix="model."):
    """Copy the tensors with this prefix into the model; ValueError, and nothing changed, if they do not fit."""
    state = {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}
    with refusing(f"{path} does not fit the model", (ValueError, TypeError)):
        model.load_state_dict(state)
