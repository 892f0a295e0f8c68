"""The five exercises at the end of the lecture notes, answered by the package."""

from dataclasses import dataclass

import numpy as np

from .. import functional as F
from ..masks import additive, causal_mask
from . import printed
from .comparison import differences, is_rounded
from .steps import block_parts, powers_of_memory

LETTERS = "abcdefgh"  # of the options


@dataclass(frozen=True, eq=False)
class Exercise:
    """A multiple-choice question and the package's answer.

    options: {letter: value}, arrays (or numbers) or, in exercises 4 and 5, words
    computed: the computed array, or the words found
    digits: the decimals that the options are rounded to, None if they are exact
    """

    number: int
    where: str
    question: str
    options: dict
    computed: object
    digits: int | None
    explanation: str

    @property
    def letters(self):
        """The right options, which agree with the computed value; there may be none or several."""
        return tuple(letter for letter, value in self.options.items() if self._agrees(value))

    @property
    def closest(self):
        """The letter of the option nearest to the computed array, by the largest difference of an entry."""
        if isinstance(self.computed, tuple):
            raise TypeError(f"the options of exercise {self.number} are words, which have no distance")
        return min(self.options, key=lambda letter: differences(self.options[letter], self.computed).max())

    def _agrees(self, value):
        if isinstance(self.computed, tuple):
            return value in self.computed
        return bool(is_rounded(value, self.computed, self.digits).all())


def exercises():
    """The five exercises of the lecture notes, in order, as a list of Exercise."""
    return [scaled_scores(), positional_encoding(), mask_of_three(), decoder_only_parts(), memory_of_scores()]


def scaled_scores():
    """Q Kᵀ/√2 for two 2×2 matrices."""
    q, k = printed.EXERCISE_1_QK.values
    scores = F.attention_scores(q, k)
    return _exercise(
        1,
        printed.EXERCISE_1,
        "Two tokens have the queries [1 0], [0 1] and the keys [1 1], [1 0], so d_k = 2. What are the scaled scores "
        "Q Kᵀ/√d_k, to two decimals?",
        scores,
        f"Q is the identity, so Q Kᵀ = Kᵀ, which is symmetric here; its ones become 1/√2 = {scores[0, 0]:.4f}.",
    )


def positional_encoding():
    """PE(pos = 2, i = 1) by the sine formula, d_model = 512."""
    encoding = F.sinusoidal_encoding(3, 512, np.float64)[2]  # (D,) at pos = 2
    true, pair_0, dimension_1 = encoding[2], encoding[0], encoding[1]
    source = printed.EXERCISE_2
    options = zip(LETTERS, source.values, strict=False)
    also = [letter for letter, value in options if is_rounded(value, pair_0, source.digits)]
    return _exercise(
        2,
        source,
        "A model has d_model = 512. What does PE(pos, 2i) = sin(pos/10000^(2i/d_model)) give at pos = 2, i = 1?",
        np.array(true),
        f"sin(2/10000^(2/512)) = {true:.3f}, which is none of the options. "
        f"Option ({', '.join(also)}) is sin(2) = {pair_0:.3f}, the value at i = 0. Taking i for the dimension, as the "
        f"notes do in their table, does not lead there either: dimension 1 holds cos(2) = {dimension_1:.3f}.",
    )


def mask_of_three():
    """The additive causal mask for three tokens."""
    return _exercise(
        3,
        printed.EXERCISE_3,
        "A decoder reads 3 tokens. Which M, added to the scores, keeps every token from looking at later ones?",
        additive(causal_mask(3), np.float64),
        "Row i is the query, column j the key: 0 where j ≤ i, −∞ where j > i. A −∞ becomes weight 0 in the softmax. "
        "(b) shows the future and hides the past, (c) hides only the token itself, (d) all but it.",
    )


def decoder_only_parts():
    """The parts that only a decoder block has, found by inspecting both blocks."""
    parts = block_parts()
    found = "; ".join(f"{part} {encoder} and {decoder}" for part, (encoder, decoder) in parts.items())
    return _exercise(
        4,
        printed.PARTS_OF_BLOCK,
        "Which parts does a decoder block have that an encoder block does not? More than one may be right.",
        tuple(part for part, (encoder, decoder) in parts.items() if decoder and not encoder),
        f"How many there are in an encoder and in a decoder block: {found}.",
        printed.EXERCISE_4,
    )


def memory_of_scores():
    """The growth of the memory for one layer's attention weights, measured by doubling n and h."""
    n, heads = printed.SCORES_OF_A_LAYER.values
    a, b = powers_of_memory()
    return _exercise(
        5,
        printed.EXERCISE_5,
        "How does the memory for the attention weights of one layer grow with the sequence length n and the number of "
        f"heads h (say n = {n:.0f}, h = {heads:.0f})?",
        (big_o(a, b),),
        f"Every head has an n × n matrix of weights. Measured: twice the n takes {2**a:g} times the memory, twice the "
        f"h {2**b:g} times.",
        [big_o(*powers) for powers in printed.EXERCISE_5.values],
    )


def _exercise(number, source, question, computed, explanation, words=None):
    """An Exercise whose options are the printed ones. words: options in words, in place of the numbers"""
    options = dict(zip(LETTERS, source.values if words is None else words, strict=False))
    digits = source.digits if words is None else None
    return Exercise(number, source.where, question, options, computed, digits, explanation)


def big_o(power_of_n, power_of_h):
    """The growth nᵃ hᵇ as text: big_o(2, 1) is "O(h n²)". Measured powers are rounded to two decimals."""
    factors = [_power("h", power_of_h), _power("n", power_of_n)]
    return f"O({' '.join(factor for factor in factors if factor) or '1'})"


def _power(letter, power):
    power = round(power, 2)
    return {0: "", 1: letter, 2: f"{letter}²"}.get(power, f"{letter}^{power:g}")
