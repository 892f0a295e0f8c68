"""Every number worked out in the lecture's documents, compared with the number that the package computes.

One function per row. `printed` has the printed numbers, `steps` computes ours with the package's functions and layers,
`comparison` decides whether they agree. Each row also states the expected verdict.
"""

from dataclasses import dataclass

import numpy as np

from .. import functional as F
from ..masks import additive, causal_mask
from ..models import TransformerConfig
from . import printed, questions, steps
from .comparison import ERRATUM, REPRODUCED, TRUNCATED, differences, is_cut_off, is_rounded, verdict

_EXACT = 1e-12


@dataclass(frozen=True, eq=False)
class WorkedExample:
    """A printed result and the computed one.

    row: its number in the list of all worked examples
    where, title: the place in the documents, and a short description
    printed, computed: arrays of one shape; for a sentence, `printed` is its claim as numbers
    digits: the number of printed decimals; None for a sentence that claims exact values
    expected: the verdict that the authors of this package found
    reason: the explanation of the verdict; for an erratum with the true value
    checks: ((description, whether it holds), …), further conditions
    """

    row: int
    where: str
    title: str
    printed: np.ndarray
    computed: np.ndarray
    digits: int | None
    expected: str
    reason: str
    checks: tuple = ()

    @property
    def difference(self):
        """The largest |printed − computed|."""
        return float(differences(self.printed, self.computed).max())

    @property
    def verdict(self):
        """ "reproduced", "truncated in print" or "erratum", from the numbers."""
        return verdict(self.printed, self.computed, self.digits)

    @property
    def failed(self):
        """Descriptions of everything that is not as expected."""
        failed = [what for what, holds in self.checks if not holds]
        if self.verdict != self.expected:
            failed.insert(0, f"expected: {self.expected}")
        return tuple(failed)

    @property
    def ok(self):
        """Whether the verdict and every check are as expected."""
        return not self.failed


def worked_examples():
    """Compute all worked examples of the lecture's documents: a list of WorkedExample, by row."""
    return [example() for example in EXAMPLES]


def _compare(row, title, source, computed, expected, reason, checks=(), **other):
    """A WorkedExample for `source`, a Printed (its parts may be replaced by `other`)."""
    parts = {"where": source.where, "printed": source.values, "digits": source.digits} | other
    parts["printed"], parts["computed"] = np.asarray(parts["printed"]), np.asarray(computed, np.float64)
    return WorkedExample(row, title=title, expected=expected, reason=reason, checks=checks, **parts)


def _equal(a, b):
    """Whether two arrays are equal up to rounding in float64."""
    return bool((differences(a, b) <= _EXACT).all())


# --- lecture notes §4: self-attention -------------------------------------------------------------------------------


def queries_keys_values():
    """Row 1: Q = X W^Q, K = X W^K, V = X W^V for five words."""
    five = steps.five_words()
    computed = np.stack([five.q, five.k, five.v])[:, 0]  # (3, T, K)
    return _compare(
        1,
        "Q, K, V of the five words",
        printed.FIVE_QKV,
        computed,
        REPRODUCED,
        "The printed X_e and W^Q, W^K, W^V multiply to exactly the printed numbers.",
        (("exact, not only to the printed digits", _equal(printed.FIVE_QKV.values, computed)),),
    )


def five_scores():
    """Row 2: Q Kᵀ/√d_k, d_k = 4."""
    computed = steps.five_words().scores[0]
    return _compare(
        2,
        "scaled scores Q Kᵀ/2",
        printed.FIVE_SCORES,
        computed,
        REPRODUCED,
        "All digits of the products are printed.",
        (("exact, not only to the printed digits", _equal(printed.FIVE_SCORES.values, computed)),),
    )


def five_weights():
    """Row 3: A = softmax(Q Kᵀ/√d_k)."""
    sums = printed.FIVE_WEIGHTS.values.sum(axis=-1)
    rounded_sums = " ".join(f"{total:.4f}" for total in sums)
    computed = steps.five_words().weights[0]
    return _compare(
        3,
        "attention weights A",
        printed.FIVE_WEIGHTS,
        computed,
        REPRODUCED,
        f"Rounded to four digits; the printed rows therefore add to {rounded_sums} instead of 1.",
        (("the computed rows add to 1", _equal(computed.sum(axis=-1), np.ones(5))),),
    )


