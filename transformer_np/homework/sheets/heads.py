"""Cutting features into heads, and laying them side by side again."""

from ... import functional as F
from ..exercise import Case, draw_sizes
from .sheet import Sheet

SHEET = Sheet(__file__)


def heads_sizes(rng):
    """The label and the sizes of each case, the same for both exercises."""
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
        yield label, {**new, "D": new["H"] * new["K"]}


def split_heads_cases(rng):
    return [
        Case(label, (rng.normal(size=(sizes["B"], sizes["T"], sizes["D"])), sizes["H"]), sizes=sizes)
        for label, sizes in heads_sizes(rng)
    ]


def split_heads(x, num_heads):
    B, T, D = x.shape
    H, K = num_heads, D // num_heads
    return x.reshape(B, T, H, K).transpose(0, 2, 1, 3)


def merge_heads_cases(rng):
    return [
        Case(label, (rng.normal(size=[sizes[letter] for letter in "BHTK"]),), sizes=sizes)
        for label, sizes in heads_sizes(rng)
    ]


def merge_heads(x):
    B, H, T, K = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, H * K)


EXERCISES = [
    SHEET.exercise(F.split_heads, split_heads, split_heads_cases, {"heads": "B H T K"}),
    SHEET.exercise(F.merge_heads, merge_heads, merge_heads_cases, {"x": "B T D"}),
]
