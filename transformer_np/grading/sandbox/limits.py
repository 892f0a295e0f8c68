"""The limits of a process, and the system calls that it may not use. Each function returns whether the system allowed
it.
"""

import ctypes
import os
import platform
import struct
import sys

LINUX = sys.platform == "linux"
_SET_DUMPABLE, _SET_SECCOMP, _SET_NO_NEW_PRIVS = 4, 22, 38


def hide():
    """Let no process of the same user read this process's memory, or take its pipes and sockets."""
    if LINUX:
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def set_limits(memory, seconds):
    """Limit memory (bytes of address space) and seconds (processor time of all threads together)."""
    wanted = {
        "RLIMIT_AS": memory, "RLIMIT_CPU": seconds, "RLIMIT_FSIZE": 4 << 20, "RLIMIT_NOFILE": 64, "RLIMIT_CORE": 0,
        "RLIMIT_MEMLOCK": 0, "RLIMIT_MSGQUEUE": 0,
    }  # fmt: skip
    refused = [name for name, value in wanted.items() if not limit(name, value)]
    return "RLIMIT_AS" not in refused and "RLIMIT_CPU" not in refused


def limit(name, value):
    """Set one of the limits of this process, "RLIMIT_AS", for good."""
    try:
        import resource

        number = getattr(resource, name)
        hard = resource.getrlimit(number)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        # at its end, SIGXCPU says why; at an equal hard limit, SIGKILL would come in its place
        later = 2 if name == "RLIMIT_CPU" and hard == resource.RLIM_INFINITY else 0
        resource.setrlimit(number, (value, value + later))
    except (ImportError, AttributeError, ValueError, OSError):
        return False
    return True


# --- system calls ----------------------------------------------------------------------------------------------------

# name: number on x86-64, on arm64 (None: there is none). Bubblewrap alone does not stop a process that multiplies, or
# one that leaves a message in a keyring; the others reach far into the kernel, and no answer needs them.
_REFUSED = {
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "socket": (41, 198), "socketpair": (53, 199), "unshare": (272, 97), "setns": (308, 268),
    "ptrace": (101, 117), "process_vm_writev": (311, 271), "prlimit64": (302, 261),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
}  # fmt: skip
_MACHINES = {"x86_64": (0, 0xC000003E, 56), "aarch64": (1, 0xC00000B7, 220)}  # column, architecture, clone
_CLONE3, _CLONE_THREAD, _X32 = 435, 0x10000, 0x40000000
_PERMISSION, _NO_SUCH_CALL = 1, 38
_LOAD, _EQUAL, _AT_LEAST, _BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000


def refuse_calls():
    """Refuse new processes (but not threads), programs, sockets and keyrings to this thread and those it starts."""
    if not LINUX or platform.machine() not in _MACHINES or sys.maxsize < 1 << 32:
        return False
    column, architecture, clone = _MACHINES[platform.machine()]
    steps = [
        (_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0), (_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _ERRNO | _PERMISSION),
        (_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ERRNO | _NO_SUCH_CALL),  # the C library then takes clone
    ]  # fmt: skip
    for numbers in _REFUSED.values():
        if numbers[column] is not None:
            steps += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _ERRNO | _PERMISSION)]
    steps += [
        (_EQUAL, 0, 3, clone), (_LOAD, 0, 0, 16), (_BITS, 1, 0, _CLONE_THREAD), (_RETURN, 0, 0, _ERRNO | _PERMISSION),
        (_RETURN, 0, 0, _ALLOW),
    ]  # fmt: skip
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *step) for step in steps))
    program = struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(code))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and prctl(_SET_SECCOMP, 2, program, 0, 0) == 0


def used(folder):
    """(files, bytes) in the file system of a folder."""
    found = os.statvfs(folder)
    return found.f_files - found.f_ffree, (found.f_blocks - found.f_bfree) * found.f_frsize
