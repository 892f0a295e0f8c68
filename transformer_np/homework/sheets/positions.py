"""The positional encoding."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, extended


def sinusoidal_encoding_cases(rng):
    length, half = map(int, rng.permutation(np.arange(4, 10))[:2])
    even, odd = 2 * half, 2 * half + 1
    length = 2 * length + 3  # odd: never d_model where that is even

    def case(label, length, d_model, **options):
        return Case(label, (length, d_model), options, {"length": length, "d_model": d_model})

    return [
        case("", length, even),
        extended(case("an odd d_model", length + 1, odd)),
        extended(case("dtype=float64", length, even, dtype=np.float64)),
        extended(case("dtype=float32", length, even, dtype=np.float32)),
        case("more dimensions than positions", 3, 2 * even),
        case("d_model = 4", 5, 4),
    ]


def sinusoidal_encoding(length, d_model, dtype=np.float32):
    position = np.arange(length)[:, None]  # (length, 1)
    dimension = np.arange(d_model)
    i = dimension // 2  # counts pairs of dimensions
    divisor = 10000.0 ** (2 * i / d_model)
    angle = position / divisor  # (length, d_model)
    encoding = np.where(dimension % 2 == 0, np.sin(angle), np.cos(angle))
    return encoding.astype(dtype)


SINUSOIDAL_ENCODING = Exercise(
    F.sinusoidal_encoding,
    results=(Result("encoding", "length d_model"),),
    cases=sinusoidal_encoding_cases,
    answer=sinusoidal_encoding,
    hints=(
        "How many different speeds are there for d_model = 4, and which two dimensions share one?",
        "PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d_model))",
        "notebook 01, section 3; np.arange(0, d_model, 2) and the slices [:, 0::2] and [:, 1::2]. An odd d_model ends "
        "in a sine.",
    ),
    difficulty=2,
    section="§6",
    chapter="Embeddings and positions",
    place=2,
    mistakes="""
- i for 2i:  2 * i -> i
  The exponent is i/d_model. It must be 2i/d_model, i = 0, 1, 2, … counting pairs of dimensions: a factor 2 is missing
  (or the base is 100, which comes to the same). The later pairs turn too fast.
- 4i for 2i:  2 * i -> 4 * i
  The exponent is 4i/d_model. It must be 2i/d_model: the factor 2 is in it twice. `np.arange(0, d_model, 2)` is 2i
  already.
