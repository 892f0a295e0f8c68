"""The mathematics as pure functions, each forward beside its backward: `from transformer_np import functional as F`.

`core` is the lecture, to be read from top to bottom. Every other subject has a file of its own: `activations`, `t5`,
`transformer_xl`, `word2vec`, `rotary` and `grouped` (Llama), `lora` (fine-tuning), `comparison` (recurrence and
convolution), `window` and `tiled` (long sequences). `fast` and `special` hold numerical helpers. Every function can be
called as F.name.
"""

import sys
from types import ModuleType

from .activations import gelu, gelu_backward, silu, silu_backward, tanh, tanh_backward
from .activations import gelu_with_slope as gelu_with_slope
from .comparison import (
    causal_conv1d,
    causal_conv1d_backward,
    rnn,
    rnn_backward,
)
from .core import (
    attention_scores,
    cross_entropy,
    cross_entropy_backward,
    dropout,
    dropout_backward,
    embedding,
    embedding_backward,
    feed_forward,
    feed_forward_backward,
    layer_norm,
    layer_norm_backward,
    linear,
    linear_backward,
    merge_heads,
    relu,
    relu_backward,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    sinusoidal_encoding,
    softmax,
    softmax_backward,
    split_heads,
)
from .grouped import repeat_heads, repeat_heads_backward
from .lora import lora, lora_backward
from .rotary import rotary, rotary_backward, rotary_frequencies
from .t5 import (
    alibi_bias,
    gated_feed_forward,
    gated_feed_forward_backward,
    relative_position_bias,
    relative_position_bias_backward,
    relative_position_buckets,
    rms_norm,
    rms_norm_backward,
    unscaled_attention,
    unscaled_attention_backward,
)
from .tiled import TILE as TILE
from .tiled import tiled_attention, tiled_attention_backward
from .transformer_xl import (
    relative_attention,
    relative_attention_backward,
    relative_shift,
    relative_shift_backward,
)
from .window import window_attention, window_attention_backward
from .word2vec import negative_sampling_loss, negative_sampling_loss_backward

__all__ = [
    "alibi_bias",
    "attention_scores",
    "causal_conv1d",
    "causal_conv1d_backward",
    "cross_entropy",
    "cross_entropy_backward",
    "dropout",
    "dropout_backward",
    "embedding",
    "embedding_backward",
    "feed_forward",
    "feed_forward_backward",
    "gated_feed_forward",
    "gated_feed_forward_backward",
    "gelu",
    "gelu_backward",
    "layer_norm",
    "layer_norm_backward",
    "linear",
    "linear_backward",
    "lora",
    "lora_backward",
    "merge_heads",
    "negative_sampling_loss",
    "negative_sampling_loss_backward",
    "relative_attention",
    "relative_attention_backward",
    "relative_position_bias",
    "relative_position_bias_backward",
    "relative_position_buckets",
    "relative_shift",
    "relative_shift_backward",
    "relu",
    "relu_backward",
    "repeat_heads",
    "repeat_heads_backward",
    "rms_norm",
    "rms_norm_backward",
    "rnn",
    "rnn_backward",
    "rotary",
    "rotary_backward",
    "rotary_frequencies",
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_backward",
    "silu",
    "silu_backward",
    "sinusoidal_encoding",
    "softmax",
    "softmax_backward",
    "split_heads",
    "tanh",
    "tanh_backward",
    "tiled_attention",
    "tiled_attention_backward",
    "unscaled_attention",
    "unscaled_attention_backward",
    "window_attention",
    "window_attention_backward",
]


def __dir__():
    return __all__  # Tab completion shows the functions, not their helpers


class _Functional(ModuleType):
    """A module in which `F.name = function` swaps the function here and in every file of this package that calls it."""

    def __setattr__(self, name, value):
        for module in _FILES:
            if name in vars(module):
                setattr(module, name, value)
        super().__setattr__(name, value)


_FILES = [module for name, module in sys.modules.items() if name.startswith(f"{__name__}.")]
sys.modules[__name__].__class__ = _Functional
