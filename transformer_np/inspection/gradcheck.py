"""Gradient checks: hand-written gradients against finite differences, for a function or a whole module."""

import copy
from dataclasses import dataclass

import numpy as np

from .. import functional as F
from ..module import Module
from ..support.checks import as_rng, check_at_least, check_number

TOLERANCE = 1e-6

# For each function of `functional`: from dout and the function's inputs to the gradients that its backward returns.
BACKWARDS = {
    "linear": lambda dy, x, w, b=None: F.linear_backward(dy, x, w)[: 2 if b is None else 3],
    "embedding": lambda dy, ids, table: F.embedding_backward(dy, ids, len(table)),
    "softmax": lambda dy, x, axis=-1: F.softmax_backward(dy, F.softmax(x, axis), axis),
    "relu": lambda dy, x: F.relu_backward(dy, x),
    "tanh": lambda dy, x: F.tanh_backward(dy, F.tanh(x)),
    "silu": lambda dy, x: F.silu_backward(dy, x),
    "gelu": lambda dy, x, approximate="tanh": F.gelu_backward(dy, x, approximate),
    "layer_norm": lambda dy, x, gamma, beta, eps=1e-5: F.layer_norm_backward(
        dy, *F.layer_norm(x, gamma, beta, eps)[1:], gamma
    ),
    "rms_norm": lambda dy, x, gamma, eps=1e-6: F.rms_norm_backward(dy, *F.rms_norm(x, gamma, eps)[1:], gamma),
    "dropout": lambda dy, x, p, rng: F.dropout_backward(dy, F.dropout(x, p, rng)[1], p),
    "scaled_dot_product_attention": lambda dout, q, k, v, mask=None: F.scaled_dot_product_attention_backward(
        dout, q, k, v, F.scaled_dot_product_attention(q, k, v, mask)[1]
    ),
    "tiled_attention": lambda dout, q, k, v, mask=None, tile=F.TILE: F.tiled_attention_backward(
        dout, q, k, v, *F.tiled_attention(q, k, v, mask, tile), mask, tile
    ),
    "relative_shift": lambda dy, x: F.relative_shift_backward(dy),
    "relative_attention": lambda dout, *inputs, mask=None: F.relative_attention_backward(
        dout, *inputs[:6], F.relative_attention(*inputs, mask=mask)[1]
    ),
    "split_heads": lambda dout, x, num_heads: F.merge_heads(dout),
    "merge_heads": lambda dout, x: F.split_heads(dout, x.shape[1]),
    "feed_forward": lambda dy, x, w1, b1, w2, b2: F.feed_forward_backward(
        dy, x, F.feed_forward(x, w1, b1, w2, b2)[1], w1, w2
    ),
    "relative_position_bias": lambda dbias, table, buckets: F.relative_position_bias_backward(
        dbias, buckets, len(table)
    ),
    "unscaled_attention": lambda dout, q, k, v, bias=None, mask=None: F.unscaled_attention_backward(
        dout, q, k, v, F.unscaled_attention(q, k, v, bias, mask)[1]
    )[: 3 if bias is None else 4],
    "gated_feed_forward": lambda dy, x, w_gate, w1, w2, activation="gelu_tanh": F.gated_feed_forward_backward(
        dy, x, *F.gated_feed_forward(x, w_gate, w1, w2, activation)[1:], w_gate, w1, w2, activation
    ),
    "rotary": lambda dy, x, positions, theta=10000.0, scaling=None, adjacent=False: F.rotary_backward(
        dy, positions, theta, scaling, adjacent
    ),
    "repeat_heads": lambda dy, x, repeats: F.repeat_heads_backward(dy, repeats),
    "lora": lambda dy, x, a, b, scale=1.0: F.lora_backward(dy, x, F.lora(x, a, b, scale)[1], a, b, scale),
    "rnn": lambda dh, x, w_x, w_h, b=None: F.rnn_backward(dh, x, F.rnn(x, w_x, w_h, b), w_x, w_h)[
        : 3 if b is None else 4
    ],
    "causal_conv1d": lambda dy, x, w, b=None, dilation=1: F.causal_conv1d_backward(dy, x, w, dilation)[
        : 2 if b is None else 3
    ],
    "window_attention": lambda dout, q, k, v, window, causal=False: F.window_attention_backward(
        dout, q, k, v, F.window_attention(q, k, v, window, causal)[1], window, causal
    ),
    "cross_entropy": lambda dloss, logits, targets, ignore_index=None, label_smoothing=0.0: F.cross_entropy_backward(
        F.cross_entropy(logits, targets, ignore_index)[1], targets, ignore_index, label_smoothing, float(dloss)
    ),
    "negative_sampling_loss": lambda dloss, *inputs: F.negative_sampling_loss_backward(
        *inputs, *F.negative_sampling_loss(*inputs)[1:], float(dloss)
    ),
}


