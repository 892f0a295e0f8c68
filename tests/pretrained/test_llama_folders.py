"""Folders of Llama, Mistral, Qwen2 and SmolLM: like Hugging Face's, of every generation, in shards and half precision.

The numbers compared with were made by tests/reference/make_llama.py; neither PyTorch nor transformers is needed.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from pretrained.test_weights import bfloat16, write_safetensors, write_shards
from reference import make_llama as ref
from reference import make_pretrained
from safetensors.numpy import load_file
from shared import assert_same

from transformer_np.decoding import generate
from transformer_np.inspection.samples import randomised
from transformer_np.layers.initial import blank
from transformer_np.models import GPT, T5, Bert, GPTConfig, Llama, LlamaConfig
from transformer_np.models.layouts import llama as layout
from transformer_np.pretrained import load_any, save_pretrained


@pytest.fixture(scope="module")
def stored():
    return load_file(ref.PATH)


@pytest.fixture
def folder_of(tmp_path):
    """folder_of(case, settings=…, change=…) -> the folder of a case, some settings and tensors changed."""

    def make(case, change=lambda tensors: tensors, **settings):
        settings = {k: v for k, v in {**ref.CASES[case], **settings}.items() if v != "left out"}
        return make_pretrained.write_folder(tmp_path / case, settings, change(ref.tensors(case)))

    return make


# --- like the reference ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", None])
@pytest.mark.parametrize("case", ref.CASES)
def test_logits_and_text_like_the_reference(stored, folder_of, case, dtype):
    """In float64 no closer than in float32: the reference takes the mean square in its norms in float32 always."""
    model = Llama.from_pretrained(folder_of(case), dtype)
    assert not model.training and model.config.dtype == (dtype or "float32")
    logits = model(ref.IDS)
    assert logits.dtype == model.config.dtype
    assert abs(logits - stored[f"{case}.logits"]).max() < 1e-5
    for use_cache in (True, False):
        greedy = generate(model, ref.IDS, ref.NEW_TOKENS, temperature=0, use_cache=use_cache)
        np.testing.assert_array_equal(greedy, stored[f"{case}.greedy"])


@pytest.mark.parametrize("case", ref.CASES)
def test_every_gradient_like_the_reference(stored, folder_of, case):
    model = Llama.from_pretrained(folder_of(case), "float64").train()
    model(ref.IDS)
    model.backward(ref.dlogits())
    parameters = dict(model.named_parameters())
    tensors = {layout.PREFIX + name: found for name, found in layout.body(model.config).items()}
    tensors |= layout.heads(model.config)
    expected = {n.removeprefix(f"{case}.gradient."): g for n, g in stored.items() if n.startswith(f"{case}.gradient.")}
    assert tensors.keys() == expected.keys()
    assert {ours for found in tensors.values() for ours in found.parameters} == parameters.keys()
    for name, found in tensors.items():
        gradient = parameters[found.parameters[0]].grad
        gradient = gradient.T if found.transposed else gradient
        assert abs(gradient - expected[name]).max() < 1e-5 * abs(expected[name]).max(), name
        assert abs(expected[name]).max() > 1e-3, name


# --- config.json of every generation ---------------------------------------------------------------------------------


def test_both_generations_say_the_same(folder_of):
    """rope_theta and rope_scaling of older files, rope_parameters of newer ones."""
    newer = Llama.from_pretrained(folder_of("llama"))
    scaling = dict(ref.CASES["llama"]["rope_parameters"])
    theta = scaling.pop("rope_theta")
    older = folder_of("llama", rope_parameters="left out", rope_theta=theta, rope_scaling=scaling)
    assert Llama.from_pretrained(older).config == newer.config
    scaling["type"] = scaling.pop("rope_type")
    older = folder_of("llama", rope_parameters="left out", rope_theta=theta, rope_scaling=scaling)
    assert Llama.from_pretrained(older).config == newer.config

    plain = folder_of("mistral", rope_theta="left out", rope_parameters={"rope_type": "default", "rope_theta": 30.0})
    assert Llama.from_pretrained(plain).config == Llama.from_pretrained(folder_of("mistral")).config
    assert Llama.from_pretrained(folder_of("mistral", rope_theta="left out")).config.rope_theta == 10000.0


def test_the_length_before_scaling_is_the_context_where_nothing_is_said(folder_of):
    scaling = {**ref.CASES["llama"]["rope_parameters"]}
    del scaling["original_max_position_embeddings"]
    config = Llama.from_pretrained(folder_of("llama", rope_parameters=scaling)).config
    assert config.rope_scaling["original_max_position_embeddings"] == config.max_len == 40


@pytest.mark.parametrize(
    ("case", "settings", "window"),
    [
        ("mistral", {"sliding_window": None}, None),
        ("mistral", {"sliding_window": "left out"}, 4095),
        ("qwen2", {"use_sliding_window": True}, None),  # from layer 2 on, and there are 2
        ("qwen2", {"use_sliding_window": True, "max_window_layers": 0}, 3),
        ("qwen2", {"use_sliding_window": True, "max_window_layers": 0, "sliding_window": "left out"}, 4095),
        ("qwen2", {"use_sliding_window": True, "layer_types": ["sliding_attention"] * 2}, 3),
        ("llama", {"sliding_window": 3}, None),  # Llama has none, whatever its file says
    ],
)
def test_windows(folder_of, case, settings, window):
    assert Llama.from_pretrained(folder_of(case, **settings)).config.window == window


def test_what_an_old_file_leaves_out():
    """The defaults of Hugging Face's classes. By default the first 28 layers of Qwen2 see everything."""
    sizes = {"vocab_size": 9, "max_position_embeddings": 8, "hidden_size": 4, "intermediate_size": 8}
    sizes |= {"num_attention_heads": 2, "model_type": "qwen2", "use_sliding_window": True}
    settings = layout.read_config({**sizes, "num_hidden_layers": 28}, {})
    assert (settings["eps"], settings["rope_theta"], settings["window"]) == (1e-6, 10000.0, None)
    assert (settings["tie_embeddings"], settings["num_kv_heads"], settings["d_head"]) == (False, None, None)
    with pytest.raises(ValueError, match="for some layers only"):
        layout.read_config({**sizes, "num_hidden_layers": 29}, {})


