"""The feed-forward network and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes
from ..notes import hints_of, sections
from .draws import only
from .linear import BIAS_MISTAKES, WEIGHT_MISTAKES, gradients, without_heads

MISTAKES = sections(__file__)

# --- feed_forward -----------------------------------------------------------------------------------------------------


def feed_forward_cases(rng):
    sizes = draw_sizes(rng, "B H T D F")
    B, H, T, D, F_ = sizes.values()
    deep, sizes = sizes, without_heads(sizes)
    x = rng.normal(size=(B, H, T, D))
    w1, b1, w2, b2 = rng.normal(size=(D, F_)), rng.normal(size=F_), rng.normal(size=(F_, D)), rng.normal(size=D)
    v1, c1, v2, c2 = rng.normal(size=(D, D)), rng.normal(size=D), rng.normal(size=(D, D)), rng.normal(size=D)
    return [
        Case("", (x[:, 0], w1, b1, w2, b2), sizes=sizes),
        Case("x of shape (T, D)", (x[0, 0], w1, b1, w2, b2), sizes=only(sizes, "T D F")),
        Case("x of four axes", (x, w1, b1, w2, b2), sizes=deep),
        Case("x of shape (D,)", (x[0, 0, 0], w1, b1, w2, b2), sizes=only(sizes, "D F")),
        Case("d_ff = d_model", (x[:, 0], v1, c1, v2, c2), sizes=sizes | {"F": D}),
    ]


def feed_forward(x, w1, b1, w2, b2):
    before = x @ w1 + b1
    hidden = np.maximum(before, 0)
    y = hidden @ w2 + b2
    return y, hidden


FEED_FORWARD = Exercise(
    F.feed_forward,
    results=(Result("y", "... D"), Result("hidden", "... F")),
    cases=feed_forward_cases,
    answer=feed_forward,
    hints=hints_of(MISTAKES["feed_forward: hints"]),
    difficulty=1,
    section="§7",
    chapter="Feed-forward network and layer norm",
    place=5,
    mistakes=MISTAKES["feed_forward"],
)


# --- feed_forward_backward --------------------------------------------------------------------------------------------


def feed_forward_backward_cases(rng):
    cases = []
    for case in feed_forward_cases(rng):
        x, w1, b1, w2, b2 = case.arguments
        _, hidden = F.feed_forward(x, w1, b1, w2, b2)
        cases.append(Case(case.label, (rng.normal(size=x.shape), x, hidden, w1, w2), sizes=case.sizes))
    return cases


def feed_forward_backward(dy, x, hidden, w1, w2):
    dw2, db2 = gradients(dy, hidden)
    dhidden = dy @ w2.T
    dbefore = dhidden * (hidden > 0)
    dw1, db1 = gradients(dbefore, x)
    dx = dbefore @ w1.T
    return dx, dw1, db1, dw2, db2


FEED_FORWARD_BACKWARD = Exercise(
    F.feed_forward_backward,
    results=(
        Result("dx", "... D"),
        Result("dw1", "D F"),
        Result("db1", "F"),
        Result("dw2", "F D"),
        Result("db2", "D"),
    ),
    cases=feed_forward_backward_cases,
    answer=feed_forward_backward,
    hints=hints_of(MISTAKES["feed_forward_backward: hints"]),
    difficulty=2,
    section="behind §7",
    chapter="Backpropagation",
    place=7,
    mistakes=MISTAKES["feed_forward_backward"] + BIAS_MISTAKES + WEIGHT_MISTAKES + MISTAKES["feed_forward_backward 2"],
)

EXERCISES = [FEED_FORWARD, FEED_FORWARD_BACKWARD]
