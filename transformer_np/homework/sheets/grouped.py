"""Keys and values that several heads of queries share."""

import numpy as np  # noqa: F401 - for the mistakes

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes
from ..notes import hints_of, sections

MISTAKES = sections(__file__)


def repeat_cases(rng, backward=False):
    sizes = draw_sizes(rng, "B G S K", least=3)
    repeats = int(rng.choice([n for n in (2, 3, 4, 5) if n != sizes["G"]]))
    cases = []
    for label, changed, times in (
        ("", {}, repeats),
        ("as many repeats as groups", {}, sizes["G"]),
        ("one group", {"G": 1}, repeats),
        ("repeats = 1", {}, 1),
    ):
        new = sizes | changed
        of_queries = {"B": new["B"], "H": new["G"] * times, "S": new["S"], "K": new["K"]}
        shape = of_queries if backward else new
        cases.append(Case(label, (rng.normal(size=tuple(shape.values())), times), sizes=new | of_queries))
    return cases


def repeat_heads(x, repeats):
    return x.repeat(repeats, axis=1)


REPEAT = Exercise(
    F.repeat_heads,
    results=(Result("y", "B H S K"),),
    cases=repeat_cases,
    answer=repeat_heads,
    hints=hints_of(MISTAKES["repeat_heads: hints"]),
    difficulty=1,
    section="Ainslie et al. 2023",
    chapter="Today's Transformers",
    place=6,
    mistakes=MISTAKES["repeat_heads"],
)


def repeat_heads_backward(dy, repeats):
    B, H, S, K = dy.shape
    return dy.reshape(B, H // repeats, repeats, S, K).sum(axis=2)


REPEAT_BACKWARD = Exercise(
    F.repeat_heads_backward,
    results=(Result("dx", "B G S K"),),
    cases=lambda rng: repeat_cases(rng, backward=True),
    answer=repeat_heads_backward,
    hints=hints_of(MISTAKES["repeat_heads_backward: hints"]),
    difficulty=1,
    section="Ainslie et al. 2023",
    chapter="Today's Transformers",
    place=7,
    mistakes=MISTAKES["repeat_heads_backward"],
)

EXERCISES = [REPEAT, REPEAT_BACKWARD]
