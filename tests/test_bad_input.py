"""What is wrong is refused with the right kind of error, and the message names the argument."""

import numpy as np
import pytest

from transformer_np import data, layers, models, training
from transformer_np import functional as F
from transformer_np.data import pad_batch
from transformer_np.decoding import DecoderCache, beam_search, generate, greedy_decode, greedy_steps
from transformer_np.inspection.interpretation import attention_rollout
from transformer_np.layers import Embedding, FeedForward, Linear, MultiHeadAttention, TiedLinear, UnscaledAttention
from transformer_np.layers.blocks import AddNorm
from transformer_np.masks import additive, causal_mask, padding_mask
from transformer_np.models import Transformer, TransformerConfig
from transformer_np.models.encoder_decoder import InputEmbedding
from transformer_np.module import Parameter


def a(*shape, dtype="float64"):
    """An array of ones."""
    return np.ones(shape, dtype)


def refused(error, message, call):
    with pytest.raises(error, match=message) as caught:
        call()
    assert type(caught.value) is error


def backward(layer, x, dout):
    layer.astype(x.dtype)(x)
    layer.backward(dout)


LLAMA3 = {
    "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 2.0,
    "original_max_position_embeddings": 16,
}  # fmt: skip
BUCKETS = np.zeros((3, 5), int)

# --- functions -------------------------------------------------------------------------------------------------------

