"""The backward of attention."""

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes
from ..notes import amended
from .attention import LEADING, attention_inputs, some_hidden
from .draws import only
from .sheet import Sheet
from .softmax import softmax_backward

SHEET = Sheet(__file__)


def attention_backward_cases(rng):
    sizes = draw_sizes(rng, "B H T S K K_v", least=3)
    B, T, S = sizes["B"], sizes["T"], sizes["S"]
    hidden = some_hidden(rng, T, S)
    whole_row = hidden.copy()
    whole_row[1] = True
    n = T
    equal = dict(sizes, T=n, S=n, K=n, K_v=n)

    def case(label, axes=4, mask=None, sizes=sizes):
        q, k, v = attention_inputs(rng, sizes, axes)
        out, weights = F.scaled_dot_product_attention(q, k, v, mask)
        sizes = only(sizes, LEADING[axes] + "T S K K_v")
        return Case(label, (rng.normal(size=out.shape), q, k, v, weights), sizes=sizes)

    return [
        case(""),
        case("hidden keys (weight 0)", mask=some_hidden(rng, B, 1, 1, S)),
        case("hidden keys that differ by query", mask=hidden),
        case("a row hidden whole", mask=whole_row),
        case("a finite float mask in the forward", mask=rng.normal(size=(T, S))),
        case("inputs (T, K) and (S, K)", axes=2, sizes=dict(sizes, K=sizes["K"] + 7)),
        case("inputs (B, T, K) and (B, S, K)", axes=3),
        case("all sizes equal", sizes=equal),
        case("inputs (T, K) with all sizes equal", axes=2, sizes=equal),
    ]


def scaled_dot_product_attention_backward(dout, q, k, v, weights):
    scale = 1 / np.sqrt(q.shape[-1])
    dweights = dout @ np.swapaxes(v, -1, -2)
    dscores = softmax_backward(dweights, weights) * scale
    dq = dscores @ k
    dk = np.swapaxes(dscores, -1, -2) @ q
    dv = np.swapaxes(weights, -1, -2) @ dout
    return dq, dk, dv


EXERCISES = [
    SHEET.exercise(
        F.scaled_dot_product_attention_backward, scaled_dot_product_attention_backward, attention_backward_cases,
        {"dq": "... T K", "dk": "... S K", "dv": "... S K_v"},
        mistakes=amended(SHEET["attention: scale mistakes"], instead=SHEET["scales instead"])
        + SHEET["scales"] + SHEET["backward mistakes"],
    ),
]  # fmt: skip
