"""The modules behind a sentence model, from token vectors to the vector of a text, in the layout of
sentence-transformers: modules.json lists them, and each has a folder, such as 1_Pooling."""

from functools import partial
from pathlib import Path

import numpy as np

from ..layers.activations import ACTIVATIONS
from ..models.layouts.layout import refuse
from ..models.layouts.weights import check_kind, find_tensors
from ..support.checks import short
from ..support.files import read_json, read_json_object

PROMPTS = "config_sentence_transformers.json"


def read_modules(path):
    """The modules of a folder  ->  the name of the folder with the model in it, the functions behind the model, and the
    prompt before each text; "", None and "" without modules.json

    Raises ValueError for other modules than those known here, for one that is damaged, and for an order without sense.
    """
    listed = path / "modules.json"
    if not listed.is_file():
        return "", None, ""
    try:
        steps = [(str(entry["type"]).rpartition(".")[2], str(entry["path"])) for entry in read_json(listed)]
    except (TypeError, KeyError):
        raise ValueError(f"{listed} is damaged: expected a list of modules with type and path") from None
    for kind, name in steps:
        if kind not in ("Transformer", *MODULES):
            known = ", ".join(("Transformer", *MODULES))
            raise ValueError(f"{listed} has a module {kind}, which is not supported; supported are {known}")
        if name not in ("", ".", Path(name).name):
            raise ValueError(f"{listed} names {name!r}, expected the name of a folder beside it")
    kinds = [kind for kind, _ in steps]
    if kinds[:2] != ["Transformer", "Pooling"] or kinds.count("Pooling") + kinds.count("Transformer") != 2:
        raise ValueError(f"{listed} has {', '.join(kinds)}; expected Transformer, Pooling and then others")
    prompts = read_json_object(path / PROMPTS, optional=True)
    texts, named = prompts.get("prompts") or {}, prompts.get("default_prompt_name")
    try:
        prompt = "" if named is None else "" + texts[named]
    except (TypeError, KeyError, IndexError):
        raise ValueError(f"{path / PROMPTS}: prompts has no text named {short(named)}") from None
    return steps[0][1], [MODULES[kind](path / name, bool(prompt)) for kind, name in steps[1:]], prompt


MODES = {  # of files before sentence-transformers 6
    "pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max", "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}  # fmt: skip


def pool(hidden, padding, modes=("mean",)):
    """The vector of a sentence from those of its tokens: hidden (B, S, D), padding (B, S)  ->  (B, D), or (B, n D) for
    n modes, in this order.

        cls          h₁                         mean                   Σₛ hₛ / S
        max          maxₛ hₛ, per feature       mean_sqrt_len_tokens   Σₛ hₛ / √S
        lasttoken    h_S                        weightedmean           Σₛ s hₛ / Σₛ s  (Muennighoff 2022)
    """
    real = (~padding)[..., None].astype(hidden.dtype)  # (B, S, 1)
    lengths = real.sum(axis=1)  # (B, 1)
    places = np.arange(1, hidden.shape[1] + 1, dtype=hidden.dtype)[:, None] * real  # (B, S, 1)
    vectors = {
        "cls": lambda: hidden[:, 0],
        "max": lambda: np.where(padding[..., None], -np.inf, hidden).max(axis=1),
        "mean": lambda: (hidden * (real / lengths[:, None])).sum(axis=1),
        "mean_sqrt_len_tokens": lambda: (hidden * real).sum(axis=1) / np.sqrt(lengths),
        "weightedmean": lambda: (hidden * (places / places.sum(axis=1, keepdims=True))).sum(axis=1),
        "lasttoken": lambda: hidden[np.arange(len(hidden)), lengths[:, 0].astype(int) - 1],
    }
    return np.concatenate([vectors[mode]() for mode in modes], axis=-1).astype(hidden.dtype, copy=False)


def _pooling(folder, prompted):
    path = folder / "config.json"
    settings = _only(path, **({"include_prompt": True} if prompted else {}))
    modes = settings.get("pooling_mode")
    modes = [mode for key, mode in MODES.items() if settings.get(key)] or "mean" if modes is None else modes
    modes = [modes] if isinstance(modes, str) else modes
    unknown = [mode for mode in modes if mode not in MODES.values()] if isinstance(modes, list) else [modes]
    if unknown or not modes:
        raise ValueError(f"{path}: pooling_mode is {modes!r}; supported are {', '.join(MODES.values())}")
    return partial(pool, modes=modes)


def normalize(vectors):
    """v / ‖v‖ of each row; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-12)


def _normalize(folder, prompted):
    _only(folder / "config.json", **NAMES)
    return normalize


def _dense(folder, prompted):
    """A linear map and an activation, x (B, D)  ->  (B, D')"""
    path = folder / "config.json"
    settings = _only(path, **NAMES, use_residual=False)
    name = str(settings.get("activation_function") or "torch.nn.Identity")
    if name.rpartition(".")[2] not in OF_TORCH:
        raise ValueError(f"{path}: activation_function is {name}; supported are {', '.join(OF_TORCH)} of torch")
    activation = OF_TORCH[name.rpartition(".")[2]]
    file, tensors = find_tensors(folder)
    shapes = {"linear.weight": (settings.get("out_features"), settings.get("in_features"))}
    shapes |= {"linear.bias": shapes["linear.weight"][:1]} if settings.get("bias", True) else {}
    if {name: tensor.shape for name, tensor in tensors.items()} != shapes:
        expected = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"{file} does not fit its config.json: expected {expected}")
    read = {name: check_kind(name, tensor).read() for name, tensor in tensors.items()}
    w, b = read["linear.weight"].T, read.get("linear.bias", 0)  # (D, D'), (D',)
    return lambda x: activation(x @ w + b)


def _only(path, **supported):
    """The settings in a file, {} without it; ValueError for one with another value than the supported one."""
    settings = read_json_object(path, optional=True)
    refuse(settings, supported, path)
    return settings


NAMES = {"module_input_name": "sentence_embedding", "module_output_name": "sentence_embedding"}
OF_TORCH = {"Identity": lambda x: x, "Tanh": np.tanh}  # the names of the classes
OF_TORCH |= {name: ACTIVATIONS[ours].forward for name, ours in (("ReLU", "relu"), ("GELU", "gelu"), ("SiLU", "silu"))}
MODULES = {"Pooling": _pooling, "Dense": _dense, "Normalize": _normalize}
MODULES["Dropout"] = lambda folder, prompted: lambda vectors: vectors  # it is for training
