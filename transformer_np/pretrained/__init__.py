"""Weights that others have trained: folders in the layout of Hugging Face, read into our models and written back.

    model = Bert.from_pretrained("folder")            a folder on this disk, nothing is fetched; GPT and T5 likewise
    model.save_pretrained("other folder")             Hugging Face loads it

A folder holds `config.json` (the kind and the sizes), `model.safetensors` (the weights by name) and, for text,
`tokenizer.json`. Weights in a pickle (`.bin`, `.pt`) are refused: reading one runs whatever is in it.
"""

from ..models.layouts.folder import load_any, load_pretrained, save_pretrained
from .sentences import SentenceEncoder, minilm_folder
from .tokenizer import PretrainedTokenizer

__all__ = [
    "PretrainedTokenizer",
    "SentenceEncoder",
    "load_any",
    "load_pretrained",
    "minilm_folder",
    "save_pretrained",
]
