"""The Transformer in plain NumPy, with every gradient written by hand.

    from transformer_np import Transformer, TransformerConfig, functional as F

Everything is loaded on first use: `import transformer_np` is fast, and matplotlib, tqdm and safetensors are loaded only
by the parts that need them.
"""

from importlib import import_module

__version__ = "0.1.0"

_MODULES = (
    "data",
    "decoding",
    "functional",
    "gradcheck",
    "homework",
    "layers",
    "lecture",
    "masks",
    "models",
    "module",
    "plots",
    "pretrained",
    "tasks",
    "training",
)
_HOMES = {
    "Adam": "training",
    "AdamW": "training",
    "Bert": "models",
    "BertConfig": "models",
    "GPT": "models",
    "GPTConfig": "models",
    "Llama": "models",
    "LlamaConfig": "models",
    "T5": "models",
    "T5Config": "models",
    "TeacherForcing": "training",
    "TextToText": "tasks.t5",
    "Trainer": "training",
    "Transformer": "models",
    "TransformerConfig": "models",
    "TransformerXL": "models",
    "TransformerXLConfig": "models",
    "Translator": "tasks.translation",
    "Word2Vec": "models",
    "Word2VecConfig": "models",
    "WordVectors": "tasks.word2vec",
    "beam_search": "decoding",
    "check_gradients": "gradcheck",
    "generate": "decoding",
    "greedy_decode": "decoding",
    "noam_schedule": "training",
    "trace": "tracing",
}

__all__ = [*_HOMES, *_MODULES]


def __getattr__(name):
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
