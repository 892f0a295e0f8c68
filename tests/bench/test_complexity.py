"""The measurement: it finds what is there, whatever the machine. No test asserts a time."""

import math
import re

import numpy as np
import pytest

from transformer_np import cli, plots
from transformer_np.bench import complexity
from transformer_np.bench.complexity import KINDS, Curve, fit_exponent
from transformer_np.layers import CausalConv1d

ATTENTION, RECURRENT, CONVOLUTION, RESTRICTED = KINDS
SIZES = (16, 64, 256, 512)


def made_up_curves(bend=0.0):
    """Timings that follow the table exactly, but for `bend` in the exponent of attention in n."""
    curves = []
    for kind in KINDS:
        for variable, power in kind.exponents.items():
            p = power + (bend if (kind, variable) == (ATTENTION, "n") else 0)
            curves.append(Curve(kind.name, "time", variable, SIZES, tuple(3e-6 * s**p for s in SIZES), power))
        values = tuple(40 * s**kind.memory for s in SIZES)
        curves.append(Curve(kind.name, "memory", "n", SIZES, values, kind.memory))
    return curves


# --- fits -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0.5, 1, 1.25, 2, 3])
def test_fit_finds_the_exponent(power):
    sizes = np.array([10, 30, 70, 200, 900])
    assert fit_exponent(sizes, 7e-5 * sizes**power) == pytest.approx(power, rel=1e-12)
    noise = np.exp(np.random.default_rng(0).normal(scale=0.05, size=5))
    assert fit_exponent(sizes, noise * sizes**power) == pytest.approx(power, abs=0.1)


@pytest.mark.parametrize(
    ("sizes", "values", "message"),
    [
        ([1, 2], [1.0], "one shape"),
        ([2, 2], [1.0, 3.0], "at least two different values"),
        ([4], [1.0], "at least two different values"),
        ([1, 2], [1.0, 0.0], "positive"),
        ([1, 2], [1.0, np.nan], "positive"),
        ([-1, 2], [1.0, 2.0], "positive"),
    ],
)
def test_fits_that_cannot_be(sizes, values, message):
    with pytest.raises(ValueError, match=message):
        fit_exponent(sizes, values)


def test_factor_per_step():
    norms = np.array([99.0, *(5 * 0.7 ** np.arange(1, 30))])  # distance 0 does not count
    assert complexity.factor_per_step(norms) == pytest.approx(0.7)
    for bad in ([1.0, 2.0], [1.0, 0.0, 1.0], np.ones((3, 3))):
        with pytest.raises(ValueError, match="three positive numbers"):
            complexity.factor_per_step(bad)


# --- what is measured -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_measured_with_a_clock_of_our_own(kind, monkeypatch):
    """A clock that moves by the multiplications of the table while a core runs: the exponents must come out."""
    now = [0.0]

    def make(normal, **sizes):
        def forward():
            now[0] += 1e-3 * math.prod(sizes[v] ** p for v, p in kind.exponents.items())

        return forward, lambda out: None

    fake = complexity.Kind(**{**vars(kind), "core": make})
    monkeypatch.setattr(complexity.time, "process_time", lambda: now[0])
    for variable, power in kind.exponents.items():
        curve = complexity.measure_time(fake, variable, rounds=2)
        assert (curve.name, curve.quantity, curve.variable) == (kind.name, "time", variable)
        assert curve.sizes == kind.sizes[variable]
        assert curve.exponent == pytest.approx(power, abs=1e-6)
        assert curve.expected == power
    with pytest.raises(ValueError, match=r"variable must be one of n, d.* for .*, got 'z'"):
        complexity.measure_time(kind, "z")


