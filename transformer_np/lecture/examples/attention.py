"""Worked examples of the lecture notes, §4 and §5: self-attention and three heads."""

import numpy as np

from .. import printed, steps
from ..comparison import ERRATUM, FITTED, REPRODUCED, TRUNCATED, is_cut_off, is_rounded
from ..worked import equal, example

# --- lecture notes §4: self-attention -------------------------------------------------------------------------------


@example(1, "Q, K, V of the five words", "FIVE_QKV", REPRODUCED)
def queries_keys_values():
    """Q = X W^Q, K = X W^K, V = X W^V for five words."""
    five = steps.five_words()
    computed = np.stack([five.q, five.k, five.v])[:, 0]  # (3, T, K)
    exact = ("exact, not only to the printed digits", equal(printed.FIVE_QKV.values, computed))
    return computed, "The printed X_e and W^Q, W^K, W^V multiply to exactly the printed numbers.", (exact,)


@example(2, "scaled scores Q Kᵀ/2", "FIVE_SCORES", REPRODUCED)
def five_scores():
    """Q Kᵀ/√d_k, d_k = 4."""
    computed = steps.five_words().scores[0]
    exact = ("exact, not only to the printed digits", equal(printed.FIVE_SCORES.values, computed))
    return computed, "All digits of the products are printed.", (exact,)


@example(3, "attention weights A", "FIVE_WEIGHTS", REPRODUCED)
def five_weights():
    """A = softmax(Q Kᵀ/√d_k)."""
    sums = printed.FIVE_WEIGHTS.values.sum(axis=-1)
    rounded_sums = " ".join(f"{total:.4f}" for total in sums)
    computed = steps.five_words().weights[0]
    add_to_1 = ("the computed rows add to 1", equal(computed.sum(axis=-1), np.ones(5)))
    remark = f"Rounded to four digits; the printed rows therefore add to {rounded_sums} instead of 1."
    return computed, remark, (add_to_1,)


@example(4, "output C = A V", "FIVE_OUTPUT", TRUNCATED)
def five_outputs():
    """C = A V."""
    five = steps.five_words()
    source = printed.FIVE_OUTPUT
    computed = five.output
    missing = computed - source.values
    rounded = is_rounded(source.values, computed, source.digits)
    return (
        computed,
        f"All {rounded.size} numbers are cut off after four digits: the true ones lie {missing.min():.6f} to "
        f"{missing.max():.6f} above. {int(rounded.sum())} of them would be the same rounded; C_11 = "
        f"{computed[0, 0]:.5f} is printed {source.values[0, 0]:.4f}.",
        (
            ("every entry is cut off", bool(is_cut_off(source.values, computed, source.digits).all())),
            ("C is A V", equal(computed, five.weights[0] @ five.v[0])),
        ),
    )


@example(5, "the sentence “A_ij = q_i · k_j”", "FIVE_WEIGHTS", ERRATUM)
def weight_formula():
    """The sentence "A_ij = q_i · k_j"."""
    five = steps.five_words()
    q, k, _ = printed.FIVE_QKV.values
    products = q @ k.T  # A according to the sentence
    computed = five.weights[0]
    return (
        computed,
        f"q_i · k_j is the score before it is scaled: q_1 · k_1 = {products[0, 0]:.4f}. The weight is its softmax "
        f"after the division by √d_k = 2: A_11 = {computed[0, 0]:.4f}.",
        (("A is the softmax of q_i · k_j / 2", equal(computed, steps.textbook_softmax(products / 2))),),
        {"where": f"{printed.NOTES} §4, text", "printed": products},
    )


# --- lecture notes §5: three heads ----------------------------------------------------------------------------------


@example(6, "Q_i, K_i, V_i of three heads", "THREE_QKV", FITTED)
def three_projections():
    """Q_i, K_i, V_i of three heads."""
    three = steps.three_heads()
    computed = np.stack([three.q, three.k, three.v])  # (3, H, T, K)
    return (
        computed,
        "The weights are not printed. X_e has rank 3 for 3 words, so W_i = pinv(X_e) · Q_i gives any Q_i, including "
        "the printed one: the printed numbers are possible, and nothing more can be checked.",
        (
            ("X_e has as many independent rows as words", np.linalg.matrix_rank(three.x) == len(three.words)),
            ("exact, not only to the printed digits", equal(printed.THREE_QKV.values, computed)),
        ),
    )


@example(7, "attention weights A_1, A_2, A_3", "THREE_WEIGHTS", ERRATUM)
def three_weights():
    """A_1, A_2, A_3 = softmax(Q_i K_iᵀ/√3)."""
    three = steps.three_heads()
    q, k, _ = printed.THREE_QKV.values
    source = printed.THREE_WEIGHTS
    textbook = steps.textbook_softmax(np.einsum("htk,hsk->hts", q, k) / np.sqrt(3))
    first = [" ".join(f"{weight:.3f}" for weight in head[0]) for head in three.weights]
    broken = steps.order_broken(three.scores, source.values)
    rows = ", ".join(f"row {row + 1} of head {head + 1}" for head, row in broken)
    return (
        three.weights,
        f"The printed weights are illustrations, not softmax(Q_i K_iᵀ/√3): the first rows of the three heads are "
        f"{first[0]}; {first[1]}; {first[2]}. All true weights lie between {three.weights.min():.2f} and "
        f"{three.weights.max():.2f}; in no head does a word look mainly at itself. In {rows} not even the "
        "order of the scores is kept, so no other divisor than √3 would help.",
        (
            ("the layer's weights are softmax(Q_i K_iᵀ/√3)", equal(three.weights, textbook)),
            ("a row breaks the order of its scores", bool(broken)),
        ),
    )


@example(8, "shapes of C_i … C_final", "THREE_SHAPES", REPRODUCED)
def three_shapes():
    """C_i, C_concat, W^O, C_final."""
    three = steps.three_heads()
    computed = [three.heads[0].shape, three.concat.shape, three.layer.w_o.shape, three.output.shape]
    beside = equal(np.concatenate(list(three.heads), axis=1), three.concat)
    return computed, "Only the shapes are printed, no numbers.", (("the heads lie side by side in C_concat", beside),)
