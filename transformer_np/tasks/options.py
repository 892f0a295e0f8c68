"""The options of a training run: a dataclass per task, whose fields say how they are checked and shown as flags."""

import os
from dataclasses import field, fields
from types import NoneType
from typing import get_args

from ..data.bpe import FIRST_MERGE
from ..support.checks import check_choice, check_typed
from ..training import Muon, cosine_schedule, in_blocks

# for the widths 64 to 256: an update of a matrix has the same size in every direction at any width
MUON_LR, MUON_WARMUP = 0.03, 50
OF_MUON = {"lr": MUON_LR, "warmup": MUON_WARMUP}


def option(default, text, metavar=None, choices=None, least=1, interval="(0, ∞)", adamw=None):
    """A field of a task's Options: its default, help text and metavar, and the values that it accepts.

    choices: of a string; least: the smallest value of a whole number; interval: of a float, as in `check_number`
    adamw: what stands for a default of None if the optimizer is not Muon
    """
    accepted = {"choices": choices, "least": least, "interval": interval}
    return field(default=default, metadata={"text": text, "metavar": metavar, "adamw": adamw, **accepted})


def text():
    """The option with the file of a text to learn from."""
    return option(None, "UTF-8 training text (default: Python's built-in help on the language)", "FILE")


def share(default, text):
    """An option in [0, 1)."""
    return option(default, text, interval="[0, 1)")


def vocab_size(default, text):
    """The option with the size of a vocabulary of byte pairs, which has every byte."""
    return option(default, text, least=FIRST_MERGE)


def warmup(default=100, least=0, most="at most half of all"):
    """The option with the steps to the highest rate; default: that of AdamW; most: what limits it."""
    text = f"steps to the highest learning rate, {most} (default: {default}; with --optimizer muon"
    return option(None, f"{text} {MUON_WARMUP})", least=least, adamw=default)


def weight_decay(default):
    """The option with the weight decay of AdamW."""
    return option(default, "weight decay of the matrices, per step and learning rate", interval="[0, ∞)")


def optimizer(default, shown=None):
    """The option with the optimizer of `optimizer_of`; shown: what stands for a default of None"""
    text = "adamw, or muon: orthogonal updates of the blocks' matrices, AdamW for the other parameters"
    return option(default, text + (f" (default: {shown})" if shown else ""), choices=("adamw", "muon"))


def lr(adamw):
    """The option with the highest learning rate; adamw: its default, if the optimizer is not Muon"""
    return option(None, f"highest learning rate (default: {adamw}; with --optimizer muon {MUON_LR})", adamw=adamw)


def seed(of):
    """The option with the seed of these parts of a training run."""
    return option(0, f"seed of {of}", least=0)


class TaskOptions:
    """The base of a task's Options, a frozen dataclass. It checks each field when the object is made.

    The annotation of a field gives its type: int, float, bool or str, and `… | None` for one that may be missing. Its
    `option` gives the accepted values and the help text of its flag. A path is stored as a string. A subclass with
    further rules extends `__post_init__`.

    Raises TypeError for a value of the wrong type, ValueError for any other bad value.
    """

    def __post_init__(self):
        for f in fields(self):
            if f.name in OF_MUON and getattr(self, f.name) is None:
                muon = getattr(self, "optimizer", None) == "muon"
                object.__setattr__(self, f.name, OF_MUON[f.name] if muon else f.metadata["adamw"])
            if f.name == "min_lr" and self.min_lr is None and isinstance(self.lr, float):
                object.__setattr__(self, "min_lr", self.lr / 20)
            value, kinds = getattr(self, f.name), get_args(f.type) or (f.type,)
            if value is None and NoneType in kinds:
                continue
            if isinstance(value, os.PathLike) and kinds[0] is str:
                object.__setattr__(self, f.name, os.fspath(value))
            value, accepted = getattr(self, f.name), f.metadata
            if accepted["choices"]:
                check_choice(f.name, value, accepted["choices"])
            else:
                check_typed(f.name, value, kinds[0], accepted["least"], accepted["interval"])
        if hasattr(self, "min_lr") and self.min_lr > self.lr:
            raise ValueError(f"min_lr must lie in 0 … lr = {self.lr}, got {self.min_lr}")


def sizes(options, *layers):
    """The fields of a model's configuration that the options set. layers: the names of those that count the blocks"""
    same = {name: getattr(options, name) for name in ("d_model", "d_ff", "dropout", "seed")}
    return {**same, "num_heads": options.heads, **dict.fromkeys(layers or ("num_layers",), options.layers)}


def optimizer_of(options, model, adamw):
    """Muon for the matrices in the blocks of a model, or what adamw(parameters) returns."""
    learned = list(model.learned().values())
    if options.optimizer == "adamw":
        return adamw(learned)
    betas = getattr(options, "beta1", 0.9), getattr(options, "beta2", 0.99)
    return Muon(learned, weight_decay=getattr(options, "weight_decay", 0.0), matrices=in_blocks(model), betas=betas)


def falling_cosine(options):
    """The schedule of most tasks: linear warm-up to `lr`, then half a cosine down to `min_lr`, or to 0 without one."""
    warm = min(options.warmup, options.steps // 2)  # so that a short run also reaches the highest rate
    lowest = getattr(options, "min_lr", 0.0)
    return lambda step: cosine_schedule(step, options.lr, lowest, warm, options.steps)
