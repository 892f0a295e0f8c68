"""Several processes share each batch: the losses of one process, and no process left behind however it ends."""

import math
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from shared import alive
from test_trainer import Disturbed

from transformer_np import models, training
from transformer_np.data import LabelledBatch, MaskedBatch, Seq2SeqBatch, Seq2SeqBatches, TextBatches, TextStreams
from transformer_np.models import GPT, Bert, BertConfig, GPTConfig, Transformer, TransformerConfig, TransformerXL
from transformer_np.support import processes as threads
from transformer_np.training import SGD, Adam, Muon, NextToken, TeacherForcing, Trainer, choice, in_blocks
from transformer_np.training import state as state_module
from transformer_np.training import trainer as trainer_module
from transformer_np.training import workers as workers_module
from transformer_np.training.share import number_of_rows, take_rows
from transformer_np.training.workers import Workers, can_fork

pytestmark = pytest.mark.skipif(not can_fork(), reason="this system does not copy processes")

V = 13
SIZES = {"d_model": 8, "num_heads": 2, "d_ff": 12, "dropout": 0.2, "dtype": "float64"}


@pytest.fixture(autouse=True)
def nothing_hangs_or_is_left_behind():
    """Not even a process that has ended and waits to be asked how."""

    hung = []

    def give_up(*_):
        hung.append(True)  # the error may be taken for one of a pipe
        pytest.fail("it hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    assert not hung
    assert multiprocessing.process._children == set()  # active_children() would clear it up first


# --- trainings of every kind -----------------------------------------------------------------------------------------


class Endless:
    """A few batches, over and over."""

    def __init__(self, *batches):
        self.batches = batches

    def batch(self, step):
        return self.batches[step % len(self.batches)]


def padded(rng, lengths):
    """(B, S) of random ids, so many in each row, then padding."""
    ids = rng.integers(4, V, (len(lengths), max(lengths)))
    ids[np.arange(max(lengths)) >= np.array(lengths)[:, None]] = 0
    return ids


def translation(**config):
    """Sentences of very different lengths, with 22 pairs in fives: the last batch of an epoch has two."""
    rng = np.random.default_rng(3)
    sources = [rng.integers(4, V, n).tolist() for n in rng.choice([1, 2, 9], 22)]
    sizes = {**SIZES, "num_encoder_layers": 1, "num_decoder_layers": 1, "max_len": 12}
    model = Transformer(TransformerConfig(V, 11, **{**sizes, **config}))
    optimizer = SGD(model.parameters(), 0.5, momentum=0.9)
    objective = TeacherForcing(model, label_smoothing=0.1)
    batches = Seq2SeqBatches([(src, [4 + i % 7 for i in src]) for src in sources], 5).in_order()
    return objective, optimizer, Endless(*batches)


def gpt():
    model = GPT(GPTConfig(V, max_len=6, num_layers=2, **SIZES))
    ids = np.random.default_rng(0).integers(V, size=99)
    optimizer = Muon(model.parameters(), 0.02, weight_decay=0.3, matrices=in_blocks(model))
    return NextToken(model), optimizer, TextBatches(ids, 6, 5)


def bert(**heads):
    return Bert(BertConfig(V, max_len=8, num_layers=1, **SIZES, **heads))


def classification():
    model, rng = bert(num_classes=3, mlm_head=False), np.random.default_rng(1)
    batches = [LabelledBatch(padded(rng, rng.integers(1, 9, n)), rng.integers(3, size=n)) for n in (4, 7, 1)]
    return training.Classification(model), Adam(model.parameters(), 0.02), Endless(*batches)


def masked():
    """Holes in few of the rows: most slices have none."""
    model, rng, batches = bert(pooler=False), np.random.default_rng(2), []
    for rows_with_holes in ([0], [4], [1, 2], [3]):
        ids = padded(rng, [8, 2, 5, 3, 8])
        targets = np.full_like(ids, -100)  # PyTorch's; any negative one does not count
        targets[rows_with_holes, :2] = ids[rows_with_holes, :2]
        ids[rows_with_holes, :2] = V - 1
        batches.append(MaskedBatch(ids, targets))
    return training.MaskedLanguageModel(model), Adam(model.parameters(), 0.02), Endless(*batches)


def recurrence():
    model = TransformerXL(models.TransformerXLConfig(V, num_layers=2, mem_len=6, **SIZES))
    streams = TextStreams(np.random.default_rng(0).integers(V, size=150), segment_len=4, batch_size=5)  # 7 segments
    return training.SegmentRecurrence(model), Adam(model.parameters(), 0.02), streams


KINDS = (translation, gpt, classification, masked, recurrence)


STEPS = 15  # each batch comes at least twice


def train(make=translation, workers=1, steps=STEPS, path=None, resume=False, batches=None, at_once=None, **options):
    """Make a training, take it up if asked to, and let it run  ->  the Trainer"""
    objective, optimizer, own = make()
    lr = optimizer.lr
    how = {"workers": workers, "tokens_at_once": at_once}
    trainer = Trainer(objective.model, optimizer, objective, lambda step: lr * 0.98**step, 0.5, path, **how)
    if resume:
        trainer.resume()
    batches = batches or own
    options = {"validation": [own.batch(step) for step in range(4)], "validate_every": 7, **options}
    trainer.fit(batches, steps, **{"progress": False, **options})
    return trainer


def values(trainer):
    """What a training consists of, {name: array}; random states as what they would draw next, twice."""
    drawn = {}
    for generator in trainer.model.generators():
        state = generator.bit_generator.state
        drawn[f"drawn {len(drawn)}"] = np.concatenate([generator.random(3, np.float32), generator.random(3)])
        generator.bit_generator.state = state
    history = {
        "losses": trainer.history.losses,
        "learning rates": trainer.history.learning_rates,
        "validation": trainer.history.validation,
    }
    carried = trainer.objective.state_dict() if hasattr(trainer.objective, "state_dict") else {}
    return {
        **{name: np.array(numbers) for name, numbers in history.items()},
        **{f"model {name}": array.copy() for name, array in trainer.model.state_dict().items()},
        **{f"optimizer {name}": array for name, array in trainer.optimizer.state_dict().items()},
        **carried,
        **drawn,
    }


def assert_close(a, b, tolerance):
    """tolerance 0: the same bits."""
    assert a.keys() == b.keys()
    assert {name: array.shape for name, array in a.items()} == {name: array.shape for name, array in b.items()}
    far = {name: np.abs(a[name] - b[name]).max(initial=0) for name in a}
    assert {name: distance for name, distance in far.items() if not distance <= tolerance} == {}


@pytest.fixture(scope="module")
def alone():
    """alone(kind): what a training of one process comes to."""
    done = {}

    def get(make):
        if make not in done:
            done[make] = values(train(make))
        return done[make]

    return get


# --- the same losses -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("workers", "at_once"), [(1, 7), pytest.param(2, 9, marks=pytest.mark.long), (3, None)])
@pytest.mark.parametrize("make", KINDS)
def test_workers_and_pieces_come_to_what_one_process_comes_to_with_whole_batches(alone, make, workers, at_once):
    together = values(train(make, workers, at_once=at_once))
    assert len(together["losses"]) == STEPS and len(together["validation"]) == 3
    assert_close(together, alone(make), 1e-9)
    assert np.abs(together["losses"] - alone(make)["losses"]).max() < 1e-10


def test_what_is_compared_is_sensitive(alone):
    """The gradients are clipped, the batches are unequal, and the training gets somewhere."""
    objective, optimizer, batches = translation()
    norms = []
    for step in range(5):
        optimizer.zero_grad()
        objective.forward(batches.batch(step))
        objective.backward()
        norms.append(np.linalg.norm(optimizer.grad))
    assert min(norms) > 0.5
    assert {len(batches.batch(step).src) for step in range(5)} == {2, 5}
    shares = [np.mean(batch.tgt_out[:2] != 0) / np.mean(batch.tgt_out != 0) for batch in map(batches.batch, range(5))]
    assert min(shares) < 0.7
    for make in KINDS:
        losses = alone(make)["losses"]
        assert np.abs(losses[5:] - losses[:-5]).max() > 0.1


def test_the_tokens_of_the_idle_are_not_counted():
    """In the speed that the bar shows."""
    counted = []

    class Watched(Trainer):
        def _one_step(self, *arguments):
            loss, tokens = super()._one_step(*arguments)
            counted.append(tokens)
            return loss, tokens

    objective, optimizer, _ = translation()
    batches = Endless(*(Seq2SeqBatches([([5], [6, 7])] * n, n).batch(0) for n in (3, 1, 2)))
    Watched(objective.model, optimizer, objective, workers=3).fit(batches, 3, progress=False)
    assert counted == [9, 3, 6]


def test_no_batch_is_asked_for_beyond_the_steps():
    class Finite(Endless):
        def batch(self, step):
            return self.batches[step]

    batches = Finite(*map(translation()[2].batch, range(2)))
    trainer = train(workers=2, steps=2, batches=batches)
    trainer.fit(batches, 2, progress=False)
    assert trainer.step == 2


@pytest.mark.long
def test_one_bar_is_shown(capfd):
    train(workers=3, steps=2, progress=True)
    out, err = capfd.readouterr()
    assert out == "" and err.count(" 0/2 ") == err.count("\n") == 1  # drawn as often as the clock says


@pytest.mark.long
def test_another_training_of_the_same_model():
    def both(workers):
        objective, optimizer, batches = translation()
        first = Trainer(objective.model, optimizer, objective, workers=workers)
        first.fit(batches, 3, progress=False)
        second = Trainer(objective.model, optimizer, TeacherForcing(objective.model), workers=workers)
        second.fit(batches, 5, progress=False)
        other = SGD(objective.model.parameters(), 0.1)
        third = Trainer(objective.model, other, objective, workers=workers)
        third.fit(batches, 4, progress=False)
        return [*first.history.losses, *second.history.losses, *third.history.losses]

    assert both(2) == pytest.approx(both(1), abs=1e-10)


def test_the_model_is_usable_afterwards():
    trainer = train(workers=2, steps=3)
    model, optimizer, batch = trainer.model, trainer.optimizer, translation()[2].batch(0)
    for parameter in model.parameters():
        assert np.shares_memory(parameter.data, optimizer.data) and np.shares_memory(parameter.grad, optimizer.grad)
    assert all(type(module.rng) is np.random.Generator for _, module in model.named_modules() if hasattr(module, "rng"))
    before = {name: array.copy() for name, array in model.state_dict().items()}
    optimizer.zero_grad()
    loss = trainer.objective.forward(batch)[0]
    trainer.objective.backward()
    optimizer.step()
    assert math.isfinite(loss) and any(not np.array_equal(before[name], p) for name, p in model.state_dict().items())
    model.load_state_dict(before)
    assert np.array_equal(model.state_dict()["output.w"], before["output.w"])

    model.astype("float32")
    with pytest.raises(RuntimeError, match="a parameter was replaced"):
        trainer.fit(translation()[2], 5, progress=False)


def test_everything_is_in_memory_without_a_name():
    """So that no way to end leaves something in /dev/shm."""
    seen = []

    class Watched(SGD):
        def step(self, part=None):
            maps = Path("/proc/self/maps")
            seen.extend(line for line in maps.read_text().splitlines() if "/dev/shm" in line) if maps.exists() else None
            super().step(part)

    def make():
        objective, _, batches = translation()
        return objective, Watched(objective.model.parameters(), 0.1), batches

    train(make, 2, 2)
    assert [line for line in seen if not line.endswith("(deleted)")] == []


@pytest.mark.long
def test_fit_goes_on_where_it_ended_and_processes_do_not_pile_up_nor_grow(alone):
    trainer, open_files = train(workers=2, steps=2, validation=None), []
    batches = translation()[2]
    for steps in (2, *range(3, 9), STEPS):
        trainer.fit(batches, steps, progress=False)
        open_files.append(len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0)
    assert max(open_files[1:]) <= open_files[1]
    assert np.abs(np.subtract(trainer.history.losses, alone(translation)["losses"])).max() < 1e-10


# --- dropout by rows, and what cannot be -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.random.MT19937, np.random.SFC64, np.random.Philox])  # Philox skips in fours
def test_generators_that_cannot_skip_one_by_one_are_refused(kind):
    objective, optimizer, batches = translation()
    for _, module in objective.model.named_modules():
        if hasattr(module, "rng"):
            module.rng = np.random.Generator(kind(0))
    with pytest.raises(ValueError, match=f"must draw from a PCG64, which can skip, not {kind.__name__}"):
        Trainer(objective.model, optimizer, objective, workers=2).fit(batches, 1, progress=False)


@pytest.mark.parametrize(
    ("workers", "error", "message"),
    [
        (0, ValueError, "workers must be at least 1, got 0"),
        ("many", TypeError, "workers must be a whole number, got 'many'"),
        (True, TypeError, "workers must be a whole number, got True"),
        (6, ValueError, "6 workers cannot share a batch of 5 rows"),
    ],
)
def test_numbers_of_workers_that_make_no_sense(workers, error, message):
    with pytest.raises(error, match=message):
        train(workers=workers, steps=2)


@dataclass
class Odd:
    src: np.ndarray
    tgt_in: np.ndarray


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        (SimpleNamespace(src=np.ones(3)), TypeError, "a dataclass of arrays, .* SimpleNamespace"),
        (Odd(np.ones((3, 2)), np.ones((2, 2))), ValueError, r"one row for each example, got \[2, 3\] rows"),
        (Odd(1, 2), ValueError, r"got \[\] rows"),
    ],
)
def test_batches_that_cannot_be_divided(batch, error, message):
    with pytest.raises(error, match=message):
        number_of_rows(batch)
    with pytest.raises(error, match=message):
        train(workers=2, steps=1, batches=Endless(batch), validation=None)


