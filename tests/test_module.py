"""Parameter and Module: names, gradients that add, modes, state."""

import numpy as np
import pytest

from transformer_np.layers import Embedding, LayerNorm, Linear, TiedLinear
from transformer_np.module import Module


class Net(Module):
    """Two layers in a list, one attribute, one table used twice."""

    def __init__(self):
        self.embedding = Embedding(5, 3, rng=0)
        self.stack = [Linear(3, 3, rng=1), Linear(3, 3, bias=False, rng=2)]
        self.norm = LayerNorm(3)
        self.output = TiedLinear(self.embedding)
        self.unused = None

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.stack:
            x = layer(x)
        return self.output(self.norm(x))

    def backward(self, dy):
        dy = self.norm.backward(self.output.backward(dy))
        for layer in reversed(self.stack):
            dy = layer.backward(dy)
        self.embedding.backward(dy)


def test_evaluating_restores_the_mode_of_each_module():
    net = Net()
    net.stack[0].eval()
    net.norm.eval(keep=True)
    before = [(m.training, m.keeping) for _, m in net.named_modules()]
    with net.evaluating() as inside:
        assert inside is net and not any(m.training for _, m in net.named_modules())
    assert len({*before}) == 3 and [(m.training, m.keeping) for _, m in net.named_modules()] == before
    with pytest.raises(KeyError), net.evaluating():
        raise KeyError
    assert [(m.training, m.keeping) for _, m in net.named_modules()] == before


def test_a_module_must_have_a_forward():
    with pytest.raises(NotImplementedError, match="Module has no forward"):
        Module()(1)
    with pytest.raises(NotImplementedError, match="Module has no backward"):
        Module().backward(1)


BAD_STATES = {
    "missing": (lambda state: state.pop("norm.beta"), ValueError, r"missing norm\.beta"),
    "unexpected": (lambda state: state.update(extra=np.ones(3)), ValueError, "not expected extra"),
    "shape": (lambda state: state.update({"norm.beta": np.ones(4)}), ValueError, r"must have shape \(3,\), got \(4,\)"),
    "scalar": (lambda state: state.update({"norm.beta": np.array(1.0)}), ValueError, r"norm\.beta must have shape"),
    "kind": (lambda state: state.update({"norm.beta": np.ones(3, int)}), TypeError, r"norm\.beta must be floats"),
}


@pytest.mark.parametrize(("spoil", "error", "message"), BAD_STATES.values(), ids=BAD_STATES)
def test_a_bad_state_changes_nothing(random_module, spoil, error, message):
    net, state = Net(), random_module(Net()).state_dict()
    before = net.state_dict()
    spoil(state)
    with pytest.raises(error, match=message):
        net.load_state_dict(state)
    assert all(np.array_equal(values, before[name]) for name, values in net.state_dict().items())


def test_a_printed_module_is_a_tree_with_shapes_and_sizes():
    assert repr(Net()).splitlines() == [
        "Net: 42 parameters", "  embedding  Embedding   15  table (5, 3)",
        "  stack.0    Linear      12  w (3, 3); b (3,)", "  stack.1    Linear       9  w (3, 3)",
        "  norm       LayerNorm    6  gamma beta (3,)", "  output     TiedLinear      table (5, 3) tied",
    ]  # fmt: skip
    assert repr(Linear(3, 4)) == "Linear: 16 parameters, w (3, 4); b (4,)"


def test_modules_that_are_alike_are_printed_once_and_a_notebook_folds_them():
    net = Net()
    net.stack = [Linear(3, 3) for _ in range(4)] + [Linear(3, 2)]
    text = " ".join(repr(net).split())
    assert "stack.0 … 3 4 × Linear 48 w (3, 3); b (3,) stack.4 Linear 8 w (3, 2); b (2,)" in text
    assert net.outline().size == net.num_parameters()
    page = Net()._repr_html_()
    assert page.startswith("<details open") and page.count("<details") == page.count("</details>") == 1
    assert "<code>stack.1: Linear</code> · 9 parameters, w (3, 3)" in page
