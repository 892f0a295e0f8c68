"""The benchmark measures what it says, on any machine. No test asserts a time."""

import importlib.util
import itertools
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from shared import alive, fails, wait_until

from transformer_np import cli
from transformer_np import functional as F
from transformer_np.bench import WHAT, accounting, configurations, floor, measure, memory, profile, report, work
from transformer_np.bench.contestants import Contestant, Entry
from transformer_np.bench.measure import Outcome, Result
from transformer_np.bench.races import Race, races
from transformer_np.commands import bench
from transformer_np.functional import t5
from transformer_np.models import Transformer, TransformerConfig
from transformer_np.module import Module
from transformer_np.support.platform import can_fork
from transformer_np.support.processes import THREADS

SMALL = configurations.CONFIGURATIONS["small"]
ONE_PASS = Entry("ours", "work", "Attention", {"kind": "tiled", "n": 8})
PLAIN_PASS = Entry("plain", "work", "Attention", {"kind": "plain", "n": 8})


# --- configurations and races -----------------------------------------------------------------------------------------


LIGHT = ("small", "gpt", "bert", "xl")


@pytest.mark.parametrize("name", LIGHT)
def test_configurations_are_the_same_every_time_and_have_no_padding(name):
    one, two = (configurations.CONFIGURATIONS[name] for _ in range(2))
    for a, b in zip(one.model().parameters(), two.model().parameters(), strict=True):
        np.testing.assert_array_equal(a.data, b.data)
    batches = one.batches()
    assert len(batches) == configurations.BATCHES
    for a, b in zip(batches, two.batches(), strict=True):
        for key, values in vars(a).items():
            np.testing.assert_array_equal(values, vars(b)[key])
            assert np.shape(values) == np.shape(vars(batches[0])[key])
        may_have_zeros = name in ("gpt", "xl")  # these have no pad_id
        assert may_have_zeros or not (getattr(a, "src", a.__dict__.get("ids")) == 0).any()
    repeated = configurations.Repeated(batches)
    assert repeated.batch(configurations.BATCHES + 3) is batches[3]


def test_who_runs_against_whom():
    (race,) = races(["gpt"], workers=2, against_torch=True, threads=4)
    names = [entry.name for entry in race.entries]
    assert names == ["ours, 1 core", "ours, 2 workers", "torch, 1 thread", "torch, 4 threads"]
    assert [entry.threads for entry in race.entries] == [1, 1, 1, 4]
    assert race.entries[1].arguments == {"configuration": "gpt", "workers": 2}
    assert ("ours, 2 workers", "torch, 4 threads") in race.ratios
    (alone,) = races(["gpt"], workers=1)
    assert [entry.name for entry in alone.entries] == ["ours, 1 core"]


def test_ratios_are_of_contestants_that_run():
    for choices in itertools.product([1, 2], [False, True], [1, 2]):
        for race in races(WHAT, *choices):
            names = [entry.name for entry in race.entries]
            assert len(set(names)) == len(names)
            assert {name for pair in race.ratios for name in pair} <= set(names)


def test_whole_weights_of_long_sequences_are_left_out():
    names = {race.name: {entry.name for entry in race.entries} for race in races(["attention"], 1)}
    assert names["2048"] == {"ours, tiled", "ours, plain"} and names["4096"] == {"ours, tiled"}
    assert [race.name for race in races(["attention"], 1, quick=True)] == ["512", "1024"]


# --- the floor --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gpt", pytest.param("xl", marks=pytest.mark.long)])
def test_flops_of_a_step(name):
    """Three products for each of the forward pass; with a memory, which the second step has, there are more."""
    configuration = configurations.CONFIGURATIONS[name]
    trainer, batches = work.trainer_of(configuration), configuration.batches()
    found = sum(product.flops for product in work.products_of_step(trainer, batches))
    alone = 3 * sum(part.forward for part in accounting.parts(trainer.model, *np.shape(batches[0].ids)[::-1]))
    assert found == alone if name == "gpt" else 1.1 * alone < found < 2 * alone


