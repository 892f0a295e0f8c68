"""Tasks with one right answer each, which `train translate --tokens char` learns from pairs."""

import string

import numpy as np

from ..data import written_dates

LETTERS = np.array(list(string.ascii_lowercase))
SHIFT = dict(zip(string.ascii_lowercase, string.ascii_lowercase[3:] + "abc", strict=True))

ON_WORDS = {  # of 3 to 10 random letters
    "sort": lambda word: "".join(sorted(word)),
    "reverse": lambda word: word[::-1],
    "copy": lambda word: word,
    "Caesar": lambda word: "".join(map(SHIFT.get, word)),
}
TASKS = (*ON_WORDS, "dates", "addition")
PAIRS = dict.fromkeys(TASKS, 5000) | {"addition": 40_000}  # different sources; eight tenths of them to learn from
OPTIONS = {"addition": " --steps 2000 --lr 0.01"}  # beside the defaults
TORCH_STEPS = 2000


def pairs(task, seed=0):
    """[(source, target)] of a task, one of TASKS: different sources in random order."""
    rng, wanted = np.random.default_rng(seed), PAIRS[task]
    if task == "dates":
        dates = written_dates()
        return [dates[i] for i in rng.permutation(len(dates))[:wanted]]
    found = {}
    while len(found) < wanted:
        if task == "addition":
            a, b = rng.integers(0, 1000, size=2)
            found[f"{a}+{b}"] = str(a + b)
        else:
            word = "".join(rng.choice(LETTERS, rng.integers(3, 11)))
            found[word] = ON_WORDS[task](word)
    return list(found.items())
