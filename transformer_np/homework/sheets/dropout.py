"""Dropout and its backward."""

import copy  # noqa: F401 - for the mistakes
import math

import numpy as np

from ... import functional as F
from ..exercise import Case, draw_sizes, extended
from .draws import pairs
from .sheet import Sheet

SHEET = Sheet(__file__)


def dropout_cases(rng):
    def some(*shape):
        """Numbers of that shape, none of them near 0."""
        return rng.choice([-1, 1], shape) * rng.uniform(0.5, 2, shape)

    def generator():
        return np.random.default_rng(rng.integers(2**31))

    sizes = draw_sizes(rng, "B T D", least=22)  # large enough to count
    x = some(*sizes.values())
    p = float(rng.choice([0.2, 0.25]))  # so that p, 1 − p, ½ and (1 − p)² can be told apart
    few = draw_sizes(rng, "B T D", least=8)
    small = some(*few.values())
    zeros = np.where(rng.random(small.shape) < 0.5, 0.0, small)
    return [
        Case("", (x, p, generator()), sizes=sizes),
        extended(Case("an int seed", (small, p, int(rng.integers(2**31))), sizes=few)),
        Case("p above ½", (small, 0.7, generator()), sizes=few),
        Case("p = 0", (small, 0.0, generator()), sizes=few),
        Case("some x exactly 0", (zeros, p, generator()), sizes=few),
        Case("x of one axis", (small.reshape(-1), p, generator())),
        Case("x of four axes", (some(2, *few.values()), p, generator()), sizes=few),
    ]


def drive_dropout(answer, x, p, rng):
    """Call the answer four times, with an int seed twice and with the next one twice: [(y, keep), …]."""
    seeds = [rng, rng, rng + 1, rng + 1] if isinstance(rng, int) else [rng] * 4
    return pairs(answer(x, p, seed) for seed in seeds)


_LARGE = 5000  # entries; from there on shares are counted


def view_dropout(case, calls):
    """What every right answer has in common, whatever its random numbers, as two arrays of x's shape.

    y: x times the factor of the entries that are not 0; in a large array the last entry is another number unless the
    right share of entries is left. keep: its first entries are facts about the mask, the others are 0.
    """
    x, p, _ = case.arguments
    if isinstance(calls, tuple) and len(calls) == 2:  # one of them is None
        return calls
    if not isinstance(calls, list) or len(calls) != 4 or not all(isinstance(pair, list) for pair in calls):
        raise ValueError("no pairs of y and keep")
    y, keep = calls[0]
    if y.shape == x.shape and y.dtype.kind in "biuf":
        y = view_y(x, p, y, keep)
    if keep.shape == x.shape and keep.dtype.kind in "biuf":
        facts = _facts_about_keep(x, p, calls)
        keep = np.zeros(x.size)
        keep[: len(facts)] = facts
        keep = keep.reshape(x.shape)
    return y, keep if keep.shape == x.shape else np.zeros(keep.shape)


def view_y(x, p, y, keep):
    seen = np.zeros(x.shape)
    if ((y == 0) | (y == 1)).all():
        return seen + 1  # no numbers but a mask
    filled = y[keep == 0] if keep.shape == y.shape else y[:0]
    if filled.size and (filled == filled[0]).all() and filled[0] != 0:
        return seen + 2  # not 0 but another number
    with np.errstate(all="ignore"):
        factors = np.where(x == 0, np.where(y == 0, 1 / (1 - p), np.inf), y / x)[y != 0]
    low, high = (factors.min(), factors.max()) if factors.size else (1 / (1 - p),) * 2
    left = (y != 0).sum() / max(1, (x != 0).sum())
    one_factor = low == high or np.isclose(low, high, rtol=1e-4)
    if not one_factor and not np.isclose([low, high], [1, 1 / (1 - p)], rtol=1e-4).all():
        return seen  # nor the two factors of entries that were scaled and entries that stayed as they were
    if x.size >= _LARGE and np.isclose(high, 1 / left, rtol=1e-9) and not np.isclose(high, 1 / (1 - p), rtol=1e-9):
        low = high = -1  # the share that happened to be kept
    flat = x.reshape(-1)
    seen = np.where(np.arange(x.size) % 2, low * flat, high * flat)
    zero = y == 0
    shared = zero.any() and any((zero == zero.take([0], axis)).all() for axis in range(x.ndim))
    if x.size >= _LARGE:  # if many entries have one random number, their share proves nothing
        seen[-1] *= 7 if shared and not zero.all() else _share(left, p, x.size)
    return seen.reshape(x.shape)


def _share(left, p, size):
    """1 for a share that 1 − p explains, within 5 standard deviations, another number for the share of a mistake."""
    normal_above = math.erfc(p / math.sqrt(2)) / 2  # of normally distributed numbers
    shares = {1: 1 - p, 2: p, 3: 0.5, 4: normal_above, 5: 1.0, 6: 0.0}
    for code, share in shares.items():
        if abs(left - share) <= 5 * np.sqrt(share * (1 - share) / size) + 1e-9:
            return code
    return 0


def _facts_about_keep(x, p, calls):
    y, keep = calls[0]
    kept, scale = keep != 0, float(keep.max()) or 1.0
    even = (~kept | (keep == scale)).all()  # one number for all that are kept
    agrees = ((y != 0) == kept)[x != 0].mean()
    shared = [p > 0 and kept.shape[a] > 1 and (kept == kept.take([0], a)).all() for a in range(-min(3, x.ndim), 0)]
    large = x.size >= _LARGE and not any(shared)
    counts = {int((other[1] != 0).sum()) for other in calls if other[1].shape == x.shape}
    facts = [
        np.round(scale, 4) if even and scale > 0 else -1,
        agrees if agrees in (0, 1) else 0.5,
        *(shared if x.size >= _LARGE else [0] * len(shared)),
        _share(kept.mean(), p, x.size) if large else 1,
        large and 0 < p and len(counts) == 1 and not _same_keep(calls, 0, 1),  # a number fixed beforehand
        keep.dtype == bool,
        p > 0 and (x == 0).any() and not kept[x == 0].any(),  # read off y
    ]
    if p > 0 and x.size >= 100 and not any(shared):
        facts += [_same_keep(calls, 0, 1), _same_keep(calls, 1, 2)]
    return facts


def _same_keep(calls, i, j):
    return np.array_equal(calls[i][1], calls[j][1])


def dropout(x, p, rng):
    rng = np.random.default_rng(rng)
    keep = rng.random(x.shape) >= p
    kept = x * keep
    y = kept / (1 - p)
    return y, keep


def shared_along(axes, rng, shape):
    """Random numbers of this shape, each shared by all entries along these axes. Used by the mistakes only."""
    drawn = [1 if axis - len(shape) in axes else size for axis, size in enumerate(shape)]
    return np.broadcast_to(rng.random(drawn), shape)


def dropout_backward(dy, keep, p):
    dx = dy * keep
    return dx / (1 - p)


EXERCISES = SHEET.both(
    F.dropout, dropout, dropout_backward, dropout_cases, without=["seed", "exactly 0"],
    first={"drive": drive_dropout, "view": view_dropout},
)  # fmt: skip