FUNCTIONS = [
    # not an array of floats
    (TypeError, "linear: x must be an array of floats, got int64", lambda: F.linear([[1, 2]], a(2, 3))),
    (TypeError, "softmax: x must be an array of floats, got complex128", lambda: F.softmax(np.ones(2, complex))),
    (TypeError, "floats: its rows differ in length$", lambda: F.relu([[1.0], [1.0, 2.0]])),
    (TypeError, "layer_norm: gamma must be an array of floats, got str", lambda: F.layer_norm(a(2, 3), "1", a(3))),
    # a matrix, whose operators mean something else
    (TypeError, "plain array", lambda: F.linear(a(2, 3).view(np.matrix), a(3, 4))),
    (TypeError, "plain array", lambda: F.embedding(a(2, 3, dtype=int).view(np.matrix), a(3, 4))),
    # shapes
    (ValueError, r"linear: w must have shape \(D_in, D_out\) with D_in = 3; got", lambda: F.linear(a(2, 3), a(4, 5))),
    (ValueError, r"layer_norm: gamma must .* got \(4,\) for x \(2, 3\)", lambda: F.layer_norm(a(2, 3), a(4), a(4))),
    (ValueError, r"backward: dy must have .* = 5; got \(2, 4\)", lambda: backward(Linear(3, 5), a(2, 3), a(2, 4))),
    (ValueError, "a single number has no axis", lambda: F.softmax(1.0)),
    (ValueError, r"b must have shape \(D_out\) with D_out = 4; got \(1,\)", lambda: F.linear(a(2, 3), a(3, 4), a(1))),
    (ValueError, r"linear: w must have the axes \(D_in, D_out\), got shape \(3,\)", lambda: F.linear(a(2, 3), a(3))),
    (ValueError, r"dy \(2, 3\) must have the shape of ids \(3,\)", lambda: F.embedding_backward(a(2, 3), [0, 1, 2], 4)),
    (ValueError, "keep .* must have the shape of dy", lambda: F.dropout_backward(a(2, 3), a(5, 2, 3, dtype=bool), 0.5)),
    (ValueError, "num_heads must divide the last axis of x: got 4 heads", lambda: F.split_heads(a(2, 3, 6), 4)),
    (ValueError, r"targets must have shape \(2,\)", lambda: F.cross_entropy(a(2, 3), [[0, 1]])),
    (ValueError, r"targets must have shape \(2,\)", lambda: F.cross_entropy_backward(a(2, 3), [0, 1, 2])),
    # dtypes
    (ValueError, "linear: w is float32 but x is float64", lambda: F.linear(a(2, 3), a(3, 4, dtype="float32"))),
    # nothing
    (ValueError, r"softmax: x is empty, its shape is \(2, 0\)", lambda: F.softmax(a(2, 0))),
    # ids
    (ValueError, r"ids must lie in 0 … 2, got 3 at index \(1, 0\)", lambda: F.embedding([[0, 1], [3, 0]], a(3, 4))),
    (ValueError, "ids must lie in 0 … 2, got 3", lambda: F.embedding_backward(a(1, 4), [3], 3)),
    (TypeError, "ids must be an array of whole numbers", lambda: F.embedding([[0, 1], [2]], a(3, 4))),
    (ValueError, r"targets must lie in 0 … 2, got 3 at index \(1,\)", lambda: F.cross_entropy(a(2, 3), [0, 3])),
    (ValueError, "targets must lie in 0 … 2, got -100", lambda: F.cross_entropy(a(2, 3), [0, -100])),
    (ValueError, "targets must lie in 0 … 2, got -7", lambda: F.cross_entropy(a(2, 3), [-100, -7], ignore_index=-100)),
    (ValueError, "targets must lie in 0 … 2, got 3", lambda: F.cross_entropy_backward(a(2, 3), [3, 0])),
    (TypeError, "targets must be whole numbers", lambda: F.cross_entropy(a(2, 3), [1.0, 1.0], ignore_index=1)),
    *(
        (TypeError, f"{name} must be whole numbers", lambda call=call, ids=ids: call(ids))
        for name, call in (
            ("ids", lambda ids: padding_mask(ids, 0)), ("sequences", pad_batch),
            ("ids", lambda ids: data.mask_tokens(ids, 9, 0)),
            ("ids", lambda ids: data.corrupt_spans(ids[0], [20, 21], 0)),
            ("ids", lambda ids: data.SpanBatches(ids[0] * 9, [20, 21, 22], 6, 2)),
        )
        for ids in ([[1.0, 2.0]], [["a", "b"]], [[True, False]], [[1, None]], [[1j, 2j]])
    ),
    *(
        (error, message, lambda make=make, ids=ids: make(ids))
        for make in (
            lambda ids: data.TextBatches(ids, 2, 1), lambda ids: data.TextStreams(ids, 2, 1),
            lambda ids: data.SkipGrams(ids, 9),
        )
        for error, message, ids in (
            (ValueError, r"ids must have the one axis \(length,\)", a(8, 2, dtype=int)),
            (TypeError, "ids must be whole numbers", a(8)),
        )
    ),
    *(
        (TypeError, "ignore_index must be a whole number", lambda call=call, bad=bad: call(bad))
        for call in (
            lambda bad: F.cross_entropy(a(2, 3), [0, 1], ignore_index=bad),
            lambda bad: training.NextToken(Linear(2, 3), ignore_index=bad),
        )
        for bad in ("0", 0.0, float("nan"), True)
    ),
    # Booleans
    *(
        (TypeError, "keep must be a Boolean array", lambda keep=keep: F.dropout_backward(a(2, 3), keep, 0.5))
        for keep in (a(2, 3), a(2, 3, dtype=int), [[True] * 3] * 2, None)
    ),
    # positions, heads, windows
    *(
        (ValueError, message, lambda arguments=arguments: F.rotary_frequencies(*arguments))
        for arguments, message in (
            ((5, 10000.0, None), r"K must be even, got 5"),
            ((6, 0.0, None), r"theta must lie in \(0, ∞\), got 0.0"),
            ((6, 9.0, {"rope_type": "yarn"}), r"rope_type is 'yarn', .* supported are default, linear, llama3"),
            ((6, 9.0, {"factor": 2.0}), r"rope_type is None"),
            ((6, 9.0, "linear"), r"scaling must be a dictionary with a rope_type, got 'linear'"),
            ((6, 9.0, {"rope_type": "linear"}), r"rope_type 'linear' must be a positive number, got None"),
            ((6, 9.0, {**LLAMA3, "factor": -1}), r"factor of the rope_type 'llama3' .* got -1"),
            ((6, 9.0, {**LLAMA3, "high_freq_factor": 1}), r"high_freq_factor must be more than low_freq_factor = 1.0"),
        )
    ),
    (ValueError, r"numbers of shape \(4,\).* got int64 of shape \(3,\)", lambda: F.rotary(a(2, 4, 6), np.arange(3))),
    (ValueError, "repeats must divide .* got repeats = 4 for 6", lambda: F.repeat_heads_backward(a(1, 6, 4, 5), 4)),
    *(
        (ValueError, message, lambda arguments=arguments: F.relative_position_buckets(*arguments))
        for arguments, message in (
            ((3, 2), "S must be at least 3"), ((3, 3, 3), "num_buckets must be at least 4"),
            ((3, 3, 1, 128, False), "num_buckets must be at least 2"), ((3, 3, 32, 8), "max_distance must be more"),
        )
    ),
    *((ValueError, "T = 4, S = 3", lambda shift=shift: shift(a(4, 3)))
      for shift in (F.relative_shift, F.relative_shift_backward)),
    (ValueError, "at least as many: got T = 4, S = 3",
     lambda: F.relative_attention(a(1, 3, 4, 6), *a(2, 1, 3, 3, 6), a(3, 3, 6), *a(2, 3, 6))),
    *(
        (error, message, lambda buckets=buckets: F.relative_position_bias(a(4, 2), buckets))
        for error, message, buckets in (
            (ValueError, "buckets must lie in 0 … 3, got 4", BUCKETS + 4),
            (TypeError, "buckets must be whole numbers", BUCKETS + 0.5),
            (ValueError, r"buckets must have the axes \(T, S\)", BUCKETS[0]),
        )
    ),
    *(
        (ValueError, message, lambda buckets=buckets: F.relative_position_bias_backward(a(2, 3, 5), buckets, 3))
        for message, buckets in (
            ("buckets must lie in 0 … 2, got 4", BUCKETS + 4), (r"buckets must have the shape \(3, 5\)", BUCKETS.T),
        )
    ),
    (ValueError, "w is empty", lambda: F.causal_conv1d(a(2, 7, 6), a(0, 6, 5))),
    (ValueError, "dilation must be at least 1", lambda: F.causal_conv1d(a(2, 7, 6), a(2, 6, 5), dilation=0)),
    (ValueError, r"5 columns, .*\(7, 4\)", lambda: F.window_attention_backward(*a(4, 7, 6), a(7, 4), 2)),
    # numbers
    (ValueError, r"label_smoothing must lie in \[0, 1\], got 1.5", lambda: F.cross_entropy(a(2, 3), [0, 1], None, 1.5)),
    (ValueError, 'approximate must be "tanh" or "none", got', lambda: F.gelu(a(3), "exact")),
    (ValueError, "approximate must be", lambda: F.gelu_backward(a(3), a(3), None)),
]  # fmt: skip


