"""What a process does of a batch: its rows, and of the random numbers those of its rows."""

from types import SimpleNamespace

import numpy as np
import pytest

from transformer_np.layers import Linear
from transformer_np.training import Adam, NextToken, Trainer, load_checkpoint
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
                parts = ["state", "has_uint32"] + ["uinteger"] * states[0]["has_uint32"]
                assert all(states[0][part] == states[1][part] for part in parts)


def test_draws_that_are_not_by_rows_are_refused():
    draws = RowDraws(np.random.default_rng(0))
    draws.place = (1, 2, 3)
    with pytest.raises(ValueError, match=r"drew \(3, 4\) of .*float32.*, expected 2 rows"):
        draws.random((3, 4), dtype=np.float32)
    with pytest.raises(ValueError, match="expected 2 rows of float32"):
        draws.random((2, 4), dtype=np.float64)


@pytest.mark.parametrize(("rows", "size"), [(8, 4), (10, 4), (3, 5)])
def test_the_members_share_the_rows_evenly(rows, size):
    team, slices = Team(), []
    team.size = size
    for team.rank in range(size):
        slices.append(team.rows(rows))
    assert [row for own in slices for row in range(rows)[own]] == list(range(rows))
    numbers = [own.stop - own.start for own in slices]
    assert max(numbers) - min(numbers) <= 1


def test_a_checkpoint_has_the_averages_of_all_members(tmp_path):
    class Sharing(Team):
        def share_averages(self, optimizer):  # as if another member had this slice
            optimizer.averages["m"][:3] = 7

    model = Linear(3, 4, rng=0)
    trainer = Trainer(model, Adam(model.parameters()), NextToken(model), checkpoint=tmp_path / "c", workers=Sharing())
    trainer.fit(SimpleNamespace(batch=None), 0)
    tensors, _ = load_checkpoint(tmp_path / "c")
    assert tensors["optimizer.m"][:4].tolist() == [7, 7, 7, 0]