def test_recorded_layouts_and_replay():
    class Products(Module):
        def __init__(self):
            from transformer_np.layers import Linear

            self.linear = Linear(6, 4)

    model = Products()
    w = model.linear.w
    x = np.ones((5, 2, 6), np.float32)
    kinds = iter(["first", "second"])
    with floor.recording(model, lambda: next(kinds)) as products:
        y = x @ w.data  # (5, 2, 4)
        np.matmul(y.swapaxes(1, 2), x[::-1], out=np.empty((5, 4, 6), np.float32))
        assert (y @ np.ones(4, np.float32)).shape == (5, 2)  # a sum
    first, second = products
    assert (first.kind, first.flops, first.shape) == ("first", 2 * 10 * 6 * 4, (5, 2, 4))
    assert (second.kind, second.flops) == ("second", 2 * 5 * 4 * 2 * 6)
    assert second.b.strides == (-48, 24, 4) and second.b.offset == 4 * 48
    replay = floor.Replay(products)
    assert replay.seconds_by_kind().keys() == {"first", "second"}
    _, a, b, result = replay._products[1]
    assert (a.strides, b.strides) == (second.a.strides, second.b.strides)
    np.testing.assert_allclose(result, a @ b, rtol=1e-5)


# --- the profile ------------------------------------------------------------------------------------------------------


def test_exclusive_times_add_up(monkeypatch):
    clock = itertools.count(0)  # every look at the clock is a second later
    monkeypatch.setattr(profile.time, "perf_counter", lambda: float(next(clock)))
    stopwatch = profile.Stopwatch()
    inner = stopwatch.timed(lambda: stopwatch.running(), "inner")
    outer = stopwatch.timed(lambda: (inner(), inner()), "outer")
    assert outer() == ("inner", "inner")
    assert stopwatch.seconds == {"inner": 2.0, "outer": 3.0}  # 5 from begin to end
    assert stopwatch.running() is None
    failing = stopwatch.timed(lambda: 1 / 0, "failing")
    with pytest.raises(ZeroDivisionError):
        failing()
    assert stopwatch.seconds["failing"] == 1.0 and stopwatch.running() is None


def test_parts_of_a_step_are_the_whole_step_and_medians_of_several():
    seconds = {("linear", "forward"): 0.25, ("linear", "backward"): 0.5, ("optimizer", ""): 0.125}
    parts = profile.parts_of([profile.add_rest(seconds, whole=1.0)])
    assert [(part.name, part.forward, part.backward) for part in parts] == [
        ("linear", 250.0, 500.0),
        ("optimizer", 125.0, 0.0),
        (profile.REST, 125.0, 0.0),
    ]
    assert sum(part.total for part in parts) == 1000.0
    steps = [{("loss", "forward"): seconds} for seconds in (1e-3, 9e-3, 2e-3)]
    (part,) = profile.parts_of(steps, [{("loss", "forward"): 2e-4, ("loss", "backward"): 3e-4}])
    assert (part.forward, part.floor) == (pytest.approx(2.0), pytest.approx(0.5))


@pytest.mark.long
def test_the_profile_of_a_training_and_its_tables():
    found = profile.Profile("small").run(2)
    kinds = {part.name: part for part in found["kinds"]}
    assert kinds.keys() >= {"linear", "attention", "softmax", "layer norm", "activation", "embedding", "loss"}
    assert kinds.keys() >= {"optimizer", profile.REST}
    assert {name for name, part in kinds.items() if part.floor} == {"linear", "attention"}
    assert kinds["linear"].forward > 0 and kinds["linear"].backward > 0 and kinds["optimizer"].backward == 0
    layers = {part.name: part for part in found["layers"]}
    assert layers.keys() >= {"src_input.embedding", "decoder.0.cross_attention", "output", "(model)"}
    assert layers.keys() >= {"loss", "optimizer", profile.REST}

    torch = {"step": 1.0, "kinds": {"linear": 0.5}}
    head, kinds, text = report.profile_tables("small", {**found, "torch": torch}).split("\n\n")
    assert found["step"] > 0 and "without stopwatches; PyTorch, one thread: 1.000 ms" in head
    kinds = [[cell.strip() for cell in line.split("|")[1:-1]] for line in kinds.splitlines()]
    columns = "ms / step, forward, backward, both, share, products, ratio, PyTorch, ours / PyTorch"
    assert ", ".join(kinds[0]) == columns
    assert kinds[-1][0] == profile.REST
    assert sum(float(row[4].rstrip(" %")) for row in kinds[2:]) == pytest.approx(100, abs=0.1 * len(kinds))
    (linear,) = (row for row in kinds if row[0] == "linear")
    assert float(linear[8]) == pytest.approx(float(linear[3]) / 0.5, abs=0.01)
    both = layers["encoder.0.attention"].total + layers["encoder.1.attention"].total
    (attention,) = re.findall(r"^\| encoder\.\*\.attention +\|.*\| +([\d.]+) \|[^|]*\|$", text, re.MULTILINE)
    assert float(attention) == pytest.approx(both, abs=2e-3)


