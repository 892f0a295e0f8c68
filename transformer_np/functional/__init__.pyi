"""Made by tests/make_stubs.py for editors and type checkers; the docstrings are in the .py files."""

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

TILE: int
FUNCTIONS: Mapping[str, Callable]

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

def alibi_bias(num_heads: int, T: int, S: int | None = None, dtype: DTypeLike = np.float32) -> np.ndarray: ...
def attention_scores(
    q: ArrayLike,
    k: ArrayLike,
    mask: np.ndarray | tuple[np.ndarray, ...] | None = None,
) -> np.ndarray: ...
def causal_conv1d(x: ArrayLike, w: ArrayLike, b: ArrayLike | None = None, dilation: int = 1) -> np.ndarray: ...
def causal_conv1d_backward(
    dy: ArrayLike,
    x: ArrayLike,
    w: ArrayLike,
    dilation: int = 1,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def cross_entropy(
    logits: ArrayLike,
    targets: ArrayLike,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
) -> tuple[np.floating, np.ndarray]: ...
def cross_entropy_backward(
    probs: ArrayLike,
    targets: ArrayLike,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    dloss: float | np.floating | np.ndarray = 1.0,
) -> np.ndarray: ...
def dropout(x: ArrayLike, p: float, rng: np.random.Generator | int) -> tuple[np.ndarray, np.ndarray]: ...
def dropout_backward(dy: ArrayLike, keep: np.ndarray, p: float) -> np.ndarray: ...
def embedding(ids: ArrayLike, table: ArrayLike) -> np.ndarray: ...
def embedding_backward(dy: ArrayLike, ids: ArrayLike, num_embeddings: int) -> np.ndarray: ...
def feed_forward(
    x: ArrayLike,
    w1: ArrayLike,
    b1: ArrayLike,
    w2: ArrayLike,
    b2: ArrayLike,
) -> tuple[np.ndarray, np.ndarray]: ...
def feed_forward_backward(
    dy: ArrayLike,
    x: ArrayLike,
    hidden: ArrayLike,
    w1: ArrayLike,
    w2: ArrayLike,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
def gated_feed_forward(
    x: ArrayLike,
    w_gate: ArrayLike,
    w1: ArrayLike,
    w2: ArrayLike,
    activation: str = "gelu_tanh",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def gated_feed_forward_backward(
    dy: ArrayLike,
    x: ArrayLike,
    gate: ArrayLike,
    value: ArrayLike,
    w_gate: ArrayLike,
    w1: ArrayLike,
    w2: ArrayLike,
    activation: str = "gelu_tanh",
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
def gelu(x: ArrayLike, approximate: Literal["tanh", "none"] = "tanh") -> np.ndarray: ...
def gelu_backward(dy: ArrayLike, x: ArrayLike, approximate: Literal["tanh", "none"] = "tanh") -> np.ndarray: ...
def layer_norm(
    x: ArrayLike,
    gamma: ArrayLike,
    beta: ArrayLike,
    eps: float = 1e-05,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def layer_norm_backward(
    dy: ArrayLike,
    x_hat: ArrayLike,
    inv_std: ArrayLike,
    gamma: ArrayLike,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def linear(x: ArrayLike, w: ArrayLike, b: ArrayLike | None = None) -> np.ndarray: ...
def linear_backward(dy: ArrayLike, x: ArrayLike, w: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def lora(x: ArrayLike, a: ArrayLike, b: ArrayLike, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]: ...
def lora_backward(
    dy: ArrayLike,
    x: ArrayLike,
    low: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    scale: float = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def merge_heads(x: ArrayLike) -> np.ndarray: ...
def negative_sampling_loss(
    center: ArrayLike,
    context: ArrayLike,
    negatives: ArrayLike,
) -> tuple[np.floating, np.ndarray, np.ndarray]: ...
def negative_sampling_loss_backward(
    center: ArrayLike,
    context: ArrayLike,
    negatives: ArrayLike,
    p_context: ArrayLike,
    p_negatives: ArrayLike,
    dloss: float | np.floating | np.ndarray = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def relative_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    r: ArrayLike,
    content_bias: ArrayLike,
    position_bias: ArrayLike,
    mask: np.ndarray | tuple[np.ndarray, ...] | None = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def relative_attention_backward(
    dout: ArrayLike,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    r: ArrayLike,
    content_bias: ArrayLike,
    position_bias: ArrayLike,
    weights: ArrayLike,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
def relative_position_bias(table: ArrayLike, buckets: ArrayLike) -> np.ndarray: ...
def relative_position_bias_backward(dbias: ArrayLike, buckets: ArrayLike, num_buckets: int) -> np.ndarray: ...
def relative_position_buckets(
    T: int,
    S: int | None = None,
    num_buckets: int = 32,
    max_distance: int = 128,
    bidirectional: bool = True,
) -> np.ndarray: ...
def relative_shift(x: ArrayLike) -> np.ndarray: ...
def relative_shift_backward(dy: ArrayLike) -> np.ndarray: ...
def relu(x: ArrayLike) -> np.ndarray: ...
def relu_backward(dy: ArrayLike, x: ArrayLike) -> np.ndarray: ...
def repeat_heads(x: ArrayLike, repeats: int) -> np.ndarray: ...
def repeat_heads_backward(dy: ArrayLike, repeats: int) -> np.ndarray: ...
def rms_norm(x: ArrayLike, gamma: ArrayLike, eps: float = 1e-06) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def rms_norm_backward(
    dy: ArrayLike,
    x_hat: ArrayLike,
    inv_rms: ArrayLike,
    gamma: ArrayLike,
) -> tuple[np.ndarray, np.ndarray]: ...
def rnn(x: ArrayLike, w_x: ArrayLike, w_h: ArrayLike, b: ArrayLike | None = None) -> np.ndarray: ...
def rnn_backward(
    dh: ArrayLike,
    x: ArrayLike,
    h: ArrayLike,
    w_x: ArrayLike,
    w_h: ArrayLike,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
def rotary(
    x: ArrayLike,
    positions: ArrayLike,
    theta: float = 10000.0,
    scaling: Mapping[str, str | float] | None = None,
    adjacent: bool = False,
) -> np.ndarray: ...
def rotary_backward(
    dy: ArrayLike,
    positions: ArrayLike,
    theta: float = 10000.0,
    scaling: Mapping[str, str | float] | None = None,
    adjacent: bool = False,
) -> np.ndarray: ...
def rotary_frequencies(
    K: int,
    theta: float = 10000.0,
    scaling: Mapping[str, str | float] | None = None,
) -> np.ndarray: ...
def scaled_dot_product_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    mask: np.ndarray | tuple[np.ndarray, ...] | None = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def scaled_dot_product_attention_backward(
    dout: ArrayLike,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    weights: ArrayLike,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def silu(x: ArrayLike) -> np.ndarray: ...
def silu_backward(dy: ArrayLike, x: ArrayLike) -> np.ndarray: ...
def sinusoidal_encoding(length: int, d_model: int, dtype: DTypeLike = np.float32) -> np.ndarray: ...
def softmax(x: ArrayLike, axis: int = -1) -> np.ndarray: ...
def softmax_backward(dy: ArrayLike, y: ArrayLike, axis: int = -1) -> np.ndarray: ...
def split_heads(x: ArrayLike, num_heads: int) -> np.ndarray: ...
def tanh(x: ArrayLike) -> np.ndarray: ...
def tanh_backward(dy: ArrayLike, y: ArrayLike) -> np.ndarray: ...
def tiled_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    mask: np.ndarray | tuple[np.ndarray, ...] | None = None,
    tile: int = 256,
) -> tuple[np.ndarray, np.ndarray]: ...
def tiled_attention_backward(
    dout: ArrayLike,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    out: ArrayLike,
    log_total: ArrayLike,
    mask: np.ndarray | tuple[np.ndarray, ...] | None = None,
    tile: int = 256,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
def unscaled_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    bias: ArrayLike | None = None,
    mask: np.ndarray | tuple[np.ndarray, ...] | None = None,
) -> tuple[np.ndarray, np.ndarray]: ...
def unscaled_attention_backward(
    dout: ArrayLike,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    weights: ArrayLike,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...
def window_attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    window: int,
    causal: bool = False,
) -> tuple[np.ndarray, np.ndarray]: ...
def window_attention_backward(
    dout: ArrayLike,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    weights: ArrayLike,
    window: int,
    causal: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
