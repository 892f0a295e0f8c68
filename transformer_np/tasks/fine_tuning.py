"""Fine-tuning: a training run that starts from a pretrained folder, and may leave most of its weights as they are.

A checkpoint holds the parameters that learn. With frozen layers or LoRA these are few; the others stay in the
pretrained folder, which the checkpoint names with a checksum.
"""

from copy import copy
from dataclasses import replace
from functools import partial
from zlib import crc32

import numpy as np

from .. import models
from ..data import Tokenizer
from ..layers import add_lora, merge_lora
from ..layers.initial import blank, normal
from ..models.decoder_only import DecoderOnly
from ..models.layouts.folder import located
from ..pretrained import PretrainedFolder, PretrainedTokenizer, load_any
from ..training import load_checkpoint, load_model
from ..training.checkpoint import load_model_tensors
from .options import option

HEAD_STD = 0.02  # of a new head (Devlin et al. 2019, the published code)


def pretrained(of):
    """The option with the folder to start from."""
    return option(None, f"folder of a pretrained {of} to start from, in Hugging Face's layout", "DIR")


def freeze():
    """The option with the number of frozen blocks."""
    text = "with --pretrained: the embeddings and the first N blocks stay as they are (default: all learn)"
    return option(None, text, least=0)


def lora():
    """The option with the rank of LoRA."""
    text = "with --pretrained: all weights stay, and small matrices of this rank beside those of attention learn"
    return option(None, text, "RANK")


def check_options(options):
    """Raise ValueError for options that need a pretrained folder, if there is none."""
    nothing = "a model that starts from scratch has nothing to keep"
    for name, why in {"freeze": nothing, "lora": nothing, "pooling": "other models read [CLS]"}.items():
        if getattr(options, name, None) is not None and options.pretrained is None:
            raise ValueError(f"{name} needs pretrained: {why}")
    if options.pretrained is not None and options.optimizer == "muon":
        why = "Muon's steps would take the weights far away at once"
        raise ValueError(f"optimizer must be adamw with pretrained: {why}")


def start(options, kind, **changes):
    """The model of options.pretrained, of the class `kind`, with these fields of its configuration changed; prepared
    for training as the options say  ->  the model

    Parameters that the folder lacks, such as a classifier, are drawn. Raises ValueError for a model of another class.
    """
    model = _read(options.pretrained, kind, **changes)
    first = options.freeze or 0
    if options.lora is not None:
        new = [p for name, p in model.named_parameters() if _is_new(name)]
        add_lora(model, options.lora, np.random.default_rng(options.seed), first)
        for parameter in new:
            parameter.unfreeze()
    if options.lora is not None or options.freeze is not None:
        model.freeze_below(first)
    return model


def _read(folder, kind, **changes):
    """The pretrained model in train mode. Its parameters that a changed configuration keeps are those of the folder."""
    model = load_any(folder)
    if not isinstance(model, kind):
        needed = {models.Bert: "a BERT", DecoderOnly: "a GPT or Llama"}[kind]
        raise ValueError(f"{folder} holds a {type(model).__name__}; this task needs {needed}")
    if not changes:
        return model.train()
    config = replace(model.config, **changes)
    with blank():
        changed = type(model)(config)
    known = {name for name, _ in changed.named_parameters() if not _is_new(name)}
    changed.load_state_dict({n: p.data for n, p in model.named_parameters() if n in known}, strict=False)
    rng = np.random.default_rng(config.seed)
    for name, parameter in changed.named_parameters():
        if _is_new(name) and parameter.data.ndim > 1:
            parameter.data = normal(rng, parameter.shape, HEAD_STD, parameter.dtype)
    return changed.train()


def _is_new(name):
    """Whether a parameter belongs to the new head."""
    return name.startswith("classifier.")


def rates(model, options):
    """The `rates` of AdamW: options.old_rate for pretrained parameters, 1 for a new head and for LoRA."""
    new = {id(p) for name, p in model.named_parameters() if _is_new(name) or ".lora_" in name}
    return lambda parameter: 1.0 if id(parameter) in new else options.old_rate