@pytest.mark.parametrize(("error", "message", "call"), FUNCTIONS)
def test_functions(error, message, call):
    refused(error, message, call)


# --- masks -----------------------------------------------------------------------------------------------------------

MASKS = [
    (ValueError, r"mask of shape \(3, 4\) does not broadcast to the scores' shape \(2, 3, 5\)", a(3, 4, dtype=bool)),
    (ValueError, "mask of shape", a(1, 2, 3, 5, dtype=bool)),  # broadcasting must not add an axis to the result
    (ValueError, "mask of shape", a(7, 3, 5, dtype=bool)),
    (ValueError, "mask of shape", a(3, 3)),
    (TypeError, r"mask must be a Boolean array .* or a float array .*, got int64", a(3, 5, dtype=int)),
    (TypeError, "mask must be a Boolean array .*, got list", [[True] * 5] * 3),
    (TypeError, "mask must be a Boolean array .*, got bool", True),
    (ValueError, r"mask\[1\] of shape \(3,\) does not broadcast", (a(3, 5, dtype=bool), a(3, dtype=bool))),
    (TypeError, r"mask\[0\] must be a Boolean array .* got int64", (a(3, 5, dtype=int), a(3, 5, dtype=bool))),
    (TypeError, "mask must be a Boolean array .*, got MaskedArray", np.ma.masked_array(a(3, 5, dtype=bool))),
]


@pytest.mark.parametrize(("error", "message", "mask"), MASKS)
@pytest.mark.parametrize("attention", [F.scaled_dot_product_attention, F.tiled_attention])
def test_masks_of_attention(error, message, mask, attention):
    refused(error, message, lambda: attention(a(2, 3, 4), a(2, 5, 4), a(2, 5, 6), mask))


def test_making_masks():
    refused(ValueError, "S must be at least 4, got 3", lambda: causal_mask(4, 3))
    refused(ValueError, r"ids must have the axes \(B, S\), got shape \(3,\)", lambda: padding_mask([1, 2, 0], 0))
    refused(TypeError, "mask must be Boolean .*, got int64", lambda: additive(np.eye(3, dtype=int)))


# --- layers ----------------------------------------------------------------------------------------------------------

