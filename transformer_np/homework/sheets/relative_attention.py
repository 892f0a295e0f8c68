"""Attention with relative positions: the shift, the attention, their backwards."""

import re

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes, extended
from ..notes import amended
from .attention import masked
from .draws import far_apart, of_forward, only, sizes_without_squares
from .sheet import Sheet
from .softmax import softmax, softmax_backward

SHEET = Sheet(__file__)


def _present(T, S):
    """Where the key is not in the query's future, (T, S)."""
    return np.tri(T, S, S - T, dtype=bool)


def shift_cases(rng):
    sizes = draw_sizes(rng, "B H T", least=3)
    B, H, T = sizes.values()
    S = T + int(rng.integers(2, 5))
    sizes |= {"S": S}
    return [
        Case("", (rng.normal(size=(B, H, T, S)),), sizes=sizes),
        Case("as many keys as queries", (rng.normal(size=(B, H, T, T)),), sizes=sizes | {"S": T}),
        Case("one query (T = 1)", (rng.normal(size=(B, H, 1, S)),), sizes=sizes | {"T": 1}),
        Case("x of shape (B, T, S)", (rng.normal(size=(B, T, S)),), sizes=only(sizes, "B T S")),
        Case("x of shape (T, S)", (rng.normal(size=(T, S)),), sizes=only(sizes, "T S")),
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
    return y


def shift_backward_cases(rng):
    for forward in shift_cases(rng):
        (x,) = forward.arguments
        dy = np.where(_present(*x.shape[-2:]), x, 0)  # hidden keys have the gradient 0
        yield Case(forward.label.replace("x of", "dy of"), (dy,), sizes=forward.sizes)


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


def _relative_inputs(rng, B, H, T, S, K, K_v):
    shapes = (B, H, T, K), (B, H, S, K), (B, H, S, K_v), (H, S, K), (H, K), (H, K)
    return tuple(rng.normal(size=shape) for shape in shapes)


def _relative_sizes(rng):
    sizes = sizes_without_squares(rng, "B H T K K_v")
    B, H, T, K, K_v = sizes.values()
    return {"B": B, "H": H, "T": T, "S": T + 2 + int(rng.integers(2)), "K": K, "K_v": K_v}


def relative_cases(rng):
    while True:  # S is no other size, and the mask needs a few queries
        sizes = _relative_sizes(rng)
        if sizes["T"] > 2 and len(set(sizes.values())) == 6:
            break
    B, H, T, S = (sizes[letter] for letter in "BHTS")
    plain = _relative_inputs(rng, *sizes.values())
    hidden = rng.random((B, H, T, S)) < 0.3
    hidden[..., 0] = False  # something to see in every row
    empty = hidden.copy()
    empty[0, :, 1] = empty[-1, 0, -1] = True
    padding = np.zeros((B, 1, 1, S), bool)
    padding[0, ..., 1:3] = padding[1, ..., :2] = True
    bias = rng.normal(size=(T, S))
    q, k, *others = plain
    large = *far_apart(rng, q, k), *others

    def of(**other):
        changed = sizes | other
        return _relative_inputs(rng, *changed.values()), changed

    square, square_sizes = of(S=T)
    single, single_sizes = of(T=1)
    heads, heads_sizes = of(H=T)
    same, same_sizes = of(K_v=sizes["K"])
    fewer, fewer_sizes = of(S=T - 1)
    return [
        Case("", plain, sizes=sizes),
        Case("as many keys as queries", square, sizes=square_sizes),
        Case("one query (T = 1)", single, sizes=single_sizes),
        Case("a Boolean mask", plain, {"mask": hidden}, sizes),
        Case("a float mask to be added", plain, {"mask": bias}, sizes),
        Case("keys hidden from everyone", plain, {"mask": padding}, sizes),
        extended(Case("rows that are hidden whole", plain, {"mask": empty}, sizes)),
        Case("scores of ±10,000", large, sizes=sizes),
        Case("as many queries as heads", heads, sizes=heads_sizes),
        Case("K_v = K", same, sizes=same_sizes),
        Case("fewer keys than queries", fewer, sizes=fewer_sizes, extended=True, raises="ValueError"),
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


_IN_THE_SHIFT = re.sub(
    r"^(- .+\n  )",
    r"\1In the shift of the position term: ",
    amended(SHEET["shift mistakes"], without=["distances in reverse order"]),  # that is R in reverse order
    flags=re.MULTILINE,
)


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
    SHEET.exercise(F.relative_shift, relative_shift, shift_cases, view=without_future),
    SHEET.exercise(F.relative_shift_backward, relative_shift_backward, shift_backward_cases),
    SHEET.exercise(
        F.relative_attention, relative_attention, relative_cases,
        mistakes=SHEET["relative_attention"] + _IN_THE_SHIFT
        + SHEET["relative_attention 3"]
        + amended(
            SHEET["tiled_attention: mask mistakes"],
            without=(
                "a tuple of masks does not work", "a tuple of masks used like one array", "masks of a tuple added up",
                "only the first of several masks", "only the last of several masks",
                "Boolean masks of a tuple joined with and", "only −inf of a float mask",
            ),
        )
        + SHEET["relative_attention 4"],
    ),
    SHEET.exercise(
        F.relative_attention_backward, relative_attention_backward,
        of_forward(F.relative_attention, relative_cases, ["10,000"]),  # all weights 0 or 1 there: no gradient
        mistakes=SHEET["relative_attention_backward"]
        + amended(SHEET["attention: scales"], without=["1/√d_k on dQ only", "1/√d_k on dK only"])
        + SHEET["relative_attention_backward 2"],
    ),
]  # fmt: skip
