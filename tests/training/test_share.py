"""What a process does of a batch: its rows, and of the random numbers those of its rows."""

import numpy as np
import pytest

from transformer_np.training.share import RowDraws
from transformer_np.training.team import Team


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.PCG64DXSM])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_draws_by_rows_are_those_of_the_whole_batch(kind, size):
    rng = np.random.default_rng(size)
    for seed in range(60):
        whole = np.random.Generator(kind(seed))
        members = [RowDraws(np.random.Generator(kind(seed))) for _ in range(size)]
        for _ in range(rng.integers(1, 6)):
            rows = int(rng.integers(1, 6))
            per_row = tuple(rng.integers(1, 4, rng.integers(3)).tolist())
            drawn = whole.random((rows, *per_row), dtype=np.float32)
            for rank, member in enumerate(members):
                team = Team()
                team.rank, team.size = rank, size
                own = team.rows(rows)
                own = own if own.start < own.stop else slice(0, 1)
                member.place = (own.start, own.stop - own.start, rows - own.stop)
                part = member.random((own.stop - own.start, *per_row), dtype=np.float32)
                assert np.array_equal(part, drawn[own])
                states = member.bit_generator.state, whole.bit_generator.state
                assert states[0]["state"] == states[1]["state"]
                assert states[0]["has_uint32"] == states[1]["has_uint32"]
                if states[0]["has_uint32"]:
                    assert states[0]["uinteger"] == states[1]["uinteger"]


def test_draws_that_are_not_by_rows_are_refused():
    draws = RowDraws(np.random.default_rng(0))
    draws.place = (1, 2, 3)
    with pytest.raises(ValueError, match=r"drew \(3, 4\) of .*float32.*, expected 2 rows"):
        draws.random((3, 4), dtype=np.float32)
    with pytest.raises(ValueError, match="expected 2 rows of float32"):
        draws.random((2, 4), dtype=np.float64)
