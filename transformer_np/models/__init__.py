"""The models, each with its config dataclass."""

from .transformer import Transformer, TransformerConfig

__all__ = ["Transformer", "TransformerConfig"]
