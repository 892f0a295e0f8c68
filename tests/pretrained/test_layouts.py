"""Folders of every layout: like Hugging Face's, of every generation, in shards and half precision, read and written,
and what can be wrong with them.

The numbers compared with were made by tests/reference/make_pretrained.py; neither PyTorch nor transformers is
needed.
"""

import json
import os
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from pretrained.conftest import CASES, tensors_of
from pretrained.test_weights import write_safetensors, write_shards
from reference import make_pretrained as ref
from safetensors import safe_open
from safetensors.numpy import load_file
from shared import assert_same, peak_of, python

from transformer_np import models
from transformer_np.decoding import generate, greedy_decode
from transformer_np.inspection.samples import randomised
from transformer_np.layers import initial
from transformer_np.layers.initial import blank
from transformer_np.models import GPT, T5, Bert, BertConfig, GPTConfig, Llama, LlamaConfig, T5Config, Transformer
from transformer_np.models.layouts import bert, gpt2, llama, t5
from transformer_np.models.layouts import folder as folder_module
from transformer_np.pretrained import load_any, save_pretrained

REAL = ref.BERT_IDS != 0  # the tokens that are not padding
LLAMAS = tuple(ref.LLAMAS)
TABLE, BERT_TABLE = "model.embed_tokens.weight", "bert.embeddings.word_embeddings.weight"


@pytest.fixture(scope="module")
def stored():
    return load_file(ref.PATH)


# --- like the reference ----------------------------------------------------------------------------------------------

HEADS = {  # of each BERT, with the method whose logits are stored
    "bert_pretraining": ("pooler mlm_head", "mlm_logits"), "bert_classifier": ("pooler classifier", "classify"),
    "bert_untied": ("mlm_head", "mlm_logits"), "bert_tokens": ("token_classifier", "classify_tokens"),
    "bert_spans": ("span_head", "span_scores"),
}  # fmt: skip


def said(model, case):
    """What a model says of the reference's ids, by the names under which the reference stores it."""
    if isinstance(model, Bert):
        hidden = model(ref.BERT_IDS, segments=ref.SEGMENTS)
        logits = getattr(model, HEADS[case][1])(ref.BERT_IDS, segments=ref.SEGMENTS)
        pooled = {} if model.pooler is None else {"hidden": hidden, "pooled": model.pool(hidden)}
        return {"logits": logits, **pooled}
    if isinstance(model, T5):
        texts = [greedy_decode(model, ref.T5_SRC, ref.NEW_TOKENS, use_cache) for use_cache in (True, False)]
        return {"logits": model(ref.T5_SRC, ref.T5_TGT_IN), "greedy": texts}
    ids, new = ref.GPT_IDS, ref.LLAMA_NEW_TOKENS if case in LLAMAS else ref.NEW_TOKENS
    texts = [generate(model, ids, new, temperature=0, use_cache=use_cache) for use_cache in (True, False)]
    return {"logits": model(ids), "greedy": texts}


@pytest.mark.parametrize("dtype", ["float64", None])
@pytest.mark.parametrize("case", CASES)
def test_like_the_reference(stored, folder_of, case, dtype):
    """In float64 a T5 and a Llama are no closer than in float32: the reference takes the mean square in their norms in
    float32 always."""
    model = load_any(folder_of(case), dtype)
    assert not model.training and model.config.dtype == (dtype or "float32")
    assert model.config.tie_embeddings == CASES[case].get("tie_word_embeddings", True)
    tolerance = 1e-12 if dtype and isinstance(model, GPT | Bert) else 1e-5
    for name, found in said(model, case).items():
        expected = stored[f"{case}.{name}"]
        if name == "greedy":
            start = int(isinstance(model, T5))  # its start token is not part of its text, and no row has ended
            assert all(np.array_equal(text, expected[:, start:]) for text in found)
            continue
        assert found.dtype == model.config.dtype
        real = REAL if case.startswith("bert") and expected.ndim == 3 else slice(None)
        assert abs(found - expected)[real].max() < tolerance
    if isinstance(model, Bert):
        heads = "pooler", "mlm_head", "classifier", "token_classifier", "span_head"
        assert " ".join(name for name in heads if getattr(model, name) is not None) == HEADS[case][0]


