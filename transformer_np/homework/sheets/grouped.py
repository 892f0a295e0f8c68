"""Keys and values that several heads of queries share."""

import numpy as np  # noqa: F401 - for the mistakes

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes
from ..notes import sections

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
    hints=(
        "Two heads of queries share a head of keys. Which two: 0 and 1, or 0 and G?",
        "y[b, h] = x[b, h // repeats]",
        "Ainslie et al. 2023; np.repeat repeats each entry, np.tile the whole.",
    ),
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
    hints=(
        "Several heads of queries used the same head of keys. What happens to gradients that come from several places?",
        "dx[b, g] = Σ dy[b, h] over h = g · repeats … (g + 1) · repeats − 1",
        "Ainslie et al. 2023; reshape the heads to (G, repeats), then sum over the copies.",
    ),
    difficulty=1,
    section="Ainslie et al. 2023",
    chapter="Today's Transformers",
    place=7,
    mistakes=MISTAKES["repeat_heads_backward"],
)

EXERCISES = [REPEAT, REPEAT_BACKWARD]