def test_profile_leaves_nothing_behind():
    trainer, stopwatch, softmax = work.trainer_of(SMALL), profile.Stopwatch(), F.softmax
    with profile.by_kind(stopwatch, trainer):
        assert F.softmax is t5.softmax is not softmax  # wherever it was imported to
        assert "step" in vars(trainer.optimizer)
    assert F.softmax is t5.softmax is softmax
    with profile.by_layer(stopwatch, trainer):
        assert "forward" in vars(trainer.model) and "step" in vars(trainer.optimizer)
    assert "forward" not in vars(trainer.model) and "step" not in vars(trainer.optimizer)


def test_every_function_has_a_kind():
    assert profile.kind_of("linear_backward") == ("linear", "backward")
    assert profile.kind_of("softmax") == ("softmax", "forward")
    assert profile.kind_of("rnn") == (profile.OTHER, "forward")
    assert [name for names in profile.KINDS.values() for name in names if not hasattr(F, name)] == []


# --- contestants ------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_contestant_works_in_a_process_of_its_own():
    with Contestant(Entry("ours", "work", "Attention", {"kind": "plain", "n": 8}, threads=3)) as contestant:
        assert contestant.build() > 1e6  # bytes after its imports
        if os.path.exists(f"/proc/{contestant.pid}/environ"):
            with open(f"/proc/{contestant.pid}/environ", encoding="utf-8") as file:
                assert {f"{name}=3" for name in THREADS} <= set(file.read().split("\0"))
            assert memory.held(contestant.pid) > 1e6
        assert contestant.check().keys() == {"out", "dq", "dk", "dv"}
        assert contestant.run(2) > 0
        with pytest.raises(ChildProcessError, match=r"^ours: TypeError: .*integer") as caught:
            contestant.run("two")
        assert "Traceback" in caught.value.__notes__[0]
        assert contestant.run(1) > 0  # it goes on
    assert not alive(contestant.pid)


def test_a_contestant_that_has_just_begun_can_be_ended():
    with Contestant(ONE_PASS) as contestant:
        pass
    assert not alive(contestant.pid)


@pytest.mark.long
def test_a_contestant_that_dies_is_an_error():
    with Contestant(ONE_PASS) as contestant:
        contestant.build()
        os.kill(contestant.pid, signal.SIGKILL)
        with pytest.raises(ChildProcessError, match=r"^ours: its process died \(killed by signal 9"):
            contestant.run(1)


@pytest.mark.long
def test_an_error_leaves_no_process_behind(monkeypatch):
    started = []
    monkeypatch.setattr(Contestant, "check", lambda contestant: started.append(contestant) or {})
    monkeypatch.setattr(measure, "largest_difference", lambda *_: 1 / 0)
    race = Race("short", "a short race", "pass", (ONE_PASS, PLAIN_PASS), ())
    with pytest.raises(ZeroDivisionError):
        measure.run_race(race, rounds=1, burst=0.0)
    assert len(started) == 2 and not any(alive(contestant.pid) for contestant in started)