X = a(2, 3, 8, dtype="float32")
LAYERS = [
    (ValueError, "num_heads must divide d_model, got 3 heads for d_model = 8", lambda: MultiHeadAttention(8, 3)),
    (ValueError, '"gated_gelu" or "gated_silu", got .tanh', lambda: FeedForward(3, 4, "tanh")),
    (ValueError, r"x must have the axes \(B, T, D\), got shape \(3, 8\)", lambda: MultiHeadAttention(8, 2)(X[0])),
    (ValueError, "memory must have shape .* D = 8; got", lambda: MultiHeadAttention(8, 2)(X, X[..., :4])),
    (ValueError, "memory must have shape .* B = 2", lambda: MultiHeadAttention(8, 2)(X, X[:1])),
    (ValueError, "memory is float64 but x is float32", lambda: MultiHeadAttention(8, 2)(X, X.astype(float))),
    (ValueError, "num_kv_heads must divide num_heads, got 4 for num_heads = 6",
     lambda: layers.GroupedQueryAttention(12, 6, num_kv_heads=4)),
    (ValueError, "memory must be None", lambda: layers.GroupedQueryAttention(8, 2, rotary={})(X, X)),
    (ValueError, "bias=False", lambda: FeedForward(4, 5, "gated_gelu")),
    (ValueError, "num_heads must divide d_model", lambda: layers.RelativeMultiHeadAttention(10, 3)),
    (ValueError, "memory must have shape .* B = 2", lambda: layers.RelativeMultiHeadAttention(8, 2)(X, X[:1])),
    (ValueError, "memory is float64", lambda: layers.RelativeMultiHeadAttention(8, 2)(X, X.astype(float))),
    *(
        (error, message, lambda make=make, args=args: make()(*args))
        for make in (lambda: layers.PositionalEncoding(8, 4), lambda: layers.LearnedPositionalEmbedding(4, 8))
        for error, message, args in [
            (ValueError, "the sequence is 5 tokens long, more than max_len = 4", (X, 2)),
            (ValueError, "the sequence is 6 tokens long, more than max_len = 4", (a(1, 6, 8, dtype="float32"),)),
            (ValueError, "start must be at least 0, got -3", (X, -3)),
            (ValueError, "table must have shape .* D = 1", (X[..., :1],)),
            (ValueError, "table is float32 but x is float64", (X.astype(float),)),
            (ValueError, r"x must have the axes \(B, T, D\)", (X[0],)),
        ]
    ),
]  # fmt: skip


@pytest.mark.parametrize(("error", "message", "call"), LAYERS)
def test_layers(error, message, call):
    refused(error, message, call)


def test_parameters():
    layer = Linear(2, 3, rng=0)
    before = layer.state_dict()
    refused(TypeError, "a Parameter holds floats, got int64", lambda: Parameter(np.ones(3, int)))
    refused(ValueError, r"shape \(3,\) cannot take values of shape \(2,\)", lambda: setattr(layer, "b", a(2)))
    refused(ValueError, "cannot take values of shape", lambda: setattr(layer.w, "grad", a(2, 1)))
    for value in (None, "a", 1j, [["a"]]):
        refused(TypeError, "a parameter holds floats, got", lambda value=value: setattr(layer, "b", value))
    refused(ValueError, "dtype must be a floating type, got .*int32", lambda: layer.astype(np.int32))
    refused(TypeError, "dtype must be a floating type, got None", lambda: layer.astype(None))  # NumPy's float64
    refused(TypeError, "positional", lambda: layer.train(False))  # eval() to others
    refused(TypeError, "keep must be True or False, got 'no'", lambda: layer.eval(keep="no"))
    assert all(np.array_equal(values, before[name]) for name, values in layer.state_dict().items())


# --- Transformer -----------------------------------------------------------------------------------------------------

SRC, TGT = np.array([[4, 5, 6, 2], [5, 4, 2, 0]]), np.array([[1, 7, 8], [1, 9, 0]])


def changed(ids, place, value):
    ids = ids.copy()
    ids[place] = value
    return ids


SEQUENCES = [
    (TypeError, "src must be an array of whole numbers", ([[4, 5], [4]], TGT)),
    (ValueError, "src has nothing but padding in row 1", (changed(SRC, 1, 0), TGT)),
    (ValueError, "tgt_in has nothing but padding in row 1", (SRC, changed(TGT, 1, 0))),
    (ValueError, "batch sizes differ: tgt_in 1, memory 2, src 2", (SRC, TGT[:1])),
]


