"""Attention with relative positions: the shift, the attention, their backwards."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes
from .draws import far_apart, sizes_without_squares
from .tiled_attention import _MASK_MISTAKES, _SCALE_MISTAKES, _exactly, _mask, _scale

# --- relative_shift --------------------------------------------------------------------------------------------------


def _present(T, S):
    """Where the key is not in the query's future, (T, S)."""
    return np.tri(T, S, S - T, dtype=bool)


def _shift_cases(rng):
    sizes = draw_sizes(rng, "B H T", least=3)
    B, H, T = sizes.values()
    S = T + int(rng.integers(2, 5))
    sizes |= {"S": S}
    return [
        Case("", (rng.normal(size=(B, H, T, S)),), sizes=sizes),
        Case("as many keys as queries", (rng.normal(size=(B, H, T, T)),), sizes=sizes | {"S": T}),
        Case("one query, T = 1", (rng.normal(size=(B, H, 1, S)),), sizes=sizes | {"T": 1}),
        Case("one batch axis, x of shape (B, T, S)", (rng.normal(size=(B, T, S)),), sizes=sizes),
        Case("no batch axis, x of shape (T, S)", (rng.normal(size=(T, S)),), sizes=sizes),
    ]


def _without_future(case, output):
    """y where the key is not in the query's future, 0 elsewhere: the leftovers there mean nothing."""
    (x,) = case.arguments
    if not isinstance(output, np.ndarray) or output.shape != x.shape or output.dtype.kind not in "biuf":
        return (output,)
    return (np.where(_present(*x.shape[-2:]), output, 0),)


_PLACES = {  # the column of x that y[t, s] comes from
    "not shifted": lambda t, s, T, S: s + 0 * t,
    "by t instead of T − 1 − t": lambda t, s, T, S: s + t,
    "one place too far": lambda t, s, T, S: s + T - t,
    "one place too little": lambda t, s, T, S: s + T - 2 - t,
    "by S − 1 − t instead of T − 1 − t": lambda t, s, T, S: s + S - 1 - t,
    "to the other side": lambda t, s, T, S: s - (T - 1 - t),
    "to the other side, round the end": lambda t, s, T, S: (s - (T - 1 - t)) % S,
    "by t, round the end": lambda t, s, T, S: (s + t) % S,
    "by t to the other side, round the end": lambda t, s, T, S: (s - t) % S,
    "every row by the same": lambda t, s, T, S: s + T - 1 + 0 * t,
    "distances in reverse order": lambda t, s, T, S: S - T + t - s,
}


def _place_of(made, T, S):
    """The column of x for every (t, s), −1 where there is none."""
    t, s = np.arange(T)[:, None], np.arange(S)
    column = s + T - 1 - t
    for name, place in _PLACES.items():
        if made(name):
            column = place(t, s, T, S)
    return np.where((column >= 0) & (column < S), column, -1)


def _shift(made, x):
    T, S = x.shape[-2:]
    if made("last numbers left off instead of the first") or made("one row of S left off instead of T"):
        flat = np.concatenate([np.zeros_like(x[..., :1]), x], axis=-1).reshape(*x.shape[:-2], -1)
        flat = flat[..., :-T] if made("last numbers left off instead of the first") else flat[..., S:]
        return flat.reshape(x.shape)  # the second one fits only if S = T
    column = _place_of(made, T, S)
    moved = np.take_along_axis(x, np.broadcast_to(np.maximum(column, 0), x.shape), axis=-1)
    return np.where(column >= 0, moved, 0)


def _unshift(made, dy):
    """The backward of _shift: everything back to where it came from."""
    T, S = dy.shape[-2:]
    column = _place_of(made, T, S)
    dx = np.zeros_like(dy)
    for t in range(T):
        for s in range(S):
            if column[t, s] >= 0:
                dx[..., t, column[t, s]] += dy[..., t, s]
    return dx


def _wrong_relative_shift(made, x):
    y = _shift(made, x)
    if made("the column of zeros kept"):
        return np.concatenate([np.zeros_like(y[..., :1]), y], axis=-1)
    return y