def test_a_head_of_its_own_in_a_tied_file(folder_of):
    table = "model.embed_tokens.weight"
    same = folder_of("smollm", lambda t: t | {"lm_head.weight": t[table]})
    assert Llama.from_pretrained(same).config.tie_embeddings
    other = folder_of("smollm", lambda t: t | {"lm_head.weight": 2 * t[table]})
    with pytest.warns(UserWarning, match=r"lm_head\.weight, which is used"):
        model = Llama.from_pretrained(other)
    assert not model.config.tie_embeddings


def test_names_without_the_prefix_and_buffers(folder_of):
    def change(tensors):
        buffer = {"layers.0.self_attn.rotary_emb.inv_freq": np.ones(2, np.float32)}
        return {name.removeprefix("model."): values for name, values in tensors.items()} | buffer

    plain = Llama.from_pretrained(folder_of("llama"))
    assert_same(Llama.from_pretrained(folder_of("llama", change)), plain)


# --- half precision and shards ---------------------------------------------------------------------------------------

EVERY = {f"llama: {case}": (Llama, ref, case) for case in ref.CASES}
EVERY |= {case: ({"g": GPT, "b": Bert, "t": T5}[case[0]], make_pretrained, case) for case in make_pretrained.CASES}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.filterwarnings("ignore:.*the model here has no head for")
def test_shards_of_every_layout(tmp_path, name):
    cls, made, case = EVERY[name]
    settings = made.CASES[case] if made is ref else made.CASES[case][1]
    tensors = made.tensors(case)
    whole = cls.from_pretrained(make_pretrained.write_folder(tmp_path / "whole", settings, tensors))
    folder = make_pretrained.write_folder(tmp_path / "shards", settings, {})
    (folder / "model.safetensors").unlink()
    names = list(tensors)
    write_shards(folder, *({n: tensors[n] for n in names[i::3]} for i in range(3)))
    assert_same(cls.from_pretrained(folder), whole)
    assert_same(load_any(folder), whole)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("kind", ["BF16", "F16"])
