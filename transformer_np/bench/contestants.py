"""Contestants in processes of their own, so that each has its number of threads and none disturbs another."""

import multiprocessing
import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker

from ..support.processes import interrupts_blocked, thread_variables
from .child import serve

PATIENCE = 1.0  # seconds between two looks whether a process is still alive


@dataclass(frozen=True)
class Entry:
    """Who takes part in a race.

    work: name of a class in the module, work or torch_work; arguments: those it is made with
    threads: of the matrix library, in each process
    """

    name: str
    module: str
    work: str
    arguments: dict = field(default_factory=dict)
    threads: int = 1


class Contestant:
    """An entry come to life: `contestant.run(5)` asks its process to do 5 units of work and waits for the seconds.

    Use it as a context manager: at the end the process is gone, and with it all that it started. A process that fails
    or dies raises ChildProcessError with the name of the entry.
    """

    def __init__(self, entry):
        self.entry = entry
        spawn = multiprocessing.get_context("spawn")  # a new Python, for the matrix library to look at the variables
        self._connection, its_end = spawn.Pipe()
        self._process = spawn.Process(target=serve, args=(its_end,))  # no daemon, for these have no children
        resource_tracker.ensure_running()  # or it would begin with the process, and end the blocking
        with thread_variables(entry.threads), interrupts_blocked():
            self._process.start()
        its_end.close()  # only the process has it now

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """End the process and all that it started. They hold nothing that has to be saved."""
        self._process.kill()
        if hasattr(os, "killpg"):
            with suppress(OSError):  # there is no such group yet, or no more
                os.killpg(self.pid, signal.SIGKILL)
        self._process.join()
        self._connection.close()

    @property
    def pid(self):
        return self._process.pid

    def load(self):
        self._ask("load", self.entry.module)

    def build(self):
        self._ask("build", self.entry.work, self.entry.arguments)

    def check(self):
        return self._ask("check")

    def run(self, units):
        return self._ask("run", units)

    def most_memory(self):
        return self._ask("most_memory")

    def _ask(self, method, *arguments):
        try:
            self._connection.send((method, arguments))
            while not self._connection.poll(PATIENCE):
                if not self._process.is_alive():  # and a child of it keeps the connection open
                    raise EOFError
            outcome, result = self._connection.recv()
        except (EOFError, ConnectionError):
            raise self._died() from None
        if outcome == "failed":
            message, where = result
            error = ChildProcessError(f"{self.entry.name}: {message}")
            error.add_note(where)
            raise error
        return result

    def _died(self):
        self._process.join(PATIENCE)
        code = self._process.exitcode
        if code is None:
            return ChildProcessError(f"{self.entry.name}: its process does not answer any more")
        how = f"killed by signal {-code}: was the memory full?" if code < 0 else f"exit code {code}"
        return ChildProcessError(f"{self.entry.name}: its process died ({how})")