@pytest.mark.long
def test_a_system_that_does_not_copy_processes(monkeypatch, alone):
    monkeypatch.setattr(workers_module.sys, "platform", "darwin")
    with pytest.raises(ValueError, match="workers need a system that forks processes, darwin does not"):
        train(workers=2, steps=1)
    assert_close(values(train(workers="auto")), alone(translation), 0)


def test_without_threadpoolctl(monkeypatch, alone):
    monkeypatch.setattr(threads, "_controller", lambda: None)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    with pytest.raises(ValueError, match=r"pip install threadpoolctl, or set OPENBLAS_NUM_THREADS=1"):
        train(workers=2, steps=1)
    assert_close(values(train(workers="auto")), alone(translation), 0)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert_close(values(train(workers=2)), alone(translation), 1e-9)


@pytest.mark.long
def test_auto_is_one_for_each_core_but_no_more_than_rows(monkeypatch):
    made = []

    class Counted(Workers):
        def __init__(self, size):
            made.append(size)
            super().__init__(size)

    monkeypatch.setattr(choice, "Workers", Counted)
    sizes = []
    for cores in (1, 2, 3, 99):
        monkeypatch.setattr(choice, "cores", lambda cores=cores: cores)
        sizes.append(train(workers="auto", steps=1).team.size)
    assert sizes == [1, 2, 3, 5]
    assert made == [2, 3, 5]


