"""The configurations of all models: what is wrong is refused with one kind of message, whichever model it is for."""

import json
from dataclasses import asdict, fields

import numpy as np
import pytest

from transformer_np import models
from transformer_np.module import Module

CLASSES = [getattr(models, name) for name in models.__all__ if name.endswith("Config")]
SIZES = {"src_vocab_size": 11, "tgt_vocab_size": 13, "vocab_size": 11}
OPTIONAL = {  # a field that may be None: what it is then
    (models.GPTConfig, "d_ff"): 4 * 768, (models.GPTConfig, "window"): None, (models.GPTConfig, "num_kv_heads"): None,
    (models.TransformerXLConfig, "d_ff"): 4 * models.TransformerXLConfig(11).d_model,
    (models.BertConfig, "num_classes"): None, (models.BertConfig, "token_classes"): None,
    (models.LlamaConfig, "num_kv_heads"): 8, (models.LlamaConfig, "d_head"): 64, (models.LlamaConfig, "d_ff"): 1368,
    (models.LlamaConfig, "window"): None,
}  # fmt: skip


def make(cls, **changes):
    names = [field.name for field in fields(cls)]
    return cls(**{name: size for name, size in SIZES.items() if name in names} | changes)


def of_kind(*kinds):
    """(class, name) for every field of these types."""
    return [(cls, field.name) for cls in CLASSES for field in fields(cls) if field.type in kinds]


WHOLE = of_kind(int, int | None)
NUMBERS = of_kind(float)
FLAGS = of_kind(bool)
NAMES = of_kind(str)  # dtype, activation, …
DICTIONARIES = of_kind(dict | None)


def refused(error, message, cls, name, value):
    with pytest.raises(error, match=message) as caught:
        make(cls, **{name: value})
    assert type(caught.value) is error and str(caught.value).startswith(name)


def test_every_model_has_a_configuration_and_every_field_a_kind():
    assert {cls.__name__.removesuffix("Config") for cls in CLASSES} == {
        name for name in models.__all__ if issubclass(getattr(models, name), Module)
    }
    assert len(WHOLE + NUMBERS + FLAGS + NAMES + DICTIONARIES) == sum(len(fields(cls)) for cls in CLASSES)
    assert {name for _, name in NAMES} == {"dtype", "activation", "positions", "norm", "pooling"}


@pytest.mark.parametrize("cls", CLASSES)
def test_dtypes(cls):
    for value in ("int32", "float99", "", ",", "(", "complex64", "f4,f4", np.int64, np.dtype(bool), str):
        refused(ValueError, "^dtype must be a floating type, got ", cls, "dtype", value)
    for value in (3, None, 1.5, ["float32"], np.ones(2), np.float32(1)):
        refused(TypeError, "^dtype must be a floating type, got ", cls, "dtype", value)
    for value in ("float64", "f8", np.float64, np.dtype("float64"), float):
        assert make(cls, dtype=value).dtype == "float64"


@pytest.mark.parametrize("cls", [cls for cls, name in NAMES if name == "activation"])
def test_activations(cls):
    for value in (3, None, ["relu"]):
        refused(TypeError, "^activation must be a string, got ", cls, "activation", value)
    for value in ("elu", "", "ReLU"):
        names = r'"relu"(, "\w+")* or "(silu|gated_gelu|gated_silu)"'
        refused(ValueError, f"^activation must be {names}, got {value!r}$", cls, "activation", value)
    for value in cls.activations:
        options = {"bias": False} if cls is models.GPTConfig else {}
        assert make(cls, activation=value, **options).activation == value


@pytest.mark.parametrize("cls", [cls for cls, name in WHOLE if name == "num_heads" and cls is not models.T5Config])
def test_heads_of_one_width(cls):
    with pytest.raises(ValueError, match=r"^num_heads must divide d_model, got 3 heads for d_model = 8$"):
        make(cls, d_model=8, num_heads=3)
    assert models.T5Config(11, d_model=8, num_heads=3).num_heads == 3  # d_head sets the width


def test_ids_in_the_vocabulary():
    for name in ("bos_id", "eos_id"):
        refused(ValueError, f"^{name} is 13, not in tgt_vocab_size = 13$", models.TransformerConfig, name, 13)
    for name in ("pad_id", "bos_id", "eos_id"):
        refused(ValueError, f"^{name} is 11, not in vocab_size = 11$", models.T5Config, name, 11)


