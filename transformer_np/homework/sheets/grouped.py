"""Keys and values that several heads of queries share."""

import numpy as np  # noqa: F401 - for the mistakes

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes


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
    mistakes="""
- the groups one after another:  x.repeat(repeats, axis=1) -> np.tile(x, (1, repeats, 1, 1))
  The heads come as 0, 1, …, 0, 1, … (np.tile). The heads of a group lie side by side: 0, 0, …, 1, 1, … (np.repeat).
- along the batch:  axis=1 -> axis=0
  The batch is repeated. Repeat the heads, axis 1.
- along the keys:  axis=1 -> axis=2
  Each key is repeated. Repeat the heads, axis 1.
- along the features:  axis=1 -> axis=3
  Each feature is repeated. Repeat the heads, axis 1.
- not repeated:  x.repeat(repeats, axis=1) -> x
  The G heads come back as they were. There are H = G · repeats heads of queries: each head is repeated.
- an axis of its own:  x.repeat(repeats, axis=1) -> x[:, :, None].repeat(repeats, axis=2)
  The copies of a head have an axis of their own, (B, G, repeats, S, K). Reshape it into the heads: (B, H, S, K).
- only the first head:  x.repeat(repeats, axis=1) -> x[:, :1].repeat(repeats * x.shape[1], axis=1)
  All heads get the first head of keys. Each of the G heads serves its own group.
- once too often:  x.repeat(repeats, axis=1) -> x.repeat(repeats + 1, axis=1)
  Each head comes once too often. `repeats` counts the head itself: H = G · repeats.
- divided among the heads:  x.repeat(repeats, axis=1) -> x.repeat(repeats, axis=1) / repeats
  The heads are divided by `repeats`. Each head of queries sees the whole key.
- flattened:  x.repeat(repeats, axis=1) -> np.repeat(x, repeats)
  np.repeat without an axis flattens x. Repeat along the heads, axis=1.
""",
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
    mistakes="""
- mean for sum:  .sum(axis=2) -> .mean(axis=2)
  The gradients of a group are averaged. Add them: each head of queries used the whole key.
- only the first head of a group:  .sum(axis=2) -> [:, :, 0]
  Only the gradient of the first head of each group comes back. Add those of all its heads.
- only the last head of a group:  .sum(axis=2) -> [:, :, -1]
  Only the gradient of the last head of each group comes back: = where there should be +=. Add those of all its heads.
- the groups one after another:
    dy.reshape(B, H // repeats, repeats, S, K).sum(axis=2) -> dy.reshape(B, repeats, H // repeats, S, K).sum(axis=1)
  The heads 0, G, 2G, … are added. The heads of a group lie side by side: reshape to (B, G, repeats, S, K).
- summed over the groups:  .sum(axis=2) -> .sum(axis=1)
  The sum runs over the groups. It runs over the copies of one group, axis 2 of (B, G, repeats, S, K).
- not summed:  dy.reshape(B, H // repeats, repeats, S, K).sum(axis=2) -> dy
  The gradients of all H heads come back. There are G = H / repeats heads of keys: add the gradients of each group.
- the axis of the copies kept:  .sum(axis=2) -> .sum(axis=2, keepdims=True)
  The axis of the copies is still there, (B, G, 1, S, K). Sum without keepdims.
- the largest:  .sum(axis=2) -> .max(axis=2)
  The largest gradient of each group comes back. Add the gradients of all its heads.
- one sum for all heads:  .sum(axis=2) -> .sum(axis=(1, 2), keepdims=True).repeat(H // repeats, axis=1)[:, :, 0]
  The gradients of all heads are added. Each group has a sum of its own.
- a sign wrong:  return dy.reshape -> return -dy.reshape
  The sign of the gradient is wrong: dx is the sum, not its negative.
""",
)

EXERCISES = [REPEAT, REPEAT_BACKWARD]