@pytest.mark.filterwarnings("ignore:.*the model here has no head for")
def test_half_precision_of_every_layout_becomes_single(tmp_path, name, kind):
    cls, made, case = EVERY[name]
    settings = made.CASES[case] if made is ref else made.CASES[case][1]
    half = {n: bfloat16(a) if kind == "BF16" else a.astype(np.float16) for n, a in made.tensors(case).items()}
    single = {n: (a.astype("u4") << 16).view("f4") if kind == "BF16" else a.astype("f4") for n, a in half.items()}
    whole = cls.from_pretrained(make_pretrained.write_folder(tmp_path / "single", settings, single))
    folder = make_pretrained.write_folder(tmp_path / "half", settings, {})
    write_safetensors(folder / "model.safetensors", {n: (kind, a) for n, a in half.items()})
    model = cls.from_pretrained(folder)
    assert model.config.dtype == "float32"
    assert_same(model, whole)


PEAK = """
import sys
import safetensors
from transformer_np.models import Llama

def kilobytes(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))

before = kilobytes("VmRSS")
model = Llama.from_pretrained(sys.argv[1])
print(1024 * (kilobytes("VmHWM") - before), sum(p.data.nbytes for p in model.parameters()))
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "sizes",
    [
        {"vocab_size": 40_000, "num_heads": 2, "num_layers": 1, "d_ff": 8},
        {"vocab_size": 1000, "num_heads": 4, "num_kv_heads": 1, "num_layers": 24, "d_ff": 1024},
    ],
    ids=["the embedding", "matrices of many sizes"],
)
def test_reading_takes_little_more_memory_than_the_model(tmp_path, sizes):
    """In half precision, no tensor is in memory a second time, no gradient is, and no mask over a tensor."""
    config = LlamaConfig(max_len=8, d_model=256, **sizes)
    with blank():
        model = Llama(config)
    (tmp_path / "config.json").write_text(json.dumps(layout.write_config(config)))
    names = layout.body(config) | layout.heads(config)
    shapes = {name: dict(model.named_parameters())[found.parameters[0]].shape for name, found in names.items()}
    zeros = {name: ("BF16", np.zeros(shape[::-1], "u2")) for name, shape in shapes.items()}
    zeros["embed_tokens.weight"] = ("BF16", np.zeros(shapes["embed_tokens.weight"], "u2"))
    write_safetensors(tmp_path / "model.safetensors", zeros)
    # Memory that imports have used and freed would be used again by gradients of 0, and count as touched by them.
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": str(1 << 16)}
    command = [sys.executable, "-c", PEAK, tmp_path]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    peak, size = map(int, done.stdout.split())
    assert size > 80e6
    assert 0.9 * size < peak < 1.12 * size


# --- writing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ref.CASES)
def test_a_model_that_was_written_is_read_the_same(folder_of, tmp_path, case):
    model = Llama.from_pretrained(folder_of(case))
    model.save_pretrained(tmp_path / "again")
    again = load_any(tmp_path / "again")
    assert isinstance(again, Llama) and again.config == model.config
    assert_same(again, model)
    theirs = load_file(tmp_path / "again" / "model.safetensors")
    given = ref.tensors(case)
    assert theirs.keys() == given.keys()
    assert all(np.array_equal(theirs[name], values) for name, values in given.items())
    settings = json.loads((tmp_path / "again" / "config.json").read_text())
    assert settings["model_type"] == ref.CASES[case]["model_type"]
    assert settings["bos_token_id"] == 1


QWEN3 = {"norm_heads": True, "d_head": 6}


@pytest.mark.parametrize(
    ("fields", "model_type"),
    [
        (QWEN3, "qwen3"),
        ({**QWEN3, "qkv_bias": True, "output_bias": True, "window": 3}, "qwen3"),
        ({"qkv_bias": True, "output_bias": True}, "llama"),
    ],
)
def test_norms_of_heads_and_biases_everywhere(tmp_path, rng, fields, model_type):
    model = randomised(Llama(LlamaConfig(13, 9, 8, 4, 2, num_layers=2, d_ff=5, **fields)), rng)
    model.save_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    assert settings["model_type"] == model_type and settings.get("attention_bias", False) == ("qkv_bias" in fields)
    names = set(load_file(tmp_path / "model.safetensors"))
    attention = "model.layers.1.self_attn."
    assert (attention + "q_norm.weight" in names) == (model_type == "qwen3")
    assert (attention + "o_proj.bias" in names) == ("qkv_bias" in fields)
    again = Llama.from_pretrained(tmp_path)
    assert again.config == model.config
    ids = np.array([[3, 1, 4, 1, 5, 9]])
    assert np.array_equal(again(ids), model.eval()(ids))


def test_what_no_layout_can_hold(tmp_path):
    for fields, message in (
        ({**QWEN3, "qkv_bias": True}, "needs output_bias"),
        ({"qkv_bias": True, "output_bias": True, "window": 3}, "does not go with a window"),
    ):
        with pytest.raises(ValueError, match=message):
            Llama(LlamaConfig(13, 9, 8, 4, 2, num_layers=1, d_ff=5, **fields)).save_pretrained(tmp_path)


def test_biases_and_a_window_are_qwen2(tmp_path, rng):
    config = LlamaConfig(11, 9, 12, 6, 2, num_layers=2, window=3, qkv_bias=True)
    model = randomised(Llama(config), rng)
    save_pretrained(model, tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    assert (settings["model_type"], settings["use_sliding_window"], settings["sliding_window"]) == ("qwen2", True, 4)
    assert Llama.from_pretrained(tmp_path).config == config
    assert_same(Llama.from_pretrained(tmp_path), model)


def test_models_that_hugging_face_cannot_have(tmp_path):
    with pytest.raises(ValueError, match="num_heads must divide d_model in Hugging Face's layout, got 6 heads"):
        Llama(LlamaConfig(11, 9, 10, 6, 2, d_head=4, num_layers=1)).save_pretrained(tmp_path)
    for change, message in (
        ({"window": 2}, "window is 2, but GPT-2 has none"),
        ({"positions": "alibi"}, 'positions is "alibi", but GPT-2 has "learned"'),
        ({"num_kv_heads": 1}, "num_kv_heads is 1, but GPT-2 has as many as num_heads = 3"),
        ({"norm": "rms"}, 'norm is "rms", but GPT-2 has "layer"'),
    ):
        with pytest.raises(ValueError, match=message):
            GPT(GPTConfig(11, 9, 12, 3, 1, **change)).save_pretrained(tmp_path)
    GPT(GPTConfig(11, 9, 12, 3, 1, num_kv_heads=3)).save_pretrained(tmp_path)  # said aloud, the same


# --- what is wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "settings", "message"),
    [
        ("llama", {"rope_parameters": {"rope_type": "yarn"}}, "rope_type is 'yarn', .* default, linear, llama3"),
        ("smollm", {"rope_scaling": {"type": "dynamic"}}, "rope_type is 'dynamic', .* default, linear, llama3"),
        ("llama", {"rope_parameters": {"full_attention": {"rope_type": "default"}}}, "rope_parameters differ by layer"),
        ("smollm", {"rope_scaling": "linear"}, "rope_scaling must be a JSON object with a rope_type, got 'linear'"),
        ("smollm", {"rope_scaling": {"type": "linear"}}, "factor of the rope_type 'linear' must be a positive number"),
        ("llama", {"num_key_value_heads": 4}, "num_kv_heads must divide num_heads, got 4 for num_heads = 6"),
        ("llama", {"hidden_act": "gelu"}, "hidden_act is 'gelu', which is not supported; supported is 'silu'"),
        ("llama", {"mlp_bias": True}, "mlp_bias is True, which is not supported; supported is False"),
        ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5, which is not supported"),
        ("qwen2", {"use_sliding_window": True, "max_window_layers": 1}, "for some layers only"),
        ("llama", {"hidden_size": "left out"}, "hidden_size is missing"),
    ],
)
def test_settings_that_are_not_supported(folder_of, case, settings, message):
    with pytest.raises(ValueError, match=rf"config\.json: .*{message}") as info:
        Llama.from_pretrained(folder_of(case, **settings))
    assert "\n" not in str(info.value)


def test_a_float8_file(folder_of):
    folder = folder_of("llama")
    eighths = {name: ("F8_E4M3", np.zeros(a.shape, np.uint8)) for name, a in ref.tensors("llama").items()}
    write_safetensors(folder / "model.safetensors", eighths)
    with pytest.raises(
        ValueError, match="is F8_E4M3, which is not supported; supported are F64, F32, F16, BF16"
    ) as info:
        Llama.from_pretrained(folder)
    assert "\n" not in str(info.value)
