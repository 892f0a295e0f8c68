import inspect
import re
from types import FunctionType
from xml.etree import ElementTree

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np import trace
from transformer_np.layers import Linear
from transformer_np.models import Bert, BertConfig, TransformerXL, TransformerXLConfig
from transformer_np.module import Module

SRC, TGT_IN = np.array([[4, 5, 6, 2]]), np.array([[1, 7, 8]])

ATTENTION = ["linear", "split_heads"] * 3 + ["attention_scores", "softmax", "scaled_dot_product_attention"]
ATTENTION += ["merge_heads", "linear"]
FEED_FORWARD = ["linear", "relu", "linear", "feed_forward"]
INPUT = ["embedding", "scale", "PositionalEncoding"]
NORMED = ["residual", "layer_norm"]


@pytest.fixture
def model(random_model):
    return random_model(num_encoder_layers=1, num_decoder_layers=1)


@pytest.fixture
def dlogits(rng):
    return rng.normal(size=(1, 3, 13))


def test_every_step_of_the_forward_in_order(model):
    functions = [step.function for step in trace(model, SRC, TGT_IN)]
    block = ATTENTION + NORMED
    encoder = INPUT + block + FEED_FORWARD + NORMED
    decoder = INPUT + block + block + FEED_FORWARD + NORMED
    assert functions == [*encoder, *decoder, "linear"]


def test_every_step_of_the_backward_in_order(model, dlogits):
    steps = trace(model, SRC, TGT_IN, backward=dlogits)
    assert [step.direction for step in steps] == ["forward"] * len(steps.forward) + ["backward"] * len(steps.backward)
    block = steps.backward["encoder.0"]
    attention = ["linear_backward", "split_heads", "softmax_backward", "scaled_dot_product_attention_backward"]
    attention += ["merge_heads", "linear_backward"] * 3 + ["MultiHeadAttention_backward"]
    feed_forward = ["linear_backward", "relu_backward", "linear_backward", "feed_forward_backward"]
    norm, end = "layer_norm_backward", "residual_backward"
    assert [step.function for step in block] == [norm, *feed_forward, end, norm, *attention, end]
    assert [step.module for step in steps.backward][-2:] == ["src_input", "src_input.embedding"]


def test_numbers_names_and_parameters(model, dlogits):
    steps = trace(model, SRC, TGT_IN, backward=dlogits)
    assert [step.number for step in steps] == list(range(len(steps)))
    attention = steps["encoder.0.attention"]
    assert {step.module for step in attention} == {"encoder.0.attention"}
    maps = [step.parameters for step in attention.forward if step.function == "linear"]
    assert maps == [(f"encoder.0.attention.w_{x}", f"encoder.0.attention.b_{x}") for x in "qkvo"]
    back = [step.parameters for step in attention.backward if step.function == "linear_backward"]
    assert back == [(f"encoder.0.attention.w_{x}",) for x in "oqkv"]
    assert steps["output"].forward[0].depth == 0
    assert [step.depth for step in steps["encoder.0.feed_forward"].forward] == [1, 1, 1, 0]


def test_what_layers_do_in_place_does_not_reach_the_values(model):
    embedded, scaled, placed = trace(model, SRC, TGT_IN)["src_input"]
    np.testing.assert_array_equal(embedded.value, model.src_input.embedding.table.data[SRC])
    np.testing.assert_allclose(scaled.value, embedded.value * 12**0.5)
    np.testing.assert_array_equal(placed.value, scaled.value + model.src_input.position.table[:4])
    with pytest.raises(ValueError, match="read-only"):
        embedded.value[...] = 0


@pytest.mark.parametrize(("norm_first", "inside"), [(False, "x"), (True, "LayerNorm(x)")])
def test_the_residual_sum_is_a_step(random_model, norm_first, inside):
    model = random_model(norm_first=norm_first, num_encoder_layers=1, num_decoder_layers=1)
    steps = trace(model, SRC, TGT_IN)
    x, a = steps["src_input"][-1].value, steps["encoder.0.attention"][-1].value
    (residual,) = steps["encoder.0.add_norm1.residual"]
    np.testing.assert_array_equal(residual.value, x + a)
    assert residual.formula == f"x + Dropout(sublayer({inside}))"


def test_the_gradients_are_those_of_a_backward(model, dlogits):
    model.zero_grad()
    steps = trace(model, SRC, TGT_IN, backward=dlogits)
    traced = {name: parameter.grad.copy() for name, parameter in model.named_parameters()}
    model.zero_grad()
    model.train()(SRC, TGT_IN)
    model.backward(dlogits)
    for name, parameter in model.named_parameters():
        np.testing.assert_array_equal(traced[name], parameter.grad, err_msg=name)
    for step in steps.backward["linear_backward"]:
        w = step.parameters[0]
        np.testing.assert_array_equal(step.values["dw"], traced[w], err_msg=w)
    np.testing.assert_array_equal(steps.backward["src_input.embedding"][0].value, traced["src_input.embedding.table"])
    _, dk, dv = steps.backward["decoder.0.cross_attention.linear_backward"][1:]
    np.testing.assert_array_equal(steps.backward["decoder.0.cross_attention"][-1].value, dk.value + dv.value)


