"""The limits of a process, and its end with its parent. Each function returns whether the system allowed it."""

import ctypes
import os
import signal
import sys

LINUX = sys.platform == "linux"
_SET_PDEATHSIG, _CAPBSET_DROP, _SET_SUBREAPER, _SET_NO_NEW_PRIVS = 1, 24, 36, 38


def libc():
    return ctypes.CDLL(None, use_errno=True)


def die_with(parent):
    """Have this process killed when the process `parent`, which started it, ends."""
    if not LINUX or libc().prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        return False
    if os.getppid() != parent:
        os._exit(1)
    return True


def adopt_orphans():
    """Become the parent of descendants whose own parent ends, so that none is left over."""
    return LINUX and libc().prctl(_SET_SUBREAPER, 1, 0, 0, 0) == 0


def no_new_privileges():
    """Prevent set-uid programs from giving this process more rights."""
    return LINUX and libc().prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0


def drop_capabilities():
    """Remove root's special rights: it can neither raise its own limits nor read other users' files."""
    if not LINUX:
        return False
    c = libc()
    for capability in range(64):
        c.prctl(_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this process
    return c.capset(header, (ctypes.c_uint32 * 6)()) == 0


def set_limits(memory, seconds):
    """Limit memory (bytes of address space) and seconds (processor time of all exercises together)."""
    wanted = {
        "RLIMIT_AS": memory,
        "RLIMIT_CPU": seconds,
        "RLIMIT_FSIZE": 4 << 20,
        "RLIMIT_NOFILE": 64,
        "RLIMIT_CORE": 0,
        "RLIMIT_MEMLOCK": 0,
        "RLIMIT_MSGQUEUE": 0,
    }
    if hasattr(os, "getuid") and os.getuid() != 0:
        wanted["RLIMIT_NPROC"] = 4096  # counts all programs of the user: only a brake
    refused = [name for name, value in wanted.items() if not limit(name, value)]
    return "RLIMIT_AS" not in refused and "RLIMIT_CPU" not in refused


def limit(name, value):
    """Set one of the limits of this process, "RLIMIT_AS", for good."""
    try:
        import resource

        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (value, value))
    except (ImportError, AttributeError, ValueError, OSError):
        return False
    return True
