"""The models, each with its config dataclass."""

from .gpt import GPT, GPTConfig
from .transformer import Transformer, TransformerConfig

__all__ = ["GPT", "GPTConfig", "Transformer", "TransformerConfig"]