_SHIFT_MISTAKES = {
    "not shifted": "Nothing is shifted: y[t, s] = x[t, s]. Column c of x is a distance, column s of y is a key.",
    "by t instead of T − 1 − t": (
        "Row t is shifted by t. It is the last row that stays where it is and the first that moves most: by T − 1 − t."
    ),
    "one place too far": (
        "Every row is shifted one place too far, by T − t: off by one. A zero behind each row, where the trick needs "
        "it in front, does the same. The last row does not move."
    ),
    "one place too little": (
        "Every row is shifted one place too little, by T − 2 − t: off by one. The last row does not move."
    ),
    "by S − 1 − t instead of T − 1 − t": (
        "Row t is shifted by S − 1 − t; it is by T − 1 − t, with the number of queries. So the distance is taken as t "
        "− s, as if there were no memory, but query t stands at position S − T + t. With S = T nobody would notice."
    ),
    "to the other side": (
        "The rows are shifted to the right. They have to move to the left: y[t, s] comes from column s + T − 1 − t."
    ),
    "by t, round the end": (
        "Row t is rolled by t. It is the last row that stays where it is and the first that moves most: by T − 1 − t."
    ),
    "by t to the other side, round the end": (
        "Row t is rolled to the right by t, as np.roll does with a positive number. The rows have to move to the left: "
        "row t by T − 1 − t, the last one not at all."
    ),
    "to the other side, round the end": (
        "The rows are rolled to the right. They have to move to the left: y[t, s] comes from column s + T − 1 − t."
    ),
    "every row by the same": (
        "All rows are shifted by T − 1. Each row moves one place less than the row above it: T − 1 − t."
    ),
    "distances in reverse order": (
        "Column c is taken for the distance c, the order reversed. Column c belongs to the distance S − 1 − c: the "
        "farthest comes first, distance 0 last."
    ),
}

RELATIVE_SHIFT = Exercise(
    F.relative_shift,
    (Result("y", "... T S"),),
    _shift_cases,
    {
        **_SHIFT_MISTAKES,
        "last numbers left off instead of the first": (
            "After the rows with their zeros were laid end to end, the last T numbers are left off. It is the first T."
        ),
        "one row of S left off instead of T": (
            "After the rows with their zeros were laid end to end, S numbers are left off. It is T of them, one zero "
            "for each row, so that T · S remain; with S ≠ T the reshape fails."
        ),
        "the column of zeros kept": "y is (T, S + 1): the column of zeros that was put in front is still there.",
    },
    _wrong_relative_shift,
    (
        "What distance has query t from key s, and in which column of x is that distance?",
        "y[t, s] = x[t, s + T − 1 − t] for every key that is not in the query's future",
        "notebook 10, “Transformer-XL”; Dai et al. 2019, appendix B. Row by row, or with one zero in front of each "
        "row and reshape.",
    ),
    difficulty=2,
    section="Dai et al. 2019, appendix B",
    chapter="Long sequences",
    place=9,
    view=_without_future,
)


def _shift_backward_cases(rng):
    cases = []
    for forward in _shift_cases(rng):
        (x,) = forward.arguments
        dy = np.where(_present(*x.shape[-2:]), x, 0)  # hidden keys have the gradient 0
        cases.append(Case(forward.label.replace("x of", "dy of"), (dy,), sizes=forward.sizes))
    return cases


def _wrong_relative_shift_backward(made, dy):
    T, S = dy.shape[-2:]
    if made("shifted once more"):
        return _shift(_exactly(""), dy)
    if made("shifted once more, round the end"):
        place = (np.arange(S) + T - 1 - np.arange(T)[:, None]) % S
        return np.take_along_axis(dy, np.broadcast_to(place, dy.shape), axis=-1)
    if made("zeros behind instead of in front"):
        flat = np.concatenate([dy.reshape(*dy.shape[:-2], -1), np.zeros((*dy.shape[:-2], T))], axis=-1)
        return flat.reshape(*dy.shape[:-1], S + 1)[..., 1:]
    if made("S zeros in front instead of T"):
        flat = np.concatenate([np.zeros((*dy.shape[:-2], S)), dy.reshape(*dy.shape[:-2], -1)], axis=-1)
        return flat.reshape(*dy.shape[:-1], S + 1)[..., 1:]
    dx = _unshift(made, dy)
    if made("the column of zeros kept"):
        return np.concatenate([np.zeros_like(dx[..., :1]), dx], axis=-1)
    if made("one place too far back"):
        dx = np.concatenate([np.zeros_like(dx[..., :1]), dx[..., :-1]], axis=-1)
    return dx


