"""GGUF files, written here with llama.cpp's names and order of rows, beside the models that they hold."""

import json
import struct
import warnings
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from safetensors.numpy import load_file
from shared import call, data_of, done, fails

from transformer_np import cli
from transformer_np.functional.rotary import rotary_frequencies
from transformer_np.inspection.samples import randomised
from transformer_np.models import GPT, GPTConfig, Llama, LlamaConfig
from transformer_np.models.layouts.folder import load_any
from transformer_np.pretrained import PretrainedFolder, PretrainedTokenizer

gguf = pytest.importorskip("gguf", reason="a .gguf file needs the gguf library")
pytest.importorskip("tokenizers", reason="tokenizer.json needs the tokenizers library")

BYTES = list(PretrainedTokenizer.__init__.__globals__["LETTERS"].values())
WORDS = ["<s>", "</s>", *BYTES, "th", "the", "Ġthe"]
MERGES = ["t h", "th e", "Ġ the"]
CONFIG = {"vocab_size": len(WORDS), "max_len": 24, "d_model": 64, "num_heads": 4, "num_layers": 2, "d_ff": 96}
SIZES = {
    "context_length": "max_len", "embedding_length": "d_model", "block_count": "num_layers",
    "feed_forward_length": "d_ff", "attention.head_count": "num_heads", "attention.head_count_kv": "num_kv_heads",
}  # fmt: skip
TOKENIZER = {
    "model": "gpt2", "pre": "gpt-2", "tokens": WORDS, "token_type": [3, 3] + [1] * (len(WORDS) - 2), "merges": MERGES,
    "bos_token_id": 0, "eos_token_id": 1,
}  # fmt: skip
ADD = {bool: "add_bool", int: "add_uint32", float: "add_float32", str: "add_string", list: "add_array"}
WARNED = pytest.mark.filterwarnings("ignore:.*was unpacked into")
TEMPLATE = "{{ bos_token }}{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}[answer]"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "transformer-np"


def neighbours(w, heads):
    """llama.cpp's order of the rows of queries and keys: rows i and i + K/2 of each head side by side."""
    halves = np.split(w, heads)
    return np.concatenate([row for half in halves for row in zip(*np.split(half, 2), strict=True)]).reshape(w.shape)


def tensors_of(model, kind="llama"):
    """{name in GGUF: array}: what a folder of the model holds, under llama.cpp's names and with its order of rows."""
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        tensors = load_file(Path(folder) / "model.safetensors")
    names, c, found = gguf.get_tensor_name_map(gguf.MODEL_ARCH[kind.upper()], model.config.num_layers), model.config, {}
    for name, array in tensors.items():
        theirs = names.get_name(name, try_suffixes=(".weight", ".bias"))
        heads = {"attn_q": c.num_heads, "attn_k": c.num_kv_heads}.get(theirs.split(".")[-2])
        if kind == "llama" and heads:
            array = neighbours(array, heads)
        found[theirs] = array.T if kind == "gpt2" and ".h." in name and array.ndim == 2 else array
    return found


