"""Relative positions: the bias of distances, and the attention of Transformer-XL, with their backward."""

from dataclasses import replace

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes, extended
from .attention import masked
from .draws import Calls, far_apart, only, sizes_without_squares
from .sheet import Sheet
from .softmax import softmax, softmax_backward

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


def bias_cases(rng):
    calls = Calls(rng, F.relative_position_bias, draw_sizes(rng, "T S R H", least=3))
    T, S, R, _ = calls.sizes.values()

    def case(label, unused=0, **changed):
        new = calls.sizes | changed
        buckets = rng.integers(new["R"] - unused, size=(new["T"], new["S"]))
        buckets[0, :2] = buckets[1, 0] = 0  # a bucket that occurs again, in a row and in a column
        buckets[-1, -1] = new["R"] - 1 - unused
        return calls(label, changed, buckets=buckets)

    distances = F.relative_position_buckets(T, T + S, 16, 20)
    of_one = F.relative_position_buckets(1, S, R + R % 2, 20, bidirectional=False) % R
    return [
        case(""),
        case("buckets that never occur", unused=1),
        case("as many keys as queries", S=T),
        case("as many heads as buckets", H=R),
        case("as many heads as queries", H=T),
        case("as many heads as queries and keys", S=T, H=T),
        calls("the buckets of distances", {"S": T + S, "R": 16}, buckets=distances),
        calls("one query", {"T": 1}, buckets=of_one),
    ]


def relative_position_bias(table, buckets):
    by_pair = table[buckets]
    bias = np.moveaxis(by_pair, -1, 0)
    return bias


def relative_position_bias_backward(dbias, buckets, num_buckets):
    H, T, S = dbias.shape
    by_pair = np.moveaxis(dbias, 0, -1)
    flat, rows = buckets.reshape(-1), by_pair.reshape(T * S, H)
    dtable = np.zeros((num_buckets, H))
    np.add.at(dtable, flat, rows)
    return dtable


def _present(T, S):
    """Where the key is not in the query's future, (T, S)."""
    return np.tri(T, S, S - T, dtype=bool)


# --- attention with relative positions --------------------------------------------------------------------------------


def shift_cases(rng):
    sizes = draw_sizes(rng, "B H T", least=3)
    T, S = sizes["T"], sizes["T"] + int(rng.integers(2, 5))
    case = Calls(rng, F.relative_shift, sizes | {"S": S}, leading="B H")
    return [
        case(""),
        case("as many keys as queries", {"S": T}),
        case("one query (T = 1)", {"T": 1}),
        case("x of shape (B, T, S)", without="H"),
        case("x of shape (T, S)", without="B H"),
    ]


def without_future(case, output):
    """y where the key is not in the query's future, 0 elsewhere: the leftovers there mean nothing."""
    (x,) = case.arguments
    if not isinstance(output, np.ndarray) or output.shape != x.shape or output.dtype.kind not in "biuf":
        return (output,)
    return (np.where(_present(*x.shape[-2:]), output, 0),)


def relative_shift(x):
    T, S = x.shape[-2:]
    y = np.zeros_like(x)
    for t in range(T):
        for s in range(S):
            column = s + T - 1 - t
            if 0 <= column < S:
                y[..., t, s] = x[..., t, column]
            elif s > S - T + t + 1:  # in the future, behind a zero: a number of the next row, as without loops
                y[..., t, s] = x[..., t + 1, s - S + T - t - 2]
    return y


def shift_backward_cases(rng):
    for forward in shift_cases(rng):
        (x,) = forward.arguments
        dy = np.where(_present(*x.shape[-2:]), x, 0)  # hidden keys have the gradient 0
        yield replace(forward, label=forward.label.replace("x of", "dy of"), arguments=(dy,))


def relative_shift_backward(dy):
    T, S = dy.shape[-2:]
    dx = np.zeros_like(dy)
    for t in range(T):
        for s in range(S):
            column = s + T - 1 - t
            if 0 <= column < S:
                dx[..., t, column] = dy[..., t, s]
            if s > S - T + t + 1:  # behind the zero: a number of the next row
                dx[..., t + 1, s - S + T - t - 2] = dy[..., t, s]
    return dx


