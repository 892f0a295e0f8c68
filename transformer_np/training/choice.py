"""From the choice of `workers` to a team. Here alone it makes a difference how many processes were asked for."""

from ..support.checks import check_at_least
from ..support.processes import blas_threads, cores
from .mpi import MPITeam
from .share import most_rows
from .team import Team
from .workers import Workers, can_fork


def team_of(workers):
    """The team that a user's choice stands for: 1, a number of processes, "auto", "mpi", or a Team, which is returned.

    Raises TypeError or ValueError for anything else, ModuleNotFoundError for "mpi" without mpi4py.
    """
    if isinstance(workers, Team):
        return workers
    if workers == "auto":
        return OnePerCore()
    if workers == "mpi":
        return MPITeam()
    check_at_least("workers", workers, 1)
    return Workers(workers) if workers > 1 else Team()


class OnePerCore(Team):
    """A team whose size is open: one process per core, at most one per row of a batch; one process where this system
    cannot run several. It stands in for that team until `for_batches` decides."""

    def __init__(self):
        self._team = Team()  # the last one, whose shared memory the next `fit` uses again

    def for_batches(self, ahead):
        rows = most_rows(ahead)
        if not rows:
            return Team()
        size = min(cores(), rows) if can_fork() and blas_threads() else 1
        if size != self._team.size:
            self._team = team_of(size)
        return self._team