RELATIVE_SHIFT_BACKWARD = Exercise(
    F.relative_shift_backward,
    (Result("dx", "... T S"),),
    _shift_backward_cases,
    {
        "not shifted": (
            "Nothing is shifted: dx[t, s] = dy[t, s]. The forward moved y[t, s] there from x[t, s + T − 1 − t]."
        ),
        "shifted once more": (
            "This is the forward shift once more, to the left. The gradient has to go back to where the number came "
            "from, to the right by T − 1 − t."
        ),
        "shifted once more, round the end": (
            "The rows are rolled to the left, as in the forward. The gradient has to go back to where the number came "
            "from, to the right by T − 1 − t."
        ),
        "by t instead of T − 1 − t": (
            "Row t is shifted back by t. In the forward the last row stayed where it was and the first moved most: by "
            "T − 1 − t."
        ),
        "one place too far back": (
            "Every row goes back one place too far: off by one. Cutting the column of the padded zeros off at the "
            "right end instead of the left does this."
        ),
        "one place too little": (
            "Every row goes back one place too little: off by one. It is T − 1 − t, for the last row 0."
        ),
        "by S − 1 − t instead of T − 1 − t": (
            "Row t is shifted back by S − 1 − t; it is by T − 1 − t, with the number of queries. So the distance is "
            "taken as t − s, as if there were no memory, but query t stands at position S − T + t. With S = T nobody "
            "would notice."
        ),
        "every row by the same": "All rows are shifted back by T − 1. Row t moved by T − 1 − t.",
        "distances in reverse order": (
            "Column c of dx is taken for the distance c, the order reversed. Column c belongs to the distance S − 1 − "
            "c."
        ),
        "zeros behind instead of in front": (
            "The T zeros for what was left off are put behind the numbers. In the forward the first T were left off, "
            "so they belong in front."
        ),
        "S zeros in front instead of T": (
            "S zeros are put in front for what was left off. It was T numbers, so that T · (S + 1) come together; with "
            "S ≠ T the reshape fails."
        ),
        "the column of zeros kept": (
            "dx is (T, S + 1): the column of the padded zeros is still there. They are no part of x and need no "
            "gradient."
        ),
    },
    _wrong_relative_shift_backward,
    (
        "Where in x did the number at y[t, s] come from?",
        "dx[t, s + T − 1 − t] = dy[t, s], and 0 where nothing came from",
        "notebook 10, “Transformer-XL”; the three steps of the forward in reverse: T zeros in front, cut anew, the "
        "first column left off.",
    ),
    difficulty=2,
    section="Dai et al. 2019, appendix B",
    chapter="Long sequences",
    place=10,
)


# --- relative_attention ----------------------------------------------------------------------------------------------


def _relative_inputs(rng, B, H, T, S, K, K_v):
    shapes = (B, H, T, K), (B, H, S, K), (B, H, S, K_v), (H, S, K), (H, K), (H, K)
    return tuple(rng.normal(size=shape) for shape in shapes)


def _relative_sizes(rng):
    sizes = sizes_without_squares(rng, "B H T K K_v")
    B, H, T, K, K_v = sizes.values()
    return {"B": B, "H": H, "T": T, "S": T + 2 + int(rng.integers(2)), "K": K, "K_v": K_v}


def _relative_cases(rng):
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
    return [
        Case("", plain, sizes=sizes),
        Case("as many keys as queries", square, sizes=square_sizes),
        Case("one query, T = 1", single, sizes=single_sizes),
        Case("a Boolean mask", plain, {"mask": hidden}, sizes),
        Case("a float mask to be added", plain, {"mask": bias}, sizes),
        Case("keys hidden from everyone", plain, {"mask": padding}, sizes),
        Case("rows that are hidden whole", plain, {"mask": empty}, sizes),
        Case("scores of ±10,000", large, sizes=sizes),
        Case("as many queries as heads", heads, sizes=heads_sizes),
        Case("K_v = K", same, sizes=same_sizes),
    ]


def _biases(made, content_bias, position_bias, H, T):
    """What is added to q in the two terms, (H, 1, K)."""
    if made("biases swapped"):
        content_bias, position_bias = position_bias, content_bias
    if made("content bias in both terms"):
        position_bias = content_bias
    if made("position bias in both terms"):
        content_bias = position_bias
    if made("both biases in both terms"):
        content_bias = position_bias = content_bias + position_bias
    if made("content bias forgotten"):
        content_bias = 0 * content_bias
    if made("position bias forgotten"):
        position_bias = 0 * position_bias
    if made("biases subtracted"):
        content_bias, position_bias = -content_bias, -position_bias
    if made("biases added along the queries"):
        if H != T:
            raise ValueError
        return content_bias, position_bias
    return content_bias[:, None], position_bias[:, None]


