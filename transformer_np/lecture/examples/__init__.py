"""Every number worked out in the lecture's documents, compared with the number that the package computes.

One function per row. `printed` has the printed numbers, `steps` computes ours with the package's functions and layers,
`comparison` decides whether they agree. Each row also states the expected verdict.
"""

from . import architecture, attention, exercises

EXAMPLES = (
    attention.queries_keys_values, attention.five_scores, attention.five_weights, attention.five_outputs,
    attention.weight_formula, attention.three_projections, attention.three_weights, attention.three_shapes,
    architecture.positions, architecture.two_meanings_of_i, architecture.sum_of_squares, architecture.no_repetition,
    architecture.feed_forward, architecture.linearity, architecture.encodings_in_blocks, architecture.causal,
    exercises.exercise_1, exercises.exercise_2, exercises.exercise_3, exercises.exercise_4, exercises.exercise_5,
    exercises.layers_and_heads, exercises.four_weights, exercises.two_weights,
)  # fmt: skip


def worked_examples():
    """Compute all worked examples of the lecture's documents: a list of WorkedExample, by row."""
    return [example() for example in EXAMPLES]
