"""The memory that this process may use, so that sizes that cannot fit are refused before they are allocated."""

import os
from contextlib import suppress
from pathlib import Path

from .platform import module_with

CGROUP = Path("/sys/fs/cgroup/memory.max")  # the limit of a container


def memory_limit():
    """The bytes that this process may use at most: the machine's memory, or less in a container or under `ulimit -v`.
    None if unknown."""
    limits = []
    with suppress(OSError, ValueError, AttributeError):  # Windows has no such function
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError):  # a number, or "max"
        limits.append(int(CGROUP.read_text(encoding="ascii")))
    if resource := module_with("resource", "getrlimit"):
        with suppress(OSError, ValueError):
            limits.append(resource.getrlimit(resource.RLIMIT_AS)[0])
    return min((limit for limit in limits if limit > 0), default=None)


def check_memory(what, needed):
    """Raise MemoryError if `what` needs more bytes than this process can ever have."""
    limit = memory_limit()
    if limit is not None and needed > limit:
        raise MemoryError(f"{what} needs at least {_shown(needed)} of memory, but there are {_shown(limit)}")


def _shown(size):
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = min(max(0, (int(size).bit_length() - 1) // 10), len(units) - 1)
    number = size / 1024**power
    return f"{number:,.1f} {units[power]}" if number < 1e6 else f"{number:.1e} {units[power]}"
