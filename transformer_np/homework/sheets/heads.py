"""Cutting features into heads, laying them side by side again, and keys and values that several heads share."""

from functools import partial

import numpy as np  # noqa: F401 - for the mistakes

from ... import functional as F
from ..exercise import draw_sizes
from .draws import Calls
from .sheet import Sheet

SHEET = Sheet(__file__)


def heads_cases(rng, function):
    """The calls of split_heads, or of merge_heads."""
    sizes = draw_sizes(rng, "B H T K", least=3)
    H = sizes["H"]
    for label, changed in (
        ("", {}),
        ("as many tokens as heads", {"T": H}),
        ("twice as many tokens as heads", {"T": 2 * H}),
        ("as many features in a head as tokens", {"K": sizes["T"]}),
        ("as many features in a head as heads", {"K": H}),
        ("one head", {"H": 1}),
        ("one feature in each head", {"K": 1}),
        ("one row in the batch", {"B": 1}),
    ):
        new = {**sizes, **changed}
        options = {"num_heads": new["H"]} if function is F.split_heads else {}
        yield Calls(rng, function, {**new, "D": new["H"] * new["K"]})(label, **options)


def split_heads(x, num_heads):
    B, T, D = x.shape
    H, K = num_heads, D // num_heads
    return x.reshape(B, T, H, K).transpose(0, 2, 1, 3)


def merge_heads(x):
    B, H, T, K = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, H * K)


def repeat_cases(rng):
    sizes = draw_sizes(rng, "B G S K", least=3)
    repeats = int(rng.choice([n for n in (2, 3, 4, 5) if n != sizes["G"]]))
    for label, changed, times in (
        ("", {}, repeats),
        ("as many repeats as groups", {}, sizes["G"]),
        ("one group", {"G": 1}, repeats),
        ("repeats = 1", {}, 1),
    ):
        new = sizes | changed
        yield Calls(rng, F.repeat_heads, new | {"H": new["G"] * times})(label, repeats=times)


def repeat_heads(x, repeats):
    return x.repeat(repeats, axis=1)


def repeat_heads_backward(dy, repeats):
    B, H, S, K = dy.shape
    return dy.reshape(B, H // repeats, repeats, S, K).sum(axis=2)


EXERCISES = [
    SHEET.exercise(F.split_heads, split_heads, partial(heads_cases, function=F.split_heads), {"heads": "B H T K"}),
    SHEET.exercise(F.merge_heads, merge_heads, partial(heads_cases, function=F.merge_heads), {"x": "B T D"}),
    *SHEET.both(F.repeat_heads, repeat_heads, repeat_heads_backward, repeat_cases),
]