def five_outputs():
    """Row 4: C = A V."""
    five = steps.five_words()
    source = printed.FIVE_OUTPUT
    computed = five.output
    missing = computed - source.values
    rounded = is_rounded(source.values, computed, source.digits)
    return _compare(
        4,
        "output C = A V",
        source,
        computed,
        TRUNCATED,
        f"All {rounded.size} numbers are cut off after four digits: the true ones lie {missing.min():.6f} to "
        f"{missing.max():.6f} above. {int(rounded.sum())} of them would be the same rounded; C_11 = "
        f"{computed[0, 0]:.5f} is printed {source.values[0, 0]:.4f}.",
        (
            ("every entry is cut off", bool(is_cut_off(source.values, computed, source.digits).all())),
            ("C is A V", _equal(computed, five.weights[0] @ five.v[0])),
        ),
    )


def weight_formula():
    """Row 5: the sentence "A_ij = q_i · k_j"."""
    five = steps.five_words()
    q, k, _ = printed.FIVE_QKV.values
    products = q @ k.T  # A according to the sentence
    computed = five.weights[0]
    return _compare(
        5,
        "the sentence “A_ij = q_i · k_j”",
        printed.FIVE_WEIGHTS,
        computed,
        ERRATUM,
        f"q_i · k_j is the score before it is scaled: q_1 · k_1 = {products[0, 0]:.4f}. The weight is its softmax "
        f"after the division by √d_k = 2: A_11 = {computed[0, 0]:.4f}.",
        (("A is the softmax of q_i · k_j / 2", _equal(computed, steps.textbook_softmax(products / 2))),),
        where=f"{printed.NOTES} §4, text",
        printed=products,
    )


# --- lecture notes §5: three heads ----------------------------------------------------------------------------------


def three_projections():
    """Row 6: Q_i, K_i, V_i of three heads."""
    three = steps.three_heads()
    computed = np.stack([three.q, three.k, three.v])  # (3, H, T, K)
    return _compare(
        6,
        "Q_i, K_i, V_i of three heads",
        printed.THREE_QKV,
        computed,
        REPRODUCED,
        "The weights are not printed. X_e has rank 3 for 3 words, so W_i = pinv(X_e) · Q_i leads to any Q_i, also to "
        "the printed one: they are possible, more cannot be checked.",
        (
            ("X_e has as many independent rows as words", np.linalg.matrix_rank(three.x) == len(three.words)),
            ("exact, not only to the printed digits", _equal(printed.THREE_QKV.values, computed)),
        ),
    )


def three_weights():
    """Row 7: A_1, A_2, A_3 = softmax(Q_i K_iᵀ/√3)."""
    three = steps.three_heads()
    q, k, _ = printed.THREE_QKV.values
    source = printed.THREE_WEIGHTS
    first = [" ".join(f"{weight:.3f}" for weight in head[0]) for head in three.weights]
    broken = steps.order_broken(three.scores, source.values)
    return _compare(
        7,
        "attention weights A_1, A_2, A_3",
        source,
        three.weights,
        ERRATUM,
        f"The printed weights illustrate, they are not softmax(Q_i K_iᵀ/√3): the first rows of the three heads are "
        f"{first[0]}; {first[1]}; {first[2]}. All true weights lie between {three.weights.min():.2f} and "
        f"{three.weights.max():.2f}, no head looks mainly at itself. In {_rows(broken)} not even the order of the "
        "scores is kept, so no other divisor than √3 would help.",
        (
            ("the layer's weights are softmax(Q_i K_iᵀ/√3)", _equal(three.weights, _three_textbook_weights(q, k))),
            ("a row breaks the order of its scores", bool(broken)),
        ),
    )


def _three_textbook_weights(q, k):
    return steps.textbook_softmax(np.einsum("htk,hsk->hts", q, k) / np.sqrt(3))


def _rows(indices):
    return ", ".join(f"row {row + 1} of head {head + 1}" for head, row in indices)


def three_shapes():
    """Row 8: C_i, C_concat, W^O, C_final."""
    three = steps.three_heads()
    computed = [three.heads[0].shape, three.concat.shape, three.layer.w_o.shape, three.output.shape]
    return _compare(
        8,
        "shapes of C_i … C_final",
        printed.THREE_SHAPES,
        computed,
        REPRODUCED,
        "Only the shapes are printed, no numbers.",
        (("the heads lie side by side in C_concat", _equal(np.concatenate(list(three.heads), axis=1), three.concat)),),
    )


# --- lecture notes §6: positional encoding --------------------------------------------------------------------------