def _relative_scale(made, H, K, K_v):
    """What the two terms are multiplied by."""
    scale = (H * K) ** -0.5 if made("√d_model instead of √d_k") else _scale(made, K, K_v)
    scale = scale * 2**-0.5 if made("1/√(2 d_k)") else scale
    return 1 if made("scale only in the position term") else scale, 1 if made(
        "scale only in the content term"
    ) else scale


def _wrong_relative_attention(made, q, k, v, r, content_bias, position_bias, mask=None):
    (_, H, T, K), (S, K_v) = q.shape, v.shape[-2:]
    u_here, v_here = _biases(made, content_bias, position_bias, H, T)
    if made("r in reverse order"):
        r = r[:, ::-1]
    content_scale, position_scale = _relative_scale(made, H, K, K_v)
    if made("biases not scaled"):
        u_here, v_here = u_here / content_scale, v_here / position_scale
    content = np.einsum("bhtk,bhsk->bhts", q + u_here, k) * content_scale
    distances = np.einsum("bhtk,hsk->bhts", q + v_here, k[0] if made("k of the first sequence for r") else r)
    position = _shift(made, distances * position_scale)
    if made("future not hidden"):
        flat = np.concatenate([np.zeros_like(distances[..., :1]), distances * position_scale], axis=-1)
        position = flat.reshape(*q.shape[:2], -1)[..., T:].reshape(distances.shape)
    if made("future not hidden, distances rolled round"):
        place = (np.arange(S) + T - 1 - np.arange(T)[:, None]) % S
        position = np.take_along_axis(distances * position_scale, np.broadcast_to(place, distances.shape), axis=-1)
    if made("position term forgotten"):
        position = 0 * position
    if made("content term forgotten"):
        content = 0 * content
    if made("position term subtracted"):
        position = -position
    hide = mask if not made("mask after the softmax") else None
    scores = _mask(made, content + position, hide)
    present = _present(T, S)
    if made("future hidden as if S = T"):
        present = np.tri(T, S, dtype=bool)
    if made("the token itself hidden"):
        present = np.tri(T, S, S - T - 1, dtype=bool)
    if made("past hidden instead of the future"):
        present = ~np.tri(T, S, S - T - 1, dtype=bool)
    if any(made(f"future not hidden{how}") for how in ("", ", position term 0 there", ", distances rolled round")):
        present = np.ones_like(present)
    low = -1e9 if made("−1e9 for −inf") else -np.inf
    if made("future hidden after the softmax"):
        weights = np.where(present, _weights_of(made, scores), 0)
    else:
        weights = _weights_of(made, np.where(present, scores, low))
    if made("mask after the softmax") and mask is not None:
        weights = weights * (~mask if mask.dtype == bool else 1)
    return weights @ (k if made("keys in place of the values") else v), weights


def _weights_of(made, scores):
    axis = -2 if made("softmax over the queries") else -1
    if not made("largest score not subtracted"):
        largest = scores.max(axis=axis, keepdims=True)
        scores = scores - (largest if made("NaN where all is hidden") else np.maximum(largest, np.finfo(float).min))
    weights = np.exp(scores)
    if made("not divided by the sum"):
        return weights
    total = weights.sum(axis=axis, keepdims=True)
    if not made("NaN where all is hidden") and not made("largest score not subtracted"):
        total = np.where(total == 0, 1, total)
    return weights / total


_RELATIVE_MISTAKES = {
    "biases swapped": (
        "The two biases are swapped: the content bias u belongs to the term with the keys, (Q + u) Kᵀ, the position "
        "bias v to the term with the distances, (Q + v) Rᵀ."
    ),
    "content bias forgotten": "The content bias u is not added to q in the term with the keys, (Q + u) Kᵀ.",
    "position bias forgotten": "The position bias v is not added to q in the term with the distances, (Q + v) Rᵀ.",
    "content bias in both terms": (
        "The content bias u is in both terms. The term with the distances has a bias of its own, (Q + v) Rᵀ."
    ),
    "position bias in both terms": (
        "The position bias v is in both terms. The term with the keys has a bias of its own, (Q + u) Kᵀ."
    ),
    "both biases in both terms": (
        "Both biases are added to q in both terms: u belongs to (Q + u) Kᵀ alone, v to (Q + v) Rᵀ."
    ),
    "biases subtracted": "The biases are subtracted from q; they are added.",
    "biases added along the queries": (
        "The biases (H, K) are added as if their first axis were the queries: NumPy aligns axes from the right. They "
        "are one row a head, content_bias[:, None]. With T ≠ H it crashes."
    ),
    "r in reverse order": (
        "R is read in reverse order. Row c of R is the distance S − 1 − c: the farthest first, distance 0 in the last "
        "row."
    ),
    "√d_model instead of √d_k": (
        "The scores are divided by √d_model = √(H · K). Each head has its own √d_k, q.shape[-1]."
    ),
}

