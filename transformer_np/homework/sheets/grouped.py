"""Keys and values that several heads of queries share."""

import numpy as np  # noqa: F401 - for the mistakes

from ... import functional as F
from ..exercise import Case, draw_sizes
from .sheet import Sheet

SHEET = Sheet(__file__)


def repeat_cases(rng, backward=False):
    sizes = draw_sizes(rng, "B G S K", least=3)
    repeats = int(rng.choice([n for n in (2, 3, 4, 5) if n != sizes["G"]]))
    for label, changed, times in (
        ("", {}, repeats),
        ("as many repeats as groups", {}, sizes["G"]),
        ("one group", {"G": 1}, repeats),
        ("repeats = 1", {}, 1),
    ):
        new = sizes | changed
        of_queries = {"B": new["B"], "H": new["G"] * times, "S": new["S"], "K": new["K"]}
        shape = of_queries if backward else new
        yield Case(label, (rng.normal(size=tuple(shape.values())), times), sizes=new | of_queries)


def repeat_heads(x, repeats):
    return x.repeat(repeats, axis=1)


def repeat_heads_backward(dy, repeats):
    B, H, S, K = dy.shape
    return dy.reshape(B, H // repeats, repeats, S, K).sum(axis=2)


EXERCISES = [
    SHEET.exercise(F.repeat_heads, repeat_heads, repeat_cases, {"y": "B H S K"}),
    SHEET.exercise(
        F.repeat_heads_backward, repeat_heads_backward, lambda rng: repeat_cases(rng, backward=True), {"dx": "B G S K"},
    ),
]  # fmt: skip
