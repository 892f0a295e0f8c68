"""A team of processes on any number of machines, started and connected by MPI: `mpiexec -n 4 python train.py`.

Each process holds the whole model and updates a part of it: a reduce-scatter adds up the gradients of that part, and an
all-gather collects the parameters. The two send as much as one all-reduce of the gradients (Rajbhandari et al. 2020).
"""

import os
import sys
import time
from contextlib import contextmanager, suppress
from functools import cache

import numpy as np

from ..support.platform import check_processes
from .share import check_enough_rows
from .team import Team

# variables that the launchers set for their processes: MPICH and Intel MPI, Open MPI, MVAPICH, PMIx (Slurm)
_LAUNCHED = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMIX_RANK")
_HEAD_START = 1.0  # seconds in which only the first rank reports an error, so that an error of all is reported once
_TO_BE_HEARD = 0.3  # seconds for mpiexec to read the output: unread output is lost when all processes are stopped


def launched_by_mpi():
    """Whether mpiexec started this process."""
    return any(name in os.environ for name in _LAUNCHED)


def connect():
    """Connect to the other processes that mpiexec started. Afterwards, an error in one process ends all of them.

    ->  the module MPI of mpi4py
    """
    check_processes("MPI needs")
    mpi = _mpi()
    if mpi.COMM_WORLD.size > 1:
        _abort_on_errors()
    return mpi


class MPITeam(Team):
    """All processes of MPI's world. An error in one is printed and stops all others (MPI_Abort).

    Raises ModuleNotFoundError without mpi4py or an MPI library, and ValueError where there are no processes.
    """

    def __init__(self):
        self._mpi = connect()
        self.comm = self._mpi.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size

    def for_batches(self, rows, time_step=None):
        if rows := rows():
            check_enough_rows(self.size, rows)
        return self

    def run(self, optimizer, body):
        steps = self.comm.allgather(optimizer.steps)
        if len(set(steps)) > 1:
            raise ValueError(f"the processes have done different numbers of steps: {steps}; do they share one folder?")
        self.comm.Bcast(optimizer.data)  # all start with the values of the first
        try:
            return body(self)
        except SystemExit as end:  # does not reach sys.excepthook
            with last_words(1):
                print(f"process {self.rank} left the training: sys.exit({end.code!r})", file=sys.stderr)
            raise

    def total(self, *numbers):
        numbers = np.array(numbers, np.float64)
        self.comm.Allreduce(self._mpi.IN_PLACE, numbers)
        return tuple(numbers.tolist())

    def add_gradients(self, optimizer):
        part, sizes = optimizer.part(self.rank, self.size), self._sizes(optimizer)
        total = np.empty(sizes[self.rank], optimizer.grad.dtype)
        self.comm.Reduce_scatter(optimizer.grad, total, sizes)
        optimizer.grad[part] = total
        return part

    def updated(self, optimizer):
        self._join(optimizer.data, optimizer)

    def share_averages(self, optimizer):
        for average in optimizer.averages.values():
            self._join(average, optimizer)

    def _join(self, buffer, optimizer):
        self.comm.Allgatherv(self._mpi.IN_PLACE, [buffer, self._sizes(optimizer)])

    def _sizes(self, optimizer):
        """How many elements each process updates."""
        parts = [optimizer.part(rank, self.size) for rank in range(self.size)]
        return [part.stop - part.start for part in parts]

    def gather(self, value):
        return self.comm.gather(value)


@contextmanager
def last_words(code):
    """A process that fails inside the block prints its error before it ends. If mpiexec started the process, it then
    stops the others, which would wait for it, and mpiexec ends with this exit code. The first rank prints first, so
    that an error of all processes is printed once."""
    connected = launched_by_mpi() and "mpi4py.MPI" in sys.modules
    world = _mpi().COMM_WORLD if connected else None
    if connected and world.rank:
        time.sleep(_HEAD_START)
    try:
        yield
    finally:
        if connected:
            for stream in (sys.stdout, sys.stderr):
                with suppress(Exception):  # a broken stream must not make the others wait
                    stream.flush()
            time.sleep(_TO_BE_HEARD)
            world.Abort(code)


@cache
def _abort_on_errors():
    """Make an uncaught error stop all processes after it is printed."""
    hook = sys.excepthook

    def abort(*error):
        with last_words(1):
            hook(*error)

    sys.excepthook = abort


def _mpi():
    """The module MPI of mpi4py, which connects to the other processes when it is first imported."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # the package, or the library that it calls
        what = f"mpiexec needs mpi4py and an MPI library ({error}): pip install mpi4py mpich"
        raise ModuleNotFoundError(what) from None
    return MPI
