"""Worked examples of the exercises and of the other documents."""

import numpy as np

from ...models import TransformerConfig
from .. import printed, questions, steps
from ..comparison import ANSWERED, ERRATUM, REPRODUCED
from ..worked import equal, example

# --- the exercises --------------------------------------------------------------------------------------------------


def _nearest_option(exercise, *checks):
    """Of an exercise: the computed value beside the nearest option."""
    return exercise.computed, exercise.explanation, checks, {"printed": exercise.options[exercise.closest]}


@example(17, "scaled scores, nearest option", "EXERCISE_1", ANSWERED)
def exercise_1():
    """Q Kᵀ/√2."""
    exercise = questions.scaled_scores()
    return _nearest_option(exercise, ("one option is right", len(exercise.letters) == 1))


@example(18, "PE(2, i=1), nearest option", "EXERCISE_2", ERRATUM)
def exercise_2():
    """PE(pos = 2, i = 1), d_model = 512."""
    exercise = questions.positional_encoding()
    true_value = equal(exercise.computed, np.sin(2 / 10000 ** (2 / 512)))
    return _nearest_option(exercise, ("no option is right", not exercise.letters), ("the formula", true_value))


@example(19, "mask for n = 3, nearest option", "EXERCISE_3", ANSWERED)
def exercise_3():
    """The mask for three tokens."""
    exercise = questions.mask_of_three()
    return _nearest_option(exercise, ("one option is right", len(exercise.letters) == 1))


@example(20, "parts of the two blocks", "PARTS_OF_BLOCK", ANSWERED)
def exercise_4():
    """The parts of an encoder block and of a decoder block."""
    exercise = questions.decoder_only_parts()
    remark = f"The algorithms of §8 and the blocks of the package have the same parts. {exercise.explanation}"
    return list(steps.block_parts().values()), remark, (("two options are right", len(exercise.letters) == 2),)


@example(21, "weights of a layer, h · n²", "SCORES_OF_A_LAYER", ANSWERED)
def exercise_5():
    """The memory of one layer's attention weights."""
    exercise = questions.memory_of_scores()
    n, heads = (int(size) for size in printed.SCORES_OF_A_LAYER.values)
    numbers, size = steps.attention_memory(n, heads)
    there = f"At n = {n}, h = {heads} there are {numbers:,} weights, {size / 2**20:g} MiB in float32."
    right = ("one option is right", len(exercise.letters) == 1)
    return numbers, f"{exercise.explanation} {there}", (right,), {"printed": heads * n * n}


# --- the other documents --------------------------------------------------------------------------------------------


@example(22, "number of layers, of heads", "LAYERS_AND_HEADS", ERRATUM)
def layers_and_heads():
    """N = 6 layers, "h = 6" heads."""
    config = TransformerConfig(src_vocab_size=100, tgt_vocab_size=100)
    d_model, d_k = printed.MODEL_AND_HEAD_SIZE.values
    return (
        [config.num_encoder_layers, config.num_heads],
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


@example(23, "weights of “Hi how are you”", "FOUR_WEIGHTS", ERRATUM)
def four_weights():
    """ "Hi how are you", scores and weights."""
    four = steps.four_words()
    source = printed.FOUR_WEIGHTS
    broken = steps.order_broken(four.scores, source.values)
    words = ", ".join(f"“{four.words[row]}”" for (row,) in broken)
    row, larger, smaller = four.words.index("you"), four.words.index("you"), four.words.index("are")
    return (
        four.weights,
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


@example(24, "q·k, q·k/8 and its softmax", "TWO_SCORES", REPRODUCED)
def two_weights():
    """ "Thinking Machines", 112 and 96."""
    two = steps.two_words()
    remark = f"d_k = {two.d_k}, √d_k = 8; softmax(14, 12) = {two.weights[0, 0]:.4f}, {two.weights[0, 1]:.4f}."
    return np.concatenate([two.scores, two.scaled, two.weights]), remark
