"""Processes that mpiexec starts: the losses of one process, one voice, and no one waits for the dead."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from shared import A_STEP_IS_DONE, fails, few_of, stderr_until

from transformer_np import cli
from transformer_np.data import TextBatches, TextStreams
from transformer_np.models import GPT, GPTConfig, TransformerXL, TransformerXLConfig
from transformer_np.training import Adam, History, NextToken, SegmentRecurrence, Trainer, load_checkpoint, mpi

MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
MISSING = "mpiexec" if MPIEXEC is None else "mpi4py" if importlib.util.find_spec("mpi4py") is None else None
needs_mpi = pytest.mark.skipif(MISSING is not None, reason=f"{MISSING} is not installed")

# for Open MPI, which would rather not run as root, nor with more processes than cores
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
WORDS = ("Ana", "Maria", "Pedro"), ("sings", "reads", "sleeps"), ("now", "today")
TINY = "--batch-size 5 --layers 1 --heads 2 --d-model 8 --d-ff 10 --max-len 9 --warmup 50 --pairs pairs.tsv".split()


@pytest.fixture
def here(here):
    """A folder with pairs.tsv, sentences of three lengths."""
    sentences = [(a, b, c)[: 1 + i % 3] for i, a in enumerate(WORDS[0]) for b in WORDS[1] for c in WORDS[2]]
    lines = [f"{' '.join(words)}\t{' '.join(reversed(words))}\n" for words in dict.fromkeys(sentences)]
    (here / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    return here


def begin(ranks, *arguments, **environment):
    """Start so many processes of `python …`; they are a group."""
    return subprocess.Popen(
        [MPIEXEC, "-n", str(ranks), sys.executable, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, **OPEN_MPI, "OPENBLAS_NUM_THREADS": "1", **environment},
        start_new_session=True,
    )


def end(process, seconds=300):
    """Exit code, stdout and stderr of what does not hang."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail(f"hangs: {process.communicate()}")
    return process.returncode, out, err


def train(ranks, *more, **environment):
    return end(begin(ranks, "-m", "transformer_np", "train", "translate", *more, **environment))


def losses(folder):
    history = History.load(Path(folder) / "checkpoint.safetensors")
    return np.array(history.losses), np.array(history.validation)


# --- the same losses -------------------------------------------------------------------------------------------------


@needs_mpi
def test_ranks_come_to_what_one_process_comes_to(here, capsys):
    """Though the last batch of an epoch may have fewer rows; and one process goes on."""
    assert cli.main(["train", "translate", *TINY, "--steps", "15", "--out", "alone"]) == 0
    lines = capsys.readouterr().out.splitlines()
    code, out, err = train(2, *TINY, "--steps", 15, "--out", "2")
    assert code == 0 and "training pairs" in err and "15/15" in err, err
    assert [line.split()[0] for line in out.splitlines()] == [line.split()[0] for line in lines]  # said once
    (found, validation), (expected, expected_validation) = losses("2"), losses("alone")
    assert len(found) == 15 and np.abs(found - expected).max() < 1e-5
    assert np.abs(validation[-1] - expected_validation[-1]).max() < 1e-5
    assert cli.main(["train", "translate", "--resume", "--steps", "17", "--out", "2"]) == 0
    assert sorted(path.name for path in Path("2").iterdir()) == sorted(path.name for path in Path("alone").iterdir())


SCRIPT = """
import os, signal, sys, time
import numpy as np
from transformer_np.data import TextStreams
from transformer_np.models import TransformerXL, TransformerXLConfig
from transformer_np.training import Adam, SegmentRecurrence, Trainer

config = TransformerXLConfig(11, d_model=8, num_heads=2, num_layers=2, d_ff=12, mem_len=6, dropout=0.2, dtype="float64")
model = TransformerXL(config)
streams = TextStreams(np.random.default_rng(0).integers(11, size=150), 4, 5)
trainer = Trainer(model, Adam(model.parameters(), 0.02), SegmentRecurrence(model), None, 0.5, "file", workers=WORKERS)


class Disturbed:
    def batch(self, number):
        if number == 5 and not trainer.leads:
            disturb()
        return streams.batch(number)


def fit(steps, batches=streams):
    return trainer.fit(batches, steps, [streams.batch(0), streams.batch(1)], validate_every=4, progress=False)
"""


