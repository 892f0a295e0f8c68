"""Text as a model takes it: tokenizers, sentence pairs, batches, and a corpus to begin with."""

from .batching import Seq2SeqBatch, Seq2SeqBatches, pad_batch, shift_right
from .bpe import BPETokenizer
from .corpus import LECTURE_SENTENCE, LECTURE_TRANSLATION, english_portuguese
from .masking import (
    IGNORED,
    LabelledBatch,
    LabelledBatches,
    MaskedBatch,
    MaskedBatches,
    as_encoder_input,
    mask_tokens,
    with_mask,
)
from .pairs import Split, read_pairs, split_pairs
from .sentiment import labels_of, read_labelled, sentiment_sentences
from .streams import Segment, TextStreams
from .text import (
    TextBatch,
    TextBatches,
    TextSplit,
    documentation_text,
    read_text,
    split_text,
    validation_batches,
)
from .tokenizers import BOS, EOS, PAD, UNK, CharTokenizer, Tokenizer, WordTokenizer

__all__ = [
    "BOS",
    "EOS",
    "IGNORED",
    "LECTURE_SENTENCE",
    "LECTURE_TRANSLATION",
    "PAD",
    "UNK",
    "BPETokenizer",
    "CharTokenizer",
    "LabelledBatch",
    "LabelledBatches",
    "MaskedBatch",
    "MaskedBatches",
    "Segment",
    "Seq2SeqBatch",
    "Seq2SeqBatches",
    "Split",
    "TextBatch",
    "TextBatches",
    "TextSplit",
    "TextStreams",
    "Tokenizer",
    "WordTokenizer",
    "as_encoder_input",
    "documentation_text",
    "english_portuguese",
    "labels_of",
    "mask_tokens",
    "pad_batch",
    "read_labelled",
    "read_pairs",
    "read_text",
    "sentiment_sentences",
    "shift_right",
    "split_pairs",
    "split_text",
    "validation_batches",
    "with_mask",
]
