"""Attention: the scores, the weighted values, the same without a scale and with a bias, and their backward."""

import re

import numpy as np

from ... import functional as F
from ..exercise import draw_sizes, extended
from .draws import Calls, far_apart
from .sheet import Sheet
from .softmax import softmax, softmax_backward

SHEET = Sheet(__file__)


# --- scores and masks, as attention_scores and scaled_dot_product_attention share them -------------------------------


def some_hidden(rng, *shape):
    """A mask that hides something in every row and leaves something to see, not the same in every row."""
    mask = rng.random(shape) < 0.4
    hidden, seen = rng.permutation(shape[-1])[:2]
    mask[..., hidden], mask[..., seen] = True, False
    if len(shape) > 1 and shape[-2] > 1:
        mask[..., 0, [hidden, seen]] = False, True
    return mask


def attention_calls(rng, function):
    """Calls of attention_scores, or of an attention with heads."""
    letters = "B H T S K" if function is F.attention_scores else "B H T S K K_v"
    return Calls(rng, function, draw_sizes(rng, letters, least=3), leading="B H")


def attention_cases(case):
    rng, is_of_scores = case.rng, case.function is F.attention_scores
    B, H, T, S, K, *_ = case.sizes.values()
    n = T + 1
    equal = {letter: n for letter in case.sizes if letter not in "B H"}

    hidden, whole_row = some_hidden(rng, T, S), some_hidden(rng, T, S)
    whole_row[1] = True
    padding = some_hidden(rng, B, 1, 1, S)
    in_all = np.arange(S) == np.flatnonzero(~padding.any(axis=(0, 1, 2)))[0]  # a key that no sequence hides

    plain = case("")
    q, k = (array.copy() for array in plain.arguments[:2])
    far = far_apart(rng, q, k)

    # a hidden key whose score, 2000 and more, would leave nothing to the others
    high_mask = padding.copy()
    q[..., 0], k[..., 0, 0], high_mask[..., 0], high_mask[..., 1] = 1, 2000 * K**0.5, True, False
    high = {"q": q, "k": k, "mask": high_mask}

    return [
        plain,
        case("a Boolean mask (T, S)", mask=hidden),
        case("a Boolean mask (B, 1, 1, S)", mask=padding),
        extended(case("a finite float mask", mask=rng.normal(size=(T, S)))),
        extended(case("a float mask of 0 and −inf", mask=np.where(some_hidden(rng, T, S), -np.inf, 0))),
        extended(case("a float mask of numbers and −inf", mask=np.where(padding, -np.inf, rng.normal(size=(H, T, S))))),
        extended(case("a tuple of masks", mask=(padding, rng.normal(size=(T, S)), hidden & ~in_all))),
        case("inputs (T, K) and (S, K) plus a mask", {"K": K + 7}, "B H", mask=some_hidden(rng, T, S)),
        case("inputs (B, T, K) and (B, S, K)", without="H"),
        case("all sizes equal plus a mask (T, S)", equal, mask=some_hidden(rng, n, n)),
        case("all sizes equal plus a mask (B, 1, 1, S)", equal, mask=some_hidden(rng, B, 1, 1, n)),
        case("inputs (T, K) with all sizes equal", equal, "B H"),
        case("scores of ±10,000", **far),
        extended(case("a row hidden whole", mask=whole_row)),
        extended(case("a row hidden whole by −inf", mask=np.where(whole_row, -np.inf, rng.normal(size=(T, S))))),
        *([] if is_of_scores else [case("a hidden score far above all others", **high)]),
    ]


def scaled_cases(rng):
    return attention_cases(attention_calls(rng, F.scaled_dot_product_attention))


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


def scaled_dot_product_attention(q, k, v, mask=None):
    scale = 1 / np.sqrt(q.shape[-1])
    scores = q @ np.swapaxes(k, -1, -2) * scale
    scores = masked(scores, mask)
    weights = softmax(scores)
    out = weights @ v
    return out, weights


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
    """The cases with heads and one mask, with a bias, and those without it."""
    case = attention_calls(rng, F.unscaled_attention)
    B, _, T, S, *_ = case.sizes.values()
    return [
        *(one for one in attention_cases(case) if not re.search("^inputs|tuple", one.label)),
        case("no bias", bias=None),
        case("a mask (T, S) without a bias", bias=None, mask=some_hidden(rng, T, S)),
        case("as many heads as rows of the batch", {"H": B}),
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
        F.attention_scores, attention_scores, lambda rng: attention_cases(attention_calls(rng, F.attention_scores)),
    ),
    *SHEET.both(
        F.scaled_dot_product_attention, scaled_dot_product_attention, scaled_dot_product_attention_backward,
        scaled_cases, without=_NOT_BACKWARD,
    ),
    *SHEET.both(
        F.unscaled_attention, unscaled_attention, unscaled_attention_backward, unscaled_cases,
        without=["10,000", "far above"],  # all weights 0 or 1: no gradient
    ),
]  # fmt: skip