def script(ranks, text, **environment):
    return end(begin(ranks, "-c", SCRIPT.replace("WORKERS", "'mpi'") + textwrap.dedent(text), **environment))


@needs_mpi
def test_a_memory_by_rows(here):
    """Every rank ends with the same parameters, the first with the whole memory; another number goes on with it."""
    exec(SCRIPT.replace("WORKERS", "1") + "fit(20)", {})
    straight = load_checkpoint(here / "file")[0]
    text = """
        if not trainer.leads:
            trainer.optimizer.data[...] = 0  # all begin where the first does
        fit(9)
        np.save(f"data{trainer.team.rank}", trainer.optimizer.data)
    """
    assert script(3, text) == (0, "", "")
    everywhere = [np.load(f"data{rank}.npy") for rank in range(3)]
    assert all(np.array_equal(data, everywhere[0]) for data in everywhere)
    assert script(2, "trainer.resume()\nfit(20)") == (0, "", "")
    resumed = load_checkpoint(here / "file")[0]
    assert resumed.keys() == straight.keys()
    del resumed["history.validation"]  # an end is a validation
    for name, array in resumed.items():
        assert array.shape == straight[name].shape and np.abs(array - straight[name]).max() < 1e-9, name


# --- how it ends -----------------------------------------------------------------------------------------------------


ENDS = [
    ("def disturb(): raise KeyError('spoiled')\nfit(10**9, Disturbed())", "KeyError: 'spoiled'"),
    ("def disturb(): sys.exit(3)\nfit(10**9, Disturbed())", r"process 1 left the training: sys.exit\(3\)"),
    ("def disturb(): os.kill(os.getpid(), signal.SIGKILL)\nfit(10**9, Disturbed())", None),
    ("open('file', 'a').close()\ntrainer.checkpoint = 'file/in it/file'\nfit(3)", "NotADirectoryError"),
]
WHO_ENDS = ["an error", "an exit", "a kill", "a file for a folder"]


@needs_mpi
@pytest.mark.parametrize(("text", "message"), few_of(ENDS, ENDS[:1]), ids=WHO_ENDS)
def test_one_that_ends_stops_the_others_and_says_it_once(here, text, message):
    code, _, err = script(2, text)
    assert code != 0
    assert message is None or len(re.findall(message, err)) == 1, err


@needs_mpi
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pairs", "nofile"], "there is no file nofile"),
        pytest.param([*TINY, "--workers", "2"], "--workers and mpiexec exclude each other", marks=pytest.mark.long),
    ],
)
def test_what_is_wrong_everywhere_is_said_once(here, options, message):
    code, out, err = train(2, *options, "--out", "run")
    assert code == 2 and err.count(f"transformer-np: error: {message}") == 1, err
    assert "Traceback" not in err and "steps" not in out and not Path("run").exists()


@needs_mpi
def test_ctrl_c_saves(here):
    """A terminal sends it to all processes."""
    process = begin(2, "-m", "transformer_np", "train", "translate", *TINY, "--steps", "100000", "--out", "run")
    stderr_until(process, A_STEP_IS_DONE)
    os.killpg(process.pid, signal.SIGINT)
    code, _, err = end(process)
    step = int(re.search(r"interrupted after step (\d+); everything is saved", err)[1])
    assert code != 0 and "Traceback" not in err and err.count("interrupted") == 1
    assert len(losses("run")[0]) == step > 0


