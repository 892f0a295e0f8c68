"""Text as input for a model: tokenizers, sentence pairs, batches and built-in corpora."""

from .batching import MixedBatches, PackedPairs, Seq2SeqBatch, Seq2SeqBatches, pad_batch, shift_right
from .bpe import BPETokenizer
from .corpus import LECTURE_SENTENCE, LECTURE_TRANSLATION, english_portuguese
from .dates import write_date, written_dates
from .large import LargeText, encode_text
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
from .seen import Seen
from .sentiment import labels_of, read_labelled, sentiment_sentences
from .skipgrams import SkipGramBatch, SkipGrams
from .spans import SentinelTokenizer, SpanBatches, choose_spans, corrupt_spans, count_spans, join_spans, sentinel
from .streams import Segment, TextStreams
from .text import (
    TextBatch,
    TextBatches,
    TextSplit,
    documentation_text,
    open_text,
    read_text,
    split_text,
    validation_batches,
)
from .tokenizers import BOS, EOS, PAD, UNK, CharTokenizer, PlainWordTokenizer, Tokenizer, WordTokenizer
from .vectors import read_vectors, write_vectors

__all__ = [
    "BOS", "EOS", "IGNORED", "LECTURE_SENTENCE", "LECTURE_TRANSLATION", "PAD", "UNK", "BPETokenizer", "CharTokenizer",
    "LabelledBatch", "LabelledBatches", "LargeText", "MaskedBatch", "MaskedBatches", "MixedBatches", "PackedPairs",
    "PlainWordTokenizer", "Seen", "Segment", "SentinelTokenizer", "Seq2SeqBatch", "Seq2SeqBatches", "SkipGramBatch",
    "SkipGrams", "SpanBatches", "Split", "TextBatch", "TextBatches", "TextSplit", "TextStreams", "Tokenizer",
    "WordTokenizer", "as_encoder_input", "choose_spans", "corrupt_spans", "count_spans", "documentation_text",
    "encode_text", "english_portuguese", "join_spans", "labels_of", "mask_tokens", "open_text", "pad_batch",
    "read_labelled", "read_pairs", "read_text", "read_vectors", "sentiment_sentences", "sentinel", "shift_right",
    "split_pairs", "split_text", "validation_batches", "with_mask", "write_date", "write_vectors", "written_dates",
]  # fmt: skip
