"""How many threads the matrix library under NumPy (BLAS) uses.

NumPy has no word for it; the library takes the number from the environment when it is loaded, and threadpoolctl asks it
and changes it afterwards.
"""

import os
import signal
from contextlib import contextmanager, nullcontext
from functools import cache

THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def cores():
    """How many processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def thread_variables(number):
    """`with thread_variables(1): …` in which a process that is started will use so many threads. This one does not
    change, nor one that is copied from it."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, str(number)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def blas_threads():
    """How many threads a matrix product may use; None where nothing tells: threadpoolctl is not installed."""
    controller = _controller()
    if controller is None:
        return 1 if os.environ.get("OPENBLAS_NUM_THREADS") == "1" else None
    return max((library["num_threads"] for library in controller.info()), default=1)


def limit_blas_threads(number):
    """`with limit_blas_threads(1): …` in which no matrix product uses more threads. Without threadpoolctl nothing
    changes."""
    controller = _controller()
    return nullcontext() if controller is None else controller.limit(limits=number)


@cache
def _controller():
    """The BLAS libraries that are loaded, which takes a millisecond to find out; None without threadpoolctl."""
    try:
        from threadpoolctl import ThreadpoolController
    except ModuleNotFoundError:
        return None
    return ThreadpoolController().select(user_api="blas")


# --- Ctrl-C while a process is being started -------------------------------------------------------------------------


@contextmanager
def interrupts_blocked():
    """Inside, Ctrl-C waits. A terminal sends it to all processes, and one that has just begun would not know what to do
    with it; those that are begun in here never see it, unless they ask to."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
