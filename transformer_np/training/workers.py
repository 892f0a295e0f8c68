"""A team of processes on one machine. They share the memory of the parameters and of the optimizer's averages; each has
its own gradients and intermediate values.

Processes, not threads: a small step consists largely of Python code, and Python runs one thread at a time.
"""

import mmap
import multiprocessing
import sys
import traceback
import warnings
from contextlib import suppress
from multiprocessing.reduction import ForkingPickler

import numpy as np

from ..support.platform import can_fork, check_processes
from ..support.processes import STOP_SIGNALS, blas_threads, interrupts_blocked, limit_blas_threads
from .share import check_enough_rows
from .team import Team


class _Gone(Exception):
    """The process of this rank, at the other end of a pipe, has ended."""


class Workers(Team):
    """`size` processes, including this one as the first. `run` forks the others and joins them before returning.

    If the first process dies, the others end too, because their pipe to it breaks. They leave nothing behind, because
    the shared memory has no name. While processes are being forked, no other thread may run a matrix product: OpenBLAS
    would wait forever.

    `for_batches` raises ValueError if processes cannot be forked or NumPy's own threads cannot be limited. `run` raises
    the error of a worker, and ChildProcessError for a worker that ended without one.
    """

    def __init__(self, size):
        self.size = size
        self._gradients, self._moved = [], None

    def for_batches(self, rows, time_step=None):
        rows = rows()
        if not rows:
            return Team()  # no step is left to share
        check_enough_rows(self.size, rows)
        check_processes("several workers need")
        if not can_fork():
            raise ValueError(f"workers need a system that forks processes, {sys.platform} does not: use MPI instead")
        if blas_threads() is None:
            how = "pip install threadpoolctl, or set OPENBLAS_NUM_THREADS=1 before Python starts"
            raise ValueError(f"workers share the cores with the threads of NumPy's matrix library: {how}")
        return self

    def run(self, optimizer, body):
        self._threads = max(1, (blas_threads() or 1) // self.size)  # of the matrix library, in each process
        if self._moved is not optimizer.data:  # a second run uses the same memory
            optimizer.move(_shared)
            self._moved = optimizer.data
            self._gradients = [_shared(optimizer.grad.size, optimizer.grad.dtype) for _ in range(self.size)]
        fork = multiprocessing.get_context("fork")
        pipes = [fork.Pipe() for _ in range(1, self.size)]  # (end of the first process, end of the other)
        processes = [
            fork.Process(target=self._work, args=(rank, pipes, optimizer, body), daemon=True)
            for rank in range(1, self.size)
        ]
        try:
            with interrupts_blocked(STOP_SIGNALS), warnings.catch_warnings():
                # Python warns that a forked process waits forever for a lock that another thread of this process holds,
                # because that thread is not copied. Our processes need no such lock: they run NumPy, whose matrix
                # library is prepared for a fork, and use their pipe.
                warnings.filterwarnings("ignore", ".*is multi-threaded, use of fork", DeprecationWarning)
                for process in processes:
                    process.start()
            for _, other in pipes:  # now only the other process holds this end, and it closes when that process ends
                other.close()
            self._ends = {rank: own for rank, (own, _) in enumerate(pipes, start=1)}
            optimizer.move_gradients(self._gradients[0])
            with limit_blas_threads(self._threads):
                result = body(self)
            for process in processes:
                process.join()
            return result
        except _Gone as gone:
            (rank,) = gone.args
            raise ChildProcessError(f"worker {rank} died ({_how_it_ended(processes[rank - 1])})") from None
        finally:
            for own, other in pipes:
                own.close()
                other.close()
            for process in processes:
                if process.pid is not None:  # it was started
                    process.kill()
                    process.join()

    def _work(self, rank, pipes, optimizer, body):
        """The whole life of the process with this rank."""
        self.rank = rank
        for number, (first, other) in enumerate(pipes, start=1):
            first.close()
            if number != rank:
                other.close()
        _, end = pipes[rank - 1]
        self._ends = {0: end}
        optimizer.move_gradients(self._gradients[rank])
        try:
            with limit_blas_threads(self._threads):
                body(self)
        except _Gone:
            pass
        except BaseException as error:
            error.add_note(f"in worker {rank}:\n{traceback.format_exc()}")
            with suppress(_Gone):  # the first has ended, perhaps by the same error
                self._say(0, _portable(error))

    # --- messages between the members ----------------------------------------------------------------------------

    def gather(self, value):
        """As `Team.gather`; raises the errors of the others."""
        if self.rank:
            self._say(0, value)
            return None
        values = [value, *(self._hear(rank) for rank in self._ends)]
        for error in values:
            if isinstance(error, BaseException):
                raise error
        return values

    def _answer(self, value=None):
        """Send a value from the leader to all others  ->  that value."""
        if self.rank:
            return self._hear(0)
        for rank in self._ends:
            self._say(rank, value)
        return value

    def _say(self, rank, value):
        try:
            self._ends[rank].send(value)
        except OSError:
            raise _Gone(rank) from None

    def _hear(self, rank):
        try:
            return self._ends[rank].recv()
        except (EOFError, OSError):  # between two messages, within one
            raise _Gone(rank) from None

    def total(self, *numbers):
        said = self.gather(numbers)
        return self._answer(said and tuple(sum(column) for column in zip(*said, strict=True)))

    def add_gradients(self, optimizer):
        """Each member adds up its own slice, in its own buffer. Every gradient is complete, because `total` was called
        before; and no member starts on the next gradient until all have called `updated`."""
        part = optimizer.part(self.rank, self.size)
        own = self._gradients[self.rank][part]
        for rank, other in enumerate(self._gradients):
            if rank != self.rank:
                own += other[part]
        return part

    def updated(self, optimizer):
        self.gather(None)
        self._answer()


def _how_it_ended(process):
    process.join(timeout=1)
    if process.exitcode is not None and process.exitcode < 0:
        return f"killed by signal {-process.exitcode}: did it run out of memory?"
    return f"exit code {process.exitcode}"


def _portable(error):
    """The error if it can be sent through a pipe, else a RuntimeError with the same message."""
    try:
        ForkingPickler.loads(ForkingPickler.dumps(error))
        return error
    except Exception:
        other = RuntimeError(f"{type(error).__name__}: {error}")
        for note in error.__notes__:
            other.add_note(note)
        return other


def _shared(size, dtype):
    """An array of zeros that processes share if they are forked after this. Its memory has no name to leave behind."""
    return np.frombuffer(mmap.mmap(-1, max(1, size) * np.dtype(dtype).itemsize), dtype, size)
