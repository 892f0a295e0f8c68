"""Whole training commands against a whole PyTorch script of the same task, in alternating processes."""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from .. import data
from ..support.processes import THREADS
from . import memory
from .contestants import Contestant, Entry
from .measure import in_turn, quartiles
from .report import aligned, megabytes, ratio_line

ROUNDS, QUICK_ROUNDS = 3, 1
PRODUCTS_TURNS, PRODUCTS_STEPS = 5, 20
TORCH = "torch, script"


@dataclass(frozen=True)
class Race:
    """A command `transformer-np train KIND`, the flag of its data, its steps with and without --quick, and a line about
    its model."""

    kind: str
    flag: str
    steps: int
    quick: int
    about: str


RACES = {
    "train": Race("gpt", "--text", 1000, 100, "a GPT of 4 layers, d 128, batch 12 x 64"),
    "translate": Race("translate", "--pairs", 800, 80, "an encoder-decoder of 2 + 2 layers, d 64, 64 pairs a step"),
    "classify": Race("classify", "--data", 600, 60, "a BERT of 2 layers, d 64, 64 texts a step"),
}
_LOSS = re.compile(r"^validation loss (\S+)$", re.MULTILINE)


@dataclass
class Command:
    """A command and its measurements: wall seconds and validation loss of each run, and the largest peak memory in
    bytes, None if unknown."""

    name: str
    arguments: list
    seconds: list = field(default_factory=list)
    losses: list = field(default_factory=list)
    peak: int | None = None

    @property
    def median(self):
        return statistics.median(self.seconds)

    def run(self, out):
        """Run the command once; its results go to the folder `out`.

        Raises ChildProcessError with the end of its messages if it fails.
        """
        environment = {name: value for name, value in os.environ.items() if name not in THREADS}  # its own defaults
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *self.arguments, "--out", str(out)],
            env=environment,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            with memory.watching(process.pid) as peak:
                output, messages = process.communicate()
            seconds = time.perf_counter() - started
        except BaseException:  # Ctrl-C does not reach the command, which has its own session
            process.kill()
            process.wait()
            raise
        found = _LOSS.search(output)
        if process.returncode or not found:
            raise ChildProcessError(f"{self.name} failed with code {process.returncode}:\n{messages[-2000:]}")
        self.seconds.append(seconds)
        self.losses.append(float(found[1]))
        self.peak = max(filter(None, (self.peak, peak())), default=None)


@dataclass
class WholeOutcome:
    """The commands, ours first, and the time of the matrix products in ours.

    workers: the processes of our training; products: seconds that the matrix products of a GPT take at the speed of
    NumPy's library, in one of the workers, or None
    """

    name: str
    steps: int
    data: str
    commands: list
    workers: int
    products: float | None


def run_whole(name, file, steps, rounds, against_torch, note=lambda line: None):
    """Run the commands of one of the RACES in turn  ->  WholeOutcome. file: of the data; None for the built-in ones"""
    race = RACES[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(file).absolute() if file else Path(folder, "data")
        if file:
            _READ[name](path)  # an error now rather than in a process
        else:
            path.write_text(_built_in(name), encoding="utf-8", newline="\n")
        how = [race.kind, race.flag, str(path), "--steps", str(steps)]
        same = ["--optimizer", "adamw"] if against_torch else []  # as in the script
        commands = [Command(f"ours, train {race.kind}", ["-m", "transformer_np", "train", *how, *same])]
        if against_torch:
            commands.append(Command(TORCH, ["-P", str(Path(__file__).with_name("torch_train.py")), *how]))
        for number in range(rounds):
            for i in in_turn(len(commands), number):
                note(f"{name}: round {number + 1} of {rounds}, {commands[i].name}")
                commands[i].run(Path(folder, f"{i}-{number}"))
        workers = json.loads(Path(folder, "0-0", "run.json").read_text(encoding="utf-8")).get("workers", 1)
        products = None
        if name == "train":
            note(f"{name}: matrix products")
            products = steps * _seconds_of_products(str(path), workers, steps)
        return WholeOutcome(name, steps, file or "the built-in data", commands, workers, products)


def _seconds_of_products(text, workers, steps):
    """The seconds of the matrix products of one step of a GPT."""
    arguments = {"text": text, "workers": workers, "steps": steps}
    with Contestant(Entry("products", "work", "CommandProducts", arguments)) as contestant:
        contestant.build()
        return statistics.median(contestant.run(PRODUCTS_STEPS) for _ in range(PRODUCTS_TURNS)) / PRODUCTS_STEPS


_READ = {"train": data.open_text, "translate": data.read_pairs, "classify": data.read_labelled}


def _built_in(name):
    """The built-in data, as a file has them."""
    if name == "train":
        return data.documentation_text()
    rows = data.english_portuguese() if name == "translate" else [pair[::-1] for pair in data.sentiment_sentences()]
    return "".join(f"{first}\t{second}\n" for first, second in rows)


def table(outcome):
    """The outcome as text."""
    rows = [("", "seconds", "(quartiles)", "validation loss", "peak MB")]
    for command in outcome.commands:
        low, high = quartiles(command.seconds)
        loss = f"{statistics.median(command.losses):.4f}"
        rows.append((command.name, f"{command.median:.1f}", f"({low:.1f} - {high:.1f})", loss, megabytes(command.peak)))
    ours, *others = outcome.commands
    lines = [
        f"whole commands: {RACES[outcome.name].about}, {outcome.steps:,} steps on {outcome.data}; "
        "start, data, validation and saving included",
        *aligned(rows),
    ]
    for other in others:
        ratios = [a / b for a, b in zip(ours.seconds, other.seconds, strict=True)]
        lines.append(ratio_line(ours.name, other.name, ours.median / other.median, quartiles(ratios)))
    if others and outcome.name == "train":
        lines.append("  GELU: the tanh approximation in ours, as in GPT-2; exact in PyTorch, as in nanoGPT")
    lines.append(f"  ours with {'1 process' if outcome.workers == 1 else f'{outcome.workers} workers'}")
    if outcome.products is not None:
        lines[-1] += (
            f": matrix products of the steps at the speed of NumPy's BLAS {outcome.products:.1f} s "
            f"({outcome.products / ours.median:.0%}), the rest {ours.median - outcome.products:.1f} s"
        )
    return "\n".join(lines)
