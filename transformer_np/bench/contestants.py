"""Contestants, each in its own process with its own number of threads, so that none disturbs another."""

import multiprocessing
import os
import signal
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partialmethod
from importlib import import_module
from multiprocessing import resource_tracker

from ..support.processes import interrupts_blocked, thread_variables
from . import memory

PATIENCE = 1.0  # seconds between checks that a process is alive


@dataclass(frozen=True)
class Entry:
    """A participant in a race.

    module: "work" or "torch_work"; work: the name of a class in it; arguments: of its constructor
    threads: the number of threads of the matrix library in each process
    """

    name: str
    module: str
    work: str
    arguments: dict = field(default_factory=dict)
    threads: int = 1


class Contestant:
    """A running entry: `contestant.run(5)` has its process do 5 units of work and returns the seconds.

    Use it as a context manager, which ends the process and its children. Raises ChildProcessError with the name of the
    entry if the process fails or dies.
    """

    def __init__(self, entry):
        self.entry = entry
        spawn = multiprocessing.get_context("spawn")  # a new Python, whose matrix library reads the variables
        self._connection, its_end = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(its_end, entry))  # a daemon could have no children
        resource_tracker.ensure_running()  # otherwise start() would start it and unblock the interrupts
        with thread_variables(entry.threads), interrupts_blocked():
            self._process.start()
        its_end.close()  # now only the process has it open
        self.pid = self._process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Kill the process and its children; they have nothing to save."""
        self._process.kill()
        if hasattr(os, "killpg"):
            with suppress(OSError):  # the group does not exist yet or no longer
                os.killpg(self.pid, signal.SIGKILL)
        self._process.join()
        self._connection.close()

    def _ask(self, method, *arguments):
        try:
            self._connection.send((method, arguments))
            while not self._connection.poll(PATIENCE):
                if not self._process.is_alive():  # a child of it may keep the connection open
                    raise EOFError
            answer, failure = self._connection.recv()
        except (EOFError, ConnectionError):
            raise self._died() from None
        if failure:
            message, where = failure
            error = ChildProcessError(f"{self.entry.name}: {message}")
            error.add_note(where)
            raise error
        return answer

    build = partialmethod(_ask, "build")  # load the module, make the work  ->  bytes of memory between the two, or None
    check, run = partialmethod(_ask, "check"), partialmethod(_ask, "run")  # of the work
    most_memory = partialmethod(_ask, "most_memory")

    def _died(self):
        self._process.join(PATIENCE)
        code = self._process.exitcode
        if code is None:
            return ChildProcessError(f"{self.entry.name}: its process no longer responds")
        how = f"killed by signal {-code}; it may have run out of memory" if code < 0 else f"exit code {code}"
        return ChildProcessError(f"{self.entry.name}: its process died ({how})")


def _serve(connection, entry):
    """In the contestant's process: answer each request (method, arguments) with (result, None) or with
    (None, (message, traceback)), until the other end closes the connection."""
    if hasattr(os, "setsid"):
        os.setsid()  # only the parent gets Ctrl-C, and the session identifies this process's children
    with suppress(OSError):  # one of the two is closed
        os.dup2(2, 1)  # printed output must not get into the tables
    work = None

    def build():
        nonlocal work
        kind = getattr(import_module(f".{entry.module}", __package__), entry.work)
        imports = memory.held(os.getpid()) or memory.most_of_this_process()
        work = kind(**entry.arguments)
        return imports

    own = {"build": build, "most_memory": memory.most_of_this_process}
    with suppress(EOFError, ConnectionError):
        while True:
            method, arguments = connection.recv()
            try:
                answer = (own.get(method) or getattr(work, method))(*arguments), None
            except Exception as error:
                answer = None, (f"{type(error).__name__}: {error}", traceback.format_exc())
            connection.send(answer)