@pytest.mark.long
def test_auto_decides_again_at_each_fit_and_uses_its_team_again(monkeypatch):
    monkeypatch.setattr(choice, "cores", lambda: 3)
    trainer, large = train(workers="auto", steps=2), translation()[2].batch(0)
    three = trainer.team
    small = take_rows(large, slice(2))
    for steps, batches, size in ((3, large, 3), (4, small, 2), (4, small, 1)):  # no step is left for the last
        trainer.fit(Endless(batches), steps, progress=False)
        assert trainer.team.size == size
        assert (trainer.team is three) == (size == 3)


@pytest.mark.long
@pytest.mark.parametrize("make", [translation, pytest.param(recurrence, marks=pytest.mark.release)])
def test_auto_measures_which_is_faster_and_leaves_no_trace(monkeypatch, alone, make):
    monkeypatch.setattr(choice, "cores", lambda: 2)
    monkeypatch.setattr(trainer_module, "LEAST_TO_MEASURE", STEPS)
    asked, time_step = [], trainer_module.seconds_per_step

    def timed(trainer, batches, team):
        before = values(trainer)
        assert time_step(trainer, batches, team) > 0
        assert_close(values(trainer), before, 0)
        asked.append(team.size)
        return seconds.pop(0)

    monkeypatch.setattr(trainer_module, "seconds_per_step", timed)
    seconds = [1.0, 0.94, 1.0, 0.96]
    for size in (2, 1):
        trainer = train(make, workers="auto")
        assert trainer.team.size == size
        assert_close(values(trainer), alone(make), 0 if size == 1 else 1e-9)
        assert trainer.team.reason.startswith(f"processes: {size} (a step takes 1000.0 ms with one process, 9")
    assert asked == [1, 2, 1, 2]
    assert train(make, workers="auto", steps=STEPS - 1).team.size == 2  # not worth measuring
    assert asked == [1, 2, 1, 2]