def test_the_smallest_time_counts(monkeypatch):
    """A round that was disturbed does not show."""
    cost, now = iter([7.0, 7.0, 1.0, 1.0, 7.0, 7.0]), [0.0]

    def forward():
        now[0] += next(cost)

    monkeypatch.setattr(complexity.time, "process_time", lambda: now[0])
    fake = complexity.Kind(**{**vars(RECURRENT), "core": lambda normal, **sizes: (forward, lambda out: None)})
    assert complexity.measure_time(fake, "n", sizes=(4,), rounds=3).values == (1.0,)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_cores_are_float32_and_run(kind):
    forward, backward = complexity._core(kind, {v: {"n": 9, "d": 4, "k": 3, "r": 2}[v] for v in kind.exponents})
    out = forward()
    out, weights = out if isinstance(out, tuple) else (out, None)
    gradients = backward((out, weights) if weights is not None else out)
    assert {a.dtype for a in (out, *gradients)} == {np.dtype(np.float32)}
    assert gradients[0].shape[-2:] == (9, 4)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_memory_grows_as_the_table_implies(kind):
    """The arrays are counted, so this holds on every machine."""
    curve = complexity.measure_memory(kind, (256, 512, 1024))
    assert (curve.quantity, curve.variable, curve.expected) == ("memory", "n", 2 if kind is ATTENTION else 1)
    assert curve.agrees


# --- counted, and gradient and distance -------------------------------------------------------------------------------


def test_path_length():
    for n in (2, 9, 10, 27, 28, 60):
        assert complexity.path_length(ATTENTION, n) == 1
        assert complexity.path_length(RECURRENT, n) == n
        assert complexity.path_length(CONVOLUTION, n, k=3) == next(i for i in range(9) if 3**i >= n)
        assert complexity.path_length(RESTRICTED, n, r=4) == math.ceil((n - 1) / 4)
    with pytest.raises(ValueError, match="n must be at least 2"):
        complexity.path_length(ATTENTION, 1)


def test_gradient_by_distance_is_the_jacobian():
    """Of a convolution, whose Jacobian at a distance is one of its matrices; the geometric mean of two layers."""
    norms = complexity.gradient_by_distance(lambda d, rng: CausalConv1d(d, d, 4, rng=rng), length=4, d=3, seeds=2)
    matrices = [CausalConv1d(3, 3, 4, rng=seed).w.data.astype(float) for seed in range(2)]
    np.testing.assert_allclose(norms**2, np.prod([np.linalg.norm(w, axis=(1, 2)) for w in matrices], axis=0), rtol=1e-6)


def test_the_gradient_vanishes_in_the_recurrent_layer_only():
    found = complexity.gradients()
    recurrent, attention = found["recurrent"], found["self-attention"]
    assert len(recurrent) == len(attention) == 101
    assert complexity.factor_per_step(recurrent) < 0.8
    assert recurrent[100] < 1e-10 * recurrent[1]
    assert 0.98 < complexity.factor_per_step(attention) < 1.02
    assert attention[1:].max() < 10 * attention[1:].min()


# --- shown ------------------------------------------------------------------------------------------------------------


def test_table_text():
    text = complexity.table(made_up_curves())
    assert re.search(r"^self-attention +O\(n²·d\) +2\.00 \(2\) +1\.00 \(1\) +– +2\.00 \(2\)$", text, re.M)
    assert re.search(r"^recurrent +O\(n·d²\) +1\.00 \(1\) +2\.00 \(2\) +– +1\.00 \(1\)$", text, re.M)
    assert re.search(r"^convolutional +O\(k·n·d²\) +1\.00 \(1\) +2\.00 \(2\) +1\.00 \(1\) +1\.00 \(1\)$", text, re.M)
    assert re.search(r"^restricted self-attention +O\(r·n·d\)( +1\.00 \(1\)){3} +1\.00", text, re.M)
    assert "All 14 exponents are within 0.25 of the table's." in text
    text = complexity.table(made_up_curves(bend=0.4))
    assert "2.40 (2)" in text and "All 14" not in text
    assert "Further than 0.25 from the table: self-attention (time, n)." in text
    assert "All 14" in complexity.table(made_up_curves(bend=-0.24))