def test_a_function_makes_the_gradient_and_is_listed(model):
    targets = np.array([[7, 8, 2]])
    model.zero_grad()
    steps = trace(model, SRC, TGT_IN, backward=lambda logits: F.cross_entropy_backward(F.softmax(logits), targets))
    made = steps["(model)"]
    found = [(step.function, step.direction) for step in made][:2]
    assert found == [("softmax", "forward"), ("cross_entropy_backward", "backward")]
    _, probs = F.cross_entropy(steps.output, targets)
    np.testing.assert_allclose(made[1].value, F.cross_entropy_backward(probs, targets), atol=1e-15)
    np.testing.assert_array_equal(steps["output"].backward[0].values["db"], model.output.b.grad)


def _state(model):
    functions = {name: value for name, value in vars(F).items() if isinstance(value, FunctionType)}
    return functions, [vars(module).keys() - {"training", "keeping"} for _, module in model.named_modules()]


@pytest.mark.parametrize("backward", [None, lambda logits: 1 / 0, np.zeros((2, 2))])
def test_everything_is_as_it_was_after_an_error(model, backward):
    model(SRC, TGT_IN)
    before, training = _state(model), [module.training for _, module in model.named_modules()]
    with pytest.raises((ValueError, ZeroDivisionError)):
        trace(model, SRC if backward is not None else SRC + 100, TGT_IN, backward=backward)
    assert _state(model) == before
    assert [module.training for _, module in model.named_modules()] == training
    assert len(trace(model, SRC, TGT_IN)) == 58


# --- other models ---------------------------------------------------------------------------------------------------


def test_a_method_that_stands_for_the_forward(random_module):
    config = BertConfig(11, max_len=6, d_model=8, num_heads=2, num_layers=1, d_ff=12, num_classes=3, dtype="float64")
    model = random_module(Bert(config))
    model.zero_grad()
    dout = np.array([[1.0, -2.0, 0.5]])
    steps = trace(model.classify, SRC, backward=dout)
    np.testing.assert_array_equal(steps["classifier"].forward[0].value, steps.output)
    np.testing.assert_array_equal(steps["classifier"].backward[0].values["dw"], model.classifier.w.grad)
    assert steps["pooler.tanh"][0].shape == (1, 8)
    # word and segment embedding are added by the model itself
    (total,) = (step for step in steps if step.function == "→ position")
    words, segments = steps["embedding"].forward[0].value, steps["segment"].forward[0].value
    np.testing.assert_array_equal(total.value, words + segments)


def test_transformer_xl(random_module):
    config = TransformerXLConfig(11, d_model=8, num_heads=2, num_layers=1, d_ff=12, mem_len=4, dtype="float64")
    model = random_module(TransformerXL(config))
    _, mems = model(SRC)
    steps = trace(model, SRC, mems, backward=lambda output: np.ones_like(output[0]))
    assert len(steps["relative_attention"]) == len(steps["relative_attention_backward"]) == 1
    assert steps["relative_attention"][0].values["weights"].shape == (1, 2, 4, 8)
    np.testing.assert_array_equal(steps["output"].forward[0].value, steps.output[0])


def test_tiled_attention_is_a_step_where_it_is_called_itself(rng, model, monkeypatch):
    class Tiled(Module):
        def forward(self, x):
            self.keep(x=x)
            out, log_total = F.tiled_attention(x, x, x)
            self.keep(x=x, out=out, log_total=log_total)
            return out

        def backward(self, dout):
            x, out, log_total = self.kept("x", "out", "log_total")
            return sum(F.tiled_attention_backward(dout, x, x, x, out, log_total))

    x = rng.normal(size=(1, 2, 5, 4))
    steps = trace(Tiled(), x, backward=np.ones_like(x))
    assert [step.function for step in steps] == ["tiled_attention", "tiled_attention_backward", "Tiled_backward"]
    assert list(steps[0].values) == ["out", "log_total"]
    monkeypatch.setattr("transformer_np.layers.tiles.TILED_BYTES", 0)
    monkeypatch.setattr("transformer_np.layers.tiles.TILED_LENGTH", 1)
    model.train()(SRC, TGT_IN)
    assert "encoder.0.attention.weights" not in model.intermediates()
    assert len(trace(model, SRC, TGT_IN)["softmax"]) == 3  # all is shown, whatever the size


def test_one_layer_alone(rng):
    layer = Linear(3, 2, rng=0, dtype="float64")
    x = rng.normal(size=(4, 3))
    (step,) = trace(layer, x)
    assert (step.module, step.function, step.formula) == ("", "linear", "y = x W + b")
    np.testing.assert_allclose(step.value, x @ layer.w.data + layer.b.data)
    with pytest.raises(TypeError, match="model must be a Module"):
        trace(np.tanh, 1.0)


