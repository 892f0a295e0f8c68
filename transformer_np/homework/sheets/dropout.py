"""Dropout and its backward."""

import numpy as np

from ... import functional as F
from ...functional.activations import erf
from ..exercise import Case, Exercise, Result, draw_sizes, extended
from .activations import draw, with_zeros

# --- dropout ----------------------------------------------------------------------------------------------------------


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
        Case("x of one axis", (small.reshape(-1), p, generator()), sizes=few),
        Case("x of four axes", (some(2, *few.values()), p, generator()), sizes=few),
    ]


def drive_dropout(answer, x, p, rng):
    """Call the answer four times, with an int seed twice and with the next one twice: [(y, keep), …]. An output that is
    not a pair is returned as it is."""
    seeds = [rng, rng, rng + 1, rng + 1] if isinstance(rng, int) else [rng] * 4
    pairs = []
    for seed in seeds:
        output = answer(x, p, seed)
        if not isinstance(output, tuple | list) or len(output) != 2:
            return output
        pairs.append([np.array(part) for part in output])  # copies: the next call may write into x
    return pairs


_LARGE = 5000  # entries; from there on shares are counted


def view_dropout(case, pairs):
    """What every right answer has in common, whatever its random numbers, as two arrays of x's shape.

    y: x times the factor of the entries that are not 0; in a large array the last entry is another number unless the
    right share of entries is left. keep: its first entries are facts about the mask, the others are 0.
    """
    x, p, _ = case.arguments
    if not isinstance(pairs, list) or len(pairs) != 4 or not all(isinstance(pair, list) for pair in pairs):
        raise ValueError("no pairs of y and keep")
    y, keep = pairs[0]
    if y.shape == x.shape and y.dtype.kind in "biuf":
        y = view_y(x, p, y, keep)
    if keep.shape == x.shape and keep.dtype.kind in "biuf":
        facts = _facts_about_keep(x, p, pairs)
        keep = np.zeros(x.size)
        keep[: len(facts)] = facts
        keep = keep.reshape(x.shape)
    return y, keep


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
    if x.size >= _LARGE:
        seen[-1] *= _share(left, p, x.size)
    return seen.reshape(x.shape)


def _share(left, p, size):
    """1 for a share that 1 − p explains, within 5 standard deviations, another number for the share of a mistake."""
    shares = {1: 1 - p, 2: p, 3: 0.5, 4: _normal_above(p), 5: 1.0, 6: 0.0}
    for code, share in shares.items():
        if abs(left - share) <= 5 * np.sqrt(share * (1 - share) / size) + 1e-9:
            return code
    return 0


def _normal_above(p):
    """The share of normally distributed numbers above p."""
    return 0.5 * (1 - float(erf(np.array([p]) / np.sqrt(2))[0]))


def _facts_about_keep(x, p, pairs):
    y, keep = pairs[0]
    scale = float(keep.max()) or 1.0
    kept = keep != 0
    even = (~kept | (keep == scale)).all()  # one number for all that are kept
    facts = [float(np.round(scale, 4)) if even and scale > 0 else -1.0]
    agrees = ((y != 0) == kept)[x != 0].mean()
    facts.append(agrees if agrees in (0, 1) else 0.5)
    shared = [
        float(p > 0 and kept.shape[a] > 1 and (kept == kept.take([0], a)).all()) for a in range(-min(3, x.ndim), 0)
    ]
    large = x.size >= _LARGE and not any(shared)
    facts += shared if x.size >= _LARGE else [0.0] * len(shared)
    facts.append(_share(kept.mean(), p, x.size) if large else 1.0)
    counts = {int((other[1] != 0).sum()) for other in pairs if other[1].shape == x.shape}
    facts.append(
        float(large and 0 < p and len(counts) == 1 and not _same_keep(pairs, 0, 1))
    )  # a number fixed beforehand
    facts.append(float(keep.dtype == bool))
    facts.append(float(p > 0 and (x == 0).any() and not kept[x == 0].any()))  # read off y
    if p > 0 and x.size >= 100 and not any(shared):
        facts.append(float(_same_keep(pairs, 0, 1)))
        facts.append(float(_same_keep(pairs, 1, 2)))
    return facts