RELATIVE_ATTENTION = Exercise(
    F.relative_attention,
    (Result("out", "B H T K_v"), Result("weights", "B H T S")),
    _relative_cases,
    {
        **_RELATIVE_MISTAKES,
        **_SCALE_MISTAKES,
        "1/√(2 d_k)": (
            "The scores are divided by √(2 d_k), since there are two terms. It is √d_k, as in all attention here."
        ),
        "biases not scaled": (
            "Only q is scaled, the biases are added behind it: their share lacks the factor 1/√d_k. Scale the scores, "
            "((Q + u) Kᵀ + shift((Q + v) Rᵀ)) / √d_k."
        ),
        "scale only in the content term": (
            "Only the term with the keys has the factor 1/√d_k. Both have it: ((Q + u) Kᵀ + shift((Q + v) Rᵀ)) / √d_k."
        ),
        "scale only in the position term": (
            "Only the term with the distances has the factor 1/√d_k. Both have it: ((Q + u) Kᵀ + shift((Q + v) Rᵀ)) / "
            "√d_k."
        ),
        "position term forgotten": (
            "The term with the distances, shift((Q + v) Rᵀ), is missing: nothing tells how far away a key is."
        ),
        "content term forgotten": "The term with the keys, (Q + u) Kᵀ, is missing: nothing tells what a key says.",
        "position term subtracted": "The term with the distances is subtracted; a sign is wrong.",
        "k of the first sequence for r": "The position term is made with keys instead of R: it is shift((Q + v) Rᵀ).",
        **{
            name: f"In the shift of the position term: {text}"
            for name, text in _SHIFT_MISTAKES.items()
            if name != "distances in reverse order"  # that is R in reverse order
        },
        "future not hidden": (
            "The future is not hidden: a key behind the query has no distance, and what the shift leaves there means "
            "nothing. Set these scores to −inf, even without a mask."
        ),
        "future not hidden, position term 0 there": (
            "The future is not hidden: a key behind the query has no distance. That its position term is 0 does not "
            "hide it; set these scores to −inf, even without a mask."
        ),
        "future not hidden, distances rolled round": (
            "The future is not hidden: a key behind the query has no distance, and what the roll brings there belongs "
            "to keys far in the past. Set these scores to −inf, even without a mask."
        ),
        "future hidden as if S = T": (
            "The future is hidden as if query t stood at position t. The queries are the last T of S positions: hidden "
            "is s > t + (S − T), as in causal_mask(T, S)."
        ),
        "future hidden after the softmax": (
            "The future is set to 0 after the softmax: it was in the sum, and the weights add to less than 1. Hide "
            "first (−inf), then softmax."
        ),
        "past hidden instead of the future": (
            "The past is hidden instead of the future: the mask is the wrong way round."
        ),
        "the token itself hidden": (
            "The token itself is hidden too, off by one: distance 0 is seen, only what is behind it is the future."
        ),
        **_MASK_MISTAKES,
        "mask after the softmax": (
            "The mask is applied after the softmax: hidden keys were in the sum, and the weights add to less than 1. "
            "Hide first (−inf), then softmax."
        ),
        "−1e9 for −inf": (
            "Hidden scores are set to −1e9 instead of −inf. A query that may see nothing then has equal scores and "
            "gets a mean of values, those of the future too; its weights and output are 0."
        ),
        "−1e9 added for −inf": (
            "−1e9 is added to hidden scores. In a row that is hidden whole that changes nothing, and the query sees "
            "all; its weights and output are 0. Set hidden scores to −inf."
        ),
        "NaN where all is hidden": (
            "A query that may see nothing gets NaN: −inf − (−inf), or 0/0. Its weights and its output are 0."
        ),
        "softmax over the queries": (
            "The softmax runs over the queries instead of the keys, axis −2 instead of −1: the weights of a query do "
            "not add to 1."
        ),
        "not divided by the sum": (
            "The exponentials are not divided by their sum: the weights of a query do not add to 1."
        ),
        "largest score not subtracted": (
            "The largest score is not subtracted before the exponential: exp of a large score overflows, and inf/inf "
            "is NaN."
        ),
        "keys in place of the values": "The weights multiply the keys K instead of the values V: out = A V.",
    },
    _wrong_relative_attention,
    (
        "A score has two parts: what the key says and how far away it is. Which bias and which partner has each?",
        "scores = ((Q + u) Kᵀ + shift((Q + v) Rᵀ)) / √d_k, −inf in the future and where the mask hides; out = "
        "softmax(scores) V",
        "notebook 10, “Transformer-XL”; Dai et al. 2019, §3.3; relative_shift, and causal_mask(T, S) for the future.",
    ),
    difficulty=3,
    section="Dai et al. 2019, §3.3",
    chapter="Long sequences",
    place=11,
)


