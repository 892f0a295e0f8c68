"""Logits by layer, attention rollout, ablation of heads."""

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np.inspection import attention_rollout, head_ablation, logits_by_layer
from transformer_np.inspection.samples import small_model
from transformer_np.layers import Linear

MODELS = {
    "Transformer": {"tgt_vocab_size": 11},
    "Transformer, norm first": {"tgt_vocab_size": 11, "norm_first": True},
    **{"T5": {"vocab_size": 11}, "GPT": {}, "Llama": {}, "Bert": {"num_classes": None}, "TransformerXL": {}},
}


def model_named(name):
    return small_model(name.partition(",")[0], dtype="float64", **MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_logits_by_layer(name, rng):
    model = model_named(name)
    stack = "decoder" if hasattr(model, "decoder") else "blocks"
    inputs = [rng.integers(3, 11, (2, 5))] * (2 if stack == "decoder" else 1)
    logits = logits_by_layer(model, *inputs)
    assert logits.shape == (3, 2, 5, 11)
    with model.evaluating():
        run = model.mlm_logits if name == "Bert" else model
        expected = run(*inputs)
        np.testing.assert_allclose(logits[-1], expected[0] if name == "TransformerXL" else expected)
        states = []
        with model.replacing(f"{stack}.0", lambda out: states.append(out) or out):
            with model.replacing(f"{stack}.1", lambda out: states[-1]):  # the model without its last block
                shorter = run(*inputs)
        np.testing.assert_allclose(logits[1], shorter[0] if name == "TransformerXL" else shorter)
    assert not np.allclose(logits[0], logits[1])
    assert "forward" not in vars(getattr(model, stack)[0])


def test_logits_by_layer_of_something_else():
    with pytest.raises(TypeError, match=r"model must be a GPT, .* got Bert"):
        logits_by_layer(small_model("Bert", mlm_head=False), [[3]])


def test_attention_rollout(rng):
    weights = F.softmax(rng.normal(size=(3, 2, 4, 5, 5)))  # (L, B, H, T, T)
    rollout = attention_rollout(weights)
    assert rollout.shape == (3, 2, 5, 5)
    np.testing.assert_allclose(rollout.sum(-1), 1)
    half = [(weights[i, 1].mean(0) + np.eye(5)) / 2 for i in range(3)]
    np.testing.assert_allclose(rollout[2, 1], half[2] @ half[1] @ half[0])
    np.testing.assert_allclose(attention_rollout(weights[:, 1]), rollout[:, 1])
    looking_back = np.eye(4, k=-1)[None, None] + np.diag([1, 0, 0, 0])  # each word at the one before it
    np.testing.assert_allclose(attention_rollout(np.repeat(looking_back, 2, 0))[1, 3], [0, 0.25, 0.5, 0.25])
    for wrong in (weights[0, 0, 0], weights[..., :3], np.ones((0, 2, 3, 3))):
        with pytest.raises(ValueError, match=r"weights must have the axes \(L, H, T, T\) or \(L, B, H, T, T\)"):
            attention_rollout(wrong)


def test_head_ablation(rng):
    model = small_model("Transformer", tgt_vocab_size=11, dropout=0.0, dtype="float64")
    src, tgt = rng.integers(3, 11, (2, 5)), rng.integers(3, 11, (2, 4))
    model.decoder[1].cross_attention.w_o.data[4:8] = 0  # what the second head writes
    table = head_ablation(model, lambda: F.cross_entropy(model(src, tgt), tgt)[0])
    names = ["encoder.0.attention"] + [f"decoder.{i}.{a}_attention" for i in (0, 1) for a in ("self", "cross")]
    assert list(table.without) == list(table.changes) == names
    assert table.baseline == F.cross_entropy(model(src, tgt), tgt)[0]
    changes = table.changes["decoder.1.cross_attention"]
    assert changes.shape == (3,) and changes[1] == 0 and changes[0] and changes[2]
    model.encoder[0].attention.w_o.data[8:] = 0
    assert table.without["encoder.0.attention"][2] == F.cross_entropy(model(src, tgt), tgt)[0]
    lines = str(table).splitlines()
    assert lines[0].split() == "head 1 head 2 head 3".split() and lines[5].split()[0] == names[4]
    assert lines[5].split()[2] == "+0.000" and f"{table.baseline:.3f} with all heads" in lines[6]


def test_head_ablation_of_a_model_without_attention():
    with pytest.raises(ValueError, match="model must have attention layers, Linear has none"):
        head_ablation(Linear(2, 3), lambda: 0.0)