def test_before_the_first_fit_and_without_a_step_to_do_this_process_is_alone():
    for workers in (1, 2, "auto"):
        objective, optimizer, _ = translation()
        assert Trainer(objective.model, optimizer, objective, workers=workers).leads
    assert train(workers=2, steps=0, validation=None).team.size == 1


# --- errors ----------------------------------------------------------------------------------------------------------


def is_worker():
    return multiprocessing.parent_process() is not None


def disturbed(step, disturb, there=is_worker):
    return Disturbed(step, disturb, there, translation()[2])


def test_an_error_in_a_worker_is_one_in_the_first_that_names_the_worker(tmp_path):
    path = tmp_path / "file"
    train(steps=2, path=path)
    before = path.read_bytes()
    good = translation()[2].batch(0)
    bad = Seq2SeqBatch(good.src.copy(), good.tgt_in, good.tgt_out)
    bad.src[-1, 0] = V  # there is no such id
    with pytest.raises(ValueError, match=str(V)) as caught:
        train(workers=3, path=path, batches=Endless(good, good, good, bad), steps=9)
    (note,) = caught.value.__notes__
    assert note.startswith("in worker 2:\nTraceback") and "as_ids" in note
    assert path.read_bytes() == before


def raising(error):
    def disturb():
        raise error

    return disturb


