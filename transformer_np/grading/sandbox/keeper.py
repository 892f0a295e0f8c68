"""The grader's end of a keeper: a process that starts one isolated process for each exercise of a submission."""

import importlib.util
import os
import pickle
import select
import shutil
import signal
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
from functools import cache
from pathlib import Path

from ...homework.path import own_folder
from ...support.processes import THREADS, interrupts_blocked
from . import isolation
from .wire import plain_text

START_SECONDS = 60  # to load Python and NumPy on a busy machine
_LENGTH, _CODE = struct.Struct("<Q"), struct.Struct("<i")
ROOT = Path(__file__).parents[3]


class Stopped(Exception):
    """The grading must end now."""


class Ended(Exception):
    """The process of an exercise has ended; code: its exit code, or 128 + the signal that ended it."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


class Late(Exception):
    """Nothing came in time."""


class Keeper:
    """Processes for the exercises of any submissions, one after the other. It never runs a submission itself.

    Four pipes: control (commands to the keeper), inputs (a job for the process of an exercise), report (its messages),
    status (the keeper's word on how it ended). The process of an exercise has only the ends of inputs and report that
    it needs, and nothing is written to a file: when the grader is killed, the pipes close and everything ends.

    kept: the functions of the library that the exercises need; all others are emptied once, before the forks. None: the
    exercises are built from other parts of the library, and each fork empties what it must.
    """

    def __init__(self, kept=None, stopped=lambda: False):
        self.kept, self.stopped, self.process, self.running = kept, stopped, None, False

    def begin(self, job):
        """Start the process of an exercise and give it its job. RuntimeError if it does not take it."""
        self._unread, self._code, self.running = bytearray(), None, True
        try:
            if self.process is None:
                self._start()
            os.write(self._control, b"t")
            self._send(job)
        except OSError:
            words = self._last_words() if self.process else ""
            self.close()  # the rest of the job must reach nobody else
            raise RuntimeError(f"the process for a submission does not start{words}") from None

    def _send(self, thing):
        content = pickle.dumps(thing)
        left = memoryview(_LENGTH.pack(len(content)) + content)
        deadline = time.monotonic() + START_SECONDS
        while left:
            if self.stopped():
                raise Stopped
            ready, writable, _ = select.select([self._status], [self._inputs], [], 0.2)
            if ready or time.monotonic() > deadline:
                raise BrokenPipeError
            if writable:
                left = left[os.write(self._inputs, left[: 1 << 16]) :]

    def _last_words(self):
        try:
            return ": " + plain_text(os.read(self._report, 1000).decode("utf-8", "replace"), 500)
        except OSError:
            return ""

    def read(self, size, deadline):
        """The next bytes of the process's report. Raises Ended, Late or Stopped."""
        while len(self._unread) < size:
            if self.stopped():
                raise Stopped
            left = deadline - time.monotonic()
            if left <= 0:
                raise Late
            if self._code is None:
                ready = select.select([self._report, self._status], [], [], min(left, 0.2))[0]
                if ready and not self._take(size - len(self._unread)) and self._status in ready:
                    self._code = self._how_it_ended()
            elif not self._take(size - len(self._unread)):
                raise Ended(self._code)
        content = bytes(self._unread[:size])
        del self._unread[:size]
        return content

    def _take(self, most):
        """Read at most `most` bytes of the report; returns whether there were any."""
        try:
            part = os.read(self._report, min(most, 1 << 20))
        except BlockingIOError:
            return False
        self._unread += part
        return bool(part)

    def _how_it_ended(self):
        said = os.read(self._status, _CODE.size)
        if len(said) < _CODE.size:
            self.close()
            raise RuntimeError("the process that starts the processes of submissions has ended")
        return _CODE.unpack(said)[0]

    def end(self):
        """End the process of the exercise and all that it started; further messages from it are lost."""
        if not self.running or self.process is None:
            return
        self.running = False
        try:
            os.write(self._control, b"k")
            while self._code is None:
                ready = select.select([self._report, self._status], [], [], 10)[0]
                if not ready:
                    raise OSError("it does not end")
                self._discard()
                if self._status in ready:
                    self._code = self._how_it_ended()
            self._discard()
        except (OSError, RuntimeError):
            self.close()

    def _discard(self):
        try:
            while os.read(self._report, 1 << 20):
                pass
        except BlockingIOError:
            pass

    def close(self):
        """End the keeper and all that it started."""
        if self.process is None:
            return
        for pipe in (self._control, self._inputs):
            os.close(pipe)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for pipe in (self._report, self._status):
            os.close(pipe)
        self.process = None

    def _start(self):
        command, exercises = list(bubblewrap()), own_folder()
        if command and exercises:
            command[-1:] = "--ro-bind", str(exercises), str(exercises), "--"
        python = os.path.realpath(sys.executable) if command else sys.executable
        (control, self._control), (inputs, self._inputs) = os.pipe(), os.pipe()
        (self._report, report), (self._status, status) = os.pipe(), os.pipe()
        for pipe in (self._inputs, self._report):
            os.set_blocking(pipe, False)
        given = (control, inputs, report, status)
        environment = {
            name: os.environ[name]
            for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
            if name in os.environ
        }
        environment |= dict.fromkeys(THREADS, "1")
        environment |= {"LANG": "C.UTF-8", "PATH": os.defpath, "MPLBACKEND": "Agg"}
        environment["TMPDIR"] = "/tmp" if command else tempfile.gettempdir()
        try:
            with interrupts_blocked():
                self.process = subprocess.Popen(
                    [*command, python, *OPTIONS, "-c", CHILD, repr(paths()), repr(bool(command)), *map(str, given)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env=environment,
                    pass_fds=given,
                    start_new_session=True,
                )
        except BaseException:
            for pipe in (self._control, self._inputs, self._report, self._status):
                os.close(pipe)
            raise
        finally:
            for pipe in given:
                os.close(pipe)
        self._send(exercises and str(exercises))
        self._send(self.kept)


OPTIONS = ("-I", "-S", "-B", "-X", "utf8")
CHILD = """
import sys
sys.path[:] = eval(sys.argv[1])
from transformer_np.grading.sandbox.worker import main
wrapped, *pipes = map(eval, sys.argv[2:])
del sys.argv[1:]
main(wrapped, *pipes)
"""


def paths():
    numpy = Path(importlib.util.find_spec("numpy").origin).parents[1]
    return list(dict.fromkeys([*map(os.path.abspath, sys.path), str(ROOT), str(numpy)]))


# --- bubblewrap ------------------------------------------------------------------------------------------------------


@cache
def bubblewrap():
    """The beginning of a command that runs Python in bubblewrap, where only the files of Python, NumPy and this library
    exist; [] if bubblewrap is not installed or not allowed here."""
    program = isolation.LINUX and shutil.which("bwrap")
    if not program:
        return []
    command = [program, "--unshare-all", "--die-with-parent", "--as-pid-1", "--proc", "/proc", "--dev", "/dev"]
    command += ["--tmpfs", "/tmp", "--dir", "/mnt"]
    read, _ = isolation.readable_places([])
    places = [*read, *("/lib", "/lib64"), sysconfig.get_paths()["stdlib"], os.path.realpath(sys.executable)]
    places += [path for path in paths() if Path(path).name in ("site-packages", "dist-packages")]
    places.append(str(ROOT / "transformer_np"))
    for place in dict.fromkeys(places):
        if os.path.exists(place) and not place.startswith("/dev/"):
            command += ["--ro-bind", place, place]
    command += ["--chdir", "/", "--"]
    try:
        done = subprocess.run(
            [*command, os.path.realpath(sys.executable), *OPTIONS, "-c", f"import sys; sys.path[:] = {paths()!r}\n"
             "import numpy, transformer_np"],
            capture_output=True, timeout=START_SECONDS, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return []
    return command if done.returncode == 0 else []
