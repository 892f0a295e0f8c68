"""Verdicts on printed numbers: whether they follow from the formula, decided from the two numbers alone."""

import numpy as np

REPRODUCED = "reproduced"
TRUNCATED = "truncated in print"
ERRATUM = "erratum"
FITTED = "weights fitted"  # to the printed results: some weights would give any numbers of this rank
ANSWERED = "answered here"  # an exercise, whose answer the documents do not print
HOLDS, SLIP = "holds", "slip"  # of statements in words

_NOISE = 1e-12  # the rounding error of an exact result in float64


def differences(printed, computed):
    """|printed − computed|, entry by entry; two equal infinities differ by 0."""
    printed, computed = np.asarray(printed, np.float64), np.asarray(computed, np.float64)
    if printed.shape != computed.shape:
        raise ValueError(f"printed and computed must have one shape, got {printed.shape} and {computed.shape}")
    same = printed == computed
    return np.abs(np.where(same, 0, printed) - np.where(same, 0, computed))


def is_rounded(printed, computed, digits):
    """Where the printed entry is the computed one rounded to `digits` decimals (None: the same number).

    |printed − computed| ≤ ½ · 10^−digits + 1e−12
    """
    half_a_unit = 0.0 if digits is None else 0.5 * 10.0**-digits
    return differences(printed, computed) <= half_a_unit + _NOISE


def is_cut_off(printed, computed, digits):
    """Where the printed entry is the computed one cut off after `digits` decimals (None: nowhere)."""
    if digits is None:
        return np.zeros(np.shape(printed), bool)
    return differences(printed, np.trunc(np.asarray(computed) * 10.0**digits) / 10.0**digits) <= _NOISE


def verdict(printed, computed, digits):
    """ "reproduced" if every printed entry is the computed one rounded, "truncated in print" if all others are the
    computed one cut off, else "erratum". NaN never agrees."""
    rounded = is_rounded(printed, computed, digits)
    if rounded.all():
        return REPRODUCED
    return TRUNCATED if (rounded | is_cut_off(printed, computed, digits)).all() else ERRATUM
