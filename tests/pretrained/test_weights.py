"""The tensors of a folder: half precision, shards, damage. How much memory reading takes: test_layouts.py."""

import json
import struct

import numpy as np
import pytest
from safetensors.numpy import save_file

from transformer_np.models.layouts import weights
from transformer_np.models.layouts.weights import find_tensors


def bfloat16(values):
    """The upper halves of float32: what a file in bfloat16 holds, cut off instead of rounded."""
    return (np.asarray(values, np.float32).view("u4") >> 16).astype("u2")


def write_safetensors(path, tensors):
    """{name: (kind, array)} as a file; the arrays are written as they are, whatever the kind."""
    header, start = {}, 0
    for name, (kind, array) in tensors.items():
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [start, start + array.nbytes]}
        start += array.nbytes
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for _, array in tensors.values()))


def write_shards(folder, *shards):
    """Each {name: array} as a file, and the index."""
    shard_of = {}
    for i, tensors in enumerate(shards, 1):
        name = f"model-{i:05}-of-{len(shards):05}.safetensors"
        save_file(tensors, folder / name)
        shard_of |= dict.fromkeys(tensors, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": shard_of}))
    return shard_of


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4), (1, 9)])
@pytest.mark.parametrize("piece", [1, 4, 1 << 18])
def test_every_kind_is_widened(tmp_path, rng, monkeypatch, shape, piece):
    monkeypatch.setattr(weights, "PIECE", piece)
    values = np.asarray(rng.normal(size=shape))
    write_safetensors(
        tmp_path / "model.safetensors",
        {
            "double": ("F64", values), "single": ("F32", values.astype(np.float32)),
            "half": ("F16", values.astype(np.float16)), "brain": ("BF16", bfloat16(values)),
        },
    )  # fmt: skip
    path, found = find_tensors(tmp_path)
    assert path == tmp_path / "model.safetensors"
    read = {name: tensor.read() for name, tensor in found.items()}
    assert {name: str(array.dtype) for name, array in read.items()} == {
        "double": "float64", "single": "float32", "half": "float32", "brain": "float32",
    }  # fmt: skip
    assert np.array_equal(read["double"], values)
    assert np.array_equal(read["single"], values.astype(np.float32))
    assert np.array_equal(read["half"], values.astype(np.float16).astype(np.float32))
    cut = (values.astype(np.float32).view("u4") & np.uint32(0xFFFF0000)).view(np.float32)
    assert np.array_equal(read["brain"], cut)


def test_bfloat16_keeps_the_range_of_float32(tmp_path):
    numbers = np.array([1.0, -2.5, 3.0e38, 2e-38, np.inf, -np.inf, np.nan, 0.0, -0.0], np.float32)
    write_safetensors(tmp_path / "model.safetensors", {"x": ("BF16", bfloat16(numbers))})
    read = find_tensors(tmp_path)[1]["x"].read()
    np.testing.assert_allclose(read, numbers, rtol=2**-7)
    assert np.array_equal(np.signbit(read), np.signbit(numbers))


def test_a_tensor_outside_the_index_is_not_read(tmp_path):
    shard_of = write_shards(tmp_path, {"a": np.ones(2), "b": np.ones(3)})
    del shard_of["b"]
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shard_of}))
    assert list(find_tensors(tmp_path)[1]) == ["a"]
    save_file({"c": np.ones(2)}, tmp_path / "model.safetensors")  # one file goes before the index
    assert list(find_tensors(tmp_path)[1]) == ["c"]


SECOND = "model-00002-of-00002.safetensors"


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def indexed(text):
    return lambda folder: (folder / "model.safetensors.index.json").write_text(text)


NO_INDEX = r'index\.json is damaged: expected JSON with {"weight_map"'


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / SECOND).unlink(), rf"names {SECOND}, which .* lacks"),
        (lambda folder: cut(folder / SECOND), rf"{SECOND} is truncated, damaged"),
        (indexed(f'{{"weight_map": {{"c": "{SECOND}"}}}}'), rf"names c in {SECOND}, which has no such"),
        (
            indexed('{"weight_map": {"a": "../x.safetensors"}}'),
            r"names '\.\./x\.safetensors', expected the name of a file",
        ),
        *((indexed(f'{{"weight_map": {value}}}'), NO_INDEX) for value in (3, '{"a": 3}', "[]")),
        (indexed(""), NO_INDEX),
        (indexed("[]"), NO_INDEX),
    ],
)
def test_shards_that_do_not_fit_their_index(tmp_path, damage, message):
    save_file({"a": np.ones(2)}, tmp_path / "x.safetensors")
    folder = tmp_path / "model"
    folder.mkdir()
    write_shards(folder, {"a": np.ones(2)}, {"b": np.ones(3)})
    damage(folder)
    with pytest.raises((ValueError, FileNotFoundError), match=message) as info:
        find_tensors(folder)
    assert "\n" not in str(info.value)