@pytest.mark.long
@pytest.mark.skipif(not can_fork(), reason="needs workers")
def test_ctrl_c_ends_the_contestants_and_their_workers():
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from transformer_np.bench.contestants import Contestant, Entry\n"
        "with Contestant(Entry('ours', 'work', 'Training', {'configuration': 'small', 'workers': 2})) as contestant:\n"
        "    contestant.build(); print(contestant.pid, flush=True); contestant.run(10**9)\n"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script], **pipes, start_new_session=True) as parent:
        child = int(parent.stdout.readline())
        wait_until(lambda: len(list(memory._members(child))) == 2)
        os.killpg(parent.pid, signal.SIGINT)
        _, err = parent.communicate(timeout=300)
    assert parent.returncode and err.count(b"Traceback") == err.count(b"KeyboardInterrupt") == 1
    assert not alive(child)
    wait_until(lambda: memory.held(child) is None)


@pytest.mark.long
def test_what_a_contestant_prints_does_not_get_among_the_tables(capfd):
    with Contestant(Entry("loud", ".cli", "main", {"argv": ["gradcheck", "--help"]})) as contestant:
        with pytest.raises(ChildProcessError, match=r"loud: its process died \(exit code 0\)"):  # as argparse does
            contestant.build()
    out, err = capfd.readouterr()
    assert out == "" and "usage: transformer-np gradcheck" in err


# --- measuring --------------------------------------------------------------------------------------------------------


