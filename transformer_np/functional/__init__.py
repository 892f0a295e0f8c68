"""The mathematics as pure functions, each forward beside its backward: `from transformer_np import functional as F`.

`core` is the lecture, to be read from top to bottom. Every other subject has a file of its own: `activations`, `t5`,
`transformer_xl`, `word2vec`, `rotary` and `grouped` (Llama), `lora` (fine-tuning), `comparison` (recurrence and
convolution), `window` and `tiled` (long sequences). `fast` and `special` hold numerical helpers. Every function can be
called as F.name.
"""

# ruff: noqa: F403
import sys
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING

from . import activations, comparison, core, grouped, lora, rotary, t5, tiled, transformer_xl, window, word2vec

if TYPE_CHECKING:  # editors do not follow the `update` below
    from .activations import *
    from .comparison import *
    from .core import *
    from .grouped import *
    from .lora import *
    from .rotary import *
    from .t5 import *
    from .tiled import *
    from .transformer_xl import *
    from .window import *
    from .word2vec import *

TILE = tiled.TILE
FUNCTIONS = MappingProxyType(  # of this package, whatever is swapped for them later
    {
        name: function
        for file in (core, activations, comparison, grouped, lora, rotary, t5, tiled, transformer_xl, window, word2vec)
        for name, function in vars(file).items()
        if getattr(function, "__module__", None) == file.__name__ and not name.startswith("_")
    }
)
globals().update(FUNCTIONS)
__all__ = sorted(FUNCTIONS.keys() - {"gelu_with_slope"})  # that one is a faster way to two others


def __dir__():
    return __all__  # Tab completion shows the functions, not their helpers


class _Functional(ModuleType):
    """A module in which `F.name = function` swaps the function here and in every file of this package that calls it."""

    def __setattr__(self, name, value):
        for module in _FILES:
            if name in vars(module):
                setattr(module, name, value)
        super().__setattr__(name, value)


_FILES = [module for name, module in sys.modules.items() if name.startswith(f"{__name__}.")]
sys.modules[__name__].__class__ = _Functional