@dataclass(frozen=True)
class Entry:
    """One input or parameter: its name, the worst relative error, the index of it, and the two numbers there."""

    name: str
    error: float
    index: tuple
    analytic: float
    numeric: float


@dataclass(frozen=True)
class GradientReport:
    """The entries of all inputs and parameters. `print(report)` shows a table, the worst first."""

    target: str
    entries: list
    tolerance: float

    @property
    def worst(self):
        """The entry with the largest error."""
        return max(self.entries, key=lambda entry: entry.error)

    @property
    def passed(self):
        return self.worst.error <= self.tolerance

    def __str__(self):
        width = max(len(entry.name) for entry in self.entries)
        lines = [f"{self.target}: {'right' if self.passed else 'WRONG'} (tolerance {self.tolerance:g})"]
        for entry in sorted(self.entries, key=lambda entry: -entry.error):
            place = ", ".join(map(str, entry.index))
            lines.append(
                f"  {entry.name:<{width}}  {entry.error:8.1e} at ({place}): "
                f"backward {entry.analytic:.10g}, differences {entry.numeric:.10g}"
            )
        return "\n".join(lines)


def check_gradients(
    target, *inputs, backward=None, rng=0, step=1e-5, max_entries=None, tolerance=TOLERANCE, floor=1e-3, **options
):
    """Compare a hand-written backward with central differences, in float64.

        ∂L/∂x ≈ (L(x + h) − L(x − h)) / 2h,    L = Σ dout · output,  dout random

    target: a function of `functional`, any other function with its `backward(dout, *inputs, **options)`, or a Module
    inputs: its inputs; float arrays are checked, everything else (ids, a rate, a seed) is passed on unchanged
    options: keyword arguments for every call, such as mask=…; they are not differentiated
    max_entries: check this many random entries of every array instead of all

    The relative error of a tensor is max |analytic − numeric| / max(largest |gradient| in the tensor, floor). The floor
    is for gradients that are always zero, such as that of the key bias of attention.

    The check works on a copy of a module. Active dropout draws the same numbers every time. The gradients of the
    parameters start from random values, because a backward must add to them.

    ->  GradientReport
    """
    rng = as_rng(rng)
    check_number("step", step, "(0, ∞)")
    check_number("tolerance", tolerance, "[0, ∞)")
    check_number("floor", floor, "(0, ∞)")
    if max_entries is not None:
        check_at_least("max_entries", max_entries, 1)
    inputs = [np.array(x, np.float64) if _is_float_array(x) else x for x in inputs]
    if hasattr(target, "named_parameters"):
        name = type(target).__name__
        forward, gradients, parameters = _of_module(target, inputs, options, rng)
    else:
        name = getattr(target, "__name__", "function")
        backward = backward or BACKWARDS.get(name)
        if backward is None:
            raise ValueError(f"{name} is not a function of transformer_np.functional: pass its backward=")
        forward, gradients, parameters = *_of_function(target, backward, inputs, options), {}

    output = forward()
    dout = rng.normal(size=np.shape(output))
    variables = {**_names_of_inputs(inputs), **parameters}  # name -> array, changed in place below
    if not variables:
        raise ValueError(f"{name} has neither float inputs nor parameters: there is no gradient to check")
    returned = gradients(dout)
    if len(returned) != len(variables):
        raise ValueError(f"{name}: {len(returned)} gradients for {len(variables)} arrays ({', '.join(variables)})")
    entries = []
    for (variable, array), analytic in zip(variables.items(), returned, strict=True):
        if np.shape(analytic) != array.shape:
            raise ValueError(f"{name}: the gradient of {variable} has shape {np.shape(analytic)}, not {array.shape}")
        entries.append(_compare(variable, array, analytic, lambda: dout * forward(), step, floor, max_entries, rng))
    return GradientReport(name, entries, tolerance)