@pytest.mark.parametrize("case", LLAMAS)
def test_every_gradient_like_the_reference(stored, folder_of, case):
    model = Llama.from_pretrained(folder_of(case), "float64").train()
    model(ref.GPT_IDS)
    model.backward(ref.dlogits())
    parameters = dict(model.named_parameters())
    tensors = {llama.PREFIX + name: found for name, found in llama.body(model.config).items()}
    tensors |= llama.heads(model.config)
    expected = {n.removeprefix(f"{case}.gradient."): g for n, g in stored.items() if n.startswith(f"{case}.gradient.")}
    assert tensors.keys() == expected.keys()
    assert {ours for found in tensors.values() for ours in found.parameters} == parameters.keys()
    for name, found in tensors.items():
        gradient = parameters[found.parameters[0]].grad
        gradient = gradient.T if found.transposed else gradient
        assert abs(gradient - expected[name]).max() < 1e-5 * abs(expected[name]).max(), name
        assert abs(expected[name]).max() > 1e-3, name


# --- names of every generation ---------------------------------------------------------------------------------------


def moved(**names):
    """Tensors under other names, "__" for the dots: {new: old}"""
    names = {new.replace("__", "."): old for new, old in names.items()}
    return lambda t: {n: v for n, v in t.items() if n not in names.values()} | {n: t[old] for n, old in names.items()}


def renamed(*pairs):
    def change(tensors):
        for before, after in pairs:
            tensors = {name.replace(before, after): values for name, values in tensors.items()}
        return tensors

    return change


def beside(make):
    return lambda t: t | make(t)


