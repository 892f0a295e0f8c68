"""Measurements for the table "Layer Type / Complexity per Layer / Sequential Operations / Maximum Path Length" (Vaswani
et al. 2017, table 1): time and memory for growing sequence length and number of features, the number of sequential
steps, the path of a signal from the first position to the last, and the gradient along that path.

The timings are of the core of each layer, forward and backward: the function of `functional` without the projections to
queries, keys, values and output. These cost O(n·d²) in both kinds of attention, and the table leaves them out.
"""

import time
import tracemalloc
from dataclasses import dataclass, field

import numpy as np

from .. import functional as F
from ..layers import RNN, CausalConv1d, MultiHeadAttention, WindowAttention
from ..support.checks import check_at_least
from ..support.progress import progress
from .floor import noting_products

__all__ = [  # of the documented path `transformer_np.complexity`
    "KINDS", "TOLERANCE", "Curve", "Kind", "counts", "factor_per_step", "fit_exponent", "gradient_by_distance",
    "gradients", "measure", "measure_memory", "measure_time", "path_length", "sequential_operations", "table",
]  # fmt: skip

TOLERANCE = 0.25  # of an exponent
BATCH = 16  # parallel sequences in the recurrent layer, whose products would be too small to time
MEMORY_SIZES = (256, 512, 1024, 2048)  # n, at d = 16, k = 3 and r = 16
QUICK = 3  # the smallest sizes of each variable
LENGTHS = (16, 64, 256)


@dataclass(frozen=True)
class Kind:
    """A row of the table, with the settings of its measurement.

    exponents: {"n": 2, "d": 1} for O(n²·d); "k" is the kernel of the convolution, "r" the window
    sizes: {variable: its sizes while the others stay as in `fixed`}, large enough for the table's term to dominate
    """

    name: str
    complexity: str
    sequential: str
    path: str
    exponents: dict
    memory: int
    sizes: dict
    fixed: dict
    core: object = field(repr=False)


@dataclass(frozen=True)
class Curve:
    """The measurements of one kind while one variable grew. values: seconds or bytes, one per size"""

    name: str
    quantity: str
    variable: str
    sizes: tuple
    values: tuple
    expected: float

    @property
    def exponent(self):
        return fit_exponent(self.sizes, self.values)

    @property
    def agrees(self):
        """Whether the exponent is within TOLERANCE of the table's."""
        return abs(self.exponent - self.expected) <= TOLERANCE


def fit_exponent(sizes, values):
    """The p of values ≈ c · sizes^p: the least-squares slope of log(values) over log(sizes).

    sizes, values: equally many positive numbers, with at least two different sizes; ValueError otherwise
    """
    sizes, values = np.asarray(sizes, float), np.asarray(values, float)
    if sizes.ndim != 1 or sizes.shape != values.shape:
        raise ValueError(f"sizes and values must have one shape (n,), got {sizes.shape} and {values.shape}")
    if not (np.isfinite(sizes) & np.isfinite(values) & (sizes > 0) & (values > 0)).all():
        raise ValueError("sizes and values must be positive numbers")
    if len(np.unique(sizes)) < 2:
        raise ValueError(f"sizes must have at least two different values, got {sizes.tolist()}")
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


# --- the four layers --------------------------------------------------------------------------------------------------


def _attention(normal, n, d):
    *qkv, dout = (normal(1, n, d) for _ in range(4))
    return (
        lambda: F.scaled_dot_product_attention(*qkv),
        lambda out: F.scaled_dot_product_attention_backward(dout, *qkv, out[1]),
    )


def _recurrent(normal, n, d):
    x, dh = normal(BATCH, n, d), normal(BATCH, n, d)
    w_x, w_h = (normal(d, d) * d**-0.5 for _ in range(2))
    return lambda: F.rnn(x, w_x, w_h), lambda h: F.rnn_backward(dh, x, h, w_x, w_h)


def _convolution(normal, n, d, k):
    x, dy, w = normal(1, n, d), normal(1, n, d), normal(k, d, d) * d**-0.5
    return lambda: F.causal_conv1d(x, w), lambda y: F.causal_conv1d_backward(dy, x, w)