- i counts dimensions, not pairs:  dimension // 2 -> dimension
  i runs over the dimensions 0 … d_model − 1, exponent 2·dimension/d_model. In the formula i counts pairs: the
  dimensions 2i and 2i + 1 share the exponent 2i/d_model, which is 2·(dimension // 2)/d_model.
- i from 1:  dimension // 2 -> dimension // 2 + 1
  i counts pairs from 1, exponent 2(i + 1)/d_model. The first pair has i = 0 and the divisor 10000⁰ = 1.
- 2i + 1 for 2i:  2 * i -> (2 * i + 1)
  The exponent is (2i + 1)/d_model for sine and cosine. It is 2i/d_model, i = 0, 1, 2, …, for both: the first pair turns
  by 1 a position.
- cosine with 2i + 1:  2 * i -> dimension
  The cosine has the exponent (2i + 1)/d_model, its own dimension. Sine and cosine of a pair have the same angle,
  exponent 2i/d_model; else a step of k positions is no rotation.
- cosine of the next pair:  dimension // 2 -> (dimension + 1) // 2
  The cosine has the exponent 2(i + 1)/d_model, that of the next pair. Sine and cosine of a pair have the same angle,
  exponent 2i/d_model.
- d_model − 2 in the exponent:  i / d_model -> i / (d_model - 2)
  The exponent is 2i/(d_model − 2), which is i/(d_model/2 − 1) as in the tensor2tensor code. The paper has 2i/d_model.
- d_model + 1 in the exponent:  i / d_model -> i / (d_model + 1)
  The exponent is divided by d_model + 1. Divide by d_model: 2i/d_model.
- d_model − 1 in the exponent:  i / d_model -> i / (d_model - 1)
  The exponent is 2i/(d_model − 1). The paper has 2i/d_model.
- an odd d_model rounded up in the exponent:  i / d_model -> i / (d_model + d_model % 2)
  With an odd d_model the exponent is 2i/(d_model + 1), as if there were one dimension more. It is 2i/d_model; only the
  last cosine falls off.
- base 1000 for 10000:  10000.0 -> 1000.0
  The base is 1000 where the paper has 10000: a zero is missing.
- base 100000 for 10000:  10000.0 -> 100000.0
  The base is 100000 where the paper has 10000: a zero too many.
- multiplied by the power:  position / divisor -> position * divisor
  pos is multiplied by 10000^(2i/d_model). Divide by it (a sign in the exponent, if you write exp(… log 10000)): later
  pairs must turn more slowly, not faster.
- product for power:  10000.0 ** -> 10000.0 *
  The divisor is 10000 · 2i/d_model, a product, where it is a power, 10000^(2i/d_model). For i = 0 that divides by 0 and
  gives NaN.
- 10000^(2i) / d_model:  (2 * i / d_model) -> (2 * i) / d_model
  The divisor is 10000^(2i) / d_model: brackets around the exponent are missing, 10000 ** (2 * i / d_model).
- pos / 10000^(2i) / d_model:  position / divisor -> position / 10000.0 ** (2 * i) / d_model
  The angle is pos / 10000^(2i) / d_model: brackets around the exponent are missing, 10000 ** (2 * i / d_model).
- (pos / 10000)^(2i / d_model):  position / divisor -> (position / 10000) ** (2 * i / d_model)
  The angle is (pos / 10000)^(2i/d_model): a bracket is in the wrong place. Only 10000 is raised to the power: pos /
  10000^(2i/d_model).
- 10000² · i / d_model:  position / divisor -> position / 10000**2 * i / d_model
  `pos / 10000 ** 2 * i / d_model` is (pos / 10000²) · i / d_model, since ** binds first. Brackets around the exponent
  are missing, 10000 ** (2 * i / d_model).
- logarithm to the base 10:
    position / divisor -> position * np.exp(-2 * i / d_model * np.log10(10000))
  exp(−2i/d_model · log10(10000)) is taken, the logarithm to the base 10. exp needs the natural one, np.log:
  exp(−2i/d_model · ln 10000) = 10000^(−2i/d_model).
- all dimensions at the same speed:  2 * i / d_model -> 2 * i // d_model
  The angle is pos in all dimensions: the divisor 10000^(2i/d_model) is missing, or its exponent is always 0 (`//`
  rounds 2i/d_model down to 0). Each pair has its own frequency.
- pos / 10000 without exponent:  position / divisor -> position / np.full(d_model, 10000)
  The angle is pos / 10000 in all dimensions: the exponent 2i/d_model is missing. Each pair has its own frequency.
- positions from 1:  np.arange(length) -> np.arange(1, length + 1)
  Positions count from 1. The first is pos = 0, its row is 0, 1, 0, 1, …
- positions divided by the length:  position / divisor -> position / length / divisor
  Positions are divided by the length and lie between 0 and 1. They are whole numbers, 0, 1, 2, …: the encoding of a
  position must not depend on the length of the sentence.
- angles in degrees:  position / divisor -> np.radians(position / divisor)
  The angles are turned from degrees to radians (a factor π/180). pos / 10000^(2i/d_model) is in radians already, as
  np.sin wants it.
- angles times 2π:  position / divisor -> 2 * np.pi * position / divisor
  The angles have a factor 2π too much, as if pos were counted in turns. The angle is pos / 10000^(2i/d_model), in
  radians.
- sine and cosine exchanged:  np.sin(angle), np.cos(angle) -> np.cos(angle), np.sin(angle)
  Sine and cosine are exchanged: the even dimensions 2i have the sine, the odd dimensions 2i + 1 the cosine.
- sines only:  np.cos -> np.sin
  There are sines in all dimensions: the odd dimensions 2i + 1 have the cosine.
- cosines only:  np.sin -> np.cos
  There are cosines in all dimensions: the even dimensions 2i have the sine.
- all sines, then all cosines:
    np.where(dimension % 2 == 0, np.sin(angle), np.cos(angle)) ->
        np.concatenate([np.sin(angle[:, 0::2]), np.cos(angle[:, 1::2])], axis=1)
  All sines stand in the first half and all cosines in the second, concatenated, as in some code (tensor2tensor). In the
  paper they alternate: dimension 2i has the sine, 2i + 1 the cosine.
- even positions for even dimensions:  dimension % 2 -> position % 2
  Even positions have sines and odd positions cosines: rows and columns are mixed up. The even dimensions (columns) have
  the sine, the odd ones the cosine, at every position.
- last column of an odd d_model left at 0:
    return encoding ->
        encoding[:, d_model // 2 * 2 :] = 0
        return encoding
  With an odd d_model the last column stays 0. It is a sine: there is one more sine than there are cosines.
- one column less for an odd d_model:  np.arange(d_model) -> np.arange(d_model // 2 * 2)
  With an odd d_model there is one column too few, the last sine: there is one more sine than there are cosines.
- one column more for an odd d_model:  np.arange(d_model) -> np.arange((d_model + 1) // 2 * 2)
  With an odd d_model there is one column too many: the last pair has the sine only, its cosine is cut off.
- fails for an odd d_model:
    encoding = np.where(dimension % 2 == 0, np.sin(angle), np.cos(angle)) ->
        encoding = np.zeros((length, d_model))
        encoding[:, 0::2] = np.sin(angle[:, 0::2])
        encoding[:, 1::2] = np.cos(angle[:, 0::2])
  It fails for an odd d_model: the odd dimensions are one fewer than the even ones, so there is one cosine fewer than
  there are sines, d_model // 2 of them.
- an axis for the batch in front:  return encoding -> return encoding[None]
  There is an axis of length 1 for the batch in front. The result is (length, d_model); adding it to (B, T, D)
  broadcasts as it is.
- transposed:  return encoding -> return encoding.T
  It is transposed, (d_model, length). A row is a position: (length, d_model).
""",
)

EXERCISES = [SINUSOIDAL_ENCODING]
