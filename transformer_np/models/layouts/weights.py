"""The tensors of a folder: model.safetensors or its shards, read piece by piece and widened to a NumPy dtype.

A safetensors file starts with the length of its header (8 bytes, little-endian) and the header, JSON that gives the
kind, shape and place of every tensor; the numbers follow. The safetensors library checks the file. The numbers are read
here, because the library returns only whole tensors, and none in bfloat16, which NumPy lacks.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...support.checks import refusing
from ...support.files import LARGEST_JSON, check_downloaded, parse_json, read_json

WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
STORED = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}  # a bfloat16 is the upper half of a float32
PIECE = 1 << 18  # numbers that are read at once


@dataclass(frozen=True)
class Tensor:
    """The place of a tensor: its file and first byte, the kind of its numbers (safetensors' name), and its shape."""

    path: Path
    start: int
    kind: str
    shape: tuple

    def read(self, out=None):
        """The numbers, written into the array `out` of the same shape if it is given; half precision becomes float32.

        Besides `out`, at most PIECE numbers or one row are in memory.
        """
        if out is None:
            out = np.empty(self.shape, "float64" if self.kind == "F64" else "float32")
        rows = out[..., None] if out.ndim < 2 else out  # a vector is read as a column
        rows = rows[None] if out.ndim == 0 else rows
        row = math.prod(rows.shape[1:])
        step = max(1, PIECE // max(1, row))
        with open(self.path, "rb") as file:
            file.seek(self.start)
            for first in range(0, len(rows), step):
                piece = rows[first : first + step]
                numbers = np.fromfile(file, STORED[self.kind], piece.size).reshape(piece.shape)
                piece[...] = (numbers.astype("u4") << 16).view("f4") if self.kind == "BF16" else numbers
        return out


def find_tensors(folder):
    """The file that lists the weights of a folder, and {name: Tensor}: model.safetensors, or the index of its shards.

    Raises FileNotFoundError if the weights or a shard are missing; ValueError for damaged files, an index that does not
    fit its shards, and weights in a pickle, which is never read.
    """
    folder = Path(folder)
    if (folder / WEIGHTS).is_file():
        return folder / WEIGHTS, _in_file(folder / WEIGHTS)
    if (folder / INDEX).is_file():
        return folder / INDEX, _in_shards(folder / INDEX)
    pickles = sorted(path.name for path in folder.glob("*") if path.suffix in PICKLES)
    if pickles:
        why = f"a pickle ({', '.join(pickles)}), which is never read here, because it can run any code"
        convert = "AutoModel.from_pretrained(folder).save_pretrained(new folder)"
        how = f"Look for a {WEIGHTS} of the same model, or convert it on a machine without secrets: {convert}"
        raise ValueError(f"{folder} has its weights only in {why}. {how}")
    raise FileNotFoundError(f"there is no {WEIGHTS} in {folder}")


def check_kind(name, tensor):
    """The tensor; ValueError if its numbers are of a kind that is not supported."""
    if tensor.kind not in STORED:
        what = f"{name} is {tensor.kind}, which is not supported; supported are {', '.join(STORED)}"
        how = "AutoModel.from_pretrained(folder).float().save_pretrained(new folder)"
        raise ValueError(f"{tensor.path}: {what}. Convert it where torch is installed: {how}")
    return tensor


def _in_file(path):
    """{name: Tensor} of one safetensors file."""
    from safetensors import SafetensorError, safe_open  # here, because `import transformer_np` loads NumPy alone

    with open(path, "rb") as file:
        beginning = file.read(100)
    check_downloaded(path, beginning)
    if int.from_bytes(beginning[:8], "little") > LARGEST_JSON:  # the library would read all of it
        raise ValueError(f"{path} is truncated, damaged or not a safetensors file: its header is too large")
    with refusing(f"{path} is truncated, damaged or not a safetensors file", SafetensorError):
        with safe_open(path, framework="numpy"):
            pass  # opening checks the header, and that the file is complete
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = parse_json(file.read(length), path)
    header.pop("__metadata__", None)
    return {
        name: Tensor(path, 8 + length + entry["data_offsets"][0], entry["dtype"], tuple(entry["shape"]))
        for name, entry in header.items()
    }


def _in_shards(index):
    """{name: Tensor} of all shards that the index names."""
    try:
        shard_of = read_json(index)["weight_map"]
        shards = {shard: index.parent / shard for shard in sorted(set(shard_of.values()))}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f'{index} is damaged: expected JSON with {{"weight_map": {{tensor: file}}}}') from None
    outside = [shard for shard in shards if Path(shard).name != shard]
    if outside:
        raise ValueError(f"{index} names {outside[0]!r}, expected the name of a file beside it")
    missing = [shard for shard, path in shards.items() if not path.is_file()]
    if missing:
        raise FileNotFoundError(f"{index} names {', '.join(missing)}, which {index.parent} lacks: download it again")
    tensors = {}
    for name_in_index, path in shards.items():
        inside = _in_file(path)
        promised = [name for name, shard in shard_of.items() if shard == name_in_index]
        absent = [name for name in promised if name not in inside]
        if absent:
            raise ValueError(f"{index} names {absent[0]} in {path.name}, which has no such tensor: download both again")
        tensors |= {name: inside[name] for name in promised}
    return tensors
