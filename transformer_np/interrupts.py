"""Ctrl-C while a process is being started."""

import signal
from contextlib import contextmanager


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
