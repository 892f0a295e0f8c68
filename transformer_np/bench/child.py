"""What runs in the process of a contestant, started by `contestants.Contestant`."""

import os
import traceback
from contextlib import suppress
from importlib import import_module

from . import memory


class Desk:
    """What can be asked for."""

    def load(self, module):
        """Load what the work needs, and no more."""
        self._module = import_module(f".{module}", __package__)

    def build(self, name, arguments):
        self._work = getattr(self._module, name)(**arguments)

    def check(self):
        return self._work.check()

    def run(self, units):
        return self._work.run(units)

    def most_memory(self):
        return memory.most_of_this_process()


def serve(connection):
    """Answer (method of the desk, arguments) by ("done", result) or ("failed", what happened) until the other end of
    the connection is closed."""
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C comes to the parent alone, and the children of this process can be found
    with suppress(OSError):  # one of the two is closed
        os.dup2(2, 1)  # whatever prints must not get among the tables
    desk = Desk()
    with suppress(EOFError, ConnectionError):
        while True:
            method, arguments = connection.recv()
            try:
                answer = ("done", getattr(desk, method)(*arguments))
            except Exception as error:
                answer = ("failed", (f"{type(error).__name__}: {error}", traceback.format_exc()))
            connection.send(answer)
