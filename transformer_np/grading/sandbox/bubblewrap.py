"""The command that starts Python in bubblewrap, where nothing but Python, its standard library and NumPy exists."""

import importlib.util
import inspect
import os
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

from . import limits
from .limits import APART, TRUSTED, WRAPPED

START_SECONDS = 60  # to load Python and NumPy on a busy machine
OPTIONS = ("-I", "-S", "-B", "-X", "utf8")
INSIDE = "/packages"  # the folder of NumPy in bubblewrap
_UNSHARED = [
    "--unshare-ipc", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox",
    "--size", str(limits.MOST_WRITTEN), "--tmpfs", limits.SCRATCH,
]  # fmt: skip
_TRIED = """
import sys
exec(sys.argv[1], limits := {})
if eval(sys.argv[2]):
    if limits["fork_apart"]() == 0:
        limits["leave_everything"]()
    elif limits["os"].wait()[1]:
        sys.exit(1)
sys.path.append(sys.argv[3])
import numpy
"""
_LIBRARIES = """
import os, sys
sys.path.append(sys.argv[1])
import numpy.random, numpy.linalg, numpy.fft
for folder in sys.path:
    for name in sorted(os.listdir(folder)) if folder.endswith("lib-dynload") else ():
        try:
            __import__(name.partition(".")[0]) if "tk" not in name else None
        except ImportError:
            pass
print(open("/proc/self/maps").read())
"""


def packages():
    """The folder that NumPy is in."""
    return str(Path(importlib.util.find_spec("numpy").origin).parents[1])


@cache
def bubblewrap():
    """(command, wall): the beginning of a command that runs Python in bubblewrap without a network, other processes
    and other files, and whether a process in it may have namespaces of its own, limits.APART or WRAPPED.

    ([], TRUSTED) if bubblewrap is not installed or not allowed here.
    """
    program = limits.LINUX and shutil.which("bwrap")
    if not program:
        return [], TRUSTED
    try:
        files = _files()
    except (OSError, subprocess.SubprocessError):
        return [], TRUSTED
    as_nobody = ["--unshare-user", "--uid", str(limits.NOBODY), "--gid", str(limits.NOBODY)]
    apart = ["--cap-add", "CAP_SYS_ADMIN"]
    for device in limits.DEVICES:  # it makes them read-only: their time and mode are those outside
        apart += ["--dev-bind", device, device]
    ways = [(as_nobody + apart, APART), (as_nobody + _UNSHARED, WRAPPED)]
    if os.geteuid() == 0:  # the exercises then belong to a user who owns nothing outside
        ways.insert(0, ([*apart, "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_KILL"], APART))
    for rights, wall in ways:
        command = [program, "--unshare-pid", "--cap-drop", "ALL", "--die-with-parent", "--as-pid-1", *files, *rights]
        command += ["--remount-ro", "/", "--chdir", "/", "--"]
        try:
            _run([*command, *python(wrapped=True), _TRIED, inspect.getsource(limits), repr(wall == APART), INSIDE])
        except (OSError, subprocess.SubprocessError):
            continue
        return command, wall
    return [], TRUSTED


def python(wrapped):
    return [os.path.realpath(sys.executable) if wrapped else sys.executable, *OPTIONS, "-c"]


def _run(command):
    return subprocess.run(
        command, capture_output=True, text=True, timeout=START_SECONDS, stdin=subprocess.DEVNULL, check=True
    ).stdout


def _files():
    """The options of bubblewrap for the files that a submission may read."""
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    folders = dict.fromkeys(sysconfig.get_path(name, vars=base) for name in ("stdlib", "platstdlib"))
    maps = _run([*python(wrapped=True), _LIBRARIES, packages()])
    mapped = {line.split(maxsplit=5)[5] for line in maps.splitlines() if line.count("/") and ".so" in line}
    shared = {path for path in mapped if not path.startswith((*folders, packages()))}
    names = {path: path for path in shared}  # the linker knows a library by its links
    for folder in {"/lib64", "/lib", "/usr/lib64", *map(os.path.dirname, shared)}:
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            link = os.path.join(folder, name)
            if ".so." in name and os.path.islink(link) and os.path.realpath(link) in shared:
                names[os.path.join(os.path.realpath(folder), name)] = os.path.realpath(link)
    names |= {path: path for path in (*folders, os.path.realpath(sys.executable), "/etc/ld.so.cache")}
    names |= {f"{INSIDE}/{name}": os.path.join(packages(), name) for name in ("numpy", "numpy.libs")}
    options = []
    for folder in ("/lib", "/lib64", "/usr/lib64"):
        if os.path.islink(folder):
            options += ["--symlink", os.readlink(folder), folder]
    for folder in sorted({str(parent) for name in names for parent in Path(name).parents}):
        options += ["--dir", folder]  # which everyone may enter
    for name, path in names.items():
        options += ["--ro-bind-try", path, name]
    for folder in folders:
        for hidden in ("site-packages", "dist-packages"):
            if os.path.isdir(os.path.join(folder, hidden)):
                options += ["--tmpfs", os.path.join(folder, hidden), "--remount-ro", os.path.join(folder, hidden)]
    return [*options, "--dir", "/dev", "--dir", limits.SCRATCH]
