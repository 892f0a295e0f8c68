"""A limit on the time of a student's code, which may never end.

On POSIX, in the main thread, a timer sends SIGALRM and its handler raises. Elsewhere a second thread has Python raise
in the first one. Where no thread can be started, as in a browser, Python looks at the clock at each call and each turn
of a loop. All three wait for the next line of Python: code in C that does not return, such as sum(range(10**12)),
cannot be stopped from inside the process. After another GRACE seconds `faulthandler`, which needs no Python, prints the
lines that are running and, for a command, ends the process; in a browser, the page ends it.
"""

import contextlib
import ctypes
import faulthandler
import signal
import sys
import threading
import traceback

from ..support.platform import clock_watched
from .guard import is_installed, is_students

SECONDS = 10.0  # for one exercise
GRACE = 5.0  # until code in C counts as stuck
_AGAIN = 0.5  # seconds until TookTooLong is raised again: a bare `except:` in a loop may have caught it


class TookTooLong(KeyboardInterrupt):
    """The time is over. Like Ctrl-C, so that neither `except Exception` nor `attempt` catches it."""


class Stopped(Exception):
    """A student's code was stopped; `trace` has the lines that were running, as Python prints them."""

    def __init__(self, seconds, trace):
        super().__init__(f"it took longer than {seconds:g} s")
        self.seconds, self.trace = seconds, trace


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while a student's code was running; its text says where."""


def running_lines(frames):
    """The student's lines among these frames, as Python prints them."""
    own = [frame for frame in frames if is_students(frame.filename)]
    return "".join(traceback.format_list(own[-4:])).rstrip()


class TimeLimit:
    """seconds: for the code inside one `with limit(…):`; ends_process: whether code in C that does not return ends it
    tell: called with the seconds until somebody else must end that process, and with 0 when the code has ended
    stderr: the number of the file that the lines of such code go to, if it is not the usual one

    stopped_in: the names of the functions that were running when the time was last over
    """

    def __init__(self, seconds=SECONDS, ends_process=False, tell=lambda seconds: None, stderr=None):
        if not isinstance(seconds, int | float) or not seconds > 0:
            raise ValueError(f"the time limit must be a number of seconds above 0, got {seconds!r}")
        self.seconds, self.ends_process, self.tell, self.stderr = seconds, ends_process, tell, stderr
        self.stopped_in = frozenset()

    @contextlib.contextmanager
    def __call__(self, what):
        """Inside the block, a student's code may run for `seconds`. Raises Stopped when the time is over, even if the
        code catches TookTooLong, and Interrupted for Ctrl-C. what: the subject of its message, "softmax". Yields a
        function that tells whether the time is over.
        """
        frames = []  # at the moment when the time was over, starting with the frame of the `with`
        outside = len(list(traceback.walk_stack(sys._getframe(2))))

        def over(stack):
            if not frames:
                frames.extend(traceback.extract_stack(stack)[outside - 1 :])

        on_main = threading.current_thread() is threading.main_thread()
        watched = _by_signal if on_main and hasattr(signal, "setitimer") else _by_thread
        self.tell(self.seconds + GRACE)
        try:
            with _c_code_watched(self.seconds + GRACE, self.ends_process, self.stderr), watched(self.seconds, over):
                yield lambda: bool(frames)
        except TookTooLong:
            pass
        except KeyboardInterrupt as error:
            if isinstance(error, Interrupted):
                raise
            lines = running_lines(traceback.extract_tb(error.__traceback__))
            where = f" This line was running:\n{lines}" if lines else ""
            raise Interrupted(f"{what}: interrupted.{where}") from None
        finally:
            self.tell(0)
        if frames:
            self.stopped_in = frozenset(frame.name for frame in frames)
            raise Stopped(self.seconds, running_lines(frames)) from None


@contextlib.contextmanager
def _by_signal(seconds, over):
    inside = False

    def on_alarm(_, stack):
        # Raised while the `with` itself is entered or left, it would leave the timer running, and the next alarm would
        # end the process. If the block goes on, the alarm comes again.
        if inside and stack.f_code.co_filename not in (__file__, contextlib.__file__):
            over(stack)
            raise TookTooLong

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        inside = True
        yield
    finally:
        inside = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _by_thread(seconds, over):
    watched, done, lock = threading.get_ident(), threading.Event(), threading.Lock()
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc

    def watch():
        wait = seconds
        while not done.wait(wait):
            with lock:
                if not done.is_set():
                    over(sys._current_frames()[watched])
                    raise_in(ctypes.c_ulong(watched), ctypes.py_object(TookTooLong))
            wait = _AGAIN

    def stop():
        with lock:
            done.set()

    def on_time(stack):
        over(stack)
        raise TookTooLong

    watching = threading.Thread(target=watch, name="time limit", daemon=True)
    try:
        watching.start()
    except RuntimeError:  # a browser has one thread
        with clock_watched(seconds, _AGAIN, on_time, is_installed):
            yield
        return
    try:
        yield
    finally:
        # An exception that is not delivered yet arrives at a call. It must not be taken back with NULL: CPython 3.11
        # would then wait for it forever at the first function that a debugger or a profiler traces.
        try:
            stop()
            stop()
        except TookTooLong:
            stop()


@contextlib.contextmanager
def _c_code_watched(seconds, ends_process, stderr):
    """Inside the block, print the running lines of all threads to stderr after these seconds."""
    with contextlib.ExitStack() as undo:
        # not for a stderr without a file, as in pythonw, nor where there is no thread
        with contextlib.suppress(AttributeError, OSError, ValueError, RuntimeError):
            file = sys.__stderr__ if stderr is None else stderr
            faulthandler.dump_traceback_later(seconds, exit=ends_process, file=file)
            undo.callback(faulthandler.cancel_dump_traceback_later)
        yield
