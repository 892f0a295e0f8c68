"""Read and write a folder of a pretrained model: config.json and the weights (see `weights`)."""

import json
import math
import shutil
import warnings
from pathlib import Path

import numpy as np

from ...layers.initial import blank, check_as_made
from ...support.checks import floating_dtype, listed, refusing
from ...support.files import read_json_object, write_atomically, write_text
from .gguf import gguf_file, unpacked
from .layout import given
from .weights import PIECE, WEIGHTS, check_kind, find_tensors

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
KEPT_SETTINGS = (  # which our configurations lack
    "bos_token_id", "eos_token_id", "pad_token_id", "id2label", "label2id", "problem_type", "sentence_transformers",
    "task_specific_params",
)  # fmt: skip
KEPT_TEXTS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja")
OLDER_TOKENIZERS = "vocab.txt vocab.json merges.txt tokenizer.model spiece.model sentencepiece.bpe.model".split()
TOKENIZER_FILES = (TOKENIZER, *KEPT_TEXTS, *OLDER_TOKENIZERS)
USE_FILES = (  # how the model is used: for generation, for sentence vectors
    "generation_config.json", "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json",
)  # fmt: skip
MODULES = "[0-9]_*"  # folders of the modules behind a sentence model

MODELS = {}  # {model_type: the class that reads it}, filled by `register`


def register(cls):
    """Make a model class known to load_any under the model types of its layouts, unless a type has a class already."""
    for layout in cls.layouts:
        for model_type in layout.MODEL_TYPES:
            MODELS.setdefault(model_type, cls)


def located(path):
    """The folder of a pretrained model: the path itself, or the folder that a GGUF file was unpacked into.

    path: a folder in Hugging Face's layout, a .gguf file, a folder that has only that, or the name of an installed
        package with one. The package is not imported.
    """
    file = gguf_file(path)
    return Path(path) if file is None else unpacked(file, load_any)


def load_any(folder, dtype=None):
    """The model in a folder, of the class that its model_type belongs to. Errors as in load_pretrained."""
    folder = located(folder)
    return load_pretrained(MODELS[model_type(folder, read_settings(folder))], folder, dtype)


def load_pretrained(cls, folder, dtype=None):
    """The model in a folder, in eval mode.

    cls: GPT for the model_type gpt2, Llama for llama, mistral and qwen2, Bert for bert, T5 for t5
    dtype: of the model; None means the file's, or float32 for a file in half precision (float16 or bfloat16)

    The weights are in model.safetensors or in the shards of model.safetensors.index.json. They are read piece by piece
    into the parameters, so that little more memory is used than the model needs. Names may have the prefix
    ("transformer.", "model." or "bert.") or lack it. Buffers, which are not learned, are ignored. Weights of a task for
    which the model has no head are ignored with a warning.

    Raises FileNotFoundError or NotADirectoryError if the folder, its config.json or its model.safetensors is missing;
    ValueError for another model_type, an unsupported setting, missing or unexpected tensors, wrong shapes or dtypes, a
    damaged file, or weights in a pickle, which is never read.
    """
    if dtype is not None:
        dtype = floating_dtype("dtype", dtype)
    folder = located(folder)
    settings = read_settings(folder)
    kind = model_type(folder, settings)
    layout = next((layout for layout in getattr(cls, "layouts", ()) if kind in layout.MODEL_TYPES), None)
    if layout is None:
        how = f"read it with {MODELS[kind].__name__}.from_pretrained"
        raise ValueError(f"{folder} holds a model of type {kind!r}, not a {cls.__name__}: {how}")
    weights = _Weights(folder, layout, settings)
    with refusing(folder / CONFIG, (TypeError, ValueError, OverflowError, AttributeError)):
        config = cls.config_class(**layout.read_config(settings, weights), dtype=dtype or weights.dtype)
    _check_sizes(weights, config)
    wanted = layout.body(config) | layout.heads(config)
    _check_names(weights, wanted, layout, config)
    with blank():
        model = cls(config)
    parameters = dict(model.named_parameters())
    _check_shapes(weights, wanted, parameters)
    for name, stored in wanted.items():
        filled = [parameters[ours].data for ours in stored.parameters]
        _fill(filled, weights.tensors[name], stored)
        if not all(np.isfinite(piece).all() for array in filled for piece in _pieces(array)):
            where = f"{weights.tensors[name].path}: {weights.in_file[name]}"
            raise ValueError(f"{where} holds NaN or infinity: download it again")
    model.pretrained_folder = folder
    return model.eval()


