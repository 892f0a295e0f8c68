"""Text as a model takes it: tokenizers, sentence pairs, batches, and a corpus to begin with."""

from .batching import Seq2SeqBatch, Seq2SeqBatches, pad_batch, shift_right
from .corpus import LECTURE_SENTENCE, LECTURE_TRANSLATION, english_portuguese
from .pairs import Split, read_pairs, split_pairs
from .tokenizers import BOS, EOS, PAD, UNK, CharTokenizer, Tokenizer, WordTokenizer

__all__ = [
    "BOS",
    "EOS",
    "LECTURE_SENTENCE",
    "LECTURE_TRANSLATION",
    "PAD",
    "UNK",
    "CharTokenizer",
    "Seq2SeqBatch",
    "Seq2SeqBatches",
    "Split",
    "Tokenizer",
    "WordTokenizer",
    "english_portuguese",
    "pad_batch",
    "read_pairs",
    "shift_right",
    "split_pairs",
]
