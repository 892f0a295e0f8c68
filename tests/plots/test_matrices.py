"""Products of matrices as coloured grids."""

import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from reading import check_layout

from transformer_np import plots
from transformer_np.layers import LayerNorm, MultiHeadAttention
from transformer_np.lecture import five_words, three_heads
from transformer_np.plots.arguments import steady

WORDS = ["a", "$b$", "c", "<d>"]


def layer_after_forward(rng, heads=3, bias=True):
    layer = MultiHeadAttention(6, heads, bias=bias, rng=1, dtype=np.float64)
    for parameter in layer.parameters():
        parameter.data = rng.normal(size=parameter.shape)
    return layer, layer(rng.normal(size=(2, 4, 6)))


def multiplied(product):
    """The left side of an equation with one product, and its right side."""
    (_, left), (_, right), *_, (_, result) = product.matrices
    assert product.terms[1] == "·"
    return left @ right, result


@pytest.mark.parametrize("heads", [1, 3])
def test_the_equations_of_attention_hold(rng, heads):
    layer, y = layer_after_forward(rng, heads)
    products = plots.attention_products(layer, WORDS, head=heads, row=1)
    assert len(products) == 7 + (heads > 1)
    for product in (products[5], *products[:3]):
        left, right = multiplied(product)
        biases = 0 if product is products[5] else right - left  # of the projections
        np.testing.assert_allclose(left + biases, right)
        assert np.allclose(np.ptp(biases, axis=0), 0)
    scores, same = multiplied(products[3])
    np.testing.assert_allclose(scores / (6 / heads) ** 0.5, same)
    np.testing.assert_array_equal(products[4].matrices[1][1], layer.weights[1, heads - 1])
    np.testing.assert_allclose(products[4].matrices[1][1].sum(axis=1), 1)
    if heads > 1:
        *parts, (_, whole) = products[6].matrices
        np.testing.assert_array_equal(np.concatenate([z for _, z in parts], axis=1), whole)
        np.testing.assert_array_equal(parts[-1][1], products[5].matrices[2][1])
    np.testing.assert_allclose(products[-1].matrices[-1][1], y[1])


def test_the_equations_of_layer_norm_hold(rng):
    layer, x = LayerNorm(5, dtype=np.float64), rng.normal(size=(4, 5))
    layer.gamma, layer.beta = rng.normal(size=(2, 5))
    centre, divide, shift = ([array for _, array in p.matrices] for p in plots.layer_norm_products(layer, x, WORDS))
    np.testing.assert_allclose(centre[0] - centre[1], centre[2])
    np.testing.assert_allclose(divide[0] / divide[1], divide[2])
    np.testing.assert_allclose(shift[0] * shift[1] + shift[2], shift[3])
    np.testing.assert_allclose(shift[3], layer(x))


@pytest.mark.long
def test_grids_show_numbers_names_and_shapes():
    five = five_words()
    products = plots.attention_products(five.layer, five.words)[3:5]
    figure = plots.matrices(products, title="Five words: $5")
    (axes,) = figure.axes
    meshes = [child for child in axes.get_children() if isinstance(child, QuadMesh)]
    arrays = [array for product in products for _, array in product.matrices]
    for mesh, array in zip(meshes, arrays, strict=True):
        np.testing.assert_array_equal(mesh.get_array(), steady(array))
    assert [mesh.get_cmap().name for mesh in meshes] == ["RdBu_r"] * 4 + ["viridis"]
    texts = [text.get_text() for text in axes.texts]
    for name in ("$Q$", "$K^\\top$", "$A$", "5 × 4", "4 × 5", "softmax", "0.63", "/ √4  ="):
        assert name in texts
    assert texts.count("Lucas") == 2
    check_layout(figure, on_panels=True)
    three = three_heads()  # all grids of several heads
    check_layout(plots.matrices(plots.attention_products(three.layer, three.words, 3)), on_panels=True)


def test_large_matrices_have_no_numbers_and_titles_have_tex_between_dollars(rng):
    large = [("X", rng.normal(size=(3, 40))), "+", ("Y_1", -np.eye(2) / 1e9)]
    figure = plots.matrices(plots.Product("The large $W^O$ <of> Y_1", large, list("abc")))
    title, *others = figure.axes[0].texts
    assert title.get_text() == "The large $W^O$ <of> Y_1" and title.get_parse_math()
    texts = [text.get_text() for text in others]
    assert texts.count("0.00") == 4 and "3 × 40" in texts and len(texts) == 3 + 1 + 4 + 4
    check_layout(figure, on_panels=True)


def test_the_last_bits_of_a_sum_change_no_colour_and_no_number():
    """0.5 of the scale is the border of two colours, and 0.125 that of 0.12 and 0.13."""
    exact = np.array([[1.0, 0.5, 0.125], [-0.25, 0.365, 0.7]])
    drawn = []
    for bit in (0, 1e-16, -1e-16, 4e-16):
        (axes,) = plots.matrices(plots.Product("X", [("X", np.where(exact == 1, 1, exact + bit))])).axes
        (mesh,) = (child for child in axes.get_children() if isinstance(child, QuadMesh))
        colours = mesh.cmap(mesh.norm(mesh.get_array()))
        drawn.append((colours.tobytes(), *(text.get_text() for text in axes.texts)))
    assert len(set(drawn)) == 1
