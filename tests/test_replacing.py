"""Values that are replaced while a model runs: what follows uses them, forward and backward."""

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np import generate, trace
from transformer_np.gradcheck import check_gradients
from transformer_np.inspection.samples import small_model
from transformer_np.layers import FeedForward, MultiHeadAttention, WindowAttention

NAMES = ["Transformer", "GPT", "Llama", "Bert", "T5", "TransformerXL"]


def model_and_inputs(name, **options):
    """A model with large random parameters, and ids for it."""
    dropout = {} if name in ("GPT", "Llama") else {"dropout": 0.0}
    model, rng = small_model(name, dtype="float64", **dropout, **options), np.random.default_rng(7)
    for parameter in model.parameters():
        parameter.data = rng.normal(size=parameter.shape) * (0.6 if parameter.data.ndim > 1 else 1)
    ids = rng.integers(3, 11, (2, 5))
    return model, (ids, rng.integers(3, 11, (2, 4))) if name in ("Transformer", "T5") else (ids,)


def logits_of(model, inputs):
    output = model(*inputs)
    return output[0] if isinstance(output, tuple) else output


def derivatives(model, inputs, rng):
    """The derivative of a loss in a random direction of all parameters: by backward and by differences."""
    dlogits = rng.normal(size=logits_of(model, inputs).shape)
    model.zero_grad()
    logits_of(model, inputs)
    model.backward(dlogits)
    along = [(p, p.data.copy(), rng.normal(size=p.shape)) for p in model.parameters()]
    analytic = sum((p.grad * direction).sum() for p, _, direction in along)
    losses = []
    for step in (1e-6, -1e-6, 0):
        for p, data, direction in along:
            p.data = data + step * direction
        losses.append((logits_of(model, inputs) * dlogits).sum())
    return analytic, (losses[0] - losses[1]) / 2e-6


def names_of(model, inputs):
    """The values that this forward pass computes."""
    logits_of(model, inputs)
    unread = tuple(f"{path}.memory" for path, module in model.named_modules() if module._kept.get("memory") is None)
    not_run = ("mlm_head", "pooler", "classifier")
    return [name for name in model._values_by_name() if not name.startswith(not_run) | name.endswith(unread)]


def one_of_each_kind(model, names):
    """For each value of each kind of layer, the first name."""
    kinds, values = {}, model._values_by_name()
    for name in names:
        value = "" if name in dict(model.named_modules()) else name.rpartition(".")[2]
        kinds.setdefault((type(values[name][0]).__name__, value), name)
    return list(kinds.values())


def check_replaced(model, inputs, name, rng, is_constant):
    """The gradients of the changed model agree with differences; afterwards the model is as before."""
    plain, drawn = logits_of(model, inputs).copy(), {}

    def changed(array):
        numbers = drawn.setdefault("factors", rng.uniform(0.2, 1.8, size=array.shape))
        hidden = array == -np.inf  # a score
        return numbers if is_constant else np.where(hidden, array, np.sin(np.where(hidden, 0, array)) * numbers)

    def slope(dnew, array):
        return dnew * np.cos(np.where(array == -np.inf, 0, array)) * drawn["factors"]

    with model.replacing(name, changed, None if is_constant else slope):
        assert not np.allclose(logits_of(model, inputs), plain), name
        analytic, numeric = derivatives(model, inputs, rng)
    np.testing.assert_allclose(analytic, numeric, rtol=1e-4, atol=1e-6 * np.abs(plain).max(), err_msg=name)
    np.testing.assert_array_equal(logits_of(model, inputs), plain)


EVERY_VALUE = [pytest.param(True, is_constant, marks=pytest.mark.release) for is_constant in (False, True)]


@pytest.mark.parametrize(("every", "is_constant"), [(False, False), *EVERY_VALUE])
@pytest.mark.parametrize("name", NAMES)
def test_gradients_with_a_value_of_each_kind_replaced(name, every, is_constant, rng):
    model, inputs = model_and_inputs(name)
    names = names_of(model, inputs)
    of_each_kind = one_of_each_kind(model, names)
    assert len(of_each_kind) >= 15
    for value in names if every else of_each_kind:
        check_replaced(model, inputs, value, rng, is_constant)


def parts_of(model):
    """[(the path of a sub-layer, of its Add & Norm), …] in order, of each stack."""
    blocks = [(path, module) for path, module in model.named_modules() if hasattr(module, "sublayers")]
    numbered = [(path, i, name) for path, block in blocks for i, name in enumerate(block.sublayers, 1)]
    return [(f"{path}.{name}", f"{path}.add_norm{i}") for path, i, name in numbered]


READ = {name: {} for name in NAMES} | {"Transformer, pre-norm": {"norm_first": True}, "GPT, window": {"window": 2}}


