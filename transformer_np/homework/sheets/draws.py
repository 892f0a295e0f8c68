"""How inputs are drawn that several sheets need."""

import numpy as np

from ..exercise import draw_sizes


def only(sizes, letters):
    """The sizes of these letters alone: those that the arrays of a case have."""
    return {letter: sizes[letter] for letter in letters.split()}


def sizes_without_squares(rng, letters):
    """Sizes without a square for K: 1/√4 would pass for a mean over two."""
    while True:
        sizes = draw_sizes(rng, letters)
        if sizes.get("K") not in (4, 9):
            return sizes


def far_apart(rng, q, k, signs=(-1, 1)):
    """q and k of the same shapes whose scores are some ±10,000 and so far apart in each row that rounding, in float32
    too, does not decide between them; the largest is another one in each row."""
    across = rng.choice(signs, size=(*q.shape[:-1], 1)) * rng.uniform(0.5, 1.5, size=(*q.shape[:-1], 1))
    ranks = rng.permutation(np.arange(k.shape[-2])) - (k.shape[-2] // 2 if len(signs) > 1 else -1)
    return across * (100 + rng.random(q.shape)), ranks[:, None] * (100 + rng.random(k.shape))