@pytest.mark.parametrize(("error", "message", "sequences"), SEQUENCES)
def test_sequences(random_model, error, message, sequences):
    refused(error, message, lambda: random_model()(*sequences))


def test_decode(random_model):
    model = random_model()
    memory = model.encode(SRC)
    refused(ValueError, "src of shape .* does not fit memory", lambda: model.decode(TGT, memory[:, :2], SRC))
    refused(ValueError, "memory must have the axes", lambda: model.decode(TGT, memory[0], SRC))
    refused(ValueError, "memory must have shape", lambda: model.decode(TGT, memory[..., :5], SRC))
    refused(ValueError, "memory is float32 but", lambda: model.decode(TGT, memory.astype(np.float32), SRC))
    refused(ValueError, "batch sizes differ", lambda: model.decode(TGT, memory, SRC[:1]))
    cache = DecoderCache(2)
    for _ in range(9):
        model.decode(TGT[:, :1], memory, SRC, cache)
    refused(ValueError, "tgt_in is 10 tokens long", lambda: model.decode(TGT[:, :1], memory, SRC, cache))
    cache.select([0])
    refused(ValueError, "batch sizes differ: ids 2, cache 1", lambda: model.decode(TGT[:, :1], memory, SRC, cache))


@pytest.mark.parametrize("decode", [greedy_decode, beam_search, lambda *args, **how: list(greedy_steps(*args, **how))])
def test_decoding(random_model, decode):
    model = random_model()
    refused(ValueError, "max_len must be at least 1, got 0", lambda: decode(model, SRC, max_len=0))
    refused(ValueError, "max_len is 10, more than the model's max_len = 9", lambda: decode(model, SRC, max_len=10))
    refused(ValueError, "src must lie in 0 … 10, got 11", lambda: decode(model, SRC + 5, max_len=3))
    refused(ValueError, r"src must have the axes .* got shape \(4,\)", lambda: decode(model, SRC[0], max_len=3))
    refused(ValueError, "src is empty", lambda: decode(model, [[]], max_len=3))
    refused(ValueError, "src has nothing but padding in row 0", lambda: decode(model, [[0, 0]], max_len=3))
    assert model.training


# --- objects of another kind, masked arrays ---------------------------------------------------------------------------

PAIR = TransformerConfig(5, 5, d_model=4, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, d_ff=4)
BERT = models.BertConfig(9, max_len=6, d_model=4, num_heads=2, num_layers=1, d_ff=4)
SMALL = models.GPTConfig(9, max_len=6, d_model=4, num_heads=2, num_layers=1)

WRONG_OBJECTS = [None, 1, "x", a(2, 3), object(), {"a": 1}, np.ma.masked_array(a(2, 3), np.eye(2, 3))]
TAKE_OBJECTS = {
    "config": [models.GPT, models.Llama, models.Bert, models.T5, Transformer, models.TransformerXL, models.Word2Vec],
    "model": [
        lambda model: greedy_decode(model, [[1, 2]]), lambda model: beam_search(model, [[1, 2]]),
        lambda model: generate(model, [[1, 2]], 2), training.TeacherForcing, training.NextToken,
        layers.merge_lora, lambda model: training.save_model("nowhere", model),
        lambda model: training.Trainer(model, training.SGD([Parameter(a(3))]), training.NextToken(Linear(2, 3))),
    ],
    "optimizer": [lambda it: training.Trainer(Linear(2, 3), it, training.NextToken(Linear(2, 3)))],
    "state": [Linear(2, 3).load_state_dict, training.SGD([Parameter(a(3))]).load_state_dict],
    "parameters": [training.SGD, training.Adam, training.AdamW, lambda it: training.clip_grad_norm(it, 1.0)],
    "embedding": [TiedLinear],
    "norm": [lambda norm: AddNorm(8, norm=norm)],
    "relative_bias": [lambda bias: UnscaledAttention(8, 2, relative_bias=bias)],
    "tokenizer": [data.with_mask, lambda tokenizer: data.encode_text(tokenizer, "a text")],
    "split": [data.labels_of],
}  # fmt: skip