def save_pretrained(model, folder, tokenizer=None):
    """Write a GPT, Llama, Bert or T5 into a folder that Hugging Face loads: config.json, weights, tokenizer.json.

    tokenizer: a tokenizer.json to copy, or the folder of one; None copies the tokenizer of the folder that the model
        was read from, if it has one

    Of a model that was read from a folder, the other files about its use are copied too: end tokens and labels,
    generation_config.json, and the pooling of a sentence model.

    The files are written atomically, the weights first. A GPT without biases is written with biases of 0, because the
    layout requires them. A model that is read back has the same parameters, bit for bit.

    Raises TypeError for another model, ValueError for a model that the layout cannot represent or that has LoRA,
    OSError if the folder cannot be written.
    """
    layouts = getattr(model, "layouts", ())
    if not layouts:
        kinds = ", ".join(sorted({cls.__name__ for cls in MODELS.values()}))
        raise TypeError(f"model must be one of {kinds}, got {type(model).__name__}")
    check_as_made(model)
    layout = layouts[0]
    origin = getattr(model, "pretrained_folder", None)
    model = layout.writable(model) if hasattr(layout, "writable") else model
    config = model.config
    settings = {"model_type": layout.MODEL_TYPES[0], "dtype": config.dtype, **layout.write_config(config)}
    if origin is not None and (origin / CONFIG).is_file():
        settings |= kept_settings(read_settings(origin))
    parameters = dict(model.named_parameters())
    prefix = layout.prefix(config) if hasattr(layout, "prefix") else layout.PREFIX
    names = {prefix + name: stored for name, stored in layout.body(config).items()}
    names |= layout.heads(config)
    tensors = {name: _joined(parameters, stored) for name, stored in names.items()}

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    from safetensors.numpy import save  # here, because `import transformer_np` loads NumPy alone

    write_atomically(folder / WEIGHTS, lambda path: path.write_bytes(save(tensors, {"format": "pt"})))
    text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
    write_text(folder / CONFIG, text)
    files = {} if origin is None else _files_in(origin, *TOKENIZER_FILES, *USE_FILES, *_modules(origin))
    if tokenizer is not None:
        source = Path(tokenizer)
        own = {TOKENIZER: source} if source.is_file() else _files_in(source, *TOKENIZER_FILES)
        if TOKENIZER not in own:
            raise FileNotFoundError(f"there is no {TOKENIZER} in {source}")
        files = {name: path for name, path in files.items() if name not in TOKENIZER_FILES} | own
    for name, path in files.items():
        if path.resolve() != (folder / name).resolve():
            (folder / name).parent.mkdir(exist_ok=True)
            write_atomically(folder / name, lambda new, path=path: shutil.copyfile(path, new))


def kept_settings(settings):
    """The part of config.json that is not about the sizes of the model, such as its end tokens and labels."""
    return {key: settings[key] for key in KEPT_SETTINGS if key in settings}


def _files_in(folder, *names):
    return {name: folder / name for name in names if (folder / name).is_file()}


def _modules(folder):
    """The files of the modules behind a sentence model, such as 1_Pooling/config.json."""
    return [str(path.relative_to(folder)) for path in folder.glob(f"{MODULES}/*")]


def _fill(arrays, tensor, stored):
    """Read a tensor of the file into the arrays that it holds."""
    if len(arrays) == 1:  # without a copy in between
        tensor.read(arrays[0].T if stored.transposed else arrays[0])
        return
    values = tensor.read()
    for array, part in zip(arrays, np.split(values.T if stored.transposed else values, len(arrays), -1), strict=True):
        array[...] = part


def _pieces(array):
    """Its numbers in views of at most PIECE: np.isfinite of a whole array takes a quarter of its memory."""
    return np.split(array.reshape(-1), range(PIECE, array.size, PIECE))


def _joined(parameters, stored):
    """The tensor of the file that holds these parameters."""
    values = np.concatenate([parameters[name].data for name in stored.parameters], axis=-1)
    return np.ascontiguousarray(values.T if stored.transposed else values)


# --- reading, with all its errors ------------------------------------------------------------------------------------


def read_settings(folder):
    """The settings in config.json."""
    if not folder.exists():
        raise FileNotFoundError(f"there is no folder {folder}; models are not downloaded, so download it first")
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file, expected the folder of a model or a .gguf file")
    if not (folder / CONFIG).is_file():
        missing = f"{folder} is not the folder of a model: it has no {CONFIG}"
        if (folder / "run.json").is_file():
            makes = f"`transformer-np merge --pretrained --model {folder} --out DIR` makes one"
            missing += f"; it has a training run, of which {makes}"
        raise FileNotFoundError(missing)
    return read_json_object(folder / CONFIG)