class Unportable(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


@pytest.mark.parametrize(
    ("error", "arrives"),
    [
        (EOFError("of a file"), EOFError("of a file")),  # not of a pipe to a worker
        pytest.param(BrokenPipeError("of the user"), BrokenPipeError("of the user"), marks=pytest.mark.long),
        pytest.param(SystemExit(3), SystemExit(3), marks=pytest.mark.long),
        (Unportable("one", "two"), RuntimeError("Unportable: one and two")),
        pytest.param(ValueError(threading.Lock()), RuntimeError("ValueError: <unlocked"), marks=pytest.mark.long),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_that_could_be_mistaken(error, arrives, capfd):
    with pytest.raises(type(arrives), match=str(arrives)) as caught:
        train(workers=2, batches=disturbed(6, raising(error)))
    assert any(note.startswith("in worker 1:\nTraceback") for note in caught.value.__notes__)
    with pytest.raises(type(error)) as caught:
        train(workers=2, batches=disturbed(6, raising(error), there=lambda: not is_worker()))
    assert caught.value is error
    assert capfd.readouterr() == ("", "")


@pytest.mark.long
def test_an_error_of_all_is_said_once(capfd):
    for _ in range(5):
        with pytest.raises(OSError, match="the disk"):
            train(workers=3, batches=disturbed(4, raising(OSError("the disk")), there=lambda: True))
    assert capfd.readouterr() == ("", "")


@pytest.mark.long
def test_a_loss_that_is_not_finite(tmp_path, capfd):
    path = tmp_path / "file"
    train(workers=2, steps=2, path=path)
    before = path.read_bytes()

    def make():
        objective, optimizer, batches = translation()
        forward = objective.forward
        objective.forward = lambda batch: (math.nan, 3) if is_worker() and optimizer.steps == 4 else forward(batch)
        return objective, optimizer, batches

    with pytest.raises(training.TrainingError, match=r"the loss is nan at step 5: .*smaller learning rate") as caught:
        train(make, 2, path=path, resume=True)
    assert not hasattr(caught.value, "__notes__")
    assert path.read_bytes() == before and capfd.readouterr() == ("", "")


def test_a_disk_that_is_full_ends_all(tmp_path, monkeypatch, capfd):
    def save(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(state_module, "save_checkpoint", save)
    with pytest.raises(OSError, match="No space left"):
        train(recurrence, 2, path=tmp_path / "file", checkpoint_every=3)
    assert capfd.readouterr() == ("", "")


def test_a_process_that_cannot_be_started_ends_the_others(monkeypatch):
    start, started = ForkProcess.start, []

    def failing(process):
        if started:
            raise OSError("no more processes")
        started.append(process)
        start(process)

    monkeypatch.setattr(ForkProcess, "start", failing)
    with pytest.raises(OSError, match="no more processes"):
        train(workers=3)
    assert started[0].exitcode is not None


@pytest.mark.parametrize("where", ["a step", pytest.param("a message", marks=pytest.mark.long)])
def test_a_worker_that_is_killed_or_ends_without_a_word(tmp_path, where, monkeypatch):
    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    if where == "a message":  # in the midst of a long one

        def send(self, buffer, write=os.write):
            os.write(self._handle, b"\0\0\1\0half of it")
            die()

        batches = disturbed(5, lambda: monkeypatch.setattr("multiprocessing.connection.Connection._send", send))
    else:
        batches = disturbed(5, die, lambda: is_worker() and multiprocessing.current_process().name.endswith("2"))
        monkeypatch.setattr("multiprocessing.process._process_counter", iter(range(1, 9)))
    with pytest.raises(ChildProcessError, match=r"worker [12] died \(killed by signal 9: did it run out of ") as e:
        train(workers=3, batches=batches)
    assert where == "a message" or "worker 2" in str(e.value)
    with pytest.raises(ChildProcessError, match=r"worker 1 died \(exit code 7\)"):
        train(workers=2, batches=disturbed(5, lambda: os._exit(7)))


def test_an_error_while_one_waits_in_its_step():
    """The first has an error of its own; the worker would sleep on and on."""
    with pytest.raises(KeyError):
        train(workers=2, batches=disturbed(5, lambda: time.sleep(10**6) if is_worker() else {}["key"], lambda: True))


@pytest.mark.long
def test_in_another_thread():
    """Python 3.12 and later warn of copying a process with threads."""
    found = []
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        thread = threading.Thread(target=lambda: found.append(train(workers=2)))
        thread.start()
        thread.join()
    assert found[0].step == STEPS and seen == []


# --- Ctrl-C and kill -------------------------------------------------------------------------------------------------


def interrupt(times=1):
    """Of a step in the first process."""

    def disturb():
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)

    return disturb


def test_an_interrupt_finishes_the_step_and_saves(alone, tmp_path):
    path = tmp_path / "file"
    trainer = train(workers=2, path=path, batches=disturbed(11, interrupt(), there=lambda: not is_worker()))
    assert trainer.interrupted and trainer.step == 11
    resumed = train(workers=2, path=path, resume=True)
    assert not resumed.interrupted
    assert_close(values(resumed), alone(translation), 1e-9)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_in_a_validation_stops_after_it(workers):
    def make():
        objective, optimizer, batches = translation()
        forward = objective.forward

        def interrupted(batch):
            if not objective.model.training and not is_worker():
                signal.raise_signal(signal.SIGINT)
                objective.forward = forward
            return forward(batch)

        objective.forward = interrupted
        return objective, optimizer, batches

    trainer = train(make, workers)
    assert trainer.interrupted and trainer.step == 7 and len(trainer.history.validation) == 1


@pytest.mark.long
def test_workers_leave_the_interrupt_to_the_first(alone):
    trainer = train(workers=2, batches=disturbed(11, interrupt(2)))
    assert not trainer.interrupted and trainer.step == STEPS


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])
def test_the_second_interrupt_stops_at_once(tmp_path, workers):
    path = tmp_path / "file"
    train(steps=2, path=path)
    before = path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        train(workers=workers, path=path, batches=disturbed(11, interrupt(2), there=lambda: not is_worker()))
    assert path.read_bytes() == before and sorted(file.name for file in tmp_path.iterdir()) == ["file", "file.history"]


@pytest.mark.long
def test_an_interrupt_while_the_workers_start(monkeypatch):
    start, started = ForkProcess.start, []

    def interrupted(process):
        start(process)
        started.append(process)
        if len(started) == 1:
            interrupt()()

    monkeypatch.setattr(ForkProcess, "start", interrupted)
    trainer = train(workers=3)
    assert trainer.interrupted and trainer.step == 1


def script(text, *arguments, **environment):
    """stdout of a program that has the names of this file."""
    process = program(text, *arguments, **environment)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0 and err == "", err
    return out


def program(text, *arguments, **environment):
    """The process of a program that has the names of this file; it and its children are a group."""
    here = Path(__file__).parent
    code = f"import sys; sys.path[:0] = {[str(here), str(here.parent)]}\nfrom test_workers import *\n"
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code + textwrap.dedent(text), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, **environment},
        start_new_session=True,
    )


