"""Rotary positions: the frequencies, the rotation and its backward."""

import numpy as np

from ... import functional as F
from ..exercise import Case, Exercise, Result, draw_sizes, extended
from ..notes import amended

_CHAPTER = "Today's Transformers"
_LINEAR = {"rope_type": "linear", "factor": 4.0}


def llama3(length):
    """A scaling that keeps some of the frequencies, and divides the others."""
    return {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": length,
    }  # fmt: skip


# --- rotary_frequencies -----------------------------------------------------------------------------------------------


def frequencies_cases(rng):
    K = 2 * int(rng.integers(3, 8))
    theta = float(rng.choice([500.0, 2000.0, 500_000.0]))
    return [
        Case("", (K,), sizes={"K": K}),
        Case(f"theta={theta:g}", (K,), {"theta": theta}, {"K": K}),
        Case("K = 2", (2,), sizes={"K": 2}),
        extended(Case("linear scaling", (K,), {"scaling": _LINEAR}, {"K": K})),
        # 8000, 80, 0.8 and 0.008 turns: none between the two factors, where the two are mixed
        extended(Case("the scaling of Llama 3", (8,), {"scaling": llama3(50_000), "theta": 1e8}, {"K": 8})),
        Case("an odd K", (K + 1,), extended=True, raises="ValueError"),
        Case("theta=0", (K,), {"theta": 0.0}, extended=True, raises="ValueError"),
    ]


def rotary_frequencies(K, theta=10000.0, scaling=None):
    if K % 2 or theta <= 0:
        raise ValueError("K must be even and theta positive")
    frequencies = theta ** (-np.arange(0, K, 2) / K)
    if scaling is None:
        return frequencies
    stretched = frequencies / scaling["factor"]
    if scaling["rope_type"] == "linear":
        return stretched
    turns = scaling["original_max_position_embeddings"] * frequencies / (2 * np.pi)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return kept * frequencies + (1 - kept) * stretched


_FREQUENCY_MISTAKES = """
- exponent i/K:  theta ** (-np.arange(0, K, 2) / K) -> theta ** (-np.arange(K // 2) / K)
  The exponent is −i/K. A pair has two features, so the exponent of the pair i is −2i/K.
- exponent 4i/K:  theta ** (-np.arange(0, K, 2) / K) -> theta ** (-2 * np.arange(0, K, 2) / K)
  The exponent is −4i/K, as if K were the number of pairs. It is −2i/K, with K features.
- exponent without minus:  theta ** (-np.arange(0, K, 2) / K) -> theta ** (np.arange(0, K, 2) / K)
  The exponent has no minus, so later pairs turn faster. They turn more slowly: ωᵢ = θ^(−2i/K).
- pairs counted from 1:  np.arange(0, K, 2) -> np.arange(2, K + 1, 2)
  The pairs are counted from 1. The first pair has i = 0 and turns by 1 per position.
- exponent not divided by K:  -np.arange(0, K, 2) / K -> -np.arange(0, K, 2.0)
  The exponent is −2i. Divide it by K: ωᵢ = θ^(−2i/K).
- e for θ:  theta ** (-np.arange(0, K, 2) / K) -> np.exp(-np.arange(0, K, 2) / K)
  The base is e. It is θ: θ^(−2i/K) = exp(−(2i/K) · ln θ).
- always 10000:  theta ** -> 10000.0 **
  The base is 10000, whatever `theta` says.
- factor multiplied:  frequencies / scaling["factor"] -> frequencies * scaling["factor"]
  The frequencies are multiplied by the factor, so the model turns faster. It is to read longer texts: divide by it.
- scaling as linear:  scaling["rope_type"] == "linear" -> scaling["rope_type"] != ""
  All frequencies are divided by the factor, as for "linear". "llama3" keeps those that turn more than high_freq_factor
  times within the original length.
- fast and slow swapped:  kept * frequencies + (1 - kept) * stretched -> (1 - kept) * frequencies + kept * stretched
  The fast pairs are divided by the factor, and the slow ones are kept. It is the other way round: pairs that turn more
  than high_freq_factor times stay as they are.
- radians for turns:  * frequencies / (2 * np.pi) -> * frequencies
  The angle within the original length is compared with the two factors. They count whole turns: divide by 2π.
"""

