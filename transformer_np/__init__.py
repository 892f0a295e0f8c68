"""The Transformer in plain NumPy, with every gradient written by hand.

    from transformer_np import Transformer, TransformerConfig, functional as F

Importing the package imports NumPy and nothing heavier; `data`, `training`, `plots`, `lecture` and what comes
from them are loaded when they are first asked for.
"""

from importlib import import_module

from . import decoding, functional, gradcheck, layers, masks, models, module
from .decoding import beam_search, greedy_decode
from .gradcheck import check_gradients
from .models import Transformer, TransformerConfig

__version__ = "0.1.0"

_LATER = {
    "Adam": "training",
    "AdamW": "training",
    "TeacherForcing": "training",
    "Trainer": "training",
    "noam_schedule": "training",
    "Translator": "tasks.translation",
}
_LATER_MODULES = ("data", "lecture", "plots", "tasks", "training")

__all__ = [
    "Transformer",
    "TransformerConfig",
    "beam_search",
    "check_gradients",
    "decoding",
    "functional",
    "gradcheck",
    "greedy_decode",
    "layers",
    "masks",
    "models",
    "module",
    *_LATER,
    *_LATER_MODULES,
]


def __getattr__(name):
    if name in _LATER_MODULES:
        return import_module(f".{name}", __name__)
    if name in _LATER:
        return getattr(import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
