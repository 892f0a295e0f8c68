"""Pretrained weights: folders in Hugging Face's layout, read into our models and written back.

    model = Bert.from_pretrained("folder")            a local folder, never downloaded; also GPT, Llama, T5
    model.save_pretrained("other folder")             Hugging Face loads it

A folder holds `config.json` (type and sizes), `model.safetensors` (the weights by name) or its shards with their index
and, for text, `tokenizer.json`. Weights in a pickle (`.bin`, `.pt`) are refused, because a pickle can run any code when
it is read.
"""

from ..models.layouts.folder import load_any, load_pretrained, save_pretrained
from .folder import PretrainedFolder
from .sentences import SentenceEncoder, minilm_folder
from .tokenizer import PretrainedTokenizer

__all__ = [
    "PretrainedFolder", "PretrainedTokenizer", "SentenceEncoder", "load_any", "load_pretrained", "minilm_folder",
    "save_pretrained",
]  # fmt: skip