def _is_float_array(x):
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def _names_of_inputs(inputs):
    return {f"input {i}": x for i, x in enumerate(inputs) if _is_float_array(x)}


def _first(output):
    """The result of a function: the first element if it returns a tuple."""
    return output[0] if isinstance(output, tuple) else output


def _of_function(function, backward, inputs, options):
    """forward and gradients(dout) of a function."""

    def forward():
        return _first(function(*inputs, **options))

    def gradients(dout):
        result = backward(dout, *inputs, **options)
        return result if isinstance(result, tuple) else (result,)

    return forward, gradients


def _of_module(module, inputs, options, rng):
    """forward, gradients(dout) and {name: array} of a float64 copy of the module."""
    module = copy.deepcopy(module).astype(np.float64)
    if not module.keeping:
        module.eval(keep=True)
    generators = [m.rng for _, m in module.named_modules() if hasattr(m, "rng")]
    states = [g.bit_generator.state for g in generators]

    def forward():
        for generator, state in zip(generators, states, strict=True):
            generator.bit_generator.state = state
        return _first(module(*inputs, **options))

    def gradients(dout):
        before = {}
        for name, parameter in module.learned().items():
            before[name] = parameter.grad = rng.normal(size=parameter.shape)
        forward()
        returned = module.backward(dout)
        returned = returned if isinstance(returned, tuple) else (returned,)
        returned = [gradient for gradient in returned if gradient is not None]
        return [*returned, *(p.grad - before[name] for name, p in module.learned().items())]

    return forward, gradients, {name: parameter.data for name, parameter in module.learned().items()}


def _compare(name, array, analytic, terms, step, floor, max_entries, rng):
    """The entry for one array: moves every element, or a sample, up and down by `step`. The loss is Σ terms()."""
    places = np.arange(array.size)
    if max_entries is not None and array.size > max_entries:
        places = np.sort(rng.choice(array.size, max_entries, replace=False))
    flat, analytic = array.flat, np.asarray(analytic).reshape(-1)  # .flat is never a copy, whatever the memory layout
    numeric = np.empty(len(places))
    for i, place in enumerate(places):
        value = flat[place]
        flat[place] = value + step
        up = terms()
        flat[place] = value - step
        down = terms()
        flat[place] = value
        numeric[i] = np.sum(up - down) / (2 * step)  # subtract before summing: less rounding error
    scale = max(np.abs(a).max(initial=floor, where=np.isfinite(a)) for a in (analytic, numeric))
    errors = np.abs(analytic[places] - numeric) / scale
    errors = np.where(np.isfinite(errors), errors, np.inf)  # NaN counts as wrong
    worst = int(errors.argmax())
    index = tuple(int(i) for i in np.unravel_index(places[worst], array.shape))
    return Entry(name, float(errors[worst]), index, float(analytic[places[worst]]), float(numeric[worst]))


class OutputOf(Module):
    """A module whose forward is another method of a module, for checking it: `OutputOf(bert, "classify")`."""

    def __init__(self, module, method):
        self.module, self.method = module, method

    def forward(self, *inputs, **options):
        return getattr(self.module, self.method)(*inputs, **options)

    def backward(self, dout):
        return self.module.backward(dout)