def _same_keep(pairs, i, j):
    return np.array_equal(pairs[i][1], pairs[j][1])


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


DROPOUT = Exercise(
    F.dropout,
    results=(Result("y"), Result("keep")),
    cases=dropout_cases,
    answer=dropout,
    hints=(
        "If an entry is 0 with probability p, by what do the others have to grow for the mean to stay?",
        "keep with probability 1 − p, each entry for itself; y = x · keep / (1 − p)",
        "section 3 of the paper on dropout; np.random.default_rng(rng) takes a Generator or an int, .random(shape) is "
        "uniform in [0, 1).",
    ),
    difficulty=2,
    section="Srivastava et al. 2014",
    chapter="Feed-forward network and layer norm",
    place=7,
    drive=drive_dropout,
    view=view_dropout,
    mistakes="""
- kept with probability p:  >= p -> < p
  An entry is kept with probability p. p is the probability to drop: keep where a uniform random number is ≥ p, which
  happens with probability 1 − p.
- p taken for the probability to keep:
    >= p -> < p
    / (1 - p) -> / p
  p is taken for the probability to keep: kept with p and scaled by 1/p. Here p is the probability to drop; 1 − p of the
  entries are kept and scaled by 1/(1 − p).
- kept with probability ½, whatever p:  >= p -> < 0.5
  Half of the entries are kept, whatever p is. The probability to keep is 1 − p.
- kept with another probability:  >= p -> >= p / 2
  The share of entries that are kept is not 1 − p, nor p. Keep an entry where a uniform random number in [0, 1) is ≥ p:
  that happens with probability 1 − p, the same everywhere in the array.
- Gaussian noise for a mask:
    rng.random(x.shape) >= p -> rng.normal(1, np.sqrt(p / (1 - p)), x.shape)
    kept / (1 - p) -> kept
  x is multiplied by noise of many values. Here an entry is either dropped, 0, or kept and scaled by 1/(1 − p).
- the kept entries dropped:  x * keep -> x * ~keep
  The mask is applied the wrong way around: y is 0 where keep is True. y = x · keep / (1 − p).
- normal draws:  rng.random(x.shape) -> rng.normal(size=x.shape)
  The random numbers are normally distributed (rng.normal). Compared with p they have to be uniform in [0, 1):
  rng.random.
- a fixed number dropped:
    rng.random(x.shape) >= p -> rng.permutation(x.size).reshape(x.shape) >= round(p * x.size)
  The number of dropped entries is fixed beforehand, p of the whole. Every entry is drawn for itself, with probability
  p, independent of the others.
- no 1/(1 − p):  kept / (1 - p) -> kept
  The scale 1/(1 − p) is missing. With it the mean of each entry stays the same, and nothing needs to change when
  dropout is off.
- scaled by 1/p:  / (1 - p) -> / p
  The kept entries are scaled by 1/p. A share 1 − p is kept, so the scale that keeps the mean is 1/(1 − p).
- multiplied by 1 − p:  / (1 - p) -> * (1 - p)
  The kept entries are multiplied by 1 − p. Divide by it: that makes the mean smaller still. (The first paper did it at
  test time.)
- multiplied by p:  / (1 - p) -> * p
  The kept entries are multiplied by p. The scale that keeps the mean is 1/(1 − p).
- 1/√(1 − p):  / (1 - p) -> / np.sqrt(1 - p)
  The kept entries are scaled by 1/√(1 − p). The scale that keeps the mean is 1/(1 − p), without root.
- 1/(1 + p):  / (1 - p) -> / (1 + p)
  The kept entries are scaled by 1/(1 + p): a sign is wrong, 1/(1 − p).
- 1 + p:  / (1 - p) -> * (1 + p)
  The kept entries are scaled by 1 + p. The scale that keeps the mean is 1/(1 − p).
- scaled twice:  / (1 - p) -> / (1 - p) ** 2
  The kept entries are scaled by 1/(1 − p) twice.
- scaled by the share that was kept:  / (1 - p) -> / keep.mean()
  The kept entries are divided by the share that happened to be kept. It is the probability, 1/(1 − p), a fixed number:
  the entries are independent, and the backward has to know the scale.
- nothing dropped:  x * keep -> x
  keep is drawn but not used for y: nothing is set to 0, the mask is not multiplied in.
- dropped entries stay as they were:  kept / (1 - p) -> np.where(keep, x / (1 - p), x)
  The dropped entries stay as they were in x. They become 0.
- dropped entries set to another number than 0:  kept / (1 - p) -> np.where(keep, x / (1 - p), 7)
  The dropped entries become a number that is not 0. They become 0: y = x · keep / (1 − p).
- y and keep from different draws:  x * keep -> x * (rng.random(x.shape) >= p)
  y and keep do not belong together: random numbers are drawn twice. The backward needs the very mask that made y.
- keep inverted:  y, keep -> y, ~keep
  keep is inverted: True where an entry was dropped. It is True where it was kept.
- keep read off y:  y, keep -> y, y != 0
  keep is read off the result, y ≠ 0. Where x is 0 already, y is 0 although the entry was kept: return the mask that was
  drawn.
- keep as numbers:  y, keep -> y, keep.astype(int)
  keep holds the numbers 1 and 0. It must be Boolean: return the comparison with p as it is.
- the scale in keep:  y, keep -> y, keep / (1 - p)
  The scale 1/(1 − p) is multiplied into keep, which is returned. keep is the mask alone, True or False;
  dropout_backward scales by itself.
- y for keep:  y, keep -> y, y
  The second result is y once more. It is keep, the mask: True where an entry was kept.
- y and keep exchanged:  y, keep -> keep, y
  y and keep are returned in each other's place: y comes first.
- one mask for all sentences:  rng.random(x.shape) -> shared_along([-3], rng, x.shape)
  One mask is drawn for a sentence and shared over the batch (the first axis). Every entry is drawn for itself: a random
  number for each entry of x.shape.
- one mask for all words of a sentence:  rng.random(x.shape) -> shared_along([-2], rng, x.shape)
  One mask of features is drawn for each sentence and shared by all its words. Every entry is drawn for itself: a random
  number for each entry of x.shape.
- whole words dropped:  rng.random(x.shape) -> shared_along([-1], rng, x.shape)
  One random number is drawn for each row: whole words (rows) are kept or dropped. Every entry is drawn for itself: a
  random number for each entry of x.shape.
- whole features dropped:  rng.random(x.shape) -> shared_along([-3, -2], rng, x.shape)
  One random number is drawn for each feature, shared by all rows: whole columns are kept or dropped. Every entry is
  drawn for itself: a random number for each entry of x.shape.
- whole sentences dropped:  rng.random(x.shape) -> shared_along([-2, -1], rng, x.shape)
  One random number is drawn for each sentence of the batch. Every entry is drawn for itself: a random number for each
  entry of x.shape.
- one mask entry for the same word of all sentences:  rng.random(x.shape) -> shared_along([-3, -1], rng, x.shape)
  One random number is drawn for each place in the sentence, shared by the batch and all features. Every entry is drawn
  for itself: a random number for each entry of x.shape.
- all or nothing:  rng.random(x.shape) -> shared_along([-3, -2, -1], rng, x.shape)
  A single random number decides over the whole array: all is kept or all dropped. Every entry is drawn for itself: a
  random number for each entry of x.shape.
- the seed not used:  np.random.default_rng(rng) -> np.random.default_rng()
  rng is not used: the numbers come from NumPy's global generator (np.random…) or from a new one. The same int seed has
  to give the same mask.
- always the same mask:  np.random.default_rng(rng) -> np.random.default_rng(0)
  rng is not used: the seed is a fixed one, and the mask is the same on every call. Draw from rng; another seed has to
  give another mask, and a Generator a new one on every call.
- an int seed does not work:  rng = np.random.default_rng(rng) -> pass
  It fails with an int seed, which has no .random(). rng is a Generator or an int; np.random.default_rng(rng) makes a
  Generator of either.
- a Generator does not work:  np.random.default_rng(rng) -> np.random.RandomState(rng)
  It fails with a Generator for rng, as if it were always a number (np.random.seed). rng is a Generator or an int;
  np.random.default_rng(rng) makes a Generator of either.
""",
)