UNTIED = {"tie_word_embeddings": False}
SHARED = [f"{side}.embed_tokens.weight" for side in ("encoder", "decoder")]
USELESS = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
CAUSAL = np.tril(np.ones((1, 1, 17, 17), np.float32))
NAMED = {  # (case, its tensors under other names, or with copies and buffers that are not learned)
    **{f"{case} without the prefix": (case, renamed(*((p, "") for p in ("transformer.", "bert.", "model."))))
       for case in CASES},
    "gamma and beta": ("bert_pretraining", renamed(("LayerNorm.weight", "LayerNorm.gamma"),
                                                   ("LayerNorm.bias", "LayerNorm.beta"))),
    "gpt2, tied": ("gpt2_tied", moved(lm_head__weight="transformer.wte.weight")),
    "llama, tied": ("smollm", moved(lm_head__weight=TABLE)),
    "t5, tied": ("t5_v1_0", moved(lm_head__weight="shared.weight")),
    "t5, encoder": ("t5_v1_0", moved(encoder__embed_tokens__weight="shared.weight")),
    "t5, decoder": ("t5_v1_0", moved(decoder__embed_tokens__weight="shared.weight")),
    "t5, both": ("t5_v1_1", moved(**{name.replace(".", "__"): "shared.weight" for name in SHARED})),
    "bert, tied": ("bert_pretraining", moved(cls__predictions__decoder__weight=BERT_TABLE,
                                             cls__predictions__decoder__bias="cls.predictions.bias")),
    "gpt2, masks": ("gpt2_tied", beside(lambda t: {
        **{f"transformer.h.{i}.attn.{n}": CAUSAL for i in (0, 1) for n in ("bias", "masked_bias")},
        "lm_head.weight": t["transformer.wte.weight"]})),
    "bert, copies": ("bert_pretraining", beside(lambda t: {
        "cls.predictions.decoder.weight": t[BERT_TABLE], "cls.predictions.decoder.bias": t["cls.predictions.bias"],
        "bert.embeddings.position_ids": np.arange(9)[None]})),
    "llama, frequencies": ("llama", beside(lambda t: {
        "model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(2, np.float32)})),
    "llama, a copy": ("smollm", beside(lambda t: {"lm_head.weight": t[TABLE]})),
    "t5, copies": ("t5_v1_0", beside(lambda t: {
        **dict.fromkeys([*SHARED, "lm_head.weight"], t["shared.weight"]), USELESS: np.ones((8, 3), np.float32)})),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_other_names_copies_and_buffers(folder_of, name):
    case, change = NAMED[name]
    plain = load_any(folder_of(case))
    assert_same(load_any(folder_of(case, change)), plain)


def test_a_t5_of_newer_files(folder_of):
    plain = T5.from_pretrained(folder_of("t5_v1_1"))
    newer = T5.from_pretrained(folder_of("t5_v1_1", tie_word_embeddings=True, scale_decoder_outputs=False))
    assert_same(newer, plain)  # so it is not tied
    with pytest.raises(ValueError, match=r"lm_head\.weight must equal shared\.weight, but differs"):
        T5.from_pretrained(folder_of("t5_v1_0", lambda t: t | {"lm_head.weight": 2 * t["shared.weight"]}))


def test_heads_of_other_tasks_are_left_out_with_a_warning(folder_of):
    task = {f"cls.seq_relationship.{name}": np.ones(2, np.float32) for name in ("weight", "bias")}
    with pytest.warns(UserWarning, match=r"ignored.*cls\.seq_relationship\.bias, cls\.seq_relation"):
        Bert.from_pretrained(folder_of("bert_pretraining", lambda t: t | task))
    with pytest.warns(UserWarning, match=r"ignored.*score\.weight"):
        GPT.from_pretrained(folder_of("gpt2_tied", lambda t: t | {"score.weight": np.ones((2, 12), np.float32)}))


def test_a_classifier_of_tokens_may_have_a_pooler_beside_it(folder_of):
    model = Bert.from_pretrained(folder_of("bert_classifier", architectures=["BertForTokenClassification"]))
    assert model.config.token_classes == 5 and model.pooler is not None is model.classifier


def test_a_head_of_its_own_is_used_although_it_should_be_tied(stored, folder_of):
    own = tensors_of("gpt2_untied")["lm_head.weight"]
    with pytest.warns(UserWarning, match=r"another lm_head\.weight"):
        model = GPT.from_pretrained(folder_of("gpt2_untied", tie_word_embeddings=True))
    np.testing.assert_array_equal(model.output.w.data, own.T)
    assert abs(model(ref.GPT_IDS) - stored["gpt2_untied.logits"]).max() < 1e-5
    with pytest.warns(UserWarning, match=r"lm_head\.weight, which is used"):
        model = Llama.from_pretrained(folder_of("smollm", lambda t: t | {"lm_head.weight": 2 * t[TABLE]}))
    assert not model.config.tie_embeddings

    def untied(t):
        return t | {"cls.predictions.decoder.weight": 2 * t[BERT_TABLE]}

    with pytest.warns(UserWarning, match=r"ignored.*cls\.predictions\.bias"):  # which bias counts is not known
        assert Bert.from_pretrained(folder_of("bert_pretraining", untied)).mlm_head is None


# --- config.json of every generation ---------------------------------------------------------------------------------


def test_both_generations_of_llama_say_the_same(folder_of):
    """rope_theta and rope_scaling of older files, rope_parameters of newer ones."""
    newer = Llama.from_pretrained(folder_of("llama"))
    scaling = dict(CASES["llama"]["rope_parameters"])
    theta = scaling.pop("rope_theta")
    for name in ("rope_type", "type"):
        scaling[name] = scaling.pop("rope_type")
        older = folder_of("llama", rope_parameters="left out", rope_theta=theta, rope_scaling=scaling)
        assert Llama.from_pretrained(older).config == newer.config
    plain = folder_of("mistral", rope_theta="left out", rope_parameters={"rope_type": "default", "rope_theta": 30.0})
    assert Llama.from_pretrained(plain).config == Llama.from_pretrained(folder_of("mistral")).config
    assert Llama.from_pretrained(folder_of("mistral", rope_theta="left out")).config.rope_theta == 10000.0


def test_the_length_before_scaling_is_the_context_where_nothing_is_said(folder_of):
    scaling = {**CASES["llama"]["rope_parameters"]}
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
    """The defaults of Hugging Face's classes, which small old config.json files rely on. By default the first 28 layers
    of Qwen2 see everything."""
    sizes = {"vocab_size": 9, "num_layers": 3, "d_model": 4, "num_heads": 2, "d_kv": 2, "d_ff": 8}
    for form in (sizes, {**sizes, "eos_token_id": [1, 2], "n_positions": None}):
        assert T5Config(**t5.read_config(form, {})) == T5Config(9, 4, 2, 2, 3, 3, 8)
    sizes = {"vocab_size": 9, "n_positions": 8, "n_embd": 4, "n_head": 2, "n_layer": 1}
    for form in (sizes, {**sizes, "n_positions": None, "n_ctx": 8, "n_inner": None}):
        assert GPTConfig(**gpt2.read_config(form, {})) == GPTConfig(9, 8, 4, 2, 1, dropout=0.1)
    sizes = {"vocab_size": 9, "max_position_embeddings": 8, "hidden_size": 4, "intermediate_size": 8}
    sizes |= {"num_attention_heads": 2, "num_hidden_layers": 1}
    found = bert.read_config(sizes, {})
    assert BertConfig(**found) == BertConfig(9, 8, 4, 2, 1, 8, pooler=False, mlm_head=False)
    sizes |= {"model_type": "qwen2", "use_sliding_window": True}
    found = llama.read_config({**sizes, "num_hidden_layers": 28}, {})
    assert LlamaConfig(**found) == LlamaConfig(9, 8, 4, 2, num_layers=28, d_ff=8, eps=1e-6, qkv_bias=True)
    with pytest.raises(ValueError, match="for some layers only"):
        llama.read_config({**sizes, "num_hidden_layers": 29}, {})


# --- half precision, shards, memory ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_shards_of_every_layout(folder_of, case):
    whole, tensors = load_any(folder_of(case)), tensors_of(case)
    folder = folder_of(case, lambda t: {})
    (folder / "model.safetensors").unlink()
    write_shards(folder, *({n: tensors[n] for n in list(tensors)[i::3]} for i in range(3)))
    assert_same(type(whole).from_pretrained(folder), whole)
    assert_same(load_any(folder), whole)


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
    (tmp_path / "config.json").write_text(json.dumps(llama.write_config(config)))
    names = llama.body(config) | llama.heads(config)
    shapes = {name: dict(model.named_parameters())[found.parameters[0]].shape for name, found in names.items()}
    zeros = {name: ("BF16", np.zeros(shape[::-1], "u2")) for name, shape in shapes.items()}
    zeros["embed_tokens.weight"] = ("BF16", np.zeros(shapes["embed_tokens.weight"], "u2"))
    write_safetensors(tmp_path / "model.safetensors", zeros)
    # Memory that imports have used and freed would be used again by gradients of 0, and count as touched by them.
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": str(1 << 16)}
    done = python("-c", PEAK, tmp_path, env=environment, check=True)
    peak, size = map(int, done.stdout.split())
    assert size > 80e6 and 0.9 * size < peak < 1.12 * size


@pytest.mark.parametrize(("kind", "case"), [(GPT, "gpt2_tied"), (Bert, "bert_classifier")])
def test_values_from_a_folder_are_not_drawn_first(folder_of, monkeypatch, kind, case):
    """Drawing them is most of the time that a real model would need."""
    folder = folder_of(case)
    monkeypatch.setattr(initial, "np", SimpleNamespace(zeros=np.zeros, broadcast_to=np.broadcast_to))  # without random
    kind.from_pretrained(folder)


# --- writing ---------------------------------------------------------------------------------------------------------

SIZES = {GPT: (13, 17, 12, 3, 2, 10), Bert: (13, 9, 12, 3, 2, 10), Llama: (11, 9, 12, 6, 2), T5: (11, 8, 2, 4, 1, 1, 6)}
QWEN3 = {"norm_heads": True, "d_head": 6}
BIASES = {"qkv_bias": True, "output_bias": True}
WINDOW = {"use_sliding_window": True, "sliding_window": 4}
MADE = [  # (class, options of its configuration, settings in the written config.json)
    (GPT, {}, {}), (GPT, {"tie_embeddings": False}, {}), (GPT, {"activation": "gelu"}, {}),
    (GPT, {"activation": "relu", "dtype": "float64"}, {"dtype": "float64"}),
    (Bert, {}, {}), (Bert, {"mlm_head": False}, {}), (Bert, {"mlm_head": False, "pooler": False}, {}),
    (Bert, {"mlm_head": False, "num_classes": 5, "activation": "gelu_tanh"}, {}),
    (Bert, {"num_classes": 2, "dtype": "float64", "pad_id": 3}, {}),
    (Bert, {"mlm_head": False, "pooler": False, "token_classes": 4}, {}),
    (Bert, {"span_head": True, "tie_embeddings": False}, {}),
    (T5, {}, {"scale_decoder_outputs": None}), (T5, {"scale_output": False}, {"scale_decoder_outputs": False}),
    (Llama, QWEN3, {"model_type": "qwen3", "attention_bias": None}),
    (Llama, {**QWEN3, **BIASES, "window": 3}, {"model_type": "qwen3", "attention_bias": True, **WINDOW}),
    (Llama, BIASES, {"model_type": "llama", "attention_bias": True}),
    (Llama, {"qkv_bias": True, "window": 3}, {"model_type": "qwen2", "attention_bias": None, **WINDOW}),
]  # fmt: skip


def settings_of(folder):
    return json.loads((folder / "config.json").read_text())


@pytest.mark.parametrize(("cls", "options", "settings"), MADE)
def test_round_trip(tmp_path, rng, cls, options, settings):
    own = {"num_layers": 2, "d_ff": 5, "eps": 1e-3} if cls is Llama else {"dropout": 0.25, "layer_norm_eps": 1e-3}
    model = randomised(cls(cls.config_class(*SIZES[cls], **own, **options)), rng)
    folder = tmp_path / "new" / "folder"
    model.save_pretrained(folder)
    again = load_any(folder)
    assert again.config == cls.from_pretrained(folder).config == model.config
    assert_same(again, model)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1  # who may read one file may read the other
    assert {name: settings_of(folder).get(name) for name in settings} == settings
    if cls is Llama:
        names, attention = load_file(folder / "model.safetensors"), "model.layers.1.self_attn."
        assert (attention + "q_norm.weight" in names) == ("norm_heads" in options)
        assert (attention + "o_proj.bias" in names) == ("output_bias" in options)


@pytest.mark.parametrize("case", CASES)
def test_what_is_written_is_what_was_read(folder_of, tmp_path, case):
    folder, copy = folder_of(case), tmp_path / "copy"
    model = load_any(folder)
    model.save_pretrained(copy)
    assert load_any(copy).config == model.config
    written, read = load_file(copy / "model.safetensors"), tensors_of(case)
    assert written.keys() == read.keys() - ({"cls.predictions.bias"} if case == "bert_untied" else set())
    assert all(np.array_equal(written[name], read[name]) for name in written)
    with safe_open(copy / "model.safetensors", "numpy") as file:
        assert file.metadata() == {"format": "pt"}
    settings = settings_of(copy)
    same = ("model_type", "bos_token_id") if case in LLAMAS else CASES[case]  # a Llama's have two generations
    assert {key: settings[key] for key in same} == {key: CASES[case][key] for key in same}
    kinds = {name: kind for name, (kind, _) in ref.CASES.items()} | {"bert_pretraining": "BertForMaskedLM"}
    assert settings["architectures"] == [kinds[case]]


def test_a_gpt_without_biases_gets_ones_that_are_zero(tmp_path, rng):
    model = randomised(GPT(GPTConfig(*SIZES[GPT], bias=False, num_kv_heads=3)), rng)  # as many as heads
    model.save_pretrained(tmp_path)
    again = GPT.from_pretrained(tmp_path)
    assert not load_file(tmp_path / "model.safetensors")["transformer.h.1.attn.c_attn.bias"].any()
    assert again.config.bias
    np.testing.assert_allclose(again(ref.GPT_IDS), model(ref.GPT_IDS), atol=1e-6)


@pytest.mark.parametrize(
    ("cls", "options", "message"),
    [
        (GPT, {"activation": "gated_gelu", "bias": False}, "is 'gated_gelu', which GPT-2 cannot have; it can have"),
        (GPT, {"window": 2}, "window is 2, but GPT-2 has none"),
        (GPT, {"positions": "alibi"}, 'positions is "alibi", but GPT-2 has "learned"'),
        (GPT, {"num_kv_heads": 1}, "num_kv_heads is 1, but GPT-2 has as many as num_heads = 3"),
        (GPT, {"norm": "rms"}, 'norm is "rms", but GPT-2 has "layer"'),
        (Llama, {"d_model": 10, "d_head": 4}, "num_heads must divide d_model in Hugging Face's layout, got 6 heads"),
        (Llama, {**QWEN3, "qkv_bias": True}, "needs output_bias"),
        (Llama, {**BIASES, "window": 3}, "does not go with a window"),
    ],
)
def test_what_no_layout_can_hold(tmp_path, cls, options, message):
    with pytest.raises(TypeError, match="must be one of Bert, GPT, Llama, T5, got Transformer"):
        save_pretrained(Transformer(models.TransformerConfig(5, 5, 4, 2, 1, 1, 6)), tmp_path / "folder")
    names = ("vocab_size", "max_len", "d_model", "num_heads")
    config = {**dict(zip(names, SIZES[cls], strict=False)), "num_layers": 1, "d_ff": 6, **options}
    with pytest.raises(ValueError, match=message):
        cls(cls.config_class(**config)).save_pretrained(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_one_layout_for_several_model_types_and_several_layouts_for_one_model(folder_of, tmp_path, monkeypatch, rng):
    def write_config(config):
        return gpt2.write_config(config) | ({"model_type": "long_fork"} if config.max_len > 17 else {})

    two = {"MODEL_TYPES": ("fork", "long_fork"), "write_config": write_config}
    layout = SimpleNamespace(**{**vars(gpt2), **two})
    monkeypatch.setattr(folder_module, "MODELS", dict(folder_module.MODELS))

    class Forked(GPT):
        layouts = (layout, gpt2)

    for model_type, cls in (("fork", Forked), ("long_fork", Forked), ("gpt2", GPT)):
        folder = folder_of("gpt2_tied", model_type=model_type)
        assert type(load_any(folder)) is cls
        assert type(Forked.from_pretrained(folder)) is Forked
    with pytest.raises(ValueError, match=r"type 'fork', not a GPT: read it with Forked\.from_pretrained"):
        GPT.from_pretrained(folder_of("gpt2_tied", model_type="fork"))
    for max_len, model_type in ((17, "fork"), (18, "long_fork")):
        model = randomised(Forked(GPTConfig(13, max_len, 12, 3, 2, 10, bias=False)), rng)
        model.save_pretrained(tmp_path / "new")
        assert json.loads((tmp_path / "new" / "config.json").read_text())["model_type"] == model_type
        again = load_any(tmp_path / "new")
        assert type(again) is Forked and again.config.max_len == max_len
        np.testing.assert_allclose(again(ref.GPT_IDS), model(ref.GPT_IDS), atol=1e-6)


def test_the_tokenizer_goes_along_and_stays_in_the_folder_it_came_from(folder_of, tmp_path):
    folder = folder_of("gpt2_tied")
    (folder / "tokenizer.json").write_text('{"a": 1}')
    (folder / "vocab.json").write_text("{}")
    model = GPT.from_pretrained(folder)
    model.norm.gamma = 2 * model.norm.gamma.data
    for place in (folder, tmp_path / "one"):
        model.save_pretrained(place)
        assert_same(GPT.from_pretrained(place), model)
        assert (place / "tokenizer.json").read_text() == '{"a": 1}' and (place / "vocab.json").exists()
    (tmp_path / "other.json").write_text("[]")
    model.save_pretrained(tmp_path / "two", tokenizer=tmp_path / "other.json")
    assert (tmp_path / "two" / "tokenizer.json").read_text() == "[]"
    with pytest.raises(FileNotFoundError, match=r"there is no tokenizer\.json in"):
        model.save_pretrained(tmp_path / "three", tokenizer=tmp_path / "nowhere")


# --- what will not do ------------------------------------------------------------------------------------------------


def test_no_folder_or_none_of_a_model(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder gpt2; models are not downloaded"):
        GPT.from_pretrained("gpt2")
    with pytest.raises(FileNotFoundError, match=r"it has no config\.json"):
        GPT.from_pretrained(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is a file"):
        Bert.from_pretrained(tmp_path / "file")


def test_an_unsupported_dtype_or_model_type(folder_of):
    for dtype in ("int32", "float99"):
        with pytest.raises(ValueError, match=f"^dtype must be a floating type, got '{dtype}'"):
            GPT.from_pretrained(folder_of("gpt2_tied"), dtype)
    supported = "bert, gpt2, llama, mistral, qwen2, qwen3, t5"
    for model_type in ("mixtral", None, "", 3, ["gpt2"]):
        with pytest.raises(ValueError, match=rf"model_type is .* not supported; supported are {supported}$"):
            GPT.from_pretrained(folder_of("gpt2_tied", model_type=model_type))


@pytest.mark.parametrize(
    ("case", "settings", "message"),
    [
        ("gpt2_tied", {"activation_function": "swish"}, "activation_function is 'swish'.*supported are gelu, gelu_new"),
        ("gpt2_tied", {"scale_attn_weights": False}, "scale_attn_weights is False"),
        ("gpt2_tied", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is True"),
        ("gpt2_tied", {"add_cross_attention": True}, "add_cross_attention is True"),
        ("gpt2_tied", {"n_embd": None}, "n_embd is missing"),
        ("gpt2_tied", {"n_embd": "12"}, "d_model must be a whole number, got '12'"),
        ("gpt2_tied", {"n_head": 5}, "num_heads must divide d_model"),
        ("gpt2_tied", {"layer_norm_epsilon": "small"}, "small"),
        ("bert_classifier", {"hidden_act": "swish"}, "hidden_act is 'swish'"),
        ("bert_classifier", {"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ("bert_classifier", {"is_decoder": True}, "is_decoder is True"),
        ("bert_classifier", {"num_hidden_layers": None}, "num_hidden_layers is missing"),
        ("t5_v1_0", {"feed_forward_proj": "gated-silu"}, "feed_forward_proj is 'gated-silu'.*supported are relu"),
        ("t5_v1_0", {"is_encoder_decoder": False}, "is_encoder_decoder is False"),
        ("t5_v1_0", {"d_kv": None}, "d_kv is missing"),
        ("t5_v1_0", {"relative_attention_num_buckets": 3}, "num_buckets must be at least 4"),
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
def test_unsupported_settings(folder_of, case, settings, message):
    with pytest.raises(ValueError, match=rf"config\.json: .*{message}") as info:
        load_any(folder_of(case, **settings))
    assert "\n" not in str(info.value)


def test_a_float8_file(folder_of):
    folder = folder_of("llama")
    eighths = {name: ("F8_E4M3", np.zeros(a.shape, np.uint8)) for name, a in tensors_of("llama").items()}
    write_safetensors(folder / "model.safetensors", eighths)
    message = "weight is F8_E4M3, which is not supported; supported are F64, F32, F16, BF16"
    with pytest.raises(ValueError, match=message) as info:
        Llama.from_pretrained(folder)
    assert "\n" not in str(info.value)


def test_sizes_in_a_file_ask_for_no_memory(folder_of):
    folder = folder_of("llama", hidden_size=6 * 10**9, head_dim="left out")

    def refused():
        with pytest.raises(ValueError, match=r"a model of these sizes has at least .* parameters, but the file has"):
            load_any(folder)

    assert peak_of(refused) < 16 << 20


def test_missing_and_unexpected_tensors_are_named(folder_of):
    def spoil(tensors):
        del tensors["transformer.h.1.ln_2.bias"], tensors["transformer.wpe.weight"]
        return tensors | {"transformer.h.2.ln_1.weight": np.ones(12, np.float32), "other": np.ones(1, np.float32)}

    with pytest.raises(ValueError) as error:
        GPT.from_pretrained(folder_of("gpt2_tied", spoil))
    missing, unexpected = "transformer.wpe.weight, transformer.h.1.ln_2.bias", "transformer.h.2.ln_1.weight, other"
    assert f"missing {missing}; unexpected {unexpected}" in str(error.value)

    def spoil(tensors):
        del tensors["bert.pooler.dense.bias"], tensors["classifier.bias"]
        return tensors

    with pytest.raises(ValueError, match=r"missing bert\.pooler\.dense\.bias, classifier\.bias$"):
        Bert.from_pretrained(folder_of("bert_classifier", spoil))
    with pytest.raises(ValueError, match=r"missing lm_head\.weight$"):
        GPT.from_pretrained(folder_of("gpt2_tied", tie_word_embeddings=False))
    with pytest.raises(ValueError, match=r"missing bert.*, \S+ and \d+ more$"):
        Bert.from_pretrained(folder_of("bert_classifier", num_hidden_layers=3))


def turned(name):
    return lambda t: t | {name: t[name].T}


@pytest.mark.parametrize(
    ("case", "change", "settings", "message"),
    [
        (
            "gpt2_tied",
            turned("transformer.h.0.attn.c_attn.weight"),
            {},
            r"c_attn\.weight .* \(12, 36\), got \(36, 12\)",
        ),
        ("gpt2_tied", turned("transformer.wte.weight"), {}, r"wte\.weight must have shape \(13, 12\), got \(12, 13\)"),
        ("t5_v1_0", turned("decoder.block.1.layer.1.EncDecAttention.q.weight"), {}, r"q\.weight .* got \(12, 15\)"),
        ("bert_classifier", turned("bert.encoder.layer.1.output.dense.weight"), {}, r"1\.output.* got \(10, 12\)"),
        ("gpt2_untied", dict, {"vocab_size": 14}, r"wte\.weight must have shape \(14, 12\).*; .*lm_head\.weight must"),
        ("gpt2_tied", beside(lambda t: {"wte.weight": t["transformer.wte.weight"]}), {}, "two names of one tensor"),
        ("gpt2_tied", moved(lm_head__weight="transformer.wte.weight"), UNTIED, r"missing transformer\.wte\.weight"),
        ("smollm", moved(lm_head__weight=TABLE), UNTIED, f"missing {TABLE}"),
    ],
)
def test_tensors_that_do_not_fit(folder_of, case, change, settings, message):
    with pytest.raises(ValueError, match=message):
        load_any(folder_of(case, change, **settings))


class Trap:
    def __reduce__(self):
        return pytest.fail, ("a pickle was read",)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.safetensors"])
def test_a_pickle_is_never_read(folder_of, name):
    folder = folder_of("gpt2_tied")
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Trap()))
    pickled = rf"only in a pickle \({name}\).*never read.*convert"
    with pytest.raises(ValueError, match="not a safetensors file" if "safetensors" in name else pickled):
        GPT.from_pretrained(folder)
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no model\.safetensors in"):
        GPT.from_pretrained(folder)
