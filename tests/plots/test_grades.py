"""A class and its homework."""

from types import SimpleNamespace

import numpy as np
import pytest
from reading import check_layout

from transformer_np import plots


def result(name, states, mistakes=()):
    return SimpleNamespace(exercise=name, states=states, mistakes=dict(mistakes))


@pytest.mark.long
def test_class_results_shows_the_numbers():
    long = "a mistake with a name that is far too long for the edge of a picture"
    results = [
        result("softmax", {"right": 3, "right for the lecture": 1, "wrong": 2}, {"no sum": 2, "other": 1}),
        result("scaled_dot_product_attention", {"wrong": 1, "not started": 5}, {long: 1}),
        result("relu", {"right": 6}),
    ]
    figure = plots.class_results(results, "Sheet 2")
    (axes,) = figure.axes
    widths = {bars.get_label(): [bar.get_width() for bar in bars] for bars in axes.containers}
    assert list(widths) == ["right", "right for the lecture", "wrong", "not started"]
    assert list(widths.values()) == [[3, 0, 6], [1, 0, 0], [2, 1, 0], [0, 5, 0]]
    starts = np.array([[bar.get_x() for bar in bars] for bars in axes.containers])
    np.testing.assert_array_equal(starts[:, 0], [0, 3, 4, 6])
    assert [label.get_text() for label in axes.get_yticklabels()] == [r.exercise for r in results]
    (right,) = axes.child_axes
    first, second, third = (label.get_text() for label in right.get_yticklabels())
    assert (first, third) == ("no sum (2)", "")
    assert second.endswith("… (1)") and len(second) < 50
    assert check_layout(figure) > 8
    assert check_layout(plots.class_results(results[:1])) > 5