def _relative_backward_cases(rng):
    cases = []
    for forward in _relative_cases(rng):
        if "10,000" in forward.label:  # all weights 0 or 1 there: no gradient
            continue
        out, weights = F.relative_attention(*forward.arguments, **forward.options)
        arguments = rng.normal(size=out.shape), *forward.arguments, weights
        cases.append(Case(forward.label, arguments, sizes=forward.sizes))
    return cases


def _wrong_relative_attention_backward(made, dout, q, k, v, r, content_bias, position_bias, weights):
    (B, H, T, K), K_v = q.shape, v.shape[-1]
    u_here, v_here = _biases(made, content_bias, position_bias, H, T)
    partner = r[:, ::-1] if made("r in reverse order") else r
    dweights = dout @ v.swapaxes(-1, -2)  # (B, H, T, S)
    dscores = _softmax_backward(made, dweights, weights)
    content_scale, position_scale = _relative_scale(made, H, K, K_v)
    dcontent, dposition = dscores * content_scale, dscores * position_scale
    if made("shifted forward once more"):
        dposition = _shift(_exactly(""), dposition)
    else:
        dposition = _unshift(made, dposition)
    swapped = made("Q and K swapped")
    dq_content = dcontent @ (q if swapped else k)
    dq_position = np.einsum("bhts,hsk->bhtk", dposition, partner)
    turned = "bhst,bhtk->bhsk" if made("dscores not transposed") else "bhts,bhtk->bhsk"
    dk = np.einsum(turned, dcontent, (k if swapped else q) + u_here)
    dr = np.einsum(turned, dposition, q + v_here)  # (B, H, S, K)
    if made("dR without the shift"):
        dr = np.einsum(turned, dscores * position_scale, q + v_here)
    if made("r in reverse order"):
        dr = dr[:, :, ::-1]
    dv = np.einsum("bhst,bhtk->bhsk" if made("A not transposed") else "bhts,bhtk->bhsk", weights, dout)
    if made("dscores in place of A in dV"):
        dv = np.einsum("bhts,bhtk->bhsk", dcontent, dout)
    du, dv_bias = dq_content, dq_position
    if made("bias gradients from the whole dQ"):
        du = dv_bias = dq_content + dq_position
    if made("bias gradients swapped"):
        du, dv_bias = dv_bias, du
    dq = dq_content * (not made("dQ without the content term")) + dq_position * (
        not made("dQ without the position term")
    )
    if made("position term of dQ without the shift"):
        dq = dq_content + np.einsum("bhts,hsk->bhtk", dscores * position_scale, partner)
    if made("dR of the last sequence only"):
        dr = dr[-1]
    elif not made("dR not summed over the batch"):
        dr = dr.sum(axis=0)
    over = {0, 2}
    if made("bias gradients summed over heads too"):
        over |= {1}
    if made("bias gradients not summed over the batch") or made("bias gradients not summed at all"):
        over -= {0}
    if made("bias gradients not summed over the queries") or made("bias gradients not summed at all"):
        over -= {2}
    du, dv_bias = du.sum(axis=tuple(over)), dv_bias.sum(axis=tuple(over))
    if made("mean over the batch"):
        dr, du, dv_bias = dr / B, du / B, dv_bias / B
    if made("mean over the queries"):
        du, dv_bias = du / T, dv_bias / T
    return dq, dk, dv, dr, du, dv_bias


def _softmax_backward(made, dweights, weights):
    total = (dweights * weights).sum(axis=-1, keepdims=True)
    if made("sum of the softmax missing"):
        total = 0
    if made("sum of the softmax added"):
        total = -total
    if made("mean instead of the sum"):
        total = total / weights.shape[-1]
    if made("sum not weighted by A"):
        total = dweights.sum(axis=-1, keepdims=True)
    if made("only the diagonal of the softmax"):
        return dweights * weights * (1 - weights)
    if made("softmax left out"):
        return dweights
    if made("A missing before the bracket"):
        return dweights - total
    if made("sum not multiplied by A"):
        return dweights * weights - total
    return weights * (dweights - total)