def positions():
    """Row 9: PE for five positions, d_model = 4."""
    source = printed.FIVE_POSITIONS
    computed = steps.five_positions().encoding
    rounded = is_rounded(source.values, computed, source.digits)
    cut = is_cut_off(source.values, computed, source.digits)
    only_cut, only_rounded = int((cut & ~rounded).sum()), int((rounded & ~cut).sum())
    return _compare(
        9,
        "positional encoding, 5 × 4",
        source,
        computed,
        TRUNCATED,
        f"{int(rounded.sum())} of the {rounded.size} numbers are rounded, {only_cut} follow only by cutting off: "
        f"cos(1/100) = {computed[1, 3]:.5f} is printed {source.values[1, 3]:.3f}, rounded it is 1.000. The table mixes "
        f"both: {only_rounded} numbers follow only by rounding, like cos(3) = {computed[3, 1]:.5f}, printed "
        f"{source.values[3, 1]:.3f}.",
    )


def two_meanings_of_i():
    """Row 10: the entries called PE(t, i=1)."""
    table = steps.five_positions().encoding
    source = printed.POSITIONS_NAMED_1
    return _compare(
        10,
        "cos(t/1), called “PE(t, i=1)”",
        source,
        table[:, 2 * 1 + 1],
        ERRATUM,
        f"In the formula PE(pos, 2i+1) the i counts pairs, so i = 1 is cos(t/100), {table[1, 3]:.5f} at t = 1. In the "
        f"list i = 0 … 3 counts dimensions: dimension 1 is the cosine of pair 0, {table[1, 1]:.3f} at t = 1. The "
        "numbers stand in the right places; i has two meanings.",
        (("the numbers are those of dimension 1", verdict(source.values, table[:, 1], source.digits) == REPRODUCED),),
    )


def sum_of_squares():
    """Row 11: Σ PE(pos, ·)² is the same at every position."""
    sums = {d_model: (F.sinusoidal_encoding(200, d_model, np.float64) ** 2).sum(axis=-1) for d_model in (4, 512)}
    return _compare(
        11,
        "spread of the sums of squares",
        printed.SPREAD_OF_SQUARES,
        [max(np.ptp(total) for total in sums.values())],
        REPRODUCED,
        f"sin² + cos² = 1 for each pair, so the sum is d_model/2 at every position: {sums[4].mean():.1f} for d_model = "
        "4. Largest − smallest of 200 positions, for d_model = 4 and 512.",
        tuple(
            (f"the sum is d_model/2 for d_model = {d_model}", _equal(total, np.full(200, d_model / 2)))
            for d_model, total in sums.items()
        ),
    )


def no_repetition():
    """Row 12: "Pattern repeats for very long sequences"."""
    position, distance = steps.nearest_return(4, 100_000)
    return _compare(
        12,
        "how near PE comes to its start",
        printed.DISTANCE_AT_REPEAT,
        [distance],
        ERRATUM,
        f"The encoding comes near its start but never returns: for d_model = 4 the nearest of 100,000 positions is "
        f"{position:,}, at distance {distance:.4f}. sin(pos) and cos(pos) alone cannot repeat at a whole number, since "
        "2π is irrational.",
        (("no other position has the encoding of position 0", distance > 1e-6),),
    )


# --- lecture notes §7: feed-forward ---------------------------------------------------------------------------------


def feed_forward():
    """Row 13: C W_1 + b_1, its ReLU, and the output."""
    example = steps.feed_forward_example()
    parts = (printed.FEED_FORWARD_BEFORE, printed.FEED_FORWARD_HIDDEN, printed.FEED_FORWARD_OUTPUT)
    values = np.concatenate([part.values for part in parts], axis=1)  # (T, F + F + D)
    computed = np.concatenate([example.before, example.hidden, example.output], axis=1)
    w2 = example.layer.w2
    return _compare(
        13,
        "FFN: C W_1 + b_1, ReLU, output",
        printed.FEED_FORWARD_OUTPUT,
        computed,
        REPRODUCED,
        "The ReLU follows. W_1, W_2 are not printed, but pinv(C) and pinv(ReLU) give ones that lead exactly from each "
        f"matrix to the next, with b = 0. The output is called “C W_2”; C {example.x.shape} and W_2 {w2.shape} do not "
        "multiply, meant is max(0, C W_1 + b_1) W_2.",
        (
            ("exact, not only to the printed digits", _equal(values, computed)),
            ("the printed ReLU is that of the printed numbers", _equal(F.relu(parts[0].values), parts[1].values)),
            ("C has not the width that W_2 takes", example.x.shape[1] != w2.shape[0]),
        ),
        printed=values,
    )


