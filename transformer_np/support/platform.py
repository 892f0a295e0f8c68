"""What the operating system offers. In a browser, Python (Pyodide) has no processes, threads or timers, and its drive
may have no atomic renames; JupyterLite puts empty modules in the place of fcntl and resource."""

import contextlib
import os
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path


def in_browser():
    return sys.platform in ("emscripten", "wasi")


if in_browser():  # in some, the clock of processor time stands still: who waits for it waits forever
    time.process_time = time.perf_counter


def can_fork():
    """Whether this system can fork a process. (macOS can, but its matrix library breaks.)"""
    return hasattr(os, "fork") and sys.platform != "darwin" and not in_browser()


def check_processes(what):
    """Raise ValueError where no process can be started. what: "grading needs" """
    if in_browser():
        raise ValueError(f"{what} other processes, and Python in a browser has none: use Python on a computer")


def module_with(name, function):
    """The module of this name, or None if it is missing or lacks the function."""
    with suppress(ModuleNotFoundError):
        module = import_module(name)
        return module if hasattr(module, function) else None


# --- a drive without atomic renames ----------------------------------------------------------------------------------


def write_in_place(path, write):
    """Call `write(temporary path)` in memory, then put the bytes over those of the file `path`.

    No .json file is cut, not even for a moment: the drive of JupyterLite waits forever at one that is not JSON. A tab
    that is closed at that moment can leave a mixture of old and new, but no lost file.
    """
    with tempfile.TemporaryDirectory() as memory:
        temporary = Path(memory) / path.name
        temporary.touch()
        write(temporary)
        data = temporary.read_bytes()
    if path.suffix == ".json" and path.exists():
        with open(path, "r+b", buffering=0) as file:
            file.write(data.ljust(os.fstat(file.fileno()).st_size))  # spaces at its end mean nothing
    else:
        path.write_bytes(data)


# --- a timer without signals and threads -----------------------------------------------------------------------------


@contextmanager
def clock_watched(seconds, again, over, is_library):
    """Inside the block, call `over(frame)` when the time is over and every `again` seconds after that.

    Python looks at the clock at each call and each turn of a loop, except in code of files with is_library(filename).
    Does nothing in Python 3.11, which lacks sys.monitoring and runs in no browser, and inside another such block, whose
    time ends earlier.
    """
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is None or monitoring.get_tool(monitoring.PROFILER_ID) is not None:
        yield
        return
    tool, end = monitoring.PROFILER_ID, time.monotonic() + seconds
    events = monitoring.events.PY_START, monitoring.events.PY_RESUME, monitoring.events.JUMP
    own = __file__, contextlib.__file__  # nothing may interrupt the end of this block

    def look(code, *_):
        nonlocal end
        if code.co_filename in own or is_library(code.co_filename):
            return monitoring.DISABLE
        if time.monotonic() > end:
            end = time.monotonic() + again
            over(sys._getframe(1))

    monitoring.use_tool_id(tool, "time limit")
    try:
        for event in events:
            monitoring.register_callback(tool, event, look)
        monitoring.set_events(tool, sum(events))
        yield
    finally:
        with suppress(ValueError):  # the watched code has freed it
            monitoring.set_events(tool, 0)
            monitoring.free_tool_id(tool)