def test_mpiexec_without_mpi4py(here, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PMI_RANK", "0")
    for name in [name for name in sys.modules if name.partition(".")[0] == "mpi4py"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    message = fails(capsys, "train", "translate", *TINY, "--out", "run")
    assert re.fullmatch(r"mpiexec needs mpi4py and an MPI library \(.*\): pip install mpi4py mpich", message)
    model = GPT(GPTConfig(11, max_len=5, d_model=8, num_heads=2, num_layers=1, d_ff=8))
    with pytest.raises(ModuleNotFoundError, match="mpiexec needs mpi4py"):
        Trainer(model, Adam(model.parameters()), NextToken(model), workers="mpi")


# --- what is said to the others --------------------------------------------------------------------------------------


class Alone:
    """A communicator of one of several, whose others have nothing to say."""

    rank, size = 1, 2

    def __init__(self):
        self.totals, self.reduced, self.joined = [], [], []

    def allgather(self, value):
        return [value] * self.size

    def gather(self, value):
        return None

    def Bcast(self, array):
        pass

    def Allreduce(self, _, array):
        self.totals.append(array)

    def Reduce_scatter(self, array, own, sizes):
        self.reduced.append(array)
        own[...] = array[sizes[0] :]

    def Allgatherv(self, _, parts):
        self.joined.append(parts[0])


@pytest.fixture
def comm(monkeypatch):
    found = Alone()
    monkeypatch.setattr(mpi, "connect", lambda: SimpleNamespace(COMM_WORLD=found, IN_PLACE=None))
    return found


@pytest.fixture
def trainer(comm):
    model = GPT(GPTConfig(11, max_len=5, d_model=8, num_heads=2, num_layers=1, d_ff=8, dropout=0.1))
    return Trainer(model, Adam(model.parameters()), NextToken(model), clip_norm=1.0, workers="mpi")


def test_what_the_processes_cannot_do_together(comm, trainer):
    with pytest.raises(ValueError, match="2 workers cannot share a batch of 1 row"):
        trainer.fit(TextBatches(np.arange(99) % 11, 5, 1), 7, progress=False)
    comm.allgather = lambda steps: [4, steps]
    with pytest.raises(ValueError, match=r"have done different numbers of steps: \[4, 0\]"):
        trainer.fit(TextBatches(np.arange(99) % 11, 5, 4), 7, progress=False)


def test_a_step_sends_every_gradient_and_every_parameter_once(comm, trainer):
    optimizer = trainer.optimizer
    trainer.fit(TextBatches(np.arange(99) % 11, 5, 4), 7, progress=False)
    assert len(comm.reduced) == len(comm.joined) == 7
    assert all(array is optimizer.grad for array in comm.reduced)
    assert all(array is optimizer.data for array in comm.joined)
    assert len(comm.totals) == 14 and max(array.size for array in comm.totals) == 4  # the loss, the norm
    assert not trainer.leads


def test_only_the_first_writes(comm, tmp_path):
    model = TransformerXL(TransformerXLConfig(11, d_model=8, num_heads=2, num_layers=1, d_ff=8, mem_len=4))
    batches = TextStreams(np.arange(99) % 11, 5, 4)
    where = {"checkpoint": tmp_path / "file", "workers": "mpi"}
    trainer = Trainer(model, Adam(model.parameters()), SegmentRecurrence(model), **where)
    trainer.fit(batches, 3, validation=[batches.batch(0)], checkpoint_every=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_the_last_words_are_flushed_and_stop_the_others(monkeypatch):
    order = []
    world = SimpleNamespace(rank=1, size=2, Abort=lambda code: order.append(code))
    closed = SimpleNamespace(flush=lambda: order.append("stderr") or {}["closed"])
    monkeypatch.setattr(mpi, "_mpi", lambda: SimpleNamespace(COMM_WORLD=world))
    monkeypatch.setattr(mpi, "_HEAD_START", 0.01)
    monkeypatch.setattr(mpi, "launched_by_mpi", lambda: True)
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", SimpleNamespace())
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", SimpleNamespace(flush=lambda: order.append("stdout")))
        patched.setattr(sys, "stderr", closed)
        with mpi.last_words(5):
            order.append("words")
    assert order == ["words", "stdout", "stderr", 5]
    with pytest.raises(OSError), mpi.last_words(6):
        raise OSError("cannot say it")
    assert order[-1] == 6


def test_an_error_that_nobody_catches_stops_the_others(monkeypatch):
    order = []
    world = SimpleNamespace(rank=0, size=2, Abort=lambda code: order.append(("abort", code)))
    monkeypatch.setattr(mpi, "_mpi", lambda: SimpleNamespace(COMM_WORLD=world))
    monkeypatch.setattr(mpi, "launched_by_mpi", lambda: True)
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", SimpleNamespace())
    monkeypatch.setattr(sys, "excepthook", lambda *error: order.append(error[0]))
    mpi._abort_on_errors.cache_clear()
    for _ in range(3):  # however many trainings there are
        mpi.connect()
    sys.excepthook(KeyError, KeyError("x"), None)
    assert order == [KeyError, ("abort", 1)]
    mpi._abort_on_errors.cache_clear()
