"""From the choice of `workers` to a team: the only place that tells 1, a number, "auto" and "mpi" apart."""

from ..support.checks import check_at_least
from ..support.processes import blas_threads, cores
from .mpi import MPITeam
from .share import most_rows
from .team import Team
from .workers import Workers, can_fork


def team_of(workers):
    """The team for a user's choice: a number of processes, "auto", "mpi", or a Team, which is returned as it is.

    Raises TypeError or ValueError for anything else, and ModuleNotFoundError for "mpi" without mpi4py.
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
    """A team whose size is still open. `for_batches` decides: one process per core, but at most one per row of a batch,
    and a single process if this system cannot run several."""

    def __init__(self):
        self._team = Team()  # of the last `fit`: the next one uses its shared memory again

    def for_batches(self, ahead):
        rows = most_rows(ahead)
        if not rows:
            return Team()
        size = min(cores(), rows) if can_fork() and blas_threads() else 1
        if size != self._team.size:
            self._team = team_of(size)
        return self._team
