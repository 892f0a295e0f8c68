"""The models, each with its config dataclass."""

from .bert import Bert, BertConfig
from .gpt import GPT, GPTConfig
from .transformer import Transformer, TransformerConfig
from .transformer_xl import TransformerXL, TransformerXLConfig

__all__ = [
    "GPT",
    "Bert",
    "BertConfig",
    "GPTConfig",
    "Transformer",
    "TransformerConfig",
    "TransformerXL",
    "TransformerXLConfig",
]
