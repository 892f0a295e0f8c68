"""The system calls that a submission may use, as a filter of the kernel. Everything else fails with an error.

libseccomp knows the numbers of the calls on each machine and writes the filter's program.
"""

import ctypes
import errno
import tempfile
from functools import cache

_WHOLE = (1 << 64) - 1  # all bits of an argument
_THREAD = 0x10000  # CLONE_THREAD, a flag of clone
# on the process's own memory, time, threads, signals and files; no call of them leaves anything outside
_ALLOWED = """
    read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek _llseek close
    open openat creat stat fstat lstat newfstatat fstatat64 statx statfs fstatfs access faccessat faccessat2
    readlink readlinkat getcwd chdir fchdir getdents getdents64 umask dup dup2 dup3 pipe pipe2
    mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat truncate ftruncate
    fallocate chmod fchmod fchmodat fchmodat2 utime utimes utimensat futimesat
    getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr
    poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2
    recvfrom getsockname shutdown
    munmap mprotect mremap brk
    futex futex_waitv set_robust_list get_robust_list rseq exit exit_group restart_syscall sched_yield
    rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait sigaltstack
    kill tgkill tkill pause alarm setitimer getitimer
    getpid getppid gettid getuid geteuid getgid getegid getgroups getresuid getresgid getpgrp getpgid getsid
    uname sysinfo getrandom getrusage getrlimit times time gettimeofday clock_gettime clock_getres clock_nanosleep
    nanosleep sched_getaffinity sched_getscheduler sched_getparam sched_get_priority_max sched_get_priority_min
    getpriority getcpu wait4 waitid
""".split()
# {name: (an argument, the bits of it that are looked at, the values that they may have)}
_WITH = {
    # what an open file, its terminal and its memory are asked, nothing that locks, leases or watches a file of the
    # host, or that drops its pages from the memory
    "fcntl": (1, _WHOLE, (0, 1, 2, 3, 4, 1030, 1032)),  # F_DUPFD to F_SETFL, F_DUPFD_CLOEXEC, F_GETPIPE_SZ
    "ioctl": (1, _WHOLE, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451, 0x802C542A)),  # isatty, sizes, FIONBIO, …
    "madvise": (2, _WHOLE, (0, 1, 2, 3, 4, 8, 10, 11, 14, 15, 16, 17, 102, 103)),
    "prctl": (0, _WHOLE, (15, 16, 0x53564D41)),  # names of threads and of memory
    "prlimit64": (0, _WHOLE, (0,)),  # of this process
    "socketpair": (0, _WHOLE, (1,)),  # AF_UNIX: to itself, as asyncio does
    # a thread with open files of its own has their limit to itself
    "clone": (0, 0x7E030400, (_THREAD | 0x400,)),  # CLONE_THREAD, CLONE_FILES, no namespace
    "close_range": (2, 0xFFFFFFFF, (0, 4)),  # not CLOSE_RANGE_UNSHARE
    # pages shared without a file stay, beside the limit of memory, until the last of them is unmapped
    "mmap": (3, 0x21, (0, 1, 0x20)),  # not MAP_SHARED and MAP_ANONYMOUS
    "sendto": (3, 0xFFFFFFFF ^ 0x4040, (0,)),  # MSG_DONTWAIT, MSG_NOSIGNAL; a byte out of band makes the reader wait
}
# these seem to succeed: there is nobody to lock out, and nothing to save
_WITHOUT_EFFECT = "flock fsync fdatasync msync".split()
_LOCKS = {"fcntl": (1, _WHOLE, (6, 7, 37, 38))}  # F_SETLK, F_SETLKW, and those of open files
# Python calls these by name: its error is then PermissionError. The others have an error that libraries know
_FORBIDDEN = "fork vfork execve execveat socket setpriority sched_setaffinity".split()
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_IF_BITS = 7  # the kind of a condition
_OTHER_MACHINE = 2  # the attribute: what is done to calls in the way of another machine, such as one of 32 bits


class _Condition(ctypes.Structure):
    """That some bits of an argument of a call have a value."""

    _fields_ = [("argument", ctypes.c_uint), ("kind", ctypes.c_int), ("bits", ctypes.c_uint64), ("is", ctypes.c_uint64)]


@cache
def allowed():
    """The program of the filter; None without libseccomp."""
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return None
    library.seccomp_init.restype = ctypes.c_void_p
    refused, forbidden = _ERRNO | errno.ENOSYS, _ERRNO | errno.EPERM
    rules = ctypes.c_void_p(library.seccomp_init(refused))

    def add(action, names, *condition):
        conditions = [_Condition(argument, _IF_BITS, bits, value) for argument, bits, value in condition]
        for name in names:
            number = library.seccomp_syscall_resolve_name(name.encode())
            if number != -1:  # libseccomp is older than the call
                array = (_Condition * len(conditions))(*conditions)
                library.seccomp_rule_add_array(rules, action, number, len(conditions), array)

    library.seccomp_attr_set(rules, _OTHER_MACHINE, refused)
    add(_ALLOW, _ALLOWED)
    add(_ERRNO, _WITHOUT_EFFECT)  # the error 0: it seems to succeed
    add(forbidden, _FORBIDDEN)
    add(forbidden, ["clone"], (0, _THREAD, 0))
    for action, table in ((_ALLOW, _WITH), (_ERRNO, _LOCKS)):
        for name, (argument, bits, values) in table.items():
            for value in values:
                add(action, [name], (argument, bits, value))
    with tempfile.TemporaryFile() as file:
        failed = library.seccomp_export_bpf(rules, file.fileno())
        library.seccomp_release(rules)
        file.seek(0)
        return None if failed else file.read()
