"""A function that is swapped by name reaches its callers in every file, from a layer or a model downwards."""

import inspect
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

import numpy as np
import pytest

import transformer_np
from transformer_np import functional as F
from transformer_np.data import LabelledBatch, Segment, Seq2SeqBatch, SkipGramBatch, TextBatch
from transformer_np.homework import all_exercises, using
from transformer_np.inspection.samples import small_model
from transformer_np.layers import RNN, CausalConv1d, LoRA, MultiHeadAttention, WindowAttention
from transformer_np.layers import tiles as attention
from transformer_np.training import Classification, NegativeSampling, NextToken, SegmentRecurrence, TeacherForcing

SRC, TGT = np.array([[3, 4, 5], [6, 3, 0]]), np.array([[1, 5], [1, 6]])
X = np.random.default_rng(0).normal(size=(2, 3, 4))


# --- one step of everything there is ---------------------------------------------------------------------------------


def step(objective, batch):
    """Forward and backward of an objective  ->  the loss and all gradients."""
    loss, _ = objective.forward(batch)
    objective.backward()
    return [loss, *(p.grad for p in objective.model.parameters())]


def of_model(objective, name, batch, **options):
    return lambda: step(objective(small_model(name, dtype="float64", **options)), batch)


def of_layer(kind, *sizes, **options):
    def run():
        layer = kind(*sizes, rng=0, dtype=np.float64, **options)
        if kind is LoRA:
            layer.b = np.random.default_rng(0).normal(size=layer.b.shape)  # it starts at 0, where nothing shows
        y = layer(X)
        dx = layer.backward(y)
        dx = dx[0] if isinstance(dx, tuple) else dx  # attention has two inputs
        return [y, dx, *(p.grad for p in layer.parameters())]

    return run


def tiled_attention():
    large = attention.TILED_BYTES, attention.TILED_LENGTH
    attention.TILED_BYTES = attention.TILED_LENGTH = 0
    try:
        return of_layer(MultiHeadAttention, 4, 2)()
    finally:
        attention.TILED_BYTES, attention.TILED_LENGTH = large


PAIRS = Seq2SeqBatch(SRC, TGT, TGT)
USERS = {
    "transformer": of_model(TeacherForcing, "Transformer", PAIRS),
    "gpt": of_model(NextToken, "GPT", TextBatch(SRC, SRC), dropout=0.1),
    "bert": of_model(Classification, "Bert", LabelledBatch(SRC, np.array([1, 2])), mlm_head=False),
    "transformer_xl": of_model(SegmentRecurrence, "TransformerXL", Segment(SRC, SRC, True)),
    "t5": of_model(TeacherForcing, "T5", PAIRS),
    "llama": of_model(NextToken, "Llama", TextBatch(SRC, SRC)),
    "lora": of_layer(LoRA, 4, 5, 2),
    "word2vec": of_model(NegativeSampling, "Word2Vec", SkipGramBatch(SRC[0], SRC[1], SRC.T)),
    "rnn": of_layer(RNN, 4, 5),
    "convolution": of_layer(CausalConv1d, 4, 5, 2),
    "window_attention": of_layer(WindowAttention, 4, 2, window=1),
    "tiled_attention": tiled_attention,
}

# in whose step an exercise has to be reached: the first user, then those with the same function in another file
USED_BY = {
    "transformer": (
        "embedding", "sinusoidal_encoding", "softmax", "attention_scores", "scaled_dot_product_attention",
        "split_heads", "merge_heads", "linear", "relu", "feed_forward", "layer_norm", "dropout",
        "causal_mask", "padding_mask", "cross_entropy", "linear_backward", "embedding_backward", "relu_backward",
        "dropout_backward", "feed_forward_backward", "softmax_backward", "layer_norm_backward",
        "scaled_dot_product_attention_backward", "cross_entropy_backward",
    ),
    "gpt": ("gelu", "gelu_backward"),
    "bert": ("tanh", "tanh_backward"),
    "transformer_xl": (
        "relative_shift", "relative_shift_backward", "relative_attention", "relative_attention_backward",
        "sinusoidal_encoding", "attention_scores", "softmax", "softmax_backward",
    ),
    "t5": (
        "rms_norm", "rms_norm_backward", "relative_position_buckets", "relative_position_bias",
        "relative_position_bias_backward", "unscaled_attention", "unscaled_attention_backward",
        "gated_feed_forward", "gated_feed_forward_backward", "gelu", "gelu_backward", "embedding_backward", "softmax",
    ),
    "llama": (
        "rotary", "rotary_backward", "rotary_frequencies", "repeat_heads", "repeat_heads_backward", "silu",
        "silu_backward", "rms_norm", "gated_feed_forward",
    ),
    "lora": ("lora", "lora_backward", "linear", "linear_backward"),
    "word2vec": ("negative_sampling_loss", "negative_sampling_loss_backward"),
    "rnn": ("rnn", "rnn_backward", "linear", "linear_backward"),
    "convolution": ("causal_conv1d", "causal_conv1d_backward"),
    "window_attention": ("window_attention", "window_attention_backward", "softmax", "softmax_backward"),
    "tiled_attention": ("tiled_attention", "tiled_attention_backward"),
}  # fmt: skip
USES = [(name, user) for user, names in USED_BY.items() for name in names]
USED = {name for name, _ in USES}

# exercises that no layer and no model calls, and why
USED_BY_NONE = {
    "window_mask": "WindowAttention computes the band alone and needs no mask",
    "additive": "layers take Boolean masks as they are",
}

REFERENCES = {
    name: exercise.reference
    for name, exercise in all_exercises().items()
    if inspect.unwrap(exercise.reference).__module__.startswith(("transformer_np.functional", "transformer_np.masks"))
}
IN_FUNCTIONAL = [name for name in REFERENCES if name in F.__all__]


def test_every_exercise_is_used_or_said_not_to_be():
    assert sorted([*USED, *USED_BY_NONE]) == sorted(REFERENCES)
    assert set(REFERENCES) - set(IN_FUNCTIONAL) == {"causal_mask", "padding_mask", "window_mask", "additive"}


# --- swapped by name -------------------------------------------------------------------------------------------------


class Reached(Exception):
    pass


def reached(*_, **__):
    raise Reached


def same(a, b):
    return all(map(np.array_equal, a, b))


@cache
def untouched(user):
    """What a step comes to before anything is swapped; it is the same every time."""
    return USERS[user]()


@pytest.mark.parametrize(("name", "user"), USES)
def test_using_reaches_the_layers(name, user):
    before = untouched(user)
    with using({name: reached}), pytest.raises(Reached):
        USERS[user]()
    assert same(USERS[user](), before)


# --- in every file ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def modules():
    """Every module of the package outside the homework. Those that need PyTorch are left out."""
    found = [module.name for module in walk_packages(transformer_np.__path__, "transformer_np.")]
    left_out = ("transformer_np.homework", "transformer_np.bench.torch_", "transformer_np.__main__")
    return [import_module(name) for name in found if not name.startswith(left_out)]


def holders(function, modules):
    return {f"{m.__name__}.{name}" for m in modules for name, value in vars(m).items() if value is function}


@pytest.mark.parametrize("name", IN_FUNCTIONAL)
def test_assigning_leaves_the_old_function_nowhere(monkeypatch, modules, name):
    assert f"transformer_np.functional.{name}" in holders(REFERENCES[name], modules)
    monkeypatch.setattr(F, name, reached)
    assert holders(REFERENCES[name], modules) == set()
