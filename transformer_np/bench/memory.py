"""Memory of a process and its children."""

import os
import sys
import threading
import time
from contextlib import contextmanager

INTERVAL = 0.02  # seconds between two measurements
LOOKING = 0.05  # of the time at most: with many processes on the machine a measurement takes long


def held(session):
    """The bytes held by all processes of a session, identified by its leader's pid; None without /proc.

    Memory that the processes share counts once. So do mapped files, mainly the code of libraries, even if other
    programs use them too.
    """
    private, files = 0, 0
    for pid in _members(session):
        try:
            proportional = _kilobytes(f"/proc/{pid}/smaps_rollup")
            private += proportional["Pss_Anon"] + proportional["Pss_Shmem"]
            files = max(files, _kilobytes(f"/proc/{pid}/status")["RssFile"])
        except (OSError, KeyError):  # the process has just ended, or the file does not exist
            continue
    return 1024 * (private + files) or None


def _members(session):
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return
    for pid in numbers:
        try:
            if os.getsid(pid) == session:
                yield pid
        except OSError:
            continue


def _kilobytes(path):
    """{Name: 123} from the lines `Name:   123 kB` of a file."""
    found = {}
    with open(path, encoding="ascii", errors="replace") as lines:
        for line in lines:
            words = line.split()
            if len(words) == 3 and words[2] == "kB":
                found[words[0].rstrip(":")] = int(words[1])
    return found


@contextmanager
def watching(session):
    """`with watching(session) as peak: …`; afterwards peak() is the largest measurement of `held`, or None."""
    looks, done = [held(session)], threading.Event()

    def look():
        while not done.is_set():
            started = time.perf_counter()
            looks.append(held(session))
            done.wait(max(INTERVAL, (time.perf_counter() - started) / LOOKING))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield lambda: max(filter(None, looks), default=None)
    finally:
        done.set()
        thread.join()
        looks.append(held(session))


def most_of_this_process():
    """The peak memory of this process in bytes, without its children, for systems without /proc; None if unknown."""
    try:
        import resource
    except ModuleNotFoundError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