@pytest.mark.parametrize("name", READ)
def test_the_names_for_readers(name, rng):
    """The residual path, the scores and what each head writes: they fit together, are there with eval(keep=True)
    alone, and change nothing where they are replaced by themselves."""
    model, inputs = model_and_inputs(name.partition(",")[0], **READ[name])
    model.train()
    logits_of(model, inputs)
    names = ("residual_before", "written", "residual_after", "scores")
    assert not [value for value in model.intermediates() if value.endswith(names)]
    plain = logits_of(model.eval(keep=True), inputs).copy()
    values, modules, stream = model.intermediates(), dict(model.named_modules()), {}
    near = {"rtol": 1e-10, "atol": 1e-10 * np.abs(plain).max()}
    for part, around in parts_of(model):
        before, wrote, after = (values[f"{around}.{value}"] for value in names[:3])
        np.testing.assert_array_equal(before + wrote, after)
        stack, norm = part.partition(".")[0], modules[around].norm
        np.testing.assert_allclose(before, stream.get(stack, before), **near)
        stream[stack] = after if modules[around].norm_first else norm(after)
        if "attention" in part:
            scores, weights, heads = (values[f"{part}.{value}"] for value in ("scores", "weights", "written"))
            np.testing.assert_allclose(F.softmax(scores), weights, **near)
            bias = 0 if modules[part].b_o is None else modules[part].b_o.data
            assert heads.shape == (*weights.shape[:3], before.shape[-1])
            np.testing.assert_allclose(heads.sum(axis=1) + bias, wrote, **near)
    for value in [value for value in values if value.endswith(names)]:
        with model.replacing(value, lambda array: array):
            np.testing.assert_array_equal(logits_of(model, inputs), plain, err_msg=value)


@pytest.mark.parametrize("name", READ)
def test_what_follows_from_a_name_for_readers(name, rng):
    """Replaced, they change the output as a computation by hand says."""
    model, inputs = model_and_inputs(name.partition(",")[0], **READ[name])
    plain = logits_of(model.eval(keep=True), inputs).copy()
    values, modules, (part, around) = model.intermediates(), dict(model.named_modules()), parts_of(model)[-2]
    near, width = {"rtol": 1e-9, "atol": 1e-9 * np.abs(plain).max()}, modules[part].d_head

    def with_value(name, function):
        with model.replacing(name, function):
            return logits_of(model, inputs).copy()

    def second_off(heads):
        heads[:, 1] = 0
        return heads

    def second_concat_off(concat):
        concat[..., width : 2 * width] = 0
        return concat

    without = with_value(f"{part}.written", second_off)
    np.testing.assert_allclose(without, with_value(f"{part}.concat", second_concat_off), **near)
    assert not np.allclose(without, plain)
    seen = values[f"{part}.scores"] > -np.inf
    flat = with_value(f"{part}.scores", lambda scores: np.where(seen, 3.0, scores))
    even = with_value(f"{part}.weights", lambda _: seen / seen.sum(axis=-1, keepdims=True))
    np.testing.assert_allclose(flat, even, **near)
    off = with_value(part, np.zeros_like)
    for value in ("written", "residual_after"):
        changed = with_value(f"{around}.{value}", lambda array: array - values[f"{around}.written"])
        np.testing.assert_allclose(changed, off, **near)
    other = rng.normal(size=values[f"{around}.written"].shape)
    moved = other if modules[around].norm_first else modules[around].norm(other)
    following = f"{around[:-1]}{int(around[-1]) + 1}.residual_before"
    changed = with_value(f"{around}.residual_after", lambda _: other)
    np.testing.assert_allclose(changed, with_value(following, lambda _: moved), **near)


@pytest.mark.parametrize(
    ("layer", "value"),
    [
        (lambda: WindowAttention(6, 2, window=1, rng=1), "weights"),
        (lambda: WindowAttention(6, 2, window=1, causal=True, rng=1), "scores"),
        (lambda: WindowAttention(6, 2, window=1, rng=1), "written"),
        (lambda: WindowAttention(6, 2, window=1, rng=1), "k"),
        (lambda: FeedForward(6, 5, "gelu", rng=1), "hidden"),
        (lambda: FeedForward(6, 5, "relu", bias=False, rng=1), "before"),
    ],
)
def test_check_gradients_of_a_layer_inside(layer, value, rng):
    layer, x = layer(), rng.normal(size=(2, 4, 6))

    def changed(old):
        return np.where(old == -np.inf, old, np.sin(np.where(old == -np.inf, 0, old)))

    with layer.replacing(value, changed, lambda dnew, old: dnew * np.cos(np.where(old == -np.inf, 0, old))):
        report = check_gradients(layer, x, max_entries=8)
        assert report.passed, report
    with layer.replacing(value, changed, lambda dnew, old: dnew):
        assert not check_gradients(layer, x, max_entries=8).passed
    assert check_gradients(layer, x, max_entries=8).passed and "forward" not in vars(layer)