@pytest.mark.parametrize("name", TAKE_OBJECTS)
@pytest.mark.parametrize("wrong", WRONG_OBJECTS, ids=lambda wrong: type(wrong).__name__)
def test_an_object_of_another_kind(name, wrong):
    """Not the AttributeError of a line inside."""
    for call in TAKE_OBJECTS[name]:
        if wrong is None and name in ("norm", "relative_bias"):  # the default
            continue
        with pytest.raises((TypeError, ValueError), match=name):
            call(wrong)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda bert: generate(bert, [[1, 2]], 2), "as a GPT is, .*Bert"),
        (lambda bert: generate(Transformer(PAIR), [[1, 2]], 2), "config.vocab_size; got Transformer"),
        (lambda bert: generate(Linear(2, 3), [[1, 2]], 2), "config.vocab_size; got Linear"),
        (lambda bert: greedy_decode(bert, [[1, 2]], 2), "config.src_vocab_size, .encode, .decode; got Bert"),
        (lambda bert: training.TeacherForcing(Linear(2, 3)), "config.pad_id; got Linear"),
        (lambda bert: models.GPT(SMALL)([[1, 2]], [[1, 2]]), "cache must be an object with .ids, .*; got "),
    ],
)
def test_a_model_of_another_kind(call, message):
    refused(TypeError, message, lambda: call(models.Bert(BERT)))


def test_the_config_and_the_cache_of_another_model():
    refused(ValueError, r"cache must be a DecoderCache\(1\)", lambda: models.GPT(SMALL)([[1, 2]], DecoderCache(2)))
    refused(TypeError, "config must be a GPTConfig, got TransformerConfig", lambda: models.GPT(TransformerConfig(5, 5)))
    refused(TypeError, r"parameters must be a list of Parameter.*\(\); got Linear", lambda: training.Adam(Linear(2, 3)))
    refused(TypeError, r"parameters\[1\] must be a Parameter", lambda: training.Adam([Parameter(a(3)), a(3)]))
    refused(ValueError, "heads of 1: rotary positions", lambda: models.LlamaConfig(9, d_model=4, num_heads=4))
    refused(ValueError, "heads of 3: rotary positions", lambda: models.LlamaConfig(9, d_model=6, num_heads=2))


@pytest.mark.parametrize("dtype", [int, "int32", bool, "complex64", None])
def test_tables_are_floats(dtype):
    """A sine as a whole number is 0."""
    for make in (
        lambda: F.sinusoidal_encoding(3, 4, dtype),
        lambda: F.alibi_bias(2, 3, dtype=dtype),
        lambda: additive(causal_mask(3), dtype),
    ):
        with pytest.raises((TypeError, ValueError), match="dtype must be a floating type"):
            make()


@pytest.mark.parametrize("scale", [None, "2", float("nan"), True])
def test_the_scale_of_an_input(scale):
    with pytest.raises((TypeError, ValueError), match="scale must be"):
        InputEmbedding(Embedding(5, 4), 0.0, 0, scale=scale)
    with pytest.raises((TypeError, ValueError), match="scale must be"):
        TiedLinear(Embedding(5, 4), scale)


MASKED = np.ma.masked_array(a(2, 3), np.eye(2, 3))
MASKED_IDS = MASKED.astype(int)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("targets", lambda: F.cross_entropy(a(2, 3), MASKED_IDS[:, 0])),
        ("targets", lambda: F.cross_entropy_backward(a(2, 3), MASKED_IDS[:, 0], ignore_index=1)),
        ("logits", lambda: F.cross_entropy(MASKED, [0, 1])),
        ("mask", lambda: additive(MASKED > 0)),
        ("positions", lambda: F.rotary(a(3, 4), MASKED_IDS[0])),
        ("buckets", lambda: F.relative_position_bias(a(4, 2), MASKED_IDS)),
        ("ids", lambda: F.embedding(MASKED_IDS, a(4, 2))),
        ("b", lambda: Linear(3, 3).load_state_dict({"w": a(3, 3), "b": MASKED[0]})),
        ("the values of a parameter", lambda: setattr(Linear(3, 3), "b", MASKED[0])),
        ("the data of a Parameter", lambda: Parameter(MASKED)),
        ("padding", lambda: models.Bert(BERT)(np.ones((2, 3), int), padding=MASKED > 0)),
        ("weights", lambda: attention_rollout(MASKED[None, None])),
        ("vectors", lambda: Embedding.from_vectors(MASKED)),
        ("sequences", lambda: data.pad_batch([[1, 2], MASKED_IDS[0]])),
    ],
)
def test_a_masked_array(name, call):
    """Its operators leave entries out. Nothing here does, so the hidden entries would count."""
    with pytest.raises(TypeError, match=rf"{name} must be a plain array of .*, got a MaskedArray: pass np.asarray"):
        call()
