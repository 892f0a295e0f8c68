"""Attention without a scale, with a bias, and its backward."""

from dataclasses import replace

import numpy as np

from ... import functional as F
from ..exercise import Case
from ..notes import amended
from .attention import ATTENTION_MISTAKES, attention_cases, masked, some_hidden
from .draws import of_forward
from .sheet import Sheet
from .softmax import softmax, softmax_backward

SHEET = Sheet(__file__)


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
        F.unscaled_attention, unscaled_attention, unscaled_cases,
        mistakes=SHEET["unscaled mistakes"]
        + amended(
            ATTENTION_MISTAKES,
            instead=SHEET["unscaled_attention instead"],
            without=(
                "mask added before the scale",
                "a tuple of masks does not work",
                "a tuple of masks used like one array",
                "masks of a tuple added up",
                "masks of a tuple joined as Boolean ones",
                "only the first of several masks",
                "only the last of several masks",
                "Boolean masks of a tuple joined with and",
                "written for four axes only",
                "written for three axes only",
                "softmax over axis 2",  # the queries: there are always four axes
            ),
        ),
    ),
    SHEET.exercise(
        F.unscaled_attention_backward, unscaled_attention_backward,
        of_forward(F.unscaled_attention, unscaled_cases, ["10,000", "far above"]),  # all weights 0 or 1: no gradient
        mistakes=SHEET["unscaled_attention_backward"]
        + amended(
            SHEET["attention: backward mistakes"],
            instead=SHEET["unscaled_attention_backward instead"],
            without=("written for four axes only", "written for three axes only"),
        )
        + SHEET["unscaled_attention_backward 2"],
    ),
]  # fmt: skip