FREQUENCIES = Exercise(
    F.rotary_frequencies,
    results=(Result("frequencies", "pair"),),
    cases=frequencies_cases,
    answer=rotary_frequencies,
    hints=(
        "The sinusoids of notebook 01 have the same frequencies. How many are there for K features?",
        "ωᵢ = θ^(−2i/K), i = 0 … K/2 − 1",
        "notebook 01, section 6; np.arange(0, K, 2) is 2i.",
    ),
    difficulty=1,
    section="Su et al. 2021",
    chapter=_CHAPTER,
    place=1,
    mistakes=_FREQUENCY_MISTAKES,
)

# --- rotary -----------------------------------------------------------------------------------------------------------


def rotary_cases(rng):
    sizes = draw_sizes(rng, "B H T P", least=3)
    B, H, T, P = sizes.values()
    sizes = {"B": B, "H": H, "T": T, "K": 2 * P}
    x, places = rng.normal(size=(B, H, T, 2 * P)), np.arange(T)
    return [
        Case("", (x, places), sizes=sizes),
        Case("positions from 7 on", (x, places + 7), sizes=sizes),
        Case("positions in any order", (x, rng.permutation(5 * T)[:T]), sizes=sizes),
        Case("theta=500", (x, places), {"theta": 500.0}, sizes),
        Case("x of shape (T, K)", (x[0, 0], places), sizes=sizes),
        extended(Case("adjacent=True", (x, places), {"adjacent": True}, sizes)),
        extended(Case("one position for all rows", (x, np.array(5)), sizes=sizes)),
        extended(Case("linear scaling", (x, places), {"scaling": _LINEAR}, sizes)),
    ]