def write(path, kind, config, tensors, quantized=None, settings=(), **tokenizer):
    """A GGUF file with these tensors. quantized: of the matrices, a GGMLQuantizationType;  settings: further ones;
    tokenizer: other fields of it than TOKENIZER's. None leaves a field out."""
    writer = gguf.GGUFWriter(path, kind)
    fields = {f"{kind}.{theirs}": config.get(ours) for theirs, ours in SIZES.items()}
    fields[f"{kind}.attention.layer_norm_{'' if kind == 'gpt2' else 'rms_'}epsilon"] = 1e-5
    fields |= {f"tokenizer.ggml.{name}": value for name, value in {**TOKENIZER, **tokenizer}.items()}
    for name, value in {**fields, "tokenizer.chat_template": TEMPLATE, **dict(settings)}.items():
        if value is not None:
            getattr(writer, ADD[type(value)])(name, value)
    for name, array in tensors.items():
        array = np.ascontiguousarray(array, np.float32)
        if quantized is not None and array.ndim == 2:
            writer.add_tensor(name, as_quantized(array, quantized), raw_dtype=quantized)
        else:
            writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def as_quantized(array, kind):
    """The bytes of a matrix in this quantization; where gguf only undoes it, random bytes that are finite numbers."""
    try:
        return gguf.quants.quantize(array, kind)
    except NotImplementedError:
        block, size = gguf.GGML_QUANT_SIZES[kind]
        many = np.random.default_rng(array.shape).integers(0, 256, (4 * array.size // block + 40, size), np.uint8)
        with np.errstate(all="ignore"):
            finite = np.isfinite(gguf.quants.dequantize(many, kind)).all(axis=1)
        return many[finite][: array.size // block].reshape(len(array), -1)


def llama(rng, **config):
    model = Llama(LlamaConfig(**{**CONFIG, "num_kv_heads": 2, "eps": 1e-5, **config}))
    return randomised(model, rng)


def written(tmp_path, model, kind="llama", /, **more):
    config = {**asdict(model.config)}
    tensors = tensors_of(model, kind) | more.pop("extra", {})
    return write(tmp_path / "model.gguf", kind, config, tensors, **more)


IDS = np.array([[3, 70, 12, 9, 259]])


LINEAR = {"rope_type": "linear", "factor": 2.5}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 = {"rope_scaling": {**LLAMA3, "original_max_position_embeddings": 8192}, "rope_theta": 5e5, "d_head": 64}
DIVISORS = rotary_frequencies(64, 5e5) / rotary_frequencies(64, 5e5, LLAMA3["rope_scaling"])
FACTOR = {"llama.rope.scaling.factor": 2.5}


@WARNED
@pytest.mark.parametrize(
    "kind, config, settings",
    [
        ("llama", {}, {}),
        ("llama", {"tie_embeddings": True}, {}),
        ("llama", {"qkv_bias": True, "output_bias": True}, {"llama.rope.scaling.type": "none"}),
        ("llama", {"rope_scaling": LINEAR}, {"llama.rope.scaling.type": "linear", **FACTOR}),
        ("llama", {"rope_scaling": LINEAR}, FACTOR),
        ("llama", {"rope_scaling": LINEAR}, {"llama.rope.scale_linear": 2.5}),
        ("llama", LLAMA3, {"llama.rope.freq_base": 5e5, "llama.attention.key_length": 64}),
        ("qwen2", {"qkv_bias": True}, {}),
        ("qwen3", {"norm_heads": True, "tie_embeddings": True}, {}),
    ],
)
def test_a_file_holds_the_same_model(tmp_path, rng, kind, config, settings):
    model = llama(rng, **config)
    extra = {"rope_freqs.weight": DIVISORS} if config is LLAMA3 else {}
    found = load_any(written(tmp_path, model, kind, settings=settings, extra=extra))
    assert isinstance(found, Llama) and found.config.tie_embeddings == model.config.tie_embeddings
    np.testing.assert_array_equal(found(IDS), model.eval()(IDS))


@WARNED
def test_a_gpt2(tmp_path, rng):
    model = randomised(GPT(GPTConfig(**CONFIG, layer_norm_eps=1e-5, tie_embeddings=True)), rng)
    file = written(tmp_path, model, "gpt2")
    np.testing.assert_array_equal(load_any(file)(IDS), model.eval()(IDS))


@WARNED
@pytest.mark.parametrize(
    "name",
    "F16 BF16 Q8_0 Q4_0 Q5_1 Q2_K Q4_K Q6_K IQ4_NL TQ1_0 MXFP4".split(),  # blocks of 1, 32 and 256 numbers
)
def test_quantized_numbers(tmp_path, rng, name):
    kind = gguf.GGMLQuantizationType[name]
    sizes = {"d_model": 256, "d_ff": 256, "num_layers": 1} if gguf.GGML_QUANT_SIZES[kind][0] == 256 else {}
    model = llama(rng, tie_embeddings=True, **sizes)
    found = load_any(written(tmp_path, model, quantized=kind))
    for theirs, array in tensors_of(model).items():
        if theirs.endswith("ffn_up.weight"):
            number = theirs.split(".")[1]
            expected = gguf.quants.dequantize(as_quantized(np.ascontiguousarray(array), kind), kind)
            w = dict(found.named_parameters())[f"blocks.{number}.feed_forward.w1"].data
            np.testing.assert_array_equal(w, expected.T)
            assert np.abs(w - array.T).max() > 0


@WARNED
def test_the_tokenizer_and_what_ends_a_text(tmp_path, rng):
    ends = {f"tokenizer.ggml.{name}_token_id": i for name, i in (("eot", 7), ("eom", 1))}
    folder = PretrainedFolder(written(tmp_path, llama(rng), settings=ends))
    text = "the them, 1234 <s> não\n"
    ids = folder.read(text).ids
    assert folder.tokenizer.decode(ids).replace(" ", "") == text.replace(" ", "").replace("<s>", "")
    assert [WORDS[i] for i in ids][:2] == ["the", "Ġthe"] and 0 in ids
    assert folder.end_ids == (1, 7)
    assert folder.conversation("Who?") == "<s>[user]Who?[answer]"


@WARNED
@pytest.mark.parametrize(
    "pre, expected",
    [("gpt-2", "12 345"), ("smollm", "1 2 3 4 5"), ("llama-bpe", "<s> 123 45"), ("qwen2", "1 2 3 4 5")],
)
def test_how_a_text_is_cut(tmp_path, rng, pre, expected):
    """Digits are merged only within a cut. Llama 3 begins with <s> where its file does not say so."""
    tokens = [*WORDS, "12", "34", "123", "345", "45"]
    model = llama(rng, vocab_size=len(tokens))
    merges = [*MERGES, "1 2", "4 5", "3 45", "12 3", "3 4"]
    kinds = [3, 3] + [1] * (len(tokens) - 2)
    folder = PretrainedFolder(written(tmp_path, model, pre=pre, tokens=tokens, token_type=kinds, merges=merges))
    assert " ".join(tokens[i] for i in folder.read("12345").ids) == expected


@WARNED
def test_pieces_with_scores(tmp_path, rng):
    """The pair whose piece has the highest score is joined first, unknown letters become bytes, and <s> begins."""
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    letters = ["▁", "a", "b", "c", "ab", "bc", "▁a", "▁ab", "abc"]
    scores = [0.0] * len(pieces) + [-9.0, -9.0, -9.0, -9.0, -3.0, -1.0, -4.0, -5.0, -2.0]
    kinds = [2, 3, 3] + [6] * 256 + [1] * len(letters)
    tokens = [*pieces, *letters]
    more = {"model": "llama", "tokens": tokens, "scores": scores, "token_type": kinds, "bos_token_id": 1}
    folder = PretrainedFolder(written(tmp_path, llama(rng, vocab_size=len(tokens)), **more))
    assert [tokens[i] for i in folder.read("abc é").ids] == ["<s>", "▁", "abc", "▁", "<0xC3>", "<0xA9>"]
    assert folder.tokenizer.decode(folder.read("abc é").ids) == "abc é"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The folder of a package a_model, which is installed and may not be imported."""
    folder = tmp_path / "packages" / "a_model"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder.parent))
    return folder


@WARNED
def test_where_a_file_may_be(tmp_path, rng, package, monkeypatch, cache):
    model = llama(rng)
    file = written(package, model)
    logits = model.eval()(IDS)
    for place in (file, str(file), package, "a_model"):
        np.testing.assert_array_equal(load_any(place)(IDS), logits)
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(file.read_bytes())
    (tmp_path / "LINK.GGUF").hardlink_to(file)
    (tmp_path / "a folder.gguf").mkdir()
    (tmp_path / "a folder.gguf" / "model (1).gguf").hardlink_to(file)
    link, folder = tmp_path / "LINK.GGUF", tmp_path / "a folder.gguf"
    for place in (copy, link, folder, file.rename(package / "renamed.gguf"), package):
        np.testing.assert_array_equal(load_any(place)(IDS), logits)
    assert len(list(cache.iterdir())) == 1  # unpacked once
    with monkeypatch.context() as patched:
        patched.setattr("hashlib.file_digest", lambda *_: pytest.fail("it was read again"))
        load_any(copy), load_any("a_model")
    file = package / "renamed.gguf"
    written(package.parent, llama(rng)).replace(file)
    assert not np.array_equal(load_any("a_model")(IDS), logits) and len(list(cache.iterdir())) == 2
    (package / "other.gguf").write_bytes(b"")
    with pytest.raises(ValueError, match="has 2 GGUF files"):
        load_any(package)


@WARNED
def test_explore_the_model_of_an_installed_package(tmp_path, rng, package, capsys):
    model = llama(rng)
    written(package, model)
    out = tmp_path / "page.html"
    done(capsys, "explore", "--pretrained", "a_model", "the them", "-o", out)
    data = data_of(out)
    assert (data["kind"], data["parameters"], data["text"]) == ("Llama", model.num_parameters(), "the them")
    assert data["tokenizers"][0]["kind"] == "pretrained"


@WARNED
def test_commands_and_pictures_of_who_wrote_a_word(here, rng, capsys):
    written(here, llama(rng))
    asked = ["generate", "--pretrained", "model.gguf", "--max-new-tokens", "3"]
    code, out, err = call(capsys, *asked, "the")
    assert code == 0 and out.startswith("the") and err == ""
    with cli._plain_warnings():
        line = warnings.formatwarning("a.gguf was unpacked", UserWarning, "file", 3)
        assert line == "transformer-np: a.gguf was unpacked\n"
    code, out, err = call(capsys, *asked, "the", "--chat", "--temperature", "0")
    assert code == 0 and not out.startswith("the") and err == ""
    assert done(capsys, *asked, "<s>[user]the[answer]", "--temperature", "0") == "<s>[user]the[answer]" + out
    assert "--chat needs --pretrained" in fails(capsys, "generate", "--chat", "the")
    for words in (["contributions", "the the"], ["attribution", "the the", "--target", " the", "--other", "th"]):
        out = f"{words[0]}.svg"
        assert call(capsys, "plot", *words, "--pretrained", "model.gguf", "-o", out) == (0, f"{out}\n", "")
        assert (here / out).read_text().count("<path") > 20
    message = fails(capsys, "plot", "contributions", "the", "--pretrained", "model.gguf", "--target", "hat", "-o", out)
    assert "must be one token of the model, but it is h a t" in message


@pytest.mark.parametrize(
    "more, message",
    [
        ({"pre": "chatglm-bpe"}, "cuts texts as 'chatglm-bpe', which is not supported"),
        ({"model": "bert"}, "its tokenizer is 'bert', which is not supported"),
        ({"settings": {"llama.attention.sliding_window": 8}}, "sliding window, which is not supported"),
        ({"settings": {"llama.rope.scaling.type": "yarn"}}, r"are scaled \(yarn\), which is not supported"),
        ({"settings": {"llama.rope.dimension_count": 8}}, "only a part of each head, which is not supported"),
        ({"extra": {"rope_freqs.weight": np.arange(1, 9)}}, "in another way than Llama 3's, which is not supported"),
        ({"settings": {"split.count": 3}}, "it is one of 3 parts of a model: `llama-gguf-split --merge` makes one"),
        ({"settings": {"llama.attention.head_count": [4, 4]}}, "damaged: a value has the wrong type"),
        ({"settings": {"llama.attention.head_count": 0}}, "damaged: a value has the wrong type"),
        ({"bos_token_id": 999}, "damaged: a value has the wrong type"),
        ({"tokens": None}, "damaged: 'tokenizer.ggml.tokens' is missing"),
        ({"tokens": [*WORDS, "more"]}, r"gguf: model\.safetensors\.index\.json does not fit .* shape \(262, 6"),
        ({"merges": ["t h", "x yz"]}, "model.gguf: the merges of its tokenizer do not fit its tokens"),
        ({"settings": {"llama.block_count": 10**9}}, "missing most tensors of 1,000,000,000 layers"),
    ],
)
def test_what_is_refused_by_name(tmp_path, rng, cache, more, message):
    with pytest.raises(ValueError, match=message):
        load_any(written(tmp_path, llama(rng), **more))
    assert list(cache.iterdir()) == []


def test_other_models_and_damaged_files(tmp_path, rng, cache):
    model = llama(rng)
    config = asdict(model.config)
    with pytest.raises(ValueError, match="it holds a mamba, which is not supported; supported are llama"):
        load_any(write(tmp_path / "a.gguf", "mamba", config, tensors_of(model)))
    with pytest.raises(ValueError, match=r"its tensor blk\.0\.ssm_in\.weight is not supported"):
        load_any(write(tmp_path / "b.gguf", "llama", config, {"blk.0.ssm_in.weight": np.ones((2, 2))}))
    whole = written(tmp_path, model).read_bytes()
    nested = b"GGUF" + struct.pack("<IQQQcI", 3, 0, 1, 1, b"x", 9) + struct.pack("<IQ", 9, 1) * 3000
    damage = [whole[:size] for size in (0, 3, 30, 700, len(whole) // 2, len(whole) - 9)]
    for i, content in enumerate([*damage, nested]):
        damaged = tmp_path / f"{i}.gguf"
        damaged.write_bytes(content)
        with pytest.raises(ValueError, match="damaged"):
            load_any(damaged)
    place = whole.index(b"tokenizer.ggml.token_type") + len("tokenizer.ggml.token_type") + 4
    damaged.write_bytes(whole[:place] + struct.pack("<IQ", 0, 1 << 20) + bytes(8))  # bytes, so many as are not there
    with pytest.raises(ValueError, match=r"damaged or not a GGUF file \(ValueError: it ends too early\)"):
        load_any(damaged)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_any(tmp_path / "none.gguf")
    assert list(cache.iterdir()) == []
    cache.rmdir()
    cache.write_text("")
    with pytest.raises(OSError, match=r"cannot unpack .*model\.gguf into .* \(File exists\): set XDG_CACHE_HOME to a"):
        load_any(tmp_path / "model.gguf")


@WARNED
def test_a_template_that_refuses(tmp_path, rng):
    folder = PretrainedFolder(written(tmp_path, llama(rng)))
    path = folder.path / "chat_template.jinja"
    for template, message in (("{{ raise_exception('no system') }}", "no system"), ("{% if %}", "cannot be used")):
        path.write_text(template, encoding="utf-8")
        with pytest.raises(ValueError, match=message):
            folder.conversation("Who?")
    path.unlink()
    about = folder.path / "tokenizer_config.json"
    about.write_text(json.dumps({}), encoding="utf-8")
    with pytest.raises(ValueError, match="has no template"):
        PretrainedFolder(folder.path).conversation("Who?")
