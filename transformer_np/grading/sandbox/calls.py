"""The system calls that a submission may use, as a filter of the kernel. Everything else fails with an error.

libseccomp knows the numbers of the calls on each machine and writes the filter's program.
"""

import ctypes
import errno
import tempfile
from functools import cache

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
# with one of these values of an argument: what an open file, its terminal and its memory are asked, nothing that
# locks, leases or watches a file of the host, or that drops its pages from the memory
_WITH = {
    "fcntl": (1, (0, 1, 2, 3, 4, 1030, 1032)),  # F_DUPFD to F_SETFL, F_DUPFD_CLOEXEC, F_GETPIPE_SZ
    "ioctl": (1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451, 0x802C542A)),  # isatty, sizes, FIONBIO, FIOCLEX
    "madvise": (2, (0, 1, 2, 3, 4, 8, 10, 11, 14, 15, 16, 17, 102, 103)),
    "prctl": (0, (15, 16, 0x53564D41)),  # names of threads and of memory
    "prlimit64": (0, (0,)),  # of this process
    "socketpair": (0, (1,)),  # AF_UNIX: to itself, as asyncio does
}
# these seem to succeed: there is nobody to lock out, and nothing to save
_WITHOUT_EFFECT = "flock fsync fdatasync msync".split()
_LOCKS = {"fcntl": (1, (6, 7, 37, 38))}  # F_SETLK, F_SETLKW, and those of open files
# Python calls these by name: its error is then PermissionError. The others have an error that libraries know
_FORBIDDEN = "fork vfork execve execveat socket setpriority sched_setaffinity".split()
# with one of these values of some bits of an argument. A thread with open files of its own has their limit to itself.
# Pages shared without a file stay, beside the limit of memory, until the last of them is unmapped
_WITH_BITS = {
    "clone": (0, 0x7E030400, (0x10400,)),  # CLONE_THREAD, CLONE_FILES, no namespace
    "close_range": (2, 0xFFFFFFFF, (0, 4)),  # not CLOSE_RANGE_UNSHARE
    "mmap": (3, 0x21, (0, 1, 0x20)),  # not MAP_SHARED and MAP_ANONYMOUS
    "sendto": (3, 0xFFFFFFFF ^ 0x4040, (0,)),  # MSG_DONTWAIT, MSG_NOSIGNAL; a byte out of band makes the reader wait
}
_THREAD = 0x10000  # a flag of clone

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_IF_EQUAL, _IF_BITS = 4, 7
_OTHER_MACHINE = 2  # the attribute: what is done to calls in the way of another machine, such as one of 32 bits


class _Condition(ctypes.Structure):
    """That an argument of a call is a value, or that it is so within a mask."""

    _fields_ = [("argument", ctypes.c_uint), ("kind", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


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

    def add(action, name, *conditions):
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number != -1:  # libseccomp is older than the call
            library.seccomp_rule_add_array(
                rules, action, number, len(conditions), (_Condition * len(conditions))(*conditions)
            )

    library.seccomp_attr_set(rules, _OTHER_MACHINE, refused)
    for name in _ALLOWED:
        add(_ALLOW, name)
    for action, table in ((_ALLOW, _WITH), (_ERRNO, _LOCKS)):  # the error 0: it seems to succeed
        for name, (argument, values) in table.items():
            for value in values:
                add(action, name, _Condition(argument, _IF_EQUAL, value))
    for name in _WITHOUT_EFFECT:
        add(_ERRNO, name)
    for name in _FORBIDDEN:
        add(forbidden, name)
    for name, (argument, bits, values) in _WITH_BITS.items():
        for value in values:
            add(_ALLOW, name, _Condition(argument, _IF_BITS, bits, value))
    add(forbidden, "clone", _Condition(0, _IF_BITS, _THREAD, 0))
    with tempfile.TemporaryFile() as file:
        failed = library.seccomp_export_bpf(rules, file.fileno())
        library.seccomp_release(rules)
        file.seek(0)
        return None if failed else file.read()