class FakeContestant:
    """Says what it is told to, and writes down when it runs. A unit takes it `seconds`."""

    log: ClassVar = []

    def __init__(self, entry):
        self.entry, self.pid, self.seconds = entry, -1, entry.arguments["seconds"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.log.append(("closed", self.entry.name))

    def build(self):
        return 123

    def check(self):
        return self.entry.arguments.get("numbers")

    def run(self, units):
        self.log.append((self.entry.name, units))
        return units * self.seconds

    def most_memory(self):
        return 123


def fake_race(monkeypatch, rounds=4, **contestants):
    """An Outcome of contestants (seconds, numbers) that are not there, and who ran when."""
    monkeypatch.setattr(measure, "Contestant", FakeContestant)
    monkeypatch.setattr(measure, "PAUSE", 0)
    monkeypatch.setattr(FakeContestant, "log", [])
    entries = tuple(Entry(name, "", "", {"seconds": s, "numbers": n}) for name, (s, n) in contestants.items())
    ratios = ((entries[0].name, entries[-1].name),)
    outcome = measure.run_race(Race("fake", "a race", "step", entries, ratios, units=2), rounds, burst=0.4)
    return outcome, FakeContestant.log


def test_contestants_take_turns(monkeypatch):
    outcome, log = fake_race(monkeypatch, a=(0.1, None), b=(0.2, None))
    calibration, turns, rest = log[:2], log[2:10], log[10:]
    assert calibration == [("a", 1), ("b", 1)]
    assert turns == [("a", 4), ("b", 2), ("b", 2), ("a", 4)] * 2
    assert rest == [("a", 4), ("b", 2), ("closed", "b"), ("closed", "a")]
    a, b = outcome.results
    assert a.bursts == [(8, pytest.approx(0.4))] * 4 and b.bursts == [(4, pytest.approx(0.4))] * 4
    assert (a.median, b.median) == (pytest.approx(0.05), pytest.approx(0.1))
    assert outcome.ratio("a", "b") == (pytest.approx(0.5), (pytest.approx(0.5), pytest.approx(0.5)))
    assert a.imports == a.peak == 123


def test_fast_work_gets_long_bursts(monkeypatch):
    _, log = fake_race(monkeypatch, rounds=1, a=(0.001, None))
    assert log[:-2] == [("a", 2**i) for i in range(8)] + [("a", 400)]


def test_equal_work_is_checked(monkeypatch):
    same = {"loss": np.array(4.0), "out": np.arange(3.0)}
    near, far = ({"loss": np.array(4.0 + d), "out": np.arange(3.0)} for d in (2e-4, 8e-4))
    outcome, _ = fake_race(monkeypatch, a=(0.1, same), floor=(0.1, None), b=(0.1, near), c=(0.1, far))
    a, middle, b, c = outcome.results
    assert (a.difference, middle.difference) == (None, None)
    assert b.difference == pytest.approx(5e-5) and b.equal
    assert c.difference == pytest.approx(2e-4) and not c.equal and c.where == "loss"
    assert report.unequal([outcome]) == ["fake: c differs from a by 2.0e-04 in loss, more than 1e-04"]


def test_what_cannot_be_compared_differs():
    for numbers in ({}, {"loss": np.nan}, {"loss": np.ones(2)}, {"loss": 1.0, "more": 1.0}, {"loss": math.inf}):
        difference, where = measure.largest_difference(numbers, {"loss": 1.0})
        assert difference == measure.OTHER and where in ("loss", "more"), numbers


@pytest.mark.long
@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="needs Linux's /proc")
def test_memory_of_a_session_counts_what_is_shared_once():
    script = (
        "import mmap, os, sys\n"
        "shared = mmap.mmap(-1, 50_000_000); shared.write(b'x' * 50_000_000)\n"
        "own = bytearray(b'x' * 30_000_000)\n"
        "if os.fork() == 0:\n"
        "    sum(shared[::4096]); own[::4096] = own[::4096]\n"
        "    os.write(1, b'.'); sys.stdin.read(); os._exit(0)\n"
        "os.write(1, b'.'); sys.stdin.read(); os.wait()\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script], **pipes, start_new_session=True) as process:
        with memory.watching(process.pid) as peak:
            for _ in range(2):
                process.stdout.read(1)
            held = memory.held(process.pid)
        process.stdin.close()
    assert 110e6 < held < 160e6  # 50 shared, 2 · 30 own, and Python twice
    assert peak() >= 0.9 * held
    assert memory.held(process.pid) is None
    assert memory.most_of_this_process() > 1e6


# --- report -----------------------------------------------------------------------------------------------------------


def made_up_outcome():
    entries = (Entry("ours, 1 core", "work", "Training"), Entry("torch, 1 thread", "torch_work", "Training"))
    race = Race("gpt", "training steps", "step", entries, (("ours, 1 core", "torch, 1 thread"),))
    results = [
        Result("ours, 1 core", [(10, 0.4), (10, 0.5), (10, 0.6)], None, None, 40_000_000, 100_000_000),
        Result("torch, 1 thread", [(20, 0.5)] * 3, None, None, 40_000_000, None),
    ]
    return Outcome(race, results)


def test_tables_of_races():
    other = made_up_outcome()
    other.race = Race("xl", "training steps", "step", other.race.entries[:1], ())
    other.results.pop()
    assert report.race_tables([made_up_outcome(), other]).splitlines() == [
        "training steps, medians; ratios with their quartiles:",
        "",
        "| ms / step                      |              gpt |  xl |",
        "| ------------------------------ | ---------------: | --: |",
        "| ours, 1 core                   |               50 |  50 |",
        "| torch, 1 thread                |               25 |     |",
        "| ours, 1 core / torch, 1 thread | 2.00 (1.80–2.20) |     |",
        "",
        "| peak MB (libraries) |      gpt |       xl |",
        "| ------------------- | -------: | -------: |",
        "| ours, 1 core        | 100 (40) | 100 (40) |",
        "| torch, 1 thread     |   ? (40) |          |",
    ]


def test_a_measurement_replaces_that_of_the_same_command_on_the_same_processor(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Speed\n", encoding="utf-8")
    amd, intel = {"processor": "AMD"}, {"processor": "Intel"}
    for command, machine, text in (("a", amd, "1"), ("b", amd, "2"), ("a", intel, "3"), ("a", amd, r"4 \1")):
        report.put_into(page, command, machine, text)
    end = "<!-- end of the measurement -->"
    found = "\n".join(line for line in page.read_text(encoding="utf-8").splitlines() if line not in ("", end))
    assert found == "# Speed\n<!-- a, AMD -->\n4 \\1\n<!-- a, Intel -->\n3\n<!-- b, AMD -->\n2"


# --- command ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_measurement(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("measured although the arguments are wrong")

    monkeypatch.setattr(measure, "Contestant", fail)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dance"], "invalid choice: 'dance' (choose from small"),
        (["gpt", "--workers", "0"], "must be a number of processes or auto, got '0'"),
        (["gpt", "--workers", "many"], "must be a number of processes or auto, got 'many'"),
        (["gpt", "--rounds", "-1"], "must be a whole number, 1 or larger, got '-1'"),
        (["gpt", "--against", "jax"], "invalid choice: 'jax'"),
        (["generate", "--profile"], "--profile needs training steps: WHAT must be among small"),
        (["gpt", "--text", "a.txt"], "WHAT needs one of them"),
        (["tasks", "--text", "a.txt"], "WHAT needs one of them"),
        (["gpt", "--into", "no/such/file.md"], "--into no/such/file.md: there is no folder no/such"),
        (["gpt", "--json", "no/such/file.json"], "--json no/such/file.json: there is no folder no/such"),
        (["gpt", "--json", "."], "--json . is a folder"),
    ],
)
@pytest.mark.usefixtures("no_measurement", "here")
def test_bad_use(capsys, arguments, message):
    assert message in fails(capsys, "bench", *arguments)


def test_without_pytorch(capsys, no_measurement, monkeypatch):
    monkeypatch.setattr("transformer_np.commands.bench.find_spec", lambda name: None)
    assert cli.main(["bench", "gpt", "--against", "torch"]) == 2
    assert 'pip install -e ".[bench]"' in capsys.readouterr().err


@pytest.mark.long
def test_the_command(capsys, tmp_path):
    path, page = tmp_path / "bench.json", tmp_path / "bench.md"
    how = ["--quick", "--rounds", "1", "--workers", "1"]
    assert cli.main(["bench", "small", *how, "--json", str(path), "--into", str(page)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("`transformer-np bench small --workers 1 --rounds 1 --quick`")
    assert "| ours, 1 core" in out and "small: timing, 1 rounds" in err
    tables = page.read_text(encoding="utf-8").splitlines()
    assert tables[1:-1] == out.removesuffix(f"\n{path}\n").splitlines()
    found = json.loads(path.read_text(encoding="utf-8"))
    assert found["machine"]["numpy"] == np.__version__ and found["machine"]["cores"] >= 1
    ((race,),) = found["races"]
    assert race["results"][0]["name"] == "ours, 1 core" and len(race["results"][0]["bursts"]) == 1


@pytest.mark.parametrize(("cores", "fork", "expected"), [(4, True, 4), (64, True, 12), (4, False, 1)])
def test_auto_is_one_worker_for_each_core_as_far_as_they_can_share_a_batch(monkeypatch, cores, fork, expected):
    monkeypatch.setattr("transformer_np.support.processes.cores", lambda: cores)
    monkeypatch.setattr("transformer_np.support.platform.can_fork", lambda: fork)
    assert bench._most_workers() == expected
    smallest = min(
        len(next(iter(vars(c.batches()[0]).values())))
        for name, c in configurations.CONFIGURATIONS.items()
        if name in LIGHT
    )
    assert configurations.LEAST_ROWS == smallest


def test_unequal_work_fails(capsys, monkeypatch):
    outcome = made_up_outcome()
    outcome.results[1].difference, outcome.results[1].where = 0.5, "loss of step 3"
    monkeypatch.setattr(measure, "run_race", lambda *_, **__: outcome)
    assert cli.main(["bench", "gpt", "--quick"]) == 1
    error = "error: gpt: torch, 1 thread differs from ours, 1 core by 5.0e-01 in loss of step 3"
    assert error in capsys.readouterr().err


# --- PyTorch ----------------------------------------------------------------------------------------------------------

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")


@pytest.fixture
def torch_work(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return importlib.import_module("transformer_np.bench.torch_work")


@needs_torch
@pytest.mark.parametrize("name", LIGHT)
def test_pytorch_trains_alike(torch_work, name):
    expected, found = work.Training(name).check(), torch_work.Training(name).check()
    assert len(expected) == configurations.CONFIGURATIONS[name].checked
    difference, where = measure.largest_difference(found, expected)
    assert difference <= measure.TOLERANCE, where


@needs_torch
def test_pytorch_has_the_parameters_of_a_tied_model(torch_work):
    """What is tied in the base model is tied there too."""
    config = TransformerConfig(
        9, 9, d_model=8, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, d_ff=12, tie_embeddings=True,
        dropout=0.0,
    )  # fmt: skip
    ours = Transformer(config)
    theirs = torch_work.torch_model(ours)
    assert sum(p.numel() for p in theirs.parameters()) == ours.num_parameters()
    src, tgt = np.array([[4, 5, 6, 0]]), np.array([[1, 7, 8]])
    logits = theirs(*map(torch_work.torch.as_tensor, (src, tgt))).detach().numpy()
    np.testing.assert_allclose(logits, ours(src, tgt), atol=1e-5)


@needs_torch
def test_a_disturbed_parameter_is_noticed(torch_work):
    ours, theirs = work.Training("gpt"), torch_work.Training("gpt")
    ours.trainer.model.blocks[3].feed_forward.w2.data[:, 0] += 0.05
    difference, _ = measure.largest_difference(theirs.check(), ours.check())
    assert difference > measure.TOLERANCE


@needs_torch
def test_a_profile_of_pytorch(torch_work):
    found = torch_work.Profile("small").run(2)
    assert found["step"] > 0
    kinds = {"linear", "attention", "layer norm", "activation", "embedding", "loss", "optimizer"}
    assert found["kinds"].keys() >= kinds


@needs_torch
@pytest.mark.parametrize("kind", ["fused", "plain"])
def test_pytorch_attends_alike(torch_work, kind):
    expected = work.Attention("plain", 16).check()
    for found in (torch_work.Attention(kind, 16), work.Attention("tiled", 16)):
        assert measure.largest_difference(found.check(), expected)[0] <= measure.TOLERANCE


@needs_torch
def test_pytorch_generates_as_much(torch_work):
    ours, theirs = work.Generation(1, 63, use_cache=True), torch_work.Generation(1, 63)
    assert measure.largest_difference(theirs.check(), ours.check())[0] <= measure.TOLERANCE
    ids = theirs.model.generate(theirs.ids[:, :60], 7)
    assert ids.shape == (1, 67) and (ids[:, :60] == theirs.ids[:, :60]).all()
    assert ours.run(1) > 0 and theirs.run(1) > 0


# --- the page ---------------------------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(
    r"<!-- (transformer-np bench .*?), (\w+)[^\n]* -->\n(.*?)<!-- end of the measurement -->",
    (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8"),
    re.DOTALL,
)


@pytest.mark.parametrize(("command", "processor", "text"), BLOCKS)
def test_every_table_names_a_command_that_can_be_typed_a_machine_and_a_date(command, processor, text):
    typed, machine, *_ = text.splitlines()
    assert typed.rstrip("\\") == f"`{command}`" and machine.startswith(processor)
    assert re.search(r" cores, .*, 20\d\d-\d\d-\d\d", machine) and "\n| " in text
    cli.build_parser("bench").parse_args(shlex.split(command)[1:])


def test_no_table_of_the_page_is_without_a_command():
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    outside = re.sub(r"<!-- transformer-np.*?<!-- end of the measurement -->", "", page, flags=re.DOTALL)
    rows = [line.split("|")[1].strip() for line in outside.splitlines() if line.startswith("| `")]
    assert len(rows) == outside.count("\n| ") - outside.count("\n|--") > 10  # without heads
    for row in rows:
        cli.build_parser("train").parse_args(["train", *shlex.split(row.split("`")[1])])


def test_the_ratio_in_the_readme_is_that_of_the_page():
    training = [text for command, _, text in BLOCKS if set(command.split()) & {"small", "base"}]
    rows = re.findall(r"^\| ours, [^|]* / torch, [^|]*\|(.*)\|$", "\n".join(training), re.MULTILINE)
    ratios = [float(cell.split()[0]) for row in rows for cell in row.split("|") if cell.strip()]
    said = f"takes {min(ratios):.1f} to {max(ratios):.1f} times as long as PyTorch's"
    assert len(ratios) > 10 and said in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
