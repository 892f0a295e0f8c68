"""Sentence pairs: read from the user's file, split into training, validation and test."""

import unicodedata
from dataclasses import dataclass

import numpy as np

from ..support.checks import as_list, check_at_least, check_number, each_text, expecting
from ..support.counts import counted
from .files import read_columns


def read_pairs(path):
    """Read (source, target) sentences from a UTF-8 text file with one pair per line, separated by a tab.

    Ignores further columns (as in a Tatoeba or Anki export), blank lines and white space around a sentence.

    Raises FileNotFoundError, IsADirectoryError, and ValueError with the line number for a line of another form.
    """
    names = "source sentence", "target sentence"
    return read_columns(path, names, "a sentence, a tab and its translation", "sentence pairs")


@dataclass(frozen=True)
class Split:
    """Three lists of pairs, with no source sentence in more than one of them."""

    train: list
    validation: list
    test: list


def split_pairs(pairs, validation=0.1, test=0.1, seed=0, held_out=()):
    """Split the pairs at random into training, validation and test, the same way for the same seed.

    validation, test: shares of the distinct source sentences. All pairs with the same source sentence, ignoring case,
    stay together, so that a test sentence is really new to the model.
    held_out: source sentences that always go to the test part, in addition to its share

    Raises ValueError for shares that are not positive or leave nothing for training, and for too few pairs.
    """
    check_number("validation", validation, "(0, 1)")
    check_number("test", test, "(0, 1)")
    check_at_least("seed", seed, 0)
    if validation + test >= 1:
        raise ValueError(f"validation and test must be positive and together below 1, got {validation} and {test}")
    held_out = {_source_key(source) for source in each_text("held_out", held_out)}
    pairs = as_list("pairs", pairs, "(source, target)")  # read twice
    with expecting("pairs", "(source, target)", pairs):
        sources = dict.fromkeys(_source_key(source) for source, _ in pairs)
    free = [source for source in sources if source not in held_out]
    sizes = [max(1, round(share * len(free))) for share in (validation, test)]
    if len(free) <= sum(sizes):
        found = counted(len(free), "different text")
        raise ValueError(f"too few examples to split in three: {found}, at least 3 needed")

    part = dict.fromkeys(held_out, "test")
    for place, i in enumerate(np.random.default_rng(seed).permutation(len(free))):
        part[free[i]] = "validation" if place < sizes[0] else "test" if place < sum(sizes) else "train"
    parts = {"train": [], "validation": [], "test": []}
    for pair in pairs:
        parts[part[_source_key(pair[0])]].append(tuple(pair))
    return Split(**parts)


def _source_key(source):
    """A key that is equal for source sentences that a model can hardly tell apart."""
    return " ".join(unicodedata.normalize("NFC", source.casefold()).split())