def _restricted(normal, n, d, r):
    *qkv, dout = (normal(1, n, d) for _ in range(4))
    return lambda: F.window_attention(*qkv, r), lambda out: F.window_attention_backward(dout, *qkv, out[1], r)


KINDS = (
    Kind(
        "self-attention", "O(n²·d)", "O(1)", "O(1)",
        exponents={"n": 2, "d": 1}, memory=2,
        sizes={"n": (512, 768, 1024, 1536, 2048, 3072), "d": (128, 256, 512, 1024)},
        fixed={"n": 512, "d": 256}, core=_attention,
    ),
    Kind(
        "recurrent", "O(n·d²)", "O(n)", "O(n)",
        exponents={"n": 1, "d": 2}, memory=1,
        sizes={"n": (128, 256, 512, 1024), "d": (128, 256, 512, 1024)},
        fixed={"n": 64, "d": 256}, core=_recurrent,
    ),
    Kind(
        "convolutional", "O(k·n·d²)", "O(1)", "O(log_k(n))",
        exponents={"n": 1, "d": 2, "k": 1}, memory=1,
        sizes={"n": (512, 1024, 2048, 4096), "d": (128, 256, 512, 1024), "k": (2, 4, 8, 16)},
        fixed={"n": 512, "d": 128, "k": 3}, core=_convolution,
    ),
    Kind(
        "restricted self-attention", "O(r·n·d)", "O(1)", "O(n/r)",
        exponents={"n": 1, "d": 1, "r": 1}, memory=1,
        sizes={"n": (512, 1024, 2048, 4096), "d": (128, 256, 512, 1024), "r": (64, 128, 256, 512)},
        fixed={"n": 2048, "d": 64, "r": 64}, core=_restricted,
    ),
)  # fmt: skip


def _core(kind, variables, dtype=np.float32, kind_of_array=np.ndarray):
    """forward() and backward(result of forward) of a kind, on random arrays."""
    rng = np.random.default_rng(0)
    return kind.core(lambda *shape: rng.standard_normal(shape).astype(dtype).view(kind_of_array), **variables)


# --- time and memory --------------------------------------------------------------------------------------------------


def measure_time(kind, variable, sizes=None, rounds=4, least=0.03):
    """Processor time of one forward and backward for each size of the variable.

    Processor time, unlike wall time, hardly depends on other programs. Runs all sizes in turn, `rounds` times, each
    time for at least `least` seconds; the smallest time of a size has the least disturbance.

    ->  Curve, in seconds
    """
    if variable not in kind.exponents:
        raise ValueError(f"variable must be one of {', '.join(kind.exponents)} for {kind.name}, got {variable!r}")
    sizes = tuple(kind.sizes[variable] if sizes is None else sizes)
    cores = [_core(kind, {**kind.fixed, variable: size}) for size in sizes]
    seconds = np.full(len(sizes), np.inf)
    for _ in range(rounds):
        for i, (forward, backward) in enumerate(cores):
            seconds[i] = min(seconds[i], _processor_time(forward, backward, least))
    return Curve(kind.name, "time", variable, sizes, tuple(seconds.tolist()), kind.exponents[variable])


def _processor_time(forward, backward, least):
    backward(forward())  # the first run allocates memory
    runs, start = 0, time.process_time()
    while True:
        backward(forward())
        runs += 1
        elapsed = time.process_time() - start
        if elapsed >= least:
            return elapsed / runs


def measure_memory(kind, sizes=MEMORY_SIZES):
    """The peak memory of one forward and backward, without their inputs, for each size of n.

    It counts every array, so the result does not depend on the machine.

    ->  Curve, in bytes

    Raises ValueError for a size below 1.
    """
    small = {"d": 16, "k": 3, "r": 16}
    peaks = []
    for n in sizes:
        forward, backward = _core(kind, {"n": n, **{v: small[v] for v in kind.exponents if v != "n"}})
        backward(forward())
        tracemalloc.start()
        try:
            backward(forward())
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return Curve(kind.name, "memory", "n", tuple(sizes), tuple(peaks), kind.memory)