@pytest.mark.long
def test_the_workers_of_a_process_that_is_killed_end_by_themselves():
    process = program(
        """
        def tell():
            os.write(1, f"{os.getpid()}\\n".encode())  # whole, where print may write the line's end by itself

        train(workers=3, steps=10**9, batches=disturbed(9, tell), validation=None)
        """
    )
    with process:
        try:
            pids = [int(process.stdout.readline()) for _ in range(2)]
            assert all(map(alive, pids))
        finally:
            process.kill()
        while any(map(alive, pids)):
            time.sleep(0.02)
        assert process.stderr.read() == ""


@pytest.mark.long
def test_a_process_whose_matrix_library_has_threads():
    """They are divided. And nothing that it printed before is printed again: a file is written when the buffer is full
    or the process ends, and a copy has a copy of the buffer."""
    out = script(
        """
        class Watched(SGD):
            def step(self, part=None):
                os.write(1, b"%d" % threads.blas_threads())
                super().step(part)

        sys.stdout.write("before\\n")
        a = np.ones((700, 700), np.float32)
        with threads.limit_blas_threads(4):
            for _ in range(4):
                a @ a
                objective, _, batches = translation()
                optimizer = Watched(objective.model.parameters(), 0.1)
                trainer = Trainer(objective.model, optimizer, objective, workers=2).fit(batches, 3, progress=False)
                sys.stdout.write(f"{threads.blas_threads()}\\n")
        """,
        OPENBLAS_NUM_THREADS="4",
    )
    assert out == "before\n" + ("2" * 2 * 3 + "4\n") * 4  # each step of two processes, and each time after them
