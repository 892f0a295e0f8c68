"""LoRA in whole models: the model starts as it was, only the thin matrices learn, and merging changes no output."""

import numpy as np
import pytest

from transformer_np import check_model, plots
from transformer_np.inspection import attribution
from transformer_np.inspection.gradcheck import check_gradients
from transformer_np.inspection.samples import randomised
from transformer_np.layers import add_lora, merge_lora
from transformer_np.models import GPT, T5, Bert, BertConfig, GPTConfig, Llama, LlamaConfig, T5Config
from transformer_np.training import SGD, Adam, AdamW, clip_grad_norm, save_model

IDS = np.array([[4, 5, 6, 3], [5, 4, 1, 2]])
MODELS = {
    "bert": lambda: Bert(BertConfig(9, 9, 12, 3, 2, 10, num_classes=3, dropout=0.0, dtype="float64")),
    "gpt": lambda: GPT(GPTConfig(9, 9, 12, 3, 2, 10, dtype="float64")),
    "llama": lambda: Llama(LlamaConfig(9, 9, 16, 4, 2, num_layers=2, d_ff=10, qkv_bias=True, dtype="float64")),
}


def output(model):
    return model.classify(IDS) if isinstance(model, Bert) else model(IDS)


@pytest.fixture(params=MODELS)
def model(request, rng):
    return randomised(MODELS[request.param](), rng)


def randomise(model, rng):
    for parameter in model.learned().values():
        parameter.data = 0.15 * rng.normal(size=parameter.shape)


def test_the_model_starts_as_it_was_and_only_the_thin_matrices_learn(model):
    before, names = output(model), set(dict(model.named_parameters()))
    assert np.array_equal(output(add_lora(model, 2, rng=0)), before)
    learned = model.learned()
    assert len(learned) == 2 * 4 * 2 and not names & learned.keys()
    assert {name.rsplit(".", 2)[1] for name in learned} == {"lora_q", "lora_k", "lora_v", "lora_o"}
    assert {min(p.shape) for p in learned.values()} == {2}


def test_the_contract(model, rng):
    """Gradients of what learns alone, copies, pickles and files among it."""
    randomise(add_lora(model, 2, rng=0), rng)
    assert check_model(model, IDS, causal=not isinstance(model, Bert)).passed


def test_gradients_where_what_each_head_writes_is_replaced(model, rng):
    randomise(add_lora(model, 2, rng=0), rng)
    target = model.classify if isinstance(model, Bert) else model
    with model.replacing("blocks.1.attention.written", lambda old: 0.5 * old, lambda dnew, old: 0.5 * dnew):
        assert check_gradients(target, IDS, max_entries=3, tolerance=1e-5).passed
    with model.replacing("blocks.1.attention.written", lambda old: 0.5 * old, lambda dnew, old: dnew):
        assert not check_gradients(target, IDS, max_entries=3, tolerance=1e-5).passed


def test_only_the_upper_blocks(model):
    add_lora(model, 2, rng=0, first=1)
    assert all(name.startswith("blocks.1.") for name in model.learned())


def test_merged_it_is_an_ordinary_model_of_the_same_outputs(model, rng):
    kinds, names = [type(m) for _, m in model.named_modules()], list(model.state_dict())
    randomise(add_lora(model, 2, rng=0), rng)
    before = output(model)
    merge_lora(model)
    np.testing.assert_allclose(output(model), before, rtol=1e-10)
    assert [type(m) for _, m in model.named_modules()] == kinds
    assert list(model.state_dict()) == names == list(model.learned())


@pytest.mark.parametrize("save", [lambda path, model: save_model(path, model), lambda path, m: m.save_pretrained(path)])
def test_what_would_be_read_as_another_model_is_not_written(model, save, tmp_path):
    """A folder without the LoRA was written, and a file that `load_model` refused."""
    with pytest.raises(ValueError, match=r"configuration: blocks\.0\.attention\.lora_k\.a, .*merge_lora"):
        save(tmp_path / "saved", add_lora(model, 2, rng=0))
    assert not (tmp_path / "saved").exists()
    save(tmp_path / "saved", merge_lora(model))


def test_a_frozen_parameter_is_no_business_of_an_optimizer(model):
    with pytest.raises(ValueError, match=r"model.learned\(\)"):
        AdamW(model.freeze().parameters())
    assert AdamW(model.unfreeze().parameters()).parameters


def test_a_model_of_other_attentions_is_refused(model):
    names, keys = model.learned().keys(), model.blocks[1].attention.w_k  # grouped keys have the smallest matrix
    with pytest.raises(ValueError, match="more than a matrix of shape"):
        add_lora(model, min(keys.shape) + 1)
    assert model.learned().keys() == names  # neither frozen nor with half of its LoRAs
    with pytest.raises(ValueError, match=r"got Adapted(Grouped)?Attention"):
        add_lora(add_lora(model, 2), 2)
    with pytest.raises(ValueError, match="got T5"):
        add_lora(T5(T5Config(9, 12, 3, 4, 1, 1, 10)), 2)


@pytest.mark.parametrize("freeze", [lambda model: add_lora(model, 2, rng=0), lambda model: model.blocks[0].freeze()])
def test_what_reads_gradients_leaves_frozen_parameters_out(freeze, rng):
    """A frozen parameter has no gradient: rules, estimate, picture and clipping take those of the others."""
    model = MODELS["gpt"]()
    freeze(model)
    assert check_model(model, IDS, causal=True, max_entries=1).passed
    attribution(model, IDS[:1], 3)
    model.train().backward(np.ones_like(model(IDS)))
    squares = sum(float((p.grad**2).sum()) for p in model.learned().values())
    norms = plots.gradient_norms(model)
    assert sum(norm**2 for parts in norms.values() for norm in parts.values()) == pytest.approx(squares)
    assert clip_grad_norm(model.parameters(), 1e9) == pytest.approx(squares**0.5)


def test_a_model_of_which_everything_is_frozen_keeps_the_rules():
    assert check_model(MODELS["gpt"]().freeze(), IDS, causal=True, max_entries=1).passed


@pytest.mark.parametrize("kind", [Adam, lambda parameters: SGD(parameters, momentum=0.9)])
def test_an_optimizer_does_not_move_what_was_frozen_later(kind):
    """Its running averages would, and weight decay."""
    model = MODELS["gpt"]()
    optimizer = kind(model.parameters())
    model.backward(np.ones_like(model(IDS)))
    optimizer.step()
    model.embedding.freeze()
    before = model.embedding.table.data.copy()
    with pytest.raises(RuntimeError, match="frozen after the optimizer was made"):
        optimizer.step()
    assert np.array_equal(model.embedding.table.data, before)