def rotary(x, positions, theta=10000.0, scaling=None, adjacent=False):
    K = x.shape[-1]
    angles = np.asarray(positions)[..., None] * F.rotary_frequencies(K, theta, scaling)
    cos, sin = np.cos(angles), np.sin(angles)
    if adjacent:
        first, second = x[..., 0::2], x[..., 1::2]
    else:
        first, second = x[..., : K // 2], x[..., K // 2 :]
    turned = first * cos - second * sin, first * sin + second * cos
    if adjacent:
        return np.stack(turned, axis=-1).reshape(x.shape)
    return np.concatenate(turned, axis=-1)


_ROTARY_MISTAKES = """
- always adjacent:  every if adjacent: -> if True:
  The pairs are neighbours, (x₂ᵢ, x₂ᵢ₊₁), in every call. That is adjacent=True; the default pairs xᵢ with xᵢ₊K/₂.
- put back side by side:  2nd if adjacent: -> if True:
  The pairs are taken from the two halves, but put back side by side. Put them where they came from: the halves are
  concatenated.
- taken side by side:  1st if adjacent: -> if True:
  The pairs are neighbours, but they are put back as two halves. Take them from the halves too: xᵢ with xᵢ₊K/₂.
- the halves swapped:  np.concatenate(turned, axis=-1) -> np.concatenate(turned[::-1], axis=-1)
  The two halves of the result are swapped. y₁ comes first.
- both with plus:  first * cos - second * sin -> first * cos + second * sin
  y₁ = x₁ cos + x₂ sin has the wrong sign. A rotation has one minus: y₁ = x₁ cos − x₂ sin.
- both with minus:  first * sin + second * cos -> first * sin - second * cos
  y₂ = x₁ sin − x₂ cos has the wrong sign. It is y₂ = x₁ sin + x₂ cos.
- sine and cosine swapped:  cos, sin = np.cos(angles), np.sin(angles) -> sin, cos = np.cos(angles), np.sin(angles)
  Sine and cosine are swapped. At position 0 nothing turns: y₁ = x₁ cos 0 = x₁.
- only the cosine:  first * cos - second * sin, first * sin + second * cos -> first * cos, second * cos
  The terms with the sine are missing, so the features are only scaled. A rotation mixes the two of a pair.
- the first turned twice:
    turned = first * cos - second * sin, first * sin + second * cos ->
        first = first * cos - second * sin
        turned = first, first * sin + second * cos
  y₂ is computed from the new x₁, which is already turned. Both need the old ones.
- the second not turned:  first * sin + second * cos -> second
  The second feature of each pair stays as it was. Both are turned: y₂ = x₁ sin + x₂ cos.
- positions from 1:  np.asarray(positions)[..., None] -> (np.asarray(positions) + 1)[..., None]
  The positions are one too large. Use them as they are given: position 0 is not turned.
- positions taken as 0, 1, 2, …:  np.asarray(positions)[..., None] -> np.arange(x.shape[-2])[..., None]
  `positions` is not used: the rows count from 0 in every call. With a cache the rows begin later.
- degrees:  np.cos(angles), np.sin(angles) -> np.cos(np.deg2rad(angles)), np.sin(np.deg2rad(angles))
  The angles are taken as degrees. They are radians: np.cos and np.sin take them as they are.
- half the angle:  np.cos(angles), np.sin(angles) -> np.cos(angles / 2), np.sin(angles / 2)
  The angle is half as large as it should be: it is p ω.
- twice the angle:  np.cos(angles), np.sin(angles) -> np.cos(2 * angles), np.sin(2 * angles)
  The angle is twice as large as it should be: it is p ω.
- one frequency for all pairs:  F.rotary_frequencies(K, theta, scaling) -> np.ones(K // 2)
  All pairs turn equally fast. Each has its own frequency ωᵢ = θ^(−2i/K).
- frequencies in reverse:  F.rotary_frequencies(K, theta, scaling) -> F.rotary_frequencies(K, theta, scaling)[::-1]
  The frequencies are in reverse order. The first pair turns fastest, by 1 per position.
- exponent i/K:  F.rotary_frequencies(K, theta, scaling) -> theta ** (-np.arange(K // 2) / K)
  The exponent of the frequencies is −i/K. A pair has two features: ωᵢ = θ^(−2i/K).
- theta not used:  F.rotary_frequencies(K, theta, scaling) -> F.rotary_frequencies(K, scaling=scaling)
  `theta` is not used: the frequencies are those of θ = 10000 in every call.
- scaling not used:  F.rotary_frequencies(K, theta, scaling) -> F.rotary_frequencies(K, theta)
  `scaling` is not used: hand it on to the frequencies.
- angles doubled side by side:
    turned = first * cos - second * sin, first * sin + second * cos ->
        cos, sin = np.repeat(cos, 2, axis=-1), np.repeat(sin, 2, axis=-1)
        whole = np.concatenate([first, second], axis=-1) * cos + np.concatenate([-second, first], axis=-1) * sin
        turned = whole[..., : K // 2], whole[..., K // 2 :]
  Each angle is repeated side by side (np.repeat), but the pairs are taken from the two halves. Then the two features of
  a pair turn by different angles: concatenate the angles with themselves.
- positions added:
    turned = first * cos - second * sin, first * sin + second * cos -> turned = first + sin, second + cos
  Sines and cosines are added to x, as in the sinusoidal encoding. Here x is turned: y₁ = x₁ cos − x₂ sin.
"""

_TURNED_OTHERWISE = """
- turned backwards:
    first * cos - second * sin -> first * cos + second * sin
    first * sin + second * cos -> second * cos - first * sin
  The features are turned backwards, by −p ω. The minus belongs to y₁ = x₁ cos − x₂ sin.
"""

ROTARY = Exercise(
    F.rotary,
    results=(Result("y", "... T K"),),
    cases=rotary_cases,
    answer=rotary,
    hints=(
        "A rotation of the plane has four entries. Where is its minus, and which two features are a point?",
        "y₁ = x₁ cos(p ω) − x₂ sin(p ω), y₂ = x₁ sin(p ω) + x₂ cos(p ω); x₁ is the first half of the features, x₂ the "
        "second",
        "Su et al. 2021, eq. 34; positions[:, None] * frequencies has the shape (T, K/2). The exercise before this "
        "one is rotary_frequencies.",
    ),
    difficulty=2,
    section="Su et al. 2021",
    chapter=_CHAPTER,
    place=2,
    mistakes=_TURNED_OTHERWISE + _ROTARY_MISTAKES,
)


def rotary_backward(dy, positions, theta=10000.0, scaling=None, adjacent=False):
    return rotary(dy, -np.asarray(positions), theta, scaling, adjacent)


ROTARY_BACKWARD = Exercise(
    F.rotary_backward,
    results=(Result("dx", "... T K"),),
    cases=rotary_cases,
    answer=rotary_backward,
    hints=(
        "The gradient goes through the transpose of the matrix. What is the transpose of a rotation?",
        "dx₁ = dy₁ cos(p ω) + dy₂ sin(p ω), dx₂ = −dy₁ sin(p ω) + dy₂ cos(p ω)",
        "your own rotary, with the angles turned back.",
    ),
    difficulty=1,
    section="Su et al. 2021",
    chapter=_CHAPTER,
    place=3,
    mistakes="""
- turned forwards again:  -np.asarray(positions), theta -> positions, theta
  The gradient is turned forwards once more. It goes back: the transpose of a rotation is the rotation by −p ω.
- all gradients negated:  return rotary(dy, -np.asarray(positions) -> return -rotary(dy, np.asarray(positions)
  The gradient is turned forwards and then negated. Negate the angle, not the gradient.
- not turned:  return dy
  The gradient comes back as it was. It is turned by −p ω.
- adjacent not handed on:  theta, scaling, adjacent) -> theta, scaling)
  `adjacent` is not handed on: the pairs are taken from the halves in every call.
- theta not handed on:  -np.asarray(positions), theta, scaling -> -np.asarray(positions), 10000.0, scaling
  `theta` is not handed on: the frequencies are those of θ = 10000 in every call.
"""
    + amended(
        _ROTARY_MISTAKES,
        """
- both with plus:  first * cos - second * sin -> first * cos + second * sin
  The minus is in the wrong place or missing: dx₁ = dy₁ cos(p ω) + dy₂ sin(p ω), and the minus stands in dx₂.
- both with minus:  first * sin + second * cos -> first * sin - second * cos
  The sign of dy₂ cos(p ω) is wrong: dx₂ = −dy₁ sin(p ω) + dy₂ cos(p ω).
- sine and cosine swapped:  cos, sin = np.cos(angles), np.sin(angles) -> sin, cos = np.cos(angles), np.sin(angles)
  Sine and cosine are swapped. At position 0 nothing turns: dx₁ = dy₁ cos 0 = dy₁.
- the first turned twice:
    turned = first * cos - second * sin, first * sin + second * cos ->
        first = first * cos - second * sin
        turned = first, first * sin + second * cos
  dx₂ is computed from dx₁. It needs the old dy₁.
- the second not turned:  first * sin + second * cos -> second
  The second feature of each pair stays as it was. Both are turned: dx₂ = −dy₁ sin(p ω) + dy₂ cos(p ω).
- the halves swapped:  np.concatenate(turned, axis=-1) -> np.concatenate(turned[::-1], axis=-1)
  The two halves of the result are swapped. dx₁ comes first.
""",
        without=["theta not used", "scaling not used", "positions added"],
    ),
)

EXERCISES = [FREQUENCIES, ROTARY, ROTARY_BACKWARD]
