"""Objects of the package where another kind is needed, and masked arrays: the error names the argument."""

import numpy as np
import pytest
from test_bad_input import a, refused

from transformer_np import data, layers, models, training
from transformer_np import functional as F
from transformer_np.decoding import beam_search, generate, greedy_decode
from transformer_np.inspection.interpretation import attention_rollout
from transformer_np.layers import Embedding, Linear, TiedLinear, UnscaledAttention
from transformer_np.layers.blocks import AddNorm
from transformer_np.masks import additive, causal_mask
from transformer_np.models import Transformer, TransformerConfig
from transformer_np.models.encoder_decoder import InputEmbedding
from transformer_np.module import Parameter

PAIR = TransformerConfig(5, 5, d_model=4, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, d_ff=4)
BERT = models.BertConfig(9, max_len=6, d_model=4, num_heads=2, num_layers=1, d_ff=4)

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
    ],
)
def test_a_model_of_another_kind(call, message):
    refused(TypeError, message, lambda: call(models.Bert(BERT)))


def test_the_config_of_another_model():
    refused(TypeError, "config must be a GPTConfig, got TransformerConfig", lambda: models.GPT(TransformerConfig(5, 5)))
    refused(TypeError, r"parameters must be a list of Parameter.*\(\); got Linear", lambda: training.Adam(Linear(2, 3)))
    refused(TypeError, r"parameters\[1\] must be a Parameter", lambda: training.Adam([Parameter(a(3)), a(3)]))
    refused(
        ValueError, "heads of 1: rotary positions turn pairs", lambda: models.LlamaConfig(9, d_model=4, num_heads=4)
    )
    refused(
        ValueError, "heads of 3: rotary positions turn pairs", lambda: models.LlamaConfig(9, d_model=6, num_heads=2)
    )


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
    for make in (
        lambda: InputEmbedding(Embedding(5, 4), 0.0, 0, scale=scale),
        lambda: TiedLinear(Embedding(5, 4), scale),
    ):
        with pytest.raises((TypeError, ValueError), match="scale must be"):
            make()


def test_buckets_are_named():
    table, buckets = a(4, 2), np.zeros((3, 5), int)
    refused(ValueError, "buckets must lie in 0 … 3, got 4", lambda: F.relative_position_bias(table, buckets + 4))
    refused(TypeError, "buckets must be whole numbers", lambda: F.relative_position_bias(table, buckets + 0.5))
    refused(ValueError, r"buckets must have the axes \(T, S\)", lambda: F.relative_position_bias(table, buckets[0]))
    backward = F.relative_position_bias_backward
    refused(ValueError, "buckets must lie in 0 … 2, got 4", lambda: backward(a(2, 3, 5), buckets + 4, 3))
    refused(ValueError, r"buckets must have the shape \(3, 5\)", lambda: backward(a(2, 3, 5), buckets.T, 3))


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
    with pytest.raises(
        TypeError, match=rf"{name} must be a plain array of .*, got a MaskedArray: pass np.asarray of it"
    ):
        call()