def header(model, options):
    """JSON data for the checkpoint, from which `load` finds the parameters that stay as they are; {} if all learn."""
    if options.lora is None and options.freeze is None:
        return {}
    folder = str(located(options.pretrained).resolve())
    return {"base": {"folder": folder, "lora": options.lora, "sum": _sum_of_frozen(model)}}


def facts(options):
    """The entries of a run's description about its pretrained folder: what is needed to use the model, and to write it
    back; {} without a folder."""
    return {} if options.pretrained is None else {"pretrained": PretrainedFolder(options.pretrained).kept()}


def kept(description):
    """What `facts` wrote: {settings, generation, texts}, each a dict, {} in older runs. Raises ValueError."""
    found = description.get("pretrained") or {}
    parts = [found.get(name, {}) for name in ("settings", "generation", "texts")] if isinstance(found, dict) else [None]
    if not all(isinstance(part, dict) for part in parts):
        raise ValueError("what it keeps of its pretrained folder is damaged")
    return parts


def note(model, options):
    """Where the parameters start, and how many of them learn, for a line to the user; "" without a folder."""
    if options.pretrained is None:
        return ""
    learned = sum(parameter.data.size for parameter in model.learned().values())
    some = f"; {learned:,} of them learn" if learned < model.num_parameters() else ""
    return f", which start from {options.pretrained}{some}"


def without_special_tokens(tokenizer):
    """A tokenizer for a text that is cut into blocks, in which special tokens such as the first one have no place."""
    if not isinstance(tokenizer, PretrainedTokenizer):
        return tokenizer
    plain = copy(tokenizer)
    plain.encode = partial(tokenizer.encode, special=False)
    return plain


def _sum_of_frozen(model):
    """The checksum of the frozen parameters."""
    total = 0
    for _, parameter in model.named_parameters():
        if parameter.frozen:
            total = crc32(np.ascontiguousarray(parameter.data).reshape(-1).view(np.uint8), total)
    return total


def load(path):
    """The model of a checkpoint with all its parameters, LoRA merged, in eval mode, and the checkpoint's header.

    Raises FileNotFoundError, and ValueError for a checkpoint that is damaged or whose pretrained folder has changed.
    """
    tensors, found = load_checkpoint(path, "model.")
    base = found.get("base")
    if base is None:
        return load_model(path)
    try:
        cls, learned = getattr(models, found["model"]), {name.removeprefix("model.") for name in tensors}
        config = cls.config_class(**found["config"])
        own = dict(load_any(base["folder"]).named_parameters())
        config.check_fits(sum(p.data.size for p in own.values()) + sum(a.size for a in tensors.values()), path)
        with blank():
            model = cls(config)
    except FileNotFoundError as error:
        moved = "if it was moved, move it back or put a link there"
        raise FileNotFoundError(
            f"{path} needs the pretrained folder it was fine-tuned from: {error}; {moved}"
        ) from None
    model.load_state_dict({n: p.data for n, p in own.items() if n not in learned}, strict=False)
    if base["lora"] is not None:
        add_lora(model, base["lora"], 0, min(int(name.split(".")[1]) for name in learned if ".lora_" in name))
    for name, parameter in model.named_parameters():
        parameter.unfreeze() if name in learned else parameter.freeze()
    if _sum_of_frozen(model) != base["sum"]:
        raise ValueError(f"{base['folder']} is not the model that {path} was fine-tuned from: its weights differ")
    load_model_tensors(model, tensors, path)
    return merge_lora(model).eval(), found


def read_tokenizer(data):
    """The tokenizer that a run describes: a pretrained one or our own."""
    if isinstance(data, dict) and data.get("kind") == PretrainedTokenizer.kind:
        return PretrainedTokenizer(text=data.get("json"), segments=data.get("segments", True))
    return Tokenizer.from_dict(data)
