"""Worked examples of the exercises and of the other documents."""

import numpy as np

from ...models import TransformerConfig
from .. import printed, questions, steps
from ..comparison import ERRATUM, REPRODUCED
from ..worked import WorkedExample, compare, equal

# --- the exercises --------------------------------------------------------------------------------------------------


def _from_exercise(row, title, exercise, expected, checks=()):
    """A WorkedExample that compares the nearest option with the computed value."""
    return WorkedExample(
        row, exercise.where, title, np.asarray(exercise.options[exercise.closest]), exercise.computed,
        exercise.digits, expected, exercise.explanation, checks,
    )  # fmt: skip


def exercise_1():
    """Row 17: Q Kᵀ/√2."""
    exercise = questions.scaled_scores()
    one_option = ("one option is right", len(exercise.letters) == 1)
    return _from_exercise(17, "scaled scores, nearest option", exercise, REPRODUCED, (one_option,))


def exercise_2():
    """Row 18: PE(pos = 2, i = 1), d_model = 512."""
    exercise = questions.positional_encoding()
    no_option = ("no option is right", not exercise.letters)
    true_value = ("the formula", equal(exercise.computed, np.sin(2 / 10000 ** (2 / 512))))
    return _from_exercise(18, "PE(2, i=1), nearest option", exercise, ERRATUM, (no_option, true_value))


def exercise_3():
    """Row 19: the mask for three tokens."""
    exercise = questions.mask_of_three()
    one_option = ("one option is right", len(exercise.letters) == 1)
    return _from_exercise(19, "mask for n = 3, nearest option", exercise, REPRODUCED, (one_option,))


def exercise_4():
    """Row 20: the parts of an encoder block and of a decoder block."""
    exercise = questions.decoder_only_parts()
    return compare(
        20, "parts of the two blocks", printed.PARTS_OF_BLOCK, list(steps.block_parts().values()), REPRODUCED,
        f"The algorithms of §8 and the blocks of the package have the same parts. {exercise.explanation}",
        (("two options are right", len(exercise.letters) == 2),),
    )  # fmt: skip


def exercise_5():
    """Row 21: the memory of one layer's attention weights."""
    exercise = questions.memory_of_scores()
    n, heads = (int(size) for size in printed.SCORES_OF_A_LAYER.values)
    numbers, size = steps.attention_memory(n, heads)
    return compare(
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
    return compare(
        22,
        "number of layers, of heads",
        printed.LAYERS_AND_HEADS,
        [config.num_encoder_layers, config.num_heads],
        ERRATUM,
        f"The stack has N = {config.num_encoder_layers} layers, and the attention has h = {config.num_heads} heads; "
        f"the number of layers was printed for the heads. The same page has h = "
        f"{printed.HEADS_ELSEWHERE.values:.0f} further down, and d_model/d_k = {d_model:.0f}/{d_k:.0f} = "
        f"{d_model / d_k:.0f}.",
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
    return compare(
        23,
        "weights of “Hi how are you”",
        source,
        four.weights,
        ERRATUM,
        f"Softmax keeps the order of the scores for every d_k. Row “you” has score {four.scores[row, larger]:.0f} on "
        f"“you” and {four.scores[row, smaller]:.0f} on “are”, but weight {source.values[row, larger]} and "
        f"{source.values[row, smaller]}; rows {words} break the order. Of all d_k from 1 to 10⁸ the nearest is "
        f"{four.d_k:.0f}, where “you” has {four.weights[row, larger]:.2f} and “are” {four.weights[row, smaller]:.2f}.",
        (
            ("a row breaks the order of its scores", bool(broken)),
            ("the scores are symmetric", equal(four.scores, four.scores.T)),
            ("the computed weights keep the order", not steps.order_broken(four.scores, four.weights)),
            ("the computed rows add to 1", equal(four.weights.sum(axis=-1), np.ones(4))),
        ),
    )


def two_weights():
    """Row 24: "Thinking Machines", 112 and 96."""
    two = steps.two_words()
    return compare(
        24, "q·k, q·k/8 and its softmax", printed.TWO_SCORES, np.concatenate([two.scores, two.scaled, two.weights]),
        REPRODUCED, f"d_k = {two.d_k}, √d_k = 8; softmax(14, 12) = {two.weights[0, 0]:.4f}, {two.weights[0, 1]:.4f}.",
    )  # fmt: skip
