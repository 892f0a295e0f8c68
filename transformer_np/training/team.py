"""Data-parallel training: each member of a team takes some rows of every batch, and their gradients are added.

Every member holds the model and runs the same loop (`Trainer.fit`). This file has the interface between loop and team,
and the team of one process. `workers` has the team of processes on one machine, `mpi` has the team of processes on
several machines, `choice` decides between them, and `share` has one member's part of the work.
"""


class Team:
    """A team of one process, which does all the work. Subclasses are teams of several processes.

    rank: 0 for the leader, which shows progress, measures and saves; size: the number of members
    reason: why the team has this size, a line of text, if the size was left open
    """

    rank, size = 0, 1
    reason = ""

    def for_batches(self, rows, time_step=None):
        """The team that trains on batches like these: this one, unless its size was left open.

        rows: rows() -> the size of a large batch; 0 if no step is left
        time_step: time_step(team) -> the measured seconds of a step with a team; None if that is not worth the time

        Raises ValueError if the team has more members than a batch has rows, or if this system cannot run it.
        """
        return self

    def run(self, optimizer, body):
        """Run body(member) in every process of the team  ->  the result of the leader. An error in one ends all."""
        return body(self)

    def total(self, *numbers):
        """The sum of each number over all members, returned to all of them. All members wait here for each other."""
        return numbers

    def add_gradients(self, optimizer):
        """Add up the gradients of all members  ->  the slice of the flat buffers that this member has to update. In
        that slice, `optimizer.grad` is now the sum."""
        return slice(0, optimizer.data.size)

    def updated(self, optimizer):
        """Wait until every member has updated its slice; then all have all parameters."""

    def share_averages(self, optimizer):
        """Give all members the optimizer's running averages of all slices, before they are saved."""

    def gather(self, value):
        """The values of all members, in order, for the first member; None for the others."""
        return [value]

    def rows(self, number):
        """This member's slice of `number` rows. Their sizes differ by one row at most."""
        return slice(*(number * rank // self.size for rank in (self.rank, self.rank + 1)))
