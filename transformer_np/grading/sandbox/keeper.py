"""The grader's end of one submission's processes, and the command that starts them in bubblewrap."""

import importlib.util
import os
import pickle
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
from functools import cache
from pathlib import Path

from ...support.processes import THREADS, interrupts_blocked
from .limits import LINUX
from .package import always_given, constants

START_SECONDS = 60  # to load Python and NumPy on a busy machine
MOST_WAITING = 4  # a clock stands still at most this many times its seconds
_CODE = struct.Struct("<i")
_GIVEN = f"{__package__}.given"


class Stopped(Exception):
    """The grading must end now."""


class Ended(Exception):
    """The process of an exercise has ended; code: its exit code, or 128 + the signal that ended it."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


class Late(Exception):
    """Nothing came in time."""


class NotStarted(RuntimeError):
    """The process of an exercise does not start, for which its submission cannot be blamed."""


class Clock:
    """Seconds of the process of an exercise. The clock stands still while the process waits for a processor: the time
    belongs to the other programs of the machine, but no more than MOST_WAITING times the seconds.
    """

    def __init__(self, seconds, waited=lambda: 0.0):
        self.seconds, self.waited = seconds, waited
        self.started, self._waited = time.monotonic(), waited()

    @property
    def spent(self):
        waiting = min(max(0.0, self.waited() - self._waited), MOST_WAITING * self.seconds)
        return max(0.0, time.monotonic() - self.started - waiting)

    @property
    def left(self):
        left = self.seconds - (time.monotonic() - self.started)
        return left if left > 0 else self.seconds - self.spent  # the second look costs more


class Keeper:
    """The processes of one submission: one that forks, and its fork for each exercise.

    It serves no other submission, so nothing is shared between two of them. Every exercise has pipes of its own, for
    its job and for its messages, which are closed with it. Nothing is written to a file: when the grader is killed, the
    socket and the pipes close and everything ends.
    """

    def __init__(self, stopped=lambda: False):
        self.stopped, self.process, self._report = stopped, None, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def begin(self, job):
        """Start the process of an exercise and give it its job. NotStarted if it does not take it."""
        self._unread, self._code, self._pid = bytearray(), None, None
        pipes = []
        try:
            if self.process is None:
                self._start()
            pipes += os.pipe()
            pipes += os.pipe()
            inputs, give, self._report, report = pipes
            os.set_blocking(give, False)
            os.set_blocking(self._report, False)
            pipes.remove(self._report)
            socket.send_fds(self._control, [b"t"], [inputs, report])
            for pipe in (inputs, report):
                os.close(pipe)
                pipes.remove(pipe)
            self._send(give, pickle.dumps(job))
        except OSError:
            self.close()
            raise NotStarted("the process for a submission does not start") from None
        finally:
            for pipe in pipes:
                os.close(pipe)

    def _send(self, pipe, content):
        left, clock = memoryview(content), Clock(START_SECONDS)
        while left:
            if self.stopped():
                raise Stopped
            if clock.left < 0 or self.process.poll() is not None:
                raise BrokenPipeError
            if select.select([], [pipe], [], 0.2)[1]:
                left = left[os.write(pipe, left[: 1 << 16]) :]

    def clock(self, seconds):
        return Clock(seconds, self._waited)

    def _waited(self):
        """The seconds that the process of the exercise has waited for a processor, as far as the system says so."""
        try:
            if self._pid is None:
                pid = self.process.pid
                for _ in range(2 if _wrapped(self.process.args) else 1):
                    pid = int(_text(f"/proc/{pid}/task/{pid}/children").split()[0])
                self._pid = pid
            threads = os.listdir(f"/proc/{self._pid}/task")
            return max(int(_text(f"/proc/{self._pid}/task/{t}/schedstat").split()[1]) for t in threads) / 1e9
        except (OSError, ValueError, IndexError, AttributeError):
            return 0.0

    def read(self, size, clocks):
        """The next bytes of the process's report. Raises Ended, Late or Stopped."""
        while len(self._unread) < size:
            if self.stopped():
                raise Stopped
            left = min(clock.left for clock in clocks)
            if left <= 0:
                raise Late
            if select.select([self._report], [], [], min(left, 0.2))[0]:
                part = os.read(self._report, 1 << 20)  # a pipe of packets loses what is left of one
                if not part:  # it has ended, or closed the pipe
                    self.end()
                    raise Ended(self._code)
                self._unread += part
        content = bytes(self._unread[:size])
        del self._unread[:size]
        return content

    def end(self):
        """End the process of the exercise and all that it started; further messages from it are lost."""
        if self._report is None:
            return
        os.close(self._report)
        self._report = None
        try:
            if not select.select([self._control], [], [], 0.05)[0]:  # it usually ends at once
                self._control.send(b"k")
            self._control.settimeout(START_SECONDS)
            said = self._control.recv(_CODE.size, socket.MSG_WAITALL)
            self._code = _CODE.unpack(said)[0]
        except (OSError, struct.error):
            self.close()
            self._code = 1

    def close(self):
        """End the processes of the submission."""
        if self._report is not None:
            os.close(self._report)
            self._report = None
        if self.process is None:
            return
        self._control.close()
        try:
            self.process.wait(0 if _wrapped(self.process.args) else 10)  # without bubblewrap, it cleans up
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None

    def _start(self):
        command = bubblewrap()
        folder = _INSIDE if command else _packages()
        self._control, given = socket.socketpair()
        environment = {
            name: os.environ[name]
            for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
            if name in os.environ
        }
        environment |= dict.fromkeys(THREADS, "1")
        environment |= {"LANG": "C.UTF-8", "PATH": os.defpath, "MPLBACKEND": "Agg"}
        environment["TMPDIR"] = "/tmp" if command else tempfile.gettempdir()
        with given, interrupts_blocked():
            self.process = subprocess.Popen(
                [*command, *_python(command), CHILD, folder, repr(bool(command)), str(given.fileno())],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
                env=environment, pass_fds=[given.fileno()], start_new_session=True,
            )  # fmt: skip
        content = _bundle()
        self._send(self._control.fileno(), struct.pack("<Q", len(content)) + content)


