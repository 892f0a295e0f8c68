"""The counted operations and memory of a model are those that a step really has."""

import re

import numpy as np
import pytest
from shared import made

from transformer_np import cli, models
from transformer_np.bench.accounting import SCORES, measure, parts, table
from transformer_np.layers import tiles
from transformer_np.models import BertConfig, GPTConfig, LlamaConfig, T5Config, TransformerConfig, Word2VecConfig

PLAIN = {"activation": "relu", "bias": False, "tie_embeddings": False}
CONFIGS = {
    "gpt": GPTConfig(23, 40, 12, 3, 2),
    "relu, without biases, untied": GPTConfig(23, 40, 12, 3, 2, 20, **PLAIN),
    "large matrices": GPTConfig(23, 40, 256, 4, 1),
    "shared keys": GPTConfig(23, 40, 12, 4, 3, num_kv_heads=2),
    "llama": LlamaConfig(23, 40, 12, 4, 2, d_head=8, num_layers=3, d_ff=20, qkv_bias=True),
    "bert": BertConfig(23, 40, 12, 3, 2, 20, pooler=False, tie_embeddings=False),
    "classifier": BertConfig(23, 40, 12, 3, 2, 20, num_classes=3, mlm_head=False),
    "token classifier": BertConfig(23, 40, 12, 3, 2, 20, token_classes=3, mlm_head=False, pooler=False),
    "transformer": TransformerConfig(23, 25, 12, 3, 2, 1, 20),
    "t5": T5Config(23, 12, 3, 5, 2, 1, 20, activation="gated_gelu"),
    "xl": models.TransformerXLConfig(23, 12, 3, 2, 20, mem_len=20),
}


def total(model, what, length, batch):
    return sum(getattr(part, what) for part in parts(model, length, batch))


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize(("length", "batch"), [(7, 2), (31, 1), (1, 3)])
def test_operations_and_memory_are_those_measured(name, length, batch):
    model = made(CONFIGS[name])
    measured = measure(model, length, batch)
    assert measured.forward == total(model, "forward", length, batch)
    assert measured.backward == 2 * measured.forward
    assert measured.cache == total(model, "cache", length, batch)
    assert measured.between == next(p.forward for p in parts(model, length, batch) if p.name == SCORES)
    assert measured.activations == pytest.approx(total(model, "activations", length, batch), rel=0.1)
    assert total(model, "parameters", length, batch) == model.num_parameters()
    assert f"{model.num_parameters():,}" in table(model, length, batch)


def test_measuring_leaves_no_trace():
    model = made(CONFIGS["gpt"])
    for parameter in model.parameters():
        parameter.grad = 1.0
    before, arrays = model.state_dict(), [parameter.data for parameter in model.parameters()]
    measure(model, 7)
    assert all((p.grad == 1).all() and np.array_equal(p.data, before[n]) for n, p in model.named_parameters())
    assert all(parameter.data is array for parameter, array in zip(model.parameters(), arrays, strict=True))


def test_only_the_scores_grow_with_the_square():
    model = made(CONFIGS["gpt"])
    for one, two in zip(parts(model, 8), parts(model, 16), strict=True):
        factor = 4 if one.quadratic else 2
        assert (two.forward, two.activations, two.cache) == (
            factor * one.forward,
            factor * one.activations,
            2 * one.cache,
        )


def test_products_of_tiles_are_measured(monkeypatch):
    """The backward pass computes the scores again; it and the weights' gradient have one more feature."""
    model, K = made(CONFIGS["gpt"]), 4
    plain = measure(model, 7)
    monkeypatch.setattr(tiles, "TILED_BYTES", 0)
    monkeypatch.setattr(tiles, "TILED_LENGTH", 1)
    tiled = measure(model, 7)
    assert tiled.forward == plain.forward
    assert tiled.backward - plain.backward == plain.between * (K + 2) // (2 * K)


def test_a_table_that_layers_share_is_one_layer():
    """T5's embedding, and a bias of the encoder and one of the decoder, that all their blocks add."""
    assert parts(made(CONFIGS["t5"]), 4)[0].layers == 3


def test_another_model_is_refused():
    with pytest.raises(TypeError, match="Word2Vec has layers that are not counted"):
        parts(made(Word2VecConfig(9, 8)), 4)


def test_numbers_have_three_digits_and_no_exponent():
    """Near the next unit, too: 1010 KiB."""
    model = made(GPTConfig(31, max_len=256, d_model=24, num_heads=3, num_layers=1))
    assert not [length for length in range(1, 257) if "e+" in table(model, length)]


def check_shown(out):
    """The total that is counted is the one that is measured."""
    counted, measured = (re.search(rf"^{line}(.*)$", out, re.M).group(1).split() for line in ("total", "measured"))
    assert counted[:3] == measured[:3]


def test_the_command(capsys):
    sizes = ("--layers", "2", "--d-model", "24", "--heads", "3", "--vocab-size", "31", "--length", "16")
    assert cli.main(["explain", *sizes]) == 0
    out = capsys.readouterr().out
    check_shown(out)
    assert "quadratic in the length" in out and "6 · N · tokens" in out
    assert cli.main(["explain", "--layers", "1", "--d-model", "64", "--heads", "2", "--length", "30000"]) == 0
    assert "measured" not in capsys.readouterr().out
    assert cli.main(["explain", "--heads", "4", "--kv-heads", "3"]) == 2
    assert "--kv-heads must divide --heads, got 3 for --heads = 4" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.parametrize("kind, data", [("translate", "pairs"), ("classify", "data"), ("xl", "text"), ("mlm", "text")])
def test_the_command_with_a_run(kind, data, tmp_path, capsys):
    (tmp_path / "file").write_text("".join(f"number {i % 5}\tthe word {i % 7}\n" for i in range(600)), encoding="utf-8")
    command = ["train", kind, "--steps", "1", "--workers", "1", "-q", f"--{data}", str(tmp_path / "file")]
    assert cli.main([*command, "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert cli.main(["explain", "--model", str(tmp_path / "run"), "--length", "16"]) == 0
    check_shown(capsys.readouterr().out)
    assert cli.main(["explain", "--model", str(tmp_path / "run"), "--layers", "3", "--d-ff", "8"]) == 2
    assert "--layers, --d-ff would be ignored: a trained model has sizes of its own" in capsys.readouterr().err
