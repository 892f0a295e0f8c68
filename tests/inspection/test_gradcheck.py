"""The gradient check finds what is wrong, says where, and does not cry wolf."""

import numpy as np
import pytest

from transformer_np import functional as F
from transformer_np.inspection.gradcheck import check_gradients
from transformer_np.layers import Dropout, Linear
from transformer_np.module import Module, Parameter


def worst(report):
    """(name, index) of the entry that is most wrong; the report must not have passed."""
    assert not report.passed and report.worst.error > 1e-4
    return report.worst.name, report.worst.index


class BadLinear(Linear):
    """A linear layer with a mistake of choice in its backward."""

    def __init__(self, mistake):
        super().__init__(3, 4, rng=0)
        self.mistake = mistake

    def backward(self, dy):
        x, w = self.kept("x"), self.w.data
        dx, dw, db = F.linear_backward(dy, x, w)
        if self.mistake == "one sign":
            dw[2, 1] *= -1
        elif self.mistake == "factor":
            db *= 1.001
        elif self.mistake == "input":
            dx = dx.copy()
            dx[1, 2] = 0
        elif self.mistake == "nan":
            dw[0, 3] = np.nan
        elif self.mistake == "shape":
            dx = dx[0]
        self.w.grad += dw
        self.b.grad += db
        return None if self.mistake == "none" else dx


@pytest.fixture
def x(rng):
    return rng.normal(size=(2, 3))


MISTAKES = {
    "one sign": ("w", (2, 1)), "factor": ("b", None), "input": ("input 0", (1, 2)), "nan": ("w", (0, 3)),
}  # fmt: skip


@pytest.mark.parametrize(("mistake", "place"), MISTAKES.items())
def test_a_mistake_is_found_where_it_is(x, mistake, place):
    report = check_gradients(BadLinear(mistake), x)
    name, index = worst(report)
    assert (name, index) == (place[0], place[1] or index)
    assert all(e.error < 1e-8 for e in report.entries if e.name != name)
    head, line, *_ = str(report).splitlines()
    assert "BadLinear: WRONG" in head
    assert line.split()[0] == name.split()[0] and f"at ({', '.join(map(str, index))})" in line
    if mistake == "one sign":
        assert report.worst.analytic == pytest.approx(-report.worst.numeric, rel=1e-6)


@pytest.mark.parametrize(
    "mistake, message", [("shape", r"input 0 has shape \(3,\), not \(2, 3\)"), ("none", "each of .*; got 2")]
)
def test_a_gradient_that_cannot_be_compared(x, mistake, message):
    with pytest.raises(ValueError, match=f"BadLinear: .*{message}"):
        check_gradients(BadLinear(mistake), x)


def spoiling(dy, x):
    dx = F.relu_backward(dy, x)
    dy *= 2
    return dx


WRONG_FUNCTIONS = {
    "a backward that spoils its dout": (spoiling, F.relu),
    "softmax without the sum": (lambda dy, x: dy * F.softmax(x), F.softmax),
    "softmax over another axis": (lambda dy, x: F.softmax_backward(dy, F.softmax(x), 0), F.softmax),
    "relu of all": (lambda dy, x: dy, F.relu),
    "gelu of the other kind": (lambda dy, x: F.gelu_backward(dy, x, "none"), F.gelu),
    "a transposed gradient": (lambda dy, x: F.relu_backward(dy, x).T, F.relu),
    "x for dy, which one seed draws equal": (lambda dy, x: F.relu_backward(x, x), F.relu),
}


@pytest.mark.parametrize(("backward", "function"), WRONG_FUNCTIONS.values(), ids=WRONG_FUNCTIONS)
def test_a_wrong_backward_of_a_function(rng, backward, function):
    x = rng.normal(size=(3, 3))
    assert check_gradients(function, x).passed
    assert worst(check_gradients(function, x, backward=backward))[0] == "input 0"


def test_arrays_need_not_lie_in_rows(rng):
    x, w = rng.normal(size=(4, 5, 2)).T, np.asfortranarray(rng.normal(size=(4, 3)))
    assert check_gradients(F.linear, x, w).passed
    layer = Linear(4, 3)
    layer.w = Parameter(w)
    assert check_gradients(layer, x).passed
    assert check_gradients(F.softmax, np.broadcast_to(rng.normal(size=3), (2, 3))).passed


def test_the_module_is_left_alone(x):
    layer = Linear(3, 4, rng=0)
    layer.b.grad += 7
    before, inside = layer.state_dict(), x.copy()
    check_gradients(layer, x)
    assert all(np.array_equal(values, before[name]) for name, values in layer.state_dict().items())
    assert layer.b.grad.tolist() == [7] * 4 and not layer.w.grad.any() and layer.w.dtype == np.float32
    assert layer.intermediates() == {} and np.array_equal(x, inside)
    assert check_gradients(layer.eval(), x).passed and not layer.training


def test_a_sample_of_the_entries(rng):
    """Fewer forwards, and with enough entries a mistake is still found."""

    class Counting(Linear):
        calls = 0

        def forward(self, x):
            Counting.calls += 1
            return super().forward(x)

    check_gradients(Counting(6, 7, rng=0), rng.normal(size=(2, 6)), max_entries=3)
    assert Counting.calls == 2 + 2 * 3 * 3  # once for the shape, once for backward, then twice an entry of three arrays
    assert not check_gradients(BadLinear("factor"), rng.normal(size=(2, 3)), max_entries=3).passed


def test_a_sample_of_a_table_has_rows_that_were_used(rng):
    """Of 900 rows two have a gradient; a random sample would miss them."""
    table, ids = rng.normal(size=(900, 4)), np.array([7, 7, 500])

    def backward(dy, ids, table):
        dtable = np.zeros_like(table)
        dtable[ids] = dy  # counts a repeated id once
        return dtable

    assert check_gradients(F.embedding, ids, table, max_entries=6).passed
    assert worst(check_gradients(F.embedding, ids, table, backward=backward, max_entries=6))[1][0] == 7


def test_the_tolerance_is_for_each_tensor(rng):
    """A mistake in a parameter with a small gradient does not hide behind one with a large gradient."""

    class TwoScales(Module):
        def __init__(self):
            self.large, self.small = Parameter(np.ones(2)), Parameter(np.ones(2))

        def forward(self, x):
            self.keep(x=x)
            return 1e3 * x * self.large.data + 0.1 * x * self.small.data

        def backward(self, dy):
            x = self.kept("x")
            self.large.grad += 1e3 * (dy * x).sum(axis=0)
            self.small.grad += 0.1001 * (dy * x).sum(axis=0)
            return dy * (1e3 * self.large.data + 0.1 * self.small.data)

    assert worst(check_gradients(TwoScales(), rng.normal(size=(3, 2)), tolerance=1e-5))[0] == "small"


def test_nothing_to_check():
    with pytest.raises(ValueError, match="Dropout has neither float inputs nor parameters"):
        check_gradients(Dropout(0.0), np.array([1, 2]))
    with pytest.raises(TypeError, match="the output of <lambda> must be an array of floats, got NoneType"):
        check_gradients(lambda x: None, np.ones(2), backward=lambda dout, x: dout)
    with pytest.raises(ValueError, match=r"input 0 is empty, its shape is \(0,\)"):
        check_gradients(np.tanh, np.ones(0), backward=lambda dout, x: dout)
    with pytest.raises(ValueError, match=r"is not a function of transformer_np\.functional: pass its backward="):
        check_gradients(np.sin, np.ones(3))
