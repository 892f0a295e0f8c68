"""Whole training commands, and a whole PyTorch script of the same task, in alternating processes: how long they take,
and what is learned."""

import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from .. import data
from ..support.processes import THREADS
from . import memory, tasks
from .measure import in_turn, quartiles
from .report import megabytes, spread, table

ROUNDS, ROUNDS_OF_TASKS = 3, 2
FLAGS = {"gpt": "--text", "translate": "--pairs"}  # of the data
READ = {"gpt": data.open_text, "translate": data.read_pairs}
RACES = {  # the task, the options of our commands, those of the PyTorch script
    "train": ("gpt", ["--steps 1000 --optimizer adamw"], "--steps 1000"),
    "translate": ("translate", ["--steps 800"], "--steps 800"),
    "loss": ("gpt", ["--steps 400", "--steps 450"], "--steps 2000 --nanogpt"),
}
_LOSS = re.compile(r"^validation loss (\S+)$", re.MULTILINE)
_SHARE = re.compile(r"^.* ([\d.]+%)$", re.MULTILINE)


@dataclass
class Command:
    """A training command and its runs: wall seconds, those of all processors (None if unknown), validation loss, and
    the share of unseen data that it gets right, if it has one.

    name: as it is typed; arguments: of Python; peak: the most memory in bytes, None if unknown
    """

    name: str
    arguments: list
    seconds: list = field(default_factory=list)
    processors: list = field(default_factory=list)
    losses: list = field(default_factory=list)
    shares: list = field(default_factory=list)
    peak: int | None = None

    def run(self, seed, out):
        """Run the command once; its results go to the folder `out`.

        Raises ChildProcessError with the end of its messages if it fails.
        """
        environment = {name: value for name, value in os.environ.items() if name not in THREADS}  # its own defaults
        started, used = time.perf_counter(), _processor_seconds()
        process = subprocess.Popen(
            [sys.executable, *self.arguments, "--seed", str(seed), "--out", str(out)], env=environment, text=True,
            start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            with memory.watching(process.pid) as peak:
                output, messages = process.communicate()
        except BaseException:  # Ctrl-C does not reach the command, which has its own session
            process.kill()
            process.wait()
            raise
        found, share = _LOSS.search(output), _SHARE.search(output)
        if process.returncode or not found:
            raise ChildProcessError(f"{self.name} failed with code {process.returncode}:\n{messages[-2000:]}")
        self.seconds.append(time.perf_counter() - started)
        self.processors.append(None if used is None else _processor_seconds() - used)
        self.losses.append(found[1])
        self.shares += [share[1]] if share else []
        self.peak = max(filter(None, (self.peak, peak())), default=None)


def _processor_seconds():
    """Of all processes that this one has started and that have ended; None if unknown."""
    times = os.times()
    return times.children_user + times.children_system if os.name == "posix" else None


def ours(*words):
    """The Command of a line such as "gpt --steps 400", in words."""
    return Command(f"train {shlex.join(words)}", ["-m", "transformer_np", "train", *words])


def _group(kind, path, own, theirs):
    """Commands that learn from the same file: ours with each of these options, and PyTorch's script with theirs, if any
    are given. Of the path, only the end is in their names."""
    found = [ours(kind, FLAGS[kind], str(path), *options.split()) for options in own]
    for command in found:
        command.name = command.name.replace(shlex.quote(str(path)), shlex.quote(path.name))
    if theirs is not None:
        script = str(Path(__file__).with_name("torch_train.py"))
        arguments = ["-P", script, kind, FLAGS[kind], str(path), *theirs.split()]
        found.append(Command(f"PyTorch: {kind} {theirs}", arguments))
    return found


def groups(name, file, against_torch, folder):
    """The commands of one of WHOLE: lists of those that do the same. file: of the data; None for the built-in ones"""
    if name == "tasks":
        for task in tasks.TASKS:
            path = Path(folder, f"{task}.tsv")
            path.write_text("".join(f"{a}\t{b}\n" for a, b in tasks.pairs(task)), encoding="utf-8", newline="\n")
            own, theirs = f"--tokens char{tasks.OPTIONS.get(task, '')}", f"--chars --steps {tasks.TORCH_STEPS}"
            yield _group("translate", path, [own], theirs if against_torch else None)
        return
    kind, own, theirs = RACES[name]
    path = Path(file).absolute() if file else Path(folder, "data")
    if file:
        READ[kind](path)  # an error now rather than in a process
    else:
        path.write_text(built_in(kind), encoding="utf-8", newline="\n")
    yield _group(kind, path, own, theirs if against_torch else None)


def run(commands, rounds, note=lambda line: None):
    """Run commands in turn, each with the seeds 0, 1, … of so many rounds."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(rounds):
            for i in in_turn(len(commands), seed):
                note(f"round {seed + 1} of {rounds}: {commands[i].name}")
                commands[i].run(seed, Path(folder, f"{i}-{seed}"))


def built_in(kind):
    """The built-in data, as a file has them."""
    if kind == "gpt":
        return data.documentation_text()
    return "".join(f"{source}\t{target}\n" for source, target in data.english_portuguese())


def tables(groups):
    """All runs as text: one row per command; what differs by seed is listed. ratio: the time of the first command of a
    group divided by that of this one"""
    rows = [("command, one value per seed", "seconds", "of processors", "ratio", "validation loss", "right", "peak MB")]
    for first, *others in groups:
        for command in (first, *others):
            ratios = [a / b for a, b in zip(first.seconds, command.seconds, strict=True)]
            ratio = statistics.median(first.seconds) / statistics.median(command.seconds)
            times = _listed(command.seconds), _listed(command.processors)
            learned = ", ".join(command.losses), ", ".join(command.shares)
            compared = "" if command is first else spread(ratio, quartiles(ratios))
            rows.append((command.name, *times, compared, *learned, megabytes(command.peak)))
    return table(rows)


def _listed(numbers):
    return ", ".join("?" if number is None else f"{number:.1f}" for number in numbers)
