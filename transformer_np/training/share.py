"""One member's part of a training run: its rows of each batch, their dropout, and the state that the objective carries
from one batch to the next."""

import math
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace

import numpy as np

from ..support.checks import check_has
from ..support.counts import counted
from .team import Team


class Share:
    """The share of one member. In a team of one, the share is the whole batch, and nothing is joined.

    tokens_at_once: see Trainer; an objective with a state takes all of its rows at once
    objective: .count(batch), the number of tokens that count. An objective with a state also has .state_dict(),
    .load_state_dict(state), .state_of_rows(state, rows) and .join_states(states).
    """

    def __init__(self, model, objective, team=None, tokens_at_once=None):
        self.model, self.objective, self.team = model, objective, team or Team()
        self._at_once = None if hasattr(objective, "state_dict") else tokens_at_once
        self._cuts = self.team.size > 1 or self._at_once is not None
        self._draws = []
        if self._cuts:
            check_has("objective", objective, "count")

    @contextmanager
    def taken(self, batches, step):
        """Inside the block, the member has its share of the carried state and of the random numbers, cut like the batch
        of that step. Afterwards the first member has the whole carried state."""
        if not self._cuts:
            yield
            return
        if carried := self._carried():
            rows = self.team.rows(number_of_rows(batches.batch(step)))
            self.objective.load_state_dict(self.objective.state_of_rows(carried, rows))
        with drawing_by_rows(self.model) as self._draws:
            yield
        if carried := self.all_carried():
            self.objective.load_state_dict(carried)

    def pieces(self, batch):
        """Yield the member's rows of a batch in pieces that are computed one after the other, each with its share of
        the tokens of the batch that count, in [0, 1]."""
        if not self._cuts:
            yield batch, 1.0
            return
        number, counted = number_of_rows(batch), max(1, self.objective.count(batch))
        own = self.team.rows(number)
        idle = own.start == own.stop  # more members than rows: take the first row, with a share of 0
        size = 1 if idle else own.stop - own.start
        begin, pieces = 0 if idle else own.start, self._pieces(batch, size, number)
        drawn = [draws.bit_generator.state for draws in self._draws] if pieces > 1 else []
        for n in range(pieces):
            rows = slice(begin + size * n // pieces, begin + size * (n + 1) // pieces)
            for draws, state in zip(self._draws, drawn, strict=False):  # every piece draws from where the batch does
                draws.bit_generator.state = state
            for draws in self._draws:
                draws.place = (rows.start, rows.stop - rows.start, number - rows.stop)
            part = take_rows(batch, rows)
            yield part, 0.0 if idle else self.objective.count(part) / counted

    def _pieces(self, batch, size, number):
        """The number of pieces for `size` of the rows."""
        if self._at_once is None:
            return 1
        tokens = size * max(array.size for array in _arrays(batch).values()) // number
        return min(size, -(-tokens // self._at_once))

    def all_carried(self):
        """The joined state of all members' objectives, for the first member; {} if there is none."""
        if not hasattr(self.objective, "state_dict"):
            return {}
        states = self.team.gather(self._carried())
        if self.team.size == 1:
            return states[0]
        return self.objective.join_states(states) if states else {}

    def _carried(self):
        return self.objective.state_dict() if hasattr(self.objective, "state_dict") else {}


def number_of_rows(batch):
    """The number of rows of a batch, a dataclass of arrays: the size of their first axis."""
    if not is_dataclass(batch):
        raise TypeError(f"workers share a batch that is a dataclass of arrays, not a {type(batch).__name__}")
    numbers = {len(array) for array in _arrays(batch).values()}
    if len(numbers) != 1:
        raise ValueError(f"the arrays of a batch must have one row for each example, got {sorted(numbers)} rows")
    return numbers.pop()


def most_rows(batches, first, last):
    """The size of a large batch, 0 if no step is left: the largest of at most three, or the size that the batches have
    on average. One batch may be small: the last of an epoch, or one with a long sentence."""
    ahead = [number_of_rows(batches.batch(step)) for step in range(first, min(first + 3, last))]
    return max(*ahead, getattr(batches, "batch_size", 0)) if ahead else 0


def check_enough_rows(size, rows):
    """Raise ValueError if a team has more members than a batch has rows."""
    if size > rows:
        raise ValueError(f"{size} workers cannot share a batch of {counted(rows, 'row')}")


def take_rows(batch, rows):
    """The batch with only these rows (a slice) of its arrays, still padded to the length of the whole batch."""
    return replace(batch, **{name: array[rows] for name, array in _arrays(batch).items()})


def _arrays(batch):
    """The fields that are arrays with rows, by name."""
    values = {f.name: getattr(batch, f.name) for f in fields(batch)}
    return {name: array for name, array in values.items() if isinstance(array, np.ndarray) and array.ndim}


class RowDraws(np.random.Generator):
    """A generator for some rows of a batch. It draws the numbers that the given generator would draw for these rows
    within the whole batch, and leaves that generator in its state after the whole batch. So dropout drops the same
    entries, and the generator ends in the same state, for any number of members.

    place: (rows before, own rows, rows after), set for each batch
    """

    def __init__(self, generator):
        if not isinstance(generator.bit_generator, np.random.PCG64 | np.random.PCG64DXSM):  # others skip differently
            kind = type(generator.bit_generator).__name__
            raise ValueError(f"with several workers dropout must draw from a PCG64, which can skip, not {kind}")
        super().__init__(generator.bit_generator)
        self.place = (0, 0, 0)

    def random(self, size, dtype=np.float32):
        before, own, after = self.place
        if size[0] != own or dtype != np.float32:
            raise ValueError(f"drew {size} of {dtype}, expected {own} rows of float32")
        per_row = math.prod(size[1:])
        self._skip(before * per_row)
        drawn = super().random(size, dtype=dtype)
        self._skip(after * per_row)
        return drawn

    def _skip(self, count):
        """Skip `count` float32 draws. One step of the bit generator gives two of them."""
        if count and self.bit_generator.state["has_uint32"]:
            super().random(dtype=np.float32)
            count -= 1
        if count:
            self.bit_generator.advance(count // 2)
            super().random(count % 2, dtype=np.float32)


@contextmanager
def drawing_by_rows(model):
    """Inside the block, the modules of the model draw from RowDraws  ->  the list of these RowDraws."""
    drawing = [module for _, module in model.named_modules() if hasattr(module, "rng")]
    generators = [module.rng for module in drawing]
    draws = {id(generator): RowDraws(generator) for generator in model.generators()}

    for module, generator in zip(drawing, generators, strict=True):
        module.rng = draws[id(generator)]
    try:
        yield list(draws.values())
    finally:
        for module, generator in zip(drawing, generators, strict=True):
            module.rng = generator
