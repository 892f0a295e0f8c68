"""A GGUF file, the format of llama.cpp, unpacked once into a folder in Hugging Face's layout.

The `gguf` library reads the file and undoes its quantization. Here its names, order of rows and tokenizer become those
of the folder. All code that reads a folder then reads the file too: it asks `located` for the folder of a path.
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import warnings
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from ... import functional as F
from ...support.files import write_text

SHARD = 1 << 26  # numbers in a file of the folder
FORMAT = 2  # of the folders in the cache: raised when the same file is unpacked into something else
PLACES = f"unpacked-from-{FORMAT}.txt"  # where this content was seen on the disk: device, inode, size, time
CONTROL, USER_DEFINED, BYTE = 3, 4, 6  # kinds of tokens in GGUF
_BLOCK = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
_LLAMA = {
    "token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
    **{f"blk.{{}}.{ours}": f"model.layers.{{}}.{theirs}" for ours, theirs in _BLOCK.items()},
}  # fmt: skip
_GPT2_BLOCK = {
    "attn_norm": "ln_1", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj", "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj",
}  # fmt: skip
_GPT2 = {
    "token_embd": "transformer.wte", "position_embd": "transformer.wpe", "output_norm": "transformer.ln_f",
    "output": "lm_head",
    **{f"blk.{{}}.{ours}": f"transformer.h.{{}}.{theirs}" for ours, theirs in _GPT2_BLOCK.items()},
}  # fmt: skip
NAMES = {"llama": _LLAMA, "qwen2": _LLAMA, "qwen3": _LLAMA, "gpt2": _GPT2}
_LETTERS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def _cut_by(pattern):
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, {**_BYTES, "use_regex": False}]}


CUTS = {  # {name in GGUF: how a text is cut before byte pairs are merged}
    "gpt-2": _BYTES,
    "smollm": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, _BYTES]},
    "llama-bpe": _cut_by(_LETTERS + "{1,3}" + _REST),
    "qwen2": _cut_by(_LETTERS + _REST),
    "deepseek-r1-qwen": _cut_by(_LETTERS + _REST),
}


def gguf_file(path):
    """The GGUF file that a path names: itself, the only one in its folder or in an installed package; or None."""
    path = folder = Path(path)
    if path.suffix.lower() == ".gguf" and not path.is_dir():
        return path
    if str(path).isidentifier() and not os.path.exists(path) and str(path) != "__main__":
        spec = importlib.util.find_spec(str(path))
        folder = Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else path
    if not os.path.isdir(folder) or (folder / "config.json").exists():
        return None
    found = sorted(folder.glob("*.gguf"))
    if len(found) > 1:
        raise ValueError(f"{folder} has {len(found)} GGUF files: name one of them, such as {found[0]}")
    return found[0] if found else None


def unpacked(file, read):
    """The folder with the content of a GGUF file, in the user's cache; made when it is first asked for.

    read: a function of the folder, which raises ValueError for what is not the folder of a model

    Raises FileNotFoundError; ModuleNotFoundError without the gguf library; ValueError for a damaged file, and for a
    model, a quantization or a tokenizer that is not supported, by its name.
    """
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "transformer-np"
    about = file.stat()
    place = f"{about.st_dev} {about.st_ino} {about.st_size} {about.st_mtime_ns}\n"
    for seen in cache.glob(f"*/{PLACES}"):  # a large file is not read each time
        if place in seen.read_text("utf-8"):
            return seen.parent
    with file.open("rb") as content:
        key = f"{hashlib.file_digest(content, 'sha256').hexdigest()[:12]}-{FORMAT}"
    folder = next(cache.glob(f"*-{key}"), cache / f"{file.stem}-{key}")  # a copy of the file has another name and place
    if not folder.is_dir():
        try:
            cache.mkdir(parents=True, exist_ok=True)
            new = Path(mkdtemp(prefix=f"{file.stem}-", dir=cache))
        except OSError as error:
            how = "set XDG_CACHE_HOME to a folder that you may write"
            raise OSError(f"cannot unpack {file} into {cache} ({error.strerror}): {how}") from None
        try:
            size = unpack(file, new)
            _check(file, new, read)
            new.rename(folder)
        except OSError:
            if not folder.is_dir():  # another process may have been faster
                raise
        finally:
            shutil.rmtree(new, ignore_errors=True)
        warnings.warn(f"{file} was unpacked into {folder} ({size >> 20} MiB), once", stacklevel=2)
    with suppress(OSError), (folder / PLACES).open("a", encoding="utf-8") as places:  # others' cache may be read only
        places.write(place)
    return folder


def _check(file, folder, read):
    """Raise a ValueError that names the file instead of its folder, if the folder cannot be read."""
    try:
        read(folder)
    except ValueError as error:
        raise ValueError(f"{file}: {str(error).replace(f'{folder}{os.sep}', '')}") from None


def unpack(file, folder):
    """Write the model in a GGUF file into a folder in Hugging Face's layout, in float32  ->  bytes of its weights"""
    try:
        from gguf import GGUFReader
    except ModuleNotFoundError:
        how = 'pip install "transformer-np[pretrained]"'
        raise ModuleNotFoundError(f"a .gguf file needs the gguf library: {how}") from None

    class Reader(GGUFReader):
        def _get(self, offset, dtype, count=1, *order, **by_name):
            if offset + np.dtype(dtype).itemsize * int(count) > len(self.data):  # else empty arrays without end
                raise ValueError("it ends too early")
            return super()._get(offset, dtype, count, *order, **by_name)

    try:
        reader = Reader(file)
        about = {name: field.contents() for name, field in reader.fields.items()}
    except (ValueError, LookupError, TypeError, OverflowError, MemoryError, RecursionError) as error:
        raise ValueError(f"{file} is damaged or not a GGUF file ({type(error).__name__}: {error})") from None
    try:
        settings = _settings(about, {tensor.name: tensor.data for tensor in reader.tensors})
        files = {
            "config.json": settings, "tokenizer.json": _tokenizer(about),
            "tokenizer_config.json": _tokenizer_config(about),
            "generation_config.json": {"eos_token_id": _end_ids(about)},
        }  # fmt: skip
        size = _write_weights(reader.tensors, settings, folder)
    except KeyError as error:
        raise ValueError(f"{file} is damaged: {error} is missing") from None
    except (NotImplementedError, ValueError) as error:
        raise ValueError(f"{file}: {error}") from None
    except (TypeError, AttributeError, IndexError, ArithmeticError) as error:
        raise ValueError(f"{file} is damaged: a value has the wrong type or size ({error})") from None
    for name, content in files.items():
        write_text(folder / name, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    return size


def _settings(about, tensors):
    """config.json"""
    kind = about["general.architecture"]
    if (parts := about.get("split.count", 1)) > 1:
        raise ValueError(f"it is one of {parts} parts of a model: `llama-gguf-split --merge` makes one file of them")
    if kind not in NAMES:
        raise ValueError(f"it holds a {kind}, which is not supported; supported are {', '.join(NAMES)}")
    ends = {name: about.get(f"tokenizer.ggml.{name}_token_id") for name in ("bos", "eos", "padding")}
    same = {"model_type": kind, "vocab_size": len(about["tokenizer.ggml.tokens"]), "bos_token_id": ends["bos"],
            "eos_token_id": ends["eos"], "pad_token_id": ends["padding"],
            "tie_word_embeddings": "output.weight" not in tensors}  # fmt: skip
    get = {name.removeprefix(f"{kind}."): value for name, value in about.items() if name.startswith(f"{kind}.")}
    layers, width, heads = get["block_count"], get["embedding_length"], get["attention.head_count"]
    if kind == "gpt2":
        return {**same, "n_positions": get["context_length"], "n_embd": width, "n_layer": layers, "n_head": heads,
                "n_inner": get["feed_forward_length"], "layer_norm_epsilon": get["attention.layer_norm_epsilon"],
                "activation_function": "gelu_new"}  # fmt: skip
    if get.get("attention.sliding_window"):
        raise ValueError("it has a sliding window, which is not supported in this format")
    d_head, theta = get.get("attention.key_length", width // heads), get.get("rope.freq_base", 10000.0)
    if get.get("rope.dimension_count", d_head) != d_head:
        raise ValueError("its rotary positions turn only a part of each head, which is not supported")
    return {
        **same, "max_position_embeddings": get["context_length"], "hidden_size": width, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": get.get("attention.head_count_kv", heads),
        "head_dim": d_head, "intermediate_size": get["feed_forward_length"], "hidden_act": "silu",
        "rms_norm_eps": get["attention.layer_norm_rms_epsilon"], "rope_theta": theta,
        "rope_scaling": _scaling(get, theta, tensors.get("rope_freqs.weight")),
        "attention_bias": "blk.0.attn_output.bias" in tensors,
    }  # fmt: skip


def _scaling(get, theta, divisors):
    """rope_scaling of config.json. divisors: of the frequencies, as files of Llama 3.1 and later have them, or None"""
    if divisors is not None:
        found = {"rope_type": "llama3", "factor": float(divisors.max()), "low_freq_factor": 1.0,
                 "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}  # fmt: skip
        plain, scaled = (F.rotary_frequencies(2 * len(divisors), theta, scaling) for scaling in (None, found))
        if not np.allclose(plain / divisors, scaled, rtol=1e-4, atol=0):
            raise ValueError("its rotary positions are scaled in another way than Llama 3's, which is not supported")
        return found
    kind = get.get("rope.scaling.type", "linear")  # llama.cpp's default
    factor = get.get("rope.scaling.factor", get.get("rope.scale_linear", 1.0))
    if kind == "none" or (kind == "linear" and factor in (0, 1)):
        return None
    if kind != "linear":
        raise ValueError(f"its rotary positions are scaled ({kind}), which is not supported in this format")
    return {"rope_type": "linear", "factor": factor}


def _end_ids(about):
    """The tokens that end a text: of the end of a text, of a turn, of a message."""
    found = (about.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom"))
    return list(dict.fromkeys(i for i in found if i is not None)) or None


# --- the weights -----------------------------------------------------------------------------------------------------


def _write_weights(tensors, settings, folder):
    """Write the tensors in float32, in shards, with Hugging Face's names; returns their bytes."""
    from gguf.quants import dequantize
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    names, places, shard, total = NAMES[settings["model_type"]], {}, {}, 0

    def flush():
        if shard:
            file = f"model-{len(set(places.values())):05}.safetensors"
            try:
                save_file(shard, folder / file)
            except SafetensorError as error:  # the disk is full
                raise OSError(f"cannot write {folder / file}: {error}") from None
            places.update(dict.fromkeys(shard, file))
            shard.clear()

    for tensor in tensors:
        if tensor.name == "rope_freqs.weight":  # in the settings
            continue
        number = next(iter(re.findall(r"^blk\.(\d+)\.", tensor.name)), "")
        stem, _, kind = re.sub(r"^blk\.\d+\.", "blk.{}.", tensor.name).rpartition(".")
        if stem not in names or kind not in ("weight", "bias"):
            raise ValueError(f"its tensor {tensor.name} is not supported")
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
        values = values.reshape(tuple(int(n) for n in reversed(tensor.shape)))
        if settings["model_type"] == "gpt2" and stem.startswith("blk") and values.ndim == 2:
            values = values.T
        if settings["model_type"] == "llama" and stem in ("blk.{}.attn_q", "blk.{}.attn_k"):
            heads = settings["num_attention_heads" if stem.endswith("q") else "num_key_value_heads"]
            values = in_halves(values, heads)
        shard[f"{names[stem].format(number)}.{kind}"] = np.ascontiguousarray(values)
        total += values.nbytes
        if sum(array.size for array in shard.values()) >= SHARD:
            flush()
    flush()
    index = {"metadata": {"total_size": total}, "weight_map": places}
    write_text(folder / "model.safetensors.index.json", json.dumps(index, indent=1) + "\n")
    return total


def in_halves(w, heads):
    """Rows of the queries or keys from llama.cpp's order to Hugging Face's: there the rotary turns neighbours, (2i,
    2i + 1), here halves, (i, i + K/2). w (H·K, D) or (H·K,)"""
    return w.reshape(heads, -1, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


# --- the tokenizer ---------------------------------------------------------------------------------------------------


def _tokenizer(about):
    """tokenizer.json"""
    tokens, kinds = about["tokenizer.ggml.tokens"], about["tokenizer.ggml.token_type"]
    model, cut = about["tokenizer.ggml.model"], about.get("tokenizer.ggml.pre", "gpt-2")
    vocab = {token: i for i, token in enumerate(tokens)}
    added = [
        {"id": i, "content": tokens[i], "special": kind == CONTROL, "single_word": False, "lstrip": False,
         "rstrip": False, "normalized": False}
        for i, kind in enumerate(kinds) if kind in (CONTROL, USER_DEFINED)
    ]  # fmt: skip
    bpe = {"type": "BPE", "vocab": vocab, "dropout": None, "fuse_unk": False, "ignore_merges": False,
           "continuing_subword_prefix": None, "end_of_word_suffix": None, "unk_token": None}  # fmt: skip
    found = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
             "post_processor": _beginning(about, model == "llama" or cut == "llama-bpe")}  # fmt: skip
    if model == "gpt2":
        if cut not in CUTS:
            raise ValueError(f"its tokenizer cuts texts as {cut!r}, which is not supported: {', '.join(CUTS)} are")
        merges = [merge.split(" ") for merge in about["tokenizer.ggml.merges"]]
        if not all(len(pair) == 2 and vocab.keys() >= {*pair, "".join(pair)} for pair in merges):
            raise ValueError("the merges of its tokenizer do not fit its tokens")
        bpe |= {"merges": merges, "byte_fallback": False, "ignore_merges": cut == "llama-bpe"}
        return {**found, "pre_tokenizer": CUTS[cut], "decoder": _BYTES, "model": bpe}
    if model == "llama":
        unknown = tokens[about.get("tokenizer.ggml.unknown_token_id", 0)]
        merges = _merges(vocab, about["tokenizer.ggml.scores"], kinds)
        bpe |= {"merges": merges, "byte_fallback": True, "fuse_unk": True, "unk_token": unknown}
        blank = about.get("tokenizer.ggml.add_space_prefix", True)
        replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
        strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if blank else []
        back = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
        prepend = [{"type": "Prepend", "prepend": "▁"}] if blank else []
        decoders = [back, {"type": "ByteFallback"}, {"type": "Fuse"}, *strip]
        found["normalizer"] = {"type": "Sequence", "normalizers": [*prepend, replace]}
        return {**found, "pre_tokenizer": None, "decoder": {"type": "Sequence", "decoders": decoders}, "model": bpe}
    raise ValueError(f"its tokenizer is {model!r}, which is not supported; supported are gpt2 and llama")


def _merges(vocab, scores, kinds):
    """The merges of a SentencePiece vocabulary: every way to join two of its pieces, the highest score first."""
    pieces = {token: i for token, i in vocab.items() if kinds[i] not in (CONTROL, USER_DEFINED, BYTE)}
    found = []
    for piece, i in pieces.items():
        halves = ((piece[:n], piece[n:]) for n in range(1, len(piece)))
        inner = [(a, b) for a, b in halves if a in pieces and b in pieces]
        found += [(-scores[i], i, vocab[a], vocab[b], a, b) for a, b in inner]
    return [[a, b] for *_, a, b in sorted(found)]


def _beginning(about, default):
    """The template that puts the start token before a text, if the file asks for it. default: llama.cpp's without it"""
    bos = about.get("tokenizer.ggml.bos_token_id")
    if bos is None or not about.get("tokenizer.ggml.add_bos_token", default):
        return None
    token = about["tokenizer.ggml.tokens"][bos]
    special = {"SpecialToken": {"id": token, "type_id": 0}}
    first, second = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}
    return {
        "type": "TemplateProcessing", "single": [special, first], "pair": [special, first, second],
        "special_tokens": {token: {"id": token, "ids": [bos], "tokens": [token]}},
    }  # fmt: skip


def _tokenizer_config(about):
    """tokenizer_config.json: the special tokens and the template of a conversation."""
    tokens, found = about["tokenizer.ggml.tokens"], {"tokenizer_class": "PreTrainedTokenizerFast"}
    for ours, theirs in (("bos", "bos"), ("eos", "eos"), ("unknown", "unk"), ("padding", "pad")):
        if (i := about.get(f"tokenizer.ggml.{ours}_token_id")) is not None:
            found[f"{theirs}_token"] = tokens[i]
    if template := about.get("tokenizer.chat_template"):
        found["chat_template"] = template
    return found