def model_type(folder, settings):
    """The model type in config.json; ValueError if this package has no such model."""
    found = settings.get("model_type")
    if not isinstance(found, str) or found not in MODELS:
        known = ", ".join(sorted(MODELS))
        raise ValueError(f"{folder / CONFIG}: model_type is {found!r}, which is not supported; supported are {known}")
    return found


class _Weights:
    """The tensors of a folder except the buffers, by their standard names, which have no prefix.

    path: the file that lists them;  in_file: {standard name: name in the file};  tensors: {standard name: Tensor}
    """

    def __init__(self, folder, layout, settings):
        self.path, tensors = find_tensors(folder)
        self.in_file, self.tensors = {}, {}
        for name, tensor in tensors.items():
            standard = name.removeprefix(layout.PREFIX)
            standard = layout.standard_name(standard) if hasattr(layout, "standard_name") else standard
            if layout.BUFFERS.fullmatch(standard):
                continue
            if standard in self.in_file:
                raise ValueError(f"{self.path} has both {self.in_file[standard]} and {name}, two names of one tensor")
            self.in_file[standard], self.tensors[standard] = name, check_kind(name, tensor)
        tied = given(settings, "tie_word_embeddings", layout.TIED)
        for copy, standard in layout.COPIES.items():  # tied weights may be stored under either name
            if (tied or copy in layout.ALWAYS) and copy in self and standard not in self:
                self.in_file[standard], self.tensors[standard] = self.in_file.pop(copy), self.tensors.pop(copy)
        self.dtype = "float64" if any(tensor.kind == "F64" for tensor in self.tensors.values()) else "float32"

    def __contains__(self, name):
        return name in self.tensors

    def shape(self, name):
        return self.tensors[name].shape

    def equal(self, one, other):
        """Whether two tensors are equal; True if the file lacks the second."""
        return other not in self or np.array_equal(self.tensors[one].read(), self.tensors[other].read())


TENSORS_OF_A_BLOCK = 8  # at least


def _check_sizes(weights, config):
    """Raise ValueError if the configuration describes a larger model than the file holds, before names are listed and
    arrays are made."""
    if config.blocks * TENSORS_OF_A_BLOCK > len(weights.tensors):
        missing = f"most tensors of {config.blocks:,} layers, because it has only {len(weights.tensors):,}"
        raise ValueError(f"{weights.path} does not fit its {CONFIG}: missing {missing}")
    stored = sum(math.prod(tensor.shape) for tensor in weights.tensors.values())
    config.check_fits(stored, f"{weights.path} does not fit its {CONFIG}")


def _check_names(weights, wanted, layout, config):
    """Raise ValueError for missing and unknown names; warn about weights of a task for which we have no head."""
    outside = layout.heads(config)
    prefixed = any(name.startswith(layout.PREFIX) for name in weights.in_file.values())
    prefixes = {True: layout.PREFIX, False: ""}
    missing = [prefixes[prefixed and name not in outside] + name for name in wanted if name not in weights]
    duplicates = layout.COPIES if config.tie_embeddings else layout.ALWAYS
    duplicates = layout.duplicates(config) if hasattr(layout, "duplicates") else duplicates
    unexpected, ignored = [], {}  # ignored: {task: names}
    for standard, name in sorted(weights.in_file.items()):
        if standard not in wanted and standard not in duplicates:
            head = next((head for head in layout.HEADS if standard.startswith(head)), None)
            unexpected.append(name) if head is None else ignored.setdefault(layout.HEADS[head], []).append(name)
    wrong = [f"{what} {listed(names)}" for what, names in (("missing", missing), ("unexpected", unexpected)) if names]
    if wrong:
        raise ValueError(f"{weights.path} does not fit its {CONFIG}: {'; '.join(wrong)}")
    for task, names in ignored.items():
        instead = "" if "classes" not in task else "; `train classify --pretrained` puts a new classifier on a BERT"
        ignored_names = f"{weights.path}: ignored {listed(names)}"
        warnings.warn(f"{ignored_names}: the model here has no head for {task}{instead}", stacklevel=4)


def _check_shapes(weights, wanted, parameters):
    """Raise one ValueError that names every tensor of a wrong shape."""
    wrong = []
    for name, stored in wanted.items():
        *rest, last = parameters[stored.parameters[0]].shape
        expected = (*rest, last * len(stored.parameters))
        expected = expected[::-1] if stored.transposed else expected
        if weights.shape(name) != expected:
            wrong.append(f"{weights.in_file[name]} must have shape {expected}, got {weights.shape(name)}")
    if wrong:
        raise ValueError(f"{weights.path} does not fit its {CONFIG}: " + listed(wrong, separator="; "))
