"""Checkpoint files: written whole or not at all, read with suspicion."""

import json
import os
import re
import struct
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

import transformer_np
from transformer_np.models import Transformer, TransformerConfig
from transformer_np.support.files import write_atomically
from transformer_np.training import load_checkpoint, load_model, save_checkpoint, save_model

CONFIG = TransformerConfig(9, 7, d_model=6, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, d_ff=5, max_len=8)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a model ü.safetensors"


def names(folder):
    return sorted(file.name for file in folder.iterdir())


# --- writing ---------------------------------------------------------------------------------------------------------


def test_arrays_come_back_as_they_were(path):
    arrays = {
        "transposed": np.arange(6.0).reshape(2, 3).T,
        "every second": np.arange(8, dtype=np.float32)[::2],
        "a number": np.array(7),
        "the other byte order": np.arange(3, dtype=">f4"),
        "nothing": np.empty((0, 2)),
        "true": np.array([True, False]),
    }
    header = {"step": 3, "name": "é", "large": 2**100, "rate": 0.1}
    save_checkpoint(path, arrays, header)
    with pytest.raises(TypeError, match="header must be a Mapping, got None"):
        save_checkpoint(path, arrays, None)  # no file that cannot be read
    found, found_header = load_checkpoint(path)
    assert found_header == header
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].shape == array.shape and found[name].dtype == array.dtype.newbyteorder("="), name
        assert np.array_equal(found[name], array), name


def test_written_then_flushed_then_renamed(path, monkeypatch):
    path.write_text("old")
    mode = path.stat().st_mode
    calls = []
    real = {"fsync": os.fsync, "replace": os.replace}
    monkeypatch.setattr(os, "fsync", lambda file: calls.append("fsync") or real["fsync"](file))
    monkeypatch.setattr(os, "replace", lambda a, b: calls.append(path.read_text()) or real["replace"](a, b))
    save_checkpoint(path, {"a": np.ones(1)}, {"step": 2})
    assert calls == ["fsync", "old"]
    assert load_checkpoint(path)[1] == {"step": 2} and names(path.parent) == [path.name]
    assert path.stat().st_mode == mode  # readable for whom other files are


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_an_error_while_writing_leaves_the_old_file_alone(path, error):
    def write(temporary):
        temporary.write_bytes(b"half of the")
        raise error

    path.write_bytes(b"old")
    with pytest.raises(type(error)):
        write_atomically(path, write)
    assert path.read_bytes() == b"old" and names(path.parent) == [path.name]


def test_where_there_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    for folder, error in (("nowhere", FileNotFoundError), ("file", NotADirectoryError)):
        with pytest.raises(error, match=folder) as caught:
            save_checkpoint(tmp_path / folder / "checkpoint", {"a": np.ones(1)}, {})
        assert caught.value.filename == str(tmp_path / folder / "checkpoint")  # not that of a temporary file


# --- reading ---------------------------------------------------------------------------------------------------------


def foreign(dtype):
    """A safetensors file with two numbers of a type that NumPy may not have, under a name like ours."""
    header = json.dumps({"model.w": {"dtype": dtype, "shape": [2], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(4)


def ours(header):
    text = header if isinstance(header, str) else json.dumps(header)
    return save({"model.w": np.ones(2)}, {"transformer_np": text})


WHOLE = ours({"model": "Transformer", "config": asdict(CONFIG)})
NO_SAFETENSORS = b"", b"abc", WHOLE[:20], WHOLE[:-1], WHOLE + b"x", b"\x80\x04K\x01."  # the last is a pickle


@pytest.mark.parametrize(
    "content, message",
    [
        *((content, "truncated, damaged or not a safetensors file") for content in NO_SAFETENSORS),
        (save({"model.w": np.ones(2)}), "not a checkpoint of transformer_np"),
        (save({"model.w": np.ones(2)}, {"format": "pt"}), "not a checkpoint of transformer_np"),
        (foreign("BF16"), "not a checkpoint of transformer_np"),
        (ours("{oops"), "damaged: it is not JSON"),
        (ours([1]), "header is not a JSON object"),
        (ours({}), "unknown class, None"),
        (ours({"model": "Perceptron", "config": {}}), "unknown class, 'Perceptron'"),
        (ours({"model": "Transformer"}), "configuration does not fit TransformerConfig: .*src_vocab_size"),
        (ours({"model": "Transformer", "config": 3}), "configuration does not fit TransformerConfig"),
        (ours({"model": "Transformer", "config": {**asdict(CONFIG), "colour": 1}}), "does not fit.*colour"),
        (ours({"model": "Transformer", "config": {**asdict(CONFIG), "d_model": -6}}), "does not fit.*d_model"),
        (ours({"model": "Transformer", "config": {**asdict(CONFIG), "d_ff": "x"}}), "does not fit.*d_ff"),
        (WHOLE, "does not fit the model: .*missing .* not expected w"),
    ],
)
def test_a_file_that_will_not_do(path, content, message):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        load_model(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_and_a_folder(path):
    path.mkdir()
    for wrong in (path, path / "nothing", "nowhere/at/all"):
        with pytest.raises(FileNotFoundError, match=re.escape(f"there is no checkpoint {wrong}")):
            load_checkpoint(wrong)
        with pytest.raises(FileNotFoundError):
            load_model(wrong)


_OWN_PROCESSES = ("given", "keeper", "package", "process", "session", "worker")


@pytest.mark.long
def test_nothing_is_ever_unpickled():
    package = Path(transformer_np.__file__).parent
    grading = package / "grading"  # the grader to its own processes
    own = {grading / "judges.py", *(grading / "sandbox" / f"{name}.py" for name in _OWN_PROCESSES)}
    own.add(package / "inspection" / "contracts" / "state.py")  # copies of a student's layer, to see whether they work
    sources = {file: file.read_text(encoding="utf-8") for file in {*package.rglob("*.py")} - own}
    assert len(sources) > 20
    forbidden = re.compile(r"(import|from)\s+\w*pickle|allow_pickle|np\.load\b|\b(marshal|shelve|joblib|dill)\b")
    assert {str(file): forbidden.findall(text) for file, text in sources.items() if forbidden.search(text)} == {}


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_a_link_is_written_through(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "file")
    for text in ("first", "second"):  # the file is created, and then replaced
        write_atomically(tmp_path / "link", lambda path, text=text: path.write_text(text))
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "disk" / "file").read_text() == (tmp_path / "link").read_text() == text
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["disk", "file", "link"]


def test_a_model_of_ones_own_is_refused_before_anything_is_written(path):
    own = type("Transformer", (Transformer,), {})(CONFIG)  # load_model would make another one
    with pytest.raises(TypeError, match="for your own: save_checkpoint"):
        save_model(path, own)
    with pytest.raises(TypeError, match="tensors must be a Mapping, got Transformer"):
        save_checkpoint(path, own, {})
    assert not path.exists()
