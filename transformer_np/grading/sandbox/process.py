"""The grader's own processes, and the sockets to them: one that forks for exercises, one that judges.

What the grader sends is a pickle behind its length. It unpickles nothing that comes back.
"""

import os
import pickle
import signal
import socket
import subprocess
from contextlib import suppress

from ...support.processes import interrupts_blocked

_WAIT = 0.2  # seconds between two looks at the clocks


class Stopped(Exception):
    """The grading must end now."""


class Late(Exception):
    """Nothing came in time."""


class Channel:
    """The grader's end of a socket. Waiting ends with Late after the time of a clock, and with Stopped when the grading
    does."""

    def __init__(self, end, stopped):
        end.settimeout(_WAIT)
        self._end, self._stopped, self._unread = end, stopped, bytearray()

    def send(self, thing, *clocks):
        """Send a thing to `received`. OSError if nobody reads it."""
        content = pickle.dumps(thing)
        left = memoryview(len(content).to_bytes(8) + content)
        while left:
            left = left[self._waited_for(clocks, self._end.send, left) :]

    def send_socket(self, end, *clocks):
        """Send a byte and a socket."""
        self._waited_for(clocks, socket.send_fds, self._end, [b"s"], [end.fileno()])

    def read(self, size, *clocks):
        """The next bytes. EOFError or OSError if there are no more."""
        while len(self._unread) < size:
            part = self._waited_for(clocks, self._end.recv, 1 << 20)
            if not part:
                raise EOFError
            self._unread += part
        content = bytes(self._unread[:size])
        del self._unread[:size]
        return content

    def _waited_for(self, clocks, call, *arguments):
        """What a call returns, as soon as it does not time out."""
        while True:
            if self._stopped():
                raise Stopped
            if any(clock.left <= 0 for clock in clocks):
                raise Late
            with suppress(TimeoutError):
                return call(*arguments)

    def close(self):
        self._end.close()


def received(end):
    """What `Channel.send` has sent. EOFError if the grader is gone."""
    return pickle.loads(end.recv(int.from_bytes(end.recv(8, socket.MSG_WAITALL)), socket.MSG_WAITALL))


class Process(Channel):
    """A process with a socket to it, whose number is its last argument."""

    def __init__(self, command, environment, stopped):
        end, theirs = socket.socketpair()
        super().__init__(end, stopped)
        with theirs, interrupts_blocked():
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())], env=environment, pass_fds=[theirs.fileno()], start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        self.pid = self._process.pid

    def close(self, seconds=0):
        """End it. seconds: the time in which it may end by itself when its socket is closed"""
        super().close()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