def measure(quick=False):
    """All curves: the time of every kind over each of its variables, then the memory.

    quick: fewer sizes, two rounds; the exponents are rough
    """
    curves, pairs = [], [(kind, variable) for kind in KINDS for variable in kind.sizes]
    for kind, variable in progress(pairs, "measuring", least=1):
        how = {"sizes": kind.sizes[variable][:QUICK], "rounds": 2, "least": 0.005} if quick else {}
        curves.append(measure_time(kind, variable, **how))
    return curves + [measure_memory(kind, MEMORY_SIZES[:QUICK] if quick else MEMORY_SIZES) for kind in KINDS]


# --- steps and paths, counted -----------------------------------------------------------------------------------------


def sequential_operations(kind, n, k=3, r=4):
    """The number of sequential matrix products in one forward over n positions, counted while it runs. Raises
    ValueError for a size below 1."""
    given = {"n": n, "d": 4, "k": k, "r": r}
    products = []
    noting = noting_products(lambda *product: products.append(product))
    forward, _ = _core(kind, {v: given[v] for v in kind.exponents}, np.float64, noting)
    forward()
    return len(products)


def path_length(kind, n, k=3, r=4):
    """The number of steps on the path from the first of n positions to the last, found with the hand-written backwards.

    A step is a layer: layers are stacked until the gradient of the last output position reaches the first input
    position. The convolutions have dilations 1, k, k² …, which the table's O(log_k(n)) assumes; without dilation it
    would be O(n/k). One recurrent layer is enough, but the path takes one step per position: doubling W_h makes the
    gradient 2^m times as large, where m is the number of factors W_h on the path.
    """
    check_at_least("n", n, 2)
    rng = np.random.default_rng(0)
    x, gradient = rng.standard_normal((1, n, 4)), np.zeros((1, n, 4))
    gradient[:, -1] = rng.standard_normal(4)
    if kind.name == "recurrent":
        layer = RNN(4, 4, rng=rng, dtype=np.float64)
        w_h = np.linalg.qr(rng.standard_normal((4, 4)))[0]  # orthogonal: it keeps the norm
        norms = []
        for factor in (1, 2):
            layer.w_h.data = factor * w_h
            layer(np.zeros_like(x))  # h = 0, where tanh has slope 1
            norms.append(np.linalg.norm(layer.backward(gradient)[:, 0]))
        return 1 + round(np.log2(norms[1] / norms[0]))  # W_x is the first step

    layers = 0
    while not gradient[:, 0].any():
        if kind.name == "self-attention":
            layer = MultiHeadAttention(4, 2, rng=rng, dtype=np.float64)
        elif kind.name == "convolutional":
            layer = CausalConv1d(4, 4, k, dilation=k**layers, rng=rng, dtype=np.float64)
        else:
            layer = WindowAttention(4, 2, r, causal=True, rng=rng, dtype=np.float64)
        layer(x)
        gradient = layer.backward(gradient)
        gradient = gradient[0] if isinstance(gradient, tuple) else gradient
        gradient /= np.abs(gradient).max()  # no underflow in a deep stack
        layers += 1
    return layers


# --- gradient and distance --------------------------------------------------------------------------------------------


def gradient_by_distance(make_layer, length=101, d=32, seeds=5):
    """‖∂y_T/∂x_{T−k}‖ for k = 0 … length − 1: the influence on the last output of an input k positions before it.

    make_layer(d, rng) -> an untrained layer (B, T, D) -> (B, T, D); the inputs are normal random numbers

    One backward gives the Jacobian: it has d copies of the sequence, and in copy i the gradient is 1 at feature i of
    the last output. The result is its Frobenius norm, as the geometric mean over the seeds.

    ->  norms (length,)

    Raises ValueError for a length below 2, and for d or seeds below 1.
    """
    for name, value, least in (("length", length, 2), ("d", d, 1), ("seeds", seeds, 1)):
        check_at_least(name, value, least)
    logarithms = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        layer = make_layer(d, rng).astype(np.float64)
        x = np.broadcast_to(rng.standard_normal((1, length, d)), (d, length, d)).copy()
        dout = np.zeros_like(x)
        dout[:, -1] = np.eye(d)
        layer(x)
        dx = layer.backward(dout)
        dx = dx[0] if isinstance(dx, tuple) else dx  # (d, length, d)
        logarithms.append(np.log(np.linalg.norm(dx, axis=(0, 2))))
    return np.exp(np.mean(logarithms, axis=0))[::-1]


