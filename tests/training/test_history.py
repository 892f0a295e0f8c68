"""The losses of all steps: in a file beside the checkpoint, not in memory, and exact after a crash."""

from types import SimpleNamespace

import numpy as np
import pytest

from transformer_np import plots
from transformer_np.data import TextBatches
from transformer_np.models import GPT, GPTConfig
from transformer_np.training import Adam, History, NextToken, Trainer, load_checkpoint, save_checkpoint
from transformer_np.training.history import Record, history_path


def batch(step):
    """Random ids: every step has another loss."""
    return TextBatches(np.random.default_rng(step).integers(7, size=20), 3, 2).batch(0)


def trained(path, steps, resume=False, **options):
    model = GPT(GPTConfig(7, max_len=3, d_model=4, num_heads=1, num_layers=1))
    trainer = Trainer(model, Adam(model.parameters(), 0.01), NextToken(model), checkpoint=path)
    if resume:
        trainer.resume()
    trainer.fit(SimpleNamespace(batch=batch), steps, progress=False, **options)
    return trainer


def test_losses_and_rates_are_lists_wherever_the_rows_are(tmp_path, rng):
    rows = rng.random((23, 2))
    record = Record()
    history = record.history()
    for number, row in enumerate(rows, 1):
        record.append(*row)
        if number in (4, 11):
            record.save(tmp_path / "file")
        assert [history.losses, history.learning_rates] == rows[:number].T.tolist()
    assert "23 steps" in repr(history)


def test_neither_memory_nor_checkpoint_grows(tmp_path):
    def size(steps):
        trainer = trained(tmp_path / f"{steps}", steps)
        assert not trainer.state.record._rest
        assert history_path(tmp_path / f"{steps}").stat().st_size == 16 * steps
        return {name: array.nbytes for name, array in load_checkpoint(tmp_path / f"{steps}")[0].items()}

    assert size(2) == size(30)


def test_rows_after_the_checkpoint_are_cut_off(tmp_path):
    """Of a process that died between the two files, or in the middle of a row."""
    straight = trained(tmp_path / "rate_0.1", 9)
    path = tmp_path / "rate_0.01"  # .01 is no ending to replace
    trained(path, 5)
    assert len(straight.history.losses) == 9
    for leftover in (b"x" * 7, b"x" * 160):
        before = history_path(path).read_bytes()[:80]
        history_path(path).write_bytes(before + leftover)
        again = trained(path, 5, resume=True)
        assert history_path(path).read_bytes() == before and len(again.history.losses) == 5
    resumed = trained(path, 9, resume=True, checkpoint_every=2)
    assert resumed.history.losses == straight.history.losses
    assert history_path(path).read_bytes() == history_path(tmp_path / "rate_0.1").read_bytes()
    assert History.load(path) == resumed.history
    assert plots.training_curve(History.load(path)).axes


@pytest.mark.parametrize(
    "damage, error, message",
    [
        (lambda file: file.unlink(), FileNotFoundError, "is missing"),
        (lambda file: file.write_bytes(file.read_bytes()[:-1]), ValueError, "fewer steps"),
        (lambda file: file.write_bytes(b"x" + file.read_bytes()[1:]), ValueError, "are not those of"),
    ],
)
def test_a_damaged_file_is_found(tmp_path, damage, error, message):
    path = tmp_path / "file"
    trained(path, 3)
    damage(history_path(path))
    with pytest.raises(error, match=message):
        trained(path, 4, resume=True)
    with pytest.raises(error, match=message):
        History.load(path)


def test_an_older_checkpoint_with_the_losses_inside(tmp_path):
    straight = trained(tmp_path / "straight", 6)
    path = tmp_path / "file"
    history = trained(path, 4).history
    tensors, header = load_checkpoint(path)
    del header["history"]
    names = ("losses", "learning_rates")
    old = {f"history.{name}": np.array(getattr(history, name)) for name in names}
    save_checkpoint(path, {**tensors, **old}, header)
    history_path(path).unlink()
    assert History.load(path).losses == straight.history.losses[:4]
    assert trained(path, 6, resume=True).history.losses == straight.history.losses
    assert History.load(path).losses == straight.history.losses


def test_a_full_disk_loses_no_row(tmp_path, monkeypatch):
    record = Record([[1.0, 0.1]])
    record.save(tmp_path / "file")
    record.append(2.0, 0.2)
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("no space left")))
        with pytest.raises(OSError, match="no space"):
            record.save(tmp_path / "file")
    checksum = record.save(tmp_path / "file")
    assert Record.load(tmp_path / "file", 2, checksum).history().losses == [1.0, 2.0]
