"""The memory that this process may use, so that sizes that cannot fit are refused before they are allocated."""

import os
from contextlib import suppress
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup/memory.max")  # the limit of a container


def memory_limit():
    """The bytes that this process may use at most: the machine's memory, or less in a container or under `ulimit -v`.
    None if unknown."""
    limits = []
    for limit in (_of_machine, _of_container, _of_process):
        with suppress(OSError, ValueError, ModuleNotFoundError):  # unknown, or not permitted
            limits.append(limit())
    return min((limit for limit in limits if limit > 0), default=None)


def _of_machine():
    if not hasattr(os, "sysconf"):  # Windows
        raise OSError("unknown")
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _of_container():
    return int(CGROUP.read_text(encoding="ascii"))  # a number, or "max"


def _of_process():
    import resource

    return resource.getrlimit(resource.RLIMIT_AS)[0]


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
