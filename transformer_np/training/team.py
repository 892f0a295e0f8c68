"""Data-parallel training: the members of a team each take some rows of every batch, and their gradients are added.

Every member holds the model and runs the same loop (`Trainer.fit`). Here is what the loop asks of a team, and the team
of one; `workers` has the team of processes on one machine, `mpi` that of processes anywhere, and `share` what a member
has.
"""


class Team:
    """A team of one process, which does everything. The others say what is different with more.

    rank: 0 for the member that shows, measures and saves; size: how many there are
    """

    rank, size = 0, 1

    def for_batches(self, ahead):
        """The team that trains on batches like these: this one, unless its size was left open.

        ahead: an iterator of the next batches, empty where no step is left. Raises ValueError for a team with more
        members than a batch has rows, or a system that cannot run it.
        """
        return self

    def run(self, optimizer, body):
        """body(member) in every process of the team  ->  what the first returned. An error of one ends all."""
        return body(self)

    def total(self, *numbers):
        """Each number's sum over the members, the same everywhere. All members wait here for each other."""
        return numbers

    def add_gradients(self, optimizer):
        """Add up the gradients of all members  ->  the part of the flat buffers that this one has to update, a slice
        in which `optimizer.grad` is now the sum."""
        return slice(0, optimizer.data.size)

    def total_of_parts(self, number):
        """The sum over all the parts that `add_gradients` dealt out."""
        return number

    def updated(self):
        """All members wait until each has updated its part."""

    def gather(self, value):
        """What all members gave, in order, for the first one; the others get None."""
        return [value]

    def rows(self, number):
        """Which of so many rows of a batch are this member's, as a slice: as even as can be, the last ones larger."""
        return slice(*(number * rank // self.size for rank in (self.rank, self.rank + 1)))