def gradients():
    """{layer: norms by distance} of the recurrent layer and of self-attention with four heads."""
    return {
        "recurrent": gradient_by_distance(lambda d, rng: RNN(d, d, rng=rng)),
        "self-attention": gradient_by_distance(lambda d, rng: MultiHeadAttention(d, 4, rng=rng)),
    }


def factor_per_step(norms):
    """The f of norms ≈ c · f^distance, by least squares on the logarithm, without distance 0, a position's influence on
    itself. Raises ValueError for fewer than three distances or norms that are not positive."""
    norms = np.asarray(norms, float)
    if norms.ndim != 1 or len(norms) < 3 or not (norms > 0).all():
        raise ValueError("norms must be at least three positive numbers, one per distance")
    return float(np.exp(np.polyfit(np.arange(1, len(norms)), np.log(norms[1:]), 1)[0]))


# --- as text ----------------------------------------------------------------------------------------------------------


def table(curves):
    """The exponents beside those of the lecture's table, as text."""
    found = {(curve.name, curve.quantity, curve.variable): curve for curve in curves}
    lines = [f"{'':<27}{'':<11}{'time':^36}{'memory':^12}".rstrip()]
    lines.append((f"{'layer':<27}{'complexity':<11}" + "".join(f"{v:^12}" for v in ("n", "d", "k or r", "n"))).rstrip())
    for kind in KINDS:
        extra = "k" if "k" in kind.exponents else "r"
        cells = [found.get((kind.name, "time", v)) for v in ("n", "d", extra)] + [found.get((kind.name, "memory", "n"))]
        lines.append(f"{kind.name:<27}{kind.complexity:<11}" + "".join(map(_cell, cells)).rstrip())
    lines.append("Exponents: measured, and in brackets the table's. 2 means: twice the length, four times the time.")
    wrong = [curve for curve in curves if not curve.agrees]
    if wrong:
        which = ", ".join(f"{c.name} ({c.quantity}, {c.variable})" for c in wrong)
        lines.append(f"Further than {TOLERANCE} from the table: {which}.")
    else:
        lines.append(f"All {len(curves)} exponents are within {TOLERANCE} of the table's.")
    return "\n".join(lines)


def _cell(curve):
    return f"{'–':^12}" if curve is None else f"{f'{curve.exponent:.2f} ({curve.expected:g})':^12}"


def counted(lengths=LENGTHS, k=4, r=4):
    """{layer: (its sequential operations, its path lengths), one number per length each}"""
    return {
        kind.name: tuple([count(kind, n, k, r) for n in lengths] for count in (sequential_operations, path_length))
        for kind in KINDS
    }


def counts(lengths=LENGTHS, k=4, r=4):
    """Sequential operations and maximum path length, counted on the layers and from the table, as text. Raises
    ValueError for a size below 1."""
    heads = "".join(f"{n:>5}" for n in lengths)
    width = len(heads) + 15
    lines = [f"{'':<27}{'sequential operations':<{width}}maximum path length"]
    lines.append(f"{'n =':<27}{heads + '  table':<{width}}{heads}  table")
    for kind, numbers in zip(KINDS, counted(lengths, k, r).values(), strict=True):
        operations, paths = ("".join(f"{number:>5}" for number in some) for some in numbers)
        lines.append(f"{kind.name:<27}{operations + '  ' + kind.sequential:<{width}}{paths}  {kind.path}")
    lines.append("Operations: matrix products of one forward that wait for one another. Path: layers (in the recurrent")
    sizes = f"kernel k = {k} with dilations 1, k, k² …, window r = {r}"
    return "\n".join([*lines, f"layer: steps) from the first position to the last; {sizes}."])