def relative_cases(rng):
    while True:  # S is no other size, and the mask needs a few queries
        sizes = sizes_without_squares(rng, "B H T K K_v")
        sizes["S"] = sizes["T"] + 2 + int(rng.integers(2))
        if sizes["T"] > 2 and len(set(sizes.values())) == 6:
            break
    case = Calls(rng, F.relative_attention, only(sizes, "B H T S K K_v"))
    B, H, T, S = (sizes[letter] for letter in "BHTS")
    hidden = rng.random((B, H, T, S)) < 0.3
    hidden[..., 0] = False  # something to see in every row
    empty = hidden.copy()
    empty[0, :, 1] = empty[-1, 0, -1] = True
    padding = np.zeros((B, 1, 1, S), bool)
    padding[0, ..., 1:3] = padding[1, ..., :2] = True
    plain = case("")
    q, k, *_ = plain.arguments
    return [
        plain,
        case("as many keys as queries", {"S": T}),
        case("one query (T = 1)", {"T": 1}),
        case("a Boolean mask", mask=hidden),
        case("a float mask to be added", mask=rng.normal(size=(T, S))),
        case("keys hidden from everyone", mask=padding),
        extended(case("rows that are hidden whole", mask=empty)),
        case("scores of ±10,000", **far_apart(rng, q, k)),
        case("as many queries as heads", {"H": T}),
        case("K_v = K", {"K_v": sizes["K"]}),
        replace(case("fewer keys than queries", {"S": T - 1}), extended=True, raises="ValueError"),
    ]


def relative_attention(q, k, v, r, content_bias, position_bias, mask=None):
    if k.shape[-2] < q.shape[-2]:
        raise ValueError("there are fewer keys than queries")
    scale = 1 / np.sqrt(q.shape[-1])
    content = (q + content_bias[:, None]) @ np.swapaxes(k, -1, -2)
    distances = (q + position_bias[:, None]) @ np.swapaxes(r, -1, -2)
    scores = (content + relative_shift(distances)) * scale
    scores = masked(scores, mask)
    T, S = scores.shape[-2:]
    present = np.tri(T, S, S - T, dtype=bool)
    scores = np.where(present, scores, -np.inf)
    weights = softmax(scores)
    out = weights @ v
    return out, weights


def relative_attention_backward(dout, q, k, v, r, content_bias, position_bias, weights):
    scale = 1 / np.sqrt(q.shape[-1])
    dweights = dout @ np.swapaxes(v, -1, -2)
    dscores = softmax_backward(dweights, weights) * scale
    ddistances = relative_shift_backward(dscores)
    dq_content, dq_position = dscores @ k, ddistances @ r
    dq = dq_content + dq_position
    dk = np.swapaxes(dscores, -1, -2) @ (q + content_bias[:, None])
    dr = (np.swapaxes(ddistances, -1, -2) @ (q + position_bias[:, None])).sum(axis=0)
    dv = np.swapaxes(weights, -1, -2) @ dout
    dcontent_bias = dq_content.sum(axis=(0, 2))
    dposition_bias = dq_position.sum(axis=(0, 2))
    return dq, dk, dv, dr, dcontent_bias, dposition_bias


EXERCISES = [
    SHEET.exercise(F.relative_position_buckets, relative_position_buckets, buckets_cases),
    *SHEET.both(
        F.relative_position_bias, relative_position_bias, relative_position_bias_backward, bias_cases,
        {"dtable": "R H"}, letters={"num_buckets": "R"},
    ),
    SHEET.exercise(F.relative_shift, relative_shift, shift_cases, view=without_future),
    SHEET.exercise(F.relative_shift_backward, relative_shift_backward, shift_backward_cases),
    *SHEET.both(
        F.relative_attention, relative_attention, relative_attention_backward, relative_cases,
        without=["10,000"],  # all weights 0 or 1: no gradient
    ),
]  # fmt: skip