def test_the_new_value_is_what_follows_uses(rng):
    layer, x = MultiHeadAttention(6, 2, rng=1, dtype="float64"), rng.normal(size=(2, 4, 6))

    def second_head_off(weights):
        weights[:, 1] = 0
        return weights

    with layer.replacing("weights", second_head_off):
        y = layer(x)
        kept = layer.intermediates()
    assert (kept["weights"][:, 1] == 0).all() and (kept["concat"][..., 3:] == 0).all()
    np.testing.assert_allclose(y, kept["weights"][:, 0] @ kept["v"][:, 0] @ layer.w_o.data[:3] + layer.b_o.data)
    np.testing.assert_array_equal(layer.weights, kept["weights"])  # still there afterwards, for a picture
    with pytest.raises(RuntimeError, match="backward needs a forward in train"):
        layer.backward(y)


def test_a_constant_passes_no_gradient_on(rng):
    layer, x = MultiHeadAttention(6, 2, rng=1, dtype="float64"), rng.normal(size=(2, 4, 6))
    plain = layer(x)
    with layer.replacing("weights", lambda weights: weights):
        np.testing.assert_array_equal(layer(x), plain)
        layer.backward(plain)
    assert not layer.w_q.grad.any() and layer.w_v.grad.any()


def test_a_function_may_keep_and_return_its_own_array():
    model, inputs = model_and_inputs("Transformer")
    other = np.ones((2, 5, 12))
    with model.replacing("src_input.embedding", lambda rows: other):  # the model scales it in place
        model(*inputs)
    assert (other == 1).all()


def test_shortcuts_are_not_taken_meanwhile(rng, monkeypatch):
    monkeypatch.setattr("transformer_np.layers.tiles.TILED_BYTES", 0)
    monkeypatch.setattr("transformer_np.layers.tiles.TILED_LENGTH", 2)
    layer, x = MultiHeadAttention(6, 2, rng=1, dtype="float64"), rng.normal(size=(2, 4, 6))
    layer(x)
    assert not isinstance(layer.kept("weights"), np.ndarray)
    with layer.replacing("weights", np.zeros_like):
        np.testing.assert_array_equal(layer(x), np.broadcast_to(layer.b_o.data, x.shape))
    assert layer(x).any()


@pytest.mark.parametrize("name", ["GPT", "Llama"])  # the heads of a llama share keys: decoding folds them
def test_the_cache_sees_the_same_values(name):
    model, (ids,) = model_and_inputs(name)

    def first_head_off(weights):
        assert weights.shape[1] == 3
        weights[:, 0] = 0
        return weights

    with model.replacing("blocks.1.attention.weights", first_head_off):
        cached = generate(model, ids[:, :2], 5, temperature=0)
        np.testing.assert_array_equal(cached, generate(model, ids[:, :2], 5, temperature=0, use_cache=False))


def test_several_at_once_and_traced():
    model, inputs = model_and_inputs("Transformer")
    with model.replacing("encoder.0", np.zeros_like), model.replacing("decoder.0.cross_attention.v", np.ones_like):
        steps = trace(model, *inputs)
        assert (steps.output == model(*inputs)).all()
        values = model.intermediates()
    assert not values["decoder.0.cross_attention.memory"].any()
    assert (values["decoder.0.cross_attention.v"] == 1).all()
    np.testing.assert_allclose(values["decoder.0.cross_attention.concat"], 1)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("blocks.0.attention.weigths", "did you mean 'blocks.0.attention.weights'"),
        ("attention.weights", "did you mean .*attention.weights'"), ("blocks.9", "did you mean 'blocks.1'"),
        ("blocks.0.add_norm1.norm.x_hat", "did you mean 'blocks.0.add_norm1.norm'"), ("", "no value ''"),
    ],
)  # fmt: skip
def test_unknown_names(name, hint):
    model, _ = model_and_inputs("GPT")
    with pytest.raises(ValueError, match=hint), model.replacing(name, np.zeros_like):
        pass


def test_wrong_functions():
    model, inputs = model_and_inputs("Transformer")
    with pytest.raises(TypeError, match="must be a function, got ndarray"), model.replacing("encoder.0", np.ones(3)):
        pass
    for wrong, got in ((lambda array: None, "got NoneType"), (lambda array: array[0], r"got float64 \(5, 12\)")):
        with pytest.raises(ValueError, match=rf"function must return .* encoder.0, \(2, 5, 12\), {got}"):
            with model.replacing("encoder.0", wrong):
                model(*inputs)
    with model.replacing("encoder.0", np.zeros_like, lambda dnew, old: None):
        logits = model(*inputs)
        with pytest.raises(ValueError, match="backward must return the gradient"):
            model.backward(logits)
    with pytest.raises(RuntimeError, match="memory was not computed in this forward"):
        with model.replacing("decoder.0.self_attention.memory", np.zeros_like):
            model(*inputs)
    logits = model(*inputs)
    with model.replacing("encoder.0", np.zeros_like), pytest.raises(RuntimeError, match="call the forward inside"):
        model.backward(logits)
    with model.replacing("encoder.0", np.zeros_like), pytest.raises(RuntimeError, match="already being replaced"):
        with model.replacing("encoder.0", np.zeros_like):
            pass
