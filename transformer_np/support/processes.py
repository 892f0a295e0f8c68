"""Threads of the matrix library under NumPy (BLAS), Ctrl-C while processes start, and the end of a process.

NumPy has no API for the number of threads: BLAS reads it from the environment when it is loaded, and threadpoolctl can
query and change it afterwards.
"""

import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from functools import cache

THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def cores():
    """The number of processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def environment(variables):
    """Inside the block, the environment has these variables, {name: text}."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def thread_variables(number):
    """`with thread_variables(1): …`: processes started inside use this many threads.

    The current process and its forks keep their number.
    """
    return environment(dict.fromkeys(THREADS, str(number)))


def blas_threads():
    """How many threads a matrix product may use; None if unknown because threadpoolctl is not installed."""
    controller = _controller()
    if controller is None:
        return 1 if os.environ.get("OPENBLAS_NUM_THREADS") == "1" else None
    return max((library["num_threads"] for library in controller.info()), default=1)


def limit_blas_threads(number):
    """`with limit_blas_threads(1): …`: matrix products inside use at most this many threads.

    Has no effect without threadpoolctl.
    """
    controller = _controller()
    return nullcontext() if controller is None else controller.limit(limits=number)


@cache
def _controller():
    """The controller of the loaded BLAS libraries, which takes a millisecond to find; None without threadpoolctl."""
    try:
        from threadpoolctl import ThreadpoolController
    except ModuleNotFoundError:
        return None
    return ThreadpoolController().select(user_api="blas")


# --- Ctrl-C while a process is being started -------------------------------------------------------------------------


# Ctrl-C, the polite request of schedulers and `kill` to end, and a closed terminal
STOP_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def interrupts_blocked(signals=(signal.SIGINT,)):
    """Delay Ctrl-C, or these signals, until the end of the block. A terminal sends it to all processes, and a child
    that has just started has no handler yet. Children started inside never receive it unless they unblock it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def stopping_softly():
    """Inside the block, the first Ctrl-C, SIGTERM or SIGHUP only sets a flag, so that no step is cut short. A second
    signal has its usual effect. Yields a function: whether the flag is set."""
    asked = False  # not an Event, whose lock a second signal would wait for inside the handler of the first
    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        yield lambda: asked
        return

    def on_interrupt(*_):
        nonlocal asked
        asked = True
        restore()

    def restore():
        for number, handler in before.items():
            signal.signal(number, handler)

    heard = [s for s in STOP_SIGNALS if s == signal.SIGINT or signal.getsignal(s) != signal.SIG_IGN]  # nohup
    before = {number: signal.signal(number, on_interrupt) for number in heard}
    try:
        yield lambda: asked
    finally:
        restore()


# --- the end of a process in which other people's code has run -------------------------------------------------------


def adopt_orphans():
    """Make this process the parent of the processes that its children leave behind. Linux only."""
    if sys.platform == "linux":
        import ctypes

        set_child_subreaper = 36
        ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


def end_at_once(code):
    """End this process without waiting for its threads and handlers of `atexit`, and, on Linux, kill all processes
    below it."""
    deadline = time.monotonic() + 5
    while (below := _descendants(os.getpid())) and time.monotonic() < deadline:
        for pid in below:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with suppress(OSError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    os._exit(code)


def _descendants(pid):
    found = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                children = [int(child) for child in file.read().split()]
            found += [one for child in children for one in (child, *_descendants(child))]
    return found
