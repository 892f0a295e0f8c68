"""Every function pair of `functional`: gradients against finite differences, dtypes, and numbers of every size. Values
against a plain implementation: tests/homework/sheets/test_exercises.py."""

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


def test_positions_are_as_exact_in_float32_as_float32_can_be(rng):
    assert np.array_equal(F.sinusoidal_encoding(300, 8), F.sinusoidal_encoding(300, 8, np.float64).astype(np.float32))
    x, far = rng.normal(size=(1, 2, 8)), np.array([100_001, 131_071])
    assert abs(F.rotary(x.astype(np.float32), far) - F.rotary(x, far)).max() < 1e-6


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
    far = x[abs(x) > 10]
    assert (erf(far) == np.sign(far)).all()  # else x Φ(x) would grow again for large negative x


def test_layer_norm_far_from_zero_in_float32(rng):
    """Centring first keeps the digits that E[x²] − E[x]² would lose."""
    x = rng.normal(size=(3, 64)).astype(np.float32) + np.float32(1000)
    expected = (x - x.mean(axis=-1, keepdims=True, dtype=float)) / x.std(axis=-1, keepdims=True, dtype=float)
    np.testing.assert_allclose(F.layer_norm(x, *np.float32([[1] * 64, [0] * 64]))[0], expected, atol=1e-3)


def test_alibi_slopes_of_six_heads_are_those_of_the_paper():
    """Four of the power of two below, then the first and the third of eight (Press et al. 2022, appendix A)."""
    slopes = -F.alibi_bias(6, 2, dtype=np.float64)[:, 1, 0]
    np.testing.assert_allclose(slopes, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3], rtol=1e-14)


@pytest.mark.parametrize("scale", [np.float64(2), 2])
def test_the_scale_does_not_change_the_dtype(rng, scale):
    x, a, b = (rng.normal(size=(3, 3)).astype("float32") for _ in range(3))
    y, low = F.lora(x, a, b, scale)
    assert {r.dtype for r in (y, low, *F.lora_backward(y, x, low, a, b, scale))} == {np.dtype("float32")}