# --- dropout_backward -------------------------------------------------------------------------------------------------


def dropout_backward_cases(rng):
    sizes, dy = draw(rng)
    deep_sizes, deep = draw(rng, "B H T S")
    p = float(rng.choice([0.2, 0.3, 0.4]))

    def keep(p, shape):
        kept = rng.random(shape) >= p
        kept.flat[:2] = True, False  # some of each
        return kept

    return [
        Case("", (dy, keep(p, dy.shape), p), sizes=sizes),
        Case("p above ½", (dy, keep(0.7, dy.shape), 0.7), sizes=sizes),
        Case("p = 0", (dy, np.ones(dy.shape, bool), 0.0), sizes=sizes),
        Case("dy of one axis", (dy[0, 0], keep(p, dy.shape[-1]), p), sizes=sizes),
        Case("dy of four axes", (deep, keep(p, deep.shape), p), sizes=deep_sizes),
        Case("some dy exactly 0", (with_zeros(rng, dy), keep(p, dy.shape), p), sizes=sizes),
    ]


def dropout_backward(dy, keep, p):
    dx = dy * keep
    return dx / (1 - p)


DROPOUT_BACKWARD = Exercise(
    F.dropout_backward,
    results=(Result("dx"),),
    cases=dropout_backward_cases,
    answer=dropout_backward,
    hints=(
        "The forward multiplied each entry by a number. What are the two values of that number, and what is its "
        "gradient?",
        "dx = dy · keep / (1 − p)",
        "notebook 06, section 1, on what a backward is; y = x · (a constant), entry by entry. keep multiplies as 0 "
        "and 1.",
    ),
    difficulty=1,
    section="Srivastava et al. 2014",
    chapter="Backpropagation",
    place=6,
    mistakes="""
- no 1/(1 − p):  dx / (1 - p) -> dx
  The scale 1/(1 − p) is missing: the forward multiplied the kept entries by it, so the gradient gets the same factor.
- scaled by 1/p:  / (1 - p) -> / p
  The gradient is scaled by 1/p. The forward scaled by 1/(1 − p), so the gradient gets the same factor.
- multiplied by 1 − p:  / (1 - p) -> * (1 - p)
  The gradient is multiplied by 1 − p. Divide by it: the forward's factor is 1/(1 − p), and the backward has the same,
  not its inverse.
- multiplied by p:  / (1 - p) -> * p
  The gradient is multiplied by p. The forward's factor is 1/(1 − p), and the backward has the same.
- 1/√(1 − p):  / (1 - p) -> / np.sqrt(1 - p)
  The gradient is scaled by 1/√(1 − p). The forward's factor is 1/(1 − p), without root.
- 1/(1 + p):  / (1 - p) -> / (1 + p)
  The gradient is scaled by 1/(1 + p): a sign is wrong, 1/(1 − p).
- 1 + p:  / (1 - p) -> * (1 + p)
  The gradient is scaled by 1 + p. The forward's factor is 1/(1 − p), and the backward has the same.
- scaled twice:  / (1 - p) -> / (1 - p) ** 2
  The gradient is scaled by 1/(1 − p) twice: once, as in the forward.
- scaled by the share that was kept:  / (1 - p) -> / keep.mean()
  The gradient is divided by the share that happened to be kept, keep.mean(). The forward's factor is 1/(1 − p), with
  the probability.
- mask inverted:  dy * keep -> dy * ~keep
  The mask is the wrong way around: the gradient passes where the entry was dropped. It passes where keep is True.
- mask not used:  dy * keep -> dy
  keep is not used: dy is scaled but passes everywhere. Where an entry was dropped, x did not reach the loss, and dx is
  0.
- mask from dy:  dy * keep -> dy * (dy > 0)
  The mask is taken from dy, where it is positive. The forward's mask is keep.
- dropped entries pass:  return np.where(keep, dy / (1 - p), dy)
  Where an entry was dropped, dy passes as it came. x did not reach the loss there: dx is 0.
- dy handed on:  return dy
  dy is handed on as it came: dx = dy · keep / (1 − p), the forward's mask and scale.
- dy forgotten:  dy * keep -> keep
  It returns keep / (1 − p) alone. The chain rule multiplies it by dy: dx = dy · keep / (1 − p).
- keep returned:  return keep
  It returns keep, the mask. The chain rule multiplies it by dy: dx = dy · keep / (1 − p).
""",
)

EXERCISES = [DROPOUT, DROPOUT_BACKWARD]
