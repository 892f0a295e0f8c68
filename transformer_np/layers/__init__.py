"""The layers, one file each: they hold parameters, call `functional`, and keep the arrays for the backward pass."""

from .activated import ActivatedFeedForward
from .attention import MultiHeadAttention
from .convolution import CausalConv1d
from .dropout import Dropout
from .embedding import Embedding, TiedLinear
from .feed_forward import FeedForward
from .gated import GatedFeedForward
from .grouped_attention import GroupedQueryAttention
from .linear import Linear
from .lora import LoRA, add_lora, merge_lora
from .norm import LayerNorm, RMSNorm
from .positional import LearnedPositionalEmbedding, PositionalEncoding
from .recurrent import RNN
from .relative_attention import RelativeMultiHeadAttention
from .relative_bias import RelativePositionBias, UnscaledAttention
from .window_attention import WindowAttention

__all__ = [
    "RNN", "ActivatedFeedForward", "CausalConv1d", "Dropout", "Embedding", "FeedForward", "GatedFeedForward",
    "GroupedQueryAttention", "LayerNorm", "LearnedPositionalEmbedding", "Linear", "LoRA", "MultiHeadAttention",
    "PositionalEncoding", "RMSNorm", "RelativeMultiHeadAttention", "RelativePositionBias", "TiedLinear",
    "UnscaledAttention", "WindowAttention", "add_lora", "merge_lora",
]  # fmt: skip
