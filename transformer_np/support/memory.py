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
        raise MemoryError(f"{what} needs at least {in_units(needed)} of memory, but there are {in_units(limit)}")


def in_units(number, base=1024, units=(" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB")):
    """A number, of bytes or with other units, as three digits and the unit in which it has no more: "1.5 KiB"."""
    for unit in units:
        if number < 999.5 or unit == units[-1]:  # three digits, without an exponent
            return f"{number:.3g}{unit}"
        number /= base
