"""Every function pair of `functional`: gradients against finite differences, dtypes, and numbers of every size. Values
against a plain implementation: tests/homework/test_library.py."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np.functional.activations import erf
from transformer_np.functional.fast import BLOCK
from transformer_np.inspection.gradcheck import backward_of, check_gradients
from transformer_np.inspection.samples import EXAMPLES, SIZES, arguments_of

NEAR = {"rtol": 1e-10, "atol": 1e-10}


def assert_near(actual, expected):
    np.testing.assert_allclose(actual, expected, **NEAR)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_few_rows_times_a_large_matrix(count, rng):
    x, w, b = rng.normal(size=(count, 300)), rng.normal(size=(300, 250)), rng.normal(size=250)
    expected = np.einsum("nd,df->nf", x, w) + b
    for matrix in (w, np.asfortranarray(w)):
        assert_near(F.linear(x, matrix, b), expected)
        y = F.linear(x[None].astype("float32"), matrix.astype("float32"))[0]
        assert y.dtype == np.float32 and np.abs(y + b - expected).max() < 1e-3


# --- all of them -----------------------------------------------------------------------------------------------------

ARRAY = re.compile(r"(?:(\w+) )?\(([^()]*)\)")  # in a docstring: an optional name, its axes


def test_no_function_is_forgotten():
    """Every file of the folder but those with helpers is read, and every backward belongs to a check."""
    files = {file.stem for file in Path(F.__file__).parent.glob("*.py")} - {"__init__", "fast", "special"}
    assert {function.__module__.rpartition(".")[2] for function in F.FUNCTIONS.values()} == files
    checked = {name for name in F.__all__ if backward_of(name)} - {"split_heads", "merge_heads"}  # of each other
    assert {f"{name}_backward" for name in checked} == {name for name in F.__all__ if name.endswith("_backward")}


def shape_of(axes):
    """The shape of "..., T, K" among the random arguments; None for words that are no axes."""
    sizes = SIZES | {name: (value,) for name, value in EXAMPLES.items() if isinstance(value, int)}
    letters = [letter for letter in re.split(", ?", axes) if letter]
    sizes = [EXAMPLES["ids"].shape if letter == "..." else np.ravel(sizes.get(letter, -1)) for letter in letters]
    shape = tuple(int(size) for part in sizes for size in part)
    return shape if shape and min(shape) > 0 else None


OTHER_AXES = {"split_heads", "merge_heads", "rotary_frequencies"}  # H·K, K/2


@pytest.mark.parametrize("name", sorted({*F.__all__} - OTHER_AXES))
def test_the_docstring_says_the_shapes(name, rng):
    """The axes that it gives an argument are those of `@shapes`, and the results have those behind the arrow."""
    given, function = arguments_of(name, rng), F.FUNCTIONS[name]
    before, after = re.split(r"\s->  ", function.__doc__, maxsplit=1)
    said = {array: shape_of(axes) for array, axes in ARRAY.findall(" ".join(before.split()))}
    checked = getattr(getattr(F, name), "shapes", {})
    arrays = {array: values.shape for array, values in given.items() if array in checked}
    assert {array: shape for array, shape in said.items() if array in arrays and shape}.items() <= arrays.items()
    if not name.endswith("_backward"):
        assert all(re.search(rf"\b{array}\b", before) for array in arrays)
    results = function(*given.values())
    shapes = [result.shape for result in (results if isinstance(results, tuple) else (results,)) if np.ndim(result)]
    said = [shape_of(axes) for _, axes in ARRAY.findall(" ".join(after.split()))]
    assert [shape for shape in said if shape][: len(shapes)] == shapes


@pytest.mark.parametrize("name", [name for name in F.__all__ if backward_of(name)])
def test_gradients(name, rng):
    assert check_gradients(getattr(F, name), *arguments_of(name, rng).values()).passed


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "name",
    [*sorted({*F.__all__} - {"relative_position_buckets", "rotary_frequencies"}), "gelu none", "gelu_backward none"],
)
def test_dtype_stays_and_arguments_are_not_changed(name, dtype, rng):
    name, *more = name.split()
    arguments = [*arguments_of(name, rng, np.dtype(dtype)).values(), *more]
    before = [np.copy(a) for a in arguments]
    results = getattr(F, name)(*arguments)
    floats = [r for r in (results if isinstance(results, tuple) else (results,)) if r is not None]
    floats = [r for r in floats if isinstance(r, np.ndarray) and r.dtype != bool]
    assert floats
    assert {r.dtype for r in floats} == {np.dtype(dtype)}
    for argument, copy in zip(arguments, before, strict=True):
        assert np.array_equal(argument, copy)


# --- embedding -------------------------------------------------------------------------------------------------------

IDS = np.array([[4, 1, 4, 1], [0, 4, 1, 6], [4, 4, 4, 4]])  # repeated; 2, 3 and 5 never occur


@pytest.mark.parametrize("ids", [IDS, IDS.astype(np.int32), IDS.astype(np.uint8), np.array(3)])
def test_embedding(rng, ids):
    """Every occurrence of an id counts in the gradient."""
    table, dy, expected = rng.normal(size=(7, 5)), rng.normal(size=(*ids.shape, 5)), np.zeros((7, 5))
    y = F.embedding(ids, table)
    assert y.shape == dy.shape and all(np.array_equal(y[i], table[ids[i]]) for i in np.ndindex(ids.shape))
    for i in np.ndindex(ids.shape):
        expected[ids[i]] += dy[i]
    assert_near(F.embedding_backward(dy, ids, 7), expected)


# --- positional encoding ---------------------------------------------------------------------------------------------


def test_sinusoidal_encoding_in_float32_is_as_exact_as_float32_can_be():
    assert np.array_equal(F.sinusoidal_encoding(300, 8), F.sinusoidal_encoding(300, 8, np.float64).astype(np.float32))


# --- softmax ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_of_huge_logits(dtype):
    x = np.array([[1e4, -1e4, 1e4], [-1e4, -1e4, -1e4]], dtype)
    assert_near(F.softmax(x), np.array([[0.5, 0, 0.5], [1 / 3, 1 / 3, 1 / 3]], dtype))
    x = np.array([[1e4 + 1, 1e4], [-1e4, -1e4 + 1]], dtype)
    np.testing.assert_allclose(F.softmax(x)[0], [1 / (1 + math.exp(-1)), 1 / (1 + math.e)], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_of_hidden_entries_and_rows(dtype, axis):
    x = np.array([[1, -np.inf, 1], [-np.inf, -np.inf, -np.inf], [-np.inf, -1e4, -np.inf]], dtype)
    expected = np.array([[0.5, 0, 0.5], [0, 0, 0], [0, 1, 0]], dtype)
    x, expected = (x, expected) if axis == 1 else (x.T, expected.T)
    y = F.softmax(x, axis)
    assert np.array_equal(y, expected)
    assert not F.softmax_backward(np.ones_like(x), y, axis).any()
    assert check_gradients(F.softmax, x, axis).passed


# --- activations -----------------------------------------------------------------------------------------------------


def test_relu(rng):
    x = rng.normal(size=(3, 4, 5))
    assert np.array_equal(F.relu(x), [[[max(0.0, v) for v in row] for row in rows] for rows in x])
    assert F.relu_backward(np.array([3.0, 3.0, 3.0]), np.array([-1.0, 0.0, 1.0])).tolist() == [0, 0, 3]


def plain_gelu(x, approximate):
    if approximate == "none":
        return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(rng, approximate):
    x = np.concatenate([np.linspace(-9, 9, 1001), [-1e4, -40.0, 0.0, 40.0, 1e4]])
    expected = [plain_gelu(v, approximate) for v in x]
    np.testing.assert_allclose(F.gelu(x, approximate), expected, rtol=1e-12, atol=1e-12)
    assert check_gradients(F.gelu, 2 * rng.normal(size=(3, 4, 5)), approximate).passed
    assert F.gelu(0.5, approximate) == pytest.approx(plain_gelu(0.5, approximate))  # one number
    assert F.gelu_backward(1.0, 0.0, approximate) == pytest.approx(0.5)
    by_default = approximate == "tanh"
    assert np.array_equal(F.gelu(x), F.gelu(x, approximate)) == by_default
    assert np.array_equal(F.gelu_backward(x, x), F.gelu_backward(x, x, approximate)) == by_default


def test_exact_gelu_backward():
    x = np.concatenate([np.linspace(-9, 9, 1001), [-1e4, -40.0, 0.0, 40.0, 1e4]])
    density = [math.exp(-v * v / 2) / math.sqrt(2 * math.pi) for v in x]
    below = [(1 + math.erf(v / math.sqrt(2))) / 2 for v in x]
    expected = 2.5 * (np.array(below) + x * density)
    np.testing.assert_allclose(F.gelu_backward(np.full_like(x, 2.5), x, "none"), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("size", [11, 3 * BLOCK + 1])
def test_gelu_with_its_slope(rng, approximate, size):
    x, dy = np.resize([-1e4, -3.0, -0.2, 0.0, 0.7, 40.0], size), rng.normal(size=size)
    y, slope = F.gelu_with_slope(x, approximate)
    np.testing.assert_allclose(y, F.gelu(x, approximate), rtol=1e-14)
    np.testing.assert_allclose(dy * slope, F.gelu_backward(dy, x, approximate), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["gelu", "gelu_backward"])
def test_a_gelu_put_in_another_place_computes_no_slope(monkeypatch, name):
    monkeypatch.setattr(F, name, lambda *_: np.full(3, 5.0))
    y, slope = F.gelu_with_slope(np.zeros(3))
    assert slope is None and y.max() == (5 if name == "gelu" else 0)


@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 2e-7), (np.float64, 1e-14)])
def test_erf(dtype, error):
    x = np.concatenate([np.linspace(-8, 8, 3001), np.logspace(-30, 4, 200), -np.logspace(-30, 4, 200)]).astype(dtype)
    assert abs(erf(x) - [math.erf(v) for v in x]).max() < error


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erf_is_1_far_out(dtype):
    """Else x Φ(x) would grow again for large negative x."""
    far = np.array([-1e6, -100, -12, 12, 1e6], dtype)
    assert (erf(far) == np.sign(far)).all()
    assert (F.gelu(far, "none") == np.maximum(far, 0)).all()
    np.testing.assert_allclose(F.gelu_backward(np.ones_like(far), far, "none"), far > 0, atol=1e-20)


# --- layer normalisation ---------------------------------------------------------------------------------------------


def test_layer_norm_far_from_zero_in_float32(rng):
    """Centring first keeps the digits that E[x²] − E[x]² would lose."""
    x = rng.normal(size=(3, 64)).astype(np.float32) + np.float32(1000)
    expected = (x - x.mean(axis=-1, keepdims=True, dtype=float)) / x.std(axis=-1, keepdims=True, dtype=float)
    np.testing.assert_allclose(F.layer_norm(x, *np.float32([[1] * 64, [0] * 64]))[0], expected, atol=1e-3)


# --- dropout ---------------------------------------------------------------------------------------------------------


def test_dropout(rng):
    x = 1 + rng.random((50, 40, 10))
    y, keep = F.dropout(x, 0.3, 5)
    assert keep.dtype == bool
    assert abs(keep.mean() - 0.7) < 0.01  # 3 standard deviations
    np.testing.assert_allclose(y, np.where(keep, x / 0.7, 0), rtol=1e-15)
    assert np.array_equal(F.dropout(x, 0.3, np.random.default_rng(5))[0], y)
    assert not np.array_equal(F.dropout(x, 0.3, 6)[1], keep)


# --- loss ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_nothing_to_predict(rng, smoothing):
    logits, targets = rng.normal(size=(2, 3, 5)), np.full((2, 3), 4)
    loss, probs = F.cross_entropy(logits, targets, ignore_index=4, label_smoothing=smoothing)
    assert loss == 0.0
    assert not F.cross_entropy_backward(probs, targets, ignore_index=4, label_smoothing=smoothing).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cross_entropy_of_huge_logits(dtype):
    logits = np.array([[1e4, -1e4, 0], [-1e4, 1e4, 1e4]], dtype)
    loss, probs = F.cross_entropy(logits, np.array([1, 1]))
    np.testing.assert_allclose(loss, (2e4 + math.log(2)) / 2, rtol=1e-6)
    np.testing.assert_allclose(F.cross_entropy_backward(probs, np.array([1, 1])), [[0.5, -0.5, 0], [0, -0.25, 0.25]])
    smooth = F.cross_entropy(logits, np.array([1, 1]), label_smoothing=0.3)[0]
    first, second = 0.7 * 2e4 + 0.3 * (0 + 2e4 + 1e4) / 3, 0.7 * 0 + 0.3 * 2e4 / 3
    np.testing.assert_allclose(smooth, (first + second + math.log(2)) / 2, rtol=1e-6)


def test_cross_entropy_of_an_impossible_class():
    """−inf takes a class out of the race."""
    logits = np.array([[0.5, -np.inf, -0.5]])
    loss, probs = F.cross_entropy(logits, np.array([2]))
    assert_near(loss, math.log(1 + math.e))
    assert F.cross_entropy_backward(probs, np.array([2]))[0, 1] == 0


# --- LoRA ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [np.float64(2), 2])
def test_the_scale_does_not_change_the_dtype(rng, scale):
    x, a, b = (rng.normal(size=(3, 3)).astype("float32") for _ in range(3))
    y, low = F.lora(x, a, b, scale)
    assert {r.dtype for r in (y, low, *F.lora_backward(y, x, low, a, b, scale))} == {np.dtype("float32")}
