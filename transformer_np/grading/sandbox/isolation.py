"""The isolation of this process: namespaces, Landlock, seccomp and Python's audit hook.

Each function returns whether the system allowed it; they work independently of each other.
"""

import ctypes
import os
import platform
import struct
import sys
import sysconfig
from pathlib import Path

from .limits import LINUX, libc

# --- namespaces ------------------------------------------------------------------------------------------------------

_NEW_USER, _NEW_NET, _NEW_PID, _NEW_IPC, _NEW_MOUNT = 0x10000000, 0x40000000, 0x20000000, 0x08000000, 0x00020000
_NOSUID, _NODEV, _PRIVATE, _REC = 2, 4, 1 << 18, 1 << 14
_MOUNT_POINTS = ("/mnt", "/media", "/srv", "/var/tmp", "/tmp")


def enter_namespaces():
    """Enter a new network without devices, new process ids (for the children) and new mounts.

    ->  the names of the namespaces entered. Call it while there is only one thread.
    """
    if not LINUX:
        return []
    unshare = libc().unshare
    uid, gid = os.getuid(), os.getgid()
    everything = {"network": _NEW_NET, "process": _NEW_PID, "ipc": _NEW_IPC, "mount": _NEW_MOUNT}
    if unshare(_NEW_USER) == 0:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            try:
                Path("/proc/self", name).write_text(text)
            except OSError:
                pass  # without the map its user is nobody, which does no harm
    return [name for name, flag in everything.items() if unshare(flag) == 0]


def bounded_folder(needed, megabytes=32):
    """Mount a small in-memory file system on a folder without any `needed` path, visible to this process alone.

    ->  the folder, or None. It ends with the process, and nothing is written to a disk.
    """
    needed = [os.path.realpath(path) + os.sep for path in needed]
    places = [p for p in _MOUNT_POINTS if os.path.realpath(p) == p and os.path.isdir(p)]
    place = next((p for p in places if not any(path.startswith(p + os.sep) for path in needed)), None)
    c = libc()
    if place is None or c.mount(b"none", b"/", None, _PRIVATE | _REC, None) != 0:
        return None
    options = f"size={megabytes}m,nr_inodes=2000,mode=0700".encode()
    return place if c.mount(b"none", os.fsencode(place), b"tmpfs", _NOSUID | _NODEV, options) == 0 else None


# --- which files -----------------------------------------------------------------------------------------------------


def readable_places(hidden):
    """The paths that Python and NumPy must read, without anything inside `hidden`, and the folders of which only the
    names may be read because they contain hidden paths."""
    paths = sysconfig.get_paths()
    roots = [
        paths["stdlib"],
        paths["platstdlib"],
        *(p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")),
    ]
    roots += [p for p in sys.path if p.endswith(("lib-dynload", ".zip"))]
    if LINUX:
        roots += [sysconfig.get_config_var("LIBDIR") or "/usr/lib"]
        roots += ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/localtime"]
        roots += ["/usr/share/zoneinfo", "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"]
    hidden = {os.path.realpath(path) for path in hidden}
    found, listed = [], []
    for root in dict.fromkeys(os.path.realpath(root) for root in roots):
        found += _without(root, hidden, listed)
    return list(dict.fromkeys(found)), list(dict.fromkeys(listed))


def _without(root, hidden, listed):
    """The path, or its entries that are not hidden if it contains hidden ones; then it is added to `listed`."""
    if root in hidden or not os.path.exists(root) or any(root.startswith(path + os.sep) for path in hidden):
        return []
    if not any(path.startswith(root + os.sep) for path in hidden):
        return [root]
    found = []
    listed.append(root)
    for entry in os.scandir(root):
        if not entry.is_symlink():  # its target is allowed or refused separately
            found += _without(entry.path, hidden, listed)
    return found


# --- Landlock: the kernel refuses files ------------------------------------------------------------------------------

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 1, 1 << 2, 1 << 3, 1 << 14
_REMOVE_MAKE = 0b11 << 4 | 1 << 7 | 1 << 8  # directories and files


def landlock(read, listed, write):
    """Allow reading only of `read`, listing also of `listed`, and writing only inside `write`; refuse programs, TCP and
    signals to other processes. Needs no_new_privileges.
    """
    if not LINUX:
        return False
    syscall = libc().syscall
    abi = syscall(_CREATE_RULESET, None, 0, 1)
    if abi < 1:
        return False
    rights = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(abi, 16)) - 1
    attributes = struct.pack("<QQQ", rights, 0b11 if abi >= 4 else 0, 0b11 if abi >= 6 else 0)
    ruleset = syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return False
    try:
        writing = _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE | _REMOVE_MAKE
        for paths, allowed in ((read, _READ_FILE | _READ_DIR), (listed, _READ_DIR), (write, writing)):
            for path in paths:
                _allow(syscall, ruleset, path, allowed & rights)
        return syscall(_RESTRICT_SELF, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def _allow(syscall, ruleset, path, allowed):
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):
        allowed &= _READ_FILE | _WRITE_FILE | _TRUNCATE
    syscall(_ADD_RULE, ruleset, 1, struct.pack("<Qi", allowed, place), 0)
    os.close(place)


# --- seccomp: the kernel refuses calls -------------------------------------------------------------------------------

