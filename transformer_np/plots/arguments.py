"""What pictures are given: words, numbers and weights, checked and rounded."""

import re

import numpy as np

from ..support.checks import as_array, as_list
from .sizes import LONGEST_WORD


def as_words(name, words, count, what):
    """The words as shown in a picture; ValueError for a wrong number of words."""
    if isinstance(words, str):
        raise TypeError(f"{name} must be a list of words, got the string {words!r}; use its .split()")
    words = [str(word) for word in as_list(name, words, "words")]
    if len(words) != count:
        some = ", ".join(words[:12]) + (", …" if len(words) > 12 else "")
        raise ValueError(f"{name} must be {count} words, one for each {what}; got {len(words)}: {some}")
    return [visible(word) for word in words]


def visible(word):
    """The word with signs for blanks at its ends and for line breaks, cut to LONGEST_WORD characters."""
    word = re.sub(r"^ +| +\Z", lambda blanks: "␣" * len(blanks[0]), word)
    word = word.replace("\n", "⏎").replace("\t", "⇥")
    return word if len(word) <= LONGEST_WORD else word[: LONGEST_WORD - 1] + "…"


def as_numbers(name, values, *axes):
    """An array of finite numbers. axes: those that a non-empty one may have, such as "(T, S)"; any by default"""
    values = as_array(values, name)
    if axes and (values.ndim not in [len(names.strip("(,)").split(",")) for names in axes] or 0 in values.shape):
        raise ValueError(f"{name} must have the axes {' or '.join(axes)}, got shape {values.shape}")
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be an array of numbers, got {values.dtype}")
    if not np.isfinite(values).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(f"{name} must be finite, got {values[where]} at index {where}")
    return values.astype(float) if values.dtype == bool else values


def as_weights(weights, *axes):
    """Attention weights, rounded. axes: those that they may have, such as "(T, S)", "(H, T, S)"

    Raises ValueError for other axes and for weights outside 0 … 1.
    """
    weights = steady(as_numbers("weights", weights, *axes))
    low, high = weights.min(), weights.max()
    if low < -1e-5 or high > 1 + 1e-5:
        raise ValueError(f"weights must lie in 0 … 1, as after the softmax; got {low:.4g} … {high:.4g}")
    return weights


def steady(values):
    """The values, rounded to six digits of the largest. No colour, order or number of a picture may depend on the last
    bits of a sum, which differ between processors: 0.125 would sometimes be shown as 0.13."""
    largest = np.abs(values).max(initial=0)
    return np.round(values, 5 - int(np.floor(np.log10(largest)))) if largest > 0 else values
