"""Random arguments for every function, layer and model: what the gradient checks and the tests call them with.

The arguments of a function come from its `@shapes`. All sizes differ and all values are of order 1, because equal sizes
hide a transposed axis, and γ = 1 or b = 0 hide a missing gradient.
"""

from functools import partial
from inspect import Parameter, signature

import numpy as np

from .. import functional as F
from .. import layers, models
from ..layers import blocks
from ..masks import causal_mask

SIZES = {  # of the letters in @shapes; "..." stands for the axes of IDS
    **{"B": 2, "N": 4, "T": 6, "S": 7, "H": 6, "G": 3, "D": 12, "K": 4, "K_v": 5, "V": 8, "R": 5, "1": 1},
    **{"F": 7, "D_in": 4, "D_out": 5, "k": 3},
}
IDS = np.array([[1, 4, 1], [0, 1, 2]])  # some more than once, some never
HIDDEN = np.arange(SIZES["S"]) > np.arange(SIZES["T"])[:, None]  # (T, S), and one row that is hidden whole:
HIDDEN[2] = True
EXAMPLES = {  # of the arguments that are no arrays of floats; an argument with a new name gets a line here
    "buckets": np.arange(SIZES["T"] * SIZES["S"]).reshape(SIZES["T"], SIZES["S"]) % (SIZES["R"] - 1),
    "d_model": SIZES["D"], "dilation": 2, "dloss": 0.5, "ids": IDS, "ignore_index": 0, "keep": IDS > 0,
    "K": SIZES["K"], "label_smoothing": 0.1, "length": SIZES["T"], "mask": HIDDEN, "num_buckets": SIZES["R"],
    "num_embeddings": SIZES["V"], "num_heads": SIZES["H"], "p": 0.4, "positions": np.array([3, 0, 8, 1, 1, 2]),
    "repeats": 2, "rng": 0, "S": SIZES["S"], "T": SIZES["T"], "targets": IDS, "tile": 4, "window": 2,
}  # fmt: skip


def array_of(spec, rng, dtype=np.float64):
    """A random array with the axes of a spec, such as "... T K"."""
    letters = spec.split() if isinstance(spec, str) else spec
    shape = [size for letter in letters for size in (IDS.shape if letter == "..." else (SIZES[letter],))]
    return rng.normal(size=shape).astype(dtype)


def arguments_of(name, rng, dtype=np.float64):
    """The arguments of one call of a function of `functional`, {name: value}. Those that are not in EXAMPLES and have a
    default keep it."""
    function, given = F.FUNCTIONS[name], {}
    specs = getattr(function, "shapes", {})
    for argument, parameter in signature(function).parameters.items():
        if argument in specs:
            given[argument] = array_of(specs[argument], rng, dtype)
        elif argument == "dtype":
            given[argument] = dtype
        elif argument in EXAMPLES:
            given[argument] = EXAMPLES[argument]
        elif parameter.default is Parameter.empty:
            raise TypeError(f"{name} has the argument {argument}, which is in neither its @shapes nor EXAMPLES")
    return given


def randomised(module, rng, scale=1.0):
    """The module with random parameters. A matrix about keeps the size of what it multiplies (times `scale`), so that
    no softmax of a deep stack saturates."""
    for name, parameter in module.named_parameters():
        values = rng.normal(size=parameter.shape)
        if name.endswith("gamma"):
            values = rng.uniform(0.5, 2, size=parameter.shape)
        elif values.ndim == 1:
            values *= 0.5
        else:
            values *= scale / values.shape[name.endswith("table")] ** 0.5
        parameter.data = values
    return module


# --- layers ----------------------------------------------------------------------------------------------------------

