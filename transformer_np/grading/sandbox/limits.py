"""What the process of an exercise does to itself before it reads a line of a submission: namespaces, limits, and the
filter of system calls. Each function returns whether the system allowed it, or raises OSError.
"""

import ctypes
import os
import struct
import sys

LINUX = sys.platform == "linux"
TRUSTED, WRAPPED, APART = range(3)  # no wall; bubblewrap; bubblewrap, and namespaces of its own for each exercise
SCRATCH, DEVICES = "/tmp", ("/dev/null", "/dev/urandom")  # in bubblewrap
MOST_FILES, MOST_WRITTEN = 2000, 64 << 20  # files and bytes that a submission may write
MOST_THREADS, NOBODY = 128, 65534
_PID, _USER = 0x20000000, 0x10000000
_OTHERS = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x40000000  # mounts, cgroup, UTS, IPC, network
_NOSUID_NODEV_NOEXEC, _REMOUNT_READ_ONLY = 14, 0x1021
_SET_DUMPABLE, _SET_SECCOMP, _SET_NO_NEW_PRIVS, _SET_NO_HUGE_PAGES = 4, 22, 38, 41
_libc = ctypes.CDLL(None, use_errno=True) if LINUX else None


def _done(returned, what):
    if returned:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def fork_apart():
    """As os.fork; the child is the first process in a namespace of processes, which ends with it."""
    _done(_libc.unshare(_PID), "a namespace of processes")
    pid = os.fork()
    if pid:
        own = os.pidfd_open(os.getpid())
        _done(_libc.setns(own, _PID), "the namespace of processes")  # else a second child would be in the first one's
        os.close(own)
    return pid


def leave_everything():
    """Into new namespaces, with a new empty SCRATCH, without any right of the process that forked."""
    _done(_libc.unshare(_OTHERS), "namespaces")
    _done(_libc.sethostname(b"sandbox", 7), "a name")
    options = f"size={MOST_WRITTEN},nr_inodes={MOST_FILES},mode=700,uid={NOBODY},gid={NOBODY}"
    _done(_libc.mount(b"tmpfs", SCRATCH.encode(), b"tmpfs", _NOSUID_NODEV_NOEXEC, options.encode()), "a folder")
    for device in DEVICES:
        flags = os.statvfs(device).f_flag & _NOSUID_NODEV_NOEXEC | _REMOUNT_READ_ONLY
        _done(_libc.mount(None, device.encode(), None, flags, None), device)
    for number in range(3):  # they were opened outside
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    _done(_libc.unshare(_USER), "a namespace of users")


def set_limits(memory, seconds, wrapped):
    """Limit memory (bytes of address space), seconds (processor time of all threads together), and the other things
    that take memory of the kernel. wrapped: the threads are counted in bubblewrap, elsewhere with the user's others"""
    wanted = {
        "RLIMIT_AS": memory, "RLIMIT_CPU": seconds, "RLIMIT_NOFILE": 64, "RLIMIT_SIGPENDING": 64,
        **({"RLIMIT_NPROC": MOST_THREADS} if wrapped else {}),
    }  # fmt: skip
    if LINUX:
        # the host's program that collects crashes gets no memory of this process
        _libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
        # one of 2 MiB stays whole, but counts 4 KiB when the rest is unmapped
        _libc.prctl(_SET_NO_HUGE_PAGES, 1, 0, 0, 0)
    done = {name: limit(name, value) for name, value in wanted.items()}
    return done["RLIMIT_AS"] and done["RLIMIT_CPU"]


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


def refuse_calls(program):
    """Refuse all system calls but those of the filter to this thread and those it starts."""
    if not LINUX or program is None:
        return False
    code = ctypes.create_string_buffer(program)
    filter_program = struct.pack("<HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    refused = _libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0), _libc.prctl(_SET_SECCOMP, 2, filter_program, 0, 0)
    return refused == (0, 0)
