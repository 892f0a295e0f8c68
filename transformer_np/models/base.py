"""The parts that all models share: the checks of a configuration, and folders of pretrained weights."""

from dataclasses import fields
from types import NoneType
from typing import get_args

import numpy as np

from ..layers.activations import ACTIVATIONS
from ..support.checks import check_at_least, check_choice, check_heads, check_kind, check_typed, floating_dtype
from ..support.memory import check_memory
from .layouts.folder import load_pretrained, register, save_pretrained

MAY_BE_ZERO = ("num_encoder_layers", "num_decoder_layers", "mem_len", "window", "pad_id", "bos_id", "eos_id", "seed")


class ModelConfig:
    """The sizes and choices of a model, checked when the object is made.

    A subclass is a frozen dataclass whose annotations say which types a field accepts:

    int: a whole number, at least 1, or at least 0 for the names in MAY_BE_ZERO
    float: a finite number, at least 0; dropout is below 1
    bool, str: nothing else
    … | None: None as well

    Three names have a meaning of their own. `dtype` is a floating type, stored as its name. `activation` is one of the
    class attribute `activations`. `num_heads` divides `d_model`, unless `d_head` sets the width of a head.

    A subclass with further rules extends `__post_init__`. NumPy scalars are stored as Python numbers, so that every
    configuration can be written as JSON.

    Raises TypeError for a value of the wrong type, ValueError for any other bad value.
    """

    activations = tuple(ACTIVATIONS)
    position_table = True  # whether the model has a row for each of max_len positions

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "dtype":
                self._set(dtype=floating_dtype("dtype", value))
                continue
            kinds = get_args(field.type) or (field.type,)
            if value is None and NoneType in kinds:
                continue
            least = 0 if field.name in MAY_BE_ZERO else 1
            interval = "[0, 1)" if field.name == "dropout" else "[0, ∞)"
            check_typed(field.name, value, kinds[0], least, interval)
            if isinstance(value, np.generic):
                self._set(**{field.name: value.item()})
        if hasattr(self, "num_heads") and getattr(self, "d_head", None) is None:
            check_heads(self.num_heads, self.d_model)
        if hasattr(self, "activation"):
            check_choice("activation", self.activation, self.activations)

    @property
    def blocks(self):
        """The number of blocks in all stacks."""
        return sum(getattr(self, f"num_{which}layers", 0) for which in ("", "encoder_", "decoder_"))

    def least_parameters(self):
        """A lower bound of the number of parameters, from the sizes alone: the tables and W_q, W_o, W_1, W_2."""
        tables = max(getattr(self, f"{which}vocab_size", 0) for which in ("", "src_", "tgt_"))
        tables += getattr(self, "type_vocab_size", 0) + (getattr(self, "max_len", 0) if self.position_table else 0)
        inside = self.d_model  # the features of all heads
        if getattr(self, "d_head", None) is not None:
            inside = self.num_heads * self.d_head
        in_block = 2 * self.d_model * (inside + getattr(self, "d_ff", 0))
        return self.d_model * tables + self.blocks * in_block + getattr(self, "num_buckets", 0)

    def check_fits(self, stored, where):
        """Raise ValueError if a file has fewer numbers than a model of these sizes, and more than SMALL: before the
        model is made, because sizes in a file may ask for any amount of memory. A small model is made, to say what is
        missing."""
        least = self.least_parameters()
        if least > max(stored, SMALL):
            sizes = f"a model of these sizes has at least {least:,} parameters"
            raise ValueError(f"{where}: {sizes}, but the file has {stored:,}")

    def _set(self, **values):
        """Fill in fields while the frozen object is being made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_ids(self, names, size):
        """Check that the token ids in these fields are in the vocabulary whose size is in the field `size`."""
        for name in names:
            if getattr(self, name) >= getattr(self, size):
                raise ValueError(f"{name} is {getattr(self, name)}, not in {size} = {getattr(self, size)}")


SMALL = 1 << 21  # parameters
OBJECTS = 10_000  # bytes of a block's Python objects, for all sizes


def fitting(config, kind):
    """The config, if it is of this class and its model can fit into memory. Otherwise raises TypeError, or MemoryError
    with the least memory that the model needs."""
    check_kind("config", config, kind)
    size = config.least_parameters() * np.dtype(config.dtype).itemsize + config.blocks * OBJECTS
    check_memory(f"a {type(config).__name__} of these sizes", size)
    return config


class Pretrained:
    """A model that is read from, and written to, a folder in Hugging Face's layout: a mixin for a Module.

    config_class: the class of the model's configuration
    layouts: the layouts that the model can be read from (see `layouts`); it is written in the first
    """

    config_class = None
    layouts = ()
    inputs = ()  # names of the modules below the first block
    first_learning = None  # the first block that learns, if what lies below it is frozen; see `freeze_below`

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        register(cls)

    @classmethod
    def from_pretrained(cls, folder, dtype=None):
        """The model of a folder in Hugging Face's layout; see `pretrained.load_pretrained`."""
        return load_pretrained(cls, folder, dtype)

    def freeze_below(self, first):
        """Freeze the embeddings and the blocks before block `first`. The backward pass ends above them, and they run as
        in eval(): without dropout, and they keep nothing. Raises ValueError for a model without so many blocks."""
        check_at_least("first", first, 0)
        number = len(getattr(self, "blocks", []))
        if first > number:
            raise ValueError(f"{first} blocks cannot be frozen: this {type(self).__name__} has {number} in one stack")
        self.first_learning = first
        for module in self._below():
            module.freeze()
        return self._set_mode(self.training, self.keeping)

    def _below(self):
        """The frozen modules below the first block that learns."""
        inputs = (getattr(self, name, None) for name in self.inputs)
        return [module for module in inputs if module is not None] + self.blocks[: self.first_learning]

    def _set_mode(self, training, keeping):
        super()._set_mode(training, keeping)
        if self.first_learning is not None:
            for module in self._below():
                module._set_mode(False, False)
        return self

    def save_pretrained(self, folder, tokenizer=None):
        """Write a folder that Hugging Face loads; see `pretrained.save_pretrained`."""
        save_pretrained(self, folder, tokenizer)