def standard_checks(seed=0):
    """The checks of `transformer-np gradcheck`: {name: a function that returns the report}, for every function pair,
    every layer and block, and small models. All sizes differ; all values are random and of order 1."""
    from .. import layers
    from ..layers import blocks
    from ..models import (
        T5,
        Bert,
        BertConfig,
        Llama,
        LlamaConfig,
        T5Config,
        Transformer,
        TransformerConfig,
        TransformerXL,
        TransformerXLConfig,
        Word2Vec,
        Word2VecConfig,
    )

    check_at_least("seed", seed, 0)
    rng = np.random.default_rng(seed)
    B, T, S, D, H, V = 2, 3, 4, 6, 2, 7

    def normal(*shape):
        return rng.normal(size=shape)

    def randomised(module):
        """The module with random parameters: γ = 1 and b = 0 would hide mistakes. Matrices are a little smaller, so
        that a stack of blocks does not saturate its softmaxes."""
        for parameter in module.parameters():
            parameter.data = normal(*parameter.shape) / len(parameter.shape)
        return module

    ids = np.array([[4, 1, 4], [0, 3, 1]])
    mask = np.array([[False, True, False, False], [True, True, True, True], [False, False, False, True]])
    config = TransformerConfig(
        V, V + 2, d_model=D, num_heads=H, num_encoder_layers=2, num_decoder_layers=2, d_ff=5, max_len=9, dropout=0.2
    )
    xl_config = TransformerXLConfig(V, d_model=D, num_heads=H, num_layers=2, d_ff=5, mem_len=4, dropout=0.2)
    t5_config = T5Config(
        V + 2, D, H, 5, 2, 2, d_ff=5, num_buckets=6, max_distance=4, activation="gated_gelu", dropout=0.2
    )
    llama_config = LlamaConfig(V, 9, D, 4, 2, d_head=8, num_layers=2, d_ff=5, window=2, qkv_bias=True)
    bert = randomised(Bert(BertConfig(V, 9, D, H, num_layers=2, d_ff=5, num_classes=3, dropout=0.2)))
    mems = [normal(B, S, D), normal(B, S, D)]
    src, tgt_in = np.array([[4, 5, 6, 3], [5, 4, 0, 0]]), np.array([[1, 4, 8], [1, 4, 0]])
    targets = {
        "linear": (F.linear, normal(B, T, D), normal(D, 5), normal(5)),
        "embedding": (F.embedding, ids, normal(V, D)),
        "softmax": (F.softmax, normal(B, T, D)),
        "relu": (F.relu, normal(B, T, D)),
        "tanh": (F.tanh, normal(B, T, D)),
        "gelu": (F.gelu, normal(B, T, D)),
        "silu": (F.silu, normal(B, T, D)),
        "layer_norm": (F.layer_norm, normal(B, T, D), normal(D), normal(D)),
        "rms_norm": (F.rms_norm, normal(B, T, D), normal(D)),
        "dropout": (F.dropout, normal(B, T, D), 0.3, seed),
        "split_heads": (F.split_heads, normal(B, T, D), H),
        "merge_heads": (F.merge_heads, normal(B, H, T, 5)),
        "scaled_dot_product_attention": (
            F.scaled_dot_product_attention, normal(B, H, T, D), normal(B, H, S, D), normal(B, H, S, 5), mask,
        ),
        "tiled_attention": (
            F.tiled_attention, normal(B, H, T, D), normal(B, H, S, D), normal(B, H, S, 5), mask, 2,
        ),
        "relative_shift": (F.relative_shift, normal(B, T, S)),
        "relative_attention": (
            F.relative_attention,
            normal(B, H, T, D), normal(B, H, S, D), normal(B, H, S, 5), normal(H, S, D), normal(H, D), normal(H, D),
        ),
        "relative_position_bias": (F.relative_position_bias, normal(6, H), F.relative_position_buckets(T, S, 6, 4)),
        "unscaled_attention": (
            F.unscaled_attention,
            normal(B, H, T, D), normal(B, H, S, D), normal(B, H, S, 5), normal(H, T, S), np.arange(S) == 1,
        ),
        "gated_feed_forward": (
            F.gated_feed_forward, normal(B, T, D), normal(D, 5), normal(D, 5), normal(5, D),
        ),
        "rotary": (F.rotary, normal(B, H, T, D), [3, 0, 8], 5.0),
        "repeat_heads": (F.repeat_heads, normal(B, H, S, 5), 3),
        "lora": (F.lora, normal(B, T, D), normal(D, 2), normal(2, 5), 0.7),
        "feed_forward": (F.feed_forward, normal(B, T, D), normal(D, 5), normal(5), normal(5, D), normal(D)),
        "rnn": (F.rnn, normal(B, T, D), normal(D, 5), normal(5, 5), normal(5)),
        "causal_conv1d": (F.causal_conv1d, normal(B, 7, D), normal(3, D, 5), normal(5), 2),
        "window_attention": (F.window_attention, normal(B, 19, D), normal(B, 19, D), normal(B, 19, 5), 2),
        "cross_entropy": (F.cross_entropy, normal(B, T, V), ids, 1, 0.1),
        "negative_sampling_loss": (F.negative_sampling_loss, normal(T, D), normal(T, D), normal(T, S, D)),
        "Linear": (randomised(layers.Linear(D, 5)), normal(B, T, D)),
        "LoRA": (randomised(layers.LoRA(D, 5, 2)), normal(B, T, D)),
        "Embedding": (randomised(layers.Embedding(V, D)), ids),
        "PositionalEncoding": (layers.PositionalEncoding(D, 9), normal(B, T, D)),
        "LearnedPositionalEmbedding": (randomised(layers.LearnedPositionalEmbedding(9, D)), normal(B, T, D)),
        "LayerNorm": (randomised(layers.LayerNorm(D)), normal(B, T, D)),
        "RMSNorm": (randomised(layers.RMSNorm(D)), normal(B, T, D)),
        "RelativePositionBias": (randomised(layers.RelativePositionBias(H, 6, 4)), T, S),
        "Dropout": (layers.Dropout(0.3, rng=seed), normal(B, T, D)),
        "FeedForward": (randomised(layers.FeedForward(D, 5)), normal(B, T, D)),
        "MultiHeadAttention": (randomised(layers.MultiHeadAttention(D, H)), normal(B, T, D), normal(B, S, D), mask),
        "RelativeMultiHeadAttention": (randomised(layers.RelativeMultiHeadAttention(D, H)), normal(B, T, D)),
        "RNN": (randomised(layers.RNN(D, 5)), normal(B, T, D)),
        "CausalConv1d": (randomised(layers.CausalConv1d(D, 5, 3)), normal(B, 7, D)),
        "WindowAttention": (randomised(layers.WindowAttention(D, H, 3, causal=True)), normal(B, 7, D)),
        "EncoderBlock": (randomised(blocks.EncoderBlock(D, H, 5, dropout=0.2, rng=seed)), normal(B, T, D)),
        "DecoderBlock": (
            randomised(blocks.DecoderBlock(D, H, 5, dropout=0.2, rng=seed)), normal(B, T, D), normal(B, S, D),
        ),
        "Transformer": (randomised(Transformer(config)), src, tgt_in),
        "T5": (randomised(T5(t5_config)), src, tgt_in),
        "Llama": (randomised(Llama(llama_config)), ids),
        "Bert": (bert, src),
        "Bert.classify": (OutputOf(bert, "classify"), src),
        "Bert.mlm_logits": (OutputOf(bert, "mlm_logits"), src),
        "TransformerXL": (randomised(TransformerXL(xl_config)), ids, mems),
        "Word2Vec": (
            randomised(Word2Vec(Word2VecConfig(V, D))),
            np.array([4, 1, 4]), np.array([1, 0, 4]), np.array([[4, 1], [0, 0], [6, 3]]),
        ),
    }  # fmt: skip
    return {
        name: (lambda given=given: check_gradients(*given, rng=seed, max_entries=20)) for name, given in targets.items()
    }
