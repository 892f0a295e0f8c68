"""Logits by layer, attention rollout, ablation of heads, and who wrote a word."""

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np import inspection
from transformer_np.inspection import attention_rollout, attribution, contributions, head_ablation, measured
from transformer_np.inspection.samples import small_model
from transformer_np.layers import Linear

MODELS = {
    "Transformer": {"tgt_vocab_size": 11},
    "Transformer, norm first": {"tgt_vocab_size": 11, "norm_first": True},
    **{"T5": {"vocab_size": 11}, "GPT": {}, "Llama": {}, "Bert": {"num_classes": None}, "TransformerXL": {}},
    "Bert, untied": {"num_classes": None, "tie_embeddings": False, "activation": "relu"},
    "TransformerXL, norm first": {"norm_first": True},
}


def model_named(name):
    return small_model(name.partition(",")[0], dtype="float64", **MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_logits_by_layer(name, rng):
    model = model_named(name)
    stack = "decoder" if hasattr(model, "decoder") else "blocks"
    inputs = [rng.integers(3, 11, (2, 5))] * (2 if stack == "decoder" else 1)
    logits = inspection.logits_by_layer(model, *inputs)
    assert logits.shape == (3, 2, 5, 11)
    with model.evaluating():
        run = model.mlm_logits if name.startswith("Bert") else model
        expected = run(*inputs)
        np.testing.assert_allclose(logits[-1], expected[0] if name.startswith("TransformerXL") else expected)
        states = []
        with model.replacing(f"{stack}.0", lambda out: states.append(out) or out):
            with model.replacing(f"{stack}.1", lambda out: states[-1]):  # the model without its last block
                shorter = run(*inputs)
        np.testing.assert_allclose(logits[1], shorter[0] if name.startswith("TransformerXL") else shorter)
    assert not np.allclose(logits[0], logits[1])
    assert "forward" not in vars(getattr(model, stack)[0])


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


# --- who wrote this word? --------------------------------------------------------------------------------------------


def drawn(name, rng):
    """A model whose biases and norms are random too, with one text for it."""
    model = model_named(name)
    for parameter in model.parameters():
        parameter.data = parameter.data + 0.2 * rng.normal(size=parameter.shape)
    inputs = tuple(rng.integers(3, 11, (1, 5)) for _ in range(1 + hasattr(model, "decoder")))
    return model.eval(), inputs


def logits_of(model, inputs):
    logits = model.mlm_logits(*inputs) if hasattr(model, "mlm_head") else model(*inputs)
    return (logits[0] if isinstance(logits, tuple) else logits)[0]  # (T, V)


@pytest.mark.parametrize("name", MODELS)
def test_contributions_add_up_to_the_logit(name, rng):
    model, inputs = drawn(name, rng)
    if name.startswith("TransformerXL"):  # with a memory, whose rows are not its first axis
        inputs += (list(rng.normal(size=(2, 1, 3, 12))),)
        assert attribution(model, inputs, 7).score == measured(model, inputs, 7).score
    logits = logits_of(model, inputs)
    for position in (0, 2, -1):
        one, two = (contributions(model, inputs, target, position) for target in (7, (7, 4)))
        assert one.total == pytest.approx(logits[position, 7], abs=1e-10)
        assert two.total == pytest.approx(logits[position, 7] - logits[position, 4], abs=1e-10)
    assert all(len(values) == 3 and np.abs(values).min() > 1e-6 for values in one.heads.values())
    assert not model.training and not model.keeping
    assert all("forward" not in vars(module) for _, module in model.named_modules())


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_contributions_to_a_class(pooling, rng):
    model = small_model("Bert", num_classes=4, pooling=pooling, dtype="float64")
    for parameter in model.parameters():
        parameter.data = parameter.data + 0.2 * rng.normal(size=parameter.shape)
    ids, padding = rng.integers(3, 11, (1, 6)), np.array([[False] * 5 + [True]])
    logits = model.eval().classify(ids, padding)[0]
    for target, expected in ((3, logits[3]), ((0, 2), logits[0] - logits[2])):
        assert contributions(model, (ids, padding), target).total == pytest.approx(expected, abs=1e-10)
    for question in (contributions, attribution, measured):  # of the whole text, whatever the position
        found = question(model, (ids, padding), 3, position=99)
        assert getattr(found, "score", getattr(found, "total", 0)) == pytest.approx(logits[3])
        alone, zeros = (question(model, given, 3) for given in (ids, (ids, None, np.zeros_like(ids))))
        assert str(alone) == str(zeros)
    with pytest.raises(ValueError, match="target"):
        contributions(model, ids, 4)


def test_contributions_are_those_of_each_part(rng):
    """Taken away where nothing later reacts, a part takes its contribution along: the last norm's scale is held fixed,
    and the last feed-forward network writes what it wrote."""
    model, inputs = drawn("GPT", rng)
    found = contributions(model, inputs, 7)
    norm, kept = model.norm, {}

    def fixed(x):
        x = x - x.mean(axis=-1, keepdims=True)
        scale = kept.setdefault("scale", 1 / np.sqrt((x**2).mean(axis=-1, keepdims=True) + norm.eps))
        return x * scale * norm.gamma.data + norm.beta.data

    norm.forward = fixed
    with model.replacing("blocks.1.feed_forward", lambda z: kept.setdefault("wrote", z)):
        assert logits_of(model, inputs)[-1, 7] == pytest.approx(found.total, abs=1e-10)
        for head in range(3):

            def off(concat, head=head):
                concat[..., head * 4 : head * 4 + 4] = 0
                return concat

            with model.replacing("blocks.1.attention.concat", off):
                after = logits_of(model, inputs)[-1, 7]
            assert found.total - after == pytest.approx(found.heads["blocks.1.attention"][head], abs=1e-10)
    with model.replacing("blocks.1.feed_forward", np.zeros_like):
        after = logits_of(model, inputs)[-1, 7]
    assert found.total - after == pytest.approx(found.feed_forwards["blocks.1.feed_forward"], abs=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_attribution_is_the_slope_of_what_is_measured(name, rng):
    """Scaling a part by 1 − ε changes the score by ε times its attribution; the gradients are left alone."""
    model, inputs = drawn(name, rng)
    for parameter in model.parameters():
        parameter.grad = np.full(parameter.shape, 0.5)
    other = tuple(rng.integers(3, 11, array.shape) for array in inputs)
    eps = 1e-6
    for patch in (None, other):
        estimate = attribution(model, inputs, (7, 4), patch, position=2)
        assert estimate.score == pytest.approx(logits_of(model, inputs)[2, 7] - logits_of(model, inputs)[2, 4])
        assert {path for path in estimate.positions} == {*estimate.heads, *estimate.feed_forwards}
        for path, values in {**estimate.heads, **estimate.feed_forwards}.items():
            value, heads = (f"{path}.concat", 3) if path in estimate.heads else (path, 1)
            new = {}
            if patch is not None:
                with model.replacing(value, lambda z, new=new: new.setdefault("z", z)):
                    logits_of(model, patch)
            for head in range(heads):

                def nudged(z, head=head, heads=heads, new=new):
                    width = z.shape[-1] // heads
                    part = slice(head * width, (head + 1) * width)
                    z[..., part] += eps * (new["z"][..., part] - z[..., part] if new else -z[..., part])
                    return z

                with model.replacing(value, nudged):
                    logits = logits_of(model, inputs)
                slope = (logits[2, 7] - logits[2, 4] - estimate.score) / eps
                assert np.atleast_1d(values)[head] == pytest.approx(slope, rel=1e-4, abs=1e-7)
                assert np.sum(estimate.positions[path], axis=-1) == pytest.approx(values)
    assert all((parameter.grad == 0.5).all() for parameter in model.parameters())


@pytest.mark.parametrize("name", ["GPT", "Transformer", "Bert"])
def test_measured_is_what_one_finds_by_switching_off(name, rng):
    model, inputs = drawn(name, rng)
    found = measured(model, inputs, 7, position=1, batch_size=4)
    alone = head_ablation(model, lambda: logits_of(model, inputs)[1, 7])
    assert found.score == pytest.approx(alone.baseline)
    for path, changes in alone.changes.items():
        np.testing.assert_allclose(found.heads[path], changes, atol=1e-12)
    for path, change in found.feed_forwards.items():
        with model.replacing(path, np.zeros_like):
            assert change == pytest.approx(logits_of(model, inputs)[1, 7] - found.score, abs=1e-12)
    same = measured(model, inputs, 7, other=inputs)
    assert all(np.abs(values).max() < 1e-12 for values in [*same.heads.values(), *same.feed_forwards.values()])


def test_measured_patches_from_other_inputs(rng):
    model, inputs = drawn("Llama", rng)
    other = tuple(rng.integers(3, 11, array.shape) for array in inputs)
    found = measured(model, inputs, 7, other)
    values = []
    with model.replacing("blocks.1.feed_forward", lambda z: values.append(z) or z):
        logits_of(model, other)
    with model.replacing("blocks.1.feed_forward", lambda z: values[0]):
        change = logits_of(model, inputs)[-1, 7] - found.score
    assert found.feed_forwards["blocks.1.feed_forward"] == pytest.approx(change, abs=1e-12)


BERT = small_model("Bert", num_classes=None, mlm_head=False)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda m, x: contributions(m, np.zeros((2, 5), int), 3), ValueError, "one text"),
        (lambda m, x: contributions(m, x, 99), ValueError, "target"),
        (lambda m, x: contributions(m, x, 3, 5), ValueError, "position must lie in -5 … 4"),
        (lambda m, x: attribution(m, x, 3, position=-6), ValueError, "position must lie in -5 … 4"),
        (lambda m, x: measured(m, x, 3, position=None), TypeError, "position must be a whole number"),
        (lambda m, x: head_ablation(m, 0.5), TypeError, "measure must be a function that returns a number"),
        (lambda m, x: head_ablation(m, lambda: (0.5, x)), TypeError, "what measure returns must be a number, got"),
        (lambda m, x: attribution(m, x, (1, 2, 3)), ValueError, "an id or a pair"),
        (lambda m, x: measured(m, x, 3, other=np.ones((1, 3), int)), ValueError, "equal length"),
        (lambda m, x: attribution(Linear(3, 4), x, 3), ValueError, "has none"),
        (lambda m, x: inspection.logits_by_layer(BERT, x), TypeError, "model must be a GPT, .* got Bert"),
        (lambda m, x: head_ablation(Linear(2, 3), float), ValueError, "must have attention layers, Linear has none"),
        (lambda m, x: contributions(BERT, x, 3), TypeError, "Bert"),
    ],
)
def test_questions_that_have_no_answer(call, error, message, rng):
    model, inputs = drawn("GPT", rng)
    with pytest.raises(error, match=message):
        call(model, inputs)
