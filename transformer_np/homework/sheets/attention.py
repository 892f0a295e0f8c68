"""Attention: the scores, the weighted values, the same without a scale and with a bias, and their backward."""

from dataclasses import replace

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes, extended
from ..notes import amended
from .draws import far_apart, of_forward, only
from .masks import FINITE
from .sheet import Sheet
from .softmax import softmax, softmax_backward

SHEET = Sheet(__file__)


# --- scores and masks, as attention_scores and scaled_dot_product_attention share them -------------------------------


LEADING = {2: "", 3: "B ", 4: "B H "}  # the leading axes of arrays with so many axes


def attention_inputs(rng, sizes, axes=4):
    """q, k and v of these sizes, with the leading axes B and H, B alone, or none."""
    lead = only(sizes, LEADING[axes]).values()
    T, S, K, K_v = (sizes[letter] for letter in ("T", "S", "K", "K_v"))
    return rng.normal(size=(*lead, T, K)), rng.normal(size=(*lead, S, K)), rng.normal(size=(*lead, S, K_v))


def some_hidden(rng, *shape):
    """A mask that hides something in every row and leaves something to see, not the same in every row."""
    mask = rng.random(shape) < 0.4
    hidden, seen = rng.permutation(shape[-1])[:2]
    mask[..., hidden], mask[..., seen] = True, False
    if len(shape) > 1 and shape[-2] > 1:
        mask[..., 0, [hidden, seen]] = False, True
    return mask


def attention_cases(rng, only_scores):
    """The calls that try attention_scores (q, k, mask), or attention (q, k, v, mask)."""
    sizes = draw_sizes(rng, "B H T S K K_v", least=3)
    B, H, T, S, K, _ = sizes.values()
    n = T + 1
    equal = dict(sizes, T=n, S=n, K=n, K_v=n)
    wide = dict(sizes, K=K + 7)

    def call(label, q, k, v, mask=None, sizes=sizes):
        arrays, options = (q, k) if only_scores else (q, k, v), {} if mask is None else {"mask": mask}
        return Case(label, arrays, options, only(sizes, LEADING[q.ndim] + ("T S K" if only_scores else "T S K K_v")))

    def case(label, mask=None, axes=4, sizes=sizes):
        return call(label, *attention_inputs(rng, sizes, axes), mask, sizes)

    hidden, whole_row = some_hidden(rng, T, S), some_hidden(rng, T, S)
    whole_row[1] = True
    padding = some_hidden(rng, B, 1, 1, S)
    in_all = np.arange(S) == np.flatnonzero(~padding.any(axis=(0, 1, 2)))[0]  # a key that no sequence hides

    q, k, v = attention_inputs(rng, sizes)
    far = *far_apart(rng, q, k), v

    # a hidden key whose score, 2000 and more, would leave nothing to the others
    high, high_mask = attention_inputs(rng, sizes), padding.copy()
    high[0][..., 0], high[1][..., 0, 0], high_mask[..., 0], high_mask[..., 1] = 1, 2000 * K**0.5, True, False

    return [
        case(""),
        case("a Boolean mask (T, S)", hidden),
        case("a Boolean mask (B, 1, 1, S)", padding),
        extended(case("a finite float mask", rng.normal(size=(T, S)))),
        extended(case("a float mask of 0 and −inf", np.where(some_hidden(rng, T, S), -np.inf, 0))),
        extended(case("a float mask of numbers and −inf", np.where(padding, -np.inf, rng.normal(size=(H, T, S))))),
        extended(case("a tuple of masks", (padding, rng.normal(size=(T, S)), hidden & ~in_all))),
        case("inputs (T, K) and (S, K) plus a mask", some_hidden(rng, T, S), axes=2, sizes=wide),
        case("inputs (B, T, K) and (B, S, K)", axes=3),
        case("all sizes equal plus a mask (T, S)", some_hidden(rng, n, n), sizes=equal),
        case("all sizes equal plus a mask (B, 1, 1, S)", some_hidden(rng, B, 1, 1, n), sizes=equal),
        case("inputs (T, K) with all sizes equal", axes=2, sizes=equal),
        call("scores of ±10,000", *far),
        extended(case("a row hidden whole", whole_row)),
        extended(case("a row hidden whole by −inf", np.where(whole_row, -np.inf, rng.normal(size=(T, S))))),
        *([] if only_scores else [call("a hidden score far above all others", *high, high_mask)]),
    ]


def masked(scores, mask):
    if isinstance(mask, tuple):
        for part in mask:
            scores = masked(scores, part)
        return scores
    if mask is None:
        return scores
    if mask.dtype == bool:
        return np.where(mask, -np.inf, scores)
    return scores + mask


def attention_scores(q, k, mask=None):
    scale = 1 / np.sqrt(q.shape[-1])
    scores = q @ np.swapaxes(k, -1, -2) * scale
    scores = masked(scores, mask)
    return scores


