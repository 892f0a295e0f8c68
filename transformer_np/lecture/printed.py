"""The numbers printed in the lecture's documents, by name: `printed.FIVE_QKV.values`. `printed.toml` has them.

Nothing here is computed: `steps` computes, `examples` compares.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

NOTES = "lecture notes"
SLIDES = "lecture slides"
PAPER_NOTES = "paper notes"
ARCHITECTURE_SLIDES = "architecture slides"
ILLUSTRATED_SLIDES = "illustrated slides"

DOCUMENTS = {
    NOTES: "L. N. Ferreira, INF721 Deep Learning, L17: Transformers, Universidade Federal de Viçosa, 2024/2",
    SLIDES: "the slides “Transformers”, which end with the table of complexities and with GPT and BERT",
    PAPER_NOTES: "“Transformer: Notes on Attention is all you need”",
    ARCHITECTURE_SLIDES: "the slides “Transformers – Architecture”, with the sentence “Hi how are you”",
    ILLUSTRATED_SLIDES: "the slides “Transformer”, after Jay Alammar's Illustrated Transformer",
}


@dataclass(frozen=True, eq=False)
class Printed:
    """Numbers as a document prints them.

    where: the document and the place in it
    values: array of float64, read-only
    digits: the number of printed decimals; None for a sentence that claims exact values
    """

    where: str
    values: np.ndarray
    digits: int | None = None

    def __post_init__(self):
        values = np.array(self.values, dtype=np.float64)
        values.setflags(write=False)
        object.__setattr__(self, "values", values)


FIVE_WORDS, FOUR_WORDS = ("Lucas", "will", "travel", "in", "December"), ("Hi", "how", "are", "you")
THREE_WORDS, TWO_WORDS = FIVE_WORDS[:3], ("Thinking", "Machines")
TWO_WORDS_D_K = 64  # "Divide by 8 (√d_k)"
EXERCISE_4 = ("masked self-attention", "cross-attention", "feed-forward network", "layer normalisation")


@cache
def _entries():
    entries = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {name: Printed(**entry) for name, entry in entries.items()}


def __getattr__(name):
    """The Printed of this name."""
    if name.isupper() and name in _entries():
        return _entries()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_entries()})