@pytest.mark.parametrize(
    ("cls", "changes", "message"),
    [
        (models.GPTConfig, {"activation": "gated_gelu"}, "gated_gelu.*needs bias=False"),
        (models.GPTConfig, {"positions": "rope"}, 'must be "learned", "sinusoidal", "rotary" or "alibi", got \'rope\''),
        (models.GPTConfig, {"positions": "rotary", "d_model": 12, "num_heads": 4}, "K must be even, got 3"),
        (models.GPTConfig, {"norm": "rmsnorm"}, 'norm must be "layer" or "rms", got \'rmsnorm\''),
        (models.GPTConfig, {"num_kv_heads": 5}, "num_kv_heads must divide num_heads, got 5 for num_heads = 12"),
        (models.LlamaConfig, {"num_kv_heads": 3}, "num_kv_heads must divide num_heads, got 3 for num_heads = 8"),
        (models.LlamaConfig, {"d_head": 3}, "K must be even, got 3"),
        (models.LlamaConfig, {"rope_scaling": {"rope_type": "dynamic"}}, "'dynamic', .*; supported are default, lin"),
        (models.LlamaConfig, {"rope_theta": 0.0}, "theta must lie in"),
        (models.BertConfig, {"num_classes": 4, "pooler": False}, "num_classes is 4, but a classifier needs pooler"),
        (models.TransformerConfig, {"bos_id": 2}, "pad_id, bos_id and eos_id must differ: 0, 2, 2"),
        (models.T5Config, {"eos_id": 0}, "eos_id is 0, the same as"),
    ],
)
def test_fields_that_do_not_go_together(cls, changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        make(cls, **changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("cls", "name"), OPTIONAL)
def test_none_where_it_has_a_meaning(cls, name):
    assert getattr(make(cls, **{name: None}), name) == OPTIONAL[cls, name]


@pytest.mark.parametrize(("cls", "name"), DICTIONARIES)
def test_dictionaries(cls, name):
    for value in ("linear", 3, [("rope_type", "linear")]):
        refused(TypeError, f"^{name} must be a dict, got ", cls, name, value)
    assert getattr(make(cls), name) is None


@pytest.mark.parametrize("cls", CLASSES)
def test_numpy_scalars_become_plain_numbers(cls):
    """A checkpoint has the configuration in its header, as JSON."""
    plain = asdict(make(cls))
    scalars = {int: np.int64, float: np.float64, bool: np.bool_}
    same = cls(**{name: scalars.get(type(value), lambda same: same)(value) for name, value in plain.items()})
    assert same == make(cls) and json.dumps(asdict(same)) == json.dumps(plain)


PUBLISHED = {  # the sizes in the papers and in the config.json of the models that the defaults stand for
    models.TransformerConfig: {  # base, Vaswani et al. 2017, table 3
        "d_model": 512, "num_heads": 8, "num_encoder_layers": 6, "num_decoder_layers": 6, "d_ff": 2048, "dropout": 0.1,
        "activation": "relu", "norm_first": False, "max_len": 512, "tie_embeddings": False, "pad_id": 0, "bos_id": 1,
        "eos_id": 2, "dtype": "float32", "seed": 0,
    },
    models.GPTConfig: {  # GPT-2 small
        "max_len": 1024, "d_model": 768, "num_heads": 12, "num_layers": 12, "d_ff": 3072, "activation": "gelu_tanh",
        "tie_embeddings": True, "layer_norm_eps": 1e-5, "bias": True,
    },
    models.BertConfig: {  # BERT base
        "max_len": 512, "d_model": 768, "num_heads": 12, "num_layers": 12, "d_ff": 3072, "type_vocab_size": 2,
        "dropout": 0.1, "activation": "gelu", "layer_norm_eps": 1e-12,
    },
    models.T5Config: {  # T5 v1.0 small
        "d_model": 512, "num_heads": 8, "d_head": 64, "num_encoder_layers": 6, "num_decoder_layers": 6, "d_ff": 2048,
        "dropout": 0.1, "activation": "relu", "tie_embeddings": True, "num_buckets": 32, "max_distance": 128,
        "layer_norm_eps": 1e-6, "pad_id": 0, "eos_id": 1, "bos_id": 0, "scale_output": True,
    },
    models.LlamaConfig: {
        "max_len": 2048, "d_model": 512, "num_heads": 8, "num_layers": 8, "rope_theta": 10000.0, "rope_scaling": None,
        "window": None, "eps": 1e-6, "qkv_bias": False, "tie_embeddings": False,
    },
}  # fmt: skip


@pytest.mark.parametrize("cls", PUBLISHED)
def test_the_defaults_are_the_published_ones(cls):
    config = make(cls)
    assert {name: getattr(config, name) for name in PUBLISHED[cls]} == PUBLISHED[cls]