# --- formulas, looking up, and tables -------------------------------------------------------------------------------


def test_formulas_come_from_the_docstrings(model, dlogits):
    steps = trace(model, SRC, TGT_IN, backward=dlogits)
    assert steps["softmax"][0].formula == "y = exp(x) / Σ exp(x)"
    assert steps["softmax_backward"][0].formula == "dx = y · (dy − Σ dy · y)"
    assert steps["linear_backward"][0].formula == "dx = dy Wᵀ, dW = xᵀ dy, db = Σ dy over the rows"
    assert steps["scaled_dot_product_attention"][0].formula == "out = A V, A = softmax(Q Kᵀ / √d_k + M)"
    assert steps["src_input.position"][0].formula == "x + PE[start : start + T]"
    for step in steps:
        function = vars(F).get(step.function)
        if function is not None:
            doc = " ".join(inspect.getdoc(function).split())
            assert re.sub(r"\W", "", step.formula) in re.sub(r"\W", "", re.sub(r" \([A-Z][^()]*\d{4}[^()]*\)", "", doc))


def test_looking_up(model):
    steps = trace(model, SRC, TGT_IN)
    assert steps[3].number == 3 and steps[-1].number == len(steps) - 1
    assert [step.number for step in steps[2:5]] == [2, 3, 4]
    assert {step.module.split(".")[0] for step in steps["encoder"]} == {"encoder"}
    assert steps["softmax"][0].module == "encoder.0.attention"
    assert len(steps["decoder.softmax"]) == 2
    assert "embedding" in repr(steps[0]) and "y (1, 4, 12) float64" in repr(steps[0])
    with pytest.raises(KeyError, match=r"no step of 'encoder.1'; the modules are src_input.embedding"):
        steps["encoder.1"]
    with pytest.raises(IndexError):
        steps[1000]
    assert len(steps.backward) == 0 and "0 steps" in str(steps.backward)


def test_the_text_fits_a_terminal(random_model):
    model = random_model(num_encoder_layers=1, num_decoder_layers=12)
    steps = trace(model, SRC, TGT_IN, backward=np.ones((1, 3, 13)))
    lines = str(steps).splitlines()
    assert max(map(len, lines)) <= 120
    starts = [line for line in lines if re.match(r" *\d+ [→←]", line)]
    assert len(starts) == 60
    hint = next(line for line in lines if "more steps" in line)
    assert hint == f"… {len(steps) - 60} more steps: print(trace.table(most=None)) shows all"
    assert starts[0].split()[0] == "0" and starts[-1].split()[0] == str(len(steps) - 1)
    assert len(re.findall(r"^ *\d+ [→←]", steps.table(most=None), re.MULTILINE)) == len(steps)


@pytest.mark.parametrize("width", [100, 120, 200])
def test_no_formula_is_cut(model, width):
    steps = trace(model, SRC, TGT_IN, backward=np.ones((1, 3, 13)))
    table = steps.table(most=None, width=width)
    assert max(map(len, table.splitlines())) <= width
    head, *lines = table.splitlines()[:-2]
    at, end = head.index("formula"), head.index("module")
    found = {}
    for line in lines:
        number = line[:at].split()
        if number:
            last = int(number[0])
        found[last] = [*found.get(last, []), line[at:end].strip()]
    assert {number: " ".join(parts) for number, parts in found.items()} == {s.number: s.formula for s in steps}


def test_a_row_of_the_text(model):
    steps = trace(model, SRC, TGT_IN)
    lines = str(steps["encoder.0.attention"]).splitlines()
    assert re.match(r" *3 → y = x W \+ b +encoder\.0\.attention +linear w_q +\(1, 4, 12\) ", lines[1])
    step = steps["encoder.0.attention.softmax"][0]
    row = next(line for line in lines if "· softmax" in line)
    assert row.split()[-3:] == [f"{number:.2g}" for number in (step.min, step.mean, step.max)]
    assert "→ y = exp(x) / Σ exp(x) " in row and step.mean == pytest.approx(0.25)


class Odd(Module):
    """x where x < 1 & 2 <b>."""

    def forward(self, x):
        return np.minimum(x, 1)


@pytest.mark.parametrize("layers", [1, 6])
def test_the_html_is_well_formed_and_without_colours(random_model, layers):
    """And escapes what is not ours."""
    model = random_model(num_encoder_layers=1, num_decoder_layers=layers)
    steps = trace(model, SRC, TGT_IN)
    html = steps._repr_html_()
    table = ElementTree.fromstring(html)
    rows = table.findall(".//tbody/tr")
    assert len(rows) == (58 if layers == 1 else 61)
    assert all(len(row) == 10 for row in rows if len(row) > 1)
    assert not re.search(r"color|background|<script|<link|src=|href=|http", html.replace("color:inherit", ""))
    assert "float64" in html and "softmax" in html
    html = trace(Odd(), np.ones(3))._repr_html_()
    assert ElementTree.fromstring(html).find(".//tbody/tr")[2].text == "x where x < 1 & 2 <b>"
