"""The documented path of `bench.complexity`."""

from .bench.complexity import *  # noqa: F403
from .bench.complexity import __all__ as __all__