RELATIVE_ATTENTION_BACKWARD = Exercise(
    F.relative_attention_backward,
    (
        Result("dq", "B H T K"),
        Result("dk", "B H S K"),
        Result("dv", "B H S K_v"),
        Result("dr", "H S K"),
        Result("dcontent_bias", "H K"),
        Result("dposition_bias", "H K"),
    ),
    _relative_backward_cases,
    {
        "dQ without the position term": (
            "dQ lacks the position term: q went into both terms of the scores, so dQ = dscores K + ddistances R."
        ),
        "dQ without the content term": (
            "dQ lacks the content term: q went into both terms of the scores, so dQ = dscores K + ddistances R."
        ),
        "biases swapped": (
            "The two biases are swapped: dK takes q with the content bias, dscoresᵀ (Q + u), and dR takes q with the "
            "position bias, ddistancesᵀ (Q + v)."
        ),
        "content bias forgotten": "In dK the content bias is missing: the keys met Q + u, so dK = dscoresᵀ (Q + u).",
        "position bias forgotten": "In dR the position bias is missing: R met Q + v, so dR = Σ ddistancesᵀ (Q + v).",
        "content bias in both terms": (
            "In dR stands the content bias u. R met q with the position bias: dR = Σ ddistancesᵀ (Q + v)."
        ),
        "position bias in both terms": (
            "In dK stands the position bias v. The keys met q with the content bias: dK = dscoresᵀ (Q + u)."
        ),
        "both biases in both terms": "Both biases are added to q in dK and dR: dK has (Q + u), dR has (Q + v).",
        "biases subtracted": "The biases are subtracted from q in dK and dR; in the forward they were added.",
        "biases added along the queries": _RELATIVE_MISTAKES["biases added along the queries"],
        "r in reverse order": (
            "R is used in reverse order. Row c of R is the distance S − 1 − c: the farthest first, distance 0 in the "
            "last row."
        ),
        "not shifted": (
            "The shift is not undone: dscores has a column for each key, and R and dR a row for each distance. First "
            "ddistances = relative_shift_backward(dscores)."
        ),
        "dR without the shift": (
            "dR is made from dscores, whose columns are keys. Its rows are distances: dR = Σ ddistancesᵀ (Q + v)."
        ),
        "position term of dQ without the shift": (
            "The position term of dQ is dscores R, whose columns are keys. The rows of R are distances: ddistances R."
        ),
        "shifted forward once more": (
            "dscores is shifted forward once more, to the left. Back is to the right: relative_shift_backward, not "
            "relative_shift."
        ),
        "by t instead of T − 1 − t": "Row t is shifted back by t; it is by T − 1 − t: the last row did not move.",
        "by S − 1 − t instead of T − 1 − t": (
            "The distance of query t and key s is taken as t − s, as if there were no memory. Query t stands at "
            "position S − T + t: row t is shifted back by T − 1 − t, not by S − 1 − t."
        ),
        "one place too far": "The shift back is off by one: row t goes by T − 1 − t, the last row not at all.",
        "one place too little": (
            "The shift back is off by one, too little: row t goes by T − 1 − t, the last row not at all."
        ),
        "no 1/√d_k": (
            "The scale is missing: the scores were divided by √d_k (sqrt(K)), so dscores has the factor 1/√d_k too."
        ),
        "1/d_k instead of 1/√d_k": (
            "The factor is 1/d_k instead of 1/√d_k: the square root is missing, or the scale is there twice."
        ),
        "multiplied by √d_k": "dscores is multiplied by √d_k (sqrt(K)) where it has to be divided by it.",
        "√ of the values' size": (
            "The scale is 1/√d_v, with the size of the values. The scores were divided by √d_k, q.shape[-1]."
        ),
        "√d_model instead of √d_k": "The factor is 1/√d_model = 1/√(H · K). Each head has its own √d_k, q.shape[-1].",
        "scale only in the content term": (
            "The factor 1/√d_k is missing in what goes back to the position term: ddistances needs it as well as "
            "dscores."
        ),
        "scale only in the position term": (
            "The factor 1/√d_k is missing in what goes back to the content term: dscores needs it as well as "
            "ddistances."
        ),
        "sum of the softmax missing": (
            "The backward of the softmax is A · (dA − Σ dA · A) along the keys; here the sum is missing."
        ),
        "sum of the softmax added": (
            "In the backward of the softmax the sum Σ dA · A is added where it has to be subtracted: a sign is wrong."
        ),
        "mean instead of the sum": "In the backward of the softmax Σ dA · A is a sum over the keys; here it is a mean.",
        "sum not weighted by A": (
            "In the backward of the softmax the sum is Σ dA instead of Σ dA · A: each dA counts with its weight."
        ),
        "sum not multiplied by A": (
            "This is A · dA − Σ dA · A: the factor A stands before both terms, A · (dA − Σ dA · A). A bracket is "
            "missing."
        ),
        "A missing before the bracket": "The factor A in front is missing: dscores = A · (dA − Σ dA · A).",
        "only the diagonal of the softmax": (
            "This is dA · A · (1 − A), the diagonal of the softmax's Jacobian alone. Every score is in the sum under "
            "every weight: the off-diagonal terms −Aᵢ Aⱼ are missing."
        ),
        "softmax left out": (
            "The backward of the softmax is left out: dA is used as if it were the gradient of the scores."
        ),
        "Q and K swapped": (
            "dQ and dK are made with the wrong partner: dQ has dscores K, dK is dscoresᵀ (Q + u). It shows no error "
            "where there are as many keys as queries."
        ),
        "dscores not transposed": (
            "In dK or dR the gradient is not transposed: dK = dscoresᵀ (Q + u), dR = Σ ddistancesᵀ (Q + v). It shows "
            "no error where there are as many keys as queries."
        ),
        "A not transposed": (
            "dV is A dout; it is Aᵀ dout: a row of A is a query, a row of dV is a key. It shows no error where there "
            "are as many keys as queries."
        ),
        "dscores in place of A in dV": "dV is made with dscoresᵀ instead of Aᵀ: out = A V, so dV = Aᵀ dout.",
        "dR not summed over the batch": (
            "dr keeps an axis of B: it is not summed over the batch. All sequences share R, (H, S, K)."
        ),
        "dR of the last sequence only": (
            "dr is that of the last sequence only, overwritten instead of added. All sequences share R: dR is the sum "
            "over the batch."
        ),
        "bias gradients swapped": (
            "The two bias gradients are swapped: dcontent_bias is the sum of dscores K, dposition_bias that of "
            "ddistances R."
        ),
        "bias gradients from the whole dQ": (
            "Both bias gradients are the sum of the whole dQ. u was in the content term only, so it gets Σ dscores K; "
            "v was in the position term only and gets Σ ddistances R."
        ),
        "bias gradients not summed over the queries": (
            "The bias gradients keep an axis of T: they are not summed over the queries. A head has one bias for all "
            "queries."
        ),
        "bias gradients not summed over the batch": (
            "The bias gradients keep an axis of B: they are not summed over the batch. All sequences share the biases."
        ),
        "bias gradients not summed at all": (
            "The bias gradients are (B, H, T, K), not summed. A head has one bias: they are sums over batch and "
            "queries, (H, K)."
        ),
        "bias gradients summed over heads too": (
            "The bias gradients are summed over the heads too. Each head has its own biases, (H, K)."
        ),
        "mean over the batch": (
            "A mean over the batch is taken, too small by the factor 1/B. What all sequences share gets the sum: if "
            "the loss is a mean, that is already in dout."
        ),
        "mean over the queries": (
            "The bias gradients are a mean over the queries, too small by the factor 1/T. They are sums over batch and "
            "queries."
        ),
    },
    _wrong_relative_attention_backward,
    (
        "q is in two terms of each score. Which gradient comes back through each, and who shares R and the biases?",
        "ddistances = relative_shift_backward(dscores); dQ = dscores K + ddistances R, dK = dscoresᵀ (Q + u), dR = Σ "
        "ddistancesᵀ (Q + v), dV = Aᵀ dout; du, dv: the two terms of dQ, summed",
        "notebook 10, “Transformer-XL”, and 06 for attention's backward; relative_shift_backward. R is shared by the "
        "batch, the biases by batch and queries.",
    ),
    difficulty=3,
    section="Dai et al. 2019, §3.3",
    chapter="Long sequences",
    place=12,
)


EXERCISES = [RELATIVE_SHIFT, RELATIVE_SHIFT_BACKWARD, RELATIVE_ATTENTION, RELATIVE_ATTENTION_BACKWARD]