# name: number on x86-64, on arm64 (None: there is none)
_REFUSED = {
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "socket": (41, 198), "socketpair": (53, 199), "ptrace": (101, 117),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "chroot": (161, 51),
    "pivot_root": (155, 41), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "kcmp": (312, 272),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "prlimit64": (302, 261), "setrlimit": (160, 164), "sched_setaffinity": (203, 122),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "memfd_create": (319, 279), "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
}  # fmt: skip
_MACHINES = {"x86_64": (0, 0xC000003E, 56), "aarch64": (1, 0xC00000B7, 220)}  # column, architecture, clone
_CLONE3, _CLONE_THREAD, _X32 = 435, 0x10000, 0x40000000
_PERMISSION, _NO_SUCH_CALL = 1, 38
_LOAD, _EQUAL, _AT_LEAST, _BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000


def seccomp():
    """Refuse new processes (but not threads), programs, sockets, signals and access to other processes.

    Needs no_new_privileges. Applies to this thread and the threads it starts.
    """
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
    return libc().prctl(22, 2, program, 0, 0) == 0


# --- the audit hook: Python itself refuses ---------------------------------------------------------------------------

_REFUSED_EVENTS = (
    "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.startfile", "os.kill",
    "os.killpg", "subprocess.Popen", "pty.spawn", "socket.", "ctypes.", "sqlite3.", "ftplib.", "http.", "urllib.",
    "smtplib.", "resource.setrlimit", "resource.prlimit", "signal.pthread_kill", "cpython.run_", "winreg.", "msvcrt.",
    "syslog.", "webbrowser.", "gc.", "sys.addaudithook",
)  # fmt: skip
_WRITING_EVENTS = (
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown",
    "os.utime", "os.setxattr", "os.removexattr", "os.chflags", "os.mkfifo", "shutil.",
)  # fmt: skip
_LISTING_EVENTS = ("os.listdir", "os.scandir", "os.chdir")
# these raise no audit event
_REFUSED_MODULES = frozenset((
    "_posixsubprocess", "_posixshmem", "_testcapi", "_testinternalcapi", "_xxsubinterpreters", "_interpreters",
    "_winapi",
))  # fmt: skip


def audit(read, listed, write, files=None, note=None):
    """Refuse the same actions in Python. On systems without the other layers this is the only one: it stops accidents
    and simple attempts, but not an expert in Python's internals.

    files: how often files may be opened for writing; None for no limit
    note: called with the path of every file that is opened
    """
    import subprocess  # other modules load it too; afterwards it cannot start anything

    _close_builtins()

    read, listed, write = (tuple(map(os.path.realpath, paths)) for paths in (read, listed, write))
    readable = read + write
    refused, writing, listing, modules = _REFUSED_EVENTS, _WRITING_EVENTS, _LISTING_EVENTS, _REFUSED_MODULES
    realpath, fsdecode, below = os.path.realpath, os.fsdecode, os.sep
    writing_flags = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

    def plain(path):
        """The path as a plain string, not of a class of the submission; None if it is not a path."""
        if isinstance(path, str):
            return str.__add__("", path)
        return fsdecode(bytes.__add__(b"", path)) if isinstance(path, bytes) else None

    def inside(path, places):
        path = realpath(path)
        return any(path == place or path.startswith(place + below) for place in places)

    def hook(event, arguments):
        if event == "open":
            path, _, flags = arguments
            path, writes = plain(path), flags & writing_flags
            if note and path is not None:
                note(path)
            if path is not None and not inside(path, write if writes else readable):
                raise PermissionError(f"a submission may not open {path}")
            if writes and files is not None:
                opened.append(path)
            if len(opened) > (files or 0):
                raise PermissionError(f"a submission may not write more than {files} files")
        elif event == "import":
            # also as a part of a package: the last part of the name says which extension is loaded
            if arguments[0].rpartition(".")[2] in modules:
                raise ImportError(f"a submission may not import {arguments[0]}")
        elif event == "object.__setattr__":
            if arguments[0] in own:
                raise PermissionError("a submission may not change this")
        elif event.startswith(refused):
            raise PermissionError(f"a submission may not use {event}")
        elif event.startswith(writing):
            if not all(inside(path, write) for path in map(plain, arguments) if path is not None):
                raise PermissionError(f"a submission may not use {event} here")
        elif event.startswith(listing):
            path = plain(arguments[0]) if arguments else None
            if path is not None and not inside(path, readable) and realpath(path) not in listed:
                raise PermissionError(f"a submission may not look into {path}")

    own, opened = (hook, inside, plain), []
    for module in (subprocess, sys.modules.get("_posixsubprocess")):
        for name in ("_fork_exec", "fork_exec"):
            if hasattr(module, name):
                setattr(module, name, _refused)
    sys.addaudithook(hook)
    return True


def _close_builtins():
    """Load the modules that are built into Python, and refuse to make more: `_imp.create_builtin` raises no audit event
    and would make a second _posixsubprocess."""
    import _imp

    for name in set(sys.builtin_module_names) - _REFUSED_MODULES:
        try:
            __import__(name)
        except ImportError:
            pass
    _imp.create_builtin = _imp.init_builtin = _refused


def _refused(*args, **kwargs):
    raise PermissionError("a submission may not use this")
