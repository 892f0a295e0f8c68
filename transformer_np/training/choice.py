"""From the choice of `workers` to a team: only this file distinguishes 1, a number, "auto" and "mpi". The choice "auto"
measures how long a step takes: a few steps are timed, and leave no trace."""

import statistics
import time

from ..support.checks import check_at_least
from ..support.platform import can_fork
from ..support.processes import blas_threads, cores
from .mpi import MPITeam
from .team import Team
from .workers import Workers

LEAST_TO_MEASURE = 20  # remaining steps: with fewer, timing some is not worth it
MOST_REHEARSALS, REHEARSAL_SECONDS = 6, 0.5
WORTH = 0.95  # of the time of one process: a team that saves less is not used


def team_of(workers):
    """The team for a user's choice: a number of processes, "auto", "mpi", or a Team, which is returned as it is.

    Raises TypeError or ValueError for anything else, and ModuleNotFoundError for "mpi" without mpi4py.
    """
    if isinstance(workers, Team):
        return workers
    if isinstance(workers, str) and workers == "auto":
        return OnePerCore()
    if isinstance(workers, str) and workers == "mpi":
        return MPITeam()
    check_at_least("workers", workers, 1)
    return Workers(workers) if workers > 1 else Team()


class OnePerCore(Team):
    """A team whose size is still open. `for_batches` decides: one process per core, but at most one per row of a batch,
    and a single process if several would be no faster or if this system cannot run several."""

    def __init__(self):
        self._team = Team()  # of the last `fit`: the next one reuses its shared memory
        self._most = 1  # the number of processes that were possible for that team

    def for_batches(self, rows, time_step=None):
        rows = rows()
        if not rows:
            return Team()
        size = min(cores(), rows) if can_fork() and blas_threads() else 1
        if size == self._most:
            return self._team
        self._team, self._most = team_of(size), size
        if size > 1 and time_step is not None:
            alone, shared = time_step(Team()), time_step(self._team)
            if shared > WORTH * alone:
                self._team = Team()
            times = f"a step takes {1000 * alone:.1f} ms with one process, {1000 * shared:.1f} ms with {size}"
            self._team.reason = f"processes: {self._team.size} ({times})"
        return self._team


def seconds_per_step(trainer, batches, team):
    """The median of a few steps that change only the gradients, which every step clears."""

    def rehearse(member):
        seconds = []
        with trainer.sharing(member, batches) as share:
            batch = batches.batch(trainer.step)
            while len(seconds) < 2 or (len(seconds) < MOST_REHEARSALS and sum(seconds) < REHEARSAL_SECONDS):
                started = time.perf_counter()
                trainer.optimizer.zero_grad()
                for part, weight in share.pieces(batch):
                    trainer.objective.forward(part)
                    trainer.objective.backward(weight)
                member.total(0.0)
                member.add_gradients(trainer.optimizer)
                member.updated(trainer.optimizer)
                seconds += member.total(time.perf_counter() - started)  # the same for all: they stop together
        return statistics.median(seconds[1:]) / member.size  # the first step warms up

    with trainer.state.restored():
        trainer.model.train()
        return team.run(trainer.optimizer, rehearse)
