"""The process of a contestant, started by `contestants.Contestant`."""

import os
import traceback
from contextlib import suppress
from importlib import import_module

from . import memory


class Desk:
    """The requests that a contestant's process answers."""

    def load(self, module):
        """Load only the module that the work needs."""
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
    """Answer each request (method of the desk, arguments) with ("done", result) or ("failed", (message, traceback)),
    until the other end closes the connection."""
    if hasattr(os, "setsid"):
        os.setsid()  # only the parent gets Ctrl-C, and the session identifies this process's children
    with suppress(OSError):  # one of the two is closed
        os.dup2(2, 1)  # printed output must not get into the tables
    desk = Desk()
    with suppress(EOFError, ConnectionError):
        while True:
            method, arguments = connection.recv()
            try:
                answer = ("done", getattr(desk, method)(*arguments))
            except Exception as error:
                answer = ("failed", (f"{type(error).__name__}: {error}", traceback.format_exc()))
            connection.send(answer)
