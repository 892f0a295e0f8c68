"""No file of a stranger takes more than 64 MiB or 2 s before it is refused: see strangers.py."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import strangers

pytest.importorskip("tokenizers", reason="tokenizer.json needs the tokenizers library")


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")
@pytest.mark.parametrize("share", [0.001, pytest.param(1.0, marks=pytest.mark.release)])
def test_every_field_of_every_format(tmp_path, share):
    """A share of all replacements of one value, each read by its command with limits set from outside."""
    strangers.make(tmp_path)
    program = [sys.executable, strangers.__file__, str(tmp_path), str(share), "0"]
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(program, capture_output=True, text=True, env=one_thread, check=False)
    *found, count = done.stdout.splitlines()
    assert done.returncode == 0 and not found, "\n".join(found[:20]) + done.stderr
    assert int(count) > 40_000 * share


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")
def test_the_limits_end_what_takes_too_much(tmp_path, monkeypatch):
    """Otherwise the campaign would find nothing whatever happens."""
    from transformer_np import cli

    def main(words):
        if words == ["memory"]:
            return len(bytearray(2 << 30)) < 0  # more than the tests before have left free in this process
        while words == ["time"]:
            pass
        raise TypeError("a bug")

    monkeypatch.setattr(cli, "main", main)
    monkeypatch.setattr(strangers, "SECONDS", 0.1)
    assert "MemoryError" in strangers.outcome(["memory"], tmp_path)
    assert strangers.outcome(["time"], tmp_path).startswith("killed by signal")
    assert "a bug" in strangers.outcome(["else"], tmp_path)


def test_json_is_replaced_at_each_place():
    data = {"a": [1, {"b": 2}], "c": "x"}
    found = [json.dumps(strangers.replaced(data, path, 0)) for path in strangers.places(data)]
    assert found == [
        '{"a": 0, "c": "x"}', '{"a": [0, {"b": 2}], "c": "x"}', '{"a": [1, 0], "c": "x"}',
        '{"a": [1, {"b": 0}], "c": "x"}', '{"a": [1, {"b": 2}], "c": 0}',
    ]  # fmt: skip
