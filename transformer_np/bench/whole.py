"""The whole command `train gpt` against a whole PyTorch script of the same task, in alternating processes."""

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

from ..support.processes import THREADS
from . import memory
from .contestants import Contestant, Entry
from .measure import in_turn, quartiles
from .report import aligned, megabytes, ratio_line

NAME = "train"
STEPS, QUICK_STEPS = 1000, 100
ROUNDS, QUICK_ROUNDS = 3, 1
PRODUCTS_TURNS, PRODUCTS_STEPS = 5, 20
OURS, TORCH = "ours, train gpt", "torch, script"
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

    workers: the processes of our training; products: seconds that its matrix products take at the speed of NumPy's
    library, in one of the workers
    """

    steps: int
    text: str
    commands: list
    workers: int
    products: float


def run_whole(text, steps, rounds, against_torch, note=lambda line: None):
    """Run the commands in turn  ->  WholeOutcome. text: a file, or None for the built-in text"""
    from ..data import documentation_text, open_text

    with tempfile.TemporaryDirectory() as folder:
        path = Path(text).absolute() if text else Path(folder, "text.txt")
        if text:
            open_text(path)  # an error now rather than in a process
        else:
            path.write_text(documentation_text(), encoding="utf-8", newline="\n")
        how = ["--text", str(path), "--steps", str(steps)]
        commands = [Command(OURS, ["-m", "transformer_np", "train", "gpt", *how])]
        if against_torch:
            commands.append(Command(TORCH, ["-P", str(Path(__file__).with_name("torch_train.py")), *how]))
        for number in range(rounds):
            for i in in_turn(len(commands), number):
                note(f"{NAME}: round {number + 1} of {rounds}, {commands[i].name}")
                commands[i].run(Path(folder, f"{i}-{number}"))
        workers = json.loads(Path(folder, "0-0", "run.json").read_text(encoding="utf-8")).get("workers", 1)
        note(f"{NAME}: matrix products")
        entry = Entry("products", "work", "CommandProducts", {"text": str(path), "workers": workers, "steps": steps})
        with Contestant(entry) as contestant:
            contestant.build()
            products = statistics.median(contestant.run(PRODUCTS_STEPS) for _ in range(PRODUCTS_TURNS)) / PRODUCTS_STEPS
        return WholeOutcome(steps, text or "the built-in text", commands, workers, products * steps)


def table(outcome):
    """The outcome as text."""
    rows = [("", "seconds", "(quartiles)", "validation loss", "peak MB")]
    for command in outcome.commands:
        low, high = quartiles(command.seconds)
        loss = f"{statistics.median(command.losses):.4f}"
        rows.append((command.name, f"{command.median:.1f}", f"({low:.1f} - {high:.1f})", loss, megabytes(command.peak)))
    ours, *others = outcome.commands
    lines = [
        f"whole commands: a GPT of 4 layers, d 128, batch 12 x 64, {outcome.steps:,} steps on {outcome.text}; "
        "start, data, validation and saving included",
        *aligned(rows),
    ]
    for other in others:
        ratios = [a / b for a, b in zip(ours.seconds, other.seconds, strict=True)]
        lines.append(ratio_line(ours.name, other.name, ours.median / other.median, quartiles(ratios)))
    if others:
        lines.append("  GELU: the tanh approximation in ours, as in GPT-2; exact in PyTorch, as in nanoGPT")
    workers = "1 process" if outcome.workers == 1 else f"{outcome.workers} workers"
    lines.append(
        f"  ours with {workers}: matrix products of the steps at the speed of NumPy's BLAS {outcome.products:.1f} s "
        f"({outcome.products / ours.median:.0%}), the rest {ours.median - outcome.products:.1f} s"
    )
    return "\n".join(lines)