_D, _H, _F, _V = 10, 5, 7, 8  # features, heads, inside, rows of a table
_X, _MEMORY = (2, 3, _D), (2, 4, _D)  # shapes of random inputs
_HIDDEN = np.array([[0, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1]], bool)  # (T, S)
_PADDING = np.arange(4) >= np.array([4, 2])[:, None, None, None]  # (B, 1, 1, S)
LAYERS = {  # name: (a function from rng= and dtype= to the layer, its inputs: shapes of random arrays, or values)
    "Linear": (partial(layers.Linear, _D, _F), _X),
    "Linear without bias": (partial(layers.Linear, _D, _F, bias=False), _X),
    "Embedding": (partial(layers.Embedding, _V, _D), np.array([[4, 1, 4], [0, 1, 7]])),
    "TiedLinear": (lambda **o: layers.TiedLinear(layers.Embedding(_V, _D, **o)), _X),
    "PositionalEncoding": (partial(layers.PositionalEncoding, _D, 9), _X),
    "LearnedPositionalEmbedding": (partial(layers.LearnedPositionalEmbedding, 9, _D), _X),
    "LayerNorm": (partial(layers.LayerNorm, _D), _X),
    "LayerNorm, eps": (partial(layers.LayerNorm, _D, 0.3), _X),
    "LayerNorm without bias": (partial(layers.LayerNorm, _D, bias=False), _X),
    "RMSNorm": (partial(layers.RMSNorm, _D, 0.1), _X),
    "Dropout": (partial(layers.Dropout, 0.4), _X),
    "FeedForward": (partial(layers.FeedForward, _D, _F), _X),
    "FeedForward, gelu": (partial(layers.FeedForward, _D, _F, "gelu"), _X),
    "FeedForward, gelu_tanh": (partial(layers.FeedForward, _D, _F, "gelu_tanh"), _X),
    "FeedForward without bias": (partial(layers.FeedForward, _D, _F, bias=False), _X),
    "FeedForward, gelu, without bias": (partial(layers.FeedForward, _D, _F, "gelu", bias=False), _X),
    "FeedForward, gated": (partial(layers.FeedForward, _D, _F, "gated_gelu", bias=False), _X),
    "MultiHeadAttention": (partial(layers.MultiHeadAttention, _D, _H), _X, _MEMORY, _HIDDEN),
    "MultiHeadAttention of itself": (partial(layers.MultiHeadAttention, _D, _H), _X),
    "MultiHeadAttention without bias": (partial(layers.MultiHeadAttention, _D, _H, bias=False), _X),
    "MultiHeadAttention without mask": (partial(layers.MultiHeadAttention, _D, _H), _X, _MEMORY),
    "WindowAttention": (partial(layers.WindowAttention, _D, _H, 1), _X),
    "WindowAttention, causal": (partial(layers.WindowAttention, _D, _H, 1, causal=True, bias=False), _X),
    "RelativeMultiHeadAttention": (partial(layers.RelativeMultiHeadAttention, _D, _H), _X),
    "RelativePositionBias": (partial(layers.RelativePositionBias, _H, 6, 5), np.int64(3), np.int64(7)),
    "UnscaledAttention": (partial(layers.UnscaledAttention, _D, _H, bias=False, d_head=3), _X, _MEMORY, _HIDDEN),
    "UnscaledAttention with a bias": (
        lambda **o: layers.UnscaledAttention(
            _D, _H, False, d_head=3, relative_bias=layers.RelativePositionBias(_H, 6, 5, **{**o, "rng": 0}), **o
        ), _X,
    ),
    "GroupedQueryAttention": (partial(layers.GroupedQueryAttention, _D, _H, d_head=4, num_kv_heads=1, rotary={}), _X),
    "GroupedQueryAttention with norms": (
        partial(layers.GroupedQueryAttention, _D, _H, False, d_head=4, num_kv_heads=1, norm_eps=0.1), _X,
    ),
    "LoRA": (partial(layers.LoRA, _D, _F, 3), _X),
    "RNN": (partial(layers.RNN, _D, _F), _X),
    "RNN without bias": (partial(layers.RNN, _D, _F, bias=False), _X),
    "CausalConv1d": (partial(layers.CausalConv1d, _D, _F, 2), _X),
    "CausalConv1d, dilated": (partial(layers.CausalConv1d, _D, _F, 2, 2), _X),
    "CausalConv1d without bias": (partial(layers.CausalConv1d, _D, _F, 2, bias=False), _X),
    "EncoderBlock": (partial(blocks.EncoderBlock, _D, _H, _F, dropout=0.2), _X),
    "EncoderBlock, pre-norm, gelu": (
        partial(blocks.EncoderBlock, _D, _H, _F, 0.3, True, "gelu", eps=0.1), _X, _PADDING[..., :3],
    ),
    "EncoderBlock, pre-norm, without bias": (partial(blocks.EncoderBlock, _D, _H, _F, norm_first=True, bias=False), _X),
    "DecoderBlock": (partial(blocks.DecoderBlock, _D, _H, _F, dropout=0.2), _X, _MEMORY),
    "DecoderBlock, pre-norm, gelu_tanh": (
        partial(blocks.DecoderBlock, _D, _H, _F, 0.3, True, "gelu_tanh", eps=0.1),
        _X, _MEMORY, causal_mask(3), _PADDING,
    ),
    "DecoderBlock without bias": (partial(blocks.DecoderBlock, _D, _H, _F, bias=False), _X, _MEMORY),
}  # fmt: skip