def linearity():
    """Row 14: the sentence "self-attention is purely linear"."""
    five = steps.five_words()
    in_values = _nonlinearity(
        lambda v: F.scaled_dot_product_attention(five.q[0], five.k[0], v)[0], five.v[0], five.v[0, ::-1]
    )
    in_input = _nonlinearity(lambda x: five.layer(x[None])[0], five.x, five.x[::-1])
    return _compare(
        14,
        "nonlinearity in V and in X",
        printed.NONLINEARITY,
        [in_values, in_input],
        ERRATUM,
        f"Linear in V, for weights that stay: {in_values:.0e}. Not in the input X, from which the weights come through "
        f"a softmax: {in_input:.3f}, for X_e of §4 and the same in reverse order.",
        (
            ("linear in V", bool(in_values <= _EXACT)),
            ("not linear in X", bool(in_input > 0.01)),
        ),
    )


def _nonlinearity(f, a, b):
    """The largest |f(a + b) − f(a) − f(b)|, 0 for a linear f."""
    return float(np.abs(f(a + b) - f(a) - f(b)).max())


# --- lecture notes §8 and §9: blocks and mask -----------------------------------------------------------------------


def encodings_in_blocks():
    """Row 15: line 2 of the block algorithms."""
    *blocks, whole = steps.encodings()
    return _compare(
        15,
        "positional encodings in a block",
        printed.ENCODINGS_IN_BLOCK,
        blocks,
        ERRATUM,
        "Both algorithms add PE at the top of the block, so a stack of 6 would add it 6 times. In the paper (fig. 1, "
        f"§3.5) and the paper notes it is added once, below the first block: 0 in a block, {whole} in a whole "
        "Transformer, one for the source and one for the target.",
        (("a Transformer of 6 + 6 blocks has two", whole == 2),),
    )


def causal():
    """Row 16: M, 0 where i ≥ j, −∞ elsewhere, added to the scores."""
    weights, row = steps.masked_weights(), steps.hidden_row()
    size = len(row["finite"])
    return _compare(
        16,
        "mask M for n = 5",
        printed.MASK,
        additive(causal_mask(5), np.float64),
        REPRODUCED,
        "Setting hidden scores to −1e8 (lecture slides) gives the same weights as adding −∞. They part where a row is "
        f"hidden whole: there −∞ in exp(x)/Σ exp(x) is 0/0, NaN; −1e8 gives every key {row['finite'][0]:.1f}; a "
        f"Boolean mask of this package gives {row['package'][0]:.0f}.",
        (
            ("−∞ added, −1e8 set and a Boolean mask: the same weights", _all_equal(weights)),
            ("no weight on the future", not np.triu(weights["package"], 1).any()),
            ("a row hidden whole: NaN by the textbook", bool(np.isnan(row["textbook"]).all())),
            ("a row hidden whole: uniform with −1e8", _equal(row["finite"], np.full(size, 1 / size))),
            ("a row hidden whole: 0 in this package", not row["package"].any()),
        ),
    )


def _all_equal(arrays):
    first, *others = arrays.values()
    return all(_equal(first, other) for other in others)


# --- the exercises --------------------------------------------------------------------------------------------------


def _from_exercise(row, title, exercise, expected, checks=()):
    """A WorkedExample that compares the nearest option with the computed value."""
    return WorkedExample(
        row,
        exercise.where,
        title,
        np.asarray(exercise.options[exercise.closest]),
        exercise.computed,
        exercise.digits,
        expected,
        exercise.explanation,
        checks,
    )


def exercise_1():
    """Row 17: Q Kᵀ/√2."""
    exercise = questions.scaled_scores()
    one_option = ("one option is right", len(exercise.letters) == 1)
    return _from_exercise(17, "scaled scores, nearest option", exercise, REPRODUCED, (one_option,))


def exercise_2():
    """Row 18: PE(pos = 2, i = 1), d_model = 512."""
    exercise = questions.positional_encoding()
    no_option = ("no option is right", not exercise.letters)
    true_value = ("the formula", _equal(exercise.computed, np.sin(2 / 10000 ** (2 / 512))))
    return _from_exercise(18, "PE(2, i=1), nearest option", exercise, ERRATUM, (no_option, true_value))


def exercise_3():
    """Row 19: the mask for three tokens."""
    exercise = questions.mask_of_three()
    one_option = ("one option is right", len(exercise.letters) == 1)
    return _from_exercise(19, "mask for n = 3, nearest option", exercise, REPRODUCED, (one_option,))


