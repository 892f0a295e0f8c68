"""The grader's end of the processes that try exercises."""

import inspect
import os
import socket
import tempfile
import time
from pathlib import Path

from ...support.processes import THREADS
from .bubblewrap import INSIDE, START_SECONDS, bubblewrap, packages, python
from .calls import allowed
from .limits import APART, TRUSTED
from .package import always_given, constants
from .process import Channel, Late, Process, received
from .wire import ENDED

MOST_WAITING = 4  # a clock stands still at most this many times its seconds
_GIVEN = f"{__package__}.given"


class Ended(Exception):
    """The process of an exercise has ended.

    code: its exit code, or 128 + the signal that ended it; seconds: of processor time that it used
    """

    def __init__(self, code, seconds):
        super().__init__(code, seconds)
        self.code, self.seconds = code, seconds


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
        self.stopped, self._process, self._report = stopped, None, None

    def begin(self, job):
        """Start the process of an exercise and give it its job. NotStarted if it does not take it."""
        try:
            if self._process is None:
                self._start()
            end, theirs = socket.socketpair()
            self._report, self._pid = Channel(end, self.stopped), None
            with theirs:
                self._process.send_socket(theirs, Clock(START_SECONDS))
            self._report.send(job, Clock(START_SECONDS))
        except (OSError, Late):
            self.close()
            raise NotStarted("the process for a submission does not start") from None

    def clock(self, seconds):
        return Clock(seconds, self._waited)

    def _waited(self):
        """The seconds that the process of the exercise has waited for a processor, as far as the system says so."""
        try:
            if self._pid is None:
                pid = self._process.pid
                for _ in range(1 if self._wall == TRUSTED else 2):
                    pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
                self._pid = pid
            threads = Path(f"/proc/{self._pid}/task").iterdir()
            return max(int((thread / "schedstat").read_text().split()[1]) for thread in threads) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0

    def read(self, size, *clocks):
        """The next bytes of the process's report. Raises Ended, Late or Stopped."""
        try:
            return self._report.read(size, *clocks)
        except (EOFError, ConnectionError):  # it has ended, or closed the socket
            raise Ended(*self.end()) from None

    def end(self):
        """End the process of the exercise and all that it started; further messages from it are lost. Returns its exit
        code and the seconds of processor time that it used."""
        if self._report is None:
            return 1, 0.0
        self._report.close()
        self._report = None
        try:
            self._process.send(None)  # anything
            return ENDED.unpack(self._process.read(ENDED.size, Clock(START_SECONDS)))
        except (OSError, EOFError, Late):
            self.close()
            return 1, 0.0
        finally:
            if self._wall != APART:
                self.close()

    def close(self):
        """End all its processes."""
        if self._report is not None:
            self._report.close()
        if self._process is not None:
            self._process.close(10 if self._wall == TRUSTED else 0)  # without bubblewrap, it cleans up
        self._process = self._report = None

    def _start(self):
        command, self._wall = bubblewrap()
        paths = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
        environment = {name: os.environ[name] for name in paths if name in os.environ} | dict.fromkeys(THREADS, "1")
        environment |= {"LANG": "C.UTF-8", "PATH": os.defpath, "MPLBACKEND": "Agg"}
        environment["TMPDIR"] = "/tmp" if command else tempfile.gettempdir()
        folder = INSIDE if command else packages()
        command = [*command, *python(command), CHILD, folder, str(self._wall)]
        self._process = Process(command, environment, self.stopped)
        self._process.send((always_given(), constants(), allowed()), Clock(START_SECONDS))


CHILD = f"""
import marshal, pickle, socket, sys
from types import ModuleType
{inspect.getsource(received)}
folder, wall, number = sys.argv[1:]
sys.path.append(folder)
control = socket.socket(fileno=int(number))
modules, constants, calls = received(control)
given = sys.modules[{_GIVEN!r}] = ModuleType({_GIVEN!r})
exec(marshal.loads(modules[{_GIVEN!r}][1]), vars(given))
sys.meta_path.insert(0, given.Finder(modules, constants))
from {__package__}.worker import serve
del sys.argv[1:]
serve(control, int(wall), calls, modules)
"""