def test_counts_text():
    text = complexity.counts(lengths=(10, 20), k=3, r=5)
    assert re.search(r"^n = +10 +20 +table +10 +20 +table$", text, re.M)
    assert re.search(r"^self-attention +2 +2 +O\(1\) +1 +1 +O\(1\)$", text, re.M)
    assert re.search(r"^recurrent +10 +20 +O\(n\) +10 +20 +O\(n\)$", text, re.M)
    assert re.search(r"^convolutional +3 +3 +O\(1\) +3 +3 +O\(log_k\(n\)\)$", text, re.M)
    assert re.search(r"^restricted self-attention +2 +2 +O\(1\) +2 +4 +O\(n/r\)$", text, re.M)


def test_picture_of_the_curves():
    figure = plots.complexity_curves(made_up_curves())
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["time and length n", "time and features d", "memory and length n"]
    for axes in figure.axes:
        assert (axes.get_xscale(), axes.get_yscale(), len(axes.lines)) == ("log", "log", 4)
    n, d, memory = figure.axes
    np.testing.assert_allclose(n.lines[0].get_xdata(), SIZES)
    np.testing.assert_allclose(n.lines[0].get_ydata(), [3e-3 * s**2 for s in SIZES])  # milliseconds
    np.testing.assert_allclose(memory.lines[0].get_ydata(), [40 * s**2 / 2**20 for s in SIZES])
    assert [text.get_text() for text in n.texts] == ["$n^{2.00}$", *["$n^{1.00}$"] * 3]
    assert [text.get_text() for text in d.texts] == ["$d^{1.00}$", "$d^{2.00}$", "$d^{2.00}$", "$d^{1.00}$"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.texts] == [kind.name for kind in KINDS]


@pytest.mark.long
def test_slopes_do_not_overlap():
    """Nor where the lines meet."""
    meeting = [
        Curve(kind.name, "time", "n", (8, 64), (5e-3 * 8.0**-power, 5e-3 * 1.01**power), power)
        for power, kind in enumerate(KINDS, 1)
    ]
    figure = plots.complexity_curves(meeting)
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.texts]
        assert len(boxes) == 4
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_picture_of_the_gradient():
    norms = {"recurrent": 0.5 ** np.arange(9), "self-attention": np.full(9, 0.1)}
    (axes,) = plots.gradient_distance(norms).axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "log")
    for line, (name, values) in zip(axes.lines, norms.items(), strict=True):
        assert line.get_label() == name
        np.testing.assert_array_equal(line.get_ydata(), values)
        np.testing.assert_array_equal(line.get_xdata(), np.arange(9))


# --- command ----------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_command(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(complexity, "QUICK", 2)
    curves, gradients = tmp_path / "curves.png", tmp_path / "gradients.svg"
    assert cli.main(["complexity", "--quick", "-o", str(curves), "--gradients", str(gradients)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for kind in KINDS:
        assert len(re.findall(rf"^{re.escape(kind.name)} ", out, re.M)) == 2
    assert len(re.findall(r"\d\.\d\d \(\d\)", out)) == 14
    assert "times 0.6" in out
    assert out.endswith(f"{curves}\n{gradients}\n")
    assert curves.read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in gradients.read_bytes()


WRONG_NAMES = [("a.txt", "must end in .png"), ("no/such/a.png", "there is no folder")]


@pytest.mark.parametrize(
    ("options", "message"),
    [([option, name], message) for option in ("-o", "--gradients") for name, message in WRONG_NAMES]
    + [(["-o", "a.png", "--gradients", "a.png"], "-o and --gradients are both a.png")],
)
def test_a_wrong_picture_name_is_noticed_before_the_measurement(capsys, monkeypatch, options, message):
    monkeypatch.setattr(complexity, "measure", None)
    assert cli.main(["complexity", *options]) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err
