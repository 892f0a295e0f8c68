"""Logits, loss and every gradient of small encoder–decoders, and ten steps of Adam, as PyTorch computes them.

How the numbers were made: tests/reference/make_reference.py. PyTorch is not needed here.
"""

import numpy as np
import pytest
from reference.make_reference import ADAM, CASES, LABEL_SMOOTHING, PATH, SRC, TGT_IN, TGT_OUT, draw
from safetensors.numpy import load_file

from transformer_np import functional as F
from transformer_np.models import Transformer, TransformerConfig
from transformer_np.training import Adam

HOW = {"ignore_index": 0, "label_smoothing": LABEL_SMOOTHING}


@pytest.fixture(scope="module")
def stored():
    return load_file(PATH)


def make_model(case):
    model = Transformer(TransformerConfig(**CASES[case]))
    for name, parameter in model.named_parameters():
        parameter.data = draw(name, parameter.shape)
    return model


def assert_close(actual, expected, name):
    """To 1e-10 of the largest entry; what is zero by nature (the key biases) to 1e-10 itself."""
    assert actual.shape == expected.shape, name
    assert abs(actual - expected).max() <= 1e-10 * max(abs(expected).max(), 1e-3), name


@pytest.mark.parametrize("case", CASES)
def test_forward_and_every_gradient(stored, case):
    model = make_model(case)
    logits = model(SRC, TGT_IN)
    assert_close(logits, stored[f"{case}.logits"], "logits")
    loss, probs = F.cross_entropy(logits, TGT_OUT, **HOW)
    assert loss == pytest.approx(float(stored[f"{case}.loss"]), rel=1e-12)
    model.backward(F.cross_entropy_backward(probs, TGT_OUT, **HOW))
    names = {name.removeprefix(f"{case}.grad.") for name in stored if name.startswith(f"{case}.grad.")}
    assert names == {name for name, _ in model.named_parameters()}
    for name, parameter in model.named_parameters():
        assert_close(parameter.grad, stored[f"{case}.grad.{name}"], name)


@pytest.mark.parametrize("case", CASES)
def test_ten_steps_of_adam(stored, case):
    model = make_model(case)
    optimizer, losses = Adam(model.parameters(), **ADAM), []
    for _ in stored[f"{case}.adam_losses"]:
        loss, probs = F.cross_entropy(model(SRC, TGT_IN), TGT_OUT, **HOW)
        losses.append(loss)
        optimizer.zero_grad()
        model.backward(F.cross_entropy_backward(probs, TGT_OUT, **HOW))
        optimizer.step()
    np.testing.assert_allclose(losses, stored[f"{case}.adam_losses"], rtol=1e-9)
    assert losses[10] < 0.7 * losses[0]
