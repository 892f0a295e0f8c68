"""The process of the command line. It ends without a traceback even if Ctrl-C arrives while the package is being
imported, or twice in a row, and it goes on if its messages cannot be written."""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # the current folder, which `python -m` adds: it may hold a numpy.py, or submissions to grade

import _thread
import signal
import threading
from contextlib import suppress

INTERRUPTED = 130


class Messages:
    """Standard error, from which a text that cannot be written is dropped: a log file on a full disk must not end a
    training run."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, text):
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self):
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name):
        return getattr(self._stream, name)


def again_later(ignored):
    """`sys.unraisablehook`: Python prints and forgets a Ctrl-C that meets one of its callbacks, as that of its import
    lock; here it comes again when the callback has returned."""
    if not issubclass(ignored.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(ignored)
        return
    try:
        threading.Timer(0.01, _thread.interrupt_main).start()
    except KeyboardInterrupt:  # on a busy machine it comes before `start` has returned
        again_later(ignored)


def main():
    """Run the command of sys.argv and return its exit code. If it has executed a student's file, end the process: the
    file's threads, exit handlers and child processes would go on."""
    if sys.argv[1:2] == ["homework"] and sys.argv[2:3] != ["grade"]:  # grading has walls for that
        from .support.processes import adopt_orphans

        adopt_orphans()  # what a student's file leaves behind ends with the command
    code = _run()
    exec("")  # Python remembers a Ctrl-C that met an `exec` of text, as a dataclass is made, until the next one
    if "transformer_np.homework.loading" in sys.modules:
        from .support.processes import end_at_once

        end_at_once(code)
    return code


def _run():
    if sys.stderr is not None:
        sys.stderr = Messages(sys.stderr)
    sys.unraisablehook = again_later
    try:
        try:
            from .cli import main as run

            return run()
        except KeyboardInterrupt:  # before `run` handles it, or while it handles the first one
            return interrupted()
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the exit code is decided
    except KeyboardInterrupt:  # a second one, before it was ignored
        return interrupted()


def interrupted():
    """Say that Ctrl-C was pressed, and hear no further one; the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("transformer-np: error: interrupted", file=sys.stderr)
    return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