def layer_of(name, rng, dtype=np.float32, **options):
    """A layer of LAYERS with random parameters, and its inputs."""
    make, *inputs = LAYERS[name]
    layer = make(**{"rng": 0, **options}).astype(dtype)
    inputs = [rng.normal(size=x).astype(dtype) if isinstance(x, tuple) else x for x in inputs]
    return randomised(layer, rng), inputs


# --- models ----------------------------------------------------------------------------------------------------------

_SMALL = {"d_model": 12, "num_heads": 3, "d_ff": 10}
_STACKS = {"num_encoder_layers": 1, "num_decoder_layers": 2, "dropout": 0.2}
_SRC, _TGT = np.array([[4, 10, 4, 3, 7], [7, 5, 9, 0, 0]]), np.array([[1, 12, 4, 9], [1, 4, 3, 0]])  # 0 is padding
_TEXT = np.array([[4, 10, 4, 3, 7], [7, 2, 2, 9, 4]])
_MEMS = np.random.default_rng(0).normal(size=(2, 2, 4, 12))  # of two layers
MODELS = {  # name of the class: (its sizes, one batch)
    "Transformer": ({"src_vocab_size": 11, "tgt_vocab_size": 13, "max_len": 9, **_STACKS, **_SMALL}, _SRC, _TGT),
    "T5": (
        {"vocab_size": 13, "d_head": 5, "num_buckets": 6, "max_distance": 5, "activation": "gated_gelu"}
        | {**_STACKS, **_SMALL}, _SRC, _TGT,
    ),
    "GPT": ({"vocab_size": 11, "max_len": 9, "num_layers": 2, **_SMALL}, _TEXT),
    "Llama": (
        {"vocab_size": 11, "max_len": 9, "num_layers": 2, "num_kv_heads": 1, "d_head": 6, "qkv_bias": True, **_SMALL},
        _TEXT,
    ),
    "Bert": ({"vocab_size": 11, "max_len": 9, "num_layers": 2, "num_classes": 4, "dropout": 0.2, **_SMALL}, _SRC),
    "TransformerXL": (
        {"vocab_size": 11, "num_layers": 2, "mem_len": 4, "dropout": 0.2, **_SMALL}, _TEXT, list(_MEMS),
    ),
    "Word2Vec": ({"vocab_size": 11, "d_model": 12}, _TEXT[0, :3], _TEXT[1, :3], np.array([[4, 1], [0, 0], [6, 3]])),
}  # fmt: skip


def small_model(name, **changes):
    """A small model of a class, every size another; changes: options of its config."""
    sizes, *_ = MODELS[name]
    return getattr(models, name)(getattr(models, f"{name}Config")(**{**sizes, **changes}))


def model_of(name, rng, **changes):
    """A small model with random parameters, and one batch."""
    _, *batch = MODELS[name]
    dtype = changes.get("dtype", "float32")
    batch = [[np.asarray(m, dtype) for m in x] if isinstance(x, list) else x for x in batch]
    return randomised(small_model(name, **changes), rng), batch