_FINITE = {f"−{number}": f"-{number}" for number in FINITE} | {
    "the smallest float32": "np.finfo(np.float32).min",
    "the smallest finite number": "np.finfo(float).min",
}


def scaled_dot_product_attention(q, k, v, mask=None):
    scale = 1 / np.sqrt(q.shape[-1])
    scores = q @ np.swapaxes(k, -1, -2) * scale
    scores = masked(scores, mask)
    weights = softmax(scores)
    out = weights @ v
    return out, weights


ATTENTION_MISTAKES = SHEET["attention mistakes"] + amended(
    SHEET["mask mistakes"], instead=SHEET["attention mistakes instead"]
)


def scaled_dot_product_attention_backward(dout, q, k, v, weights):
    scale = 1 / np.sqrt(q.shape[-1])
    dweights = dout @ np.swapaxes(v, -1, -2)
    dscores = softmax_backward(dweights, weights) * scale
    dq = dscores @ k
    dk = np.swapaxes(dscores, -1, -2) @ q
    dv = np.swapaxes(weights, -1, -2) @ dout
    return dq, dk, dv


# what has no gradient, because all weights are 0 or 1, or the same weights as another case
_NOT_BACKWARD = ("10,000", "far above", "tuple", "−inf", "all sizes equal plus a mask (B")


# --- without a scale, with a bias -------------------------------------------------------------------------------------


def unscaled_cases(rng):
    """The calls that try scaled_dot_product_attention with heads, with a bias."""

    def bias_for(q, k):
        return rng.normal(size=(q.shape[1], q.shape[2], k.shape[2]))

    cases = []
    for case in attention_cases(rng, only_scores=False):
        q, k, _ = case.arguments
        if q.ndim == 4 and not isinstance(case.options.get("mask"), tuple):
            cases.append(replace(case, options={"bias": bias_for(q, k), **case.options}))
    plain, sizes = cases[0].arguments, cases[0].sizes
    B, T, S = sizes["B"], sizes["T"], sizes["S"]
    q, k, v = (rng.normal(size=(B, B, *array.shape[2:])) for array in plain)
    return [
        *cases,
        Case("no bias", plain, sizes=sizes),
        Case("a mask (T, S) without a bias", plain, {"mask": some_hidden(rng, T, S)}, sizes),
        Case("as many heads as rows of the batch", (q, k, v), {"bias": bias_for(q, k)}, sizes | {"H": B}),
    ]


def unscaled_attention(q, k, v, bias=None, mask=None):
    scores = q @ np.swapaxes(k, -1, -2)
    if bias is not None:
        scores = scores + bias
    scores = masked(scores, mask)
    weights = softmax(scores)
    out = weights @ v
    return out, weights


def unscaled_attention_backward(dout, q, k, v, weights):
    dweights = dout @ np.swapaxes(v, -1, -2)
    dscores = softmax_backward(dweights, weights)
    dbias = dscores.sum(axis=0)
    dq = dscores @ k
    dk = np.swapaxes(dscores, -1, -2) @ q
    dv = np.swapaxes(weights, -1, -2) @ dout
    return dq, dk, dv, dbias


EXERCISES = [
    SHEET.exercise(
        F.attention_scores, attention_scores, lambda rng: attention_cases(rng, only_scores=True),
        also="".join(SHEET["finite"].format(number=number, code=code) for number, code in _FINITE.items()),
    ),
    SHEET.exercise(
        F.scaled_dot_product_attention, scaled_dot_product_attention,
        lambda rng: attention_cases(rng, only_scores=False), also=ATTENTION_MISTAKES,
    ),
    SHEET.exercise(
        F.scaled_dot_product_attention_backward, scaled_dot_product_attention_backward,
        of_forward(
            F.scaled_dot_product_attention, lambda rng: attention_cases(rng, only_scores=False), _NOT_BACKWARD
        ),
        also=amended(SHEET["scale mistakes"], instead=SHEET["scales instead"]),
    ),
    SHEET.exercise(
        F.unscaled_attention, unscaled_attention, unscaled_cases,
        also=amended(
            ATTENTION_MISTAKES, instead=SHEET["unscaled_attention instead"],
            without=(
                "mask added before the scale", "written for four axes only", "written for three axes only",
                "softmax over axis 2",  # the queries: there are always four axes
            ),
        ),
    ),
    SHEET.exercise(
        F.unscaled_attention_backward, unscaled_attention_backward,
        of_forward(F.unscaled_attention, unscaled_cases, ["10,000", "far above"]),  # all weights 0 or 1: no gradient
        also=amended(
            SHEET["backward mistakes"], instead=SHEET["unscaled_attention_backward instead"],
            without=("written for four axes only", "written for three axes only"),
        ),
    ),
]  # fmt: skip
