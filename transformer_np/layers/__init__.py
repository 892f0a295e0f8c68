"""The layers, one file each: parameters around the functions of `functional`, with what a backward needs kept."""

from .attention import MultiHeadAttention
from .dropout import Dropout
from .embedding import Embedding, TiedLinear
from .feed_forward import FeedForward
from .linear import Linear
from .norm import LayerNorm
from .positional import LearnedPositionalEmbedding, PositionalEncoding

__all__ = [
    "Dropout",
    "Embedding",
    "FeedForward",
    "LayerNorm",
    "LearnedPositionalEmbedding",
    "Linear",
    "MultiHeadAttention",
    "PositionalEncoding",
    "TiedLinear",
]
