"""The worked examples of the lecture, recomputed: each is reproduced, truncated in print, or an erratum; two have
weights fitted to the print, and four are exercises without a printed answer.

    from transformer_np.lecture import format_examples, worked_examples
    print(format_examples(worked_examples()))

`DOCUMENTS` has the names of the documents, `printed` their numbers. `steps` computes every example step by step with
the package's layers, `comparison` decides whether a printed number follows, `examples` and `questions` combine them
(`worked` says what an example holds), `report` formats the results. `statements.toml` lists what the documents say in
words; `claims` checks it.
"""

from .comparison import ANSWERED, ERRATUM, FITTED, REPRODUCED, TRUNCATED, verdict
from .examples import worked_examples
from .printed import DOCUMENTS
from .questions import Exercise, exercises
from .report import format_examples, format_exercises, format_statements, summary
from .statements import Statement, read_statements
from .steps import (
    attention_memory,
    block_parts,
    feed_forward_example,
    five_positions,
    five_words,
    four_words,
    hidden_row,
    masked_weights,
    nearest_return,
    three_heads,
    two_words,
)
from .worked import WorkedExample

__all__ = [
    "ANSWERED", "DOCUMENTS", "ERRATUM", "FITTED", "REPRODUCED", "TRUNCATED", "Exercise", "Statement", "WorkedExample",
    "attention_memory", "block_parts", "exercises", "feed_forward_example", "five_positions", "five_words",
    "format_examples", "format_exercises", "format_statements", "four_words", "hidden_row", "masked_weights",
    "nearest_return",
    "read_statements", "summary", "three_heads", "two_words", "verdict", "worked_examples",
]  # fmt: skip