def exercise_4():
    """Row 20: the parts of an encoder block and of a decoder block."""
    exercise = questions.decoder_only_parts()
    return _compare(
        20,
        "parts of the two blocks",
        printed.PARTS_OF_BLOCK,
        list(steps.block_parts().values()),
        REPRODUCED,
        f"The algorithms of §8 and the blocks of the package have the same parts. {exercise.explanation}",
        (("two options are right", len(exercise.letters) == 2),),
    )


def exercise_5():
    """Row 21: the memory of one layer's attention weights."""
    exercise = questions.memory_of_scores()
    n, heads = (int(size) for size in printed.SCORES_OF_A_LAYER.values)
    numbers, size = steps.attention_memory(n, heads)
    return _compare(
        21,
        "weights of a layer, h · n²",
        printed.SCORES_OF_A_LAYER,
        numbers,
        REPRODUCED,
        f"{exercise.explanation} At n = {n}, h = {heads} there are {numbers:,} weights, "
        f"{size / 2**20:g} MiB in float32.",
        (("one option is right", len(exercise.letters) == 1),),
        printed=heads * n * n,
    )


# --- the other documents --------------------------------------------------------------------------------------------


def layers_and_heads():
    """Row 22: N = 6 layers, "h = 6" heads."""
    config = TransformerConfig(src_vocab_size=100, tgt_vocab_size=100)
    d_model, d_k = printed.MODEL_AND_HEAD_SIZE.values
    return _compare(
        22,
        "number of layers, of heads",
        printed.LAYERS_AND_HEADS,
        [config.num_encoder_layers, config.num_heads],
        ERRATUM,
        f"The stack has N = {config.num_encoder_layers} layers, the attention h = {config.num_heads} heads; the 6 of "
        f"the one slipped into the other. The same page has h = {printed.HEADS_ELSEWHERE.values:.0f} further down, and "
        f"d_model/d_k = {d_model:.0f}/{d_k:.0f} = {d_model / d_k:.0f}.",
        (
            ("the number of layers is right", config.num_encoder_layers == printed.LAYERS_AND_HEADS.values[0]),
            ("h = 8 elsewhere on the page", config.num_heads == printed.HEADS_ELSEWHERE.values),
            ("h = d_model/d_k", config.num_heads == d_model / d_k),
        ),
    )


def four_weights():
    """Row 23: "Hi how are you", scores and weights."""
    four = steps.four_words()
    source = printed.FOUR_WEIGHTS
    broken = steps.order_broken(four.scores, source.values)
    words = ", ".join(f"“{four.words[row]}”" for (row,) in broken)
    row, larger, smaller = four.words.index("you"), four.words.index("you"), four.words.index("are")
    return _compare(
        23,
        "weights of “Hi how are you”",
        source,
        four.weights,
        ERRATUM,
        f"Softmax keeps the order of the scores, whatever d_k. Row “you” has score {four.scores[row, larger]:.0f} on "
        f"“you” and {four.scores[row, smaller]:.0f} on “are”, but weight {source.values[row, larger]} and "
        f"{source.values[row, smaller]}; rows {words} break the order. Of all d_k from 1 to 10⁸ the nearest is "
        f"{four.d_k:.0f}, where “you” has {four.weights[row, larger]:.2f} and “are” {four.weights[row, smaller]:.2f}.",
        (
            ("a row breaks the order of its scores", bool(broken)),
            ("the scores are symmetric", _equal(four.scores, four.scores.T)),
            ("the computed weights keep the order", not steps.order_broken(four.scores, four.weights)),
            ("the computed rows add to 1", _equal(four.weights.sum(axis=-1), np.ones(4))),
        ),
    )


def two_weights():
    """Row 24: "Thinking Machines", 112 and 96."""
    two = steps.two_words()
    return _compare(
        24,
        "q·k, q·k/8 and its softmax",
        printed.TWO_SCORES,
        np.concatenate([two.scores, two.scaled, two.weights]),
        REPRODUCED,
        f"d_k = {two.d_k}, √d_k = 8; softmax(14, 12) = {two.weights[0, 0]:.4f}, {two.weights[0, 1]:.4f}.",
    )


EXAMPLES = (
    queries_keys_values,
    five_scores,
    five_weights,
    five_outputs,
    weight_formula,
    three_projections,
    three_weights,
    three_shapes,
    positions,
    two_meanings_of_i,
    sum_of_squares,
    no_repetition,
    feed_forward,
    linearity,
    encodings_in_blocks,
    causal,
    exercise_1,
    exercise_2,
    exercise_3,
    exercise_4,
    exercise_5,
    layers_and_heads,
    four_weights,
    two_weights,
)
