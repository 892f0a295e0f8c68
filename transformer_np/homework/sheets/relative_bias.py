"""The bias of distances: its buckets, the bias, its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes
from .sheet import Sheet

SHEET = Sheet(__file__)


def no_boundary(N, max_distance, T):
    """Whether no distance below T is just where a bucket begins: there rounding decides, in float32 and float64."""
    half = N // 2
    n = np.arange(half + 1, min(T, max_distance))
    growth = np.log(n / half) / np.log(max_distance / half) * (N - half)
    return bool((np.abs(growth - np.round(growth)) > 1e-4).all())


def buckets_cases(rng):
    T, S = (int(n) for n in (rng.integers(4, 8), rng.integers(12, 15)))  # below 16, where 32 buckets have a boundary
    while True:
        N, max_distance = 2 * int(rng.integers(3, 7)), int(rng.integers(16, 25))
        far = int(max_distance * (max_distance / (N // 2)) ** (2 / N)) + 4  # reaches a bucket behind N, were there one
        if no_boundary(N, max_distance, far) and no_boundary(2 * N, max_distance, far):
            break
    both, one = {"num_buckets": 2 * N, "max_distance": max_distance}, {"bidirectional": False}
    return [
        Case("", (far,), both, {"T": far, "S": far}),
        Case("S > T", (T, far), both, {"T": T, "S": far}),
        Case("default options", (S,), sizes={"T": S, "S": S}),
        Case("default options (S > T)", (T, S), sizes={"T": T, "S": S}),
        Case("num_buckets=16 with max_distance=128", (S,), {"num_buckets": 16}, {"T": S, "S": S}),
        Case("bidirectional=False (half the buckets)", (S,), both | one | {"num_buckets": N}, {"T": S, "S": S}),
        Case("bidirectional=False (S > T)", (T, far), both | one, {"T": T, "S": far}),
        Case("one query (the last)", (1, far), both | {"bidirectional": True}, {"T": 1, "S": far}),
    ]


def relative_position_buckets(T, S=None, num_buckets=32, max_distance=128, bidirectional=True):
    S = T if S is None else S
    t = np.arange(T)[:, None] + S - T
    s = np.arange(S)
    distance = t - s
    N = num_buckets // 2 if bidirectional else num_buckets
    half = N // 2
    n = np.abs(distance) if bidirectional else np.maximum(distance, 0)
    above = np.log(np.maximum(n, 1) / half)
    below = np.log(max_distance / half)
    growth = above / below * (N - half)
    far = half + np.floor(growth).astype(int)
    buckets = np.where(n < half, n, np.minimum(far, N - 1))
    if bidirectional:
        buckets = buckets + N * (distance < 0)
    return buckets


def bias_sizes(rng):
    """What is special about each case of both, its sizes and its buckets."""
    sizes = draw_sizes(rng, "T S R H", least=3)
    T, S, R, _ = sizes.values()

    def case(label, unused=0, **changed):
        new = sizes | changed
        buckets = rng.integers(new["R"] - unused, size=(new["T"], new["S"]))
        buckets[0, :2] = buckets[1, 0] = 0  # a bucket that occurs again, in a row and in a column
        buckets[-1, -1] = new["R"] - 1 - unused
        return label, new, buckets

    yield case("")
    yield case("buckets that never occur", unused=1)
    yield case("as many keys as queries", S=T)
    yield case("as many heads as buckets", H=R)
    yield case("as many heads as queries", H=T)
    yield case("as many heads as queries and keys", S=T, H=T)
    distances = F.relative_position_buckets(T, T + S, 16, 20)
    yield "the buckets of distances", sizes | {"S": T + S, "R": 16}, distances
    yield "one query", sizes | {"T": 1}, F.relative_position_buckets(1, S, R + R % 2, 20, bidirectional=False) % R


def bias_cases(rng):
    return [
        Case(label, (rng.normal(size=(sizes["R"], sizes["H"])), buckets), sizes=sizes)
        for label, sizes, buckets in bias_sizes(rng)
    ]


def relative_position_bias(table, buckets):
    by_pair = table[buckets]
    bias = np.moveaxis(by_pair, -1, 0)
    return bias


def bias_backward_cases(rng):
    for label, sizes, buckets in bias_sizes(rng):
        dbias = rng.normal(size=(sizes["H"], *buckets.shape))
        yield Case(label, (dbias, buckets, sizes["R"]), sizes=sizes)


def relative_position_bias_backward(dbias, buckets, num_buckets):
    H, T, S = dbias.shape
    by_pair = np.moveaxis(dbias, 0, -1)
    flat, rows = buckets.reshape(-1), by_pair.reshape(T * S, H)
    dtable = np.zeros((num_buckets, H))
    np.add.at(dtable, flat, rows)
    return dtable


EXERCISES = [
    SHEET.exercise(F.relative_position_buckets, relative_position_buckets, buckets_cases),
    SHEET.exercise(F.relative_position_bias, relative_position_bias, bias_cases),
    SHEET.exercise(
        F.relative_position_bias_backward, relative_position_bias_backward, bias_backward_cases, {"dtable": "R H"},
    ),
]  # fmt: skip