CHILD = f"""
import marshal, pickle, socket, struct, sys
from types import ModuleType
sys.path.append(sys.argv[1])
wrapped, control = eval(sys.argv[2]), socket.socket(fileno=int(sys.argv[3]))
with control.makefile("rb", buffering=0) as pipe:
    def read(size):
        content = bytearray()
        while len(content) < size:
            content += pipe.read(size - len(content)) or sys.exit(1)
        return bytes(content)
    modules, constants = pickle.loads(read(struct.unpack("<Q", read(8))[0]))
given = sys.modules[{_GIVEN!r}] = ModuleType({_GIVEN!r})
exec(marshal.loads(modules[{_GIVEN!r}][1]), vars(given))
sys.meta_path.insert(0, given.Finder(modules, constants))
from {__package__}.worker import serve
del sys.argv[1:]
serve(control, wrapped)
"""


@cache
def _bundle():
    return pickle.dumps((always_given(), constants()))


# --- bubblewrap ------------------------------------------------------------------------------------------------------

OPTIONS = ("-I", "-S", "-B", "-X", "utf8")
_INSIDE = "/packages"  # the folder of NumPy in bubblewrap
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
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


def _text(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def _wrapped(command):
    return Path(command[0]).name == "bwrap"


def _packages():
    """The folder that NumPy is in."""
    return str(Path(importlib.util.find_spec("numpy").origin).parents[1])


@cache
def bubblewrap():
    """The beginning of a command that runs Python in bubblewrap, without a network and other processes, where nothing
    but Python, its standard library and NumPy exists; [] if bubblewrap is not installed or not allowed here."""
    program = LINUX and shutil.which("bwrap")
    if not program:
        return []
    try:
        command = [program, "--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534", "--cap-drop", "ALL"]
        command += ["--die-with-parent", "--as-pid-1", *_files(), "--tmpfs", "/tmp", "--remount-ro", "/"]
        command += ["--chdir", "/tmp", "--"]
        _run([*command, *_python(wrapped=True), "import sys; sys.path.append(sys.argv[1]); import numpy", _INSIDE])
    except (OSError, subprocess.SubprocessError):
        return []
    return command


def _python(wrapped):
    return [os.path.realpath(sys.executable) if wrapped else sys.executable, *OPTIONS, "-c"]


def _run(command):
    return subprocess.run(
        command, capture_output=True, text=True, timeout=START_SECONDS, stdin=subprocess.DEVNULL, check=True
    ).stdout


def _files():
    """The options of bubblewrap for the files that a submission may read."""
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    folders = dict.fromkeys(sysconfig.get_path(name, vars=base) for name in ("stdlib", "platstdlib"))
    maps = _run([*_python(wrapped=True), _LIBRARIES, _packages()])
    mapped = {line.split(maxsplit=5)[5] for line in maps.splitlines() if line.count("/") and ".so" in line}
    options = []
    for folder in ("/lib", "/lib64", "/usr/lib64"):
        if os.path.islink(folder):
            options += ["--symlink", os.readlink(folder), folder]
    for folder in folders:
        options += ["--ro-bind", folder, folder]
        for hidden in ("site-packages", "dist-packages"):
            if os.path.isdir(os.path.join(folder, hidden)):
                options += ["--tmpfs", os.path.join(folder, hidden), "--remount-ro", os.path.join(folder, hidden)]
    shared = {path for path in mapped if not path.startswith((*folders, _packages()))}
    names = {path: path for path in shared}  # the linker knows a library by its links
    for folder in {"/lib64", "/lib", "/usr/lib64", *map(os.path.dirname, shared)}:
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            link = os.path.join(folder, name)
            if ".so." in name and os.path.islink(link) and os.path.realpath(link) in shared:
                names[os.path.join(os.path.realpath(folder), name)] = os.path.realpath(link)
    names |= dict.fromkeys([os.path.realpath(sys.executable)])
    for name, path in sorted(names.items()):
        options += ["--ro-bind", path or name, name]
    for name in ("numpy", "numpy.libs"):
        options += ["--ro-bind-try", os.path.join(_packages(), name), f"{_INSIDE}/{name}"]
    options += ["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"]
    for device in _DEVICES:
        options += ["--dev-bind", device, device]
    return options
