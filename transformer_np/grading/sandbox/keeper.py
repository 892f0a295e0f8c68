"""The grader's end of the processes that try exercises."""

import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from ...support.processes import THREADS, interrupts_blocked
from .bubblewrap import INSIDE, START_SECONDS, bubblewrap, packages, python
from .calls import allowed
from .limits import APART, TRUSTED
from .package import always_given, constants

MOST_WAITING = 4  # a clock stands still at most this many times its seconds
_ENDED = struct.Struct("<if")
_GIVEN = f"{__package__}.given"


class Stopped(Exception):
    """The grading must end now."""


class Ended(Exception):
    """The process of an exercise has ended.

    code: its exit code, or 128 + the signal that ended it; seconds: of processor time that it used
    """

    def __init__(self, code, seconds):
        super().__init__(code, seconds)
        self.code, self.seconds = code, seconds


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
    """A process that forks for exercises of submissions, one after the other, and runs nothing of them itself.

    Every exercise has a socket of its own, for its job and for its messages, which is closed with it. Where it has no
    namespaces of its own, the process that forks ends with it too. Nothing is written to a file: when the grader is
    killed, the sockets close and everything ends.
    """

    def __init__(self, stopped=lambda: False):
        self.stopped, self.process, self._report = stopped, None, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def begin(self, job):
        """Start the process of an exercise and give it its job. NotStarted if it does not take it."""
        self._unread, self._pid = bytearray(), None
        try:
            if self.process is None:
                self._start()
            self._report, theirs = socket.socketpair()
            with theirs:
                socket.send_fds(self._control, [b"t"], [theirs.fileno()])
            self._send(self._report, pickle.dumps(job))
        except OSError:
            self.close()
            raise NotStarted("the process for a submission does not start") from None

    def _send(self, to, content):
        left, clock = memoryview(content), Clock(START_SECONDS)
        while left:
            if self.stopped():
                raise Stopped
            if clock.left < 0 or self.process.poll() is not None:
                raise BrokenPipeError
            if select.select([], [to], [], 0.2)[1]:
                left = left[to.send(left[: 1 << 16], socket.MSG_DONTWAIT) :]

    def clock(self, seconds):
        return Clock(seconds, self._waited)

    def _waited(self):
        """The seconds that the process of the exercise has waited for a processor, as far as the system says so."""
        try:
            if self._pid is None:
                pid = self.process.pid
                for _ in range(1 if self._wall == TRUSTED else 2):
                    pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
                self._pid = pid
            threads = Path(f"/proc/{self._pid}/task").iterdir()
            return max(int((thread / "schedstat").read_text().split()[1]) for thread in threads) / 1e9
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
                part = self._received()
                if part == b"":  # it has ended, or closed the socket
                    raise Ended(*self.end(b"e"))
                self._unread += part or b""
        content = bytes(self._unread[:size])
        del self._unread[:size]
        return content

    def _received(self):
        try:
            return self._report.recv(1 << 20, socket.MSG_DONTWAIT)
        except BlockingIOError:  # `select` has seen a byte out of band
            return None
        except ConnectionError:  # it has ended and left a part of its job unread
            return b""

    def end(self, how=b"k"):
        """End the process of the exercise and all that it started, at once, or for b"e" a moment later; further
        messages from it are lost. Returns its exit code and the seconds of processor time that it used."""
        if self._report is None:
            return 1, 0.0
        self._report.close()
        self._report = None
        try:
            self._control.send(how)
            self._control.settimeout(START_SECONDS)
            return _ENDED.unpack(self._control.recv(_ENDED.size, socket.MSG_WAITALL))
        except (OSError, struct.error):
            self.close()
            return 1, 0.0
        finally:
            if self._wall != APART:
                self.close()

    def close(self):
        """End all its processes."""
        if self._report is not None:
            self._report.close()
            self._report = None
        if self.process is None:
            return
        self._control.close()
        try:
            self.process.wait(10 if self._wall == TRUSTED else 0)  # without bubblewrap, it cleans up
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None

    def _start(self):
        command, self._wall = bubblewrap()
        folder = INSIDE if command else packages()
        self._control, given = socket.socketpair()
        paths = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
        environment = {name: os.environ[name] for name in paths if name in os.environ} | dict.fromkeys(THREADS, "1")
        environment |= {"LANG": "C.UTF-8", "PATH": os.defpath, "MPLBACKEND": "Agg"}
        environment["TMPDIR"] = "/tmp" if command else tempfile.gettempdir()
        with given, interrupts_blocked():
            self.process = subprocess.Popen(
                [*command, *python(command), CHILD, folder, str(self._wall), str(given.fileno())],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
                env=environment, pass_fds=[given.fileno()], start_new_session=True,
            )  # fmt: skip
        content = pickle.dumps((always_given(), constants(), allowed()))
        self._send(self._control, struct.pack("<Q", len(content)) + content)


CHILD = f"""
import marshal, pickle, socket, struct, sys
from types import ModuleType
sys.path.append(sys.argv[1])
wall, control = int(sys.argv[2]), socket.socket(fileno=int(sys.argv[3]))
with control.makefile("rb", buffering=0) as pipe:
    def read(size):
        content = bytearray()
        while len(content) < size:
            content += pipe.read(size - len(content)) or sys.exit(1)
        return bytes(content)
    modules, constants, calls = pickle.loads(read(struct.unpack("<Q", read(8))[0]))
given = sys.modules[{_GIVEN!r}] = ModuleType({_GIVEN!r})
exec(marshal.loads(modules[{_GIVEN!r}][1]), vars(given))
sys.meta_path.insert(0, given.Finder(modules, constants))
from {__package__}.worker import serve
del sys.argv[1:]
serve(control, wall, calls)
"""
